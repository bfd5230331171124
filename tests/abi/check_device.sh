#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# check_device.sh SOURCE_DIR: headers for kernels (hal/device/*.h) are CUDA, HIP and OpenCL C
# to clang, which need not have the toolkits; and what an index that is translated costs in
# NVIDIA's instructions: PTX of the same access with and without.
set -euo pipefail
source=$1
clang=$(command -v clang || ls /usr/bin/clang-[0-9]* 2>/dev/null | tail -n 1) || true
[ -n "$clang" ] || { echo "no clang"; exit 77; }
dir=$(mktemp -d)
trap 'rm -r "$dir"' EXIT
warn=(-Wall -Wextra -Werror -Wno-unknown-cuda-version -Wno-unused-function "-I$source")
cuda=(-x cuda --cuda-gpu-arch=sm_75 -nocudainc -nocudalib --cuda-device-only)

cat >"$dir/two" <<'END'
#include <hal/device/hal_color.h>
#include <hal/device/hal_color.h>
FN int plain(GLOBAL const int *p, unsigned i);
FN int coloured(GLOBAL const int *p, unsigned i, unsigned k, unsigned s);
FN int plain(GLOBAL const int *p, unsigned i) { return p[i]; }
FN int coloured(GLOBAL const int *p, unsigned i, unsigned k, unsigned s)
{
	return hal_color_piece_ok(k, 4, 1024, 4) + hal_color_extent(i, k, s) == 0
		       ? 0
		       : p[hal_color_offset32(i, k, s)];
}
END
sed 's/^FN/__attribute__((device))/; s/GLOBAL//' "$dir/two" >"$dir/two.cu"
sed 's/^FN//; s/GLOBAL/__global/' "$dir/two" >"$dir/two.cl"
"$clang" "${cuda[@]}" "${warn[@]}" -fsyntax-only "$dir/two.cu"
"$clang" -x hip --offload-arch=gfx906 -nogpuinc -nogpulib --cuda-device-only "${warn[@]}" \
	-fsyntax-only "$dir/two.cu"
for standard in CL1.2 CL2.0; do
	"$clang" -x cl -cl-std=$standard -target spir64 "${warn[@]}" -fsyntax-only "$dir/two.cl"
done

# Kernels that stop between their blocks: for HIP, and plain ones for CUDA, of one source.
cat >"$dir/stops.cu" <<'END'
#include <hal/device/hal_preempt.h>
#include <hal/device/hal_preempt.h>
#ifndef __HIP__
struct place { unsigned x, y, z; };
extern const __attribute__((device)) struct place blockIdx;
#endif
HAL_PREEMPT_KERNEL(one)(unsigned *d HAL_PREEMPT_LAST)
{
	HAL_PREEMPT_ENTER();
	d[blockIdx.x] = blockIdx.y;
}
END
"$clang" "${cuda[@]}" "${warn[@]}" -fsyntax-only "$dir/stops.cu"
for arch in gfx906 gfx90a gfx1030; do
	"$clang" -x hip --offload-arch=$arch -nogpuinc -nogpulib --cuda-device-only "${warn[@]}" \
		-fsyntax-only "$dir/stops.cu"
done

# ops FUNCTION: instructions of its body that compute something
ops()
{
	awk -v name="$1" '/^\.visible/ { inside = index($0, name "(") }
		/^}/ { inside = 0 }
		inside && /^\t[a-z]/ && !/^\t(ld|st)\./ && !/^\tret/ { n++ }
		END { print n + 0 }' "$dir/access.ptx"
}

cat >"$dir/access.cu" <<'END'
#include <hal/device/hal_color.h>
extern "C" __attribute__((device)) int plain(const int *p, unsigned i) { return p[i]; }
extern "C" __attribute__((device)) int coloured(const int *p, unsigned i, unsigned k, unsigned s)
{
	return p[hal_color_offset32(i, k, s)];
}
END
"$clang" "${cuda[@]}" "${warn[@]}" -O2 -S -o "$dir/access.ptx" "$dir/access.cu"
plain=$(ops plain)
[ "$plain" -gt 0 ] || { echo "no access found in the PTX"; exit 1; }
extra=$(($(ops coloured) - plain))
echo "figure color.translate.extra_ops $extra"
[ "$extra" -eq 2 ] || { cat "$dir/access.ptx"; exit 1; }

#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# where.sh CLANG SOURCE_DIR "[EMULATOR ]PRINTS": the kernels of backends/rocm/where.h, compiled with the
# options that PRINTS (test_rocm_where) says the backend gives for each architecture: the one
# that tells where it is reads that architecture's register; those that fill and copy.
set -euo pipefail
clang=$1 source=$2 prints=$3
out=$(mktemp)
trap 'rm -f "$out"' EXIT

# reads ARCH REGISTER...: these registers, in this order, and no others of these.
reads() {
	local arch=$1 options
	shift
	mapfile -t options < <($prints "$arch")
	[ ${#options[@]} -eq 4 ] || { echo "$arch: options: ${options[*]}"; exit 1; }
	"$clang" -x hip --offload-arch="$arch" -nogpuinc -nogpulib --cuda-device-only -O2 \
		-I"$source" "${options[@]}" -S -o "$out" "$source/tests/rocm/where.hip"
	[ "$(grep -oE 'hwreg\(HW_REG_(HW|XCC)_ID[12]?' "$out" | sort -u | tr '\n' ' ')" = "$*" ] ||
		{ echo "$arch: not $*:"; grep hwreg "$out"; exit 1; }
	grep -q 'hal_where.kd' "$out"
	# Those of a queue of HSA's take three values of 8 bytes, and nothing that is hidden.
	[ "$(grep -cE 'kernarg_segment_size: 24$' "$out")" = 2 ] && grep -q 'hal_fill.kd' "$out" &&
		grep -q 'hal_copy.kd' "$out" && ! grep -q 'hidden_' "$out" ||
		{ echo "$arch: fills and copies:"; grep -E 'kernarg_segment_size|hidden_' "$out"; exit 1; }
}

reads gfx906 'hwreg(HW_REG_HW_ID '
reads gfx90a:xnack- 'hwreg(HW_REG_HW_ID '
reads gfx1030 'hwreg(HW_REG_HW_ID1 '
# These came with later releases of clang.
if "$clang" -x hip --offload-arch=gfx1100 -nogpuinc -nogpulib --cuda-device-only -fsyntax-only \
	-DHAL_WHERE_REGISTER=0 -DHAL_WHERE_XCC=0 -DHAL_WHERE_SHIFT=0 -DHAL_WHERE_BITS=0 \
	-I"$source" "$source/tests/rocm/where.hip" 2>/dev/null; then
	reads gfx1100 'hwreg(HW_REG_HW_ID1 '
fi
if "$clang" -x hip --offload-arch=gfx942 -nogpuinc -nogpulib --cuda-device-only -fsyntax-only \
	-DHAL_WHERE_REGISTER=0 -DHAL_WHERE_XCC=0 -DHAL_WHERE_SHIFT=0 -DHAL_WHERE_BITS=0 \
	-I"$source" "$source/tests/rocm/where.hip" 2>/dev/null; then
	reads gfx942 'hwreg(HW_REG_HW_ID hwreg(HW_REG_XCC_ID '
fi

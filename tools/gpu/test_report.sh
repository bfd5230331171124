#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# test_report.sh SOURCE_DIR BUILD_DIR: scripts/gpu-report on the stand-in: refused as a device's,
# and complete as what it is.
set -euo pipefail
root=$1
build=$2
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export LD_LIBRARY_PATH=$build/tests/cuda XDG_CACHE_HOME=$scratch/cache
report=$root/scripts/gpu-report
before=$(ls "$root/docs/devices" 2>/dev/null || true)

if "$report" -b "$build" cuda:1 >"$scratch/said" 2>&1; then
	echo "a report of a stand-in was written"; exit 1
fi
grep -q 'is a stand-in: what it takes is no device' "$scratch/said" ||
	{ echo "it does not say why not:"; cat "$scratch/said"; exit 1; }
[ "$(ls "$root/docs/devices" 2>/dev/null || true)" = "$before" ] ||
	{ echo "docs/devices has changed"; exit 1; }
"$report" -b "$build" ref:0 >"$scratch/said" 2>&1 && { echo "ref is no GPU"; exit 1; }

"$report" -b "$build" --quick 30 --stand-in "$scratch/report.md" 'cuda:1' >/dev/null
need() {
	grep -qE "$1" "$scratch/report.md" && return
	echo "the report has no: $1"; cat "$scratch/report.md"; exit 1
}
need '^\*\*A stand-in'
need '^Driver: '
need '^partitions by +mask$'
need '^launch of one block, to the end \| p50 [0-9.]+ us, p99 [0-9.]+ us, of 30$'
need '^hal_submit minus a launch by hand, p50 \| -?[0-9.]+ us$'
need '^launch of one block minus that by hand, to the end, p50 \| -?[0-9.]+ us$'
need '^FOLD of a launch of 65536 blocks of 2\.0 ms, then dropped \| p50 [0-9.]+ us, p99 [0-9.]+ us, of 30$'
need '^a launch of 3 s, to its being given up \| p50 ([2-9][0-9]{5}|[0-9]{7,})\.[0-9]+ us'
need '^multiprocessors of a unit, in partitions of 1 to 23 \| 2\.00 to 2\.00$'
need '^multiprocessors that two partitions shared, all sizes \| 0$'
need "^a storm in a stream of the program's own: blocks on the partition's multiprocessors \\| [0-9]+ of 204800\$"
need "^a storm in a stream of the remainder: blocks on the partition's multiprocessors \\| 0 of 204800\$"
need '^two partitions, of the throughput of one \| [0-9.]+$'
need '^launch beside a busy tenant, another partition \| p50'
need '^launch while another thread creates and destroys buffers of 1 MiB \| p50'
need '^[0-9]+ KiB to the device, by a queue \| [0-9.]+ us, [0-9.]+ GB/s$'
need '^upload, kernel and download, of the longest of them: three queues \| [0-9.]+$'
need '^launch beside 31 busy queues, 8 hardware channels \| p50'
need '^launch beside 31 busy queues, 32 hardware channels \| p50'
need '^DRAIN \(no FOLD\), [0-9]+ blocks of 2\.0 ms \| p50'
need '^FOLD, [0-9]+ blocks of 2\.0 ms \| p50'
need '^launch beside a busy tenant, policy edf \| p50'
need '^launch beside a busy tenant, no partitions, better priority: the other tenant \| [0-9.]+ launches'
need '^launches a second, 64 at a time \| [0-9]+, by hand [0-9]+, ratio [0-9.]+$'
need '^sum of [0-9]+ numbers, preempt=block takes more, p50 \| -?[0-9.]+ %$'
need '^sum of [0-9]+ numbers, slice_us=50 takes more, p50 \| -?[0-9.]+ %$'
need '^product of [0-9]+ x [0-9]+, slices of a launch, calls of the driver for one, a block \| [0-9.]+, [0-9.]+, [0-9.]+ us$'
need '^eight recorded launches, of eight single ones, p50 \| [0-9.]+$'
need '^32 KiB of local memory a thread, beside a launch of 50 ms \| loaded in [0-9.]+ us, first launch'
need '^a buffer of 64m, made \| p50 [0-9.]+ us, p99 [0-9.]+ us, of [0-9]+$'
need '^sums in 48 buffers, half of them made anew, that were wrong \| 0$'
need '^sum of [0-9]+ numbers, bounds=yes takes more, p50 \| -?[0-9.]+ %$'
need "^a sum that reaches behind its partition's range \\| .*: access outside its partition's range, kernel vector_add$"
need "^sums of a neighbour's after it that were wrong \\| 0$"
[ "$(grep -cE '^[0-9]+ passed, 0 failed' "$scratch/report.md")" = 1 ] || need "a conformance run"
for name in launch.submit_p50_us beside.other_partition_p99_us whole.same_priority_p50_us \
	fold.2000us_p99_us entry.product_cost_share slices.product_cost_share \
	policy.wfq_p99_us given_up_p50_us \
	graphs.recorded_of_single_share vmm.2m.made_p50_us bounds.product_cost_share \
	stray.told_of_1 copies.overlapped_of_stage_share storm.green.remainder_blocks \
	witness.stream.apart_of_one_share; do
	need "^figure gpu\.[a-z0-9]+\.${name//./\\.} -?[0-9.]+(e[-+][0-9]+)?$"
done
[ -z "$(grep '^figure' "$scratch/report.md" | cut -d' ' -f2 | sort | uniq -d)" ] ||
	{ echo "a figure is there twice"; exit 1; }
grep -n 'ended with\|not run' "$scratch/report.md" && exit 1

# Without bounds a stray access is not told, and that is not taken for it.
if HAL_STAND_IN_CUDA_RUN=ptx "$build/hal-gpu-measure" 'cuda:1?memory=vmm' \
	"$root/examples/gpu_kernels.ptx" stray >"$scratch/said" 2>&1; then
	echo "a stray access without bounds is told:"; cat "$scratch/said"; exit 1
fi

# HIP, where there was a compiler for it.
kernels=$build/examples/gpu_kernels.hipfb
[ -r "$kernels" ] || exit 0
measure() { # measure TARGET WHAT PATTERN
	LD_LIBRARY_PATH=$build/tests/rocm HAL_GPU_TIMES=10 "$build/hal-gpu-measure" "$1" "$kernels" \
		"$2" >"$scratch/said" 2>&1 && grep -qE "$3" "$scratch/said" && return
	echo "hal-gpu-measure $1 $2: not $3:"; cat "$scratch/said"; exit 1
}
measure rocm:0 launch '^launch of one block minus that by hand, to the end, p50 \| -?[0-9.]+ us$'
measure 'rocm:0?preempt=block' endless '^FOLD of a launch of 65536 blocks .* of 10$'
exit 0

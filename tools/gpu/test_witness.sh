#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# test_witness.sh SOURCE_DIR BUILD_DIR: what hal-gpu-measure says of partitions on the fake driver:
# of launches that are in none, and of a driver that pretends to keep to masks.
set -euo pipefail
root=$1
build=$2
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export LD_LIBRARY_PATH=$build/tests/cuda XDG_CACHE_HOME=$scratch/cache HAL_GPU_TIMES=5

# says TARGET WHAT PATTERN...: each in a line of what it prints.
says() {
	local target=$1 what=$2
	shift 2
	timeout 60 "$build/hal-gpu-measure" "$target" "$root/examples/gpu_kernels.ptx" "$what" \
		>"$scratch/said" 2>&1 || { echo "$target $what ended with $?"; cat "$scratch/said"; exit 1; }
	for pattern; do
		grep -qE "$pattern" "$scratch/said" && continue
		echo "$target $what does not say: $pattern"; cat "$scratch/said"; exit 1
	done
}

own='multiprocessors are \| their own$'
two='^two partitions, of the throughput of one \| (1\.[89]|2\.0)'
one='^two queues of one partition, of the throughput of one \| (0\.9|1\.0)'
for way in mask stream green; do
	says "cuda:1?clock=virtual&partitions=$way" witness "$own" "$two" "$one"
done
# What is kept from here says that masks hold.  Then they do not; where blocks say that they are
# hides it, what two partitions get done does not.
says 'cuda:1?clock=virtual' witness "$own" "$two" "$one"
export HAL_STAND_IN_CUDA_PRETENDS=1
says 'cuda:1?clock=virtual' places '^multiprocessors that two partitions shared, all sizes \| 0$'
says 'cuda:1?clock=virtual' witness 'multiprocessors are \| shared$' '^figure gpu\.witness\.mask\.apart_of_one_share (0\.9|1(\.0|$))'
unset HAL_STAND_IN_CUDA_PRETENDS

inside="blocks on the partition's multiprocessors"
export HAL_STAND_IN_CUDA_DEVICES=1
for way in mask stream green; do
	plain='[1-9][0-9]{4,}'
	[ $way != mask ] || plain=0
	says "cuda:0?clock=virtual&partitions=$way&remainder=1" storm \
		"^a storm in a stream of the program's own: $inside \| $plain of 204800\$" \
		"^a storm in a stream of the remainder: $inside \| 0 of 204800\$"
done
# The control: no unit is kept.
says 'cuda:0?clock=virtual&partitions=mask' storm '^a stream of the remainder \| refused: .*remainder=1' \
	"^a storm in a stream of the program's own: $inside \| [1-9][0-9]{4,} of 204800\$"

#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# stand_in_said.sh "[EMULATOR ]HALCTL" TOPOLOGY: the stand-in's devices say so, by name and capability; what
# a library of HSA's makes of them, and one that is none; and without HIP the list says what is missing.
set -euo pipefail
halctl=$1
grep -q '^rocm:2 .*HAL stand-in GPU, MI300X' <<<"$($halctl list)" || { echo "list does not say it"; exit 1; }
info=$($halctl info rocm:1)
grep -q '^capabilities .*stand-in' <<<"$info" || { echo "info does not say it: $info"; exit 1; }
grep -q '^partitions by .*none' <<<"$info" && grep -q '^because .*partitions=engines cannot open ' <<<"$info" ||
	{ echo "info does not say what partitions are: $info"; exit 1; }
info=$(HAL_BACKEND_ROCM_TOPOLOGY=$2 $halctl info 'rocm:2?partitions=engines&hang_ms=70')
grep -q '^because .*partitions=cu cannot open (EOPNOTSUPP)' <<<"$info" ||
	{ echo "info does not say why not another way: $info"; exit 1; }
grep -q '^faults .*after 70 ms the queue' <<<"$info" ||
	{ echo "info does not say what a fault takes along: $info"; exit 1; }
# hsa FOLDER TOPOLOGY BECAUSE FAULTS: with what is there as HSA's runtime.
hsa() {
	info=$(HAL_BACKEND_ROCM_TOPOLOGY=$2 LD_LIBRARY_PATH=$LD_LIBRARY_PATH:$LD_LIBRARY_PATH/$1 \
		$halctl info 'rocm:0?partitions=engines&hang_ms=70')
	grep -qE "^because .*$3" <<<"$info" && grep -qE "^faults .*$4" <<<"$info" ||
		{ echo "with $1 info does not say $3, and $4: $info"; exit 1; }
}
hsa hsa "$2" "queues of HSA's;.* masks change while a kernel runs" \
	'one that takes more than 70 ms is ended with its queue'
hsa hsa_none "$2" "queues of HIP's streams;.* libhsa-runtime64.so.1 has no hsa_init" \
	'after 70 ms the queue is given up'
hsa nowhere "$2" "queues of HIP's streams;.* no HSA: libhsa-runtime64.so.1: cannot open" \
	'after 70 ms the queue is given up'
grep -q '^rocm .*no HIP' <<<"$(cd / && env -u LD_LIBRARY_PATH $halctl list)" ||
	{ echo "nothing is said of a library that is not there"; exit 1; }

#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# stand_in_said.sh "[EMULATOR ]HALCTL": the stand-in driver's devices say so, by name and capability; and
# without any driver the list says what is missing.
set -euo pipefail
halctl=$1
grep -q '^cuda:0 .*HAL stand-in GPU' <<<"$($halctl list)" || { echo "list does not say it"; exit 1; }
info=$($halctl info cuda:1)
grep -q '^capabilities .*stand-in' <<<"$info" || { echo "info does not say it: $info"; exit 1; }
grep -q '^partitions by .*mask' <<<"$info" && grep -q '^because .*mask: tried out' <<<"$info" ||
	{ echo "info does not say what partitions are: $info"; exit 1; }
info=$($halctl info 'cuda:1?partitions=none&hang_ms=70')
grep -q '^faults .*all CUDA work of the process.*after 70 ms the queue' <<<"$info" ||
	{ echo "info does not say what a fault takes along: $info"; exit 1; }
# Not here, where the stand-in lies: paths in a build tree's programs may end in an empty one.
grep -q '^cuda .*no driver' <<<"$(cd / && env -u LD_LIBRARY_PATH $halctl list)" ||
	{ echo "nothing is said of a driver that is not there"; exit 1; }

#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# stand_in_said.sh "[EMULATOR ]HALCTL": the stand-in's devices say so, by name and capability; and
# without HIP the list says what is missing.
set -euo pipefail
halctl=$1
grep -q '^rocm:2 .*HAL stand-in GPU, MI300X' <<<"$($halctl list)" || { echo "list does not say it"; exit 1; }
info=$($halctl info rocm:1)
grep -q '^capabilities .*stand-in' <<<"$info" || { echo "info does not say it: $info"; exit 1; }
grep -q '^rocm .*no HIP' <<<"$(cd / && env -u LD_LIBRARY_PATH $halctl list)" ||
	{ echo "nothing is said of a library that is not there"; exit 1; }

#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# stand_in_said.sh "[EMULATOR ]HALCTL" XCLBIN: the stand-in's cards say so, by name and
# capability, and what loading took; and without any XRT the list says what is missing.
set -euo pipefail
halctl=$1
grep -q '^fpga:0 .*HAL stand-in' <<<"$($halctl list)" || { echo "list does not say it"; exit 1; }
info=$($halctl info "fpga:0?xclbin=$2")
grep -q '^capabilities .*stand-in' <<<"$info" || { echo "info does not say it: $info"; exit 1; }
grep -qE '^configurations .* 1 loaded, [1-9][0-9]* ns to load' <<<"$info" ||
	{ echo "info does not say what loading took: $info"; exit 1; }
# Where there is XRT itself, it says what it needs.
grep -qE '^fpga .*(no XRT|XILINX_XRT is not set)' \
	<<<"$(cd / && env -u LD_LIBRARY_PATH -u XILINX_XRT $halctl list)" ||
	{ echo "nothing is said of an XRT that is not there"; exit 1; }

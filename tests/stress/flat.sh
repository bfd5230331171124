#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# flat.sh COUNT PROGRAM MODE FEW MANY GROWTH: figure hal.MODE of PROGRAM is as much for MANY as
# for FEW, within a fifth (GROWTH flat), or grows no faster than their logarithms (log).  COUNT
# is tools/figures/count_instructions.
set -euo pipefail
command -v valgrind >/dev/null || { echo 'valgrind is missing'; exit 77; }
of() {
	"$1" "$2" "$3" "$4" | awk -v name="hal.$3.$4." 'index($0, name) { print $NF; exit }'
}
few=$(of "$1" "$2" "$3" "$4")
many=$(of "$1" "$2" "$3" "$5")
awk -v mode="$3" -v f="$4" -v m="$5" -v growth="$6" -v few="$few" -v many="$many" 'BEGIN {
	times = growth == "flat" ? 1.2 : growth == "log" ? log(m) / log(f) : 0
	printf "%s: %s instructions for one of %d, %s for one of %d; at most %.2f times as many\n",
		mode, few, f, many, m, times
	exit !(few > 0 && many > 0 && many <= few * times)
}'

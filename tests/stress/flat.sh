#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# flat.sh COUNT PROGRAM MODE FIGURE: PROGRAM MODE costs as much for 10,000 as for 10, within a
# fifth.  COUNT is tools/figures/count_instructions, FIGURE a word that its line names.
set -euo pipefail
command -v valgrind >/dev/null || { echo 'valgrind is missing'; exit 77; }
of() {
	"$1" "$2" "$3" "$5" | awk -v name="$4.$5." 'index($0, name) { print $NF; exit }'
}
few=$(of "$@" 10)
many=$(of "$@" 10000)
echo "$3: $few instructions beside 10, $many beside 10,000"
awk -v few="$few" -v many="$many" 'BEGIN { exit !(few > 0 && many > 0 && many <= few * 1.2) }'

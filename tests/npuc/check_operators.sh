#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# check_operators.sh NPUC_MD NPUC...: the operators that the command NPUC compiles are those that
# the table of that page names, each in one row.
set -euo pipefail

page=$1
shift
compiled=$("$@" --operators | sort)
[ -n "$compiled" ] || { echo "$* --operators lists nothing"; exit 1; }
# The first column from the heading on; "QUANTIZE between 8-bit types" is said in two rows.
explained=$(sed -n '/^## Operators/,/^## /p' "$page" | sed -nE 's/^\| ([A-Z][^|]*[A-Z0-9][^|]*) \|.*/\1/p' |
	grep -oE '\b[A-Z][A-Z0-9_]{2,}\b' | sort -u)
if ! diff <(echo "$compiled") <(echo "$explained"); then
	echo "< compiled, > in the table of $page"
	exit 1
fi

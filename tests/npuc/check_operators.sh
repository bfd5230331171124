#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# check_operators.sh NPUC NPUC_MD: the operators that NPUC compiles are those that the page's
# table names, each in one row.
set -euo pipefail

compiled=$("$1" --operators | sort)
[ -n "$compiled" ] || { echo "$1 --operators lists nothing"; exit 1; }
# The first column from the heading on; "QUANTIZE between 8-bit types" is said in two rows.
explained=$(sed -n '/^## Operators/,/^## /p' "$2" | sed -nE 's/^\| ([A-Z][^|]*[A-Z0-9][^|]*) \|.*/\1/p' |
	grep -oE '\b[A-Z][A-Z0-9_]{2,}\b' | sort -u)
if ! diff <(echo "$compiled") <(echo "$explained"); then
	echo "< compiled, > in the table of $2"
	exit 1
fi

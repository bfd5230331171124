#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# check_page.sh MAP PAGE: the manual page has a prototype of each function of the version
# script, and of no other.
set -euo pipefail
functions=$(sed -nE 's/^\t\t([a-z_0-9]+);$/\1/p' "$1" | sort)
shown=$(sed -nE 's/^\.F[no] "?([a-z_0-9]+).*/\1/p' <<<"$(sed -n '/^\.Sh SYNOPSIS/,/^\.Sh DESC/p' "$2")" |
	sort)
[ "$(wc -l <<<"$functions")" -gt 20 ] || { echo "no functions found in $1"; exit 1; }
if ! diff <(echo "$functions") <(echo "$shown"); then
	echo "< in $1, > in the SYNOPSIS of $2"
	exit 1
fi

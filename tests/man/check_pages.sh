#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# check_pages.sh SOURCE_DIR: every function that the library exports or its headers define has
# a page in section 3, which has the sections that it must have and the function's prototype;
# links and references lead somewhere.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cd "$1"
man=docs/man
must='NAME SYNOPSIS DESCRIPTION RETURN_VALUE ERRORS THREADS LIFETIME EXAMPLE SEE_ALSO'
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
rc=0
complain() {
	echo "$@"
	rc=1
}

awk -f "$here/pages.awk" "$man"/man?/*.[1-9] >"$scratch/pages"
awk -f "$here/headers.awk" hal/hal.h hal/ext/*.h hal/npu.h >"$scratch/headers"
{
	sed 's,/\*.*\*/,,; /local:/,$d' hal.map | grep -oE 'hal_[a-z0-9_]+'
	sed -n 's/^declared \([^ ]*\) .*/\1/p' "$scratch/headers"
} | sort -u >"$scratch/functions"
count=$(wc -l <"$scratch/functions")
[ "$count" -ge 40 ] || complain "only $count functions were found"

missing=0
while read -r fn; do
	page=$man/man3/$fn.3
	[ -e "$page" ] || { complain "$fn: no page"; missing=$((missing + 1)); continue; }
	target=$(sed -n 's/^\.so //p' "$page")
	[ -z "$target" ] || page=$man/$target
	[ -e "$page" ] || { complain "$fn: its link leads to nothing"; continue; }
	grep -qx "name $fn $page" "$scratch/pages" || complain "$page: NAME lacks $fn"
	declared=$(sed -n "s/^declared $fn //p" "$scratch/headers")
	grep -qxF "proto $fn $declared" "$scratch/pages" ||
		complain "$page: SYNOPSIS of $fn is not $declared"
done <"$scratch/functions"

# What is no function any more has no page either; libnpuc has one for all of its own.
for page in "$man"/man3/*.3; do
	name=$(basename "$page" .3)
	[ "$name" = libnpuc ] || grep -qx "$name" "$scratch/functions" || complain "$page: there is no such function"
	grep -q '^\.so ' "$page" && continue
	have=$(sed -n "s,^section $page ,,p" "$scratch/pages" | tr '\n' ' ')
	[ "$have" = "$must " ] || complain "$page: sections are $have, not $must"
	grep -q '^\.\\" example' "$page" || complain "$page: the example is not marked"
done

# References to pages of ours.
while read -r _ page name section; do
	case $name in
	hal*) [ -e "$man/man$section/$name.$section" ] ||
		complain "$page: refers to $name($section), which is not there" ;;
	esac
done < <(grep '^refer ' "$scratch/pages")

echo "figure api.functions_without_manpage $missing"
exit $rc

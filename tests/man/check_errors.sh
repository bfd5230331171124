#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# check_errors.sh SOURCE_DIR NEGATIVE...: every errno that a header documents is in the ERRORS of
# the function's page, and every errno in ERRORS has a negative case.
# untested.txt names those that have none so far and why; it may not name any that has one.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cd "$1"
shift
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
rc=0

# tests/npuc has the cases of libnpuc.
awk -f "$here/pages.awk" docs/man/man3/hal*.3 | sed -n 's/^errno //p' >"$scratch/errors"
cut -d' ' -f1,2 "$scratch/errors" | sort -u >"$scratch/promised"
for negative; do
	"$negative" --list
done | cut -d' ' -f1,2 | sort -u >"$scratch/tested"
sed -e 's/#.*//' "$here/untested.txt" | awk 'NF >= 3 { print $1, $2 }' | sort >"$scratch/listed"
sort -u "$scratch/listed" >"$scratch/untested"
for part in promised tested; do
	[ "$(wc -l <"$scratch/$part")" -ge 100 ] ||
		{ echo "only $(wc -l <"$scratch/$part") errors are $part"; rc=1; }
done

# A comment above two functions that share a page may speak of either.
while read -r _ fn err; do
	page=docs/man/man3/$fn.3
	target=$(sed -n 's/^\.so //p' "$page")
	[ -z "$target" ] || page=docs/man/$target
	grep -q " $err $page\$" "$scratch/errors" ||
		{ echo "$page: ERRORS of $fn lack $err, which the header documents"; rc=1; }
done < <(awk -f "$here/headers.awk" hal/hal.h hal/ext/*.h hal/npu.h | grep '^documents ')

comm -23 "$scratch/promised" "$scratch/tested" >"$scratch/bare"
if comm -23 "$scratch/bare" "$scratch/untested" | grep .; then
	echo "(above) in ERRORS, without a case in tests/negative"
	rc=1
fi
if comm -13 "$scratch/bare" "$scratch/untested" | grep .; then
	echo "(above) in untested.txt, but tested or in no ERRORS: remove it there"
	rc=1
fi
if uniq -d "$scratch/listed" | grep .; then
	echo "(above) twice in untested.txt"
	rc=1
fi
echo "figure api.errnos_without_test $(wc -l <"$scratch/bare")"
exit $rc

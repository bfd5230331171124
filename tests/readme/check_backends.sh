#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# check_backends.sh HALCTL PAGE README: compare the table of PAGE, docs/backends.md, with what the
# backends report.  A row of dashes there is a device that a machine may lack: its description is
# compared, the other columns are not.  The README's table has a row for each of these backends.
# check_backends.sh --stand-ins HALCTL PAGE: compare PAGE's table of the fake drivers with what the
# backends report on those that the environment names.
set -euo pipefail
cd "$(mktemp -d)"

if [ "$1" = --stand-ins ]; then
	written=$(sed -n '/^<!-- .*, on stand-ins -->$/,/^<!-- end -->$/{/^<!--/d;p;}' "$3")
	said=$("$2" backends --markdown | grep -E '^\| (backend |`.*stand-in)|^\|-')
	if ! diff <(echo "$written") <(echo "$said"); then
		echo "< $3, > halctl backends --markdown, on stand-ins"
		exit 1
	fi
	exit 0
fi

written=$(sed -n '/^<!-- halctl backends --markdown -->$/,/^<!-- end -->$/{/^<!--/d;p;}' "$2")
[ -n "$written" ] || { echo "no table in $2"; exit 1; }
said=$("$1" backends --markdown)
absent=$(sed -nE 's/^(\| `[^|]*\|[^|]*\|)( - \|)+$/\1/p' <<<"$written")
while IFS= read -r row; do
	[ -n "$row" ] || continue
	said=$(awk -v row="$row" -v dashes=" - | - | - | - | - | - |" \
		'index($0, row) == 1 { $0 = row dashes } { print }' <<<"$said")
done <<<"$absent"
if ! diff <(echo "$written") <(echo "$said"); then
	echo "< $2, > halctl backends --markdown"
	exit 1
fi
names() {
	sed -nE 's/^\| (`[a-z]+`) \|.*/\1/p' "$@" | sort
}
if ! diff <(names "$3") <(names <<<"$said"); then
	echo "< backends in $3, > halctl backends --markdown"
	exit 1
fi

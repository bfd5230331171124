#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# check_state.sh SOURCE_DIR: each identifier that docs/state.md quotes is a word of core/ or hal/,
# comments not counted.  A name followed by (FILE.c) is in that file of core/, too.  Names in the
# columns "set by" and "cleared by" are functions.
set -euo pipefail
cd "$1"
page=docs/state.md
rc=0 count=0 names=0 setters=0

code() { # code FILE...: the files without their comments
	cat "$@" | sed -zE 's:/\*([^*]|\*+[^*/])*\*+/: :g'
}
has() { # has NAME FILE
	grep -qwF -e "$1" "$2"
}
dir=$(mktemp -d)
trap 'rm -r "$dir"' EXIT
code core/*/*.[ch] hal/*.h >"$dir/all"

while IFS= read -r name; do
	case $name in
	coverage | accelhal*_checked | libaccelhal | docs_state) continue ;; # of the build
	*/*) [ -e "$name" ] || { echo "$page: no such file: $name"; rc=1; } ;;
	*.c) compgen -G "core/*/$name" >/dev/null || { echo "$page: no such file: $name"; rc=1; } ;;
	'struct '*) has "$name {" "$dir/all" || { echo "$page: core and hal have no $name"; rc=1; } ;;
	*' '*) continue ;;
	*)
		for word in ${name//->/ }; do
			count=$((count + 1))
			has "${word#-}" "$dir/all" ||
				{ echo "$page: core and hal have no $word"; rc=1; }
		done
		;;
	esac
done < <(grep -oE '`[^`]+`' $page | tr -d '`' | sort -u)

while IFS='|' read -r name files; do
	for file in ${files//,/ }; do
		names=$((names + 1))
		code core/*/"$file" >"$dir/file"
		has "$name" "$dir/file" ||
			{ echo "$page: core/*/$file has no $name"; rc=1; }
	done
done < <(grep -oE '`[a-z_]+` \([a-z_]+\.c(, [a-z_]+\.c)*\)' $page |
	sed -E 's/`(.*)` \((.*)\)/\1|\2/' | sort -u)

grep -ohE '^([A-Za-z_][A-Za-z0-9_ *]*[ *])?[a-z0-9_]+\(' "$dir/all" |
	grep -oE '[a-z0-9_]+\($' | tr -d '(' | sort -u >"$dir/functions"
while IFS= read -r name; do
	setters=$((setters + 1))
	grep -qxF -e "$name" "$dir/functions" || {
		echo "$page: $name sets or clears a state, but is no function"
		rc=1
	}
done < <(awk -F'|' '!/^[|]/ { header = 0; next }
	!header { header = 1; delete by; for (i = 1; i <= NF; i++) by[i] = $i ~ /(set|cleared) by/ }
	{ for (i in by) if (by[i]) print $i }' $page | grep -oE '`[^`]+`' | tr -d '`' | sort -u)

if [ $count -lt 150 ] || [ $names -lt 30 ] || [ $setters -lt 60 ]; then
	echo "$page: only $count words, $names names with a file and $setters functions"
	rc=1
fi
exit $rc

#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# check_quotes.sh SOURCE_DIR: each block of docs/ below a line "<!-- quoted from FILE -->" is in
# FILE, whole lines in that order.  Each block of C in docs/tutorial.md has such a line.
set -euo pipefail
cd "$1"
rc=0 count=0

check() { # check PAGE LINE FILE BLOCK
	if [ -z "$3" ]; then
		[ "$1" = docs/tutorial.md ] && { echo "$1:$2: block of C without its file"; rc=1; }
		return 0
	fi
	count=$((count + 1))
	if [ ! -e "$3" ]; then
		echo "$1:$2: no such file: $3"
		rc=1
	elif [[ $'\n'$(<"$3")$'\n' != *$'\n'"$4"* ]]; then
		echo "$1:$2: this block is not in $3"
		rc=1
	fi
}

for page in docs/*.md; do
	number=0 file="" block="" inside=no
	mapfile -t lines <"$page"
	for line in "${lines[@]}"; do
		number=$((number + 1))
		case $inside,$line in
		no,'<!-- quoted from '*' -->')
			file=${line#'<!-- quoted from '}
			file=${file%' -->'}
			;;
		no,'```'*)
			inside=other begin=$number block=""
			[ -n "$file" ] || [ "$line" = '```c' ] && inside=quote
			;;
		quote,'```')
			check "$page" "$begin" "$file" "$block"
			inside=no file=""
			;;
		other,'```') inside=no ;;
		quote,*) block+=$line$'\n' ;;
		no,*) file="" ;;
		esac
	done
done
[ $count -ge 10 ] || { echo "only $count quoted blocks found"; rc=1; }
exit $rc

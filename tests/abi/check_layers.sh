#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# check_layers.sh SOURCE_DIR: who may include whom.
#   core -> hal/, lib/ and its own rooms; it names no vendor
#   lib -> hal/ and itself
#   policies/X -> hal/policy.h and nothing else of this tree
#   backends/X -> hal/, npu-rtl (npu), its own files
#   tools, examples, npuc -> hal/, lib/ and their own files
# check_layers.sh --circles SOURCE_DIR: prints "figure house.circles N": files of core, lib, hal
# and each backend that include themselves by way of others.  As notes, the same of X.c and X.h
# taken as one.
set -euo pipefail

# Lines "FROM TO" of the files of this tree that include one another, by their paths.
file_arrows() {
	grep -HE '^#[ \t]*include [<"]' core/*/*.[ch] lib/*.[ch] hal/*.h backends/*/*.[ch] |
		sed -E 's/^([^:]*):#[ \t]*include [<"]([^">]*)[">].*/\1 \2/' |
		while read -r from to; do
			for at in "$to" "core/$to" "$(dirname "$from")/$to"; do
				if [ -f "$at" ]; then
					echo "$from $at"
					break
				fi
			done
		done
}

# Of lines "FROM TO": each FROM that reaches itself, with the way.
circles() {
	awk '
		$1 != $2 && !(($1, $2) in seen) { seen[$1, $2]; to[$1] = to[$1] " " $2 }
		function search(at, way, list, n, i) {
			n = split(to[at], list, " ")
			for (i = 1; i <= n; i++) {
				if (list[i] == start) {
					print way " -> " start
					return 1
				}
				if (list[i] in been)
					continue
				been[list[i]]
				if (search(list[i], way " -> " list[i]))
					return 1
			}
			return 0
		}
		END {
			for (start in to) {
				split("", been)
				search(start, start)
			}
		}'
}

if [ "${1:-}" = --circles ]; then
	cd "$2"
	arrows=$(file_arrows)
	[ "$(wc -l <<<"$arrows")" -gt 100 ] || { echo "includes are not found in $2"; exit 1; }
	found=$(circles <<<"$arrows" | sort)
	[ -z "$found" ] || echo "$found"
	# No error: X.c and X.h taken as one, those that need one another.
	sed -E 's/\.[ch]( |$)/\1/g' <<<"$arrows" | circles | sort | sed 's/^/note: /'
	echo "figure house.circles $(grep -c . <<<"$found" || true)"
	[ -z "$found" ]
	exit
fi

cd "$1"
rc=0

refuse() { # refuse WHY PATTERN FILE...
	local why=$1 pattern=$2
	shift 2
	if grep -nE "$pattern" "$@" /dev/null; then
		echo "^ $why"
		rc=1
	fi
}

shopt -s nullglob globstar
core=(core/**/*.[ch]) backends=(backends/**/*.[ch]) policies=(policies/*.[ch])
lib=(lib/*.[ch]) users=(tools/**/*.[ch] examples/**/*.[ch] npuc/*.[ch])

[ ${#core[@]} -gt 0 ] && [ ${#lib[@]} -gt 0 ] && [ ${#policies[@]} -gt 0 ] &&
	[ ${#backends[@]} -gt 0 ] || { echo "no sources in $1"; exit 1; }
refuse "lib includes its own headers and hal/" '^#[ \t]*include "([^l]|l[^i]|li[^b]|lib[^/])' "${lib[@]}"
refuse "a backend includes a header of the core" '^#include [<"](\.\./)*core/' "${backends[@]}"
for folder in backends/*/; do
	name=$(basename "$folder")
	for other in backends/*/; do
		[ "$other" = "$folder" ] && continue
		refuse "a backend includes another one's header" \
			"^#include [<\"][./a-z-]*$(basename "$other")/" "$folder"*.[ch]
	done
	vendor=$name
	[ "$name" = ref ] || refuse "the core names the $name backend" \
		"\b${vendor}_|\"${vendor}[\":]|<hal/${vendor}\.h>" "${core[@]}"
done
refuse "the core includes a backend's header" '^#include [<"](\.\./)*backends/' "${core[@]}"
for file in "${policies[@]}"; do
	refuse "a policy sees only hal/policy.h" '^#include "' "$file"
	refuse "a policy sees only hal/policy.h" '^#include <hal/(hal|backend|npu|ref)\.h>' "$file"
done
refuse "tools, examples and npuc use the public headers and lib/" \
	'^#include [<"](\.\./)*(core|backends)/' "${users[@]}"
exit $rc

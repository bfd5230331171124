#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# overhead.sh BENCH [AT_MOST]: instructions of one submit that are the backend's own, above
# those of a program that makes the same calls of the loader by hand.  Both are counted
# without what happens inside the loader.  Needs valgrind and debug information.
set -euo pipefail
bench=$1 limit=${2:-0}
n=2000
out=$(mktemp)
trap 'rm -f "$out"' EXIT

# own FUNCTION FILES ARGUMENT...: instructions inside FUNCTION in files that match FILES.
# Self cost by file: cost lines below fl=, fi= or fe=; the line after calls= is the callee's.
# A name is given once, then its number stands for it.
own() {
	local function=$1 files=$2
	shift 2
	valgrind --tool=callgrind --callgrind-out-file="$out" --collect-atstart=no \
		--toggle-collect="$function" "$bench" $n "$@" >&2
	awk -v files="$files" '
		function name(s,   id, text) {
			id = s; sub(/^[a-z]+=/, "", id)
			text = id; sub(/^\([0-9]+\) ?/, "", text); sub(/\).*/, ")", id)
			if (text != "") names[id] = text
			return names[id]
		}
		/^(fl|fi|fe)=/ { file = name($0); next }
		/^cfi=|^cfl=/ { name($0); next }
		/^calls=/ { skip = 1; next }
		/^[+*0-9-]/ { if (skip) { skip = 0; next }
			if (file ~ files) own += $2 }
		END { print own + 0 }' "$out"
}

ours=$(own lz_submit 'backends/levelzero/')
bare=$(own 'bare_submit*' 'bench_submit\.c$' bare)
[ "$ours" -gt 0 ] && [ "$bare" -gt 0 ] || { echo "nothing was seen: $ours, $bare"; exit 1; }
echo "lz_submit $((ours / n)), by hand $((bare / n))"
echo "figure levelzero.submit.overhead_instructions $(((ours - bare) / n))"
[ "$limit" = 0 ] || [ $(((ours - bare) / n)) -lt "$limit" ]

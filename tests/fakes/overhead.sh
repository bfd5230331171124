#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# overhead.sh BACKEND FUNCTIONS BENCH [AT_MOST [FIGURE]]: instructions of one submit that are the
# backend's own, in FUNCTIONS (FUNCTION,FUNCTION...), above those of a program that makes the
# same calls of the vendor's library by hand (bare_submit of BENCH).  Both are counted without
# what happens inside that library.  Needs valgrind and debug information.
# With AT_MOST recorded: of a command of eight that were recorded, given one by one and as a
# graph, and the calls of the library for the eight.
set -euo pipefail
backend=$1 functions=$2 bench=$3 limit=${4:-0} figure=${5:-$1}
n=2000
out=$(mktemp)
trap 'rm -f "$out"' EXIT

# own FUNCTIONS FILES ARGUMENT...: instructions inside FUNCTIONS in files that match FILES.
# Self cost by file: cost lines below fl=, fi= or fe=; the line after calls= is the callee's.
# A name is given once, then its number stands for it.
own() {
	local files=$2 toggles=()
	mapfile -t toggles < <(printf -- '--toggle-collect=%s\n' ${1//,/ })
	shift 2
	valgrind --tool=callgrind --callgrind-out-file="$out" --collect-atstart=no \
		"${toggles[@]}" "$bench" $n "$@" >&2
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

if [ "$limit" = recorded ]; then
	n=500
	for mode in eight graphs; do
		ours=$(own "$functions" "backends/($backend|stream)/" $mode)
		calls=$("$bench" 2 $mode | awk '/calls of the driver/ { print $1 }')
		name=$([ $mode = eight ] && echo recorded_8 || echo graph_8)
		[ "$ours" -gt 0 ] && [ "$calls" -gt 0 ] || { echo "nothing was seen"; exit 1; }
		echo "figure $backend.submit.$name.instructions $((ours / n / 8))"
		echo "figure $backend.submit.$name.calls $calls"
	done
	exit
fi
ours=$(own "$functions" "backends/($backend|stream)/")
bare=$(own 'bare_submit*' 'bench_submit\.c$' bare)
[ "$ours" -gt 0 ] && [ "$bare" -gt 0 ] || { echo "nothing was seen: $ours, $bare"; exit 1; }
echo "$functions $((ours / n)), by hand $((bare / n))"
echo "figure $figure.submit.overhead_instructions $(((ours - bare) / n))"
[ "$limit" = 0 ] || [ $(((ours - bare) / n)) -lt "$limit" ]

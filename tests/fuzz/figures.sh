#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# figures.sh [RUNS [CHUNK]]: each fuzz target beside this file over its seeds, their truncations
# and RUNS random changes, the same ones every time; prints fuzz.executions and fuzz.crashes.
# The random ones come CHUNK at a time; a chunk that does not end well is a crash, and is not
# counted among the executions.  Prints what to run to see it.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
runs=${1:-200000}
chunk=${2:-5000}
executions=0
crashes=0
found=0
out=$(mktemp)
trap 'rm -f "$out"' EXIT

once() { # once TARGET ARGUMENTS...
	local rc=0 n
	timeout 600 "$@" >"$out" 2>&1 </dev/null || rc=$?
	n=$(sed -nE 's/^([0-9]+) inputs from .*/\1/p' "$out")
	if [ "$rc" -ne 0 ] || [ -z "$n" ]; then
		crashes=$((crashes + 1))
		echo "ended with $rc: $*"
		tail -n 5 "$out"
		return
	fi
	total=$((total + n))
}

for target in "$here"/fuzz_*; do
	[ -f "$target" ] && [ -x "$target" ] || continue
	found=$((found + 1))
	total=0
	once "$target" 0
	for ((seed = 1; seed <= runs; seed += chunk)); do
		once "$target" "$chunk" "$seed"
	done
	echo "$(basename "$target"): $total executions"
	executions=$((executions + total))
done
[ "$found" -gt 0 ] || { echo "no fuzz target with a driver in $here"; exit 77; }
echo "figure fuzz.executions $executions"
echo "figure fuzz.crashes $crashes"

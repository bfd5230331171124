#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# test_trace.sh MAKE_TRACE TARGET: what hal_trace_start writes is as the format wants it and
# tells what was done; and that writing it changes nothing of that.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
make=$1 target=$2
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
rc=0

$make "$target" "$dir/trace.json" >"$dir/done"
"$here/check_trace.py" "$dir/trace.json" >"$dir/told"
"$here/check_trace.py" --mutants "$dir/trace.json" || rc=1
while read -r line; do
	case $line in
	ran*)
		# Under a real clock it may have run once more.
		[[ $target == *clock=real* && $line == *spin* ]] && line=spin
		grep -q -- "$line\$" "$dir/told" || { echo "not in the trace: $line"; rc=1; }
		;;
	macs*)
		read -r _ macs name <<<"$line"
		# Each is rounded to a thousandth.
		awk -v n="$name: units computing" -v m="$macs" \
			'index($0, n) { found = $2 > 0.999 * m && $2 < 1.001 * m }
			END { exit !found }' "$dir/told" ||
			{ echo "units computing of $name do not add up to $macs"; rc=1; }
		;;
	esac
done <"$dir/done"
# One is there from the beginning, one moves, one takes the place of that.
[ "$(grep -c '^owned 1 \(first\|second\|third\) ' "$dir/told")" -eq 4 ] || rc=1
[ "$(grep -c '^ran' "$dir/done")" -eq 6 ] || rc=1
if [[ $target == ref* && $target != *clock=real* ]]; then
	$make "$target" - >"$dir/untraced"
	diff "$dir/untraced" "$dir/done" || { echo "with a trace it runs otherwise"; rc=1; }
fi
if [[ $target == npu* ]]; then
	for i in 0 1 2 3; do
		grep -q "^area [1-9].* channel $i bytes/ns" "$dir/told" ||
			{ echo "no bytes of channel $i"; rc=1; }
	done
fi
[ $rc -eq 0 ] || cat "$dir/done" "$dir/told"
exit $rc

#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run_example.sh EXPECTED PROGRAM [ARGS...]: runs it; each line it prints must match that line
# of EXPECTED, an extended regular expression, and there must be as many.
set -uo pipefail
mapfile -t expected <"$1"
shift
output=$("$@") || { echo "$*: exit status $?" >&2; exit 1; }
mapfile -t got <<<"$output"
printf '%s\n' "${got[@]}"
[ ${#got[@]} -eq ${#expected[@]} ] || {
	echo "$*: ${#got[@]} lines, not ${#expected[@]}" >&2
	exit 1
}
for i in "${!expected[@]}"; do
	[[ ${got[i]} =~ ^(${expected[i]})$ ]] || {
		echo "$*: line $((i + 1)) is not: ${expected[i]}" >&2
		exit 1
	}
done

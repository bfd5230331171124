#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run_example.sh EXPECTED PROGRAM... NAME: it ends well and prints what the page says; EXPECTED
# "-": it may print anything.
set -uo pipefail
for name in $(env | sed -n 's/^\(HAL_[A-Z0-9_]*\)=.*/\1/p'); do
	[ "$name" = HAL_NPU_MODELS ] || unset "$name"
done
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
expected=$1
shift
cd "$dir" || exit 1
"$@" >out </dev/null || { echo "${*: -1}: exit status $?"; exit 1; }
cat out
[ "$expected" = - ] || diff "$expected" out || { echo "< in the page, > printed"; exit 1; }

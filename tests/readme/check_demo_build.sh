#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# check_demo_build.sh BUILD_DIR: make demo builds nothing that only tests need.
set -euo pipefail
[ -e "$1/build.ninja" ] || { echo "built by another tool than ninja: make demo uses ninja"; exit 77; }
commands=$(ninja -C "$1" -t commands hal_demo)
[ "$(wc -l <<<"$commands")" -ge 50 ] || { echo "only $(wc -l <<<"$commands") steps"; exit 1; }
if grep -E ' -o [^ ]*(tests/|halbench|test_|examples/|asserted|cmocka)' <<<"$commands"; then
	echo "(above) built by make demo"
	exit 1
fi

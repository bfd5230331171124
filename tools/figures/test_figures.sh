#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# test_figures.sh DOCS_FIGURES_MD BUILD_DIR: the names explained there are those that figures makes,
# each once; and the scripts that make them can be run.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)

explained=$(sed -nE 's/^\| `([A-Za-z0-9_.]+)` \|.*/\1/p' "$1" | sort)
made=$("$here/figures" --names)
[ -n "$made" ] || { echo "figures.list has no name"; exit 1; }
if [ "$(uniq -d <<<"$made")" ]; then
	echo "declared twice: $(uniq -d <<<"$made")"
	exit 1
fi
if ! diff <(echo "$explained") <(echo "$made"); then
	echo "< explained in $1, > made by figures.list"
	exit 1
fi
for script in $(grep -oE '(: |\t)tests[^ ]*\.sh' "$here/figures.list" | sed 's/.*tests/tests/' | sort -u); do
	[ ! -e "$2/$script" ] || [ -x "$2/$script" ] || { echo "$2/$script cannot be run"; exit 1; }
done

#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# check_links.sh SOURCE_DIR: each relative link of README, CONTRIBUTING and docs leads to a file.
set -euo pipefail
cd "$1"
rc=0
for page in README.md CONTRIBUTING.md docs/*.md; do
	while IFS= read -r link; do
		[ -e "$(dirname "$page")/$link" ] || { echo "$page: no such file: $link"; rc=1; }
	done < <(grep -oE '\]\([^)#:]+' "$page" | sed 's/^](//')
done
exit $rc

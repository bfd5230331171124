#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# check_lint.sh MAN_DIR: mandoc has nothing to say about the pages.
set -uo pipefail
cd "$1" || exit 1
if ! command -v mandoc >/dev/null; then
	echo "mandoc is not installed: make setup"
	exit 1
fi
pages=$(grep -L '^\.so ' man?/*.[1-9])
[ "$(wc -w <<<"$pages")" -ge 30 ] || { echo "only these pages were found: $pages"; exit 1; }
# What a page is dated against is this machine's clock, which is its own business.
# shellcheck disable=SC2086 # words
warnings=$(mandoc -Tlint -Wwarning $pages | grep -v 'date in the future')
if [ -n "$warnings" ]; then
	echo "$warnings"
	exit 1
fi
echo "$(wc -w <<<"$pages") pages"

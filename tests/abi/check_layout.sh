#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# check_layout.sh LAYOUT_PROGRAM HEADER_DIR: sizes and offsets of the public structs are
# those of layout.txt, and every public struct is among them.
set -euo pipefail
here=$(dirname "$0")

declared=$(sed -n 's/^struct \(hal_[a-z0-9_]*\) {$/\1/p' "$2"/*.h | sort)
[ -n "$declared" ] || { echo "no struct found in $2"; exit 1; }
listed=$(sed -n 's/^struct \(hal_[a-z0-9_]*\) .*/\1/p' "$here/layout.txt" | sort)
if ! diff <(echo "$listed") <(echo "$declared"); then
	echo "layout.c and the headers do not name the same structs (< listed, > declared)"
	exit 1
fi
if ! diff "$here/layout.txt" <("$1"); then
	echo "a public struct has changed (< frozen, > now); if that is meant, it is an ABI"
	echo "change: say so in the commit and write layout.txt anew with $1"
	exit 1
fi

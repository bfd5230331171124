#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# check_layout.sh SOURCE_DIR LAYOUT_PROGRAM...: sizes and offsets of the public structs are
# those of layout.txt, and every public struct is among them.
set -euo pipefail
here=$(dirname "$0")
source=$1
shift

declared=$(sed -n 's/^struct \([a-z0-9_]*\) {$/\1/p' "$source"/hal/*.h "$source"/hal/ext/*.h \
	"$source"/npuc/npuc.h | sort)
[ -n "$declared" ] || { echo "no struct found in $source"; exit 1; }
listed=$(sed -n 's/^struct \([a-z0-9_]*\) .*/\1/p' "$here/layout.txt" | sort)
if ! diff <(echo "$listed") <(echo "$declared"); then
	echo "layout.c and the headers do not name the same structs (< listed, > declared)"
	exit 1
fi
if ! diff "$here/layout.txt" <("$@"); then
	echo "a public struct has changed (< frozen, > now); if that is meant, it is an ABI"
	echo "change: say so in the commit and write layout.txt anew with $*"
	exit 1
fi

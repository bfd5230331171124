#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# test_readme.sh SOURCE_DIR BUILD_DIR SCRATCH LIBDIR: the commands of docs/installing.md's section
# Install, below DESTDIR and with what BUILD_DIR has built; the README's program is built
# against that by the README's line.  test_readme_full.sh does all of it in a system of its own.
set -euo pipefail
source=$1 build=$2 scratch=$3 libdir=$4
unset PREFIX MAKEFLAGS MAKELEVEL
exec 9>"$scratch.lock" && flock 9 # two runs of ctest in one build folder
rm -rf "$scratch"
mkdir -p "$scratch"
cd "$source"

export DESTDIR=$scratch/root
count=0
while IFS= read -r command; do
	count=$((count + 1))
	prefix=/usr/local
	[[ $command != *PREFIX=* ]] || prefix=${command#*PREFIX=}
	# shellcheck disable=SC2086 # words
	make -s -o release "RELEASE=$build" ${command#make } >"$scratch/log" 2>&1 ||
		{ cat "$scratch/log"; echo "$command"; exit 1; }
	[ -x "$DESTDIR$prefix/bin/halctl" ] || { echo "$command: no $prefix/bin/halctl"; exit 1; }
done < <(sed -n '/^## Install/,/^## /s/^    \(make install[^#]*\).*/\1/p' docs/installing.md | sed "s/ *$//")
[ $count -eq 2 ] || { echo "docs/installing.md: $count lines with make install, not 2"; exit 1; }

sed -n '/^```c$/,/^```$/{/^```/d;p;}' README.md >"$scratch/first.c"
line=$(sed -n 's/^    \(cc first.c .*\)/\1/p' README.md)
[ -n "$line" ] || { echo "README.md: no line that builds first.c"; exit 1; }
said=$(
	cd "$scratch"
	export PKG_CONFIG_PATH=$DESTDIR/usr/local/$libdir/pkgconfig
	export LD_LIBRARY_PATH=$DESTDIR/usr/local/$libdir
	eval "$line"
)
[[ $said =~ ^42\ after\ [0-9]+\ cycles$ ]] || { echo "the README's program says: $said"; exit 1; }

for prefix in /usr/local "$prefix"; do
	make -s uninstall "PREFIX=$prefix" >/dev/null
done
left=$(find "$DESTDIR" ! -type d)
[ -z "$left" ] || { echo "left by make uninstall: $left"; exit 1; }

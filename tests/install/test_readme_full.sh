#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# test_readme_full.sh MODEL_DIR SCRATCH: in a copy of this machine's system, the section Install of
# docs/installing.md, with a build from nothing: each `make install` of it, then what that says is to
# do; the README's program is built and run as it says, and all is uninstalled.  Likewise the
# commands of docs/adding-a-backend.md.  test_readme.sh has what needs no build.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
if [ "$1" != --in ]; then
	models=$(cd "$1" && pwd) scratch=$2
	rm -rf "$scratch"
	mkdir -p "$scratch/from/source" "$scratch/from/models"
	(cd "$here/../.." && tar -c --exclude=./build --exclude=./.git .) | tar -x -C "$scratch/from/source"
	# What lies beside a checkout is nobody's business.
	mkdir -p "$scratch/from/beside/data/mlperf-tiny" "$scratch/from/beside/data/scale-sim"
	cp "$models"/libnpu_{16x16,8x8}x4x8.so "$scratch/from/models"
	exec "$here/overlay.sh" "$scratch" "$scratch/from" \
		bash /tmp/from/source/tests/install/test_readme_full.sh --in
fi

for name in $(env | sed -n 's/^\(HAL_[A-Z0-9_]*\|LD_LIBRARY_PATH\|PKG_CONFIG_PATH\)=.*/\1/p'); do
	unset "$name"
done
export HAL_MODEL_DIR=/tmp/from/models # they take minutes, and are the same
export HAL_SETUP_DRY_RUN=1            # what is missing here is not needed to install
cd /tmp/from/source
sudo() {
	"$@"
}
# program: builds and runs the README's program by the README's line.
program() {
	local line said
	rm -rf /tmp/first
	mkdir /tmp/first
	sed -n '/^```c$/,/^```$/{/^```/d;p;}' README.md >/tmp/first/first.c
	line=$(sed -n 's/^    \(cc first.c .*\)/\1/p' README.md)
	[ -n "$line" ] || { echo "README.md: no line that builds first.c"; exit 1; }
	cd /tmp/first
	said=$(eval "$line")
	[[ $said =~ ^42\ after\ [0-9]+\ cycles$ ]] || { echo "the README's program says: $said"; exit 1; }
}

before=$(find /usr/local | sort)
count=0
while IFS= read -r command; do
	count=$((count + 1))
	prefix=/usr/local
	[[ $command != *PREFIX=* ]] || prefix=${command#*PREFIX=}
	(eval "$command") >/tmp/log 2>&1 || { cat /tmp/log; echo "$command: exit status $?"; exit 1; }
	if grep -q '/beside' build/release/CMakeCache.txt; then
		echo "a folder beside the checkout was picked up"
		exit 1
	fi
	(
		eval "$(sed -n 's/^    //p' /tmp/log)" # what is left to do
		program
		if [ "$prefix" = /usr/local ]; then
			[ "$(command -v halctl)" = /usr/local/bin/halctl ]
		fi
		"$prefix"/bin/halctl info 'npu:0?rows=8&cols=8' >/dev/null
		"$prefix"/bin/halrun --version >/dev/null
		"$prefix"/bin/npuc --version >/dev/null
	)
	if [ $prefix != /usr/local ]; then
		empty=$(find "$prefix" -type d -empty)
		[ -z "$empty" ] || { echo "empty: $empty"; exit 1; }
		lines=0
		while IFS= read -r line; do
			lines=$((lines + 1))
			(eval "$line") >/tmp/log 2>&1 || { cat /tmp/log; echo "$line"; exit 1; }
		done < <(sed -n "s/^    \(.*PREFIX.*\)/\1/p" docs/adding-a-backend.md |
			sed "s,=PREFIX ,=$prefix ,; s,PREFIX/,$prefix/,g")
		[ $lines -ge 2 ] || { echo "docs/adding-a-backend.md: $lines lines with PREFIX"; exit 1; }
		grep -q '^skeleton:0 ' /tmp/log || { cat /tmp/log; echo "no skeleton:0"; exit 1; }
	fi
	make uninstall "PREFIX=$prefix" >/tmp/log 2>&1 || { cat /tmp/log; exit 1; }
	[ "$prefix" = /usr/local ] || [ -z "$(ls -A "$prefix")" ] || { find "$prefix"; exit 1; }
done < <(sed -n '/^## Install/,/^## /s/^    \(make install[^#]*\).*/\1/p' docs/installing.md | sed "s/ *$//")
[ $count -eq 2 ] || { echo "docs/installing.md: $count lines with make install, not 2"; exit 1; }
after=$(find /usr/local ! -type d | sort)
extra=$(comm -13 <(echo "$before") <(echo "$after"))
[ -z "$extra" ] || { echo "left by make uninstall: $extra"; exit 1; }
[ -z "$(find /usr/local -name '*accelhal*')" ] || { echo "make uninstall leaves folders"; exit 1; }

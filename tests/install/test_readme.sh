#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# test_readme.sh MODEL_DIR SCRATCH: in a copy of this machine's system, the README's row on
# installing and docs/adding-a-backend.md, as written: into the default prefix, where the
# README's program is then built as it says; and into one that is clean.
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
		bash /tmp/from/source/tests/install/test_readme.sh --in
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
# as_written COMMAND: it has to be in the README's row.
as_written() {
	grep -qF "| install | " README.md && grep -F "| install | " README.md | grep -qF "\`$1\`" ||
		{ echo "README.md, install: no \`$1\`"; exit 1; }
	(eval "$1") >/tmp/log 2>&1 || { cat /tmp/log; echo "$1: exit status $?"; exit 1; }
}

before=$(find /usr/local | sort)
as_written 'make install'
if grep -q '/beside' build/release/CMakeCache.txt; then
	echo "a folder beside the checkout was picked up"
	exit 1
fi
as_written 'sudo ldconfig'
(
	mkdir /tmp/first
	sed -n '/^```c$/,/^```$/{/^```/d;p;}' README.md >/tmp/first/first.c
	line=$(sed -n 's/^    \(cc first.c .*\)/\1/p' README.md)
	[ -n "$line" ] || { echo "README.md: no line that builds first.c"; exit 1; }
	cd /tmp/first
	said=$(eval "$line")
	[[ $said =~ ^42\ after\ [0-9]+\ cycles$ ]] || { echo "the README's program says: $said"; exit 1; }
	[ "$(command -v halctl)" = /usr/local/bin/halctl ]
	halctl info 'npu:0?rows=8&cols=8' >/dev/null
	halrun --version >/dev/null
	npuc --version >/dev/null
)
as_written 'make uninstall'
after=$(find /usr/local ! -type d | sort)
extra=$(comm -13 <(echo "$before") <(echo "$after"))
[ -z "$extra" ] || { echo "left by make uninstall: $extra"; exit 1; }
[ -z "$(find /usr/local -name '*accelhal*')" ] || { echo "make uninstall leaves folders"; exit 1; }

mkdir /tmp/PREFIX
make install PREFIX=/tmp/PREFIX >/tmp/log 2>&1 || { cat /tmp/log; exit 1; }
[ -z "$(find /tmp/PREFIX -type d -empty)" ] || { find /tmp/PREFIX -type d -empty; echo "(above) empty"; exit 1; }
count=0
while IFS= read -r line; do
	count=$((count + 1))
	(eval "${line//PREFIX\//\/tmp\/PREFIX\/}") >/tmp/log 2>&1 || { cat /tmp/log; echo "$line"; exit 1; }
done < <(sed -n 's/^    \(.*PREFIX.*\)/\1/p' docs/adding-a-backend.md | sed 's,=PREFIX ,=/tmp/PREFIX ,')
[ $count -ge 2 ] || { echo "docs/adding-a-backend.md: $count lines with PREFIX"; exit 1; }
grep -q '^skeleton:0 ' /tmp/log || { cat /tmp/log; echo "no skeleton:0"; exit 1; }

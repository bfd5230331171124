#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# test_uninstall.sh SOURCE_DIR BUILD_DIR SCRATCH: `make install` and `make uninstall` with several
# prefixes, with DESTDIR, after a move, without rights; and what `make install` says is to do.
# The build is BUILD_DIR's: nothing is compiled.
set -euo pipefail
source=$1 build=$2 scratch=$3
unset DESTDIR PREFIX MAKEFLAGS MAKELEVEL
for name in $(env | sed -n 's/^\(HAL_[A-Z0-9_]*\|LD_LIBRARY_PATH\|[A-Z_]*PREFIX_PATH\|PKG_CONFIG_PATH\)=.*/\1/p'); do
	unset "$name"
done
exec 9>"$scratch.lock" && flock 9 # two runs of ctest in one build folder
rm -rf "$scratch"
mkdir -p "$scratch"
cd "$scratch"

# make_ TARGET VARIABLE=VALUE...: `release` counts as made.
make_() {
	make -s -C "$source" -o release "RELEASE=$build" "$@"
}
fail() {
	echo "$*"
	exit 1
}
# refused TEXT COMMAND...: fails and says TEXT.
refused() {
	local text=$1
	shift
	if "$@" >out 2>&1; then
		fail "$*: succeeds"
	fi
	# CMake breaks lines.
	[[ $(tr -s ' \n' ' ' <out) == *"$text"* ]] || { cat out; fail "$*: does not say: $text"; }
}

make_ install "PREFIX=$scratch/a" >said.a
make_ install "PREFIX=$scratch/b" >said.b
[ -x a/bin/halctl ] && [ -x b/bin/halctl ] || fail "halctl is not installed"
find b | sort >before.b

refused "nothing of accelhal is known to be installed below $scratch/c" \
	make_ uninstall "PREFIX=$scratch/c"
refused "PREFIX is empty" make_ install PREFIX=
refused "no PREFIX given" make_ uninstall PREFIX=

# a, not the one that was installed last; a file of somebody else stays, and its folder.
echo mine >a/include/hal/mine.h
make_ uninstall "PREFIX=$scratch/a" >/dev/null
[ "$(find a | sort | tr '\n' ' ')" = "a a/include a/include/hal a/include/hal/mine.h " ] ||
	{ find a; fail "(above) left, mine.h alone should be"; }
find b | sort | diff before.b - || fail "uninstall from a has changed b"
refused "nothing of accelhal is known" make_ uninstall "PREFIX=$scratch/a"

# Again over it: files of an older version go as well.  Moved, with a blank in its name.
touch b/lib-of-old
sed -i '1i lib-of-old' b/share/accelhal/install_manifest.txt
make_ install "PREFIX=$scratch/b" >/dev/null
mv b "b moved"
make_ uninstall "PREFIX=$scratch/b moved" >/dev/null
[ -z "$(ls -A "b moved")" ] || { find "b moved"; fail "(above) left in a moved tree"; }

# DESTDIR: both ways the same, and only there.
make_ install PREFIX=/usr/local "DESTDIR=$scratch/d" >said.d
[ -x d/usr/local/bin/halctl ] || fail "DESTDIR is not heeded"
grep -q "export\|ldconfig" said.d && { cat said.d; fail "advice for a staged install"; }
mkdir -p d/usr/local/lib/other
refused "nothing of accelhal is known" make_ uninstall PREFIX=/usr "DESTDIR=$scratch/d"
make_ uninstall PREFIX=/usr/local "DESTDIR=$scratch/d" >/dev/null
[ -z "$(find d ! -type d)" ] || { find d ! -type d; fail "(above) left below DESTDIR"; }
[ -z "$(find d -name '*hal*')" ] || { find d -name '*hal*'; fail "(above) folders left"; }
[ -d d/usr/local/bin ] && [ -d d/usr/local/lib/other ] || fail "folders of the system are gone"

# Without rights: nothing is removed, nothing half installed.
weak=()
[ "$(id -u)" -ne 0 ] || weak=(setpriv --bounding-set=-dac_override)
make_ install "PREFIX=$scratch/e" >/dev/null
find e | sort >before.e
chmod a-w e/bin
refused "$scratch/e/bin is not writable" \
	"${weak[@]}" make -s -C "$source" uninstall "PREFIX=$scratch/e"
find e | sort | diff before.e - || fail "uninstall without rights has removed something"
chmod u+w e/bin
mkdir f
chmod a-w f
refused "cmake --install $build --prefix '$scratch/f/g'" "${weak[@]}" \
	make -s -C "$source" -o release "RELEASE=$build" install "PREFIX=$scratch/f/g"
[ -z "$(ls -A f)" ] || fail "something is installed without rights"

# What a private prefix needs, as `make install` says it.
grep -q ldconfig said.a said.b && fail "ldconfig for a private prefix"
make_ install "PREFIX=$scratch/e" >said.e
advice=$(sed -n 's/^    //p' said.e)
[ "$(grep -c '^export ' <<<"$advice")" -eq 3 ] || { cat said.e; fail "not three exports"; }
cat >version.c <<'TEXT'
#include <hal/hal.h>
#include <stdio.h>
int main(void) { return printf("%x\n", hal_version()) < 0; }
TEXT
eval "$advice"
# shellcheck disable=SC2046 # flags are words
cc version.c $(pkg-config --cflags --libs accelhal) -o version
./version

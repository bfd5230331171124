#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# test_install.sh BUILD_DIR SCRATCH LIBDIR CC pkg-config|cmake: installs to SCRATCH/prefix,
# moves that tree elsewhere, builds a consumer against it one way or the other and runs it.
set -euo pipefail
build=$1 scratch=$2 libdir=$3 cc=$4 way=$5
here=$(cd "$(dirname "$0")" && pwd)

exec 9>"$scratch.lock" && flock 9 # two runs of ctest in one build folder
rm -rf "$scratch"
mkdir -p "$scratch"
cmake --install "$build" --prefix "$scratch/staged" >"$scratch/install.log"
mv "$scratch/staged" "$scratch/prefix" # nothing may depend on where it was installed
prefix=$scratch/prefix

for file in include/hal/hal.h include/hal/backend.h include/hal/npu.h bin/halctl \
	"$libdir/libaccelhal.so.0" share/doc/accelhal/LICENSE; do
	[ -e "$prefix/$file" ] || { echo "not installed: $file"; exit 1; }
done

case $way in
pkg-config)
	export PKG_CONFIG_PATH=$prefix/$libdir/pkgconfig
	# shellcheck disable=SC2046 # flags are words
	"$cc" -std=c11 -Wall -Wextra -Werror -o "$scratch/consumer" "$here/consumer.c" \
		$(pkg-config --cflags --libs accelhal)
	version=$(pkg-config --modversion accelhal)
	grep -q "^#define HAL_VERSION_MINOR ${version:2:1}$" "$prefix/include/hal/hal.h" ||
		{ echo "accelhal.pc says $version, hal.h does not"; exit 1; }
	;;
cmake)
	cmake -S "$here/package" -B "$scratch/build" -DCMAKE_PREFIX_PATH="$prefix" \
		-DCMAKE_C_COMPILER="$cc" -DCONSUMER_SOURCE="$here/consumer.c" >"$scratch/cmake.log"
	cmake --build "$scratch/build" >>"$scratch/cmake.log"
	cp "$scratch/build/consumer" "$scratch/consumer"
	;;
*)
	echo "no such way: $way"
	exit 2
	;;
esac

cd "$scratch"
export LD_LIBRARY_PATH=$prefix/$libdir
./consumer "$prefix"
unset LD_LIBRARY_PATH # programs find the library by themselves
grep -q '^npu:0 ' <<<"$("$prefix/bin/halctl" list)" ||
	{ echo "the installed halctl finds no npu:0"; "$prefix/bin/halctl" list; exit 1; }
[ -z "$(find "$prefix" -type d -empty)" ] || { find "$prefix" -type d -empty; echo "(above) empty"; exit 1; }

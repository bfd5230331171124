#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# test_npuc.sh BUILD_DIR SCRATCH LIBDIR CC TARGET: libnpuc in an installed and moved tree, used
# by pkg-config and by find_package: each program tells the installed image's digit.
set -euo pipefail
build=$1 scratch=$2 libdir=$3 cc=$4 target=$5
here=$(cd "$(dirname "$0")" && pwd)

exec 9>"$scratch.lock" && flock 9 # two runs of ctest in one build folder
rm -rf "$scratch"
mkdir -p "$scratch"
cmake --install "$build" --prefix "$scratch/staged" >"$scratch/install.log"
mv "$scratch/staged" "$scratch/prefix"
prefix=$scratch/prefix
digits=$prefix/share/accelhal/digits

export PKG_CONFIG_PATH=$prefix/$libdir/pkgconfig
# shellcheck disable=SC2046 # flags are words
"$cc" -std=c11 -Wall -Wextra -Werror -o "$scratch/by-pkg-config" "$here/consumer_npuc.c" \
	$(pkg-config --cflags --libs npuc)
cmake -S "$here/package" -B "$scratch/build" -DCMAKE_PREFIX_PATH="$prefix" \
	-DCMAKE_C_COMPILER="$cc" -DCONSUMER_SOURCE="$here/consumer_npuc.c" \
	-DCONSUMER_LIBRARY=accelhal::npuc >"$scratch/cmake.log"
cmake --build "$scratch/build" >>"$scratch/cmake.log"

cd "$scratch"
export LD_LIBRARY_PATH=$prefix/$libdir
for program in ./by-pkg-config ./build/consumer; do
	said=$("$program" "$target" "$digits/digits.tflite" "$digits/seven.npy")
	[ "$said" = "a 7" ] || { echo "$program says: $said"; exit 1; }
done

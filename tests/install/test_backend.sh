#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# test_backend.sh BUILD_DIR SCRATCH LIBDIR CC CONFORMANCE: installs to SCRATCH/prefix, builds the
# installed examples/backend_skeleton against that alone, loads it and lets the suite judge it.
set -euo pipefail
build=$1 scratch=$2 libdir=$3 cc=$4 conformance=$5

exec 9>"$scratch.lock" && flock 9 # two runs of ctest in one build folder
rm -rf "$scratch"
mkdir -p "$scratch"
cmake --install "$build" --prefix "$scratch/prefix" >"$scratch/install.log"
# A copy: nothing of this tree is near it.
cp -r "$scratch/prefix/share/doc/accelhal/examples/backend_skeleton" "$scratch/source"
cmake -S "$scratch/source" -B "$scratch/build" -DCMAKE_PREFIX_PATH="$scratch/prefix" \
	-DCMAKE_C_COMPILER="$cc" -DCMAKE_C_FLAGS=-Werror >"$scratch/cmake.log"
cmake --build "$scratch/build" >>"$scratch/cmake.log"

cd "$scratch"
halctl=$scratch/prefix/bin/halctl
export LD_LIBRARY_PATH=$scratch/prefix/$libdir
# Not through a pipe: grep -q leaves at its first match, and halctl would fail to write.
if grep -q '^skeleton' <<<"$("$halctl" list)"; then
	echo "the skeleton is there before it is loaded"
	exit 1
fi
export HAL_HAL_PLUGINS=$scratch/build/skeleton.so
grep -q '^skeleton:0 .*simulated' <<<"$("$halctl" list)" ||
	{ echo "the installed halctl does not find the plugin"; "$halctl" list; exit 1; }
grep -q 'backend.skeleton' <<<"$("$halctl" options)" ||
	{ echo "its option is not listed"; exit 1; }
exec "$conformance" --backend skeleton --image "$scratch/source/skeleton.image" \
	--expect "$scratch/source/skeleton.expect"

#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# test_installed.sh BUILD_DIR SCRATCH LIBDIR TEST: the delegate of an installed and moved tree finds
# the libraries beside it, and runs a network.
set -euo pipefail
build=$1 scratch=$2 libdir=$3 test=$4
exec 9>"$scratch.lock" && flock 9 # two runs of ctest in one build folder
rm -rf "$scratch"
mkdir -p "$scratch"
cmake --install "$build" --prefix "$scratch/staged" --component library >"$scratch/install.log"
mv "$scratch/staged" "$scratch/prefix" # nothing may depend on where it was installed
unset LD_LIBRARY_PATH
library=$scratch/prefix/$libdir/libaccelhal_tflite.so
runpath=$(readelf -d "$library" | sed -n 's/.*RUNPATH.*\[\(.*\)\]/\1/p')
[ "$runpath" = "\$ORIGIN" ] || { echo "RUNPATH is $runpath"; exit 1; }
needed=$(ldd "$library")
for name in libnpuc.so libaccelhal.so; do
	grep -q "$name.* => $scratch/prefix/$libdir/" <<<"$needed" ||
		{ echo "$needed"; echo "(above) $name is not the one beside the delegate"; exit 1; }
done
DELEGATE=$library CMOCKA_MESSAGE_OUTPUT=stdout "$test" network

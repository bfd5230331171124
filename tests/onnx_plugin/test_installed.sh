#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# test_installed.sh BUILD_DIR SCRATCH LIBDIR: the provider of an installed and moved tree finds the
# libraries beside it.
set -euo pipefail
build=$1 scratch=$2 libdir=$3
exec 9>"$scratch.lock" && flock 9 # two runs of ctest in one build folder
rm -rf "$scratch"
mkdir -p "$scratch"
cmake --install "$build" --prefix "$scratch/staged" --component library >"$scratch/install.log"
mv "$scratch/staged" "$scratch/prefix" # nothing may depend on where it was installed
unset LD_LIBRARY_PATH
library=$scratch/prefix/$libdir/libaccelhal_onnxruntime.so
runpath=$(readelf -d "$library" | sed -n 's/.*RUNPATH.*\[\(.*\)\]/\1/p')
[ "$runpath" = "\$ORIGIN" ] || { echo "RUNPATH is $runpath"; exit 1; }
for name in libnpuc.so libaccelhal.so; do
	ldd "$library" | grep -q "$name.* => $scratch/prefix/$libdir/" ||
		{ ldd "$library"; echo "(above) $name is not the one beside the provider"; exit 1; }
done

#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# test_docs.sh BUILD_DIR SCRATCH LIBDIR CC: of an installed and moved tree: no relative link of a
# document is dead; each example builds by pkg-config, and three run; the CMakeLists.txt of
# docs/installing.md builds the README's program.
set -euo pipefail
build=$1 scratch=$2 libdir=$3 cc=$4
run=$(cd "$(dirname "$0")/../../examples" && pwd)/run_example.sh
exec 9>"$scratch.lock" && flock 9 # two runs of ctest in one build folder
rm -rf "$scratch"
mkdir -p "$scratch"
cmake --install "$build" --prefix "$scratch/staged" >"$scratch/install.log"
mv "$scratch/staged" "$scratch/prefix"
prefix=$scratch/prefix
doc=$prefix/share/doc/accelhal
cd "$scratch" # no hal.conf of ours nearby

rc=0 count=0
while IFS= read -r page; do
	while IFS= read -r link; do
		count=$((count + 1))
		[ -e "$(dirname "$page")/$link" ] || { echo "${page#"$prefix"/}: dead link: $link"; rc=1; }
	done < <(grep -oE '\]\([^)#:]+[)#]' "$page" | sed 's/^](//; s/.$//')
done < <(find "$prefix" -name '*.md')
[ $rc -eq 0 ] || exit 1
[ $count -ge 50 ] || { echo "only $count links found"; exit 1; }

export PKG_CONFIG_PATH=$prefix/$libdir/pkgconfig
mkdir examples
for source in "$doc"/examples/*.c "$doc"/examples/server/*.c; do
	name=$(basename "$source" .c)
	# shellcheck disable=SC2046 # flags are words
	"$cc" -std=c11 -Wall -Wextra -Werror -o "examples/$name" "$source" \
		$(pkg-config --cflags --libs npuc accelhal)
done
(
	export LD_LIBRARY_PATH=$prefix/$libdir
	"$run" "$doc/examples/expected/timelines.txt" ./examples/timelines ref
	"$run" "$doc/examples/expected/ref_kernel.txt" ./examples/ref_kernel
	HAL_HAL_DEVICE='ref?clock=real' "${run%/*}/run_tutorial.sh" "$doc/examples" ./examples/tutorial
)

mkdir first
sed -n '/^```cmake$/,/^```$/{/^```/d;p;}' "$doc/docs/installing.md" >first/CMakeLists.txt
sed -n '/^```c$/,/^```$/{/^```/d;p;}' "$doc/README.md" >first/first.c
cmake -S first -B first/build "-DCMAKE_C_COMPILER=$cc" "-DCMAKE_PREFIX_PATH=$prefix" >first.log
cmake --build first/build >>first.log
version=$(pkg-config --modversion accelhal)
grep -q "^find_package(accelhal ${version%.*} REQUIRED)$" "$doc/docs/installing.md" ||
	{ echo "docs/installing.md: find_package names another version than $version"; exit 1; }
# Not through LD_LIBRARY_PATH: CMake leads its programs to the library.
objdump -p first/build/first | grep -q "R.*PATH.*$prefix/$libdir" ||
	{ echo "first/build/first does not find the library"; exit 1; }

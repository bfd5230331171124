#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# test_policy.sh BUILD_DIR SCRATCH LIBDIR CC: installs to SCRATCH/prefix, builds the installed
# examples/policy_skeleton against that alone, loads it, and compares what it does beside fifo
# with its expected.txt.  The policy in docs/adding-a-policy.md has to be this one.
set -euo pipefail
build=$1 scratch=$2 libdir=$3 cc=$4
root=$(cd "$(dirname "$0")/../.." && pwd)
example=$root/examples/policy_skeleton

# Indented blocks of the page, as far as they are of the file.
if ! diff <(sed -n '/^#include <errno/,$p' "$example/skeleton.c") \
	<(awk '/^    #include <errno/ { on = 1 } on && /^[^ ]/ { on = 0 }
		on { sub(/^    /, ""); lines = lines $0 "\n" }
		END { sub(/\n+$/, "", lines); print lines }' "$root/docs/adding-a-policy.md"); then
	echo "< examples/policy_skeleton/skeleton.c, > docs/adding-a-policy.md"
	exit 1
fi

exec 9>"$scratch.lock" && flock 9 # two runs of ctest in one build folder
rm -rf "$scratch"
mkdir -p "$scratch"
cmake --install "$build" --prefix "$scratch/prefix" >"$scratch/install.log"
# A copy: nothing of this tree is near it.
cp -r "$scratch/prefix/share/doc/accelhal/examples/policy_skeleton" "$scratch/source"
cmake -S "$scratch/source" -B "$scratch/build" -DCMAKE_PREFIX_PATH="$scratch/prefix" \
	-DCMAKE_C_COMPILER="$cc" -DCMAKE_C_FLAGS=-Werror >"$scratch/cmake.log"
cmake --build "$scratch/build" >>"$scratch/cmake.log"

# Lists, heaps and the rest for other policies: the installed header stands alone.
if ! "$cc" -std=c11 -Wall -Werror -I"$scratch/prefix/include" -fsyntax-only -x c - <<-'EOF'
	#include <hal/policy_common.h>
	struct hal_policy_list list;
EOF
then
	echo "hal/policy_common.h does not compile as it is installed"
	exit 1
fi

cd "$scratch"
export LD_LIBRARY_PATH=$scratch/prefix/$libdir
if "$scratch/build/order" shortest >"$scratch/order.txt" 2>&1; then
	echo "the policy is there before it is loaded"
	exit 1
fi
export HAL_HAL_PLUGINS=$scratch/build/skeleton.so
if ! grep -q '^shortest_patience = 10' <<<"$("$scratch/prefix/bin/halctl" options)"; then
	echo "its option is not listed"
	exit 1
fi
for policy in fifo shortest; do
	"$scratch/build/order" $policy
done >"$scratch/order.txt"
diff "$example/expected.txt" "$scratch/order.txt"

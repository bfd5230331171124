#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# test_wheel.sh BUILD_DIR SCRATCH LIBDIR PYTHON PACKAGE EXTENSION: builds the wheel without and,
# if EXTENSION is yes, with the extension; installs each into an empty environment and the
# library elsewhere; imports it in each way in which a library is found.  Nothing comes from
# the network.
set -euo pipefail
build=$1 scratch=$2 libdir=$3 python=$4 package=$5 extension=$6
for module in pip setuptools wheel; do
	"$python" -c "import $module" 2>/dev/null ||
		{ echo "no Python module $module: scripts/setup installs it"; exit 77; }
done

exec 9>"$scratch.lock" && flock 9 # two runs of ctest in one build folder
rm -rf "$scratch"
mkdir -p "$scratch"
unset ACCELHAL_LIBRARY PYTHONPATH LD_LIBRARY_PATH PKG_CONFIG_PATH
cp -rL "$package" "$scratch/source" # the build leaves folders behind
cmake --install "$build" --prefix "$scratch/prefix" >"$scratch/install.log"

wheel_of() { # wheel_of yes|no PATTERN: builds the wheel, with the extension or without
	local folder=$scratch/$1 wheel

	ACCELHAL_EXTENSION=$1 "$python" -m pip wheel --quiet --no-index --no-deps \
		--no-build-isolation --disable-pip-version-check --wheel-dir "$folder" \
		"$scratch/source" 2>"$scratch/pip.log" || { cat "$scratch/pip.log"; exit 1; }
	rm -rf "$scratch/source/build"
	wheel=$(echo "$folder"/accelhal-*.whl)
	# shellcheck disable=SC2053 # it is a pattern
	[[ $wheel == $2 ]] || { echo "the name of the wheel is not as $2: $wheel"; exit 1; }
	grep -qE '\.dist-info/(licenses/)?LICENSE' <<<"$("$python" -m zipfile -l "$wheel")" ||
		{ echo "$wheel has no licence in it"; exit 1; }
	"$python" -m venv --without-pip "$folder/venv"
	"$python" -m pip --python "$folder/venv/bin/python" install --quiet --no-index \
		--disable-pip-version-check "$wheel"
}

cd "$scratch"
program='
import accelhal as hal
with hal.open("ref") as device, device.partition(2) as part:
    queue, buffer = part.queue(), part.buffer(64)
    queue.submit(hal.fill(buffer, 42)).wait()
    print(sum(buffer.read()))'

check() { # check yes|no COMPILED: the wheel that wheel_of has installed
	local py=$scratch/$1/venv/bin/python compiled=$2 said at way got page

	if said=$(env PATH=/nonexistent "$py" -c 'import accelhal' 2>&1); then
		echo "this machine has an accelhal of its own: not finding one is not tried"
	else
		grep -q '^ImportError: libaccelhal.so.0 is not found: .*ACCELHAL_LIBRARY=' <<<"$said" ||
			{ echo "$said"; exit 1; }
	fi
	at=$scratch/prefix/$libdir
	said=$(LD_LIBRARY_PATH=$at "$py" -c 'import accelhal; print(accelhal.compiled)')
	[ "$said" = "$compiled" ] || { echo "compiled is $said, not $compiled"; exit 1; }
	for way in "LD_LIBRARY_PATH=$at" "PKG_CONFIG_PATH=$at/pkgconfig" \
		"ACCELHAL_LIBRARY=$at/libaccelhal.so.0"; do
		got=$(env "$way" "$py" -W error -c "$program" 2>&1) || { echo "$way: $got"; exit 1; }
		[ "$got" = 672 ] || { echo "$way: $got, not 672"; exit 1; }
	done
	# The page of pydoc needs the library as well.
	page=$(LD_LIBRARY_PATH=$at "$py" -m pydoc accelhal.Queue.submit)
	grep -q 'QueueFull' <<<"$page" || { echo "pydoc does not tell of submit: $page"; exit 1; }
}

wheel_of no '*-py3-none-any.whl'
check no False
if [ "$extension" = yes ]; then
	wheel_of yes '*-cp311-abi3-linux_*.whl'
	check yes True
fi

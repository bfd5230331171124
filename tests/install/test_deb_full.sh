#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# test_deb_full.sh SOURCE_DIR MODEL_DIR SCRATCH: builds the Debian packages as `make deb` does, has
# lintian judge them, and installs them with dpkg into a copy of this machine's system.
# scripts/check-deb does it in one that has nothing else.
set -euo pipefail
source=$1 models=$2 scratch=$3
here=$(cd "$(dirname "$0")" && pwd)

command -v dpkg-gencontrol >/dev/null || { echo "dpkg-dev is not installed"; exit 77; }
exec 9>"$scratch.lock" && flock 9 # two runs of ctest in one build folder
rm -rf "$scratch"/{from,all,overlay} # the build is good for the next time
mkdir -p "$scratch/from/debs" "$scratch/all"
# A user's settings are not those of packages.
for name in $(env | sed -n 's/^\(HAL_[A-Z0-9_]*\)=.*/\1/p'); do
	unset "$name"
done
(cd "$source" && scripts/make-deb --build "$scratch/build" "$scratch/from/debs" "$models") \
	>"$scratch/make-deb.log" 2>&1 || { tail -n 30 "$scratch/make-deb.log"; exit 1; }
"$source/scripts/check-deb" --lint "$scratch/from/debs"

for deb in "$scratch"/from/debs/*.deb; do
	dpkg-deb -x "$deb" "$scratch/all"
done
libdir=usr/lib/$(dpkg-architecture -qDEB_HOST_MULTIARCH)
for file in libaccelhal.so libnpuc.so pkgconfig/accelhal.pc cmake/accelhal/accelhalConfig.cmake; do
	[ -e "$scratch/all/$libdir/$file" ] || { echo "no $libdir/$file"; exit 1; }
done
while IFS= read -r file; do
	# The models are MODEL_DIR's, and with assertions where they are a development build's.
	[[ $file != */libnpu_*x* ]] && grep -qF -e "$source" -e "$scratch" "$file" &&
		{ echo "$file has a path of this machine"; exit 1; }
	if objdump -p "$file" 2>/dev/null | grep -E "RPATH|RUNPATH"; then
		[[ $file == */libnpu_*x* ]] || { echo "$file: (above) in a package"; exit 1; }
	fi
done < <(find "$scratch/all" -type f)

cp -r "$here"/{consumer.c,package,inside.sh} "$here/../../examples/backend_skeleton" \
	"$scratch/from"
exec "$here/overlay.sh" "$scratch" "$scratch/from" bash -euc '
	dpkg -i /tmp/from/debs/*.deb >/tmp/dpkg.log 2>&1 || { cat /tmp/dpkg.log; exit 1; }
	exec bash /tmp/from/inside.sh /tmp/from'

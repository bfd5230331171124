#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# test_deb.sh BUILD_DIR SCRATCH: makes the Debian packages and installs them with dpkg into a
# copy of this machine's system.  scripts/check-deb does it in one that has nothing else.
set -euo pipefail
build=$1 scratch=$2
here=$(cd "$(dirname "$0")" && pwd)

command -v dpkg-shlibdeps >/dev/null || { echo "dpkg-dev is not installed"; exit 77; }
rm -rf "$scratch"
mkdir -p "$scratch/from"
cpack --config "$build/CPackConfig.cmake" -B "$scratch/from/debs" >"$scratch/cpack.log" ||
	{ tail "$scratch/cpack.log"; exit 1; }
cp -r "$here"/{consumer.c,package,inside.sh} "$here/../../examples/backend_skeleton" \
	"$scratch/from"
exec "$here/overlay.sh" "$scratch" "$scratch/from" bash -euc '
	dpkg -i /tmp/from/debs/*.deb >/tmp/dpkg.log 2>&1 || { cat /tmp/dpkg.log; exit 1; }
	exec bash /tmp/from/inside.sh /tmp/from'

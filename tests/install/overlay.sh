#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# overlay.sh SCRATCH FOLDER COMMAND...: runs COMMAND as root in this machine's system, with all
# that is written kept in memory and gone afterwards; FOLDER is copied to /tmp/from there.
# Exit status 77: that cannot be done here, and why.
set -euo pipefail
if [ "${1:-}" != --in ]; then
	[ "$(id -u)" -eq 0 ] || { echo "needs root, for a system of its own: sudo ctest"; exit 77; }
	rm -rf "$1/overlay"
	mkdir -p "$1/overlay"
	unshare -m mount -t tmpfs tmpfs "$1/overlay" 2>/dev/null ||
		{ echo "this machine lets nobody mount file systems"; exit 77; }
	exec unshare -m "$0" --in "$@"
fi
shift
overlay=$1/overlay from=$2
shift 2
system=$overlay/system
mount -t tmpfs tmpfs "$overlay"
mkdir "$overlay"/{upper,work,system}
mount -t overlay overlay -o "lowerdir=/,upperdir=$overlay/upper,workdir=$overlay/work" "$system" ||
	{ echo "this machine has no overlay file systems"; exit 77; }
mount -t proc proc "$system/proc"
mount --rbind /dev "$system/dev"
mount -t tmpfs tmpfs "$system/tmp"
mkdir "$system/tmp/from"
cp -a "$from/." "$system/tmp/from"
exec chroot "$system" "$@"

#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# inside.sh FOLDER: run as root of a Debian system into which the packages have been installed:
# programs, manual and completion are where the system looks for them, a program builds and
# runs without being told where anything is, and so does a backend out of the tree.
# FOLDER: this one's consumer.c and package/, examples/backend_skeleton.
set -euo pipefail
from=$(cd "$1" && pwd)
cd "$(mktemp -d)"
for name in $(env | sed -n 's/^\(HAL_[A-Z0-9_]*\|LD_LIBRARY_PATH\|PKG_CONFIG_PATH\)=.*/\1/p'); do
	unset "$name"
done

for package in libaccelhal0 libaccelhal-dev accelhal-tools accelhal-daemon accelhal-npu-models; do
	[ "$(dpkg-query -W -f='${db:Status-Abbrev}' $package)" = "ii " ] ||
		{ echo "$package is not installed"; exit 1; }
	[ -z "$(dpkg --verify $package)" ] || { echo "$package: files differ"; exit 1; }
	while IFS= read -r path; do
		[ ! -d "$path" ] || [ -n "$(ls -A "$path")" ] ||
			{ echo "$package: $path is empty"; exit 1; }
	done < <(dpkg -L $package)
done
ldconfig -p | grep -q 'libaccelhal\.so\.0 ' || { echo "ldconfig does not know the library"; exit 1; }
for command in halctl npuc halrun halbench hal-ptx halpack; do
	[ "$(command -v $command)" = /usr/bin/$command ] || { echo "no $command"; exit 1; }
	$command --version >/dev/null
	[ -e /usr/share/bash-completion/completions/$command ] || { echo "$command: no completion"; exit 1; }
	[ -e /usr/share/man/man1/$command.1 ] || [ -e /usr/share/man/man1/$command.1.gz ] ||
		{ echo "$command: no manual page"; exit 1; }
done
for target in npu:0 'npu:0?rows=8&cols=8' ref; do
	halctl info "$target" >/dev/null
done

# hald has a user and group of its own, and serves as that user.
grep -q "^hald:[^:]*:[0-9]*:[0-9]*:accelhal daemon,*:/nonexistent:/usr/sbin/nologin$" /etc/passwd ||
	{ echo "no user hald"; exit 1; }
grep -q '^hald:' /etc/group || { echo "no group hald"; exit 1; }
[ -e /usr/share/man/man8/hald.8 ] || [ -e /usr/share/man/man8/hald.8.gz ] ||
	{ echo "hald: no manual page"; exit 1; }
if command -v systemd-analyze >/dev/null; then
	systemd-analyze verify --man=no hald@npu0.service hald@npu0.socket
fi
mkdir run
chown hald:hald run
chmod 755 . run
setpriv --reuid hald --regid hald --clear-groups \
	hald --dir "$PWD/run" --name npu0 'npu:0?engine=fast' >hald.log 2>&1 &
until grep -qs '^hald: .* is served as hald:npu0' hald.log; do
	kill -0 $! || { cat hald.log; exit 1; }
done
HAL_HAL_BROKER_DIR=$PWD/run halctl info hald:npu0 >/dev/null
kill $!
wait $! || { echo "hald has not ended well"; exit 1; }

# shellcheck disable=SC2046 # flags are words
cc -std=c11 -Wall -Wextra -Werror -o consumer "$from/consumer.c" $(pkg-config --cflags --libs accelhal)
./consumer /usr
cmake -S "$from/package" -B build -DCONSUMER_SOURCE="$from/consumer.c" >cmake.log
cmake --build build >>cmake.log
./build/consumer /usr
cmake -S "$from/backend_skeleton" -B skeleton >>cmake.log
cmake --build skeleton >>cmake.log
grep -q '^skeleton:0 ' <<<"$(HAL_HAL_PLUGINS=$PWD/skeleton/skeleton.so halctl list)"

dpkg --remove libaccelhal0 libaccelhal-dev accelhal-tools accelhal-daemon accelhal-npu-models \
	>dpkg.log
left=$(find /usr -path '*accelhal*' -not -path "*/dpkg/*")
[ -z "$left" ] || { echo "left behind: $left"; exit 1; }

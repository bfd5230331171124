#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run_hald.sh HALD TARGET EXPECTED PROGRAM: has HALD serve TARGET, and runs PROGRAM on the device that it
# serves, as run_example.sh does.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
hald=$1 target=$2 expected=$3 program=$4
folder=$(mktemp -d /tmp/hal_example_XXXXXX) # short, whatever TMPDIR is: it holds a socket
exec {out}< <(exec "$hald" --dir "$folder" --name device "$target")
pid=$!
trap 'kill "$pid" 2>/dev/null; rm -rf "$folder"' EXIT
read -r line <&"$out" || { echo "hald says nothing" >&2; exit 1; }
HAL_HAL_BROKER_DIR=$folder "$here/run_example.sh" "$expected" "$program" hald:device

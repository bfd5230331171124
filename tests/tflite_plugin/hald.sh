#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# hald.sh SOURCE_DIR HALD TARGET LIBRARY: two interpreters in two processes share TARGET through
# hald.  Exit status 77: no TensorFlow Lite is to be had.
set -euo pipefail
source=$1 hald=$2 target=$3 library=$4
folder=$(mktemp -d)
trap 'kill "$server" 2>/dev/null || true; wait "$server" 2>/dev/null || true; rm -rf "$folder"' EXIT
"$hald" --dir "$folder" "$target" >"$folder/said" 2>&1 &
server=$!
until grep -q "is served as" "$folder/said"; do
	kill -0 "$server" || { cat "$folder/said"; exit 1; }
done
export HAL_HAL_BROKER_DIR=$folder
"${BASH_SOURCE%/*}/hosts.sh" "$source" tflite hosts_hald.py "$library" hald:npu0

#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# hosts.sh SOURCE_DIR RUNTIME PROGRAM ARGUMENT...: run a Python program of this folder, or a whole
# path, with a real TensorFlow Lite: RUNTIME is tflite (the newest) or tflite214.
# scripts/setup fetches it.  Exit status 77: it is not to be had here; says why.
set -euo pipefail
source=$1 runtime=$2 program=$3
shift 3
rc=0
said=$("$source/scripts/setup" "$runtime") || rc=$?
[ $rc -eq 0 ] || { echo "no $runtime: $said"; exit 77; }
case $program in
/*) ;;
*) program=$source/tests/tflite_plugin/$program ;;
esac
export PYTHONDONTWRITEBYTECODE=1
exec "$source/build/$runtime-venv/bin/python" "$program" "$@"

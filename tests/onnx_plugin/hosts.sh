#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# hosts.sh SOURCE_DIR RUNTIME ARGUMENT...: run hosts.py with a real ONNX Runtime: RUNTIME is onnx
# (the newest) or onnx123.  scripts/setup fetches it.  Exit status 77: it is not to be had here;
# says why.
set -euo pipefail
source=$1 runtime=$2
shift 2
rc=0
said=$("$source/scripts/setup" "$runtime") || rc=$?
[ $rc -eq 0 ] || { echo "no $runtime: $said"; exit 77; }
export PYTHONDONTWRITEBYTECODE=1
exec "$source/build/$runtime-venv/bin/python" "$source/tests/onnx_plugin/hosts.py" "$@"

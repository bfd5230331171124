#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# both.sh SOURCE_DIR DELEGATE PROVIDER TARGET: TensorFlow Lite and ONNX Runtime in one process share
# TARGET.  Exit status 77: one of them is not to be had.
set -euo pipefail
source=$1
shift
rc=0
said=$("$source/scripts/setup" onnx) || rc=$?
[ $rc -eq 0 ] || { echo "no ONNX Runtime: $said"; exit 77; }
PYTHONPATH=$(echo "$source"/build/onnx-venv/lib/python3*/site-packages)
export PYTHONPATH
"${BASH_SOURCE%/*}/hosts.sh" "$source" tflite hosts_both.py "$@"

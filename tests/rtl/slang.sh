#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# slang.sh ...: slang.py, by a Python that has slang; 77: none to be had, and why.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
"$here/../../scripts/setup" rtl
exec "$here/../../build/rtl-venv/bin/python" -B "$here/slang.py" "$@"

#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# check_library.sh LIBRARY: it shows two functions, needs none of ONNX Runtime's, and stays loaded
# when it is closed.
set -euo pipefail
library=$1
rc=0
exported=$(nm -D --defined-only --no-demangle "$library" | awk '$2 == "T" { sub(/@.*/, "", $3); print $3 }')
[ "$exported" = "CreateEpFactories
ReleaseEpFactory" ] || { echo "exported: $exported"; rc=1; }
if nm -D --undefined-only "$library" | grep -iE ' (ort|_ZN|onnx)|dlsym'; then
	echo "(above) symbols of the runtime, or a way to look them up"
	rc=1
fi
readelf -d "$library" | grep -q 'NODELETE' || { echo "not linked with -z nodelete"; rc=1; }
needed=$(readelf -d "$library" | sed -n 's/.*NEEDED.*\[\(.*\)\]/\1/p' | grep -vE '^(libnpuc|libaccelhal|libc|libpthread|libm|ld-linux)' || true)
[ -z "$needed" ] || { echo "needs $needed"; rc=1; }
exit $rc

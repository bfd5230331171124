#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# classify.sh SOURCE_DIR LIBACCELHAL: examples/classify.py prints what it should, and the delegate
# the cycles and the use of the peak.
set -euo pipefail
source=$1
export ACCELHAL_LIBRARY=$2 PYTHONPATH=$source/bindings/python
said=$(mktemp)
trap 'rm -f "$said"' EXIT
rc=0
printed=$("${BASH_SOURCE%/*}/hosts.sh" "$source" tflite "$source/examples/classify.py" \
	"$source/data/digits/digits.tflite" "$source/data/digits/seven.npy" \
	"$source/data/digits/labels.txt" 2>"$said") || rc=$?
[ $rc -eq 0 ] || { echo "$printed"; cat "$said"; exit $rc; }
diff "$source/examples/expected/classify.txt" - <<<"$printed" || { echo "< expected"; exit 1; }
grep -qE '^INFO: accelhal: 8 of 8 nodes, 231680 of 231680 MACs in 1 partition' "$said" &&
	grep -qE '^INFO: accelhal: partition at node 0: 1 inference, [0-9]+ cycles each, 0\.[0-9]+ of the peak' "$said" ||
	{ cat "$said"; echo "(above) no summary, or no cycles"; exit 1; }

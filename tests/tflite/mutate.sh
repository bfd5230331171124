#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# mutate.sh SOURCE_DIR TEST_OPS TARGET PACK...: oracle/mutate.py reads all models of the packs, and
# makes models that npuc refuses or computes as TensorFlow Lite does.  Exit status 77: TensorFlow
# Lite is not to be had here.
set -euo pipefail
source=$1 test_ops=$2 target=$3
shift 3
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mutate() {
	"$source/tests/tflite_plugin/hosts.sh" "$source" tflite214 \
		"$source/tests/tflite/oracle/mutate.py" "$@"
}

mutate --check "$@"
data=$source/data/tflite
mutate "$scratch/made" 1 60 "$data/ops_arith.pack.gz" "$data/ops_move.pack.gz"
"$test_ops" --mutants "$scratch/made" "$target"
# The first one as it is, and the second one as a model to refuse.
mutate --keep "$scratch/kept" "$scratch/made:0,1r" | grep '^2 models'

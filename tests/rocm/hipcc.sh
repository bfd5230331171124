#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# hipcc.sh HIPCC SOURCE_DIR "[EMULATOR ]CHECK": kernels.hip and preempt.hip by HIP's own compiler, as
# a user would call it, for the three architectures that CHECK (test_rocm_clang) asks for.
set -euo pipefail
hipcc=$1 source=$2 check=$3
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
for name in kernels preempt; do
	"$hipcc" --genco -O2 --offload-arch=gfx906 --offload-arch=gfx90a:xnack- \
		--offload-arch=gfx1030 -I"$source" -o "$out/$name" "$source/tests/rocm/$name.hip"
done
$check "$out/kernels" "$out/preempt"

#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# cccl.sh SOURCE_DIR TEST_KERNELS HAL_PTX: kernels instantiated from the headers of CCCL (CUB),
# as tests/ptx/cccl has them, run in the interpreter as they are and rewritten, and NVIDIA's
# assembler takes both.  Compiler and headers are the toolkit's, in PATH or its folder; else
# scripts/setup cccl fetches them.  Exit status 77: there are none.
set -euo pipefail
source=$1 test_kernels=$2 hal_ptx=$3
here=$source/tests/ptx/cccl
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

include=()
nvcc=$(command -v nvcc || ls /usr/local/cuda/bin/nvcc 2>/dev/null || true)
if [ -z "$nvcc" ]; then
	rc=0
	said=$("$source/scripts/setup" cccl) || rc=$?
	[ $rc -eq 0 ] || { echo "no nvcc: $said"; exit 77; }
	nvcc=$(ls "$source"/build/cccl-venv/lib/python*/site-packages/nvidia/cu*/bin/nvcc)
	include=("-I${nvcc%/bin/nvcc}/include" "-I${nvcc%/bin/nvcc}/include/cccl")
fi

if ! "$nvcc" -ptx -O3 -std=c++17 -arch=compute_75 "${include[@]}" -o "$scratch/block.ptx" \
	"$here/block.cu" >"$scratch/said" 2>&1; then
	grep -q 'cub/.*No such file' "$scratch/said" &&
		{ echo "no CCCL headers beside $nvcc"; exit 77; }
	head -n 20 "$scratch/said"
	exit 1
fi

rc=0
"$test_kernels" -d "$here/kernels.list" "$scratch" || rc=1
PATH=$(dirname "$nvcc"):$PATH "$source/tests/ptx/ptxas.sh" "$source" "$hal_ptx" all "$scratch" \
	ptx.cccl.ptxas || rc=1
exit $rc

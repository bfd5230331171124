#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# make_ptx.sh [FOLDER]: makes each NAME.ptx of NAME.cu again, with the CUDA toolkit's nvcc; the
# tests need none.  The sources are ours, and nothing of the toolkit's is in what comes out.
set -euo pipefail
cd "${1:-$(dirname "$0")}"
nvcc=$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)
made=$(mktemp --suffix=.ptx)
trap 'rm -f "$made"' EXIT
for source in *.cu; do
	version=7.8
	grep -q 'arch: compute_90' "$source" && version=8.1
	arch=$(sed -nE 's,^/\* arch: ([a-z0-9_]+) \*/$,\1,p' "$source")
	"$nvcc" -ptx -O3 "-arch=${arch:-compute_75}" "$source" -o "$made"
	{
		echo "// SPDX-License-Identifier: Apache-2.0"
		echo "// From $source, by make_ptx.sh."
		sed -E "/^\/\//d; s/^\.version .*/.version $version/" "$made"
	} >"${source%.cu}.ptx"
done

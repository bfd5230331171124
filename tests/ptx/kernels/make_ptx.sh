#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# make_ptx.sh: makes each NAME.ptx of NAME.cu again, with the CUDA toolkit's nvcc; the tests need
# none.  The sources are ours, and nothing of the toolkit's is in what comes out.
set -euo pipefail
cd "$(dirname "$0")"
nvcc=$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)
for source in *.cu; do
	arch=$(sed -nE 's,^/\* arch: ([a-z0-9_]+) \*/$,\1,p' "$source")
	{
		echo "// SPDX-License-Identifier: Apache-2.0"
		echo "// From $source, by make_ptx.sh."
		"$nvcc" -ptx -O3 "-arch=${arch:-compute_75}" "$source" -o /dev/stdout |
			sed -E '/^\/\//d; s/^\.version .*/.version 7.8/'
	} >"${source%.cu}.ptx"
done

#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# conformance_figures.sh CONFORMANCE EXPECT: how many cases pass, fail and are unsupported on
# CUDA's stand-in driver; the reason of each that does not pass is printed with it.
set -euo pipefail
out=$("$1" --isolate --backend "cuda?clock=virtual" --expect "$2") || true
grep -E ' (unsupported|xfail) \(' <<<"$out" || true
count() { grep -cE "$1" <<<"$out" || true; }
echo "figure conformance.cuda.passed $(count ' pass$')"
echo "figure conformance.cuda.failed $(count ' FAIL$')"
echo "figure conformance.cuda.known $(count ' xfail \(')"
echo "figure conformance.cuda.unsupported $(count ' unsupported \(')"

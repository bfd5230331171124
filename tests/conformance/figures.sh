#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# figures.sh NAME CONFORMANCE ARGUMENT...: how many cases pass, fail, are known to and are
# unsupported, as conformance.NAME.*; the reason of each that does not pass is printed with it.
set -euo pipefail
name=$1
shift
out=$("$@") || true
grep -E ' (unsupported|xfail) \(' <<<"$out" || true
count() { grep -cE "$1" <<<"$out" || true; }
echo "figure conformance.$name.passed $(count ' pass$')"
echo "figure conformance.$name.failed $(count ' FAIL$')"
echo "figure conformance.$name.known $(count ' xfail \(')"
echo "figure conformance.$name.unsupported $(count ' unsupported \(')"

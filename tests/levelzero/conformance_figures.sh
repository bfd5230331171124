#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# conformance_figures.sh CONFORMANCE EXPECT: how many cases pass, fail and are unsupported on
# Level Zero; the reason of each unsupported one is printed with it.
set -euo pipefail
out=$("$1" --backend "levelzero?clock=virtual" --expect "$2") || true
grep -E ' (unsupported|xfail) \(' <<<"$out" || true
awk '/ pass$/ { passed++ } / (FAIL|xfail \(.*)$/ { failed += / FAIL$/; known += / xfail / }
	/ unsupported \(/ { unsupported++ }
	END {
		print "figure conformance.levelzero.passed " passed + 0
		print "figure conformance.levelzero.failed " failed + 0
		print "figure conformance.levelzero.known " known + 0
		print "figure conformance.levelzero.unsupported " unsupported + 0
	}' <<<"$out"

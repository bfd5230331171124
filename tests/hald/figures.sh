#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# figures.sh conformance|fuzz: figures of hald that come from tests.  Run in the build folder.
#   conformance   broker.conformance.BACKEND.passed and .failed: of the cases that can be carried
#                 out through hald, over ref with both clocks, and over the NPU
#   fuzz [RUNS]   broker.fuzz.messages, .takes and .crashes: of fuzz_hald and fuzz_inlet, with RUNS
#                 random inputs each (20000)
set -euo pipefail
out=$(mktemp)
trap 'rm -f "$out"' EXIT

case ${1:-} in
conformance)
	for name in ref ref_real npu_fast; do
		rc=0
		ctest -R "^conformance\\.hald_$name\$" -V >"$out" 2>&1 </dev/null || rc=$?
		line=$(grep -oE '[0-9]+ passed, [0-9]+ failed' "$out" | tail -n 1)
		[ -n "$line" ] || { echo "conformance.hald_$name has not run ($rc)"; exit 77; }
		read -r passed _ failed _ <<<"$line"
		echo "figure broker.conformance.$name.passed $passed"
		echo "figure broker.conformance.$name.failed $failed"
	done
	;;
fuzz)
	runs=${2:-20000} crashes=0
	for target in fuzz_hald fuzz_inlet; do
		tests/fuzz/$target "$runs" >"$out" 2>&1 </dev/null || crashes=$((crashes + 1))
		sed -nE 's/^(messages|takes) ([0-9]+) .*/figure broker.fuzz.\1 \2/p' "$out"
	done
	echo "figure broker.fuzz.crashes $crashes"
	;;
*)
	sed -n '3,8s/^# //p' "$0"
	exit 2
	;;
esac

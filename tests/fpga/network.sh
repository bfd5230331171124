#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# network.sh HALRUN MODEL.so DIGITS_FOLDER network|network_control: a compiled network, by its
# driver backends/npu, on an NPU that is a slot of an FPGA card (npu_model.c), against the golden
# model of the same shape, bit for bit.  network_control: a bit of each byte that the card has
# changed is another, which has to be found.
set -euo pipefail
halrun=$1 model=$2 digits=$3 kind=$4
[ -r "${HAL_STAND_IN_NPU:-}" ] || { echo "skipped: no model of the NPU's slot"; exit 77; }
shape="rows=4&cols=4&slots=2&channels=4&memory_size=4M"
here=$(mktemp -d)
trap 'rm -rf "$here"' EXIT
runs=0 wrong=0 wanted=0

run() { # OUTPUT TARGET INPUT...
	"$halrun" -t "$2" -n 0 -o "$here/$1" "$digits/digits.tflite" "${@:3}" >>"$here/said" 2>&1 ||
		{ cat "$here/said"; exit 1; }
}
[ "$kind" = network ] || export CARD_PLANT=1
for input in "$digits/seven.npy" "-r 1" "-r 2"; do
	read -ra words <<<"$input"
	run golden "npu:0?$shape&engine=golden" "${words[@]}"
	run card "npu:0?$shape&model=$model" "${words[@]}"
	runs=$((runs + 1))
	cmp "$here/golden" "$here/card" || wrong=$((wrong + 1))
done
kernel=$(awk '/runs of the kernel/ { n += $1 } END { print n + 0 }' "$here/said")
echo "$runs inferences, $kernel runs of the kernel, $wrong with other bits"
[ "$kind" = network ] || wanted=$runs
[ "$kernel" -gt 0 ] && [ $wrong -eq "$wanted" ]

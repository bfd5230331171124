#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# test_demo.sh DEMO CONFIG DATA MODELS [quick]: the demo's answers, files and exit status, and that
# it says what is wrong with wrong arguments and files; with MODELS (or -) its networks, too.
# With quick: no signals, no full disk, fewer images.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
demo=$1 config=$2 data=$3 models=${4#-} quick=${5:-}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
failures=0

bad() {
	echo "FAIL: $*" >&2
	failures=$((failures + 1))
}

# refuses STATUS TEXT ARGS...: exits with STATUS and says TEXT on stderr.
refuses() {
	local want=$1 text=$2 got
	shift 2
	"$demo" --out "$dir/out" "$@" >"$dir/stdout" 2>"$dir/stderr"
	got=$?
	[ $got -eq "$want" ] || bad "$*: exit status $got, not $want"
	grep -qF -e "$text" "$dir/stderr" || bad "$*: no \"$text\" in: $(cat "$dir/stderr")"
}

grep -q -e --images <<<"$("$demo" --help)" || bad "--help"
grep -qE '^demo [0-9]+\.[0-9]+' <<<"$("$demo" --version)" || bad "--version"
[ "$("$demo" -h)" = "$("$demo" --help)" ] || bad "-h"
"$demo" --help >/dev/full 2>"$dir/stderr" && bad "--help >/dev/full succeeds"
grep -q "cannot write the output" "$dir/stderr" || bad "--help >/dev/full says nothing"
refuses 2 "try: demo --help" --no-such-option
refuses 2 "--images 0:" --images 0
refuses 2 "--images ten:" --images ten
refuses 2 "unknown argument stray" stray
refuses 2 "--answers needs --models" --answers "$dir"
refuses 1 "100000" --images 100000
refuses 1 "$dir/no/test.images" --data "$dir/no"
refuses 1 "$dir/no.conf" --config "$dir/no.conf"
mkdir "$dir/cut"
cp "$data"/* "$dir/cut"
head -c 1000 "$data/large.net" >"$dir/cut/large.net"
refuses 1 "truncated" --data "$dir/cut"
sed 's/^rows = 16/rwos = 16/' "$config" >"$dir/key.conf"
refuses 1 "key.conf:" --config "$dir/key.conf"
sed 's/partition "gold"/partition "silver"/' "$config" >"$dir/name.conf"
refuses 1 "gold" --config "$dir/name.conf"
sed 's/^device = .*/device = ref/; s/^isolation.*//; s/^colors.*//' "$config" >"$dir/ref.conf"
refuses 1 "not an NPU" --config "$dir/ref.conf"
refuses 1 "$dir/no/resnet8_int8.tflite: No such file or directory; --models must be a folder with" \
	--models "$dir/no"
mkdir "$dir/models"
echo "no model" >"$dir/models/resnet8_int8.tflite"
refuses 1 "resnet8_int8.tflite: " --models "$dir/models"
touch "$dir/file"
refuses 1 "$dir/file/" --out "$dir/file/out"
refuses 1 "not a folder" --out "$dir/file"
refuses 1 "write device = npu:0" --config "$dir/ref.conf"

# Outputs that cannot be written.
mkdir "$dir/full" "$dir/taken"
ln -s /dev/full "$dir/full/demo-trace.json"
[ "$quick" ] || refuses 1 "$dir/full/demo-trace.json could not be written" --config "$config" \
	--data "$data" --out "$dir/full" --images 1 --alone 1
mkdir "$dir/taken/demo-trace.json"
refuses 1 "$dir/taken/demo-trace.json: Is a directory" --config "$config" --data "$data" \
	--out "$dir/taken"

# On the RTL, which takes long enough to be stopped.
sed 's/^engine = fast/engine = rtl/' "$config" >"$dir/rtl.conf"

# stopped_by SIGNAL STATUS: ends by the signal, and leaves a trace that is whole.
stopped_by() {
	local line pid status
	exec {progress}< <(exec env --default-signal="$1" "$demo" --config "$dir/rtl.conf" --data "$data" \
		--out "$dir/stopped" 2>&1 >/dev/null)
	pid=$!
	while read -r -u $progress line && [[ $line != "side by side: "* ]]; do :; done
	kill -s "$1" $pid
	grep -q "demo-trace.json contains everything up to that point" <&$progress || bad "$1: says nothing"
	wait $pid
	status=$?
	exec {progress}<&-
	[ $status -eq "$2" ] || bad "$1: exit status $status, not $2"
	tail -c 200 "$dir/stopped/demo-trace.json" | grep -q '"commands_unfinished":[0-9]*}}' ||
		bad "$1: the trace has no end"
	if command -v python3 >/dev/null; then
		python3 -c 'import json, sys; json.load(open(sys.argv[1]))' \
			"$dir/stopped/demo-trace.json" || bad "$1: the trace is no JSON"
	fi
}
[ "$quick" ] || stopped_by INT 130
[ "$quick" ] || stopped_by TERM 143

"$demo" --config "$config" --data "$data" --out "$dir/out" --images 12 --alone 6 --figures \
	>"$dir/stdout" 2>"$dir/stderr" || bad "the run itself: $(cat "$dir/stderr")"
cat "$dir/stdout"
grep -q "no straight cut separates these tenants" "$dir/stdout" || bad "the map can be cut"
grep -q "^figure digits.mismatched_bits 0$" "$dir/stdout" || bad "mismatched bits"
grep -q "^figure digits.accuracy [01]\.[0-9]*$" "$dir/stdout" || bad "no accuracy"
for tenant in red green blue gold; do
	grep -q "^$tenant .* 0$" "$dir/stdout" || bad "no line of $tenant"
done
grep -q "each took exactly the same number of cycles" "$dir/stdout" ||
	bad "tenants that share nothing slow each other down"
grep -q "^This ran on a model in C .* took exactly the same" "$dir/stdout" ||
	bad "nothing was repeated on the RTL"
grep -qE "^blue +digits large +[1-9] +0 +0 +killed" "$dir/stdout" || bad "no program was killed half-way"
grep -qE "^gold .*hostile: [1-9][0-9]* broken programs" "$dir/stdout" || bad "no program was hostile"
grep -q "The jobs of red, green and blue have the same answers" "$dir/stdout" ||
	bad "programs have noticed the others"
grep -q "side by side: " "$dir/stderr" || bad "no progress"
grep -q "on the RTL: " "$dir/stderr" || bad "no progress on the RTL"
[ "$(head -c 4 "$dir/out/array.png" | tail -c 3)" = PNG ] || bad "array.png is no PNG"
trace=$dir/out/demo-trace.json
for name in "digits large: run" "digits small: run" "gemm 48x64x40: infer"; do
	[ "$(grep -c "\"ph\":\"X\",\"name\":\"$name\"" "$trace")" -ge 24 ] ||
		bad "demo-trace.json has fewer slices \"$name\" than there were jobs"
done
if command -v python3 >/dev/null; then
	"$here/../../tests/trace/check_trace.py" "$trace" || bad "demo-trace.json"
fi

# The control: all of it on the RTL.
if [ -z "$quick" ]; then
	"$demo" --config "$dir/rtl.conf" --data "$data" --out "$dir/rtl" --images 4 --alone 2 \
		>"$dir/stdout" 2>"$dir/stderr" || bad "the run on the RTL: $(cat "$dir/stderr")"
	grep -q "^All of it ran on the RTL" "$dir/stdout" || bad "the RTL is not named"
fi

if [ -n "$models" ]; then
	refuses 1 "$dir/no.sums" --models "$models" --answers "$dir/no.sums"
	refuses 1 "resnet8: " --models "$models" --answers /dev/null
	"$demo" --config "$config" --models "$models" --out "$dir/models" --images 1 --alone 1 \
		>"$dir/stdout" 2>"$dir/stderr" || bad "the networks: $(cat "$dir/stderr")"
	cat "$dir/stdout"
	grep -q "^Every answer equals TensorFlow Lite's" "$dir/stdout" || bad "a wrong answer"
	grep -q "each took exactly the same number of cycles" "$dir/stdout" ||
		bad "networks that share nothing slow each other down"
else
	echo "MLPerf Tiny networks not given: --models was tried with bad ones only"
fi
[ $failures -eq 0 ]

#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run_tutorial.sh DIR PROGRAM...: run the tutorial's server with the configuration and the
# requests in DIR, the folder of the examples, and compare its answers and messages with what
# docs/tutorial.md shows.  Then check how the server reports a wrong configuration and failing commands.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
dir=$1
shift
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
fail() {
	echo "$@" >&2
	[ ! -e "$scratch/err" ] || cat "$scratch/err" >&2
	exit 1
}
said() { # said PATTERN: standard error has such a line
	grep -qE "^$1$" "$scratch/err" || fail "no line on standard error is: $1"
}

"$here/run_example.sh" "$dir/expected/tutorial.txt" "$@" "$dir/tutorial.conf" \
	<"$dir/tutorial_requests.txt" 2>"$scratch/err" || fail "(standard error:)"
said 'tutorial: interactive has 16 units'
said 'tutorial: "hello": neither -128\.\.127 nor units N'
said 'tutorial: units 1000: cannot place 1000 units: .*'
said 'interactive  p50 [0-9.]+ us, p99 [0-9.]+ us, deadlines missed: [0-9]+, stopped: [0-9]+'

sed 's/^units = 8$/units = eight/' "$dir/tutorial.conf" >"$scratch/wrong.conf"
for file in "$scratch/wrong.conf" "$scratch/none.conf"; do
	"$@" "$file" </dev/null >"$scratch/out" 2>"$scratch/err" && fail "it accepts $file"
	said "tutorial: .*$file.*"
done

# Each command that the library gives to the device fails.  The server says so and ends well.
HAL_LAYERS_FAULT=submit:1:EIO "$@" "$dir/tutorial.conf" <<<12 >"$scratch/out" 2>"$scratch/err" ||
	fail "exit status $? when commands fail"
grep -q '^12 -> error: Input/output error$' "$scratch/out" || fail "the answer is not an error"
said 'tutorial: a job: Input/output error'
said 'tutorial: batch ends with [0-9]+ jobs left: .*injected: call [0-9]+ of submit returns EIO'

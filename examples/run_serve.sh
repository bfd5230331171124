#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run_serve.sh EXPECTED CLIENT DATA MODELS COUNT SERVER...: starts SERVER with the models small
# and large of the folder MODELS, has CLIENT ask them for COUNT images each, and compares what
# both print with EXPECTED as run_example.sh does.  Then once more, ended by a signal, and with
# a model that is not there.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
expected=$1 client=$2 data=$3 models=$4 count=$5
shift 5
scratch=$(mktemp -d /tmp/hal_serve_XXXXXX) # short, whatever TMPDIR is: it holds a socket
trap 'rm -rf "$scratch"' EXIT
fail() {
	echo "$@" >&2
	exit 1
}

start() { # start [REQUESTS]: to its first line, which comes when it listens
	exec {out}< <(exec "${server[@]}" "$scratch/socket" "$models/small.npu" 10000 \
		"$models/large.npu" 1 "$@" 2>&1)
	pid=$!
	read -r line <&"$out" || fail "the server says nothing"
	[ "$line" = "listening at $scratch/socket" ] || fail "$line"
}
server=("$@")

start $((2 * count + 1))
"$client" "$scratch/socket" "$data" "$count" >"$scratch/client" || {
	cat "$scratch/client" >&2
	kill "$pid"
	fail "the client is not served"
}
cat <&"$out" >"$scratch/server"
wait "$pid" || fail "the server's exit status is $?"
[ ! -e "$scratch/socket" ] || fail "the socket is left behind"
cat "$scratch/client"
"$here/run_example.sh" "$expected" cat "$scratch/client" "$scratch/server" || exit 1

start
kill -TERM "$pid"
cat <&"$out" >"$scratch/server"
wait "$pid" || fail "after SIGTERM the exit status is $?"
grep -q '^small.npu  *0 ' "$scratch/server" || fail "after SIGTERM it prints no table"

if said=$("${server[@]}" "$scratch/socket" "$models/none.npu" 1 "$models/large.npu" 1 2>&1); then
	fail "it serves a model that is not there"
fi
grep -q 'none\.npu' <<<"$said" || fail "it does not say which model is missing: $said"

#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run.sh CLIENT SERVER...: start SERVER, have CLIENT talk to it, and end it by SIGTERM; do so with
# full queues, with queues that fail, with a device that is lost, and with requests under way.
set -uo pipefail
client=$1
shift
server=("$@")
scratch=$(mktemp -d /tmp/hal_server_XXXXXX) # short, whatever TMPDIR is: it holds sockets
trap 'rm -rf "$scratch"' EXIT
fail() {
	echo "$@" >&2
	cat "$scratch/errors" >&2
	exit 1
}

start() { # start [VARIABLE=VALUE...]: until bob's socket, the last, listens
	rm -f "$scratch"/*
	env "$@" "${server[@]}" "$scratch" >"$scratch/output" 2>"$scratch/errors" &
	pid=$!
	until "$client" "$scratch" 0 >/dev/null 2>&1; do
		kill -0 "$pid" 2>/dev/null || fail "the server does not start"
	done
}

finish() { # finish STATUS: that is the server's exit status
	wait "$pid"
	status=$?
	[ "$status" -eq "$1" ] || fail "the server's exit status is $status"
}

start
[ "$("$client" "$scratch" 20)" = "right 320" ] || fail "answers are wrong"
kill -USR1 "$pid"
until [ "$(grep -c requests "$scratch/output")" -eq 2 ]; do
	kill -0 "$pid" || fail "SIGUSR1 ends the server"
done
kill -TERM "$pid"
finish 0
[ "$(grep -c ': 160 requests, .* 0 commands failed' "$scratch/output")" -eq 4 ] ||
	fail "the statistics are wrong"

# Eight slots hold two or three requests of the four that use a queue.
start HAL_HAL_QUEUE_DEPTH=8
[ "$("$client" "$scratch" 20)" = "right 320" ] || fail "with full queues answers are wrong"
kill -TERM "$pid"
finish 0

# Only the requests whose command fails have an error.
start HAL_LAYERS_FAULT=submit:40:EIO
said=$("$client" "$scratch" 20)
[[ $said =~ ^EIO\ ([0-9]+)\ right\ ([0-9]+)$ ]] || fail "with failed queues: $said"
[ $((BASH_REMATCH[1] + BASH_REMATCH[2])) -eq 320 ] || fail "with failed queues: $said"
kill -TERM "$pid"
finish 0
grep -q 'replaced: queue .* "alice-' "$scratch/errors" || fail "no queue was replaced"

start HAL_LAYERS_FAULT=poll:300:EIO HAL_LOG=error
said=$("$client" "$scratch" 100000)
[[ $said =~ closed && ! $said =~ wrong ]] || fail "with a lost device: $said"
finish 1
grep -q 'is lost' "$scratch/errors" || fail "it does not say that the device is lost"

start
"$client" "$scratch" 100000 >"$scratch/client" &
asking=$!
until kill -USR1 "$pid" && grep -q ' [1-9][0-9]* requests' "$scratch/output"; do
	kill -0 "$asking" || fail "the client has ended"
done
kill -TERM "$pid"
finish 0
wait "$asking"
grep -Eqx 'closed 16 right [0-9]+' "$scratch/client" ||
	fail "after SIGTERM: $(cat "$scratch/client")"

start
kill -TERM "$pid"
finish 0
if "${server[@]}" "$scratch/none" >/dev/null 2>"$scratch/errors"; then
	fail "it serves in a folder that does not exist"
fi
grep -q "$scratch/none/alice" "$scratch/errors" || fail "it does not name the socket"

#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# conformance.sh HALD CONFORMANCE BACKEND TARGET [HALD_ARGUMENT]... -- [ARGUMENT]...: runs the
# conformance suite through a hald that serves TARGET, then ends that hald and looks whether it ends
# well.
set -euo pipefail
hald=$1 conformance=$2 backend=$3 target=$4
shift 4
arguments=()
while [ "$1" != -- ]; do
	arguments+=("$1")
	shift
done
shift
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

coproc SERVER { exec "$hald" --dir "$dir" --name "${backend}0" "${arguments[@]}" "$target"; }
server=$SERVER_PID
read -r line <&"${SERVER[0]}" || { echo "hald has not started"; exit 1; }
echo "$line"
status=0
HAL_HAL_BROKER_DIR=$dir "$conformance" --isolate --backend "hald:${backend}0" "$@" || status=$?
kill -TERM "$server"
wait "$server" || { echo "hald ended with status $?"; status=1; }
[ ! -e "$dir/${backend}0.sock" ] || { echo "hald has left its socket"; status=1; }
exit "$status"

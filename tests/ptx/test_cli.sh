#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# test_cli.sh HAL_PTX HERE: the command hal-ptx.
set -uo pipefail
hal_ptx=$1 here=$2
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
rc=0

# expect STATUS PATTERN ARGUMENTS...: exit status, and what it says.
expect() {
	local status=$1 pattern=$2 got=0
	shift 2
	# shellcheck disable=SC2086 # an emulator's words
	$hal_ptx "$@" >"$scratch/said" 2>&1 </dev/null || got=$?
	[ "$got" = "$status" ] && grep -qE -- "$pattern" "$scratch/said" && return
	echo "hal-ptx $*: $got, not $status with $pattern:"
	head -n 5 "$scratch/said"
	rc=1
}

in=$here/kernels/reduce.ptx
expect 0 '^usage: hal-ptx' --help
expect 0 '^hal-ptx [0-9]' --version
expect 2 'no PTX file given'
expect 2 'there is a second: second' "$in" second
expect 2 'neither --pass .entry, loop, bounds or color. nor --list is given' "$in"
expect 2 'pass fold: unknown pass; it must be entry, loop, bounds or color' -p fold "$in"
expect 2 'pass entry is given twice' -p entry -p bounds -p entry "$in"
expect 2 'entry and --pass loop cannot be used together' -p entry -p loop "$in"
expect 2 'try: hal-ptx --help' --nonsense
expect 1 '/nowhere: No such file' -p entry /nowhere
expect 1 '-: no .version directive: this is not PTX' -p entry -
expect 0 '^norm2 loop: yes$' --list "$in"
expect 0 '^vote_count loop: line [0-9]+: vote.sync' --list "$in"
expect 1 'reduce.ptx: sum_warps: loop: line ' -p loop -o "$scratch/loop.ptx" "$in"
[ ! -e "$scratch/loop.ptx" ] || { echo "something was written"; rc=1; }
expect 0 'sum_warps: loop: line ' --keep --pass loop --output "$scratch/loop.ptx" "$in"
expect 1 'cannot write|No space' -p entry -o /dev/full "$in"
expect 0 '_halb_from' -p entry -p bounds "$in"
# Both passes; the control comes last.
grep -A2 '_halb_astray' "$scratch/said" | grep -q '_hals_control' ||
	{ echo "the parameters are not in order"; rc=1; }
expect 1 'are reserved for rewriting' -p loop "$scratch/loop.ptx"
# Colours: a map and channels, and where they stand among the parameters.
sides=$here/maps/sides.map
expect 2 'pass color, --map and --channels go together' -p color "$in"
expect 2 'pass color, --map and --channels go together' -p entry -m "$sides" -c 0 "$in"
expect 2 'channels 2-1: it must be a channel, or two as in 2-3' -p color -m "$sides" -c 2-1 "$in"
expect 1 'nowhere: No such file' -p color -m nowhere -c 0 "$in"
expect 1 'sides.map: channels 2 to 2 of 2: their number' -p color -m "$sides" -c 2 "$in"
expect 0 'sides.map: parameters for channels 1: target 1, sum 0; 8192 bytes of memory for each 4096' \
	-p color -m "$sides" -c 1 -o /dev/null "$in"
expect 0 'channels 5: target 1, sum 4; 10240' -p color -m "$here/maps/sum.map" -c 5 -o /dev/null "$in"
expect 0 'channels 2-3: target 2, sum 0; 4096 bytes of memory for each 2048' \
	-p color -m "$here/maps/pieces.map" -c 2-3 -o /dev/null "$in"
expect 0 '_halc_from' -p entry -p color -p bounds -m "$sides" -c 0 "$in"
tr -d '\n' <"$scratch/said" | grep -q '_halb_astray,[^)]*_halc_sum,[^)]*_hals_control' ||
	{ echo "the parameters are not in order"; rc=1; }
exit $rc

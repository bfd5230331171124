#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# synth.sh planted | core BUILD_DIR [OPTION...]: scripts/synth by a Python that has yosys; 77: none to
# be had, and why.
#   planted   finds what is wrong in dut/planted.sv, and nothing where nothing is
#   core      npu_core; OPTIONs are those of scripts/synth
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
what=$1 build=$2
shift 2
"$here/../../scripts/setup" rtl
synth() { "$here/../../build/rtl-venv/bin/python" -B "$here/../../scripts/synth" "$@" "$build"; }

planted() { # module, status, what it says, option
	local rc=0 said
	said=$(synth ${4-} --shape 4x4x2x4 --file "$here/dut/planted.sv" --top "$1") || rc=$?
	if [[ $rc != "$2" || $said != *"$3"* ]]; then
		printf '%s: status %s, not %s, or without "%s":\n%s\n' "$1" $rc "$2" "$3" "$said"
		failed=1
	fi
}

case $what in
planted)
	failed=0
	planted planted_latch 1 'planted_latch: latch ' --words
	planted planted_ports 1 'planted_ports: memory mem: 64 x 32 bits, 2 reads, 1 writes' --words
	planted planted_read 1 'planted_read: memory mem: 64 x 32 bits, 1 reads (1 of them not registered)' --words
	planted planted_none 0 '| planted_none | 1 | 0 | 2048 | 2 |' --words
	planted planted_levels 0 'longest path 5 levels, from `u_first.b_i` to `u_second.q_o` by u_first (2), top (1), u_second (2)'
	planted planted_levels 0 '| planted_half | 2 | 4 | 2 | 0 |'
	exit $failed
	;;
core) synth "$@" ;;
*) sed -n '3,6s/^# //p' "$0"; exit 2 ;;
esac

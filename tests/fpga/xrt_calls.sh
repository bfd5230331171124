#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# xrt_calls.sh LIBRARY XRT_CALLS_H: what docs/fpga.md says that XRT's C interface cannot do, held
# against its library: it has each call that we make; those that load load a whole card; none has a
# slot, a region or a hardware context, and none resets a unit.  Then the same with calls planted
# and taken away, each of which has to be found.
set -euo pipefail
has=$(nm -D --defined-only "$1" | sed -nE 's/.* T (xrt[A-Z][A-Za-z0-9]*)$/\1/p' | sort -u)
ours=$(sed -nE 's/^X\((xrt[A-Za-z]+),.*/\1/p' "$2" | sort -u)
loads="xrtDeviceLoadXclbin xrtDeviceLoadXclbinFile xrtDeviceLoadXclbinHandle xrtDeviceLoadXclbinUUID"

differences() { # of these calls, in words
	local missing more
	missing=$(comm -13 <(echo "$1") <(echo "$ours") | paste -sd' ')
	[ -z "$missing" ] || echo "has no $missing"
	more=$(grep -E 'Load|Program' <<<"$1" | paste -sd' ')
	[ "$more" = "$loads" ] || echo "loads by $more"
	# The AI engines' array and graphs are no units.
	more=$(grep -iE 'slot|region|partition|context|hwctx|reset|abort' <<<"$1" |
		grep -vE 'AIE|^xrtGraph' | paste -sd' ') || true
	[ -z "$more" ] || echo "has $more"
}

[ -n "$ours" ] || { echo "$2 has no calls"; exit 1; }
said=$(differences "$has")
rc=0
if [ -n "$said" ]; then
	echo "$said"
	rc=1
else
	echo "$(wc -l <<<"$has") calls: a load is a whole card's, no unit is reset"
fi
for planted in xrtDeviceLoadXclbinSlot xrtHwContextOpen xrtKernelReset xrtRunAbort; do
	more=$(printf '%s\n' "$has" $planted | sort -u)
	[ -n "$(differences "$more")" ] || { echo "$planted: not found"; rc=1; }
done
for gone in xrtRunStart xrtDeviceLoadXclbinFile; do
	less=$(grep -vx $gone <<<"$has")
	[ -n "$(differences "$less")" ] || { echo "no $gone: not found"; rc=1; }
done
exit $rc

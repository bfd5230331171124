#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# cost.sh COUNT PROGRAM tenants FEW MANY TIMES POLICY...: under each POLICY a command among MANY
#     tenants (bench_tenants) takes at most TIMES as many instructions as one among FEW.
# cost.sh COUNT PROGRAM submit POLICY=AT_MOST...: a launch of the only queue (bench_submit)
#     takes at most AT_MOST instructions under each POLICY.
# COUNT is tools/figures/count_instructions.
set -euo pipefail
command -v valgrind >/dev/null || { echo 'valgrind is missing'; exit 77; }
count=$1 program=$2 what=$3
shift 3

# among N POLICY...: lines "POLICY INSTRUCTIONS".
among() {
	"$count" "$program" run "$@" |
		sed -n "s/^figure policy\.tenants\.instructions\.\(.*\)\.$1 /\1 /p" | sort
}

if [ "$what" = tenants ]; then
	few=$1 many=$2 times=$3
	shift 3
	join <(among "$few" "$@") <(among "$many" "$@") | awk -v count=$# -v times="$times" \
		-v few="$few" -v many="$many" '
		{ printf "%s: %s instructions among %d tenants, %s among %d\n", $1, $2, few, $3, many
		  bad += $2 <= 0 || $3 > times * $2 }
		END { exit bad != 0 || NR != count }'
	exit
fi
"$count" --toggle-collect=hal_submit --toggle-collect=hal_wait "$program" policies 200 \
	"${@%%=*}" |
	awk -v limits="$*" '
		BEGIN { count = split(limits, list, " ")
			for (i = 1; i <= count; i++) {
				split(list[i], pair, "=")
				at_most[pair[1]] = pair[2]
			} }
		/^figure / { policy = $2; sub(/^hal\.submit\.policy\./, "", policy)
			sub(/\..*/, "", policy)
			if (!(policy in at_most)) next
			printf "%s: %s instructions, at most %s\n", policy, $3, at_most[policy]
			found++
			bad += $3 <= 0 || $3 > at_most[policy] }
		END { exit bad != 0 || found != count }'

#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# test_completion.sh FILE HALCTL: what bash offers behind some beginnings of command lines.
set -uo pipefail
cd "$(mktemp -d)" || exit 1
file=$1 halctl=$2 rc=0
# shellcheck disable=SC1090
. "$file"
for name in halctl halrun npuc halbench hal-ptx halpack; do
	complete -p $name >/dev/null || rc=1
done

# offers EXPECTED WORD...: the last word is the one that is being typed.
offers() {
	local expected=$1
	shift
	COMP_WORDS=("$@")
	COMP_CWORD=$(($# - 1))
	_accelhal "$1" 2>/dev/null
	[[ " ${COMPREPLY[*]} " == *" $expected "* ]] && return
	echo "$*: offered ${COMPREPLY[*]:-nothing}, not $expected"
	rc=1
}

offers list "$halctl" li
offers backends "$halctl" --json ba
offers --markdown "$halctl" backends --m
offers ref:0 "$halctl" info re
offers profile "$halctl" pro
offers ref:0 "$halctl" profile re
offers --tolerance "$halctl" profile --to
offers hal.device= "$halctl" -o hal.de
offers backend.ref.units= "$halctl" info --option backend.ref.u
offers policy.v10_unknown= "$halctl" -o policy.v10_u
offers --option "$halctl" --opt
offers policy "$halctl" po
offers top "$halctl" to
offers show "$halctl" policy sh
offers --program "$halctl" top --pro
offers report "${halctl%/*}/halbench" rep
offers --config "$halctl" -j --con
offers ref:0 "${halctl%/*}/halrun" -t re
offers --target "${halctl%/*}/npuc" --tar
offers --explain "${halctl%/*}/halrun" --ex
offers --pass "${halctl%/*}/hal-ptx" --pa
offers --policy "${halctl%/*}/halbench" --po
offers ref:0 "${halctl%/*}/halbench" --target re
offers backend.ref.units= "${halctl%/*}/halbench" -o backend.ref.u
COMP_WORDS=("$halctl" -c x)
COMP_CWORD=2
_accelhal "$halctl"
[ ${#COMPREPLY[@]} -eq 0 ] || { echo "-c: offered ${COMPREPLY[*]}, not files"; rc=1; }
exit $rc

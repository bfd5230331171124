#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# planted.sh "[EMULATOR ]SIM_RANDOM" PLUGIN: each error of planted.c is found by some seed, shrinks to at
# most ten operations, is there again when the script is replayed, and is the backend's: on
# ref itself the same script passes.  A script that is wrong is refused with its line.
set -u

sim=$1
dir=$(mktemp -d)
trap 'rm -r "$dir"' EXIT
bad=0

complain()
{
	echo "planted.sh: $*" >&2
	bad=1
}

for plant in twice loses stays late blank keeps; do
	script=$dir/$plant
	lends=
	case $plant in
	blank | keeps) lends='&hal.oversubscribe=yes' ;;
	esac
	if HAL_HAL_PLUGINS=$2 $sim --seed 7 --seeds 30 --steps 250 --once --out "$script" \
		--backend "planted?units=12&rows=3&memory=2M$lends&plant=$plant" >"$dir/log"; then
		complain "$plant: not found"
		continue
	fi
	why=$(sed -n '1s/^# //p' "$script")
	count=$(grep -cv -e '^#' -e '^target' "$script")
	echo "$plant: $count operations: $why"
	[ "$count" -le 10 ] || complain "$plant: $count operations"
	HAL_HAL_PLUGINS=$2 $sim --script "$script" --shrink 0 >"$dir/log" &&
		complain "$plant: the script passes"
	grep -qF "${why%%: *}" "$dir/log" || complain "$plant: fails otherwise: $(cat "$dir/log")"
	sed -i 's/^target planted\(.*\)&plant=.*/target ref\1/' "$script"
	$sim --script "$script" --shrink 0 || complain "$plant: ref is wrong, too"
done

refused()
{
	printf 'target ref\n%s\n' "$1" >"$dir/wrong"
	$sim --script "$dir/wrong" 2>"$dir/log" >&2
	[ $? -eq 2 ] && grep -q "wrong:2: .*$2" "$dir/log" ||
		complain "'$1' is not refused for '$2': $(cat "$dir/log")"
}

refused 'dance' dance
refused 'poll seconds=3' seconds
refused 'poll ns=x' x
refused 'poll ns=4000' 4000
refused 'submit commands=sz' sz
refused 'poll ns' ns
exit $bad

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# planted.sh "[EMULATOR ]SIM_RANDOM" PLUGIN [quick]: each error of planted.c is found by some seed,
# shrinks to at most ten operations, is there again when the script is replayed, and is the
# backend's: on ref itself the same script passes.  A script that is wrong is refused with its line.
# With quick: one of those errors.
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

plants='twice loses stays late blank keeps slow tells'
[ "${3:-}" != quick ] || plants=twice
for plant in $plants; do
	script=$dir/$plant
	more=
	case $plant in
	blank | keeps) more='&hal.oversubscribe=yes' ;;
	slow | tells) more='&fold_ns=1000' ;;
	esac
	if HAL_HAL_PLUGINS=$2 $sim --seed 7 --seeds 30 --steps 250 --once --out "$script" \
		--backend "planted?units=12&rows=3&memory=2M$more&plant=$plant" >"$dir/log"; then
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

# A stop that nobody but the engine has asked for: for latency-critical work, in a mode that
# takes longer than it should.
engine_stops()
{
	cat >"$dir/stop" <<-EOF
		target planted?units=1&fold_ns=1000&policy.preempt=$1&plant=$2
		part_create units=1
		queue_create class=$effort
		queue_create class=$latency
		submit commands=s work=19999
		poll ns=100
		submit queue=1 commands=s work=10
		poll ns=3999 long=31
	EOF
	HAL_HAL_PLUGINS=$3 $sim --script "$dir/stop" --shrink 0 >"$dir/log" &&
		complain "$1, $2: a late stop of the engine's passes"
	grep -q 'check.c.*stop_max_ns' "$dir/log" ||
		complain "$1, $2: fails otherwise: $(cat "$dir/log")"
	sed -i 's/&plant=.*/\&plant=none/' "$dir/stop"
	HAL_HAL_PLUGINS=$3 $sim --script "$dir/stop" --shrink 0 >"$dir/log" ||
		complain "$1: $(cat "$dir/log")"
}

latency=1 effort=2 # enum hal_service_class
engine_stops kill late "$2"
engine_stops best late "$2"
engine_stops fold slow "$2"
engine_stops fold tells "$2"

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

#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# test_probed.sh HALCTL BENCH_COLOR: a device that keeps its memory channels to itself, found by
# timing; with that map tenants own channels there, and their cycles depend on nobody else's.  With
# another device's hash they do not; maps that are not for this device are refused.
set -euo pipefail
halctl=$1
bench=$2
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
target='npu:0?engine=fast&hash=opaque&memory_size=4M'

if ! "$halctl" info npu:0?engine=fast >"$scratch/info" 2>&1; then
	echo "no npu:0: $(tail -n 1 "$scratch/info")"
	exit 77
fi
slowdown() { # KIND SEED MAP
	HAL_HAL_COLOR_MAP=$3 "$bench" corun "$target&hash_seed=$2" |
		sed -n "s/^figure color.corun.slowdown_$1 //p"
}
refused() { # TEXT TARGET OPTION...
	if "$halctl" info "${@:3}" "$2" >"$scratch/out" 2>&1; then
		echo "not refused: $*"
		exit 1
	fi
	grep -q -- "$1" "$scratch/out" || { echo "no '$1' in:"; cat "$scratch/out"; exit 1; }
}
for seed in 7 8; do
	"$halctl" probe -w "$scratch/$seed.map" "$target&hash_seed=$seed" >"$scratch/said"
	grep -q '^verified *yes' "$scratch/said" || { cat "$scratch/said"; exit 1; }
done

own=$(slowdown disjoint_max 7 "$scratch/7.map")
shared=$(slowdown shared_min 7 "$scratch/7.map")
wrong=$(slowdown disjoint_max 7 "$scratch/8.map")
echo "own channels $own, all shared $shared, channels by another device's hash $wrong"
[ "$own" = 1.000000 ]
awk -v shared="$shared" -v wrong="$wrong" 'BEGIN { exit !(shared > 1.05 && wrong > 1.01) }'

"$halctl" info -o hal.color_map="$scratch/7.map" "$target" >"$scratch/out"
grep -q '^memory channels .*from a map of which at most 0\.0[0-9]* % is wrong' "$scratch/out"
grep -q '^memory isolation *advisory' "$scratch/out"

refused 'only a device with hash=opaque accepts a colour map' 'npu:0?engine=fast&memory_size=4M' -o hal.color_map="$scratch/7.map"
refused 'the map is for 4194304 bytes' 'npu:0?engine=fast&hash=opaque&memory_size=8M' \
	-o hal.color_map="$scratch/7.map"
refused 'the map is for npu 16x16' ref -o hal.color_map="$scratch/7.map"
refused 'No such file' "$target" -o hal.color_map="$scratch/none.map"
refused 'pages of 2048' "$target&granule=2048" -o hal.color_map="$scratch/7.map"
# Pages that are parts of a granule have one channel each.
"$halctl" info -o hal.color_map="$scratch/7.map" "$target&granule=512" >"$scratch/out"
grep -q '^memory channels .*from a map' "$scratch/out"
sed -i '$d; /^verified/d; /^probe/d' "$scratch/8.map"
echo "sum $(sha256sum "$scratch/8.map" | cut -d' ' -f1)" >>"$scratch/8.map"
refused 'has not been verified' "$target" -o hal.color_map="$scratch/8.map"
"$halctl" info -o hal.color_map="$scratch/8.map" -o hal.color_map_unverified=yes "$target" |
	grep -q '^memory channels .*from a map that is not verified'

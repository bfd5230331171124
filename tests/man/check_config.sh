#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# check_config.sh SOURCE_DIR HALCTL: hal.conf(5) has the options that halctl lists and the keys
# of a partition that the core takes, and its example works; halctl(1) has all of its help.
#   check_config.sh --update SOURCE_DIR HALCTL     rewrites the options in hal.conf(5)
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
update=
[ "$1" != --update ] || { update=1; shift; }
halctl=$2
cd "$1"
page=docs/man/man5/hal.conf.5
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
rc=0
for name in $(env | sed -n 's/^\(HAL_[A-Z0-9_]*\)=.*/\1/p'); do
	[ "$name" = HAL_NPU_MODELS ] || unset "$name"
done

"$halctl" --config /dev/null options | awk -f "$here/options.awk" >"$scratch/is"
sed -n '/^\.\\" begin generated/,/^\.\\" end generated/{//!p}' "$page" >"$scratch/said"
if [ "$update" ]; then
	sed -i -e "/^\.\\\\\" begin generated/r $scratch/is" \
		-e '/^\.\\" begin generated/,/^\.\\" end generated/{//!d}' "$page"
elif ! diff "$scratch/said" "$scratch/is"; then
	echo "< in $page, > of halctl options; $0 --update rewrites the page"
	rc=1
fi

sed -n '/partition_options\[\] = {/,/^};/s/^\t{"\([a-z_]*\)",.*/\1/p' core/config/options.c |
	sort >"$scratch/keys"
sed -n '/^\.Sh PARTITIONS/,/^\.Sh ENV/{s/^\.It Cm //p}' "$page" | tr -d ',' |
	tr -s ' ' '\n' | sort >"$scratch/paged"
[ -s "$scratch/keys" ] || { echo "no partition_options in core/config/options.c"; rc=1; }
if ! diff "$scratch/paged" "$scratch/keys"; then
	echo "< in PARTITIONS of $page, > in core/config/options.c"
	rc=1
fi

awk '/^\.\\" config/ { mark = 1; next } mark && /^\.Bd/ { on = 1; next } /^\.Ed/ { on = 0 }
	on' "$page" >"$scratch/example.conf"
grep -q 'partition' "$scratch/example.conf" || { echo "$page: no example"; rc=1; }
"$halctl" --config "$scratch/example.conf" info >"$scratch/info" || rc=1
grep -q '4 x 4' "$scratch/info" || { echo "the example is not a device of 4 x 4"; rc=1; }
# "the output can be read back"
"$halctl" --config /dev/null options >"$scratch/all.conf"
"$halctl" --config "$scratch/all.conf" list >/dev/null || rc=1

"$halctl" --help | grep -oE '^  (-[a-zA-Z], --[a-z]+|[a-z]+)|--[a-z]+' |
	tr -s ' ,' '\n' | sed -n 's/^-*\(.*\)/\1/p' | sort -u >"$scratch/words"
sed -n 's/^\.It \(Fl\|Cm\) //p' docs/man/man1/halctl.1 | tr -s ' ,-' '\n' | sort -u \
	>"$scratch/described"
if comm -23 "$scratch/words" "$scratch/described" | grep .; then
	echo "(above) in halctl --help, not in halctl(1)"
	rc=1
fi
exit $rc

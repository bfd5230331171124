#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# check_symbols.sh LIBRARY MAP HEADER_DIR: what the library exports, what the version script
# lists and what the headers declare HAL_API or HAL_INLINE are the same functions, all named
# hal_*.
set -euo pipefail
library=$1 map=$2 headers=$3

exported=$(nm -D --defined-only --no-demangle "$library" |
	awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }' | sort)
listed=$(sed 's,/\*.*\*/,,' "$map" | grep -oE 'hal_[a-zA-Z0-9_*?]+' | sort)
declared=$(tr '\n\t' '  ' <<<"$(cat "$headers"/*.h)" | grep -oE 'HAL_(API|INLINE) [^;{]*[;{]' |
	grep -oE '\bhal_[a-z0-9_]+ ?\(' | tr -d ' (' | sort)

rc=0
if grep -vE '^hal_[a-z0-9_]+$' <<<"$exported"; then
	echo "exported, but not a hal_ function (above)"
	rc=1
fi
if grep '[*?]' <<<"$listed"; then
	echo "$map: a pattern (above); symbols are listed one by one"
	rc=1
fi
if ! diff <(echo "$listed") <(echo "$exported"); then
	echo "< in $map, > exported by $library"
	rc=1
fi
if ! diff <(echo "$declared") <(echo "$exported"); then
	echo "< declared in $headers, > exported by $library"
	rc=1
fi
if nm -D --defined-only --with-symbol-versions "$library" | grep ' [TDBRW] ' |
	grep -v '@@HAL_[0-9]'; then
	echo "exported without a version (above)"
	rc=1
fi
soname=$(readelf -d "$library" | sed -n 's/.*SONAME.*\[\(.*\)\]/\1/p')
if [ "$soname" != libaccelhal.so.0 ]; then
	echo "SONAME is '$soname', not libaccelhal.so.0"
	rc=1
fi
exit $rc

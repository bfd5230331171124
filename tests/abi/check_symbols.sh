#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# check_symbols.sh PREFIX SONAME LIBRARY MAP HEADER...: what the library exports, what the
# version script lists and what the headers declare PREFIX_API or PREFIX_INLINE (in capitals)
# are the same functions, all named PREFIX_*.
set -euo pipefail
prefix=$1 soname=$2 library=$3 map=$4
shift 4

exported=$(nm -D --defined-only --no-demangle "$library" |
	awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }' | sort)
listed=$(sed 's,/\*.*\*/,,' "$map" | grep -oE "\b${prefix}_[a-z][a-zA-Z0-9_*?]*" | sort)
declared=$(tr '\n\t' '  ' <<<"$(cat "$@")" | grep -oE "${prefix^^}_(API|INLINE) [^;{]*[;{]" |
	grep -oE "\b${prefix}_[a-z0-9_]+ ?\(" | tr -d ' (' | sort)

rc=0
if grep -vE "^${prefix}_[a-z0-9_]+$" <<<"$exported"; then
	echo "exported, but not a ${prefix}_ function (above)"
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
	echo "< declared in $*, > exported by $library"
	rc=1
fi
if nm -D --defined-only --with-symbol-versions "$library" | grep ' [TDBRW] ' |
	grep -v "@@${prefix^^}_[0-9]"; then
	echo "exported without a version (above)"
	rc=1
fi
is=$(readelf -d "$library" | sed -n 's/.*SONAME.*\[\(.*\)\]/\1/p')
if [ "$is" != "$soname" ]; then
	echo "SONAME is '$is', not $soname"
	rc=1
fi
exit $rc

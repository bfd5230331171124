#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# check_headers.sh CC CXX SOURCE_DIR: each public header compiles alone and twice, as C11 and
# as C++17, without a warning; what it defines for its users compiles as well.
set -euo pipefail
cc=$1 cxx=$2 source=$3
warn=(-Wall -Wextra -Wpedantic -Wundef -Wconversion -Wcast-align -Werror -fsyntax-only)
use='struct hal_queue_desc hal_test_desc(void);
struct hal_queue_desc hal_test_desc(void) {
	struct hal_queue_desc desc = HAL_INIT(hal_queue_desc);
	desc.min_preempt = hal_cmd_barrier().op;
	return desc;
}'
rc=0
for name in $(cd "$source" && echo hal/*.h hal/ext/*.h hal/device/*.h) policies/common.h npuc.h; do
	case $name in
	hal/device/*) of='int hal_test(int); int hal_test(int x) { return x; }' ;;
	*) of=$use ;;
	esac
	text=$(printf '#include <%s>\n#include <%s>\n%s\n' "$name" "$name" "$of")
	"$cc" -std=c11 -Wshadow -Wstrict-prototypes "${warn[@]}" -I"$source" -I"$source/npuc" -x c - <<<"$text" ||
		{ echo "$name is not clean C11"; rc=1; }
	"$cxx" -std=c++17 "${warn[@]}" -I"$source" -I"$source/npuc" -x c++ - <<<"$text" ||
		{ echo "$name is not clean C++17"; rc=1; }
done
exit $rc

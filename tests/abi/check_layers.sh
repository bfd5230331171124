#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# check_layers.sh SOURCE_DIR: who may include whom.
#   core -> hal/, lib/ and its own modules; it names no vendor
#   lib -> hal/ and itself
#   policies/X -> hal/policy.h and policies/common.h
#   backends/X -> hal/, npu-rtl (npu), backends/memfd, backends/stream, its own files
#   tools, examples, npuc, plugins -> hal/, lib/ and their own files; plugins also npuc.h
# Who calls whom is check_calls.py's to say.
set -euo pipefail

cd "$1"
rc=0

refuse() { # refuse WHY PATTERN FILE...
	local why=$1 pattern=$2
	shift 2
	if grep -nE "$pattern" "$@" /dev/null; then
		echo "^ $why"
		rc=1
	fi
}

shopt -s nullglob globstar
core=(core/**/*.[ch]) backends=(backends/**/*.[ch]) policies=(policies/*.[ch])
lib=(lib/*.[ch]) users=(tools/**/*.[ch] examples/**/*.[ch] npuc/*.[ch] plugins/**/*.[ch])

[ ${#core[@]} -gt 0 ] && [ ${#lib[@]} -gt 0 ] && [ ${#policies[@]} -gt 0 ] &&
	[ ${#backends[@]} -gt 0 ] || { echo "no sources in $1"; exit 1; }
refuse "lib includes its own headers and hal/" '^#[ \t]*include "([^l]|l[^i]|li[^b]|lib[^/])' "${lib[@]}"
refuse "a backend includes a header of the core" '^#include [<"](\.\./)*core/' "${backends[@]}"
for folder in backends/*/; do
	name=$(basename "$folder")
	for other in backends/*/; do
		case $other in
		"$folder" | backends/memfd/ | backends/stream/) continue ;;
		esac
		refuse "a backend includes another one's header" \
			"^#include [<\"][./a-z-]*$(basename "$other")/" "$folder"*.[ch]
	done
	vendor=$name
	[ "$name" = ref ] || [ "$name" = memfd ] || [ "$name" = stream ] || refuse "the core names the $name backend" \
		"\b${vendor}_|\"${vendor}[\":]|<hal/${vendor}\.h>" "${core[@]}"
done
refuse "the core includes a backend's header" '^#include [<"](\.\./)*backends/' "${core[@]}"
for file in "${policies[@]}"; do
	refuse "a policy sees only hal/policy.h and common.h" '^#include "([^c]|c[^o]|common[^.])' "$file"
	refuse "a policy sees only hal/policy.h and common.h" '^#include <hal/(hal|backend|npu|ref)\.h>' "$file"
done
refuse "tools, examples, npuc and plugins use the public headers and lib/" \
	'^#include [<"](\.\./)*(core|backends)/' "${users[@]}"
refuse "plugins use of npuc its public header" \
	'^#include [<"]([./]*npuc/)?(model|flat|lower[a-z_0-9]*|quant|container|plan|order|sparse)\.h' \
	plugins/**/*.[ch]
exit $rc

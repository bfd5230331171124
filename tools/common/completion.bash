# SPDX-License-Identifier: Apache-2.0
# bash completion of halctl, halrun, npuc, halbench, hal-ptx and halpack: what they say in --help; targets, and
# the names of options, as halctl finds them.

_accelhal_options() {
	"$1" options 2>/dev/null |
		sed -nE 's/^\[(.*)\]$/\1/; T key; h; d; :key; s/^(# )?([a-z0-9_]+) = .*/\2=/; T; G; s/(.*)\n(.*)/\2.\1/p'
}

# The one beside the tool.
_accelhal_halctl() {
	[[ $1 != */* ]] || printf '%s' "${1%/*}/"
	echo halctl
}

_accelhal() {
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} words=
	local tool=$1 help

	COMPREPLY=()
	help=$("$tool" --help 2>/dev/null)
	case ${tool##*/}:$prev:$cur in
	*:-*:-*)
		words=$(grep -oE -- '--[a-z][a-z-]*' <<<"$help")
		;;
	halctl:-o:* | halctl:--option:* | halbench:-o:* | halbench:--option:*)
		[[ ${tool##*/} == halctl ]] || tool=$(_accelhal_halctl "$tool")
		words=$(_accelhal_options "$tool")
		compopt -o nospace 2>/dev/null
		;;
	halrun:-t:* | halrun:--target:* | npuc:-t:* | npuc:--target:* | \
		halbench:-t:* | halbench:--target:*)
		tool=$(_accelhal_halctl "$tool")
		words=$("$tool" list 2>/dev/null | sed -nE 's/^([a-z0-9_]+:[0-9]+) .*/\1/p')
		;;
	*:-c:* | *:--config:*) ;;
	*:*:-*)
		words=$(grep -oE -- '--[a-z][a-z-]*' <<<"$help")
		;;
	halctl:info:* | halctl:probe:* | halctl:profile:*)
		words=$("$tool" list 2>/dev/null | sed -nE 's/^([a-z0-9_]+:[0-9]+) .*/\1/p')
		;;
	halctl:replay:* | halctl:-p:* | halctl:--program:* | halctl:-d:* | halctl:--delay:*) ;;
	halctl:policy:*)
		words='show set'
		;;
	halbench:*halbench:r*)
		words=report
		;;
	halctl:*)
		words=$(sed -nE 's/^  ([a-z]+) .*/\1/p' <<<"$help")
		;;
	esac
	mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur")
}

complete -o default -F _accelhal halctl halrun npuc halbench hal-ptx halpack

#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# stand_in_said.sh HALCTL: a device that only stands in for one says so wherever it is shown:
# by name and by capability in the lists, and in its info; no other device does.
set -euo pipefail
halctl=$1
# One line a device: backend, name, capabilities.
devices=$("$halctl" list --json | awk -F'"' '
	/"target":/ { line = $4 }
	/"name":/ && line { line = line "; " $4 }
	/"caps":/ { caps = 1 }
	caps && /"stand-in"/ { line = line "; stand-in" }
	caps && /\]/ { print line; caps = 0; line = "" }')
[ "$(grep -c '^levelzero:' <<<"$devices")" -ge 4 ] || { echo "too few: $devices"; exit 1; }
while read -r device; do
	case $device in
	levelzero:*" stand-in "*"; stand-in") ;;
	levelzero:* | *stand-in*) echo "not as it is: $device"; exit 1 ;;
	esac
done <<<"$devices"
# Not through a pipe: grep -q leaves at its first match, and halctl would fail to write.
grep -q '^levelzero:0 .* stand-in ' <<<"$("$halctl" list)" || { echo "list does not say it"; exit 1; }
grep -q '^capabilities .*stand-in' <<<"$("$halctl" info levelzero:0)" ||
	{ echo "info does not say it"; exit 1; }

#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# duplicates.sh SOURCE_DIR: lines that two backends share by copy: in runs of six lines or
# more that are the same, blank lines, comments and indentation apart.
set -euo pipefail
cd "$1/backends"
awk '
	FNR == 1 { folder = FILENAME; sub(/\/.*/, "", folder); n = 0 }
	{ gsub(/^[ \t]+|[ \t]+$/, "") }
	/^$/ || /^\/?\*/ || /^#include/ || /^[{}();]*$/ { next }
	{
		for (i = 6; i > 1; i--) { window[i] = window[i - 1]; at[i] = at[i - 1] }
		window[1] = $0; at[1] = FILENAME ":" FNR
		if (++n < 6) next
		key = window[6]
		for (i = 5; i >= 1; i--) key = key "\n" window[i]
		if (key in seen && seen[key] != folder) {
			for (i = 6; i >= 1; i--) same[at[i]] = window[i]
		}
		if (!(key in seen)) seen[key] = folder
	}
	END {
		for (k in same) { print k ": " same[k]; count++ }
		print "figure backend.duplicate_lines " count + 0
	}' */*.c */*.h | sort

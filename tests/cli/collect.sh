#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# collect.sh SOURCE_DIR HELP...: the commands in README, docs, manual pages and the files HELP,
# one a line: FILE, a tab, the command.  Targets that texts and headers name become
# `halctl info TARGET`.
set -euo pipefail
cd "$1"
shift
first='(sudo )?([A-Z_]+=[^ ]* )*(make|cmake|ctest|cc|halctl|halrun|npuc|halbench|hal-ptx|halpack|man|python3|pip|(build/dev|scripts|tests|tools|examples|PREFIX/bin|/tmp)/[a-z_/]+|prog(ram)?)( |$)'

pages=(README.md docs/*.md examples/*.md examples/*/*.md)
for page in "${pages[@]}"; do
	[ -e "$page" ] || continue
	# Blocks: a comment, or a column of explanations, ends a command; \ joins lines.
	sed -E ':join; /\\$/{N; s/\\\n */ /; b join}' "$page" |
		sed -nE '/^    (\$ )?[^ ]/{s/^    (\$ )?//; s/ +# .*//; s/ {3,}.*//; p}' |
		grep -E "^$first" | sed "s,^,$page\t," || true
	# In the text.
	sed -E '/^    /d; /^```/,/^```/d' "$page" | grep -oE '`[^`]+`' | tr -d '`' |
		grep -E "^$first." | grep -E ' ' | sed "s,^,$page\t," || true
done
for page in docs/man/man[157]/*; do
	sed -nE 's/^\.Dl //; T; s/\\e/\\/g; s/\\\(dq/"/g; p' "$page" | grep -E "^$first" |
		sed "s,^,$page\t," || true
done
for page in README.md docs/*.md docs/man/man[1357]/* hal/*.h "$@"; do
	grep -oE "[\"' (]((npu|ref)(:[0-9]+)?\?[a-z]+=[a-z0-9]+(&[a-z]+=[a-z0-9]+)*|(npu|ref):[0-9]+)[\"'\`,;.)]" "$page" |
		sed -E "s/^.(.*).\$/halctl info '\1'/; s,^,$page\t," || true
done

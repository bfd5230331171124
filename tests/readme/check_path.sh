#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# check_path.sh SOURCE_DIR: each function on the path of a submit, in docs/architecture.md, is defined
# in the folder that the page names.
set -euo pipefail
cd "$1"
rc=0 count=0
while read -r folder name _; do
	count=$((count + 1))
	grep -rqE --include='*.[ch]' "^[a-z].*[ *]$name\($|^[a-z][^;]*[ *]$name\([^;]*$" "$folder" ||
		{ echo "docs/architecture.md: no $name in $folder"; rc=1; }
done < <(sed -n '/^## The path of one/,/^## Where/s/^    \([a-z][a-z/]*  *[a-z_]*  .*\)/\1/p' docs/architecture.md)
[ $count -ge 20 ] || { echo "docs/architecture.md: only $count functions on the path"; exit 1; }
exit $rc

#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# check_backends.sh HALCTL README: the README's table is what the backends say of themselves.
set -euo pipefail
cd "$(mktemp -d)" # no hal.conf

written=$(sed -n '/^<!-- halctl backends --markdown -->$/,/^<!-- end -->$/{/^<!--/d;p;}' "$2")
[ -n "$written" ] || { echo "no table in $2"; exit 1; }
if ! diff <(echo "$written") <("$1" backends --markdown); then
	echo "< $2, > halctl backends --markdown"
	exit 1
fi

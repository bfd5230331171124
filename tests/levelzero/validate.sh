#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# validate.sh CONFORMANCE EXPECT WITNESS BAD_CALL: the conformance suite with the validation
# layer and parameter validation on; not one message may come.  First a call that must
# give one, so that a layer that is asleep fails the test.
set -euo pipefail
conformance=$1 expect=$2 witness=$3 bad_call=$4
export ZE_ENABLE_VALIDATION_LAYER=1 ZE_ENABLE_PARAMETER_VALIDATION=1
export HAL_BACKEND_LEVELZERO_LOADER=$witness
HAL_ZE_WITNESS=$(mktemp)
export HAL_ZE_WITNESS
trap 'rm -f "$HAL_ZE_WITNESS"' EXIT

messages() { # sum over the lines so far: errors that the driver did not give
	awk '{ calls += $1; n += $2 - $3; last = $4 } END { print n + 0, calls + 0, last }' \
		"$HAL_ZE_WITNESS"
}

"$bad_call" "$witness"
read -r n calls last < <(messages)
[ "$n" = 1 ] && [ "$last" = zeCommandListClose ] ||
	{ echo "the validation layer sleeps: $n messages of $calls calls"; exit 1; }
: >"$HAL_ZE_WITNESS"
for lists in immediate regular; do
	"$conformance" --backend "levelzero?clock=virtual&lists=$lists" \
		--expect "$expect"
done
read -r n calls last < <(messages)
echo "$calls calls, $n messages"
echo "figure levelzero.validation.messages $n"
[ "$calls" -gt 10000 ] || { echo "too few calls: nobody was watched"; exit 1; }
[ "$n" = 0 ] || { echo "the last was for $last"; exit 1; }

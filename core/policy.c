/* SPDX-License-Identifier: Apache-2.0 */
/* policy.c - the policies there are. */
#include "internal.h"

#include <string.h>

static const struct hal_policy *const policies[] = {
	&hal_policy_priority,
};

const struct hal_option_def policy_options[] = {
	{"name", HAL_OPTION_ENUM, 0, 0, "priority", "priority",
	 "who runs next among the queues of a partition"},
};
const uint32_t policy_option_count = ARRAY_LENGTH(policy_options);

const struct hal_policy *policy_find(const char *name)
{
	for (size_t i = 0; i < ARRAY_LENGTH(policies); i++)
		if (strcmp(policies[i]->name, name) == 0)
			return policies[i];
	return NULL;
}

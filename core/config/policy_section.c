/* SPDX-License-Identifier: Apache-2.0 */
/* policy_section.c - read section [policy]. */
#include "config/policy_section.h"

#include <errno.h>

#include "config/registry.h"
#include "util/error.h"

int policy_resolve(const struct config *cfg, const struct hal_policy **p,
		   struct hal_bk_config **out, struct policy_limits *limits)
{
	struct hal_bk_config *own = NULL;
	char text[400];
	int err =
		config_resolve(cfg, "policy", policy_options, policy_option_count, &own);

	*out = NULL;
	if (err != 0)
		return err;
	limits->starve_ns = (uint64_t)option_int(own, "timeout_ms") * UINT64_C(1000000);
	if (limits->starve_ns == 0)
		limits->starve_ns = UINT64_MAX;
	limits->kills = (uint32_t)option_int(own, "kills");
	limits->preempt = (uint32_t)option_int(own, "preempt");
	limits->preempt_for = (uint32_t)option_int(own, "preempt_for");
	limits->inherit = option_int(own, "inherit") != 0;
	limits->unknown_ns = (uint64_t)option_int(own, "preempt_unknown_us") * 1000;
	*p = policy_find(option_str(own, "name"));
	if (*p == NULL) {
		(void)policy_unknown(option_str(own, "name"));
		format_text(text, sizeof(text), "%s", hal_last_error());
		err = fail(EINVAL, "%s: policy.name: %s", option_source(own, "name"),
			   text);
	} else {
		err = config_resolve(cfg, "policy", (*p)->options, (*p)->option_count,
				     out);
	}
	config_values_free(own);
	return err;
}

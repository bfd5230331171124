/* SPDX-License-Identifier: Apache-2.0 */
/* policy_section.h - read section [policy]. */
#ifndef HAL_CONFIG_POLICY_SECTION_H
#define HAL_CONFIG_POLICY_SECTION_H

#include "config/config.h"
#include "loop/device.h"

/* Find the policy that [policy] names, and store it in *p.  Store the values of its own
 * options in *out, and of the options that all policies have in *limits.  Return -EINVAL
 * if the policy does not exist or a value is wrong.  Free *out with
 * config_values_free. */
int policy_resolve(const struct config *cfg, const struct hal_policy **p,
		   struct hal_bk_config **out, struct policy_limits *limits);

#endif

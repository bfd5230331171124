/* SPDX-License-Identifier: Apache-2.0 */
/* policy_section.h - what [policy] says. */
#ifndef HAL_CONFIG_POLICY_SECTION_H
#define HAL_CONFIG_POLICY_SECTION_H

#include "config/config.h"
#include "loop/device.h"

/* The policy of [policy] in cfg, its own options, and what all have.  -EINVAL: there is
 * none. */
int policy_resolve(const struct config *cfg, const struct hal_policy **p,
		   struct hal_bk_config **out, struct policy_limits *limits);

#endif

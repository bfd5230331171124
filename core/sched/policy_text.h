/* SPDX-License-Identifier: Apache-2.0 */
/* policy_text.h - a policy and its settings in one line. */
#ifndef HAL_SCHED_POLICY_TEXT_H
#define HAL_SCHED_POLICY_TEXT_H

#include "loop/device.h"
#include "util/option.h"

/* "NAME timeout_ms=N KEY=VALUE ...", for a journal; what is not plain in a value is %XX.
 */
#define POLICY_TEXT_BYTES 2048u
void policy_text(const struct hal_policy *p, const struct hal_bk_config *cfg,
		 const struct policy_limits *limits, char *text);

#endif

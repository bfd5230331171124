/* SPDX-License-Identifier: Apache-2.0 */
/* policy_text.h - write a policy and its settings as one line of text. */
#ifndef HAL_SCHED_POLICY_TEXT_H
#define HAL_SCHED_POLICY_TEXT_H

#include "loop/device.h"
#include "util/option.h"

/* Write "NAME timeout_ms=N KEY=VALUE ..." into text, for a journal.  Spaces, "%" and
 * unprintable bytes in names and values become %XX.  The buffer has POLICY_TEXT_BYTES
 * bytes. */
#define POLICY_TEXT_BYTES 2048u
void policy_text(const struct hal_policy *p, const struct hal_bk_config *cfg,
		 const struct policy_limits *limits, char *text);

#endif

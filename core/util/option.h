/* SPDX-License-Identifier: Apache-2.0 */
/* option.h - values of an option table, in force. */
#ifndef HAL_UTIL_OPTION_H
#define HAL_UTIL_OPTION_H

#include <hal/backend.h>

struct option_value {
	int64_t number;
	char *text;
	char source[128];
};

struct hal_bk_config {
	const struct hal_option_def *defs;
	uint32_t count;
	char section[32];
	struct option_value *values;
};

/* The value of key in cfg; NULL: cfg is NULL or has no such key. */
const struct option_value *option_find(const struct hal_bk_config *cfg, const char *key);
int64_t option_int(const struct hal_bk_config *cfg, const char *key);
const char *option_str(const struct hal_bk_config *cfg, const char *key);
/* Where its value came from, as "hal.conf:12". */
const char *option_source(const struct hal_bk_config *cfg, const char *key);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* option.h - the values of a section's options in force, and how to look them up. */
#ifndef HAL_UTIL_OPTION_H
#define HAL_UTIL_OPTION_H

#include <hal/backend.h>

struct option_value {
	int64_t number; /* integer, 0 or 1, or index of the choice; 0 for a string */
	char *text;
	char source[128]; /* where it was set, e.g. "hal.conf:12" or "default" */
};

/* The values of defs[0..count). */
struct hal_bk_config {
	const struct hal_option_def *defs;
	uint32_t count;
	char section[32];
	struct option_value *values;
};

/* Return the value of key in cfg: as a struct, as a number, or as text.  If cfg is NULL
 * or has no such key, return NULL (option_int: 0). */
const struct option_value *option_find(const struct hal_bk_config *cfg, const char *key);
int64_t option_int(const struct hal_bk_config *cfg, const char *key);
const char *option_str(const struct hal_bk_config *cfg, const char *key);
/* Return where the value was set, e.g. "hal.conf:12"; "" if there is no such key. */
const char *option_source(const struct hal_bk_config *cfg, const char *key);

#endif

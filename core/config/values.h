/* SPDX-License-Identifier: Apache-2.0 */
/* values.h - values of options, from the text that says them. */
#ifndef HAL_CONFIG_VALUES_H
#define HAL_CONFIG_VALUES_H

#include <stddef.h>

#include "config/config.h"

#define ENVIRONMENT_BYTES 128

/* Write to text which values d takes. */
void config_option_range(const struct hal_option_def *d, char *text, size_t size);

/* Check text, the value of d in section; *number of it, if it is one.  -EINVAL. */
int config_value_read(const struct hal_option_def *d, const char *section,
		      const char *text, const char *source, int64_t *number);

/* Write to out, of ENVIRONMENT_BYTES, the variable that sets key of section. */
void config_environment_name(char *out, const char *section, const char *key);

#endif

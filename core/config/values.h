/* SPDX-License-Identifier: Apache-2.0 */
/* values.h - check values of options, and name their environment variables. */
#ifndef HAL_CONFIG_VALUES_H
#define HAL_CONFIG_VALUES_H

#include <stddef.h>

#include "config/config.h"

#define ENVIRONMENT_BYTES 128 /* size of a buffer for a variable's name */

/* Write the range of values of option d to text, e.g. "1..64" or "yes|no". */
void config_option_range(const struct hal_option_def *d, char *text, size_t size);

/* Check text as a value of option d in section, and store its number in *number (0 for a
 * string).  source names its origin in the message.  Return -EINVAL if text is not a
 * valid value. */
int config_value_read(const struct hal_option_def *d, const char *section,
		      const char *text, const char *source, int64_t *number);

/* Write the name of the variable that sets key of section to out[0..ENVIRONMENT_BYTES).
 */
void config_environment_name(char *out, const char *section, const char *key);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* entry.h - what files and options say: section, key and value of each line. */
#ifndef HAL_CONFIG_ENTRY_H
#define HAL_CONFIG_ENTRY_H

#include <stdbool.h>
#include <stddef.h>

#include "config/config.h"

enum layer {
	LAYER_DEFAULT,
	LAYER_FILE,
	LAYER_ENVIRONMENT,
	LAYER_API,
};

/* Between the quotes of: partition "name".  NULL: that it is not. */
bool config_partition_section(const char *section, char *name, size_t size);

#define SECTION_BYTES 48

/* Return section, but with one blank before the name of a partition, in text. */
const char *config_section_name(const char *section, char text[SECTION_BYTES]);

int config_entry_add(struct config *cfg, enum layer layer, const char *section,
		     const char *key, const char *value, const char *source);
/* Return the newest entry of a layer; NULL: there is none. */
const struct config_entry *config_entry_find(const struct config *cfg, enum layer layer,
					     const char *section, const char *key);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* entry.h - the list of settings that the caller's options and files have made. */
#ifndef HAL_CONFIG_ENTRY_H
#define HAL_CONFIG_ENTRY_H

#include <stdbool.h>
#include <stddef.h>

#include "config/config.h"

/* Where a value comes from; later layers override earlier ones. */
enum layer {
	LAYER_DEFAULT,
	LAYER_FILE,
	LAYER_ENVIRONMENT,
	LAYER_API,
};

/* Copy NAME of a section `partition "NAME"` to name[0..size).  Return false if section
 * has another form, or NAME is empty or too long. */
bool config_partition_section(const char *section, char *name, size_t size);

#define SECTION_BYTES 48

/* Return the normal form of a section's name: exactly one space before the name of a
 * partition.  The result is section itself or is written to text. */
const char *config_section_name(const char *section, char text[SECTION_BYTES]);

/* Add a copy of an entry; return 0 or -ENOMEM. */
int config_entry_add(struct config *cfg, enum layer layer, const char *section,
		     const char *key, const char *value, const char *source);
/* Return the newest entry of layer for key of section; NULL if there is none. */
const struct config_entry *config_entry_find(const struct config *cfg, enum layer layer,
					     const char *section, const char *key);

#endif

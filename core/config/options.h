/* SPDX-License-Identifier: Apache-2.0 */
/* options.h - tables of the core's options.  Backends and policies have their own tables.
 */
#ifndef HAL_CONFIG_OPTIONS_H
#define HAL_CONFIG_OPTIONS_H

#include <stdbool.h>

#include <hal/backend.h>

extern const struct hal_option_def core_options[], partition_options[], layer_options[];
extern const uint32_t core_option_count, partition_option_count, layer_option_count;

/* A table of options, and its section. */
struct own_section {
	const char *name;
	const struct hal_option_def *defs;
	uint32_t count;
	bool unknown; /* the section is of a backend that did not load, so its options are
			 unknown */
};

/* The core's sections that have exactly one table: [hal] and [layers]. */
extern const struct own_section own_sections[];
extern const uint32_t own_section_count;

#endif

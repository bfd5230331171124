/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config.h - the configuration of one hal_open: options of the caller, the environment
 * and files.
 *
 *   config_load      collects the caller's options and those of files; resolves [hal]
 *   config_complete  loads the plug-ins that [hal] names; checks all options
 *   config_resolve   gives the values in force of one section
 *
 * The value in force is the caller's, else the environment's, else that of the last file,
 * else the default.
 */
#ifndef HAL_CONFIG_CONFIG_H
#define HAL_CONFIG_CONFIG_H

#include <stdint.h>

#include <hal/backend.h>
#include <hal/ext/memory.h>
#include <hal/ext/options.h>

#include "util/option.h"

/* One setting of an option by the caller or a file.  In a file, each section header is an
 * entry, too, with an empty key. */
struct config_entry {
	struct config_entry *next;
	char *section, *key, *value;
	char *source;  /* for messages: "/etc/accelhal/hal.conf:12", "option" */
	int layer;     /* enum layer (entry.h) */
	uint32_t file; /* number of the file that it is from, from 1; 0: no file */
};

struct config {
	struct config_entry *entries; /* newest first */
	uint32_t file_count;          /* files read so far */
	char *files; /* names of the files read, separated by commas; NULL: no file was
			read */
};

/* The contents of a section [partition "name"]. */
struct config_partition {
	struct hal_partition_desc desc; /* without .limits, which are: */
	struct hal_partition_limits limits;
	struct hal_queue_desc queues; /* defaults for its queues */
	char host[32];                /* partition whose guest it is; "": no guest */
	char source[128];             /* place of the section's header */
};

/* Collect options (a NULL-terminated list of "section.key=value", or NULL) and the
 * configuration files in cfg, and resolve section [hal] into *core.  After an error, *cfg
 * is empty and *core is NULL. */
int config_load(struct config *cfg, const char *const *options,
		struct hal_bk_config **core);
/* Load the plug-ins of [hal], which may define sections, then check cfg. */
int config_complete(const struct config *cfg, const struct hal_bk_config *core);
/* List all options with their values in force, in the order of config_table_at.  The
 * caller frees *list, also after an error; *list is NULL before the call. */
int config_list(const struct config *cfg, struct hal_option_info **list, uint32_t *count);
/* Free the contents of cfg. */
void config_free(struct config *cfg);
/* Add query, the "key=value&..." of a target, as options of section backend.BACKEND. */
int config_add_target(struct config *cfg, const char *backend, const char *target,
		      const char *query);
/* Add pair, "key=value", to section, as an option of the caller. */
int config_set(struct config *cfg, const char *section, const char *pair);
/* Check that every section, key and environment variable exists. */
int config_check(const struct config *cfg);
/* Compute the values in force of the options defs[0..count) of section.  Free *out with
 * config_values_free. */
int config_resolve(const struct config *cfg, const char *section,
		   const struct hal_option_def *defs, uint32_t count,
		   struct hal_bk_config **out);
void config_values_free(struct hal_bk_config *values);
/* Read section [partition "name"] into *out; return -ENOENT if there is no such
 * section. */
int config_partition(const struct config *cfg, const char *name,
		     struct config_partition *out);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* config.h - options from the API, the environment and files, in that order. */
#ifndef HAL_CONFIG_CONFIG_H
#define HAL_CONFIG_CONFIG_H

#include <stdint.h>

#include <hal/backend.h>

#include "util/option.h"

struct config_entry {
	struct config_entry *next;
	char *section, *key, *value;
	char *source; /* "/etc/accelhal/hal.conf:12", "option" */
	int layer;
	uint32_t file; /* number of the file that says it; 0: none does */
};

struct config {
	struct config_entry *entries;
	uint32_t file_count;
	char *files; /* their names, with commas between; NULL: none was read */
};

/* What [partition "name"] says. */
struct config_partition {
	struct hal_partition_desc desc;
	struct hal_queue_desc queues; /* of its queues, where they say nothing */
	char host[32];                /* the partition's whose guest it is; "": none */
	char source[128];
};

/* What is said, and what [hal] of it is. */
int config_load(struct config *cfg, const char *const *options,
		struct hal_bk_config **core);
/* Loads the plugins of [hal], which bring sections of their own, and checks all. */
int config_complete(const struct config *cfg, const struct hal_bk_config *core);
void config_free(struct config *cfg);
/* A target's "key=value&..." as options of backend.NAME. */
int config_add_target(struct config *cfg, const char *backend, const char *target,
		      const char *query);
/* key=value of section, as if the caller's options had said so. */
int config_set(struct config *cfg, const char *section, const char *pair);
/* Every section, key and variable is one that somebody declared. */
int config_check(const struct config *cfg);
int config_resolve(const struct config *cfg, const char *section,
		   const struct hal_option_def *defs, uint32_t count,
		   struct hal_bk_config **out);
void config_values_free(struct hal_bk_config *values);
int config_partition(const struct config *cfg, const char *name,
		     struct config_partition *out);

#endif

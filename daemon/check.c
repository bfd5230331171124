/* SPDX-License-Identifier: Apache-2.0 */
/* check.c - hald --check: find errors in a file of hal.conf(5) or hald.conf(5), by the
 * code that reads it, without a device. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/entry.h"
#include "config/ini.h"
#include "config/policy_section.h"
#include "hald.h"
#include "util/error.h"

/* Check the sections [policy] and [partition "name"], which are else read when a device
 * is opened and a partition is made of one. */
static int sections_check(const struct config *cfg)
{
	struct hal_bk_config *values = NULL;
	const struct hal_policy *policy;
	struct policy_limits limits;
	int err = policy_resolve(cfg, &policy, &values, &limits);

	if (err == 0)
		config_values_free(values);
	for (const struct config_entry *e = cfg->entries; err == 0 && e != NULL;
	     e = e->next) {
		struct config_partition part;
		char name[32];

		if (e->key[0] == '\0' &&
		    config_partition_section(e->section, name, sizeof(name)))
			err = config_partition(cfg, name, &part);
	}
	return err;
}

/* Check a file of hal.conf(5), as if it were the only one. */
static int library_check(const char *file)
{
	struct hal_option_info *list = NULL;
	struct hal_bk_config *core;
	struct config cfg;
	const char *options[] = {NULL, NULL};
	char *option;
	uint32_t count;
	int err;

	/* NOLINTNEXTLINE(concurrency-mt-unsafe): there is no other thread */
	if (setenv("HAL_CONFIG", "/dev/null", 1) != 0 ||
	    asprintf(&option, "hal.config=%s", file) < 0)
		return fail(ENOMEM, "no memory");
	options[0] = option;
	err = config_load(&cfg, options, &core);
	if (err == 0)
		err = config_complete(&cfg, core);
	if (err == 0)
		err = sections_check(&cfg);
	if (err == 0)
		err = config_list(&cfg, &list, &count);
	config_values_free(core);
	config_free(&cfg);
	free(list);
	free(option);
	return err;
}

/* Set *found if file has a section of a tenant. */
static int tenants_find(const char *file, bool *found)
{
	struct config cfg = {NULL, 0, NULL};
	int err = ini_load_named(&cfg, file);

	*found = false;
	for (const struct config_entry *e = cfg.entries; e != NULL; e = e->next)
		*found |= strncmp(e->section, "tenant", strlen("tenant")) == 0;
	config_free(&cfg);
	return err;
}

int check_file(const char *file)
{
	struct tenant *tenants = NULL;
	const char *why;
	bool found;
	int err = tenants_find(file, &found);

	if (err == 0)
		err = found ? tenants_load(file, &tenants) : library_check(file);
	tenants_free(tenants);
	if (err == 0) {
		printf("%s: ok\n", file);
		return 0;
	}
	why = hal_last_error();
	if (strncmp(why, file, strlen(file)) == 0)
		fprintf(stderr, "%s\n", why);
	else
		fprintf(stderr, "%s: %s\n", file, why);
	return 1;
}

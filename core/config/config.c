/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config.c - collect the options that the caller, the environment and files set.
 *
 * Settings of the caller and of files become entries (entry.h).  Environment variables
 * are read when an option is resolved (values.c).  The caller's settings override the
 * environment, which overrides files, which override defaults.
 */
#include "config/config.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "config/entry.h"
#include "config/find.h"
#include "config/ini.h"
#include "config/options.h"
#include "config/registry.h"
#include "util/error.h"
#include "util/log.h"

/* ---- options that the caller sets ------------------------------------------------ */

/* Add the caller's option "section.key=value".  The section may contain dots. */
static int option_parse(struct config *cfg, const char *text)
{
	const char *equals = strchr(text, '=');
	const char *dot = NULL;
	char *copy;
	int err;

	for (const char *p = text; equals != NULL && p < equals; p++)
		if (*p == '.')
			dot = p;
	if (dot == NULL || dot == text || dot + 1 == equals)
		return fail(EINVAL, "option \"%s\" is not section.key=value", text);
	copy = strdup(text);
	if (copy == NULL)
		return fail(ENOMEM, "no memory for the options");
	copy[dot - text] = '\0';
	copy[equals - text] = '\0';
	err = config_entry_add(cfg, LAYER_API, copy, copy + (dot - text) + 1, equals + 1,
			       "option");
	free(copy);
	return err;
}

int config_add_target(struct config *cfg, const char *backend, const char *target,
		      const char *query)
{
	char section[48];
	char source[128];
	char *copy = strdup(query);
	char *rest = copy;
	char *pair;
	int err = 0;

	if (copy == NULL)
		return fail(ENOMEM, "no memory for the target");
	format_text(section, sizeof(section), "backend.%s", backend);
	format_text(source, sizeof(source), "target %s", target);
	while (err == 0 && (pair = strsep(&rest, "&")) != NULL) {
		const struct config_entry *again;
		const char *in, *key;
		char *equals = strchr(pair, '='), *dot;

		if (equals == NULL || equals == pair) {
			err = fail(EINVAL, "target \"%s\": \"%s\" is not key=value",
				   target, pair);
			break;
		}
		*equals = '\0';
		/* A key with a dot names its section: layers.validate=1. */
		dot = strchr(pair, '.');
		if (dot != NULL)
			*dot = '\0';
		in = dot != NULL ? pair : section;
		key = dot != NULL ? dot + 1 : pair;
		again = config_entry_find(cfg, LAYER_API, in, key);
		/* The target may override an option of the caller, but not repeat its
		 * own keys. */
		if (again != NULL && strcmp(again->source, source) == 0)
			err = fail(EINVAL, "target \"%s\": key %s is repeated", target,
				   key);
		else
			err = config_entry_add(cfg, LAYER_API, in, key, equals + 1,
					       source);
	}
	free(copy);
	return err;
}

int config_set(struct config *cfg, const char *section, const char *pair)
{
	const char *equals = strchr(pair, '=');
	char *key;
	int err;

	if (equals == NULL || equals == pair)
		return fail(EINVAL, "option \"%s\" is not key=value", pair);
	key = strndup(pair, (size_t)(equals - pair));
	if (key == NULL)
		return fail(ENOMEM, "no memory for the options");
	err = config_entry_add(cfg, LAYER_API, section, key, equals + 1, "option");
	free(key);
	return err;
}

/* ---- files ----------------------------------------------------------------------- */

static bool is_set(const char *name)
{
	return name != NULL && name[0] != '\0';
}

/* Return whether name is /dev/null: then neither this file nor any before it is read. */
static bool is_none(const char *name)
{
	return is_set(name) && strcmp(name, "/dev/null") == 0;
}

static int files_load(struct config *cfg)
{
	const struct config_entry *e = config_entry_find(cfg, LAYER_API, "hal", "config");
	const char *last = e != NULL ? e->value : secure_getenv("HAL_HAL_CONFIG");
	const char *named = secure_getenv("HAL_CONFIG");
	int err = 0;

	if (is_none(last))
		return 0;
	if (!is_none(named)) {
		err = find_files(ini_load_found, cfg);
		if (err == 0 && is_set(named))
			err = ini_load_named(cfg, named);
	}
	if (err == 0 && is_set(last))
		err = ini_load_named(cfg, last);
	return err;
}

static int sources_load(struct config *cfg, const char *const *options)
{
	for (size_t i = 0; options != NULL && options[i] != NULL; i++) {
		int err = option_parse(cfg, options[i]);

		if (err != 0)
			return err;
	}
	return files_load(cfg);
}

/* ---- load and check -------------------------------------------------------------- */

int config_load(struct config *cfg, const char *const *options,
		struct hal_bk_config **core)
{
	int err;

	memset(cfg, 0, sizeof(*cfg));
	*core = NULL;
	err = log_environment();
	if (err == 0)
		err = sources_load(cfg, options);
	if (err == 0)
		err = config_resolve(cfg, "hal", core_options, core_option_count, core);
	if (err != 0)
		config_free(cfg);
	return err;
}

int config_complete(const struct config *cfg, const struct hal_bk_config *core)
{
	int err = registry_load(option_str(core, "plugins"));

	return err != 0 ? err : config_check(cfg);
}

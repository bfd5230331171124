/* SPDX-License-Identifier: Apache-2.0 */
/*
 * values.c - compute the values of options in force.
 *
 * The caller's value overrides the environment's, which overrides the files', which
 * overrides the default.  Overridden values are checked, too.
 */
#include "config/values.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "config/entry.h"
#include "util/compiler.h"
#include "util/error.h"

/* Parse a decimal or hexadecimal number; with suffix, K, M, G or T may follow. */
static int parse_integer(const char *text, bool suffix, int64_t *out)
{
	char *end;
	long long n;
	int shift = 0;

	errno = 0;
	/* A leading 0 does not mean octal: 010 is ten. */
	n = strtoll(text, &end, strncasecmp(text, "0x", 2) == 0 ? 16 : 10);
	if (end == text || errno != 0)
		return -EINVAL;
	if (suffix && *end != '\0') {
		const char *units = "KMGT";
		const char *u = strchr(units, toupper((unsigned char)*end));

		if (u == NULL)
			return -EINVAL;
		shift = 10 * (int)(u - units + 1);
		end++;
	}
	if (*end != '\0' || n > (INT64_MAX >> shift) || (shift != 0 && n < 0))
		return -EINVAL;
	*out = (int64_t)n * (INT64_C(1) << shift);
	return 0;
}

static int parse_bool(const char *text, int64_t *out)
{
	static const char *const words[] = {"0", "no",  "off", "false",
					    "1", "yes", "on",  "true"};

	for (size_t i = 0; i < ARRAY_LENGTH(words); i++) {
		if (strcasecmp(text, words[i]) == 0) {
			*out = i >= ARRAY_LENGTH(words) / 2;
			return 0;
		}
	}
	return -EINVAL;
}

/* Find text among choices, "a|b|c", and store its index. */
static int parse_enum(const char *choices, const char *text, int64_t *out)
{
	int64_t index = 0;
	size_t length = strlen(text);

	for (const char *p = choices; p != NULL; index++) {
		const char *bar = strchr(p, '|');
		size_t n = bar != NULL ? (size_t)(bar - p) : strlen(p);

		if (n == length && n > 0 && memcmp(p, text, n) == 0) {
			*out = index;
			return 0;
		}
		p = bar != NULL ? bar + 1 : NULL;
	}
	return -EINVAL;
}

void config_option_range(const struct hal_option_def *d, char *text, size_t size)
{
	switch (d->type) {
	case HAL_OPTION_INT:
	case HAL_OPTION_SIZE:
		format_text(text, size, "%lld..%lld", (long long)d->min,
			    (long long)d->max);
		break;
	case HAL_OPTION_BOOL:
		format_text(text, size, "yes|no");
		break;
	case HAL_OPTION_ENUM:
		format_text(text, size, "%s", d->choices);
		break;
	default:
		format_text(text, size, "any");
		break;
	}
}

/* Convert text to the number of option d: an integer, 0 or 1, or the index of a choice.
 */
static int value_parse(const struct hal_option_def *d, const char *text, int64_t *out)
{
	int err = 0;

	*out = 0;
	switch (d->type) {
	case HAL_OPTION_INT:
	case HAL_OPTION_SIZE:
		err = parse_integer(text, d->type == HAL_OPTION_SIZE, out);
		if (err == 0 && (*out < d->min || *out > d->max))
			err = -ERANGE;
		break;
	case HAL_OPTION_BOOL:
		err = parse_bool(text, out);
		break;
	case HAL_OPTION_ENUM:
		err = parse_enum(d->choices, text, out);
		break;
	default:
		break;
	}
	return err;
}

int config_value_read(const struct hal_option_def *d, const char *section,
		      const char *text, const char *source, int64_t *number)
{
	const size_t room = sizeof(((struct hal_option_info *)NULL)->value);
	char range[96];

	if (strlen(text) >= room)
		return fail(EINVAL,
			    "%s: [%s] %s: value has %zu characters; the limit is %zu",
			    source, section, d->key, strlen(text), room - 1);
	if (value_parse(d, text, number) == 0)
		return 0;
	config_option_range(d, range, sizeof(range));
	return fail(EINVAL, "%s: [%s] %s = \"%s\" is not in %s", source, section, d->key,
		    text, range);
}

/* Set v to text, after a check. */
static int value_set(struct option_value *v, const struct hal_option_def *d,
		     const char *section, const char *text, const char *source)
{
	int64_t number = 0;
	int err = config_value_read(d, section, text, source, &number);

	if (err != 0)
		return err;
	free(v->text);
	v->text = strdup(text);
	if (v->text == NULL)
		return fail(ENOMEM, "no memory for the options");
	v->number = number;
	format_text(v->source, sizeof(v->source), "%s", source);
	return 0;
}

void config_environment_name(char *out, const char *section, const char *key)
{
	format_text(out, ENVIRONMENT_BYTES, "HAL_%s_%s", section, key);
	for (char *p = out; *p != '\0'; p++)
		*p = isalnum((unsigned char)*p) ? (char)toupper((unsigned char)*p) : '_';
}

/* Return whether list, paths separated by colons, contains path[0..length). */
static bool has_path(const char *list, const char *path, size_t length)
{
	while (list != NULL) {
		if (strncmp(list, path, length) == 0 &&
		    (list[length] == ':' || list[length] == '\0'))
			return true;
		list = strchr(list, ':');
		list += list != NULL;
	}
	return false;
}

/* Insert in front of *text those paths of list that it does not contain. */
static int paths_join(char **text, const char *list)
{
	char *copy = strdup(list), *rest = copy, *path, *joined;
	size_t size = strlen(list) + strlen(*text) + 2, used = 0;

	joined = copy != NULL ? calloc(1, size) : NULL;
	while (joined != NULL && (path = strsep(&rest, ":")) != NULL)
		if (path[0] != '\0' && !has_path(*text, path, strlen(path))) {
			format_text(joined + used, size - used, "%s:", path);
			used += strlen(path) + 1;
		}
	free(copy);
	if (joined == NULL)
		return fail(ENOMEM, "no memory for the options");
	format_text(joined + used, size - used, "%s", *text);
	if (used > 0 && (*text)[0] == '\0')
		joined[used - 1] = '\0';
	free(*text);
	*text = joined;
	return 0;
}

/* Add the plug-ins of all files to v, which has only the plug-ins of the last file.
 * Files add plug-ins instead of replacing them, because a file may have sections of its
 * plug-ins. */
static int plugins_join(const struct config *cfg, struct option_value *v)
{
	bool last = true;
	int err = 0;

	for (const struct config_entry *e = cfg->entries; err == 0 && e != NULL;
	     e = e->next) {
		if (e->layer != LAYER_FILE || strcmp(e->section, "hal") != 0 ||
		    strcmp(e->key, "plugins") != 0)
			continue;
		if (!last)
			err = paths_join(&v->text, e->value);
		last = false;
	}
	return err;
}

/* Compute the value of option d of section, from all sources. */
static int option_resolve(const struct config *cfg, const char *section,
			  const struct hal_option_def *d, struct option_value *v)
{
	const struct config_entry *e;
	char name[ENVIRONMENT_BYTES];
	char source[ENVIRONMENT_BYTES + 16];
	const char *text;
	int err;

	err = value_set(v, d, section, d->def != NULL ? d->def : "", "default");
	if (err != 0)
		return err;
	/* Check the values of all files: a wrong line is an error even if it is
	 * overridden. */
	for (e = cfg->entries; e != NULL; e = e->next)
		if (e->layer == LAYER_FILE && strcmp(e->section, section) == 0 &&
		    strcmp(e->key, d->key) == 0 &&
		    (err = value_set(v, d, section, e->value, e->source)) != 0)
			return err;
	e = config_entry_find(cfg, LAYER_FILE, section, d->key);
	if (e != NULL && (err = value_set(v, d, section, e->value, e->source)) != 0)
		return err;
	if (strcmp(section, "hal") == 0 && strcmp(d->key, "plugins") == 0 &&
	    (err = plugins_join(cfg, v)) != 0)
		return err;
	config_environment_name(name, section, d->key);
	text = secure_getenv(name);
	if (text != NULL) {
		format_text(source, sizeof(source), "environment %s", name);
		if ((err = value_set(v, d, section, text, source)) != 0)
			return err;
	}
	e = config_entry_find(cfg, LAYER_API, section, d->key);
	return e != NULL ? value_set(v, d, section, e->value, e->source) : 0;
}

void config_values_free(struct hal_bk_config *values)
{
	if (values == NULL)
		return;
	for (uint32_t i = 0; i < values->count; i++)
		free(values->values[i].text);
	free(values->values);
	free(values);
}

int config_resolve(const struct config *cfg, const char *section,
		   const struct hal_option_def *defs, uint32_t count,
		   struct hal_bk_config **out)
{
	struct hal_bk_config *c = calloc(1, sizeof(*c));
	int err = 0;

	*out = NULL;
	if (c == NULL)
		return fail(ENOMEM, "no memory for the options");
	c->values = calloc(count + 1, sizeof(*c->values));
	if (c->values == NULL) {
		free(c);
		return fail(ENOMEM, "no memory for the options");
	}
	c->defs = defs;
	c->count = count;
	format_text(c->section, sizeof(c->section), "%s", section);
	for (uint32_t i = 0; err == 0 && i < count; i++)
		err = option_resolve(cfg, section, &defs[i], &c->values[i]);
	if (err != 0)
		config_values_free(c);
	else
		*out = c;
	return err;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* entry.c - the list of settings that the caller's options and files have made. */
#include "config/entry.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/error.h"

static void entry_free(struct config_entry *e)
{
	free(e->section);
	free(e->key);
	free(e->value);
	free(e->source);
	free(e);
}

bool config_partition_section(const char *section, char *name, size_t size)
{
	const char *p = section + strlen("partition");
	size_t length;

	if (strncmp(section, "partition", strlen("partition")) != 0)
		return false;
	p += strspn(p, " \t");
	length = strlen(p);
	if (length < 3 || p[0] != '"' || p[length - 1] != '"' || length - 2 >= size)
		return false;
	memcpy(name, p + 1, length - 2);
	name[length - 2] = '\0';
	return true;
}

const char *config_section_name(const char *section, char text[SECTION_BYTES])
{
	char name[32];

	if (!config_partition_section(section, name, sizeof(name)))
		return section;
	format_text(text, SECTION_BYTES, "partition \"%s\"", name);
	return text;
}

int config_entry_add(struct config *cfg, enum layer layer, const char *section,
		     const char *key, const char *value, const char *source)
{
	struct config_entry *e = calloc(1, sizeof(*e));
	char text[SECTION_BYTES];

	if (e == NULL)
		return fail(ENOMEM, "no memory for the configuration");
	e->section = strdup(config_section_name(section, text));
	e->key = strdup(key);
	e->value = strdup(value);
	e->source = strdup(source);
	e->layer = (int)layer;
	e->file = layer == LAYER_FILE ? cfg->file_count : 0;
	if (e->section == NULL || e->key == NULL || e->value == NULL ||
	    e->source == NULL) {
		entry_free(e);
		return fail(ENOMEM, "no memory for the configuration");
	}
	/* The newest entry is first, so that the last setting of a layer wins. */
	e->next = cfg->entries;
	cfg->entries = e;
	return 0;
}

const struct config_entry *config_entry_find(const struct config *cfg, enum layer layer,
					     const char *section, const char *key)
{
	for (const struct config_entry *e = cfg->entries; e != NULL; e = e->next)
		if (e->layer == (int)layer && strcmp(e->section, section) == 0 &&
		    strcmp(e->key, key) == 0)
			return e;
	return NULL;
}

void config_free(struct config *cfg)
{
	while (cfg->entries != NULL) {
		struct config_entry *next = cfg->entries->next;

		entry_free(cfg->entries);
		cfg->entries = next;
	}
	free(cfg->files);
	cfg->files = NULL;
}

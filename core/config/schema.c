/* SPDX-License-Identifier: Apache-2.0 */
/*
 * schema.c - check that every section, key and environment variable exists.
 *
 * The tables of options of the core, the policies and the backends say which exist.  A
 * misspelt name is an error, never ignored.
 */
#include "config/schema.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "config/entry.h"
#include "config/registry.h"
#include "config/values.h"
#include "util/compiler.h"
#include "util/error.h"

/* Return the definition of key, or NULL. */
static const struct hal_option_def *def_find(const struct hal_option_def *defs,
					     uint32_t count, const char *key)
{
	for (uint32_t i = 0; i < count; i++)
		if (strcmp(defs[i].key, key) == 0)
			return &defs[i];
	return NULL;
}

#define KEYS_BYTES 384

/* List the keys in text, as " a b c". */
static void keys_text(char text[KEYS_BYTES], const struct hal_option_def *defs,
		      uint32_t count)
{
	size_t used = 0;

	text[0] = '\0';
	for (uint32_t i = 0; i < count && used < KEYS_BYTES; i++) {
		format_text(text + used, KEYS_BYTES - used, " %s", defs[i].key);
		used += strlen(text + used);
	}
}

/* Return the policy that the configuration selects, or NULL if it does not exist. */
static const struct hal_policy *policy_selected(const struct config *cfg)
{
	const struct config_entry *e =
		config_entry_find(cfg, LAYER_API, "policy", "name");
	const char *name = e != NULL ? e->value : secure_getenv("HAL_POLICY_NAME");

	if (name == NULL) {
		e = config_entry_find(cfg, LAYER_FILE, "policy", "name");
		name = e != NULL ? e->value : policy_options[0].def;
	}
	return policy_find(name);
}

/* Fail because section has no option key.  The message lists its options, and for
 * [policy] those of the selected policy, too. */
static int unknown_key(const struct config *cfg, const char *source, const char *section,
		       const char *key, const struct hal_option_def *defs, uint32_t count)
{
	const struct hal_policy *p =
		strcmp(section, "policy") == 0 ? policy_selected(cfg) : NULL;
	char known[KEYS_BYTES], own[KEYS_BYTES];

	keys_text(known, defs, count);
	if (p == NULL || p->option_count == 0)
		return fail(EINVAL, "%s: [%s] has no option %s; it has%s", source,
			    section, key, known);
	keys_text(own, p->options, p->option_count);
	return fail(EINVAL, "%s: [%s] has no option %s; it has%s, and for policy %s%s",
		    source, section, key, known, p->name, own);
}

/* Check that the key of e is one of defs.  If a file made the entry e, also check its
 * value. */
static int key_check(const struct config *cfg, const struct config_entry *e,
		     const struct hal_option_def *defs, uint32_t count)
{
	const struct hal_option_def *d = def_find(defs, count, e->key);
	int64_t number;

	if (e->key[0] == '\0')
		return 0;
	if (d != NULL && (e->layer != LAYER_FILE || defs == partition_options))
		return 0;
	/* Other values are checked when they are resolved.  Those of files are checked
	 * here, because their backend may never be opened.  Values of a partition are
	 * checked when it is created. */
	if (d != NULL)
		return config_value_read(d, e->section, e->value, e->source, &number);
	return unknown_key(cfg, e->source, e->section, e->key, defs, count);
}

/* Check entry e of [policy].  Options of every policy are accepted, because the policy
 * may be changed while the device is open. */
static int policy_key_check(const struct config *cfg, const struct config_entry *e)
{
	for (uint32_t i = 0; i < policy_count(); i++)
		if (def_find(policy_at(i)->options, policy_at(i)->option_count, e->key) !=
		    NULL)
			return key_check(cfg, e, policy_at(i)->options,
					 policy_at(i)->option_count);
	return key_check(cfg, e, policy_options, policy_option_count);
}

static int config_entry_check(const struct config *cfg, const struct config_entry *e)
{
	const struct backend *b;
	char name[32];

	for (uint32_t i = 0; i < own_section_count; i++)
		if (strcmp(e->section, own_sections[i].name) == 0)
			return key_check(cfg, e, own_sections[i].defs,
					 own_sections[i].count);
	if (strcmp(e->section, "policy") == 0)
		return policy_key_check(cfg, e);
	if (config_partition_section(e->section, name, sizeof(name)))
		return key_check(cfg, e, partition_options, partition_option_count);
	if (strncmp(e->section, "backend.", 8) == 0) {
		b = registry_find(e->section + 8);
		if (b != NULL && b->err != 0)
			return 0; /* it did not load, so its options are unknown */
		if (b != NULL)
			return key_check(cfg, e, b->table.options, b->table.option_count);
		return fail(EINVAL, "%s: [%s]: this build has no backend %s", e->source,
			    e->section, e->section + 8);
	}
	return fail(EINVAL,
		    "%s: no section [%s]; there are [hal], [policy], [layers], "
		    "[backend.NAME] and [partition \"name\"] (a name has 1 to 31 "
		    "characters)",
		    e->source, e->section);
}

bool config_table_at(uint32_t index, struct own_section *t)
{
	if (index < own_section_count) {
		*t = own_sections[index];
		return true;
	}
	index -= own_section_count;
	if (index <= policy_count()) {
		const struct hal_policy *p = index > 0 ? policy_at(index - 1) : NULL;

		t->name = "policy";
		t->defs = p != NULL ? p->options : policy_options;
		t->count = p != NULL ? p->option_count : policy_option_count;
		t->unknown = false;
		return true;
	}
	index -= 1 + policy_count();
	if (index >= registry_count())
		return false;
	t->name = registry_at(index)->section;
	t->defs = registry_at(index)->table.options;
	t->count = registry_at(index)->table.option_count;
	t->unknown = registry_at(index)->err != 0;
	return true;
}

/* An environment variable HAL_SECTION_KEY. */
struct variable {
	char name[ENVIRONMENT_BYTES];
	struct own_section section; /* longest section name with which .name begins */
	size_t matched;             /* length of that beginning; 0: none */
};

/* Return whether v sets an option of t.  If not, but v's name begins with t's section,
 * store t in v. */
static bool variable_of(struct variable *v, const struct own_section *t)
{
	char name[ENVIRONMENT_BYTES];
	size_t length;

	for (uint32_t i = 0; i < t->count; i++) {
		config_environment_name(name, t->name, t->defs[i].key);
		if (strcmp(v->name, name) == 0)
			return true;
	}
	config_environment_name(name, t->name, "");
	length = strlen(name);
	if (length > v->matched && strncmp(v->name, name, length) == 0) {
		v->section = *t;
		v->matched = length;
	}
	return false;
}

/* Check that v sets an option of any table. */
static int variable_check(const struct config *cfg, struct variable *v)
{
	struct own_section t = {.defs = partition_options,
				.count = partition_option_count};
	char source[ENVIRONMENT_BYTES + 16];

	for (const struct config_entry *e = cfg->entries; e != NULL; e = e->next) {
		t.name = e->section;
		if (strncmp(e->section, "partition", strlen("partition")) == 0 &&
		    variable_of(v, &t))
			return 0;
	}
	for (uint32_t i = 0; config_table_at(i, &t); i++)
		if (variable_of(v, &t))
			return 0;
	if (v->section.unknown)
		return 0;
	format_text(source, sizeof(source), "environment %s", v->name);
	if (v->matched > 0)
		return unknown_key(cfg, source, v->section.name, v->name + v->matched,
				   v->section.defs, v->section.count);
	return fail(EINVAL, "%s: no backend or partition has an option of that name",
		    source);
}

/* Return whether a and b are equal, or differ by one typing error: a letter replaced,
 * missing or added, or two neighbours swapped. */
static bool one_off(const char *a, size_t a_length, const char *b)
{
	size_t b_length = strlen(b), same = 0, ends = 0;

	while (same < a_length && same < b_length && a[same] == b[same])
		same++;
	while (ends < a_length - same && ends < b_length - same &&
	       a[a_length - 1 - ends] == b[b_length - 1 - ends])
		ends++;
	a_length -= same + ends;
	b_length -= same + ends;
	if (a_length == 2 && b_length == 2)
		return a[same] == b[same + 1] && a[same + 1] == b[same];
	return a_length <= 1 && b_length <= 1;
}

/* Fail if word, a variable without HAL_, is a key of [hal] whose section was forgotten.
 * HAL_CONFIG is valid: it names a file. */
static int check_sectionless(const char *word)
{
	size_t length = strcspn(word, "=");
	char name[ENVIRONMENT_BYTES];

	for (uint32_t i = 0; i < core_option_count; i++) {
		const char *key = name + strlen("HAL_HAL_");

		config_environment_name(name, "hal", core_options[i].key);
		if (strcmp(core_options[i].key, "config") != 0 && strlen(key) == length &&
		    memcmp(word, key, length) == 0)
			return fail(EINVAL,
				    "environment HAL_%s: no section; did you mean %s?",
				    key, name);
	}
	return 0;
}

/* Check the environment variables that begin with HAL_ and the name of a section, and
 * report those whose section is misspelt. */
static int environment_check(const struct config *cfg)
{
	static const char *const sections[] = {"HAL", "POLICY", "LAYERS", "BACKEND",
					       "PARTITION"};

	/* A program with more rights than its user ignores the environment. */
	if (getauxval(AT_SECURE) != 0)
		return 0;
	for (char **e = environ; e != NULL && *e != NULL; e++) {
		struct variable v = {.matched = 0};
		const char *word = *e + strlen("HAL_");
		size_t length, i = 0;
		bool exact;
		int err;

		if (strncmp(*e, "HAL_", strlen("HAL_")) != 0)
			continue;
		err = check_sectionless(word);
		if (err != 0)
			return err;
		length = strcspn(word, "_=");
		if (word[length] != '_')
			continue;
		while (i < ARRAY_LENGTH(sections) && !one_off(word, length, sections[i]))
			i++;
		if (i == ARRAY_LENGTH(sections))
			continue;
		exact = length == strlen(sections[i]) &&
			memcmp(word, sections[i], length) == 0;
		/* "HAL" is so short that variables of other programs resemble it. */
		if (i == 0 && !exact)
			continue;
		format_text(v.name, sizeof(v.name), "HAL_%.*s", (int)strcspn(word, "="),
			    word);
		if (!exact)
			return fail(
				EINVAL,
				"environment %s: no section %.*s; did you mean HAL_%s_?",
				v.name, (int)length, word, sections[i]);
		err = variable_check(cfg, &v);
		if (err != 0)
			return err;
	}
	return 0;
}

int config_check(const struct config *cfg)
{
	const struct config_entry *first = NULL;

	/* Entries are newest first, but the first wrong line should be reported. */
	for (const struct config_entry *e = cfg->entries; e != NULL; e = e->next)
		if (config_entry_check(cfg, e) != 0)
			first = e;
	return first != NULL ? config_entry_check(cfg, first) : environment_check(cfg);
}

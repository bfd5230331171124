/* SPDX-License-Identifier: Apache-2.0 */
/* options.c - keys and values that the user gives with the delegate. */
#include "plug.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum form {
	TEXT,
	TARGET,
	COUNT16,
	COUNT32,
	SIGNED32,
	COUNT64,
	SIZE,
	CLASS,
	REFERENCE,
	SWITCH,
	LEVEL,
	EXCLUDE,
};

static const struct key {
	const char *name;
	enum form form;
	size_t at; /* in struct options */
} keys[] = {
#define KEY(name, form)                                                                  \
	{                                                                                \
#name, form, offsetof(struct options, name)                              \
	}
	KEY(target, TARGET),
	KEY(partition, TEXT),
	KEY(units, COUNT32),
	KEY(rows, COUNT16),
	KEY(cols, COUNT16),
	KEY(row, COUNT16),
	KEY(col, COUNT16),
	{"class", CLASS, offsetof(struct options, service_class)},
	KEY(priority, SIGNED32),
	KEY(deadline_us, COUNT64),
	KEY(weight, COUNT32),
	KEY(memory_bytes, SIZE),
	KEY(bandwidth, SIZE),
	KEY(min_macs, COUNT64),
	KEY(max_partitions, COUNT32),
	KEY(exclude, EXCLUDE),
	KEY(reference, REFERENCE),
	KEY(strict, SWITCH),
	KEY(cache_dir, TEXT),
	KEY(trace, TEXT),
	KEY(log, LEVEL),
#undef KEY
};

#define KEYS (sizeof(keys) / sizeof(keys[0]))

static const char *const classes[] = {"normal", "latency", "best_effort"};

static int refuse(char why[NPUC_WHY], const char *key, const char *value,
		  const char *allowed)
{
	snprintf(why, NPUC_WHY, "option %.60s=%.120s: %s", key, value, allowed);
	return -EINVAL;
}

static int unknown(const char *key, const char *value, char why[NPUC_WHY])
{
	int n = snprintf(why, NPUC_WHY, "unknown option %.60s=%.60s; known are", key,
			 value);

	for (size_t i = 0; i < KEYS && n > 0 && n < NPUC_WHY; i++)
		n += snprintf(why + n, NPUC_WHY - (size_t)n, "%s %s", i ? "," : "",
			      keys[i].name);
	return -EINVAL;
}

/* Read a whole number up to most; with suffixes, K, M and G multiply it by 1024. */
static int number(const char *value, uint64_t most, bool suffixes, uint64_t *n)
{
	char *end;
	uint32_t shift = 0;

	if (*value < '0' || *value > '9')
		return -EINVAL;
	errno = 0;
	*n = strtoull(value, &end, 0);
	if (suffixes && *end && strchr("KMG", *end)) {
		shift = *end == 'K' ? 10 : *end == 'M' ? 20 : 30;
		end++;
	}
	if (errno || *end || *n > (most >> shift))
		return -EINVAL;
	*n <<= shift;
	return 0;
}

static int set_text(char **field, const char *value)
{
	char *copy = strdup(value);

	if (!copy)
		return -ENOMEM;
	free(*field);
	*field = copy;
	return 0;
}

/* Tools that split options at ':' pass "npu@0" for "npu:0". */
static int set_target(char **field, const char *value)
{
	size_t name = strcspn(value, ":@?");
	int rc = set_text(field, value);

	if (!rc && value[name] == '@')
		(*field)[name] = ':';
	return rc;
}

static int set_signed(int32_t *field, const char *value)
{
	uint64_t n;
	bool minus = *value == '-';

	if (number(value + minus, INT32_MAX, false, &n))
		return -EINVAL;
	*field = minus ? -(int32_t)n : (int32_t)n;
	return 0;
}

static int set_class(uint16_t *field, const char *value)
{
	for (size_t i = 0; i < sizeof(classes) / sizeof(classes[0]); i++)
		if (strcmp(value, classes[i]) == 0) {
			*field = (uint16_t)i;
			return 0;
		}
	return -EINVAL;
}

static int set_reference(enum npuc_reference *field, const char *value)
{
	if (strcmp(value, "current") != 0 && strcmp(value, "2.14") != 0)
		return -EINVAL;
	*field = *value == 'c' ? NPUC_REFERENCE_CURRENT : NPUC_REFERENCE_2_14;
	return 0;
}

static int set_switch(bool *field, const char *value)
{
	static const char *const words[] = {"0", "no", "false", "1", "yes", "true"};

	for (size_t i = 0; i < 6; i++)
		if (strcasecmp(value, words[i]) == 0) {
			*field = i >= 3;
			return 0;
		}
	return -EINVAL;
}

/* Call each for every entry of a list that commas separate, until it returns not 0. */
static int for_each_entry(const char *list, int (*each)(const char *entry, void *arg),
			  void *arg)
{
	char entry[NPUC_OPERATOR_NAME];
	int rc = 0;

	while (!rc && *list) {
		size_t length = strcspn(list, ",");

		snprintf(entry, sizeof(entry), "%.*s", (int)length, list);
		rc = each(entry, arg);
		list += length + (list[length] == ',');
	}
	return rc;
}

static int check_entry(const char *entry, void *arg)
{
	uint64_t n;

	if (number(entry, INT32_MAX, false, &n) == 0 || operator_named(entry))
		return 0;
	snprintf(arg, NPUC_WHY,
		 "'%.60s' is no operator as npuc --operators lists them, and no number "
		 "of a node",
		 entry);
	return -EINVAL;
}

static int set_number(const struct key *k, void *field, const char *value)
{
	uint64_t n, most = k->form == COUNT16   ? UINT16_MAX
			   : k->form == COUNT32 ? UINT32_MAX
			   : k->form == LEVEL   ? 2
			   : k->form == COUNT64 ? UINT64_MAX / 1000
						: UINT64_MAX;

	if (number(value, most, k->form == SIZE, &n))
		return -EINVAL;
	if (k->form == COUNT16)
		*(uint16_t *)field = (uint16_t)n;
	else if (k->form == COUNT32 || k->form == LEVEL)
		*(uint32_t *)field = (uint32_t)n;
	else
		*(uint64_t *)field = n;
	return 0;
}

static const char *allowed(enum form form)
{
	switch (form) {
	case COUNT16:
		return "must be a whole number from 0 to 65535";
	case COUNT32:
		return "must be a whole number from 0 to 4294967295";
	case SIGNED32:
		return "must be a whole number from -2147483647 to 2147483647";
	case COUNT64: /* microseconds become nanoseconds */
		return "must be a whole number up to 18446744073709551";
	case SIZE:
		return "must be a number of bytes, such as 65536, 64K or 4M";
	case CLASS:
		return "must be normal, latency or best_effort";
	case REFERENCE:
		return "must be current or 2.14";
	case SWITCH:
		return "must be 0 or 1";
	case LEVEL:
		return "must be 0 (summary), 1 (each partition) or 2 (each node left to "
		       "the CPU)";
	default:
		return "must not be empty";
	}
}

int options_set(struct options *o, const char *key, const char *value, char why[NPUC_WHY])
{
	const struct key *k = keys;
	char entry[NPUC_WHY] = "";
	void *field;
	int rc;

	while (k < keys + KEYS && strcmp(key, k->name) != 0)
		k++;
	if (k == keys + KEYS)
		return unknown(key, value, why);
	field = (char *)o + k->at;
	if (!*value)
		return refuse(why, key, value, "must not be empty");
	switch (k->form) {
	case TEXT:
		rc = set_text(field, value);
		break;
	case TARGET:
		rc = set_target(field, value);
		break;
	case SIGNED32:
		rc = set_signed(field, value);
		break;
	case CLASS:
		rc = set_class(field, value);
		break;
	case REFERENCE:
		rc = set_reference(field, value);
		break;
	case SWITCH:
		rc = set_switch(field, value);
		break;
	case EXCLUDE:
		rc = for_each_entry(value, check_entry, entry);
		rc = rc ? rc : set_text(field, value);
		break;
	default:
		rc = set_number(k, field, value);
	}
	if (rc == -ENOMEM)
		snprintf(why, NPUC_WHY, "no memory for option %.60s", key);
	else if (rc)
		refuse(why, key, value, entry[0] ? entry : allowed(k->form));
	return rc;
}

int options_check(const struct options *o, char why[NPUC_WHY])
{
	bool rectangle = o->rows || o->cols || o->row || o->col;

	why[0] = '\0';
	if (o->partition && (rectangle || o->units || o->memory_bytes || o->bandwidth))
		snprintf(
			why, NPUC_WHY,
			"option partition=%.60s: its section says the place and the "
			"memory; leave out units, rows, cols, row, col, memory_bytes and "
			"bandwidth",
			o->partition);
	else if (rectangle && o->units)
		snprintf(why, NPUC_WHY,
			 "option units=%u: cannot be combined with rows=%u, cols=%u, "
			 "row=%u, col=%u; give a count or a rectangle",
			 o->units, o->rows, o->cols, o->row, o->col);
	else if (rectangle && (!o->rows || !o->cols))
		snprintf(why, NPUC_WHY,
			 "options rows=%u, cols=%u, row=%u, col=%u: a rectangle needs "
			 "rows and cols; give units=N for N units at any place",
			 o->rows, o->cols, o->row, o->col);
	return why[0] ? -EINVAL : 0;
}

void options_free(struct options *o)
{
	free(o->target);
	free(o->partition);
	free(o->exclude);
	free(o->cache_dir);
	free(o->trace);
}

struct wanted {
	const char *name;
	int index;
};

static int match_entry(const char *entry, void *arg)
{
	const struct wanted *w = arg;
	uint64_t n;

	if (number(entry, INT32_MAX, false, &n) == 0)
		return n == (uint64_t)w->index;
	return strcasecmp(entry, w->name) == 0;
}

bool options_exclude(const struct options *o, const char *operator_name, int index)
{
	struct wanted w = {operator_name, index};

	return o->exclude && for_each_entry(o->exclude, match_entry, &w);
}

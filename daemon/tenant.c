/* SPDX-License-Identifier: Apache-2.0 */
/* tenant.c - sections [tenant "name"], and what they allow; see tenant.h. */
#define _GNU_SOURCE
#include "tenant.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "config/entry.h"
#include "config/ini.h"
#include "hald.h"
#include "util/compiler.h"
#include "util/error.h"
#include "util/option.h"

/* ---- the file ---------------------------------------------------------------------- */

static const struct hal_option_def keys[] = {
	{"uid", HAL_OPTION_INT, -1, UINT32_MAX, NULL, "-1", "user; -1: any"},
	{"gid", HAL_OPTION_INT, -1, UINT32_MAX, NULL, "-1", "group; -1: any"},
	{"socket", HAL_OPTION_BOOL, 0, 1, NULL, "no", "it has a socket of its own"},
	{"units", HAL_OPTION_INT, -1, INT32_MAX, NULL, "-1",
	 "most units; -1: any number"},
	{"memory", HAL_OPTION_SIZE, 0, INT64_MAX, NULL, "0", "sum of quotas; 0: any"},
	{"partitions", HAL_OPTION_INT, -1, INT32_MAX, NULL, "-1", "most partitions"},
	{"queues", HAL_OPTION_INT, -1, INT32_MAX, NULL, "-1", "most queues"},
	{"clients", HAL_OPTION_INT, -1, INT32_MAX, NULL, "-1", "most open devices"},
	{"latency", HAL_OPTION_BOOL, 0, 1, NULL, "no", "queues of class latency"},
	{"deadlines", HAL_OPTION_BOOL, 0, 1, NULL, "yes", "deadlines"},
	{"priority_max", HAL_OPTION_INT, INT32_MIN, INT32_MAX, NULL, "0", "of queues"},
	{"weight_max", HAL_OPTION_INT, 1, UINT32_MAX, NULL, "1", "of queues"},
	{"place", HAL_OPTION_BOOL, 0, 1, NULL, "no", "may choose rows and columns"},
	{"admin", HAL_OPTION_BOOL, 0, 1, NULL, "no", "may set the policy"},
};

/* Copy NAME of a section `tenant "NAME"` to name.  Return false if it has another form.
 */
static bool name_of(const char *section, char name[32])
{
	static const char begin[] = "tenant \"";
	size_t n = strlen(section);

	if (strncmp(section, begin, sizeof(begin) - 1) != 0 || n < sizeof(begin) + 1 ||
	    section[n - 1] != '"')
		return false;
	n -= sizeof(begin);
	if (n >= 32 || strcspn(section + sizeof(begin) - 1, "/.") < n)
		return false;
	memcpy(name, section + sizeof(begin) - 1, n);
	name[n] = '\0';
	return true;
}

static bool is_key(const char *key)
{
	for (size_t i = 0; i < ARRAY_LENGTH(keys); i++)
		if (strcmp(keys[i].key, key) == 0)
			return true;
	return false;
}

/* Check the names of sections and keys. */
static int names_check(const struct config *cfg)
{
	char name[32], all[256] = "";
	size_t used = 0;

	for (size_t i = 0; i < ARRAY_LENGTH(keys); i++) {
		format_text(all + used, sizeof(all) - used, " %s", keys[i].key);
		used += strlen(all + used);
	}
	for (const struct config_entry *e = cfg->entries; e != NULL; e = e->next) {
		if (!name_of(e->section, name))
			return fail(EINVAL,
				    "%s: [%s] is not of the form [tenant \"name\"], with "
				    "a name of 1 to 31 characters without / and .",
				    e->source, e->section);
		if (e->key[0] != '\0' && !is_key(e->key))
			return fail(EINVAL, "%s: %s is no key of a tenant; these are:%s",
				    e->source, e->key, all);
	}
	return 0;
}

static uint64_t limit(const struct hal_bk_config *v, const char *key)
{
	int64_t n = option_int(v, key);

	return n < 0 ? TENANT_NO_LIMIT : (uint64_t)n;
}

/* Make the tenant of the section whose header is e. */
static int tenant_read(const struct config *cfg, const struct config_entry *e,
		       struct tenant **out)
{
	struct tenant *t = calloc(1, sizeof(*t));
	struct hal_bk_config *v;
	int err;

	if (t == NULL)
		return fail(ENOMEM, "no memory for a tenant");
	err = config_resolve(cfg, e->section, keys, ARRAY_LENGTH(keys), &v);
	if (err != 0) {
		free(t);
		return err;
	}
	(void)name_of(e->section, t->name);
	format_text(t->source, sizeof(t->source), "%s", e->source);
	t->uid = option_int(v, "uid");
	t->gid = option_int(v, "gid");
	t->socket = option_int(v, "socket") != 0;
	t->fd = -1;
	t->units = limit(v, "units");
	t->memory = option_int(v, "memory") != 0 ? limit(v, "memory") : TENANT_NO_LIMIT;
	t->partitions = limit(v, "partitions");
	t->queues = limit(v, "queues");
	t->clients = limit(v, "clients");
	t->classes = 1u << HAL_CLASS_NORMAL | 1u << HAL_CLASS_BEST_EFFORT;
	if (option_int(v, "latency") != 0)
		t->classes |= 1u << HAL_CLASS_LATENCY;
	t->deadlines = option_int(v, "deadlines") != 0;
	t->priority_max = option_int(v, "priority_max");
	t->weight_max = option_int(v, "weight_max");
	t->place = option_int(v, "place") != 0;
	t->admin = option_int(v, "admin") != 0;
	(void)pthread_mutex_init(&t->lock, NULL);
	config_values_free(v);
	*out = t;
	return 0;
}

int tenants_load(const char *file, struct tenant **list)
{
	struct config cfg = {NULL, 0, NULL};
	int err = ini_load_named(&cfg, file);

	*list = NULL;
	if (err == 0)
		err = names_check(&cfg);
	/* Entries are newest first, so that the first section ends up first. */
	for (const struct config_entry *e = cfg.entries; err == 0 && e != NULL;
	     e = e->next) {
		struct tenant *t = NULL;

		if (e->key[0] != '\0')
			continue;
		err = tenant_read(&cfg, e, &t);
		if (t != NULL) {
			t->next = *list;
			*list = t;
		}
	}
	if (err == 0 && *list == NULL)
		err = fail(EINVAL, "%s: there is no section [tenant \"name\"]", file);
	config_free(&cfg);
	if (err != 0) {
		tenants_free(*list);
		*list = NULL;
	}
	return err;
}

struct tenant *tenant_everyone(void)
{
	struct tenant *t = calloc(1, sizeof(*t));

	if (t == NULL) {
		(void)fail(ENOMEM, "no memory for a tenant");
		return NULL;
	}
	t->uid = t->gid = -1;
	t->fd = -1;
	t->units = t->memory = t->partitions = t->queues = t->clients = TENANT_NO_LIMIT;
	t->classes = UINT32_MAX;
	t->priority_max = INT32_MAX;
	t->weight_max = UINT32_MAX;
	t->deadlines = t->place = true;
	(void)pthread_mutex_init(&t->lock, NULL);
	return t;
}

void tenants_free(struct tenant *list)
{
	while (list != NULL) {
		struct tenant *t = list;

		list = t->next;
		(void)pthread_mutex_destroy(&t->lock);
		free(t);
	}
}

/* ---- who --------------------------------------------------------------------------- */

struct tenant *tenant_find(struct tenant *list, struct tenant *of,
			   const struct ucred *who)
{
	if (of != NULL)
		return of;
	for (struct tenant *t = list; t != NULL; t = t->next)
		if (!t->socket && (t->uid < 0 || t->uid == (int64_t)who->uid) &&
		    (t->gid < 0 || t->gid == (int64_t)who->gid))
			return t;
	(void)fail(
		EACCES,
		"no section [tenant] of hald is for user %u and group %u; ask who runs "
		"hald for one, or for a socket",
		who->uid, who->gid);
	return NULL;
}

/* ---- what -------------------------------------------------------------------------- */

/* What the clients of a tenant have together. */
struct sums {
	uint64_t units, memory, partitions, queues;
};

/* Add what c has, except for one partition. */
static void add_client(struct sums *sum, struct client *c,
		       const struct hal_partition *except)
{
	struct handles *t = &c->handles;

	pthread_mutex_lock(&t->lock);
	for (uint32_t i = 0; i < t->count; i++) {
		const struct entry *e = entry_at(t, i);
		struct hal_partition_info info = HAL_INIT(hal_partition_info);

		if (e->object == NULL || !e->owned)
			continue;
		sum->queues += e->kind == KIND_QUEUE;
		if (e->kind != KIND_PARTITION || e->object == except ||
		    hal_partition_get_info(e->object, &info) != 0)
			continue;
		sum->partitions++;
		sum->memory += info.memory_bytes;
		/* A guest has the units of its host. */
		if (info.index < c->server->info.partitions_max)
			sum->units += info.units;
	}
	pthread_mutex_unlock(&t->lock);
}

static struct sums sums_of(const struct client *c, const struct hal_partition *except)
{
	struct server *s = c->server;
	struct sums sum = {0};

	pthread_mutex_lock(&s->lock);
	for (struct client *other = s->clients; other != NULL; other = other->next)
		if (other->tenant == c->tenant)
			add_client(&sum, other, except);
	pthread_mutex_unlock(&s->lock);
	return sum;
}

static int over(const struct tenant *t, uint64_t limit_of, uint64_t has, uint64_t more,
		const char *what)
{
	if (limit_of == TENANT_NO_LIMIT || (has <= limit_of && more <= limit_of - has))
		return 0;
	return fail(EDQUOT,
		    "tenant \"%s\" may have %llu %s in all: it has %llu, and this would "
		    "take %llu more",
		    t->name, U64(limit_of), what, U64(has), U64(more));
}

static int forbidden(const struct tenant *t, const char *what)
{
	return fail(EPERM, "tenant \"%s\" may not %s (%s)", t->name, what, t->source);
}

int tenant_check_partition(const struct client *c, const struct hal_partition_desc *d,
			   const struct hal_partition *except)
{
	const struct tenant *t = c->tenant;
	uint64_t units;
	struct sums sum;
	int err;

	if (d == NULL)
		return 0; /* hal.h refuses it */
	units = d->rows != 0 ? (uint64_t)d->rows * d->cols
			     : (d->units_ceiling > d->units_floor ? d->units_ceiling
								  : d->units_floor);
	if (!t->place && (d->row | d->col) != 0)
		return forbidden(t, "choose the place of a partition");
	if (t->memory != TENANT_NO_LIMIT && d->memory_bytes == 0 && except == NULL)
		return fail(
			EDQUOT,
			"tenant \"%s\" may have %llu bytes of memory in all: give the "
			"partition a quota (memory_bytes)",
			t->name, U64(t->memory));
	sum = sums_of(c, except);
	err = over(t, t->units, sum.units, units, "units");
	if (err == 0)
		err = over(t, t->memory, sum.memory, d->memory_bytes, "bytes of memory");
	if (err == 0)
		err = over(t, t->partitions, sum.partitions, 1, "partitions");
	return err;
}

int tenant_check_queue(const struct client *c, const struct hal_queue_desc *d)
{
	const struct tenant *t = c->tenant;

	if (d == NULL)
		return 0;
	if (d->service_class < 32 && (t->classes & 1u << d->service_class) == 0)
		return forbidden(t, "have queues of class latency");
	if (d->priority > t->priority_max)
		return forbidden(t, "have queues of so high a priority");
	if (d->weight > (uint64_t)t->weight_max)
		return forbidden(t, "have queues of so high a weight");
	if (!t->deadlines && d->deadline_ns != 0)
		return forbidden(t, "have deadlines");
	return over(t, t->queues, sums_of(c, NULL).queues, 1, "queues");
}

int tenant_check_work(const struct client *c, const struct hal_submit_desc *d)
{
	const struct tenant *t = c->tenant;

	if ((d->flags & HAL_SUBMIT_PRIORITY) != 0 && d->priority > t->priority_max)
		return forbidden(t, "submit with so high a priority");
	if (!t->deadlines && d->deadline_ns != 0)
		return forbidden(t, "have deadlines");
	return 0;
}

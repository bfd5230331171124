/* SPDX-License-Identifier: Apache-2.0 */
/* tenant.c - sections [tenant "name"], and what they allow; see tenant.h. */
#define _GNU_SOURCE
#include "tenant.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <hal/ext/memory.h>

#include "config/entry.h"
#include "config/ini.h"
#include "far/message.h"
#include "hald.h"
#include "util/compiler.h"
#include "util/error.h"
#include "util/futex.h"
#include "util/option.h"

/* ---- the file ---------------------------------------------------------------------- */

static const struct hal_option_def keys[] = {
	{"uid", HAL_OPTION_INT, -1, UINT32_MAX, NULL, "-1", "user; -1: any"},
	{"gid", HAL_OPTION_INT, -1, UINT32_MAX, NULL, "-1", "group; -1: any"},
	{"label", HAL_OPTION_STRING, 0, 0, NULL, "", "security label; empty: any"},
	{"cgroup", HAL_OPTION_STRING, 0, 0, NULL, "",
	 "beginning of the control group's path; empty: any"},
	{"unit", HAL_OPTION_STRING, 0, 0, NULL, "",
	 "a part of that path, such as video.service; empty: any"},
	{"socket", HAL_OPTION_BOOL, 0, 1, NULL, "no", "it has a socket of its own"},
	{"units", HAL_OPTION_INT, -1, INT32_MAX, NULL, "-1",
	 "most units; -1: any number"},
	{"memory", HAL_OPTION_SIZE, 0, INT64_MAX, NULL, "0", "sum of quotas; 0: any"},
	{"bandwidth", HAL_OPTION_SIZE, 0, INT64_MAX, NULL, "0",
	 "sum of limits, bytes a second; 0: any"},
	{"partitions", HAL_OPTION_INT, -1, INT32_MAX, NULL, "-1", "most partitions"},
	{"queues", HAL_OPTION_INT, -1, INT32_MAX, NULL, "-1", "most queues"},
	{"clients", HAL_OPTION_INT, -1, INT32_MAX, NULL, "-1", "most open devices"},
	{"requests_per_s", HAL_OPTION_INT, 0, INT32_MAX, NULL, "0",
	 "most requests a second, more have to wait; 0: any"},
	{"latency", HAL_OPTION_BOOL, 0, 1, NULL, "no", "queues of class latency"},
	{"deadlines", HAL_OPTION_BOOL, 0, 1, NULL, "yes", "deadlines"},
	{"priority_max", HAL_OPTION_INT, INT32_MIN, INT32_MAX, NULL, "0", "of queues"},
	{"weight_max", HAL_OPTION_INT, 1, UINT32_MAX, NULL, "1", "of queues"},
	{"place", HAL_OPTION_BOOL, 0, 1, NULL, "no", "may choose rows and columns"},
	{"lend", HAL_OPTION_BOOL, 0, 1, NULL, "no",
	 "lends urgency to, and inherits it from, others that do"},
	{"admin", HAL_OPTION_BOOL, 0, 1, NULL, "no",
	 "may set the policy, add tenants, and see what others do"},
};

#define NAME_CHARACTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"

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
	/* It is the name of a folder, and stands in lists. */
	if (n >= 32 || strspn(section + sizeof(begin) - 1, NAME_CHARACTERS) < n)
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
	char name[32], all[512] = "";
	size_t used = 0;
	int err = 0;

	for (size_t i = 0; i < ARRAY_LENGTH(keys); i++) {
		format_text(all + used, sizeof(all) - used, " %s", keys[i].key);
		used += strlen(all + used);
	}
	/* Entries are newest first: the last error is that of the first wrong line. */
	for (const struct config_entry *e = cfg->entries; e != NULL; e = e->next) {
		if (!name_of(e->section, name))
			err = fail(EINVAL,
				   "%s: [%s] is not of the form [tenant \"name\"], with "
				   "a name of 1 to 31 letters, digits, - and _",
				   e->source, e->section);
		else if (e->key[0] != '\0' && !is_key(e->key))
			err = fail(EINVAL, "%s: %s is no key of a tenant; these are:%s",
				   e->source, e->key, all);
	}
	return err;
}

static uint64_t limit(const struct hal_bk_config *v, const char *key)
{
	int64_t n = option_int(v, key);

	return n < 0 ? TENANT_NO_LIMIT : (uint64_t)n;
}

static _Atomic uint64_t numbers = 1;

/* Copy the value of key to `to`. */
static int copy_text(char *to, size_t room, const struct hal_bk_config *v,
		     const char *key, const struct config_entry *e)
{
	const char *text = option_str(v, key);

	if (strlen(text) >= room)
		return fail(EINVAL, "%s: %s of [%s] is longer than %zu bytes", e->source,
			    key, e->section, room - 1);
	memcpy(to, text, strlen(text) + 1);
	return 0;
}

/* Read by what t is known, beside user and group. */
static int identity_read(struct tenant *t, const struct hal_bk_config *v,
			 const struct config_entry *e)
{
	int err = copy_text(t->label, sizeof(t->label), v, "label", e);

	if (err == 0)
		err = copy_text(t->cgroup, sizeof(t->cgroup), v, "cgroup", e);
	if (err == 0)
		err = copy_text(t->unit, sizeof(t->unit), v, "unit", e);
	/* Units are what a tenant may have most of. */
	if (err == 0 && t->unit[0] != '\0' && strchr(t->unit, '.') == NULL)
		err = fail(
			EINVAL,
			"%s: unit of [%s] is \"%s\", not the name of a unit of systemd, "
			"such as video.service",
			e->source, e->section, t->unit);
	return err;
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
	err = identity_read(t, v, e);
	if (err != 0) {
		config_values_free(v);
		free(t);
		return err;
	}
	t->socket = option_int(v, "socket") != 0;
	t->fd = -1;
	t->units = limit(v, "units");
	t->memory = option_int(v, "memory") != 0 ? limit(v, "memory") : TENANT_NO_LIMIT;
	t->partitions = limit(v, "partitions");
	t->queues = limit(v, "queues");
	t->clients = limit(v, "clients");
	t->bandwidth =
		option_int(v, "bandwidth") != 0 ? limit(v, "bandwidth") : TENANT_NO_LIMIT;
	t->requests_per_s = (uint64_t)option_int(v, "requests_per_s");
	t->classes = 1u << HAL_CLASS_NORMAL | 1u << HAL_CLASS_BEST_EFFORT;
	if (option_int(v, "latency") != 0)
		t->classes |= 1u << HAL_CLASS_LATENCY;
	t->deadlines = option_int(v, "deadlines") != 0;
	t->priority_max = option_int(v, "priority_max");
	t->weight_max = option_int(v, "weight_max");
	t->place = option_int(v, "place") != 0;
	t->lend = option_int(v, "lend") != 0;
	t->admin = option_int(v, "admin") != 0;
	t->sees_all = t->admin;
	t->number = atomic_fetch_add(&numbers, 1);
	t->owner = t->lend ? 0 : t->number;
	(void)pthread_mutex_init(&t->lock, NULL);
	(void)pthread_mutex_init(&t->lock_turn, NULL);
	(void)pthread_mutex_init(&t->lock_past, NULL);
	config_values_free(v);
	*out = t;
	return 0;
}

/* Make *list of the sections in cfg, of `file`, and free cfg.  err: that of reading it.
 */
static int sections_load(struct config *cfg, int err, const char *file,
			 struct tenant **list)
{
	*list = NULL;
	if (err == 0)
		err = names_check(cfg);
	/* Entries are newest first, so that the first section ends up first. */
	for (const struct config_entry *e = cfg->entries; err == 0 && e != NULL;
	     e = e->next) {
		struct tenant *t = NULL;

		if (e->key[0] != '\0')
			continue;
		err = tenant_read(cfg, e, &t);
		if (t != NULL) {
			t->next = *list;
			*list = t;
		}
	}
	if (err == 0 && *list == NULL)
		err = fail(EINVAL, "%s: there is no section [tenant \"name\"]", file);
	config_free(cfg);
	if (err != 0) {
		tenants_free(*list);
		*list = NULL;
	}
	return err;
}

int tenants_load(const char *file, struct tenant **list)
{
	struct config cfg = {NULL, 0, NULL};
	int err = ini_load_named(&cfg, file);

	return sections_load(&cfg, err, file, list);
}

int tenants_load_text(const char *text, struct tenant **list)
{
	struct config cfg = {NULL, 0, NULL};
	int fd = message_memory(text, strlen(text));
	int err = fd < 0 || lseek(fd, 0, SEEK_SET) != 0
			  ? -errno
			  : ini_load_found(&cfg, fd, "section");

	if (fd >= 0)
		(void)close(fd);
	return sections_load(&cfg, err, "section", list);
}

struct tenant *tenant_unlimited(const char *name)
{
	struct tenant *t = calloc(1, sizeof(*t));

	if (t == NULL) {
		(void)fail(ENOMEM, "no memory for a tenant");
		return NULL;
	}
	format_text(t->name, sizeof(t->name), "%s", name);
	t->uid = t->gid = -1;
	t->fd = -1;
	t->units = t->memory = t->bandwidth = t->partitions = t->queues = t->clients =
		TENANT_NO_LIMIT;
	t->number = atomic_fetch_add(&numbers, 1);
	t->sees_all = true;
	t->classes = UINT32_MAX;
	t->priority_max = INT32_MAX;
	t->weight_max = UINT32_MAX;
	t->deadlines = t->place = true;
	(void)pthread_mutex_init(&t->lock, NULL);
	(void)pthread_mutex_init(&t->lock_turn, NULL);
	(void)pthread_mutex_init(&t->lock_past, NULL);
	return t;
}

void tenants_free(struct tenant *list)
{
	while (list != NULL) {
		struct tenant *t = list;

		list = t->next;
		(void)pthread_mutex_destroy(&t->lock);
		(void)pthread_mutex_destroy(&t->lock_turn);
		(void)pthread_mutex_destroy(&t->lock_past);
		free(t);
	}
}

/* ---- who --------------------------------------------------------------------------- */

bool tenant_is_anybodys(const struct tenant *t)
{
	return !t->socket && t->uid < 0 && t->gid < 0 && t->label[0] == '\0' &&
	       t->cgroup[0] == '\0' && t->unit[0] == '\0';
}

static bool fits(const struct tenant *t, const struct peer *peer)
{
	return !t->socket && (t->uid < 0 || t->uid == (int64_t)peer->uid) &&
	       (t->gid < 0 || t->gid == (int64_t)peer->gid) &&
	       (t->label[0] == '\0' || strcmp(t->label, peer->label) == 0) &&
	       (t->cgroup[0] == '\0' || peer_is_under(peer->cgroup, t->cgroup)) &&
	       (t->unit[0] == '\0' || peer_has_part(peer->cgroup, t->unit));
}

struct tenant *tenant_find(struct tenant *list, const struct peer *peer)
{
	for (struct tenant *t = list; t != NULL; t = t->next)
		if (fits(t, peer))
			return t;
	(void)fail(
		EACCES,
		"no section [tenant] of hald is for user %u and group %u, control group "
		"%s%s%s; ask who runs hald for one, or for a socket",
		peer->uid, peer->gid, peer->cgroup[0] != '\0' ? peer->cgroup : "unknown",
		peer->label[0] != '\0' ? ", label " : "", peer->label);
	return NULL;
}

/* ---- what -------------------------------------------------------------------------- */

/* Return the units that d asks for. */
static uint64_t units_of(const struct hal_partition_desc *d)
{
	if (d->rows != 0)
		return (uint64_t)d->rows * d->cols;
	return d->units_ceiling > d->units_floor ? d->units_ceiling : d->units_floor;
}

void tenant_count_partition(struct client *c, struct entry *e,
			    const struct hal_partition_desc *d)
{
	struct hal_partition_info info = HAL_INIT(hal_partition_info);
	struct tenant *t = c->tenant;
	uint64_t units = units_of(d);

	(void)hal_partition_get_info(e->object, &info);
	if (info.units > units)
		units = info.units;
	/* A guest has the units of its host. */
	if (info.index >= c->server->info.partitions_max)
		units = 0;
	pthread_mutex_lock(&c->handles.lock);
	if (d->limits != NULL) { /* a resize cannot change them */
		atomic_fetch_add(&t->has.bandwidth, d->limits->bandwidth - e->bandwidth);
		e->bandwidth = d->limits->bandwidth;
	}
	atomic_fetch_add(&t->has.units, units - e->units);
	atomic_fetch_add(&t->has.memory, info.memory_bytes - e->memory_quota);
	e->units = units;
	e->memory_quota = info.memory_bytes;
	pthread_mutex_unlock(&c->handles.lock);
}

void tenant_uncount(struct tenant *t, struct entry *e)
{
	if (e->kind == KIND_QUEUE)
		atomic_fetch_sub(&t->has.queues, 1);
	if (e->kind == KIND_PARTITION)
		atomic_fetch_sub(&t->has.partitions, 1);
	atomic_fetch_sub(&t->has.units, e->units);
	atomic_fetch_sub(&t->has.memory, e->memory_quota);
	atomic_fetch_sub(&t->has.bandwidth, e->bandwidth);
	e->units = e->memory_quota = e->bandwidth = 0;
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
			   const struct entry *except)
{
	const struct tenant *t = c->tenant;
	uint64_t units = atomic_load(&t->has.units);
	uint64_t memory = atomic_load(&t->has.memory);
	int err;

	if (d == NULL)
		return 0; /* hal.h refuses it */
	if (!t->place && (d->row | d->col) != 0)
		return forbidden(t, "choose the place of a partition");
	if (t->memory != TENANT_NO_LIMIT && d->memory_bytes == 0 && except == NULL)
		return fail(
			EDQUOT,
			"tenant \"%s\" may have %llu bytes of memory in all: give the "
			"partition a quota (memory_bytes)",
			t->name, U64(t->memory));
	if (t->bandwidth != TENANT_NO_LIMIT && except == NULL && d->host == NULL) {
		uint64_t more = d->limits != NULL ? d->limits->bandwidth : 0;

		if (more == 0)
			return fail(EDQUOT,
				    "tenant \"%s\" may move %llu bytes a second in all: "
				    "give the partition a limit "
				    "(hal_partition_limits.bandwidth)",
				    t->name, U64(t->bandwidth));
		err = over(t, t->bandwidth, atomic_load(&t->has.bandwidth), more,
			   "bytes a second");
		if (err != 0)
			return err;
	}
	if (except != NULL) {
		units -= except->units;
		memory -= except->memory_quota;
	}
	err = over(t, t->units, units, units_of(d), "units");
	if (err == 0)
		err = over(t, t->memory, memory, d->memory_bytes, "bytes of memory");
	if (err == 0 && except == NULL)
		err = over(t, t->partitions, atomic_load(&t->has.partitions), 1,
			   "partitions");
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
	return over(t, t->queues, atomic_load(&t->has.queues), 1, "queues");
}

/* ---- what it sees --------------------------------------------------------------------- */

void tenant_info(const struct client *c, struct hal_device_info *info)
{
	const struct tenant *t = c->tenant;
	uint64_t most = t->memory < info->memory_bytes ? t->memory : info->memory_bytes;
	uint64_t has = atomic_load(&t->has.memory);

	if (!t->sees_all)
		info->memory_free = has < most ? most - has : 0;
}

static void raise(uint64_t *most, uint64_t value)
{
	if (value > *most)
		*most = value;
}

/* Add what one partition has done to sum.  Percentiles are those of the slowest. */
static void add_stats(struct hal_stats *sum, const struct hal_stats *one)
{
	sum->busy_ns += one->busy_ns;
	sum->queueing_ns += one->queueing_ns;
	sum->submitted += one->submitted;
	sum->completed += one->completed;
	sum->failed += one->failed;
	sum->dropped += one->dropped;
	sum->deadline_misses += one->deadline_misses;
	sum->suspends += one->suspends;
	sum->suspend_ns += one->suspend_ns;
	sum->replayed += one->replayed;
	sum->replayed_ns += one->replayed_ns;
	sum->bytes_read += one->bytes_read;
	sum->bytes_written += one->bytes_written;
	sum->requests += one->requests;
	sum->saved_bytes += one->saved_bytes;
	for (uint32_t i = 0; i < HAL_HISTOGRAM_BUCKETS; i++)
		sum->latency_histogram[i] += one->latency_histogram[i];
	raise(&sum->suspend_max_ns, one->suspend_max_ns);
	raise(&sum->latency_max_ns, one->latency_max_ns);
	raise(&sum->request_p50_ns, one->request_p50_ns);
	raise(&sum->request_p90_ns, one->request_p90_ns);
	raise(&sum->request_p99_ns, one->request_p99_ns);
	raise(&sum->request_p999_ns, one->request_p999_ns);
	raise(&sum->request_max_ns, one->request_max_ns);
	for (uint32_t i = 0; i < ARRAY_LENGTH(sum->stop_max_ns); i++)
		raise(&sum->stop_max_ns[i], one->stop_max_ns[i]);
}

int tenant_stats(struct client *c, struct hal_stats *stats)
{
	struct handles *t = &c->handles;
	struct hal_stats sum = HAL_INIT(hal_stats);

	if (c->tenant->sees_all)
		return 0;
	sum.now_ns = stats->now_ns;
	for (uint32_t i = 0; i < t->count; i++) {
		struct hal_stats one = HAL_INIT(hal_stats);
		struct entry *e = handle_hold_at(t, i, KIND_PARTITION);

		if (e == NULL)
			continue;
		if (hal_partition_get_stats(e->object, &one) == 0)
			add_stats(&sum, &one);
		handle_release(t, e);
	}
	*stats = sum;
	return 0;
}

/* ---- requests ------------------------------------------------------------------------- */

/* Requests of a second may come at once. */
#define BURST_NS UINT64_C(1000000000)

void tenant_turn(struct client *c)
{
	struct tenant *t = c->tenant;
	struct timespec until;
	uint64_t now, turn;

	if (t->requests_per_s == 0)
		return;
	now = monotonic_ns();
	pthread_mutex_lock(&t->lock_turn);
	if (t->turn_ns + BURST_NS < now)
		t->turn_ns = now - BURST_NS;
	t->turn_ns += BURST_NS / t->requests_per_s;
	turn = t->turn_ns;
	pthread_mutex_unlock(&t->lock_turn);
	if (turn <= now)
		return;
	/* The client may end meanwhile. */
	until = timespec_of(turn);
	pthread_mutex_lock(&c->lock);
	while (!c->closing &&
	       pthread_cond_timedwait(&c->changed, &c->lock, &until) != ETIMEDOUT)
		;
	pthread_mutex_unlock(&c->lock);
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

/* ---- what its clients have done --------------------------------------------------------- */

static const struct {
	int err;
	const char *name;
} refusals[REFUSALS] = {
	{EPERM, "EPERM"},   {EDQUOT, "EDQUOT"}, {ENOSPC, "ENOSPC"}, {ENOMEM, "ENOMEM"},
	{EINVAL, "EINVAL"}, {EBUSY, "EBUSY"},   {EMFILE, "EMFILE"}, {ENOTSUP, "ENOTSUP"},
};

void tenant_refused(struct tenant *t, int err)
{
	for (uint32_t i = 0; err < 0 && i < REFUSALS; i++)
		if (refusals[i].err == -err)
			atomic_fetch_add_explicit(&t->refused[i], 1,
						  memory_order_relaxed);
}

const char *refusal_name(uint32_t i)
{
	return refusals[i].name;
}

void tenant_add_past(struct tenant *sum, struct tenant *t)
{
	pthread_mutex_lock(&sum->lock_past);
	tally_add(&sum->past, &t->past);
	pthread_mutex_unlock(&sum->lock_past);
	for (uint32_t i = 0; i < REFUSALS; i++)
		atomic_fetch_add(&sum->refused[i], atomic_load(&t->refused[i]));
	for (uint32_t i = 0; i < ENDED_WAYS; i++)
		atomic_fetch_add(&sum->ended[i], atomic_load(&t->ended[i]));
}

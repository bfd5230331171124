/* SPDX-License-Identifier: Apache-2.0 */
/*
 * status.c - the request FAR_STATUS: who uses the device and for what, as JSON.
 *
 * hal/hald.h lists the keys.  The text is made under the lock of the server, so that no
 * client goes meanwhile.  Nothing here enters the engine then: a host function that the
 * engine waits for may need that lock.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <yajl/yajl_gen.h>

#include "lib/utf8.h"
#include "requests.h"
#include "util/compiler.h"
#include "util/error.h"

enum { STATUS_VERSION = 1 };

/* ---- JSON -------------------------------------------------------------------------- */

/* Results of the generator's calls are ignored: it stays in its error state, which
 * finish_json sees. */
static void put_key(yajl_gen g, const char *key)
{
	if (key != NULL)
		(void)yajl_gen_string(g, (const unsigned char *)key, strlen(key));
}

static void put_text(yajl_gen g, const char *key, const char *text)
{
	char plain[512];

	put_key(g, key);
	utf8_text(plain, sizeof(plain), text, SIZE_MAX);
	(void)yajl_gen_string(g, (const unsigned char *)plain, strlen(plain));
}

static void put_number(yajl_gen g, const char *key, uint64_t n)
{
	char digits[24];

	put_key(g, key);
	format_text(digits, sizeof(digits), "%" PRIu64, n);
	(void)yajl_gen_number(g, digits, strlen(digits));
}

static void put_bool(yajl_gen g, const char *key, bool truth)
{
	put_key(g, key);
	(void)yajl_gen_bool(g, truth);
}

static void open_map(yajl_gen g, const char *key)
{
	put_key(g, key);
	(void)yajl_gen_map_open(g);
}

static void open_list(yajl_gen g, const char *key)
{
	put_key(g, key);
	(void)yajl_gen_array_open(g);
}

/* Make the text of g the answer of r. */
static int finish_json(struct request *r, yajl_gen g)
{
	const unsigned char *bytes;
	size_t size;
	char *out;

	if (yajl_gen_get_buf(g, &bytes, &size) != yajl_gen_status_ok)
		return fail(ENOMEM, "hald has no memory for its state");
	out = answer_room(r, size + 1);
	if (out == NULL)
		return -ENOMEM;
	memcpy(out, bytes, size);
	return 0;
}

/* ---- what partitions have done -------------------------------------------------------- */

static void put_tally(yajl_gen g, const struct tally *t)
{
	put_number(g, "busy_ns", t->busy_ns);
	put_number(g, "submitted", t->submitted);
	put_number(g, "completed", t->completed);
	put_number(g, "failed", t->failed);
	put_number(g, "deadline_misses", t->deadline_misses);
}

/* The buckets up to the last one that is not empty. */
static void put_requests(yajl_gen g, const struct tally *t)
{
	uint32_t count = HAL_HISTOGRAM_BUCKETS;

	while (count > 0 && t->requests[count - 1] == 0)
		count--;
	put_number(g, "request_ns", t->request_ns);
	open_list(g, "requests");
	for (uint32_t i = 0; i < count; i++)
		put_number(g, NULL, t->requests[i]);
	(void)yajl_gen_array_close(g);
}

/* ---- clients -------------------------------------------------------------------------- */

/* What a client has, and how long its requests take. */
struct possessions {
	uint64_t units, memory, partitions, queues;
	uint32_t classes; /* bit (1 << enum hal_class) */
	uint64_t p50_ns, p99_ns;
};

/* Add what the i-th entry of c is to *has.  Return its partition, if it is one whose
 * statistics are to be read, else NULL.  The caller holds the tenant's .lock_past, so
 * that the partition is not destroyed. */
static struct hal_partition *entry_count(struct client *c, uint32_t i,
					 struct possessions *has)
{
	struct hal_partition *part = NULL;
	const struct entry *e;

	pthread_mutex_lock(&c->handles.lock);
	e = entry_at(&c->handles, i);
	if (e->object != NULL && e->owned && e->kind == KIND_QUEUE) {
		has->queues++;
		has->classes |= e->service_class < 32 ? 1u << e->service_class : 0;
	}
	if (e->object != NULL && e->owned && e->kind == KIND_PARTITION && !e->settled) {
		has->partitions++;
		has->units += e->units;
		has->memory += e->memory_quota;
		part = e->object;
	}
	pthread_mutex_unlock(&c->handles.lock);
	return part;
}

/* Write what c has and has done to *has and *done.  The caller holds the lock of the
 * server, and the tenant's .lock_past. */
static void client_count(struct client *c, struct possessions *has, struct tally *done)
{
	uint32_t count;

	pthread_mutex_lock(&c->handles.lock);
	count = c->handles.count;
	pthread_mutex_unlock(&c->handles.lock);
	*done = c->past;
	*has = (struct possessions){.units = 0};
	for (uint32_t i = 0; i < count; i++) {
		struct hal_partition *part = entry_count(c, i, has);
		struct hal_stats stats;
		struct tally one;

		if (part == NULL)
			continue;
		tally_read(part, &one, &stats);
		tally_add(done, &one);
		if (stats.request_p50_ns > has->p50_ns)
			has->p50_ns = stats.request_p50_ns;
		if (stats.request_p99_ns > has->p99_ns)
			has->p99_ns = stats.request_p99_ns;
	}
}

static void put_classes(yajl_gen g, uint32_t classes)
{
	static const char *const names[] = {[HAL_CLASS_NORMAL] = "normal",
					    [HAL_CLASS_LATENCY] = "latency",
					    [HAL_CLASS_BEST_EFFORT] = "best-effort"};

	open_list(g, "classes");
	for (uint32_t i = 0; i < ARRAY_LENGTH(names); i++)
		if ((classes & 1u << i) != 0)
			put_text(g, NULL, names[i]);
	(void)yajl_gen_array_close(g);
}

/* Write c, and add what it has done since its tenant settled last to *sum. */
static void put_client(yajl_gen g, struct client *c, const struct client *asks,
		       uint64_t now_ns, struct tally *sum)
{
	uint64_t age = now_ns > c->came_ns ? now_ns - c->came_ns : 0;
	struct possessions has;
	struct tally done;

	client_count(c, &has, &done);
	tally_add(sum, &done);
	open_map(g, NULL);
	put_number(g, "number", c->number);
	put_number(g, "pid", (uint64_t)c->pid);
	put_bool(g, "self", c == asks);
	put_classes(g, has.classes);
	put_number(g, "units", has.units);
	put_number(g, "memory", has.memory);
	put_number(g, "partitions", has.partitions);
	put_number(g, "queues", has.queues);
	put_number(g, "age_ns", age);
	put_tally(g, &done);
	put_number(g, "p50_ns", has.p50_ns);
	put_number(g, "p99_ns", has.p99_ns);
	(void)yajl_gen_map_close(g);
}

/* ---- tenants -------------------------------------------------------------------------- */

static void put_limit(yajl_gen g, const char *key, uint64_t limit)
{
	if (limit != TENANT_NO_LIMIT)
		put_number(g, key, limit);
}

static void put_limits(yajl_gen g, const struct tenant *t)
{
	open_map(g, "limits");
	put_limit(g, "units", t->units);
	put_limit(g, "memory", t->memory);
	put_limit(g, "bandwidth", t->bandwidth);
	put_limit(g, "partitions", t->partitions);
	put_limit(g, "queues", t->queues);
	put_limit(g, "clients", t->clients);
	(void)yajl_gen_map_close(g);
}

static void put_possessions(yajl_gen g, const struct tenant *t)
{
	open_map(g, "has");
	put_number(g, "units", atomic_load(&t->has.units));
	put_number(g, "memory", atomic_load(&t->has.memory));
	put_number(g, "bandwidth", atomic_load(&t->has.bandwidth));
	put_number(g, "partitions", atomic_load(&t->has.partitions));
	put_number(g, "queues", atomic_load(&t->has.queues));
	(void)yajl_gen_map_close(g);
}

static void put_counts(yajl_gen g, const struct tenant *t)
{
	static const char *const ways[ENDED_WAYS] = {[ENDED_EXIT] = "exit",
						     [ENDED_KILLED] = "killed",
						     [ENDED_PROTOCOL] = "protocol",
						     [ENDED_REMOVED] = "removed"};

	open_map(g, "refused");
	for (uint32_t i = 0; i < REFUSALS; i++)
		put_number(g, refusal_name(i), atomic_load(&t->refused[i]));
	(void)yajl_gen_map_close(g);
	open_map(g, "ended");
	for (uint32_t i = ENDED_EXIT; i < ENDED_WAYS; i++)
		put_number(g, ways[i], atomic_load(&t->ended[i]));
	(void)yajl_gen_map_close(g);
}

/* Write t with its clients.  The caller holds the lock of s. */
static void put_tenant(yajl_gen g, struct server *s, struct tenant *t,
		       const struct client *asks, uint64_t now_ns)
{
	char path[256] = "";
	struct tally sum;

	if (t->socket)
		socket_path(s, t, path);
	open_map(g, NULL);
	put_text(g, "name", t->name);
	put_text(g, "socket", path);
	put_limits(g, t);
	put_possessions(g, t);
	put_counts(g, t);
	pthread_mutex_lock(&t->lock_past);
	sum = t->past;
	open_list(g, "clients");
	for (struct client *c = s->clients; c != NULL; c = c->next) {
		struct tally past;

		if (c->tenant != t)
			continue;
		past = c->past;
		put_client(g, c, asks, now_ns, &sum);
		tally_subtract(&sum, &past); /* it is in that of the tenant */
	}
	(void)yajl_gen_array_close(g);
	pthread_mutex_unlock(&t->lock_past);
	put_tally(g, &sum);
	put_requests(g, &sum);
	(void)yajl_gen_map_close(g);
}

/* Return whether t (NULL: no) has, or has had, clients. */
static bool was_used(const struct tenant *t)
{
	bool used = t != NULL && t->users > 0;

	for (uint32_t i = 0; t != NULL && i < ENDED_WAYS; i++)
		used |= atomic_load(&t->ended[i]) > 0;
	return used;
}

static void put_tenants(yajl_gen g, struct server *s, const struct client *asks,
			uint64_t now_ns)
{
	open_list(g, "tenants");
	pthread_mutex_lock(&s->lock);
	for (struct tenant *t = s->tenants; t != NULL; t = t->next)
		put_tenant(g, s, t, asks, now_ns);
	if (was_used(s->operator_tenant))
		put_tenant(g, s, s->operator_tenant, asks, now_ns);
	if (was_used(s->removed))
		put_tenant(g, s, s->removed, asks, now_ns);
	pthread_mutex_unlock(&s->lock);
	(void)yajl_gen_array_close(g);
}

/* ---- the device ----------------------------------------------------------------------- */

static void put_device(yajl_gen g, const struct server *s, uint64_t now_ns)
{
	struct hal_device_info info = HAL_INIT(hal_device_info);
	struct hal_policy_info policy = HAL_INIT(hal_policy_info);

	(void)hal_device_get_info(s->dev, &info);
	(void)hal_device_get_policy(s->dev, &policy);
	open_map(g, "device");
	put_text(g, "served", s->name);
	put_text(g, "name", info.name);
	put_text(g, "backend", info.backend);
	put_number(g, "start_s", (uint64_t)s->start_s);
	put_number(g, "tick_ns", s->tick_ns);
	put_number(g, "ticks_late", atomic_load(&s->ticks_late));
	put_number(g, "now_ns", now_ns);
	put_text(g, "policy", policy.name);
	put_bool(g, "policy_fallback", policy.fallback != 0);
	put_bool(g, "lost", info.lost != 0);
	put_number(g, "units", (uint64_t)info.unit_rows * info.unit_cols);
	put_number(g, "memory", info.memory_bytes);
	put_number(g, "memory_free", info.memory_free);
	(void)yajl_gen_map_close(g);
}

int do_status(struct request *r)
{
	struct server *s = r->client->server;
	const uint64_t now_ns = hal_device_get_time(s->dev);
	int err = operator_check(r, "clients and tenants");
	yajl_gen g;

	if (err != 0)
		return err;
	g = yajl_gen_alloc(NULL);
	if (g == NULL)
		return fail(ENOMEM, "hald has no memory for its state");
	(void)yajl_gen_map_open(g);
	put_number(g, "hald_status", STATUS_VERSION);
	put_device(g, s, now_ns);
	put_tenants(g, s, r->client, now_ns);
	(void)yajl_gen_map_close(g);
	err = finish_json(r, g);
	yajl_gen_free(g);
	return err;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * monitor_json.c - write a device's state as JSON, the monitor's answer; see monitor.h.
 *
 * The first key is hal_monitor, the version.  Times are device time in ns.
 */
#include "observe/monitor.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <yajl/yajl_gen.h>

#include "api/opened.h"
#include "lib/utf8.h"
#include "observe/stats.h"
#include "sched/policy_text.h"
#include "util/error.h"

/* ---- JSON -------------------------------------------------------------------------- */

/* Results of the generator's calls are ignored: it stays in its error state, which
 * finish_json sees. */
static void text(yajl_gen g, const char *key, const char *s)
{
	char plain[POLICY_TEXT_BYTES];

	if (key != NULL)
		(void)yajl_gen_string(g, (const unsigned char *)key, strlen(key));
	utf8_text(plain, sizeof(plain), s, SIZE_MAX);
	(void)yajl_gen_string(g, (const unsigned char *)plain, strlen(plain));
}

static void put_number(yajl_gen g, const char *key, uint64_t n)
{
	char digits[24];

	(void)yajl_gen_string(g, (const unsigned char *)key, strlen(key));
	format_text(digits, sizeof(digits), "%" PRIu64, n);
	(void)yajl_gen_number(g, digits, strlen(digits));
}

static void signed_number(yajl_gen g, const char *key, int64_t n)
{
	(void)yajl_gen_string(g, (const unsigned char *)key, strlen(key));
	(void)yajl_gen_integer(g, n);
}

static void open_list(yajl_gen g, const char *key)
{
	(void)yajl_gen_string(g, (const unsigned char *)key, strlen(key));
	(void)yajl_gen_array_open(g);
}

/* Return the text of g, and free g; NULL after an error of g or without memory. */
static char *finish_json(yajl_gen g, size_t *size)
{
	const unsigned char *bytes;
	char *copy = NULL;

	if (yajl_gen_get_buf(g, &bytes, size) == yajl_gen_status_ok) {
		copy = malloc(*size);
		if (copy != NULL)
			memcpy(copy, bytes, *size);
	}
	yajl_gen_free(g);
	return copy;
}

/* ---- the device -------------------------------------------------------------------- */

static void stats(yajl_gen g, const struct hal_stats *s)
{
	put_number(g, "busy_ns", s->busy_ns);
	put_number(g, "submitted", s->submitted);
	put_number(g, "completed", s->completed);
	put_number(g, "failed", s->failed);
	put_number(g, "dropped", s->dropped);
	put_number(g, "deadline_misses", s->deadline_misses);
	put_number(g, "suspends", s->suspends);
	put_number(g, "suspend_ns", s->suspend_ns);
	put_number(g, "replayed", s->replayed);
	put_number(g, "requests", s->requests);
	put_number(g, "p50_ns", s->request_p50_ns);
	put_number(g, "p99_ns", s->request_p99_ns);
	put_number(g, "max_ns", s->request_max_ns);
}

static void partition(yajl_gen g, const struct view_partition *p)
{
	(void)yajl_gen_map_open(g);
	put_number(g, "index", p->index);
	text(g, "name", p->name);
	put_number(g, "row", p->row);
	put_number(g, "col", p->col);
	put_number(g, "rows", p->rows);
	put_number(g, "cols", p->cols);
	put_number(g, "units", p->units);
	put_number(g, "floor", p->floor);
	put_number(g, "ceiling", p->ceiling);
	put_number(g, "moving", p->moving);
	put_number(g, "held", p->held);
	put_number(g, "running", p->running);
	put_number(g, "runnable", p->runnable);
	put_number(g, "memory_used", p->memory_used);
	put_number(g, "memory_quota", p->memory_quota);
	stats(g, &p->stats);
	(void)yajl_gen_map_close(g);
}

static void guest(yajl_gen g, const struct view_guest *p)
{
	(void)yajl_gen_map_open(g);
	put_number(g, "index", p->index);
	put_number(g, "host", p->host);
	text(g, "name", p->name);
	put_number(g, "queues", p->queues);
	put_number(g, "memory_used", p->memory_used);
	put_number(g, "memory_quota", p->memory_quota);
	stats(g, &p->stats);
	(void)yajl_gen_map_close(g);
}

static void queue(yajl_gen g, const struct view_queue *q)
{
	static const char *const classes[] = {"normal", "latency", "best-effort"};
	static const char *const states[] = {
		[VIEW_IDLE] = "idle",         [VIEW_READY] = "ready",
		[VIEW_RUNNING] = "running",   [VIEW_WAITING] = "waiting",
		[VIEW_STOPPING] = "stopping", [VIEW_STOPPED] = "stopped",
		[VIEW_FAILED] = "failed",
	};

	(void)yajl_gen_map_open(g);
	put_number(g, "id", q->id);
	text(g, "name", q->name);
	put_number(g, "partition", q->partition);
	if (q->home != q->partition)
		put_number(g, "guest", q->home);
	text(g, "class",
	     q->service_class < ARRAY_LENGTH(classes) ? classes[q->service_class] : "?");
	signed_number(g, "priority", q->priority);
	put_number(g, "deadline_ns", q->deadline_ns);
	put_number(g, "weight", q->weight);
	text(g, "state", states[q->state]);
	put_number(g, "running", q->running);
	stats(g, &q->stats);
	(void)yajl_gen_map_close(g);
}

static void learned(yajl_gen g, const struct view_learned *l)
{
	(void)yajl_gen_map_open(g);
	put_number(g, l->of < VIEW_QUEUE ? "program" : "queue", l->id);
	if (l->of == VIEW_PAIR) {
		put_number(g, "beside", l->other);
		put_number(g, "longer_permille", l->takes);
	} else {
		if (l->of == VIEW_KERNEL)
			text(g, "kernel", l->kernel);
		if (l->of == VIEW_WORK)
			put_number(g, "work", VIEW_WORK_OF);
		put_number(g, "units", l->units);
		put_number(g, "ns", l->takes);
	}
	put_number(g, "commands", l->commands);
	put_number(g, "sure_permille", l->sure_permille);
	(void)yajl_gen_map_close(g);
}

/* Write the learned run times; if there are none, leave out the key. */
static void all_learned(yajl_gen g, const struct view *v)
{
	if (v->learned_count == 0)
		return;
	put_number(g, "learned_cut", v->learned_cut);
	open_list(g, "learned");
	for (uint32_t i = 0; i < v->learned_count; i++)
		learned(g, &v->learned[i]);
	(void)yajl_gen_array_close(g);
}

static void policy(yajl_gen g, const struct hal_policy_info *p, const char *settings)
{
	text(g, "policy", p->name);
	text(g, "settings", settings);
	put_number(g, "gave_up", p->fallback);
	put_number(g, "invalid", p->invalid);
	put_number(g, "stalls", p->stalls);
	put_number(g, "starved", p->starved);
	put_number(g, "longest_wait_ns", p->longest_wait_ns);
	text(g, "reason", p->reason);
}

static void decision(yajl_gen g, const struct decision *d)
{
	char words[DECISION_TEXT];

	decision_text(d, words, sizeof(words));
	(void)yajl_gen_map_open(g);
	put_number(g, "at_ns", d->at_ns);
	if (d->queue != DECISION_NONE)
		put_number(g, "queue", d->queue);
	if (d->partition != DECISION_NONE)
		put_number(g, "partition", d->partition);
	text(g, "text", words);
	(void)yajl_gen_map_close(g);
}

/* Write the decisions of both rings, merged by time, oldest first. */
static void decisions(yajl_gen g, const struct decisions *d)
{
	uint64_t t = d->turn_count > DECISIONS_KEPT ? d->turn_count - DECISIONS_KEPT : 0;
	uint64_t o =
		d->other_count > DECISIONS_KEPT ? d->other_count - DECISIONS_KEPT : 0;

	put_number(g, "decisions_all", d->turn_count + d->other_count);
	open_list(g, "decisions");
	while (t < d->turn_count || o < d->other_count) {
		const struct decision *a = &d->turns[t % DECISIONS_KEPT];
		const struct decision *b = &d->others[o % DECISIONS_KEPT];
		bool turn =
			o == d->other_count || (t < d->turn_count && a->at_ns < b->at_ns);

		decision(g, turn ? a : b);
		t += turn;
		o += !turn;
	}
	(void)yajl_gen_array_close(g);
}

static void device(yajl_gen g, const struct hal_device *dev, const struct view *v)
{
	const struct hal_device_info *i = &dev->info;

	put_number(g, "hal_monitor", MONITOR_VERSION);
	put_number(g, "pid", (uint64_t)getpid());
	text(g, "program", program_invocation_short_name);
	text(g, "device", dev->name);
	text(g, "name", i->name);
	text(g, "clock", dev->virtual_clock ? "virtual" : "real");
	put_number(g, "now_ns", v->now_ns);
	put_number(g, "grid", (i->caps & HAL_CAP_GRID) != 0);
	put_number(g, "rows", i->unit_rows);
	put_number(g, "cols", i->unit_cols);
	put_number(g, "busy_ns", counter_get(&dev->observe.ran.total));
	put_number(g, "memory_bytes", i->memory_bytes);
	text(g, "lost", v->lost != 0 ? dev->lost_why : "");
	put_number(g, "partitions_all", v->partitions_all);
	put_number(g, "guests_all", v->guests_all);
	put_number(g, "queues_all", v->queues_all);
}

/* ---- statistics -------------------------------------------------------------------- */

static void partition_stats(struct hal_partition *p, struct view_partition *v,
			    uint64_t now_ns)
{
	struct account sum;

	memset(&sum, 0, sizeof(sum));
	stats_add_partition(&sum, p);
	account_export(&v->stats, &sum, counter_get(&p->observe.ran.total), now_ns);
	v->memory_used = counter_get(&p->memory.used);
	v->memory_quota = counter_get(&p->memory.quota);
}

static void guest_stats(struct hal_partition *p, struct view_guest *v, uint64_t now_ns)
{
	struct account sum;

	memset(&sum, 0, sizeof(sum));
	stats_add_partition(&sum, p);
	account_export(&v->stats, &sum, counter_get(&sum.busy_ns), now_ns);
	v->memory_used = counter_get(&p->memory.used);
	v->memory_quota = counter_get(&p->memory.quota);
}

static void queue_stats(const struct hal_queue *q, struct view_queue *v, uint64_t now_ns)
{
	struct account sum;

	memset(&sum, 0, sizeof(sum));
	stats_add_queue(&sum, q);
	account_export(&v->stats, &sum, counter_get(&q->observe.account.busy_ns), now_ns);
}

/* Add statistics to the entries of v.  The device's lists have the same order as those of
 * v.  Partitions and queues that were created or destroyed since view_take are skipped.
 */
static void add_stats(struct hal_device *dev, struct view *v)
{
	uint32_t at_queue = 0, at_guest = 0;

	hal_list_for_each (p, &dev->space.partitions) {
		struct hal_partition *part =
			container_of(p, struct hal_partition, on_device);

		for (uint32_t i = 0; i < v->partition_count; i++)
			if (v->partitions[i].index == part->desc.index)
				partition_stats(part, &v->partitions[i], v->now_ns);
		for (uint32_t i = at_guest; part->host != part && i < v->guest_count;
		     i++) {
			if (v->guests[i].index != part->desc.index)
				continue;
			guest_stats(part, &v->guests[i], v->now_ns);
			at_guest = i + 1;
			break;
		}
		hal_list_for_each (it, &part->queues) {
			const struct hal_queue *q =
				container_of(it, struct hal_queue, on_partition);

			for (uint32_t i = at_queue; i < v->queue_count; i++) {
				if (v->queues[i].id != q->obj.id)
					continue;
				queue_stats(q, &v->queues[i], v->now_ns);
				at_queue = i + 1;
				break;
			}
			if (at_queue == v->queue_count)
				break;
		}
	}
}

char *monitor_json(struct hal_device *dev, struct view *v, size_t *size)
{
	yajl_gen g = yajl_gen_alloc(NULL);
	char settings[POLICY_TEXT_BYTES];

	if (g == NULL)
		return NULL;
	/* With this lock held, the policy cannot be replaced and freed. */
	pthread_rwlock_rdlock(&dev->shape);
	add_stats(dev, v);
	policy_text(dev->sched.policy, dev->sched.policy_cfg, &dev->sched.limits,
		    settings);
	pthread_rwlock_unlock(&dev->shape);
	(void)yajl_gen_map_open(g);
	device(g, dev, v);
	policy(g, &v->policy, settings);
	open_list(g, "partitions");
	for (uint32_t i = 0; i < v->partition_count; i++)
		partition(g, &v->partitions[i]);
	(void)yajl_gen_array_close(g);
	open_list(g, "guests");
	for (uint32_t i = 0; i < v->guest_count; i++)
		guest(g, &v->guests[i]);
	(void)yajl_gen_array_close(g);
	open_list(g, "queues");
	for (uint32_t i = 0; i < v->queue_count; i++)
		queue(g, &v->queues[i]);
	(void)yajl_gen_array_close(g);
	all_learned(g, v);
	decisions(g, &v->decisions);
	(void)yajl_gen_map_close(g);
	return finish_json(g, size);
}

char *monitor_json_error(const char *what, size_t *size)
{
	yajl_gen g = yajl_gen_alloc(NULL);

	if (g == NULL)
		return NULL;
	(void)yajl_gen_map_open(g);
	text(g, "error", what);
	(void)yajl_gen_map_close(g);
	return finish_json(g, size);
}

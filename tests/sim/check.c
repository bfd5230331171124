/* SPDX-License-Identifier: Apache-2.0 */
/* What must hold after every step. */
#define _GNU_SOURCE
#include "sim.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int sim_fail(struct sim *s, const char *file, int line, const char *fmt, ...)
{
	const char *base = strrchr(file, '/');
	va_list ap;
	int n;

	if (s->why[0])
		return -1; /* the first one counts */
	n = snprintf(s->why, sizeof(s->why), "%s:%d: ", base ? base + 1 : file, line);
	va_start(ap, fmt);
	vsnprintf(s->why + n, sizeof(s->why) - (size_t)n, fmt, ap);
	va_end(ap);
	return -1;
}

/* FNV-1a of everything that is seen. */
void sim_mix(struct sim *s, uint64_t value)
{
	int i;

	for (i = 0; i < 8; i++) {
		s->hash ^= value >> 8 * i & 0xff;
		s->hash *= UINT64_C(0x100000001b3);
	}
}

/* ---- the device's own events ------------------------------------------------------ */

static int on_start(struct sim *s, const struct hal_ref_event *ev)
{
	struct sim_bk_queue *q = &s->bk[ev->queue];

	SIM_CHECK(s->running[ev->partition] == 0);
	SIM_CHECK(ev->sequence == q->next_start);
	SIM_CHECK(q->next_start == q->next_end);
	s->running[ev->partition] = ev->queue;
	q->next_start++;
	return 0;
}

static int on_end(struct sim *s, const struct hal_ref_event *ev)
{
	struct sim_bk_queue *q = &s->bk[ev->queue];

	SIM_CHECK(s->running[ev->partition] == ev->queue);
	SIM_CHECK(ev->sequence == q->next_end);
	s->running[ev->partition] = 0;
	q->next_end++;
	if (ev->kind == HAL_REF_ENDED)
		s->ended++;
	return 0;
}

static int on_event(struct sim *s, const struct hal_ref_event *ev)
{
	SIM_CHECK(ev->queue < BK_QUEUES);
	SIM_CHECK(ev->now_ns >= s->event_now);
	SIM_CHECK(ev->partition < s->info.partitions_max);
	s->event_now = ev->now_ns;
	switch (ev->kind) {
	case HAL_REF_STARTED:
		return on_start(s, ev);
	case HAL_REF_ENDED:
	case HAL_REF_FAULTED:
	case HAL_REF_KILLED:
		return on_end(s, ev);
	case HAL_REF_STOPPED:
		SIM_CHECK(s->running[ev->partition] == ev->queue);
		SIM_CHECK(ev->sequence == s->bk[ev->queue].next_end);
		s->running[ev->partition] = 0;
		s->bk[ev->queue].next_start--; /* it comes once more */
		return 0;
	case HAL_REF_DROPPED:
		s->bk[ev->queue].next_start++;
		s->bk[ev->queue].next_end++;
		return 0;
	default:
		return 0;
	}
}

void sim_on_event(void *user, const struct hal_ref_event *ev)
{
	static const char *const kinds[] = {"start", "end",   "fault", "kill",
					    "drop",  "quiet", "moved", "stop"};
	struct sim *s = user;

	if (s->verbose)
		printf("    %llu: %s queue %llu command %llu op %u on partition %u of "
		       "%u\n",
		       (unsigned long long)ev->now_ns, kinds[ev->kind],
		       (unsigned long long)ev->queue, (unsigned long long)ev->sequence,
		       ev->op, ev->partition, ev->units);
	sim_mix(s, ev->kind);
	sim_mix(s, ev->op);
	sim_mix(s, ev->partition);
	sim_mix(s, ev->units);
	sim_mix(s, ev->queue);
	sim_mix(s, ev->sequence);
	sim_mix(s, ev->now_ns);
	(void)on_event(s, ev); /* s->why is looked at after the step */
}

/* ---- units ------------------------------------------------------------------------ */

static int check_units(struct sim *s)
{
	uint32_t width = s->info.unit_cols, all = s->info.unit_rows * width;
	int32_t *owner, *theirs;
	bool moving = false;
	uint32_t i, r, c;
	int bad = 0;

	owner = malloc(2 * all * sizeof(*owner));
	SIM_CHECK(owner);
	theirs = owner + all;
	for (i = 0; i < all; i++)
		owner[i] = -1;
	for (i = 0; i < PARTS; i++) {
		struct hal_partition_info p = HAL_INIT(hal_partition_info);

		if (!s->parts[i].p || s->parts[i].host)
			continue; /* a guest has its host's */
		if (s->parts[i].moved.timeline)
			moving |= hal_timeline_value(s->parts[i].moved.timeline, NULL) <
				  s->parts[i].moved.value;
		bad |= hal_partition_get_info(s->parts[i].p, &p);
		bad |= p.units != (uint32_t)p.rows * p.cols;
		bad |= p.units < s->parts[i].floor;
		bad |= (uint32_t)p.row + p.rows > s->info.unit_rows;
		bad |= (uint32_t)p.col + p.cols > width;
		for (r = p.row; !bad && r < (uint32_t)p.row + p.rows; r++) {
			for (c = p.col; c < (uint32_t)p.col + p.cols; c++) {
				bad |= owner[r * width + c] >= 0;
				owner[r * width + c] = (int32_t)p.index;
			}
		}
	}
	/* The device moves before the core has been told. */
	if (s->ref && !bad && !moving && !s->moves) {
		s->ref->unit_owners(hal_device_native(s->dev), theirs, all);
		bad = memcmp(owner, theirs, all * sizeof(*owner)) != 0;
	}
	free(owner);
	return bad ? sim_fail(s, __FILE__, __LINE__,
			      "units: two owners, outside, below a floor, or the "
			      "device has another map")
		   : 0;
}

/* ---- time ------------------------------------------------------------------------- */

static int check_queue_time(struct sim *s, struct sim_queue *q)
{
	int err = 0, line_err = 0;
	uint64_t v = hal_timeline_value(hal_queue_timeline(q->q), &err);
	uint64_t line = hal_timeline_value(q->line, &line_err);

	SIM_CHECK(v >= q->seen && v <= q->submissions);
	SIM_CHECK(line >= q->line_seen && line <= q->line_value);
	if (!q->tainted) {
		SIM_CHECK(!err);
		SIM_CHECK(!line_err);
	}
	q->seen = v;
	q->line_seen = line;
	sim_mix(s, v);
	sim_mix(s, line);
	return 0;
}

/* ---- accounting ------------------------------------------------------------------- */

static uint64_t done(const struct hal_stats *t)
{
	return t->completed + t->failed + t->dropped;
}

static int check_queue_stats(struct sim *s, struct sim_queue *q)
{
	struct hal_stats t = HAL_INIT(hal_stats);
	uint64_t sum = 0;
	uint32_t i;

	SIM_OK(hal_queue_get_stats(q->q, &t));
	SIM_CHECK(t.submitted == q->commands);
	SIM_CHECK(done(&t) <= t.submitted);
	SIM_CHECK(t.completed >= q->last.completed && t.failed >= q->last.failed &&
		  t.dropped >= q->last.dropped && t.busy_ns >= q->last.busy_ns);
	SIM_CHECK(q->tainted || (!t.failed && !t.dropped));
	SIM_CHECK(t.failed <= 1);
	/* All submissions have ended: so have all their commands. */
	SIM_CHECK(q->seen != q->submissions || t.completed == t.submitted);
	for (i = 0; i < HAL_HISTOGRAM_BUCKETS; i++)
		sum += t.latency_histogram[i];
	SIM_CHECK(sum == t.completed);
	SIM_CHECK(q->host_done <= q->host_submitted);
	SIM_CHECK(q->tainted || q->seen != q->submissions ||
		  q->host_done == q->host_submitted);
	sim_mix(s, done(&t));
	sim_mix(s, t.busy_ns);
	sim_mix(s, t.queueing_ns);
	sim_mix(s, t.replayed);
	q->last = t;
	return 0;
}

static int check_sums(struct sim *s)
{
	struct hal_stats t = HAL_INIT(hal_stats);
	uint64_t submitted = s->past_submitted, completed = s->past_completed;
	uint64_t failed = s->past_failed, dropped = s->past_dropped;
	uint32_t i, k;

	for (i = 0; i < PARTS; i++) {
		struct sim_part p = s->parts[i];

		if (!p.p)
			continue;
		for (k = 0; k < QUEUES; k++) {
			const struct sim_queue *q = &s->queues[k];

			if (!q->q || q->part != i)
				continue;
			p.past_submitted += q->last.submitted;
			p.past_completed += q->last.completed;
			p.past_failed += q->last.failed;
			p.past_dropped += q->last.dropped;
		}
		SIM_OK(hal_partition_get_stats(p.p, &t));
		SIM_CHECK(t.submitted == p.past_submitted);
		SIM_CHECK(t.completed == p.past_completed);
		SIM_CHECK(t.failed == p.past_failed);
		SIM_CHECK(t.dropped == p.past_dropped);
		SIM_CHECK(t.busy_ns <= t.now_ns);
		submitted += p.past_submitted;
		completed += p.past_completed;
		failed += p.past_failed;
		dropped += p.past_dropped;
	}
	SIM_OK(hal_device_get_stats(s->dev, &t));
	SIM_CHECK(t.submitted == submitted);
	SIM_CHECK(t.completed == completed);
	SIM_CHECK(t.failed == failed);
	SIM_CHECK(t.dropped == dropped);
	SIM_CHECK(t.busy_ns <= t.now_ns);
	return 0;
}

/* ---- memory ----------------------------------------------------------------------- */

static int check_memory(struct sim *s)
{
	struct hal_device_info info = HAL_INIT(hal_device_info);
	uint64_t used = 0;
	uint32_t i;

	for (i = 0; i < PARTS; i++) {
		struct hal_partition_info p = HAL_INIT(hal_partition_info);

		if (!s->parts[i].p)
			continue;
		SIM_OK(hal_partition_get_info(s->parts[i].p, &p));
		/* Destroyed buffers count until the work that uses them has ended. */
		SIM_CHECK(p.memory_used >= s->parts[i].buffer_bytes);
		SIM_CHECK(!p.memory_bytes || p.memory_used <= p.memory_bytes);
		used += p.memory_used;
		sim_mix(s, p.memory_used);
	}
	SIM_OK(hal_device_get_info(s->dev, &info));
	SIM_CHECK(used <= info.memory_bytes);
	SIM_CHECK(info.memory_free <= info.memory_bytes);
	return 0;
}

int sim_check(struct sim *s)
{
	uint64_t now = hal_device_now(s->dev);
	uint32_t i;

	if (s->why[0])
		return -1; /* an event or a callback has seen something */
	SIM_CHECK(now >= s->now);
	SIM_CHECK(now >= s->event_now);
	s->now = now;
	sim_mix(s, now);
	if (check_units(s))
		return -1;
	for (i = 0; i < QUEUES; i++) {
		if (!s->queues[i].q)
			continue;
		if (check_queue_time(s, &s->queues[i]) ||
		    check_queue_stats(s, &s->queues[i]))
			return -1;
	}
	return check_sums(s) || check_memory(s) ? -1 : 0;
}

int sim_check_ended(struct sim *s)
{
	uint32_t i;

	for (i = 0; i < QUEUES; i++) {
		const struct sim_queue *q = &s->queues[i];
		uint64_t counter = 0;

		if (!q->q)
			continue;
		SIM_CHECK(done(&q->last) == q->commands);
		if (q->tainted)
			continue;
		SIM_CHECK(q->seen == q->submissions);
		SIM_CHECK(q->line_seen == q->line_value);
		SIM_CHECK(q->host_done == q->host_submitted);
		if (!s->step_kernel)
			continue;
		SIM_OK(hal_buffer_read(q->state, 0, &counter, sizeof(counter)));
		SIM_CHECK(counter == q->steps);
	}
	return 0;
}

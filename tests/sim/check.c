/* SPDX-License-Identifier: Apache-2.0 */
/*
 * check.c - what must hold after every operation:
 *  - units: none has two owners, none is outside, no partition is below its floor or
 * above its ceiling, and the device agrees with the core on who owns what;
 *  - time and timelines only grow, no point is reached before its work has ended, no
 *    untainted queue fails;
 *  - whoever stops a queue, it is quiet within its mode's worst case; no command is
 *    killed more often than the limit and the application say;
 *  - whoever waits for nothing goes on within what the policy's net promises;
 *  - submitted = completed + failed + dropped + in flight, in queue, partition and
 * device; a partition was busy for as long as its commands ran;
 *  - all that has ended has ended once: kernels have counted each, buffers hold what the
 *    commands say, in order;
 *  - memory used is what the live buffers take, twice while they move; of each colour
 *    all is free again in the end; who is moving is not read, and is the same afterwards;
 *  - what is not on the device of a partition with more than its quota is with the host,
 *    and holds the same; on the device is never more than the quota.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <hal/ext/memory.h>

#include "sim.h"

/* ---- units ------------------------------------------------------------------------ */

/* What it may have, once the last resize is over. */
static bool is_moving(struct sim_part *p)
{
	int err = 0;

	if (!p->moved.timeline)
		return false;
	if (hal_timeline_get_value(p->moved.timeline, &err) < p->moved.value && !err)
		return true;
	if (!err) {
		p->floor = p->floor_next;
		p->ceiling = p->ceiling_next;
	}
	p->moved.timeline = NULL;
	return false;
}

static bool owns(const struct sim *s, const struct hal_partition_info *p, int32_t *owner)
{
	uint32_t width = s->info.unit_cols;
	bool bad = false;

	for (uint32_t r = p->row; r < (uint32_t)p->row + p->rows; r++) {
		for (uint32_t c = p->col; c < (uint32_t)p->col + p->cols; c++) {
			bad |= owner[r * width + c] >= 0;
			owner[r * width + c] = (int32_t)p->index;
		}
	}
	return !bad;
}

/* It is where its host is. */
static int check_guest_units(struct sim *s, const struct sim_part *part,
			     const struct hal_partition_info *p)
{
	struct hal_partition_info host = HAL_INIT(hal_partition_info);

	SIM_OK(hal_partition_get_info(part->host->p, &host));
	SIM_CHECK(p->row == host.row && p->col == host.col && p->rows == host.rows &&
		  p->cols == host.cols && p->units == host.units);
	SIM_CHECK(p->index >= s->info.partitions_max &&
		  p->index < s->info.partitions_max + s->info.guests_max);
	SIM_CHECK((p->color_mask & ~host.color_mask) == 0);
	return 0;
}

static int check_part_units(struct sim *s, struct sim_part *part, int32_t *owner)
{
	struct hal_partition_info p = HAL_INIT(hal_partition_info);

	SIM_OK(hal_partition_get_info(part->p, &p));
	if (part->host != part)
		return check_guest_units(s, part, &p);
	SIM_CHECK(p.units == (uint32_t)p.rows * p.cols);
	SIM_CHECK(p.units >= part->floor);
	SIM_CHECK(p.units <= part->ceiling);
	SIM_CHECK((uint32_t)p.row + p.rows <= s->info.unit_rows);
	SIM_CHECK((uint32_t)p.col + p.cols <= s->info.unit_cols);
	SIM_CHECK(owns(s, &p, owner));
	return 0;
}

static int check_units(struct sim *s)
{
	uint32_t all = s->info.unit_rows * s->info.unit_cols;
	int32_t *owner = malloc(2 * all * sizeof(*owner)), *theirs = owner + all;
	bool moving = false;
	int err = 0;

	SIM_CHECK(owner);
	memset(owner, 0xff, all * sizeof(*owner));
	for (uint32_t i = 0; !err && i < PARTS; i++) {
		if (!s->parts[i].p)
			continue;
		moving |= is_moving(&s->parts[i]);
		err = check_part_units(s, &s->parts[i], owner);
	}
	/* The device moves before the core has been told. */
	if (!err && s->ref && !moving && !s->moves && !s->faulty) {
		s->ref->unit_owners(hal_device_get_native(s->dev), theirs, all);
		if (memcmp(owner, theirs, all * sizeof(*owner)) != 0)
			err = sim_fail(s, __FILE__, __LINE__, "the device's map differs");
	}
	free(owner);
	return err;
}

/* ---- time ------------------------------------------------------------------------- */

static int check_queue_time(struct sim *s, struct sim_queue *q)
{
	int err = 0, line_err = 0;
	uint64_t v = hal_timeline_get_value(hal_queue_get_timeline(q->q), &err);
	uint64_t line = hal_timeline_get_value(q->line, &line_err);

	SIM_CHECK(v >= q->seen && v <= q->submissions);
	SIM_CHECK(line >= q->line_seen && line <= q->line_value);
	if ((err || line_err) && s->faulty)
		sim_taint(s, q);
	SIM_CHECK(q->tainted || (!err && !line_err));
	q->seen = v;
	q->line_seen = line;
	sim_mix(s, v);
	sim_mix(s, line);
	return 0;
}

/* What the application has asked for is quiet in time, or still may be. */
static int check_suspend(struct sim *s, struct sim_queue *q)
{
	uint64_t worst = s->info.suspend_worst_ns[q->mode];
	bool quiet;

	if (!q->asked_quiet)
		return 0;
	quiet = hal_timeline_get_value(q->quiet.timeline, NULL) >= q->quiet.value;
	SIM_CHECK(quiet || worst == 0 || s->now <= q->asked_ns + worst || s->faulty);
	q->asked_quiet = !quiet;
	return 0;
}

/* Nor has any stop taken longer than its mode does at worst, whoever has decided it. */
static int check_stops(struct sim *s, const struct hal_stats *t)
{
	uint64_t longest = 0;

	for (uint32_t mode = 0; mode <= HAL_SUSPEND_KILL; mode++) {
		uint64_t worst = s->info.suspend_worst_ns[mode];

		SIM_CHECK(worst == 0 || t->stop_max_ns[mode] <= worst || s->faulty);
		if (t->stop_max_ns[mode] > longest)
			longest = t->stop_max_ns[mode];
		sim_mix(s, t->stop_max_ns[mode]);
	}
	SIM_CHECK(longest == t->suspend_max_ns);
	return 0;
}

/* For how long somebody whose turn it could be may stand still: for as long as the net
 * holds, and then for all that have waited as long, whose commands run. Best effort makes
 * way for latency-critical work again and again, each time no longer than that; so does
 * anybody where priorities or deadlines count. */
static int check_starved(struct sim *s, struct sim_queue *q)
{
	uint64_t progress = q->seen + q->last.completed + q->host_done;
	uint64_t limit = 4 * s->timeout_ns + 3000000;

	if (progress != q->progress || !model_ready(s, q) || q->tainted || s->faulty)
		q->moved_on_ns = s->now;
	q->progress = progress;
	if (q->service_class == HAL_CLASS_BEST_EFFORT ||
	    strstr(s->script->target, "preempt_for=") != NULL)
		limit *= 40;
	SIM_CHECK(s->now - q->moved_on_ns <= limit);
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

	SIM_OK(hal_queue_get_stats(q->q, &t));
	SIM_CHECK(t.submitted == q->commands);
	SIM_CHECK(done(&t) <= t.submitted);
	SIM_CHECK(t.completed >= q->last.completed && t.failed >= q->last.failed &&
		  t.dropped >= q->last.dropped && t.busy_ns >= q->last.busy_ns);
	SIM_CHECK(q->tainted || (!t.failed && !t.dropped));
	SIM_CHECK(t.failed <= 1);
	SIM_CHECK(t.deadline_misses <= q->seen);
	/* All submissions have ended: so have all their commands. */
	SIM_CHECK(q->seen != q->submissions || t.completed == t.submitted);
	for (uint32_t i = 0; i < HAL_HISTOGRAM_BUCKETS; i++)
		sum += t.latency_histogram[i];
	SIM_CHECK(sum == t.completed);
	if (check_stops(s, &t))
		return -1;
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

/* part as it was, and what its live queues add, and of the time of its units its guests.
 */
static struct sim_part sum_of(const struct sim *s, uint32_t i)
{
	struct sim_part p = s->parts[i];

	p.past_busy_ns += p.guests_busy_ns;
	for (uint32_t k = 0; k < PARTS; k++)
		if (k != i && s->parts[k].host == &s->parts[i])
			p.past_busy_ns += s->parts[k].past_busy_ns;
	for (uint32_t k = 0; k < QUEUES; k++) {
		const struct sim_queue *q = &s->queues[k];

		if (!q->q)
			continue;
		if (q->part != i) {
			if (s->parts[q->part].host == &s->parts[i])
				p.past_busy_ns += q->last.busy_ns;
			continue;
		}
		p.past_submitted += q->last.submitted;
		p.past_completed += q->last.completed;
		p.past_failed += q->last.failed;
		p.past_dropped += q->last.dropped;
		p.past_busy_ns += q->last.busy_ns;
	}
	return p;
}

static int check_sums(struct sim *s)
{
	struct hal_stats t = HAL_INIT(hal_stats);
	uint64_t submitted = s->past_submitted, completed = s->past_completed;
	uint64_t failed = s->past_failed, dropped = s->past_dropped, busiest = 0;

	for (uint32_t i = 0; i < PARTS; i++) {
		struct sim_part p = sum_of(s, i);

		if (!p.p)
			continue;
		SIM_OK(hal_partition_get_stats(p.p, &t));
		SIM_CHECK(t.submitted == p.past_submitted);
		SIM_CHECK(t.completed == p.past_completed);
		SIM_CHECK(t.failed == p.past_failed);
		SIM_CHECK(t.dropped == p.past_dropped);
		SIM_CHECK(t.busy_ns <= t.now_ns && t.busy_ns <= p.past_busy_ns);
		if (p.host != &s->parts[i])
			SIM_CHECK(t.busy_ns == p.past_busy_ns);
		else
			SIM_CHECK(!s->ref || s->faulty || t.busy_ns == p.ran_ns);
		busiest = t.busy_ns > busiest ? t.busy_ns : busiest;
		submitted += p.past_submitted;
		completed += p.past_completed;
		failed += p.past_failed;
		dropped += p.past_dropped;
	}
	if (s->script->shared)
		return 0;
	SIM_OK(hal_device_get_stats(s->dev, &t));
	SIM_CHECK(t.submitted == submitted);
	SIM_CHECK(t.completed == completed);
	SIM_CHECK(t.failed == failed);
	SIM_CHECK(t.dropped == dropped);
	SIM_CHECK(t.busy_ns <= t.now_ns && t.busy_ns >= busiest);
	return check_stops(s, &t);
}

/* ---- memory ----------------------------------------------------------------------- */

/* *held: the buffer cannot be read, for it moves. */
static int check_move(struct sim *s, struct hal_buffer *buf, const struct sim_move *move,
		      bool *held)
{
	enum sim_moving is = model_moving(s, move);
	uint64_t byte = 0;
	int err = is && buf ? hal_buffer_read(buf, 0, &byte, sizeof(byte)) : 0;

	SIM_ANSWER(!err || err == -EBUSY);
	SIM_ANSWER(is != MOVE_ON || !buf || err == -EBUSY);
	*held |= err != 0;
	return 0;
}

/* What the queue's work has left behind, once it has ended. */
static int check_effects(struct sim *s, struct sim_queue *q)
{
	enum { AREA = BUFFER_BYTES - 256 };
	static uint8_t bytes[BUFFER_BYTES];
	bool held = false;

	if (q->checked || q->seen != q->submissions || q->tainted || s->faulty)
		return 0;
	if (check_move(s, q->buf, &q->buf_move, &held) ||
	    check_move(s, q->state, &q->state_move, &held))
		return -1;
	if (held)
		return 0;
	q->checked = true;
	if (kernels_check(s, q))
		return -1;
	if (!q->buf)
		return 0;
	SIM_OK(hal_buffer_read(q->buf, 0, bytes, AREA));
	SIM_CHECK(memcmp(bytes, q->shadow, AREA) == 0);
	return 0;
}

/* Of buffers on their way: the place that they have and the one they go to.  With more
 * than its quota a partition has that when the move begins. */
static uint64_t moving_bytes(const struct sim *s, uint32_t part)
{
	uint64_t bytes = 0;

	if (s->parts[part].limit)
		return 0;
	for (uint32_t i = 0; i < QUEUES; i++) {
		const struct sim_queue *q = &s->queues[i];

		if (!q->q || q->part != part)
			continue;
		if (q->buf && model_moving(s, &q->buf_move) == MOVE_ON)
			bytes += BUFFER_BYTES;
		if (model_moving(s, &q->state_move) == MOVE_ON)
			bytes += STATE_BYTES;
	}
	return bytes;
}

/* On ref nothing else takes memory. */
static int check_colors(struct sim *s, const struct hal_device_info *info, uint64_t used)
{
	uint64_t left = 0;

	for (uint32_t c = 0; c < (info->colors ? info->colors : 1); c++) {
		uint64_t bytes = 0;

		SIM_OK(s->ref->color_free(hal_device_get_native(s->dev), c, &bytes));
		SIM_CHECK(bytes <= s->color_free[c]);
		left += bytes;
		sim_mix(s, bytes);
	}
	SIM_CHECK(info->memory_free <= left); /* quotas are kept free */
	SIM_CHECK(left + used == info->memory_bytes);
	return 0;
}

/* No buffer of it is on its way to other channels. */
static bool is_settled(const struct sim *s, uint32_t part)
{
	for (uint32_t i = 0; i < QUEUES; i++)
		if (s->queues[i].q && s->queues[i].part == part &&
		    model_moves(&s->queues[i]))
			return false;
	return true;
}

/* Of a partition with more than its quota: what is not on the device is with the host,
 * and neither twice.  ref has no constants of programs. */
static int check_lent(struct sim *s, uint32_t i, uint64_t used,
		      const struct hal_partition_memory_info *p)
{
	struct sim_part *part = &s->parts[i];

	SIM_CHECK(p->memory_limit == part->limit);
	SIM_CHECK(p->memory_buffers <= p->memory_limit);
	SIM_CHECK(p->memory_buffers >= part->buffer_bytes);
	SIM_CHECK(p->memory_away <= p->memory_buffers);
	SIM_CHECK(used + p->memory_away >= p->memory_buffers);
	SIM_CHECK(!s->ref || s->faulty || !is_settled(s, i) ||
		  used + p->memory_away == p->memory_buffers);
	SIM_CHECK(p->evictions >= part->evictions && p->fetches >= part->fetches &&
		  p->fetches <= p->evictions);
	SIM_CHECK(p->evicted_bytes >= p->fetched_bytes + p->memory_away);
	s->fetches += p->fetches - part->fetches;
	part->evictions = p->evictions;
	part->fetches = p->fetches;
	sim_mix(s, p->memory_away);
	sim_mix(s, p->fetched_bytes);
	return 0;
}

static int check_memory(struct sim *s)
{
	struct hal_device_info info = HAL_INIT(hal_device_info);
	uint64_t used = 0;

	for (uint32_t i = 0; i < PARTS; i++) {
		struct hal_partition_memory_info m = HAL_INIT(hal_partition_memory_info);
		struct hal_partition_info p = HAL_INIT(hal_partition_info);

		if (!s->parts[i].p)
			continue;
		SIM_OK(hal_partition_get_info(s->parts[i].p, &p));
		SIM_OK(hal_partition_get_memory_info(s->parts[i].p, &m));
		/* Destroyed buffers count until the work that uses them has ended. */
		SIM_CHECK(p.memory_used + m.memory_away >=
			  s->parts[i].buffer_bytes + moving_bytes(s, i));
		if (s->parts[i].limit && check_lent(s, i, p.memory_used, &m))
			return -1;
		SIM_CHECK(!p.memory_bytes || p.memory_used <= p.memory_bytes);
		used += p.memory_used;
		sim_mix(s, p.memory_used);
	}
	SIM_OK(hal_device_get_info(s->dev, &info));
	SIM_CHECK(used <= info.memory_bytes);
	SIM_CHECK(info.memory_free <= info.memory_bytes);
	SIM_CHECK(!info.lost || s->faulty);
	s->lost = info.lost != 0;
	return s->ref && !s->faulty ? check_colors(s, &info, used) : 0;
}

/* ---- all of it ---------------------------------------------------------------------- */

static int check_queue(struct sim *s, struct sim_queue *q)
{
	return check_queue_time(s, q) || check_queue_stats(s, q) || check_suspend(s, q) ||
	       check_effects(s, q);
}

int sim_check(struct sim *s)
{
	uint64_t now = hal_device_get_time(s->dev);

	if (s->why[0])
		return -1; /* an event or a callback has seen something */
	SIM_CHECK(now >= s->now);
	SIM_CHECK(now >= s->event_now);
	s->now = now;
	sim_mix(s, now);
	if (check_units(s))
		return -1;
	for (uint32_t i = 0; i < QUEUES; i++)
		if (s->queues[i].q && check_queue(s, &s->queues[i]))
			return -1;
	for (uint32_t i = 0; i < QUEUES; i++)
		if (s->queues[i].q && !s->script->shared &&
		    check_starved(s, &s->queues[i]))
			return -1;
	if (s->hostile && sim_policy_check(s))
		return -1;
	return check_sums(s) || check_memory(s) ? -1 : 0;
}

int sim_check_ended(struct sim *s)
{
	for (uint32_t i = 0; i < QUEUES; i++) {
		const struct sim_queue *q = &s->queues[i];

		if (!q->q || q->tainted || s->faulty ||
		    !model_can_end(s, q, q->submissions))
			continue;
		SIM_CHECK(done(&q->last) == q->commands);
		SIM_CHECK(q->seen == q->submissions);
		SIM_CHECK(q->line_seen == q->line_value);
		SIM_CHECK(q->host_done == q->host_submitted);
	}
	return 0;
}

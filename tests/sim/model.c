/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model.c - what the library owes for what it was asked.
 *
 * A queue's submissions end in order, each after the points that it waits for.  So who
 * can end follows from the points alone: which gates the host has opened, which queues
 * are suspended, what waits for what.  Points are only waited for that somebody has been
 * asked to reach already, so there are no circles.
 */
#include "sim.h"

/* While it is being found out: by queue's place, up to where it can end for sure, and
 * from where on it can not. */
struct known {
	uint64_t can[QUEUES], cannot[QUEUES];
};

static bool can_end(const struct sim *s, struct known *k, uint32_t at, uint64_t value);

enum sim_moving model_moving(const struct sim *s, const struct sim_move *move)
{
	const struct sim_queue *by = move->by ? sim_queue_of(s, move->by) : NULL;
	int err = 0;

	if (!by)
		return MOVE_OVER;
	if (hal_timeline_get_value(hal_queue_get_timeline(by->q), &err) >= move->value)
		return MOVE_OVER;
	return err || by->tainted || s->faulty ? MOVE_UNKNOWN : MOVE_ON;
}

bool model_moves(const struct sim_queue *q)
{
	for (uint64_t n = q->seen + 1; n <= q->submissions; n++)
		if (q->owed[n % DEPTH].moves != 0)
			return true;
	return false;
}

static bool holds(const struct sim *s, const struct sim_queue *q,
		  const struct sim_move *move)
{
	return move->by != q->id && model_moving(s, move);
}

/* Another queue's move of one of its buffers may hold it up. */
static bool is_held(const struct sim *s, const struct sim_queue *q)
{
	for (uint32_t i = 0; i < 4; i++)
		if (holds(s, q, &q->gone_moves[i]))
			return true;
	return holds(s, q, &q->buf_move) || holds(s, q, &q->state_move);
}

/* It moves a buffer of another queue, whose commands have to let go of it. */
static const struct sim_queue *moves_of(const struct sim *s, const struct sim_queue *q,
					const struct sim_owed *o)
{
	return o->moves && o->moves != q->id ? sim_queue_of(s, o->moves) : NULL;
}

/* Its partition has more than its quota, and it may be waiting for room that another
 * queue does not leave: that is stopped, perhaps inside a command, or moves a buffer. */
static bool is_crowded(const struct sim *s, const struct sim_queue *q)
{
	if (!s->parts[q->part].limit)
		return false;
	for (uint32_t i = 0; i < QUEUES; i++) {
		const struct sim_queue *o = &s->queues[i];

		if (o->q && o != q && o->part == q->part &&
		    (o->suspended || model_moves(o)))
			return true;
	}
	return false;
}

/* Queues that are there no more have ended all they had. */
static bool wait_can_pass(const struct sim *s, struct known *k, const struct sim_wait *w)
{
	const struct sim_queue *q;

	if (w->gate)
		return s->gate_value[w->who] >= w->value;
	q = sim_queue_of(s, w->who);
	return !q || can_end(s, k, (uint32_t)(q - s->queues), w->value);
}

static bool can_end(const struct sim *s, struct known *k, uint32_t at, uint64_t value)
{
	const struct sim_queue *q = &s->queues[at];

	if (value <= q->seen || value <= k->can[at])
		return true;
	if (q->suspended || value >= k->cannot[at] || is_held(s, q) || is_crowded(s, q))
		return false;
	for (uint64_t n = q->seen + 1; n <= value; n++) {
		const struct sim_owed *o = &q->owed[n % DEPTH];
		const struct sim_queue *other = moves_of(s, q, o);
		bool can = !other || !other->suspended;

		for (uint32_t i = 0; can && i < o->wait_count; i++)
			can = wait_can_pass(s, k, &o->waits[i]);
		if (!can) {
			k->cannot[at] = n < k->cannot[at] ? n : k->cannot[at];
			return false;
		}
		k->can[at] = n > k->can[at] ? n : k->can[at];
	}
	return true;
}

bool model_can_end(const struct sim *s, const struct sim_queue *q, uint64_t value)
{
	struct known k;

	for (uint32_t i = 0; i < QUEUES; i++) {
		k.can[i] = 0;
		k.cannot[i] = UINT64_MAX;
	}
	return can_end(s, &k, (uint32_t)(q - s->queues), value);
}

bool model_ready(const struct sim *s, const struct sim_queue *q)
{
	const struct sim_owed *o = &q->owed[(q->seen + 1) % DEPTH];
	const struct sim_queue *other;

	if (q->seen == q->submissions || q->suspended || o->not_before_ns >= s->now ||
	    is_held(s, q) || is_crowded(s, q))
		return false;
	other = moves_of(s, q, o);
	if (other && other->seen < other->submissions)
		return false;
	for (uint32_t i = 0; i < o->wait_count; i++) {
		const struct sim_wait *w = &o->waits[i];

		if (w->gate && s->gate_value[w->who] < w->value)
			return false;
		other = w->gate ? NULL : sim_queue_of(s, w->who);
		if (other && other->seen < w->value)
			return false;
	}
	return true;
}

/* A move has no tag.  The oldest queue of that handle that is owed any. */
static uint64_t told_of_move(const struct sim *s, const struct hal_completion *c)
{
	uint64_t id = 1;

	while (id <= s->ids &&
	       (s->handle[id] != c->queue || s->told[id] == s->submitted[id]))
		id++;
	return id;
}

int model_told(struct sim *s, const struct hal_completion *c)
{
	uint64_t id = c->tag ? c->tag >> 32 : told_of_move(s, c);

	SIM_CHECK(id >= 1 && id <= s->ids);
	SIM_CHECK(c->value == s->told[id] + 1);
	SIM_CHECK(!c->tag || (c->tag & UINT32_MAX) == c->value);
	SIM_CHECK(c->value <= s->submitted[id]);
	SIM_CHECK(c->submit_ns <= c->end_ns && c->end_ns <= hal_device_get_time(s->dev));
	SIM_CHECK(c->status == 0 || !s->clean[id]);
	s->told[id] = c->value;
	sim_mix(s, c->tag);
	sim_mix(s, (uint64_t)(int64_t)c->status);
	return 0;
}

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

/* Queues that are there no more have ended all they had. */
static bool wait_can_pass(const struct sim *s, struct known *k, const struct sim_wait *w)
{
	if (w->gate)
		return s->gate_value[w->who] >= w->value;
	for (uint32_t i = 0; i < QUEUES; i++)
		if (s->queues[i].q && s->queues[i].id == w->who)
			return can_end(s, k, i, w->value);
	return true;
}

static bool can_end(const struct sim *s, struct known *k, uint32_t at, uint64_t value)
{
	const struct sim_queue *q = &s->queues[at];

	if (value <= q->seen || value <= k->can[at])
		return true;
	if (q->suspended || value >= k->cannot[at])
		return false;
	for (uint64_t n = q->seen + 1; n <= value; n++) {
		const struct sim_owed *o = &q->owed[n % DEPTH];

		for (uint32_t i = 0; i < o->wait_count; i++) {
			if (wait_can_pass(s, k, &o->waits[i]))
				continue;
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

	if (q->seen == q->submissions || q->suspended || o->not_before_ns >= s->now)
		return false;
	for (uint32_t i = 0; i < o->wait_count; i++) {
		const struct sim_wait *w = &o->waits[i];

		if (w->gate && s->gate_value[w->who] < w->value)
			return false;
		for (uint32_t k = 0; !w->gate && k < QUEUES; k++)
			if (s->queues[k].q && s->queues[k].id == w->who &&
			    s->queues[k].seen < w->value)
				return false;
	}
	return true;
}

int model_told(struct sim *s, const struct hal_completion *c)
{
	uint64_t id = c->tag >> 32;

	SIM_CHECK(id >= 1 && id <= s->ids);
	SIM_CHECK(c->value == s->told[id] + 1);
	SIM_CHECK((c->tag & UINT32_MAX) == c->value);
	SIM_CHECK(c->value <= s->submitted[id]);
	SIM_CHECK(c->submit_ns <= c->end_ns && c->end_ns <= hal_device_now(s->dev));
	SIM_CHECK(c->status == 0 || !s->clean[id]);
	s->told[id] = c->value;
	sim_mix(s, c->tag);
	sim_mix(s, (uint64_t)(int64_t)c->status);
	return 0;
}

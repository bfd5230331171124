/* SPDX-License-Identifier: Apache-2.0 */
/* events.c - what ref says it does: in order, one command at a time on a partition. */
#include <stdio.h>

#include "sim.h"

static int on_start(struct sim *s, const struct hal_ref_event *ev)
{
	struct sim_bk_queue *q = &s->bk[ev->queue];

	SIM_CHECK(s->running[ev->partition] == 0);
	SIM_CHECK(ev->sequence == q->next_start);
	SIM_CHECK(q->next_start == q->next_end);
	s->running[ev->partition] = ev->queue;
	s->started[ev->partition] = ev->now_ns;
	q->next_start++;
	return 0;
}

/* The units are free. */
static int leaves(struct sim *s, const struct hal_ref_event *ev)
{
	SIM_CHECK(s->running[ev->partition] == ev->queue);
	SIM_CHECK(ev->sequence == s->bk[ev->queue].next_end);
	s->running[ev->partition] = 0;
	for (uint32_t i = 0; i < PARTS; i++)
		if (s->parts[i].p && s->parts[i].index == ev->partition)
			s->parts[i].ran_ns += ev->now_ns - s->started[ev->partition];
	return 0;
}

static int on_end(struct sim *s, const struct hal_ref_event *ev)
{
	struct sim_bk_queue *q = &s->bk[ev->queue];

	if (leaves(s, ev))
		return -1;
	q->next_end++;
	if (ev->kind != HAL_REF_KILLED)
		q->kills = 0;
	else if (ev->now_ns > s->started[ev->partition])
		SIM_CHECK(++q->kills <= s->kills + s->asked_kills);
	return 0;
}

/* Inside; it begins once more where it was. */
static int on_stop(struct sim *s, const struct hal_ref_event *ev)
{
	if (leaves(s, ev))
		return -1;
	s->bk[ev->queue].next_start--;
	return 0;
}

static int on_event(struct sim *s, const struct hal_ref_event *ev)
{
	SIM_CHECK(ev->queue < IDS);
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
		return on_stop(s, ev);
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

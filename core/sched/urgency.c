/* SPDX-License-Identifier: Apache-2.0 */
/*
 * urgency.c - how urgent a queue is, by itself and by inheritance.
 *
 * A rank is one number for class and priority; smaller is more urgent.
 *
 *   bits 63..32  class: 0 latency-critical, 1 normal, 2 best effort
 *   bits 31..0   INT32_MAX - priority
 *
 * This file calls no other file of core/sched, so that all of them may use it.
 */
#include "sched/urgency.h"

#include "command/timeline.h"
#include "loop/engine.h"
#include "space/partition.h"

static const uint8_t class_ranks[HAL_CLASSES] = {
	[HAL_CLASS_LATENCY] = 0,
	[HAL_CLASS_NORMAL] = 1,
	[HAL_CLASS_BEST_EFFORT] = 2,
};

static uint64_t rank_of(uint32_t service_class, int32_t priority)
{
	return (uint64_t)class_ranks[service_class] << 32 |
	       (uint64_t)((int64_t)INT32_MAX - priority);
}

static uint32_t rank_class(uint64_t rank)
{
	if (rank >> 32 == class_ranks[HAL_CLASS_LATENCY])
		return HAL_CLASS_LATENCY;
	return rank >> 32 == class_ranks[HAL_CLASS_NORMAL] ? HAL_CLASS_NORMAL
							   : HAL_CLASS_BEST_EFFORT;
}

static int32_t rank_priority(uint64_t rank)
{
	return (int32_t)(INT32_MAX - (int64_t)(rank & UINT32_MAX));
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t own_rank(const struct hal_queue *q)
{
	return rank_of(q->sched.own_class, q->issue_terms.priority);
}

static uint64_t own_deadline(const struct hal_queue *q)
{
	uint64_t at = q->slots[q->issue.pos & q->slot_mask].submit_ns;

	at = least(at, q->dev->now); /* SUBMIT_ASLEEP: not known yet */
	return q->issue_terms.deadline_ns != 0
		       ? hal_bk_after(at, q->issue_terms.deadline_ns)
		       : UINT64_MAX;
}

bool urgency_above(const struct urgency *a, const struct urgency *b)
{
	if (a->rank != b->rank)
		return a->rank < b->rank;
	return a->deadline_ns < b->deadline_ns;
}

struct urgency inherit_urgency(const struct hal_queue *q)
{
	struct urgency next = {own_rank(q), UINT64_MAX}, u;

	/* If q is not runnable, its thread may be writing the record just now. */
	if (q->runnable)
		next.deadline_ns = own_deadline(q);
	u = next;
	if (q->inflight_count > 0) {
		uint64_t at = q->oldest->submit_ns;

		u.rank = rank_of(q->sched.own_class, q->retire_terms.priority);
		u.deadline_ns = q->retire_terms.deadline_ns != 0
					? hal_bk_after(at, q->retire_terms.deadline_ns)
					: UINT64_MAX;
		if (q->runnable && urgency_above(&next, &u))
			u = next;
	}
	u.rank = least(u.rank, q->sched.inherited.rank);
	u.deadline_ns = least(u.deadline_ns, q->sched.inherited.deadline_ns);
	return u;
}

struct urgency urgency_to_donate(const struct hal_queue *q)
{
	return (struct urgency){least(own_rank(q), q->sched.inherited.rank),
				least(own_deadline(q), q->sched.inherited.deadline_ns)};
}

uint32_t urgency_class(const struct hal_queue *q)
{
	return rank_class(
		least(rank_of(q->sched.own_class, INT32_MIN), q->sched.inherited.rank));
}

uint64_t inherit_deadline(const struct hal_queue *q)
{
	return q->runnable ? least(own_deadline(q), q->sched.inherited.deadline_ns)
			   : inherit_urgency(q).deadline_ns;
}

bool inherit_raises_rank(const struct hal_queue *q)
{
	return q->sched.inherited.rank < own_rank(q);
}

void inherit_into_view(struct hal_queue *q)
{
	struct hal_policy_command *head = &q->sched.policy_view.head;

	/* A queue of a lower class donates no priority. */
	if (q->sched.inherited.rank >> 32 <= class_ranks[q->sched.own_class] &&
	    rank_priority(q->sched.inherited.rank) > head->priority)
		head->priority = rank_priority(q->sched.inherited.rank);
	head->deadline_ns = least(head->deadline_ns, q->sched.inherited.deadline_ns);
}

/* ---- changes of urgency --------------------------------------------------------- */

void preempt_wanted(struct hal_queue *q)
{
	if (!q->sched.urgent) {
		q->sched.urgent = true;
		q->part->sched.urgent++;
	}
	queue_todo(q);
}

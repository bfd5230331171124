/* SPDX-License-Identifier: Apache-2.0 */
/* bimodal.c - give a partition more memory channels while no other partition has work. */
#include "memory/bimodal.h"

#include "observe/trace.h"
#include "replay/journal.h"
#include "sched/urgency.h"

/* Return whether part has the wide placement. */
static bool is_wide(const struct hal_partition *part)
{
	return (counter_get(&part->memory.switches) & 1) != 0;
}

/* Return whether a queue of other, or of a guest of other, has work and does not belong
 * to part. */
static bool has_other_work(const struct hal_partition *part, struct hal_partition *other)
{
	hal_list_for_each (it, &other->command.busy)
		if (container_of(it, struct hal_queue, busy)->home != part)
			return true;
	return false;
}

static bool is_alone(const struct hal_partition *part)
{
	uint64_t further = part->desc.wide_mask & ~part->desc.color_mask;

	hal_list_for_each (it, &part->dev->space.partitions) {
		struct hal_partition *p =
			container_of(it, struct hal_partition, on_device);

		if ((p != part && p->memory.own_colors &&
		     (p->desc.color_mask & further) != 0) ||
		    has_other_work(part, p))
			return false;
	}
	return true;
}

/* Return whether the placement should be switched before q's next submission.  A journal
 * knows no channels, so it records the answer, and a replay reads it. */
static bool should_switch(struct hal_queue *q)
{
	const struct hal_partition *part = q->home;
	const struct player *player = q->dev->replay.player;
	bool should = player != NULL ? player->uses(q)
				     : !part->memory.switch_failed &&
					       is_alone(part) != is_wide(part);

	JOURNAL(q->dev, JOURNAL_USES, q->obj.id, should);
	return should;
}

/* Progress of the submissions of a queue or partition. */
enum progress {
	IDLE,    /* no submission is under way */
	RUNNING, /* a submission is under way and completes by itself */
	BLOCKED, /* a submission waits for a thread, a point or a resume */
};

static enum progress queue_progress(const struct hal_queue *q)
{
	const struct inflight *f = q->oldest;

	for (uint32_t i = 0; i < q->inflight_count; i++, f = f->next)
		if (!f->done)
			return q->sched.frozen != 0 ? BLOCKED : RUNNING;
	if (!q->inside)
		return IDLE;
	return q->parked || q->in_callback || q->state != QUEUE_RUNNING ? BLOCKED
									: RUNNING;
}

static enum progress partition_progress(const struct hal_partition *part)
{
	/* During a host copy the placement must not change. */
	enum progress all = part->memory.copying != 0 ? BLOCKED : IDLE;

	hal_list_for_each (it, &part->queues) {
		enum progress s =
			queue_progress(container_of(it, struct hal_queue, on_partition));

		if (s == RUNNING)
			return RUNNING;
		if (s == BLOCKED)
			all = BLOCKED;
	}
	return all;
}

/* Switch the placement of q's partition.  If the device refuses, stop trying. */
static void switch_placement(struct hal_queue *q)
{
	struct hal_partition *part = q->home;
	struct hal_device *dev = q->dev;
	bool wide = !is_wide(part);

	if (dev->table->extra.partition_widen(dev->bk, part->bk, wide) != 0) {
		part->memory.switch_failed = true;
		return;
	}
	counter_add(&part->memory.switches, 1);
	trace_instant(dev, q, wide ? "all channels" : "own channels", dev->now);
}

bool bimodal_lets(struct hal_queue *q)
{
	struct hal_partition *part = q->home;

	if (q->inside || !should_switch(q))
		return true;
	switch (partition_progress(part)) {
	case RUNNING:
		q->parked = true;
		q->memory.parked = true;
		part->memory.ends_wanted = true;
		return false;
	case IDLE:
		if (q->dev->replay.player == NULL)
			switch_placement(q);
		break;
	case BLOCKED:
		break;
	}
	return true;
}

void bimodal_wake(struct hal_partition *part)
{
	part->memory.ends_wanted = false;
	hal_list_for_each (it, &part->queues) {
		struct hal_queue *q = container_of(it, struct hal_queue, on_partition);

		if (!q->memory.parked)
			continue;
		queue_unpark(q);
		queue_todo(q);
	}
}

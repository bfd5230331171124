/* SPDX-License-Identifier: Apache-2.0 */
/* bimodal.c - a partition that is alone has more memory channels. */
#include "memory/bimodal.h"

#include "observe/trace.h"
#include "replay/journal.h"
#include "sched/urgency.h"

static bool is_wide(const struct hal_partition *part)
{
	return (counter_get(&part->memory.switches) & 1) != 0;
}

/* A queue on other's units, which are perhaps part's too, has work of somebody else. */
static bool others_work(const struct hal_partition *part, struct hal_partition *other)
{
	hal_list_for_each (it, &other->command.busy)
		if (container_of(it, struct hal_queue, busy)->home != part)
			return true;
	return false;
}

static bool alone(const struct hal_partition *part)
{
	uint64_t further = part->desc.wide_mask & ~part->desc.color_mask;

	hal_list_for_each (it, &part->dev->space.partitions) {
		struct hal_partition *p =
			container_of(it, struct hal_partition, on_device);

		if ((p != part && p->memory.own_colors &&
		     (p->desc.color_mask & further) != 0) ||
		    others_work(part, p))
			return false;
	}
	return true;
}

/* A journal has what came of it, for it knows nothing of channels. */
static bool should_switch(struct hal_queue *q)
{
	const struct hal_partition *part = q->home;
	const struct player *player = q->dev->replay.player;
	bool should = player != NULL ? player->uses(q)
				     : !part->memory.switch_failed &&
					       alone(part) != is_wide(part);

	JOURNAL(q->dev, JOURNAL_USES, q->obj.id, should);
	return should;
}

enum state {
	QUIET,  /* nothing of it has begun and not ended */
	WORKS,  /* something has, and goes on by itself */
	STANDS, /* something has, and waits for somebody */
};

static enum state placement_state(const struct hal_queue *q)
{
	const struct inflight *f = q->oldest;

	for (uint32_t i = 0; i < q->inflight_count; i++, f = f->next)
		if (!f->done)
			return q->sched.frozen != 0 ? STANDS : WORKS;
	if (!q->inside)
		return QUIET;
	return q->parked || q->in_callback || q->state != QUEUE_RUNNING ? STANDS : WORKS;
}

static enum state state_of_all(const struct hal_partition *part)
{
	/* It changes no place under who copies. */
	enum state all = part->memory.copying != 0 ? STANDS : QUIET;

	hal_list_for_each (it, &part->queues) {
		enum state s =
			placement_state(container_of(it, struct hal_queue, on_partition));

		if (s == WORKS)
			return WORKS;
		if (s == STANDS)
			all = STANDS;
	}
	return all;
}

static void change(struct hal_queue *q)
{
	struct hal_partition *part = q->home;
	struct hal_device *dev = q->dev;
	bool wide = !is_wide(part);

	if (dev->table->cold.partition_widen(dev->bk, part->bk, wide) != 0) {
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
	switch (state_of_all(part)) {
	case WORKS:
		q->parked = true;
		q->memory.parked = true;
		part->memory.ends_wanted = true;
		return false;
	case QUIET:
		if (q->dev->replay.player == NULL)
			change(q);
		break;
	case STANDS:
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

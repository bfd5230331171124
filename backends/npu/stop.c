/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stop.c - a slot lets go: queues are suspended and go on, partitions move.
 */
#include "stop.h"

#include <errno.h>
#include <string.h>

#include "complete.h"
#include "kept.h"
#include "queue.h"
#include "ring.h"
#include "save.h"

/* ---- stops ------------------------------------------------------------------------ */

void npu_request_stop(struct npu_partition *part, uint32_t mode)
{
	/* What is recorded is how long a descriptor takes in one go. */
	if (mode != NPU_PREEMPT_KILL && part->dev->durations)
		mode = NPU_PREEMPT_DRAIN;
	/* A stop under way can still become a kill. */
	if (part->stopping &&
	    (mode != NPU_PREEMPT_KILL || part->stopping == NPU_PREEMPT_KILL))
		return;
	if (mode == NPU_PREEMPT_FOLD || mode == NPU_PREEMPT_SAVE)
		mode = npu_save_ask(part, mode);
	part->stopping = mode;
	part->stopping_ns = npu_time(part->dev);
	part->hurried = 0;
	npu_write(part->dev, NPU_SLOT_ADDR(part->slot, PREEMPT), mode);
}

/* FOLD waits for the rows of a fold, and those of up to two tiles for their input.  How
 * long these take depends on the program; SAVE waits for neither. */
uint64_t npu_stop_hurry_ns(const struct npu_partition *part)
{
	return part->stopping == NPU_PREEMPT_FOLD ? part->stopping_ns + NPU_FOLD_CYCLES
						  : UINT64_MAX;
}

void npu_stop_hurry(struct npu_partition *part)
{
	npu_lock(part->dev);
	part->stopping = NPU_PREEMPT_SAVE;
	part->hurried = (uint32_t)(npu_time(part->dev) - part->stopping_ns);
	npu_write(part->dev, NPU_SLOT_ADDR(part->slot, PREEMPT), NPU_PREEMPT_SAVE);
	npu_unlock(part->dev);
}

static void finish_move(struct npu_partition *part)
{
	int rc = npu_map(part, &part->target);

	if (!rc) {
		part->desc.units = part->target.units;
		part->desc.row = part->target.row;
		part->desc.col = part->target.col;
		part->desc.rows = part->target.rows;
		part->desc.cols = part->target.cols;
	}
	part->moving = false;
	part->moved = true;
	part->moved_event.status = rc;
	part->moved_event.start_ns = npu_time(part->dev);
	part->moved_event.end_ns = part->moved_event.start_ns;
}

/* What ran of the command that was running when the slot stopped. */
static void count_stretch(struct npu_partition *part, struct npu_command *c,
			  struct hal_bk_event *ev)
{
	uint64_t first = c->fed_ns > part->ended_ns ? c->fed_ns : part->ended_ns;
	uint64_t now = npu_time(part->dev);

	ev->start_ns = npu_start_time(c, first, now);
	ev->end_ns = part->ended_ns = now;
	c->ran_ns += ev->end_ns - ev->start_ns;
	ev->bytes_written = npu_saved_bytes(c);
}

/* Nothing of q is in the ring.  ran: who was running; NULL: nobody, or that has ended. */
static void freeze(struct npu_partition *part, struct npu_queue *q,
		   struct npu_command *ran)
{
	q->suspended = NPU_FOLDED;
	q->quiet.start_ns = q->quiet.end_ns = npu_time(part->dev);
	if (ran && ran->queue == q) {
		count_stretch(part, ran, &q->quiet);
		if (!ran->scratch)
			ran->scratch = npu_scratch_keep(npu_space_of(ran), &ran->cmd);
	}
	for (uint32_t i = 0; i < part->count; i++) {
		struct npu_command *c = part->order[i];

		if (c->queue != q || c->done)
			continue;
		c->fed = c->base;
		c->fed_ns = 0;
		npu_times_drop(part, c);
		part->frozen++;
	}
}

/* They come behind what is in the ring. */
static void thaw(struct npu_partition *part, struct npu_queue *q)
{
	uint32_t n = part->count;

	q->suspended = NPU_RUNS;
	for (uint32_t i = 0; n; n--) {
		struct npu_command *c = part->order[i];

		if (c->queue != q) {
			i++;
			continue;
		}
		memmove(&part->order[i], &part->order[i + 1],
			(part->count - i - 1) * sizeof(struct npu_command *));
		part->order[part->count - 1] = c;
		part->frozen--;
	}
}

void npu_settle(struct npu_partition *part, uint32_t state)
{
	struct npu_command *c, *ran = npu_first_open(part);
	bool running, killed = state == NPU_STATE_KILLED;
	uint64_t lost_ns = 0;

	if (part->stopping)
		part->preempt_cycles =
			part->hurried +
			npu_read(part->dev, NPU_SLOT_ADDR(part->slot, PREEMPT_CYCLES));
	if (killed)
		lost_ns = npu_read(part->dev, NPU_SLOT_ADDR(part->slot, DESC_CYCLES));
	if (state == NPU_STATE_FAULT)
		npu_fail_first(part, NULL);
	/* All of it has run but its fence. */
	c = npu_first_open(part);
	if (c && npu_completed(part, c) == c->entries - 1)
		npu_set_done(part, c, 0);
	for (uint32_t i = 0; i < part->count; i++) {
		c = part->order[i];
		if (!c->done && c->queue->suspended == NPU_KILLED)
			npu_cancel(part, c, c == ran, lost_ns);
	}
	c = npu_first_open(part);
	running = c && c == ran && c->fed != c->base && npu_completed(part, c);
	/* After a drain, and where only fences are left, it goes on at the next entry;
	 * after a fold there, too, or inside that entry. */
	if (c && c->fed != c->base) {
		c->base = npu_completed(part, c);
		if (killed)
			c->base = npu_killed_entry(c, c->base);
		npu_save_drop(c);
		c->inside = state == NPU_STATE_FOLDED && c == ran;
		if (c->inside)
			npu_save_take(part, c);
	}
	for (struct npu_queue *q = part->space->host->quiet_due; q; q = q->next)
		if (q->suspended == NPU_FOLDS && q->space->host == part)
			freeze(part, q, running ? c : NULL);
	if (part->moving)
		finish_move(part);
}

void npu_on_stopped(struct npu_partition *part, uint32_t state)
{
	npu_settle(part, state);
	npu_restart(part);
}

/* ---- asked for --------------------------------------------------------------------- */

/* Drops the queue's commands.  Those in the ring need the slot to stop, and those behind
 * them end after them. */
static void kill_queue(struct npu_partition *part, struct npu_queue *q)
{
	bool in_ring = false;

	npu_look_at_head(part);
	for (uint32_t i = 0; i < part->count; i++) {
		struct npu_command *c = part->order[i];

		if (c->done || c->queue != q)
			continue;
		if (c->fed != c->base)
			in_ring = true;
		else if (!in_ring)
			npu_cancel(part, c, false, 0);
	}
	/* What runs is this queue's, or may be run again: npu_feed sees to it. */
	if (in_ring)
		npu_request_stop(part, NPU_PREEMPT_KILL);
}

/* Room for what those of the queue's commands keep that may be stopped inside. */
static int reserve_scratch(struct npu_partition *part, const struct npu_queue *q)
{
	int rc = 0;

	for (uint32_t i = 0; !rc && i < part->count; i++) {
		const struct npu_command *c = part->order[i];

		if (!c->done && c->queue == q && !c->scratch)
			rc = npu_scratch_reserve(q->part, &c->cmd);
	}
	return rc;
}

/* Takes the queue's commands from the ring, where the one that runs can stop. */
static void fold_queue(struct npu_partition *part, struct npu_queue *q, uint32_t mode)
{
	npu_look_at_head(part);
	for (uint32_t i = 0; i < part->count; i++) {
		const struct npu_command *c = part->order[i];

		if (c->done || c->queue != q || c->fed == c->base)
			continue;
		npu_request_stop(part, mode);
		return;
	}
	freeze(part, q, NULL);
}

int npu_suspend(void *device, void *queue, uint32_t mode, uint64_t cookie)
{
	static const uint8_t states[] = {[HAL_SUSPEND_DRAIN] = NPU_DRAINS,
					 [HAL_SUSPEND_FOLD] = NPU_FOLDS,
					 [HAL_SUSPEND_SAVE] = NPU_FOLDS,
					 [HAL_SUSPEND_KILL] = NPU_KILLED};
	struct npu_queue *q = queue;
	struct npu_partition *host = q->part->host, *part = npu_runs_in(q);
	int rc;

	if (mode > HAL_SUSPEND_KILL || !states[mode])
		return npu_fail(ENOTSUP, "npu: suspend mode %u is not supported", mode);
	if (q->suspended != NPU_RUNS)
		return npu_fail(EBUSY, "npu: the queue is suspended already");
	rc = states[mode] == NPU_FOLDS ? reserve_scratch(part, q) : 0;
	if (!rc && states[mode] == NPU_FOLDS)
		rc = npu_save_reserve(q->part);
	if (!rc && mode == HAL_SUSPEND_KILL)
		rc = npu_order_reserve(part, q->held_count + host->held);
	if (rc)
		return rc;
	if (part == host)
		q->space = q->part;
	q->suspended = states[mode];
	q->quiet_due = true;
	q->next = host->quiet_due;
	host->quiet_due = q;
	q->quiet = (struct hal_bk_event){.kind = HAL_BK_QUIET, .cookie = cookie};
	npu_lock(device);
	q->part->dev->owed++;
	if (mode == HAL_SUSPEND_KILL)
		npu_held_enter(part, q);
	if (mode == HAL_SUSPEND_KILL && q->commands)
		kill_queue(part, q);
	else if (states[mode] == NPU_FOLDS)
		fold_queue(part, q,
			   mode == HAL_SUSPEND_SAVE ? NPU_PREEMPT_SAVE
						    : NPU_PREEMPT_FOLD);
	npu_unlock(device);
	return 0;
}

int npu_resume(void *device, void *queue)
{
	struct npu_device *dev = device;
	struct npu_queue *q = queue;

	if (q->suspended == NPU_RUNS)
		return npu_fail(EINVAL, "npu: the queue is not suspended");
	if (q->quiet_due)
		return npu_fail(EBUSY, "npu: the queue is still being suspended; it can "
				       "resume when that has completed");
	if (q->suspended != NPU_FOLDED || !q->commands) {
		q->suspended = NPU_RUNS;
		return 0;
	}
	npu_lock(dev);
	if (dev->opt.real && atomic_load(&dev->rest_ns) != NPU_WORKS)
		npu_works(dev);
	thaw(npu_runs_in(q), q);
	npu_feed(npu_runs_in(q));
	if (q->commands == q->held_count)
		npu_held_go_on(q);
	npu_unlock(dev);
	return 0;
}

int npu_resize(void *device, void *partition, const struct hal_bk_partition_desc *desc,
	       uint64_t cookie)
{
	struct npu_partition *part = partition;

	if (part->moving || part->moved)
		return npu_fail(EBUSY, "npu: partition %u is already being moved",
				part->slot);
	/* What has been let in must be known there, too. */
	for (uint32_t i = 0; i < part->count; i++) {
		int rc = npu_replay_check(npu_space_of(part->order[i]), desc,
					  &part->order[i]->cmd);

		if (rc)
			return rc;
	}
	part->moving = true;
	part->target = *desc;
	part->moved_event = (struct hal_bk_event){.kind = HAL_BK_QUIET, .cookie = cookie};
	npu_lock(device);
	part->dev->owed++;
	if (npu_first_open(part) || part->stopping)
		npu_request_stop(part, NPU_PREEMPT_FOLD);
	else
		finish_move(part);
	npu_unlock(device);
	return 0;
}

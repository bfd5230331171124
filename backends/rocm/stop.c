/* SPDX-License-Identifier: Apache-2.0 */
/*
 * preempt=block: kernels that follow hal/device/hal_preempt.h look at a flag before each
 * block.  Suspend by FOLD raises the flags of what a queue has in flight; blocks that run
 * end, the others write their numbers to a list, and resume launches the list.
 *
 * Flags and lists are in the host's memory: to raise a flag is a store, not a call that
 * waits for compute units which the kernel has, and what was stopped is read here.  A
 * list is 0xffffffff where no number has been written.
 *
 * Kernels are somebody's: a list with a number that was not launched, or twice, is an
 * error of the queue.
 */
#define _GNU_SOURCE
#include "internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "backends/stream/stop.h"

#define NOBODY     UINT32_MAX
#define LIST_BYTES ((size_t)ROCM_STOP_BLOCKS * sizeof(uint32_t))

/* ---- what a queue has for it ------------------------------------------------------- */

static int pin(struct rocm_device *dev, size_t bytes, int with, uint32_t **p,
	       uint32_t **at)
{
	void *memory = NULL, *address = NULL;
	int err = rocm_pin(dev, bytes, &memory, &address);

	if (err)
		return err;
	memset(memory, with, bytes);
	*p = memory;
	*at = address;
	return 0;
}

int rocm_stops_make(struct rocm_device *dev, struct rocm_queue *q)
{
	const size_t bytes = q->base.slot_count * sizeof(uint32_t);
	struct rocm_stops *t = calloc(1, sizeof(*t));
	void *counts = NULL;
	int err;

	if (!t)
		return rocm_host->fail(ENOMEM, "rocm: no memory to stop a queue");
	q->stops = t;
	q->base.stops = &t->base;
	err = pin(dev, bytes, 0, &t->flags, &t->flags_at);
	if (!err)
		err = pin(dev, (size_t)2 * q->base.slot_count * LIST_BYTES, 0xff,
			  &t->lists, &t->lists_at);
	if (err)
		return err;
	err = rocm_take_own(dev, bytes, &counts);
	t->counts = err ? NULL : counts;
	return err;
}

/* Return whether the counts have been cleared.  Once it is known it stays known: numbers
 * are compared modulo 2^32. */
static bool is_ready(struct rocm_queue *q)
{
	struct rocm_stops *t = q->stops;

	if (t->cleared && !t->ready)
		t->ready = q->aql ? rocm_aql_ended(q->aql, q->base.slot_count)
				  : rocm_reached(q, t->ready_at);
	return t->ready;
}

void rocm_stops_drop(struct rocm_device *dev, struct rocm_queue *q, int *err)
{
	struct rocm_stops *t = q->stops;

	if (!t)
		return;
	/* A ring that still clears the counts; a stream has ended before it comes here.
	 */
	if (q->aql && t->cleared && !atomic_load(&dev->base.lost) && !is_ready(q))
		(void)rocm_aql_end(dev, q);
	rocm_give_back(dev, ROCM_KIND_HOST, t->flags, err);
	rocm_give_back(dev, ROCM_KIND_HOST, t->lists, err);
	rocm_give_own(dev, t->counts, q->base.slot_count * sizeof(uint32_t), err);
	free(t);
	q->stops = NULL;
	q->base.stops = NULL;
}

static int zero_counts(struct rocm_device *dev, struct rocm_queue *q)
{
	if (q->aql)
		return rocm_aql_zero(dev, q->aql, q->base.slot_count, q->stops->counts,
				     q->base.slot_count);
	return HIP(dev, hipMemsetD32Async, q->stops->counts, 0, q->base.slot_count,
		   q->stream);
}

static int make_ready(struct rocm_device *dev, struct rocm_queue *q)
{
	struct rocm_stops *t = q->stops;
	int err = t->cleared ? 0 : zero_counts(dev, q);

	if (err || t->cleared)
		return err;
	t->cleared = true;
	t->ready_at = ++q->base.given;
	if (q->aql)
		return 0;
	q->base.marked = t->ready_at;
	return HIP(dev, hipStreamWriteValue32, q->stream, q->word_at, t->ready_at, 0);
}

/* ---- launches ---------------------------------------------------------------------- */

static bool can_stop(const struct rocm_queue *q, const struct hal_bk_cmd *cmd)
{
	if (!q->stops || cmd->op != HAL_OP_LAUNCH)
		return false;
	return ((const struct rocm_kernel *)cmd->launch.kernel)->follows &&
	       stream_blocks(cmd, ROCM_STOP_BLOCKS) <= ROCM_STOP_BLOCKS;
}

/* Of a ring no more than can be given again at once, behind what makes them ready. */
bool rocm_stops_wait(struct rocm_queue *q, const struct hal_bk_cmd *cmd)
{
	return stream_stops_wait(&q->base, can_stop(q, cmd)) ||
	       (q->aql && q->base.count >= ROCM_RING_PACKETS / 2);
}

static int launch(struct rocm_device *dev, struct rocm_queue *q,
		  const struct rocm_slot *s, const struct hal_bk_cmd *cmd,
		  const uint32_t groups[3], struct hal_preempt_launch *given)
{
	return q->aql ? rocm_aql_launch(dev, q, (uint32_t)(s - q->slots), cmd, groups,
					given)
		      : rocm_launch(dev, q, cmd, groups, given);
}

static size_t place_of(const struct rocm_queue *q, const struct rocm_slot *s,
		       uint32_t list)
{
	return (2 * (size_t)(s - q->slots) + list) * ROCM_STOP_BLOCKS;
}

/* As it was before anything was written there. */
static void clear_list(struct rocm_queue *q, struct rocm_slot *s, uint32_t list)
{
	if (s->used[list])
		memset(q->stops->lists + place_of(q, s, list), 0xff,
		       s->used[list] * sizeof(uint32_t));
	s->used[list] = 0;
}

/* Of a launch whose stopped blocks go to s->base.list. */
static void fill_in(const struct rocm_queue *q, const struct rocm_slot *s,
		    struct hal_preempt_launch *given)
{
	const struct rocm_stops *t = q->stops;

	given->flag = t->flags_at + (s - q->slots);
	given->stopped = t->counts + (s - q->slots);
	given->to = t->lists_at + place_of(q, s, s->base.list);
}

int rocm_stops_launch(struct rocm_device *dev, struct rocm_queue *q, struct rocm_slot *s,
		      const struct hal_bk_cmd *cmd)
{
	struct hal_preempt_launch given = {0};
	int err = 0;

	memcpy(given.grid, cmd->launch.groups, sizeof(given.grid));
	if (can_stop(q, cmd)) {
		err = make_ready(dev, q);
		clear_list(q, s, 0);
		clear_list(q, s, 1);
		s->base.stops = true;
		s->base.blocks = (uint32_t)stream_blocks(cmd, ROCM_STOP_BLOCKS);
		s->base.stopped = s->resumed = s->base.list = 0;
		fill_in(q, s, &given);
	}
	return err ? err : launch(dev, q, s, cmd, cmd->launch.groups, &given);
}

/* ---- stopping ---------------------------------------------------------------------- */

static void set_flags(struct rocm_queue *q, uint32_t value)
{
	uint32_t i = q->base.count;

	/* From the last to the first. */
	while (i--) {
		const struct rocm_slot *s = rocm_slot(q, i);

		if (s->base.stops)
			__atomic_store_n(&q->stops->flags[s - q->slots], value,
					 __ATOMIC_SEQ_CST);
	}
}

void rocm_stops_raise(struct rocm_device *dev, struct rocm_queue *q)
{
	struct rocm_stops *t = q->stops;

	if (t->base.folding || !stream_stops_can(&dev->base, &q->base))
		return;
	t->base.folding = true;
	t->base.settled = false;
	set_flags(q, 1);
}

/* The blocks that were launched, a bit each. */
static void note_launched(struct rocm_queue *q, const struct rocm_slot *s)
{
	const uint32_t *from = q->stops->lists + place_of(q, s, 1 - s->base.list);
	uint8_t *bits = q->stops->launched;
	uint32_t i;

	memset(bits, 0, sizeof(q->stops->launched));
	for (i = 0; i < s->base.blocks; i++) {
		const uint32_t block = s->resumed ? from[i] : i;

		if (block < ROCM_STOP_BLOCKS)
			bits[block / 8] |= (uint8_t)(1u << block % 8);
	}
}

/* What a launch has written to its list; false: what makes no sense. */
static bool read_list(struct rocm_queue *q, struct rocm_slot *s)
{
	const struct rocm_kernel *k = s->base.cmd.launch.kernel;
	const uint32_t *to = q->stops->lists + place_of(q, s, s->base.list);
	uint8_t *bits = q->stops->launched;
	uint32_t i, n = 0;

	for (i = 0; i < s->base.blocks; i++)
		if (to[i] != NOBODY)
			n = i + 1;
	if (n)
		note_launched(q, s);
	for (i = 0; i < n; i++) {
		if (to[i] >= ROCM_STOP_BLOCKS || !(bits[to[i] / 8] >> to[i] % 8 & 1)) {
			stream_break(&q->base,
				     "%.23s stopped block %u twice or without launch",
				     k->info.name, to[i]);
			return false;
		}
		bits[to[i] / 8] &= (uint8_t) ~(1u << to[i] % 8);
	}
	s->base.stopped = s->used[s->base.list] = n;
	return true;
}

static bool read_lists(struct rocm_queue *q)
{
	bool before = false;
	uint32_t i;

	for (i = 0; i < q->base.count; i++) {
		struct rocm_slot *s = rocm_slot(q, i);
		const struct rocm_kernel *k = s->base.cmd.launch.kernel;

		if (!s->base.stops)
			continue;
		if (!read_list(q, s))
			return false;
		if (before && s->base.stopped != s->base.blocks) {
			stream_break(&q->base, "%.23s ran before a stopped launch",
				     k->info.name);
			return false;
		}
		before |= s->base.stopped != 0;
	}
	return true;
}

/* What says how many were stopped may not have been written. */
void rocm_stops_drop_all(struct rocm_queue *q)
{
	if (q->stops)
		q->stops->cleared = q->stops->ready = false;
}

static void settle(struct rocm_device *dev, struct rocm_queue *q)
{
	struct rocm_stops *t = q->stops;

	if (stream_lost(&dev->base)) {
		stream_stops_forget(&dev->base, &q->base);
		return;
	}
	if (t->base.settled || q->base.broken || !q->base.count ||
	    !rocm_slot_ended(q, rocm_slot(q, q->base.count - 1)))
		return;
	set_flags(q, 0);
	if (read_lists(q))
		stream_stops_settled(&dev->base, &q->base);
	else
		stream_stops_forget(&dev->base, &q->base);
}

void rocm_stops_look(struct rocm_device *dev, struct rocm_queue *q)
{
	(void)is_ready(q);
	if (q->stops->base.folding)
		settle(dev, q);
}

/* ---- going on ---------------------------------------------------------------------- */

static int again(struct rocm_device *dev, struct rocm_queue *q, struct rocm_slot *s)
{
	const uint32_t groups[3] = {s->base.stopped, 1, 1};
	struct hal_preempt_launch given = {.resumed = s->base.stopped};

	given.from = q->stops->lists_at + place_of(q, s, s->base.list);
	s->base.list = 1 - s->base.list;
	clear_list(q, s, s->base.list);
	memcpy(given.grid, s->base.cmd.launch.groups, sizeof(given.grid));
	fill_in(q, s, &given);
	s->resumed = s->base.blocks = s->base.stopped;
	s->base.stopped = 0;
	return launch(dev, q, s, &s->base.cmd, groups, &given);
}

/* Counts from 0. */
static inline int vendor_stops_begin(struct stream_device *device,
				     struct stream_queue *queue, bool kept)
{
	struct rocm_device *dev = (struct rocm_device *)device;
	struct rocm_queue *q = (struct rocm_queue *)queue;
	int err = 0;

	if (kept && !q->aql)
		err = rocm_enter(dev);
	return err || !kept ? err : zero_counts(dev, q);
}

static inline int vendor_stops_again(struct stream_device *device,
				     struct stream_queue *queue, struct stream_slot *slot,
				     uint32_t i)
{
	struct rocm_device *dev = (struct rocm_device *)device;
	struct rocm_queue *q = (struct rocm_queue *)queue;
	struct rocm_slot *s = (struct rocm_slot *)slot;
	int err;

	(void)i;
	/* From here on it takes how long it runs now. */
	if (slot->timed)
		slot->timed = queue->timing = false;
	err = again(dev, q, s);
	if (!err && !q->aql)
		rocm_number(dev, q, s);
	return err;
}

static inline void vendor_stops_fail(struct stream_device *dev,
				     struct stream_queue *queue, uint32_t i)
{
	struct rocm_queue *q = (struct rocm_queue *)queue;

	if (!q->aql && !stream_lost(dev) && !queue->broken)
		rocm_mark((struct rocm_device *)dev, q);
	if (q->aql)
		(void)rocm_aql_end((struct rocm_device *)dev, q);
	for (i = q->aql ? i : 0; i < queue->count; i++) {
		struct stream_slot *s = stream_slot(queue, i);

		if (q->aql)
			rocm_aql_undo(q->aql, stream_at(queue, i));
		else if (rocm_reached(q, s->number))
			s->number = ++queue->given;
	}
	queue->unsure = !q->aql;
}

void rocm_stops_go_on(struct rocm_device *dev, struct rocm_queue *q)
{
	stream_stops_resume(&dev->base, &q->base, rocm_now(dev));
}

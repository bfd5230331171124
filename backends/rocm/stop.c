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
 * Behind a launch that can be stopped only such ones are given to the device, and flags
 * are raised from the last to the first: what was stopped has nothing behind it that ran.
 * Kernels are somebody's: a list with a number that was not launched, or twice, is an
 * error of the queue.
 */
#define _GNU_SOURCE
#include "internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

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
	const size_t bytes = q->slot_count * sizeof(uint32_t);
	struct rocm_stops *t = calloc(1, sizeof(*t));
	void *counts = NULL;
	int err;

	if (!t)
		return rocm_host->fail(ENOMEM, "rocm: no memory to stop a queue");
	q->stops = t;
	err = pin(dev, bytes, 0, &t->flags, &t->flags_at);
	if (!err)
		err = pin(dev, (size_t)2 * q->slot_count * LIST_BYTES, 0xff, &t->lists,
			  &t->lists_at);
	if (err)
		return err;
	err = HIP(dev, hipMalloc, &counts, bytes);
	t->counts = err ? NULL : counts;
	return err;
}

static bool is_ready(const struct rocm_queue *q)
{
	return q->aql ? rocm_aql_ended(q->aql, q->slot_count)
		      : rocm_reached(q, q->stops->ready);
}

void rocm_stops_drop(struct rocm_device *dev, struct rocm_queue *q, int *err)
{
	struct rocm_stops *t = q->stops;

	if (!t)
		return;
	/* Of a queue whose first launch failed. */
	if (t->ready && !atomic_load(&dev->lost) && !is_ready(q)) {
		if (q->aql)
			(void)rocm_aql_end(dev, q);
		else
			(void)hip.hipStreamSynchronize(q->stream);
	}
	rocm_give_back(dev, ROCM_KIND_HOST, t->flags, err);
	rocm_give_back(dev, ROCM_KIND_HOST, t->lists, err);
	rocm_give_back(dev, ROCM_KIND_DEVICE, t->counts, err);
	free(t);
	q->stops = NULL;
}

static int zero_counts(struct rocm_device *dev, struct rocm_queue *q)
{
	if (q->aql)
		return rocm_aql_zero(dev, q->aql, q->slot_count, q->stops->counts,
				     q->slot_count);
	return HIP(dev, hipMemsetD32Async, q->stops->counts, 0, q->slot_count, q->stream);
}

static int make_ready(struct rocm_device *dev, struct rocm_queue *q)
{
	struct rocm_stops *t = q->stops;
	int err = t->ready ? 0 : zero_counts(dev, q);

	if (err || t->ready)
		return err;
	t->ready = ++q->given;
	if (q->aql)
		return 0;
	return HIP(dev, hipStreamWriteValue32, q->stream, q->word_at, t->ready, 0);
}

/* ---- launches ---------------------------------------------------------------------- */

/* More than can be stopped: any such number. */
static uint64_t blocks_of(const struct hal_bk_cmd *cmd)
{
	const uint32_t *g = cmd->launch.groups;
	const uint64_t row = g[0], plane = row * g[1];

	return plane > ROCM_STOP_BLOCKS ? plane : plane * g[2];
}

static bool can_stop(const struct rocm_queue *q, const struct hal_bk_cmd *cmd)
{
	if (!q->stops || cmd->op != HAL_OP_LAUNCH)
		return false;
	return ((const struct rocm_kernel *)cmd->launch.kernel)->follows &&
	       blocks_of(cmd) <= ROCM_STOP_BLOCKS;
}

/* Of a ring no more than can be given again at once, behind what makes them ready. */
bool rocm_stops_wait(struct rocm_queue *q, const struct hal_bk_cmd *cmd)
{
	return q->count && ((rocm_slot(q, q->count - 1)->stops && !can_stop(q, cmd)) ||
			    (q->aql && q->count >= ROCM_RING_PACKETS / 2));
}

static int launch(struct rocm_device *dev, struct rocm_queue *q,
		  const struct rocm_slot *s, const struct hal_bk_cmd *cmd,
		  const uint32_t groups[3], struct hal_preempt_launch *given)
{
	return q->aql ? rocm_aql_launch(q, (uint32_t)(s - q->slots), cmd, groups, given)
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

/* Of a launch whose stopped blocks go to s->list. */
static void fill_in(const struct rocm_queue *q, const struct rocm_slot *s,
		    struct hal_preempt_launch *given)
{
	const struct rocm_stops *t = q->stops;

	given->flag = t->flags_at + (s - q->slots);
	given->stopped = t->counts + (s - q->slots);
	given->to = t->lists_at + place_of(q, s, s->list);
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
		s->stops = true;
		s->blocks = (uint32_t)blocks_of(cmd);
		s->stopped = s->resumed = s->list = 0;
		fill_in(q, s, &given);
	}
	return err ? err : launch(dev, q, s, cmd, cmd->launch.groups, &given);
}

/* ---- stopping ---------------------------------------------------------------------- */

static void set_flags(struct rocm_queue *q, uint32_t value)
{
	uint32_t i = q->count;

	/* From the last to the first. */
	while (i--) {
		const struct rocm_slot *s = rocm_slot(q, i);

		if (s->stops)
			__atomic_store_n(&q->stops->flags[s - q->slots], value,
					 __ATOMIC_SEQ_CST);
	}
}

void rocm_stops_raise(struct rocm_device *dev, struct rocm_queue *q)
{
	struct rocm_stops *t = q->stops;

	if (t->folding || q->broken || atomic_load(&dev->lost) || !q->count ||
	    !rocm_slot(q, q->count - 1)->stops)
		return;
	t->folding = true;
	t->settled = false;
	set_flags(q, 1);
}

uint32_t rocm_stops_count(struct rocm_queue *q)
{
	uint32_t i, n = 0;

	for (i = 0; i < q->count; i++)
		n += rocm_slot(q, i)->stopped != 0;
	return n;
}

/* The blocks that were launched, a bit each. */
static void note_launched(struct rocm_queue *q, const struct rocm_slot *s)
{
	const uint32_t *from = q->stops->lists + place_of(q, s, 1 - s->list);
	uint8_t *bits = q->stops->launched;
	uint32_t i;

	memset(bits, 0, sizeof(q->stops->launched));
	for (i = 0; i < s->blocks; i++) {
		const uint32_t block = s->resumed ? from[i] : i;

		if (block < ROCM_STOP_BLOCKS)
			bits[block / 8] |= (uint8_t)(1u << block % 8);
	}
}

/* What a launch has written to its list; false: what makes no sense. */
static bool read_list(struct rocm_queue *q, struct rocm_slot *s)
{
	const struct rocm_kernel *k = s->cmd.launch.kernel;
	const uint32_t *to = q->stops->lists + place_of(q, s, s->list);
	uint8_t *bits = q->stops->launched;
	uint32_t i, n = 0;

	for (i = 0; i < s->blocks; i++)
		if (to[i] != NOBODY)
			n = i + 1;
	if (n)
		note_launched(q, s);
	for (i = 0; i < n; i++) {
		if (to[i] >= ROCM_STOP_BLOCKS || !(bits[to[i] / 8] >> to[i] % 8 & 1)) {
			rocm_break(q, "%.23s stopped block %u twice or without launch",
				   k->info.name, to[i]);
			return false;
		}
		bits[to[i] / 8] &= (uint8_t) ~(1u << to[i] % 8);
	}
	s->stopped = s->used[s->list] = n;
	return true;
}

static bool read_lists(struct rocm_queue *q)
{
	bool before = false;
	uint32_t i;

	for (i = 0; i < q->count; i++) {
		struct rocm_slot *s = rocm_slot(q, i);
		const struct rocm_kernel *k = s->cmd.launch.kernel;

		if (!s->stops)
			continue;
		if (!read_list(q, s))
			return false;
		if (before && s->stopped != s->blocks) {
			rocm_break(q, "%.23s ran before a stopped launch", k->info.name);
			return false;
		}
		before |= s->stopped != 0;
	}
	return true;
}

/* What is kept is not on the units where its partition was: that is told to have moved.
 */
static void let_go(struct rocm_device *dev, struct rocm_queue *q)
{
	const uint32_t kept = rocm_stops_kept(q), run = q->count - kept;

	dev->inflight -= kept;
	if (q->before <= run)
		return;
	q->part->moving_left -= q->before - run;
	q->before = run;
}

/* They are the device's again, and none of them will end well. */
static void forget(struct rocm_device *dev, struct rocm_queue *q)
{
	uint32_t i;

	dev->inflight += rocm_stops_kept(q);
	q->stops->settled = false;
	for (i = 0; i < q->count; i++)
		rocm_slot(q, i)->stopped = 0;
}

/* What says how many were stopped may not have been written. */
void rocm_stops_drop_all(struct rocm_queue *q)
{
	if (q->stops)
		q->stops->ready = 0;
}

void rocm_stops_settle(struct rocm_device *dev, struct rocm_queue *q)
{
	struct rocm_stops *t = q->stops;

	if (atomic_load(&dev->lost)) {
		forget(dev, q);
		return;
	}
	if (t->settled || q->broken || !q->count ||
	    !rocm_slot_ended(q, rocm_slot(q, q->count - 1)))
		return;
	set_flags(q, 0);
	t->settled = read_lists(q);
	if (t->settled)
		let_go(dev, q);
	else
		forget(dev, q);
}

/* ---- going on ---------------------------------------------------------------------- */

static int again(struct rocm_device *dev, struct rocm_queue *q, struct rocm_slot *s)
{
	const uint32_t groups[3] = {s->stopped, 1, 1};
	struct hal_preempt_launch given = {.resumed = s->stopped};

	given.from = q->stops->lists_at + place_of(q, s, s->list);
	s->list = 1 - s->list;
	clear_list(q, s, s->list);
	memcpy(given.grid, s->cmd.launch.groups, sizeof(given.grid));
	fill_in(q, s, &given);
	s->resumed = s->blocks = s->stopped;
	s->stopped = 0;
	return launch(dev, q, s, &s->cmd, groups, &given);
}

/* What was written before they stopped does not say that those have ended which are not
 * launched again, from that one on: they wait for what nobody writes. */
static void give_up(struct rocm_device *dev, struct rocm_queue *q, uint32_t from)
{
	uint32_t i;

	if (q->aql)
		(void)rocm_aql_end(dev, q);
	for (i = q->aql ? from : 0; i < q->count; i++) {
		struct rocm_slot *s = rocm_slot(q, i);

		if (q->aql)
			rocm_aql_undo(q->aql, (uint32_t)(s - q->slots));
		else if (rocm_reached(q, s->value))
			s->value = ++q->given;
	}
	if (!q->broken)
		rocm_break(q, "cannot resume the stopped launch");
}

/* The event that the first is behind, and counts from 0. */
static int go_back(struct rocm_device *dev, struct rocm_queue *q)
{
	int err = 0;

	if (!q->aql)
		err = rocm_enter(dev);
	if (!err && !q->aql)
		err = HIP(dev, hipEventRecord, q->idle, q->stream);
	return err ? err : zero_counts(dev, q);
}

void rocm_stops_go_on(struct rocm_device *dev, struct rocm_queue *q)
{
	const uint32_t kept = rocm_stops_kept(q);
	uint32_t i;
	int err;

	if (!q->stops->folding || atomic_load(&dev->lost))
		return;
	q->stops->folding = q->stops->settled = false;
	dev->inflight += kept;
	err = kept ? go_back(dev, q) : 0;
	for (i = 0; !err && i < q->count; i++) {
		struct rocm_slot *s = rocm_slot(q, i);

		s->begin = i ? rocm_slot(q, i - 1)->end : q->idle;
		err = q->broken ? -EIO : again(dev, q, s);
		if (!err && !q->aql)
			rocm_mark(dev, q, s);
	}
	if (err)
		give_up(dev, q, i ? i - 1 : 0);
	q->first_ns = dev->progress_ns = dev->checked_ns = rocm_now(dev);
}

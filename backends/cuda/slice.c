/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Slices: with preempt=block a launch of best effort is submitted in pieces of at most
 * `slice_us`, of which two are in flight at a time.  Work of other queues then waits for
 * these, not for the launch, even at the same stream priority.
 *
 * A slice is a launch of some of the grid's blocks in a row, or of the list of those that
 * FOLD has stopped (ptx/, PTX_LAUNCH_RUN).  It has as many blocks as run in that time: so
 * many waves of as many blocks as the partition's multiprocessors run at once.  How long
 * a wave takes is learned from launches and slices that are measured: the first of a
 * kernel, one in 64 after it, one more if that has found another time than before, and
 * the one after a slice that has taken twice its time.
 *
 * The last launches of a queue may wait: the first of these has been given in part, the
 * others not at all.  Each slice is marked (stream/marks.h), so that poll sees its end
 * and gives the next one.  FOLD gives no more (stop.c).
 */
#define _GNU_SOURCE
#include "internal.h"

#include <string.h>

/* The most blocks of a slice: those of all slices in flight have room in one list. */
#define BLOCKS_MOST (CU_STOP_BLOCKS / CU_SLICES)

/* Return how many blocks run at once, if `resident` fit on a multiprocessor. */
static uint32_t wave_of(const struct cu_device *dev, const struct cu_queue *q,
			uint32_t resident)
{
	const uint32_t units = cu_part(q)->base.desc.units;
	uint64_t n = (uint64_t)dev->shape.multiprocessors;

	if (dev->mask)
		n = (uint64_t)units * dev->mask->per;
	else if (dev->green)
		n = (uint64_t)units * cu_green_per(dev);
	n *= resident;
	return n < BLOCKS_MOST ? (uint32_t)n : BLOCKS_MOST;
}

/* Return the blocks of a slice. */
static uint32_t size_of(const struct cu_device *dev, const struct cu_queue *q,
			const struct cu_kernel *k, uint32_t resident)
{
	const uint64_t wave_ns = atomic_load(&k->pace.wave_ns);
	const uint32_t wave = wave_of(dev, q, resident);
	uint64_t waves = wave_ns ? dev->opt.slice_ns / wave_ns : 1;

	if (!waves)
		waves = 1;
	return waves < BLOCKS_MOST / wave ? (uint32_t)waves * wave
					  : BLOCKS_MOST / wave * wave;
}

bool cu_slices_cut(const struct cu_device *dev, const struct cu_queue *q,
		   const struct hal_bk_cmd *cmd, uint64_t blocks, uint32_t resident)
{
	return dev->opt.slice_ns && (cmd->flags & HAL_BK_CMD_BEST_EFFORT) &&
	       blocks > size_of(dev, q, cmd->launch.kernel, resident);
}

int cu_slices_fit(struct cu_device *dev, const struct hal_bk_cmd *cmd, uint32_t *resident)
{
	const struct cu_kernel *k = cmd->launch.kernel;
	uint32_t block[3], shared_bytes = k->shared_bytes;
	int err, n = 0;

	*resident = k->resident;
	if (!(cmd->flags & HAL_BK_CMD_SHAPED))
		return 0;
	memcpy(block, k->block, sizeof(block));
	err = cu_shape(dev, cmd, block, &shared_bytes);
	if (!err)
		err = CU(dev, cuOccupancyMaxActiveBlocksPerMultiprocessor, &n,
			 k->function, (int)(block[0] * block[1] * block[2]),
			 shared_bytes);
	*resident = n > 0 ? (uint32_t)n : 1;
	return err;
}

/* ---- submission ------------------------------------------------------------------------- */

/* Set what the next part of s is: at most that many blocks.  Return how many. */
static uint32_t choose(const struct cu_queue *q, struct cu_slot *s, uint32_t most,
		       struct ptx_launch *part)
{
	const uint32_t listed = s->list_end - s->list_next,
		       more = s->grid_end - s->grid_next;
	uint32_t n = listed ? listed : more;

	n = n < most ? n : most;
	*part = (struct ptx_launch){.control = cu_stops_control(q, s),
				    .to = cu_stops_list(q, s, s->base.list)};
	memcpy(part->grid, s->base.cmd.launch.groups, sizeof(part->grid));
	if (listed) {
		part->from = cu_stops_list(q, s, 1 - s->base.list) +
			     s->list_next * sizeof(uint32_t);
		part->count = n;
	} else if (n < s->grid_end) {
		part->from = s->grid_next;
		part->count = n | PTX_LAUNCH_RUN;
	}
	return n;
}

/* Submit n blocks of s.  measured: between the queue's events. */
static int submit_part(struct cu_device *dev, struct cu_queue *q, const struct cu_slot *s,
		       const struct ptx_launch *part, uint32_t n, bool measured)
{
	const uint32_t run[3] = {n, 1, 1};
	int err = measured ? CU(dev, cuEventRecord, q->begin, q->stream) : 0;
	uint32_t r;

	if (!err)
		err = cu_launch(dev, q, s, part->count ? run : part->grid, part);
	if (err || !measured)
		return err;
	r = cu.cuEventRecord(q->end, q->stream);
	if (r)
		cu_break_queue(dev, q, "cuEventRecord", r);
	return 0;
}

static void count(struct cu_pace *p, bool first, uint32_t calls)
{
	atomic_fetch_add_explicit(&p->launches, first, memory_order_relaxed);
	atomic_fetch_add_explicit(&p->slices, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&p->calls, calls, memory_order_relaxed);
}

/* Mark the end of a slice of s, which has just been submitted. */
static void enter_slice(struct cu_device *dev, struct cu_queue *q, struct cu_slot *s,
			uint32_t waves)
{
	struct cu_stops *t = q->stops;
	struct cu_kernel *k = s->base.cmd.launch.kernel;

	cu_number_apart(dev, q, s);
	if (!t->slices)
		t->slice_ns = cu_now(dev);
	t->slice[t->slices++] =
		(struct cu_slice){.number = s->base.number, .waves = waves, .kernel = k};
	q->base.timing |= waves != 0;
	dev->base.progress_ns = cu_now(dev);
}

/* Submit the next part of s, all if it is not cut. */
static int submit(struct cu_device *dev, struct cu_queue *q, struct cu_slot *s)
{
	struct cu_kernel *k = s->base.cmd.launch.kernel;
	const bool first = !s->grid_next && !s->list_end;
	const bool measured = s->cut && !q->base.timing && cu_samples(k);
	const uint32_t wave = s->cut ? wave_of(dev, q, s->resident) : 0;
	struct ptx_launch part;
	const uint32_t n = choose(
		q, s, s->cut ? size_of(dev, q, k, s->resident) : UINT32_MAX, &part);
	int err = submit_part(dev, q, s, &part, n, measured);

	if (err)
		return err;
	if (s->list_next < s->list_end)
		s->list_next += n;
	else
		s->grid_next += n;
	s->base.blocks += n;
	s->base.waits = cu_slices_left(s) != 0;
	if (s->cut) {
		count(&k->pace, first, measured ? 4 : 2);
		enter_slice(dev, q, s, measured ? (n + wave - 1) / wave : 0);
	} else if (!s->base.waits) {
		cu_number(dev, q, s);
	}
	return 0;
}

/* Return whether more of s may be submitted. */
static bool has_room(const struct cu_queue *q, const struct cu_slot *s)
{
	return !s->cut || q->stops->slices < CU_SLICES;
}

int cu_slices_begin(struct cu_device *dev, struct cu_queue *q, struct cu_slot *s,
		    uint32_t resident)
{
	struct ptx_launch ignored;
	int err = cu_stops_stage(dev, q, s, &ignored);

	if (err)
		return err;
	s->cut = cu_slices_cut(dev, q, &s->base.cmd, s->base.blocks, resident);
	s->resident = resident;
	s->grid_next = s->base.blocks = 0;
	s->base.waits = true;
	/* What follows is submitted later, so nothing shares its mark. */
	s->base.marked = s->cut;
	if (has_room(q, s) && !q->stops->waiting)
		err = submit(dev, q, s);
	if (!err && s->base.waits)
		q->stops->waiting++;
	return err;
}

/* Return whether a slice of s, the first launch that waits, was kept from memory.  Then
 * fail s once none of its slices is in flight. */
static bool is_astray(struct cu_queue *q, const struct cu_slot *s)
{
	return q->astray && cu_fence_is_astray(q, s) &&
	       (q->stops->slices || cu_fence_astray(q, s));
}

void cu_slices_submit(struct cu_device *dev, struct cu_queue *q)
{
	struct cu_stops *t = q->stops;

	while (t->waiting && !t->base.folding && !t->due && !q->base.broken &&
	       !atomic_load(&dev->base.lost)) {
		struct cu_slot *s = cu_slot(q, q->base.count - t->waiting);

		if (!has_room(q, s) || is_astray(q, s))
			return;
		cu_refused = (struct cu_refused){"cuLaunchKernel", CUR_UNKNOWN};
		if (cu_enter(dev) || submit(dev, q, s)) {
			cu_withhold(dev, q, s);
			return;
		}
		if (!s->base.waits)
			t->waiting--;
	}
}

/* ---- learned ----------------------------------------------------------------------- */

/* A wave of k took that long.  If that is not what it was the next one is measured, too:
 * the first time has loads of code in it, and a slice of few waves what a launch takes.
 */
static void learn(struct cu_kernel *k, uint64_t ns)
{
	const uint64_t old = atomic_exchange(&k->pace.wave_ns, ns ? ns : 1);

	if (ns > 2 * old || 2 * ns < old)
		k->seen.until_sample = 0;
}

void cu_slices_learn(const struct cu_device *dev, const struct cu_queue *q,
		     const struct cu_slot *s, uint64_t ns)
{
	struct cu_kernel *k = s->base.cmd.launch.kernel;
	uint32_t wave;

	if (!dev->opt.slice_ns || !k->stops || !s->base.blocks || !s->resident)
		return;
	wave = wave_of(dev, q, s->resident);
	learn(k, ns / ((s->base.blocks - 1) / wave + 1));
}

/* Remove the oldest slice of q, which has completed. */
static void end_slice(struct cu_device *dev, struct cu_queue *q)
{
	struct cu_stops *t = q->stops;
	const struct cu_slice *e = &t->slice[0];
	const uint64_t now = cu_now(dev), ns = e->waves ? cu_measured(dev, q) : 0;
	/* Blocks that saw a flag took no time. */
	const bool whole = !t->base.folding || t->holding;

	if (e->waves)
		q->base.timing = false;
	if (ns && whole)
		learn(e->kernel, ns / e->waves);
	else if (now - t->slice_ns > 2 * dev->opt.slice_ns)
		e->kernel->seen.until_sample = 0;
	t->slices--;
	memmove(&t->slice[0], &t->slice[1], t->slices * sizeof(t->slice[0]));
	t->slice_ns = dev->base.progress_ns = now;
}

void cu_slices_look(struct cu_device *dev, struct cu_queue *q)
{
	while (q->stops->slices && cu_reached(q, q->stops->slice[0].number))
		end_slice(dev, q);
	cu_slices_submit(dev, q);
}

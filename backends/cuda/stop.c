/* SPDX-License-Identifier: Apache-2.0 */
/*
 * preempt=block: kernels whose PTX can be rewritten so (ptx/, pass ENTRY) look at a flag
 * before each block.  Suspend by FOLD raises the flags of what a queue has in flight:
 * blocks that run end, the others write their numbers to a list and end, and resume
 * launches the list.  With preempt=restart (pass RESTART) blocks also look in loops.
 *
 * A launch that is cut (slice.c) has a rest that has not been submitted.  If all that is
 * in flight of a queue are slices, FOLD raises no flag: it submits no more of them.
 *
 * A stream of the device's own raises flags while kernels run, and lowers them when the
 * queue has come to its end, before QUIET is reported; the queue's own stream clears how
 * many blocks were stopped.  The rest of what a block has to know comes with its launch.
 */
#define _GNU_SOURCE
#include "internal.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/stream/stop.h"

#define CONTROL sizeof(struct ptx_control)
#define LIST    (CU_STOP_BLOCKS * sizeof(uint32_t))

/* ---- programs ---------------------------------------------------------------------- */

struct cu_kernel *cu_program_kernel(const struct cu_program *prog, const struct ptx *m,
				    uint32_t number)
{
	uint32_t bytes, i;
	const char *name = ptx_kernel_name(m, number, &bytes);

	for (i = 0; i < prog->count; i++)
		if (strlen(prog->kernels[i].info.name) == bytes &&
		    memcmp(prog->kernels[i].info.name, name, bytes) == 0)
			return &prog->kernels[i];
	return NULL;
}

static int rewrite(struct cu_program *prog, const struct ptx *m, enum ptx_pass pass,
		   char **text)
{
	const uint32_t count = ptx_kernels(m);
	bool *which = calloc(count ? count : 1, sizeof(*which)), any = false;
	char why[PTX_WHY];
	size_t bytes;
	uint32_t i;
	int err = 0;

	if (!which)
		return cu_host->fail(ENOMEM, "cuda: no memory for %u kernels", count);
	for (i = 0; i < count; i++) {
		struct cu_kernel *k = cu_program_kernel(prog, m, i);

		if (!k)
			continue;
		which[i] = k->stops = ptx_check(m, i, pass, k->why) == 0;
		any |= k->stops;
	}
	if (any)
		err = ptx_rewrite(m, pass, which, text, &bytes, why);
	free(which);
	return err ? cu_host->fail(-err, "cuda: cannot rewrite the PTX: %s", why) : 0;
}

int cu_program_rewrite(struct cu_program *prog, const char *code, size_t bytes,
		       enum ptx_pass pass, char **text)
{
	char why[PTX_WHY] = "the program is not PTX";
	struct ptx *m = NULL;
	uint32_t i;
	int err = -EINVAL;

	if (prog->format == HAL_CUDA_PTX)
		err = ptx_parse(code, bytes, &m, why);
	for (i = 0; i < prog->count; i++)
		snprintf(prog->kernels[i].why, PTX_WHY, "%s",
			 err ? why : "the PTX has no such kernel");
	if (err)
		return err == -ENOMEM ? cu_host->fail(ENOMEM, "cuda: %s", why) : 0;
	err = rewrite(prog, m, pass, text);
	ptx_free(m);
	return err;
}

/* ---- what a queue has for it ------------------------------------------------------- */

/* Return the bytes of the two lists of each slot of q. */
static uint64_t lists_bytes(const struct cu_queue *q)
{
	return (uint64_t)q->base.slot_count * 2 * LIST;
}

int cu_stops_make(struct cu_device *dev, struct cu_queue *q)
{
	const uint64_t bytes = q->base.slot_count * CONTROL;
	struct cu_stops *t = calloc(1, sizeof(*t));
	void *pinned = NULL;
	int err;

	if (!t)
		return cu_host->fail(ENOMEM, "cuda: no memory to stop a queue");
	q->stops = t;
	q->base.stops = &t->base;
	err = cu_take_own(dev, bytes, &t->controls);
	if (!err)
		err = cu_take_own(dev, lists_bytes(q), &t->lists);
	if (err)
		return err;
	err = cu_pin(dev, bytes, &pinned, &t->seen_at);
	if (err)
		return err;
	memset(pinned, 0, bytes);
	t->seen = pinned;
	return cu_make_word(dev, &t->raised);
}

static uint32_t number_of(const struct cu_queue *q, const struct cu_slot *s)
{
	return (uint32_t)(s - q->slots);
}

uint64_t cu_stops_control(const struct cu_queue *q, const struct cu_slot *s)
{
	return q->stops->controls + number_of(q, s) * CONTROL;
}

/* Behind what is before it in the stream: nothing of the launch has been stopped. */
static int clear_stopped(struct cu_device *dev, struct cu_queue *q,
			 const struct cu_slot *s)
{
	return CU(dev, cuStreamWriteValue32_v2, q->stream,
		  cu_stops_control(q, s) + offsetof(struct ptx_control, stopped), 0, 0);
}

/* Have the device clear the controls, which hold anything at first; by writes, as a
 * memset may be a kernel, which waits for multiprocessors.  Nothing may be raised before
 * it has. */
int cu_stops_ready(struct cu_device *dev, struct cu_queue *q)
{
	struct cu_stops *t = q->stops;
	uint32_t i;
	int err = 0;

	if (t->cleared)
		return 0;
	for (i = 0; !err && i < q->base.slot_count; i++) {
		err = CU(dev, cuStreamWriteValue32_v2, q->stream,
			 cu_stops_control(q, &q->slots[i]), 0, 0);
		if (!err)
			err = clear_stopped(dev, q, &q->slots[i]);
	}
	if (err)
		return err;
	t->cleared = true;
	t->ready_at = q->base.marked = ++q->base.given;
	return CU(dev, cuStreamWriteValue32_v2, q->stream, q->word.address, t->ready_at,
		  0);
}

/* Return whether the flags have been cleared.  Once it is known it stays known: numbers
 * are compared modulo 2^32. */
static bool is_ready(struct cu_queue *q)
{
	struct cu_stops *t = q->stops;

	t->ready = t->ready || (t->cleared && cu_reached(q, t->ready_at));
	return t->ready;
}

static bool is_raised(const struct cu_stops *t)
{
	return stream_reached(cu_at(&t->raised), t->raised_given);
}

bool cu_stops_idle(const struct cu_queue *q)
{
	return !q->stops || is_raised(q->stops);
}

void cu_stops_drop(struct cu_device *dev, struct cu_queue *q, int *err)
{
	struct cu_stops *t = q->stops;

	if (!t)
		return;
	cu_give_own(dev, t->controls, q->base.slot_count * CONTROL, err);
	cu_give_own(dev, t->lists, lists_bytes(q), err);
	cu_give_back(dev, CU_KIND_HOST, t->seen, err);
	cu_give_back(dev, CU_KIND_HOST, t->raised.memory, err);
	free(t);
	q->stops = NULL;
	q->base.stops = NULL;
}

/* ---- launches ---------------------------------------------------------------------- */

/* Lists of a launch that can be cut only hold blocks in flight. */
uint32_t cu_stops_blocks(const struct cu_device *dev, const struct hal_bk_cmd *cmd)
{
	const struct cu_kernel *k = cmd->launch.kernel;
	const bool cuts = dev->opt.slice_ns && (cmd->flags & HAL_BK_CMD_BEST_EFFORT);
	const uint32_t most = cuts ? INT32_MAX : CU_STOP_BLOCKS;
	uint64_t blocks;

	if (cmd->op != HAL_OP_LAUNCH || !k->stops)
		return 0;
	blocks = stream_blocks(cmd, most);
	return blocks <= most ? (uint32_t)blocks : 0;
}

bool cu_stops_wait(const struct cu_device *dev, struct cu_queue *q,
		   const struct hal_bk_cmd *cmd)
{
	return stream_stops_wait(&q->base, cu_stops_blocks(dev, cmd));
}

uint64_t cu_stops_list(const struct cu_queue *q, const struct cu_slot *s, uint32_t list)
{
	return q->stops->lists + (2 * (uint64_t)number_of(q, s) + list) * LIST;
}

int cu_stops_stage(struct cu_device *dev, struct cu_queue *q, struct cu_slot *s,
		   struct ptx_launch *launch)
{
	const struct hal_bk_cmd *cmd = &s->base.cmd;
	int err = cu_stops_ready(dev, q);

	if (err)
		return err;
	*launch = (struct ptx_launch){.control = cu_stops_control(q, s),
				      .to = cu_stops_list(q, s, 0)};
	memcpy(launch->grid, cmd->launch.groups, sizeof(launch->grid));
	s->base.blocks = cu_stops_blocks(dev, cmd);
	s->base.stops = s->base.blocks != 0;
	s->base.stopped = s->base.list = 0;
	s->base.waits = s->cut = false;
	s->list_next = s->list_end = 0;
	s->grid_next = s->grid_end = s->base.blocks;
	return 0;
}

/* ---- stopping ---------------------------------------------------------------------- */

/* Return whether blocks of s have been submitted that read its flag. */
static bool is_submitted(const struct cu_slot *s)
{
	return s->base.stops && s->base.blocks;
}

/* From the last to the first; then that all are. */
static uint32_t raise_flags(struct cu_device *dev, struct cu_queue *q)
{
	struct cu_stops *t = q->stops;
	uint32_t i, r = 0;

	for (i = q->base.count; !r && i--;)
		if (is_submitted(cu_slot(q, i)))
			r = cu.cuStreamWriteValue32_v2(
				dev->flags, cu_stops_control(q, cu_slot(q, i)), 1, 0);
	t->raised_given++;
	return r ? r
		 : cu.cuStreamWriteValue32_v2(dev->flags, t->raised.address,
					      t->raised_given, 0);
}

static void stop_all(struct cu_device *dev, struct cu_queue *q)
{
	struct cu_stops *t = q->stops;
	uint32_t r;

	if (cu_enter(dev))
		return;
	t->base.folding = true;
	t->holding = t->lowering = t->base.settled = false;
	r = raise_flags(dev, q);
	if (r) {
		cu_break_queue(dev, q, "cuStreamWriteValue32_v2", r);
		return;
	}
	/* When the stream has come to here, all have ended or were stopped. */
	r = cu.cuMemcpyAsync(t->seen_at, t->controls, q->base.slot_count * CONTROL,
			     q->stream);
	if (r) {
		cu_break_queue(dev, q, "cuMemcpyAsync", r);
		return;
	}
	t->asked = q->base.marked = ++q->base.given;
	r = cu.cuStreamWriteValue32_v2(q->stream, q->word.address, t->asked, 0);
	if (r)
		cu_break_queue(dev, q, "cuStreamWriteValue32_v2", r);
}

void cu_stops_raise(struct cu_device *dev, struct cu_queue *q)
{
	if (!stream_stops_can(&dev->base, &q->base))
		return;
	q->stops->due = !is_ready(q);
	if (!q->stops->due)
		stop_all(dev, q);
}

/* Return whether all that is in flight of q are slices, which complete soon. */
static bool has_slices_alone(const struct cu_device *dev, struct cu_queue *q)
{
	uint32_t i;

	for (i = 0; i < q->base.count; i++) {
		struct cu_slot *s = cu_slot(q, i);
		const struct cu_kernel *k = s->base.cmd.launch.kernel;
		const uint64_t wave =
			s->base.stops && s->cut ? atomic_load(&k->pace.wave_ns) : 0;

		if (!s->base.stops ||
		    (s->base.blocks && (!wave || wave > dev->opt.slice_ns)))
			return false;
	}
	return true;
}

void cu_stops_fold(struct cu_device *dev, struct cu_queue *q)
{
	struct cu_stops *t = q->stops;

	if (!t->waiting || !has_slices_alone(dev, q)) {
		cu_stops_raise(dev, q);
		return;
	}
	if (!stream_stops_can(&dev->base, &q->base))
		return;
	t->base.folding = t->holding = true;
	t->lowering = t->base.settled = false;
	t->asked = q->base.given; /* slices are marked */
}

/* What was stopped, by what was read back; false: it makes no sense. */
static bool count_stopped(struct cu_queue *q)
{
	bool before = false;
	uint32_t i;

	for (i = 0; i < q->base.count; i++) {
		struct cu_slot *s = cu_slot(q, i);
		const bool raised = is_submitted(s) && !q->stops->holding;
		const uint32_t n = raised ? q->stops->seen[number_of(q, s)].stopped : 0;

		if (!s->base.stops)
			continue;
		/* More than there were, or something that ran in front of the rest. */
		if (n > s->base.blocks || (before && n != s->base.blocks))
			return false;
		s->listed = n;
		s->base.stopped = n + cu_slices_left(s);
		before |= s->base.stopped != 0;
	}
	return true;
}

/* By writes, not by a memset: that may be a kernel, which would wait for multiprocessors
 * behind other tenants' blocks, and all later raises of the device behind it.  How
 * many blocks were stopped is cleared before its next launch. */
static void lower_flags(struct cu_device *dev, struct cu_queue *q)
{
	struct cu_stops *t = q->stops;
	uint32_t i, r = cu_enter(dev) ? CUR_INVALID_CONTEXT : 0;

	t->lowering = true;
	dev->base.progress_ns = cu_now(dev); /* it takes no time */
	for (i = 0; !r && i < q->base.count; i++)
		if (is_submitted(cu_slot(q, i)))
			r = cu.cuStreamWriteValue32_v2(
				dev->flags, cu_stops_control(q, cu_slot(q, i)), 0, 0);
	if (!r)
		r = cu.cuStreamWriteValue32_v2(dev->flags, t->raised.address,
					       ++t->raised_given, 0);
	if (r)
		cu_break_queue(dev, q, "cannot clear the stop flag", r);
}

static void settle(struct cu_device *dev, struct cu_queue *q)
{
	struct cu_stops *t = q->stops;

	if (atomic_load(&dev->base.lost)) {
		stream_stops_forget(&dev->base, &q->base);
		return;
	}
	if (t->base.settled || q->base.broken || !cu_reached(q, t->asked) ||
	    !is_raised(t))
		return;
	if (!t->lowering && !t->holding) {
		lower_flags(dev, q);
	} else if (count_stopped(q)) {
		stream_stops_settled(&dev->base, &q->base);
	} else {
		stream_stops_forget(&dev->base, &q->base);
		cu_break_queue(dev, q, "stopped blocks were lost", CUR_UNKNOWN);
	}
}

void cu_stops_look(struct cu_device *dev, struct cu_queue *q)
{
	struct cu_stops *t = q->stops;

	if (is_ready(q) && t->due)
		cu_stops_raise(dev, q);
	if (t->base.folding)
		settle(dev, q);
	cu_slices_look(dev, q);
}

/* Have s run its stopped blocks, then the rest that was not submitted.  What is left of
 * the former list is appended to the new one. */
static int again(struct cu_device *dev, struct cu_queue *q, struct cu_slot *s)
{
	const uint32_t more = s->list_end - s->list_next;
	const uint64_t to = cu_stops_list(q, s, s->base.list) +
			    s->listed * sizeof(uint32_t),
		       from = cu_stops_list(q, s, 1 - s->base.list) +
			      s->list_next * sizeof(uint32_t);
	int err = more ? cu_move(dev, q, to, from, more * sizeof(uint32_t)) : 0;

	if (!err)
		err = clear_stopped(dev, q, s);
	s->base.list = 1 - s->base.list;
	s->list_next = 0;
	s->list_end = s->listed + more;
	s->base.blocks = s->base.stopped = s->listed = 0;
	s->base.waits = true;
	q->stops->waiting++;
	s->cut = cu_slices_cut(dev, q, &s->base.cmd, cu_slices_left(s), s->resident);
	return err;
}

static inline int vendor_stops_begin(struct stream_device *device,
				     struct stream_queue *queue, bool kept)
{
	(void)kept;
	((struct cu_queue *)queue)->stops->waiting = 0;
	return cu_enter((struct cu_device *)device);
}

static inline int vendor_stops_again(struct stream_device *device,
				     struct stream_queue *queue, struct stream_slot *slot,
				     uint32_t i)
{
	/* From here on it takes how long it runs now. */
	if (slot->timed)
		slot->timed = queue->timing = false;
	(void)i;
	return again((struct cu_device *)device, (struct cu_queue *)queue,
		     (struct cu_slot *)slot);
}

static inline void vendor_stops_fail(struct stream_device *dev, struct stream_queue *q,
				     uint32_t i)
{
	if (!stream_lost(dev) && !q->broken)
		cu_mark((struct cu_device *)dev, (struct cu_queue *)q);
	for (i = 0; i < q->count; i++)
		if (cu_reached((struct cu_queue *)q, stream_slot(q, i)->number))
			stream_slot(q, i)->number = ++q->given;
	q->unsure = true;
}

void cu_stops_go_on(struct cu_device *dev, struct cu_queue *q)
{
	q->stops->due = false;
	stream_stops_resume(&dev->base, &q->base, cu_now(dev));
	cu_slices_submit(dev, q);
}

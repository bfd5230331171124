/* SPDX-License-Identifier: Apache-2.0 */
/*
 * preempt=block: kernels whose PTX can be rewritten so (ptx/, pass ENTRY) look at a flag
 * before each block.  Suspend by FOLD raises the flags of what a queue has in flight:
 * blocks that run end, the others write their numbers to a list and end, and resume
 * launches the list.
 *
 * What is behind a launch that was stopped must not run before the rest of it.  So behind
 * one that can be stopped only such launches are given to the device, their flags are
 * raised from the last to the first: one that was stopped has none behind it that was
 * not.  A stream of the device's own raises flags while kernels run, and lowers them when
 * the queue has come to its end, before that is told; the queue's own stream writes
 * all of a control but its flag.
 */
#define _GNU_SOURCE
#include "internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CONTROL sizeof(struct ptx_control)
#define LIST    (CU_STOP_BLOCKS * sizeof(uint32_t))

/* ---- programs ---------------------------------------------------------------------- */

static struct cu_kernel *kernel_of(const struct cu_program *prog, const struct ptx *m,
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

static int rewrite(struct cu_program *prog, const struct ptx *m, char **text)
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
		struct cu_kernel *k = kernel_of(prog, m, i);

		if (!k)
			continue;
		which[i] = k->stops = ptx_check(m, i, PTX_ENTRY, k->why) == 0;
		any |= k->stops;
	}
	if (any)
		err = ptx_rewrite(m, PTX_ENTRY, which, text, &bytes, why);
	free(which);
	return err ? cu_host->fail(-err, "cuda: cannot rewrite the PTX: %s", why) : 0;
}

int cu_program_rewrite(struct cu_program *prog, const char *code, size_t bytes,
		       char **text)
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
	err = rewrite(prog, m, text);
	ptx_free(m);
	return err;
}

/* ---- what a queue has for it ------------------------------------------------------- */

int cu_stops_make(struct cu_device *dev, struct cu_queue *q)
{
	const uint64_t bytes = q->slot_count * CONTROL;
	struct cu_stops *t = calloc(1, sizeof(*t));
	void *pinned = NULL;
	int err;

	if (!t)
		return cu_host->fail(ENOMEM, "cuda: no memory to stop a queue");
	q->stops = t;
	err = CU(dev, cuMemAlloc_v2, &t->controls, bytes);
	if (err) {
		t->controls = 0;
		return err;
	}
	err = CU(dev, cuMemAlloc_v2, &t->lists, (uint64_t)q->slot_count * 2 * LIST);
	if (err) {
		t->lists = 0;
		return err;
	}
	err = cu_pin(dev, 2 * bytes, &pinned, &t->staged_at);
	if (err)
		return err;
	memset(pinned, 0, 2 * bytes);
	t->staged = pinned;
	t->seen = t->staged + q->slot_count;
	t->seen_at = t->staged_at + bytes;
	err = cu_pin(dev, sizeof(uint32_t), &t->raised.memory, &t->raised.address);
	if (err)
		return err;
	__atomic_store_n((uint32_t *)t->raised.memory, 0, __ATOMIC_RELEASE);
	return 0;
}

/* No flag is up; before that is written nothing may be raised. */
static int make_ready(struct cu_device *dev, struct cu_queue *q)
{
	struct cu_stops *t = q->stops;
	int err;

	if (t->ready)
		return 0;
	err = CU(dev, cuMemsetD32Async, t->controls, 0, q->slot_count * CONTROL / 4,
		 q->stream);
	if (err)
		return err;
	t->ready = ++q->counter.given;
	return CU(dev, cuStreamWriteValue32_v2, q->stream, q->counter.address, t->ready,
		  0);
}

void cu_stops_drop(struct cu_device *dev, struct cu_queue *q, int *err)
{
	struct cu_stops *t = q->stops;

	if (!t)
		return;
	/* Little is in these, and of a queue that broke, or never launched. */
	if (t->ready && !atomic_load(&dev->lost)) {
		if (!cu_reached(&q->counter, t->ready))
			(void)cu.cuStreamSynchronize(q->stream);
		if (!cu_reached(&t->raised, t->raised.given))
			(void)cu.cuStreamSynchronize(dev->flags);
	}
	if (t->controls)
		cu_give_back_address(dev, CU_KIND_DEVICE, t->controls, err);
	if (t->lists)
		cu_give_back_address(dev, CU_KIND_DEVICE, t->lists, err);
	cu_give_back(dev, CU_KIND_HOST, t->staged, err);
	cu_give_back(dev, CU_KIND_HOST, t->raised.memory, err);
	free(t);
	q->stops = NULL;
}

/* ---- launches ---------------------------------------------------------------------- */

static uint64_t blocks_of(const struct hal_bk_cmd *cmd)
{
	const uint32_t *g = cmd->launch.groups;
	const uint64_t plane = (uint64_t)g[0] * g[1];

	return plane > CU_STOP_BLOCKS ? plane : plane * g[2];
}

static bool can_stop(const struct hal_bk_cmd *cmd)
{
	const struct cu_kernel *k = cmd->launch.kernel;

	return cmd->op == HAL_OP_LAUNCH && k->stops && blocks_of(cmd) <= CU_STOP_BLOCKS;
}

bool cu_stops_wait(const struct cu_queue *q, const struct hal_bk_cmd *cmd)
{
	const struct cu_slot *last =
		&q->slots[(q->head + q->count + q->slot_count - 1) % q->slot_count];

	return q->count && last->stops && !can_stop(cmd);
}

static uint32_t number_of(const struct cu_queue *q, const struct cu_slot *s)
{
	return (uint32_t)(s - q->slots);
}

static uint64_t control_of(const struct cu_queue *q, const struct cu_slot *s)
{
	return q->stops->controls + number_of(q, s) * CONTROL;
}

static uint64_t list_of(const struct cu_queue *q, const struct cu_slot *s, uint32_t list)
{
	return q->stops->lists + (2 * (uint64_t)number_of(q, s) + list) * LIST;
}

/* All of a control but its flag, behind what is before it in the stream. */
static int copy_control(struct cu_device *dev, struct cu_queue *q, struct cu_slot *s,
			const struct ptx_control *c)
{
	const uint64_t skip = sizeof(c->stop),
		       at = q->stops->staged_at + number_of(q, s) * CONTROL;
	struct ptx_control *staged = &q->stops->staged[number_of(q, s)];

	if (s->staged && memcmp(staged, c, sizeof(*c)) == 0)
		return 0;
	*staged = *c;
	s->staged = true;
	return CU(dev, cuMemcpyAsync, control_of(q, s) + skip, at + skip, CONTROL - skip,
		  q->stream);
}

int cu_stops_stage(struct cu_device *dev, struct cu_queue *q, struct cu_slot *s,
		   uint64_t *control)
{
	const struct hal_bk_cmd *cmd = &s->cmd;
	struct ptx_control c = {.to = list_of(q, s, 0)};
	int err = make_ready(dev, q);

	if (err)
		return err;
	memcpy(c.grid, cmd->launch.groups, sizeof(c.grid));
	s->stops = can_stop(cmd);
	s->blocks = s->stops ? (uint32_t)blocks_of(cmd) : 0;
	s->stopped = s->list = 0;
	*control = control_of(q, s);
	return copy_control(dev, q, s, &c);
}

/* ---- stopping ---------------------------------------------------------------------- */

static void broken(struct cu_device *dev, struct cu_queue *q, const char *call,
		   uint32_t r)
{
	(void)cu_failed(dev, r, call);
	cu_break_queue(q, call, r);
}

/* From the last to the first; then that all are. */
static uint32_t raise_flags(struct cu_device *dev, struct cu_queue *q)
{
	struct cu_stops *t = q->stops;
	uint32_t i, r = 0;

	for (i = q->count; !r && i--;)
		if (cu_slot(q, i)->stops)
			r = cu.cuStreamWriteValue32_v2(
				dev->flags, control_of(q, cu_slot(q, i)), 1, 0);
	t->raised.given++;
	return r ? r
		 : cu.cuStreamWriteValue32_v2(dev->flags, t->raised.address,
					      t->raised.given, 0);
}

bool cu_stops_raise(struct cu_device *dev, struct cu_queue *q)
{
	struct cu_stops *t = q->stops;
	uint32_t r;

	if (!q->count || !cu_slot(q, q->count - 1)->stops || q->broken ||
	    atomic_load(&dev->lost) || !cu_reached(&q->counter, t->ready) ||
	    cu_enter(dev))
		return false;
	t->folding = true;
	t->lowering = t->settled = false;
	r = raise_flags(dev, q);
	if (r) {
		broken(dev, q, "cuStreamWriteValue32_v2", r);
		return true;
	}
	/* When the stream has come to here, all have ended or were stopped. */
	r = cu.cuMemcpyAsync(t->seen_at, t->controls, q->slot_count * CONTROL, q->stream);
	if (r) {
		broken(dev, q, "cuMemcpyAsync", r);
		return true;
	}
	t->asked = ++q->counter.given;
	r = cu.cuStreamWriteValue32_v2(q->stream, q->counter.address, t->asked, 0);
	if (r)
		broken(dev, q, "cuStreamWriteValue32_v2", r);
	return true;
}

uint32_t cu_stops_kept(const struct cu_queue *q)
{
	uint32_t i, n = 0;

	if (!q->stops || !q->stops->settled)
		return 0;
	for (i = 0; i < q->count; i++)
		n += q->slots[(q->head + i) % q->slot_count].stopped != 0;
	return n;
}

/* What was stopped, by what was read back; false: it makes no sense. */
static bool count_stopped(struct cu_queue *q)
{
	bool before = false;
	uint32_t i;

	for (i = 0; i < q->count; i++) {
		struct cu_slot *s = cu_slot(q, i);
		const uint32_t n = q->stops->seen[number_of(q, s)].stopped;

		if (!s->stops)
			continue;
		/* More than there were, or something that ran in front of the rest. */
		if (n > s->blocks || (before && n != s->blocks))
			return false;
		s->stopped = n;
		before |= n != 0;
	}
	return true;
}

static void lower_flags(struct cu_device *dev, struct cu_queue *q)
{
	struct cu_stops *t = q->stops;
	uint32_t r = cu_enter(dev) ? CUR_INVALID_CONTEXT : 0;

	t->lowering = true;
	dev->progress_ns = cu_now(dev); /* it takes no time */
	if (!r)
		r = cu.cuMemsetD32Async(t->controls, 0, q->slot_count * CONTROL / 4,
					dev->flags);
	if (!r)
		r = cu.cuStreamWriteValue32_v2(dev->flags, t->raised.address,
					       ++t->raised.given, 0);
	if (r)
		broken(dev, q, "cannot clear the stop flag", r);
}

/* What was stopped is where its partition was, which may go now. */
static void let_go(struct cu_device *dev, struct cu_queue *q)
{
	const uint32_t left = q->count - cu_stops_kept(q);
	const uint32_t gone = q->older_count > left ? q->older_count - left : 0;

	dev->inflight -= cu_stops_kept(q);
	q->older_count -= gone;
	q->part->moving_left -= gone;
}

bool cu_stops_settle(struct cu_device *dev, struct cu_queue *q)
{
	struct cu_stops *t = q->stops;

	if (atomic_load(&dev->lost)) {
		cu_stops_forget(dev, q);
		return false;
	}
	if (t->settled || q->broken)
		return t->settled;
	if (!cu_reached(&q->counter, t->asked) ||
	    !cu_reached(&t->raised, t->raised.given))
		return false;
	if (!t->lowering) {
		lower_flags(dev, q);
		return false;
	}
	if (!count_stopped(q)) {
		cu_break_queue(q, "stopped blocks were lost", CUR_UNKNOWN);
		return false;
	}
	t->settled = true;
	let_go(dev, q);
	return true;
}

/* Of a device that is lost: they are in flight again, so that they can end. */
void cu_stops_forget(struct cu_device *dev, struct cu_queue *q)
{
	uint32_t i;

	dev->inflight += cu_stops_kept(q);
	for (i = 0; i < q->count; i++)
		cu_slot(q, i)->stopped = 0;
	q->stops->settled = false; /* and .folding stays: none of it has ended well */
}

static int again(struct cu_device *dev, struct cu_queue *q, struct cu_slot *s)
{
	const uint32_t groups[3] = {s->stopped, 1, 1};
	const uint64_t control = control_of(q, s);
	struct ptx_control c = {.resumed = s->stopped,
				.from = list_of(q, s, s->list),
				.to = list_of(q, s, 1 - s->list)};
	int err;

	memcpy(c.grid, s->cmd.launch.groups, sizeof(c.grid));
	s->list = 1 - s->list;
	s->blocks = s->stopped;
	s->stopped = 0;
	err = copy_control(dev, q, s, &c);
	return err ? err : cu_launch(dev, q, s, groups, &control);
}

/* What was written when they stopped does not say that those have ended which are not
 * launched again: they wait for what nobody writes. */
static void give_up(struct cu_queue *q)
{
	uint32_t i;

	for (i = 0; i < q->count; i++)
		if (cu_reached(&q->counter, cu_slot(q, i)->value))
			cu_slot(q, i)->value = ++q->counter.given;
	cu_break_queue(q, "cannot resume the stopped launch", CUR_UNKNOWN);
}

void cu_stops_go_on(struct cu_device *dev, struct cu_queue *q)
{
	const uint32_t kept = cu_stops_kept(q);
	struct cu_stops *t = q->stops;
	uint32_t i;
	int err;

	if (!t->folding || atomic_load(&dev->lost))
		return;
	t->folding = t->settled = false;
	dev->inflight += kept;
	err = cu_enter(dev);
	for (i = 0; i < q->slot_count; i++)
		q->slots[i].staged = false;
	if (!err && kept)
		err = CU(dev, cuEventRecord, q->idle, q->stream);
	for (i = 0; !err && i < q->count; i++) {
		struct cu_slot *s = cu_slot(q, i);

		s->begin = i ? cu_slot(q, i - 1)->end : q->idle;
		err = q->broken ? -EIO : again(dev, q, s);
		if (!err)
			cu_mark(dev, q, s);
	}
	if (err)
		give_up(q);
	dev->progress_ns = dev->checked_ns = q->turn_ns = cu_now(dev);
}

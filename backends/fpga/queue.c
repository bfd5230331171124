/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hot path of a card.
 *
 * submit begins a launch that nothing is in front of, and writes down all else; the
 * doorbell and poll begin what can begin.  The oldest command of each queue is either
 * ready, or at work: on a slot of its partition, or with the mover.  Ready ones begin in
 * the order in which they became it.  One whose configuration is not on the card asks for
 * it: then no launch begins until those on slots have ended and it is there; copies go on
 * meanwhile.
 */
#define _GNU_SOURCE
#include "internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LONGEST_NS UINT64_C(500000) /* it is looked at no less often than this */

/* ---- lists --------------------------------------------------------------------------- */

static void enlist(struct fp_list *l, struct fp_queue *q)
{
	q->list = l;
	q->newer = NULL;
	q->older = l->newest;
	*(q->older ? &q->older->newer : &l->oldest) = q;
	l->newest = q;
}

static void unlist(struct fp_queue *q)
{
	struct fp_list *l = q->list;

	if (!l)
		return;
	*(q->older ? &q->older->newer : &l->oldest) = q->newer;
	*(q->newer ? &q->newer->older : &l->newest) = q->older;
	q->list = NULL;
}

static void relist(struct fp_list *l, struct fp_queue *q)
{
	unlist(q);
	enlist(l, q);
}

/* ---- creation ------------------------------------------------------------------------ */

int fp_queue_create(void *device, void *partition, int32_t priority, void **out)
{
	const struct fp_device *dev = device;
	const uint32_t room = dev->opt.inflight;
	struct fp_queue *q = calloc(1, sizeof(*q) + room * sizeof(q->cmds[0]));

	(void)priority;
	if (!q)
		return fp_host->fail(ENOMEM, "fpga: no memory for a queue");
	q->base.slot_count = room;
	q->part = partition;
	q->part->queues++;
	*out = q;
	return 0;
}

int fp_queue_destroy(void *device, void *queue)
{
	struct fp_device *dev = device;
	struct fp_queue *q = queue;

	if (((q->base.count && q->phase != FP_HELD) || q->base.quiet_due) &&
	    !atomic_load(&dev->lost))
		return fp_host->fail(EBUSY, "fpga: the queue still has %u commands",
				     q->base.count);
	if (q->phase == FP_MOVING) {
		fp_move_wait(dev, &q->chore);
		dev->moving--;
	} else if (q->phase == FP_RUNNING) {
		fp_run_put_away(dev, q);
	} else if (q->phase == FP_RESETTING) {
		fp_slot_wait(dev, q->slot);
		fp_run_put_away(dev, q);
	}
	unlist(q);
	fp_states_drop(dev, q);
	q->part->queues--;
	free(q);
	return 0;
}

/* ---- what begins --------------------------------------------------------------------- */

static int begin_launch(struct fp_device *dev, struct fp_queue *q)
{
	const struct fp_kernel *k = fp_oldest(q)->launch.kernel;
	int err;

	if (k->design != dev->loaded && !dev->wanted) {
		dev->wanted = k->design;
		dev->wanted->users++;
	}
	if (dev->wanted || dev->is_loading)
		return -EAGAIN;
	err = fp_run_begin(dev, q);
	if (!err)
		q->phase = FP_RUNNING;
	return err;
}

static void begin_move(struct fp_device *dev, struct fp_queue *q)
{
	const struct hal_bk_cmd *cmd = fp_oldest(q);

	if (cmd->op == HAL_OP_NOP || (cmd->op == HAL_OP_COPY && !cmd->copy.bytes) ||
	    (cmd->op == HAL_OP_FILL && !cmd->fill.bytes)) {
		q->phase = FP_ENDED;
		q->end_ns = q->start_ns;
		return;
	}
	q->phase = FP_MOVING;
	q->chore.work = fp_move_command;
	dev->moving++;
	fp_move(dev, &q->chore);
}

static void begin_ended(struct fp_queue *q)
{
	q->phase = FP_ENDED;
	q->status = -EIO;
	q->end_ns = q->start_ns;
}

/* False: it cannot begin yet. */
static bool begin(struct fp_device *dev, struct fp_queue *q)
{
	int err = 0;

	q->start_ns = fp_now(dev);
	q->status = 0;
	q->base.fault[0] = 0;
	q->asked = q->stopped = false;
	if (fp_oldest(q)->op == HAL_OP_LAUNCH)
		err = begin_launch(dev, q);
	else
		begin_move(dev, q);
	if (err == -EAGAIN)
		return false;
	if (err)
		begin_ended(q);
	relist(&dev->busy, q);
	dev->progress_ns = q->start_ns;
	return true;
}

static void begin_loading(struct fp_device *dev)
{
	uint32_t i;

	dev->load_slots = 0;
	for (i = 0; i < FP_SLOTS_MAX; i++)
		if (dev->slots[i].owner)
			dev->load_slots |= UINT64_C(1) << i;
	dev->load_keeps = false;
	for (i = 0; i < FP_BANKS_MAX; i++)
		dev->load_keeps |= atomic_load(&dev->bank_used[i]) != 0;
	dev->is_loading = true;
	dev->progress_ns = fp_now(dev);
	dev->load_began_ns = dev->progress_ns;
	dev->loading.work = fp_design_exchange;
	fp_move(dev, &dev->loading);
}

/* Those that wanted it cannot go on without. */
static void fail_wanting(struct fp_device *dev)
{
	struct fp_queue *q, *next;

	for (q = dev->ready.oldest; q; q = next) {
		const struct hal_bk_cmd *cmd = fp_oldest(q);

		next = q->newer;
		if (cmd->op != HAL_OP_LAUNCH ||
		    ((const struct fp_kernel *)cmd->launch.kernel)->design != dev->wanted)
			continue;
		q->phase = FP_ENDED;
		q->status = -EIO;
		q->start_ns = q->end_ns = fp_now(dev);
		snprintf(q->base.fault, sizeof(q->base.fault), "%s", dev->loading.text);
		relist(&dev->busy, q);
	}
}

static void end_loading(struct fp_device *dev)
{
	dev->is_loading = false;
	fp_design_exchanged(dev);
	if (dev->loading.err)
		fail_wanting(dev);
	fp_design_give(dev, dev->wanted);
	dev->wanted = NULL;
	dev->progress_ns = fp_now(dev);
}

/* True: something began. */
static bool begin_what_can(struct fp_device *dev)
{
	struct fp_queue *q, *next;
	bool some = fp_slots_changed(dev);

	if (dev->is_loading && atomic_load(&dev->loading.done))
		end_loading(dev);
	for (q = dev->ready.oldest; q && !atomic_load(&dev->lost); q = next) {
		next = q->newer;
		some |= begin(dev, q);
	}
	if (dev->wanted && !dev->is_loading && !dev->running &&
	    !atomic_load(&dev->lost)) {
		begin_loading(dev);
		some |= atomic_load(&dev->loading.done);
	}
	return fp_slots_changed(dev) || some;
}

void fp_doorbell(void *device)
{
	const struct fp_device *dev = device;

	if (dev->ready.oldest || dev->wanted)
		(void)begin_what_can(device);
}

/* A launch that nothing is in front of, checked on the way: 0 when it has begun; -EAGAIN:
 * not that quickly, or nothing is free; another error is in q->base.fault. */
static inline __attribute__((always_inline)) int run_now(struct fp_device *dev,
							 struct fp_queue *q,
							 const struct hal_bk_cmd *cmd,
							 const struct fp_kernel *k)
{
	const uint64_t free = k->slots & q->part->slots & ~dev->running;
	const uint64_t *reach = k->reach;
	uint32_t i, slot;
	void *run;
	int err;

	if (!free ||
	    (cmd->launch.groups[0] | cmd->launch.groups[1] | cmd->launch.groups[2]) != 1)
		return -EAGAIN;
	slot = (uint32_t)__builtin_ctzll(free);
	if (dev->slots[slot].broken[0])
		return -EAGAIN;
	q->slot = slot;
	run = fp_unit_of(q, k)->run;
	errno = 0;
	for (i = 0; i < cmd->launch.arg_count; i++) {
		const struct hal_bk_arg *a = &cmd->launch.args[i];
		const struct fp_mem *mem = a->mem;
		const uint32_t bits = k->bits[i];

		if (mem) {
			if (bits || a->value ||
			    !(reach[i * FP_BANKS_MAX + mem->bank] >> slot & 1))
				return -EAGAIN;
			err = xrt.xrtRunSetArg(run, (int)i, mem->bo);
		} else {
			if (!bits || a->value >> (bits - 1) > 1)
				return -EAGAIN;
			err = xrt.xrtRunSetArg(run, (int)i, a->value);
		}
		if (__builtin_expect(err, 0))
			return fp_run_refused(dev, q, k, "xrtRunSetArg");
	}
	if (__builtin_expect(xrt.xrtRunStart(run), 0))
		return fp_run_refused(dev, q, k, "xrtRunStart");
	dev->running |= UINT64_C(1) << slot;
	return 0;
}

/* False: it is to be queued. */
static inline __attribute__((always_inline)) bool begin_now(struct fp_device *dev,
							    struct fp_queue *q,
							    const struct hal_bk_cmd *cmd,
							    const struct fp_kernel *k)
{
	int err;

	if (!k->quick || q->base.count || dev->ready.oldest || dev->wanted ||
	    k->design != dev->loaded)
		return false;
	q->status = 0;
	q->base.fault[0] = 0;
	q->asked = q->stopped = false;
	q->start_ns = fp_now(dev);
	err = run_now(dev, q, cmd, k);
	if (err == -EAGAIN)
		return false;
	q->cmds[q->base.head].base.cmd = *cmd;
	q->base.count = 1;
	q->phase = FP_RUNNING;
	if (err)
		begin_ended(q);
	enlist(&dev->busy, q);
	dev->progress_ns = q->start_ns;
	return true;
}

int fp_submit(void *device, void *queue, const struct hal_bk_cmd *cmd)
{
	struct fp_device *dev = device;
	struct fp_queue *q = queue;
	struct fp_state *state = NULL;
	struct fp_command *c;
	uint64_t slots = 0;
	int err;

	if (__builtin_expect(atomic_load_explicit(&dev->lost, memory_order_relaxed), 0))
		return fp_gone(dev);
	if (q->failed)
		return fp_host->fail(
			EIO,
			"fpga: a command of the queue has failed; create a new queue");
	if (q->base.suspended || q->base.count == q->base.slot_count)
		return -EAGAIN;
	if (cmd->op == HAL_OP_LAUNCH) {
		const struct fp_kernel *k = cmd->launch.kernel;

		if (begin_now(dev, q, cmd, k))
			return 0;
		err = fp_run_check(dev, q->part, cmd, &slots);
		if (!err && k->desc->stops)
			err = fp_state_take(dev, q, k, &slots, &state);
		if (err)
			return err;
	}
	c = &q->cmds[stream_at(&q->base, q->base.count)];
	c->base.cmd = *cmd;
	c->slots = slots;
	c->tried = 0;
	c->state = state;
	c->resumes = false;
	if (!q->base.count++) {
		q->phase = FP_READY;
		enlist(&dev->ready, q);
	}
	return 0;
}

/* ---- what ends ----------------------------------------------------------------------- */

/* The slot, not the card: its units begin anew, and what the run may still be using is
 * given back when they have. */
static void reset(struct fp_device *dev, struct fp_queue *q)
{
	q->phase = FP_RESETTING;
	if (dev->slots[q->slot].hangs > 1)
		fp_slot_retire(dev, q->slot);
	else
		fp_slot_anew(dev, q->slot);
}

static bool is_reset(struct fp_device *dev, struct fp_queue *q)
{
	(void)fp_slots_changed(dev);
	if (dev->changing >> q->slot & 1)
		return false;
	fp_run_put_away(dev, q);
	q->phase = FP_ENDED;
	return true;
}

/* Is the oldest command over? */
static bool has_ended(struct fp_device *dev, struct fp_queue *q)
{
	if (q->phase == FP_ENDED)
		return true;
	if (q->phase == FP_HELD)
		return false;
	if (q->phase == FP_RESETTING)
		return is_reset(dev, q);
	if (q->phase == FP_RUNNING ? !fp_run_ended(dev, q) : !atomic_load(&q->chore.done))
		return false;
	q->end_ns = fp_now(dev);
	if (q->phase == FP_MOVING) {
		dev->moving--;
		q->status = q->chore.err ? -EIO : 0;
		if (q->chore.err)
			snprintf(q->base.fault, sizeof(q->base.fault), "%.95s",
				 q->chore.text);
	}
	dev->progress_ns = q->end_ns;
	if (q->phase == FP_RUNNING && q->status && !atomic_load(&dev->lost)) {
		reset(dev, q);
		return is_reset(dev, q);
	}
	if (q->phase == FP_RUNNING)
		fp_run_put_away(dev, q);
	q->phase = q->stopped ? FP_HELD : FP_ENDED;
	return !q->stopped;
}

static void tell(struct fp_device *dev, struct fp_queue *q, struct hal_bk_event *e)
{
	const struct hal_bk_cmd *cmd = fp_oldest(q);

	*e = stream_event(HAL_BK_DONE, cmd->cookie, q->end_ns);
	e->status = q->status;
	e->start_ns = q->start_ns;
	if (!q->status)
		stream_count_bytes(cmd, e);
	else if (q->status == -EIO)
		memcpy(e->fault, q->base.fault, sizeof(e->fault));
	q->failed |= q->status != 0;
	q->base.head = stream_at(&q->base, 1);
	if (!--q->base.count) {
		q->phase = FP_IDLE;
		if (!q->base.quiet_due)
			unlist(q);
	} else if (q->failed) {
		/* It stays ended: what is behind a failure is told of at once. */
		q->status = -ECANCELED;
		q->start_ns = q->end_ns;
	} else if (q->folds) {
		q->phase = FP_HELD;
	} else {
		q->phase = FP_READY;
		relist(&dev->ready, q);
	}
}

/* How long the oldest command ran that was stopped inside, and what of it was moved. */
static void tell_stopped(struct fp_queue *q, struct hal_bk_event *e)
{
	const struct fp_kernel *k = fp_oldest(q)->launch.kernel;
	struct fp_command *c = &q->cmds[q->base.head];

	e->start_ns = q->start_ns;
	e->end_ns = q->end_ns;
	e->bytes_written = k->desc->args[fp_state_arg(k->desc)].bytes;
	e->bytes_read = c->resumes ? e->bytes_written : 0;
	c->resumes = true;
	q->stopped = false;
}

static uint32_t look_at(struct fp_device *dev, struct fp_queue *q,
			struct hal_bk_event *ev, uint32_t max)
{
	uint32_t n = 0;

	while (n < max && q->list == &dev->busy && q->base.count && has_ended(dev, q))
		tell(dev, q, &ev[n++]);
	if (n < max && q->base.quiet_due && (!q->base.count || q->phase == FP_HELD)) {
		ev[n] = stream_event(HAL_BK_QUIET, q->base.quiet_cookie, fp_now(dev));
		if (q->stopped)
			tell_stopped(q, &ev[n]);
		n++;
		q->base.quiet_due = false;
		unlist(q);
	}
	return n;
}

/* A card that is lost tells of nothing any more. */
static void end_all(struct fp_device *dev)
{
	struct fp_queue *q, *next;

	for (q = dev->ready.oldest; q; q = next) {
		next = q->newer;
		relist(&dev->busy, q);
	}
	for (q = dev->busy.oldest; q; q = q->newer) {
		if (q->phase == FP_IDLE || q->phase == FP_ENDED)
			continue;
		if (q->phase == FP_MOVING && !atomic_load(&q->chore.done))
			continue;
		if (q->phase == FP_RESETTING) {
			(void)is_reset(dev, q); /* it has ended before */
			continue;
		}
		if (q->phase == FP_RUNNING)
			fp_run_put_away(dev, q);
		else if (q->phase == FP_MOVING)
			dev->moving--;
		q->phase = FP_ENDED;
		q->status = -EIO;
		q->end_ns = fp_now(dev);
		if (q->start_ns > q->end_ns || !q->start_ns)
			q->start_ns = q->end_ns;
		snprintf(q->base.fault, sizeof(q->base.fault),
			 "the card is lost (ENODEV)");
	}
}

static uint32_t look(struct fp_device *dev, struct hal_bk_event *ev, uint32_t max)
{
	struct fp_queue *q, *next;
	uint32_t n = 0;

	do {
		if (atomic_load(&dev->lost))
			end_all(dev);
		for (q = dev->busy.oldest; q && n < max; q = next) {
			next = q->newer;
			n += look_at(dev, q, ev + n, max - n);
		}
	} while (n < max && begin_what_can(dev));
	return n;
}

/* ---- time ---------------------------------------------------------------------------- */

static uint64_t earlier(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Virtual time: to until_ns, or to where something can have ended; false: nothing will.
 */
static bool step(struct fp_device *dev, uint64_t until_ns)
{
	const struct fp_queue *q;
	uint64_t now;
	uint32_t idle;

	for (q = dev->busy.oldest; q; q = q->newer) {
		if (q->phase != FP_RUNNING)
			continue;
		if (dev->opt.hang_ns)
			until_ns = earlier(until_ns,
					   hal_bk_after(q->start_ns, dev->opt.hang_ns));
		if (q->asked) /* it is asked again */
			until_ns =
				earlier(until_ns, hal_bk_after(fp_now(dev), FP_LOOK_NS));
	}
	xrt.advance(hal_bk_after(until_ns, dev->zero_ns), &now, &idle);
	fp_raise(dev, now);
	return !idle || dev->opt.hang_ns;
}

static bool is_at_work(const struct fp_device *dev)
{
	return dev->running || dev->moving || dev->is_loading;
}

int fp_poll(void *device, uint64_t until_ns, struct hal_bk_event *ev, uint32_t max)
{
	struct fp_device *dev = device;
	uint32_t n = look(dev, ev, max);
	bool more = dev->opt.virtual_clock;

	while (more && !n && fp_now(dev) < until_ns &&
	       (is_at_work(dev) || until_ns != UINT64_MAX)) {
		more = step(dev, until_ns);
		n = look(dev, ev, max);
	}
	if (!n && atomic_load(&dev->lost) && !dev->moving && !dev->changing)
		return fp_gone(dev);
	return (int)n;
}

/* XRT has no descriptor that tells.  The longer nothing ends, the less often it is looked
 * at. */
uint64_t fp_next(void *device)
{
	const struct fp_device *dev = device;
	const uint64_t now = fp_now(device);
	uint64_t wait = now - dev->progress_ns;

	if (!is_at_work(dev))
		return atomic_load(&dev->lost) ? 0 : UINT64_MAX;
	if (wait < FP_LOOK_NS)
		return 0;
	wait /= 10;
	return hal_bk_after(now, wait < LONGEST_NS ? wait : LONGEST_NS);
}

/* ---- preemption ---------------------------------------------------------------------- */

/* What runs is asked; what has not begun does not begin. */
static int fold(struct fp_device *dev, struct fp_queue *q)
{
	const struct fp_kernel *k = fp_oldest(q)->launch.kernel;
	int err;

	if (q->phase == FP_READY) {
		q->phase = FP_HELD;
		relist(&dev->busy, q);
	} else if (q->phase == FP_RUNNING && k->desc->stops) {
		err = fp_stop_ask(dev, q);
		if (err)
			return err;
		q->asked = true;
		dev->progress_ns = fp_now(dev);
	}
	q->folds = true;
	return 0;
}

int fp_suspend(void *device, void *queue, uint32_t mode, uint64_t cookie)
{
	struct fp_device *dev = device;
	struct fp_queue *q = queue;
	const bool known =
		mode == HAL_SUSPEND_DRAIN || (mode == HAL_SUSPEND_FOLD && dev->folds);
	int err = stream_suspend_check(&q->base, known, mode);

	if (err)
		return err;
	if (mode == HAL_SUSPEND_FOLD)
		err = fold(dev, q);
	if (err)
		return err;
	q->base.suspended = true;
	q->base.quiet_due = true;
	q->base.quiet_cookie = cookie;
	if (!q->list)
		enlist(&dev->busy, q);
	return 0;
}

int fp_resume(void *device, void *queue)
{
	struct fp_device *dev = device;
	struct fp_queue *q = queue;

	int err = stream_resume(&q->base);

	if (err)
		return err;
	q->folds = false;
	if (q->phase != FP_HELD)
		return 0;
	q->phase = FP_READY;
	enlist(&dev->ready, q);
	dev->progress_ns = fp_now(dev);
	(void)begin_what_can(dev);
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hot path of the software device: a discrete-event model.
 *
 * A partition's units work on one command at a time.  When it ends, the first queue of
 * the ready list is next: in turn, command by command.
 * Partitions know nothing of each other; ends at the same instant are told in the order
 * of the partitions' indices.  A heap holds the partitions that run, so an event costs
 * log(running partitions) and neither idle queues nor idle partitions cost anything.
 */
#define _GNU_SOURCE
#include "internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define ALWAYS_INLINE inline __attribute__((always_inline))

/* ---- heap of running partitions --------------------------------------------------- */

static bool earlier(const struct ref_partition *a, const struct ref_partition *b)
{
	if (a->end_ns != b->end_ns)
		return a->end_ns < b->end_ns;
	return a->desc.index < b->desc.index;
}

static void heap_put(struct ref_device *dev, uint32_t i, struct ref_partition *p)
{
	dev->heap[i] = p;
	p->heap_index = i;
	if (i == 0)
		dev->next_ns = p->end_ns;
}

static void heap_up(struct ref_device *dev, uint32_t i, struct ref_partition *p)
{
	while (i && earlier(p, dev->heap[(i - 1) / 2])) {
		heap_put(dev, i, dev->heap[(i - 1) / 2]);
		i = (i - 1) / 2;
	}
	heap_put(dev, i, p);
}

static void heap_down(struct ref_device *dev, uint32_t i, struct ref_partition *p)
{
	for (;;) {
		uint32_t child = 2 * i + 1;

		if (child >= dev->heap_count)
			break;
		if (child + 1 < dev->heap_count &&
		    earlier(dev->heap[child + 1], dev->heap[child]))
			child++;
		if (!earlier(dev->heap[child], p))
			break;
		heap_put(dev, i, dev->heap[child]);
		i = child;
	}
	heap_put(dev, i, p);
}

static void heap_insert(struct ref_device *dev, struct ref_partition *p)
{
	uint32_t last = dev->heap_count++;

	if (LIKELY(last == 0))
		heap_put(dev, 0, p);
	else
		heap_up(dev, last, p);
}

static void heap_remove(struct ref_device *dev, struct ref_partition *p)
{
	struct ref_partition *last = dev->heap[--dev->heap_count];
	uint32_t i = p->heap_index;

	p->heap_index = UINT32_MAX;
	if (dev->heap_count == 0)
		dev->next_ns = REF_NEVER;
	if (last == p)
		return;
	heap_up(dev, i, last);
	heap_down(dev, last->heap_index, last);
}

/* p's end has changed. */
static void heap_fix(struct ref_device *dev, struct ref_partition *p)
{
	heap_up(dev, p->heap_index, p);
	heap_down(dev, p->heap_index, p);
}

/* ---- commands of a queue --------------------------------------------------------- */

static inline struct ref_command *first(struct ref_queue *q)
{
	return &q->ring[(uint32_t)q->head & q->mask];
}

/* ---- ready queues ----------------------------------------------------------------- */

static void ready_add(struct ref_queue *q)
{
	struct ref_partition *part = q->part;

	q->prev = part->ready_last;
	q->next = NULL;
	if (q->prev)
		q->prev->next = q;
	else
		part->ready_first = q;
	part->ready_last = q;
	q->ready = true;
}

static void ready_remove(struct ref_queue *q)
{
	struct ref_partition *part = q->part;

	if (q->prev)
		q->prev->next = q->next;
	else
		part->ready_first = q->next;
	if (q->next)
		q->next->prev = q->prev;
	else
		part->ready_last = q->prev;
	q->ready = false;
}

/* The first of them. */
static void ready_take(struct ref_partition *part, struct ref_queue *q)
{
	part->ready_first = q->next;
	if (q->next)
		q->next->prev = NULL;
	else
		part->ready_last = NULL;
	q->ready = false;
}

static void notice_add(struct ref_device *dev, struct ref_queue *q)
{
	if (q->notice)
		return;
	dev->news = true;
	q->notice = true;
	q->notice_next = NULL;
	if (dev->notice_last)
		dev->notice_last->notice_next = q;
	else
		dev->notice_first = q;
	dev->notice_last = q;
}

/* ---- running ---------------------------------------------------------------------- */

/* End of a command of which work is left at from.  No work and no span is longer than
 * REF_LONGEST, so the sums here and in run overflow only in the last year of a clock of
 * 584 years; each test of them would be an instruction of every command. */
static uint64_t end_of(const struct ref_partition *part, uint64_t from, uint64_t work,
		       uint32_t units)
{
	uint64_t end = from + work / units + (work % units != 0);

	return end > part->span_end_ns ? end : part->span_end_ns;
}

/* The same, or where it is to stop before that. */
static uint64_t due_of(struct ref_partition *part, uint64_t from, uint64_t work,
		       uint32_t units)
{
	uint64_t end = end_of(part, from, work, units);

	/* It may be the other again when a border moves. */
	part->stops = part->stop_ns && part->stop_ns < end;
	return part->stops ? part->stop_ns : end;
}

/* Work of a command, quickly where it is one group of a kernel that always costs the
 * same; *span is the least it takes. */
static ALWAYS_INLINE uint64_t work_of(const struct ref_partition *part,
				      const struct hal_bk_cmd *cmd, uint64_t *span)
{
	const struct ref_kernel *k;
	const uint32_t *g = cmd->launch.groups;

	if (UNLIKELY(cmd->op != HAL_OP_LAUNCH)) {
		*span = 1;
		return ref_command_work(part, cmd);
	}
	k = cmd->launch.kernel;
	*span = k->span_ns;
	if (LIKELY(!k->cost && (g[0] | g[1] | g[2]) == 1))
		return k->work;
	return ref_command_work(part, cmd);
}

/* The command at q's head has the units from now on; part's place in the heap and
 * telling of it are the caller's. */
static ALWAYS_INLINE void run(struct ref_partition *part, struct ref_queue *q,
			      uint64_t now)
{
	const struct hal_bk_cmd *cmd = first(q)->cmd;
	uint64_t span, work = work_of(part, cmd, &span);

	part->start_ns = now;
	part->since_ns = now;
	part->left_work = work;
	part->span_end_ns = now + span;
	part->end_ns = end_of(part, now, work, part->desc.units);
}

/* The same, where it has been stopped; with all that start does. */
static __attribute__((noinline)) void
start_inside(struct ref_device *dev, struct ref_partition *part, struct ref_queue *q)
{
	uint64_t ready = first(q)->ready_ns;
	uint64_t now = dev->now_ns > ready ? dev->now_ns : ready;

	part->running = q;
	part->start_ns = now;
	part->since_ns = now;
	part->left_work = q->left_work;
	part->span_end_ns = hal_bk_after(now, q->left_span_ns);
	part->end_ns = end_of(part, now, q->left_work, part->desc.units);
	q->inside = false;
	heap_insert(dev, part);
	ref_notify(dev, q, HAL_REF_STARTED, first(q)->cmd->op);
}

/* Gives the units, which are free, to the command at q's head. */
static void start(struct ref_device *dev, struct ref_partition *part, struct ref_queue *q)
{
	uint64_t ready = first(q)->ready_ns;

	part->running = q;
	run(part, q, dev->now_ns > ready ? dev->now_ns : ready);
	heap_insert(dev, part);
	ref_notify(dev, q, HAL_REF_STARTED, first(q)->cmd->op);
}

/* Gives the units to the first ready queue, if they are free. */
static void start_next(struct ref_device *dev, struct ref_partition *part)
{
	struct ref_queue *q = part->ready_first;

	if (part->running || !q)
		return;
	ready_take(part, q);
	if (UNLIKELY(q->inside))
		start_inside(dev, part, q);
	else
		start(dev, part, q);
}

/* A border has moved: what is left of the running command goes on with units. */
void ref_reschedule(struct ref_device *dev, struct ref_partition *part, uint32_t units)
{
	uint64_t now = ref_now(dev), done;

	if (!part->running || part->running->suspended == REF_KILLED)
		return;
	if (now < part->since_ns)
		now = part->since_ns;
	done = (now - part->since_ns) * part->desc.units;
	part->left_work = done < part->left_work ? part->left_work - done : 0;
	part->since_ns = now;
	part->end_ns = due_of(part, now, part->left_work, units);
	heap_fix(dev, part);
}

static inline void pop(struct ref_queue *q)
{
	q->head++;
	q->count--;
}

static inline void event_init(struct hal_bk_event *ev, const struct hal_bk_cmd *cmd,
			      uint64_t start, uint64_t end)
{
	ev->kind = HAL_BK_DONE;
	ev->status = 0;
	ev->cookie = cmd->cookie;
	ev->start_ns = start;
	ev->end_ns = end;
	ev->bytes_read = 0;
	ev->bytes_written = 0;
	ev->fault[0] = 0;
}

/* Who has the units after a command that has ended well, of a queue that goes on. */
static void hand_on(struct ref_device *dev, struct ref_partition *part,
		    struct ref_queue *q)
{
	heap_remove(dev, part);
	part->running = NULL;
	if (q->count)
		ready_add(q);
	if (part->ready_first)
		start_next(dev, part);
}

/* The same after one that has failed, or of a queue that is being suspended. */
static __attribute__((noinline)) void hand_back(struct ref_device *dev,
						struct ref_partition *part,
						struct ref_queue *q, bool failed)
{
	heap_remove(dev, part);
	part->running = NULL;
	if (failed)
		q->cancel = q->count; /* a fault stops its queue: the rest is dropped */
	if (q->cancel || q->suspended == REF_FOLDED ||
	    (q->suspended != REF_RUNS && !q->count))
		notice_add(dev, q);
	else if (q->count)
		ready_add(q);
	if (q->suspended == REF_FOLDED ||
	    (q->suspended != REF_RUNS && q->cancel == q->count))
		q->quiet_due = true;
	start_next(dev, part);
}

/* The running command of part has come to where it was to stop. */
static __attribute__((noinline)) void
stop(struct ref_device *dev, struct ref_partition *part, struct hal_bk_event *ev)
{
	struct ref_queue *q = part->running;
	uint64_t at = part->stop_ns, ran = at > part->since_ns ? at - part->since_ns : 0;
	uint64_t done = ran * part->desc.units;

	q->inside = true;
	q->left_work = done < part->left_work ? part->left_work - done : 0;
	q->left_span_ns = part->span_end_ns > at ? part->span_end_ns - at : 0;
	*ev = (struct hal_bk_event){.kind = HAL_BK_QUIET,
				    .cookie = q->quiet_cookie,
				    .start_ns = part->start_ns,
				    .end_ns = at};
	ref_notify(dev, q, HAL_REF_STOPPED, first(q)->cmd->op);
	ref_notify(dev, q, HAL_REF_QUIET, HAL_OP_NOP);
	heap_remove(dev, part);
	part->stop_ns = 0;
	part->stops = false;
	part->running = NULL;
	start_next(dev, part);
}

/* The running command of part, of a queue that is being suspended, ends or stops now. */
static __attribute__((noinline)) void finish_suspended(struct ref_device *dev,
						       struct ref_partition *part,
						       struct hal_bk_event *ev)
{
	struct ref_queue *q = part->running;
	const struct hal_bk_cmd *cmd = first(q)->cmd;
	uint32_t kind = HAL_REF_KILLED;

	if (part->stops) {
		stop(dev, part, ev);
		return;
	}
	part->stop_ns = 0;
	event_init(ev, cmd, part->start_ns, part->end_ns);
	if (q->suspended == REF_KILLED) {
		ev->status = -ECANCELED;
	} else {
		ev->status = ref_execute(dev, part, cmd, ev);
		kind = ev->status ? HAL_REF_FAULTED : HAL_REF_ENDED;
	}
	ref_notify(dev, q, kind, cmd->op);
	pop(q);
	if (ev->status == 0)
		ev->fault[0] = 0; /* a function may have left something there */
	hand_back(dev, part, q, ev->status != 0);
}

/* The running command of part ends now: its effects, its event, then the next one. */
static __attribute__((noinline)) void
finish(struct ref_device *dev, struct ref_partition *part, struct hal_bk_event *ev)
{
	struct ref_queue *q = part->running;
	const struct hal_bk_cmd *cmd = first(q)->cmd;

	if (UNLIKELY(q->suspended != REF_RUNS)) {
		finish_suspended(dev, part, ev);
		return;
	}
	event_init(ev, cmd, part->start_ns, part->end_ns);
	ev->status = ref_execute(dev, part, cmd, ev);
	ref_notify(dev, q, ev->status ? HAL_REF_FAULTED : HAL_REF_ENDED, cmd->op);
	pop(q);
	if (UNLIKELY(ev->status != 0)) {
		hand_back(dev, part, q, true);
		return;
	}
	ev->fault[0] = 0; /* a function may have left something there */
	hand_on(dev, part, q);
}

/* The same with as little as can be: a launch, of a queue that is not being suspended,
 * while nobody watches or makes something fail.  real: a constant. */
static ALWAYS_INLINE void finish_plain(struct ref_device *dev, struct ref_partition *part,
				       struct hal_bk_event *ev, bool real)
{
	struct ref_queue *q = part->running;
	const struct hal_bk_cmd *cmd = first(q)->cmd;
	const struct ref_kernel *k;
	struct ref_queue *next;
	uint64_t now;
	int err;

	if (UNLIKELY(cmd->op != HAL_OP_LAUNCH || q->suspended != REF_RUNS ||
		     atomic_load_explicit(&dev->watched, memory_order_relaxed))) {
		finish(dev, part, ev);
		return;
	}
	k = cmd->launch.kernel;
	event_init(ev, cmd, part->start_ns, part->end_ns);
	err = k->fn(ref_call(part, cmd, ev->fault));
	pop(q);
	if (UNLIKELY(err != 0)) {
		ev->status = ref_kernel_failed(cmd, err, ev);
		hand_back(dev, part, q, true);
		return;
	}
	ev->fault[0] = 0; /* the function may have left something there */
	next = part->ready_first;
	if (next && LIKELY(!next->inside)) {
		if (q->count)
			ready_add(q);
		ready_take(part, next);
		part->running = next;
	} else if (!next && LIKELY(q->count)) {
		next = q;
	} else {
		hand_on(dev, part, q);
		return;
	}
	now = dev->now_ns;
	if (real && first(next)->ready_ns > now)
		now = first(next)->ready_ns;
	run(part, next, now);
	dev->next_ns = part->end_ns;
	if (UNLIKELY(dev->heap_count > 1))
		heap_fix(dev, part);
}

/* Commands that were dropped, then queues that are quiet. */
static uint32_t take_notices(struct ref_device *dev, struct hal_bk_event *ev,
			     uint32_t max)
{
	uint32_t n = 0;

	while (dev->notice_first) {
		struct ref_queue *q = dev->notice_first;

		for (; n < max && q->cancel; q->cancel--) {
			const struct hal_bk_cmd *cmd = first(q)->cmd;

			event_init(&ev[n], cmd, dev->now_ns, dev->now_ns);
			ev[n++].status = -ECANCELED;
			ref_notify(dev, q, HAL_REF_DROPPED, cmd->op);
			pop(q);
		}
		if (n == max)
			return n;
		if (q->quiet_due) {
			q->quiet_due = false;
			ev[n] = (struct hal_bk_event){.kind = HAL_BK_QUIET,
						      .cookie = q->quiet_cookie};
			ev[n].start_ns = ev[n].end_ns = dev->now_ns;
			n++;
			ref_notify(dev, q, HAL_REF_QUIET, HAL_OP_NOP);
		}
		dev->notice_first = q->notice_next;
		if (!dev->notice_first)
			dev->notice_last = NULL;
		q->notice = false;
		if (q->count && !q->ready && q->suspended != REF_FOLDED) {
			/* Came after the fault. */
			ready_add(q);
			start_next(dev, q->part);
		}
	}
	return n;
}

/* What poll has to tell beside commands that end. */
static __attribute__((noinline)) uint32_t take_news(struct ref_device *dev,
						    struct hal_bk_event *ev, uint32_t max)
{
	uint32_t n = 0;

	if (dev->moved_first)
		n += ref_take_moved(dev, ev + n, max - n);
	if (dev->notice_first)
		n += take_notices(dev, ev + n, max - n);
	dev->news = dev->moved_first || dev->notice_first;
	return n;
}

/* real: a constant. */
static ALWAYS_INLINE int poll_until(struct ref_device *dev, uint64_t limit,
				    struct hal_bk_event *ev, uint32_t max, bool real)
{
	uint32_t n = 0;

	for (; n < max; n++, ev++) {
		uint64_t next;

		if (UNLIKELY(dev->news)) {
			uint32_t taken = take_news(dev, ev, max - n);

			n += taken;
			ev += taken;
			if (n == max)
				break;
		}
		next = dev->next_ns;
		if (next > dev->now_ns) {
			/* Virtual time stops at the first instant that has events. */
			if (!real && n)
				break;
			if (UNLIKELY(next >= limit) &&
			    (next > limit || next == REF_NEVER)) {
				if (limit > dev->now_ns && limit != REF_NEVER)
					dev->now_ns = limit;
				break;
			}
			dev->now_ns = next;
		}
		finish_plain(dev, dev->heap[0], ev, real);
		if (!real && LIKELY(!dev->news && dev->next_ns > dev->now_ns)) {
			n++;
			break;
		}
	}
	return (int)n;
}

static __attribute__((noinline)) int poll_real(struct ref_device *dev,
					       struct hal_bk_event *ev, uint32_t max)
{
	return poll_until(dev, ref_now(dev), ev, max, true);
}

int ref_poll(void *device, uint64_t until_ns, struct hal_bk_event *ev, uint32_t max)
{
	struct ref_device *dev = device;

	if (UNLIKELY(dev->opt.real))
		return poll_real(dev, ev, max);
	return poll_until(dev, until_ns, ev, max, false);
}

/* Real clock: when poll has something to do next. */
uint64_t ref_next(void *device)
{
	const struct ref_device *dev = device;

	if (dev->notice_first || dev->moved_first)
		return 0;
	return dev->heap_count ? dev->heap[0]->end_ns : REF_NEVER;
}

/* ---- operations ------------------------------------------------------------------- */

int ref_queue_create(void *device, void *partition, int32_t priority, void **out)
{
	struct ref_device *dev = device;
	struct ref_partition *part = partition;
	struct ref_queue *q;
	uint32_t size = 1;
	int err;

	if (ref_injected(dev, HAL_REF_OP_QUEUE_CREATE, &err))
		return ref_host->fail(err, "ref: queue_create: injected error");
	while (size < dev->opt.depth)
		size *= 2;
	q = calloc(1, sizeof(*q) + size * sizeof(q->ring[0]));
	if (!q)
		return ref_host->fail(ENOMEM, "ref: no memory for a queue of %u commands",
				      dev->opt.depth);
	q->part = part->host;
	q->home = part;
	(void)priority; /* who is given what in which order is the core's business */
	q->depth = dev->opt.depth;
	q->room = q->depth;
	q->mask = size - 1;
	q->id = ++dev->queue_ids;
	part->queues++;
	*out = q;
	return 0;
}

int ref_queue_destroy(void *device, void *queue)
{
	struct ref_queue *q = queue;

	(void)device;
	if ((q->count && q->suspended != REF_FOLDED) || q->part->running == q ||
	    q->notice)
		return ref_host->fail(EBUSY, "ref: the queue still has %u commands",
				      q->count);
	q->home->queues--;
	free(q);
	return 0;
}

/* The first command of a queue: its partition may be free. */
static __attribute__((noinline)) int wake(struct ref_device *dev, struct ref_queue *q)
{
	if (q->part->running || q->part->ready_first) {
		ready_add(q);
	} else {
		start(dev, q->part, q);
	}
	return 0;
}

static ALWAYS_INLINE int submit(struct ref_device *dev, struct ref_queue *q,
				const struct hal_bk_cmd *cmd, uint64_t now)
{
	struct ref_command *c;

	if (UNLIKELY(q->count >= q->room))
		return -EAGAIN;
	c = &q->ring[((uint32_t)q->head + q->count) & q->mask];
	c->cmd = cmd;
	c->ready_ns = now;
	return LIKELY(q->count++ != 0) ? 0 : wake(dev, q);
}

/* Return the time that the caller of submit has read last. */
static uint64_t last_read(const struct ref_device *dev)
{
	return dev->opt.real ? atomic_load_explicit(&dev->read_ns, memory_order_relaxed)
			     : dev->now_ns;
}

static __attribute__((noinline)) int
submit_slowly(struct ref_device *dev, struct ref_queue *q, const struct hal_bk_cmd *cmd)
{
	int err;

	if (ref_injected(dev, HAL_REF_OP_SUBMIT, &err))
		return ref_host->fail(err, "ref: submit: injected error");
	return submit(dev, q, cmd, last_read(dev));
}

int ref_submit(void *device, void *queue, const struct hal_bk_cmd *cmd)
{
	struct ref_device *dev = device;

	if (UNLIKELY(atomic_load_explicit(&dev->careful, memory_order_relaxed)))
		return submit_slowly(dev, queue, cmd);
	return submit(dev, queue, cmd, dev->now_ns);
}

static bool suspends_by(const struct ref_options *o, uint32_t mode)
{
	switch (mode) {
	case HAL_SUSPEND_DRAIN:
		return o->preempt != REF_PREEMPT_NONE;
	case HAL_SUSPEND_FOLD:
		return o->preempt == REF_PREEMPT_INSIDE && o->fold_ns != 0;
	case HAL_SUSPEND_KILL:
		return o->preempt == REF_PREEMPT_INSIDE;
	default:
		return false;
	}
}

/* What q runs stops at its next safe point; what it has besides is not begun. */
static void fold(struct ref_device *dev, struct ref_queue *q, uint64_t now)
{
	struct ref_partition *part = q->part;
	uint64_t ran = now > part->start_ns ? now - part->start_ns : 0;
	uint64_t grain = dev->opt.fold_ns;

	if (q->ready)
		ready_remove(q);
	if (part->running != q) {
		q->quiet_due = true;
		notice_add(dev, q);
		return;
	}
	part->stop_ns = hal_bk_after(part->start_ns + ran / grain * grain, grain);
	part->end_ns = due_of(part, part->since_ns, part->left_work, part->desc.units);
	heap_fix(dev, part);
}

/* What q runs ends at once; what it has besides is dropped. */
static void kill_all(struct ref_device *dev, struct ref_queue *q, uint64_t now)
{
	struct ref_partition *part = q->part;

	if (q->ready)
		ready_remove(q);
	q->inside = false;
	if (part->running != q) {
		q->cancel = q->count;
		return;
	}
	/* Told by finish().  An end that poll has not seen yet is late. */
	part->end_ns =
		hal_bk_after(now > part->start_ns ? now : part->start_ns, REF_KILL_NS);
	heap_fix(dev, part);
}

int ref_suspend(void *device, void *queue, uint32_t mode, uint64_t cookie)
{
	static const uint8_t states[] = {[HAL_SUSPEND_DRAIN] = REF_DRAINS,
					 [HAL_SUSPEND_FOLD] = REF_FOLDED,
					 [HAL_SUSPEND_KILL] = REF_KILLED};
	struct ref_device *dev = device;
	struct ref_queue *q = queue;
	int err;

	if (ref_injected(dev, HAL_REF_OP_SUSPEND, &err))
		return ref_host->fail(err, "ref: suspend: injected error");
	if (!suspends_by(&dev->opt, mode))
		return ref_host->fail(ENOTSUP, "ref: suspend mode %u is not supported",
				      mode);
	if (q->suspended != REF_RUNS)
		return ref_host->fail(EBUSY, "ref: the queue is suspended already");
	q->suspended = states[mode];
	q->room = 0;
	q->quiet_cookie = cookie;
	if (mode == HAL_SUSPEND_FOLD) {
		fold(dev, q, ref_now(dev));
		return 0;
	}
	if (mode == HAL_SUSPEND_KILL)
		kill_all(dev, q, ref_now(dev));
	if (q->part->running != q && q->cancel == q->count) {
		q->quiet_due = true;
		notice_add(dev, q);
	}
	return 0;
}

int ref_resume(void *device, void *queue)
{
	struct ref_device *dev = device;
	struct ref_queue *q = queue;

	if (q->suspended == REF_RUNS)
		return ref_host->fail(EINVAL, "ref: the queue is not suspended");
	if ((q->count && q->suspended != REF_FOLDED) || q->part->running == q ||
	    q->notice)
		return ref_host->fail(EBUSY, "ref: the queue is still being suspended; "
					     "it can resume when that has completed");
	q->suspended = REF_RUNS;
	q->room = q->depth;
	if (q->count) {
		first(q)->ready_ns = ref_now(dev);
		ready_add(q);
		start_next(dev, q->part);
	}
	return 0;
}

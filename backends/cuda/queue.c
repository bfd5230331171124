/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hot path of a CUDA device.
 *
 * A queue is a stream.  Behind each command the device writes the command's number to
 * pinned memory, which is all that poll reads: no thread, no call of the driver while
 * something runs, and the number still stands after a fault, when events tell nothing
 * any more.  An event behind each command says how long that took: from the event of the
 * one before it, or from an event of its own where the queue was idle.  When it ended is
 * when poll saw it.  At most `inflight` commands are with the device, which bounds how
 * long DRAIN takes: that many times the longest command.
 */
#define _GNU_SOURCE
#include "internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK_NS UINT64_C(10000000) /* how often the driver is asked for a fault */
#define SPIN_NS  UINT64_C(50000)    /* what ends sooner is not slept for */
#define NAP_NS   UINT64_C(1000000)  /* the longest sleep */

/* ---- creation ---------------------------------------------------------------------- */

static int make_counter(struct cu_device *dev, struct cu_counter *c)
{
	int err = cu_pin(dev, sizeof(uint32_t), &c->memory, &c->address);

	if (!err)
		__atomic_store_n((uint32_t *)c->memory, 0, __ATOMIC_RELEASE);
	return err;
}

static int make_event(struct cu_device *dev, void **event)
{
	int err = CU(dev, cuEventCreate, event, CU_EVENT_TIMED);

	if (err)
		*event = NULL;
	return err;
}

static int make_queue(struct cu_device *dev, struct cu_queue *q, int32_t priority)
{
	const int level = priority > 0 ? dev->greatest_priority
			  : priority < 0
				  ? dev->least_priority
				  : (dev->greatest_priority + dev->least_priority) / 2;
	uint32_t i;
	int err = cu_enter(dev);

	if (!err)
		err = make_counter(dev, &q->counter);
	if (err)
		return err;
	q->stream = cu_take_stream(dev);
	q->foreign = q->stream != NULL;
	if (q->foreign)
		err = 0;
	else if (q->part->green)
		err = CU(dev, cuGreenCtxStreamCreate, &q->stream, q->part->green,
			 CU_STREAM_NON_BLOCKING, level);
	else
		err = CU(dev, cuStreamCreateWithPriority, &q->stream,
			 CU_STREAM_NON_BLOCKING, level);
	if (err)
		q->stream = NULL;
	else if (dev->mask && dev->mask->stream_at)
		err = cu_stream_mask_set(dev, q->stream, q->part->mask, true);
	q->masked = !err && q->stream && dev->mask && dev->mask->stream_at;
	if (!err)
		err = make_event(dev, &q->idle);
	for (i = 0; !err && i < q->slot_count; i++) {
		err = make_event(dev, &q->slots[i].own);
		q->slots[i].end = q->slots[i].own;
	}
	for (i = 0; !err && dev->opt.graphs && i < q->slot_count; i++)
		err = make_event(dev, &q->slots[i].start);
	if (!err && dev->opt.block)
		err = cu_stops_make(dev, q);
	if (!err && dev->opt.bounds)
		err = cu_fence_make(dev, q);
	if (!err && dev->opt.graphs)
		err = cu_graphs_make(dev, q);
	return err;
}

static void drop_queue(struct cu_device *dev, struct cu_queue *q, int *err)
{
	uint32_t i;

	cu_stops_drop(dev, q, err);
	cu_graphs_drop(dev, q, err);
	if (q->masked)
		cu_stream_mask_clear(dev, q->stream);
	if (!q->foreign)
		cu_give_back(dev, CU_KIND_STREAM, q->stream, err);
	cu_give_back(dev, CU_KIND_EVENT, q->idle, err);
	for (i = 0; i < q->slot_count; i++) {
		cu_give_back(dev, CU_KIND_EVENT, q->slots[i].own, err);
		cu_give_back(dev, CU_KIND_EVENT, q->slots[i].start, err);
	}
	cu_give_back(dev, CU_KIND_HOST, q->astray, err);
	cu_give_back(dev, CU_KIND_HOST, q->counter.memory, err);
	free(q);
}

int cu_queue_create(void *device, void *partition, int32_t priority, void **out)
{
	struct cu_device *dev = device;
	/* One more than in flight: the end of the last one is the next one's begin. */
	const uint32_t slots = dev->opt.inflight + 1;
	struct cu_queue *q = calloc(1, sizeof(*q) + slots * sizeof(q->slots[0]));
	int err;

	if (!q)
		return cu_host->fail(ENOMEM, "cuda: no memory for a queue of %u commands",
				     dev->opt.inflight);
	q->slot_count = slots;
	q->part = partition;
	err = make_queue(dev, q, priority);
	if (err) {
		drop_queue(dev, q, &err);
		return err;
	}
	q->older = dev->queues;
	if (q->older)
		q->older->newer = q;
	dev->queues = q;
	q->part->queues++;
	*out = q;
	return 0;
}

int cu_queue_destroy(void *device, void *queue)
{
	struct cu_device *dev = device;
	struct cu_queue *q = queue;
	const bool lost = atomic_load(&dev->lost);
	int err = 0;

	if (!lost && (q->count > cu_stops_kept(q) || q->quiet_due))
		return cu_host->fail(EBUSY, "cuda: the queue still has %u commands",
				     q->count);
	if (!lost)
		err = cu_enter(dev);
	dev->inflight -= q->count - cu_stops_kept(q);
	q->part->moving_left -= q->older_count;
	q->part->queues--;
	if (q->newer)
		q->newer->older = q->older;
	else
		dev->queues = q->older;
	if (q->older)
		q->older->newer = q->newer;
	if (q->hangs) {
		q->older = dev->hanging;
		dev->hanging = q;
		return err;
	}
	drop_queue(dev, q, &err);
	return err;
}

/* ---- submission -------------------------------------------------------------------- */

static int refuse(const struct cu_kernel *k, uint32_t i, const char *why)
{
	return cu_host->fail(EINVAL, "cuda: kernel %s: argument %u %s", k->info.name, i,
			     why);
}

/* Its arguments, as the driver takes them; params may be NULL. */
static inline __attribute__((always_inline)) int
read_launch(const struct cu_device *dev, const struct hal_bk_cmd *cmd,
	    const uint32_t g[3], uint64_t *values, void **params)
{
	const struct cu_kernel *k = cmd->launch.kernel;
	uint32_t i;

	for (i = 0; i < 3; i++)
		if (g[i] > (uint32_t)dev->shape.max_grid[i])
			return cu_host->fail(
				EINVAL,
				"cuda: kernel %s: %u x %u x %u groups; the device allows "
				"at most %d x %d x %d",
				k->info.name, g[0], g[1], g[2], dev->shape.max_grid[0],
				dev->shape.max_grid[1], dev->shape.max_grid[2]);
	for (i = 0; i < cmd->launch.arg_count; i++) {
		const struct hal_bk_arg *a = &cmd->launch.args[i];
		const struct cu_mem *mem = a->mem;
		const uint32_t bytes = k->scalar_bytes[i];

		if (__builtin_expect((mem != NULL) == (bytes != 0), 0))
			return refuse(k, i,
				      mem ? "must be a scalar, but is a buffer"
					  : "must be a buffer, but is a scalar");
		if (mem)
			values[i] = a->value + mem->address;
		else if (bytes < 8 && a->value >> (8 * bytes))
			return refuse(k, i,
				      "is a scalar that does not fit into its bytes");
		else
			values[i] = a->value;
		if (params)
			params[i] = &values[i];
	}
	return 0;
}

/* What else a kernel has for parameters that was rewritten, behind its own. */
#define MORE_PARAMS (PTX_RANGE_PARAMS + 1u)

static uint32_t put_range(const struct cu_queue *q, const struct cu_slot *s,
			  uint64_t *values, void **params)
{
	const struct ptx_range range = cu_fence_of(q, s);
	uint32_t i;

	memcpy(values, &range, sizeof(range));
	for (i = 0; i < PTX_RANGE_PARAMS; i++)
		params[i] = &values[i];
	return PTX_RANGE_PARAMS;
}

static inline __attribute__((always_inline)) int
launch_as(struct cu_device *dev, struct cu_queue *q, const struct cu_slot *s,
	  const uint32_t g[3], const uint64_t *control)
{
	const struct hal_bk_cmd *cmd = &s->cmd;
	const struct cu_kernel *k = cmd->launch.kernel;
	uint64_t values[HAL_ARGS_MAX + MORE_PARAMS];
	void *params[HAL_ARGS_MAX + MORE_PARAMS + 1];
	uint32_t count = cmd->launch.arg_count, r;
	int err = read_launch(dev, cmd, g, values, params);

	if (err)
		return err;
	if (__builtin_expect(q->astray != NULL, 0)) {
		err = cu_fence_check(q, cmd);
		if (err)
			return err;
		count += put_range(q, s, values + count, params + count);
	}
	if (control) {
		values[count] = *control;
		params[count] = &values[count];
	}
	if (q->part->masked && dev->unmasked)
		return cu_host->fail(EIO,
				     "cuda:%u: the driver ignored a mask: launches would "
				     "run on all multiprocessors",
				     dev->index);
	if (q->part->masked)
		cu_mask_begin(dev, q->part->mask);
	r = cu.cuLaunchKernel(k->function, g[0], g[1], g[2], k->block[0], k->block[1],
			      k->block[2], k->shared_bytes, q->stream, params, NULL);
	/* It runs all the same, and is the last one. */
	if (q->part->masked && !cu_mask_end() && !r)
		dev->unmasked = true;
	if (__builtin_expect(!r, 1))
		return 0;
	if (cu_sticky(r))
		return cu_failed(dev, r, "cuLaunchKernel");
	cu_refused = (struct cu_refused){"cuLaunchKernel", r};
	return cu_host->fail(cu_errno(r), "cuda: cuLaunchKernel: %s (%u): kernel %s",
			     cu_result_name(r), r, k->info.name);
}

int cu_launch(struct cu_device *dev, struct cu_queue *q, const struct cu_slot *s,
	      const uint32_t groups[3], const uint64_t *control)
{
	return launch_as(dev, q, s, groups, control);
}

static inline __attribute__((always_inline)) int
launch(struct cu_device *dev, struct cu_queue *q, struct cu_slot *s)
{
	const struct cu_kernel *k = s->cmd.launch.kernel;
	uint64_t control;
	int err;

	if (__builtin_expect(!k->stops, 1))
		return launch_as(dev, q, s, s->cmd.launch.groups, NULL);
	err = cu_stops_stage(dev, q, s, &control);
	return err ? err : cu_launch(dev, q, s, s->cmd.launch.groups, &control);
}

static inline __attribute__((always_inline)) int
carry_out(struct cu_device *dev, struct cu_queue *q, struct cu_slot *s)
{
	const struct hal_bk_cmd *cmd = &s->cmd;
	const struct cu_mem *dst, *src;

	switch (cmd->op) {
	case HAL_OP_LAUNCH:
		return launch(dev, q, s);
	case HAL_OP_COPY:
		dst = cmd->copy.dst;
		src = cmd->copy.src;
		if (!cmd->copy.bytes)
			return 0;
		return CU(dev, cuMemcpyAsync, dst->address + cmd->copy.dst_offset,
			  src->address + cmd->copy.src_offset, cmd->copy.bytes,
			  q->stream);
	case HAL_OP_FILL:
		dst = cmd->fill.dst;
		if (!cmd->fill.bytes)
			return 0;
		return CU(dev, cuMemsetD32Async, dst->address + cmd->fill.offset,
			  cmd->fill.pattern, cmd->fill.bytes / 4, q->stream);
	default:
		return 0;
	}
}

/* The device may have something that it will not tell the end of: the queue takes no
 * more, and ends when its stream is empty. */
void cu_break_queue(struct cu_queue *q, const char *call, uint32_t r)
{
	q->broken = true;
	snprintf(q->fault, sizeof(q->fault), "%s: %s (%u)", call, cu_result_name(r), r);
}

/* What is behind a command: how long it took, and that it has ended. */
static inline __attribute__((always_inline)) void
mark(struct cu_device *dev, struct cu_queue *q, struct cu_slot *s)
{
	uint32_t r;

	s->value = ++q->counter.given;
	if (!s->stamping) {
		r = cu.cuEventRecord(s->end, q->stream);
		if (__builtin_expect(r, 0)) {
			(void)cu_failed(dev, r, "cuEventRecord");
			cu_break_queue(q, "cuEventRecord", r);
			return;
		}
	}
	r = cu.cuStreamWriteValue32_v2(q->stream, q->counter.address, s->value, 0);
	if (__builtin_expect(r, 0)) {
		(void)cu_failed(dev, r, "cuStreamWriteValue32_v2");
		cu_break_queue(q, "cuStreamWriteValue32_v2", r);
	}
}

void cu_mark(struct cu_device *dev, struct cu_queue *q, struct cu_slot *s)
{
	mark(dev, q, s);
}

/* The command that s has; what times its begin is to be recorded first if it is fresh. */
static inline __attribute__((always_inline)) int
give(struct cu_device *dev, struct cu_queue *q, struct cu_slot *s, bool fresh)
{
	int err = fresh ? CU(dev, cuEventRecord, s->begin, q->stream) : 0;

	if (!err)
		err = carry_out(dev, q, s);
	if (!err)
		mark(dev, q, s);
	return err;
}

/* The same for number i, of a queue that may have graphs: their events are recorded anew
 * each time, so what is behind one has an event of its own. */
static int give_among(struct cu_device *dev, struct cu_queue *q, uint32_t i)
{
	const struct cu_slot *prev = i ? cu_slot(q, i - 1) : NULL;
	struct cu_slot *s = cu_slot(q, i);

	if (!prev)
		s->begin = q->idle;
	else
		s->begin = prev->graph ? s->start : prev->end;
	return give(dev, q, s, !prev || prev->graph);
}

static inline __attribute__((always_inline)) void taken(struct cu_device *dev,
							struct cu_queue *q)
{
	dev->progress_ns = cu_now(dev);
	if (!q->count++)
		q->turn_ns = dev->progress_ns;
	if (!dev->inflight++)
		dev->checked_ns = dev->progress_ns;
}

/* ---- what is given together -------------------------------------------------------- */

static bool gathers(const struct cu_queue *q, const struct hal_bk_cmd *cmd)
{
	return (cmd->flags & HAL_BK_CMD_RECORDED) && !q->graphs->off &&
	       (cmd->op == HAL_OP_LAUNCH || (cmd->op == HAL_OP_COPY && cmd->copy.bytes) ||
		(cmd->op == HAL_OP_FILL && cmd->fill.bytes));
}

static int read_step(const struct cu_device *dev, const struct hal_bk_cmd *cmd,
		     struct cu_step *step)
{
	const struct cu_mem *dst, *src;

	*step = (struct cu_step){.op = cmd->op, .count = 3};
	switch (cmd->op) {
	case HAL_OP_LAUNCH:
		step->count = cmd->launch.arg_count;
		step->kernel = cmd->launch.kernel;
		memcpy(step->groups, cmd->launch.groups, sizeof(step->groups));
		return read_launch(dev, cmd, cmd->launch.groups, step->values, NULL);
	case HAL_OP_COPY:
		dst = cmd->copy.dst;
		src = cmd->copy.src;
		step->values[0] = dst->address + cmd->copy.dst_offset;
		step->values[1] = src->address + cmd->copy.src_offset;
		step->values[2] = cmd->copy.bytes;
		return 0;
	default:
		dst = cmd->fill.dst;
		step->values[0] = dst->address + cmd->fill.offset;
		step->values[1] = cmd->fill.pattern;
		step->values[2] = cmd->fill.bytes / 4;
		return 0;
	}
}

/* It will not be given: nobody writes that it has ended. */
static void withhold(struct cu_device *dev, struct cu_queue *q, struct cu_slot *s)
{
	s->begin = s->end;
	s->value = ++q->counter.given;
	if (!q->broken && !atomic_load(&dev->lost))
		cu_break_queue(q, cu_refused.call, cu_refused.result);
}

/* What has been gathered goes to the device: as a graph, else one by one. */
static void flush(struct cu_device *dev, struct cu_queue *q)
{
	const uint32_t first = q->count - q->graphs->gathered;
	const bool can = !atomic_load(&dev->lost) && !q->broken && !cu_enter(dev);
	const bool whole = can && cu_graphs_launch(dev, q);
	uint32_t i;

	q->graphs->gathered = 0;
	for (i = first; !whole && i < q->count; i++) {
		struct cu_slot *s = cu_slot(q, i);

		if (!can || q->broken || atomic_load(&dev->lost) || give_among(dev, q, i))
			withhold(dev, q, s);
	}
}

static int gather(struct cu_device *dev, struct cu_queue *q, struct cu_slot *s,
		  const struct hal_bk_cmd *cmd)
{
	int err = read_step(dev, cmd, &q->graphs->steps[q->graphs->gathered]);

	if (err)
		return err;
	s->cmd = *cmd;
	s->stops = s->stamping = false;
	q->graphs->gathered++;
	taken(dev, q);
	if (cmd->flags & HAL_BK_CMD_LAST)
		flush(dev, q);
	return 0;
}

int cu_submit(void *device, void *queue, const struct hal_bk_cmd *cmd)
{
	struct cu_device *dev = device;
	struct cu_queue *q = queue;
	struct cu_slot *s = cu_slot(q, q->count);
	int err = 0;

	if (__builtin_expect(atomic_load_explicit(&dev->lost, memory_order_relaxed), 0))
		return cu_gone(dev);
	if (q->reported)
		return cu_host->fail(EIO, "cuda: %s", q->fault);
	if (q->count == dev->opt.inflight || q->suspended || q->fenced || q->broken)
		return -EAGAIN;
	if (q->stops && cu_stops_wait(q, cmd))
		return -EAGAIN;
	if (__builtin_expect(q->graphs != NULL, 0)) {
		if (gathers(q, cmd))
			return gather(dev, q, s, cmd);
		if (q->graphs->gathered)
			flush(dev, q);
		if (q->broken)
			return -EAGAIN;
	}
	err = cu_enter(dev);
	s->cmd = *cmd;
	s->stops = s->stamping = false;
	s->begin = q->count ? cu_slot(q, q->count - 1)->end : q->idle;
	if (!err && __builtin_expect(q->graphs != NULL, 0))
		err = give_among(dev, q, q->count);
	else if (!err)
		err = give(dev, q, s, !q->count);
	if (err)
		return err;
	q->fenced = cmd->op == HAL_OP_TIMESTAMP;
	taken(dev, q);
	return 0;
}

/* ---- completion -------------------------------------------------------------------- */

bool cu_reached(const struct cu_counter *c, uint32_t value)
{
	const uint32_t at = __atomic_load_n((uint32_t *)c->memory, __ATOMIC_ACQUIRE);

	return (int32_t)(at - value) >= 0;
}

/* Of what can be stopped, once it is to be, that is known of all together. */
static bool has_ended(const struct cu_device *dev, const struct cu_queue *q,
		      const struct cu_slot *s)
{
	if (q->stops && s->stops && q->stops->folding)
		return q->stops->settled && !s->stopped;
	if (s->graph)
		return cu_graph_ended(dev, q, s);
	return cu_reached(&q->counter, s->value);
}

static struct hal_bk_event event_of(uint32_t kind, uint64_t cookie, uint64_t ns)
{
	return (struct hal_bk_event){
		.kind = kind, .cookie = cookie, .start_ns = ns, .end_ns = ns};
}

/* 0 where the driver does not tell, as after a fault. */
static uint64_t between(struct cu_device *dev, void *begin, void *end)
{
	float ms = 0;
	uint32_t r;

	if (begin == end || atomic_load(&dev->lost) || cu_enter(dev))
		return 0;
	r = cu.cuEventElapsedTime(&ms, begin, end);
	if (r) {
		(void)cu_failed(dev, r, "cuEventElapsedTime");
		return 0;
	}
	return ms > 0 ? (uint64_t)((double)ms * 1e6 + 0.5) : 0;
}

/* What was stopped inside, before that. */
static uint64_t ran_for(struct cu_device *dev, struct cu_queue *q)
{
	const uint64_t ns = between(dev, cu_slot(q, 0)->begin, cu_slot(q, 0)->end),
		       now = cu_now(dev);

	return ns < now ? ns : now;
}

static void measure(struct cu_device *dev, struct cu_queue *q, struct hal_bk_event *e)
{
	const uint64_t now = cu_now(dev);
	struct cu_slot *s = cu_slot(q, 0), *last = s;
	uint64_t ns, since;
	uint32_t i;

	/* Several have ended since poll looked last: the last of them just now. */
	for (i = 1; i < q->count && has_ended(dev, q, cu_slot(q, i)); i++)
		last = cu_slot(q, i);
	since = between(dev, s->end, last->end);
	ns = between(dev, s->begin, s->end);
	e->end_ns = now > since ? now - since : 0;
	if (e->end_ns < q->last_end_ns)
		e->end_ns = q->last_end_ns;
	e->start_ns = e->end_ns > ns ? e->end_ns - ns : 0;
	if (e->start_ns < q->last_end_ns)
		e->start_ns = q->last_end_ns;
	q->last_end_ns = e->end_ns;
}

static void take(struct cu_device *dev, struct cu_queue *q)
{
	struct cu_slot *s = cu_slot(q, 0);

	if (s->graph) {
		s->graph->users--;
		s->graph = NULL;
		s->end = s->own;
	}
	/* What is in front of a timestamp ends without letting others in behind it. */
	if (s->cmd.op == HAL_OP_TIMESTAMP)
		q->fenced = false;
	q->head = (q->head + 1) % q->slot_count;
	q->count--;
	dev->inflight--;
	if (q->older_count) {
		q->older_count--;
		q->part->moving_left--;
	}
	dev->progress_ns = dev->checked_ns = q->turn_ns = cu_now(dev);
}

/* The time of a timestamp is known once it is its turn; then the device writes it. */
static void write_stamp(struct cu_device *dev, struct cu_queue *q, struct cu_slot *s)
{
	const struct cu_mem *mem = s->cmd.timestamp.dst;
	const uint64_t now = cu_now(dev), at = mem->address + s->cmd.timestamp.offset;
	uint32_t r;

	s->stamping = true;
	r = cu_enter(dev) ? CUR_INVALID_CONTEXT
			  : cu.cuMemsetD32Async(at, (uint32_t)now, 1, q->stream);
	if (!r)
		r = cu.cuMemsetD32Async(at + 4, (uint32_t)(now >> 32), 1, q->stream);
	if (!r) {
		cu_mark(dev, q, s);
		return;
	}
	s->value = ++q->counter.given; /* which nobody will write */
	(void)cu_failed(dev, r, "cuMemsetD32Async");
	cu_break_queue(q, "cuMemsetD32Async", r);
}

static void finish(struct cu_device *dev, struct cu_queue *q, struct hal_bk_event *e)
{
	const struct hal_bk_cmd *cmd = &cu_slot(q, 0)->cmd;

	*e = event_of(HAL_BK_DONE, cmd->cookie, 0);
	measure(dev, q, e);
	if (cmd->op == HAL_OP_COPY)
		e->bytes_read = e->bytes_written = cmd->copy.bytes;
	else if (cmd->op == HAL_OP_FILL)
		e->bytes_written = cmd->fill.bytes;
	else if (cmd->op == HAL_OP_TIMESTAMP)
		e->bytes_written = sizeof(uint64_t);
	take(dev, q);
}

/* The head is what went wrong, as far as anybody can tell; the rest never ran. */
static void fail_head(struct cu_device *dev, struct cu_queue *q, struct hal_bk_event *e)
{
	const struct hal_bk_cmd *cmd = &cu_slot(q, 0)->cmd;
	const struct cu_kernel *k = cmd->launch.kernel;
	const uint32_t r = atomic_load(&dev->lost);

	*e = event_of(HAL_BK_DONE, cmd->cookie, cu_now(dev));
	e->status = q->reported ? -ECANCELED : -EIO;
	if (!q->reported && q->hangs)
		e->start_ns = q->turn_ns;
	if (!q->reported && !q->broken)
		snprintf(q->fault, sizeof(q->fault), "%s (%u), device lost",
			 cu_result_name(r), r);
	if (!q->reported && cmd->op == HAL_OP_LAUNCH)
		snprintf(e->fault, sizeof(e->fault), "%.63s, kernel %.23s", q->fault,
			 k->info.name);
	else if (!q->reported)
		memcpy(e->fault, q->fault, sizeof(e->fault));
	q->reported = true;
	take(dev, q);
}

/* Asks the driver how the stream is. */
static uint32_t ask(struct cu_device *dev, struct cu_queue *q)
{
	uint32_t r = CUR_NOT_READY;

	if (!cu_enter(dev))
		r = cu.cuStreamQuery(q->stream);
	if (r && r != CUR_NOT_READY)
		(void)cu_failed(dev, r, "cuStreamQuery");
	return r;
}

/* True: nothing of the queue runs any more, and it will not say so by its counter. */
static bool over(struct cu_device *dev, struct cu_queue *q)
{
	uint32_t r;

	if (atomic_load(&dev->lost))
		return true;
	if (!q->broken && !dev->ask_now && cu_now(dev) - dev->checked_ns < CHECK_NS)
		return false;
	dev->ask_now = false;
	dev->checked_ns = cu_now(dev);
	r = ask(dev, q);
	return atomic_load(&dev->lost) || (q->broken && r == CUR_SUCCESS);
}

/* ---- launches without an end ------------------------------------------------------- */

/* When the oldest command of a queue is given up. */
static uint64_t patience(const struct cu_device *dev, const struct cu_queue *q)
{
	const bool launched = q->count > cu_stops_kept(q) && !q->reported &&
			      q->slots[q->head].cmd.op == HAL_OP_LAUNCH;

	return launched && dev->opt.hang_ns ? hal_bk_after(q->turn_ns, dev->opt.hang_ns)
					    : UINT64_MAX;
}

/* Nothing takes a launch back: its queue ends here, and the device may go on with what it
 * was given.  Of launches that can be stopped no block begins any more. */
static void give_up(struct cu_device *dev, struct cu_queue *q)
{
	if (q->stops && !q->stops->folding)
		(void)cu_stops_raise(dev, q);
	if (!q->broken)
		snprintf(q->fault, sizeof(q->fault), "hung for %u ms",
			 (uint32_t)(dev->opt.hang_ns / 1000000));
	q->broken = q->hangs = true;
	dev->hangs++;
	dev->inflight++;
}

/* All that the device was given has ended after all. */
static bool is_empty(const struct cu_device *dev, const struct cu_queue *q)
{
	return atomic_load(&dev->lost) ||
	       (cu_reached(&q->counter, q->counter.given) && cu_graphs_empty(q) &&
		(!q->stops || cu_reached(&q->stops->raised, q->stops->raised.given)));
}

static void come_back(struct cu_device *dev, struct cu_queue *q)
{
	q->hangs = false;
	dev->hangs--;
	dev->inflight--;
}

void cu_free_deferred(struct cu_device *dev)
{
	struct cu_queue **at = &dev->hanging, *q;
	int ignored = 0; /* it is tried again */

	while ((q = *at)) {
		if (!is_empty(dev, q)) {
			at = &q->older;
			continue;
		}
		*at = q->older;
		come_back(dev, q);
		drop_queue(dev, q, &ignored);
	}
}

/* ---- what has ended ---------------------------------------------------------------- */

static uint32_t look(struct cu_device *dev, struct cu_queue *q, struct hal_bk_event *ev,
		     uint32_t max)
{
	uint32_t n = 0;

	if (q->hangs && is_empty(dev, q))
		come_back(dev, q);
	if (q->graphs && q->graphs->gathered)
		flush(dev, q);
	if (q->stops && q->stops->folding)
		(void)cu_stops_settle(dev, q);
	while (n < max && q->count > cu_stops_kept(q)) {
		struct cu_slot *s = cu_slot(q, 0);
		const bool stamp = s->cmd.op == HAL_OP_TIMESTAMP && !s->stamping;
		bool ended = !q->reported && has_ended(dev, q, s);

		if (ended && q->astray && cu_fence_astray(q, s))
			ended = false; /* well */
		if (dev->opt.hang_ns && !ended && cu_now(dev) >= patience(dev, q))
			give_up(dev, q);
		if (ended && !stamp)
			finish(dev, q, &ev[n++]);
		else if (ended && !atomic_load(&dev->lost))
			write_stamp(dev, q, s);
		else if (!q->hangs && !over(dev, q))
			break;
		/* Of a graph that stopped in its middle it is told of each by itself. */
		else if (!s->graph || q->reported || !has_ended(dev, q, s))
			fail_head(dev, q, &ev[n++]);
	}
	if (n < max && q->quiet_due && q->count == cu_stops_kept(q)) {
		ev[n] = event_of(HAL_BK_QUIET, q->quiet_cookie, cu_now(dev));
		if (q->count)
			ev[n].start_ns -= ran_for(dev, q);
		n++;
		q->quiet_due = false;
	}
	return n;
}

static uint32_t look_at_all(struct cu_device *dev, struct hal_bk_event *ev, uint32_t max)
{
	struct cu_queue *q;
	uint32_t n = 0;

	for (q = dev->queues; q && n < max; q = q->older)
		n += look(dev, q, ev + n, max - n);
	n += cu_moved(dev, ev + n, max - n);
	if (dev->hanging && !cu_enter(dev))
		cu_free_deferred(dev);
	cu_give_back_later(dev, dev->inflight);
	return n;
}

/* Virtual clock: to until_ns, or to where the host can see something. */
static bool step(struct cu_device *dev, uint64_t until_ns)
{
	const struct cu_queue *q;
	uint64_t now, soonest = UINT64_MAX;
	uint32_t idle = 0;

	for (q = dev->queues; q && dev->opt.hang_ns; q = q->older)
		if (patience(dev, q) < soonest)
			soonest = patience(dev, q);
	if (soonest < until_ns)
		until_ns = soonest;
	cu.advance(hal_bk_after(until_ns, dev->zero_ns), &now, &idle);
	cu_raise(dev, now);
	dev->ask_now = true;
	return !idle || soonest < UINT64_MAX;
}

static uint32_t run(struct cu_device *dev, uint64_t until_ns, struct hal_bk_event *ev,
		    uint32_t max)
{
	bool more = true;
	uint32_t n = 0;

	while (more && !n && cu_now(dev) < until_ns &&
	       (dev->inflight || until_ns != UINT64_MAX)) {
		more = step(dev, until_ns);
		n = look_at_all(dev, ev, max);
	}
	return n;
}

int cu_poll(void *device, uint64_t until_ns, struct hal_bk_event *ev, uint32_t max)
{
	struct cu_device *dev = device;
	uint32_t n = look_at_all(dev, ev, max);

	if (!n && dev->opt.virtual_clock)
		n = run(dev, until_ns, ev, max);
	return n || !atomic_load(&dev->lost) ? (int)n : cu_gone(dev);
}

/* Real clock: nobody tells; the longer it takes, the longer it may be slept over. */
uint64_t cu_next(void *device)
{
	const struct cu_device *dev = device;
	const uint64_t now = cu_now(device), age = now - dev->progress_ns;

	if (!dev->inflight)
		return dev->moving ? 0 : UINT64_MAX;
	if (age < SPIN_NS)
		return 0;
	if (dev->inflight == dev->hangs)
		return hal_bk_after(now, CHECK_NS);
	return hal_bk_after(now, age / 8 < NAP_NS ? age / 8 : NAP_NS);
}

/* ---- preemption -------------------------------------------------------------------- */

int cu_suspend(void *device, void *queue, uint32_t mode, uint64_t cookie)
{
	struct cu_device *dev = device;
	struct cu_queue *q = queue;

	if (mode != HAL_SUSPEND_DRAIN && (mode != HAL_SUSPEND_FOLD || !q->stops))
		return cu_host->fail(ENOTSUP,
				     "cuda: suspend mode %u is not supported: a launched "
				     "command runs to its end",
				     mode);
	if (q->suspended)
		return cu_host->fail(EBUSY, "cuda: the queue is suspended already");
	q->quiet_cookie = cookie;
	q->suspended = q->quiet_due = true;
	dev->progress_ns = cu_now(dev); /* somebody waits: see cu_next */
	if (mode == HAL_SUSPEND_FOLD)
		(void)cu_stops_raise(dev, q);
	return 0;
}

int cu_resume(void *device, void *queue)
{
	struct cu_queue *q = queue;

	if (!q->suspended || q->quiet_due)
		return cu_host->fail(
			q->suspended ? EBUSY : EINVAL, "cuda: the queue is not %s",
			q->suspended ? "ready to resume: its suspend has not completed"
				     : "suspended");
	q->suspended = false;
	if (q->stops)
		cu_stops_go_on(device, q);
	return 0;
}

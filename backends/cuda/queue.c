/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hot path of a CUDA device.
 *
 * A queue is a stream.  The device writes numbers of commands that have ended to pinned
 * memory, one for several launches (stream/marks.h).  That is all that poll reads while
 * they run: no thread, and no call of the driver.  A number still stands after a fault,
 * when events tell nothing any more.  Two events of the queue measure a launch in 64.  At
 * most `inflight` commands are with the device, which bounds how long DRAIN takes: that
 * many times the longest command.
 */
#define _GNU_SOURCE
#include "internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- creation ---------------------------------------------------------------------- */

int cu_make_word(struct cu_device *dev, struct cu_word *w)
{
	int err = cu_pin(dev, sizeof(uint32_t), &w->memory, &w->address);

	if (!err)
		__atomic_store_n((uint32_t *)w->memory, 0, __ATOMIC_RELEASE);
	return err;
}

static int make_event(struct cu_device *dev, void **event)
{
	int err = CU(dev, cuEventCreate, event, CU_EVENT_TIMED);

	if (err)
		*event = NULL;
	return err;
}

int cu_level(const struct cu_device *dev, int32_t priority)
{
	if (priority)
		return priority > 0 ? dev->greatest_priority : dev->least_priority;
	return (dev->greatest_priority + dev->least_priority) / 2;
}

static int make_queue(struct cu_device *dev, struct cu_queue *q, int32_t priority)
{
	const int level = cu_level(dev, priority);
	struct cu_partition *part = cu_part(q);
	int err = cu_make_word(dev, &q->word);

	if (!err && dev->green)
		err = cu_green_take(dev, part->base.desc.col, part->base.desc.units,
				    &part->green);
	if (err)
		return err;
	q->stream = stream_offered_stream(&dev->offers);
	q->base.foreign = q->stream != NULL;
	if (q->base.foreign)
		err = 0;
	else if (part->green)
		err = CU(dev, cuGreenCtxStreamCreate, &q->stream, part->green,
			 CU_STREAM_NON_BLOCKING, level);
	else
		err = CU(dev, cuStreamCreateWithPriority, &q->stream,
			 CU_STREAM_NON_BLOCKING, level);
	if (err)
		q->stream = NULL;
	/* What comes late to a foreign stream might become part of a graph of the
	 * application's.  Each launch has its own hang bound. */
	q->base.every = q->base.foreign || dev->opt.hang_ns ? 1 : dev->opt.every;
	if (!err)
		err = make_event(dev, &q->begin);
	if (!err)
		err = make_event(dev, &q->end);
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
	cu_stops_drop(dev, q, err);
	cu_graphs_drop(dev, q, err);
	if (q->masked)
		cu_stream_mask_clear(dev, q->stream);
	if (!q->base.foreign)
		cu_give_back(dev, CU_KIND_STREAM, q->stream, err);
	cu_give_back(dev, CU_KIND_EVENT, q->begin, err);
	cu_give_back(dev, CU_KIND_EVENT, q->end, err);
	cu_give_back(dev, CU_KIND_HOST, q->astray, err);
	cu_give_back(dev, CU_KIND_HOST, q->word.memory, err);
	free(q);
}

/* Add a queue to the device's, with the mask that its partition has by now. */
static int enter_queue(struct cu_device *dev, struct cu_queue *q)
{
	int err = 0;

	pthread_mutex_lock(&dev->base.queues_lock);
	if (dev->mask && dev->mask->stream_at) {
		err = cu_stream_mask_set(dev, q->stream, cu_part(q)->mask, true);
		q->masked = !err;
	}
	if (!err)
		stream_enter(&dev->base, &q->base);
	pthread_mutex_unlock(&dev->base.queues_lock);
	return err;
}

int cu_queue_create(void *device, void *partition, int32_t priority, void **out)
{
	struct cu_device *dev = device;
	const uint32_t slots = dev->opt.inflight;
	struct cu_queue *q = calloc(1, sizeof(*q) + slots * sizeof(q->slots[0]));
	uint32_t mode;
	int err;

	if (!q)
		return cu_host->fail(ENOMEM, "cuda: no memory for a queue of %u commands",
				     dev->opt.inflight);
	q->base.slot_count = slots;
	q->base.part = partition;
	err = cu_push(dev, &mode);
	if (err) {
		free(q);
		return err;
	}
	err = make_queue(dev, q, priority);
	if (!err)
		err = enter_queue(dev, q);
	if (err)
		drop_queue(dev, q, &err);
	else if (q->base.foreign)
		stream_took_stream(&dev->offers);
	cu_pop(mode);
	if (!err)
		*out = q;
	return err;
}

/* ---- submission -------------------------------------------------------------------- */

/* The shape of a launch that is not its kernel's own, with what the driver needs for it.
 */
__attribute__((cold, noinline)) int cu_shape(struct cu_device *dev,
					     const struct hal_bk_cmd *cmd,
					     uint32_t block[3], uint32_t *shared_bytes)
{
	const struct hal_bk_shape *shape = hal_bk_shape(cmd);
	struct cu_kernel *k = cmd->launch.kernel;
	uint32_t i;
	int err;

	if (shape->group_size[0])
		memcpy(block, shape->group_size, 3 * sizeof(block[0]));
	for (i = 0; i < 3; i++)
		if (block[i] > (uint32_t)dev->shape.max_block[i])
			return cu_host->fail(
				EINVAL,
				"cuda: kernel %s: blocks of %u x %u x %u threads; the "
				"device allows %d x %d x %d",
				k->info.name, block[0], block[1], block[2],
				dev->shape.max_block[0], dev->shape.max_block[1],
				dev->shape.max_block[2]);
	if (!shape->shared_bytes)
		return 0;
	*shared_bytes = shape->shared_bytes;
	if (shape->shared_bytes <= k->shared_raised)
		return 0;
	err = cu_enter(dev); /* recorded commands are gathered without the driver */
	return err ? err : cu_raise_shared(dev, k, shape->shared_bytes);
}

/* Its arguments, as the driver takes them; params may be NULL. */
static inline __attribute__((always_inline)) int read_launch(const struct hal_bk_cmd *cmd,
							     const uint32_t g[3],
							     uint64_t *values,
							     void **params)
{
	const struct cu_kernel *k = cmd->launch.kernel;
	int err = stream_check_groups(k->info.name, &k->params, g);
	uint32_t i;

	if (err)
		return err;
	for (i = 0; i < cmd->launch.arg_count; i++) {
		err = stream_arg(k->info.name, &k->params, i, &cmd->launch.args[i],
				 &values[i]);
		if (err)
			return err;
		if (params)
			params[i] = &values[i];
	}
	return err;
}

/* What else a kernel has for parameters that was rewritten, behind its own. */
#define MORE_PARAMS (PTX_RANGE_PARAMS + PTX_COLORS_PARAMS + PTX_LAUNCH_PARAMS)

static uint32_t put_range(struct cu_device *dev, const struct cu_queue *q,
			  const struct cu_slot *s, uint64_t *values, void **params)
{
	const struct ptx_range range = cu_fence_of(dev, q, s);
	uint32_t i;

	memcpy(values, &range, sizeof(range));
	for (i = 0; i < PTX_RANGE_PARAMS; i++)
		params[i] = &values[i];
	return PTX_RANGE_PARAMS;
}

/* Behind them, what ENTRY has: of each parameter the driver reads as many bytes as it
 * has.
 */
static void put_stops(const struct ptx_launch *stops, uint64_t *values, void **params)
{
	uint32_t i;

	memcpy(values, stops, sizeof(*stops));
	for (i = 0; i < PTX_LAUNCH_LONG; i++)
		params[i] = &values[i];
	for (; i < PTX_LAUNCH_PARAMS; i++)
		params[i] = (uint32_t *)&values[PTX_LAUNCH_LONG] + i - PTX_LAUNCH_LONG;
}

/* Find the kernel of k that reaches memory on part's channels; stops: the launch is of
 * one that can be stopped. */
static __attribute__((cold, noinline)) int find_colored(struct cu_device *dev,
							const struct cu_partition *part,
							const struct cu_kernel **kernel,
							uint32_t shared_bytes)
{
	const struct cu_kernel *k = *kernel;
	struct cu_program *prog = k->program->colored[cu_color_own(part)];
	struct cu_kernel *c = &prog->kernels[k - k->program->kernels];

	if (!c->colored)
		return cu_host->fail(ENOTSUP,
				     "cuda: kernel %s cannot reach memory of partition "
				     "%u, which is on some channels: %s",
				     k->info.name, part->base.desc.index, c->why_not);
	*kernel = c;
	return cu_raise_shared(dev, c, shared_bytes);
}

static inline __attribute__((always_inline)) int
launch_as(struct cu_device *dev, struct cu_queue *q, const struct cu_slot *s,
	  const uint32_t g[3], const struct ptx_launch *stops)
{
	const struct hal_bk_cmd *cmd = &s->base.cmd;
	const struct cu_kernel *k = cmd->launch.kernel;
	const struct cu_partition *part = cu_part(q);
	uint64_t values[HAL_ARGS_MAX + MORE_PARAMS];
	void *params[HAL_ARGS_MAX + MORE_PARAMS + 1];
	const uint32_t *block = k->block;
	uint32_t count = cmd->launch.arg_count, r;
	uint32_t shared_bytes = k->shared_bytes, shaped[3];
	int err = read_launch(cmd, g, values, params);

	if (err)
		return err;
	if (__builtin_expect((cmd->flags & HAL_BK_CMD_SHAPED) != 0, 0)) {
		memcpy(shaped, k->block, sizeof(shaped));
		block = shaped;
		err = cu_shape(dev, cmd, shaped, &shared_bytes);
		if (err)
			return err;
	}
	if (__builtin_expect(q->astray != NULL, 0)) {
		err = cu_fence_check(q, cmd);
		if (err)
			return err;
		count += put_range(dev, q, s, values + count, params + count);
	}
	if (__builtin_expect(part->color != NULL, 0)) {
		err = find_colored(dev, part, &k, shared_bytes);
		if (err)
			return err;
		count += cu_color_put(part, values + count, params + count);
	}
	if (__builtin_expect(stops != NULL, 0))
		put_stops(stops, &values[count], params + count);
	if (part->masked && dev->unmasked)
		return cu_host->fail(EIO,
				     "cuda:%u: the driver ignored a mask: launches would "
				     "run on all multiprocessors",
				     dev->index);
	if (part->masked)
		cu_mask_begin(dev, part->mask);
	r = cu.cuLaunchKernel(k->function, g[0], g[1], g[2], block[0], block[1], block[2],
			      shared_bytes, q->stream, params, NULL);
	/* It runs all the same, and is the last one. */
	if (part->masked && !cu_mask_end() && !r)
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
	      const uint32_t groups[3], const struct ptx_launch *stops)
{
	return launch_as(dev, q, s, groups, stops);
}

static inline __attribute__((always_inline)) int
launch(struct cu_device *dev, struct cu_queue *q, struct cu_slot *s)
{
	const struct cu_kernel *k = s->base.cmd.launch.kernel;
	struct ptx_launch stops;
	int err;

	if (__builtin_expect(!k->stops, 1))
		return launch_as(dev, q, s, s->base.cmd.launch.groups, NULL);
	err = cu_stops_stage(dev, q, s, &stops);
	return err ? err : cu_launch(dev, q, s, s->base.cmd.launch.groups, &stops);
}

/* The driver may run a kernel for a copy or a fill: that is kept to the partition's
 * multiprocessors, too.  Where a copy engine does it the driver takes no mask. */
static void mask_begin(const struct cu_device *dev, const struct cu_queue *q)
{
	if (cu_part(q)->masked)
		cu_mask_begin(dev, cu_part(q)->mask);
}

static void mask_end(const struct cu_queue *q)
{
	if (cu_part(q)->masked)
		(void)cu_mask_end();
}

int cu_fill(struct cu_device *dev, struct cu_queue *q, uint64_t address, uint32_t pattern,
	    uint64_t words)
{
	int err;

	mask_begin(dev, q);
	if (!cu_part(q)->color ||
	    !cu_color_fill(dev, q->stream, address, pattern, words, &err))
		err = CU(dev, cuMemsetD32Async, address, pattern, words, q->stream);
	mask_end(q);
	return err;
}

int cu_move(struct cu_device *dev, struct cu_queue *q, uint64_t to, uint64_t from,
	    uint64_t bytes)
{
	int err;

	mask_begin(dev, q);
	if (!cu_part(q)->color || !cu_color_copy(dev, q->stream, to, from, bytes, &err))
		err = CU(dev, cuMemcpyAsync, to, from, bytes, q->stream);
	mask_end(q);
	return err;
}

static int copy(struct cu_device *dev, struct cu_queue *q, const struct hal_bk_cmd *cmd)
{
	const struct cu_mem *dst = cmd->copy.dst, *src = cmd->copy.src;

	return cu_move(dev, q, dst->address + cmd->copy.dst_offset,
		       src->address + cmd->copy.src_offset, cmd->copy.bytes);
}

static inline __attribute__((always_inline)) int
carry_out(struct cu_device *dev, struct cu_queue *q, struct cu_slot *s)
{
	const struct hal_bk_cmd *cmd = &s->base.cmd;

	if (__builtin_expect(cmd->op == HAL_OP_LAUNCH, 1))
		return launch(dev, q, s);
	if (cmd->op == HAL_OP_COPY && cmd->copy.bytes)
		return copy(dev, q, cmd);
	if (cmd->op == HAL_OP_FILL && cmd->fill.bytes)
		return cu_fill(dev, q,
			       ((const struct cu_mem *)cmd->fill.dst)->address +
				       cmd->fill.offset,
			       cmd->fill.pattern, cmd->fill.bytes / 4);
	return 0;
}

void cu_break_queue(struct cu_device *dev, struct cu_queue *q, const char *call,
		    uint32_t r)
{
	(void)cu_failed(dev, r, call);
	stream_break(&q->base, "%s: %s (%u)", call, cu_result_name(r), r);
	q->base.unsure = true;
}

/* ---- marks: see stream/marks.h ------------------------------------------------------ */

static inline int vendor_enter(struct stream_device *dev)
{
	return cu_enter((struct cu_device *)dev);
}

static inline void vendor_mark(struct stream_device *dev, struct stream_queue *queue)
{
	struct cu_queue *q = (struct cu_queue *)queue;
	const uint32_t r =
		cu.cuStreamWriteValue32_v2(q->stream, q->word.address, queue->given, 0);

	if (__builtin_expect(r, 0))
		cu_break_queue((struct cu_device *)dev, q, "cuStreamWriteValue32_v2", r);
}

static inline bool vendor_reached(struct stream_queue *q, uint32_t number)
{
	return cu_reached((struct cu_queue *)q, number);
}

static inline bool vendor_is_empty(struct stream_device *dev, struct stream_queue *q)
{
	const uint32_t r = cu.cuStreamQuery(((struct cu_queue *)q)->stream);

	if (r && r != CUR_NOT_READY)
		(void)cu_failed((struct cu_device *)dev, r, "cuStreamQuery");
	return r == CUR_SUCCESS;
}

static inline void vendor_catch_up(struct stream_queue *q)
{
	__atomic_store_n((uint32_t *)((struct cu_queue *)q)->word.memory, q->given,
			 __ATOMIC_RELEASE);
}

uint64_t cu_measured(struct cu_device *dev, const struct cu_queue *q)
{
	float ms = 0;
	uint32_t r;

	if (stream_lost(&dev->base) || cu_enter(dev))
		return 0;
	r = cu.cuEventElapsedTime(&ms, q->begin, q->end);
	if (r) {
		(void)cu_failed(dev, r, "cuEventElapsedTime");
		return 0;
	}
	return ms > 0 ? (uint64_t)((double)ms * 1e6 + 0.5) : 0;
}

static inline uint64_t vendor_timed(struct stream_device *device,
				    struct stream_queue *queue, struct stream_slot *s)
{
	struct cu_device *dev = (struct cu_device *)device;
	const struct cu_queue *q = (const struct cu_queue *)queue;
	const uint64_t ns = cu_measured(dev, q);

	if (ns && s->stops)
		cu_slices_learn(dev, q, (const struct cu_slot *)s, ns);
	return ns;
}

static inline struct stream_kernel *vendor_kernel(const struct stream_slot *s)
{
	struct cu_kernel *k = s->cmd.launch.kernel;

	return s->cmd.op == HAL_OP_LAUNCH ? &k->seen : NULL;
}

#include "backends/stream/marks.h"

void cu_mark(struct cu_device *dev, struct cu_queue *q)
{
	stream_mark(&dev->base, &q->base);
}

void cu_number(struct cu_device *dev, struct cu_queue *q, struct cu_slot *s)
{
	stream_number(&dev->base, &q->base, &s->base, false);
}

bool cu_samples(struct cu_kernel *k)
{
	return stream_samples(&k->seen);
}

void cu_number_apart(struct cu_device *dev, struct cu_queue *q, struct cu_slot *s)
{
	stream_number(&dev->base, &q->base, &s->base, true);
}

/* A command was refused halfway: what the stream has of it ends with a number, too. */
__attribute__((cold)) static void close_gap(struct cu_device *dev, struct cu_queue *q)
{
	q->base.unsure = atomic_load(&dev->base.lost) || cu_enter(dev) ||
			 cu.cuStreamWriteValue32_v2(q->stream, q->word.address,
						    ++q->base.given, 0);
	if (!q->base.unsure)
		q->base.marked = q->base.given;
}

/* The device has the command in s.  Record the end of a measured one. */
static inline __attribute__((always_inline)) void
end(struct cu_device *dev, struct cu_queue *q, struct cu_slot *s, bool apart)
{
	uint32_t r;

	if (__builtin_expect(s->base.timed, 0)) {
		q->base.timing = true;
		r = cu.cuEventRecord(q->end, q->stream);
		if (r) {
			s->base.number = ++q->base.given;
			cu_break_queue(dev, q, "cuEventRecord", r);
			return;
		}
	}
	stream_number(&dev->base, &q->base, &s->base, apart);
}

/* Return whether the command is work for the device. */
static inline bool works(const struct hal_bk_cmd *cmd)
{
	return cmd->op == HAL_OP_LAUNCH || (cmd->op == HAL_OP_COPY && cmd->copy.bytes) ||
	       (cmd->op == HAL_OP_FILL && cmd->fill.bytes);
}

/* Give a command that is marked by itself, and measured unless another one is. */
static __attribute__((noinline)) int give_apart(struct cu_device *dev, struct cu_queue *q,
						struct cu_slot *s)
{
	int err = 0;

	s->base.idle = !works(&s->base.cmd);
	if (!s->base.idle) {
		stream_mark(&dev->base, &q->base);
		s->base.timed = !q->base.timing;
	}
	if (s->base.timed)
		err = CU(dev, cuEventRecord, q->begin, q->stream);
	if (!err)
		err = carry_out(dev, q, s);
	if (!err)
		end(dev, q, s, true);
	return err;
}

/* Give the device the command that s has. */
static inline __attribute__((always_inline)) int
give(struct cu_device *dev, struct cu_queue *q, struct cu_slot *s)
{
	const struct hal_bk_cmd *cmd = &s->base.cmd;
	int err;

	if (__builtin_expect(cmd->op != HAL_OP_LAUNCH, 0) ||
	    __builtin_expect(stream_samples(vendor_kernel(&s->base)), 0) ||
	    __builtin_expect(q->base.lengthy, 0))
		return give_apart(dev, q, s);
	err = launch(dev, q, s);
	if (!err)
		stream_number(&dev->base, &q->base, &s->base, false);
	return err;
}

/* ---- what is given together -------------------------------------------------------- */

static bool gathers(const struct cu_queue *q, const struct hal_bk_cmd *cmd)
{
	return (cmd->flags & HAL_BK_CMD_RECORDED) && !q->graphs->off &&
	       (cmd->op == HAL_OP_LAUNCH || (cmd->op == HAL_OP_COPY && cmd->copy.bytes) ||
		(cmd->op == HAL_OP_FILL && cmd->fill.bytes));
}

static int read_step(struct cu_device *dev, const struct hal_bk_cmd *cmd,
		     struct cu_step *step)
{
	const struct cu_mem *dst, *src;
	int err;

	*step = (struct cu_step){.op = cmd->op, .count = 3};
	switch (cmd->op) {
	case HAL_OP_LAUNCH:
		step->count = cmd->launch.arg_count;
		step->kernel = cmd->launch.kernel;
		memcpy(step->groups, cmd->launch.groups, sizeof(step->groups));
		memcpy(step->block, step->kernel->block, sizeof(step->block));
		step->shared_bytes = step->kernel->shared_bytes;
		err = cmd->flags & HAL_BK_CMD_SHAPED
			      ? cu_shape(dev, cmd, step->block, &step->shared_bytes)
			      : 0;
		if (err)
			return err;
		return read_launch(cmd, cmd->launch.groups, step->values, NULL);
	case HAL_OP_COPY:
		dst = cmd->copy.dst;
		src = cmd->copy.src;
		step->values[0] = dst->address + cmd->copy.dst_offset;
		step->values[1] = src->address + cmd->copy.src_offset;
		step->values[2] = cmd->copy.bytes;
		step->host = (dst->host ? 1u : 0u) | (src->host ? 2u : 0u);
		return 0;
	default:
		dst = cmd->fill.dst;
		step->values[0] = dst->address + cmd->fill.offset;
		step->values[1] = cmd->fill.pattern;
		step->values[2] = cmd->fill.bytes / 4;
		return 0;
	}
}

/* It is not submitted: the device will not write its number. */
void cu_withhold(struct cu_device *dev, struct cu_queue *q, struct cu_slot *s)
{
	/* What is before it is not to fail with it. */
	if (!atomic_load(&dev->base.lost) && !q->base.broken && !cu_enter(dev))
		cu_mark(dev, q);
	s->base.number = ++q->base.given;
	q->base.unsure = true;
	if (!atomic_load(&dev->base.lost))
		stream_break(&q->base, "%s: %s (%u)", cu_refused.call,
			     cu_result_name(cu_refused.result), cu_refused.result);
}

/* Return whether the driver may be given what has been gathered.  If the application has
 * begun to capture the stream meanwhile, break q. */
static bool may_flush(struct cu_device *dev, struct cu_queue *q)
{
	bool captured = false;

	if (atomic_load(&dev->base.lost) || q->base.broken || cu_enter(dev) ||
	    (q->base.foreign && cu_find_capture(dev, q, &captured)))
		return false;
	if (captured)
		stream_break(&q->base, "the application captures the stream");
	return !captured;
}

/* What has been gathered goes to the device: as a graph, else one by one. */
static void flush(struct cu_device *dev, struct cu_queue *q)
{
	const uint32_t first = q->base.count - q->graphs->gathered;
	const bool can = may_flush(dev, q);
	const bool whole = can && cu_graphs_launch(dev, q);
	uint32_t i;

	q->graphs->gathered = 0;
	for (i = first; !whole && i < q->base.count; i++) {
		struct cu_slot *s = cu_slot(q, i);

		if (!can || q->base.broken || atomic_load(&dev->base.lost) ||
		    give(dev, q, s))
			cu_withhold(dev, q, s);
	}
}

static int gather(struct cu_device *dev, struct cu_queue *q, struct cu_slot *s,
		  const struct hal_bk_cmd *cmd)
{
	int err = read_step(dev, cmd, &q->graphs->steps[q->graphs->gathered]);

	if (err)
		return err;
	s->base.cmd = *cmd;
	s->base.stops = s->base.stamping = s->base.timed = s->base.idle = s->base.marked =
		false;
	q->graphs->gathered++;
	stream_push(&dev->base, &q->base, stream_now(&dev->base));
	if (cmd->flags & HAL_BK_CMD_LAST)
		flush(dev, q);
	return 0;
}

/* ---- what can be stopped ----------------------------------------------------------- */

static bool stops(const struct hal_bk_cmd *cmd)
{
	return cmd->op == HAL_OP_LAUNCH &&
	       ((const struct cu_kernel *)cmd->launch.kernel)->stops;
}

/* Take the launch in s, which can be stopped: all of it at once, or in parts. */
static __attribute__((noinline)) int take(struct cu_device *dev, struct cu_queue *q,
					  struct cu_slot *s)
{
	const struct hal_bk_cmd *cmd = &s->base.cmd;
	uint64_t values[HAL_ARGS_MAX];
	uint32_t resident = 0;
	int err = 0;

	if (dev->opt.slice_ns && (cmd->flags & HAL_BK_CMD_BEST_EFFORT))
		err = cu_slices_fit(dev, cmd, &resident);
	s->resident = resident;
	if (!err && !q->stops->waiting &&
	    !(resident &&
	      cu_slices_cut(dev, q, cmd, cu_stops_blocks(dev, cmd), resident)))
		return give(dev, q, s);
	if (!err)
		err = read_launch(cmd, cmd->launch.groups, values, NULL);
	if (!err && q->astray)
		err = cu_fence_check(q, cmd);
	return err ? err : cu_slices_begin(dev, q, s, resident);
}

int cu_submit(void *device, void *queue, const struct hal_bk_cmd *cmd)
{
	struct cu_device *dev = device;
	struct cu_queue *q = queue;
	struct cu_slot *s = cu_slot(q, q->base.count);
	int err;

	if (stream_lost(&dev->base))
		return cu_gone(dev);
	err = stream_takes(&dev->base, &q->base);
	if (__builtin_expect(q->base.foreign, 0) && !err)
		err = cu_check_capture(dev, q);
	if (__builtin_expect(err, 0))
		return err;
	if (q->stops && cu_stops_wait(dev, q, cmd))
		return -EAGAIN;
	if (__builtin_expect(q->graphs != NULL, 0)) {
		if (gathers(q, cmd))
			return gather(dev, q, s, cmd);
		if (q->graphs->gathered)
			flush(dev, q);
		if (q->base.broken)
			return -EAGAIN;
	}
	err = cu_enter(dev);
	s->base.cmd = *cmd;
	s->base.stops = s->base.stamping = s->base.timed = s->base.idle = s->base.marked =
		false;
	if (!err)
		err = __builtin_expect(q->stops != NULL, 0) && stops(cmd)
			      ? take(dev, q, s)
			      : give(dev, q, s);
	if (__builtin_expect(err, 0)) {
		close_gap(dev, q);
		return err;
	}
	q->base.fenced = cmd->op == HAL_OP_TIMESTAMP;
	stream_push(&dev->base, &q->base, stream_now(&dev->base));
	if (__builtin_expect(q->stops != NULL, 0))
		cu_slices_submit(dev, q);
	return 0;
}

/* ---- what the stream layer asks for ------------------------------------------------ */

static inline uint64_t vendor_now(struct stream_device *dev)
{
	return stream_now(dev);
}

static inline bool vendor_ended(struct stream_device *device, struct stream_queue *queue,
				struct stream_slot *slot)
{
	struct cu_device *dev = (struct cu_device *)device;
	struct cu_queue *q = (struct cu_queue *)queue;
	struct cu_slot *s = (struct cu_slot *)slot;

	if (!(__builtin_expect(s->graph != NULL, 0) ? cu_graph_ended(dev, q, s)
						    : cu_reached(q, slot->number)))
		return false;
	/* Well only if its kernel was kept from nothing. */
	return !q->astray || !cu_fence_astray(q, s);
}

static inline void vendor_release(struct stream_queue *q, struct stream_slot *slot)
{
	struct cu_slot *s = (struct cu_slot *)slot;

	if (slot->timed)
		q->timing = false;
	if (__builtin_expect(!s->graph, 1))
		return;
	s->graph->users--;
	s->graph = NULL;
}

static inline int vendor_stamp(struct stream_device *device, struct stream_queue *queue,
			       struct stream_slot *s, uint64_t now_ns)
{
	const struct cu_mem *mem = s->cmd.timestamp.dst;
	const uint64_t at = cu_color_at((struct cu_device *)device,
					mem->address + s->cmd.timestamp.offset);
	struct cu_device *dev = (struct cu_device *)device;
	struct cu_queue *q = (struct cu_queue *)queue;
	bool captured = false;
	int err = cu_enter(dev);

	if (!err && queue->foreign)
		err = cu_find_capture(dev, q, &captured);
	if (captured)
		return -EAGAIN;
	s->stamping = true;
	/* Not a memset: that may be a kernel, which waits for multiprocessors. */
	if (!err)
		err = CU(dev, cuStreamWriteValue32_v2, q->stream, at, (uint32_t)now_ns,
			 0);
	if (!err)
		err = CU(dev, cuStreamWriteValue32_v2, q->stream, at + 4,
			 (uint32_t)(now_ns >> 32), 0);
	if (err) {
		cu_withhold(dev, q, (struct cu_slot *)s);
		return err;
	}
	stream_number(device, queue, s, true);
	return 0;
}

static inline enum stream_answer
vendor_ask(struct stream_device *device, struct stream_queue *q, char *text, size_t size)
{
	struct cu_device *dev = (struct cu_device *)device;
	bool captured = false;
	uint32_t r;

	if (cu_enter(dev) ||
	    (q->foreign && cu_find_capture(dev, (struct cu_queue *)q, &captured)))
		r = cu_refused.result;
	else if (captured)
		return STREAM_RUNS;
	else
		r = cu.cuStreamQuery(((struct cu_queue *)q)->stream);
	if (!r && !cu_stops_idle((struct cu_queue *)q))
		r = cu.cuStreamQuery(dev->flags);
	if (!r)
		return STREAM_EMPTY;
	if (r == CUR_NOT_READY)
		return STREAM_RUNS;
	(void)cu_failed(dev, r, "cuStreamQuery");
	snprintf(text, size, "cuStreamQuery: %s (%u)", cu_result_name(r), r);
	return STREAM_ERROR;
}

static inline bool vendor_over(struct stream_device *dev, struct stream_queue *q)
{
	(void)dev;
	(void)q;
	return false;
}

static inline const char *vendor_result_name(uint32_t result)
{
	return cu_result_name(result);
}

static inline const char *vendor_kernel_name(const struct hal_bk_cmd *cmd)
{
	return ((const struct cu_kernel *)cmd->launch.kernel)->info.name;
}

static inline bool vendor_may_hang(const struct stream_slot *s)
{
	return s->cmd.op == HAL_OP_LAUNCH;
}

/* Nothing takes a launch back; of those that can be stopped no block begins any more. */
static inline bool vendor_give_up(struct stream_device *dev, struct stream_queue *queue)
{
	struct cu_queue *q = (struct cu_queue *)queue;

	if (q->stops && !q->stops->base.folding)
		cu_stops_raise((struct cu_device *)dev, q);
	return false;
}

static inline bool vendor_idle(struct stream_device *dev, struct stream_queue *queue)
{
	const struct cu_queue *q = (const struct cu_queue *)queue;

	(void)dev;
	return cu_reached(q, queue->given) && cu_graphs_empty(q) && cu_stops_idle(q);
}

static inline void vendor_drop(struct stream_device *dev, struct stream_queue *q,
			       int *err)
{
	drop_queue((struct cu_device *)dev, (struct cu_queue *)q, err);
}

/* How long what was stopped ran before that. */
static inline uint64_t vendor_ran(struct stream_device *dev, struct stream_queue *queue)
{
	const uint64_t now = vendor_now(dev), from = stream_began(queue);

	return from < now ? now - from : 0;
}

static inline void vendor_look(struct stream_device *device, struct stream_queue *queue)
{
	struct cu_device *dev = (struct cu_device *)device;
	struct cu_queue *q = (struct cu_queue *)queue;

	if (q->graphs && q->graphs->gathered)
		flush(dev, q);
	stream_tail(device, queue);
	if (q->stops)
		cu_stops_look(dev, q);
}

static inline void vendor_quiet(struct stream_device *dev, struct stream_queue *q)
{
	(void)dev;
	(void)q;
}

static inline bool vendor_killed(struct stream_device *dev, struct stream_queue *q,
				 struct stream_slot *s)
{
	(void)dev;
	(void)q;
	(void)s;
	return false;
}

static inline void vendor_advance(struct stream_device *dev, uint64_t until_ns,
				  uint64_t *now_ns, uint32_t *idle)
{
	(void)dev;
	cu.advance(until_ns, now_ns, idle);
}

#include "backends/stream/poll.h"

static inline void vendor_measure(struct stream_device *dev, struct stream_queue *q,
				  struct hal_bk_event *e)
{
	if (!q->seen)
		stream_see_marked(dev, q);
	stream_set_times(q, e);
}

static inline uint32_t vendor_round(struct stream_device *device, struct hal_bk_event *ev,
				    uint32_t max)
{
	struct cu_device *dev = (struct cu_device *)device;

	(void)ev;
	(void)max;
	if (device->hanging && !cu_enter(dev))
		stream_free_hanging(device, false);
	cu_give_back_later(dev, device->inflight);
	if (__builtin_expect(dev->left != NULL, 0))
		cu_partitions_settle(dev);
	return 0;
}

/* ---- operations -------------------------------------------------------------------- */

/* Wait for what a destroyed queue's stream has.  Do not if the application captures the
 * stream, because that would end the capture: q then counts as one that hangs. */
static void wait_late(struct cu_device *dev, const struct cu_queue *q)
{
	bool captured = false;

	if (q->base.foreign && (cu_find_capture(dev, q, &captured) || captured))
		return;
	(void)cu.cuStreamSynchronize(q->stream);
}

void cu_free_hanging(struct cu_device *dev)
{
	const struct stream_queue *q;

	for (q = dev->base.hanging; q; q = q->older)
		if (q->late)
			wait_late(dev, (const struct cu_queue *)q);
	stream_free_hanging(&dev->base, true);
}

int cu_poll(void *device, uint64_t until_ns, struct hal_bk_event *ev, uint32_t max)
{
	struct cu_device *dev = device;
	const uint32_t n = stream_poll(&dev->base, until_ns, ev, max);

	return n || !stream_lost(&dev->base) ? (int)n : cu_gone(dev);
}

uint64_t cu_next(void *device)
{
	return stream_next(device);
}

int cu_suspend(void *device, void *queue, uint32_t mode, uint64_t cookie)
{
	struct cu_device *dev = device;
	struct cu_queue *q = queue;
	const bool known =
		mode == HAL_SUSPEND_DRAIN || (mode == HAL_SUSPEND_FOLD && q->stops);
	int err = stream_suspend_check(&q->base, known, mode);

	if (err)
		return err;
	stream_suspend(&dev->base, &q->base, cookie);
	if (mode == HAL_SUSPEND_FOLD)
		cu_stops_fold(dev, q);
	/* Whoever waits for the last command is not to wait for a look at the tail. */
	if (!stream_lost(&dev->base) && !q->base.broken && !cu_enter(dev))
		cu_mark(dev, q);
	return 0;
}

int cu_resume(void *device, void *queue)
{
	struct cu_queue *q = queue;
	int err = stream_resume(&q->base);

	if (!err && q->stops)
		cu_stops_go_on(device, q);
	return err;
}

int cu_queue_destroy(void *device, void *queue)
{
	struct cu_device *dev = device;
	struct cu_queue *q = queue;
	int err = stream_leave(&dev->base, &q->base);

	if (err)
		return err;
	if (!stream_lost(&dev->base))
		err = cu_enter(dev);
	/* A broken queue may have ended without a mark. */
	if (q->base.marked != q->base.given)
		q->base.unsure = true;
	stream_destroy(&dev->base, &q->base, &err);
	return err;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hot path of a ROCm device.
 *
 * A queue is a stream; one whose partition is a mask has that mask, or is a queue of
 * HSA's (aql.c).  Of a stream: the device writes numbers of commands that have ended to a
 * word of pinned memory, one for several launches (stream/marks.h), and poll reads that:
 * no thread, no call while they run.  Two events of the queue measure a launch in 64.  At
 * most `inflight` commands of a queue are the device's: that bounds DRAIN. FOLD is
 * stop.c's.
 */
#define _GNU_SOURCE
#include "internal.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- creation ---------------------------------------------------------------------- */

static int timed_event(struct rocm_device *dev, void **event)
{
	int err = HIP(dev, hipEventCreateWithFlags, event, HIP_EVENT_TIMED);

	if (err)
		*event = NULL;
	return err;
}

int rocm_level(const struct rocm_device *dev, int32_t priority)
{
	if (priority)
		return priority < 0 ? dev->least_priority : dev->greatest_priority;
	return (dev->least_priority + dev->greatest_priority) / 2;
}

/* A stream with a mask has a priority only where it is of a context: see green.c. */
static int make_stream(struct rocm_device *dev, struct rocm_queue *q, int32_t priority,
		       const uint32_t *mask)
{
	int err;

	q->stream = stream_offered_stream(&dev->offers);
	q->base.foreign = q->stream != NULL;
	if (q->base.foreign)
		return 0;
	if (dev->units.count)
		return rocm_masked_stream(dev, mask, priority, &q->stream);
	err = HIP(dev, hipStreamCreateWithPriority, &q->stream, HIP_STREAM_NON_BLOCKING,
		  rocm_level(dev, priority));
	if (err)
		q->stream = NULL;
	return err;
}

/* With preempt=block one slot more: see stop.c. */
static int make_aql(struct rocm_device *dev, const struct rocm_queue *q,
		    const uint32_t *mask, struct rocm_aql **aql)
{
	return rocm_aql_open(dev, q->base.slot_count + dev->opt.block, mask, q->priority,
			     aql);
}

static int fill_queue(struct rocm_device *dev, struct rocm_queue *q, int32_t priority,
		      const uint32_t *mask)
{
	void *word = NULL;
	int err = 0;

	q->base.every = 1;
	if (dev->hsa.on) {
		err = make_aql(dev, q, mask, &q->aql);
		return err || !dev->opt.block ? err : rocm_stops_make(dev, q);
	}
	if (!err)
		err = rocm_pin(dev, sizeof(*q->word), &word, &q->word_at);
	q->word = word;
	if (!err)
		err = make_stream(dev, q, priority, mask);
	/* What comes late to a foreign stream might become part of a graph of the
	 * application's.  Each launch has its own hang bound. */
	if (!q->base.foreign && !dev->opt.bound_ns)
		q->base.every = dev->opt.every;
	if (!err)
		err = timed_event(dev, &q->begin);
	if (!err)
		err = timed_event(dev, &q->end);
	if (!err && dev->opt.block)
		err = rocm_stops_make(dev, q);
	if (!err && dev->units.count)
		err = HIP(dev, hipEventCreateWithFlags, &q->fence,
			  HIP_EVENT_DISABLE_TIMING);
	else
		return err;
	if (err)
		q->fence = NULL;
	return err;
}

static void empty_queue(struct rocm_device *dev, struct rocm_queue *q, int *err)
{
	rocm_stops_drop(dev, q, err);
	/* What was refused is in it still. */
	if (q->aql && q->base.broken && !atomic_load(&dev->base.lost))
		(void)rocm_aql_end(dev, q);
	rocm_aql_close(dev, q->aql, err);
	rocm_aql_close(dev, q->next, err);
	rocm_give_back(dev, ROCM_KIND_EVENT, q->end, err);
	rocm_give_back(dev, ROCM_KIND_EVENT, q->fence, err);
	rocm_give_back(dev, ROCM_KIND_EVENT, q->begin, err);
	if (!q->base.foreign)
		rocm_give_back(dev, ROCM_KIND_STREAM, q->stream, err);
	rocm_give_back(dev, ROCM_KIND_BUSY, q->left, err);
	if (q->left) /* of the engine's, as the queue is then */
		dev->left--;
	rocm_give_back(dev, ROCM_KIND_HOST, q->word, err);
	free(q);
}

/* Make a queue for a partition with that mask. */
static int make_queue(struct rocm_device *dev, struct rocm_partition *part,
		      int32_t priority, const uint32_t *mask, struct rocm_queue **out)
{
	const uint32_t slots = dev->opt.inflight;
	struct rocm_queue *q = calloc(1, sizeof(*q) + slots * sizeof(*q->slots));
	int err;

	if (!q)
		return rocm_host->fail(ENOMEM, "rocm: no memory for a queue");
	q->base.part = &part->base;
	q->base.slot_count = slots;
	q->priority = priority;
	err = fill_queue(dev, q, priority, mask);
	if (err) {
		empty_queue(dev, q, &err);
		return err;
	}
	if (q->word)
		__atomic_store_n(q->word, 0, __ATOMIC_RELEASE);
	*out = q;
	return 0;
}

static void read_mask(struct rocm_device *dev, const struct rocm_partition *part,
		      uint32_t mask[ROCM_MASK_WORDS])
{
	pthread_mutex_lock(&dev->base.queues_lock);
	memcpy(mask, part->mask, sizeof(part->mask));
	pthread_mutex_unlock(&dev->base.queues_lock);
}

/* Add q to the device's queues, unless its partition has another mask by now. */
static bool enter_queue(struct rocm_device *dev, struct rocm_queue *q,
			const uint32_t mask[ROCM_MASK_WORDS])
{
	const struct rocm_partition *part = (struct rocm_partition *)q->base.part;
	bool same;

	pthread_mutex_lock(&dev->base.queues_lock);
	same = memcmp(mask, part->mask, sizeof(part->mask)) == 0;
	if (same)
		stream_enter(&dev->base, &q->base);
	pthread_mutex_unlock(&dev->base.queues_lock);
	return same;
}

int rocm_queue_create(void *device, void *partition, int32_t priority, void **out)
{
	struct rocm_device *dev = device;
	uint32_t mask[ROCM_MASK_WORDS];
	struct rocm_queue *q = NULL;
	struct rocm_caller was;
	int err = rocm_push(dev, &was);

	if (err)
		return err;
	do {
		if (q) /* resized meanwhile */
			empty_queue(dev, q, &err);
		q = NULL;
		read_mask(dev, partition, mask);
		if (!err)
			err = make_queue(dev, partition, priority, mask, &q);
	} while (!err && q && !enter_queue(dev, q, mask));
	if (!err && q && q->base.foreign)
		stream_took_stream(&dev->offers);
	rocm_pop(dev, was);
	if (!err)
		*out = q;
	return err;
}

int rocm_queue_follow(struct rocm_device *dev, struct rocm_queue *q, void *stream)
{
	int err;

	if (!q->base.count)
		return 0;
	/* What runs where the partition was is not reported with what does not. */
	if (!q->base.broken)
		rocm_mark(dev, q);
	err = HIP(dev, hipEventRecord, q->fence, q->stream);
	return err ? err : HIP(dev, hipStreamWaitEvent, stream, q->fence, 0);
}

/* ---- submission -------------------------------------------------------------------- */

static inline __attribute__((always_inline)) int
values_of(const struct hal_bk_cmd *cmd, const uint32_t *g, uint64_t value[HAL_ARGS_MAX])
{
	const struct rocm_kernel *k = cmd->launch.kernel;
	int err = stream_check_groups(k->info.name, &k->params, g);
	uint32_t i;

	if (err)
		return err;
	for (i = 0; i < cmd->launch.arg_count; i++) {
		err = stream_arg(k->info.name, &k->params, i, &cmd->launch.args[i],
				 &value[i]);
		if (err)
			return err;
	}
	return 0;
}

int rocm_shape(const struct rocm_device *dev, const struct hal_bk_cmd *cmd,
	       uint32_t block[3], uint32_t *shared_bytes)
{
	const struct rocm_kernel *k = cmd->launch.kernel;
	const struct hal_bk_shape *shape = hal_bk_shape(cmd);
	uint32_t i;

	memcpy(block, shape->group_size[0] ? shape->group_size : k->block,
	       3 * sizeof(block[0]));
	*shared_bytes = shape->shared_bytes ? shape->shared_bytes : k->shared_bytes;
	for (i = 0; i < 3; i++) {
		if (cmd->launch.groups[i] > UINT32_MAX / block[i])
			return rocm_host->fail(
				EINVAL,
				"rocm: kernel %s: %u groups of %u work-items are more "
				"than a launch may have",
				k->info.name, cmd->launch.groups[i], block[i]);
		if (block[i] > (uint32_t)dev->shape.max_block[i])
			return rocm_host->fail(
				EINVAL,
				"rocm: kernel %s: groups of %u x %u x %u work-items; the "
				"device allows %d x %d x %d",
				k->info.name, block[0], block[1], block[2],
				dev->shape.max_block[0], dev->shape.max_block[1],
				dev->shape.max_block[2]);
	}
	return 0;
}

static inline __attribute__((always_inline)) int
launch_blocks(struct rocm_device *dev, struct rocm_queue *q, const struct hal_bk_cmd *cmd,
	      const uint32_t *g, struct hal_preempt_launch *given,
	      const uint32_t block[3], uint32_t shared_bytes)
{
	const struct rocm_kernel *k = cmd->launch.kernel;
	uint64_t value[HAL_ARGS_MAX];
	void *at[HAL_ARGS_MAX + 2];
	uint32_t i, r;
	int err = values_of(cmd, g, value);

	if (err)
		return err;
	for (i = 0; i < cmd->launch.arg_count; i++)
		at[i] = &value[i];
	at[i] = given;
	r = hip.hipModuleLaunchKernel(k->function, g[0], g[1], g[2], block[0], block[1],
				      block[2], shared_bytes, q->stream, at, NULL);
	if (__builtin_expect(!r, 1))
		return 0;
	err = rocm_failed(dev, r, "hipModuleLaunchKernel");
	return rocm_sticky(r) ? err
			      : rocm_host->fail(-err,
						"rocm: hipModuleLaunchKernel: %s (%u): "
						"kernel %s",
						rocm_result_name(r), r, k->info.name);
}

/* Kept apart, so that a launch of its kernel's own shape pays nothing for it. */
static __attribute__((cold, noinline)) int
launch_shaped(struct rocm_device *dev, struct rocm_queue *q, const struct hal_bk_cmd *cmd,
	      const uint32_t *g, struct hal_preempt_launch *given)
{
	uint32_t block[3], shared_bytes;
	int err = rocm_shape(dev, cmd, block, &shared_bytes);

	return err ? err : launch_blocks(dev, q, cmd, g, given, block, shared_bytes);
}

static inline __attribute__((always_inline)) int
launch_as(struct rocm_device *dev, struct rocm_queue *q, const struct hal_bk_cmd *cmd,
	  const uint32_t *g, struct hal_preempt_launch *given)
{
	const struct rocm_kernel *k = cmd->launch.kernel;

	if (__builtin_expect((cmd->flags & HAL_BK_CMD_SHAPED) != 0, 0))
		return launch_shaped(dev, q, cmd, g, given);
	return launch_blocks(dev, q, cmd, g, given, k->block, k->shared_bytes);
}

int rocm_launch(struct rocm_device *dev, struct rocm_queue *q,
		const struct hal_bk_cmd *cmd, const uint32_t groups[3],
		struct hal_preempt_launch *given)
{
	return launch_as(dev, q, cmd, groups, given);
}

static inline __attribute__((always_inline)) int launch(struct rocm_device *dev,
							struct rocm_queue *q,
							struct rocm_slot *s,
							const struct hal_bk_cmd *cmd)
{
	const struct rocm_kernel *k = cmd->launch.kernel;

	if (__builtin_expect(!k->follows, 1))
		return launch_as(dev, q, cmd, cmd->launch.groups, NULL);
	return rocm_stops_launch(dev, q, s, cmd);
}

static inline __attribute__((always_inline)) int give(struct rocm_device *dev,
						      struct rocm_queue *q,
						      struct rocm_slot *s,
						      const struct hal_bk_cmd *cmd)
{
	if (cmd->op == HAL_OP_LAUNCH)
		return launch(dev, q, s, cmd);
	if (cmd->op == HAL_OP_COPY && cmd->copy.bytes) {
		const struct rocm_mem *to = cmd->copy.dst, *from = cmd->copy.src;

		return HIP(dev, hipMemcpyAsync, to->address + cmd->copy.dst_offset,
			   from->address + cmd->copy.src_offset, cmd->copy.bytes,
			   HIP_COPY_DEFAULT, q->stream);
	}
	if (cmd->op == HAL_OP_FILL && cmd->fill.bytes) {
		const struct rocm_mem *to = cmd->fill.dst;

		return HIP(dev, hipMemsetD32Async, to->address + cmd->fill.offset,
			   (int)cmd->fill.pattern, cmd->fill.bytes / 4, q->stream);
	}
	return 0;
}

void rocm_break_queue(struct rocm_device *dev, struct rocm_queue *q, const char *call,
		      uint32_t r)
{
	(void)rocm_failed(dev, r, call);
	stream_break(&q->base, "%s: %s (%u)", call, rocm_result_name(r), r);
	q->base.unsure = true;
}

/* ---- marks: see stream/marks.h ------------------------------------------------------ */

static inline int vendor_enter(struct stream_device *dev)
{
	return rocm_enter((struct rocm_device *)dev);
}

static inline void vendor_mark(struct stream_device *dev, struct stream_queue *queue)
{
	struct rocm_queue *q = (struct rocm_queue *)queue;
	const uint32_t r =
		hip.hipStreamWriteValue32(q->stream, q->word_at, queue->given, 0);

	if (__builtin_expect(r, 0))
		rocm_break_queue((struct rocm_device *)dev, q, "hipStreamWriteValue32",
				 r);
}

static inline bool vendor_reached(struct stream_queue *q, uint32_t number)
{
	return rocm_reached((struct rocm_queue *)q, number);
}

static inline bool vendor_is_empty(struct stream_device *dev, struct stream_queue *q)
{
	const uint32_t r = hip.hipStreamQuery(((struct rocm_queue *)q)->stream);

	if (r && r != HIPR_NotReady)
		(void)rocm_failed((struct rocm_device *)dev, r, "hipStreamQuery");
	return r == HIPR_Success;
}

static inline void vendor_catch_up(struct stream_queue *q)
{
	__atomic_store_n(((struct rocm_queue *)q)->word, q->given, __ATOMIC_RELEASE);
}

/* 0 where HIP does not tell. */
static inline uint64_t vendor_timed(struct stream_device *device,
				    struct stream_queue *queue, struct stream_slot *s)
{
	struct rocm_device *dev = (struct rocm_device *)device;
	const struct rocm_queue *q = (const struct rocm_queue *)queue;
	float ms = 0;
	uint32_t r;

	(void)s;
	if (stream_lost(device) || rocm_enter(dev))
		return 0;
	r = hip.hipEventElapsedTime(&ms, q->begin, q->end);
	if (!r)
		return ms > 0 ? (uint64_t)(1e6 * (double)ms + 0.5) : 0;
	(void)rocm_failed(dev, r, "hipEventElapsedTime");
	return 0;
}

static inline struct stream_kernel *vendor_kernel(const struct stream_slot *s)
{
	struct rocm_kernel *k = s->cmd.launch.kernel;

	return s->cmd.op == HAL_OP_LAUNCH ? &k->seen : NULL;
}

#include "backends/stream/marks.h"

void rocm_mark(struct rocm_device *dev, struct rocm_queue *q)
{
	stream_mark(&dev->base, &q->base);
}

void rocm_number(struct rocm_device *dev, struct rocm_queue *q, struct rocm_slot *s)
{
	stream_number(&dev->base, &q->base, &s->base, false);
}

/* Return whether the command is work for the device. */
static inline bool works(const struct hal_bk_cmd *cmd)
{
	return cmd->op == HAL_OP_LAUNCH || (cmd->op == HAL_OP_COPY && cmd->copy.bytes) ||
	       (cmd->op == HAL_OP_FILL && cmd->fill.bytes);
}

/* Give a command that is marked by itself, and measured unless another one is. */
static __attribute__((noinline)) int give_apart(struct rocm_device *dev,
						struct rocm_queue *q, struct rocm_slot *s)
{
	struct stream_slot *slot = &s->base;
	uint32_t r = 0;
	int err = 0;

	slot->idle = !works(&slot->cmd);
	if (!slot->idle) {
		stream_mark(&dev->base, &q->base);
		slot->timed = !q->base.timing;
	}
	if (slot->timed)
		err = HIP(dev, hipEventRecord, q->begin, q->stream);
	if (!err)
		err = give(dev, q, s, &slot->cmd);
	if (err)
		return err;
	if (slot->timed) {
		q->base.timing = true;
		r = hip.hipEventRecord(q->end, q->stream);
	}
	if (!r) {
		stream_number(&dev->base, &q->base, slot, true);
		return 0;
	}
	slot->number = ++q->base.given;
	rocm_break_queue(dev, q, "hipEventRecord", r);
	return 0;
}

/* Give the stream cmd, which s has, too. */
static inline __attribute__((always_inline)) int give_stream(struct rocm_device *dev,
							     struct rocm_queue *q,
							     struct rocm_slot *s,
							     const struct hal_bk_cmd *cmd)
{
	struct rocm_kernel *k = cmd->launch.kernel;
	int err = rocm_enter(dev);

	if (__builtin_expect(err, 0))
		return err;
	if (__builtin_expect(cmd->op != HAL_OP_LAUNCH, 0) ||
	    __builtin_expect(stream_samples(&k->seen), 0) ||
	    __builtin_expect(q->base.lengthy, 0))
		return give_apart(dev, q, s);
	err = launch(dev, q, s, cmd);
	if (!err)
		stream_number(&dev->base, &q->base, &s->base, false);
	return err;
}

/* A command was refused halfway: what the stream has of it ends with a number, too. */
__attribute__((cold)) static void close_gap(struct rocm_device *dev, struct rocm_queue *q)
{
	q->base.unsure =
		atomic_load(&dev->base.lost) || rocm_enter(dev) ||
		hip.hipStreamWriteValue32(q->stream, q->word_at, ++q->base.given, 0);
	if (!q->base.unsure)
		q->base.marked = q->base.given;
}

int rocm_submit(void *device, void *queue, const struct hal_bk_cmd *cmd)
{
	struct rocm_device *dev = device;
	struct rocm_queue *q = queue;
	const uint32_t slot = stream_at(&q->base, q->base.count);
	struct rocm_slot *s = &q->slots[slot];
	int err;

	if (stream_lost(&dev->base))
		return rocm_gone(dev);
	err = stream_takes(&dev->base, &q->base);
	if (__builtin_expect(q->base.foreign, 0) && !err)
		err = rocm_check_capture(dev, q);
	if (__builtin_expect(err, 0))
		return err;
	if (q->stops && rocm_stops_wait(q, cmd))
		return -EAGAIN;
	s->base.cmd = *cmd;
	s->base.stops = s->base.stamping = s->base.timed = s->base.idle = s->base.marked =
		false;
	err = q->aql ? rocm_aql_give(dev, q, slot, cmd) : give_stream(dev, q, s, cmd);
	if (__builtin_expect(err, 0)) {
		q->base.fenced = false;
		if (!q->aql)
			close_gap(dev, q);
		return err;
	}
	if (cmd->op == HAL_OP_TIMESTAMP)
		q->base.fenced = true;
	stream_push(&dev->base, &q->base, stream_now(&dev->base));
	return 0;
}

/* ---- what the stream layer asks for ------------------------------------------------ */

static inline uint64_t vendor_now(struct stream_device *dev)
{
	return stream_now(dev);
}

static inline bool vendor_ended(struct stream_device *dev, struct stream_queue *q,
				struct stream_slot *s)
{
	(void)dev;
	if (!rocm_slot_ended((struct rocm_queue *)q, (struct rocm_slot *)s))
		return false;
	return s->cmd.op != HAL_OP_COPY || !s->late || !s->stamping ||
	       rocm_aql_copied((struct rocm_queue *)q, (struct rocm_slot *)s);
}

/* Of a queue of HSA's. */
static void times(struct stream_device *dev, struct stream_queue *queue, uint32_t i)
{
	struct rocm_queue *q = (struct rocm_queue *)queue;
	struct rocm_slot *s = rocm_slot(q, i);

	rocm_aql_times((struct rocm_device *)dev, q, s, i ? rocm_slot(q, i - 1) : s);
}

static inline void vendor_release(struct stream_queue *q, struct stream_slot *s)
{
	if (s->timed)
		q->timing = false;
}

static inline int vendor_stamp(struct stream_device *device, struct stream_queue *queue,
			       struct stream_slot *slot, uint64_t now_ns)
{
	const struct rocm_mem *mem = slot->cmd.timestamp.dst;
	struct rocm_device *dev = (struct rocm_device *)device;
	struct rocm_queue *q = (struct rocm_queue *)queue;
	struct rocm_slot *s = (struct rocm_slot *)slot;
	const char *call = "hipSetDevice";
	bool captured = false;
	uint32_t r, i;
	int err;

	if (q->aql) {
		err = slot->cmd.op == HAL_OP_COPY ? rocm_aql_copy(dev, q, s)
						  : rocm_aql_stamp(dev, q, s, now_ns);
		slot->stamping = !err;
		return err;
	}
	r = rocm_enter(dev) ? HIPR_InvalidContext : HIPR_Success;
	if (!r && queue->foreign) {
		call = "hipStreamIsCapturing";
		r = rocm_find_capture(q, &captured);
	}
	if (captured)
		return -EAGAIN;
	slot->stamping = true;
	for (i = 0; i < 2 && !r; i++) {
		call = "hipStreamWriteValue32";
		r = hip.hipStreamWriteValue32(q->stream,
					      mem->address + slot->cmd.timestamp.offset +
						      4 * (size_t)i,
					      (uint32_t)(now_ns >> 32 * i), 0);
	}
	if (!r) {
		stream_number(device, queue, slot, true);
		return 0;
	}
	slot->number = ++queue->given;
	rocm_break_queue(dev, q, call, r);
	return 0;
}

static inline enum stream_answer vendor_ask(struct stream_device *device,
					    struct stream_queue *queue, char *text,
					    size_t size)
{
	struct rocm_device *dev = (struct rocm_device *)device;
	const struct rocm_queue *q = (const struct rocm_queue *)queue;
	const char *call = "hipStreamQuery";
	bool captured = false;
	uint32_t r = HIPR_Success;

	if (rocm_enter(dev)) {
		r = HIPR_InvalidContext;
	} else if (queue->foreign) {
		call = "hipStreamIsCapturing";
		r = rocm_find_capture(q, &captured);
	}
	if (captured)
		return STREAM_RUNS;
	if (!r) {
		call = "hipStreamQuery";
		r = hip.hipStreamQuery(q->aql ? dev->lane.stream : q->stream);
	}
	if (!r)
		return STREAM_EMPTY;
	if (r == HIPR_NotReady)
		return STREAM_RUNS;
	(void)rocm_failed(dev, r, call);
	snprintf(text, size, "%s: %s (%u)", call, rocm_result_name(r), r);
	return STREAM_ERROR;
}

/* A queue of HSA's whose packet was refused runs nothing any more, and says so. */
static inline bool vendor_over(struct stream_device *dev, struct stream_queue *queue)
{
	struct rocm_queue *q = (struct rocm_queue *)queue;
	const uint32_t status = q->aql ? atomic_load(&q->aql->fault) : 0;

	(void)dev;
	if (status)
		stream_break(queue, "%s (0x%x)", rocm_status_name(status), status);
	return q->aql && queue->broken;
}

static inline const char *vendor_result_name(uint32_t result)
{
	return rocm_result_name(result);
}

static inline const char *vendor_kernel_name(const struct hal_bk_cmd *cmd)
{
	return ((const struct rocm_kernel *)cmd->launch.kernel)->info.name;
}

static inline bool vendor_may_hang(const struct stream_slot *s)
{
	return s->cmd.op == HAL_OP_LAUNCH;
}

/* HSA ends what a queue has.  HIP takes nothing back: the device keeps it, and the queue
 * ends without it.  Of launches that can be stopped no block begins any more. */
static inline bool vendor_give_up(struct stream_device *device,
				  struct stream_queue *queue)
{
	struct rocm_device *dev = (struct rocm_device *)device;
	struct rocm_queue *q = (struct rocm_queue *)queue;

	bool ended;

	if (q->stops)
		rocm_stops_raise(dev, q);
	if (!q->aql)
		return false;
	ended = !rocm_aql_end(dev, q);
	if (!rocm_aql_copies(q))
		return ended;
	queue->unsure = false; /* its signal says when the copy ends: vendor_idle */
	return false;
}

static inline bool vendor_idle(struct stream_device *dev, struct stream_queue *queue)
{
	struct rocm_queue *q = (struct rocm_queue *)queue;

	if (!q->aql)
		return rocm_reached(q, queue->given); /* a stream ends by itself */
	/* A copy runs to its end; else HSA has refused to end the queue. */
	return !rocm_aql_copies(q) &&
	       (!queue->hangs || !rocm_aql_end((struct rocm_device *)dev, q));
}

static inline void vendor_drop(struct stream_device *dev, struct stream_queue *q,
			       int *err)
{
	empty_queue((struct rocm_device *)dev, (struct rocm_queue *)q, err);
}

static inline uint64_t vendor_ran(struct stream_device *dev, struct stream_queue *q)
{
	const uint64_t most = vendor_now(dev), from = stream_began(q);

	if (!((struct rocm_queue *)q)->aql)
		return from < most ? most - from : 0;
	times(dev, q, 0);
	return stream_slot(q, 0)->took_ns < most ? stream_slot(q, 0)->took_ns : most;
}

static inline void vendor_look(struct stream_device *dev, struct stream_queue *queue)
{
	struct rocm_queue *q = (struct rocm_queue *)queue;

	if (!q->aql)
		stream_tail(dev, queue);
	if (q->stops)
		rocm_stops_look((struct rocm_device *)dev, q);
}

/* KILL: the queue of HSA's that was made then takes the place of the one that it ended.
 */
static inline void vendor_quiet(struct stream_device *device, struct stream_queue *queue)
{
	struct rocm_queue *q = (struct rocm_queue *)queue;
	struct rocm_aql *gone = q->aql;
	int ignored = 0; /* it is tried again */

	if (!q->next || queue->broken || stream_lost(device))
		return;
	q->aql = q->next;
	q->next = NULL;
	rocm_stops_drop_all(q);
	rocm_aql_close((struct rocm_device *)device, gone, &ignored);
}

static inline bool vendor_killed(struct stream_device *dev, struct stream_queue *queue,
				 struct stream_slot *s)
{
	const struct rocm_queue *q = (const struct rocm_queue *)queue;

	if (__builtin_expect(!q->next, 1) || stream_lost(dev) || vendor_over(dev, queue))
		return false;
	if (q->stops && q->stops->base.folding && s->stops)
		return !q->stops->base.settled || s->stopped;
	/* An engine ends the copy that it has: QUIET waits for that. */
	if (s->cmd.op == HAL_OP_COPY && s->late && s->stamping)
		return false;
	return !vendor_ended(dev, queue, s) || (stream_is_late(s) && !s->stamping);
}

static inline void vendor_advance(struct stream_device *dev, uint64_t until_ns,
				  uint64_t *now_ns, uint32_t *idle)
{
	(void)dev;
	hip.advance(until_ns, now_ns, idle);
}

#include "backends/stream/poll.h"

static inline void vendor_measure(struct stream_device *dev, struct stream_queue *q,
				  struct hal_bk_event *e)
{
	if (((struct rocm_queue *)q)->aql) {
		stream_measure(dev, q, e, times);
		return;
	}
	if (!q->seen)
		stream_see_marked(dev, q);
	stream_set_times(q, e);
}

static inline uint32_t vendor_round(struct stream_device *device, struct hal_bk_event *ev,
				    uint32_t max)
{
	struct rocm_device *dev = (struct rocm_device *)device;

	(void)ev;
	(void)max;
	if (device->hanging && !rocm_enter(dev))
		stream_free_hanging(device, false);
	if (dev->left)
		rocm_drop_left(dev);
	rocm_give_back_later(dev, device->inflight > 0);
	return 0;
}

/* ---- operations -------------------------------------------------------------------- */

/* Wait for what a destroyed queue's stream has.  Do not if the application captures the
 * stream, because that would end the capture: q then counts as one that hangs. */
static void wait_late(const struct rocm_queue *q)
{
	bool captured = false;

	if (q->base.foreign && (rocm_find_capture(q, &captured) || captured))
		return;
	(void)hip.hipStreamSynchronize(q->stream);
}

void rocm_free_hanging(struct rocm_device *dev)
{
	const struct stream_queue *q;

	for (q = dev->base.hanging; q; q = q->older)
		if (q->late && !((const struct rocm_queue *)q)->aql)
			wait_late((const struct rocm_queue *)q);
	stream_free_hanging(&dev->base, true);
}

int rocm_poll(void *device, uint64_t until_ns, struct hal_bk_event *ev, uint32_t max)
{
	struct rocm_device *dev = device;
	const uint32_t n = stream_poll(&dev->base, until_ns, ev, max);

	return n || !stream_lost(&dev->base) ? (int)n : rocm_gone(dev);
}

uint64_t rocm_next(void *device)
{
	return stream_next(device);
}

/* KILL, of a queue of HSA's: end it.  What of it has ended is reported so.  Only then
 * commands go to the queue that takes its place. */
static int kill_queue(struct rocm_device *dev, struct rocm_queue *q)
{
	int ignored = 0, err = rocm_enter(dev);

	if (!err)
		err = make_aql(dev, q, ((struct rocm_partition *)q->base.part)->mask,
			       &q->next);
	if (err)
		return err;
	err = rocm_aql_end(dev, q);
	rocm_catch_up(dev);
	if (err) {
		rocm_aql_close(dev, q->next, &ignored);
		q->next = NULL;
	}
	return err;
}

int rocm_suspend(void *device, void *queue, uint32_t mode, uint64_t cookie)
{
	struct rocm_device *dev = device;
	struct rocm_queue *q = queue;
	const bool known = mode == HAL_SUSPEND_DRAIN ||
			   (mode == HAL_SUSPEND_FOLD && q->stops) ||
			   (mode == HAL_SUSPEND_KILL && q->aql);
	int err = stream_suspend_check(&q->base, known, mode);

	if (!err && mode == HAL_SUSPEND_KILL && !q->base.broken &&
	    !stream_lost(&dev->base))
		err = kill_queue(dev, q);
	if (err)
		return err;
	stream_suspend(&dev->base, &q->base, cookie);
	if (mode == HAL_SUSPEND_FOLD)
		rocm_stops_raise(dev, q);
	/* Whoever waits for the last command is not to wait for a look at the tail. */
	if (!q->aql && !stream_lost(&dev->base) && !q->base.broken && !rocm_enter(dev))
		rocm_mark(dev, q);
	return 0;
}

int rocm_resume(void *device, void *queue)
{
	struct rocm_queue *q = queue;
	int err = stream_resume(&q->base);

	if (!err && q->stops)
		rocm_stops_go_on(device, q);
	return err;
}

int rocm_queue_destroy(void *device, void *queue)
{
	struct rocm_device *dev = device;
	struct rocm_queue *q = queue;
	int err = stream_leave(&dev->base, &q->base);

	if (err)
		return err;
	if (!stream_lost(&dev->base))
		err = rocm_enter(dev);
	/* A broken queue may have ended without a mark. */
	if (!q->aql && q->base.marked != q->base.given)
		q->base.unsure = true;
	stream_destroy(&dev->base, &q->base, &err);
	return err;
}

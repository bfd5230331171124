/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hot path of a Level Zero device.
 *
 * A queue is one immediate command list, or one command queue with a regular list for
 * each command, on one engine.  Level Zero orders commands by events only: each command
 * waits for the event of the one before it, while that is in flight, and signals its own,
 * which poll looks at.  An event is used again only when the command behind its own has
 * ended, too, as that may still wait for it: so there are two slots more than commands in
 * flight. At most `inflight` commands are with the device, which bounds how long DRAIN
 * takes: that many times the longest command.
 */
#define _GNU_SOURCE
#include "internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- creation ---------------------------------------------------------------------- */

/* Not low: a driver may take that to an engine other than the one that was asked for. */
static uint32_t vendor_priority(int32_t priority)
{
	return priority > 0 ? LZ_PRIORITY_HIGH : LZ_PRIORITY_NORMAL;
}

/* The driver keeps the order of the commands, not we by events. */
static bool in_order(const struct lz_device *dev)
{
	return dev->shape.in_order && !dev->opt.regular;
}

static int create_list(struct lz_device *dev, struct lz_queue *q)
{
	void *tile = dev->shape.tiles[q->engine->tile];
	const struct ze_command_queue_desc d = {
		.stype = LZ_STYPE_COMMAND_QUEUE_DESC,
		.ordinal = q->engine->ordinal,
		.index = q->engine->index,
		.mode = LZ_MODE_ASYNCHRONOUS,
		.priority = vendor_priority(q->priority),
		.flags = in_order(dev) ? LZ_QUEUE_IN_ORDER : 0,
	};

	if (dev->opt.regular)
		return LZ_MAKE(dev, LZ_KIND_QUEUE, zeCommandQueueCreate, dev->context,
			       tile, &d, &q->queue);
	return LZ_MAKE(dev, LZ_KIND_LIST, zeCommandListCreateImmediate, dev->context,
		       tile, &d, &q->list);
}

/* Make the list for copies of host memory, if the tile has engines that only copy. Queues
 * get these in turn, so that two can copy at once, one each way. */
static int create_copies(struct lz_device *dev, struct lz_queue *q, uint32_t number)
{
	const struct lz_engine *e = &dev->shape.copy[q->engine->tile];
	const uint32_t count = dev->shape.copies[e->tile];
	const struct ze_command_queue_desc d = {
		.stype = LZ_STYPE_COMMAND_QUEUE_DESC,
		.ordinal = e->ordinal,
		.index = count ? number % count : 0,
		.mode = LZ_MODE_ASYNCHRONOUS,
		.priority = vendor_priority(q->priority),
	};

	if (dev->opt.regular || !count || e->ordinal == q->engine->ordinal)
		return 0;
	return LZ_MAKE(dev, LZ_KIND_LIST, zeCommandListCreateImmediate, dev->context,
		       dev->shape.tiles[e->tile], &d, &q->copies);
}

static int create_slot(struct lz_device *dev, const struct lz_queue *q, uint32_t i,
		       struct lz_slot *s)
{
	const struct ze_event_desc ed = {
		.stype = LZ_STYPE_EVENT_DESC,
		.index = i,
		.signal = LZ_SCOPE_HOST,
		.wait = LZ_SCOPE_DEVICE,
	};
	const struct ze_command_list_desc ld = {
		.stype = LZ_STYPE_COMMAND_LIST_DESC,
		.ordinal = q->engine->ordinal,
	};
	const struct ze_fence_desc fd = {.stype = LZ_STYPE_FENCE_DESC};
	int err;

	err = LZ_MAKE(dev, LZ_KIND_EVENT, zeEventCreate, q->pool, &ed, &s->event);
	if (!err && dev->opt.regular)
		err = LZ_MAKE(dev, LZ_KIND_LIST, zeCommandListCreate, dev->context,
			      dev->shape.tiles[q->engine->tile], &ld, &s->list);
	if (!err && dev->opt.regular)
		err = LZ_MAKE(dev, LZ_KIND_FENCE, zeFenceCreate, q->queue, &fd,
			      &s->fence);
	return err;
}

static int create_slots(struct lz_device *dev, struct lz_queue *q)
{
	void *tile = dev->shape.tiles[q->engine->tile];
	const struct ze_event_pool_desc pd = {
		.stype = LZ_STYPE_EVENT_POOL_DESC,
		.flags = LZ_POOL_HOST_VISIBLE | LZ_POOL_KERNEL_TIMESTAMP,
		.count = q->base.slot_count,
	};
	uint32_t i;
	int err;

	err = LZ_MAKE(dev, LZ_KIND_POOL, zeEventPoolCreate, dev->context, &pd, 1, &tile,
		      &q->pool);
	for (i = 0; !err && i < q->base.slot_count; i++)
		err = create_slot(dev, q, i, &q->slots[i]);
	return err;
}

/* First what executes, then what that refers to. */
static void drop_queue(struct lz_device *dev, struct lz_queue *q, int *err)
{
	const struct lz_group g = q->group;
	uint32_t i;

	for (i = 0; i < q->base.slot_count; i++)
		lz_drop(dev, LZ_KIND_FENCE, q->slots[i].fence, g, err);
	lz_drop(dev, LZ_KIND_QUEUE, q->queue, g, err);
	lz_drop(dev, LZ_KIND_LIST, q->list, g, err);
	lz_drop(dev, LZ_KIND_LIST, q->copies, g, err);
	for (i = 0; i < q->base.slot_count; i++)
		lz_drop(dev, LZ_KIND_LIST, q->slots[i].list, g, err);
	for (i = 0; i < q->base.slot_count; i++)
		lz_drop(dev, LZ_KIND_EVENT, q->slots[i].event, g, err);
	lz_drop(dev, LZ_KIND_POOL, q->pool, g, err);
	free(q);
}

int lz_queue_create(void *device, void *partition, int32_t priority, void **out)
{
	struct lz_device *dev = device;
	struct lz_partition *part = partition;
	uint32_t slots = dev->opt.inflight + 2, number;
	struct lz_queue *q;
	int err;

	q = calloc(1, sizeof(*q) + slots * sizeof(q->slots[0]));
	if (!q)
		return lz_host->fail(ENOMEM,
				     "levelzero: no memory for a queue of %u commands",
				     dev->opt.inflight);
	q->base.part = &part->base;
	q->group = (struct lz_group){.id = lz_id(dev), .part = part->id};
	q->priority = priority;
	q->base.slot_count = slots;
	number = atomic_fetch_add(&part->next, 1);
	q->engine = &dev->shape.engines[part->first + number % part->count];
	q->chained = !in_order(dev);
	err = create_list(dev, q);
	if (!err)
		err = create_copies(dev, q, number);
	if (!err)
		err = create_slots(dev, q);
	if (err) {
		drop_queue(dev, q, &err);
		return err;
	}
	pthread_mutex_lock(&dev->base.queues_lock);
	stream_enter(&dev->base, &q->base);
	pthread_mutex_unlock(&dev->base.queues_lock);
	*out = q;
	return 0;
}

/* ---- submission -------------------------------------------------------------------- */

static int set_arguments(const struct lz_kernel *k, void *handle,
			 const struct hal_bk_cmd *cmd)
{
	uint32_t i;

	for (i = 0; i < cmd->launch.arg_count; i++) {
		const struct hal_bk_arg *a = &cmd->launch.args[i];
		const struct lz_mem *mem = a->mem;
		const uint32_t bytes = k->params.scalar_bytes[i];
		uint64_t value = a->value;
		uint32_t r;

		if ((mem && bytes) || value > k->params.value_max[i]) {
			stream_refuse_arg(k->info.name, &k->params, i, a);
			return -EINVAL;
		}
		if (mem)
			value += (uintptr_t)mem->p;
		r = lz.zeKernelSetArgumentValue(handle, i, bytes ? bytes : 8, &value);
		if (__builtin_expect(r != LZ_SUCCESS, 0))
			return lz_host->fail(
				lz_errno(r),
				"levelzero: zeKernelSetArgumentValue: %s (0x%x): "
				"kernel %s, argument %u of %u bytes",
				lz_result_name(r), r, k->info.name, i, bytes ? bytes : 8);
	}
	return 0;
}

static int set_group_size(const struct lz_kernel *k, void *handle, const uint32_t size[3])
{
	const uint32_t r = lz.zeKernelSetGroupSize(handle, size[0], size[1], size[2]);

	if (!r)
		return 0;
	return lz_host->fail(lz_errno(r),
			     "levelzero: zeKernelSetGroupSize: %s (0x%x): kernel %s, "
			     "groups of %u x %u x %u",
			     lz_result_name(r), r, k->info.name, size[0], size[1],
			     size[2]);
}

/* A launch of groups that are not the kernel's own: the driver reads their size when it
 * appends, so the kernel has its own again afterwards. */
static __attribute__((cold, noinline)) int
append_shaped(const struct lz_kernel *k, void *list, void *handle,
	      const struct hal_bk_cmd *cmd, const struct ze_group_count *groups,
	      void *signal, uint32_t count, void **waits)
{
	const uint32_t *size = hal_bk_shape(cmd)->group_size;
	int err = 0, undone;
	uint32_t i;

	for (i = 0; i < 3; i++)
		if (size[i] > k->group_most[i])
			return lz_host->fail(
				EINVAL,
				"levelzero: kernel %s: groups of %u x %u x %u; the "
				"device allows %u x %u x %u",
				k->info.name, size[0], size[1], size[2], k->group_most[0],
				k->group_most[1], k->group_most[2]);
	err = set_group_size(k, handle, size);
	if (err)
		return err;
	err = LZ(zeCommandListAppendLaunchKernel, list, handle, groups, signal, count,
		 waits);
	undone = set_group_size(k, handle, k->group_size);
	return err ? err : undone;
}

static int append_launch(const struct lz_queue *q, void *list,
			 const struct hal_bk_cmd *cmd, void *signal, uint32_t count,
			 void **waits)
{
	const struct lz_kernel *k = cmd->launch.kernel;
	const uint32_t *g = cmd->launch.groups;
	const struct ze_group_count groups = {g[0] ? g[0] : 1, g[1] ? g[1] : 1,
					      g[2] ? g[2] : 1};
	void *handle = k->handles[q->engine->tile];
	int err = stream_check_groups(k->info.name, &k->params, g);

	if (!err)
		err = set_arguments(k, handle, cmd);
	if (err)
		return err;
	if (cmd->flags & HAL_BK_CMD_SHAPED)
		return append_shaped(k, list, handle, cmd, &groups, signal, count, waits);
	return LZ(zeCommandListAppendLaunchKernel, list, handle, &groups, signal, count,
		  waits);
}

/* Return the slot before the next free one. */
static struct lz_slot *last_slot(struct lz_queue *q)
{
	const uint32_t at = stream_at(&q->base, q->base.count);

	return &q->slots[at ? at - 1 : q->base.slot_count - 1];
}

/* Have the copy engine copy from or to host memory, beside kernels of other queues.  The
 * copy waits for the event of the command before it, and the next command for the
 * copy's. */
static int append_host_copy(struct lz_queue *q, const struct hal_bk_cmd *cmd,
			    void *signal)
{
	const struct lz_mem *dst = cmd->copy.dst, *src = cmd->copy.src;
	void *before = q->base.count ? last_slot(q)->event : NULL;

	q->chained = true;
	return LZ(zeCommandListAppendMemoryCopy, q->copies,
		  (char *)dst->p + cmd->copy.dst_offset,
		  (char *)src->p + cmd->copy.src_offset, cmd->copy.bytes, signal,
		  before != NULL, &before);
}

static int append(struct lz_queue *q, void *list, const struct hal_bk_cmd *cmd,
		  void *signal, uint32_t count, void **waits)
{
	const struct lz_mem *dst, *src;

	switch (cmd->op) {
	case HAL_OP_LAUNCH:
		return append_launch(q, list, cmd, signal, count, waits);
	case HAL_OP_COPY:
		if (!cmd->copy.bytes)
			break;
		dst = cmd->copy.dst;
		src = cmd->copy.src;
		if (q->copies && (dst->copied || src->copied))
			return append_host_copy(q, cmd, signal);
		return LZ(zeCommandListAppendMemoryCopy, list,
			  (char *)dst->p + cmd->copy.dst_offset,
			  (char *)src->p + cmd->copy.src_offset, cmd->copy.bytes, signal,
			  count, waits);
	case HAL_OP_FILL:
		if (!cmd->fill.bytes)
			break;
		dst = cmd->fill.dst;
		return LZ(zeCommandListAppendMemoryFill, list,
			  (char *)dst->p + cmd->fill.offset, &cmd->fill.pattern,
			  sizeof(cmd->fill.pattern), cmd->fill.bytes, signal, count,
			  waits);
	default:
		break;
	}
	return LZ(zeCommandListAppendBarrier, list, signal, count, waits);
}

static uint32_t reset_list(struct lz_slot *s, const char **call)
{
	uint32_t r = lz.zeCommandListReset(s->list);

	*call = r ? "zeCommandListReset" : "zeFenceReset";
	return r ? r : lz.zeFenceReset(s->fence);
}

/* Makes a slot ready for a command: its event unsignalled, its list empty and open. */
static inline uint32_t reset(struct lz_slot *s, const char **call)
{
	uint32_t r = lz.zeEventHostReset(s->event);

	if (__builtin_expect(!r && s->list, 0))
		return reset_list(s, call);
	*call = "zeEventHostReset";
	return r;
}

static int recycle(struct lz_slot *s)
{
	const char *call;
	uint32_t r;

	if (!s->used)
		return 0;
	r = reset(s, &call);
	if (__builtin_expect(r != LZ_SUCCESS, 0))
		return lz_failed(r, call);
	s->used = false;
	return 0;
}

/* Regular lists are given to the queue when they are complete. */
static int hand_over(const struct lz_queue *q, struct lz_slot *s)
{
	int err;

	if (!s->list)
		return 0;
	err = LZ(zeCommandListClose, s->list);
	if (!err)
		err = LZ(zeCommandQueueExecuteCommandLists, q->queue, 1, &s->list,
			 s->fence);
	return err;
}

int lz_submit(void *device, void *queue, const struct hal_bk_cmd *cmd)
{
	struct lz_device *dev = device;
	struct lz_queue *q = queue;
	struct lz_slot *s = &q->slots[stream_at(&q->base, q->base.count)];
	void *before = NULL;
	int err = stream_takes(&dev->base, &q->base);

	if (__builtin_expect(err, 0))
		return err;
	err = recycle(s);
	if (err)
		return err;
	if (q->base.count && q->chained)
		before = last_slot(q)->event;
	/* Whatever fails from here on may have left something in the list. */
	s->used = true;
	err = append(q, s->list ? s->list : q->list, cmd, s->event, before != NULL,
		     &before);
	if (!err)
		err = hand_over(q, s);
	if (err)
		return err;
	s->base.cmd = *cmd;
	s->base.stamping = s->timed = false;
	q->base.fenced = cmd->op == HAL_OP_TIMESTAMP;
	stream_push(&dev->base, &q->base, 0); /* poll reads the clock: vendor_look */
	return 0;
}

/* ---- what the stream layer asks for ------------------------------------------------ */

static inline uint64_t vendor_now(struct stream_device *dev)
{
	return lz_now(dev);
}

/* Return the name of a result without the words that all have. */
static const char *short_name(uint32_t result)
{
	const char *name = lz_result_name(result), *all = "ZE_RESULT_";

	return strncmp(name, all, strlen(all)) == 0 ? name + strlen(all) : name;
}

/* The device may continue with what it has of q: nothing that this may use is given back
 * before the last command has ended. */
static inline bool vendor_give_up(struct stream_device *device,
				  struct stream_queue *queue)
{
	struct lz_device *dev = (struct lz_device *)device;
	struct lz_queue *q = (struct lz_queue *)queue;
	const struct lz_slot *s = last_slot(q);

	if (s->fence)
		lz_keep(dev, LZ_KIND_WAIT_FENCE, s->fence, q->group);
	else
		lz_keep(dev, LZ_KIND_WAIT, s->event, q->group);
	return true;
}

static void die_of(struct lz_device *dev, struct lz_queue *q, const char *call,
		   uint32_t result)
{
	if (q->base.broken)
		return;
	(void)vendor_give_up(&dev->base, &q->base);
	stream_break(&q->base, "%s: %s (0x%x)", call, short_name(result), result);
}

static void stamp_times(struct lz_device *dev, struct lz_slot *s,
			const struct ze_kernel_timestamp *t)
{
	const uint64_t now = lz_now(dev);
	uint64_t start = lz_ticks_to_ns(dev, t->global_start);
	uint64_t end = lz_ticks_to_ns(dev, t->global_end);
	uint64_t ns = end > start ? end - start : 0;

	/* It was within the tick, so not before what came before it; two clocks are never
	 * quite the same: nothing ends in the future. */
	end += UINT64_C(999999999) / dev->shape.props.timer_resolution;
	s->end_ns = end < now ? end : now;
	s->start_ns = s->end_ns > ns ? s->end_ns - ns : 0;
	s->timed = true;
	if (ns > dev->longest_ns)
		dev->longest_ns = ns;
}

static uint32_t ask_status(const struct lz_slot *s, const char **call)
{
	uint32_t r;

	*call = "zeEventQueryStatus";
	r = lz.zeEventQueryStatus(s->event);
	if (r || !s->fence)
		return r;
	*call = "zeFenceQueryStatus";
	return lz.zeFenceQueryStatus(s->fence);
}

static inline bool vendor_ended(struct stream_device *device, struct stream_queue *queue,
				struct stream_slot *slot)
{
	struct lz_device *dev = (struct lz_device *)device;
	struct lz_queue *q = (struct lz_queue *)queue;
	struct lz_slot *s = (struct lz_slot *)slot;
	struct ze_kernel_timestamp t;
	const char *call;
	uint32_t r;

	if (queue->broken)
		return false;
	if (s->timed && !slot->stamping)
		return true;
	r = ask_status(s, &call);
	if (r == LZ_NOT_READY)
		return false;
	if (!r && !s->timed) {
		call = "zeEventQueryKernelTimestamp";
		r = lz.zeEventQueryKernelTimestamp(s->event, &t);
		if (!r)
			stamp_times(dev, s, &t);
	}
	if (r)
		die_of(dev, q, call, r);
	return !r;
}

static inline void vendor_measure(struct stream_device *dev, struct stream_queue *q,
				  struct hal_bk_event *e)
{
	const struct lz_slot *s = (const struct lz_slot *)stream_slot(q, 0);

	(void)dev;
	e->start_ns = s->start_ns;
	e->end_ns = s->end_ns;
}

static inline void vendor_release(struct stream_queue *q, struct stream_slot *s)
{
	(void)q;
	(void)s;
}

/* A timestamp's value is known once its barrier has ended; then the device writes it. */
static uint32_t write_stamp(const struct lz_queue *q, struct lz_slot *s,
			    const char **call)
{
	const struct lz_mem *mem = s->base.cmd.timestamp.dst;
	uint32_t r;

#define TRY(name, ...)                                                                   \
	do {                                                                             \
		*call = #name;                                                           \
		r = lz.name(__VA_ARGS__);                                                \
		if (r)                                                                   \
			return r;                                                        \
	} while (0)
	r = reset(s, call);
	if (r)
		return r;
	s->base.stamping = true;
	s->stamp_ns = s->end_ns;
	TRY(zeCommandListAppendMemoryFill, s->list ? s->list : q->list,
	    (char *)mem->p + s->base.cmd.timestamp.offset, &s->stamp_ns,
	    sizeof(s->stamp_ns), sizeof(s->stamp_ns), s->event, 0, NULL);
	if (s->list) {
		TRY(zeCommandListClose, s->list);
		TRY(zeCommandQueueExecuteCommandLists, q->queue, 1, &s->list, s->fence);
	}
#undef TRY
	return LZ_SUCCESS;
}

static inline int vendor_stamp(struct stream_device *dev, struct stream_queue *q,
			       struct stream_slot *s, uint64_t now_ns)
{
	const char *call;
	const uint32_t r = write_stamp((struct lz_queue *)q, (struct lz_slot *)s, &call);

	(void)dev;
	(void)now_ns; /* the device has measured it */
	if (r)        /* nothing can be behind it, so nothing is in flight */
		stream_break(q, "%s: %s (0x%x)", call, short_name(r), r);
	return r ? -EIO : 0;
}

/* The tile is asked why nothing ends: of a queue a driver tells nothing. */
static inline enum stream_answer vendor_ask(struct stream_device *device,
					    struct stream_queue *queue, char *text,
					    size_t size)
{
	struct lz_device *dev = (struct lz_device *)device;
	struct lz_queue *q = (struct lz_queue *)queue;
	const uint32_t r = lz.zeDeviceGetStatus(dev->shape.tiles[q->engine->tile]);

	if (!r)
		return STREAM_RUNS;
	snprintf(text, size, "zeDeviceGetStatus: %s (0x%x)", short_name(r), r);
	if (r != LZ_ERROR_OUT_OF_HOST_MEMORY && r != LZ_ERROR_OUT_OF_DEVICE_MEMORY)
		die_of(dev, q, "zeDeviceGetStatus", r);
	return STREAM_ERROR;
}

static inline bool vendor_over(struct stream_device *dev, struct stream_queue *q)
{
	(void)dev;
	return q->broken;
}

static inline const char *vendor_result_name(uint32_t result)
{
	return lz_result_name(result);
}

static inline const char *vendor_kernel_name(const struct hal_bk_cmd *cmd)
{
	return ((const struct lz_kernel *)cmd->launch.kernel)->info.name;
}

static inline bool vendor_may_hang(const struct stream_slot *s)
{
	(void)s;
	return true;
}

static inline bool vendor_idle(struct stream_device *dev, struct stream_queue *q)
{
	(void)dev;
	(void)q;
	return true; /* lz_keep waits for the rest */
}

static inline void vendor_drop(struct stream_device *dev, struct stream_queue *q,
			       int *err)
{
	drop_queue((struct lz_device *)dev, (struct lz_queue *)q, err);
}

static inline uint64_t vendor_ran(struct stream_device *dev, struct stream_queue *q)
{
	(void)dev;
	(void)q;
	return 0;
}

/* Submit does not read the clock. */
static inline void vendor_look(struct stream_device *dev, struct stream_queue *q)
{
	if (q->count && !q->head_ns)
		q->head_ns = dev->progress_ns = vendor_now(dev);
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

static inline uint32_t vendor_round(struct stream_device *dev, struct hal_bk_event *ev,
				    uint32_t max)
{
	(void)dev;
	(void)ev;
	(void)max;
	return 0;
}

static inline void vendor_advance(struct stream_device *dev, uint64_t until_ns,
				  uint64_t *now_ns, uint32_t *idle)
{
	((struct lz_device *)dev)->advance(until_ns, now_ns, idle);
}

#include "backends/stream/poll.h"

/* ---- operations -------------------------------------------------------------------- */

int lz_poll(void *device, uint64_t until_ns, struct hal_bk_event *ev, uint32_t max)
{
	struct lz_device *dev = device;

	if (!dev->opt.virtual_clock && lz_mono() - dev->base_mono > UINT64_C(1000000000))
		(void)lz_calibrate(dev);
	return (int)stream_poll(&dev->base, until_ns, ev, max);
}

uint64_t lz_next(void *device)
{
	return stream_next(device);
}

int lz_suspend(void *device, void *queue, uint32_t mode, uint64_t cookie)
{
	struct lz_device *dev = device;
	struct lz_queue *q = queue;
	int err = stream_suspend_check(&q->base, mode == HAL_SUSPEND_DRAIN, mode);

	return err ? err : stream_suspend(&dev->base, &q->base, cookie);
}

int lz_resume(void *device, void *queue)
{
	struct lz_queue *q = queue;

	(void)device;
	return stream_resume(&q->base);
}

int lz_queue_destroy(void *device, void *queue)
{
	struct lz_device *dev = device;
	struct lz_queue *q = queue;
	int err = stream_leave(&dev->base, &q->base);

	if (!err)
		stream_destroy(&dev->base, &q->base, &err);
	return err;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hot path of a Level Zero device.
 *
 * A queue is one immediate command list, or one command queue with a regular list for
 * each command, on one engine.
 *
 * Where the driver keeps the order of a list, one event tells the end of several launches
 * (stream/marks.h), and another kind of event measures one in 64.  A launch signals its
 * mark itself; a barrier does for a tail, which has none.
 *
 * Else Level Zero orders commands by events only: each command waits for the event of the
 * one before it, while that is in flight, and signals its own, which poll looks at.
 *
 * An event is used again only when the command behind its own has ended, too, as that may
 * still wait for it: so there are two slots more than commands in flight.  At most
 * `inflight` commands are with the device, which bounds how long DRAIN takes: that many
 * times the longest command.
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

/* Return whether the driver keeps the order of lists, not we by events. */
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
		.flags = q->marks ? LZ_QUEUE_IN_ORDER : 0,
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
		.flags = q->marks ? LZ_QUEUE_IN_ORDER : 0,
	};

	if (dev->opt.regular || !count || e->ordinal == q->engine->ordinal)
		return 0;
	return LZ_MAKE(dev, LZ_KIND_LIST, zeCommandListCreateImmediate, dev->context,
		       dev->shape.tiles[e->tile], &d, &q->copies);
}

static int create_event(struct lz_device *dev, void *pool, uint32_t i, void **event)
{
	const struct ze_event_desc d = {
		.stype = LZ_STYPE_EVENT_DESC,
		.index = i,
		.signal = LZ_SCOPE_HOST,
		.wait = LZ_SCOPE_DEVICE,
	};

	return LZ_MAKE(dev, LZ_KIND_EVENT, zeEventCreate, pool, &d, event);
}

static int create_slot(struct lz_device *dev, const struct lz_queue *q, uint32_t i,
		       struct lz_slot *s)
{
	const struct ze_command_list_desc ld = {
		.stype = LZ_STYPE_COMMAND_LIST_DESC,
		.ordinal = q->engine->ordinal,
	};
	const struct ze_fence_desc fd = {.stype = LZ_STYPE_FENCE_DESC};
	int err = create_event(dev, q->pool, i, &s->event);

	if (!err && q->marks)
		err = create_event(dev, q->timers, i, &s->timer);
	if (!err && dev->opt.regular)
		err = LZ_MAKE(dev, LZ_KIND_LIST, zeCommandListCreate, dev->context,
			      dev->shape.tiles[q->engine->tile], &ld, &s->list);
	if (!err && dev->opt.regular)
		err = LZ_MAKE(dev, LZ_KIND_FENCE, zeFenceCreate, q->queue, &fd,
			      &s->fence);
	return err;
}

/* Make a pool of events for q's tile; more: the rest of the descriptor. */
static int create_pool(struct lz_device *dev, const struct lz_queue *q, bool timed,
		       const void *more, void **pool)
{
	void *tile = dev->shape.tiles[q->engine->tile];
	const struct ze_event_pool_desc d = {
		.stype = LZ_STYPE_EVENT_POOL_DESC,
		.next = more,
		.flags = LZ_POOL_HOST_VISIBLE | (timed ? LZ_POOL_KERNEL_TIMESTAMP : 0),
		.count = q->base.slot_count + 1,
	};

	return LZ_MAKE(dev, LZ_KIND_POOL, zeEventPoolCreate, dev->context, &d, 1, &tile,
		       pool);
}

/* Events with times cost the device more, so that marks have none. */
static int create_slots(struct lz_device *dev, struct lz_queue *q)
{
	const struct ze_counted_pool_desc counted = {LZ_STYPE_COUNTED_POOL_DESC, NULL,
						     LZ_COUNTED_IMMEDIATE};
	uint32_t i;
	int err = create_pool(dev, q, !q->marks, q->counted ? &counted : NULL, &q->pool);

	if (!err && q->marks)
		err = create_pool(dev, q, true, NULL, &q->timers);
	if (!err && q->marks)
		err = create_event(dev, q->timers, q->base.slot_count, &q->end);
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
	for (i = 0; i < q->base.slot_count; i++) {
		lz_drop(dev, LZ_KIND_EVENT, q->slots[i].event, g, err);
		lz_drop(dev, LZ_KIND_EVENT, q->slots[i].timer, g, err);
	}
	lz_drop(dev, LZ_KIND_EVENT, q->end, g, err);
	lz_drop(dev, LZ_KIND_POOL, q->pool, g, err);
	lz_drop(dev, LZ_KIND_POOL, q->timers, g, err);
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
	q->marks = in_order(dev);
	q->counted = q->marks && dev->shape.counted;
	/* Each command has its own time-out. */
	q->base.every = dev->opt.timeout_ns || !q->marks ? 1 : dev->opt.every;
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

/* Return the slot before the next free one. */
static struct lz_slot *last_slot(struct lz_queue *q)
{
	const uint32_t at = stream_at(&q->base, q->base.count);

	return &q->slots[at ? at - 1 : q->base.slot_count - 1];
}

/* ---- marks: see stream/marks.h ------------------------------------------------------ */

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
 * before the last command has ended.  If nothing tells that end, have a barrier do it; if
 * the driver does not take that, nothing is given back before close. */
static inline bool vendor_give_up(struct stream_device *device,
				  struct stream_queue *queue)
{
	struct lz_device *dev = (struct lz_device *)device;
	struct lz_queue *q = (struct lz_queue *)queue;
	const struct lz_slot *s = last_slot(q);

	if (s->fence) {
		lz_keep(dev, LZ_KIND_WAIT_FENCE, s->fence, q->group);
	} else if (s->sign) {
		lz_keep(dev, LZ_KIND_WAIT, s->sign, q->group);
	} else {
		(void)lz.zeCommandListAppendBarrier(q->list, q->end, 0, NULL);
		lz_keep(dev, LZ_KIND_WAIT, q->end, q->group);
	}
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

/* Make the event that s->sign is ready to be signalled. */
static inline uint32_t prepare_sign(const struct lz_queue *q, struct lz_slot *s)
{
	bool *used = s->sign == s->timer ? &s->timer_used : &s->used;
	uint32_t r = LZ_SUCCESS;

	if (*used && !(q->counted && s->sign == s->event))
		r = lz.zeEventHostReset(s->sign);
	*used = *used || !r;
	return r;
}

/* A barrier does it: the launches before did not know that they would be the last. */
static inline void vendor_mark(struct stream_device *device, struct stream_queue *queue)
{
	struct lz_queue *q = (struct lz_queue *)queue;
	struct lz_slot *s = last_slot(q);
	const char *call = "zeEventHostReset";
	uint32_t r;

	s->sign = s->event;
	r = prepare_sign(q, s);
	if (!r) {
		call = "zeCommandListAppendBarrier";
		r = lz.zeCommandListAppendBarrier(q->list, s->sign, 0, NULL);
	}
	if (__builtin_expect(!r, 1))
		return;
	s->sign = NULL;
	die_of((struct lz_device *)device, q, call, r);
}

static inline bool vendor_reached(struct stream_queue *queue, uint32_t number)
{
	return stream_reached(((struct lz_queue *)queue)->reached, number);
}

static inline uint64_t vendor_timed(struct stream_device *dev, struct stream_queue *q,
				    struct stream_slot *slot)
{
	const struct lz_slot *s = (const struct lz_slot *)slot;

	(void)dev;
	(void)q;
	return s->timed ? s->end_ns - s->start_ns : 0;
}

static inline struct stream_kernel *vendor_kernel(const struct stream_slot *s)
{
	struct lz_kernel *k = s->cmd.launch.kernel;

	return s->cmd.op == HAL_OP_LAUNCH ? &k->seen : NULL;
}

/* There is no call that asks whether a list has come to its end. */
#define STREAM_TAIL_AT_ONCE
#include "backends/stream/marks.h"

/* ---- submission -------------------------------------------------------------------- */

static __attribute__((cold)) int argument_failed(const struct lz_kernel *k, uint32_t i,
						 size_t bytes, uint32_t r)
{
	return lz_host->fail(lz_errno(r),
			     "levelzero: zeKernelSetArgumentValue: %s (0x%x): "
			     "kernel %s, argument %u of %zu bytes",
			     lz_result_name(r), r, k->info.name, i, bytes);
}

/* Give the tile's kernel object an argument. */
static __attribute__((noinline)) int
set_argument(struct lz_kernel *k, uint32_t tile, uint32_t i, uint64_t value, uint64_t era)
{
	struct lz_given *g = &k->given[tile];
	const size_t bytes = k->params.scalar_bytes[i] ? k->params.scalar_bytes[i] : 8;
	uint32_t r;

	g->args[i].era = LZ_ERA_NONE;
	r = lz.zeKernelSetArgumentValue(k->handles[tile], i, bytes, &value);
	if (__builtin_expect(r != LZ_SUCCESS, 0))
		return argument_failed(k, i, bytes, r);
	g->args[i].value = value;
	/* What lies at an address that is no buffer here may come and go. */
	if (era != LZ_ERA_SCALAR || k->params.scalar_bytes[i])
		g->args[i].era = era;
	return 0;
}

/* Give the tile's kernel object the arguments that it does not have. */
static inline __attribute__((always_inline)) int
set_arguments(struct lz_kernel *k, uint32_t tile, const struct hal_bk_cmd *cmd)
{
	const struct lz_given *g = &k->given[tile];
	uint32_t i;
	int err;

	for (i = 0; i < cmd->launch.arg_count; i++) {
		const struct hal_bk_arg *a = &cmd->launch.args[i];
		const struct lz_mem *mem = a->mem;
		uint64_t value = a->value, era = LZ_ERA_SCALAR;

		if (__builtin_expect((mem && k->params.scalar_bytes[i]) ||
					     value > k->params.value_max[i],
				     0)) {
			stream_refuse_arg(k->info.name, &k->params, i, a);
			return -EINVAL;
		}
		if (mem) {
			value += (uintptr_t)mem->p;
			era = mem->era;
		}
		if (g->args[i].value == value && g->args[i].era == era)
			continue;
		err = set_argument(k, tile, i, value, era);
		if (err)
			return err;
	}
	return 0;
}

/* Give the tile's kernel object the size of groups, unless it has it.  The driver reads
 * it when a launch is appended. */
static __attribute__((cold, noinline)) int
set_group_size(struct lz_kernel *k, uint32_t tile, const uint32_t size[3])
{
	struct lz_given *g = &k->given[tile];
	uint32_t r;

	if (memcmp(g->group_size, size, sizeof(g->group_size)) == 0)
		return 0;
	r = lz.zeKernelSetGroupSize(k->handles[tile], size[0], size[1], size[2]);
	if (r)
		return lz_host->fail(lz_errno(r),
				     "levelzero: zeKernelSetGroupSize: %s (0x%x): kernel "
				     "%s, groups of %u x %u x %u",
				     lz_result_name(r), r, k->info.name, size[0], size[1],
				     size[2]);
	memcpy(g->group_size, size, sizeof(g->group_size));
	g->shaped = memcmp(size, k->group_size, sizeof(k->group_size)) != 0;
	return 0;
}

/* A launch of groups that are not the kernel's own. */
static __attribute__((cold)) int set_shape(struct lz_kernel *k, uint32_t tile,
					   const struct hal_bk_cmd *cmd)
{
	const uint32_t *size = hal_bk_shape(cmd)->group_size;
	uint32_t i;

	for (i = 0; i < 3; i++)
		if (size[i] > k->group_most[i])
			return lz_host->fail(
				EINVAL,
				"levelzero: kernel %s: groups of %u x %u x %u; the "
				"device allows %u x %u x %u",
				k->info.name, size[0], size[1], size[2], k->group_most[0],
				k->group_most[1], k->group_most[2]);
	return set_group_size(k, tile, size);
}

static int append_launch(const struct lz_queue *q, void *list,
			 const struct hal_bk_cmd *cmd, void *signal, uint32_t count,
			 void **waits)
{
	struct lz_kernel *k = cmd->launch.kernel;
	const uint32_t *g = cmd->launch.groups, tile = q->engine->tile;
	const struct ze_group_count groups = {g[0] ? g[0] : 1, g[1] ? g[1] : 1,
					      g[2] ? g[2] : 1};
	int err = stream_check_groups(k->info.name, &k->params, g);

	if (!err)
		err = set_arguments(k, tile, cmd);
	if (__builtin_expect(err, 0))
		return err;
	if (__builtin_expect((cmd->flags & HAL_BK_CMD_SHAPED) != 0, 0))
		err = set_shape(k, tile, cmd);
	else if (__builtin_expect(k->given[tile].shaped, 0))
		err = set_group_size(k, tile, k->group_size);
	if (__builtin_expect(err, 0))
		return err;
	return LZ(zeCommandListAppendLaunchKernel, list, k->handles[tile], &groups,
		  signal, count, waits);
}

/* Return whether the copy engine does it: it copies from or to host memory, beside
 * kernels of other queues. */
static bool goes_aside(const struct lz_queue *q, const struct hal_bk_cmd *cmd)
{
	const struct lz_mem *dst = cmd->copy.dst, *src = cmd->copy.src;

	return q->copies && cmd->op == HAL_OP_COPY && cmd->copy.bytes &&
	       (dst->copied || src->copied);
}

/* The copy waits for the event of the command before it, and the next command for the
 * copy's. */
static int append_aside(struct lz_queue *q, const struct hal_bk_cmd *cmd, void *signal)
{
	const struct lz_mem *dst = cmd->copy.dst, *src = cmd->copy.src;
	void *before = q->base.count ? last_slot(q)->sign : NULL;

	return LZ(zeCommandListAppendMemoryCopy, q->copies,
		  (char *)dst->p + cmd->copy.dst_offset,
		  (char *)src->p + cmd->copy.src_offset, cmd->copy.bytes, signal,
		  before != NULL, &before);
}

static __attribute__((noinline)) int append_other(struct lz_queue *q, void *list,
						  const struct hal_bk_cmd *cmd,
						  void *signal, uint32_t count,
						  void **waits)
{
	const struct lz_mem *dst, *src;

	switch (cmd->op) {
	case HAL_OP_COPY:
		if (!cmd->copy.bytes)
			break;
		dst = cmd->copy.dst;
		src = cmd->copy.src;
		if (goes_aside(q, cmd))
			return append_aside(q, cmd, signal);
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

static inline __attribute__((always_inline)) int append(struct lz_queue *q, void *list,
							const struct hal_bk_cmd *cmd,
							void *signal, uint32_t count,
							void **waits)
{
	return __builtin_expect(cmd->op == HAL_OP_LAUNCH, 1)
		       ? append_launch(q, list, cmd, signal, count, waits)
		       : append_other(q, list, cmd, signal, count, waits);
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

/* Give the device the command in s.  Each command waits for the one before it. */
static int give_chained(struct lz_queue *q, struct lz_slot *s)
{
	void *before = q->base.count ? last_slot(q)->sign : NULL;
	int err = recycle(s);

	if (err)
		return err;
	/* Whatever fails from here on may have left something in the list. */
	s->used = true;
	err = append(q, s->list ? s->list : q->list, &s->base.cmd, s->event,
		     before != NULL, &before);
	if (!err)
		err = hand_over(q, s);
	s->sign = s->event;
	return err;
}

/* Return whether another queue has commands on q's engine, which then take turns. */
static bool shares_engine(const struct lz_device *dev, const struct lz_queue *q)
{
	const struct stream_queue *other;

	for (other = dev->base.busy; other; other = other->busy_next)
		if (other != &q->base && other->count &&
		    ((const struct lz_queue *)other)->engine == q->engine)
			return true;
	return false;
}

/* Choose what tells the end of the command in s: the event with times if it is measured,
 * the other one if it is marked.  A launch of an empty queue is marked, as this costs no
 * call where it remains alone, and measured if it may have to wait for another queue.  k:
 * the kernel of a launch.  apart: it shares no mark. */
static inline void choose_sign(const struct lz_device *dev, struct lz_queue *q,
			       struct lz_slot *s, const struct stream_kernel *k,
			       bool sample, bool apart)
{
	if (!q->base.count)
		q->waits = shares_engine(dev, q);
	s->base.timed = sample || q->base.lengthy || !k || (!q->base.count && q->waits);
	s->base.marked = s->base.timed || apart || !q->base.count ||
			 q->base.given + 1 - q->base.marked >= q->base.every;
	s->sign = !s->base.marked ? NULL : s->base.timed ? s->timer : s->event;
}

/* Give the device the command in s.  The list keeps the order. */
static inline __attribute__((always_inline)) int
give_marked(struct lz_device *dev, struct lz_queue *q, struct lz_slot *s)
{
	struct stream_kernel *k = vendor_kernel(&s->base);
	const bool sample = k && stream_samples(k);
	const bool apart = !k || q->base.lengthy || (sample && !k->took_ns);
	uint32_t r;
	int err;

	if (__builtin_expect(apart, 0)) {
		stream_mark(&dev->base, &q->base);
		if (q->base.broken)
			return -EAGAIN;
	}
	choose_sign(dev, q, s, k, sample, apart);
	r = s->sign ? prepare_sign(q, s) : LZ_SUCCESS;
	err = lz_check(r, "zeEventHostReset");
	if (err)
		return err;
	err = append(q, q->list, &s->base.cmd, s->sign, q->before != NULL, &q->before);
	if (err)
		return err;
	q->before = goes_aside(q, &s->base.cmd) ? s->sign : NULL;
	s->base.number = ++q->base.given;
	if (s->base.marked)
		q->base.marked = q->base.given;
	return 0;
}

int lz_submit(void *device, void *queue, const struct hal_bk_cmd *cmd)
{
	struct lz_device *dev = device;
	struct lz_queue *q = queue;
	struct lz_slot *s = &q->slots[stream_at(&q->base, q->base.count)];
	int err = stream_takes(&dev->base, &q->base);

	if (__builtin_expect(err, 0))
		return err;
	s->base.cmd = *cmd;
	s->base.stamping = s->timed = false;
	err = q->marks ? give_marked(dev, q, s) : give_chained(q, s);
	if (err)
		return err;
	q->base.fenced = cmd->op == HAL_OP_TIMESTAMP;
	stream_push(&dev->base, &q->base, 0); /* poll reads the clock: vendor_look */
	return 0;
}

/* ---- what the stream layer asks for ------------------------------------------------ */

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

/* Ask about the oldest mark that the device is not known to have reached; return whether
 * it has.  Virtual time passes between polls only: the answer stays the same until then.
 */
static bool ask_mark(struct lz_device *dev, struct lz_queue *q)
{
	struct ze_kernel_timestamp t;
	const char *call = "zeEventQueryStatus";
	struct lz_slot *s = NULL;
	uint32_t i, r;

	for (i = 0; i < q->base.count; i++) {
		s = (struct lz_slot *)stream_slot(&q->base, i);
		if (s->sign && !stream_reached(q->reached, s->base.number))
			break;
	}
	if (i == q->base.count ||
	    (dev->opt.virtual_clock && q->asked_ns == vendor_now(&dev->base) + 1))
		return false;
	r = lz.zeEventQueryStatus(s->sign);
	if (r == LZ_NOT_READY) {
		q->asked_ns = dev->opt.virtual_clock ? vendor_now(&dev->base) + 1 : 0;
		return false;
	}
	if (!r && s->sign == s->timer) {
		call = "zeEventQueryKernelTimestamp";
		r = lz.zeEventQueryKernelTimestamp(s->timer, &t);
		if (!r)
			stamp_times(dev, s, &t);
	}
	if (r) {
		die_of(dev, q, call, r);
		return false;
	}
	q->reached = s->base.number;
	return true;
}

static bool mark_ended(struct lz_device *dev, struct lz_queue *q,
		       const struct stream_slot *s)
{
	if (stream_reached(q->reached, s->number))
		return true;
	return !q->base.broken && ask_mark(dev, q) &&
	       stream_reached(q->reached, s->number);
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

	if (q->marks)
		return mark_ended(dev, q, slot);
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
	s->base.stamping = true;
	s->stamp_ns = s->end_ns;
	if (q->marks) {
		s->sign = s->event;
		r = prepare_sign(q, s);
		*call = "zeEventHostReset";
	} else {
		r = reset(s, call);
	}
	if (r)
		return r;
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
	uint32_t r;

	s->number = q->marked = ++q->given;
	r = write_stamp((struct lz_queue *)q, (struct lz_slot *)s, &call);

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
	if (q->count && (!dev->progress_ns || !q->head_ns)) {
		dev->progress_ns = vendor_now(dev);
		if (!q->head_ns)
			q->head_ns = dev->progress_ns;
	}
	if (((struct lz_queue *)q)->marks && !q->broken)
		stream_tail(dev, q);
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

/* The oldest command was measured: its times are the device's, but not before those of
 * the command before it. */
static void set_own_times(struct lz_queue *q, const struct lz_slot *s, uint64_t before,
			  struct hal_bk_event *e)
{
	e->end_ns = s->end_ns > before ? s->end_ns : before;
	e->start_ns = s->start_ns > before ? s->start_ns : before;
	q->base.last_end_ns = e->end_ns;
}

/* Learn the times of all commands that have ended.  Where queues take turns, the time
 * from mark to mark is also the others': a launch then ran no longer than its kernel did
 * when it was measured. */
static void see_marked(struct lz_device *dev, struct lz_queue *q)
{
	const bool shared = shares_engine(dev, q);
	const uint64_t lag = q->base.lag_ns;
	uint32_t i;

	stream_see_marked(&dev->base, &q->base);
	if (q->waits)
		q->base.lag_ns = lag; /* what the first one waited is no delay of ours */
	q->waits = false;
	for (i = 0; shared && i < q->base.seen; i++) {
		struct stream_slot *s = stream_slot(&q->base, i);
		const struct stream_kernel *k = vendor_kernel(s);

		if (k && k->took_ns && s->took_ns > k->took_ns)
			s->took_ns = k->took_ns;
	}
}

static inline void vendor_measure(struct stream_device *device,
				  struct stream_queue *queue, struct hal_bk_event *e)
{
	const struct lz_slot *s = (const struct lz_slot *)stream_slot(queue, 0);
	struct lz_device *dev = (struct lz_device *)device;
	struct lz_queue *q = (struct lz_queue *)queue;
	const uint64_t before = queue->last_end_ns;

	if (!q->marks) {
		e->start_ns = s->start_ns;
		e->end_ns = s->end_ns;
		return;
	}
	if (!queue->seen)
		see_marked(dev, q);
	stream_set_times(queue, e);
	if (s->timed)
		set_own_times(q, s, before, e);
	else if (s->base.took_ns > dev->longest_ns)
		dev->longest_ns = s->base.took_ns;
}

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

	if (err)
		return err;
	(void)stream_suspend(&dev->base, &q->base, cookie);
	/* Whoever waits for the last command is not to wait for a look at the tail. */
	if (q->marks && !q->base.broken)
		stream_mark(&dev->base, &q->base);
	return 0;
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

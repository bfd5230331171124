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

#define CHECK_NS UINT64_C(100000000) /* how often a tile is asked why nothing ends */

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
		.count = q->slot_count,
	};
	uint32_t i;
	int err;

	err = LZ_MAKE(dev, LZ_KIND_POOL, zeEventPoolCreate, dev->context, &pd, 1, &tile,
		      &q->pool);
	for (i = 0; !err && i < q->slot_count; i++)
		err = create_slot(dev, q, i, &q->slots[i]);
	return err;
}

/* First what executes, then what that refers to. */
static void drop_queue(struct lz_device *dev, struct lz_queue *q, int *err)
{
	const struct lz_group g = q->group;
	uint32_t i;

	for (i = 0; i < q->slot_count; i++)
		lz_drop(dev, LZ_KIND_FENCE, q->slots[i].fence, g, err);
	lz_drop(dev, LZ_KIND_QUEUE, q->queue, g, err);
	lz_drop(dev, LZ_KIND_LIST, q->list, g, err);
	for (i = 0; i < q->slot_count; i++)
		lz_drop(dev, LZ_KIND_LIST, q->slots[i].list, g, err);
	for (i = 0; i < q->slot_count; i++)
		lz_drop(dev, LZ_KIND_EVENT, q->slots[i].event, g, err);
	lz_drop(dev, LZ_KIND_POOL, q->pool, g, err);
}

int lz_queue_create(void *device, void *partition, int32_t priority, void **out)
{
	struct lz_device *dev = device;
	struct lz_partition *part = partition;
	uint32_t slots = dev->opt.inflight + 2;
	struct lz_queue *q;
	int err;

	q = calloc(1, sizeof(*q) + slots * sizeof(q->slots[0]));
	if (!q)
		return lz_host->fail(ENOMEM,
				     "levelzero: no memory for a queue of %u commands",
				     dev->opt.inflight);
	q->part = part;
	q->group = (struct lz_group){.id = lz_id(dev), .part = part->id};
	q->priority = priority;
	q->slot_count = slots;
	q->engine = &dev->shape.engines[part->first + part->next];
	err = create_list(dev, q);
	if (!err)
		err = create_slots(dev, q);
	if (err) {
		drop_queue(dev, q, &err);
		free(q);
		return err;
	}
	part->next = (part->next + 1) % part->count;
	part->queues++;
	*out = q;
	return 0;
}

static void unwatch(struct lz_queue *q)
{
	if (!q->watched)
		return;
	*q->at = q->next;
	if (q->next)
		q->next->at = q->at;
	q->watched = false;
}

static void watch(struct lz_device *dev, struct lz_queue *q)
{
	if (q->watched)
		return;
	q->next = dev->watched;
	q->at = &dev->watched;
	if (q->next)
		q->next->at = &q->next;
	dev->watched = q;
	q->watched = true;
}

int lz_queue_destroy(void *device, void *queue)
{
	struct lz_device *dev = device;
	struct lz_queue *q = queue;
	int err = 0;

	if (q->count || q->quiet_due)
		return lz_host->fail(EBUSY, "levelzero: the queue still has %u commands",
				     q->count);
	unwatch(q);
	q->part->queues--;
	drop_queue(dev, q, &err);
	free(q);
	return err;
}

/* ---- submission -------------------------------------------------------------------- */

static int wrong_argument(const struct lz_kernel *k, uint32_t i, const char *why)
{
	return lz_host->fail(EINVAL, "levelzero: kernel %s: argument %u %s", k->info.name,
			     i, why);
}

static int set_arguments(const struct lz_kernel *k, void *handle,
			 const struct hal_bk_cmd *cmd)
{
	uint32_t i;

	for (i = 0; i < cmd->launch.arg_count; i++) {
		const struct hal_bk_arg *a = &cmd->launch.args[i];
		const struct lz_mem *mem = a->mem;
		uint32_t bytes = k->scalar_bytes[i], r;
		uint64_t value = a->value;

		if (mem && bytes)
			return wrong_argument(k, i, "must be a scalar, but is a buffer");
		if (bytes && bytes < 8 && value >> 8 * bytes)
			return wrong_argument(
				k, i, "is a scalar that does not fit into its bytes");
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

static int append_launch(struct lz_device *dev, const struct lz_queue *q, void *list,
			 const struct hal_bk_cmd *cmd, void *signal, uint32_t count,
			 void **waits)
{
	const struct lz_kernel *k = cmd->launch.kernel;
	const uint32_t *g = cmd->launch.groups, *max = dev->shape.max_groups;
	const struct ze_group_count groups = {g[0] ? g[0] : 1, g[1] ? g[1] : 1,
					      g[2] ? g[2] : 1};
	void *handle = k->handles[q->engine->tile];
	int err;

	if (groups.x > max[0] || groups.y > max[1] || groups.z > max[2])
		return lz_host->fail(EINVAL,
				     "levelzero: kernel %s: %u x %u x %u groups; the "
				     "device allows at most %u x %u x %u",
				     k->info.name, groups.x, groups.y, groups.z, max[0],
				     max[1], max[2]);
	err = set_arguments(k, handle, cmd);
	if (err)
		return err;
	return LZ(zeCommandListAppendLaunchKernel, list, handle, &groups, signal, count,
		  waits);
}

static int append(struct lz_device *dev, const struct lz_queue *q, void *list,
		  const struct hal_bk_cmd *cmd, void *signal, uint32_t count,
		  void **waits)
{
	const struct lz_mem *dst, *src;

	switch (cmd->op) {
	case HAL_OP_LAUNCH:
		return append_launch(dev, q, list, cmd, signal, count, waits);
	case HAL_OP_COPY:
		if (!cmd->copy.bytes)
			break;
		dst = cmd->copy.dst;
		src = cmd->copy.src;
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

static struct lz_slot *last_slot(struct lz_queue *q)
{
	return &q->slots[q->tail ? q->tail - 1 : q->slot_count - 1];
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
	struct lz_slot *s = &q->slots[q->tail];
	void *before = NULL;
	int err;

	if (__builtin_expect(q->dead, 0))
		return lz_host->fail(EIO, "%s", q->fault);
	if (q->count == dev->opt.inflight || q->suspended || q->fenced)
		return -EAGAIN;
	err = recycle(s);
	if (err)
		return err;
	if (q->count && !in_order(dev))
		before = last_slot(q)->event;
	/* Whatever fails from here on may have left something in the list. */
	s->used = true;
	err = append(dev, q, s->list ? s->list : q->list, cmd, s->event, before != NULL,
		     &before);
	if (!err)
		err = hand_over(q, s);
	if (err)
		return err;
	s->cmd = *cmd;
	s->stamping = false;
	q->fenced = cmd->op == HAL_OP_TIMESTAMP;
	if (++q->tail == q->slot_count)
		q->tail = 0;
	if (!q->count++) {
		q->head_since_ns = 0; /* poll looks at the clock when it must */
		watch(dev, q);
	}
	return 0;
}

/* ---- completion -------------------------------------------------------------------- */

static void event_init(struct hal_bk_event *ev, uint32_t kind, int32_t status,
		       uint64_t cookie, uint64_t ns)
{
	ev->kind = kind;
	ev->status = status;
	ev->cookie = cookie;
	ev->start_ns = ev->end_ns = ns;
	ev->bytes_read = ev->bytes_written = 0;
	ev->fault[0] = 0;
}

static void pop(struct lz_queue *q, uint64_t now_ns)
{
	if (++q->head == q->slot_count)
		q->head = 0;
	q->count--;
	q->head_since_ns = q->checked_ns = now_ns;
}

static const char *kernel_name(const struct hal_bk_cmd *cmd)
{
	const struct lz_kernel *k = cmd->launch.kernel;

	return k->info.name;
}

/* The queue takes no more; take_dead tells of what it has.  The device may go on with
 * that, so nothing it may use is given back before the last one has ended; unless nothing
 * is in flight. */
static void die(struct lz_device *dev, struct lz_queue *q, bool in_flight,
		const char *fmt, ...)
{
	const struct lz_slot *s = &q->slots[q->head];
	const char *kernel = s->cmd.op == HAL_OP_LAUNCH ? kernel_name(&s->cmd) : NULL;
	va_list ap;
	size_t n;

	va_start(ap, fmt);
	vsnprintf(q->fault, sizeof(q->fault), fmt, ap);
	va_end(ap);
	n = strlen(q->fault);
	if (kernel)
		snprintf(q->fault + n, sizeof(q->fault) - n, ", kernel %s", kernel);
	q->dead = true;
	q->fenced = false;
	s = last_slot(q);
	if (in_flight && s->fence)
		lz_keep(dev, LZ_KIND_WAIT_FENCE, s->fence, q->group);
	else if (in_flight)
		lz_keep(dev, LZ_KIND_WAIT, s->event, q->group);
}

static void die_of(struct lz_device *dev, struct lz_queue *q, const char *call,
		   uint32_t result)
{
	die(dev, q, true, "%s: %s (0x%x)", call,
	    lz_result_name(result) + strlen("ZE_RESULT_"), result);
}

/* The command at the head has not ended: is it worth waiting for?  What ends in time
 * costs no call of the driver here. */
static void look_into(struct lz_device *dev, struct lz_queue *q, uint64_t now_ns)
{
	uint32_t r;

	if (!q->head_since_ns)
		q->head_since_ns = q->checked_ns = now_ns;
	if (now_ns - q->checked_ns >= CHECK_NS) {
		q->checked_ns = now_ns;
		r = lz.zeDeviceGetStatus(dev->shape.tiles[q->engine->tile]);
		if (r) {
			die_of(dev, q, "zeDeviceGetStatus", r);
			return;
		}
	}
	if (dev->opt.timeout_ns && now_ns - q->head_since_ns >= dev->opt.timeout_ns)
		die(dev, q, true, "time-out after %" PRIu64 " ms, queue dropped",
		    (now_ns - q->head_since_ns) / 1000000);
}

static void stamp_times(struct lz_device *dev, struct lz_slot *s,
			const struct ze_kernel_timestamp *t, uint64_t now_ns)
{
	uint64_t start = lz_ticks_to_ns(dev, t->global_start);
	uint64_t end = lz_ticks_to_ns(dev, t->global_end);
	uint64_t ns = end > start ? end - start : 0;

	/* It was within the tick, so not before what came before it; two clocks are never
	 * quite the same: nothing ends in the future. */
	end += UINT64_C(999999999) / dev->shape.props.timer_resolution;
	s->end_ns = end < now_ns ? end : now_ns;
	s->start_ns = s->end_ns > ns ? s->end_ns - ns : 0;
	if (ns > dev->longest_ns)
		dev->longest_ns = ns;
}

/* A timestamp's value is known once its barrier has ended; then the device writes it. */
static uint32_t write_stamp(const struct lz_queue *q, struct lz_slot *s,
			    const char **call)
{
	const struct lz_mem *mem = s->cmd.timestamp.dst;
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
	s->stamping = true;
	s->stamp_ns = s->end_ns;
	TRY(zeCommandListAppendMemoryFill, s->list ? s->list : q->list,
	    (char *)mem->p + s->cmd.timestamp.offset, &s->stamp_ns, sizeof(s->stamp_ns),
	    sizeof(s->stamp_ns), s->event, 0, NULL);
	if (s->list) {
		TRY(zeCommandListClose, s->list);
		TRY(zeCommandQueueExecuteCommandLists, q->queue, 1, &s->list, s->fence);
	}
#undef TRY
	return LZ_SUCCESS;
}

static void count_bytes(const struct hal_bk_cmd *cmd, struct hal_bk_event *ev)
{
	if (cmd->op == HAL_OP_COPY) {
		ev->bytes_read = cmd->copy.bytes;
		ev->bytes_written = cmd->copy.bytes;
	} else if (cmd->op == HAL_OP_FILL) {
		ev->bytes_written = cmd->fill.bytes;
	} else if (cmd->op == HAL_OP_TIMESTAMP) {
		ev->bytes_written = sizeof(uint64_t);
	}
}

/* The head's event is signalled.  True when that was its end. */
static bool finish(struct lz_device *dev, struct lz_queue *q, struct hal_bk_event *ev)
{
	struct lz_slot *s = &q->slots[q->head];
	struct ze_kernel_timestamp t;
	uint64_t now = lz_now(dev);
	const char *call;
	uint32_t r;

	if (!s->stamping) {
		r = lz.zeEventQueryKernelTimestamp(s->event, &t);
		if (r) {
			die_of(dev, q, "zeEventQueryKernelTimestamp", r);
			return false;
		}
		stamp_times(dev, s, &t, now);
		if (s->cmd.op == HAL_OP_TIMESTAMP) {
			r = write_stamp(q, s, &call);
			if (r)
				/* Nothing can be behind it, so nothing is in flight. */
				die(dev, q, false, "%s: %s (0x%x)", call,
				    lz_result_name(r) + strlen("ZE_RESULT_"), r);
			return false;
		}
	}
	event_init(ev, HAL_BK_DONE, 0, s->cmd.cookie, 0);
	ev->start_ns = s->start_ns;
	ev->end_ns = s->end_ns;
	count_bytes(&s->cmd, ev);
	if (s->stamping)
		q->fenced = false;
	pop(q, now);
	return true;
}

/* The first command of a dead queue failed, the others never will run. */
static uint32_t take_dead(struct lz_device *dev, struct lz_queue *q,
			  struct hal_bk_event *ev, uint32_t max)
{
	uint64_t now = lz_now(dev);
	uint32_t n = 0;

	for (; n < max && q->count; n++) {
		const struct lz_slot *s = &q->slots[q->head];

		event_init(&ev[n], HAL_BK_DONE, q->reported ? -ECANCELED : -EIO,
			   s->cmd.cookie, now);
		if (!q->reported)
			memcpy(ev[n].fault, q->fault, sizeof(ev[n].fault));
		q->reported = true;
		pop(q, now);
	}
	return n;
}

static uint32_t has_ended(const struct lz_slot *s, const char **call)
{
	uint32_t r;

	*call = "zeEventQueryStatus";
	r = lz.zeEventQueryStatus(s->event);
	if (r || !s->fence)
		return r;
	*call = "zeFenceQueryStatus";
	return lz.zeFenceQueryStatus(s->fence);
}

static uint32_t take_ended(struct lz_device *dev, struct lz_queue *q,
			   struct hal_bk_event *ev, uint32_t max)
{
	const char *call;
	uint32_t n = 0, r;

	while (n < max && q->count && !q->dead) {
		r = has_ended(&q->slots[q->head], &call);
		if (r == LZ_SUCCESS) {
			n += finish(dev, q, &ev[n]);
			continue;
		}
		if (r == LZ_NOT_READY)
			look_into(dev, q, lz_now(dev));
		else
			die_of(dev, q, call, r);
		break;
	}
	return n;
}

static uint32_t scan(struct lz_device *dev, struct hal_bk_event *ev, uint32_t max)
{
	struct lz_queue *q, *next;
	uint32_t n = 0;

	for (q = dev->watched; q && n < max; q = next) {
		next = q->next;
		n += take_ended(dev, q, ev + n, max - n);
		if (q->dead)
			n += take_dead(dev, q, ev + n, max - n);
		if (q->quiet_due && !q->count && n < max) {
			q->quiet_due = false;
			event_init(&ev[n++], HAL_BK_QUIET, 0, q->quiet_cookie,
				   lz_now(dev));
		}
		if (!q->count && !q->quiet_due)
			unwatch(q);
	}
	return n;
}

/* Virtual clock: to until_ns or an event.  False when nothing more will happen. */
static bool step(struct lz_device *dev, uint64_t until_ns)
{
	const uint64_t limit = dev->opt.timeout_ns;
	const uint64_t most = limit && limit < CHECK_NS ? limit : CHECK_NS;
	uint64_t to = until_ns, now;
	uint32_t idle;

	/* So that a command that does not end is looked into, and times out. */
	if (dev->watched && to - dev->last_ns > most)
		to = hal_bk_after(dev->last_ns, most);
	to = hal_bk_after(to, dev->zero_ns);
	dev->advance(to, &now, &idle);
	lz_raise(dev, now - dev->zero_ns);
	return !idle || dev->opt.timeout_ns;
}

int lz_poll(void *device, uint64_t until_ns, struct hal_bk_event *ev, uint32_t max)
{
	struct lz_device *dev = device;
	uint32_t n = scan(dev, ev, max), idle = 0;

	if (!dev->opt.virtual_clock) {
		if (lz_mono() - dev->base_mono > UINT64_C(1000000000))
			(void)lz_calibrate(dev);
		return (int)n;
	}
	/* Twice idle: what the first look has found may have given the device more. */
	while (!n && dev->watched && dev->last_ns < until_ns && idle < 2) {
		idle = step(dev, until_ns) ? 0 : idle + 1;
		n = scan(dev, ev, max);
	}
	/* Nothing runs: time passes all the same. */
	if (!n && !dev->watched && dev->last_ns < until_ns && until_ns != UINT64_MAX)
		(void)step(dev, until_ns);
	return (int)n;
}

/* Real clock: nobody tells of an event that is signalled. */
uint64_t lz_next(void *device)
{
	const struct lz_device *dev = device;

	return dev->watched ? 0 : UINT64_MAX;
}

/* ---- preemption -------------------------------------------------------------------- */

int lz_suspend(void *device, void *queue, uint32_t mode, uint64_t cookie)
{
	struct lz_device *dev = device;
	struct lz_queue *q = queue;

	if (mode != HAL_SUSPEND_DRAIN)
		return lz_host->fail(ENOTSUP,
				     "levelzero: suspend mode %u is not supported: a "
				     "command that the device has cannot be taken back",
				     mode);
	if (q->suspended)
		return lz_host->fail(EBUSY, "levelzero: the queue is suspended already");
	q->suspended = true;
	q->quiet_due = true;
	q->quiet_cookie = cookie;
	watch(dev, q);
	return 0;
}

int lz_resume(void *device, void *queue)
{
	struct lz_queue *q = queue;

	(void)device;
	if (!q->suspended)
		return lz_host->fail(EINVAL, "levelzero: the queue is not suspended");
	if (q->quiet_due) /* until nothing is in flight */
		return lz_host->fail(EBUSY,
				     "levelzero: the queue is still being suspended; it "
				     "can resume when that has completed");
	q->suspended = false;
	return 0;
}

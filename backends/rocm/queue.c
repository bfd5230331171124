/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hot path of a ROCm device.
 *
 * A queue is a stream; one whose partition is a mask has that mask, or is a queue of
 * HSA's (aql.c).  Of a stream: behind a command the device writes the command's number to
 * a word of pinned memory, and poll reads that: no thread, no call while something runs.
 * Events behind the commands tell how long each took.  At most `inflight` commands of a
 * queue are the device's: that bounds DRAIN. FOLD is stop.c's.
 */
#define _GNU_SOURCE
#include "internal.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ASK_NS   UINT64_C(10000000) /* how often HIP is asked whether all is well */
#define AWAKE_NS UINT64_C(50000)    /* what ends sooner is not slept over */
#define SLEEP_NS UINT64_C(1000000)  /* at a time */

/* ---- creation ---------------------------------------------------------------------- */

static int timed_event(struct rocm_device *dev, void **event)
{
	int err = HIP(dev, hipEventCreateWithFlags, event, HIP_EVENT_TIMED);

	if (err)
		*event = NULL;
	return err;
}

/* A stream with a mask has no priority. */
static int make_stream(struct rocm_device *dev, struct rocm_queue *q, int32_t priority)
{
	int level = (dev->least_priority + dev->greatest_priority) / 2, err;

	q->stream = rocm_take_stream(dev);
	q->foreign = q->stream != NULL;
	if (q->foreign)
		return 0;
	if (dev->units.count)
		return rocm_masked_stream(dev, q->part->mask, &q->stream);
	if (priority)
		level = priority < 0 ? dev->least_priority : dev->greatest_priority;
	err = HIP(dev, hipStreamCreateWithPriority, &q->stream, HIP_STREAM_NON_BLOCKING,
		  level);
	if (err)
		q->stream = NULL;
	return err;
}

/* With preempt=block one slot more: see stop.c. */
static int make_aql(struct rocm_device *dev, const struct rocm_queue *q,
		    struct rocm_aql **aql)
{
	return rocm_aql_open(dev, q->slot_count + dev->opt.block, q->part->mask,
			     q->priority, aql);
}

static int fill_queue(struct rocm_device *dev, struct rocm_queue *q, int32_t priority)
{
	void *word = NULL;
	uint32_t i;
	int err = rocm_enter(dev);

	if (!err && dev->hsa.on) {
		err = make_aql(dev, q, &q->aql);
		return err || !dev->opt.block ? err : rocm_stops_make(dev, q);
	}
	if (!err)
		err = rocm_pin(dev, sizeof(*q->word), &word, &q->word_at);
	q->word = word;
	if (!err)
		err = make_stream(dev, q, priority);
	if (!err)
		err = timed_event(dev, &q->idle);
	for (i = 0; i < q->slot_count && !err; i++)
		err = timed_event(dev, &q->slots[i].end);
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
	uint32_t i;

	rocm_stops_drop(dev, q, err);
	/* What was refused is in it still. */
	if (q->aql && q->broken && !atomic_load(&dev->lost))
		(void)rocm_aql_end(dev, q);
	rocm_aql_close(dev, q->aql, err);
	rocm_aql_close(dev, q->next, err);
	for (i = 0; i < q->slot_count; i++)
		rocm_give_back(dev, ROCM_KIND_EVENT, q->slots[i].end, err);
	rocm_give_back(dev, ROCM_KIND_EVENT, q->fence, err);
	rocm_give_back(dev, ROCM_KIND_EVENT, q->idle, err);
	if (!q->foreign)
		rocm_give_back(dev, ROCM_KIND_STREAM, q->stream, err);
	rocm_give_back(dev, ROCM_KIND_BUSY, q->left, err);
	dev->left -= q->left != NULL;
	rocm_give_back(dev, ROCM_KIND_HOST, q->word, err);
	free(q);
}

int rocm_queue_create(void *device, void *partition, int32_t priority, void **out)
{
	struct rocm_device *dev = device;
	const uint32_t slots = 1 + dev->opt.inflight; /* an end is the next one's begin */
	struct rocm_queue *q = calloc(1, sizeof(*q) + slots * sizeof(*q->slots));
	int err;

	if (!q)
		return rocm_host->fail(ENOMEM, "rocm: no memory for a queue");
	q->part = partition;
	q->slot_count = slots;
	q->priority = priority;
	err = fill_queue(dev, q, priority);
	if (err) {
		empty_queue(dev, q, &err);
		return err;
	}
	if (q->word)
		__atomic_store_n(q->word, 0, __ATOMIC_RELEASE);
	q->part->queues++;
	q->older = dev->queues;
	dev->queues = q;
	if (q->older)
		q->older->newer = q;
	*out = q;
	return 0;
}

int rocm_queue_destroy(void *device, void *queue)
{
	struct rocm_device *dev = device;
	struct rocm_queue *q = queue;
	const uint32_t running = q->count - rocm_stops_kept(q);
	int err = 0;

	if (!atomic_load(&dev->lost)) {
		if (running || q->quiet_due)
			return rocm_host->fail(
				EBUSY, "rocm: the queue still has %u commands in flight",
				running);
		err = rocm_enter(dev);
	}
	q->part->queues--;
	q->part->moving_left -= q->before;
	dev->inflight -= running;
	*(q->newer ? &q->newer->older : &dev->queues) = q->older;
	if (q->older)
		q->older->newer = q->newer;
	if (!q->stuck) {
		empty_queue(dev, q, &err);
		return err;
	}
	q->older = dev->deferred;
	dev->deferred = q;
	return err;
}

int rocm_queue_follow(struct rocm_device *dev, const struct rocm_queue *q, void *stream)
{
	int err;

	if (!q->count)
		return 0;
	err = HIP(dev, hipEventRecord, q->fence, q->stream);
	return err ? err : HIP(dev, hipStreamWaitEvent, stream, q->fence, 0);
}

/* ---- submission -------------------------------------------------------------------- */

__attribute__((cold)) int rocm_refuse_groups(const struct rocm_kernel *k,
					     const uint32_t *g)
{
	const uint32_t i = g[0] > k->groups_most[0]   ? 0
			   : g[1] > k->groups_most[1] ? 1
						      : 2;

	return rocm_host->fail(EINVAL,
			       "rocm: kernel %s: %u groups of %u in dimension %u; at "
			       "most %u groups are possible",
			       k->info.name, g[i], k->block[i], i, k->groups_most[i]);
}

__attribute__((cold)) int rocm_refuse_argument(const struct rocm_kernel *k, uint32_t i,
					       const struct hal_bk_arg *a)
{
	const char *why = "is a scalar that does not fit into its bytes";

	if (a->mem && k->scalar_bytes[i])
		why = "must be a scalar, but is a buffer";
	else if (!a->mem && !k->scalar_bytes[i])
		why = "must be a buffer, but is a scalar";
	return rocm_host->fail(EINVAL, "rocm: kernel %s: argument %u %s", k->info.name, i,
			       why);
}

static inline __attribute__((always_inline)) int
values_of(const struct hal_bk_cmd *cmd, const uint32_t *g, uint64_t value[HAL_ARGS_MAX])
{
	const struct rocm_kernel *k = cmd->launch.kernel;
	uint32_t i;

	if (rocm_too_many(k, g))
		return rocm_refuse_groups(k, g);
	for (i = 0; i < cmd->launch.arg_count; i++)
		if (!rocm_value(k, i, &cmd->launch.args[i], &value[i]))
			return rocm_refuse_argument(k, i, &cmd->launch.args[i]);
	return 0;
}

static inline __attribute__((always_inline)) int
launch_as(struct rocm_device *dev, struct rocm_queue *q, const struct hal_bk_cmd *cmd,
	  const uint32_t *g, struct hal_preempt_launch *given)
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
	r = hip.hipModuleLaunchKernel(k->function, g[0], g[1], g[2], k->block[0],
				      k->block[1], k->block[2], k->shared_bytes,
				      q->stream, at, NULL);
	if (__builtin_expect(!r, 1))
		return 0;
	err = rocm_failed(dev, r, "hipModuleLaunchKernel");
	return rocm_sticky(r) ? err
			      : rocm_host->fail(-err,
						"rocm: hipModuleLaunchKernel: %s (%u): "
						"kernel %s",
						rocm_result_name(r), r, k->info.name);
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

void rocm_break(struct rocm_queue *q, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(q->fault, sizeof(q->fault), fmt, ap);
	va_end(ap);
	q->broken = true;
}

/* The device has something that it will not tell the end of. */
static void broke(struct rocm_device *dev, struct rocm_queue *q, const char *call,
		  uint32_t r)
{
	(void)rocm_failed(dev, r, call);
	rocm_break(q, "%s: %s (%u)", call, rocm_result_name(r), r);
}

static inline __attribute__((always_inline)) void
write_word(struct rocm_device *dev, struct rocm_queue *q, const struct rocm_slot *s)
{
	const uint32_t r = hip.hipStreamWriteValue32(q->stream, q->word_at, s->value, 0);

	if (__builtin_expect(r, 0))
		broke(dev, q, "hipStreamWriteValue32", r);
}

static inline __attribute__((always_inline)) void
mark(struct rocm_device *dev, struct rocm_queue *q, struct rocm_slot *s)
{
	uint32_t r;

	s->value = ++q->given;
	r = hip.hipEventRecord(s->end, q->stream);
	if (__builtin_expect(r, 0))
		broke(dev, q, "hipEventRecord", r);
	else
		write_word(dev, q, s);
}

void rocm_mark(struct rocm_device *dev, struct rocm_queue *q, struct rocm_slot *s)
{
	mark(dev, q, s);
}

static inline __attribute__((always_inline)) int give_stream(struct rocm_device *dev,
							     struct rocm_queue *q,
							     struct rocm_slot *s,
							     const struct hal_bk_cmd *cmd)
{
	int err = rocm_enter(dev);

	if (!err && !q->count)
		err = HIP(dev, hipEventRecord, q->idle, q->stream);
	if (!err)
		err = give(dev, q, s, cmd);
	if (err)
		return err;
	s->begin = q->count ? rocm_slot(q, q->count - 1)->end : q->idle;
	mark(dev, q, s);
	return 0;
}

int rocm_submit(void *device, void *queue, const struct hal_bk_cmd *cmd)
{
	struct rocm_device *dev = device;
	struct rocm_queue *q = queue;
	const uint32_t slot = (q->head + q->count) % q->slot_count;
	struct rocm_slot *s = &q->slots[slot];
	int err;

	if (__builtin_expect(atomic_load_explicit(&dev->lost, memory_order_relaxed), 0))
		return rocm_gone(dev);
	if (q->reported)
		return rocm_host->fail(EIO, "rocm: %s", q->fault);
	if (q->count == dev->opt.inflight || q->suspended || q->fenced || q->broken)
		return -EAGAIN;
	if (q->stops && rocm_stops_wait(q, cmd))
		return -EAGAIN;
	s->stops = false;
	err = q->aql ? rocm_aql_give(dev, q, slot, cmd) : give_stream(dev, q, s, cmd);
	if (err)
		return err;
	s->cmd = *cmd;
	s->stamping = false;
	q->fenced = cmd->op == HAL_OP_TIMESTAMP;
	dev->progress_ns = rocm_now(dev);
	if (!q->count++)
		q->first_ns = dev->progress_ns;
	if (!dev->inflight++)
		dev->checked_ns = dev->progress_ns;
	return 0;
}

/* ---- completion -------------------------------------------------------------------- */

bool rocm_reached(const struct rocm_queue *q, uint32_t value)
{
	return (int32_t)(__atomic_load_n(q->word, __ATOMIC_ACQUIRE) - value) >= 0;
}

bool rocm_slot_ended(const struct rocm_queue *q, const struct rocm_slot *s)
{
	return q->aql ? rocm_aql_ended(q->aql, (uint32_t)(s - q->slots))
		      : rocm_reached(q, s->value);
}

/* Of launches that are stopped it is known for all together. */
static bool over(const struct rocm_queue *q, const struct rocm_slot *s)
{
	if (q->stops && s->stops && q->stops->folding)
		return q->stops->settled && !s->stopped;
	return rocm_slot_ended(q, s);
}

/* 0 where HIP does not tell. */
static uint64_t time_between(struct rocm_device *dev, void *from, void *to)
{
	float ms = 0;
	uint32_t r;

	if (from == to || atomic_load(&dev->lost) || rocm_enter(dev))
		return 0;
	r = hip.hipEventElapsedTime(&ms, from, to);
	if (!r)
		return ms > 0 ? (uint64_t)(1e6 * (double)ms + 0.5) : 0;
	(void)rocm_failed(dev, r, "hipEventElapsedTime");
	return 0;
}

static uint64_t later_of(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* Of all that have ended unseen the last ended just now, as far as anybody knows. */
static void measure(struct rocm_device *dev, struct rocm_queue *q, struct hal_bk_event *e)
{
	struct rocm_slot *first = rocm_slot(q, 0);
	uint64_t took, behind, now = rocm_now(dev);
	uint32_t last = 0;

	while (last + 1 < q->count && over(q, rocm_slot(q, last + 1)))
		last++;
	if (q->aql) {
		rocm_aql_times(dev, q, first, rocm_slot(q, last), &took, &behind);
	} else {
		behind = time_between(dev, first->end, rocm_slot(q, last)->end);
		took = time_between(dev, first->begin, first->end);
	}
	now = later_of(now > behind ? now - behind : 0, q->last_end_ns);
	e->start_ns = later_of(now > took ? now - took : 0, q->last_end_ns);
	e->end_ns = q->last_end_ns = now;
}

static void drop_first(struct rocm_device *dev, struct rocm_queue *q)
{
	/* What is in front of a timestamp ends without letting others in behind it. */
	if (rocm_slot(q, 0)->cmd.op == HAL_OP_TIMESTAMP)
		q->fenced = false;
	q->head = (q->head + 1) % q->slot_count;
	q->count--;
	if (q->before) {
		q->before--;
		q->part->moving_left--;
	}
	dev->inflight--;
	q->first_ns = dev->progress_ns = dev->checked_ns = rocm_now(dev);
}

/* Its time is known when it is its turn; the device writes it, and tells again. */
static void stamp(struct rocm_device *dev, struct rocm_queue *q, struct rocm_slot *s)
{
	const struct rocm_mem *mem = s->cmd.timestamp.dst;
	char *at = mem->address + s->cmd.timestamp.offset;
	const uint64_t now = rocm_now(dev);
	uint32_t r, i;

	if (q->aql) {
		/* Without room, at the next look. */
		s->stamping = !rocm_aql_stamp(dev, q, s, now);
		return;
	}
	r = rocm_enter(dev) ? HIPR_InvalidContext : HIPR_Success;
	s->stamping = true;
	s->value = ++q->given;
	for (i = 0; i < 2 && !r; i++)
		r = hip.hipMemsetD32Async(at + 4 * (size_t)i, (int)(now >> 32 * i), 1,
					  q->stream);
	if (r)
		broke(dev, q, "hipMemsetD32Async", r);
	else
		write_word(dev, q, s);
}

static void tell_done(struct rocm_device *dev, struct rocm_queue *q,
		      struct hal_bk_event *e)
{
	const struct hal_bk_cmd *cmd = &rocm_slot(q, 0)->cmd;

	*e = (struct hal_bk_event){.kind = HAL_BK_DONE, .cookie = cmd->cookie};
	measure(dev, q, e);
	switch (cmd->op) {
	case HAL_OP_COPY:
		e->bytes_read = cmd->copy.bytes;
		e->bytes_written = cmd->copy.bytes;
		break;
	case HAL_OP_FILL:
		e->bytes_written = cmd->fill.bytes;
		break;
	case HAL_OP_TIMESTAMP:
		e->bytes_written = sizeof(uint64_t);
		break;
	default:
		break;
	}
	drop_first(dev, q);
}

/* The oldest is what went wrong, for all that is known; what is behind it never ran. */
static void tell_failed(struct rocm_device *dev, struct rocm_queue *q,
			struct hal_bk_event *e)
{
	const struct hal_bk_cmd *cmd = &rocm_slot(q, 0)->cmd;
	const struct rocm_kernel *k = cmd->launch.kernel;
	const uint32_t r = atomic_load(&dev->lost);

	memset(e, 0, sizeof(*e));
	e->kind = HAL_BK_DONE;
	e->cookie = cmd->cookie;
	e->start_ns = e->end_ns = rocm_now(dev);
	e->status = q->reported ? -ECANCELED : -EIO;
	if (!q->reported) {
		if (q->stuck || q->aql)
			e->start_ns = q->first_ns;
		if (!q->broken)
			snprintf(q->fault, sizeof(q->fault), "%s (%u), device lost",
				 rocm_result_name(r), r);
		if (cmd->op == HAL_OP_LAUNCH)
			snprintf(e->fault, sizeof(e->fault), "%.60s, kernel %.23s",
				 q->fault, k->info.name);
		else
			snprintf(e->fault, sizeof(e->fault), "%s", q->fault);
	}
	q->reported = true;
	drop_first(dev, q);
}

/* A queue of HSA's whose packet was refused runs nothing any more, and says so. */
static bool has_failed(struct rocm_queue *q)
{
	const uint32_t status = q->aql ? atomic_load(&q->aql->fault) : 0;

	if (status && !q->broken)
		rocm_break(q, "%s (0x%x)", rocm_status_name(status), status);
	return q->aql && q->broken;
}

/* Whether nothing of the queue will tell its end any more. */
static bool is_silent(struct rocm_device *dev, struct rocm_queue *q)
{
	const uint64_t now = rocm_now(dev);
	uint32_t r;

	if (atomic_load(&dev->lost) || has_failed(q))
		return true;
	if (!q->broken && !dev->ask_now && now - dev->checked_ns < ASK_NS)
		return false;
	dev->ask_now = false;
	dev->checked_ns = now;
	if (rocm_enter(dev))
		return atomic_load(&dev->lost);
	r = hip.hipStreamQuery(q->aql ? dev->lane.stream : q->stream);
	if (r && r != HIPR_NotReady)
		(void)rocm_failed(dev, r, "hipStreamQuery");
	return atomic_load(&dev->lost) || (q->broken && !r);
}

/* ---- launches that take too long --------------------------------------------------- */

/* Until when its oldest command is waited for. */
static uint64_t deadline(const struct rocm_device *dev, struct rocm_queue *q)
{
	if (!dev->opt.bound_ns || !q->count || q->reported || rocm_stops_kept(q) ||
	    q->slots[q->head].cmd.op != HAL_OP_LAUNCH)
		return UINT64_MAX;
	return hal_bk_after(q->first_ns, dev->opt.bound_ns);
}

/* HSA ends what a queue has.  HIP takes nothing back: the device keeps it, and the queue
 * ends without it.  Of launches that can be stopped no block begins any more. */
static bool give_up(struct rocm_device *dev, struct rocm_queue *q)
{
	if (q->stuck || deadline(dev, q) > rocm_now(dev))
		return q->stuck;
	if (q->stops)
		rocm_stops_raise(dev, q);
	rocm_break(q, "hung for %u ms", (uint32_t)(dev->opt.bound_ns / 1000000));
	if (q->aql && !rocm_aql_end(dev, q))
		return true;
	q->stuck = true;
	dev->inflight++;
	dev->stuck++;
	return true;
}

/* Whether its stream has come to its end after all. */
static bool has_come_loose(struct rocm_device *dev, struct rocm_queue *q)
{
	if (!atomic_load(&dev->lost) && (q->aql || !rocm_reached(q, q->given)))
		return false;
	q->stuck = false;
	dev->stuck--;
	dev->inflight--;
	return true;
}

void rocm_free_deferred(struct rocm_device *dev)
{
	struct rocm_queue **from = &dev->deferred;
	int ignored = 0; /* what fails is tried again */

	while (*from) {
		struct rocm_queue *q = *from;

		if (has_come_loose(dev, q)) {
			*from = q->older;
			empty_queue(dev, q, &ignored);
		} else {
			from = &q->older;
		}
	}
}

/* ---- KILL, of queues of HSA's ------------------------------------------------------ */

/* The device has it no more; what of it has ended is told so.  Only then it is given to
 * the queue that comes in its place. */
static int drop(struct rocm_device *dev, struct rocm_queue *q)
{
	int ignored = 0, err = rocm_enter(dev);

	if (!err)
		err = make_aql(dev, q, &q->next);
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

static void tell_dropped(struct rocm_device *dev, struct rocm_queue *q,
			 struct hal_bk_event *e)
{
	const uint64_t now = rocm_now(dev);

	*e = (struct hal_bk_event){.kind = HAL_BK_DONE,
				   .status = -ECANCELED,
				   .cookie = rocm_slot(q, 0)->cmd.cookie,
				   .start_ns = later_of(q->first_ns, q->last_end_ns),
				   .end_ns = now};
	q->last_end_ns = now;
	drop_first(dev, q);
}

static bool was_dropped(struct rocm_device *dev, struct rocm_queue *q,
			const struct rocm_slot *s)
{
	return q->next && !atomic_load(&dev->lost) && !has_failed(q) &&
	       (!over(q, s) || (s->cmd.op == HAL_OP_TIMESTAMP && !s->stamping));
}

static void replace(struct rocm_device *dev, struct rocm_queue *q)
{
	struct rocm_aql *gone = q->aql;
	int ignored = 0; /* it is tried again */

	if (q->broken || atomic_load(&dev->lost))
		return;
	q->aql = q->next;
	q->next = NULL;
	rocm_stops_drop_all(q);
	rocm_aql_close(dev, gone, &ignored);
}

/* ---- what has ended ---------------------------------------------------------------- */

/* How long the oldest ran that is kept, at most. */
static uint64_t before_it_stopped(struct rocm_device *dev, struct rocm_queue *q,
				  uint64_t most)
{
	const struct rocm_slot *s = rocm_slot(q, 0);
	uint64_t ns = 0, behind;

	if (q->count && q->aql)
		rocm_aql_times(dev, q, s, s, &ns, &behind);
	else if (q->count)
		ns = time_between(dev, s->begin, s->end);
	return ns < most ? ns : most;
}

static uint32_t look(struct rocm_device *dev, struct rocm_queue *q,
		     struct hal_bk_event *ev, uint32_t max)
{
	uint32_t n = 0;

	if (q->stuck && !q->count)
		(void)has_come_loose(dev, q);
	if (q->stops && q->stops->folding)
		rocm_stops_settle(dev, q);
	while (q->count > rocm_stops_kept(q) && n < max) {
		struct rocm_slot *s = rocm_slot(q, 0);

		if (was_dropped(dev, q, s)) {
			tell_dropped(dev, q, &ev[n++]);
		} else if (q->reported || !over(q, s)) {
			if (!give_up(dev, q) && !is_silent(dev, q))
				break;
			tell_failed(dev, q, &ev[n++]);
		} else if (s->cmd.op != HAL_OP_TIMESTAMP || s->stamping) {
			tell_done(dev, q, &ev[n++]);
		} else if (atomic_load(&dev->lost)) {
			tell_failed(dev, q, &ev[n++]);
		} else {
			stamp(dev, q, s);
			if (!s->stamping)
				break;
		}
	}
	if (!q->quiet_due || q->count > rocm_stops_kept(q) || n == max)
		return n;
	if (q->next)
		replace(dev, q);
	q->quiet_due = false;
	ev[n] = (struct hal_bk_event){.kind = HAL_BK_QUIET, .cookie = q->quiet_cookie};
	ev[n].end_ns = rocm_now(dev);
	ev[n].start_ns = ev[n].end_ns - before_it_stopped(dev, q, ev[n].end_ns);
	return n + 1;
}

static uint32_t look_round(struct rocm_device *dev, struct hal_bk_event *ev, uint32_t max)
{
	struct rocm_queue *q = dev->queues;
	uint32_t n = 0;

	for (; n < max && q; q = q->older)
		n += look(dev, q, &ev[n], max - n);
	n += rocm_moved(dev, &ev[n], max - n);
	if (dev->deferred && !rocm_enter(dev))
		rocm_free_deferred(dev);
	rocm_give_back_later(dev, dev->inflight > 0);
	return n;
}

/* Virtual clock: as far as something can be seen; false: nothing runs that will end. */
static bool advance(struct rocm_device *dev, uint64_t until_ns)
{
	uint64_t to = until_ns, now, soonest = UINT64_MAX;
	struct rocm_queue *q;
	uint32_t idle = 0;

	for (q = dev->queues; q && dev->opt.bound_ns; q = q->older)
		if (deadline(dev, q) < soonest)
			soonest = deadline(dev, q);
	if (to > soonest)
		to = soonest;
	to = hal_bk_after(to, dev->zero_ns);
	hip.advance(to, &now, &idle);
	dev->ask_now = true;
	rocm_raise(dev, now);
	return !idle || soonest != UINT64_MAX;
}

int rocm_poll(void *device, uint64_t until_ns, struct hal_bk_event *ev, uint32_t max)
{
	struct rocm_device *dev = device;
	bool more = dev->opt.virtual_clock;
	uint32_t n = look_round(dev, ev, max);

	while (more && !n && rocm_now(dev) < until_ns &&
	       (until_ns < UINT64_MAX || dev->inflight)) {
		more = advance(dev, until_ns);
		n = look_round(dev, ev, max);
	}
	if (!n && atomic_load(&dev->lost))
		return rocm_gone(dev);
	return (int)n;
}

/* Real clock: nobody tells, so it is looked; less often the longer it takes. */
uint64_t rocm_next(void *device)
{
	const struct rocm_device *dev = device;
	const uint64_t now = rocm_now(device), nap = (now - dev->progress_ns) / 8;

	/* A mask that has changed has moved what runs. */
	if (dev->moving && (dev->hsa.on || !dev->inflight))
		return 0;
	if (!dev->inflight)
		return UINT64_MAX;
	if (8 * nap < AWAKE_NS)
		return 0;
	if (dev->stuck == dev->inflight)
		return hal_bk_after(now, ASK_NS);
	return hal_bk_after(now, nap > SLEEP_NS ? SLEEP_NS : nap);
}

/* ---- preemption -------------------------------------------------------------------- */

int rocm_suspend(void *device, void *queue, uint32_t mode, uint64_t cookie)
{
	struct rocm_device *dev = device;
	struct rocm_queue *q = queue;
	int err = 0;

	if (mode != HAL_SUSPEND_DRAIN && (mode != HAL_SUSPEND_FOLD || !q->stops) &&
	    (mode != HAL_SUSPEND_KILL || !q->aql))
		return rocm_host->fail(ENOTSUP,
				       "rocm: suspend mode %u is not supported: a "
				       "launched command runs to its end",
				       mode);
	if (q->suspended)
		return rocm_host->fail(EBUSY, "rocm: the queue is suspended already");
	if (mode == HAL_SUSPEND_KILL && !q->broken && !atomic_load(&dev->lost))
		err = drop(dev, q);
	if (err)
		return err;
	q->suspended = q->quiet_due = true;
	dev->progress_ns = rocm_now(dev);
	q->quiet_cookie = cookie;
	if (mode == HAL_SUSPEND_FOLD)
		rocm_stops_raise(dev, q);
	return 0;
}

int rocm_resume(void *device, void *queue)
{
	struct rocm_queue *q = queue;

	if (!q->suspended)
		return rocm_host->fail(EINVAL, "rocm: the queue is not suspended");
	if (q->quiet_due)
		return rocm_host->fail(EBUSY, "rocm: the queue is still being suspended; "
					      "it can resume when that has completed");
	q->suspended = false;
	if (q->stops)
		rocm_stops_go_on(device, q);
	return 0;
}

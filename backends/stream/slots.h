/* SPDX-License-Identifier: Apache-2.0 */
/*
 * slots.h - what queues of a vendor's device have in common.
 *
 * A queue is a ring of slots, one for each command that the device has.  A vendor's
 * device, partition, queue and slot each begin with the structure of that name here, as
 * their member .base, so that a pointer to one is a pointer to the other.  The engine
 * alone uses them, except for the members that say otherwise.
 *
 * Before a file includes this header it defines STREAM_NAME, the backend's name as a
 * string, for messages, and STREAM_HOST, a const struct hal_host *.  It may define:
 *
 * STREAM_HUNG: the fault of a command that took longer than its bound, which is %u, in
 * ms.
 *
 * STREAM_INFLIGHT_ALL: the limit on the commands of all queues of a device, if the driver
 * blocks beyond it.
 *
 * STREAM_CHECK_NS and STREAM_CHECK_ALL: how long a command must have taken before the
 * driver is asked whether all is well, 10 ms else; and whether under the virtual clock it
 * is asked at each step instead, which it is else.
 */
#ifndef BACKENDS_STREAM_SLOTS_H
#define BACKENDS_STREAM_SLOTS_H

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <hal/backend.h>

#ifndef STREAM_HUNG
#define STREAM_HUNG "hung for %u ms"
#endif
#ifndef STREAM_CHECK_NS
#define STREAM_CHECK_NS  UINT64_C(10000000)
#define STREAM_CHECK_ALL true
#endif
#ifndef STREAM_INFLIGHT_ALL
#define STREAM_INFLIGHT_ALL UINT32_MAX
#endif

/* Return -errno and keep the text; the parentheses are for tests, whose cmocka has a
 * macro fail(). */
#define STREAM_FAIL(...) ((STREAM_HOST->fail)(__VA_ARGS__))

/* Inline into the vendor's function: the path of a submit costs no call. */
#define STREAM_INLINE static inline __attribute__((always_inline, unused))
/* The rest; a file need not use all of them. */
#define STREAM_FN static __attribute__((unused))

struct stream_partition {
	struct hal_bk_partition_desc desc;
	atomic_uint queues;                   /* any thread */
	atomic_uint buffers;                  /* any thread */
	struct stream_partition *moving_next; /* in stream_device.moving */
	bool moving;                          /* resized, and QUIET not reported yet */
	uint64_t moving_cookie;
	uint32_t moving_left; /* commands in flight that were submitted before the move */
};

/* What a backend that includes marks.h keeps for a kernel. */
struct stream_kernel {
	uint32_t until_sample; /* launches before the next one that is measured */
	uint64_t took_ns;      /* when it was last measured; 0: never */
};

/* A command in flight. */
struct stream_slot {
	struct hal_bk_cmd cmd;
	uint32_t number; /* the queue's progress when the command has ended */
	/* These five are next to each other, so that few stores clear them. */
	bool stamping; /* a late command: the device has the rest of it */
	bool stops;    /* a launch whose blocks read a stop flag */
	/* Of a backend that includes marks.h: the command is measured; it is no work for
	 * the device; a mark follows it. */
	bool timed, idle, marked;
	bool late;  /* COPY: see stream_is_late */
	bool waits; /* a launch that stops: not all of it has been submitted */
	/* A launch that stops: blocks launched; how many of them did not run, once that
	 * is known; which of the slot's two lists has their numbers. */
	uint32_t blocks, stopped, list;
	/* Of one that has been seen to end: how long it ran, and how much later it ended
	 * than the command before it. */
	uint64_t took_ns, after_ns;
};

/* How far the launches of a queue, whose blocks look at a flag, are from being stopped by
 * FOLD; see stop.h. */
struct stream_stops {
	bool folding; /* flags were raised, or what they stopped is kept, until resume */
	bool settled; /* ... and it is known which blocks they stopped */
};

struct stream_queue {
	struct stream_queue *older, *newer;        /* in stream_device.queues */
	struct stream_queue *busy_next, **busy_at; /* in stream_device.busy */
	struct stream_partition *part;
	uint32_t slot_count, head, count;
	uint32_t before; /* of .count: submitted before the partition moved */
	uint32_t given;  /* .number of the last command submitted */
	/* Of a backend that includes marks.h: .given at the last mark; launches of one
	 * mark; the least time between submission and a seen end that is no run time; a
	 * command in flight is measured; the last command took long. */
	uint32_t marked, every;
	uint64_t lag_ns;
	bool timing, lengthy;
	bool fresh; /* its oldest command was submitted while it was empty, at .head_ns */
	uint32_t seen;                   /* of .count: their times are in the slots */
	uint64_t seen_ns, seen_after_ns; /* see stream_measure */
	uint64_t last_end_ns;
	uint64_t head_ns;    /* when its oldest command became the oldest */
	uint64_t checked_ns; /* when the driver was last asked about its oldest command */
	uint32_t round;      /* stream_device.round of that time, or of its last end */
	uint32_t refused;    /* failing queries in a row */
	bool busy;           /* in stream_device.busy */
	bool suspended, quiet_due;
	bool fenced;   /* a late command is in flight: submit nothing after it */
	bool broken;   /* it takes no more commands; .fault says why */
	bool reported; /* ... and the command that failed has been reported */
	bool wrong;    /* the oldest command has ended, but wrongly: it broke the queue */
	bool hangs;    /* given up while the device still has something of it */
	bool late;     /* destroyed before its work had ended; close waits for it */
	bool unsure;  /* some number will not be written: only the driver knows the end */
	bool foreign; /* its stream belongs to the application */
	uint64_t quiet_cookie;
	struct stream_stops *stops; /* NULL: its launches run to their end */
	char fault[sizeof(((struct hal_bk_event *)NULL)->fault)];
};

struct stream_device {
	uint32_t inflight_max; /* commands of a queue */
	uint64_t hang_ns;      /* a command that takes longer is given up; 0: none is */
	bool virtual_clock;
	/* Of .queues and of which units a partition has: threads create queues while the
	 * engine resizes partitions. */
	pthread_mutex_t queues_lock;
	struct stream_queue *queues; /* all, newest first */
	struct stream_queue *busy;   /* those that poll reads */
	struct stream_queue
		*hanging; /* destroyed while the device had something of them */
	struct stream_partition *moving;
	uint32_t inflight; /* commands on the device, and one for each queue that hangs */
	uint32_t hangs;
	uint32_t round;        /* virtual clock: steps of the time so far */
	uint64_t progress_ns;  /* when a command last began or ended */
	uint64_t zero_ns;      /* where device time begins, on the clock that is read */
	atomic_ullong last_ns; /* any thread: virtual time */
	atomic_uint lost; /* any thread: the vendor's result that said so; 0: is not */
};

/* What the driver answers when it is asked about a queue. */
enum stream_answer {
	STREAM_RUNS,  /* the queue has not come to its end */
	STREAM_EMPTY, /* all that it was given has ended */
	STREAM_ERROR, /* an error that does not say that the device is lost */
};

/* Return whether the engine gives the device the rest of a command only when all that
 * came before has ended: the value of a TIMESTAMP, and a COPY if the vendor has set
 * .late.  No command is submitted behind it. */
STREAM_INLINE bool stream_is_late(const struct stream_slot *s)
{
	return s->cmd.op == HAL_OP_TIMESTAMP || (s->cmd.op == HAL_OP_COPY && s->late);
}

/* ---- clock -------------------------------------------------------------------------- */

/* Return the device time: the host's clock, or the fake driver's as last read. */
STREAM_INLINE uint64_t stream_now(const struct stream_device *dev)
{
	struct timespec ts;

	if (dev->virtual_clock)
		return atomic_load(&((struct stream_device *)dev)->last_ns);
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec - dev->zero_ns;
}

/* Set the virtual time to now, on the fake driver's clock.  Any thread; several may have
 * read that clock, so the time never goes back. */
STREAM_FN void stream_raise(struct stream_device *dev, uint64_t now)
{
	unsigned long long last = atomic_load(&dev->last_ns);

	while (last < now - dev->zero_ns &&
	       !atomic_compare_exchange_weak(&dev->last_ns, &last, now - dev->zero_ns))
		;
}

/* ---- lists of queues ---------------------------------------------------------------- */

/* Add a new queue, whose .part is set.  .queues_lock is held. */
STREAM_FN void stream_enter(struct stream_device *dev, struct stream_queue *q)
{
	q->newer = NULL;
	q->older = dev->queues;
	if (q->older)
		q->older->newer = q;
	dev->queues = q;
	atomic_fetch_add(&q->part->queues, 1);
}

/* Have poll read q. */
STREAM_INLINE void stream_watch(struct stream_device *dev, struct stream_queue *q)
{
	if (__builtin_expect(q->busy, 1))
		return;
	q->busy = true;
	q->busy_next = dev->busy;
	q->busy_at = &dev->busy;
	if (q->busy_next)
		q->busy_next->busy_at = &q->busy_next;
	dev->busy = q;
}

/* Have poll read q no more. */
STREAM_FN void stream_unwatch(struct stream_queue *q)
{
	if (!q->busy)
		return;
	q->busy = false;
	*q->busy_at = q->busy_next;
	if (q->busy_next)
		q->busy_next->busy_at = q->busy_at;
}

/* ---- the ring ----------------------------------------------------------------------- */

/* Return the place in the ring of the i-th oldest command in flight. */
STREAM_INLINE uint32_t stream_at(const struct stream_queue *q, uint32_t i)
{
	const uint32_t at = q->head + i;

	return at < q->slot_count ? at : at - q->slot_count;
}

/* Return the slot at that place.  The backend's own header defines it. */
static inline struct stream_slot *vendor_slot(struct stream_queue *q, uint32_t at);

/* Return the slot of the i-th oldest command in flight; .count: the next free one. */
STREAM_INLINE struct stream_slot *stream_slot(struct stream_queue *q, uint32_t i)
{
	return vendor_slot(q, stream_at(q, i));
}

STREAM_FN uint32_t stream_count_stopped(struct stream_queue *q)
{
	uint32_t i, n = 0;

	for (i = 0; i < q->count; i++)
		n += stream_slot(q, i)->stopped != 0;
	return n;
}

/* Return how many commands FOLD keeps: the last ones of the ring.  They do not run. */
STREAM_INLINE uint32_t stream_kept(struct stream_queue *q)
{
	return q->stops && q->stops->settled ? stream_count_stopped(q) : 0;
}

STREAM_INLINE bool stream_lost(const struct stream_device *dev)
{
	return __builtin_expect(atomic_load_explicit(&((struct stream_device *)dev)->lost,
						     memory_order_relaxed) != 0,
				0);
}

/* Return whether a device whose progress is at has reached number.  Both count modulo
 * 2^32; less than 2^31 numbers are in flight. */
STREAM_INLINE bool stream_reached(uint32_t at, uint32_t number)
{
	return (int32_t)(at - number) >= 0;
}

/* Return 0 if q takes another command now. */
STREAM_INLINE int stream_takes(const struct stream_device *dev,
			       const struct stream_queue *q)
{
	if (__builtin_expect(q->count != dev->inflight_max && !q->suspended &&
				     !q->fenced && !q->broken &&
				     (STREAM_INFLIGHT_ALL == UINT32_MAX ||
				      dev->inflight - dev->hangs < STREAM_INFLIGHT_ALL),
			     1))
		return 0;
	return q->reported ? STREAM_FAIL(EIO, STREAM_NAME ": %s", q->fault) : -EAGAIN;
}

/* Count the command in the slot after the last one as in flight. */
STREAM_INLINE void stream_push(struct stream_device *dev, struct stream_queue *q,
			       uint64_t now_ns)
{
	dev->progress_ns = now_ns;
	if (!q->count++) {
		q->head_ns = now_ns;
		q->round = dev->round;
		q->fresh = true;
		stream_watch(dev, q);
	}
	dev->inflight++;
}

/* Remove the oldest command, at now_ns. */
STREAM_INLINE void stream_pop(struct stream_device *dev, struct stream_queue *q,
			      const struct stream_slot *oldest, uint64_t now_ns)
{
	/* Commands before a late one may end without admitting others after it. */
	if (stream_is_late(oldest))
		q->fenced = false;
	q->head = stream_at(q, 1);
	q->count--;
	if (q->seen)
		q->seen--;
	dev->inflight--;
	if (q->before) {
		q->before--;
		q->part->moving_left--;
	}
	dev->progress_ns = q->head_ns = now_ns;
	q->round = dev->round;
	q->fresh = false;
}

/* Say why the queue takes no more commands.  The first reason stays. */
__attribute__((format(printf, 2, 3))) STREAM_FN void stream_break(struct stream_queue *q,
								  const char *fmt, ...)
{
	va_list ap;

	if (q->broken)
		return;
	va_start(ap, fmt);
	vsnprintf(q->fault, sizeof(q->fault), fmt, ap);
	va_end(ap);
	q->broken = true;
}

/* ---- events ------------------------------------------------------------------------- */

STREAM_INLINE struct hal_bk_event stream_event(uint32_t kind, uint64_t cookie,
					       uint64_t ns)
{
	return (struct hal_bk_event){
		.kind = kind, .cookie = cookie, .start_ns = ns, .end_ns = ns};
}

/* Set e's bytes to what a command that has completed moved. */
STREAM_INLINE void stream_count_bytes(const struct hal_bk_cmd *cmd,
				      struct hal_bk_event *e)
{
	if (cmd->op == HAL_OP_COPY)
		e->bytes_read = e->bytes_written = cmd->copy.bytes;
	else if (cmd->op == HAL_OP_FILL)
		e->bytes_written = cmd->fill.bytes;
	else if (cmd->op == HAL_OP_TIMESTAMP)
		e->bytes_written = sizeof(uint64_t);
}

/* ---- suspend ------------------------------------------------------------------------ */

/* Return 0 if q can be suspended in mode; mode_supported: the device can do it. */
STREAM_FN int stream_suspend_check(const struct stream_queue *q, bool mode_supported,
				   uint32_t mode)
{
	if (!mode_supported)
		return STREAM_FAIL(ENOTSUP,
				   STREAM_NAME
				   ": suspend mode %u is not supported: a launched "
				   "command runs to its end",
				   mode);
	if (q->suspended)
		return STREAM_FAIL(EBUSY, STREAM_NAME ": the queue is suspended already");
	return 0;
}

/* End the suspension of q.  Return 0 if it had been reported. */
STREAM_FN int stream_resume(struct stream_queue *q)
{
	if (!q->suspended)
		return STREAM_FAIL(EINVAL, STREAM_NAME ": the queue is not suspended");
	if (q->quiet_due)
		return STREAM_FAIL(EBUSY, STREAM_NAME
				   ": the queue is still being suspended; it can "
				   "resume when that has completed");
	q->suspended = false;
	return 0;
}

/* ---- resize ------------------------------------------------------------------------- */

/* Report QUIET for part, which has new units, once the commands that were submitted
 * before have ended. */
STREAM_FN void stream_move(struct stream_device *dev, struct stream_partition *part,
			   uint64_t cookie)
{
	part->moving = true;
	part->moving_cookie = cookie;
	part->moving_next = dev->moving;
	dev->moving = part;
}

/* Count q's commands on the device: they run where the partition was. */
STREAM_FN void stream_move_queue(struct stream_queue *q)
{
	q->before = q->count - stream_kept(q);
	q->part->moving_left += q->before;
}

/* Report the partitions that have moved. */
STREAM_FN uint32_t stream_moved(struct stream_device *dev, uint64_t now_ns,
				struct hal_bk_event *ev, uint32_t max)
{
	struct stream_partition **at = &dev->moving, *part;
	uint32_t n = 0;

	while ((part = *at) && n < max) {
		if (part->moving_left) {
			at = &part->moving_next;
			continue;
		}
		*at = part->moving_next;
		part->moving = false;
		ev[n++] = stream_event(HAL_BK_QUIET, part->moving_cookie, now_ns);
	}
	return n;
}

/* Return whether poll can report a partition at once. */
STREAM_FN bool stream_has_moved(const struct stream_device *dev)
{
	const struct stream_partition *part = dev->moving;

	while (part && part->moving_left)
		part = part->moving_next;
	return part;
}

#endif

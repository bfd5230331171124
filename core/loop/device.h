/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device.h - an open device: what any thread may look at, and what its engine owns.
 *
 *   application threads                   engine (one a device)
 *     submit ---- ring of the queue ---->  turn: take in, decide, act
 *     anything else ---- letters ------->
 *     values, statistics <--- atomics ---
 *
 * The engine of clock=real is a thread.  Under clock=virtual whoever has the baton is the
 * engine: threads that wait lend themselves, others take it for a moment to have a letter
 * read.  A thread only ever tries to get it, so nobody waits for a baton while he has
 * one.
 */
#ifndef HAL_LOOP_DEVICE_H
#define HAL_LOOP_DEVICE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <hal/backend.h>
#include <hal/policy.h>

#include "loop/wake.h"
#include "observe/account.h"
#include "space/place.h"
#include "util/heap.h"
#include "util/list.h"
#include "util/pool.h"

struct decisions;
struct flight;
struct hal_queue;
struct journal;
struct opened;
struct player;
struct profile;
struct record;
struct recolor;
struct trace;

/* Called by the engine when device time has reached node.key. */
struct timer {
	struct heap_node node;
	void (*fn)(struct hal_device *dev, struct timer *t);
	bool set;
};

/* The callbacks of clock=real: a thread of their own, made for the first of them. */
struct callbacks {
	pthread_mutex_t start; /* of .thread, by those who submit the first */
	pthread_t thread;
	atomic_bool running;
	_Atomic(struct hal_queue *) list; /* pushed by the engine */
	atomic_uint wake;                 /* futex */
	atomic_bool stop;
};

/* Partitions that are moved as one (plan.c): for the policy, or to make room (compact.c).
 */
struct plan {
	uint32_t count;
	uint32_t open;          /* that have not moved yet; 0: there is no plan */
	struct place_rect room; /* that is made; held until somebody has come for it */
	/* Plans that are over; NULL: nobody has ever waited for one. */
	struct hal_timeline *over;
	uint64_t over_count;
	/* A partition has moved, or has not, as part of the plan or not; NULL: there has
	 * been no plan. */
	void (*moved)(struct hal_partition *part, bool well);
	struct plan_move {
		struct hal_partition *part;
		struct place_rect from, to;
		uint32_t waits; /* for so many of the others */
		uint32_t state; /* enum plan_state */
	} move[HAL_POLICY_MOVES];
};

enum { HAL_CLASSES = HAL_CLASS_BEST_EFFORT + 1 };

/* How one makes way for another; the first is chosen each time. */
enum preempt {
	PREEMPT_BEST,
	PREEMPT_DRAIN,
	PREEMPT_FOLD,
	PREEMPT_SAVE,
	PREEMPT_KILL,
	PREEMPT_NEVER,
};

/* Who makes way for whom; each is more than those before it. */
enum preempt_for {
	PREEMPT_FOR_CLASS,    /* best effort for latency-critical work */
	PREEMPT_FOR_DEADLINE, /* whoever is less urgent, for what has a deadline */
	PREEMPT_FOR_PRIORITY, /* and a lower priority for a higher one */
};

/* What [policy] says for all policies. */
struct policy_limits {
	uint64_t starve_ns;   /* a runnable queue waits no longer */
	uint64_t unknown_ns;  /* a command is taken to run, if nothing is known */
	uint32_t kills;       /* of a command; then it runs to its end */
	uint32_t preempt;     /* enum preempt */
	uint32_t preempt_for; /* enum preempt_for */
	bool inherit;         /* who is waited for has what who waits has */
};

/* hal_device.work */
#define WORK_TODO      1u  /* perhaps something on todo or runnable */
#define WORK_BLOCKED   2u  /* something on blocked */
#define WORK_TIMERS    4u  /* .timer_ns is set */
#define WORK_CALLBACKS 8u  /* .callbacks_begun is not 0 */
#define WORK_JOURNAL   16u /* what it does is written down, or replayed */
#define WORK_UNREAD    32u /* a callback has sent what is not read yet (clock=virtual) */
#define WORK_HELD      64u /* a partition's queues are held while others run */

/* What is told to whoever writes a trace (core/observe/trace.c), in device time. */
struct observer {
	/* f has ended. */
	void (*command)(struct hal_device *dev, const struct flight *f,
			const struct hal_bk_event *ev);
	/* f, which has not ended, ran for a while. */
	void (*stretch)(struct hal_device *dev, const struct flight *f, uint64_t start_ns,
			uint64_t end_ns);
	void (*instant)(struct hal_device *dev, const struct hal_queue *queue,
			const char *name, uint64_t at_ns);
	void (*span)(struct hal_device *dev, const struct hal_queue *queue,
		     const char *name, uint64_t start_ns, uint64_t end_ns);
	/* The number of commands of part on the device may be another. */
	void (*depth)(struct hal_device *dev, const struct hal_partition *part,
		      uint64_t at_ns);
};

/* Tell the observer, if there is one. */
#define OBSERVED(dev, what, ...)                                                         \
	do {                                                                             \
		if (UNLIKELY((dev)->trace != NULL))                                      \
			(dev)->observer->what((dev), __VA_ARGS__);                       \
	} while (0)

/* What is told to whoever writes a journal (core/replay/journal.h). */
struct recorder {
	void (*write)(struct journal *j, uint32_t kind, const uint64_t *n,
		      uint32_t count);
	void (*look)(struct hal_device *dev, uint64_t until_ns, bool idle);
	void (*raised)(const struct hal_timeline *t, uint64_t value, int err);
	void (*taken)(struct hal_queue *q, unsigned int tail);
};

/* What memory does when a turn or a stop tells it of something (core/memory/residency.c).
 */
struct residency {
	/* As recolor.h and bimodal.h say. */
	int (*begin)(struct recolor *m);
	int (*end)(struct recolor *m, int dropped);
	void (*put)(struct recolor *m);
	int (*lets)(struct hal_queue *q, const struct record *r);
	void (*look)(struct hal_queue *q);
	void (*wake)(struct hal_partition *part);
};

/* How partitions move, for who is below their places (core/space/moves.c). */
struct moves {
	/* As resize.h and plan.h say. */
	int (*units)(struct hal_partition *part, uint32_t units);
	int (*plan)(struct hal_device *dev, const struct hal_policy_move *moves,
		    uint32_t count);
	void (*done)(const struct hal_bk_event *ev);
	void (*lost)(struct hal_partition *part);
};

/* What a turn tells the scheduler, which is above it (core/sched/turn.c). */
struct turn_listener {
	/* The policy asks something of q, what q is lent has changed, or q is urgent; at
	 * the turn's own level. */
	void (*todo)(struct hal_queue *q);
	/* The policy is not in force any more, or has kept q stopped for too long. */
	void (*release)(struct hal_queue *q);
	/* q has begun to wait for a point, by .waiter. */
	void (*waits)(struct hal_queue *q);
	/* A command of q, which is being suspended, has ended. */
	void (*ended)(struct hal_queue *q);
	/* The device has let go of a queue. */
	void (*quiet)(const struct hal_bk_event *ev);
	/* The device is lost, with what it keeps of suspended queues. */
	void (*thaw_all)(struct hal_device *dev);
	/* The device will not let go of q any more. */
	void (*lost)(struct hal_queue *q);
};

/* hal_device.intake */
#define INTAKE_SLEPT   1u /* what has no time was submitted while it slept */
#define INTAKE_JOURNAL 2u /* what is taken in is written down */

struct hal_device {
	struct object obj;

	/* Constant once it is open. */
	const struct hal_backend *table; /* the backend's, or of the layers before it */
	struct hal_bk_hot hot;           /* a copy: a step less to each */
	void *bk;
	void *hot_bk; /* what .hot is handed: .bk, or what writes it down or replays it */
	/* So many events of a poll, if it is a command that has ended, are served there
	 * and then: 1; none such (-1) where a doorbell is rung behind what is given. */
	int served_at_once;
	bool virtual_clock;
	atomic_bool polled; /* the program moves its virtual clock by hal_device_poll */
	char name[32];
	unsigned int number; /* of the devices that this process has opened, from 0 */
	struct hal_device_info info; /* but for .memory_free and .lost */
	uint32_t bk_suspend_modes;   /* the device's own; info has the core's DRAIN too */
	uint32_t queue_slots, inflight, partition_inflight;
	uint32_t compact; /* partitions moved to make room for one, at most */
	bool oversubscribe;
	uint64_t spin_ns;
	struct opened *opened;   /* what it was opened with; core/api */
	struct profile *profile; /* NULL: none; what is learned in it is the engine's */

	/* Any thread's. */
	_Atomic uint64_t now_cached; /* device time; SUBMIT_ASLEEP while it sleeps */
	_Atomic uint64_t woken_ns;   /* host time when somebody last woke it */
	struct inbox inbox;
	atomic_int lost;      /* -ENODEV: it does not answer any more */
	char lost_why[160];   /* written before that */
	counter ended;        /* commands; the engine counts */
	counter memory_taken; /* promised to partitions, or used by those without quota */
	atomic_uint timelines, programs, rings;
	atomic_uint baton;           /* clock=virtual: 1 while somebody is the engine */
	int cancel;                  /* his: pthread_setcancelstate before that */
	atomic_uint lenders;         /* threads that sleep until it is free, on .lend */
	atomic_uint lend;            /* futex: counts up when they should look */
	atomic_uint callbacks_begun; /* that have not returned; the engine counts */

	/* To write, by whoever changes the lists of partitions and queues, over the
	 * letter that has it done; to read, by whoever walks them; never the engine's. */
	pthread_rwlock_t shape;
	_Atomic uint64_t ended_reported;
	/* By whoever starts a trace, also while its file is opened. */
	pthread_mutex_t trace_start;
	/* By whoever has others moved to make room, until it has had that. */
	pthread_mutex_t room;

	/* The engine's. */
	uint64_t now;
	bool acted;     /* something was done in this turn */
	uint8_t work;   /* WORK_* */
	uint8_t intake; /* INTAKE_* */
	struct list partitions, programs_loaded;
	struct list todo;     /* queues with something to do that is not the device's */
	struct list runnable; /* partitions to serve */
	struct list blocked;  /* partitions whose device queue was full */
	struct list flights;
	struct list recolors; /* buffers that are being moved */
	const struct hal_queue
		*retiring; /* whose records end that are not the device's */
	struct heap timers;
	uint64_t timer_ns; /* the first of them, or of the next three; UINT64_MAX: none */
	uint64_t alarm_ns; /* the policy's */
	uint64_t hold_ns;  /* until which it names nobody, the first of all partitions' */
	uint64_t stops_ns; /* until which somebody may be stopped by it */
	uint32_t held;     /* partitions of which it names nobody */
	bool picking;      /* it is being asked whose turn it is */
	struct policy_limits limits; /* changes with the policy */
	uint32_t pending; /* flights, suspends and resizes the device owes us */
	uint32_t partition_count;
	uint32_t next_queue_id, next_timeline_id;
	uint64_t *partition_map; /* index taken */
	struct place place;
	struct plan plan;
	struct busy ran;
	struct account past; /* of its destroyed partitions */
	struct trace *trace;
	const struct observer *observer; /* of .trace */
	struct journal *journal;         /* NULL: nothing is written down */
	const struct recorder *recorder; /* of .journal */
	const struct player *player;     /* NULL: nothing is replayed */
	struct decisions *decisions;     /* NULL: nobody is to look at them */
	const struct turn_listener *listener;
	const struct residency *residency;
	const struct moves *moves;
	/* policy.h */
	const struct hal_policy *policy;
	uint64_t policy_ns; /* since when */
	struct hal_bk_config *policy_cfg;
	void *policy_state;
	const struct hal_host *services; /* for it */
	struct hal_policy_host policy_host;
	struct policy_faults {
		counter invalid, stalls, starved, longest_wait_ns;
		uint32_t window;
		uint64_t window_ns;
		atomic_bool fallback;
		_Atomic(const char *) reason;
	} faults;

	/* clock=real */
	bool (*turn)(struct hal_device *dev, uint64_t until_ns, bool idle);
	pthread_t thread;
	bool has_thread;
	atomic_bool stop;
	int wake_fd, event_fd;
	struct callbacks callbacks;
};

/* Asks the device for its time. */
static inline void device_now(struct hal_device *dev)
{
	dev->now = dev->hot.now(dev->hot_bk);
	atomic_store_explicit(&dev->now_cached, dev->now, memory_order_relaxed);
}

#endif

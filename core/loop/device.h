/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device.h - an open device: the state that any thread may read, and the engine's own.
 *
 *   application threads                     engine (one per device)
 *     hal_submit --- ring of the queue --->  engine turn: read, decide, act, poll
 *     other calls --- messages ----------->
 *     values, statistics <--- atomics -----
 *
 * With clock=real the engine is a thread.  With clock=virtual the thread that holds the
 * engine lock is the engine: a thread in hal_wait or hal_device_poll runs turns while it
 * holds the lock, and a thread that sends a message takes it for a moment to have the
 * message read.  Threads only try to take the lock, so none waits for it while holding
 * it.
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

struct arrangement;
struct courier;
struct decisions;
struct inflight;
struct hal_queue;
struct journal;
struct opened;
struct player;
struct profile;
struct record;
struct recolor;
struct trace;

/* Calls fn from the engine when device time has reached node.key. */
struct timer {
	struct heap_node node;
	void (*fn)(struct hal_device *dev, struct timer *t);
	bool set;
};

/* Host functions of clock=real run on a thread of their own, started with the first. */
struct callbacks {
	pthread_mutex_t start; /* guards the start of .thread */
	pthread_t thread;
	atomic_bool running;
	_Atomic(struct hal_queue *) list; /* to be called; pushed by the engine */
	atomic_uint wake;                 /* futex: changes with each push */
	atomic_bool stop;
};

/* A plan: partitions that are moved together, for the policy (plan.c) or to free a
 * rectangle for another partition (compact.c). */
struct plan {
	uint32_t count;
	uint32_t open; /* members that have not moved yet; 0: there is no plan */
	/* Rectangle to free.  Reserved until the partition that it is for occupies it. */
	struct place_rect room;
	/* Counts finished plans; NULL: no thread has ever waited for one. */
	struct hal_timeline *over;
	uint64_t over_count;
	/* The application's moves that the plan is a phase of (arrange.c); else NULL. */
	struct arrangement *arrangement;
	/* Called after each move of any partition, whether it succeeded (status 0) or
	 * failed, and whether it belongs to a plan or not.  why is the device's text or
	 * "".  NULL until the first plan. */
	void (*moved)(struct hal_partition *part, int status, const char *why);
	struct plan_move {
		struct hal_partition *part;
		struct place_rect from, to;
		uint32_t units; /* requested by the policy */
		uint32_t waits; /* members that must move before this one */
		uint32_t state; /* enum plan_state */
	} move[HAL_POLICY_MOVES];
};

enum { HAL_CLASSES = HAL_CLASS_BEST_EFFORT + 1 };

/* How a less urgent queue is preempted. */
enum preempt {
	/* Choose at each preemption: of the modes that stop in time for the urgent
	 * queue, the one that loses least work. */
	PREEMPT_BEST,
	PREEMPT_DRAIN,
	PREEMPT_FOLD,
	PREEMPT_SAVE,
	PREEMPT_KILL,
	PREEMPT_NEVER,
};

/* Which queues may be preempted for which others.  Each value includes those before it.
 */
enum preempt_for {
	PREEMPT_FOR_CLASS,    /* best effort for latency-critical */
	PREEMPT_FOR_DEADLINE, /* any less urgent queue for one with a deadline */
	PREEMPT_FOR_PRIORITY, /* lower priority for higher */
};

/* Options of section [policy] that hold under every policy. */
struct policy_limits {
	uint64_t starve_ns;   /* longest wait of a runnable queue */
	uint64_t unknown_ns;  /* assumed run time of a command without history */
	uint32_t kills;       /* kills of one command; after that it runs to its end */
	uint32_t preempt;     /* enum preempt */
	uint32_t preempt_for; /* enum preempt_for */
	bool inherit;         /* a queue inherits the urgency of its waiters */
};

/* hal_device.work: what the next engine turn must handle. */
#define WORK_TODO      1u  /* .command.todo or .runnable may not be empty */
#define WORK_BLOCKED   2u  /* .command.blocked is not empty */
#define WORK_TIMERS    4u  /* .timer_ns is set */
#define WORK_CALLBACKS 8u  /* .command.callbacks_begun is not 0 */
#define WORK_JOURNAL   16u /* the run is recorded or replayed */
#define WORK_UNREAD    32u /* a callback has sent an unread message (clock=virtual) */
#define WORK_HELD      64u /* the policy names no queue of a partition for now */

/* Receives what a trace shows (core/observe/trace.c), with device times. */
struct observer {
	/* In-flight command f has completed. */
	void (*command)(struct hal_device *dev, const struct inflight *f,
			const struct hal_bk_event *ev);
	/* f, which has not completed, ran from start_ns to end_ns. */
	void (*stretch)(struct hal_device *dev, const struct inflight *f,
			uint64_t start_ns, uint64_t end_ns);
	/* An event without duration (name) happened to queue at at_ns. */
	void (*instant)(struct hal_device *dev, const struct hal_queue *queue,
			const char *name, uint64_t at_ns);
	/* queue was in the state that name says, from start_ns to end_ns. */
	void (*span)(struct hal_device *dev, const struct hal_queue *queue,
		     const char *name, uint64_t start_ns, uint64_t end_ns);
	/* The number of part's in-flight commands may have changed. */
	void (*depth)(struct hal_device *dev, const struct hal_partition *part,
		      uint64_t at_ns);
};

/* Notify the observer, if a trace is being written. */
#define OBSERVED(dev, what, ...)                                                         \
	do {                                                                             \
		if (UNLIKELY((dev)->observe.trace != NULL))                              \
			(dev)->observe.observer->what((dev), __VA_ARGS__);               \
	} while (0)

/* Receives what a journal records (core/replay/journal.h). */
struct recorder {
	/* Write a line of kind (enum journal_kind) with count numbers. */
	void (*write)(struct journal *j, uint32_t kind, const uint64_t *n,
		      uint32_t count);
	/* The engine is about to poll the device, with these arguments. */
	void (*before_poll)(struct hal_device *dev, uint64_t until_ns, bool idle);
	/* The engine has read that another thread or device raised t, or made it fail. */
	void (*raised)(const struct hal_timeline *t, uint64_t value, int err);
	/* The engine has accepted the records of q up to tail. */
	void (*accepted)(struct hal_queue *q, unsigned int tail);
};

/* Calls from core/command and core/sched to core/memory, which is above them
 * (core/memory/residency.c). */
struct residency {
	/* Recolour (recolor.h): begin it at REC_RECOLOR, end it at REC_RECOLORED, and
	 * release one of its references. */
	int (*begin)(struct recolor *m);
	int (*end)(struct recolor *m, int dropped);
	void (*put)(struct recolor *m);
	/* Return 1 if r, the next command of the watched queue q, may be submitted to the
	 * device; 0 if q has been parked; -errno if it never may. */
	int (*lets)(struct hal_queue *q, const struct record *r);
	/* The device has ended a command of the watched queue q, or q is about to drop
	 * its commands. */
	void (*look)(struct hal_queue *q);
	/* Re-evaluate the queues of part that wait for another placement (bimodal.h). */
	void (*wake)(struct hal_partition *part);
	/* memory_check (memory/check.h); NULL in a build with NDEBUG. */
	void (*check)(struct hal_device *dev);
};

/* Calls from lower modules to core/space, which moves partitions (core/space/moves.c). */
struct moves {
	/* Carry out the policy's request to give part another number of units. */
	int (*units)(struct hal_partition *part, uint32_t units);
	/* Carry out the policy's request for a plan of count moves. */
	int (*plan)(struct hal_device *dev, const struct hal_policy_move *moves,
		    uint32_t count);
	/* The device reports the end of a resize. */
	void (*done)(const struct hal_bk_event *ev);
	/* The device is lost: fail a resize of part that is under way. */
	void (*lost)(struct hal_partition *part);
	/* space_check (space/check.h); NULL in a build with NDEBUG. */
	void (*check)(struct hal_device *dev);
};

/* Calls from core/command to core/sched, which is above it (core/sched/turn.c). */
struct turn_listener {
	/* Carry out what is pending for q: a request of the policy, a change of its
	 * inherited urgency, or preemption for it.  Top level of a turn only. */
	void (*todo)(struct hal_queue *q);
	/* Resume q, which the policy keeps suspended: the policy is replaced, or q has
	 * been suspended for too long. */
	void (*release)(struct hal_queue *q);
	/* q has begun to wait for the point in its .waiter. */
	void (*waits)(struct hal_queue *q);
	/* The device has ended a command of q, whose suspend is under way. */
	void (*ended)(struct hal_queue *q);
	/* The device reports that it has stopped working for a queue being suspended. */
	void (*quiet)(const struct hal_bk_event *ev);
	/* The device is lost, and with it the state that it kept of suspended queues. */
	void (*thaw_all)(struct hal_device *dev);
	/* The device will never finish the suspend of q. */
	void (*lost)(struct hal_queue *q);
};

enum { WATCHED_MAX = 8, WATCH_BUSY_TURNS = 4 };

/* A word that the engine reads in every turn (watch.h). */
struct watched {
	struct message *message; /* of the sender that writes the word */
	WAKE_WORD *announced;
	const WAKE_WORD *word;
	message_fn fn;     /* called for a change */
	unsigned int seen; /* value of the word when it was last read */
	uint32_t quiet;    /* turns since its last change */
	bool fenced;       /* the sender passes a barrier of its own */
};

/* Submissions at short intervals that callers serve before they wake the engine's thread.
 * Each takes about 100 ns longer than to a thread that is awake.  Together they cost half
 * of a wake-up where one is cheapest, 3 us. */
enum { LENT_OFTEN = 16 };

/* hal_device.intake: flags for the engine when it accepts records. */
#define INTAKE_SLEPT                                                                     \
	1u /* the engine slept: records may lack a submit time (SUBMIT_ASLEEP) */
#define INTAKE_JOURNAL 2u /* accepted submissions are recorded */

/* Fields are grouped by the module that owns them.  Those outside of a group belong to
 * core/loop, or are constant and read by all. */
struct hal_device {
	struct object obj;

	/* Constant once it is open. */
	const struct hal_backend *table; /* the backend's, or that of a layer above it */
	struct hal_bk_hot hot; /* copy of hot operations; saves a load per call */
	void *bk;
	/* First argument of .hot: .bk, or the journal's recorder or player around it. */
	void *hot_bk;
	/* The backend's extra.limit, or the journal's recorder around it; for .hot_bk. */
	int (*limit)(void *bk, void *part, uint64_t bytes, uint64_t window_ns);
	bool virtual_clock;
	bool side_by_side;  /* HAL_BK_SIDE_BY_SIDE */
	bool for_processes; /* other processes poll its descriptors */
	bool lends; /* a caller may be the engine while the engine's thread sleeps */
	atomic_bool polled; /* hal_device_poll moves the virtual clock */
	char name[32];
	unsigned int number; /* counts the devices that this process has opened, from 0 */
	struct hal_device_info info; /* constant, except .memory_free and .lost */
	uint32_t queue_slots, inflight, partition_inflight;
	uint64_t spin_ns;
	struct opened *opened; /* the configuration it was opened with; core/api */

	/* Used by any thread. */
	_Atomic uint64_t
		now_cached; /* device time, or SUBMIT_ASLEEP while the engine sleeps */
	_Atomic uint64_t woken_ns; /* host time of the last wake-up by another thread */
	struct inbox inbox;
	atomic_int lost;    /* -ENODEV once the device has stopped answering */
	char lost_why[160]; /* written before .lost */
	atomic_uint timelines, programs, rings; /* objects alive */
	atomic_uint engine_lock; /* clock=virtual: 1 while a thread is the engine */
	int cancel_state; /* cancel state of the lock's holder, restored at unlock; with
			     clock=real: of the caller that is the engine */
	atomic_uint lock_waiters; /* threads that sleep on .lock_futex */
	atomic_uint lock_futex;   /* incremented when these threads should try again */
	_Atomic uint64_t ended_reported; /* .command.ended at the last hal_device_poll */

	/* Guards the lists of partitions and queues.  A thread that changes a list holds
	 * it for writing until the engine has read its message; a thread that walks a
	 * list holds it for reading.  The engine never takes it. */
	pthread_rwlock_t shape;

	/* Only the engine uses the fields from here on. */
	uint64_t now;   /* device time, as last read */
	bool acted;     /* this turn has done something */
	uint8_t work;   /* WORK_* */
	uint8_t intake; /* INTAKE_* */
	struct heap timers;
	uint64_t timer_ns; /* earliest of .timers and the scheduler's three times below;
			      UINT64_MAX: none */
	struct list programs_loaded;
	uint32_t next_queue_id, next_timeline_id;

	/* The engine's thread, with clock=real. */
	bool now_fresh; /* .now has been read since the device was last polled */
	struct {
		bool possible; /* with clock=real, and the kernel can end a watch */
		uint32_t count;
		/* Counts turns, and a sleep as many.  May wrap. */
		uint32_t turn;
		struct watched of[WATCHED_MAX];
	} watch;
	bool (*turn)(struct hal_device *dev, uint64_t until_ns, bool idle);
	pthread_t thread;
	bool has_thread;
	atomic_bool stop;
	/* Turns of callers (lend.h). */
	struct {
		atomic_uint count; /* times that a caller became the engine; may wrap */
		/* The thread's sleep ends within NAP_NS. */
		atomic_bool naps;
		/* Constant.  Submissions at shorter intervals wake the thread. */
		uint64_t often_ns;
		/* Device time of the last submission that a caller served. */
		uint64_t submitted_ns;
		uint32_t often; /* how many in a row came that fast, up to LENT_OFTEN */
		uint64_t timer_ns;   /* .timer_ns when the thread fell asleep */
		bool watch_possible; /* .watch.possible, which is false in these turns */
	} lent;
	int wake_fd;  /* wakes the thread if .event_fd is in use; else -1 */
	int event_fd; /* readable if the device has events; -1: it has no such fd */

	struct {
		counter ended; /* commands that completed, failed or were dropped */
		/* 1: a poll whose only event is one completion also issues the next
		 * command.  -1: never, since the device needs a doorbell after submits.
		 */
		int served_at_once;
		struct list todo; /* queues that may issue, or have a callback to run */
		struct list runnable; /* partitions that may take a command */
		struct list blocked;  /* partitions whose queue on the device was full */
		struct list inflight_list;
		struct list rings; /* of completions */
		/* Queue whose records are being retired.  It needs no entry in .todo when
		 * its own signal ends its wait. */
		const struct hal_queue *retiring;
		/* Events that the device has yet to report: ends of commands, suspends
		 * and resizes. */
		uint32_t pending;
		struct callbacks callbacks;
		atomic_uint callbacks_begun; /* host functions that have not returned */
		/* Waits for points of other devices whose engines still know them. */
		atomic_uint foreign;
	} command;

	/* Timelines of other processes (command/courier.h). */
	struct {
		/* Guards .courier and its links.  The engine never takes it. */
		pthread_mutex_t lock;
		struct courier *courier; /* NULL until the first export or import */
		/* Links through which another process may raise a timeline. */
		atomic_uint outside;
	} share;

	struct {
		/* Times at which the scheduler must act; UINT64_MAX: never. */
		uint64_t alarm_ns; /* the policy asked to be called */
		uint64_t hold_ns;  /* the policy may no longer leave a partition idle */
		uint64_t stops_ns; /* a queue that the policy suspended may have to resume
				    */
		/* Partitions with runnable queues of which the policy picks none now. */
		uint32_t held;
		bool picking;                /* policy.pick is running */
		uint64_t plan_number;        /* plans that policies have requested */
		struct policy_limits limits; /* those of the policy in force */
		/* Modes of the device.  .info also has DRAIN, which the core adds. */
		uint32_t bk_suspend_modes;
		const struct hal_policy *policy;
		uint64_t policy_ns; /* when it was installed */
		struct hal_bk_config *policy_cfg;
		void *policy_state;
		const struct hal_host *services; /* functions that the policy may call */
		struct hal_policy_host policy_host;
		struct policy_faults {
			counter invalid, stalls, starved, longest_wait_ns;
			uint32_t window;
			uint64_t window_ns;
			atomic_bool fallback;
			_Atomic(const char *) reason;
		} faults;
		const struct turn_listener *listener;
	} sched;

	struct {
		struct list partitions;
		uint32_t partition_count;
		uint64_t *partition_map; /* a bit per index in use */
		struct place place;
		struct plan plan;
		/* Partitions that may be moved to free units for another one. */
		uint32_t compact;
		bool oversubscribe;
		/* Held by a thread from requesting free units until it occupies them. */
		pthread_mutex_t room;
		const struct moves *moves;
	} space;

	struct {
		/* Bytes: the quotas of partitions, and what those without quota use. */
		counter taken;
		struct list recolors; /* buffers that are moving to other channels */
		const struct residency *residency;
	} memory;

	struct {
		struct busy ran;
		struct account past; /* of destroyed partitions */
		/* Held while a trace starts and its file is opened. */
		pthread_mutex_t trace_start;
		struct trace *trace;             /* list; NULL: none is being written */
		const struct observer *observer; /* of .trace */
		struct decisions *decisions;     /* NULL: policy decisions are not kept */
		struct profile *profile; /* NULL: none.  Only the engine learns. */
	} observe;

	struct {
		struct journal *journal;         /* NULL: the run is not recorded */
		const struct recorder *recorder; /* of .journal */
		const struct player *player;     /* NULL: the run is not a replay */
	} replay;
};

/* Read the device's clock. */
static inline void device_now(struct hal_device *dev)
{
	dev->now = dev->hot.now(dev->hot_bk);
	atomic_store_explicit(&dev->now_cached, dev->now, memory_order_relaxed);
}

#endif

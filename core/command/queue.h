/* SPDX-License-Identifier: Apache-2.0 */
/* queue.h - a queue: the producer side of its ring, and its state in the engine. */
#ifndef HAL_COMMAND_QUEUE_H
#define HAL_COMMAND_QUEUE_H

#include <hal/policy.h>

#include "command/record.h"
#include "command/timeline.h"
#include "loop/device.h"
#include "observe/account.h"
#include "util/list.h"

struct far_told;
struct hal_completions;
struct inlet;

/* An in-flight command: submitted to the device and not retired yet. */
struct inflight {
	struct hal_queue *queue;
	struct inflight *next; /* in the queue's circle of such entries */
	struct record *record; /* the command's record, at .at */
	union cursor at;
	struct list on_device; /* in device.command.inflight_list, in order of issue */
	uint64_t submit_ns, issue_ns, ready_ns;
	uint64_t start_ns, end_ns;
	int32_t status;
	bool done;   /* the device has ended it; it waits for earlier ones to retire */
	bool killed; /* dropped by a suspend, to be submitted again */
	/* Copy of .record->cmd if the record is in a block, which queues may share. */
	struct hal_bk_cmd own;
};

/* hal_queue.slow: each bit sends the end of a command or submission down the slow path.
 */
#define SLOW_TRACE      1u
#define SLOW_SUSPENDING 2u
#define SLOW_DEADLINE   4u
#define SLOW_NOTIFIES   8u    /* completions go into a ring (completions.h) */
#define SLOW_DEFERRED   16u   /* objects wait in .deferred to be freed */
#define SLOW_POLICY     32u   /* the policy has a hook for completions */
#define SLOW_HEAD       64u   /* .retire_terms differ from .default_terms */
#define SLOW_OTHERS     128u  /* some records between cursors are not for the device */
#define SLOW_EXPECTS    256u  /* run times are predicted for the policy or a profile */
#define SLOW_KILLED     512u  /* .sched.kills, .killed, .starving or .no_preempt is set */
#define SLOW_STOPPED    1024u /* .sched.stopped_ns is not 0 */
#define SLOW_RECOLOR    2048u /* .memory_watched is set */
#define SLOW_TOLD       4096u /* .told is set */

/* Values of hal_queue.open. */
#define QUEUE_OPEN       UINT32_C(0x4f50454e)
#define QUEUE_OPEN_TELLS UINT32_C(0x4f50454f) /* open, with a ring of completions */
#define QUEUE_OPEN_FAR   UINT32_C(0x4f504550) /* another process serves it (far/far.h) */

/* Value of hal_queue.failure.cmd. */
#define FAILED_NO_COMMAND UINT32_MAX

/* hal_queue.stepping: each bit sends a step of .issue down the slow path. */
#define STEP_TERMS  1u /* .issue_terms differ from .default_terms */
#define STEP_INSIDE 2u /* .inside must be kept up to date */

enum queue_state {
	QUEUE_RUNNING,
	QUEUE_SUSPENDING, /* suspend requested; the device has not released it yet */
	QUEUE_SUSPENDED,
};

/* The terms of a submission: its deadline, tag and priority. */
struct terms {
	uint64_t deadline_ns; /* after the submit; 0: none */
	uint64_t tag;
	int32_t priority;
};

/* How urgent a queue is; smaller is more urgent. */
struct urgency {
	uint64_t rank;        /* class, then priority */
	uint64_t deadline_ns; /* absolute; UINT64_MAX: none */
};

enum { LEARNED_UNITS = 8 };

/* Run times observed with one number of units. */
struct by_units {
	uint32_t units;     /* 0: entry is unused */
	uint32_t plain : 1; /* the kernel does not say how much work a command is */
	uint32_t seen : 31; /* commands observed; those of a profile are not counted */
	/* Run time in total, and the work done in it: bytes or operations if the work is
	 * known, else commands. */
	double ns, of;
};

/* What stops of one queue in one suspend mode have cost, in ns. */
struct stop_learned {
	bool quiet_known, cost_known;
	/* From the request until the device released the queue.  Rises to a larger
	 * observation at once, and decays towards smaller ones. */
	uint64_t quiet_ns;
	uint64_t cost_ns; /* how much longer a stopped command ran; decayed average */
};

/* How far predicted run times were off: sum of the relative errors of .runs commands. */
struct sureness {
	double runs, error;
};

/* Run times of a queue's commands, to predict the next ones for policies.  All sums
 * decay: about the last eight commands dominate. */
struct learned {
	/* Commands of known work: run time, bytes moved, work. */
	double work_ns, work_bytes, work;
	/* Commands of unknown work: run time, bytes moved, number of commands. */
	double plain_ns, plain_bytes, plain;
	uint64_t job_ns; /* average for submissions of several commands; 0: unknown */
	/* Submission whose commands are completing: its number, the run time of its
	 * commands so far, and when it was submitted. */
	uint64_t job, part_ns;
	uint64_t submit_ns;
	struct by_units by[LEARNED_UNITS];
	uint32_t by_next;
	struct sureness sure;
	const struct known *head; /* profile of the next command's kernel; NULL: none */
	struct stop_learned stops[HAL_SUSPEND_KILL + 1]; /* by enum hal_suspend_mode */
};

/*
 * Fields are grouped by the thread that writes them, a group to a cache line, because
 * with clock=real the submitting thread and the engine run on two processors.  The
 * engine's fields are grouped by the module that owns them.  Those outside of a group
 * belong to core/command.  docs/state.md lists the states and which of them exclude each
 * other.
 */
struct hal_queue {
	/* ---- Constant, except .open. */
	struct object obj;
	atomic_uint open; /* QUEUE_OPEN* while it accepts work, 0 after a failure */
	uint32_t slot_count, slot_mask; /* slots of the ring, a power of two; minus 1 */
	uint32_t part_word; /* .part_bit is in this word of hal_program.bound */
	uint64_t part_bit;
	struct hal_device *dev;
	struct hal_partition *home; /* the partition it was created in */
	struct record *slots;
	struct hal_completions *completions;

	/* ---- Written by the submitting thread. */
	_Alignas(CACHE_LINE) atomic_uint tail; /* end of the records in the ring */
	unsigned int ring_limit; /* slots before this position are known to be free */
	counter submissions;
	counter more_commands; /* commands minus submissions; may wrap below 0 */

	/* ---- Written by any thread and the engine. */
	/* Notifies the engine of new records. */
	_Alignas(CACHE_LINE) struct message message;
	atomic_uint announced;

	/* ---- Written by the engine, read by any thread. */
	_Alignas(CACHE_LINE) struct hal_timeline timeline;

	/* ---- The engine's, from here on.  The submitting thread reads .head. */
	_Alignas(CACHE_LINE) atomic_uint head; /* slots before it may be written again */
	unsigned int accepted; /* end of the records that the engine knows */
	/* The next record to issue, and the next to retire. */
	union cursor issue, retire;
	/* The partition whose units it uses: the host, if .home is a guest. */
	struct hal_partition *part;
	uint32_t announced_turn;    /* turn in which .message was last read (watch.h) */
	uint32_t inflight_max;      /* constant */
	uint32_t class_flags;       /* constant: HAL_BK_CMD_* of each command */
	struct terms default_terms; /* constant: of a submission without a header */
	char name[32];              /* constant */
	struct list on_partition;
	struct list
		todo; /* on device.command.todo: may issue, or has a callback to run */
	struct list busy;     /* on partition.command.busy while it is not empty */
	struct list deferred; /* objects to free once this queue no longer uses them */
	void *bk;             /* the backend's queue */
	struct record *next;  /* the record at .issue; valid while .runnable */
	uint32_t slow;        /* SLOW_* */
	uint32_t inflight_count;
	struct inflight *oldest, *unused; /* of the circle: first in flight, first free */
	uint64_t notified;                /* submissions reported to .completions */
	/* What completions say it is: itself, or what another process knows it by. */
	struct hal_queue *told_as;
	struct terms issue_terms, retire_terms; /* of the submissions at the cursors */
	uint8_t stepping;                       /* STEP_* */
	/* Reasons not to issue its next command, or to take the slow path to it. */
	union {
		struct {
			bool parked : 1; /* waits for a point, for a time, or for memory
					  */
			bool memory_watched : 1; /* core/memory inspects each command */
			/* Its next command waits to be picked: by the policy, or as the
			 * only runnable queue of its partition. */
			bool runnable;
			bool halted;   /* a command has failed and is not retired yet */
			uint8_t state; /* enum queue_state */
			int err;       /* first failure; nothing is issued after it */
		};
		uint64_t blockers; /* all of the above; 0: none is set */
	};
	bool failing;     /* the oldest submission is the one that failed */
	bool inside;      /* a command of the submission at .issue has been issued */
	bool in_callback; /* the host function at .issue is running */
	struct waiter waiter;
	struct timer timer; /* ends the wait for a time */
	char *fault;        /* error text of the command that has failed */
	/* What failed first.  Written before .timeline fails; then any thread may read
	 * it. */
	struct queue_failure {
		uint64_t value, tag; /* the submission; .value 0: none */
		uint32_t cmd;        /* number in it; FAILED_NO_COMMAND: none */
		int32_t status;      /* for completions: -ENODEV if the device is lost */
	} failure;
	/* Completed commands minus completed submissions, when the last submission of
	 * several commands or of none completed. */
	uint64_t completed_more;
	uint64_t unparked_ns; /* when its last wait ended */
	/* Where records of another process come from, and where it is told what has
	 * become of them; NULL: they are this process's. */
	struct inlet *inlet;
	struct far_told *told;
	struct message callback; /* sent when the host function has returned */
	struct hal_queue *callback_next;

	struct {
		struct hal_policy_queue policy_view;
		struct list waiting;    /* in partition.sched.waiting; see policy.c */
		struct heap_node order; /* in the heap of a policy that uses keys */
		bool admitted;          /* policy.attach accepted it */
		bool key_kept;  /* was picked while the device was full; keeps its key */
		uint32_t lease; /* commands it may issue without asking the policy */
		uint16_t own_class;
		struct learned learned;

		/* Suspension (suspend.c). */
		struct hal_timeline control; /* counts completed suspends */
		uint64_t suspend_count;
		uint64_t suspend_asked_ns;
		uint8_t suspend_mode;
		bool bk_suspended; /* the backend has suspended it, too */
		/* Resume it once the suspend under way, or a move of its partition, has
		 * ended. */
		bool resume_wanted;
		bool final;        /* never to be resumed */
		bool policy_stops; /* the policy has suspended it or requested that */
		bool policy_asks;  /* requested, with .suspend_mode, and not begun yet */
		uint32_t frozen; /* in-flight commands that the device keeps but does not
				    run */
		/* Run time of the oldest in-flight command until it was stopped inside.
		 */
		uint64_t stopped_ns;
		uint32_t stops_inside; /* times that command was stopped inside */

		/* Preemption (preempt.c). */
		bool preempts;  /* less urgent queues may be preempted for it */
		bool urgent;    /* it preempts now; partition.sched.urgent counts it */
		uint32_t kills; /* times the command at .retire has been killed */
		bool killed;    /* that command has been killed, started or not */
		uint64_t killed_ran_ns; /* run time lost by the kill under way */
		/* It was preempted at .starving_ns and has completed no command since. */
		bool starving;
		/* It starved for too long: only DRAIN may stop it until it completes a
		 * command. */
		bool no_preempt;
		uint64_t starving_ns;
		struct list preempted;            /* on partition.sched.preempted */
		struct urgency preempted_urgency; /* its urgency when it was preempted */
		/* The policy may stop it once it has completed this many commands. */
		uint64_t protected_until;

		/* Urgency inherited from queues that wait for a point of this one
		 * (inherit.c). */
		struct inherited {
			struct heap ranks, deadlines;
			uint64_t rank, deadline_ns; /* in force: the first of each heap */
			bool stale;
		} inherited;
		/* The queue whose point it waits for, which inherits its urgency. */
		struct donates {
			struct hal_queue *to; /* NULL: none */
			struct heap_node rank, deadline;
		} donates;
	} sched;

	struct {
		/* Node in evict.turns since .evict_ns, while the queue's next command
		 * needs a buffer that is not on the device. */
		struct list evict_turn;
		uint64_t evict_ns;
		/* The outer .parked is set because of memory (recolor.h, evict.h,
		 * bimodal.h). */
		bool parked;
	} memory;

	struct {
		struct account account;
		uint64_t traced_ns; /* the trace shows its submissions up to this time */
	} observe;

	struct inflight inflight[];
};

/* Fail with -EAGAIN: the ring of that queue, of `of` slots, lacks free ones. */
int ring_full(uint64_t queue, const char name[32], uint32_t slots, uint32_t of) COLD;

/* The number and name of a queue, for a message. */
struct queue_text {
	char text[56];
};
struct queue_text queue_text(const struct hal_queue *q);
/* The same and its partition: room for it, and write it into text. */
#define QUEUE_DESCRIPTION 128
void queue_describe(const struct hal_queue *q, char *text, size_t size);
_Static_assert(offsetof(struct hal_queue, completions) < CACHE_LINE,
	       "what hal_submit reads of a queue is one line, which nobody writes");
_Static_assert(offsetof(struct hal_queue, tail) % CACHE_LINE == 0 &&
		       offsetof(struct hal_queue, message) % CACHE_LINE == 0 &&
		       offsetof(struct hal_queue, timeline) % CACHE_LINE == 0 &&
		       offsetof(struct hal_queue, head) % CACHE_LINE == 0,
	       "the submitting thread and the engine write different lines");

/* Return the end of the records submitted so far.  Engine only. */
static inline unsigned int queue_tail(const struct hal_queue *q)
{
	return atomic_load_explicit(&q->tail, memory_order_acquire);
}

/* Return the end of the records submitted so far.  Submitting thread only. */
static inline unsigned int queue_written(const struct hal_queue *q)
{
	return atomic_load_explicit(&q->tail, memory_order_relaxed);
}

/* Submit the records before tail to the engine.  Submitting thread only. */
static inline void queue_publish(struct hal_queue *q, unsigned int tail)
{
	atomic_store_explicit(&q->tail, tail, memory_order_release);
}

/* Let the submitting thread write the slots before pos again.  Engine only. */
static inline void queue_release(struct hal_queue *q, unsigned int pos)
{
	atomic_store_explicit(&q->head, pos, memory_order_release);
}

/* Set the submit time of records at `from` and behind that were submitted while the
 * engine slept. */
void queue_stamp(struct hal_queue *q, unsigned int from) COLD;
/* Stop waiting for a point or a time. */
void queue_unpark(struct hal_queue *q);
/* Withdraw the urgency that q donates to the queue whose point it waited for. */
void queue_withdraw_urgency(struct hal_queue *q) COLD;
/* Have the scheduler re-evaluate the urgency that x inherits, later in this turn. */
void queue_inherited_changed(struct hal_queue *x);

/* Return the number of commands submitted to q. */
static inline uint64_t queue_commands(const struct hal_queue *q)
{
	return counter_get(&q->submissions) + counter_get(&q->more_commands);
}

/* Return the record at c. */
static inline struct record *cursor_record(const struct hal_queue *q, union cursor c)
{
	struct record *r = &q->slots[c.pos & q->slot_mask];

	return LIKELY(r->cmd.op != REC_BLOCK) ? r : &r->block->rec[c.inner];
}

/* Advance c past r, the record at c. */
static inline void cursor_step(const struct hal_queue *q, union cursor *c,
			       const struct record *r)
{
	if (LIKELY((r->own & REC_INNER) == 0)) {
		c->pos += r->slots;
		return;
	}
	c->inner += r->slots;
	if (c->inner == q->slots[c->pos & q->slot_mask].block->slots) {
		c->pos++;
		c->inner = 0;
	}
}

/* Return the next record to issue; NULL if there is none. */
static inline struct record *queue_next(struct hal_queue *q)
{
	union cursor c = q->issue;

	return c.pos == q->accepted ? NULL : cursor_record(q, c);
}

/* Have the engine process q in this turn: it may issue, or has a callback to run. */
static inline void queue_todo(struct hal_queue *q)
{
	if (list_empty(&q->todo))
		list_add_before(&q->dev->command.todo, &q->todo);
	q->dev->work |= WORK_TODO;
}

/* Return whether a state of q keeps it from issuing. */
static inline bool queue_is_blocked(const struct hal_queue *q)
{
	return q->parked || q->runnable || q->halted || q->state != 0 || q->err != 0;
}

/* Return whether every accepted record of q has been retired. */
static inline bool queue_empty(const struct hal_queue *q)
{
	return q->retire.pos == q->accepted;
}

#endif

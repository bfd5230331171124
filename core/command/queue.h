/* SPDX-License-Identifier: Apache-2.0 */
/* queue.h - a queue: its ring's producer side, and what the engine knows of it. */
#ifndef HAL_COMMAND_QUEUE_H
#define HAL_COMMAND_QUEUE_H

#include <hal/policy.h>

#include "command/record.h"
#include "command/timeline.h"
#include "loop/device.h"
#include "observe/account.h"
#include "util/list.h"

struct hal_completions;

/* A command that the device has. */
struct flight {
	struct hal_queue *queue;
	struct flight *next;   /* of the queue; all of them form a circle */
	struct record *record; /* what the cursor at stands for */
	union cursor at;
	struct list on_device; /* in order of issue */
	uint64_t submit_ns, issue_ns, ready_ns;
	uint64_t start_ns, end_ns;
	int32_t status;
	bool done;             /* ended; waits for its turn to be told */
	bool killed;           /* dropped by a suspend, to be given again */
	struct hal_bk_cmd own; /* of a record in a block, which others may share */
};

/* hal_queue.slow: what makes the end of a command, or of a submission, more than usual */
#define SLOW_TRACE      1u
#define SLOW_SUSPENDING 2u
#define SLOW_DEADLINE   4u
#define SLOW_NOTIFIES   8u  /* into a ring of completions */
#define SLOW_DEFERRED   16u /* something waits to be freed until it has gone on */
#define SLOW_POLICY     32u /* the policy wants to know of ends */
#define SLOW_HEAD       64u /* .ending is not .usual */
/* Between the cursors there is, or has been since they met, what the device has not. */
#define SLOW_OTHERS  128u
#define SLOW_EXPECTS 256u  /* somebody wants to know what commands will run */
#define SLOW_KILLED  512u  /* .kills is not 0, or .killed, .stuck or .sheltered */
#define SLOW_STOPPED 1024u /* .stopped_ns is not 0 */
#define SLOW_RECOLOR 2048u /* .watched */

/* hal_queue.open */
#define QUEUE_OPEN       UINT32_C(0x4f50454e)
#define QUEUE_OPEN_TELLS UINT32_C(0x4f50454f) /* and has a ring of completions */

/* hal_queue.stepping: what makes a step of .issue more than usual */
#define STEP_ASKED   1u /* .asked is not .usual */
#define STEP_JOURNAL 2u /* it goes no further than .limit */
#define STEP_INSIDE  4u /* .inside is kept */

enum queue_state {
	QUEUE_RUNNING,
	QUEUE_SUSPENDING, /* asked, the device has not let go yet */
	QUEUE_SUSPENDED,
};

/* What the submission at a cursor asks for. */
struct asked {
	uint64_t deadline_ns; /* relative; 0: none */
	uint64_t tag;
	int32_t priority;
};

/* The less the more urgent: class and priority; when it has to be done, UINT64_MAX: at
 * any time. */
struct urgency {
	uint64_t rank, deadline_ns;
};

enum { LEARNED_UNITS = 8 };

/* By how many units commands had. */
struct by_units {
	uint32_t units; /* 0: nothing yet */
	/* Learned here, of so many commands; what a profile says is none. */
	uint32_t plain : 1, seen : 31;
	double ns, of; /* of so much work, or so many commands */
};

/* How near what was expected has come: of so many, the shares they were off, added up.
 */
struct sureness {
	double runs, error;
};

/* What its commands ran, as far as policies want to know: sums in which the last eight
 * or so count most. */
struct learned {
	double work_ns, work_bytes, work;    /* those whose work is known */
	double plain_ns, plain_bytes, plain; /* those of which it is not, and how many */
	uint64_t job_ns;       /* a submission of several commands; 0: not known */
	uint64_t job, part_ns; /* which one is ending, what it had */
	uint64_t submit_ns;    /* when that was submitted */
	struct by_units by[LEARNED_UNITS];
	uint32_t by_next;
	struct sureness sure;
	const struct known *head; /* the next command's kernel; NULL: not known by itself
				   */
};

struct hal_queue {
	struct object obj;

	/* The submitting thread's; constant but for what follows .ring. */
	atomic_uint open; /* QUEUE_OPEN* while it takes work: alive and not failed */
	uint32_t slot_count;
	struct hal_device *dev;
	struct hal_partition *part; /* on whose units it takes its turn */
	struct hal_partition *home; /* that it is of: .part, or a guest of that */
	struct record *slots;
	struct hal_completions *completions;
	uint32_t part_word;      /* of its partition in hal_program.bound */
	unsigned int ring_limit; /* a tail that is known to be possible */
	uint64_t part_bit;
	counter submissions;
	counter more_commands; /* than submissions; wraps when fewer */
	struct ck_ring ring;

	/* To the engine: the ring has more. */
	struct letter letter;
	atomic_uint announced;

	/* Constant. */
	uint32_t flight_max;
	struct asked usual; /* without a REC_HEAD */

	/* The engine's. */
	struct hal_timeline timeline;
	struct hal_timeline control; /* suspends that became quiet */
	struct list on_partition;
	struct list todo;       /* on engine.todo: has a callback to run, or may go on */
	struct list busy;       /* on partition.busy while anything is in it */
	struct list deferred;   /* what is freed once it has gone on */
	struct list waiting;    /* on partition.waiting while the policy has it */
	struct list evict_turn; /* on evict.turns: its next command needs something */
	uint64_t evict_ns;      /* since then */
	void *bk;
	union cursor issue, retire;
	struct record *next; /* the one at issue; while .runnable */
	uint32_t slow;       /* SLOW_* */
	uint32_t flight_count;
	struct flight *oldest, *fresh; /* that the device has, and that is free */
	uint32_t frozen;     /* of those: not at work, it keeps them until q goes on */
	uint64_t stopped_ns; /* that the oldest had run when it was stopped inside */
	uint64_t notified;   /* submissions, into .completions */
	struct asked asked, ending; /* at issue, at retire */
	uint8_t stepping;           /* STEP_* */
	unsigned int limit; /* of what is written down: nothing behind it is taken yet */
	union {
		struct {
			bool parked : 1;  /* at a wait, or for a time */
			bool watched : 1; /* its commands are looked at (recolor.h,
					     bimodal.h, evict.h) */
			bool limited : 1; /* at .limit */
			bool runnable; /* in the policy's hands, or alone in its partition
					*/
			bool halted;   /* a command has failed and waits to be told */
			uint8_t state; /* enum queue_state */
			int err;       /* the first failure; nothing runs after it */
		};
		uint64_t held; /* 0: nothing of all this is so */
	};
	bool failing;        /* the submission that failed is being dropped */
	bool recolor_parked; /* .parked: what its next command uses moves (recolor.h,
				evict.h) or is to (bimodal.h) */
	bool inside;         /* the device has had a command of the submission at issue */
	bool in_callback;    /* somebody runs the callback at issue */
	bool bk_suspended;   /* through the backend, not by holding back alone */
	bool resume_wanted;
	bool final;        /* suspended for good */
	bool policy_stops; /* suspended by the policy, or going to be */
	bool policy_asks;  /* going to be, by .suspend_mode */
	bool admitted;     /* by the policy */
	bool kept;         /* picked, but the device had no room: has its key still */
	uint8_t suspend_mode;
	/* What those lend that wait for a point of it, and whose point it waits for. */
	struct lent {
		struct heap ranks, deadlines;
		uint64_t rank, deadline_ns; /* in force: the first of each */
		bool stale;
	} lent;
	struct lends {
		struct hal_queue *to; /* NULL: nobody */
		struct heap_node rank, deadline;
	} lends;
	uint16_t own_class;
	bool preempts;          /* others may make way for it */
	bool urgent;            /* they may now, and it is counted in its partition */
	uint32_t kills;         /* of the command at .retire */
	bool killed;            /* that one has been, begun or not */
	uint64_t killed_ran_ns; /* what those had run that the KILL under way drops */
	/* Stopped for others, once or often, since .stuck_ns, and has not run since. */
	bool stuck;
	bool sheltered; /* that was too long: nobody stops it inside again */
	uint64_t stuck_ns;
	struct list made_way; /* on partition.made_way: stopped for urgent ones */
	struct urgency was;   /* when it was */
	uint32_t lease;       /* commands the policy has granted beyond the one picked */
	struct hal_policy_queue view;
	struct learned learned;
	struct heap_node order; /* under a policy that gives keys */
	struct waiter waiter;
	struct timer timer; /* parked for a time */
	char *fault;        /* text of the command that has failed */
	uint64_t gate_ns;   /* when its last wait was satisfied */
	uint64_t suspend_asked_ns;
	uint64_t spared;    /* the policy stops it only when so many have completed */
	uint64_t traced_ns; /* submissions before that are in the trace */
	uint64_t suspend_count;
	struct letter callback; /* that has returned */
	struct hal_queue *callback_next;
	struct account account;
	struct flight flights[];
};

/* Write the name of q for an error text. */
void queue_describe(const struct hal_queue *q, char *text, size_t size);
/* Give the present time to what has been submitted without one. */
void queue_stamp(struct hal_queue *q) COLD;
/* Stop waiting for a point or a time. */
void queue_unpark(struct hal_queue *q);
/* Take back what q lends to the queue that it waited for. */
void queue_take_back(struct hal_queue *q) COLD;
/* Have x look at what it is lent. */
void queue_lent_changed(struct hal_queue *x);

static inline uint64_t queue_commands(const struct hal_queue *q)
{
	return counter_get(&q->submissions) + counter_get(&q->more_commands);
}

static inline struct record *cursor_record(const struct hal_queue *q, union cursor c)
{
	struct record *r = &q->slots[c.pos & q->ring.mask];

	return LIKELY(r->cmd.op != REC_BLOCK) ? r : &r->block->rec[c.inner];
}

/* Past r, which c stands for. */
static inline void cursor_step(const struct hal_queue *q, union cursor *c,
			       const struct record *r)
{
	if (LIKELY((r->own & REC_INNER) == 0)) {
		c->pos += r->slots;
		return;
	}
	c->inner += r->slots;
	if (c->inner == q->slots[c->pos & q->ring.mask].block->slots) {
		c->pos++;
		c->inner = 0;
	}
}

/* The next record that has not been given to the device; NULL: there is none. */
static inline struct record *queue_next(struct hal_queue *q)
{
	union cursor c = q->issue;

	return q->limited || c.pos == ring_tail(&q->ring) ? NULL : cursor_record(q, c);
}

/* q may go on, or has a callback to run. */
static inline void queue_todo(struct hal_queue *q)
{
	if (list_empty(&q->todo))
		list_add_before(&q->dev->todo, &q->todo);
	q->dev->work |= WORK_TODO;
}

/* Something keeps it from going on. */
static inline bool queue_stands(const struct hal_queue *q)
{
	return q->parked || q->limited || q->runnable || q->halted || q->state != 0 ||
	       q->err != 0;
}

/* Nothing is in it that has not ended. */
static inline bool queue_empty(struct hal_queue *q)
{
	return q->retire.pos == ring_tail(&q->ring);
}

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sim.h - operations on a device in virtual time, and what has to hold after each.
 *
 *   seed --> script.c --> script: a target and a list of operations
 *                            |
 *                run.c: one after the other, each by its function in do_*.c
 *                            |          \--> model.c: what was asked, so what is owed
 *                            |          \--> events.c: what the device itself says it
 * does
 *                            \-- after each: check.c holds the library's answers against
 *                                both
 *   shrink.c: of a script that fails, the shortest that fails in the same way
 *
 * An operation carries all its numbers, so that any part of a script is a script.  The
 * model knows nothing of how the library works, only what hal.h promises.
 */
#ifndef TESTS_SIM_H
#define TESTS_SIM_H

#include <stdbool.h>

#include <hal/hal.h>
#include <hal/ref.h>

#include "script.h"

enum {
	PARTS = 6,
	QUEUES = 12,
	GATES = 3,
	BUFFER_BYTES = 16384,
	STATE_BYTES = 8192,
	IDS = 8192,  /* queues made in one run */
	DEPTH = 256, /* submissions in a queue: more than it has slots */
	WAITS = 3,   /* points that a submission waits for, at most */
	RING = 128,  /* entries of the ring of completions */
	DELAY_NS = 3000,
};

struct sim_part {
	struct hal_partition *p;
	struct sim_part *host; /* whose units it uses: itself, unless it is a guest */
	uint32_t index;
	uint32_t queues, guests;
	uint64_t quota;                    /* 0: none */
	uint64_t limit;                    /* of all its buffers; 0: they stay there */
	uint64_t evictions, fetches;       /* seen */
	uint32_t floor, ceiling;           /* of units: nobody takes, or gives, it more */
	uint32_t floor_next, ceiling_next; /* once it has moved */
	uint64_t buffer_bytes;             /* of live buffers */
	struct hal_point moved;            /* of the newest resize */
	uint64_t ran_ns;                   /* ref: its commands, by the device's events */
	/* Of queues that have gone. */
	uint64_t past_submitted, past_completed, past_failed, past_dropped, past_busy_ns;
	uint64_t guests_busy_ns; /* of guests that have gone */
};

/* What a submission waits for: a gate's value, or a submission of another queue. */
struct sim_wait {
	bool gate;
	uint32_t who; /* gate, or queue's id */
	uint64_t value;
};

struct sim_owed {
	struct sim_wait waits[WAITS];
	uint32_t wait_count;
	uint64_t not_before_ns;
	uint32_t moves; /* it takes a buffer of the queue of that id elsewhere; 0: none */
};

/* The newest move of a buffer: submission value of queue .by; 0: there was none. */
struct sim_move {
	uint32_t by;
	uint64_t value;
};

enum sim_moving {
	MOVE_OVER,
	MOVE_ON,
	MOVE_UNKNOWN, /* what its queue does is not promised any more */
};

struct sim_queue {
	struct hal_queue *q;
	uint32_t id; /* from 1 on, never twice */
	uint32_t part;
	uint16_t service_class;
	bool budget;              /* it has one */
	struct hal_buffer *buf;   /* data */
	struct hal_buffer *state; /* what its steps count in */
	struct hal_buffer *host;  /* where some of its copies go through; NULL: none */
	struct sim_move buf_move, state_move;
	struct sim_move gone_moves[4]; /* of buffers that its work alone keeps */
	uint32_t gone;
	struct hal_timeline *line; /* signalled by this queue alone */
	uint64_t line_value;       /* of the newest signal submitted */
	uint64_t line_seen;
	uint64_t line_at[DEPTH];      /* by value: the submission that signals it */
	uint64_t submissions, seen;   /* newest submitted and newest reached point */
	struct sim_owed owed[DEPTH];  /* by submission */
	uint64_t commands;            /* submitted */
	uint64_t steps, steps_inside; /* submitted: kernels that count */
	uint64_t host_submitted, host_done;
	struct hal_sequence *seq;
	uint32_t seq_launches;
	bool tells; /* into the ring of completions */
	/* The newest suspend. */
	struct hal_point quiet;
	uint64_t asked_ns;
	uint32_t mode;
	bool asked_quiet; /* it has not been seen to be quiet yet */
	bool suspended, final;
	/* Has, waits for, or was dropped with a command that fails: what it does is not
	 * promised any more. */
	bool tainted;
	bool checked; /* its memory, since it last went idle */
	uint64_t moved_on_ns, progress;
	struct hal_stats last;
	uint8_t *shadow; /* what buf has to hold once all is done; NULL: not known */
};

struct sim_item {
	struct sim_item *next;
	struct sim *s;
	struct sim_queue *q;
	uint64_t sequence;
};

/* What the device's own events say of one of its queues. */
struct sim_bk_queue {
	uint64_t next_start, next_end;
	uint64_t kills; /* of the command that it has begun with, or is to */
};

struct hostile_control;

struct sim {
	const struct sim_script *script;
	uint32_t step; /* the operation that is being done */
	bool verbose;
	char why[512]; /* the first thing that was wrong */
	uint64_t hash;

	struct hal_device *dev;
	struct hal_device_info info;
	const struct hal_ref_extension *ref; /* NULL: another backend */
	bool stops;           /* the policy in force, or the engine, stops queues */
	uint32_t kills;       /* of a command, by engine and policies, at most */
	uint64_t asked_kills; /* by the application */
	bool moves;           /* a policy has moved borders */
	bool lends;           /* partitions may have more than their quota */
	bool picky;           /* the policy has a part of the device for some only */
	bool budgets;         /* the policy in force keeps them */
	bool injected;        /* the next creation may fail with -ENOMEM */
	bool faulty;          /* commands, suspends and moves may fail at any time */
	bool lost;            /* the device is */
	uint64_t timeout_ns;
	struct hostile_control *hostile; /* NULL: another policy is in force */
	bool fell_back;                  /* the engine goes on without it, */
	uint64_t hostile_picks;          /* ... which had been asked so often */

	struct hal_program *prog, *pack; /* its own, and the conformance suite's */
	struct hal_kernel *step_kernel[3], *inside_kernel[3], *copy_kernel, *bad_kernel;
	struct hal_timeline *gates[GATES];
	uint64_t gate_value[GATES], gate_waited[GATES];
	struct hal_completions *ring;
	struct sim_part parts[PARTS];
	struct sim_queue queues[QUEUES];
	uint32_t ids; /* given */
	struct sim_item *items;
	uint64_t now;
	uint64_t fetches; /* of evicted buffers, all partitions' */
	uint64_t past_submitted, past_completed, past_failed, past_dropped;
	/* By queue's id: of the ring, and of queues that are there no more. */
	uint64_t told[IDS], submitted[IDS];
	bool clean[IDS];                     /* it was never tainted */
	const struct hal_queue *handle[IDS]; /* it was: others get the same later */
	uint64_t color_free[64];             /* ref: bytes of each before anybody came */
	/* From the events of ref. */
	uint64_t event_now;
	uint64_t *running; /* by partition: the queue that runs there, 0: none */
	uint64_t *started; /* ... since when */
	struct sim_bk_queue bk[IDS];
};

/* 0, or -1 with s->why set. */
int sim_fail(struct sim *s, const char *file, int line, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

#define SIM_CHECK(cond)                                                                  \
	do {                                                                             \
		if (!(cond))                                                             \
			return sim_fail(s, __FILE__, __LINE__, "%s", #cond);             \
	} while (0)

#define SIM_OK(call)                                                                     \
	do {                                                                             \
		int ok_ = (call);                                                        \
		if (ok_)                                                                 \
			return sim_fail(s, __FILE__, __LINE__, "%s is %d: %s", #call,    \
					ok_, hal_last_error());                          \
	} while (0)

/* A condition on the answer err. */
#define SIM_ANSWER(cond)                                                                 \
	do {                                                                             \
		if (!(cond))                                                             \
			return sim_fail(s, __FILE__, __LINE__, "%s, it is %d: %s",       \
					#cond, err, hal_last_error());                   \
	} while (0)

/* ---- run.c -------------------------------------------------------------------------- */

/* What came of a script. */
struct sim_result {
	bool failed;
	uint32_t step;
	uint64_t hash;
	uint64_t fetches; /* of evicted buffers */
	char why[512];
};

extern uint32_t sim_seconds; /* it may take, of processor time */

/* In a process of its own, so that whatever happens there ends with it.  twice: and once
 * more, which must be the same. */
void sim_run(const struct sim_script *script, bool twice, bool verbose,
	     struct sim_result *out);

/* The same here. */
void sim_run_here(const struct sim_script *script, bool verbose, struct sim_result *out);

/* Opens the device and what all operations use; in the end all resumes, ends, and is put
 * away. */
int sim_begin(struct sim *s);
int sim_end(struct sim *s);
void sim_mix(struct sim *s, uint64_t value);
/* Until p is reached, or nothing is left that could reach it. */
int sim_wait(struct hal_point p);

/* ---- kernels.c ---------------------------------------------------------------------- */

int kernels_load(struct sim *s);
int kernels_unload(struct sim *s);
/* A launch that counts, of about so much work; inside: into where it counts from. */
struct hal_cmd kernels_step(struct sim *s, struct sim_queue *q, struct hal_arg *args,
			    uint64_t number, bool inside, uint32_t work);
struct hal_cmd kernels_bad(struct sim *s, struct sim_queue *q, struct hal_arg *args);
/* All of q has ended: each of its steps has run once, in order. */
int kernels_check(struct sim *s, const struct sim_queue *q);

/* ---- do_*.c: the operations, named in script.c -------------------------------------- */

typedef int sim_operation(struct sim *s, const uint32_t *p);

sim_operation do_part_create, do_part_destroy, do_part_resize;
sim_operation do_queue_create, do_queue_destroy, do_suspend, do_suspend_final, do_resume;
sim_operation do_submit, do_record, do_sequence, do_new_buffer, do_recolor;
sim_operation do_poll, do_wait, do_open_gate, do_read, do_inject, do_policy, do_hostile;

/* The one that is there at or behind number i; NULL: there is none. */
struct sim_queue *sim_queue_at(struct sim *s, uint32_t i);
/* NULL: it has gone. */
const struct sim_queue *sim_queue_of(const struct sim *s, uint32_t id);
struct sim_part *sim_part_at(struct sim *s, uint32_t i);
int sim_buffer_create(struct sim *s, struct sim_part *p, uint64_t bytes,
		      struct hal_buffer **buf);
int sim_buffer_destroy(struct sim *s, struct sim_part *p, uint64_t bytes,
		       struct hal_buffer **buf);
/* At the end, others of which nobody is asked any more may wait for its points: 0, also
 * when it is in use; then it is there still.  Its things are put away when all are gone.
 */
int sim_queue_drop(struct sim *s, struct sim_queue *q);
int sim_queue_put_away(struct sim *s, struct sim_queue *q);
/* What it does is not promised any more. */
void sim_taint(struct sim *s, struct sim_queue *q);
void sim_part_gone(struct sim *s, struct sim_part *p);
/* Since the policy was set. */
int sim_policy_check(struct sim *s);
int sim_policy_begin(struct sim *s);
/* The answer err of a call that a fault was meant for, or that came too late. */
bool sim_excused(struct sim *s, int err);

/* ---- model.c ------------------------------------------------------------------------ */

/* Nothing but time keeps submission value of q from its end. */
bool model_can_end(const struct sim *s, const struct sim_queue *q, uint64_t value);
/* The oldest of q's submissions waits for nothing any more. */
bool model_ready(const struct sim *s, const struct sim_queue *q);
/* An entry of the ring of completions is the next that q owes. */
int model_told(struct sim *s, const struct hal_completion *c);

/* A submission of q that has not ended moves a buffer. */
bool model_moves(const struct sim_queue *q);
/* Where a move is, by the library's own word. */
enum sim_moving model_moving(const struct sim *s, const struct sim_move *move);

/* ---- check.c, events.c -------------------------------------------------------------- */

int sim_check(struct sim *s);
/* Everything that was submitted has ended. */
int sim_check_ended(struct sim *s);
void sim_on_event(void *user, const struct hal_ref_event *ev);

#endif

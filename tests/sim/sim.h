/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sim.h - seeded random operations on a device in virtual time.
 *
 * One run makes a world, does steps of random operations and checks after each that
 *  - no partition has fewer units than its floor;
 *  - no unit has two owners, and the device agrees with the core on who owns what;
 *  - time and timelines only grow, and no point is reached before its work has ended;
 *  - each queue's commands start and end in order, one at a time on a partition;
 *  - nothing is lost and nothing runs twice (each step kernel counts on from the last);
 *  - submitted = completed + failed + dropped + in flight, in queue, partition and
 * device;
 *  - memory used is what the live buffers take;
 *  - an operation that the device fails has changed nothing;
 *  - no policy of the library has answered what cannot be followed.
 * In the end everything resumes, ends, and can be put away.  A second run with the same
 * seed must give the same hash of everything that was seen.
 */
#ifndef TESTS_SIM_H
#define TESTS_SIM_H

#include <stdbool.h>

#include <hal/hal.h>
#include <hal/ref.h>

enum {
	PARTS = 6,
	QUEUES = 12,
	GATES = 3,
	BUFFER_BYTES = 16384,
	STATE_BYTES = 64,
	BK_QUEUES = 8192,
};

struct sim_part {
	struct hal_partition *p;
	struct sim_part *host; /* it is a guest of */
	uint32_t queues, guests;
	uint64_t quota;         /* 0: none */
	uint32_t floor;         /* of units, that nobody takes from it */
	uint64_t buffer_bytes;  /* of live buffers */
	struct hal_point moved; /* of the newest resize */
	/* Of queues that have gone. */
	uint64_t past_submitted, past_completed, past_failed, past_dropped;
};

struct sim_queue {
	struct hal_queue *q;
	uint32_t part;
	struct hal_buffer *buf;    /* data */
	struct hal_buffer *state;  /* the step kernel's counter */
	struct hal_timeline *line; /* signalled by this queue alone */
	uint64_t line_value;       /* of the newest signal submitted */
	uint64_t line_seen;
	uint64_t submissions, seen; /* newest submitted and newest reached point */
	uint64_t commands;
	uint64_t device_commands; /* those that the device runs */
	uint64_t steps;
	uint64_t host_submitted, host_done;
	struct hal_point quiet; /* of the newest suspend */
	bool suspended;
	bool tainted; /* has, or waits for, a command that faults */
	struct hal_stats last;
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
};

struct sim {
	const char *target;
	const char *policy; /* NULL: now this, now that */
	bool stops;         /* the policy in force, or the engine, stops queues */
	bool moves;         /* a policy has moved borders */
	uint64_t seed, random;
	uint32_t step;
	bool verbose;
	bool injected; /* the next creation may fail with -ENOMEM */
	char why[512]; /* the first thing that was wrong */
	uint64_t hash;
	struct hal_device *dev;
	struct hal_device_info info;
	const struct hal_ref_extension *ref; /* NULL: another backend */
	struct hal_program *prog;
	struct hal_kernel *step_kernel, *bad_kernel;
	struct hal_kernel *spin, *copy;
	struct hal_timeline *gates[GATES];
	uint64_t gate_value[GATES], gate_waited[GATES];
	struct sim_part parts[PARTS];
	struct sim_queue queues[QUEUES];
	struct sim_item *items;
	uint64_t now;
	uint64_t past_submitted, past_completed, past_failed, past_dropped;
	/* From the events of ref. */
	uint64_t event_now, ended;
	uint64_t *running; /* by partition: the queue that runs there, 0: none */
	struct sim_bk_queue bk[BK_QUEUES];
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

void sim_mix(struct sim *s, uint64_t value);
uint64_t sim_random(struct sim *s, uint64_t below);
int sim_wait(struct hal_point p);

/* world.c */
int sim_begin(struct sim *s);
int sim_do(struct sim *s);
int sim_end(struct sim *s);
/* Lets go of everything after a failure, in any state. */
void sim_abandon(struct sim *s);

/* check.c */
void sim_on_event(void *user, const struct hal_ref_event *ev);
int sim_check(struct sim *s);
/* Everything that was submitted has ended. */
int sim_check_ended(struct sim *s);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* ref_world.h - open software devices, and what tests with several threads share. */
#ifndef TESTS_UNIT_REF_WORLD_H
#define TESTS_UNIT_REF_WORLD_H

#include "mock_world.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <time.h>

/* Longer than anything here takes on a busy machine, shorter than ctest waits: what has
 * not come then never comes. */
enum { NEVER_MS = 100000 };

struct ref {
	struct hal_device *dev;
	struct hal_partition *part;
	struct hal_queue *q;
};

static inline int64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static inline int64_t in_ms(int64_t ms)
{
	return now_ns() + ms * 1000000;
}

static inline void spin(unsigned int n)
{
	for (volatile unsigned int i = 0; i < n; i++)
		;
}

static inline void ref_open_with(struct ref *r, const char *target,
				 const char *const *options)
{
	struct world w = {0};

	OK(hal_open(target, options, &r->dev));
	w.dev = r->dev;
	r->part = add_partition(&w, 2);
	r->q = add_queue(r->part, 0);
}

/* An engine that sleeps as soon as it has nothing to do. */
static inline void ref_open(struct ref *r)
{
	static const char *const options[] = {"hal.spin_us=0", NULL};

	ref_open_with(r, "ref?clock=real", options);
}

static inline void ref_close(struct ref *r)
{
	OK(hal_queue_destroy(r->q));
	OK(hal_partition_destroy(r->part));
	OK(hal_close(r->dev));
}

static inline int submit_nop(struct hal_queue *q, struct hal_point *done)
{
	return submit_cmd(q, hal_cmd_of(HAL_OP_NOP, HAL_CMD_REPLAYABLE), done);
}

static inline int wait_ms(struct hal_point p, int64_t ms)
{
	return hal_wait(&p, 1, 0, in_ms(ms));
}

/* A command goes through the queue. */
static inline void works(struct hal_queue *q)
{
	struct hal_point p;

	OK(submit_nop(q, &p));
	OK(wait_ms(p, NEVER_MS));
}

#endif

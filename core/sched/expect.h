/* SPDX-License-Identifier: Apache-2.0 */
/*
 * expect.h - predict the run time and the memory traffic of commands, from a profile and
 * from earlier commands.  Engine only.
 *
 * A kernel of the profile has its own statistics, shared by the whole device.  Commands
 * whose kernel is not in the profile share the statistics of their queue.  Each completed
 * command is added to the statistics that its kernel uses.  Sums decay over about eight
 * commands.  A profile's values count as the number of runs it has measured, at most
 * eight.
 */
#ifndef HAL_SCHED_EXPECT_H
#define HAL_SCHED_EXPECT_H

#include "sched/known.h"

/* Return how reliable predictions are, in thousandths; at least 1. */
uint16_t expect_sure(const struct sureness *s);

/* Return the number of multiply-accumulates of r, or 0 if unknown. */
static inline uint64_t record_work(const struct record *r)
{
	return r->cmd.op == HAL_OP_LAUNCH ? r->launch.kernel->info.work : 0;
}

/* Return the profile's cost of stopping r in mode, or NULL if unknown. */
static inline const struct stop_cost *expect_stop(const struct record *r, uint32_t mode)
{
	const struct known *k =
		r->cmd.op == HAL_OP_LAUNCH ? r->launch.kernel->known : NULL;

	return k != NULL && k->stops[mode].known ? &k->stops[mode] : NULL;
}

/* Learn that the device took quiet_ns to release q, which was suspended in mode. */
void expect_learn_quiet(struct hal_queue *q, uint32_t mode, uint64_t quiet_ns);

/* Predict the run time of r, a command of q, on the units of q's partition.  Return
 * HAL_POLICY_NEVER if unknown. */
uint64_t expect_command(const struct hal_queue *q, const struct record *r);
/* Implement hal_policy_host.expect. */
uint64_t expect_on(void *device, const struct hal_policy_queue *queue, uint32_t units);
/* Predict r, the next command of q, and write the result into the policy's view of q. */
void expect_head(struct hal_queue *q, const struct record *r) NOINLINE;
/* Predict the run time of k on that number of units while nothing else runs.  Return
 * HAL_POLICY_NEVER if unknown. */
uint64_t expect_alone(const struct known *k, uint32_t units);
/* Add an observed run time of k while nothing else ran. */
void expect_learn_alone(struct known *k, uint32_t units, uint64_t ran_ns);
/* Return whether f ran on the present units of q's partition only.  If the partition has
 * moved, or may have moved while f was stopped, f's time says nothing about any number of
 * units. */
static inline bool expect_is_here(const struct hal_queue *q, const struct inflight *f)
{
	return f->start_ns >= q->part->moved_ns && q->part->moving.units == 0 &&
	       (q->slow & SLOW_STOPPED) == 0;
}
/* Learn from f, which has completed successfully and has moved that number of bytes.  Its
 * run time, ran_ns, includes the time before it was stopped inside. */
void expect_learn(struct hal_queue *q, const struct inflight *f, uint64_t bytes,
		  uint64_t ran_ns);

#endif

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

#include "command/queue.h"
#include "space/partition.h"

#define RUNS_COUNTED 8u /* sums decay over about this many commands */

/* Array sizes: different unit counts with a run time, per kernel; programs of a profile
 * with known pairs; suspend modes. */
enum { KNOWN_UNITS = 32, KNOWN_PAIRED = 1024, STOP_MODES = HAL_SUSPEND_KILL + 1 };

/* The cost of stopping a kernel in one suspend mode: the time until the device has
 * released the kernel's queue, and how much later the kernel ends. */
struct stop_cost {
	bool known;
	uint64_t quiet_ns, cost_ns;
};

/* Statistics of one kernel of a profile. */
struct known {
	struct hal_bk_kernel_info kernel; /* name, arguments and work only */
	uint32_t kind;                    /* enum hal_policy_kind */
	uint32_t program; /* number in the profile, from 1; kernels of one program are
			     adjacent */
	uint32_t error_permille; /* of the measured times */
	double bytes, of;        /* bytes moved in total, by .of commands */
	struct sureness sure;
	struct by_units by[KNOWN_UNITS];
	uint32_t by_count, by_next;
	struct by_units alone[KNOWN_UNITS]; /* run times while nothing else ran */
	uint32_t alone_next;
	struct stop_cost stops[STOP_MODES]; /* by enum hal_suspend_mode */
	bool noted;                         /* listed in profile.taught */
};

/* How much longer a program takes beside another one. */
struct pair {
	uint32_t measured; /* by the profile, in thousandths; valid if profile.runs > 0 */
	uint32_t seen;     /* commands learned from */
	/* Learned sums: run times beside the other program, run times alone, and the
	 * number of commands. */
	double ran_ns, alone_ns, commands;
};

/* The indices of the kernels or pairs that were learned first.  hal.monitor shows only
 * these.  A count of NOTED_MAX + 1 means that some are missing. */
#define NOTED_MAX 128u

struct noted {
	uint32_t count;
	uint32_t index[NOTED_MAX];
};

/* A profile.  It is constant after loading, except for what the engine learns. */
struct profile {
	uint32_t count;
	struct known *kernels;
	/* Number of programs with known pairs, and of measurements of each pair. */
	uint32_t programs, runs;
	struct pair *pairs; /* [program that is slowed][other program]; NULL if .programs
			       is 0 */
	struct noted taught, paired;
};

/* Allocate an empty profile; NULL: out of memory. */
struct profile *profile_make(void);
void profile_free(struct profile *p);
/* Add a kernel, zeroed; NULL: out of memory.  Pointers to earlier kernels become
 * invalid. */
struct known *profile_more(struct profile *p);
/* Set the measured values of k: the number of runs (at least 1), their error, and the
 * bytes moved by one run.  Call this function before profile_add. */
void profile_measured(struct known *k, uint32_t runs, uint32_t error_permille,
		      uint64_t bytes);
/* Add ns, k's measured run time on that number of units.  Return false if the number is
 * known already, or if the table is full. */
bool profile_add(struct known *k, uint32_t units, uint64_t ns);
/* Add the cost of stopping k in mode.  Return false if it is known already. */
bool profile_add_stop(struct known *k, uint32_t mode, uint64_t quiet_ns,
		      uint64_t cost_ns);
/* Allocate the pairs of programs, with a cost of 0 at first.  Each was measured runs
 * times, or not at all if runs is 0.  Return false if out of memory. */
bool profile_pairs(struct profile *p, uint32_t programs, uint32_t runs);
/* Return the pair for program running beside other.  Both are numbers from 1 to
 * p->programs. */
struct pair *profile_pair(const struct profile *p, uint64_t program, uint64_t other);
/* Return the number of the first program of p that has exactly these kernels; 0: none, or
 * p is NULL. */
uint32_t profile_program(const struct profile *p, struct hal_kernel *const *kernels,
			 uint32_t count);
/* Return the statistics of kernel; NULL: p does not have it, or p is NULL. */
struct known *profile_find(const struct profile *p,
			   const struct hal_bk_kernel_info *kernel);
/* Return the number of k in p, from 1; 0 if k is NULL. */
uint32_t profile_number(const struct profile *p, const struct known *k);

/* Append index to the list n, unless the list is full. */
static inline void note(struct noted *n, size_t index)
{
	if (n->count < NOTED_MAX)
		n->index[n->count] = (uint32_t)index;
	n->count += n->count <= NOTED_MAX;
}

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

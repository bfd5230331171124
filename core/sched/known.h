/* SPDX-License-Identifier: Apache-2.0 */
/*
 * known.h - a profile: what is known of kernels before they run, and what the engine has
 * learned of them since (expect.c, beside.c).
 */
#ifndef HAL_SCHED_KNOWN_H
#define HAL_SCHED_KNOWN_H

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

#endif

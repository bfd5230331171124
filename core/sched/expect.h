/* SPDX-License-Identifier: Apache-2.0 */
/*
 * expect.h - what commands will run and move: as a profile says and as those before them
 * did; by the engine.
 *
 * A kernel that a profile knows is known by itself, on the whole device; of all others a
 * queue's commands are taken together.  Either way what runs is added to it, the last
 * eight or so count most, and a profile counts as so many as it has measured.
 */
#ifndef HAL_SCHED_EXPECT_H
#define HAL_SCHED_EXPECT_H

#include "command/queue.h"
#include "space/partition.h"

#define RUNS_COUNTED 8u /* sums go up to the last so many */

/* At most: numbers of units of a kernel; programs of which all pairs are known. */
enum { KNOWN_UNITS = 32, KNOWN_PAIRED = 1024, STOP_MODES = HAL_SUSPEND_KILL + 1 };

/* To stop a kernel in a mode, and go on: until it lets go, and how much later it ends. */
struct stop_cost {
	bool known;
	uint64_t quiet_ns, cost_ns;
};

/* What is known of a kernel by itself. */
struct known {
	struct hal_bk_kernel_info kernel; /* its name, arguments and work: these alone */
	uint32_t kind;                    /* enum hal_policy_kind */
	uint32_t program;                 /* of the profile's, from 1; those of one lie
					     side by side */
	uint32_t error_permille;          /* of what was measured */
	double bytes, of;                 /* of so many commands */
	struct sureness sure;
	struct by_units by[KNOWN_UNITS];
	uint32_t by_count, by_next;
	struct by_units alone[KNOWN_UNITS]; /* of those while nothing else ran */
	uint32_t alone_next;
	struct stop_cost stops[STOP_MODES]; /* by enum hal_suspend_mode */
	bool noted;                         /* in profile.taught */
};

/* How much longer a program takes beside another. */
struct pair {
	uint32_t measured; /* in thousandths; if profile.runs is not 0 */
	uint32_t seen;     /* commands that said something */
	/* Learned: what commands ran, and would have alone; of so many. */
	double ran_ns, alone_ns, commands;
};

/* The first kernels or pairs of which something has been learned, by their index, for who
 * looks: all are too many.  More are counted. */
#define NOTED_MAX 128u

struct noted {
	uint32_t count;
	uint32_t index[NOTED_MAX];
};

/* Constant but for what is learned once an engine has it. */
struct profile {
	uint32_t count;
	struct known *kernels;
	uint32_t programs, runs; /* of which pairs can be known; each measured so often */
	struct pair *pairs;      /* [whose time][who is beside]; NULL: .programs is 0 */
	struct noted taught, paired;
};

/* NULL: no memory. */
struct profile *profile_make(void);
void profile_free(struct profile *p);
/* One more, 0 at first; pointers to those before it are no longer good.  NULL: no memory.
 */
struct known *profile_more(struct profile *p);
/* Measured so often, at least once, and moved so much; before profile_add. */
void profile_measured(struct known *k, uint32_t runs, uint32_t error_permille,
		      uint64_t bytes);
/* On so many units; false: they are there already, or too many others. */
bool profile_add(struct known *k, uint32_t units, uint64_t ns);
/* False: that mode is there already. */
bool profile_add_stop(struct known *k, uint32_t mode, uint64_t quiet_ns,
		      uint64_t cost_ns);
/* Of so many programs each pair can be known; it was measured so often, and costs nothing
 * at first, or runs is 0.  False: no memory. */
bool profile_pairs(struct profile *p, uint32_t programs, uint32_t runs);
/* Programs from 1, as long as there are so many: the first beside the other. */
struct pair *profile_pair(const struct profile *p, uint64_t program, uint64_t other);
/* The first program of the profile, which may be NULL, that has just these kernels, from
 * 1. 0: there is none. */
uint32_t profile_program(const struct profile *p, struct hal_kernel *const *kernels,
			 uint32_t count);
/* NULL: the profile, which may be NULL, does not know it. */
struct known *profile_find(const struct profile *p,
			   const struct hal_bk_kernel_info *kernel);
/* Its number in p, from 1; 0: NULL. */
uint32_t profile_number(const struct profile *p, const struct known *k);

/* One more. */
static inline void note(struct noted *n, size_t index)
{
	if (n->count < NOTED_MAX)
		n->index[n->count] = (uint32_t)index;
	n->count += n->count <= NOTED_MAX;
}

/* In thousandths; at least 1. */
uint16_t expect_sure(const struct sureness *s);

/* Multiply-accumulates of r; 0: not known. */
static inline uint64_t record_work(const struct record *r)
{
	return r->cmd.op == HAL_OP_LAUNCH ? r->launch.kernel->info.work : 0;
}

/* NULL: not known. */
static inline const struct stop_cost *expect_stop(const struct record *r, uint32_t mode)
{
	const struct known *k =
		r->cmd.op == HAL_OP_LAUNCH ? r->launch.kernel->known : NULL;

	return k != NULL && k->stops[mode].known ? &k->stops[mode] : NULL;
}

/* What r, a command of q, will run; HAL_POLICY_NEVER: not known. */
uint64_t expect_command(const struct hal_queue *q, const struct record *r);
/* hal_policy_host.expect */
uint64_t expect_on(void *device, const struct hal_policy_queue *queue, uint32_t units);
/* q's next command, r: into q->view.head. */
void expect_head(struct hal_queue *q, const struct record *r) NOINLINE;
/* What k runs on so many units while nothing else does; HAL_POLICY_NEVER: not known. */
uint64_t expect_alone(const struct known *k, uint32_t units);
/* It has. */
void expect_learn_alone(struct known *k, uint32_t units, uint64_t ran_ns);
/* f, a command of q, has run where it is: one under which the border has moved, or may
 * have while it was stopped, says nothing about either. */
static inline bool expect_is_here(const struct hal_queue *q, const struct inflight *f)
{
	return f->start_ns >= q->part->moved_ns && q->part->moving.units == 0 &&
	       (q->slow & SLOW_STOPPED) == 0;
}
/* f has ended well.  ran_ns: all of it, also before it was stopped inside. */
void expect_learn(struct hal_queue *q, const struct inflight *f,
		  const struct hal_policy_end *end, uint64_t ran_ns);

#endif

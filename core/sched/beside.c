/* SPDX-License-Identifier: Apache-2.0 */
/*
 * beside.c - learn how much programs of a profile slow each other down.
 *
 * The engine learns from a completed command in two cases.  Each is a state of the other
 * partitions that lasted for nearly all of the command's run time:
 *
 *   all were idle           learned: the run time of its kernel alone, on that number of
 *                           units
 *   one ran one program,    learned: the time beyond that of running alone, which is what
 *   the others were idle    this program costs the command's program
 *
 * Commands that were stopped, or whose partition moved, teach nothing.  The device
 * reports when completed commands began and ended.  A running command is taken to have
 * begun when it was issued, or when the command before it ended, whichever was later.
 *
 * The profile's run times alone are used until commands are seen to run alone.  The more
 * commands of a pair of programs have been seen, the less the profile's value for the
 * pair counts.
 *
 * Learning reads the state of each partition once per completed command.  The engine
 * learns only if the device has a profile and the policy has HAL_POLICY_EXPECTS.
 */
#include "sched/beside.h"

/* "Nearly all" of a command's run time may leave out 1/SLACK_DIVISOR of it. */
#define SLACK_DIVISOR 16u
/* Sums decay over about COMMANDS_COUNTED commands, and are used from COMMANDS_MIN on. */
#define COMMANDS_COUNTED 32u
#define COMMANDS_MIN     4u

/* Values that stand for a program's number in what a partition ran during an interval: */
#define ALONE 0u         /* the partition ran nothing */
#define MIXED UINT32_MAX /* several programs, or one for part of the interval */

/* The program that a partition is known to have run, and when it ran. */
struct activity {
	uint32_t program;
	uint64_t since_ns, until_ns;
};

/* Return the program number of r, or MIXED if the profile has none for it. */
static uint32_t program_of(const struct record *r)
{
	uint32_t program = r->cmd.op == HAL_OP_LAUNCH ? r->launch.kernel->program : 0;

	return program != 0 ? program : MIXED;
}

/* Return whether a command of program that began at begun_ns continues stretch s.  A
 * short pause is allowed: short compared with the average of recent commands, because
 * some single commands are shorter than usual pauses. */
static bool continues_stretch(const struct stretch *s, uint32_t program,
			      uint64_t begun_ns)
{
	return program == s->program &&
	       begun_ns <= hal_bk_after(s->until_ns, s->recent_ns / SLACK_DIVISOR);
}

/* Add a command of part to its stretch, or begin a new stretch with it. */
static void extend_stretch(struct hal_partition *part, uint32_t program,
			   uint64_t start_ns, uint64_t end_ns)
{
	struct stretch *s = &part->sched.stretch;

	if (!continues_stretch(s, program, start_ns)) {
		s->program = program;
		s->since_ns = start_ns;
		s->recent_ns = 0;
	}
	s->until_ns = end_ns;
	s->recent_ns += end_ns - start_ns - s->recent_ns / 8;
}

/* Return the command that part runs now, or NULL if it runs none. */
static const struct inflight *running_now(const struct hal_partition *part)
{
	const struct list *flights = &part->dev->command.inflight_list;

	for (const struct list *it = flights->next; it != flights; it = it->next) {
		const struct inflight *f = container_of(it, struct inflight, on_device);

		if (f->queue->part == part)
			return f;
	}
	return NULL;
}

/* Return the program that part ran from start_ns to end_ns, ALONE or MIXED.  Up to
 * slack_ns at each end may differ. */
static uint32_t activity_of(const struct hal_partition *part, uint64_t start_ns,
			    uint64_t end_ns, uint64_t slack_ns)
{
	const struct stretch *s = &part->sched.stretch;
	struct activity c = {s->program, s->since_ns, s->until_ns};
	const struct inflight *now = running_now(part);
	uint64_t begun_ns, from_ns = hal_bk_after(start_ns, slack_ns);

	if (now != NULL) {
		begun_ns = now->issue_ns > s->until_ns ? now->issue_ns : s->until_ns;
		if (continues_stretch(s, program_of(now->record), begun_ns))
			c.until_ns = UINT64_MAX;
		else if (begun_ns <= from_ns)
			c = (struct activity){program_of(now->record), begun_ns,
					      UINT64_MAX};
		else if (begun_ns < end_ns - slack_ns)
			return MIXED;
	}
	if (c.until_ns <= from_ns)
		return ALONE;
	return c.since_ns <= from_ns && c.until_ns >= end_ns - slack_ns ? c.program
									: MIXED;
}

/* Return the one program that ran beside part from start_ns to end_ns, ALONE or MIXED. */
static uint32_t activity_of_others(const struct hal_partition *part, uint64_t start_ns,
				   uint64_t end_ns)
{
	uint64_t slack_ns = (end_ns - start_ns) / SLACK_DIVISOR;
	uint32_t all = ALONE;

	hal_list_for_each (it, &part->dev->space.partitions) {
		const struct hal_partition *other =
			container_of(it, struct hal_partition, on_device);
		uint32_t one;

		if (other == part)
			continue;
		one = activity_of(other, start_ns, end_ns, slack_ns);
		if (one != ALONE && all != ALONE)
			return MIXED;
		all = one != ALONE ? one : all;
	}
	return all;
}

/* Add value to a sum that decays over about COMMANDS_COUNTED values. */
static void decayed_add(double *sum, double value)
{
	*sum += value - *sum / COMMANDS_COUNTED;
}

/* Learn from a command that ran ran_ns beside another program and would run alone_ns
 * alone. */
static void learn_pair(struct profile *of, struct pair *p, uint64_t ran_ns,
		       uint64_t alone_ns)
{
	if (alone_ns == HAL_POLICY_NEVER)
		return;
	decayed_add(&p->ran_ns, (double)ran_ns);
	decayed_add(&p->alone_ns, (double)alone_ns);
	decayed_add(&p->commands, 1);
	p->seen += p->seen < UINT32_MAX;
	if (p->seen == COMMANDS_MIN)
		note(&of->paired, (size_t)(p - of->pairs));
}

void beside_learn(struct hal_queue *q, const struct inflight *f,
		  const struct hal_bk_event *ev)
{
	struct hal_partition *part = q->part;
	struct profile *p = q->dev->observe.profile;
	const struct record *r = f->record;
	uint64_t start_ns = ev->start_ns, end_ns = ev->end_ns;
	uint32_t program = program_of(r), beside;

	/* The command was stopped or failed, so its time is not that of a whole
	 * command. */
	if (ev->status != 0) {
		extend_stretch(part, MIXED, f->issue_ns, q->dev->now);
		return;
	}
	/* Commands that began under the previous policy may have run beside unobserved
	 * ones. */
	if (program <= p->programs && end_ns > start_ns &&
	    start_ns >= q->dev->sched.policy_ns && expect_is_here(q, f)) {
		struct known *k = r->launch.kernel->known;

		beside = activity_of_others(part, start_ns, end_ns);
		if (k != NULL && beside == ALONE)
			expect_learn_alone(k, part->desc.units, end_ns - start_ns);
		else if (k != NULL && beside <= p->programs)
			learn_pair(p, profile_pair(p, program, beside), end_ns - start_ns,
				   expect_alone(k, part->desc.units));
	}
	if (end_ns > start_ns)
		extend_stretch(part, program, start_ns, end_ns);
}

uint64_t beside_expect(void *device, uint32_t program, uint32_t other,
		       uint32_t *sure_permille)
{
	const struct hal_device *dev = device;
	const struct profile *p = dev->observe.profile;
	uint32_t programs = p != NULL ? p->programs : 0;
	double seen = 0, measured, cost = 0;
	const struct pair *pair;

	if (sure_permille != NULL)
		*sure_permille = 0;
	if (program - 1 >= programs || other - 1 >= programs)
		return HAL_POLICY_NEVER;
	pair = profile_pair(p, program, other);
	if (pair->commands > COMMANDS_MIN - 1) {
		seen = pair->commands < COMMANDS_COUNTED - 1
			       ? pair->commands / COMMANDS_COUNTED
			       : 1;
		cost = (pair->ran_ns / pair->alone_ns - 1) * 1000;
	} else if (p->runs == 0) {
		return HAL_POLICY_NEVER;
	}
	/* The cost measured by the profile gets the rest of the weight, 1 - seen. */
	measured = p->runs != 0 ? 1 - seen : 0;
	if (sure_permille != NULL)
		*sure_permille = (uint32_t)(seen * 1000 +
					    measured * p->runs * 1000 / RUNS_COUNTED);
	cost = p->runs != 0 ? seen * cost + measured * pair->measured : cost;
	return cost > 0 ? (uint64_t)(cost + 0.5) : 0;
}

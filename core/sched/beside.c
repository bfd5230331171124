/* SPDX-License-Identifier: Apache-2.0 */
/*
 * beside.c - what programs of a profile cost each other, learned while they run.
 *
 * A command counts if all the others on the device did one thing for nearly all of its
 * time: nothing, then it tells what its kernel runs alone on so many units; or one of
 * them ran commands of one program behind each other, then what it ran longer than alone
 * is what that program costs it.  Any other says nothing, and neither does one that was
 * moved or stopped.  When commands began and ended is the device's word; of those that
 * run still it is when they were given, or when the one before them ended.
 *
 * What the profile has measured alone is what it goes by until that is measured anew.
 * What it says of a pair counts less the more of that pair has been seen.
 *
 * For each command that ends there is a look at each partition: under policies that want
 * to know, with a profile, and never else.
 */
#include "sched/beside.h"

/* Of a command's time, what is left over of "nearly all". */
#define NEARLY 16u
/* Sums go up to the last so many commands, and say nothing before there were so few. */
#define COUNTED 32u
#define LEAST   4u

#define ALONE   0u
#define MIXED   UINT32_MAX

/* What a partition is known to have run since then, until then. */
struct company {
	uint32_t program;
	uint64_t since_ns, until_ns;
};

static uint32_t program_of(const struct record *r)
{
	uint32_t program = r->cmd.op == HAL_OP_LAUNCH ? r->launch.kernel->program : 0;

	return program != 0 ? program : MIXED;
}

/* What begins then goes on with it: a pause is short beside the last eight commands or
 * so, not beside the shortest of them. */
static bool goes_on(const struct stretch *s, uint32_t program, uint64_t begun_ns)
{
	return program == s->program &&
	       begun_ns <= hal_bk_after(s->until_ns, s->recent_ns / NEARLY);
}

static void ran(struct hal_partition *part, uint32_t program, uint64_t start_ns,
		uint64_t end_ns)
{
	struct stretch *s = &part->sched.stretch;

	if (!goes_on(s, program, start_ns)) {
		s->program = program;
		s->since_ns = start_ns;
		s->recent_ns = 0;
	}
	s->until_ns = end_ns;
	s->recent_ns += end_ns - start_ns - s->recent_ns / 8;
}

/* What part runs now; NULL: nothing. */
static const struct inflight *running_flight(const struct hal_partition *part)
{
	const struct list *flights = &part->dev->command.inflight_list;

	for (const struct list *it = flights->next; it != flights; it = it->next) {
		const struct inflight *f = container_of(it, struct inflight, on_device);

		if (f->queue->part == part)
			return f;
	}
	return NULL;
}

/* What part did from start to end, but for slack. */
static uint32_t did(const struct hal_partition *part, uint64_t start_ns, uint64_t end_ns,
		    uint64_t slack_ns)
{
	const struct stretch *s = &part->sched.stretch;
	struct company c = {s->program, s->since_ns, s->until_ns};
	const struct inflight *now = running_flight(part);
	uint64_t begun_ns, from_ns = hal_bk_after(start_ns, slack_ns);

	if (now != NULL) {
		begun_ns = now->issue_ns > s->until_ns ? now->issue_ns : s->until_ns;
		if (goes_on(s, program_of(now->record), begun_ns))
			c.until_ns = UINT64_MAX;
		else if (begun_ns <= from_ns)
			c = (struct company){program_of(now->record), begun_ns,
					     UINT64_MAX};
		else if (begun_ns < end_ns - slack_ns)
			return MIXED;
	}
	if (c.until_ns <= from_ns)
		return ALONE;
	return c.since_ns <= from_ns && c.until_ns >= end_ns - slack_ns ? c.program
									: MIXED;
}

static uint32_t all_did(const struct hal_partition *part, uint64_t start_ns,
			uint64_t end_ns)
{
	uint64_t slack_ns = (end_ns - start_ns) / NEARLY;
	uint32_t all = ALONE;

	hal_list_for_each (it, &part->dev->space.partitions) {
		const struct hal_partition *other =
			container_of(it, struct hal_partition, on_device);
		uint32_t one;

		if (other == part)
			continue;
		one = did(other, start_ns, end_ns, slack_ns);
		if (one != ALONE && all != ALONE)
			return MIXED;
		all = one != ALONE ? one : all;
	}
	return all;
}

/* Of a sum, one goes and another comes. */
static void learn(double *sum, double value)
{
	*sum += value - *sum / COUNTED;
}

static void learn_pair(struct profile *of, struct pair *p, uint64_t ran_ns,
		       uint64_t alone_ns)
{
	if (alone_ns == HAL_POLICY_NEVER)
		return;
	learn(&p->ran_ns, (double)ran_ns);
	learn(&p->alone_ns, (double)alone_ns);
	learn(&p->commands, 1);
	p->seen += p->seen < UINT32_MAX;
	if (p->seen == LEAST)
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

	/* Killed or stopped inside, so what it ran was no whole command. */
	if (ev->status != 0) {
		ran(part, MIXED, f->issue_ns, q->dev->now);
		return;
	}
	/* Of what ran under the policy before not all may have been seen. */
	if (program <= p->programs && end_ns > start_ns &&
	    start_ns >= q->dev->sched.policy_ns && expect_is_here(q, f)) {
		struct known *k = r->launch.kernel->known;

		beside = all_did(part, start_ns, end_ns);
		if (k != NULL && beside == ALONE)
			expect_learn_alone(k, part->desc.units, end_ns - start_ns);
		else if (k != NULL && beside <= p->programs)
			learn_pair(p, profile_pair(p, program, beside), end_ns - start_ns,
				   expect_alone(k, part->desc.units));
	}
	if (end_ns > start_ns)
		ran(part, program, start_ns, end_ns);
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
	if (pair->commands > LEAST - 1) {
		seen = pair->commands < COUNTED - 1 ? pair->commands / COUNTED : 1;
		cost = (pair->ran_ns / pair->alone_ns - 1) * 1000;
	} else if (p->runs == 0) {
		return HAL_POLICY_NEVER;
	}
	/* What has been measured has the rest. */
	measured = p->runs != 0 ? 1 - seen : 0;
	if (sure_permille != NULL)
		*sure_permille = (uint32_t)(seen * 1000 +
					    measured * p->runs * 1000 / RUNS_COUNTED);
	cost = p->runs != 0 ? seen * cost + measured * pair->measured : cost;
	return cost > 0 ? (uint64_t)(cost + 0.5) : 0;
}

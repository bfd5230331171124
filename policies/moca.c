/* SPDX-License-Identifier: Apache-2.0 */
/*
 * moca: share the memory's bandwidth among partitions by urgency and demand.
 *
 * Promise: while partitions together demand more bandwidth than the memory has, limit
 * each to a share in proportion to score x demand.  A partition whose share covers nearly
 * all of its demand runs without a limit.  Recompute the limits at the end of each window
 * in which a command became runnable or completed.  The score of a partition is that of
 * its most urgent head: moca_weight for latency-critical work, 1 for best effort, plus
 * the rest of the submission's run time divided by the time to its deadline.
 * Queues: within a partition, latency-critical queues by deadline, then best effort in
 * order of arrival.
 * Options: moca_window_us, moca_percent, moca_priority, moca_weight.
 *
 * Follows MoCA (Kim, Genc, Nikiforov, Asanovic, Nikolic, Shao, "MoCA: Memory-Centric,
 * Adaptive Execution for Multi-Tenant Deep Neural Networks", 2023).  It limits the memory
 * requests that each tile of an accelerator issues per window.  The limits follow a score
 * that grows with a tenant's priority and with shrinking slack.  Differences: there the
 * traffic of a layer is predicted from its shape, each layer sets its own limit, and
 * tiles are assigned too.  Here demand is measured: the highest rate at which the
 * partition's commands moved bytes while no limit slowed them.  A partition has one limit
 * and keeps its units.
 *
 * Good where tenants with their own units compete only for memory and some of them are
 * urgent: the others get less bandwidth and still compute.  Bad where tenants have their
 * own memory channels: their demands are added all the same, and best effort is limited
 * needlessly (under fifo it is not).  Bad for a burst shorter than a window, which ends
 * before a limit reacts to it.  On a device that cannot limit bandwidth (HAL_CAP_LIMIT)
 * only the order of the queues remains.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include <hal/policy.h>

#include "common.h"

/* Upper bound of the urgency, which is the remaining run time divided by the time to the
 * deadline.  Late work has this urgency. */
#define URGENCY_MAX 16
/* A limit above this fraction of a partition's demand slows the partition and frees
 * hardly any bandwidth, so it is not set. */
#define ENOUGH 0.85

struct shared {
	struct hal_policy_shared common;
	/* Bytes per ns.  demand: the rate of the partition's commands while no limit
	 * slows them; peak: the highest rate of a command in this window. */
	double demand, peak;
	/* The most urgent head so far: its queue (NULL: none), the score of its class,
	 * the expected run time of the rest of its submission, and its deadline. */
	const struct hal_policy_queue *urgent;
	double class_score;
	uint64_t rest_ns, deadline_ns;
	/* Computed at the end of a window.  weight: score x demand, the basis of its
	 * share; 0: the partition has no work.  unlimited: the partition needs no limit
	 * in the next window. */
	double weight;
	bool has_work, unlimited;
};

struct moca {
	const struct hal_host *host;
	struct hal_policy_shared *all;
	const struct hal_policy_host *device;
	uint64_t window_ns;
	int64_t priority;
	double critical_score; /* option moca_weight */
	double capacity;       /* bytes per ns to share; 0: no limits can be set */
	bool contended; /* demand exceeded capacity at the end of the last window */
	bool alarm_set; /* an alarm is set for the end of this window */
};

static const struct hal_option_def options[] = {
	{"moca_window_us", HAL_OPTION_INT, 1, 10000000, NULL, "20",
	 "moca: length of a window, in us; limits are recomputed at its end"},
	{"moca_percent", HAL_OPTION_INT, 1, 100, NULL, "90",
	 "moca: percent of the memory's bandwidth that partitions share; limits are set "
	 "when they demand more"},
	{"moca_priority", HAL_OPTION_INT, INT32_MIN, INT32_MAX, NULL, "1",
	 "moca: lowest priority of latency-critical work in queues of normal class; "
	 "lower ones are best effort"},
	{"moca_weight", HAL_OPTION_INT, 1, 1000, NULL, "8",
	 "moca: score of latency-critical work whose deadline is far; best effort has 1"},
};

static int create(const struct hal_host *host, const struct hal_bk_config *cfg,
		  const struct hal_policy_host *device, void **state)
{
	struct moca *m = calloc(1, sizeof(*m));

	if (m == NULL)
		return host->fail(ENOMEM, "moca: no memory");
	m->host = host;
	m->device = device;
	m->window_ns = (uint64_t)host->option_int(cfg, "moca_window_us") * 1000;
	m->priority = host->option_int(cfg, "moca_priority");
	m->critical_score = (double)host->option_int(cfg, "moca_weight");
	if ((device->info->caps & HAL_CAP_LIMIT) != 0)
		m->capacity = (double)device->info->bandwidth * 1e-9 *
			      (double)host->option_int(cfg, "moca_percent") / 100;
	*state = m;
	return 0;
}

/* ---- score of a partition ------------------------------------------------------------- */

/* Return the score of a head: class_score, plus the remaining run time divided by the
 * time to the deadline. */
static double head_score(double class_score, uint64_t rest_ns, uint64_t deadline_ns,
			 uint64_t now_ns)
{
	double urgency;

	if (deadline_ns == HAL_POLICY_NEVER)
		return class_score;
	if (rest_ns == HAL_POLICY_NEVER)
		rest_ns = 1;
	if (deadline_ns <= now_ns)
		return class_score + URGENCY_MAX;
	urgency = (double)rest_ns / (double)(deadline_ns - now_ns);
	return class_score + (urgency < URGENCY_MAX ? urgency : URGENCY_MAX);
}

/* Return the score of the partition's most urgent head. */
static double partition_score(const struct shared *s, uint64_t now_ns)
{
	return s->urgent == NULL
		       ? 1
		       : head_score(s->class_score, s->rest_ns, s->deadline_ns, now_ns);
}

/* Record the head of queue, which has become runnable, as the partition's most urgent one
 * if its score is higher, or if it replaces an earlier head of the same queue. */
static void update_most_urgent(const struct moca *m, struct shared *s,
			       const struct hal_policy_queue *queue, uint64_t now_ns)
{
	double class_score = hal_policy_above(queue, m->priority) ? m->critical_score : 1;
	const struct hal_policy_command *c = &queue->head;

	if (s->urgent != queue && s->urgent != NULL &&
	    partition_score(s, now_ns) >=
		    head_score(class_score, c->rest_ns, c->deadline_ns, now_ns))
		return;
	s->urgent = queue;
	s->class_score = class_score;
	s->rest_ns = c->rest_ns;
	s->deadline_ns = c->deadline_ns;
}

/* ---- bandwidth limits ------------------------------------------------------------------ */

static struct shared *next_of(const struct shared *s)
{
	return (struct shared *)s->common.next; /* common is the first member */
}

static struct shared *first_of(const struct moca *m)
{
	return (struct shared *)m->all;
}

/* Compute demand and weight of the partition from the window that ends now.  While the
 * partition uses nearly all of its limit, its rate does not show its demand: keep the old
 * demand then. */
static void update_demand(struct shared *s, uint64_t now_ns)
{
	double limit = (double)s->common.held * 1e-9; /* bytes per ns; 0: no limit */

	if (s->peak > 0 && (s->peak > s->demand || s->peak < 0.9 * limit || limit == 0))
		s->demand = s->peak;
	s->peak = 0;
	s->has_work = s->common.part->runnable > 0 || s->common.part->running > 0;
	s->weight = s->has_work ? partition_score(s, now_ns) * s->demand : 0;
	s->unlimited = s->weight == 0;
}

/*
 * Divide the capacity among the partitions in proportion to their weights and limit each
 * to its share.
 *
 * A partition whose share covers nearly all of its demand runs without a limit, and the
 * remaining capacity is divided again among the others.
 *
 * demand_exact: demands were measured while limits were in force, so that no other
 *               partition slowed the measured one.  Only then give the part of a share
 *               that exceeds a demand to the other partitions.
 */
static void set_limits(struct moca *m, bool demand_exact)
{
	double left = m->capacity, weights;
	bool again;

	do {
		double divided = left;

		weights = 0;
		again = false;
		for (struct shared *s = first_of(m); s != NULL; s = next_of(s))
			weights += s->unlimited ? 0 : s->weight;
		for (struct shared *s = first_of(m); s != NULL; s = next_of(s)) {
			double share = divided * s->weight / weights;

			if (s->unlimited || share < s->demand * ENOUGH)
				continue;
			hal_policy_hold(m->device, &s->common, 0);
			left -= demand_exact && share > s->demand ? s->demand : share;
			s->unlimited = true;
			again = true;
		}
	} while (again);
	for (struct shared *s = first_of(m); s != NULL; s = next_of(s))
		if (!s->unlimited)
			hal_policy_hold(m->device, &s->common,
					(uint64_t)(left * s->weight / weights * 1e9));
}

/* The alarm at the end of a window: set or remove the limits for the next one. */
static void window_ended(void *state, uint64_t now_ns)
{
	struct moca *m = state;
	uint32_t count = 0;
	double demand = 0;
	bool was_contended = m->contended;

	m->alarm_set = false;
	for (struct shared *s = first_of(m); s != NULL; s = next_of(s)) {
		update_demand(s, now_ns);
		demand += s->unlimited ? 0 : s->demand;
		count += !s->unlimited;
	}
	/* A partition that is alone may use all of the bandwidth. */
	m->contended = count > 1 && demand > m->capacity;
	for (struct shared *s = first_of(m); s != NULL; s = next_of(s))
		if (!m->contended || s->unlimited)
			hal_policy_hold(m->device, &s->common, 0);
	if (m->contended)
		set_limits(m, was_contended);
}

/* A command has become runnable or completed: begin a window unless one is under way. */
static void begin_window(struct moca *m, uint64_t now_ns)
{
	if (m->alarm_set || m->capacity == 0)
		return;
	m->alarm_set = true;
	m->device->alarm(m->device->device, hal_bk_after(now_ns, m->window_ns));
}

/* ---- order of queues: latency-critical work first, by deadline ------------------------ */

static int attach(void *state, struct hal_policy_partition *part,
		  struct hal_policy_queue *queue)
{
	struct moca *m = state;

	return hal_policy_share(m->host, &m->all, part, queue, sizeof(struct shared));
}

static void detach(void *state, struct hal_policy_partition *part,
		   struct hal_policy_queue *queue)
{
	struct shared *s = hal_policy_shared(queue->own);
	struct moca *m = state;

	if (s->urgent == queue)
		s->urgent = NULL;
	if (s->common.queues == 1)
		hal_policy_hold(m->device, &s->common, 0);
	hal_policy_unshare(&m->all, part, queue);
}

static uint64_t key(void *state, struct hal_policy_partition *part,
		    struct hal_policy_queue *queue, uint64_t now_ns)
{
	struct shared *s = hal_policy_shared(queue->own);
	uint64_t deadline_ns = queue->head.deadline_ns;
	struct moca *m = state;

	(void)part;
	if (s != NULL)
		update_most_urgent(m, s, queue, now_ns);
	begin_window(m, now_ns);
	if (!hal_policy_above(queue, m->priority))
		return HAL_POLICY_NEVER;
	return deadline_ns < HAL_POLICY_NEVER - 1 ? deadline_ns : HAL_POLICY_NEVER - 1;
}

static void ended(void *state, struct hal_policy_partition *part,
		  struct hal_policy_queue *queue, const struct hal_policy_end *end)
{
	struct shared *s = hal_policy_shared(queue->own);
	double rate;

	(void)part;
	begin_window(state, end->now_ns);
	if (s == NULL || end->ran_ns == 0)
		return;
	rate = (double)end->bytes / (double)end->ran_ns;
	if (rate > s->peak)
		s->peak = rate;
	/* This queue has no most urgent head any more.  The heads of other queues are
	 * considered when they become runnable. */
	if (s->urgent == queue && queue->running == 0)
		s->urgent = NULL;
}

extern const struct hal_policy hal_policy_moca;
const struct hal_policy hal_policy_moca = {
	.size = sizeof(struct hal_policy),
	.abi = HAL_POLICY_ABI,
	.name = "moca",
	.summary = "memory bandwidth to partitions by urgency and demand",
	.options = options,
	.option_count = sizeof(options) / sizeof(options[0]),
	.flags = HAL_POLICY_ALWAYS | HAL_POLICY_EXPECTS,
	.create = create,
	.destroy = free,
	.attach = attach,
	.detach = detach,
	.key = key,
	.ended = ended,
	.alarm = window_ended,
};

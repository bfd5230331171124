/* SPDX-License-Identifier: Apache-2.0 */
/*
 * moca: who needs the memory's bandwidth most has it, window by window.
 *
 * MoCA (Kim, Genc, Nikiforov, Asanovic, Nikolic, Shao 2023): an accelerator's tiles meet
 * in memory alone; while all together want more than it has, each is held to a target of
 * requests a window, and the targets follow a score that grows with a tenant's priority
 * and as its slack shrinks.  There what a layer moves is predicted from its shape and
 * each layer sets window and target; here it is measured, the highest rate at which
 * commands of a partition moved bytes while it was not held back, a partition has one
 * target, and they are set anew after a window in which something came or ended.  There
 * tiles are given out, too; here each partition keeps its units.
 *
 * The score is class (1, and moca_weight for latency-critical work) and rest over slack
 * of the head that is most urgent; what the memory has is shared by score x demand, and
 * nobody has more of it than he wants.
 *
 * Good where tenants with units of their own meet in memory, and some of them are in a
 * hurry: who copies beside them waits for his turn on the bus, and computes on.  Bad
 * where they do not meet, on channels of their own: demand adds up all the same, and best
 * effort is held back for nothing (under fifo it is not); and a burst shorter than a
 * window is over before anybody is held back for it.  A device without limits
 * (HAL_CAP_LIMIT) is left alone: what is left there is the order by deadline.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include <hal/policy.h>

#include "common.h"

/* Of rest over slack; who is late already. */
#define URGENCY_MAX 16
/* Who is held to more of what he wants than that is slower for it, and frees nothing. */
#define ENOUGH 0.85

struct shared {
	struct hal_policy_shared common;
	/* Bytes a ns: what its commands move while nothing holds them back, and the most
	 * that one of them has moved in this window. */
	double demand, peak;
	/* Of the head that was most urgent when it came: whose, and of what class. */
	const struct hal_policy_queue *urgent;
	double class;
	uint64_t rest_ns, deadline_ns;
	/* Of the alarm. */
	double score;
	bool works, served;
};

struct moca {
	const struct hal_host *host;
	struct hal_policy_shared *all;
	const struct hal_policy_host *device;
	uint64_t window_ns;
	int64_t priority;
	double weight;
	double capacity;    /* bytes a ns; 0: nothing can be limited */
	bool full, alarmed; /* more was wanted than there is; for the next window */
};

static const struct hal_option_def options[] = {
	{"moca_window_us", HAL_OPTION_INT, 1, 10000000, NULL, "20",
	 "moca: after so much device time targets are set anew"},
	{"moca_percent", HAL_OPTION_INT, 1, 100, NULL, "90",
	 "moca: of the memory's bandwidth, what all together may want"},
	{"moca_priority", HAL_OPTION_INT, INT32_MIN, INT32_MAX, NULL, "1",
	 "moca: priority from which work is latency-critical; below is best effort"},
	{"moca_weight", HAL_OPTION_INT, 1, 1000, NULL, "8",
	 "moca: score of latency-critical work that has time; of best effort: 1"},
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
	m->weight = (double)host->option_int(cfg, "moca_weight");
	if ((device->info->caps & HAL_CAP_LIMIT) != 0)
		m->capacity = (double)device->info->bandwidth * 1e-9 *
			      (double)host->option_int(cfg, "moca_percent") / 100;
	*state = m;
	return 0;
}

/* ---- how urgent --------------------------------------------------------------------- */

static double score(double class, uint64_t rest_ns, uint64_t deadline_ns, uint64_t now_ns)
{
	double urgency;

	if (deadline_ns == HAL_POLICY_NEVER)
		return class;
	if (rest_ns == HAL_POLICY_NEVER)
		rest_ns = 1;
	if (deadline_ns <= now_ns)
		return class + URGENCY_MAX;
	urgency = (double)rest_ns / (double)(deadline_ns - now_ns);
	return class + (urgency < URGENCY_MAX ? urgency : URGENCY_MAX);
}

static double score_of(const struct shared *s, uint64_t now_ns)
{
	return s->urgent == NULL ? 1
				 : score(s->class, s->rest_ns, s->deadline_ns, now_ns);
}

/* The head of queue, which comes, is what its partition is judged by. */
static void judge(const struct moca *m, struct shared *s,
		  const struct hal_policy_queue *queue, uint64_t now_ns)
{
	double class = hal_policy_above(queue, m->priority) ? m->weight : 1;
	const struct hal_policy_command *c = &queue->head;

	if (s->urgent != queue && s->urgent != NULL &&
	    score_of(s, now_ns) >= score(class, c->rest_ns, c->deadline_ns, now_ns))
		return;
	s->urgent = queue;
	s->class = class;
	s->rest_ns = c->rest_ns;
	s->deadline_ns = c->deadline_ns;
}

/* ---- targets ------------------------------------------------------------------------ */

static struct shared *next_of(const struct shared *s)
{
	return (struct shared *)s->common.next; /* the first member */
}

static struct shared *first_shared(const struct moca *m)
{
	return (struct shared *)m->all;
}

/* What it wants: as it was, while it takes all that it may have. */
static void update_demand(struct shared *s, uint64_t now_ns)
{
	double target = (double)s->common.held * 1e-9;

	if (s->peak > 0 && (s->peak > s->demand || s->peak < 0.9 * target || target == 0))
		s->demand = s->peak;
	s->peak = 0;
	s->works = s->common.part->runnable > 0 || s->common.part->running > 0;
	s->score = s->works ? score_of(s, now_ns) * s->demand : 0;
	s->served = s->score == 0;
}

/* Of what is left, in proportion; who would have nearly what he wants has it all, and the
 * others are asked again.  What he leaves of his part is theirs, if it is sure that he
 * does: nobody was in his way when that was measured. */
static void share(struct moca *m, bool sure)
{
	double left = m->capacity, scores;
	bool again;

	do {
		double here = left;

		scores = 0;
		again = false;
		for (struct shared *s = first_shared(m); s != NULL; s = next_of(s))
			scores += s->served ? 0 : s->score;
		for (struct shared *s = first_shared(m); s != NULL; s = next_of(s)) {
			double part = here * s->score / scores;

			if (s->served || part < s->demand * ENOUGH)
				continue;
			hal_policy_hold(m->device, &s->common, 0);
			left -= sure && part > s->demand ? s->demand : part;
			s->served = true;
			again = true;
		}
	} while (again);
	for (struct shared *s = first_shared(m); s != NULL; s = next_of(s))
		if (!s->served)
			hal_policy_hold(m->device, &s->common,
					(uint64_t)(left * s->score / scores * 1e9));
}

static void alarm_rings(void *state, uint64_t now_ns)
{
	struct moca *m = state;
	uint32_t count = 0;
	double wanted = 0;
	bool sure = m->full;

	m->alarmed = false;
	for (struct shared *s = first_shared(m); s != NULL; s = next_of(s)) {
		update_demand(s, now_ns);
		wanted += s->served ? 0 : s->demand;
		count += !s->served;
	}
	/* Alone he may have it all. */
	m->full = count > 1 && wanted > m->capacity;
	for (struct shared *s = first_shared(m); s != NULL; s = next_of(s))
		if (!m->full || s->served)
			hal_policy_hold(m->device, &s->common, 0);
	if (m->full)
		share(m, sure);
}

/* Something has come or ended. */
static void look_later(struct moca *m, uint64_t now_ns)
{
	if (m->alarmed || m->capacity == 0)
		return;
	m->alarmed = true;
	m->device->alarm(m->device->device, hal_bk_after(now_ns, m->window_ns));
}

/* ---- the queues: by deadline, latency-critical work first --------------------------- */

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
		judge(m, s, queue, now_ns);
	look_later(m, now_ns);
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
	look_later(state, end->now_ns);
	if (s == NULL || end->ran_ns == 0)
		return;
	rate = (double)end->bytes / (double)end->ran_ns;
	if (rate > s->peak)
		s->peak = rate;
	/* What else there is of the partition is judged when it comes. */
	if (s->urgent == queue && queue->running == 0)
		s->urgent = NULL;
}

extern const struct hal_policy hal_policy_moca;
const struct hal_policy hal_policy_moca = {
	.size = sizeof(struct hal_policy),
	.abi = HAL_POLICY_ABI,
	.name = "moca",
	.summary = "the memory's bandwidth to who needs it most",
	.options = options,
	.option_count = sizeof(options) / sizeof(options[0]),
	.flags = HAL_POLICY_ALWAYS | HAL_POLICY_EXPECTS,
	.create = create,
	.destroy = free,
	.attach = attach,
	.detach = detach,
	.key = key,
	.ended = ended,
	.alarm = alarm_rings,
};

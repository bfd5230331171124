/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fission: the fewest units with which each deadline is met; the rest is shared.
 *
 * Planaria (Ghodrati, Ahn, Kim, Kinzer, Yatham, Alla, Sharma, Alian, Ebrahimi, Kim,
 * Young, Esmaeilzadeh 2020): a systolic array is split as tenants come and go, so that
 * each has the least that keeps its deadline, and what is left goes to all.  There times
 * by size come from a compiler and the array is split anew whenever a task comes or ends;
 * here they are learned, or taken to be in proportion to the units, who has no deadline
 * needs nothing, all queues that wait in a partition are taken to have as much as the
 * first, and borders move when somebody would be late, else once a period at most.
 *
 * Good for deadlines that a fixed split can not keep all: now one tenant needs more of
 * the device, now another.  Bad for best effort beside deadlines that are met anyway with
 * fewer units than thought (a fixed split leaves it its part); and for what does not
 * become faster with units: it is given more and more, and is late all the same.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include <hal/policy.h>

#include "common.h"

struct shared {
	struct hal_policy_shared common;
	uint64_t deadline_ns; /* the first that it has to keep */
};

struct fission {
	const struct hal_host *host;
	struct hal_policy_shared *all;
	const struct hal_policy_host *device;
	uint64_t period_ns, margin, unknown_ns;
	uint64_t next_ns; /* not before then without need */
};

static const struct hal_option_def options[] = {
	{"fission_period_us", HAL_OPTION_INT, 1, 10000000, NULL, "100",
	 "fission: so long borders stay where they are while nobody is late"},
	{"fission_margin", HAL_OPTION_INT, 0, 1000, NULL, "10",
	 "fission: percent that commands are taken to run longer than expected"},
	{"fission_unknown_us", HAL_OPTION_INT, 1, 10000000, NULL, "1000",
	 "fission: what a command is taken to run while none of its queue has ended"},
};

static int create(const struct hal_host *host, const struct hal_bk_config *cfg,
		  const struct hal_policy_host *device, void **state)
{
	struct fission *f = calloc(1, sizeof(*f));

	if (f == NULL)
		return host->fail(ENOMEM, "fission: no memory");
	f->host = host;
	f->device = device;
	f->period_ns = (uint64_t)host->option_int(cfg, "fission_period_us") * 1000;
	f->margin = (uint64_t)host->option_int(cfg, "fission_margin");
	f->unknown_ns = (uint64_t)host->option_int(cfg, "fission_unknown_us") * 1000;
	*state = f;
	return 0;
}

static int attach(void *state, struct hal_policy_partition *part,
		  struct hal_policy_queue *queue)
{
	struct fission *f = state;

	return hal_policy_share(f->host, &f->all, part, queue, sizeof(struct shared));
}

static void detach(void *state, struct hal_policy_partition *part,
		   struct hal_policy_queue *queue)
{
	struct fission *f = state;

	hal_policy_unshare(&f->all, part, queue);
}

/* ---- how many ----------------------------------------------------------------------- */

/* What a queue has to do, and until when. */
struct backlog {
	double head_ns, all_ns; /* on the units that there are: its submission; all */
	double expected_ns;     /* its command there; 0: not known */
	double head_left, all_left;
};

static double time_left(uint64_t deadline_ns, uint64_t now_ns)
{
	return deadline_ns > now_ns ? (double)(deadline_ns - now_ns) : 0;
}

static struct backlog backlog_of(const struct fission *f,
				 const struct hal_policy_partition *part,
				 const struct hal_policy_queue *queue, uint64_t now_ns)
{
	const struct hal_policy_host *h = f->device;
	const struct hal_policy_command *c = &queue->head;
	bool known = c->rest_ns != HAL_POLICY_NEVER;
	double more = (double)(100 + f->margin) / 100;
	uint64_t last_ns;
	uint32_t waiting = h->waiting(h->device, queue, &last_ns);
	struct backlog b;

	if (part->runnable > 1)
		more *= part->runnable;
	b.head_ns = (double)(known ? c->rest_ns : f->unknown_ns) * more;
	b.all_ns = b.head_ns;
	if (waiting > 1)
		b.all_ns += (double)(known ? c->whole_ns : f->unknown_ns) * more *
			    (waiting - 1);
	b.expected_ns = c->expected_ns != HAL_POLICY_NEVER ? (double)c->expected_ns : 0;
	b.head_left = time_left(c->deadline_ns, now_ns);
	b.all_left = time_left(last_ns, now_ns);
	return b;
}

/* On so many units its submission keeps its deadline, and the last of those behind it
 * its own. */
static bool in_time(const struct fission *f, const struct hal_policy_partition *part,
		    const struct hal_policy_queue *queue, const struct backlog *b,
		    uint32_t units)
{
	const struct hal_policy_host *h = f->device;
	uint64_t there = h->expect(h->device, queue, units);
	double times = (double)part->units / units;

	if (there != HAL_POLICY_NEVER && b->expected_ns > 0)
		times = (double)there / b->expected_ns;
	return b->head_ns * times <= b->head_left && b->all_ns * times <= b->all_left;
}

/* The fewest that keep its deadlines; all when none do. */
static uint32_t units_for(const struct fission *f,
			  const struct hal_policy_partition *part,
			  const struct hal_policy_queue *queue, uint64_t now_ns)
{
	uint32_t units = part->floor != 0 ? part->floor : 1, too_few = units - 1;
	struct backlog b;

	if (queue->head.deadline_ns == HAL_POLICY_NEVER)
		return 0;
	b = backlog_of(f, part, queue, now_ns);
	while (units < part->ceiling && !in_time(f, part, queue, &b, units)) {
		too_few = units;
		units = units < part->ceiling / 2 ? 2 * units : part->ceiling;
	}
	while (units - too_few > 1) {
		uint32_t half = too_few + (units - too_few) / 2;

		if (in_time(f, part, queue, &b, half))
			units = half;
		else
			too_few = half;
	}
	return units;
}

static uint64_t deadline_of(const struct hal_policy_shared *s)
{
	return ((const struct shared *)s)->deadline_ns; /* the first member */
}

/* Whose deadline is earlier has what it needs first: else one that is late whatever it
 * has could keep the others late. */
static void sort(struct hal_policy_shared **all)
{
	struct hal_policy_shared *rest = *all;

	*all = NULL;
	while (rest != NULL) {
		struct hal_policy_shared *s = rest, **at = all;

		rest = s->next;
		while (*at != NULL && deadline_of(*at) <= deadline_of(s))
			at = &(*at)->next;
		s->next = *at;
		*at = s;
	}
}

static void spread(struct fission *f, uint64_t now_ns)
{
	for (struct hal_policy_shared *s = f->all; s != NULL; s = s->next) {
		bool works = s->part->runnable > 0 || s->part->running > 0;

		s->least = works ? s->least : 0;
		s->most = works ? s->part->ceiling : 0;
		if (!works)
			((struct shared *)s)->deadline_ns = HAL_POLICY_NEVER;
	}
	sort(&f->all);
	if (hal_policy_spread(f->device, f->all) != -EBUSY)
		f->next_ns = hal_bk_after(now_ns, f->period_ns);
}

/* ---- the queues: by deadline -------------------------------------------------------- */

static uint64_t key(void *state, struct hal_policy_partition *part,
		    struct hal_policy_queue *queue, uint64_t now_ns)
{
	struct shared *s = hal_policy_shared(queue->own);
	struct fission *f = state;
	uint32_t units;

	if (s == NULL)
		return queue->head.deadline_ns;
	units = units_for(f, part, queue, now_ns);
	if (units > s->common.least)
		s->common.least = units;
	if (s->deadline_ns > queue->head.deadline_ns)
		s->deadline_ns = queue->head.deadline_ns;
	if (s->common.least > part->units)
		spread(f, now_ns);
	return queue->head.deadline_ns;
}

static uint64_t turn(void *state, struct hal_policy_partition *part,
		     struct hal_policy_queue *queue, uint64_t asked, uint64_t now_ns)
{
	struct shared *s = hal_policy_shared(queue->own);
	struct fission *f = state;

	(void)asked;
	if (s == NULL)
		return 0;
	s->common.least = units_for(f, part, queue, now_ns);
	s->deadline_ns = queue->head.deadline_ns;
	if (s->common.least > part->units || now_ns >= f->next_ns)
		spread(f, now_ns);
	return 0;
}

extern const struct hal_policy hal_policy_fission;
const struct hal_policy hal_policy_fission = {
	.size = sizeof(struct hal_policy),
	.abi = HAL_POLICY_ABI,
	.name = "fission",
	.summary = "the fewest units that keep each deadline, the rest shared",
	.options = options,
	.option_count = sizeof(options) / sizeof(options[0]),
	.flags = HAL_POLICY_ALWAYS | HAL_POLICY_EXPECTS,
	.create = create,
	.destroy = free,
	.attach = attach,
	.detach = detach,
	.key = key,
	.turn = turn,
};

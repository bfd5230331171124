/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fission: the fewest units with which each deadline is met; the rest is shared.
 *
 * Planaria (Ghodrati, Ahn, Kim, Kinzer, Yatham, Alla, Sharma, Alian, Ebrahimi, Kim,
 * Young, Esmaeilzadeh 2020): a systolic array is split as tenants come and go, so that
 * each has the least that keeps its deadline, and what is left goes to all.  There times
 * by size come from a compiler and the array is split anew whenever a task comes or ends;
 * here they are learned, or taken to be in proportion to the units, who has no deadline
 * needs nothing, all that wait in a partition are taken to be as long as the first, and
 * borders move when somebody would be late, else once a period at most.
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

	return hal_policy_share(f->host, &f->all, part, queue,
				sizeof(struct hal_policy_shared));
}

static void detach(void *state, struct hal_policy_partition *part,
		   struct hal_policy_queue *queue)
{
	struct fission *f = state;

	hal_policy_unshare(&f->all, part, queue);
}

/* ---- how many ----------------------------------------------------------------------- */

/* What queue's submission, and as many behind it as wait there, run on so many units. */
static double time_on(const struct fission *f, const struct hal_policy_partition *part,
		      const struct hal_policy_queue *queue, uint32_t units)
{
	const struct hal_policy_host *h = f->device;
	const struct hal_policy_command *c = &queue->head;
	uint64_t there = h->expect(h->device, queue, units);
	double ns = (double)(c->rest_ns != HAL_POLICY_NEVER ? c->rest_ns : f->unknown_ns);

	if (there != HAL_POLICY_NEVER && c->expected_ns != HAL_POLICY_NEVER)
		ns *= (double)there / (double)c->expected_ns;
	else
		ns *= (double)part->units / units;
	ns *= part->runnable > 1 ? part->runnable : 1;
	return ns * (double)(100 + f->margin) / 100;
}

/* The fewest that keep its deadline; all when none do. */
static uint32_t units_for(const struct fission *f,
			  const struct hal_policy_partition *part,
			  const struct hal_policy_queue *queue, uint64_t now_ns)
{
	uint64_t deadline_ns = queue->head.deadline_ns;
	uint32_t units = part->floor != 0 ? part->floor : 1, too_few = units - 1;
	double left;

	if (deadline_ns == HAL_POLICY_NEVER)
		return 0;
	left = deadline_ns > now_ns ? (double)(deadline_ns - now_ns) : 0;
	while (units < part->ceiling && time_on(f, part, queue, units) > left) {
		too_few = units;
		units = units < part->ceiling / 2 ? 2 * units : part->ceiling;
	}
	while (units - too_few > 1) {
		uint32_t half = too_few + (units - too_few) / 2;

		if (time_on(f, part, queue, half) > left)
			too_few = half;
		else
			units = half;
	}
	return units;
}

static void spread(struct fission *f, uint64_t now_ns)
{
	for (struct hal_policy_shared *s = f->all; s != NULL; s = s->next) {
		bool works = s->part->runnable > 0 || s->part->running > 0;

		s->least = works ? s->least : 0;
		s->most = works ? s->part->ceiling : 0;
	}
	if (hal_policy_spread(f->device, f->all) != -EBUSY)
		f->next_ns = now_ns + f->period_ns;
}

/* ---- the queues: by deadline -------------------------------------------------------- */

static uint64_t key(void *state, struct hal_policy_partition *part,
		    struct hal_policy_queue *queue, uint64_t now_ns)
{
	struct hal_policy_shared *s = hal_policy_shared(queue->own);
	struct fission *f = state;
	uint32_t units;

	if (s == NULL)
		return queue->head.deadline_ns;
	units = units_for(f, part, queue, now_ns);
	if (units > s->least)
		s->least = units;
	if (s->least > part->units)
		spread(f, now_ns);
	return queue->head.deadline_ns;
}

static uint64_t turn(void *state, struct hal_policy_partition *part,
		     struct hal_policy_queue *queue, uint64_t asked, uint64_t now_ns)
{
	struct hal_policy_shared *s = hal_policy_shared(queue->own);
	struct fission *f = state;

	(void)asked;
	if (s == NULL)
		return 0;
	s->least = units_for(f, part, queue, now_ns);
	if (s->least > part->units || now_ns >= f->next_ns)
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

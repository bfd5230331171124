/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fission: each partition gets the fewest units that meet its deadlines; the rest of the
 * device is shared equally.
 *
 * Promise: resize the elastic partitions that have work so that each has the fewest units
 * with which the first queue to be served is expected to meet its deadlines.  Divide the
 * remaining units equally among the partitions with work.  If not all deadlines can be
 * met, the partition with the earliest deadline gets its units first.  Move borders at
 * once when a deadline would be missed, and otherwise at most once per period.
 * Queues: within a partition, earliest deadline first; a queue without a deadline comes
 * last and needs no units beyond the partition's floor.
 * Options: fission_period_us, fission_margin, fission_unknown_us.
 *
 * Follows Planaria (Ghodrati, Ahn, Kim, Kinzer, Yatham, Alla, Sharma, Alian, Ebrahimi,
 * Kim, Young, Esmaeilzadeh, "Planaria: Dynamic Architecture Fission for Spatial
 * Multi-Tenant Acceleration of Deep Neural Networks", 2020).  It splits a systolic array
 * so that each task has the least that meets its deadline.  Differences: there a compiler
 * gives the run time for each size, and the array is split whenever a task arrives or
 * ends.  Here run times for each size are learned; until then they are assumed to be
 * inversely proportional to the units.  All runnable queues of a partition are assumed to
 * have as much work as the one that is examined.
 *
 * Good for deadlines that no fixed split can meet, because the tenants need more of the
 * device at different times.  Bad for best effort, if deadlines would be met with fewer
 * units than expected (under a fixed split best effort keeps its units).  Bad for work
 * that does not become faster with more units: it gets more and more units and is late
 * all the same.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include <hal/policy.h>

#include "common.h"

struct shared {
	struct hal_policy_shared common;
	uint64_t deadline_ns; /* earliest of the partition's heads; sort key */
};

struct fission {
	const struct hal_host *host;
	struct hal_policy_shared *all;
	const struct hal_policy_host *device;
	uint64_t period_ns;
	uint64_t margin; /* percent */
	uint64_t unknown_ns;
	/* No redistribution before this device time unless a deadline would be missed. */
	uint64_t next_ns;
};

static const struct hal_option_def options[] = {
	{"fission_period_us", HAL_OPTION_INT, 1, 10000000, NULL, "100",
	 "fission: least time between moves of borders, in us, while no deadline is in "
	 "danger"},
	{"fission_margin", HAL_OPTION_INT, 0, 1000, NULL, "10",
	 "fission: percent added to the expected run time of commands"},
	{"fission_unknown_us", HAL_OPTION_INT, 1, 10000000, NULL, "1000",
	 "fission: assumed run time of a submission, in us, until its queue has "
	 "completed a command"},
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
	bool is_new = hal_policy_shared(part->own) == NULL;
	int err = hal_policy_share(f->host, &f->all, part, queue, sizeof(struct shared));

	if (err == 0 && is_new)
		((struct shared *)hal_policy_shared(part->own))->deadline_ns =
			HAL_POLICY_NEVER;
	return err;
}

static void detach(void *state, struct hal_policy_partition *part,
		   struct hal_policy_queue *queue)
{
	struct fission *f = state;

	hal_policy_unshare(&f->all, part, queue);
}

/* ---- how many units a partition needs ------------------------------------------------ */

/* Work of a queue and the time left for it.  Run times are in ns, on the units that the
 * partition has now. */
struct backlog {
	double head_ns;     /* the rest of the head's submission */
	double all_ns;      /* head_ns, plus all submissions waiting behind that one */
	double expected_ns; /* run time of the head alone; 0: not known */
	double head_left;   /* time to the deadline of the head's submission */
	double all_left;    /* time to the deadline of the last waiting submission */
};

/* Return the time from now to a deadline, 0 if the deadline has passed. */
static double time_left(uint64_t deadline_ns, uint64_t now_ns)
{
	return deadline_ns > now_ns ? (double)(deadline_ns - now_ns) : 0;
}

/* Return the backlog of queue, with run times increased by the option fission_margin and
 * multiplied by the number of queues that share the partition. */
static struct backlog backlog_of(const struct fission *f,
				 const struct hal_policy_partition *part,
				 const struct hal_policy_queue *queue, uint64_t now_ns)
{
	const struct hal_policy_host *h = f->device;
	const struct hal_policy_command *c = &queue->head;
	bool known = c->rest_ns != HAL_POLICY_NEVER;
	double factor = (double)(100 + f->margin) / 100;
	uint64_t last_ns;
	uint32_t waiting = h->waiting(h->device, queue, &last_ns);
	struct backlog b;

	if (part->runnable > 1)
		factor *= part->runnable;
	b.head_ns = (double)(known ? c->rest_ns : f->unknown_ns) * factor;
	b.all_ns = b.head_ns;
	if (waiting > 1)
		b.all_ns += (double)(known ? c->whole_ns : f->unknown_ns) * factor *
			    (waiting - 1);
	b.expected_ns = c->expected_ns != HAL_POLICY_NEVER ? (double)c->expected_ns : 0;
	b.head_left = time_left(c->deadline_ns, now_ns);
	b.all_left = time_left(last_ns, now_ns);
	return b;
}

/* Return whether, on that many units, the head's submission and the last submission
 * waiting behind it are expected to meet their deadlines. */
static bool meets_deadlines(const struct fission *f,
			    const struct hal_policy_partition *part,
			    const struct hal_policy_queue *queue, const struct backlog *b,
			    uint32_t units)
{
	const struct hal_policy_host *h = f->device;
	uint64_t expected_ns = h->expect(h->device, queue, units);
	/* Run time on those units relative to the units that the partition has now. */
	double ratio = (double)part->units / units;

	if (expected_ns != HAL_POLICY_NEVER && b->expected_ns > 0)
		ratio = (double)expected_ns / b->expected_ns;
	return b->head_ns * ratio <= b->head_left && b->all_ns * ratio <= b->all_left;
}

/* Return the fewest units that meet the deadlines of queue, the partition's ceiling if no
 * number of units does, and 0 for a queue without a deadline. */
static uint32_t units_needed(const struct fission *f,
			     const struct hal_policy_partition *part,
			     const struct hal_policy_queue *queue, uint64_t now_ns)
{
	uint32_t units = part->floor != 0 ? part->floor : 1, too_few = units - 1;
	struct backlog b;

	if (queue->head.deadline_ns == HAL_POLICY_NEVER)
		return 0;
	b = backlog_of(f, part, queue, now_ns);
	/* Double the number, then search between the last two numbers. */
	while (units < part->ceiling && !meets_deadlines(f, part, queue, &b, units)) {
		too_few = units;
		units = units < part->ceiling / 2 ? 2 * units : part->ceiling;
	}
	while (units - too_few > 1) {
		uint32_t half = too_few + (units - too_few) / 2;

		if (meets_deadlines(f, part, queue, &b, half))
			units = half;
		else
			too_few = half;
	}
	return units;
}

static uint64_t deadline_of(const struct hal_policy_shared *s)
{
	return ((const struct shared *)s)->deadline_ns; /* s is the first member */
}

/* Merge two lists sorted by deadline; of equal ones, those of a come first. */
static struct hal_policy_shared *merge(struct hal_policy_shared *a,
				       struct hal_policy_shared *b)
{
	struct hal_policy_shared *first = NULL, **last = &first;

	while (a != NULL && b != NULL) {
		struct hal_policy_shared **from =
			deadline_of(a) <= deadline_of(b) ? &a : &b;

		*last = *from;
		last = &(*from)->next;
		*from = *last;
	}
	*last = a != NULL ? a : b;
	return first;
}

/* Cut the longest sorted part off the beginning of *rest and return it. */
static struct hal_policy_shared *cut_sorted(struct hal_policy_shared **rest)
{
	struct hal_policy_shared *first = *rest, *s = first;

	while (s->next != NULL && deadline_of(s) <= deadline_of(s->next))
		s = s->next;
	*rest = s->next;
	s->next = NULL;
	return first;
}

/* Sort the partitions by deadline, the order in which hal_policy_spread serves their
 * needs.  In a fixed order a partition that is late with any number of units could make
 * the others late too.  Merge sorted parts like the digits of a binary counter: entry i
 * holds 2^i of them. */
static void sort_by_deadline(struct hal_policy_shared **all)
{
	struct hal_policy_shared *merged[32] = {NULL}, *rest = *all;
	size_t i;

	while (rest != NULL) {
		struct hal_policy_shared *part = cut_sorted(&rest);

		for (i = 0; merged[i] != NULL; i++) {
			part = merge(merged[i], part);
			merged[i] = NULL;
		}
		merged[i] = part;
	}
	*all = NULL;
	for (i = 0; i < sizeof(merged) / sizeof(merged[0]); i++)
		*all = merge(merged[i], *all);
}

/* Redistribute the units of the device.  Partitions without work keep only their floor.
 */
static void distribute_units(struct fission *f, uint64_t now_ns)
{
	for (struct hal_policy_shared *s = f->all; s != NULL; s = s->next) {
		bool has_work = s->part->runnable > 0 || s->part->running > 0;

		s->least = has_work ? s->least : 0;
		s->most = has_work ? s->part->ceiling : 0;
		if (!has_work)
			((struct shared *)s)->deadline_ns = HAL_POLICY_NEVER;
	}
	sort_by_deadline(&f->all);
	if (hal_policy_spread(f->device, f->all) != -EBUSY)
		f->next_ns = hal_bk_after(now_ns, f->period_ns);
}

/* ---- order of queues: by deadline ----------------------------------------------------- */

/* Return the deadline of queue as its key.  Raise the partition's need to that of queue,
 * which has become runnable, and redistribute units if the need is not met. */
static uint64_t key(void *state, struct hal_policy_partition *part,
		    struct hal_policy_queue *queue, uint64_t now_ns)
{
	struct shared *s = hal_policy_shared(queue->own);
	struct fission *f = state;
	uint32_t units;

	if (s == NULL)
		return queue->head.deadline_ns;
	units = units_needed(f, part, queue, now_ns);
	if (units > s->common.least)
		s->common.least = units;
	if (s->deadline_ns > queue->head.deadline_ns)
		s->deadline_ns = queue->head.deadline_ns;
	if (s->common.least > part->units)
		distribute_units(f, now_ns);
	return queue->head.deadline_ns;
}

/* Set the partition's need to that of queue, which the engine is about to serve. */
static uint64_t turn(void *state, struct hal_policy_partition *part,
		     struct hal_policy_queue *queue, uint64_t old_key, uint64_t now_ns)
{
	struct shared *s = hal_policy_shared(queue->own);
	struct fission *f = state;

	(void)old_key;
	if (s == NULL)
		return 0;
	s->common.least = units_needed(f, part, queue, now_ns);
	s->deadline_ns = queue->head.deadline_ns;
	if (s->common.least > part->units || now_ns >= f->next_ns)
		distribute_units(f, now_ns);
	return 0;
}

extern const struct hal_policy hal_policy_fission;
const struct hal_policy hal_policy_fission = {
	.size = sizeof(struct hal_policy),
	.abi = HAL_POLICY_ABI,
	.name = "fission",
	.summary = "the fewest units that meet each deadline, the rest shared",
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

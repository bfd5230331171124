/* SPDX-License-Identifier: Apache-2.0 */
/*
 * krisp: each command gets as many units as it can use, and no more.
 *
 * Promise: before a command runs, resize its elastic partition to the fewest units with
 * which the command takes at most krisp_percent longer than with all units.  The other
 * partitions can use the rest.  A partition requests another size only when the next
 * command needs it and none of its commands runs.
 * Queues: all alike; by service class, then in order of arrival.
 * Options: krisp_percent, krisp_wait_us.
 *
 * Follows KRISP (Chow, Jahanshahi, Wong, "KRISP: Enabling Kernel-wise RIght-sizing for
 * Spatial Partitioned GPU Inference Servers", 2023).  A profile gives, for each kernel,
 * the fewest compute units with which it is as fast as with all, and each kernel is
 * launched with a mask of that many units.  Differences: there profiles are measured
 * beforehand.  Here run times are learned: while a number of units is fast enough, a
 * queue runs one command on half of it.  There a mask costs nothing to change.  Here the
 * border of a partition moves.
 *
 * Good for kernels that do not become faster with many units: other partitions get the
 * units, which a fixed split would leave unused.  Bad where the queues of one partition
 * need very different numbers of units in turn: the border moves for each command.  Bad
 * for work of few commands, since some of them are spent on learning.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include <hal/policy.h>

#include "common.h"

struct shared {
	struct hal_policy_shared common;
	struct hal_policy_list list[HAL_POLICY_RANKS];
	uint64_t running;      /* in-flight commands of the partition */
	bool resize_requested; /* a resize was requested for the next command */
	/* The next command waits until then for the requested units; 0: it does not. */
	uint64_t wait_until_ns;
};

/* Further indices into own[] of a queue: the number of its in-flight commands, and the
 * rank of the list that holds the queue. */
enum { RUNNING = HAL_POLICY_SHARED + 1, RANK };

struct krisp {
	const struct hal_host *host;
	struct hal_policy_shared *all;
	const struct hal_policy_host *device;
	uint64_t percent, wait_ns;
};

static const struct hal_option_def options[] = {
	{"krisp_percent", HAL_OPTION_INT, 0, 1000, NULL, "5",
	 "krisp: percent that a command may run longer when its partition has fewer "
	 "units"},
	{"krisp_wait_us", HAL_OPTION_INT, 1, 10000000, NULL, "1000",
	 "krisp: longest time, in us, that a command waits for its units; then it runs "
	 "on those that its partition has"},
};

static int create(const struct hal_host *host, const struct hal_bk_config *cfg,
		  const struct hal_policy_host *device, void **state)
{
	struct krisp *krisp = calloc(1, sizeof(*krisp));

	if (krisp == NULL)
		return host->fail(ENOMEM, "krisp: no memory");
	krisp->host = host;
	krisp->device = device;
	krisp->percent = (uint64_t)host->option_int(cfg, "krisp_percent");
	krisp->wait_ns = (uint64_t)host->option_int(cfg, "krisp_wait_us") * 1000;
	*state = krisp;
	return 0;
}

static int attach(void *state, struct hal_policy_partition *part,
		  struct hal_policy_queue *queue)
{
	struct krisp *krisp = state;

	return hal_policy_share(krisp->host, &krisp->all, part, queue,
				sizeof(struct shared));
}

/* Set the number of in-flight commands of queue. */
static void set_running(struct shared *s, struct hal_policy_queue *queue,
			uint64_t running)
{
	s->running += running - queue->own[RUNNING];
	queue->own[RUNNING] = running;
}

static void detach(void *state, struct hal_policy_partition *part,
		   struct hal_policy_queue *queue)
{
	struct krisp *krisp = state;

	set_running(hal_policy_shared(queue->own), queue, 0);
	hal_policy_unshare(&krisp->all, part, queue);
}

/* ---- how many units a command needs --------------------------------------------------- */

/*
 * Return the fewest units that are enough for the head of queue.
 *
 * Compare with the run time on all units that the partition can have or, if that is not
 * known, with the run time on the units that it has now.  If neither is known, return all
 * units, so that the command is measured on these.
 */
static uint32_t units_needed(const struct krisp *krisp,
			     const struct hal_policy_partition *part,
			     const struct hal_policy_queue *queue)
{
	const struct hal_policy_host *h = krisp->device;
	const uint32_t all = hal_policy_ceiling(h, part);
	uint32_t units = all;
	uint64_t best_ns = h->expect(h->device, queue, units);
	bool all_unknown = best_ns == HAL_POLICY_NEVER;

	if (all_unknown) {
		units = part->units;
		best_ns = h->expect(h->device, queue, units);
	}
	if (best_ns == HAL_POLICY_NEVER)
		return all;
	units = hal_policy_enough(h, part, queue, units, best_ns, krisp->percent);
	/* Fewer units than the partition has now are too slow.  Whether its current units
	 * are fast enough is not known: measure on all units. */
	return units == part->units && all_unknown ? all : units;
}

/* Return the queue to serve next, NULL if none is runnable. */
static struct hal_policy_queue *first_queue(const struct shared *s)
{
	for (uint32_t rank = 0; rank < HAL_POLICY_RANKS; rank++)
		if (s->list[rank].first != NULL)
			return s->list[rank].first;
	return NULL;
}

/* Request up to `units` units for the partition.  Return whether its number of units is
 * about to change. */
static bool request_units(const struct krisp *krisp, struct shared *s, uint32_t units)
{
	/* A partition without work keeps only its floor. */
	for (struct hal_policy_shared *c = krisp->all; c != NULL; c = c->next) {
		const struct shared *other =
			(const struct shared *)c; /* c is the first member */

		if (other->running == 0 && first_queue(other) == NULL)
			c->most = 0;
	}
	s->common.most = units;
	return hal_policy_spread(krisp->device, krisp->all) == 0 &&
	       s->common.units != s->common.part->units;
}

/* ---- order of queues ------------------------------------------------------------------ */

static void enqueue(void *state, struct hal_policy_partition *part,
		    struct hal_policy_queue *queue)
{
	struct shared *s = hal_policy_shared(queue->own);

	(void)state, (void)part;
	if (s == NULL)
		return;
	if (queue->running < queue->own[RUNNING])
		/* The device did not accept a command that pick has counted. */
		set_running(s, queue, queue->running);
	queue->own[RANK] = hal_policy_rank(queue);
	hal_policy_list_add(&s->list[queue->own[RANK]], queue);
	if (first_queue(s) == queue) {
		s->resize_requested = false;
		s->wait_until_ns = 0;
	}
}

static void dequeue(void *state, struct hal_policy_partition *part,
		    struct hal_policy_queue *queue, enum hal_policy_why why)
{
	struct shared *s = hal_policy_shared(queue->own);

	(void)state, (void)part;
	if (s == NULL)
		return;
	hal_policy_list_take(&s->list[queue->own[RANK]], queue);
	s->resize_requested = false;
	s->wait_until_ns = 0;
	if (why == HAL_POLICY_OVERRULED)
		set_running(s, queue, queue->own[RUNNING] + 1);
}

static void ended(void *state, struct hal_policy_partition *part,
		  struct hal_policy_queue *queue, const struct hal_policy_end *end)
{
	struct shared *s = hal_policy_shared(queue->own);

	(void)state, (void)part, (void)end;
	if (s != NULL && queue->own[RUNNING] > 0)
		set_running(s, queue, queue->own[RUNNING] - 1);
}

/* The partition's move is over, or was dropped: the next command need not wait for it. */
static void changed(void *state, struct hal_policy_partition *part,
		    struct hal_policy_queue *queue)
{
	struct shared *s = hal_policy_shared(part->own);

	(void)state;
	if (s != NULL && queue == NULL)
		s->wait_until_ns = 0;
}

static struct hal_policy_queue *pick(void *state, struct hal_policy_partition *part,
				     uint64_t now_ns, struct hal_policy_order *order)
{
	struct krisp *krisp = state;
	struct shared *s = hal_policy_shared(part->own);
	struct hal_policy_queue *queue = s != NULL ? first_queue(s) : NULL;
	uint32_t units;

	if (queue == NULL)
		return NULL;
	units = units_needed(krisp, part, queue);
	if (units != part->units && !s->resize_requested) {
		/* Resize only after the partition's in-flight commands have completed.
		 * Each completion causes another pick. */
		if (s->running > 0)
			return NULL;
		s->resize_requested = true;
		if (request_units(krisp, s, units))
			s->wait_until_ns = hal_bk_after(now_ns, krisp->wait_ns);
	}
	if (s->wait_until_ns > now_ns) {
		order->until_ns = s->wait_until_ns;
		return NULL;
	}
	s->resize_requested = false;
	s->wait_until_ns = 0;
	hal_policy_list_take(&s->list[queue->own[RANK]], queue);
	set_running(s, queue, queue->own[RUNNING] + 1);
	return queue;
}

extern const struct hal_policy hal_policy_krisp;
const struct hal_policy hal_policy_krisp = {
	.size = sizeof(struct hal_policy),
	.abi = HAL_POLICY_ABI,
	.name = "krisp",
	.summary = "each command gets as many units as it can use",
	.options = options,
	.option_count = sizeof(options) / sizeof(options[0]),
	.flags = HAL_POLICY_ALWAYS | HAL_POLICY_EXPECTS,
	.create = create,
	.destroy = free,
	.attach = attach,
	.detach = detach,
	.enqueue = enqueue,
	.dequeue = dequeue,
	.pick = pick,
	.ended = ended,
	.changed = changed,
};

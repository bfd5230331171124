/* SPDX-License-Identifier: Apache-2.0 */
/*
 * krisp: each command has as many units as it can use, and no more.
 *
 * KRISP (Chow, Jahanshahi, Wong 2023): a profile says for each kernel the fewest compute
 * units with which it is as fast as with all, and every kernel is launched with a mask of
 * so many, which others may have the rest of.  There profiles are of kernels and taken
 * beforehand; here they are of queues and learned: a queue tries half of what is still
 * fast enough, once.  There a mask costs nothing to change; here the border of a
 * partition moves, when nothing of it runs, only if the next command needs another size.
 *
 * Good for kernels that do not become faster with many units: others have those (with a
 * fixed split nobody has).  Bad where queues of one partition need very different sizes
 * by turns: the border moves for each command; and for work that lasts a few commands,
 * some of which it spends to find out.  Who comes first is served first, within his
 * class.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include <hal/policy.h>

#include "common.h"

struct shared {
	struct hal_policy_shared common;
	struct hal_policy_list list[HAL_POLICY_RANKS];
	uint64_t running; /* commands that the device has */
	bool asked;       /* for other units, for the queue that is first */
};

/* .own of queues, behind the shared: how many commands the device has, and in which list
 * it is. */
enum { RUNNING = HAL_POLICY_SHARED + 1, RANK };

struct krisp {
	const struct hal_host *host;
	struct hal_policy_shared *all;
	const struct hal_policy_host *device;
	uint64_t percent, wait_ns;
};

static const struct hal_option_def options[] = {
	{"krisp_percent", HAL_OPTION_INT, 0, 1000, NULL, "5",
	 "krisp: half the units are enough when a command takes at most so much longer"},
	{"krisp_wait_us", HAL_OPTION_INT, 1, 10000000, NULL, "1000",
	 "krisp: so long a command waits for its units; then it goes on with what is "
	 "there"},
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

static void count_running(struct shared *s, struct hal_policy_queue *queue,
			  uint64_t running)
{
	s->running += running - queue->own[RUNNING];
	queue->own[RUNNING] = running;
}

static void detach(void *state, struct hal_policy_partition *part,
		   struct hal_policy_queue *queue)
{
	struct krisp *krisp = state;

	count_running(hal_policy_shared(queue->own), queue, 0);
	hal_policy_unshare(&krisp->all, part, queue);
}

/* ---- how many ----------------------------------------------------------------------- */

/* All, then half of it as long as that is as fast, or has not been tried yet.  While all
 * have never been there, the same of what it has. */
static uint32_t units_for(const struct krisp *krisp,
			  const struct hal_policy_partition *part,
			  const struct hal_policy_queue *queue)
{
	const struct hal_policy_host *h = krisp->device;
	const uint32_t all = hal_policy_ceiling(h, part);
	uint32_t units = all;
	uint64_t best = h->expect(h->device, queue, units);
	bool unsure = best == HAL_POLICY_NEVER;

	if (unsure) {
		units = part->units;
		best = h->expect(h->device, queue, units);
	}
	if (best == HAL_POLICY_NEVER)
		return all;
	units = hal_policy_enough(h, part, queue, units, best, krisp->percent);
	/* What it has may be too few. */
	return units == part->units && unsure ? all : units;
}

static struct hal_policy_queue *first_waiting(const struct shared *s)
{
	for (uint32_t rank = 0; rank < HAL_POLICY_RANKS; rank++)
		if (s->list[rank].first != NULL)
			return s->list[rank].first;
	return NULL;
}

/* The partition is to have so many; true: it will have others, in a moment. */
static bool wants_units(const struct krisp *krisp, struct shared *s, uint32_t units)
{
	/* Who has no work needs no more than the floor. */
	for (struct hal_policy_shared *c = krisp->all; c != NULL; c = c->next) {
		const struct shared *other = (const struct shared *)c; /* the first */

		if (other->running == 0 && first_waiting(other) == NULL)
			c->most = 0;
	}
	s->common.most = units;
	return hal_policy_spread(krisp->device, krisp->all) == 0 &&
	       s->common.units != s->common.part->units;
}

/* ---- the queues --------------------------------------------------------------------- */

static void enqueue(void *state, struct hal_policy_partition *part,
		    struct hal_policy_queue *queue)
{
	struct shared *s = hal_policy_shared(queue->own);

	(void)state, (void)part;
	if (s == NULL)
		return;
	if (queue->running < queue->own[RUNNING])
		count_running(s, queue, queue->running); /* the device had no room */
	queue->own[RANK] = hal_policy_rank(queue);
	hal_policy_list_add(&s->list[queue->own[RANK]], queue);
	if (first_waiting(s) == queue)
		s->asked = false;
}

static void dequeue(void *state, struct hal_policy_partition *part,
		    struct hal_policy_queue *queue, enum hal_policy_why why)
{
	struct shared *s = hal_policy_shared(queue->own);

	(void)state, (void)part;
	if (s == NULL)
		return;
	hal_policy_list_take(&s->list[queue->own[RANK]], queue);
	s->asked = false;
	if (why == HAL_POLICY_OVERRULED)
		count_running(s, queue, queue->own[RUNNING] + 1);
}

static void ended(void *state, struct hal_policy_partition *part,
		  struct hal_policy_queue *queue, const struct hal_policy_end *end)
{
	struct shared *s = hal_policy_shared(queue->own);

	(void)state, (void)part, (void)end;
	if (s != NULL && queue->own[RUNNING] > 0)
		count_running(s, queue, queue->own[RUNNING] - 1);
}

static struct hal_policy_queue *pick(void *state, struct hal_policy_partition *part,
				     uint64_t now_ns, struct hal_policy_order *order)
{
	struct krisp *krisp = state;
	struct shared *s = hal_policy_shared(part->own);
	struct hal_policy_queue *queue = s != NULL ? first_waiting(s) : NULL;
	uint32_t units;

	if (queue == NULL)
		return NULL;
	units = units_for(krisp, part, queue);
	if (units != part->units && !s->asked) {
		/* When what runs there has ended. */
		if (s->running > 0)
			return NULL;
		s->asked = true;
		if (wants_units(krisp, s, units)) {
			order->until_ns = hal_bk_after(now_ns, krisp->wait_ns);
			return NULL;
		}
	}
	s->asked = false;
	hal_policy_list_take(&s->list[queue->own[RANK]], queue);
	count_running(s, queue, queue->own[RUNNING] + 1);
	return queue;
}

extern const struct hal_policy hal_policy_krisp;
const struct hal_policy hal_policy_krisp = {
	.size = sizeof(struct hal_policy),
	.abi = HAL_POLICY_ABI,
	.name = "krisp",
	.summary = "as many units for each command as it can use",
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
};

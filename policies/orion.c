/* SPDX-License-Identifier: Apache-2.0 */
/*
 * orion: best effort runs beside high-priority work only where it will not disturb it.
 *
 * Orion (Strati, Ma, Klimovic 2024): while a high-priority kernel runs, one of best
 * effort is started only if one of the two is bound by compute and the other by memory,
 * and if it leaves units for the other; and when those that were started are expected to
 * run longer than a fraction of the high-priority request, all of them have to end before
 * the next.  There profiles are taken beforehand, and units are streaming multiprocessors
 * that all share; here a profile is used where there is one (hal.profile), else what
 * commands run and move is learned, and units are partitions: beside it means in another
 * one, in its own nothing runs beside it.  Of which nothing is known runs beside nothing.
 * What is known of the two programs beside each other, measured or learned, decides
 * instead.
 *
 * Good where tenants with units of their own still meet in memory: who would take the
 * bandwidth of a high-priority tenant waits, who computes beside its copies does not.
 * Bad where they do not meet there, for instance with channels of their own: best effort
 * waits for nothing (under fifo it runs); and it may not run at all beside a tenant of
 * its own kind that is never idle.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include <hal/policy.h>

#include "common.h"

/* By what a command is bound, as far as is known; with HIGH, of high priority. */
enum kind {
	COMPUTE = HAL_POLICY_BY_COMPUTE,
	MEMORY = HAL_POLICY_BY_MEMORY,
	UNKNOWN = HAL_POLICY_BY_UNKNOWN,
	HIGH = HAL_POLICY_BOUNDS,
	KINDS = 2 * HIGH
};
/* .own[HAL_POLICY_SHARED] of a partition, and of its queues that were admitted: struct
 * shared; of queues also the kind of the newest command, how many the device has, of high
 * priority with one that waits (in between two of them it is not idle), and as what they
 * count: their kind and PROGRAM times their program, as it is in the crowd. */
enum { KIND = HAL_POLICY_SHARED + 1, RUNNING, AS, PROGRAM = 16, LOOKS = 8 };

struct shared {
	struct hal_policy_shared common;
	struct hal_policy_list list[KINDS];
	uint64_t high; /* commands of high priority */
	bool held;     /* in orion.held */
	struct shared *next;
};

struct orion {
	const struct hal_host *host;
	struct hal_policy_shared *all;
	const struct hal_policy_host *device;
	int64_t priority;
	uint64_t unknown_ns, permille, cost;
	double memory; /* bytes a ns from which it is bound by that; 0: not known */
	uint64_t count[KINDS];         /* commands of all partitions */
	struct hal_policy_crowd crowd; /* of them, those of high priority */
	uint64_t ns;         /* what those were to run that started since it had none */
	uint64_t request_ns; /* of the last of high priority; 0: there was none yet */
	struct shared *held; /* partitions whose best effort waits for an end elsewhere */
};

static const struct hal_option_def options[] = {
	{"orion_priority", HAL_OPTION_INT, INT32_MIN, INT32_MAX, NULL, "1",
	 "orion: priority from which work is not to be disturbed; below is best effort"},
	{"orion_permille", HAL_OPTION_INT, 1, 1000000, NULL, "25",
	 "orion: of a high-priority request, best effort may run at once"},
	{"orion_beside_permille", HAL_OPTION_INT, 0, 1000000, NULL, "100",
	 "orion: longer, as far as known, a request may take for best effort beside it"},
	{"orion_memory_mbs", HAL_OPTION_INT, 0, INT32_MAX, NULL, "0",
	 "orion: MB/s from which a command is bound by memory; 0: 60 % of the device's"},
	{"orion_unknown_us", HAL_OPTION_INT, 1, 10000000, NULL, "1000",
	 "orion: what a command is taken to run while none of its queue has ended"},
};

static int create(const struct hal_host *host, const struct hal_bk_config *cfg,
		  const struct hal_policy_host *device, void **state)
{
	struct orion *o = calloc(1, sizeof(*o));

	if (o == NULL)
		return host->fail(ENOMEM, "orion: no memory");
	o->host = host;
	o->device = device;
	o->priority = host->option_int(cfg, "orion_priority");
	o->permille = (uint64_t)host->option_int(cfg, "orion_permille");
	o->cost = (uint64_t)host->option_int(cfg, "orion_beside_permille");
	o->unknown_ns = (uint64_t)host->option_int(cfg, "orion_unknown_us") * 1000;
	o->memory = (double)host->option_int(cfg, "orion_memory_mbs") * 1e-3;
	if (o->memory == 0)
		o->memory = (double)device->info->bandwidth * 0.6e-9;
	*state = o;
	return 0;
}

/* ---- what the device has ------------------------------------------------------------ */

/* So many commands of queue, all of that kind, and program of high priority. */
static void count_program(struct orion *o, struct hal_policy_queue *queue, uint64_t as,
			  uint64_t running)
{
	struct shared *s = hal_policy_shared(queue->own);
	uint64_t was = queue->own[AS];

	o->count[was % PROGRAM] -= queue->own[RUNNING];
	if (was % PROGRAM >= HIGH) {
		s->high -= queue->own[RUNNING];
		hal_policy_crowd_take(&o->crowd, was / PROGRAM, queue->own[RUNNING]);
	}
	o->count[as % PROGRAM] += running;
	if (as % PROGRAM >= HIGH) {
		s->high += running;
		as = as % PROGRAM +
		     PROGRAM * hal_policy_crowd_add(&o->crowd, as / PROGRAM, running);
	}
	queue->own[RUNNING] = running;
	queue->own[AS] = as;
}

/* Something has ended, which may be what somebody waits for. */
static void ask_held(struct orion *o)
{
	while (o->held != NULL) {
		struct shared *s = o->held;

		o->held = s->next;
		s->held = false;
		o->device->ask(o->device->device, s->common.part);
	}
}

static void count_less(struct orion *o, struct hal_policy_queue *queue)
{
	if (queue->own[RUNNING] > 0)
		count_program(o, queue, queue->own[AS], queue->own[RUNNING] - 1);
	ask_held(o);
}

static void ended(void *state, struct hal_policy_partition *part,
		  struct hal_policy_queue *queue, const struct hal_policy_end *end)
{
	(void)part, (void)end;
	if (hal_policy_shared(queue->own) != NULL)
		count_less(state, queue);
}

/* ---- there and gone ----------------------------------------------------------------- */

static int attach(void *state, struct hal_policy_partition *part,
		  struct hal_policy_queue *queue)
{
	struct orion *o = state;

	return hal_policy_share(o->host, &o->all, part, queue, sizeof(struct shared));
}

static void detach(void *state, struct hal_policy_partition *part,
		   struct hal_policy_queue *queue)
{
	struct orion *o = state;

	count_program(o, queue, UNKNOWN, 0);
	ask_held(o);
	hal_policy_unshare(&o->all, part, queue);
}

/* ---- the queues --------------------------------------------------------------------- */

static uint64_t known(const struct orion *o, uint64_t ns)
{
	return ns != HAL_POLICY_NEVER ? ns : o->unknown_ns;
}

static void enqueue(void *state, struct hal_policy_partition *part,
		    struct hal_policy_queue *queue)
{
	struct orion *o = state;
	struct shared *s = hal_policy_shared(queue->own);
	uint64_t kind = hal_policy_bound(&queue->head, o->memory);

	(void)part;
	if (s == NULL)
		return;
	if (queue->own[RUNNING] > queue->running)
		count_less(o, queue); /* the device had no room */
	if (hal_policy_above(queue, o->priority)) {
		kind += HIGH;
		count_program(o, queue, kind + (uint64_t)PROGRAM * queue->head.program,
			      (uint64_t)queue->running + 1);
	}
	queue->own[KIND] = kind;
	hal_policy_list_add(&s->list[kind], queue);
}

static void dequeue(void *state, struct hal_policy_partition *part,
		    struct hal_policy_queue *queue, enum hal_policy_why why)
{
	struct shared *s = hal_policy_shared(queue->own);
	uint64_t kind = queue->own[KIND];

	(void)part;
	if (s == NULL)
		return;
	hal_policy_list_take(&s->list[kind], queue);
	if (why == HAL_POLICY_OVERRULED && kind < HIGH)
		count_program(state, queue, kind, queue->own[RUNNING] + 1);
	else if (why != HAL_POLICY_OVERRULED && kind >= HIGH)
		count_less(state, queue);
}

/* Commands of kind, kind + 1 and kind + 2. */
static uint64_t all(const struct orion *o, uint64_t kind)
{
	return o->count[kind] + o->count[kind + 1] + o->count[kind + 2];
}

/* The next command of queue may start. */
static bool admitted(const struct orion *o, const struct shared *s,
		     const struct hal_policy_queue *queue)
{
	uint64_t kind = queue->own[KIND], cost;

	if (kind >= HIGH)
		return true;
	if (all(o, COMPUTE) > 0 && o->request_ns != 0 &&
	    o->ns > o->request_ns * o->permille / 1000)
		return false;
	if (s->high != 0)
		return false;
	cost = hal_policy_crowd_cost(o->device, &o->crowd, queue->head.program);
	if (cost != HAL_POLICY_NEVER)
		return cost <= o->cost;
	return kind != UNKNOWN && o->count[HIGH + UNKNOWN] == 0 &&
	       o->count[HIGH + kind] == 0;
}

/* High priority first; of those that may start, who came first. As long as no program is
 * known, all of a list may or none. */
static struct hal_policy_queue *first_startable(const struct orion *o,
						const struct shared *s)
{
	struct hal_policy_queue *best = NULL;

	for (uint64_t kind = KINDS; kind-- > 0;) {
		struct hal_policy_queue *q = s->list[kind].first;

		if (kind < HIGH && best != NULL && best->own[KIND] >= HIGH)
			return best;
		for (int i = 1; q != NULL && !admitted(o, s, q); i++)
			q = o->crowd.named != 0 && i < LOOKS ? q->next : NULL;
		if (q != NULL && (best == NULL || q->runnable_ns < best->runnable_ns))
			best = q;
	}
	return best;
}

static struct hal_policy_queue *pick(void *state, struct hal_policy_partition *part,
				     uint64_t now_ns, struct hal_policy_order *order)
{
	struct orion *o = state;
	struct shared *s = hal_policy_shared(part->own);
	struct hal_policy_queue *queue = s != NULL ? first_startable(o, s) : NULL;

	(void)now_ns, (void)order;
	if (queue == NULL) {
		if (s != NULL && !s->held) {
			s->held = true;
			s->next = o->held;
			o->held = s;
		}
		return NULL;
	}
	hal_policy_list_take(&s->list[queue->own[KIND]], queue);
	if (queue->own[KIND] >= HIGH) {
		o->request_ns = known(o, queue->head.whole_ns);
		return queue;
	}
	o->ns = known(o, queue->head.expected_ns) + (all(o, COMPUTE) > 0 ? o->ns : 0);
	count_program(o, queue, queue->own[KIND], queue->own[RUNNING] + 1);
	return queue;
}

extern const struct hal_policy hal_policy_orion;
const struct hal_policy hal_policy_orion = {
	.size = sizeof(struct hal_policy),
	.abi = HAL_POLICY_ABI,
	.name = "orion",
	.summary = "best effort beside high priority where it does not disturb it",
	.options = options,
	.option_count = sizeof(options) / sizeof(options[0]),
	.flags = HAL_POLICY_ALWAYS | HAL_POLICY_EXPECTS | HAL_POLICY_STARVES,
	.create = create,
	.destroy = free,
	.attach = attach,
	.detach = detach,
	.enqueue = enqueue,
	.dequeue = dequeue,
	.pick = pick,
	.ended = ended,
};

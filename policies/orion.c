/* SPDX-License-Identifier: Apache-2.0 */
/*
 * orion: run best effort concurrently with high-priority work only where it does not
 * disturb that work.
 *
 * Promise: high-priority commands run at once.  A best-effort command starts only if
 * (1) the best-effort commands in flight are not expected to run longer than
 * orion_permille of a high-priority request, (2) no high-priority work is in its own
 * partition, and (3) it does not disturb the high-priority work in other partitions.
 * If the slowdown that the two programs cause each other is known, (3) means that this
 * slowdown is at most orion_beside_permille.  Otherwise (3) means that one of the two
 * commands is known to be bound by compute and the other by memory.
 * Queues: high-priority ones are those of the latency class, and those of the normal
 * class with at least orion_priority.  All others are best effort and can starve.
 * Options: orion_priority, orion_permille, orion_beside_permille, orion_memory_mbs,
 * orion_unknown_us.
 *
 * Follows Orion (Strati, Ma, Klimovic, "Orion: Interference-aware, Fine-grained GPU
 * Sharing for ML Applications", 2024), with its rules (1) and (3).  Differences: there
 * profiles are measured beforehand, all streaming multiprocessors are shared, and a
 * best-effort kernel must leave some of them free.  Here a profile is used if there is
 * one (hal.profile), else run times and traffic are learned, and work runs beside other
 * work only in another partition.
 *
 * Good where tenants with their own units compete only for memory: best effort that would
 * take bandwidth from a high-priority tenant waits, and best effort that computes does
 * not.  Bad where they do not compete for memory, for example with their own channels:
 * best effort waits needlessly (under fifo it runs).  Bad for best effort that is bound
 * by the same resource as a high-priority tenant that is never idle: it may not run at
 * all.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include <hal/policy.h>

#include "common.h"

/* The resource that bounds a command; plus HIGH for a high-priority command. */
enum kind {
	COMPUTE = HAL_POLICY_BY_COMPUTE,
	MEMORY = HAL_POLICY_BY_MEMORY,
	UNKNOWN = HAL_POLICY_BY_UNKNOWN,
	HIGH = HAL_POLICY_BOUNDS,
	KINDS = 2 * HIGH
};
/*
 * Further indices into own[] of a queue.
 * KIND: kind of its newest head.
 * COUNTED: how many of its commands are counted: its in-flight commands and, for a
 *          high-priority queue, its runnable head.  The head is counted so that the
 *          queue does not appear idle between two commands.
 * COUNTED_AS: what these commands are counted as: kind + PROGRAM x program, where
 *             program is the value that hal_policy_crowd_add returned.
 */
enum { KIND = HAL_POLICY_SHARED + 1, COUNTED, COUNTED_AS, PROGRAM = 16 };

/* Limit of the queues in a list that are examined to find one that may start. */
enum { EXAMINED_MAX = 8 };

struct shared {
	struct hal_policy_shared common;
	struct hal_policy_list list[KINDS];
	uint64_t waiting; /* bit k: list[k] is not empty */
	uint64_t high;    /* counted high-priority commands of the partition */
	bool held;        /* the partition is in the list orion.held */
	struct shared *next_held;
};

struct orion {
	const struct hal_host *host;
	struct hal_policy_shared *all;
	const struct hal_policy_host *device;
	int64_t priority;
	uint64_t unknown_ns;
	uint64_t permille;     /* option orion_permille */
	uint64_t slowdown_max; /* option orion_beside_permille */
	double memory_rate;    /* bytes per ns from which a command is bound by memory;
				* 0: not known */
	uint64_t count[KINDS]; /* counted commands of all partitions */
	struct hal_policy_crowd crowd; /* counted high-priority commands by program */
	/* Sum of the expected run times of the best-effort commands that were started
	 * since the last time that none was in flight. */
	uint64_t best_effort_ns;
	/* Expected run time of the last high-priority submission; 0: none so far. */
	uint64_t request_ns;
	/* Partitions whose best effort waits for a command of another partition to
	 * complete. */
	struct shared *held;
};

static const struct hal_option_def options[] = {
	{"orion_priority", HAL_OPTION_INT, INT32_MIN, INT32_MAX, NULL, "1",
	 "orion: lowest priority of high-priority work in queues of normal class; lower "
	 "ones are best effort"},
	{"orion_permille", HAL_OPTION_INT, 1, 1000000, NULL, "25",
	 "orion: expected run time of best effort in flight, in thousandths of a "
	 "high-priority request, up to which more is started"},
	{"orion_beside_permille", HAL_OPTION_INT, 0, 1000000, NULL, "100",
	 "orion: thousandths by which best effort may slow a high-priority request, "
	 "where the slowdown is known"},
	{"orion_memory_mbs", HAL_OPTION_INT, 0, INT32_MAX, NULL, "0",
	 "orion: MB/s from which a command counts as bound by memory; 0: 60 % of the "
	 "device's bandwidth"},
	{"orion_unknown_us", HAL_OPTION_INT, 1, 10000000, NULL, "1000",
	 "orion: assumed run time of a command, in us, until its queue has completed "
	 "one"},
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
	o->slowdown_max = (uint64_t)host->option_int(cfg, "orion_beside_permille");
	o->unknown_ns = (uint64_t)host->option_int(cfg, "orion_unknown_us") * 1000;
	o->memory_rate = (double)host->option_int(cfg, "orion_memory_mbs") * 1e-3;
	if (o->memory_rate == 0)
		o->memory_rate = (double)device->info->bandwidth * 0.6e-9;
	*state = o;
	return 0;
}

/* ---- counts of commands ---------------------------------------------------------------- */

/* Replace what queue contributes to the counts by `commands` commands, all counted as
 * `as` (kind + PROGRAM x program). */
static void set_counted(struct orion *o, struct hal_policy_queue *queue, uint64_t as,
			uint64_t commands)
{
	struct shared *s = hal_policy_shared(queue->own);
	uint64_t old_as = queue->own[COUNTED_AS];

	if (as == old_as && as < HIGH) { /* best effort of the same kind: most calls */
		o->count[as] += commands - queue->own[COUNTED];
		queue->own[COUNTED] = commands;
		return;
	}
	o->count[old_as % PROGRAM] -= queue->own[COUNTED];
	if (old_as % PROGRAM >= HIGH) {
		s->high -= queue->own[COUNTED];
		hal_policy_crowd_take(&o->crowd, old_as / PROGRAM, queue->own[COUNTED]);
	}
	o->count[as % PROGRAM] += commands;
	if (as % PROGRAM >= HIGH) {
		s->high += commands;
		as = as % PROGRAM +
		     PROGRAM * hal_policy_crowd_add(&o->crowd, as / PROGRAM, commands);
	}
	queue->own[COUNTED] = commands;
	queue->own[COUNTED_AS] = as;
}

/* Ask the engine to pick again for every held partition: the counts have changed. */
static void retry_held_partitions(struct orion *o)
{
	while (o->held != NULL) {
		struct shared *s = o->held;

		o->held = s->next_held;
		s->held = false;
		o->device->ask(o->device->device, s->common.part);
	}
}

/* Subtract one command of queue from the counts. */
static void uncount_one(struct orion *o, struct hal_policy_queue *queue)
{
	if (queue->own[COUNTED] > 0)
		set_counted(o, queue, queue->own[COUNTED_AS], queue->own[COUNTED] - 1);
	retry_held_partitions(o);
}

static void ended(void *state, struct hal_policy_partition *part,
		  struct hal_policy_queue *queue, const struct hal_policy_end *end)
{
	(void)part, (void)end;
	if (hal_policy_shared(queue->own) != NULL)
		uncount_one(state, queue);
}

/* ---- admission of queues ----------------------------------------------------------------- */

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

	set_counted(o, queue, UNKNOWN, 0);
	retry_held_partitions(o);
	hal_policy_unshare(&o->all, part, queue);
}

/* ---- order of queues ------------------------------------------------------------------- */

static void add_queue(struct shared *s, struct hal_policy_queue *queue, uint64_t kind)
{
	queue->own[KIND] = kind;
	hal_policy_list_add(&s->list[kind], queue);
	s->waiting |= UINT64_C(1) << kind;
}

static void remove_queue(struct shared *s, struct hal_policy_queue *queue)
{
	uint64_t kind = queue->own[KIND];

	hal_policy_list_take(&s->list[kind], queue);
	if (s->list[kind].first == NULL)
		s->waiting &= ~(UINT64_C(1) << kind);
}

/* Return expected_ns, or the assumed run time if it is not known. */
static uint64_t expected_or_assumed(const struct orion *o, uint64_t expected_ns)
{
	return expected_ns != HAL_POLICY_NEVER ? expected_ns : o->unknown_ns;
}

static void enqueue(void *state, struct hal_policy_partition *part,
		    struct hal_policy_queue *queue)
{
	struct orion *o = state;
	struct shared *s = hal_policy_shared(queue->own);
	uint64_t kind = hal_policy_bound(&queue->head, o->memory_rate);

	(void)part;
	if (s == NULL)
		return;
	/* The device did not accept a command that pick has counted. */
	if (queue->own[COUNTED] > queue->running)
		uncount_one(o, queue);
	if (hal_policy_above(queue, o->priority)) {
		kind += HIGH;
		set_counted(o, queue, kind + (uint64_t)PROGRAM * queue->head.program,
			    (uint64_t)queue->running + 1);
	}
	add_queue(s, queue, kind);
}

static void dequeue(void *state, struct hal_policy_partition *part,
		    struct hal_policy_queue *queue, enum hal_policy_why why)
{
	struct shared *s = hal_policy_shared(queue->own);
	uint64_t kind = queue->own[KIND];

	(void)part;
	if (s == NULL)
		return;
	remove_queue(s, queue);
	if (why == HAL_POLICY_OVERRULED && kind < HIGH)
		set_counted(state, queue, kind, queue->own[COUNTED] + 1);
	else if (why != HAL_POLICY_OVERRULED && kind >= HIGH)
		uncount_one(state, queue);
}

/* Return how many best-effort commands are in flight. */
static uint64_t best_effort_count(const struct orion *o)
{
	return o->count[COMPUTE] + o->count[MEMORY] + o->count[UNKNOWN];
}

/* Return whether the next command of queue may start; see "Promise" above. */
static bool may_start(const struct orion *o, const struct shared *s,
		      const struct hal_policy_queue *queue)
{
	uint64_t kind = queue->own[KIND], slowdown;

	if (kind >= HIGH)
		return true;
	if (best_effort_count(o) > 0 && o->request_ns != 0 &&
	    o->best_effort_ns > o->request_ns * o->permille / 1000)
		return false;
	if (s->high != 0)
		return false;
	slowdown = hal_policy_crowd_cost(o->device, &o->crowd, queue->head.program);
	if (slowdown != HAL_POLICY_NEVER)
		return slowdown <= o->slowdown_max;
	return kind != UNKNOWN && o->count[HIGH + UNKNOWN] == 0 &&
	       o->count[HIGH + kind] == 0;
}

/*
 * Return the queue to serve next, NULL if none may start: a high-priority queue if there
 * is one, else the best-effort queue that has been runnable longest.
 *
 * If no counted high-priority command has a known program, the decision depends on the
 * kind alone.  Then the first queue of a list decides for the whole list.
 */
static struct hal_policy_queue *first_to_start(const struct orion *o,
					       const struct shared *s)
{
	uint64_t waiting =
		s->waiting >> HIGH != 0 ? s->waiting >> HIGH << HIGH : s->waiting;
	struct hal_policy_queue *best = NULL;

	/* A high-priority command may always start. */
	while (waiting != 0) {
		uint32_t kind = 63 - (uint32_t)__builtin_clzll(waiting);
		struct hal_policy_queue *q = s->list[kind].first;

		waiting -= UINT64_C(1) << kind;
		for (int i = 1; q != NULL && !may_start(o, s, q); i++)
			q = o->crowd.named != 0 && i < EXAMINED_MAX ? q->next : NULL;
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
	struct hal_policy_queue *queue = s != NULL ? first_to_start(o, s) : NULL;

	(void)now_ns, (void)order;
	if (queue == NULL) {
		if (s != NULL && !s->held) {
			s->held = true;
			s->next_held = o->held;
			o->held = s;
		}
		return NULL;
	}
	remove_queue(s, queue);
	if (queue->own[KIND] >= HIGH) {
		o->request_ns = expected_or_assumed(o, queue->head.whole_ns);
		return queue;
	}
	o->best_effort_ns = expected_or_assumed(o, queue->head.expected_ns) +
			    (best_effort_count(o) > 0 ? o->best_effort_ns : 0);
	set_counted(o, queue, queue->own[KIND], queue->own[COUNTED] + 1);
	return queue;
}

extern const struct hal_policy hal_policy_orion;
const struct hal_policy hal_policy_orion = {
	.size = sizeof(struct hal_policy),
	.abi = HAL_POLICY_ABI,
	.name = "orion",
	.summary =
		"best effort beside high-priority work only where it does not disturb it",
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

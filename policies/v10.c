/* SPDX-License-Identifier: Apache-2.0 */
/*
 * v10: give the array to one partition at a time, while the others run vector commands.
 *
 * Promise: partitions that want the array get it in turn, with equal time per queue
 * weight, and the holder has as many units as its ceiling allows.  Meanwhile the other
 * partitions keep the units of their floor and run commands that need few units (vector
 * and memory commands).  The holder changes between two commands only.  The queues of a
 * partition are served by class, equal ones in order of arrival.
 *
 * Options: v10_slice_us (when the holder must pass the array on), v10_wait_us (longest
 * wait for the array), v10_unknown (what an unknown command needs).
 *
 * Follows V10 (Xue, Liu, Nai, Huang: V10: Hardware-assisted NPU multi-tenancy for
 * improved resource utilization and fairness, ISCA 2023).  There operators of several
 * tenants run concurrently on the matrix array and the vector unit.  For each, the tenant
 * that has been served least for its priority is next, and it may stop a running
 * operator. Differences:
 *   - There a core has one unit of each kind.  Here each partition has a vector unit, and
 *     the array is the units that elastic partitions exchange.
 *   - There an operator can be stopped.  Here the array moves between two commands.
 *   - What a command needs is taken from the device's profile or its program.
 *
 * Good where commands alternate between array and vector unit: each partition has the
 * whole array while another uses its vector unit.  Bad where every partition needs a part
 * of the array only, and where commands are shorter than the time to resize a partition.
 */
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

#include <hal/policy.h>

#include "common.h"

/* Whether a command needs the array, or only what its partition always has. */
enum need { ARRAY, NO_ARRAY, NEEDS };
/* Indices into hal_policy_queue.own: what the newest command needs, how many commands the
 * device has, and the rank of the list that holds the queue.  Index into
 * hal_policy_partition.own: ns for which array commands have run, divided by weight. */
enum { NEED = HAL_POLICY_SHARED + 1, RUNNING, RANK, USED = NEED };

struct shared {
	struct hal_policy_shared common;
	struct hal_policy_list list[NEEDS][HAL_POLICY_RANKS];
	uint64_t running[NEEDS]; /* commands that the device has */
	/* Stands for the partition in v10.waiting while a queue of it waits for the
	 * array; not a queue of the engine. */
	struct hal_policy_queue turn;
	bool waits; /* .turn is in v10.waiting */
};

struct v10 {
	const struct hal_host *host;
	struct hal_policy_shared *all; /* state of each partition that has queues */
	const struct hal_policy_host *device;
	uint64_t slice_ns, wait_ns;
	enum need unknown;
	struct shared *holder; /* the partition that has the array; NULL: none */
	/* Heap of the partitions that wait for the array: least array time first, then
	 * the partition that was attached last. */
	struct hal_policy_queue *waiting;
	uint32_t attached; /* partitions attached so far */
};

static const struct hal_option_def options[] = {
	{"v10_slice_us", HAL_OPTION_INT, 1, 10000000, NULL, "20",
	 "v10: lead in array time at which the array goes to the next partition"},
	{"v10_wait_us", HAL_OPTION_INT, 1, 10000000, NULL, "1000",
	 "v10: longest wait of a command for the array; then it runs on its "
	 "partition's units"},
	{"v10_unknown", HAL_OPTION_ENUM, 0, 0, "array|vector", "array",
	 "v10: assumed need of a command if neither profile nor program states it"},
};

static int create(const struct hal_host *host, const struct hal_bk_config *cfg,
		  const struct hal_policy_host *device, void **state)
{
	struct v10 *v = calloc(1, sizeof(*v));

	if (v == NULL)
		return host->fail(ENOMEM, "v10: no memory");
	v->host = host;
	v->device = device;
	v->slice_ns = (uint64_t)host->option_int(cfg, "v10_slice_us") * 1000;
	v->wait_ns = (uint64_t)host->option_int(cfg, "v10_wait_us") * 1000;
	v->unknown = host->option_int(cfg, "v10_unknown") == 0 ? ARRAY : NO_ARRAY;
	*state = v;
	return 0;
}

/* ---- the holder of the array ------------------------------------------------------- */

/* Return the first queue of the highest class with that need; NULL if none is runnable.
 */
static struct hal_policy_queue *first_of(const struct shared *s, enum need need)
{
	for (uint32_t rank = 0; rank < HAL_POLICY_RANKS; rank++)
		if (s->list[need][rank].first != NULL)
			return s->list[need][rank].first;
	return NULL;
}

static bool wants_array(const struct shared *s)
{
	return first_of(s, ARRAY) != NULL || s->running[ARRAY] > 0;
}

static uint64_t array_time(const struct shared *s)
{
	return s->common.part->own[USED];
}

/* Take s out of the waiting partitions. */
static void stop_waiting(struct v10 *v, struct shared *s)
{
	if (s->waits)
		hal_policy_heap_take(&v->waiting, &s->turn);
	s->waits = false;
}

/* Update the place of s among the waiting partitions, after its queues or its array time
 * have changed. */
static void update_turn(struct v10 *v, struct shared *s)
{
	bool waits = first_of(s, ARRAY) != NULL;

	if (waits == s->waits && (!waits || s->turn.own[HAL_POLICY_KEY] == array_time(s)))
		return;
	stop_waiting(v, s);
	if (!waits)
		return;
	s->turn.own[HAL_POLICY_KEY] = array_time(s);
	hal_policy_heap_add(&v->waiting, &s->turn);
	s->waits = true;
}

/* Return the waiting partition with the least array time, or NULL. */
static struct shared *first_waiting(const struct v10 *v)
{
	return v->waiting != NULL
		       ? (struct shared *)(void *)((char *)v->waiting -
						   offsetof(struct shared, turn))
		       : NULL;
}

/* Return the partition that should have the array.  That is the waiting partition with
 * the least array time, if the holder does not want the array or is v10_slice_us ahead of
 * it. Otherwise it is the holder. */
static struct shared *next_holder(const struct v10 *v)
{
	struct shared *next = first_waiting(v);

	if (next == NULL || (v->holder != NULL && wants_array(v->holder) &&
			     array_time(next) + v->slice_ns > array_time(v->holder)))
		return v->holder;
	return next;
}

/* Ask the engine to pick for the partition that should have the array, which may be
 * another one than before. */
static void offer_array(const struct v10 *v)
{
	const struct shared *next = next_holder(v);

	if (next != NULL)
		v->device->ask(v->device->device, next->common.part);
}

/* Give s as many units as its ceiling allows and all other partitions their floor. Return
 * whether s is the holder now; false while another plan is under way. */
static bool move_array_to(struct v10 *v, struct shared *s)
{
	int err;

	for (struct hal_policy_shared *c = v->all; c != NULL; c = c->next) {
		c->least = c == &s->common ? c->part->ceiling : 0;
		c->most = c->least;
	}
	err = hal_policy_spread(v->device, v->all);
	if (err != 0) /* s keeps its units */
		s->common.units = s->common.part->units;
	v->holder = err != -EBUSY ? s : v->holder; /* -EBUSY: changed() tries again */
	return s == v->holder;
}

/* Return whether s has the array.  Move the array to s if s should have it and no array
 * command of the holder is running. */
static bool has_array(struct v10 *v, struct shared *s)
{
	if (s != next_holder(v))
		return false;
	if (s != v->holder && ((v->holder != NULL && v->holder->running[ARRAY] > 0) ||
			       !move_array_to(v, s)))
		return false;
	return s->common.part->units >= s->common.units;
}

static void changed(void *state, struct hal_policy_partition *part,
		    struct hal_policy_queue *queue)
{
	struct shared *s = queue == NULL ? hal_policy_shared(part->own) : NULL;

	if (s != NULL)
		s->common.units = part->units; /* also if the device refused the move */
	offer_array(state);
}

/* ---- attach and detach ------------------------------------------------------------- */

/* Record what queue's newest command needs and how many commands the device has. */
static void set_running(struct shared *s, struct hal_policy_queue *queue, enum need need,
			uint64_t running)
{
	s->running[queue->own[NEED]] -= queue->own[RUNNING];
	s->running[need] += running;
	queue->own[NEED] = need;
	queue->own[RUNNING] = running;
}

static int attach(void *state, struct hal_policy_partition *part,
		  struct hal_policy_queue *queue)
{
	struct v10 *v = state;
	int err = hal_policy_share(v->host, &v->all, part, queue, sizeof(struct shared));
	struct shared *s = hal_policy_shared(part->own);

	if (err == 0 && s->common.queues == 1)
		s->turn.id = UINT32_MAX - v->attached++;
	if (err != 0 || queue->running == 0)
		return err;
	/* Commands that were submitted under another policy may be using the array. */
	v->holder = hal_policy_shared(queue->own);
	set_running(v->holder, queue, ARRAY, queue->running);
	return 0;
}

static void detach(void *state, struct hal_policy_partition *part,
		   struct hal_policy_queue *queue)
{
	struct v10 *v = state;
	struct shared *s = hal_policy_shared(queue->own);

	set_running(s, queue, NO_ARRAY, 0);
	if (s->common.queues == 1) {
		stop_waiting(v, s);
		v->holder = s != v->holder ? v->holder : NULL;
	}
	hal_policy_unshare(&v->all, part, queue);
	queue->own[HAL_POLICY_SHARED] = 0; /* with HAL_POLICY_KEEPS own[] persists */
}

/* ---- the queues -------------------------------------------------------------------- */

static enum need need_of(const struct v10 *v, const struct hal_policy_partition *part,
			 const struct hal_policy_queue *queue)
{
	const struct hal_policy_host *h = v->device;
	uint32_t all = hal_policy_ceiling(h, part);
	/* A memory-bound launch needs the array, too, if it is more than twice as fast
	 * there. */
	if (queue->head.kind == HAL_POLICY_MEMORY)
		return queue->head.op == HAL_OP_LAUNCH &&
				       h->expect(h->device, queue, part->floor) / 2 >
					       h->expect(h->device, queue, all)
			       ? ARRAY
			       : NO_ARRAY;
	if (queue->head.kind == HAL_POLICY_UNKNOWN && queue->head.work == 0)
		return v->unknown;
	return queue->head.kind == HAL_POLICY_VECTOR ? NO_ARRAY : ARRAY;
}

static void enqueue(void *state, struct hal_policy_partition *part,
		    struct hal_policy_queue *queue)
{
	struct v10 *v = state;
	struct shared *s = hal_policy_shared(queue->own);
	enum need need;

	if (s == NULL)
		return;
	need = need_of(v, part, queue);
	/* A partition does not save up array time while it does not want the array. */
	if (need == ARRAY && !wants_array(s) && v->holder != NULL &&
	    array_time(v->holder) > array_time(s) + v->slice_ns)
		part->own[USED] = array_time(v->holder) - v->slice_ns;
	/* queue->running is lower if the device did not accept a command that pick has
	 * counted. */
	set_running(s, queue, need,
		    queue->running < queue->own[RUNNING] ? queue->running
							 : queue->own[RUNNING]);
	queue->own[RANK] = hal_policy_rank(queue);
	hal_policy_list_add(&s->list[need][queue->own[RANK]], queue);
	update_turn(v, s);
	offer_array(v);
}

static void dequeue(void *state, struct hal_policy_partition *part,
		    struct hal_policy_queue *queue, enum hal_policy_why why)
{
	struct shared *s = hal_policy_shared(queue->own);
	enum need need = (enum need)queue->own[NEED];

	(void)part;
	if (s == NULL)
		return;
	hal_policy_list_take(&s->list[need][queue->own[RANK]], queue);
	update_turn(state, s);
	if (why == HAL_POLICY_OVERRULED)
		set_running(s, queue, need, queue->own[RUNNING] + 1);
	else if (why != HAL_POLICY_REPLACED)
		offer_array(state);
}

static void ended(void *state, struct hal_policy_partition *part,
		  struct hal_policy_queue *queue, const struct hal_policy_end *end)
{
	struct shared *s = hal_policy_shared(queue->own);
	enum need need = (enum need)queue->own[NEED];

	if (s == NULL || queue->own[RUNNING] == 0)
		return;
	set_running(s, queue, need, queue->own[RUNNING] - 1);
	if (need == ARRAY)
		part->own[USED] += end->ran_ns / queue->weight;
	update_turn(state, s);
	offer_array(state);
}

/* Return whether a is served before b: by class, then in order of arrival. */
static bool served_before(const struct hal_policy_queue *a,
			  const struct hal_policy_queue *b)
{
	if (a->own[RANK] != b->own[RANK])
		return a->own[RANK] < b->own[RANK];
	return a->runnable_ns <= b->runnable_ns;
}

/* Pick the first queue by class and arrival.  Exclude queues that need the array while
 * another partition has it, unless they have waited for v10_wait_us. */
static struct hal_policy_queue *pick(void *state, struct hal_policy_partition *part,
				     uint64_t now_ns, struct hal_policy_order *order)
{
	struct v10 *v = state;
	struct shared *s = hal_policy_shared(part->own);
	struct hal_policy_queue *queue, *first;

	if (s == NULL)
		return NULL;
	queue = first_of(s, NO_ARRAY);
	first = first_of(s, ARRAY);
	if (first != NULL && !has_array(v, s) &&
	    hal_bk_after(first->runnable_ns, v->wait_ns) > now_ns) {
		order->until_ns = hal_bk_after(first->runnable_ns, v->wait_ns);
		first = NULL;
	}
	if (queue == NULL || (first != NULL && served_before(first, queue)))
		queue = first;
	if (queue == NULL)
		return NULL;
	hal_policy_list_take(&s->list[queue->own[NEED]][queue->own[RANK]], queue);
	update_turn(v, s);
	set_running(s, queue, (enum need)queue->own[NEED], queue->own[RUNNING] + 1);
	return queue;
}

extern const struct hal_policy hal_policy_v10;
const struct hal_policy hal_policy_v10 = {
	.size = sizeof(struct hal_policy),
	.abi = HAL_POLICY_ABI,
	.name = "v10",
	.summary =
		"gives the array to one partition at a time; others run vector commands",
	.options = options,
	.option_count = sizeof(options) / sizeof(options[0]),
	.flags = HAL_POLICY_ALWAYS | HAL_POLICY_EXPECTS | HAL_POLICY_KEEPS |
		 HAL_POLICY_STARVES,
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

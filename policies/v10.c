/* SPDX-License-Identifier: Apache-2.0 */
/*
 * v10: the array is one tenant's at a time; beside it run the others' vector commands.
 *
 * V10 (Xue, Liu, Nai, Huang 2023): operators of several tenants that need the matrix
 * array and the vector unit of an NPU run at the same time, each kind chosen by itself:
 * who has been served least for his priority comes next, and may stop one that runs.
 * There a core has one unit of each kind and stops inside an operator; here each
 * partition has a vector unit, the array is the units that borders move, it goes to the
 * next between two commands, and what a command needs a profile or the program says.
 * Queues of one partition are served by class, equal ones in order of arrival.
 *
 * Good where commands need the array and the vector unit by turns: each has the whole
 * array while another is on his vector unit (in a fixed split half of it is idle then).
 * Bad where all need a part of the array: they take turns where they could have shared
 * it; and where commands are shorter than a border takes to move.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include <hal/policy.h>

#include "common.h"

/* What a command needs: the array, or nothing that others could use. */
enum need { ARRAY, BESIDE, NEEDS };
/* .own of queues: what the newest command needs, how many the device has, and the class
 * with which it is listed.  Of partitions: ns they had the array, over the weight. */
enum { NEED = HAL_POLICY_SHARED + 1, RUNNING, RANK, USED = NEED };

struct shared {
	struct hal_policy_shared common;
	struct hal_policy_list list[NEEDS][HAL_POLICY_RANKS];
	uint64_t running[NEEDS]; /* commands that the device has */
};

struct v10 {
	const struct hal_host *host;
	struct hal_policy_shared *all;
	const struct hal_policy_host *device;
	uint64_t slice_ns, wait_ns;
	enum need unknown;
	struct shared *holder; /* has the array; NULL: nobody yet */
};

static const struct hal_option_def options[] = {
	{"v10_slice_us", HAL_OPTION_INT, 1, 10000000, NULL, "20",
	 "v10: who has had the array so much longer than one who waits gives it to him"},
	{"v10_wait_us", HAL_OPTION_INT, 1, 10000000, NULL, "1000",
	 "v10: so long a command waits for the array; then it goes on with what is "
	 "there"},
	{"v10_unknown", HAL_OPTION_ENUM, 0, 0, "array|vector", "array",
	 "v10: what a command is taken to need while nobody says"},
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
	v->unknown = host->option_int(cfg, "v10_unknown") == 0 ? ARRAY : BESIDE;
	*state = v;
	return 0;
}

/* ---- who has the array -------------------------------------------------------------- */

/* Return the first of the highest class; NULL: none waits. */
static struct hal_policy_queue *first_with_need(const struct shared *s, enum need need)
{
	for (uint32_t rank = 0; rank < HAL_POLICY_RANKS; rank++)
		if (s->list[need][rank].first != NULL)
			return s->list[need][rank].first;
	return NULL;
}

static bool wants(const struct shared *s)
{
	return first_with_need(s, ARRAY) != NULL || s->running[ARRAY] > 0;
}

static uint64_t used(const struct shared *s)
{
	return s->common.part->own[USED];
}

/* Whose it is to be: his who has had it least of those that wait for it, when its holder
 * does not want it, or has had it for so much longer. */
static struct shared *due_shared(const struct v10 *v)
{
	struct shared *next = NULL;

	for (struct hal_policy_shared *c = v->all; c != NULL; c = c->next) {
		struct shared *s = (struct shared *)c; /* its first member */

		if (first_with_need(s, ARRAY) != NULL && (!next || used(s) < used(next)))
			next = s;
	}
	if (next == NULL || (v->holder != NULL && wants(v->holder) &&
			     used(next) + v->slice_ns > used(v->holder)))
		return v->holder;
	return next;
}

/* It may be another's turn. */
static void pass_on(const struct v10 *v)
{
	if (due_shared(v) != NULL)
		v->device->ask(v->device->device, due_shared(v)->common.part);
}

/* As many units as it may have for s, as few for all others. */
static bool give(struct v10 *v, struct shared *s)
{
	int err;

	for (struct hal_policy_shared *c = v->all; c != NULL; c = c->next) {
		c->least = c == &s->common ? c->part->ceiling : 0;
		c->most = c->least;
	}
	err = hal_policy_spread(v->device, v->all);
	if (err != 0) /* it has what it has */
		s->common.units = s->common.part->units;
	v->holder = err != -EBUSY ? s : v->holder; /* else, when those have moved */
	return s == v->holder;
}

/* s has it, or is given it: between two commands. */
static bool has_array(struct v10 *v, struct shared *s)
{
	if (s != due_shared(v))
		return false;
	if (s != v->holder &&
	    ((v->holder != NULL && v->holder->running[ARRAY] > 0) || !give(v, s)))
		return false;
	return s->common.part->units >= s->common.units;
}

static void changed(void *state, struct hal_policy_partition *part,
		    struct hal_policy_queue *queue)
{
	struct shared *s = queue == NULL ? hal_policy_shared(part->own) : NULL;

	if (s != NULL)
		s->common.units = part->units; /* also when the device has refused it */
	pass_on(state);
}

/* ---- there and gone ----------------------------------------------------------------- */

/* What its newest command needs, and so many on the device. */
static void count_need(struct shared *s, struct hal_policy_queue *queue, enum need need,
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

	if (err != 0 || queue->running == 0)
		return err;
	v->holder = hal_policy_shared(queue->own); /* given to it under another policy */
	count_need(v->holder, queue, ARRAY, queue->running);
	return 0;
}

static void detach(void *state, struct hal_policy_partition *part,
		   struct hal_policy_queue *queue)
{
	struct v10 *v = state;
	struct shared *s = hal_policy_shared(queue->own);

	count_need(s, queue, BESIDE, 0);
	if (s == v->holder && s->common.queues == 1)
		v->holder = NULL;
	hal_policy_unshare(&v->all, part, queue);
	queue->own[HAL_POLICY_SHARED] = 0; /* it is kept */
}

/* ---- the queues --------------------------------------------------------------------- */

static enum need need_of(const struct v10 *v, const struct hal_policy_partition *part,
			 const struct hal_policy_queue *queue)
{
	const struct hal_policy_host *h = v->device;
	uint32_t all = hal_policy_ceiling(h, part);
	/* What waits for memory needs it, too, if it is much slower without. */
	if (queue->head.kind == HAL_POLICY_MEMORY)
		return queue->head.op == HAL_OP_LAUNCH &&
				       h->expect(h->device, queue, part->floor) / 2 >
					       h->expect(h->device, queue, all)
			       ? ARRAY
			       : BESIDE;
	if (queue->head.kind == HAL_POLICY_UNKNOWN && queue->head.work == 0)
		return v->unknown;
	return queue->head.kind == HAL_POLICY_VECTOR ? BESIDE : ARRAY;
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
	/* Who wants it again has not saved up the time in which he did not. */
	if (need == ARRAY && !wants(s) && v->holder != NULL &&
	    used(v->holder) > used(s) + v->slice_ns)
		part->own[USED] = used(v->holder) - v->slice_ns;
	/* Fewer than it thinks: the device had no room. */
	count_need(s, queue, need,
		   queue->running < queue->own[RUNNING] ? queue->running
							: queue->own[RUNNING]);
	queue->own[RANK] = hal_policy_rank(queue);
	hal_policy_list_add(&s->list[need][queue->own[RANK]], queue);
	pass_on(v);
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
	if (why == HAL_POLICY_OVERRULED)
		count_need(s, queue, need, queue->own[RUNNING] + 1);
	else if (why != HAL_POLICY_REPLACED)
		pass_on(state);
}

static void ended(void *state, struct hal_policy_partition *part,
		  struct hal_policy_queue *queue, const struct hal_policy_end *end)
{
	struct shared *s = hal_policy_shared(queue->own);
	enum need need = (enum need)queue->own[NEED];

	if (s == NULL || queue->own[RUNNING] == 0)
		return;
	count_need(s, queue, need, queue->own[RUNNING] - 1);
	if (need == ARRAY)
		part->own[USED] += end->ran_ns / queue->weight;
	pass_on(state);
}

/* Return whether a is served before b: by class, then in order of arrival. */
static bool is_before_in_class(const struct hal_policy_queue *a,
			       const struct hal_policy_queue *b)
{
	if (a->own[RANK] != b->own[RANK])
		return a->own[RANK] < b->own[RANK];
	return a->runnable_ns <= b->runnable_ns;
}

/* Who is first; of those that need the array, when it is here or they have waited for
 * long. */
static struct hal_policy_queue *pick(void *state, struct hal_policy_partition *part,
				     uint64_t now_ns, struct hal_policy_order *order)
{
	struct v10 *v = state;
	struct shared *s = hal_policy_shared(part->own);
	struct hal_policy_queue *queue, *first;

	if (s == NULL)
		return NULL;
	queue = first_with_need(s, BESIDE);
	first = first_with_need(s, ARRAY);
	if (first != NULL && !has_array(v, s) &&
	    hal_bk_after(first->runnable_ns, v->wait_ns) > now_ns) {
		order->until_ns = hal_bk_after(first->runnable_ns, v->wait_ns);
		first = NULL;
	}
	if (queue == NULL || (first != NULL && is_before_in_class(first, queue)))
		queue = first;
	if (queue == NULL)
		return NULL;
	hal_policy_list_take(&s->list[queue->own[NEED]][queue->own[RANK]], queue);
	count_need(s, queue, (enum need)queue->own[NEED], queue->own[RUNNING] + 1);
	return queue;
}

extern const struct hal_policy hal_policy_v10;
const struct hal_policy hal_policy_v10 = {
	.size = sizeof(struct hal_policy),
	.abi = HAL_POLICY_ABI,
	.name = "v10",
	.summary =
		"the array to one tenant at a time, the others' vector commands beside",
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

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * themis: lease the partition to the queue whose submission is slowed down most by
 * sharing.
 *
 * Promise: with n busy tenants, each submission takes about n times its run time alone,
 * whatever its length.  The measure is rho: the time from submission to the expected
 * completion, divided by the run time alone.  At the end of a lease the next one goes to
 * the queue with the highest rho.  Classes come first: rho orders the queues of one
 * class, and a lease ends early when a queue of a higher class becomes runnable.
 * Priorities and deadlines are ignored.
 *
 * Options: themis_lease_us (length of a lease), themis_unknown_us (assumed run time of
 * submissions whose run time is not known yet).
 *
 * Follows Themis (Mahajan, Balasubramanian, Singhvi, Venkataraman, Akella, Phanishayee,
 * Chawla: Themis: Fair and efficient GPU cluster scheduling, NSDI 2020).  Differences:
 *   - There jobs bid for the devices of a cluster.  Here a lease is time of a partition.
 *   - There a fraction 1 - f of the jobs takes part in an auction.  Here all queues do.
 *   - There a job reports what it would do with more devices.  Here a job is a submission
 *     and its length is learned from its queue, rounded up by at most a quarter.
 *
 * Good for jobs of very different lengths: each is slowed down by about the number of
 * tenants (under fifo, rr and wfq a short one by many times that).  Bad for the mean
 * slowdown; policy prema lets short jobs overtake.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include <hal/policy.h>

#include "common.h"

enum {
	QUARTERS = 4,
	LENGTHS = 64 * QUARTERS, /* length numbers of each class */
	WORDS = LENGTHS / 64,
};
/* Indices into hal_policy_queue.own: LENGTH is the length number plus rank * LENGTHS.
 * SINCE, the heap key, is the submit time less the expected remaining run time.
 * The current time less SINCE is the time from submission to completion if the queue had
 * the partition alone from now on.  own[HAL_POLICY_SHARED] points to struct shared. */
enum { LENGTH = HAL_POLICY_SHARED + 1, SINCE = HAL_POLICY_KEY };

/* Queues of one length are in one heap, lowest SINCE first.  The first has the highest
 * rho of its heap at any time, so a decision examines one queue of each length. */
struct shared {
	struct hal_policy_shared common;
	uint64_t waiting[HAL_POLICY_RANKS * WORDS]; /* bit i: heap[i] is not empty */
	struct hal_policy_queue *heap[HAL_POLICY_RANKS * LENGTHS];
	struct hal_policy_queue *holder; /* queue with the lease; NULL: none */
	bool holder_waits;               /* the holder is in a heap */
	uint64_t lease_ends_ns;
};

struct themis {
	const struct hal_host *host;
	struct hal_policy_shared *all; /* state of each partition that has queues */
	uint64_t lease_ns, unknown_ns;
};

static const struct hal_option_def options[] = {
	{"themis_lease_us", HAL_OPTION_INT, 0, 10000000, NULL, "100",
	 "themis: time for which a queue keeps its lease; 0: one command"},
	{"themis_unknown_us", HAL_OPTION_INT, 1, 10000000, NULL, "1000",
	 "themis: assumed run time of a submission until its queue has completed one"},
};

static int create(const struct hal_host *host, const struct hal_bk_config *cfg,
		  const struct hal_policy_host *device, void **state)
{
	struct themis *themis = calloc(1, sizeof(*themis));

	(void)device;
	if (themis == NULL)
		return host->fail(ENOMEM, "themis: no memory");
	themis->host = host;
	themis->lease_ns = (uint64_t)host->option_int(cfg, "themis_lease_us") * 1000;
	themis->unknown_ns = (uint64_t)host->option_int(cfg, "themis_unknown_us") * 1000;
	*state = themis;
	return 0;
}

static int attach(void *state, struct hal_policy_partition *part,
		  struct hal_policy_queue *queue)
{
	struct themis *themis = state;

	return hal_policy_share(themis->host, &themis->all, part, queue,
				sizeof(struct shared));
}

static void detach(void *state, struct hal_policy_partition *part,
		   struct hal_policy_queue *queue)
{
	struct shared *s = hal_policy_shared(queue->own);
	struct themis *themis = state;

	if (s->holder == queue)
		s->holder = NULL;
	hal_policy_unshare(&themis->all, part, queue);
}

/* ---- the queues -------------------------------------------------------------------- */

/* Return the number of the range of lengths that contains ns: four ranges per octave. */
static uint64_t length_of(uint64_t ns)
{
	uint64_t below = ns > 4 ? ns - 1 : 4;
	uint64_t octave = 63 - (uint64_t)__builtin_clzll(below);

	return octave * QUARTERS + (below >> (octave - 2) & (QUARTERS - 1));
}

/* Return the upper end of the range with that number, in ns. */
static double ns_of(uint64_t length)
{
	return (double)((QUARTERS + length % QUARTERS + 1) << (length / QUARTERS - 2));
}

static void add_queue(struct shared *s, struct hal_policy_queue *queue)
{
	uint64_t length = queue->own[LENGTH];

	hal_policy_heap_add(&s->heap[length], queue);
	s->waiting[length / 64] |= UINT64_C(1) << length % 64;
	s->holder_waits = s->holder_waits || queue == s->holder;
}

static void remove_queue(struct shared *s, struct hal_policy_queue *queue)
{
	uint64_t length = queue->own[LENGTH];

	hal_policy_heap_take(&s->heap[length], queue);
	if (s->heap[length] == NULL)
		s->waiting[length / 64] &= ~(UINT64_C(1) << length % 64);
	s->holder_waits = s->holder_waits && queue != s->holder;
}

static void enqueue(void *state, struct hal_policy_partition *part,
		    struct hal_policy_queue *queue)
{
	const struct themis *themis = state;
	struct shared *s = hal_policy_shared(queue->own);
	const struct hal_policy_command *c = &queue->head;
	bool known = c->whole_ns != HAL_POLICY_NEVER;

	(void)part;
	if (s == NULL)
		return;
	queue->own[LENGTH] = length_of(known ? c->whole_ns : themis->unknown_ns) +
			     (uint64_t)LENGTHS * hal_policy_rank(queue);
	queue->own[SINCE] = c->submit_ns - (known ? c->rest_ns : themis->unknown_ns);
	add_queue(s, queue);
}

static void dequeue(void *state, struct hal_policy_partition *part,
		    struct hal_policy_queue *queue, enum hal_policy_why why)
{
	(void)state, (void)part, (void)why;
	if (hal_policy_shared(queue->own) != NULL)
		remove_queue(hal_policy_shared(queue->own), queue);
}

/* Return rho: the time from submission to expected completion, divided by the run time
 * alone. */
static double rho(const struct hal_policy_queue *queue, uint64_t now_ns)
{
	return (double)(int64_t)(now_ns - queue->own[SINCE]) /
	       ns_of(queue->own[LENGTH] % LENGTHS);
}

/* Return the index in s->waiting at which the highest class with runnable queues begins;
 * HAL_POLICY_RANKS * WORDS if no queue is runnable. */
static uint64_t first_runnable_class(const struct shared *s)
{
	uint64_t w = 0;

	while (w < (uint64_t)HAL_POLICY_RANKS * WORDS && s->waiting[w] == 0)
		w++;
	return w / WORDS * WORDS;
}

/* Return the queue with the highest rho of the class that begins at s->waiting[from]. */
static struct hal_policy_queue *highest_rho(const struct shared *s, uint64_t from,
					    uint64_t now_ns)
{
	struct hal_policy_queue *best = NULL;

	for (uint64_t w = from; w < from + WORDS; w++)
		for (uint64_t bits = s->waiting[w]; bits != 0; bits &= bits - 1) {
			struct hal_policy_queue *q =
				s->heap[w * 64 + (uint64_t)__builtin_ctzll(bits)];

			if (best == NULL || rho(q, now_ns) > rho(best, now_ns))
				best = q;
		}
	return best;
}

static struct hal_policy_queue *pick(void *state, struct hal_policy_partition *part,
				     uint64_t now_ns, struct hal_policy_order *order)
{
	const struct themis *themis = state;
	struct shared *s = hal_policy_shared(part->own);
	uint64_t from;

	(void)order;
	if (s == NULL)
		return NULL;
	from = first_runnable_class(s);
	if (from == (uint64_t)HAL_POLICY_RANKS * WORDS)
		return NULL;
	if (!s->holder_waits || now_ns >= s->lease_ends_ns ||
	    s->holder->own[LENGTH] / LENGTHS != from / WORDS) {
		s->holder = highest_rho(s, from, now_ns);
		s->lease_ends_ns = hal_bk_after(now_ns, themis->lease_ns);
	}
	remove_queue(s, s->holder);
	return s->holder;
}

extern const struct hal_policy hal_policy_themis;
const struct hal_policy hal_policy_themis = {
	.size = sizeof(struct hal_policy),
	.abi = HAL_POLICY_ABI,
	.name = "themis",
	.summary = "leases time to the queue that sharing slows down most",
	.options = options,
	.option_count = sizeof(options) / sizeof(options[0]),
	.flags = HAL_POLICY_EXPECTS,
	.create = create,
	.destroy = free,
	.attach = attach,
	.detach = detach,
	.enqueue = enqueue,
	.dequeue = dequeue,
	.pick = pick,
};

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * themis: who would finish latest for what his work takes alone has the next lease.
 *
 * Themis (Mahajan, Balasubramanian, Singhvi, Venkataraman, Akella, Phanishayee, Chawla
 * 2020): rho of a job is the time from its arrival to its end when it shares, over that
 * when it has the cluster alone; devices are leased to those with the highest, who bid
 * for them, so that for n tenants nobody's is much above n.  There a job says itself what
 * it would do with more devices, and 1 - f of the jobs take part in an auction; here a
 * job is a submission, its length is learned from its queue's and rounded up by at most a
 * quarter, everybody takes part, and the lease is of a partition's time.
 *
 * Good for jobs of very different lengths: each is slowed down by about as much as there
 * are tenants (under fifo, rr and wfq a short one by many times that).  Bad for the mean
 * of the slowdowns, where prema lets the short ones pass; and for priorities and
 * deadlines, of which it knows nothing but the class: rho counts within one, and a lease
 * ends when somebody of an earlier one comes.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include <hal/policy.h>

#include "common.h"

enum {
	QUARTERS = 4,
	LENGTHS = 64 * QUARTERS, /* of each class */
	WORDS = LENGTHS / 64,
};
/* .own[HAL_POLICY_SHARED] of a partition, and of its queues that were admitted: struct
 * shared; of a queue also its length, behind those of earlier classes; and as its key the
 * time from which, had it the device from now on, it would have taken all until its end.
 */
enum { LENGTH = HAL_POLICY_SHARED + 1, SINCE = HAL_POLICY_KEY };

/* Those of one length in a heap, who came earliest first: he has the highest rho
 * of them, whatever the time.  So one of each length has to be looked at. */
struct shared {
	struct hal_policy_shared common;
	uint64_t waiting[HAL_POLICY_RANKS * WORDS]; /* bit a length: somebody is there */
	struct hal_policy_queue *heap[HAL_POLICY_RANKS * LENGTHS];
	struct hal_policy_queue *holder; /* of the lease; NULL: nobody */
	bool holder_waits;
	uint64_t lease_ends_ns;
};

struct themis {
	const struct hal_host *host;
	struct hal_policy_shared *all;
	uint64_t lease_ns, unknown_ns;
};

static const struct hal_option_def options[] = {
	{"themis_lease_us", HAL_OPTION_INT, 0, 10000000, NULL, "100",
	 "themis: so long a queue goes on before another's turn; 0: a command"},
	{"themis_unknown_us", HAL_OPTION_INT, 1, 10000000, NULL, "1000",
	 "themis: what a submission is taken to run while none of its queue has ended"},
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

/* ---- the queues --------------------------------------------------------------------- */

/* Lengths up to (5 + quarter) / 4 of an octave's least have one number. */
static uint64_t length_of(uint64_t ns)
{
	uint64_t below = ns > 4 ? ns - 1 : 4;
	uint64_t octave = 63 - (uint64_t)__builtin_clzll(below);

	return octave * QUARTERS + (below >> (octave - 2) & (QUARTERS - 1));
}

static double ns_of(uint64_t length)
{
	return (double)((QUARTERS + length % QUARTERS + 1) << (length / QUARTERS - 2));
}

static void put_waiting(struct shared *s, struct hal_policy_queue *queue)
{
	uint64_t length = queue->own[LENGTH];

	hal_policy_heap_add(&s->heap[length], queue);
	s->waiting[length / 64] |= UINT64_C(1) << length % 64;
	s->holder_waits = s->holder_waits || queue == s->holder;
}

static void take_waiting(struct shared *s, struct hal_policy_queue *queue)
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
	put_waiting(s, queue);
}

static void dequeue(void *state, struct hal_policy_partition *part,
		    struct hal_policy_queue *queue, enum hal_policy_why why)
{
	(void)state, (void)part, (void)why;
	if (hal_policy_shared(queue->own) != NULL)
		take_waiting(hal_policy_shared(queue->own), queue);
}

static double rho(const struct hal_policy_queue *queue, uint64_t now_ns)
{
	return (double)(int64_t)(now_ns - queue->own[SINCE]) /
	       ns_of(queue->own[LENGTH] % LENGTHS);
}

/* Where the lengths of the first class begin of which somebody waits. */
static uint64_t first_words(const struct shared *s)
{
	uint64_t w = 0;

	while (w < (uint64_t)HAL_POLICY_RANKS * WORDS && s->waiting[w] == 0)
		w++;
	return w / WORDS * WORDS;
}

static struct hal_policy_queue *highest(const struct shared *s, uint64_t from,
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
	from = first_words(s);
	if (from == (uint64_t)HAL_POLICY_RANKS * WORDS)
		return NULL;
	if (!s->holder_waits || now_ns >= s->lease_ends_ns ||
	    s->holder->own[LENGTH] / LENGTHS != from / WORDS) {
		s->holder = highest(s, from, now_ns);
		s->lease_ends_ns = hal_bk_after(now_ns, themis->lease_ns);
	}
	take_waiting(s, s->holder);
	return s->holder;
}

extern const struct hal_policy hal_policy_themis;
const struct hal_policy hal_policy_themis = {
	.size = sizeof(struct hal_policy),
	.abi = HAL_POLICY_ABI,
	.name = "themis",
	.summary = "a lease to who would finish latest for his length",
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

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tgs: best effort at the rate at which the productive tenants do not become slower.
 *
 * Transparent GPU sharing (Wu, Zhang, Bai, Liu, Jin 2023): commands of productive queues
 * that end in five periods are their rate; while that is within 3 % of the best it has
 * been, best effort may start more commands a period (half as many again, later 0.025 %),
 * else fewer (a third, later 8 %, a tenth of them when more than 9 % are missing). Twenty
 * bad periods, and four fifths are the best.  The constants are theirs.  There each job
 * is a container with a thread that samples every 5 s; here classes are by priority,
 * periods are looked at when something happens, and after a fall by 9 % the search starts
 * again.
 *
 * Good for a productive tenant that always has work, beside one that takes what is left:
 * nobody has to know what either runs.  Bad where it matters how soon a command ends: the
 * rate of a tenant with little work is the same however long each waits (priority is
 * better); and a tenant that pauses looks like one that is disturbed.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include <hal/policy.h>

#include "common.h"

#define WINDOW      5u
#define BAD_MAX     20u
#define ONE         1000u /* a command a period, as a limit */
#define LIMIT_LEAST 10u   /* one in a hundred periods */
#define LIMIT_MOST  UINT64_C(1000000000000)
#define CATCH_UP    1000u /* periods; what was before them is not known any more */

enum class { PRODUCTIVE, BEST_EFFORT, CLASSES };
/* .own[HAL_POLICY_SHARED] of a partition, and of its queues that were admitted: struct
 * shared; of queues also the class of the newest command. */
enum { CLASS = HAL_POLICY_SHARED + 1 };

struct shared {
	struct hal_policy_shared common;
	struct hal_policy_list list[CLASSES];
	uint64_t period_ends_ns;
	uint64_t ended[WINDOW]; /* productive commands; [0] of this period */
	uint64_t best;
	uint64_t limit;  /* of best effort, thousandths of commands a period */
	uint64_t due_ns; /* when its next one may start */
	uint32_t bad;
	bool steady;
};

struct tgs {
	const struct hal_host *host;
	struct hal_policy_shared *all;
	uint64_t period_ns;
	int64_t priority;
};

static const struct hal_option_def options[] = {
	{"tgs_priority", HAL_OPTION_INT, INT32_MIN, INT32_MAX, NULL, "1",
	 "tgs: priority from which a queue is productive; below it is best effort"},
	{"tgs_period_us", HAL_OPTION_INT, 1, 10000000, NULL, "10000",
	 "tgs: after so much device time the rate is looked at"},
};

static int create(const struct hal_host *host, const struct hal_bk_config *cfg,
		  const struct hal_policy_host *device, void **state)
{
	struct tgs *tgs = calloc(1, sizeof(*tgs));

	(void)device;
	if (tgs == NULL)
		return host->fail(ENOMEM, "tgs: no memory");
	tgs->host = host;
	tgs->period_ns = (uint64_t)host->option_int(cfg, "tgs_period_us") * 1000;
	tgs->priority = host->option_int(cfg, "tgs_priority");
	*state = tgs;
	return 0;
}

static int attach(void *state, struct hal_policy_partition *part,
		  struct hal_policy_queue *queue)
{
	struct tgs *tgs = state;
	int err = hal_policy_share(tgs->host, &tgs->all, part, queue,
				   sizeof(struct shared));
	struct shared *s = hal_policy_shared(queue->own);

	if (err == 0 && s->limit == 0)
		s->limit = ONE;
	return err;
}

static void detach(void *state, struct hal_policy_partition *part,
		   struct hal_policy_queue *queue)
{
	struct tgs *tgs = state;

	hal_policy_unshare(&tgs->all, part, queue);
}

/* ---- the rate ---------------------------------------------------------------------- */

static void fewer(struct shared *s, uint64_t rate)
{
	if (rate * 100 < s->best * 91) {
		s->limit /= 10;
		s->steady = false;
	} else {
		s->limit = s->steady ? s->limit * 92 / 100 : s->limit * 2 / 3;
		s->steady = true;
	}
	if (s->limit < LIMIT_LEAST)
		s->limit = LIMIT_LEAST;
	if (++s->bad < BAD_MAX)
		return;
	s->bad = 0;
	s->best = s->best * 4 / 5;
}

static void more(struct shared *s)
{
	s->bad = 0;
	s->limit += s->steady ? s->limit / 4000 + 1 : s->limit / 2;
	if (s->limit > LIMIT_MOST)
		s->limit = LIMIT_MOST;
}

static void period_over(struct shared *s)
{
	uint64_t rate = 0;

	for (size_t i = 0; i < WINDOW; i++)
		rate += s->ended[i];
	for (size_t i = WINDOW - 1; i > 0; i--)
		s->ended[i] = s->ended[i - 1];
	s->ended[0] = 0;
	if (rate > s->best)
		s->best = rate;
	if (rate * 100 >= s->best * 97)
		more(s);
	else
		fewer(s, rate);
}

static void catch_up(const struct tgs *tgs, struct shared *s, uint64_t now_ns)
{
	uint64_t most = CATCH_UP * tgs->period_ns;

	if (s->period_ends_ns == 0)
		s->period_ends_ns = hal_bk_after(now_ns, tgs->period_ns);
	if (now_ns > most && s->period_ends_ns < now_ns - most)
		s->period_ends_ns = now_ns - most;
	while (s->period_ends_ns <= now_ns) {
		s->period_ends_ns = hal_bk_after(s->period_ends_ns, tgs->period_ns);
		period_over(s);
	}
}

static void ended(void *state, struct hal_policy_partition *part,
		  struct hal_policy_queue *queue, const struct hal_policy_end *end)
{
	struct shared *s = hal_policy_shared(queue->own);

	(void)state, (void)part;
	if (s != NULL && queue->own[CLASS] == PRODUCTIVE && end->status == 0)
		s->ended[0]++;
}

/* ---- the queues -------------------------------------------------------------------- */

static void enqueue(void *state, struct hal_policy_partition *part,
		    struct hal_policy_queue *queue)
{
	const struct tgs *tgs = state;
	struct shared *s = hal_policy_shared(queue->own);
	enum class c = hal_policy_above(queue, tgs->priority) ? PRODUCTIVE : BEST_EFFORT;

	(void)part;
	if (s == NULL)
		return;
	catch_up(tgs, s, queue->runnable_ns);
	queue->own[CLASS] = c;
	hal_policy_list_add(&s->list[c], queue);
}

static void dequeue(void *state, struct hal_policy_partition *part,
		    struct hal_policy_queue *queue, enum hal_policy_why why)
{
	struct shared *s = hal_policy_shared(queue->own);

	(void)state, (void)part, (void)why;
	if (s != NULL)
		hal_policy_list_take(&s->list[queue->own[CLASS]], queue);
}

/* Who came first, but for best effort that is not due yet. */
static struct hal_policy_queue *pick(void *state, struct hal_policy_partition *part,
				     uint64_t now_ns, struct hal_policy_order *order)
{
	const struct tgs *tgs = state;
	struct shared *s = hal_policy_shared(part->own);
	struct hal_policy_queue *best, *effort;

	if (s == NULL)
		return NULL;
	catch_up(tgs, s, now_ns);
	best = s->list[PRODUCTIVE].first;
	effort = s->list[BEST_EFFORT].first;
	if (effort != NULL && s->due_ns <= now_ns &&
	    (best == NULL || effort->runnable_ns < best->runnable_ns)) {
		s->due_ns = hal_bk_after(now_ns, tgs->period_ns * ONE / s->limit);
		best = effort;
	}
	if (best != NULL)
		hal_policy_list_take(&s->list[best->own[CLASS]], best);
	else if (effort != NULL)
		order->until_ns = s->due_ns;
	return best;
}

extern const struct hal_policy hal_policy_tgs;
const struct hal_policy hal_policy_tgs = {
	.size = sizeof(struct hal_policy),
	.abi = HAL_POLICY_ABI,
	.name = "tgs",
	.summary = "best effort as far as productive work keeps its rate",
	.options = options,
	.option_count = sizeof(options) / sizeof(options[0]),
	.flags = HAL_POLICY_ALWAYS,
	.create = create,
	.destroy = free,
	.attach = attach,
	.detach = detach,
	.enqueue = enqueue,
	.dequeue = dequeue,
	.pick = pick,
	.ended = ended,
};

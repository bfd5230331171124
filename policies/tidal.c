/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tidal: latency-critical work takes the units it needs and gives them back at rest.
 *
 * SGDRC (Zhang, Yu, Han et al. 2025): units flow to latency-critical kernels as these
 * come, as many as a profile says that they use, and back as they go; while both are
 * there, best effort that is bound by memory has Ch_BE of the channels, else all.  There
 * kernels have masks, and best effort is evicted; here units are those of elastic
 * partitions, what commands can use is learned, best effort goes on with fewer, and Ch_BE
 * is of the bandwidth, where that can be limited and channels are shared.
 *
 * Good for critical work in bursts: it has nearly all of the device while it runs.  Bad
 * where bursts are shorter than a border takes to move, and where a little comes again
 * and again before its units rest.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include <hal/policy.h>

#include "common.h"

enum class { EFFORT, CRITICAL, CLASSES };
/* .own of queues: the newest command's class, and how many the device has of it. */
enum { CLASS = HAL_POLICY_SHARED + 1, RUNNING };

struct shared {
	struct hal_policy_shared common;
	struct hal_policy_list list[CLASSES];
	uint64_t running[CLASSES]; /* commands that the device has */
	/* Until then a class counts as there, without work, too; 0: it has gone. */
	uint64_t rests_ns[CLASSES];
	uint32_t needs; /* most units that its critical commands could use */
	bool memory;    /* its best effort is bound by that */
};

struct tidal {
	const struct hal_host *host;
	struct hal_policy_shared *all;
	const struct hal_policy_host *device;
	int64_t priority;
	uint64_t idle_ns, percent;
	uint64_t effort;     /* bytes a second of best effort; 0: any */
	bool again, alarmed; /* a plan was in the way; for who goes next */
};

static const struct hal_option_def options[] = {
	{"tidal_priority", HAL_OPTION_INT, INT32_MIN, INT32_MAX, NULL, "1",
	 "tidal: priority from which work is latency-critical; below is best effort"},
	{"tidal_idle_us", HAL_OPTION_INT, 1, 10000000, NULL, "100",
	 "tidal: without work for so long, a partition gives its units back"},
	{"tidal_percent", HAL_OPTION_INT, 0, 1000, NULL, "5",
	 "tidal: half the units are enough when a command takes at most so much longer"},
	{"tidal_ch_be", HAL_OPTION_INT, 1, 1000, NULL, "333",
	 "tidal: thousandths of the memory for best effort that shares it; 1000: any"},
};

static int create(const struct hal_host *host, const struct hal_bk_config *cfg,
		  const struct hal_policy_host *device, void **state)
{
	struct tidal *t = calloc(1, sizeof(*t));

	if (t == NULL)
		return host->fail(ENOMEM, "tidal: no memory");
	*t = (struct tidal){.host = host, .device = device};
	t->priority = host->option_int(cfg, "tidal_priority");
	t->idle_ns = (uint64_t)host->option_int(cfg, "tidal_idle_us") * 1000;
	t->percent = (uint64_t)host->option_int(cfg, "tidal_percent");
	if ((device->info->caps & HAL_CAP_LIMIT) != 0)
		t->effort = device->info->bandwidth / 1000 *
			    ((uint64_t)host->option_int(cfg, "tidal_ch_be") % 1000);
	*state = t;
	return 0;
}

static bool has_work(const struct shared *s, enum class c)
{
	return s->list[c].first != NULL || s->running[c] > 0;
}

/* As many as are worth it for the head; all, while nothing of it is known. */
static uint32_t units_for(const struct tidal *t, const struct hal_policy_partition *part,
			  const struct hal_policy_queue *queue)
{
	const struct hal_policy_host *h = t->device;
	uint32_t units = hal_policy_ceiling(h, part);
	uint64_t best = h->expect(h->device, queue, units);

	return best == HAL_POLICY_NEVER
		       ? units
		       : hal_policy_enough(h, part, queue, units, best, t->percent);
}

/* Critical work first, in equal parts where it needs more than there is. */
static void spread(struct tidal *t)
{
	uint32_t critical = 0, part = hal_policy_spare(t->device, t->all);
	uint64_t channels = 0; /* of critical work */

	for (struct hal_policy_shared *c = t->all; c != NULL; c = c->next)
		if (((struct shared *)c)->rests_ns[CRITICAL] != 0) {
			channels |= hal_policy_channels(c->part);
			critical++;
		}
	part /= critical != 0 ? critical : 1;
	for (struct hal_policy_shared *c = t->all; c != NULL; c = c->next) {
		struct shared *s = (struct shared *)c; /* its first member */
		c->most = s->rests_ns[CRITICAL] != 0 ? s->needs : 0;
		c->least = c->part->floor + part;
		c->least = c->most < c->least ? c->most : c->least;
		c->most = s->rests_ns[EFFORT] != 0 ? c->part->ceiling : c->most;
		c->rationed = s->memory && s->rests_ns[EFFORT] != 0 &&
			      s->rests_ns[CRITICAL] == 0 &&
			      (channels & hal_policy_channels(c->part)) != 0;
	}
	hal_policy_ration(t->device, t->all, critical != 0 ? t->effort : 0);
	t->again = hal_policy_spread(t->device, t->all) == -EBUSY;
}

/* Somebody rests until then. */
static void alarm_at(struct tidal *t, uint64_t at_ns)
{
	if (!t->alarmed)
		t->device->alarm(t->device->device, at_ns);
	t->alarmed = true;
}

/* Who has had no work for a while has gone; the alarm is for the next. */
static void alarm_rings(void *state, uint64_t now_ns)
{
	uint64_t next_ns = HAL_POLICY_NEVER;
	struct tidal *t = state;
	bool gone = false;

	t->alarmed = false;
	for (struct hal_policy_shared *c = t->all; c != NULL; c = c->next) {
		struct shared *s = (struct shared *)c;
		for (enum class k = EFFORT; k < CLASSES; k++) {
			if (s->rests_ns[k] == 0 || has_work(s, k))
				continue;
			if (s->rests_ns[k] <= now_ns) {
				s->rests_ns[k] = 0;
				gone = true;
			} else if (s->rests_ns[k] < next_ns) {
				next_ns = s->rests_ns[k];
			}
		}
	}
	if (next_ns != HAL_POLICY_NEVER)
		alarm_at(t, next_ns);
	if (gone)
		spread(t);
}

static void changed(void *state, struct hal_policy_partition *part,
		    struct hal_policy_queue *queue)
{
	struct tidal *t = state;

	(void)part;
	if (queue == NULL && t->again)
		spread(t);
}

/* ---- there and gone ---------------------------------------------------------------- */

static int attach(void *state, struct hal_policy_partition *part,
		  struct hal_policy_queue *queue)
{
	struct tidal *t = state;

	return hal_policy_share(t->host, &t->all, part, queue, sizeof(struct shared));
}

/* Of its newest command's class, so many on the device. */
static void count_class(struct shared *s, struct hal_policy_queue *queue, enum class c,
			uint64_t running)
{
	s->running[queue->own[CLASS]] -= queue->own[RUNNING];
	s->running[c] += running;
	queue->own[CLASS] = c;
	queue->own[RUNNING] = running;
}

static void detach(void *state, struct hal_policy_partition *part,
		   struct hal_policy_queue *queue)
{
	struct tidal *t = state;
	struct shared *s = hal_policy_shared(queue->own);

	count_class(s, queue, EFFORT, 0);
	if (s->common.queues == 1)
		hal_policy_hold(t->device, &s->common, 0);
	hal_policy_unshare(&t->all, part, queue);
}

static void enqueue(void *state, struct hal_policy_partition *part,
		    struct hal_policy_queue *queue)
{
	struct tidal *t = state;
	struct shared *s = hal_policy_shared(queue->own);
	enum class c = hal_policy_above(queue, t->priority) ? CRITICAL : EFFORT;
	uint64_t running = queue->own[RUNNING];
	uint32_t needs;
	bool comes, memory;

	if (s == NULL)
		return;
	/* Fewer than it thinks: the device had no room. */
	running = queue->running < running ? queue->running : running;
	count_class(s, queue, c, running);
	hal_policy_list_add(&s->list[c], queue);
	comes = s->rests_ns[c] == 0;
	s->rests_ns[c] = hal_bk_after(queue->runnable_ns, t->idle_ns);
	if (c == CRITICAL) {
		needs = units_for(t, part, queue);
		comes |= needs > s->needs;
		s->needs = comes ? needs : s->needs;
	} else if (t->effort != 0 && s->common.held == 0) { /* else it tells nothing */
		memory = hal_policy_bound(&queue->head, (double)t->effort / 1e9) ==
			 HAL_POLICY_BY_MEMORY;
		comes |= memory != s->memory;
		s->memory = memory;
	}
	if (comes)
		spread(t);
}

static void dequeue(void *state, struct hal_policy_partition *part,
		    struct hal_policy_queue *queue, enum hal_policy_why why)
{
	struct shared *s = hal_policy_shared(queue->own);
	uint64_t c = queue->own[CLASS];

	(void)part;
	if (s == NULL)
		return;
	hal_policy_list_take(&s->list[c], queue);
	if (why == HAL_POLICY_OVERRULED)
		count_class(s, queue, (enum class)c, queue->own[RUNNING] + 1);
	else
		alarm_at(state, s->rests_ns[c]);
}

static void ended(void *state, struct hal_policy_partition *part,
		  struct hal_policy_queue *queue, const struct hal_policy_end *end)
{
	struct tidal *t = state;
	struct shared *s = hal_policy_shared(queue->own);
	enum class c = (enum class)queue->own[CLASS];

	(void)part;
	if (s == NULL)
		return;
	if (queue->own[RUNNING] > 0)
		count_class(s, queue, c, queue->own[RUNNING] - 1);
	if (has_work(s, c))
		return;
	s->rests_ns[c] = hal_bk_after(end->now_ns, t->idle_ns);
	alarm_at(t, s->rests_ns[c]);
}

static struct hal_policy_queue *pick(void *state, struct hal_policy_partition *part,
				     uint64_t now_ns, struct hal_policy_order *order)
{
	struct shared *s = hal_policy_shared(part->own);
	struct hal_policy_queue *queue;
	enum class c;

	(void)state, (void)now_ns, (void)order;
	if (s == NULL)
		return NULL;
	c = s->list[CRITICAL].first != NULL ? CRITICAL : EFFORT;
	queue = s->list[c].first;
	if (queue == NULL)
		return NULL;
	hal_policy_list_take(&s->list[c], queue);
	count_class(s, queue, c, queue->own[RUNNING] + 1);
	return queue;
}

extern const struct hal_policy hal_policy_tidal;
const struct hal_policy hal_policy_tidal = {
	.size = sizeof(struct hal_policy),
	.abi = HAL_POLICY_ABI,
	.name = "tidal",
	.summary = "units flow to latency-critical work, and back when it rests",
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
	.changed = changed,
	.alarm = alarm_rings,
};

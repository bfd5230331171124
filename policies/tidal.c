/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tidal: move compute units to latency-critical work while it runs, and back afterwards.
 *
 * Promise: a partition with latency-critical work gets the units that its commands can
 * use, up to its ceiling; several such partitions share equally if they need more than
 * the device has.  Partitions with best-effort work share the rest.  Every partition
 * keeps its floor.  Work is latency-critical by class latency or, in class normal, by a
 * priority of at least tidal_priority.  Within a partition it is served before best
 * effort, and each of the two in order of arrival.
 *
 * If the device can limit bandwidth (HAL_CAP_LIMIT), best effort that is bound by memory
 * gets a part of it while critical work runs on the same channels.
 *
 * Options: tidal_priority, tidal_idle_us (when a partition without work returns its
 * units), tidal_percent (slowdown accepted for half the units), tidal_ch_be (part of the
 * bandwidth for best effort).
 *
 * Follows SGDRC (Zhang, Yu, Han et al.: Software-defined dynamic resource control for
 * concurrent DNN inference on NVIDIA GPUs, PPoPP 2025).  Differences:
 *   - There each kernel has a mask of units.  Here units belong to elastic partitions.
 *   - There a profile says how many units a kernel uses.  Here that is learned.
 *   - There best-effort kernels are evicted.  Here they continue on fewer units.
 *   - There Ch_BE is a number of memory channels.  Here it is a share of the bandwidth.
 *
 * Good for critical work in bursts: it gets nearly the whole device while it runs.  Bad
 * where bursts are shorter than the time to resize a partition, and where small amounts
 * of critical work arrive again before tidal_idle_us has passed.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include <hal/policy.h>

#include "common.h"

enum class { BEST_EFFORT, CRITICAL, CLASSES };
/* Indices into hal_policy_queue.own: the class of the newest command, and the number of
 * the queue's commands that the device has. */
enum { CLASS = HAL_POLICY_SHARED + 1, RUNNING };

struct shared {
	struct hal_policy_shared common;
	struct hal_policy_list list[CLASSES];
	uint64_t running[CLASSES]; /* commands that the device has */
	/* Device time until which the class counts as active even without work; 0: the
	 * class is inactive. */
	uint64_t active_until_ns[CLASSES];
	uint32_t critical_units; /* most units that critical commands can use */
	bool memory_bound;       /* best effort here is bound by memory */
};

struct tidal {
	const struct hal_host *host;
	struct hal_policy_shared *all; /* state of each partition that has queues */
	const struct hal_policy_host *device;
	int64_t priority;
	uint64_t idle_ns, percent;
	uint64_t best_effort_rate; /* bytes per second for best effort; 0: no limit */
	bool plan_again;           /* another plan was under way: repeat plan_units */
	bool alarm_set;
};

static const struct hal_option_def options[] = {
	{"tidal_priority", HAL_OPTION_INT, INT32_MIN, INT32_MAX, NULL, "1",
	 "tidal: lowest priority that is latency-critical; lower ones are best effort"},
	{"tidal_idle_us", HAL_OPTION_INT, 1, 10000000, NULL, "100",
	 "tidal: time without work after which a partition returns its units"},
	{"tidal_percent", HAL_OPTION_INT, 0, 1000, NULL, "5",
	 "tidal: percent by which a command may run longer on half the units"},
	{"tidal_ch_be", HAL_OPTION_INT, 1, 1000, NULL, "333",
	 "tidal: thousandths of the memory bandwidth for best effort; 1000: no limit"},
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
		t->best_effort_rate =
			device->info->bandwidth / 1000 *
			((uint64_t)host->option_int(cfg, "tidal_ch_be") % 1000);
	*state = t;
	return 0;
}

static bool has_work(const struct shared *s, enum class c)
{
	return s->list[c].first != NULL || s->running[c] > 0;
}

/* Return how many units the queue's head can use; part's ceiling if that is not known. */
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

/* Distribute the units by the active classes of each partition, and limit the bandwidth
 * of best effort.  Partitions with critical work come first, in equal parts if they need
 * more units than there are. */
static void plan_units(struct tidal *t)
{
	uint32_t critical = 0, part = hal_policy_spare(t->device, t->all);
	uint64_t channels = 0; /* those of critical work */

	for (struct hal_policy_shared *c = t->all; c != NULL; c = c->next)
		if (((struct shared *)c)->active_until_ns[CRITICAL] != 0) {
			channels |= hal_policy_channels(c->part);
			critical++;
		}
	part /= critical != 0 ? critical : 1;
	for (struct hal_policy_shared *c = t->all; c != NULL; c = c->next) {
		struct shared *s = (struct shared *)c; /* c is the first member */
		c->most = s->active_until_ns[CRITICAL] != 0 ? s->critical_units : 0;
		c->least = c->part->floor + part;
		c->least = c->most < c->least ? c->most : c->least;
		c->most =
			s->active_until_ns[BEST_EFFORT] != 0 ? c->part->ceiling : c->most;
		c->rationed = s->memory_bound && s->active_until_ns[BEST_EFFORT] != 0 &&
			      s->active_until_ns[CRITICAL] == 0 &&
			      (channels & hal_policy_channels(c->part)) != 0;
	}
	hal_policy_ration(t->device, t->all, critical != 0 ? t->best_effort_rate : 0);
	t->plan_again = hal_policy_spread(t->device, t->all) == -EBUSY;
}

/* Request an alarm at at_ns unless one is pending. */
static void set_alarm(struct tidal *t, uint64_t at_ns)
{
	if (!t->alarm_set)
		t->device->alarm(t->device->device, at_ns);
	t->alarm_set = true;
}

/* Mark the classes without work for tidal_idle_us as inactive, and distribute their
 * units. Set the alarm for the next class that may become inactive. */
static void on_alarm(void *state, uint64_t now_ns)
{
	uint64_t next_ns = HAL_POLICY_NEVER;
	struct tidal *t = state;
	bool replan = false;

	t->alarm_set = false;
	for (struct hal_policy_shared *c = t->all; c != NULL; c = c->next) {
		struct shared *s = (struct shared *)c;
		for (enum class k = BEST_EFFORT; k < CLASSES; k++) {
			if (s->active_until_ns[k] == 0 || has_work(s, k))
				continue;
			if (s->active_until_ns[k] <= now_ns) {
				s->active_until_ns[k] = 0;
				replan = true;
			} else if (s->active_until_ns[k] < next_ns) {
				next_ns = s->active_until_ns[k];
			}
		}
	}
	if (next_ns != HAL_POLICY_NEVER)
		set_alarm(t, next_ns);
	if (replan)
		plan_units(t);
}

static void changed(void *state, struct hal_policy_partition *part,
		    struct hal_policy_queue *queue)
{
	struct tidal *t = state;

	(void)part;
	if (queue == NULL && t->plan_again)
		plan_units(t);
}

/* ---- attach and detach ------------------------------------------------------------- */

static int attach(void *state, struct hal_policy_partition *part,
		  struct hal_policy_queue *queue)
{
	struct tidal *t = state;

	return hal_policy_share(t->host, &t->all, part, queue, sizeof(struct shared));
}

/* Record the class of queue's newest command and how many commands the device has. */
static void set_running(struct shared *s, struct hal_policy_queue *queue, enum class c,
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

	set_running(s, queue, BEST_EFFORT, 0);
	if (s->common.queues == 1)
		hal_policy_hold(t->device, &s->common, 0);
	hal_policy_unshare(&t->all, part, queue);
}

static void enqueue(void *state, struct hal_policy_partition *part,
		    struct hal_policy_queue *queue)
{
	struct tidal *t = state;
	struct shared *s = hal_policy_shared(queue->own);
	enum class c = hal_policy_above(queue, t->priority) ? CRITICAL : BEST_EFFORT;
	uint64_t running = queue->own[RUNNING];
	uint32_t critical_units;
	bool replan, memory_bound;

	if (s == NULL)
		return;
	/* The device did not accept a command that pick has counted. */
	running = queue->running < running ? queue->running : running;
	set_running(s, queue, c, running);
	hal_policy_list_add(&s->list[c], queue);
	replan = s->active_until_ns[c] == 0;
	s->active_until_ns[c] = hal_bk_after(queue->runnable_ns, t->idle_ns);
	if (c == CRITICAL) {
		critical_units = units_for(t, part, queue);
		replan |= critical_units > s->critical_units;
		s->critical_units = replan ? critical_units : s->critical_units;
	} else if (t->best_effort_rate != 0 && s->common.held == 0) {
		/* A limit in force would hide that the command is bound by memory. */
		memory_bound = hal_policy_bound(&queue->head,
						(double)t->best_effort_rate / 1e9) ==
			       HAL_POLICY_BY_MEMORY;
		replan |= memory_bound != s->memory_bound;
		s->memory_bound = memory_bound;
	}
	if (replan)
		plan_units(t);
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
		set_running(s, queue, (enum class)c, queue->own[RUNNING] + 1);
	else
		set_alarm(state, s->active_until_ns[c]);
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
		set_running(s, queue, c, queue->own[RUNNING] - 1);
	if (has_work(s, c))
		return;
	s->active_until_ns[c] = hal_bk_after(end->now_ns, t->idle_ns);
	set_alarm(t, s->active_until_ns[c]);
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
	c = s->list[CRITICAL].first != NULL ? CRITICAL : BEST_EFFORT;
	queue = s->list[c].first;
	if (queue == NULL)
		return NULL;
	hal_policy_list_take(&s->list[c], queue);
	set_running(s, queue, c, queue->own[RUNNING] + 1);
	return queue;
}

extern const struct hal_policy hal_policy_tidal;
const struct hal_policy hal_policy_tidal = {
	.size = sizeof(struct hal_policy),
	.abi = HAL_POLICY_ABI,
	.name = "tidal",
	.summary = "moves units to latency-critical work, and back when it pauses",
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
	.alarm = on_alarm,
};

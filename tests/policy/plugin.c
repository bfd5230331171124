/* SPDX-License-Identifier: Apache-2.0 */
/* plugin.c - see plugin.h; FLAGS, ABI, SIZE and NAME make others of it. */
#include "plugin.h"

#include <errno.h>
#include <string.h>

#ifndef FLAGS
#define FLAGS 0
#endif
#ifndef ABI
#define ABI HAL_POLICY_ABI
#endif
#ifndef SIZE
#define SIZE sizeof(struct hal_policy)
#endif
#ifndef NAME
#define NAME "plugin"
#endif

#define EXPORT __attribute__((visibility("default")))

extern struct plugin_control plugin_control;
EXPORT struct plugin_control plugin_control;
EXPORT const struct hal_policy *hal_policy_entry(const struct hal_host *host);

static struct plugin_control *const c = &plugin_control;
static const struct hal_host *services;

enum { HERE };        /* of a queue: it is in the list */
enum { FIRST, LAST }; /* of a partition */

static struct hal_policy_queue *queue_at(uint64_t word)
{
	return (struct hal_policy_queue *)(uintptr_t)word; /* NOLINT(*int-to-ptr) */
}

static uint64_t word_of(const struct hal_policy_queue *q)
{
	return (uint64_t)(uintptr_t)q;
}

static void put(struct hal_policy_partition *part, struct hal_policy_queue *q)
{
	c->overruns += q->own[HERE] != 0;
	q->own[HERE] = 1;
	q->next = NULL;
	q->prev = queue_at(part->own[LAST]);
	if (q->prev != NULL)
		q->prev->next = q;
	else
		part->own[FIRST] = word_of(q);
	part->own[LAST] = word_of(q);
}

static void take(struct hal_policy_partition *part, struct hal_policy_queue *q)
{
	c->overruns += q->own[HERE] == 0;
	q->own[HERE] = 0;
	if (q->prev != NULL)
		q->prev->next = q->next;
	else
		part->own[FIRST] = word_of(q->next);
	if (q->next != NULL)
		q->next->prev = q->prev;
	else
		part->own[LAST] = word_of(q->prev);
}

static int create(const struct hal_host *host, const struct hal_bk_config *cfg,
		  const struct hal_policy_host *device, void **state)
{
	if (host->option_int(cfg, "plugin_refuses") != 0)
		return host->fail(ENOSPC, "plugin: refused as asked");
	c->host = device;
	strncpy(c->label, host->option_str(cfg, "plugin_label"), sizeof(c->label) - 1);
	*state = c;
	if (c->create_alarm_ns != 0)
		device->alarm(device->device, c->create_alarm_ns);
	return 0;
}

static int attach(void *state, struct hal_policy_partition *part,
		  struct hal_policy_queue *queue)
{
	(void)state;
	if (c->attach_err != 0)
		return services->fail(c->attach_err, "plugin: not admitted");
	c->attached++;
	c->last = queue;
	c->part = part;
	if (c->limits)
		c->limited = c->host->limit(c->host->device, part, c->limit_bytes,
					    c->limit_window_ns);
	return 0;
}

static void detach(void *state, struct hal_policy_partition *part,
		   struct hal_policy_queue *queue)
{
	(void)state, (void)part, (void)queue;
	c->detached++;
}

static void enqueue(void *state, struct hal_policy_partition *part,
		    struct hal_policy_queue *queue)
{
	(void)state;
	c->enqueued++;
	if (queue == c->watched)
		c->head = queue->head;
	put(part, queue);
	if (c->mode == PLUGIN_PREEMPT && queue->head.priority > 0 && c->victim != queue)
		c->stopped = c->host->stop(c->host->device, c->victim, c->stop_mode);
}

static void dequeue(void *state, struct hal_policy_partition *part,
		    struct hal_policy_queue *queue, enum hal_policy_why why)
{
	(void)state;
	c->dequeued[why]++;
	take(part, queue);
}

static struct hal_policy_queue *nobody(struct hal_policy_order *order, uint64_t until_ns)
{
	order->until_ns = until_ns;
	return NULL;
}

/* The one that is asked for takes all it can of the other, or gives it back. */
static void tide(struct hal_policy_partition *part)
{
	struct hal_policy_move m[2] = {{.part = part}, {.part = c->behind}};

	if (c->behind == NULL || c->behind == part) {
		c->behind = c->behind == NULL ? part : c->behind;
		return;
	}
	m[0].units = part->units > 8 ? part->floor : part->ceiling;
	m[1].units = m[0].units > 8 ? c->behind->floor : c->behind->ceiling;
	(void)c->host->move(c->host->device, m, 2);
}

static struct hal_policy_queue *pick(void *state, struct hal_policy_partition *part,
				     uint64_t now_ns, struct hal_policy_order *order)
{
	struct hal_policy_queue *q = queue_at(part->own[FIRST]);

	(void)state;
	c->picked++;
	c->now_ns = now_ns;
	if (c->shrinks)
		(void)c->host->resize(c->host->device, part, 0);
	if (c->tides)
		tide(part);
	switch (c->mode) {
	case PLUGIN_STRANGER:
		return c->stranger;
	case PLUGIN_NOBODY:
		return NULL;
	case PLUGIN_PAST:
		return nobody(order, now_ns);
	case PLUGIN_HOLD:
		if (now_ns < c->hold_ns)
			return nobody(order, c->hold_ns);
		break;
	case PLUGIN_STARVE:
		if (q == c->victim && q->next == NULL)
			return nobody(order, now_ns + 1000000000000);
		if (q == c->victim)
			q = q->next;
		break;
	case PLUGIN_BEHIND:
		if (c->asks_in_pick)
			c->host->ask(c->host->device, c->behind);
		if (part == c->behind && (c->enough > 0 || c->skips > 0)) {
			c->skips -= c->skips > 0;
			return nobody(order, HAL_POLICY_NEVER);
		}
		break;
	default:
		break;
	}
	take(part, q);
	order->commands = c->lease;
	return q;
}

static void ended(void *state, struct hal_policy_partition *part,
		  struct hal_policy_queue *queue, const struct hal_policy_end *end)
{
	(void)state;
	c->ended++;
	if (end->status != 0)
		c->status = end->status;
	if (end->status == -EINTR)
		c->folded = *end;
	if (c->mode == PLUGIN_BEHIND && part != c->behind) {
		c->enough -= c->enough > 0;
		if (c->asks)
			c->host->ask(c->host->device, c->behind);
	}
	if (c->mode == PLUGIN_PREEMPT && queue->head.priority > 0)
		c->started = c->host->start(c->host->device, c->victim);
}

static void changed(void *state, struct hal_policy_partition *part,
		    struct hal_policy_queue *queue)
{
	(void)state, (void)part;
	if (queue != NULL)
		c->changed++;
	else
		c->moved++;
}

static void alarm_rings(void *state, uint64_t now_ns)
{
	(void)state;
	c->alarms++;
	c->alarm_at_ns = now_ns;
	if (c->again_ns != 0)
		c->host->alarm(c->host->device, now_ns + c->again_ns - 1);
}

static const struct hal_option_def options[] = {
	{"plugin_refuses", HAL_OPTION_BOOL, 0, 0, NULL, "no", "create fails"},
	{"plugin_label", HAL_OPTION_STRING, 0, 0, NULL, "", "kept in .label"},
};

static const struct hal_policy policy = {
	.size = SIZE,
	.abi = ABI,
	.name = NAME,
	.summary = "does what a test tells it",
	.options = options,
	.option_count = sizeof(options) / sizeof(options[0]),
	.flags = FLAGS,
	.create = create,
	.attach = attach,
	.detach = detach,
	.enqueue = enqueue,
	.dequeue = dequeue,
	.pick = pick,
	.ended = ended,
	.changed = changed,
	.alarm = alarm_rings,
};

const struct hal_policy *hal_policy_entry(const struct hal_host *host)
{
	services = host;
	return &policy;
}

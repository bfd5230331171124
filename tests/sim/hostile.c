/* SPDX-License-Identifier: Apache-2.0 */
/* hostile.c - see hostile.h. */
#include "hostile.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include <hal/policy.h>

#define EXPORT __attribute__((visibility("default")))

extern struct hostile_control hostile_control;
EXPORT struct hostile_control hostile_control;
EXPORT const struct hal_policy *hal_policy_entry(const struct hal_host *host);

static struct hostile_control *const c = &hostile_control;
static const struct hal_policy_host *engine;

enum { HERE };        /* of a queue: it is in the list */
enum { FIRST, LAST }; /* of a partition */

/* Queues and partitions that there are, and those that there were. */
enum { KNOWN = 64 };
static struct hal_policy_queue *queues[KNOWN];
static struct hal_policy_partition *parts[KNOWN];
static bool gone[KNOWN];
static uint32_t attached;

static uint64_t below(uint64_t n)
{
	uint64_t z = (c->random += UINT64_C(0x9e3779b97f4a7c15));

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return (z ^ z >> 31) % n;
}

static struct hal_policy_queue *queue_at(uint64_t word)
{
	return (struct hal_policy_queue *)(uintptr_t)word; /* NOLINT(*int-to-ptr) */
}

static uint64_t word_of(const struct hal_policy_queue *q)
{
	return (uint64_t)(uintptr_t)q;
}

/* ---- what it keeps ------------------------------------------------------------------ */

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

/* ---- what it asks for --------------------------------------------------------------- */

/* One that is there; NULL: none was found. */
static uint32_t somebody(void)
{
	uint32_t n = attached < KNOWN ? attached : KNOWN;

	for (uint32_t i = 0; i < 8 && n != 0; i++) {
		uint32_t k = (uint32_t)below(n);

		if (!gone[k])
			return k;
	}
	return KNOWN;
}

static void stop_somebody(void)
{
	uint32_t k = somebody();

	if (k == KNOWN)
		return;
	if (below(8) == 0)
		(void)engine->start(engine->device, queues[k]);
	else if (engine->stop(engine->device, queues[k], (uint32_t)below(6)) == 0)
		c->stops++;
}

/* Always one that is wrong. */
static void move_wrongly(struct hal_policy_partition *part)
{
	struct hal_policy_move m[HAL_POLICY_MOVES + 1];
	int err;

	for (uint32_t i = 0; i <= HAL_POLICY_MOVES; i++)
		m[i] = (struct hal_policy_move){.part = part, .units = part->units};
	switch (below(4)) {
	case 0:
		err = engine->resize(engine->device, part, part->floor - 1);
		break;
	case 1:
		err = engine->resize(engine->device, part, part->ceiling + 1);
		break;
	case 2:
		m[0].units = part->floor;
		m[1].units = part->floor;
		err = engine->move(engine->device, m, 2);
		break;
	default:
		err = engine->move(engine->device, m, HAL_POLICY_MOVES + 1);
	}
	c->requests += err == -EINVAL;
}

/* To somewhere else, which may be possible. */
static void move_about(struct hal_policy_partition *part)
{
	(void)engine->resize(engine->device, part,
			     part->floor +
				     (uint32_t)below(part->ceiling - part->floor + 1));
}

/* Mostly one that is wrong, where the device can limit at all. */
static void limit_wrongly(struct hal_policy_partition *part)
{
	const struct hal_device_info *i = engine->info;
	const uint64_t windows[] = {0, 100, i->limit_window_ns + 1};
	uint64_t bytes = below(10000), window_ns = windows[below(3)];
	bool wrong = (i->caps & HAL_CAP_LIMIT) != 0 && bytes != 0 &&
		     (bytes < i->limit_bytes || window_ns == 0 ||
		      window_ns > i->limit_window_ns);

	c->requests += wrong;
	(void)engine->limit(engine->device, part, bytes, window_ns);
}

static void ask_about(struct hal_policy_partition *part, uint64_t now_ns)
{
	uint32_t k = somebody();

	engine->alarm(engine->device, below(32) == 0 ? 0 : now_ns + below(3000));
	engine->ask(engine->device, part);
	if (k < KNOWN) {
		engine->ask(engine->device, parts[k]);
		(void)engine->start(engine->device, queues[k]);
		(void)engine->expect(engine->device, queues[k], (uint32_t)below(100));
		limit_wrongly(parts[k]);
	}
}

static void misbehave(struct hal_policy_partition *part, uint64_t now_ns)
{
	if ((c->how & HOSTILE_STOPS) != 0 && below(2) == 0)
		stop_somebody();
	if ((c->how & HOSTILE_MOVES) != 0 && below(4) == 0)
		move_about(part);
	if ((c->how & HOSTILE_MOVES) != 0 && below(8) == 0)
		move_wrongly(part);
	if ((c->how & HOSTILE_ALARMS) != 0 && below(2) == 0)
		ask_about(part, now_ns);
}

/* ---- what it answers ---------------------------------------------------------------- */

static struct hal_policy_queue *stranger(struct hal_policy_partition *part)
{
	uint32_t n = attached < KNOWN ? attached : KNOWN, k = (uint32_t)below(n);

	/* It may be right by chance. */
	if (!gone[k] && parts[k] == part && queues[k]->own[HERE] != 0)
		take(part, queues[k]);
	else
		c->strangers++;
	return queues[k];
}

static struct hal_policy_queue *nobody(struct hal_policy_order *order, uint64_t until_ns)
{
	order->until_ns = until_ns;
	return NULL;
}

static struct hal_policy_queue *pick(void *state, struct hal_policy_partition *part,
				     uint64_t now_ns, struct hal_policy_order *order)
{
	struct hal_policy_queue *q;

	(void)state;
	c->picks++;
	misbehave(part, now_ns);
	q = queue_at(part->own[FIRST]);
	if ((c->how & HOSTILE_STRANGER) != 0 && below(3) == 0)
		return stranger(part);
	if ((c->how & HOSTILE_NOBODY) != 0 && below(3) != 0)
		return nobody(order, HAL_POLICY_NEVER);
	if ((c->how & HOSTILE_PAST) != 0 && below(3) == 0) {
		c->past++;
		return nobody(order, now_ns - below(now_ns + 1));
	}
	if ((c->how & HOSTILE_LATE) != 0 && below(3) != 0)
		return nobody(order, now_ns + UINT64_C(10000000000));
	take(part, q);
	if ((c->how & HOSTILE_LEASE) != 0)
		order->commands = UINT32_MAX;
	return q;
}

/* ---- what it is told ---------------------------------------------------------------- */

static int create(const struct hal_host *host, const struct hal_bk_config *cfg,
		  const struct hal_policy_host *device, void **state)
{
	(void)host, (void)cfg;
	engine = device;
	memset(gone, 0, sizeof(gone));
	attached = 0;
	*state = c;
	return 0;
}

static int attach(void *state, struct hal_policy_partition *part,
		  struct hal_policy_queue *queue)
{
	uint32_t k = 0;

	(void)state;
	/* Memory of queues is used again. */
	while (k < attached && k < KNOWN && queues[k] != queue)
		k++;
	if (k == attached || k == KNOWN)
		k = attached++ % KNOWN;
	queues[k] = queue;
	parts[k] = part;
	gone[k] = false;
	return 0;
}

static void detach(void *state, struct hal_policy_partition *part,
		   struct hal_policy_queue *queue)
{
	(void)state, (void)part;
	for (uint32_t i = 0; i < KNOWN; i++)
		if (queues[i] == queue)
			gone[i] = true;
}

static void enqueue(void *state, struct hal_policy_partition *part,
		    struct hal_policy_queue *queue)
{
	(void)state;
	put(part, queue);
	misbehave(part, queue->runnable_ns);
}

static void dequeue(void *state, struct hal_policy_partition *part,
		    struct hal_policy_queue *queue, enum hal_policy_why why)
{
	(void)state;
	take(part, queue);
	/* What it does then is counted as its successor's. */
	if (why != HAL_POLICY_REPLACED)
		misbehave(part, queue->runnable_ns);
}

static void ended(void *state, struct hal_policy_partition *part,
		  struct hal_policy_queue *queue, const struct hal_policy_end *end)
{
	(void)state, (void)queue;
	misbehave(part, end->now_ns);
}

static void changed(void *state, struct hal_policy_partition *part,
		    struct hal_policy_queue *queue)
{
	(void)state, (void)queue;
	misbehave(part, 0);
}

static void alarm_rings(void *state, uint64_t now_ns)
{
	uint32_t k = somebody();

	(void)state;
	if (k < KNOWN)
		misbehave(parts[k], now_ns);
}

static const struct hal_policy policy = {
	.size = sizeof(struct hal_policy),
	.abi = HAL_POLICY_ABI,
	.name = "hostile",
	.summary = "answers nonsense, late or never; for tests",
	.flags = HAL_POLICY_ALWAYS,
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
	(void)host;
	return &policy;
}

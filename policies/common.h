/* SPDX-License-Identifier: Apache-2.0 */
/*
 * common.h - what several policies need: lists and heaps of queues, state that the queues
 * of a partition share, plans of units, limits of bandwidth, programs beside each other.
 *
 * Installed as hal/policy_common.h.  All of it is compiled into the policy that uses it,
 * and nothing of it is part of what the engine and a policy agree on (hal/policy.h).
 */
#ifndef HAL_POLICY_COMMON_H
#define HAL_POLICY_COMMON_H

#include <errno.h>
#include <stdlib.h>

#include <hal/policy.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- queues: what they stand for, and order ---------------------------------------- */

/* What a command is short of when others work beside it, as far as is known. */
enum hal_policy_bound {
	HAL_POLICY_BY_COMPUTE,
	HAL_POLICY_BY_MEMORY,
	HAL_POLICY_BY_UNKNOWN,
	HAL_POLICY_BOUNDS,
};

/* Memory: it is of that kind, or moves so many bytes a ns, which others then do not have
 * (0: how many those are is not known). */
static inline uint64_t hal_policy_bound(const struct hal_policy_command *c, double memory)
{
	if (c->kind == HAL_POLICY_MEMORY)
		return HAL_POLICY_BY_MEMORY;
	if (memory == 0)
		return c->kind != HAL_POLICY_UNKNOWN ? HAL_POLICY_BY_COMPUTE
						     : HAL_POLICY_BY_UNKNOWN;
	if (c->expected_ns == HAL_POLICY_NEVER)
		return HAL_POLICY_BY_UNKNOWN;
	return (double)c->expected_bytes >= memory * (double)c->expected_ns
		       ? HAL_POLICY_BY_MEMORY
		       : HAL_POLICY_BY_COMPUTE;
}

/* Whether the queue's next command stands above others: by its class; without one, with
 * at least that priority. */
static inline int hal_policy_above(const struct hal_policy_queue *queue, int64_t priority)
{
	if (queue->service_class != HAL_CLASS_NORMAL)
		return queue->service_class == HAL_CLASS_LATENCY;
	return queue->head.priority >= priority;
}

/* Classes in the order in which they are served, for a policy that keeps queues itself:
 * the queue's is that one, of so many. */
enum { HAL_POLICY_RANKS = 3 };

static inline uint32_t hal_policy_rank(const struct hal_policy_queue *queue)
{
	if (queue->service_class == HAL_CLASS_NORMAL)
		return 1;
	return queue->service_class == HAL_CLASS_LATENCY ? 0 : 2;
}

/* Queues as they came, for a policy that keeps them itself; by .next and .prev. */
struct hal_policy_list {
	struct hal_policy_queue *first, *last;
};

static inline void hal_policy_list_add(struct hal_policy_list *list,
				       struct hal_policy_queue *queue)
{
	queue->next = NULL;
	queue->prev = list->last;
	if (list->last != NULL)
		list->last->next = queue;
	else
		list->first = queue;
	list->last = queue;
}

static inline void hal_policy_list_take(struct hal_policy_list *list,
					struct hal_policy_queue *queue)
{
	if (queue->prev != NULL)
		queue->prev->next = queue->next;
	else
		list->first = queue->next;
	if (queue->next != NULL)
		queue->next->prev = queue->prev;
	else
		list->last = queue->prev;
}

/* Queues by own[HAL_POLICY_KEY], a signed number, the lowest first, of equal ones who is
 * runnable longest: a pairing heap (Fredman, Sedgewick, Sleator, Tarjan 1986), by .next
 * and .prev (of a first child: its parent) and own[HAL_POLICY_BELOW], its first child.
 * Adding takes constant time, taking out a logarithm.  NULL is an empty one. */
enum { HAL_POLICY_KEY = 2, HAL_POLICY_BELOW = 3 };

static inline struct hal_policy_queue *
hal_policy_heap_below(const struct hal_policy_queue *q)
{
	/* NOLINTNEXTLINE(*int-to-ptr) */
	return (struct hal_policy_queue *)(uintptr_t)q->own[HAL_POLICY_BELOW];
}

static inline int hal_policy_heap_before(const struct hal_policy_queue *a,
					 const struct hal_policy_queue *b)
{
	int64_t a_key = (int64_t)a->own[HAL_POLICY_KEY];
	int64_t b_key = (int64_t)b->own[HAL_POLICY_KEY];

	if (a_key != b_key)
		return a_key < b_key;
	return a->runnable_ns != b->runnable_ns ? a->runnable_ns < b->runnable_ns
						: a->id < b->id;
}

/* Of two heaps one. */
static inline struct hal_policy_queue *hal_policy_heap_meld(struct hal_policy_queue *a,
							    struct hal_policy_queue *b)
{
	struct hal_policy_queue *t = a;

	if (a == NULL || b == NULL)
		return a != NULL ? a : b;
	if (hal_policy_heap_before(b, a)) {
		a = b;
		b = t;
	}
	b->prev = a;
	b->next = hal_policy_heap_below(a);
	if (b->next != NULL)
		b->next->prev = b;
	a->own[HAL_POLICY_BELOW] = (uintptr_t)b;
	a->next = NULL;
	return a;
}

/* Of brothers: two by two, then those, the last first. */
static inline struct hal_policy_queue *
hal_policy_heap_meld_all(struct hal_policy_queue *first)
{
	struct hal_policy_queue *pairs = NULL, *heap = NULL;

	while (first != NULL) {
		struct hal_policy_queue *a = first, *b = first->next;

		first = b != NULL ? b->next : NULL;
		a->next = NULL;
		if (b != NULL)
			b->next = NULL;
		a = hal_policy_heap_meld(a, b);
		a->next = pairs;
		pairs = a;
	}
	while (pairs != NULL) {
		struct hal_policy_queue *a = pairs;

		pairs = a->next;
		a->next = NULL;
		heap = hal_policy_heap_meld(heap, a);
	}
	return heap;
}

static inline void hal_policy_heap_add(struct hal_policy_queue **heap,
				       struct hal_policy_queue *queue)
{
	queue->next = NULL;
	queue->own[HAL_POLICY_BELOW] = 0;
	*heap = hal_policy_heap_meld(*heap, queue);
}

/* queue is in it. */
static inline void hal_policy_heap_take(struct hal_policy_queue **heap,
					struct hal_policy_queue *queue)
{
	struct hal_policy_queue *rest =
		hal_policy_heap_meld_all(hal_policy_heap_below(queue));

	if (*heap == queue) {
		*heap = rest;
		return;
	}
	if (hal_policy_heap_below(queue->prev) == queue)
		queue->prev->own[HAL_POLICY_BELOW] = (uintptr_t)queue->next;
	else
		queue->prev->next = queue->next;
	if (queue->next != NULL)
		queue->next->prev = queue->prev;
	*heap = hal_policy_heap_meld(*heap, rest);
}

/* What the queues of a partition have in common, for a policy that keeps more than words
 * of it: at the beginning of a struct of the policy's own.  It comes with the first queue
 * and goes with the last; own[HAL_POLICY_SHARED] of the partition, and of the queues that
 * were admitted, is where it lies. */
struct hal_policy_shared {
	struct hal_policy_shared *next; /* of other partitions */
	struct hal_policy_partition *part;
	uint64_t queues;
	/* Of hal_policy_spread: units it needs, and can use; and what it was given. */
	uint32_t least, most, units;
	uint32_t rationed; /* of hal_policy_ration: 1 if it is */
	uint64_t held; /* of hal_policy_hold: bytes a second; 0: as many as it wants */
};

enum { HAL_POLICY_SHARED };

/* NULL: the queue was not admitted, the partition has none. */
static inline void *hal_policy_shared(const uint64_t *own)
{
	return (void *)(uintptr_t)own[HAL_POLICY_SHARED]; /* NOLINT(*int-to-ptr) */
}

/* For attach: it is of so many bytes, 0 at first, and one of all. */
static inline int hal_policy_share(const struct hal_host *host,
				   struct hal_policy_shared **all,
				   struct hal_policy_partition *part,
				   struct hal_policy_queue *queue, size_t bytes)
{
	struct hal_policy_shared *s =
		(struct hal_policy_shared *)hal_policy_shared(part->own);

	if (s == NULL) {
		s = (struct hal_policy_shared *)calloc(1, bytes);
		if (s == NULL)
			return (host->fail)(ENOMEM, "policy: no memory for partition %u",
					    part->index);
		s->part = part;
		s->next = *all;
		*all = s;
		part->own[HAL_POLICY_SHARED] = (uintptr_t)s;
	}
	s->queues++;
	queue->own[HAL_POLICY_SHARED] = (uintptr_t)s;
	return 0;
}

/* For detach. */
static inline void hal_policy_unshare(struct hal_policy_shared **all,
				      struct hal_policy_partition *part,
				      const struct hal_policy_queue *queue)
{
	struct hal_policy_shared *s =
		(struct hal_policy_shared *)hal_policy_shared(queue->own);

	if (--s->queues != 0)
		return;
	while (*all != s)
		all = &(*all)->next;
	*all = s->next;
	free(s);
	part->own[HAL_POLICY_SHARED] = 0;
}

/* ---- units, bandwidth, programs ----------------------------------------------------- */

/* Units of a column of the grid; 1 where units lie in a line. */
static inline uint32_t hal_policy_column(const struct hal_policy_host *device)
{
	return device->info->unit_rows != 0 ? device->info->unit_rows : 1;
}

/* The most units that part can have: on a grid whole columns. */
static inline uint32_t hal_policy_ceiling(const struct hal_policy_host *device,
					  const struct hal_policy_partition *part)
{
	uint32_t column = hal_policy_column(device);
	uint32_t whole = part->ceiling / column * column;

	return whole > part->floor ? whole : part->floor;
}

/* So many units more for s, of *room, as far as there are: no more than up to limit.  On
 * a grid it comes to whole columns, since a count needs a rectangle of exactly that area.
 */
static inline void hal_policy_add(struct hal_policy_shared *s, uint32_t more,
				  uint32_t limit, uint32_t column, uint32_t *room)
{
	uint32_t units = s->units + (more < *room ? more : *room);

	limit = limit < s->part->ceiling ? limit : s->part->ceiling;
	units = (units < limit ? units : limit) / column * column;
	if (units > s->units) {
		*room -= units - s->units;
		s->units = units;
	}
}

/* The units of the device beyond the floors of those of a list. */
static inline uint32_t hal_policy_spare(const struct hal_policy_host *device,
					const struct hal_policy_shared *all)
{
	uint32_t units = device->info->unit_rows * device->info->unit_cols;

	for (; all != NULL; all = all->next)
		units -= all->part->floor < units ? all->part->floor : units;
	return units;
}

/* Units for the partitions of a list, of room in all: each has its floor; then what it
 * needs, the first of the list first; then what it can use, in equal parts. */
static inline int hal_policy_spread_in(const struct hal_policy_host *device,
				       struct hal_policy_shared *all, uint32_t room)
{
	uint32_t column = hal_policy_column(device);
	uint32_t count = 0, left, before;
	struct hal_policy_move m[HAL_POLICY_MOVES];
	struct hal_policy_shared *s;

	for (s = all; s != NULL; s = s->next) {
		s->units = s->part->floor;
		room -= s->units < room ? s->units : room;
	}
	for (s = all; s != NULL; s = s->next, count++)
		if (s->least > s->units)
			hal_policy_add(s, s->least - s->units + column - 1,
				       s->part->ceiling, column, &room);
	do {
		before = room;
		left = room / column / (count != 0 ? count : 1);
		for (s = all; s != NULL; s = s->next)
			hal_policy_add(s, (left != 0 ? left : 1) * column, s->most,
				       column, &room);
	} while (room != before);
	count = 0;
	for (s = all; s != NULL && count < HAL_POLICY_MOVES; s = s->next) {
		m[count].part = s->part;
		m[count].reserved = 0;
		m[count++].units = s->units;
	}
	return device->move(device->device, m, count);
}

/* The same as hal_policy_spread_in of all units of the device; where that does not fit,
 * beside others or as rectangles, of fewer, down to those that they have.  -EBUSY: a plan
 * is under way, or all have their floors first since they would wait for each other; to
 * be called again when those have moved (.changed). */
static inline int hal_policy_spread(const struct hal_policy_host *device,
				    struct hal_policy_shared *all)
{
	uint32_t room = device->info->unit_rows * device->info->unit_cols, held = 0;
	uint32_t column = hal_policy_column(device);
	int err;

	for (const struct hal_policy_shared *s = all; s != NULL; s = s->next)
		held += s->part->units;
	err = hal_policy_spread_in(device, all, room);
	while (err == -ENOSPC && room > held) {
		room = column > 1 && room - held > column ? room - column : held;
		err = hal_policy_spread_in(device, all, room);
	}
	return err;
}

/* The partition may move so many bytes a second, or the least that the device can be
 * told; 0: any.  Who holds one lets it go before its last queue does. */
static inline void hal_policy_hold(const struct hal_policy_host *device,
				   struct hal_policy_shared *s, uint64_t bandwidth)
{
	const struct hal_device_info *i = device->info;
	uint64_t window_ns = 0, bytes = 0;

	if (bandwidth == s->held)
		return;
	if (bandwidth != 0)
		bytes = device->window(device->device, bandwidth, &window_ns);
	if (bandwidth != 0 && bytes == 0)
		bytes = i->limit_bytes;
	if (device->limit(device->device, s->part, bytes, window_ns) == 0)
		s->held = bandwidth;
}

/* The channels that its buffers may lie on: any, where the device tells of none. */
static inline uint64_t hal_policy_channels(const struct hal_policy_partition *part)
{
	return part->color_mask != 0 ? part->color_mask : UINT64_MAX;
}

/* Those that are to be rationed have so many bytes a second in equal parts, the others as
 * many as they want; bandwidth 0: they, too. */
static inline void hal_policy_ration(const struct hal_policy_host *device,
				     struct hal_policy_shared *all, uint64_t bandwidth)
{
	struct hal_policy_shared *s;
	uint64_t count = 0;

	for (s = all; s != NULL; s = s->next)
		count += s->rationed;
	for (s = all; s != NULL; s = s->next)
		hal_policy_hold(device, s, s->rationed ? bandwidth / count : 0);
}

/* Of units, their half, its half, ... (whole columns of a grid): the fewest on which the
 * head of queue runs at most so many percent longer than best_ns, or the first that has
 * not been tried. */
static inline uint32_t hal_policy_enough(const struct hal_policy_host *device,
					 const struct hal_policy_partition *part,
					 const struct hal_policy_queue *queue,
					 uint32_t units, uint64_t best_ns,
					 uint64_t percent)
{
	uint32_t column = hal_policy_column(device);
	uint32_t half;

	for (; (half = units / 2 / column * column) >= part->floor && half > 0;
	     units = half) {
		uint64_t ns = device->expect(device->device, queue, half);

		if (ns == HAL_POLICY_NEVER)
			return half;
		if (ns > best_ns + best_ns / 100 * percent)
			break;
	}
	return units;
}

/* Commands by their programs, of which so many are told apart, for a policy that goes by
 * what a profile says of two beside each other. */
enum { HAL_POLICY_CROWD = 8 };

struct hal_policy_crowd {
	uint64_t program[HAL_POLICY_CROWD];
	uint64_t count[HAL_POLICY_CROWD]; /* 0: the place is free */
	uint64_t named;                   /* all of these */
	uint64_t others; /* of which it is not known, or which have no place */
};

/* So many more of a program (head.program).  As what they are to be taken out again: that
 * program, or 0 if they are among the others. */
static inline uint64_t hal_policy_crowd_add(struct hal_policy_crowd *crowd,
					    uint64_t program, uint64_t count)
{
	uint32_t i, at = HAL_POLICY_CROWD;

	for (i = HAL_POLICY_CROWD; i-- > 0;)
		if (crowd->count[i] == 0)
			at = i;
	for (i = 0; i < HAL_POLICY_CROWD; i++)
		if (crowd->count[i] != 0 && crowd->program[i] == program)
			at = i;
	if (program == 0 || at == HAL_POLICY_CROWD) {
		crowd->others += count;
		return 0;
	}
	crowd->program[at] = program;
	crowd->count[at] += count;
	crowd->named += count;
	return program;
}

static inline void hal_policy_crowd_take(struct hal_policy_crowd *crowd, uint64_t program,
					 uint64_t count)
{
	uint32_t i;

	if (program == 0)
		crowd->others -= count;
	for (i = 0; i < HAL_POLICY_CROWD; i++)
		if (program != 0 && crowd->count[i] != 0 &&
		    crowd->program[i] == program) {
			crowd->count[i] -= count;
			crowd->named -= count;
		}
}

/* How much longer, in thousandths, the one takes that a program beside it costs most; 0:
 * there is nobody.  HAL_POLICY_NEVER: of one of them that is not known. */
static inline uint64_t hal_policy_crowd_cost(const struct hal_policy_host *device,
					     const struct hal_policy_crowd *crowd,
					     uint32_t program)
{
	uint64_t cost, most = crowd->others != 0 ? HAL_POLICY_NEVER : 0;
	uint32_t i;

	for (i = 0; i < HAL_POLICY_CROWD && most != HAL_POLICY_NEVER; i++) {
		if (crowd->count[i] == 0)
			continue;
		cost = device->beside(device->device, (uint32_t)crowd->program[i],
				      program, NULL);
		most = cost > most ? cost : most;
	}
	return most;
}

#ifdef __cplusplus
}
#endif
#endif

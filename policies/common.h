/* SPDX-License-Identifier: Apache-2.0 */
/*
 * common.h - helpers for policies: lists and heaps of queues, state shared by the queues
 * of a partition, distribution of compute units, bandwidth limits, and the slowdown that
 * concurrent programs cause each other.
 *
 * Installed as hal/policy_common.h.  Every function is static inline and compiled into
 * the policy.  The interface between engine and policy is hal/policy.h alone, so a policy
 * may use these helpers, copy them or ignore them.
 *
 * Call the functions only from inside a call of the policy.  None of them blocks.  Only
 * hal_policy_share allocates memory, and only hal_policy_unshare frees it.
 */
#ifndef HAL_POLICY_COMMON_H
#define HAL_POLICY_COMMON_H

#include <errno.h>
#include <stdlib.h>

#include <hal/policy.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- queues: classification and order ----------------------------------------------- */

/* The resource that limits a command's speed. */
enum hal_policy_bound {
	HAL_POLICY_BY_COMPUTE,
	HAL_POLICY_BY_MEMORY,
	HAL_POLICY_BY_UNKNOWN,
	HAL_POLICY_BOUNDS, /* the number of values above */
};

/*
 * Return which resource limits a command (enum hal_policy_bound).
 *
 * command: a queue's head.  The policy needs HAL_POLICY_EXPECTS, else the result is
 *          HAL_POLICY_BY_UNKNOWN for most commands.
 * memory_rate: bytes per ns at and above which a command is bound by memory; 0 if the
 *              device's bandwidth is not known.  With 0 only command->kind decides.
 *
 * A command of kind HAL_POLICY_MEMORY is always bound by memory.
 */
static inline uint64_t hal_policy_bound(const struct hal_policy_command *command,
					double memory_rate)
{
	if (command->kind == HAL_POLICY_MEMORY)
		return HAL_POLICY_BY_MEMORY;
	if (memory_rate == 0)
		return command->kind != HAL_POLICY_UNKNOWN ? HAL_POLICY_BY_COMPUTE
							   : HAL_POLICY_BY_UNKNOWN;
	if (command->expected_ns == HAL_POLICY_NEVER)
		return HAL_POLICY_BY_UNKNOWN;
	return (double)command->expected_bytes >=
			       memory_rate * (double)command->expected_ns
		       ? HAL_POLICY_BY_MEMORY
		       : HAL_POLICY_BY_COMPUTE;
}

/*
 * Return whether the queue's next command is high-priority work.
 *
 * priority: the lowest priority that counts as high, for queues of HAL_CLASS_NORMAL.
 *
 * HAL_CLASS_LATENCY is always high and HAL_CLASS_BEST_EFFORT never, whatever the
 * priority.
 */
static inline int hal_policy_above(const struct hal_policy_queue *queue, int64_t priority)
{
	if (queue->service_class != HAL_CLASS_NORMAL)
		return queue->service_class == HAL_CLASS_LATENCY;
	return queue->head.priority >= priority;
}

/* The number of ranks that hal_policy_rank returns. */
enum { HAL_POLICY_RANKS = 3 };

/*
 * Return the rank of the queue's service class, for a policy that keeps queues itself.
 * Serve rank 0 (HAL_CLASS_LATENCY) before rank 1 (HAL_CLASS_NORMAL), and rank 2
 * (HAL_CLASS_BEST_EFFORT) last.
 */
static inline uint32_t hal_policy_rank(const struct hal_policy_queue *queue)
{
	if (queue->service_class == HAL_CLASS_NORMAL)
		return 1;
	return queue->service_class == HAL_CLASS_LATENCY ? 0 : 2;
}

/*
 * A doubly linked list of queues in order of arrival, for a policy that keeps queues
 * itself.  It uses .next and .prev of its queues.  Zero-initialize it.
 */
struct hal_policy_list {
	struct hal_policy_queue *first, *last; /* NULL: the list is empty */
};

/* Append queue, which must be in no list or heap. */
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

/* Remove queue, which may be anywhere in this list. */
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

/*
 * A heap of queues: the queue with the lowest key comes first.  Between equal keys the
 * queue that has been runnable longest comes first, then the one with the lower id.
 *
 * A heap is a pointer to its first queue; NULL is an empty heap.  Store the key, a signed
 * number, in own[HAL_POLICY_KEY] before adding a queue, and do not change it while the
 * queue is in the heap.
 *
 * It is a pairing heap (Fredman, Sedgewick, Sleator, Tarjan 1986).  Adding takes constant
 * time; removing takes amortized logarithmic time.  own[HAL_POLICY_BELOW] points to a
 * queue's first child, .next to the next sibling, .prev to the previous sibling or, for a
 * first child, to the parent.
 */
enum { HAL_POLICY_KEY = 2, HAL_POLICY_BELOW = 3 };

/* Return the first child of q in the heap, or NULL. */
static inline struct hal_policy_queue *
hal_policy_heap_below(const struct hal_policy_queue *q)
{
	/* NOLINTNEXTLINE(*int-to-ptr) */
	return (struct hal_policy_queue *)(uintptr_t)q->own[HAL_POLICY_BELOW];
}

/* Return whether a comes before b. */
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

/* Merge heaps a and b, of which either may be NULL, and return the merged heap. */
static inline struct hal_policy_queue *hal_policy_heap_meld(struct hal_policy_queue *a,
							    struct hal_policy_queue *b)
{
	struct hal_policy_queue *old_a = a;

	if (a == NULL || b == NULL)
		return a != NULL ? a : b;
	if (hal_policy_heap_before(b, a)) {
		a = b;
		b = old_a;
	}
	b->prev = a;
	b->next = hal_policy_heap_below(a);
	if (b->next != NULL)
		b->next->prev = b;
	a->own[HAL_POLICY_BELOW] = (uintptr_t)b;
	a->next = NULL;
	return a;
}

/*
 * Merge the heaps whose roots are the siblings first, first->next ... and return the
 * merged heap: merge neighbours in pairs, then the pairs from the last to the first.
 */
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

/* Add queue, which must be in no list or heap, with the key in own[HAL_POLICY_KEY]. */
static inline void hal_policy_heap_add(struct hal_policy_queue **heap,
				       struct hal_policy_queue *queue)
{
	queue->next = NULL;
	queue->own[HAL_POLICY_BELOW] = 0;
	*heap = hal_policy_heap_meld(*heap, queue);
}

/* Remove queue, which may be anywhere in this heap. */
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

/* ---- state shared by the queues of a partition --------------------------------------- */

/*
 * State of one partition that has queues.  Make it the first member of a struct of the
 * policy if the policy needs further fields.
 *
 * hal_policy_share allocates it for the partition's first queue, and hal_policy_unshare
 * frees it with the last one.  own[HAL_POLICY_SHARED] of the partition and of its
 * admitted queues holds its address.  A policy keeps the states of all partitions in one
 * list, linked by .next, whose first element is a field of the policy's own state.
 */
struct hal_policy_shared {
	struct hal_policy_shared *next; /* state of another partition, or NULL */
	struct hal_policy_partition *part;
	uint64_t queues; /* admitted queues of the partition */
	/* For hal_policy_spread.  The policy sets how many units the partition needs and
	 * how many it can use; the call computes .units. */
	uint32_t least, most, units;
	uint32_t rationed; /* set by the policy for hal_policy_ration: 0 or 1 */
	uint64_t held;     /* limit in force, bytes per second; 0: no limit */
	struct hal_policy_shared *taker; /* used by hal_policy_spread */
};

/* Index into own[]: address of the shared state. */
enum { HAL_POLICY_SHARED };

/*
 * Return the shared state from own[] of a partition or queue.  Return NULL if the queue
 * was not admitted, or if the partition has no admitted queue.
 */
static inline void *hal_policy_shared(const uint64_t *own)
{
	return (void *)(uintptr_t)own[HAL_POLICY_SHARED]; /* NOLINT(*int-to-ptr) */
}

/*
 * Give queue the shared state of its partition; call it from attach.
 *
 * all: the policy's list of shared states; a new one becomes its first element.
 * bytes: size of the shared state, at least sizeof(struct hal_policy_shared).  A new one
 *        is filled with zeros.
 *
 * Return 0, or -ENOMEM after host->fail; then attach must return that error.
 */
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
			return (host->fail)(
				ENOMEM, "policy: no memory for the state of partition %u",
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

/*
 * Release queue's reference to its partition's shared state; call it from detach.  The
 * partition's last queue removes the state from the list all and frees it.
 */
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

/* ---- compute units ------------------------------------------------------------------- */

/* Return how many units a column of the device's grid has; 1 if the units form a line. */
static inline uint32_t hal_policy_column(const struct hal_policy_host *device)
{
	return device->info->unit_rows != 0 ? device->info->unit_rows : 1;
}

/*
 * Return the largest number of units to request for part: its ceiling, rounded down to
 * whole columns of the grid, but not less than its floor.
 */
static inline uint32_t hal_policy_ceiling(const struct hal_policy_host *device,
					  const struct hal_policy_partition *part)
{
	uint32_t column = hal_policy_column(device);
	uint32_t whole = part->ceiling / column * column;

	return whole > part->floor ? whole : part->floor;
}

/*
 * Increase s->units by up to `more` units taken from *room; for hal_policy_spread_in.
 *
 * limit: do not go beyond this number of units, nor beyond the partition's ceiling.
 * column: units of a grid column.  The result is rounded down to whole columns, because
 *         the units of a partition form a rectangle.
 * room: units that are still free; reduced by the units taken.
 *
 * Never decrease s->units.
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

/*
 * Return how many units the device has beyond the floors of the partitions in the list
 * all.
 */
static inline uint32_t hal_policy_spare(const struct hal_policy_host *device,
					const struct hal_policy_shared *all)
{
	uint32_t units = device->info->unit_rows * device->info->unit_cols;

	for (; all != NULL; all = all->next)
		units -= all->part->floor < units ? all->part->floor : units;
	return units;
}

/* Return whether hal_policy_add can still increase s->units, given free units. */
static inline int hal_policy_takes(const struct hal_policy_shared *s, uint32_t limit,
				   uint32_t column)
{
	limit = limit < s->part->ceiling ? limit : s->part->ceiling;
	return limit / column * column > s->units;
}

/*
 * Distribute `room` units among the partitions of the list all, and request the moves.
 *
 * Each partition gets its floor.  Then each gets units up to .least, in the order of the
 * list.  Then the rest is dealt in equal parts up to .most.  The result is in .units.
 *
 * Return what device->move returns.  Partitions after the first HAL_POLICY_MOVES of the
 * list are not moved.
 */
static inline int hal_policy_spread_in(const struct hal_policy_host *device,
				       struct hal_policy_shared *all, uint32_t room)
{
	uint32_t column = hal_policy_column(device);
	uint32_t count = 0, columns_each, room_before;
	struct hal_policy_move m[HAL_POLICY_MOVES];
	struct hal_policy_shared *s, *takers = NULL, **last = &takers;

	for (s = all; s != NULL; s = s->next, count++) {
		s->units = s->part->floor;
		room -= s->units < room ? s->units : room;
	}
	for (s = all; s != NULL; s = s->next) {
		if (s->least > s->units)
			hal_policy_add(s, s->least - s->units + column - 1,
				       s->part->ceiling, column, &room);
		if (s->most > s->units) {
			*last = s;
			last = &s->taker;
		}
	}
	*last = NULL;
	/* Most partitions can take no more, so each round visits the others alone. */
	do {
		room_before = room;
		columns_each = room / column / (count != 0 ? count : 1);
		for (last = &takers; (s = *last) != NULL;) {
			hal_policy_add(s, (columns_each != 0 ? columns_each : 1) * column,
				       s->most, column, &room);
			if (hal_policy_takes(s, s->most, column))
				last = &s->taker;
			else
				*last = s->taker;
		}
	} while (room != room_before && room != 0);
	count = 0;
	for (s = all; s != NULL && count < HAL_POLICY_MOVES; s = s->next) {
		m[count].part = s->part;
		m[count].reserved = 0;
		m[count++].units = s->units;
	}
	return device->move(device->device, m, count);
}

/*
 * Distribute the units of the whole device among the partitions of the list all, by their
 * .least and .most (see hal_policy_spread_in).
 *
 * If the distribution does not fit, because other partitions occupy units or no set of
 * rectangles exists, try again with fewer units, down to the number that the partitions
 * have now.
 *
 * Return 0 when the moves are under way or none is needed; .changed reports each
 * partition that has moved.  Return -EBUSY while earlier moves are under way: call this
 * again from .changed.  Other errors are those of device->move.
 */
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

/* ---- memory bandwidth ---------------------------------------------------------------- */

/*
 * Limit the memory bandwidth of the partition of s.
 *
 * bandwidth: bytes per second, rounded to what the device supports and raised to its
 *            smallest limit; 0 removes the limit.
 *
 * Do nothing if that limit is in force already.  If the device refuses, s->held stays as
 * it was.  Remove the limit in detach of the partition's last queue, before
 * hal_policy_unshare.
 */
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

/*
 * Return the memory channels that part's buffers may lie on, one bit per channel; all
 * bits if the device does not report channels.
 */
static inline uint64_t hal_policy_channels(const struct hal_policy_partition *part)
{
	return part->color_mask != 0 ? part->color_mask : UINT64_MAX;
}

/*
 * Limit all partitions of the list all whose .rationed is 1 to equal parts of bandwidth
 * (bytes per second), and remove the limits of the others.  With bandwidth 0, remove the
 * limits of all.
 */
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

/* ---- expected run times --------------------------------------------------------------- */

/*
 * Return the fewest units that are enough for the command at the head of queue.
 *
 * units: units to begin with.
 * best_ns: expected run time of the command on that many units.
 * percent: by how much longer than best_ns the command may run.
 *
 * Halve the number of units, rounded down to whole columns of the grid, while the command
 * is expected to run at most that much longer and the partition's floor allows it.
 * If the run time on some number of units is not known yet, return that number, so that
 * the policy tries it.  The policy needs HAL_POLICY_EXPECTS.
 */
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

/* ---- programs that run concurrently --------------------------------------------------- */

/* The number of programs that a crowd counts separately. */
enum { HAL_POLICY_CROWD = 8 };

/*
 * Counts of in-flight commands by their program, for a policy that uses the profile's
 * slowdown of one program beside another (device->beside).  Zero-initialize it.
 */
struct hal_policy_crowd {
	uint64_t program[HAL_POLICY_CROWD]; /* as head.program */
	uint64_t count[HAL_POLICY_CROWD];   /* its commands; 0: the slot is free */
	uint64_t named;                     /* the sum of .count */
	/* Commands whose program is unknown, or for which no slot was free. */
	uint64_t others;
};

/*
 * Add `count` commands of a program.
 *
 * program: head.program of the commands; 0 if it is not known.
 *
 * Return the value to pass as program to hal_policy_crowd_take: the program, or 0 if the
 * commands were counted in .others.
 */
static inline uint64_t hal_policy_crowd_add(struct hal_policy_crowd *crowd,
					    uint64_t program, uint64_t count)
{
	uint32_t i, slot = HAL_POLICY_CROWD;

	for (i = HAL_POLICY_CROWD; i-- > 0;)
		if (crowd->count[i] == 0)
			slot = i;
	for (i = 0; i < HAL_POLICY_CROWD; i++)
		if (crowd->count[i] != 0 && crowd->program[i] == program)
			slot = i;
	if (program == 0 || slot == HAL_POLICY_CROWD) {
		crowd->others += count;
		return 0;
	}
	crowd->program[slot] = program;
	crowd->count[slot] += count;
	crowd->named += count;
	return program;
}

/* Remove `count` commands; program is the value that hal_policy_crowd_add returned. */
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

/*
 * Return the largest slowdown, in thousandths of its run time, that program would cause
 * to any program of the crowd.  Return 0 if the crowd is empty, HAL_POLICY_NEVER if the
 * slowdown of one of its programs is not known.
 */
static inline uint64_t hal_policy_crowd_cost(const struct hal_policy_host *device,
					     const struct hal_policy_crowd *crowd,
					     uint32_t program)
{
	uint64_t cost, worst = crowd->others != 0 ? HAL_POLICY_NEVER : 0;
	uint32_t i;

	if (crowd->named == 0)
		return worst;
	for (i = 0; i < HAL_POLICY_CROWD && worst != HAL_POLICY_NEVER; i++) {
		if (crowd->count[i] == 0)
			continue;
		cost = device->beside(device->device, (uint32_t)crowd->program[i],
				      program, NULL);
		worst = cost > worst ? cost : worst;
	}
	return worst;
}

#ifdef __cplusplus
}
#endif
#endif

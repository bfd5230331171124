/* SPDX-License-Identifier: Apache-2.0 */
/*
 * policy.h - what a sharing policy sees of a device and what it decides.
 *
 *   engine --attach---> policy: a queue there is, now        detach: it goes
 *   engine --enqueue--> policy: its next command could run   dequeue: it can not any more
 *   engine --key------> policy: how far in front?            (policies that only order)
 *   engine --pick-----> policy: this partition has room for one more command; whose?
 *   engine --ended, changed, alarm--> policy: what came of it
 *   policy --hal_policy_host--> engine: alarm, stop, start
 *
 * A queue is runnable, and in the policy's hands, from enqueue until pick names it or
 * dequeue takes it away; then the engine gives one command of it to the device and
 * enqueues it again when there is another.  Most policies only say how far in front a
 * queue stands (key): the engine then keeps them in order itself. docs/adding-a-policy.md
 * makes one.
 *
 * A queue that nobody competes with is served without asking, unless the policy says that
 * it wants to see even that (HAL_POLICY_ALWAYS).
 *
 * Wrong answers do no harm: a queue that is not runnable, "nobody" without a time while
 * nothing runs, or a queue passed over or stopped for [policy] timeout_ms: the engine
 * serves in order of arrival, counts it, and after some of them goes on without the
 * policy (hal_device_get_policy tells).
 *
 * Threads: all calls of one device come from its engine, one at a time; none may block,
 *          allocate (but in create, attach) or look at a wall clock.  The same calls are
 *          answered in the same way: schedules are reproducible.
 * Out of tree: a .so that exports hal_policy_entry, named in hal.plugins.
 */
#ifndef HAL_POLICY_H
#define HAL_POLICY_H

#include <errno.h>
#include <stdlib.h>

#include <hal/backend.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HAL_POLICY_ABI    9u
#define HAL_POLICY_SYMBOL "hal_policy_entry"

#define HAL_POLICY_NEVER  UINT64_MAX /* no deadline, no time */

#define HAL_POLICY_MOVES  32u  /* partitions of one plan, at most */
#define HAL_POLICY_BEHIND 256u /* slots of a queue that .waiting looks at, at most */

/* ---- what a policy sees: the engine's, read only, valid during the call ---------- */

/* What a command needs of the device. */
enum hal_policy_kind {
	HAL_POLICY_UNKNOWN,
	HAL_POLICY_ARRAY,  /* units: it is slower with few of them */
	HAL_POLICY_VECTOR, /* no more than one of them, whatever there are */
	HAL_POLICY_MEMORY, /* memory: it is slower beside others that move much */
};

/* The command a runnable queue has at its head. */
struct hal_policy_command {
	uint64_t submit_ns; /* device time */
	/* Absolute device time, HAL_POLICY_NEVER: none; and its submission's priority,
	 * else the queue's.  Or those of a queue that waits for this one. */
	uint64_t deadline_ns;
	int32_t priority;
	uint32_t op;    /* enum hal_op */
	uint32_t flags; /* HAL_CMD_REPLAYABLE: may be killed */
	/* HAL_POLICY_EXPECTS: enum hal_policy_kind; and how sure .expected_ns is, in
	 * thousandths: 0 not known, 1000 the last eight ran as expected, or those of a
	 * profile alike. */
	uint16_t kind, sure_permille;
	uint64_t work; /* multiply-accumulates of the kernel; 0: not known */
	/* HAL_POLICY_EXPECTS: device time that it, and what follows of its submission
	 * with it, will run, from the device's profile (hal.profile) and what commands
	 * ran so far; at least 1.  HAL_POLICY_NEVER: not known. */
	uint64_t expected_ns, rest_ns;
	/* The same: what the whole submission runs, and the bytes that it moves itself.
	 */
	uint64_t whole_ns, expected_bytes;
	/* The same: the configuration that the device is to have for it, of which it has
	 * one at a time: info->load_ns to put it in the place of another. 0: any. */
	uint32_t configuration;
	/* The same: the number of its program in the device's profile, from 1, for
	 * .beside. 0: not of one that is there. */
	uint32_t program;
};

struct hal_policy_queue {
	uint32_t id;
	uint32_t weight;      /* at least 1 */
	uint64_t runnable_ns; /* since when its head could run */
	uint64_t served_ns;   /* device time its commands have run, of those that ended */
	uint64_t completed;   /* commands of it that ended well */
	uint32_t running;     /* commands of it that the device has */
	uint16_t service_class;   /* enum hal_class */
	uint16_t budget_permille; /* of device time; 0: it says none */
	struct hal_policy_command head;
	/* The policy's own; 0 at attach. */
	struct hal_policy_queue *next, *prev;
	uint64_t own[4];
};

struct hal_policy_partition {
	uint32_t index;
	uint32_t units;
	uint32_t running;        /* commands that the device has */
	uint32_t runnable;       /* queues in the policy's hands */
	uint32_t floor, ceiling; /* of units: no policy goes beyond either */
	/* Memory channels that its buffers lie on, bit a channel; 0: the device tells of
	 * none. */
	uint64_t color_mask;
	uint64_t own[4]; /* the policy's; 0 at first */
};

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

/* Why a queue is dequeued. */
enum hal_policy_why {
	HAL_POLICY_SUSPENDED, /* somebody suspends it */
	HAL_POLICY_FAILED,    /* its work is dropped */
	HAL_POLICY_REPLACED,  /* another policy comes */
	HAL_POLICY_OVERRULED, /* it is served: the policy's answer could not be followed
			       */
	HAL_POLICY_INHERITS, /* others lend it theirs: it comes again with another head */
	HAL_POLICY_HELD, /* its next command uses a buffer that moves: it comes again */
};

/* A command that has ended, or was stopped inside. */
struct hal_policy_end {
	uint64_t ran_ns; /* since it began, or went on */
	uint64_t bytes;
	/* 0, -EIO, -ECANCELED; -EINTR: its queue is suspended by FOLD or SAVE, it goes on
	 * when that does, and ends once more; of one that the device refused: why. */
	int32_t status;
	uint32_t reserved;
	uint64_t now_ns; /* device time */
	uint64_t end_ns; /* when it ended, which the engine may see later; 0: not known */
};

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

/* ---- what it can ask for: requests, which end in .changed ------------------------ */

/* part is to have so many units; as many as it has: it may be moved for the others. */
struct hal_policy_move {
	struct hal_policy_partition *part;
	uint32_t units;
	uint32_t reserved;
};

struct hal_policy_host {
	uint32_t size;
	uint32_t reserved;
	void *device;
	/* .alarm is called at device time at_ns; a new one replaces the last. */
	void (*alarm)(void *device, uint64_t at_ns);
	/* As hal_queue_suspend and _resume.  -EBUSY: one is under way, it is suspended
	 * already, one that stands above it waits for it, or it had been stopped for too
	 * long and is served first; -EPERM: killed often enough; -ENOTSUP: the mode;
	 * -EINVAL: not suspended by the policy. */
	int (*stop)(void *device, struct hal_policy_queue *queue, uint32_t mode);
	int (*start)(void *device, struct hal_policy_queue *queue);
	/* As hal_partition_resize to so many units, placed by the engine; -EINVAL, and
	 * counted, below the floor or above the ceiling.  And as many bytes a window as
	 * the partition may move (0: any). */
	int (*resize)(void *device, struct hal_policy_partition *part, uint32_t units);
	int (*limit)(void *device, struct hal_policy_partition *part, uint64_t bytes,
		     uint64_t window_ns);
	/* The same for several, as one: all are placed before any is moved, or none is
	 * (-ENOSPC: they do not fit together; -EAGAIN: some would wait for each other,
	 * and fit when all have fewer first), and who takes units waits for who gives
	 * them, which nobody else gets in between.  When the device refuses one in the
	 * middle, those that wait stay as they are; all are told. One plan at a time:
	 * -EBUSY. */
	int (*move)(void *device, const struct hal_policy_move *moves, uint32_t count);
	/* HAL_POLICY_EXPECTS: what the command at the head of queue will run on so many
	 * units, from what is known of as many, or of fewer and of more.
	 * HAL_POLICY_NEVER: not known. */
	uint64_t (*expect)(void *device, const struct hal_policy_queue *queue,
			   uint32_t units);
	/* How much longer, in thousandths, a request of a program of the profile takes
	 * while requests of another run on the rest of the device; both as head.program.
	 * As the profile has measured it on halves, and HAL_POLICY_EXPECTS: as it has
	 * been since, on the units that there are.  HAL_POLICY_NEVER: not known.  How
	 * sure that is, in thousandths: 1000 if each was measured eight times or more, or
	 * seen often; sure_permille may be NULL. */
	uint64_t (*beside)(void *device, uint32_t program, uint32_t other,
			   uint32_t *sure_permille);
	/* Submissions of queue of which something has not been given to the device, that
	 * of its head first; those in its next HAL_POLICY_BEHIND slots.  *last_ns: the
	 * deadline of the last of them. */
	uint32_t (*waiting)(void *device, const struct hal_policy_queue *queue,
			    uint64_t *last_ns);
	/* part is asked for again, for what has happened elsewhere; not from pick. */
	void (*ask)(void *device, struct hal_policy_partition *part);
	/* The device; .memory_free is as it was when it was opened. */
	const struct hal_device_info *info;
};

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

/* Bytes of bandwidth (bytes a second) in a window, *window_ns: the shortest that the
 * device has in which it still is many times the grain of a limit, since less would round
 * the share, and a burst be long beside the window.  Less than .limit_bytes: too little.
 */
static inline uint64_t hal_policy_window(const struct hal_device_info *i,
					 uint64_t bandwidth, uint64_t *window_ns)
{
	enum { GRAINS = 16 };
	const uint64_t second = 1000000000;
	uint64_t window = i->limit_window_ns, bytes, half;

	/* Windows of up to a second do not overflow. */
	bytes = bandwidth / second * window + bandwidth % second * window / second;
	while (window > 1) {
		half = bandwidth / second * (window / 2) +
		       bandwidth % second * (window / 2) / second;
		if (half < GRAINS * i->limit_bytes)
			break;
		window /= 2;
		bytes = half;
	}
	*window_ns = window;
	return i->limit_bytes != 0 ? bytes / i->limit_bytes * i->limit_bytes : 0;
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
		bytes = hal_policy_window(i, bandwidth, &window_ns);
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

/* What pick decides beside the queue. */
struct hal_policy_order {
	uint32_t commands; /* lease: so many more of it without asking; 0: none */
	uint32_t reserved;
	/* When NULL is answered: ask again then, or after any event of the partition.
	 * HAL_POLICY_NEVER is right only while the device runs something; of events
	 * elsewhere .ask tells. */
	uint64_t until_ns;
};

/* ---- the policy ------------------------------------------------------------------- */

/* hal_policy.flags */
#define HAL_POLICY_ALWAYS  1u /* also asked when a queue has no competitor */
#define HAL_POLICY_TIMES   2u /* a key is a device time: not served before that */
#define HAL_POLICY_EXPECTS 4u /* wants what commands are expected to do */
/* When it takes over from itself, with other options, own[] of queues and partitions is
 * as detach left it. */
#define HAL_POLICY_KEEPS 8u
/* Who starves under it is meant to: he is served after timeout_ms all the same, but the
 * engine does not go on without it for that. */
#define HAL_POLICY_STARVES 16u
/* It keeps queues within their budget_permille; without it, queues that have one are
 * refused. */
#define HAL_POLICY_BUDGETS 32u

struct hal_policy {
	uint32_t size; /* sizeof(struct hal_policy) */
	uint32_t abi;  /* HAL_POLICY_ABI */
	/* 1 to 31 characters that can be seen, and none of .=:,;#"[] */
	const char *name;
	const char *summary;
	/* Parameters, section [policy]; read them with host->option_int. */
	const struct hal_option_def *options;
	uint32_t option_count;
	uint32_t flags; /* HAL_POLICY_* */

	/* All may be NULL, but key or pick has to be there. */

	/* State of one device; device stays as long as the state. */
	int (*create)(const struct hal_host *host, const struct hal_bk_config *cfg,
		      const struct hal_policy_host *device, void **state);
	void (*destroy)(void *state);
	/* -errno (after host->fail): the queue is not admitted, hal_queue_create fails.
	 */
	int (*attach)(void *state, struct hal_policy_partition *part,
		      struct hal_policy_queue *queue);
	/* Once for each that was admitted, also after the engine went on without the
	 * policy: then whatever else it kept of the queue may be old. */
	void (*detach)(void *state, struct hal_policy_partition *part,
		       struct hal_policy_queue *queue);
	void (*enqueue)(void *state, struct hal_policy_partition *part,
			struct hal_policy_queue *queue);
	void (*dequeue)(void *state, struct hal_policy_partition *part,
			struct hal_policy_queue *queue, enum hal_policy_why why);
	/* Instead of enqueue, dequeue and pick: lower is served first, equal ones in
	 * order of arrival; classes before all keys.  Asked once each time the queue
	 * becomes runnable. */
	uint64_t (*key)(void *state, struct hal_policy_partition *part,
			struct hal_policy_queue *queue, uint64_t now_ns);
	/* Of key: it is this queue's turn, with this key.  0: it is served now; higher
	 * than key: its key from now on, and who is first then is asked. */
	uint64_t (*turn)(void *state, struct hal_policy_partition *part,
			 struct hal_policy_queue *queue, uint64_t key, uint64_t now_ns);
	/* Takes one queue out and returns it; NULL: nobody now. */
	struct hal_policy_queue *(*pick)(void *state, struct hal_policy_partition *part,
					 uint64_t now_ns, struct hal_policy_order *order);
	/* A command of queue has ended, or the device has refused it (-errno). */
	void (*ended)(void *state, struct hal_policy_partition *part,
		      struct hal_policy_queue *queue, const struct hal_policy_end *end);
	/* A stop that was asked for is quiet (queue), or part has moved (queue NULL). */
	void (*changed)(void *state, struct hal_policy_partition *part,
			struct hal_policy_queue *queue);
	void (*alarm)(void *state, uint64_t now_ns);
};

/* The one symbol of a plugin.  NULL: refused (after host->fail). */
typedef const struct hal_policy *(*hal_policy_entry_fn)(const struct hal_host *host);

#ifdef __cplusplus
}
#endif
#endif

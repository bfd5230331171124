/* SPDX-License-Identifier: Apache-2.0 */
/* world.c - tenants that do all there is to a device at once, by chance. */
#include "world.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <hal/ext/memory.h>
#include <hal/hal.h>
#include <hal/ref.h>

enum { THREADS_MAX = 8, QUEUES = 2, KERNELS = 4, PARTS = 2, BATCH = 24, FAILING = 3 };
/* What tenants of a partition have together, where there are memory channels. */
enum { SHARED = 3, SHARED_BYTES = 32768 };

#define FOR_GOOD (UINT64_C(1) << 40)

struct tenant {
	struct world *w;
	struct hal_queue *q[QUEUES];
	_Atomic uint64_t done[QUEUES]; /* submitted to it */
	uint16_t service_class;
	uint64_t random;
	pthread_t thread;
};

struct world {
	const struct trial *t;
	struct hal_device *dev;
	struct hal_partition *part[PARTS];
	struct hal_buffer *shared[PARTS][SHARED]; /* NULL: there are none */
	struct hal_buffer *memory[PARTS]; /* host memory; there is some then, too */
	uint64_t colors;
	struct hal_program *prog;
	struct hal_kernel *kernel[KERNELS];
	struct hal_timeline *host, *device; /* raised by threads; by commands */
	_Atomic uint64_t host_value, device_value;
	struct tenant tenants[THREADS_MAX];
	atomic_uint called;
	atomic_int failed;
};

static int check(struct world *w, int err, const char *what)
{
	if (err >= 0)
		return err;
	fprintf(stderr, "seed %llu: %s: %s\n", (unsigned long long)w->t->seed, what,
		hal_last_error());
	atomic_store(&w->failed, 1);
	return err;
}

#define OK(w, call) check((w), (call), #call)

static uint64_t chance(uint64_t *state, uint64_t n)
{
	*state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (*state >> 33) % n;
}

/* ---- kernels ----------------------------------------------------------------------- */

static int nothing(const struct hal_ref_call *call)
{
	(void)call;
	return 0;
}

static int fails(const struct hal_ref_call *call)
{
	(void)call;
	return -EIO;
}

static void world_load(struct world *w)
{
	static const struct hal_ref_kernel kernels[] = {
		{.name = "short", .fn = nothing, .work = 800},
		{.name = "longer", .fn = nothing, .work = 20000},
		{.name = "long", .fn = nothing, .work = 160000},
		{.name = "fails", .fn = fails, .work = 100}};

	(void)OK(w, hal_ref_load(w->dev, kernels, KERNELS, &w->prog));
	for (int i = 0; i < KERNELS; i++)
		(void)OK(w, hal_kernel_find(w->prog, kernels[i].name, &w->kernel[i]));
}

/* ---- a tenant ---------------------------------------------------------------------- */

static void called(void *user)
{
	struct world *w = user;

	/* Now and then it raises something that others wait for. */
	if (atomic_fetch_add(&w->called, 1) % 4 == 0)
		(void)hal_timeline_signal(w->host,
					  atomic_fetch_add(&w->host_value, 1) + 1);
}

/* Of queue i: it uses what may be moving at the time. */
static struct hal_cmd with_shared(struct tenant *t, uint32_t i)
{
	struct hal_buffer *const *b = t->w->shared[i % PARTS];
	uint64_t from = chance(&t->random, SHARED), to = chance(&t->random, SHARED);

	if (from == to && chance(&t->random, 2) == 0)
		return hal_cmd_write(b[to], 0, t->w->memory[i % PARTS], 0, 4096);
	if (from == to)
		return hal_cmd_fill(b[to], 0, 4096, (uint32_t)from);
	return hal_cmd_copy(b[to], 4096, b[from], 0, 4096);
}

static struct hal_cmd command(struct tenant *t, uint32_t i)
{
	struct hal_cmd cmd = {.op = HAL_OP_NOP};

	if (t->w->colors > 1 && chance(&t->random, 4) == 0)
		return with_shared(t, i);

	switch (chance(&t->random, 8)) {
	case 0:
		return cmd;
	case 1:
		return t->w->t->callbacks ? hal_cmd_host(called, t->w) : cmd;
	case 2:
		return hal_cmd_barrier();
	default:
		cmd = hal_cmd_launch(t->w->kernel[chance(&t->random, FAILING)], NULL, 0);
		if (chance(&t->random, 3) != 0)
			cmd.flags |= HAL_CMD_REPLAYABLE;
		return cmd;
	}
}

static struct hal_point waits_for(struct tenant *t)
{
	struct world *w = t->w;
	struct tenant *other = &w->tenants[chance(&t->random, w->t->threads)];
	uint32_t i = (uint32_t)chance(&t->random, QUEUES);

	if (chance(&t->random, 3) == 0)
		return (struct hal_point){w->host, atomic_load(&w->host_value) + 1};
	if (chance(&t->random, 4) == 0)
		return (struct hal_point){w->device, atomic_load(&w->device_value)};
	/* Only what has been submitted: else they might wait for each other. */
	return (struct hal_point){hal_queue_get_timeline(other->q[i]),
				  atomic_load(&other->done[i])};
}

static void submit_one(struct tenant *t)
{
	struct world *w = t->w;
	struct hal_submit_desc d = HAL_INIT(hal_submit_desc);
	struct hal_cmd cmds[BATCH];
	struct hal_point waits[2], signal, done;
	uint32_t i = (uint32_t)chance(&t->random, QUEUES);
	int err;

	d.cmds = cmds;
	d.cmd_count = 1;
	if (chance(&t->random, 6) == 0)
		d.cmd_count = (uint32_t)chance(&t->random, 4);
	else if (chance(&t->random, 20) == 0)
		d.cmd_count = BATCH; /* too many to lie in a ring of 32 */
	for (uint32_t c = 0; c < d.cmd_count; c++)
		cmds[c] = command(t, i);
	if (chance(&t->random, 3) == 0) {
		d.waits = waits;
		d.wait_count = 1 + (uint32_t)chance(&t->random, 2);
		for (uint32_t n = 0; n < d.wait_count; n++)
			waits[n] = waits_for(t);
	}
	if (chance(&t->random, 4) == 0) {
		signal = (struct hal_point){w->device,
					    atomic_fetch_add(&w->device_value, 1) + 1};
		d.signals = &signal;
		d.signal_count = 1;
	}
	if (chance(&t->random, 10) == 0)
		d.not_before_ns = hal_device_get_time(w->dev) + chance(&t->random, 50000);
	if (t->service_class != HAL_CLASS_BEST_EFFORT && chance(&t->random, 8) == 0)
		d.deadline_ns = 1000 + chance(&t->random, 100000) +
				(d.not_before_ns != 0 ? 50000 : 0);
	if (chance(&t->random, 8) == 0) {
		d.flags |= HAL_SUBMIT_PRIORITY;
		d.priority = (int32_t)chance(&t->random, 5);
	}
	while ((err = hal_submit(t->q[i], &d, &done)) == -EAGAIN &&
	       atomic_load(&w->failed) == 0) {
		/* Somebody has to let time pass, and under the virtual clock that is us.
		 */
		(void)hal_device_poll(w->dev, 10000);
		(void)hal_timeline_signal(w->host,
					  atomic_fetch_add(&w->host_value, 1) + 1);
		sched_yield();
	}
	if (OK(w, err) == 0)
		atomic_store(&t->done[i], done.value);
}

/* It may be moving already, or the queue be full. */
static void move_one(struct tenant *t)
{
	uint32_t i = (uint32_t)chance(&t->random, QUEUES);
	/* Of four, the bimodal partition has the lower two. */
	uint64_t to = UINT64_C(1) << ((i % PARTS == 0 ? 0 : 2) + chance(&t->random, 2));
	struct hal_buffer *b = t->w->shared[i % PARTS][chance(&t->random, SHARED)];
	struct hal_point done;
	int err = hal_buffer_recolor(b, t->q[i], to, NULL, &done);

	if (err == -EBUSY || err == -EAGAIN)
		return;
	if (OK(t->w, err) == 0)
		atomic_store(&t->done[i], done.value);
}

static void *tenant_main(void *arg)
{
	struct tenant *t = arg;

	for (uint32_t r = 0; r < t->w->t->rounds && atomic_load(&t->w->failed) == 0;
	     r++) {
		submit_one(t);
		if (t->w->colors > 1 && chance(&t->random, 8) == 0)
			move_one(t);
		if (chance(&t->random, 16) == 0) {
			const struct timespec nap = {0, (long)chance(&t->random, 200000)};

			nanosleep(&nap, NULL);
		}
	}
	return NULL;
}

/* ---- what is done to them ---------------------------------------------------------- */

static void suspend_one(struct world *w, uint64_t *random)
{
	struct tenant *t = &w->tenants[chance(random, w->t->threads)];
	struct hal_queue *q = t->q[chance(random, QUEUES)];
	struct hal_point quiet;
	uint32_t mode = (uint32_t)chance(random, HAL_SUSPEND_KILL + 1);

	/* KILL is refused while anything runs that may not be run again. */
	if (hal_queue_suspend(q, mode, &quiet) != 0)
		return;
	if (chance(random, 2) == 0)
		(void)OK(w, hal_wait(&quiet, 1, 0, HAL_FOREVER));
	(void)OK(w, hal_queue_resume(q));
	(void)OK(w, hal_wait(&quiet, 1, 0, HAL_FOREVER));
}

static void resize_one(struct world *w, uint64_t *random)
{
	struct hal_partition_desc d = HAL_INIT(hal_partition_desc);
	struct hal_point moved;

	d.units_floor = 1 + (uint32_t)chance(random, 8);
	d.units_ceiling = d.units_floor + (uint32_t)chance(random, 4);
	if (hal_partition_resize(w->part[chance(random, PARTS)], &d, &moved) == 0)
		(void)OK(w, hal_wait(&moved, 1, 0, HAL_FOREVER));
}

/* A tenant that comes, does one thing that may fail, and goes. */
static void visitor(struct world *w, uint64_t *random)
{
	struct hal_queue_desc qd = HAL_INIT(hal_queue_desc);
	struct hal_submit_desc d = HAL_INIT(hal_submit_desc);
	bool bad = chance(random, 2) == 0;
	struct hal_cmd cmds[3];
	struct hal_queue *q, *behind;
	struct hal_point done, after, signal;
	struct hal_timeline *tl;
	struct hal_partition *part = w->part[chance(random, PARTS)];

	if (OK(w, hal_queue_create(part, &qd, &q)) != 0 ||
	    OK(w, hal_queue_create(part, &qd, &behind)) != 0 ||
	    OK(w, hal_timeline_create(w->dev, &tl)) != 0)
		return;
	for (int i = 0; i < 3; i++)
		cmds[i] = hal_cmd_launch(w->kernel[bad && i == 1 ? FAILING : 0], NULL, 0);
	d.cmds = cmds;
	d.cmd_count = 3;
	signal = (struct hal_point){tl, 1};
	d.signals = &signal;
	d.signal_count = 1;
	(void)OK(w, hal_submit(q, &d, &done));
	d.cmd_count = 1;
	d.waits = &signal;
	d.wait_count = 1;
	d.signal_count = 0;
	(void)OK(w, hal_submit(behind, &d, &after));
	if (hal_wait(&done, 1, 0, HAL_FOREVER) != 0 && !bad)
		(void)check(w, -1, "a visitor's work");
	(void)hal_wait(&after, 1, 0, HAL_FOREVER);
	(void)OK(w, hal_queue_destroy(q));
	(void)OK(w, hal_queue_destroy(behind));
	(void)OK(w, hal_timeline_destroy(tl));
}

static void disturb(struct world *w)
{
	uint64_t random = w->t->seed * 7 + 3;
	const char *const *policy = w->t->policies;

	for (uint32_t i = 0; i < w->t->events && atomic_load(&w->failed) == 0; i++) {
		const struct timespec nap = {0, 100000};

		nanosleep(&nap, NULL);
		switch (chance(&random, 5)) {
		case 0:
			suspend_one(w, &random);
			break;
		case 1:
			resize_one(w, &random);
			break;
		case 2:
			visitor(w, &random);
			break;
		case 3:
			(void)hal_timeline_signal(
				w->host, atomic_fetch_add(&w->host_value, 1) + 1);
			break;
		default:
			if (policy == NULL || chance(&random, 4) != 0)
				break;
			if (*policy == NULL)
				policy = w->t->policies;
			(void)OK(w, hal_device_set_policy(w->dev, *policy++, NULL));
			break;
		}
	}
}

static void share(struct world *w)
{
	void *address;

	for (uint32_t p = 0; w->colors > 1 && p < PARTS; p++) {
		(void)OK(w, hal_host_alloc(w->part[p], 4096, &w->memory[p], &address));
		for (uint32_t n = 0; n < SHARED; n++) {
			struct hal_buffer_desc d = HAL_INIT(hal_buffer_desc);

			d.bytes = SHARED_BYTES;
			(void)OK(w, hal_buffer_create(w->part[p], &d, &w->shared[p][n]));
		}
	}
}

/* ---- all of it --------------------------------------------------------------------- */

static void tenants_begin(struct world *w)
{
	for (uint32_t i = 0; i < w->t->threads; i++) {
		struct tenant *t = &w->tenants[i];

		t->w = w;
		t->random = w->t->seed * 1000 + i;
		t->service_class = (uint16_t)(i % (HAL_CLASS_BEST_EFFORT + 1));
		for (uint32_t n = 0; n < QUEUES; n++) {
			struct hal_queue_desc d = HAL_INIT(hal_queue_desc);

			d.priority = (int32_t)chance(&t->random, 4);
			d.weight = 1 + (uint32_t)chance(&t->random, 4);
			d.service_class = t->service_class;
			if (t->service_class != HAL_CLASS_BEST_EFFORT)
				d.deadline_ns = chance(&t->random, 2) * 100000;
			(void)OK(w, hal_queue_create(w->part[n % PARTS], &d, &t->q[n]));
		}
	}
}

static void tenants_end(struct world *w)
{
	for (uint32_t i = 0; i < w->t->threads; i++)
		for (uint32_t n = 0; n < QUEUES; n++) {
			struct tenant *t = &w->tenants[i];
			struct hal_point last = {hal_queue_get_timeline(t->q[n]),
						 atomic_load(&t->done[n])};

			(void)OK(w, hal_wait(&last, 1, 0, HAL_FOREVER));
		}
	for (uint32_t i = 0; i < w->t->threads; i++)
		for (uint32_t n = 0; n < QUEUES; n++)
			(void)OK(w, hal_queue_destroy(w->tenants[i].q[n]));
}

static void world_run(struct world *w)
{
	struct hal_device_info info = HAL_INIT(hal_device_info);

	(void)OK(w, hal_device_get_info(w->dev, &info));
	w->colors = info.colors;
	for (uint32_t i = 0; i < PARTS; i++) {
		struct hal_partition_desc d = HAL_INIT(hal_partition_desc);

		d.units_floor = 4;
		d.units_ceiling = 8;
		/* The first has more channels while it is alone. */
		if (w->colors > 1 && i == 0) {
			d.color_mask = 3;
			d.flags = HAL_PARTITION_BIMODAL;
		}
		(void)OK(w, hal_partition_create(w->dev, &d, &w->part[i]));
	}
	share(w);
	world_load(w);
	(void)OK(w, hal_timeline_create(w->dev, &w->host));
	(void)OK(w, hal_timeline_create(w->dev, &w->device));
	tenants_begin(w);
	if (atomic_load(&w->failed) != 0)
		return;
	for (uint32_t i = 0; i < w->t->threads; i++)
		(void)pthread_create(&w->tenants[i].thread, NULL, tenant_main,
				     &w->tenants[i]);
	disturb(w);
	for (uint32_t i = 0; i < w->t->threads; i++)
		(void)pthread_join(w->tenants[i].thread, NULL);
	/* Callbacks may still raise it, too: far above what they reach. */
	(void)hal_timeline_signal(w->host, FOR_GOOD);
	tenants_end(w);
	(void)OK(w, hal_timeline_destroy(w->host));
	(void)OK(w, hal_timeline_destroy(w->device));
	(void)OK(w, hal_program_unload(w->prog));
	for (uint32_t i = 0; i < PARTS; i++) {
		for (uint32_t n = 0; n < SHARED; n++)
			(void)OK(w, hal_buffer_destroy(w->shared[i][n]));
		(void)OK(w, hal_buffer_destroy(w->memory[i]));
		(void)OK(w, hal_partition_destroy(w->part[i]));
	}
}

int trial_run(const struct trial *t)
{
	char journal[512], policy[64];
	const char *options[] = {journal, policy, NULL};
	struct world w;

	memset(&w, 0, sizeof(w));
	w.t = t;
	snprintf(journal, sizeof(journal), "hal.journal=%s", t->journal);
	snprintf(policy, sizeof(policy), "policy.name=%s", t->policy);
	if (OK(&w, hal_open(t->target, options, &w.dev)) != 0)
		return -1;
	world_run(&w);
	if (atomic_load(&w.failed) == 0)
		(void)OK(&w, hal_close(w.dev));
	return atomic_load(&w.failed) != 0 ? -1 : 0;
}

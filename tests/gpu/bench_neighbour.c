/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_neighbour.c - what a tenant that creates and destroys buffers costs another one.
 *
 * bench_neighbour figures: the p99 of a launch of 50 us, from hal_submit to the end of
 * hal_wait, while such a tenant works, over the p99 alone.  The fake driver takes as long
 * as a real one (DELAYS=1).  Control: the same with mem_alloc, mem_free and
 * queue_create called by the engine.
 *
 * bench_neighbour check: count instead of time.  The engine's thread must not make any
 * call that allocates or frees memory; in the control it does.
 *
 * TARGET, NAME, IMAGE and CALLS are the vendor's: the device, the figure's name, the
 * function that makes a program, and the calls of the driver.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "loop/device.h"
#include "tests/gpu/host.h"

void *IMAGE(const char *const *kernels, uint32_t count, uint32_t group_size,
	    size_t *size);

enum {
	LAUNCH_NS = 50000,
	BYTES = 65536,
	ROUNDS = 5,
	LAUNCHES = 300, /* of a round */
	CHECKED = 40,   /* buffers that each thread of the check makes */
};

static const char *const calls[] = {CALLS};
#define CALL_COUNT (sizeof(calls) / sizeof(calls[0]))

static struct {
	struct hal_device *dev;
	struct hal_partition *part[2];
	struct hal_program *prog;
	struct hal_kernel *work;
	struct hal_queue *q;
	struct hal_buffer *buf;
	const struct hal_backend *own;
	struct hal_backend on_engine; /* its table without HAL_BK_BESIDE_MEMORY */
	atomic_bool stop;
} w;

static void check(int err, const char *call)
{
	if (err == 0)
		return;
	fprintf(stderr, "%s: %d: %s\n", call, err, hal_last_error());
	exit(1);
}
#define OK(call) check(call, #call)

static void open_world(void)
{
	static const char *const kernels[] = {"work:m8"};
	struct hal_partition_desc pd = HAL_INIT(hal_partition_desc);
	struct hal_queue_desc qd = HAL_INIT(hal_queue_desc);
	struct hal_buffer_desc bd = HAL_INIT(hal_buffer_desc);
	size_t size;
	void *image = IMAGE(kernels, 1, 1, &size);

	OK(hal_open(TARGET, NULL, &w.dev));
	pd.units_floor = 1;
	OK(hal_partition_create(w.dev, &pd, &w.part[0]));
	OK(hal_partition_create(w.dev, &pd, &w.part[1]));
	OK(hal_queue_create(w.part[0], &qd, &w.q));
	bd.bytes = BYTES;
	OK(hal_buffer_create(w.part[0], &bd, &w.buf));
	OK(hal_program_load(w.dev, image, size, &w.prog));
	OK(hal_kernel_find(w.prog, "work", &w.work));
	free(image);
	w.own = w.dev->table;
	w.on_engine = *w.own;
	w.on_engine.beside &= ~(HAL_BK_BESIDE_MEMORY | HAL_BK_BESIDE_QUEUE);
}

static void close_world(void)
{
	OK(hal_queue_destroy(w.q));
	OK(hal_buffer_destroy(w.buf));
	OK(hal_program_unload(w.prog));
	OK(hal_partition_destroy(w.part[0]));
	OK(hal_partition_destroy(w.part[1]));
	OK(hal_close(w.dev));
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Return how long a launch took, in ns. */
static uint64_t launch(void)
{
	const struct hal_arg args[2] = {{.buffer = w.buf, .bytes = BYTES},
					{.offset = LAUNCH_NS}};
	struct hal_cmd cmd = hal_cmd_launch(w.work, args, 2);
	struct hal_submit_desc d = HAL_INIT(hal_submit_desc);
	struct hal_point done;
	uint64_t from = now_ns();

	d.cmds = &cmd;
	d.cmd_count = 1;
	OK(hal_submit(w.q, &d, &done));
	OK(hal_wait(&done, 1, 0, HAL_FOREVER));
	return now_ns() - from;
}

static void make_buffer(uint32_t flags)
{
	struct hal_buffer_desc d = HAL_INIT(hal_buffer_desc);
	struct hal_buffer *buf;

	d.bytes = BYTES;
	d.flags = flags;
	OK(hal_buffer_create(w.part[1], &d, &buf));
	OK(hal_buffer_destroy(buf));
}

/* ---- figures ----------------------------------------------------------------------- */

static void *make_buffers(void *unused)
{
	while (!atomic_load(&w.stop))
		make_buffer(0);
	return unused;
}

static int compare(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static double p99(void)
{
	uint64_t ns[LAUNCHES];
	uint32_t i;

	for (i = 0; i < LAUNCHES; i++)
		ns[i] = launch();
	qsort(ns, LAUNCHES, sizeof(ns[0]), compare);
	return (double)ns[LAUNCHES * 99 / 100];
}

static double p99_beside(const struct hal_backend *table)
{
	pthread_t thread;
	double result;

	w.dev->table = table; /* no other thread uses the device now */
	atomic_store(&w.stop, false);
	check(pthread_create(&thread, NULL, make_buffers, NULL), "pthread_create");
	result = p99();
	atomic_store(&w.stop, true);
	pthread_join(thread, NULL);
	w.dev->table = w.own;
	return result;
}

static int compare_ratios(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Print the median of the rounds. */
static void figures(void)
{
	double beside[ROUNDS], on_engine[ROUNDS], alone;
	uint32_t i;

	for (i = 0; i < ROUNDS; i++) {
		alone = p99();
		beside[i] = p99_beside(w.own) / alone;
		on_engine[i] = p99_beside(&w.on_engine) / alone;
		printf("p99 alone %.0f us, while the tenant works %.2f times as long, "
		       "with its calls made by the engine %.2f times\n",
		       alone / 1000, beside[i], on_engine[i]);
	}
	qsort(beside, ROUNDS, sizeof(beside[0]), compare_ratios);
	qsort(on_engine, ROUNDS, sizeof(on_engine[0]), compare_ratios);
	printf("figure " NAME " %.2f\n", beside[ROUNDS / 2]);
	printf("figure " NAME ".on_engine %.2f\n", on_engine[ROUNDS / 2]);
}

/* ---- check ------------------------------------------------------------------------- */

static void make_queue(void)
{
	struct hal_queue_desc d = HAL_INIT(hal_queue_desc);
	struct hal_queue *q;

	OK(hal_queue_create(w.part[1], &d, &q));
	OK(hal_queue_destroy(q));
}

static void *make_some(void *flags)
{
	uint32_t i;

	for (i = 0; i < CHECKED; i++) {
		make_buffer(flags != NULL ? HAL_BUFFER_MAPPABLE : 0);
		make_queue();
	}
	return NULL;
}

/* Have two threads create and destroy buffers and queues while another one launches.
 * Return how many calls of the driver the engine's thread has made for that. */
static uint64_t count_calls(const struct hal_backend *table)
{
	const struct gpu_stand_in *s = stand_in();
	pthread_t plain, mappable;
	uint64_t all = 0;
	size_t i;

	w.dev->table = table; /* no other thread uses the device now */
	s->watch(w.dev->thread);
	check(pthread_create(&plain, NULL, make_some, NULL), "pthread_create");
	check(pthread_create(&mappable, NULL, make_some, &w), "pthread_create");
	for (i = 0; i < CHECKED; i++)
		(void)launch();
	pthread_join(plain, NULL);
	pthread_join(mappable, NULL);
	for (i = 0; i < CALL_COUNT; i++) {
		printf("%s %lu\n", calls[i], (unsigned long)s->watched(calls[i]));
		all += s->watched(calls[i]);
	}
	w.dev->table = w.own;
	return all;
}

static int check_counts(void)
{
	if (count_calls(w.own) != 0) {
		fprintf(stderr, "the engine's thread calls the driver for memory\n");
		return 1;
	}
	printf("on the engine:\n");
	if (count_calls(&w.on_engine) < 2u * CHECKED) {
		fprintf(stderr, "the calls of the engine's thread are not counted\n");
		return 1;
	}
	return 0;
}

int main(int argc, char **argv)
{
	const char *what = argc == 2 ? argv[1] : "";
	int result = 0;

	if (strcmp(what, "figures") != 0 && strcmp(what, "check") != 0) {
		fprintf(stderr, "usage: bench_neighbour figures|check\n");
		return 2;
	}
	open_world();
	if (what[0] == 'f')
		figures();
	else
		result = check_counts();
	close_world();
	return result;
}

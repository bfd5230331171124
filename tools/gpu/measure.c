/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hal-gpu-measure TARGET KERNELS WHAT: what a GPU does, by the library's public
 * functions, as lines "name | value"; scripts/gpu-report makes a report of them.  KERNELS
 * is what a compiler made of examples/gpu_kernels.cu.  WHAT:
 *
 * launch    time of hal_submit, and from there to the end, of a launch of one block
 * stop      how long FOLD takes, or DRAIN where there is no FOLD, while blocks of about
 *           0.1, 0.5 and 2 ms run
 * beside    time of a launch alone, beside a long one in its partition, and in another
 * product   a product of 256 x 256 numbers: what preempt=block costs, beside between
 * policy=P  time of a launch beside a long one of a lower priority, under that policy
 * places    on how many multiprocessors a partition of each size runs, and whether two
 *           partitions share one
 */
#define _GNU_SOURCE
#include <inttypes.h>
#include <time.h>

#include "examples/gpu_image.h"

enum { TIMES_MOST = 1000, ROOM = 4 * 8192, WIDE = 2048, IDS = 4096 };

/* No measurement takes longer, however slow the device is: then it is of fewer. */
#define BUDGET_NS UINT64_C(20000000000)

static struct hal_device *dev;
static struct hal_device_info info = {.size = sizeof(info)};
static struct hal_program *program;
static uint32_t times = TIMES_MOST; /* HAL_GPU_TIMES: fewer */

struct tenant {
	struct hal_partition *part;
	struct hal_queue *queue;
	struct hal_buffer *mem;
};

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* 0: all units. */
static struct tenant tenant(uint32_t units)
{
	struct hal_partition_desc some = {.size = sizeof(some),
					  .units_floor = units ? units : info.unit_cols};
	struct hal_queue_desc plain = {.size = sizeof(plain)};
	struct tenant t;

	TRY(hal_partition_create(dev, &some, &t.part));
	TRY(hal_queue_create(t.part, &plain, &t.queue));
	t.mem = gpu_buffer(t.part, ROOM);
	return t;
}

static void end(struct tenant *t)
{
	TRY(hal_buffer_destroy(t->mem));
	TRY(hal_queue_destroy(t->queue));
	TRY(hal_partition_destroy(t->part));
}

static void wait_for(struct hal_point p)
{
	TRY(hal_wait(&p, 1, 0, HAL_FOREVER));
}

static struct hal_point add(const struct tenant *t)
{
	struct hal_arg args[] = {{.buffer = t->mem},
				 {.buffer = t->mem},
				 {.buffer = t->mem},
				 {.offset = 256}};

	return gpu_launch(t->queue, program, "vector_add", args, 4, 1);
}

static struct hal_point spin(const struct tenant *t, uint64_t rounds, uint32_t blocks)
{
	struct hal_arg args[] = {{.buffer = t->mem}, {.offset = rounds}};

	return gpu_launch(t->queue, program, "long_one", args, 2, blocks);
}

/* ---- numbers ----------------------------------------------------------------------- */

static int order(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static void say(const char *name, uint64_t *ns, uint32_t count)
{
	const uint32_t half = count / 2, late = count - 1 - count / 100;

	qsort(ns, count, sizeof(*ns), order);
	printf("%s | p50 %.2f us, p99 %.2f us, of %u\n", name, (double)ns[half] / 1e3,
	       (double)ns[late] / 1e3, count);
	(void)fflush(stdout);
}

/* Rounds of a block that takes about that long. */
static uint64_t rounds_of(const struct tenant *t, uint64_t ns)
{
	uint64_t rounds = 1000, took = 0;

	while (took < 20000000 && rounds < UINT64_C(1) << 40) {
		const uint64_t begin = now_ns();

		rounds *= 4;
		wait_for(spin(t, rounds, 1));
		took = now_ns() - begin;
	}
	return rounds * ns / took + 1;
}

/* ---- what is measured -------------------------------------------------------------- */

static void measure_launch(void)
{
	static uint64_t submit[TIMES_MOST], all[TIMES_MOST];
	struct tenant t = tenant(0);
	uint32_t i;

	for (i = 0; i < 10; i++)
		wait_for(add(&t));
	for (i = 0; i < times; i++) {
		const uint64_t begin = now_ns();
		const struct hal_point done = add(&t);

		submit[i] = now_ns() - begin;
		wait_for(done);
		all[i] = now_ns() - begin;
	}
	say("hal_submit of a launch", submit, times);
	say("launch of one block, to the end", all, times);
	end(&t);
}

static void stop_while(const struct tenant *t, uint64_t block_ns)
{
	const uint32_t mode = info.suspend_modes >> HAL_SUSPEND_FOLD & 1
				      ? HAL_SUSPEND_FOLD
				      : HAL_SUSPEND_DRAIN;
	const uint64_t rounds = rounds_of(t, block_ns), until = now_ns() + BUDGET_NS;
	static uint64_t took[TIMES_MOST];
	struct hal_point done, quiet;
	char name[96];
	uint32_t n = 0;

	while (n < times && now_ns() < until) {
		const uint64_t begin = now_ns();

		/* The whole device is full, several times over. */
		done = spin(t, rounds, WIDE);
		while (now_ns() - begin < 2 * block_ns)
			TRY(hal_device_poll(dev, 0));
		took[n] = now_ns();
		TRY(hal_queue_suspend(t->queue, mode, &quiet));
		wait_for(quiet);
		took[n] = now_ns() - took[n];
		TRY(hal_queue_resume(t->queue));
		wait_for(done);
		n++;
	}
	(void)snprintf(name, sizeof(name), "%s, %u blocks of %.1f ms",
		       mode == HAL_SUSPEND_FOLD ? "FOLD" : "DRAIN (no FOLD)", WIDE,
		       (double)block_ns / 1e6);
	say(name, took, n);
}

static void measure_stop(void)
{
	struct tenant t = tenant(0);

	stop_while(&t, 100000);
	stop_while(&t, 500000);
	stop_while(&t, 2000000);
	end(&t);
}

/* Launches of t while another queue is kept busy, or with other NULL alone. */
static void time_beside(const char *name, const struct tenant *t,
			const struct tenant *other, uint64_t rounds)
{
	const uint64_t until = now_ns() + BUDGET_NS;
	static uint64_t took[TIMES_MOST];
	struct hal_point busy = {0};
	uint32_t n = 0;

	while (n < times && now_ns() < until) {
		uint64_t begin;

		if (other && n % 16 == 0) {
			if (n)
				wait_for(busy);
			busy = spin(other, rounds, WIDE);
		}
		begin = now_ns();
		wait_for(add(t));
		took[n++] = now_ns() - begin;
	}
	if (other)
		wait_for(busy);
	say(name, took, n);
}

static void measure_beside(void)
{
	const bool halves = info.partitions_max > 1;
	struct tenant a = tenant(halves ? info.unit_cols / 2 : 0), b;
	const uint64_t rounds = rounds_of(&a, 100000);
	struct hal_queue_desc plain = {.size = sizeof(plain)};

	b = a; /* its memory and queue are others */
	b.mem = gpu_buffer(a.part, ROOM);
	TRY(hal_queue_create(a.part, &plain, &b.queue));
	time_beside("launch alone", &a, NULL, 0);
	time_beside("launch beside a long one, same partition", &a, &b, rounds);
	TRY(hal_buffer_destroy(b.mem));
	TRY(hal_queue_destroy(b.queue));
	if (halves) {
		b = tenant(info.unit_cols / 2);
		time_beside("launch beside a long one, another partition", &a, &b,
			    rounds);
		end(&b);
	} else {
		printf("launch beside a long one, another partition | the device is one "
		       "unit\n");
	}
	end(&a);
}

/* Marks the multiprocessors that a launch ran on; how many. */
static uint32_t where(const struct tenant *t, bool *on)
{
	static uint32_t ids[WIDE];
	struct hal_arg args[] = {{.buffer = t->mem}};
	uint32_t i, n = 0;

	wait_for(gpu_launch(t->queue, program, "where", args, 1, WIDE));
	TRY(hal_buffer_read(t->mem, 0, ids, sizeof(ids)));
	for (i = 0; i < WIDE; i++) {
		const uint32_t id = ids[i] < IDS ? ids[i] : IDS - 1;

		n += !on[id];
		on[id] = true;
	}
	return n;
}

static void measure_places(void)
{
	uint32_t units, i, shared = 0, most = 0, least = UINT32_MAX;

	for (units = 1; units <= info.unit_cols; units++) {
		struct tenant a = tenant(units), b;
		bool on_a[IDS] = {false}, on_b[IDS] = {false};
		const uint32_t n = where(&a, on_a);

		if (n * 1000 / units > most)
			most = n * 1000 / units;
		if (n * 1000 / units < least)
			least = n * 1000 / units;
		if (units < info.unit_cols) {
			b = tenant(info.unit_cols - units);
			(void)where(&b, on_b);
			end(&b);
		}
		for (i = 0; i < IDS; i++)
			shared += on_a[i] && on_b[i];
		end(&a);
	}
	printf("multiprocessors of a unit, in partitions of 1 to %u | %.2f to %.2f\n",
	       info.unit_cols, least / 1e3, most / 1e3);
	printf("multiprocessors that two partitions shared, all sizes | %u\n", shared);
}

static void measure_product(void)
{
	enum { N = 256 };
	struct tenant t = tenant(0);
	struct hal_buffer *m = gpu_buffer(t.part, UINT64_C(4) * N * N);
	struct hal_arg args[] = {
		{.buffer = m}, {.buffer = m}, {.buffer = m}, {.offset = N}};
	static uint64_t took[TIMES_MOST];
	uint32_t i;

	for (i = 0; i < times; i++) {
		const uint64_t begin = now_ns();

		wait_for(gpu_launch(t.queue, program, "product", args, 4,
				    N * N / GPU_BLOCK));
		took[i] = now_ns() - begin;
	}
	say("product of 256 x 256, to the end", took, times);
	TRY(hal_buffer_destroy(m));
	end(&t);
}

static void measure_policy(const char *policy)
{
	struct hal_queue_desc desc = {.size = sizeof(desc), .priority = 1};
	struct tenant low = tenant(0), high = low;
	char name[96];

	TRY(hal_device_set_policy(dev, policy, NULL));
	high.mem = gpu_buffer(low.part, ROOM);
	TRY(hal_queue_create(low.part, &desc, &high.queue));
	(void)snprintf(name, sizeof(name), "launch beside a long one, policy %s", policy);
	time_beside(name, &high, &low, rounds_of(&low, 20000));
	TRY(hal_buffer_destroy(high.mem));
	TRY(hal_queue_destroy(high.queue));
	end(&low);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*measure)(void);
	} all[] = {{"launch", measure_launch},
		   {"stop", measure_stop},
		   {"beside", measure_beside},
		   {"product", measure_product},
		   {"places", measure_places}};
	const char *policy = NULL, *fewer = getenv("HAL_GPU_TIMES");
	size_t i, count = sizeof(all) / sizeof(all[0]);

	if (argc == 4 && strncmp(argv[3], "policy=", 7) == 0)
		policy = argv[3] + 7;
	for (i = 0; argc == 4 && !policy && i < count; i++)
		if (strcmp(all[i].name, argv[3]) == 0)
			break;
	if (argc != 4 || i == count) {
		(void)fprintf(stderr, "usage: hal-gpu-measure TARGET KERNELS "
				      "launch|stop|beside|product|places|policy=NAME\n");
		return 2;
	}
	if (fewer && strtoul(fewer, NULL, 10) - 1 < TIMES_MOST)
		times = (uint32_t)strtoul(fewer, NULL, 10);
	TRY(hal_open(argv[1], NULL, &dev));
	TRY(hal_device_get_info(dev, &info));
	program = gpu_load(dev, argv[2]);
	if (policy)
		measure_policy(policy);
	else
		all[i].measure();
	TRY(hal_program_unload(program));
	TRY(hal_close(dev));
	return 0;
}

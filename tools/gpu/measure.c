/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hal-gpu-measure TARGET KERNELS WHAT: what a GPU does, by the library's public
 * functions, as lines "name | value"; scripts/gpu-report makes a report of them.  KERNELS
 * is what a compiler made of examples/gpu_kernels.cu.  WHAT:
 *
 * launch    time of hal_submit, and from there to the end, of a launch of one block; of
 *           the same by hand, without the library, and what is over
 * stop      how long FOLD takes, or DRAIN where there is no FOLD, while blocks of about
 *           0.1, 0.5 and 2 ms run
 * endless   how long FOLD takes of a launch that would run for seconds, and is then
 * dropped given_up  with hang_ms: when a launch that runs for a second is told to have
 * failed beside    time of a launch alone, beside a long one in its partition, and in
 * another product   a product of 256 x 256 numbers: what preempt=block costs, beside
 * between policy=P  time of a launch beside a long one of a lower priority, under that
 * policy places    on how many multiprocessors a partition of each size runs, and whether
 * two partitions share one
 */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <time.h>

#include "examples/gpu_library.h"

/* Blocks: a device is full several times over; as many as can be stopped. */
enum { TIMES_MOST = 1000, WIDE = 2048, LONG = 65536, ROOM = 4 * LONG, IDS = 4096 };

/* No measurement takes longer, however slow the device is: then it is of fewer. */
#define BUDGET_NS UINT64_C(20000000000)

static struct hal_device *dev;
static struct hal_device_info info = {.size = sizeof(info)};
static struct hal_program *program;
static const char *target, *kernels;
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

/* Sorts them; the middle one. */
static uint64_t say(const char *name, uint64_t *ns, uint32_t count)
{
	const uint32_t half = count / 2, late = count - 1 - count / 100;

	qsort(ns, count, sizeof(*ns), order);
	printf("%s | p50 %.2f us, p99 %.2f us, of %u\n", name, (double)ns[half] / 1e3,
	       (double)ns[late] / 1e3, count);
	(void)fflush(stdout);
	return ns[half];
}

/* How long a block of so many rounds takes, as the device tells: the host may be late. */
static uint64_t block_takes(const struct tenant *t, uint64_t rounds)
{
	struct hal_stats before = {.size = sizeof(before)}, after = before;

	TRY(hal_queue_get_stats(t->queue, &before));
	wait_for(spin(t, rounds, 1));
	TRY(hal_queue_get_stats(t->queue, &after));
	return after.busy_ns - before.busy_ns;
}

/* Rounds of a block that takes about that long. */
static uint64_t rounds_of(const struct tenant *t, uint64_t ns)
{
	uint64_t rounds = 1000, took = 0;

	while (took < 20000000 && rounds < UINT64_C(1) << 40) {
		rounds *= 4;
		took = block_takes(t, rounds);
	}
	return rounds * ns / took + 1;
}

/* ---- what is measured -------------------------------------------------------------- */

/* The same launch by hand: as a program makes it that knows nothing of hal. */
struct by_hand {
	struct gpu_library library;
	void *module, *function, *stream;
	uint64_t memory;
	int n;
	void *params[4];
	int (*launch)(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
		      unsigned block_x, unsigned block_y, unsigned block_z,
		      unsigned shared, void *stream, void **params, void **extra);
	int (*wait)(void *stream);
};

/* What a compiler made, without the table in front of it. */
static void load_by_hand(struct by_hand *h)
{
	typedef int (*cuda_load_fn)(void **, const void *, unsigned, void *, void **);
	typedef int (*hip_load_fn)(void **, const void *);
	typedef int (*function_fn)(void **, void *, const char *);
	const struct gpu_library *l = &h->library;
	size_t size, n;
	char *image = gpu_image(kernels, &size);

	n = l->hip ? ((struct hal_rocm_image *)(void *)image)->code_bytes
		   : ((struct hal_cuda_image *)(void *)image)->module_bytes;
	if (l->hip)
		GPU_CALL(l, hip_load_fn, "hipModuleLoadData", &h->module,
			 image + size - n);
	else
		GPU_CALL(l, cuda_load_fn, "cuModuleLoadDataEx", &h->module,
			 image + size - n, 0, NULL, NULL);
	free(image);
	GPU_CALL(l, function_fn, l->hip ? "hipModuleGetFunction" : "cuModuleGetFunction",
		 &h->function, h->module, "vector_add");
	if (!l->hip)
		GPU_CALL(l, gpu_with_fn, "cuFuncLoad", h->function);
}

static void begin_by_hand(struct by_hand *h)
{
	h->library = gpu_start(target);
	load_by_hand(h);
	h->memory = gpu_allocate(&h->library, ROOM);
	h->stream = gpu_stream(&h->library);
	h->n = 256;
	h->params[0] = h->params[1] = h->params[2] = &h->memory;
	h->params[3] = &h->n;
	GPU_FIND(&h->library, &h->launch,
		 h->library.hip ? "hipModuleLaunchKernel" : "cuLaunchKernel");
	GPU_FIND(&h->library, &h->wait,
		 h->library.hip ? "hipStreamSynchronize" : "cuStreamSynchronize");
}

static void end_by_hand(struct by_hand *h)
{
	gpu_give_back(&h->library, h->stream, h->memory);
	GPU_CALL(&h->library, gpu_with_fn,
		 h->library.hip ? "hipModuleUnload" : "cuModuleUnload", h->module);
	gpu_end(&h->library);
}

static void launch_by_hand(const struct by_hand *h)
{
	if (h->launch(h->function, 1, 1, 1, GPU_BLOCK, 1, 1, 0, h->stream,
		      (void **)h->params, NULL))
		gpu_failed("a launch by hand");
}

static void measure_launch(void)
{
	static uint64_t submit[TIMES_MOST], all[TIMES_MOST];
	struct tenant t = tenant(0);
	uint64_t ours[2], bare[2];
	struct by_hand h;
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
	ours[0] = say("hal_submit of a launch", submit, times);
	ours[1] = say("launch of one block, to the end", all, times);
	end(&t);
	begin_by_hand(&h);
	for (i = 0; i < times + 10; i++) {
		const uint64_t begin = now_ns();
		const uint32_t at = i < 10 ? 0 : i - 10;

		launch_by_hand(&h);
		submit[at] = now_ns() - begin;
		if (h.wait(h.stream))
			gpu_failed("a wait by hand");
		all[at] = now_ns() - begin;
	}
	end_by_hand(&h);
	bare[0] = say("launch by hand", submit, times);
	bare[1] = say("launch of one block by hand, to the end", all, times);
	printf("hal_submit minus a launch by hand, p50 | %.2f us\n",
	       ((double)ours[0] - (double)bare[0]) / 1e3);
	printf("launch of one block minus that by hand, to the end, p50 | %.2f us\n",
	       ((double)ours[1] - (double)bare[1]) / 1e3);
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
	(void)say(name, took, n);
}

static void measure_stop(void)
{
	struct tenant t = tenant(0);

	stop_while(&t, 100000);
	stop_while(&t, 500000);
	stop_while(&t, 2000000);
	end(&t);
}

/* Stopped, and then dropped with its queue: it would have run for seconds. */
static void measure_endless(void)
{
	const uint64_t block_ns = 2000000, until = now_ns() + BUDGET_NS;
	static uint64_t took[TIMES_MOST];
	struct hal_queue_desc plain = {.size = sizeof(plain)};
	struct tenant t = tenant(0);
	const uint64_t rounds = rounds_of(&t, block_ns);
	struct hal_point quiet;
	uint32_t n = 0;

	if (!(info.suspend_modes >> HAL_SUSPEND_FOLD & 1))
		gpu_failed("endless: there is no FOLD without preempt=block");
	while (n < times && now_ns() < until) {
		const uint64_t begin = now_ns();

		(void)spin(&t, rounds, LONG);
		while (now_ns() - begin < 3 * block_ns)
			TRY(hal_device_poll(dev, 0));
		took[n] = now_ns();
		TRY(hal_queue_suspend(t.queue, HAL_SUSPEND_FOLD, &quiet));
		wait_for(quiet);
		took[n] = now_ns() - took[n];
		n++;
		TRY(hal_queue_destroy(t.queue));
		TRY(hal_queue_create(t.part, &plain, &t.queue));
	}
	(void)say("FOLD of a launch of 65536 blocks of 2.0 ms, then dropped", took, n);
	end(&t);
}

/* From submission to the error. */
static void measure_given_up(void)
{
	enum { TIMES = 3 };
	struct hal_queue_desc plain = {.size = sizeof(plain)};
	struct tenant t = tenant(0);
	const uint64_t rounds = rounds_of(&t, UINT64_C(10000000000));
	uint64_t took[TIMES];
	struct hal_point done;
	uint32_t n;

	for (n = 0; n < TIMES; n++) {
		took[n] = now_ns();
		done = spin(&t, rounds, 1);
		if (hal_wait(&done, 1, 0, HAL_FOREVER) != -EIO)
			gpu_failed("given_up: it was not given up: hang_ms=200?");
		took[n] = now_ns() - took[n];
		TRY(hal_queue_destroy(t.queue));
		TRY(hal_queue_create(t.part, &plain, &t.queue));
		wait_for(add(&t)); /* others go on */
	}
	(void)say("a launch of 10 s, to its being given up", took, TIMES);
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
	(void)say(name, took, n);
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
	(void)say("product of 256 x 256, to the end", took, times);
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
	} all[] = {{"launch", measure_launch},   {"stop", measure_stop},
		   {"endless", measure_endless}, {"given_up", measure_given_up},
		   {"beside", measure_beside},   {"product", measure_product},
		   {"places", measure_places}};
	const char *policy = NULL, *fewer = getenv("HAL_GPU_TIMES");
	size_t i, count = sizeof(all) / sizeof(all[0]);

	if (argc == 4 && strncmp(argv[3], "policy=", 7) == 0)
		policy = argv[3] + 7;
	for (i = 0; argc == 4 && !policy && i < count; i++)
		if (strcmp(all[i].name, argv[3]) == 0)
			break;
	if (argc != 4 || i == count) {
		(void)fprintf(stderr,
			      "usage: hal-gpu-measure TARGET KERNELS "
			      "launch|stop|endless|given_up|beside|product|places|"
			      "policy=NAME\n");
		return 2;
	}
	if (fewer && strtoul(fewer, NULL, 10) - 1 < TIMES_MOST)
		times = (uint32_t)strtoul(fewer, NULL, 10);
	target = argv[1];
	kernels = argv[2];
	TRY(hal_open(target, NULL, &dev));
	TRY(hal_device_get_info(dev, &info));
	program = gpu_load(dev, kernels);
	if (policy)
		measure_policy(policy);
	else
		all[i].measure();
	TRY(hal_program_unload(program));
	TRY(hal_close(dev));
	return 0;
}

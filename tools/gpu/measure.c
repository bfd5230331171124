/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hal-gpu-measure TARGET KERNELS WHAT: what a GPU does, by the library's public
 * functions, as lines "name | value" and "figure gpu.NAME NUMBER"; scripts/gpu-report
 * makes a report of them.  KERNELS is what a compiler made of examples/gpu_kernels.cu.
 * WHAT:
 *
 * launch    time of hal_submit, and from there to the end, of a launch of one block, and
 *           launches a second; the same by hand, without the library, and what is over
 * stop      how long FOLD takes, or DRAIN where there is no FOLD, while blocks of about
 *           0.1, 0.5 and 2 ms run
 * endless   how long FOLD takes of as many blocks as a launch that stops may have, which
 *           is then dropped
 * given_up  with hang_ms: when a launch that runs for seconds is told to have failed
 * beside    a launch alone, and beside another tenant that is always busy: in its
 *           partition and in another, or where there is but one at the same priority and
 *           below; and what the other one gets done
 * channels  a launch beside 7 and 31 other queues that are always busy, each with few
 *           blocks: queues that share a hardware channel wait for one another
 * entry     what preempt=block costs long blocks and short ones; TARGET is without it
 * slices    what slices of 50 us cost long blocks and short ones, and how many calls of
 *           the driver; TARGET is with preempt=block
 * policies  a launch beside such a tenant that is less urgent, under every policy
 * graphs    with graphs=yes and inflight=16: eight recorded launches beside eight single
 *           ones
 * local     beside a launch of 50 ms: how long loading a kernel with much local memory
 *           takes, and its first launch; CUDA alone
 * places    on how many multiprocessors a partition of each size runs, and whether two
 *           partitions share one
 * vmm       with memory=vmm: how long buffers of 64 KiB, 2 and 64 MiB take to be made and
 *           given back, and whether kernels' sums in many of them are right
 * bounds    what bounds=yes costs long blocks and short ones; TARGET is with memory=vmm,
 *           without bounds
 * stray     with memory=vmm and bounds=yes: whether a sum that reaches behind its
 *           partition's range is told, and changes nothing of a neighbour's
 * storm     launches of the program's own, in no partition: how many of their blocks run
 *           on a partition's multiprocessors; TARGET with remainder=1 or more; CUDA alone
 * witness   the throughput of two partitions of half of the units each, of that of one;
 *           two queues of one partition are the control
 * setup     a launch while another thread creates and destroys buffers
 * copies    queued copies of host memory, each way, and how long a round of upload,
 * kernel and download takes, of the longest of them: in turn, and by three queues
 */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <time.h>

#include "measure.h"

enum { WIDE = 2048, IDS = 4096 };

const char *target, *kernels;
uint32_t times = TIMES_MOST;
struct gpu gpu;

uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

struct gpu gpu_open_with(const char *of, const char *option)
{
	/* Room for what launches by hand have, too; graphs=yes takes as many as are let
	 * in. */
	const char *const deep[] = {"hal.queue_depth=1024", option, "hal.inflight=16",
				    "hal.partition_inflight=16", NULL};
	const char *const few[] = {deep[0], option, NULL};
	struct gpu g = {.info = {.size = sizeof(g.info)}};

	TRY(hal_open(of, strstr(of, "inflight=16") ? deep : few, &g.dev));
	TRY(hal_device_get_info(g.dev, &g.info));
	g.program = gpu_load(g.dev, kernels);
	return g;
}

struct gpu gpu_open(const char *of)
{
	return gpu_open_with(of, "hal.queue_depth=1024");
}

void gpu_close(const struct gpu *g)
{
	TRY(hal_program_unload(g->program));
	TRY(hal_close(g->dev));
}

struct tenant tenant_on(const struct gpu *g, uint32_t units)
{
	struct hal_partition_desc some = {
		.size = sizeof(some), .units_floor = units ? units : g->info.unit_cols};
	struct hal_queue_desc plain = {.size = sizeof(plain)};
	struct tenant t = {.gpu = g, .units = some.units_floor};

	TRY(hal_partition_create(g->dev, &some, &t.part));
	TRY(hal_queue_create(t.part, &plain, &t.queue));
	t.mem = gpu_buffer(t.part, ROOM);
	return t;
}

void end(struct tenant *t)
{
	end_second(t);
	TRY(hal_partition_destroy(t->part));
}

struct tenant second(const struct tenant *t, const struct hal_queue_desc *desc)
{
	struct tenant other = *t;

	TRY(hal_queue_create(t->part, desc, &other.queue));
	other.mem = gpu_buffer(t->part, ROOM);
	return other;
}

void end_second(const struct tenant *t)
{
	TRY(hal_buffer_destroy(t->mem));
	TRY(hal_queue_destroy(t->queue));
}

void wait_for(struct hal_point p)
{
	TRY(hal_wait(&p, 1, 0, HAL_FOREVER));
}

struct hal_point add(const struct tenant *t)
{
	struct hal_arg args[] = {{.buffer = t->mem},
				 {.buffer = t->mem},
				 {.buffer = t->mem},
				 {.offset = 256}};

	return gpu_launch(t->queue, t->gpu->program, "vector_add", args, 4, 1);
}

struct hal_point product(const struct tenant *t)
{
	enum { N = 256 };
	struct hal_arg args[] = {{.buffer = t->mem},
				 {.buffer = t->mem},
				 {.buffer = t->mem},
				 {.offset = N}};

	return gpu_launch(t->queue, t->gpu->program, "product", args, 4,
			  N * N / GPU_BLOCK);
}

struct hal_point spin(const struct tenant *t, uint64_t rounds, uint32_t blocks)
{
	struct hal_arg args[] = {{.buffer = t->mem}, {.offset = rounds}};

	return gpu_launch(t->queue, t->gpu->program, "long_one", args, 2, blocks);
}

/* ---- numbers ----------------------------------------------------------------------- */

static int order(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

void figure(const char *name, const char *unit, double value)
{
	printf("figure gpu.%s_%s %.6g\n", name, unit, value);
	(void)fflush(stdout);
}

uint64_t say(const char *text, const char *name, uint64_t *ns, uint32_t count)
{
	const uint32_t half = count / 2, late = count - 1 - count / 100;

	if (!count) {
		printf("%s | not measured: the time is up\n", text);
		return 0;
	}
	qsort(ns, count, sizeof(*ns), order);
	printf("%s | p50 %.2f us, p99 %.2f us, of %u\n", text, (double)ns[half] / 1e3,
	       (double)ns[late] / 1e3, count);
	figure(name, "p50_us", (double)ns[half] / 1e3);
	figure(name, "p99_us", (double)ns[late] / 1e3);
	return ns[half];
}

uint64_t busy_of(const struct tenant *t)
{
	struct hal_stats stats = {.size = sizeof(stats)};

	TRY(hal_queue_get_stats(t->queue, &stats));
	return stats.busy_ns;
}

static uint64_t takes(const struct tenant *t, uint64_t rounds, uint32_t blocks)
{
	const uint64_t before = busy_of(t);

	wait_for(spin(t, rounds, blocks));
	return busy_of(t) - before + 1;
}

uint64_t rounds_of(const struct tenant *t, uint64_t ns)
{
	uint64_t rounds = 1000, took = 0;

	while (took < 20000000 && rounds < UINT64_C(1) << 40) {
		rounds *= 4;
		took = takes(t, rounds, 1);
	}
	return rounds * ns / took + 1;
}

/* Blocks that the device has at a time; 1: not known. */
static uint32_t resident(void)
{
	enum { MULTIPROCESSORS = 16, BLOCKS_OF_ONE = 106 };
	int (*get)(int *value, int attribute, int device);
	static int of_all, of_one;
	struct gpu_library l;

	if (!of_all && strncmp(target, "cuda", 4) == 0) {
		l = gpu_start(target);
		GPU_FIND(&l, &get, "cuDeviceGetAttribute");
		if (get(&of_all, MULTIPROCESSORS, l.device) ||
		    get(&of_one, BLOCKS_OF_ONE, l.device))
			of_one = 0;
		gpu_end(&l);
	}
	return of_all > 0 && of_one > 0 ? (uint32_t)(of_all * of_one) : 1;
}

uint64_t rounds_among(const struct tenant *t, uint64_t ns)
{
	const uint32_t blocks = resident() * t->units / gpu.info.unit_cols;
	uint64_t rounds = 1000, took = 0;

	while (took < 5000000 && rounds < UINT64_C(1) << 40) {
		rounds *= 4;
		took = takes(t, rounds, blocks ? blocks : 1);
	}
	return rounds * ns / took + 1;
}

uint32_t blocks_of(const struct tenant *t, uint64_t rounds, uint64_t ns)
{
	uint64_t blocks = 256, took = takes(t, rounds, (uint32_t)blocks);

	while (took < ns && blocks < LONG) {
		blocks *= 2;
		took = takes(t, rounds, (uint32_t)blocks);
	}
	blocks = blocks * ns / took + 1;
	return blocks < LONG ? (uint32_t)blocks : LONG;
}

/* ---- what is measured -------------------------------------------------------------- */

/* Moments spread over a time, as blocks begin and end together. */
static uint64_t spread(uint32_t n, uint64_t ns)
{
	return (uint64_t)n * 618 % 1000 * ns / 1000;
}

static void stop_while(const struct tenant *t, uint64_t block_ns)
{
	const bool folds = gpu.info.suspend_modes >> HAL_SUSPEND_FOLD & 1;
	const uint64_t rounds = rounds_among(t, block_ns);
	/* The whole device is full, several times over. */
	const uint32_t blocks = blocks_of(t, rounds, 8 * block_ns);
	const uint64_t until = now_ns() + BUDGET_NS;
	static uint64_t took[TIMES_MOST], rest[TIMES_MOST];
	struct hal_point done, quiet;
	char text[96], name[32];
	uint32_t n = 0;

	while (n < times && now_ns() < until) {
		const uint64_t begin = now_ns();

		done = spin(t, rounds, blocks);
		while (now_ns() - begin < 2 * block_ns + spread(n, 2 * block_ns))
			TRY(hal_device_poll(gpu.dev, 0));
		took[n] = now_ns();
		TRY(hal_queue_suspend(
			t->queue, folds ? HAL_SUSPEND_FOLD : HAL_SUSPEND_DRAIN, &quiet));
		wait_for(quiet);
		took[n] = now_ns() - took[n];
		TRY(hal_queue_resume(t->queue));
		rest[n] = now_ns();
		wait_for(done);
		rest[n] = now_ns() - rest[n];
		n++;
	}
	(void)snprintf(text, sizeof(text), "%s, %u blocks of %.1f ms",
		       folds ? "FOLD" : "DRAIN (no FOLD)", blocks,
		       (double)block_ns / 1e6);
	(void)snprintf(name, sizeof(name), "%s.%uus", folds ? "fold" : "drain",
		       (unsigned)(block_ns / 1000));
	(void)say(text, name, took, n);
	printf("such a launch, time of the device | %.2f us\n",
	       (double)takes(t, rounds, blocks) / 1e3);
	if (!folds)
		return;
	(void)snprintf(name, sizeof(name), "fold.%uus.rest", (unsigned)(block_ns / 1000));
	(void)say("its rest, from the resume to the end", name, rest, n);
}

static void measure_stop(void)
{
	struct tenant t = tenant_on(&gpu, 0);

	stop_while(&t, 100000);
	stop_while(&t, 500000);
	stop_while(&t, 2000000);
	end(&t);
}

/* Stopped, and then dropped with its queue. */
static void measure_endless(void)
{
	const uint64_t block_ns = 2000000, until = now_ns() + BUDGET_NS;
	static uint64_t took[TIMES_MOST];
	struct hal_queue_desc plain = {.size = sizeof(plain)};
	struct tenant t = tenant_on(&gpu, 0);
	const uint64_t rounds = rounds_among(&t, block_ns);
	struct hal_point quiet;
	uint32_t n = 0;

	if (!(gpu.info.suspend_modes >> HAL_SUSPEND_FOLD & 1))
		gpu_failed("endless: there is no FOLD without preempt=block");
	while (n < times && now_ns() < until) {
		const uint64_t begin = now_ns();

		(void)spin(&t, rounds, LONG);
		while (now_ns() - begin < 2 * block_ns + spread(n, 2 * block_ns))
			TRY(hal_device_poll(gpu.dev, 0));
		took[n] = now_ns();
		TRY(hal_queue_suspend(t.queue, HAL_SUSPEND_FOLD, &quiet));
		wait_for(quiet);
		took[n] = now_ns() - took[n];
		n++;
		TRY(hal_queue_destroy(t.queue));
		TRY(hal_queue_create(t.part, &plain, &t.queue));
	}
	(void)say("FOLD of a launch of 65536 blocks of 2.0 ms, then dropped",
		  "fold.65536_blocks", took, n);
	end(&t);
}

/* From submission to the error. */
static void measure_given_up(void)
{
	enum { TIMES = 3 };
	struct hal_queue_desc plain = {.size = sizeof(plain)};
	struct tenant t = tenant_on(&gpu, 0);
	const uint64_t rounds = rounds_of(&t, UINT64_C(3000000000));
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
	(void)say("a launch of 3 s, to its being given up", "given_up", took, TIMES);
	end(&t);
}

uint32_t where(const struct tenant *t, bool *on)
{
	static uint32_t ids[WIDE];
	struct hal_arg args[] = {{.buffer = t->mem}};
	uint32_t i, n = 0;

	wait_for(gpu_launch(t->queue, t->gpu->program, "where", args, 1, WIDE));
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

	for (units = 1; units <= gpu.info.unit_cols; units++) {
		struct tenant a = tenant_on(&gpu, units), b;
		bool on_a[IDS] = {false}, on_b[IDS] = {false};
		const uint32_t n = where(&a, on_a);

		if (n * 1000 / units > most)
			most = n * 1000 / units;
		if (n * 1000 / units < least)
			least = n * 1000 / units;
		if (units < gpu.info.unit_cols) {
			b = tenant_on(&gpu, gpu.info.unit_cols - units);
			(void)where(&b, on_b);
			end(&b);
		}
		for (i = 0; i < IDS; i++)
			shared += on_a[i] && on_b[i];
		end(&a);
	}
	printf("multiprocessors of a unit, in partitions of 1 to %u | %.2f to %.2f\n",
	       gpu.info.unit_cols, least / 1e3, most / 1e3);
	printf("multiprocessors that two partitions shared, all sizes | %u\n", shared);
	figure("places.unit", "multiprocessors", most / 1e3);
	figure("places.shared", "multiprocessors", shared);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*measure)(void);
	} all[] = {{"launch", measure_launch},     {"stop", measure_stop},
		   {"endless", measure_endless},   {"given_up", measure_given_up},
		   {"beside", measure_beside},     {"entry", measure_entry},
		   {"channels", measure_channels}, {"policies", measure_policies},
		   {"graphs", measure_graphs},     {"local", measure_local},
		   {"places", measure_places},     {"vmm", measure_vmm},
		   {"bounds", measure_bounds},     {"stray", measure_stray},
		   {"setup", measure_setup},       {"copies", measure_copies},
		   {"slices", measure_slices},     {"storm", measure_storm},
		   {"witness", measure_witness}};
	const char *fewer = getenv("HAL_GPU_TIMES");
	size_t i, count = sizeof(all) / sizeof(all[0]);

	for (i = 0; argc == 4 && i < count; i++)
		if (strcmp(all[i].name, argv[3]) == 0)
			break;
	if (argc != 4 || i == count) {
		(void)fprintf(stderr,
			      "usage: hal-gpu-measure TARGET KERNELS "
			      "launch|stop|endless|given_up|beside|channels|"
			      "entry|slices|"
			      "policies|graphs|local|places|vmm|bounds|stray|setup|"
			      "copies|storm|witness\n");
		return 2;
	}
	if (fewer && strtoul(fewer, NULL, 10) - 1 < TIMES_MOST)
		times = (uint32_t)strtoul(fewer, NULL, 10);
	/* As docs/cuda.md says; before the driver is started, and any thread. */
	/* NOLINTNEXTLINE(concurrency-mt-unsafe): one thread */
	(void)setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
	target = argv[1];
	kernels = argv[2];
	gpu = gpu_open(target);
	all[i].measure();
	gpu_close(&gpu);
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Service classes on a GPU: the priority of a queue's stream, and launches of best effort
 * that stop between blocks for latency-critical work. */
#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <hal/hal.h>

#include "tests/fakes/cuda/image.h"
#include "tests/fakes/gpu/stand_in.h"

#define OK(call)                                                                         \
	do {                                                                             \
		int ok_ = (call);                                                        \
		if (ok_ != 0)                                                            \
			fail_msg("%s is %d: %s", #call, ok_, hal_last_error());          \
	} while (0)

static struct hal_queue *queue_of(struct hal_partition *part, uint16_t service_class)
{
	struct hal_queue_desc d = HAL_INIT(hal_queue_desc);
	struct hal_queue *q;

	d.service_class = service_class;
	OK(hal_queue_create(part, &d, &q));
	return q;
}

/* Launch blocks of ns each, which add 1 each to the first word of buf. */
static struct hal_point launch(struct hal_queue *q, struct hal_kernel *work,
			       struct hal_buffer *buf, uint32_t blocks, uint64_t ns)
{
	struct hal_submit_desc d = HAL_INIT(hal_submit_desc);
	const struct hal_arg args[2] = {{.buffer = buf, .bytes = 4096}, {.offset = ns}};
	struct hal_cmd cmd = hal_cmd_launch(work, args, 2);
	struct hal_point done;

	cmd.launch.groups[0] = blocks;
	d.cmds = &cmd;
	d.cmd_count = 1;
	OK(hal_submit(q, &d, &done));
	return done;
}

/* A device with kernel work and a partition that has two queues and two buffers. */
struct world {
	const struct gpu_stand_in *driver;
	struct hal_device *dev;
	struct hal_program *prog;
	struct hal_kernel *work;
	struct hal_partition *part;
	struct hal_queue *first, *second;
	struct hal_buffer *buf, *other;
};

static void open_device(struct world *w, const char *target, const char *const *options)
{
	static const char *const kernels[] = {"work:m8"};
	size_t size;
	void *image = make_cuda_image(kernels, 1, 1, &size);

	OK(hal_open(target, options, &w->dev));
	w->driver = dlsym(dlopen("libcuda.so.1", RTLD_NOW), GPU_STAND_IN_SYMBOL);
	assert_non_null(w->driver);
	OK(hal_program_load(w->dev, image, size, &w->prog));
	OK(hal_kernel_find(w->prog, "work", &w->work));
	free(image);
}

static void close_device(struct world *w)
{
	OK(hal_program_unload(w->prog));
	OK(hal_close(w->dev));
}

/* Open the device, with queues of these classes. */
static void open_world(struct world *w, const char *target, const char *const *options,
		       uint16_t first, uint16_t second)
{
	struct hal_partition_desc pd = HAL_INIT(hal_partition_desc);
	struct hal_buffer_desc bd = HAL_INIT(hal_buffer_desc);

	open_device(w, target, options);
	pd.units_floor = 1;
	bd.bytes = 4096;
	OK(hal_partition_create(w->dev, &pd, &w->part));
	OK(hal_buffer_create(w->part, &bd, &w->buf));
	OK(hal_buffer_create(w->part, &bd, &w->other));
	w->first = queue_of(w->part, first);
	w->second = queue_of(w->part, second);
}

static void close_world(struct world *w)
{
	OK(hal_queue_destroy(w->first));
	OK(hal_queue_destroy(w->second));
	OK(hal_buffer_destroy(w->buf));
	OK(hal_buffer_destroy(w->other));
	OK(hal_partition_destroy(w->part));
	close_device(w);
}

/* Return the priority of the stream that a fill of q ran on. */
static int32_t level_of(const struct world *w, struct hal_queue *q)
{
	struct hal_submit_desc sd = HAL_INIT(hal_submit_desc);
	struct hal_cmd fill = hal_cmd_fill(w->buf, 0, 4096, 1);
	struct gpu_stand_in_job jobs[8];
	struct hal_point done;

	while (w->driver->jobs(jobs, 8) != 0)
		;
	sd.cmds = &fill;
	sd.cmd_count = 1;
	OK(hal_submit(q, &sd, &done));
	OK(hal_wait(&done, 1, 0, HAL_FOREVER));
	assert_int_equal(w->driver->jobs(jobs, 8), 1);
	assert_string_equal(jobs[0].what, "fill");
	return jobs[0].priority;
}

static void streams(void **state)
{
	static const char *const target = "cuda:0?clock=virtual&partitions=none";
	struct world w;

	(void)state;
	open_world(&w, target, NULL, HAL_CLASS_LATENCY, HAL_CLASS_NORMAL);
	assert_int_equal(level_of(&w, w.first), -5);
	assert_int_equal(level_of(&w, w.second), -2);
	close_world(&w);
	open_world(&w, target, NULL, HAL_CLASS_BEST_EFFORT, HAL_CLASS_NORMAL);
	assert_int_equal(level_of(&w, w.first), -2);
	close_world(&w);
}

/* The device reports no bound for FOLD.  The engine uses it all the same, without being
 * told to, because best effort has more to run than a few blocks. */
static void stops_between_blocks(void **state)
{
	enum { UNITS = 46, BLOCK_NS = 10000, BLOCKS = 200 * UNITS };
	struct hal_stats stats = HAL_INIT(hal_stats);
	struct hal_point done[2];
	struct world w;
	uint32_t count;
	uint64_t at;

	(void)state;
	open_world(&w, "cuda:1?clock=virtual&partitions=none&preempt=block", NULL,
		   HAL_CLASS_BEST_EFFORT, HAL_CLASS_LATENCY);
	done[0] = launch(w.first, w.work, w.buf, BLOCKS, BLOCK_NS);
	assert_true(hal_device_poll(w.dev, 20 * BLOCK_NS) >= 0);
	at = hal_device_get_time(w.dev);
	done[1] = launch(w.second, w.work, w.other, 1, BLOCK_NS);
	OK(hal_wait(&done[1], 1, 0, HAL_FOREVER));
	assert_in_range(hal_device_get_time(w.dev) - at, BLOCK_NS, 4 * BLOCK_NS);
	OK(hal_wait(&done[0], 1, 0, HAL_FOREVER));
	OK(hal_queue_get_stats(w.first, &stats));
	assert_int_equal(stats.suspends, 1);
	assert_true(stats.stop_max_ns[HAL_SUSPEND_FOLD] > 0);
	OK(hal_buffer_read(w.buf, 0, &count, sizeof(count)));
	assert_int_equal(count, BLOCKS);
	close_world(&w);
}

/* Without options of the core the device has as many launches of a queue, and of a
 * partition, as the backend's own option allows: no fewer by a limit of the core's. */
static void as_many_as_the_backend_allows(const char *target, uint64_t most)
{
	static const char *const options[] = {"hal.queue_depth=1024", NULL};
	struct hal_point done;
	struct world w;
	uint64_t before;

	open_world(&w, target, options, HAL_CLASS_NORMAL, HAL_CLASS_NORMAL);
	before = w.driver->calls("cuLaunchKernel");
	for (uint32_t i = 0; i < 100; i++)
		done = launch(w.first, w.work, w.buf, 1, 1000000);
	assert_true(hal_device_poll(w.dev, 1000) >= 0);
	assert_int_equal(w.driver->calls("cuLaunchKernel") - before, most);
	OK(hal_wait(&done, 1, 0, HAL_FOREVER));
	close_world(&w);
}

static void limits_follow_the_backend(void **state)
{
	(void)state;
	as_many_as_the_backend_allows("cuda:0?clock=virtual&partitions=none", 32);
	as_many_as_the_backend_allows("cuda:0?clock=virtual&partitions=none&inflight=64",
				      64);
	as_many_as_the_backend_allows(
		"cuda:0?clock=virtual&partitions=none&inflight=64&hal.inflight=3", 3);
	as_many_as_the_backend_allows(
		"cuda:0?clock=virtual&partitions=none&preempt=block", 8);
}

/* Best effort holds all places of a partition with launches of 2 ms.  Return how long a
 * launch of one short block takes, of a queue of that class. */
static uint64_t short_launch(uint16_t service_class)
{
	enum { UNITS = 46, BLOCK_NS = 100000, SHORT_NS = 20000, WAVES = 20, PLACES = 4 };
	static const char *const options[] = {"hal.inflight=4",
					      "hal.partition_inflight=4", NULL};
	struct hal_point last, done;
	struct world w;
	uint64_t at, took;

	open_world(&w, "cuda:1?clock=virtual&partitions=none", options,
		   HAL_CLASS_BEST_EFFORT, service_class);
	for (uint32_t i = 0; i < 2 * PLACES; i++)
		last = launch(w.first, w.work, w.buf, WAVES * UNITS, BLOCK_NS);
	assert_true(hal_device_poll(w.dev, 5 * BLOCK_NS / 2) >= 0);
	at = hal_device_get_time(w.dev);
	done = launch(w.second, w.work, w.other, 1, SHORT_NS);
	OK(hal_wait(&done, 1, 0, HAL_FOREVER));
	took = hal_device_get_time(w.dev) - at;
	OK(hal_wait(&last, 1, 0, HAL_FOREVER));
	close_world(&w);
	return took;
}

/* A latency-critical launch waits for blocks that have begun, others for a launch. */
static void has_a_place(void **state)
{
	(void)state;
	assert_in_range(short_launch(HAL_CLASS_LATENCY), 20000, 150000);
	assert_true(short_launch(HAL_CLASS_NORMAL) > 1000000);
}

/* A long launch of a queue of that class, alone or in a recorded sequence; 1 ms later a
 * short one of class normal.  Return how many launches the driver was given; *took: how
 * long the short one took. */
static uint64_t long_launch(const char *target, uint16_t service_class, bool recorded,
			    uint64_t *took)
{
	enum { BLOCKS = 92000, BLOCK_NS = 10000, SHORT_NS = 20000 };
	struct hal_submit_desc sd = HAL_INIT(hal_submit_desc);
	struct hal_arg args[2] = {{.bytes = 4096}, {.offset = BLOCK_NS}};
	struct hal_sequence *sequence;
	struct hal_point last, done;
	struct hal_cmd cmd;
	struct world w;
	uint64_t before;
	uint32_t count;

	open_world(&w, target, NULL, service_class, HAL_CLASS_NORMAL);
	args[0].buffer = w.buf;
	cmd = hal_cmd_launch(w.work, args, 2);
	cmd.launch.groups[0] = BLOCKS;
	sd.cmds = &cmd;
	sd.cmd_count = 1;
	before = w.driver->calls("cuLaunchKernel");
	if (recorded) {
		OK(hal_sequence_create(w.part, &sd, &sequence));
		OK(hal_sequence_submit(w.first, sequence, NULL, &last));
	} else {
		OK(hal_submit(w.first, &sd, &last));
	}
	assert_true(hal_device_poll(w.dev, 1000000) >= 0);
	*took = hal_device_get_time(w.dev);
	done = launch(w.second, w.work, w.other, 1, SHORT_NS);
	OK(hal_wait(&done, 1, 0, HAL_FOREVER));
	*took = hal_device_get_time(w.dev) - *took;
	OK(hal_wait(&last, 1, 0, HAL_FOREVER));
	before = w.driver->calls("cuLaunchKernel") - before;
	OK(hal_buffer_read(w.buf, 0, &count, sizeof(count)));
	assert_int_equal(count, BLOCKS);
	if (recorded)
		OK(hal_sequence_destroy(sequence));
	close_world(&w);
	return before;
}

/* Best effort is cut, recorded or not; no other class is, nor anything with slice_us=0.
 */
static void is_cut(void **state)
{
	static const char *const target =
		"cuda:1?clock=virtual&partitions=none&preempt=block";
	uint64_t took;

	(void)state;
	assert_true(long_launch(target, HAL_CLASS_BEST_EFFORT, false, &took) > 400);
	assert_in_range(took, 20000, 120000);
	assert_true(long_launch(target, HAL_CLASS_BEST_EFFORT, true, &took) > 400);
	assert_in_range(took, 20000, 120000);
	assert_int_equal(long_launch(target, HAL_CLASS_NORMAL, false, &took), 2);
	assert_true(took > 10000000);
	assert_int_equal(long_launch("cuda:1?clock=virtual&partitions=none&preempt=block&"
				     "slice_us=0",
				     HAL_CLASS_BEST_EFFORT, false, &took),
			 2);
	assert_true(took > 10000000);
}

/* A partition, a queue of it, and a buffer. */
struct side {
	struct hal_partition *part;
	struct hal_queue *q;
	struct hal_buffer *buf;
};

static struct side side_of(struct hal_device *dev, uint32_t floor, uint16_t service_class)
{
	struct hal_partition_desc pd = HAL_INIT(hal_partition_desc);
	struct hal_buffer_desc bd = HAL_INIT(hal_buffer_desc);
	struct side s;

	pd.units_floor = floor;
	pd.units_ceiling = 23;
	OK(hal_partition_create(dev, &pd, &s.part));
	s.q = queue_of(s.part, service_class);
	bd.bytes = 4096;
	OK(hal_buffer_create(s.part, &bd, &s.buf));
	return s;
}

static uint32_t units_of(const struct side *s)
{
	struct hal_partition_info info = HAL_INIT(hal_partition_info);

	OK(hal_partition_get_info(s->part, &info));
	return info.units;
}

/* Run wide launches of side, a few at a time, and return the fewest units that the other
 * one had meanwhile; *most is the most multiprocessors that a launch ran on. */
static uint32_t left_to(const struct side *other, const struct side *busy,
			const struct world *w, uint32_t *most)
{
	struct gpu_stand_in_job jobs[64];
	uint32_t least = UINT32_MAX, n, i, k, round, units;
	struct hal_point done;

	*most = 0;
	while (w->driver->jobs(jobs, 64) != 0)
		;
	for (round = 0; round < 30; round++) {
		done = launch(busy->q, w->work, busy->buf, 400, 20000);
		OK(hal_wait(&done, 1, 0, HAL_FOREVER));
		units = units_of(other);
		least = units < least ? units : least;
		n = w->driver->jobs(jobs, 64);
		for (i = 0; i < n; i++) {
			for (units = k = 0; k < 5; k++)
				units += (uint32_t)__builtin_popcountll(jobs[i].units[k]);
			*most = units > *most ? units : *most;
		}
	}
	return least;
}

/* Policy tidal lends a partition's units, but never its floor: with masks, on which the
 * partition's own launch finds it free at any time. */
static void lends_no_floor(const char *target)
{
	static const char *const options[] = {"policy.name=tidal", NULL};
	struct side low, high;
	struct world w;
	uint32_t most;

	open_device(&w, target, options);
	low = side_of(w.dev, 3, HAL_CLASS_BEST_EFFORT);
	high = side_of(w.dev, 5, HAL_CLASS_LATENCY);
	/* Units of two multiprocessors; there are 23. */
	assert_int_equal(left_to(&high, &low, &w, &most), 5);
	assert_int_equal(most, 2 * (23 - 5));
	assert_int_equal(left_to(&low, &high, &w, &most), 3);
	assert_int_equal(most, 2 * (23 - 3));
	OK(hal_queue_destroy(low.q));
	OK(hal_queue_destroy(high.q));
	OK(hal_buffer_destroy(low.buf));
	OK(hal_buffer_destroy(high.buf));
	OK(hal_partition_destroy(low.part));
	OK(hal_partition_destroy(high.part));
	close_device(&w);
}

static void keeps_its_floor(void **state)
{
	(void)state;
	lends_no_floor("cuda:1?clock=virtual&partitions=stream");
	lends_no_floor("cuda:1?clock=virtual&partitions=mask");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(is_cut),
		cmocka_unit_test(has_a_place),
		cmocka_unit_test(streams),
		cmocka_unit_test(limits_follow_the_backend),
		cmocka_unit_test(stops_between_blocks),
		cmocka_unit_test(keeps_its_floor),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

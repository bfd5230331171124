/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Level Zero backend through hal.h on the stand-in driver and virtual time: what its
 * units keep apart, priorities, groups, images, limits, time-outs, loss of the device.
 */
#define _GNU_SOURCE
#include "host.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>
#include <hal/levelzero.h>

enum { OBJECTS = 64, MS = 1000000 };

/* What a test made, put away by done(). */
struct world {
	struct hal_device *dev;
	struct hal_program *prog;
	struct hal_partition *part[8];
	struct hal_queue *queue[OBJECTS];
	struct hal_buffer *buf[OBJECTS];
	uint32_t parts, queues, bufs;
};

static struct world w;
static uint32_t live; /* at the driver, before */

#define OK(call)                                                                         \
	do {                                                                             \
		int ok_ = (call);                                                        \
		if (ok_)                                                                 \
			fail_msg("%s: %d %s", #call, ok_, hal_last_error());             \
	} while (0)

/* The call answers err, and the text has this in it. */
#define ERR(call, err, text)                                                             \
	do {                                                                             \
		int e_ = (call);                                                         \
		if (e_ != (err) || !strstr(hal_last_error(), text))                      \
			fail_msg("%s: %d, not %d; \"%s\" has no \"%s\"", #call, e_, err, \
				 hal_last_error(), text);                                \
	} while (0)

static void begin(const char *target)
{
	memset(&w, 0, sizeof(w));
	stand_in()->reset();
	live = stand_in()->live();
	OK(hal_open(target, NULL, &w.dev));
}

static void done(void)
{
	const char *text;

	while (w.queues)
		OK(hal_queue_destroy(w.queue[--w.queues]));
	while (w.bufs)
		OK(hal_buffer_destroy(w.buf[--w.bufs]));
	while (w.parts)
		OK(hal_partition_destroy(w.part[--w.parts]));
	OK(hal_program_unload(w.prog));
	OK(hal_close(w.dev));
	assert_int_equal(stand_in()->live(), live);
	if (stand_in()->misuse(&text))
		fail_msg("misuse of the driver: %s", text);
}

static struct hal_partition *part(uint32_t units)
{
	struct hal_partition_desc d = HAL_INIT(hal_partition_desc);

	d.units_floor = units;
	d.memory_bytes = 1 << 20;
	OK(hal_partition_create(w.dev, &d, &w.part[w.parts]));
	return w.part[w.parts++];
}

static struct hal_queue *queue(struct hal_partition *p, int32_t priority)
{
	struct hal_queue_desc d = HAL_INIT(hal_queue_desc);

	d.priority = priority;
	OK(hal_queue_create(p, &d, &w.queue[w.queues]));
	return w.queue[w.queues++];
}

static struct hal_buffer *buffer(struct hal_partition *p, uint64_t bytes)
{
	struct hal_buffer_desc d = HAL_INIT(hal_buffer_desc);

	d.bytes = bytes;
	OK(hal_buffer_create(p, &d, &w.buf[w.bufs]));
	return w.buf[w.bufs++];
}

/* Of the commands that have ended since the last call those of a name.  A new buffer is
 * cleared by copies. */
static uint32_t ended(const char *what, struct lz_stand_in_job *out, uint32_t max)
{
	struct lz_stand_in_job job;
	uint32_t n = 0;

	while (n < max && stand_in()->jobs(&job, 1) == 1)
		if (strcmp(job.what, what) == 0)
			out[n++] = job;
	return n;
}

static int load(const char *const *kernels, uint32_t count, uint32_t group_size,
		bool spirv)
{
	size_t size;
	void *image = spirv ? make_spirv(kernels, count, group_size, &size)
			    : make_image(kernels, count, group_size, &size);
	int err = hal_program_load(w.dev, image, size, &w.prog);

	free(image);
	return err;
}

static struct hal_kernel *kernel(const char *name)
{
	static const char *const all[] = {"work:m8", "iota:m4", "never:m", "spin:m",
					  "wild:m"};
	struct hal_kernel *k;

	if (!w.prog)
		OK(load(all, 5, 4, false));
	OK(hal_kernel_find(w.prog, name, &k));
	return k;
}

static int try_launch(struct hal_queue *q, const char *name, struct hal_buffer *b,
		      uint64_t value, uint32_t groups, struct hal_point *point)
{
	const struct hal_arg args[2] = {{b, 0, 0}, {NULL, value, 0}};
	struct hal_submit_desc d = HAL_INIT(hal_submit_desc);
	struct hal_kernel_info info = HAL_INIT(hal_kernel_info);
	struct hal_kernel *k = kernel(name);
	struct hal_cmd cmd;

	OK(hal_kernel_get_info(k, &info));
	cmd = hal_cmd_launch(k, args, info.arg_count);
	cmd.launch.groups[0] = groups;
	d.cmds = &cmd;
	d.cmd_count = 1;
	return hal_submit(q, &d, point);
}

static struct hal_point launch(struct hal_queue *q, const char *name,
			       struct hal_buffer *b, uint64_t value)
{
	struct hal_point point;

	OK(try_launch(q, name, b, value, 1, &point));
	return point;
}

static int wait_for(struct hal_point p)
{
	return hal_wait(&p, 1, 0, HAL_FOREVER);
}

static uint64_t busy_ns(struct hal_queue *q)
{
	struct hal_stats s = HAL_INIT(hal_stats);

	OK(hal_queue_get_stats(q, &s));
	return s.busy_ns;
}

/* ---- isolation of a partition ------------------------------------------------------ */

/* Engines 0 to 7 of two tiles: whoever has all of a tile is alone on it. */
static void isolation_is_the_partitions(void **state)
{
	static const struct {
		uint32_t before, units, isolation;
	} want[] = {
		{0, 4, HAL_ISOLATION_ENFORCED}, {4, 4, HAL_ISOLATION_ENFORCED},
		{0, 8, HAL_ISOLATION_ENFORCED}, {0, 3, HAL_ISOLATION_ADVISORY},
		{0, 5, HAL_ISOLATION_ADVISORY}, {1, 4, HAL_ISOLATION_ADVISORY},
		{4, 3, HAL_ISOLATION_ADVISORY},
	};
	size_t i;

	(void)state;
	begin("levelzero:1?clock=virtual&units=engine");
	for (i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
		struct hal_partition_info info = HAL_INIT(hal_partition_info);
		struct hal_partition_desc d = HAL_INIT(hal_partition_desc);
		struct hal_partition *before = NULL, *part = NULL;
		int err;

		if (want[i].before) {
			d.units_floor = want[i].before;
			OK(hal_partition_create(w.dev, &d, &before));
		}
		d.units_floor = want[i].units;
		OK(hal_partition_create(w.dev, &d, &part));
		OK(hal_partition_get_info(part, &info));
		assert_int_equal(info.compute_isolation, want[i].isolation);
		OK(hal_partition_destroy(part));
		/* What is asked for is had or refused. */
		d.min_isolation = HAL_ISOLATION_ENFORCED;
		part = NULL;
		err = hal_partition_create(w.dev, &d, &part);
		assert_int_equal(
			err, want[i].isolation == HAL_ISOLATION_ENFORCED ? 0 : -ENOTSUP);
		if (err)
			assert_non_null(strstr(hal_last_error(), "isolation enforced"));
		OK(hal_partition_destroy(part));
		OK(hal_partition_destroy(before));
	}
	done();
}

/* ---- what it says ------------------------------------------------------------------ */

static void says_what_it_is(void **state)
{
	static const struct {
		const char *target;
		uint32_t kind, units, isolation;
	} want[] = {
		{"levelzero:0?clock=virtual", HAL_KIND_GPU, 4, HAL_ISOLATION_ENFORCED},
		{"levelzero:0?clock=virtual&units=engine", HAL_KIND_GPU, 16,
		 HAL_ISOLATION_ENFORCED},
		{"levelzero:1?clock=virtual&units=tile", HAL_KIND_GPU, 2,
		 HAL_ISOLATION_ENFORCED},
		{"levelzero:1?clock=virtual&units=group", HAL_KIND_GPU, 4,
		 HAL_ISOLATION_ADVISORY},
		{"levelzero:1?clock=virtual&units=engine", HAL_KIND_GPU, 8,
		 HAL_ISOLATION_ADVISORY},
		{"levelzero:2?clock=virtual", HAL_KIND_GPU, 4, HAL_ISOLATION_ENFORCED},
		{"levelzero:3?clock=virtual", HAL_KIND_GPU, 1, HAL_ISOLATION_ADVISORY},
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
		struct hal_device_info info = HAL_INIT(hal_device_info);

		begin(want[i].target);
		OK(hal_device_get_info(w.dev, &info));
		assert_int_equal(info.kind, want[i].kind);
		assert_int_equal(info.unit_cols, want[i].units);
		assert_int_equal(info.compute_isolation, want[i].isolation);
		assert_true(info.caps & HAL_CAP_STAND_IN);
		assert_int_equal(strncmp(info.name, "HAL stand-in", 12), 0);
		assert_int_equal(strncmp(info.bus_id, "ffff:4", 6), 0);
		done();
	}
}

static void units_are_engines(void **state)
{
	struct hal_levelzero_unit u = HAL_INIT(hal_levelzero_unit);
	const struct hal_levelzero_extension *x;
	void *native;

	(void)state;
	begin("levelzero:1?clock=virtual&units=group");
	x = hal_device_get_extension(w.dev, "levelzero");
	native = hal_device_get_native(w.dev);
	assert_non_null(x);
	/* Tile 1, second compute group: group 1 only copies. */
	assert_int_equal(x->unit(native, 3, &u), 0);
	assert_int_equal(u.tile, 1);
	assert_int_equal(u.group, 2);
	assert_int_equal(u.engine, 0);
	assert_int_equal(u.engines, 2);
	assert_int_equal(x->unit(native, 4, &u), -EINVAL);
	done();
}

/* ---- isolation --------------------------------------------------------------------- */

/* Device time that 1 ms of work takes beside as much in the next partition. */
static uint64_t time_beside(const char *target, bool beside)
{
	struct hal_partition *p[2];
	struct hal_queue *q[2];
	struct hal_point done_at[2];
	uint64_t ns;
	int i;

	begin(target);
	for (i = 0; i < 2; i++) {
		p[i] = part(1);
		q[i] = queue(p[i], 0);
	}
	done_at[0] = launch(q[0], "work", buffer(p[0], 4), MS);
	done_at[1] = done_at[0];
	if (beside)
		done_at[1] = launch(q[1], "work", buffer(p[1], 4), MS);
	OK(hal_wait(done_at, 2, 0, HAL_FOREVER));
	ns = busy_ns(q[0]);
	done();
	return ns;
}

static void tiles_keep_apart(void **state)
{
	(void)state;
	assert_int_equal(time_beside("levelzero:1?clock=virtual&units=tile", false), MS);
	assert_int_equal(time_beside("levelzero:1?clock=virtual&units=tile", true), MS);
}

static void engines_share_a_tile(void **state)
{
	struct hal_partition_desc d = HAL_INIT(hal_partition_desc);
	struct hal_partition *p;

	(void)state;
	assert_int_equal(time_beside("levelzero:1?clock=virtual&units=engine", false),
			 MS);
	assert_int_equal(time_beside("levelzero:1?clock=virtual&units=engine", true),
			 2 * MS);
	/* Who cannot live with that is told so. */
	begin("levelzero:1?clock=virtual&units=engine");
	d.units_floor = 1;
	d.min_isolation = HAL_ISOLATION_ENFORCED;
	assert_int_equal(hal_partition_create(w.dev, &d, &p), -ENOTSUP);
	done();
	begin("levelzero:1?clock=virtual&units=tile");
	OK(hal_partition_create(w.dev, &d, &w.part[w.parts++]));
	done();
}

/* The engine compiles nothing, which would hold up every tenant: a program's modules are
 * made for all tiles when it is loaded, on the caller's thread. */
static void compiled_at_load(void **state)
{
	struct hal_buffer *b[4];
	struct hal_queue *q[4];
	uint64_t modules, made;
	uint32_t i;

	(void)state;
	begin("levelzero:0?clock=virtual");
	for (i = 0; i < 4; i++) {
		struct hal_partition *p = part(1);

		q[i] = queue(p, 0);
		b[i] = buffer(p, 4);
	}
	(void)kernel("work");
	modules = stand_in()->calls("zeModuleCreate");
	made = stand_in()->calls("zeKernelCreate");
	for (i = 0; i < 4; i++)
		OK(wait_for(launch(q[i], "work", b[i], MS)));
	assert_int_equal(stand_in()->calls("zeModuleCreate"), modules);
	assert_int_equal(stand_in()->calls("zeKernelCreate"), made);
	done();
}

static void tiles_run_at_once(void **state)
{
	struct lz_stand_in_job jobs[8];
	struct hal_queue *q[4];
	struct hal_buffer *b[4];
	struct hal_point at[4];
	uint32_t i;

	(void)state;
	begin("levelzero:0?clock=virtual");
	for (i = 0; i < 4; i++) {
		struct hal_partition *p = part(1);

		q[i] = queue(p, 0);
		b[i] = buffer(p, 4);
	}
	for (i = 0; i < 4; i++)
		at[i] = launch(q[i], "work", b[i], MS);
	OK(hal_wait(at, 4, 0, HAL_FOREVER));
	assert_int_equal(ended("work", jobs, 8), 4);
	for (i = 0; i < 4; i++) {
		assert_int_equal(jobs[i].tile, i);
		assert_int_equal(jobs[i].start_ns, jobs[0].start_ns);
		assert_int_equal(jobs[i].end_ns - jobs[i].start_ns, MS);
	}
	done();
}

/* On one engine, what has priority at the device overtakes at the next command. */
static void priorities(void **state)
{
	struct lz_stand_in_job jobs[16];
	struct hal_partition *p;
	struct hal_queue *low, *high;
	struct hal_point last[2];
	uint32_t i, n, first_low = 16, last_high = 0;

	(void)state;
	begin("levelzero:3?clock=virtual&inflight=2");
	p = part(1);
	low = queue(p, -1);
	high = queue(p, 1);
	for (i = 0; i < 4; i++)
		last[0] = launch(low, "work", buffer(p, 4), MS);
	assert_true(hal_device_poll(w.dev, MS / 2) >= 0);
	for (i = 0; i < 4; i++)
		last[1] = launch(high, "work", buffer(p, 4), MS);
	OK(hal_wait(last, 2, 0, HAL_FOREVER));
	n = ended("work", jobs, 16);
	assert_int_equal(n, 8);
	for (i = 0; i < n; i++) {
		if (jobs[i].priority == 2)
			last_high = i;
		else if (i && first_low == 16)
			first_low = i;
	}
	assert_int_equal(jobs[0].priority, 0);
	assert_true(last_high < first_low || first_low == 1);
	assert_true(last_high <= 5);
	done();
}

/* ---- work -------------------------------------------------------------------------- */

static void groups_count(void **state)
{
	struct hal_partition *p;
	struct hal_buffer *b;
	uint32_t data[24], i;
	struct hal_point at;

	(void)state;
	begin("levelzero:0?clock=virtual");
	p = part(1);
	b = buffer(p, sizeof(data));
	memset(data, 0xee, sizeof(data));
	OK(hal_buffer_write(b, 0, data, sizeof(data)));
	OK(try_launch(queue(p, 0), "iota", b, 100, 5, &at));
	OK(wait_for(at));
	OK(hal_buffer_read(b, 0, data, sizeof(data)));
	/* 5 groups of 4. */
	for (i = 0; i < 24; i++)
		assert_int_equal(data[i], i < 20 ? 100 + i : 0xeeeeeeee);
	done();
}

/* A launch has the groups that it asks for, and the next one the kernel's own. */
static void groups_of_other_sizes(void **state)
{
	static const char *const kernels[] = {"iota:m4"};
	struct hal_kernel_info info = HAL_INIT(hal_kernel_info);
	struct hal_submit_desc d = HAL_INIT(hal_submit_desc);
	struct hal_arg args[2] = {{0}};
	struct hal_partition *p;
	struct hal_kernel *k;
	struct hal_queue *q;
	struct hal_buffer *b;
	uint32_t data[300], i, round;
	struct hal_point at;
	struct hal_cmd cmd;

	(void)state;
	begin("levelzero:0?clock=virtual");
	OK(load(kernels, 1, 4, false));
	p = part(1);
	q = queue(p, 0);
	b = buffer(p, sizeof(data));
	OK(hal_kernel_find(w.prog, "iota", &k));
	OK(hal_kernel_get_info(k, &info));
	assert_int_equal(info.group_size[0], 4);
	assert_int_equal(info.group_size_max, 1024);
	assert_int_equal(info.shared_max, 0);
	args[0].buffer = b;
	args[1].offset = 100;
	cmd = hal_cmd_launch(k, args, 2);
	d.cmds = &cmd;
	d.cmd_count = 1;
	for (round = 0; round < 4; round++) {
		const uint32_t size = round % 2 == 0 ? 4 : 128;

		memset(data, 0xee, sizeof(data));
		OK(hal_buffer_write(b, 0, data, sizeof(data)));
		cmd.launch.groups[0] = 2;
		cmd.launch.group_size[0] = round % 2 == 0 ? 0 : 32;
		cmd.launch.group_size[1] = round % 2 == 0 ? 0 : 4;
		OK(hal_submit(q, &d, &at));
		OK(wait_for(at));
		OK(hal_buffer_read(b, 0, data, sizeof(data)));
		for (i = 0; i < 300; i++)
			assert_int_equal(data[i], i < 2 * size ? 100 + i : 0xeeeeeeee);
	}
	cmd.launch.group_size[0] = 1025;
	assert_int_equal(hal_submit(q, &d, &at), -EINVAL);
	cmd.launch.group_size[0] = 4;
	cmd.launch.group_size[1] = 1;
	cmd.launch.shared_bytes = 16;
	assert_int_equal(hal_submit(q, &d, &at), -ENOTSUP);
	done();
}

static void spirv(void **state)
{
	static const char *const kernels[] = {"iota:m4", "work:m8"};
	struct hal_kernel_info info = HAL_INIT(hal_kernel_info);
	struct hal_partition *p;
	struct hal_kernel *k;
	struct hal_buffer *b;
	struct hal_point at;
	uint32_t data[32], i;

	(void)state;
	begin("levelzero:0?clock=virtual&lists=regular");
	OK(load(kernels, 2, 8, true));
	OK(hal_kernel_find(w.prog, "work", &k));
	OK(hal_kernel_get_info(k, &info));
	assert_int_equal(info.arg_count, 2);
	p = part(2);
	b = buffer(p, sizeof(data));
	memset(data, 0, sizeof(data));
	OK(hal_buffer_write(b, 0, data, sizeof(data)));
	OK(try_launch(queue(p, 0), "iota", b, 7, 3, &at));
	OK(wait_for(at));
	OK(hal_buffer_read(b, 0, data, sizeof(data)));
	for (i = 0; i < 32; i++)
		assert_int_equal(data[i], i < 24 ? 7 + i : 0);
	/* It does not fit the 4 bytes that the code says it has. */
	OK(try_launch(w.queue[0], "iota", b, UINT64_C(1) << 32, 1, &at));
	ERR(wait_for(at), -EINVAL, "does not fit");
	done();
}

/* Many commands, few objects. */
static void lists_are_recycled(void **state)
{
	static const char *const targets[] = {"levelzero:0?clock=virtual",
					      "levelzero:0?clock=virtual&lists=regular"};
	static const char *const creators[] = {
		"zeCommandListCreate", "zeEventCreate", "zeCommandListCreateImmediate",
		"zeCommandQueueCreate", "zeEventPoolCreate"};
	uint64_t before[5];
	uint32_t t, i, c;

	(void)state;
	for (t = 0; t < 2; t++) {
		struct hal_point at = {0};
		struct hal_partition *p;
		struct hal_queue *q;
		struct hal_buffer *b;
		uint32_t sum = 0;

		begin(targets[t]);
		p = part(1);
		q = queue(p, 0);
		b = buffer(p, 4);
		OK(hal_buffer_write(b, 0, &sum, 4));
		for (c = 0; c < 5; c++)
			before[c] = stand_in()->calls(creators[c]);
		for (i = 0; i < 1000; i++) {
			at = launch(q, "work", b, 100);
			if (i % 16 == 15)
				OK(wait_for(at));
		}
		OK(wait_for(at));
		OK(hal_buffer_read(b, 0, &sum, 4));
		assert_int_equal(sum, 1000);
		for (c = 0; c < 5; c++)
			assert_int_equal(stand_in()->calls(creators[c]), before[c]);
		done();
	}
}

static uint32_t threads(void)
{
	DIR *d = opendir("/proc/self/task");
	uint32_t n = 0;

	assert_non_null(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

/* A real clock: one engine for the device, whatever the number of queues. */
static void no_thread_a_queue(void **state)
{
	struct hal_partition *p;
	struct hal_point at[32];
	uint32_t before, i;

	(void)state;
	begin("levelzero:0");
	p = part(4);
	before = threads();
	for (i = 0; i < 32; i++)
		at[i] = launch(queue(p, 0), "work", buffer(p, 4), 1000);
	OK(hal_wait(at, 32, 0, HAL_FOREVER));
	assert_int_equal(threads(), before);
	done();
}

/* DRAIN waits for what the device has, at most `inflight` commands. */
static void drain_is_bounded(void **state)
{
	const struct hal_levelzero_extension *x;
	struct hal_stats s = HAL_INIT(hal_stats);
	struct hal_point at = {0}, quiet;
	struct hal_partition *p;
	struct hal_queue *q;
	uint64_t worst;
	uint32_t i;

	(void)state;
	begin("levelzero:0?clock=virtual&inflight=3");
	p = part(1);
	q = queue(p, 0);
	for (i = 0; i < 10; i++)
		at = launch(q, "work", buffer(p, 4), MS);
	assert_true(hal_device_poll(w.dev, MS + MS / 2) >= 0);
	OK(hal_queue_suspend(q, HAL_SUSPEND_DRAIN, &quiet));
	OK(wait_for(quiet));
	OK(hal_queue_get_stats(q, &s));
	x = hal_device_get_extension(w.dev, "levelzero");
	assert_int_equal(x->drain_worst(hal_device_get_native(w.dev), &worst), 0);
	assert_int_equal(worst, 3 * MS);
	assert_true(s.suspend_max_ns > MS && s.suspend_max_ns <= worst);
	assert_true(s.completed >= 2 && s.completed <= 5);
	OK(hal_queue_resume(q));
	OK(wait_for(at));
	done();
}

/* A clock of 32 bits and 80 ns a tick passes its end every 343 s. */
static void clock_wraps(void **state)
{
	const uint64_t end = (UINT64_C(1) << 32) * 80;
	struct hal_partition *p;
	struct hal_queue *q;
	struct hal_point at;
	uint32_t i;

	(void)state;
	stand_in()->set_now(end - 2 * MS);
	begin("levelzero:2?clock=virtual");
	p = part(1);
	q = queue(p, 0);
	for (i = 0; i < 4; i++) {
		at = launch(q, "work", buffer(p, 4), MS);
		OK(wait_for(at));
	}
	assert_int_equal(busy_ns(q), 4 * MS);
	assert_true(stand_in()->now() > end);
	done();
}

/* ---- the host's clock -------------------------------------------------------------- */

static uint64_t mono_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void run_fill(struct hal_queue *q, struct hal_buffer *b)
{
	struct hal_submit_desc d = HAL_INIT(hal_submit_desc);
	struct hal_cmd cmd = hal_cmd_fill(b, 0, 4, 1);
	struct hal_point at;

	d.cmds = &cmd;
	d.cmd_count = 1;
	OK(hal_submit(q, &d, &at));
	OK(wait_for(at));
}

/* The two clocks are read again once a second: time neither jumps nor stands then, but
 * for what may have passed between the two looks, which is in the time that was no nap.
 */
static void clock_keeps_pace(void **state)
{
	const struct timespec nap = {.tv_sec = 1, .tv_nsec = 50 * MS};
	const uint64_t start = mono_ns();
	uint64_t before, after, slack, mono[4];
	struct hal_partition *p;
	struct hal_queue *q;
	struct hal_buffer *b;

	(void)state;
	begin("levelzero:3");
	p = part(1);
	q = queue(p, 0);
	b = buffer(p, 4);
	run_fill(q, b);
	mono[0] = mono_ns();
	before = hal_device_get_time(w.dev);
	mono[1] = mono_ns();
	nanosleep(&nap, NULL);
	run_fill(q, b);
	mono[2] = mono_ns();
	after = hal_device_get_time(w.dev);
	mono[3] = mono_ns();
	slack = mono[3] - start - 1050 * MS + 20 * MS;
	assert_true(after - before <= mono[3] - mono[0] + slack);
	assert_true(after - before + slack >= mono[2] - mono[1]);
	done();
}

static void *load_slowly(void *user)
{
	static const char *const names[] = {"work:m8"};
	int *err = user;

	*err = load(names, 1, 4, false);
	return NULL;
}

/* A module takes long to make: meanwhile the device works for others. */
static void modules_beside(void **state)
{
	struct hal_partition *p;
	struct hal_queue *q;
	struct hal_buffer *b;
	pthread_t thread;
	int err = 1;

	(void)state;
	begin("levelzero:3");
	p = part(1);
	q = queue(p, 0);
	b = buffer(p, 4);
	(void)stand_in()->hold_modules(1);
	assert_int_equal(pthread_create(&thread, NULL, load_slowly, &err), 0);
	while (stand_in()->hold_modules(1) == 0)
		sched_yield();
	for (int i = 0; i < 20; i++)
		run_fill(q, b);
	assert_int_equal(stand_in()->hold_modules(0), 1);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(err, 0);
	done();
}

static void *load_many(void *user)
{
	static const char *const good[] = {"work:m8"}, *const bad[] = {"no such kernel"};
	struct hal_program *prog;
	size_t size;
	void *image;
	int err;

	for (uint32_t i = 0; i < 60; i++) {
		image = make_image(i % 3 ? good : bad, 1, 4, &size);
		err = hal_program_load(user, image, size, &prog);
		free(image);
		if ((err == 0) != (i % 3 != 0) || (!err && hal_program_unload(prog)))
			return user;
	}
	return NULL;
}

/* Modules that come and go beside work that does, one in three of them bad: what is given
 * back to the driver is from several threads at once. */
static void modules_beside_each_other(void **state)
{
	enum { THREADS = 3 };
	struct hal_partition *p;
	struct hal_queue *q;
	struct hal_buffer *b;
	pthread_t threads[THREADS];

	(void)state;
	begin("levelzero:3");
	p = part(1);
	q = queue(p, 0);
	b = buffer(p, 4);
	stand_in()->slow_modules(MS / 10); /* nearly always one is being made */
	for (uint32_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, load_many, w.dev), 0);
	for (uint32_t i = 0; i < 200; i++)
		run_fill(q, b);
	for (uint32_t i = 0; i < THREADS; i++) {
		void *bad = threads;

		assert_int_equal(pthread_join(threads[i], &bad), 0);
		assert_null(bad);
	}
	done();
}

/* ---- wrong input ------------------------------------------------------------------- */

static void images_that_are_none(void **state)
{
	static const char *const good[] = {"iota:m4"}, *const unknown[] = {"nothing:m"},
				 *const local[] = {"iota:ml"};
	size_t size, n;
	uint32_t *image = make_spirv(good, 1, 4, &size), other = 0x03022307;
	void *cut;

	(void)state;
	begin("levelzero:0?clock=virtual");
	for (n = 1; n < size; n++) {
		cut = malloc(n);
		assert_non_null(cut);
		memcpy(cut, image, n);
		if (hal_program_load(w.dev, cut, n, &w.prog) == 0)
			fail_msg("%zu of %zu bytes were taken", n, size);
		assert_true(hal_last_error()[0]);
		free(cut);
	}
	ERR(hal_program_load(w.dev, &other, sizeof(other), &w.prog), -EINVAL,
	    "byte order");
	ERR(hal_program_load(w.dev, "#!/bin/sh\n", 10, &w.prog), -EINVAL,
	    "INVALID_NATIVE_BINARY");
	ERR(load(local, 1, 1, true), -ENOTSUP,
	    "kernel iota: argument 1 is neither memory nor a scalar");
	/* The driver's own words. */
	ERR(load(unknown, 1, 1, true), -EINVAL,
	    build_logs() ? "undefined reference to nothing" : "MODULE_BUILD_FAILURE");
	/* A table whose kernel is not in the module. */
	ERR(load(unknown, 1, 1, false), -EINVAL, "kernel nothing");
	free(image);
	done();
}

/* One field of a good image is another: refused, and the field's text says so. */
static void wrong_fields(void **state)
{
	enum { HEAD = sizeof(struct hal_levelzero_image) };
#define OF_HEAD(field)   offsetof(struct hal_levelzero_image, field)
#define OF_KERNEL(field) (HEAD + offsetof(struct hal_levelzero_kernel, field))
	static const struct {
		size_t at;
		uint32_t value;
		const char *says;
	} cases[] = {
		{OF_HEAD(version), 2, "image has version 2"},
		{OF_HEAD(bytes), 40, "but 40 according to its header"},
		{OF_HEAD(kernel_size), 8, "kernel_size 8"},
		{OF_HEAD(native), 2, "do not add up"},
		{OF_HEAD(kernel_count), 0, "0 kernels and module"},
		{OF_HEAD(kernel_count), 2, "2 kernels and module"},
		{OF_HEAD(module_bytes), 0, "module of 0 bytes"},
		{OF_KERNEL(name), 0, "no valid name (1 to 31 characters)"},
		{OF_KERNEL(arg_count), 17, "17 arguments; the limit is 16"},
		{OF_KERNEL(scalar_bytes) + 4, 16, "argument 1 is neither"},
		{OF_KERNEL(scalar_bytes) + 4, 3, "argument 1 is neither"},
		{OF_KERNEL(scalar_bytes) + 4, 9, "argument 1 is neither"},
		{OF_KERNEL(arg_bytes) + 8, 4, "argument 1 is neither"},
	};
	static const char *const kernels[] = {"iota:m4"};
	size_t size;
	uint8_t *image;

	(void)state;
	begin("levelzero:0?clock=virtual");
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		image = make_image(kernels, 1, 4, &size);
		memcpy(image + cases[i].at, &cases[i].value, sizeof(uint32_t));
		ERR(hal_program_load(w.dev, image, size, &w.prog), -EINVAL,
		    cases[i].says);
		free(image);
	}
	image = make_image(kernels, 1, 4, &size);
	memset(image + OF_KERNEL(name), 'a', 32); /* without an end */
	ERR(hal_program_load(w.dev, image, size, &w.prog), -EINVAL, "no valid name");
	free(image);
	OK(load(kernels, 1, 4, false));
	done();
}

/* Damaged images, always the same ones: taken or refused with a text, and no more. */
static void damaged_images(void **state)
{
	static const char *const kernels[] = {"iota:m4", "work:m8", "spin:m"};
	uint32_t seed = 1, i, k, taken = 0, refusals = 0;
	size_t size[2];
	uint8_t *good[2];

	(void)state;
	begin("levelzero:0?clock=virtual");
	good[0] = make_spirv(kernels, 3, 4, &size[0]);
	good[1] = make_image(kernels, 3, 4, &size[1]);
	for (i = 0; i < 4000; i++) {
		size_t n = size[i % 2];
		uint8_t *bad = malloc(n);

		assert_non_null(bad);
		memcpy(bad, good[i % 2], n);
		for (k = 0; k < 1 + i % 4; k++) {
			seed = seed * 1664525u + 1013904223u;
			bad[(seed >> 8) % n] = (uint8_t)(seed >> 3);
		}
		w.prog = NULL;
		if (hal_program_load(w.dev, bad, n, &w.prog) == 0) {
			OK(hal_program_unload(w.prog));
			taken++;
		} else {
			assert_true(hal_last_error()[0]);
			refusals++;
		}
		w.prog = NULL;
		free(bad);
	}
	assert_true(taken && refusals > 1000);
	free(good[0]);
	free(good[1]);
	done();
}

static void wrong_arguments(void **state)
{
	static const char *const lies[] = {"iota:m8"}, *const fewer[] = {"iota:m"};
	struct hal_partition *p;
	struct hal_buffer *b;
	struct hal_queue *q;
	struct hal_point at;

	(void)state;
	begin("levelzero:0?clock=virtual");
	ERR(load(fewer, 1, 4, false), -EINVAL,
	    "has 2 arguments, but the image declares 1");
	OK(load(lies, 1, 4, false));
	p = part(1);
	b = buffer(p, 64);
	q = queue(p, 0);
	OK(try_launch(q, "iota", b, 1, 1, &at));
	ERR(wait_for(at), -EINVAL, "INVALID_KERNEL_ARGUMENT_SIZE");
	assert_non_null(strstr(hal_last_error(), "zeKernelSetArgumentValue"));
	assert_non_null(strstr(hal_last_error(), "argument 1 of 8 bytes"));
	done();
}

static void too_many_groups(void **state)
{
	struct hal_partition *p;
	struct hal_buffer *b;
	struct hal_point at;

	(void)state;
	begin("levelzero:0?clock=virtual");
	p = part(1);
	b = buffer(p, 64);
	OK(try_launch(queue(p, 0), "iota", b, 1, (1u << 20) + 1, &at));
	ERR(wait_for(at), -EINVAL,
	    "1048577 x 1 x 1 groups; the device allows at most 1048576");
	/* The device is none the worse. */
	OK(try_launch(queue(p, 0), "iota", b, 1, 1, &at));
	OK(wait_for(at));
	done();
}

static void groups_too_big(void **state)
{
	static const char *const kernels[] = {"iota:m4"};

	(void)state;
	begin("levelzero:0?clock=virtual");
	ERR(load(kernels, 1, 4096, false), -EINVAL, "INVALID_GROUP_SIZE_DIMENSION");
	done();
}

static void out_of_memory(void **state)
{
	struct hal_buffer_desc d = HAL_INIT(hal_buffer_desc);
	struct hal_partition *p;
	struct hal_buffer *b;

	(void)state;
	begin("levelzero:0?clock=virtual");
	p = part(1);
	stand_in()->memory_left(8192);
	d.bytes = 65536;
	ERR(hal_buffer_create(p, &d, &b), -ENOSPC,
	    "zeMemAllocDevice: ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY");
	stand_in()->memory_left(UINT64_MAX);
	(void)buffer(p, 65536);
	done();
}

/* A command that does not end: told of, its queue dropped, nobody else harmed. */
static void time_out(void **state)
{
	static const char *const targets[] = {
		"levelzero:0?clock=virtual&timeout_ms=5",
		"levelzero:0?clock=virtual&timeout_ms=5&lists=regular"};
	struct hal_partition *p[2];
	struct hal_queue *q;
	struct hal_point at, more;
	struct hal_buffer *b;
	uint32_t t;

	(void)state;
	for (t = 0; t < 2; t++) {
		begin(targets[t]);
		p[0] = part(1);
		p[1] = part(1);
		q = queue(p[0], 0);
		b = buffer(p[0], 64);
		at = launch(q, "never", b, 0);
		more = launch(q, "work", b, 10);
		ERR(wait_for(at), -EIO,
		    "time-out after 5 ms, queue dropped, kernel never");
		ERR(wait_for(more), -EIO, "time-out");
		assert_int_not_equal(try_launch(q, "work", b, 10, 1, &at), 0);
		q = queue(p[1], 0);
		at = launch(q, "work", buffer(p[1], 4), MS);
		OK(wait_for(at));
		assert_int_equal(busy_ns(q), MS);
		done();
	}
}

/* Without a time limit, waiting is what ends. */
static void waiting_times_out(void **state)
{
	struct hal_partition *p;
	struct hal_point at;

	(void)state;
	begin("levelzero:0?clock=virtual");
	p = part(1);
	at = launch(queue(p, 0), "never", buffer(p, 64), 0);
	assert_int_equal(hal_wait(&at, 1, 0, 0), -ETIMEDOUT);
	assert_int_equal(wait_for(at), -EDEADLK);
	stand_in()->lose(0);
	ERR(wait_for(at), -EIO, "DEVICE_LOST");
	stand_in()->revive();
	done();
}

/* Nor is there any for a copy that waits for an engine on which nothing will end. */
static void copy_behind_never(void **state)
{
	struct hal_partition *p;
	struct hal_buffer *b;
	struct hal_point at;
	char data[64] = {0};

	(void)state;
	begin("levelzero:3?clock=virtual");
	p = part(1);
	b = buffer(p, sizeof(data));
	at = launch(queue(p, 0), "never", b, 0);
	assert_true(hal_device_poll(w.dev, 100) >= 0);
	ERR(hal_buffer_write(b, 0, data, sizeof(data)), -EIO,
	    "a copy has not ended after");
	stand_in()->lose(3);
	ERR(wait_for(at), -EIO, "DEVICE_LOST");
	stand_in()->revive();
	done();
}

static void device_loss(void **state)
{
	struct hal_buffer_desc d = HAL_INIT(hal_buffer_desc);
	struct hal_partition *p[2];
	struct hal_point at[2];
	struct hal_buffer *b;
	uint32_t i;

	(void)state;
	begin("levelzero:0?clock=virtual");
	for (i = 0; i < 2; i++) {
		p[i] = part(1);
		at[i] = launch(queue(p[i], 0), "work", buffer(p[i], 4), 10 * MS);
	}
	assert_true(hal_device_poll(w.dev, MS) >= 0);
	stand_in()->lose(0);
	for (i = 0; i < 2; i++)
		ERR(wait_for(at[i]), -EIO, "DEVICE_LOST");
	d.bytes = 64;
	ERR(hal_buffer_create(p[0], &d, &b), -EIO, "zeMemAllocDevice");
	assert_int_not_equal(try_launch(w.queue[0], "work", w.buf[0], 1, 1, &at[0]), 0);
	done();
	/* It comes back, and so do we. */
	begin("levelzero:0?clock=virtual");
	p[0] = part(1);
	at[0] = launch(queue(p[0], 0), "work", buffer(p[0], 4), MS);
	OK(wait_for(at[0]));
	done();
}

/* ---- what a real driver does ------------------------------------------------------- */

/* Device time from begin to end of 2 commands of one partition that the device has; with
 * copies: beside copies of another one's memory, or its own where there is no other. */
static uint64_t time_beside_copies(const char *target, bool copies)
{
	struct hal_device_info info = HAL_INIT(hal_device_info);
	struct lz_stand_in_job jobs[64];
	static char data[1 << 19];
	struct hal_partition *p, *other;
	struct hal_buffer *b, *copied;
	uint64_t first = UINT64_MAX, last = 0;
	struct hal_point at;
	struct hal_queue *q;
	uint32_t n, i;

	begin(target);
	OK(hal_device_get_info(w.dev, &info));
	p = part(1);
	other = info.unit_cols > 1 ? part(1) : p;
	b = buffer(p, 4);
	copied = buffer(other, sizeof(data));
	q = queue(p, 0);
	for (i = 0; i < 2; i++)
		at = launch(q, "work", b, 80000);
	assert_true(hal_device_poll(w.dev, 100) >= 0);
	for (i = 0; copies && i < 2; i++) {
		OK(hal_buffer_write(copied, 0, data, sizeof(data)));
		OK(hal_buffer_read(copied, 0, data, sizeof(data)));
	}
	OK(wait_for(at));
	n = stand_in()->jobs(jobs, 64);
	for (i = 0; i < n; i++) {
		if (strcmp(jobs[i].what, "work") != 0)
			continue;
		first = jobs[i].start_ns < first ? jobs[i].start_ns : first;
		last = jobs[i].end_ns > last ? jobs[i].end_ns : last;
	}
	done();
	return last - first;
}

static double slowdown(const char *target)
{
	return (double)time_beside_copies(target, true) /
	       (double)time_beside_copies(target, false);
}

/* On a copy engine they take nothing from who computes; a device that has none shows what
 * would be seen. */
static void copies_disturb_nobody(void **state)
{
	double engines = slowdown("levelzero:1?clock=virtual&units=engine");
	double tiles = slowdown("levelzero:1?clock=virtual&units=tile");
	double without = slowdown("levelzero:3?clock=virtual");

	(void)state;
	engines = tiles > engines ? tiles : engines;
	printf("figure levelzero.copy.neighbour_slowdown %.2f\n", engines);
	printf("without a copy engine %.2f\n", without);
	assert_true(engines <= 1.0);
	assert_true(without > 1.1);
}

/* They are done by the tile that the memory is of. */
static void copies_on_their_tile(void **state)
{
	struct lz_stand_in_job jobs[2];
	char data[64] = "";
	uint32_t i;

	(void)state;
	begin("levelzero:1?clock=virtual&units=tile");
	for (i = 0; i < 2; i++) {
		OK(hal_buffer_write(buffer(part(1), sizeof(data)), 0, data,
				    sizeof(data)));
		/* One that clears it, and that. */
		assert_int_equal(ended("copy", jobs, 2), 2);
		for (uint32_t k = 0; k < 2; k++) {
			assert_int_equal(jobs[k].tile, i);
			/* The group that only copies. */
			assert_int_equal(jobs[k].ordinal, 1);
		}
	}
	done();
}

static atomic_bool copying;

static void *copy_slowly(void *user)
{
	char data[64] = "";
	int err;

	err = hal_buffer_write(user, 0, data, sizeof(data));
	atomic_store(&copying, false);
	return err ? NULL : user;
}

/* By the host's clock: while one waits for a copy, the device works for others.  A
 * machine that is busy with other things gets a longer copy. */
static void copies_beside(void **state)
{
	struct hal_partition *p;
	struct hal_queue *q;
	struct hal_buffer *b[2];
	uint32_t beside = 0;
	uint64_t ns;
	void *copied;
	pthread_t thread;

	(void)state;
	begin("levelzero:0");
	p = part(1);
	q = queue(p, 0);
	b[0] = buffer(p, 64);
	b[1] = buffer(p, 64);
	for (ns = 100 * MS; beside <= 5 && ns < UINT64_C(30000) * MS; ns *= 2) {
		stand_in()->slow_copies(ns);
		atomic_store(&copying, true);
		assert_int_equal(pthread_create(&thread, NULL, copy_slowly, b[1]), 0);
		for (beside = 0; atomic_load(&copying); beside++)
			run_fill(q, b[0]);
		assert_int_equal(pthread_join(thread, &copied), 0);
		assert_ptr_equal(copied, b[1]);
	}
	assert_true(beside > 5);
	done();
}

/* A tile that hangs is asked once in 100 ms, not with each look, and it alone: the root
 * does not know. */
static void hang_of_a_tile(void **state)
{
	struct hal_partition *p[2];
	struct hal_queue *q[2];
	struct hal_point at;
	uint64_t calls;

	(void)state;
	begin("levelzero:0?clock=virtual");
	p[0] = part(1);
	p[1] = part(1);
	q[0] = queue(p[0], 0);
	q[1] = queue(p[1], 0);
	calls = stand_in()->calls("zeDeviceGetStatus");
	at = launch(q[0], "wild", buffer(p[0], 64), 0);
	ERR(wait_for(at), -EIO, "zeDeviceGetStatus: ERROR_DEVICE_LOST");
	assert_true(stand_in()->calls("zeDeviceGetStatus") - calls <= 2);
	/* Nobody else notices. */
	at = launch(q[1], "work", buffer(p[1], 4), 250 * MS);
	OK(wait_for(at));
	done();
}

/* What is stuck keeps its partition's memory; others have theirs back at once. */
static void stuck_holds_up_nobody(void **state)
{
	struct hal_partition *p[2];
	struct hal_point at;
	struct hal_buffer *b;
	uint64_t frees;

	(void)state;
	begin("levelzero:0?clock=virtual&timeout_ms=5");
	p[0] = part(1);
	p[1] = part(1);
	at = launch(queue(p[0], 0), "never", buffer(p[0], 64), 0);
	ERR(wait_for(at), -EIO, "time-out");
	b = buffer(p[1], 4096);
	w.bufs--;
	frees = stand_in()->calls("zeMemFree");
	OK(hal_buffer_destroy(b));
	assert_int_equal(stand_in()->calls("zeMemFree"), frees + 1);
	b = w.buf[--w.bufs];
	OK(hal_buffer_destroy(b));
	assert_int_equal(stand_in()->calls("zeMemFree"), frees + 1);
	done();
}

/* A launch ends after its queue was dropped: its buffer's memory is there again when it
 * is needed. */
static void late_memory_is_free_again(void **state)
{
	struct hal_buffer_desc d = HAL_INIT(hal_buffer_desc);
	struct hal_partition *p[2];
	struct hal_queue *other;
	struct hal_point at;
	struct hal_buffer *b, *small;
	int i;

	(void)state;
	d.bytes = 65536;
	begin("levelzero:0?clock=virtual&timeout_ms=5");
	p[0] = part(1);
	p[1] = part(1);
	other = queue(p[1], 0);
	small = buffer(p[1], 64);
	at = launch(queue(p[0], 0), "work", buffer(p[0], d.bytes), 9 * MS);
	ERR(wait_for(at), -EIO, "time-out");
	OK(hal_buffer_destroy(w.buf[--w.bufs]));
	for (i = 0; i < 3; i++)
		OK(wait_for(launch(other, "work", small, 4 * MS)));
	stand_in()->memory_left(4096);
	OK(hal_buffer_create(p[0], &d, &b));
	OK(hal_buffer_destroy(b));
	stand_in()->memory_left(UINT64_MAX);
	done();
}

/* The fault names a result that Level Zero has added since. */
static void unknown_result(void **state)
{
	struct hal_partition *p;
	struct hal_point at;

	(void)state;
	begin("levelzero:0?clock=virtual");
	p = part(1);
	at = launch(queue(p, 0), "work", buffer(p, 64), MS);
	stand_in()->break_call("zeEventQueryStatus", 1, 0x7ffffff0);
	ERR(wait_for(at), -EIO, "zeEventQueryStatus: unknown result (0x7ffffff0)");
	done();
}

/* The driver had no memory to say how the tile is: the command goes on. */
static void status_unknown_once(void **state)
{
	struct hal_partition *p;
	struct hal_point at;

	(void)state;
	begin("levelzero:0?clock=virtual");
	p = part(1);
	at = launch(queue(p, 0), "work", buffer(p, 64), 250 * MS);
	stand_in()->break_call("zeDeviceGetStatus", 1,
			       0x70000002); /* OUT_OF_HOST_MEMORY */
	OK(wait_for(at));
	assert_int_equal(stand_in()->armed(), 0);
	done();
}

/* One that the driver will not free yet is tried again, and is in nobody's way. */
static void busy_handle_holds_up_nobody(void **state)
{
	struct hal_buffer *b[2];
	struct hal_partition *p;
	uint64_t frees;

	(void)state;
	begin("levelzero:0?clock=virtual");
	p = part(1);
	b[0] = buffer(p, 4096);
	b[1] = buffer(p, 4096);
	w.bufs = 0;
	frees = stand_in()->calls("zeMemFree");
	assert_int_equal(stand_in()->break_call("zeMemFree", 1, 0x78000006), 0);
	(void)hal_buffer_destroy(b[0]);
	assert_int_equal(stand_in()->break_call("zeMemFree", 1, 0x78000006), 0);
	OK(hal_buffer_destroy(b[1]));
	assert_int_equal(stand_in()->calls("zeMemFree"), frees + 3);
	done();
}

/* Low priority stays where its partition is. */
static void low_priority_stays(void **state)
{
	struct lz_stand_in_job job;
	struct hal_partition *p;

	(void)state;
	begin("levelzero:1?clock=virtual&units=engine");
	(void)part(1);
	p = part(1);
	OK(wait_for(launch(queue(p, -5), "work", buffer(p, 4), MS)));
	assert_int_equal(ended("work", &job, 1), 1);
	assert_int_equal(job.index, 1);
	done();
}

/* More than the driver gives unasked: half of a tile's 64 MiB. */
static void large_buffer(void **state)
{
	static const char *const targets[] = {"levelzero:2?clock=virtual",
					      "levelzero:2?clock=virtual&memory=shared"};
	struct hal_partition_desc d = HAL_INIT(hal_partition_desc);
	uint32_t t;

	(void)state;
	for (t = 0; t < 2; t++) {
		begin(targets[t]);
		d.units_floor = 1;
		d.memory_bytes = 60 << 20;
		OK(hal_partition_create(w.dev, &d, &w.part[w.parts++]));
		(void)buffer(w.part[0], 48 << 20);
		done();
	}
}

/* A kernel that follows an address has been announced to the driver. */
static void indirect_access(void **state)
{
	static const char *const kernels[] = {"peek:m8"};
	const struct hal_levelzero_extension *x;
	struct hal_submit_desc d = HAL_INIT(hal_submit_desc);
	struct hal_levelzero_ipc handle;
	struct hal_partition *p;
	struct hal_buffer *b;
	struct hal_kernel *k;
	struct hal_point at;
	struct hal_cmd cmd;
	uint32_t data[2] = {0, 77};
	void *native, *address;

	(void)state;
	begin("levelzero:0?clock=virtual");
	x = hal_device_get_extension(w.dev, "levelzero");
	native = hal_device_get_native(w.dev);
	OK(load(kernels, 1, 4, false));
	OK(hal_kernel_find(w.prog, "peek", &k));
	p = part(1);
	b = buffer(p, sizeof(data));
	OK(hal_buffer_write(b, 0, data, sizeof(data)));
	OK(x->ipc_export(native, 1, &handle));
	OK(x->ipc_open(native, &handle, &address));
	{
		const struct hal_arg args[2] = {{b, 0, 0},
						{NULL, (uintptr_t)address + 4, 0}};

		cmd = hal_cmd_launch(k, args, 2);
		d.cmds = &cmd;
		d.cmd_count = 1;
		OK(hal_submit(queue(p, 0), &d, &at));
	}
	OK(wait_for(at));
	OK(x->ipc_close(native, address));
	OK(hal_buffer_read(b, 0, data, sizeof(data)));
	assert_int_equal(data[0], 77);
	done();
}

/* A driver that shares no memory with other processes, as it says. */
static void no_ipc(void **state)
{
	const struct hal_levelzero_extension *x;
	struct hal_levelzero_ipc handle;
	void *native, *address;

	(void)state;
	memset(&w, 0, sizeof(w));
	memset(&handle, 0, sizeof(handle));
	stand_in()->reset();
	live = stand_in()->live();
	stand_in()->share_memory(0);
	OK(hal_open("levelzero:0?clock=virtual", NULL, &w.dev));
	x = hal_device_get_extension(w.dev, "levelzero");
	native = hal_device_get_native(w.dev);
	(void)buffer(part(1), 64);
	ERR(x->ipc_export(native, 1, &handle), -ENOTSUP, "cannot share memory");
	ERR(x->ipc_open(native, &handle, &address), -ENOTSUP, "cannot share memory");
	ERR(x->ipc_close(native, native), -ENOTSUP, "cannot share memory");
	done();
}

/* ---- extension --------------------------------------------------------------------- */

static void scheduler(void **state)
{
	struct hal_levelzero_scheduler s = HAL_INIT(hal_levelzero_scheduler);
	const struct hal_levelzero_extension *x;
	struct hal_device *dev;
	void *native;

	(void)state;
	unsetenv("ZES_ENABLE_SYSMAN");
	begin("levelzero:0?clock=virtual");
	x = hal_device_get_extension(w.dev, "levelzero");
	native = hal_device_get_native(w.dev);
	ERR(x->scheduler_get(native, &s), -ENOTSUP, "ZES_ENABLE_SYSMAN is not 1");
	ERR(hal_open("levelzero:0?clock=virtual&scheduler=exclusive", NULL, &dev),
	    -ENOTSUP, "ZES_ENABLE_SYSMAN");
	setenv("ZES_ENABLE_SYSMAN", "1", 1);
	OK(x->scheduler_set(native, HAL_LEVELZERO_TIMESLICE));
	OK(x->scheduler_get(native, &s));
	assert_int_equal(s.mode, HAL_LEVELZERO_TIMESLICE);
	assert_int_equal(s.settable, 1);
	stand_in()->permit(0);
	OK(x->scheduler_get(native, &s));
	assert_int_equal(s.settable, 0);
	assert_non_null(strstr(s.reason, "may not control"));
	ERR(x->scheduler_set(native, HAL_LEVELZERO_EXCLUSIVE), -EPERM, "may not control");
	ERR(hal_open("levelzero:0?clock=virtual&scheduler=exclusive", NULL, &dev), -EPERM,
	    "may not control");
	stand_in()->permit(1);
	ERR(x->scheduler_set(native, 9), -ENOTSUP, "scheduler mode 9 is not supported");
	done();
	begin("levelzero:0?clock=virtual&scheduler=exclusive");
	OK(x->scheduler_get(hal_device_get_native(w.dev), &s));
	assert_int_equal(s.mode, HAL_LEVELZERO_EXCLUSIVE);
	done();
}

/* What another process would do: a kernel writes through the handle. */
static void ipc(void **state)
{
	const struct hal_levelzero_extension *x;
	struct hal_levelzero_ipc handle;
	struct hal_partition *p;
	struct hal_buffer *b;
	struct hal_point at;
	uint32_t data[4];
	void *native, *address;

	(void)state;
	begin("levelzero:0?clock=virtual");
	x = hal_device_get_extension(w.dev, "levelzero");
	native = hal_device_get_native(w.dev);
	p = part(1);
	b = buffer(p, 16);
	OK(x->ipc_export(native, 1, &handle));
	ERR(x->ipc_export(native, 2, &handle), -EINVAL, "no buffer with id 2");
	OK(x->ipc_open(native, &handle, &address));
	{
		const struct hal_arg args[2] = {{NULL, (uintptr_t)address, 0},
						{NULL, 5, 0}};
		struct hal_submit_desc d = HAL_INIT(hal_submit_desc);
		struct hal_cmd cmd = hal_cmd_launch(kernel("iota"), args, 2);

		d.cmds = &cmd;
		d.cmd_count = 1;
		OK(hal_submit(queue(p, 0), &d, &at));
	}
	OK(wait_for(at));
	OK(hal_buffer_read(b, 0, data, sizeof(data)));
	assert_int_equal(data[3], 8);
	OK(x->ipc_close(native, address));
	ERR(x->ipc_close(native, address), -EINVAL, "zeMemCloseIpcHandle");
	memset(&handle, 1, sizeof(handle));
	ERR(x->ipc_open(native, &handle, &address), -EINVAL, "zeMemOpenIpcHandle");
	done();
}

static void cache(void **state)
{
	const struct hal_levelzero_extension *x;
	void *native;

	(void)state;
	begin("levelzero:0?clock=virtual");
	x = hal_device_get_extension(w.dev, "levelzero");
	native = hal_device_get_native(w.dev);
	(void)buffer(part(1), 4096);
	OK(x->cache_reserve(native, 3, 65536));
	ERR(x->cache_reserve(native, 3, UINT64_C(1) << 40), -ENOSPC, "UNSUPPORTED_SIZE");
	OK(x->cache_advise(native, 1, 1));
	ERR(x->cache_advise(native, 1, 7), -EINVAL, "INVALID_ENUMERATION");
	done();
}

static int setup(void **state)
{
	(void)state;
	return stand_in() ? 0 : -1;
}

/* --figure: only what makes one. */
int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(isolation_is_the_partitions),
		cmocka_unit_test(says_what_it_is),
		cmocka_unit_test(units_are_engines),
		cmocka_unit_test(tiles_keep_apart),
		cmocka_unit_test(compiled_at_load),
		cmocka_unit_test(engines_share_a_tile),
		cmocka_unit_test(tiles_run_at_once),
		cmocka_unit_test(priorities),
		cmocka_unit_test(groups_count),
		cmocka_unit_test(groups_of_other_sizes),
		cmocka_unit_test(spirv),
		cmocka_unit_test(lists_are_recycled),
		cmocka_unit_test(no_thread_a_queue),
		cmocka_unit_test(drain_is_bounded),
		cmocka_unit_test(clock_wraps),
		cmocka_unit_test(clock_keeps_pace),
		cmocka_unit_test(modules_beside),
		cmocka_unit_test(modules_beside_each_other),
		cmocka_unit_test(images_that_are_none),
		cmocka_unit_test(wrong_fields),
		cmocka_unit_test(damaged_images),
		cmocka_unit_test(wrong_arguments),
		cmocka_unit_test(too_many_groups),
		cmocka_unit_test(groups_too_big),
		cmocka_unit_test(out_of_memory),
		cmocka_unit_test(time_out),
		cmocka_unit_test(waiting_times_out),
		cmocka_unit_test(copy_behind_never),
		cmocka_unit_test(device_loss),
		cmocka_unit_test(copies_disturb_nobody),
		cmocka_unit_test(copies_on_their_tile),
		cmocka_unit_test(copies_beside),
		cmocka_unit_test(hang_of_a_tile),
		cmocka_unit_test(stuck_holds_up_nobody),
		cmocka_unit_test(busy_handle_holds_up_nobody),
		cmocka_unit_test(low_priority_stays),
		cmocka_unit_test(large_buffer),
		cmocka_unit_test(indirect_access),
		cmocka_unit_test(no_ipc),
		cmocka_unit_test(scheduler),
		cmocka_unit_test(ipc),
		cmocka_unit_test(cache),
		cmocka_unit_test(late_memory_is_free_again),
		cmocka_unit_test(unknown_result),
		cmocka_unit_test(status_unknown_once),
	};

	if (argc > 1 && strcmp(argv[1], "--figure") == 0)
		cmocka_set_test_filter("copies_disturb_nobody");
	return cmocka_run_group_tests(tests, setup, NULL);
}

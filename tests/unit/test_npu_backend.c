/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The NPU backend: address spaces, rings longer than the ring, stops, moves, faults, the
 * extension.  On the golden model always, on the RTL where its 16 x 16 model is built.
 */
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <hal/ext/memory.h>

#include "npu_test.h"
#include "slow.h"
#include "tests/scan.h"
#include "tier.h"

/* The call answers err with a text that has what in it. */
#define REFUSED(call, err, what)                                                         \
	do {                                                                             \
		int got_ = (call);                                                       \
		if (got_ != (err) || !strstr(hal_last_error(), what))                    \
			fail_msg("%s: %d, \"%s\"; not %s with \"%s\"", #call, got_,      \
				 hal_last_error(), #err, what);                          \
	} while (0)

static bool use_rtl;

struct world {
	struct hal_device *dev;
	struct npu_device *native;
	const struct hal_npu_extension *ext;
	struct hal_partition *part[2];
	struct hal_queue *queue[2][2];
	struct hal_buffer *buf[2][3];
	struct hal_npu_builder *b;
	struct hal_program *prog;
};

static const char *target_of(const char *more, char *target, size_t size)
{
	snprintf(target, size, "npu:0?%s%s", use_rtl ? "" : "model=" GOLDEN "&",
		 more[0] ? more : "clock=virtual");
	return target;
}

static int open_device(const char *more, struct hal_device **dev)
{
	char target[600];

	return hal_open(target_of(more, target, sizeof(target)), NULL, dev);
}

/* Two partitions side by side on channels of their own, two queues and three buffers
 * each. */
static int setup_on(void **state, const char *target)
{
	struct world *w = calloc(1, sizeof(*w));

	assert_non_null(w);
	*state = w;
	OK(hal_open(target, NULL, &w->dev));
	w->native = hal_device_get_native(w->dev);
	w->ext = hal_device_get_extension(w->dev, "npu");
	assert_non_null(w->ext);
	for (uint32_t i = 0; i < 2; i++) {
		struct hal_partition_desc part = HAL_INIT(hal_partition_desc);
		struct hal_queue_desc queue = HAL_INIT(hal_queue_desc);
		struct hal_buffer_desc buf = HAL_INIT(hal_buffer_desc);

		part.rows = 8;
		part.cols = 8;
		part.col = (uint16_t)(i * 8);
		part.memory_bytes = 8 << 20;
		part.color_mask = 3u << 2 * i;
		buf.bytes = 65536;
		OK(hal_partition_create(w->dev, &part, &w->part[i]));
		for (uint32_t j = 0; j < 2; j++)
			OK(hal_queue_create(w->part[i], &queue, &w->queue[i][j]));
		for (uint32_t j = 0; j < 3; j++)
			OK(hal_buffer_create(w->part[i], &buf, &w->buf[i][j]));
	}
	OK(hal_npu_builder_create(&w->b));
	return 0;
}

static int setup_with(void **state, const char *more)
{
	char target[600];

	return setup_on(state, target_of(more, target, sizeof(target)));
}

static int setup(void **state)
{
	return setup_with(state, "");
}

static int setup_ideal(void **state)
{
	return setup_with(state, "clock=virtual&memory=ideal");
}

/* Colours that are channels and a fourth of their caches' sets: of channels that are
 * parities, and of others. */
static int setup_sets(void **state)
{
	return setup_on(state, "npu:0?model=" GOLDEN "&channels=4&cache=64&colors=sets");
}

static int setup_sets_of_6(void **state)
{
	return setup_on(state, "npu:0?model=" GOLDEN "&channels=6&cache=64&colors=sets");
}

static int setup_real(void **state)
{
	return setup_with(state, "clock=real");
}

static int teardown(void **state)
{
	struct world *w = *state;

	if (w->prog)
		OK(hal_program_unload(w->prog));
	for (uint32_t i = 0; i < 2; i++) {
		for (uint32_t j = 0; j < 3; j++)
			OK(hal_buffer_destroy(w->buf[i][j]));
		for (uint32_t j = 0; j < 2; j++)
			OK(hal_queue_destroy(w->queue[i][j]));
		OK(hal_partition_destroy(w->part[i]));
	}
	OK(hal_npu_builder_destroy(w->b));
	OK(hal_close(w->dev));
	free(w);
	return 0;
}

/* ---- programs --------------------------------------------------------------------- */

static void load(struct world *w)
{
	void *image;
	size_t size;

	OK(hal_npu_build(w->b, &image, &size));
	OK(hal_program_load(w->dev, image, size, &w->prog));
	hal_npu_image_free(image);
}

static struct hal_kernel *kernel(struct world *w, const char *name)
{
	struct hal_kernel *k;

	if (!w->prog)
		load(w);
	OK(hal_kernel_find(w->prog, name, &k));
	return k;
}

/* count copies of one byte each: out[i] = in[i]. */
static void make_bytes(struct world *w, const char *name, uint32_t count)
{
	struct hal_npu_copy op = HAL_INIT(hal_npu_copy);

	OK(hal_npu_kernel(w->b, name));
	OK(hal_npu_arg(w->b, 65536, &op.a.id));
	OK(hal_npu_arg(w->b, 65536, &op.d.id));
	op.rows = 1;
	op.bytes = 1;
	for (uint32_t i = 0; i < count; i++) {
		op.a.offset = i;
		op.d.offset = i;
		OK(hal_npu_copy(w->b, &op));
	}
}

/* int32 sums of 256 x 64 x 256, turns times over. */
static void make_gemm(struct world *w, const char *name, uint32_t turns)
{
	struct hal_npu_gemm op = HAL_INIT(hal_npu_gemm);

	OK(hal_npu_kernel(w->b, name));
	OK(hal_npu_arg(w->b, 65536, &op.a.id));
	OK(hal_npu_arg(w->b, 65536, &op.b.id));
	OK(hal_npu_arg(w->b, 65536, &op.d.id));
	op.m = 256;
	op.n = 64;
	op.k = 256;
	for (uint32_t i = 0; i < turns; i++)
		OK(hal_npu_gemm(w->b, &op));
}

/* d = d + d in units of a half: in place, so running it twice shows. */
static void make_inplace(struct world *w, const char *name)
{
	struct hal_npu_add op = HAL_INIT(hal_npu_add);

	OK(hal_npu_kernel(w->b, name));
	OK(hal_npu_arg(w->b, 65536, &op.d.id));
	op.a = op.b = op.d;
	op.bytes = 65536;
	op.a_mult = op.b_mult = op.d_mult = 1 << 30;
	op.d_shift = -18;
	op.left_shift = 20;
	op.min = -128;
	op.max = 127;
	OK(hal_npu_add(w->b, &op));
}

static int submit(struct hal_queue *q, struct hal_cmd cmd, struct hal_point *done)
{
	struct hal_submit_desc s = HAL_INIT(hal_submit_desc);

	s.cmds = &cmd;
	s.cmd_count = 1;
	return hal_submit(q, &s, done);
}

static struct hal_cmd launch(struct hal_kernel *k, struct hal_arg *args, struct world *w,
			     uint32_t part, uint32_t count)
{
	struct hal_cmd cmd;

	for (uint32_t i = 0; i < count; i++)
		args[i] = (struct hal_arg){w->buf[part][i], 0, 0};
	cmd = hal_cmd_launch(k, args, count);
	cmd.flags |= HAL_CMD_REPLAYABLE;
	return cmd;
}

static int wait(struct hal_point p)
{
	return hal_wait(&p, 1, 0, HAL_FOREVER);
}

static void fill_random(struct world *w, uint32_t part, uint8_t *bytes, uint32_t seed)
{
	for (uint32_t j = 0; j < 2; j++) {
		for (uint32_t i = 0; i < 65536; i++) {
			seed = seed * 1664525u + 1013904223u;
			bytes[j * 65536 + i] = (uint8_t)(seed >> 24);
		}
		OK(hal_buffer_write(w->buf[part][j], 0, bytes + (size_t)j * 65536,
				    65536));
	}
}

static void check_gemm(struct world *w, uint32_t part, const uint8_t *bytes)
{
	const int8_t *a = (const int8_t *)bytes, *b = a + 65536;
	static int32_t got[256 * 64];

	OK(hal_buffer_read(w->buf[part][2], 0, got, sizeof(got)));
	for (uint32_t m = 0; m < 256; m++)
		for (uint32_t n = 0; n < 64; n++) {
			int32_t sum = 0;

			for (uint32_t k = 0; k < 256; k++)
				sum += a[m * 256 + k] * b[k * 64 + n];
			assert_int_equal(got[m * 64 + n], sum);
		}
}

static uint8_t noise[2 * 65536];

/* ---- opening ---------------------------------------------------------------------- */

static void options_refused(void **state)
{
	static const char *const wrong[][2] = {
		{"granule=1000", "granule=1000"},
		{"granule=128", "granule"},
		{"channels=17", "channels"},
		{"refresh=200", "refresh_cycles=280"},
		{"cache=3", "cache=3"},
		{"cache=4&cache_ways=3", "cache_ways=3"},
		{"colors=sets", "cache=0"},
		{"colors=sets&cache=16", "all sets of cache=16"},
		{"colors=sets&cache=256&channels=8", "64 colours"},
		{"refresh=3900&turns=300", "turns=300"},
		{"refresh=3900&durations=x", "durations"},
		{"memory_size=1048577", "memory_size"},
		{"engine=tin", "tin"},
	};
	struct hal_device *dev;

	(void)state;
	for (uint32_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		REFUSED(open_device(wrong[i][0], &dev), -EINVAL, wrong[i][1]);
	if (!use_rtl)
		REFUSED(open_device("turns=128", &dev), -ENOTSUP, "turns=128");
	REFUSED(hal_open("npu:0?model=/nowhere/libnpu.so", NULL, &dev), -ENODEV,
		"/nowhere");
	REFUSED(hal_open("npu:7?model=" GOLDEN, NULL, &dev), -ENODEV, "npu:7");
	/* What no build has: the text lists what there is, or says none. */
	REFUSED(hal_open("npu:0?rows=127&cols=3", NULL, &dev), -ENODEV,
		"existing models");
	/* And says how to have it. */
	REFUSED(hal_open("npu:0?rows=127&cols=3", NULL, &dev), -ENODEV,
		"\"make model SHAPE=127x3x4x8\"");
}

static void says_what_it_is(void **state)
{
	struct hal_device_info info = HAL_INIT(hal_device_info);
	struct world *w = *state;

	OK(hal_device_get_info(w->dev, &info));
	assert_int_equal(info.kind, HAL_KIND_NPU);
	assert_int_equal(info.unit_rows, 16);
	assert_int_equal(info.partitions_max, 4);
	assert_int_equal(info.colors, 4);
	assert_int_equal(info.granule_bytes, 1024);
	assert_int_equal(info.page_bytes, 1024);
	assert_int_equal(info.turn_cycles, 0);
	assert_int_equal(info.verified, HAL_CAP_GRID | HAL_CAP_FAULT_CONTAINED |
						(use_rtl ? HAL_CAP_LIMIT : 0));
	assert_int_equal(info.bandwidth, UINT64_C(64000000000));
	assert_int_equal(info.limit_bytes, use_rtl ? 64 : 0);
	assert_int_equal(info.limit_window_ns, use_rtl ? 0xffffff : 0);
	assert_int_equal(info.verified & ~info.caps, 0);
	assert_true(info.caps & HAL_CAP_SIMULATED);
	assert_true(info.preempt_worst_ns > 0);
}

/* Where models are looked for, which tests with RTL need again. */
struct models {
	bool set;
	char dirs[PATH_MAX];
};

static void models_saved(struct models *m)
{
	const char *dirs = getenv("HAL_NPU_MODELS");

	m->set = dirs != NULL;
	snprintf(m->dirs, sizeof(m->dirs), "%s", dirs ? dirs : "");
}

static void models_restored(const struct models *m)
{
	if (m->set)
		setenv("HAL_NPU_MODELS", m->dirs, 1);
	else
		unsetenv("HAL_NPU_MODELS");
}

static void make_file(char *path, size_t size, const char *dir, const char *name)
{
	FILE *file;

	snprintf(path, size, "%s/%s", dir, name);
	file = fopen(path, "w");
	assert_non_null(file);
	fclose(file);
}

/* Who asks for a shape that is not built is told which are, each once, and where they
 * were looked for. */
static void shapes_that_are_built(void **state)
{
	static const struct {
		uint32_t dir;
		const char *name;
	} files[] = {
		{0, "libnpu_15x7x3x6.so"},   {1, "libnpu_4x4x3x60.so"},
		{2, "libnpu_5x7x3x6.so"},    {2, "libnpu_15x7x3x6.so"},
		{3, "libnpu_4x4x3x6.so"},    {4, "libnpu_5x7x3x60.so"},
		{5, "libnpu_0x7x3x6.so"},    {5, "libnpu_5x7x3x6.so.1"},
		{5, "libnpu_5x7x3.so"},      {5, "libnpu_golden.so"},
		{5, "other_15x15x15x15.so"}, {5, "libnpu_5x7x3x6x9.so"},
		{4, "libnpu_fast.so"},
	};
	enum { FILES = sizeof(files) / sizeof(files[0]), DIRS = 6 };
	char dirs[DIRS][32], paths[FILES][80], list[256], text[512];
	struct hal_device *dev;
	struct models models;

	(void)state;
	models_saved(&models);
	for (uint32_t i = 0; i < DIRS; i++) {
		strcpy(dirs[i], "/tmp/hal-npu-XXXXXX");
		assert_non_null(mkdtemp(dirs[i]));
	}
	for (uint32_t i = 0; i < FILES; i++)
		make_file(paths[i], sizeof(paths[i]), dirs[files[i].dir], files[i].name);
	snprintf(list, sizeof(list), "%s:%s:%s:%s:%s:%s", dirs[0], dirs[1], dirs[2],
		 dirs[3], dirs[4], dirs[5]);
	snprintf(text, sizeof(text),
		 "): 15x7x3x6 4x4x3x60 5x7x3x6 4x4x3x6 5x7x3x60; looked in %s", list);
	setenv("HAL_NPU_MODELS", list, 1);
	REFUSED(hal_open("npu:0?engine=rtl&rows=2&cols=3", NULL, &dev), -ENODEV, text);
	/* Or do without: one engine takes any shape, if it is there. */
	assert_non_null(strstr(hal_last_error(), "engine=fast simulates any shape"));
	/* The fewest channels that are enough; what is none cannot be loaded. */
	REFUSED(hal_open("npu:0?engine=rtl&rows=5&cols=7&slots=3&channels=7", NULL, &dev),
		-ENODEV, "libnpu_5x7x3x60.so");
	REFUSED(hal_open("npu:0?engine=rtl&rows=5&cols=7&slots=3&channels=6", NULL, &dev),
		-ENODEV, paths[2]);
	setenv("HAL_NPU_MODELS", dirs[5], 1);
	REFUSED(hal_open("npu:0?engine=rtl&rows=5&cols=7&slots=3&channels=6", NULL, &dev),
		-ENODEV, "): none; looked in");
	assert_null(strstr(hal_last_error(), "engine=fast"));
	/* A folder that is not there, and who names it. */
	setenv("HAL_NPU_MODELS", "/nonexistent", 1);
	REFUSED(hal_open("npu:0?engine=rtl", NULL, &dev), -ENODEV,
		"looked in /nonexistent (No such file or directory), from "
		"HAL_NPU_MODELS");
	REFUSED(hal_open("npu:0?engine=fast", NULL, &dev), -ENODEV,
		"looked in /nonexistent (No such file or directory), from "
		"HAL_NPU_MODELS");
	models_restored(&models);
	for (uint32_t i = 0; i < FILES; i++)
		assert_int_equal(unlink(paths[i]), 0);
	for (uint32_t i = 0; i < DIRS; i++)
		assert_int_equal(rmdir(dirs[i]), 0);
}

/* A machine is asked what it is, and must have taken what it was told. */
static void false_machines(void **state)
{
	static const struct {
		uint32_t address, value;
		int err;
		const char *says;
	} cases[] = {
		{NPU_GLB_ID_ADDR, 0x4e505531, -EPROTO, "machine 0x4e505531 version"},
		{NPU_GLB_VERSION_ADDR, 77, -EPROTO, "version 77; this backend needs"},
		/* Without F_ONCE, which it would ignore. */
		{NPU_GLB_VERSION_ADDR, 1, -EPROTO, "from this version's sources"},
		{NPU_GLB_SHAPE_ADDR, 0, -EPROTO, "reports 0x0 units and 0 slots"},
		{NPU_GLB_HASH_ADDR, 0, -EIO, "support 6 channels with a granule of 2048"},
	};
	struct hal_device_info info = HAL_INIT(hal_device_info);
	struct hal_device *dev;
	char text[40];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		snprintf(text, sizeof(text), "%x:%x", cases[i].address, cases[i].value);
		setenv("FALSE_REGISTER", text, 1);
		REFUSED(hal_open("npu:0?channels=6&granule=2048&model=" FALSE_MODEL, NULL,
				 &dev),
			cases[i].err, cases[i].says);
	}
	/* Faults that are not told of: the device does not claim that it tells. */
	snprintf(text, sizeof(text), "%x:0", NPU_SLOT_ADDR(0, FAULT_KIND));
	setenv("FALSE_REGISTER", text, 1);
	OK(hal_open("npu:0?model=" FALSE_MODEL, NULL, &dev));
	unsetenv("FALSE_REGISTER");
	OK(hal_device_get_info(dev, &info));
	assert_int_equal(info.verified, HAL_CAP_GRID);
	OK(hal_close(dev));
}

/* A slot that does not say that it has a tenant's page tables reaches nothing: they may
 * be another's. */
static void tables_not_taken(void **state)
{
	struct hal_partition_desc desc = HAL_INIT(hal_partition_desc);
	struct hal_queue_desc queue = HAL_INIT(hal_queue_desc);
	struct hal_cmd cmd;
	struct hal_buffer_desc buffer = HAL_INIT(hal_buffer_desc);
	struct hal_partition *part;
	struct hal_buffer *buf;
	struct hal_point done;
	struct hal_device *dev;
	struct hal_queue *q;
	char text[40];

	(void)state;
	snprintf(text, sizeof(text), "%x:1000", NPU_GLB_AT(PT_BASE, 0));
	setenv("FALSE_REGISTER", text, 1);
	OK(hal_open("npu:0?model=" FALSE_MODEL, NULL, &dev));
	unsetenv("FALSE_REGISTER");
	desc.rows = desc.cols = 8;
	buffer.bytes = 64;
	OK(hal_partition_create(dev, &desc, &part));
	OK(hal_queue_create(part, &queue, &q));
	OK(hal_buffer_create(part, &buffer, &buf));
	cmd = hal_cmd_fill(buf, 0, 64, 1);
	OK(submit(q, cmd, &done));
	REFUSED(wait(done), -EIO, "out-of-bounds");
	OK(hal_buffer_destroy(buf));
	OK(hal_queue_destroy(q));
	OK(hal_partition_destroy(part));
	OK(hal_close(dev));
}

/* A model in C is found by its engine and takes any shape; one that is built has its own.
 */
static void engines(void **state)
{
	static const char *const shapes[] = {"", "&rows=5&cols=7&slots=3&channels=6",
					     "&rows=1&cols=128&slots=8&channels=14"};
	struct hal_device_info info = HAL_INIT(hal_device_info);
	static const char *const by_path[] = {"backend.npu.model=" GOLDEN, NULL};
	struct models models;
	uint32_t found = 0;
	struct npu_device *native;
	char target[PATH_MAX + 40], path[PATH_MAX];
	struct hal_device *dev;

	(void)state;
	models_saved(&models);
	for (uint32_t i = 0; i < 3; i++) {
		setenv("HAL_NPU_MODELS", HAL_BINARY_DIR "/npu-rtl", 1);
		snprintf(target, sizeof(target), "npu:0?engine=golden%s", shapes[i]);
		OK(hal_open(target, NULL, &dev));
		models_restored(&models);
		OK(hal_device_get_info(dev, &info));
		assert_non_null(strstr(info.name, "engine golden"));
		assert_int_equal(info.verified, HAL_CAP_GRID | HAL_CAP_FAULT_CONTAINED);
		assert_int_equal(info.unit_rows, i == 0 ? 16 : i == 1 ? 5 : 1);
		assert_int_equal(info.unit_cols, i == 0 ? 16 : i == 1 ? 7 : 128);
		OK(hal_close(dev));
	}
	/* The one that has the machine's cycles, up to the largest machine. */
	setenv("HAL_NPU_MODELS", HAL_BINARY_DIR "/npu-rtl", 1);
	OK(hal_open("npu:0?engine=fast&rows=5&cols=32&slots=3&channels=6", NULL, &dev));
	OK(hal_device_get_info(dev, &info));
	assert_non_null(strstr(info.name, "engine fast"));
	assert_int_equal(info.verified,
			 HAL_CAP_GRID | HAL_CAP_FAULT_CONTAINED | HAL_CAP_LIMIT);
	assert_int_equal(info.unit_cols, 32);
	OK(hal_close(dev));
	REFUSED(hal_open("npu:0?engine=fast&cols=33", NULL, &dev), -ENODEV,
		"up to 32x32x8x16");
	models_restored(&models);
	/* The model says what it is, whatever was asked for. */
	for (uint32_t i = 0; !scan_device(i, by_path, &info); i++)
		found += strstr(info.name, "engine golden") != NULL;
	assert_int_equal(found, 1);
	setenv("HAL_NPU_MODELS", "/nowhere", 1);
	REFUSED(hal_open("npu:0?engine=golden", NULL, &dev), -ENODEV, "libnpu_golden.so");
	REFUSED(hal_open("npu:0?engine=fast", NULL, &dev), -ENODEV, "libnpu_fast.so");
	models_restored(&models);
	if (!use_rtl)
		return;
	OK(open_device("clock=virtual", &dev));
	OK(hal_device_get_info(dev, &info));
	assert_non_null(strstr(info.name, "engine rtl"));
	native = hal_device_get_native(dev);
	OK(npu_model_find(&native->opt, path, sizeof(path)));
	OK(hal_close(dev));
	snprintf(target, sizeof(target), "npu:0?rows=8&model=%s", path);
	REFUSED(hal_open(target, NULL, &dev), -ENODEV, "is a model of 16x16x");
}

/* ---- durations and engine=replay --------------------------------------------------- */

#define REPLAY_COMMANDS 12u

/* Kernels and copies on both partitions, behind each other and after a pause; when each
 * ended, and the sum of requests' latencies. */
static void replay_work(const char *target, uint64_t ends[6])
{
	struct hal_npu_counters counters;
	struct hal_point done[REPLAY_COMMANDS];
	struct hal_arg args[REPLAY_COMMANDS][3];
	struct world *w;
	void *state;
	uint32_t n = 0;

	setup_on(&state, target);
	w = state;
	make_gemm(w, "gemm", 2);
	make_bytes(w, "bytes", 70);
	for (uint32_t turn = 0; turn < 2; turn++) {
		for (uint32_t part = 0; part < 2; part++) {
			OK(submit(w->queue[part][0],
				  launch(kernel(w, "gemm"), args[n], w, part, 3),
				  &done[n]));
			n++;
			OK(submit(w->queue[part][1],
				  launch(kernel(w, "bytes"), args[n], w, part, 2),
				  &done[n]));
			n++;
			OK(submit(w->queue[part][0],
				  hal_cmd_copy(w->buf[part][0], 0, w->buf[part][1], 4096,
					       1000),
				  &done[n]));
			n++;
		}
		for (uint32_t i = 0; i < n; i++)
			OK(wait(done[i]));
		OK(hal_device_poll(w->dev, 100000));
		ends[turn] = hal_device_get_time(w->dev);
	}
	for (uint32_t part = 0; part < 2; part++) {
		struct hal_stats stats = HAL_INIT(hal_stats);

		OK(hal_queue_get_stats(w->queue[part][0], &stats));
		ends[2 + part] = stats.busy_ns;
		counters.size = sizeof(counters);
		OK(w->ext->counters(w->native, part, &counters));
		ends[4 + part] = counters.macs;
	}
	teardown(&state);
}

#define DURATIONS "/tmp/hal-durations-XXXXXX"
#define REPLAY    "npu:0?engine=replay&model=" GOLDEN "&clock=virtual&durations="

static void durations_name(char *path)
{
	close(mkstemp(path));
	remove(path);
}

static void put_file(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	assert_int_not_equal(fputs(text, f), EOF);
	assert_int_equal(fclose(f), 0);
}

/* Two partitions that any channel will do for. */
static void replay_shares(const char *target, bool accepted)
{
	struct hal_partition_desc desc = HAL_INIT(hal_partition_desc);
	struct hal_partition *first, *second;
	struct hal_device *dev;

	desc.rows = desc.cols = 8;
	desc.memory_bytes = 1 << 20;
	OK(hal_open(target, NULL, &dev));
	OK(hal_partition_create(dev, &desc, &first));
	desc.row = 8;
	if (accepted) {
		OK(hal_partition_create(dev, &desc, &second));
		OK(hal_partition_destroy(second));
	} else {
		REFUSED(hal_partition_create(dev, &desc, &second), -ENOTSUP,
			"partition 0 shares channels of 0xf");
	}
	OK(hal_partition_destroy(first));
	OK(hal_close(dev));
}

/* What it does not know it does not make up. */
static void replay_refuses(void **state)
{
	static const char header[] = "npu durations 1: key count fewest sum most\n";
	static const char *const bad[] = {
		"x 1 2 2 2\n", "7 1 2 2\n",   "7 1 2 2 2 2\n",
		"0 1 2 2 2\n", "7 0 2 2 2\n", "7 2 3 4 5\n",
		"7 1 3 9 5\n", "7 1 6 5 5\n", "7 1 2 2 2\n7 1 2 2 2\n"};
	struct hal_partition_desc part = HAL_INIT(hal_partition_desc);
	char path[] = DURATIONS, record[PATH_MAX], replay[PATH_MAX], text[200];
	struct hal_device_info info = HAL_INIT(hal_device_info);
	struct hal_arg args[3];
	struct hal_device *dev;
	struct hal_point done;
	struct world *w;
	void *world;

	(void)state;
	durations_name(path);
	snprintf(record, sizeof(record), "npu:0?model=" GOLDEN "&durations=%s", path);
	REFUSED(hal_open(record, NULL, &dev), -EINVAL, "golden");
	snprintf(record, sizeof(record), "npu:0?model=" FAST "&durations=%s", path);
	snprintf(replay, sizeof(replay), REPLAY "%s", path);
	REFUSED(hal_open("npu:0?engine=replay&model=" GOLDEN, NULL, &dev), -EINVAL,
		"durations");
	REFUSED(hal_open(replay, NULL, &dev), -ENOENT, path);
	REFUSED(hal_open("npu:0?durations=/&model=" FAST, NULL, &dev), -EISDIR, "=/:");
	put_file(path, "");
	REFUSED(hal_open(replay, NULL, &dev), -EINVAL, "the file is empty");
	put_file(path, "something else\n");
	REFUSED(hal_open(replay, NULL, &dev), -EINVAL, ":1: ");
	REFUSED(hal_open(record, NULL, &dev), -EINVAL, ":1: ");
	for (uint32_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		snprintf(text, sizeof(text), "%s9 1 2 2 2\n%s", header, bad[i]);
		put_file(path, text);
		REFUSED(hal_open(replay, NULL, &dev), -EINVAL, i == 8 ? ":4: " : ":3: ");
	}
	/* Nothing was written over. */
	put_file(path, header);
	setup_on(&world, replay);
	w = world;
	OK(hal_device_get_info(w->dev, &info));
	assert_non_null(strstr(info.name, "engine replay"));
	assert_int_equal(info.caps & HAL_CAP_BIMODAL, 0);
	make_gemm(w, "gemm", 2);
	OK(submit(w->queue[0][0], launch(kernel(w, "gemm"), args, w, 0, 3), &done));
	REFUSED(wait(done), -ENOTSUP,
		"descriptor 0 of kernel 'gemm' on 8 x 8 PEs and channels 0x3");
	OK(submit(w->queue[1][0], hal_cmd_copy(w->buf[1][0], 0, w->buf[1][1], 0, 99),
		  &done));
	REFUSED(wait(done), -ENOTSUP, "a copy");
	teardown(&world);
	replay_shares(replay, false);
	/* Known where it ran, nowhere else. */
	setup_on(&world, record);
	w = world;
	make_gemm(w, "gemm", 2);
	OK(submit(w->queue[0][0], launch(kernel(w, "gemm"), args, w, 0, 3), &done));
	OK(wait(done));
	teardown(&world);
	setup_on(&world, replay);
	w = world;
	make_gemm(w, "gemm", 2);
	OK(submit(w->queue[0][0], launch(kernel(w, "gemm"), args, w, 0, 3), &done));
	OK(hal_device_poll(w->dev, 1000)); /* it runs */
	part.rows = part.cols = 7;
	REFUSED(hal_partition_resize(w->part[0], &part, NULL), -ENOTSUP, "7 x 7");
	OK(wait(done));
	OK(submit(w->queue[1][0], launch(kernel(w, "gemm"), args, w, 1, 3), &done));
	REFUSED(wait(done), -ENOTSUP, "channels 0xc");
	teardown(&world);
	/* Who does not tell its channels has all of them. */
	snprintf(replay, sizeof(replay), REPLAY "%s&hash=opaque", path);
	replay_shares(replay, false);
	snprintf(replay, sizeof(replay), REPLAY "%s&replay_shared=accept", path);
	replay_shares(replay, true);
	remove(path);
}

static uint32_t lines_of(const char *path)
{
	FILE *f = fopen(path, "r");
	uint32_t n = 0;
	int c;

	assert_non_null(f);
	while ((c = fgetc(f)) != EOF)
		n += c == '\n';
	assert_int_equal(fclose(f), 0);
	return n;
}

/* What a duration belongs to, seen by the number of lines. */
static void recorded(void **state)
{
	/* Copies alone, behind each other, killed under way; who shares channels is not
	 * written down, nor who is limited.  On other channels it is another duration. */
	static const struct {
		uint32_t at_once, partitions, lines;
		bool killed;
		const char *options;
		uint64_t bandwidth;
	} turns[] = {{1, 2, 1, false, "", 0},
		     {1, 1, 8, false, "", 0},
		     {1, 1, 8, false, "", 0},
		     {3, 1, 9, false, "", 0},
		     {1, 1, 9, true, "", 0},
		     {1, 1, 16, false, "&channels=5", 0},
		     {1, 1, 23, false, "&hash_seed=2", 0},
		     {1, 1, 23, false, "&hash_seed=3", 640000000},
		     {1, 1, 30, false, "&hash_seed=-1", 0},
		     {1, 2, 30, false, "&hash_seed=4&hash=opaque", 0},
		     {1, 1, 37, false, "&hash_seed=4&hash=opaque", 0}};
	struct hal_partition_limits limits = HAL_INIT(hal_partition_limits);
	struct hal_partition_desc desc = HAL_INIT(hal_partition_desc);
	struct hal_queue_desc queue = HAL_INIT(hal_queue_desc);
	struct hal_buffer_desc buffer = HAL_INIT(hal_buffer_desc);
	char path[] = DURATIONS, record[PATH_MAX];
	struct hal_partition *part[2];
	struct hal_buffer *buf;
	struct hal_point done, quiet;
	struct hal_device *dev;
	struct hal_queue *q;
	struct hal_cmd copy;

	(void)state;
	durations_name(path);
	desc.rows = desc.cols = 8;
	desc.memory_bytes = 1 << 20;
	buffer.bytes = 4096;
	for (uint32_t i = 0; i < sizeof(turns) / sizeof(turns[0]); i++) {
		snprintf(record, sizeof(record), "npu:0?model=" FAST "&durations=%s%s",
			 path, turns[i].options);
		limits.bandwidth = turns[i].bandwidth;
		desc.limits = &limits;
		OK(hal_open(record, NULL, &dev));
		for (uint32_t j = 0; j < turns[i].partitions; j++) {
			desc.row = (uint16_t)(8 * j);
			OK(hal_partition_create(dev, &desc, &part[j]));
		}
		OK(hal_queue_create(part[0], &queue, &q));
		OK(hal_buffer_create(part[0], &buffer, &buf));
		copy = hal_cmd_copy(buf, 0, buf, 2048, 1000);
		copy.flags |= HAL_CMD_REPLAYABLE;
		for (uint32_t j = 0; j < turns[i].at_once; j++)
			OK(submit(q, copy, &done));
		if (turns[i].killed) {
			assert_true(hal_device_poll(dev, 60) >= 0);
			OK(hal_queue_suspend(q, HAL_SUSPEND_KILL, &quiet));
			OK(wait(quiet));
			OK(hal_queue_resume(q));
		}
		OK(wait(done));
		OK(hal_buffer_destroy(buf));
		OK(hal_queue_destroy(q));
		for (uint32_t j = 0; j < turns[i].partitions; j++)
			OK(hal_partition_destroy(part[j]));
		OK(hal_close(dev));
		assert_int_equal(lines_of(path), turns[i].lines);
	}
	remove(path);
}

/* Nor what ran beside others for a part of its time only. */
static void recorded_alone(void **state)
{
	struct hal_partition_desc desc = HAL_INIT(hal_partition_desc);
	struct hal_queue_desc queue = HAL_INIT(hal_queue_desc);
	struct hal_buffer_desc buffer = HAL_INIT(hal_buffer_desc);
	char path[] = DURATIONS, record[PATH_MAX];
	struct hal_partition *part[2];
	struct hal_buffer *buf;
	struct hal_point done;
	struct hal_device *dev;
	struct hal_queue *q;

	(void)state;
	desc.rows = desc.cols = 8;
	desc.memory_bytes = 1 << 20;
	buffer.bytes = 16384;
	/* Somebody comes and goes; goes; is not there. */
	for (uint32_t turn = 0; turn < 3; turn++) {
		durations_name(path);
		snprintf(record, sizeof(record), "npu:0?model=" FAST "&durations=%s",
			 path);
		desc.row = 0;
		OK(hal_open(record, NULL, &dev));
		OK(hal_partition_create(dev, &desc, &part[0]));
		desc.row = 8;
		if (turn == 1)
			OK(hal_partition_create(dev, &desc, &part[1]));
		OK(hal_queue_create(part[0], &queue, &q));
		OK(hal_buffer_create(part[0], &buffer, &buf));
		OK(submit(q, hal_cmd_copy(buf, 0, buf, 8192, 8192), &done));
		assert_true(hal_device_poll(dev, 200) >= 0);
		if (turn == 0)
			OK(hal_partition_create(dev, &desc, &part[1]));
		if (turn < 2)
			OK(hal_partition_destroy(part[1]));
		assert_int_equal(hal_wait(&done, 1, 0, 0), -ETIMEDOUT);
		OK(wait(done));
		OK(hal_buffer_destroy(buf));
		OK(hal_queue_destroy(q));
		OK(hal_partition_destroy(part[0]));
		OK(hal_close(dev));
		/* TIMESTAMP, copy, TIMESTAMP, SIGNAL, by who was ahead and by none; the
		 * TIMESTAMPs' by none is one. */
		assert_int_equal(lines_of(path), 1 + (turn == 0 ? 5 : turn == 1 ? 4 : 7));
		remove(path);
	}
}

static void durations_table(void **state)
{
	struct npu_place place = {.rows = 8, .cols = 8, .channels = 3, .gran = 10};
	char path[] = DURATIONS;
	struct npu_durations *d, *other;
	uint32_t desc[16] = {0};
	uint64_t cycles, hash;

	(void)state;
	durations_name(path);
	for (uint32_t turn = 0; turn < 3; turn++) {
		OK(npu_durations_open(path, true, &d));
		REFUSED(npu_durations_open(path, true, &other), -EBUSY,
			"another device or program is recording into this file");
		for (uint64_t i = 1; i <= 5000; i++)
			assert_true(npu_durations_add(d, i * 1024, i + turn * turn));
		assert_true(npu_durations_close(d));
	}
	OK(npu_durations_open(path, false, &d));
	for (uint64_t i = 1; i <= 5000; i++) {
		assert_true(npu_durations_get(d, i * 1024, &cycles));
		assert_int_equal(cycles, i + 2); /* (0 + 1 + 4) / 3, rounded */
	}
	assert_false(npu_durations_get(d, 5001 * 1024, &cycles));
	assert_true(npu_durations_close(d));
	remove(path);
	/* Each word counts, addresses by their place in a page. */
	NPU_SET(desc, OPCODE, NPU_OP_GEMM);
	hash = npu_desc_hash(&place, desc);
	for (uint32_t i = 0; i < 16; i++) {
		desc[i] ^= 512;
		assert_true(hash != npu_desc_hash(&place, desc));
		desc[i] ^= 512 ^ 1024;
		assert_int_equal(hash == npu_desc_hash(&place, desc), i >= 1 && i <= 4);
		desc[i] ^= 1024;
	}
	place.serial = true;
	assert_true(hash != npu_desc_hash(&place, desc));
}

static void replayed(void **state)
{
	char path[] = DURATIONS, record[PATH_MAX], replay[PATH_MAX];
	uint64_t first[6], again[6], third[6];

	(void)state;
	durations_name(path);
	snprintf(record, sizeof(record), "npu:0?%sclock=virtual&durations=%s",
		 use_rtl ? "" : "model=" FAST "&", path);
	snprintf(replay, sizeof(replay), REPLAY "%s", path);
	replay_work(record, first);
	replay_work(replay, again);
	/* What one run adds to the file's means changes nothing that is the same. */
	replay_work(record, third);
	assert_memory_equal(first, third, sizeof(first));
	/* A time is stored some cycles before the descriptor that does so ends. */
	for (uint32_t i = 0; i < 6; i++) {
		uint64_t off = i < 4 ? first[i] / 1000 : 0;

		assert_in_range(again[i], first[i] - off, first[i] + off);
	}
	remove(path);
}

/* Options reach the machine. */
static void options_arrive(void **state)
{
	struct world *w = *state;
	struct hal_device *dev;
	struct npu_device *native;
	uint32_t masks = 0;

	assert_int_equal(npu_read(w->native, NPU_GLB_CTRL_ADDR) & 1, 0);
	OK(open_device("clock=virtual&memory=ideal&channels=8", &dev));
	native = hal_device_get_native(dev);
	assert_int_equal(npu_read(native, NPU_GLB_CTRL_ADDR) & 1, 1);
	/* Three bits of the channel, each of bits of its own. */
	for (uint32_t i = 0; i < 3; i++) {
		uint32_t mask = native->hash.xmask[i];

		assert_int_equal(mask & masks, 0);
		masks |= mask;
	}
	assert_int_equal(masks, 0xfffff8);
	assert_int_equal(native->hash.k, 3);
	assert_int_equal(native->hash.q, 1);
	OK(hal_close(dev));
}

/* Past the core's own check: the hardware refuses by itself. */
static void hardware_refuses_overlap(void **state)
{
	struct world *w = *state;
	struct hal_bk_partition_desc d = {.index = 2,
					  .units = 4,
					  .row = 7,
					  .col = 7,
					  .rows = 2,
					  .cols = 2,
					  .color_mask = 15};
	uint64_t free_before = npu_memory_free(w->native);
	void *part;

	REFUSED(npu_partition_create(w->native, &d, &part), -EINVAL, "overlaps");
	assert_non_null(strstr(hal_last_error(), "hardware"));
	d.row = 15;
	REFUSED(npu_partition_create(w->native, &d, &part), -EINVAL, "exceeds the array");
	assert_int_equal(npu_memory_free(w->native), free_before);
	d.row = 8;
	OK(npu_partition_create(w->native, &d, &part));
	REFUSED(npu_partition_create(w->native, &d, &part), -ENOSPC, "slot 2");
	OK(npu_partition_destroy(w->native, part));
	assert_int_equal(npu_memory_free(w->native), free_before);
}

/* ---- memory ----------------------------------------------------------------------- */

static const struct hal_bk_colors low_two = {.mask = 3};

static void memory_has_its_colours(void **state)
{
	struct world *w = *state;
	struct npu_partition *part = w->native->parts[1];
	void *memory;

	for (uint64_t mask = 4; mask <= 12; mask += 4) {
		const struct hal_bk_colors colors = {.mask = mask};
		struct npu_mem *mem;

		OK(npu_mem_alloc(w->native, part, 40000, &colors, 0, &memory));
		mem = memory;
		assert_int_equal(mem->pages, 40);
		for (uint32_t i = 0; i < mem->pages; i++) {
			uint32_t g = mem->granules[i];

			assert_true(mask >> npu_hash_map(&w->native->hash, g).channel &
				    1);
			/* Nobody else's, and the page before and behind is not mapped. */
			for (uint32_t j = 0; j < i; j++)
				assert_int_not_equal(mem->granules[j], g);
		}
		assert_int_equal(part->page_used[(mem->va >> 10) + mem->pages], 0);
		OK(npu_mem_free(w->native, memory));
	}
	/* The page table and the ring, too. */
	for (uint32_t i = 0; i < part->root_granules; i++)
		assert_true(12 >> npu_hash_map(&w->native->hash, part->root + i).channel &
			    1);
	assert_true(part->tables[0]);
	for (uint32_t i = 0; i < part->table_count; i++)
		if (part->tables[i])
			assert_true(
				12 >> npu_hash_map(&w->native->hash, part->tables[i] - 1)
						.channel &
				1);
	for (uint32_t i = 0; i < part->ring->pages; i++)
		assert_true(12 >> npu_hash_map(&w->native->hash, part->ring->granules[i])
					    .channel &
			    1);
}

static void memory_has_its_sets(void **state)
{
	struct hal_partition_desc third = HAL_INIT(hal_partition_desc);
	struct hal_device_info info = HAL_INIT(hal_device_info);
	struct world *w = *state;
	uint32_t channels = w->native->opt.channels;
	struct hal_partition *other;

	OK(hal_device_get_info(w->dev, &info));
	assert_int_equal(info.colors, 4 * channels);
	/* Colours 2 and 3 are channels 2 and 3, and the first sets. */
	assert_int_equal(npu_read(w->native, NPU_GLB_AT(CH_MASK, 1)), 12);
	third.row = 8;
	third.rows = 8;
	third.cols = 8;
	third.color_mask = UINT64_C(1) << (3 * channels + 2) | UINT64_C(1) << channels;
	OK(hal_partition_create(w->dev, &third, &other));
	assert_int_equal(npu_read(w->native, NPU_GLB_AT(CH_MASK, 2)), 5);
	for (uint32_t c = 0; c < 4 * channels; c++) {
		struct npu_partition *part = w->native->parts[c < channels ? 1 : 2];
		const struct hal_bk_colors colors = {.mask = UINT64_C(1) << c};
		struct npu_mem *mem;
		void *memory;

		if (!(part->desc.color_mask >> c & 1u))
			continue;
		OK(npu_mem_alloc(w->native, part, 40000, &colors, 0, &memory));
		mem = memory;
		for (uint32_t i = 0; i < mem->pages; i++) {
			struct npu_hash_place p =
				npu_hash_map(&w->native->hash, mem->granules[i]);

			assert_int_equal(p.channel, c % channels);
			assert_int_equal(p.local % 4, c / channels);
		}
		OK(npu_mem_free(w->native, memory));
	}
	OK(hal_partition_destroy(other));
}

/* An address space has no two buffers side by side, whatever was freed in between. */
static void memory_lies_apart(void **state)
{
	enum { N = 12 };
	struct world *w = *state;
	struct npu_partition *part = w->native->parts[0];
	struct npu_mem *mem[N];
	void *memory;

	for (uint32_t turn = 0; turn < 4; turn++) {
		for (uint32_t i = 0; i < N; i++) {
			if (turn && i % 3 != turn - 1)
				continue;
			OK(npu_mem_alloc(w->native, part, 1024 * (1 + (i + turn) % 4),
					 &low_two, 0, &memory));
			mem[i] = memory;
		}
		for (uint32_t i = 0; i < N; i++) {
			uint32_t first = mem[i]->va >> 10;

			assert_true(first > 0);
			assert_int_equal(part->page_used[first - 1], first == 1);
			assert_int_equal(part->page_used[first + mem[i]->pages], 0);
		}
		for (uint32_t i = 0; i < N; i++)
			if (turn == 3 || i % 3 == turn)
				OK(npu_mem_free(w->native, mem[i]));
	}
}

static void memory_is_clean(void **state)
{
	struct world *w = *state;
	struct npu_partition *part = w->native->parts[0];
	uint8_t bytes[4096], zeros[4096] = {0};
	void *mem;

	for (int turn = 0; turn < 3; turn++) {
		OK(npu_mem_alloc(w->native, part, sizeof(bytes), &low_two, 0, &mem));
		OK(npu_mem_read(w->native, mem, 0, bytes, sizeof(bytes)));
		assert_memory_equal(bytes, zeros, sizeof(bytes));
		memset(bytes, 0xEE, sizeof(bytes));
		OK(npu_mem_write(w->native, mem, 0, bytes, sizeof(bytes)));
		OK(npu_mem_free(w->native, mem));
	}
}

static void memory_runs_out(void **state)
{
	struct world *w = *state;
	struct npu_partition *part = w->native->parts[0];
	uint64_t free_before = npu_memory_free(w->native);
	void *mem, *list[2];
	uint32_t n = 0;

	REFUSED(npu_mem_alloc(w->native, part, 0, &low_two, 0, &mem), -EINVAL, "0 bytes");
	REFUSED(npu_mem_alloc(w->native, part, UINT64_C(1) << 40, &low_two, 0, &mem),
		-ENOSPC, "bytes");
	REFUSED(npu_mem_alloc(w->native, part, 48 << 20, &low_two, 0, &mem), -ENOSPC, "");
	while (n < 2 && !npu_mem_alloc(w->native, part, 3 << 20, &low_two, 0, &list[n]))
		n++;
	while (n)
		OK(npu_mem_free(w->native, list[--n]));
	assert_int_equal(npu_memory_free(w->native), free_before);
}

static void copied(struct world *w, void *queue, struct npu_mem *to, struct npu_mem *from,
		   uint32_t word)
{
	struct hal_bk_cmd cmd = {.op = HAL_OP_COPY};
	struct hal_bk_event ev;
	uint32_t got = 0;

	cmd.copy.dst = to;
	cmd.copy.src = from;
	cmd.copy.bytes = to->bytes;
	OK(npu_submit(w->native, queue, &cmd));
	assert_int_equal(npu_poll(w->native, UINT64_MAX, &ev, 1), 1);
	assert_int_equal(ev.status, 0);
	OK(npu_mem_read(w->native, to, to->bytes - 4, &got, 4));
	assert_int_equal(got, word);
}

/* The machine, which has just used them both, finds each one's bytes in the other. */
static void memory_changes_places(void **state)
{
	static const struct hal_bk_colors one = {.mask = 1}, two = {.mask = 2};
	struct world *w = *state;
	struct npu_partition *part = w->native->parts[0];
	const uint32_t words[2] = {0xaaaa5555, 0x12345678};
	struct npu_mem *a, *b, *to;
	void *queue, *mem[3];

	OK(npu_queue_create(w->native, part, 0, &queue));
	OK(npu_mem_alloc(w->native, part, 5000, &one, 0, &mem[0]));
	OK(npu_mem_alloc(w->native, part, 5000, &two, 0, &mem[1]));
	OK(npu_mem_alloc(w->native, part, 5000, &low_two, 0, &mem[2]));
	a = mem[0];
	b = mem[1];
	to = mem[2];
	OK(npu_mem_write(w->native, a, 4996, &words[0], 4));
	OK(npu_mem_write(w->native, b, 4996, &words[1], 4));
	copied(w, queue, to, b, words[1]);
	copied(w, queue, to, a, words[0]);
	OK(npu_mem_swap(w->native, a, b));
	for (uint32_t i = 0; i < a->pages; i++)
		assert_int_equal(npu_hash_map(&w->native->hash, a->granules[i]).channel,
				 1);
	copied(w, queue, to, a, words[1]);
	copied(w, queue, to, b, words[0]);
	OK(npu_queue_destroy(w->native, queue));
	for (int i = 0; i < 3; i++)
		OK(npu_mem_free(w->native, mem[i]));
}

static void mapping(void **state)
{
	struct hal_buffer_desc desc = HAL_INIT(hal_buffer_desc);
	struct hal_partition_desc pd = HAL_INIT(hal_partition_desc);
	struct world *w = *state;
	struct hal_partition *part;
	struct hal_device *dev;
	struct hal_buffer *buf;
	uint8_t bytes[5000];
	void *address;

	/* On some channels only, memory does not lie together. */
	desc.bytes = 65536;
	desc.flags = HAL_BUFFER_MAPPABLE;
	REFUSED(hal_buffer_create(w->part[0], &desc, &buf), -ENOTSUP,
		"the longest free run");
	REFUSED(hal_buffer_map(w->buf[0][0], &address), -ENOTSUP, "MAPPABLE");
	OK(open_device("", &dev));
	pd.rows = pd.cols = 1;
	OK(hal_partition_create(dev, &pd, &part));
	OK(hal_buffer_create(part, &desc, &buf));
	OK(hal_buffer_map(buf, &address));
	memset(address, 0x3C, 65536);
	OK(hal_buffer_read(buf, 60000, bytes, 5000));
	for (uint32_t i = 0; i < sizeof(bytes); i++)
		assert_int_equal(bytes[i], 0x3C);
	OK(hal_buffer_unmap(buf));
	OK(hal_buffer_destroy(buf));
	OK(hal_partition_destroy(part));
	OK(hal_close(dev));
}

/* ---- launches --------------------------------------------------------------------- */

static void longer_than_the_ring(void **state)
{
	struct world *w = *state;
	struct hal_arg args[2];
	struct hal_point done;
	uint8_t got[2000];

	make_bytes(w, "bytes", 1500);
	fill_random(w, 0, noise, 1);
	OK(submit(w->queue[0][0], launch(kernel(w, "bytes"), args, w, 0, 2), &done));
	OK(wait(done));
	OK(hal_buffer_read(w->buf[0][1], 0, got, sizeof(got)));
	assert_memory_equal(got, noise, 1500);
	assert_memory_equal(got + 1500, noise + 65536 + 1500, 500);
}

static void launches_refused(void **state)
{
	struct world *w = *state;
	struct hal_arg args[3];
	struct hal_point done;
	struct hal_cmd cmd;

	make_gemm(w, "gemm", 1);
	cmd = launch(kernel(w, "gemm"), args, w, 0, 3);
	args[2].offset = 2;
	assert_true(submit(w->queue[0][0], cmd, &done) || wait(done));
	cmd = launch(kernel(w, "gemm"), args, w, 0, 3);
	cmd.launch.groups[1] = 4;
	assert_true(submit(w->queue[0][1], cmd, &done) || wait(done));
}

static void counts_exactly(void **state)
{
	struct hal_npu_counters before = HAL_INIT(hal_npu_counters), after = before;
	static uint64_t busy[256], busy_before[256];
	uint64_t sum = 0, macs = UINT64_C(256) * 64 * 256;
	struct hal_stats stats = HAL_INIT(hal_stats);
	struct world *w = *state;
	struct hal_arg args[3];
	struct hal_point done;

	make_gemm(w, "gemm", 1);
	fill_random(w, 1, noise, 2);
	OK(w->ext->counters(w->native, 1, &before));
	OK(w->ext->pe_busy(w->native, busy_before, 256));
	for (uint32_t i = 0; i < 256; i++)
		assert_int_equal(busy_before[i], 0);
	OK(submit(w->queue[1][0], launch(kernel(w, "gemm"), args, w, 1, 3), &done));
	OK(wait(done));
	check_gemm(w, 1, noise);
	OK(w->ext->counters(w->native, 1, &after));
	assert_int_equal(after.macs - before.macs, macs);
	assert_int_equal(after.cycles, after.active + after.stall_a + after.stall_w +
					       after.stall_out + after.stall_seq +
					       after.idle);
	OK(w->ext->pe_busy(w->native, busy, 256));
	for (uint32_t i = 0; i < 256; i++) {
		/* Columns 8..15 of rows 0..7, nobody else. */
		if (i / 16 >= 8 || i % 16 < 8)
			assert_int_equal(busy[i], busy_before[i]);
		else
			assert_int_equal(busy[i] - busy_before[i], macs / 64);
		sum += busy[i] - busy_before[i];
	}
	assert_int_equal(sum, macs);
	OK(hal_queue_get_stats(w->queue[1][0], &stats));
	assert_true(stats.busy_ns >= macs / 64);
	assert_true(stats.bytes_written >= 65536);
	assert_true(stats.bytes_read >= 65536 + 16384);
	REFUSED(w->ext->counters(w->native, 3, &after), -EINVAL, "no partition 3");
	REFUSED(w->ext->pe_busy(w->native, busy, 255), -EINVAL, "255");
	after.size = 8;
	REFUSED(w->ext->counters(w->native, 1, &after), -EINVAL, ".size");
}

/* As many as there is room for, and what comes first is the same. */
static void counters_have_room(void **state)
{
	struct world *w = *state;
	struct hal_bk_counter all[64], some[65];
	uint64_t at;
	int count = npu_counters(w->native, all, 64, &at);

	assert_true(count > 4);
	for (int max = 0; max < count; max++) {
		some[max].kind = UINT32_MAX;
		assert_int_equal(npu_counters(w->native, some, (uint32_t)max, &at), max);
		assert_int_equal(some[max].kind, UINT32_MAX);
		for (int i = 0; i < max; i++) {
			assert_int_equal(some[i].kind, all[i].kind);
			assert_int_equal(some[i].index, all[i].index);
		}
	}
}

struct folds {
	uint64_t count, macs, bad;
};

static void on_fold(void *user, const struct hal_npu_fold *f)
{
	struct folds *n = user;

	n->count++;
	n->macs += (uint64_t)f->rows_used * f->cols_used * f->t;
	if (f->partition != 1 || f->row != 0 || f->col != 8 || f->end <= f->start ||
	    f->rows_used > 8 || f->cols_used > 8)
		n->bad++;
}

/* Which masks the machine has; an opaque one does not say. */
static void masks_of_a_seed(void **state)
{
	static const struct {
		const char *options;
		uint32_t mask[2];
	} seeds[] = {{"", {0x555554, 0xaaaaa8}},
		     {"&hash_seed=0", {0x555554, 0xaaaaa8}},
		     {"&hash_seed=-1", {0, 0}},
		     {"&hash_seed=-1&hash=opaque", {0, 0}},
		     {"&hash=opaque", {0, 0}}};
	char target[128];

	(void)state;
	for (size_t i = 0; i < sizeof(seeds) / sizeof(seeds[0]); i++) {
		const struct hal_npu_extension *ext;
		struct hal_device *dev;

		snprintf(target, sizeof(target), "npu:0?model=" FAST "%s",
			 seeds[i].options);
		OK(hal_open(target, NULL, &dev));
		ext = hal_device_get_extension(dev, "npu");
		for (uint32_t k = 0; k < 2; k++)
			assert_int_equal(ext->reg_read(hal_device_get_native(dev),
						       NPU_GLB_AT(XMASK, k)),
					 seeds[i].mask[k]);
		OK(hal_close(dev));
	}
	REFUSED(hal_open("npu:0?hash_seed=-2", NULL, &(struct hal_device *){NULL}),
		-EINVAL, "hash_seed = \"-2\" is not in -1..");
}

/* Fold after fold is how a partition works, not who comes after it. */
static void serial_goes(void **state)
{
	const uint32_t at = NPU_GLB_AT(SLOT_CTRL, 0),
		       serial = NPU_REG_BITS(SLOT_CTRL_SERIAL, 1);
	struct hal_partition_desc desc = HAL_INIT(hal_partition_desc);
	const struct hal_npu_extension *ext;
	struct hal_partition *part;
	struct hal_device *dev;
	void *native;

	(void)state;
	desc.rows = desc.cols = 4;
	OK(hal_open("npu:0?model=" FAST, NULL, &dev));
	native = hal_device_get_native(dev);
	ext = hal_device_get_extension(dev, "npu");
	OK(hal_partition_create(dev, &desc, &part));
	OK(ext->serial(native, 0, 1));
	assert_int_equal(ext->reg_read(native, at) & serial, serial);
	OK(hal_partition_destroy(part));
	OK(hal_partition_create(dev, &desc, &part));
	assert_int_equal(ext->reg_read(native, at) & serial, 0);
	OK(hal_partition_destroy(part));
	OK(hal_close(dev));
}

/* Memory is given back while its partition works: nothing that goes by the old
 * translations is under way then, however little it may move a window; and the limit
 * stays.
 */
static void freed_at_work(void **state)
{
	const uint32_t at = NPU_GLB_AT(SLOT_CTRL, 0);
	struct hal_partition_limits limits = HAL_INIT(hal_partition_limits);
	struct hal_partition_desc desc = HAL_INIT(hal_partition_desc);
	struct hal_queue_desc queue = HAL_INIT(hal_queue_desc);
	struct hal_buffer_desc buffer = HAL_INIT(hal_buffer_desc);
	const struct hal_npu_extension *ext;
	struct hal_buffer *buf, *other[40];
	struct hal_partition *part;
	struct hal_device *dev;
	struct hal_point done, next;
	struct hal_queue *q;
	uint64_t start;
	void *native;

	(void)state;
	desc.rows = desc.cols = 8;
	for (uint32_t turn = 0; turn < 3; turn++) {
		bool limited = turn == 1;

		limits.bandwidth = limited ? 64000000 : 0; /* 64 bytes in 1,000 ns */
		desc.limits = &limits;
		OK(hal_open(turn < 2 ? "npu:0?model=" FAST
				     : "npu:0?clock=real&model=" FAST,
			    NULL, &dev));
		native = hal_device_get_native(dev);
		ext = hal_device_get_extension(dev, "npu");
		OK(hal_partition_create(dev, &desc, &part));
		OK(hal_queue_create(part, &queue, &q));
		buffer.bytes = 65536;
		OK(hal_buffer_create(part, &buffer, &buf));
		buffer.bytes = 64;
		for (uint32_t i = 0; i < 40; i++)
			OK(hal_buffer_create(part, &buffer, &other[i]));
		start = hal_device_get_time(dev);
		OK(submit(q, hal_cmd_copy(buf, 0, buf, 32768, 800), &done));
		for (uint32_t i = 0; i < 40; i++) {
			/* It goes when the copy has ended that may know it, and the next
			 * one runs. */
			OK(hal_buffer_destroy(other[i]));
			OK(submit(q, hal_cmd_copy(buf, 0, buf, 32768, 800), &next));
			OK(wait(done));
			assert_int_equal(NPU_REG_GET(ext->reg_read(native, at),
						     SLOT_CTRL_TLB_FLUSH),
					 0);
			done = next;
		}
		OK(wait(done));
		/* 41 times 1,600 bytes */
		if (limited)
			assert_true(hal_device_get_time(dev) - start > 900000);
		OK(hal_buffer_destroy(buf));
		OK(hal_queue_destroy(q));
		OK(hal_partition_destroy(part));
		OK(hal_close(dev));
	}
}

static void tells_of_folds(void **state)
{
	struct world *w = *state;
	struct folds n = {0};
	uint64_t count;
	struct hal_arg args[3];
	struct hal_point done;

	make_gemm(w, "gemm", 1);
	OK(w->ext->on_fold(w->native, on_fold, &n));
	OK(submit(w->queue[1][0], launch(kernel(w, "gemm"), args, w, 1, 3), &done));
	OK(wait(done));
	/* 64 / 8 columns times 256 / 8 rows times the panels, of at most 128 rows */
	assert_true(n.count >= 8 * 32 * 2);
	assert_int_equal(n.count % (8 * 32), 0);
	count = n.count;
	assert_int_equal(n.macs, 256 * 64 * 256);
	assert_int_equal(n.bad, 0);
	OK(w->ext->on_fold(w->native, NULL, NULL));
	OK(submit(w->queue[1][0], launch(kernel(w, "gemm"), args, w, 1, 3), &done));
	REFUSED(w->ext->serial(w->native, 3, 1), -EINVAL, "no partition 3");
	OK(wait(done));
	assert_int_equal(n.count, count);
	OK(w->ext->serial(w->native, 1, 1));
	OK(w->ext->serial(w->native, 1, 0));
	assert_int_equal(w->ext->reg_read(w->native, NPU_GLB_ID_ADDR), NPU_GLB_ID_RESET);
}

/* ---- stops ------------------------------------------------------------------------ */

static void kill_a_long_kernel(void **state)
{
	struct world *w = *state;
	struct hal_arg args[3];
	struct hal_point done, quiet;

	make_gemm(w, "gemm", 12);
	fill_random(w, 0, noise, 3);
	OK(submit(w->queue[0][0], launch(kernel(w, "gemm"), args, w, 0, 3), &done));
	for (int turn = 0; turn < 5; turn++) {
		assert_true(hal_device_poll(w->dev, 1000 + 700 * (uint64_t)turn) >= 0);
		OK(hal_queue_suspend(w->queue[0][0], HAL_SUSPEND_KILL, &quiet));
		OK(wait(quiet));
		assert_true(w->native->parts[0]->preempt_cycles <= 8);
		OK(hal_queue_resume(w->queue[0][0]));
	}
	OK(wait(done));
	check_gemm(w, 0, noise);
}

/* Killing a queue whose command waits behind another's, which must not run twice: it is
 * not waited for either. */
static void kill_behind_another(void **state)
{
	struct hal_device_info info = HAL_INIT(hal_device_info);
	struct hal_stats stats = HAL_INIT(hal_stats);
	struct world *w = *state;
	static int8_t once[65536], got[65536];
	struct hal_arg args[3], inplace = {w->buf[0][1], 0, 0};
	struct hal_point first, second, quiet;
	struct hal_cmd cmd;

	make_inplace(w, "inplace");
	make_bytes(w, "bytes", 3);
	for (uint32_t i = 0; i < sizeof(once); i++)
		once[i] = (int8_t)(i % 60);
	OK(hal_buffer_write(w->buf[0][1], 0, once, sizeof(once)));
	cmd = hal_cmd_launch(kernel(w, "inplace"), &inplace, 1);
	OK(submit(w->queue[0][0], cmd, &first));
	OK(submit(w->queue[0][1], launch(kernel(w, "bytes"), args, w, 0, 2), &second));
	assert_true(hal_device_poll(w->dev, 500) >= 0);
	OK(hal_queue_suspend(w->queue[0][1], HAL_SUSPEND_KILL, &quiet));
	OK(wait(quiet));
	assert_true(hal_wait(&first, 1, 0, 0) != 0);
	OK(hal_device_get_info(w->dev, &info));
	OK(hal_queue_get_stats(w->queue[0][1], &stats));
	assert_in_range(stats.suspend_max_ns, 0, info.suspend_worst_ns[HAL_SUSPEND_KILL]);
	OK(hal_queue_resume(w->queue[0][1]));
	OK(wait(first));
	OK(wait(second));
	OK(hal_buffer_read(w->buf[0][1], 0, got, sizeof(got)));
	/* Once: doubled.  (The copies write 0 to the first three.) */
	for (uint32_t i = 3; i < sizeof(got); i++)
		assert_int_equal(got[i], 2 * once[i]);
}

/* What the ring has no room for yet is gone at once, whatever runs. */
static void kill_before_the_ring(void **state)
{
	struct world *w = *state;
	static int8_t once[65536], got[65536];
	struct hal_arg args[3], inplace = {w->buf[0][2], 0, 0};
	struct hal_point first, second, quiet;
	struct hal_cmd cmd;

	make_inplace(w, "inplace");
	make_bytes(w, "bytes", 400);
	for (uint32_t i = 0; i < sizeof(once); i++)
		once[i] = (int8_t)(i % 60);
	OK(hal_buffer_write(w->buf[0][2], 0, once, sizeof(once)));
	OK(submit(w->queue[0][0], launch(kernel(w, "bytes"), args, w, 0, 2), &first));
	cmd = hal_cmd_launch(kernel(w, "inplace"), &inplace, 1);
	cmd.flags |= HAL_CMD_REPLAYABLE; /* as long as it has not run */
	OK(submit(w->queue[0][1], cmd, &second));
	assert_true(hal_device_poll(w->dev, 500) >= 0);
	OK(hal_queue_suspend(w->queue[0][1], HAL_SUSPEND_KILL, &quiet));
	OK(wait(quiet));
	assert_true(hal_wait(&first, 1, 0, 0) != 0);
	OK(hal_buffer_read(w->buf[0][2], 0, got, sizeof(got)));
	assert_memory_equal(got, once, sizeof(got));
	OK(hal_queue_resume(w->queue[0][1]));
	OK(wait(first));
	OK(wait(second));
	OK(hal_buffer_read(w->buf[0][2], 0, got, sizeof(got)));
	for (uint32_t i = 0; i < sizeof(got); i++)
		assert_int_equal(got[i], 2 * once[i]);
}

static void move_while_running(void **state)
{
	static uint64_t busy[256];
	struct hal_partition_desc desc = HAL_INIT(hal_partition_desc);
	struct hal_npu_counters c = HAL_INIT(hal_npu_counters);
	struct world *w = *state;
	struct hal_arg args[3];
	struct hal_point done, moved;
	uint64_t below = 0;

	make_gemm(w, "gemm", 6);
	fill_random(w, 0, noise, 4);
	OK(submit(w->queue[0][0], launch(kernel(w, "gemm"), args, w, 0, 3), &done));
	assert_true(hal_device_poll(w->dev, 30000) >= 0);
	desc.rows = 3;
	desc.cols = 13;
	desc.row = 9;
	desc.col = 2;
	OK(hal_partition_resize(w->part[0], &desc, &moved));
	OK(wait(moved));
	OK(wait(done));
	check_gemm(w, 0, noise);
	OK(w->ext->pe_busy(w->native, busy, 256));
	for (uint32_t r = 9; r < 12; r++)
		for (uint32_t col = 2; col < 15; col++)
			below += busy[r * 16 + col];
	assert_true(below > 0);
	/* Finished descriptors were not run again; what was ahead of them and dropped
	 * counts. */
	OK(w->ext->counters(w->native, 0, &c));
	assert_in_range(c.macs, 6 * 256 * 64 * 256, 7 * 256 * 64 * 256 - 1);
}

/* The one operation that runs goes on elsewhere with its next tile: no multiplication is
 * done twice, and it ends there. */
static void move_inside_an_operation(void **state)
{
	struct hal_partition_desc desc = HAL_INIT(hal_partition_desc);
	struct hal_npu_counters c = HAL_INIT(hal_npu_counters);
	const uint64_t all = UINT64_C(256) * 64 * 256;
	struct world *w = *state;
	struct hal_arg args[3];
	struct hal_point done, moved;

	make_gemm(w, "gemm", 1);
	fill_random(w, 0, noise, 4);
	OK(submit(w->queue[0][0], launch(kernel(w, "gemm"), args, w, 0, 3), &done));
	for (uint16_t turn = 0; turn < 3; turn++) {
		uint64_t before = c.macs;

		assert_true(hal_device_poll(w->dev, 4000) >= 0);
		desc.rows = (uint16_t)(5 - turn);
		desc.cols = (uint16_t)(11 + turn);
		desc.row = 9;
		desc.col = turn;
		OK(hal_partition_resize(w->part[0], &desc, &moved));
		OK(wait(moved));
		OK(w->ext->counters(w->native, 0, &c));
		assert_in_range(c.macs, before + 1, all - 1);
		assert_int_equal(hal_wait(&done, 1, 0, 0), -ETIMEDOUT);
	}
	OK(wait(done));
	check_gemm(w, 0, noise);
	OK(w->ext->counters(w->native, 0, &c));
	assert_int_equal(c.macs, all);
}

/* ---- faults ----------------------------------------------------------------------- */

/* The one relocation of the program's last kernel goes to a word FILL does not read, and
 * its address becomes this. */
static void load_with_address(struct world *w, uint32_t address)
{
	struct npu_image_header h;
	struct npu_image_reloc r;
	uint8_t *image;
	size_t size, at;
	void *made;

	OK(hal_npu_build(w->b, &made, &size));
	image = made;
	memcpy(&h, image, sizeof(h));
	at = sizeof(h) + h.kernels * sizeof(struct npu_image_kernel) +
	     h.args * sizeof(struct npu_image_arg) + (h.relocs - 1) * sizeof(r);
	memcpy(&r, image + at, sizeof(r));
	assert_int_equal(r.word, NPU_DESC_ADDR_D_WORD);
	r.word = NPU_DESC_ADDR_P_WORD;
	memcpy(image + at, &r, sizeof(r));
	at += sizeof(r) + (h.descs - 1) * 64;
	memcpy(image + at + 4 * NPU_DESC_ADDR_D_WORD, &address, 4);
	h.checksum = npu_image_crc(image, size);
	memcpy(image, &h, sizeof(h));
	OK(hal_program_load(w->dev, image, size, &w->prog));
	hal_npu_image_free(made);
}

static void make_fill(struct world *w, const char *name)
{
	struct hal_npu_place d = {0};

	OK(hal_npu_kernel(w->b, name));
	OK(hal_npu_arg(w->b, 64, &d.id));
	OK(hal_npu_fill(w->b, d, 64, 1));
}

/* Where buffer j of partition 0 lies, as its first write tells. */
static uint32_t va_of_buffer(struct world *w, uint32_t j)
{
	struct npu_partition *part = w->native->parts[0];
	const uint8_t mark[4] = {0xC0, 0xFF, 0xEE, (uint8_t)j};
	uint32_t page = 0;

	OK(hal_buffer_write(w->buf[0][j], 0, mark, sizeof(mark)));
	for (uint32_t v = 1; v < part->pages && !page; v++) {
		uint32_t entry = 0, per = 1024 / 4;

		if (!part->page_used[v])
			continue;
		memcpy(&entry,
		       w->native->memory + (size_t)(part->tables[v / per] - 1) * 1024 +
			       (size_t)(v % per) * 4,
		       4);
		if (!memcmp(w->native->memory + (entry & ~1023u), mark, sizeof(mark)))
			page = v;
	}
	assert_true(page);
	return page << 10;
}

/* Ends with -EIO and this text; the other queue of the partition, the neighbour, and a
 * new queue go on. */
static void faults_with(struct world *w, const char *what)
{
	struct hal_queue_desc queue = HAL_INIT(hal_queue_desc);
	struct hal_arg bad_arg, args[3], other[2];
	struct hal_point bad, same, sibling, neighbour;

	OK(submit(w->queue[0][0], launch(kernel(w, "wild"), &bad_arg, w, 0, 1), &bad));
	OK(submit(w->queue[0][0], launch(kernel(w, "bytes"), args, w, 0, 2), &same));
	OK(submit(w->queue[0][1], launch(kernel(w, "bytes"), args, w, 0, 2), &sibling));
	OK(submit(w->queue[1][0], launch(kernel(w, "bytes"), other, w, 1, 2),
		  &neighbour));
	REFUSED(wait(bad), -EIO, what);
	assert_non_null(strstr(hal_last_error(), "descriptor 0 (FILL) of kernel 'wild'"));
	assert_true(wait(same) < 0);
	OK(wait(sibling));
	OK(wait(neighbour));
	OK(hal_queue_destroy(w->queue[0][0]));
	OK(hal_queue_create(w->part[0], &queue, &w->queue[0][0]));
	OK(submit(w->queue[0][0], launch(kernel(w, "bytes"), args, w, 0, 2), &same));
	OK(wait(same));
}

static void fault_unmapped(void **state)
{
	struct world *w = *state;

	make_bytes(w, "bytes", 300);
	make_fill(w, "wild");
	load_with_address(w, 0x20);
	faults_with(w, "unmapped address 0x20");
}

static void fault_bounds(void **state)
{
	struct world *w = *state;

	make_bytes(w, "bytes", 3);
	make_fill(w, "wild");
	load_with_address(w, 0xF0000000);
	faults_with(w, "out-of-bounds address 0xf0000000");
}

/* Its own ring is the first thing in a partition's memory. */
static void fault_ring(void **state)
{
	struct world *w = *state;
	char text[64];

	make_bytes(w, "bytes", 3);
	make_fill(w, "wild");
	load_with_address(w, w->native->parts[0]->ring->va + 4096);
	snprintf(text, sizeof(text), "read-only address 0x%x",
		 w->native->parts[0]->ring->va + 4096);
	faults_with(w, text);
}

/* One byte behind a buffer, and one before it. */
static void fault_behind(void **state)
{
	struct world *w = *state;
	char text[64];

	make_bytes(w, "bytes", 3);
	make_fill(w, "wild");
	snprintf(text, sizeof(text), "unmapped address 0x%x", va_of_buffer(w, 1) + 65536);
	load_with_address(w, va_of_buffer(w, 1) + 65536);
	faults_with(w, text);
}

static void fault_before(void **state)
{
	struct world *w = *state;
	char text[64];

	make_bytes(w, "bytes", 3);
	make_fill(w, "wild");
	snprintf(text, sizeof(text), "unmapped address 0x%x", va_of_buffer(w, 1) - 64);
	load_with_address(w, va_of_buffer(w, 1) - 64);
	faults_with(w, text);
}

/* Scribbling over the fences harms nobody but what is told of one's own times. */
static void scribble_over_fences(void **state)
{
	struct world *w = *state;
	struct hal_arg arg, args[2];
	struct hal_point done;

	make_bytes(w, "bytes", 3);
	make_fill(w, "wild");
	load_with_address(w, w->native->parts[0]->fence->va);
	for (int i = 0; i < 3; i++) {
		OK(submit(w->queue[0][0], launch(kernel(w, "wild"), &arg, w, 0, 1),
			  &done));
		OK(wait(done));
		OK(submit(w->queue[0][0], launch(kernel(w, "bytes"), args, w, 0, 2),
			  &done));
		OK(wait(done));
	}
}

/* What an honest run of the same work is told of. */
static uint64_t busy_of(struct world *w, struct hal_cmd cmd, uint64_t *elapsed)
{
	struct hal_stats before = HAL_INIT(hal_stats), after = before;
	struct hal_point done;

	OK(hal_queue_get_stats(w->queue[0][0], &before));
	OK(submit(w->queue[0][0], cmd, &done));
	OK(wait(done));
	OK(hal_queue_get_stats(w->queue[0][0], &after));
	*elapsed = after.now_ns - before.now_ns;
	return after.busy_ns - before.busy_ns;
}

/* A program that ends with writing over its own times is told to have run as long as it
 * has, in the queue's statistics too. */
static void forge_own_times(void **state)
{
	static const uint32_t patterns[] = {0, 1, UINT32_MAX};
	struct world *w = *state;
	struct hal_arg args[4];
	struct hal_cmd cmd;

	for (size_t i = 0; i < sizeof(patterns) / sizeof(patterns[0]); i++) {
		struct hal_npu_place d = {0};
		uint64_t elapsed, honest, forged;

		make_gemm(w, "gemm", 1);
		make_gemm(w, "wild", 1);
		OK(hal_npu_arg(w->b, 64, &d.id));
		OK(hal_npu_fill(w->b, d, 64, patterns[i]));
		load_with_address(w, w->native->parts[0]->fence->va + 64);
		honest = busy_of(w, launch(kernel(w, "gemm"), args, w, 0, 3), &elapsed);
		assert_true(honest > 0 && honest <= elapsed);
		args[3] = (struct hal_arg){w->buf[0][0], 0, 0};
		cmd = hal_cmd_launch(kernel(w, "wild"), args, 4);
		forged = busy_of(w, cmd, &elapsed);
		assert_true(forged <= elapsed);
		assert_true(forged + 1000 > honest);
		OK(hal_program_unload(w->prog));
		w->prog = NULL;
		OK(hal_npu_builder_destroy(w->b));
		OK(hal_npu_builder_create(&w->b));
	}
}

/* Two fills, done before the backend looks: what it finds in the fence is anything. */
static void two_fills(struct world *w, void *queue, struct npu_mem *mem,
		      const uint64_t forged[2])
{
	struct npu_partition *part = w->native->parts[0];
	struct hal_bk_cmd cmd = {.op = HAL_OP_FILL};

	cmd.fill.dst = mem;
	cmd.fill.bytes = mem->bytes;
	for (cmd.cookie = 0; cmd.cookie < 2; cmd.cookie++)
		OK(npu_submit(w->native, queue, &cmd));
	npu_write(w->native, NPU_GLB_IRQ_MASK_ADDR, 0);
	npu_run(w->native, 40000);
	npu_write(w->native, NPU_GLB_IRQ_MASK_ADDR, UINT32_MAX);
	for (uint32_t i = 0; i < NPU_COMMANDS; i++)
		OK(npu_mem_write(w->native, part->fence, 64 + 16 * (uint64_t)i, forged,
				 16));
}

/* Each command lies behind the one before it, in the past, and not before it was given.
 */
static void forge_any_time(void **state)
{
	struct world *w = *state;
	struct npu_partition *part = w->native->parts[0];
	struct hal_bk_event ev[4];
	void *queue, *memory;

	OK(npu_queue_create(w->native, part, 0, &queue));
	OK(npu_mem_alloc(w->native, part, 4096, &low_two, 0, &memory));
	for (uint32_t i = 0; i < 16; i++) {
		const uint64_t last = npu_now(w->native);
		const uint64_t words[] = {0, last + 200, last + 10000, UINT64_MAX};
		const uint64_t forged[2] = {words[i / 4], words[i % 4]};

		two_fills(w, queue, memory, forged);
		assert_int_equal(npu_poll(w->native, last + 100000, ev, 4), 2);
		assert_true(ev[0].start_ns >= last);
		for (uint32_t j = 0; j < 2; j++) {
			assert_int_equal(ev[j].cookie, j);
			assert_true(ev[j].end_ns >= ev[j].start_ns);
			assert_true(ev[j].end_ns <= npu_now(w->native));
		}
		assert_true(ev[1].start_ns >= ev[0].end_ns);
	}
	OK(npu_mem_free(w->native, memory));
	OK(npu_queue_destroy(w->native, queue));
}

/* ---- sizes ------------------------------------------------------------------------ */

/* Around what one descriptor can hold; the bytes before and behind stay. */
static void copies_and_fills(void **state)
{
	static const uint32_t sizes[] = {32768, 65532, 65535, 65536,  65537,
					 65540, 98304, 98305, 131072, 163840};
	enum { ROOM = 164000 };
	static uint8_t from[ROOM], want[ROOM], got[ROOM];
	struct hal_buffer_desc desc = HAL_INIT(hal_buffer_desc);
	struct world *w = *state;
	struct hal_buffer *a, *d;
	struct hal_point done;
	uint32_t seed = 7;

	desc.bytes = ROOM;
	OK(hal_buffer_create(w->part[0], &desc, &a));
	OK(hal_buffer_create(w->part[0], &desc, &d));
	for (uint32_t i = 0; i < ROOM; i++) {
		seed = seed * 1664525u + 1013904223u;
		from[i] = (uint8_t)(seed >> 24);
	}
	OK(hal_buffer_write(a, 0, from, ROOM));
	for (uint32_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		uint32_t n = sizes[i];

		memset(want, 0x5A, ROOM);
		OK(hal_buffer_write(d, 0, want, ROOM));
		memcpy(want + 20, from + 36, n);
		OK(submit(w->queue[0][0], hal_cmd_copy(d, 20, a, 36, n), &done));
		OK(wait(done));
		OK(hal_buffer_read(d, 0, got, ROOM));
		assert_memory_equal(got, want, ROOM);
		if (n % 4)
			continue;
		for (uint32_t j = 0; j < n; j++)
			want[24 + j] = (uint8_t)(0xA1B2C3D4u >> j % 4 * 8);
		OK(submit(w->queue[0][0], hal_cmd_fill(d, 24, n, 0xA1B2C3D4u), &done));
		OK(wait(done));
		OK(hal_buffer_read(d, 0, got, ROOM));
		assert_memory_equal(got, want, ROOM);
	}
	OK(hal_buffer_destroy(a));
	OK(hal_buffer_destroy(d));
}

/* ---- time that is not simulated --------------------------------------------------- */

#define LONG_NS (UINT64_C(1) << 60)

static uint64_t cycles(struct world *w)
{
	uint64_t low = w->ext->reg_read(w->native, NPU_GLB_TIME_LO_ADDR);

	return low | (uint64_t)w->ext->reg_read(w->native, NPU_GLB_TIME_HI_ADDR) << 32;
}

/* The machine stands still while device time goes on. */
static void idle_time(void **state)
{
	struct world *w = *state;
	struct hal_bk_event ev[16];
	uint64_t machine = cycles(w), now = hal_device_get_time(w->dev);

	assert_int_equal(hal_device_poll(w->dev, LONG_NS), 0);
	assert_int_equal(hal_device_get_time(w->dev), now + LONG_NS);
	assert_in_range(cycles(w), machine, machine + 16);
	now = npu_now(w->native);
	assert_int_equal(npu_poll(w->native, UINT64_MAX, ev, 16), 0);
	assert_int_equal(npu_poll(w->native, now - 1, ev, 16), 0);
	assert_int_equal(npu_now(w->native), now);
	assert_int_equal(npu_poll(w->native, now + 1, ev, 16), 0);
	assert_int_equal(npu_now(w->native), now + 1);
}

/* What is due at once is asked for at once. */
static void next_tells(void **state)
{
	struct world *w = *state;
	struct npu_partition *part = w->native->parts[1];
	struct hal_bk_event ev[16];
	void *q;

	OK(npu_queue_create(w->native, w->native->parts[0], 0, &q));
	assert_true(npu_next(w->native) == UINT64_MAX);
	OK(npu_suspend(w->native, q, HAL_SUSPEND_KILL, 5));
	OK(npu_resize(w->native, part, &part->desc, 6));
	assert_true(npu_next(w->native) == 0);
	assert_int_equal(npu_poll(w->native, 0, ev, 1), 1);
	assert_true(npu_next(w->native) == 0);
	assert_int_equal(npu_poll(w->native, 0, ev + 1, 1), 1);
	assert_true(ev[0].cookie == 5 && ev[1].cookie == 6);
	assert_true(npu_next(w->native) == UINT64_MAX);
	OK(npu_resume(w->native, q));
	OK(npu_queue_destroy(w->native, q));
}

static uint64_t first_fold;

static void on_first_fold(void *user, const struct hal_npu_fold *f)
{
	(void)user;
	if (!first_fold || f->start < first_fold)
		first_fold = f->start;
}

/* What work is told to have taken is the same, to the cycle. */
static void work_after_idle_time(void **state)
{
	struct world *w = *state;
	struct hal_arg args[3];
	uint64_t elapsed[3], busy[3], before;

	make_gemm(w, "gemm", 1);
	load(w);
	(void)busy_of(w, launch(kernel(w, "gemm"), args, w, 0, 3), &elapsed[0]);
	busy[0] = busy_of(w, launch(kernel(w, "gemm"), args, w, 0, 3), &elapsed[0]);
	busy[1] = busy_of(w, launch(kernel(w, "gemm"), args, w, 0, 3), &elapsed[1]);
	assert_int_equal(busy[0], busy[1]);
	assert_int_equal(elapsed[0], elapsed[1]);
	OK(hal_device_poll(w->dev, LONG_NS));
	before = hal_device_get_time(w->dev);
	first_fold = 0;
	OK(w->ext->on_fold(w->native, on_first_fold, NULL));
	busy[2] = busy_of(w, launch(kernel(w, "gemm"), args, w, 0, 3), &elapsed[2]);
	OK(w->ext->on_fold(w->native, NULL, NULL));
	assert_int_equal(busy[2], busy[0]);
	assert_int_equal(elapsed[2], elapsed[0]);
	assert_in_range(first_fold, before, before + elapsed[2]);
}

/* Entries that a timestamp and a fill have in the ring before the machine has run. */
static uint32_t entries_of_two(struct world *w)
{
	struct npu_partition *part = w->native->parts[0];
	struct hal_point done;
	uint32_t tail = part->tail, entries;

	OK(submit(w->queue[0][0], hal_cmd_timestamp(w->buf[0][0], 0), &done));
	OK(submit(w->queue[0][0], hal_cmd_fill(w->buf[0][0], 0, 8, 1), &done));
	assert_int_equal(hal_device_poll(w->dev, 0), 0);
	entries = part->tail - tail;
	OK(wait(done));
	return entries;
}

/* Its word is corrected before a command behind it can be near it. */
static void timestamp_alone(void **state)
{
	struct world *w = *state;

	assert_int_equal(entries_of_two(w), 8);
	OK(hal_device_poll(w->dev, 1));
	assert_int_equal(entries_of_two(w), 4);
}

/* ---- real clock ------------------------------------------------------------------- */

static void real_clock(void **state)
{
	struct world *w = *state;
	struct hal_arg args[2][3];
	struct hal_point done[2];

	make_gemm(w, "gemm", 1);
	fill_random(w, 0, noise, 5);
	fill_random(w, 1, noise, 5);
	for (uint32_t i = 0; i < 2; i++)
		OK(submit(w->queue[i][0], launch(kernel(w, "gemm"), args[i], w, i, 3),
			  &done[i]));
	OK(hal_wait(done, 2, 0, HAL_FOREVER));
	check_gemm(w, 0, noise);
	check_gemm(w, 1, noise);
}

struct watch {
	struct hal_device *dev;
	atomic_bool stop;
	atomic_uint backwards;
};

static void *watch_time(void *user)
{
	struct watch *w = user;
	uint64_t last = 0;

	while (!atomic_load(&w->stop)) {
		uint64_t now = hal_device_get_time(w->dev);

		if (now < last)
			atomic_fetch_add(&w->backwards, 1);
		last = now;
	}
	return NULL;
}

/* Any thread may ask for the time, which goes on while nothing runs. */
static void real_time(void **state)
{
	const struct timespec nap = {.tv_nsec = 2000000};
	struct world *w = *state;
	struct watch watch = {.dev = w->dev};
	pthread_t threads[2];
	struct hal_point done;
	uint64_t before = hal_device_get_time(w->dev);

	for (uint32_t i = 0; i < 2; i++)
		OK(pthread_create(&threads[i], NULL, watch_time, &watch));
	for (uint32_t i = 0; i < 30; i++) {
		OK(submit(w->queue[0][0], hal_cmd_fill(w->buf[0][0], 0, 8, i), &done));
		OK(wait(done));
		nanosleep(&nap, NULL);
	}
	atomic_store(&watch.stop, true);
	for (uint32_t i = 0; i < 2; i++)
		OK(pthread_join(threads[i], NULL));
	assert_int_equal(atomic_load(&watch.backwards), 0);
	assert_true(hal_device_get_time(w->dev) - before >= 30 * 2000000);
}

static void *close_it(void *arg)
{
	hal_close(arg);
	return NULL;
}

/* Devices are closed in any order, by other threads than those that opened them. */
static void closed_elsewhere(void **state)
{
	struct hal_device *dev[4];
	pthread_t thread;

	(void)state;
	for (uint32_t again = 0; again < 3; again++) {
		for (uint32_t i = 0; i < 4; i++)
			OK(open_device("", &dev[i]));
		hal_close(dev[2]);
		OK(pthread_create(&thread, NULL, close_it, dev[0]));
		OK(pthread_join(thread, NULL));
		hal_close(dev[3]);
		hal_close(dev[1]);
	}
}

/* A suspend and a move of which nothing has to be waited for are told all the same. */
static void real_quiet(void **state)
{
	struct hal_partition_desc d = HAL_INIT(hal_partition_desc);
	struct world *w = *state;
	struct hal_point p;

	OK(hal_queue_suspend(w->queue[0][0], HAL_SUSPEND_KILL, &p));
	OK(wait(p));
	OK(hal_queue_resume(w->queue[0][0]));
	d.rows = 4;
	d.cols = 4;
	OK(hal_partition_resize(w->part[0], &d, &p));
	OK(wait(p));
	assert_int_equal(w->native->owed, 0);
	assert_true(npu_next(w->native) == UINT64_MAX);
}

/* ---- limits of bandwidth ---------------------------------------------------------- */

struct moved {
	uint64_t ns, bytes;
};

/* A copy of 32 KiB in partition i, the caches of translations warm. */
static struct moved copy_in(struct world *w, uint32_t i)
{
	struct hal_stats before = HAL_INIT(hal_stats), after = before;
	struct hal_point done;

	OK(hal_queue_get_stats(w->queue[i][0], &before));
	OK(submit(w->queue[i][0], hal_cmd_copy(w->buf[i][1], 0, w->buf[i][0], 0, 32768),
		  &done));
	OK(wait(done));
	OK(hal_queue_get_stats(w->queue[i][0], &after));
	return (struct moved){after.busy_ns - before.busy_ns,
			      after.bytes_read + after.bytes_written - before.bytes_read -
				      before.bytes_written};
}

static void limits(void **state)
{
	static const struct {
		uint64_t bytes, window_ns;
	} good[] = {{64, 64}, {6400, 6400}, {127, 127}, {1024, 64}};
	struct world *w = *state;
	struct npu_device *dev = w->native;
	struct npu_partition *part = dev->parts[0];
	struct moved free, other, m;

	if (!use_rtl) {
		REFUSED(npu_limit(dev, part, 64, 64), -ENOTSUP,
			"does not support limits");
		return;
	}
	REFUSED(npu_limit(dev, part, 63, 1000), -EINVAL,
		"63 bytes are less than one request");
	REFUSED(npu_limit(dev, part, 64, 0), -EINVAL, "window of 0");
	REFUSED(npu_limit(dev, part, 64, 0x1000000), -EINVAL, "window of 16777216");
	/* Two channels of 16 bytes a cycle each. */
	REFUSED(npu_limit(dev, part, 3201, 100), -EINVAL, "carry, 3200");
	OK(npu_limit(dev, part, 3200, 100));
	OK(npu_limit(dev, part, 0, 0));
	for (uint32_t i = 0; i < 2; i++)
		(void)copy_in(w, i);
	free = copy_in(w, 0);
	other = copy_in(w, 1);
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		uint64_t grains = good[i].bytes / 64 * 64;

		OK(npu_limit(dev, part, good[i].bytes, good[i].window_ns));
		m = copy_in(w, 0);
		assert_int_equal(m.bytes, free.bytes);
		/* Never more than the windows it lasted, one that was saved up, and what
		 * lies around the command's times; and not far below that, where it is
		 * less than the copy takes anyway. */
		assert_true(m.bytes <= (m.ns / good[i].window_ns + 8) * grains);
		if (good[i].bytes <= good[i].window_ns)
			assert_true(m.ns <=
				    (m.bytes / grains + 2) * good[i].window_ns + free.ns);
		assert_int_equal(copy_in(w, 1).ns, other.ns);
	}
	OK(npu_limit(dev, part, 0, 0));
	assert_int_equal(copy_in(w, 0).ns, free.ns);
}

/* A slot that is given back forgets its limit. */
static void limit_ends(void **state)
{
	struct hal_partition_desc part = HAL_INIT(hal_partition_desc);
	struct hal_queue_desc queue = HAL_INIT(hal_queue_desc);
	struct hal_buffer_desc buf = HAL_INIT(hal_buffer_desc);
	struct hal_partition *p;
	struct hal_device *dev;
	struct hal_queue *q;
	struct hal_buffer *b;
	struct hal_point done;
	uint64_t ns[2];

	(void)state;
	if (!use_rtl)
		return;
	OK(open_device("", &dev));
	part.rows = part.cols = 2;
	buf.bytes = 65536;
	for (uint32_t i = 0; i < 2; i++) {
		struct hal_stats stats = HAL_INIT(hal_stats);
		struct npu_device *native = hal_device_get_native(dev);

		OK(hal_partition_create(dev, &part, &p));
		OK(hal_queue_create(p, &queue, &q));
		OK(hal_buffer_create(p, &buf, &b));
		OK(submit(q, hal_cmd_fill(b, 0, 16384, 5), &done));
		OK(wait(done));
		OK(hal_queue_get_stats(q, &stats));
		ns[i] = stats.busy_ns;
		OK(npu_limit(native, native->parts[0], 64, 640));
		OK(hal_queue_destroy(q));
		OK(hal_buffer_destroy(b));
		OK(hal_partition_destroy(p));
	}
	OK(hal_close(dev));
	assert_true(ns[1] < 2 * ns[0]);
}

static int run_all(const char *name)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(options_refused),
		cmocka_unit_test(engines),
		cmocka_unit_test(closed_elsewhere),
		cmocka_unit_test(durations_table),
		cmocka_unit_test(recorded),
		cmocka_unit_test(recorded_alone),
		cmocka_unit_test(masks_of_a_seed),
		cmocka_unit_test(serial_goes),
		cmocka_unit_test(freed_at_work),
		cmocka_unit_test(replayed),
		cmocka_unit_test(replay_refuses),
		cmocka_unit_test(shapes_that_are_built),
		cmocka_unit_test(false_machines),
		cmocka_unit_test(tables_not_taken),
		TEST(says_what_it_is),
		TEST(options_arrive),
		TEST(hardware_refuses_overlap),
		TEST(memory_has_its_colours),
		cmocka_unit_test_setup_teardown(memory_has_its_sets, setup_sets,
						teardown),
		cmocka_unit_test_setup_teardown(memory_has_its_sets, setup_sets_of_6,
						teardown),
		TEST(memory_lies_apart),
		TEST(memory_is_clean),
		TEST(memory_runs_out),
		TEST(memory_changes_places),
		TEST(mapping),
		TEST(longer_than_the_ring),
		TEST(launches_refused),
		TEST(counts_exactly),
		TEST(counters_have_room),
		TEST(tells_of_folds),
		TEST(kill_a_long_kernel),
		TEST(kill_behind_another),
		TEST(kill_before_the_ring),
		TEST(move_while_running),
		TEST(move_inside_an_operation),
		TEST(fault_unmapped),
		TEST(fault_bounds),
		TEST(fault_ring),
		TEST(fault_behind),
		TEST(fault_before),
		TEST(scribble_over_fences),
		TEST(forge_own_times),
		TEST(forge_any_time),
		TEST(copies_and_fills),
		TEST(limits),
		cmocka_unit_test(limit_ends),
		TEST(idle_time),
		TEST(next_tells),
		cmocka_unit_test_setup_teardown(work_after_idle_time, setup_ideal,
						teardown),
		TEST(timestamp_alone),
		cmocka_unit_test_setup_teardown(real_clock, setup_real, teardown),
		cmocka_unit_test_setup_teardown(real_time, setup_real, teardown),
		cmocka_unit_test_setup_teardown(real_quiet, setup_real, teardown),
	};

	return cmocka_run_group_tests_name(name, tests, NULL, NULL);
}

int main(int argc, char **argv)
{
	struct hal_device *dev;
	int failed = run_all("golden model");

	tier_choose(argc, argv);
	/* Where models are not built there is nothing more to test; under valgrind one
	 * takes minutes, and the golden model shows the same memory errors. */
	if (!tier_full || under_valgrind() || hal_open("npu:0", NULL, &dev))
		return failed;
	hal_close(dev);
	use_rtl = true;
	return failed + run_all("RTL");
}

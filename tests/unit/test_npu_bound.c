/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long FOLD and SAVE take at most, against suspend_worst_ns: operations whose state
 * takes longest to store or to reach, and random ones, stopped at many moments, with
 * ideal memory and beside three neighbours that change rows of the same channel.  The
 * longest stop stays below the bound, and is not far below it where memory is ideal.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "npu_test.h"
#include "slow.h"

/* A walk brings the translations of sixteen pages.  ROWS: two tiles of 512 rows, after
 * those that are shorter, and one in the array. */
enum { SLOTS = 4, LINE_OF_PAGES = 16 * 1024, ROWS = 2200, HALF = 8 };

enum kind { FAR_ROWS, FAR_PIXELS, GROUPS, SOFTMAX, POOL, GEMM, KINDS };
static const char *const kinds[KINDS] = {"far rows", "far pixels", "groups",
					 "softmax",  "pool",       "gemm"};

struct scene {
	struct hal_device *dev;
	struct hal_partition *part[SLOTS];
	struct hal_queue *queue[SLOTS];
	struct hal_buffer *from[SLOTS], *to[SLOTS];
	struct hal_program *prog;
	uint64_t seed;
	uint64_t most[HAL_SUSPEND_KILL + 1];
};

static uint32_t below(struct scene *s, uint32_t n)
{
	s->seed ^= s->seed << 13;
	s->seed ^= s->seed >> 7;
	s->seed ^= s->seed << 17;
	return (uint32_t)((s->seed >> 16) % n);
}

/* ---- operations ------------------------------------------------------------------- */

static const int32_t mult = 1431655765, shift = -7;

static void requant(struct hal_npu_requant *out)
{
	out->mult = &mult;
	out->shift = &shift;
	out->min = -128;
	out->max = 127;
}

/* Each row of outputs begins at the end of a page and of what a walk brings. */
static void add_gemm(struct hal_npu_builder *b, const struct hal_npu_place *p, uint32_t m,
		     uint32_t n, uint32_t k, uint32_t d_stride)
{
	struct hal_npu_gemm op = HAL_INIT(hal_npu_gemm);

	op.m = m;
	op.n = n;
	op.k = k;
	op.a = p[0];
	op.b = p[0];
	op.d = p[1];
	op.d_stride = d_stride;
	if (d_stride != 0)
		op.d.offset = LINE_OF_PAGES - HALF;
	requant(&op.out);
	OK(hal_npu_gemm(b, &op));
}

static void add_conv(struct hal_npu_builder *b, const struct hal_npu_place *p, uint32_t h,
		     uint32_t w, uint32_t c, uint32_t n, uint32_t groups, uint32_t kernel)
{
	struct hal_npu_conv op = HAL_INIT(hal_npu_conv);
	int8_t *weights = calloc(n, (size_t)kernel * kernel * (c / groups));

	assert_non_null(weights);
	op.h = op.oh = h;
	op.w = op.ow = w;
	op.c = c;
	op.n = n;
	op.kh = op.kw = kernel;
	op.stride_h = op.stride_w = op.dilation_h = op.dilation_w = 1;
	op.pad_top = op.pad_left = kernel / 2;
	op.groups = groups;
	op.a = p[0];
	op.d = p[1];
	op.weights = weights;
	requant(&op.out);
	OK(hal_npu_conv(b, &op));
	free(weights);
}

static void add_vec(struct hal_npu_builder *b, const struct hal_npu_place *p, bool pool)
{
	struct hal_npu_softmax softmax = HAL_INIT(hal_npu_softmax);
	struct hal_npu_pool op = HAL_INIT(hal_npu_pool);
	int32_t exp[256];

	if (!pool) {
		for (int i = 0; i < 256; i++)
			exp[i] = INT32_MAX / (i + 1);
		softmax.rows = 64;
		softmax.cols = 4095;
		softmax.a = p[0];
		softmax.d = p[1];
		softmax.exp = exp;
		OK(hal_npu_softmax(b, &softmax));
		return;
	}
	op.h = op.w = 40;
	op.c = 32;
	op.oh = op.ow = 25;
	op.kh = op.kw = 16;
	op.stride_h = op.stride_w = 1;
	op.a = p[0];
	op.d = p[1];
	op.min = -128;
	op.max = 127;
	OK(hal_npu_avgpool(b, &op));
}

static uint64_t bytes_of(enum kind kind)
{
	return kind == FAR_ROWS ? (uint64_t)(2 * ROWS + 1) * LINE_OF_PAGES : 1u << 20;
}

static void add_kind(struct scene *s, struct hal_npu_builder *b, enum kind kind)
{
	struct hal_npu_place p[2] = {{0}};

	OK(hal_npu_kernel(b, "work"));
	OK(hal_npu_arg(b, 1u << 20, &p[0].id));
	OK(hal_npu_arg(b, bytes_of(kind), &p[1].id));
	switch (kind) {
	case FAR_ROWS:
		add_gemm(b, p, ROWS, 16, 48, 2 * LINE_OF_PAGES);
		return;
	case FAR_PIXELS: /* two tiles side by side, which wait for their input */
		add_conv(b, p, 64, 4, 4, 64, 1, 3);
		return;
	case GROUPS: /* each column reads bytes of its own */
		add_conv(b, p, 16, 16, 16 * 112, 16, 16, 1);
		return;
	case SOFTMAX:
	case POOL:
		add_vec(b, p, kind == POOL);
		return;
	default:
		add_gemm(b, p, 100 + below(s, 700), 16 + below(s, 100),
			 16 + below(s, 900), 0);
	}
}

/* Give the program's first descriptor the longest panels, or rows of so many columns. */
static void patch(void *image, size_t size, uint32_t panel, uint32_t cols)
{
	struct npu_image_header *h = image;
	uint8_t *at = (uint8_t *)image + sizeof(*h) +
		      h->kernels * sizeof(struct npu_image_kernel) +
		      h->args * sizeof(struct npu_image_arg) +
		      h->relocs * sizeof(struct npu_image_reloc);
	uint32_t desc[16];

	memcpy(desc, at, sizeof(desc));
	if (panel != 0)
		NPU_SET(desc, PANEL, panel);
	if (cols != 0)
		NPU_SET(desc, VCOLS, cols);
	memcpy(at, desc, sizeof(desc));
	h->checksum = npu_image_crc(image, size);
}

/* Lines that each lie in a row of DRAM of their own. */
static void add_thrash(struct hal_npu_builder *b)
{
	struct hal_npu_copy op = HAL_INIT(hal_npu_copy);

	OK(hal_npu_kernel(b, "thrash"));
	OK(hal_npu_arg(b, 1u << 20, &op.a.id));
	OK(hal_npu_arg(b, 1u << 20, &op.d.id));
	op.rows = 256;
	op.bytes = 64;
	op.a_stride = op.d_stride = 4096;
	for (int i = 0; i < 32; i++)
		OK(hal_npu_copy(b, &op));
}

static void load(struct scene *s, enum kind kind)
{
	struct hal_npu_builder *b;
	void *image;
	size_t size;

	OK(hal_npu_builder_create(&b));
	add_kind(s, b, kind);
	add_thrash(b);
	OK(hal_npu_build(b, &image, &size));
	OK(hal_npu_builder_destroy(b));
	if (kind == FAR_ROWS) /* the builder prefers tiles that are stored sooner */
		patch(image, size, 512, 0);
	OK(hal_program_load(s->dev, image, size, &s->prog));
	hal_npu_image_free(image);
}

/* ---- the scene -------------------------------------------------------------------- */

/* Slot 0 has all but a row of PEs for each neighbour; all are on one channel. */
static void open_scene(struct scene *s, const char *options, enum kind kind)
{
	struct hal_buffer_desc b = HAL_INIT(hal_buffer_desc);
	struct hal_queue_desc q = HAL_INIT(hal_queue_desc);
	char target[256];

	memset(s, 0, sizeof(*s));
	s->seed = 88172645463325252u;
	snprintf(target, sizeof(target), "npu:0?memory_size=96M&model=" FAST "&%s",
		 options);
	OK(hal_open(target, NULL, &s->dev));
	for (uint32_t i = 0; i < SLOTS; i++) {
		struct hal_partition_desc d = HAL_INIT(hal_partition_desc);

		d.row = (uint16_t)(i == 0 ? 0 : 16 - i);
		d.rows = (uint16_t)(i == 0 ? 17 - SLOTS : 1);
		d.cols = 16;
		OK(hal_partition_create(s->dev, &d, &s->part[i]));
		OK(hal_queue_create(s->part[i], &q, &s->queue[i]));
		b.bytes = 1u << 20;
		OK(hal_buffer_create(s->part[i], &b, &s->from[i]));
		b.bytes = i == 0 ? bytes_of(kind) : 1u << 20;
		OK(hal_buffer_create(s->part[i], &b, &s->to[i]));
	}
	load(s, kind);
}

static void close_scene(struct scene *s)
{
	for (uint32_t i = 0; i < SLOTS; i++) {
		OK(hal_queue_destroy(s->queue[i]));
		OK(hal_buffer_destroy(s->from[i]));
		OK(hal_buffer_destroy(s->to[i]));
	}
	OK(hal_program_unload(s->prog));
	for (uint32_t i = 0; i < SLOTS; i++)
		OK(hal_partition_destroy(s->part[i]));
	OK(hal_close(s->dev));
}

static void submit(struct hal_queue *q, struct hal_cmd cmd, struct hal_point *done)
{
	struct hal_submit_desc d = HAL_INIT(hal_submit_desc);

	d.cmds = &cmd;
	d.cmd_count = 1;
	OK(hal_submit(q, &d, done));
}

/* A run of the operation, stopped once at a random moment after from and before until. */
static void stop_once(struct scene *s, uint32_t mode, uint32_t from, uint32_t until,
		      bool neighbours)
{
	struct hal_arg args[] = {{s->from[0], 0, 0}, {s->to[0], 0, 0}};
	struct hal_point done[SLOTS], quiet;
	struct hal_stats stats = HAL_INIT(hal_stats);
	struct hal_kernel *k, *thrash;
	uint64_t at;

	OK(hal_kernel_find(s->prog, "work", &k));
	OK(hal_kernel_find(s->prog, "thrash", &thrash));
	for (uint32_t i = 1; neighbours && i < SLOTS; i++) {
		struct hal_arg theirs[] = {{s->from[i], 0, 0}, {s->to[i], 0, 0}};

		submit(s->queue[i], hal_cmd_launch(thrash, theirs, 2), &done[i]);
	}
	submit(s->queue[0], hal_cmd_launch(k, args, 2), &done[0]);
	assert_true(hal_device_poll(s->dev, from + below(s, until - from)) >= 0);
	at = hal_device_get_time(s->dev);
	OK(hal_queue_suspend(s->queue[0], mode, &quiet));
	OK(hal_wait(&quiet, 1, 0, HAL_FOREVER));
	at = hal_device_get_time(s->dev) - at;
	s->most[mode] = at > s->most[mode] ? at : s->most[mode];
	OK(hal_queue_get_stats(s->queue[0], &stats));
	assert_true(stats.stop_max_ns[mode] >= at);
	OK(hal_queue_resume(s->queue[0]));
	OK(hal_wait(&done[0], 1, 0, HAL_FOREVER));
	for (uint32_t i = 1; neighbours && i < SLOTS; i++)
		OK(hal_wait(&done[i], 1, 0, HAL_FOREVER));
}

/* When to stop the operations: while tiles of most rows are stored. */
static const uint32_t from_ns[KINDS] = {[FAR_ROWS] = 11000};

static const uint32_t window_ns[KINDS] = {
	[FAR_ROWS] = 5000, [FAR_PIXELS] = 4000, [GROUPS] = 20000,
	[SOFTMAX] = 40000, [POOL] = 20000,      [GEMM] = 4000};

/* Search for the longest stop; it must lie between worst / part and worst. */
static void search(const char *options, bool neighbours, uint32_t stops, uint64_t part)
{
	uint64_t most[HAL_SUSPEND_KILL + 1] = {0};
	struct hal_device_info info = HAL_INIT(hal_device_info);

	for (int kind = 0; kind < KINDS; kind++) {
		struct scene s;

		open_scene(&s, options, (enum kind)kind);
		OK(hal_device_get_info(s.dev, &info));
		for (uint32_t i = 0; i < 2 * stops; i++) {
			uint32_t from = (neighbours ? 4 : 1) * from_ns[kind];

			stop_once(&s, i % 2 ? HAL_SUSPEND_SAVE : HAL_SUSPEND_FOLD, from,
				  from + (neighbours ? 4 : 1) * window_ns[kind],
				  neighbours);
		}
		printf("%s, %s: FOLD %" PRIu64 ", SAVE %" PRIu64 " ns\n", options,
		       kinds[kind], s.most[HAL_SUSPEND_FOLD], s.most[HAL_SUSPEND_SAVE]);
		if (kind == GROUPS && !neighbours) /* the FOLD has become a SAVE */
			assert_in_range(s.most[HAL_SUSPEND_FOLD], NPU_FOLD_CYCLES,
					2 * NPU_FOLD_CYCLES);
		for (uint32_t mode = 0; mode <= HAL_SUSPEND_KILL; mode++)
			if (s.most[mode] > most[mode])
				most[mode] = s.most[mode];
		close_scene(&s);
	}
	for (uint32_t mode = HAL_SUSPEND_FOLD; mode <= HAL_SUSPEND_SAVE; mode++) {
		uint64_t worst = info.suspend_worst_ns[mode];

		printf("%s: mode %u: %" PRIu64 " of %" PRIu64 " ns\n", options, mode,
		       most[mode], worst);
		assert_in_range(most[mode], 1, worst);
		assert_true(most[mode] >= worst / part);
	}
}

static void ideal(void **state)
{
	(void)state;
	search("memory=ideal", false, 6, 4);
}

static void shared(void **state)
{
	(void)state;
	if (under_valgrind()) /* ideal has run the same code */
		skip();
	search("channels=1", true, 1, 24);
}

/* Nothing is known where the time depends on when it is asked for. */
static void unknown(void **state)
{
	static const char *const options[] = {"turns=128", "refresh=3900"};

	(void)state;
	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
		struct hal_device_info info = HAL_INIT(hal_device_info);
		struct hal_device *dev;
		char target[256];

		snprintf(target, sizeof(target), "npu:0?model=" FAST "&%s", options[i]);
		OK(hal_open(target, NULL, &dev));
		OK(hal_device_get_info(dev, &info));
		assert_int_equal(info.suspend_worst_ns[HAL_SUSPEND_FOLD], 0);
		assert_int_equal(info.suspend_worst_ns[HAL_SUSPEND_SAVE], 0);
		assert_true(info.suspend_worst_ns[HAL_SUSPEND_KILL] > 0);
		OK(hal_close(dev));
	}
}

/* FOLD and SAVE wait for a row of a softmax, so the loader refuses longer ones. */
static void long_softmax(void **state)
{
	struct hal_npu_builder *b;
	struct hal_program *prog;
	struct scene s;
	void *image;
	size_t size;

	(void)state;
	OK(hal_open("npu:0?model=" FAST, NULL, &s.dev));
	OK(hal_npu_builder_create(&b));
	add_kind(&s, b, SOFTMAX);
	OK(hal_npu_build(b, &image, &size));
	OK(hal_npu_builder_destroy(b));
	patch(image, size, 0, 4096);
	assert_int_equal(hal_program_load(s.dev, image, size, &prog), -EINVAL);
	assert_non_null(strstr(hal_last_error(), "softmax of rows of 4096"));
	patch(image, size, 0, 4095);
	OK(hal_program_load(s.dev, image, size, &prog));
	OK(hal_program_unload(prog));
	hal_npu_image_free(image);
	OK(hal_close(s.dev));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ideal),
		cmocka_unit_test(shared),
		cmocka_unit_test(unknown),
		cmocka_unit_test(long_softmax),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Work that is in no partition beside partitions: storms of the program's own launches
 * and fills of new buffers, on each way of partitions, and on which multiprocessors their
 * blocks run; the same with nothing that keeps them off. */
#define _GNU_SOURCE
#include "host.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <hal/cuda.h>
#include <hal/gpu.h>

#include "backends/cuda/internal.h"

#define LAUNCHES 100u
#define BLOCKS   600u /* of a launch: several for each multiprocessor */
#define BIG      (8u << 20)

static const struct hal_backend *b;
static const struct hal_cuda_extension *ext;
static uint32_t inside_all; /* blocks of storms that ran where they must not */

static struct hal_bk_partition_desc line(uint32_t col, uint32_t units)
{
	return (struct hal_bk_partition_desc){
		.col = (uint16_t)col, .units = units, .rows = 1, .cols = (uint16_t)units};
}

static void clean(void)
{
	const char *text = "";

	assert_int_equal(stand_in()->live(), 0);
	if (stand_in()->misuse(&text))
		fail_msg("misuse: %s", text);
}

/* ---- a program with launches of its own ---------------------------------------------- */

struct program {
	struct cu_device *dev;
	void *module, *function, *stream;
	uint32_t *ids; /* multiprocessor of each block, and 1 */
	uint64_t at;
};

static const char text[] = ".version 7.0\n.target sm_52\n.address_size 64\n"
			   ".visible .entry hal_sm(.param .u64 out)\n{\n\tret;\n}\n";

static void enter(const struct program *p)
{
	assert_int_equal(cu.cuCtxPushCurrent_v2(p->dev->context), 0);
}

static void leave(void)
{
	void *context;

	assert_int_equal(cu.cuCtxPopCurrent_v2(&context), 0);
}

static void begin(struct program *p, const struct hal_bk_config *cfg)
{
	void *pinned;

	memset(p, 0, sizeof(*p));
	stand_in()->reset();
	if (b->cold.open(cfg, 0, (void **)&p->dev))
		fail_msg("%s", host_text);
	ext = b->cold.extension(p->dev, "cuda");
	enter(p);
	assert_int_equal(cu.cuModuleLoadDataEx(&p->module, text, 0, NULL, NULL), 0);
	assert_int_equal(cu.cuModuleGetFunction(&p->function, p->module, "hal_sm"), 0);
	assert_int_equal(cu.cuFuncLoad(p->function), 0);
	assert_int_equal(cu.cuMemHostAlloc(&pinned, BLOCKS * sizeof(uint32_t), 0), 0);
	assert_int_equal(cu.cuMemHostGetDevicePointer_v2(&p->at, pinned, 0), 0);
	p->ids = pinned;
	assert_int_equal(cu.cuStreamCreateWithPriority(&p->stream, 1, 0), 0);
	leave();
}

static void end(struct program *p)
{
	enter(p);
	assert_int_equal(cu.cuStreamDestroy_v2(p->stream), 0);
	assert_int_equal(cu.cuMemFreeHost(p->ids), 0);
	assert_int_equal(cu.cuModuleUnload(p->module), 0);
	leave();
	b->cold.close(p->dev);
	clean();
}

static void *partition(struct program *p, uint32_t col, uint32_t units)
{
	const struct hal_bk_partition_desc desc = line(col, units);
	void *part, *queue;

	assert_int_equal(b->cold.partition_create(p->dev, &desc, &part), 0);
	/* A green context comes with the first queue. */
	assert_int_equal(b->cold.queue_create(p->dev, part, 0, &queue), 0);
	assert_int_equal(b->cold.queue_destroy(p->dev, queue), 0);
	return part;
}

/* Launches in masses; how many of their blocks ran on [least, most], of which nothing
 * else runs, and on how many multiprocessors they ran. */
static uint32_t storm(struct program *p, void *stream, uint32_t least, uint32_t most,
		      uint32_t *used)
{
	void *params[1] = {&p->at};
	bool was[CU_SM_MOST] = {false};
	uint32_t n, i, inside = 0;

	*used = 0;
	enter(p);
	for (n = 0; n < LAUNCHES; n++) {
		assert_int_equal(cu.cuLaunchKernel(p->function, BLOCKS, 1, 1, 1024, 1, 1,
						   0, stream, params, NULL),
				 0);
		assert_int_equal(cu.cuStreamSynchronize(stream), 0);
		for (i = 0; i < BLOCKS; i++) {
			const uint32_t id = p->ids[i] - 1;

			inside += id >= least && id <= most;
			*used += !was[id];
			was[id] = true;
		}
	}
	leave();
	return inside;
}

/* ---- storms -------------------------------------------------------------------------- */

static const struct way {
	const char *name;
	int64_t way;
	uint32_t per, units, over; /* multiprocessors of a unit; units; in no unit */
} ways[] = {{"mask", CU_WAY_MASK, 2, 66, 0},
	    {"stream", CU_WAY_STREAM, 2, 66, 0},
	    {"green", CU_WAY_GREEN, 8, 16, 4}};

/* Beside a partition of half of the units; green contexts first, as masks at launch end
 * these for the process. */
static void beside(const struct way *w, int64_t remainder, uint32_t *ours,
		   uint32_t *plain)
{
	const struct hal_bk_config cfg = {
		.clock = 1, .partitions = w->way, .remainder = remainder};
	const uint32_t half = w->units / 2;
	struct program p;
	void *part, *stream;
	uint32_t used;

	begin(&p, &cfg);
	part = partition(&p, 0, half);
	*plain = storm(&p, p.stream, 0, half * w->per - 1, &used);
	if (remainder) {
		assert_int_equal(ext->remainder_stream(p.dev, 0, &stream), 0);
		*ours = storm(&p, stream, 0, half * w->per - 1, &used);
		inside_all += *ours;
		assert_int_equal(used, w->way == CU_WAY_GREEN
					       ? (uint32_t)remainder * w->per + w->over
					       : (w->units - half) * w->per);
		assert_int_equal(ext->remainder_end(p.dev, stream), 0);
	}
	assert_int_equal(b->cold.partition_destroy(p.dev, part), 0);
	end(&p);
}

static void storms(void **state)
{
	uint32_t ours, plain, i;

	(void)state;
	assert_int_equal(setenv("HAL_STAND_IN_CUDA_DEVICES", "1", 1), 0);
	for (i = 3; i--;) {
		const bool all = ways[i].way == CU_WAY_MASK;

		beside(&ways[i], 2, &ours, &plain);
		assert_int_equal(ours, 0);
		/* Streams of the program's own: no mask and no context keeps them off,
		 * but the mask that all launches have. */
		assert_int_equal(plain != 0, !all);
		printf("storm beside partitions=%s: %u of %u blocks inside, of a plain "
		       "stream %u\n",
		       ways[i].name, ours, LAUNCHES * BLOCKS, plain);
		/* The control: nothing is kept. */
		beside(&ways[i], 0, &ours, &plain);
		assert_in_range(plain, LAUNCHES * BLOCKS / 4, LAUNCHES * BLOCKS);
	}
	assert_int_equal(unsetenv("HAL_STAND_IN_CUDA_DEVICES"), 0);
	printf("figure cuda.remainder.storm_inside %u\n", inside_all);
	printf("figure cuda.remainder.storm_inside.free %u\n", plain);
}

/* Launches do not say which device they are for. */
static void two_devices(void **state)
{
	const struct hal_bk_config cfg = {
		.clock = 1, .partitions = CU_WAY_MASK, .remainder = 1};
	struct program p;
	void *part, *stream;
	uint32_t used;

	(void)state;
	begin(&p, &cfg);
	part = partition(&p, 0, 65);
	assert_int_equal(ext->remainder_stream(p.dev, 0, &stream), -ENOTSUP);
	assert_non_null(strstr(host_text, "set CUDA_VISIBLE_DEVICES"));
	assert_true(storm(&p, p.stream, 0, 129, &used) > 0);
	assert_int_equal(b->cold.partition_destroy(p.dev, part), 0);
	end(&p);
}

/* What the partition has left stays its own until what runs there has ended. */
static void follow(int64_t way)
{
	static const char *const names[] = {"never:m"};
	const struct hal_bk_config cfg = {
		.clock = 1, .partitions = way, .remainder = 2, .hang_ms = 3};
	const struct hal_bk_partition_desc to = line(30, 10);
	struct hal_bk_kernel_info info;
	struct hal_bk_cmd cmd = {.op = HAL_OP_LAUNCH, .cookie = 1};
	struct hal_bk_arg arg = {.bytes = 64};
	struct hal_bk_event ev[2];
	size_t size;
	void *image = make_cuda_image(names, 1, 1, &size), *part, *prog, *queue, *stream;
	struct program p;
	uint32_t used;

	begin(&p, &cfg);
	part = partition(&p, 0, 10);
	assert_int_equal(ext->remainder_stream(p.dev, 1, &stream), 0);
	assert_int_equal(storm(&p, stream, 0, 19, &used), 0);
	assert_int_equal(used, 112);
	assert_int_equal(b->cold.program_load(p.dev, image, size, &prog), 0);
	free(image);
	assert_int_equal(b->cold.kernel_get(p.dev, prog, 0, &info, &cmd.launch.kernel),
			 0);
	assert_int_equal(b->cold.mem_alloc(p.dev, part, 64, NULL, 0, &arg.mem), 0);
	assert_int_equal(b->cold.queue_create(p.dev, part, 0, &queue), 0);
	cmd.launch.args = &arg;
	cmd.launch.arg_count = 1;
	cmd.launch.groups[0] = cmd.launch.groups[1] = cmd.launch.groups[2] = 1;
	assert_int_equal(b->hot.submit(p.dev, queue, &cmd), 0);
	assert_int_equal(b->hot.resize(p.dev, part, &to, 7), 0);
	assert_int_equal(b->hot.poll(p.dev, 0, ev, 2), 0);
	assert_int_equal(storm(&p, stream, 0, 19, &used), 0);
	assert_int_equal(storm(&p, stream, 60, 79, &used), 0);
	assert_int_equal(used, 92);
	inside_all += used != 92;
	/* The launch is given up, and the move is over. */
	while (b->hot.poll(p.dev, UINT64_MAX, ev, 1) == 1 && ev[0].kind != HAL_BK_QUIET)
		;
	assert_int_equal(ev[0].cookie, 7);
	(void)b->hot.poll(p.dev, 0, ev, 1);
	assert_true(storm(&p, stream, 0, 19, &used) > 0);
	assert_int_equal(storm(&p, stream, 60, 79, &used), 0);
	assert_int_equal(used, 111); /* one is the endless launch's */
	stand_in()->lose(0, CUR_LAUNCH_TIMEOUT);
	(void)b->cold.queue_destroy(p.dev, queue);
	(void)b->cold.mem_free(p.dev, arg.mem);
	(void)b->cold.program_unload(p.dev, prog);
	(void)b->cold.partition_destroy(p.dev, part);
	b->cold.close(p.dev);
	stand_in()->reset();
}

static void follows(void **state)
{
	(void)state;
	assert_int_equal(setenv("HAL_STAND_IN_CUDA_DEVICES", "1", 1), 0);
	follow(CU_WAY_STREAM);
	follow(CU_WAY_MASK);
	assert_int_equal(unsetenv("HAL_STAND_IN_CUDA_DEVICES"), 0);
}

/* ---- fills of new buffers ------------------------------------------------------------ */

/* Clear a large buffer; what the device did for it, and whether it ran on a
 * multiprocessor of [0, below). */
static void clear_in(struct program *p, void *part, uint32_t below, uint32_t *fills,
		     uint32_t *copies, bool *inside)
{
	static uint8_t got[BIG];
	struct gpu_stand_in_job jobs[64];
	uint32_t n, i, u;
	void *mem;

	while (stand_in()->jobs(jobs, 64))
		;
	assert_int_equal(b->cold.mem_alloc(p->dev, part, BIG, NULL, 0, &mem), 0);
	assert_int_equal(b->cold.mem_clear(p->dev, mem), 0);
	n = stand_in()->jobs(jobs, 64);
	for (i = *fills = *copies = 0, *inside = false; i < n; i++) {
		*fills += strcmp(jobs[i].what, "fill") == 0;
		*copies += strcmp(jobs[i].what, "copy") == 0;
		for (u = 0; u < below; u++)
			*inside |= jobs[i].units[u / 64] >> u % 64 & 1;
	}
	memset(got, 1, sizeof(got));
	assert_int_equal(b->cold.mem_read(p->dev, mem, 0, got, BIG), 0);
	for (i = 0; i < BIG; i++)
		if (got[i])
			fail_msg("byte %u is %u", i, got[i]);
	assert_int_equal(b->cold.mem_free(p->dev, mem), 0);
}

static void fills_on(const struct way *w)
{
	const struct hal_bk_config cfg = {.clock = 1, .partitions = w->way};
	const uint32_t most = w->units - (w->over ? 0 : 1);
	uint32_t fills, copies;
	void *part, *last;
	struct program p;
	bool inside;

	begin(&p, &cfg);
	part = partition(&p, 0, most);
	clear_in(&p, part, most * w->per, &fills, &copies, &inside);
	assert_int_equal(fills, 1);
	assert_int_equal(copies, 0);
	assert_false(inside);
	if (!w->over) {
		/* Nothing is left: zeros are copied, by no multiprocessor. */
		last = partition(&p, most, 1);
		clear_in(&p, part, w->units * w->per, &fills, &copies, &inside);
		assert_int_equal(fills, 0);
		assert_int_equal(copies, BIG >> 20);
		assert_false(inside);
		assert_int_equal(b->cold.partition_destroy(p.dev, last), 0);
		clear_in(&p, part, most * w->per, &fills, &copies, &inside);
		assert_int_equal(fills, 1);
		assert_false(inside);
	}
	assert_int_equal(b->cold.partition_destroy(p.dev, part), 0);
	end(&p);
}

static void fills(void **state)
{
	uint32_t i;

	(void)state;
	for (i = 3; i--;)
		fills_on(&ways[i]);
}

/* A driver that makes no context of so few multiprocessors as are over. */
static void few_are_over(void **state)
{
	const struct hal_bk_config none = {.clock = 1, .partitions = CU_WAY_GREEN},
				   one = {.clock = 1,
					  .partitions = CU_WAY_GREEN,
					  .remainder = 1};
	uint32_t fills, copies;
	void *part;
	struct program p;
	bool inside;

	(void)state;
	stand_in()->reset();
	(void)stand_in()->break_call("cuGreenCtxCreate", 1,
				     CUR_INVALID_RESOURCE_CONFIGURATION);
	assert_int_equal(b->cold.open(&none, 0, (void **)&p.dev), 0);
	part = partition(&p, 0, 16);
	clear_in(&p, part, 132, &fills, &copies, &inside);
	assert_int_equal(fills, 0);
	assert_int_equal(copies, BIG >> 20);
	assert_int_equal(b->cold.partition_destroy(p.dev, part), 0);
	b->cold.close(p.dev);
	clean();
	stand_in()->reset();
	(void)stand_in()->break_call("cuGreenCtxCreate", 1,
				     CUR_INVALID_RESOURCE_CONFIGURATION);
	assert_int_equal(b->cold.open(&one, 0, (void **)&p.dev), 0);
	part = partition(&p, 0, 15);
	clear_in(&p, part, 120, &fills, &copies, &inside);
	assert_int_equal(fills, 1);
	assert_false(inside);
	assert_int_equal(b->cold.partition_destroy(p.dev, part), 0);
	b->cold.close(p.dev);
	clean();
}

/* ---- what is refused ----------------------------------------------------------------- */

static void numbers(void **state)
{
	struct hal_bk_config cfg = {.clock = 1, .remainder = 3};
	struct hal_device_info probed[2] = {{0}}, info = {.size = sizeof(info)};
	void *dev, *part, *stream;
	struct hal_bk_partition_desc bad = line(0, 64), good = line(0, 63);
	uint32_t i;

	(void)state;
	stand_in()->reset();
	cfg.partitions = CU_WAY_GREEN;
	assert_int_equal(b->cold.probe(&cfg, probed, 2), 2);
	assert_int_equal(probed[0].unit_cols, 13);
	for (i = 3; i--;) {
		cfg.partitions = ways[i].way;
		cfg.remainder = ways[i].units;
		assert_int_equal(b->cold.open(&cfg, 0, &dev), -EINVAL);
		assert_non_null(strstr(host_text, "no partition could have any"));
		clean();
		cfg.remainder = 3;
		assert_int_equal(b->cold.open(&cfg, 0, &dev), 0);
		assert_int_equal(b->cold.get_info(dev, &info), 0);
		assert_int_equal(info.unit_cols, ways[i].units - 3);
		if (ways[i].units == 66) {
			assert_int_equal(b->cold.partition_create(dev, &bad, &part),
					 -EINVAL);
			assert_int_equal(b->cold.partition_create(dev, &good, &part), 0);
			assert_int_equal(b->cold.partition_destroy(dev, part), 0);
		}
		b->cold.close(dev);
		clean();
	}
	cfg.partitions = CU_WAY_NONE;
	assert_int_equal(b->cold.open(&cfg, 0, &dev), 0);
	assert_int_equal(b->cold.get_info(dev, &info), 0);
	assert_int_equal(info.unit_cols, 1);
	ext = b->cold.extension(dev, "cuda");
	assert_int_equal(ext->remainder_stream(dev, 0, &stream), -ENOTSUP);
	assert_int_equal(ext->remainder_end(dev, dev), -EINVAL);
	b->cold.close(dev);
	clean();
}

/* What each call that fails leaves behind; what the program does not end goes at close.
 */
static void streams(void **state)
{
	static const char *const calls[] = {"cuStreamCreateWithPriority",
					    "cuStreamCreateWithPriority",
					    "cuGreenCtxStreamCreate"};
	struct hal_bk_config cfg = {.clock = 1, .remainder = 1};
	const struct hal_gpu_extension *gpu;
	struct hal_gpu_info info = {.size = sizeof(info)};
	void *stream, *other;
	struct program p;
	uint32_t i;

	(void)state;
	assert_int_equal(setenv("HAL_STAND_IN_CUDA_DEVICES", "1", 1), 0);
	for (i = 3; i--;) {
		cfg.partitions = ways[i].way;
		begin(&p, &cfg);
		gpu = b->cold.extension(p.dev, "gpu");
		assert_int_equal(gpu->info(p.dev, &info), 0);
		assert_non_null(strstr(info.why, ways[i].way == CU_WAY_MASK
							 ? "for all launches"
							 : "for streams of"));
		(void)stand_in()->break_call(calls[i], 1, CUR_OUT_OF_MEMORY);
		assert_int_equal(ext->remainder_stream(p.dev, 0, &stream), -ENOSPC);
		assert_int_equal(ext->remainder_stream(p.dev, 0, &stream), 0);
		assert_int_equal(ext->remainder_stream(p.dev, -1, &other), 0);
		assert_int_equal(ext->remainder_end(p.dev, p.stream), -EINVAL);
		assert_int_equal(ext->remainder_end(p.dev, stream), 0);
		assert_int_equal(ext->remainder_end(p.dev, stream), -EINVAL);
		end(&p);
	}
	assert_int_equal(unsetenv("HAL_STAND_IN_CUDA_DEVICES"), 0);
}

int main(void)
{
	/* Green contexts before anything is masked at launch: each case starts anew, as
	 * another process would. */
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(storms),       cmocka_unit_test(two_devices),
		cmocka_unit_test(follows),      cmocka_unit_test(fills),
		cmocka_unit_test(few_are_over), cmocka_unit_test(numbers),
		cmocka_unit_test(streams),
	};

	b = hal_backend_cuda(&host);
	return cmocka_run_group_tests(tests, NULL, NULL);
}

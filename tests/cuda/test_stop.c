/* SPDX-License-Identifier: Apache-2.0 */
/* preempt=block: the cases of tests/gpu; and PTX that cannot be rewritten says why and
 * runs to its end. */
#define _GNU_SOURCE
#include "host.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <hal/cuda.h>
#include <hal/gpu.h>

#include "backends/cuda/internal.h"
#include "tests/gpu/rig.h"

_Static_assert(RIG_MOST == CU_STOP_BLOCKS, "as many can be stopped");

static const struct hal_bk_config blockwise = {.clock = 1, .preempt = 1},
				  hangs = {.clock = 1, .preempt = 1, .hang_ms = 3},
				  masks = {.clock = 1,
					   .preempt = 1,
					   .partitions = CU_WAY_MASK};

static void lose(void *device, uint32_t result)
{
	((struct cu_device *)device)->base.lost = result;
}

struct rig_face rig_face = {
	.how = {&blockwise, &hangs, &masks},
	.device = 1,
	.units = 46,
	.kernels = {"work:m8", "iota:m4"},
	.calls = {"cuStreamWriteValue32_v2", "cuMemcpyAsync", "cuLaunchKernel"},
	.stand_in = stand_in,
	.image = make_cuda_image,
	.lose = lose,
};

static void refused(void **state)
{
	const struct hal_backend *b = rig_face.backend;
	const struct hal_gpu_extension *ext;
	struct hal_cuda_image *head;
	struct hal_bk_cmd cmd;
	char why[HAL_GPU_SAID];
	void *prog, *image, *later, *last;
	size_t size, size_of_last;
	struct rig r;

	(void)state;
	rig_begin(&r, RIG_PLAIN);
	ext = b->cold.extension(r.dev, "gpu");
	assert_int_equal(ext->stops(r.dev, "work", why), 1);
	assert_int_equal(ext->stops(r.dev, "nobody", why), -ENOENT);
	image = make_cuda_image(rig_face.kernels, 2, 1, &size);
	head = image;
	/* The first kernel's "ret;" becomes an "oops;", one byte is over: the last 0. */
	{
		char *ptx = (char *)image + size - head->module_bytes;
		char *ret = strstr(ptx, "ret;"), *end = (char *)image + size - 1;

		memmove(ret + 4, ret + 3, (size_t)(end - ret - 4) + 1);
		memcpy(ret, "oops", 4);
		*end = 0;
		end[-1] = '}';
	}
	if (b->cold.program_load(r.dev, image, size, &prog))
		fail_msg("%s", host_text);
	assert_int_equal(ext->stops(r.dev, "work", why), 0);
	if (!strstr(why, "oops: unknown instruction") ||
	    !strstr(why, "; 1 of 2 loaded programs with a kernel of this name"))
		fail_msg("why: %s", why);
	assert_int_equal(ext->stops(r.dev, "iota", why), 1);
	assert_string_equal(why, "");
	/* Whichever of them was loaded last. */
	last = make_cuda_image(rig_face.kernels, 2, 1, &size_of_last);
	assert_int_equal(b->cold.program_load(r.dev, last, size_of_last, &later), 0);
	free(last);
	assert_int_equal(ext->stops(r.dev, "work", why), 0);
	if (!strstr(why, "oops: unknown instruction") ||
	    !strstr(why, "; 1 of 3 loaded programs with a kernel of this name"))
		fail_msg("why: %s", why);
	assert_int_equal(b->cold.program_unload(r.dev, later), 0);
	rig_zero(&r);
	assert_int_equal(b->cold.kernel_get(r.dev, prog, 0, &r.info, &r.work), 0);
	assert_int_equal(rig_launch(&r, r.work, RIG_BLOCK_NS, RIG_BLOCKS, &cmd), 0);
	assert_int_equal(rig_run_for(&r, 3 * RIG_BLOCK_NS), 0);
	assert_int_equal(rig_stop(&r, NULL), 1); /* to its end */
	assert_int_equal(b->hot.resume(r.dev, r.queue), 0);
	assert_int_equal(rig_word(&r, 0), RIG_BLOCKS);
	assert_int_equal(b->cold.program_unload(r.dev, prog), 0);
	assert_int_equal(ext->stops(r.dev, "work", why), 1);
	free(image);
	rig_end(&r);
}

/* Load the two kernels while the first call of that name answers result; what came of it,
 * and whether "work" can be stopped then (if it was loaded). */
static int load_broken(struct rig *r, const char *call, uint32_t result, int *stops,
		       char why[HAL_GPU_SAID])
{
	const struct hal_backend *b = rig_face.backend;
	const struct hal_gpu_extension *ext = b->cold.extension(r->dev, "gpu");
	void *prog = NULL, *image;
	size_t size;
	int err;

	image = make_cuda_image(rig_face.kernels, 2, 1, &size);
	assert_int_equal(stand_in()->break_call(call, 1, result), 0);
	err = b->cold.program_load(r->dev, image, size, &prog);
	assert_int_equal(stand_in()->armed(), 0);
	free(image);
	if (err)
		return err;
	*stops = ext->stops(r->dev, "work", why);
	assert_int_equal(b->cold.program_unload(r->dev, prog), 0);
	return 0;
}

/* PTX that the driver rejects once it was rewritten runs as it was.  All other failures
 * are the load's: a program must not lose preemption because memory was short. */
static void rejected(void **state)
{
	static const struct {
		const char *call;
		uint32_t result;
		int err; /* 0: loaded as it was */
	} all[] = {
		{"cuModuleLoadDataEx", CUR_INVALID_PTX, 0},
		{"cuModuleLoadDataEx", CUR_UNSUPPORTED_PTX_VERSION, 0},
		{"cuModuleLoadDataEx", CUR_NO_BINARY_FOR_GPU, 0},
		{"cuModuleLoadDataEx", CUR_INVALID_IMAGE, 0},
		{"cuModuleLoadDataEx", CUR_JIT_COMPILER_NOT_FOUND, 0},
		{"cuModuleLoadDataEx", CUR_OUT_OF_MEMORY, -ENOSPC},
		{"cuModuleLoadDataEx", CUR_DEVICE_UNAVAILABLE, -EBUSY},
		{"cuModuleLoadDataEx", CUR_OPERATING_SYSTEM, -EIO},
		{"cuModuleLoadDataEx", CUR_NOT_PERMITTED, -EPERM},
		{"cuModuleGetFunction", CUR_OUT_OF_MEMORY, -ENOSPC},
		{"cuFuncLoad", CUR_OUT_OF_MEMORY, -ENOSPC},
		{"cuFuncGetAttribute", CUR_OUT_OF_MEMORY, -ENOSPC},
		{"cuFuncGetParamInfo", CUR_OUT_OF_MEMORY, -ENOSPC},
	};
	char why[HAL_GPU_SAID];
	struct rig r;
	size_t i;

	(void)state;
	rig_begin(&r, RIG_PLAIN);
	for (i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		int stops = -1;
		const int err = load_broken(&r, all[i].call, all[i].result, &stops, why);

		if (err != all[i].err || stops != (err ? -1 : 0))
			fail_msg("%s with %u: %d, stops %d", all[i].call, all[i].result,
				 err, stops);
		if (!err &&
		    !strstr(why, "the driver rejects the rewritten kernel: CUDA_"))
			fail_msg("why: %s", why);
	}
	rig_end(&r);
}

/* preempt=restart: kernels are rewritten so that blocks also vote in a loop that has a
 * barrier, and only those; launches stop as with preempt=block. */
static void restarts(void **state)
{
	static const struct hal_bk_config how = {.clock = 1, .preempt = 2};
	static const char code[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
				   ".visible .entry turns(.param .u64 p)\n{\n"
				   ".reg .b64 %a;\n.reg .b32 %i;\n.reg .pred %q;\n"
				   "ld.param.u64 %a, [p];\nmov.u32 %i, 0;\n"
				   "again:\nbar.sync 0;\nadd.u32 %i, %i, 1;\n"
				   "setp.lt.u32 %q, %i, 9;\n@%q bra again;\n"
				   "st.global.u32 [%a], %i;\nret;\n}\n";
	const struct hal_bk_config *before = rig_face.how[RIG_PLAIN];
	struct cu_kernel k = {.info.name = "turns"};
	struct cu_program prog = {.format = HAL_CUDA_PTX, .count = 1, .kernels = &k};
	static const enum ptx_pass passes[] = {PTX_ENTRY, PTX_RESTART};
	uint32_t votes[2] = {0}, i;
	struct rig r;

	for (i = 0; i < 2; i++) {
		char *text = NULL;
		const char *at;

		assert_int_equal(
			cu_program_rewrite(&prog, code, sizeof(code), passes[i], &text),
			0);
		assert_true(k.stops);
		for (at = text; (at = strstr(at, "bar.red.or.pred")); at++)
			votes[i]++;
		free(text);
	}
	assert_int_equal(votes[0], 1);
	assert_int_equal(votes[1], 2);
	rig_face.how[RIG_PLAIN] = &how;
	rig_begin(&r, RIG_PLAIN);
	assert_true(((struct cu_device *)r.dev)->opt.restart);
	rig_end(&r);
	stop_in_order(state);
	rig_face.how[RIG_PLAIN] = before;
}

int main(void)
{
	const struct CMUnitTest tests[] = {STOP_CASES, cmocka_unit_test(refused),
					   cmocka_unit_test(rejected),
					   cmocka_unit_test(restarts)};

	rig_face.backend = hal_backend_cuda(&host);
	return cmocka_run_group_tests(tests, NULL, NULL);
}

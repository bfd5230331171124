/* SPDX-License-Identifier: Apache-2.0 */
/* preempt=block: the cases of tests/gpu; kernels that do not follow hal_preempt.h run to
 * their end; what says that it does and does not is refused, or found out. */
#define _GNU_SOURCE
#include "host.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <hal/gpu.h>

#include "backends/rocm/internal.h"
#include "tests/gpu/rig.h"

_Static_assert(RIG_MOST == ROCM_STOP_BLOCKS, "as many can be stopped");

static const struct hal_bk_config blockwise = {.clock = 1, .preempt = 1},
				  hangs = {.clock = 1, .preempt = 1, .hang_ms = 3},
				  single = {.clock = 1,
					    .preempt = 1,
					    .partitions = ROCM_CUS},
				  between = {.clock = 1};

static void lose(void *device, uint32_t result)
{
	((struct rocm_device *)device)->lost = result;
}

struct rig_face rig_face = {
	.how = {&blockwise, &hangs, &single},
	.units = 60,
	.kernels = {"work:m8p", "iota:m4p"},
	.calls = {"hipStreamWriteValue32", "hipMemsetD32Async", "hipModuleLaunchKernel",
		  "hipEventRecord"},
	.stand_in = stand_in,
	.image = make_rocm_image,
	.lose = lose,
};

/* A program of one kernel, in place of the rig's. */
static void *load(struct rig *r, const char *kernel, void **prog)
{
	const struct hal_backend *b = rig_face.backend;
	void *image, *found;
	size_t size;

	image = make_rocm_image(&kernel, 1, 1, &size);
	if (b->cold.program_load(r->dev, image, size, prog))
		fail_msg("%s", host_text);
	assert_int_equal(b->cold.kernel_get(r->dev, *prog, 0, &r->info, &found), 0);
	free(image);
	return found;
}

/* Kernels that do not follow it run to their end; none is stopped unless it is asked for.
 */
static void not_stopped(void **state)
{
	const struct hal_backend *b = rig_face.backend;
	const struct hal_gpu_extension *ext;
	char why[HAL_GPU_SAID];
	struct hal_bk_cmd cmd;
	struct rig r;
	void *prog;

	(void)state;
	rig_begin(&r, RIG_PLAIN);
	ext = b->cold.extension(r.dev, "gpu");
	assert_int_equal(ext->stops(r.dev, "work", why), 1);
	assert_string_equal(why, "");
	assert_int_equal(ext->stops(r.dev, "nobody", why), -ENOENT);
	r.work = load(&r, "work:m8", &prog);
	assert_int_equal(ext->stops(r.dev, "work", why), 0);
	assert_string_equal(why, "it does not follow hal/device/hal_preempt.h");
	rig_zero(&r);
	assert_int_equal(rig_launch(&r, r.work, RIG_BLOCK_NS, RIG_BLOCKS, &cmd), 0);
	assert_int_equal(rig_run_for(&r, 3 * RIG_BLOCK_NS), 0);
	assert_int_equal(rig_stop(&r, NULL), 1);
	assert_int_equal(b->hot.resume(r.dev, r.queue), 0);
	assert_int_equal(rig_word(&r, 0), RIG_BLOCKS);
	assert_int_equal(b->cold.program_unload(r.dev, prog), 0);
	assert_int_equal(ext->stops(r.dev, "work", why), 1);
	rig_end(&r);

	/* It has the argument all the same. */
	rig_face.how[RIG_PLAIN] = &between;
	rig_begin(&r, RIG_PLAIN);
	rig_face.how[RIG_PLAIN] = &blockwise;
	assert_int_equal(ext->stops(r.dev, "work", why), 0);
	assert_string_equal(why, "preempt=between");
	rig_zero(&r);
	assert_int_equal(rig_launch(&r, r.work, RIG_BLOCK_NS, RIG_BLOCKS, &cmd), 0);
	assert_int_equal(b->hot.suspend(r.dev, r.queue, HAL_SUSPEND_FOLD, 1), -ENOTSUP);
	assert_int_equal(rig_finish(&r), 1);
	assert_int_equal(rig_word(&r, 0), RIG_BLOCKS);
	rig_end(&r);
}

/* What a kernel tells of its blocks is held against what was launched. */
static void lies(void **state)
{
	static const char *const kernels[] = {"twin:m8p", "astray:m8p"};
	const struct hal_backend *b = rig_face.backend;
	struct hal_bk_event ev[3];
	struct hal_bk_cmd cmd;
	struct rig r;
	void *prog, *kernel;
	uint32_t i;

	(void)state;
	for (i = 0; i < 2; i++) {
		rig_begin(&r, RIG_PLAIN);
		kernel = load(&r, kernels[i], &prog);
		assert_int_equal(rig_launch(&r, kernel, RIG_BLOCK_NS, RIG_BLOCKS, &cmd),
				 0);
		assert_int_equal(rig_run_for(&r, 3 * RIG_BLOCK_NS), 0);
		assert_int_equal(b->hot.suspend(r.dev, r.queue, HAL_SUSPEND_FOLD, 77), 0);
		assert_int_equal(b->hot.poll(r.dev, UINT64_MAX, ev, 3), 2);
		assert_int_equal(ev[0].kind, HAL_BK_DONE);
		assert_int_equal(ev[0].status, -EIO);
		if (!strstr(ev[0].fault, " stopped block ") ||
		    !strstr(ev[0].fault, "not launched, or twice"))
			fail_msg("fault: %s", ev[0].fault);
		assert_int_equal(ev[1].kind, HAL_BK_QUIET);
		assert_int_equal(b->hot.resume(r.dev, r.queue), 0);
		assert_int_equal(b->hot.submit(r.dev, r.queue, &cmd), -EIO);
		assert_int_equal(b->cold.program_unload(r.dev, prog), 0);
		rig_end(&r);
	}
}

/* Marks without the argument, the argument without the mark, another version. */
static void marked(void **state)
{
	static const struct {
		const char *kernels[2]; /* as they are made; then what becomes of them */
		const char *from, *to;
		int err;
		const char *text;
	} all[] = {
		{{"work:m8p", "iota:m4"},
		 "hal_preempt_1_work",
		 "hal_preempt_2_work",
		 -ENOTSUP,
		 "kernel work follows another hal_preempt.h: hal_preempt_2_work"},
		{{"work:m8p", "iota:m4"},
		 "hal_preempt_1_work",
		 "hal_preempt_x_work",
		 -EINVAL,
		 "kernel work has more arguments than the 2"},
		{{"work:m8", "iota:m4p"},
		 "hal_preempt_1_iota",
		 "hal_preempt_1_work",
		 -EINVAL,
		 "kernel work is marked as one that follows hal_preempt.h and has no "
		 "argument for it"},
		{{"work:m8p", "iota:m4"},
		 ".size\x30",
		 ".size\x28",
		 -EINVAL,
		 "argument 2 has 40 bytes, 48 are due"},
	};
	const struct hal_backend *b = rig_face.backend;
	size_t size, n;
	uint32_t i;
	struct rig r;
	char *image, *at;
	void *prog;
	int err;

	(void)state;
	rig_begin(&r, RIG_PLAIN);
	for (i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		image = make_rocm_code(all[i].kernels, 2, 1, 0, &size);
		n = strlen(all[i].from);
		at = memmem(image, size, all[i].from, n);
		assert_non_null(at);
		memcpy(at, all[i].to, n);
		host_text[0] = 0;
		err = b->cold.program_load(r.dev, image, size, &prog);
		if (err != all[i].err || !strstr(host_text, all[i].text))
			fail_msg("%s: %d: %s", all[i].to, err, host_text);
		free(image);
	}
	rig_end(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {STOP_CASES, cmocka_unit_test(not_stopped),
					   cmocka_unit_test(lies),
					   cmocka_unit_test(marked)};

	rig_face.backend = hal_backend_rocm(&host);
	return cmocka_run_group_tests(tests, NULL, NULL);
}

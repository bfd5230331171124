/* SPDX-License-Identifier: Apache-2.0 */
/* preempt=block, built with OF_HSA 1 in queues of HSA's: the cases of tests/gpu; kernels
 * that do not follow hal_preempt.h run to their end; what says that it does and does not
 * is refused, or found out. */
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

/* Queues of HSA's are those of partitions: one has all 15 units of 4 CUs. */
#define HOW .clock = 1, .partitions = OF_HSA ? ROCM_ENGINES : 0, .queues = OF_HSA
static const struct hal_bk_config blockwise = {HOW, .preempt = 1},
				  hangs = {HOW, .preempt = 1, .hang_ms = 3},
				  single = {.clock = 1,
					    .preempt = 1,
					    .partitions = ROCM_CUS,
					    .queues = OF_HSA ? ROCM_QUEUES_HSA
							     : ROCM_QUEUES_STREAM},
				  between = {HOW};

static void lose(void *device, uint32_t result)
{
	((struct rocm_device *)device)->base.lost = result;
}

struct rig_face rig_face = {
	.how = {&blockwise, &hangs, &single},
	.units = 60,
#if OF_HSA
	.has = {15, 15, 1, 15},
	.modes = 1u << HAL_SUSPEND_KILL,
	.moves_at_once = true,
#else
	.calls = {"hipStreamWriteValue32", "hipMemsetD32Async", "hipModuleLaunchKernel"},
#endif
	.kernels = {"work:m8p", "iota:m4p"},
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
	void *prog, *later;

	(void)state;
	rig_begin(&r, RIG_PLAIN);
	ext = b->cold.extension(r.dev, "gpu");
	assert_int_equal(ext->stops(r.dev, "work", why), 1);
	assert_string_equal(why, "");
	assert_int_equal(ext->stops(r.dev, "nobody", why), -ENOENT);
	r.work = load(&r, "work:m8", &prog);
	assert_int_equal(ext->stops(r.dev, "work", why), 0);
	assert_string_equal(why,
			    "it does not use hal/device/hal_preempt.h; 1 of 2 loaded "
			    "programs with a kernel of this name");
	/* Whichever of them was loaded last. */
	(void)load(&r, rig_face.kernels[0], &later);
	assert_int_equal(ext->stops(r.dev, "work", why), 0);
	assert_string_equal(why,
			    "it does not use hal/device/hal_preempt.h; 1 of 3 loaded "
			    "programs with a kernel of this name");
	assert_int_equal(b->cold.program_unload(r.dev, later), 0);
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
		    !strstr(ev[0].fault, "twice or without launch"))
			fail_msg("fault: %s", ev[0].fault);
		assert_int_equal(ev[1].kind, HAL_BK_QUIET);
		assert_int_equal(b->hot.resume(r.dev, r.queue), 0);
		assert_int_equal(b->hot.submit(r.dev, r.queue, &cmd), -EIO);
		assert_int_equal(b->cold.program_unload(r.dev, prog), 0);
		rig_end(&r);
	}
}

/* A queue whose first launch is refused goes at once, though its counts are being made.
 */
static void first_refused(void **state)
{
	const struct hal_backend *b = rig_face.backend;
	struct hal_bk_arg args[2] = {{.value = 1}, {.value = 1}}; /* no memory */
	struct hal_bk_cmd cmd = {.op = HAL_OP_LAUNCH};
	struct rig r;

	(void)state;
	rig_begin(&r, RIG_PLAIN);
	cmd.launch.kernel = r.work;
	cmd.launch.args = args;
	cmd.launch.arg_count = 2;
	cmd.launch.groups[0] = cmd.launch.groups[1] = cmd.launch.groups[2] = 1;
	assert_int_equal(b->hot.submit(r.dev, r.queue, &cmd), -EINVAL);
	rig_end(&r);
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
		 "another version of hal_preempt.h: its mark is hal_preempt_2_work"},
		{{"work:m8p", "iota:m4"},
		 "hal_preempt_1_work",
		 "hal_preempt_x_work",
		 -EINVAL,
		 "kernel work has more arguments than the 2"},
		{{"work:m8", "iota:m4p"},
		 "hal_preempt_1_iota",
		 "hal_preempt_1_work",
		 -EINVAL,
		 "kernel work is marked as built with hal_preempt.h, but lacks its "
		 "argument"},
		{{"work:m8p", "iota:m4"},
		 ".size\x30",
		 ".size\x28",
		 -EINVAL,
		 "argument 2 has 40 bytes instead of 48"},
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

#if OF_HSA
static uint64_t begun;

static uint64_t so_far(const struct hsa_queue *queue)
{
	(void)queue;
	return begun;
}

/* Of those that are to go on there is no room for all: what is not given fails, and what
 * ended before it was stopped has ended. */
static void no_room(void **state)
{
	const struct hal_backend *b = rig_face.backend;
	struct hal_bk_event ev;
	struct hal_bk_cmd cmd;
	struct rocm_aql *a;
	uint64_t (*const real)(const struct hsa_queue *) =
		hsa.hsa_queue_load_read_index_scacquire;
	int status[2];
	uint32_t room, n;
	struct rig r;

	(void)state;
	for (room = 0; room < 3; room++) {
		rig_begin(&r, RIG_PLAIN);
		rig_zero(&r);
		a = ((struct rocm_queue *)r.queue)->aql;
		assert_int_equal(rig_launch(&r, r.work, RIG_BLOCK_NS, RIG_BLOCKS, &cmd),
				 0);
		assert_int_equal(rig_launch(&r, r.iota, 5, RIG_BLOCKS, &cmd), 0);
		assert_int_equal(rig_run_for(&r, 3 * RIG_BLOCK_NS), 0);
		assert_int_equal(rig_stop(&r, NULL), 0);
		/* As if the device had not come so far. */
		begun = a->read = a->written - ROCM_RING_PACKETS + room;
		hsa.hsa_queue_load_read_index_scacquire = so_far;
		assert_int_equal(b->hot.resume(r.dev, r.queue), 0);
		hsa.hsa_queue_load_read_index_scacquire = real;
		for (n = 0; n < 2; n++) {
			assert_int_equal(b->hot.poll(r.dev, UINT64_MAX, &ev, 1), 1);
			status[n] = ev.status;
		}
		assert_int_equal(status[0], -EIO);
		assert_int_equal(status[1], -ECANCELED);
		assert_int_equal(rig_word(&r, 1), 0);
		assert_int_equal(b->hot.submit(r.dev, r.queue, &cmd), -EIO);
		rig_end(&r);
	}
}

/* KILL at any time of launches that can be stopped, some of which go on from a list; they
 * are given again then, stop, and go on. */
static void killed(void **state)
{
	const struct hal_backend *b = rig_face.backend;
	struct hal_bk_cmd cmd[2];
	struct hal_bk_event ev;
	uint32_t after, i, k, ended, given = 0;
	struct rig r;

	(void)state;
	for (after = 0; after < 60000; after += 2900) {
		rig_begin(&r, RIG_PLAIN);
		rig_zero(&r);
		assert_int_equal(rig_launch(&r, r.iota, 1000, RIG_BLOCKS, &cmd[0]), 0);
		assert_int_equal(rig_launch(&r, r.iota, 5000, RIG_BLOCKS, &cmd[1]), 0);
		ended = rig_run_for(&r, after);
		for (k = 0; k < 2; k++) {
			assert_int_equal(
				b->hot.suspend(r.dev, r.queue, HAL_SUSPEND_KILL, 78), 0);
			for (i = ended;; i++) {
				assert_int_equal(b->hot.poll(r.dev, 0, &ev, 1), 1);
				if (ev.kind == HAL_BK_QUIET)
					break;
				assert_int_equal(ev.cookie, cmd[i].cookie);
				ended += ev.status == 0;
			}
			assert_int_equal(i, 2);
			assert_int_equal(b->hot.resume(r.dev, r.queue), 0);
			for (i = ended; i < 2; i++, given++)
				assert_int_equal(b->hot.submit(r.dev, r.queue, &cmd[i]),
						 0);
			ended += rig_run_for(&r, 3000);
			ended += rig_stop(&r, NULL);
			assert_int_equal(b->hot.resume(r.dev, r.queue), 0);
			ended += rig_run_for(&r, 1500);
		}
		ended += rig_finish(&r);
		assert_int_equal(ended, 2);
		for (i = 0; i < RIG_BLOCKS; i += 7)
			assert_int_equal(rig_word(&r, i), 5000 + i);
		rig_end(&r);
	}
	assert_true(given > 20);
}
#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		STOP_CASES,
		cmocka_unit_test(not_stopped),
		cmocka_unit_test(lies),
		cmocka_unit_test(first_refused),
#if OF_HSA
		cmocka_unit_test(no_room),
		cmocka_unit_test(killed),
#endif
		cmocka_unit_test(marked)
	};

	rig_face.backend = hal_backend_rocm(&host);
	return cmocka_run_group_tests(tests, NULL, NULL);
}

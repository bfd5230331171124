/* SPDX-License-Identifier: Apache-2.0 */
/* The cases of tests/gpu/test_defects.c, and those of CUDA's graphs and flags. */
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

#include "backends/cuda/internal.h"
#include "tests/gpu/defects.h"

#define OUT_OF_MEMORY 2u
#define MS            UINT64_C(1000000)

static const struct hal_bk_config
	plain = {.clock = 1},
	stops = {.clock = 1, .preempt = 1}, hangs = {.clock = 1, .hang_ms = 5},
	hangs_long = {.clock = 1, .preempt = 1, .hang_ms = 20},
	many = {.clock = 1, .inflight = 64},
	masked = {.clock = 1, .preempt = 1, .partitions = CU_WAY_MASK},
	streams = {.clock = 1, .preempt = 1, .partitions = CU_WAY_STREAM}, real = {0},
	graphs = {.clock = 1, .graphs = 1, .hang_ms = 5};

static void lose(void *device, uint32_t result)
{
	((struct cu_device *)device)->base.lost = result;
}

static void age(void *queue, uint32_t by)
{
	struct cu_queue *q = queue;

	q->base.given += by;
	q->base.marked = q->base.given;
	__atomic_store_n((uint32_t *)q->word.memory, q->base.given, __ATOMIC_RELEASE);
}

struct rig_face rig_face = {
	.device = 1,
	.units = 46,
	.kernels = {"work:m8", "iota:m4"},
	.stand_in = stand_in,
	.image = make_cuda_image,
	.lose = lose,
};

struct defects_face defects_face = {
	.how = {&plain, &stops, &hangs, &hangs_long, &many, &masked, &streams, &real},
	.write = "cuStreamWriteValue32_v2",
	.query = "cuStreamQuery",
	.again = "cuStreamWriteValue32_v2",
	.again_nth = 3, /* two clear how many blocks were stopped */
	.launch = "cuLaunchKernel",
	.elapsed = "cuEventElapsedTime",
	.synchronize = "cuStreamSynchronize",
	.destroy = "cuStreamDestroy_v2",
	.advance = "halStandInCudaAdvance",
	.drive = "halStandInCudaDrive",
	.passing = {46, 201, 4, 805},
	.channel_queues = 24,
	.age = age,
};

/* A recorded command of a broken flush is not given: its number is never written.  All is
 * given back all the same when the stream is empty. */
static void freed_after_a_lost_flush(void **state)
{
	const struct hal_backend *b = rig_face.backend;
	struct hal_bk_arg args[2] = {{.bytes = 64}, {.value = 1000}};
	struct hal_bk_cmd cmd = {.op = HAL_OP_LAUNCH,
				 .flags = HAL_BK_CMD_RECORDED | HAL_BK_CMD_LAST,
				 .cookie = 7,
				 .launch = {.args = args, .arg_count = 2}};
	struct hal_bk_event ev;
	struct rig r;

	(void)state;
	defects_face.how[HOW_HANGS] = &graphs;
	defect_begin(&r, HOW_HANGS);
	defects_face.how[HOW_HANGS] = &hangs;
	assert_int_equal(defect_work(&r, r.queue, 9 * MS, 1), 0);
	args[0].mem = r.mem;
	cmd.launch.kernel = r.work;
	cmd.launch.groups[0] = cmd.launch.groups[1] = cmd.launch.groups[2] = 1;
	stand_in()->break_call("cuLaunchKernel", 1, OUT_OF_MEMORY);
	assert_int_equal(b->hot.submit(r.dev, r.queue, &cmd), 0);
	assert_int_equal(stand_in()->armed(), 0);
	assert_true(defect_event(&r, b->hot.now(r.dev) + 8 * MS, HAL_BK_DONE, &ev));
	assert_int_equal(ev.status, -EIO);
	assert_int_equal(b->hot.poll(r.dev, 0, &ev, 1), 1);
	assert_int_equal(ev.status, -ECANCELED);
	defect_freed(&r, 20 * MS);
	defect_end(&r);
}

/* A flag is not raised, and its launch hangs: the same. */
static void freed_after_a_lost_flag(void **state)
{
	const struct hal_backend *b = rig_face.backend;
	struct hal_bk_event ev;
	struct rig r;

	(void)state;
	defect_begin(&r, HOW_LONG);
	assert_int_equal(defect_work(&r, r.queue, 15 * MS, 3 * rig_face.units), 0);
	assert_int_equal(rig_run_for(&r, 1 * MS), 0);
	stand_in()->break_call("cuStreamWriteValue32_v2", 1, OUT_OF_MEMORY);
	assert_int_equal(b->hot.suspend(r.dev, r.queue, HAL_SUSPEND_FOLD, 77), 0);
	assert_true(defect_event(&r, b->hot.now(r.dev) + 25 * MS, HAL_BK_DONE, &ev));
	assert_int_equal(ev.status, -EIO);
	assert_int_equal(b->hot.poll(r.dev, 0, &ev, 1), 1);
	assert_int_equal(ev.kind, HAL_BK_QUIET);
	defect_freed(&r, 60 * MS);
	defect_end(&r);
}

/* The last number of a raise is not written, and the queue ends by that: to destroy it
 * needs no wait for the stream by which the flags of all queues are raised. */
static void destroy_waits_for_no_flags(void **state)
{
	const struct gpu_stand_in *s = stand_in();
	const struct hal_backend *b = rig_face.backend;
	const char *text = "";
	struct hal_bk_event ev;
	void *neighbour;
	struct rig r;

	(void)state;
	defect_begin(&r, HOW_STOPS);
	neighbour = defect_queue(&r);
	defect_stop_beside(&r, neighbour);
	s->break_call("cuStreamWriteValue32_v2", 2, OUT_OF_MEMORY);
	assert_int_equal(b->hot.suspend(r.dev, r.queue, HAL_SUSPEND_FOLD, 77), 0);
	assert_int_equal(s->armed(), 0);
	assert_true(defect_event(&r, b->hot.now(r.dev) + 20 * MS, HAL_BK_DONE, &ev));
	assert_int_equal(ev.status, -EIO);
	assert_int_equal(b->hot.poll(r.dev, 0, &ev, 1), 1);
	assert_int_equal(ev.kind, HAL_BK_QUIET);
	s->hot(1);
	assert_int_equal(b->cold.queue_destroy(r.dev, r.queue), 0);
	s->hot(0);
	if (s->misuse(&text))
		fail_msg("misuse: %s", text);
	r.queue = neighbour;
	assert_int_equal(rig_finish(&r), 1);
	defect_end(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		DEFECT(fold_after_2_31_values),
		DEFECT(destroy_after_2_31_values),
		DEFECT(masked_fill),
		DEFECT(masked_copy),
		DEFECT(masked_timestamp),
		DEFECT(masked_control),
		DEFECT(masked_fill_by_engines),
		DEFECT(fold_of_first_launch),
		DEFECT(lowering_needs_no_unit),
		DEFECT(raising_waits_for_no_lowering),
		DEFECT(query_errors_end_a_wait),
		DEFECT(one_query_error_is_forgiven),
		DEFECT(no_call_waits_for_a_channel),
		DEFECT(timestamp_needs_no_unit),
		DEFECT(first_fault_is_kept),
		DEFECT(hang_keeps_first_fault),
		DEFECT(loss_is_no_hang),
		DEFECT(elapsed_calls_are_linear),
		DEFECT(each_queue_is_asked),
		DEFECT(asked_though_others_complete),
		DEFECT(freed_after_a_lost_number),
		DEFECT(freed_after_a_lost_resume),
		DEFECT(freed_after_a_lost_flush),
		DEFECT(freed_after_a_lost_flag),
		DEFECT(destroy_waits_for_no_stream),
		DEFECT(destroy_waits_for_no_flags),
	};

	rig_face.backend = hal_backend_cuda(&host);
	return cmocka_run_group_tests(tests, NULL, NULL);
}

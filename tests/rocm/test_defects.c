/* SPDX-License-Identifier: Apache-2.0 */
/* The cases of tests/gpu/test_defects.c.  Built with OF_HSA 1: those that HSA queues can
 * have, and one of their own. */
#define _GNU_SOURCE
#include "host.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "backends/rocm/internal.h"
#include "tests/gpu/defects.h"

#define MS UINT64_C(1000000)

#define HOW                                                                              \
	.partitions = OF_HSA ? ROCM_ENGINES : 0,                                         \
	.queues = OF_HSA ? ROCM_QUEUES_HSA : ROCM_QUEUES_STREAM
static const struct hal_bk_config plain = {HOW, .clock = 1},
				  stops = {HOW, .clock = 1, .preempt = 1},
				  hangs = {HOW, .clock = 1, .hang_ms = 5},
				  hangs_long = {HOW, .clock = 1, .preempt = 1,
						.hang_ms = 20},
				  many = {HOW, .clock = 1, .inflight = 64},
				  masked = {.clock = 1,
					    .preempt = 1,
					    .partitions = ROCM_CUS,
					    .queues = OF_HSA ? ROCM_QUEUES_HSA
							     : ROCM_QUEUES_STREAM},
				  real = {HOW};

static void lose(void *device, uint32_t result)
{
	((struct rocm_device *)device)->base.lost = result;
}

struct rig_face rig_face = {
	.units = 60,
#if OF_HSA
	.has = {15},
#endif
	.kernels = {"work:m8p", "iota:m4p"},
	.stand_in = stand_in,
	.image = make_rocm_image,
	.lose = lose,
};

#if !OF_HSA
static void age(void *queue, uint32_t by)
{
	struct rocm_queue *q = queue;

	q->base.given += by;
	q->base.marked = q->base.given;
	__atomic_store_n(q->word, q->base.given, __ATOMIC_RELEASE);
}
#endif

struct defects_face defects_face = {
	.how = {&plain, &stops, &hangs, &hangs_long, &many, &masked, NULL, &real},
	.write = "hipStreamWriteValue32",
	.query = "hipStreamQuery",
	.again = "hipStreamWriteValue32",
	.again_nth = 1,
	.launch = "hipModuleLaunchKernel",
	.synchronize = "hipStreamSynchronize",
#if OF_HSA
	.elapsed = "hsa_amd_profiling_get_dispatch_time",
	.destroy = "hsa_queue_destroy",
#else
	.elapsed = "hipEventElapsedTime",
	.destroy = "hipStreamDestroy",
	.age = age,
#endif
	.advance = "halStandInHipAdvance",
	.drive = "halStandInHipDrive",
	.passing = {201, 4, 400},
	.channel_queues = 100,
};

#if OF_HSA
/* HSA refuses once to end a queue that hangs.  All is given back when the queue's launch
 * has ended. */
static void freed_after_a_lost_end(void **state)
{
	const struct hal_backend *b = rig_face.backend;
	struct hal_bk_event ev;
	struct rig r;

	(void)state;
	defect_begin(&r, HOW_HANGS);
	assert_int_equal(stand_in()->break_call("hsa_queue_inactivate", 1, 0x1000), 0);
	assert_int_equal(defect_work(&r, r.queue, 9 * MS, 1), 0);
	assert_true(defect_event(&r, b->hot.now(r.dev) + 8 * MS, HAL_BK_DONE, &ev));
	assert_int_equal(ev.status, -EIO);
	assert_int_equal(stand_in()->armed(), 0);
	defect_freed(&r, 20 * MS);
	defect_end(&r);
}
#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		DEFECT(masked_fill),
		DEFECT(masked_copy),
		DEFECT(masked_timestamp),
		DEFECT(masked_control),
		DEFECT(masked_fill_by_engines),
		DEFECT(fold_of_first_launch),
		DEFECT(lowering_needs_no_unit),
		DEFECT(raising_waits_for_no_lowering),
		DEFECT(elapsed_calls_are_linear),
#if OF_HSA
		DEFECT(freed_after_a_lost_end),
#else
		DEFECT(fold_after_2_31_values),
		DEFECT(destroy_after_2_31_values),
		DEFECT(query_errors_end_a_wait),
		DEFECT(one_query_error_is_forgiven),
		DEFECT(no_call_waits_for_a_channel),
		DEFECT(timestamp_needs_no_unit),
		DEFECT(first_fault_is_kept),
		DEFECT(hang_keeps_first_fault),
		DEFECT(loss_is_no_hang),
		DEFECT(each_queue_is_asked),
		DEFECT(asked_though_others_complete),
		DEFECT(freed_after_a_lost_number),
		DEFECT(freed_after_a_lost_resume),
		DEFECT(destroy_waits_for_no_stream),
#endif
	};

	rig_face.backend = hal_backend_rocm(&host);
	return cmocka_run_group_tests(tests, NULL, NULL);
}

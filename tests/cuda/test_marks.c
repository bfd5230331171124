/* SPDX-License-Identifier: Apache-2.0 */
/* Launches that are marked together: the cases of tests/gpu, and FOLD of such launches.
 */
#define _GNU_SOURCE
#include "host.h"

#include <dlfcn.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <hal/cuda.h>

#include "backends/cuda/internal.h"

enum { KERNELS = 3, WORK = 0, WILD, NEVER };
static const char *const names[KERNELS] = {"work:m8", "wild:m", "never:m"};
static const struct hal_backend *b;

static void age(void *queue, uint32_t by)
{
	struct cu_queue *q = queue;

	q->base.given += by;
	q->base.marked = q->base.given;
	__atomic_store_n((uint32_t *)q->word.memory, q->base.given, __ATOMIC_RELEASE);
}

#define MAKE_IMAGE   make_cuda_image
#define CALL_WRITE   "cuStreamWriteValue32_v2"
#define CALL_QUERY   "cuStreamQuery"
#define CALL_RECORD  "cuEventRecord"
#define CALL_ELAPSED "cuEventElapsedTime"
#define LIBRARY      "libcuda.so.1"
#define ADVANCE      "halStandInCudaAdvance"
#define AGE          age
#define SAYS_FAULT   "CUDA_ERROR_ILLEGAL_ADDRESS (700)"
#include "tests/gpu/mark_cases.h"

/* Six launches that can be stopped, of which no mark tells the first from the last: FOLD
 * knows which of them have ended, keeps the rest, and each block runs once. */
static void fold(void **state)
{
	enum { COUNT = 6, BLOCKS = 132 * 4, BLOCK_NS = 10000 };
	const struct hal_bk_config cfg = {.clock = 1, .inflight = DEEP, .preempt = 1};
	struct hal_bk_event ev[16];
	struct hal_bk_arg args[2];
	uint32_t seen, after, i, zero = 0, got;
	struct hal_bk_cmd cmd;
	struct rig r;

	(void)state;
	for (after = 0; after < 16; after++) {
		open_deep(&r, &cfg);
		assert_int_equal(b->cold.mem_write(r.dev, r.mem, 0, &zero, 4), 0);
		args[0] = (struct hal_bk_arg){r.mem, 0, 64};
		args[1] = (struct hal_bk_arg){NULL, BLOCK_NS, 0};
		for (i = 0; i < COUNT; i++) {
			cmd = launch(&r, WORK, i, args, 2);
			cmd.launch.groups[0] = BLOCKS;
			assert_int_equal(b->hot.submit(r.dev, r.queue[0], &cmd), 0);
		}
		seen = (uint32_t)b->hot.poll(
			r.dev, b->hot.now(r.dev) + after * UINT64_C(18000), ev, 16);
		assert_int_equal(b->hot.suspend(r.dev, r.queue[0], HAL_SUSPEND_FOLD, 77),
				 0);
		do {
			poll_one(&r, ev);
			if (ev[0].kind == HAL_BK_DONE)
				assert_int_equal(ev[0].cookie, seen++);
		} while (ev[0].kind != HAL_BK_QUIET);
		assert_true(seen < COUNT || after >= 14);
		assert_int_equal(b->cold.mem_read(r.dev, r.mem, 0, &got, 4), 0);
		assert_in_range(got, seen * BLOCKS, (seen + 1) * BLOCKS - (seen < COUNT));
		assert_int_equal(b->hot.resume(r.dev, r.queue[0]), 0);
		for (; seen < COUNT; seen++) {
			poll_one(&r, ev);
			assert_int_equal(ev[0].cookie, seen);
			assert_int_equal(ev[0].status, 0);
		}
		assert_int_equal(b->cold.mem_read(r.dev, r.mem, 0, &got, 4), 0);
		assert_int_equal(got, COUNT * BLOCKS);
		close_rig(&r);
	}
}

/* A resize marks what runs where the partition was: later launches, which share no unit
 * with it, do not put off its end. */
static void resize_marks(void **state)
{
	const struct hal_bk_config cfg = {
		.clock = 1, .inflight = DEEP, .partitions = CU_WAY_MASK};
	const struct hal_bk_partition_desc there = {
		.col = 5, .units = 1, .rows = 1, .cols = 1};
	struct hal_bk_event ev[8];
	uint64_t writes;
	struct rig r;

	(void)state;
	open_deep(&r, &cfg);
	submit_many(&r, 1, 3, 1000);
	writes = calls_of(CALL_WRITE);
	assert_int_equal(b->hot.resize(r.dev, r.part, &there, 77), 0);
	assert_int_equal(calls_of(CALL_WRITE) - writes, 1);
	submit_many(&r, 4, 3, 1000000);
	assert_int_equal(b->hot.poll(r.dev, UINT64_MAX, ev, 8), 4);
	assert_int_equal(ev[2].cookie, 3);
	assert_int_equal(ev[3].kind, HAL_BK_QUIET);
	assert_int_equal(ev[3].cookie, 77);
	ends(&r, 4, 3, ev);
	close_rig(&r);
}

static int setup(void **state)
{
	(void)state;
	b = hal_backend_cuda(&host);
	return b && stand_in() ? 0 : -1;
}

int main(void)
{
	const struct CMUnitTest tests[] = {MARK_CASES, cmocka_unit_test(fold),
					   /* From here on the process has masks. */
					   cmocka_unit_test(resize_marks)};

	return cmocka_run_group_tests(tests, setup, NULL);
}

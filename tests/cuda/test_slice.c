/* SPDX-License-Identifier: Apache-2.0 */
/* slice_us: launches of best effort in pieces.  What other work waits, what a launch
 * costs, and that nothing else is another: the cases of preempt=block in tests/gpu are
 * those of launches that are cut. */
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
#include <hal/gpu.h>

#include "backends/cuda/internal.h"
#include "tests/gpu/rig.h"

#define UNITS    46u
#define SLICE_NS 50000u
#define LONG     92000u /* blocks: 20 ms of 10 us each */
#define PER      4u     /* waves of 10 us in a slice; a launch takes a little, too */

static const struct hal_bk_config
	sliced = {.clock = 1, .preempt = 1, .slice_us = 50},
	hangs = {.clock = 1, .preempt = 1, .slice_us = 50, .hang_ms = 3},
	masks = {.clock = 1, .preempt = 1, .slice_us = 50, .partitions = CU_WAY_MASK},
	whole = {.clock = 1, .preempt = 1};

static void lose(void *device, uint32_t result)
{
	((struct cu_device *)device)->base.lost = result;
}

struct rig_face rig_face = {
	.how = {&sliced, &hangs, &masks, &whole},
	.device = 1,
	.units = UNITS,
	.kernels = {"work:m8", "iota:m4"},
	.flags = HAL_BK_CMD_BEST_EFFORT,
	.calls = {"cuStreamWriteValue32_v2", "cuLaunchKernel"},
	.stand_in = stand_in,
	.image = make_cuda_image,
	.lose = lose,
};
/* The rig's name for the last one. */
#define RIG_WHOLE RIG_BETWEEN

static const struct hal_backend *b;

/* Run until a command has ended; return it. */
static uint64_t next_end(struct rig *r)
{
	struct hal_bk_event ev;

	assert_int_equal(b->hot.poll(r->dev, UINT64_MAX, &ev, 1), 1);
	assert_int_equal(ev.kind, HAL_BK_DONE);
	assert_int_equal(ev.status, 0);
	return ev.cookie;
}

/* Let the backend learn how long blocks take. */
static void learn(struct rig *r, uint64_t block_ns)
{
	struct hal_bk_cmd cmd;

	assert_int_equal(rig_launch(r, r->work, block_ns, 4 * UNITS, &cmd), 0);
	assert_int_equal(rig_finish(r), 1);
	rig_zero(r);
}

/* ---- what other work waits ---------------------------------------------------------- */

/* Return how long a launch of one block of 20 us takes, of a queue of the same priority,
 * that comes after_ns behind one of best effort. */
static uint64_t short_launch(enum rig_how how, uint64_t after_ns, uint64_t *all_ns)
{
	struct hal_bk_arg args[2] = {{.bytes = 64}, {.value = 20000}};
	struct hal_bk_cmd cmd, urgent = {.op = HAL_OP_LAUNCH, .cookie = 99};
	void *queue, *mem;
	uint64_t at, took;
	struct rig r;

	rig_begin(&r, how);
	learn(&r, RIG_BLOCK_NS);
	assert_int_equal(b->cold.queue_create(r.dev, r.part, 0, &queue), 0);
	assert_int_equal(b->cold.mem_alloc(r.dev, r.part, 64, NULL, 0, &mem), 0);
	args[0].mem = mem;
	urgent.launch.kernel = r.work;
	urgent.launch.args = args;
	urgent.launch.arg_count = 2;
	urgent.launch.groups[0] = urgent.launch.groups[1] = urgent.launch.groups[2] = 1;
	at = b->hot.now(r.dev);
	assert_int_equal(rig_launch(&r, r.work, RIG_BLOCK_NS, LONG, &cmd), 0);
	assert_int_equal(rig_run_for(&r, after_ns), 0);
	took = b->hot.now(r.dev);
	assert_int_equal(b->hot.submit(r.dev, queue, &urgent), 0);
	if (next_end(&r) == 99) {
		took = b->hot.now(r.dev) - took;
		assert_int_equal(next_end(&r), cmd.cookie);
	} else {
		assert_int_equal(next_end(&r), 99);
		took = b->hot.now(r.dev) - took;
	}
	*all_ns = b->hot.now(r.dev) - at;
	assert_int_equal(rig_word(&r, 0), LONG);
	assert_int_equal(b->cold.queue_destroy(r.dev, queue), 0);
	assert_int_equal(b->cold.mem_free(r.dev, mem), 0);
	rig_end(&r);
	return took;
}

/* It waits for two slices at most, at any time; without slices for all of the launch. */
static void waits_for_slices(void **state)
{
	uint64_t worst = 0, took, all = 0, plain;
	uint32_t after;

	(void)state;
	for (after = 30000; after < 1000000; after += 71700) {
		took = short_launch(RIG_PLAIN, after, &all);
		worst = took > worst ? took : worst;
	}
	assert_in_range(worst, 20000, 20000 + 2 * SLICE_NS);
	printf("figure cuda.slice.wait_us %.1f\n", (double)worst / 1e3);
	took = short_launch(RIG_WHOLE, 500000, &plain);
	assert_true(took > 15000000);
	printf("figure cuda.slice.wait_us.whole %.1f\n", (double)took / 1e3);
	printf("figure cuda.slice.more_share %.3f\n", (double)all / (double)plain - 1);
	/* What the slices take more: the time of a launch between two of them. */
	assert_in_range(all, plain, plain + plain / 4);
}

/* ---- what they are ------------------------------------------------------------------ */

static uint64_t calls(const char *name)
{
	return stand_in()->calls(name);
}

/* Calls of the driver, and where each block is in the grid. */
static void counted(void **state)
{
	enum { WAVES = 40, BLOCKS = WAVES * UNITS };
	struct hal_gpu_slices s = {.size = sizeof(s)};
	const struct hal_gpu_extension *ext;
	uint64_t launches, writes, events, all;
	struct hal_bk_cmd cmd;
	struct rig r;

	(void)state;
	rig_begin(&r, RIG_PLAIN);
	learn(&r, RIG_BLOCK_NS);
	launches = calls("cuLaunchKernel");
	writes = calls("cuStreamWriteValue32_v2");
	events = calls("cuEventRecord");
	all = calls(NULL) - calls("cuStreamQuery");
	assert_int_equal(rig_launch(&r, r.work, RIG_BLOCK_NS, BLOCKS, &cmd), 0);
	assert_int_equal(calls("cuLaunchKernel") - launches, CU_SLICES);
	assert_int_equal(rig_finish(&r), 1);
	/* Four waves in each: a launch takes a little time itself. */
	assert_int_equal(calls("cuLaunchKernel") - launches, WAVES / PER);
	assert_int_equal(calls("cuStreamWriteValue32_v2") - writes, WAVES / PER);
	assert_int_equal(calls("cuEventRecord") - events, 0);
	all = calls(NULL) - calls("cuStreamQuery") - all;
	assert_int_equal(all, 2 * WAVES / PER);
	printf("figure cuda.slice.driver_calls %.2f\n", (double)all * PER / WAVES);
	assert_int_equal(rig_word(&r, 0), BLOCKS);
	ext = b->cold.extension(r.dev, "gpu");
	assert_int_equal(ext->slices(r.dev, "work", &s), 0);
	assert_int_equal(s.launches, 2);
	assert_int_equal(s.slices, WAVES / PER + 3); /* the latter while it learned */
	assert_int_equal(s.calls, 2 * s.slices + 4); /* two were measured */
	assert_in_range(s.block_ns, RIG_BLOCK_NS, RIG_BLOCK_NS + 5000);
	assert_int_equal(ext->slices(r.dev, "nobody", &s), -ENOENT);
	s.size--;
	assert_int_equal(ext->slices(r.dev, "work", &s), -EINVAL);
	/* One slice, or less, is a launch as it was. */
	launches = calls("cuLaunchKernel");
	assert_int_equal(rig_launch(&r, r.work, RIG_BLOCK_NS, PER * UNITS, &cmd), 0);
	assert_int_equal(rig_finish(&r), 1);
	assert_int_equal(calls("cuLaunchKernel") - launches, 1);
	/* Nor is a launch cut that is none of best effort. */
	cmd.flags = 0;
	cmd.launch.groups[0] = BLOCKS;
	assert_int_equal(b->hot.submit(r.dev, r.queue, &cmd), 0);
	assert_int_equal(rig_finish(&r), 1);
	assert_int_equal(calls("cuLaunchKernel") - launches, 2);
	rig_end(&r);
}

/* Blocks become longer: no more than two slices are too long. */
static void learns_anew(void **state)
{
	struct hal_bk_cmd cmd;
	uint64_t launches;
	struct rig r;

	(void)state;
	rig_begin(&r, RIG_PLAIN);
	learn(&r, 1000);
	launches = calls("cuLaunchKernel");
	assert_int_equal(rig_launch(&r, r.work, 100000, 200 * UNITS, &cmd), 0);
	assert_int_equal(rig_finish(&r), 1);
	launches = calls("cuLaunchKernel") - launches;
	/* Slices of a wave, but for the first three, of up to 49. */
	assert_in_range(launches, 200 - 3 * 49, 200);
	assert_int_equal(rig_word(&r, 0), 200 * UNITS);
	rig_end(&r);
}

/* The device has two slices of a queue, also where the next launch begins. */
static void two_at_a_time(void **state)
{
	uint64_t launches, ended = 0, i;
	struct hal_bk_cmd cmd;
	struct hal_bk_event ev;
	struct rig r;

	(void)state;
	rig_begin(&r, RIG_PLAIN);
	learn(&r, RIG_BLOCK_NS);
	launches = calls("cuLaunchKernel");
	for (i = 0; i < 4; i++)
		assert_int_equal(
			rig_launch(&r, r.work, RIG_BLOCK_NS, 2 * PER * UNITS, &cmd), 0);
	assert_int_equal(calls("cuLaunchKernel") - launches, 2);
	for (i = 0; i < 4; i++) {
		assert_int_equal(b->hot.poll(r.dev, UINT64_MAX, &ev, 1), 1);
		ended += 2;
		assert_in_range(calls("cuLaunchKernel") - launches - ended, 0, 2);
	}
	assert_int_equal(calls("cuLaunchKernel") - launches, 8);
	assert_int_equal(rig_word(&r, 0), 8 * PER * UNITS);
	rig_end(&r);
}

/* Launches behind one that is cut go in order, cut or not. */
static void in_order(void **state)
{
	struct hal_bk_cmd cmd[4];
	struct rig r;
	uint32_t i;

	(void)state;
	rig_begin(&r, RIG_PLAIN);
	learn(&r, RIG_BLOCK_NS);
	assert_int_equal(rig_launch(&r, r.work, RIG_BLOCK_NS, 30 * UNITS, &cmd[0]), 0);
	assert_int_equal(rig_launch(&r, r.iota, 1000, RIG_BLOCKS, &cmd[1]), 0);
	assert_int_equal(rig_launch(&r, r.iota, 2000, UNITS, &cmd[2]), 0);
	assert_int_equal(rig_launch(&r, r.work, RIG_BLOCK_NS, 30 * UNITS, &cmd[3]), 0);
	for (i = 0; i < 4; i++)
		assert_int_equal(next_end(&r), cmd[i].cookie);
	assert_int_equal(rig_word(&r, 0), 2000 + 30 * UNITS);
	for (i = 1; i < RIG_BLOCKS; i++)
		assert_int_equal(rig_word(&r, i), (i < UNITS ? 2000 : 1000) + i);
	/* What cannot be launched is refused at once, also behind one that is cut. */
	assert_int_equal(rig_launch(&r, r.work, RIG_BLOCK_NS, 30 * UNITS, &cmd[0]), 0);
	cmd[1].launch.arg_count = 2;
	((struct hal_bk_arg *)cmd[1].launch.args)[1].value = UINT64_C(1) << 40;
	assert_int_equal(b->hot.submit(r.dev, r.queue, &cmd[1]), -EINVAL);
	assert_int_equal(rig_finish(&r), 1);
	rig_end(&r);
}

/* ---- stops -------------------------------------------------------------------------- */

/* FOLD makes no call where slices are all that runs, and the rest is what is left. */
static void folds_between(void **state)
{
	struct hal_bk_event quiet;
	struct hal_bk_cmd cmd[2];
	uint64_t at, before;
	uint32_t some;
	struct rig r;

	(void)state;
	rig_begin(&r, RIG_PLAIN);
	learn(&r, RIG_BLOCK_NS);
	assert_int_equal(rig_launch(&r, r.work, RIG_BLOCK_NS, LONG, &cmd[0]), 0);
	assert_int_equal(rig_launch(&r, r.work, RIG_BLOCK_NS, LONG, &cmd[1]), 0);
	assert_int_equal(rig_run_for(&r, 1000000), 0);
	at = b->hot.now(r.dev);
	before = calls(NULL) - calls("cuStreamQuery");
	assert_int_equal(rig_stop(&r, &quiet), 0);
	assert_int_equal(calls(NULL) - calls("cuStreamQuery"), before);
	assert_true(b->hot.now(r.dev) - at <= 2 * SLICE_NS + 20000);
	some = rig_word(&r, 0);
	assert_true(some > 0 && some % (PER * UNITS) == 0);
	assert_int_equal(rig_run_for(&r, 1000000), 0);
	assert_int_equal(rig_word(&r, 0), some);
	assert_int_equal(b->hot.resume(r.dev, r.queue), 0);
	assert_int_equal(rig_finish(&r), 2);
	assert_int_equal(rig_word(&r, 0), 2 * LONG);
	rig_end(&r);
}

/* Blocks that are longer than a slice: flags stop them, and what they stop is in lists
 * that are run in slices, too, and may be stopped in the middle. */
static void folds_long_blocks(void **state)
{
	uint32_t done, i, stops = 0;
	uint64_t after;
	struct hal_bk_cmd cmd;
	struct rig r;

	(void)state;
	rig_begin(&r, RIG_PLAIN);
	for (after = 0; after < 1500000; after += 93000) {
		rig_zero(&r);
		assert_int_equal(rig_launch(&r, r.work, 100000, RIG_BLOCKS, &cmd), 0);
		done = rig_run_for(&r, after);
		for (i = 0; i < 9 && !done; i++) {
			done += rig_stop(&r, NULL);
			stops++;
			assert_int_equal(b->hot.resume(r.dev, r.queue), 0);
			done += rig_run_for(&r, 30000 + after / 9);
		}
		done += rig_finish(&r);
		assert_int_equal(done, 1);
		assert_int_equal(rig_word(&r, 0), RIG_BLOCKS);
	}
	assert_true(stops > 20);
	rig_end(&r);
}

/* A list that is longer than a slice: of a launch that was not cut when it was stopped,
 * and is when it goes on.  It is stopped again in the middle of the list. */
static void cuts_a_list(void **state)
{
	struct hal_bk_cmd cmd;
	uint32_t done = 0, i, stops = 0, j;
	uint64_t after;
	struct rig r;

	(void)state;
	for (after = 3000; after < 60000; after += 9100) {
		rig_begin(&r, RIG_PLAIN);
		/* Blocks are taken for shorter than they are: one launch. */
		assert_int_equal(rig_launch(&r, r.iota, 0, 2 * UNITS, &cmd), 0);
		assert_int_equal(rig_finish(&r), 1);
		rig_zero(&r);
		assert_int_equal(rig_launch(&r, r.iota, 7, RIG_BLOCKS, &cmd), 0);
		done = rig_run_for(&r, after);
		((struct cu_kernel *)r.iota)->pace.wave_ns = 100000;
		for (i = 0; i < 20 && !done; i++) {
			done += rig_stop(&r, NULL);
			stops += !done;
			assert_int_equal(b->hot.resume(r.dev, r.queue), 0);
			done += rig_run_for(&r, 5000 + 300 * i);
		}
		done += rig_finish(&r);
		assert_int_equal(done, 1);
		for (j = 0; j < RIG_BLOCKS; j++)
			assert_int_equal(rig_word(&r, j), 7 + j);
		rig_end(&r);
	}
	assert_true(stops > 10);
}

/* DRAIN ends what the queue has, all of it. */
static void drains(void **state)
{
	struct hal_bk_event ev;
	struct hal_bk_cmd cmd[2];
	struct rig r;

	(void)state;
	rig_begin(&r, RIG_PLAIN);
	rig_zero(&r);
	assert_int_equal(rig_launch(&r, r.work, RIG_BLOCK_NS, 30 * UNITS, &cmd[0]), 0);
	assert_int_equal(rig_launch(&r, r.work, RIG_BLOCK_NS, 30 * UNITS, &cmd[1]), 0);
	assert_int_equal(b->hot.suspend(r.dev, r.queue, HAL_SUSPEND_DRAIN, 5), 0);
	assert_int_equal(next_end(&r), cmd[0].cookie);
	assert_int_equal(next_end(&r), cmd[1].cookie);
	assert_int_equal(b->hot.poll(r.dev, UINT64_MAX, &ev, 1), 1);
	assert_int_equal(ev.kind, HAL_BK_QUIET);
	assert_int_equal(rig_word(&r, 0), 60 * UNITS);
	assert_int_equal(b->hot.resume(r.dev, r.queue), 0);
	rig_end(&r);
}

/* The partition moves: slices that follow run where it has gone, with as many blocks as
 * it has multiprocessors for. */
static void moves(void **state)
{
	const struct hal_bk_partition_desc to = {
		.col = 5, .units = 4, .rows = 1, .cols = 4};
	struct gpu_stand_in_job jobs[64];
	struct hal_bk_event ev;
	struct hal_bk_cmd cmd;
	uint32_t n, i, wide = 0;
	struct rig r;

	(void)state;
	rig_begin(&r, RIG_SPLIT);
	learn(&r, RIG_BLOCK_NS);
	while (stand_in()->jobs(jobs, 64) != 0)
		;
	assert_int_equal(rig_launch(&r, r.work, RIG_BLOCK_NS, 200, &cmd), 0);
	assert_int_equal(rig_run_for(&r, 130000), 0);
	assert_int_equal(b->hot.resize(r.dev, r.part, &to, 2), 0);
	assert_int_equal(b->hot.poll(r.dev, UINT64_MAX, &ev, 1), 1);
	assert_int_equal(ev.kind, HAL_BK_DONE);
	assert_int_equal(b->hot.poll(r.dev, UINT64_MAX, &ev, 1), 1);
	assert_int_equal(ev.cookie, 2);
	assert_int_equal(rig_word(&r, 0), 200);
	n = stand_in()->jobs(jobs, 64);
	assert_true(n > 3);
	for (i = 0; i < n; i++)
		wide += __builtin_popcountll(jobs[i].units[0]) == 8;
	assert_true(wide > 0);
	rig_end(&r);
}

/* ---- failures ----------------------------------------------------------------------- */

/* A slice in the middle is refused: the launch fails with the call's name, what follows
 * is cancelled, and what was before has ended well. */
static void refused_slice(void **state)
{
	struct hal_bk_cmd cmd[2];
	struct hal_bk_event ev[4];
	struct rig r;

	(void)state;
	rig_begin(&r, RIG_PLAIN);
	learn(&r, RIG_BLOCK_NS);
	assert_int_equal(rig_launch(&r, r.work, RIG_BLOCK_NS, 40 * UNITS, &cmd[0]), 0);
	assert_int_equal(rig_launch(&r, r.work, RIG_BLOCK_NS, 40 * UNITS, &cmd[1]), 0);
	assert_int_equal(stand_in()->break_call("cuLaunchKernel", 3, CUR_OUT_OF_MEMORY),
			 0);
	assert_int_equal(b->hot.poll(r.dev, UINT64_MAX, ev, 4), 2);
	assert_int_equal(ev[0].status, -EIO);
	if (!strstr(ev[0].fault, "cuLaunchKernel: CUDA_ERROR_OUT_OF_MEMORY (2)"))
		fail_msg("fault is '%s'", ev[0].fault);
	assert_int_equal(ev[1].status, -ECANCELED);
	/* Four slices ran. */
	assert_int_equal(rig_word(&r, 0), 4 * PER * UNITS);
	rig_end(&r);

	/* The first is refused at once, and the queue takes others. */
	rig_begin(&r, RIG_PLAIN);
	learn(&r, RIG_BLOCK_NS);
	assert_int_equal(stand_in()->break_call("cuLaunchKernel", 1, CUR_OUT_OF_MEMORY),
			 0);
	assert_int_equal(rig_launch(&r, r.work, RIG_BLOCK_NS, 40 * UNITS, &cmd[0]),
			 -ENOSPC);
	assert_int_equal(rig_launch(&r, r.work, RIG_BLOCK_NS, 40 * UNITS, &cmd[0]), 0);
	assert_int_equal(rig_finish(&r), 1);
	assert_int_equal(rig_word(&r, 0), 40 * UNITS);
	rig_end(&r);
}

/* An event of a slice that is measured cannot be recorded: before the slice the launch is
 * refused, and behind it the queue fails. */
static void refused_event(void **state)
{
	struct hal_bk_event ev[4];
	struct hal_bk_cmd cmd;
	struct rig r;

	(void)state;
	rig_begin(&r, RIG_PLAIN);
	assert_int_equal(stand_in()->break_call("cuEventRecord", 1, CUR_OUT_OF_MEMORY),
			 0);
	assert_int_equal(rig_launch(&r, r.work, RIG_BLOCK_NS, 4 * UNITS, &cmd), -ENOSPC);
	((struct cu_kernel *)r.work)->seen.until_sample = 0;
	assert_int_equal(stand_in()->break_call("cuEventRecord", 2, CUR_OUT_OF_MEMORY),
			 0);
	assert_int_equal(rig_launch(&r, r.work, RIG_BLOCK_NS, 4 * UNITS, &cmd), 0);
	assert_int_equal(b->hot.poll(r.dev, UINT64_MAX, ev, 4), 1);
	assert_int_equal(ev[0].status, -EIO);
	if (!strstr(ev[0].fault, "cuEventRecord"))
		fail_msg("fault is '%s'", ev[0].fault);
	rig_end(&r);
}

/* hang_ms is of the whole launch; no slice follows one that hangs. */
static void hung(void **state)
{
	struct hal_bk_event ev[4];
	struct hal_bk_cmd cmd;
	struct rig r;

	(void)state;
	rig_begin(&r, RIG_HANGS);
	learn(&r, RIG_BLOCK_NS);
	assert_int_equal(rig_launch(&r, r.work, RIG_BLOCK_NS, LONG, &cmd), 0);
	assert_int_equal(b->hot.poll(r.dev, UINT64_MAX, ev, 4), 1);
	assert_int_equal(ev[0].status, -EIO);
	assert_string_equal(ev[0].fault, "hung for 3 ms, kernel work");
	assert_int_equal(b->cold.queue_destroy(r.dev, r.queue), 0);
	assert_int_equal(rig_run_for(&r, 1000000), 0);
	assert_true(b->hot.next(r.dev) == UINT64_MAX);
	assert_true(rig_word(&r, 0) < 400 * UNITS);
	assert_int_equal(b->cold.queue_create(r.dev, r.part, 0, &r.queue), 0);
	rig_end(&r);
}

/* Numbers of the queue wrap while slices are in flight. */
static void numbers_wrap(void **state)
{
	struct hal_bk_cmd cmd;
	struct cu_queue *q;
	uint32_t i;
	struct rig r;

	(void)state;
	rig_begin(&r, RIG_PLAIN);
	learn(&r, RIG_BLOCK_NS);
	q = r.queue;
	q->base.given = q->base.marked = UINT32_MAX - 9;
	*(uint32_t *)q->word.memory = UINT32_MAX - 9;
	for (i = 0; i < 3; i++) {
		assert_int_equal(rig_launch(&r, r.work, RIG_BLOCK_NS, 40 * UNITS, &cmd),
				 0);
		assert_int_equal(rig_run_for(&r, 100000), 0);
		(void)rig_stop(&r, NULL);
		assert_int_equal(b->hot.resume(r.dev, r.queue), 0);
		assert_int_equal(rig_finish(&r), 1);
	}
	assert_true(q->base.given < 100);
	assert_int_equal(rig_word(&r, 0), 3 * 40 * UNITS);
	rig_end(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(waits_for_slices),
		cmocka_unit_test(counted),
		cmocka_unit_test(learns_anew),
		cmocka_unit_test(two_at_a_time),
		cmocka_unit_test(in_order),
		cmocka_unit_test(folds_between),
		cmocka_unit_test(folds_long_blocks),
		cmocka_unit_test(cuts_a_list),
		cmocka_unit_test(drains),
		cmocka_unit_test(moves),
		cmocka_unit_test(refused_slice),
		cmocka_unit_test(refused_event),
		cmocka_unit_test(hung),
		cmocka_unit_test(numbers_wrap),
		cmocka_unit_test(stop_any_time),
		cmocka_unit_test(stop_in_order),
		cmocka_unit_test(stop_shaped),
		cmocka_unit_test(stop_ends),
		cmocka_unit_test(stop_each_fails),
		cmocka_unit_test(stop_hung),
		cmocka_unit_test(stop_hung_in_fold),
	};

	b = rig_face.backend = hal_backend_cuda(&host);
	return cmocka_run_group_tests(tests, NULL, NULL);
}

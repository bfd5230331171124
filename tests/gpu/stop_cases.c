/* SPDX-License-Identifier: Apache-2.0 */
/*
 * preempt=block: launches stop between their blocks, whenever it is asked and however
 * often, and what comes out is what came out before; nothing runs in front of what was
 * stopped; each call of the driver fails in turn while launches are stopped and go on.
 */
#define _GNU_SOURCE
#include "rig.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Results, as CUDA and HIP both number them. */
#define OUT_OF_MEMORY 2u
#define UNKNOWN       999u

/* ---- stops ------------------------------------------------------------------------- */

void stop_info(void **state)
{
	const struct hal_backend *b = rig_face.backend;
	struct hal_device_info i = {.size = sizeof(i)};
	struct rig r;

	(void)state;
	rig_begin(&r, RIG_PLAIN);
	assert_int_equal(b->cold.get_info(r.dev, &i), 0);
	assert_int_equal(i.preempt, HAL_PREEMPT_INSIDE);
	assert_int_equal(i.suspend_modes, 1u << HAL_SUSPEND_DRAIN |
						  1u << HAL_SUSPEND_FOLD |
						  rig_face.modes);
	rig_end(&r);
}

/* It is quiet after a block, and others run then; the rest is what is left. */
void stop_inside(void **state)
{
	const struct hal_backend *b = rig_face.backend;
	struct hal_bk_event quiet;
	struct hal_bk_cmd cmd;
	struct rig r;
	uint64_t at;
	uint32_t some;

	(void)state;
	rig_begin(&r, RIG_PLAIN);
	rig_zero(&r);
	assert_int_equal(rig_launch(&r, r.work, RIG_BLOCK_NS, RIG_BLOCKS, &cmd), 0);
	assert_int_equal(rig_run_for(&r, 3 * RIG_BLOCK_NS), 0);
	at = b->hot.now(r.dev);
	assert_int_equal(rig_stop(&r, &quiet), 0);
	assert_true(b->hot.now(r.dev) - at < 2 * RIG_BLOCK_NS);
	assert_true(quiet.end_ns - quiet.start_ns > 2 * RIG_BLOCK_NS);
	assert_int_equal(b->hot.next(r.dev), UINT64_MAX);
	some = rig_word(&r, 0);
	assert_in_range(some, 2 * rig_face.units, 6 * rig_face.units);
	assert_int_equal(rig_run_for(&r, 100 * RIG_BLOCK_NS), 0);
	assert_int_equal(rig_word(&r, 0), some);
	assert_int_equal(b->hot.submit(r.dev, r.queue, &cmd), -EAGAIN);
	at = b->hot.now(r.dev);
	assert_int_equal(b->hot.resume(r.dev, r.queue), 0);
	assert_int_equal(rig_finish(&r), 1);
	assert_int_equal(rig_word(&r, 0), RIG_BLOCKS);
	assert_true(b->hot.now(r.dev) - at <
		    (RIG_BLOCKS - some) / rig_face.units * RIG_BLOCK_NS +
			    3 * RIG_BLOCK_NS);
	rig_end(&r);
}

/* Whenever it is asked, again and again; the next launch starts with no flag. */
void stop_any_time(void **state)
{
	const struct hal_backend *b = rig_face.backend;
	struct hal_bk_cmd cmd;
	uint32_t after, done, i;
	struct rig r;

	(void)state;
	rig_begin(&r, RIG_PLAIN);
	for (after = 0; after < 16 * RIG_BLOCK_NS; after += 1700) {
		rig_zero(&r);
		assert_int_equal(rig_launch(&r, r.work, RIG_BLOCK_NS, RIG_BLOCKS, &cmd),
				 0);
		done = rig_run_for(&r, after);
		for (i = 0; i < 3; i++) {
			done += rig_stop(&r, NULL);
			assert_int_equal(b->hot.resume(r.dev, r.queue), 0);
			done += rig_run_for(&r, 100 + after / 7);
		}
		done += rig_finish(&r);
		assert_int_equal(done, 1);
		assert_int_equal(rig_word(&r, 0), RIG_BLOCKS);
		assert_int_equal(rig_launch(&r, r.work, 100, 3, &cmd), 0);
		assert_int_equal(rig_finish(&r), 1);
		assert_int_equal(rig_word(&r, 0), RIG_BLOCKS + 3);
	}
	rig_end(&r);
}

/* Each block is where it was in the grid; what is behind stays behind. */
void stop_in_order(void **state)
{
	const struct hal_backend *b = rig_face.backend;
	struct hal_bk_cmd cmd[3];
	uint32_t after, done, i;
	struct rig r;

	(void)state;
	rig_begin(&r, RIG_PLAIN);
	for (after = 0; after < 90000; after += 1300) {
		rig_zero(&r);
		assert_int_equal(rig_launch(&r, r.iota, 1000, RIG_BLOCKS, &cmd[0]), 0);
		assert_int_equal(rig_launch(&r, r.iota, 5000, RIG_BLOCKS, &cmd[1]), 0);
		assert_int_equal(rig_launch(&r, r.iota, 9000, RIG_BLOCKS / 2, &cmd[2]),
				 0);
		done = rig_run_for(&r, after);
		for (i = 0; i < 4; i++) {
			done += rig_stop(&r, NULL);
			assert_int_equal(b->hot.resume(r.dev, r.queue), 0);
			done += rig_run_for(&r, 3000);
		}
		done += rig_finish(&r);
		assert_int_equal(done, 3);
		for (i = 0; i < RIG_BLOCKS; i += 7)
			assert_int_equal(rig_word(&r, i),
					 (i < RIG_BLOCKS / 2 ? 9000 : 5000) + i);
	}
	rig_end(&r);
}

/* What is left of a launch has the group size that the launch asked for. */
void stop_shaped(void **state)
{
	const struct hal_backend *b = rig_face.backend;
	struct {
		struct hal_bk_arg args[2];
		struct hal_bk_shape shape;
	} a = {.shape = {{2, 1, 1}, 1024}};
	struct hal_bk_cmd cmd = {.op = HAL_OP_LAUNCH,
				 .flags = HAL_BK_CMD_SHAPED | rig_face.flags};
	uint32_t after, done, i, stops = 0;
	struct rig r;

	(void)state;
	rig_begin(&r, RIG_PLAIN);
	a.args[0] = (struct hal_bk_arg){.mem = r.mem, .bytes = 8 * RIG_BLOCKS};
	a.args[1] = (struct hal_bk_arg){.value = 1000};
	cmd.launch.kernel = r.iota;
	cmd.launch.args = a.args;
	cmd.launch.arg_count = 2;
	cmd.launch.groups[0] = RIG_BLOCKS;
	cmd.launch.groups[1] = cmd.launch.groups[2] = 1;
	for (after = 0; after < 30000; after += 1300) {
		rig_zero(&r);
		assert_int_equal(b->hot.submit(r.dev, r.queue, &cmd), 0);
		done = rig_run_for(&r, after);
		for (i = 0; i < 4; i++) {
			done += rig_stop(&r, NULL);
			stops += done == 0 && rig_word(&r, 0) == 1000;
			assert_int_equal(b->hot.resume(r.dev, r.queue), 0);
			done += rig_run_for(&r, 1000);
		}
		done += rig_finish(&r);
		assert_int_equal(done, 1);
		for (i = 0; i < 2 * RIG_BLOCKS; i++)
			assert_int_equal(rig_word(&r, i), 1000 + i);
	}
	assert_true(stops > 0); /* inside */
	rig_end(&r);
}

/* A copy, a fill, a launch that is too large or cannot be stopped wait for their turn. */
void stop_others_wait(void **state)
{
	const struct hal_backend *b = rig_face.backend;
	struct hal_bk_cmd cmd, fill = {.op = HAL_OP_FILL, .cookie = 9};
	struct rig r;

	(void)state;
	rig_begin(&r, RIG_PLAIN);
	fill.fill.dst = r.mem;
	fill.fill.bytes = 8;
	fill.fill.pattern = 5;
	assert_int_equal(b->hot.submit(r.dev, r.queue, &fill), 0);
	assert_int_equal(rig_launch(&r, r.work, RIG_BLOCK_NS, RIG_BLOCKS, &cmd), 0);
	assert_int_equal(b->hot.submit(r.dev, r.queue, &fill), -EAGAIN);
	assert_int_equal(rig_launch(&r, r.iota, 0, RIG_MOST + 1, &cmd), -EAGAIN);
	assert_int_equal(rig_run_for(&r, 3 * RIG_BLOCK_NS), 1);
	assert_int_equal(rig_stop(&r, NULL), 0);
	assert_int_equal(b->hot.resume(r.dev, r.queue), 0);
	assert_int_equal(rig_finish(&r), 1);
	assert_int_equal(rig_word(&r, 0), 5 + RIG_BLOCKS);
	/* What is too large runs to its end. */
	assert_int_equal(rig_launch(&r, r.work, 20, RIG_MOST + 1, &cmd), 0);
	assert_int_equal(b->hot.submit(r.dev, r.queue, &fill), 0);
	assert_int_equal(rig_run_for(&r, 5000), 0);
	assert_int_equal(rig_stop(&r, NULL), 2);
	assert_int_equal(b->hot.resume(r.dev, r.queue), 0);
	assert_int_equal(rig_word(&r, 0), 5);
	rig_end(&r);
}

/* hang_ms, between blocks: those that run end, no other begins, and nothing is left. */
void stop_hung(void **state)
{
	const struct hal_backend *b = rig_face.backend;
	struct hal_bk_event ev[4];
	struct hal_bk_cmd cmd[2];
	struct rig r;

	(void)state;
	rig_begin(&r, RIG_HANGS);
	rig_zero(&r);
	assert_int_equal(rig_launch(&r, r.work, 1000000, RIG_BLOCKS, &cmd[0]), 0);
	assert_int_equal(rig_launch(&r, r.iota, 5, RIG_BLOCKS, &cmd[1]), 0);
	assert_int_equal(b->hot.poll(r.dev, UINT64_MAX, ev, 4), 2);
	assert_int_equal(ev[0].status, -EIO);
	assert_string_equal(ev[0].fault, "hung for 3 ms, kernel work");
	assert_int_equal(ev[1].status, -ECANCELED);
	assert_int_equal(b->cold.queue_destroy(r.dev, r.queue), 0);
	assert_int_equal(rig_run_for(&r, 2000000), 0);
	assert_true(b->hot.next(r.dev) == UINT64_MAX);
	assert_in_range(rig_word(&r, 0), 2 * rig_face.units, 4 * rig_face.units);
	assert_int_equal(rig_word(&r, 1), 0);
	assert_int_equal(b->cold.queue_create(r.dev, r.part, 0, &r.queue), 0);
	assert_int_equal(rig_launch(&r, r.iota, 5, RIG_BLOCKS, &cmd[0]), 0);
	assert_int_equal(rig_finish(&r), 1);
	assert_int_equal(rig_word(&r, 1), 6);
	rig_end(&r);
}

/* A FOLD that comes to no end is one, too; and what FOLD keeps is not. */
void stop_hung_in_fold(void **state)
{
	const struct hal_backend *b = rig_face.backend;
	struct hal_bk_event ev[4];
	struct hal_bk_cmd cmd;
	struct rig r;

	(void)state;
	rig_begin(&r, RIG_HANGS);
	rig_zero(&r);
	assert_int_equal(rig_launch(&r, r.work, 1000000, 92, &cmd), 0);
	assert_int_equal(rig_run_for(&r, 500000), 0);
	assert_int_equal(rig_stop(&r, NULL), 0);
	assert_int_equal(rig_run_for(&r, 9000000), 0);
	assert_int_equal(b->hot.resume(r.dev, r.queue), 0);
	assert_int_equal(rig_finish(&r), 1);
	assert_int_equal(rig_word(&r, 0), 92);
	assert_int_equal(rig_launch(&r, r.work, 8000000, rig_face.units, &cmd), 0);
	assert_int_equal(rig_run_for(&r, 500000), 0);
	assert_int_equal(b->hot.suspend(r.dev, r.queue, HAL_SUSPEND_FOLD, 77), 0);
	assert_int_equal(b->hot.poll(r.dev, UINT64_MAX, ev, 4), 2);
	assert_int_equal(ev[0].status, -EIO);
	assert_int_equal(ev[0].end_ns - ev[0].start_ns, 3000000);
	assert_int_equal(ev[1].kind, HAL_BK_QUIET);
	assert_int_equal(rig_run_for(&r, 9000000), 0);
	rig_end(&r);
}

/* With what was stopped the queue goes, or the device is lost. */
void stop_ends(void **state)
{
	const struct hal_backend *b = rig_face.backend;
	const struct hal_bk_partition_desc to = {
		.col = 5, .units = 1, .rows = 1, .cols = 1};
	const struct hal_bk_partition_desc back = {.units = 1, .rows = 1, .cols = 1};
	struct hal_bk_event ev;
	struct hal_bk_cmd cmd;
	struct rig r;

	(void)state;
	rig_begin(&r, RIG_PLAIN);
	assert_int_equal(rig_launch(&r, r.work, RIG_BLOCK_NS, RIG_BLOCKS, &cmd), 0);
	assert_int_equal(rig_run_for(&r, 3 * RIG_BLOCK_NS), 0);
	assert_int_equal(b->cold.queue_destroy(r.dev, r.queue), -EBUSY);
	assert_int_equal(rig_stop(&r, NULL), 0);
	rig_end(&r);

	rig_begin(&r, RIG_PLAIN);
	assert_int_equal(rig_launch(&r, r.work, RIG_BLOCK_NS, RIG_BLOCKS, &cmd), 0);
	assert_int_equal(rig_run_for(&r, 3 * RIG_BLOCK_NS), 0);
	assert_int_equal(rig_stop(&r, NULL), 0);
	rig_face.stand_in()->lose(rig_face.device, UNKNOWN);
	assert_int_equal(b->hot.suspend(r.dev, r.queue, HAL_SUSPEND_FOLD, 1), -EBUSY);
	rig_face.lose(r.dev, UNKNOWN);
	assert_int_equal(b->hot.poll(r.dev, 0, &ev, 1), 1);
	assert_int_equal(ev.status, -EIO); /* not 0 */
	rig_end(&r);

	/* Its partition moves meanwhile. */
	rig_begin(&r, RIG_SPLIT);
	rig_zero(&r);
	assert_int_equal(rig_launch(&r, r.work, RIG_BLOCK_NS, 20, &cmd), 0);
	assert_int_equal(rig_run_for(&r, 3 * RIG_BLOCK_NS), 0);
	assert_int_equal(b->hot.suspend(r.dev, r.queue, HAL_SUSPEND_FOLD, 1), 0);
	assert_int_equal(b->hot.resize(r.dev, r.part, &to, 2), 0);
	assert_int_equal(b->hot.poll(r.dev, UINT64_MAX, &ev, 1), 1);
	assert_int_equal(ev.cookie, rig_face.moves_at_once ? 2 : 1);
	assert_int_equal(b->hot.poll(r.dev, UINT64_MAX, &ev, 1), 1);
	assert_int_equal(ev.cookie, rig_face.moves_at_once ? 1 : 2);
	assert_int_equal(b->hot.resume(r.dev, r.queue), 0);
	assert_int_equal(rig_finish(&r), 1);
	assert_int_equal(rig_word(&r, 0), 20);
	/* And once it has been stopped: it is nowhere, and has moved at once. */
	assert_int_equal(rig_launch(&r, r.work, RIG_BLOCK_NS, 20, &cmd), 0);
	assert_int_equal(rig_run_for(&r, 3 * RIG_BLOCK_NS), 0);
	assert_int_equal(rig_stop(&r, NULL), 0);
	assert_int_equal(b->hot.resize(r.dev, r.part, &back, 3), 0);
	assert_int_equal(b->hot.poll(r.dev, UINT64_MAX, &ev, 1), 1);
	assert_int_equal(ev.cookie, 3);
	assert_int_equal(b->hot.resume(r.dev, r.queue), 0);
	assert_int_equal(rig_finish(&r), 1);
	assert_int_equal(rig_word(&r, 0), 40);
	rig_end(&r);
}

/* ---- failures ---------------------------------------------------------------------- */

/* A launch is stopped and goes on, while the nth of those calls fails; how many commands
 * failed.  *last: there was no nth. */
static uint32_t stop_failing(const char *call, uint32_t nth, bool *last)
{
	const struct hal_backend *b = rig_face.backend;
	struct hal_bk_event ev;
	struct hal_bk_cmd cmd;
	uint32_t failed = 0;
	bool ok = false, quiet = false;
	struct rig r;

	rig_begin(&r, RIG_PLAIN);
	rig_zero(&r);
	assert_int_equal(rig_launch(&r, r.work, RIG_BLOCK_NS, RIG_BLOCKS, &cmd), 0);
	assert_int_equal(rig_run_for(&r, 3 * RIG_BLOCK_NS), 0);
	rig_face.stand_in()->break_call(call, nth, OUT_OF_MEMORY);
	assert_int_equal(b->hot.suspend(r.dev, r.queue, HAL_SUSPEND_FOLD, 1), 0);
	while (b->hot.poll(r.dev, UINT64_MAX, &ev, 1) == 1) {
		if (ev.kind == HAL_BK_QUIET) {
			quiet = true;
			assert_int_equal(b->hot.resume(r.dev, r.queue), 0);
			continue;
		}
		if (!quiet) /* it runs far longer than stopping it takes */
			assert_int_equal(ev.status, -EIO);
		ok = ev.status == 0;
		failed += !ok;
	}
	assert_true(quiet);
	*last = rig_face.stand_in()->armed() != 0;
	rig_face.stand_in()->break_call(call, 0, 0);
	if (ok)
		assert_int_equal(rig_word(&r, 0), RIG_BLOCKS);
	rig_end(&r);
	return failed;
}

/* Each call fails each time: what is told to have ended is right, the rest has failed. */
void stop_each_fails(void **state)
{
	uint32_t i, nth, failed;
	bool last;

	(void)state;
	for (i = 0; rig_face.calls[i]; i++) {
		failed = 0;
		last = false;
		for (nth = 1; !last; nth++)
			failed += stop_failing(rig_face.calls[i], nth, &last);
		if (!failed)
			fail_msg("%s: nobody notices", rig_face.calls[i]);
	}
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * queue_cases.h - what three queues of a GPU do, whichever it is, for a test that has
 * what queues.h wants, and: NEVER, IOTA, SPIN, numbers of those kernels; UNITS of device
 * 0, and PRIORITIES of its streams; CALL_FREE, CALL_UNLOAD, CALL_DESTROY of the library,
 * and CALL_RELEASE if it has a context; CALLS_LATE, those that give a device work;
 * SAYS_UNKNOWN, SAYS_NO_MEMORY, as failures are told; TOO_LARGE, see queues.h.
 */
#ifndef TESTS_GPU_QUEUE_CASES_H
#define TESTS_GPU_QUEUE_CASES_H

#include "queues.h"

static void bad_launches(void **state)
{
	const struct hal_bk_config cfg = {.clock = 1};

	(void)state;
	launch_badly(&cfg);
}

/* The driver says so only when it is asked: that is done while something runs long. */
static void lost_in_silence(void **state)
{
	const struct hal_bk_config cfg = {.clock = 1};

	(void)state;
	lose_in_silence(&cfg, SAYS_UNKNOWN);
}

/* The host writes it when it is its turn: till then nothing is let in behind it, also
 * when what was in front of it has ended. */
static void behind_a_timestamp(void **state)
{
	const struct hal_bk_config cfg = {.clock = 1};
	struct hal_bk_cmd stamp = {.op = HAL_OP_TIMESTAMP, .cookie = 2},
			  fill = {.op = HAL_OP_FILL, .cookie = 3};
	uint32_t got[2];
	struct hal_bk_event ev[4];
	struct rig r;

	(void)state;
	open_rig(&r, &cfg);
	stamp.timestamp.dst = fill.fill.dst = r.mem;
	stamp.timestamp.offset = fill.fill.offset = 64;
	fill.fill.bytes = 8;
	fill.fill.pattern = 0x11223344;
	submit_work(&r, 0, 1, 1000000);
	assert_int_equal(b->hot.submit(r.dev, r.queue[0], &stamp), 0);
	assert_int_equal(b->hot.submit(r.dev, r.queue[0], &fill), -EAGAIN);
	poll_one(&r, ev);
	assert_int_equal(ev[0].cookie, 1);
	assert_int_equal(b->hot.submit(r.dev, r.queue[0], &fill), -EAGAIN);
	poll_one(&r, ev);
	assert_int_equal(ev[0].cookie, 2);
	assert_int_equal(b->hot.submit(r.dev, r.queue[0], &fill), 0);
	poll_one(&r, ev);
	assert_int_equal(ev[0].cookie, 3);
	assert_int_equal(b->cold.mem_read(r.dev, r.mem, 64, got, sizeof(got)), 0);
	assert_int_equal(got[0], 0x11223344);
	assert_int_equal(got[1], 0x11223344);
	close_rig(&r);
}

/* After hang_ms its queue ends, and only that: nothing waits for what still runs, and
 * what that may touch is nobody's. */
static void hung(void **state)
{
	const struct hal_bk_config cfg = {.clock = 1, .hang_ms = 5};
	const struct gpu_stand_in *s = stand_in();
	struct hal_bk_event ev[4];
	struct hal_bk_cmd cmd = {.op = HAL_OP_NOP};
	void *other;
	struct rig r;

	(void)state;
	open_rig(&r, &cfg);
	s->frees_wait(1);
	submit_on_mem(&r, 0, NEVER, 1);
	submit_work(&r, 0, 2, 1000);
	submit_work(&r, 1, 3, 4000000);
	assert_int_equal(b->hot.suspend(r.dev, r.queue[0], HAL_SUSPEND_DRAIN, 7), 0);
	poll_one(&r, ev);
	assert_int_equal(ev[0].cookie, 3);
	assert_int_equal(ev[0].status, 0);
	s->hot(1);
	assert_int_equal(b->hot.poll(r.dev, UINT64_MAX, ev, 4), 3);
	assert_int_equal(ev[0].cookie, 1);
	assert_int_equal(ev[0].status, -EIO);
	assert_string_equal(ev[0].fault, "hung for 5 ms, kernel never");
	assert_int_equal(ev[0].end_ns - ev[0].start_ns, 5000000);
	assert_int_equal(ev[1].cookie, 2);
	assert_int_equal(ev[1].status, -ECANCELED);
	assert_int_equal(ev[2].kind, HAL_BK_QUIET);
	assert_int_equal(b->hot.submit(r.dev, r.queue[0], &cmd), -EIO);
	/* Others go on; what is given back is kept, and room is not waited for. */
	submit_work(&r, 1, 4, 1000);
	poll_one(&r, ev);
	assert_int_equal(ev[0].status, 0);
	assert_int_equal(b->cold.queue_destroy(r.dev, r.queue[0]), 0);
	s->hot(0);
	assert_int_equal(b->cold.mem_alloc(r.dev, r.part, 4096, NULL, 0, &other), 0);
	assert_int_equal(b->cold.mem_free(r.dev, other), 0);
	s->memory_left(64);
	assert_int_equal(b->cold.mem_alloc(r.dev, r.part, 4096, NULL, 0, &other),
			 -ENOSPC);
	assert_int_equal(b->hot.poll(r.dev, UINT64_MAX, ev, 4), 0);
	assert_int_equal(s->calls(CALL_FREE), 0);
	assert_int_equal(s->calls(CALL_DESTROY), 0);
	leave_rig(&r);
#ifdef CALL_RELEASE
	assert_int_equal(s->calls(CALL_RELEASE), 0);
#endif
	s->lose(0, UNKNOWN); /* the end of the process */
}

/* It was only long: all is given back when it has ended. */
static void hung_not_for_ever(void **state)
{
	const struct hal_bk_config cfg = {.clock = 1, .hang_ms = 5};
	const struct gpu_stand_in *s = stand_in();
	struct hal_bk_event ev[4];
	struct rig r;

	(void)state;
	open_rig(&r, &cfg);
	submit_work(&r, 0, 1, 4000000); /* each has the time for itself */
	submit_work(&r, 0, 2, 4000000);
	poll_one(&r, ev);
	poll_one(&r, ev);
	assert_int_equal(ev[0].status, 0);
	submit_work(&r, 0, 3, 9000000);
	submit_work(&r, 1, 4, 3000000);
	poll_one(&r, ev);
	assert_int_equal(ev[0].cookie, 4);
	poll_one(&r, ev);
	assert_int_equal(ev[0].cookie, 3);
	assert_int_equal(ev[0].status, -EIO);
	assert_int_equal(b->cold.queue_destroy(r.dev, r.queue[0]), 0);
	assert_int_equal(s->calls(CALL_DESTROY), 0);
	assert_int_equal(b->hot.poll(r.dev, b->hot.now(r.dev) + 5000000, ev, 4), 0);
	assert_int_equal(s->calls(CALL_DESTROY), 1);
	assert_true(b->hot.next(r.dev) == UINT64_MAX);
	leave_rig(&r);
	assert_int_equal(s->live(), 0);
}

/* A free waits for the device: not on the engine's time while something runs. */
static void given_back_later(void **state)
{
	const struct hal_bk_config cfg = {.clock = 1};
	const struct gpu_stand_in *s = stand_in();
	struct hal_bk_event ev;
	void *other, *image, *prog;
	size_t size;
	struct rig r;

	(void)state;
	open_rig(&r, &cfg);
	s->frees_wait(1);
	assert_int_equal(b->cold.mem_alloc(r.dev, r.part, 4096, NULL, 0, &other), 0);
	image = MAKE_IMAGE(names, 1, 4, &size);
	assert_int_equal(b->cold.program_load(r.dev, image, size, &prog), 0);
	free(image);
	submit_work(&r, 0, 1, 50000000);
	s->hot(1);
	assert_int_equal(b->cold.mem_free(r.dev, other), 0);
	assert_int_equal(b->cold.program_unload(r.dev, prog), 0);
	assert_int_equal(s->calls(CALL_FREE), 0);
	assert_int_equal(s->calls(CALL_UNLOAD), 0);
	poll_one(&r, &ev);
	assert_int_equal(s->calls(CALL_FREE), 1);
	assert_int_equal(s->calls(CALL_UNLOAD), 1);
	s->hot(0);
	close_rig(&r);
}

/* Memory that waits to be freed is not refused. */
static void room_of_the_freed(void **state)
{
	const struct hal_bk_config cfg = {.clock = 1};
	struct hal_bk_event ev;
	void *other;
	struct rig r;

	(void)state;
	open_rig(&r, &cfg);
	stand_in()->memory_left(4096);
	assert_int_equal(b->cold.mem_alloc(r.dev, r.part, 4096, NULL, 0, &other), 0);
	submit_work(&r, 0, 1, 50000000);
	assert_int_equal(b->cold.mem_free(r.dev, other), 0);
	assert_int_equal(b->cold.mem_alloc(r.dev, r.part, 4096, NULL, 0, &other), 0);
	assert_int_equal(b->cold.mem_free(r.dev, other), 0);
	assert_int_equal(b->cold.mem_alloc(r.dev, r.part, 4097, NULL, 0, &other),
			 -ENOSPC);
	assert_non_null(strstr(host_text, SAYS_NO_MEMORY));
	poll_one(&r, &ev);
	close_rig(&r);
}

/* What runs out otherwise than by the byte; nothing is left of what failed. */
static void limits(void **state)
{
	const struct gpu_stand_in_limits pieces = {.piece = 1 << 20, .granule = 1 << 21},
					 pinned = {.pinned = 64},
					 streams = {.streams = 1}, none = {0};
	const struct hal_bk_config cfg = {.clock = 1};
	const struct gpu_stand_in *s = stand_in();
	void *other[2], *queue[2];
	struct rig r;

	(void)state;
	open_rig(&r, &cfg);
	s->limit(&pieces);
	s->memory_left(1 << 21);
	assert_int_equal(b->cold.mem_alloc(r.dev, r.part, (1 << 20) + 1, NULL, 0, other),
			 -ENOSPC);
	assert_non_null(strstr(host_text, SAYS_NO_MEMORY));
	assert_int_equal(b->cold.mem_alloc(r.dev, r.part, 8, NULL, 0, &other[0]), 0);
	/* The quota has room, the device has none. */
	assert_int_equal(b->cold.mem_alloc(r.dev, r.part, 8, NULL, 0, &other[1]),
			 -ENOSPC);
	assert_int_equal(b->cold.mem_free(r.dev, other[0]), 0);
	assert_int_equal(b->cold.mem_alloc(r.dev, r.part, 8, NULL, 0, &other[0]), 0);
	assert_int_equal(b->cold.mem_free(r.dev, other[0]), 0);
	s->memory_left(UINT64_MAX);
	s->limit(&pinned);
	assert_int_equal(
		b->cold.mem_alloc(r.dev, r.part, 65, NULL, HAL_BUFFER_MAPPABLE, other),
		-ENOSPC);
	assert_int_equal(
		b->cold.mem_alloc(r.dev, r.part, 64, NULL, HAL_BUFFER_MAPPABLE, other),
		0);
	assert_int_equal(b->cold.queue_create(r.dev, r.part, 0, queue), -ENOSPC);
	assert_int_equal(b->cold.mem_free(r.dev, other[0]), 0);
	s->limit(&streams);
	assert_int_equal(b->cold.queue_create(r.dev, r.part, 0, &queue[0]), 0);
	assert_int_equal(b->cold.queue_create(r.dev, r.part, 0, &queue[1]), -ENOSPC);
	s->limit(&none);
	assert_int_equal(b->cold.queue_create(r.dev, r.part, 0, &queue[1]), 0);
	assert_int_equal(b->cold.queue_destroy(r.dev, queue[0]), 0);
	assert_int_equal(b->cold.queue_destroy(r.dev, queue[1]), 0);
	close_rig(&r);
}

static void every_block_once(void **state)
{
	const struct hal_bk_config cfg = {.clock = 1};
	struct hal_bk_arg args[2];
	struct hal_bk_event ev;
	struct hal_bk_cmd cmd;
	uint32_t got[1024], i;
	struct rig r;

	(void)state;
	open_rig(&r, &cfg);
	args[0] = (struct hal_bk_arg){r.mem, 0, 4096};
	args[1] = (struct hal_bk_arg){NULL, 5, 0};
	cmd = launch(&r, IOTA, 1, args, 2);
	cmd.launch.groups[0] = 16;
	cmd.launch.groups[1] = 4;
	cmd.launch.groups[2] = 4;
	assert_int_equal(b->hot.submit(r.dev, r.queue[1], &cmd), 0);
	poll_one(&r, &ev);
	assert_int_equal(b->cold.mem_read(r.dev, r.mem, 0, got, sizeof(got)), 0);
	for (i = 0; i < 1024; i++)
		assert_int_equal(got[i], 5 + i);
	close_rig(&r);
}

/* Blocks of the better priority go first, and none is taken off a unit again. */
static void priorities(void **state)
{
	static const int want[3] = PRIORITIES; /* best first */
	const struct hal_bk_config cfg = {.clock = 1};
	struct gpu_stand_in_job jobs[3];
	struct hal_bk_arg args[2];
	struct hal_bk_event ev;
	struct hal_bk_cmd cmd;
	uint32_t i;
	struct rig r;

	(void)state;
	open_rig(&r, &cfg);
	args[0] = (struct hal_bk_arg){r.mem, 0, 64};
	args[1] = (struct hal_bk_arg){NULL, 1000000, 0};
	cmd = launch(&r, WORK, 0, args, 2);
	cmd.launch.groups[0] = UNITS; /* a whole device */
	for (i = 0; i < 3; i++)
		assert_int_equal(b->hot.submit(r.dev, r.queue[i], &cmd), 0);
	for (i = 0; i < 3; i++)
		poll_one(&r, &ev);
	assert_int_equal(stand_in()->jobs(jobs, 3), 3);
	for (i = 0; i < 3; i++)
		assert_int_equal(jobs[i].priority, want[i]);
	assert_true(jobs[1].end_ns >= jobs[0].end_ns + 1000000);
	close_rig(&r);
}

/* As long as they ran, one after the other, also when several are seen at once. */
static void times(void **state)
{
	const struct hal_bk_config cfg = {.clock = 1};
	struct hal_bk_event ev[4];
	uint64_t now;
	uint32_t i;
	struct rig r;

	(void)state;
	open_rig(&r, &cfg);
	for (i = 0; i < 3; i++)
		submit_work(&r, 0, i, 1000000 * (i + 1));
	submit_work(&r, 1, 3, 20000000);
	for (i = 0; i < 4; i++)
		poll_one(&r, &ev[i]);
	for (i = 0; i < 3; i++) {
		assert_int_equal(ev[i].cookie, i);
		assert_in_range(ev[i].end_ns - ev[i].start_ns, 1000000 * (i + 1),
				1000000 * (i + 1) + 5000);
	}
	assert_true(ev[1].start_ns >= ev[0].end_ns && ev[2].start_ns >= ev[1].end_ns);
	now = b->hot.now(r.dev);
	assert_true(ev[3].end_ns == now);
	/* Nothing runs: time goes on. */
	assert_int_equal(b->hot.poll(r.dev, now + 1234, ev, 1), 0);
	assert_int_equal(b->hot.now(r.dev), now + 1234);
	close_rig(&r);
}

static void next_look(void **state)
{
	const struct hal_bk_config cfg = {0};
	struct hal_bk_event ev;
	uint64_t at, most = 0;
	struct rig r;
	int n;

	(void)state;
	open_rig(&r, &cfg);
	assert_true(b->hot.next(r.dev) == UINT64_MAX);
	submit_on_mem(&r, 0, SPIN, 1); /* 20 ms */
	assert_true(b->hot.next(r.dev) != UINT64_MAX);
	while ((n = b->hot.poll(r.dev, 0, &ev, 1)) == 0) {
		const uint64_t now = b->hot.now(r.dev);

		at = b->hot.next(r.dev);
		if (at && at - now > most)
			most = at - now;
	}
	assert_int_equal(n, 1);
	assert_int_equal(ev.status, 0);
	/* The longer it takes, the longer it is slept over; a millisecond at most, and
	 * what passed between the two looks at the clock. */
	assert_true(most > 100000);
	assert_true(b->hot.next(r.dev) == UINT64_MAX);
	close_rig(&r);
}

/* Some of all kinds in two queues; how many have failed.  Each ends once. */
static uint32_t run_all(struct rig *r)
{
	const struct hal_bk_arg args[2] = {{r->mem, 0, 64}, {NULL, 5000, 0}};
	struct hal_bk_cmd cmds[2][3] = {{{.op = HAL_OP_FILL}, {0}, {.op = HAL_OP_COPY}},
					{{0}, {.op = HAL_OP_NOP}, {.op = HAL_OP_FILL}}};
	uint32_t q, i, seen = 0, failed = 0;
	struct hal_bk_event ev;

	cmds[0][0].fill.dst = cmds[1][2].fill.dst = r->mem;
	cmds[0][0].fill.bytes = cmds[1][2].fill.bytes = 64;
	cmds[0][1] = cmds[1][0] = launch(r, WORK, 0, args, 2);
	cmds[0][2].copy.dst = cmds[0][2].copy.src = r->mem;
	cmds[0][2].copy.dst_offset = cmds[0][2].copy.bytes = 64;
	for (q = 0; q < 2; q++)
		for (i = 0; i < 3; i++) {
			cmds[q][i].cookie = 3 * q + i;
			assert_int_equal(b->hot.submit(r->dev, r->queue[q], &cmds[q][i]),
					 0);
		}
	while (b->hot.poll(r->dev, UINT64_MAX, &ev, 1) == 1) {
		assert_int_equal(ev.kind, HAL_BK_DONE);
		assert_false(seen >> ev.cookie & 1);
		seen |= 1u << ev.cookie;
		assert_true(ev.status == 0 || ev.status == -EIO ||
			    ev.status == -ECANCELED);
		failed += ev.status == -EIO;
	}
	assert_int_equal(seen, 63);
	return failed;
}

/* What a call gave the device fails when it has run: somebody is told, and all is over.
 */
static void late(void **state)
{
	static const char *const calls[] = CALLS_LATE;
	const struct hal_bk_config cfg = {.clock = 1};
	uint32_t i, nth, failed;
	struct rig r;
	bool last;

	(void)state;
	for (i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		last = false;
		for (nth = 1; !last; nth++) {
			open_rig(&r, &cfg);
			assert_int_equal(stand_in()->break_late(calls[i], nth, UNKNOWN),
					 0);
			failed = run_all(&r);
			last = stand_in()->armed() != 0;
			if (last != !failed)
				fail_msg("%s %u: %u failed", calls[i], nth, failed);
			stand_in()->break_call(calls[i], 0, 0);
			close_rig(&r);
		}
		assert_true(nth > 2);
	}
}

#define QUEUE_CASES                                                                      \
	cmocka_unit_test(late), cmocka_unit_test(lost_in_silence),                       \
		cmocka_unit_test(behind_a_timestamp), cmocka_unit_test(hung),            \
		cmocka_unit_test(hung_not_for_ever), cmocka_unit_test(given_back_later), \
		cmocka_unit_test(room_of_the_freed), cmocka_unit_test(limits),           \
		cmocka_unit_test(every_block_once), cmocka_unit_test(priorities),        \
		cmocka_unit_test(times), cmocka_unit_test(next_look)

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mark_cases.h - when a backend that marks several launches at once reports their ends,
 * for a test that has what queues.h wants, and: WILD and NEVER, numbers of those kernels;
 * CALL_WRITE, CALL_QUERY, CALL_RECORD, CALL_ELAPSED and CALL_LAUNCH of the library;
 * LIBRARY and ADVANCE, the fake driver and its function that steps the time; AGE, which
 * sets the number of a queue; SAYS_FAULT, the name of the result of an illegal address.
 */
#ifndef TESTS_GPU_MARK_CASES_H
#define TESTS_GPU_MARK_CASES_H

#include "ends.h"
#include "queues.h"

#define DEEP 32u /* in flight */
#define EACH 8u  /* launches of a mark */
static const struct hal_bk_config deep = {.clock = 1, .inflight = DEEP};

static uint64_t calls_of(const char *call)
{
	return stand_in()->calls(call);
}

/* Submit count launches of work to queue 0, with cookies from first on. */
static void submit_many(struct rig *r, uint32_t first, uint32_t count, uint64_t ns)
{
	uint32_t i;

	for (i = 0; i < count; i++)
		submit_work(r, 0, first + i, ns);
}

/* Poll until count events of queue 0 are there, in order from cookie first on, and well.
 */
static void ends(struct rig *r, uint32_t first, uint32_t count, struct hal_bk_event *ev)
{
	uint32_t n = 0;

	while (n < count) {
		const int got = b->hot.poll(r->dev, UINT64_MAX, ev + n, count - n);

		if (got <= 0)
			fail_msg("%u of %u ended, then poll is %d", n, count, got);
		n += (uint32_t)got;
	}
	assert_ends(ev, first, count);
}

/* Open it, and have work measured: launches that follow are marked together. */
static void open_deep(struct rig *r, const struct hal_bk_config *cfg)
{
	struct hal_bk_event ev;

	open_rig(r, cfg);
	submit_work(r, 0, 0, 1000);
	ends(r, 0, 1, &ev);
}

/* Let time pass by the library alone: the backend does not poll. */
static void pass_unseen(uint64_t ns)
{
	const uint64_t until = stand_in()->now() + ns;
	void (*advance)(uint64_t until_ns, uint64_t * now_ns, uint32_t * idle);
	uint64_t now = 0;
	uint32_t idle;

	*(void **)&advance = dlsym(dlopen(LIBRARY, RTLD_NOW), ADVANCE);
	while (now < until)
		advance(until, &now, &idle);
}

/* Every eighth launch has a mark, and nothing else is called for them. */
static void marks_eighth(void **state)
{
	struct hal_bk_event ev[DEEP];
	uint64_t all, writes;
	struct rig r;

	(void)state;
	open_deep(&r, &deep);
	all = calls_of(NULL);
	writes = calls_of(CALL_WRITE);
	submit_many(&r, 1, DEEP, 1000);
	assert_int_equal(calls_of(CALL_WRITE) - writes, DEEP / EACH);
	assert_int_equal(calls_of(NULL) - all, DEEP + DEEP / EACH);
	assert_int_equal(b->hot.poll(r.dev, UINT64_MAX, ev, DEEP), EACH);
	ends(&r, 1 + EACH, DEEP - EACH, ev);
	assert_int_equal(calls_of(CALL_WRITE) - writes, DEEP / EACH);
	close_rig(&r);
}

/* What is behind the last mark has one as soon as no other one is under way. */
static void tail_marked(void **state)
{
	struct hal_bk_event ev[DEEP];
	uint64_t all, writes;
	struct rig r;

	(void)state;
	open_deep(&r, &deep);
	writes = calls_of(CALL_WRITE);
	submit_many(&r, 1, EACH + 3, 1000);
	assert_int_equal(b->hot.poll(r.dev, b->hot.now(r.dev) + 1, ev, DEEP), 0);
	assert_int_equal(calls_of(CALL_WRITE) - writes, 1);
	ends(&r, 1, EACH + 3, ev);
	assert_int_equal(calls_of(CALL_WRITE) - writes, 2);
	/* A launch alone costs two calls. */
	all = calls_of(NULL);
	submit_work(&r, 0, 20, 1000);
	ends(&r, 20, 1, ev);
	assert_int_equal(calls_of(NULL) - all, 2);
	close_rig(&r);
}

/* If the tail may have ended, the driver is asked, and no mark is needed. */
static void tail_asked(void **state)
{
	uint64_t queries, writes;
	struct hal_bk_event ev[DEEP];
	struct rig r;

	(void)state;
	open_deep(&r, &deep);
	queries = calls_of(CALL_QUERY);
	writes = calls_of(CALL_WRITE);
	submit_many(&r, 1, 3, 1000);
	pass_unseen(1000000);
	(void)b->cold.mem_read(r.dev, r.mem, 0, ev, 4); /* which reads the clock again */
	ends(&r, 1, 3, ev);
	assert_int_equal(calls_of(CALL_WRITE), writes);
	assert_int_equal(calls_of(CALL_QUERY) - queries, 1);
	/* Numbers go on where they were. */
	submit_many(&r, 4, 2 * EACH, 1000);
	ends(&r, 4, 2 * EACH, ev);
	close_rig(&r);
}

/* Real time: a short launch is seen to have ended by a query, without a mark.  A long one
 * has not ended when the driver is asked, and is marked after all. */
static void tail_in_real_time(void **state)
{
	const struct hal_bk_config cfg = {.inflight = DEEP};
	struct hal_bk_event ev;
	struct rig r;
	uint32_t i;
	int n;

	(void)state;
	open_rig(&r, &cfg);
	for (i = 0; i < 40; i++) {
		submit_work(&r, 0, i, i % 4 == 3 ? 300000 : 100);
		do
			n = b->hot.poll(r.dev, 0, &ev, 1);
		while (n == 0);
		assert_int_equal(n, 1);
		assert_int_equal(ev.cookie, i);
		assert_int_equal(ev.status, 0);
	}
	assert_true(b->hot.next(r.dev) == UINT64_MAX);
	assert_in_range(calls_of(CALL_QUERY), 20, UINT64_MAX);
	/* Those that were measured, and what follows a long one, have two. */
	assert_in_range(calls_of(CALL_WRITE), 10, 32);
	close_rig(&r);
}

/* Launches before a command of another kind are not reported with it. */
static void other_kinds_apart(void **state)
{
	struct hal_bk_cmd fill = {.op = HAL_OP_FILL, .cookie = 3};
	struct hal_bk_event ev[DEEP];
	uint64_t writes;
	struct rig r;

	(void)state;
	open_deep(&r, &deep);
	fill.fill.dst = r.mem;
	fill.fill.bytes = 64;
	writes = calls_of(CALL_WRITE);
	submit_many(&r, 1, 2, 1000);
	assert_int_equal(b->hot.submit(r.dev, r.queue[0], &fill), 0);
	assert_int_equal(calls_of(CALL_WRITE) - writes, 2);
	submit_many(&r, 4, 1, 1000);
	assert_int_equal(b->hot.poll(r.dev, UINT64_MAX, ev, DEEP), 2);
	assert_int_equal(b->hot.poll(r.dev, UINT64_MAX, ev, DEEP), 1);
	assert_int_equal(ev[0].cookie, 3);
	ends(&r, 4, 1, ev);
	close_rig(&r);
}

/* A suspend marks at once what has no mark. */
static void suspend_marks(void **state)
{
	struct hal_bk_event ev[DEEP];
	uint64_t writes;
	struct rig r;

	(void)state;
	open_deep(&r, &deep);
	submit_many(&r, 1, 3, 1000);
	writes = calls_of(CALL_WRITE);
	assert_int_equal(b->hot.suspend(r.dev, r.queue[0], HAL_SUSPEND_DRAIN, 7), 0);
	assert_int_equal(calls_of(CALL_WRITE) - writes, 1);
	ends(&r, 1, 3, ev);
	poll_one(&r, ev);
	assert_int_equal(ev[0].kind, HAL_BK_QUIET);
	assert_int_equal(calls_of(CALL_WRITE) - writes, 1);
	assert_int_equal(b->hot.resume(r.dev, r.queue[0]), 0);
	close_rig(&r);
}

/* Of the launches of a kernel one in 64 is measured, the first among them. */
static void one_in_64_measured(void **state)
{
	struct hal_bk_event ev[DEEP];
	uint32_t i;
	struct rig r;

	(void)state;
	open_rig(&r, &deep);
	for (i = 0; i < 10; i++) {
		submit_many(&r, 0, DEEP, 3000);
		ends(&r, 0, DEEP, ev);
	}
	assert_int_equal(calls_of(CALL_RECORD), 10);
	assert_int_equal(calls_of(CALL_ELAPSED), 5);
	close_rig(&r);
}

/* The time of a mark is that of its launches together, also where they waited for another
 * queue's first; a launch alone has its own. */
static void times_of_marks(void **state)
{
	struct hal_bk_event ev[DEEP];
	uint64_t sum = 0;
	uint32_t i;
	struct rig r;

	(void)state;
	open_deep(&r, &deep);
	submit_many(&r, 1, DEEP, 10000);
	ends(&r, 1, DEEP, ev);
	for (i = 0; i < DEEP; i++) {
		sum += ev[i].end_ns - ev[i].start_ns;
		assert_in_range(ev[i].end_ns - ev[i].start_ns, 9000, 16000);
	}
	assert_in_range(sum, DEEP * 10000, DEEP * 13000);
	for (i = 0; i < 3; i++) {
		submit_work(&r, 0, i, 10000);
		ends(&r, i, 1, ev);
		assert_in_range(ev[0].end_ns - ev[0].start_ns, 9000, 13000);
	}
	close_rig(&r);
}

/* The host is late once, when it sees a measured launch: later ones have their time. */
static void times_after_a_late_sample(void **state)
{
	struct hal_bk_event ev;
	struct rig r;
	uint32_t i;

	(void)state;
	open_rig(&r, &deep);
	submit_work(&r, 0, 0, 10000);
	pass_unseen(1000000);
	(void)b->cold.mem_read(r.dev, r.mem, 0, &i, 4); /* which reads the clock again */
	ends(&r, 0, 1, &ev);
	assert_in_range(ev.end_ns - ev.start_ns, 9000, 13000);
	for (i = 1; i < 6; i++) {
		submit_work(&r, 0, i, 10000);
		ends(&r, i, 1, &ev);
		assert_in_range(ev.end_ns - ev.start_ns, 9000, 13000);
	}
	close_rig(&r);
}

/* Long commands are measured each, as poll sees their ends late. */
static void long_ones_measured(void **state)
{
	struct hal_bk_event ev[2];
	uint64_t before;
	uint32_t i;
	struct rig r;

	(void)state;
	open_deep(&r, &deep);
	submit_work(&r, 0, 1, 1000000);
	ends(&r, 1, 1, ev);
	before = calls_of(CALL_ELAPSED);
	for (i = 0; i < 4; i++) {
		submit_work(&r, 0, i, 1000000);
		ends(&r, i, 1, ev);
		assert_in_range(ev[0].end_ns - ev[0].start_ns, 1000000, 1005000);
	}
	assert_int_equal(calls_of(CALL_ELAPSED) - before, 4);
	close_rig(&r);
}

/* Each launch has its own hang bound, which a mark for several would not allow. */
static void hang_bound_of_each(void **state)
{
	const struct hal_bk_config cfg = {.clock = 1, .inflight = DEEP, .hang_ms = 5};
	struct hal_bk_event ev[8];
	struct rig r;

	(void)state;
	open_deep(&r, &cfg);
	submit_many(&r, 1, 6, 4000000);
	ends(&r, 1, 6, ev);
	submit_many(&r, 1, 2, 4000000);
	submit_on_mem(&r, 0, NEVER, 3);
	submit_many(&r, 4, 2, 1000);
	ends(&r, 1, 2, ev);
	poll_one(&r, ev);
	assert_int_equal(ev[0].cookie, 3);
	assert_int_equal(ev[0].status, -EIO);
	assert_string_equal(ev[0].fault, "hung for 5 ms, kernel never");
	assert_int_equal(b->hot.poll(r.dev, 0, ev, 8), 2);
	assert_int_equal(ev[1].status, -ECANCELED);
	assert_int_equal(b->cold.queue_destroy(r.dev, r.queue[0]), 0);
	leave_rig(&r);
	stand_in()->lose(0, UNKNOWN); /* the end of the process */
}

/* The first launch of a kernel is marked by itself: if it faults, the fault names it, and
 * launches before it have ended well. */
static void fault_of_a_new_kernel(void **state)
{
	static const int want[] = {0, 0, 0, -EIO, -ECANCELED, -ECANCELED};
	struct hal_bk_event ev[8];
	struct rig r;
	int n, seen = 0;

	(void)state;
	open_deep(&r, &deep);
	submit_many(&r, 0, 3, 1000);
	submit_on_mem(&r, 0, WILD, 3);
	submit_many(&r, 4, 2, 1000);
	while ((n = b->hot.poll(r.dev, UINT64_MAX, ev + seen, 8 - (uint32_t)seen)) > 0)
		seen += n;
	assert_int_equal(n, -EIO);
	assert_int_equal(seen, 6);
	for (n = 0; n < 6; n++)
		assert_int_equal(ev[n].status, want[n]);
	assert_string_equal(ev[3].fault, SAYS_FAULT ", device lost, kernel wild");
	close_rig(&r);
}

/* Of launches that share a mark none is said to have ended well, and the fault says that
 * it may be a later one's. */
static void fault_among_launches(void **state)
{
	struct hal_bk_event ev[8];
	struct rig r;

	(void)state;
	open_deep(&r, &deep);
	submit_many(&r, 0, 3, 1000000);
	assert_int_equal(b->hot.poll(r.dev, b->hot.now(r.dev) + 1500000, ev, 8), 0);
	stand_in()->lose(0, UNKNOWN);
	assert_int_equal(b->hot.poll(r.dev, UINT64_MAX, ev, 8), 3);
	assert_int_equal(ev[0].status, -EIO);
	if (!strstr(ev[0].fault, "device lost, kernel work or later"))
		fail_msg("fault is '%s'", ev[0].fault);
	assert_int_equal(ev[1].status, -ECANCELED);
	assert_int_equal(ev[2].status, -ECANCELED);
	close_rig(&r);
}

/* With mark_every=1 each launch is reported by itself, as it ends. */
static void marks_each(void **state)
{
	const struct hal_bk_config cfg = {.clock = 1, .inflight = DEEP, .mark_every = 1};
	struct hal_bk_event ev[4];
	struct rig r;
	uint32_t i;

	(void)state;
	open_deep(&r, &cfg);
	submit_many(&r, 0, 5, 10000);
	for (i = 0; i < 5; i++) {
		assert_int_equal(b->hot.poll(r.dev, UINT64_MAX, ev, 4), 1);
		assert_int_equal(ev[0].cookie, i);
	}
	close_rig(&r);
}

/* Numbers wrap: marks and tails go on over 2^32. */
static void numbers_wrap(void **state)
{
	struct hal_bk_event ev[DEEP];
	uint32_t i;
	struct rig r;

	(void)state;
	open_deep(&r, &deep);
	AGE(r.queue[0], UINT32_MAX - 20);
	for (i = 0; i < 8; i++) {
		submit_many(&r, 0, 5, 1000);
		ends(&r, 0, 5, ev);
		submit_many(&r, 0, DEEP, 1000);
		ends(&r, 0, DEEP, ev);
	}
	close_rig(&r);
}

/* The mark of a tail is refused: its queue fails with the call's name, and goes when its
 * stream is empty. */
static void refused_mark(void **state)
{
	struct hal_bk_event ev[8];
	struct rig r;

	(void)state;
	open_deep(&r, &deep);
	submit_many(&r, 0, 3, 1000);
	stand_in()->break_call(CALL_WRITE, 1, 2);
	assert_int_equal(b->hot.poll(r.dev, UINT64_MAX, ev, 8), 3);
	assert_int_equal(stand_in()->armed(), 0);
	assert_int_equal(ev[0].status, -EIO);
	if (!strstr(ev[0].fault, CALL_WRITE))
		fail_msg("fault is '%s', not of %s", ev[0].fault, CALL_WRITE);
	assert_int_equal(ev[2].status, -ECANCELED);
	close_rig(&r);
}

/* A launch is refused: those before it, which share its mark, end all the same, and later
 * ones are taken. */
static void refused_launch(void **state)
{
	const struct hal_bk_arg args[2] = {{NULL, 0, 0}, {NULL, 1000, 0}};
	struct hal_bk_event ev[8];
	struct hal_bk_cmd cmd;
	struct rig r;

	(void)state;
	open_deep(&r, &deep);
	submit_many(&r, 0, 3, 1000);
	cmd = launch(&r, WORK, 9, args, 2);
	assert_int_equal(b->hot.submit(r.dev, r.queue[0], &cmd), -EINVAL);
	submit_many(&r, 3, 1, 1000);
	ends(&r, 0, 4, ev);
	close_rig(&r);
}

/* More queues than one, deep: each end is reported once, in order. */
static void many_queues(void **state)
{
	uint32_t given[3] = {0}, ended[3] = {0}, i;
	struct hal_bk_event ev[16];
	struct rig r;
	int n, k;

	(void)state;
	open_deep(&r, &deep);
	do {
		for (i = 0; i < 3; i++)
			for (k = 0; k < 5 + (int)i && given[i] < 200 &&
				    given[i] - ended[i] < DEEP;
			     k++, given[i]++)
				submit_work(&r, i, i << 16 | given[i], 1000 + 700 * i);
		n = b->hot.poll(r.dev, UINT64_MAX, ev, 16);
		assert_true(n > 0);
		for (k = 0; k < n; k++) {
			assert_int_equal(ev[k].status, 0);
			i = (uint32_t)ev[k].cookie >> 16;
			assert_int_equal(ev[k].cookie & 0xffff, ended[i]++);
		}
	} while (ended[0] + ended[1] + ended[2] < 600);
	close_rig(&r);
}

#define MARK_CASES                                                                       \
	cmocka_unit_test(marks_eighth), cmocka_unit_test(tail_marked),                   \
		cmocka_unit_test(tail_asked), cmocka_unit_test(tail_in_real_time),       \
		cmocka_unit_test(other_kinds_apart), cmocka_unit_test(suspend_marks),    \
		cmocka_unit_test(one_in_64_measured), cmocka_unit_test(times_of_marks),  \
		cmocka_unit_test(times_after_a_late_sample),                             \
		cmocka_unit_test(long_ones_measured),                                    \
		cmocka_unit_test(hang_bound_of_each),                                    \
		cmocka_unit_test(fault_of_a_new_kernel),                                 \
		cmocka_unit_test(fault_among_launches), cmocka_unit_test(marks_each),    \
		cmocka_unit_test(numbers_wrap), cmocka_unit_test(refused_mark),          \
		cmocka_unit_test(refused_launch), cmocka_unit_test(many_queues)

#endif

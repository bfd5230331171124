/* SPDX-License-Identifier: Apache-2.0 */
/* What is refused, fails or is lost: what comes of it, in which order, and what does not.
 */
#include "ref_world.h"

#include <hal/ref.h>

static struct hal_point resize_to(struct world *w, uint32_t units, uint64_t bytes)
{
	struct hal_partition_desc d = HAL_INIT(hal_partition_desc);
	struct hal_point moved;

	d.units_floor = units;
	d.memory_bytes = bytes;
	OK(hal_partition_resize(w->part, &d, &moved));
	return moved;
}

static struct hal_partition_info info_of(struct hal_partition *p)
{
	struct hal_partition_info i = HAL_INIT(hal_partition_info);

	OK(hal_partition_get_info(p, &i));
	return i;
}

static uint64_t memory_free(struct world *w)
{
	struct hal_device_info i = HAL_INIT(hal_device_info);

	OK(hal_device_get_info(w->dev, &i));
	return i.memory_free;
}

/* A move that the device does not make fails its own point and no other. */
static void refused_moves(void **state)
{
	struct hal_point first, failed, again, ahead;
	struct hal_queue *q;
	struct world w;

	(void)state;
	world_open(&w, "mock");
	world_fill(&w);
	q = add_queue(w.part, 0);
	first = resize_to(&w, 2, 0);
	w.mock->quiet(w.native, 0);
	poll_now(&w);
	assert_true(reached(first));
	w.mock->refuse_move(w.native, 1, -EIO, 0);
	failed = resize_to(&w, 5, 0);
	assert_false(reached(failed));
	w.mock->quiet(w.native, 0);
	poll_now(&w);
	FAILS(hal_wait(&failed, 1, 0, HAL_FOREVER), -EIO, "told not to move");
	assert_true(reached(first));
	assert_int_equal(info_of(w.part).units, 2);
	/* The units that were meant for it are free again. */
	OK(hal_partition_destroy(add_partition(&w, 14)));
	again = resize_to(&w, 3, 0);
	ahead = again;
	assert_false(reached(again));
	w.mock->quiet(w.native, 0);
	poll_now(&w);
	OK(hal_wait(&ahead, 1, 0, HAL_FOREVER));
	assert_int_equal(info_of(w.part).units, 3);
	FAILS(hal_wait(&failed, 1, 0, 0), -EIO, "told not to move");
	/* Its queues never noticed. */
	OK(submit_cmd(q, numbered(&w, 1), &first));
	poll_now(&w);
	w.mock->complete(w.native, 1, 1);
	OK(hal_wait(&first, 1, 0, HAL_FOREVER));
	OK(hal_queue_destroy(q));
	world_close(&w);
}

/* A quota goes with its move: if there is none, it is as it was. */
static void refused_moves_and_quotas(void **state)
{
	struct hal_partition_desc d = HAL_INIT(hal_partition_desc);
	uint64_t before;
	struct world w;

	(void)state;
	for (int at_once = 0; at_once < 2; at_once++) {
		world_open(&w, "mock?memory=100000");
		world_fill(&w);
		before = memory_free(&w);
		for (int had = 0; had < 2; had++) {
			static const uint64_t to[] = {50000, 10000};

			for (size_t i = 0; i < 2; i++) {
				struct hal_point p;

				d.units_floor = 2;
				d.memory_bytes = to[i];
				w.mock->refuse_move(w.native, 1, -EIO, at_once);
				if (at_once) {
					FAILS(hal_partition_resize(w.part, &d, &p), -EIO,
					      "told not to");
				} else {
					p = resize_to(&w, 2, to[i]);
					w.mock->quiet(w.native, 0);
					poll_now(&w);
					FAILS(hal_wait(&p, 1, 0, 0), -EIO, "told not to");
				}
				assert_int_equal(memory_free(&w), before);
			}
			/* From now on it has one. */
			(void)resize_to(&w, 2, 20000);
			w.mock->quiet(w.native, 0);
			poll_now(&w);
			assert_int_equal(info_of(w.part).memory_bytes, 20000);
			before = memory_free(&w);
			assert_int_equal(before, 80000);
		}
		world_close(&w);
	}
}

static void beyond_the_device(void **state)
{
	struct hal_partition_desc d = HAL_INIT(hal_partition_desc);
	struct hal_partition *other;
	struct hal_buffer_desc b = HAL_INIT(hal_buffer_desc);
	struct hal_buffer *x, *y;
	struct world w;

	(void)state;
	world_open(&w, "mock?memory=100000");
	world_fill(&w);
	d.units_floor = 17;
	FAILS(hal_partition_resize(w.part, &d, NULL), -ENOSPC, "17", "16");
	d.units_floor = 16;
	OK(hal_partition_resize(w.part, &d, NULL));
	w.mock->quiet(w.native, 0);
	poll_now(&w);
	assert_int_equal(info_of(w.part).units, 16);
	d.units_floor = 1;
	FAILS(hal_partition_create(w.dev, &d, &other), -ENOSPC, "1 units", "0 of 16");
	OK(hal_partition_resize(w.part, &d, NULL));
	w.mock->quiet(w.native, 0);
	poll_now(&w);
	other = add_partition(&w, 10);
	d.units_floor = 7;
	FAILS(hal_partition_resize(w.part, &d, NULL), -ENOSPC, "7 units");
	d.units_floor = 0;
	d.row = 0;
	d.rows = 1;
	d.col = 10;
	d.cols = 7;
	FAILS(hal_partition_resize(w.part, &d, NULL), -EINVAL, "reaches past");
	d.cols = d.col = d.rows = 0;

	/* A quota, to the byte: not more than is left, not less than is in use. */
	d.units_floor = 1;
	d.memory_bytes = 100001;
	FAILS(hal_partition_resize(w.part, &d, NULL), -ENOSPC, "are free");
	d.memory_bytes = 4095;
	FAILS(hal_partition_resize(w.part, &d, NULL), -ENOSPC, "4095", "4096");
	d.memory_bytes = 100000;
	OK(hal_partition_resize(w.part, &d, NULL));
	w.mock->quiet(w.native, 0);
	poll_now(&w);
	assert_int_equal(memory_free(&w), 0);
	b.bytes = 1;
	FAILS(hal_buffer_create(other, &b, &x), -ENOSPC, "0 are left");
	d.memory_bytes = 4096;
	OK(hal_partition_resize(w.part, &d, NULL));
	w.mock->quiet(w.native, 0);
	poll_now(&w);
	FAILS(hal_buffer_create(w.part, &b, &x), -ENOSPC, "0 are left", "quota");
	b.bytes = 95905;
	FAILS(hal_buffer_create(other, &b, &x), -ENOSPC, "95904 are left");
	b.bytes = 95903;
	OK(hal_buffer_create(other, &b, &x));
	b.bytes = 2;
	FAILS(hal_buffer_create(other, &b, &y), -ENOSPC, "1 are left");
	b.bytes = 1;
	OK(hal_buffer_create(other, &b, &y));
	OK(hal_buffer_destroy(x));
	OK(hal_buffer_destroy(y));
	OK(hal_partition_destroy(other));
	world_close(&w);
}

/* ---- the device is lost ---------------------------------------------------------- */

static void lost(struct world *w, struct hal_queue *idle, struct hal_queue *busy)
{
	struct hal_device_info info = HAL_INIT(hal_device_info);
	struct hal_partition_desc d = HAL_INIT(hal_partition_desc);
	struct hal_buffer_desc b = HAL_INIT(hal_buffer_desc);
	struct hal_queue_desc qd = HAL_INIT(hal_queue_desc);
	struct hal_partition *p;
	struct hal_buffer *x;
	struct hal_program *prog;
	struct hal_queue *q;
	uint32_t word = 0;

	OK(hal_device_get_info(w->dev, &info));
	assert_int_equal(info.lost, -ENODEV);
	d.units_floor = 1;
	b.bytes = 64;
	FAILS(hal_partition_create(w->dev, &d, &p), -ENODEV, "lost", "fell off the bus");
	FAILS(hal_partition_resize(w->part, &d, NULL), -ENODEV, "fell off the bus");
	FAILS(hal_queue_create(w->part, &qd, &q), -ENODEV, "fell off the bus");
	FAILS(hal_buffer_create(w->part, &b, &x), -ENODEV, "fell off the bus");
	FAILS(hal_buffer_write(w->buf, 0, &word, 4), -ENODEV, "fell off the bus");
	FAILS(hal_buffer_read(w->buf, 0, &word, 4), -ENODEV, "fell off the bus");
	FAILS(hal_program_load(w->dev, "none0", 5, &prog), -ENODEV, "fell off the bus");
	FAILS(hal_queue_suspend(idle, HAL_SUSPEND_DRAIN, NULL), -ENODEV,
	      "fell off the bus");
	FAILS(hal_queue_resume(idle), -ENODEV, "fell off the bus");
	FAILS(submit_cmd(idle, numbered(w, 1), NULL), -ENODEV, "lost",
	      "fell off the bus");
	FAILS(submit_cmd(busy, numbered(w, 1), NULL), -ENODEV, "lost",
	      "fell off the bus");
}

static void lost_with_all_it_had(void **state)
{
	struct hal_submit_desc d = HAL_INIT(hal_submit_desc);
	struct hal_device_info info = HAL_INIT(hal_device_info);
	struct hal_queue *idle, *busy, *parked, *held;
	struct hal_point p[4], quiet, moved, wait, signal;
	struct hal_timeline *t, *u;
	struct hal_cmd cmd;
	struct world w;

	(void)state;
	world_open(&w, "mock");
	world_fill(&w);
	OK(hal_device_get_info(w.dev, &info));
	assert_int_equal(info.lost, 0);
	OK(hal_timeline_create(w.dev, &t));
	OK(hal_timeline_create(w.dev, &u));
	idle = add_queue(w.part, 0);
	busy = add_queue(w.part, 0);
	parked = add_queue(w.part, 0);
	held = add_queue(w.part, 0);
	/* In flight, behind it, behind a wait, suspended, under way. */
	OK(submit_cmd(busy, numbered(&w, 1), &p[0]));
	OK(submit_cmd(busy, numbered(&w, 2), &p[1]));
	wait = (struct hal_point){t, 1};
	signal = (struct hal_point){u, 1};
	cmd = numbered(&w, 3);
	d.cmds = &cmd;
	d.cmd_count = 1;
	d.waits = &wait;
	d.wait_count = 1;
	d.signals = &signal;
	d.signal_count = 1;
	OK(hal_submit(parked, &d, &p[2]));
	OK(hal_queue_suspend(held, HAL_SUSPEND_DRAIN, NULL));
	OK(submit_cmd(held, numbered(&w, 4), &p[3]));
	poll_now(&w);
	OK(hal_queue_suspend(busy, HAL_SUSPEND_KILL, &quiet));
	moved = resize_to(&w, 3, 0);
	w.mock->lose(w.native);
	poll_now(&w);
	for (int i = 0; i < 4; i++)
		FAILS(hal_wait(&p[i], 1, 0, HAL_FOREVER), -EIO, "lost",
		      "fell off the bus");
	FAILS(hal_wait(&signal, 1, 0, HAL_FOREVER), -EIO, "lost");
	FAILS(hal_wait(&moved, 1, 0, HAL_FOREVER), -EIO, "lost");
	assert_true(reached(quiet));
	lost(&w, idle, busy);
	lost(&w, idle, busy); /* for good */
	OK(hal_timeline_signal(t, 1));
	OK(hal_timeline_destroy(t));
	OK(hal_timeline_destroy(u));
	OK(hal_queue_destroy(idle));
	OK(hal_queue_destroy(busy));
	OK(hal_queue_destroy(parked));
	OK(hal_queue_destroy(held));
	w.mock->complete(w.native, 9, 0); /* the double still has what it was given */
	world_close(&w);
}

/* ---- refused commands ------------------------------------------------------------ */

static uint32_t submits(struct world *w)
{
	struct mock_counts c;

	w->mock->counts(w->native, &c);
	return c.submits;
}

/* Nothing behind a refused command reaches the device, however much there is room. */
static void nothing_behind_a_refused_one(void **state)
{
	static const char *const options[] = {PLUGINS, "hal.inflight=4",
					      "hal.partition_inflight=8", NULL};
	struct hal_point p[4];
	struct hal_queue *q;
	struct world w;
	uint32_t before;

	(void)state;
	for (int at = 0; at < 2; at++) {
		world_open_with(&w, "mock", options);
		world_fill(&w);
		q = add_queue(w.part, 0);
		if (at == 1) {
			OK(submit_cmd(q, numbered(&w, 0), &p[0]));
			poll_now(&w);
		}
		before = submits(&w);
		w.mock->refuse(w.native, 1, EIO);
		for (int i = 1; i < 4; i++)
			OK(submit_cmd(q, numbered(&w, (uint32_t)i), &p[i]));
		for (int i = 0; i < 4; i++)
			poll_now(&w);
		assert_int_equal(submits(&w), before);
		w.mock->complete(w.native, 1, 1);
		for (int i = 0; i < 4; i++)
			poll_now(&w);
		assert_int_equal(submits(&w), before);
		FAILS(hal_wait(&p[1], 1, 0, 0), -EIO, "told to refuse");
		assert_int_equal(queue_stats(q).failed, 1);
		assert_int_equal(queue_stats(q).dropped, 2);
		OK(hal_queue_destroy(q));
		world_close(&w);
	}
}

/* No room: the queue is asked again once a turn, not more, and goes on by itself. */
static void asked_once_a_turn(void **state)
{
	struct hal_point p;
	struct hal_queue *q, *r;
	struct world w;

	(void)state;
	world_open(&w, "mock");
	world_fill(&w);
	q = add_queue(w.part, 0);
	r = add_queue(w.part, 0);
	OK(submit_cmd(r, numbered(&w, 9), NULL));
	poll_now(&w);
	w.mock->refuse(w.native, 1000, EAGAIN);
	OK(submit_cmd(q, numbered(&w, 1), &p));
	for (int i = 0; i < 5; i++)
		poll_now(&w);
	assert_int_equal(inflight(&w), 1);
	/* So often it has been refused: fewer than the thousand of a loop. */
	w.mock->refuse(w.native, 0, 0);
	poll_now(&w);
	poll_now(&w);
	assert_int_equal(inflight(&w), 2);
	w.mock->complete(w.native, 2, 1);
	OK(hal_wait(&p, 1, 0, HAL_FOREVER));
	OK(hal_queue_destroy(q));
	OK(hal_queue_destroy(r));
	world_close(&w);
}

/* A submission that is refused for a command has waited for nothing: its timelines are
 * free, however many commands and waits there were. */
static void waits_of_a_refused_one(void **state)
{
	static const struct {
		uint32_t cmds, waits;
	} shapes[] = {{1, 1}, {1, 3}, {1, 9}, {2, 3}, {40, 3}};
	struct hal_submit_desc d = HAL_INIT(hal_submit_desc);
	struct hal_point points[9];
	struct hal_cmd cmds[40];
	struct hal_timeline *t;
	struct hal_queue *q;
	struct world w;

	(void)state;
	world_open(&w, "mock");
	world_fill(&w);
	q = add_queue(w.part, 0);
	d.cmds = cmds;
	d.waits = points;
	for (size_t s = 0; s < sizeof(shapes) / sizeof(shapes[0]); s++) {
		OK(hal_timeline_create(w.dev, &t));
		for (uint32_t i = 0; i < 9; i++)
			points[i] = (struct hal_point){t, i};
		for (uint32_t i = 0; i < shapes[s].cmds; i++)
			cmds[i] = numbered(&w, i);
		/* The last of them, behind all that was right. */
		cmds[shapes[s].cmds - 1] = hal_cmd_fill(NULL, 0, 4, 0);
		d.cmd_count = shapes[s].cmds;
		d.wait_count = shapes[s].waits;
		FAILS(hal_submit(q, &d, NULL), -EINVAL, "fill");
		OK(hal_timeline_destroy(t));
	}
	OK(hal_queue_destroy(q));
	world_close(&w);
}

/* ---- which error ----------------------------------------------------------------- */

/* What fails first is what sticks; what failed says EIO, what follows ECANCELED. */
static void order_of_errors(void **state)
{
	static const char *const options[] = {PLUGINS, "hal.inflight=4",
					      "hal.partition_inflight=8", NULL};
	struct hal_submit_desc d = HAL_INIT(hal_submit_desc);
	struct hal_queue_desc qd = HAL_INIT(hal_queue_desc);
	struct hal_completion c[4];
	struct hal_timeline *t[3];
	struct hal_point p[3], s;
	struct hal_queue *q;
	struct hal_cmd cmd;
	struct world w;

	(void)state;
	world_open_with(&w, "mock", options);
	world_fill(&w);
	OK(hal_completions_create(w.dev, 8, &qd.completions));
	OK(hal_queue_create(w.part, &qd, &q));
	for (uint32_t i = 0; i < 3; i++) {
		OK(hal_timeline_create(w.dev, &t[i]));
		cmd = numbered(&w, i);
		s = (struct hal_point){t[i], 1};
		d.cmds = &cmd;
		d.cmd_count = 1;
		d.signals = &s;
		d.signal_count = 1;
		d.tag = i + 10;
		OK(hal_submit(q, &d, &p[i]));
	}
	poll_now(&w);
	assert_int_equal(inflight(&w), 3);
	w.mock->fault(w.native, -EIO, "the first");
	w.mock->fault(w.native, -ENOSPC, "the second");
	w.mock->complete(w.native, 1, 1);
	poll_now(&w);
	for (uint32_t i = 0; i < 3; i++)
		FAILS(hal_wait(&p[i], 1, 0, 0), -EIO, "the first");
	s.timeline = t[0];
	FAILS(hal_wait(&s, 1, 0, 0), -EIO, "the first");
	s.timeline = t[1];
	FAILS(hal_wait(&s, 1, 0, 0), -ECANCELED, "dropped after", "the first");
	s.timeline = t[2];
	FAILS(hal_wait(&s, 1, 0, 0), -ECANCELED, "dropped after", "the first");
	FAILS(hal_timeline_signal(t[2], 5), -ECANCELED, "the first");
	assert_int_equal(hal_completions_read(qd.completions, c, 4, 0), 3);
	assert_int_equal(c[0].status, -EIO);
	assert_int_equal(c[1].status, -ECANCELED);
	assert_int_equal(c[2].status, -ECANCELED);
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(c[i].tag, i + 10);
		assert_int_equal(c[i].value, i + 1);
	}
	assert_int_equal(queue_stats(q).failed, 1);
	assert_int_equal(queue_stats(q).dropped, 2);
	FAILS(submit_cmd(q, numbered(&w, 9), NULL), -EIO, "the first");
	OK(hal_queue_destroy(q));
	OK(hal_completions_destroy(qd.completions));
	for (int i = 0; i < 3; i++)
		OK(hal_timeline_destroy(t[i]));
	world_close(&w);
}

/* The handle before what is asked of it, that before what it is asked with, and the
 * device's state last. */
static void order_of_checks(void **state)
{
	struct hal_partition_desc d = HAL_INIT(hal_partition_desc);
	struct hal_submit_desc s = HAL_INIT(hal_submit_desc);
	const struct hal_cmd nop = hal_cmd_of(HAL_OP_NOP, 0);
	struct hal_cmd cmds[2] = {nop, nop};
	struct hal_point bad[2];
	struct hal_queue *q;
	struct world w;

	(void)state;
	world_open(&w, "mock");
	world_fill(&w);
	q = add_queue(w.part, 0);
	s.flags = 0x100;
	s.reserved = 1;
	s.cmd_count = 5000;
	FAILS(hal_submit(NULL, &s, NULL), -EINVAL, "queue is NULL");
	FAILS(hal_submit(q, &s, NULL), -EINVAL, "flags 0x100");
	s.flags = 0;
	FAILS(hal_submit(q, &s, NULL), -EINVAL, "reserved");
	s.reserved = 0;
	FAILS(hal_submit(q, &s, NULL), -EINVAL, "5000 commands");
	s.cmd_count = 2;
	FAILS(hal_submit(q, &s, NULL), -EINVAL, "cmds is NULL");
	s.cmds = cmds;
	bad[0] = (struct hal_point){NULL, 1};
	bad[1] = (struct hal_point){hal_queue_get_timeline(q), 1};
	cmds[1].op = 99;
	s.waits = &bad[0];
	s.wait_count = 1;
	s.signals = &bad[1];
	s.signal_count = 1;
	FAILS(hal_submit(q, &s, NULL), -EINVAL, "waits[0]");
	s.wait_count = 0;
	FAILS(hal_submit(q, &s, NULL), -EINVAL, "signals[0]");
	s.signal_count = 0;
	FAILS(hal_submit(q, &s, NULL), -EINVAL, "cmds[1]", "99");
	d.flags = 0x80;
	d.units_floor = 100;
	w.mock->lose(w.native);
	OK(submit_cmd(q, numbered(&w, 0), NULL));
	poll_now(&w);
	FAILS(hal_partition_resize(w.part, &d, NULL), -EINVAL, "flags");
	d.flags = 0;
	FAILS(hal_partition_resize(w.part, &d, NULL), -ENODEV, "lost");
	OK(hal_queue_destroy(q));
	w.mock->complete(w.native, 9, 0);
	world_close(&w);
}

/* ---- not yours ------------------------------------------------------------------- */

/* Only its own work moves a queue's or a partition's timeline. */
static void only_its_own_work(void **state)
{
	struct hal_submit_desc d = HAL_INIT(hal_submit_desc);
	struct hal_point of[3], s;
	struct hal_queue *q, *r;
	struct world w;

	(void)state;
	world_open(&w, "mock");
	world_fill(&w);
	q = add_queue(w.part, 0);
	r = add_queue(w.part, 0);
	of[0] = (struct hal_point){hal_queue_get_timeline(q), 1};
	OK(hal_queue_suspend(q, HAL_SUSPEND_DRAIN, &of[1]));
	OK(hal_queue_resume(q));
	of[2] = resize_to(&w, 2, 0);
	w.mock->quiet(w.native, 0);
	poll_now(&w);
	for (int i = 0; i < 3; i++) {
		s = of[i];
		s.value += 5;
		FAILS(hal_timeline_signal(s.timeline, s.value), -EINVAL, "belongs to");
		FAILS(hal_timeline_destroy(s.timeline), -EINVAL, "belongs to");
		d.signals = &s;
		d.signal_count = 1;
		FAILS(hal_submit(r, &d, NULL), -EINVAL, "signals[0]", "belongs to");
		assert_false(reached(s));
	}
	OK(hal_queue_destroy(q));
	OK(hal_queue_destroy(r));
	world_close(&w);
}

/* Work that waits for a suspend or a move keeps whoever tells of it. */
static void control_points_pending(void **state)
{
	struct hal_submit_desc d = HAL_INIT(hal_submit_desc);
	struct hal_partition *other;
	struct hal_point quiet, moved, p;
	struct hal_queue *q, *r;
	struct world w;

	(void)state;
	world_open(&w, "mock");
	world_fill(&w);
	other = add_partition(&w, 1);
	r = add_queue(other, 0);
	q = add_queue(w.part, 0);
	OK(hal_queue_suspend(q, HAL_SUSPEND_DRAIN, &quiet));
	OK(hal_queue_resume(q));
	quiet.value++;
	d.waits = &quiet;
	d.wait_count = 1;
	OK(hal_submit(r, &d, &p));
	poll_now(&w);
	FAILS(hal_queue_destroy(q), -EBUSY, "submitted work waits");
	OK(hal_queue_suspend(q, HAL_SUSPEND_DRAIN, NULL));
	OK(hal_wait(&p, 1, 0, HAL_FOREVER));
	OK(hal_queue_destroy(q));

	moved = resize_to(&w, 2, 0);
	w.mock->quiet(w.native, 0);
	poll_now(&w);
	moved.value++;
	d.waits = &moved;
	OK(hal_submit(r, &d, &p));
	poll_now(&w);
	OK(hal_buffer_destroy(w.buf));
	FAILS(hal_partition_destroy(w.part), -EBUSY, "submitted work waits");
	(void)resize_to(&w, 3, 0);
	FAILS(hal_partition_destroy(w.part), -EBUSY, "being resized");
	w.mock->quiet(w.native, 0);
	OK(hal_wait(&p, 1, 0, HAL_FOREVER));
	OK(hal_queue_destroy(r));
	OK(hal_partition_destroy(other));
	w.buf = NULL;
	world_close(&w);
}

/* ---- gone ------------------------------------------------------------------------ */

static int nothing(const struct hal_ref_call *call)
{
	(void)call;
	return 0;
}

static const struct hal_ref_kernel kernels[] = {
	{.name = "nothing", .fn = nothing, .work = 1}};

/* A handle is dead as soon as its destroy has returned, also while work still uses what
 * was behind it; and its points with it. */
static void dead_at_once(const char *target)
{
	struct hal_submit_desc s = HAL_INIT(hal_submit_desc);
	struct hal_kernel_info ki = HAL_INIT(hal_kernel_info);
	struct hal_stats st = HAL_INIT(hal_stats);
	struct hal_point held, done, own, quiet, moved;
	struct hal_partition_desc pd = HAL_INIT(hal_partition_desc);
	struct hal_completions *ring;
	struct hal_completion c;
	struct hal_sequence *seq;
	struct hal_program *prog;
	struct hal_kernel *k;
	struct hal_timeline *t;
	struct hal_buffer *b;
	struct hal_cmd cmds[2];
	struct ref r;
	uint32_t word;
	int err;

	ref_open_with(&r, target, NULL);
	OK(hal_timeline_create(r.dev, &t));
	b = add_buffer(r.part, 64);
	OK(hal_ref_load(r.dev, kernels, 1, &prog));
	OK(hal_kernel_find(prog, "nothing", &k));
	cmds[0] = hal_cmd_fill(b, 0, 64, 7);
	cmds[1] = hal_cmd_launch(k, NULL, 0);
	held = (struct hal_point){t, 1};
	s.cmds = cmds;
	s.cmd_count = 2;
	OK(hal_sequence_create(r.part, &s, &seq));
	s.waits = &held;
	s.wait_count = 1;
	OK(hal_submit(r.q, &s, &done));

	OK(hal_buffer_destroy(b));
	FAILS(hal_buffer_destroy(b), -EINVAL, "destroyed");
	FAILS(hal_buffer_read(b, 0, &word, 4), -EINVAL, "destroyed");
	assert_int_equal(hal_buffer_get_bytes(b), 0);
	FAILS(submit_cmd(r.q, hal_cmd_fill(b, 0, 64, 7), NULL), -EINVAL, "destroyed");
	OK(hal_program_unload(prog));
	FAILS(hal_program_unload(prog), -EINVAL, "destroyed");
	FAILS(hal_kernel_get_info(k, &ki), -EINVAL, "destroyed");
	FAILS(submit_cmd(r.q, hal_cmd_launch(k, NULL, 0), NULL), -EINVAL, "destroyed");
	OK(hal_sequence_destroy(seq));
	FAILS(hal_sequence_destroy(seq), -EINVAL, "destroyed");
	FAILS(hal_sequence_submit(r.q, seq, NULL, NULL), -EINVAL, "destroyed");
	OK(hal_timeline_signal(t, 1));
	OK(hal_wait(&done, 1, 0, in_ms(NEVER_MS)));
	OK(hal_timeline_destroy(t));
	FAILS(hal_timeline_destroy(t), -EINVAL, "destroyed");
	FAILS(hal_timeline_signal(t, 2), -EINVAL, "destroyed");
	FAILS(hal_wait(&held, 1, 0, 0), -EINVAL, "destroyed");
	FAILS(hal_point_open_fd(&held), -EINVAL, "destroyed");
	(void)hal_timeline_get_value(t, &err);
	assert_int_equal(err, -EINVAL);
	FAILS(hal_submit(r.q, &s, NULL), -EINVAL, "destroyed");
	OK(hal_completions_create(r.dev, 8, &ring));
	OK(hal_completions_destroy(ring));
	FAILS(hal_completions_read(ring, &c, 1, 0), -EINVAL, "destroyed");
	FAILS(hal_completions_destroy(ring), -EINVAL, "destroyed");

	own = (struct hal_point){hal_queue_get_timeline(r.q), 1};
	OK(hal_queue_suspend(r.q, HAL_SUSPEND_DRAIN, &quiet));
	OK(hal_wait(&quiet, 1, 0, in_ms(NEVER_MS)));
	OK(hal_queue_destroy(r.q));
	FAILS(hal_queue_destroy(r.q), -EINVAL, "destroyed");
	FAILS(submit_nop(r.q, NULL), -EINVAL, "destroyed");
	FAILS(hal_queue_get_stats(r.q, &st), -EINVAL, "destroyed");
	FAILS(hal_queue_suspend(r.q, HAL_SUSPEND_DRAIN, NULL), -EINVAL, "destroyed");
	assert_null(hal_queue_get_timeline(r.q));
	FAILS(hal_wait(&own, 1, 0, 0), -EINVAL, "destroyed");
	FAILS(hal_wait(&quiet, 1, 0, 0), -EINVAL, "destroyed");
	pd.units_floor = 3;
	OK(hal_partition_resize(r.part, &pd, &moved));
	OK(hal_wait(&moved, 1, 0, in_ms(NEVER_MS)));
	OK(hal_partition_destroy(r.part));
	FAILS(hal_partition_destroy(r.part), -EINVAL, "destroyed");
	FAILS(hal_partition_get_stats(r.part, &st), -EINVAL, "destroyed");
	FAILS(hal_wait(&moved, 1, 0, 0), -EINVAL, "destroyed");
	OK(hal_close(r.dev));
	FAILS(hal_close(r.dev), -EINVAL, "destroyed");
	FAILS(hal_device_get_stats(r.dev, &st), -EINVAL, "destroyed");
	assert_null(hal_device_get_native(r.dev));
}

/* Memory comes with what somebody has left in it: nobody sees that, nor the buffer if it
 * cannot be cleared. */
static void cleared_or_refused(void **state)
{
	static const char *const targets[] = {"mock?clock=virtual", "mock?clock=real"};
	const char *const options[] = {PLUGINS, "layers.fault=mem_clear:2:EIO", NULL};
	struct hal_buffer_desc d = HAL_INIT(hal_buffer_desc);
	struct hal_buffer *one, *two = NULL;
	uint64_t words[64];

	(void)state;
	d.bytes = sizeof(words);
	for (uint32_t i = 0; i < 2; i++) {
		struct mock_counts counts;
		struct hal_partition *p;
		struct world w;

		world_open_with(&w, targets[i], options);
		p = add_partition(&w, 2);
		OK(hal_buffer_create(p, &d, &one));
		memset(words, 0xff, sizeof(words));
		OK(hal_buffer_read(one, 0, words, sizeof(words)));
		for (uint32_t k = 0; k < 64; k++)
			assert_int_equal(words[k], 0);
		FAILS(hal_buffer_create(p, &d, &two), -EIO,
		      "injected: call 2 of mem_clear");
		assert_null(two);
		assert_int_equal(info_of(p).memory_used, sizeof(words));
		w.mock->counts(w.native, &counts);
		assert_int_equal(counts.mems, 1);
		OK(hal_buffer_create(p, &d, &two));
		OK(hal_buffer_destroy(one));
		OK(hal_buffer_destroy(two));
		two = NULL;
		OK(hal_partition_destroy(p));
		OK(hal_close(w.dev));
	}
}

static void dead_handles_virtual(void **state)
{
	(void)state;
	dead_at_once("ref?clock=virtual");
}

static void dead_handles_real(void **state)
{
	(void)state;
	dead_at_once("ref?clock=real");
}

/* By a device's clock it may have ended before it was given. */
static void ended_early(void **state)
{
	struct hal_queue_desc qd = HAL_INIT(hal_queue_desc);
	struct hal_completion c;
	struct hal_queue *q;
	struct world w;

	(void)state;
	world_open(&w, "mock");
	world_fill(&w);
	OK(hal_completions_create(w.dev, 8, &qd.completions));
	OK(hal_queue_create(w.part, &qd, &q));
	w.mock->advance(w.native, 1000);
	poll_now(&w);
	OK(submit_cmd(q, numbered(&w, 0), NULL));
	poll_now(&w);
	w.mock->tell_early(w.native, 20);
	w.mock->complete(w.native, 1, 1);
	poll_now(&w);
	assert_int_equal(hal_completions_read(qd.completions, &c, 1, 0), 1);
	assert_int_equal(c.status, 0);
	assert_true(c.submit_ns >= 1000);
	assert_int_equal(c.end_ns, c.submit_ns);
	OK(hal_queue_destroy(q));
	OK(hal_completions_destroy(qd.completions));
	world_close(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ended_early),
		cmocka_unit_test(refused_moves),
		cmocka_unit_test(refused_moves_and_quotas),
		cmocka_unit_test(beyond_the_device),
		cmocka_unit_test(lost_with_all_it_had),
		cmocka_unit_test(nothing_behind_a_refused_one),
		cmocka_unit_test(asked_once_a_turn),
		cmocka_unit_test(waits_of_a_refused_one),
		cmocka_unit_test(order_of_errors),
		cmocka_unit_test(order_of_checks),
		cmocka_unit_test(only_its_own_work),
		cmocka_unit_test(control_points_pending),
		cmocka_unit_test(cleared_or_refused),
		cmocka_unit_test(dead_handles_virtual),
		cmocka_unit_test(dead_handles_real),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Queues on a device that ends nothing until it is told: order, limits, failures. */
#include "mock_world.h"

static void at_most_inflight(void **state)
{
	struct world w;
	struct hal_queue *q;
	struct hal_point p[5];

	(void)state;
	world_open(&w, "mock");
	world_fill(&w);
	q = add_queue(w.part, 0);
	for (uint32_t i = 0; i < 5; i++)
		OK(submit_cmd(q, numbered(&w, i), &p[i]));
	assert_int_equal(inflight(&w), 0); /* virtual: nothing moves by itself */
	assert_int_equal(poll_now(&w), 0);
	assert_int_equal(inflight(&w), 2);
	for (uint32_t i = 0; i < 5; i++) {
		struct mock_counts c;
		uint32_t op;

		assert_int_equal(w.mock->peek(w.native, 0, &op), i);
		assert_int_equal(op, HAL_OP_FILL);
		w.mock->complete(w.native, 1, 10);
		assert_int_equal(poll_now(&w), 1);
		/* What is given upon an end is followed by the doorbell, too. */
		w.mock->counts(w.native, &c);
		assert_int_equal(c.unrung, 0);
		assert_true(reached(p[i]));
		assert_false(i < 4 && reached(p[i + 1]));
	}
	assert_int_equal(queue_stats(q).completed, 5);
	assert_int_equal(queue_stats(q).busy_ns, 50);
	assert_int_equal(queue_stats(q).bytes_written, 100);
	OK(hal_queue_destroy(q));
	world_close(&w);
}

/* The text names the queue, also when it is asked for after the queue has gone. */
static void full_by_name(void **state)
{
	static const char name[] = "thirty-one letters are the most"; /* they are */
	struct hal_queue_desc desc = HAL_INIT(hal_queue_desc);
	struct world w;
	struct hal_queue *q;
	struct hal_point p, quiet;
	uint32_t n = 0;

	(void)state;
	_Static_assert(sizeof(name) == sizeof(desc.name), "the longest name");
	world_open(&w, "mock");
	world_fill(&w);
	memcpy(desc.name, name, sizeof(name));
	OK(hal_queue_create(w.part, &desc, &q));
	while (submit_cmd(q, numbered(&w, n), &p) == 0)
		n++;
	assert_int_equal(n, 32);
	assert_int_equal(submit_cmd(q, numbered(&w, 0), &p), -EAGAIN);
	OK(hal_queue_suspend(q, HAL_SUSPEND_DRAIN, &quiet));
	OK(hal_wait(&quiet, 1, 0, HAL_FOREVER));
	OK(hal_queue_destroy(q));
	assert_string_equal(hal_last_error(),
			    "queue 0 \"thirty-one letters are the most\" is full: fewer "
			    "than 1 of its 32 slots are free");
	world_close(&w);
}

static void full(void **state)
{
	struct world w;
	struct hal_queue *q;
	struct hal_point p;
	uint32_t n = 0;
	int err;

	(void)state;
	world_open(&w, "mock");
	world_fill(&w);
	q = add_queue(w.part, 0);
	while ((err = submit_cmd(q, numbered(&w, n), &p)) == 0)
		n++;
	assert_int_equal(n, 32);
	FAILS(submit_cmd(q, numbered(&w, 0), &p), -EAGAIN, "queue 0 is full", "32");
	/* What it asks for takes one more. */
	for (uint32_t asks = 0; asks < 2; asks++) {
		const struct hal_cmd nops[2] = {hal_cmd_of(HAL_OP_NOP, 0),
						hal_cmd_of(HAL_OP_NOP, 0)};
		struct hal_submit_desc d = HAL_INIT(hal_submit_desc);

		d.cmds = nops;
		d.cmd_count = 2;
		d.tag = asks;
		FAILS(hal_submit(q, &d, &p), -EAGAIN, "full",
		      asks ? "fewer than 3 of its 32" : "fewer than 2 of its 32");
	}
	/* A refused submission counts for nothing. */
	assert_int_equal(queue_stats(q).submitted, n);
	FAILS(hal_queue_destroy(q), -EBUSY, "queue 0");
	poll_now(&w);
	w.mock->complete(w.native, 1, 1);
	assert_int_equal(poll_now(&w), 1);
	OK(submit_cmd(q, numbered(&w, n), &p));
	while (inflight(&w) > 0) {
		w.mock->complete(w.native, 2, 1);
		poll_now(&w);
	}
	assert_true(reached(p));
	assert_int_equal(queue_stats(q).completed, n + 1);
	OK(hal_queue_destroy(q));
	world_close(&w);
}

/* Submissions of every size around the end of the ring; order is told by patterns. */
static void sizes_and_wrap(void **state)
{
	struct hal_arg args[16];
	struct hal_cmd cmds[16];
	struct world w;
	struct hal_queue *q;
	struct hal_point p;
	uint32_t next = 0, seen = 0;

	(void)state;
	world_open(&w, "mock");
	world_fill(&w);
	q = add_queue(w.part, 0);
	for (int i = 0; i < 16; i++)
		args[i] = (struct hal_arg){w.buf, 64, 128};
	for (uint32_t round = 0; round < 200; round++) {
		uint32_t n = 1 + round % 15;
		uint32_t commands = n;

		for (uint32_t i = 0; i < n; i++)
			cmds[i] = numbered(&w, next++);
		if (round % 4 == 0)
			cmds[commands++] = hal_cmd_launch(w.k16, args, 16);
		else if (round % 4 == 1)
			cmds[commands++] = hal_cmd_launch(w.k2, args, 2);
		OK(submit_n(q, cmds, commands, &p));
		poll_now(&w);
		while (inflight(&w) > 0) {
			uint32_t op, pattern = w.mock->peek(w.native, 0, &op);

			if (op == HAL_OP_FILL)
				assert_int_equal(pattern, seen++);
			else
				assert_int_equal(op, HAL_OP_LAUNCH);
			w.mock->complete(w.native, 1, 1);
			poll_now(&w);
		}
		assert_true(reached(p));
		assert_int_equal(p.value, round + 1);
	}
	assert_int_equal(seen, next);
	OK(hal_queue_destroy(q));
	world_close(&w);
}

static void all_or_nothing(void **state)
{
	struct hal_cmd cmds[3];
	struct world w;
	struct hal_queue *q;
	struct hal_point p;

	(void)state;
	world_open(&w, "mock");
	world_fill(&w);
	q = add_queue(w.part, 0);
	cmds[0] = numbered(&w, 0);
	cmds[1] = hal_cmd_fill(w.buf, 4090, 64, 0);
	cmds[2] = numbered(&w, 2);
	FAILS(submit_n(q, cmds, 3, &p), -EINVAL, "cmds[1]", "4090", "64");
	poll_now(&w);
	assert_int_equal(inflight(&w), 0);
	assert_int_equal(queue_stats(q).submitted, 0);
	cmds[1].fill.offset = 0;
	OK(submit_n(q, cmds, 3, &p));
	assert_int_equal(p.value, 1);
	poll_now(&w);
	w.mock->complete(w.native, 2, 1);
	poll_now(&w);
	assert_false(reached(p));
	w.mock->complete(w.native, 1, 1);
	poll_now(&w);
	assert_true(reached(p));
	OK(hal_queue_destroy(q));
	world_close(&w);
}

/* The device has no room for a while: the engine tries again, nothing is lost. */
static void device_full(void **state)
{
	struct world w;
	struct hal_queue *q;
	struct hal_point p[3];

	(void)state;
	world_open(&w, "mock");
	world_fill(&w);
	q = add_queue(w.part, 0);
	w.mock->refuse(w.native, 3, EAGAIN);
	for (uint32_t i = 0; i < 3; i++)
		OK(submit_cmd(q, numbered(&w, i), &p[i]));
	poll_now(&w);
	assert_int_equal(inflight(&w), 0);
	for (int i = 0; i < 4; i++)
		poll_now(&w);
	assert_int_equal(inflight(&w), 2);
	w.mock->complete(w.native, 2, 1);
	poll_now(&w);
	w.mock->complete(w.native, 1, 1);
	poll_now(&w);
	assert_true(reached(p[2]));
	assert_int_equal(queue_stats(q).completed, 3);
	OK(hal_queue_destroy(q));
	world_close(&w);
}

static void fault_drops_the_rest(void **state)
{
	struct world w;
	struct hal_queue *q;
	struct hal_point p[4];
	struct hal_stats s;
	int err;

	(void)state;
	world_open(&w, "mock");
	world_fill(&w);
	q = add_queue(w.part, 0);
	for (uint32_t i = 0; i < 4; i++)
		OK(submit_cmd(q, numbered(&w, i), &p[i]));
	poll_now(&w);
	w.mock->complete(w.native, 1, 5);
	poll_now(&w);
	w.mock->fault(w.native, -EIO, "page 0x1000 is not mapped");
	poll_now(&w);
	/* One is still on the device: until it ends the queue is not idle. */
	FAILS(hal_queue_destroy(q), -EBUSY, "queue");
	w.mock->complete(w.native, 1, 5);
	poll_now(&w);
	FAILS(hal_wait(&p[1], 1, 0, 0), -EIO, "page 0x1000", "fill", "queue 0");
	FAILS(hal_wait(&p[3], 1, 0, HAL_FOREVER), -EIO, "page 0x1000");
	OK(hal_wait(&p[0], 1, 0, 0)); /* reached before it failed */
	FAILS(submit_cmd(q, numbered(&w, 9), NULL), -EIO, "page 0x1000");
	assert_int_equal(hal_timeline_get_value(hal_queue_get_timeline(q), &err), 1);
	assert_int_equal(err, -EIO);
	s = queue_stats(q);
	assert_int_equal(s.submitted, 4);
	assert_int_equal(s.completed, 1);
	assert_int_equal(s.failed, 1);
	assert_int_equal(s.dropped, 2);
	OK(hal_queue_destroy(q));
	world_close(&w);
}

/* The device refuses a command outright: it fails behind those before it. */
static void refused_in_order(void **state)
{
	struct world w;
	struct hal_queue *q;
	struct hal_point p[3];

	(void)state;
	world_open(&w, "mock");
	world_fill(&w);
	q = add_queue(w.part, 0);
	OK(submit_cmd(q, numbered(&w, 0), &p[0]));
	poll_now(&w);
	w.mock->refuse(w.native, 1, ENOSPC);
	OK(submit_cmd(q, numbered(&w, 1), &p[1]));
	OK(submit_cmd(q, numbered(&w, 2), &p[2]));
	poll_now(&w);
	/* The first is running; its point can still be reached. */
	assert_int_equal(inflight(&w), 1);
	FAILS(hal_wait(&p[0], 1, 0, 0), -ETIMEDOUT, "point 1");
	w.mock->complete(w.native, 1, 1);
	poll_now(&w);
	assert_true(reached(p[0]));
	FAILS(hal_wait(&p[1], 1, 0, HAL_FOREVER), -ENOSPC, "told to refuse");
	assert_int_equal(queue_stats(q).dropped, 1);
	OK(hal_queue_destroy(q));
	world_close(&w);
}

static void device_lost(void **state)
{
	struct world w;
	struct hal_queue *q, *r;
	struct hal_point p, held;

	(void)state;
	world_open(&w, "mock");
	world_fill(&w);
	q = add_queue(w.part, 0);
	r = add_queue(w.part, 0);
	OK(submit_cmd(q, numbered(&w, 0), &p));
	OK(submit_cmd(r, numbered(&w, 1), NULL));
	poll_now(&w);
	OK(hal_queue_suspend(r, HAL_SUSPEND_KILL, &held));
	w.mock->lose(w.native);
	poll_now(&w);
	FAILS(hal_wait(&p, 1, 0, HAL_FOREVER), -EIO, "lost", "fell off the bus");
	assert_true(reached(held)); /* what is lost runs no more */
	OK(hal_queue_destroy(q));
	OK(hal_queue_destroy(r));
	/* The double still has what it was given. */
	w.mock->complete(w.native, 2, 0);
	world_close(&w);
}

/* What submitted work uses may be destroyed at once; it goes when the work has ended. */
static void destroy_after_submit(void **state)
{
	static const char image[] = "own2";
	struct hal_arg args[2];
	struct mock_counts c;
	struct world w;
	struct hal_queue *q;
	struct hal_buffer *b;
	struct hal_program *prog;
	struct hal_kernel *k;
	struct hal_point p;

	(void)state;
	world_open(&w, "mock");
	world_fill(&w);
	q = add_queue(w.part, 0);
	b = add_buffer(w.part, 256);
	OK(hal_program_load(w.dev, image, sizeof(image) - 1, &prog));
	OK(hal_kernel_find(prog, "own2", &k));
	args[0] = (struct hal_arg){b, 0, 0};
	args[1] = (struct hal_arg){NULL, 7, 0};
	OK(submit_cmd(q, hal_cmd_launch(k, args, 2), &p));
	OK(hal_buffer_destroy(b));
	OK(hal_program_unload(prog));
	/* To the application they are gone. */
	FAILS(hal_buffer_destroy(b), -EINVAL, "buffer", "destroyed");
	FAILS(submit_cmd(q, hal_cmd_launch(k, args, 2), NULL), -EINVAL, "kernel");
	poll_now(&w);
	w.mock->counts(w.native, &c);
	assert_int_equal(c.mems, 2);
	assert_int_equal(c.programs, 2);
	assert_int_equal(c.inflight, 1);
	w.mock->complete(w.native, 1, 1);
	poll_now(&w);
	w.mock->counts(w.native, &c);
	assert_int_equal(c.mems, 1);
	assert_int_equal(c.programs, 1);
	assert_int_equal(c.bound, 0);
	assert_true(reached(p));
	OK(hal_queue_destroy(q));
	world_close(&w);
}

/* ... also when the work fails, and when the queue goes before anybody looks. */
static void destroy_after_failure(void **state)
{
	struct mock_counts c;
	struct world w;
	struct hal_queue *q, *other;
	struct hal_buffer *b;

	(void)state;
	world_open(&w, "mock");
	world_fill(&w);
	q = add_queue(w.part, 0);
	other = add_queue(w.part, 0);
	b = add_buffer(w.part, 256);
	OK(submit_cmd(q, hal_cmd_fill(b, 0, 64, 1), NULL));
	OK(submit_cmd(q, hal_cmd_fill(b, 0, 64, 2), NULL));
	OK(submit_cmd(other, numbered(&w, 1), NULL));
	poll_now(&w);
	OK(hal_buffer_destroy(b));
	w.mock->fault(w.native, -EIO, "bad");
	poll_now(&w);
	OK(hal_queue_destroy(q));
	w.mock->counts(w.native, &c);
	assert_int_equal(c.mems, 2); /* the other queue was busy then, too */
	w.mock->complete(w.native, 1, 1);
	poll_now(&w);
	w.mock->counts(w.native, &c);
	assert_int_equal(c.mems, 1);
	OK(hal_queue_destroy(other));
	world_close(&w);
}

/* Constants of a program are charged once a partition. */
static void bound_once(void **state)
{
	struct hal_partition_desc d = HAL_INIT(hal_partition_desc);
	struct hal_partition_info i = HAL_INIT(hal_partition_info);
	struct hal_partition *small;
	struct mock_counts c;
	struct world w;
	struct hal_queue *q, *r;

	(void)state;
	world_open(&w, "mock");
	world_fill(&w);
	d.units_floor = 1;
	d.memory_bytes = MOCK_CONSTANTS + 64;
	OK(hal_partition_create(w.dev, &d, &small));
	q = add_queue(small, 0);
	r = add_queue(small, 0);
	for (int n = 0; n < 3; n++) {
		OK(submit_cmd(q, hal_cmd_launch(w.k0, NULL, 0), NULL));
		OK(submit_cmd(r, hal_cmd_launch(w.k0, NULL, 0), NULL));
	}
	w.mock->counts(w.native, &c);
	assert_int_equal(c.bound, 1);
	OK(hal_partition_get_info(small, &i));
	assert_int_equal(i.memory_used, MOCK_CONSTANTS);
	do {
		poll_now(&w);
		w.mock->complete(w.native, 2, 1);
	} while (poll_now(&w) > 0);
	OK(hal_queue_destroy(q));
	OK(hal_queue_destroy(r));
	OK(hal_partition_destroy(small));
	w.mock->counts(w.native, &c);
	assert_int_equal(c.bound, 0);
	/* No room for them: the launch is refused and nothing is left bound. */
	d.memory_bytes = MOCK_CONSTANTS - 1;
	OK(hal_partition_create(w.dev, &d, &small));
	q = add_queue(small, 0);
	FAILS(submit_cmd(q, hal_cmd_launch(w.k0, NULL, 0), NULL), -ENOSPC, "4096",
	      "4095");
	w.mock->counts(w.native, &c);
	assert_int_equal(c.bound, 0);
	OK(hal_queue_destroy(q));
	OK(hal_partition_destroy(small));
	world_close(&w);
}

static void wrong_arguments(void **state)
{
	struct hal_arg args[2];
	struct world w;
	struct hal_partition *other;
	struct hal_queue *q;
	struct hal_buffer *theirs;
	struct hal_cmd cmd;

	(void)state;
	world_open(&w, "mock");
	world_fill(&w);
	other = add_partition(&w, 1);
	theirs = add_buffer(other, 4096);
	q = add_queue(w.part, 0);
	args[0] = (struct hal_arg){w.buf, 0, 0};
	args[1] = (struct hal_arg){w.buf, 0, 0};
	FAILS(submit_cmd(q, hal_cmd_launch(w.k2, args, 1), NULL), -EINVAL, "two2", "2",
	      "1");
	FAILS(submit_cmd(q, hal_cmd_launch(w.k2, NULL, 2), NULL), -EINVAL, "args");
	FAILS(submit_cmd(q, hal_cmd_launch(NULL, args, 2), NULL), -EINVAL, "kernel");
	args[1].buffer = theirs;
	FAILS(submit_cmd(q, hal_cmd_launch(w.k2, args, 2), NULL), -EPERM, "argument 1",
	      "partition");
	args[1] = (struct hal_arg){w.buf, 4097, 0};
	FAILS(submit_cmd(q, hal_cmd_launch(w.k2, args, 2), NULL), -EINVAL, "argument 1",
	      "4097");
	args[1] = (struct hal_arg){w.buf, 4000, 97};
	FAILS(submit_cmd(q, hal_cmd_launch(w.k2, args, 2), NULL), -EINVAL, "97", "4000");
	args[1] = (struct hal_arg){w.buf, UINT64_MAX, 2};
	FAILS(submit_cmd(q, hal_cmd_launch(w.k2, args, 2), NULL), -EINVAL, "argument 1");
	args[1] = (struct hal_arg){w.buf, 0, UINT64_MAX};
	FAILS(submit_cmd(q, hal_cmd_launch(w.k2, args, 2), NULL), -EINVAL, "argument 1");
	args[1] = (struct hal_arg){NULL, 1, 0};
	args[0].bytes = 63;
	FAILS(submit_cmd(q, hal_cmd_launch(w.k2, args, 2), NULL), -EINVAL, "argument 0",
	      "63", "64");
	args[0] = (struct hal_arg){NULL, 0, 100};
	FAILS(submit_cmd(q, hal_cmd_launch(w.k2, args, 2), NULL), -EINVAL, "argument 0",
	      "scalar");
	cmd = hal_cmd_barrier();
	cmd.flags = 2;
	FAILS(submit_cmd(q, cmd, NULL), -EINVAL, "flags");
	cmd = hal_cmd_launch(w.k0, NULL, 0);
	cmd.flags = 2;
	FAILS(submit_cmd(q, cmd, NULL), -EINVAL, "flags");
	FAILS(submit_cmd(q, hal_cmd_copy(w.buf, 0, w.buf, 60, 64), NULL), -EINVAL,
	      "overlap");
	FAILS(submit_cmd(q, hal_cmd_timestamp(w.buf, 0), NULL), -ENOTSUP, "timestamp");
	FAILS(hal_submit(NULL, NULL, NULL), -EINVAL, "queue", "NULL");
	FAILS(hal_submit(q, NULL, NULL), -EINVAL, "NULL");
	assert_int_equal(queue_stats(q).submitted, 0);
	OK(hal_queue_destroy(q));
	OK(hal_buffer_destroy(theirs));
	OK(hal_partition_destroy(other));
	world_close(&w);
}

/* Priority first, then in turn; one partition does not wait for another. */
static void priority_then_turns(void **state)
{
	static const uint32_t order[] = {20, 21, 10, 0, 11, 1};
	const char *const options[] = {PLUGINS, "hal.inflight=1",
				       "hal.partition_inflight=1", NULL};
	struct hal_queue *q[3];
	struct world w;

	(void)state;
	world_open_with(&w, "mock", options);
	world_fill(&w);
	q[0] = add_queue(w.part, 0);
	q[1] = add_queue(w.part, 0);
	q[2] = add_queue(w.part, 5);
	/* Announced in this order: 1, 0, 2. */
	OK(submit_cmd(q[1], numbered(&w, 10), NULL));
	OK(submit_cmd(q[1], numbered(&w, 11), NULL));
	OK(submit_cmd(q[0], numbered(&w, 0), NULL));
	OK(submit_cmd(q[0], numbered(&w, 1), NULL));
	OK(submit_cmd(q[2], numbered(&w, 20), NULL));
	OK(submit_cmd(q[2], numbered(&w, 21), NULL));
	for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++) {
		uint32_t op;

		poll_now(&w);
		assert_int_equal(inflight(&w), 1);
		assert_int_equal(w.mock->peek(w.native, 0, &op), order[i]);
		w.mock->complete(w.native, 1, 1);
	}
	poll_now(&w);
	for (int i = 0; i < 3; i++)
		OK(hal_queue_destroy(q[i]));
	world_close(&w);
}

struct calls {
	struct world *w;
	struct hal_queue *q;
	struct hal_timeline *t;
	uint32_t count;
	int look, wait, close, poll, destroy, submit, signal;
};

static void host_fn(void *user)
{
	struct calls *c = user;
	struct hal_point p = {hal_queue_get_timeline(c->q), 1};

	c->count++;
	c->look = hal_wait(&p, 1, 0, 0);
	c->wait = hal_wait(&p, 1, 0, HAL_FOREVER);
	c->poll = hal_device_poll(c->w->dev, 0);
	c->close = hal_close(c->w->dev);
	c->destroy = hal_queue_destroy(c->q);
	c->submit = submit_cmd(c->q, numbered(c->w, 3), NULL);
	c->signal = hal_timeline_signal(c->t, 4);
}

static void callbacks(void **state)
{
	struct hal_cmd cmds[3];
	struct calls c;
	struct world w;
	struct hal_point p;
	uint32_t op;

	(void)state;
	world_open(&w, "mock");
	world_fill(&w);
	memset(&c, 0, sizeof(c));
	c.w = &w;
	c.q = add_queue(w.part, 0);
	OK(hal_timeline_create(w.dev, &c.t));
	cmds[0] = numbered(&w, 1);
	cmds[1] = hal_cmd_host(host_fn, &c);
	cmds[2] = numbered(&w, 2);
	OK(submit_n(c.q, cmds, 3, &p));
	poll_now(&w);
	assert_int_equal(c.count, 0); /* only after what is before it */
	assert_int_equal(inflight(&w), 1);
	w.mock->complete(w.native, 1, 1);
	poll_now(&w);
	assert_int_equal(c.count, 1);
	assert_int_equal(c.look, -ETIMEDOUT);
	assert_int_equal(c.wait, -EDEADLK);
	assert_int_equal(c.poll, -EDEADLK);
	assert_int_equal(c.close, -EDEADLK);
	assert_int_equal(c.destroy, -EBUSY); /* it is in it */
	assert_int_equal(c.submit, 0);
	assert_int_equal(c.signal, 0);
	assert_int_equal(hal_timeline_get_value(c.t, NULL), 4);
	poll_now(&w);
	assert_int_equal(w.mock->peek(w.native, 0, &op), 2);
	assert_int_equal(w.mock->peek(w.native, 1, &op), 3);
	w.mock->complete(w.native, 2, 1);
	poll_now(&w);
	assert_true(reached(p));
	assert_int_equal(queue_stats(c.q).completed, 4);
	OK(hal_timeline_destroy(c.t));
	OK(hal_queue_destroy(c.q));
	world_close(&w);
}

/* A queue that was picked, but found the device full, hides no queue that has waited
 * longer than policy.timeout_ms allows. */
static void full_hides_nobody(void **state)
{
	static const char *const options[] = {PLUGINS, "hal.partition_inflight=1",
					      "policy.name=priority",
					      "policy.timeout_ms=1", NULL};
	struct hal_queue *first, *low, *lowest, *high;
	struct hal_point done, last;
	struct world w;
	uint32_t op;

	(void)state;
	world_open_with(&w, "mock", options);
	world_fill(&w);
	first = add_queue(w.part, 9);
	low = add_queue(w.part, 0);
	lowest = add_queue(w.part, -1);
	high = add_queue(w.part, 9);
	OK(submit_cmd(first, numbered(&w, 1), NULL));
	poll_now(&w);
	OK(submit_cmd(low, numbered(&w, 2), NULL));
	OK(submit_cmd(lowest, numbered(&w, 4), &last)); /* so that low is not alone */
	poll_now(&w);
	w.mock->advance(w.native, 900000);
	poll_now(&w);
	OK(submit_cmd(high, numbered(&w, 3), &done));
	poll_now(&w);
	w.mock->refuse(w.native, UINT32_MAX, EAGAIN);
	w.mock->complete(w.native, 1, 1);
	poll_now(&w);
	assert_int_equal(inflight(&w), 0);
	w.mock->advance(w.native, 200000);
	poll_now(&w);
	w.mock->refuse(w.native, 0, 0);
	poll_now(&w);
	assert_int_equal(inflight(&w), 1);
	assert_int_equal(w.mock->peek(w.native, 0, &op), 2);
	w.mock->complete(w.native, 1, 1);
	poll_now(&w);
	for (int i = 0; i < 2; i++) {
		w.mock->complete(w.native, 1, 1);
		poll_now(&w);
	}
	assert_true(reached(done));
	assert_true(reached(last));
	OK(hal_queue_destroy(first));
	OK(hal_queue_destroy(low));
	OK(hal_queue_destroy(lowest));
	OK(hal_queue_destroy(high));
	world_close(&w);
}

/* The device's priority of a queue goes by its class first. */
static void class_in_device_priority(void **state)
{
	static const struct {
		uint16_t service_class;
		int32_t priority, device;
	} cases[] = {
		{HAL_CLASS_NORMAL, 0, 0},        {HAL_CLASS_NORMAL, 7, 7},
		{HAL_CLASS_NORMAL, -7, -7},      {HAL_CLASS_LATENCY, 0, 1},
		{HAL_CLASS_LATENCY, 7, 7},       {HAL_CLASS_LATENCY, -7, 1},
		{HAL_CLASS_BEST_EFFORT, 0, 0},   {HAL_CLASS_BEST_EFFORT, 7, 0},
		{HAL_CLASS_BEST_EFFORT, -7, -7},
	};
	struct world w;

	(void)state;
	world_open(&w, "mock");
	world_fill(&w);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct hal_queue_desc d = HAL_INIT(hal_queue_desc);
		struct mock_counts c;
		struct hal_queue *q;

		d.priority = cases[i].priority;
		d.service_class = cases[i].service_class;
		OK(hal_queue_create(w.part, &d, &q));
		w.mock->counts(w.native, &c);
		if (c.priority != cases[i].device)
			fail_msg("case %zu: %d, not %d", i, c.priority, cases[i].device);
		OK(hal_queue_destroy(q));
	}
	world_close(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(at_most_inflight),
		cmocka_unit_test(full),
		cmocka_unit_test(full_by_name),
		cmocka_unit_test(sizes_and_wrap),
		cmocka_unit_test(all_or_nothing),
		cmocka_unit_test(device_full),
		cmocka_unit_test(fault_drops_the_rest),
		cmocka_unit_test(refused_in_order),
		cmocka_unit_test(device_lost),
		cmocka_unit_test(destroy_after_submit),
		cmocka_unit_test(destroy_after_failure),
		cmocka_unit_test(bound_once),
		cmocka_unit_test(wrong_arguments),
		cmocka_unit_test(priority_then_turns),
		cmocka_unit_test(callbacks),
		cmocka_unit_test(full_hides_nobody),
		cmocka_unit_test(class_in_device_priority),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

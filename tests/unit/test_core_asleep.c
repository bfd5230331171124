/* SPDX-License-Identifier: Apache-2.0 */
/* clock=real: an engine that sleeps is woken by all that needs it, and by nothing else.
 */
#include "ref_world.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <hal/ext/memory.h>
#include <hal/ref.h>

#include "command/queue.h"
#include "command/timeline.h"
#include "loop/device.h"

/* Its thread has gone to sleep: nothing but a call, or a time, brings it back. */
static void falls_asleep(struct hal_device *dev)
{
	int64_t until = in_ms(NEVER_MS);

	while (atomic_load(&dev->inbox.sleeping) == 0) {
		if (now_ns() > until)
			fail_msg("the engine does not fall asleep");
		sched_yield();
	}
}

/* ---- each call wakes it ---------------------------------------------------------- */

static int nothing(const struct hal_ref_call *call)
{
	(void)call;
	return 0;
}

static const struct hal_ref_kernel kernels[] = {
	{.name = "nothing", .fn = nothing, .work = 1}};

struct things {
	struct ref r;
	struct hal_timeline *t;
	uint64_t value;
	struct hal_buffer *buf, *mapped;
	struct hal_program *prog;
	struct hal_kernel *k;
	struct hal_sequence *seq;
	struct hal_queue *q2;
	struct hal_partition *p2;
	struct hal_completions *ring;
};

static void come(void *user)
{
	(void)user;
}

static int c_submit(struct things *a)
{
	struct hal_point p;
	int err = submit_nop(a->r.q, &p);

	return err != 0 ? err : wait_ms(p, NEVER_MS);
}

static int c_many(struct things *a)
{
	const struct hal_cmd nop = hal_cmd_of(HAL_OP_NOP, 0);
	struct hal_cmd cmds[40];
	struct hal_point p;
	int err;

	for (int i = 0; i < 40; i++)
		cmds[i] = nop;
	err = submit_n(a->r.q, cmds, 40, &p);
	return err != 0 ? err : wait_ms(p, NEVER_MS);
}

static int c_launch(struct things *a)
{
	struct hal_point p;
	int err = submit_cmd(a->r.q, hal_cmd_launch(a->k, NULL, 0), &p);

	return err != 0 ? err : wait_ms(p, NEVER_MS);
}

static int c_sequence(struct things *a)
{
	struct hal_point p;
	int err = hal_sequence_submit(a->r.q, a->seq, NULL, &p);

	return err != 0 ? err : wait_ms(p, NEVER_MS);
}

static int c_callback(struct things *a)
{
	struct hal_point p;
	int err = submit_cmd(a->r.q, hal_cmd_host(come, NULL), &p);

	return err != 0 ? err : wait_ms(p, NEVER_MS);
}

static int c_point_fd(struct things *a)
{
	struct hal_point p;
	struct pollfd f = {.events = POLLIN};
	int err = submit_nop(a->r.q, &p);

	if (err != 0)
		return err;
	f.fd = hal_point_open_fd(&p);
	if (f.fd < 0)
		return f.fd;
	err = poll(&f, 1, NEVER_MS) == 1 ? 0 : -ETIMEDOUT;
	close(f.fd);
	return err;
}

static int c_completions(struct things *a)
{
	struct hal_completion c;
	int err = submit_nop(a->q2, NULL);

	if (err == 0)
		err = hal_completions_read(a->ring, &c, 1, in_ms(NEVER_MS));
	return err == 1 ? 0 : err;
}

/* Somebody waits for a value that the host signals: the queue, a thread's fd. */
static int c_signal(struct things *a)
{
	struct hal_submit_desc d = HAL_INIT(hal_submit_desc);
	struct hal_point at = {a->t, ++a->value}, p;
	int err;

	d.waits = &at;
	d.wait_count = 1;
	err = hal_submit(a->r.q, &d, &p);
	if (err != 0)
		return err;
	falls_asleep(a->r.dev);
	err = hal_timeline_signal(a->t, a->value);
	return err != 0 ? err : wait_ms(p, NEVER_MS);
}

static int c_signal_fd(struct things *a)
{
	const struct hal_point at = {a->t, ++a->value};
	struct pollfd f = {.events = POLLIN};
	int err;

	f.fd = hal_point_open_fd(&at);
	if (f.fd < 0)
		return f.fd;
	falls_asleep(a->r.dev);
	err = hal_timeline_signal(a->t, a->value);
	if (err == 0)
		err = poll(&f, 1, NEVER_MS) == 1 ? 0 : -ETIMEDOUT;
	close(f.fd);
	return err;
}

static int c_resume(struct things *a)
{
	struct hal_point p, quiet;
	int err = hal_queue_suspend(a->r.q, HAL_SUSPEND_DRAIN, &quiet);

	if (err == 0)
		err = wait_ms(quiet, NEVER_MS);
	if (err == 0)
		err = submit_nop(a->r.q, &p);
	if (err != 0)
		return err;
	falls_asleep(a->r.dev);
	err = hal_queue_resume(a->r.q);
	return err != 0 ? err : wait_ms(p, NEVER_MS);
}

static int c_queue(struct things *a)
{
	struct hal_queue_desc d = HAL_INIT(hal_queue_desc);
	struct hal_queue *q;
	int err = hal_queue_create(a->r.part, &d, &q);

	if (err != 0)
		return err;
	falls_asleep(a->r.dev);
	return hal_queue_destroy(q);
}

static int c_partition(struct things *a)
{
	struct hal_partition_desc d = HAL_INIT(hal_partition_desc);
	struct hal_partition *p;
	int err;

	d.units_floor = 1;
	err = hal_partition_create(a->r.dev, &d, &p);
	if (err != 0)
		return err;
	falls_asleep(a->r.dev);
	return hal_partition_destroy(p);
}

static int c_resize(struct things *a)
{
	struct hal_partition_desc d = HAL_INIT(hal_partition_desc);
	struct hal_point p;
	int err;

	d.units_floor = 2;
	err = hal_partition_resize(a->p2, &d, &p);
	return err != 0 ? err : wait_ms(p, NEVER_MS);
}

static int c_partition_info(struct things *a)
{
	struct hal_partition_info i = HAL_INIT(hal_partition_info);

	return hal_partition_get_info(a->r.part, &i);
}

static int c_buffer(struct things *a)
{
	struct hal_buffer_desc d = HAL_INIT(hal_buffer_desc);
	struct hal_buffer *b;
	int err;

	d.bytes = 64;
	err = hal_buffer_create(a->r.part, &d, &b);
	if (err != 0)
		return err;
	falls_asleep(a->r.dev);
	return hal_buffer_destroy(b);
}

static int c_copy(struct things *a)
{
	uint32_t word = 5;
	int err = hal_buffer_write(a->buf, 0, &word, 4);

	if (err != 0)
		return err;
	falls_asleep(a->r.dev);
	return hal_buffer_read(a->buf, 0, &word, 4);
}

static int c_map(struct things *a)
{
	void *at;
	int err = hal_buffer_map(a->buf, &at);

	if (err != 0)
		return err;
	falls_asleep(a->r.dev);
	return hal_buffer_unmap(a->buf);
}

static int c_recolor(struct things *a)
{
	struct hal_point moved;
	int err = hal_buffer_recolor(a->buf, a->r.q, 2, NULL, &moved);

	return err != 0 ? err : wait_ms(moved, NEVER_MS);
}

static int c_host_memory(struct things *a)
{
	static uint8_t memory[64];
	struct hal_buffer *host, *mine;
	struct hal_cmd cmd[2];
	struct hal_point p[2];
	void *at;
	int err = hal_host_alloc(a->r.part, 64, &host, &at);

	if (err == 0)
		err = hal_host_register(a->r.part, memory, 64, &mine);
	if (err != 0)
		return err;
	cmd[0] = hal_cmd_write(a->buf, 0, host, 0, 64);
	cmd[1] = hal_cmd_read(mine, 0, a->buf, 0, 64);
	for (int i = 0; err == 0 && i < 2; i++) {
		falls_asleep(a->r.dev);
		err = submit_cmd(a->r.q, cmd[i], &p[i]);
		if (err == 0)
			err = wait_ms(p[i], NEVER_MS);
	}
	falls_asleep(a->r.dev);
	if (err == 0)
		err = hal_buffer_destroy(mine);
	falls_asleep(a->r.dev);
	return err != 0 ? err : hal_buffer_destroy(host);
}

static int c_program(struct things *a)
{
	struct hal_program_info info = HAL_INIT(hal_program_info);
	struct hal_program *p;
	int err = hal_ref_load(a->r.dev, kernels, 1, &p);

	if (err != 0)
		return err;
	falls_asleep(a->r.dev);
	err = hal_program_get_info(p, &info);
	if (err != 0)
		return err;
	falls_asleep(a->r.dev);
	return hal_program_unload(p);
}

static int c_timeline(struct things *a)
{
	struct hal_timeline *t;
	int err = hal_timeline_create(a->r.dev, &t);

	if (err != 0)
		return err;
	falls_asleep(a->r.dev);
	return hal_timeline_destroy(t);
}

static int c_info(struct things *a)
{
	struct hal_device_info i = HAL_INIT(hal_device_info);

	return hal_device_get_info(a->r.dev, &i);
}

static int c_policy(struct things *a)
{
	struct hal_policy_info i = HAL_INIT(hal_policy_info);
	int err = hal_device_set_policy(a->r.dev, "rr", NULL);

	if (err != 0)
		return err;
	falls_asleep(a->r.dev);
	return hal_device_get_policy(a->r.dev, &i);
}

static int c_trace(struct things *a)
{
	int err = hal_trace_start(a->r.dev, "/dev/null");

	if (err != 0)
		return err;
	falls_asleep(a->r.dev);
	return hal_trace_stop(a->r.dev);
}

static int c_extension(struct things *a)
{
	return hal_device_get_extension(a->r.dev, "ref") != NULL ? 0 : -EINVAL;
}

/* A thread that waits says so to the engine. */
static void *signal_after(void *arg)
{
	struct things *a = arg;

	while (atomic_load(&a->t->threads) == 0)
		sched_yield();
	spin(20000);
	return hal_timeline_signal(a->t, a->value) == 0 ? arg : NULL;
}

static int c_wait(struct things *a)
{
	struct hal_point p = {a->t, ++a->value};
	pthread_t thread;
	void *good;
	int err;

	if (pthread_create(&thread, NULL, signal_after, a) != 0)
		return -EAGAIN;
	err = wait_ms(p, NEVER_MS);
	pthread_join(thread, &good);
	return good == NULL ? -EINVAL : err;
}

static int c_device_time(struct things *a)
{
	struct hal_point p = {a->t, a->value + 1};
	int64_t at = (int64_t)hal_device_get_time(a->r.dev) + 2000000;
	int err = hal_wait(&p, 1, HAL_WAIT_DEVICE_TIME, at);

	return err == -ETIMEDOUT && (int64_t)hal_device_get_time(a->r.dev) >= at
		       ? 0
		       : err - 1;
}

/* Several at once, of which the last comes first. */
static int c_held(struct things *a)
{
	struct hal_submit_desc d = HAL_INIT(hal_submit_desc);
	uint64_t now = hal_device_get_time(a->r.dev);
	struct hal_point p[2];
	int err;

	d.not_before_ns = now + 4000000;
	err = hal_submit(a->r.q, &d, &p[0]);
	d.not_before_ns = now + 2000000;
	if (err == 0)
		err = hal_submit(a->q2, &d, &p[1]);
	if (err == 0)
		err = hal_wait(p, 2, 0, in_ms(NEVER_MS));
	if (err == 0 && hal_device_get_time(a->r.dev) < now + 4000000)
		err = -EAGAIN;
	if (err == 0) {
		struct hal_completion c;

		err = hal_completions_read(a->ring, &c, 1, 0) == 1 ? 0 : -ENOENT;
	}
	return err;
}

static const struct {
	const char *name;
	int (*call)(struct things *a);
} calls[] = {
	{"hal_submit", c_submit},
	{"hal_submit of 40 commands", c_many},
	{"hal_submit of a launch", c_launch},
	{"hal_sequence_submit", c_sequence},
	{"hal_submit of a callback", c_callback},
	{"hal_point_open_fd", c_point_fd},
	{"hal_completions_read", c_completions},
	{"hal_timeline_signal for a queue", c_signal},
	{"hal_timeline_signal for an fd", c_signal_fd},
	{"hal_queue_suspend, hal_queue_resume", c_resume},
	{"hal_queue_create, hal_queue_destroy", c_queue},
	{"hal_partition_create, hal_partition_destroy", c_partition},
	{"hal_partition_resize", c_resize},
	{"hal_partition_get_info", c_partition_info},
	{"hal_buffer_create, hal_buffer_destroy", c_buffer},
	{"hal_buffer_write, hal_buffer_read", c_copy},
	{"hal_buffer_map, hal_buffer_unmap", c_map},
	{"hal_buffer_recolor", c_recolor},
	{"hal_host_alloc, hal_host_register, hal_buffer_destroy", c_host_memory},
	{"hal_program_load, hal_program_unload", c_program},
	{"hal_timeline_create, hal_timeline_destroy", c_timeline},
	{"hal_device_get_info", c_info},
	{"hal_device_set_policy, hal_device_get_policy", c_policy},
	{"hal_trace_start, hal_trace_stop", c_trace},
	{"hal_device_get_extension", c_extension},
	{"hal_wait", c_wait},
	{"hal_wait with HAL_WAIT_DEVICE_TIME", c_device_time},
	{"not_before_ns", c_held},
};

static void things_make(struct things *a)
{
	static const char *const options[] = {"hal.spin_us=0", NULL};
	const struct hal_cmd nop = hal_cmd_of(HAL_OP_NOP, 0);
	struct hal_submit_desc d = HAL_INIT(hal_submit_desc);
	struct hal_queue_desc qd = HAL_INIT(hal_queue_desc);
	struct world w = {0};

	memset(a, 0, sizeof(*a));
	ref_open_with(&a->r, "ref?clock=real&colors=4", options);
	w.dev = a->r.dev;
	OK(hal_timeline_create(a->r.dev, &a->t));
	a->buf = add_buffer(a->r.part, 64);
	OK(hal_ref_load(a->r.dev, kernels, 1, &a->prog));
	OK(hal_kernel_find(a->prog, "nothing", &a->k));
	d.cmds = &nop;
	d.cmd_count = 1;
	OK(hal_sequence_create(a->r.part, &d, &a->seq));
	OK(hal_completions_create(a->r.dev, 8, &a->ring));
	a->p2 = add_partition(&w, 3);
	qd.completions = a->ring;
	OK(hal_queue_create(a->p2, &qd, &a->q2));
}

static void things_destroy(struct things *a)
{
	OK(hal_queue_destroy(a->q2));
	OK(hal_partition_destroy(a->p2));
	OK(hal_completions_destroy(a->ring));
	OK(hal_sequence_destroy(a->seq));
	OK(hal_program_unload(a->prog));
	OK(hal_buffer_destroy(a->buf));
	OK(hal_timeline_destroy(a->t));
	falls_asleep(a->r.dev);
	ref_close(&a->r); /* and hal_close wakes it */
}

/* A call that hangs here is one that did not wake the engine: who watches says which. */
static _Atomic(const char *) current;

static void *watch(void *arg)
{
	atomic_bool *over = arg;
	const char *last = NULL;
	int64_t since = now_ns();

	while (!atomic_load(over)) {
		struct pollfd none = {.fd = -1};

		(void)poll(&none, 1, 20);
		if (atomic_load(&current) != last) {
			last = atomic_load(&current);
			since = now_ns();
		}
		if (now_ns() - since > INT64_C(2000000) * NEVER_MS) {
			fprintf(stderr, "%s does not come back\n", last);
			abort();
		}
	}
	return NULL;
}

static void every_call_wakes_it(void **state)
{
	atomic_bool over = false;
	struct things a;
	pthread_t dog;

	(void)state;
	atomic_store(&current, "hal_open");
	assert_int_equal(pthread_create(&dog, NULL, watch, &over), 0);
	things_make(&a);
	for (int round = 0; round < 5; round++)
		for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
			int err;

			atomic_store(&current, calls[i].name);
			falls_asleep(a.r.dev);
			err = calls[i].call(&a);
			if (err != 0)
				fail_msg("%s is %d: %s", calls[i].name, err,
					 hal_last_error());
		}
	atomic_store(&current, "the end");
	things_destroy(&a);
	atomic_store(&over, true);
	pthread_join(dog, NULL);
}

/* ---- time ------------------------------------------------------------------------ */

/* Holds the engine up until a host time. */
struct hold {
	_Atomic int64_t until;
	atomic_bool begun;
};

static int hold_up(const struct hal_ref_call *call)
{
	struct hold *h = call->user;

	atomic_store(&h->begun, true);
	while (now_ns() < atomic_load(&h->until))
		;
	return 0;
}

/* What is reached while a time-out is on its way back has been reached. */
static void last_look(void **state)
{
	static struct hal_ref_kernel slow[] = {
		{.name = "hold_up", .fn = hold_up, .work = 1}};
	struct hal_program *prog;
	struct hold h = {0, false};
	struct hal_kernel *k;
	struct hal_point p;
	struct ref r;

	(void)state;
	slow[0].user = &h;
	ref_open(&r);
	OK(hal_ref_load(r.dev, slow, 1, &prog));
	OK(hal_kernel_find(prog, "hold_up", &k));
	for (int i = 0; i < 5; i++) {
		atomic_store(&h.begun, false);
		atomic_store(&h.until, in_ms(60));
		OK(submit_cmd(r.q, hal_cmd_launch(k, NULL, 0), &p));
		while (!atomic_load(&h.begun))
			sched_yield();
		/* The engine is busy until after the time-out, and reads only then that
		 * nobody waits any more. */
		OK(wait_ms(p, 5));
	}
	OK(hal_program_unload(prog));
	ref_close(&r);
}

/* Many times, some of which are taken back: each comes, none before its time. */
static void many_times(const char *target, int rounds)
{
	struct hal_submit_desc d = HAL_INIT(hal_submit_desc);
	struct hal_queue *q[16];
	struct hal_point p[16];
	uint64_t start;
	struct ref r;

	ref_open_with(&r, target, NULL);
	for (int round = 0; round < rounds; round++) {
		start = hal_device_get_time(r.dev);
		for (uint64_t i = 0; i < 16; i++) {
			q[i] = add_queue(r.part, 0);
			d.not_before_ns = start + 1000000 + (i * 7 % 16) * 300000;
			OK(hal_submit(q[i], &d, &p[i]));
		}
		for (int i = 0; i < 16; i += 5) {
			/* Not waited for any more. */
			OK(hal_queue_suspend(q[i], HAL_SUSPEND_DRAIN | HAL_SUSPEND_FINAL,
					     &p[i]));
			OK(hal_wait(&p[i], 1, 0, in_ms(NEVER_MS)));
			OK(hal_queue_destroy(q[i]));
		}
		for (uint64_t i = 0; i < 16; i++) {
			if (i % 5 == 0)
				continue;
			OK(hal_wait(&p[i], 1, 0, in_ms(NEVER_MS)));
			assert_true(hal_device_get_time(r.dev) >=
				    start + 1000000 + (i * 7 % 16) * 300000);
			OK(hal_queue_destroy(q[i]));
		}
	}
	ref_close(&r);
}

static void many_times_real(void **state)
{
	(void)state;
	many_times("ref?clock=real", 3);
}

static void many_times_virtual(void **state)
{
	(void)state;
	many_times("ref?clock=virtual", 40);
}

static __attribute__((noinline)) void poison_stack(void)
{
	volatile char junk[16384];

	for (size_t i = 0; i < sizeof(junk); i++)
		junk[i] = (char)0xa5;
}

/* A time that is not needed any more goes with the wait that it was for. */
static void times_taken_back(void **state)
{
	struct hal_submit_desc d = HAL_INIT(hal_submit_desc);
	struct hal_point p;
	struct ref r;

	(void)state;
	ref_open(&r);
	for (int i = 0; i < 60; i++) {
		uint64_t now = hal_device_get_time(r.dev);

		d.not_before_ns = now + 300000;
		OK(hal_submit(r.q, &d, &p));
		OK(hal_wait(&p, 1, HAL_WAIT_DEVICE_TIME, (int64_t)now + 20000000 + i));
		poison_stack();
	}
	/* All of them are past. */
	d.not_before_ns = hal_device_get_time(r.dev) + 25000000;
	OK(hal_submit(r.q, &d, &p));
	OK(wait_ms(p, NEVER_MS));
	works(r.q);
	ref_close(&r);
}

/* ---- what has no time ------------------------------------------------------------ */

static uint32_t mems(struct world *w)
{
	struct mock_counts c;

	w->mock->counts(w->native, &c);
	return c.mems;
}

/* The engine has read, and done, all that has come so far. */
static void works_on(struct world *w)
{
	struct hal_partition_info i = HAL_INIT(hal_partition_info);

	OK(hal_partition_get_info(w->part, &i));
}

static void reaches(struct world *w, uint32_t submits)
{
	int64_t until = in_ms(NEVER_MS);
	struct mock_counts c;

	do {
		w->mock->counts(w->native, &c);
		sched_yield();
	} while (c.submits < submits && now_ns() < until);
	assert_int_equal(c.submits, submits);
}

/* A submission that read the time while the engine slept, and whose message came when it
 * was awake for long, has no time; what it uses is kept all the same. */
static void kept_without_a_time(void **state)
{
	static const char *const options[] = {PLUGINS, "hal.inflight=2", NULL};
	struct hal_buffer *b;
	struct hal_point p[4];
	struct hal_queue *q;
	struct world w;
	uint32_t before;

	(void)state;
	world_open_with(&w, "mock?clock=real&eventfd=no", options);
	world_fill(&w);
	q = add_queue(w.part, 0);
	b = add_buffer(w.part, 64);
	before = mems(&w);
	OK(submit_cmd(q, numbered(&w, 1), &p[0]));
	OK(submit_cmd(q, numbered(&w, 2), &p[1]));
	reaches(&w, 2);
	OK(submit_cmd(q, numbered(&w, 3), &p[2]));
	OK(submit_cmd(q, hal_cmd_fill(b, 0, 64, 4), &p[3]));
	for (unsigned int i = 2; i <= 3; i++)
		q->slots[i].submit_ns = SUBMIT_ASLEEP;
	OK(hal_buffer_destroy(b));
	for (uint32_t i = 1; i <= 3; i++) {
		w.mock->complete(w.native, 1, 1000);
		OK(wait_ms(p[i - 1], NEVER_MS));
		reaches(&w, i < 3 ? i + 2 : 4);
		works_on(&w);
		assert_int_equal(mems(&w), before);
	}
	w.mock->complete(w.native, 1, 1000);
	OK(wait_ms(p[3], NEVER_MS));
	works_on(&w);
	assert_int_equal(mems(&w), before - 1);
	OK(hal_queue_destroy(q));
	world_close(&w);
}

/* However soon a point is reached after it was looked at, its fd says so. */
static void fds_come(void **state)
{
	struct ref r;

	(void)state;
	ref_open(&r);
	for (unsigned int i = 0; i < 3000; i++) {
		struct pollfd f = {.events = POLLIN};
		struct hal_point p;

		OK(submit_nop(r.q, &p));
		spin(i % 64 * 20);
		f.fd = hal_point_open_fd(&p);
		assert_true(f.fd >= 0);
		if (poll(&f, 1, NEVER_MS) != 1)
			fail_msg("round %u: the fd does not become readable", i);
		close(f.fd);
	}
	ref_close(&r);
}

/* ---- what idle costs ------------------------------------------------------------- */

static uint64_t cpu_ns(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
}

enum { IDLE_MS = 300, IDLE_CPU_MS = IDLE_MS / 10 };

static void idles(struct hal_device *dev)
{
	struct hal_timeline *never;
	uint64_t before;

	OK(hal_timeline_create(dev, &never));
	falls_asleep(dev);
	before = cpu_ns();
	assert_int_equal(hal_wait(&(struct hal_point){never, 1}, 1, 0, in_ms(IDLE_MS)),
			 -ETIMEDOUT);
	assert_true(cpu_ns() - before < IDLE_CPU_MS * UINT64_C(1000000));
	OK(hal_timeline_destroy(never));
}

/* Nothing to do and a thread that waits: nobody's processor is used, on a device with an
 * fd (the mock) and one without. */
static void idle_costs_nothing(void **state)
{
	static const char *const plugin[] = {PLUGINS, NULL};
	struct world w;
	struct ref r;

	(void)state;
	ref_open(&r);
	idles(r.dev);
	ref_close(&r);
	world_open_with(&w, "mock?clock=real", plugin);
	idles(w.dev);
	OK(hal_close(w.dev));
}

/* ---- fds ------------------------------------------------------------------------- */

/* How many there are; a thousand more for each that a program started by exec would
 * inherit.  ours: these were there before, and do not count so. */
static unsigned int fds(bool ours)
{
	DIR *dir = opendir("/proc/self/fd");
	struct dirent *e;
	unsigned int n = 0;

	assert_non_null(dir);
	while ((e = readdir(dir)) != NULL) {
		int fd = atoi(e->d_name);
		int flags;

		if (e->d_name[0] == '.' || fd <= 2)
			continue;
		flags = fcntl(fd, F_GETFD);
		assert_true(flags >= 0);
		n++;
		if (ours)
			fcntl(fd, F_SETFD, flags | FD_CLOEXEC);
		else if ((flags & FD_CLOEXEC) == 0)
			n += 1000;
	}
	closedir(dir);
	return n;
}

static void closed_on_exec(void **state)
{
	/* The mock has an event fd, and is a plugin. */
	static const char *const plugin[] = {PLUGINS, NULL};
	unsigned int before = fds(true), with;
	char path[] = "/tmp/test_core_asleep.XXXXXX";
	struct things a;
	struct world w;
	int file, fd;

	(void)state;
	file = mkstemp(path);
	assert_true(file >= 0);
	close(file);
	things_make(&a);
	OK(c_callback(&a));
	world_open_with(&w, "mock?clock=real", plugin);
	OK(hal_trace_start(a.r.dev, path));
	fd = hal_point_open_fd(&(struct hal_point){a.t, 100});
	assert_true(fd >= 0);
	with = fds(false);
	/* Engines' 2 or more, one of the ring, one of the point and ours to it, the
	 * trace. */
	assert_in_range(with, before + 6, 999);
	OK(hal_trace_stop(a.r.dev));
	close(fd);
	OK(hal_close(w.dev));
	things_destroy(&a);
	assert_int_equal(fds(false), before); /* none is left */
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_call_wakes_it),
		cmocka_unit_test(last_look),
		cmocka_unit_test(many_times_real),
		cmocka_unit_test(many_times_virtual),
		cmocka_unit_test(times_taken_back),
		cmocka_unit_test(kept_without_a_time),
		cmocka_unit_test(fds_come),
		cmocka_unit_test(idle_costs_nothing),
		cmocka_unit_test(closed_on_exec),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

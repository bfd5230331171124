/* SPDX-License-Identifier: Apache-2.0 */
/* test_core_foreign.c - submissions that wait for points of other devices and signal
 * them. */
#include "ref_world.h"

#include <hal/ref.h>

enum { BYTES = 64 };

/* A device with a queue, a buffer and a timeline. */
struct side {
	struct ref r;
	struct hal_buffer *buf;
	struct hal_timeline *line;
};

static void side_open(struct side *s, const char *target, const char *option)
{
	const char *options[] = {option, NULL};
	struct hal_buffer_desc d = HAL_INIT(hal_buffer_desc);

	memset(s, 0, sizeof(*s));
	ref_open_with(&s->r, target, option != NULL ? options : NULL);
	d.bytes = BYTES;
	OK(hal_buffer_create(s->r.part, &d, &s->buf));
	OK(hal_timeline_create(s->r.dev, &s->line));
}

static void side_close(struct side *s)
{
	OK(hal_timeline_destroy(s->line));
	OK(hal_buffer_destroy(s->buf));
	OK(hal_queue_destroy(s->r.q));
	OK(hal_partition_destroy(s->r.part));
	OK(hal_close(s->r.dev));
}

/* Submit a fill to s that waits for wait and signals signal; each may be NULL. */
static int fill(struct side *s, const struct hal_point *wait,
		const struct hal_point *signal, struct hal_point *done)
{
	struct hal_submit_desc d = HAL_INIT(hal_submit_desc);
	struct hal_cmd cmd = hal_cmd_fill(s->buf, 0, BYTES, 7);

	d.cmds = &cmd;
	d.cmd_count = 1;
	d.waits = wait;
	d.wait_count = wait != NULL;
	d.signals = signal;
	d.signal_count = signal != NULL;
	return hal_submit(s->r.q, &d, done);
}

/* ---- virtual clock ----------------------------------------------------------------- */

/* hal_wait runs the device of the point, then the one that its work waits for. */
static void runs_the_other(void **state)
{
	struct side a, b;
	struct hal_point pa, pb;
	uint64_t before;

	(void)state;
	side_open(&a, "ref", NULL);
	side_open(&b, "ref", NULL);
	OK(fill(&b, NULL, NULL, &pb));
	OK(fill(&a, &pb, NULL, &pa));
	before = hal_device_get_time(a.r.dev);
	/* hal_device_poll runs one device only. */
	assert_int_equal(hal_device_poll(a.r.dev, UINT64_MAX), 0);
	assert_int_equal(hal_timeline_get_value(pb.timeline, NULL), 0);
	FAILS(hal_queue_destroy(b.r.q), -EBUSY, "0 of its 1");
	OK(hal_wait(&pa, 1, 0, HAL_FOREVER));
	assert_int_equal(hal_timeline_get_value(pb.timeline, NULL), 1);
	/* The clock of the waiting device has stopped meanwhile. */
	assert_true(hal_device_get_time(a.r.dev) - before <=
		    hal_device_get_time(b.r.dev));
	/* A point that is reached already needs no help. */
	OK(fill(&a, &pb, NULL, &pa));
	OK(hal_wait(&pa, 1, 0, HAL_FOREVER));
	side_close(&a);
	side_close(&b);
}

static void host_signals(void **state)
{
	struct side a, b;
	struct hal_point pa, go;

	(void)state;
	side_open(&a, "ref", NULL);
	side_open(&b, "ref", NULL);
	go = (struct hal_point){b.line, 3};
	OK(fill(&a, &go, NULL, &pa));
	FAILS(hal_wait(&pa, 1, 0, HAL_FOREVER), -EDEADLK, "no work is left");
	FAILS(hal_wait(&pa, 1, 0, 0), -ETIMEDOUT, "not reached yet");
	/* In device time it may wait. */
	FAILS(hal_wait(&pa, 1, HAL_WAIT_DEVICE_TIME,
		       (int64_t)hal_device_get_time(a.r.dev) + 1000),
	      -ETIMEDOUT, "time is up");
	FAILS(hal_timeline_destroy(b.line), -EBUSY, "use it");
	OK(hal_timeline_signal(b.line, 2));
	FAILS(hal_wait(&pa, 1, 0, HAL_FOREVER), -EDEADLK, "no work is left");
	OK(hal_timeline_signal(b.line, 4));
	OK(hal_wait(&pa, 1, 0, HAL_FOREVER));
	side_close(&a);
	side_close(&b);
}

/* Work of one device signals the timeline of another, whose work waits for it. */
static void signals(void **state)
{
	struct side a, b;
	struct hal_point p[2], go;

	(void)state;
	side_open(&a, "ref", NULL);
	side_open(&b, "ref", NULL);
	go = (struct hal_point){b.line, 5};
	OK(fill(&b, &go, NULL, &p[0]));
	OK(fill(&a, NULL, &go, &p[1]));
	/* The wait names no point of the device that signals. */
	FAILS(hal_wait(&p[0], 1, 0, HAL_FOREVER), -EDEADLK, "no work is left");
	OK(hal_wait(p, 2, 0, HAL_FOREVER));
	assert_int_equal(hal_timeline_get_value(b.line, NULL), 5);
	go.timeline = hal_queue_get_timeline(b.r.q);
	FAILS(fill(&a, NULL, &go, NULL), -EINVAL, "signals[0]", "belongs to a queue");
	go = (struct hal_point){b.line, 0};
	FAILS(fill(&a, NULL, &go, NULL), -EINVAL, "signals[0]", "value 0");
	side_close(&a);
	side_close(&b);
}

/* Three devices in a row, and back: each waits for the one before. */
static void chain(void **state)
{
	enum { N = 3, ROUNDS = 10 };
	struct hal_point last = {NULL, 0};
	struct side s[N];

	(void)state;
	for (int i = 0; i < N; i++)
		side_open(&s[i], "ref", NULL);
	for (int i = 0; i < N * ROUNDS; i++)
		OK(fill(&s[i % N], last.timeline != NULL ? &last : NULL, NULL, &last));
	OK(hal_wait(&last, 1, 0, HAL_FOREVER));
	for (int i = 0; i < N; i++) {
		assert_int_equal(
			hal_timeline_get_value(hal_queue_get_timeline(s[i].r.q), NULL),
			ROUNDS);
		side_close(&s[i]);
	}
}

/* Two devices wait for each other: no thread hangs, and all can be destroyed. */
static void cycle(void **state)
{
	struct side s[2];
	struct hal_point p[2], there;

	(void)state;
	for (int i = 0; i < 2; i++)
		side_open(&s[i], "ref", NULL);
	there = (struct hal_point){hal_queue_get_timeline(s[1].r.q), 1};
	OK(fill(&s[0], &there, NULL, &p[0]));
	there = (struct hal_point){hal_queue_get_timeline(s[0].r.q), 1};
	OK(fill(&s[1], &there, NULL, &p[1]));
	FAILS(hal_wait(p, 2, 0, HAL_FOREVER), -EDEADLK, "no work is left");
	FAILS(hal_queue_destroy(s[0].r.q), -EBUSY, "0 of its 1");
	OK(hal_queue_suspend(s[0].r.q, HAL_SUSPEND_KILL | HAL_SUSPEND_FINAL, NULL));
	FAILS(hal_wait(&p[0], 1, 0, HAL_FOREVER), -ECANCELED, "for good");
	/* The failure reaches the other device. */
	FAILS(hal_wait(&p[1], 1, 0, HAL_FOREVER), -ECANCELED, "waits for a point");
	for (int i = 0; i < 2; i++)
		side_close(&s[i]);
}

/* ---- failures ---------------------------------------------------------------------- */

static void failure(void **state)
{
	const struct hal_ref_extension *ref;
	struct hal_point pa, pb, out;
	struct side a, b;

	(void)state;
	side_open(&a, "ref", NULL);
	side_open(&b, "ref", NULL);
	ref = hal_device_get_extension(b.r.dev, "ref");
	OK(ref->inject(hal_device_get_native(b.r.dev), HAL_REF_OP_EXECUTE, 1, EIO));
	OK(fill(&b, NULL, NULL, &pb));
	out = (struct hal_point){b.line, 1};
	OK(fill(&a, &pb, &out, &pa));
	FAILS(hal_wait(&pa, 1, 0, HAL_FOREVER), -ECANCELED, "waits for a point");
	assert_non_null(strstr(hal_last_error(), "injected"));
	/* What that submission was to signal fails, too. */
	FAILS(hal_wait(&out, 1, 0, HAL_FOREVER), -ECANCELED, "waits for a point");
	side_close(&a);
	side_close(&b);
}

static void lost(void **state)
{
	struct hal_point pa, pb;
	struct side a, b;

	(void)state;
	side_open(&a, "ref", NULL);
	side_open(&b, "ref", "layers.fault=poll:1:EIO");
	OK(fill(&b, NULL, NULL, &pb));
	OK(fill(&a, &pb, NULL, &pa));
	FAILS(hal_wait(&pa, 1, 0, HAL_FOREVER), -ECANCELED, "waits for a point");
	assert_non_null(strstr(hal_last_error(), "lost"));
	side_close(&a);
	OK(hal_timeline_destroy(b.line));
	OK(hal_buffer_destroy(b.buf));
	OK(hal_queue_destroy(b.r.q));
	OK(hal_partition_destroy(b.r.part));
	(void)hal_close(b.r.dev);
}

/* The waiting queue is destroyed, with its device: the other forgets the wait. */
static void waiter_destroyed(void **state)
{
	struct hal_point go;
	struct side a, b;

	(void)state;
	for (int i = 0; i < 2; i++) {
		const char *target = i == 0 ? "ref" : "ref?clock=real";

		side_open(&a, target, NULL);
		side_open(&b, target, NULL);
		go = (struct hal_point){b.line, 1};
		OK(fill(&a, &go, NULL, NULL));
		FAILS(hal_timeline_destroy(b.line), -EBUSY, "use it");
		OK(hal_queue_suspend(a.r.q, HAL_SUSPEND_DRAIN, &go));
		OK(hal_wait(&go, 1, 0, HAL_FOREVER));
		side_close(&a);
		side_close(&b);
	}
}

/* ---- other submissions ------------------------------------------------------------- */

/* A sequence, and a submission with more waits than half of the ring has slots. */
static void large(void **state)
{
	enum { WAITS = 2000 };
	static struct hal_point waits[WAITS];
	struct hal_submit_desc d = HAL_INIT(hal_submit_desc);
	struct hal_submit_desc none = HAL_INIT(hal_submit_desc);
	struct hal_sequence *seq;
	struct hal_cmd cmd;
	struct hal_point done;
	struct side a, b;

	(void)state;
	side_open(&a, "ref", NULL);
	side_open(&b, "ref", NULL);
	cmd = hal_cmd_fill(a.buf, 0, BYTES, 7);
	d.cmds = &cmd;
	d.cmd_count = 1;
	OK(hal_sequence_create(a.r.part, &d, &seq));
	for (uint32_t i = 0; i < WAITS; i++)
		waits[i] = (struct hal_point){i % 2 != 0 ? b.line : a.line, i + 1};
	none.waits = waits;
	none.wait_count = 3;
	OK(hal_sequence_submit(a.r.q, seq, &none, NULL));
	OK(hal_sequence_destroy(seq));
	d.waits = waits;
	d.wait_count = WAITS;
	OK(hal_submit(a.r.q, &d, &done));
	FAILS(hal_wait(&done, 1, 0, HAL_FOREVER), -EDEADLK, "no work is left");
	OK(hal_timeline_signal(a.line, WAITS));
	FAILS(hal_wait(&done, 1, 0, HAL_FOREVER), -EDEADLK, "no work is left");
	OK(hal_timeline_signal(b.line, WAITS));
	OK(hal_wait(&done, 1, 0, HAL_FOREVER));
	/* A refused submission leaves no wait behind. */
	cmd.fill.bytes = 3;
	FAILS(hal_submit(a.r.q, &d, NULL), -EINVAL, "3 bytes");
	waits[1].value = WAITS + 1;
	FAILS(hal_submit(a.r.q, &d, NULL), -EINVAL, "3 bytes");
	side_close(&b);
	side_close(&a);
}

/* ---- real clock -------------------------------------------------------------------- */

/* Two engines hand work to each other, which sleep in between; or one of each kind. */
static void back_and_forth(void **state)
{
	static const char *const targets[][2] = {{"ref?clock=real", "ref?clock=real"},
						 {"ref", "ref?clock=real"}};
	enum { ROUNDS = 200 };

	(void)state;
	for (int t = 0; t < 2; t++) {
		struct hal_point last = {NULL, 0};
		struct side s[2];

		for (int i = 0; i < 2; i++)
			side_open(&s[i], targets[t][i], "hal.spin_us=0");
		for (int i = 0; i < 2 * ROUNDS; i++) {
			/* No thread runs a virtual device for a real one. */
			if (t == 1 && i % 2 == 1 && last.timeline != NULL)
				last.timeline = NULL;
			OK(fill(&s[i % 2], last.timeline != NULL ? &last : NULL, NULL,
				&last));
			if (i % 32 == 31)
				OK(hal_wait(&last, 1, 0, HAL_FOREVER));
			if (t == 1 && i % 2 == 0)
				OK(hal_wait(&last, 1, 0, HAL_FOREVER));
		}
		OK(hal_wait(&last, 1, 0, HAL_FOREVER));
		for (int i = 0; i < 2; i++)
			side_close(&s[i]);
	}
}

/* A virtual device waits for a real one, and its waiter for both. */
static void virtual_for_real(void **state)
{
	struct hal_point p[2], go;
	struct side a, b;

	(void)state;
	side_open(&a, "ref", NULL);
	side_open(&b, "ref?clock=real", "hal.spin_us=0");
	for (uint64_t i = 1; i <= 50; i++) {
		go = (struct hal_point){a.line, i};
		OK(fill(&a, &go, NULL, &p[0]));
		OK(fill(&b, NULL, &go, &p[1]));
		OK(hal_wait(p, 2, 0, HAL_FOREVER));
	}
	go = (struct hal_point){b.line, 1};
	OK(fill(&a, &go, NULL, &p[0]));
	FAILS(hal_wait(&p[0], 1, 0, in_ms(5)), -ETIMEDOUT, "time is up");
	OK(hal_timeline_signal(b.line, 1));
	OK(hal_wait(&p[0], 1, 0, HAL_FOREVER));
	side_close(&a);
	side_close(&b);
}

enum { PAIRS = 3, EACH = 60 };

struct opener {
	pthread_t thread;
	struct side *shared;
	pthread_mutex_t *lock; /* of the queue of .shared */
	int id;
};

/* Open a device, have it wait for work of the shared one and signal it, drop some of its
 * waits, close it. */
static void *open_and_close(void *arg)
{
	struct opener *o = arg;

	for (int i = 0; i < EACH; i++) {
		struct hal_point there, p, back;
		struct side own;

		side_open(&own, "ref?clock=real", NULL);
		pthread_mutex_lock(o->lock);
		OK(fill(o->shared, NULL, NULL, &there));
		pthread_mutex_unlock(o->lock);
		back = (struct hal_point){own.line, 1};
		there.value += (uint64_t)(i % 3 == 2) * 1000000;
		OK(fill(&own, &there, &back, &p));
		if (i % 3 == 2) {
			OK(hal_queue_suspend(own.r.q, HAL_SUSPEND_DRAIN, &p));
			OK(hal_wait(&p, 1, 0, HAL_FOREVER));
		} else {
			OK(hal_wait(&p, 1, 0, HAL_FOREVER));
			OK(hal_wait(&back, 1, 0, HAL_FOREVER));
		}
		if (i % 2 == 0) {
			OK(hal_queue_destroy(own.r.q));
			OK(hal_timeline_destroy(own.line));
			OK(hal_buffer_destroy(own.buf));
			OK(hal_partition_destroy(own.r.part));
			OK(hal_close(own.r.dev));
		} else {
			OK(hal_queue_destroy(own.r.q));
			own.r.q = NULL;
			side_close(&own);
		}
	}
	return NULL;
}

static void devices_come_and_go(void **state)
{
	pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	struct opener o[PAIRS];
	struct side shared;

	(void)state;
	side_open(&shared, "ref?clock=real", "hal.spin_us=0");
	for (int i = 0; i < PAIRS; i++) {
		o[i] = (struct opener){.shared = &shared, .lock = &lock, .id = i};
		assert_int_equal(
			pthread_create(&o[i].thread, NULL, open_and_close, &o[i]), 0);
	}
	for (int i = 0; i < PAIRS; i++)
		assert_int_equal(pthread_join(o[i].thread, NULL), 0);
	side_close(&shared);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(runs_the_other),
		cmocka_unit_test(host_signals),
		cmocka_unit_test(signals),
		cmocka_unit_test(chain),
		cmocka_unit_test(cycle),
		cmocka_unit_test(failure),
		cmocka_unit_test(lost),
		cmocka_unit_test(waiter_destroyed),
		cmocka_unit_test(large),
		cmocka_unit_test(back_and_forth),
		cmocka_unit_test(virtual_for_real),
		cmocka_unit_test(devices_come_and_go),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

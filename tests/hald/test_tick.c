/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_tick.c - a hald that answers at ticks: when answers come, what works, and what it
 * refuses because it would show when something happens.
 */
#include "hald_world.h"

/* Long against what hald does in one: on a busy machine an answer may miss its tick. */
#define TICK_US "20000"
#define TICK_NS INT64_C(20000000)

static void tick_start(struct hald *h)
{
	hald_prepare(h);
	h->tick = TICK_US;
	hald_begin(h, "ref?clock=real");
}

static int64_t of_a_tick(int64_t ns)
{
	return ns % TICK_NS;
}

/* An answer comes one to two ticks after the request, shortly after a tick, whenever the
 * request was sent.  Where the ticks lie is seen from the first answer. */
static void answers(void **state)
{
	struct hal_partition_info info = HAL_INIT(hal_partition_info);
	struct program p;
	struct hald h;
	int on_time = 0;
	int64_t phase;

	(void)state;
	tick_start(&h);
	OK(program_open(&h, &p, 1));
	phase = INT64_MAX;
	for (int i = 0; i < 5; i++) {
		OK(hal_partition_get_info(p.part, &info));
		if (of_a_tick(now_ns()) < phase)
			phase = of_a_tick(now_ns());
	}
	for (int i = 0; i < 20; i++) {
		const int64_t wait = TICK_NS * i / 20, begin = now_ns();
		int64_t sent, came;

		while (now_ns() < begin + wait)
			;
		sent = now_ns() - phase;
		OK(hal_partition_get_info(p.part, &info));
		came = now_ns() - phase;
		/* Never before its tick. */
		assert_true(came - sent >= TICK_NS);
		on_time +=
			(came + TICK_NS / 8) / TICK_NS - (sent + TICK_NS / 8) / TICK_NS ==
				2 &&
			of_a_tick(came + TICK_NS / 8) < TICK_NS / 4;
	}
	/* At any other time a quarter would be.  A machine with other work may be late.
	 */
	assert_true(on_time >= 10);
	program_close(&p);
	hald_stop(&h);
}

/* Work, completions and waits do what they do elsewhere. */
static void work(void **state)
{
	struct hal_queue_desc qd = HAL_INIT(hal_queue_desc);
	struct hal_submit_desc d = HAL_INIT(hal_submit_desc);
	struct hal_completions *ring;
	struct hal_completion c;
	struct hal_queue *q;
	struct hal_cmd cmd;
	struct program p;
	struct hald h;

	(void)state;
	tick_start(&h);
	OK(program_open(&h, &p, 1));
	OK(program_works(&p, 5));
	OK(hal_completions_create(p.dev, 8, &ring));
	qd.completions = ring;
	OK(hal_queue_create(p.part, &qd, &q));
	cmd = hal_cmd_fill(p.buf, 0, 64, 9);
	d.cmds = &cmd;
	d.cmd_count = 1;
	d.tag = 77;
	OK(hal_submit(q, &d, NULL));
	assert_int_equal(hal_completions_read(ring, &c, 1, now_ns() + LONG_NS), 1);
	assert_int_equal(c.tag, 77);
	assert_int_equal(c.status, 0);
	assert_ptr_equal(c.queue, q);
	assert_int_equal(of_a_tick((int64_t)c.end_ns), 0);
	assert_int_equal(of_a_tick((int64_t)c.submit_ns), 0);
	assert_true(c.end_ns >= c.submit_ns);
	assert_int_equal(of_a_tick((int64_t)hal_device_get_time(p.dev)), 0);
	/* A wait that is over by its time. */
	assert_int_equal(hal_wait(&(struct hal_point){hal_queue_get_timeline(q), 2}, 1, 0,
				  now_ns() + TICK_NS / 2),
			 -ETIMEDOUT);
	OK(hal_queue_destroy(q));
	OK(hal_completions_destroy(ring));
	program_close(&p);
	hald_stop(&h);
}

/* What would show when something happens is refused, with a text that says so. */
static void refused(void **state)
{
	struct hal_device_info info = HAL_INIT(hal_device_info);
	struct hal_buffer_desc bd = HAL_INIT(hal_buffer_desc);
	struct hal_submit_desc d = HAL_INIT(hal_submit_desc);
	struct hal_stats stats = HAL_INIT(hal_stats);
	struct hal_completions *ring;
	struct hal_timeline *t;
	struct hal_buffer *buf;
	struct hal_point point;
	struct hal_cmd cmd;
	struct program p;
	struct hald h;
	void *memory;
	int fd;

	(void)state;
	tick_start(&h);
	OK(program_open(&h, &p, 1));
	OK(hal_device_get_info(p.dev, &info));
	assert_int_equal(info.caps & (HAL_CAP_MAP | HAL_CAP_EXPORT | HAL_CAP_IMPORT |
				      HAL_CAP_HOST_COPY | HAL_CAP_TIMESTAMP),
			 0);
	bd.bytes = 4096;
	bd.flags = HAL_BUFFER_MAPPABLE;
	assert_int_equal(hal_buffer_create(p.part, &bd, &buf), -ENOTSUP);
	assert_non_null(strstr(hal_last_error(), "--tick"));
	bd.flags = HAL_BUFFER_EXPORTABLE;
	assert_int_equal(hal_buffer_create(p.part, &bd, &buf), -ENOTSUP);
	assert_int_equal(hal_host_alloc(p.part, 4096, &buf, &memory), -ENOTSUP);
	cmd = hal_cmd_timestamp(p.buf, 0);
	d.cmds = &cmd;
	d.cmd_count = 1;
	assert_int_equal(hal_submit(p.q, &d, NULL), -ENOTSUP);
	OK(hal_timeline_create(p.dev, &t));
	assert_int_equal(hal_timeline_export(t, 0, &fd), -ENOTSUP);
	assert_non_null(strstr(hal_last_error(), "--tick"));
	OK(hal_completions_create(p.dev, 8, &ring));
	assert_int_equal(hal_completions_get_fd(ring), -ENOTSUP);
	point = (struct hal_point){t, 1};
	assert_int_equal(hal_point_open_fd(&point), -ENOTSUP);
	OK(hal_completions_destroy(ring));
	OK(hal_timeline_destroy(t));
	/* Counts are told, times are not. */
	OK(program_works(&p, 3));
	OK(hal_queue_get_stats(p.q, &stats));
	assert_int_equal(stats.completed, 1);
	assert_int_equal(stats.busy_ns | stats.queueing_ns | stats.latency_max_ns |
				 stats.request_p50_ns | stats.request_max_ns,
			 0);
	for (int i = 0; i < HAL_HISTOGRAM_BUCKETS; i++)
		assert_int_equal(stats.latency_histogram[i], 0);
	stats = (struct hal_stats)HAL_INIT(hal_stats);
	OK(hal_partition_get_stats(p.part, &stats));
	assert_int_equal(stats.completed, 1);
	assert_int_equal(stats.busy_ns, 0);
	program_close(&p);
	hald_stop(&h);
}

/* A program that is killed in the middle of a tick leaves nothing. */
static void killed(void **state)
{
	struct program p;
	struct hald h;
	int ready[2];
	char one;
	pid_t child;

	(void)state;
	tick_start(&h);
	assert_int_equal(pipe(ready), 0);
	child = fork();
	if (child == 0) {
		if (program_open(&h, &p, ALL_UNITS) != 0 || write(ready[1], "", 1) != 1)
			_exit(1);
		for (;;)
			(void)program_works(&p, 1);
	}
	assert_int_equal(read(ready[0], &one, 1), 1);
	assert_int_equal(kill(child, SIGKILL), 0);
	assert_int_equal(waitpid(child, NULL, 0), child);
	(void)take_all(&h, &p);
	nothing_is_left(&p);
	program_close(&p);
	(void)close(ready[0]);
	(void)close(ready[1]);
	hald_stop(&h);
}

/* Run hald with these arguments, and read what it prints to stderr.  Return its status.
 */
static int hald_fails(const char *tick, const char *more, const char *target,
		      char text[1024])
{
	char *arguments[] = {(char *)(uintptr_t)HALD,
			     (char *)(uintptr_t) "--dir=/tmp",
			     (char *)(uintptr_t) "--tick",
			     (char *)(uintptr_t)tick,
			     (char *)(uintptr_t)target,
			     (char *)(uintptr_t)more,
			     NULL};
	int out[2], status;
	ssize_t n;
	pid_t pid;

	assert_int_equal(pipe(out), 0);
	pid = fork();
	if (pid == 0) {
		(void)dup2(out[1], STDERR_FILENO);
		execv(HALD, arguments);
		_exit(127);
	}
	(void)close(out[1]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	n = read(out[0], text, 1023);
	text[n > 0 ? n : 0] = '\0';
	(void)close(out[0]);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void wrong_options(void **state)
{
	static const char *const wrong[] = {"", "x", "19", "1000001", "20x", "-5"};
	char text[1024];

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		assert_int_equal(hald_fails(wrong[i], NULL, "ref?clock=real", text), 1);
		assert_non_null(strstr(text, "microseconds from 20 to 1000000"));
	}
	assert_int_equal(hald_fails("100", NULL, "ref", text), 1);
	assert_non_null(strstr(text, "clock=real"));
	assert_int_equal(hald_fails("100", "--lockstep=2", "ref", text), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(answers),       cmocka_unit_test(work),
		cmocka_unit_test(refused),       cmocka_unit_test(killed),
		cmocka_unit_test(wrong_options),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* What is counted at the edges: deadlines to the nanosecond, queueing, traces begun late.
 */
#include "mock_world.h"

#include <signal.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <unistd.h>

#include <hal/policy.h>

static void nothing(void *user)
{
	(void)user;
}

enum last { LAST_COMMAND, LAST_SIGNAL, LAST_CALLBACK, LAST_BARRIER };

/* A submission that ends after ns, of a deadline of 15: how many are missed? */
static uint64_t missed(enum last last, uint64_t ns, bool of_queue)
{
	struct hal_queue_desc qd = HAL_INIT(hal_queue_desc);
	struct hal_submit_desc d = HAL_INIT(hal_submit_desc);
	struct hal_cmd cmds[2];
	struct hal_point signal, p;
	struct hal_timeline *t;
	struct hal_stats s;
	struct hal_queue *q;
	struct world w;

	world_open(&w, "mock");
	world_fill(&w);
	OK(hal_timeline_create(w.dev, &t));
	if (of_queue)
		qd.deadline_ns = 15;
	else
		d.deadline_ns = 15;
	OK(hal_queue_create(w.part, &qd, &q));
	w.mock->advance(w.native, 100);
	assert_int_equal(hal_device_get_time(w.dev), 100);
	cmds[0] = numbered(&w, 1);
	cmds[1] = last == LAST_CALLBACK ? hal_cmd_host(nothing, NULL) : hal_cmd_barrier();
	d.cmds = cmds;
	d.cmd_count = last == LAST_CALLBACK || last == LAST_BARRIER ? 2 : 1;
	signal = (struct hal_point){t, 1};
	d.signals = &signal;
	d.signal_count = last == LAST_SIGNAL ? 1 : 0;
	OK(hal_submit(q, &d, &p));
	poll_now(&w);
	w.mock->complete(w.native, 1, ns);
	OK(hal_wait(&p, 1, 0, HAL_FOREVER));
	s = queue_stats(q);
	assert_int_equal(s.request_max_ns, ns);
	OK(hal_queue_destroy(q));
	OK(hal_timeline_destroy(t));
	world_close(&w);
	return s.deadline_misses;
}

/* Ending at the deadline is in time, whatever the last of it is. */
static void at_the_deadline(void **state)
{
	(void)state;
	for (int last = LAST_COMMAND; last <= LAST_BARRIER; last++)
		for (int of_queue = 0; of_queue < 2; of_queue++) {
			assert_int_equal(missed((enum last)last, 14, of_queue != 0), 0);
			assert_int_equal(missed((enum last)last, 15, of_queue != 0), 0);
			assert_int_equal(missed((enum last)last, 16, of_queue != 0), 1);
		}
}

/* What failed is no request, and misses nothing. */
static void failed_is_not_missed(void **state)
{
	struct hal_queue_desc qd = HAL_INIT(hal_queue_desc);
	struct hal_queue *q;
	struct hal_stats s;
	struct world w;

	(void)state;
	world_open(&w, "mock");
	world_fill(&w);
	qd.deadline_ns = 1;
	OK(hal_queue_create(w.part, &qd, &q));
	OK(submit_cmd(q, numbered(&w, 1), NULL));
	OK(submit_cmd(q, numbered(&w, 2), NULL));
	poll_now(&w);
	w.mock->advance(w.native, 50);
	w.mock->fault(w.native, -EIO, "broken");
	w.mock->complete(w.native, 1, 1);
	poll_now(&w);
	s = queue_stats(q);
	assert_int_equal(s.failed, 1);
	assert_int_equal(s.deadline_misses, 0);
	assert_int_equal(s.requests, 0);
	OK(hal_queue_destroy(q));
	world_close(&w);
}

/* A command queues from when it could run, not from when it was submitted; and not while
 * what is before it in its queue runs. */
static void queueing(void **state)
{
	static const char *const options[] = {PLUGINS, "hal.partition_inflight=1", NULL};
	struct hal_submit_desc d = HAL_INIT(hal_submit_desc);
	struct hal_point gate;
	struct hal_timeline *t;
	struct hal_queue *a, *b;
	struct hal_cmd cmd;
	struct world w;

	(void)state;
	world_open_with(&w, "mock", options);
	world_fill(&w);
	OK(hal_timeline_create(w.dev, &t));
	a = add_queue(w.part, 0);
	b = add_queue(w.part, 0);
	gate = (struct hal_point){t, 1};
	cmd = numbered(&w, 1);
	d.cmds = &cmd;
	d.cmd_count = 1;
	d.waits = &gate;
	d.wait_count = 1;
	OK(hal_submit(b, &d, NULL));
	OK(submit_cmd(a, numbered(&w, 2), NULL));
	OK(submit_cmd(a, numbered(&w, 3), NULL));
	poll_now(&w);
	w.mock->advance(w.native, 30);
	assert_int_equal(hal_device_get_time(w.dev), 30);
	OK(hal_timeline_signal(t, 1)); /* ready at 30 */
	poll_now(&w);
	/* The mock begins a command when it is told to end one. */
	w.mock->complete(w.native, 1, 10); /* a's first, from 30 to 40 */
	poll_now(&w);
	w.mock->complete(w.native, 1, 5); /* its second, until 45: ready before b's */
	poll_now(&w);
	w.mock->complete(w.native, 1, 5);
	poll_now(&w);
	assert_int_equal(queue_stats(a).completed, 2);
	assert_int_equal(queue_stats(b).completed, 1);
	assert_int_equal(queue_stats(a).queueing_ns, 30);
	assert_int_equal(queue_stats(b).queueing_ns, 45 - 30);
	OK(hal_queue_destroy(a));
	OK(hal_queue_destroy(b));
	OK(hal_timeline_destroy(t));
	world_close(&w);
}

/* ---- traces ---------------------------------------------------------------------- */

static char *text_of(const char *path)
{
	static char text[65536];
	FILE *f = fopen(path, "re");
	size_t n;

	assert_non_null(f);
	n = fread(text, 1, sizeof(text) - 1, f);
	text[n] = '\0';
	fclose(f);
	return text;
}

/* Queues and partitions that are made while a trace is written are in it, with what they
 * do; those before and after it as well, but not what they did then. */
static void made_during_a_trace(void **state)
{
	char path[] = "/tmp/test_core_edges.XXXXXX";
	struct hal_partition_desc d = HAL_INIT(hal_partition_desc);
	struct hal_partition *part;
	struct hal_queue *before, *during;
	struct world w;
	char *text;
	int fd = mkstemp(path);

	(void)state;
	assert_true(fd >= 0);
	close(fd);
	world_open(&w, "mock");
	world_fill(&w);
	before = add_queue(w.part, 0);
	OK(submit_cmd(before, hal_cmd_of(HAL_OP_NOP, 0), NULL));
	poll_now(&w);
	w.mock->complete(w.native, 1, 5);
	poll_now(&w);
	OK(hal_trace_start(w.dev, path));
	FAILS(hal_trace_start(w.dev, path), -EBUSY, "already");
	d.units_floor = 1;
	snprintf(d.name, sizeof(d.name), "latecomer");
	OK(hal_partition_create(w.dev, &d, &part));
	during = add_queue(part, 0);
	OK(submit_cmd(during, hal_cmd_launch(w.k0, NULL, 0), NULL));
	poll_now(&w);
	w.mock->complete(w.native, 1, 7);
	poll_now(&w);
	OK(hal_trace_stop(w.dev));
	OK(submit_cmd(before, hal_cmd_fill(w.buf, 0, 64, 1), NULL));
	poll_now(&w);
	w.mock->complete(w.native, 1, 5);
	poll_now(&w);
	text = text_of(path);
	if (strstr(text, "latecomer queue 1") == NULL)
		fail_msg("the queue is not in the trace: %s", text);
	if (strstr(text, "\"none0\"") == NULL)
		fail_msg("its launch is not in the trace: %s", text);
	assert_non_null(strstr(text, "queue 0"));
	assert_null(strstr(text, "\"nop\""));
	assert_null(strstr(text, "\"fill\""));
	OK(hal_queue_destroy(before));
	OK(hal_queue_destroy(during));
	OK(hal_partition_destroy(part));
	world_close(&w);
	unlink(path);
}

static uint32_t count_of(const char *text, const char *what)
{
	uint32_t n = 0;

	for (; (text = strstr(text, what)) != NULL; text++)
		n++;
	return n;
}

/* Slices of a track may not overlap: of commands that ran at the same time each has a
 * track, and the next ones have the same. */
static void together_on_tracks_of_their_own(void **state)
{
	char path[] = "/tmp/test_core_edges.XXXXXX";
	struct hal_queue *q[2];
	struct world w;
	const char *text;
	int fd = mkstemp(path);

	(void)state;
	assert_true(fd >= 0);
	close(fd);
	world_open(&w, "mock");
	world_fill(&w);
	for (int i = 0; i < 2; i++)
		q[i] = add_queue(w.part, 0);
	OK(hal_trace_start(w.dev, path));
	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < 2; i++)
			OK(submit_cmd(q[i], hal_cmd_launch(w.k0, NULL, 0), NULL));
		poll_now(&w);
		w.mock->complete_together(w.native, 2, 50);
		poll_now(&w);
	}
	OK(hal_trace_stop(w.dev));
	text = text_of(path);
	for (int tid = 1; tid <= 2; tid++) {
		char what[64];

		snprintf(what, sizeof(what), "\"none0\",\"pid\":1,\"tid\":%d,", tid);
		assert_int_equal(count_of(text, what), 3);
	}
	assert_int_equal(count_of(text, " (2)\"}}"), 1);
	assert_null(strstr(text, " (3)\"}}"));
	for (int i = 0; i < 2; i++)
		OK(hal_queue_destroy(q[i]));
	world_close(&w);
	unlink(path);
}

/* Of a trace that its file has no room for: how many events are missing. */
static void missing_events_are_counted(void **state)
{
	char path[] = "/tmp/test_core_edges.XXXXXX";
	struct rlimit all, little;
	unsigned long long missing = 0, events = 0, there = 0;
	const char *at;
	struct hal_queue *q;
	struct world w;
	FILE *f;
	int c, fd = mkstemp(path);

	(void)state;
	assert_true(fd >= 0);
	close(fd);
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &all), 0);
	little = all;
	little.rlim_cur = 100000;
	world_open(&w, "mock");
	world_fill(&w);
	q = add_queue(w.part, 0);
	OK(hal_trace_start(w.dev, path));
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &little), 0);
	for (int i = 0; i < 1000; i++) {
		OK(submit_cmd(q, hal_cmd_of(HAL_OP_NOP, 0), NULL));
		poll_now(&w);
		w.mock->complete(w.native, 1, 5);
		poll_now(&w);
	}
	FAILS(hal_trace_stop(w.dev), -EIO, "File too large");
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &all), 0);
	at = strstr(hal_last_error(), "; ");
	assert_non_null(at);
	assert_int_equal(
		sscanf(at, "; %llu of %llu events are missing", &missing, &events), 2);
	f = fopen(path, "re");
	assert_non_null(f);
	while ((c = fgetc(f)) != EOF)
		there += c == '\n';
	fclose(f);
	there--; /* the end, which says that it is cut */
	assert_in_range(there, 100, events - 1);
	assert_int_equal(there + missing, events);
	OK(hal_queue_destroy(q));
	world_close(&w);
	unlink(path);
}

/* A size that no version of a struct has is told; what is larger than ours is looked at.
 */
static void sizes_of_structs(void **state)
{
	static union {
		struct hal_queue_desc d;
		unsigned char bytes[65537];
	} large;
	struct hal_queue *q;
	struct world w;

	(void)state;
	world_open(&w, "mock");
	world_fill(&w);
	large.d = (struct hal_queue_desc)HAL_INIT(hal_queue_desc);
	large.d.size = 65536;
	OK(hal_queue_create(w.part, &large.d, &q));
	OK(hal_queue_destroy(q));
	large.bytes[65536] = 1; /* behind it */
	OK(hal_queue_create(w.part, &large.d, &q));
	OK(hal_queue_destroy(q));
	large.bytes[65535] = 1;
	FAILS(hal_queue_create(w.part, &large.d, &q), -E2BIG, "byte 65535");
	large.bytes[65535] = 0;
	large.bytes[sizeof(large.d)] = 1;
	FAILS(hal_queue_create(w.part, &large.d, &q), -E2BIG, "newer version");
	large.bytes[sizeof(large.d)] = 0;
	large.d.size = 65537;
	FAILS(hal_queue_create(w.part, &large.d, &q), -EINVAL, "65537");
	world_close(&w);
}

#define MS UINT64_C(1000000)

/* What the policies static and slots are given, by hand: a real clock is not exact. */
extern const struct hal_policy hal_policy_static;

static int64_t option_of(const struct hal_bk_config *cfg, const char *key)
{
	(void)cfg;
	return strcmp(key, "static_slots") == 0 ? 4 : 1000; /* us */
}

/* Only what ran into slots of others counts, not how late that is seen, nor what was
 * given to the device meanwhile. */
static void slots_left_out(void **state)
{
	static const struct hal_host host = {.size = sizeof(host),
					     .option_int = option_of};
	const struct hal_policy *p = &hal_policy_static;
	struct hal_policy_partition part = {.units = 1};
	struct hal_policy_queue q = {.weight = 1};
	struct hal_policy_end end = {.ran_ns = MS, .end_ns = 5 * MS, .now_ns = 5 * MS};
	void *slots;

	(void)state;
	assert_int_equal(p->create(&host, NULL, NULL, &slots), 0);
	assert_int_equal(p->attach(slots, &part, &q), 0);
	/* Its slots begin at 0, 4, 8 ... ms: it fits, but is seen in the next slot. */
	q.head.expected_ns = MS;
	assert_int_equal(p->turn(slots, &part, &q, 0, 4 * MS), 0);
	end.now_ns += 1000;
	p->ended(slots, &part, &q, &end);
	assert_int_equal(p->key(slots, &part, &q, 8 * MS), 8 * MS);
	/* One runs into the next slot while another is given for its next own: that one
	 * is left out all the same. */
	q.head.expected_ns = HAL_POLICY_NEVER;
	assert_int_equal(p->turn(slots, &part, &q, 0, 8 * MS), 0);
	q.running = part.running = 1;
	assert_int_equal(p->turn(slots, &part, &q, 0, 12 * MS), 0);
	end = (struct hal_policy_end){
		.ran_ns = 2 * MS, .end_ns = 10 * MS, .now_ns = 12 * MS};
	p->ended(slots, &part, &q, &end);
	q.running = part.running = 0;
	assert_int_equal(p->key(slots, &part, &q, 12 * MS), 16 * MS);
	p->detach(slots, &part, &q);
	p->destroy(slots);
}

extern const struct hal_policy hal_policy_slots;

/* No time is left until it could wait no longer: it is found all the same. */
static void at_the_end_of_time(void **state)
{
	static const struct hal_host host = {.size = sizeof(host),
					     .option_int = option_of};
	const struct hal_policy *p = &hal_policy_slots;
	struct hal_policy_partition part = {.units = 1};
	struct hal_policy_queue q = {.weight = 1,
				     .runnable_ns = UINT64_MAX - 10,
				     .head = {.submit_ns = UINT64_MAX - 10,
					      .deadline_ns = HAL_POLICY_NEVER,
					      .configuration = 1}};
	struct hal_policy_order order = {0};
	void *slots;

	(void)state;
	assert_int_equal(p->create(&host, NULL, NULL, &slots), 0);
	assert_int_equal(p->attach(slots, &part, &q), 0);
	p->enqueue(slots, &part, &q);
	assert_ptr_equal(p->pick(slots, &part, UINT64_MAX - 10, &order), &q);
	p->detach(slots, &part, &q);
	p->destroy(slots);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sizes_of_structs),
		cmocka_unit_test(at_the_deadline),
		cmocka_unit_test(slots_left_out),
		cmocka_unit_test(at_the_end_of_time),
		cmocka_unit_test(failed_is_not_missed),
		cmocka_unit_test(queueing),
		cmocka_unit_test(made_during_a_trace),
		cmocka_unit_test(together_on_tracks_of_their_own),
		cmocka_unit_test(missing_events_are_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

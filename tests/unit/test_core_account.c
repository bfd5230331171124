/* SPDX-License-Identifier: Apache-2.0 */
/* Busy time is a union; histograms; structs of other versions. */
#include "observe/account.h"
#include "util/error.h" /* before cmocka, which has a macro fail, too */

#include "mock_world.h"

/* Random intervals that end in order, against a plain array of instants. */
static void busy_union(void **state)
{
	enum { END = 4000 };
	static unsigned char covered[END];
	unsigned int seed = 7;

	(void)state;
	for (int round = 0; round < 200; round++) {
		struct busy b;
		uint64_t now = 0, total = 0;

		memset(&b, 0, sizeof(b));
		busy_init(&b);
		memset(covered, 0, sizeof(covered));
		while (now < END - 40) {
			uint64_t length = (uint64_t)rand_r(&seed) % 30;
			uint64_t start = now > length ? now - length : 0;

			/* Up to 40 before its end it may have started: what is older than
			 * that is settled. */
			if (!busy_extend(&b, start, now))
				busy_insert(&b, start, now, now > 40 ? now - 40 : 0);
			for (uint64_t t = start; t < now; t++)
				covered[t] = 1;
			now += (uint64_t)rand_r(&seed) % (round % 2 == 0 ? 60 : 9);
		}
		for (int t = 0; t < END; t++)
			total += covered[t];
		assert_int_equal(b.total, total);
	}
}

/* More gaps than are remembered, under one command that covers them all. */
static void busy_long_one(void **state)
{
	struct busy b;

	(void)state;
	memset(&b, 0, sizeof(b));
	busy_init(&b);
	for (uint64_t t = 10; t < 1000; t += 10)
		if (!busy_extend(&b, t, t + 1))
			busy_insert(&b, t, t + 1, 0);
	busy_insert(&b, 0, 1000, 0);
	assert_int_equal(b.total, 1000);
	assert_int_equal(b.count, 1);
}

/* One that the device has had all the while begins behind all others: no gap is its. */
static void busy_behind(void **state)
{
	enum { OTHERS = 63 };
	struct busy b;

	(void)state;
	memset(&b, 0, sizeof(b));
	busy_init(&b);
	for (uint64_t t = 10; t <= 10 * OTHERS; t += 10)
		if (!busy_extend(&b, t, t + 3))
			busy_insert(&b, t, t + 3, 0);
	busy_insert(&b, 1000, 1005, 0);
	assert_int_equal(b.total, 3 * OTHERS + 5);
	/* What is settled makes room. */
	busy_insert(&b, 2000, 2001, 1500);
	assert_int_equal(b.total, 3 * OTHERS + 6);
	assert_int_equal(b.count, 1);
}

static void histogram(void **state)
{
	struct account a;
	struct hal_stats s;

	(void)state;
	memset(&a, 0, sizeof(a));
	account_latency(&a, LATENCY_BOTH, 0);
	account_latency(&a, LATENCY_BOTH, 1);
	account_latency(&a, LATENCY_BOTH, 2);
	account_latency(&a, LATENCY_BOTH, 1023);
	account_latency(&a, LATENCY_BOTH, 1024);
	account_latency(&a, LATENCY_BOTH, UINT64_MAX);
	account_latency(&a, LATENCY_COMMAND, 9);
	account_latency(&a, LATENCY_SUBMISSION, 100000);
	account_export(&s, &a, 0, 0);
	assert_int_equal(s.latency_histogram[0], 2);
	assert_int_equal(s.latency_histogram[1], 1);
	assert_int_equal(s.latency_histogram[3], 1);
	assert_int_equal(s.latency_histogram[9], 1);
	assert_int_equal(s.latency_histogram[10], 1);
	assert_int_equal(s.latency_histogram[HAL_HISTOGRAM_BUCKETS - 1], 1);
	assert_int_equal(s.latency_max_ns, UINT64_MAX);
	/* Requests: the six and the one of several commands, in order. */
	assert_int_equal(s.requests, 7);
	assert_in_range(s.request_p50_ns, 1013, 1033);
	assert_int_equal(s.request_max_ns, UINT64_MAX);
}

static int by_value(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* At most 1 % beside the value that has its place among all, when they are sorted. */
static void is_near(uint64_t got, const uint64_t *sorted, size_t count, size_t per_mille)
{
	uint64_t want = sorted[(count * per_mille + 999) / 1000 - 1];

	assert_in_range(got, want - want / 100, want + want / 100);
}

/* Random requests of a few ns to minutes. */
static void percentiles(void **state)
{
	enum { COUNT = 20000 };
	static uint64_t ns[COUNT];
	unsigned int seed = 11;
	struct hal_stats s;
	struct account a;

	(void)state;
	for (uint32_t powers = 1; powers <= 40; powers += 3) {
		memset(&a, 0, sizeof(a));
		for (size_t i = 0; i < COUNT; i++) {
			uint64_t bits =
				(uint64_t)rand_r(&seed) << 16 ^ (uint64_t)rand_r(&seed);

			ns[i] = bits & ((UINT64_C(2) << bits % powers) - 1);
			account_latency(&a, LATENCY_BOTH, ns[i]);
		}
		account_export(&s, &a, 0, 0);
		qsort(ns, COUNT, sizeof(ns[0]), by_value);
		assert_int_equal(s.requests, COUNT);
		is_near(s.request_p50_ns, ns, COUNT, 500);
		is_near(s.request_p90_ns, ns, COUNT, 900);
		is_near(s.request_p99_ns, ns, COUNT, 990);
		is_near(s.request_p999_ns, ns, COUNT, 999);
		assert_int_equal(s.request_max_ns, ns[COUNT - 1]);
	}
}

struct old {
	uint32_t size, flags;
};

struct newer {
	uint32_t size, flags;
	uint64_t more;
};

static void versions(void **state)
{
	struct old o, small = {sizeof(small), 7};
	struct newer n, big = {sizeof(big), 7, 0};

	(void)state;
	/* An older caller: what it does not know is 0. */
	memset(&n, 0xff, sizeof(n));
	assert_int_equal(import_struct(&n, sizeof(n), sizeof(small), &small, "x"), 0);
	assert_int_equal(n.flags, 7);
	assert_int_equal(n.more, 0);
	/* A newer caller that uses nothing new, and one that does. */
	assert_int_equal(import_struct(&o, sizeof(o), sizeof(o), &big, "x"), 0);
	assert_int_equal(o.size, sizeof(o));
	big.more = 1;
	FAILS(import_struct(&o, sizeof(o), sizeof(o), &big, "x"), -E2BIG, "byte 8", "x");
	small.size = 4;
	FAILS(import_struct(&o, sizeof(o), sizeof(o), &small, "x"), -EINVAL,
	      "x.size is 4");
	small.size = UINT32_MAX;
	FAILS(import_struct(&o, sizeof(o), sizeof(o), &small, "x"), -EINVAL, "x.size");
	FAILS(import_struct(&o, sizeof(o), sizeof(o), NULL, "x"), -EINVAL, "x is NULL");
	/* Outputs end where the caller's struct does. */
	n = (struct newer){8, 0, 42};
	assert_int_equal(export_struct(&n, &(struct newer){16, 5, 6}, 16, 8, "x"), 0);
	assert_int_equal(n.flags, 5);
	assert_int_equal(n.more, 42);
	assert_int_equal(n.size, 8);
}

static void deadlines_and_latency(void **state)
{
	struct hal_queue_desc d = HAL_INIT(hal_queue_desc);
	struct hal_stats s;
	struct world w;
	struct hal_queue *q;

	(void)state;
	world_open(&w, "mock");
	world_fill(&w);
	d.deadline_ns = 15;
	OK(hal_queue_create(w.part, &d, &q));
	w.mock->advance(w.native, 100);
	assert_int_equal(hal_device_get_time(w.dev), 100);
	for (uint32_t i = 0; i < 3; i++)
		OK(submit_cmd(q, numbered(&w, i), NULL));
	poll_now(&w);
	for (uint32_t i = 0; i < 3; i++) {
		w.mock->complete(w.native, 1, 10);
		poll_now(&w);
	}
	s = queue_stats(q);
	/* Submitted at 100; they end at 110, 120 and 130. */
	assert_int_equal(s.deadline_misses, 2);
	assert_int_equal(s.latency_max_ns, 30);
	assert_int_equal(s.latency_histogram[3], 1);
	assert_int_equal(s.latency_histogram[4], 2);
	/* The second is ready when the first has ended: nobody else was in its way. */
	assert_int_equal(s.queueing_ns, 0);
	assert_int_equal(s.busy_ns, 30);
	assert_int_equal(s.bytes_read, 30);
	OK(hal_queue_destroy(q));
	/* What a queue did stays with its partition, and then with the device. */
	memset(&s, 0, sizeof(s));
	s.size = sizeof(s);
	OK(hal_partition_get_stats(w.part, &s));
	assert_int_equal(s.submitted, 3);
	assert_int_equal(s.deadline_misses, 2);
	OK(hal_device_get_stats(w.dev, &s));
	assert_int_equal(s.completed, 3);
	assert_int_equal(s.busy_ns, 30);
	world_close(&w);
}

/* Two queues of a partition: one waits for the other's turn to end. */
static void queueing(void **state)
{
	const char *const options[] = {PLUGINS, "hal.partition_inflight=1", NULL};
	struct hal_stats s = HAL_INIT(hal_stats);
	struct hal_queue *a, *b;
	struct world w;

	(void)state;
	world_open_with(&w, "mock", options);
	world_fill(&w);
	a = add_queue(w.part, 0);
	b = add_queue(w.part, 0);
	OK(submit_cmd(a, numbered(&w, 1), NULL));
	OK(submit_cmd(b, numbered(&w, 2), NULL));
	poll_now(&w);
	w.mock->complete(w.native, 1, 40);
	poll_now(&w);
	w.mock->complete(w.native, 1, 2);
	poll_now(&w);
	assert_int_equal(queue_stats(a).queueing_ns, 0);
	assert_int_equal(queue_stats(b).queueing_ns, 40);
	OK(hal_partition_get_stats(w.part, &s));
	assert_int_equal(s.busy_ns, 42);
	assert_int_equal(s.queueing_ns, 40);
	OK(hal_queue_destroy(a));
	OK(hal_queue_destroy(b));
	world_close(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(busy_union),
		cmocka_unit_test(busy_long_one),
		cmocka_unit_test(busy_behind),
		cmocka_unit_test(histogram),
		cmocka_unit_test(versions),
		cmocka_unit_test(queueing),
		cmocka_unit_test(deadlines_and_latency),
		cmocka_unit_test(percentiles),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_real - the library in real time, beside a control in the same run.
 *
 *   bench_real MODE [ROUNDS [MS]]
 *
 *   vs_ring        CPU time of all threads a launch, in windows of 256 hal_submit and
 *                  one hal_wait, over that of a record that a thread gets through a
 *                  bare ring and hands back, in windows of as many (control.h)
 *   vs_bare_ring   the same, with a control whose threads never sleep
 *   latency        p50 of hal_submit + hal_wait, one at a time, over the p50 of such a
 *                  record there and back
 *   syscalls       system calls of all threads a launch, in windows of 256 whose end
 *                  the host looks for with hal_timeline_get_value, so that neither side
 *                  sleeps; counted by a process that traces this one.  As a note, the
 *                  same with hal_wait
 *   cpu_share      launches that take 100 us each, one at a time: CPU time of the
 *                  process over wall time; beside it the share of a thread that only
 *                  sleeps 100 us at a time, which is what a wake-up costs here
 *   stats_readers  rate of hal_submit + hal_wait beside four threads that read a
 *                  counter without end, over the rate beside four that call
 *                  hal_device_get_stats; both at nice 10.  Beside it the rate alone
 *                  over the latter
 *   cold           p99 of hal_submit + hal_wait while another thread loads programs of
 *                  100 ms each, over p99 alone.  Needs `ref` with the option load_ms,
 *                  whose time should pass asleep; exit status 77 without it
 *   asleep         p50 of hal_submit alone, in ns, to an engine that has had nothing to
 *                  do for 1 ms and sleeps; beside it to an engine that is awake
 *   pauses         p50 of hal_submit + hal_wait, in ns, of launches that take 10 us, each
 *                  after a pause of 1 ms.  Beside it how often threads slept for each
 *                  launch, the pause not counted
 *   suspend        beside two threads that submit windows of 32 to queues of their own, a
 *                  queue with 257 launches is suspended (DRAIN) when the first has ended:
 *                  p99 over all rounds of the call, and of the call until the queue is
 *                  quiet, in us
 *
 * Each is measured ROUNDS (5) times, for MS (250) milliseconds a side; the figure is the
 * median of the rounds' ratios, and each round's numbers are printed before it.  Launches
 * are those of bench_submit: two buffers, 1 ns of device time.  In the first three this
 * thread and the others are bound to a processor each, by what /proc/self/task lists.
 * The machine should be idle and have two at least.  A library that hangs ends the run
 * with an error after 20 s.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "bench.h"
#include "calls.h"
#include "control.h"

#define WINDOW      256
#define SAMPLES_MAX 65536
#define ROUNDS_MAX  101
#define READERS     4
#define PRODUCERS   2

static const char *const deep[] = {"hal.queue_depth=1024", NULL};

struct real {
	struct bench b;
	struct control *control;
	unsigned int rounds;
	uint64_t ns; /* of one side of a round */
	uint64_t samples[SAMPLES_MAX];
};

static int compare_u64(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static int compare_double(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static double median(double *values, unsigned int count)
{
	qsort(values, count, sizeof(*values), compare_double);
	return count % 2 != 0 ? values[count / 2]
			      : (values[count / 2 - 1] + values[count / 2]) / 2;
}

/* Sorts the samples; share 0.5: the median. */
static double percentile(uint64_t *samples, unsigned int count, double share)
{
	unsigned int at = (unsigned int)(share * count);

	if (count == 0)
		return 0;
	qsort(samples, count, sizeof(*samples), compare_u64);
	return (double)samples[at < count ? at : count - 1];
}

static int submit_wait(struct bench *b, struct hal_queue *q)
{
	struct hal_point done;

	if (hal_submit(q, &b->desc, &done) != 0)
		return bench_die("hal_submit");
	if (hal_wait(&done, 1, 0, HAL_FOREVER) != 0)
		return bench_die("hal_wait");
	return 0;
}

/* A window's launches; *done: the last of them. */
static int submit_window(struct bench *b, struct hal_queue *q, unsigned int count,
			 struct hal_point *done)
{
	for (unsigned int i = 0; i < count; i++)
		if (hal_submit(q, &b->desc, done) != 0)
			return bench_die("hal_submit");
	return 0;
}

static int window(struct bench *b, struct hal_queue *q, unsigned int count)
{
	struct hal_point done;

	if (submit_window(b, q, count, &done) != 0)
		return TOOL_FAILED;
	if (hal_wait(&done, 1, 0, HAL_FOREVER) != 0)
		return bench_die("hal_wait");
	return 0;
}

/* Both sides, each by hand of one function that does its work once. */
static int once_window(struct real *r)
{
	return window(&r->b, r->b.queues[0], WINDOW);
}

static int once_control_window(struct real *r)
{
	control_hand(r->control, WINDOW);
	return 0;
}

static int once_launch(struct real *r)
{
	return submit_wait(&r->b, r->b.queues[0]);
}

static int once_control_record(struct real *r)
{
	control_hand(r->control, 1);
	return 0;
}

typedef int (*once_fn)(struct real *r);

/* CPU time of one call of once. */
static int measure_cpu(struct real *r, once_fn once, double *cpu, double *wall)
{
	uint64_t start, cpu_start, end;
	unsigned int count = 0;

	bench_within(20);
	for (int i = 0; i < 8; i++)
		if (once(r) != 0)
			return TOOL_FAILED;
	start = bench_now();
	cpu_start = bench_cpu();
	do {
		if (once(r) != 0)
			return TOOL_FAILED;
		count++;
		end = bench_now();
	} while (end - start < r->ns);
	*cpu = (double)(bench_cpu() - cpu_start) / count;
	*wall = (double)(end - start) / count;
	return 0;
}

/* Wall times of calls of once, in r->samples; *rate: calls a second. */
static int measure_times(struct real *r, once_fn once, unsigned int *count, double *rate)
{
	uint64_t start = bench_now(), last = start;
	unsigned int n = 0;

	bench_within(20);
	do {
		uint64_t now;

		if (once(r) != 0)
			return TOOL_FAILED;
		now = bench_now();
		r->samples[n++] = now - last;
		last = now;
	} while (n < SAMPLES_MAX && last - start < r->ns);
	*count = n;
	*rate = (double)n * 1e9 / (double)(last - start);
	return 0;
}

static int percentile_of(struct real *r, once_fn once, double share, double *ns)
{
	unsigned int count;
	double rate;

	/* Both sides awake, caches warm. */
	for (int i = 0; i < 64; i++)
		if (once(r) != 0)
			return TOOL_FAILED;
	if (measure_times(r, once, &count, &rate) != 0)
		return TOOL_FAILED;
	*ns = percentile(r->samples, count, share);
	return 0;
}

static int open_real(struct real *r, const char *target, uint64_t span_ns,
		     unsigned int queues)
{
	bench_within(20);
	return bench_open(&r->b, target, deep, span_ns) ||
	       bench_add_queues(&r->b, queues, 0);
}

static void pin(pid_t thread, int nth)
{
	/* Of the process, before a thread of it was bound. */
	static cpu_set_t all;
	cpu_set_t one;

	if (CPU_COUNT(&all) == 0 && sched_getaffinity(getpid(), sizeof(all), &all) != 0)
		return;
	CPU_ZERO(&one);
	for (size_t cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &all) && nth-- == 0)
			CPU_SET(cpu, &one);
	if (CPU_COUNT(&one) == 1)
		(void)sched_setaffinity(thread, sizeof(one), &one);
}

/* This thread on the first processor it may use, all others on the second: where the
 * scheduler puts them is not what is compared. */
static void pin_all(void)
{
	DIR *dir = opendir("/proc/self/task");
	const struct dirent *e;

	if (dir == NULL)
		return;
	while ((e = readdir(dir)) != NULL) {
		pid_t thread = (pid_t)strtol(e->d_name, NULL, 10);

		if (thread > 0 && thread != getpid())
			pin(thread, 1);
	}
	(void)closedir(dir);
	pin(getpid(), 0);
}

/* Longer than a record takes there and back. */
#define AWAKE_NS UINT64_C(50000)

static int open_control(struct real *r, uint64_t least_ns)
{
	r->control = control_open(least_ns);
	if (r->control != NULL) {
		pin_all();
		return 0;
	}
	return tool_fail("no control");
}

/* ---- vs_ring, latency ------------------------------------------------------------- */

static int compare_with_ring(struct real *r, uint64_t least_ns, const char *figure)
{
	double ratios[ROUNDS_MAX];

	if (open_real(r, "ref?clock=real", 1, 1) != 0)
		return TOOL_FAILED;
	pin_all();
	for (unsigned int i = 0; i < r->rounds; i++) {
		double cpu, wall, control_cpu, control_wall;
		int err;

		/* The control's thread may never sleep, so it is there only for its
		 * own measurement. */
		if (measure_cpu(r, once_window, &cpu, &wall) != 0 ||
		    open_control(r, least_ns) != 0)
			return TOOL_FAILED;
		err = measure_cpu(r, once_control_window, &control_cpu, &control_wall);
		control_close(r->control);
		if (err != 0)
			return err;
		ratios[i] = cpu / control_cpu;
		printf("a launch: cpu %.0f ns, wall %.0f ns; a record: cpu %.0f ns, wall "
		       "%.0f ns\n",
		       cpu / WINDOW, wall / WINDOW, control_cpu / WINDOW,
		       control_wall / WINDOW);
	}
	printf("figure %s %.3f\n", figure, median(ratios, r->rounds));
	return bench_close(&r->b);
}

static int run_vs_ring(struct real *r)
{
	return compare_with_ring(r, 0, "hal.real.vs_ring");
}

static int run_vs_bare_ring(struct real *r)
{
	return compare_with_ring(r, CONTROL_BARE, "hal.real.vs_bare_ring");
}

static int run_latency(struct real *r)
{
	double ratios[ROUNDS_MAX];

	if (open_real(r, "ref?clock=real", 1, 1) != 0 || open_control(r, AWAKE_NS) != 0)
		return TOOL_FAILED;
	for (unsigned int i = 0; i < r->rounds; i++) {
		double ns, control_ns;

		if (percentile_of(r, once_launch, 0.5, &ns) != 0 ||
		    percentile_of(r, once_control_record, 0.5, &control_ns) != 0)
			return TOOL_FAILED;
		ratios[i] = ns / control_ns;
		printf("p50: a launch %.0f ns, a record there and back %.0f ns\n", ns,
		       control_ns);
	}
	printf("figure hal.real.latency_vs_ring %.3f\n", median(ratios, r->rounds));
	control_close(r->control);
	return bench_close(&r->b);
}

/* ---- syscalls --------------------------------------------------------------------- */

static int once_window_looking(struct real *r)
{
	struct hal_point done;

	if (submit_window(&r->b, r->b.queues[0], WINDOW, &done) != 0)
		return TOOL_FAILED;
	while (hal_timeline_get_value(done.timeline, NULL) < done.value)
		;
	return 0;
}

static int windows_counted(struct real *r, once_fn once)
{
	uint64_t start = bench_now();
	unsigned long launches = 0;

	bench_within(20);
	for (int i = 0; i < 8; i++)
		if (once(r) != 0)
			return TOOL_FAILED;
	calls_begin();
	do {
		if (once(r) != 0)
			return TOOL_FAILED;
		launches += WINDOW;
	} while (bench_now() - start < r->ns);
	calls_end(launches);
	return 0;
}

/* In a process of its own, which the first one traces. */
static int syscalls_traced(void *user)
{
	struct real *r = user;

	if (open_real(r, "ref?clock=real", 1, 1) != 0)
		return TOOL_FAILED;
	pin_all();
	for (unsigned int i = 0; i < r->rounds; i++)
		if (windows_counted(r, once_window_looking) != 0 ||
		    windows_counted(r, once_window) != 0)
			return TOOL_FAILED;
	return bench_close(&r->b);
}

static int run_syscalls(struct real *r)
{
	struct calls_part parts[2 * ROUNDS_MAX];
	double looking[ROUNDS_MAX], waiting[ROUNDS_MAX];
	int err;

	/* Above the child's own bound, which ends it first. */
	bench_within(20 * r->rounds + 40);
	err = calls_trace(syscalls_traced, r, parts, 2 * r->rounds);
	if (err != 0)
		return err;
	for (unsigned int i = 0; i < r->rounds; i++) {
		const struct calls_part *p = &parts[2 * (size_t)i];

		looking[i] = (double)p[0].calls / (double)p[0].divisor;
		waiting[i] = (double)p[1].calls / (double)p[1].divisor;
		printf("system calls: %lu for %lu launches, both awake; %lu for %lu with "
		       "hal_wait\n",
		       p[0].calls, p[0].divisor, p[1].calls, p[1].divisor);
	}
	printf("with_hal_wait %.5f\n", median(waiting, r->rounds));
	printf("figure hal.real.syscalls_per_command %.5f\n", median(looking, r->rounds));
	return 0;
}

/* ---- cpu_share -------------------------------------------------------------------- */

/* The control: no library, one sleep that ends as precisely as the engine's do. */
static int once_sleep(struct real *r)
{
	struct timespec t = {.tv_nsec = 100000};

	(void)r;
	(void)clock_nanosleep(CLOCK_MONOTONIC, 0, &t, NULL);
	return 0;
}

static int run_cpu_share(struct real *r)
{
	double shares[ROUNDS_MAX], sleepers[ROUNDS_MAX];

	if (open_real(r, "ref?clock=real", 100000, 1) != 0)
		return TOOL_FAILED;
	for (unsigned int i = 0; i < r->rounds; i++) {
		double cpu, wall, sleep_cpu, sleep_wall;

		if (measure_cpu(r, once_launch, &cpu, &wall) != 0)
			return TOOL_FAILED;
		(void)prctl(PR_SET_TIMERSLACK, 1000UL, 0, 0, 0);
		if (measure_cpu(r, once_sleep, &sleep_cpu, &sleep_wall) != 0)
			return TOOL_FAILED;
		(void)prctl(PR_SET_TIMERSLACK, 0UL, 0, 0, 0); /* what it was */
		shares[i] = cpu / wall;
		sleepers[i] = sleep_cpu / sleep_wall;
		printf("a launch of 100 us: cpu %.1f us, wall %.1f us; a sleep of as "
		       "much: "
		       "cpu %.1f us, wall %.1f us\n",
		       cpu / 1e3, wall / 1e3, sleep_cpu / 1e3, sleep_wall / 1e3);
	}
	printf("figure hal.real.cpu_share_100us.sleeper %.4f\n",
	       median(sleepers, r->rounds));
	printf("figure hal.real.cpu_share_100us %.4f\n", median(shares, r->rounds));
	return bench_close(&r->b);
}

/* ---- threads beside --------------------------------------------------------------- */

/* Threads that do one thing again and again until they are stopped. */
struct crowd {
	struct bench *b;
	int (*once)(struct crowd *c, unsigned int index);
	unsigned int count;
	int nice;
	pthread_t threads[READERS];
	_Atomic unsigned int started;
	_Atomic int stop, failed;
	_Atomic unsigned long done;
	volatile uint64_t counter;
};

static void *crowd_main(void *arg)
{
	struct crowd *c = arg;
	unsigned int index = atomic_fetch_add(&c->started, 1);
	unsigned long done = 0;

	if (c->nice != 0)
		(void)setpriority(PRIO_PROCESS, (id_t)gettid(), c->nice);
	while (atomic_load_explicit(&c->stop, memory_order_relaxed) == 0) {
		if (c->once(c, index) != 0) {
			atomic_store(&c->failed, 1);
			break;
		}
		done++;
	}
	atomic_fetch_add(&c->done, done);
	return NULL;
}

static int crowd_stop(struct crowd *c)
{
	atomic_store(&c->stop, 1);
	while (c->count > 0)
		(void)pthread_join(c->threads[--c->count], NULL);
	return atomic_load(&c->failed);
}

static int crowd_start(struct crowd *c, struct bench *b, unsigned int count, int nice,
		       int (*once)(struct crowd *c, unsigned int index))
{
	memset(c, 0, sizeof(*c));
	c->b = b;
	c->nice = nice;
	c->once = once;
	for (; c->count < count; c->count++)
		if (pthread_create(&c->threads[c->count], NULL, crowd_main, c) != 0) {
			(void)crowd_stop(c);
			return tool_fail("no thread");
		}
	return 0;
}

/* ---- stats_readers ---------------------------------------------------------------- */

/* Where all are equal, whom the scheduler puts beside whom changes a rate by a factor of
 * four from one round to the next. */
#define READERS_NICE 10

static int read_stats(struct crowd *c, unsigned int index)
{
	struct hal_stats stats = HAL_INIT(hal_stats);

	(void)index;
	if (hal_device_get_stats(c->b->dev, &stats) != 0)
		return bench_die("hal_device_get_stats");
	return 0;
}

static int read_counter(struct crowd *c, unsigned int index)
{
	(void)index;
	return c->counter != 0;
}

static int rate_beside(struct real *r, unsigned int count,
		       int (*once)(struct crowd *c, unsigned int index), double *rate)
{
	struct crowd crowd;
	unsigned int samples;
	int err;

	bench_within(20);
	if (crowd_start(&crowd, &r->b, count, READERS_NICE, once) != 0)
		return TOOL_FAILED;
	err = measure_times(r, once_launch, &samples, rate);
	return crowd_stop(&crowd) || err;
}

static int run_stats_readers(struct real *r)
{
	double ratios[ROUNDS_MAX], over_alone[ROUNDS_MAX];

	if (open_real(r, "ref?clock=real", 1, 1) != 0)
		return TOOL_FAILED;
	for (unsigned int i = 0; i < r->rounds; i++) {
		double alone, stats, counter;

		if (rate_beside(r, 0, read_counter, &alone) != 0 ||
		    rate_beside(r, READERS, read_counter, &counter) != 0 ||
		    rate_beside(r, READERS, read_stats, &stats) != 0)
			return TOOL_FAILED;
		ratios[i] = counter / stats;
		over_alone[i] = alone / stats;
		printf("launches a second: alone %.0f, beside readers of a counter %.0f, "
		       "of the statistics %.0f\n",
		       alone, counter, stats);
	}
	printf("figure hal.real.stats_readers_slowdown.over_alone %.3f\n",
	       median(over_alone, r->rounds));
	printf("figure hal.real.stats_readers_slowdown %.3f\n",
	       median(ratios, r->rounds));
	return bench_close(&r->b);
}

/* ---- cold ------------------------------------------------------------------------- */

static int load_once(struct crowd *c, unsigned int index)
{
	struct hal_program *prog;

	(void)index;
	if (bench_load(c->b->dev, 1, &prog) != 0)
		return TOOL_FAILED;
	if (hal_program_unload(prog) != 0)
		return bench_die("hal_program_unload");
	return 0;
}

static int run_cold(struct real *r)
{
	static const char target[] = "ref?clock=real&load_ms=100";
	double ratios[ROUNDS_MAX];
	struct hal_device *dev;
	int err = hal_open(target, NULL, &dev);

	if (err == -EINVAL) {
		printf("ref has no option load_ms: %s\n", hal_last_error());
		return BENCH_SKIP;
	}
	if (err != 0 || hal_close(dev) != 0)
		return bench_die(target);
	if (open_real(r, target, 1, 1) != 0)
		return TOOL_FAILED;
	for (unsigned int i = 0; i < r->rounds; i++) {
		double alone, beside = 0;
		struct crowd crowd;

		if (percentile_of(r, once_launch, 0.99, &alone) != 0 ||
		    crowd_start(&crowd, &r->b, 1, 0, load_once) != 0)
			return TOOL_FAILED;
		err = percentile_of(r, once_launch, 0.99, &beside);
		if (crowd_stop(&crowd) != 0 || err != 0)
			return TOOL_FAILED;
		ratios[i] = beside / alone;
		printf("p99: alone %.1f us, beside %lu loads %.1f us\n", alone / 1e3,
		       atomic_load(&crowd.done), beside / 1e3);
	}
	printf("figure hal.real.cold_slowdown %.3f\n", median(ratios, r->rounds));
	return bench_close(&r->b);
}

/* ---- asleep ----------------------------------------------------------------------- */

/* The times of hal_submit, after a pause of pause_ns, in r->samples. */
static int measure_submits(struct real *r, uint64_t pause_ns, unsigned int count)
{
	const struct timespec pause = {.tv_nsec = (long)pause_ns};
	struct hal_point done;

	bench_within(20);
	for (unsigned int i = 0; i < count; i++) {
		uint64_t start;

		if (pause_ns != 0)
			(void)clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
		start = bench_now();
		if (submit_window(&r->b, r->b.queues[0], 1, &done) != 0)
			return TOOL_FAILED;
		r->samples[i] = bench_now() - start;
		if (hal_wait(&done, 1, 0, HAL_FOREVER) != 0)
			return bench_die("hal_wait");
	}
	return 0;
}

static int run_asleep(struct real *r)
{
	double asleep[ROUNDS_MAX], awake[ROUNDS_MAX];
	const unsigned int count = (unsigned int)(r->ns / 2000000) + 1;

	if (open_real(r, "ref?clock=real", 1, 1) != 0)
		return TOOL_FAILED;
	pin_all();
	for (unsigned int i = 0; i < r->rounds; i++) {
		if (measure_submits(r, 1000000, count) != 0)
			return TOOL_FAILED;
		asleep[i] = percentile(r->samples, count, 0.5);
		if (measure_submits(r, 0, count) != 0)
			return TOOL_FAILED;
		awake[i] = percentile(r->samples, count, 0.5);
		printf("p50 of hal_submit: the engine asleep %.0f ns, awake %.0f ns\n",
		       asleep[i], awake[i]);
	}
	printf("figure hal.real.submit_asleep_ns %.0f\n", median(asleep, r->rounds));
	printf("figure hal.real.submit_asleep_ns.awake %.0f\n", median(awake, r->rounds));
	return bench_close(&r->b);
}

/* ---- pauses ----------------------------------------------------------------------- */

/* Voluntary context switches of all threads. */
static double switches(void)
{
	struct rusage u;

	return getrusage(RUSAGE_SELF, &u) == 0 ? (double)u.ru_nvcsw : 0;
}

static int run_pauses(struct real *r)
{
	const struct timespec pause = {.tv_nsec = 1000000};
	const unsigned int count = (unsigned int)(r->ns / 1000000) + 1;
	double ns[ROUNDS_MAX], slept[ROUNDS_MAX];

	if (open_real(r, "ref?clock=real", 10000, 1) != 0)
		return TOOL_FAILED;
	pin_all();
	for (unsigned int i = 0; i < r->rounds; i++) {
		double before = switches();

		bench_within(20);
		for (unsigned int k = 0; k < count; k++) {
			uint64_t start;

			(void)clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
			start = bench_now();
			if (once_launch(r) != 0)
				return TOOL_FAILED;
			r->samples[k] = bench_now() - start;
		}
		slept[i] = (switches() - before) / count - 1;
		ns[i] = percentile(r->samples, count, 0.5);
		printf("p50 of a launch of 10 us after a pause: %.0f ns, %.2f sleeps\n",
		       ns[i], slept[i]);
	}
	printf("figure hal.real.pauses_ns %.0f\n", median(ns, r->rounds));
	printf("figure hal.real.pauses_ns.sleeps %.2f\n", median(slept, r->rounds));
	return bench_close(&r->b);
}

/* ---- suspend ---------------------------------------------------------------------- */

static int produce(struct crowd *c, unsigned int index)
{
	return window(c->b, c->b->queues[1 + index], 32);
}

/* What it took: the call, and from then until the queue was quiet. */
static int suspend_once(struct real *r, uint64_t *call, uint64_t *quiet)
{
	struct hal_queue *q = r->b.queues[0];
	struct hal_point point, done;
	uint64_t start;

	/* The first has ended: the engine is at the others. */
	if (submit_window(&r->b, q, 1, &point) != 0 ||
	    submit_window(&r->b, q, WINDOW, &done) != 0)
		return TOOL_FAILED;
	if (hal_wait(&point, 1, 0, HAL_FOREVER) != 0)
		return bench_die("hal_wait");
	start = bench_now();
	if (hal_queue_suspend(q, HAL_SUSPEND_DRAIN, &point) != 0)
		return bench_die("hal_queue_suspend");
	*call = bench_now() - start;
	if (hal_wait(&point, 1, 0, HAL_FOREVER) != 0)
		return bench_die("waiting for a queue to be quiet");
	*quiet = bench_now() - start;
	if (hal_queue_resume(q) != 0)
		return bench_die("hal_queue_resume");
	if (hal_wait(&done, 1, 0, HAL_FOREVER) != 0)
		return bench_die("hal_wait");
	return 0;
}

/* Adds to calls[] and r->samples[], of which there are *count. */
static int suspend_round(struct real *r, uint64_t *calls, unsigned int *count)
{
	unsigned int n = *count;
	uint64_t start = bench_now();
	struct crowd crowd;
	int err = 0;

	bench_within(20);
	if (crowd_start(&crowd, &r->b, PRODUCERS, 0, produce) != 0)
		return TOOL_FAILED;
	for (; err == 0 && n < SAMPLES_MAX && bench_now() - start < r->ns; n++)
		err = suspend_once(r, &calls[n], &r->samples[n]);
	if (crowd_stop(&crowd) != 0 || err != 0)
		return TOOL_FAILED;
	printf("%u suspends, %lu windows beside\n", n - *count, atomic_load(&crowd.done));
	*count = n;
	return 0;
}

static int run_suspend(struct real *r)
{
	static uint64_t calls[SAMPLES_MAX];
	unsigned int count = 0;

	if (open_real(r, "ref?clock=real", 1, 1 + PRODUCERS) != 0)
		return TOOL_FAILED;
	for (unsigned int i = 0; i < r->rounds; i++)
		if (suspend_round(r, calls, &count) != 0)
			return TOOL_FAILED;
	printf("p50 of %u: the call %.1f us, quiet %.1f us\n", count,
	       percentile(calls, count, 0.5) / 1e3,
	       percentile(r->samples, count, 0.5) / 1e3);
	printf("figure hal.real.suspend_call_p99_us %.1f\n",
	       percentile(calls, count, 0.99) / 1e3);
	printf("figure hal.real.suspend_quiet_p99_us %.1f\n",
	       percentile(r->samples, count, 0.99) / 1e3);
	return bench_close(&r->b);
}

/* ----------------------------------------------------------------------------------- */

static const struct mode {
	const char *name;
	int (*run)(struct real *r);
} modes[] = {
	{"vs_ring", run_vs_ring},     {"vs_bare_ring", run_vs_bare_ring},
	{"latency", run_latency},     {"syscalls", run_syscalls},
	{"cpu_share", run_cpu_share}, {"stats_readers", run_stats_readers},
	{"cold", run_cold},           {"asleep", run_asleep},
	{"pauses", run_pauses},       {"suspend", run_suspend},
};

int main(int argc, char **argv)
{
	static struct real r;
	unsigned long ms = argc > 3 ? strtoul(argv[3], NULL, 10) : 250;

	r.rounds = argc > 2 ? (unsigned int)strtoul(argv[2], NULL, 10) : 5;
	r.ns = (uint64_t)ms * 1000000;
	for (size_t i = 0; argc > 1 && i < sizeof(modes) / sizeof(modes[0]); i++)
		if (strcmp(argv[1], modes[i].name) == 0 && r.rounds > 0 &&
		    r.rounds <= ROUNDS_MAX && ms <= 5000) {
			(void)setvbuf(stdout, NULL, _IOLBF, 0);
			return tool_end(modes[i].run(&r));
		}
	fprintf(stderr,
		"usage: bench_real vs_ring|vs_bare_ring|latency|syscalls|cpu_share|"
		"stats_readers|cold|asleep|pauses|suspend [ROUNDS (1..%d) [MS "
		"(..5000)]]\n",
		ROUNDS_MAX);
	return 2;
}

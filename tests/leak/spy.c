/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spy.c - what a program learns about another from how long hald takes to answer it.
 *
 *   spy [TRIALS [SEED]]           a line a setting, and the price of ticks; fails if a
 *                                 control tells nothing, or ticks tell something
 *   spy figures [TRIALS [SEED]]   figures of it, and the price of ticks
 *
 * Victim and spy are processes that use one hald.  In each trial the victim does one of
 * two things, by a bit drawn for it.  Meanwhile the spy times requests, also some that it
 * sends just before a tick, and submissions from hal_submit to the end of hal_wait.  It
 * knows nothing else.
 *
 * Processes also share the processors of the machine, whatever hald does.  So the victim
 * that does not use hald computes instead, where hald is busy for the other one; with
 * ticks, in which hald and its clients sleep most of the time, it does nothing, and the
 * setting "processors" shows what a busy processor tells.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <hal/hal.h>

#include "information.h"

#define TRIALS   200u
#define SHUFFLES 1000u
#define ROUNDS   12u
#define TICK_US  "500"
#define TICK_NS  UINT64_C(500000)
#define BEFORE   UINT64_C(20000) /* ns before a tick at which the spy aims */
#define TARGET   "ref:0?clock=real"

/* The test fails where a control tells less, or ticks tell more.  Other work of the
 * machine makes both worse. */
#define LEAKS_LEAST 0.1
#define TICKS_MOST  0.25

/* What the spy times; of each the least, the median and the most of a trial. */
enum { REQUEST, AIMED, SUBMISSION, KINDS };
enum { COLUMNS = KINDS * 3 };

enum action { NOTHING, COMPUTES, REQUESTS, COMMANDS, ENDS };

static const struct setting {
	const char *name;
	enum action one, zero; /* by the secret bit */
	bool tick, leaks;
} settings[] = {
	{"none", NOTHING, NOTHING, false, false},
	{"requests", REQUESTS, COMPUTES, false, true},
	{"commands", COMMANDS, COMPUTES, false, true},
	{"tick_requests", REQUESTS, NOTHING, true, false},
	{"tick_commands", COMMANDS, NOTHING, true, false},
	{"processors", COMPUTES, NOTHING, true, false},
};
#define SETTINGS (sizeof(settings) / sizeof(settings[0]))

static const char *const names[COLUMNS] = {
	"least request",    "median request",    "longest request",
	"least aimed",      "median aimed",      "longest aimed",
	"least submission", "median submission", "longest submission",
};

/* What both processes share. */
struct common {
	_Atomic uint32_t wanted, done; /* enum action */
};

struct bench {
	pid_t hald, victim;
	char dir[64], option[96];
	struct common *common;
	struct hal_device *dev;
	struct hal_partition *part;
	struct hal_queue *q;
	struct hal_buffer *buf;
	uint64_t answered; /* when the spy's last request was */
};

static _Noreturn void die(const char *what)
{
	(void)fflush(stdout);
	fprintf(stderr, "spy: %s: %s\n", what, hal_last_error());
	_Exit(2);
}

static void ok(int rc, const char *what)
{
	if (rc != 0)
		die(what);
}

static uint64_t now_ns(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
}

/* ---- processes ----------------------------------------------------------------------- */

static void hald_begin(struct bench *b, bool tick)
{
	const char *arguments[] = {HALD,   "--dir",  b->dir,  "--name", "spied",
				   TARGET, "--tick", TICK_US, NULL};
	char line[256];
	int out[2];

	if (!tick)
		arguments[6] = NULL;
	ok(pipe2(out, O_CLOEXEC), "pipe");
	b->hald = fork();
	if (b->hald == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		(void)dup2(out[1], STDOUT_FILENO);
		execv(HALD, (char **)(uintptr_t)arguments);
		_exit(127);
	}
	(void)close(out[1]);
	if (read(out[0], line, sizeof(line)) <= 0)
		die("hald does not start");
	(void)close(out[0]);
}

static void program_open(struct bench *b)
{
	const char *const options[] = {b->option, NULL};
	struct hal_partition_desc part = HAL_INIT(hal_partition_desc);
	struct hal_queue_desc queue = HAL_INIT(hal_queue_desc);
	struct hal_buffer_desc buffer = HAL_INIT(hal_buffer_desc);

	ok(hal_open("hald:spied", options, &b->dev), "open");
	part.units_floor = 1;
	ok(hal_partition_create(b->dev, &part, &b->part), "partition");
	ok(hal_queue_create(b->part, &queue, &b->q), "queue");
	buffer.bytes = 4096;
	ok(hal_buffer_create(b->part, &buffer, &b->buf), "buffer");
}

static void program_close(struct bench *b)
{
	ok(hal_queue_destroy(b->q), "queue");
	ok(hal_buffer_destroy(b->buf), "buffer");
	ok(hal_partition_destroy(b->part), "partition");
	ok(hal_close(b->dev), "close");
}

static void request(const struct bench *b)
{
	struct hal_partition_info info = HAL_INIT(hal_partition_info);

	ok(hal_partition_get_info(b->part, &info), "info");
}

/* Submit count fills, one by one, and wait for the last. */
static void submissions(const struct bench *b, uint32_t count)
{
	struct hal_cmd fill = hal_cmd_fill(b->buf, 0, 64, 7);
	struct hal_submit_desc d = HAL_INIT(hal_submit_desc);
	struct hal_point done;

	d.cmds = &fill;
	d.cmd_count = 1;
	for (uint32_t i = 0; i < count; i++)
		ok(hal_submit(b->q, &d, &done), "submit");
	ok(hal_wait(&done, 1, 0, HAL_FOREVER), "wait");
}

static void futex(_Atomic uint32_t *word, int op, uint32_t value)
{
	(void)syscall(SYS_futex, word, op, value, NULL, NULL, 0);
}

static _Noreturn void victim_main(struct bench *b)
{
	struct common *c = b->common;

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	program_open(b);
	for (;;) {
		const uint32_t wanted = atomic_load(&c->wanted);

		atomic_store(&c->done, wanted);
		switch (wanted) {
		case NOTHING:
			futex(&c->wanted, FUTEX_WAIT, NOTHING);
			break;
		case REQUESTS:
			request(b);
			break;
		case COMMANDS:
			submissions(b, 16);
			break;
		case ENDS:
			program_close(b);
			_exit(0);
		default:
			break;
		}
	}
}

/* Have the victim do so, and wait until it does. */
static void want(const struct bench *b, enum action action)
{
	atomic_store(&b->common->wanted, action);
	futex(&b->common->wanted, FUTEX_WAKE, 1);
	while (action != ENDS && atomic_load(&b->common->done) != (uint32_t)action)
		(void)sched_yield();
}

static void bench_begin(struct bench *b, bool tick)
{
	(void)snprintf(b->dir, sizeof(b->dir), "/tmp/spy.XXXXXX");
	if (mkdtemp(b->dir) == NULL)
		die("mkdtemp");
	(void)snprintf(b->option, sizeof(b->option), "hal.broker_dir=%s", b->dir);
	hald_begin(b, tick);
	b->common = mmap(NULL, sizeof(*b->common), PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (b->common == MAP_FAILED)
		die("mmap");
	b->victim = fork();
	if (b->victim == 0)
		victim_main(b);
	program_open(b);
}

static void bench_end(struct bench *b)
{
	int status = 0;

	want(b, ENDS);
	(void)waitpid(b->victim, &status, 0);
	if (status != 0)
		die("the victim has not ended well");
	program_close(b);
	(void)kill(b->hald, SIGTERM);
	(void)waitpid(b->hald, &status, 0);
	if (status != 0)
		die("hald has not ended well");
	(void)munmap(b->common, sizeof(*b->common));
	(void)rmdir(b->dir);
}

/* ---- trials ------------------------------------------------------------------------ */

/* Wait until shortly before a tick: at that time after the last answer, which came just
 * after one. */
static void aim(uint64_t answered)
{
	const uint64_t at = answered + TICK_NS - BEFORE;

	while (now_ns() < at)
		;
}

static uint64_t timed(struct bench *b, uint32_t kind)
{
	uint64_t from;

	if (kind == AIMED)
		aim(b->answered);
	from = now_ns();
	if (kind == SUBMISSION)
		submissions(b, 1);
	else
		request(b);
	b->answered = now_ns();
	return b->answered - from;
}

static int compare(const void *one, const void *other)
{
	const uint64_t *a = one, *b = other;

	return (*a > *b) - (*a < *b);
}

static void one_trial(struct bench *b, enum action action, uint64_t *seen)
{
	uint64_t times[ROUNDS];

	want(b, action);
	for (uint32_t kind = 0; kind < KINDS; kind++) {
		(void)timed(b, kind); /* not counted: the victim has just begun */
		for (uint32_t i = 0; i < ROUNDS; i++)
			times[i] = timed(b, kind);
		qsort(times, ROUNDS, sizeof(times[0]), compare);
		seen[kind * 3] = times[0];
		seen[kind * 3 + 1] = times[ROUNDS / 2];
		seen[kind * 3 + 2] = times[ROUNDS - 1];
	}
	want(b, NOTHING);
}

static void run(const struct setting *s, uint32_t trials, uint64_t seed, uint64_t *seen,
		uint8_t *secret)
{
	uint64_t random = seed * UINT64_C(0x9e3779b97f4a7c15) | 1;
	struct bench b = {.hald = 0};

	bench_begin(&b, s->tick);
	for (uint32_t i = 0; i < trials; i++) {
		secret[i] = (uint8_t)(information_random(&random) >> 63);
		one_trial(&b, secret[i] ? s->one : s->zero, seen + (size_t)i * COLUMNS);
	}
	bench_end(&b);
}

/* ---- what ticks cost --------------------------------------------------------------- */

struct price {
	uint64_t request_ns, submission_ns, sixteen_ns; /* medians */
};

static struct price price_of(bool tick)
{
	struct bench b = {.hald = 0};
	uint64_t times[3][ROUNDS];

	bench_begin(&b, tick);
	for (uint32_t i = 0; i < ROUNDS; i++) {
		times[0][i] = timed(&b, REQUEST);
		times[1][i] = timed(&b, SUBMISSION);
		times[2][i] = now_ns();
		submissions(&b, 16);
		times[2][i] = now_ns() - times[2][i];
	}
	bench_end(&b);
	for (uint32_t k = 0; k < 3; k++)
		qsort(times[k], ROUNDS, sizeof(times[k][0]), compare);
	return (struct price){times[0][ROUNDS / 2], times[1][ROUNDS / 2],
			      times[2][ROUNDS / 2]};
}

static void prices(bool figures)
{
	const struct price p = price_of(true);

	if (figures) {
		printf("figure leak.tick_request_ticks %.2f\n",
		       (double)p.request_ns / (double)TICK_NS);
		printf("figure leak.tick_submission_ticks %.2f\n",
		       (double)p.submission_ns / (double)TICK_NS);
		return;
	}
	for (int tick = 0; tick < 2; tick++) {
		const struct price q = tick ? p : price_of(false);

		printf("%-15s request %.1f us, submission and wait %.1f us, 16 of "
		       "them %.1f us\n",
		       tick ? "with ticks" : "without ticks", (double)q.request_ns / 1e3,
		       (double)q.submission_ns / 1e3, (double)q.sixteen_ns / 1e3);
	}
}

/* ---- what comes of it -------------------------------------------------------------- */

static void print_columns(const uint64_t *seen, const uint8_t *secret, uint32_t trials,
			  uint64_t seed)
{
	uint64_t *one = malloc(trials * sizeof(*one));
	struct information each;

	for (uint32_t c = 0; one != NULL && c < COLUMNS; c++) {
		for (uint32_t k = 0; k < trials; k++)
			one[k] = seen[(size_t)k * COLUMNS + c];
		if (information_of(one, secret, trials, 1, SHUFFLES, seed, &each) == 0)
			printf("%s %s %.2f", c > 0 ? "," : "", names[c], each.bits);
	}
	printf("\n");
	free(one);
}

int main(int argc, char **argv)
{
	const bool figures = argc > 1 && strcmp(argv[1], "figures") == 0;
	char **arg = argv + figures;
	const int args = argc - figures;
	const uint32_t trials = args > 1 ? (uint32_t)strtoul(arg[1], NULL, 0) : TRIALS;
	const uint64_t seed = args > 2 ? strtoull(arg[2], NULL, 0) : 1;
	uint64_t *seen = malloc((size_t)trials * COLUMNS * sizeof(*seen));
	uint8_t *secret = malloc(trials);
	double bits, error = 0;
	int wrong = 0;

	if (trials < 16 || seen == NULL || secret == NULL) {
		fprintf(stderr,
			"usage: spy [figures] [TRIALS [SEED]]; 16 trials or more\n");
		return 2;
	}
	for (uint32_t i = 0; i < SETTINGS; i++) {
		const struct setting *s = &settings[i];
		struct information all;

		run(s, trials, seed + i, seen, secret);
		if (information_of(seen, secret, trials, COLUMNS, SHUFFLES, seed, &all))
			return 2;
		bits = all.bits > all.error ? all.bits : 0;
		wrong += s->leaks ? bits < LEAKS_LEAST : bits > TICKS_MOST;
		error = all.error > error ? all.error : error;
		if (figures) {
			printf("figure leak.%s_bits %.3f\n", s->name, bits);
			continue;
		}
		printf("%-15s %6.3f bits, error %.3f:", s->name, all.bits, all.error);
		print_columns(seen, secret, trials, seed);
	}
	if (figures)
		printf("figure leak.spy_error_bits %.3f\n", error);
	prices(figures);
	free(seen);
	free(secret);
	return wrong != 0;
}

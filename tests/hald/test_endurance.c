/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_endurance - many programs on one hald: a thousand at once, and random lives one
 * after the other, for a day of device time.  Each lives as a random number says and ends
 * as another says; nothing may be left of it: no descriptor, thread or memory of hald, no
 * unit or memory of the device.
 *
 *   test_endurance [HOURS [CLIENTS [SEED]]]   1 hour, 100 clients, seed 1
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <sched.h>

#include "hald_world.h"

enum { AT_ONCE = 3, COMMANDS = 4 };

#define HOUR_NS UINT64_C(3600000000000)

static uint32_t hours = 1, clients = 100;
static uint64_t seed = 1;

#define MUST(call)                                                                       \
	do {                                                                             \
		if ((call) != 0)                                                         \
			_exit(__LINE__ % 250 + 1);                                       \
	} while (0)

static uint32_t next_random(uint64_t *state, uint32_t below)
{
	*state = *state * UINT64_C(6364136223846793005) + 1442695040888963407;
	return (uint32_t)(*state >> 33) % below;
}

/* ---- what a process has --------------------------------------------------------------- */

struct footprint {
	uint32_t descriptors, threads;
	uint64_t bytes; /* of data, resident */
};

static uint64_t status_of(pid_t pid, const char *what)
{
	char path[64], line[256];
	uint64_t value = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	f = fopen(path, "re");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f) != NULL)
		if (strncmp(line, what, strlen(what)) == 0)
			value = strtoull(line + strlen(what) + 1, NULL, 10);
	(void)fclose(f);
	return value;
}

static struct footprint footprint_of(pid_t pid)
{
	struct footprint p = {.threads = (uint32_t)status_of(pid, "Threads"),
			      .bytes = status_of(pid, "RssAnon") * 1024};
	char path[64];
	DIR *d;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	d = opendir(path);
	assert_non_null(d);
	while (readdir(d) != NULL)
		p.descriptors++;
	(void)closedir(d);
	return p;
}

/* Wait until hald has put away what has ended, and has no more than so many; return what
 * it has then. */
static struct footprint settled(const struct hald *h, uint32_t threads,
				uint32_t descriptors)
{
	const int64_t until = now_ns() + LONG_NS;
	struct footprint p = footprint_of(h->pid);

	while ((p.threads > threads || p.descriptors > descriptors) && now_ns() < until) {
		(void)sched_yield();
		p = footprint_of(h->pid);
	}
	return p;
}

/* ---- a life --------------------------------------------------------------------------- */

/* Do some work, and let device time pass. */
static void work(struct program *p, uint64_t *random)
{
	struct hal_submit_desc d = HAL_INIT(hal_submit_desc);
	struct hal_cmd cmds[COMMANDS];

	for (uint32_t i = 0; i < COMMANDS; i++)
		cmds[i] = hal_cmd_fill(p->buf, next_random(random, 8) * UINT64_C(512),
				       512, next_random(random, UINT32_MAX));
	d.cmds = cmds;
	d.cmd_count = 1 + next_random(random, COMMANDS);
	for (uint32_t i = next_random(random, 20); i > 0; i--)
		(void)hal_submit(p->q, &d, NULL);
	(void)hal_device_poll(p->dev, next_random(random, 1000) * UINT64_C(10000000));
}

/* Make things that nobody puts away. */
static void litter(struct program *p, uint64_t *random)
{
	struct hal_timeline *t;
	struct hal_completions *ring;
	struct hal_buffer_desc bd = HAL_INIT(hal_buffer_desc);
	struct hal_queue_desc qd = HAL_INIT(hal_queue_desc);
	struct hal_buffer *buf;
	struct hal_queue *q;
	struct hal_point point;
	void *address;

	for (uint32_t i = next_random(random, 4); i > 0; i--) {
		bd.bytes = 1 + next_random(random, 100000);
		bd.flags = next_random(random, 2) * HAL_BUFFER_MAPPABLE;
		if (hal_buffer_create(p->part, &bd, &buf) == 0 && bd.flags != 0)
			(void)hal_buffer_map(buf, &address);
		(void)hal_host_alloc(p->part, 4096, &buf, &address);
		(void)hal_timeline_create(p->dev, &t);
		point = (struct hal_point){t, 1};
		(void)hal_point_open_fd(&point);
		if (hal_completions_create(p->dev, 64, &ring) != 0)
			continue;
		qd.completions = next_random(random, 2) != 0 ? ring : NULL;
		(void)hal_queue_create(p->part, &qd, &q);
	}
}

/* Live, in a child, and end as the random numbers say. */
static _Noreturn void life(const struct hald *h, uint64_t own_seed)
{
	uint64_t random = own_seed;
	struct program p;

	if (program_open(h, &p, 1 + next_random(&random, ALL_UNITS / AT_ONCE)) != 0)
		_exit(0); /* others have the units */
	for (uint32_t i = next_random(&random, 6); i > 0; i--)
		work(&p, &random);
	if (next_random(&random, 2) != 0)
		litter(&p, &random);
	if (next_random(&random, 3) == 0)
		(void)program_spins(&p);
	switch (next_random(&random, 4)) {
	case 0: /* in order, if there is no litter */
		(void)hal_queue_destroy(p.q);
		(void)hal_buffer_destroy(p.buf);
		(void)hal_program_unload(p.prog);
		(void)hal_partition_destroy(p.part);
		(void)hal_close(p.dev);
		_exit(0);
	case 1:
		_exit(0);
	default:
		(void)raise(SIGKILL);
		_exit(1);
	}
}

/* ---- the tests ------------------------------------------------------------------------ */

/* Random lives, some at the same time, until the device's clock says that it is over. */
static void lives(void **state)
{
	const char *options[2] = {NULL, NULL};
	struct footprint first = {0}, last;
	struct hal_device_info before = HAL_INIT(hal_device_info), after = before;
	uint64_t random = seed, count = 0;
	struct hal_device *dev;
	struct program p;
	struct hald h;

	(void)state;
	hald_start(&h, "ref");
	options[0] = h.option;
	OK(hal_open("hald:ref0", options, &dev));
	OK(hal_device_get_info(dev, &before));
	while (hal_device_get_time(dev) < hours * HOUR_NS) {
		for (uint32_t i = 0; i < AT_ONCE; i++) {
			pid_t pid = fork();

			assert_true(pid >= 0);
			if (pid == 0)
				life(&h, random + i);
		}
		for (uint32_t i = 0; i < AT_ONCE; i++)
			assert_true(wait(NULL) > 0);
		(void)next_random(&random, 2);
		count += AT_ONCE;
		/* A night without anybody. */
		if (count % 60 == 0)
			assert_true(hal_device_poll(dev, HOUR_NS / 60) >= 0);
		/* What the allocator keeps for later has been taken by then. */
		if (first.threads == 0 && hal_device_get_time(dev) > hours * HOUR_NS / 4)
			first = settled(&h, 3, UINT32_MAX);
	}
	assert_true(count > 30 * AT_ONCE);
	last = settled(&h, 3, first.descriptors);
	print_message(
		"%llu lives in %u hours: %u descriptors (%u), %u threads (%u), %llu "
		"KiB (%llu)\n",
		(unsigned long long)count, hours, last.descriptors, first.descriptors,
		last.threads, first.threads, (unsigned long long)last.bytes / 1024,
		(unsigned long long)first.bytes / 1024);
	assert_true(last.descriptors <= first.descriptors);
	assert_int_equal(last.threads, first.threads);
	/* The allocator keeps some, and a sanitizer all; of each life nothing. */
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
	assert_true(last.bytes <= first.bytes + 1024 * 1024);
#endif
	OK(hal_device_get_info(dev, &after));
	assert_int_equal(after.memory_free, before.memory_free);
	OK(hal_close(dev));
	(void)take_all(&h, &p);
	nothing_is_left(&p);
	program_close(&p);
	/* It cannot close the device if anything is left. */
	hald_stop(&h);
}

/* One of many: come, wait for all others, work, and go. */
static _Noreturn void one_of_many(const struct hald *h, int ready, int begin, uint32_t i)
{
	const char *const options[] = {h->option, NULL};
	const int64_t until = now_ns() + LONG_NS;
	struct program p;
	char byte;
	int err;

	MUST(hal_open("hald:ref0", options, &p.dev));
	MUST(write(ready, "", 1) != 1);
	MUST(read(begin, &byte, 1) != 0);
	MUST(hal_close(p.dev));
	do
		err = program_open(h, &p, 1);
	while (err == -ENOSPC && now_ns() < until && hal_partition_destroy(NULL) == 0 &&
	       hal_close(p.dev) == 0);
	MUST(err);
	MUST(program_works(&p, i));
	program_close(&p);
	_exit(0);
}

static void many_at_once(void **state)
{
	struct footprint before, after;
	struct program p;
	int ready[2], begin[2], status;
	struct hald h;
	char byte;

	(void)state;
	hald_start(&h, "ref?clock=real");
	/* All its threads run once it has served somebody. */
	OK(program_open(&h, &p, 1));
	program_close(&p);
	before = settled(&h, 3, UINT32_MAX);
	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	assert_int_equal(pipe2(begin, O_CLOEXEC), 0);
	for (uint32_t i = 0; i < clients; i++) {
		pid_t pid = fork();

		assert_true(pid >= 0);
		if (pid == 0) {
			(void)close(begin[1]);
			one_of_many(&h, ready[1], begin[0], i);
		}
		/* As they come: more would have to wait to be let in. */
		assert_int_equal(read(ready[0], &byte, 1), 1);
	}
	assert_true(footprint_of(h.pid).threads >= clients);
	(void)close(begin[1]);
	for (uint32_t i = 0; i < clients; i++) {
		assert_true(wait(&status) > 0);
		assert_int_equal(status, 0);
	}
	(void)close(begin[0]);
	(void)close(ready[0]);
	(void)close(ready[1]);
	after = settled(&h, before.threads, before.descriptors);
	assert_int_equal(after.threads, before.threads);
	assert_true(after.descriptors <= before.descriptors);
	hald_stop(&h);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lives),
		cmocka_unit_test(many_at_once),
	};

	if (argc > 1)
		hours = (uint32_t)strtoul(argv[1], NULL, 10);
	if (argc > 2)
		clients = (uint32_t)strtoul(argv[2], NULL, 10);
	if (argc > 3)
		seed = strtoull(argv[3], NULL, 10);
	if (argc > 4 || hours == 0 || clients == 0) {
		fprintf(stderr, "test_endurance [HOURS [CLIENTS [SEED]]]\n");
		return 2;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}

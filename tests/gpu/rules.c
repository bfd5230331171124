/* SPDX-License-Identifier: Apache-2.0 */
/* Rules of a GPU's stand-in, each broken once. */
#define _GNU_SOURCE
#include "rules.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { /* results, as both number them */
       INVALID_VALUE = 1,
       OUT_OF_MEMORY = 2,
       INVALID_HANDLE = 400,
       NOT_READY = 600,
       ALREADY_REGISTERED = 712,
       NOT_REGISTERED = 713,
       NOT_PERMITTED = 800,
       CAPTURE_UNSUPPORTED = 900,
       CAPTURE_INVALIDATED = 901,
       CAPTURED_EVENT = 907,
       UNKNOWN = 999,
};
enum { GLOBAL, OF_THREAD, RELAXED }; /* modes of captures */
#define MIB                 (UINT64_C(1) << 20)
#define PAGE                4096
#define IS(want, call, ...) rules_expect(rules_face.call(__VA_ARGS__), want, #call)

void rules_expect(uint32_t got, uint32_t want, const char *call)
{
	if (got != want)
		fail_msg("%s is %u, not %u", call, got, want);
}

void rules_misused(const char *what)
{
	const char *text = "";

	assert_true(stand_in()->misuse(&text) > 0);
	if (!strstr(text, what))
		fail_msg("misuse is '%s', not '%s'", text, what);
}

void rules_run_for(uint64_t ns)
{
	const uint64_t until = stand_in()->now() + ns;
	uint64_t now = 0;
	uint32_t idle;

	while (now < until)
		rules_face.advance(until, &now, &idle);
}

void rules_dies_of(uint64_t address)
{
	int status;
	pid_t child;

	fflush(NULL);
	child = fork();
	if (child == 0) {
		signal(SIGSEGV, SIG_DFL);
		_exit(*(volatile char *)(uintptr_t)address);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(!WIFEXITED(status) || WEXITSTATUS(status) != 0xa5);
	assert_true(WIFSIGNALED(status) || WEXITSTATUS(status));
}

/* ---- memory ------------------------------------------------------------------------ */

void rule_double_free(void **state)
{
	uint64_t mem;

	(void)state;
	IS(0, allocate, &mem, 64);
	IS(0, release, mem);
	IS(INVALID_VALUE, release, mem);
	rules_misused("is not allocated");
}

void rule_pageable(void **state)
{
	uint64_t mem;
	void *stream;
	char here[64];

	(void)state;
	IS(0, allocate, &mem, 64);
	IS(0, stream, &stream);
	IS(INVALID_VALUE, copy, mem, (uintptr_t)here, 64, stream);
	rules_misused("pageable");
}

/* Memory of the program's is pinned as long as it is registered, and no longer; what is
 * behind its last byte is not, though it is in the same page. */
void rule_registered(void **state)
{
	static char own[2 * PAGE] __attribute__((aligned(PAGE)));
	void *stream;
	uint64_t mem, at;

	(void)state;
	IS(0, allocate, &mem, PAGE);
	IS(0, stream, &stream);
	IS(INVALID_VALUE, enroll, NULL, 64);
	IS(INVALID_VALUE, enroll, own, 0);
	/* NOLINTNEXTLINE(performance-no-int-to-ptr): no process has memory there. */
	IS(INVALID_VALUE, enroll, (void *)(uintptr_t)PAGE, 64);
	IS(0, enroll, own + 8, 64);
	IS(0, pinned_at, &at, own + 9);
	IS(0, copy, mem, at, 63, stream);
	own[9] = 77;
	rules_run_for(100000);
	own[9] = 0;
	IS(0, copy, (uintptr_t)own + 8, mem, 64, stream);
	rules_run_for(100000);
	assert_int_equal(own[8], 77);
	assert_int_equal(stand_in()->misuse(NULL), 0);
	IS(INVALID_VALUE, copy, mem, (uintptr_t)own + 9, 64, stream);
	rules_misused("pageable");
	IS(0, dismiss, own + 8);
	IS(INVALID_VALUE, pinned_at, &at, own + 8);
	IS(INVALID_VALUE, copy, mem, (uintptr_t)own + 8, 64, stream);
	assert_int_equal(stand_in()->misuse(NULL), 2);
}

/* A page is registered once; so is what the driver has allocated.  It is undone by its
 * first byte, and not by a free. */
void rule_registered_twice(void **state)
{
	static char own[2 * PAGE] __attribute__((aligned(PAGE)));
	void *p;

	(void)state;
	IS(0, enroll, own + 8, 64);
	IS(ALREADY_REGISTERED, enroll, own + 200, 8);
	IS(ALREADY_REGISTERED, enroll, own, 2 * PAGE);
	IS(0, enroll, own + PAGE, PAGE);
	IS(0, pin, &p, 64);
	IS(ALREADY_REGISTERED, enroll, p, 64);
	IS(0, dismiss, own + PAGE);
	assert_int_equal(stand_in()->misuse(NULL), 0);
	IS(INVALID_VALUE, unpin, own + 8);
	rules_misused("is not allocated");
	IS(NOT_REGISTERED, dismiss, own + 9);
	IS(NOT_REGISTERED, dismiss, p);
	IS(0, dismiss, own + 8);
	IS(NOT_REGISTERED, dismiss, own + 8);
	assert_int_equal(stand_in()->misuse(NULL), 4);
}

/* While a copy uses it, it has to stay. */
void rule_registered_in_use(void **state)
{
	static char own[PAGE] __attribute__((aligned(PAGE)));
	void *stream;
	uint64_t mem;

	(void)state;
	IS(0, allocate, &mem, PAGE);
	IS(0, stream, &stream);
	IS(0, enroll, own, PAGE);
	IS(0, copy, mem, (uintptr_t)own, PAGE, stream);
	IS(0, dismiss, own);
	rules_misused("is in use");
}

/* Where the device finds pinned memory elsewhere, each address is for one of the two. */
void rule_host_apart(void **state)
{
	void *stream, *p;
	uint64_t at;

	(void)state;
	IS(0, stream, &stream);
	setenv(rules_face.apart, "apart", 1);
	IS(0, pin, &p, 64);
	unsetenv(rules_face.apart);
	IS(0, pinned_at, &at, p);
	assert_true(at != (uintptr_t)p);
	IS(INVALID_VALUE, fill, (uintptr_t)p, 7, 1, stream);
	IS(INVALID_VALUE, write, stream, (uintptr_t)p, 7);
	IS(0, fill, at, 7, 1, stream);
	/* A copy takes either. */
	IS(0, copy, (uintptr_t)p + 4, at, 4, stream);
	IS(0, synchronize, stream);
	assert_int_equal(((uint32_t *)p)[0], 7);
	assert_int_equal(((uint32_t *)p)[1], 7);
	IS(0, unpin, p);
}

/* Memory is taken in pieces, and is not all in one; what can be pinned ends; so do
 * streams.  What was given back is there again. */
void rule_limits(void **state)
{
	const struct gpu_stand_in_limits pieces = {.granule = 2 * MIB, .piece = 4 * MIB},
					 few = {.pinned = 8192, .streams = 2};
	void *stream, *p, *q;
	uint64_t one, two, three;

	(void)state;
	stand_in()->limit(&pieces);
	stand_in()->memory_left(8 * MIB);
	IS(OUT_OF_MEMORY, allocate, &one, 4 * MIB + 1);
	IS(0, allocate, &one, 1);
	IS(0, allocate, &two, 4 * MIB);
	IS(0, allocate, &three, 2 * MIB);
	IS(OUT_OF_MEMORY, allocate, &three, 1);
	IS(0, release, one);
	IS(0, allocate, &three, 1);
	stand_in()->memory_left(UINT64_MAX);
	stand_in()->limit(&few);
	IS(0, pin, &p, 4096);
	IS(OUT_OF_MEMORY, pin, &q, 4097);
	IS(0, pin, &q, 4096);
	IS(0, unpin, p);
	IS(0, pin, &p, 64);
	IS(0, stream, &stream);
	IS(0, stream, &stream);
	IS(OUT_OF_MEMORY, stream, &stream);
	assert_int_equal(stand_in()->misuse(NULL), 0);
}

/* ---- channels and units ------------------------------------------------------------ */

/* Fill the one channel of two streams: the next call waits until an entry is free. */
void rule_channel(void **state)
{
	const struct gpu_stand_in_limits one = {.channels = 1};
	const struct gpu_stand_in *s = stand_in();
	void *stream[2], *p;
	uint64_t at;
	uint32_t i;

	(void)state;
	s->limit(&one);
	IS(0, stream, &stream[0]);
	IS(0, stream, &stream[1]);
	IS(0, pin, &p, 64);
	IS(0, pinned_at, &at, p);
	s->hot(1);
	for (i = 0; i < rules_face.entries; i++)
		IS(0, write, stream[i % 2], at, i);
	assert_int_equal(s->blocked(), 0);
	assert_int_equal(s->misuse(NULL), 0);
	IS(0, write, stream[0], at, i);
	s->hot(0);
	assert_int_equal(s->blocked(), 1);
	rules_misused("a full channel can block");
	IS(0, synchronize, stream[0]);
	IS(0, synchronize, stream[1]);
	IS(0, write, stream[1], at, i);
	assert_int_equal(s->blocked(), 1);
}

/* A fill, and a copy within device memory, need a free unit; a write needs none, nor does
 * a copy from pinned memory, nor anything where engines do it. */
void rule_moves_run(void **state)
{
	const struct gpu_stand_in *s = stand_in();
	struct gpu_stand_in_job jobs[8];
	void *full, *stream[4], *p;
	uint64_t mem, at;
	uint32_t i, n;

	(void)state;
	IS(0, allocate, &mem, 128);
	IS(0, pin, &p, 64);
	IS(0, pinned_at, &at, p);
	IS(0, stream, &full);
	for (i = 0; i < 4; i++)
		IS(0, stream, &stream[i]);
	IS(0, launch, full, rules_face.units, 1000000);
	rules_run_for(100000);
	IS(0, fill, mem, 7, 16, stream[0]);
	IS(0, copy, mem + 64, mem, 64, stream[1]);
	IS(0, write, stream[2], at, 7);
	IS(0, copy, mem, at, 64, stream[3]);
	rules_run_for(100000);
	IS(NOT_READY, query, stream[0]);
	IS(NOT_READY, query, stream[1]);
	IS(0, query, stream[2]);
	IS(0, query, stream[3]);
	rules_run_for(1000000);
	IS(0, query, stream[0]);
	IS(0, query, stream[1]);
	n = s->jobs(jobs, 8);
	assert_int_equal(n, 4);
	for (i = 0; i < n; i++)
		if (strcmp(jobs[i].what, "fill") == 0)
			assert_int_equal(__builtin_popcountll(jobs[i].units[0] |
							      jobs[i].units[1] |
							      jobs[i].units[2]),
					 1);
	s->moves_run(0);
	IS(0, launch, full, rules_face.units, 1000000);
	rules_run_for(100000);
	IS(0, fill, mem, 7, 16, stream[0]);
	rules_run_for(100000);
	IS(0, query, stream[0]);
	s->moves_run(1);
}

/* ---- calls ------------------------------------------------------------------------- */

/* It says that it failed, and what it gave the device runs: who believes it frees what is
 * in use. */
void rule_half_done(void **state)
{
	void *stream, *p;
	uint64_t mem;

	(void)state;
	IS(0, allocate, &mem, 64);
	IS(0, pin, &p, 64);
	IS(0, stream, &stream);
	assert_int_equal(stand_in()->break_half(rules_face.fill_call, 1, OUT_OF_MEMORY),
			 0);
	IS(OUT_OF_MEMORY, fill, mem, 7, 16, stream);
	assert_int_equal(stand_in()->armed(), 0);
	IS(NOT_READY, query, stream);
	IS(0, copy, (uintptr_t)p, mem, 64, stream);
	rules_run_for(100000);
	assert_int_equal(((uint32_t *)p)[15], 7);
	assert_int_equal(stand_in()->misuse(NULL), 0);
	assert_int_equal(stand_in()->break_half(rules_face.fill_call, 1, OUT_OF_MEMORY),
			 0);
	IS(OUT_OF_MEMORY, fill, mem, 7, 16, stream);
	IS(0, release, mem);
	rules_misused("is in use");
}

/* ---- streams ----------------------------------------------------------------------- */

void rule_null_stream(void **state)
{
	uintptr_t name;
	uint64_t mem;

	(void)state;
	IS(0, allocate, &mem, 64);
	for (name = 3; name--;) {
		/* NOLINTNEXTLINE(performance-no-int-to-ptr): nothing is there. */
		IS(INVALID_HANDLE, fill, mem, 0, 1, (void *)name);
		assert_int_equal(stand_in()->misuse(NULL), 3 - name);
	}
	rules_misused("the NULL stream");
}

static uint32_t status_of(void *stream)
{
	uint32_t status = 9;

	IS(0, capturing, stream, &status);
	return status;
}

/* What a stream is given while it is captured does not run; who asks for it spoils that,
 * whatever his mode. */
void rule_captured(void **state)
{
	uint32_t mode = RELAXED;
	uint64_t mem;
	void *stream;

	(void)state;
	IS(0, exchange, &mode);
	IS(0, allocate, &mem, 64);
	IS(0, stream, &stream);
	assert_int_equal(status_of(stream), 0);
	stand_in()->capture(stream, 1 + GLOBAL);
	assert_int_equal(status_of(stream), 1);
	IS(0, fill, mem, 0, 1, stream);
	IS(CAPTURE_UNSUPPORTED, query, stream);
	IS(CAPTURE_INVALIDATED, fill, mem, 0, 1, stream);
	IS(CAPTURE_UNSUPPORTED, synchronize, stream);
	assert_int_equal(status_of(stream), 2);
	stand_in()->capture(stream, 0);
	IS(0, query, stream);
	IS(0, exchange, &mode);
}

struct other {
	void *stream;
	uint32_t mode;
};

static void *capture_there(void *user)
{
	const struct other *o = user;

	stand_in()->capture(o->stream, 1 + (int)o->mode);
	return NULL;
}

/* What can wait for others disturbs the capture of a stream that is not even named: a
 * global one from each thread, but for those that have said otherwise; one of a thread
 * from that thread; a relaxed one from none. */
void rule_disturbed(void **state)
{
	static const uint32_t here[3] = {CAPTURE_UNSUPPORTED, CAPTURE_UNSUPPORTED, 0};
	uint32_t mode;
	void *stream, *p;

	(void)state;
	IS(0, stream, &stream);
	for (mode = GLOBAL; mode <= RELAXED; mode++) {
		struct other other = {stream, mode};
		uint32_t mine = RELAXED;
		pthread_t thread;

		stand_in()->capture(stream, (int)(1 + mode));
		IS(here[mode], pin, &p, 64);
		assert_int_equal(status_of(stream), here[mode] ? 2 : 1);
		/* Relaxed, this thread disturbs nobody. */
		stand_in()->capture(stream, (int)(1 + mode));
		IS(0, exchange, &mine);
		assert_int_equal(mine, GLOBAL);
		IS(0, pin, &p, 64);
		assert_int_equal(status_of(stream), 1);
		IS(0, exchange, &mine);
		/* Captured by another. */
		assert_int_equal(pthread_create(&thread, NULL, capture_there, &other), 0);
		assert_int_equal(pthread_join(thread, NULL), 0);
		IS(mode == GLOBAL ? CAPTURE_UNSUPPORTED : 0, pin, &p, 64);
		assert_int_equal(status_of(stream), mode == GLOBAL ? 2 : 1);
		stand_in()->capture(stream, 0);
	}
	mode = 3;
	IS(INVALID_VALUE, exchange, &mode);
}

/* An event that was last recorded in a capture is a node of that, and has no state. */
void rule_captured_event(void **state)
{
	void *stream, *event;
	float ms;

	(void)state;
	IS(0, stream, &stream);
	IS(0, event, &event);
	IS(0, record, event, stream);
	rules_run_for(10000);
	stand_in()->capture(stream, 1 + RELAXED);
	IS(0, record, event, stream);
	IS(CAPTURED_EVENT, event_wait, event);
	IS(CAPTURED_EVENT, elapsed, &ms, event, event);
	stand_in()->capture(stream, 0);
	IS(CAPTURED_EVENT, event_wait, event);
	IS(0, record, event, stream);
	IS(0, event_wait, event);
	IS(0, elapsed, &ms, event, event);
}

/* ---- functions of the program's ----------------------------------------------------- */

struct called {
	uint32_t times, result, inside; /* what a call in it answered; 0: it made none */
	bool calls;
};

static void note(void *stream, uint32_t result, void *user)
{
	struct called *c = user;

	(void)stream;
	c->times++;
	c->result = result;
	if (c->calls) {
		void *p;

		c->inside = rules_face.pin(&p, 64);
	}
}

/* In the stream's order, which stands still meanwhile; no call is made in it.  A fault is
 * told to it. */
void rule_host_function(void **state)
{
	struct called first = {0}, second = {.calls = true}, third = {0};
	uint32_t *word;
	void *stream, *p;
	uint64_t at;

	(void)state;
	IS(0, stream, &stream);
	IS(0, pin, &p, 64);
	IS(0, pinned_at, &at, p);
	word = p;
	*word = 0;
	IS(0, callback, stream, note, &first);
	IS(0, write, stream, at, 1);
	assert_int_equal(first.times, 0);
	rules_run_for(9000);
	assert_int_equal(first.times, 0); /* 10 to 100 us */
	assert_int_equal(*word, 0);
	rules_run_for(100000);
	assert_int_equal(first.times, 1);
	assert_int_equal(first.result, 0);
	assert_int_equal(*word, 1);
	assert_int_equal(stand_in()->misuse(NULL), 0);
	IS(0, callback, stream, note, &second);
	rules_run_for(200000);
	assert_int_equal(second.times, 1);
	assert_int_equal(second.inside, NOT_PERMITTED);
	rules_misused("within a function of the program's");
	IS(0, callback, stream, note, &third);
	stand_in()->lose(0, UNKNOWN);
	assert_int_equal(third.times, 1);
	assert_int_equal(third.result, UNKNOWN);
}

/* Those of all streams come one after the other. */
void rule_host_functions_apart(void **state)
{
	struct called c[8] = {{0}};
	void *stream;
	uint32_t i, done = 0, steps = 0;

	(void)state;
	for (i = 0; i < 8; i++) {
		IS(0, stream, &stream);
		IS(0, callback, stream, note, &c[i]);
	}
	/* The shortest is 10 us. */
	while (done < 8 && steps++ < 100) {
		const uint32_t before = done;

		rules_run_for(10000);
		for (i = 0, done = 0; i < 8; i++)
			done += c[i].times;
		assert_true(done - before <= 1);
	}
	assert_int_equal(done, 8);
}

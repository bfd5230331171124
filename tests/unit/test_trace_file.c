/* SPDX-License-Identifier: Apache-2.0 */
/* test_trace_file - rings of lines: the newest are kept, and a file that is slow, full or
 * broken delays nobody who puts lines. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "observe/trace_file.h"

enum { SIZE = 4096, LINE_MAX = 100 };

struct text {
	char at[1 << 20];
	size_t used;
};

static void append(void *user, const char *text, size_t n)
{
	struct text *t = user;

	assert_true(n <= sizeof(t->at) - t->used);
	memcpy(t->at + t->used, text, n);
	t->used += n;
}

/* Make line i, of a length that i determines. */
static size_t line_make(char line[LINE_MAX + 1], uint32_t i)
{
	const size_t n = 10 + i * UINT64_C(2654435761) % (LINE_MAX - 10);

	memset(line, '.', LINE_MAX);
	(void)snprintf(line, LINE_MAX, "%u", i);
	line[strlen(line)] = ' ';
	line[n - 1] = '\n';
	line[n] = '\0';
	return n;
}

/* text is lines from..to, and nothing else. */
static void is_lines(const struct text *text, uint32_t from, uint32_t to)
{
	size_t at = 0;

	for (uint32_t i = from; i < to; i++) {
		char line[LINE_MAX + 1];
		const size_t n = line_make(line, i);

		assert_true(n <= text->used - at);
		assert_memory_equal(text->at + at, line, n);
		at += n;
	}
	assert_int_equal(at, text->used);
}

/* After each line the ring has whole lines, the newest, as many as there is room for. */
static void newest_lines(void **state)
{
	struct trace_ring *r = trace_ring_make(SIZE);
	static struct text text;
	uint32_t count = 0;
	char line[LINE_MAX + 1];

	(void)state;
	assert_non_null(r);
	for (; count < 5000; count++) {
		const size_t n = line_make(line, count);

		trace_ring_keep(r, line, n);
		text.used = 0;
		trace_ring_read(r, append, &text);
		assert_int_equal(r->lines + r->dropped, count + 1);
		is_lines(&text, (uint32_t)r->dropped, count + 1);
		assert_true(r->dropped == 0 || text.used > SIZE - LINE_MAX);
	}
	/* What does not fit at all. */
	{
		static char longest[SIZE + 2];

		memset(longest, 'x', sizeof(longest));
		longest[SIZE] = '\n';
		trace_ring_keep(r, longest, SIZE + 1);
		assert_int_equal(r->lines + r->dropped, count + 1);
		text.used = 0;
		trace_ring_read(r, append, &text);
		is_lines(&text, (uint32_t)r->dropped - 1, count);
		longest[SIZE - 1] = '\n';
		trace_ring_keep(r, longest, SIZE);
		assert_int_equal(r->lines, 1);
	}
	trace_ring_free(r);
}

/* Put lines until the ring has no room; return how many. */
static uint32_t fill(struct trace_ring *r, uint32_t from)
{
	char line[LINE_MAX + 1];
	uint32_t i = from;

	while (trace_ring_send(r, line, line_make(line, i)))
		i++;
	return i;
}

static void full_ring(void **state)
{
	struct trace_ring *r = trace_ring_make(SIZE);
	static struct text text;
	uint32_t count;

	(void)state;
	assert_non_null(r);
	count = fill(r, 0);
	trace_ring_read(r, append, &text);
	is_lines(&text, 0, count);
	assert_true(text.used > SIZE - LINE_MAX && text.used <= SIZE);
	trace_ring_stop(r); /* it has no thread */
	trace_ring_free(r);
}

/* A pipe that nobody reads: lines are refused, and no call waits. */
static void slow_file(void **state)
{
	struct trace_ring *r = trace_ring_make(SIZE);
	struct trace_file f = {.fd = -1};
	static struct text text;
	uint32_t count = 0, refused = 0;
	char line[LINE_MAX + 1];
	int fds[2];
	pid_t pid;

	(void)state;
	assert_non_null(r);
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	f.fd = fds[1];
	assert_int_equal(trace_ring_start(r, &f), 0);
	/* The pipe is full once much more than it has room for has been refused. */
	while (refused < 100000)
		if (trace_ring_send(r, line, line_make(line, count)))
			count++;
		else
			refused++;
	pid = fork();
	if (pid == 0) {
		static char sink[65536];

		(void)close(fds[1]);
		while (read(fds[0], sink, sizeof(sink)) > 0)
			;
		_exit(0);
	}
	trace_ring_stop(r);
	assert_int_equal(f.err, 0);
	assert_int_equal(atomic_load(&r->tail), atomic_load(&r->head));
	assert_int_equal(f.written, atomic_load(&r->head));
	trace_ring_read(r, append, &text);
	assert_int_equal(text.used, 0);
	(void)close(fds[0]);
	(void)close(fds[1]);
	trace_ring_free(r);
}

/* All lines that the ring has taken are in the file, in order, before its end for now. */
static void all_lines(void **state)
{
	struct trace_ring *r = trace_ring_make(SIZE);
	struct trace_file f = {.seekable = true};
	static struct text text;
	uint32_t count = 0;

	(void)state;
	assert_non_null(r);
	f.fd = memfd_create("trace", MFD_CLOEXEC);
	assert_true(f.fd >= 0);
	assert_int_equal(trace_ring_start(r, &f), 0);
	while (count < 10000)
		count = fill(r, count);
	trace_ring_stop(r);
	assert_int_equal(f.err, 0);
	text.used = (size_t)pread(f.fd, text.at, sizeof(text.at), 0);
	assert_true(text.used > f.written);
	assert_int_equal(text.at[f.written], ']');
	text.used = f.written;
	is_lines(&text, 0, count);
	(void)close(f.fd);
	trace_ring_free(r);
}

/* Lines of a failed write stay, and the file ends before them. */
static void full_file(void **state)
{
	struct trace_ring *r = trace_ring_make(SIZE);
	struct trace_file f = {.seekable = true};
	static struct text text, left;
	char line[LINE_MAX + 1];
	uint32_t first = 0, count;
	uint64_t whole;

	(void)state;
	assert_non_null(r);
	f.fd = memfd_create("trace", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	assert_true(f.fd >= 0);
	assert_int_equal(trace_ring_start(r, &f), 0);
	do
		assert_true(trace_ring_send(r, line, line_make(line, first++)));
	while (r->rung_at != atomic_load(&r->head)); /* the thread is awake */
	while (atomic_load(&r->tail) != atomic_load(&r->head))
		(void)sched_yield();
	whole = atomic_load(&r->tail);
	assert_int_equal(fcntl(f.fd, F_ADD_SEALS, F_SEAL_GROW), 0);
	count = fill(r, first);
	trace_ring_stop(r);
	assert_int_equal(f.err, EPERM);
	trace_ring_read(r, append, &left);
	is_lines(&left, first, count);
	text.used = (size_t)pread(f.fd, text.at, sizeof(text.at), 0);
	assert_int_equal(text.at[whole], ']');
	text.used = whole;
	is_lines(&text, 0, first);
	(void)close(f.fd);
	trace_ring_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(newest_lines), cmocka_unit_test(full_ring),
		cmocka_unit_test(slow_file),    cmocka_unit_test(all_lines),
		cmocka_unit_test(full_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

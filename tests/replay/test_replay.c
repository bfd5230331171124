/* SPDX-License-Identifier: Apache-2.0 */
/* test_replay.c - journals are replayed decision by decision; what is wrong is noticed.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include <hal/ext/replay.h>
#include <hal/hal.h>

#include "world.h"

static char path[64];

/* ---- what has been written is decided again ---------------------------------------- */

static struct hal_replay_info replayed(void)
{
	struct hal_replay_info i = HAL_INIT(hal_replay_info);
	int err = hal_replay(path, &i);

	if (err != 0)
		fail_msg("hal_replay: %d: %s", err, hal_last_error());
	return i;
}

/* Under the virtual clock the callbacks of several threads may overlap in a way that is
 * not replayed: there only one thread has some. */
static void again(const char *target, const char *policy, uint64_t seed, uint32_t rounds,
		  const char *const *policies)
{
	bool alone = strstr(target, "clock=real") == NULL && seed % 2 != 0;
	const struct trial t = {
		.target = target,
		.journal = path,
		.policy = policy,
		.seed = seed,
		.threads = alone ? 1 : 3,
		.rounds = rounds,
		.events = alone ? 0 : rounds / 5,
		.callbacks = alone || strstr(target, "clock=real") != NULL,
		.policies = policies,
	};
	struct hal_replay_info i;

	assert_int_equal(trial_run(&t), 0);
	i = replayed();
	if (i.mismatches != 0)
		fail_msg("%s %s %llu: %llu mismatches: %s", target, policy,
			 (unsigned long long)seed, (unsigned long long)i.mismatches,
			 i.mismatch);
	assert_string_equal(i.missing, "");
	assert_true(i.decisions > rounds);
	assert_true(i.turns > 0 && i.inputs > i.decisions);
	assert_int_equal(i.line, 0);
	assert_string_equal(i.mismatch, "");
}

static const char *const names[] = {"fifo", "rr", "priority", "wfq", "edf", NULL};

static void real_time(void **state)
{
	(void)state;
	for (unsigned int i = 0; names[i] != NULL; i++)
		again("ref?clock=real", names[i], i, 200, NULL);
}

/* Policies that move borders, and go by what commands have run. */
static void real_borders(void **state)
{
	static const char *const movers[] = {"tidal", "krisp", "fission",
					     "v10",   "fgpu",  NULL};

	(void)state;
	for (unsigned int i = 0; movers[i] != NULL; i++)
		again("ref?clock=real", movers[i], 50 + i, 200, NULL);
	again("ref?clock=real", "tidal", 60, 400, movers);
}

/* Buffers that several tenants use go from channel to channel. */
static void moving_buffers(void **state)
{
	(void)state;
	for (unsigned int i = 0; names[i] != NULL; i++) {
		again("ref?colors=4&clock=real&fold_ns=2000", names[i], 70 + i, 200,
		      NULL);
		again("ref?colors=4&depth=2", names[i], 80 + i, 150, NULL);
	}
	again("ref?colors=4&clock=real", "tidal", 90, 300, names);
}

static void a_device_that_is_full(void **state)
{
	(void)state;
	for (unsigned int i = 0; names[i] != NULL; i++)
		again("ref?clock=real&depth=1", names[i], 10 + i, 100, NULL);
}

static void policies_replaced(void **state)
{
	(void)state;
	again("ref?clock=real&depth=2", "wfq", 20, 400, names);
}

static void virtual_time(void **state)
{
	(void)state;
	for (unsigned int i = 0; names[i] != NULL; i++)
		again("ref?depth=2", names[i], 30 + i, 150, NULL);
	again("ref?depth=1", "edf", 40, 150, names);
}

/* ---- what is not the same is noticed ----------------------------------------------- */

static char *read_all(size_t *size)
{
	FILE *f = fopen(path, "rb");
	char *text;

	assert_non_null(f);
	assert_int_equal(fseek(f, 0, SEEK_END), 0);
	*size = (size_t)ftell(f);
	rewind(f);
	text = malloc(*size + 1);
	assert_non_null(text);
	assert_int_equal(fread(text, 1, *size, f), *size);
	text[*size] = '\0';
	(void)fclose(f);
	return text;
}

static void write_all(const char *text, size_t size)
{
	FILE *f = fopen(path, "wb");

	assert_non_null(f);
	assert_int_equal(fwrite(text, 1, size, f), size);
	assert_int_equal(fclose(f), 0);
}

static char *small_journal(size_t *size)
{
	const struct trial t = {
		.target = "ref?clock=real&depth=2",
		.journal = path,
		.policy = "wfq",
		.seed = 77,
		.threads = 2,
		.callbacks = true,
		.rounds = 30,
		.events = 10,
	};

	assert_int_equal(trial_run(&t), 0);
	return read_all(size);
}

/* The line of kind that comes after at; NULL: none. */
static char *line_of(char *at, char kind)
{
	char lead[4] = {'\n', kind, ' ', '\0'};

	at = strstr(at, lead);
	return at != NULL ? at + 1 : NULL;
}

static size_t line_length(const char *line)
{
	return (size_t)(strchr(line, '\n') - line);
}

static void a_decision_swapped(void **state)
{
	struct hal_replay_info i;
	size_t size, first, second;
	char *text = small_journal(&size), *a, *b, *edited = malloc(size);

	(void)state;
	assert_non_null(edited);
	a = line_of(text, 's');
	assert_non_null(a);
	for (b = line_of(a, 's'); b != NULL && strncmp(a, b, 4) == 0; b = line_of(b, 's'))
		a = b;
	assert_non_null(b);
	first = line_length(a);
	second = line_length(b);
	memcpy(edited, text, (size_t)(a - text));
	edited[a - text] = '\0';
	(void)snprintf(edited + (a - text), size - (size_t)(a - text), "%.*s",
		       (int)second, b);
	memcpy(edited + (a - text) + second, a + first, (size_t)(b - a) - first);
	memcpy(edited + (b - text) + second - first, a, first);
	memcpy(edited + (b - text) + second, b + second,
	       size - (size_t)(b - text) - second);
	write_all(edited, size);
	i = replayed();
	assert_true(i.mismatches > 0);
	assert_true(i.line > 0);
	assert_non_null(strstr(i.mismatch, "the engine decides on"));
	free(edited);
	free(text);
}

/* The n-th number of the line becomes much larger, or smaller. */
static void change_number(char *line, int n)
{
	for (; n > 0; n--)
		line = strchr(line, ' ') + 1;
	*line = *line == '9' ? '8' : (char)(*line + 1);
}

static void an_event_at_another_time(void **state)
{
	struct hal_replay_info i;
	size_t size;
	char *text = small_journal(&size), *e = text;

	(void)state;
	for (int n = 0; n < 20; n++) {
		e = line_of(e, 'e');
		assert_non_null(e);
	}
	change_number(e, 6);
	write_all(text, size);
	i = replayed();
	assert_true(i.mismatches > 0);
	free(text);
}

static void an_event_left_out(void **state)
{
	struct hal_replay_info i = HAL_INIT(hal_replay_info);
	size_t size;
	char *text = small_journal(&size), *p = strstr(text, "\np 1\ne ");
	char *e, *rest;
	int err;

	(void)state;
	assert_non_null(p);
	p[3] = '0';
	e = p + 5;
	rest = strchr(e, '\n') + 1;
	memmove(e, rest, size - (size_t)(rest - text));
	write_all(text, size - (size_t)(rest - e));
	/* It may be that the lines behind no longer fit what the device holds by then. */
	err = hal_replay(path, &i);
	if (err != 0) {
		assert_int_equal(err, -EINVAL);
		assert_non_null(strstr(hal_last_error(), path));
	} else {
		assert_true(i.mismatches > 0);
	}
	free(text);
}

/* ---- what is no journal ------------------------------------------------------------ */

static int replay_text(const char *text, size_t size)
{
	struct hal_replay_info i = HAL_INIT(hal_replay_info);

	write_all(text, size);
	return hal_replay(path, &i);
}

/* Of the first n bytes of text. */
static void expect_missing(const struct hal_replay_info *i, const char *text, size_t n)
{
	char where[96];
	size_t line = 1;

	for (size_t k = 0; k < n; k++)
		line += text[k] == '\n';
	(void)snprintf(where, sizeof(where), " ends %s line %zu, at byte %zu,",
		       text[n - 1] != '\n' ? "in the middle of" : "before", line, n);
	if (strstr(i->missing, path) == NULL || strstr(i->missing, where) == NULL)
		fail_msg("no \"%s\" in \"%s\"", where, i->missing);
}

static void a_last_line_without_end(void **state)
{
	size_t size;
	char *text = small_journal(&size);
	struct hal_replay_info i;

	(void)state;
	/* Wherever it stops, what is there is replayed. */
	for (size_t n = size - 1; n > size / 2; n -= size / 101 + 1) {
		write_all(text, n);
		i = replayed();
		assert_int_equal(i.mismatches, 0);
		expect_missing(&i, text, n);
	}
	free(text);
}

/* Every journal that is whole says so; one whose last line is gone is not. */
static void without_its_last_line(void **state)
{
	size_t size;
	char *text = small_journal(&size);
	struct hal_replay_info i;

	(void)state;
	assert_string_equal(text + size - 3, "\nE\n");
	write_all(text, size);
	assert_string_equal(replayed().missing, "");
	write_all(text, size - 2);
	i = replayed();
	assert_int_equal(i.mismatches, 0);
	expect_missing(&i, text, size - 2);
	free(text);
}

static void a_line_after_the_last(void **state)
{
	struct hal_replay_info i = HAL_INIT(hal_replay_info);
	size_t size;
	char *text = small_journal(&size);

	(void)state;
	text = realloc(text, size + 4);
	assert_non_null(text);
	memcpy(text + size, "n 7\n", 4);
	write_all(text, size + 4);
	assert_int_equal(hal_replay(path, &i), -EINVAL);
	assert_non_null(
		strstr(hal_last_error(), "follows the final line of the journal"));
	free(text);
}

/* A process that is killed leaves a journal without an end, or an empty one. */
static void of_a_process_that_was_killed(void **state)
{
	struct hal_replay_info i = HAL_INIT(hal_replay_info);
	char option[96];
	const char *options[] = {option, NULL};
	struct hal_device *dev;
	pid_t child;
	int status;

	(void)state;
	(void)snprintf(option, sizeof(option), "hal.journal=%s", path);
	child = fork();
	if (child == 0) {
		if (hal_open("ref", options, &dev) != 0)
			_exit(1);
		_exit(0);
	}
	assert_true(child > 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_int_equal(hal_replay(path, &i), -EINVAL);
	assert_non_null(strstr(hal_last_error(), "is empty"));
}

static const char good[] = "J hal-journal 1 ref:0\n"
			   "D 1 1 16 16 446 9 2 3 2 2 32 10000000000 0\n"
			   "Y priority\n";

static void not_a_journal(void **state)
{
	static const char *const bad[] = {
		"",
		"\n",
		"J hal-journal 2 ref:0\n",
		"D 1 1 16 16 446 9 2 3 2 2 32 10000000000 0\n",
		"J hal-journal 1 ref:0\nY priority\n",
		"J hal-journal 1 ref:0\nD 1 1 16 16 446 9 2 3 2 2 33 10000000000 0\n"
		"Y priority\n",
		"J hal-journal 1 ref:0\nD 1 1 16 16 446 9 2 3 2 2 32 10000000000 0\n"
		"Y nosuchpolicy\n",
		"J hal-journal 1 ref:0\nD 1 1 16 16 446 9 2 3 2 2 32 10000000000 0\n"
		"Y priority nosuch=1\n",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (replay_text(bad[i], strlen(bad[i])) != -EINVAL)
			fail_msg("head %zu is taken", i);
	assert_int_equal(replay_text(good, strlen(good)), 0);
}

/* lines behind a good head are refused, by the file's name, the line and what. */
static void refused(const char *lines, const char *what)
{
	char text[1024], where[128];
	int line = 3;

	(void)snprintf(text, sizeof(text), "%s%s", good, lines);
	if (replay_text(text, strlen(text)) != -EINVAL)
		fail_msg("\"%s\" is taken", lines);
	for (const char *c = lines; *c != '\0'; c++)
		line += *c == '\n';
	(void)snprintf(where, sizeof(where), "%s:%d: ", path, line);
	if (strstr(hal_last_error(), what) == NULL ||
	    strstr(hal_last_error(), where) == NULL)
		fail_msg("\"%s\" is \"%s\", not \"%s\" at %s", lines, hal_last_error(),
			 what, where);
}

#define PART  "P 0 0 0 1 4\n"
#define QUEUE PART "Q 0 0 0 0 1\n"

static void wrong_lines(void **state)
{
	static const char *const lines[][2] = {
		{"?\n", "not a line"},
		{"\n", "not a line"},
		{"n x\n", "not a line"},
		{"n  1\n", "not a line"},
		{"n 1 \n", "not a line"},
		{"n 18446744073709551616\n", "not a line"},
		{"n 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1\n", "not a line"},
		{"D 1 1 16 16 446 9 2 3 2 2 32 10000000000 0\n", "not allowed here"},
		{"= 0\n", "not allowed here"},
		{"e 0 0 0 0 0 0 0 0\n", "not allowed here"},
		{"r 0 0 0\n", "not allowed here"},
		{"l 0 1\n", "no such queue"},
		{"Q 0 0 0 0 1\n", "no such partition"},
		{PART "Q 1 0 0 0 1\n", "no queue can be created"},
		{PART "Q 0 1 0 0 1\n", "no such partition"},
		{PART "Q 0 0 4294967296 0 1\n", "too large"},
		{PART "Q 0 0 0 0 4294967296\n", "too large"},
		{"P 0 0 0 1 17\n", "reaches past"},
		{"P 0 65536 0 1 4\n", "too large"},
		{"P 0 0 65536 1 4\n", "too large"},
		{"P 0 0 0 65536 4\n", "too large"},
		{"P 0 0 0 1 65536\n", "too large"},
		{"T 1\n", "no timeline can be created"},
		{"U 0\n", "no such timeline"},
		{"T 0\nU 1\n", "no such timeline"},
		{"T 0\nU 0\nU 0\n", "no such timeline"},
		{"v 0 0 0 1 0\n", "no such timeline"},
		{"T 0\nv 0 0 0 1 4096\n", "too large"},
		{"T 0\nv 9 0 0 1 0\n", "no such kind of timeline"},
		{PART "v 3 0 1 1 0\n", "has no such timeline"},
		{"K 0\n", "no such partition"},
		{PART "K 0\nK 0\n", "no such partition"},
		{"Z 0 0 0 0 0 0\n", "no such queue"},
		{QUEUE "Z 0 0 0 0 0 0\nZ 0 0 0 0 0 0\n", "no such queue"},
		{"R 0\n", "no such queue"},
		{"X 0\n", "no such queue"},
		{"S 0 0\n", "no such queue"},
		{QUEUE "S 0 4294967296\n", "too large"},
		{QUEUE "S 0 0\nn 1\n", "no result line"},
		{"M 0 1 1 0 0 1 1\n", "no such partition"},
		{PART "M 0 4294967296 1 0 0 1 1\n", "too large"},
		{PART "M 0 1 4294967296 0 0 1 1\n", "too large"},
		{PART "M 0 1 1 65536 0 1 1\n", "too large"},
		{PART "M 0 1 1 0 65536 1 1\n", "too large"},
		{PART "M 0 1 1 0 0 65536 1\n", "too large"},
		{PART "M 0 1 1 0 0 1 65536\n", "too large"},
		{QUEUE "l 0 1\nr 99 16777216 0\n", "not a record"},
		{QUEUE "l 0 1\nr 32 83886080 0 0 5 0 1\n",
		 "of this kind cannot be there"},
		{QUEUE "l 0 1\nr 35 16842752 0 0\n", "this number of slots"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		refused(lines[i][0], lines[i][1]);
}

/* Lines that can be there, but are not what the engine does. */
static void other_answers(void **state)
{
	static const char *const lines[][2] = {
		{"Y nosuch\n= 22\n", ""},
		{"Y nosuch\n= 0\n", "returns -22"},
		{"Y nosuch\ns 0 0 0 0\n= 22\n", "does not decide"},
		{QUEUE "X 0\n= 22\n", ""},
		{QUEUE "X 0\n= 0\n", "returns -22"},
		{QUEUE "X 0\n= 16\n", "returns -22"},
		{"P 0 0 0 1 4\nP 2 0 4 1 4\n", "another index"},
		{QUEUE "K 0\n", "queue"},

	};

	(void)state;
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		const char *what = lines[i][1];
		struct hal_replay_info info;
		char text[512];

		(void)snprintf(text, sizeof(text), "%s%s", good, lines[i][0]);
		write_all(text, strlen(text));
		info = replayed();
		if (info.mismatches != (*what != '\0') ||
		    strstr(info.mismatch, what) == NULL)
			fail_msg("\"%s\": %llu mismatches: %s", lines[i][0],
				 (unsigned long long)info.mismatches, info.mismatch);
	}
}

/* A line has as many numbers as its kind says, no more and no fewer. */
static void lines_of_another_length(void **state)
{
	static const struct {
		char kind;
		int least, most;
	} kinds[] = {
		{'D', 13, 18}, {'n', 1, 1},  {'t', 2, 2},  {'p', 1, 1}, {'e', 8, 8},
		{'q', 4, 6},   {'m', 2, 2},  {'x', 1, 1},  {'R', 1, 1}, {'v', 5, 5},
		{'l', 2, 2},   {'r', 3, 11}, {'P', 5, 10}, {'K', 1, 1}, {'Q', 5, 7},
		{'Z', 6, 6},   {'T', 1, 1},  {'U', 1, 1},  {'S', 2, 2}, {'X', 1, 1},
		{'M', 7, 8},   {'=', 1, 1},  {'s', 4, 4},  {'h', 3, 3}, {'g', 2, 2},
		{'z', 7, 7},   {'b', 4, 4},  {'c', 1, 1},  {'C', 8, 9}, {'O', 1, 1},
		{'w', 2, 2},
	};
	char text[256];

	(void)state;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		for (int n = kinds[i].least - 1; n <= kinds[i].most + 1; n++) {
			int at =
				snprintf(text, sizeof(text), "%s%c", good, kinds[i].kind);
			bool fits = n >= kinds[i].least && n <= kinds[i].most;
			int err;

			for (int k = 0; k < n; k++)
				at += snprintf(text + at, sizeof(text) - (size_t)at,
					       " 9");
			at += snprintf(text + at, sizeof(text) - (size_t)at, "\n");
			err = replay_text(text, (size_t)at);
			if (fits !=
			    (err == 0 || strstr(hal_last_error(), "not a line") == NULL))
				fail_msg("%s of %d numbers is %d: %s", text, n, err,
					 hal_last_error());
		}
}

static void no_file(void **state)
{
	struct hal_replay_info i = HAL_INIT(hal_replay_info);

	(void)state;
	assert_int_equal(hal_replay("/nonexistent/journal", &i), -ENOENT);
	assert_int_equal(hal_replay("/tmp", &i), -EISDIR);
	/* It has no end, so that reading all of it would not, either. */
	assert_int_equal(hal_replay("/dev/zero", &i), -EINVAL);
	assert_non_null(strstr(hal_last_error(), "/dev/zero"));
	assert_int_equal(hal_replay(NULL, &i), -EINVAL);
	assert_int_equal(hal_replay(path, NULL), -EINVAL);
}

static void no_folder(void **state)
{
	const char *options[] = {"hal.journal=/nonexistent/journal", NULL};
	struct hal_device *dev;

	(void)state;
	assert_int_equal(hal_open("ref", options, &dev), -ENOENT);
}

static void a_disk_that_is_full(void **state)
{
	const char *options[] = {"hal.journal=/dev/full", NULL};
	struct hal_device *dev;

	(void)state;
	assert_int_equal(hal_open("ref", options, &dev), 0);
	assert_int_equal(hal_close(dev), -EIO);
	assert_non_null(strstr(hal_last_error(), "/dev/full"));
	assert_non_null(strstr(hal_last_error(), hal_strerror(ENOSPC)));
}

/* Whatever it says, the library says what it thinks of it. */
static void anything_else(void **state)
{
	static const char bytes[] = "0123456789 \nnpetqmRvlrPKQZTUSXMY=shgzbcxE";
	size_t size;
	char *text = small_journal(&size), *edited = malloc(size);
	uint64_t random = 5;

	(void)state;
	assert_non_null(edited);
	for (int n = 0; n < 300; n++) {
		memcpy(edited, text, size);
		for (int k = 0; k <= n % 3; k++) {
			random = random * UINT64_C(6364136223846793005) +
				 UINT64_C(1442695040888963407);
			edited[(random >> 33) % size] =
				bytes[(random >> 20) % (sizeof(bytes) - 1)];
		}
		(void)replay_text(edited, size);
	}
	free(edited);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(real_time),
		cmocka_unit_test(real_borders),
		cmocka_unit_test(moving_buffers),
		cmocka_unit_test(a_device_that_is_full),
		cmocka_unit_test(policies_replaced),
		cmocka_unit_test(virtual_time),
		cmocka_unit_test(a_decision_swapped),
		cmocka_unit_test(an_event_at_another_time),
		cmocka_unit_test(an_event_left_out),
		cmocka_unit_test(a_last_line_without_end),
		cmocka_unit_test(without_its_last_line),
		cmocka_unit_test(a_line_after_the_last),
		cmocka_unit_test(of_a_process_that_was_killed),
		cmocka_unit_test(not_a_journal),
		cmocka_unit_test(wrong_lines),
		cmocka_unit_test(other_answers),
		cmocka_unit_test(lines_of_another_length),
		cmocka_unit_test(no_file),
		cmocka_unit_test(no_folder),
		cmocka_unit_test(a_disk_that_is_full),
		cmocka_unit_test(anything_else),
	};
	int fd, rc;

	(void)snprintf(path, sizeof(path), "/tmp/hal_replay_XXXXXX");
	fd = mkstemp(path);
	if (fd < 0)
		return 1;
	(void)close(fd);
	rc = cmocka_run_group_tests(tests, NULL, NULL);
	(void)unlink(path);
	return rc;
}

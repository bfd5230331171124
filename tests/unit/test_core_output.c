/* SPDX-License-Identifier: Apache-2.0 */
/* Files that options name: what stands for a process and a device in them, and that two
 * devices do not write one. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <yajl/yajl_tree.h>

#include <hal/hal.h>

#include "util/output.h"

static char folder[] = "/tmp/hal-output-XXXXXX";

static void messages(void **state)
{
	char out[OUTPUT_BYTES], want[64], longest[OUTPUT_BYTES];

	(void)state;
	assert_int_equal(output_name("o", "a/%p-%n%%.json", 7, out), 0);
	(void)snprintf(want, sizeof(want), "a/%d-7%%.json", (int)getpid());
	assert_string_equal(out, want);
	assert_int_equal(output_name("hal.trace", "a%q", 0, out), -EINVAL);
	assert_non_null(strstr(hal_last_error(), "hal.trace = a%q: "));
	assert_non_null(strstr(hal_last_error(),
			       "unknown sequence after %; use %p (process id), %n "));
	assert_int_equal(output_name("o", "a%", 0, out), -EINVAL);
	memset(longest, 'a', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	assert_int_equal(output_name("o", longest, 0, out), 0);
	memcpy(longest, "%n", 2);
	assert_int_equal(output_name("o", longest, 12, out), 0);
	assert_int_equal(output_name("o", longest, 123, out), -ENAMETOOLONG);
}

static int open_with(const char *key, const char *file, struct hal_device **dev)
{
	char option[128];
	const char *options[] = {option, "layers.validate=1", NULL};

	(void)snprintf(option, sizeof(option), "%s=%s/%s", key, folder, file);
	return hal_open("ref", options, dev);
}

static uint32_t count_in(const char *text, const char *what)
{
	uint32_t n = 0;

	for (; (text = strstr(text, what)) != NULL; text++)
		n++;
	return n;
}

/* With hal.trace_size a trace has the newest events, whose tracks have names, and no more
 * bytes. */
static void newest_events(void **state)
{
	static char text[65537];
	char trace[160], path[128];
	const char *options[] = {trace, "hal.trace_size=64K", NULL};
	struct hal_partition_desc pd = HAL_INIT(hal_partition_desc);
	struct hal_queue_desc qd = HAL_INIT(hal_queue_desc);
	struct hal_submit_desc sd = HAL_INIT(hal_submit_desc);
	const struct hal_cmd nop = hal_cmd_of(HAL_OP_NOP, 0);
	struct hal_partition *part;
	struct hal_queue *old, *q;
	struct hal_device *dev;
	struct hal_point done;
	yajl_val tree;
	FILE *f;

	(void)state;
	(void)snprintf(path, sizeof(path), "%s/newest", folder);
	(void)snprintf(trace, sizeof(trace), "hal.trace=%s", path);
	assert_int_equal(hal_open("ref", options, &dev), 0);
	pd.units_floor = 1;
	(void)snprintf(pd.name, sizeof(pd.name), "mine");
	assert_int_equal(hal_partition_create(dev, &pd, &part), 0);
	assert_int_equal(hal_queue_create(part, &qd, &old), 0);
	assert_int_equal(hal_queue_create(part, &qd, &q), 0);
	sd.cmds = &nop;
	sd.cmd_count = 1;
	for (int i = 0; i < 3000; i++) {
		assert_int_equal(hal_submit(i < 2990 ? q : old, &sd, &done), 0);
		assert_int_equal(hal_wait(&done, 1, 0, HAL_FOREVER), 0);
	}
	assert_int_equal(hal_queue_destroy(old), 0);
	assert_int_equal(hal_queue_destroy(q), 0);
	assert_int_equal(hal_partition_destroy(part), 0);
	assert_int_equal(hal_close(dev), 0);
	f = fopen(path, "r");
	assert_non_null(f);
	memset(text, 0, sizeof(text));
	assert_true(fread(text, 1, sizeof(text), f) < sizeof(text));
	assert_int_equal(fclose(f), 0);
	assert_int_equal(remove(path), 0);
	tree = yajl_tree_parse(text, NULL, 0);
	assert_non_null(tree);
	yajl_tree_free(tree);
	assert_int_equal(count_in(text, "\"process_name\""), 2);
	assert_int_equal(count_in(text, "mine queue 0\""), 1);
	assert_int_equal(count_in(text, "mine queue 1\""), 1);
	assert_true(count_in(text, "\"nop\"") > 100);
	options[0] = "hal.trace_size=65535";
	options[1] = NULL;
	assert_int_equal(hal_open("ref", options, &dev), -EINVAL);
	assert_non_null(strstr(hal_last_error(), "hal.trace_size = 65535: "));
}

static void close_both(struct hal_device *a, struct hal_device *b)
{
	assert_int_equal(hal_close(a), 0);
	assert_int_equal(hal_close(b), 0);
}

static bool is_there(const char *prefix, int n)
{
	char path[128];
	bool there;

	(void)snprintf(path, sizeof(path), "%s/%s-%d-%d", folder, prefix, (int)getpid(),
		       n);
	there = access(path, F_OK) == 0;
	(void)unlink(path);
	return there;
}

/* A file for each device that this process opens. */
static void two_files(void **state)
{
	static const char *const keys[] = {"hal.trace", "hal.journal", "layers.trace",
					   "layers.report"};
	struct hal_device *a, *b;
	int n = 0;

	(void)state;
	for (size_t i = 0; i < 4; i++) {
		assert_int_equal(open_with(keys[i], "x-%p-%n", &a), 0);
		assert_int_equal(open_with(keys[i], "x-%p-%n", &b), 0);
		close_both(a, b);
		while (!is_there("x", n))
			assert_true(n++ < 100);
		assert_true(is_there("x", n + 1));
		assert_int_equal(open_with(keys[i], "%x", &a), -EINVAL);
		assert_non_null(strstr(hal_last_error(), keys[i]));
	}
}

/* The second is told, and what the first has written stays. */
static void one_file(void **state)
{
	static const char *const keys[] = {"hal.trace", "hal.journal"};
	struct hal_device *a, *b;
	char path[64];
	int status;
	pid_t child;

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(open_with(keys[i], "one", &a), 0);
		assert_int_equal(open_with(keys[i], "one", &b), -EBUSY);
		assert_non_null(strstr(hal_last_error(), "/one: another device"));
		assert_non_null(
			strstr(hal_last_error(),
			       "choose another file name (in an option, %p stands for"));
		/* A child has the file, too, but does not keep it from the next device.
		 */
		child = fork();
		if (child == 0) {
			(void)pause();
			_exit(0);
		}
		assert_true(child > 0);
		assert_int_equal(hal_close(a), 0);
		assert_int_equal(open_with(keys[i], "one", &a), 0);
		assert_int_equal(hal_close(a), 0);
		assert_int_equal(kill(child, SIGKILL), 0);
		assert_int_equal(waitpid(child, &status, 0), child);
	}
	/* hal_trace_start takes a name as it is, so that is what its text says. */
	assert_int_equal(open_with("hal.trace", "one", &a), 0);
	assert_int_equal(open_with("hal.trace", "x-%p-%n", &b), 0);
	assert_int_equal(hal_trace_stop(b), 0);
	(void)snprintf(path, sizeof(path), "%s/one", folder);
	assert_int_equal(hal_trace_start(b, path), -EBUSY);
	assert_non_null(strstr(hal_last_error(), "choose another file name"));
	close_both(a, b);
	for (int n = 0; !is_there("x", n); n++)
		assert_true(n < 100);
}

/* Submit count times, and end without closing anything. */
static void child_that_dies(int count)
{
	struct hal_partition_desc pd = HAL_INIT(hal_partition_desc);
	struct hal_queue_desc qd = HAL_INIT(hal_queue_desc);
	struct hal_submit_desc sd = HAL_INIT(hal_submit_desc);
	struct hal_partition *part;
	struct hal_device *dev;
	struct hal_queue *q;
	struct hal_point done;

	pd.units_floor = 1;
	if (open_with("hal.trace", "one", &dev) != 0 ||
	    hal_partition_create(dev, &pd, &part) != 0 ||
	    hal_queue_create(part, &qd, &q) != 0)
		_exit(1);
	while (count-- > 0)
		if (hal_submit(q, &sd, &done) != 0 ||
		    hal_wait(&done, 1, 0, HAL_FOREVER) != 0)
			_exit(2);
	_exit(0);
}

/* Trace, in a child that ends without closing anything, to a file of at most limit bytes.
 * What is left is JSON that says it is cut; return its size. */
static size_t cut_size(int count, rlim_t limit)
{
	static char text[1u << 22];
	pid_t child = fork();
	char path[64], why[256];
	struct rlimit r;
	yajl_val tree;
	size_t size;
	int status;
	FILE *f;

	if (child == 0) {
		(void)signal(SIGXFSZ, SIG_IGN);
		if (getrlimit(RLIMIT_FSIZE, &r) != 0)
			_exit(3);
		r.rlim_cur = limit;
		if (setrlimit(RLIMIT_FSIZE, &r) != 0)
			_exit(4);
		child_that_dies(count);
	}
	assert_true(child > 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	(void)snprintf(path, sizeof(path), "%s/one", folder);
	f = fopen(path, "r");
	assert_non_null(f);
	size = fread(text, 1, sizeof(text) - 1, f);
	(void)fclose(f);
	text[size] = '\0';
	tree = yajl_tree_parse(text, why, sizeof(why));
	if (tree == NULL)
		fail_msg("%zu bytes of %zu: %s", size, (size_t)limit, why);
	yajl_tree_free(tree);
	assert_non_null(strstr(text, "\"cut\":true}}\n"));
	return size;
}

/* A program that is killed leaves JSON, that says so, from the start and later. */
static void killed(void **state)
{
	(void)state;
	assert_true(cut_size(3000, RLIM_INFINITY) > cut_size(0, RLIM_INFINITY) + 65536);
}

/* A disk that is full leaves JSON as well, up to the last time that all was written. */
static void full(void **state)
{
	size_t first = cut_size(0, RLIM_INFINITY), second;

	(void)state;
	/* A few bytes less than the second end needs. */
	second = cut_size(3000, 100000);
	assert_true(second > first + 32768);
	assert_int_equal(cut_size(3000, second), second);
	for (size_t less = 1; less < 40; less += 6)
		assert_int_equal(cut_size(3000, second - less), first);
	assert_int_equal(cut_size(3000, first + 1), first);
}

/* What is no file is for all. */
static void no_file(void **state)
{
	static const char *const options[] = {"hal.trace=/dev/null",
					      "hal.journal=/dev/null", NULL};
	struct hal_device *a, *b;

	(void)state;
	assert_int_equal(hal_open("ref", options, &a), 0);
	assert_int_equal(hal_open("ref", options, &b), 0);
	close_both(a, b);
}

static int make_folder(void **state)
{
	(void)state;
	return mkdtemp(folder) != NULL ? 0 : -1;
}

static int remove_folder(void **state)
{
	char path[64];

	(void)state;
	(void)snprintf(path, sizeof(path), "%s/one", folder);
	(void)unlink(path);
	return rmdir(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(newest_events), cmocka_unit_test(messages),
		cmocka_unit_test(two_files),     cmocka_unit_test(one_file),
		cmocka_unit_test(killed),        cmocka_unit_test(full),
		cmocka_unit_test(no_file),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}

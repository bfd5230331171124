/* SPDX-License-Identifier: Apache-2.0 */
/* Layers fault and trace, and that they stack. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <hal/ref.h>
#include <yajl/yajl_tree.h>

#include "scenario.h"

static char path[2][32] = {"/tmp/hal-calls-XXXXXX", "/tmp/hal-calls-XXXXXX"};

#define OK(call)                                                                         \
	do {                                                                             \
		int ok_ = (call);                                                        \
		if (ok_ < 0)                                                             \
			fail_msg("%s is %d: %s", #call, ok_, hal_last_error());          \
	} while (0)
#define FAILS(call, err, words)                                                          \
	do {                                                                             \
		int is_ = (call);                                                        \
		if (is_ != (err) || strstr(hal_last_error(), words) == NULL)             \
			fail_msg("%s is %d: %s", #call, is_, hal_last_error());          \
	} while (0)

static int make_files(void **state)
{
	(void)state;
	for (int i = 0; i < 2; i++) {
		int fd = mkstemp(path[i]);

		if (fd < 0)
			return -1;
		close(fd);
	}
	return scenario_begin();
}

static int remove_files(void **state)
{
	(void)state;
	scenario_end();
	return unlink(path[0]) | unlink(path[1]);
}

/* All of the file, ended with NUL; freed by the caller. */
static char *read_file(const char *name, size_t *size)
{
	FILE *f = fopen(name, "r");
	char *text = malloc(1 << 20);

	assert_non_null(f);
	assert_non_null(text);
	*size = fread(text, 1, (1 << 20) - 1, f);
	text[*size] = '\0';
	fclose(f);
	return text;
}

/* ---- fault ------------------------------------------------------------------------ */

static int open_fault(const char *rules, struct hal_device **dev)
{
	char option[2048];
	const char *const options[] = {option, "layers.validate=1", NULL};

	snprintf(option, sizeof(option), "layers.fault=%s", rules);
	return hal_open("ref", options, dev);
}

static void rules(void **state)
{
	static const struct {
		const char *rules, *words;
	} bad[] = {
		{"submit", "\"submit\" is not OPERATION:N:ERRNO"},
		{"submit:5", "is not OPERATION:N:ERRNO"},
		{"submit:0:EIO", "submit: \"0\" is not an integer of 1 or more"},
		{"submit:two:EIO", "submit: \"two\" is not an integer"},
		{"submit:-1:EIO", "submit: \"-1\" is not an integer"},
		{"submit:5x:EIO", "submit: \"5x\" is not an integer"},
		{"dance:1:EIO", "operation \"dance\" cannot be made to fail; choose one "
				"of open get_info"},
		{"now:1:EIO", "operation \"now\" cannot be made to fail"},
		{"submit:1:EPERM",
		 "submit cannot return \"EPERM\"; choose one of EAGAIN EIO"},
		{"submit:1:EIO:2", "submit cannot return \"EIO:2\""},
		{"submit:1:EIO,", "\"\" is not OPERATION:N:ERRNO"},
	};
	struct hal_device *dev;
	char many[2000] = "";

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		FAILS(open_fault(bad[i].rules, &dev), -EINVAL, bad[i].words);
	for (int i = 0; i < 33; i++)
		strcat(many, i == 0 ? "poll:9:EIO" : ",poll:9:EIO");
	FAILS(open_fault(many, &dev), -EINVAL, "more than 32 rules");
	FAILS(open_fault("open:1:EACCES", &dev), -EACCES, "injected: call 1 of open");
	FAILS(open_fault("get_info:1:EIO", &dev), -EIO, "injected: call 1 of get_info");
	/* The second call is the first hal_device_get_info. */
	OK(open_fault("open:2:EIO,get_info:2:EIO", &dev));
	OK(hal_close(dev));
}

/* Every third of them, and nothing is left of it. */
static void every_third(void **state)
{
	struct hal_partition_desc pd = HAL_INIT(hal_partition_desc);
	struct hal_partition_info pi = HAL_INIT(hal_partition_info);
	struct hal_buffer_desc bd = HAL_INIT(hal_buffer_desc);
	struct hal_buffer *bufs[12];
	struct hal_partition *part;
	struct hal_device *dev;
	uint32_t made = 0;

	(void)state;
	OK(open_fault("mem_alloc:3:ENOSPC,mem_alloc:7:EIO", &dev));
	pd.units_floor = 1;
	OK(hal_partition_create(dev, &pd, &part));
	bd.bytes = 64;
	for (int i = 1; i <= 12; i++) {
		int err = hal_buffer_create(part, &bd, &bufs[made]);

		if (i % 3 == 0)
			assert_int_equal(err, -ENOSPC);
		else if (i == 7)
			FAILS(err, -EIO, "injected: call 7 of mem_alloc returns EIO");
		else
			OK(err);
		made += err == 0;
	}
	OK(hal_partition_get_info(part, &pi));
	assert_int_equal(pi.memory_used, made * 64);
	while (made > 0)
		OK(hal_buffer_destroy(bufs[--made]));
	OK(hal_partition_destroy(part));
	OK(hal_close(dev));
}

static void map_written(const char *text)
{
	FILE *f = fopen(path[0], "w");

	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

static int open_map(const char *target, const char *rule, struct hal_device **dev)
{
	char map[64], fault[64];
	const char *const options[] = {map, fault, "hal.color_map_unverified=yes",
				       "layers.validate=1", NULL};

	snprintf(map, sizeof(map), "hal.color_map=%s", path[0]);
	snprintf(fault, sizeof(fault), "layers.fault=%s", rule);
	return hal_open(target, options, dev);
}

/* A map that the device does not take is no device that is open; the next one may be. */
static void no_map(void **state)
{
	static const struct {
		const char *rule;
		int err;
	} rules[] = {{"colors_set:1:EIO", -EIO},
		     {"colors_set:1:EINVAL", -EINVAL},
		     {"colors_set:1:ENOTSUP", -ENOTSUP}};
	static const char *const targets[] = {
		"ref?units=16&memory=64K",
		"npu:0?engine=fast&hash=opaque&memory_size=1M",
	};
	static const char *const maps[] = {
		"halmap 1\ndevice ref 1x16 65536\ngranule 4096\nchannels 2\nkind xor\n"
		"mask 1\n"
		"sum 1753225224cee321d89ba7c1420ef4affb4e187e8f12e1b60ea447039303da0f\n",
		"halmap 1\ndevice npu 16x16 1048576\ngranule 1024\nchannels 4\nkind xor\n"
		"mask 1\nmask 2\n"
		"sum 654e41ec7070c2aeac4a3dee5a2fa376d74a87de83f4ad86074347cc12d42d08\n",
	};
	struct hal_device_info info = HAL_INIT(hal_device_info);
	struct hal_device *dev;
	int npu = 0;

	(void)state;
	if (hal_open(targets[1], NULL, &dev) == 0) {
		npu = 1;
		OK(hal_close(dev));
	}
	for (int t = 0; t <= npu; t++) {
		map_written(maps[t]);
		for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
			FAILS(open_map(targets[t], rules[i].rule, &dev), rules[i].err,
			      "injected: call 1 of colors_set");
			assert_non_null(strstr(hal_last_error(), path[0]));
		}
	}
	if (npu == 0)
		return;
	/* There is no second call of it. */
	OK(open_map(targets[1], "colors_set:2:EIO", &dev));
	OK(hal_device_get_info(dev, &info));
	assert_int_equal(info.colors, 4);
	assert_int_equal(info.color_source, HAL_COLOR_FILE);
	OK(hal_close(dev));
}

/* A device that says it is full now and then: everything still runs, in order. */
static void full_device(void **state)
{
	static const char *const full[] = {"submit:1:EAGAIN", "submit:2:EAGAIN",
					   "submit:3:EAGAIN"};

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		char option[64];
		const char *const options[] = {"partition \"second\".units=4", option,
					       "layers.validate=1", NULL};
		struct scenario s = {.target = "ref", .options = options};

		snprintf(option, sizeof(option), "layers.fault=%s", full[i]);
		scenario_run(&s);
		if (s.err != 0 || s.close_err != 0)
			fail_msg("%s: %s: %s; %s", full[i], s.step, s.text, s.close_text);
	}
}

/* What FOLD holds does not end: a device that has nothing else to do is not full. */
static void full_of_frozen(void **state)
{
	struct hal_partition_desc d = HAL_INIT(hal_partition_desc);
	struct hal_buffer_desc b = HAL_INIT(hal_buffer_desc);
	struct hal_submit_desc s = HAL_INIT(hal_submit_desc);
	struct hal_queue_desc qd = HAL_INIT(hal_queue_desc);
	struct hal_point copied, filled, quiet;
	struct hal_partition *part;
	struct hal_device *dev;
	struct hal_queue *q[2];
	struct hal_buffer *buf;
	struct hal_cmd cmd;

	(void)state;
	OK(hal_open("ref?fold_ns=10&layers.fault=submit:1:EAGAIN&layers.validate=1", NULL,
		    &dev));
	d.units_floor = 1;
	OK(hal_partition_create(dev, &d, &part));
	b.bytes = 131072;
	OK(hal_buffer_create(part, &b, &buf));
	for (int i = 0; i < 2; i++)
		OK(hal_queue_create(part, &qd, &q[i]));
	s.cmds = &cmd;
	s.cmd_count = 1;
	cmd = hal_cmd_copy(buf, 0, buf, 65536, 65536);
	OK(hal_submit(q[0], &s, &copied));
	assert_true(hal_device_poll(dev, 100) >= 0);
	OK(hal_queue_suspend(q[0], HAL_SUSPEND_FOLD, &quiet));
	OK(hal_wait(&quiet, 1, 0, HAL_FOREVER));
	cmd = hal_cmd_fill(buf, 0, 64, 1);
	OK(hal_submit(q[1], &s, &filled));
	OK(hal_wait(&filled, 1, 0, HAL_FOREVER));
	OK(hal_queue_resume(q[0]));
	OK(hal_wait(&copied, 1, 0, HAL_FOREVER));
	/* And once more, to be destroyed with it. */
	cmd = hal_cmd_copy(buf, 0, buf, 65536, 65536);
	OK(hal_submit(q[0], &s, &copied));
	assert_true(hal_device_poll(dev, 100) >= 0);
	OK(hal_queue_suspend(q[0], HAL_SUSPEND_FOLD, &quiet));
	OK(hal_wait(&quiet, 1, 0, HAL_FOREVER));
	OK(hal_queue_destroy(q[0]));
	cmd = hal_cmd_fill(buf, 0, 64, 1);
	OK(hal_submit(q[1], &s, &filled));
	OK(hal_wait(&filled, 1, 0, HAL_FOREVER));
	OK(hal_queue_destroy(q[1]));
	OK(hal_buffer_destroy(buf));
	OK(hal_partition_destroy(part));
	OK(hal_close(dev));
}

/* ---- trace ------------------------------------------------------------------------ */

static void run_traced(const char *file, const char *more)
{
	char option[64];
	const char *const options[] = {"partition \"second\".units=4", option, more,
				       NULL};
	struct scenario s = {.target = "ref", .options = options};

	snprintf(option, sizeof(option), "layers.trace=%s", file);
	assert_int_equal(truncate(file, 0), 0);
	scenario_run(&s);
}

static const char *string_at(yajl_val line, const char *key)
{
	const char *keys[] = {key, NULL};
	yajl_val v = yajl_tree_get(line, keys, yajl_t_string);

	return v != NULL ? YAJL_GET_STRING(v) : NULL;
}

static long long number_at(yajl_val line, const char *key)
{
	const char *keys[] = {key, NULL};
	yajl_val v = yajl_tree_get(line, keys, yajl_t_number);

	assert_non_null(v);
	return YAJL_GET_INTEGER(v);
}

/* What is only counted stands in the next line, where there was any, and in no other. */
struct counted {
	uint32_t with, without_behind;
};

static void count_at(yajl_val line, const char *key, struct counted *c)
{
	const char *keys[] = {key, NULL};
	yajl_val v = yajl_tree_get(line, keys, yajl_t_number);

	assert_true(v == NULL || YAJL_GET_INTEGER(v) > 0);
	c->with += v != NULL;
	c->without_behind += v == NULL && c->with > 0;
}

/* Each line is JSON, numbered; ops counts some of them. */
static void each_line(void **state)
{
	static const char *const ops[] = {
		"open",     "get_info",       "partition_create", "queue_create",
		"mem_free", "program_load",   "kernel_get",       "program_bind",
		"submit",   "poll",           "suspend",          "resume",
		"resize",   "program_unload", "queue_destroy",    "close"};
	uint32_t seen[sizeof(ops) / sizeof(ops[0])] = {0};
	char error[128], *text, *rest, *line, *last = NULL;
	struct counted polls = {0}, nows = {0};
	long long number = 0, at = 0;
	size_t size;

	(void)state;
	run_traced(path[0], "layers.validate=1");
	text = read_file(path[0], &size);
	rest = text;
	while ((line = strsep(&rest, "\n")) != NULL && line[0] != '\0') {
		yajl_val v = yajl_tree_parse(line, error, sizeof(error));

		if (v == NULL)
			fail_msg("%s: %s", line, error);
		assert_int_equal(number_at(v, "n"), number++);
		for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++)
			seen[i] += strcmp(string_at(v, "op"), ops[i]) == 0;
		(void)number_at(v, "result");
		count_at(v, "polls", &polls);
		count_at(v, "nows", &nows);
		if (strcmp(string_at(v, "op"), "close") != 0) {
			assert_true(number_at(v, "at") >= at);
			at = number_at(v, "at");
		}
		yajl_tree_free(v);
		last = line;
	}
	for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++)
		if (seen[i] == 0)
			fail_msg("no call of %s", ops[i]);
	assert_true(polls.with > 0 && polls.without_behind > 0);
	assert_true(nows.with > 0 && nows.without_behind > 0);
	assert_non_null(last);
	assert_non_null(strstr(last, "\"op\":\"close\",\"result\":0"));
	/* The launch that faults, as the backend told it. */
	free(text);
	text = read_file(path[0], &size);
	assert_non_null(strstr(text, "\"status\":-5"));
	assert_non_null(strstr(text, "\"fault\":\""));
	assert_non_null(strstr(text, "\"command\":\"timestamp\""));
	free(text);
}

static void same_again(void **state)
{
	char *text[2];
	size_t size[2];

	(void)state;
	for (int i = 0; i < 2; i++) {
		run_traced(path[i], "layers.fault=submit:4:EIO");
		text[i] = read_file(path[i], &size[i]);
	}
	assert_true(size[0] > 1000);
	assert_int_equal(size[0], size[1]);
	assert_memory_equal(text[0], text[1], size[0]);
	/* What layer fault did, seen from above. */
	assert_non_null(
		strstr(text[0], "\"error\":\"injected: call 4 of submit returns EIO\""));
	free(text[0]);
	free(text[1]);
}

static int run_nothing(const struct hal_ref_call *call)
{
	(void)call;
	return 0;
}

/* A number that a reader with doubles would round is a string. */
static void large_numbers(void **state)
{
	static const struct hal_ref_kernel kernels[] = {
		{.name = "nothing", .fn = run_nothing, .work = 10, .arg_count = 3}};
	const uint64_t exact = UINT64_C(1) << 53;
	const struct hal_arg args[3] = {
		{.offset = exact}, {.offset = exact + 1}, {.offset = UINT64_MAX}};
	struct hal_partition_desc pd = HAL_INIT(hal_partition_desc);
	struct hal_queue_desc qd = HAL_INIT(hal_queue_desc);
	struct hal_submit_desc sd = HAL_INIT(hal_submit_desc);
	struct hal_partition *part;
	struct hal_program *prog;
	struct hal_kernel *kernel;
	struct hal_device *dev;
	struct hal_queue *q;
	struct hal_point done;
	struct hal_cmd cmd;
	char option[64], *text;
	const char *const options[] = {option, NULL};
	size_t size;

	(void)state;
	snprintf(option, sizeof(option), "layers.trace=%s", path[0]);
	assert_int_equal(truncate(path[0], 0), 0);
	OK(hal_open("ref", options, &dev));
	pd.units_floor = 1;
	OK(hal_partition_create(dev, &pd, &part));
	OK(hal_queue_create(part, &qd, &q));
	OK(hal_ref_load(dev, kernels, 1, &prog));
	OK(hal_kernel_find(prog, "nothing", &kernel));
	cmd = hal_cmd_launch(kernel, args, 3);
	sd.cmds = &cmd;
	sd.cmd_count = 1;
	OK(hal_submit(q, &sd, &done));
	OK(hal_wait(&done, 1, 0, HAL_FOREVER));
	OK(hal_queue_destroy(q));
	OK(hal_program_unload(prog));
	OK(hal_partition_destroy(part));
	OK(hal_close(dev));
	text = read_file(path[0], &size);
	assert_non_null(strstr(text, "\"args\":[{\"value\":9007199254740992},"
				     "{\"value\":\"9007199254740993\"},"
				     "{\"value\":\"18446744073709551615\"}]"));
	free(text);
}

/* Without a layer between, the application sees the same times. */
static void nothing_changes(void **state)
{
	struct hal_device *dev[2];
	const char *const on[] = {"layers.validate=1", "layers.trace=/dev/null",
				  "layers.fault=submit:1000000:EIO", NULL};

	(void)state;
	OK(hal_open("ref", NULL, &dev[0]));
	OK(hal_open("ref", on, &dev[1]));
	for (int i = 0; i < 2; i++) {
		struct hal_device_info info[2] = {HAL_INIT(hal_device_info),
						  HAL_INIT(hal_device_info)};

		OK(hal_device_get_info(dev[0], &info[0]));
		OK(hal_device_get_info(dev[1], &info[1]));
		assert_memory_equal(&info[0], &info[1], sizeof(info[0]));
		OK(hal_device_poll(dev[0], 1000));
		OK(hal_device_poll(dev[1], 1000));
		assert_int_equal(hal_device_get_time(dev[0]),
				 hal_device_get_time(dev[1]));
	}
	/* The extension works on the backend's own handle. */
	assert_ptr_equal(hal_device_get_extension(dev[0], "ref"),
			 hal_device_get_extension(dev[1], "ref"));
	OK(hal_close(dev[0]));
	OK(hal_close(dev[1]));
}

static void not_written(void **state)
{
	const char *const full[] = {"layers.trace=/dev/full", NULL};
	const char *const none[] = {"layers.trace=/none/here", NULL};
	struct hal_device *dev;

	(void)state;
	FAILS(hal_open("ref", none, &dev), -ENOENT,
	      "[layers] trace: cannot open /none/here");
	OK(hal_open("ref", full, &dev));
	FAILS(hal_close(dev), -EIO, "[layers] trace: /dev/full could not be written");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rules),          cmocka_unit_test(every_third),
		cmocka_unit_test(no_map),         cmocka_unit_test(full_device),
		cmocka_unit_test(full_of_frozen), cmocka_unit_test(each_line),
		cmocka_unit_test(same_again),     cmocka_unit_test(nothing_changes),
		cmocka_unit_test(not_written),    cmocka_unit_test(large_numbers),
	};

	return cmocka_run_group_tests(tests, make_files, remove_files);
}

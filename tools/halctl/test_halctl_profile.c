/* SPDX-License-Identifier: Apache-2.0 */
/* test_halctl_profile.c - halctl profile: what it measures where that can be computed,
 * on `ref`, and what it says of the NPU. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <yajl/yajl_tree.h>

#include <hal/policy.h>

#include "plugin.h"
#include "run.h"
#include "service.h"

static char table[64], file[64];

static void write_file(char *path, size_t size, const char *name, const char *text)
{
	FILE *f;
	int fd;

	if (path[0] == '\0') {
		snprintf(path, size, "/tmp/%s-XXXXXX.json", name);
		fd = mkstemps(path, 5);
		assert_true(fd >= 0);
		(void)close(fd);
	}
	f = fopen(path, "w");
	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

static yajl_val json(void)
{
	char why[256];
	yajl_val tree = yajl_tree_parse(output, why, sizeof(why));

	if (!tree)
		fail_msg("not JSON: %s\n%.2000s", why, output);
	return tree;
}

static yajl_val get(yajl_val v, const char *key)
{
	const char *path[] = {key, NULL};
	yajl_val found = yajl_tree_get(v, path, yajl_t_any);

	if (!found)
		fail_msg("no key %s in:\n%.2000s", key, output);
	return found;
}

static yajl_val at(yajl_val v, const char *key, size_t index)
{
	yajl_val list = get(v, key);

	assert_true(YAJL_IS_ARRAY(list));
	assert_true(index < YAJL_GET_ARRAY(list)->len);
	return YAJL_GET_ARRAY(list)->values[index];
}

static size_t length(yajl_val v, const char *key)
{
	yajl_val list = get(v, key);

	assert_true(YAJL_IS_ARRAY(list));
	return YAJL_GET_ARRAY(list)->len;
}

static long long number(yajl_val v, const char *key)
{
	yajl_val found = get(v, key);

	assert_true(YAJL_IS_INTEGER(found));
	return YAJL_GET_INTEGER(found);
}

static const char *text(yajl_val v, const char *key)
{
	yajl_val found = get(v, key);

	assert_true(YAJL_IS_STRING(found));
	return YAJL_GET_STRING(found);
}

static yajl_val kernel(yajl_val tree, size_t program, size_t index)
{
	return at(at(tree, "programs", program), "kernels", index);
}

/* ---- ref ---------------------------------------------------------------------------- */

/* 80 us of one unit, no faster than on eight of them; on two; 20 us on any. */
static const char networks[] = "{\"models\": {\"wide\": {\"steps\": [[2, 80, 8]]},\n"
			       "\"narrow\": {\"steps\": [[1, 80, 2], [3, 20, 1]]}}}\n";

static int profile_ref(const char *options, const char *target)
{
	char args[256];

	write_file(table, sizeof(table), "halctl-table", networks);
	snprintf(args, sizeof(args), "profile %s '%s' %s", options, target, table);
	return halctl(args);
}

/* On powers of two of units. */
static void times_are(yajl_val k, const char *key, const long long *ns, size_t count)
{
	assert_int_equal(length(k, key), count);
	for (size_t i = 0; i < count; i++) {
		yajl_val t = at(k, key, i);

		assert_int_equal(number(t, "units"), 1 << i);
		assert_int_equal(number(t, "rows"), 1);
		assert_int_equal(number(t, "cols"), 1 << i);
		assert_int_equal(number(t, "ns"), ns[i]);
		assert_int_equal(number(t, "spread_ns"), 0);
	}
}

static void is(yajl_val k, const char *name, long long work, const char *class,
	       long long least)
{
	assert_string_equal(text(k, "name"), name);
	assert_int_equal(number(k, "work"), work);
	assert_int_equal(length(k, "arg_bytes"), 0);
	assert_string_equal(text(k, "class"), class);
	assert_int_equal(number(get(k, "least"), "units"), least);
}

static void times_by_units(void **state)
{
	static const long long wide[] = {80000, 40000, 20000, 10000},
			       narrow[] = {80000, 40000, 40000, 40000},
			       any[] = {20000, 20000, 20000, 20000};
	yajl_val tree;

	(void)state;
	assert_int_equal(profile_ref("", "ref?units=8"), 0);
	tree = json();
	assert_int_equal(number(tree, "accelhal_profile"), 1);
	assert_int_equal(number(tree, "runs"), 3);
	assert_int_equal(number(get(tree, "device"), "unit_cols"), 8);
	assert_string_equal(text(get(tree, "device"), "clock"), "virtual");
	assert_int_equal(length(tree, "programs"), 2);
	assert_string_equal(text(at(tree, "programs", 1), "name"), "narrow");
	/* Two launches of one kernel are one. */
	assert_int_equal(length(at(tree, "programs", 0), "kernels"), 1);
	assert_int_equal(length(at(tree, "programs", 1), "kernels"), 2);
	is(kernel(tree, 0, 0), "step0", 80000, "array", 8);
	is(kernel(tree, 1, 0), "step0", 80000, "array", 2);
	is(kernel(tree, 1, 1), "step1", 20000, "vector", 1);
	times_are(kernel(tree, 0, 0), "units", wide, 4);
	times_are(kernel(tree, 0, 0), "shapes", wide, 4);
	times_are(kernel(tree, 1, 0), "units", narrow, 4);
	times_are(kernel(tree, 1, 1), "units", any, 4);
	/* Nothing meets in memory there. */
	assert_int_equal(number(get(kernel(tree, 0, 0), "copies"), "alone_ns"), 20000);
	assert_int_equal(number(get(kernel(tree, 0, 0), "copies"), "beside_ns"), 20000);
	assert_int_equal(length(tree, "beside_permille"), 2);
	yajl_tree_free(tree);
}

static void least_within_tolerance(void **state)
{
	yajl_val tree;

	(void)state;
	assert_int_equal(profile_ref("--tolerance 999", "ref?units=8"), 0);
	tree = json();
	assert_int_equal(number(get(kernel(tree, 0, 0), "least"), "units"), 8);
	yajl_tree_free(tree);
	assert_int_equal(profile_ref("-t 1000", "ref?units=8"), 0);
	tree = json();
	assert_int_equal(number(get(kernel(tree, 0, 0), "least"), "units"), 4);
	yajl_tree_free(tree);
}

/* At 1,250, 3,750, 6,250 and 8,750 ns of 10,000. */
static void stops(void **state)
{
	yajl_val tree, drain, kill;

	(void)state;
	assert_int_equal(profile_ref("", "ref?units=8"), 0);
	tree = json();
	assert_int_equal(length(kernel(tree, 0, 0), "stops"), 2);
	drain = at(kernel(tree, 0, 0), "stops", 0);
	kill = at(kernel(tree, 0, 0), "stops", 1);
	assert_string_equal(text(drain, "mode"), "drain");
	assert_int_equal(number(drain, "quiet_ns"), 8750);
	assert_int_equal(number(drain, "cost_ns"), 0);
	assert_string_equal(text(kill, "mode"), "kill");
	assert_in_range(number(kill, "quiet_ns"), 1, 1000);
	assert_int_equal(number(kill, "cost_ns"), 8750 + number(kill, "quiet_ns"));
	yajl_tree_free(tree);
	assert_int_equal(profile_ref("", "ref?units=8&preempt=between"), 0);
	tree = json();
	assert_int_equal(length(kernel(tree, 0, 0), "stops"), 1);
	yajl_tree_free(tree);
}

/* A grid has rectangles, and numbers of units the ones the engine gives. */
static void rectangles(void **state)
{
	yajl_val tree, k;

	(void)state;
	assert_int_equal(profile_ref("", "ref?units=24&rows=4"), 0);
	tree = json();
	k = kernel(tree, 0, 0);
	/* 1, 2, 4 rows; 1, 2, 4, 6 columns; and 2 x 3, 3 x 4, which the engine gives. */
	assert_int_equal(length(k, "shapes"), 14);
	assert_int_equal(length(k, "units"), 8);
	for (size_t i = 1; i < length(k, "shapes"); i++)
		assert_true(number(at(k, "shapes", i), "units") >=
			    number(at(k, "shapes", i - 1), "units"));
	assert_int_equal(number(at(k, "shapes", 13), "units"), 24);
	/* Stopped on all of it, where it takes 10,000. */
	assert_int_equal(number(at(k, "stops", 0), "quiet_ns"), 8750);
	for (size_t i = 0; i < length(k, "units"); i++) {
		yajl_val t = at(k, "units", i);
		long long units = number(t, "units");

		assert_int_equal(number(t, "rows") * number(t, "cols"), units);
		assert_int_equal(number(t, "ns"),
				 units < 8 ? (80000 + units - 1) / units : 10000);
		if (units == 4)
			assert_int_equal(number(t, "rows"), 2);
	}
	yajl_tree_free(tree);
}

/* The same bytes again; the library reads them, for that device alone. */
static void good_for_one_device(void **state)
{
	static char first[sizeof(output)];
	char args[256];

	(void)state;
	assert_int_equal(profile_ref("", "ref?units=8"), 0);
	strcpy(first, output);
	assert_int_equal(profile_ref("", "ref?units=8"), 0);
	assert_string_equal(output, first);
	write_file(file, sizeof(file), "halctl-profile", output);
	snprintf(args, sizeof(args), "-o hal.profile=%s info 'ref?units=8'", file);
	if (halctl(args) != 0)
		fail_msg("%s", output);
	snprintf(args, sizeof(args), "-o hal.profile=%s info ref", file);
	assert_int_equal(halctl(args), 1);
	expect("device: is a profile of ref \"software device, 8 units\" "
	       "(clock=virtual), "
	       "but this device is ref \"software device, 16 units\" (clock=virtual)");
	/* What is measured is not what one has measured before. */
	snprintf(args, sizeof(args), "-o hal.profile=%s profile 'ref?units=8' %s", file,
		 table);
	assert_int_equal(halctl(args), 0);
	assert_string_equal(output, first);
}

static void networks_by_name(void **state)
{
	yajl_val tree;

	(void)state;
	assert_int_equal(halctl("profile -r 1 'ref?units=4' distilbert vgg19-imagenet"),
			 0);
	tree = json();
	assert_int_equal(number(tree, "runs"), 1);
	assert_string_equal(text(at(tree, "programs", 0), "name"), "distilbert");
	assert_int_equal(length(at(tree, "programs", 1), "kernels"), 2);
	yajl_tree_free(tree);
	/* With one unit there are no halves. */
	assert_int_equal(halctl("profile 'ref?units=1' distilbert"), 0);
	tree = json();
	assert_int_equal(length(tree, "beside_permille"), 0);
	assert_null(strstr(output, "\"copies\""));
	yajl_tree_free(tree);
}

static void errors(void **state)
{
	char args[128];

	(void)state;
	assert_int_equal(halctl("profile ref /tmp/there/is/none.json"), 1);
	expect("/tmp/there/is/none.json: ");
	assert_int_equal(halctl("profile ref none"), 1);
	expect("none: there is no such network or file; networks are "
	       "vgg19-imagenet ");
	expect(" distilbert\n");
	assert_int_equal(halctl("profile ref /dev/null"), 1);
	expect("halctl: /dev/null: a network from a file runs on an NPU, such as npu:0, "
	       "not on "
	       "ref");
	write_file(file, sizeof(file), "halctl-profile",
		   "{\"models\": {\n\"a\": {\"steps\": [[1, 0, 1]]}}}");
	snprintf(args, sizeof(args), "profile ref %s", file);
	assert_int_equal(halctl(args), 1);
	expect(":2: models.a.steps[0][1]: is 0");
	write_file(file, sizeof(file), "halctl-profile", "{\"models\": {}}");
	snprintf(args, sizeof(args), "profile ref %s", file);
	assert_int_equal(halctl(args), 1);
	expect(": the file contains no network");
	assert_int_equal(halctl("profile nosuch distilbert"), 1);
	expect("nosuch");
	assert_int_equal(halctl("profile ref distilbert >/dev/full"), 1);
	expect("cannot write the output");
}

static void wrong_command_lines(void **state)
{
	static const char *const wrong[][2] = {
		{"profile", "no target"},
		{"profile ref", "no program"},
		{"profile -r 0 ref distilbert",
		 "--runs 0: it must be a number from 1 to 64"},
		{"profile -r x ref distilbert", "--runs x"},
		{"profile -r -1 ref distilbert", "--runs -1"},
		{"profile --tolerance 1001 ref distilbert", "--tolerance 1001"},
		{"--runs 2 list", "options of profile, not of list"},
		{"-t 2 options", "options of profile, not of options"},
		{"profile -m ref distilbert", "--markdown is an option of backends"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		if (halctl(wrong[i][0]) != 2)
			fail_msg("halctl %s: not 2\n%s", wrong[i][0], output);
		expect(wrong[i][1]);
	}
}

/* ---- the NPU -------------------------------------------------------------------------- */

static void digits_on_the_npu(void **state)
{
	yajl_val tree, first;
	char args[640];

	(void)state;
	snprintf(args, sizeof(args), "profile -r 1 '%s' %s", NPU_TARGET, DIGITS);
	if (halctl(args) != 0)
		fail_msg("%s", output);
	tree = json();
	assert_string_equal(text(at(tree, "programs", 0), "name"), "digits.tflite");
	first = kernel(tree, 0, 0);
	assert_int_equal(length(first, "shapes"), 9);
	assert_true(number(first, "work") > 0);
	assert_true(number(first, "bytes") > 0);
	/* More of the array is never slower by much, and copies cost something. */
	for (size_t i = 0; i < length(at(tree, "programs", 0), "kernels"); i++) {
		yajl_val k = kernel(tree, 0, i);

		assert_true(number(at(k, "units", 0), "ns") * 11 >=
			    number(at(k, "units", length(k, "units") - 1), "ns") * 10);
		assert_true(number(get(k, "copies"), "beside_ns") >=
			    number(get(k, "copies"), "alone_ns"));
		assert_true(length(k, "stops") >= 2);
	}
	assert_int_equal(length(tree, "beside_permille"), 2);
	yajl_tree_free(tree);
	write_file(file, sizeof(file), "halctl-profile", output);
	snprintf(args, sizeof(args), "-o hal.profile=%s info '%s'", file, NPU_TARGET);
	if (halctl(args) != 0)
		fail_msg("%s", output);
}

struct stopped {
	struct hal_stats effort;
	uint64_t took_ns; /* who it made way for */
};

static struct hal_point submit_layers(struct service *s, uint32_t first, uint32_t count)
{
	struct hal_submit_desc d = HAL_INIT(hal_submit_desc);
	struct hal_point done;

	d.cmds = s->cmds + first;
	d.cmd_count = count;
	if (hal_submit(s->queue, &d, &done) != 0)
		fail_msg("%s", hal_last_error());
	return done;
}

/* The second layer of the digits runs some 9,300 cycles on 4 x 4: after 4,000 cycles, of
 * which the first layer has had 900, the sixth comes on another queue. */
static struct stopped stopped_on_the_npu(const char *option)
{
	const char *const options[] = {option, NULL};
	struct hal_partition_desc pd = HAL_INIT(hal_partition_desc);
	struct hal_queue_desc qd = HAL_INIT(hal_queue_desc);
	const struct model digits = {.name = "digits", .network = DIGITS};
	struct stopped is = {HAL_INIT(hal_stats), 0};
	struct service effort, urgent;
	struct hal_partition *part;
	struct hal_device *dev;
	struct hal_point done;
	uint64_t at;

	if (hal_open(NPU_TARGET, options, &dev) != 0)
		fail_msg("%s", hal_last_error());
	pd.rows = 4;
	pd.cols = 4;
	assert_int_equal(hal_partition_create(dev, &pd, &part), 0);
	qd.service_class = HAL_CLASS_BEST_EFFORT;
	assert_int_equal(service_open(&effort, dev, part, &qd, &digits), 0);
	qd.service_class = HAL_CLASS_LATENCY;
	assert_int_equal(service_open(&urgent, dev, part, &qd, &digits), 0);
	/* Without a profile, too, it is known what they run, and nothing of FOLD or SAVE.
	 */
	for (int i = 0; i < 8; i++) {
		done = submit_layers(&effort, 1, 1);
		assert_int_equal(hal_wait(&done, 1, 0, HAL_FOREVER), 0);
	}
	(void)submit_layers(&effort, 0, effort.cmd_count);
	assert_true(hal_device_poll(dev, 4000) >= 0);
	at = hal_device_get_time(dev);
	done = submit_layers(&urgent, 5, 1);
	assert_int_equal(hal_wait(&done, 1, 0, HAL_FOREVER), 0);
	is.took_ns = hal_device_get_time(dev) - at;
	assert_true(hal_device_poll(dev, UINT64_MAX) >= 0);
	assert_int_equal(hal_queue_get_stats(effort.queue, &is.effort), 0);
	assert_int_equal(is.effort.completed, 8 + effort.cmd_count);
	assert_int_equal(is.effort.suspends, 1);
	assert_int_equal(service_close(&urgent), 0);
	assert_int_equal(service_close(&effort), 0);
	assert_int_equal(hal_partition_destroy(part), 0);
	assert_int_equal(hal_close(dev), 0);
	return is;
}

/* The engine tries FOLD without a profile, and chooses FOLD or SAVE by what a profile has
 * measured of the layer that runs: it loses less than KILL and waits less than DRAIN. */
static void stops_on_the_npu(void **state)
{
	struct stopped is;
	char option[96], args[640];

	(void)state;
	is = stopped_on_the_npu(NULL);
	assert_true(is.effort.saved_bytes > 0);
	assert_int_equal(is.effort.replayed_ns, 0);
	snprintf(args, sizeof(args), "profile -r 1 '%s' %s", NPU_TARGET, DIGITS);
	if (halctl(args) != 0)
		fail_msg("%s", output);
	write_file(file, sizeof(file), "halctl-profile", output);
	snprintf(option, sizeof(option), "hal.profile=%s", file);
	is = stopped_on_the_npu(option);
	assert_true(is.effort.saved_bytes >= 32);
	assert_int_equal(is.effort.replayed, 0);
	assert_true(is.took_ns < 3000);
}

static struct plugin_control *plugin_of(const char *path)
{
	void *lib = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
	struct plugin_control *c = lib != NULL ? dlsym(lib, "plugin_control") : NULL;

	assert_non_null(c);
	return c;
}

/* What a kernel was measured to run on half of the device. */
static uint64_t half_ns(yajl_val kernel)
{
	for (size_t i = 0; i < length(kernel, "units"); i++)
		if (number(at(kernel, "units", i), "units") == 8)
			return (uint64_t)number(at(kernel, "units", i), "ns");
	fail_msg("nothing of 8 units in\n%.2000s", output);
	return 0;
}

/* What a policy sees of a launch is what was measured of that kernel of that program. */
static void is_known(struct plugin_control *c, const struct npuc_run *run,
		     const char *launch, yajl_val tree, uint32_t program, size_t index)
{
	struct hal_submit_desc d = HAL_INIT(hal_submit_desc);
	yajl_val k = kernel(tree, program - 1, index);
	struct hal_point done;
	char why[NPUC_WHY];
	struct hal_cmd cmd;

	assert_string_equal(text(k, "name"), launch);
	assert_int_equal(npuc_run_command(run, launch, &cmd, why), 0);
	d.cmds = &cmd;
	d.cmd_count = 1;
	memset(&c->head, 0, sizeof(c->head));
	c->watched = c->last;
	assert_int_equal(hal_submit(npuc_run_queue(run), &d, &done), 0);
	assert_int_equal(hal_wait(&done, 1, 0, HAL_FOREVER), 0);
	assert_int_equal(c->head.program, program);
	assert_int_equal(c->head.expected_ns, half_ns(k));
	assert_int_equal(c->head.kind, strcmp(text(k, "class"), "array") == 0
					       ? HAL_POLICY_ARRAY
					       : HAL_POLICY_MEMORY);
	assert_true(c->head.sure_permille > 0);
}

/* Both images of a network are known again, to the last kernel: that of a kernel a layer,
 * and that which a program gets that asks for nothing. */
static void networks_are_known_again(void **state)
{
	const char *const options[] = {"hal.plugins=" PLUGIN_EXPECTS,
				       "policy.name=expects", NULL, NULL};
	struct hal_partition_desc pd = HAL_INIT(hal_partition_desc);
	const char *opened[sizeof(options) / sizeof(options[0])];
	char option[96], args[640], why[NPUC_WHY];
	struct hal_partition *part;
	struct hal_device *dev;
	yajl_val tree, beside;
	uint32_t sure;

	(void)state;
	snprintf(args, sizeof(args), "profile -r 4 '%s' %s", NPU_TARGET, DIGITS);
	if (halctl(args) != 0)
		fail_msg("%s", output);
	tree = json();
	write_file(file, sizeof(file), "halctl-profile", output);
	snprintf(option, sizeof(option), "hal.profile=%s", file);
	memcpy(opened, options, sizeof(options));
	opened[2] = option;
	if (hal_open(NPU_TARGET, opened, &dev) != 0)
		fail_msg("%s", hal_last_error());
	pd.rows = 4;
	pd.cols = 2;
	assert_int_equal(hal_partition_create(dev, &pd, &part), 0);
	for (uint32_t program = 1; program <= 2; program++) {
		const struct npuc_options compile = {.layers = program == 1};
		struct plugin_control *c = plugin_of(PLUGIN_EXPECTS);
		struct npuc_program network;
		size_t layers = length(at(tree, "programs", 0), "kernels") - 1;
		struct npuc_run *run;

		if (npuc_program_open(DIGITS, &compile, &network, why) != 0 ||
		    npuc_run_open(dev, part, &network, &run, why) != 0)
			fail_msg("%s", why);
		is_known(c, run, "run", tree, program, program == 1 ? layers : 0);
		if (program == 1)
			is_known(c, run, "layer1", tree, program, 1);
		assert_int_equal(npuc_run_close(run), 0);
		npuc_program_free(&network);
		/* Pairs are the network's, whatever the image. */
		beside = YAJL_GET_ARRAY(at(tree, "beside_permille", program - 1))
				 ->values[0];
		assert_true(c->host->beside(c->host->device, program, 1, &sure) ==
			    (uint64_t)YAJL_GET_INTEGER(beside));
		assert_int_equal(sure, 500);
	}
	assert_int_equal(hal_partition_destroy(part), 0);
	assert_int_equal(hal_close(dev), 0);
	yajl_tree_free(tree);
}

enum { REQUESTS = 8 };

struct pair {
	uint64_t learned, was; /* how much longer the digits take, in thousandths */
	uint32_t sure;
};

static uint64_t busy_ns(struct service *s)
{
	struct hal_stats stats = HAL_INIT(hal_stats);

	assert_int_equal(hal_queue_get_stats(s->queue, &stats), 0);
	return stats.busy_ns;
}

/* The digits on one half of the device, alone and then beside digits on the other. What
 * is learned is learned of both halves and of warm requests, so that is what it is
 * compared with. */
static struct pair learned_on_the_npu(const char *target, const char *profile)
{
	const char *const options[] = {"hal.plugins=" PLUGIN_EXPECTS,
				       "policy.name=expects", profile, NULL};
	const struct model digits = {.name = "digits", .network = DIGITS};
	struct hal_partition_desc pd = HAL_INIT(hal_partition_desc);
	struct hal_queue_desc qd = HAL_INIT(hal_queue_desc);
	const struct hal_policy_host *h;
	struct hal_partition *part[2];
	struct service service[2];
	struct hal_device *dev;
	uint64_t cold = 0, alone, beside;
	struct hal_point done, was[2] = {{0}};
	struct pair pair;

	if (hal_open(target, options, &dev) != 0)
		fail_msg("%s", hal_last_error());
	pd.rows = 4;
	pd.cols = 2;
	for (int i = 0; i < 2; i++) {
		pd.col = (uint16_t)(2 * i);
		assert_int_equal(hal_partition_create(dev, &pd, &part[i]), 0);
		assert_int_equal(service_open(&service[i], dev, part[i], &qd, &digits),
				 0);
	}
	h = plugin_of(PLUGIN_EXPECTS)->host;
	for (int i = 0; i <= REQUESTS; i++) {
		done = submit_layers(&service[0], 0, service[0].cmd_count);
		assert_int_equal(hal_wait(&done, 1, 0, HAL_FOREVER), 0);
		cold = cold != 0 ? cold : busy_ns(&service[0]);
	}
	assert_true(h->beside(h->device, 1, 1, NULL) == HAL_POLICY_NEVER);
	alone = busy_ns(&service[0]) - cold;
	for (int i = 0; i < 8 * REQUESTS; i++)
		for (int k = 0; k < 2; k++) {
			done = submit_layers(&service[k], 0, service[k].cmd_count);
			if (i > 0)
				assert_int_equal(hal_wait(&was[k], 1, 0, HAL_FOREVER), 0);
			was[k] = done;
		}
	assert_true(hal_device_poll(dev, UINT64_MAX) >= 0);
	beside = busy_ns(&service[0]) - cold - alone + busy_ns(&service[1]);
	beside /= 16;
	assert_true(beside > alone);
	pair.was = (beside - alone) * 1000 / alone;
	pair.learned = h->beside(h->device, 1, 1, &pair.sure);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(service_close(&service[i]), 0);
		assert_int_equal(hal_partition_destroy(part[i]), 0);
	}
	assert_int_equal(hal_close(dev), 0);
	return pair;
}

/* What halctl has printed, without pairs. */
static void without_pairs(char *out, size_t size)
{
	static const char pairs[] = "\"beside_permille\":";
	const char *end = strstr(output, pairs);

	assert_non_null(end);
	snprintf(out, size, "%.*s%s []}\n", (int)(end - output), output, pairs);
}

/* What two programs that share a memory channel cost each other is learned as it is, and
 * nearly as it was measured, of requests in other moments.  Of some four requests, so it
 * goes up and down with the layers that were the last: the short ones cost more. */
static void pairs_on_the_npu(void **state)
{
	static const char target[] = NPU_TARGET "&channels=1";
	static char profile[65536];
	char option[96], args[640];
	struct pair pair;
	uint64_t measured;
	yajl_val tree;

	(void)state;
	snprintf(args, sizeof(args), "profile -r 3 '%s' %s", target, DIGITS);
	if (halctl(args) != 0)
		fail_msg("%s", output);
	tree = json();
	measured = (uint64_t)YAJL_GET_INTEGER(
		YAJL_GET_ARRAY(at(tree, "beside_permille", 0))->values[0]);
	/* The other image is the same network. */
	assert_int_equal(length(tree, "beside_permille"), 2);
	for (size_t i = 0; i < 4; i++)
		assert_int_equal(
			YAJL_GET_INTEGER(
				YAJL_GET_ARRAY(at(tree, "beside_permille", i / 2))
					->values[i % 2]),
			measured);
	assert_string_equal(text(at(tree, "programs", 1), "name"), "digits.tflite run");
	without_pairs(profile, sizeof(profile));
	yajl_tree_free(tree);
	write_file(file, sizeof(file), "halctl-profile", profile);
	snprintf(option, sizeof(option), "hal.profile=%s", file);
	pair = learned_on_the_npu(target, option);
	assert_in_range(pair.learned, pair.was * 2 / 3, pair.was * 4 / 3);
	assert_in_range(pair.learned, measured / 2, measured * 2);
	assert_true(pair.sure > 900);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(times_by_units),
		cmocka_unit_test(least_within_tolerance),
		cmocka_unit_test(stops),
		cmocka_unit_test(rectangles),
		cmocka_unit_test(good_for_one_device),
		cmocka_unit_test(networks_by_name),
		cmocka_unit_test(errors),
		cmocka_unit_test(wrong_command_lines),
		cmocka_unit_test(digits_on_the_npu),
		cmocka_unit_test(stops_on_the_npu),
		cmocka_unit_test(networks_are_known_again),
		cmocka_unit_test(pairs_on_the_npu),
	};
	int rc = cmocka_run_group_tests(tests, NULL, NULL);

	(void)unlink(table);
	(void)unlink(file);
	return rc;
}

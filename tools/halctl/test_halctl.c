/* SPDX-License-Identifier: Apache-2.0 */
/* test_halctl.c - runs halctl as a user would: output, JSON, errors and exit statuses. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <yajl/yajl_tree.h>

#include "run.h"

static yajl_val json(void)
{
	char why[256];
	yajl_val tree = yajl_tree_parse(output, why, sizeof(why));

	if (!tree)
		fail_msg("not JSON: %s\n%s", why, output);
	return tree;
}

static yajl_val get(yajl_val v, const char *key)
{
	const char *path[] = {key, NULL};
	yajl_val found = yajl_tree_get(v, path, yajl_t_any);

	if (!found)
		fail_msg("no key %s in:\n%s", key, output);
	return found;
}

static const char *get_text(yajl_val v, const char *key)
{
	yajl_val found = get(v, key);

	if (!YAJL_IS_STRING(found)) {
		fail_msg("%s is no string in:\n%s", key, output);
		return "";
	}
	return found->u.string;
}

static void list_shows_every_device(void **state)
{
	(void)state;
	assert_int_equal(halctl("list"), 0);
	expect("TARGET");
	expect("ref:0");
}

static void list_json_has_targets_that_open(void **state)
{
	yajl_val tree, devices;

	(void)state;
	assert_int_equal(halctl("list --json"), 0);
	tree = json();
	devices = get(tree, "devices");
	assert_true(YAJL_IS_ARRAY(devices));
	assert_true(YAJL_GET_ARRAY(devices)->len > 0);
	for (size_t i = 0; i < YAJL_GET_ARRAY(devices)->len; i++) {
		char args[128];
		const char *target =
			get_text(YAJL_GET_ARRAY(devices)->values[i], "target");

		snprintf(args, sizeof(args), "info %s", target);
		if (halctl(args) != 0)
			fail_msg("%s: %s", args, output);
	}
	yajl_tree_free(tree);
}

static void info_text_names_the_promises(void **state)
{
	(void)state;
	assert_int_equal(halctl("info ref"), 0);
	expect("backend            ref (cpu)");
	expect("preemption ");
	expect("compute isolation ");
	expect("verified ");
	expect("each open          is a machine of its own");
	assert_null(strstr(output, "bus id"));
}

static void info_json_agrees_with_itself(void **state)
{
	yajl_val tree, caps, verified;

	(void)state;
	assert_int_equal(halctl("info --json ref"), 0);
	tree = json();
	assert_string_equal(get_text(tree, "backend"), "ref");
	assert_true(YAJL_GET_INTEGER(get(tree, "unit_cols")) > 0);
	caps = get(tree, "caps");
	verified = get(tree, "verified");
	assert_true(YAJL_GET_ARRAY(verified)->len <= YAJL_GET_ARRAY(caps)->len);
	yajl_tree_free(tree);
}

static void options_say_where_a_value_came_from(void **state)
{
	yajl_val tree;
	int found = 0;

	(void)state;
	assert_int_equal(halctl("options -j -o hal.device=ref"), 0);
	tree = json();
	for (size_t i = 0; i < YAJL_GET_ARRAY(tree)->len; i++) {
		yajl_val o = YAJL_GET_ARRAY(tree)->values[i];

		if (strcmp(get_text(o, "section"), "hal") == 0 &&
		    strcmp(get_text(o, "key"), "device") == 0) {
			assert_string_equal(get_text(o, "value"), "ref");
			assert_string_not_equal(get_text(o, "source"), "default");
			found++;
		}
	}
	assert_int_equal(found, 1);
	yajl_tree_free(tree);
}

/* The text is a hal.conf: reading it back changes no value. */
static void options_text_can_be_read_back(void **state)
{
	char path[] = "/tmp/halctl-conf-XXXXXX";
	char args[128];
	int fd = mkstemp(path);
	FILE *f;

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(halctl("options -o hal.device=ref"), 0);
	f = fdopen(fd, "w");
	assert_non_null(f);
	fputs(output, f);
	fclose(f);
	snprintf(args, sizeof(args), "options --config %s", path);
	if (halctl(args) != 0)
		fail_msg("%s", output);
	expect("device = ref");
	expect(path);
	unlink(path);
}

static void bad_config_is_named_with_its_line(void **state)
{
	char path[] = "/tmp/halctl-conf-XXXXXX";
	char args[128], where[64];
	int fd = mkstemp(path);

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(write(fd, "[hal]\nno_such = 1\n", 18), 18);
	close(fd);
	snprintf(args, sizeof(args), "options -c %s", path);
	assert_int_equal(halctl(args), 1);
	snprintf(where, sizeof(where), "%s:2", path);
	expect(where);
	expect("no_such");
	unlink(path);
}

static void missing_config_is_an_error(void **state)
{
	(void)state;
	assert_int_equal(halctl("options -c /nonexistent/hal.conf"), 1);
	expect("/nonexistent/hal.conf");
	assert_int_equal(halctl("info -c /nonexistent/hal.conf ref"), 1);
	expect("/nonexistent/hal.conf");
	assert_int_equal(halctl("-c /nonexistent/hal.conf list"), 1);
	expect("halctl: configuration /nonexistent/hal.conf: No such file");
	assert_int_equal(halctl("-c /nonexistent/hal.conf backends --markdown"), 1);
	expect("/nonexistent/hal.conf");
	assert_int_equal(halctl("-c / list"), 1);
	expect("halctl: configuration /: is a folder; name a file");
	/* It is the one that was named last. */
	setenv("HAL_HAL_CONFIG", "/dev/null", 1);
	assert_int_equal(halctl("-c /nonexistent/hal.conf list"), 1);
	unsetenv("HAL_HAL_CONFIG");
}

/* Good devices are shown, and the status says that something is wrong. */
static void bad_plugins_and_options_are_errors(void **state)
{
	(void)state;
	assert_int_equal(halctl("list -o hal.plugins=/nonexistent/x.so"), 1);
	expect("ref:0");
	expect("x          error: plugin /nonexistent/x.so: ");
	assert_int_equal(halctl("list -j -o hal.plugins=/nonexistent/x.so"), 1);
	expect("plugin /nonexistent/x.so: ");
	assert_int_equal(halctl("backends -o hal.plugins=/nonexistent/x.so"), 1);
	expect("error: plugin /nonexistent/x.so: ");
	assert_int_equal(halctl("backends -m -o hal.plugins=/nonexistent/x.so"), 1);
	expect("| `ref` |");
	assert_int_equal(halctl("list -o backend.ref.units=none"), 1);
	expect("ref        error: option: [backend.ref] units = \"none\"");
	assert_int_equal(halctl("list -o hall.device=ref"), 1);
	expect("no section [hall]");
	assert_int_equal(halctl("backends -o backend.ref.unitz=3"), 1);
	expect("unitz");
	setenv("HAL_BACKEND_REF_UNITZ", "3", 1);
	assert_int_equal(halctl("list"), 1);
	expect("environment HAL_BACKEND_REF_UNITZ: [backend.ref] has no option UNITZ");
	unsetenv("HAL_BACKEND_REF_UNITZ");
}

static void options_count_in_lists(void **state)
{
	(void)state;
	assert_int_equal(halctl("list -o backend.ref.devices=2"), 0);
	expect("ref:1");
	assert_int_equal(halctl("backends -o backend.ref.devices=2"), 0);
	expect("2 devices");
}

static void prefixes_stand_once(void **state)
{
	(void)state;
	assert_int_equal(halctl("info ref:7"), 1);
	assert_string_equal(output, "halctl: ref:7: there is 1 device\n");
	assert_int_equal(halctl("list -o backend.ref.devices=0"), 0);
	expect("ref        absent: ");
	assert_null(strstr(output, "absent: ref: "));
}

static void what_cannot_be_written_is_an_error(void **state)
{
	static const char *const commands[] = {
		"list",        "list -j",    "info ref",  "info -j ref",
		"options",     "options -j", "backends",  "backends -j",
		"backends -m", "--help",     "--version",
	};
	char args[128];

	(void)state;
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		snprintf(args, sizeof(args), "%s >/dev/full", commands[i]);
		if (halctl(args) != 1)
			fail_msg("halctl %s: not 1", args);
		expect("halctl: cannot write the output");
	}
	assert_int_equal(halctl("list >&-"), 1);
	expect("halctl: cannot write the output: Bad file descriptor");
}

static void unknown_device_is_an_error(void **state)
{
	(void)state;
	assert_int_equal(halctl("info nosuch:0"), 1);
	expect("halctl: target \"nosuch:0\": ");
	assert_int_equal(halctl("info 'ref?nosuch=1'"), 1);
	expect("nosuch");
}

static void backends_in_three_forms(void **state)
{
	yajl_val tree;

	(void)state;
	assert_int_equal(halctl("backends"), 0);
	expect("ref");
	assert_int_equal(halctl("backends --markdown"), 0);
	expect("| backend |");
	expect("| `ref` |");
	assert_int_equal(halctl("backends --json"), 0);
	tree = json();
	assert_true(YAJL_GET_ARRAY(tree)->len > 0);
	yajl_tree_free(tree);
}

static void wrong_command_lines_exit_2(void **state)
{
	static const char *const wrong[] = {
		"",         "nosuch",         "list ref",
		"info a b", "--nosuch list",  "list --markdown",
		"--config", "backends -j -m", "options ref",
		"replay",   "-c '' list",     "replay x -o hal.trace=t",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		if (halctl(wrong[i]) != 2)
			fail_msg("halctl %s: not 2\n%s", wrong[i], output);
		expect("try: halctl --help");
	}
	assert_int_equal(halctl(""), 2);
	expect("halctl: no command given; commands are list info ");
	assert_int_equal(halctl("infos ref"), 2);
	expect("halctl: no such command: infos; commands are list info ");
}

/* A journal without its last line is replayed, and is told from one that is whole. */
static void a_journal_cut_off_exits_1(void **state)
{
	static const char lines[] = "J hal-journal 1 ref:0\n"
				    "D 1 1 16 16 446 9 2 3 2 2 32 10000000000 0\n"
				    "Y fifo\nP 0 0 0 1 4\nE\n";
	char path[] = "/tmp/halctl-journal-XXXXXX", args[256];
	int fd = mkstemp(path);

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(write(fd, lines, sizeof(lines) - 1), sizeof(lines) - 1);
	snprintf(args, sizeof(args), "replay %s", path);
	assert_int_equal(halctl(args), 0);
	expect("mismatches  0");
	assert_int_equal(ftruncate(fd, sizeof(lines) - 1 - 5), 0);
	assert_int_equal(halctl(args), 1);
	expect("mismatches  0");
	expect(" ends in the middle of line 4, at byte 81,");
	snprintf(args, sizeof(args), "replay --json %s", path);
	assert_int_equal(halctl(args), 1);
	expect("\"missing\": \"");
	close(fd);
	unlink(path);
}

/* Texts come from anywhere; JSON is UTF-8. */
static void json_is_utf8(void **state)
{
	(void)state;
	assert_int_equal(halctl("options -j -o hal.journal=Ger\xc3\xa4t"), 0);
	yajl_tree_free(json());
	expect("Ger\xc3\xa4t");
	assert_int_equal(halctl("options -j -o hal.journal=Ger\xe4t"), 0);
	yajl_tree_free(json());
	expect("Ger\xef\xbf\xbdt");
}

static void help_and_version(void **state)
{
	(void)state;
	assert_int_equal(halctl("--help"), 0);
	expect("usage: halctl");
	assert_int_equal(halctl("-V"), 0);
	expect("halctl 0.3.0");
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(list_shows_every_device),
		cmocka_unit_test(list_json_has_targets_that_open),
		cmocka_unit_test(info_text_names_the_promises),
		cmocka_unit_test(info_json_agrees_with_itself),
		cmocka_unit_test(options_say_where_a_value_came_from),
		cmocka_unit_test(options_text_can_be_read_back),
		cmocka_unit_test(bad_config_is_named_with_its_line),
		cmocka_unit_test(missing_config_is_an_error),
		cmocka_unit_test(bad_plugins_and_options_are_errors),
		cmocka_unit_test(options_count_in_lists),
		cmocka_unit_test(prefixes_stand_once),
		cmocka_unit_test(what_cannot_be_written_is_an_error),
		cmocka_unit_test(unknown_device_is_an_error),
		cmocka_unit_test(backends_in_three_forms),
		cmocka_unit_test(wrong_command_lines_exit_2),
		cmocka_unit_test(a_journal_cut_off_exits_1),
		cmocka_unit_test(json_is_utf8),
		cmocka_unit_test(help_and_version),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Load files and tables of networks: what is wrong, with line and field; arrivals. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "load.h"
#include "models.h"

#define CLIENT "\"client\": {\"model_name\": \"m\", \"port\": 8001}"
/* Line 3 is the task's load. */
#define TASK(load)                                                                       \
	"{\"time\": 2, \"tasks\": [\n{\"id\": \"t\", " CLIENT ",\n\"load\": " load "}]}"

static struct load parsed(const char *text)
{
	struct load l;
	char why[JSON_WHY];

	if (load_parse(text, strlen(text), "dir/some.json", &l, why) != 0)
		fail_msg("%s", why);
	return l;
}

static void good(void **state)
{
	struct load l = parsed(
		"{\"time\": 60, \"tasks\": ["
		"{\"id\": \"a_rt\", " CLIENT ", \"load\": {\"type\": \"periodic\", "
		"\"priority\": 0, \"frequency\": 20.5}},"
		"{\"id\": \"b_be\", " CLIENT ", \"load\": {\"type\": \"continuous\"}},"
		"{\"id\": \"c\", " CLIENT ", \"load\": {\"type\": \"trace\", "
		"\"trace\": [30, 10.5, 20]}},"
		"{\"id\": \"d\", " CLIENT ", \"load\": {\"type\": \"continuous\"}},"
		"{\"id\": \"e\", " CLIENT ", \"class\": \"best-effort\", \"load\": "
		"{\"type\": \"dependent\", \"prev_task_ids\": [\"c\", \"a_rt\"]}},"
		"{\"id\": \"f\", " CLIENT ", \"class\": \"latency\", \"load\": "
		"{\"type\": \"continuous\", \"priority\": 3}}"
		"]}");

	(void)state;
	assert_string_equal(l.name, "some");
	assert_int_equal(l.count, 6);
	assert_true(l.seconds == 60);
	assert_true(l.tasks[0].frequency == 20.5);
	assert_true(l.tasks[0].staggered);
	assert_string_equal(l.tasks[1].model, "m");
	assert_true(l.tasks[2].trace_s[0] == 0.0105 && l.tasks[2].trace_s[2] == 0.03);
	assert_int_equal(l.tasks[4].after_count, 2);
	assert_int_equal(l.tasks[4].after[0], 2);
	assert_int_equal(l.tasks[4].after[1], 0);
	for (uint32_t i = 0; i < 6; i++)
		assert_int_equal(l.tasks[i].critical, i == 0 || i == 2 || i == 5);
	load_free(&l);
}

/* A byte order mark, as editors of Windows put it, is not part of the text. */
static void marked(void **state)
{
	struct load l = parsed("\xef\xbb\xbf" TASK("{\"type\": \"continuous\"}"));

	(void)state;
	assert_int_equal(l.count, 1);
	load_free(&l);
}

static void malformed(void **state)
{
	static const struct {
		const char *text, *why;
	} wrong[] = {
		{"", "f:1: the file is empty"},
		{"\xef\xbb\xbf", "f:1: the file ends in the middle"},
		{"\xff\xfe{", "f:1: the file is UTF-16"},
		{"{\"time\": 1,\n\"tas", "f:2: the file ends in the middle of its JSON"},
		{"\xef\xbb\xbf{\n\"tasks\": []}", "f:1: has no time"},
		{"{\"time\": 1,\n\n \"tasks\": [}", "f:3: "},
		{"[1]", "f:1: is not an object"},
		{"{\n\"tasks\": []}", "f:1: has no time"},
		{"{\"time\": 0, \"tasks\": []}", "f:1: time: is 0, not from"},
		{"{\"time\": \"1\"}", "f:1: time: is a text, not a number"},
		{"{\"time\": 1,\n\"tasks\": {}}", "f:2: tasks: is an object, not a list"},
		{"{\"time\": 1,\n\"tasks\": []}", "f:2: tasks: has 0 tasks"},
		{"{\"time\": 1,\n\"tasks\": [3]}", "f:2: tasks[0]: is not an object"},
		{"{\"time\": 1,\n\"time\": 2}", "f:2: time: appears twice"},
		{"{\"time\": 1, \"tasks\": [],\n\"tsaks\": 1}",
		 "f:2: tsaks: is an unknown key"},
		{"{\"time\": 1, \"tasks\": [\n{\"client\": {}}]}",
		 "f:2: tasks[0]: has no id"},
		{"{\"time\": 1, \"tasks\": [\n{\"id\": \"\"}]}", "tasks[0].id: is empty"},
		{"{\"time\": 1, \"tasks\": [{\"id\": \"t\",\n\"client\": {}}]}",
		 "f:2: tasks[0].client: has no model_name"},
		{"{\"time\": 1, \"tasks\": [{\"id\": \"t\", " CLIENT "}]}",
		 "f:1: tasks[0]: has no load"},
		{TASK("{}"), "f:3: tasks[0].load: has no type"},
		{TASK("{\"type\": 4}"),
		 "f:3: tasks[0].load.type: is a number, not a text"},
		{TASK("{\"type\":\n\"often\"}"),
		 "f:4: tasks[0].load.type: is \"often\"; it must be "},
		{TASK("{\"type\": \"continuous\",\n\"freqency\": 3}"),
		 "f:4: tasks[0].load.freqency: is an unknown key"},
		{TASK("{\"type\": \"periodic\"}"),
		 "f:3: tasks[0].load: has no frequency"},
		{TASK("{\"type\": \"poisson\",\n\"frequency\": -3}"),
		 "f:4: tasks[0].load.frequency: is -3, not from"},
		{TASK("{\"type\": \"poisson\", \"frequency\": 1e999}"),
		 "tasks[0].load.frequency: is inf, not from"},
		{TASK("{\"type\": \"trace\"}"), "has no trace"},
		{TASK("{\"type\": \"trace\", \"trace\": [1,\n\n-2]}"),
		 "f:5: tasks[0].load.trace[1]: is -2, not from"},
		{TASK("{\"type\": \"trace\", \"trace\": [\"1\"]}"),
		 "tasks[0].load.trace[0]: is a text, not a number"},
		{TASK("{\"type\": \"dependent\", \"prev_task_ids\": []}"),
		 "tasks[0].load.prev_task_ids: names no task"},
		{TASK("{\"type\": \"dependent\", \"prev_task_ids\": [\"t\"]}"),
		 "tasks[0].load.prev_task_ids[0]: names \"t\", which is not a task "
		 "before"},
		{TASK("{\"type\": \"bursts\", \"frequency\": 1, \"on_ms\": 1}"),
		 "has no off_ms"},
		{TASK("{\"type\": \"diurnal\", \"frequency\": 1, \"period_s\": 1, "
		      "\"swing\": 1.5}"),
		 "tasks[0].load.swing: is 1.5, not from 0 to 1"},
		{TASK("{\"type\": \"continuous\"}, \"class\": \"gold\""),
		 "f:3: tasks[0].class: is \"gold\"; it must be latency or best-effort"},
		{"{\"time\": 1, \"tasks\": [{\"id\": \"t\", " CLIENT
		 ", \"load\": {\"type\": \"continuous\"}},\n{\"id\": \"t\"}]}",
		 "f:2: tasks[1].id: is already the id of tasks[0], \"t\""},
	};
	char why[JSON_WHY];
	struct load l;

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		if (load_parse(wrong[i].text, strlen(wrong[i].text), "f", &l, why) == 0)
			fail_msg("is taken: %s", wrong[i].text);
		if (strstr(why, wrong[i].why) == NULL)
			fail_msg("%s\nsays: %s\nnot:  %s", wrong[i].text, why,
				 wrong[i].why);
	}
	assert_int_equal(load_read("/nonexistent.json", &l, why), -1);
	assert_non_null(strstr(why, "/nonexistent.json: "));
}

/* Each beginning of a good file is refused, and harms nobody. */
static void cut(void **state)
{
	static const char text[] = TASK("{\"type\": \"trace\", \"trace\": [1, 2]}");
	char why[JSON_WHY];
	struct load l;

	(void)state;
	for (size_t n = 0; n < sizeof(text) - 1; n++)
		assert_int_equal(load_parse(text, n, "f", &l, why), -1);
	l = parsed(text);
	load_free(&l);
}

static void deep(void **state)
{
	char text[200], why[JSON_WHY];
	struct load l;

	(void)state;
	memset(text, '[', sizeof(text));
	assert_int_equal(load_parse(text, sizeof(text), "f", &l, why), -1);
	assert_non_null(strstr(why, "64 deep"));
}

static void models(void **state)
{
	static const struct {
		const char *text, *why;
	} wrong[] = {
		{"{}", "f:1: has no models"},
		{"{\"models\": {\n\"a\": 3}}", "f:2: models.a: is not an object"},
		{"{\"models\": {\"a\": {}}}", "models.a: has no steps"},
		{"{\"models\": {\"a\": {\"steps\": []}}}", "models.a.steps: has 0 steps"},
		{"{\"models\": {\"a\": {\"steps\": [\n[1, 2]]}}}",
		 "f:2: models.a.steps[0]: is not [LAUNCHES"},
		{"{\"models\": {\"a\": {\"steps\": [[1, 2, 3], [1.5, 2, 3]]}}}",
		 "models.a.steps[1][0]: is not a whole number"},
		{"{\"models\": {\"a\": {\"steps\": [[1, 0, 3]]}}}",
		 "models.a.steps[0][1]: is 0, not from"},
		{"{\"models\": {\"a\": {\"steps\": [[2000, 1, 3], [2000, 1, 3]]}}}",
		 "models.a.steps: has 4000 launches"},
		{"{\"models\": {\"a\": {\"steps\": [[1, 2, 3]], \"network\": \"x\"}}}",
		 "models.a: has both steps and a network"},
	};
	static const char more[] = "{\"models\": {\"distilbert\": {\"steps\": [[7, 2.5, "
				   "3]]}, \"net\": {\"network\": \"n.tflite\"}}}";
	char why[JSON_WHY];
	struct models m;

	(void)state;
	if (models_own(&m, why) != 0)
		fail_msg("%s", why);
	assert_int_equal(models_find(&m, "distilbert")->steps[0].launches, 42);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		if (models_parse(wrong[i].text, strlen(wrong[i].text), "f", &m, why) == 0)
			fail_msg("is taken: %s", wrong[i].text);
		if (strstr(why, wrong[i].why) == NULL)
			fail_msg("%s\nsays: %s\nnot:  %s", wrong[i].text, why,
				 wrong[i].why);
	}
	assert_int_equal(models_parse(more, sizeof(more) - 1, "dir/f", &m, why), 0);
	assert_int_equal(models_find(&m, "distilbert")->steps[0].launches, 7);
	assert_string_equal(models_find(&m, "net")->network, "dir/n.tflite");
	assert_null(models_find(&m, "none"));
	models_free(&m);
}

/* ---- arrivals ----------------------------------------------------------------------- */

static uint32_t arrivals(const char *text, struct load_clock c, uint64_t begin,
			 uint64_t **out)
{
	struct load l = parsed(text);
	char why[JSON_WHY];
	uint32_t count;

	if (load_arrivals(&l, 0, &c, begin, out, &count, why) != 0)
		fail_msg("%s", why);
	for (uint32_t i = 0; i < count; i++)
		assert_true((*out)[i] < load_window_ns(&c) &&
			    (i == 0 || (*out)[i] >= (*out)[i - 1]));
	load_free(&l);
	return count;
}

static void exact(void **state)
{
	struct load_clock c = {.window_s = 2, .rate = 1, .scale = 1, .seed = 1};
	uint64_t *ns;

	(void)state;
	assert_int_equal(
		arrivals(TASK("{\"type\": \"periodic\", \"frequency\": 3}"), c, 7, &ns),
		6);
	assert_int_equal(ns[0], 7);
	assert_int_equal(ns[1], 333333340);
	assert_int_equal(ns[5], 1666666674);
	free(ns);
	/* The third at 2 s comes too late; at half the rate all times are twice. */
	assert_int_equal(
		arrivals(TASK("{\"type\": \"trace\", \"trace\": [2000, 5, 1999.5]}"), c,
			 0, &ns),
		2);
	assert_int_equal(ns[1], 1999500000);
	free(ns);
	c.rate = 0.5;
	c.scale = 0.001;
	assert_int_equal(load_window_ns(&c), 4000000);
	assert_int_equal(
		arrivals(TASK("{\"type\": \"trace\", \"trace\": [2000, 5, 1999.5]}"), c,
			 0, &ns),
		2);
	assert_int_equal(ns[0], 10000);
	free(ns);
	assert_int_equal(arrivals(TASK("{\"type\": \"continuous\"}"), c, 0, &ns), 0);
	free(ns);
}

/* 4000 of them are expected: 5 % are three deviations. */
static void random_ones(void **state)
{
	static const char poisson[] =
		TASK("{\"type\": \"poisson\", \"frequency\": 2000}");
	static const char swings[] =
		TASK("{\"type\": \"diurnal\", \"frequency\": 2000, \"period_s\": 2, "
		     "\"swing\": 0.8}");
	static const char bursts[] =
		TASK("{\"type\": \"bursts\", \"frequency\": 8000, \"on_ms\": 1, "
		     "\"off_ms\": 3}");
	struct load_clock c = {.window_s = 2, .rate = 1, .scale = 1, .seed = 7};
	uint64_t *a, *b;
	uint32_t n, first = 0, close = 0;

	(void)state;
	n = arrivals(poisson, c, 0, &a);
	assert_in_range(n, 3800, 4200);
	assert_int_equal(arrivals(poisson, c, 0, &b), n);
	assert_memory_equal(a, b, n * sizeof(*a));
	free(b);
	c.seed = 8;
	(void)arrivals(poisson, c, 0, &b);
	assert_memory_not_equal(a, b, 100 * sizeof(*a));
	free(a);
	free(b);
	/* The first half of the period has 1 + 0.8 * 2 / pi of the mean. */
	n = arrivals(swings, c, 0, &a);
	assert_in_range(n, 3800, 4200);
	while (first < n && a[first] < 1000000000)
		first++;
	assert_in_range(first, 2000 * 1.43, 2000 * 1.59);
	free(a);
	/* A quarter of the time; of Poisson at the mean rate 18 % would be as close. */
	n = arrivals(bursts, c, 0, &a);
	assert_in_range(n, 3200, 4800);
	for (uint32_t i = 1; i < n; i++)
		close += a[i] - a[i - 1] < 100000;
	assert_true(close > n / 2);
	free(a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(good),   cmocka_unit_test(malformed),
		cmocka_unit_test(marked), cmocka_unit_test(cut),
		cmocka_unit_test(deep),   cmocka_unit_test(models),
		cmocka_unit_test(exact),  cmocka_unit_test(random_ones),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

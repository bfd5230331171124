/* SPDX-License-Identifier: Apache-2.0 */
/* The bars of "Units by owner": the unit-time that is drawn is the unit-time that there
 * was, of each owner, whatever the length of the window. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "chart.h"

enum { UNITS = 16, PARTS = 2, TASKS = 3, REQUESTS = 50, BORDERS = 40, LAYERS = 5 };

/* Whose the layers are, from the ground up: the tasks of a partition, what is idle. */
static const uint32_t owners[LAYERS] = {0, CANVAS_IDLE, 1, 2, CANVAS_IDLE};
static const uint32_t part_of_layer[LAYERS] = {0, 0, 1, 1, 1};

/* What was drawn: layers from the ground up, as heights in units. */
struct bars {
	double height[LAYERS][CHART_BINS];
	uint32_t colour[LAYERS];
	uint32_t count;
};

static struct bars bars;

static void steps(struct canvas *c, uint32_t i, double x0, double x1, double base,
		  const double *y, uint32_t count)
{
	uint32_t layer = LAYERS - 1 - bars.count;

	(void)c, (void)x0, (void)x1;
	assert_true(bars.count++ < LAYERS);
	assert_int_equal(count, CHART_BINS);
	bars.colour[layer] = i;
	for (uint32_t k = 0; k < count; k++)
		bars.height[layer][k] = (base - y[k]) / CHART_BAND * UNITS;
}

static void ground(struct canvas *c, double x, double y, double width, double height)
{
	(void)c, (void)x, (void)y, (void)width, (void)height;
}

/* The unit-time of a layer: of each bin what it is higher than the layer below. */
static double drawn(uint32_t layer, double window)
{
	double sum = 0;

	for (uint32_t k = 0; k < CHART_BINS; k++)
		sum += bars.height[layer][k] -
		       (layer != 0 ? bars.height[layer - 1][k] : 0);
	return sum * window / CHART_BINS;
}

struct scene {
	struct load_task tasks[TASKS];
	struct load load;
	struct setup setup;
	struct request requests[TASKS][REQUESTS];
	struct task_run runs[TASKS];
	uint32_t parts[TASKS];
	struct border borders[BORDERS];
	struct run run;
	double tasks_had[TASKS], parts_had[PARTS];
};

/* One request after the other, each served by one unit; the last ends after the window.
 */
static void fill_task(struct scene *s, uint32_t task, uint64_t window)
{
	uint64_t each = window / REQUESTS + 1, at = 0;

	for (uint32_t k = 0; k < REQUESTS; k++) {
		uint64_t from = at + (k + task) % 3 * (each / 7), end = from + each;

		s->requests[task][k] = (struct request){from, end};
		at = end;
		if (from < window)
			s->tasks_had[task] +=
				(double)((end < window ? end : window) - from);
	}
	s->runs[task] = (struct task_run){s->requests[task], REQUESTS, each};
}

/* The border between both partitions moves: one has 4 to 11 units, the other the rest. */
static void fill_borders(struct scene *s, uint64_t window)
{
	for (uint32_t k = 0; k < BORDERS / PARTS; k++) {
		uint64_t at = window / (BORDERS / PARTS) * k, next;
		uint32_t units = 4 + k * 5 % 8;

		next = k + 1 == BORDERS / PARTS ? window
						: window / (BORDERS / PARTS) * (k + 1);
		s->borders[2 * k] = (struct border){at, 0, units};
		s->borders[2 * k + 1] = (struct border){at, 1, UNITS - units};
		s->parts_had[0] += (double)units * (double)(next - at);
		s->parts_had[1] += (double)(UNITS - units) * (double)(next - at);
	}
}

static void scene_fill(struct scene *s, uint64_t window)
{
	memset(s, 0, sizeof(*s));
	for (uint32_t i = 0; i < TASKS; i++)
		fill_task(s, i, window);
	fill_borders(s, window);
	s->parts[1] = s->parts[2] = 1;
	s->load.tasks = s->tasks;
	s->load.count = TASKS;
	s->setup.load = &s->load;
	s->run.tasks = s->runs;
	s->run.parts = s->parts;
	s->run.part_count = PARTS;
	s->run.borders = s->borders;
	s->run.border_count = BORDERS;
	s->run.window_ns = window;
}

static void same(uint64_t window, const char *whose, uint32_t i, double have, double want)
{
	if (fabs(have - want) > 1e-9 * UNITS * (double)window)
		fail_msg(
			"window of %llu ns, %s %u: %.17g unit-ns are drawn, it had %.17g",
			(unsigned long long)window, whose, i, have, want);
}

/* Draw the bars of a window, and compare them with what was put in. */
static void check(uint64_t window)
{
	const uint64_t slo_ns[TASKS] = {0};
	struct canvas canvas = {.steps = steps, .ground = ground};
	double parts[PARTS] = {0};
	struct report report = {0};
	struct shown shown;
	struct scene s;

	scene_fill(&s, window);
	assert_int_equal(shown_take(&s.setup, &s.run, slo_ns, &shown), 0);
	report.setup = &s.setup;
	report.info.unit_rows = 1;
	report.info.unit_cols = UNITS;
	memset(&bars, 0, sizeof(bars));
	assert_int_equal(chart_units(&canvas, &report, &shown, 7), 0);
	shown_free(&shown);
	assert_int_equal(bars.count, LAYERS);
	for (uint32_t i = 0; i < LAYERS; i++) {
		double had = drawn(i, (double)window);

		assert_int_equal(bars.colour[i], owners[i]);
		if (owners[i] != CANVAS_IDLE)
			same(window, "task", owners[i], had, s.tasks_had[owners[i]]);
		parts[part_of_layer[i]] += had;
	}
	for (uint32_t p = 0; p < PARTS; p++)
		same(window, "partition", p, parts[p], s.parts_had[p]);
}

/* Whole bins, bins that are no number of nanoseconds, and less than one for each bin. */
static void windows(void **state)
{
	static const uint64_t some[] = {5000000000, 10000000000, 1,
					7,          119,         120,
					121,        1000,        1000007,
					123456789,  60000000000, 999999999999999};

	(void)state;
	for (size_t i = 0; i < sizeof(some) / sizeof(some[0]); i++)
		check(some[i]);
	for (uint64_t ms = 1; ms <= 1000; ms++)
		check(ms * 1000000);
	for (uint64_t s = 1; s <= 100; s++)
		check(s * 1000000000 + s % 7);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(windows)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

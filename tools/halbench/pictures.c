/* SPDX-License-Identifier: Apache-2.0 */
/* pictures.c - the charts of comparisons as PNG files; see page.h. */
#include "page.h"

#include <stdio.h>

#include "tool.h"

#define PATH_BYTES 4096u
#define COLUMNS    4u
#define ROW        16.0
#define HEAD       22.0

/* Beneath a chart: names of lines, or of tasks and of what is idle. */
static double legend_height(uint32_t count)
{
	uint32_t rows = (count + COLUMNS - 1) / COLUMNS;

	return ROW * rows + 8;
}

static const char *name_of(const struct report *r, uint32_t policy)
{
	return r->list[policy].ran ? r->list[policy].policy->text : "(refused)";
}

static void legend(struct canvas *c, const struct comparison *k, bool tasks, double y)
{
	const struct load *l = k->setup.load;
	uint32_t count = tasks ? l->count + 1 : k->report.count;

	for (uint32_t i = 0; i < count; i++) {
		double x = 12 + (CHART_WIDTH - 12) / COLUMNS * (i % COLUMNS);
		uint32_t row = i / COLUMNS;
		double at = y + ROW * row + 8;
		const double xy[] = {x, at, x + 30, at}, top = at - 5;
		const char *name = "idle, of a partition";

		if (tasks)
			(c->steps)(c, i < l->count ? i : CANVAS_IDLE, x + 10, x + 24,
				   at + 5, &top, 1);
		else
			(c->line)(c, "key", i, xy, 2);
		if (!tasks)
			name = name_of(&k->report, i);
		else if (i < l->count)
			name = l->tasks[i].id;
		(c->text)(c, x + 36, at + 4, ANCHOR_START, name);
	}
}

static int end(struct canvas *c, const struct comparison *k, const char *prefix,
	       const char *what)
{
	char path[PATH_BYTES];

	snprintf(path, sizeof(path), "%s-%s-%g-%s.png", prefix, k->setup.load->name,
		 k->setup.clock.rate, what);
	return canvas_png_end(c, path);
}

static int lines(const struct comparison *k, const char *prefix, bool sweep)
{
	double height = CHART_HEIGHT + legend_height(k->report.count);
	struct canvas c;

	if (canvas_png_begin(&c, CHART_WIDTH, height) != 0)
		return TOOL_FAILED;
	if (sweep)
		chart_attainment(&c, &k->report, &k->sweep);
	else
		chart_latencies(&c, &k->report, k->shown);
	legend(&c, k, false, CHART_HEIGHT);
	return end(&c, k, prefix, sweep ? "attainment" : "latency");
}

static int units(const struct comparison *k, const char *prefix)
{
	double band = CHART_BAND + HEAD;
	double height = band * k->report.count, all;
	struct canvas c;
	int rc = 0;

	all = height + legend_height(k->setup.load->count + 1);
	if (canvas_png_begin(&c, CHART_WIDTH, all) != 0)
		return TOOL_FAILED;
	for (uint32_t i = 0; rc == 0 && i < k->report.count; i++) {
		(c.text)(&c, 56, band * i + 16, ANCHOR_START, name_of(&k->report, i));
		if (k->report.list[i].ran)
			rc = chart_units(&c, &k->report, &k->shown[i], band * i + HEAD);
	}
	legend(&c, k, true, height);
	return end(&c, k, prefix, "units") != 0 ? TOOL_FAILED : rc;
}

int pictures_write(const struct comparison *list, uint32_t count, const char *prefix)
{
	for (uint32_t i = 0; i < count; i++) {
		if (lines(&list[i], prefix, false) != 0 || units(&list[i], prefix) != 0)
			return TOOL_FAILED;
		if (list[i].sweep.count != 0 && lines(&list[i], prefix, true) != 0)
			return TOOL_FAILED;
	}
	return 0;
}

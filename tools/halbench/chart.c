/* SPDX-License-Identifier: Apache-2.0 */
/* chart.c - latencies, attainment against load, units by task over time; see chart.h. */
#include "chart.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tool.h"

#define LEFT   56.0
#define BOTTOM 36.0
#define TOP    10.0
#define RIGHT  16.0
#define TIMES  64.0 /* latencies are drawn from 1/64 of the SLO to 64 times it */

/* ---- what is shown ------------------------------------------------------------------ */

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static int take_quantiles(const struct setup *s, const struct run *r,
			  const uint64_t *slo_ns, struct shown *out)
{
	size_t count = 0, room = 1;
	double *ratios;

	for (uint32_t i = 0; i < s->load->count; i++)
		room += r->tasks[i].count;
	ratios = calloc(room, sizeof(*ratios));
	if (ratios == NULL)
		return tool_fail("out of memory");
	for (uint32_t i = 0; i < s->load->count; i++)
		for (uint32_t k = 0; k < r->tasks[i].count; k++)
			if (s->load->tasks[i].critical && slo_ns[i] != 0)
				ratios[count++] =
					(double)(r->tasks[i].requests[k].end_ns -
						 r->tasks[i].requests[k].arrive_ns) /
					(double)slo_ns[i];
	qsort(ratios, count, sizeof(*ratios), by_size);
	out->critical = count != 0;
	for (uint32_t k = 0; k <= CHART_QUANTILES && count != 0; k++) {
		size_t rank = (count * k + CHART_QUANTILES - 1) / CHART_QUANTILES;

		out->quantiles[k] = ratios[rank != 0 ? rank - 1 : 0];
	}
	free(ratios);
	return 0;
}

/* Add units that were there from then to then.  Bins are counted, and not looked for by
 * time: the border of a bin over its width may be rounded down to the bin before it. */
static void add_units(double *bins, double width, double from, double to, double units)
{
	if (from >= CHART_BINS * width)
		return;
	for (uint32_t bin = (uint32_t)(from / width); bin < CHART_BINS && from < to;
	     bin++) {
		double end = fmin(to, (bin + 1) * width);

		if (end <= from)
			continue;
		bins[bin] += units * (end - from) / width;
		from = end;
	}
}

/* Requests of a task are served in order: the work of each lies between its arrival or
 * the end of the one before it, and its own end. */
static void take_units(const struct task_run *t, double width, double *bins)
{
	uint64_t before = 0;

	for (uint32_t k = 0; k < t->count; k++) {
		const struct request *q = &t->requests[k];
		uint64_t from = q->arrive_ns > before ? q->arrive_ns : before;

		if (q->end_ns > from)
			add_units(bins, width, (double)from, (double)q->end_ns,
				  (double)t->work / (double)(q->end_ns - from));
		before = q->end_ns;
	}
}

/* From one border to the next, of that partition. */
static void take_borders(const struct run *r, uint32_t part, double width, double *bins)
{
	uint64_t from = 0;
	uint32_t units = 0;

	for (uint32_t k = 0; k < r->border_count; k++) {
		const struct border *b = &r->borders[k];

		if (b->part != part)
			continue;
		add_units(bins, width, (double)from, (double)b->at_ns, units);
		from = b->at_ns;
		units = b->units;
	}
	add_units(bins, width, (double)from, (double)r->window_ns, units);
}

int shown_take(const struct setup *s, const struct run *r, const uint64_t *slo_ns,
	       struct shown *out)
{
	double width = (double)r->window_ns / CHART_BINS;

	memset(out, 0, sizeof(*out));
	out->units = calloc((size_t)s->load->count * CHART_BINS, sizeof(*out->units));
	out->owned = calloc((size_t)r->part_count * CHART_BINS, sizeof(*out->owned));
	out->parts = calloc(s->load->count, sizeof(*out->parts));
	if (out->units == NULL || out->owned == NULL || out->parts == NULL)
		return tool_fail("out of memory");
	out->part_count = r->part_count;
	memcpy(out->parts, r->parts, s->load->count * sizeof(*out->parts));
	for (uint32_t i = 0; i < r->part_count; i++)
		take_borders(r, i, width, out->owned + (size_t)i * CHART_BINS);
	for (uint32_t i = 0; i < s->load->count; i++)
		take_units(&r->tasks[i], width, out->units + (size_t)i * CHART_BINS);
	return take_quantiles(s, r, slo_ns, out);
}

void shown_free(struct shown *s)
{
	free(s->units);
	free(s->owned);
	free(s->parts);
	s->units = NULL;
	s->owned = NULL;
	s->parts = NULL;
}

/* ---- axes --------------------------------------------------------------------------- */

static double across(double share)
{
	return LEFT + share * (CHART_WIDTH - LEFT - RIGHT);
}

static double up(double share)
{
	return TOP + (1 - share) * (CHART_HEIGHT - TOP - BOTTOM);
}

/* Shares of 0 to 100 % upwards. */
static void grid(struct canvas *c)
{
	static const char *const labels[] = {"0 %", "25 %", "50 %", "75 %", "100 %"};

	for (int i = 0; i <= 4; i++) {
		(c->rule)(c, across(0), up(i / 4.0), across(1), up(i / 4.0));
		(c->text)(c, across(0) - 6, up(i / 4.0) + 4, ANCHOR_END, labels[i]);
	}
}

static void tick(struct canvas *c, double share, const char *label)
{
	(c->rule)(c, across(share), up(1), across(share), up(0));
	(c->text)(c, across(share), CHART_HEIGHT - BOTTOM + 16, ANCHOR_MIDDLE, label);
}

/* ---- the charts --------------------------------------------------------------------- */

/* From 1 / TIMES to TIMES, by logarithm. */
static double share_of_ratio(double ratio)
{
	double share = 0.5 + 0.5 * log(fmax(ratio, 1e-9)) / log(TIMES);

	return fmin(1, fmax(0, share));
}

void chart_latencies(struct canvas *c, const struct report *r, const struct shown *shown)
{
	static const double at[] = {1.0 / 64, 1.0 / 16, 1.0 / 4, 1, 4, 16, 64};
	static const char *const labels[] = {"1/64", "1/16", "1/4", "SLO",
					     "4 x",  "16 x", "64 x"};
	double xy[2 * (CHART_QUANTILES + 1)];

	grid(c);
	for (size_t i = 0; i < sizeof(at) / sizeof(at[0]); i++)
		tick(c, share_of_ratio(at[i]), labels[i]);
	for (uint32_t i = 0; i < r->count; i++) {
		if (!shown[i].critical)
			continue;
		for (size_t k = 0; k <= CHART_QUANTILES; k++) {
			xy[2 * k] = across(share_of_ratio(shown[i].quantiles[k]));
			xy[2 * k + 1] = up((double)k / CHART_QUANTILES);
		}
		(c->line)(c, "cdf", i, xy, CHART_QUANTILES + 1);
	}
}

void chart_attainment(struct canvas *c, const struct report *r, const struct sweep *s)
{
	double most = s->rates[s->count - 1], xy[2 * CHART_RATES_MAX];
	char label[32];

	grid(c);
	for (uint32_t k = 0; k < s->count; k++) {
		snprintf(label, sizeof(label), "%.4g", s->rates[k]);
		tick(c, s->rates[k] / most, label);
	}
	for (uint32_t i = 0; i < r->count; i++) {
		size_t n = 0;

		for (uint32_t k = 0; k < s->count; k++) {
			double slo = s->slo[(size_t)i * s->count + k];

			if (isnan(slo))
				continue;
			xy[2 * n] = across(s->rates[k] / most);
			xy[2 * n++ + 1] = up(slo);
		}
		if (n != 0)
			(c->line)(c, "attainment", i, xy, (uint32_t)n);
	}
}

/* Of a bin: from base on, count tasks of the partition upon each other, no higher than
 * what it has; then the rest of that. */
static uint32_t stack(const struct shown *shown, uint32_t tasks, uint32_t part,
		      uint32_t bin, double base, double *tops)
{
	double has = base + shown->owned[(size_t)part * CHART_BINS + bin], at = base;
	uint32_t n = 0;

	for (uint32_t k = 0; k < tasks; k++) {
		if (shown->parts[k] != part)
			continue;
		at = fmin(has, at + shown->units[(size_t)k * CHART_BINS + bin]);
		tops[(size_t)n++ * CHART_BINS] = at;
	}
	tops[(size_t)n++ * CHART_BINS] = has;
	return n;
}

/* Colours in the order of stack(). */
static void colour_layers(const struct shown *shown, uint32_t tasks, uint32_t *colours)
{
	for (uint32_t p = 0; p < shown->part_count; p++) {
		for (uint32_t k = 0; k < tasks; k++)
			if (shown->parts[k] == p)
				*colours++ = k;
		*colours++ = CANVAS_IDLE;
	}
}

/* The highest layer is drawn first, down to the ground. */
int chart_units(struct canvas *c, const struct report *r, const struct shown *shown,
		double y)
{
	const struct hal_device_info *info = &r->info;
	double all = (double)info->unit_rows * info->unit_cols;
	uint32_t tasks = r->setup->load->count, layers = tasks + shown->part_count;
	double *tops = calloc((size_t)layers * CHART_BINS, sizeof(*tops));
	uint32_t *colours = calloc(layers, sizeof(*colours));

	if (tops == NULL || colours == NULL) {
		free(tops);
		free(colours);
		return tool_fail("out of memory");
	}
	for (uint32_t b = 0; b < CHART_BINS; b++) {
		double base = 0, *at = tops + b;

		for (uint32_t p = 0; p < shown->part_count; p++) {
			at += (size_t)stack(shown, tasks, p, b, base, at) * CHART_BINS;
			base += shown->owned[(size_t)p * CHART_BINS + b];
		}
	}
	for (size_t i = 0; i < (size_t)layers * CHART_BINS; i++)
		tops[i] = y + CHART_BAND * (1 - fmin(1, tops[i] / all));
	colour_layers(shown, tasks, colours);
	(c->ground)(c, across(0), y, across(1) - across(0), CHART_BAND);
	for (uint32_t k = layers; k-- > 0;)
		(c->steps)(c, colours[k], across(0), across(1), y + CHART_BAND,
			   tops + (size_t)k * CHART_BINS, CHART_BINS);
	free(tops);
	free(colours);
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The demo's picture.  Left: colour says who owned a processing element, intensity and
 * number how much of the time it computed.  Right, over time: the elements that each
 * tenant owned and those of them that computed; the bytes that it moved.  Below: when the
 * jobs of the same tenants as programs ran. */
#include "picture.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <cairo.h>

#define MARGIN   28.0
#define HEAD     92.0
#define ARRAY    640.0 /* the longer side of the array */
#define NAMES    112.0 /* left of the chart */
#define CHART    768.0
#define PLOT_GAP 34.0
#define AXIS     44.0 /* below the chart */
#define LANE_GAP 4.0
#define SWATCH   22.0
#define LEGEND   128.0
#define TICKS    8
#define LANE     30.0 /* of a program */
#define LANES    52.0 /* above the first */

struct rgb {
	double r, g, b;
};

/* The first four, the demo's, go by the names of its tenants and differ in lightness,
 * too. */
static const struct rgb hues[] = {
	{0.760, 0.130, 0.200}, {0.000, 0.560, 0.420}, {0.000, 0.400, 0.720},
	{0.930, 0.690, 0.050}, {0.800, 0.475, 0.655}, {0.337, 0.706, 0.914},
	{0.350, 0.350, 0.350}, {0.500, 0.300, 0.100},
};
static const struct rgb ink = {0.13, 0.13, 0.15}, paper = {1, 1, 1};
static const struct rgb nobody = {0.93, 0.93, 0.94}, gray = {0.45, 0.45, 0.48};

static struct rgb hue(uint32_t tenant)
{
	return hues[tenant % (sizeof(hues) / sizeof(hues[0]))];
}

static struct rgb mix(struct rgb a, struct rgb b, double t)
{
	return (struct rgb){a.r + (b.r - a.r) * t, a.g + (b.g - a.g) * t,
			    a.b + (b.b - a.b) * t};
}

/* An idle element keeps a tint of its owner. */
static struct rgb shade(uint32_t tenant, double busy)
{
	return mix(paper, hue(tenant), 0.14 + 0.86 * busy);
}

static double lightness(struct rgb c)
{
	return 0.299 * c.r + 0.587 * c.g + 0.114 * c.b;
}

static void set(cairo_t *cr, struct rgb c)
{
	cairo_set_source_rgb(cr, c.r, c.g, c.b);
}

static void font(cairo_t *cr, double size, bool bold)
{
	cairo_select_font_face(cr, "sans-serif", CAIRO_FONT_SLANT_NORMAL,
			       bold ? CAIRO_FONT_WEIGHT_BOLD : CAIRO_FONT_WEIGHT_NORMAL);
	cairo_set_font_size(cr, size);
}

static void text(cairo_t *cr, double x, double y, const char *s)
{
	cairo_move_to(cr, x, y);
	cairo_show_text(cr, s);
}

static void text_centred(cairo_t *cr, double x, double y, const char *s)
{
	cairo_text_extents_t e;

	cairo_text_extents(cr, s, &e);
	text(cr, x - e.width / 2 - e.x_bearing, y - e.height / 2 - e.y_bearing, s);
}

static int owner_of(const struct picture *p, uint32_t row, uint32_t col)
{
	for (uint32_t i = 0; i < p->tenant_count; i++) {
		const struct picture_tenant *t = &p->tenants[i];

		if (row >= t->row && row < (uint32_t)t->row + t->rows && col >= t->col &&
		    col < (uint32_t)t->col + t->cols)
			return (int)i;
	}
	return -1;
}

static void draw_element(cairo_t *cr, const struct picture *p, uint32_t row, uint32_t col,
			 double side)
{
	double x = MARGIN + col * side, y = HEAD + row * side;
	double busy = p->busy[(size_t)row * p->cols + col];
	int owner = owner_of(p, row, col);
	char number[16];

	set(cr, owner < 0 ? nobody : shade((uint32_t)owner, busy));
	cairo_rectangle(cr, x + 1, y + 1, side - 2, side - 2);
	cairo_fill(cr);
	if (owner < 0) {
		set(cr, mix(nobody, gray, 0.35));
		cairo_set_line_width(cr, 1);
		cairo_move_to(cr, x + 1, y + side - 1);
		cairo_line_to(cr, x + side - 1, y + 1);
		cairo_stroke(cr);
		return;
	}
	if (side < 18)
		return;
	set(cr, lightness(shade((uint32_t)owner, busy)) < 0.58 ? paper : ink);
	font(cr, side * 0.31, false);
	snprintf(number, sizeof(number), "%.0f", 100 * busy);
	text_centred(cr, x + side / 2, y + side / 2, number);
}

static void draw_array(cairo_t *cr, const struct picture *p, double side)
{
	for (uint32_t row = 0; row < p->rows; row++)
		for (uint32_t col = 0; col < p->cols; col++)
			draw_element(cr, p, row, col, side);
	for (uint32_t i = 0; i < p->tenant_count; i++) {
		const struct picture_tenant *t = &p->tenants[i];

		set(cr, mix(hue(i), ink, 0.25));
		cairo_set_line_width(cr, 3);
		cairo_rectangle(cr, MARGIN + t->col * side + 1.5,
				HEAD + t->row * side + 1.5, t->cols * side - 3,
				t->rows * side - 3);
		cairo_stroke(cr);
	}
}

/* From idle to always busy. */
static void draw_scale(cairo_t *cr, uint32_t tenant, double x, double y, double width)
{
	const int steps = 40;

	for (int i = 0; i < steps; i++) {
		set(cr, shade(tenant, i / (steps - 1.0)));
		cairo_rectangle(cr, x + i * width / steps, y, width / steps + 0.5, 8);
		cairo_fill(cr);
	}
}

/* ---- over time --------------------------------------------------------------------- */

struct chart {
	cairo_t *cr;
	const struct picture *p;
	double x, y, bottom, width;
	uint64_t begin, end; /* device time */
	double bands;        /* height of all elements */
};

static double at_time(const struct chart *c, double time)
{
	return c->x + c->width * (time - (double)c->begin) / (double)(c->end - c->begin);
}

/* values of each bin, as columns on the line y; one of max is height tall. */
static void draw_columns(const struct chart *c, const double *values, double y,
			 double height, double max)
{
	uint64_t width = c->p->width;
	double right = c->x;

	cairo_move_to(c->cr, c->x, y);
	for (uint64_t i = 0; c->p->begin + i * width < c->p->end; i++) {
		double top = y - height * fmin(1, values[i] / max);

		cairo_line_to(c->cr, right, top);
		right = fmin(c->x + CHART,
			     at_time(c, (double)(c->p->begin + (i + 1) * width)));
		cairo_line_to(c->cr, right, top);
	}
	cairo_line_to(c->cr, right, y);
	cairo_close_path(c->cr);
	cairo_fill(c->cr);
}

static void plot_title(const struct chart *c, double y, const char *s)
{
	set(c->cr, gray);
	font(c->cr, 12, false);
	text(c->cr, c->x, y, s);
}

static void name_lane(const struct chart *c, uint32_t tenant, double y, const char *s)
{
	set(c->cr, mix(hue(tenant), ink, 0.25));
	font(c->cr, 13, true);
	text(c->cr, c->x - NAMES + 28, y, c->p->tenants[tenant].name);
	set(c->cr, gray);
	font(c->cr, 11, false);
	text(c->cr, c->x - NAMES + 28, y + 14, s);
}

/* A band a tenant, as high as it owns elements, filled as far as they computed. */
static void draw_bands(const struct chart *c)
{
	uint32_t all = c->p->rows * c->p->cols, rest = all;
	double y = c->y, height;
	char s[32];

	for (uint32_t i = 0; i < c->p->tenant_count; i++) {
		const struct picture_tenant *t = &c->p->tenants[i];
		uint32_t owned = (uint32_t)t->rows * t->cols;

		height = c->bands * owned / all;
		set(c->cr, shade(i, 0.02));
		cairo_rectangle(c->cr, c->x, y, CHART, height - 2);
		cairo_fill(c->cr);
		set(c->cr, shade(i, 0.85));
		draw_columns(c, t->used, y + height - 2, height - 2, owned);
		snprintf(s, sizeof(s), "owns %u", owned);
		name_lane(c, i, y + height / 2, s);
		y += height;
		rest -= owned;
	}
	if (rest == 0)
		return;
	set(c->cr, nobody);
	cairo_rectangle(c->cr, c->x, y, CHART, c->bands * rest / all - 2);
	cairo_fill(c->cr);
	snprintf(s, sizeof(s), "%u free", rest);
	set(c->cr, gray);
	font(c->cr, 11, false);
	text(c->cr, c->x - NAMES + 28, y + c->bands * rest / all / 2 + 4, s);
}

/* The next power of two. */
static double most_bytes(const struct picture *p)
{
	double most = 1;

	for (uint32_t t = 0; t < p->tenant_count; t++)
		for (uint64_t i = 0; p->begin + i * p->width < p->end; i++)
			while (p->tenants[t].bytes[i] > most)
				most *= 2;
	return most;
}

static void draw_bytes(const struct chart *c, double top)
{
	double max = most_bytes(c->p);
	double height = (c->bottom - top) / c->p->tenant_count;
	char s[96];

	snprintf(s, sizeof(s),
		 "memory: bytes a cycle, mean of each job; a lane goes from 0 to %.0f",
		 max);
	plot_title(c, top - 8, s);
	for (uint32_t i = 0; i < c->p->tenant_count; i++) {
		double y = top + height * (i + 1) - LANE_GAP;

		set(c->cr, shade(i, 0.02));
		cairo_rectangle(c->cr, c->x, y - height + LANE_GAP, CHART,
				height - LANE_GAP);
		cairo_fill(c->cr);
		set(c->cr, shade(i, 0.85));
		draw_columns(c, c->p->tenants[i].bytes, y, height - LANE_GAP, max);
		set(c->cr, mix(hue(i), ink, 0.25));
		font(c->cr, 13, true);
		text(c->cr, c->x - NAMES + 28, y - height / 2 + 6, c->p->tenants[i].name);
	}
}

/* 1, 2 or 5 times a power of ten: at most TICKS of them are span. */
static uint64_t tick_step(uint64_t span)
{
	uint64_t step = 1;

	for (;; step *= 10) {
		if (span / step <= TICKS)
			return step;
		if (span / (2 * step) <= TICKS)
			return 2 * step;
		if (span / (5 * step) <= TICKS)
			return 5 * step;
	}
}

static void draw_axis(const struct chart *c)
{
	uint64_t begin = c->begin, end = c->end, step = tick_step(end - begin);
	bool millions = end - begin >= 2000000;
	char s[32];

	cairo_set_line_width(c->cr, 1);
	font(c->cr, 11, false);
	for (uint64_t t = (begin + step - 1) / step * step; t <= end; t += step) {
		double x = floor(at_time(c, (double)t)) + 0.5;

		set(c->cr, mix(paper, gray, 0.35));
		cairo_move_to(c->cr, x, c->y);
		cairo_line_to(c->cr, x, c->bottom + 5);
		cairo_stroke(c->cr);
		set(c->cr, gray);
		snprintf(s, sizeof(s), "%g", (double)t / (millions ? 1e6 : 1e3));
		text_centred(c->cr, x, c->bottom + 14, s);
	}
	snprintf(s, sizeof(s), "device time, %s cycles",
		 millions ? "million" : "thousand");
	text_centred(c->cr, c->x + c->width / 2, c->bottom + 32, s);
}

static void draw_chart(cairo_t *cr, const struct picture *p, double x, double height)
{
	struct chart c = {.cr = cr,
			  .p = p,
			  .x = x + NAMES,
			  .y = HEAD,
			  .width = CHART,
			  .begin = p->begin,
			  .end = p->end};
	double bytes = (height - AXIS - PLOT_GAP) * 0.28;

	c.bottom = HEAD + height - AXIS;
	c.bands = c.bottom - c.y - bytes - PLOT_GAP;
	plot_title(&c, c.y - 10,
		   "processing elements: owned (tinted), and of these those that "
		   "multiplied (filled)");
	draw_bands(&c);
	draw_bytes(&c, c.bottom - bytes);
	draw_axis(&c);
}

/* ---- programs ---------------------------------------------------------------------- */

/* When all of them had ended. */
static uint64_t programs_end(const struct picture *p)
{
	uint64_t end = 1;

	for (uint32_t i = 0; i < p->tenant_count; i++) {
		const struct picture_program *g = &p->programs[i];
		uint64_t last =
			g->count ? g->begin[g->count - 1] + g->cycles[g->count - 1] : 0;

		end = last > end ? last : end;
	}
	return end;
}

/* A lane a program: a box a job, and a cross where it was killed. */
static void draw_program(const struct chart *c, uint32_t tenant, double y)
{
	const struct picture_program *g = &c->p->programs[tenant];
	double x = c->x, middle = y + LANE / 2 - 2;

	set(c->cr, shade(tenant, 0.02));
	cairo_rectangle(c->cr, c->x, y, c->width, LANE - LANE_GAP);
	cairo_fill(c->cr);
	for (uint64_t i = 0; i < g->count; i++) {
		double from = at_time(c, (double)g->begin[i]);

		x = at_time(c, (double)(g->begin[i] + g->cycles[i]));
		set(c->cr, shade(tenant, i % 2 ? 0.85 : 0.7));
		cairo_rectangle(c->cr, from, y, fmax(0.5, x - from), LANE - LANE_GAP);
		cairo_fill(c->cr);
	}
	name_lane(c, tenant, middle, "");
	set(c->cr, ink);
	if (g->killed) {
		cairo_set_line_width(c->cr, 3);
		cairo_move_to(c->cr, x + 6, middle - 8);
		cairo_line_to(c->cr, x + 22, middle + 8);
		cairo_move_to(c->cr, x + 22, middle - 8);
		cairo_line_to(c->cr, x + 6, middle + 8);
		cairo_stroke(c->cr);
		x += 24;
	}
	font(c->cr, 12, false);
	if (x < c->x + c->width * 0.7)
		text(c->cr, x + 8, middle + 4, g->what);
}

static void draw_programs(cairo_t *cr, const struct picture *p, double y, double width)
{
	struct chart c = {.cr = cr,
			  .p = p,
			  .x = MARGIN + NAMES - 28,
			  .y = y + LANES,
			  .width = width - 2 * MARGIN - NAMES + 28,
			  .end = programs_end(p)};

	c.bottom = c.y + LANE * p->tenant_count;
	plot_title(
		&c, c.y - 12,
		"the same tenants as four programs, which hald serves: a box is a job");
	draw_axis(&c);
	for (uint32_t i = 0; i < p->tenant_count; i++)
		draw_program(&c, i, c.y + LANE * i);
}

/* ---- all of it --------------------------------------------------------------------- */

/* A column a tenant. */
static void draw_legend(cairo_t *cr, const struct picture *p, double y, double width)
{
	double step = (width - 2 * MARGIN) / (p->tenant_count + 1), x;

	for (uint32_t i = 0; i < p->tenant_count; i++) {
		const struct picture_tenant *t = &p->tenants[i];

		x = MARGIN + i * step;
		set(cr, hue(i));
		cairo_rectangle(cr, x, y, SWATCH, SWATCH);
		cairo_fill(cr);
		set(cr, ink);
		font(cr, 15, true);
		text(cr, x + SWATCH + 10, y + 16, t->name);
		font(cr, 13, false);
		for (uint32_t k = 0; k < 4; k++)
			text(cr, x + SWATCH + 10, y + 36 + 17 * k, t->lines[k]);
		draw_scale(cr, i, x + SWATCH + 10, y + 95, 120);
		set(cr, gray);
		font(cr, 11, false);
		text(cr, x + SWATCH + 136, y + 103, "0 to 100 % busy");
	}
	x = MARGIN + p->tenant_count * step;
	set(cr, nobody);
	cairo_rectangle(cr, x, y, SWATCH, SWATCH);
	cairo_fill(cr);
	set(cr, mix(nobody, gray, 0.35));
	cairo_set_line_width(cr, 1);
	cairo_move_to(cr, x, y + SWATCH);
	cairo_line_to(cr, x + SWATCH, y);
	cairo_stroke(cr);
	set(cr, ink);
	font(cr, 15, true);
	text(cr, x + SWATCH + 10, y + 16, "free");
	font(cr, 13, false);
	text(cr, x + SWATCH + 10, y + 36, "owned by no tenant");
}

const char *picture_write(const struct picture *p, const char *path)
{
	double side = floor(ARRAY / (p->rows > p->cols ? p->rows : p->cols));
	double chart_x = MARGIN + side * p->cols;
	double chart_height = fmax(side * p->rows, ARRAY / 2);
	double width = chart_x + NAMES + CHART + MARGIN;
	double legend_y = HEAD + chart_height + MARGIN;
	double programs_y = legend_y + LEGEND;
	double height =
		programs_y + (p->programs ? LANES + LANE * p->tenant_count + AXIS : 0);
	cairo_surface_t *s;
	cairo_t *cr;
	cairo_status_t status;

	s = cairo_image_surface_create(CAIRO_FORMAT_RGB24, (int)width, (int)height);
	cr = cairo_create(s);
	set(cr, paper);
	cairo_paint(cr);
	set(cr, ink);
	font(cr, 22, true);
	text(cr, MARGIN, 42, p->title);
	set(cr, gray);
	font(cr, 14, false);
	text(cr, MARGIN, 68, p->subtitle);
	draw_array(cr, p, side);
	draw_chart(cr, p, chart_x, chart_height);
	draw_legend(cr, p, legend_y, width);
	if (p->programs)
		draw_programs(cr, p, programs_y - 24, width);
	status = cairo_status(cr);
	cairo_destroy(cr);
	if (status == CAIRO_STATUS_SUCCESS)
		status = cairo_surface_write_to_png(s, path);
	cairo_surface_destroy(s);
	cairo_debug_reset_static_data(); /* fonts, which it would keep for a next picture
					  */
	return status == CAIRO_STATUS_SUCCESS ? NULL : cairo_status_to_string(status);
}

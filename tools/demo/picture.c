/* SPDX-License-Identifier: Apache-2.0 */
/* The demo's picture: colour says who owned a processing element, intensity and number
 * how much of the time it computed. */
#include "picture.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <cairo.h>

#define MARGIN 28.0
#define HEAD   92.0
#define ARRAY  640.0 /* the longer side of the array */
#define LEGEND 366.0
#define SWATCH 22.0
#define ENTRY  104.0

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

static void draw_legend(cairo_t *cr, const struct picture *p, double x)
{
	double y = HEAD;

	for (uint32_t i = 0; i < p->tenant_count; i++) {
		const struct picture_tenant *t = &p->tenants[i];

		set(cr, hue(i));
		cairo_rectangle(cr, x, y, SWATCH, SWATCH);
		cairo_fill(cr);
		set(cr, ink);
		font(cr, 16, true);
		text(cr, x + SWATCH + 10, y + 16, t->title);
		font(cr, 13, false);
		for (uint32_t k = 0; k < 3; k++)
			text(cr, x + SWATCH + 10, y + 36 + 17 * k, t->lines[k]);
		draw_scale(cr, i, x + SWATCH + 10, y + 78, 160);
		set(cr, gray);
		font(cr, 11, false);
		text(cr, x + SWATCH + 178, y + 86, "0 to 100 % busy");
		y += ENTRY;
	}
	set(cr, nobody);
	cairo_rectangle(cr, x, y, SWATCH, SWATCH);
	cairo_fill(cr);
	set(cr, mix(nobody, gray, 0.35));
	cairo_set_line_width(cr, 1);
	cairo_move_to(cr, x, y + SWATCH);
	cairo_line_to(cr, x + SWATCH, y);
	cairo_stroke(cr);
	set(cr, ink);
	font(cr, 16, true);
	text(cr, x + SWATCH + 10, y + 16, "free");
	font(cr, 13, false);
	text(cr, x + SWATCH + 10, y + 36, "owned by nobody");
}

const char *picture_write(const struct picture *p, const char *path)
{
	double side = floor(ARRAY / (p->rows > p->cols ? p->rows : p->cols));
	double legend_x = MARGIN * 2 + side * p->cols;
	double legend_y = HEAD + ENTRY * (p->tenant_count + 0.6);
	double width = legend_x + LEGEND;
	double height = fmax(HEAD + side * p->rows, legend_y) + MARGIN;
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
	draw_legend(cr, p, legend_x);
	status = cairo_status(cr);
	cairo_destroy(cr);
	if (status == CAIRO_STATUS_SUCCESS)
		status = cairo_surface_write_to_png(s, path);
	cairo_surface_destroy(s);
	cairo_debug_reset_static_data(); /* fonts, which it would keep for a next picture
					  */
	return status == CAIRO_STATUS_SUCCESS ? NULL : cairo_status_to_string(status);
}

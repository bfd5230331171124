/* SPDX-License-Identifier: Apache-2.0 */
/* canvas_png.c - charts as PNG files, drawn by Cairo where the build has it; see
 * canvas.h. */
#include "canvas.h"

#include "tool.h"

#ifdef BENCH_CAIRO

#include <errno.h>

#include <cairo.h>
#include <hal/hal.h>

#define SCALE 2.0 /* pixels of the file to one of the canvas */

static void hue(struct canvas *c, uint32_t i)
{
	struct colour h = canvas_colour(i);

	cairo_set_source_rgb(c->png, h.r / 255.0, h.g / 255.0, h.b / 255.0);
}

static void line(struct canvas *c, const char *what, uint32_t i, const double *xy,
		 uint32_t count)
{
	uint32_t n;
	const double *dashes = canvas_dashes(i, &n);

	(void)what;
	hue(c, i % CANVAS_HUES);
	cairo_new_path(c->png); /* a text leaves its end behind */
	cairo_set_dash(c->png, dashes, (int)n, 0);
	cairo_set_line_width(c->png, 2);
	for (uint32_t k = 0; k < count; k++)
		cairo_line_to(c->png, xy[2 * (size_t)k], xy[2 * (size_t)k + 1]);
	cairo_stroke(c->png);
	cairo_set_dash(c->png, NULL, 0, 0);
}

static void steps(struct canvas *c, uint32_t i, double x0, double x1, double base,
		  const double *y, uint32_t count)
{
	hue(c, i);
	cairo_new_path(c->png);
	cairo_move_to(c->png, x0, base);
	for (uint32_t k = 0; k < count; k++) {
		cairo_line_to(c->png, x0 + (x1 - x0) * k / count, y[k]);
		cairo_line_to(c->png, x0 + (x1 - x0) * (k + 1) / count, y[k]);
	}
	cairo_line_to(c->png, x1, base);
	cairo_fill(c->png);
}

static void ground(struct canvas *c, double x, double y, double width, double height)
{
	cairo_set_source_rgb(c->png, 0.93, 0.93, 0.93);
	cairo_rectangle(c->png, x, y, width, height);
	cairo_fill(c->png);
}

static void rule(struct canvas *c, double x0, double y0, double x1, double y1)
{
	cairo_set_source_rgb(c->png, 0.86, 0.86, 0.86);
	cairo_set_line_width(c->png, 1);
	cairo_move_to(c->png, x0, y0);
	cairo_line_to(c->png, x1, y1);
	cairo_stroke(c->png);
}

static void text(struct canvas *c, double x, double y, enum anchor a, const char *s)
{
	cairo_text_extents_t e;

	cairo_text_extents(c->png, s, &e);
	cairo_set_source_rgb(c->png, 0.25, 0.25, 0.25);
	cairo_move_to(c->png, x - e.x_advance * a / 2, y);
	cairo_show_text(c->png, s);
}

int canvas_png_begin(struct canvas *c, double width, double height)
{
	cairo_surface_t *s = cairo_image_surface_create(
		CAIRO_FORMAT_RGB24, (int)(width * SCALE), (int)(height * SCALE));

	*c = (struct canvas){line, steps, ground, rule, text, NULL, NULL};
	c->png = cairo_create(s);
	cairo_surface_destroy(s);
	cairo_scale(c->png, SCALE, SCALE);
	cairo_set_source_rgb(c->png, 1, 1, 1);
	cairo_paint(c->png);
	cairo_select_font_face(c->png, "sans-serif", CAIRO_FONT_SLANT_NORMAL,
			       CAIRO_FONT_WEIGHT_NORMAL);
	cairo_set_font_size(c->png, 11);
	return 0; /* errors stay in it until the end */
}

int canvas_png_end(struct canvas *c, const char *path)
{
	cairo_status_t s = cairo_status(c->png);

	errno = 0;
	if (s == CAIRO_STATUS_SUCCESS)
		s = cairo_surface_write_to_png(cairo_get_target(c->png), path);
	cairo_destroy(c->png);
	c->png = NULL;
	if (s == CAIRO_STATUS_SUCCESS)
		return 0;
	return tool_fail("%s: %s", path,
			 errno != 0 ? hal_strerror(errno) : cairo_status_to_string(s));
}

#else

int canvas_png_begin(struct canvas *c, double width, double height)
{
	(void)c, (void)width, (void)height;
	return tool_fail("--png: this halbench was built without Cairo");
}

int canvas_png_end(struct canvas *c, const char *path)
{
	(void)c, (void)path;
	return TOOL_FAILED;
}

#endif

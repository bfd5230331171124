/* SPDX-License-Identifier: Apache-2.0 */
/* canvas.h - what charts are drawn on: SVG within a page, or a PNG file by Cairo. */
#ifndef BENCH_CANVAS_H
#define BENCH_CANVAS_H

#include <stdint.h>
#include <stdio.h>

#define CANVAS_HUES 8u
#define CANVAS_IDLE UINT32_MAX /* a colour number: units that are had and do not work */

enum anchor { ANCHOR_START, ANCHOR_MIDDLE, ANCHOR_END };

/* Coordinates are in pixels, y downwards. */
struct canvas {
	/* Points (x, y) in the style of line number i; what: its class in a page. */
	void (*line)(struct canvas *c, const char *what, uint32_t i, const double *xy,
		     uint32_t count);
	/* From base up to y[k] over the k-th of count equal parts of x0 to x1, in colour
	 * number i. */
	void (*steps)(struct canvas *c, uint32_t i, double x0, double x1, double base,
		      const double *y, uint32_t count);
	/* A rectangle behind everything. */
	void (*ground)(struct canvas *c, double x, double y, double width, double height);
	void (*rule)(struct canvas *c, double x0, double y0, double x1, double y1);
	void (*text)(struct canvas *c, double x, double y, enum anchor a,
		     const char *text);
	FILE *svg;
	void *png;
};

struct colour {
	uint8_t r, g, b;
};

/* Told apart by who does not see all colours, too (Okabe and Ito); then the same, pale.
 */
struct colour canvas_colour(uint32_t i);
/* Lengths of dashes and gaps of line number i, 0 to 2 of them. */
const double *canvas_dashes(uint32_t i, uint32_t *count);

/* Characters that mean something in a page are written as what they are. */
void canvas_escaped(FILE *f, const char *text);

/* what: its class in the page. */
void canvas_svg_begin(struct canvas *c, FILE *f, const char *what, const char *label,
		      double width, double height);
void canvas_svg_end(struct canvas *c);
/* 0 or TOOL_FAILED: out of memory, or this build has no Cairo. */
int canvas_png_begin(struct canvas *c, double width, double height);
/* Writes and frees it.  0 or TOOL_FAILED. */
int canvas_png_end(struct canvas *c, const char *path);

#endif

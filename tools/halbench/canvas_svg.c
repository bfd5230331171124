/* SPDX-License-Identifier: Apache-2.0 */
/* canvas_svg.c - charts as SVG within a page, and the colours of all charts; see
 * canvas.h. */
#include "canvas.h"

#include <math.h>
#include <stdbool.h>

static const struct colour hues[CANVAS_HUES] = {
	{0x00, 0x72, 0xb2}, {0xd5, 0x5e, 0x00}, {0x00, 0x9e, 0x73}, {0xcc, 0x79, 0xa7},
	{0xe6, 0x9f, 0x00}, {0x56, 0xb4, 0xe9}, {0x22, 0x22, 0x22}, {0x99, 0x99, 0x99},
};

struct colour canvas_colour(uint32_t i)
{
	struct colour c = hues[i % CANVAS_HUES];

	if (i == CANVAS_IDLE)
		return (struct colour){0xd0, 0xd0, 0xd0};
	if (i / CANVAS_HUES % 2 == 0)
		return c;
	return (struct colour){(uint8_t)((c.r + 255) / 2), (uint8_t)((c.g + 255) / 2),
			       (uint8_t)((c.b + 255) / 2)};
}

const double *canvas_dashes(uint32_t i, uint32_t *count)
{
	static const double dashes[][2] = {{0, 0}, {7, 3}, {2, 3}};
	uint32_t kind = i / CANVAS_HUES % 3;

	*count = kind != 0 ? 2 : 0;
	return dashes[kind];
}

void canvas_escaped(FILE *f, const char *text)
{
	for (; *text != '\0'; text++)
		switch (*text) {
		case '&':
			fputs("&amp;", f);
			break;
		case '<':
			fputs("&lt;", f);
			break;
		case '>':
			fputs("&gt;", f);
			break;
		case '"':
			fputs("&quot;", f);
			break;
		default:
			(void)fputc(*text, f);
		}
}

/* As it is written. */
static bool same(double a, double b)
{
	return lround(a * 10) == lround(b * 10);
}

/* A line's hue is not paler the second time: its dashes differ. */
static void line(struct canvas *c, const char *what, uint32_t i, const double *xy,
		 uint32_t count)
{
	struct colour h = canvas_colour(i % CANVAS_HUES);
	uint32_t n;
	const double *dashes = canvas_dashes(i, &n);

	fprintf(c->svg, "<polyline class=\"%s\" stroke=\"#%02x%02x%02x\"", what, h.r, h.g,
		h.b);
	if (n != 0)
		fprintf(c->svg, " stroke-dasharray=\"%g %g\"", dashes[0], dashes[1]);
	fputs(" points=\"", c->svg);
	for (uint32_t k = 0; k < count; k++) {
		const double *p = xy + 2 * (size_t)k;

		/* Of those above each other the ends are enough. */
		if (k == 0 || k + 1 == count || !same(p[0], p[-2]) || !same(p[0], p[2]))
			fprintf(c->svg, "%s%.1f,%.1f", k != 0 ? " " : "", p[0], p[1]);
	}
	fputs("\"/>\n", c->svg);
}

/* Parts of one height are one: a page has many of these. */
static void steps(struct canvas *c, uint32_t i, double x0, double x1, double base,
		  const double *y, uint32_t count)
{
	struct colour h = canvas_colour(i);
	char last[16], next[16];

	fprintf(c->svg, "<path fill=\"#%02x%02x%02x\" d=\"M%.1f %.1f", h.r, h.g, h.b, x0,
		base);
	snprintf(last, sizeof(last), "%.1f", base);
	for (uint32_t k = 0; k < count; k++) {
		double x = x0 + (x1 - x0) * k / count;
		uint32_t n = 0;

		snprintf(next, sizeof(next), "%.1f", y[k]);
		while (next[n] != '\0' && next[n] == last[n])
			n++;
		if (next[n] == last[n])
			continue;
		fprintf(c->svg, "H%.1fV%s", x, next);
		snprintf(last, sizeof(last), "%s", next);
	}
	fprintf(c->svg, "H%.1fV%.1fZ\"/>\n", x1, base);
}

static void ground(struct canvas *c, double x, double y, double width, double height)
{
	fprintf(c->svg,
		"<rect class=\"idle\" x=\"%g\" y=\"%g\" width=\"%g\" height=\"%g\"/>\n",
		x, y, width, height);
}

static void rule(struct canvas *c, double x0, double y0, double x1, double y1)
{
	fprintf(c->svg, "<path class=\"grid\" d=\"M%.1f %.1fL%.1f %.1f\"/>", x0, y0, x1,
		y1);
}

static void text(struct canvas *c, double x, double y, enum anchor a, const char *s)
{
	static const char *const anchors[] = {"start", "middle", "end"};

	fprintf(c->svg, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">", x, y,
		anchors[a]);
	canvas_escaped(c->svg, s);
	fputs("</text>\n", c->svg);
}

void canvas_svg_begin(struct canvas *c, FILE *f, const char *what, const char *label,
		      double width, double height)
{
	*c = (struct canvas){line, steps, ground, rule, text, f, NULL};
	fprintf(f,
		"<svg class=\"%s\" role=\"img\" aria-label=\"%s\" viewBox=\"0 0 %g "
		"%g\">\n",
		what, label, width, height);
}

void canvas_svg_end(struct canvas *c)
{
	fputs("</svg>\n", c->svg);
}

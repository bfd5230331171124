/* SPDX-License-Identifier: Apache-2.0 */
/* page.c - a comparison as a page: a table that sorts, latencies, attainment against
 * load, units by task over time; see page.h. */
#include "page.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tool.h"

#define WIDTH  720.0
#define HEIGHT 260.0
#define LEFT   56.0
#define BOTTOM 36.0
#define TOP    10.0
#define RIGHT  10.0
#define BAND   110.0 /* of a policy's units over time */
#define TIMES  64.0  /* latencies are drawn from 1/64 of the SLO to 64 times it */

/* Told apart by who does not see all colours, too (Okabe and Ito), and by dashes. */
static const char *const hues[] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
				   "#e69f00", "#56b4e9", "#000000", "#999999"};
static const char *const dashes[] = {"none", "7 3", "2 3"};
#define HUES   ((uint32_t)(sizeof(hues) / sizeof(hues[0])))
#define DASHES ((uint32_t)(sizeof(dashes) / sizeof(dashes[0])))

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
	for (uint32_t k = 0; k <= PAGE_QUANTILES && count != 0; k++) {
		size_t rank = (count * k + PAGE_QUANTILES - 1) / PAGE_QUANTILES;

		out->quantiles[k] = ratios[rank != 0 ? rank - 1 : 0];
	}
	free(ratios);
	return 0;
}

/* So many units from then to then. */
static void add_units(double *bins, double width, double from, double to, double units)
{
	while (from < to) {
		uint32_t bin = (uint32_t)(from / width);
		double end = fmin(to, (bin + 1) * width);

		if (bin >= PAGE_BINS)
			return;
		bins[bin] += units * (end - from) / width;
		/* A width may be no number of nanoseconds. */
		from = end > from ? end : to;
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

int shown_take(const struct setup *s, const struct run *r, const uint64_t *slo_ns,
	       struct shown *out)
{
	double width = (double)r->window_ns / PAGE_BINS;

	memset(out, 0, sizeof(*out));
	out->units = calloc((size_t)s->load->count * PAGE_BINS, sizeof(*out->units));
	if (out->units == NULL)
		return tool_fail("out of memory");
	for (uint32_t i = 0; i < s->load->count; i++)
		take_units(&r->tasks[i], width, out->units + (size_t)i * PAGE_BINS);
	return take_quantiles(s, r, slo_ns, out);
}

void shown_free(struct shown *s)
{
	free(s->units);
	s->units = NULL;
}

/* ---- pieces ------------------------------------------------------------------------- */

static void text(FILE *f, const char *s)
{
	for (; *s != '\0'; s++)
		switch (*s) {
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
			(void)fputc(*s, f);
		}
}

static void cell(FILE *f, double x, int digits)
{
	if (isnan(x))
		fputs("<td data-v=\"-1\">-</td>", f);
	else
		fprintf(f, "<td data-v=\"%.9g\">%.*f</td>", x, digits, x);
}

static void style_of(FILE *f, uint32_t i)
{
	fprintf(f,
		"fill=\"none\" stroke-width=\"2\" stroke=\"%s\" stroke-dasharray=\"%s\"",
		hues[i % HUES], dashes[i / HUES % DASHES]);
}

/* A line a policy. */
static void legend(FILE *f, const struct report *r)
{
	fputs("<p class=\"legend\">", f);
	for (uint32_t i = 0; i < r->count; i++) {
		fputs("<span><svg width=\"34\" height=\"10\"><path d=\"M0 5H34\" ", f);
		style_of(f, i);
		fputs("/></svg> ", f);
		text(f, r->list[i].policy->text);
		fputs("</span> ", f);
	}
	fputs("</p>\n", f);
}

static void open_chart(FILE *f, const char *name, double height)
{
	fprintf(f,
		"<svg class=\"chart\" role=\"img\" aria-label=\"%s\" viewBox=\"0 0 %g "
		"%g\">\n",
		name, WIDTH, height);
}

static double across(double share)
{
	return LEFT + share * (WIDTH - LEFT - RIGHT);
}

static double up(double share)
{
	return TOP + (1 - share) * (HEIGHT - TOP - BOTTOM);
}

/* Shares of 0 to 100 % upwards. */
static void grid(FILE *f)
{
	for (int i = 0; i <= 4; i++) {
		fprintf(f, "<path class=\"grid\" d=\"M%g %gH%g\"/>", across(0),
			up(i / 4.0), across(1));
		fprintf(f, "<text x=\"%g\" y=\"%g\" text-anchor=\"end\">%d %%</text>\n",
			across(0) - 6, up(i / 4.0) + 4, 25 * i);
	}
}

static void tick(FILE *f, double share, const char *label)
{
	fprintf(f,
		"<path class=\"grid\" d=\"M%.2f %gV%g\"/><text x=\"%.2f\" y=\"%g\" "
		"text-anchor=\"middle\">%s</text>\n",
		across(share), up(1), up(0), across(share), HEIGHT - BOTTOM + 16, label);
}

/* ---- the charts --------------------------------------------------------------------- */

/* From 1 / TIMES to TIMES, by logarithm. */
static double share_of_ratio(double ratio)
{
	double share = 0.5 + 0.5 * log(fmax(ratio, 1e-9)) / log(TIMES);

	return fmin(1, fmax(0, share));
}

static void latencies(FILE *f, const struct report *r, const struct shown *shown)
{
	static const double at[] = {1.0 / 64, 1.0 / 16, 1.0 / 4, 1, 4, 16, 64};
	static const char *const labels[] = {"1/64", "1/16", "1/4", "SLO",
					     "4 x",  "16 x", "64 x"};

	fputs("<h2>Latency of latency-critical requests, over their SLO</h2>\n", f);
	legend(f, r);
	open_chart(f, "share of requests by latency", HEIGHT);
	grid(f);
	for (size_t i = 0; i < sizeof(at) / sizeof(at[0]); i++)
		tick(f, share_of_ratio(at[i]), labels[i]);
	for (uint32_t i = 0; i < r->count; i++) {
		if (!shown[i].critical)
			continue;
		fputs("<polyline class=\"cdf\" ", f);
		style_of(f, i);
		fputs(" points=\"", f);
		for (uint32_t k = 0; k <= PAGE_QUANTILES; k++)
			fprintf(f, "%.2f,%.2f ",
				across(share_of_ratio(shown[i].quantiles[k])),
				up((double)k / PAGE_QUANTILES));
		fputs("\"/>\n", f);
	}
	fputs("</svg>\n", f);
}

static void attainment(FILE *f, const struct report *r, const struct sweep *s)
{
	double most = s->rates[s->count - 1];
	char label[32];

	fputs("<h2>Attainment against load</h2>\n<p>SLO of the rate that the rest of "
	      "this "
	      "page is of.</p>\n",
	      f);
	legend(f, r);
	open_chart(f, "attainment against rate", HEIGHT);
	grid(f);
	for (uint32_t k = 0; k < s->count; k++) {
		snprintf(label, sizeof(label), "%.4g", s->rates[k]);
		tick(f, s->rates[k] / most, label);
	}
	for (uint32_t i = 0; i < r->count; i++) {
		fputs("<polyline class=\"attainment\" ", f);
		style_of(f, i);
		fputs(" points=\"", f);
		for (uint32_t k = 0; k < s->count; k++)
			if (!isnan(s->slo[(size_t)i * s->count + k]))
				fprintf(f, "%.2f,%.2f ", across(s->rates[k] / most),
					up(s->slo[(size_t)i * s->count + k]));
		fputs("\"/>\n", f);
	}
	fputs("</svg>\n", f);
}

/* One task's layer upon those below it, which it is added to. */
static void layer(FILE *f, uint32_t task, const double *units, double *below, double all)
{
	fprintf(f, "<path fill=\"%s\" fill-opacity=\"%s\" d=\"M", hues[task % HUES],
		task / HUES % 2 != 0 ? "0.45" : "0.9");
	for (uint32_t b = 0; b < PAGE_BINS; b++) {
		double y = BAND * (1 - fmin(1, (below[b] + units[b]) / all));

		fprintf(f, "%.1f %.1fH%.1f%s", across((double)b / PAGE_BINS), y,
			across((b + 1.0) / PAGE_BINS), b + 1 < PAGE_BINS ? "L" : "");
	}
	for (uint32_t b = PAGE_BINS; b-- > 0;)
		fprintf(f, "L%.1f %.1fH%.1f", across((b + 1.0) / PAGE_BINS),
			BAND * (1 - fmin(1, below[b] / all)),
			across((double)b / PAGE_BINS));
	fputs("Z\"/>\n", f);
	for (uint32_t b = 0; b < PAGE_BINS; b++)
		below[b] += units[b];
}

static void units(FILE *f, const struct report *r, const struct shown *shown)
{
	const struct load *l = r->setup->load;
	const struct run *run = &r->list[0].run;
	double all = (double)run->info.unit_rows * run->info.unit_cols;

	fprintf(f,
		"<h2>Units that worked, by task</h2>\n<p>A band is %g units high and "
		"%.9g s "
		"long; a request's work is spread over the time in which it was "
		"served.</p>\n"
		"<p class=\"legend\">",
		all, (double)run->window_ns / 1e9);
	for (uint32_t k = 0; k < l->count; k++) {
		fprintf(f,
			"<span><svg width=\"14\" height=\"10\"><rect width=\"14\" "
			"height=\"10\" fill=\"%s\" fill-opacity=\"%s\"/></svg> ",
			hues[k % HUES], k / HUES % 2 != 0 ? "0.45" : "0.9");
		text(f, l->tasks[k].id);
		fputs("</span> ", f);
	}
	fputs("</p>\n", f);
	for (uint32_t i = 0; i < r->count; i++) {
		double below[PAGE_BINS] = {0};

		fputs("<h3>", f);
		text(f, r->list[i].policy->text);
		fputs("</h3>\n", f);
		open_chart(f, "units over time", BAND + 2);
		fprintf(f,
			"<rect class=\"idle\" x=\"%g\" y=\"0\" width=\"%g\" "
			"height=\"%g\"/>\n",
			across(0), across(1) - across(0), BAND);
		for (uint32_t k = 0; k < l->count; k++)
			layer(f, k, shown[i].units + (size_t)k * PAGE_BINS, below, all);
		fputs("</svg>\n", f);
	}
}

/* ---- tables ------------------------------------------------------------------------- */

static void policies(FILE *f, const struct report *r)
{
	fputs("<h2>Policies</h2>\n<table id=\"policies\"><thead><tr><th>policy</th>"
	      "<th>layout</th><th>SLO %</th><th>worst task %</th><th>goodput /s</th>"
	      "<th>best effort /s</th><th>all /s</th><th>p99 "
	      "x</th><th>ANTT</th><th>STP</th>"
	      "<th>Jain</th><th>use %</th><th>preemptions</th></tr></thead><tbody>\n",
	      f);
	for (uint32_t i = 0; i < r->count; i++) {
		const struct compared *c = &r->list[i];
		const struct numbers *n = &c->numbers;

		fputs("<tr><td>", f);
		text(f, c->policy->text);
		fprintf(f, "</td><td>%s</td>", layout_name(c->run.layout));
		cell(f, 100 * n->slo, 2);
		cell(f, 100 * n->slo_worst, 2);
		cell(f, n->goodput, 2);
		cell(f, n->be_throughput, 2);
		cell(f, n->total_throughput, 2);
		cell(f, n->p99_ratio, 2);
		cell(f, n->antt, 2);
		cell(f, n->stp, 2);
		cell(f, n->jain, 3);
		cell(f, 100 * n->use, 1);
		cell(f, (double)c->run.stats.suspends, 0);
		fputs("</tr>\n", f);
	}
	fputs("</tbody></table>\n", f);
}

static void tasks(FILE *f, const struct report *r)
{
	const struct load *l = r->setup->load;

	fputs("<h2>Tasks</h2>\n<table "
	      "id=\"tasks\"><thead><tr><th>policy</th><th>task</th>"
	      "<th>requests</th><th>p50 ms</th><th>p99 ms</th><th>p99.9 ms</th>"
	      "<th>SLO ms</th><th>met %</th><th>ended "
	      "/s</th><th>slowdown</th></tr></thead>"
	      "<tbody>\n",
	      f);
	for (uint32_t i = 0; i < r->count; i++)
		for (uint32_t k = 0; k < l->count; k++) {
			const struct task_numbers *t = &r->list[i].numbers.tasks[k];

			fputs("<tr><td>", f);
			text(f, r->list[i].policy->text);
			fputs("</td><td>", f);
			text(f, l->tasks[k].id);
			fputs("</td>", f);
			cell(f, (double)t->arrived, 0);
			cell(f, (double)t->p50_ns / 1e6, 3);
			cell(f, (double)t->p99_ns / 1e6, 3);
			cell(f, (double)t->p999_ns / 1e6, 3);
			cell(f, l->tasks[k].critical ? (double)r->slo_ns[k] / 1e6 : NAN,
			     3);
			cell(f, 100 * t->slo, 2);
			cell(f, t->throughput, 2);
			cell(f, t->slowdown, 2);
			fputs("</tr>\n", f);
		}
	fputs("</tbody></table>\n", f);
}

/* ---- the page ----------------------------------------------------------------------- */

static const char head[] =
	"<style>body{font:15px/1.45 sans-serif;max-width:1100px;margin:2em "
	"auto;padding:0 "
	"1em;color:#222}table{border-collapse:collapse;font-variant-numeric:tabular-nums}"
	"td,th{padding:.2em .6em;text-align:right;border-bottom:1px solid #ddd}"
	"td:first-child,th:first-child{text-align:left}th{cursor:pointer;background:#"
	"f4f4f4}"
	".chart{width:100%;max-width:960px;display:block}.chart "
	"text{font-size:11px;fill:#555}"
	".grid{stroke:#ddd;fill:none}.idle{fill:#eee}.legend span{margin-right:1em;"
	"white-space:nowrap}h3{margin:.6em 0 .1em;font-size:1em}</style></head><body>\n";

static const char script[] =
	"<script>document.querySelectorAll('th').forEach(h=>h.onclick=()=>{"
	"const "
	"b=h.closest('table').tBodies[0],i=h.cellIndex,u=h.dataset.up=h.dataset.up=='1'"
	"?'0':'1',v=r=>{const c=r.cells[i];return c.dataset.v===undefined?c.textContent:"
	"+c.dataset.v};[...b.rows].sort((x,y)=>(v(x)<v(y)?-1:v(x)>v(y)?1:0)*(u=='1'?-1:1)"
	")"
	".forEach(r=>b.append(r))})</script>\n";

static void page(FILE *f, const struct report *r, const struct shown *shown,
		 const struct sweep *sweep)
{
	const struct setup *s = r->setup;
	const struct run *run = &r->list[0].run;

	fputs("<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>",
	      f);
	text(f, s->load->name);
	fputs(": policies compared</title>\n", f);
	fputs(head, f);
	fputs("<h1>", f);
	text(f, s->load->name);
	fprintf(f,
		"</h1>\n<p>%u tasks, %.9g s at rate %.9g, scale %.9g, seed %" PRIu64
		". Device ",
		s->load->count, s->clock.window_s, s->clock.rate, s->clock.scale,
		s->clock.seed);
	text(f, s->target);
	fputs(". Engine ", f);
	text(f, report_engine(run));
	fputs(". Models: ", f);
	text(f, r->models != NULL ? r->models : "own table");
	fprintf(f,
		". SLO of latency-critical tasks: %u times p99 alone. A click on a "
		"heading "
		"sorts.</p>\n",
		s->load->count);
	policies(f, r);
	latencies(f, r, shown);
	if (sweep->count != 0)
		attainment(f, r, sweep);
	units(f, r, shown);
	tasks(f, r);
	fputs(script, f);
	fputs("</body></html>\n", f);
}

int page_write(const struct report *r, const struct shown *shown,
	       const struct sweep *sweep, const char *path)
{
	FILE *f = fopen(path, "we");
	int bad;

	if (f == NULL)
		return tool_fail("%s: %s", path, hal_strerror(errno));
	page(f, r, shown, sweep);
	bad = ferror(f);
	bad |= fclose(f);
	return bad != 0 ? tool_fail("%s: cannot be written", path) : 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* page.c - comparisons as one page: a table that sorts, then load by load latencies,
 * attainment against load, units by task over time; see page.h. */
#include "page.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tool.h"

/* ---- cells -------------------------------------------------------------------------- */

static void cell(FILE *f, double x, int digits)
{
	if (isnan(x))
		fputs("<td>-", f);
	else
		fprintf(f, "<td>%.*f", digits, x);
}

static void name_cell(FILE *f, const char *name)
{
	fputs("<td>", f);
	canvas_escaped(f, name);
}

static void headings(FILE *f, const char *id, const char *const *names)
{
	fprintf(f, "<table id=\"%s\"><thead><tr>", id);
	for (; *names != NULL; names++)
		fprintf(f, "<th>%s", *names);
	fputs("</thead><tbody>\n", f);
}

/* ---- the table of all --------------------------------------------------------------- */

#define POLICY_NUMBERS 13 /* columns of the table, beside load, rate, policy, layout */

static void policy_row(FILE *f, const struct comparison *c, uint32_t i)
{
	const struct compared *p = &c->report.list[i];
	const struct numbers *n = &p->numbers;

	fputs("<tr>", f);
	name_cell(f, c->setup.load->name);
	cell(f, c->setup.clock.rate, 2);
	name_cell(f, p->policy->text);
	name_cell(f, layout_name(p->run.layout));
	if (!p->ran) {
		for (int k = 0; k < POLICY_NUMBERS; k++)
			cell(f, NAN, 0);
		fputs("\n", f);
		return;
	}
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
	cell(f, (double)p->run.stats.suspends, 0);
	cell(f, (double)p->run.stats.suspend_ns / 1e6, 2);
	cell(f, (double)p->run.stats.replayed_ns / 1e6, 2);
	fputs("\n", f);
}

/* What there is to say of policies beside their numbers. */
static void remarks(FILE *f, const struct comparison *c)
{
	char text[REPORT_REMARK];

	for (uint32_t i = 0; i < c->report.count; i++) {
		const struct compared *p = &c->report.list[i];

		if (report_remark(p, text) == NULL)
			continue;
		fputs("<li>", f);
		canvas_escaped(f, c->setup.load->name);
		fprintf(f, " at rate %.4g, ", c->setup.clock.rate);
		canvas_escaped(f, p->policy->text);
		fputs(": ", f);
		canvas_escaped(f, text);
		fputs("\n", f);
	}
}

static bool has_remarks(const struct comparison *list, uint32_t count)
{
	char text[REPORT_REMARK];

	for (uint32_t k = 0; k < count; k++)
		for (uint32_t i = 0; i < list[k].report.count; i++)
			if (report_remark(&list[k].report.list[i], text) != NULL)
				return true;
	return false;
}

static void policies(FILE *f, const struct comparison *list, uint32_t count)
{
	static const char *const names[] = {
		"load",   "rate",          "policy",   "layout",  "SLO %",   "worst task",
		"good/s", "best effort/s", "all/s",    "p99 x",   "ANTT",    "STP",
		"Jain",   "use %",         "preempts", "took ms", "lost ms", NULL};

	fputs("<h2>Policies</h2>\n<p>Click a heading to sort by it, largest first; the "
	      "boxes filter the rows.</p>\n<p><label>load <select "
	      "data-column=\"0\"></select></label> <label>rate <select "
	      "data-column=\"1\"></select></label> <label>policy <select "
	      "data-column=\"2\"></select></label></p>\n",
	      f);
	headings(f, "policies", names);
	for (uint32_t k = 0; k < count; k++)
		for (uint32_t i = 0; i < list[k].report.count; i++)
			policy_row(f, &list[k], i);
	fputs("</tbody></table>\n", f);
	if (!has_remarks(list, count))
		return;
	fputs("<ul id=\"remarks\">\n", f);
	for (uint32_t k = 0; k < count; k++)
		remarks(f, &list[k]);
	fputs("</ul>\n", f);
}

/* ---- one comparison ----------------------------------------------------------------- */

/* A line a policy. */
static void line_legend(FILE *f, const struct report *r)
{
	fputs("<p class=\"legend\">", f);
	for (uint32_t i = 0; i < r->count; i++) {
		const double xy[] = {0, 5, 34, 5};
		struct canvas c;

		if (!r->list[i].ran)
			continue;
		fputs("<span>", f);
		canvas_svg_begin(&c, f, "key", "", 34, 10);
		(c.line)(&c, "key", i, xy, 2);
		canvas_svg_end(&c);
		canvas_escaped(f, r->list[i].policy->text);
		fputs("</span> ", f);
	}
	fputs("</p>\n", f);
}

static void task_legend(FILE *f, const struct load *l)
{
	struct colour h;

	fputs("<p class=\"legend\">", f);
	for (uint32_t k = 0; k < l->count; k++) {
		h = canvas_colour(k);

		fprintf(f, "<span><b style=\"background:#%02x%02x%02x\"></b> ", h.r, h.g,
			h.b);
		canvas_escaped(f, l->tasks[k].id);
		fputs("</span> ", f);
	}
	h = canvas_colour(CANVAS_IDLE);
	fprintf(f,
		"<span><b style=\"background:#%02x%02x%02x\"></b> idle, of a "
		"partition</span></p>\n",
		h.r, h.g, h.b);
}

static void latencies(FILE *f, const struct comparison *k)
{
	struct canvas c;

	fprintf(f,
		"<h3>Latency of latency-critical requests over their SLO, rate "
		"%.4g</h3>\n",
		k->setup.clock.rate);
	line_legend(f, &k->report);
	canvas_svg_begin(&c, f, "chart", "share of requests by latency", CHART_WIDTH,
			 CHART_HEIGHT);
	chart_latencies(&c, &k->report, k->shown);
	canvas_svg_end(&c);
}

static void attainment(FILE *f, const struct comparison *k)
{
	struct canvas c;

	fprintf(f,
		"<h3>Attainment against load</h3>\n<p>Share of latency-critical requests "
		"that kept the SLO of rate %.4g, by rate.</p>\n",
		k->setup.clock.rate);
	line_legend(f, &k->report);
	canvas_svg_begin(&c, f, "chart", "attainment against rate", CHART_WIDTH,
			 CHART_HEIGHT);
	chart_attainment(&c, &k->report, &k->sweep);
	canvas_svg_end(&c);
}

static int units(FILE *f, const struct comparison *k)
{
	const struct hal_device_info *info = &k->report.info;
	int rc = 0;

	fprintf(f,
		"<h3>Units by owner, rate %.4g</h3>\n<p>A band is %u units high and %.9g "
		"s long. Partitions are stacked. Units that worked have the colour of "
		"their task, idle units are grey. A request's work is spread evenly over "
		"the time in which it was served. Borders of partitions are sampled when "
		"a request arrives or ends.</p>\n",
		k->setup.clock.rate, info->unit_rows * info->unit_cols,
		(double)k->report.window_ns / 1e9);
	task_legend(f, k->setup.load);
	for (uint32_t i = 0; rc == 0 && i < k->report.count; i++) {
		struct canvas c;

		if (!k->report.list[i].ran)
			continue;
		fputs("<h4>", f);
		canvas_escaped(f, k->report.list[i].policy->text);
		fputs("</h4>\n", f);
		canvas_svg_begin(&c, f, "chart", "units over time", CHART_WIDTH,
				 CHART_BAND + 2);
		rc = chart_units(&c, &k->report, &k->shown[i], 0);
		canvas_svg_end(&c);
	}
	return rc;
}

static void task_row(FILE *f, const struct comparison *k, uint32_t i, uint32_t task)
{
	const struct task_numbers *t = &k->report.list[i].numbers.tasks[task];
	const struct load_task *of = &k->setup.load->tasks[task];

	fputs("<tr>", f);
	name_cell(f, k->report.list[i].policy->text);
	name_cell(f, of->id);
	cell(f, (double)t->arrived, 0);
	cell(f, report_ms(t, t->p50_ns), 3);
	cell(f, report_ms(t, t->p99_ns), 3);
	cell(f, report_ms(t, t->p999_ns), 3);
	cell(f, report_slo_ns(&k->report, task) / 1e6, 3);
	cell(f, 100 * t->slo, 2);
	cell(f, t->throughput, 2);
	cell(f, t->slowdown, 2);
	fputs("\n", f);
}

static void tasks(FILE *f, const struct comparison *k)
{
	static const char *const names[] = {"policy",  "task",     "requests", "p50 ms",
					    "p99 ms",  "p99.9 ms", "SLO ms",   "met %",
					    "ended/s", "slowdown", NULL};

	fprintf(f, "<details><summary>Tasks, rate %.4g</summary>\n", k->setup.clock.rate);
	headings(f, "tasks", names);
	for (uint32_t i = 0; i < k->report.count; i++)
		for (uint32_t task = 0;
		     k->report.list[i].ran && task < k->setup.load->count; task++)
			task_row(f, k, i, task);
	fputs("</tbody></table></details>\n", f);
}

/* count comparisons of one load; over time only the last of them is shown. */
static int section(FILE *f, const struct comparison *list, uint32_t count)
{
	const struct load *l = list->setup.load;
	const struct comparison *last = &list[count - 1];
	int rc;

	fputs("<h2>", f);
	canvas_escaped(f, l->name);
	fprintf(f,
		"</h2>\n<p>%u tasks, %.9g s; SLO of latency-critical tasks: %u times "
		"their p99 alone.</p>\n",
		l->count, list->setup.clock.window_s, l->count);
	for (uint32_t k = 0; k < count; k++)
		latencies(f, &list[k]);
	for (uint32_t k = 0; k < count; k++)
		if (list[k].sweep.count != 0)
			attainment(f, &list[k]);
	rc = units(f, last);
	for (uint32_t k = 0; k < count; k++)
		tasks(f, &list[k]);
	return rc;
}

/* ---- the page ----------------------------------------------------------------------- */

static const char head[] =
	"<style>body{font:15px/1.45 sans-serif;max-width:1240px;margin:2em "
	"auto;padding:0 1em;color:#222}table{border-collapse:collapse;"
	"font-variant-numeric:tabular-nums;font-size:13px}"
	"td,th{padding:.15em .5em;text-align:right;border-bottom:1px solid #ddd}"
	"th{cursor:pointer;background:#f4f4f4;position:sticky;top:0}"
	"td:first-child,th:first-child{text-align:left}"
	"#policies td:nth-child(3),#policies td:nth-child(4),#tasks "
	"td:nth-child(2){text-align:left}"
	".chart{width:100%;max-width:960px;display:block}.chart "
	"text{font-size:11px;fill:#555}polyline{fill:none;stroke-width:2}"
	".grid{stroke:#ddd;fill:none}.idle{fill:#eee}.legend{font-size:13px}"
	".legend span{margin-right:1em;white-space:nowrap}"
	".key{width:34px;height:10px}.legend "
	"b{display:inline-block;width:14px;height:10px}"
	"h4{margin:.6em 0 .1em;font-size:1em}</style></head><body>\n";

static const char script[] =
	"<script>"
	"document.querySelectorAll('th').forEach(h=>h.onclick=()=>{"
	"const b=h.closest('table').tBodies[0],i=h.cellIndex,"
	"u=h.dataset.up=h.dataset.up=='1'?'0':'1',"
	"v=r=>{const t=r.cells[i].textContent.trim();"
	"return t=='-'?-1:isNaN(t)?t:+t};"
	"const s=(u=='1')==(typeof v(b.rows[0])=='string')?1:-1;"
	"[...b.rows].sort((x,y)=>{const p=v(x),q=v(y);"
	"return(p<q?-1:p>q?1:0)*s}).forEach(r=>b.append(r))});"
	"const rows=[...document.querySelector('#policies').tBodies[0].rows],"
	"boxes=[...document.querySelectorAll('select')],"
	"text=(r,s)=>r.cells[s.dataset.column].textContent.trim();"
	"boxes.forEach(s=>{['all',...new Set(rows.map(r=>text(r,s)))]"
	".forEach(t=>s.add(new Option(t)));"
	"s.onchange=()=>rows.forEach(r=>r.hidden=boxes.some("
	"s=>s.selectedIndex>0&&s.value!=text(r,s)))})"
	"</script>\n";

static void title(FILE *f, const struct comparison *list, uint32_t count)
{
	bool one = list[count - 1].setup.load == list->setup.load;

	canvas_escaped(f, one ? list->setup.load->name : "all loads");
	fputs(": policies compared", f);
}

static void introduction(FILE *f, const struct comparison *c)
{
	const struct setup *s = &c->setup;
	const struct hal_device_info *info = &c->report.info;

	fprintf(f, "<p>Seed %" PRIu64 ", time scale %.9g. Device ", s->clock.seed,
		s->clock.scale);
	canvas_escaped(f, s->target);
	fprintf(f, ", %u units. Engine ", info->unit_rows * info->unit_cols);
	canvas_escaped(f, report_engine(info));
	fputs("; error: ", f);
	canvas_escaped(f, report_error(info));
	fputs(". Models: ", f);
	canvas_escaped(f, c->report.models != NULL ? c->report.models : "built-in table");
	fputs(".</p>\n<p>Written by halbench. Rate 1 is the load as it is (heavy), 0.5 "
	      "the same requests in twice the time (light). docs/halbench.md describes "
	      "the measurements and their limits.</p>\n",
	      f);
}

static int page(FILE *f, const struct comparison *list, uint32_t count)
{
	int rc = 0;

	fputs("<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>",
	      f);
	title(f, list, count);
	fputs("</title>\n", f);
	fputs(head, f);
	fputs("<h1>", f);
	title(f, list, count);
	fputs("</h1>\n", f);
	introduction(f, list);
	policies(f, list, count);
	for (uint32_t from = 0, to; rc == 0 && from < count; from = to) {
		for (to = from + 1; to < count; to++)
			if (list[to].setup.load != list[from].setup.load)
				break;
		rc = section(f, &list[from], to - from);
	}
	fputs(script, f);
	fputs("</body></html>\n", f);
	return rc;
}

int page_write(const struct comparison *list, uint32_t count, const char *path)
{
	FILE *f = fopen(path, "we");
	int bad, rc;

	if (f == NULL)
		return tool_fail("%s: %s", path, hal_strerror(errno));
	rc = page(f, list, count);
	bad = ferror(f);
	bad |= fclose(f);
	if (rc != 0)
		return rc;
	return bad != 0 ? tool_fail("%s: cannot be written", path) : 0;
}

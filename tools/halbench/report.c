/* SPDX-License-Identifier: Apache-2.0 */
/* report.c - a comparison as text, CSV or JSON; see report.h. */
#include "report.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "out.h"
#include "tool.h"

const char *report_engine(const struct hal_device_info *info)
{
	return strcmp(info->backend, "ref") == 0
		       ? "ref: times from the table, no memory, free switches"
		       : info->name;
}

const char *report_error(const struct hal_device_info *info)
{
	static const struct {
		const char *engine, *error;
	} known[] = {
		{"engine rtl", "none: cycle-accurate simulation"},
		{"engine fast", "of cycles npu.fast.cycle_error_max; of requests "
				"bench.rtl_sample.cycle_error_max"},
		{"engine golden", "too few cycles, by npu.golden.cycle_error_max and "
				  "more: use it for results, not for times"},
		{"engine replay",
		 "of cycles npu.replay.cycle_error; of a request alone "
		 "bench.rtl_sample.replay.alone_error_max, of means under "
		 "a policy bench.rtl_sample.replay.mean_error_max"},
	};

	if (strcmp(info->backend, "ref") == 0)
		return "none against its table, which is not of a real machine";
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (strstr(info->name, known[i].engine) != NULL)
			return known[i].error;
	return "unknown";
}

const char *report_remark(const struct compared *c, char buf[REPORT_REMARK])
{
	bool refused = c->why[0] != '\0', noted = c->run.note[0] != '\0';

	if (!refused && !noted)
		return NULL;
	snprintf(buf, REPORT_REMARK, "%s%s%s%s", refused ? "refused: " : "", c->why,
		 refused && noted ? "; " : "", c->run.note);
	return buf;
}

double report_ms(const struct task_numbers *t, uint64_t ns)
{
	return t->arrived != 0 ? (double)ns / 1e6 : NAN;
}

double report_slo_ns(const struct report *r, uint32_t task)
{
	bool has = r->setup->load->tasks[task].critical && r->slo_ns[task] != 0;

	return has ? (double)r->slo_ns[task] : NAN;
}

/* "-" where there is no number. */
static const char *number(double x, int digits, char *buf, size_t len)
{
	if (isnan(x))
		snprintf(buf, len, "-");
	else
		snprintf(buf, len, "%.*f", digits, x);
	return buf;
}

/* ---- text --------------------------------------------------------------------------- */

static void head_text(const struct report *r)
{
	const struct setup *s = r->setup;
	const struct hal_device_info *info = &r->info;

	printf("load     %s: %u tasks, %.9g s", s->load->name, s->load->count,
	       s->clock.window_s);
	if (s->clock.rate != 1 || s->clock.scale != 1)
		printf(" at rate %.9g, scale %.9g: %.9g s", s->clock.rate, s->clock.scale,
		       (double)r->window_ns / 1e9);
	printf("; seed %" PRIu64 "\n", s->clock.seed);
	printf("device   %s: %u units\n", s->target, info->unit_rows * info->unit_cols);
	printf("engine   %s\n", report_engine(info));
	printf("error    %s\n", report_error(info));
	printf("models   %s\n", r->models != NULL ? r->models : "built-in table");
	printf("SLO      of latency-critical tasks: %u times p99 alone\n\n",
	       s->load->count);
}

static void policies_text(const struct report *r)
{
	char b[9][32];

	printf("%-24s %-8s %7s %7s %9s %9s %9s %8s %7s %7s %6s %6s %8s\n", "policy",
	       "layout", "SLO %", "worst", "goodput/s", "effort/s", "total/s", "p99 x",
	       "ANTT", "STP", "Jain", "use %", "preempts");
	for (uint32_t i = 0; i < r->count; i++) {
		const struct compared *c = &r->list[i];
		const struct numbers *n = &c->numbers;

		if (!c->ran) {
			printf("%-24.48s %-8s refused\n", c->policy->text,
			       layout_name(c->run.layout));
			continue;
		}
		printf("%-24.48s %-8s %7s %7s %9s %9s %9s %8s %7s %7s %6s %6.1f %8" PRIu64
		       "\n",
		       c->policy->text, layout_name(c->run.layout),
		       number(100 * n->slo, 2, b[0], sizeof(b[0])),
		       number(100 * n->slo_worst, 2, b[1], sizeof(b[1])),
		       number(n->goodput, 2, b[2], sizeof(b[2])),
		       number(n->be_throughput, 2, b[3], sizeof(b[3])),
		       number(n->total_throughput, 2, b[4], sizeof(b[4])),
		       number(n->p99_ratio, 2, b[5], sizeof(b[5])),
		       number(n->antt, 2, b[6], sizeof(b[6])),
		       number(n->stp, 2, b[7], sizeof(b[7])),
		       number(n->jain, 3, b[8], sizeof(b[8])), 100 * n->use,
		       c->run.stats.suspends);
	}
}

static void remarks_text(const struct report *r)
{
	char b[REPORT_REMARK];

	for (uint32_t i = 0; i < r->count; i++)
		if (report_remark(&r->list[i], b) != NULL)
			printf("%s: %s\n", r->list[i].policy->text, b);
}

static void tasks_text(const struct report *r, const struct compared *c)
{
	const struct load *l = r->setup->load;
	char b[7][32];

	printf("\n%-24.48s %8s %10s %10s %10s %10s %7s %8s %8s\n", c->policy->text,
	       "requests", "p50 ms", "p99 ms", "p99.9 ms", "SLO ms", "met %", "ended/s",
	       "slower x");
	for (uint32_t i = 0; i < l->count; i++) {
		const struct task_numbers *t = &c->numbers.tasks[i];

		printf("%-24.48s %8" PRIu64 " %10s %10s %10s %10s %7s %8s %8s\n",
		       l->tasks[i].id, t->arrived,
		       number(report_ms(t, t->p50_ns), 3, b[4], sizeof(b[4])),
		       number(report_ms(t, t->p99_ns), 3, b[5], sizeof(b[5])),
		       number(report_ms(t, t->p999_ns), 3, b[6], sizeof(b[6])),
		       number(report_slo_ns(r, i) / 1e6, 3, b[0], sizeof(b[0])),
		       number(100 * t->slo, 2, b[1], sizeof(b[1])),
		       number(t->throughput, 2, b[2], sizeof(b[2])),
		       number(t->slowdown, 2, b[3], sizeof(b[3])));
	}
	if (c->run.stats.suspends != 0)
		printf("preemptions took %.3f ms, lost %.3f ms of work\n",
		       (double)c->run.stats.suspend_ns / 1e6,
		       (double)c->run.stats.replayed_ns / 1e6);
	if (c->run.policy.fallback != 0)
		printf("policy gave up: %s; queues are served in order of arrival from "
		       "then on\n",
		       c->run.policy.reason);
}

void report_text(const struct report *r)
{
	head_text(r);
	policies_text(r);
	remarks_text(r);
	for (uint32_t i = 0; i < r->count; i++)
		if (r->list[i].ran)
			tasks_text(r, &r->list[i]);
}

/* ---- CSV ---------------------------------------------------------------------------- */

/* Empty where there is no number. */
static void field(double x)
{
	if (isnan(x))
		printf(",");
	else
		printf(",%.9g", x);
}

static void field_ns(const struct task_numbers *t, uint64_t ns)
{
	if (t->arrived == 0)
		printf(",");
	else
		printf(",%" PRIu64, ns);
}

void report_quoted(FILE *f, const char *text)
{
	(void)fputc('"', f);
	for (; *text != '\0'; text++) {
		if (*text == '"')
			(void)fputc('"', f);
		(void)fputc(*text, f);
	}
	(void)fputc('"', f);
}

static void task_csv(const struct report *r, const struct compared *c, uint32_t i)
{
	const struct load_task *task = &r->setup->load->tasks[i];
	const struct task_numbers *t = &c->numbers.tasks[i];

	report_quoted(stdout, c->policy->text);
	printf(",%s,", layout_name(c->run.layout));
	report_quoted(stdout, task->id);
	printf(",%s,%" PRIu64 ",%" PRIu64, task->critical ? "latency" : "best-effort",
	       t->arrived, t->ended);
	field_ns(t, t->p50_ns);
	field_ns(t, t->p99_ns);
	field_ns(t, t->p999_ns);
	field_ns(t, t->max_ns);
	field(t->mean_ns);
	field(report_slo_ns(r, i));
	field(t->slo);
	field(t->goodput);
	field(t->throughput);
	field(t->p99_ratio);
	field(t->slowdown);
	putchar(',');
	report_quoted(stdout, report_engine(&r->info));
	putchar('\n');
}

void report_csv(const struct report *r)
{
	printf("policy,layout,task,class,arrived,ended,p50_ns,p99_ns,p999_ns,max_ns,"
	       "mean_ns,slo_ns,slo,goodput,throughput,p99_ratio,slowdown,engine\n");
	for (uint32_t i = 0; i < r->count; i++)
		for (uint32_t k = 0; r->list[i].ran && k < r->setup->load->count; k++)
			task_csv(r, &r->list[i], k);
}

/* ---- JSON --------------------------------------------------------------------------- */

static void ns_json(struct out *o, const char *key, const struct task_numbers *t,
		    uint64_t ns)
{
	if (t->arrived == 0)
		out_real(o, key, NAN);
	else
		out_u64(o, key, ns);
}

static void task_json(struct out *o, const struct load_task *task,
		      const struct task_numbers *t, double slo_ns)
{
	out_record(o, NULL);
	out_str(o, "id", task->id);
	out_str(o, "model", task->model);
	out_str(o, "class", task->critical ? "latency" : "best-effort");
	out_str(o, "load", load_type_name(task->type));
	out_u64(o, "arrived", t->arrived);
	out_u64(o, "ended", t->ended);
	ns_json(o, "p50_ns", t, t->p50_ns);
	ns_json(o, "p99_ns", t, t->p99_ns);
	ns_json(o, "p999_ns", t, t->p999_ns);
	ns_json(o, "max_ns", t, t->max_ns);
	out_real(o, "mean_ns", t->mean_ns);
	out_real(o, "slo_ns", slo_ns);
	out_real(o, "slo", t->slo);
	out_real(o, "goodput", t->goodput);
	out_real(o, "throughput", t->throughput);
	out_real(o, "p99_ratio", t->p99_ratio);
	out_real(o, "slowdown", t->slowdown);
	out_record_end(o);
}

static void tasks_json(struct out *o, const char *key, const struct report *r,
		       const struct task_numbers *list, bool slo)
{
	const struct load *l = r->setup->load;

	out_list(o, key);
	for (uint32_t i = 0; i < l->count; i++)
		task_json(o, &l->tasks[i], &list[i], slo ? report_slo_ns(r, i) : NAN);
	out_list_end(o);
}

static void numbers_json(struct out *o, const struct report *r, const struct compared *c)
{
	const struct numbers *n = &c->numbers;
	const struct hal_stats *s = &c->run.stats;
	const struct hal_policy_info *p = &c->run.policy;

	out_real(o, "slo", n->slo);
	out_real(o, "slo_worst", n->slo_worst);
	out_real(o, "goodput", n->goodput);
	out_real(o, "be_throughput", n->be_throughput);
	out_real(o, "total_throughput", n->total_throughput);
	out_real(o, "p99_ratio", n->p99_ratio);
	out_real(o, "antt", n->antt);
	out_real(o, "stp", n->stp);
	out_real(o, "jain", n->jain);
	out_real(o, "use", n->use);
	out_u64(o, "end_ns", c->run.end_ns);
	out_u64(o, "preemptions", s->suspends);
	out_u64(o, "preempt_ns", s->suspend_ns);
	out_u64(o, "preempt_max_ns", s->suspend_max_ns);
	out_u64(o, "replayed", s->replayed);
	out_u64(o, "lost_ns", s->replayed_ns);
	out_u64(o, "saved_bytes", s->saved_bytes);
	out_u64(o, "gave_up", p->fallback);
	out_u64(o, "invalid", p->invalid);
	out_u64(o, "stalls", p->stalls);
	out_u64(o, "starved", p->starved);
	tasks_json(o, "tasks", r, n->tasks, true);
}

static void policy_json(struct out *o, const struct report *r, const struct compared *c)
{
	out_record(o, NULL);
	out_str(o, "policy", c->policy->text);
	out_str(o, "layout", layout_name(c->run.layout));
	if (c->why[0] != '\0')
		out_str(o, "refused", c->why);
	if (c->run.note[0] != '\0')
		out_str(o, "note", c->run.note);
	if (c->ran)
		numbers_json(o, r, c);
	out_record_end(o);
}

void report_record(struct out *o, const struct report *r)
{
	const struct setup *s = r->setup;
	const struct hal_device_info *info = &r->info;

	out_record(o, NULL);
	out_str(o, "load", s->load->name);
	out_real(o, "window_s", s->clock.window_s);
	out_real(o, "rate", s->clock.rate);
	out_real(o, "scale", s->clock.scale);
	out_u64(o, "seed", s->clock.seed);
	out_u64(o, "window_ns", r->window_ns);
	out_str(o, "target", s->target);
	out_str(o, "device", info->name);
	out_str(o, "engine", report_engine(info));
	out_str(o, "error", report_error(info));
	out_u64(o, "units", (uint64_t)info->unit_rows * info->unit_cols);
	out_str(o, "models", r->models != NULL ? r->models : "built-in table");
	tasks_json(o, "alone", r, r->alone, false);
	out_list(o, "policies");
	for (uint32_t i = 0; i < r->count; i++)
		policy_json(o, r, &r->list[i]);
	out_list_end(o);
	out_record_end(o);
}

int report_json(const struct report *r)
{
	struct out *o = out_create();

	if (o == NULL)
		return TOOL_FAILED;
	report_record(o, r);
	return out_finish(o);
}

/* ---- figures ------------------------------------------------------------------------ */

void report_figures(const struct report *r, const char *load)
{
	for (uint32_t i = 0; i < r->count; i++) {
		const struct numbers *n = &r->list[i].numbers;
		const char *name = r->list[i].policy->name;

		if (!r->list[i].ran)
			continue;
		printf("figure bench.real.%s.%s.slo %.6f\n", load, name, n->slo);
		printf("figure bench.real.%s.%s.be_throughput %.3f\n", load, name,
		       n->be_throughput);
		printf("figure bench.real.%s.%s.total_throughput %.3f\n", load, name,
		       n->total_throughput);
		printf("figure bench.real.%s.%s.p99_ratio %.3f\n", load, name,
		       n->p99_ratio);
	}
}

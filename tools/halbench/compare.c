/* SPDX-License-Identifier: Apache-2.0 */
/* compare.c - one load at one rate under several policies; see compare.h. */
#include "compare.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tool.h"

#define PATH_BYTES  4096u
#define REFUSED_WHY 512u

/* ---- before it runs ----------------------------------------------------------------- */

static int check_clock(const struct load_clock *c)
{
	double seconds = c->window_s * c->scale / c->rate;

	if (seconds >= 1e-9 && seconds <= 1e6)
		return 0;
	return tool_fail("%.9g seconds at rate %.9g, scale %.9g; the device time must be "
			 "1 ns to 1e6 s",
			 c->window_s, c->rate, c->scale);
}

int compare_check(const struct setup *s, const double *rates, uint32_t rate_count)
{
	struct load_clock other = s->clock;

	for (uint32_t i = 0; i < s->load->count; i++)
		if (models_find(s->models, s->load->tasks[i].model) == NULL)
			return tool_fail(
				"%s:%u: tasks[%u].client.model_name: \"%s\" is in no "
				"table; choose a table that has it with --models",
				s->load->file, s->load->tasks[i].model_line, i,
				s->load->tasks[i].model);
	if (check_clock(&s->clock) != 0)
		return TOOL_FAILED;
	for (uint32_t k = 0; k < rate_count; k++) {
		other.rate = rates[k];
		if (check_clock(&other) != 0)
			return TOOL_FAILED;
	}
	return 0;
}

double compare_weight(const struct setup *s, uint32_t policies, const double *rates,
		      uint32_t rate_count)
{
	double own = run_weight(s, RUN_ALL) * policies,
	       sum = run_weight(s, RUN_ALL) + own;

	for (uint32_t k = 0; k < rate_count; k++)
		if (rates[k] != s->clock.rate)
			sum += own * s->clock.rate / rates[k];
	return sum;
}

/* static refuses a queue for which it has no slot. */
static void fit_static(struct comparison *c, uint32_t policy_count)
{
	snprintf(c->static_slots, sizeof(c->static_slots), "policy.static_slots=%u",
		 c->setup.load->count);
	for (uint32_t i = 0; i < policy_count; i++) {
		struct policy_spec *p = &c->policies[i];

		if (strcmp(p->name, "static") != 0 || p->option_count != 0)
			continue;
		p->options[0] = c->static_slots;
		p->option_count = 1;
	}
}

/* ---- the runs ----------------------------------------------------------------------- */

static void write_requests(const struct comparison *c, const struct written *w,
			   const char *policy, const struct run *run)
{
	const struct load *l = c->setup.load;

	for (uint32_t i = 0; w->requests != NULL && i < l->count; i++)
		for (uint32_t k = 0; k < run->tasks[i].count; k++) {
			const struct request *q = &run->tasks[i].requests[k];

			report_quoted(w->requests, policy);
			(void)fputc(',', w->requests);
			report_quoted(w->requests, l->tasks[i].id);
			fprintf(w->requests, ",%u,%" PRIu64 ",%" PRIu64 "\n", k,
				q->arrive_ns, q->end_ns);
		}
}

/* Each task with the device to itself, in order of arrival: what it is compared with. */
static int run_alone(struct comparison *c, const struct written *w)
{
	const struct policy_spec fifo = {
		.text = "alone", .name = "fifo", .layout = LAYOUT_SHARED};
	const struct load *l = c->setup.load;
	struct report *r = &c->report;
	struct run run;
	int rc = 0;

	for (uint32_t i = 0; rc == 0 && i < l->count; i++) {
		rc = run_load(&c->setup, &fifo, i, NULL, NULL, NULL, &run);
		if (rc == 0)
			rc = task_measure(&run.tasks[i], run.window_ns, 0, NULL,
					  &r->alone[i]);
		write_requests(c, w, fifo.text, &run);
		run_free(&c->setup, &run);
		r->info = run.info;
		r->window_ns = run.window_ns;
		r->alone[i].throughput = NAN; /* closed loops alone are cut short */
		r->slo_ns[i] = l->count * r->alone[i].p99_ns;
	}
	return rc;
}

/* Periodic tasks of one frequency begin one behind the other, each after what those
 * before it run alone. */
static void stagger(const struct load *l, const struct report *r, uint64_t *begin_ns)
{
	for (uint32_t i = 0; i < l->count; i++)
		for (uint32_t k = 0; k < i; k++)
			if (l->tasks[i].type == LOAD_PERIODIC && l->tasks[i].staggered &&
			    l->tasks[k].type == LOAD_PERIODIC && l->tasks[k].staggered &&
			    l->tasks[i].frequency == l->tasks[k].frequency)
				begin_ns[i] += r->alone[k].p50_ns;
}

/* The policy, or the device under it, refuses: the others are run all the same. */
static void refuse(struct comparison *c, uint32_t i, const char *why, double rate)
{
	struct compared *into = &c->report.list[i];

	if (rate == c->setup.clock.rate)
		snprintf(into->why, sizeof(into->why), "%s", why);
	else if (into->why[0] == '\0')
		snprintf(into->why, sizeof(into->why), "at rate %.9g: %s", rate, why);
	tool_note("%s at rate %.9g, %s: refused: %s", c->setup.load->name, rate,
		  into->policy->text, why);
	c->report.refused++;
}

static int keep_run(const struct setup *s, const struct policy_spec *p,
		    const uint64_t *begin_ns, const uint64_t *slo_ns, const char *trace,
		    struct run *run, char why[REFUSED_WHY])
{
	int rc;

	tool_keep(why, REFUSED_WHY);
	rc = run_load(s, p, RUN_ALL, begin_ns, slo_ns, trace, run);
	tool_keep(NULL, 0);
	return rc;
}

/* A file that cannot be written is no fault of a policy. */
static int check_trace(const char *path)
{
	FILE *f = fopen(path, "we");

	if (f == NULL)
		return tool_fail("%s: %s", path, hal_strerror(errno));
	(void)fclose(f);
	return 0;
}

static int run_policy(struct comparison *c, uint32_t i, const uint64_t *begin_ns,
		      const struct written *w)
{
	struct report *r = &c->report;
	struct compared *into = &r->list[i];
	char trace[PATH_BYTES], why[REFUSED_WHY];
	int rc = 0;

	into->policy = &c->policies[i];
	r->count++;
	if (w->trace != NULL) {
		snprintf(trace, sizeof(trace), "%s-%u-%s.json", w->trace, i + 1,
			 into->policy->name);
		rc = check_trace(trace);
	}
	if (rc != 0)
		return rc;
	into->ran = keep_run(&c->setup, into->policy, begin_ns, r->slo_ns,
			     w->trace != NULL ? trace : NULL, &into->run, why) == 0;
	if (!into->ran) {
		refuse(c, i, why, c->setup.clock.rate);
		run_free(&c->setup, &into->run);
		return 0;
	}
	rc = run_measure(&c->setup, &into->run, r->slo_ns, r->alone, &into->numbers);
	if (rc == 0 && c->shown != NULL)
		rc = shown_take(&c->setup, &into->run, r->slo_ns, &c->shown[i]);
	write_requests(c, w, into->policy->text, &into->run);
	run_free(&c->setup, &into->run);
	return rc;
}

/* All policies at one of the rates, by the SLO of the comparison. */
static int run_rate(struct comparison *c, uint32_t k, const uint64_t *begin_ns)
{
	const struct report *r = &c->report;
	struct setup s = c->setup;
	int rc = 0;

	s.clock.rate = c->sweep.rates[k];
	if (s.progress != NULL)
		s.progress->rate = s.clock.rate;
	for (uint32_t i = 0; rc == 0 && i < r->count; i++) {
		double *slo = &c->sweep.slo[(size_t)i * c->sweep.count + k];
		struct numbers n = {.slo = NAN};
		char why[REFUSED_WHY];
		struct run run;

		*slo = r->list[i].ran ? r->list[i].numbers.slo : NAN;
		if (!r->list[i].ran || s.clock.rate == c->setup.clock.rate)
			continue;
		if (keep_run(&s, &c->policies[i], begin_ns, r->slo_ns, NULL, &run, why) !=
		    0)
			refuse(c, i, why, s.clock.rate);
		else
			rc = run_measure(&s, &run, r->slo_ns, r->alone, &n);
		*slo = n.slo;
		numbers_free(&n);
		run_free(&s, &run);
	}
	return rc;
}

static int run_all(struct comparison *c, uint32_t policy_count, const struct written *w)
{
	uint64_t *begin_ns = calloc(c->setup.load->count, sizeof(*begin_ns));
	int rc;

	if (begin_ns == NULL)
		return tool_fail("out of memory");
	if (c->setup.progress != NULL) {
		c->setup.progress->load = c->setup.load->name;
		c->setup.progress->rate = c->setup.clock.rate;
	}
	rc = run_alone(c, w);
	if (rc == 0)
		stagger(c->setup.load, &c->report, begin_ns);
	for (uint32_t i = 0; rc == 0 && i < policy_count; i++)
		rc = run_policy(c, i, begin_ns, w);
	for (uint32_t k = 0; rc == 0 && k < c->sweep.count; k++)
		rc = run_rate(c, k, begin_ns);
	free(begin_ns);
	return rc;
}

int compare(struct comparison *c, const struct setup *s,
	    const struct policy_spec *policies, uint32_t policy_count,
	    const double *rates, uint32_t rate_count, bool shown,
	    const struct written *written)
{
	uint32_t tasks = s->load->count;
	struct report *r = &c->report;

	memset(c, 0, sizeof(*c));
	c->setup = *s;
	r->setup = &c->setup;
	r->alone = calloc(tasks, sizeof(*r->alone));
	r->slo_ns = calloc(tasks, sizeof(*r->slo_ns));
	r->list = calloc(policy_count, sizeof(*r->list));
	c->policies = calloc(policy_count, sizeof(*c->policies));
	c->sweep.slo = calloc((size_t)policy_count * rate_count + 1, sizeof(double));
	if (shown)
		c->shown = calloc(policy_count, sizeof(*c->shown));
	if (r->alone == NULL || r->slo_ns == NULL || r->list == NULL ||
	    c->policies == NULL || c->sweep.slo == NULL || (shown && c->shown == NULL))
		return tool_fail("out of memory");
	memcpy(c->policies, policies, policy_count * sizeof(*policies));
	fit_static(c, policy_count);
	c->sweep.count = rate_count;
	for (uint32_t k = 0; k < rate_count; k++)
		c->sweep.rates[k] = rates[k];
	return run_all(c, policy_count, written);
}

void comparison_free(struct comparison *c)
{
	for (uint32_t i = 0; i < c->report.count; i++) {
		numbers_free(&c->report.list[i].numbers);
		if (c->shown != NULL)
			shown_free(&c->shown[i]);
	}
	free(c->report.alone);
	free(c->report.slo_ns);
	free(c->report.list);
	free(c->policies);
	free(c->shown);
	free(c->sweep.slo);
	memset(c, 0, sizeof(*c));
}

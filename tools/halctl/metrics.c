/* SPDX-License-Identifier: Apache-2.0 */
/*
 * metrics.c - halctl metrics: the counters of a hald, in the text format of Prometheus,
 * version 0.0.4.
 *
 * Every sample has the label device, NAME of hald:NAME, so that samples of several halds
 * can be put together.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "live.h"
#include "served.h"

/* Bounds of the histogram's buckets are 2^(i + 1) ns: from 1 us to 69 s. */
enum { BUCKET_FIRST = 9, BUCKET_LAST = 35 };

struct metrics {
	const struct json *status;
	char device[64]; /* label, escaped */
};

/* Write text to out, escaped as the value of a label; what does not fit is cut. */
static void label(char *out, size_t size, const char *text)
{
	size_t n = 0;

	for (; *text != '\0' && n + 3 <= size; text++) {
		if (*text == '\\' || *text == '"' || *text == '\n')
			out[n++] = '\\';
		out[n++] = (char)(*text == '\n' ? 'n' : *text);
	}
	out[n] = '\0';
}

static const char *text_of(const struct json *object, const char *key)
{
	const struct json *v = json_member(object, key);

	return v != NULL && v->type == JSON_TEXT ? v->text : "";
}

static void head(const char *name, const char *type, const char *help)
{
	printf("# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

/* The labels of a sample of tenant t. */
struct labels {
	char text[256];
};

static struct labels labels_of(const struct metrics *m, const struct json *t)
{
	struct labels l;
	char tenant[96];

	label(tenant, sizeof(tenant), text_of(t, "name"));
	snprintf(l.text, sizeof(l.text), "device=\"%s\",tenant=\"%s\"", m->device,
		 tenant);
	return l;
}

static const struct json *tenants(const struct metrics *m)
{
	return served_list(m->status, "tenants");
}

/* ---- a number of each tenant ---------------------------------------------------------- */

/* A family whose sample is member key of a tenant, or of its member `in`, a count or
 * ns. */
struct family {
	const char *name, *type, *in, *key;
	bool in_ns;
	const char *help;
};

static void print_family(const struct metrics *m, const struct family *f)
{
	head(f->name, f->type, f->help);
	for (const struct json *t = tenants(m); t != NULL; t = t->next) {
		const struct json *from = f->in != NULL ? json_member(t, f->in) : t;

		printf("%s{%s} %.*f\n", f->name, labels_of(m, t).text, f->in_ns ? 9 : 0,
		       live_number(from, f->key) / (f->in_ns ? 1e9 : 1));
	}
}

static void print_clients(const struct metrics *m)
{
	head("hald_clients", "gauge", "Clients, without the one that asks.");
	for (const struct json *t = tenants(m); t != NULL; t = t->next) {
		uint32_t count = 0;

		for (const struct json *c = served_list(t, "clients"); c != NULL;
		     c = c->next)
			count += !served_truth(c, "self");
		printf("hald_clients{%s} %u\n", labels_of(m, t).text, count);
	}
}

/* Print a family with a sample for each member of a tenant's member `in`. */
static void print_by(const struct metrics *m, const char *name, const char *in,
		     const char *by, const char *help)
{
	head(name, "counter", help);
	for (const struct json *t = tenants(m); t != NULL; t = t->next) {
		const struct json *from = json_member(t, in);

		for (const struct json *e = from->first; e != NULL; e = e->next) {
			char value[64];

			label(value, sizeof(value), e->key);
			printf("%s{%s,%s=\"%s\"} %.0f\n", name, labels_of(m, t).text, by,
			       value, live_number(from, e->key));
		}
	}
}

/* ---- submissions ---------------------------------------------------------------------- */

/* Return the number of submissions in the buckets of t up to that one. */
static double requests_up_to(const struct json *t, uint32_t bucket)
{
	const struct json *list = json_member(t, "requests");
	const struct json *e =
		list != NULL && list->type == JSON_LIST ? list->first : NULL;
	double sum = 0;

	for (; e != NULL && e->index <= bucket; e = e->next)
		if (e->type == JSON_NUMBER)
			sum += e->number;
	return sum;
}

static void print_submissions(const struct metrics *m)
{
	static const char name[] = "hald_submission_seconds";

	head(name, "histogram",
	     "Device time of submissions that ended without error, from submission to "
	     "end; the sum is at most 1 % off.");
	for (const struct json *t = tenants(m); t != NULL; t = t->next) {
		const struct labels l = labels_of(m, t);
		double all = requests_up_to(t, UINT32_MAX);

		for (uint32_t i = BUCKET_FIRST; i <= BUCKET_LAST; i++)
			printf("%s_bucket{%s,le=\"%.9g\"} %.0f\n", name, l.text,
			       (double)(UINT64_C(2) << i) / 1e9, requests_up_to(t, i));
		printf("%s_bucket{%s,le=\"+Inf\"} %.0f\n", name, l.text, all);
		printf("%s_sum{%s} %.9f\n", name, l.text,
		       live_number(t, "request_ns") / 1e9);
		printf("%s_count{%s} %.0f\n", name, l.text, all);
	}
	head("hald_submissions_total", "counter",
	     "Submissions that ended without error.");
	for (const struct json *t = tenants(m); t != NULL; t = t->next)
		printf("hald_submissions_total{%s} %.0f\n", labels_of(m, t).text,
		       requests_up_to(t, UINT32_MAX));
}

/* ---- the device ----------------------------------------------------------------------- */

static void print_device(const struct metrics *m)
{
	const struct json *d = json_member(m->status, "device");

	head("hald_start_time_seconds", "gauge", "When hald started, in Unix time.");
	printf("hald_start_time_seconds{device=\"%s\"} %.0f\n", m->device,
	       live_number(d, "start_s"));
	head("hald_lost", "gauge", "1 if the device is lost, else 0.");
	printf("hald_lost{device=\"%s\"} %d\n", m->device, served_truth(d, "lost"));
	head("hald_policy_fallback", "gauge",
	     "1 if the policy has been given up for order of arrival, else 0.");
	printf("hald_policy_fallback{device=\"%s\"} %d\n", m->device,
	       served_truth(d, "policy_fallback"));
	head("hald_ticks_late_total", "counter",
	     "Requests that have missed their tick (hald --tick).");
	printf("hald_ticks_late_total{device=\"%s\"} %.0f\n", m->device,
	       live_number(d, "ticks_late"));
}

static void print_metrics(const struct json *status)
{
	static const struct family families[] = {
		{"hald_busy_seconds_total", "counter", NULL, "busy_ns", true,
		 "Device time in which partitions ran something, summed over them."},
		{"hald_units", "gauge", "has", "units", false,
		 "Units of all partitions, ceilings included."},
		{"hald_memory_bytes", "gauge", "has", "memory", false,
		 "Memory quotas of all partitions."},
		{"hald_commands_total", "counter", NULL, "submitted", false,
		 "Commands that were submitted."},
		{"hald_failed_total", "counter", NULL, "failed", false,
		 "Commands that have failed."},
		{"hald_deadline_misses_total", "counter", NULL, "deadline_misses", false,
		 "Deadlines that were missed."},
	};
	struct metrics m = {.status = status};

	label(m.device, sizeof(m.device),
	      text_of(json_member(status, "device"), "served"));
	for (size_t i = 0; i < sizeof(families) / sizeof(families[0]); i++)
		print_family(&m, &families[i]);
	print_clients(&m);
	print_submissions(&m);
	print_by(&m, "hald_refused_total", "refused", "errno",
		 "Requests that were refused, by error.");
	print_by(&m, "hald_ended_total", "ended", "why", "Clients that have ended.");
	print_device(&m);
}

int halctl_metrics(const struct halctl *ctl)
{
	char why[JSON_WHY] = "";
	struct json *status;
	struct served s;
	int rc = served_open(ctl, "metrics", &s);

	if (rc != 0)
		return rc;
	status = served_status(&s, NULL, why);
	if (status != NULL)
		print_metrics(status);
	else
		rc = tool_fail("%s", why);
	json_free(status);
	return served_close(&s, rc);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* ps.c - halctl ps: the clients of a hald, a line each. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "live.h"
#include "served.h"
#include "words.h"

static const char format[] = "%-8s %-16.16s %-12.12s %6s %9s %7s %6s %8s %8s %7s";

/* Write the classes of c's queues to text, as latency+normal; "-": it has no queues. */
static void classes_text(const struct json *c, char *text, size_t size)
{
	const struct json *list = json_member(c, "classes");
	size_t used = 0;

	snprintf(text, size, "-");
	if (list == NULL || list->type != JSON_LIST)
		return;
	for (const struct json *e = list->first; e != NULL && used < size; e = e->next)
		if (e->type == JSON_TEXT)
			used += (size_t)snprintf(text + used, size - used, "%s%s",
						 used > 0 ? "+" : "", e->text);
}

/* Return the client in the status `before` that has the number of c; NULL: none. */
static const struct json *client_before(const struct json *before, const struct json *c)
{
	for (const struct json *t = served_list(before, "tenants"); t != NULL;
	     t = t->next)
		for (const struct json *e = served_list(t, "clients"); e != NULL;
		     e = e->next)
			if (live_number(e, "number") == live_number(c, "number"))
				return e;
	return NULL;
}

/* Return the share of device time in which partitions of c ran something: since `old`, or
 * since c came.  Several partitions together may exceed 100. */
static struct words use_text(const struct json *c, const struct json *old)
{
	double time = live_number(c, "age_ns"), busy = live_number(c, "busy_ns");
	struct words w = {"-"};

	if (old != NULL) {
		time -= live_number(old, "age_ns");
		busy -= live_number(old, "busy_ns");
	}
	if (time > 0)
		snprintf(w.text, sizeof(w.text), "%.1f", 100 * fmax(busy / time, 0));
	return w;
}

static void client_line(char line[PS_LINE], const struct json *tenant,
			const struct json *c, const struct json *before)
{
	char name[32], classes[64], pid[16], units[16], queues[16];
	double p50 = live_number(c, "p50_ns"), p99 = live_number(c, "p99_ns");

	classes_text(c, classes, sizeof(classes));
	snprintf(pid, sizeof(pid), "%.0f", live_number(c, "pid"));
	snprintf(units, sizeof(units), "%.0f", live_number(c, "units"));
	snprintf(queues, sizeof(queues), "%.0f", live_number(c, "queues"));
	snprintf(line, PS_LINE, format, pid,
		 live_text(tenant, "name", name, sizeof(name)), classes, units,
		 bytes_text(live_number(c, "memory")).text, queues,
		 use_text(c, client_before(before, c)).text,
		 p50 > 0 ? time_text(p50).text : "-", p99 > 0 ? time_text(p99).text : "-",
		 count_text(live_number(c, "deadline_misses")).text);
}

static void head_line(char line[PS_LINE])
{
	snprintf(line, PS_LINE, format, "PID", "TENANT", "CLASS", "UNITS", "MEMORY",
		 "QUEUES", "USED%", "P50", "P99", "MISSES");
}

static int print_clients(const struct json *status)
{
	char line[PS_LINE];

	head_line(line);
	printf("%s\n", line);
	for (const struct json *t = served_list(status, "tenants"); t != NULL;
	     t = t->next)
		for (const struct json *c = served_list(t, "clients"); c != NULL;
		     c = c->next) {
			if (served_truth(c, "self"))
				continue;
			client_line(line, t, c, NULL);
			printf("%s\n", line);
		}
	return 0;
}

/* ---- for halctl top ------------------------------------------------------------------- */

static uint32_t draw_device(struct sheet *s, uint32_t row, const struct json *now)
{
	const struct json *d = json_member(now, "device");
	char served[32], name[64], policy[32];

	sheet_put(s, row, 0, SHEET_PLAIN, "hald:%s  %s, policy %s%s  %.0f units, %s free",
		  live_text(d, "served", served, sizeof(served)),
		  live_text(d, "name", name, sizeof(name)),
		  live_text(d, "policy", policy, sizeof(policy)),
		  served_truth(d, "policy_fallback") ? " (given up)" : "",
		  live_number(d, "units"),
		  bytes_text(live_number(d, "memory_free")).text);
	if (served_truth(d, "lost"))
		sheet_put(s, row + 1, 0, SHEET_WARN, "the device is lost");
	return row + 2;
}

uint32_t ps_draw(struct sheet *s, uint32_t row, const struct json *now,
		 const struct json *before)
{
	char line[PS_LINE];

	row = draw_device(s, row, now) + 1;
	head_line(line);
	sheet_put(s, row++, 0, SHEET_HEAD, "%s", line);
	for (const struct json *t = served_list(now, "tenants"); t != NULL; t = t->next)
		for (const struct json *c = served_list(t, "clients"); c != NULL;
		     c = c->next) {
			if (served_truth(c, "self"))
				continue;
			client_line(line, t, c, before);
			sheet_put(s, row++, 0,
				  live_number(c, "deadline_misses") > 0 ? SHEET_WARN
									: SHEET_PLAIN,
				  "%s", line);
		}
	return row;
}

int halctl_ps(const struct halctl *ctl)
{
	char why[JSON_WHY] = "", *text = NULL;
	struct json *status;
	struct served s;
	int rc = served_open(ctl, "ps", &s);

	if (rc != 0)
		return rc;
	status = served_status(&s, &text, why);
	if (status == NULL)
		rc = tool_fail("%s", why);
	else if (ctl->json)
		printf("%s\n", text);
	else
		rc = print_clients(status);
	free(text);
	json_free(status);
	return served_close(&s, rc);
}

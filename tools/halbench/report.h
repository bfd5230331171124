/* SPDX-License-Identifier: Apache-2.0 */
/* report.h - a comparison as text, CSV or JSON. */
#ifndef BENCH_REPORT_H
#define BENCH_REPORT_H

#include <stdio.h>

#include "metrics.h"
#include "out.h"

#define REPORT_WHY    640u
#define REPORT_REMARK (REPORT_WHY + RUN_NOTE + 16u)

struct compared {
	const struct policy_spec *policy;
	bool ran;
	char why[REPORT_WHY]; /* it was refused, "" if it was not; or at another rate */
	struct run run;       /* without its requests */
	struct numbers numbers;
};

struct report {
	const struct setup *setup;
	const char *models; /* the file, or NULL */
	struct hal_device_info info;
	uint64_t window_ns;
	struct task_numbers *alone;
	uint64_t *slo_ns;
	struct compared *list;
	uint32_t count, refused;
};

/* What must be known of a device to believe its times. */
const char *report_engine(const struct hal_device_info *info);
/* How far its times are off. */
const char *report_error(const struct hal_device_info *info);

/* What there is to say of a policy beside its numbers, as one line; NULL: nothing. */
const char *report_remark(const struct compared *c, char buf[REPORT_REMARK]);
/* ns in milliseconds; NAN of a task without requests. */
double report_ms(const struct task_numbers *t, uint64_t ns);
/* NAN: it has none. */
double report_slo_ns(const struct report *r, uint32_t task);

void report_text(const struct report *r);
/* As CSV has it, whatever is in it. */
void report_quoted(FILE *f, const char *text);
void report_csv(const struct report *r);
int report_json(const struct report *r); /* 0 or TOOL_FAILED */
/* The same as one record of others. */
void report_record(struct out *o, const struct report *r);
/* "figure bench.real.<load>.<P>..." for make figures; load: heavy or light. */
void report_figures(const struct report *r, const char *load);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* report.h - a comparison as text, CSV or JSON. */
#ifndef BENCH_REPORT_H
#define BENCH_REPORT_H

#include <stdio.h>

#include "metrics.h"
#include "out.h"

struct compared {
	const struct policy_spec *policy;
	struct run run; /* without its requests */
	struct numbers numbers;
};

struct report {
	const struct setup *setup;
	const char *models; /* the file, or NULL */
	struct task_numbers *alone;
	uint64_t *slo_ns;
	struct compared *list;
	uint32_t count;
};

/* What must be known of a device to believe its times. */
const char *report_engine(const struct run *r);
/* How far its times are off. */
const char *report_error(const struct run *r);

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

/* SPDX-License-Identifier: Apache-2.0 */
/* chart.h - latencies, attainment against load, units by task over time. */
#ifndef BENCH_CHART_H
#define BENCH_CHART_H

#include <stdbool.h>

#include "canvas.h"
#include "report.h"

#define CHART_BINS      120u
#define CHART_QUANTILES 100u
#define CHART_RATES_MAX 16u

#define CHART_WIDTH     720.0
#define CHART_HEIGHT    260.0
#define CHART_BAND      110.0 /* of a policy's units over time */

/* Of one policy's run, what its requests are needed for. */
struct shown {
	/* Latency over SLO that k of CHART_QUANTILES latency-critical requests did not
	 * exceed. */
	double quantiles[CHART_QUANTILES + 1];
	bool critical; /* there were such */
	double *units; /* [task][CHART_BINS]: that worked for it, while the load lasted */
	double *owned; /* [part_count][CHART_BINS]: that a partition had */
	uint32_t *parts; /* of each task: its partition */
	uint32_t part_count;
};

/* 0 or TOOL_FAILED. */
int shown_take(const struct setup *s, const struct run *r, const uint64_t *slo_ns,
	       struct shown *out);
void shown_free(struct shown *s);

/* Attainment at other rates; count 0: none. */
struct sweep {
	double rates[CHART_RATES_MAX];
	uint32_t count;
	double *slo; /* [policy][count] */
};

/* Each CHART_WIDTH wide and CHART_HEIGHT high, from (0, 0). */
void chart_latencies(struct canvas *c, const struct report *r, const struct shown *shown);
void chart_attainment(struct canvas *c, const struct report *r, const struct sweep *s);
/* One policy's: CHART_BAND high, from y on; each partition's units upon those of the ones
 * before it, those that work in their task's colour, the rest in CANVAS_IDLE's.  0 or
 * TOOL_FAILED. */
int chart_units(struct canvas *c, const struct report *r, const struct shown *shown,
		double y);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* page.h - a comparison as a page that needs no network. */
#ifndef BENCH_PAGE_H
#define BENCH_PAGE_H

#include "report.h"

#define PAGE_BINS      120u
#define PAGE_QUANTILES 100u
#define PAGE_RATES_MAX 16u

/* Of one policy's run, what its requests are needed for. */
struct shown {
	/* Latency over SLO that k of PAGE_QUANTILES latency-critical requests did not
	 * exceed. */
	double quantiles[PAGE_QUANTILES + 1];
	bool critical; /* there were such */
	double *units; /* [task][PAGE_BINS]: that worked for it, while the load lasted */
};

/* 0 or TOOL_FAILED. */
int shown_take(const struct setup *s, const struct run *r, const uint64_t *slo_ns,
	       struct shown *out);
void shown_free(struct shown *s);

/* Attainment at other rates; count 0: none. */
struct sweep {
	double rates[PAGE_RATES_MAX];
	uint32_t count;
	double *slo; /* [policy][count] */
};

int page_write(const struct report *r, const struct shown *shown,
	       const struct sweep *sweep, const char *path);

#endif

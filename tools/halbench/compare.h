/* SPDX-License-Identifier: Apache-2.0 */
/* compare.h - one load at one rate under several policies. */
#ifndef BENCH_COMPARE_H
#define BENCH_COMPARE_H

#include <stdio.h>

#include "chart.h"

/* What is written while it runs; all 0: nothing. */
struct written {
	FILE *requests;
	const char *trace; /* how the names of traces begin */
};

struct comparison {
	struct setup setup;   /* of what is reported; its load is the caller's */
	struct report report; /* .refused: so often a policy, or the device under it */
	struct policy_spec *policies; /* as they are run */
	char static_slots[48];
	struct shown *shown; /* a policy */
	struct sweep sweep;
};

/* The models of the load are there, the window is no longer than it: for --window. */
int compare_check(const struct setup *s, const double *rates, uint32_t rate_count);
/* The device time that it will run, for struct progress. */
double compare_weight(const struct setup *s, uint32_t policies, const double *rates,
		      uint32_t rate_count);
/* A policy that is refused is none of its failures: that is in the report, and the others
 * run.  rates: of the sweep, which needs .shown; shown: units and latencies are kept. All
 * that it is given stays until it is freed, also after TOOL_FAILED. */
int compare(struct comparison *c, const struct setup *s,
	    const struct policy_spec *policies, uint32_t policy_count,
	    const double *rates, uint32_t rate_count, bool shown,
	    const struct written *written);
void comparison_free(struct comparison *c);

#endif

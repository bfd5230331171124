/* SPDX-License-Identifier: Apache-2.0 */
/* metrics.h - what a run was like, in numbers. */
#ifndef BENCH_METRICS_H
#define BENCH_METRICS_H

#include <stdint.h>

#include "run.h"

/* Times in ns of device time, rates a second of it; NAN where there is no such number. */
struct task_numbers {
	uint64_t arrived, ended; /* ended: while the load lasted */
	uint64_t met;            /* of those that arrived, within the SLO */
	uint64_t p50_ns, p99_ns, p999_ns, max_ns;
	double mean_ns;
	double throughput; /* those that ended while the load lasted */
	/* Of latency-critical tasks: */
	double slo;     /* share that met it */
	double goodput; /* those that met it */
	/* Beside the same task alone: */
	double p99_ratio, slowdown; /* slowdown: of the means */
};

struct numbers {
	struct task_numbers *tasks;
	double slo, slo_worst; /* of all latency-critical requests; of the worst task */
	double goodput, be_throughput, total_throughput;
	double p99_ratio; /* of the worst latency-critical task */
	double antt, stp, jain;
	double use; /* work that was done, of all that the units could have done */
};

/* p in thousandths: the least value that so many of the sorted do not exceed; 0: none. */
uint64_t percentile(const uint64_t *sorted, uint32_t count, uint32_t p);

/* One task; slo_ns 0: none; alone: NULL, or its own numbers alone.  0 or TOOL_FAILED. */
int task_measure(const struct task_run *t, uint64_t window_ns, uint64_t slo_ns,
		 const struct task_numbers *alone, struct task_numbers *n);
/* All of a load. */
int run_measure(const struct setup *s, const struct run *r, const uint64_t *slo_ns,
		const struct task_numbers *alone, struct numbers *n);
void numbers_free(struct numbers *n);

#endif

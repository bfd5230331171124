/* SPDX-License-Identifier: Apache-2.0 */
/* run.h - a load, or one task of it alone, on a device under a policy. */
#ifndef BENCH_RUN_H
#define BENCH_RUN_H

#include <stdbool.h>
#include <stdint.h>

#include <hal/hal.h>

#include "load.h"
#include "models.h"

/* Whose partitions there are. */
enum layout {
	LAYOUT_DEFAULT, /* what suits the policy */
	LAYOUT_SHARED,  /* one of all units, a queue a task */
	LAYOUT_HALVES,  /* one a class, fixed, as large as each other */
	LAYOUT_SPLIT,   /* one a task, fixed, as large as each other */
	LAYOUT_CLASSES, /* one a class, elastic: from one unit to all but the others' one
			 */
	LAYOUT_TENANTS, /* one a task, elastic */
	LAYOUTS,
};

const char *layout_name(enum layout layout);

/* Whose memory channels a partition has. */
enum colors {
	COLORS_DEFAULT, /* what suits the policy */
	COLORS_OWN,     /* an equal part of them, that no other has */
	COLORS_ANY,     /* all, as all others */
};

#define POLICY_OPTIONS_MAX 16u
#define RUN_NOTE           512u

struct policy_spec {
	const char *text; /* as it was said: name:key=value:key=value */
	char name[64];
	enum layout layout;
	bool classes; /* queues say their service class, too */
	enum colors colors;
	/* "policy.key=value" */
	char *options[POLICY_OPTIONS_MAX];
	uint32_t option_count;
};

/* How far all runs together are; told on standard error. */
struct progress {
	double began, told; /* wall; 0: nothing yet */
	double done, all;   /* device time, of all runs */
	const char *load;
	double rate;
};

/* What is the same for all runs. */
struct setup {
	const struct load *load;
	const struct models *models;
	struct load_clock clock;
	const char *target;
	const char *const *options; /* of the caller's; the last of them is NULL */
	struct progress *progress;  /* NULL: nothing is told */
};

struct request {
	uint64_t arrive_ns, end_ns; /* device time since the run began */
};

struct task_run {
	struct request *requests; /* of those that arrived, all have ended */
	uint32_t count;
	uint64_t work; /* of a request: a unit's ns, or multiply-accumulates */
};

/* A partition has so many units from then on. */
struct border {
	uint64_t at_ns;
	uint32_t part, units;
};

struct run {
	struct task_run *tasks;
	uint32_t *parts; /* of each task: its partition */
	uint32_t part_count;
	struct border *borders; /* as they were when something arrived or ended */
	uint32_t border_count;
	uint64_t window_ns, end_ns;
	struct hal_stats stats; /* of the device, at the end */
	struct hal_policy_info policy;
	struct hal_device_info info;
	enum layout layout;
	char note[RUN_NOTE]; /* what is not as it mostly is for the policy */
};

#define RUN_ALL UINT32_MAX

/* only: a task's index, which then has the device alone, or RUN_ALL.  begin_ns, slo_ns:
 * of each task, or NULL; slo_ns is the deadline of what is latency-critical.  trace: a
 * file or NULL.  0 or TOOL_FAILED; .layout and .note are there either way. */
int run_load(const struct setup *s, const struct policy_spec *policy, uint32_t only,
	     const uint64_t *begin_ns, const uint64_t *slo_ns, const char *trace,
	     struct run *run);
/* How much of struct progress it is. */
double run_weight(const struct setup *s, uint32_t only);
/* Requests and borders; the rest stays. */
void run_free(const struct setup *s, struct run *run);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* explain.h - halrun --explain: where the cycles of each layer go. */
#ifndef NPUC_EXPLAIN_H
#define NPUC_EXPLAIN_H

#include <hal/npu.h>

#include "device.h"
#include "feed.h"

/* The columns: why the device spent a cycle.  Each cycle has one cause. */
enum cause {
	CAUSE_FULL,      /* MACs / PEs, rounded up: cycles if all PEs had multiplied */
	CAUSE_DEPTHWISE, /* a row of activations, PEs idle: the layer is depthwise */
	CAUSE_PARTIAL,   /* a row of activations, PEs idle: K or N do not fill them */
	CAUSE_VECTOR,    /* the vector unit works */
	CAUSE_INPUT,     /* a fold waits for activations */
	CAUSE_WEIGHTS,   /* a fold waits for weights or parameters */
	CAUSE_ENTRY,     /* weights enter the array, and no row is there to hide it */
	CAUSE_STORES,    /* outputs wait for memory */
	CAUSE_START,     /* all others: start of a launch, gaps between operations */
	CAUSES
};

/* What the device counted of one launch, alone in its partition. */
struct explain_launch {
	struct hal_npu_counters before, after;
	uint64_t cycles; /* of the launch, as halrun prints them */
	uint64_t tail;   /* of these, after its last fold; 0: it has no folds */
};

struct explain_cycles {
	uint64_t macs, cycles;
	uint64_t of[CAUSES]; /* their sum is cycles */
};

/* Divide the cycles of a launch on rows x cols PEs among causes.  parts: DEPTHWISE and
 * ENTRY of its layers, since counters do not say which layer a cycle belongs to; both are
 * cut to what the launch has.  Return 0, or -1 if the counters contradict each other. */
int explain_divide(const struct explain_launch *l, uint32_t rows, uint32_t cols,
		   const struct explain_cycles *parts, struct explain_cycles *out);

/* Launch each layer of the program alone, then the whole, and print a table.  Return 0,
 * or TOOL_FAILED after printing why. */
int explain_print(const struct npuc_program *p, const struct device *d,
		  const struct feed *feed);

#endif

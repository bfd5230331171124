/* SPDX-License-Identifier: Apache-2.0 */
/* pipeline.h - halrun's runs of a program, one at a time or several in flight. */
#ifndef NPUC_PIPELINE_H
#define NPUC_PIPELINE_H

#include "feed.h"
#include "result.h"

#define PIPELINE_MAX 32u

struct pipeline_desc {
	uint64_t warm_up; /* runs of the first image before those that count */
	uint64_t repeat;  /* runs of each image, at least 1 */
	uint32_t in_flight;
};

/* Run all images and take their results.  A run's cycles are those in which the queue
 * worked since the run before it ended, its wall time that from submission to the end.
 * Return 0, or TOOL_FAILED after saying what is wrong. */
int pipeline_run(const struct pipeline_desc *desc, struct fed *in, struct npuc_run *run,
		 struct result *r);

#endif

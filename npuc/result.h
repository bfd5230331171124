/* SPDX-License-Identifier: Apache-2.0 */
/* result.h - what halrun says of a run, as text or JSON. */
#ifndef NPUC_RESULT_H
#define NPUC_RESULT_H

#include <stdio.h>

#include <hal/hal.h>

#include "feed.h"
#include "labels.h"
#include "npuc.h"

/* A value as the device has it, and where. */
struct best {
	uint64_t at;
	int64_t value;
};

struct result {
	const char *model;
	const struct npuc_program *program;
	const struct hal_device_info *device;
	uint64_t top;         /* values of each output; 0: none */
	struct labels labels; /* for outputs of as many elements; none: .count 0 */
	uint32_t in_flight;   /* runs at the same time */
	uint64_t runs;        /* cycles and wall_ns have so many */
	uint64_t *cycles;     /* sorted by result_sort */
	uint64_t *wall_ns;    /* likewise */
	struct outputs out;
	struct best **best; /* of each image each output's values, the largest first */
};

/* The smallest value that percent (1 to 100) of the count do not exceed. */
uint64_t result_percentile(const uint64_t *sorted, uint64_t count, uint64_t percent);

double result_mean(const uint64_t *values, uint64_t count);

/* Everything below returns 0, or TOOL_FAILED once it has said what is wrong. */

/* Labels that no output has elements for are an error. */
int result_check(const struct result *r);
/* Memory for so many images and runs. */
int result_open(struct result *r, uint64_t images, uint64_t runs);
int result_read(struct result *r, struct npuc_run *run, uint64_t image);
void result_sort(struct result *r);
void result_text(const struct result *r, FILE *to);
int result_json(const struct result *r);
void result_free(struct result *r);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* models.h - what a request of a network is on a device: synthetic steps, or a network of
 * its own. */
#ifndef BENCH_MODELS_H
#define BENCH_MODELS_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/json.h"

#define MODEL_STEPS_MAX    64u
#define MODEL_LAUNCHES_MAX 2048u /* of all steps */

/* So many launches of unit_us each; no faster than on so many units. */
struct model_step {
	uint32_t launches, units;
	double unit_us; /* one unit's microseconds */
};

struct model {
	char *name;
	struct model_step *steps;
	uint32_t step_count;
	char *network;    /* a file for npuc, instead of steps; NULL: none */
	const char *file; /* the table, as it was named; NULL: it is of none */
	uint32_t line;    /* of it */
	bool whole;       /* that is compiled as usual, not with a kernel a layer */
};

struct models {
	struct model *list;
	uint32_t count;
};

/* The table of this program.  0, or -1 with why. */
int models_own(struct models *m, char why[JSON_WHY]);
/* Adds a file's, which come before those that are there. */
int models_read(const char *path, struct models *m, char why[JSON_WHY]);
int models_parse(const char *bytes, size_t size, const char *name, struct models *m,
		 char why[JSON_WHY]);
void models_free(struct models *m);
/* NULL: there is none. */
const struct model *models_find(const struct models *m, const char *name);

#endif

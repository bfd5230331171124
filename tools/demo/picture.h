/* SPDX-License-Identifier: Apache-2.0 */
/* The demo's picture: the array, who owned which processing element and how busy it was;
 * beside it the same over time; below, when the jobs of programs ran. */
#ifndef DEMO_PICTURE_H
#define DEMO_PICTURE_H

#include <stdbool.h>
#include <stdint.h>

struct picture_tenant {
	const char *name;
	char lines[4][64]; /* under the name in the legend */
	uint16_t row, col, rows, cols;
	/* Of each bin of time: elements that multiplied, bytes a cycle. */
	const double *used, *bytes;
};

/* A program, and when its jobs ran. */
struct picture_program {
	const uint64_t *begin, *cycles; /* of each job */
	uint64_t count;
	bool killed; /* at the end of its last job */
	char what[96];
};

struct picture {
	char title[96], subtitle[160];
	uint32_t rows, cols;
	const double *busy; /* [rows][cols], 0..1 of the time */
	const struct picture_tenant *tenants;
	uint32_t tenant_count;
	uint64_t begin, end; /* cycles */
	uint64_t width;      /* of a bin */
	/* The tenants as programs, below; NULL: not. */
	const struct picture_program *programs;
};

/* NULL, or what went wrong. */
const char *picture_write(const struct picture *p, const char *path);

#endif

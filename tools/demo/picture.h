/* SPDX-License-Identifier: Apache-2.0 */
/* The demo's picture: the array, who owned which processing element, and how busy it was.
 */
#ifndef DEMO_PICTURE_H
#define DEMO_PICTURE_H

#include <stdint.h>

struct picture_tenant {
	char title[64];
	char lines[3][64]; /* under the title in the legend */
	uint16_t row, col, rows, cols;
};

struct picture {
	char title[96], subtitle[160];
	uint32_t rows, cols;
	const double *busy; /* [rows][cols], 0..1 of the time */
	const struct picture_tenant *tenants;
	uint32_t tenant_count;
};

/* NULL, or what went wrong. */
const char *picture_write(const struct picture *p, const char *path);

#endif

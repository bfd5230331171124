/* SPDX-License-Identifier: Apache-2.0 */
/* labels.h - the names of an output's elements, a line each. */
#ifndef NPUC_LABELS_H
#define NPUC_LABELS_H

#include <stdint.h>

struct labels {
	uint32_t count;
	char **text; /* UTF-8 */
};

/* 0, or TOOL_FAILED once it has been said what is wrong. */
int labels_read(const char *path, struct labels *labels);
void labels_free(struct labels *labels);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* compare.h - outputs against files that have what is expected. */
#ifndef NPUC_COMPARE_H
#define NPUC_COMPARE_H

#include "feed.h"

struct expectation {
	const char *file; /* its name */
	const struct npuc_port *port;
	uint32_t output; /* of the program */
	uint64_t count;
	enum npuc_type type; /* the file's */
	uint8_t *bytes;      /* the file */
	const uint8_t *data; /* its elements */
};

struct expectations {
	struct expectation *list;
	uint32_t count;
};

/* Read the files of f->expected, for outputs of so many images; 0, or TOOL_FAILED once it
 * has said what is wrong.  *e is to be freed in either case. */
int compare_load(const struct feed *f, const struct npuc_program *p, uint64_t images,
		 struct expectations *e);
/* Compare outputs with the files; 0, or TOOL_FAILED once it has said what differs by more
 * than tolerance.  Equality is told to to. */
int compare_outputs(const struct expectations *e, double tolerance,
		    const struct outputs *out, FILE *to);
void compare_free(struct expectations *e);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* feed.h - what goes into halrun's inputs, and where its outputs go.  Functions return
 * 0, or TOOL_FAILED once they have said what is wrong. */
#ifndef NPUC_FEED_H
#define NPUC_FEED_H

#include "npuc.h"

struct feed {
	char **inputs; /* "FILE", or "NAME=FILE" */
	uint32_t input_count;
	char **outputs; /* likewise; a FILE alone takes all of them */
	uint32_t output_count;
	uint64_t seed; /* for inputs without a file; 0: there may be none */
};

/* Sets every input of the program. */
int feed_inputs(const struct feed *f, const struct npuc_program *p, struct npuc_run *run);
/* Before anything runs: the names are right, and nothing is asked for twice. */
int feed_check_outputs(const struct feed *f, const struct npuc_program *p);
int feed_outputs(const struct feed *f, const struct npuc_program *p,
		 struct npuc_run *run);
/* Some output goes to standard output. */
bool feed_takes_stdout(const struct feed *f);

#endif

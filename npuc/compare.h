/* SPDX-License-Identifier: Apache-2.0 */
/* compare.h - outputs against files that have what is expected. */
#ifndef NPUC_COMPARE_H
#define NPUC_COMPARE_H

#include "feed.h"

/* Compare outputs with the files of f->expected; 0, or TOOL_FAILED once it has said what
 * differs by more than f->tolerance.  Equality is told to to. */
int compare_outputs(const struct feed *f, const struct npuc_program *p,
		    const struct outputs *out, FILE *to);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* check.h - npuc --check: a model's ports, and all that keeps it from being compiled. */
#ifndef NPUC_CHECK_H
#define NPUC_CHECK_H

#include <stdbool.h>

#include "npuc.h"

/* 0, or -errno with why when nothing could be said; *compiles: there is no obstacle. */
int check_print(const struct npuc_model *model, const struct npuc_options *options,
		const char *path, bool json, bool *compiles, char why[NPUC_WHY]);

#endif

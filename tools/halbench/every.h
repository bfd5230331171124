/* SPDX-License-Identifier: Apache-2.0 */
/* every.h - halbench report: all policies on all loads, light and heavy, as one page. */
#ifndef BENCH_EVERY_H
#define BENCH_EVERY_H

#include "line.h"

/* 0 or TOOL_FAILED. */
int every_run(const struct line *l);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* gpu_watch.h - runs on the GPU in a child, as a fault there ends all that a process has
 * on it. */
#ifndef TESTS_PTX_GPU_WATCH_H
#define TESTS_PTX_GPU_WATCH_H

#include <math.h>

#include "gpu.h"

#define GPU_LOST_MAX 10u /* children */

void *gpu_shared(size_t bytes); /* with children; zero */
/* What it returns, or 1 for a child that ended otherwise. */
int gpu_watch(int (*run)(void *arg), void *arg);
/* Within the child: a kernel begins, which may take half a minute. */
void gpu_mark(const char *name);
void gpu_end_if_lost(void);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* stop.h - a slot lets go: stop.c. */
#ifndef BACKENDS_NPU_STOP_H
#define BACKENDS_NPU_STOP_H

#include "internal.h"

/* The slot has let go.  What is left goes on in a new ring. */
void npu_on_stopped(struct npu_partition *part, uint32_t state);

#endif

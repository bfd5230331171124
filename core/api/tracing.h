/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tracing.h - traces for other processes, beside the one of hal_trace_start.
 *
 * Any thread may call these functions.
 */
#ifndef HAL_API_TRACING_H
#define HAL_API_TRACING_H

#include "observe/trace.h"

/* Begin a trace of dev in the file d->fd, which belongs to another process; trace_close
 * closes it.  On error the file is the caller's. */
int tracing_begin(struct hal_device *dev, const struct trace_desc *d, struct trace **out);
/* Stop writing events to t, for trace_close. */
void tracing_end(struct hal_device *dev, struct trace *t);
/* Note that part, which has no queues, is of that tenant. */
void tracing_tenant(struct hal_partition *part, uint64_t tenant);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* trace.h - what ran when, in the Chrome/Perfetto JSON format, in device time. */
#ifndef HAL_OBSERVE_TRACE_H
#define HAL_OBSERVE_TRACE_H

#include "command/queue.h"
#include "space/partition.h"

struct trace;

/* The file; by any thread. */
int trace_make(const struct hal_device *dev, const char *path, struct trace **out);
int trace_close(struct trace *t); /* -EIO: not all of it could be written */

/* The rest is the engine's, and does nothing while no trace is written. */
void trace_begin(struct hal_device *dev, struct trace *t);
struct trace *trace_end(struct hal_device *dev);
/* Is there, or has been moved. */
void trace_partition(struct hal_device *dev, const struct hal_partition *part);
void trace_partition_gone(struct hal_device *dev, const struct hal_partition *part);
void trace_queue(struct hal_device *dev, const struct hal_queue *queue);
/* f, which has not ended, ran for a while. */
void trace_stretch(struct hal_device *dev, const struct inflight *f, uint64_t start_ns,
		   uint64_t end_ns);
void trace_command(struct hal_device *dev, const struct inflight *f,
		   const struct hal_bk_event *ev);
void trace_instant(struct hal_device *dev, const struct hal_queue *queue,
		   const char *name, uint64_t at_ns);
void trace_span(struct hal_device *dev, const struct hal_queue *queue, const char *name,
		uint64_t start_ns, uint64_t end_ns);
void trace_depth(struct hal_device *dev, const struct hal_partition *part, uint64_t at);
/* What the device has counted so far. */
void trace_sample(struct hal_device *dev);
void trace_memory(struct hal_device *dev, const struct hal_partition *part);

#endif

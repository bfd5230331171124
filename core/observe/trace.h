/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trace.h - write a trace of the device in the Chrome/Perfetto JSON format (hal.trace).
 *
 * One thread makes the trace, the engine writes it between trace_begin and trace_end, and
 * one thread closes it.
 */
#ifndef HAL_OBSERVE_TRACE_H
#define HAL_OBSERVE_TRACE_H

#include "command/queue.h"
#include "space/partition.h"

struct trace;

/* Open file path for a trace of dev.  Any thread. */
int trace_make(const struct hal_device *dev, const char *path, struct trace **out);
/* Complete the file, and free t.  Return 0 or -errno; -EIO means that some events could
 * not be written.  Any thread. */
int trace_close(struct trace *t);

/* Only the engine calls the functions below.  The functions declared after
 * trace_end do nothing while no trace is written. */

/* Start writing t. */
void trace_begin(struct hal_device *dev, struct trace *t);
/* Stop writing, and return the trace for trace_close. */
struct trace *trace_end(struct hal_device *dev);
/* Record that part has been created, or has moved. */
void trace_partition(struct hal_device *dev, const struct hal_partition *part);
/* Record that part is being destroyed. */
void trace_partition_gone(struct hal_device *dev, const struct hal_partition *part);
/* Name the tracks of queue, which has been created. */
void trace_queue(struct hal_device *dev, const struct hal_queue *queue);
/* Record that f, an in-flight command that has not completed, ran from start_ns to
 * end_ns.
 */
void trace_stretch(struct hal_device *dev, const struct inflight *f, uint64_t start_ns,
		   uint64_t end_ns);
/* Record that in-flight command f has completed; ev is the backend's event. */
void trace_command(struct hal_device *dev, const struct inflight *f,
		   const struct hal_bk_event *ev);
/* Record event name of queue, without a duration. */
void trace_instant(struct hal_device *dev, const struct hal_queue *queue,
		   const char *name, uint64_t at_ns);
/* Record event name of queue, such as a suspend, from start_ns to end_ns. */
void trace_span(struct hal_device *dev, const struct hal_queue *queue, const char *name,
		uint64_t start_ns, uint64_t end_ns);
/* Record the number of part's in-flight commands, which may have changed. */
void trace_depth(struct hal_device *dev, const struct hal_partition *part, uint64_t at);
/* Read the device's counters, and record their rates since the last reading. */
void trace_sample(struct hal_device *dev);
/* Record part's memory use, which has changed. */
void trace_memory(struct hal_device *dev, const struct hal_partition *part);

#endif

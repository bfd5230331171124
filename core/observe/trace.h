/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trace.h - write traces of the device in the Chrome/Perfetto JSON format (hal.trace).
 *
 * One thread makes a trace, the engine writes it between trace_begin and trace_end, and
 * one thread closes it.  Several traces may be written at the same time.  Each shows all
 * partitions, or those of one tenant.
 */
#ifndef HAL_OBSERVE_TRACE_H
#define HAL_OBSERVE_TRACE_H

#include "command/queue.h"
#include "space/partition.h"

struct trace;

/* Limits of trace_desc.bytes. */
#define TRACE_BYTES_MIN (UINT64_C(1) << 16)
#define TRACE_BYTES_MAX (UINT64_C(1) << 30)
/* About the memory of a trace with .fd and without .bytes. */
#define TRACE_STREAM_BYTES (UINT64_C(1) << 20)

struct trace_desc {
	const char *path;
	/* A regular file of another process, which is emptied; a thread writes it, so
	 * that the engine does not wait for it.  trace_make takes it, unless that fails.
	 * -1: open .path. */
	int fd;
	/* Show only partitions of this tenant, and no counters of the device; 0: show
	 * all. */
	uint64_t tenant;
	/* Keep only the newest events, in memory, and write them at the end, as a file of
	 * at most so many bytes; 0: write all. */
	uint64_t bytes;
};

/* What a trace that has been closed has. */
struct trace_counts {
	uint64_t events, dropped;
};

/* Open the file for a trace of dev.  Any thread. */
int trace_make(const struct hal_device *dev, const struct trace_desc *d,
	       struct trace **out);
/* Complete the file, and free t.  counts may be NULL.  Return 0 or -errno; -EIO means
 * that some events could not be written.  Any thread. */
int trace_close(struct trace *t, struct trace_counts *counts);

/* Only the engine calls the functions below.  The functions declared after
 * trace_end do nothing while no trace is written. */

/* Start writing t. */
void trace_begin(struct hal_device *dev, struct trace *t);
/* Return the trace whose file this process has opened; NULL: none is being written. */
struct trace *trace_own(const struct hal_device *dev);
/* Stop writing t; it is complete after trace_close. */
void trace_end(struct hal_device *dev, struct trace *t);
/* Return whether a trace shows part. */
bool trace_shows(const struct hal_device *dev, const struct hal_partition *part);
/* Record that part, which has no queues, is of that tenant. */
void trace_tenant(struct hal_device *dev, struct hal_partition *part, uint64_t tenant);
/* Record that part has been created, or has moved. */
void trace_partition(struct hal_device *dev, const struct hal_partition *part);
/* Record that part is being destroyed. */
void trace_partition_gone(struct hal_device *dev, const struct hal_partition *part);
/* Name the tracks of queue, which has been created. */
void trace_queue(struct hal_device *dev, const struct hal_queue *queue);
/* Record that queue is being destroyed. */
void trace_queue_gone(struct hal_device *dev, const struct hal_queue *queue);
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

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trace_file.h - where the events of a trace go: the file, and a ring of lines in memory.
 *
 * A ring is used in one of two ways.  It keeps the newest lines until the trace ends, or
 * a thread writes its lines to the file, so that a slow file does not delay the engine.
 */
#ifndef HAL_OBSERVE_TRACE_FILE_H
#define HAL_OBSERVE_TRACE_FILE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct trace_file {
	int fd;
	int err;          /* first failed write; nothing is written after it */
	bool seekable;    /* .fd is a regular file, not a pipe or a terminal */
	uint64_t written; /* bytes of events in the file */
	uint64_t whole;   /* offset of the last end for now; 0: none was written */
};

/* Write n bytes.  Return how many were written: fewer after an error. */
size_t trace_file_write(struct trace_file *f, const char *text, size_t n);
/* What has been written ends between two events.  Write an end for now after it, which
 * the next write replaces, so that the file is valid JSON if the program is killed.
 * Return false if that fails; the file then ends where the last one did. */
bool trace_file_cut(struct trace_file *f);

struct trace_ring {
	uint64_t size; /* bytes of .at */
	/* Bytes that were put, and that were taken or dropped.  Both are ends of lines.
	 */
	_Atomic uint64_t head, tail;
	uint64_t lines, dropped; /* in the ring; that have left it (trace_ring_keep) */
	/* Of the thread. */
	struct trace_file *file;
	pthread_t thread;
	bool has_thread;
	uint64_t rung_at; /* .head when the thread was last woken */
	atomic_uint rung;
	atomic_bool ends;
	char at[];
};

/* Return a ring of size bytes; NULL: no memory. */
struct trace_ring *trace_ring_make(uint64_t size);
/* Put a line at the end, and drop the oldest lines that leave it no room. */
void trace_ring_keep(struct trace_ring *r, const char *line, size_t n);
/* Call put for all lines, oldest first, in one or two pieces. */
void trace_ring_read(const struct trace_ring *r,
		     void (*put)(void *user, const char *text, size_t n), void *user);

/* Start a thread that writes the lines to f.  Return 0 or -errno. */
int trace_ring_start(struct trace_ring *r, struct trace_file *f);
/* Put a line for the thread.  Return false if it has no room. */
bool trace_ring_send(struct trace_ring *r, const char *line, size_t n);
/* End the thread, after it has written all lines or a write has failed. */
void trace_ring_stop(struct trace_ring *r);

/* Free r, whose thread has ended. */
void trace_ring_free(struct trace_ring *r);

#endif

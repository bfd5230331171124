/* SPDX-License-Identifier: Apache-2.0 */
/* trace_file.c - where the events of a trace go; see trace_file.h. */
#include "observe/trace_file.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util/futex.h"

/* ---- the file ---------------------------------------------------------------------- */

/* End of the file after each write, until more events or the true end replace it. */
static const char cut_end[] = "],\"otherData\":{\"cut\":true}}\n";

/* Stop writing after error err.  Shorten the file to the events before the last cut_end,
 * so that it stays valid JSON. */
static void end_early(struct trace_file *f, int err)
{
	const off_t size = (off_t)(f->whole + sizeof(cut_end) - 1);

	f->err = err;
	if (!f->seekable || f->whole == 0)
		return;
	/* Overwrite before shortening: this needs no free space on a full disk. */
	(void)!pwrite(f->fd, cut_end, sizeof(cut_end) - 1, (off_t)f->whole);
	(void)!ftruncate(f->fd, size);
}

size_t trace_file_write(struct trace_file *f, const char *text, size_t n)
{
	size_t at = 0;

	while (f->err == 0 && at < n) {
		/* Another process that has the file open may move the position. */
		ssize_t done = f->seekable ? pwrite(f->fd, text + at, n - at,
						    (off_t)(f->written + at))
					   : write(f->fd, text + at, n - at);

		if (done >= 0)
			at += (size_t)done;
		else if (errno != EINTR)
			end_early(f, errno);
	}
	f->written += at;
	return at;
}

bool trace_file_cut(struct trace_file *f)
{
	ssize_t n;

	if (f->err != 0 || !f->seekable)
		return f->err == 0;
	n = pwrite(f->fd, cut_end, sizeof(cut_end) - 1, (off_t)f->written);
	if (n == (ssize_t)sizeof(cut_end) - 1) {
		f->whole = f->written;
		return true;
	}
	end_early(f, n < 0 ? errno : ENOSPC);
	return false;
}

/* ---- lines in memory ----------------------------------------------------------------- */

struct trace_ring *trace_ring_make(uint64_t size)
{
	struct trace_ring *r = malloc(sizeof(*r) + size);

	if (r == NULL)
		return NULL;
	memset(r, 0, sizeof(*r));
	r->size = size;
	return r;
}

void trace_ring_free(struct trace_ring *r)
{
	free(r);
}

/* Copy a line to the ring at head.  There is room. */
static void copy_in(struct trace_ring *r, uint64_t head, const char *line, size_t n)
{
	const uint64_t at = head % r->size, most = r->size - at;
	const size_t first = n < most ? n : (size_t)most;

	memcpy(r->at + at, line, first);
	memcpy(r->at, line + first, n - first);
}

/* Return the number of bytes from position `from` on that lie in one piece. */
static size_t piece(const struct trace_ring *r, uint64_t from, uint64_t to)
{
	const uint64_t most = r->size - from % r->size;

	return (size_t)(to - from < most ? to - from : most);
}

static void drop_line(struct trace_ring *r)
{
	uint64_t tail = atomic_load_explicit(&r->tail, memory_order_relaxed);
	const uint64_t head = atomic_load_explicit(&r->head, memory_order_relaxed);
	const char *end = NULL;

	while (end == NULL && tail < head) {
		const char *from = r->at + tail % r->size;
		const size_t n = piece(r, tail, head);

		end = memchr(from, '\n', n);
		tail += end != NULL ? (uint64_t)(end - from) + 1 : n;
	}
	atomic_store_explicit(&r->tail, tail, memory_order_relaxed);
	r->lines--;
	r->dropped++;
}

void trace_ring_keep(struct trace_ring *r, const char *line, size_t n)
{
	const uint64_t head = atomic_load_explicit(&r->head, memory_order_relaxed);

	if (n > r->size) {
		r->dropped++;
		return;
	}
	while (r->size - (head - atomic_load_explicit(&r->tail, memory_order_relaxed)) <
	       n)
		drop_line(r);
	copy_in(r, head, line, n);
	atomic_store_explicit(&r->head, head + n, memory_order_relaxed);
	r->lines++;
}

void trace_ring_read(const struct trace_ring *r,
		     void (*put)(void *user, const char *text, size_t n), void *user)
{
	const uint64_t head = atomic_load(&r->head);

	for (uint64_t tail = atomic_load(&r->tail); tail < head;) {
		const size_t n = piece(r, tail, head);

		put(user, r->at + tail % r->size, n);
		tail += n;
	}
}

/* ---- the thread that writes them ------------------------------------------------------- */

/* Write all lines to the file.  After an error they stay in the ring, which fills up. */
static void drain(struct trace_ring *r)
{
	const uint64_t head = atomic_load_explicit(&r->head, memory_order_acquire);
	uint64_t tail = atomic_load_explicit(&r->tail, memory_order_relaxed);

	if (tail == head)
		return;
	while (r->file->err == 0 && tail < head)
		tail += trace_file_write(r->file, r->at + tail % r->size,
					 piece(r, tail, head));
	if (trace_file_cut(r->file))
		atomic_store_explicit(&r->tail, tail, memory_order_release);
}

static void *writer_main(void *arg)
{
	struct trace_ring *r = arg;
	bool ends;

	do {
		const unsigned int rung = atomic_load(&r->rung);

		ends = atomic_load(&r->ends);
		drain(r);
		if (!ends)
			futex_wait(&r->rung, rung, NULL);
	} while (!ends);
	return NULL;
}

static void wake(struct trace_ring *r)
{
	atomic_fetch_add(&r->rung, 1);
	futex_wake(&r->rung, 1);
}

int trace_ring_start(struct trace_ring *r, struct trace_file *f)
{
	sigset_t all, old;
	int err;

	r->file = f;
	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &old);
	err = pthread_create(&r->thread, NULL, writer_main, r);
	(void)pthread_sigmask(SIG_SETMASK, &old, NULL);
	r->has_thread = err == 0;
	return -err;
}

bool trace_ring_send(struct trace_ring *r, const char *line, size_t n)
{
	const uint64_t head = atomic_load_explicit(&r->head, memory_order_relaxed);
	const uint64_t tail = atomic_load_explicit(&r->tail, memory_order_acquire);

	if (r->size - (head - tail) < n)
		return false;
	copy_in(r, head, line, n);
	atomic_store_explicit(&r->head, head + n, memory_order_release);
	if (head + n - r->rung_at >= r->size / 16) {
		r->rung_at = head + n;
		wake(r);
	}
	return true;
}

void trace_ring_stop(struct trace_ring *r)
{
	if (!r->has_thread)
		return;
	atomic_store(&r->ends, true);
	wake(r);
	(void)pthread_join(r->thread, NULL);
	r->has_thread = false;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replay.h - what reading a journal, the device made of it and its replay share.
 *
 *   journal_read.c     lines, and the objects that their numbers name
 *   replay_device.c    the device whose answers are lines of the journal
 *   replay_record.c    records of queues
 *   replay.c           the calls, the comparison of decisions, hal_replay
 */
#ifndef HAL_REPLAY_REPLAY_H
#define HAL_REPLAY_REPLAY_H

#include "command/queue.h"
#include "loop/device.h"
#include "replay/journal.h"

#define KERNEL_BUCKETS 256u
#define ERRNO_MAX      4095u

struct line {
	char kind;
	uint32_t count;
	uint64_t n[JOURNAL_NUMBERS];
	const char *text; /* behind the kind, up to text_end */
	const char *text_end;
};

/* Kernels are what policies know of them. */
struct kernel {
	struct kernel *next;
	struct hal_kernel kernel;
};

struct things {
	void **at; /* by number; NULL: gone */
	size_t count, room;
};

struct play {
	struct hal_device *dev;
	const char *path;
	char *text;
	const char *at, *end; /* of what has not been taken in */
	uint64_t number;      /* of the line at .at */
	struct line line;     /* the last one that was looked at */
	uint64_t current;     /* its number */
	bool parsed;
	struct recolor *recolor; /* of whose records the first has been read */
	bool over;               /* nothing is left, or nothing of it can be used */
	bool finishing;
	bool ended; /* its last line has been read */
	int err;
	char why[400]; /* hal_last_error() of .err */
	uint64_t now;
	unsigned int calls;
	/* Read lines: to the end, or until the callback of a queue has returned. */
	void (*replay)(struct play *p, const struct hal_queue *until);
	uintptr_t handles;
	struct things queues, timelines;
	struct kernel *kernels[KERNEL_BUCKETS];
	struct hal_replay_info info;
};

static inline struct play *play_of(const struct hal_device *dev)
{
	return dev->hot_bk;
}

/* ---- lines ---------------------------------------------------------------------------- */

/* End the replay with err, unless the journal has been found to differ before. */
void play_bad(struct play *p, int err, const char *what) COLD;

/* Note the first line that differs from what the engine decides. */
void play_mismatch(struct play *p, const char *what) COLD;

/* Read the numbers of l; false: it is not a line of a journal. */
bool line_parse(struct line *l);

/* Or what one goes by. */
bool line_is_decision(char kind);

/* The next line; NULL: there is none.  One that does not end is not there yet. */
const struct line *line_peek(struct play *p);

/* Of the kind that has to be next. */
bool line_expect(struct play *p, enum journal_kind kind, struct line *out);

/* Go to the next line. */
void line_skip(struct play *p);

/* Return whether n is at most `most`; if not, end the replay. */
bool number_check(struct play *p, uint64_t n, uint64_t most);

/* The look of the turn that begins here tells how far it went.  NULL: there is none. */
bool line_find_look(const struct play *p, struct line *out);

/* What a call answered is the next line but for what was decided in it. */
bool line_find_answer(const struct play *p, uint64_t *err);

/* Read the file of p.  -errno. */
int journal_read(struct play *p);

/* ---- objects by number ---------------------------------------------------------------- */

/* Give thing the next number of t. */
bool things_add(struct play *p, struct things *t, void *thing);

/* Return the object of that number; NULL: there is none, for which the replay ends. */
void *thing_at(struct play *p, const struct things *t, uint64_t number, const char *what);

struct hal_queue *play_queue_at(struct play *p, uint64_t number);

struct hal_partition *play_partition_at(struct play *p, uint64_t index);

/* n is its name. */
struct hal_timeline *play_timeline_at(struct play *p, const uint64_t *n);

/* n: its work, its number in the profile and above that its program's, its engines and
 * above them its configuration. */
struct hal_kernel *play_kernel_of(struct play *p, const uint64_t *n);

/* ---- the device ----------------------------------------------------------------------- */

extern const struct hal_backend replay_backend;
extern const struct player replay_player;

/* ---- records -------------------------------------------------------------------------- */

/* Into the ring at pos, of which the engine does not know yet. */
bool play_record(struct play *p, struct hal_queue *q, unsigned int *pos);

#endif

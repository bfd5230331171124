/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replay.h - state of a replay.
 *
 *   journal_read.c     reading lines, and finding the objects that their numbers name
 *   replay_device.c    a device whose time, events and results are lines of the journal;
 *                      comparison of the engine's decisions
 *   replay_record.c    putting records into the rings of queues
 *   replay.c           the application's calls; hal_replay
 */
#ifndef HAL_REPLAY_REPLAY_H
#define HAL_REPLAY_REPLAY_H

#include <hal/ext/replay.h>

#include "command/queue.h"
#include "loop/device.h"
#include "replay/journal.h"

#define KERNEL_BUCKETS 256u
#define ERRNO_MAX      4095u

struct line {
	char kind;
	uint32_t count;
	uint64_t n[JOURNAL_NUMBERS];
	const char *text; /* after the kind, up to text_end */
	const char *text_end;
};

/* A kernel, with only those properties that policies can see. */
struct kernel {
	struct kernel *next;
	struct hal_kernel kernel;
};

/* Objects by the number that the journal uses for them. */
struct numbered {
	void **at;          /* by number; NULL: destroyed */
	size_t count, room; /* entries used, and allocated */
};

struct play {
	struct hal_device *dev;
	const char *path;
	char *text;
	const char *at, *end; /* the text that has not been consumed */
	uint64_t number;      /* of the line at .at, from 1 */
	struct line line;     /* the last line that line_peek() has parsed */
	uint64_t current;     /* number of .line, from 1 */
	bool parsed;          /* .line is the line at .at */
	/* The object of the last REC_RECOLOR, until its REC_RECOLORED has been read. */
	struct recolor *recolor;
	bool over;      /* no more lines are read */
	bool finishing; /* the objects are being destroyed */
	bool ended;     /* JOURNAL_END has been read */
	int err;        /* why the replay cannot continue; 0: no error */
	char why[400];  /* text of .err */
	uint64_t now;
	unsigned int calls; /* nested callbacks that are running */
	/* Process lines to the end, or until the callback of a queue has returned. */
	void (*replay)(struct play *p, const struct hal_queue *until);
	uintptr_t handles; /* backend handles returned so far */
	struct numbered queues, timelines;
	struct kernel *kernels[KERNEL_BUCKETS];
	struct hal_replay_info info;
};

static inline struct play *play_of(const struct hal_device *dev)
{
	return dev->hot_bk;
}

/* ---- lines --------------------------------------------------------------------- */

/* End the replay with err.  EINVAL after a mismatch is no error: lines that do not make
 * sense are then a consequence of the mismatch. */
void play_fail(struct play *p, int err, const char *what) COLD;

/* Count a mismatch; keep the text of the first one.  what: completes "the journal has X,
 * but". */
void play_mismatch(struct play *p, const char *what) COLD;

/* Parse the numbers of l; return false if it is not a valid line. */
bool line_parse(struct line *l);

/* Return whether lines of that kind are written while the engine decides. */
bool line_is_decision(char kind);

/* Return the next line without consuming it; NULL if no line is left.  An incomplete last
 * line does not count. */
const struct line *line_peek(struct play *p);

/* Consume the next line; end the replay and return false if it is not of that kind. */
bool line_expect(struct play *p, enum journal_kind kind, struct line *out);

/* Consume the line that line_peek() has returned. */
void line_skip(struct play *p);

/* Return whether n is at most `most`; if not, end the replay. */
bool number_check(struct play *p, uint64_t n, uint64_t most);

/* Find the poll line of the turn that starts at the next line.  The poll line has the
 * arguments of that turn.  Return false if the turn has none. */
bool line_find_poll(const struct play *p, struct line *out);

/* Find the result of the call that starts at the next line, after the decisions of that
 * call.  Return false if the journal has no result. */
bool line_find_answer(const struct play *p, uint64_t *err);

/* Read the file of p into memory.  Return 0 or -errno. */
int journal_read(struct play *p);

/* ---- objects by number --------------------------------------------------------- */

/* Give object the next number of t.  Without memory, end the replay and return false. */
bool numbered_add(struct play *p, struct numbered *t, void *object);

/* Return the object of that number.  If it does not exist, end the replay with the
 * text what and return NULL.  The functions play_*_at() do the same. */
void *numbered_at(struct play *p, const struct numbered *t, uint64_t number,
		  const char *what);

struct hal_queue *play_queue_at(struct play *p, uint64_t number);

struct hal_partition *play_partition_at(struct play *p, uint64_t index);

/* n: the three numbers that name the timeline. */
struct hal_timeline *play_timeline_at(struct play *p, const uint64_t *n);

/* Return the kernel with these properties.  n: its work; its number in the profile (low
 * 32 bits) and its program (high); its engines (low) and its configuration (high). */
struct hal_kernel *play_kernel_of(struct play *p, const uint64_t *n);

/* ---- the device ---------------------------------------------------------------- */

extern const struct hal_backend replay_backend;
extern const struct player replay_player;

/* ---- records ------------------------------------------------------------------- */

/* Read a record into the ring of q at *pos, and advance *pos.  The caller publishes the
 * ring's new tail to the engine. */
bool play_record(struct play *p, struct hal_queue *q, unsigned int *pos);

#endif

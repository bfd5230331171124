/* SPDX-License-Identifier: Apache-2.0 */
/*
 * journal.h - what an engine takes in and what it decides, written down; and who replays.
 *
 * A line of text each, a message and numbers, in the order in which it happens:
 *
 *   J D Y k u a o i  the device, its policy: NAME KEY=VALUE ..., and what its profile
 *                says
 *   n t p e q m x R v l r      inputs: time, a look at the device (with how long it was
 *                to run), what that answered, its events, a callback that has returned, a
 *                timeline that others have raised, a queue's message and its records
 *   w            an input too, where a decision goes by it
 *   P K Q Z T U S X M C O Y =  calls and what came of them
 *   E            the end: hal_close has written all of it
 *   s h g z b c  decisions: what is given to the device (submit, suspend, resume, resize,
 *                limit) and what it answered, and which callback begins
 *
 * Whoever feeds the same inputs in the same order to an engine gets the same decisions
 * (core/replay/replay.c).
 */
#ifndef HAL_REPLAY_JOURNAL_H
#define HAL_REPLAY_JOURNAL_H

#include "command/queue.h"
#include "loop/device.h"
#include "space/partition.h"

#define JOURNAL_VERSION 1u

/* How a line begins. */
enum journal_kind {
	/* before all others */
	JOURNAL_HEAD = 'J',   /* hal-journal VERSION DEVICE */
	JOURNAL_DEVICE = 'D', /* struct hal_device, see journal_begin */
	JOURNAL_POLICY = 'Y', /* a text; later ones are calls */
	/* of the profile, behind the first Y; numbers are from 1 */
	JOURNAL_KNOWN = 'k',       /* number kind runs error bytes */
	JOURNAL_KNOWN_UNITS = 'u', /* units ns, of the last k */
	JOURNAL_KNOWN_STOP = 'a',  /* mode quiet cost, of the last k, behind its u */
	JOURNAL_PROGRAMS = 'o', /* programs runs, behind all k, if pairs can be known */
	JOURNAL_BESIDE = 'i',   /* program other permille; of the others it is 0 */
	/* inputs */
	JOURNAL_NOW = 'n',      /* ns */
	JOURNAL_LOOK = 't',     /* until, idle */
	JOURNAL_POLLED = 'p',   /* events, which follow */
	JOURNAL_DONE = 'e',     /* queue pos inner error start end read written */
	JOURNAL_QUIET = 'q',    /* queue error read written start end */
	JOURNAL_MOVED = 'm',    /* partition error */
	JOURNAL_LOST = 'x',     /* error */
	JOURNAL_RETURNED = 'R', /* queue */
	JOURNAL_RAISED = 'v',   /* timeline (3) value error */
	JOURNAL_TAKEN = 'l',    /* queue records, which follow */
	JOURNAL_RECORD = 'r',   /* op flags submit_ns and what belongs to op */
	/* queue, whether a command of it uses a buffer that is moved, or begins while its
	 * partition should have another placement; asked in between */
	JOURNAL_USES = 'w',
	/* calls */
	/* index row col rows cols ceiling JOURNAL_PINNED.., and of a guest its host's
	 * index, or of one with a limit of its own 0 bytes window */
	JOURNAL_PARTITION = 'P',
	JOURNAL_NO_PARTITION = 'K', /* index */
	JOURNAL_QUEUE = 'Q',    /* id partition priority deadline weight class budget */
	JOURNAL_NO_QUEUE = 'Z', /* id completed failed dropped busy queueing */
	JOURNAL_TIMELINE = 'T', /* id */
	JOURNAL_NO_TIMELINE = 'U', /* id */
	JOURNAL_SUSPEND = 'S',     /* queue mode */
	JOURNAL_RESUME = 'X',      /* queue */
	JOURNAL_RESIZE = 'M',      /* partition floor ceiling row col rows cols */
	JOURNAL_COMPACT = 'C',     /* partition + 1, or 0; as M; most that move */
	JOURNAL_ROOM = 'O',        /* 0; the room that C has made is free for all */
	JOURNAL_ANSWER = '=',      /* error, of the last S, X, M, C or Y */
	/* decisions */
	JOURNAL_SUBMIT = 's', /* queue pos inner error */
	JOURNAL_STOP = 'h',   /* queue mode error */
	JOURNAL_START = 'g',  /* queue error */
	JOURNAL_MOVE = 'z',   /* partition row col rows cols units error */
	JOURNAL_LIMIT = 'b',  /* partition bytes window error */
	JOURNAL_CALLED = 'c', /* queue */
	/* The last line of a journal that is whole; it has no numbers. */
	JOURNAL_END = 'E',
};

/* Of a partition: bits. */
#define JOURNAL_PINNED  1u
#define JOURNAL_BIMODAL 2u

#define JOURNAL_NUMBERS 20u /* a line has at most */

/* Whose timeline: the first number of three. */
enum journal_timeline {
	JOURNAL_OF_NOBODY,    /* id, 0 */
	JOURNAL_OF_QUEUE,     /* id, 0 */
	JOURNAL_OF_SUSPENDS,  /* queue, 0 */
	JOURNAL_OF_PARTITION, /* index, how many there were before it */
};

/* Who replays: is asked where the engine meets the world but for hal_bk_hot. */
struct player {
	/* The engine is about to look at its device. */
	void (*look)(struct hal_device *dev, uint64_t until_ns, bool idle);
	/* A callback of q begins.  True: it has returned; false: it will. */
	bool (*call)(struct hal_queue *q);
	/* What JOURNAL_USES says of q. */
	bool (*uses)(const struct hal_queue *q);
	/* A queue is destroyed: the numbers of JOURNAL_NO_QUEUE. */
	void (*gone)(struct hal_device *dev, const uint64_t *n, uint32_t count);
};

/* The file; by any thread. */
int journal_make(const struct hal_device *dev, const char *path, struct journal **out);
/* Before the engine does anything; policy is the text of the first Y.  Without one, all
 * is prepared that makes the engine do the same as if one were written. */
void journal_begin(struct hal_device *dev, struct journal *j, const char *policy);
/* Write the last line and close the file.  -EIO: not all of it could be written. */
int journal_end(struct hal_device *dev);

/* The queue that the backend knows as bk. */
struct hal_queue *journal_queue_of(struct hal_device *dev, const void *bk);
struct hal_partition *journal_partition_of(struct hal_device *dev, const void *bk);

/* ---- by the engine; nothing happens while none is written -------------------------- */

void journal_write_text(struct journal *j, enum journal_kind kind, const char *text);
void journal_gone(const struct hal_queue *q);

#define JOURNAL(dev, kind, ...)                                                          \
	do {                                                                             \
		if (UNLIKELY((dev)->replay.journal != NULL)) {                           \
			const uint64_t journal_n[] = {__VA_ARGS__};                      \
                                                                                         \
			(dev)->replay.recorder->write(                                   \
				(dev)->replay.journal, (kind), journal_n,                \
				(uint32_t)ARRAY_LENGTH(journal_n));                      \
		}                                                                        \
	} while (0)

/* err is 0 or -errno. */
static inline uint64_t journal_error(int err)
{
	return err < 0 ? (uint64_t)-err : 0;
}

static inline void journal_look(struct hal_device *dev, uint64_t until_ns, bool idle)
{
	if (dev->replay.journal != NULL)
		dev->replay.recorder->look(dev, until_ns, idle);
	else
		dev->replay.player->look(dev, until_ns, idle);
}

static inline void journal_called(const struct hal_queue *q)
{
	JOURNAL(q->dev, JOURNAL_CALLED, q->obj.id);
}

static inline void journal_returned(const struct hal_queue *q)
{
	JOURNAL(q->dev, JOURNAL_RETURNED, q->obj.id);
}

static inline void journal_raised(const struct hal_timeline *t, uint64_t value, int err)
{
	if (UNLIKELY(t->dev->replay.journal != NULL))
		t->dev->replay.recorder->raised(t, value, err);
}

/* What is in q up to tail may be taken. */
static inline void journal_taken(struct hal_queue *q, unsigned int tail)
{
	if (UNLIKELY(q->dev->replay.journal != NULL))
		q->dev->replay.recorder->taken(q, tail);
}

/* A new queue: nothing of it may be taken yet. */
static inline void journal_limit(struct hal_queue *q)
{
	if (UNLIKELY(q->dev->replay.journal != NULL)) {
		q->stepping |= STEP_JOURNAL;
		q->journal_limited = true;
	}
}

#endif

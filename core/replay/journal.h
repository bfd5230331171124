/* SPDX-License-Identifier: Apache-2.0 */
/*
 * journal.h - the journal: a file of the engine's inputs and decisions, for a replay.
 *
 * The engine is deterministic: the same inputs in the same order lead to the same
 * decisions.  A replay (replay.c) feeds the inputs of a journal to another engine and
 * compares the decisions.  A journal has one line for each input or decision, in order: a
 * letter, its kind, and decimal numbers.
 *
 *   J D Y k u a o i            the device, its policy and its profile
 *   n t p e q m x R v l r w    inputs: time, polls and their events, returned callbacks,
 *                              raised timelines, accepted records of queues
 *   P K Q Z T U S X M H N C O Y =  calls of the application, and their results
 *   s h g z b c                decisions: operations of the device and their results,
 *                              and the start of callbacks
 *   E                          the end, written by hal_close
 */
#ifndef HAL_REPLAY_JOURNAL_H
#define HAL_REPLAY_JOURNAL_H

#include "command/queue.h"
#include "loop/device.h"
#include "space/partition.h"

#define JOURNAL_VERSION 1u

/* Bits of the first number of a JOURNAL_DEVICE line. */
#define JOURNAL_VIRTUAL      UINT64_C(1) /* it has a virtual clock */
#define JOURNAL_SIDE_BY_SIDE UINT64_C(2) /* HAL_BK_SIDE_BY_SIDE */

/* The first letter of a line.  Each comment lists the numbers that follow the letter,
 * then the meaning. */
enum journal_kind {
	/* The beginning of a journal. */
	JOURNAL_HEAD = 'J',   /* hal-journal VERSION DEVICE */
	JOURNAL_DEVICE = 'D', /* properties of the device: write_first_line() */
	JOURNAL_POLICY = 'Y', /* NAME KEY=VALUE ...; each Y after the first is a call */
	/* The profile, after the first Y.  Kernels and programs are numbered from 1. */
	JOURNAL_KNOWN = 'k',       /* number kind runs error bytes */
	JOURNAL_KNOWN_UNITS = 'u', /* units ns, of the last k */
	JOURNAL_KNOWN_STOP = 'a',  /* mode quiet cost, of the last k, after its u */
	JOURNAL_PROGRAMS = 'o', /* programs runs, after all k, if pairs were measured */
	JOURNAL_PAIR = 'i',     /* program other permille; pairs without a line: 0 */
	/* Inputs. */
	JOURNAL_NOW = 'n',      /* ns */
	JOURNAL_POLL = 't',     /* until idle; the engine is about to poll the device */
	JOURNAL_POLLED = 'p',   /* number of events, whose lines follow */
	JOURNAL_DONE = 'e',     /* queue pos inner error start end read written */
	JOURNAL_QUIET = 'q',    /* queue error read written start end */
	JOURNAL_MOVED = 'm',    /* partition error */
	JOURNAL_LOST = 'x',     /* error */
	JOURNAL_RETURNED = 'R', /* queue; its callback has returned */
	JOURNAL_RAISED = 'v',   /* timeline (3) value error */
	JOURNAL_ACCEPTED = 'l', /* queue, number of accepted records; they follow */
	JOURNAL_RECORD = 'r',   /* op flags submit_ns, more by op: write_record() */
	/* queue answer.  The answer, 1 or 0, is whether a command of the queue uses a
	 * buffer that is being recoloured, or whether the partition of the queue should
	 * switch placements.  A replay knows neither buffers nor channels, and reads the
	 * answer from this line. */
	JOURNAL_USES = 'w',
	/* Calls. */
	/* index row col rows cols ceiling flags (JOURNAL_PINNED, JOURNAL_BIMODAL).  A
	 * guest has one more, its host's index.  A partition with a limit has three more:
	 * 0, and the limit's bytes and window. */
	JOURNAL_PARTITION = 'P',
	JOURNAL_NO_PARTITION = 'K', /* index */
	JOURNAL_QUEUE = 'Q',    /* id partition priority deadline weight class budget */
	JOURNAL_NO_QUEUE = 'Z', /* id completed failed dropped busy queueing */
	JOURNAL_TIMELINE = 'T', /* id */
	JOURNAL_NO_TIMELINE = 'U', /* id */
	JOURNAL_SUSPEND = 'S',     /* queue mode */
	JOURNAL_RESUME = 'X',      /* queue */
	JOURNAL_RESIZE = 'M',      /* partition floor ceiling row col rows cols shape */
	JOURNAL_COPIES_HOST = 'H', /* partition; it has host memory from now on */
	/* how many more N follow for the same call, partition floor ceiling row col rows
	 * cols shape */
	JOURNAL_TOGETHER = 'N',
	/* partition + 1 (0: a new one) floor ceiling row col rows cols, how many
	 * partitions may be moved for it, shape */
	JOURNAL_COMPACT = 'C',
	JOURNAL_ROOM = 'O',   /* 0; the space made by C is no longer reserved */
	JOURNAL_ANSWER = '=', /* error: result of the last S, X, M, N, C or Y */
	/* Decisions; error is the backend's result. */
	JOURNAL_SUBMIT = 's', /* queue pos inner error */
	JOURNAL_STOP = 'h',   /* queue mode error */
	JOURNAL_START = 'g',  /* queue error */
	JOURNAL_MOVE = 'z',   /* partition row col rows cols units error */
	JOURNAL_LIMIT = 'b',  /* partition bytes window error */
	JOURNAL_CALLED = 'c', /* queue; its callback starts */
	/* The last line of a complete journal; without numbers. */
	JOURNAL_END = 'E',
};

/* Flags of JOURNAL_PARTITION. */
#define JOURNAL_PINNED  1u
#define JOURNAL_BIMODAL 2u

#define JOURNAL_NUMBERS 20u /* limit of numbers in a line */

/* The first of the three numbers that name a timeline; comments list the other two. */
enum journal_timeline {
	JOURNAL_OF_APPLICATION, /* id, 0; made by hal_timeline_create */
	JOURNAL_OF_QUEUE,       /* queue, 0; counts its completed submissions */
	JOURNAL_OF_SUSPENDS,    /* queue, 0; counts its completed suspends */
	JOURNAL_OF_PARTITION,   /* index, number of the partition's older ones; counts
				   resizes */
};

/* Functions of a replay that the engine calls instead of using the outside world.  The
 * device itself is replaced by its table of hot operations. */
struct player {
	/* The engine is about to poll its device. */
	void (*before_poll)(struct hal_device *dev, uint64_t until_ns, bool idle);
	/* Start a callback of q.  Return whether it has already returned. */
	bool (*call)(struct hal_queue *q);
	/* Return the answer of the next JOURNAL_USES, which must be of q. */
	bool (*uses)(const struct hal_queue *q);
	/* Compare the counts of a queue that is being destroyed with the journal.  n: the
	 * numbers of JOURNAL_NO_QUEUE. */
	void (*gone)(struct hal_device *dev, const uint64_t *n, uint32_t count);
};

/* Create the journal file at path.  Any thread may call this.  Return 0 or -errno. */
int journal_make(const struct hal_device *dev, const char *path, struct journal **out);
/* Start to record, before the first engine turn.  policy: text of the first Y.  j is NULL
 * for a replay: then only make the engine take the same path as while recording. */
void journal_begin(struct hal_device *dev, struct journal *j, const char *policy);
/* Write the last line and close the file.  Return -EIO if the file is incomplete. */
int journal_end(struct hal_device *dev);

/* Return the queue, or partition, whose backend handle is bk. */
struct hal_queue *journal_queue_of(struct hal_device *dev, const void *bk);
struct hal_partition *journal_partition_of(struct hal_device *dev, const void *bk);

/* ---- called by the engine; no effect unless the run is recorded or replayed ---- */

/* Write a line with a text. */
void journal_write_text(struct journal *j, enum journal_kind kind, const char *text);
/* Record, or in a replay compare, the counts of a queue that is being destroyed. */
void journal_gone(const struct hal_queue *q);

/* Write a line with the given numbers. */
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

/* Return the number that a journal has for err, which is 0 or -errno. */
static inline uint64_t journal_error(int err)
{
	return err < 0 ? (uint64_t)-err : 0;
}

/* Record that the engine is about to poll its device, which may run until until_ns.  In a
 * replay, check that the journal has a poll here. */
static inline void journal_before_poll(struct hal_device *dev, uint64_t until_ns,
				       bool idle)
{
	if (dev->replay.journal != NULL)
		dev->replay.recorder->before_poll(dev, until_ns, idle);
	else
		dev->replay.player->before_poll(dev, until_ns, idle);
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

/* Record the new records of q, from .accepted to tail. */
static inline void journal_accepted(struct hal_queue *q, unsigned int tail)
{
	if (UNLIKELY(q->dev->replay.journal != NULL))
		q->dev->replay.recorder->accepted(q, tail);
}

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recolor.h - a buffer goes to other memory channels while work goes on; by the engine.
 *
 * It is three records of a queue of the buffer's partition:
 *
 *   REC_RECOLOR   from here on no other queue's command that uses the buffer is given to
 *                 the device; passed when the device has none of those any more
 *   REC_BLOCK     copies to memory that was allocated for it, in pieces: other queues'
 *                 commands take their turns in between
 *   REC_RECOLORED when all before it has ended: the buffer and that memory are exchanged
 *                 (hal_bk_cold.mem_swap), the old one is freed, the others go on
 *
 * So the buffer's address on the device stays, and what of the partition does not use it
 * goes on.  Its queues are watched meanwhile: their commands are looked at; else nothing
 * of all this costs anything.
 */
#ifndef HAL_MEMORY_RECOLOR_H
#define HAL_MEMORY_RECOLOR_H

#include "command/queue.h"
#include "space/partition.h"

struct recolor {
	uint32_t refs; /* of the two records; the engine's once they are there */
	struct hal_queue *queue; /* whose they are */
	struct hal_buffer *buf;  /* NULL: of a journal, there is no memory */
	/* Of mem_alloc: where it goes; then where it was.  NULL: not known yet, of a
	 * partition with more than its quota (evict.h), and .block to be told. */
	void *to;
	struct block *block;         /* its pieces, until it begins */
	struct hal_bk_colors colors; /* where that is */
	uint8_t weights[HAL_BK_COLORS_MAX];
	/* The engine's. */
	struct list on_device; /* on device.recolors, from REC_RECOLOR on */
	bool waits;            /* for commands that the device has */
};

/* One reference; any thread.  c NULL: of a journal.  NULL: -ENOMEM. */
struct recolor *recolor_make(struct hal_queue *q, struct hal_buffer *buf, void *to,
			     const struct hal_bk_colors *c);
/* REC_RECOLOR is next in its queue: 1, it is over.  0: that is parked; -errno: there is
 * no room where the buffer goes. */
int recolor_begin(struct recolor *m);
/* REC_RECOLORED has ended; or was dropped, for the error of its queue, and the buffer
 * stays where it is.  What the device answered. */
int recolor_end(struct recolor *m, int dropped);
/* Memory that was allocated for buf to go to is not needed. */
void recolor_free(struct hal_buffer *buf, void *to);
/* A record of it has gone. */
void recolor_put(struct recolor *m);

/* The next command, r, of q, which is watched, may be given to the device: 1.  0: it uses
 * what is being moved or is not there (evict.h, bimodal.h), and q is parked until that is
 * over; -errno: that will never be. */
int recolor_lets(struct hal_queue *q, const struct record *r);
/* A command of q that the device had is over, whatever came of it. */
void recolor_look(struct hal_queue *q);
/* A new queue of part. */
void recolor_enter(struct hal_queue *q);

/* -EBUSY: the device keeps a command that uses it of a queue that somebody has suspended,
 * so that it would wait for as long as he likes. */
int recolor_check(const struct hal_buffer *buf);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recolor.h - move a buffer to other memory channels while its partition keeps working.
 * Engine thread only, unless a comment says otherwise.
 *
 * A move consists of three records in a queue of the buffer's partition:
 *
 *   REC_RECOLOR   From now on no other queue may issue a command that uses the buffer.
 *                 The record completes when no such command is in flight.
 *   REC_BLOCK     Copies to newly allocated memory, in pieces, so that commands of other
 *                 queues can run in between.
 *   REC_RECOLORED After all copies: exchange the buffer's memory with the new memory
 *                 (hal_bk_extra.mem_swap), free the old memory, and let the other
 *                 queues issue again.
 *
 * The buffer's device address stays, and commands that do not use the buffer continue.
 * During the move the partition's queues are watched (hal_queue.memory_watched): each of
 * their commands is checked before it is issued.
 */
#ifndef HAL_MEMORY_RECOLOR_H
#define HAL_MEMORY_RECOLOR_H

#include "command/queue.h"
#include "space/partition.h"

/* A move of a buffer to other channels. */
struct recolor {
	uint32_t refs; /* number of records that refer to this move; only the engine uses
			  it after the submit */
	struct hal_queue *queue; /* the queue of these records */
	struct hal_buffer *buf;  /* NULL: a replay, which has no memory */
	/* The new memory; after the exchange the old one.  NULL: it is allocated when the
	 * move begins, and then set in the copies of .block (partitions with eviction).
	 */
	void *to;
	struct block *block;         /* the copies; valid until they begin */
	struct hal_bk_colors colors; /* channels of the new memory */
	uint8_t weights[HAL_BK_COLORS_MAX];
	/* The engine's. */
	struct list on_device; /* on device.memory.recolors, from REC_RECOLOR on */
	bool waits; /* the move waits for in-flight commands that use the buffer */
};

/* Allocate a move, with one reference.  c is NULL in a replay.  Return NULL with the
 * error text if memory is short.  Any thread. */
struct recolor *recolor_make(struct hal_queue *q, struct hal_buffer *buf, void *to,
			     const struct hal_bk_colors *c);
/* Handle REC_RECOLOR, which is next in its queue.  Return 1 if it is complete, 0 if the
 * queue was parked, or -errno if there is no memory on the new channels. */
int recolor_begin(struct recolor *m);
/* Handle the end of REC_RECOLORED: exchange the memories and let the other queues issue.
 * dropped is the error of the queue if the queue has failed, else 0.  After an error the
 * buffer stays on its old channels.  Return 0, or -errno if the device refused the
 * exchange. */
int recolor_end(struct recolor *m, int dropped);
/* Free `to`, the memory allocated for a move of buf (or NULL), and clear buf->recolored.
 */
void recolor_free(struct hal_buffer *buf, void *to);
/* Drop the reference of one record, and free m with the last one. */
void recolor_put(struct recolor *m);

/* Check r, the next command of q, a watched queue.  Return 1 if r may be issued.  Return
 * 0 if q was parked, because r uses a buffer that is moving or evicted (evict.h), or has
 * to wait for another placement (bimodal.h).  Return -errno if r can never be issued. */
int recolor_lets(struct hal_queue *q, const struct record *r);
/* Continue the moves that wait for a command of q, because that command has completed,
 * failed or been dropped. */
void recolor_look(struct hal_queue *q);
/* Set the flags of q, a new queue, if its commands have to be checked. */
void recolor_enter(struct hal_queue *q);

/* Return -EBUSY if the application has suspended a queue inside a command that uses buf.
 * A move would have to wait until the application resumes that queue. */
int recolor_check(const struct hal_buffer *buf);

#endif

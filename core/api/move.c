/* SPDX-License-Identifier: Apache-2.0 */
/*
 * move.c - submit the move of a buffer to other memory channels.
 *
 * A move is one submission of three records (memory/recolor.h):
 *
 *   REC_RECOLOR    keep other queues' commands off the buffer
 *   REC_BLOCK      copy the buffer to its new memory, in pieces
 *   REC_RECOLORED  make the buffer use its new memory, free the old
 */
#include "api/move.h"

#include <errno.h>

#include "api/submit.h"
#include "command/completions.h"
#include "memory/recolor.h"

enum { RECOLOR_SLOTS = 3, PIECES_MAX = 65536 };

int recolor_reserve(struct hal_queue *q)
{
	int err = queue_open_check(q);

	if (err != 0)
		return err;
	if (!has_slots(q, RECOLOR_SLOTS))
		return queue_full(q, RECOLOR_SLOTS);
	if (q->completions != NULL && !completions_take(q->completions))
		return completions_full(q->completions);
	return 0;
}

void recolor_unreserve(const struct hal_queue *q)
{
	if (q->completions != NULL)
		completions_untake(q->completions);
}

/* Return the size of one copy: what one channel transfers in about a microsecond, so that
 * commands of the partition's other queues can run between the copies. */
static uint64_t piece_bytes(const struct hal_device *dev)
{
	enum { PIECES_A_SECOND = 1000000, GRAIN = 4096, UNKNOWN = 16384 };
	uint64_t bytes;

	if (dev->info.bandwidth == 0 || dev->info.colors == 0)
		return UNKNOWN;
	bytes = dev->info.bandwidth / dev->info.colors / PIECES_A_SECOND;
	return bytes < GRAIN ? GRAIN : bytes / GRAIN * GRAIN;
}

/* Write a record that copies at most `most` bytes of m's buffer, from offset `at` on. */
static void write_piece(const struct recolor *m, uint64_t at, uint64_t most,
			struct record_target *to)
{
	struct record *r = target_next(to, 1);
	uint64_t left = m->buf->bytes - at;

	write_common(r, HAL_OP_COPY, HAL_CMD_REPLAYABLE, 1, to->own, to->now);
	r->cmd.copy.dst = m->to;
	r->cmd.copy.src = m->buf->bk;
	r->cmd.copy.dst_offset = at;
	r->cmd.copy.src_offset = at;
	r->cmd.copy.bytes = left < most ? left : most;
}

int recolor_submit(struct recolor *m, struct hal_point *done)
{
	struct hal_queue *q = m->queue;
	uint64_t piece = piece_bytes(q->dev), bytes = m->buf->bytes;
	uint64_t pieces = (bytes + piece - 1) / piece;
	struct record_target to, in;
	struct record *r;
	struct block *b;

	/* Bound the memory of the records. */
	for (; pieces > PIECES_MAX; pieces = (bytes + piece - 1) / piece)
		piece *= 2;
	b = block_alloc((uint32_t)pieces);
	if (b == NULL)
		return -ENOMEM;
	to = target_ring(q);
	in = target_block(b);
	r = target_next(&to, 1);
	write_common(r, REC_RECOLOR, 0, 1, 0, to.now);
	r->recolor = m;
	for (uint64_t at = 0; at < bytes; at += piece)
		write_piece(m, at, piece, &in);
	m->block = b;
	r = target_next(&to, 1);
	write_common(r, REC_BLOCK, 0, 1, 0, to.now);
	r->block = b;
	r = target_next(&to, 1);
	write_common(r, REC_RECOLORED, 0, 1, 0, to.now);
	r->recolor = m;
	m->refs = 2;
	return submit_written(q, &to, (uint32_t)pieces, done);
}

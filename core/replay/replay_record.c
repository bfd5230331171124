/* SPDX-License-Identifier: Apache-2.0 */
/* replay_record.c - records of a journal, put into the ring of their queue. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "memory/recolor.h"
#include "replay/replay.h"
#include "util/error.h"

#define BLOCK_SLOTS_MAX (1u << 20)

/* What r has of points is not pending any more. */
static void drop_points(const struct record *r)
{
	if (!record_has_points(r))
		return;
	record_for_each_point(point, r) atomic_fetch_sub(&point->timeline->pending, 1);
}

static bool fill_points(struct play *p, const uint64_t *n, uint32_t count,
			struct record *r)
{
	for (uint32_t i = 0; i < count; i++, n += 4) {
		struct hal_timeline *t = play_timeline_at(p, n);

		if (t == NULL) {
			drop_points(r);
			return false;
		}
		atomic_fetch_add(&t->pending, 1);
		r->point[i] = (struct hal_point){t, n[3]};
	}
	return true;
}

static bool fill_record(struct play *p, const struct line *l, uint32_t own_wanted,
			struct record *r)
{
	static const struct {
		uint32_t op, least, most;
	} ops[] = {
		{HAL_OP_NOP, 0, 0},       {HAL_OP_COPY, 0, 0}, {HAL_OP_FILL, 0, 0},
		{HAL_OP_LAUNCH, 1, 3},    {HAL_OP_HOST, 0, 0}, {HAL_OP_BARRIER, 0, 0},
		{HAL_OP_TIMESTAMP, 0, 0}, {REC_WAIT, 4, 8},    {REC_SIGNAL, 4, 8},
		{REC_HEAD, 5, 5},         {REC_BLOCK, 1, 1},   {REC_RECOLOR, 0, 0},
		{REC_RECOLORED, 0, 0},
	};
	const uint64_t *n = &l->n[3];
	size_t i = 0;

	memset(r, 0, sizeof(*r));
	while (i < ARRAY_LENGTH(ops) && ops[i].op != l->n[0])
		i++;
	if (i == ARRAY_LENGTH(ops) ||
	    (l->count != 3 + ops[i].least && l->count != 3 + ops[i].most) ||
	    l->n[1] > UINT32_MAX) {
		play_bad(p, EINVAL, "not a record");
		return false;
	}
	r->cmd.op = (uint32_t)l->n[0];
	r->cmd.flags = (uint32_t)l->n[1];
	r->submit_ns = l->n[2];
	if ((r->own & REC_INNER) != own_wanted || r->slots == 0 ||
	    (own_wanted != 0 && r->cmd.op > REC_BLOCK) ||
	    (r->cmd.op != HAL_OP_LAUNCH && r->slots != 1)) {
		play_bad(p, EINVAL, "not a record that can be there");
		return false;
	}
	switch (r->cmd.op) {
	case HAL_OP_LAUNCH:
		r->launch.kernel = play_kernel_of(p, n);
		return r->launch.kernel != NULL;
	case REC_WAIT:
	case REC_SIGNAL:
		return fill_points(p, n, (l->count - 3) / 4, r);
	case REC_HEAD:
		r->head.not_before_ns = n[0];
		r->head.deadline_ns = n[1];
		r->head.tag = n[2];
		r->head.priority = (int32_t)(uint32_t)n[3];
		r->head.flags = (uint32_t)n[4];
		return true;
	default:
		return true;
	}
}

static bool read_record(struct play *p, uint32_t own_wanted, struct record *r,
			uint64_t *slots)
{
	struct line l;

	if (!line_expect(p, JOURNAL_RECORD, &l))
		return false;
	if (!fill_record(p, &l, own_wanted, r))
		return false;
	p->info.inputs++;
	*slots = r->cmd.op == REC_BLOCK ? l.n[3] : 0;
	return true;
}

static void block_drop(struct block *b, uint32_t slots)
{
	for (uint32_t i = 0; i < slots; i += b->rec[i].slots)
		drop_points(&b->rec[i]);
	free(b);
}

static struct block *read_block(struct play *p, uint64_t slots)
{
	struct block *b;
	uint32_t at = 0;

	if (slots == 0 || slots > BLOCK_SLOTS_MAX) {
		play_bad(p, EINVAL, "not so many slots");
		return NULL;
	}
	b = malloc(sizeof(*b) + ((size_t)slots + UINT8_MAX) * sizeof(struct record));
	if (b == NULL) {
		play_bad(p, ENOMEM, "no memory for what is in it");
		return NULL;
	}
	atomic_init(&b->refs, 1);
	b->slots = (uint32_t)slots;
	while (at < slots) {
		uint64_t none;

		if (!read_record(p, REC_INNER, &b->rec[at], &none)) {
			block_drop(b, at);
			return NULL;
		}
		at += b->rec[at].slots;
		if (at > slots || none != 0) {
			play_bad(p, EINVAL, "the record does not fit its block");
			block_drop(b, at);
			return NULL;
		}
	}
	return b;
}

/* The first of the two records that belong together makes what they are about. */
static bool fill_recolor(struct play *p, struct hal_queue *q, struct record *r)
{
	if (r->cmd.op == REC_RECOLOR) {
		r->recolor = recolor_make(q, NULL, NULL, NULL);
		if (r->recolor == NULL)
			play_bad(p, ENOMEM, "no memory for it");
	} else if (p->recolor != NULL && p->recolor->queue == q) {
		r->recolor = p->recolor;
		r->recolor->refs++;
	} else {
		play_bad(p, EINVAL, "no buffer of this queue is about to move");
	}
	p->recolor = r->cmd.op == REC_RECOLOR ? r->recolor : NULL;
	return r->recolor != NULL;
}

bool play_record(struct play *p, struct hal_queue *q, unsigned int *pos)
{
	unsigned int room = q->ring.size - (*pos - ring_head(&q->ring));
	struct record *r = &q->slots[*pos & q->ring.mask];
	struct record fresh;
	uint64_t block;

	if (!read_record(p, 0, &fresh, &block))
		return false;
	if (fresh.slots > room || fresh.slots > RECORD_SLOTS_MAX) {
		play_bad(p, EINVAL, "the queue has no room for it");
		drop_points(&fresh);
		return false;
	}
	if (fresh.cmd.op == REC_BLOCK) {
		fresh.block = read_block(p, block);
		if (fresh.block == NULL)
			return false;
	}
	if (fresh.cmd.op > REC_BLOCK && !fill_recolor(p, q, &fresh))
		return false;
	*r = fresh;
	*pos += fresh.slots;
	return true;
}

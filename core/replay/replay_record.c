/* SPDX-License-Identifier: Apache-2.0 */
/* replay_record.c - read records from a journal into the ring of their queue. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "memory/recolor.h"
#include "replay/replay.h"
#include "util/error.h"

#define BLOCK_SLOTS_MAX (1u << 20)

/* Stop counting the points of r as pending on their timelines: r is not used. */
static void drop_points(const struct record *r)
{
	if (!record_has_points(r))
		return;
	record_for_each_point(point, r) atomic_fetch_sub(&point->timeline->pending, 1);
}

/* Read count points into r, and count them as pending.  Return false if a
 * timeline is missing. */
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

/* Fill r from line l.  own_wanted: REC_INNER for a record of a block, otherwise 0. */
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
		play_fail(p, EINVAL, "not a record");
		return false;
	}
	r->cmd.op = (uint32_t)l->n[0];
	r->cmd.flags = (uint32_t)l->n[1];
	r->submit_ns = l->n[2];
	if ((r->own & REC_INNER) != own_wanted || r->slots == 0 ||
	    (own_wanted != 0 && r->cmd.op > REC_BLOCK) ||
	    (r->cmd.op != HAL_OP_LAUNCH && r->slots != 1)) {
		play_fail(p, EINVAL, "a record of this kind cannot be there");
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

/* Read the next line, a record, into r.  Set *slots to the slots of a block, 0 for other
 * records. */
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

static void drop_block(struct block *b, uint32_t slots)
{
	for (uint32_t i = 0; i < slots; i += b->rec[i].slots)
		drop_points(&b->rec[i]);
	free(b);
}

/* Read the records of a block. */
static struct block *read_block(struct play *p, uint64_t slots)
{
	struct block *b;
	uint32_t at = 0;

	if (slots == 0 || slots > BLOCK_SLOTS_MAX) {
		play_fail(p, EINVAL, "a block cannot have this number of slots");
		return NULL;
	}
	b = malloc(sizeof(*b) + ((size_t)slots + UINT8_MAX) * sizeof(struct record));
	if (b == NULL) {
		play_fail(p, ENOMEM, "no memory for the objects of the journal");
		return NULL;
	}
	atomic_init(&b->refs, 1);
	b->slots = (uint32_t)slots;
	while (at < slots) {
		uint64_t none;

		if (!read_record(p, REC_INNER, &b->rec[at], &none)) {
			drop_block(b, at);
			return NULL;
		}
		at += b->rec[at].slots;
		if (at > slots || none != 0) {
			play_fail(p, EINVAL, "the record does not fit its block");
			drop_block(b, at);
			return NULL;
		}
	}
	return b;
}

/* Set r->recolor.  REC_RECOLOR creates the object; the REC_RECOLORED after it uses the
 * same one. */
static bool fill_recolor(struct play *p, struct hal_queue *q, struct record *r)
{
	if (r->cmd.op == REC_RECOLOR) {
		r->recolor = recolor_make(q, NULL, NULL, NULL);
		if (r->recolor == NULL)
			play_fail(p, ENOMEM, "no memory for the objects of the journal");
	} else if (p->recolor != NULL && p->recolor->queue == q) {
		r->recolor = p->recolor;
		r->recolor->refs++;
	} else {
		play_fail(p, EINVAL,
			  "the record of this queue that begins the recolouring is "
			  "missing");
	}
	p->recolor = r->cmd.op == REC_RECOLOR ? r->recolor : NULL;
	return r->recolor != NULL;
}

bool play_record(struct play *p, struct hal_queue *q, unsigned int *pos)
{
	unsigned int room = q->slot_count - (*pos - atomic_load(&q->head));
	struct record *r = &q->slots[*pos & q->slot_mask];
	struct record fresh;
	uint64_t block;

	if (!read_record(p, 0, &fresh, &block))
		return false;
	if (fresh.slots > room || fresh.slots > RECORD_SLOTS_MAX) {
		play_fail(p, EINVAL,
			  "the ring of the queue has no space for this record");
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

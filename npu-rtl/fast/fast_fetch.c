/* SPDX-License-Identifier: Apache-2.0 */
/* fast_fetch.c - npu_fetch: pieces of memory, asked for in up to three parts, delivered
 * in order. */
#include "fast.h"

struct part {
	uint32_t va, len;
	bool last;
};

/* The part of p that is asked for next. */
static struct part part_of(const struct fetch *f, const struct piece *p)
{
	uint32_t first = p->cut ? 16 - (p->va & 15u) : 64 - (p->va & 63u);
	uint32_t gone = f->part == 0 ? 0 : f->part == 1 ? first : first + 16;
	struct part r = {p->va, p->len - gone, true};

	if (f->part == 0) {
		if (first < r.len)
			r = (struct part){p->va, first, false};
		return r;
	}
	if (!p->cut) {
		r.va = (p->va & ~63u) + 64;
		return r;
	}
	r.va = (p->va & ~15u) + p->jump * f->part;
	if (r.len > 16)
		r = (struct part){r.va, 16, false};
	return r;
}

bool fetch_ask(const struct fetch *f, const struct piece *p, struct ask *ask)
{
	struct part r;

	if (f->tail - f->head >= 64)
		return false;
	r = part_of(f, p);
	ask->va = r.va;
	ask->len = (uint8_t)r.len;
	ask->tag = (uint16_t)(f->part << 6 | (f->tail & 63u));
	ask->we = false;
	ask->fence = false;
	return true;
}

bool fetch_last(const struct fetch *f, const struct piece *p)
{
	return part_of(f, p).last;
}

/* asked: a part of it is being granted. */
void fetch_step(struct fetch *f, const struct response *rsp, const struct piece *asked,
		bool pop)
{
	bool ripe = fetch_ripe(f);

	if (rsp->v && rsp->tag < TAG_ACT)
		f->pend[rsp->tag & 63u] &= (uint8_t) ~(1u << (rsp->tag >> 6));
	if (asked) {
		uint32_t i = f->tail & 63u;
		bool last = fetch_last(f, asked);

		if (!f->part) {
			f->piece[i] = *asked;
			f->pend[i] = 0;
		}
		f->pend[i] |= (uint8_t)(1u << f->part);
		f->part = last ? 0 : f->part + 1;
		f->tail += last;
	}
	f->ready += ripe;
	f->head += pop;
}

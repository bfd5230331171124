/* SPDX-License-Identifier: Apache-2.0 */
/* plan.c - where activations lie: greedy by size. */
#include "plan.h"

#include <errno.h>
#include <stdlib.h>

static uint64_t align_up(uint64_t x)
{
	return (x + NPUC_ALIGN - 1) / NPUC_ALIGN * NPUC_ALIGN;
}

static int by_size(const void *a, const void *b)
{
	const struct plan_item *x = *(struct plan_item *const *)a;
	const struct plan_item *y = *(struct plan_item *const *)b;

	if (x->bytes != y->bytes)
		return x->bytes > y->bytes ? -1 : 1;
	if (x->first != y->first)
		return x->first < y->first ? -1 : 1;
	return x < y ? -1 : x > y;
}

static int meet(const struct plan_item *a, const struct plan_item *b)
{
	return a->first <= b->last && b->first <= a->last;
}

/* placed is sorted by offset; the best gap for item among those that live with it. */
static uint64_t best_gap(struct plan_item *const *placed, uint32_t count,
			 const struct plan_item *item)
{
	uint64_t end = 0, best = UINT64_MAX, best_at = 0;

	for (uint32_t i = 0; i < count; i++) {
		const struct plan_item *p = placed[i];

		if (!meet(p, item))
			continue;
		if (p->offset > end && p->offset - end >= item->bytes &&
		    p->offset - end < best) {
			best = p->offset - end;
			best_at = end;
		}
		if (align_up(p->offset + p->bytes) > end)
			end = align_up(p->offset + p->bytes);
	}
	return best == UINT64_MAX ? end : best_at;
}

int npuc_plan(struct plan_item *items, uint32_t count, uint64_t *peak)
{
	struct plan_item **order =
		calloc((size_t)count * 2 + 1, sizeof(struct plan_item *));
	struct plan_item **placed = order + count;

	if (!order)
		return -ENOMEM;
	for (uint32_t i = 0; i < count; i++)
		order[i] = &items[i];
	qsort(order, count, sizeof(struct plan_item *), by_size);
	*peak = 0;
	for (uint32_t i = 0; i < count; i++) {
		struct plan_item *item = order[i];
		uint32_t at = i;

		item->offset = best_gap(placed, i, item);
		if (item->offset + item->bytes > *peak)
			*peak = item->offset + item->bytes;
		for (; at && placed[at - 1]->offset > item->offset; at--)
			placed[at] = placed[at - 1];
		placed[at] = item;
	}
	free(order);
	return 0;
}

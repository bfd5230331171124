/* SPDX-License-Identifier: Apache-2.0 */
/* fast_out.c - npu_conv_out: output tiles and their stores. */
#include "fast.h"

#include <string.h>

#include "npu_panel.h"

bool out_full(const struct out *o, const struct tile *t)
{
	return o->live >= (t->quad ? 8u : 2u) ||
	       (t->quad && o->kept[t->tid & 3u] + t->t > NPU_DEPTH_PAIR) ||
	       (o->live && (t->quad != o->quad || t->out32 != o->out32));
}

void out_store(const struct out *o, uint32_t *va, uint32_t *len, bool *mark)
{
	*va = o->st_va + o->st_at;
	*len = o->st_bytes - o->st_at > 32 ? 32 : o->st_bytes - o->st_at;
	*mark = o->st_panel && o->st_at + *len == o->st_bytes;
}

/* A row is there to be stored. */
static bool here(const struct out *o, uint32_t head)
{
	const struct tile *out = &o->tile[o->out_tid & 7u];
	bool two = out->pair;

	return (o->done > two || (o->done == two && o->in_t > o->out_t)) && o->live &&
	       out->seq == (head & 3u);
}

/* tile: one begins, or NULL; row: a row of outputs comes; stored: what out_store says is
 * taken.  Whether that row is the last of its operation. */
bool out_step(struct out *o, uint32_t head, const struct tile *tile, bool row,
	      bool stored, bool retire)
{
	const struct tile *in = &o->tile[o->in_tid & 7u],
			  *out = &o->tile[o->out_tid & 7u];
	const struct tile *next = &o->tile[(o->out_tid + 1) & 7u];
	uint32_t len = o->st_bytes - o->st_at > 32 ? 32 : o->st_bytes - o->st_at;
	bool two = out->pair, row_end = stored && o->st_at + len == o->st_bytes;
	bool read = here(o, head) && (!o->st_v || row_end),
	     in_last = row && o->in_t + 1 == in->t;
	bool out_last = read && o->out_t + 1 == out->t, op_done = in_last && in->ends;

	o->end = (o->end && !retire) || (o->st_v && row_end && o->st_end);
	if (read) {
		uint32_t va = o->out_t ? o->va : out->addr;

		for (uint32_t i = 0; o->quad && i <= two; i++)
			o->kept[(o->out_tid + i) & 3u]--;
		o->st_va = va;
		o->va = va + out->ldd;
		o->st_bytes = out->out32 ? out->nc * 4 : out->nc + (two ? next->nc : 0);
		o->st_end = out_last && (out->ends || (two && next->ends));
		o->st_panel = out_last && (out->panel || (two && next->panel));
		o->st_upto = out->upto;
		o->st_at = 0;
		o->st_v = true;
		o->out_t = out_last ? 0 : o->out_t + 1;
	} else if (stored) {
		o->st_at += len;
		o->st_v = o->st_v && !row_end;
	}
	if (row)
		o->in_t = in_last ? 0 : o->in_t + 1;
	o->live += tile != NULL;
	o->done += in_last;
	o->in_tid += in_last;
	if (out_last) {
		o->live -= 1 + two;
		o->done -= 1 + two;
		o->out_tid += 1 + two;
	}
	if (tile) {
		o->tile[tile->tid] = *tile;
		if (tile->quad)
			o->kept[tile->tid & 3u] += tile->t;
		o->quad = tile->quad;
		o->out32 = tile->out32;
	}
	return op_done;
}

bool out_even(const struct out *o, uint32_t head)
{
	return !here(o, head) && !o->st_v;
}

void out_kill(struct out *o)
{
	o->end = false;
	o->st_v = false;
	o->in_t = o->out_t = 0;
	o->in_tid = o->out_tid = 0;
	o->live = o->done = 0;
	memset(o->kept, 0, sizeof(o->kept));
}

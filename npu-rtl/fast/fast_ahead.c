/* SPDX-License-Identifier: Apache-2.0 */
/* fast_ahead.c - npu_ahead: what operations under way write, and what the next one reads.
 */
#include "fast.h"

bool ahead_array(const uint32_t *d)
{
	return NPU_GET(d, OPCODE) == NPU_OP_GEMM || NPU_GET(d, OPCODE) == NPU_OP_CONV;
}

static struct range range_of(const uint32_t *d, enum what what)
{
	bool gemm = NPU_GET(d, OPCODE) == NPU_OP_GEMM, block = NPU_GET(d, F_BLOCK);
	uint32_t n = NPU_GET(d, DN), base = 0, rows = 1, pitch = 0, last = 0;
	uint32_t kcin = NPU_GET(d, F_GROUP) ? NPU_GET(d, GC) : NPU_GET(d, CIN);
	uint32_t k = (gemm ? kcin : NPU_GET(d, KH) * NPU_GET(d, KW) * kcin) & 0xFFFFu;
	bool any = true;
	uint64_t hi;

	switch (what) {
	case RANGE_A:
		rows = gemm ? NPU_GET(d, DM) : NPU_GET(d, H);
		any = gemm || (NPU_GET(d, H) && NPU_GET(d, W));
		base = NPU_GET(d, ADDR_A);
		pitch = NPU_GET(d, LDA);
		last = NPU_GET(d, CIN) +
		       (gemm ? 0 : (NPU_GET(d, W) - 1) * NPU_GET(d, PIX));
		break;
	case RANGE_P:
		any = !NPU_GET(d, F_NOPARAM);
		base = NPU_GET(d, ADDR_P);
		last = n * 16;
		break;
	case RANGE_B:
		base = NPU_GET(d, ADDR_B);
		rows = block ? (n + 15) / 16 : k;
		pitch = block ? k * 16 : NPU_GET(d, LDB);
		last = block ? k * 16 : n;
		break;
	case RANGE_D:
		base = NPU_GET(d, ADDR_D);
		rows = NPU_GET(d, DM);
		pitch = NPU_GET(d, LDD);
		last = NPU_GET(d, F_OUT32) ? n * 4 : n;
		break;
	default:
		any = false;
		break;
	}
	/* as wide as the machine has it: no rows are 2^20 less one */
	hi = base + (uint64_t)((rows - 1) & 0xFFFFFu) * pitch + last - 1;
	return (struct range){any, (hi >> 32 & 0x1FFFFFu) != 0, base, (uint32_t)hi};
}

static bool meets(const struct ahead *a, const struct range *r, const struct conv *v)
{
	for (uint32_t i = v->head; i != v->in; i++) {
		const struct range *w = &a->writes[i & 3u];

		if (r->any &&
		    (r->wraps || w->wraps || (r->lo <= w->hi && w->lo <= r->hi)))
			return true;
	}
	return false;
}

/* Whether the line that is asked for lies where the oldest operation has yet to store. */
bool ahead_held(const struct slot *s)
{
	const struct conv *v = &s->conv;
	const struct range *oldest = &s->ahead.writes[v->head & 3u];
	uint32_t line = v->act.va & ~63u, from = s->acked.v ? s->acked.upto : oldest->lo;

	if (v->rows_n - 1 == v->head || !v->behind[(v->rows_n - 1) & 3u])
		return false;
	return oldest->wraps || (line + 63 >= from && line <= oldest->hi);
}

bool ahead_known(const struct ahead *a, bool next_v)
{
	return next_v && a->step == 6;
}

/* start: an operation begins on its own; take: the next begins beside others. */
void ahead_step(struct slot *s, bool start, bool take, bool next_v, bool clear)
{
	struct ahead *a = &s->ahead;
	const struct conv *v = &s->conv;
	enum what what = a->own ? RANGE_D : RANGE_NONE;
	bool own = a->own, met;

	if (!own && next_v && a->step < 4)
		what = (enum what)(RANGE_A + a->step);
	if (a->what_2 != RANGE_NONE) {
		met = meets(a, &a->range_2, v);
		if (a->own_2) {
			a->writes[a->own_seq] = a->range_2;
		} else if (a->what_2 == RANGE_A) {
			a->behind = met;
			a->bad = false;
		} else if (a->what_2 == RANGE_D) {
			a->next_d = a->range_2;
		} else if (met) {
			a->bad = true;
		}
	}
	if (take)
		a->writes[v->in & 3u] = a->next_d;
	a->what_2 = a->what_1;
	a->range_2 = a->range_1;
	a->own_2 = a->own_1;
	a->what_1 = what;
	if (what != RANGE_NONE)
		a->range_1 = range_of(own ? s->desc : s->next, what);
	a->own_1 = own;
	a->own = start;
	if (start)
		a->own_seq = v->in & 3u;
	if (!next_v || own)
		a->step = 0;
	else if (a->step != 6)
		a->step++;
	if (clear) {
		a->own = false;
		a->step = 0;
	}
}

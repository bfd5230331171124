/* SPDX-License-Identifier: Apache-2.0 */
/* fast_act.c - npu_conv_act: the activation loader: which lines are asked for, how many
 * input rows are complete. */
#include "fast.h"

#define LINES 64u

void act_comb(struct conv *v, const struct conv_op *op)
{
	struct act *a = &v->act;

	v->a_fits = a->act && a->old + a->occupied + op->row_bytes + 128 <= SPAD;
	v->a_dup = a->last_v && a->last == a->va >> 6 && a->last_line == a->line;
	v->a_req = v->a_fits && !v->a_dup && a->count != LINES;
}

/* Bytes of a row of the part that begins at k. */
static uint32_t bytes(const struct conv_op *op, uint32_t k)
{
	return op->kcut && op->k - k < op->row_bytes ? op->k - k : op->row_bytes;
}

/* The row behind this one, where K is cut: whether there is one. */
static bool next_cut(struct act *a, const struct conv_op *op, uint32_t cols)
{
	a->rva += op->lda;
	if (++a->t != op->m)
		return true;
	a->t = 0;
	a->k += op->row_bytes;
	if (a->k >= op->k) {
		a->k = 0;
		a->n += a->kept ? op->at.nc : cols;
		a->kept = false;
	}
	a->rva = op->addr_a + a->k;
	return a->n < op->n;
}

/* old: of the scratchpad, what rows that are still gathered from take. */
static void begin(struct conv *v, uint32_t top, uint32_t old)
{
	const struct conv_op *op = &v->op[v->rows_n & 3u];
	struct act *a = &v->act;

	v->base[v->rows_n & 3u] = top;
	a->act = op->h != op->row;
	a->t = 0;
	a->k = op->kcut ? op->at.k >> op->kcut << op->kcut : 0;
	a->n = op->at.n;
	a->kept = op->at.nc != 0;
	a->rva = op->addr_a + a->k;
	a->va = a->rva;
	a->end = a->rva + bytes(op, a->k) - 1;
	a->rsp = top << 6 | (op->kcut ? 0 : op->addr_a & 63u);
	a->line = top;
	a->old = old;
	a->last_v = false;
	a->row = a->done = a->lo = op->row;
	a->occupied = 0;
}

/* granted: the line asked for is; lo: oldest row still needed; start: the next operation
 * begins. */
void act_step(struct conv *v, const struct response *rsp, bool granted, uint32_t lo,
	      bool start, uint32_t cols)
{
	struct act *a = &v->act;
	const struct act was = *a;
	const struct conv_op *op = &v->op[(v->rows_n - 1) & 3u];
	bool adv = v->a_fits && (v->a_dup || granted), row_end, retire, lo_step;
	bool passed = !v->gather.old, stop = v->streamed_n == v->rows_n;

	row_end = adv && was.va >> 6 == was.end >> 6;
	retire = was.count && !(was.pend >> was.head & 1u);
	lo_step = was.lo != lo && was.lo != was.done && passed;
	if (retire) {
		a->done = a->mark[was.head];
		a->head = (was.head + 1) & (LINES - 1);
	} else if (!was.count) {
		a->done = was.row;
	}
	if (granted) {
		a->mark[was.tail] = was.row + row_end;
		a->tail = (was.tail + 1) & (LINES - 1);
		a->pend |= UINT64_C(1) << was.tail;
		a->last_v = true;
		a->last = was.va >> 6;
		a->last_line = was.line;
	} else if (row_end) {
		a->mark[(was.tail - 1) & (LINES - 1)] = was.row + 1;
	}
	a->count += (uint32_t)granted - (uint32_t)retire;
	if (adv) {
		a->va = was.va + 64;
		a->line = (was.line + 1) & (SPAD / 64 - 1);
		a->top = a->line;
	}
	if (row_end) {
		a->row = was.row + 1;
		if (op->kcut)
			a->act = next_cut(a, op, cols);
		else
			a->rva = was.rva + op->lda;
		a->va = a->rva;
		a->end = a->rva + bytes(op, a->k) - 1;
		a->rsp = (was.rsp + op->sps) & (SPAD - 1);
		a->line = a->rsp >> 6;
		if (!op->kcut && a->row == op->h)
			a->act = false;
	}
	a->occupied += (row_end ? op->sps & (SPAD - 1) : 0) -
		       (lo_step ? op->sps & (SPAD - 1) : 0);
	a->lo += lo_step;
	if (rsp->v && rsp->tag >= TAG_ACT && rsp->tag < TAG_ACT + 0x40u)
		a->pend &= ~(UINT64_C(1) << (rsp->tag & 63u));
	if (stop)
		a->act = false;
	if ((stop || v->streamed_n == v->rows_n - 1) && passed)
		a->old = 0;
	if (start)
		begin(v, was.top,
		      a->old + (stop && passed ? 0 : was.occupied + op->row_bytes + 128));
}

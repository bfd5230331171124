/* SPDX-License-Identifier: Apache-2.0 */
/* fast_vec.c - npu_vec with its units: when pieces are asked for, taken, and stored. */
#include "fast.h"

#define PLACES      8u
#define ADD_OUT     10u /* cycles from the taking of a piece to its output */
#define ONE_OUT     5u
#define AVG_OUT     10u
#define LUT_OUT     1u
#define SOFTMAX_OUT 5u

/* npu_softmax's steps of the reciprocal: Drain0 .. Double, and the loop back twice. */
#define SOFTMAX_ERROR 8u
#define SOFTMAX_ADD   13u
#define SOFTMAX_LAST  14u

static void decode(struct vec *v, const uint32_t *d)
{
	uint32_t vop = NPU_GET(d, VOP);

	v->add = vop == NPU_VOP_ADD;
	v->two = v->add || vop == NPU_VOP_MUL;
	v->relu = vop == NPU_VOP_RELU;
	v->avg = vop == NPU_VOP_AVGPOOL;
	v->pool = v->avg || vop == NPU_VOP_MAXPOOL;
	v->fill = vop == NPU_VOP_FILL;
	v->lut = vop == NPU_VOP_LUT;
	v->softmax = vop == NPU_VOP_SOFTMAX;
	v->step = v->two || v->relu ? 16 : 32;
	v->cols = v->pool ? NPU_GET(d, CIN) : NPU_GET(d, VCOLS);
	v->tables = v->lut ? 8 : v->softmax ? 32 : 0;
}

/* In the cycle after the start: start_q. */
static void begin(struct vec *v, const uint32_t *d)
{
	uint32_t line; /* input row of its first output; pools: under the padding */

	decode(v, d);
	line = v->pool ? v->from.m / NPU_GET(d, OW) * NPU_GET(d, SY) : v->from.m;
	v->act = true;
	v->b = v->some = false;
	v->ky = v->kx = v->tab = v->pass = 0;
	v->row = v->from.m;
	v->col = v->from.n;
	v->ox = v->pool ? v->row % NPU_GET(d, OW) : 0;
	v->a_va = NPU_GET(d, ADDR_A) + line * NPU_GET(d, LDA);
	if (v->pool)
		v->a_va -= NPU_GET(d, PT) * NPU_GET(d, LDA) +
			   NPU_GET(d, PL) * NPU_GET(d, PIX);
	v->b_va = NPU_GET(d, ADDR_B) + v->row * NPU_GET(d, VLDB);
	v->win_va = v->a_va + v->ox * NPU_GET(d, SX) * NPU_GET(d, PIX);
	v->line_va = v->pixel_va = v->win_va;
	v->iy = (int32_t)line - (int32_t)NPU_GET(d, PT);
	v->ix = (int32_t)(v->ox * NPU_GET(d, SX)) - (int32_t)NPU_GET(d, PL);
	v->taken = v->tab_in = v->in_pass = v->in_col = 0;
	v->second = false;
	v->emit_rp = v->emit_wp;
	v->waiting = 0;
	v->out_row = v->from.m;
	v->out_col = v->from.n;
	v->out_va = NPU_GET(d, ADDR_D) + v->out_row * NPU_GET(d, LDD);
	v->out_act = true;
	v->quarter = v->div = v->index = v->step_n = v->round = 0;
	v->half = false;
}

bool vec_busy(const struct vec *v)
{
	return v->start || v->act || v->out_act;
}

bool vec_holds(const struct slot *s)
{
	return s->fold && (!s->vec.softmax || !s->vec.out_col);
}

bool vec_halted(const struct slot *s, struct npu_progress *at)
{
	*at = (struct npu_progress){.m = s->vec.out_row, .n = s->vec.out_col};
	return vec_holds(s) && s->vec.out_act && !s->vec.start;
}

bool vec_store(const struct vec *v, const uint32_t *d, uint32_t *va, uint32_t *len)
{
	(void)d;
	*va = v->out_va + v->out_col;
	*len = v->out_col + v->step >= v->cols ? v->cols - v->out_col : v->step;
	return v->waiting != 0;
}

/* ---- npu_vec_fetch ---------------------------------------------------------------------- */

static void fetch_comb(struct vec *v, const uint32_t *d)
{
	int32_t iy = v->iy + (int32_t)v->ky, ix = v->ix + (int32_t)v->kx;
	int32_t h = (int32_t)NPU_GET(d, H), w = (int32_t)NPU_GET(d, W);
	bool table = v->tab != v->tables;

	v->in_image = iy >= 0 && iy < h && ix >= 0 && ix < w;
	v->k_last = v->ky + 1 == NPU_GET(d, KH) && v->kx + 1 == NPU_GET(d, KW);
	v->last_in = v->in_image && (v->ky + 1 == NPU_GET(d, KH) || iy + 1 == h) &&
		     (v->kx + 1 == NPU_GET(d, KW) || ix + 1 == w);
	v->col_last = v->col + v->step >= v->cols;
	v->push_table = table;
	v->push = v->act && !v->fill && (table || !v->pool || v->in_image);
	v->empty = v->act && v->pool && v->k_last && !v->in_image && !v->some;
	v->piece = (struct piece){.va = table ? NPU_GET(d, ADDR_P) + v->tab * 32
					      : (v->pool ? v->pixel_va
						 : v->b  ? v->b_va
							 : v->a_va) +
							v->col,
				  .len = table         ? 32
					 : v->col_last ? v->cols - v->col
						       : v->step,
				  .meta = (uint32_t)table << 9 | v->last_in};
}

static void next_row(struct vec *v, const uint32_t *d)
{
	v->row++;
	v->b_va += NPU_GET(d, VLDB);
	v->ox++;
	v->ix += (int32_t)NPU_GET(d, SX);
	v->win_va += NPU_GET(d, SX) * NPU_GET(d, PIX);
	if (!v->pool) {
		v->a_va += NPU_GET(d, LDA);
	} else if (v->ox == NPU_GET(d, OW)) {
		v->ox = 0;
		v->ix = -(int32_t)NPU_GET(d, PL);
		v->iy += (int32_t)NPU_GET(d, SY);
		v->a_va += NPU_GET(d, SY) * NPU_GET(d, LDA);
		v->win_va = v->a_va;
	}
	if (v->row == NPU_GET(d, DM))
		v->act = false;
}

static void fetch_advance(struct vec *v, const uint32_t *d)
{
	if (v->push_table) {
		v->tab++;
		return;
	}
	if (v->pool && !v->k_last) {
		v->some = v->some || v->in_image;
		v->pixel_va += NPU_GET(d, PIX);
		if (++v->kx == NPU_GET(d, KW)) {
			v->kx = 0;
			v->ky++;
			v->line_va += NPU_GET(d, LDA);
			v->pixel_va = v->line_va;
		}
		return;
	}
	if (v->two && !v->b) {
		v->b = true;
		return;
	}
	v->b = v->some = false;
	v->ky = v->kx = 0;
	v->col += v->step;
	if (v->col_last) {
		bool again = v->softmax && v->pass != 2;

		v->col = 0;
		v->pass = again ? v->pass + 1 : 0;
		if (!again)
			next_row(v, d);
	}
	v->line_va = v->pixel_va = v->win_va;
}

/* ---- units ---------------------------------------------------------------------------------- */

/* Whether the softmax is done with its piece. */
static bool softmax_takes(const struct vec *v, bool piece, uint32_t len)
{
	return piece && !v->step_n && (!v->in_pass || v->index + 1 == len);
}

static void softmax_step(struct vec *v, bool piece, bool last)
{
	bool go = piece && !v->step_n, starts = v->take && v->in_pass == 1 && last;

	if (go && v->in_pass)
		v->index = v->take ? 0 : v->index + 1;
	if (!v->step_n) {
		v->round = 0;
		v->step_n = starts;
	} else if (v->step_n == SOFTMAX_ADD) {
		v->step_n = v->round == 2 ? SOFTMAX_LAST : SOFTMAX_ERROR;
		v->round++;
	} else {
		v->step_n = v->step_n == SOFTMAX_LAST ? 0 : v->step_n + 1;
	}
}

static uint32_t delay_of(const struct vec *v)
{
	if (v->two || v->relu)
		return v->add ? ADD_OUT : ONE_OUT;
	if (v->pool)
		return v->avg ? AVG_OUT : 1;
	return v->lut ? LUT_OUT : v->softmax ? SOFTMAX_OUT : 0;
}

/* ---- npu_vec ------------------------------------------------------------------------------ */

void vec_comb(struct npu_model *m, struct slot *s)
{
	struct vec *v = &s->vec;
	const struct fetch *f = &s->fetch;
	const struct piece *p = &f->piece[f->head & 63u];
	bool there = f->ready != f->head, room = v->taken != PLACES, piece, table, lanes;
	uint32_t len;

	v->take = v->pop = v->emits = v->work = v->push = v->empty = false;
	v->halt = s->fold;
	if (v->start)
		return;
	fetch_comb(v, s->desc);
	table = there && p->meta >> 9;
	piece = there && !(p->meta >> 9) && room;
	len = v->in_col + v->step >= v->cols ? v->cols - v->in_col : v->step;
	lanes = v->two || v->relu;
	if (v->lut)
		v->take = piece && v->half;
	else if (v->softmax)
		v->take = softmax_takes(v, piece, len);
	else
		v->take = piece && !v->div;
	v->pop = v->take || (table && (!v->lut || v->quarter == 3));
	v->makes = v->pool  ? p->meta & 1u
		   : v->two ? v->second
			    : !v->softmax || v->in_pass == 2;
	v->emits = (v->act && v->fill && room) ||
		   (v->emit_wp != v->emit_rp && v->emit[v->emit_rp & 15u] == m->cycle) ||
		   (v->take && v->makes && !delay_of(v));
	v->work = v->pop || v->emits || v->div || (v->softmax && piece) ||
		  (lanes && v->taken);
}

static void pieces_step(struct npu_model *m, struct vec *v, const struct fetch *f)
{
	const struct piece *p = &f->piece[f->head & 63u];
	bool there = f->ready != f->head, table = there && p->meta >> 9;
	bool piece = there && !table && v->taken != PLACES;
	bool last = v->in_col + v->step >= v->cols;

	v->quarter = table && v->lut ? (v->quarter + 1) & 3u : 0;
	v->half = v->lut && piece && !v->half;
	if (v->softmax)
		softmax_step(v, piece, last);
	if (v->div)
		v->div--;
	if (v->take && v->avg && p->meta & 1u)
		v->div = 10;
	v->tab_in += v->pop && table;
	if (v->take) {
		v->second = !v->makes;
		if (v->makes && delay_of(v))
			v->emit[v->emit_wp++ & 15u] = m->cycle + delay_of(v);
		if (v->softmax) {
			v->in_col = last ? 0 : v->in_col + v->step;
			if (last)
				v->in_pass = v->in_pass == 2 ? 0 : v->in_pass + 1;
		}
	}
}

static void stores_step(struct vec *v, const uint32_t *d, bool stored, bool fills)
{
	v->taken += (uint32_t)((v->take && v->makes) || fills) - (uint32_t)stored;
	v->waiting += (uint32_t)v->emits - (uint32_t)stored;
	if (!stored)
		return;
	v->out_col += v->step;
	if (v->out_col < v->cols)
		return;
	v->out_col = 0;
	v->out_va += NPU_GET(d, LDD);
	if (++v->out_row == NPU_GET(d, DM))
		v->out_act = false;
}

/* pushed: all of the piece has been asked for; stored: what vec_store says is taken. */
void vec_step(struct npu_model *m, struct slot *s, bool pushed, bool stored, bool kill)
{
	struct vec *v = &s->vec;
	bool fills = v->act && v->fill && v->taken != PLACES;

	if (kill) {
		v->start = v->act = v->out_act = false;
		v->waiting = v->taken = 0;
		v->emit_rp = v->emit_wp;
		return;
	}
	if (v->start) {
		v->start = false;
		begin(v, s->desc);
		return;
	}
	if (v->halt && !v->out_act) /* but padding behind the last output */
		v->act = false;
	if (v->emit_wp != v->emit_rp && v->emit[v->emit_rp & 15u] == m->cycle)
		v->emit_rp++;
	pieces_step(m, v, &s->fetch);
	stores_step(v, s->desc, stored, fills);
	if (v->act && (v->fill ? fills : v->push ? pushed : true))
		fetch_advance(v, s->desc);
}

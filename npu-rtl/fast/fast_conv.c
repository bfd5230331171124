/* SPDX-License-Identifier: Apache-2.0 */
/* fast_conv.c - npu_conv: the blocks that cut GEMM and CONV into folds, load their
 * weights and stream their rows, each at its own operation of up to three under way. */
#include "fast.h"

#include <string.h>

#include "npu_panel.h"

static bool same(uint32_t seq, uint32_t number)
{
	return seq == (number & 3u);
}

/* ---- npu_conv_decode ---------------------------------------------------------------------- */

/* npu_conv_from: its first window, and the input row that it begins at. */
static int64_t first_row(const struct conv_op *o, uint32_t pt)
{
	int64_t iy = (int64_t)(o->at.m / o->ow) * o->sy - pt;

	return iy < (int64_t)o->h ? iy : (int64_t)o->h;
}

static struct window first_window(const struct conv_op *o, int64_t iy, uint32_t pix)
{
	uint32_t ox = o->at.m % o->ow;
	uint32_t ix = ox * o->sx < o->w + o->pl ? ox * o->sx : o->w + o->pl;
	struct window w = {
		.ox = ox, .iy = (int32_t)iy, .ix = (int32_t)ix - (int32_t)o->pl};

	w.low = o->kcut ? o->addr_a & 63u : 0;
	w.row = (o->addr_a & 63u) - w.low - (uint32_t)(o->row - iy) * o->sps -
		o->pl * pix;
	w.ad = w.row + ox * o->step_x + w.low;
	return w;
}

void conv_start(struct conv *v, const uint32_t d[16], struct npu_rect rect, bool behind,
		const struct npu_progress *from)
{
	bool gemm = NPU_GET(d, OPCODE) == NPU_OP_GEMM;
	uint32_t pix = gemm ? 0 : NPU_GET(d, PIX), cin = NPU_GET(d, CIN);
	uint32_t kh = gemm ? 1 : NPU_GET(d, KH), pt = gemm ? 0 : NPU_GET(d, PT), most;
	struct conv_op *o = &v->op[v->in & 3u];
	int64_t iy;

	*o = (struct conv_op){
		.at = *from,
		.out32 = NPU_GET(d, F_OUT32),
		.noparam = NPU_GET(d, F_NOPARAM),
		.block = NPU_GET(d, F_BLOCK),
		.group = NPU_GET(d, F_GROUP),
		.addr_a = NPU_GET(d, ADDR_A),
		.addr_b = NPU_GET(d, ADDR_B),
		.addr_p = NPU_GET(d, ADDR_P),
		.lda = NPU_GET(d, LDA),
		.ldb = NPU_GET(d, LDB),
		.ldd = NPU_GET(d, LDD),
		.m = NPU_GET(d, DM),
		.n = NPU_GET(d, DN),
		.ow = gemm ? 1 : NPU_GET(d, OW),
		.w = gemm ? 1 : NPU_GET(d, W),
		.kw = gemm ? 1 : NPU_GET(d, KW),
		.pl = gemm ? 0 : NPU_GET(d, PL),
		.sx = gemm ? 1 : NPU_GET(d, SX),
		.sy = gemm ? 1 : NPU_GET(d, SY),
		.dx = gemm ? 1 : NPU_GET(d, DX),
		.dy = gemm ? 1 : NPU_GET(d, DY),
		.sps = NPU_GET(d, SPS),
		.kcut = gemm ? NPU_GET(d, KCUT) : 0,
	};
	o->h = gemm ? o->m : o->w ? NPU_GET(d, H) : 0;
	o->kcin = o->group ? NPU_GET(d, GC) : cin;
	o->last_group = cin - o->kcin;
	o->k = kh * o->kw * o->kcin & 0xFFFFu;
	o->row_bytes = o->kcut ? 1u << o->kcut : (o->w - 1) * pix + cin;
	o->step_x = o->sx * pix;
	o->step_y = o->sy * o->sps;
	o->kstep_x = o->dx * pix;
	o->kstep_y = o->dy * o->sps;
	o->pair = !o->out32 && rect.cols <= 16 && o->k <= 2 * rect.rows;
	if (!o->at.t) {
		o->at.half = o->pair;
		o->at.t = o->kcut ? o->m : 0;
	}
	o->pair = o->pair && (o->at.half || NPU_GET(d, PANEL) <= NPU_DEPTH_PAIR);
	most = npu_panel_kept(o->out32, o->at.half);
	o->depth = NPU_GET(d, PANEL) > most ? most : NPU_GET(d, PANEL);
	iy = first_row(o, pt);
	o->row = iy < 0 ? 0 : (uint32_t)iy;
	o->addr_a += o->row * o->lda;
	o->addr_m = NPU_GET(d, ADDR_D) + o->at.m * o->ldd;
	v->origin[v->in & 3u] = first_window(o, iy, pix);
	v->behind[v->in & 3u] = behind;
	v->in++;
}

/* ---- npu_conv_folds --------------------------------------------------------------------- */

/* The fold at k0, n0, m0, and its tile. */
static void describe(struct folds *f, const struct conv_op *o, uint32_t seq,
		     struct npu_rect rect)
{
	bool again = f->kept && f->first && o->at.r;
	uint32_t h = again ? o->at.kr : rect.rows, w = f->kept ? o->at.nc : rect.cols;
	uint32_t kr = npu_panel_fold(f->k0, o->k, h, o->kcut);
	bool last_k = f->k0 + kr >= o->k, last_n = f->n0 + w >= o->n;
	bool last_m = f->m0 + f->t >= o->m;

	f->fold = (struct fold){.first = f->first,
				.last = last_k,
				.new_panel = f->new_panel,
				.new_op = f->new_op,
				.ends = last_k && last_n && last_m,
				.seq = seq & 3u,
				.kr = kr,
				.nc = last_n ? o->n - f->n0 : w,
				.t = f->t,
				.tid = f->tid,
				.m = f->m0,
				.n = f->odd ? f->n0 - rect.cols : f->n0,
				.k = f->k0,
				.again = again ? o->at.r : 0};
	f->tile = (struct tile){.pair = o->pair && !f->odd && !last_n,
				.out32 = o->out32,
				.quad = o->pair,
				.ends = last_n && last_m,
				.panel = last_n,
				.upto = f->row + f->t * o->ldd,
				.tid = f->tid,
				.nc = f->fold.nc,
				.t = f->t,
				.addr = f->row + (o->out32 ? f->n0 * 4 : f->n0),
				.ldd = o->ldd,
				.seq = seq & 3u};
}

static void folds_begin(struct conv *v, struct npu_rect rect)
{
	const struct conv_op *o = &v->op[v->folds_n & 3u];
	struct folds *f = &v->folds;

	f->v = true;
	f->m0 = o->at.m;
	f->n0 = o->at.n;
	f->k0 = o->at.k;
	f->first = true;
	f->kept = o->at.nc != 0;
	f->t = o->at.t ? o->at.t : npu_panel_next(o->m, o->depth, 0);
	f->row = o->addr_m;
	f->new_panel = false;
	f->new_op = true;
	f->odd = false;
	describe(f, o, v->folds_n, rect);
}

static void folds_take(struct conv *v, struct npu_rect rect)
{
	const struct conv_op *o = &v->op[v->folds_n & 3u];
	struct folds *f = &v->folds;
	bool last_k = f->fold.last, last_n = f->n0 + f->fold.nc >= o->n;

	f->new_op = false;
	f->k0 += f->fold.kr;
	f->new_panel = o->kcut && (last_k || !(f->k0 & ((1u << o->kcut) - 1)));
	f->first = last_k;
	if (last_k) {
		f->k0 = 0;
		f->tid = (f->tid + 1) & 7u;
		f->odd = f->tile.pair;
		f->n0 += f->fold.nc;
		f->kept = false;
		if (last_n) {
			f->n0 = 0;
			f->m0 += f->t;
			f->row += f->t * o->ldd;
			f->new_panel = true;
			f->v = f->m0 < o->m;
			if (f->v)
				f->t = npu_panel_next(o->m - f->m0, o->depth, f->t);
		}
	}
	if (f->v)
		describe(f, o, v->folds_n, rect);
}

/* ---- npu_conv_weights --------------------------------------------------------------------- */

static uint32_t weights_at(const struct conv_op *o, uint32_t n)
{
	return o->addr_b + (o->block ? n / 16 * o->k * 16 + n % 16 : n);
}

/* From a weight of a column to the next. */
static uint32_t row_bytes(const struct conv_op *o)
{
	return o->block ? 16 : o->ldb;
}

static uint32_t columns(const struct weights *w, const struct conv_op *o,
			struct npu_rect rect)
{
	uint32_t cols = w->kept ? o->at.nc : rect.cols;

	return w->n0 + cols >= o->n ? o->n - w->n0 : cols;
}

/* Two rows of nc columns are asked for at once. */
static bool two_rows(const struct weights *w, const struct conv_op *o, uint32_t nc,
		     bool serial)
{
	if (!w->rows)
		return w->j + 1 != nc;
	return o->block && !serial && (w->va & 31u) + nc <= 16 && w->k + 1 != o->k;
}

static void weights_comb(struct slot *s)
{
	struct conv *v = &s->conv;
	const struct conv_op *o = &v->op[v->weights_n & 3u];
	const struct weights *w = &v->weights;
	uint32_t nc;
	bool two, may;

	may = w->ahead < 3 || w->held || (w->ahead < 7 && !o->group && !v->a_req);
	v->pushes = w->v && (may || (w->rows && w->k));
	if (!v->pushes)
		return;
	nc = columns(w, o, s->rect);
	two = two_rows(w, o, nc, s->serial);
	v->piece =
		(struct piece){.va = w->va,
			       .len = (w->rows ? nc : 16) + (two ? 16 : 0),
			       .meta = (uint32_t)w->rows << 9 | w->tid << 6 | w->j | two,
			       .jump = o->k * 16,
			       .cut = w->rows && o->block && !two};
}

static void weights_begin(struct conv *v)
{
	const struct conv_op *o = &v->op[v->weights_n & 3u];
	struct weights *w = &v->weights;

	w->v = true;
	w->rows = o->noparam;
	w->m0 = o->at.m;
	w->n0 = o->at.n;
	w->k = o->at.k;
	w->kept = o->at.nc != 0;
	w->j = 0;
	w->t = o->at.t ? o->at.t : npu_panel_next(o->m, o->depth, 0);
	w->va = o->noparam ? weights_at(o, w->n0) + w->k * row_bytes(o)
			   : o->addr_p + w->n0 * 16;
}

/* The last weight row of a tile has been asked for. */
static void weights_tile(struct conv *v, struct npu_rect rect)
{
	const struct conv_op *o = &v->op[v->weights_n & 3u];
	struct weights *w = &v->weights;
	uint32_t nc = columns(w, o, rect);
	bool last_n = w->n0 + nc >= o->n;

	w->k = 0;
	w->kept = false;
	w->rows = o->noparam;
	w->tid = (w->tid + 1) & 7u;
	w->n0 = last_n ? 0 : w->n0 + nc;
	w->va = o->noparam ? weights_at(o, w->n0) : o->addr_p + w->n0 * 16;
	w->ahead++;
	if (!last_n)
		return;
	w->m0 += w->t;
	if (w->m0 < o->m) {
		w->t = npu_panel_next(o->m - w->m0, o->depth, w->t);
	} else {
		w->v = false;
		v->weights_n++;
	}
}

static void weights_pushed(struct slot *s)
{
	struct conv *v = &s->conv;
	const struct conv_op *o = &v->op[v->weights_n & 3u];
	struct weights *w = &v->weights;
	uint32_t nc = columns(w, o, s->rect);
	bool two = v->piece.meta & 1u;

	if (!w->rows) {
		w->j += 2;
		w->va += 32;
		if (!two || w->j == nc) {
			w->rows = true;
			w->j = 0;
			w->va = weights_at(o, w->n0) + w->k * row_bytes(o);
		}
		return;
	}
	w->va += row_bytes(o) << two;
	w->k += 1u + two;
	if (w->k == o->k)
		weights_tile(v, s->rect);
}

/* ---- npu_conv_load ------------------------------------------------------------------------ */

static void next_lane(struct load *l, const struct conv_op *o)
{
	if (l->c + 1 != o->kcin) {
		l->c++;
		l->off++;
		return;
	}
	l->c = 0;
	if (l->kx + 1 != o->kw) {
		l->kx++;
		l->dx += o->dx;
		l->x_off += o->kstep_x;
	} else {
		l->kx = 0;
		l->dx = 0;
		l->x_off = 0;
		l->dy += o->dy;
		l->y_off += o->kstep_y;
	}
	l->off = l->y_off + l->x_off;
}

static void lane_in(struct load *l, const struct conv_op *o, bool real)
{
	struct lanes *n = &l->lanes[l->bank];
	uint32_t at = l->i;
	uint64_t bit = UINT64_C(1) << at;

	n->off[at] = l->off;
	n->dx[at] = l->dx;
	n->dy[at] = l->dy;
	if (real) {
		n->v |= bit;
		if (l->dx > n->dx_most)
			n->dx_most = l->dx;
		if (l->dy > n->dy_most)
			n->dy_most = l->dy;
	}
	if (at && ((l->off - l->last_off) & 0x3FFFFu) == 1 && l->run_more != 15) {
		l->run_more++;
	} else {
		l->run_at = at;
		l->run_more = 0;
		n->start |= bit;
	}
	n->more[l->run_at] = l->run_more;
	if (o->sx + l->kx < o->kw)
		n->again |= bit;
	l->last_off = l->off;
}

static void first_lane(struct load *l, const struct conv_op *o)
{
	uint32_t pixel = l->fold.k / o->kcin, ky = pixel / o->kw;

	l->c = l->fold.k % o->kcin;
	l->kx = pixel % o->kw;
	l->dx = l->kx * o->dx;
	l->dy = ky * o->dy;
	l->x_off = l->kx * o->kstep_x;
	l->y_off = ky * o->kstep_y;
	l->off = l->y_off + l->x_off + (o->kcut ? l->c & ((1u << o->kcut) - 1) : l->c);
}

static void load_step(struct npu_model *m, struct conv *v, struct npu_rect rect)
{
	struct load *l = &v->load;
	const struct conv_op *o = &v->op[l->fold.seq & 3u];

	(void)rect;
	l->reach = v->reach;
	if (v->load_row) {
		lane_in(l, o, v->weights_take);
		l->i++;
	}
	if (v->weights_take) {
		next_lane(l, o);
		v->second = !v->last_row;
	}
	if (v->load_take)
		l->v = false;
	if (v->load_last)
		l->busy = false;
	if (!v->next_take)
		return;
	l->v = l->busy = true;
	l->fold = v->folds.fold;
	l->i = 0;
	l->bank ^= 1u;
	l->start = m->cycle;
	l->lanes[l->bank].v = l->lanes[l->bank].start = l->lanes[l->bank].again = 0;
	l->lanes[l->bank].dx_most = l->lanes[l->bank].dy_most = 0;
	if (l->fold.first)
		first_lane(l, &v->op[l->fold.seq & 3u]);
	else if (l->fold.new_panel)
		l->off = 0;
}

/* ---- npu_conv_stream ------------------------------------------------------------------------ */

static bool here(int32_t iy, uint32_t reach, uint32_t rows, bool all)
{
	int64_t bottom = (int64_t)iy + reach;

	return all || bottom < 0 || bottom < rows;
}

static struct window following(const struct window *w, const struct conv_op *o)
{
	struct window n = *w;

	if (w->ox + 1 == o->ow) {
		n.ox = 0;
		n.ix = -(int32_t)o->pl;
		if (o->kcut || w->iy < (int32_t)o->h)
			n.iy += (int32_t)o->sy;
		if (o->kcut)
			n.low = (w->low + o->lda) & 63u;
		n.row += o->step_y;
		n.ad = n.row + n.low;
	} else {
		n.ox++;
		if (w->ix < (int32_t)o->w)
			n.ix += (int32_t)o->sx;
		n.ad += o->step_x;
	}
	return n;
}

static void stream_step(struct conv *v)
{
	struct stream *s = &v->stream;

	if (v->row) {
		s->t++;
		s->window = following(&s->window, &v->op[s->fold.seq & 3u]);
	}
	if (v->row_last)
		s->v = false;
	if (!v->load_take)
		return;
	s->v = true;
	s->fold = v->load.fold;
	s->bank = v->load.bank;
	s->reach = v->reach;
	s->macs = s->fold.kr * s->fold.nc;
	s->t = 0;
	s->window = s->panel = v->base_window;
	s->start = v->load.start;
}

/* ---- npu_conv ---------------------------------------------------------------------------------- */

static bool in_flight(const struct npu_model *m, const struct conv *v)
{
	return v->gather.count || m->cycle <= v->in_array;
}

bool conv_quiet(const struct npu_model *m, const struct conv *v)
{
	return !v->load.v && !v->load.busy && !v->stream.v && !in_flight(m, v);
}

bool conv_ready(const struct slot *s)
{
	const struct conv *v = &s->conv;

	if (s->serial)
		return v->in == v->head;
	return v->in - v->head < 3;
}

/* The next fold is the first of a tile, or of two stored together. */
static bool between(const struct folds *f)
{
	return f->v && f->first && !f->k0 && !f->odd;
}

bool conv_halted(const struct slot *s, struct npu_progress *at)
{
	const struct conv *v = &s->conv;

	*at = v->frozen_at;
	return v->frozen && v->streamed_n == v->head && v->row_wp == v->row_rp &&
	       out_even(&v->out, v->head);
}

bool conv_pops(const struct conv *v)
{
	return v->param_take || (v->weights_take && v->last_row);
}

/* All input rows of the operation that a fold belongs to are complete. */
static bool all_rows(const struct conv *v, const struct fold *f)
{
	const struct conv_op *o = &v->op[f->seq & 3u];

	return !same((f->seq + 1) & 3u, v->rows_n) || (!o->kcut && v->act.done == o->h);
}

static bool load_ok(const struct npu_model *m, const struct conv *v)
{
	const struct fold *f = &v->load.fold;

	return !same(f->seq, v->rows_n) && (!f->new_op || (!v->stream.v && !v->apart)) &&
	       (v->op[f->seq & 3u].group == v->group ||
		(!v->stream.v && !in_flight(m, v)));
}

static struct window load_base(const struct conv *v)
{
	const struct fold *f = &v->load.fold;
	const struct stream *s = &v->stream;
	struct window w;

	if (f->new_op) {
		w = v->origin[f->seq & 3u];
		w.row += v->base[f->seq & 3u] << 6;
		w.ad += v->base[f->seq & 3u] << 6;
		return w;
	}
	if (!f->new_panel)
		return s->panel;
	w = v->row ? following(&s->window, &v->op[s->fold.seq & 3u]) : s->window;
	if (v->op[f->seq & 3u].kcut) {
		w.low = v->origin[f->seq & 3u].low;
		w.ad = w.row + w.low;
	}
	return w;
}

static void find_lo(struct conv *v)
{
	const struct stream *s = &v->stream;
	bool new_panel = v->load.v ? v->load.fold.new_panel
				   : v->folds.v && v->folds.fold.new_panel;
	int32_t iy = !s->v && new_panel ? s->window.iy : s->panel.iy;

	v->lo = iy < 0 || !v->taken || !same((s->fold.seq + 1) & 3u, v->rows_n)
			? v->op[(v->rows_n - 1) & 3u].row
			: (uint32_t)iy;
}

/* What the next row of the fold that is streamed reads is there. */
static bool row_here(const struct conv *v)
{
	const struct stream *st = &v->stream;

	return here(st->window.iy, st->reach, v->act.done, all_rows(v, &st->fold));
}

/* By SAVE, and by FOLD when the oldest operation's fold has been streamed, or waits for
 * its input, or when two tiles that are stored side by side have been, nothing more goes
 * into the array.  Of what is in it all goes through it, and then the blocks before it,
 * and what they have of younger operations, are cut off. */
static void freeze_comb(struct slot *s)
{
	struct conv *v = &s->conv;
	const struct folds *f = &v->folds;
	uint32_t head = v->head & 3u;
	bool pair = v->op[head].pair;
	bool stream_on = v->stream.v && v->stream.fold.seq == head;
	bool load_on = v->load.v && v->load.fold.seq == head && pair;
	bool next_on = f->v && (v->folds_n & 3u) == head && pair && !between(f);
	bool on = stream_on || load_on || next_on;

	v->freeze = conv_busy(v) && !v->frozen &&
		    (s->freeze || v->stalled || (s->fold && !on));
	v->hold = v->freeze || (s->fold && !load_on);
	v->stalled = conv_busy(v) &&
		     (v->stalled || (s->fold && stream_on && !pair && !row_here(v)));
}

static void cut_comb(const struct npu_model *m, struct conv *v)
{
	bool still = v->freeze && !in_flight(m, v) && !v->offer;

	v->cut = still && v->still &&
		 (v->stream.v || v->load.v || v->folds.v || v->streamed_n != v->head);
	v->still = still;
}

/* Where the oldest operation stands. */
static struct npu_progress stands_at(const struct conv *v)
{
	const struct fold *f = v->stream.v ? &v->stream.fold
			       : v->load.v ? &v->load.fold
					   : &v->folds.fold;
	struct npu_progress at = {.m = f->m,
				  .t = f->t,
				  .n = f->n,
				  .half = v->op[f->seq & 3u].at.half,
				  .k = f->k,
				  .kr = f->kr,
				  .nc = f->nc,
				  .r = f->again};

	if (v->stream.v && v->stream.t > at.r)
		at.r = v->stream.t;
	if ((!at.k && !at.r) || v->op[f->seq & 3u].pair)
		at.k = at.kr = at.nc = at.r = 0;
	return at;
}

static void cut_off(struct conv *v)
{
	v->frozen = true;
	v->frozen_at = stands_at(v);
	v->folds.v = false;
	v->folds.tid = 0;
	v->weights.v = false;
	v->weights.tid = 0;
	v->weights.ahead = 0;
	v->weights.held = false;
	v->second = false;
	v->load.v = v->load.busy = false;
	v->stream.v = false;
	v->act = (struct act){0};
	gather_kill(&v->gather);
}

/* A row of weights for the fold being loaded. */
static void load_comb(struct slot *s, bool room)
{
	struct conv *v = &s->conv;
	const struct load *l = &v->load;
	const struct fetch *f = &s->fetch;
	bool weights_v =
		conv_busy(v) && f->ready != f->head && f->piece[f->head & 63u].meta >> 9;

	v->weights_take = l->busy && room && l->i < l->fold.kr && weights_v;
	v->last_row = v->second || !(f->piece[f->head & 63u].meta & 1u);
	v->load_row = l->busy && room && (l->i >= l->fold.kr || weights_v);
	v->load_last = v->load_row && l->i == s->rect.rows - 1;
	v->reach = v->weights_take ? l->dy : l->reach;
}

/* The fold being streamed and the one being loaded, in this cycle. */
static void array_comb(struct npu_model *m, struct slot *s)
{
	struct conv *v = &s->conv;
	struct load *l = &v->load;
	struct stream *st = &v->stream;
	bool busy = l->busy, load_here = false, ok;

	v->offer = st->v && (!v->freeze || v->held) && row_here(v);
	gather_offer(v);
	v->row = v->offer && v->take;
	v->held = v->offer && !v->row;
	v->row_last = v->row && st->t == st->fold.t - 1;
	load_comb(s, !v->freeze && v->gather.count != BEATS &&
			     !(st->v && !st->t && !v->row));
	ok = l->v && load_ok(m, v);
	if (l->v) {
		v->base_window = load_base(v);
		load_here = ok && here(v->base_window.iy, v->reach, v->act.done,
				       all_rows(v, &l->fold));
	}
	v->load_take = l->v && (!busy || v->load_last) && (!st->v || v->row_last) &&
		       load_here && !v->hold;
	v->stall_a = (st->v && !v->offer) || (!st->v && l->v && !busy && !load_here);
	v->stall_bank = v->offer && !v->row;
	v->stall_w = !st->v && busy && !v->load_row;
	v->stuck =
		v->stall_a && !v->freeze && same((v->rows_n - 1) & 3u, v->head) &&
		(st->v ? same(st->fold.seq, v->head) : same(l->fold.seq, v->head) && ok);
}

/* Weights, parameters and input rows. */
static void loads_comb(struct slot *s)
{
	struct conv *v = &s->conv;
	const struct fetch *f = &s->fetch;

	v->param_take = conv_busy(v) && f->ready != f->head &&
			!(f->piece[f->head & 63u].meta >> 9);
	act_comb(v, &v->op[(v->rows_n - 1) & 3u]);
	v->weights_start = v->weights_n != v->in && !v->weights.v && !v->frozen;
	v->rows_start = v->rows_n != v->in && act_idle(&v->act) && !v->frozen &&
			!(v->behind[v->rows_n & 3u] && v->rows_n - v->head > 1);
	weights_comb(s);
}

void conv_comb(struct npu_model *m, struct slot *s)
{
	struct conv *v = &s->conv;
	struct load *l = &v->load;
	struct act *a = &v->act;
	const struct fetch *f = &s->fetch;
	const struct piece *p = &f->piece[f->head & 63u];
	bool there = conv_busy(v) && f->ready != f->head, full, held;

	freeze_comb(s);
	array_comb(m, s);
	cut_comb(m, v);
	loads_comb(s);
	find_lo(v);
	full = v->folds.v && v->folds.fold.first && out_full(&v->out, &v->folds.tile);
	held = full || v->freeze || (s->fold && between(&v->folds));
	if (s->serial && v->folds.v) {
		bool settled = !a->count && (!a->act || (!v->a_fits && a->lo == v->lo));

		held = held || l->v || v->stream.v || in_flight(m, v) || !settled ||
		       !there || !(p->meta >> 9) || f->ready - f->head < v->folds.fold.kr;
	}
	v->next_take = v->folds.v && !held && (!l->v || v->load_take) &&
		       (!l->busy || v->load_last);
	v->stall_out = !v->stream.v && full && !l->v && !l->busy;
	v->stuck = v->stuck && !a->count && a->act && !v->a_fits && a->lo == v->lo &&
		   !a->old;
	v->folds_start = v->folds_n != v->in && !v->folds.v && !v->frozen;
}

/* npu_conv_cols, for parameters of a grouped convolution, and whether a group is astray.
 */
static void groups_in(struct npu_model *m, struct slot *s, const struct piece *p)
{
	struct conv *v = &s->conv;
	struct cols *c = &v->cols;
	uint32_t tid = p->meta >> 6 & 7u, at = p->meta & 62u, seq = v->tile_seq[tid],
		 row[4];
	const struct conv_op *o = &v->op[seq & 3u];

	if (!o->group)
		return;
	for (uint32_t b = 0; b <= (p->meta & 1u); b++) {
		uint32_t off;

		memset(row, 0, sizeof(row));
		space_peek(m, s, p->va + 16 * b, row, 16);
		if (row[3] > o->last_group && !v->stray) {
			v->stray = true;
			v->stray_seq = seq;
		}
		off = (row[3] - c->first) & (SPAD - 1);
		if (!at && !b)
			c->n = 0;
		else if (off > 15)
			c->n++;
		if ((!at && !b) || off > 15) {
			c->first = row[3] & (SPAD - 1);
			c->more = 0;
		} else if (off > c->more) {
			c->more = off;
		}
		c->win[tid & 3u][c->n & (SIDE - 1)] = c->first;
		c->win_more[tid & 3u][c->n & (SIDE - 1)] = c->more;
		c->col_win[tid & 3u][at + b] = c->n;
	}
}

static void fold_ended(struct npu_model *m, struct slot *s)
{
	struct conv *v = &s->conv;
	const struct end *e = &v->end[v->end_rp++ & 63u];
	struct npu_fold f = {.slot = s->id,
			     .rows_used = e->fold.kr,
			     .cols_used = e->fold.nc,
			     .t = e->fold.t,
			     .start = e->start,
			     .end = m->cycle};

	v->weights.ahead -= e->eot;
	if (m->fold)
		m->fold(m->fold_user, &f);
}

/* Weights, parameters and input rows. */
static void loads_step(struct npu_model *m, struct slot *s, bool pushed, bool act_granted)
{
	struct conv *v = &s->conv;

	if (v->weights.v)
		v->tile_seq[v->weights.tid] = v->weights_n & 3u;
	v->weights.held = v->pushes && !pushed;
	if (v->param_take)
		groups_in(m, s, &s->fetch.piece[s->fetch.head & 63u]);
	act_step(v, &s->rsp, act_granted, v->lo, v->rows_start, s->rect.cols);
	if (pushed)
		weights_pushed(s);
	else if (v->weights_start)
		weights_begin(v);
}

static bool outputs_step(const struct npu_model *m, struct conv *v,
			 const struct tile *tile, bool stored, bool retire)
{
	bool row = v->row_wp != v->row_rp && v->row_at[v->row_rp & 255u] == m->cycle;

	v->row_rp += row;
	return out_step(&v->out, v->head, tile, row, stored, retire);
}

static void numbers_step(struct conv *v, bool op_done, bool retire)
{
	v->streamed_n += v->row_last && v->stream.fold.ends;
	v->folds_n += v->next_take && v->folds.fold.ends;
	v->rows_n += v->rows_start;
	v->computed_n += op_done;
	v->head += retire;
}

void conv_step(struct npu_model *m, struct slot *s, bool pushed, bool act_granted,
	       bool stored, bool retire)
{
	struct conv *v = &s->conv;
	bool tile_ended = fold_end(v) == m->cycle;
	bool op_done, ends = v->next_take && v->folds.fold.ends;

	op_done = outputs_step(
		m, v, v->next_take && v->folds.fold.first ? &v->folds.tile : NULL, stored,
		retire);
	if (v->stream.v || v->gather.old)
		v->apart = REQUANT;
	else if (v->apart)
		v->apart--;
	loads_step(m, s, pushed, act_granted);
	gather_step(m, s);
	if (tile_ended)
		fold_ended(m, s);
	if (v->load_take) {
		v->group = v->op[v->load.fold.seq & 3u].group;
		v->taken = true;
	}
	if (v->row) {
		if (v->stream.t >= v->stream.fold.again)
			s->count[CNT_MACS] += v->stream.macs;
		s->count[CNT_ROWS]++;
	}
	s->count[CNT_FOLDS] += v->next_take;
	numbers_step(v, op_done, retire);
	stream_step(v);
	load_step(m, v, s->rect);
	if (v->next_take) {
		v->folds_n -= ends; /* its fields are still asked for */
		folds_take(v, s->rect);
		v->folds_n += ends;
	} else if (v->folds_start) {
		folds_begin(v, s->rect);
	}
	if (v->cut)
		cut_off(v);
}

/* ---- stretches in which the array takes a row a cycle -------------------------------------- */

/* A fold whose rows are one run of bytes meets no bank twice: a row a cycle, but for the
 * last one's.  What is loaded waits for its end, no row is on its way to the output
 * tiles, none is left to store. */
uint32_t conv_still(const struct conv *v)
{
	const struct stream *s = &v->stream;
	const struct lanes *l = &v->load.lanes[s->bank];
	const struct conv_op *o = &v->op[s->fold.seq & 3u];
	uint64_t runs = l->start & l->v, n;
	int64_t bottom;

	if (!s->v || s->fold.again || !s->t || s->t + 3 > s->fold.t || !v->row)
		return 0;
	if (o->group || runs & (runs - 1) || v->gather.old ||
	    !gather_steady(&v->gather) || (v->folds.v && !v->load.v) ||
	    (!v->folds.v && v->folds_n != v->in) || v->out.end)
		return 0;
	n = s->fold.t - 1 - s->t;
	if (!all_rows(v, &s->fold)) {
		bottom = (int64_t)s->window.iy + s->reach;
		bottom += (int64_t)((s->window.ox + n) / o->ow) * o->sy;
		if (bottom >= (int64_t)v->act.done)
			return 0;
	}
	return (uint32_t)n;
}

bool conv_moves(struct slot *s)
{
	struct conv *v = &s->conv;

	v->load_take = v->next_take = false;
	load_comb(s, true);
	loads_comb(s);
	find_lo(v);
	return !v->rows_start && !v->stray && !v->out.end;
}

/* Rows go to the output tiles, or out of them. */
static bool outputs_move(const struct conv *v)
{
	return v->stream.fold.last || v->row_wp != v->row_rp || v->out.st_v ||
	       (v->out.live && v->out.done);
}

void conv_move(struct npu_model *m, struct slot *s, bool pushed, bool act_granted,
	       bool stored)
{
	struct conv *v = &s->conv;

	if (outputs_move(v))
		v->computed_n += outputs_step(m, v, NULL, stored, false);
	loads_step(m, s, pushed, act_granted);
	load_step(m, v, s->rect);
	if (v->stream.fold.last)
		gather_output(m, s, v->op[v->stream.fold.seq & 3u].out32);
	if (fold_end(v) == m->cycle)
		fold_ended(m, s);
}

bool conv_rests(struct slot *s)
{
	struct conv *v = &s->conv;
	const struct act *a = &v->act;

	if (outputs_move(v))
		return false;
	load_comb(s, true);
	loads_comb(s);
	find_lo(v);
	v->weights.held = v->pushes;
	return !v->load_row && !v->param_take && !v->weights_start && !v->rows_start &&
	       !v->a_req && !(v->pushes && s->fetch.tail - s->fetch.head != 64) &&
	       !(v->a_fits && v->a_dup) && !(a->lo != v->lo && a->lo < a->done) &&
	       (a->count ? a->pend >> a->head & 1u : a->done == a->row);
}

/* following, n times inside an output line. */
static void along(struct window *w, const struct conv_op *o, uint32_t n)
{
	w->ox += n;
	w->ad += n * o->step_x;
	if (w->ix + (int64_t)(n - 1) * o->sx < o->w)
		w->ix += (int32_t)(n * o->sx);
	else
		for (uint32_t i = 0; i < n && w->ix < (int32_t)o->w; i++)
			w->ix += (int32_t)o->sx;
}

void conv_advance(struct slot *s, uint32_t rows)
{
	struct stream *st = &s->conv.stream;
	const struct conv_op *o = &s->conv.op[st->fold.seq & 3u];

	for (uint32_t left = rows, n; left; left -= n) {
		n = o->ow - 1 - st->window.ox;
		n = n < left ? n : left;
		if (n) {
			along(&st->window, o, n);
		} else {
			st->window = following(&st->window, o);
			n = 1;
		}
	}
	st->t += rows;
	s->conv.in_array += rows;
	s->count[CNT_MACS] += (uint64_t)rows * st->macs;
	s->count[CNT_ROWS] += rows;
	s->count[CNT_ACTIVE] += rows;
}

void conv_kill(struct conv *v)
{
	v->in = v->weights_n = v->rows_n = v->folds_n = 0;
	v->streamed_n = v->computed_n = v->head = 0;
	cut_off(v);
	v->frozen = v->still = v->held = v->stalled = false;
	out_kill(&v->out);
	v->row_rp = v->row_wp;
	v->end_rp = v->end_wp;
	v->in_array = 0;
	v->apart = 0;
	v->taken = v->stray = false;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* fast_gather.c - npu_conv_gather with its npu_conv_ports: when a row's bytes are out of
 * the scratchpad's banks, and npu_conv_cols: windows of a grouped convolution's columns.
 */
#include "fast.h"

static uint32_t turn(uint32_t from, uint32_t n)
{
	return (from + n) % PORTS;
}

static uint32_t bank_of(uint32_t word)
{
	return (word + (word >> 3) + (word >> 6) + (word >> 9)) & 7u;
}

static uint32_t behind(uint32_t word)
{
	return (word + 1) & (SPAD / 16 - 1);
}

static struct run run_of(uint32_t ad, uint32_t more)
{
	uint32_t word = ad >> 4 & (SPAD / 16 - 1), banks = 1u << bank_of(word);

	if ((ad & 15u) + more > 15)
		banks |= 1u << bank_of(behind(word));
	return (struct run){(uint16_t)word, (uint8_t)banks};
}

static uint32_t word_in(const struct run *r, uint32_t bank)
{
	return bank_of(r->word) == bank ? r->word : behind(r->word);
}

/* Two runs that want different words of a bank; the same one, too, where a read is for
 * one run alone. */
static bool meet(const struct run *a, const struct run *b, bool shared)
{
	uint32_t common = a->banks & b->banks;

	if (!shared)
		return common != 0;
	for (; common; common &= common - 1) {
		uint32_t bank = (uint32_t)__builtin_ctz(common);

		if (word_in(a, bank) != word_in(b, bank))
			return true;
	}
	return false;
}

/* ---- the row on offer ------------------------------------------------------------------- */

static uint64_t lanes_in(const struct lanes *l, const struct window *w,
			 const struct conv_op *op)
{
	uint64_t in = 0;

	if (op->kcut)
		return l->v;
	if (w->iy >= 0 && w->ix >= 0 && (uint32_t)w->iy + l->dy_most < op->h &&
	    (uint32_t)w->ix + l->dx_most < op->w)
		return l->v;
	for (uint64_t left = l->v; left; left &= left - 1) {
		uint32_t i = (uint32_t)__builtin_ctzll(left);
		int64_t y = (int64_t)w->iy + l->dy[i], x = (int64_t)w->ix + l->dx[i];

		if (y >= 0 && y < op->h && x >= 0 && x < op->w)
			in |= UINT64_C(1) << i;
	}
	return in;
}

/* First lanes of runs of which a lane is in. */
static uint64_t runs_in(const struct lanes *l, uint64_t in)
{
	uint64_t want = 0;

	for (uint64_t left = in; left;) {
		uint32_t i = (uint32_t)__builtin_ctzll(left);
		uint64_t upto = (UINT64_C(2) << i) - 1, starts = l->start & upto;
		uint64_t behind;

		want |= UINT64_C(1) << (63 - __builtin_clzll(starts));
		behind = l->start & ~upto;
		left &= behind ? ~((behind & -behind) - 1) : 0;
	}
	return want;
}

/* Whether it can go, and all of it: v->go, ->take. */
void gather_offer(struct conv *v)
{
	const struct stream *s = &v->stream;
	const struct lanes *l = &v->load.lanes[s->bank];
	const struct conv_op *op = &v->op[s->fold.seq & 3u];
	struct gather *g = &v->gather;
	uint64_t want, left;

	v->go = v->take = false;
	v->runs = 0;
	v->all = true;
	v->pick = 0;
	if (!v->offer)
		return;
	want = lanes_in(l, &s->window, op);
	if (op->group) {
		uint32_t shift = op->kcin == 1 && op->dx == 1 && op->sx <= 2 ? op->sx : 0;

		/* the last row has it already, in a later lane */
		if (s->t && s->window.ox && shift)
			want &= ~(l->again & l->v >> shift);
	} else {
		want = runs_in(l, want);
	}
	left = want & ~g->done;
	for (; left && v->runs < PORTS; v->runs++, left &= left - 1)
		v->pick |= left & -left;
	v->all = !left;
	v->go = g->count != BEATS;
	for (uint32_t k = 0; v->go && k < v->runs; k++)
		v->go = g->port[turn(g->tail, k)].runs != 2;
	v->take = v->go && v->all &&
		  (!op->group ||
		   g->win == v->cols.col_win[s->fold.tid & 3u][s->fold.nc - 1]);
}

/* The picked runs into their ports' inputs. */
static void put_runs(struct conv *v, struct run in[PORTS])
{
	const struct stream *s = &v->stream;
	const struct lanes *l = &v->load.lanes[s->bank];
	const struct conv_op *op = &v->op[s->fold.seq & 3u];
	struct gather *g = &v->gather;
	uint32_t p = g->tail, add = 0, more = 0;

	if (op->group) {
		add = v->cols.win[s->fold.tid & 3u][g->win];
		more = v->cols.win_more[s->fold.tid & 3u][g->win];
	}
	for (uint64_t left = v->pick; left; left &= left - 1, p = turn(p, 1)) {
		uint32_t i = (uint32_t)__builtin_ctzll(left);

		in[p] = run_of(s->window.ad + l->off[i] + add,
			       op->group ? more : l->more[i]);
		g->busy |= 1u << p;
	}
	g->tail = p;
}

/* ---- ports -------------------------------------------------------------------------------- */

/* A mask of ports whose run is given its banks. */
static uint32_t grants(const struct gather *g, bool shared)
{
	const struct run *older[PORTS];
	uint32_t asks = 0, given = 0, taken = 0, count = 0;

	for (uint32_t left = g->busy; left; left &= left - 1) {
		uint32_t p = (uint32_t)__builtin_ctz(left);

		if (g->port[p].runs && g->port[p].claimed != 4)
			asks |= 1u << p;
	}
	if (!(asks & (asks - 1)))
		return asks;
	/* by age: runs of the port that are not out yet, then its turn */
	for (uint32_t claimed = 0; claimed < 4; claimed++)
		for (uint32_t k = 0; k < PORTS; k++) {
			uint32_t p = turn(g->head, k), i = 0;
			const struct port *q = &g->port[p];

			if (!(asks >> p & 1u) || q->claimed != claimed)
				continue;
			if (!(taken & q->run.banks))
				i = count;
			while (i < count && !meet(older[i], &q->run, shared))
				i++;
			if (i == count)
				given |= 1u << p;
			taken |= q->run.banks;
			older[count++] = &q->run;
		}
	return given;
}

static void ports_step(struct gather *g, const struct run in[PORTS], uint32_t given,
		       uint32_t pops)
{
	for (uint32_t left = g->busy; left; left &= left - 1) {
		uint32_t p = (uint32_t)__builtin_ctz(left);
		struct port *q = &g->port[p];
		uint8_t gnt = given >> p & 1u, out = pops >> p & 1u,
			put = in[p].banks != 0;

		if (gnt || !q->runs)
			q->run = q->runs == 2 ? q->next : in[p];
		if (put)
			q->next = in[p];
		q->runs = (uint8_t)(q->runs + put - gnt);
		q->claimed = (uint8_t)(q->claimed + gnt - out);
		q->filled = (uint8_t)(q->filled + q->got - out);
		q->got = gnt;
		if (!q->runs && !q->claimed)
			g->busy &= ~(1u << p);
	}
}

/* ---- beats ----------------------------------------------------------------------------------- */

static bool leaves(const struct gather *g)
{
	const struct beat *b = &g->beat[g->bh];

	if (!g->ripe)
		return false;
	for (uint32_t k = 0; k < b->runs; k++)
		if (!g->port[turn(g->head, k)].filled)
			return false;
	return true;
}

/* From now on a row leaves in each cycle in which one of at most one run comes: the
 * oldest two will, none but the youngest has yet to be given its bank, and all are rows.
 */
bool gather_steady(const struct gather *g)
{
	uint32_t young = turn(g->tail, PORTS - 1);
	uint32_t runs = g->beat[(g->bt - 1) & (BEATS - 1)].runs;

	if (g->ripe + (g->young >> 1 & 1u) < 2 || g->count == BEATS || !leaves(g))
		return false;
	for (uint32_t left = g->busy; left; left &= left - 1) {
		uint32_t p = (uint32_t)__builtin_ctz(left);

		if (g->port[p].runs > (p == young ? runs : 0))
			return false;
	}
	for (uint32_t i = 0; i < g->count; i++)
		if (!g->beat[(g->bh + i) & (BEATS - 1)].row)
			return false;
	return true;
}

void gather_output(const struct npu_model *m, struct slot *s, bool out32)
{
	struct conv *v = &s->conv;

	v->row_at[v->row_wp++ & 255u] =
		m->cycle + s->rect.rows + s->rect.cols + 1 + (out32 ? 0 : REQUANT);
}

/* A row goes into the array: when its results will come out of it is known. */
static void row_leaves(struct npu_model *m, struct slot *s, const struct beat *b)
{
	struct conv *v = &s->conv;
	uint64_t at = m->cycle + s->rect.rows + s->rect.cols;

	v->in_array = at;
	if (b->eof)
		v->end[v->end_wp++ & 63u] = (struct end){at, b->eot, b->fold, b->start};
	if (b->out)
		gather_output(m, s, b->out32);
}

void gather_step(struct npu_model *m, struct slot *s)
{
	struct conv *v = &s->conv;
	struct gather *g = &v->gather;
	bool push = v->go || v->load_row, pop, mark = v->load_take || v->row_last;
	struct run in[PORTS] = {{0, 0}};
	uint32_t pops = 0, given;

	if (!push && !g->count && !g->busy && !g->old)
		return;
	given = grants(g, m->shape.rows > 16);
	pop = leaves(g);
	if (pop) {
		const struct beat *b = &g->beat[g->bh];

		for (uint32_t k = 0; k < b->runs; k++)
			pops |= 1u << turn(g->head, k);
		g->head = turn(g->head, b->runs);
		if (b->row)
			row_leaves(m, s, b);
		g->bh = (g->bh + 1) & (BEATS - 1);
	}
	if (v->go)
		put_runs(v, in);
	if (g->busy)
		ports_step(g, in, given, pops);
	if (push) {
		const struct fold *f = &v->stream.fold;

		g->beat[g->bt] = (struct beat){
			.row = v->take,
			.out = f->last,
			.out32 = v->op[f->seq & 3u].out32,
			.eof = v->row_last,
			.eot = v->row_last && f->last,
			.runs = (uint8_t)(v->go ? v->runs : 0),
			.fold = *f,
			.start = v->stream.start,
		};
		g->bt = (g->bt + 1) & (BEATS - 1);
	}
	if (v->go) {
		const struct conv_op *op = &v->op[v->stream.fold.seq & 3u];

		g->done = v->all ? 0 : g->done | v->pick;
		if (v->all && op->group)
			g->win = v->take ? 0 : g->win + 1;
	}
	g->ripe += (g->young >> 1 & 1u) - pop;
	g->young = (g->young << 1 | push) & 3u;
	g->count += (uint32_t)push - (uint32_t)pop;
	g->old = mark ? g->count : g->old - (pop && g->old);
}

void gather_kill(struct gather *g)
{
	*g = (struct gather){0};
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_gather.c - the scratchpad's mapping, exhaustively, and the gather over it: folds
 * of random convolutions, grouped or not, at random places and row distances, every
 * element against the image; rows, weight rows and tags in order; and how long it takes,
 * beside what backends/npu/pitch.c expects.
 *
 *   bench_gather [COUNT [SEED]]
 */
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "dut/dut.h"
#include "pitch.h"

#define BYTES   (1u << 17)
#define WORDS   (BYTES / 16)
#define BANKS   8u
#define LATENCY 3
#define QUEUE   64

static uint8_t spad[BYTES];

/* ---- the mapping ------------------------------------------------------------------- */

static void mapping(struct dut_gather *d)
{
	static uint8_t bank[WORDS];
	uint32_t count[BANKS] = {0};

	for (uint32_t u = 0; u < WORDS; u++) {
		bank[u] = (uint8_t)dut_gather_bank(d, u);
		count[bank[u]]++;
	}
	for (uint32_t b = 0; b < BANKS; b++)
		CHECK(count[b] == WORDS / BANKS, "bank %u holds %u words", b, count[b]);
	for (uint32_t u = 0; u < WORDS; u++) {
		/* one word of each 8 a bank: with row u / 8 that is a bijection */
		for (uint32_t v = u & ~7u; v < u; v++)
			CHECK(bank[v] != bank[u], "words %u and %u share a place", v, u);
		CHECK(bank[u] != bank[(u + 1) % WORDS], "words %u and the next share %u",
		      u, bank[u]);
		CHECK(bank[u] != bank[(u + 2) % WORDS],
		      "words %u and the next but one share %u", u, bank[u]);
	}
}

/* ---- a fold ------------------------------------------------------------------------ */

struct fold {
	struct dut_gather_op op;
	struct dut_gather_lane lane[DUT_LANES];
	struct dut_gather_cols cols;
	uint32_t at[DUT_LANES];    /* grouped: of each column */
	uint32_t h, w, c, pix, gc; /* image; gc: channels a group, 0: not grouped */
	uint32_t kh, kw, sx, sy, dx, dy;
	int32_t pl, pt;
	uint32_t ow, rows; /* output columns; rows streamed */
	uint32_t base, sps, k0;
};

static int32_t value(const struct fold *f, uint32_t ad)
{
	uint8_t b = spad[ad % BYTES];

	if (f->op.u8)
		return (int32_t)b - (int32_t)f->op.zp;
	return (int8_t)b - (int8_t)f->op.zp;
}

/* What the weight loader finds while it walks k. */
static void walk_lanes(struct fold *f, uint32_t lanes)
{
	uint32_t depth = f->gc ? f->gc : f->c, last = 0, first = 0;

	memset(f->lane, 0, sizeof(f->lane));
	for (uint32_t i = 0; i < lanes; i++) {
		struct dut_gather_lane *l = &f->lane[i];
		uint32_t k = f->k0 + i, q = k / depth;

		if (k >= f->kh * f->kw * depth)
			break;
		l->v = true;
		l->dx = q % f->kw * f->dx;
		l->dy = q / f->kw * f->dy;
		l->off = (l->dy * f->sps + l->dx * f->pix + k % depth) % BYTES;
		l->again = q % f->kw + f->sx < f->kw;
		l->start = !i || l->off != (last + 1) % BYTES || i - first == 16;
		if (l->start)
			first = i;
		f->lane[first].more = i - first;
		last = l->off;
	}
}

/* Windows of 16 bytes over the columns' channels, in the columns' order. */
static void walk_cols(struct fold *f, uint32_t cols)
{
	struct dut_gather_cols *c = &f->cols;
	uint32_t n = 0;

	memset(c, 0, sizeof(*c));
	for (uint32_t j = 0; j < cols; j++) {
		if (!j || f->at[j] < c->win[n] || f->at[j] - c->win[n] > 15)
			c->win[n = j ? n + 1 : 0] = f->at[j];
		c->of[j] = n;
		c->at[j] = f->at[j] - c->win[n];
		if (c->at[j] > c->more[n])
			c->more[n] = c->at[j];
	}
	c->wins = n;
}

static void random_fold(struct fold *f, struct rng *g)
{
	uint32_t depth, k, row;

	memset(f, 0, sizeof(*f));
	f->h = rng_range(g, 1, 20);
	f->w = rng_range(g, 1, 30);
	f->c = rng_range(g, 1, rng_next(g) % 3 ? 9 : 70);
	if (rng_next(g) % 4 == 0)
		f->c = (f->c + 15) / 16 * 16;
	f->pix = f->c + (rng_next(g) % 3 ? 0 : rng_range(g, 0, 20));
	f->gc = rng_next(g) % 2 ? 0 : rng_next(g) % 2 ? 1 : rng_range(g, 1, f->c);
	f->kh = rng_range(g, 1, 7);
	f->kw = rng_range(g, 1, 7);
	f->sx = rng_range(g, 1, 4);
	f->sy = rng_range(g, 1, 4);
	f->dx = rng_next(g) % 3 ? 1 : rng_range(g, 1, 3);
	f->dy = rng_next(g) % 3 ? 1 : rng_range(g, 1, 3);
	f->pl = (int32_t)rng_range(g, 0, (f->kw - 1) * f->dx);
	f->pt = (int32_t)rng_range(g, 0, (f->kh - 1) * f->dy);
	f->ow = rng_range(g, 1, (f->w - 1 + (uint32_t)f->pl) / f->sx + 1);
	f->rows = rng_range(g, 1, 60);
	row = f->w * f->pix;
	f->sps = row + rng_range(g, 0, 200);
	if (rng_next(g) % 8 == 0) /* all rows in one bank */
		f->sps = (row + 2047) / 2048 * 2048;
	f->base = rng_range(g, 0, BYTES - 1);
	depth = f->gc ? f->gc : f->c;
	k = f->kh * f->kw * depth;
	f->k0 = k > 16 ? rng_range(g, 0, (k - 1) / 16) * 16 : 0;
	f->op = (struct dut_gather_op){
		.group = f->gc != 0,
		.u8 = rng_next(g) % 2,
		.zp = rng_next(g) % 256,
		.rows = f->h,
		.cols = f->w,
		.kcin = f->gc ? f->gc : f->c,
		.sx = f->sx,
		.dx = f->dx,
	};
	for (uint32_t j = 0; j < DUT_LANES; j++)
		f->at[j] = rng_next(g) % 4 ? j : rng_range(g, 0, f->c - 1);
	if (rng_next(g) % 2)
		for (uint32_t j = 0; j < DUT_LANES; j++)
			f->at[j] = j;
	walk_lanes(f, rng_range(g, 1, DUT_LANES));
	walk_cols(f, DUT_LANES);
}

/* ---- streaming it ------------------------------------------------------------------ */

struct event { /* what was taken in one cycle */
	bool row, load;
	uint32_t m, tag, at;
	int32_t w[DUT_LANES];
	uint64_t cycle;
};

static void check_out(const struct fold *f, const struct dut_gather_out *o,
		      const struct event *e)
{
	CHECK(o->row == e->row && o->load == e->load, "row %d load %d, not %d %d", o->row,
	      o->load, e->row, e->load);
	if (e->load) {
		CHECK(o->at == e->at, "weights for row %u, not %u", o->at, e->at);
		CHECK(!memcmp(o->w, e->w, sizeof(e->w)), "weights");
	}
	if (!e->row)
		return;
	CHECK(o->tag == e->tag, "tag %u, not %u", o->tag, e->tag);
	for (uint32_t i = 0; i < DUT_LANES; i++) {
		const struct dut_gather_lane *l = &f->lane[i];
		int32_t oy = (int32_t)(e->m / f->ow), ox = (int32_t)(e->m % f->ow);
		int32_t iy = oy * (int32_t)f->sy - f->pt + (int32_t)l->dy;
		int32_t ix = ox * (int32_t)f->sx - f->pl + (int32_t)l->dx;
		bool in = l->v && iy >= 0 && iy < (int32_t)f->h && ix >= 0 &&
			  ix < (int32_t)f->w;
		uint32_t ch = (f->k0 + i) % (f->gc ? f->gc : f->c);
		uint32_t ad =
			f->base + (uint32_t)iy * f->sps + (uint32_t)ix * f->pix + ch;

		if (!f->gc) {
			int32_t want = in ? value(f, ad) : 0;

			CHECK(o->a[i] == want, "m %u lane %u: %d, not %d", e->m, i,
			      o->a[i], want);
			continue;
		}
		for (uint32_t j = 0; l->v && j < DUT_LANES; j++) {
			int32_t want = in ? value(f, ad + f->at[j]) : 0;

			CHECK(o->g[i][j] == want, "m %u lane %u column %u: %d, not %d",
			      e->m, i, j, o->g[i][j], want);
		}
	}
}

static struct dut_gather_row offer_of(const struct fold *f, uint32_t m)
{
	int32_t oy = (int32_t)(m / f->ow), ox = (int32_t)(m % f->ow);
	int32_t iy = oy * (int32_t)f->sy - f->pt, ix = ox * (int32_t)f->sx - f->pl;

	return (struct dut_gather_row){
		.v = true,
		.fresh = !m || !ox,
		.iy = iy,
		.ix = ix,
		.ad = (f->base + (uint32_t)iy * f->sps + (uint32_t)ix * f->pix) % BYTES,
		.tag = m * 7 & 0x3ff,
	};
}

/* All rows of a fold; the cycles it took.  pause: one in so many cycles brings nothing.
 */
static uint64_t stream(struct dut_gather *d, const struct fold *f, uint32_t pause,
		       bool exact, struct rng *g)
{
	static struct event queue[QUEUE];
	uint32_t head = 0, tail = 0, m = 0, idle = 0;
	bool offered = false;
	uint64_t cycle = 0;
	struct dut_gather_out out;

	dut_gather_set(d, &f->op, f->lane, &f->cols);
	while ((m < f->rows || head != tail) && idle < 200) {
		struct dut_gather_row row = offer_of(f, m);
		struct event e = {.m = m, .tag = row.tag, .cycle = cycle};
		bool ready;

		offered = m < f->rows && (offered || !pause || rng_next(g) % pause);
		row.v = offered;
		dut_gather_load(d, false, 0, e.w);
		dut_gather_offer(d, &row, &ready);
		if (m < f->rows && ready && pause && rng_next(g) % 2) {
			e.load = true;
			e.at = rng_next(g) % DUT_LANES;
			for (uint32_t j = 0; j < DUT_LANES; j++)
				e.w[j] = (int32_t)rng_range(g, 0, 511) - 256;
			dut_gather_load(d, true, e.at, e.w);
		}
		e.row = dut_gather_offer(d, &row, &ready);
		m += e.row;
		offered = offered && !e.row;
		dut_gather_out(d, &out);
		if (out.row || out.load) {
			CHECK(head != tail, "something leaves that never came");
			if (head == tail)
				break;
			check_out(f, &out, &queue[head % QUEUE]);
			if (exact)
				CHECK(cycle - queue[head % QUEUE].cycle == LATENCY,
				      "row %u takes %llu cycles", queue[head % QUEUE].m,
				      (unsigned long long)(cycle -
							   queue[head % QUEUE].cycle));
			CHECK(cycle - queue[head % QUEUE].cycle >= LATENCY, "too early");
			head++;
		}
		if (e.row || e.load)
			queue[tail++ % QUEUE] = e;
		idle = out.row || e.row ? 0 : idle + 1;
		cycle++;
		dut_gather_step(d);
	}
	CHECK(m == f->rows && head == tail, "stuck at row %u of %u", m, f->rows);
	return cycle - LATENCY;
}

static void fill(struct dut_gather *d, struct rng *g)
{
	for (uint32_t i = 0; i < BYTES; i++)
		spad[i] = (uint8_t)rng_next(g);
	for (uint32_t line = 0; line < BYTES / 64; line++) {
		dut_gather_write(d, line, spad + 64 * line);
		dut_gather_step(d);
	}
}

/* ---- folds whose time is known ------------------------------------------------------- */

static void gemm(struct dut_gather *d, struct rng *g)
{
	for (uint32_t i = 0; i < 200; i++) {
		struct fold f = {.h = 300,
				 .w = 1,
				 .c = rng_range(g, 1, 400),
				 .kh = 1,
				 .kw = 1,
				 .sx = 1,
				 .sy = 1,
				 .dx = 1,
				 .dy = 1,
				 .ow = 1,
				 .rows = 100};

		f.pix = f.c;
		f.sps = f.c + rng_range(g, 0, 70);
		f.base = rng_range(g, 0, BYTES - 1);
		f.k0 = rng_range(g, 0, (f.c - 1) / 16) * 16;
		f.op = (struct dut_gather_op){.rows = f.h, .cols = 1};
		walk_lanes(&f, rng_range(g, 1, DUT_LANES));
		CHECK(stream(d, &f, 0, true, g) == f.rows, "a GEMM meets a conflict");
	}
}

static void depthwise(struct dut_gather *d, struct rng *g, uint32_t size,
		      uint32_t channels, uint32_t stride, double least)
{
	struct fold f = {.h = size,
			 .w = size,
			 .c = channels,
			 .pix = channels,
			 .gc = 1,
			 .kh = 3,
			 .kw = 3,
			 .sx = stride,
			 .sy = stride,
			 .dx = 1,
			 .dy = 1};
	double best = 0;

	f.ow = (size + stride - 1) / stride;
	f.rows = f.ow * 6;
	f.pl = f.pt = (int32_t)((f.ow - 1) * stride + 3 - size) / 2;
	for (uint32_t pad = 0; pad <= 16; pad++) {
		double use;

		f.sps = size * channels + 64 * pad;
		f.op = (struct dut_gather_op){.group = true,
					      .rows = size,
					      .cols = size,
					      .kcin = 1,
					      .sx = stride,
					      .dx = 1};
		for (uint32_t j = 0; j < DUT_LANES; j++)
			f.at[j] = j;
		walk_lanes(&f, DUT_LANES);
		walk_cols(&f, DUT_LANES);
		use = f.rows / (double)stream(d, &f, 0, false, g);
		best = use > best ? use : best;
	}
	printf("  depthwise %u x %u x %u stride %u: %.3f rows a cycle\n", size, size,
	       channels, stride, best);
	CHECK(best >= least, "%.3f rows a cycle", best);
}

/* ---- the distance that pitch.c chooses ------------------------------------------------ */

#define LINES 6u /* of outputs */

/* All folds of some lines of an unpadded convolution with rows this far apart. */
static uint64_t measured(struct dut_gather *d, const struct npu_pitch *p, uint32_t sps,
			 struct rng *g)
{
	uint64_t cycles = 0;

	for (uint32_t k = 0; k < p->kh * p->kw * p->depth; k += DUT_LANES) {
		struct fold f = {.h = p->kh + LINES,
				 .w = (uint32_t)(p->row_bytes / p->pix),
				 .c = p->depth,
				 .pix = p->pix,
				 .kh = p->kh,
				 .kw = p->kw,
				 .sx = p->sx,
				 .sy = 1,
				 .dx = 1,
				 .dy = 1,
				 .ow = p->ow,
				 .rows = LINES * p->ow,
				 .sps = sps,
				 .k0 = k};

		f.op = (struct dut_gather_op){
			.rows = f.h, .cols = f.w, .kcin = f.c, .sx = f.sx, .dx = 1};
		walk_lanes(&f, DUT_LANES);
		cycles += stream(d, &f, 0, false, g);
	}
	return cycles;
}

/* Few channels, where runs are short and many: the distance of least cost takes hardly
 * more cycles than the best of all. */
static void chosen(struct dut_gather *d, struct rng *g)
{
	uint64_t packed = 0, all = 0, best_all = 0;
	double worst = 1;

	for (uint32_t i = 0; i < 400; i++) {
		uint32_t c = rng_range(g, 1, 4), w = rng_range(g, 8, 40);
		struct npu_pitch p = {.row_bytes = (uint64_t)w * c,
				      .lda = (uint64_t)w * c,
				      .pix = c,
				      .depth = c,
				      .kh = rng_range(g, 2, 8),
				      .kw = rng_range(g, 2, 5),
				      .sy = 1,
				      .sx = rng_range(g, 1, 2),
				      .dx = 1,
				      .dy = 1};
		uint32_t least = (uint32_t)npu_pitch_least(p.row_bytes, p.lda);
		uint32_t tries = npu_pitch_tries(&p), low = UINT32_MAX;
		uint64_t best = UINT64_MAX, mine = 0;

		p.ow = (w - p.kw) / p.sx + 1;
		for (uint32_t t = 0; t < tries; t++) {
			uint32_t cost = npu_pitch_cost(&p, least + 64 * t).cycles;
			uint64_t took = measured(d, &p, least + 64 * t, g);

			packed += t == 0 ? took : 0;
			best = took < best ? took : best;
			if (cost < low) {
				low = cost;
				mine = took;
			}
		}
		all += mine;
		best_all += best;
		worst = (double)mine / (double)best > worst ? (double)mine / (double)best
							    : worst;
	}
	printf("  400 convolutions of few channels: %llu cycles, %llu at best (one %.3f "
	       "of that), "
	       "%llu at the least distance\n",
	       (unsigned long long)all, (unsigned long long)best_all, worst,
	       (unsigned long long)packed);
	CHECK(all * 100 <= best_all * 101, "the distances chosen cost more than 1 %%");
	CHECK(worst <= 1.25, "one chosen costs %.3f of the best", worst);
	CHECK(packed * 10 >= best_all * 11, "it does not matter, which shows nothing");
}

int main(int argc, char **argv)
{
	uint64_t count = argc > 1 ? strtoull(argv[1], NULL, 0) : 1500;
	uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 0) : 1;
	struct dut_gather *d = dut_gather_create();
	struct rng g = {seed};

	dut_gather_reset(d);
	mapping(d);
	fill(d, &g);
	for (uint64_t i = 0; i < count && bench_failures < 20; i++) {
		struct rng one = {seed + i};
		uint64_t failed = bench_failures;
		struct fold f;

		random_fold(&f, &one);
		stream(d, &f, rng_next(&one) % 2 ? 0 : rng_range(&one, 2, 5), false,
		       &one);
		if (failed != bench_failures) {
			printf("failed: bench_gather 1 %llu: group %u k0 %u base %u sps "
			       "%u\n",
			       (unsigned long long)(seed + i), f.gc, f.k0, f.base, f.sps);
			dut_gather_reset(d);
		}
	}
	gemm(d, &g);
	depthwise(d, &g, 112, 32, 1, 0.97);
	depthwise(d, &g, 112, 64, 2, 0.8);
	depthwise(d, &g, 56, 128, 2, 0.8);
	depthwise(d, &g, 28, 256, 2, 0.8);
	depthwise(d, &g, 14, 512, 1, 0.9);
	depthwise(d, &g, 14, 512, 2, 0.8);
	depthwise(d, &g, 7, 1024, 1, 0.9);
	chosen(d, &g);
	dut_gather_destroy(d);
	return bench_end("bench_gather");
}

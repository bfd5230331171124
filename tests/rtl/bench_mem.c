/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_mem.c - the memory system against a C model of its timing, cycle by cycle: random
 * traffic and timing parameters, order, conservation, fair shares, bandwidth, the ideal
 * mode, and I6: a slot on channels of its own answers in the same cycles whatever the
 * others do.
 */
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "dut/dut.h"

#define S     DUT_MEM_SLOTS
#define N_MAX 8
#define BANKS 8
#define DEPTH 16 /* FIFO of a slot at a channel */
#define FLY   32 /* granted and not yet answered */

struct timing {
	uint32_t cl, rcd, rp, rowbits;
};

struct chan {
	struct dut_mem_req fifo[S][DEPTH];
	uint32_t rd[S], wr[S];
	struct dut_mem_rsp fly[FLY];
	uint64_t done[FLY];
	uint32_t fly_rd, fly_wr;
	bool open[BANKS];
	uint32_t row[BANKS];
	uint64_t ready[BANKS], bus_free;
	uint32_t last;
	uint32_t count[16];
	struct dut_mem_rsp rsp;
};

struct model {
	uint32_t n;
	struct timing t;
	uint64_t now;
	struct chan ch[N_MAX];
};

static uint32_t pack(struct timing t)
{
	return t.cl | t.rcd << 8 | t.rp << 16 | t.rowbits << 24;
}

static uint64_t later(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static bool model_full(const struct chan *c, uint32_t s)
{
	return c->wr[s] - c->rd[s] == DEPTH;
}

static bool model_busy(const struct model *m)
{
	for (uint32_t i = 0; i < m->n; i++) {
		const struct chan *c = &m->ch[i];

		for (uint32_t s = 0; s < S; s++)
			if (c->wr[s] != c->rd[s])
				return true;
		if (c->fly_rd != c->fly_wr || c->rsp.v)
			return true;
	}
	return false;
}

static void model_grant(struct model *m, struct chan *c)
{
	uint32_t cl = m->t.cl ? m->t.cl : 1;
	uint32_t s = c->last;
	struct dut_mem_req q;
	uint32_t row, bank;
	uint64_t column, data;

	if (c->fly_wr - c->fly_rd == FLY ||
	    c->bus_free > m->now + m->t.rp + m->t.rcd + cl)
		return;
	do
		s = (s + 1) % S;
	while (c->wr[s] == c->rd[s] && s != c->last);
	if (c->wr[s] == c->rd[s])
		return;
	q = c->fifo[s][c->rd[s]++ % DEPTH];
	c->last = s;
	row = q.lline >> m->t.rowbits >> 3;
	bank = (q.lline >> m->t.rowbits ^ row) % BANKS;
	column = later(c->ready[bank], m->now);
	if (!c->open[bank]) {
		column += m->t.rcd;
		c->count[3]++;
	} else if (c->row[bank] != row) {
		column += m->t.rp + m->t.rcd;
		c->count[4]++;
	} else {
		c->count[2]++;
	}
	data = later(column + cl, c->bus_free);
	c->open[bank] = true;
	c->row[bank] = row;
	c->ready[bank] = data - cl + q.beats;
	c->bus_free = data + q.beats;
	c->done[c->fly_wr % FLY] = c->bus_free;
	c->fly[c->fly_wr++ % FLY] = (struct dut_mem_rsp){
		.v = true, .we = q.we, .slot = s, .tag = q.tag, .pa = q.pa};
	c->count[q.we]++;
	c->count[5] += q.beats;
	c->count[8 + s] += q.beats;
}

/* One cycle: reqs are what the slots show; *accepted gets one bit a slot. */
static void model_step(struct model *m, const struct dut_mem_req *reqs,
		       uint32_t *accepted)
{
	bool push[S] = {false};

	*accepted = 0;
	for (uint32_t s = 0; s < S; s++)
		if (reqs[s].v && !model_full(&m->ch[reqs[s].ch], s)) {
			push[s] = true;
			*accepted |= UINT32_C(1) << s;
		}
	for (uint32_t i = 0; i < m->n; i++) {
		struct chan *c = &m->ch[i];
		uint32_t flying = c->fly_wr;

		model_grant(m, c);
		c->rsp.v = false;
		if (c->fly_rd != flying && c->done[c->fly_rd % FLY] <= m->now + 1)
			c->rsp = c->fly[c->fly_rd++ % FLY];
	}
	for (uint32_t s = 0; s < S; s++)
		if (push[s]) {
			struct chan *c = &m->ch[reqs[s].ch];

			c->fifo[s][c->wr[s]++ % DEPTH] = reqs[s];
		}
	m->now++;
}

/* ---- traffic ----------------------------------------------------------------------- */

struct source {
	struct rng r;
	uint32_t mask;   /* channels it uses */
	uint32_t rate;   /* requests in 256 cycles, at most */
	uint32_t stride; /* 0: random lines */
	uint32_t line;
	uint32_t spread; /* lines it touches */
	uint32_t tag;
	struct dut_mem_req req;
};

static void source_next(struct source *q, uint32_t n)
{
	uint32_t ch;

	q->req.v = q->mask && rng_next(&q->r) % 256 < q->rate;
	if (!q->req.v)
		return;
	do
		ch = rng_next(&q->r) % n;
	while (!(q->mask >> ch & 1));
	q->line = q->stride ? q->line + q->stride : rng_next(&q->r);
	q->req.ch = ch;
	q->req.lline = q->line % q->spread;
	q->req.we = rng_next(&q->r) % 4 == 0;
	q->req.beats = rng_range(&q->r, 1, 4);
	q->req.tag = q->tag++ & 511;
	q->req.pa = rng_next(&q->r);
}

static struct source random_source(struct rng *r, uint32_t mask)
{
	static const uint32_t rates[] = {256, 256, 128, 30, 4};
	static const uint32_t spreads[] = {1u << 26, 4096, 512, 16};

	return (struct source){.r = {rng_next(r)},
			       .mask = mask,
			       .rate = rates[rng_next(r) % 5],
			       .stride = rng_next(r) % 3,
			       .spread = spreads[rng_next(r) % 4]};
}

static struct timing random_timing(struct rng *r)
{
	if (rng_next(r) % 3 == 0)
		return (struct timing){8, 8, 8, 4};
	if (rng_next(r) % 8 == 0)
		return (struct timing){rng_next(r) & 255, rng_next(r) & 255,
				       rng_next(r) & 255, rng_next(r) & 15};
	return (struct timing){rng_range(r, 0, 20), rng_range(r, 0, 20),
			       rng_range(r, 0, 20), rng_range(r, 0, 8)};
}

static void compare_response(const struct dut_mem_rsp *got,
			     const struct dut_mem_rsp *want, uint64_t cycle, uint32_t ch)
{
	CHECK(got->v == want->v, "cycle %llu channel %u: valid %d",
	      (unsigned long long)cycle, ch, got->v);
	if (got->v && want->v)
		CHECK(got->slot == want->slot && got->we == want->we &&
			      got->tag == want->tag && got->pa == want->pa,
		      "cycle %llu channel %u: slot %u tag %u, not %u %u",
		      (unsigned long long)cycle, ch, got->slot, got->tag, want->slot,
		      want->tag);
}

static void against_model(struct dut_mem *d, struct model *m, uint32_t n, struct rng *r,
			  uint32_t cycles)
{
	struct source q[S];
	uint64_t sent = 0, answered = 0;
	uint32_t next_tag[S][N_MAX][2]; /* order within a slot's channel */
	uint32_t idle = 0;

	memset(m, 0, sizeof(*m));
	memset(next_tag, 0, sizeof(next_tag));
	m->n = n;
	m->t = random_timing(r);
	dut_mem_reset(d, false, pack(m->t));
	for (uint32_t s = 0; s < S; s++)
		q[s] = random_source(r, rng_next(r) % 4 ? rng_next(r) % (1u << n)
							: 1u << rng_next(r) % n);
	for (uint32_t i = 0; i < cycles || model_busy(m); i++) {
		struct dut_mem_req reqs[S];
		uint32_t accepted;

		for (uint32_t s = 0; s < S; s++) {
			if (!q[s].req.v && i < cycles)
				source_next(&q[s], n);
			reqs[s] = q[s].req;
			dut_mem_request(d, s, &reqs[s]);
		}
		CHECK(dut_mem_busy(d) == model_busy(m), "cycle %u: busy", i);
		model_step(m, reqs, &accepted);
		CHECK(dut_mem_accepted(d) == accepted, "cycle %u: accepted %#x, not %#x",
		      i, dut_mem_accepted(d), accepted);
		dut_mem_step(d);
		for (uint32_t s = 0; s < S; s++)
			if (accepted >> s & 1) {
				sent++;
				q[s].req.v = false;
			}
		for (uint32_t c = 0; c < n; c++) {
			struct dut_mem_rsp rsp;

			dut_mem_response(d, c, &rsp);
			compare_response(&rsp, &m->ch[c].rsp, m->now, c);
			answered += rsp.v;
		}
		if (i >= cycles && idle++ > 100000)
			break;
	}
	CHECK(sent == answered, "%llu requests, %llu answers", (unsigned long long)sent,
	      (unsigned long long)answered);
	dut_mem_snapshot(d);
	for (uint32_t c = 0; c < n; c++)
		for (uint32_t w = 0; w < 16; w++)
			CHECK(dut_mem_counter(d, c, w) == m->ch[c].count[w],
			      "channel %u word %u: %u, not %u", c, w,
			      dut_mem_counter(d, c, w), m->ch[c].count[w]);
}

/* ---- properties that need no model ------------------------------------------------- */

#define LOG 4000
struct logged {
	uint64_t cycle;
	uint32_t ch;
	struct dut_mem_rsp rsp;
};

/* Slot 0 on its own channels, and, if others, the rest of the slots hammering all the
 * others: everything slot 0 sees, with the cycle. */
static uint32_t alone_or_not(struct dut_mem *d, uint32_t n, struct timing t,
			     uint32_t mine, uint64_t seed, bool others,
			     struct logged *log, uint64_t *accepts)
{
	struct source q[S];
	struct rng r = {seed}, r2 = {seed + 1};
	uint32_t count = 0;

	*accepts = 0;
	dut_mem_reset(d, false, pack(t));
	q[0] = random_source(&r, mine);
	for (uint32_t s = 1; s < S; s++)
		q[s] = random_source(&r2, others ? ((1u << n) - 1) & ~mine : 0);
	for (uint32_t i = 0; i < LOG; i++) {
		uint32_t accepted;

		for (uint32_t s = 0; s < S; s++) {
			if (!q[s].req.v)
				source_next(&q[s], n);
			dut_mem_request(d, s, &q[s].req);
		}
		accepted = dut_mem_accepted(d);
		*accepts = *accepts * 3 + (accepted & 1);
		dut_mem_step(d);
		for (uint32_t s = 0; s < S; s++)
			if (accepted >> s & 1)
				q[s].req.v = false;
		for (uint32_t c = 0; c < n; c++) {
			struct dut_mem_rsp rsp;

			dut_mem_response(d, c, &rsp);
			if (rsp.v && rsp.slot == 0 && count < LOG)
				log[count++] = (struct logged){i, c, rsp};
		}
	}
	return count;
}

static void neighbours(struct dut_mem *d, uint32_t n, struct rng *r)
{
	static struct logged a[LOG], b[LOG];
	uint32_t mine = rng_range(r, 1, (1u << n) - 2);
	struct timing t = random_timing(r);
	uint64_t seed = rng_next(r), acc_a, acc_b;
	uint32_t na = alone_or_not(d, n, t, mine, seed, false, a, &acc_a);
	uint32_t nb = alone_or_not(d, n, t, mine, seed, true, b, &acc_b);

	CHECK(na == nb && acc_a == acc_b, "alone %u answers, with neighbours %u", na, nb);
	for (uint32_t i = 0; i < na && i < nb; i++)
		CHECK(a[i].cycle == b[i].cycle && a[i].ch == b[i].ch &&
			      a[i].rsp.tag == b[i].rsp.tag && a[i].rsp.pa == b[i].rsp.pa,
		      "answer %u: cycle %llu alone, %llu with neighbours", i,
		      (unsigned long long)a[i].cycle, (unsigned long long)b[i].cycle);
}

/* Four greedy slots on one channel: equal beats; streams of hits fill the bus. */
static void shares(struct dut_mem *d)
{
	uint32_t got[S] = {0}, line[S];
	struct timing t = {8, 8, 8, 4};
	uint32_t beats = 0;

	dut_mem_reset(d, false, pack(t));
	for (uint32_t s = 0; s < S; s++)
		line[s] = s << 12;
	for (uint32_t i = 0; i < 20000; i++) {
		uint32_t accepted;
		struct dut_mem_rsp rsp;

		for (uint32_t s = 0; s < S; s++) {
			struct dut_mem_req q = {.v = true,
						.ch = 3,
						.lline = line[s],
						.beats = 4,
						.tag = line[s] & 511};

			dut_mem_request(d, s, &q);
		}
		accepted = dut_mem_accepted(d);
		dut_mem_step(d);
		for (uint32_t s = 0; s < S; s++)
			line[s] += accepted >> s & 1;
		dut_mem_response(d, 3, &rsp);
		if (rsp.v) {
			got[rsp.slot] += 4;
			beats += 4;
		}
	}
	for (uint32_t s = 0; s < S; s++)
		CHECK(got[s] + 4 >= beats / S && got[s] <= beats / S + 4,
		      "slot %u: %u beats of %u", s, got[s], beats);

	/* One slot, consecutive lines: banks overlap and the bus is never free. */
	dut_mem_reset(d, false, pack(t));
	beats = 0;
	line[0] = 0;
	for (uint32_t i = 0; i < 20000; i++) {
		struct dut_mem_req q = {.v = true, .ch = 3, .lline = line[0], .beats = 4};
		struct dut_mem_req none = {0};
		struct dut_mem_rsp rsp;

		dut_mem_request(d, 0, &q);
		for (uint32_t s = 1; s < S; s++)
			dut_mem_request(d, s, &none);
		line[0] += dut_mem_accepted(d) & 1;
		dut_mem_step(d);
		dut_mem_response(d, 3, &rsp);
		beats += rsp.v ? 4 : 0;
	}
	/* Where a row ends the next may be in the same bank: a bubble of RP + RCD in 512
	 * beats. */
	CHECK(beats >= 20000 / 100 * 99, "a stream reaches %u beats in 20000 cycles",
	      beats);
}

static void ideal(struct dut_mem *d, uint32_t n, struct rng *r)
{
	dut_mem_reset(d, true, 0);
	for (int i = 0; i < 5000; i++) {
		struct source q = {.r = {rng_next(r)},
				   .mask = (1u << n) - 1,
				   .rate = 128,
				   .spread = 99};
		struct dut_mem_req reqs[S];
		uint32_t want = 0;

		for (uint32_t s = 0; s < S; s++) {
			source_next(&q, n);
			reqs[s] = q.req;
			want |= (uint32_t)reqs[s].v << s;
			dut_mem_request(d, s, &reqs[s]);
		}
		CHECK(dut_mem_accepted(d) == want, "ideal memory makes no one wait");
		dut_mem_step(d);
		for (uint32_t s = 0; s < S; s++) {
			struct dut_mem_rsp rsp;

			dut_mem_ideal_response(d, s, &rsp);
			CHECK(rsp.v == reqs[s].v, "ideal: slot %u", s);
			if (rsp.v)
				CHECK(rsp.tag == reqs[s].tag && rsp.pa == reqs[s].pa &&
					      rsp.slot == s && rsp.we == reqs[s].we,
				      "ideal: slot %u got another's answer", s);
		}
		for (uint32_t c = 0; c < n; c++) {
			struct dut_mem_rsp rsp;

			dut_mem_response(d, c, &rsp);
			CHECK(!rsp.v, "ideal: channel %u answers", c);
		}
	}
}

int main(int argc, char **argv)
{
	uint32_t rounds = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 0) : 60;
	struct model *m = malloc(sizeof(*m));
	struct rng r = {3};

	if (!m)
		return 2;
	for (uint32_t n = 6; n <= 8; n += 2) {
		struct dut_mem *d = dut_mem_create(n);

		for (uint32_t i = 0; i < rounds; i++)
			against_model(d, m, n, &r, 3000);
		for (uint32_t i = 0; i < rounds; i++)
			neighbours(d, n, &r);
		shares(d);
		ideal(d, n, &r);
		dut_mem_destroy(d);
	}
	free(m);
	return bench_end("bench_mem");
}

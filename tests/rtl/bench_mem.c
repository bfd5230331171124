/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_mem.c - the memory system against a C model of its timing, cycle by cycle: random
 * traffic on both ways of each slot, timing parameters, ways to share channels and token
 * buckets; order, conservation, loads beside stores, fair shares, limits, bandwidth, the
 * ideal mode, and I6: a slot on channels of its own answers in the same cycles whatever
 * the others do, and with fixed turns also on channels that all share.
 *
 *   bench_mem [ROUNDS [CHANNELS]]
 *   bench_mem properties [ROUNDS [CHANNELS]]
 *
 * ROUNDS: of random traffic; CHANNELS: 6 or 8, else both.  properties: without the model,
 * so that what both do wrong shows as well.
 */
#include <stdlib.h>
#include <string.h>

#include "arb_model.h"
#include "bench.h"
#include "dut/dut.h"
#include "npu_regs.h"

#define S      DUT_MEM_SLOTS
#define WAYS   DUT_MEM_WAYS
#define LOAD   DUT_MEM_LOAD
#define STORE  DUT_MEM_STORE
#define LOADS  (1u << LOAD)
#define STORES (1u << STORE)
#define BOTH   (LOADS | STORES)
#define N_MAX  8
#define BANKS  8
#define FLY    32 /* taken by the memory and not yet answered */
#define ROOM   16 /* of a slot's way, owed by a channel */
/* Cycles until all is answered, if need be one request of a slot in a round of turns. */
#define DRAIN 1000000

/* FIFO of a slot's way at a channel. */
static const uint32_t depth[WAYS] = {16, 32};
#define DEPTH_MAX 32

#define timing    arb_timing

/* What makes a slot's requests of one way. */
struct source {
	struct rng r;
	enum dut_mem_way way;
	uint32_t mask;   /* channels it uses */
	uint32_t rate;   /* requests in 256 cycles, at most */
	uint32_t stride; /* 0: random lines */
	uint32_t line;
	uint32_t spread; /* lines it touches */
	uint32_t tag;
	struct dut_mem_req req; /* on show, until it is accepted */
};

struct traffic {
	struct source of[S][WAYS];
};

struct taken {
	struct dut_mem_req q;
	uint32_t slot;
	enum dut_mem_way way;
	uint64_t done;
};

struct fifo {
	struct dut_mem_req q[DEPTH_MAX];
	uint32_t rd, wr;
};

struct chan {
	struct fifo fifo[S][WAYS];
	bool first[S]; /* its stores go before its loads */
	struct taken fly[FLY];
	uint32_t fly_rd, fly_wr;
	bool open[BANKS];
	uint32_t row[BANKS];
	uint64_t ready[BANKS], bus_free;
	struct arb arb;
	uint32_t count[16];
	/* The way back: the memory's output, then for loads a FIFO a slot. */
	struct dut_mem_rsp out;
	uint32_t out_slot;
	enum dut_mem_way out_way;
	struct dut_mem_rsp back[S][ROOM];
	uint32_t back_rd[S], back_wr[S];
	/* Taken: loads not yet given to the slot, stores not yet answered. */
	uint32_t owed[S][WAYS];
};

struct model {
	uint32_t n;
	struct dut_mem_share share;
	bool restart;
	struct turns turns;
	struct bucket bucket[S][2];
	struct ways ways[S];
	uint32_t held[S];
	struct timing t;
	uint64_t now;
	struct chan ch[N_MAX];
	struct dut_mem_rsp rsp[S];
	struct dut_mem_ack ack[S];
	uint32_t last[S]; /* channel that answered last */
	uint32_t mask[S]; /* channels a slot may use */
	uint8_t bytes[DUT_MEM_BYTES];
	/* Over all rounds, of each way: requests that waited for room on the way back,
	 * that were denied; stores taken before a load that could go; slots that had
	 * both accepted in a cycle, that had stores answered together. */
	struct seen {
		uint64_t crowded[WAYS], denied[WAYS], before, both, beside;
	} seen;
};

static uint32_t pack(struct timing t)
{
	return t.cl | t.rcd << 8 | t.rp << 16 | t.rowbits << 24;
}

static uint64_t later(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static uint32_t waiting(const struct fifo *f)
{
	return f->wr - f->rd;
}

static const struct dut_mem_req *head(const struct chan *c, uint32_t s,
				      enum dut_mem_way way)
{
	return &c->fifo[s][way].q[c->fifo[s][way].rd % DEPTH_MAX];
}

static bool model_busy(const struct model *m)
{
	for (uint32_t s = 0; s < S; s++) {
		if (m->rsp[s].v || m->ack[s].n[0] || m->ack[s].n[1])
			return true;
		for (uint32_t i = 0; i < m->n; i++)
			for (uint32_t w = 0; w < WAYS; w++)
				if (waiting(&m->ch[i].fifo[s][w]) || m->ch[i].owed[s][w])
					return true;
	}
	return false;
}

/* What each slot and way was owed when the cycle began. */
struct owed {
	uint32_t of[S][WAYS];
};

/* The slot's oldest request here may go to the memory. */
static bool model_may(const struct model *m, const struct chan *c, uint32_t s,
		      enum dut_mem_way way)
{
	return m->mask[s] >> (c - m->ch) & 1 || (way == LOAD && head(c, s, way)->walk);
}

/* There is one, and it could go. */
static bool model_can(const struct model *m, const struct chan *c,
		      const struct owed *owed, uint32_t s, enum dut_mem_way way)
{
	return waiting(&c->fifo[s][way]) && model_may(m, c, s, way) &&
	       owed->of[s][way] < ROOM;
}

/* The slot whose oldest request is dropped, for want of the channel; S: none. */
static uint32_t model_lost(const struct model *m, const struct chan *c,
			   const struct owed *owed, enum dut_mem_way way)
{
	for (uint32_t s = 0; s < S; s++) {
		/* two loads' answers at once are one too many */
		bool answer =
			way == LOAD && c->out.v && c->out_way == LOAD && c->out_slot == s;

		if (waiting(&c->fifo[s][way]) && owed->of[s][way] < ROOM && !answer &&
		    !model_may(m, c, s, way))
			return s;
	}
	return S;
}

static void model_deny(struct model *m, struct chan *c, uint32_t s, enum dut_mem_way way)
{
	const struct dut_mem_req *q = head(c, s, way);

	c->fifo[s][way].rd++;
	m->seen.denied[way]++;
	if (way == STORE) {
		m->ack[s].n[q->tag & 1]++;
		m->ack[s].denied = true;
		return;
	}
	c->back[s][c->back_wr[s]++ % ROOM] = (struct dut_mem_rsp){
		.v = true, .denied = true, .tag = q->tag, .at = q->pa % 64};
	c->owed[s][LOAD]++;
}

/* As registers are written: on a memory that is idle. */
static void model_share(struct model *m, const struct dut_mem_share *share)
{
	m->share = *share;
	m->restart = true;
	m->turns.cycles = share->cycles;
	m->turns.last = share->last;
	m->turns.order = share->order;
	for (uint32_t i = 0; i < m->n; i++) {
		struct arb *a = &m->ch[i].arb;
		uint32_t group = share->groups >> i & 1;

		a->mode = share->mode[group];
		a->pass = share->pass[group];
		a->prio = share->prio;
	}
}

/* The memory takes a request. */
static void model_take(struct model *m, struct chan *c, uint32_t s, enum dut_mem_way way)
{
	uint32_t cl = m->t.cl ? m->t.cl : 1, row, bank;
	struct dut_mem_req q = *head(c, s, way);
	uint64_t column, data;

	c->fifo[s][way].rd++;
	arb_place(&m->t, q.lline, &bank, &row);
	column = later(c->ready[bank], m->now);
	if (!c->open[bank])
		column += m->t.rcd;
	else if (c->row[bank] != row)
		column += m->t.rp + m->t.rcd;
	data = later(column + cl, c->bus_free);
	c->open[bank] = true;
	c->row[bank] = row;
	c->ready[bank] = data - cl + q.beats;
	c->bus_free = data + q.beats;
	c->fly[c->fly_wr++ % FLY] =
		(struct taken){q, s, way, later(c->bus_free, m->now + 5)};
	c->owed[s][way]++;
	c->count[way]++;
	c->count[5] += q.beats;
	c->count[8 + s] += q.beats;
}

/* Of a slot's two the load goes first, but for a time in which stores do. */
static void model_grant(struct model *m, struct chan *c, const struct owed *owed)
{
	uint32_t cl = m->t.cl ? m->t.cl : 1;
	struct turn turn = turns_now(&m->turns);
	struct arb_head heads[ARB_SLOTS] = {{0}};
	enum dut_mem_way way[S];
	bool both[S];
	int s;

	for (uint32_t i = 0; i < S; i++) {
		bool load = model_can(m, c, owed, i, LOAD);
		bool store = model_can(m, c, owed, i, STORE);

		both[i] = load && store;
		way[i] = store && (c->first[i] || !load) ? STORE : LOAD;
		heads[i].may = load || store;
		heads[i].lline = head(c, i, way[i])->lline;
		heads[i].beats = head(c, i, way[i])->beats;
		for (uint32_t w = 0; w < WAYS; w++)
			m->seen.crowded[w] +=
				waiting(&c->fifo[i][w]) && owed->of[i][w] == ROOM;
	}
	s = arb_pick(&c->arb, heads, turn);
	if (s < 0 || c->fly_wr - c->fly_rd == FLY ||
	    c->bus_free > m->now + m->t.rp + m->t.rcd + cl)
		return;
	m->seen.before += both[s] && way[s] == STORE;
	c->count[2 + arb_take(&c->arb, heads, turn, s)]++;
	model_take(m, c, (uint32_t)s, way[s]);
}

/* Stores go first from when there is no room for more until half of them are gone. */
static void model_first(struct chan *c, const uint32_t *stores)
{
	for (uint32_t s = 0; s < S; s++) {
		if (stores[s] == depth[STORE])
			c->first[s] = true;
		else if (stores[s] <= depth[STORE] / 2)
			c->first[s] = false;
	}
}

/* The memory's answer, two cycles before the slot can have a load's. */
static void model_serve(struct model *m, struct chan *c)
{
	struct taken t = c->fly[c->fly_rd++ % FLY];
	uint32_t pa = t.q.pa % DUT_MEM_BYTES;

	c->out = (struct dut_mem_rsp){.v = true, .tag = t.q.tag, .at = t.q.pa % 64};
	c->out_slot = t.slot;
	c->out_way = t.way;
	if (t.way == STORE)
		memcpy(m->bytes + pa, t.q.data, t.q.len);
	else
		memcpy(c->out.data, m->bytes + pa / 64 * 64, 64);
}

/* What the memory has answered goes on: a load's to its FIFO, a store's to the slot. */
static void model_pass(struct model *m, struct chan *c)
{
	uint32_t s = c->out_slot;

	if (!c->out.v)
		return;
	if (c->out_way == STORE) {
		m->ack[s].n[c->out.tag & 1]++;
		c->owed[s][STORE]--;
	} else {
		c->back[s][c->back_wr[s]++ % ROOM] = c->out;
	}
	c->out.v = false;
}

/* One response for slot s, of the channels in turn. */
static void model_return(struct model *m, uint32_t s)
{
	uint32_t i = m->last[s];

	m->rsp[s].v = false;
	for (uint32_t n = 0; n < m->n; n++) {
		struct chan *c;

		i = (i + 1) % m->n;
		c = &m->ch[i];
		if (c->back_rd[s] == c->back_wr[s])
			continue;
		m->rsp[s] = c->back[s][c->back_rd[s]++ % ROOM];
		m->last[s] = i;
		c->owed[s][LOAD]--;
		return;
	}
}

/* What slot s has accepted of what it shows, a bit a way. */
static uint32_t model_accept(struct model *m, uint32_t s, const struct source *show)
{
	bool limited = m->bucket[s][0].window || m->bucket[s][1].window;
	uint32_t asked = ways_asked(&m->ways[s], show[LOAD].req.v, show[STORE].req.v);
	const struct dut_mem_req *q = &show[asked].req;
	uint32_t group = q->v ? m->share.groups >> q->ch & 1 : 0, accepted = 0;
	bool ok = bucket_ok(&m->bucket[s][group], q->beats);

	for (uint32_t w = 0; w < WAYS; w++)
		if (show[w].req.v && (!limited || (w == asked && ok)) &&
		    waiting(&m->ch[show[w].req.ch].fifo[s][w]) < depth[w])
			accepted |= 1u << w;
	m->held[s] += q->v && !ok;
	for (uint32_t i = 0; i < 2; i++)
		bucket_step(&m->bucket[s][i],
			    accepted >> asked & 1 && i == group ? q->beats : 0);
	if (limited && accepted)
		ways_went(&m->ways[s], asked);
	return accepted;
}

static void model_channel(struct model *m, struct chan *c, const struct owed *owed)
{
	uint32_t flying = c->fly_wr, served = c->fly_rd, lost[WAYS], stores[S];

	for (uint32_t s = 0; s < S; s++)
		stores[s] = waiting(&c->fifo[s][STORE]);
	for (uint32_t w = 0; w < WAYS; w++)
		lost[w] = model_lost(m, c, owed, (enum dut_mem_way)w);
	model_grant(m, c, owed);
	for (uint32_t w = 0; w < WAYS; w++)
		if (lost[w] < S)
			model_deny(m, c, lost[w], (enum dut_mem_way)w);
	model_first(c, stores);
	if (turns_now(&m->turns).close && c->arb.mode == NPU_ARB_TURNS) {
		arb_close(&c->arb);
		memset(c->open, 0, sizeof(c->open));
	}
	model_pass(m, c);
	if (served != flying && c->fly[served % FLY].done <= m->now + 3)
		model_serve(m, c);
}

/* One cycle: *accepted gets two bits a slot, the load's the lower. */
static void model_step(struct model *m, const struct traffic *show, uint32_t *accepted)
{
	struct owed owed[N_MAX];

	*accepted = 0;
	for (uint32_t s = 0; s < S; s++) {
		uint32_t ways = model_accept(m, s, show->of[s]);

		*accepted |= ways << WAYS * s;
		m->seen.both += ways == BOTH;
	}
	for (uint32_t i = 0; i < m->n; i++)
		memcpy(owed[i].of, m->ch[i].owed, sizeof(owed[i].of));
	for (uint32_t s = 0; s < S; s++) {
		model_return(m, s);
		m->ack[s] = (struct dut_mem_ack){0};
	}
	for (uint32_t i = 0; i < m->n; i++)
		model_channel(m, &m->ch[i], &owed[i]);
	for (uint32_t i = 0; i < S * WAYS; i++)
		if (*accepted >> i & 1) {
			const struct dut_mem_req *q = &show->of[i / WAYS][i % WAYS].req;
			struct fifo *f = &m->ch[q->ch].fifo[i / WAYS][i % WAYS];

			f->q[f->wr++ % DEPTH_MAX] = *q;
		}
	for (uint32_t s = 0; s < S; s++)
		m->seen.beside += m->ack[s].n[0] + m->ack[s].n[1] > 1;
	turns_step(&m->turns, m->restart);
	m->restart = false;
	m->now++;
}

/* ---- traffic ----------------------------------------------------------------------- */

static uint32_t random_rate(struct rng *r)
{
	static const uint32_t rates[] = {256, 256, 128, 30, 4, 0};

	return rates[rng_next(r) % 6];
}

static void source_next(struct source *q, uint32_t n)
{
	uint32_t ch;

	if (rng_next(&q->r) % 512 == 0)
		q->rate = random_rate(&q->r);
	q->req.v = q->mask && rng_next(&q->r) % 256 < q->rate;
	if (!q->req.v)
		return;
	do
		ch = rng_next(&q->r) % n;
	while (!(q->mask >> ch & 1));
	q->line = q->stride ? q->line + q->stride : rng_next(&q->r);
	q->req.ch = ch;
	q->req.lline = q->line % q->spread;
	q->req.walk = q->way == LOAD && rng_next(&q->r) % 16 == 0;
	q->req.beats = rng_range(&q->r, 1, 4);
	q->req.tag = (q->way == LOAD ? q->tag++ : rng_next(&q->r)) & 511;
	q->req.len = rng_range(&q->r, 1, q->way == LOAD ? 64 : DUT_MEM_PIECE);
	/* No line is on two channels. */
	q->req.pa = q->line % q->spread * N_MAX * 64 + ch * 64 +
		    rng_next(&q->r) % (65 - q->req.len);
	for (uint32_t i = 0; q->way == STORE && i < DUT_MEM_PIECE; i++)
		q->req.data[i] = (uint8_t)rng_next(&q->r);
}

static struct source random_source(struct rng *r, enum dut_mem_way way, uint32_t mask)
{
	static const uint32_t spreads[] = {1u << 26, 4096, 512, 16};

	return (struct source){.r = {rng_next(r)},
			       .way = way,
			       .mask = mask,
			       .rate = random_rate(r),
			       .stride = rng_next(r) % 3,
			       .spread = spreads[rng_next(r) % 4]};
}

/* Some channels for each way, often all of one's, and often one. */
static void random_traffic(struct traffic *t, struct rng *r, uint32_t n)
{
	for (uint32_t s = 0; s < S; s++)
		for (uint32_t w = 0; w < WAYS; w++) {
			uint32_t mask = rng_next(r) % 4 ? rng_next(r) % (1u << n)
							: 1u << rng_next(r) % n;

			if (w == STORE && rng_next(r) % 2)
				mask = t->of[s][LOAD].mask;
			t->of[s][w] = random_source(r, (enum dut_mem_way)w, mask);
		}
}

static void traffic_show(struct dut_mem *d, struct traffic *t)
{
	for (uint32_t s = 0; s < S; s++)
		for (uint32_t w = 0; w < WAYS; w++)
			dut_mem_request(d, s, (enum dut_mem_way)w, &t->of[s][w].req);
}

/* New requests where none is on show. */
static void traffic_next(struct traffic *t, uint32_t n)
{
	for (uint32_t s = 0; s < S; s++)
		for (uint32_t w = 0; w < WAYS; w++)
			if (!t->of[s][w].req.v)
				source_next(&t->of[s][w], n);
}

static void traffic_went(struct traffic *t, uint32_t accepted)
{
	for (uint32_t i = 0; i < S * WAYS; i++)
		if (accepted >> i & 1)
			t->of[i / WAYS][i % WAYS].req.v = false;
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

/* Anything that registers can say, sensible or not. */
static struct dut_mem_share random_share(struct rng *r, uint32_t n)
{
	struct dut_mem_share share = {.cycles = rng_next(r) % 4096,
				      .last = rng_next(r) % 8,
				      .order = rng_next(r),
				      .groups = rng_next(r) % (1u << n)};

	for (uint32_t g = 0; g < 2; g++) {
		share.mode[g] = rng_range(r, NPU_ARB_FAIR, NPU_ARB_TURNS);
		share.pass[g] = rng_next(r) % 16;
	}
	if (rng_next(r) % 4 == 0)
		share.prio = rng_next(r);
	/* Else turns of each slot, one after the other. */
	if (rng_next(r) % 4) {
		share.cycles = rng_range(r, 0, 300);
		share.last = S - 1;
		share.order = NPU_GLB_TURN_ORDER_RESET;
	}
	/* A slot without a turn would wait for ever. */
	for (uint32_t s = 0; s < S; s++) {
		bool some = false;

		for (uint32_t i = 0; i <= share.last; i++)
			some |= (share.order >> 4 * i & 15) == s;
		if (!some)
			share.order = NPU_GLB_TURN_ORDER_RESET, share.last = S - 1;
	}
	return share;
}

static struct dut_mem_bucket random_bucket(struct rng *r)
{
	struct dut_mem_bucket b = {.window = rng_range(r, 1, 200),
				   .budget = rng_range(r, 1, 400)};

	b.burst = (uint32_t)later(b.budget, 4) + (uint32_t)(rng_next(r) % 100);
	if (rng_next(r) % 2)
		b.window = 0;
	return b;
}

/* One bucket in a random place, in both, before the next step. */
static void new_bucket(struct dut_mem *d, struct rng *r, struct bucket **set,
		       struct model *m, struct dut_mem_bucket *value)
{
	uint32_t s = rng_next(r) % S, g = rng_next(r) % 2;

	*value = random_bucket(r);
	dut_mem_bucket(d, s, g, value);
	*set = &m->bucket[s][g];
}

static void compare_response(const struct dut_mem_rsp *got,
			     const struct dut_mem_rsp *want, uint64_t cycle,
			     uint32_t slot)
{
	CHECK(got->v == want->v, "cycle %llu slot %u: valid %d",
	      (unsigned long long)cycle, slot, got->v);
	if (!got->v || !want->v)
		return;
	CHECK(got->tag == want->tag && got->at == want->at && got->denied == want->denied,
	      "cycle %llu slot %u: tag %u, not %u", (unsigned long long)cycle, slot,
	      got->tag, want->tag);
	if (!want->denied)
		CHECK(!memcmp(got->data, want->data, 64),
		      "cycle %llu slot %u tag %u: wrong data", (unsigned long long)cycle,
		      slot, got->tag);
}

static void random_bytes(struct rng *r)
{
	uint8_t *bytes = dut_mem_bytes();

	for (uint32_t i = 0; i < DUT_MEM_BYTES; i += 4) {
		uint32_t word = rng_next(r);

		memcpy(bytes + i, &word, 4);
	}
}

/* What has gone in, and what has come out: loads, stores of each epoch. */
struct tally {
	uint64_t loads, stores[2];
};

static void tally_sent(struct tally *t, const struct traffic *show, uint32_t accepted)
{
	for (uint32_t s = 0; s < S; s++) {
		t->loads += accepted >> WAYS * s & LOADS;
		if (accepted >> WAYS * s & STORES)
			t->stores[show->of[s][STORE].req.tag & 1]++;
	}
}

/* What slots get in a cycle. */
static void compare_answers(struct dut_mem *d, const struct model *m, struct tally *got)
{
	for (uint32_t s = 0; s < S; s++) {
		const struct dut_mem_ack *want = &m->ack[s];
		struct dut_mem_rsp rsp;
		struct dut_mem_ack ack;

		dut_mem_response(d, s, &rsp);
		compare_response(&rsp, &m->rsp[s], m->now, s);
		dut_mem_answered(d, s, &ack);
		CHECK(ack.n[0] == want->n[0] && ack.n[1] == want->n[1] &&
			      ack.denied == want->denied,
		      "cycle %llu slot %u: %u + %u stores answered, denied %d, not "
		      "%u + %u, %d",
		      (unsigned long long)m->now, s, ack.n[0], ack.n[1], ack.denied,
		      want->n[0], want->n[1], want->denied);
		got->loads += rsp.v;
		got->stores[0] += ack.n[0];
		got->stores[1] += ack.n[1];
	}
}

static void compare_ends(struct dut_mem *d, const struct model *m,
			 const struct tally *sent, const struct tally *got)
{
	CHECK(sent->loads == got->loads, "%llu loads, %llu answers",
	      (unsigned long long)sent->loads, (unsigned long long)got->loads);
	for (uint32_t e = 0; e < 2; e++)
		CHECK(sent->stores[e] == got->stores[e],
		      "epoch %u: %llu stores, %llu answers", e,
		      (unsigned long long)sent->stores[e],
		      (unsigned long long)got->stores[e]);
	CHECK(!memcmp(m->bytes, dut_mem_bytes(), DUT_MEM_BYTES), "memory differs");
	for (uint32_t s = 0; s < S; s++)
		CHECK(dut_mem_held(d, s) == m->held[s], "slot %u: held %u cycles, not %u",
		      s, dut_mem_held(d, s), m->held[s]);
	dut_mem_snapshot(d);
	for (uint32_t c = 0; c < m->n; c++)
		for (uint32_t w = 0; w < 16; w++)
			CHECK(dut_mem_counter(d, c, w) == m->ch[c].count[w],
			      "channel %u word %u: %u, not %u", c, w,
			      dut_mem_counter(d, c, w), m->ch[c].count[w]);
}

/* Both as after a reset, with the same in their registers and in their memory. */
static void begin(struct dut_mem *d, struct model *m, uint32_t n, struct rng *r)
{
	struct seen seen = m->seen;
	struct dut_mem_share share;

	memset(m, 0, sizeof(*m));
	m->n = n;
	m->seen = seen;
	memset(m->mask, 0xff, sizeof(m->mask));
	m->t = random_timing(r);
	random_bytes(r);
	memcpy(m->bytes, dut_mem_bytes(), DUT_MEM_BYTES);
	dut_mem_reset(d, false, pack(m->t));
	for (uint32_t c = 0; c < n; c++)
		arb_reset(&m->ch[c].arb, S, m->t);
	turns_reset(&m->turns, S, m->t);
	share = random_share(r, n);
	dut_mem_share(d, &share);
	model_share(m, &share);
}

static void against_model(struct dut_mem *d, struct model *m, uint32_t n, struct rng *r,
			  uint32_t cycles)
{
	struct traffic show;
	struct tally sent = {0}, got = {0};
	uint32_t idle = 0, change = rng_next(r) % 2 ? 0 : rng_range(r, 1, 200);
	uint32_t buckets = rng_next(r) % 2 ? 400 : 0; /* a change in so many cycles */

	begin(d, m, n, r);
	random_traffic(&show, r, n);
	for (uint32_t i = 0; i < cycles || model_busy(m); i++) {
		struct dut_mem_bucket value;
		struct bucket *set = NULL;
		uint32_t accepted;

		if (buckets && rng_next(r) % buckets == 0)
			new_bucket(d, r, &set, m, &value);
		if (i < cycles)
			traffic_next(&show, n);
		traffic_show(d, &show);
		for (uint32_t s = 0; s < S; s++)
			if (change && rng_next(r) % change == 0) {
				m->mask[s] = rng_next(r) | rng_next(r);
				dut_mem_mask(d, s, m->mask[s]);
			}
		CHECK(dut_mem_busy(d) == model_busy(m), "cycle %u: busy", i);
		model_step(m, &show, &accepted);
		CHECK(dut_mem_accepted(d) == accepted, "cycle %u: accepted %#x, not %#x",
		      i, dut_mem_accepted(d), accepted);
		dut_mem_step(d);
		if (set)
			bucket_set(set, value.window, value.budget, value.burst);
		tally_sent(&sent, &show, accepted);
		traffic_went(&show, accepted);
		compare_answers(d, m, &got);
		if (i >= cycles && idle++ > DRAIN)
			break;
	}
	compare_ends(d, m, &sent, &got);
}

/* ---- properties that need no model ------------------------------------------------- */

#define LOG 4000
struct logged {
	uint64_t cycle;
	struct dut_mem_rsp rsp;
	struct dut_mem_ack ack;
};

/* Slot 0 on some channels, and the rest of the slots hammering others (0: they are
 * still): everything slot 0 sees, with the cycle. */
static uint32_t alone_or_not(struct dut_mem *d, uint32_t n, struct timing t,
			     const struct dut_mem_share *share, uint32_t mine,
			     uint32_t others, uint64_t seed, struct logged *log,
			     uint64_t *accepts)
{
	struct traffic show;
	struct rng r = {seed}, r2 = {seed + 1};
	uint32_t count = 0;

	*accepts = 0;
	dut_mem_reset(d, false, pack(t));
	dut_mem_share(d, share);
	for (uint32_t s = 0; s < S; s++)
		for (uint32_t w = 0; w < WAYS; w++)
			show.of[s][w] = random_source(s ? &r2 : &r, (enum dut_mem_way)w,
						      s ? others : mine);
	for (uint32_t i = 0; i < LOG; i++) {
		struct logged l = {.cycle = i};
		uint32_t accepted;

		traffic_next(&show, n);
		traffic_show(d, &show);
		accepted = dut_mem_accepted(d);
		*accepts = *accepts * 5 + (accepted & BOTH);
		dut_mem_step(d);
		traffic_went(&show, accepted);
		dut_mem_response(d, 0, &l.rsp);
		dut_mem_answered(d, 0, &l.ack);
		if (l.rsp.v || l.ack.n[0] || l.ack.n[1])
			log[count++] = l;
	}
	return count;
}

static bool same_answers(const struct logged *a, const struct logged *b)
{
	if (a->rsp.v && b->rsp.v && (a->rsp.tag != b->rsp.tag || a->rsp.at != b->rsp.at))
		return false;
	return a->cycle == b->cycle && a->rsp.v == b->rsp.v &&
	       a->ack.n[0] == b->ack.n[0] && a->ack.n[1] == b->ack.n[1];
}

/* Answers of slot 0 that are not as they are alone. */
static uint32_t changes(struct dut_mem *d, uint32_t n, struct timing t,
			const struct dut_mem_share *share, uint32_t mine, uint32_t others,
			uint64_t seed)
{
	static struct logged a[LOG], b[LOG];
	uint64_t acc_a, acc_b;
	uint32_t na = alone_or_not(d, n, t, share, mine, 0, seed, a, &acc_a);
	uint32_t nb = alone_or_not(d, n, t, share, mine, others, seed, b, &acc_b);
	uint32_t count = (uint32_t)(na != nb) + (uint32_t)(acc_a != acc_b);

	for (uint32_t i = 0; i < na && i < nb; i++)
		count += !same_answers(&a[i], &b[i]);
	return count;
}

/* Nobody else on slot 0's channels; all on them, in turns; and the control. */
static uint32_t neighbours(struct dut_mem *d, uint32_t n, struct rng *r)
{
	uint32_t all = (1u << n) - 1, mine = rng_range(r, 1, all - 1), count;
	struct timing t = random_timing(r);
	struct dut_mem_share share = random_share(r, n);
	uint64_t seed = rng_next(r);

	count = changes(d, n, t, &share, mine, all & ~mine, seed);
	CHECK(!count, "disjoint channels: %u answers are not as alone", count);
	share.mode[0] = share.mode[1] = NPU_ARB_TURNS;
	count = changes(d, n, t, &share, mine, all, seed);
	CHECK(!count, "turns: %u answers are not as alone", count);
	share.mode[0] = share.mode[1] = NPU_ARB_FAIR;
	share.prio = 0;
	return changes(d, n, t, &share, mine, all, seed);
}

/* ---- what goes in comes out once --------------------------------------------------- */

#define TAGS 512

/* What a slot waits for. */
struct waits {
	bool out[TAGS]; /* loads; of which channel, and how many it had before */
	uint32_t ch[TAGS], before[TAGS];
	uint32_t sent[N_MAX], got[N_MAX];
	uint32_t stores[2]; /* of each epoch */
};

/* Tags that no load has, and lines that no other slot has. */
static void own_request(struct dut_mem_req *q, const struct waits *w, uint32_t s)
{
	while (w->out[q->tag])
		q->tag = (q->tag + 1) % TAGS;
	q->pa = (q->pa & ~UINT32_C(0x600)) | s << 9;
}

static void waits_next(struct traffic *t, const struct waits *w, uint32_t n)
{
	for (uint32_t s = 0; s < S; s++) {
		struct source *q = t->of[s];

		for (uint32_t i = 0; i < WAYS; i++) {
			if (q[i].req.v)
				continue;
			source_next(&q[i], n);
			own_request(&q[i].req, &w[s], s);
		}
	}
}

/* Requests of a slot that are accepted; image: memory as its stores make it. */
static void waits_sent(struct waits *w, const struct source *q, uint32_t ways,
		       uint8_t *image)
{
	const struct dut_mem_req *load = &q[LOAD].req, *store = &q[STORE].req;

	if (ways & LOADS) {
		w->out[load->tag] = true;
		w->ch[load->tag] = load->ch;
		w->before[load->tag] = w->sent[load->ch]++;
	}
	if (ways & STORES) {
		w->stores[store->tag & 1]++;
		memcpy(image + store->pa % DUT_MEM_BYTES, store->data, store->len);
	}
}

/* Answers to a slot; lose: some may be denied, and so overtake others. */
static void waits_got(struct dut_mem *d, struct waits *w, uint32_t s, bool lose)
{
	struct dut_mem_rsp rsp;
	struct dut_mem_ack ack;

	dut_mem_response(d, s, &rsp);
	dut_mem_answered(d, s, &ack);
	if (rsp.v) {
		uint32_t ch = w->ch[rsp.tag];

		CHECK(w->out[rsp.tag], "slot %u: tag %u was not out", s, rsp.tag);
		CHECK(lose || w->before[rsp.tag] == w->got[ch],
		      "slot %u: tag %u out of order", s, rsp.tag);
		CHECK(lose || !rsp.denied, "slot %u: tag %u denied", s, rsp.tag);
		w->out[rsp.tag] = false;
		w->got[ch]++;
	}
	CHECK(lose || !ack.denied, "slot %u: a store denied", s);
	for (uint32_t e = 0; e < 2; e++) {
		CHECK(ack.n[e] <= w->stores[e], "slot %u epoch %u: %u answers to %u", s,
		      e, ack.n[e], w->stores[e]);
		w->stores[e] -= ack.n[e];
	}
}

/* Each load is answered once, those of a channel in order; stores as many as there were
 * of each epoch.  While slots keep their channels, nothing is denied, and what was stored
 * last is what memory has. */
static void conserved(struct dut_mem *d, uint32_t n, struct rng *r)
{
	static uint8_t image[DUT_MEM_BYTES];
	static struct waits waits[S];
	const bool lose = rng_next(r) % 2;
	struct dut_mem_share share = random_share(r, n);
	struct traffic show;

	memset(waits, 0, sizeof(waits));
	random_bytes(r);
	memcpy(image, dut_mem_bytes(), sizeof(image));
	dut_mem_reset(d, false, pack(random_timing(r)));
	dut_mem_share(d, &share);
	if (rng_next(r) % 2) {
		const struct dut_mem_bucket b = random_bucket(r);

		dut_mem_bucket(d, rng_next(r) % S, rng_next(r) % 2, &b);
	}
	random_traffic(&show, r, n);
	for (uint32_t i = 0; i < 1500 || (dut_mem_busy(d) && i < DRAIN); i++) {
		uint32_t accepted;

		if (i < 1500)
			waits_next(&show, waits, n);
		traffic_show(d, &show);
		if (lose && i < 1500 && rng_next(r) % 64 == 0)
			dut_mem_mask(d, rng_next(r) % S, rng_next(r) | rng_next(r));
		accepted = dut_mem_accepted(d);
		dut_mem_step(d);
		for (uint32_t s = 0; s < S; s++) {
			waits_sent(&waits[s], show.of[s], accepted >> WAYS * s, image);
			waits_got(d, &waits[s], s, lose);
		}
		traffic_went(&show, accepted);
	}
	for (uint32_t s = 0; s < S; s++) {
		uint32_t loads = 0;

		for (uint32_t i = 0; i < TAGS; i++)
			loads += waits[s].out[i];
		CHECK(!loads && !waits[s].stores[0] && !waits[s].stores[1],
		      "slot %u: no answer to %u loads, to %u and %u stores", s, loads,
		      waits[s].stores[0], waits[s].stores[1]);
	}
	CHECK(lose || !memcmp(image, dut_mem_bytes(), sizeof(image)),
	      "memory is not what was stored");
}

/* ---- fair -------------------------------------------------------------------------- */

#define CHANNEL 3

enum pattern { STREAM, COPY, ONE_BANK, SCATTER, PATTERNS, SAME = PATTERNS, NEW_ROW };

/* Line i of slot s; rows have 16 lines, a bank comes again behind 128. */
static uint32_t pattern_line(enum pattern p, uint32_t s, uint32_t i)
{
	switch (p) {
	case STREAM:
		return (s << 16) + i;
	case COPY: /* eight here, eight there */
		return (s << 16) + (i / 8 % 2 << 14) + i / 16 * 8 + i % 8;
	case ONE_BANK: /* another row each time */
		return (s << 16) + i % 32 * 1024;
	case SAME:
		return s << 16;
	case NEW_ROW: /* of another bank each time, not of the first */
		return (s << 16) + i / 7 % 512 * 128 + (i / 7 % 8 ^ (i % 7 + 1)) * 16;
	default:
		return (s << 16) + i * 40503u % 65536u;
	}
}

static void show_line(struct dut_mem *d, uint32_t s, enum dut_mem_way way, bool v,
		      uint32_t ch, uint32_t lline)
{
	struct dut_mem_req q = {
		.v = v, .ch = ch, .lline = lline, .beats = 4, .len = DUT_MEM_PIECE};

	dut_mem_request(d, s, way, &q);
}

/* How many of a slot's way are answered in this cycle. */
static uint32_t answered(struct dut_mem *d, uint32_t s, enum dut_mem_way way)
{
	struct dut_mem_rsp rsp;
	struct dut_mem_ack ack;

	dut_mem_response(d, s, &rsp);
	dut_mem_answered(d, s, &ack);
	return way == LOAD ? rsp.v : ack.n[0] + ack.n[1];
}

/* Cycles until slot 0 has 500 answers, at most so many at a time, of one way; beside so
 * many slots that always ask, each on some of its ways. */
struct fair {
	enum dut_mem_way way;
	enum pattern mine;
	uint32_t at_a_time;
	enum pattern theirs;
	uint32_t ways, others;
};

static uint32_t fair_run(struct dut_mem *d, const struct fair *f)
{
	uint32_t sent[S][WAYS] = {{0}}, got = 0, i = 0;

	dut_mem_reset(d, false, pack((struct timing){8, 8, 8, 4}));
	for (; got < 500 && i < 100000; i++) {
		uint32_t accepted;

		for (uint32_t s = 0; s < S; s++)
			for (uint32_t w = 0; w < WAYS; w++) {
				bool v = s ? s <= f->others && f->ways >> w & 1
					   : w == f->way &&
							 sent[0][w] - got < f->at_a_time;

				show_line(d, s, (enum dut_mem_way)w, v, CHANNEL,
					  pattern_line(s ? f->theirs : f->mine, s,
						       sent[s][w]));
			}
		accepted = dut_mem_accepted(d);
		dut_mem_step(d);
		for (uint32_t w = 0; w < S * WAYS; w++)
			sent[w / WAYS][w % WAYS] += accepted >> w & 1;
		got += answered(d, 0, f->way);
	}
	return i;
}

/* Whatever the others do, and whether a slot asks for much or for one line after the
 * other, for loads or for stores: not slower than by its share, and 15 %.  With few lines
 * at a time, beside fewer than all others, or in one bank, it may be. */
static void fair_beside(struct dut_mem *d, struct fair f)
{
	uint32_t alone = fair_run(d, &f), fewest = f.at_a_time < 8 ? S - 1 : 1;

	for (f.theirs = 0; f.theirs < PATTERNS; f.theirs++)
		for (f.others = fewest; f.others < S; f.others++) {
			uint32_t with = fair_run(d, &f);

			CHECK(with * 100 <= alone * (f.others + 1) * 115,
			      "way %u, pattern %u, %u at a time, beside %u of pattern "
			      "%u and ways %u: %u cycles, alone %u",
			      f.way, f.mine, f.at_a_time, f.others, f.theirs, f.ways,
			      with, alone);
		}
}

static void fair(struct dut_mem *d)
{
	struct fair f = {0};

	for (f.mine = 0; f.mine <= SAME; f.mine++)
		for (f.at_a_time = f.mine == SAME ? 8 : 1; f.at_a_time <= 64;
		     f.at_a_time *= 8) {
			f.way = LOAD;
			f.ways = LOADS;
			fair_beside(d, f);
			f.way = STORE;
			f.ways = BOTH;
			fair_beside(d, f);
		}
}

/* ---- crowds ------------------------------------------------------------------------ */

#define LONG 8000

/* Slots that always ask for a line more, from a cycle on. */
struct crowd {
	uint32_t channel[S], from[S]; /* LONG: never */
	uint32_t ways[S];
	enum pattern pattern[S];
};

/* After LONG cycles: beats answered to each slot and way, and upto[i]: those accepted of
 * slot 0 in the first i cycles. */
struct served {
	uint32_t slot[S], way[S][WAYS], all;
	uint32_t upto[LONG + 1];
};

static const struct crowd together = {.channel = {CHANNEL, CHANNEL, CHANNEL, CHANNEL},
				      .ways = {LOADS, LOADS, LOADS, LOADS}};

static void crowd_begin(struct dut_mem *d)
{
	dut_mem_reset(d, false, pack((struct timing){8, 8, 8, 4}));
}

static void crowd_run(struct dut_mem *d, const struct crowd *c, struct served *got)
{
	uint32_t sent[S][WAYS] = {{0}};

	memset(got, 0, sizeof(*got));
	for (uint32_t i = 0; i < LONG; i++) {
		uint32_t accepted;

		for (uint32_t s = 0; s < S; s++)
			for (uint32_t w = 0; w < WAYS; w++)
				show_line(d, s, (enum dut_mem_way)w,
					  i >= c->from[s] && c->ways[s] >> w & 1,
					  c->channel[s],
					  pattern_line(c->pattern[s], s, sent[s][w]));
		accepted = dut_mem_accepted(d);
		dut_mem_step(d);
		for (uint32_t w = 0; w < S * WAYS; w++) {
			uint32_t n =
				4 * answered(d, w / WAYS, (enum dut_mem_way)(w % WAYS));

			sent[w / WAYS][w % WAYS] += accepted >> w & 1;
			got->slot[w / WAYS] += n;
			got->way[w / WAYS][w % WAYS] += n;
			got->all += n;
		}
		got->upto[i + 1] = 4 * (sent[0][LOAD] + sent[0][STORE]);
	}
}

/* Four streams on one channel, of loads, of stores, or of both: equal beats, but for who
 * stays at the end; rows stay open for many requests.  One stream fills the bus. */
static void shares(struct dut_mem *d)
{
	static const uint32_t ways[][S] = {{LOADS, LOADS, LOADS, LOADS},
					   {STORES, STORES, STORES, STORES},
					   {BOTH, BOTH, BOTH, BOTH},
					   {BOTH, LOADS, STORES, BOTH}};
	static struct served got;

	for (uint32_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		struct crowd c = together;

		memcpy(c.ways, ways[i], sizeof(c.ways));
		crowd_begin(d);
		crowd_run(d, &c, &got);
		for (uint32_t s = 0; s < S; s++)
			CHECK(got.slot[s] + 128 >= got.all / S &&
				      got.slot[s] <= got.all / S + 128,
			      "ways %u: slot %u: %u beats of %u", i, s, got.slot[s],
			      got.all);
		CHECK(got.all >= LONG / 100 * 95,
		      "ways %u: four streams reach %u beats in %u cycles", i, got.all,
		      LONG);
	}
	for (uint32_t w = LOADS; w <= STORES; w++) {
		struct crowd alone = together;

		alone.ways[0] = w;
		for (uint32_t s = 1; s < S; s++)
			alone.from[s] = LONG;
		crowd_begin(d);
		crowd_run(d, &alone, &got);
		/* Where a row ends the next may be in the same bank: a bubble of RP + RCD
		 * in 512 beats. */
		CHECK(got.all >= LONG / 100 * 99,
		      "a stream of ways %u reaches %u beats in %u cycles", w, got.all,
		      LONG);
	}
}

/* Who asks for nothing saves up little: enough to go first, not to keep the others away.
 */
static void late(struct dut_mem *d)
{
	static struct served got;
	struct crowd c = together;

	c.from[0] = LONG - 1000;
	for (uint32_t w = LOADS; w <= BOTH; w++) {
		c.ways[0] = w;
		crowd_begin(d);
		crowd_run(d, &c, &got);
		CHECK(got.slot[0] >= 200 && got.slot[0] <= 600,
		      "1000 cycles after it came, a slot of ways %u beside three has %u "
		      "beats",
		      w, got.slot[0]);
	}
}

/* The highest priority that asks goes, whatever it costs the others. */
static void priorities(struct dut_mem *d)
{
	static struct served got;

	for (uint32_t i = 0; i < 4 * S; i++) {
		const uint32_t first = i % S, second = (first + 1) % S;
		const uint32_t mode = i / S % 2 ? NPU_ARB_HITS : NPU_ARB_FAIR;
		struct dut_mem_share share = {.mode = {mode, mode}, .pass = {15, 15}};
		struct crowd c = together;

		share.prio = 9u << 4 * first | 8u << 4 * second;
		c.from[first] = LONG / 2;
		for (uint32_t s = 0; s < S; s++)
			c.ways[s] = i / S / 2 ? BOTH : LOADS;
		crowd_begin(d);
		dut_mem_share(d, &share);
		crowd_run(d, &c, &got);
		/* what was taken before the other came is still answered */
		CHECK(got.slot[first] >= LONG / 2 - 200 &&
			      got.slot[second] + got.slot[first] == got.all,
		      "mode %u: priority 9 has %u beats, 8 has %u, of %u", mode,
		      got.slot[first], got.slot[second], got.all);
	}
}

/* Row hits go first, but not for ever; with PASS 0 nothing is different. */
static void row_hits(struct dut_mem *d, uint32_t ways)
{
	static const uint32_t passes[] = {0, 15};
	static struct served fair, got;
	struct crowd c = together;

	c.pattern[0] = SAME;
	c.pattern[1] = SCATTER;
	c.ways[0] = c.ways[1] = ways;
	c.from[2] = c.from[3] = LONG;
	crowd_begin(d);
	crowd_run(d, &c, &fair);
	for (uint32_t i = 0; i < sizeof(passes) / sizeof(passes[0]); i++) {
		struct dut_mem_share share = {.mode = {NPU_ARB_HITS, NPU_ARB_HITS},
					      .pass = {passes[i], passes[i]}};

		crowd_begin(d);
		dut_mem_share(d, &share);
		crowd_run(d, &c, &got);
		if (passes[i])
			CHECK(got.slot[1] >= 200 && got.slot[0] > fair.slot[0],
			      "PASS %u: row hits get %u beats, another %u; %u, %u if "
			      "fair",
			      passes[i], got.slot[0], got.slot[1], fair.slot[0],
			      fair.slot[1]);
		else
			CHECK(!memcmp(&got, &fair, sizeof(got)),
			      "PASS 0 is not fair: %u and %u beats, not %u and %u",
			      got.slot[0], got.slot[1], fair.slot[0], fair.slot[1]);
	}
	/* However long, also where another's rows cost nothing, as they are of other
	 * banks. */
	c.pattern[1] = NEW_ROW;
	for (uint32_t i = 0; i < 8; i++) {
		crowd_run(d, &c, &got);
		CHECK(got.slot[1] >= 200, "run %u: row hits get %u beats, another %u", i,
		      got.slot[0], got.slot[1]);
	}
}

static void row_hits_of(struct dut_mem *d)
{
	for (uint32_t ways = LOADS; ways <= BOTH; ways++)
		row_hits(d, ways);
}

/* Each slot is served in its turns, and no slot in another's. */
static void turns_served(struct dut_mem *d)
{
	static struct served got;
	struct dut_mem_share share = {.mode = {NPU_ARB_TURNS, NPU_ARB_TURNS},
				      .cycles = 128,
				      .last = 4,
				      .order = 0x12310};

	for (uint32_t ways = LOADS; ways <= BOTH; ways++) {
		struct crowd c = together;

		for (uint32_t s = 0; s < S; s++)
			c.ways[s] = ways;
		crowd_begin(d);
		dut_mem_share(d, &share);
		crowd_run(d, &c, &got);
		/* of five turns slot 1 has two */
		for (uint32_t s = 0; s < S; s++)
			CHECK(got.slot[s] >= LONG / 5 * (s == 1 ? 2 : 1) / 2 &&
				      got.slot[s] <= LONG / 5 * (s == 1 ? 2 : 1),
			      "turns, ways %u: slot %u has %u beats in %u cycles", ways,
			      s, got.slot[s], LONG);
	}
}

/* In n windows no more than n budgets and a burst, also after a rest; all of that if a
 * slot asks for more, equally of both ways if it asks for both; and nothing of it on the
 * other group's channels. */
static void limit(struct dut_mem *d, uint32_t group, uint32_t ways)
{
	static struct served got, free;
	/* less than a fair share */
	static const struct dut_mem_bucket limit = {
		.window = 25, .budget = 5, .burst = 8};
	const uint32_t other = CHANNEL + 1, from = LONG / 4;
	struct dut_mem_share share = {.groups = 1u << other};
	struct crowd c = together;
	uint32_t most = 0;

	c.channel[0] = group ? other : CHANNEL;
	c.from[0] = from;
	c.ways[0] = ways;
	crowd_begin(d);
	dut_mem_share(d, &share);
	dut_mem_step(d);
	dut_mem_bucket(d, 0, group, &limit);
	crowd_run(d, &c, &got);
	for (uint32_t n = 1; n * limit.window < LONG; n++)
		for (uint32_t i = 0; i + n * limit.window <= LONG; i++) {
			uint32_t moved = got.upto[i + n * limit.window] - got.upto[i];
			uint32_t may = n * limit.budget + limit.burst;

			if (moved > may && moved - may > most)
				most = moved - may;
		}
	CHECK(!most, "group %u ways %u: %u beats above the limit", group, ways, most);
	CHECK(got.upto[LONG] >= (LONG - from) / limit.window * limit.budget,
	      "group %u ways %u: %u beats are less than the limit", group, ways,
	      got.upto[LONG]);
	if (ways == BOTH)
		CHECK(got.way[0][LOAD] <= got.way[0][STORE] + 64 &&
			      got.way[0][STORE] <= got.way[0][LOAD] + 64,
		      "group %u: %u beats of loads, %u of stores", group,
		      got.way[0][LOAD], got.way[0][STORE]);

	crowd_begin(d);
	dut_mem_share(d, &share);
	crowd_run(d, &c, &free);
	CHECK(got.upto[LONG] < free.upto[LONG],
	      "group %u ways %u: a limit limits nothing", group, ways);
	crowd_begin(d);
	dut_mem_share(d, &share);
	dut_mem_step(d);
	dut_mem_bucket(d, 0, !group, &limit);
	crowd_run(d, &c, &got);
	/* Of both ways one a cycle is accepted even so: what FIFOs hold may differ, and
	 * who stays at the end. */
	CHECK(got.upto[LONG] <= free.upto[LONG] &&
		      got.upto[LONG] + (ways == BOTH ? 4 * depth[LOAD] + 128 : 0) >=
			      free.upto[LONG],
	      "group %u ways %u: %u beats beside a limit of the other group, else %u",
	      group, ways, got.upto[LONG], free.upto[LONG]);
}

static void limits(struct dut_mem *d)
{
	for (uint32_t group = 0; group < 2; group++)
		for (uint32_t ways = LOADS; ways <= BOTH; ways++)
			limit(d, group, ways);
}

/* ---- loads beside stores ----------------------------------------------------------- */

/* A load and a store are accepted in one cycle, whatever their channels. */
static void both_ways(struct dut_mem *d)
{
	for (uint32_t i = 0; i < 4; i++) {
		dut_mem_reset(d, i & 1, pack((struct timing){8, 8, 8, 4}));
		show_line(d, 0, LOAD, true, CHANNEL, 0);
		show_line(d, 0, STORE, true, CHANNEL + (i >> 1), 0);
		CHECK(dut_mem_accepted(d) == BOTH, "one way keeps the other waiting");
	}
}

/* A slot shows some of its ways, v, and of them went are accepted. */
struct turn_taking {
	uint32_t last, row; /* what went last, so many times in a row */
	uint32_t waited[WAYS];
};

static void take_turns(struct turn_taking *t, uint32_t v, uint32_t went, bool steady)
{
	CHECK(!v || went == (v & LOADS) || went == (v & STORES),
	      "limited: %#x accepted of %#x", went, v);
	CHECK(went == t->last || !steady || t->row == 8, "limited: %u in a row", t->row);
	t->row = went == t->last ? t->row + 1 : 1;
	t->last = went;
	for (uint32_t w = 0; w < WAYS; w++) {
		t->waited[w] = v & ~went & 1u << w ? t->waited[w] + 1 : 0;
		CHECK(t->waited[w] <= 8, "limited: way %u waits for %u", w, t->waited[w]);
	}
}

/* Of a slot that has a limit one of them: eight of a way in a row if the other waits, and
 * at once if it does not.  Slot 1 has none, and is not held back. */
static void one_way(struct dut_mem *d)
{
	static const struct dut_mem_bucket wide = {.window = 1, .budget = 4, .burst = 4};
	struct turn_taking t = {.row = 8};
	struct rng r = {5};
	uint32_t v = 0;

	dut_mem_reset(d, true, 0);
	dut_mem_bucket(d, 0, 0, &wide);
	dut_mem_step(d);
	for (uint32_t i = 0; i < 4000; i++) {
		const bool steady = i < 200; /* there are always both */
		uint32_t went;

		/* what waits goes on waiting */
		v |= steady ? BOTH : rng_next(&r) % 3 ? 0 : rng_range(&r, 0, BOTH);
		for (uint32_t s = 0; s < 2; s++)
			for (uint32_t w = 0; w < WAYS; w++)
				show_line(d, s, (enum dut_mem_way)w, v >> w & 1, CHANNEL,
					  i);
		went = dut_mem_accepted(d);
		CHECK(went >> WAYS == v, "a limit holds another slot back");
		take_turns(&t, v, went & BOTH, steady);
		v &= ~went;
		dut_mem_step(d);
	}
}

/* What each of two slots has of a way. */
struct tries {
	uint32_t sent, got, denied;
};

static void denied_step(struct dut_mem *d, struct tries t[2][WAYS], uint32_t each)
{
	uint32_t accepted;

	for (uint32_t i = 0; i < 2 * WAYS; i++) {
		uint32_t s = i / WAYS, w = i % WAYS, n = t[s][w].sent;
		struct dut_mem_req q = {.v = n < each,
					.ch = CHANNEL,
					.walk = w == LOAD && n % 4 == 0,
					.lline = pattern_line(SCATTER, s, n),
					.beats = 4,
					.len = DUT_MEM_PIECE,
					.tag = n,
					.pa = s << 16 | n << 6,
					.data = {1}};

		dut_mem_request(d, s, (enum dut_mem_way)w, &q);
	}
	accepted = dut_mem_accepted(d);
	dut_mem_step(d);
	for (uint32_t s = 0; s < 2; s++) {
		struct dut_mem_rsp rsp;
		struct dut_mem_ack ack;

		dut_mem_response(d, s, &rsp);
		dut_mem_answered(d, s, &ack);
		CHECK(!(rsp.v && rsp.denied && rsp.tag % 4 == 0), "a walk is denied");
		t[s][LOAD].denied += rsp.v && rsp.denied;
		t[s][STORE].denied += ack.denied; /* one a channel a cycle */
		for (uint32_t w = 0; w < WAYS; w++) {
			t[s][w].sent += accepted >> (WAYS * s + w) & 1;
			t[s][w].got += answered(d, s, (enum dut_mem_way)w);
		}
	}
}

/* Of a slot that loses its channel, all that waits is answered as denied and is not done,
 * but for walks; nothing of another's. */
static void denied(struct dut_mem *d)
{
	const uint32_t each = 60;
	struct tries t[2][WAYS] = {{{0}}};

	memset(dut_mem_bytes(), 0, DUT_MEM_BYTES);
	crowd_begin(d);
	for (uint32_t i = 0; i < 10000; i++) {
		if (i == 500)
			dut_mem_mask(d, 0, ~(1u << CHANNEL));
		denied_step(d, t, each);
	}
	for (uint32_t s = 0; s < 2; s++) {
		uint32_t written = 0;

		for (uint32_t i = 0; i < each; i++)
			written += dut_mem_bytes()[s << 16 | i << 6];
		for (uint32_t w = 0; w < WAYS; w++)
			CHECK(t[s][w].got == each && (t[s][w].denied > 16) == !s,
			      "denied: slot %u way %u: %u answers, %u denied", s, w,
			      t[s][w].got, t[s][w].denied);
		CHECK(written == each - t[s][STORE].denied,
		      "slot %u: %u stores done and %u denied, of %u", s, written,
		      t[s][STORE].denied, each);
	}
}

/* In LONG cycles of loads that never pause, and a store every so many. */
struct mixed {
	uint32_t loads, stores; /* answered */
	uint32_t pause;         /* most cycles from a load's answer to the next */
	uint32_t age;           /* and from when a store is there until it is answered */
};

static struct mixed mixed_run(struct dut_mem *d, uint32_t every, uint32_t others)
{
	static uint32_t since[LONG];
	struct mixed m = {0};
	uint32_t made = 0, taken = 0, sent[S] = {0}, last = 0;

	crowd_begin(d);
	for (uint32_t i = 0; i < LONG; i++) {
		struct dut_mem_rsp rsp;
		uint32_t accepted;

		if (i % every == 0)
			since[made++] = i;
		for (uint32_t s = 0; s < S; s++)
			show_line(d, s, LOAD, s <= others, CHANNEL,
				  pattern_line(STREAM, s, sent[s]));
		show_line(d, 0, STORE, taken < made, CHANNEL,
			  pattern_line(STREAM, S, taken));
		accepted = dut_mem_accepted(d);
		taken += accepted >> STORE & 1;
		for (uint32_t s = 0; s < S; s++)
			sent[s] += accepted >> WAYS * s & 1;
		dut_mem_step(d);
		dut_mem_response(d, 0, &rsp);
		m.loads += rsp.v;
		if (rsp.v)
			last = i;
		m.pause = (uint32_t)later(m.pause, i - last);
		for (uint32_t n = answered(d, 0, STORE); n; n--)
			m.age = (uint32_t)later(m.age, i - since[m.stores++]);
	}
	for (uint32_t i = m.stores; i < made; i++)
		m.age = (uint32_t)later(m.age, LONG - since[i]);
	return m;
}

/* Loads go before their slot's stores, but these wait for no more than as many as fill
 * their FIFO; then loads wait for half of it.  On a channel that all share, a slot's
 * share is not smaller for it. */
static void none_waits(struct dut_mem *d)
{
	for (uint32_t others = 0; others < S; others += S - 1)
		for (uint32_t every = 8 * (others + 1); every <= 128; every *= 2) {
			struct mixed m = mixed_run(d, every, others);
			/* cycles for half of their FIFO, while more come */
			uint32_t half = 160 * (others + 1);

			CHECK(m.age <= (depth[STORE] - 1) * every + half,
			      "beside %u slots, one in %u cycles: a store waits for %u",
			      others, every, m.age);
			CHECK(m.pause <= 2 * half, /* in turns with the others */
			      "beside %u slots, a store in %u cycles: a load waits for "
			      "%u",
			      others, every, m.pause);
			CHECK(4 * (m.loads + m.stores) >= LONG / 100 * 95 / (others + 1),
			      "beside %u slots, a store in %u cycles: %u loads and %u "
			      "stores",
			      others, every, m.loads, m.stores);
		}
}

/* Loads that never pause, and a store of each that is answered: both use the bus to the
 * full, and neither gets far ahead. */
static void copies(struct dut_mem *d)
{
	uint32_t sent[WAYS] = {0}, got[WAYS] = {0}, most = 0;

	crowd_begin(d);
	for (uint32_t i = 0; i < LONG; i++) {
		struct dut_mem_rsp rsp;
		uint32_t accepted;

		show_line(d, 0, LOAD, true, CHANNEL, pattern_line(STREAM, 0, sent[LOAD]));
		show_line(d, 0, STORE, sent[STORE] < got[LOAD], CHANNEL,
			  pattern_line(STREAM, 1, sent[STORE]));
		accepted = dut_mem_accepted(d);
		for (uint32_t w = 0; w < WAYS; w++)
			sent[w] += accepted >> w & 1;
		dut_mem_step(d);
		dut_mem_response(d, 0, &rsp);
		got[LOAD] += rsp.v;
		got[STORE] += answered(d, 0, STORE);
		most = (uint32_t)later(most, got[LOAD] - got[STORE]);
	}
	CHECK(4 * (got[LOAD] + got[STORE]) >= LONG / 100 * 90,
	      "a copy: %u loads and %u stores in %u cycles", got[LOAD], got[STORE], LONG);
	CHECK(most <= depth[STORE] + ROOM, "a copy: loads are %u ahead", most);
}

/* ---- the ideal memory -------------------------------------------------------------- */

/* Of a slot, in the next cycle: what memory had, and how many stores it has now. */
static void ideal_answers(struct dut_mem *d, uint32_t s, const struct source *q,
			  const uint8_t *line)
{
	const struct dut_mem_req *load = &q[LOAD].req, *store = &q[STORE].req;
	struct dut_mem_rsp rsp;
	struct dut_mem_ack ack;

	dut_mem_response(d, s, &rsp);
	dut_mem_answered(d, s, &ack);
	CHECK(rsp.v == load->v && !(rsp.v && rsp.denied), "ideal: slot %u", s);
	if (load->v) {
		CHECK(rsp.tag == load->tag && rsp.at == load->pa % 64,
		      "ideal: slot %u got another's answer", s);
		CHECK(!memcmp(rsp.data, line, 64), "ideal: slot %u: wrong data", s);
	}
	CHECK(ack.n[store->tag & 1] == store->v && !ack.n[~store->tag & 1] && !ack.denied,
	      "ideal: slot %u: %u and %u stores answered", s, ack.n[0], ack.n[1]);
	if (store->v)
		CHECK(!memcmp(dut_mem_bytes() + store->pa % DUT_MEM_BYTES, store->data,
			      store->len),
		      "ideal: slot %u: not written", s);
}

static void ideal(struct dut_mem *d, uint32_t n, struct rng *r)
{
	dut_mem_reset(d, true, 0);
	random_bytes(r);
	for (int i = 0; i < 5000; i++) {
		struct traffic show;
		uint8_t lines[S][64];
		uint32_t want = 0;

		for (uint32_t w = 0; w < S * WAYS; w++) {
			struct source *q = &show.of[w / WAYS][w % WAYS];

			*q = (struct source){.r = {rng_next(r)},
					     .way = (enum dut_mem_way)(w % WAYS),
					     .mask = (1u << n) - 1,
					     .rate = 128,
					     .spread = 99,
					     .tag = rng_next(r)};
			source_next(q, n);
			/* Slots do not meet; what a slot loads is as it was before. */
			q->req.pa = (q->req.pa & ~UINT32_C(0x1c0)) | w / WAYS << 6;
			want |= (uint32_t)q->req.v << w;
		}
		for (uint32_t s = 0; s < S; s++)
			memcpy(lines[s],
			       dut_mem_bytes() +
				       show.of[s][LOAD].req.pa % DUT_MEM_BYTES / 64 * 64,
			       64);
		traffic_show(d, &show);
		CHECK(dut_mem_accepted(d) == want, "ideal memory makes no one wait");
		dut_mem_step(d);
		for (uint32_t s = 0; s < S; s++)
			ideal_answers(d, s, show.of[s], lines[s]);
	}
}

/* Without the model.  Returns how many neighbours were noticed on shared channels. */
static uint32_t properties(struct dut_mem *d, uint32_t n, uint32_t rounds, struct rng *r)
{
	static void (*const each[])(struct dut_mem *) = {
		both_ways, denied,       one_way, none_waits,  copies,    late,
		limits,    turns_served, shares,  row_hits_of, priorities};
	uint32_t seen = 0;

	for (uint32_t i = 0; i < rounds && !bench_failures; i++)
		seen += neighbours(d, n, r);
	for (uint32_t i = 0; i < 4 * rounds && !bench_failures; i++)
		conserved(d, n, r);
	for (uint32_t i = 0; i < sizeof(each) / sizeof(each[0]) && !bench_failures; i++)
		each[i](d);
	/* Takes longest, and a channel is the same beside five as beside seven. */
	if (n == 6 || rounds > 100)
		fair(d);
	ideal(d, n, r);
	return seen;
}

/* Random traffic has come to all that it is for. */
static void all_seen(const struct seen *s)
{
	for (uint32_t w = 0; w < WAYS; w++) {
		CHECK(s->crowded[w] > 100,
		      "no request of way %u has waited for room on the way back", w);
		CHECK(s->denied[w] > 100, "no request of way %u has lost its channel", w);
	}
	CHECK(s->before > 100, "no store has gone before a load");
	CHECK(s->both > 100, "no load was accepted beside a store");
	CHECK(s->beside > 100, "no stores were answered together");
}

int main(int argc, char **argv)
{
	const bool alone = argc > 1 && !strcmp(argv[1], "properties");
	char **arg = argv + alone;
	int args = argc - alone;
	uint32_t rounds = args > 1 ? (uint32_t)strtoul(arg[1], NULL, 0) : 16;
	uint32_t only = args > 2 ? (uint32_t)strtoul(arg[2], NULL, 0) : 0;
	struct model *m = calloc(1, sizeof(*m));
	struct rng r = {3};
	uint32_t seen = 0;

	if (!m)
		return 2;
	for (uint32_t n = 6; n <= 8; n += 2) {
		struct dut_mem *d;

		if (only && n != only)
			continue;
		d = dut_mem_create(n);
		for (uint32_t i = 0; !alone && i < rounds && !bench_failures; i++)
			against_model(d, m, n, &r, 3000);
		seen += properties(d, n, rounds, &r);
		dut_mem_destroy(d);
	}
	if (!alone)
		all_seen(&m->seen);
	CHECK(seen > 0, "nobody notices neighbours on shared channels");
	free(m);
	return bench_end("bench_mem");
}

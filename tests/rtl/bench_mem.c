/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_mem.c - the memory system against a C model of its timing, cycle by cycle: random
 * traffic, timing parameters, ways to share channels and token buckets; order,
 * conservation, fair shares, limits, bandwidth, the ideal mode, and I6: a slot on
 * channels of its own answers in the same cycles whatever the others do, and with fixed
 * turns also on channels that all share.
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
#define N_MAX  8
#define BANKS  8
#define DEPTH  16 /* FIFO of a slot at a channel */
#define FLY    32 /* taken by the memory and not yet answered */
#define ROOM   16 /* responses of a slot from a channel */

#define timing arb_timing

struct taken {
	struct dut_mem_req q;
	uint32_t slot;
	uint64_t done;
};

struct chan {
	struct dut_mem_req fifo[S][DEPTH];
	uint32_t rd[S], wr[S];
	struct taken fly[FLY];
	uint32_t fly_rd, fly_wr;
	bool open[BANKS];
	uint32_t row[BANKS];
	uint64_t ready[BANKS], bus_free;
	struct arb arb;
	uint32_t count[16];
	/* The way back: the memory's output, then a FIFO a slot. */
	struct dut_mem_rsp out;
	uint32_t out_slot;
	struct dut_mem_rsp back[S][ROOM];
	uint32_t back_rd[S], back_wr[S];
	uint32_t owed[S]; /* taken, and not yet given to the slot */
};

struct model {
	uint32_t n;
	struct dut_mem_share share;
	bool restart;
	struct turns turns;
	struct bucket bucket[S][2];
	uint32_t held[S];
	struct timing t;
	uint64_t now;
	struct chan ch[N_MAX];
	struct dut_mem_rsp rsp[S];
	uint32_t last[S]; /* channel that answered last */
	uint32_t mask[S]; /* channels a slot may use */
	uint64_t crowded; /* requests that waited for room on the way back */
	uint64_t denied;
	uint8_t bytes[DUT_MEM_BYTES];
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
	for (uint32_t s = 0; s < S; s++) {
		if (m->rsp[s].v)
			return true;
		for (uint32_t i = 0; i < m->n; i++)
			if (m->ch[i].wr[s] != m->ch[i].rd[s] || m->ch[i].owed[s])
				return true;
	}
	return false;
}

/* The slot's oldest request here may go to the memory. */
static bool model_may(const struct model *m, const struct chan *c, uint32_t s)
{
	return m->mask[s] >> (c - m->ch) & 1 || c->fifo[s][c->rd[s] % DEPTH].walk;
}

/* The slot whose oldest request is dropped, for want of the channel; S: none. */
static uint32_t model_lost(const struct model *m, const struct chan *c,
			   const uint32_t *owed)
{
	for (uint32_t s = 0; s < S; s++)
		if (c->wr[s] != c->rd[s] && owed[s] < ROOM && !model_may(m, c, s) &&
		    !(c->out.v && c->out_slot == s))
			return s;
	return S;
}

static void model_deny(struct model *m, struct chan *c, uint32_t s)
{
	const struct dut_mem_req *q = &c->fifo[s][c->rd[s]++ % DEPTH];

	c->back[s][c->back_wr[s]++ % ROOM] = (struct dut_mem_rsp){
		.v = true, .denied = true, .we = q->we, .tag = q->tag, .at = q->pa % 64};
	c->owed[s]++;
	m->denied++;
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

/* owed: as it was when the cycle began. */
static void model_grant(struct model *m, struct chan *c, const uint32_t *owed)
{
	uint32_t cl = m->t.cl ? m->t.cl : 1, row, bank;
	struct turn turn = turns_now(&m->turns);
	struct arb_head heads[ARB_SLOTS] = {{0}};
	uint64_t column, data;
	struct dut_mem_req q;
	int s;

	for (uint32_t i = 0; i < S; i++) {
		if (c->wr[i] == c->rd[i] || !model_may(m, c, i))
			continue;
		heads[i].may = owed[i] < ROOM;
		heads[i].lline = c->fifo[i][c->rd[i] % DEPTH].lline;
		heads[i].beats = c->fifo[i][c->rd[i] % DEPTH].beats;
		m->crowded += !heads[i].may;
	}
	s = arb_pick(&c->arb, heads, turn);
	if (s < 0 || c->fly_wr - c->fly_rd == FLY ||
	    c->bus_free > m->now + m->t.rp + m->t.rcd + cl)
		return;
	c->count[2 + arb_take(&c->arb, heads, turn, s)]++;
	q = c->fifo[s][c->rd[s]++ % DEPTH];
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
		(struct taken){q, (uint32_t)s, later(c->bus_free, m->now + 5)};
	c->owed[s]++;
	c->count[q.we]++;
	c->count[5] += q.beats;
	c->count[8 + s] += q.beats;
}

/* The memory's answer, two cycles before the slot can have it. */
static void model_serve(struct model *m, struct chan *c)
{
	struct taken t = c->fly[c->fly_rd++ % FLY];
	uint32_t pa = t.q.pa % DUT_MEM_BYTES;

	c->out = (struct dut_mem_rsp){
		.v = true, .we = t.q.we, .tag = t.q.tag, .at = t.q.pa % 64};
	c->out_slot = t.slot;
	if (t.q.we)
		memcpy(m->bytes + pa, t.q.data, t.q.len);
	else
		memcpy(c->out.data, m->bytes + pa / 64 * 64, 64);
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
		c->owed[s]--;
		return;
	}
}

/* One cycle: reqs are what the slots show; *accepted gets one bit a slot. */
static void model_step(struct model *m, const struct dut_mem_req *reqs,
		       uint32_t *accepted)
{
	uint32_t owed[N_MAX][S];
	bool push[S] = {false};

	*accepted = 0;
	for (uint32_t s = 0; s < S; s++) {
		uint32_t group = reqs[s].v ? m->share.groups >> reqs[s].ch & 1 : 0;
		bool ok = bucket_ok(&m->bucket[s][group], reqs[s].beats);

		push[s] = reqs[s].v && ok && !model_full(&m->ch[reqs[s].ch], s);
		*accepted |= (uint32_t)push[s] << s;
		m->held[s] += reqs[s].v && !ok;
		for (uint32_t i = 0; i < 2; i++)
			bucket_step(&m->bucket[s][i],
				    push[s] && i == group ? reqs[s].beats : 0);
	}
	for (uint32_t i = 0; i < m->n; i++)
		memcpy(owed[i], m->ch[i].owed, sizeof(owed[i]));
	for (uint32_t s = 0; s < S; s++)
		model_return(m, s);
	for (uint32_t i = 0; i < m->n; i++) {
		struct chan *c = &m->ch[i];
		uint32_t s = c->out_slot, flying = c->fly_wr, served = c->fly_rd;
		uint32_t lost = model_lost(m, c, owed[i]);

		model_grant(m, c, owed[i]);
		if (lost < S)
			model_deny(m, c, lost);
		if (turns_now(&m->turns).close && c->arb.mode == NPU_ARB_TURNS) {
			arb_close(&c->arb);
			memset(c->open, 0, sizeof(c->open));
		}
		if (c->out.v)
			c->back[s][c->back_wr[s]++ % ROOM] = c->out;
		c->out.v = false;
		if (served != flying && c->fly[served % FLY].done <= m->now + 3)
			model_serve(m, c);
	}
	for (uint32_t s = 0; s < S; s++)
		if (push[s]) {
			struct chan *c = &m->ch[reqs[s].ch];

			c->fifo[s][c->wr[s]++ % DEPTH] = reqs[s];
		}
	turns_step(&m->turns, m->restart);
	m->restart = false;
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
	q->req.we = rng_next(&q->r) % 4 == 0;
	q->req.walk = !q->req.we && rng_next(&q->r) % 16 == 0;
	q->req.beats = rng_range(&q->r, 1, 4);
	q->req.tag = q->tag++ & 511;
	q->req.len = rng_range(&q->r, 1, 64);
	/* No line is on two channels. */
	q->req.pa = q->line % q->spread * N_MAX * 64 + ch * 64 +
		    rng_next(&q->r) % (65 - q->req.len);
	for (uint32_t i = 0; q->req.we && i < 64; i++)
		q->req.data[i] = (uint8_t)rng_next(&q->r);
}

static struct source random_source(struct rng *r, uint32_t mask)
{
	static const uint32_t spreads[] = {1u << 26, 4096, 512, 16};

	return (struct source){.r = {rng_next(r)},
			       .mask = mask,
			       .rate = random_rate(r),
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
	CHECK(got->we == want->we && got->tag == want->tag && got->at == want->at &&
		      got->denied == want->denied,
	      "cycle %llu slot %u: tag %u, not %u", (unsigned long long)cycle, slot,
	      got->tag, want->tag);
	if (!want->we && !want->denied)
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

static void against_model(struct dut_mem *d, struct model *m, uint32_t n, struct rng *r,
			  uint32_t cycles)
{
	struct source q[S];
	uint64_t sent = 0, answered = 0, crowded = m->crowded, denied = m->denied;
	uint32_t idle = 0, change = rng_next(r) % 2 ? 0 : rng_range(r, 1, 200);
	uint32_t buckets = rng_next(r) % 2 ? 400 : 0; /* a change in so many cycles */
	struct dut_mem_share share;

	memset(m, 0, sizeof(*m));
	m->n = n;
	m->crowded = crowded;
	m->denied = denied;
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
	for (uint32_t s = 0; s < S; s++)
		q[s] = random_source(r, rng_next(r) % 4 ? rng_next(r) % (1u << n)
							: 1u << rng_next(r) % n);
	for (uint32_t i = 0; i < cycles || model_busy(m); i++) {
		struct dut_mem_req reqs[S];
		struct dut_mem_bucket value;
		struct bucket *set = NULL;
		uint32_t accepted;

		if (buckets && rng_next(r) % buckets == 0)
			new_bucket(d, r, &set, m, &value);
		for (uint32_t s = 0; s < S; s++) {
			if (!q[s].req.v && i < cycles)
				source_next(&q[s], n);
			reqs[s] = q[s].req;
			dut_mem_request(d, s, &reqs[s]);
			if (change && rng_next(r) % change == 0) {
				m->mask[s] = rng_next(r) | rng_next(r);
				dut_mem_mask(d, s, m->mask[s]);
			}
		}
		CHECK(dut_mem_busy(d) == model_busy(m), "cycle %u: busy", i);
		model_step(m, reqs, &accepted);
		CHECK(dut_mem_accepted(d) == accepted, "cycle %u: accepted %#x, not %#x",
		      i, dut_mem_accepted(d), accepted);
		dut_mem_step(d);
		if (set)
			bucket_set(set, value.window, value.budget, value.burst);
		for (uint32_t s = 0; s < S; s++)
			if (accepted >> s & 1) {
				sent++;
				q[s].req.v = false;
			}
		for (uint32_t s = 0; s < S; s++) {
			struct dut_mem_rsp rsp;

			dut_mem_response(d, s, &rsp);
			compare_response(&rsp, &m->rsp[s], m->now, s);
			answered += rsp.v;
		}
		if (i >= cycles && idle++ > 100000)
			break;
	}
	CHECK(sent == answered, "%llu requests, %llu answers", (unsigned long long)sent,
	      (unsigned long long)answered);
	CHECK(!memcmp(m->bytes, dut_mem_bytes(), DUT_MEM_BYTES), "memory differs");
	for (uint32_t s = 0; s < S; s++)
		CHECK(dut_mem_held(d, s) == m->held[s], "slot %u: held %u cycles, not %u",
		      s, dut_mem_held(d, s), m->held[s]);
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
	struct dut_mem_rsp rsp;
};

/* Slot 0 on some channels, and the rest of the slots hammering others (0: they are
 * still): everything slot 0 sees, with the cycle. */
static uint32_t alone_or_not(struct dut_mem *d, uint32_t n, struct timing t,
			     const struct dut_mem_share *share, uint32_t mine,
			     uint32_t others, uint64_t seed, struct logged *log,
			     uint64_t *accepts)
{
	struct source q[S];
	struct rng r = {seed}, r2 = {seed + 1};
	struct dut_mem_rsp rsp;
	uint32_t count = 0;

	*accepts = 0;
	dut_mem_reset(d, false, pack(t));
	dut_mem_share(d, share);
	q[0] = random_source(&r, mine);
	for (uint32_t s = 1; s < S; s++)
		q[s] = random_source(&r2, others);
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
		dut_mem_response(d, 0, &rsp);
		if (rsp.v && count < LOG)
			log[count++] = (struct logged){i, rsp};
	}
	return count;
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
		count += a[i].cycle != b[i].cycle || a[i].rsp.tag != b[i].rsp.tag ||
			 a[i].rsp.we != b[i].rsp.we || a[i].rsp.at != b[i].rsp.at;
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

/* ---- fair -------------------------------------------------------------------------- */

enum pattern { STREAM, COPY, ONE_BANK, SCATTER, PATTERNS, SAME = PATTERNS };

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
	default:
		return (s << 16) + i * 40503u % 65536u;
	}
}

/* Cycles until slot 0 has 500 answers, at most so many at a time, beside others slots. */
static uint32_t fair_run(struct dut_mem *d, enum pattern mine, uint32_t at_a_time,
			 enum pattern theirs, uint32_t others)
{
	struct timing t = {8, 8, 8, 4};
	uint32_t sent[S] = {0}, got = 0, i = 0;

	dut_mem_reset(d, false, pack(t));
	for (; got < 500 && i < 100000; i++) {
		uint32_t accepted;
		struct dut_mem_rsp rsp;

		for (uint32_t s = 0; s < S; s++) {
			struct dut_mem_req q = {.ch = 3, .beats = 4, .len = 64};

			q.v = s ? s <= others : sent[0] - got < at_a_time;
			q.lline = pattern_line(s ? theirs : mine, s, sent[s]);
			dut_mem_request(d, s, &q);
		}
		accepted = dut_mem_accepted(d);
		dut_mem_step(d);
		for (uint32_t s = 0; s < S; s++)
			sent[s] += accepted >> s & 1;
		dut_mem_response(d, 0, &rsp);
		got += rsp.v;
	}
	return i;
}

/* Whatever the others do, and whether a slot asks for much or for one line after the
 * other: not slower than by its share, and 15 %. */
static void fair(struct dut_mem *d)
{
	for (enum pattern mine = 0; mine < PATTERNS; mine++)
		for (uint32_t at_a_time = 1; at_a_time <= 64; at_a_time *= 8) {
			uint32_t alone = fair_run(d, mine, at_a_time, 0, 0);

			for (enum pattern theirs = 0; theirs < PATTERNS; theirs++) {
				uint32_t with =
					fair_run(d, mine, at_a_time, theirs, S - 1);

				CHECK(with * 100 <= alone * S * 115,
				      "pattern %u, %u at a time, beside %u: %u cycles, "
				      "alone %u",
				      mine, at_a_time, theirs, with, alone);
			}
		}
}

/* ---- crowds ------------------------------------------------------------------------ */

#define CHANNEL 3
#define LONG    8000

/* Slots that always ask for a line more, from a cycle on. */
struct crowd {
	uint32_t channel[S], from[S]; /* LONG: never */
	enum pattern pattern[S];
};

static const struct crowd together = {.channel = {CHANNEL, CHANNEL, CHANNEL, CHANNEL}};

static void crowd_begin(struct dut_mem *d)
{
	dut_mem_reset(d, false, pack((struct timing){8, 8, 8, 4}));
}

/* After LONG cycles: beats answered to each slot, and upto[i]: those accepted of slot 0
 * in the first i cycles.  Returns all that were answered. */
static uint32_t crowd_run(struct dut_mem *d, const struct crowd *c, uint32_t got[S],
			  uint32_t upto[LONG + 1])
{
	uint32_t sent[S] = {0}, all = 0;

	memset(got, 0, S * sizeof(got[0]));
	upto[0] = 0;
	for (uint32_t i = 0; i < LONG; i++) {
		struct dut_mem_rsp rsp;
		uint32_t accepted;

		for (uint32_t s = 0; s < S; s++) {
			struct dut_mem_req q = {
				.v = i >= c->from[s],
				.ch = c->channel[s],
				.lline = pattern_line(c->pattern[s], s, sent[s]),
				.beats = 4,
				.len = 64,
				.tag = sent[s] & 511};

			dut_mem_request(d, s, &q);
		}
		accepted = dut_mem_accepted(d);
		dut_mem_step(d);
		for (uint32_t s = 0; s < S; s++) {
			sent[s] += accepted >> s & 1;
			dut_mem_response(d, s, &rsp);
			got[s] += rsp.v ? 4 : 0;
			all += rsp.v ? 4 : 0;
		}
		upto[i + 1] = 4 * sent[0];
	}
	return all;
}

/* Four streams on one channel: equal beats, but for who stays at the end; rows stay open
 * for many requests.  One stream fills the bus. */
static void shares(struct dut_mem *d)
{
	static uint32_t upto[LONG + 1];
	struct crowd alone = together;
	uint32_t got[S], beats;

	crowd_begin(d);
	beats = crowd_run(d, &together, got, upto);
	for (uint32_t s = 0; s < S; s++)
		CHECK(got[s] + 128 >= beats / S && got[s] <= beats / S + 128,
		      "slot %u: %u beats of %u", s, got[s], beats);
	CHECK(beats >= LONG / 100 * 95, "four streams reach %u beats in %u cycles", beats,
	      LONG);

	crowd_begin(d);
	for (uint32_t s = 1; s < S; s++)
		alone.from[s] = LONG;
	beats = crowd_run(d, &alone, got, upto);
	/* Where a row ends the next may be in the same bank: a bubble of RP + RCD in 512
	 * beats. */
	CHECK(beats >= LONG / 100 * 99, "a stream reaches %u beats in %u cycles", beats,
	      LONG);
}

/* Who asks for nothing saves up little: enough to go first, not to keep the others away.
 */
static void late(struct dut_mem *d)
{
	static uint32_t upto[LONG + 1];
	struct crowd c = together;
	uint32_t got[S];

	c.from[0] = LONG - 1000;
	crowd_begin(d);
	crowd_run(d, &c, got, upto);
	CHECK(got[0] >= 200 && got[0] <= 600,
	      "1000 cycles after it came, a slot beside three has %u beats", got[0]);
}

/* The highest priority that asks goes, whatever it costs the others. */
static void priorities(struct dut_mem *d)
{
	static uint32_t upto[LONG + 1];

	for (uint32_t mode = NPU_ARB_FAIR; mode <= NPU_ARB_HITS; mode++)
		for (uint32_t first = 0; first < S; first++) {
			struct dut_mem_share share = {.mode = {mode, mode},
						      .pass = {15, 15}};
			uint32_t second = (first + 1) % S, got[S], beats;
			struct crowd c = together;

			share.prio = 9u << 4 * first | 8u << 4 * second;
			c.from[first] = LONG / 2;
			crowd_begin(d);
			dut_mem_share(d, &share);
			beats = crowd_run(d, &c, got, upto);
			/* what was taken before the other came is still answered */
			CHECK(got[first] >= LONG / 2 - 200 &&
				      got[second] + got[first] == beats,
			      "mode %u: priority 9 has %u beats, 8 has %u, of %u", mode,
			      got[first], got[second], beats);
		}
}

/* Row hits go first, but not for ever; with PASS 0 nothing is different. */
static void row_hits(struct dut_mem *d)
{
	static const uint32_t passes[] = {0, 15};
	static uint32_t upto[LONG + 1];
	struct crowd c = together;
	uint32_t fair[S], fair_upto[2];

	c.pattern[0] = SAME;
	c.pattern[1] = ONE_BANK;
	c.from[2] = c.from[3] = LONG;
	crowd_begin(d);
	crowd_run(d, &c, fair, upto);
	fair_upto[0] = upto[LONG / 3];
	fair_upto[1] = upto[LONG];
	for (uint32_t i = 0; i < sizeof(passes) / sizeof(passes[0]); i++) {
		struct dut_mem_share share = {.mode = {NPU_ARB_HITS, NPU_ARB_HITS},
					      .pass = {passes[i], passes[i]}};
		uint32_t got[S];

		crowd_begin(d);
		dut_mem_share(d, &share);
		crowd_run(d, &c, got, upto);
		if (passes[i])
			CHECK(got[1] >= 200 && got[0] > fair[0],
			      "PASS %u: row hits get %u beats, another %u; %u, %u if "
			      "fair",
			      passes[i], got[0], got[1], fair[0], fair[1]);
		else
			CHECK(!memcmp(got, fair, sizeof(got)) &&
				      upto[LONG / 3] == fair_upto[0] &&
				      upto[LONG] == fair_upto[1],
			      "PASS 0 is not fair: %u and %u beats, not %u and %u",
			      got[0], got[1], fair[0], fair[1]);
	}
}

/* Each slot is served in its turns, and no slot in another's. */
static void turns_served(struct dut_mem *d)
{
	static uint32_t upto[LONG + 1];
	struct dut_mem_share share = {.mode = {NPU_ARB_TURNS, NPU_ARB_TURNS},
				      .cycles = 128,
				      .last = 4,
				      .order = 0x12310};
	uint32_t got[S];

	crowd_begin(d);
	dut_mem_share(d, &share);
	crowd_run(d, &together, got, upto);
	/* of five turns slot 1 has two */
	for (uint32_t s = 0; s < S; s++)
		CHECK(got[s] >= LONG / 5 * (s == 1 ? 2 : 1) / 2 &&
			      got[s] <= LONG / 5 * (s == 1 ? 2 : 1),
		      "turns: slot %u has %u beats in %u cycles", s, got[s], LONG);
}

/* In n windows no more than n budgets and a burst, also after a rest; all of that if a
 * slot asks for more; and nothing of it on the other group's channels. */
static void limits(struct dut_mem *d)
{
	static uint32_t upto[LONG + 1], free_upto[LONG + 1];
	/* less than a fair share */
	static const struct dut_mem_bucket limit = {
		.window = 25, .budget = 5, .burst = 8};
	const uint32_t other = CHANNEL + 1, from = LONG / 4;
	struct dut_mem_share share = {.groups = 1u << other};

	for (uint32_t group = 0; group < 2; group++) {
		struct crowd c = together;
		uint32_t got[S], most = 0;

		c.channel[0] = group ? other : CHANNEL;
		c.from[0] = from;
		crowd_begin(d);
		dut_mem_share(d, &share);
		dut_mem_step(d);
		dut_mem_bucket(d, 0, group, &limit);
		crowd_run(d, &c, got, upto);
		for (uint32_t n = 1; n * limit.window < LONG; n++)
			for (uint32_t i = 0; i + n * limit.window <= LONG; i++) {
				uint32_t moved = upto[i + n * limit.window] - upto[i];
				uint32_t may = n * limit.budget + limit.burst;

				if (moved > may && moved - may > most)
					most = moved - may;
			}
		CHECK(!most, "group %u: %u beats above the limit", group, most);
		CHECK(upto[LONG] >= (LONG - from) / limit.window * limit.budget,
		      "group %u: %u beats are less than the limit", group, upto[LONG]);

		crowd_begin(d);
		dut_mem_share(d, &share);
		crowd_run(d, &c, got, free_upto);
		CHECK(upto[LONG] < free_upto[LONG], "group %u: a limit limits nothing",
		      group);
		crowd_begin(d);
		dut_mem_share(d, &share);
		dut_mem_step(d);
		dut_mem_bucket(d, 0, !group, &limit);
		crowd_run(d, &c, got, upto);
		CHECK(upto[LONG] == free_upto[LONG],
		      "group %u: %u beats beside a limit of the other group, else %u",
		      group, upto[LONG], free_upto[LONG]);
	}
}

static void ideal(struct dut_mem *d, uint32_t n, struct rng *r)
{
	dut_mem_reset(d, true, 0);
	random_bytes(r);
	for (int i = 0; i < 5000; i++) {
		struct source q = {.r = {rng_next(r)},
				   .mask = (1u << n) - 1,
				   .rate = 128,
				   .spread = 99};
		struct dut_mem_req reqs[S];
		uint8_t lines[S][64];
		uint32_t want = 0;

		for (uint32_t s = 0; s < S; s++) {
			source_next(&q, n);
			/* Slots do not meet. */
			q.req.pa = (q.req.pa & ~UINT32_C(0x1c0)) | s << 6;
			reqs[s] = q.req;
			memcpy(lines[s],
			       dut_mem_bytes() + q.req.pa % DUT_MEM_BYTES / 64 * 64, 64);
			want |= (uint32_t)reqs[s].v << s;
			dut_mem_request(d, s, &reqs[s]);
		}
		CHECK(dut_mem_accepted(d) == want, "ideal memory makes no one wait");
		dut_mem_step(d);
		for (uint32_t s = 0; s < S; s++) {
			const struct dut_mem_req *req = &reqs[s];
			struct dut_mem_rsp rsp;

			dut_mem_response(d, s, &rsp);
			CHECK(rsp.v == req->v, "ideal: slot %u", s);
			if (!rsp.v)
				continue;
			CHECK(rsp.tag == req->tag && rsp.at == req->pa % 64 &&
				      rsp.we == req->we,
			      "ideal: slot %u got another's answer", s);
			if (req->we)
				CHECK(!memcmp(dut_mem_bytes() + req->pa % DUT_MEM_BYTES,
					      req->data, req->len),
				      "ideal: slot %u: not written", s);
			else
				CHECK(!memcmp(rsp.data, lines[s], 64),
				      "ideal: slot %u: wrong data", s);
		}
	}
}

/* Without the model.  Returns how many neighbours were noticed on shared channels. */
static uint32_t properties(struct dut_mem *d, uint32_t n, uint32_t rounds, struct rng *r)
{
	static void (*const each[])(struct dut_mem *) = {
		late, limits, turns_served, shares, row_hits, priorities, fair};
	uint32_t seen = 0;

	for (uint32_t i = 0; i < rounds && !bench_failures; i++)
		seen += neighbours(d, n, r);
	for (uint32_t i = 0; i < sizeof(each) / sizeof(each[0]) && !bench_failures; i++)
		each[i](d);
	ideal(d, n, r);
	return seen;
}

int main(int argc, char **argv)
{
	const bool alone = argc > 1 && !strcmp(argv[1], "properties");
	char **arg = argv + alone;
	int args = argc - alone;
	uint32_t rounds = args > 1 ? (uint32_t)strtoul(arg[1], NULL, 0) : 60;
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
	CHECK(alone || m->crowded > 100,
	      "no request has waited for room on the way back");
	CHECK(alone || m->denied > 100, "no request has lost its channel");
	CHECK(seen > 0, "nobody notices neighbours on shared channels");
	free(m);
	return bench_end("bench_mem");
}

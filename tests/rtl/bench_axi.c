/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_axi.c - npu_axi between random requests and an AXI4 memory that makes each
 * channel wait at random, answers IDs in any order and mixes their beats.  The rules of
 * the bus are checked in each cycle (what is shown stays until it is taken, bursts,
 * WLAST, order of an ID), the bytes at both ends, and that a bus which never waits is
 * never idle.
 */
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "dut/dut.h"

#define S DUT_AXI_SLOTS
#define ROOM                                                                             \
	16 /* requests of a slot and direction in flight: what the NPU sets aside        \
	    */
#define LINES 256u
#define BYTES ((size_t)LINES * 64)
#define QUEUE 64 /* power of two, more than S * ROOM / 2 */

struct request {
	uint32_t slot, lline, at, len, beats;
	bool we;
	uint8_t line[64]; /* to write, the byte at `at` first */
};

struct burst {
	uint32_t id, addr, beats, done;
};

struct queue {
	struct burst entry[QUEUE];
	uint32_t rd, wr;
};

struct world {
	struct dut_axi *d;
	struct rng r;
	uint32_t lazy; /* of 256: how often a channel makes the other end wait */
	struct dut_axi_in in;
	struct dut_axi_out out, before; /* before: of the last cycle */
	bool before_ready[3];           /* AW, W, AR were taken then */
	/* port */
	struct request offer, asked[S][2][ROOM * 2];
	uint32_t asked_rd[S][2], asked_wr[S][2];
	bool fresh; /* the write taken in the last cycle has its data on now */
	struct request written;
	/* Reads are of memory's first half, each slot writes lines of its own behind. */
	uint8_t memory[BYTES], shadow[BYTES];
	/* bus */
	struct queue read[S], aw, b[S];
	uint32_t w_beats; /* of the oldest burst of aw, or before its address came */
	struct dut_axi_beat w[QUEUE * 4];
	uint32_t w_rd, w_wr;
	bool wrong;     /* an error response is on the bus: err must follow */
	uint32_t waits; /* cycles of the response to a write that is on the bus */
	uint64_t taken, answered, r_beats, w_total, mixed;
	uint32_t last_rid;
};

static bool chance(struct world *w, uint32_t of256)
{
	return rng_next(&w->r) % 256 < of256;
}

static struct burst *push(struct queue *q)
{
	return &q->entry[q->wr++ % QUEUE];
}

static bool some(const struct queue *q)
{
	return q->rd != q->wr;
}

static struct burst *front(struct queue *q)
{
	return &q->entry[q->rd % QUEUE];
}

/* ---- the NPU's end ------------------------------------------------------------------- */

static void new_offer(struct world *w, uint32_t writes, bool whole)
{
	struct request *q = &w->offer;

	q->slot = rng_next(&w->r) % S;
	q->we = chance(w, writes);
	q->len = whole ? 64 : rng_range(&w->r, 1, 64);
	q->at = rng_next(&w->r) % (65 - q->len);
	q->beats = (q->at % 16 + q->len + 15) / 16;
	q->lline = rng_next(&w->r) % (LINES / 2);
	if (q->we) {
		q->lline = LINES / 2 + q->lline / S * S + q->slot;
		for (int i = 0; i < 64; i++)
			q->line[i] = (uint8_t)rng_next(&w->r);
	}
}

static void show_request(struct world *w)
{
	const struct request *q = &w->offer;

	w->in.v = w->asked_wr[q->slot][q->we] - w->asked_rd[q->slot][q->we] < ROOM;
	w->in.we = q->we;
	w->in.slot = q->slot;
	w->in.lline = q->lline;
	w->in.beats = q->beats;
	w->in.len = q->len;
	w->in.at = q->at;
	for (int i = 0; i < 64; i++)
		w->in.line[i] = w->fresh ? w->written.line[i] : (uint8_t)rng_next(&w->r);
}

static void take_request(struct world *w)
{
	const struct request *q = &w->offer;

	w->fresh = w->in.v && w->out.ready && q->we;
	if (!w->in.v || !w->out.ready)
		return;
	w->taken++;
	w->asked[q->slot][q->we][w->asked_wr[q->slot][q->we]++ % (2 * ROOM)] = *q;
	if (q->we) {
		w->written = *q;
		memcpy(w->shadow + q->lline * 64 + q->at, q->line, q->len);
	}
}

static void take_answer(struct world *w)
{
	uint32_t s = w->out.rsp_slot, we = w->out.rsp_we;
	const struct request *q;

	if (!w->out.rsp_v)
		return;
	CHECK(s < S && w->asked_rd[s % S][we] != w->asked_wr[s % S][we],
	      "an answer for slot %u that asked for nothing", s);
	s %= S;
	q = &w->asked[s][we][w->asked_rd[s][we]++ % (2 * ROOM)];
	w->answered++;
	if (!we)
		CHECK(!memcmp(w->out.line + q->at, w->shadow + q->lline * 64 + q->at,
			      q->len),
		      "slot %u: wrong bytes", s);
}

/* ---- the memory's end ---------------------------------------------------------------- */

static void check_burst(const struct dut_axi_burst *b, const struct dut_axi_burst *before,
			bool taken, const char *name)
{
	if (before->v && !taken)
		CHECK(!memcmp(b, before, sizeof(*b)), "%s changes before it is taken",
		      name);
	if (!b->v)
		return;
	CHECK(b->size == 4 && b->burst == 1 && b->len < 4 && b->addr % 16 == 0,
	      "%s: size %u burst %u length %u at %#x", name, b->size, b->burst, b->len,
	      b->addr);
	CHECK(b->addr >> 12 == (b->addr + b->len * 16) >> 12, "%s crosses 4 KiB", name);
	CHECK(b->addr >> 6 == (b->addr + b->len * 16) >> 6, "%s crosses a line", name);
	CHECK(b->id < S && b->addr < BYTES, "%s: ID %u address %#x", name, b->id,
	      b->addr);
}

static void check_bus(struct world *w)
{
	check_burst(&w->out.aw, &w->before.aw, w->before_ready[0], "AW");
	check_burst(&w->out.ar, &w->before.ar, w->before_ready[2], "AR");
	if (w->before.w.v && !w->before_ready[1])
		CHECK(!memcmp(&w->out.w, &w->before.w, sizeof(w->out.w)),
		      "W changes before it is taken");
	w->waits = w->in.bvalid && !w->out.bready ? w->waits + 1 : 0;
	CHECK(w->waits < 2, "a write's response waits for %u cycles", w->waits);
	CHECK(w->out.rready || w->before.rready, "RREADY is low for two cycles");
	CHECK(w->out.err == w->wrong, "an error response: %d, not %d", w->out.err,
	      w->wrong);
	w->wrong = false;
}

static void take_bursts(struct world *w)
{
	if (w->out.ar.v && w->in.arready)
		*push(&w->read[w->out.ar.id % S]) = (struct burst){
			w->out.ar.id, w->out.ar.addr, w->out.ar.len + 1, 0};
	if (w->out.aw.v && w->in.awready)
		*push(&w->aw) = (struct burst){w->out.aw.id, w->out.aw.addr,
					       w->out.aw.len + 1, 0};
	if (w->out.w.v && w->in.wready) {
		w->w[w->w_wr++ % (QUEUE * 4)] = w->out.w;
		w->w_total++;
	}
	/* Data belong to the addresses in their order. */
	while (some(&w->aw) && w->w_rd != w->w_wr) {
		struct burst *b = front(&w->aw);
		const struct dut_axi_beat *beat = &w->w[w->w_rd++ % (QUEUE * 4)];
		uint8_t *to = w->memory + (b->addr + 16 * b->done) % BYTES;

		CHECK(beat->last == (b->done + 1 == b->beats), "WLAST at beat %u of %u",
		      b->done, b->beats);
		CHECK(beat->strb, "a beat without a byte");
		for (int i = 0; i < 16; i++)
			if (beat->strb >> i & 1)
				to[i] = beat->data[i];
		if (++b->done == b->beats) {
			*push(&w->b[b->id % S]) = *b;
			w->aw.rd++;
		}
	}
}

/* An ID that has something, from a random one on; S: none. */
static uint32_t any_id(struct world *w, struct queue *queues)
{
	uint32_t s = rng_next(&w->r);

	for (uint32_t i = 0; i < S; i++, s++)
		if (some(&queues[s % S]))
			return s % S;
	return S;
}

static void show_read(struct world *w)
{
	uint32_t s = any_id(w, w->read);
	struct burst *b;

	if (w->in.rvalid) {
		if (!w->out.rready)
			return; /* it stays */
		b = front(&w->read[w->in.rid]);
		w->r_beats++;
		if (++b->done == b->beats)
			w->read[w->in.rid].rd++;
		s = any_id(w, w->read);
	}
	w->in.rvalid = s < S && !chance(w, w->lazy);
	if (!w->in.rvalid)
		return;
	b = front(&w->read[s]);
	w->mixed += s != w->last_rid && some(&w->read[w->last_rid]) &&
		    front(&w->read[w->last_rid])->done;
	w->last_rid = s;
	w->in.rid = s;
	w->in.rlast = b->done + 1 == b->beats;
	w->in.rresp = chance(w, 4) ? 2 : 0;
	memcpy(w->in.rdata, w->memory + (b->addr + 16 * b->done) % BYTES, 16);
}

static void show_written(struct world *w)
{
	if (w->in.bvalid) {
		if (!w->out.bready)
			return; /* it stays */
		w->b[w->in.bid].rd++;
	}
	w->in.bid = any_id(w, w->b);
	w->in.bvalid = w->in.bid < S && !chance(w, w->lazy);
	w->in.bresp = chance(w, 4) ? 3 : 0;
}

/* What the bus shows in a cycle is nothing that comes from it in that cycle. */
static void no_way_through(struct world *w)
{
	struct dut_axi_in other = w->in;
	struct dut_axi_out a, b;

	other.rvalid = !other.rvalid;
	other.rlast = !other.rlast;
	other.bvalid = !other.bvalid;
	other.awready = !other.awready;
	other.wready = !other.wready;
	other.arready = !other.arready;
	dut_axi_show(w->d, &other, &a);
	dut_axi_show(w->d, &w->in, &b);
	CHECK(a.rready == b.rready && a.bready == b.bready && a.aw.v == b.aw.v &&
		      a.ar.v == b.ar.v && a.w.v == b.w.v,
	      "a ready or valid depends on one that comes in");
}

static void cycle(struct world *w, uint32_t writes, bool whole, bool more)
{
	if (!more)
		w->in.v = false;
	else if (!(w->in.v && !w->out.ready) || chance(w, 64))
		new_offer(w, writes, whole); /* another may take its place */
	if (more)
		show_request(w);
	else if (w->fresh)
		memcpy(w->in.line, w->written.line, 64);
	w->in.awready = !chance(w, w->lazy);
	w->in.wready = !chance(w, w->lazy);
	w->in.arready = !chance(w, w->lazy);
	no_way_through(w);
	dut_axi_show(w->d, &w->in, &w->out);
	check_bus(w);
	take_answer(w);
	take_request(w);
	w->before = w->out;
	w->before_ready[0] = w->in.awready;
	w->before_ready[1] = w->in.wready;
	w->before_ready[2] = w->in.arready;
	w->wrong = (w->in.rvalid && w->out.rready && w->in.rresp & 2) ||
		   (w->in.bvalid && w->out.bready && w->in.bresp & 2);
	dut_axi_step(w->d);
	show_read(w);
	show_written(w);
	take_bursts(w);
}

static void start(struct world *w, struct dut_axi *d, uint64_t seed)
{
	memset(w, 0, sizeof(*w));
	w->d = d;
	w->r.state = seed;
	for (uint32_t i = 0; i < BYTES; i++)
		w->memory[i] = w->shadow[i] = (uint8_t)rng_next(&w->r);
	dut_axi_reset(d, true);
	dut_axi_show(d, &w->in, &w->out);
	dut_axi_step(d);
	dut_axi_reset(d, false);
}

static uint64_t random_traffic(struct world *w, struct dut_axi *d, uint64_t seed)
{
	static const uint32_t lazies[] = {0, 20, 128, 240};
	uint32_t writes;

	start(w, d, seed);
	w->lazy = lazies[rng_next(&w->r) % 4];
	writes = rng_next(&w->r) % 257;
	for (int i = 0; i < 4000; i++)
		cycle(w, writes, false, true);
	for (int i = 0; i < 40000 && (w->taken != w->answered || w->fresh); i++)
		cycle(w, 0, false, false);
	CHECK(w->taken == w->answered && w->taken > 20, "%llu requests, %llu answers",
	      (unsigned long long)w->taken, (unsigned long long)w->answered);
	CHECK(!memcmp(w->memory, w->shadow, BYTES), "memory differs");
	return w->mixed;
}

/* Whole lines and a bus that never waits: a beat in each cycle. */
static void stream(struct world *w, struct dut_axi *d, bool writes)
{
	uint64_t beats;

	start(w, d, 7);
	for (int i = 0; i < 4000; i++)
		cycle(w, writes ? 256 : 0, true, true);
	beats = writes ? w->w_total : w->r_beats;
	CHECK(beats >= 3980, "%s: %llu beats in 4000 cycles", writes ? "writes" : "reads",
	      (unsigned long long)beats);
}

int main(int argc, char **argv)
{
	uint32_t rounds = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 0) : 100;
	struct dut_axi *d = dut_axi_create();
	struct world *w = malloc(sizeof(*w));
	uint64_t mixed = 0;

	if (!w)
		return 2;
	for (uint32_t i = 0; i < rounds; i++)
		mixed += random_traffic(w, d, i + 1);
	CHECK(mixed > rounds, "reads of several IDs were never mixed");
	stream(w, d, false);
	stream(w, d, true);
	free(w);
	dut_axi_destroy(d);
	return bench_end("bench_axi");
}

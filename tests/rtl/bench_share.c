/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_share.c - what a tenant keeps of memory channels it shares: one victim beside
 * one, two or all the other slots, each of which does its worst - streams of copies,
 * copies that miss the TLB at every row, copies that meet another row of one DRAM bank
 * each time, also of the very bank in which the victim has a row open - for as long as it
 * runs.  With S tenants the fair share is an S-fold time; printed is how far beyond that
 * the victim comes, at worst.  And with fixed turns (ARB TURNS) no neighbour may change a
 * cycle of it.
 *
 * Arguments: [figure] [shape (16x16x4x8) [first neighbours [last [every]]]]: every 5:
 * each fifth setting.
 */
#include <stdlib.h>
#include <string.h>

#include "rig.h"

#define SPACE (1u << 23)
#define LEAST 2000u /* cycles alone: shorter, and start and end count for too much */
#define LIMIT 4000000u

#define BANKS 8u
#define ROW   1024u /* bytes: 16 lines */

/* Bytes of a channel between two lines of the same bank in different rows: the number of
 * a bank is XORed with that of its row. */
#define SAME_BANK (ROW * BANKS * BANKS)

enum kind {
	STREAM,    /* a copy of long rows */
	FILL,      /* stores alone */
	TLB,       /* a page a row */
	CONFLICT,  /* another row of one bank for every line, read and written */
	BANK,      /* that bank is the one whose row the victim has open */
	ROW_STORE, /* stores to one row of a bank, over and over */
	ROW_LOAD,
	ROW_COPY, /* of two rows, in two banks */
	GEMM,     /* weights of few rows: bound by memory */
	CONV,     /* depthwise */
	SMALL,    /* operations of one line: one request after the other */
	KINDS,
};

#define HOSTILE_KINDS 6u /* the first; and one of mixed ones */

static const char *const names[KINDS + 1] = {
	"stream",   "fill",     "tlb",  "conflict", "bank",  "row store",
	"row load", "row copy", "gemm", "conv",     "small", "mixed"};

static void copy_desc(uint32_t desc[16], uint32_t from, uint32_t to, uint32_t rows,
		      uint32_t bytes, uint32_t pitch)
{
	memset(desc, 0, 64);
	NPU_SET(desc, OPCODE, NPU_OP_VEC);
	NPU_SET(desc, VOP, NPU_VOP_COPY);
	NPU_SET(desc, DM, rows);
	NPU_SET(desc, VCOLS, bytes);
	NPU_SET(desc, ADDR_A, from);
	NPU_SET(desc, LDA, pitch);
	NPU_SET(desc, ADDR_D, to);
	NPU_SET(desc, LDD, pitch);
}

/* The first address from va on where a row of this bank of channel 0 begins. */
static uint32_t at_bank(const struct rig *r, uint32_t s, uint32_t va, uint32_t bank)
{
	for (va &= ~(ROW - 1);; va += 64) {
		uint32_t page = 1u << r->cfg.gran, frame = r->space[s].frame[va / page];
		uint32_t at = (frame >> r->cfg.k) * page + va % page, row = at / ROW;

		if (rig_channel(r, frame * page) == 0 && at % ROW == 0 &&
		    ((row ^ row / BANKS) & (BANKS - 1)) == bank)
			return va;
	}
}

static void pool_desc(uint32_t desc[16], uint32_t from, uint32_t to)
{
	memset(desc, 0, 64);
	NPU_SET(desc, OPCODE, NPU_OP_VEC);
	NPU_SET(desc, VOP, NPU_VOP_MAXPOOL);
	NPU_SET(desc, ADDR_A, from);
	NPU_SET(desc, H, 16);
	NPU_SET(desc, W, 16);
	NPU_SET(desc, CIN, 64);
	NPU_SET(desc, PIX, 64);
	NPU_SET(desc, DM, 1);
	NPU_SET(desc, OW, 1);
	NPU_SET(desc, DN, 64);
	NPU_SET(desc, KH, 16);
	NPU_SET(desc, KW, 16);
	NPU_SET(desc, SY, 1);
	NPU_SET(desc, SX, 1);
	NPU_SET(desc, DY, 1);
	NPU_SET(desc, DX, 1);
	NPU_SET(desc, ADDR_D, to);
	NPU_SET(desc, LDD, 64);
}

/* One operation of this kind in slot s's ring; i tells it from those before. */
static void push_one(struct rig *r, uint32_t s, enum kind kind, uint32_t i, struct rng *g)
{
	const uint32_t half = SPACE / 2, same = SAME_BANK << r->cfg.k;
	uint32_t page = 1u << r->cfg.gran, desc[16];

	switch (kind) {
	case STREAM:
		copy_desc(desc, SPACE / 8, half, 16, 2048, 2048);
		break;
	case FILL:
		copy_desc(desc, 0, half, 16, 2048, 2048);
		NPU_SET(desc, VOP, NPU_VOP_FILL);
		NPU_SET(desc, VPATTERN, rng_next(g));
		break;
	case TLB: /* more pages than the TLB has entries, one after the other */
		copy_desc(desc, SPACE / 8 + i % 16 * 64 * page, half + i % 16 * 64 * page,
			  64, 64, page);
		break;
	case CONFLICT:
		copy_desc(desc, SPACE / 8 + i % 16 * 64, half + i % 16 * 64,
			  SPACE / 4 / SAME_BANK, 64, SAME_BANK);
		break;
	case BANK:
		copy_desc(desc, at_bank(r, s, SPACE / 8, 1) + i % 16 * 64,
			  at_bank(r, s, half, 1) + i % 16 * 64, SPACE / 4 / same, 64,
			  same);
		break;
	case ROW_STORE:
		copy_desc(desc, 0, at_bank(r, s, half, 1), 16, ROW, 0);
		NPU_SET(desc, VOP, NPU_VOP_FILL);
		break;
	case ROW_LOAD:
		pool_desc(desc, at_bank(r, s, SPACE / 8, 1), half);
		break;
	case ROW_COPY:
		copy_desc(desc, at_bank(r, s, SPACE / 8, 1), at_bank(r, s, half, 2), 16,
			  ROW, 0);
		break;
	case GEMM:
		rig_gemm_desc(r, s, 16, 32, 256, desc, g);
		break;
	case CONV: {
		struct rig_conv c = {.h = 12,
				     .w = 12,
				     .cin = 32,
				     .oh = 12,
				     .ow = 12,
				     .n = 32,
				     .kh = 3,
				     .kw = 3,
				     .sy = 1,
				     .sx = 1,
				     .dy = 1,
				     .dx = 1,
				     .pt = 1,
				     .pl = 1,
				     .gc = 1,
				     .depthwise = true,
				     .block = true};

		rig_conv_desc(r, s, &c, false, desc, g);
		break;
	}
	default:
		copy_desc(desc, SPACE / 8 + i * 64, half + i * 64, 1, 64, 64);
		break;
	}
	rig_push(r, s, desc);
}

static const uint32_t victim_ops[KINDS] = {
	[STREAM] = 2, [FILL] = 2,      [TLB] = 8,       [CONFLICT] = 8,
	[BANK] = 8,   [ROW_LOAD] = 10, [ROW_STORE] = 4, [ROW_COPY] = 4,
	[GEMM] = 2,   [CONV] = 2,      [SMALL] = 60};

struct setting {
	uint32_t channels, neighbours; /* that are there */
	enum kind victim;
	uint32_t hostile; /* KINDS: one of each */
	bool turns;
};

/* The victim's cycles beside so many neighbours that run. */
static uint64_t measure(struct rig *r, const struct setting *set, uint32_t busy)
{
	struct rig_memory cfg = rig_channels(set->channels);
	struct rig_rect rects[RIG_SLOTS];
	uint32_t half_r = r->api->rows / 2, half_c = r->api->cols / 2;

	if (set->victim == TLB || set->hostile == TLB || set->hostile == KINDS)
		cfg.gran = 8;
	rig_reset(r, &cfg);
	for (uint32_t g = 0; set->turns && g < NPU_GLB_ARB_N; g++) {
		rig_write(r, NPU_GLB_AT(ARB, g), NPU_REG_BITS(ARB_MODE, NPU_ARB_TURNS));
		CHECK(rig_reg(r, NPU_GLB_MODE_STATUS_ADDR) == NPU_MODE_OK, "ARB");
	}
	for (uint32_t s = 0; s <= set->neighbours; s++)
		rects[s] = (struct rig_rect){s % 4 / 2 * half_r, s % 2 * half_c, half_r,
					     half_c};
	CHECK(rig_map(r, rects, set->neighbours + 1) == NPU_MAP_OK, "map");
	for (uint32_t s = set->neighbours; s > 0; s--) {
		enum kind kind = set->hostile < KINDS ? (enum kind)set->hostile
						      : (s + 1) % HOSTILE_KINDS;
		struct rng g = {100 + s};

		rig_space(r, s, SPACE, RIG_ALL);
		for (uint32_t i = 0; i < RIG_DEPTH; i++)
			push_one(r, s, kind, i, &g);
		/* The same accesses in each case: turns go by the clock. */
		rig_write(r, NPU_SLOT_ADDR(s, TAIL), s <= busy ? r->space[s].tail : 0);
	}
	rig_space(r, 0, SPACE, RIG_ALL);
	rig_push_stamp(r, 0);
	for (uint32_t i = 0; i < victim_ops[set->victim]; i++) {
		struct rng g = {100 + i};

		push_one(r, 0, set->victim, i, &g);
	}
	rig_push_stamp(r, 0);
	rig_push_end(r, 0);
	rig_run(r, 3000);
	rig_bell(r, 0);
	rig_wait(r, 1, LIMIT);
	for (uint32_t s = 1; s <= busy; s++)
		CHECK(rig_reg(r, NPU_SLOT_ADDR(s, HEAD)) < RIG_DEPTH,
		      "neighbour %u has nothing left to do", s);
	CHECK(r->faulted == 0, "faults %#x", r->faulted);
	rig_check(r, 0, names[set->victim]);
	return rig_stamp(r, 0, 1) - rig_stamp(r, 0, 0);
}

struct outcome {
	double worst;                     /* beyond the fair share */
	uint32_t fair, turns;             /* cases whose cycles the neighbours change */
	uint32_t cases;                   /* of each */
	uint64_t alone_fair, alone_turns; /* cycles of all cases */
};

static void one(struct rig *r, struct setting *set, uint32_t first, uint32_t last,
		struct outcome *o)
{
	uint64_t alone, with;

	set->neighbours = last;
	alone = with = measure(r, set, 0);

	CHECK(alone >= LEAST, "%s: %llu cycles alone", names[set->victim],
	      (unsigned long long)alone);
	for (uint32_t busy = first; busy <= last; busy++) {
		double slow, over;

		with = measure(r, set, busy);
		slow = (double)with / (double)alone;
		over = slow / (busy + 1);
		printf("%u channel%s %-9s beside %u %-9s %7llu alone %8llu together "
		       "%6.2f of alone %5.2f of its share\n",
		       set->channels, set->channels > 1 ? "s" : " ", names[set->victim],
		       busy, names[set->hostile], (unsigned long long)alone,
		       (unsigned long long)with, slow, over);
		o->worst = over > o->worst ? over : o->worst;
	}
	o->fair += with != alone;
	o->alone_fair += alone;
	set->turns = true;
	alone = measure(r, set, 0);
	with = measure(r, set, last);
	set->turns = false;
	CHECK(with == alone, "turns: %s beside %s: %llu cycles, alone %llu",
	      names[set->victim], names[set->hostile], (unsigned long long)with,
	      (unsigned long long)alone);
	o->turns += with != alone;
	o->alone_turns += alone;
	o->cases++;
	fflush(stdout);
}

int main(int argc, char **argv)
{
	bool figure = argc > 1 && !strcmp(argv[1], "figure");
	const char *shape = argc > 1 + figure ? argv[1 + figure] : "16x16x4x8";
	uint32_t first =
		argc > 2 + figure ? (uint32_t)strtoul(argv[2 + figure], NULL, 0) : 1;
	uint32_t last =
		argc > 3 + figure ? (uint32_t)strtoul(argv[3 + figure], NULL, 0) : 3;
	uint32_t every =
		argc > 4 + figure ? (uint32_t)strtoul(argv[4 + figure], NULL, 0) : 1;
	struct outcome o = {0};
	uint32_t n = 0;
	struct rig r;

	if (!every)
		every = 1;
	rig_open(&r, shape, UINT64_C(1) << 26);
	if (last >= r.api->slots)
		last = r.api->slots - 1;
	if (first > last)
		first = last;
	for (uint32_t channels = 1; channels <= 4; channels *= 4)
		for (enum kind v = 0; v < KINDS; v++)
			for (uint32_t h = 0; h <= HOSTILE_KINDS; h++) {
				struct setting set = {channels, last, v,
						      h < HOSTILE_KINDS ? h : KINDS,
						      false};

				if (n++ % every == 0)
					one(&r, &set, first, last, &o);
			}
	rig_close(&r);
	CHECK(o.worst <= 1.15, "%.3f of the fair share", o.worst);
	CHECK(o.fair > 0, "neighbours change nothing: turns prove nothing");
	printf("worst: %.3f of the fair share; neighbours change the cycles of %u of %u "
	       "victims, with turns of %u; alone with turns %.2f as long\n",
	       o.worst, o.fair, o.cases, o.turns,
	       (double)o.alone_turns / (double)o.alone_fair);
	if (figure)
		printf("figure npu.corun.fair_share_max %.3f\n"
		       "figure npu.timeslot.neighbour_cycle_changes %u\n"
		       "figure npu.timeslot.shared_differ %u\n"
		       "figure npu.timeslot.alone_slowdown %.2f\n",
		       o.worst, o.turns, o.fair,
		       (double)o.alone_turns / (double)o.alone_fair);
	return bench_end("bench_share");
}

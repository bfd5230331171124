/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_fault.c - every kind of fault: the slot stops with kind, address and descriptor,
 * has changed nothing but what it completed before, works again after RING_BASE is
 * written, and a neighbour on channels of its own takes the same cycles as without it.
 * Argument: shape (16x16x4x8).
 */
#include <stdlib.h>
#include <string.h>

#include "rig.h"

#define SPACE    (1u << 20)
#define COUNT(x) (sizeof(x) / sizeof((x)[0]))

enum { BAD, NEIGHBOUR };

struct fault {
	const char *name;
	uint32_t kind;
	uint32_t word, lsb, width, value; /* field of a good CONV that is made bad */
	uint32_t address;                 /* FAULT_ADDR; ~0: of the page, see below */
};

/* Words and bits as in the table of descriptors. */
#define FIELD(f)  NPU_DESC_##f##_WORD, NPU_DESC_##f##_LSB, NPU_DESC_##f##_W
#define BAD_OP(v) "opcode " #v, NPU_FAULT_OPCODE, FIELD(OPCODE), v, 0
#define ZERO(f)   #f " zero", NPU_FAULT_FIELD, FIELD(f), 0, NPU_DESC_##f##_WORD

static const struct fault conv_faults[] = {
	{BAD_OP(7)},
	{BAD_OP(99)},
	{BAD_OP(255)},
	{ZERO(DM)},
	{ZERO(OW)},
	{ZERO(PANEL)},
	{ZERO(DN)},
	{ZERO(CIN)},
	{ZERO(KH)},
	{ZERO(KW)},
	{ZERO(SY)},
	{ZERO(SX)},
	{ZERO(DY)},
	{ZERO(DX)},
	{"A out of bounds", NPU_FAULT_BOUNDS, FIELD(ADDR_A), SPACE, SPACE},
	{"B out of bounds", NPU_FAULT_BOUNDS, FIELD(ADDR_B), SPACE + 0x12340,
	 SPACE + 0x12340},
	{"table out of bounds", NPU_FAULT_BOUNDS, FIELD(ADDR_P), 0xfffffff0, 0xfffffff0},
	{"D out of bounds", NPU_FAULT_BOUNDS, FIELD(ADDR_D), SPACE, SPACE},
};

static const struct fault vec_faults[] = {
	{"VOP 9", NPU_FAULT_OPCODE, FIELD(VOP), NPU_VOP_SOFTMAX + 1, 0},
	{ZERO(DM)},
	{ZERO(VCOLS)},
	{"copy out of bounds", NPU_FAULT_BOUNDS, FIELD(ADDR_A), SPACE, SPACE},
	{"copy to out of bounds", NPU_FAULT_BOUNDS, FIELD(ADDR_D), 0x80000000,
	 0x80000000},
};

static const struct fault group_faults[] = {
	{"grouped GEMM", NPU_FAULT_FIELD, FIELD(OPCODE), NPU_OP_GEMM, 0},
	{"grouped without blocks", NPU_FAULT_FIELD, FIELD(F_BLOCK), 0, 0},
	{"grouped without a table", NPU_FAULT_FIELD, FIELD(F_NOPARAM), 1, 0},
	{ZERO(GC)},
};

static const struct fault pool_faults[] = {
	{ZERO(CIN)},
	{ZERO(KH)},
	{ZERO(SX)},
	{"window above the image", NPU_FAULT_FIELD, FIELD(PT), 9, NPU_DESC_PT_WORD},
	{"window beside the image", NPU_FAULT_FIELD, FIELD(PL), 2, NPU_DESC_PT_WORD},
};

enum spoil { UNMAPPED, READ_ONLY, CHANNEL, NO_UNITS, WAIT_BOUNDS, RING_UNMAPPED, SPOILS };

static struct rig_rect map[2]; /* upper half on the left, lower half on the right */
static uint64_t alone[4];

static void prepare(struct rig *r)
{
	struct rig_memory cfg = rig_channels(8);
	struct rng g = {77};

	rig_reset(r, &cfg);
	CHECK(rig_map(r, map, 2) == NPU_MAP_OK, "map");
	rig_space(r, BAD, SPACE, 0x0f);
	rig_space(r, NEIGHBOUR, SPACE, 0xf0);
	for (uint32_t j = 0; j < 4; j++) {
		uint32_t desc[16];

		rig_push_stamp(r, NEIGHBOUR);
		rig_random_conv(r, NEIGHBOUR, desc, &g);
		rig_push(r, NEIGHBOUR, desc);
	}
	rig_push_stamp(r, NEIGHBOUR);
	rig_push_end(r, NEIGHBOUR);
}

/* What a table's faults are made in. */
enum base { CONV, GROUPED, COPY, POOL };

static void good_conv(struct rig *r, uint32_t desc[16], bool grouped, struct rng *g)
{
	struct rig_conv c = {.h = 9,
			     .w = 9,
			     .cin = 5,
			     .oh = 9,
			     .ow = 9,
			     .n = 13,
			     .kh = 3,
			     .kw = 3,
			     .sy = 1,
			     .sx = 1,
			     .dy = 1,
			     .dx = 1,
			     .pt = 1,
			     .pl = 1,
			     .gc = grouped ? 2 : 0,
			     .block = grouped};

	rig_conv_desc(r, BAD, &c, false, desc, g);
}

/* One to three good descriptors, which may still run when the bad one begins; the bad
 * one; two that must not show; then the slot starts anew. */
static void one(struct rig *r, const char *name, uint32_t desc[16], uint32_t kind,
		uint32_t address, struct rng *g)
{
	uint32_t good[16], goods = rng_range(g, 1, 3), d, bytes = 9 * 9 * 13;
	struct rig_space *sp = &r->space[BAD];
	uint8_t behind[9 * 9 * 13];

	for (uint32_t i = 0; i < goods; i++) {
		if (kind == NPU_FAULT_NO_UNITS)
			rig_random_vec(r, BAD, good, g);
		else
			good_conv(r, good, false, g);
		rig_push(r, BAD, good);
	}
	rig_golden(r, BAD);
	rig_push(r, BAD, desc);
	good_conv(r, good, false, g);
	d = (uint32_t)NPU_GET(good, ADDR_D);
	rig_push(r, BAD, good);
	rig_push_end(r, BAD);
	rig_bell(r, NEIGHBOUR);
	rig_bell(r, BAD);
	rig_wait(r, 1u << NEIGHBOUR | 1u << BAD, 4000000);
	rig_peek(r, BAD, d, behind, bytes);
	CHECK(!memcmp(behind, sp->shadow + d, bytes), "%s: the next one stored", name);
	CHECK(r->faulted == 1u << BAD && !(r->ended & 1u << BAD), "%s: slots %#x fault",
	      name, r->faulted);
	CHECK(NPU_REG_GET(rig_reg(r, NPU_SLOT_ADDR(BAD, STATUS)), STATUS_STATE) ==
		      NPU_STATE_FAULT,
	      "%s: state", name);
	CHECK(rig_reg(r, NPU_SLOT_ADDR(BAD, FAULT_KIND)) == kind, "%s: kind %u", name,
	      rig_reg(r, NPU_SLOT_ADDR(BAD, FAULT_KIND)));
	CHECK(rig_reg(r, NPU_SLOT_ADDR(BAD, FAULT_ADDR)) == address,
	      "%s: address %#x, not %#x", name,
	      rig_reg(r, NPU_SLOT_ADDR(BAD, FAULT_ADDR)), address);
	CHECK(rig_reg(r, NPU_SLOT_ADDR(BAD, FAULT_DESC)) == goods,
	      "%s: descriptor %u, not %u", name,
	      rig_reg(r, NPU_SLOT_ADDR(BAD, FAULT_DESC)), goods);
	CHECK(rig_reg(r, NPU_SLOT_ADDR(BAD, HEAD)) == goods, "%s: head %u, not %u", name,
	      rig_reg(r, NPU_SLOT_ADDR(BAD, HEAD)), goods);
	for (uint32_t j = 0; j < 4; j++)
		CHECK(rig_stamp(r, NEIGHBOUR, j + 1) - rig_stamp(r, NEIGHBOUR, j) ==
			      alone[j],
		      "%s: the neighbour's job %u noticed", name, j);
	rig_check(r, NEIGHBOUR, name);
	/* The faulting descriptor may have stored tiles; all else is as it was. */
	sp->done = sp->tail;
}

static void again(struct rig *r, const char *name, struct rng *g)
{
	uint32_t good[16];

	CHECK(rig_map(r, map, 2) == NPU_MAP_OK, "%s: not quiet after a fault", name);
	rig_write(r, NPU_GLB_AT(SLOT_CTRL, BAD), NPU_REG_BITS(SLOT_CTRL_TLB_FLUSH, 1));
	rig_restart(r, BAD);
	good_conv(r, good, false, g);
	rig_push(r, BAD, good);
	rig_push_end(r, BAD);
	rig_bell(r, BAD);
	rig_wait(r, 1u << BAD, 4000000);
	CHECK(!r->faulted, "%s: faults again", name);
	rig_counters(r, BAD, false);
}

static void good_vec(struct rig *r, uint32_t desc[16], bool pool)
{
	uint32_t a = rig_alloc(r, BAD, 120, 1), d = rig_alloc(r, BAD, 120, 1);

	memset(desc, 0, 64);
	NPU_SET(desc, OPCODE, NPU_OP_VEC);
	NPU_SET(desc, ADDR_A, a);
	NPU_SET(desc, ADDR_D, d);
	NPU_SET(desc, DM, 3);
	NPU_SET(desc, LDA, 40);
	if (!pool) {
		NPU_SET(desc, VCOLS, 40);
		NPU_SET(desc, LDD, 40);
		return;
	}
	/* an average of 2 x 2 pixels of 3 x 4 with 10 channels, one row of outputs */
	NPU_SET(desc, VOP, NPU_VOP_AVGPOOL);
	NPU_SET(desc, OW, 3);
	NPU_SET(desc, CIN, 10);
	NPU_SET(desc, H, 3);
	NPU_SET(desc, W, 4);
	NPU_SET(desc, PIX, 10);
	NPU_SET(desc, LDD, 10);
	NPU_SET(desc, KH, 2);
	NPU_SET(desc, KW, 2);
	NPU_SET(desc, SY, 1);
	NPU_SET(desc, SX, 1);
	NPU_SET(desc, DY, 1);
	NPU_SET(desc, DX, 1);
	NPU_SET(desc, AMIN, 128);
	NPU_SET(desc, AMAX, 127);
}

static void from_table(struct rig *r, const struct fault *faults, size_t count,
		       enum base base, struct rng *g)
{
	for (size_t i = 0; i < count; i++) {
		const struct fault *f = &faults[i];
		uint32_t desc[16];

		prepare(r);
		if (base == CONV || base == GROUPED)
			good_conv(r, desc, base == GROUPED, g);
		else
			good_vec(r, desc, base == POOL);
		npu_desc_set(desc, f->word, f->lsb, f->width, f->value);
		one(r, f->name, desc, f->kind, f->address, g);
		again(r, f->name, g);
	}
}

static void spoil(struct rig *r, enum spoil what, struct rng *g)
{
	uint32_t desc[16];
	uint32_t a, d;

	prepare(r);
	good_conv(r, desc, false, g);
	a = rig_alloc(r, BAD, 4096, 4096);
	d = rig_alloc(r, BAD, 4096, 4096);
	NPU_SET(desc, ADDR_A, a);
	NPU_SET(desc, ADDR_D, d);
	switch (what) {
	case UNMAPPED:
		rig_set_pte(r, BAD, a, rig_pte(r, BAD, a) & ~(uint32_t)NPU_PTE_VALID);
		one(r, "unmapped", desc, NPU_FAULT_UNMAPPED, a, g);
		break;
	case READ_ONLY:
		rig_set_pte(r, BAD, d, rig_pte(r, BAD, d) & ~(uint32_t)NPU_PTE_WRITE);
		one(r, "write to a page to read", desc, NPU_FAULT_WRITE, d, g);
		break;
	case CHANNEL: /* a page of the neighbour */
		rig_set_pte(r, BAD, a, rig_pte(r, NEIGHBOUR, 0x10000));
		one(r, "channel", desc, NPU_FAULT_CHANNEL, a, g);
		break;
	case NO_UNITS: {
		struct rig_rect none[2] = {{0}, map[1]};

		CHECK(rig_map(r, none, 2) == NPU_MAP_OK, "map");
		one(r, "no rectangle", desc, NPU_FAULT_NO_UNITS, 0, g);
		break;
	}
	case WAIT_BOUNDS:
		memset(desc, 0, sizeof(desc));
		NPU_SET(desc, OPCODE, NPU_OP_WAIT);
		NPU_SET(desc, ADDR_A, SPACE + 8);
		one(r, "wait out of bounds", desc, NPU_FAULT_BOUNDS, SPACE + 8, g);
		break;
	default:
		NPU_SET(desc, ADDR_A, 0xfffff000);
		one(r, "the last page there is", desc, NPU_FAULT_BOUNDS, 0xfffff000, g);
		break;
	}
	again(r, "after a spoilt page", g);
}

/* A fault of what is ahead - an operation, or its descriptor - is none yet when the slot
 * is drained: whoever mends the page meanwhile never hears of it. */
static void mended(struct rig *r, bool ring, struct rng *g)
{
	uint32_t drained = 0, per;

	for (uint32_t i = 0; i < 60; i++) {
		uint32_t desc[16] = {0}, page, pte, first = 0;

		prepare(r);
		per = (1u << r->cfg.gran) / 64;
		NPU_SET(desc, OPCODE, NPU_OP_NOP);
		for (; ring && first < per - 1; first++)
			rig_push(r, BAD, desc);
		good_conv(r, desc, false, g);
		rig_push(r, BAD, desc);
		rig_alloc(r, BAD, 1, 4096);
		good_conv(r, desc, false, g);
		page = ring ? r->space[BAD].ring + per * 64
			    : (uint32_t)NPU_GET(desc, ADDR_A);
		rig_push(r, BAD, desc);
		rig_push_end(r, BAD);
		pte = rig_pte(r, BAD, page);
		rig_set_pte(r, BAD, page, pte & ~(uint32_t)NPU_PTE_VALID);
		rig_bell(r, BAD);
		for (uint32_t j = 0;
		     j < 100000 && rig_reg(r, NPU_SLOT_ADDR(BAD, HEAD)) < first; j++)
			rig_run(r, 1);
		rig_run(r, 8 * i);
		rig_write(r, NPU_SLOT_ADDR(BAD, PREEMPT), NPU_PREEMPT_DRAIN);
		for (uint32_t j = 0;
		     j < 100000 && !((r->quieted | r->faulted) >> BAD & 1); j++)
			rig_run(r, 1);
		if (r->faulted >> BAD & 1) {
			r->space[BAD].done = r->space[BAD].tail;
			again(r, "after a fault beside a drain", g);
			continue;
		}
		drained += rig_reg(r, NPU_SLOT_ADDR(BAD, HEAD)) == first + 1;
		rig_set_pte(r, BAD, page, pte);
		rig_write(r, NPU_GLB_AT(SLOT_CTRL, BAD),
			  NPU_REG_BITS(SLOT_CTRL_TLB_FLUSH, 1));
		rig_write(r, NPU_SLOT_ADDR(BAD, RESUME), 1);
		rig_wait(r, 1u << BAD, 4000000);
		CHECK(!r->faulted, "moment %u: a fault of a page that was mended", i);
		rig_check(r, BAD, "drained before a fault");
	}
	CHECK(drained > 10, "%u drained behind the first operation", drained);
}

/* ---- a mask that narrows ------------------------------------------------------------- */

/* Copies over all channels of the slot, and the neighbour; the cycles until moment i. */
static uint32_t begin_copies(struct rig *r, uint32_t i)
{
	struct rng g = {4211 + i};

	prepare(r);
	for (int j = 0; j < 3; j++) {
		uint32_t desc[16];
		uint32_t a = rig_alloc(r, BAD, 60000, 64),
			 d = rig_alloc(r, BAD, 60000, 64);

		rig_random(r, BAD, a, 60000, &g);
		memset(desc, 0, 64);
		NPU_SET(desc, OPCODE, NPU_OP_VEC);
		NPU_SET(desc, ADDR_A, a);
		NPU_SET(desc, ADDR_D, d);
		NPU_SET(desc, DM, 1);
		NPU_SET(desc, VCOLS, 60000);
		rig_push(r, BAD, desc);
	}
	rig_push_end(r, BAD);
	rig_bell(r, NEIGHBOUR);
	rig_bell(r, BAD);
	return rng_range(&g, 100, 6000);
}

/* Beats of the slot so far, by channel. */
static void beats(struct rig *r, uint32_t count[8])
{
	rig_write(r, NPU_GLB_PERF_SNAPSHOT_ADDR, 1);
	for (uint32_t c = 0; c < 8; c++)
		count[c] = rig_reg(r, NPU_CHAN_ADDR(c, CH_SLOT_BEATS) + 4 * BAD);
}

/* Channels that page tables lie on: the slot's translations go on reading them. */
static uint32_t table_channels(const struct rig *r)
{
	uint32_t root = r->space[BAD].table, leaf;

	memcpy(&leaf, r->memory + root, 4);
	return 1u << rig_channel(r, root) | 1u << rig_channel(r, leaf);
}

/* From the write of a narrower CH_MASK on, not one more beat of the slot on a channel
 * that it no longer has: the same machine without the write is asked at the same moment.
 * Both writes act in the same cycle: the copy of the counters has what was taken until
 * then. */
static void narrowed(struct rig *r, uint32_t moments)
{
	uint32_t stopped = 0, named = 0;
	uint64_t otherwise = 0;

	for (uint32_t i = 0; i < moments; i++) {
		uint32_t at[8], end[8], wild[8], keep, address, page;
		struct rng g = {97 + i};

		rig_run(r, begin_copies(r, i));
		beats(r, at);
		rig_wait(r, 1u << BAD, 4000000);
		beats(r, wild);

		rig_run(r, begin_copies(r, i));
		keep = (rng_next(&g) & 15) | table_channels(r);
		rig_write(r, NPU_GLB_AT(CH_MASK, BAD), keep);
		rig_wait(r, 1u << NEIGHBOUR | 1u << BAD, 4000000);
		rig_run(r, 1000);
		beats(r, end);
		for (uint32_t c = 0; c < 4; c++) {
			if (keep >> c & 1)
				continue;
			CHECK(end[c] == at[c],
			      "moment %u: %u beats on channel %u after it was taken away",
			      i, end[c] - at[c], c);
			otherwise += wild[c] - at[c];
		}
		for (uint32_t j = 0; j < 4; j++)
			CHECK(rig_stamp(r, NEIGHBOUR, j + 1) -
					      rig_stamp(r, NEIGHBOUR, j) ==
				      alone[j],
			      "moment %u: the neighbour's job %u noticed", i, j);
		rig_check(r, NEIGHBOUR, "beside a mask that narrows");
		if (!(r->faulted >> BAD & 1)) {
			rig_check(r, BAD, "a mask that narrows");
			continue;
		}
		stopped++;
		address = rig_reg(r, NPU_SLOT_ADDR(BAD, FAULT_ADDR));
		CHECK(rig_reg(r, NPU_SLOT_ADDR(BAD, FAULT_KIND)) == NPU_FAULT_CHANNEL,
		      "moment %u: kind", i);
		if (address != UINT32_MAX) {
			page = r->space[BAD].frame[address >> r->cfg.gran];
			CHECK(!(keep >> rig_channel(r, page << r->cfg.gran) & 1),
			      "moment %u: %#x may be touched", i, address);
			named++;
		}
		r->space[BAD].done = r->space[BAD].tail;
		rig_write(r, NPU_GLB_AT(CH_MASK, BAD), 15);
		again(r, "after a mask that narrows", &g);
	}
	CHECK(stopped > moments / 2 && named && otherwise > 1000,
	      "%u of %u stopped, %u with an address; %llu beats otherwise", stopped,
	      moments, named, (unsigned long long)otherwise);
	printf("%u masks narrowed, %u slots stopped, 0 of %llu beats made\n", moments,
	       stopped, (unsigned long long)otherwise);
}

static void push_vec(struct rig *r, uint32_t vop, uint32_t a, uint32_t d, uint32_t bytes,
		     uint32_t pattern)
{
	uint32_t desc[16] = {0};

	NPU_SET(desc, OPCODE, NPU_OP_VEC);
	NPU_SET(desc, VOP, vop);
	NPU_SET(desc, VPATTERN, pattern);
	NPU_SET(desc, ADDR_A, a);
	NPU_SET(desc, ADDR_D, d);
	NPU_SET(desc, DM, 1);
	NPU_SET(desc, VCOLS, bytes);
	rig_push(r, BAD, desc);
}

/* A copy of bytes from a to d. */
static void push_copy(struct rig *r, uint32_t a, uint32_t d, uint32_t bytes)
{
	push_vec(r, NPU_VOP_COPY, a, d, bytes, 0);
}

static void push_fill(struct rig *r, uint32_t d, uint32_t bytes, uint32_t pattern)
{
	push_vec(r, NPU_VOP_FILL, 0, d, bytes, pattern);
}

/* Two pages change places, in the table and in what is to be seen. */
static void swap_pages(struct rig *r, uint32_t a, uint32_t b)
{
	struct rig_space *sp = &r->space[BAD];
	uint32_t page = 1u << r->cfg.gran, pa = a >> r->cfg.gran, pb = b >> r->cfg.gran;
	uint32_t pte = rig_pte(r, BAD, a), frame = sp->frame[pa];

	rig_set_pte(r, BAD, a, rig_pte(r, BAD, b));
	rig_set_pte(r, BAD, b, pte);
	sp->frame[pa] = sp->frame[pb];
	sp->frame[pb] = frame;
	for (uint32_t i = 0; i < page; i++) {
		uint8_t byte = sp->shadow[a + i];

		sp->shadow[a + i] = sp->shadow[b + i];
		sp->shadow[b + i] = byte;
	}
}

/* From a flush on, nothing is translated by what a table said before it, whatever a walk
 * was about to read or to fill in: pages that an operation will read and write change
 * places in each cycle of the walks of an earlier one. */
static void flushed(struct rig *r)
{
	for (uint32_t cycle = 50; cycle < 250; cycle++) {
		uint32_t page, a, d;
		struct rng g = {cycle};

		rig_reset(r, &r->cfg);
		page = 1u << r->cfg.gran;
		rig_space(r, BAD, SPACE / 4, 0x0f);
		a = rig_alloc(r, BAD, 16 * page, 16 * page);
		d = rig_alloc(r, BAD, 16 * page, 16 * page);
		rig_random(r, BAD, a, 16 * page, &g);
		rig_place(r, BAD, &map[BAD]);
		for (int i = 0; i < 6; i++)
			push_copy(r, a, d, 1000);
		push_copy(r, a + 4 * page, d + 4 * page, 4 * page);
		rig_push_end(r, BAD);
		rig_bell(r, BAD);
		rig_run(r, cycle);
		swap_pages(r, a + 4 * page, a + 6 * page);
		swap_pages(r, d + 5 * page, d + 7 * page);
		rig_write(r, NPU_GLB_AT(SLOT_CTRL, BAD),
			  NPU_REG_BITS(SLOT_CTRL_TLB_FLUSH, 1));
		rig_wait(r, 1u << BAD, 100000);
		rig_check(r, BAD, "flushed");
	}
}

/* When TLB_FLUSH reads as 0 nothing more comes by what was forgotten: the page that a
 * FILL stores to, on a channel where its stores wait, has become another's by then. */
static void flushed_stores(struct rig *r)
{
	uint32_t held = 0;

	for (uint32_t i = 0; i < 30; i++) {
		struct rig_space *sp = &r->space[BAD];
		uint32_t page, d, spare, at, turns = 0, changed = 0;
		struct rng g = {i + 1};
		uint8_t *old;

		rig_reset(r, &r->cfg);
		page = 1u << r->cfg.gran;
		rig_space(r, BAD, SPACE / 4, 0x01);
		d = rig_alloc(r, BAD, 8 * page, page);
		spare = rig_alloc(r, BAD, page, page);
		rig_place(r, BAD, &map[BAD]);
		push_fill(r, d, 8 * page, 0x5a5a5a5a);
		rig_push_end(r, BAD);
		rig_bell(r, BAD);
		rig_run(r, rng_range(&g, 200, 1200));
		for (at = d; at < d + 7 * page; at += page)
			if (r->memory[(sp->frame[at >> r->cfg.gran] << r->cfg.gran) +
				      page - 1] != 0x5a)
				break;
		old = r->memory + (sp->frame[at >> r->cfg.gran] << r->cfg.gran);
		swap_pages(r, at, spare);
		rig_write(r, NPU_GLB_AT(SLOT_CTRL, BAD),
			  NPU_REG_BITS(SLOT_CTRL_TLB_FLUSH, 1));
		while (NPU_REG_GET(rig_reg(r, NPU_GLB_AT(SLOT_CTRL, BAD)),
				   SLOT_CTRL_TLB_FLUSH) &&
		       turns < 10000)
			turns++;
		held += turns > 4;
		memset(old, 0xee, page);
		rig_wait(r, 1u << BAD, 100000);
		for (uint32_t j = 0; j < page; j++)
			changed += old[j] != 0xee;
		CHECK(!changed && turns < 10000,
		      "moment %u: %u bytes stored after the flush was over", i, changed);
	}
	CHECK(held > 15, "%u of 30 flushes waited for stores", held);
}

/* The space's bound moves while a walk is under way, and back: who does not stop is
 * right, and who did finds no page's translation at another. */
static void shrunk(struct rig *r)
{
	uint32_t stopped = 0;

	for (uint32_t cycle = 40; cycle < 240; cycle += 3) {
		uint32_t desc[16];
		struct rng g = {cycle};

		rig_reset(r, &r->cfg);
		rig_space(r, BAD, SPACE / 4, 0x0f);
		rig_place(r, BAD, &map[BAD]);
		for (int i = 0; i < 3; i++) {
			good_conv(r, desc, i == 1, &g);
			rig_push(r, BAD, desc);
		}
		rig_push_end(r, BAD);
		rig_bell(r, BAD);
		rig_run(r, cycle);
		rig_write(r, NPU_GLB_AT(PT_COUNT, BAD), 1);
		rig_run(r, rng_range(&g, 0, 40));
		rig_write(r, NPU_GLB_AT(PT_COUNT, BAD), r->space[BAD].pages);
		rig_wait(r, 1u << BAD, 100000);
		if (r->faulted >> BAD & 1) {
			stopped++;
			CHECK(rig_reg(r, NPU_SLOT_ADDR(BAD, FAULT_KIND)) ==
				      NPU_FAULT_BOUNDS,
			      "cycle %u: kind", cycle);
			rig_restart(r, BAD);
			r->space[BAD].tail = r->space[BAD].done = 0;
			for (int i = 0; i < 2; i++) {
				good_conv(r, desc, i == 1, &g);
				rig_push(r, BAD, desc);
			}
			rig_push_end(r, BAD);
			rig_bell(r, BAD);
			rig_wait(r, 1u << BAD, 100000);
			CHECK(!(r->faulted >> BAD & 1), "cycle %u: faults again", cycle);
			rig_golden(r, BAD);
			continue;
		}
		rig_check(r, BAD, "a bound that moved");
	}
	CHECK(stopped > 10 && stopped < 67, "%u of 67 stopped", stopped);
}

/* Rows of the input that no window has are loaded all the same, while there is time.  One
 * of them is not there, which may be found out when the operation is over and the next
 * one runs: a fault, or nobody asks. */
static void late_rows(struct rig *r)
{
	uint32_t stopped = 0;

	for (uint32_t i = 0; i < 16 * 6; i++) {
		uint32_t page, desc[16], row = 1 + i % 16, a, pte;
		struct rng g = {i};
		struct rig_conv c = {.h = 17,
				     .w = 1,
				     .cin = 16,
				     .oh = 1,
				     .ow = 1,
				     .n = 1 + i / 16 * 7,
				     .kh = 1,
				     .kw = 1,
				     .sy = 1,
				     .sx = 1,
				     .dy = 1,
				     .dx = 1};

		rig_reset(r, &r->cfg);
		page = 1u << r->cfg.gran;
		rig_space(r, BAD, SPACE / 4, 0x0f);
		rig_place(r, BAD, &map[BAD]);
		c.lda = page;
		rig_conv_desc(r, BAD, &c, false, desc, &g);
		a = (uint32_t)NPU_GET(desc, ADDR_A);
		rig_push(r, BAD, desc);
		for (int j = 0; j < 2; j++) {
			good_conv(r, desc, false, &g);
			rig_push(r, BAD, desc);
		}
		rig_push_end(r, BAD);
		pte = rig_pte(r, BAD, a + row * page);
		rig_set_pte(r, BAD, a + row * page, 0);
		rig_bell(r, BAD);
		rig_wait(r, 1u << BAD, 100000);
		if (!(r->faulted >> BAD & 1)) {
			rig_set_pte(r, BAD, a + row * page, pte);
			rig_check(r, BAD, "a row that is not there");
			continue;
		}
		stopped++;
		CHECK(rig_reg(r, NPU_SLOT_ADDR(BAD, FAULT_KIND)) == NPU_FAULT_UNMAPPED &&
			      (rig_reg(r, NPU_SLOT_ADDR(BAD, FAULT_ADDR)) ^
			       (a + row * page)) < page,
		      "row %u: kind or address", row);
	}
	CHECK(stopped > 10, "%u of 96 stopped", stopped);
}

/* What is in the ring when a slot that was stopped goes on is what it does: it has
 * fetched the next descriptor before it stops. */
static void reread(struct rig *r)
{
	uint32_t changed = 0;

	for (uint32_t i = 0; i < 40; i++) {
		struct rng g = {i};
		uint32_t a, d, desc[16];

		rig_reset(r, &r->cfg);
		rig_space(r, BAD, SPACE / 4, 0x0f);
		a = rig_alloc(r, BAD, 8192, 64);
		d = rig_alloc(r, BAD, 8192, 64);
		rig_random(r, BAD, a, 8192, &g);
		rig_place(r, BAD, &map[BAD]);
		push_copy(r, a, d, 4096);
		push_fill(r, d + 4096, 100, 0x11111111);
		rig_push_end(r, BAD);
		rig_bell(r, BAD);
		rig_run(r, 20 + 10 * i);
		rig_write(r, NPU_SLOT_ADDR(BAD, PREEMPT), NPU_PREEMPT_DRAIN);
		rig_wait_reg(r, NPU_SLOT_ADDR(BAD, STATUS), 15, NPU_STATE_DRAINED, 10000);
		if (rig_reg(r, NPU_SLOT_ADDR(BAD, HEAD)) > 1)
			break; /* both are over */
		changed++;
		rig_peek(r, BAD, r->space[BAD].ring + 64, desc, sizeof(desc));
		NPU_SET(desc, VPATTERN, 0x22222222);
		rig_poke(r, BAD, r->space[BAD].ring + 64, desc, sizeof(desc));
		rig_write(r, NPU_SLOT_ADDR(BAD, RESUME), 1);
		rig_wait(r, 1u << BAD, 100000);
		rig_check(r, BAD, "another descriptor in the ring");
	}
	CHECK(changed > 20, "%u of 40 before it began", changed);
}

/* ---- contexts ------------------------------------------------------------------------ */

/* The slot's tables, ring and shadow are space's from now on; the ring goes on. */
static void enter(struct rig *r, struct rig_space *space, uint32_t context, uint32_t tail)
{
	space->tail = space->done = tail;
	r->space[BAD] = *space;
	rig_write(r, NPU_GLB_AT(PT_BASE, BAD), space->table);
	rig_write(r, NPU_GLB_AT(PT_COUNT, BAD), space->pages);
	rig_write(r, NPU_GLB_AT(PT_CONTEXT, BAD), context);
}

/* One slot, two address spaces by turns, no flush between: from the second turn on
 * nothing is translated anew, and each finds its own bytes at the same addresses.  In the
 * first, more than twenty pages take a walk for each line of a table, of sixteen. */
static void contexts(struct rig *r)
{
	struct rig_space space[2];
	uint32_t a = 0, d = 0, tail = 0;
	uint64_t misses = 0;
	struct rng g = {31};

	prepare(r);
	for (int i = 0; i < 2; i++) {
		if (i)
			memset(&r->space[BAD], 0, sizeof(r->space[BAD]));
		rig_space(r, BAD, SPACE / 4, 0x0f);
		a = rig_alloc(r, BAD, 40000, 1);
		d = rig_alloc(r, BAD, 40000, 1);
		rig_random(r, BAD, a, 40000, &g);
		space[i] = r->space[BAD];
	}
	for (uint32_t turn = 0; turn < 8; turn++) {
		struct rig_space *sp = &space[turn % 2];
		uint64_t before = rig_counters(r, BAD, false).tlb_misses;

		enter(r, sp, turn % 2 ? 200 : 7, tail);
		push_vec(r, turn % 4 < 2 ? NPU_VOP_COPY : NPU_VOP_FILL, a, d, 40000,
			 turn * 0x01010101);
		rig_push_end(r, BAD);
		rig_bell(r, BAD);
		rig_wait(r, 1u << BAD, 100000);
		rig_check(r, BAD, "contexts");
		misses = rig_counters(r, BAD, false).tlb_misses - before;
		CHECK(turn < 2 ? misses >= 2 && misses <= 4 : !misses,
		      "turn %u: %llu walks", turn, (unsigned long long)misses);
		tail = r->space[BAD].tail;
		*sp = r->space[BAD];
	}
	r->space[BAD] = space[0];
	free(space[1].frame);
	free(space[1].shadow);
}

int main(int argc, char **argv)
{
	struct rng g = {9};
	uint32_t half, cols;
	struct rig r;

	rig_open(&r, argc > 1 ? argv[1] : "16x16x4x8", UINT64_C(1) << 24);
	if (r.api->channels < 8) {
		printf("bench_fault: needs 8 channels, %s has %u\n",
		       argc > 1 ? argv[1] : "16x16x4x8", r.api->channels);
		rig_close(&r);
		return 77;
	}
	half = r.api->rows / 2;
	cols = r.api->cols;
	map[BAD] = (struct rig_rect){0, 0, half, cols / 2 + 1};
	map[NEIGHBOUR] = (struct rig_rect){half, cols / 8, half, cols - cols / 8};
	prepare(&r);
	rig_bell(&r, NEIGHBOUR);
	rig_wait(&r, 1u << NEIGHBOUR, 4000000);
	for (uint32_t j = 0; j < 4; j++)
		alone[j] = rig_stamp(&r, NEIGHBOUR, j + 1) - rig_stamp(&r, NEIGHBOUR, j);

	from_table(&r, conv_faults, COUNT(conv_faults), CONV, &g);
	from_table(&r, group_faults, COUNT(group_faults), GROUPED, &g);
	from_table(&r, vec_faults, COUNT(vec_faults), COPY, &g);
	from_table(&r, pool_faults, COUNT(pool_faults), POOL, &g);
	for (int what = 0; what < SPOILS; what++)
		spoil(&r, (enum spoil)what, &g);
	mended(&r, false, &g);
	mended(&r, true, &g);
	narrowed(&r, 20);
	contexts(&r);
	flushed(&r);
	flushed_stores(&r);
	shrunk(&r);
	late_rows(&r);
	reread(&r);
	rig_close(&r);
	return bench_end("bench_fault");
}

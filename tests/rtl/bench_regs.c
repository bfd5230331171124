/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_regs.c - registers, interrupts, rings, fences, counters: what software sees of
 * the machine besides results.  Argument: shape (16x16x4x8).
 */
#include <string.h>

#include "rig.h"

#define SPACE (1u << 18)

static void fresh(struct rig *r)
{
	struct rig_memory cfg = rig_channels(r->api->channels);

	rig_reset(r, &cfg);
}

static void identity(struct rig *r)
{
	uint32_t shape = rig_reg(r, NPU_GLB_SHAPE_ADDR),
		 caps = rig_reg(r, NPU_GLB_CAPS_ADDR);

	CHECK(rig_reg(r, NPU_GLB_ID_ADDR) == NPU_GLB_ID_RESET, "ID");
	CHECK(rig_reg(r, NPU_GLB_VERSION_ADDR) == NPU_GLB_VERSION_RESET, "VERSION");
	CHECK(NPU_REG_GET(shape, SHAPE_ROWS) == r->api->rows &&
		      NPU_REG_GET(shape, SHAPE_COLS) == r->api->cols &&
		      NPU_REG_GET(shape, SHAPE_SLOTS) == r->api->slots &&
		      NPU_REG_GET(shape, SHAPE_CHANNELS) == r->api->channels,
	      "SHAPE %#x", shape);
	CHECK(NPU_REG_GET(caps, CAPS_DEPTH_LOG2) == 9 &&
		      NPU_REG_GET(caps, CAPS_SPAD_LOG2) == 17 &&
		      NPU_REG_GET(caps, CAPS_BANKS_LOG2) == 3 &&
		      NPU_REG_GET(caps, CAPS_TLB_LOG2) == 10,
	      "CAPS %#x", caps);
	rig_write(r, NPU_GLB_ID_ADDR, 0);
	rig_write(r, NPU_GLB_SHAPE_ADDR, 0);
	CHECK(rig_reg(r, NPU_GLB_ID_ADDR) == NPU_GLB_ID_RESET, "ID is written");
	CHECK(rig_reg(r, NPU_GLB_SHAPE_ADDR) == shape, "SHAPE is written");
	CHECK(!rig_reg(r, 0x7fc) && !rig_reg(r, 0xff8), "holes of page 0");
	for (uint32_t s = 0; s < NPU_SLOT_COUNT; s++)
		if (s >= r->api->slots) {
			rig_write(r, NPU_SLOT_ADDR(s, RING_LOG2), 7);
			CHECK(!rig_reg(r, NPU_SLOT_ADDR(s, RING_LOG2)),
			      "slot %u is not there", s);
		}
}

/* What MODE_STATUS says of the last write. */
static void mode_was(struct rig *r, uint32_t status)
{
	uint32_t got = rig_reg(r, NPU_GLB_MODE_STATUS_ADDR);

	CHECK(got == status, "MODE_STATUS %u, not %u", got, status);
}

static void hash(struct rig *r)
{
	uint32_t good = NPU_REG_BITS(HASH_K, 0) | NPU_REG_BITS(HASH_Q, 1) |
			NPU_REG_BITS(HASH_GRAN, 9);
	static const struct {
		uint32_t k, q, gran;
	} bad[] = {{0, 2, 9},  {0, 0, 9}, {5, 1, 9},  {4, 3, 9}, {4, 7, 12},
		   {1, 9, 12}, {0, 8, 9}, {4, 15, 9}, {0, 1, 7}, {0, 1, 13}};
	uint32_t all = rig_reg(r, NPU_GLB_HASH_ADDR);

	CHECK((NPU_REG_GET(all, HASH_Q) | NPU_REG_GET(all, HASH_QH) << 3)
			      << NPU_REG_GET(all, HASH_K) ==
		      r->api->channels,
	      "the rig uses every channel");
	rig_write(r, NPU_GLB_HASH_ADDR, good);
	CHECK(rig_reg(r, NPU_GLB_HASH_ADDR) == good, "HASH");
	mode_was(r, NPU_MODE_OK);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		rig_write(r, NPU_GLB_HASH_ADDR,
			  NPU_REG_BITS(HASH_K, bad[i].k) |
				  NPU_REG_BITS(HASH_Q, bad[i].q) |
				  NPU_REG_BITS(HASH_QH, bad[i].q >> 3) |
				  NPU_REG_BITS(HASH_GRAN, bad[i].gran) |
				  NPU_REG_BITS(HASH_LOCK, 1));
		CHECK(rig_reg(r, NPU_GLB_HASH_ADDR) == good,
		      "HASH k %u q %u gran %u is taken", bad[i].k, bad[i].q, bad[i].gran);
		mode_was(r, NPU_MODE_RANGE);
	}
	for (uint32_t q = 1; q <= 15; q += 2) {
		uint32_t value = NPU_REG_BITS(HASH_Q, q) | NPU_REG_BITS(HASH_QH, q >> 3) |
				 NPU_REG_BITS(HASH_GRAN, 9);

		rig_write(r, NPU_GLB_HASH_ADDR, good);
		rig_write(r, NPU_GLB_HASH_ADDR, value);
		CHECK(rig_reg(r, NPU_GLB_HASH_ADDR) ==
			      (q <= r->api->channels ? value : good),
		      "HASH q %u of %u channels", q, r->api->channels);
	}
	rig_write(r, NPU_GLB_HASH_ADDR, good);
	for (uint32_t i = 0; i < NPU_GLB_XMASK_N; i++)
		rig_write(r, NPU_GLB_AT(XMASK, i), 0xffabc0 + i);
	CHECK(rig_reg(r, NPU_GLB_AT(XMASK, 3)) == 0xffabc3, "XMASK");
	rig_write(r, NPU_GLB_HASH_ADDR, good | NPU_REG_BITS(HASH_LOCK, 1));
	mode_was(r, NPU_MODE_OK);
	rig_write(r, NPU_GLB_HASH_ADDR, all);
	mode_was(r, NPU_MODE_LOCKED);
	rig_write(r, NPU_GLB_TIMING_ADDR, NPU_GLB_TIMING_RESET);
	mode_was(r, NPU_MODE_OK);
	rig_write(r, NPU_GLB_AT(XMASK, 3), 1);
	mode_was(r, NPU_MODE_LOCKED);
	CHECK(rig_reg(r, NPU_GLB_HASH_ADDR) == (good | NPU_REG_BITS(HASH_LOCK, 1)),
	      "LOCK: HASH");
	CHECK(rig_reg(r, NPU_GLB_AT(XMASK, 3)) == 0xffabc3, "LOCK: XMASK");
	fresh(r);
	rig_write(r, NPU_GLB_AT(XMASK, 0), 0x1234);
	rig_write(r, NPU_GLB_HASH_ADDR, good | NPU_REG_BITS(HASH_OPAQUE, 1));
	rig_write(r, NPU_GLB_HASH_ADDR, good);
	CHECK(!rig_reg(r, NPU_GLB_HASH_ADDR) && !rig_reg(r, NPU_GLB_AT(XMASK, 0)),
	      "OPAQUE shows");
	fresh(r);
}

static void plain(struct rig *r)
{
	for (uint32_t s = 0; s < r->api->slots; s++) {
		rig_write(r, NPU_GLB_AT(PT_BASE, s), 0xabcd00 + s);
		rig_write(r, NPU_GLB_AT(PT_COUNT, s), 100 + s);
		rig_write(r, NPU_GLB_AT(CH_MASK, s), 0xf0 + s);
		rig_write(r, NPU_GLB_AT(PT_CONTEXT, s), 0x1b0 + s);
		rig_write(r, NPU_GLB_AT(SLOT_CTRL, s), 3);
		rig_write(r, NPU_GLB_AT(RECT, s), 0x01020304 + s);
	}
	for (uint32_t s = 0; s < r->api->slots; s++) {
		CHECK(rig_reg(r, NPU_GLB_AT(PT_BASE, s)) == 0xabcd00, "PT_BASE");
		CHECK(rig_reg(r, NPU_GLB_AT(PT_COUNT, s)) == 100 + s, "PT_COUNT");
		CHECK(rig_reg(r, NPU_GLB_AT(CH_MASK, s)) == 0xf0 + s, "CH_MASK");
		CHECK(rig_reg(r, NPU_GLB_AT(PT_CONTEXT, s)) == 0xb0 + s, "PT_CONTEXT");
		CHECK(rig_reg(r, NPU_GLB_AT(SLOT_CTRL, s)) == 1, "SLOT_CTRL");
		CHECK(rig_reg(r, NPU_GLB_AT(RECT, s)) == 0x01020304 + s, "RECT");
	}
	rig_write(r, NPU_GLB_TIMING_ADDR, 0x05040302);
	CHECK(rig_reg(r, NPU_GLB_TIMING_ADDR) == 0x05040302, "TIMING");
	rig_write(r, NPU_GLB_CTRL_ADDR, 1);
	CHECK(rig_reg(r, NPU_GLB_CTRL_ADDR) == 1, "CTRL");
	fresh(r);
	CHECK(rig_reg(r, NPU_GLB_TIMING_ADDR) == NPU_GLB_TIMING_RESET,
	      "TIMING after reset");
}

static void time_register(struct rig *r)
{
	for (int i = 0; i < 5; i++) {
		uint64_t before = r->api->cycle(r->model);
		uint32_t t = rig_reg(r, NPU_GLB_TIME_LO_ADDR);

		CHECK(t == before + 1, "TIME %u at cycle %llu", t,
		      (unsigned long long)before);
		CHECK(r->api->cycle(r->model) == before + NPU_MODEL_REG_CYCLES,
		      "access time");
		CHECK(rig_reg(r, NPU_GLB_TIME_HI_ADDR) == 0, "TIME_HI");
		rig_run(r, 1000);
	}
}

static void push_fence(struct rig *r, uint32_t s, uint32_t op, uint32_t va,
		       uint64_t value, bool irq)
{
	uint32_t desc[16] = {0};

	NPU_SET(desc, OPCODE, op);
	NPU_SET(desc, F_IRQ, irq);
	NPU_SET(desc, ADDR_A, va);
	NPU_SET(desc, ADDR_D, va);
	NPU_SET(desc, SVALUE_LO, (uint32_t)value);
	NPU_SET(desc, SVALUE_HI, (uint32_t)(value >> 32));
	rig_push(r, s, desc);
}

static void interrupts(struct rig *r)
{
	uint32_t va;

	fresh(r);
	rig_space(r, 0, SPACE, RIG_ALL);
	rig_space(r, 1, SPACE, RIG_ALL);
	va = rig_alloc(r, 0, 64, 64);
	rig_write(r, NPU_GLB_IRQ_MASK_ADDR, 0);
	push_fence(r, 0, NPU_OP_SIGNAL, va, 5, true);
	rig_write(r, NPU_SLOT_ADDR(0, TAIL), 1);
	CHECK(r->api->run(r->model, 5000) == 5000, "a masked cause raises the line");
	CHECK(rig_reg(r, NPU_GLB_IRQ_PEND_ADDR) == 1, "IRQ_PEND");
	rig_write(r, NPU_GLB_IRQ_MASK_ADDR, 2);
	CHECK(!r->api->irq(r->model), "another slot's mask");
	rig_write(r, NPU_GLB_IRQ_MASK_ADDR, 1);
	CHECK(r->api->irq(r->model) && r->api->run(r->model, 100) == 0,
	      "run with the line high");
	rig_write(r, NPU_GLB_IRQ_PEND_ADDR, 0xfffffffe);
	CHECK(r->api->irq(r->model), "cleared by a 0");
	rig_write(r, NPU_GLB_IRQ_PEND_ADDR, 1);
	CHECK(!r->api->irq(r->model) && !rig_reg(r, NPU_GLB_IRQ_PEND_ADDR),
	      "not cleared");
	CHECK(r->api->idle(r->model), "not idle");
	/* Without the flag: no interrupt. */
	push_fence(r, 0, NPU_OP_SIGNAL, va, 6, false);
	rig_write(r, NPU_SLOT_ADDR(0, TAIL), 2);
	CHECK(r->api->run(r->model, 5000) == 5000, "SIGNAL without F_IRQ");
	CHECK(rig_reg(r, NPU_SLOT_ADDR(0, HEAD)) == 2, "HEAD");
	rig_check(r, 0, "signal");
}

/* Two slots hand a value back and forth through a page both have. */
static void fences(struct rig *r)
{
	uint32_t page = 1u << r->cfg.gran, shared, rounds = 8;
	uint64_t big = UINT64_C(0x100000000);

	fresh(r);
	page = 1u << r->cfg.gran;
	for (uint32_t s = 0; s < 2; s++)
		rig_space(r, s, SPACE, RIG_ALL);
	shared = rig_alloc(r, 0, page, page);
	CHECK(rig_alloc(r, 1, page, page) == shared, "same place in both spaces");
	rig_set_pte(r, 1, shared, rig_pte(r, 0, shared));
	r->space[1].frame[shared / page] = r->space[0].frame[shared / page];
	for (uint32_t i = 0; i < rounds; i++) {
		push_fence(r, 0, NPU_OP_WAIT, shared, big + 2 * i, false);
		rig_push_stamp(r, 0);
		push_fence(r, 0, NPU_OP_SIGNAL, shared + 64, big + 2 * i + 1, false);
		push_fence(r, 1, NPU_OP_WAIT, shared + 64, big + 2 * i + 1, false);
		rig_push_stamp(r, 1);
		push_fence(r, 1, NPU_OP_SIGNAL, shared, big + 2 * i + 2, false);
	}
	rig_push_end(r, 0);
	rig_push_end(r, 1);
	rig_bell(r, 0);
	rig_bell(r, 1);
	rig_run(r, 3000);
	CHECK(!r->ended && rig_reg(r, NPU_SLOT_ADDR(0, HEAD)) == 0 &&
		      rig_reg(r, NPU_SLOT_ADDR(1, HEAD)) == 0,
	      "nobody has signalled yet");
	CHECK(NPU_REG_GET(rig_reg(r, NPU_SLOT_ADDR(0, STATUS)), STATUS_WAITING),
	      "WAITING");
	CHECK(!r->api->idle(r->model), "a WAIT polls: not idle");
	/* The low word alone is not enough. */
	rig_poke(r, 0, shared, &(uint32_t){7}, 4);
	rig_run(r, 1000);
	CHECK(rig_reg(r, NPU_SLOT_ADDR(0, HEAD)) == 0, "64-bit comparison");
	rig_poke(r, 0, shared, &big, 8);
	rig_wait(r, 3, 1000000);
	for (uint32_t i = 0; i < rounds; i++) {
		CHECK(rig_stamp(r, 0, i) < rig_stamp(r, 1, i), "order of round %u", i);
		if (i)
			CHECK(rig_stamp(r, 1, i - 1) < rig_stamp(r, 0, i),
			      "order of round %u", i);
	}
	CHECK(r->api->idle(r->model), "idle at the end");
}

/* A ring of four entries, filled as HEAD moves. */
static void small_ring(struct rig *r)
{
	struct rng g = {12};
	uint32_t ring, sent = 0, total = 50;

	fresh(r);
	rig_space(r, 0, SPACE, RIG_ALL);
	ring = rig_alloc(r, 0, 4 * 64, 64);
	rig_write(r, NPU_SLOT_ADDR(0, RING_LOG2), 2);
	/* lower bits are nobody's */
	rig_write(r, NPU_SLOT_ADDR(0, RING_BASE), ring + 41);
	CHECK(rig_reg(r, NPU_SLOT_ADDR(0, RING_BASE)) == ring, "RING_BASE in a line");
	rig_write(r, NPU_SLOT_ADDR(0, SAVE), ring + 63);
	CHECK(rig_reg(r, NPU_SLOT_ADDR(0, SAVE)) == ring, "SAVE in a line");
	while (rig_reg(r, NPU_SLOT_ADDR(0, HEAD)) != total) {
		uint32_t head = rig_reg(r, NPU_SLOT_ADDR(0, HEAD));

		while (sent < total && sent - head < 4) {
			uint32_t desc[16];

			rig_free_all(r, 0);
			rig_alloc(r, 0, 4 * 64 + 64, 64);
			rig_random_vec(r, 0, desc, &g);
			if (NPU_GET(desc, VOP) == NPU_VOP_MAXPOOL)
				continue;
			/* Operands move while others run: only order and count are
			 * checked. */
			rig_poke(r, 0, ring + sent % 4 * 64, desc, 64);
			sent++;
		}
		rig_write(r, NPU_SLOT_ADDR(0, TAIL), sent);
		rig_run(r, rng_range(&g, 0, 200));
		CHECK(!r->faulted, "small ring faults");
		if (r->faulted)
			return;
	}
	CHECK(rig_counters(r, 0, false).descs == total, "descriptors counted");
	/* RING_BASE: counters of the ring start at 0. */
	rig_write(r, NPU_SLOT_ADDR(0, RING_BASE), ring);
	CHECK(!rig_reg(r, NPU_SLOT_ADDR(0, HEAD)) && !rig_reg(r, NPU_SLOT_ADDR(0, TAIL)),
	      "RING_BASE resets HEAD and TAIL");
}

static void counters(struct rig *r)
{
	struct rig_rect map[2] = {{0, 0, r->api->rows, r->api->cols}, {0}};
	struct rig_counters c;
	struct rng g = {13};
	uint64_t reads = 0, writes = 0, kinds = 0, beats = 0, slot = 0;

	fresh(r);
	CHECK(rig_map(r, map, 2) == NPU_MAP_OK, "map");
	rig_space(r, 0, 1u << 20, RIG_ALL);
	for (int i = 0; i < 6; i++) {
		uint32_t desc[16];

		rig_random_desc(r, 0, desc, &g);
		rig_push(r, 0, desc);
	}
	rig_push_end(r, 0);
	c = rig_counters(r, 0, false);
	rig_bell(r, 0);
	rig_wait(r, 1, 50000000);
	CHECK(rig_reg(r, NPU_SLOT_ADDR(0, CNT_DESCS)) == (uint32_t)c.descs,
	      "counters move without a snapshot");
	rig_check(r, 0, "counters");
	c = rig_counters(r, 0, true);
	CHECK(c.descs == 7, "%llu descriptors", (unsigned long long)c.descs);
	for (uint32_t i = 0; i < r->api->channels; i++) {
		reads += rig_reg(r, NPU_CHAN_ADDR(i, CH_READS));
		writes += rig_reg(r, NPU_CHAN_ADDR(i, CH_WRITES));
		kinds += rig_reg(r, NPU_CHAN_ADDR(i, CH_HITS)) +
			 rig_reg(r, NPU_CHAN_ADDR(i, CH_CLOSED)) +
			 rig_reg(r, NPU_CHAN_ADDR(i, CH_CONFLICTS));
		beats += rig_reg(r, NPU_CHAN_ADDR(i, CH_BEATS));
		slot += rig_reg(r, NPU_CHAN_ADDR(i, CH_SLOT_BEATS));
	}
	CHECK(reads + writes == kinds, "every request is a hit, a miss or a conflict");
	CHECK(beats == slot && beats == c.read_beats + c.write_beats,
	      "%llu beats on channels, %llu of the slot", (unsigned long long)beats,
	      (unsigned long long)(c.read_beats + c.write_beats));
	CHECK(reads && writes, "both kinds");
	CHECK(r->api->channels == 16 || !rig_reg(r, NPU_CHAN_BASE + NPU_CHAN_STRIDE * 15),
	      "a channel that is not there");
}

/* Writes a mode: MODE_STATUS, and whether it is taken. */
static void mode_is(struct rig *r, uint32_t address, uint32_t value, uint32_t status)
{
	uint32_t before = rig_reg(r, address), got;

	rig_write(r, address, value);
	got = rig_reg(r, NPU_GLB_MODE_STATUS_ADDR);
	CHECK(got == status, "%#x at %#x: MODE_STATUS %u, not %u", value, address, got,
	      status);
	got = rig_reg(r, address);
	CHECK(got == (status == NPU_MODE_OK ? value : before), "%#x at %#x reads %#x",
	      value, address, got);
}

static void bucket_is(struct rig *r, uint32_t slot, uint32_t window, uint32_t budget,
		      uint32_t burst, uint32_t status)
{
	rig_write(r, NPU_GLB_BUCKET_WINDOW_ADDR, window);
	rig_write(r, NPU_GLB_BUCKET_BUDGET_ADDR, budget);
	rig_write(r, NPU_GLB_BUCKET_BURST_ADDR, burst);
	CHECK(rig_reg(r, NPU_GLB_BUCKET_WINDOW_ADDR) == window &&
		      rig_reg(r, NPU_GLB_BUCKET_BUDGET_ADDR) == budget &&
		      rig_reg(r, NPU_GLB_BUCKET_BURST_ADDR) == burst,
	      "staged bucket");
	rig_write(r, NPU_GLB_BUCKET_SET_ADDR, slot);
	CHECK(rig_reg(r, NPU_GLB_MODE_STATUS_ADDR) == status,
	      "slot %u window %u budget %u burst %u: MODE_STATUS %u, not %u", slot,
	      window, budget, burst, rig_reg(r, NPU_GLB_MODE_STATUS_ADDR), status);
}

/* Slot 0 waits until 1 is written there. */
static uint32_t slot_waits(struct rig *r)
{
	uint32_t va;

	fresh(r);
	rig_space(r, 0, SPACE, RIG_ALL);
	va = rig_alloc(r, 0, 64, 64);
	push_fence(r, 0, NPU_OP_WAIT, va, 1, false);
	rig_push_end(r, 0);
	rig_bell(r, 0);
	rig_run(r, 500);
	return va;
}

/* All that is refused, and that nothing comes of it; what may change while slots work. */
static void shares(struct rig *r)
{
	static const uint32_t idle_only[] = {NPU_GLB_ARB_ADDR, NPU_GLB_AT(ARB, 1),
					     NPU_GLB_TURNS_ADDR, NPU_GLB_TURN_ORDER_ADDR,
					     NPU_GLB_CH_GROUP_ADDR};
	uint32_t slots = r->api->slots, va;

	fresh(r);
	CHECK(!rig_reg(r, NPU_GLB_ARB_ADDR) && !rig_reg(r, NPU_GLB_AT(ARB, 1)) &&
		      !rig_reg(r, NPU_GLB_PRIO_ADDR) &&
		      !rig_reg(r, NPU_GLB_CH_GROUP_ADDR) &&
		      !rig_reg(r, NPU_GLB_MODE_STATUS_ADDR),
	      "fair after reset");
	CHECK(rig_reg(r, NPU_GLB_TURNS_ADDR) == (NPU_REG_BITS(TURNS_CYCLES, 128) |
						 NPU_REG_BITS(TURNS_LAST, slots - 1)) &&
		      rig_reg(r, NPU_GLB_TURN_ORDER_ADDR) == NPU_GLB_TURN_ORDER_RESET,
	      "turns after reset");
	mode_is(r, NPU_GLB_AT(ARB, 1),
		NPU_REG_BITS(ARB_MODE, NPU_ARB_TURNS) | NPU_REG_BITS(ARB_PASS, 9),
		NPU_MODE_OK);
	CHECK(!rig_reg(r, NPU_GLB_ARB_ADDR), "the other group's");
	mode_is(r, NPU_GLB_ARB_ADDR, NPU_REG_BITS(ARB_MODE, 3), NPU_MODE_RANGE);
	mode_is(r, NPU_GLB_ARB_ADDR, NPU_REG_BITS(ARB_MODE, NPU_ARB_HITS), NPU_MODE_OK);
	mode_is(r, NPU_GLB_TURNS_ADDR,
		NPU_REG_BITS(TURNS_CYCLES, 4095) | NPU_REG_BITS(TURNS_LAST, 7),
		NPU_MODE_OK);
	mode_is(r, NPU_GLB_TURN_ORDER_ADDR, 0xfedcba98, NPU_MODE_OK);
	mode_is(r, NPU_GLB_CH_GROUP_ADDR, (1u << r->api->channels) - 2, NPU_MODE_OK);
	rig_write(r, NPU_GLB_PRIO_ADDR, 0x12345678);
	CHECK(rig_reg(r, NPU_GLB_PRIO_ADDR) == 0x12345678, "PRIO");
	rig_write(r, NPU_GLB_MODE_STATUS_ADDR, 3);
	CHECK(!rig_reg(r, NPU_GLB_MODE_STATUS_ADDR), "MODE_STATUS is written");

	bucket_is(r, 0, 100, 0, 8, NPU_MODE_RANGE);
	bucket_is(r, 0, 100, 0, 0, NPU_MODE_RANGE);
	bucket_is(r, 0, 100, 3, 3, NPU_MODE_RANGE);
	bucket_is(r, 0, 100, 9, 8, NPU_MODE_RANGE);
	bucket_is(r, 0, 0, 0, 0, NPU_MODE_OK);
	bucket_is(r, slots - 1, 0xffffff, 0xfffffff, 0xfffffff, NPU_MODE_OK);
	if (slots < 8)
		bucket_is(r, slots, 100, 8, 8, NPU_MODE_RANGE);

	va = slot_waits(r);
	for (size_t i = 0; i < sizeof(idle_only) / sizeof(idle_only[0]); i++)
		mode_is(r, idle_only[i], 1, NPU_MODE_BUSY);
	rig_write(r, NPU_GLB_PRIO_ADDR, 5);
	CHECK(rig_reg(r, NPU_GLB_PRIO_ADDR) == 5, "PRIO while a slot works");
	bucket_is(r, 0, 1000, 4, 4, NPU_MODE_OK);
	rig_run(r, 5000);
	CHECK(rig_reg(r, NPU_GLB_HELD_ADDR) > 2000, "HELD %u",
	      rig_reg(r, NPU_GLB_HELD_ADDR));
	if (slots > 1)
		CHECK(!rig_reg(r, NPU_GLB_AT(HELD, 1)), "another slot's HELD");
	bucket_is(r, 0, 0, 0, 0, NPU_MODE_OK);
	rig_poke(r, 0, va, &(uint64_t){1}, 8);
	rig_wait(r, 1, 100000);
	rig_check(r, 0, "shares");
	mode_is(r, NPU_GLB_ARB_ADDR, NPU_ARB_TURNS, NPU_MODE_OK);
}

/* What a slot at work stands on is not changed under it; a slot beside it is free. */
static void busy_modes(struct rig *r)
{
	static const uint32_t machine[] = {NPU_GLB_CTRL_ADDR, NPU_GLB_TIMING_ADDR,
					   NPU_GLB_HASH_ADDR, NPU_GLB_AT(XMASK, 0),
					   NPU_GLB_AT(XMASK, 3)};
	static const uint32_t slot[] = {NPU_GLB_PT_BASE_ADDR, NPU_GLB_PT_CONTEXT_ADDR,
					NPU_GLB_SLOT_CTRL_ADDR};
	uint32_t slots = r->api->slots, va;

	va = slot_waits(r);
	for (size_t i = 0; i < sizeof(machine) / sizeof(machine[0]); i++)
		mode_is(r, machine[i], 1, NPU_MODE_BUSY);
	for (size_t i = 0; i < sizeof(slot) / sizeof(slot[0]); i++) {
		mode_is(r, slot[i], 1, NPU_MODE_BUSY);
		if (slots > 1)
			mode_is(r, slot[i] + 4, slot[i] == NPU_GLB_PT_BASE_ADDR ? 64 : 1,
				NPU_MODE_OK);
		if (slots < 8) {
			rig_write(r, slot[i] + 4 * slots, 1);
			mode_was(r, NPU_MODE_RANGE);
		}
	}
	/* The same mode once more, and translations forgotten: that may always be. */
	rig_write(r, NPU_GLB_SLOT_CTRL_ADDR, NPU_REG_BITS(SLOT_CTRL_TLB_FLUSH, 1));
	mode_was(r, NPU_MODE_OK);
	/* Stopped, it can be given another address space. */
	rig_write(r, NPU_SLOT_ADDR(0, PREEMPT), NPU_PREEMPT_DRAIN);
	rig_run(r, 500);
	mode_is(r, NPU_GLB_PT_CONTEXT_ADDR, 1, NPU_MODE_OK);
	mode_is(r, NPU_GLB_SLOT_CTRL_ADDR, NPU_REG_BITS(SLOT_CTRL_SERIAL, 1),
		NPU_MODE_OK);
	mode_is(r, NPU_GLB_TIMING_ADDR, 0x05040302, NPU_MODE_OK);
	rig_write(r, NPU_SLOT_ADDR(0, RESUME), 0);
	rig_poke(r, 0, va, &(uint64_t){1}, 8);
	rig_wait(r, 1, 100000);
	rig_check(r, 0, "modes");
	mode_is(r, NPU_GLB_CTRL_ADDR, 1, NPU_MODE_OK);
}

/* DESC_CYCLES: from when HEAD moved until the slot stops, and on from there. */
static void at_descriptor(struct rig *r)
{
	const uint32_t at = NPU_SLOT_ADDR(0, DESC_CYCLES);
	uint32_t va, first, second;

	fresh(r);
	rig_space(r, 0, SPACE, RIG_ALL);
	va = rig_alloc(r, 0, 64, 64);
	CHECK(!rig_reg(r, at), "an idle slot is at no descriptor");
	push_fence(r, 0, NPU_OP_SIGNAL, va + 8, 3, false);
	push_fence(r, 0, NPU_OP_WAIT, va, 1, false);
	rig_push_end(r, 0);
	rig_bell(r, 0);
	while (rig_reg(r, NPU_SLOT_ADDR(0, HEAD)) == 0)
		rig_run(r, 1);
	first = rig_reg(r, at);
	CHECK(first <= 2 * NPU_MODEL_REG_CYCLES + 1,
	      "%u cycles at a descriptor that has "
	      "just begun",
	      first);
	rig_run(r, 1000);
	second = rig_reg(r, at);
	CHECK(second == first + 1000 + NPU_MODEL_REG_CYCLES, "%u, and %u 1,000 cycles on",
	      first, second);
	rig_write(r, NPU_SLOT_ADDR(0, PREEMPT), NPU_PREEMPT_KILL);
	rig_run(r, 1000);
	first = rig_reg(r, at);
	CHECK(first > second && first <= second + 3 * NPU_MODEL_REG_CYCLES,
	      "%u when it was killed, %u before", first, second);
	CHECK(rig_reg(r, at) == first, "it goes on while the slot stands");
	rig_write(r, NPU_SLOT_ADDR(0, RESUME), 0);
	rig_run(r, 1000);
	second = rig_reg(r, at);
	CHECK(second >= first + 1000 && second <= first + 1000 + 2 * NPU_MODEL_REG_CYCLES,
	      "%u after a resume, %u before", second, first);
	rig_write(r, at, 7);
	CHECK(rig_reg(r, at) > second, "DESC_CYCLES is written");
	rig_poke(r, 0, va, &(uint64_t){1}, 8);
	rig_wait(r, 1, 100000);
	CHECK(!rig_reg(r, at), "the ring is empty");
}

/* A copy under a limit: right, and not faster than that lets it be. */
static void limited(struct rig *r)
{
	struct rng g = {14};
	uint32_t desc[16] = {0}, window = 640, budget = 40;
	struct rig_counters c;

	fresh(r);
	rig_space(r, 0, SPACE, RIG_ALL);
	NPU_SET(desc, OPCODE, NPU_OP_VEC);
	NPU_SET(desc, VOP, NPU_VOP_COPY);
	NPU_SET(desc, DM, 4);
	NPU_SET(desc, VCOLS, 1024);
	NPU_SET(desc, LDA, 1024);
	NPU_SET(desc, LDD, 1024);
	NPU_SET(desc, ADDR_A, rig_alloc(r, 0, 4096, 64));
	NPU_SET(desc, ADDR_D, rig_alloc(r, 0, 4096, 64));
	rig_random(r, 0, NPU_GET(desc, ADDR_A), 4096, &g);
	bucket_is(r, 0, window, budget, budget, NPU_MODE_OK);
	rig_push_stamp(r, 0);
	rig_push(r, 0, desc);
	rig_push_stamp(r, 0);
	rig_push_end(r, 0);
	rig_bell(r, 0);
	rig_wait(r, 1, 1000000);
	rig_check(r, 0, "limited");
	c = rig_counters(r, 0, true);
	CHECK(c.read_beats + c.write_beats <=
		      (r->api->cycle(r->model) / window + 1) * budget,
	      "%llu beats in %llu cycles",
	      (unsigned long long)(c.read_beats + c.write_beats),
	      (unsigned long long)r->api->cycle(r->model));
	CHECK(rig_stamp(r, 0, 1) - rig_stamp(r, 0, 0) >
		      (512 / budget - 1) * (uint64_t)window,
	      "the limit holds nothing back");
}

int main(int argc, char **argv)
{
	struct rig r;

	rig_open(&r, argc > 1 ? argv[1] : "16x16x4x8", UINT64_C(1) << 23);
	fresh(&r);
	identity(&r);
	hash(&r);
	plain(&r);
	time_register(&r);
	interrupts(&r);
	fences(&r);
	small_ring(&r);
	counters(&r);
	shares(&r);
	busy_modes(&r);
	at_descriptor(&r);
	limited(&r);
	rig_close(&r);
	return bench_end("bench_regs");
}

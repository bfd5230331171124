/* SPDX-License-Identifier: Apache-2.0 */
/*
 * contain.c - a hostile tenant next to a victim: whatever the one puts into its ring, its
 * memory and its page of registers, the other's bytes and cycles are those it has alone;
 * the hostile slot says what was wrong, can be stopped, and then does honest work.
 *
 *   contain [figure] [TRIALS [FIRST_SEED]]
 *
 * Each trial has a seed, printed when something is wrong; `contain 1 SEED` is that trial
 * again.  The tenants have rectangles and memory channels of their own.  What a tenant
 * cannot reach (page tables, the privileged page) is left alone.  A few more trials are
 * the control: on channels that both have, the victim's cycles must change.
 */
#include <stdlib.h>
#include <string.h>

#include "rig.h"

#define SPACE     (1u << 21)
#define JOBS      4u
#define VARIANTS  6u       /* victims that are measured alone */
#define TOO_LONG  4000000u /* cycles; no victim needs a tenth */
#define CONTROLS  ATTACKS  /* trials on shared channels */
#define HANG      20000u   /* a program that has not ended so long after the victim */
#define STOP      400000u  /* a stop that has not been carried out after so long */
#define PAGE_SIZE 0x1000u
#define FAULTS    (NPU_FAULT_CONTEXT + 1u)

enum { HOSTILE, VICTIM };

enum attack {
	WILD,      /* good descriptors with bad addresses, sizes and fields */
	NOISE,     /* the ring full of random bytes */
	ENDLESS,   /* a WAIT for what never comes */
	HUGE_WORK, /* one operation of a billion steps */
	SELF,      /* a program that writes over its own ring */
	REGISTERS, /* anything into the slot's own page */
	SIGNALS,   /* a storm of interrupts and stamps, anywhere */
	STOPS,     /* stopped in any mode and resumed at any moment */
	CONTEXTS,  /* the same with save areas anywhere and contexts that are none */
	ATTACKS,
};

static const char *const attack_names[ATTACKS] = {"wild",    "noise", "endless",
						  "huge",    "self",  "registers",
						  "signals", "stops", "contexts"};

struct seen {
	uint32_t trials, programs, faults, hangs, stops, folded, kinds[FAULTS];
	uint32_t cycle_changes, byte_changes;
};

static struct {
	bool known;
	uint64_t cycles[JOBS];
} alone[2][VARIANTS]; /* on channels of its own, on shared ones */

static bool shared;

static struct rig_rect map[2];

/* ---- the victim ------------------------------------------------------------------- */

/* Rectangles and channels by variant; both tenants' spaces lie where they always do. */
static void prepare(struct rig *r, uint32_t variant)
{
	static const struct rig_rect maps[3][2] = {
		{{0, 0, 8, 16}, {8, 0, 8, 16}},
		{{3, 5, 4, 11}, {0, 0, 16, 5}},
		{{0, 0, 15, 7}, {1, 7, 13, 9}},
	};
	struct rig_memory cfg = rig_channels(8);
	struct rng g = {1000 + variant};

	rig_reset(r, &cfg);
	memcpy(map, maps[variant % 3], sizeof(map));
	CHECK(rig_map(r, map, 2) == NPU_MAP_OK, "map");
	rig_space(r, HOSTILE, SPACE, shared ? RIG_ALL : variant % 2 ? 0x55 : 0x0f);
	rig_space(r, VICTIM, SPACE, shared ? RIG_ALL : variant % 2 ? 0xaa : 0xf0);
	for (uint32_t j = 0; j < JOBS; j++) {
		uint32_t desc[16];

		rig_push_stamp(r, VICTIM);
		if (j % 2)
			rig_gemm_desc(r, VICTIM, rng_range(&g, 20, 120),
				      rng_range(&g, 10, 60), rng_range(&g, 20, 120), desc,
				      &g);
		else
			rig_random_desc(r, VICTIM, desc, &g);
		rig_push(r, VICTIM, desc);
	}
	rig_push_stamp(r, VICTIM);
	rig_push_end(r, VICTIM);
}

static uint64_t job_cycles(struct rig *r, uint32_t j)
{
	return rig_stamp(r, VICTIM, j + 1) - rig_stamp(r, VICTIM, j);
}

static void measure_alone(struct rig *r, uint32_t variant)
{
	if (alone[shared][variant].known)
		return;
	prepare(r, variant);
	rig_bell(r, VICTIM);
	rig_wait(r, 1u << VICTIM, TOO_LONG);
	for (uint32_t j = 0; j < JOBS; j++)
		alone[shared][variant].cycles[j] = job_cycles(r, j);
	rig_check(r, VICTIM, "alone");
	alone[shared][variant].known = true;
}

/* Parts of the hostile space that are no good: not mapped, only to be read, the victim's
 * own memory on channels that are not the hostile slot's.  open: all is as it was. */
static void make_holes(struct rig *r, bool open)
{
	const struct rig_space *sp = &r->space[HOSTILE];
	uint32_t page = 1u << r->cfg.gran;

	for (uint32_t p = sp->pages / 4 * 3; p < sp->pages; p++) {
		uint32_t own = sp->frame[p] << r->cfg.gran | NPU_PTE_VALID;
		uint32_t pte = own | NPU_PTE_WRITE;

		if (!open && p % 8 == 1)
			pte = 0;
		else if (!open && p % 2 == 0) /* reads go on */
			pte = own;
		else if (!open && p % 8 == 3 && !shared)
			pte = rig_pte(r, VICTIM, p * page);
		rig_set_pte(r, HOSTILE, p * page, pte);
	}
}

/* ---- attacks ---------------------------------------------------------------------- */

static uint32_t state_of(struct rig *r, uint32_t s)
{
	return NPU_REG_GET(rig_reg(r, NPU_SLOT_ADDR(s, STATUS)), STATUS_STATE);
}

/* In its space, or near its end, or anywhere at all. */
static uint32_t wild_address(struct rng *g)
{
	switch (rng_next(g) % 4) {
	case 0:
		return rng_next(g);
	case 1:
		return SPACE - 4096 + rng_range(g, 0, 8192);
	case 2:
		return UINT32_MAX - rng_range(g, 0, 300);
	default:
		return rng_range(g, 0, SPACE - 1);
	}
}

static void wild_desc(struct rig *r, uint32_t desc[16], struct rng *g)
{
	uint32_t n = rng_range(g, 1, 3);

	rig_free_all(r, HOSTILE);
	rig_random_desc(r, HOSTILE, desc, g);
	while (n--) {
		switch (rng_next(g) % 3) {
		case 0:
			desc[1 + rng_next(g) % 4] = wild_address(g);
			break;
		case 1:
			desc[rng_next(g) % 16] = rng_next(g);
			break;
		default:
			desc[rng_next(g) % 16] ^= 1u << (rng_next(g) % 32);
			break;
		}
	}
}

static void noise_desc(uint32_t desc[16], struct rng *g)
{
	for (uint32_t i = 0; i < 16; i++)
		desc[i] = rng_next(g);
	/* Mostly one that begins to work before it finds out. */
	if (rng_next(g) % 4)
		NPU_SET(desc, OPCODE, rng_range(g, 0, NPU_OP_TIMESTAMP));
	if (rng_next(g) % 2)
		for (uint32_t i = 1; i <= 4; i++)
			desc[i] = rng_range(g, 0, SPACE - 1) & ~15u;
	if (rng_next(g) % 4 == 0)
		desc[0] = NPU_OP_WAIT;
}

static void wait_desc(uint32_t desc[16], struct rng *g)
{
	memset(desc, 0, 64);
	NPU_SET(desc, OPCODE, NPU_OP_WAIT);
	NPU_SET(desc, ADDR_A, rng_range(g, SPACE / 2, SPACE - 8) & ~7u);
	NPU_SET(desc, SVALUE_LO, rng_next(g));
	NPU_SET(desc, SVALUE_HI, UINT32_MAX);
}

/* Within its space at first; it may run out of it after a long time, or never. */
static void huge_desc(uint32_t desc[16], struct rng *g)
{
	uint32_t op = rng_next(g) % 3;

	memset(desc, 0, 64);
	NPU_SET(desc, ADDR_A, 0x10000);
	NPU_SET(desc, ADDR_B, 0x20000);
	NPU_SET(desc, ADDR_P, 0x30000);
	NPU_SET(desc, ADDR_D, 0x40000);
	NPU_SET(desc, DM, 0xfffff);
	if (op == 0) {
		NPU_SET(desc, OPCODE, NPU_OP_VEC);
		NPU_SET(desc, VOP, rng_next(g) % 2 ? NPU_VOP_COPY : NPU_VOP_FILL);
		NPU_SET(desc, VCOLS, 0xfffc);
		return; /* every row is the same one */
	}
	NPU_SET(desc, OPCODE, op == 1 ? NPU_OP_GEMM : NPU_OP_CONV);
	NPU_SET(desc, F_NOPARAM, 1);
	NPU_SET(desc, QMULT, 1u << 30);
	NPU_SET(desc, DN, 0xffff);
	NPU_SET(desc, CIN, 64);
	NPU_SET(desc, PANEL, 64);
	NPU_SET(desc, H, 0xffff);
	NPU_SET(desc, W, op == 1 ? 1 : 4);
	NPU_SET(desc, OW, op == 1 ? 1 : 4);
	NPU_SET(desc, PIX, 64);
	NPU_SET(desc, LDB, 16);
	NPU_SET(desc, SPS, 512);
	desc[12] = 0x11110101; /* one by one, stride and dilation one */
}

/* Random bytes onto the ring, by the machine's own hands. */
static void self_desc(struct rig *r, uint32_t desc[16], struct rng *g)
{
	const struct rig_space *sp = &r->space[HOSTILE];

	memset(desc, 0, 64);
	switch (rng_next(g) % 3) {
	case 0:
		NPU_SET(desc, OPCODE, NPU_OP_VEC);
		NPU_SET(desc, VOP, NPU_VOP_COPY);
		NPU_SET(desc, DM, 1);
		NPU_SET(desc, VCOLS, rng_range(g, 1, 4096));
		NPU_SET(desc, ADDR_A, rng_range(g, SPACE / 2, SPACE - 4096));
		NPU_SET(desc, ADDR_D, sp->ring + rng_range(g, 0, 4096));
		break;
	case 1:
		NPU_SET(desc, OPCODE, NPU_OP_VEC);
		NPU_SET(desc, VOP, NPU_VOP_FILL);
		NPU_SET(desc, DM, rng_range(g, 1, 8));
		NPU_SET(desc, VCOLS, rng_range(g, 1, 100) * 4);
		NPU_SET(desc, VPATTERN, rng_next(g));
		NPU_SET(desc, LDD, rng_range(g, 0, 500) * 4);
		NPU_SET(desc, ADDR_D, sp->ring + rng_range(g, 0, 1024) * 4);
		break;
	default:
		NPU_SET(desc, OPCODE, NPU_OP_SIGNAL);
		NPU_SET(desc, ADDR_D, sp->ring + rng_range(g, 0, RIG_DEPTH * 8) * 8);
		NPU_SET(desc, SVALUE_LO, rng_next(g));
		NPU_SET(desc, SVALUE_HI, rng_next(g));
		break;
	}
}

static void signal_desc(uint32_t desc[16], struct rng *g)
{
	memset(desc, 0, 64);
	NPU_SET(desc, OPCODE, rng_next(g) % 3 ? NPU_OP_SIGNAL : NPU_OP_TIMESTAMP);
	NPU_SET(desc, F_IRQ, rng_next(g));
	/* The last page, aligned or not; now and then outside. */
	NPU_SET(desc, ADDR_D,
		rng_next(g) % 64 ? SPACE - 4096 + rng_range(g, 0, 4088)
				 : wild_address(g));
	NPU_SET(desc, SVALUE_LO, rng_next(g));
}

/* Where a context goes: good memory, a page of each kind of hole, their borders, or
 * anywhere. */
static uint32_t save_area(const struct rig *r, struct rng *g)
{
	const struct rig_space *sp = &r->space[HOSTILE];
	uint32_t page = 1u << r->cfg.gran;
	uint32_t hole = sp->pages / 4 * 3 + rng_range(g, 0, sp->pages / 4 - 1);

	switch (rng_next(g) % 4) {
	case 0:
		return SPACE / 2;
	case 1: /* the context in one page, sums in the next */
		return hole * page - 64;
	case 2:
		return hole * page;
	default:
		return wild_address(g);
	}
}

/* Of the descriptor at HEAD, of another one of the victim's, or random words. */
static void forge_context(struct rig *r, uint32_t at, struct rng *g)
{
	uint32_t c[NPU_CONTEXT_WORDS], desc[16], kind = rng_next(g) % 4;
	uint32_t s = kind == 1 ? VICTIM : HOSTILE, head = 1;
	struct npu_progress p = {.m = rng_range(g, 0, 40),
				 .n = rng_range(g, 0, 20),
				 .t = rng_range(g, 0, 70),
				 .half = rng_next(g) % 2};

	if (kind == 0 || at > SPACE - sizeof(c))
		return;
	if (s == HOSTILE)
		head = rig_reg(r, NPU_SLOT_ADDR(HOSTILE, HEAD)) % RIG_DEPTH;
	memcpy(desc, r->space[s].shadow + r->space[s].ring + head * 64, 64);
	if (rng_next(g) % 2) {
		p.nc = rng_range(g, 1, 17);
		p.kr = rng_range(g, 1, 17);
		p.k = rng_range(g, 0, 90);
		p.r = rng_range(g, 0, 70);
	}
	npu_golden_save(desc, r->space[rng_next(g) % 8 ? HOSTILE : s].number, &p, c);
	if (!p.nc)
		c[8] = c[9] = 0;
	for (uint32_t i = 0; kind == 2 && i < NPU_CONTEXT_WORDS; i++)
		c[i] = rng_next(g);
	rig_poke(r, HOSTILE, at, c, sizeof(c));
}

static void bad_context(struct rig *r, struct rng *g)
{
	uint32_t at = save_area(r, g) & ~63u;

	rig_write(r, NPU_SLOT_ADDR(HOSTILE, SAVE), at);
	forge_context(r, at, g);
}

/* Long enough to be stopped inside. */
static void stop_desc(struct rig *r, uint32_t desc[16], struct rng *g)
{
	rig_free_all(r, HOSTILE);
	if (rng_next(g) % 2)
		rig_random_desc(r, HOSTILE, desc, g);
	else
		rig_gemm_desc(r, HOSTILE, rng_range(g, 20, 200), rng_range(g, 8, 40),
			      rng_range(g, 20, 200), desc, g);
}

/* A ring full of it, from entry 0, and the bell. */
static void program(struct rig *r, enum attack how, struct rng *g)
{
	const struct rig_space *sp = &r->space[HOSTILE];
	uint32_t n = how == NOISE || how == SELF || how == SIGNALS ? RIG_DEPTH
								   : rng_range(g, 1, 12);

	rig_restart(r, HOSTILE);
	for (uint32_t i = 0; i < n; i++) {
		uint32_t desc[16];

		switch (how) {
		case NOISE:
			noise_desc(desc, g);
			break;
		case ENDLESS:
			wait_desc(desc, g);
			break;
		case HUGE_WORK:
			huge_desc(desc, g);
			break;
		case SELF:
			self_desc(r, desc, g);
			break;
		case SIGNALS:
			signal_desc(desc, g);
			break;
		case STOPS:
		case CONTEXTS:
			stop_desc(r, desc, g);
			break;
		default:
			wild_desc(r, desc, g);
			break;
		}
		rig_poke(r, HOSTILE, sp->ring + i * 64, desc, 64);
	}
	if (how == STOPS)
		rig_write(r, NPU_SLOT_ADDR(HOSTILE, SAVE), SPACE / 2);
	if (how == CONTEXTS) {
		bad_context(r, g);
		if (rng_next(g) % 2)
			rig_write(r, NPU_SLOT_ADDR(HOSTILE, RESUME),
				  NPU_REG_BITS(RESUME_CONTEXT, 1));
	}
	rig_write(r, NPU_SLOT_ADDR(HOSTILE, TAIL), n);
}

/* Anything anywhere in its own page; mostly at registers that are there. */
static void abuse_registers(struct rig *r, struct rng *g)
{
	static const uint32_t known[] = {
		NPU_SLOT_ADDR(HOSTILE, RING_BASE),  NPU_SLOT_ADDR(HOSTILE, RING_LOG2),
		NPU_SLOT_ADDR(HOSTILE, TAIL),       NPU_SLOT_ADDR(HOSTILE, PREEMPT),
		NPU_SLOT_ADDR(HOSTILE, RESUME),     NPU_SLOT_ADDR(HOSTILE, HEAD),
		NPU_SLOT_ADDR(HOSTILE, STATUS),     NPU_SLOT_ADDR(HOSTILE, FAULT_KIND),
		NPU_SLOT_ADDR(HOSTILE, CNT_CYCLES), NPU_SLOT_ADDR(HOSTILE, SAVE),
	};
	uint32_t page = NPU_SLOT_ADDR(HOSTILE, RING_BASE) & ~(PAGE_SIZE - 1);

	for (uint32_t n = rng_range(g, 1, 8); n > 0; n--) {
		uint32_t at = rng_next(g) % 4
				      ? known[rng_next(g) % (sizeof(known) / 4)]
				      : page + rng_range(g, 0, PAGE_SIZE / 4 - 1) * 4;
		uint32_t value = rng_next(g);

		switch (rng_next(g) % 3) {
		case 0:
			value %= 16;
			break;
		case 1:
			value &= (SPACE - 1) & ~63u;
			break;
		default:
			break;
		}
		if (rng_next(g) % 8 == 0)
			(void)rig_reg(r, at);
		else
			rig_write(r, at, value);
	}
}

static bool stands(uint32_t state)
{
	return state == NPU_STATE_DRAINED || state == NPU_STATE_KILLED ||
	       state == NPU_STATE_FOLDED;
}

static void stop_and_go(struct rig *r, enum attack how, uint32_t state, struct rng *g,
			struct seen *seen)
{
	static const uint32_t codes[] = {NPU_PREEMPT_KILL, NPU_PREEMPT_FOLD,
					 NPU_PREEMPT_SAVE, NPU_PREEMPT_DRAIN};
	bool go = how == CONTEXTS ? stands(state) : rng_next(g) % 2;

	seen->folded += state == NPU_STATE_FOLDED;
	if (!go) {
		rig_write(r, NPU_SLOT_ADDR(HOSTILE, PREEMPT), codes[rng_next(g) % 4]);
		return;
	}
	if (how == CONTEXTS && rng_next(g) % 2)
		bad_context(r, g);
	rig_write(r, NPU_SLOT_ADDR(HOSTILE, RESUME),
		  1 | NPU_REG_BITS(RESUME_CONTEXT, rng_next(g) % 4 != 0));
}

static void count_fault(struct rig *r, uint64_t seed, struct seen *seen)
{
	uint32_t kind = rig_reg(r, NPU_SLOT_ADDR(HOSTILE, FAULT_KIND));

	CHECK(kind > NPU_FAULT_NONE && kind < FAULTS, "seed %llu: a fault of kind %u",
	      (unsigned long long)seed, kind);
	CHECK(rig_reg(r, NPU_SLOT_ADDR(HOSTILE, FAULT_DESC)) ==
		      rig_reg(r, NPU_SLOT_ADDR(HOSTILE, HEAD)),
	      "seed %llu: the fault's descriptor is not the one at HEAD",
	      (unsigned long long)seed);
	seen->faults++;
	seen->kinds[kind % FAULTS]++;
}

/* What the hostile tenant does next. */
static void act(struct rig *r, enum attack how, uint64_t seed, struct rng *g,
		struct seen *seen)
{
	uint32_t state = state_of(r, HOSTILE);

	if (how == REGISTERS) {
		if (rng_next(g) % 8 == 0) {
			program(r, rng_next(g) % 2 ? WILD : NOISE, g);
			seen->programs++;
		}
		abuse_registers(r, g);
		return;
	}
	if (how == STOPS || how == CONTEXTS)
		stop_and_go(r, how, state, g, seen);
	if (state != NPU_STATE_FAULT && state != NPU_STATE_IDLE)
		return;
	if (state == NPU_STATE_FAULT)
		count_fault(r, seed, seen);
	program(r, how, g);
	seen->programs++;
}

/* ---- afterwards ------------------------------------------------------------------- */

/* Brought to an end, whatever it does: it has so many cycles, then it is killed. */
static void end_hostile(struct rig *r, uint64_t seed, struct seen *seen)
{
	uint64_t end = r->api->cycle(r->model) + HANG;
	uint32_t state = state_of(r, HOSTILE);

	while ((state == NPU_STATE_RUN || state == NPU_STATE_STOPPING) &&
	       r->api->cycle(r->model) < end) {
		rig_run(r, 200);
		state = state_of(r, HOSTILE);
	}
	if (state == NPU_STATE_FAULT)
		count_fault(r, seed, seen);
	if (state != NPU_STATE_RUN && state != NPU_STATE_STOPPING)
		return;
	seen->hangs++;
	rig_write(r, NPU_SLOT_ADDR(HOSTILE, PREEMPT), NPU_PREEMPT_KILL);
	end = r->api->cycle(r->model) + STOP;
	/* It may just have stopped by itself. */
	while (!stands(state) && state != NPU_STATE_FAULT &&
	       r->api->cycle(r->model) < end) {
		rig_run(r, 20);
		state = state_of(r, HOSTILE);
	}
	CHECK(stands(state) || state == NPU_STATE_FAULT,
	      "seed %llu: state %u, a KILL has not been carried out",
	      (unsigned long long)seed, state);
	seen->stops++;
}

/* Its PEs can be given away and come back, and it does what it is told again. */
static void use_again(struct rig *r, uint64_t seed)
{
	struct rig_rect without[2] = {{0}, map[VICTIM]};
	struct rig_space *sp = &r->space[HOSTILE];
	struct rng g = {seed};
	uint32_t desc[16];
	char what[64];

	CHECK(rig_map(r, without, 2) == NPU_MAP_OK, "seed %llu: its PEs are not free",
	      (unsigned long long)seed);
	CHECK(rig_map(r, map, 2) == NPU_MAP_OK, "seed %llu: map",
	      (unsigned long long)seed);
	make_holes(r, true);
	rig_run(r, 100); /* what it still has to say */
	rig_write(r, NPU_GLB_AT(SLOT_CTRL, HOSTILE),
		  NPU_REG_BITS(SLOT_CTRL_TLB_FLUSH, 1));
	rig_peek(r, HOSTILE, 0, sp->shadow, SPACE);
	rig_free_all(r, HOSTILE);
	rig_restart(r, HOSTILE);
	for (int i = 0; i < 3; i++) {
		rig_random_desc(r, HOSTILE, desc, &g);
		rig_push(r, HOSTILE, desc);
	}
	rig_push_end(r, HOSTILE);
	rig_bell(r, HOSTILE);
	rig_wait(r, 1u << HOSTILE, TOO_LONG);
	CHECK(!(r->faulted >> HOSTILE & 1), "seed %llu: an honest program faults",
	      (unsigned long long)seed);
	snprintf(what, sizeof(what), "seed %llu: honest work afterwards",
		 (unsigned long long)seed);
	rig_check(r, HOSTILE, what);
}

/* ---- trials ----------------------------------------------------------------------- */

static void judge_victim(struct rig *r, uint32_t variant, uint64_t seed, enum attack how,
			 struct seen *seen)
{
	uint64_t failures;
	bool changed = false;
	char what[96];

	for (uint32_t j = 0; j < JOBS; j++) {
		CHECK(shared || job_cycles(r, j) == alone[0][variant].cycles[j],
		      "seed %llu, %s: the victim's job %u takes %llu cycles, %llu alone",
		      (unsigned long long)seed, attack_names[how], j,
		      (unsigned long long)job_cycles(r, j),
		      (unsigned long long)alone[0][variant].cycles[j]);
		changed |= job_cycles(r, j) != alone[shared][variant].cycles[j];
	}
	seen->cycle_changes += changed;
	CHECK(!(r->faulted >> VICTIM & 1), "seed %llu: the victim faults",
	      (unsigned long long)seed);
	failures = bench_failures;
	snprintf(what, sizeof(what), "seed %llu, %s: the victim's memory",
		 (unsigned long long)seed, attack_names[how]);
	rig_check(r, VICTIM, what);
	seen->byte_changes += bench_failures != failures;
	rig_counters(r, VICTIM, true);
}

static void trial(struct rig *r, uint64_t seed, struct seen *seen)
{
	struct rng g = {seed * 7919 + 1};
	enum attack how = (enum attack)(seed % ATTACKS);
	uint32_t variant = (uint32_t)(seed / ATTACKS % VARIANTS);
	uint64_t end;

	measure_alone(r, variant);
	prepare(r, variant);
	rig_random(r, HOSTILE, SPACE / 2, SPACE / 2, &g);
	make_holes(r, false);
	if (seed % 11 == 0) {
		struct rig_rect without[2] = {{0}, map[VICTIM]};

		CHECK(rig_map(r, without, 2) == NPU_MAP_OK, "map");
	}
	if (rng_next(&g) % 2) {
		act(r, how, seed, &g, seen);
		rig_run(r, rng_range(&g, 0, 3000));
	}
	rig_bell(r, VICTIM);
	end = r->api->cycle(r->model) + TOO_LONG;
	while (!((r->ended | r->faulted) >> VICTIM & 1) &&
	       r->api->cycle(r->model) < end) {
		act(r, how, seed, &g, seen);
		rig_run(r, rng_range(&g, 1, 900));
	}
	CHECK(r->ended >> VICTIM & 1, "seed %llu, %s: the victim does not end",
	      (unsigned long long)seed, attack_names[how]);
	judge_victim(r, variant, seed, how, seen);
	end_hostile(r, seed, seen);
	use_again(r, seed);
	/* That was done with the victim's neighbour working, too. */
	rig_compare(r, VICTIM, "the victim's memory afterwards");
	seen->trials++;
}

int main(int argc, char **argv)
{
	bool figure = argc > 1 && !strcmp(argv[1], "figure");
	int at = 1 + figure;
	uint32_t trials = argc > at ? (uint32_t)strtoul(argv[at], NULL, 0)
			  : figure  ? 400
				    : 54;
	uint64_t first = argc > at + 1 ? strtoull(argv[at + 1], NULL, 0) : 1;
	struct seen seen = {0}, control = {0};
	struct rig r;

	rig_open(&r, "16x16x4x8", UINT64_C(1) << 25);
	for (uint32_t i = 0; i < trials; i++)
		trial(&r, first + i, &seen);
	shared = true;
	for (uint32_t i = 0; i < CONTROLS && trials >= CONTROLS; i++)
		trial(&r, first + i, &control);
	rig_close(&r);
	CHECK(control.cycle_changes > 0 || trials < CONTROLS,
	      "sharing channels changes nobody's cycles: nothing is proved");
	printf("%u trials, seeds %llu..%llu: %u programs, %u ended in a fault, %u hung "
	       "and "
	       "were killed\n",
	       seen.trials, (unsigned long long)first,
	       (unsigned long long)(first + trials - 1), seen.programs, seen.faults,
	       seen.stops);
	printf("faults by kind:");
	for (uint32_t i = 1; i < FAULTS; i++)
		printf(" %u", seen.kinds[i]);
	printf("; %u times stopped inside an operation\n", seen.folded);
	printf("%u victims took other cycles than alone, %u have other bytes; on "
	       "shared "
	       "channels %u of %u took other cycles\n",
	       seen.cycle_changes, seen.byte_changes, control.cycle_changes,
	       control.trials);
	CHECK(trials < 54 || (seen.folded > 0 && seen.kinds[NPU_FAULT_CONTEXT] > 0),
	      "no stop inside an operation, or no context that is none");
	/* Each kind of fault there is has been met. */
	for (uint32_t i = 1; i < FAULTS && trials >= 400; i++)
		CHECK(seen.kinds[i] > 0, "no fault of kind %u", i);
	if (figure) {
		CHECK(seen.byte_changes + control.byte_changes == 0, "bytes changed");
		printf("figure npu.contain.trials %u\n", seen.trials);
		printf("figure npu.contain.neighbour_cycle_changes %u\n",
		       seen.cycle_changes);
		printf("figure npu.contain.shared_differ %u\n", control.cycle_changes);
	}
	return bench_end("contain");
}

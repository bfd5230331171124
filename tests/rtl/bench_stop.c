/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_stop.c - a tenant stopped at random moments in random modes (DRAIN, FOLD, SAVE,
 * KILL),
 * resumed each time in another slot, on a rectangle of another shape: its memory is that
 * of an undisturbed run, byte by byte.  What a FOLD says is stored is there, and nothing
 * of it is stored again.  VEC of every kind is stopped inside as well, also where it
 * stores over what it reads: then without KILL, which would begin it anew.  Contexts that
 * are none or another tenant's, save areas that are no memory, and writes that do
 * nothing.
 *
 *   bench_stop [figures] [ROUNDS [SEED [SHAPE]]]
 */
#include <stdlib.h>
#include <string.h>

#include "npu_panel.h"
#include "work.h"

#define JOBS  6u
#define STOPS 24u
#define LIMIT 8000000u
/* Of the largest tile, on 16 columns at most. */
#define SAVE_BYTES (NPU_CONTEXT_SUMS + NPU_DEPTH * 64u)

enum { DRAIN, FOLD, SAVE, KILL, MODES };

static const char *const names[MODES] = {"drain", "fold", "save", "kill"};
static const uint32_t codes[MODES] = {NPU_PREEMPT_DRAIN, NPU_PREEMPT_FOLD,
				      NPU_PREEMPT_SAVE, NPU_PREEMPT_KILL};

struct mode {
	uint64_t trials, mismatches, release, ack, inside, sums;
};

/* Stops inside a VEC: of each kind; inside a row; over its own input; that another slot
 * went on from. */
static struct {
	uint64_t all, of[NPU_VOP_SOFTMAX + 1], in_row, in_place, elsewhere;
} vecs;

/* The tenant, wherever it is. */
struct tenant {
	uint32_t slot, save;
	uint32_t base; /* descriptors completed before its ring began where it does now */
	/* A context at save is of this descriptor; it tells so many outputs. */
	bool saved;
	uint32_t saved_at;
	uint64_t outputs;
	bool in_place; /* some operations store where they read */
};

static void read_desc(const struct rig *r, const struct tenant *t, uint32_t at,
		      uint32_t desc[16])
{
	const struct rig_space *sp = &r->space[t->slot];

	memcpy(desc, sp->shadow + sp->ring + at % RIG_DEPTH * 64, 64);
}

static bool matrix(const uint32_t *d)
{
	return NPU_GET(d, OPCODE) == NPU_OP_GEMM || NPU_GET(d, OPCODE) == NPU_OP_CONV;
}

static bool pool(const uint32_t *d)
{
	return NPU_GET(d, VOP) == NPU_VOP_MAXPOOL || NPU_GET(d, VOP) == NPU_VOP_AVGPOOL;
}

/* A pool with lines longer than the rig's, larger windows, and more of them. */
static void long_pool(struct rig *r, uint32_t s, uint32_t desc[16], struct rng *g)
{
	uint32_t h = rng_range(g, 1, 30), w = rng_range(g, 1, 30),
		 c = rng_range(g, 1, 90);
	uint32_t k = rng_range(g, 1, 6), pad = rng_range(g, 0, k - 1);
	uint32_t sy = rng_range(g, 1, 3), sx = rng_range(g, 1, 3);
	uint32_t oh = (h - 1 + pad) / sy + 1, ow = (w - 1 + pad) / sx + 1;
	uint32_t a = rig_alloc(r, s, h * w * c, rng_range(g, 1, 64));

	rig_random(r, s, a, h * w * c, g);
	NPU_SET(desc, ADDR_A, a);
	NPU_SET(desc, ADDR_D, rig_alloc(r, s, oh * ow * c, rng_range(g, 1, 64)));
	NPU_SET(desc, DM, oh * ow);
	NPU_SET(desc, OW, ow);
	NPU_SET(desc, CIN, c);
	NPU_SET(desc, H, h);
	NPU_SET(desc, W, w);
	NPU_SET(desc, LDA, w * c);
	NPU_SET(desc, PIX, c);
	NPU_SET(desc, LDD, c);
	NPU_SET(desc, KH, k);
	NPU_SET(desc, KW, k);
	NPU_SET(desc, SY, sy);
	NPU_SET(desc, SX, sx);
	NPU_SET(desc, PT, pad);
	NPU_SET(desc, PL, pad);
}

/* Of many rows, or long ones; in_place: D is A, or B. */
static void long_vec(struct rig *r, uint32_t s, uint32_t desc[16], bool in_place,
		     struct rng *g)
{
	uint32_t rows = rng_range(g, 1, 200), cols = 4 * rng_range(g, 1, 60);
	uint32_t pitch = cols + 4 * rng_range(g, 0, 9), vop, a, b, d;

	rig_random_vec(r, s, desc, g);
	vop = NPU_GET(desc, VOP);
	if (pool(desc)) {
		long_pool(r, s, desc, g);
		return;
	}
	if (rng_next(g) % 4 == 0) {
		cols = pitch = 4 * rng_range(g, 1, 1000);
		rows = rng_range(g, 1, 8);
	}
	a = rig_alloc(r, s, rows * pitch, rng_range(g, 1, 64));
	b = rig_alloc(r, s, rows * pitch, rng_range(g, 1, 64));
	d = rig_alloc(r, s, rows * pitch, rng_range(g, 1, 64));
	rig_random(r, s, a, rows * pitch, g);
	rig_random(r, s, b, rows * pitch, g);
	if (in_place)
		d = (vop == NPU_VOP_ADD || vop == NPU_VOP_MUL) && rng_next(g) % 2 ? b : a;
	NPU_SET(desc, DM, rows);
	NPU_SET(desc, VCOLS, cols);
	NPU_SET(desc, ADDR_A, a);
	NPU_SET(desc, ADDR_D, d);
	NPU_SET(desc, LDA, pitch);
	NPU_SET(desc, LDD, pitch);
	if (vop == NPU_VOP_ADD || vop == NPU_VOP_MUL) {
		NPU_SET(desc, ADDR_B, b);
		NPU_SET(desc, VLDB, pitch);
	}
}

/* Sometimes with enough columns and rows for many tiles, or many pieces. */
static void random_desc(struct rig *r, uint32_t s, uint32_t desc[16], bool in_place,
			struct rng *g)
{
	uint32_t what = rng_next(g) % 6;

	if (what < (in_place ? 1 : 2))
		work_desc(r, s, desc, true, g);
	else if (what < (in_place ? 6 : 4))
		long_vec(r, s, desc, in_place, g);
	else
		rig_gemm_desc(r, s, rng_range(g, 1, 700), rng_range(g, 1, 70),
			      rng_range(g, 1, 60), desc, g);
}

/* ---- networks ---------------------------------------------------------------------- */

static void begin(struct rig *r, struct tenant *t, struct rng *g)
{
	struct rig_memory cfg = rng_next(g) % 2 ? rig_ideal(r) : work_memory(r, g);
	uint32_t descs[JOBS][16], want = rng_range(g, 1, JOBS);
	struct rig_rect rect = rig_anywhere(r, g);

	rig_reset(r, &cfg);
	*t = (struct tenant){.slot = rng_range(g, 0, r->api->slots - 1)};
	rig_place(r, t->slot, &rect);
	rig_space(r, t->slot, WORK_SPACE, RIG_ALL);
	rig_write(r, NPU_GLB_AT(SLOT_CTRL, t->slot),
		  NPU_REG_BITS(SLOT_CTRL_SERIAL, rng_next(g) % 8 == 0));
	t->in_place = rng_next(g) % 3 == 0;
	t->save = rig_alloc(r, t->slot, SAVE_BYTES, 64);
	rig_write(r, NPU_SLOT_ADDR(t->slot, SAVE), t->save + rng_range(g, 0, 63));
	CHECK(rig_reg(r, NPU_SLOT_ADDR(t->slot, SAVE)) == t->save, "SAVE");
	for (uint32_t i = 0;
	     i < want && WORK_SPACE - r->space[t->slot].free_va > 2 * WORK_ROOM; i++) {
		random_desc(r, t->slot, descs[i], t->in_place, g);
		work_connect(descs, i, g);
		rig_push(r, t->slot, descs[i]);
		rig_golden(r, t->slot);
	}
	rig_push_end(r, t->slot);
	rig_golden(r, t->slot);
}

/* Until it stands; the cycles that took.  Its PEs are taken away as soon as they are
 * free. */
static uint64_t wait_quiet(struct rig *r, uint32_t slot, uint64_t start)
{
	bool taken = false;

	while (!((r->quieted | r->faulted) >> slot & 1)) {
		uint32_t status = rig_reg(r, NPU_SLOT_ADDR(slot, STATUS));
		const struct rig_rect none[RIG_SLOTS] = {{0}};

		if (!taken && NPU_REG_GET(status, STATUS_QUIET)) {
			CHECK(rig_map(r, none, RIG_SLOTS) == NPU_MAP_OK, "PEs not free");
			taken = true;
		}
		rig_run(r, 1);
		if (r->api->cycle(r->model) - start > LIMIT) {
			CHECK(false, "no acknowledgement");
			exit(2);
		}
	}
	return r->api->cycle(r->model) - start;
}

/* Bytes of row m, columns n0 .. n1-1, are those of the shadow. */
static bool row_equals(struct rig *r, const struct tenant *t, const uint32_t *d,
		       uint32_t m, uint32_t n0, uint32_t n1)
{
	uint32_t size = NPU_GET(d, F_OUT32) ? 4 : 1, bytes = (n1 - n0) * size;
	uint32_t va = NPU_GET(d, ADDR_D) + m * NPU_GET(d, LDD) + n0 * size;
	uint8_t got[RIG_DEPTH * 4];

	if (bytes > sizeof(got))
		bytes = sizeof(got);
	rig_peek(r, t->slot, va, got, bytes);
	return !memcmp(got, r->space[t->slot].shadow + va, bytes);
}

/* The sums are those of the golden model.  They are no part of what that has in memory.
 */
static void look_at_sums(struct rig *r, const struct tenant *t, const uint32_t *desc,
			 const struct npu_progress *p, uint64_t seed)
{
	static int32_t sums[NPU_DEPTH * 16], got[16];
	struct npu_golden_flat flat = {r->space[t->slot].shadow, WORK_SPACE};
	struct npu_golden_env env = {.user = &flat, .read = npu_golden_flat_read};
	uint32_t wrong = 0;

	CHECK(!npu_golden_sums(desc, &env, p, sums), "seed %llu: sums",
	      (unsigned long long)seed);
	for (uint32_t i = 0; i < p->t; i++) {
		uint32_t va = t->save + npu_golden_sums_at(p, i);

		rig_peek(r, t->slot, va, got, p->nc * 4);
		wrong += memcmp(got, sums + (size_t)i * p->nc, p->nc * 4) != 0;
		rig_poke(r, t->slot, va, got, p->nc * 4);
	}
	CHECK(!wrong, "seed %llu: %u of %u rows of sums differ (k %u + %u, r %u, nc %u)",
	      (unsigned long long)seed, wrong, p->t, p->k, p->kr, p->r, p->nc);
}

/* What the context says is stored is; the sums that it has. */
static bool look_at_context(struct rig *r, struct tenant *t, uint32_t at, uint64_t seed)
{
	uint32_t context[NPU_CONTEXT_WORDS], desc[16], wrong = 0;
	struct npu_progress p;
	uint64_t outputs;

	read_desc(r, t, at, desc);
	rig_peek(r, t->slot, t->save, context, sizeof(context));
	CHECK(!npu_golden_context(desc, r->space[t->slot].number, context, &p),
	      "seed %llu: no context of descriptor %u", (unsigned long long)seed, at);
	/* It is no part of what the golden model has. */
	rig_poke(r, t->slot, t->save, context, p.nc ? sizeof(context) : 32);
	if (p.nc)
		look_at_sums(r, t, desc, &p, seed);
	if (!matrix(desc))
		p.t = 1; /* the row that it is in */
	for (uint32_t m = 0; m < p.m + p.t && m < NPU_GET(desc, DM); m++) {
		uint32_t n = m < p.m ? npu_golden_cols(desc) : p.n;

		wrong += n && !row_equals(r, t, desc, m, 0, n);
	}
	CHECK(!wrong, "seed %llu: %u rows of descriptor %u are not stored",
	      (unsigned long long)seed, wrong, at);
	outputs = (uint64_t)p.m * npu_golden_cols(desc) + (uint64_t)p.t * p.n;
	CHECK(outputs || p.nc, "seed %llu: a context that tells nothing",
	      (unsigned long long)seed);
	CHECK(!t->saved || t->saved_at != at || outputs >= t->outputs,
	      "seed %llu: back from %llu outputs to %llu", (unsigned long long)seed,
	      (unsigned long long)t->outputs, (unsigned long long)outputs);
	t->saved = true;
	t->saved_at = at;
	t->outputs = outputs;
	if (!matrix(desc)) {
		vecs.all++;
		vecs.of[NPU_GET(desc, VOP)]++;
		vecs.in_row += p.n != 0;
		vecs.in_place += NPU_GET(desc, ADDR_D) == NPU_GET(desc, ADDR_A) ||
				 NPU_GET(desc, ADDR_D) == NPU_GET(desc, ADDR_B);
	}
	return p.nc;
}

/* Goes on at descriptor at in a slot, perhaps another, from the context if so. */
static void go_on(struct rig *r, struct tenant *t, uint32_t at, bool from, struct rng *g)
{
	uint32_t next = rng_range(g, 0, r->api->slots - 1), old = t->slot;
	uint32_t resume = 1 | NPU_REG_BITS(RESUME_CONTEXT, from);
	struct rig_rect rect = rig_anywhere(r, g);
	struct rig_space *sp;

	rig_place(r, next, &rect);
	if (next == old && rng_next(g) % 2) {
		rig_write(r, NPU_SLOT_ADDR(old, RESUME), resume);
		return;
	}
	if (next != old) {
		uint32_t desc[16];
		struct rig_space none = r->space[next];

		r->space[next] = r->space[old];
		r->space[old] = none;
		t->slot = next;
		read_desc(r, t, at, desc);
		vecs.elsewhere += from && !matrix(desc);
	}
	sp = &r->space[next];
	t->slot = next;
	t->base = at;
	rig_write(r, NPU_SLOT_ADDR(old, RING_BASE), 0);
	rig_write(r, NPU_GLB_AT(PT_BASE, next), sp->table);
	rig_write(r, NPU_GLB_AT(PT_CONTEXT, next), sp->number);
	rig_write(r, NPU_GLB_AT(PT_COUNT, next), sp->pages);
	rig_write(r, NPU_GLB_AT(CH_MASK, next), sp->channels);
	rig_write(r, NPU_SLOT_ADDR(next, SAVE), t->save);
	rig_write(r, NPU_SLOT_ADDR(next, RING_LOG2), 9);
	rig_write(r, NPU_SLOT_ADDR(next, RING_BASE), sp->ring + at * 64);
	if (from)
		rig_write(r, NPU_SLOT_ADDR(next, RESUME), resume);
	r->ended &= ~(1u << next);
	r->quieted &= ~(1u << next);
	rig_write(r, NPU_SLOT_ADDR(next, TAIL), sp->tail - at);
}

static void most(uint64_t *of, uint64_t value)
{
	*of = value > *of ? value : *of;
}

/* One stop; the mode it was. */
static uint32_t stop(struct rig *r, struct tenant *t, struct mode modes[MODES],
		     uint64_t seed, struct rng *g)
{
	uint32_t how = rng_range(g, 0, t->in_place ? SAVE : KILL), at, state;
	uint32_t s = t->slot;
	struct mode *m = &modes[how];
	uint64_t start = r->api->cycle(r->model);
	bool from;

	r->quieted &= ~(1u << s);
	rig_write(r, NPU_SLOT_ADDR(s, PREEMPT), codes[how]);
	most(&m->ack, wait_quiet(r, s, start));
	CHECK(!(r->faulted >> s & 1), "seed %llu: fault", (unsigned long long)seed);
	most(&m->release, rig_reg(r, NPU_SLOT_ADDR(s, PREEMPT_CYCLES)));
	m->trials++;
	state = NPU_REG_GET(rig_reg(r, NPU_SLOT_ADDR(s, STATUS)), STATUS_STATE);
	at = t->base + rig_reg(r, NPU_SLOT_ADDR(s, HEAD));
	if (state == NPU_STATE_FOLDED) {
		CHECK(how == FOLD || how == SAVE ||
			      (how == DRAIN && t->saved && t->saved_at == at),
		      "seed %llu: FOLDED by %s", (unsigned long long)seed, names[how]);
		m->inside += how != DRAIN;
		m->sums += look_at_context(r, t, at, seed);
	} else {
		CHECK(state == (how == KILL ? NPU_STATE_KILLED : NPU_STATE_DRAINED),
		      "seed %llu: state %u after %s", (unsigned long long)seed, state,
		      names[how]);
	}
	if (r->ended >> s & 1)
		return how;
	/* A context is good as long as its descriptor has not ended. */
	t->saved = t->saved && t->saved_at == at;
	from = state == NPU_STATE_FOLDED ||
	       (t->saved && (t->in_place || rng_next(g) % 2));
	t->saved = from; /* else it begins anew, and may stop earlier */
	go_on(r, t, at, from, g);
	return how;
}

static void network(struct rig *r, struct mode modes[MODES], uint64_t seed)
{
	struct rng g = {seed * UINT64_C(0x9E3779B97F4A7C15)};
	uint64_t failures = bench_failures;
	uint32_t used = 0;
	struct tenant t;
	char what[48];

	begin(r, &t, &g);
	rig_bell(r, t.slot);
	for (uint32_t i = 0; i < STOPS; i++) {
		rig_run(r, rng_range(&g, 0, rng_next(&g) % 2 ? 200 : 4000));
		if (r->ended >> t.slot & 1)
			break;
		used |= 1u << stop(r, &t, modes, seed, &g);
	}
	rig_wait(r, 1u << t.slot, LIMIT);
	CHECK(!r->faulted, "seed %llu: fault", (unsigned long long)seed);
	snprintf(what, sizeof(what), "seed %llu", (unsigned long long)seed);
	rig_compare(r, t.slot, what);
	for (uint32_t i = 0; i < MODES; i++)
		modes[i].mismatches += used >> i & 1 && bench_failures != failures;
}

/* ---- contexts ---------------------------------------------------------------------- */

static void one_desc(struct rig *r, uint32_t desc[16], bool array, bool parts,
		     struct rng *g)
{
	struct rig_memory cfg = rig_ideal(r);
	struct rig_rect rect = rig_anywhere(r, g);

	rig_reset(r, &cfg);
	rig_place(r, 0, &rect);
	rig_space(r, 0, WORK_SPACE, RIG_ALL);
	if (parts)
		work_cut(r, 0, desc, g);
	else
		do
			random_desc(r, 0, desc, false, g);
		while (matrix(desc) != array);
	rig_push(r, 0, desc);
}

static void resume(struct rig *r, uint32_t save)
{
	rig_write(r, NPU_SLOT_ADDR(0, SAVE), save);
	rig_write(r, NPU_SLOT_ADDR(0, RESUME), NPU_REG_BITS(RESUME_CONTEXT, 1));
	rig_bell(r, 0);
	rig_wait(r, 1, LIMIT);
}

static struct npu_progress forge(const uint32_t desc[16], struct rng *g)
{
	struct npu_progress p = {.m = rng_range(g, 0, NPU_GET(desc, DM) - 1),
				 .n = rng_range(g, 0, npu_golden_cols(desc) - 1)};
	uint32_t depth;

	if (!matrix(desc)) {
		p.n = NPU_GET(desc, VOP) == NPU_VOP_SOFTMAX ? 0 : p.n & ~15u;
		return p;
	}
	p.half = rng_next(g) % 2;
	depth = npu_panel_kept(NPU_GET(desc, F_OUT32), p.half);
	if (NPU_GET(desc, PANEL) < depth)
		depth = NPU_GET(desc, PANEL);
	p.t = NPU_GET(desc, DM) - p.m < depth ? NPU_GET(desc, DM) - p.m : depth;
	p.t = rng_range(g, 1, p.t);
	if (npu_golden_kcut(desc)) {
		p.m = 0;
		p.t = NPU_GET(desc, DM);
	}
	return p;
}

/* Progress that nobody made: all behind it is computed, nothing before it touched. */
static void forged(struct rig *r, uint32_t rounds, uint64_t seed)
{
	for (uint32_t i = 0; i < rounds; i++) {
		struct rng g = {seed * 65537 + i};
		uint32_t desc[16], context[NPU_CONTEXT_WORDS], save;
		struct npu_progress p;
		struct rig_space *sp = &r->space[0];
		struct npu_golden_flat flat;
		struct npu_golden_result result;

		one_desc(r, desc, i % 2, i % 8 == 1, &g);
		rig_push_end(r, 0);
		p = forge(desc, &g);
		save = rig_alloc(r, 0, 64, 64);
		npu_golden_save(desc, r->space[0].number, &p, context);
		rig_poke(r, 0, save, context, sizeof(context));
		flat = (struct npu_golden_flat){sp->shadow, WORK_SPACE};
		npu_golden_exec(desc,
				&(struct npu_golden_env){
					.user = &flat,
					.read = npu_golden_flat_read,
					.write = npu_golden_flat_write,
					.rows = 16,
					.cols = 16,
					.from = npu_golden_begun(&p) ? &p : NULL},
				&result);
		if (result.fault) /* so cut, a panel's input does not fit */
			continue;
		sp->done++;
		sp->macs = result.macs;
		resume(r, save);
		CHECK(!r->faulted, "forged context %u: fault %u at %#x", i,
		      rig_reg(r, NPU_SLOT_ADDR(0, FAULT_KIND)),
		      rig_reg(r, NPU_SLOT_ADDR(0, FAULT_ADDR)));
		rig_check(r, 0, "forged context");
		rig_counters(r, 0, true);
	}
}

static void expect_fault(struct rig *r, uint32_t i, uint32_t kind, uint32_t address)
{
	CHECK(r->faulted & 1, "context %u: no fault", i);
	CHECK(rig_reg(r, NPU_SLOT_ADDR(0, FAULT_KIND)) == kind &&
		      rig_reg(r, NPU_SLOT_ADDR(0, FAULT_ADDR)) == address,
	      "context %u: fault %u at %#x, not %u at %#x", i,
	      rig_reg(r, NPU_SLOT_ADDR(0, FAULT_KIND)),
	      rig_reg(r, NPU_SLOT_ADDR(0, FAULT_ADDR)), kind, address);
	rig_compare(r, 0, "a context that is none");
}

/* Progress that no GEMM whose K is cut makes: but a part of the rows, or a fold in two
 * parts of K. */
static void spoil_cut(const uint32_t desc[16], uint32_t space,
		      uint32_t c[NPU_CONTEXT_WORDS], struct rng *g)
{
	uint32_t part = 1u << NPU_GET(desc, KCUT);
	const struct npu_progress p = {
		.t = NPU_GET(desc, DM), .k = part - 2, .kr = 3, .nc = 1, .r = 1};

	npu_golden_save(desc, space, &p, c);
	if (NPU_GET(desc, CIN) == part || p.t == 1 || rng_next(g) % 2)
		return;
	NPU_SET(c, FOLD_SUMS, 0);
	NPU_SET(c, FOLD_T, p.t - 1);
	if (rng_next(g) % 2)
		NPU_SET(c, FOLD_M, 1);
}

/* Sums that no tile of the descriptor has. */
static void spoil_sums(const uint32_t desc[16], uint32_t space,
		       uint32_t c[NPU_CONTEXT_WORDS], struct rng *g)
{
	const struct npu_progress p = {.t = NPU_GET(c, FOLD_T), .kr = 1, .nc = 1, .r = 1};

	npu_golden_save(desc, space, &p, c);
	switch (rng_range(g, 0, 6)) {
	case 0:
		NPU_SET(c, FOLD_NC, 0);
		break;
	case 1:
		NPU_SET(c, FOLD_NC, NPU_GET(desc, DN) < 32 ? NPU_GET(desc, DN) + 1 : 33);
		break;
	case 2:
		NPU_SET(c, FOLD_KR, 0);
		break;
	case 3:
		NPU_SET(c, FOLD_KR, 33);
		break;
	case 4:
		NPU_SET(c, FOLD_K, 65535);
		break;
	case 5:
		NPU_SET(c, FOLD_R, p.t + 1);
		break;
	default:
		NPU_SET(c, FOLD_R, 0);
		break;
	}
}

/* Each is a fault, and nothing is stored. */
static void no_contexts(struct rig *r, uint32_t rounds, uint64_t seed)
{
	for (uint32_t i = 0; i < rounds; i++) {
		struct rng g = {seed * 257 + i};
		uint32_t desc[16], c[NPU_CONTEXT_WORDS], save, pte, which = i % 14;
		struct npu_progress p = {.t = 1};

		one_desc(r, desc, which != 0, which == 12, &g);
		if (which && npu_golden_kcut(desc))
			p.t = NPU_GET(desc, DM);
		save = rig_alloc(r, 0, 4096 + 64, 4096);
		npu_golden_save(desc, r->space[0].number, &p, c);
		switch (which) {
		case 0: /* not the array's */
			break;
		case 1:
			memset(c, 0, sizeof(c));
			break;
		case 2:
			NPU_SET(c, FOLD_T, 0);
			break;
		case 3:
			NPU_SET(c, FOLD_T, NPU_GET(desc, PANEL) + 1);
			break;
		case 4:
			NPU_SET(c, FOLD_M, NPU_GET(desc, DM));
			break;
		case 5:
			NPU_SET(c, FOLD_M, NPU_GET(desc, DM) + (rng_next(&g) | 1u << 31));
			break;
		case 6:
			NPU_SET(c, FOLD_N, NPU_GET(desc, DN));
			break;
		case 7:
			c[rng_range(&g, 2, 4)] ^= 1u << rng_range(&g, 0, 31);
			break;
		case 8:
			c[5] ^= 1u << rng_range(&g, 0, 19);
			break;
		case 9:
			c[7] ^= 1u << rng_range(&g, 0, 23);
			break;
		case 10:
			spoil_sums(desc, r->space[0].number, c, &g);
			break;
		case 12:
			spoil_cut(desc, r->space[0].number, c, &g);
			break;
		case 11: /* no memory */
			pte = rig_pte(r, 0, save);
			rig_set_pte(r, 0, save, pte & ~(uint32_t)NPU_PTE_VALID);
			resume(r, save);
			expect_fault(r, i, NPU_FAULT_UNMAPPED, save);
			continue;
		default: /* beyond all memory */
			resume(r, 0xffffffc0u);
			expect_fault(r, i, NPU_FAULT_BOUNDS, 0xffffffc0u);
			continue;
		}
		rig_poke(r, 0, save, c, sizeof(c));
		resume(r, save);
		expect_fault(r, i, NPU_FAULT_CONTEXT, save);
	}
}

/* The same of VEC, which has whole rows and a piece's first column alone. */
static void no_vec_contexts(struct rig *r, uint32_t rounds, uint64_t seed)
{
	static const struct npu_progress none;

	for (uint32_t i = 0; i < rounds; i++) {
		struct rng g = {seed * 263 + i};
		uint32_t desc[16], c[NPU_CONTEXT_WORDS], save;

		one_desc(r, desc, false, false, &g);
		save = rig_alloc(r, 0, 64, 64);
		npu_golden_save(desc, r->space[0].number, &none, c);
		switch (i % 11) {
		case 0:
			NPU_SET(c, FOLD_T, 1u << rng_range(&g, 0, 13));
			break;
		case 1:
			NPU_SET(c, FOLD_HALF, 1);
			break;
		case 2:
			NPU_SET(c, FOLD_SUMS, 1);
			break;
		case 3:
			NPU_SET(c, FOLD_M, NPU_GET(desc, DM));
			break;
		case 4:
			NPU_SET(c, FOLD_M, 1u << rng_range(&g, 20, 31));
			break;
		case 5:
			NPU_SET(c, FOLD_N, (npu_golden_cols(desc) + 15) / 16 * 16);
			break;
		case 6:
			NPU_SET(c, FOLD_N, rng_range(&g, 1, 15));
			break;
		case 7: /* inside a row that is read again */
			while (NPU_GET(desc, VOP) != NPU_VOP_SOFTMAX ||
			       npu_golden_cols(desc) < 17)
				one_desc(r, desc, false, false, &g);
			save = rig_alloc(r, 0, 64, 64);
			npu_golden_save(desc, r->space[0].number, &none, c);
			NPU_SET(c, FOLD_N, 16);
			break;
		case 8:
			c[rng_range(&g, 2, 4)] ^= 1u << rng_range(&g, 0, 31);
			break;
		case 9:
			c[5] ^= 1u << rng_range(&g, 0, 19);
			break;
		default:
			c[7] ^= 1u << rng_range(&g, 0, 23);
			break;
		}
		rig_poke(r, 0, save, c, sizeof(c));
		resume(r, save);
		expect_fault(r, i, NPU_FAULT_CONTEXT, save);
	}
}

/* ---- save areas ---------------------------------------------------------------------- */

#define PAGE 4096u /* the rig's */

enum hole { UNMAPPED, READ_ONLY, FOREIGN, BEYOND, HOLES };

static const uint32_t hole_kinds[HOLES] = {NPU_FAULT_UNMAPPED, NPU_FAULT_WRITE,
					   NPU_FAULT_CHANNEL, NPU_FAULT_BOUNDS};

/* Slot 0's page at va: no page, one that may only be read, or slot 1's, on a channel that
 * slot 0 does not have.  BEYOND its space there is none. */
static void make_hole(struct rig *r, uint32_t va, enum hole hole)
{
	uint32_t pte;

	if (hole != BEYOND) {
		pte = rig_pte(r, 0, va);
		if (hole == UNMAPPED)
			pte &= ~(uint32_t)NPU_PTE_VALID;
		else if (hole == READ_ONLY)
			pte &= ~(uint32_t)NPU_PTE_WRITE;
		else
			pte = rig_pte(r, 1, va);
		rig_set_pte(r, 0, va, pte);
	}
	rig_write(r, NPU_GLB_AT(SLOT_CTRL, 0), NPU_REG_BITS(SLOT_CTRL_TLB_FLUSH, 1));
}

/* A multiplication in slot 0 whose tiles are of more than two folds each, and a neighbour
 * with something in its memory; slot 0's free pages.  channels 0: ideal memory. */
static uint32_t begin_long(struct rig *r, uint32_t channels, const struct rig_rect *rect,
			   uint32_t desc[16], struct rng *g)
{
	struct rig_memory cfg = channels ? rig_channels(channels) : rig_ideal(r);
	uint32_t at;

	rig_reset(r, &cfg);
	rig_place(r, 0, rect);
	rig_space(r, 0, WORK_SPACE, 0x5555);
	rig_space(r, 1, WORK_SPACE, 0xaaaa);
	rig_gemm_desc(r, 0, 400, 40, 4 * rect->rows + 1, desc, g);
	rig_push(r, 0, desc);
	rig_golden(r, 0);
	at = rig_alloc(r, 0, SAVE_BYTES + 2 * PAGE, PAGE);
	rig_random(r, 1, at, SAVE_BYTES + 2 * PAGE, g);
	rig_random(r, 1, WORK_SPACE - PAGE, PAGE, g);
	rig_bell(r, 0);
	rig_run(r, 1500 + rng_range(g, 0, 99));
	return at;
}

/* Stops it inside; with sums: until some go with the context, or a fault comes. */
static void stop_inside(struct rig *r, const struct rig_rect *rect, uint32_t mode,
			bool sums, struct rng *g)
{
	uint32_t save = rig_reg(r, NPU_SLOT_ADDR(0, SAVE)), c[NPU_CONTEXT_WORDS];

	for (uint32_t i = 0; i < 20; i++) {
		r->quieted &= ~1u;
		rig_write(r, NPU_SLOT_ADDR(0, PREEMPT), mode);
		wait_quiet(r, 0, r->api->cycle(r->model));
		rig_peek(r, 0, save, c, sizeof(c));
		if (r->faulted & 1 || !sums || NPU_GET(c, FOLD_SUMS))
			return;
		rig_place(r, 0, rect);
		rig_write(r, NPU_SLOT_ADDR(0, RESUME),
			  1 | NPU_REG_BITS(RESUME_CONTEXT, 1));
		rig_run(r, rng_range(g, 1, 400));
	}
	CHECK(false, "no SAVE finds a tile under way");
}

static void expect_hole(struct rig *r, const char *what, enum hole hole, uint32_t address)
{
	uint32_t kind = rig_reg(r, NPU_SLOT_ADDR(0, FAULT_KIND)),
		 at = rig_reg(r, NPU_SLOT_ADDR(0, FAULT_ADDR));

	CHECK(r->faulted & 1, "%s, hole %u: no fault", what, hole);
	CHECK(kind == hole_kinds[hole] && at == address,
	      "%s, hole %u: fault %u at %#x, not %u at %#x", what, hole, kind, at,
	      hole_kinds[hole], address);
	CHECK(NPU_REG_GET(rig_reg(r, NPU_SLOT_ADDR(0, STATUS)), STATUS_STATE) ==
			      NPU_STATE_FAULT &&
		      !rig_reg(r, NPU_SLOT_ADDR(0, FAULT_DESC)) &&
		      !rig_reg(r, NPU_SLOT_ADDR(0, HEAD)),
	      "%s, hole %u: not the fault of the descriptor at HEAD", what, hole);
}

/* The slot is as good as before, and the neighbour's memory what it was. */
static void good_again(struct rig *r, const struct rig_rect *rect,
		       const uint32_t desc[16])
{
	rig_restart(r, 0);
	rig_place(r, 0, rect);
	rig_push(r, 0, desc);
	rig_push_end(r, 0);
	rig_bell(r, 0);
	rig_wait(r, 1, LIMIT);
	CHECK(!r->faulted, "after a save area that is none: fault");
	rig_forget(r, 0, r->space[0].free_va - SAVE_BYTES - 2 * PAGE,
		   SAVE_BYTES + 2 * PAGE);
	rig_forget(r, 0, WORK_SPACE - PAGE, PAGE);
	rig_check(r, 0, "after a save area that is none");
	rig_compare(r, 1, "the neighbour of a save area that is none");
}

/* FOLD and SAVE where the context's page is no memory to be written; sums: SAVE where
 * the page behind it, which the sums run into, is none. */
static void no_area(struct rig *r, uint32_t mode, bool sums, enum hole hole,
		    uint64_t seed)
{
	struct rng g = {seed * 17 + hole};
	struct rig_rect rect = {0, 0, r->api->rows, r->api->cols};
	uint32_t desc[16], at = begin_long(r, 0, &rect, desc, &g) + PAGE;

	if (hole == BEYOND)
		at = WORK_SPACE;
	make_hole(r, at, hole);
	rig_write(r, NPU_SLOT_ADDR(0, SAVE), sums ? at - NPU_CONTEXT_SUMS : at);
	stop_inside(r, &rect, mode, sums, &g);
	expect_hole(r,
		    sums                       ? "sums"
		    : mode == NPU_PREEMPT_FOLD ? "FOLD"
					       : "SAVE",
		    hole, at);
	good_again(r, &rect, desc);
}

/* RESUME where the context, or the sums behind it, cannot be read any more.  A page that
 * may only be read is as good as any. */
static void no_way_back(struct rig *r, bool sums, enum hole hole, uint64_t seed)
{
	struct rng g = {seed * 19 + hole};
	struct rig_rect rect = {0, 0, r->api->rows, r->api->cols};
	uint32_t desc[16], at = begin_long(r, 0, &rect, desc, &g) + PAGE;

	rig_write(r, NPU_SLOT_ADDR(0, SAVE), sums ? at - NPU_CONTEXT_SUMS : at);
	stop_inside(r, &rect, NPU_PREEMPT_SAVE, sums, &g);
	CHECK(!r->faulted, "a save area that is good: fault");
	make_hole(r, at, hole);
	rig_place(r, 0, &rect);
	rig_push_end(r, 0);
	rig_bell(r, 0);
	rig_write(r, NPU_SLOT_ADDR(0, RESUME), 1 | NPU_REG_BITS(RESUME_CONTEXT, 1));
	rig_wait(r, 1, LIMIT);
	if (hole == READ_ONLY)
		CHECK(!r->faulted, "RESUME from a page that may only be read: fault");
	else
		expect_hole(r, sums ? "RESUME, sums" : "RESUME", hole, at);
	good_again(r, &rect, desc);
}

static void no_areas(struct rig *r, uint64_t seed)
{
	/* This one computes a tile's sums anew instead of reading them. */
	bool reads = strcmp(r->api->engine, "golden") != 0;

	for (enum hole hole = UNMAPPED; hole <= FOREIGN; hole++) {
		no_area(r, NPU_PREEMPT_FOLD, false, hole, seed);
		no_area(r, NPU_PREEMPT_SAVE, false, hole, seed);
		no_way_back(r, false, hole, seed);
		if (reads)
			no_way_back(r, true, hole, seed);
	}
	for (enum hole hole = UNMAPPED; hole < HOLES; hole++)
		no_area(r, NPU_PREEMPT_SAVE, true, hole, seed);
}

/* ---- what is another's, and what is nothing ------------------------------------------- */

/* Slot 0's context in slot 1's save area, and there a descriptor that differs in one word
 * or in all, or in none: a fault, and nothing is stored.  Only with slot 1's own number
 * in it, and the same descriptor, it is taken: what it says is stored is left out. */
static void others_context(struct rig *r, uint64_t seed)
{
	for (uint32_t i = 0; i < 8; i++) {
		struct rng g = {seed * 23 + i};
		struct rig_rect rect = {0, 0, r->api->rows, r->api->cols};
		struct rig_rect map[2] = {{0}, rect};
		uint32_t desc[16], other[16], c[NPU_CONTEXT_WORDS], at, kind, d;

		at = begin_long(r, 0, &rect, desc, &g);
		rig_write(r, NPU_SLOT_ADDR(0, SAVE), at);
		stop_inside(r, &rect, i % 2 ? NPU_PREEMPT_SAVE : NPU_PREEMPT_FOLD, i % 2,
			    &g);
		rig_peek(r, 0, at, c, sizeof(c));
		memcpy(other, desc, sizeof(other));
		d = NPU_GET(desc, ADDR_D);
		rig_random(r, 1, d, 4, &g);
		switch (i) {
		case 0:
			rig_gemm_desc(r, 1, 400, 41, 33, other, &g);
			break;
		case 1:
			NPU_SET(other, ADDR_B, NPU_GET(desc, ADDR_B) + 16);
			break;
		case 2:
			NPU_SET(other, ADDR_P, NPU_GET(desc, ADDR_P) ^ 16);
			break;
		case 3:
			NPU_SET(other, ADDR_D, d + 1);
			break;
		case 4:
			NPU_SET(other, DM, NPU_GET(desc, DM) - 1);
			break;
		case 5:
			NPU_SET(other, DN, NPU_GET(desc, DN) - 1);
			break;
		case 6:
			break;
		default:
			NPU_SET(c, FOLD_SPACE, r->space[1].number);
			break;
		}
		CHECK(rig_map(r, map, 2) == NPU_MAP_OK, "map");
		rig_push(r, 1, other);
		rig_push_end(r, 1);
		rig_poke(r, 1, at, c, sizeof(c));
		rig_write(r, NPU_SLOT_ADDR(1, SAVE), at);
		rig_write(r, NPU_SLOT_ADDR(1, RESUME), NPU_REG_BITS(RESUME_CONTEXT, 1));
		rig_bell(r, 1);
		rig_wait(r, 2, LIMIT);
		kind = rig_reg(r, NPU_SLOT_ADDR(1, FAULT_KIND));
		if (i < 7) {
			CHECK(r->faulted >> 1 & 1 && kind == NPU_FAULT_CONTEXT &&
				      rig_reg(r, NPU_SLOT_ADDR(1, FAULT_ADDR)) == at,
			      "another tenant's context %u: fault %u", i, kind);
			rig_compare(r, 1, "another tenant's context");
		} else {
			uint8_t first[4];

			rig_peek(r, 1, d, first, sizeof(first));
			CHECK(!(r->faulted >> 1 & 1), "with its number: fault %u", kind);
			CHECK(!memcmp(first, r->space[1].shadow + d, sizeof(first)),
			      "with its number: what the context says is stored is "
			      "stored again");
		}
		/* Who was stopped knows nothing of it. */
		rig_place(r, 0, &rect);
		rig_push_end(r, 0);
		rig_bell(r, 0);
		rig_write(r, NPU_SLOT_ADDR(0, RESUME),
			  1 | NPU_REG_BITS(RESUME_CONTEXT, 1));
		rig_wait(r, 1, LIMIT);
		CHECK(!(r->faulted & 1), "its own context: fault");
		rig_forget(r, 0, at, SAVE_BYTES);
		rig_check(r, 0, "its own context");
	}
}

/* Slot 0 inside a long multiplication, asked to stop; the cycle of that. */
static uint64_t ask_to_stop(struct rig *r, struct rig_rect *rect, uint32_t *at,
			    uint64_t seed)
{
	struct rng g = {seed};
	uint32_t desc[16];
	uint64_t start;

	*rect = (struct rig_rect){0, 0, r->api->rows, r->api->cols};
	*at = begin_long(r, 2, rect, desc, &g);
	rig_write(r, NPU_SLOT_ADDR(0, SAVE), *at);
	rig_gemm_desc(r, 0, 60, 40, 200, desc, &g); /* whose weights are loaded ahead */
	rig_push(r, 0, desc);
	rig_bell(r, 0);
	rig_run(r, rng_range(&g, 0, 2000));
	r->quieted &= ~1u;
	start = r->api->cycle(r->model);
	rig_write(r, NPU_SLOT_ADDR(0, PREEMPT),
		  seed % 4 ? NPU_PREEMPT_SAVE : NPU_PREEMPT_FOLD);
	return start;
}

/* A FOLD or SAVE that becomes a KILL in each cycle around that in which it has stopped
 * and has yet to store its context, and the sums: it is killed at once. */
static void late_kills(struct rig *r, uint32_t rounds, uint64_t seed)
{
	uint32_t killed = 0;

	for (uint32_t i = 0; i < rounds * 16; i++) {
		uint64_t start, from = seed * 31 + i / 16;
		uint32_t at, state;
		static uint64_t stops; /* so long after it is asked */
		struct rig_rect rect;

		start = ask_to_stop(r, &rect, &at, from);
		if (i % 16 == 0) {
			rig_wait_reg(r, NPU_SLOT_ADDR(0, STATUS), 15, NPU_STATE_STOPPING,
				     LIMIT);
			stops = r->api->cycle(r->model) - start;
			continue;
		}
		rig_run(r, stops > 16 ? stops - 16 + i % 16 : i % 16);
		start = r->api->cycle(r->model);
		rig_write(r, NPU_SLOT_ADDR(0, PREEMPT), NPU_PREEMPT_KILL);
		while (!(r->quieted & 1) && r->api->cycle(r->model) - start < LIMIT)
			rig_run(r, 1);
		start = r->api->cycle(r->model) - start;
		state = NPU_REG_GET(rig_reg(r, NPU_SLOT_ADDR(0, STATUS)), STATUS_STATE);
		CHECK(start < 400 && (state == NPU_STATE_KILLED || start < 4),
		      "round %u: killed %llu cycles later, state %u", i,
		      (unsigned long long)start, state);
		killed += state == NPU_STATE_KILLED;
		rig_place(r, 0, &rect);
		rig_push_end(r, 0);
		rig_bell(r, 0);
		rig_write(r, NPU_SLOT_ADDR(0, RESUME), 1);
		rig_wait(r, 1, LIMIT);
		CHECK(!(r->faulted & 1), "round %u: fault", i);
		rig_forget(r, 0, at, SAVE_BYTES);
		rig_check(r, 0, "a stop that becomes a kill");
	}
	CHECK(killed > rounds * 8, "%u of %u killed", killed, rounds * 15);
}

/* Codes of PREEMPT that are none, and RESUME while the slot runs: it ends in the very
 * cycle in which it ends without them. */
static void ignored(struct rig *r, uint32_t rounds, uint64_t seed)
{
	for (uint32_t i = 0; i < (rounds + 9) / 10; i++) {
		uint64_t end[2], writes = 0;

		for (uint32_t pass = 0; pass < 2; pass++) {
			struct rng g = {seed * 29 + i};
			struct tenant t;
			uint32_t stamp, state;

			begin(r, &t, &g);
			r->space[t.slot].tail--; /* a stamp ahead of the end */
			r->space[t.slot].done--;
			stamp = rig_push_stamp(r, t.slot);
			rig_push_end(r, t.slot);
			rig_bell(r, t.slot);
			while (pass &&
			       !((r->ended | r->quieted | r->faulted) >> t.slot & 1)) {
				uint32_t code = rng_range(&g, 4, 8) % 8;

				if (code == 4)
					rig_write(r, NPU_SLOT_ADDR(t.slot, RESUME),
						  1 | NPU_REG_BITS(RESUME_CONTEXT, 1));
				else
					rig_write(r, NPU_SLOT_ADDR(t.slot, PREEMPT),
						  code);
				writes++;
				state = NPU_REG_GET(
					rig_reg(r, NPU_SLOT_ADDR(t.slot, STATUS)),
					STATUS_STATE);
				CHECK(state == NPU_STATE_RUN || state == NPU_STATE_IDLE,
				      "state %u after code %u", state, code);
				rig_run(r,
					rng_range(&g, 0, rng_next(&g) % 2 ? 40 : 4000));
			}
			CHECK(!r->quieted, "not ignored: it stops");
			if (r->quieted)
				return;
			rig_wait(r, 1u << t.slot, LIMIT);
			CHECK(!r->faulted, "not ignored: fault");
			end[pass] = rig_stamp(r, t.slot, stamp);
			rig_check(r, t.slot, "writes that do nothing");
			rig_counters(r, t.slot, true);
		}
		CHECK(end[0] == end[1],
		      "seed %llu: it ends in cycle %llu, not %llu, with %llu writes that "
		      "do "
		      "nothing",
		      (unsigned long long)(seed * 29 + i), (unsigned long long)end[1],
		      (unsigned long long)end[0], (unsigned long long)writes);
	}
}

/* A window that is all padding but its first pixel: when that is stored, nothing is left
 * to wait for. */
static void padding(struct rig *r, uint64_t seed)
{
	struct rng g = {seed};
	struct rig_memory cfg = rig_ideal(r);
	uint32_t desc[16];
	uint64_t start, spent;

	rig_reset(r, &cfg);
	rig_space(r, 0, WORK_SPACE, RIG_ALL);
	do
		long_vec(r, 0, desc, false, &g);
	while (!pool(desc));
	NPU_SET(desc, DM, 1);
	NPU_SET(desc, OW, 1);
	NPU_SET(desc, H, 1);
	NPU_SET(desc, W, 1);
	NPU_SET(desc, KH, 255);
	NPU_SET(desc, KW, 255);
	NPU_SET(desc, PT, 0);
	NPU_SET(desc, PL, 0);
	NPU_SET(desc, CIN, 32); /* a piece */
	NPU_SET(desc, PIX, 32);
	rig_push(r, 0, desc);
	rig_push_end(r, 0);
	rig_bell(r, 0);
	rig_run(r, 300);
	start = r->api->cycle(r->model);
	rig_write(r, NPU_SLOT_ADDR(0, PREEMPT), NPU_PREEMPT_FOLD);
	spent = wait_quiet(r, 0, start);
	CHECK(spent < 100, "a stop takes %llu cycles of padding",
	      (unsigned long long)spent);
	CHECK(NPU_REG_GET(rig_reg(r, NPU_SLOT_ADDR(0, STATUS)), STATUS_STATE) ==
			      NPU_STATE_DRAINED &&
		      rig_reg(r, NPU_SLOT_ADDR(0, HEAD)) <= 1,
	      "not stopped behind the pool");
	rig_write(r, NPU_SLOT_ADDR(0, RESUME), 1);
	rig_wait(r, 1, LIMIT);
	rig_check(r, 0, "a pool of padding");
}

/* Multiplications of few rows, stopped again and again: of what a stop waits for there
 * is often one row alone, on its way through the array or behind it. */
static void few_rows(struct rig *r, uint32_t rounds, uint64_t seed)
{
	uint32_t inside = 0;

	for (uint32_t i = 0; i < rounds; i++) {
		struct rng g = {seed * 37 + i};
		struct rig_memory cfg = i % 4 ? rig_ideal(r) : work_memory(r, &g);
		struct rig_rect rect = rig_anywhere(r, &g);
		uint32_t desc[16], at, state, apart = rng_range(&g, 5, 60);

		rig_reset(r, &cfg);
		rig_place(r, 0, &rect);
		rig_space(r, 0, WORK_SPACE, RIG_ALL);
		at = rig_alloc(r, 0, SAVE_BYTES, 64);
		rig_write(r, NPU_SLOT_ADDR(0, SAVE), at);
		for (uint32_t n = rng_range(&g, 1, 3); n; n--) {
			rig_gemm_desc(r, 0, rng_range(&g, 1, 4), rng_range(&g, 1, 100),
				      rng_range(&g, 1, 3 * rect.rows), desc, &g);
			rig_push(r, 0, desc);
		}
		rig_push_end(r, 0);
		rig_bell(r, 0);
		rig_run(r, rng_range(&g, 1, 200));
		for (uint32_t n = 0; n < 50 && !((r->ended | r->faulted) & 1); n++) {
			r->quieted &= ~1u;
			rig_write(r, NPU_SLOT_ADDR(0, PREEMPT),
				  rng_next(&g) % 4 ? NPU_PREEMPT_FOLD : NPU_PREEMPT_SAVE);
			wait_quiet(r, 0, r->api->cycle(r->model));
			state = NPU_REG_GET(rig_reg(r, NPU_SLOT_ADDR(0, STATUS)),
					    STATUS_STATE);
			inside += state == NPU_STATE_FOLDED;
			rig_place(r, 0, &rect);
			rig_write(r, NPU_SLOT_ADDR(0, RESUME),
				  1 | NPU_REG_BITS(RESUME_CONTEXT,
						   state == NPU_STATE_FOLDED));
			rig_run(r, rng_range(&g, 1, 200) + apart);
		}
		rig_wait(r, 1, LIMIT);
		CHECK(!(r->faulted & 1), "few rows, round %u: fault", i);
		rig_forget(r, 0, at, SAVE_BYTES);
		rig_check(r, 0, "few rows");
	}
	CHECK(rounds < 4 || inside > rounds / 2, "%u stops inside few rows", inside);
}

int main(int argc, char **argv)
{
	bool figures = argc > 1 && !strcmp(argv[1], "figures");
	int at = 1 + figures;
	uint32_t rounds = argc > at ? (uint32_t)strtoul(argv[at], NULL, 0) : 100;
	uint64_t seed = argc > at + 1 ? strtoull(argv[at + 1], NULL, 0) : 1;
	const char *shape = argc > at + 2 ? argv[at + 2] : "16x16x4x8";
	struct mode modes[MODES] = {{0}};
	struct rig r;

	rig_open(&r, shape, UINT64_C(1) << 25);
	forged(&r, rounds, seed);
	no_contexts(&r, rounds, seed);
	no_vec_contexts(&r, rounds, seed);
	no_areas(&r, seed);
	others_context(&r, seed);
	few_rows(&r, (rounds + 3) / 4, seed);
	ignored(&r, rounds, seed);
	if (strcmp(r.api->engine, "golden") != 0) /* which stops in no time */
		late_kills(&r, (rounds + 9) / 10, seed);
	padding(&r, seed);
	for (uint32_t i = 0; i < rounds && bench_failures < 20; i++)
		network(&r, modes, seed + i);
	rig_close(&r);
	for (uint32_t i = 0; i < MODES; i++) {
		const struct mode *m = &modes[i];

		printf("%s: %llu stops, %llu inside an operation, PEs free within %llu "
		       "cycles, acknowledged within %llu\n",
		       names[i], (unsigned long long)m->trials,
		       (unsigned long long)m->inside, (unsigned long long)m->release,
		       (unsigned long long)m->ack);
		if (!figures)
			continue;
		printf("figure npu.preempt.%s.trials %llu\n", names[i],
		       (unsigned long long)m->trials);
		printf("figure npu.preempt.%s.mismatches %llu\n", names[i],
		       (unsigned long long)m->mismatches);
		printf("figure npu.preempt.%s.release_cycles_max %llu\n", names[i],
		       (unsigned long long)m->release);
		printf("figure npu.preempt.%s.ack_cycles_max %llu\n", names[i],
		       (unsigned long long)m->ack);
	}
	printf("inside VEC: %llu stops, %llu inside a row, %llu over its own input, %llu "
	       "went on in another slot; by VOP",
	       (unsigned long long)vecs.all, (unsigned long long)vecs.in_row,
	       (unsigned long long)vecs.in_place, (unsigned long long)vecs.elsewhere);
	for (uint32_t i = 0; i <= NPU_VOP_SOFTMAX; i++) {
		printf(" %llu", (unsigned long long)vecs.of[i]);
		CHECK(rounds < 60 || vecs.of[i], "no stop inside VOP %u", i);
	}
	printf("\n");
	if (rounds >= 30)
		CHECK(vecs.all > rounds / 2 && vecs.in_row && vecs.in_place &&
			      vecs.elsewhere,
		      "too few stops inside VEC, or none of a kind");
	if (rounds >= 20)
		CHECK(modes[FOLD].inside > rounds / 4, "%llu FOLDs inside an operation",
		      (unsigned long long)modes[FOLD].inside);
	return bench_end("bench_stop");
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * residue.c - what a tenant finds of the one before it inside the NPU: scratchpad,
 * accumulators, output tiles, parameters, tables, the PEs' weights, what is on its way.
 *
 *   residue [TRIALS [FIRST_SEED [SHAPE]]]
 *
 * The first tenant fills them with a secret and ends, is stopped (KILL, FOLD, DRAIN) or
 * faults at any moment.  The next has its PEs at once, in its slot or another, and runs
 * descriptors that no builder makes: fields beside their limits, windows beside the
 * image, pages with holes, tables P with groups beyond their pixel, contexts that are
 * none, stops of its own.  All of that is done twice, with two secrets: what the next
 * tenant can read afterwards, memory, registers and cycles, must be the same to the last
 * bit; nor is the secret itself in it, and the first one's memory is as it was.  As a
 * control, a next tenant whose own memory has the secret.
 */
#include <stdlib.h>
#include <string.h>

#include "work.h"

#define SPACE WORK_SPACE
/* Of the largest tile, on 16 columns at most. */
#define SAVE_BYTES (NPU_CONTEXT_SUMS + 512 * 64)
#define PROGRAMS   7u
#define DESCS      6u
#define LONG       6000u /* cycles that a program of the next tenant has */
#define LIMIT      4000000u
#define NUMBERS    256u /* the secret's words differ in their lowest byte */
#define HEAP       0x10000u
#define PAGE       0x1000u /* of a slot's registers */
#define ANY        UINT32_MAX

enum way { ENDED, KILLED, FOLDED, SAVED, DRAINED, FAULTED, WAYS };

enum attack { FIELDS, BESIDE, HOLES, TABLE, CONTEXT, STOPS, NOISE, ATTACKS };

static const char *const ways[WAYS] = {"ended", "killed",  "folded",
				       "saved", "drained", "faulted"};

/* All that the next tenant can know. */
struct known {
	uint8_t *memory;
	uint32_t regs[PAGE / 4];
	uint64_t cycle;
};

struct seen {
	uint32_t trials, programs, faults, changed, found, stores;
};

static uint32_t reg(struct rig *r, uint32_t s, uint32_t at)
{
	return rig_reg(r, NPU_SLOT_ADDR(s, RING_BASE) + at);
}

static uint32_t state_of(struct rig *r, uint32_t s)
{
	return NPU_REG_GET(rig_reg(r, NPU_SLOT_ADDR(s, STATUS)), STATUS_STATE);
}

/* Written, of the slot's tenants. */
static uint32_t beats(struct rig *r, uint32_t s)
{
	rig_write(r, NPU_GLB_PERF_SNAPSHOT_ADDR, 1);
	return rig_reg(r, NPU_SLOT_ADDR(s, CNT_WRITE_BEATS));
}

/* ---- the first tenant -------------------------------------------------------------- */

/* A VEC; of the trial's kind, if it has one. */
static void vec_desc(struct rig *r, uint32_t s, uint32_t kind, uint32_t desc[16],
		     struct rng *g)
{
	uint32_t from = r->space[s].free_va;

	do {
		r->space[s].free_va = from;
		rig_random_vec(r, s, desc, g);
	} while (kind != ANY && NPU_GET(desc, VOP) != kind);
}

static void put_secret(struct rig *r, uint32_t s, uint32_t from, uint32_t to,
		       uint64_t secret)
{
	for (uint32_t va = (from + 7) & ~7u; va + 8 <= to; va += 8) {
		uint64_t word = secret ^ (va / 8 % NUMBERS);

		rig_poke(r, s, va, &word, 8);
	}
}

/* Its operands are the secret, its table of int32 biases, too; other tables stay, with
 * the addresses and shifts that they hold. */
static void secret_desc(struct rig *r, uint32_t s, uint32_t kind, uint32_t desc[16],
			uint64_t secret, struct rng *g)
{
	struct rig_space *sp = &r->space[s];
	uint32_t from = sp->free_va, to, op;

	switch (kind != ANY ? 2 : rng_next(g) % 4) {
	case 0: /* all of the scratchpad */
		rig_gemm_desc(r, s, rng_range(g, 900, 1000), rng_range(g, 1, 24), 128,
			      desc, g);
		break;
	case 1:
		rig_gemm_desc(r, s, rng_range(g, 200, 500), rng_range(g, 20, 40),
			      rng_range(g, 16, 64), desc, g);
		if (NPU_GET(desc, F_NOPARAM) == 0) {
			NPU_SET(desc, F_OUT32, 1);
			NPU_SET(desc, LDD, NPU_GET(desc, DN) * 4);
			NPU_SET(desc, ADDR_D,
				rig_alloc(r, s, NPU_GET(desc, DM) * NPU_GET(desc, DN) * 4,
					  4));
		}
		break;
	case 2:
		vec_desc(r, s, kind, desc, g);
		break;
	default:
		rig_random_desc(r, s, desc, g);
		break;
	}
	to = sp->free_va;
	op = NPU_GET(desc, OPCODE);
	if (op == NPU_OP_GEMM || op == NPU_OP_CONV) {
		uint32_t p = NPU_GET(desc, ADDR_P);

		if (!NPU_GET(desc, F_NOPARAM)) {
			bool biases = NPU_GET(desc, F_OUT32) && !NPU_GET(desc, F_GROUP);

			if (biases)
				put_secret(r, s, p, p + 16 * NPU_GET(desc, DN), secret);
			to = p;
		}
		put_secret(r, s, from, to, secret);
	} else if (op == NPU_OP_VEC) {
		put_secret(r, s, from, to, secret);
	}
}

static void leave_secret(struct rig *r, uint32_t s, enum way way, uint32_t kind,
			 uint64_t secret, struct rng *g)
{
	static const uint32_t codes[WAYS] = {[KILLED] = NPU_PREEMPT_KILL,
					     [FOLDED] = NPU_PREEMPT_FOLD,
					     [SAVED] = NPU_PREEMPT_SAVE,
					     [DRAINED] = NPU_PREEMPT_DRAIN};
	uint32_t n = rng_range(g, 2, 5);

	rig_space(r, s, SPACE, RIG_ALL);
	rig_write(r, NPU_SLOT_ADDR(s, SAVE), rig_alloc(r, s, SAVE_BYTES, 64));
	for (uint32_t i = 0; i < n && SPACE - r->space[s].free_va > 2 * WORK_ROOM; i++) {
		uint32_t desc[16];

		secret_desc(r, s, kind, desc, secret, g);
		rig_push(r, s, desc);
	}
	if (way == FAULTED) {
		uint32_t desc[16];

		rig_gemm_desc(r, s, 400, 24, 64, desc, g);
		rig_set_pte(r, s, NPU_GET(desc, ADDR_A) + rng_range(g, 1, 5) * 4096, 0);
		rig_push(r, s, desc);
	}
	rig_push_end(r, s);
	rig_bell(r, s);
	if (way != ENDED && way != FAULTED) {
		rig_run(r, rng_range(g, 100, 6000));
		rig_write(r, NPU_SLOT_ADDR(s, PREEMPT), codes[way]);
		for (uint32_t i = 0; !((r->quieted | r->faulted) >> s & 1); i++) {
			if (i >= LIMIT) {
				printf("the first tenant cannot be stopped\n");
				exit(2);
			}
			rig_run(r, 1);
		}
	} else {
		rig_wait(r, 1u << s, LIMIT);
	}
}

/* ---- the next one ------------------------------------------------------------------ */

/* A field or two beside what is right, or beside what is allowed. */
static void other_fields(uint32_t desc[16], struct rng *g)
{
	for (uint32_t n = rng_range(g, 1, 3); n > 0; n--) {
		uint32_t word = rng_range(g, 5, 15);

		switch (rng_next(g) % 6) {
		case 0:
			desc[word] += rng_range(g, 0, 8) - 4;
			break;
		case 1:
			desc[word] ^= 1u << (rng_next(g) % 32);
			break;
		case 2:
			desc[0] ^= 1u << rng_range(g, 8, 31);
			break;
		case 3: /* the scratchpad's rows */
			NPU_SET(desc, SPS,
				NPU_GET(desc, SPS) + 64 * rng_range(g, 0, 4) - 128);
			break;
		case 4:
			NPU_SET(desc, CIN, NPU_GET(desc, CIN) + rng_range(g, 0, 40));
			break;
		default:
			NPU_SET(desc, H, NPU_GET(desc, H) + rng_range(g, 0, 6) - 3);
			NPU_SET(desc, W, NPU_GET(desc, W) + rng_range(g, 0, 6) - 3);
			break;
		}
	}
}

/* Grouped, the channels of some outputs near their pixel's end, or behind it. */
static void other_table(struct rig *r, uint32_t s, uint32_t desc[16], struct rng *g)
{
	struct rig_conv c = {.h = rng_range(g, 2, 16),
			     .w = rng_range(g, 2, 16),
			     .cin = rng_range(g, 1, 40),
			     .n = rng_range(g, 1, 40),
			     .kh = rng_range(g, 1, 3),
			     .kw = rng_range(g, 1, 3),
			     .sy = 1,
			     .sx = rng_range(g, 1, 2),
			     .dy = 1,
			     .dx = 1,
			     .out32 = rng_next(g) % 2,
			     .block = true};

	c.gc = rng_next(g) % 2 ? 1 : rng_range(g, 1, c.cin);
	c.oh = c.h;
	c.ow = (c.w + c.sx - 1) / c.sx;
	c.pt = rng_range(g, 0, c.kh - 1);
	c.pl = rng_range(g, 0, c.kw - 1);
	rig_conv_desc(r, s, &c, false, desc, g);
	for (uint32_t n = rng_range(g, 1, 3); n > 0; n--) {
		uint32_t at = c.cin - c.gc + rng_range(g, 0, 3);

		if (rng_next(g) % 2)
			at = rng_next(g);
		rig_poke(r, s, NPU_GET(desc, ADDR_P) + 16 * rng_range(g, 0, c.n - 1) + 12,
			 &at, 4);
	}
}

/* Windows that lie beside the image, which has become smaller, or has moved. */
static void beside(struct rig *r, uint32_t s, uint32_t desc[16], struct rng *g)
{
	rig_random_conv(r, s, desc, g);
	NPU_SET(desc, H, rng_range(g, 1, NPU_GET(desc, H)));
	NPU_SET(desc, W, rng_range(g, 1, NPU_GET(desc, W)));
	if (rng_next(g) % 2)
		NPU_SET(desc, PT, rng_range(g, 0, 40));
	if (rng_next(g) % 2)
		NPU_SET(desc, PL, rng_range(g, 0, 40));
}

static void hostile_desc(struct rig *r, uint32_t s, enum attack how, uint32_t kind,
			 uint32_t desc[16], struct rng *g)
{
	uint32_t from = r->space[s].free_va;

	if (how == TABLE) {
		other_table(r, s, desc, g);
		return;
	}
	if (how == BESIDE) {
		beside(r, s, desc, g);
		return;
	}
	if (how == NOISE) {
		for (uint32_t i = 0; i < 16; i++)
			desc[i] = rng_next(g);
		NPU_SET(desc, OPCODE, rng_range(g, 0, NPU_OP_VEC));
		for (uint32_t i = 1; i <= 4; i++)
			desc[i] = rng_range(g, HEAP, SPACE / 2) & ~15u;
		return;
	}
	if (kind != ANY && rng_next(g) % 4)
		vec_desc(r, s, kind, desc, g);
	else
		rig_random_desc(r, s, desc, g);
	if (how == FIELDS || (how != HOLES && rng_next(g) % 2))
		other_fields(desc, g);
	if (how == HOLES)
		rig_set_pte(r, s, rng_range(g, from, r->space[s].free_va - 1) & ~4095u,
			    0);
}

/* One of that descriptor, mostly; the progress is any. */
static void forge_context(struct rig *r, uint32_t s, uint32_t save, const uint32_t *desc,
			  struct rng *g)
{
	uint32_t context[16] = {0};

	memcpy(context + 2, desc + 2, 3 * 4);
	NPU_SET(context, DM, NPU_GET(desc, DM));
	NPU_SET(context, DN, NPU_GET(desc, DN));
	NPU_SET(context, FOLD_M, rng_range(g, 0, NPU_GET(desc, DM)));
	NPU_SET(context, FOLD_N, rng_range(g, 0, NPU_GET(desc, DN)));
	NPU_SET(context, FOLD_T, rng_range(g, 0, 40));
	NPU_SET(context, FOLD_HALF, rng_next(g));
	NPU_SET(context, FOLD_SPACE, r->space[s].number);
	if (rng_next(g) % 2) {
		NPU_SET(context, FOLD_SUMS, 1);
		NPU_SET(context, FOLD_K, rng_range(g, 0, 40));
		NPU_SET(context, FOLD_KR, rng_range(g, 1, 17));
		NPU_SET(context, FOLD_NC, rng_range(g, 1, 17));
		NPU_SET(context, FOLD_R, rng_range(g, 0, 20));
	}
	if (rng_next(g) % 4 == 0)
		context[rng_next(g) % NPU_CONTEXT_WORDS] ^= 1u << (rng_next(g) % 32);
	rig_poke(r, s, save, context, NPU_CONTEXT_WORDS * 4);
}

static void stop_or_go(struct rig *r, uint32_t s, struct rng *g)
{
	static const uint32_t codes[] = {NPU_PREEMPT_KILL, NPU_PREEMPT_FOLD,
					 NPU_PREEMPT_SAVE, NPU_PREEMPT_DRAIN};

	if (state_of(r, s) == NPU_STATE_RUN)
		rig_write(r, NPU_SLOT_ADDR(s, PREEMPT), codes[rng_next(g) % 4]);
	else
		rig_write(r, NPU_SLOT_ADDR(s, RESUME),
			  1 | NPU_REG_BITS(RESUME_CONTEXT,
					   state_of(r, s) == NPU_STATE_FOLDED ||
						   rng_next(g) % 8 == 0));
}

static void end_program(struct rig *r, uint32_t s)
{
	rig_run(r, LONG);
	for (uint32_t i = 0; i < LIMIT / 20; i++) {
		uint32_t state = state_of(r, s);

		if (state != NPU_STATE_RUN && state != NPU_STATE_STOPPING)
			return;
		if (i == 0)
			rig_write(r, NPU_SLOT_ADDR(s, PREEMPT), NPU_PREEMPT_KILL);
		rig_run(r, 20);
	}
	printf("a KILL has not been carried out\n");
	exit(2);
}

static void attack(struct rig *r, uint32_t s, uint32_t save, enum attack how,
		   uint32_t kind, struct rng *g, struct seen *seen)
{
	uint32_t desc[16], first[16] = {0}, n = rng_range(g, 1, DESCS);

	rig_restart(r, s);
	if (SPACE - r->space[s].free_va <= 2 * WORK_ROOM)
		rig_free_all(r, s);
	for (uint32_t i = 0; i < n && SPACE - r->space[s].free_va > 2 * WORK_ROOM; i++) {
		hostile_desc(r, s, how, kind, desc, g);
		if (i == 0)
			memcpy(first, desc, sizeof(first));
		rig_push(r, s, desc);
	}
	if (how == CONTEXT) {
		forge_context(r, s, save, first, g);
		rig_write(r, NPU_SLOT_ADDR(s, RESUME),
			  1 | NPU_REG_BITS(RESUME_CONTEXT, 1));
	}
	rig_bell(r, s);
	for (uint32_t i = 0; how == STOPS && i < 12; i++) {
		rig_run(r, rng_range(g, 1, 700));
		stop_or_go(r, s, g);
	}
	end_program(r, s);
	seen->programs++;
	seen->faults += state_of(r, s) == NPU_STATE_FAULT;
}

/* ---- trials ------------------------------------------------------------------------ */

/* The first tenant's memory, which stays as it is. */
struct left {
	uint32_t pages, *frame;
	uint8_t *bytes;
};

static void keep(const struct rig *r, uint32_t s, struct left *l)
{
	const struct rig_space *sp = &r->space[s];
	uint32_t page = 1u << r->cfg.gran;

	l->pages = sp->pages;
	l->frame = malloc(sp->pages * sizeof(*l->frame));
	l->bytes = malloc((size_t)sp->pages * page);
	if (!l->frame || !l->bytes)
		exit(2);
	memcpy(l->frame, sp->frame, sp->pages * sizeof(*l->frame));
	for (uint32_t p = 0; p < l->pages; p++)
		memcpy(l->bytes + (size_t)p * page,
		       r->memory + (size_t)l->frame[p] * page, page);
}

static bool is_kept(const struct rig *r, struct left *l)
{
	uint32_t page = 1u << r->cfg.gran;
	bool same = true;

	for (uint32_t p = 0; p < l->pages; p++)
		same &= !memcmp(l->bytes + (size_t)p * page,
				r->memory + (size_t)l->frame[p] * page, page);
	free(l->frame);
	free(l->bytes);
	return same;
}

/* Both tenants, with this secret; own: it is the next one's input. */
static void both(struct rig *r, uint64_t seed, uint64_t secret, bool own,
		 struct known *out, struct seen *seen)
{
	struct rng rng = {seed * 7919 + 3}, *g = &rng;
	struct rig_memory cfg = rng_next(g) % 2 ? rig_ideal(r) : work_memory(r, g);
	struct rig_rect all = {0, 0, r->api->rows, r->api->cols}, rect;
	uint32_t s = rng_range(g, 0, r->api->slots - 1), save, before;
	uint32_t kind = rng_next(g) % 3 ? ANY : rng_range(g, 0, NPU_VOP_SOFTMAX);
	struct left left;

	rig_reset(r, &cfg);
	rect = rng_next(g) % 2 ? all : rig_anywhere(r, g);
	rig_place(r, s, &rect);
	leave_secret(r, s, (enum way)(seed % WAYS), kind, secret, g);
	keep(r, s, &left);

	/* Straight away. */
	if (rng_next(g) % 4 == 0)
		s = (s + 1) % r->api->slots;
	if (rng_next(g) % 2)
		rect = rig_anywhere(r, g);
	rig_place(r, s, &rect);
	rig_space(r, s, SPACE, RIG_ALL);
	save = rig_alloc(r, s, SAVE_BYTES, 64);
	rig_write(r, NPU_SLOT_ADDR(s, SAVE), save);
	rig_random(r, s, HEAP, SPACE - HEAP, g);
	if (own)
		put_secret(r, s, SPACE - 8192, SPACE - 4096, secret);
	before = beats(r, s);
	for (uint32_t i = 0; i < PROGRAMS; i++) {
		enum attack how = (enum attack)((seed / WAYS + i) % ATTACKS);

		attack(r, s, save, how, kind, g, seen);
	}
	seen->stores += beats(r, s) != before;
	CHECK(is_kept(r, &left), "seed %llu: memory of the tenant before has changed",
	      (unsigned long long)seed);
	rig_peek(r, s, 0, out->memory, SPACE);
	for (uint32_t i = 0; i < PAGE / 4; i++)
		out->regs[i] = reg(r, s, i * 4);
	out->cycle = r->api->cycle(r->model);
}

static uint32_t find(const uint8_t *memory, uint64_t secret)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i + 8 <= SPACE; i++) {
		uint64_t word;

		memcpy(&word, memory + i, 8);
		n += (word ^ secret) < NUMBERS;
	}
	return n;
}

/* Whether the two secrets can be told apart. */
static bool trial(struct rig *r, uint64_t seed, bool own, struct seen *seen)
{
	static struct known known[2];
	struct rng g = {seed};
	uint64_t secret[2];
	bool same;

	for (uint32_t i = 0; i < 2; i++) {
		secret[i] = (uint64_t)rng_next(&g) << 32 | rng_next(&g);
		if (!known[i].memory && !(known[i].memory = malloc(SPACE)))
			exit(2);
		both(r, seed, secret[i], own, &known[i], seen);
		seen->found += find(known[i].memory, secret[i]);
	}
	same = !memcmp(known[0].memory, known[1].memory, SPACE) &&
	       !memcmp(known[0].regs, known[1].regs, sizeof(known[0].regs)) &&
	       known[0].cycle == known[1].cycle;
	seen->changed += !same;
	seen->trials++;
	return !same;
}

int main(int argc, char **argv)
{
	uint32_t trials = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 0) : 40;
	uint64_t first = argc > 2 ? strtoull(argv[2], NULL, 0) : 1;
	const char *shape = argc > 3 ? argv[3] : "8x8x4x8";
	struct seen seen = {0}, control = {0};
	struct rig r;

	rig_open(&r, shape, UINT64_C(1) << 24);
	for (uint32_t i = 0; i < trials; i++) {
		uint32_t found = seen.found;
		uint64_t seed = first + i;

		CHECK(!trial(&r, seed, false, &seen),
		      "seed %llu: the tenant before, %s, shows in what the next has",
		      (unsigned long long)seed, ways[seed % WAYS]);
		CHECK(seen.found == found, "seed %llu: %u words of the secret",
		      (unsigned long long)seed, seen.found - found);
	}
	trial(&r, first, true, &control);
	rig_close(&r);
	CHECK(control.changed == 1 && control.found >= 2 * 512,
	      "the control: a secret in the tenant's own memory is not noticed");
	CHECK(seen.stores > seen.trials, "few of the next tenants store anything");
	printf("%u trials, seeds %llu..%llu, on %s: of %u programs %u ended in a fault; "
	       "%u "
	       "trials differ, %u words of a secret\n",
	       seen.trials, (unsigned long long)first,
	       (unsigned long long)(first + trials - 1), shape, seen.programs,
	       seen.faults, seen.changed, seen.found);
	return bench_end("residue");
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_fields.c - descriptors as they are: every field of every operation at and beyond
 * its limits, one by one and two at a time, every bit, written raw into the ring.  RTL
 * against golden: kind and word of the fault or every byte of memory, no hang, and that
 * the next operation of the ring is right.
 *
 * Arguments: shape (16x16x4x8), of the sweep one case in so many (1: all), random pairs,
 * seed.  "figure": the sweep and pairs of the 5 x 7 machine with its assertions on.
 */
#include <stdlib.h>
#include <string.h>

#include "rig.h"

#define SPACE    0x40000u
#define LIMIT    40000u /* work beyond it is left out */
#define DEPTH    512u
#define ENOUGH   (1u << 25) /* bytes that golden touches behind a fault of memory */
#define COUNT(x) (sizeof(x) / sizeof((x)[0]))

enum { READ = 1, WRITTEN = 2, TWICE = 4, NEXT = 8 };

struct field {
	const char *name;
	uint32_t word, lsb, width;
};

#define F(f)                                                                             \
	{                                                                                \
#f, NPU_DESC_##f##_WORD, NPU_DESC_##f##_LSB, NPU_DESC_##f##_W            \
	}

static const struct field matrix_fields[] = {
	F(OPCODE), F(ADDR_A), F(ADDR_B), F(ADDR_P), F(ADDR_D), F(DM),  F(OW),
	F(PANEL),  F(DN),     F(CIN),    F(H),      F(W),      F(LDA), F(PIX),
	F(LDB),    F(LDD),    F(KCUT),   F(KH),     F(KW),     F(SY),  F(SX),
	F(DY),     F(DX),     F(PT),     F(PL),     F(ZPA),    F(ZPB), F(ZPO),
	F(AMIN),   F(AMAX),   F(QSHIFT), F(SPS),    F(F_ONCE),
};
static const struct field element_fields[] = {
	F(OPCODE), F(VOP),    F(ADDR_A),  F(ADDR_B),  F(ADDR_P),  F(ADDR_D),
	F(DM),     F(VCOLS),  F(VMULT1),  F(VMULT2),  F(LDA),     F(VLDB),
	F(LDD),    F(VMULTO), F(VSHIFT1), F(VSHIFT2), F(VSHIFTO), F(VLSHIFT),
	F(ZPO),    F(AMIN),   F(AMAX),    F(VZP1),    F(VZP2),
};
static const struct field pool_fields[] = {
	F(OPCODE), F(VOP), F(ADDR_A), F(ADDR_D), F(DM),   F(OW),   F(CIN), F(H),
	F(W),      F(LDA), F(PIX),    F(LDD),    F(KH),   F(KW),   F(SY),  F(SX),
	F(DY),     F(DX),  F(PT),     F(PL),     F(AMIN), F(AMAX),
};
static const struct field fence_fields[] = {
	F(OPCODE), F(ADDR_A), F(ADDR_D), F(SVALUE_LO), F(SVALUE_HI),
};

/* A descriptor that the machine can do, and what of it is swept. */
struct base {
	char name[24];
	uint32_t desc[16];
	const struct field *fields;
	uint32_t count;
};

struct bench {
	struct rig r;
	struct base bases[24];
	uint32_t count;
	uint32_t next[3][16]; /* what comes behind a case */
	/* Pages from first to before last may only be read, as may the ring's first. */
	uint32_t first, last;
	uint8_t *pristine, *marks;
	uint32_t memory_fault; /* the golden run met one */
	uint64_t accesses;     /* its bytes */
	uint8_t mark;          /* of what it writes, besides */
	uint64_t cases, refused, stopped, done, left_out, waits, mismatches;
	struct rng g;
};

/* ---- golden: memory with bounds and pages to read, all accesses marked --------------- */

static int refused(const struct bench *b, uint32_t va, uint32_t bytes, int write)
{
	if (va >= SPACE || bytes > SPACE - va)
		return (int)NPU_FAULT_BOUNDS;
	if (write &&
	    (va < 1u << b->r.cfg.gran || (va < b->last && va + bytes > b->first)))
		return (int)NPU_FAULT_WRITE;
	return 0;
}

/* Goes on behind a fault, so that all that an operation may touch is known; but not for
 * ever. */
static int met(struct bench *b, int kind, uint32_t va, uint32_t *bad)
{
	b->memory_fault |= 1u << kind;
	*bad = va;
	return b->accesses > ENOUGH ? kind : 0;
}

static int marked_read(void *user, uint32_t va, void *data, uint32_t bytes, uint32_t *bad)
{
	struct bench *b = user;
	int kind = refused(b, va, bytes, 0);

	b->accesses += bytes;
	if (kind) {
		memset(data, 0, bytes);
		return met(b, kind, va, bad);
	}
	memcpy(data, b->r.space[0].shadow + va, bytes);
	for (uint32_t i = 0; i < bytes; i++)
		b->marks[va + i] |= READ;
	return 0;
}

static int marked_write(void *user, uint32_t va, const void *data, uint32_t bytes,
			uint32_t *bad)
{
	struct bench *b = user;
	const uint8_t *from = data;
	int found = 0;

	b->accesses += bytes;
	for (uint32_t i = 0; i < bytes; i++) {
		uint32_t at = va + i;
		int kind = refused(b, at, 1, 1);

		if (kind) {
			found = kind;
			b->memory_fault |= 1u << kind;
			continue;
		}
		b->marks[at] |= b->mark | (b->marks[at] & WRITTEN ? TWICE : WRITTEN);
		b->r.space[0].shadow[at] = from[i];
	}
	return found ? met(b, found, va, bad) : 0;
}

static void golden(struct bench *b, const uint32_t desc[16], uint64_t time,
		   struct npu_golden_result *result)
{
	struct npu_golden_env env = {.user = b,
				     .read = marked_read,
				     .write = marked_write,
				     .time = time,
				     .rows = b->r.api->rows,
				     .cols = b->r.api->cols};

	npu_golden_exec(desc, &env, result);
}

/* ---- what golden does not say of a descriptor ---------------------------------------- */

static bool is_matrix(const uint32_t *d)
{
	return NPU_GET(d, OPCODE) == NPU_OP_GEMM || NPU_GET(d, OPCODE) == NPU_OP_CONV;
}

static bool is_pool(const uint32_t *d)
{
	return NPU_GET(d, OPCODE) == NPU_OP_VEC &&
	       (NPU_GET(d, VOP) == NPU_VOP_MAXPOOL || NPU_GET(d, VOP) == NPU_VOP_AVGPOOL);
}

/* The image as it is declared: a machine may read all of it. */
struct image {
	uint64_t rows, row_bytes;
};

static struct image image_of(const uint32_t *d)
{
	struct image v = {NPU_GET(d, DM), NPU_GET(d, CIN)};

	if (!is_matrix(d))
		return (struct image){0, 0};
	if (NPU_GET(d, OPCODE) == NPU_OP_GEMM)
		return v;
	v.rows = NPU_GET(d, W) ? NPU_GET(d, H) : 0;
	v.row_bytes += (uint64_t)(NPU_GET(d, W) - 1) * NPU_GET(d, PIX);
	return v;
}

/* Whether it leaves the space. */
static bool read_image(struct bench *b, const uint32_t *d)
{
	struct image v = image_of(d);
	bool outside = false;

	for (uint32_t i = 0; i < v.rows; i++) {
		uint32_t va = NPU_GET(d, ADDR_A) + i * NPU_GET(d, LDA);

		if (va >= SPACE || v.row_bytes > SPACE - va) {
			outside = true;
			continue;
		}
		for (uint32_t j = 0; j < v.row_bytes && NPU_GET(d, LDA) | !i; j++)
			b->marks[va + j] |= READ;
	}
	return outside;
}

/* Table P leads a group beyond its pixel: what it reads there is not said. */
static bool leaves_pixel(const struct bench *b, const uint32_t *d)
{
	uint32_t va = NPU_GET(d, ADDR_P), at;

	if (NPU_GET(d, OPCODE) != NPU_OP_CONV || !NPU_GET(d, F_GROUP))
		return false;
	for (uint32_t n = 0; n < NPU_GET(d, DN); n++, va += 16) {
		if (va > SPACE - 16)
			return true;
		memcpy(&at, b->r.space[0].shadow + va + 12, 4);
		if ((uint64_t)at + NPU_GET(d, GC) > NPU_GET(d, CIN))
			return true;
	}
	return false;
}

static uint64_t up(uint64_t a, uint64_t b)
{
	return (a + b - 1) / b;
}

/* About as many cycles as it takes, rather more. */
static uint64_t work(const struct bench *b, const uint32_t *d)
{
	uint64_t m = NPU_GET(d, DM), n = NPU_GET(d, DN), k = NPU_GET(d, CIN), t, cols;
	uint64_t h = b->r.api->rows, w = b->r.api->cols;
	struct image v = image_of(d);

	if (NPU_GET(d, OPCODE) == NPU_OP_VEC) {
		cols = NPU_GET(d, VCOLS);
		if (is_pool(d))
			cols = up(k, 32) * 16 *
			       ((uint64_t)NPU_GET(d, KH) * NPU_GET(d, KW) + 11);
		if (NPU_GET(d, VOP) == NPU_VOP_SOFTMAX)
			cols = cols * 40 + 600;
		return m * up(cols, 16) * 4;
	}
	if (!is_matrix(d))
		return 0;
	if (NPU_GET(d, OPCODE) == NPU_OP_CONV) {
		if (NPU_GET(d, F_GROUP))
			k = NPU_GET(d, GC) * 3;
		k *= (uint64_t)NPU_GET(d, KH) * NPU_GET(d, KW);
	}
	t = NPU_GET(d, PANEL) < DEPTH / 4 ? NPU_GET(d, PANEL) : DEPTH / 4;
	t = t < m ? t : m;
	return up(m, t) * up(n, w) * (up(k, h) * (t > h ? t : h) + 64 + 2 * t) * 2 +
	       v.rows * (v.row_bytes / 64 + 2);
}

/* A pool whose last windows lie below the image: up to the first of these. */
static bool shortened(const uint32_t *d, uint32_t out[16])
{
	uint64_t ow = NPU_GET(d, OW), lines;

	memcpy(out, d, 64);
	if (!is_pool(d))
		return false;
	lines = (NPU_GET(d, H) + NPU_GET(d, PT) - 1) / NPU_GET(d, SY) + 1;
	if (lines * ow >= NPU_GET(d, DM))
		return false;
	NPU_SET(out, DM, lines * ow);
	return true;
}

/* Where an operation may have stored before its input turned out not to fit. */
static void mark_outputs(struct bench *b, const uint32_t *d)
{
	uint32_t bytes = NPU_GET(d, DN) * (NPU_GET(d, F_OUT32) ? 4 : 1);

	for (uint32_t m = 0; m < NPU_GET(d, DM); m++) {
		uint32_t va = NPU_GET(d, ADDR_D) + m * NPU_GET(d, LDD);

		if ((b->accesses += bytes) > ENOUGH)
			return;
		for (uint32_t i = 0; i < bytes; i++, va++)
			if (!refused(b, va, 1, 1))
				b->marks[va] |= WRITTEN | TWICE;
	}
}

/* ---- one case ------------------------------------------------------------------------ */

static void fails(struct bench *b, const char *name, const uint32_t *d, const char *what,
		  uint32_t got, uint32_t want)
{
	CHECK(false, "%s: %s %#x, not %#x", name, what, got, want);
	b->mismatches++;
	if (b->mismatches > 20)
		return;
	for (int i = 0; i < 16; i++)
		printf(" %08x", d[i]);
	printf("\n");
}

static void restore(struct bench *b)
{
	struct rig_space *sp = &b->r.space[0];

	memcpy(sp->shadow, b->pristine, SPACE);
	for (uint32_t p = 0; p < sp->pages; p++)
		memcpy(b->r.memory + ((uint64_t)sp->frame[p] << b->r.cfg.gran),
		       b->pristine + (p << b->r.cfg.gran), 1u << b->r.cfg.gran);
	memset(b->marks, 0, SPACE);
}

static uint32_t state(struct bench *b)
{
	return NPU_REG_GET(rig_reg(&b->r, NPU_SLOT_ADDR(0, STATUS)), STATUS_STATE);
}

/* Until the ring's end, a fault, or for so long. */
static bool run(struct bench *b, uint64_t cycles)
{
	struct rig *r = &b->r;
	uint64_t end = r->api->cycle(r->model) + cycles;

	while (r->api->cycle(r->model) < end) {
		r->api->run(r->model, end - r->api->cycle(r->model));
		rig_write(r, NPU_GLB_IRQ_PEND_ADDR, UINT32_MAX);
		if (state(b) == NPU_STATE_FAULT ||
		    rig_reg(r, NPU_SLOT_ADDR(0, HEAD)) == r->space[0].tail)
			return true;
	}
	return false;
}

/* Byte by byte: what no rule lets differ.  partly: what it was before is right, too. */
static bool compare(struct bench *b, const char *name, const uint32_t *d, bool loose,
		    bool partly)
{
	struct rig_space *sp = &b->r.space[0];
	uint32_t page = 1u << b->r.cfg.gran;

	for (uint32_t p = 0; p < sp->pages; p++) {
		const uint8_t *got =
			b->r.memory + ((uint64_t)sp->frame[p] << b->r.cfg.gran);
		const uint8_t *want = sp->shadow + p * page,
			      *old = b->pristine + p * page;
		const uint8_t *mark = b->marks + p * page;

		bench_checks++;
		if (!memcmp(got, want, page))
			continue;
		for (uint32_t i = 0; i < page; i++) {
			if (got[i] == want[i] ||
			    (partly && got[i] == old[i] && mark[i] & WRITTEN))
				continue;
			if (mark[i] & WRITTEN && !(mark[i] & NEXT) &&
			    (loose || ((partly || is_matrix(d)) && mark[i] & TWICE)))
				continue;
			printf("at %#x: ", p * page + i);
			fails(b, name, d, "byte", got[i], want[i]);
			return false;
		}
	}
	return true;
}

static void push(struct bench *b, const uint32_t *d)
{
	rig_push(&b->r, 0, d);
}

/* The operation behind it, alone, after whatever stopped the ring. */
static void again(struct bench *b, const char *name, const uint32_t *d, const uint32_t *v)
{
	struct npu_golden_result result;

	restore(b);
	rig_restart(&b->r, 0);
	push(b, v);
	rig_push_end(&b->r, 0);
	golden(b, v, 0, &result);
	rig_bell(&b->r, 0);
	if (!run(b, 1u << 20) || state(b) == NPU_STATE_FAULT) {
		fails(b, name, d, "the next operation ends in state", state(b), 0);
		return;
	}
	memcpy(b->r.space[0].shadow + b->r.space[0].stamps + RIG_STAMPS * 64 - 8,
	       &(uint64_t){1}, 8);
	compare(b, name, v, false, false);
}

/* It has waited; the value comes, unless that would change the ring. */
static bool satisfy(struct bench *b, const char *name, const uint32_t *d)
{
	static const uint64_t all = UINT64_MAX;
	uint32_t status = rig_reg(&b->r, NPU_SLOT_ADDR(0, STATUS));

	b->waits++;
	if (!NPU_REG_GET(status, STATUS_WAITING) ||
	    rig_reg(&b->r, NPU_SLOT_ADDR(0, HEAD)) != 0)
		fails(b, name, d, "status of a WAIT", status, 0);
	if (NPU_GET(d, ADDR_A) < 1u << b->r.cfg.gran)
		return false;
	rig_poke(&b->r, 0, NPU_GET(d, ADDR_A), &all, 8);
	return run(b, 20000);
}

static void stop(struct bench *b)
{
	rig_write(&b->r, NPU_SLOT_ADDR(0, PREEMPT), NPU_PREEMPT_KILL);
	rig_run(&b->r, 4000);
	rig_write(&b->r, NPU_GLB_IRQ_PEND_ADDR, UINT32_MAX);
}

/* What golden says of a case. */
struct verdict {
	struct npu_golden_result result;
	bool wrong;    /* by its fields alone */
	bool empty;    /* a pool's last windows are */
	bool full;     /* a panel's input does not fit, or .stray */
	bool outside;  /* the declared image leaves the space */
	bool stray;    /* table P leads beyond a pixel, before it ran */
	bool rewrites; /* one or the other: it writes there, and nothing is said */
	bool loose;    /* it reads what it writes */
};

/* A fault of memory that is one. */
static bool is_true(const struct bench *b, uint32_t kind, uint32_t address)
{
	return (kind == NPU_FAULT_BOUNDS && address >= SPACE) ||
	       (kind == NPU_FAULT_WRITE &&
		refused(b, address, 1, 1) == (int)NPU_FAULT_WRITE);
}

/* The fault that RTL ended with against golden's.  Where it may meet one of memory first,
 * which of several is not said. */
static bool right_fault(struct bench *b, const char *name, const uint32_t *d,
			const struct verdict *v)
{
	const struct npu_golden_result *want = &v->result;
	bool touches =
		!v->wrong && (v->outside || v->full || v->stray || b->memory_fault);
	uint32_t kind = rig_reg(&b->r, NPU_SLOT_ADDR(0, FAULT_KIND));
	uint32_t address = rig_reg(&b->r, NPU_SLOT_ADDR(0, FAULT_ADDR));

	if (v->stray && !want->fault && !b->memory_fault) {
		fails(b, name, d, "golden's fault", 0, NPU_FAULT_FIELD);
		return false;
	}
	if (rig_reg(&b->r, NPU_SLOT_ADDR(0, FAULT_DESC)) != 0) {
		fails(b, name, d, "the next operation faults: kind", kind, 0);
		return false;
	}
	if ((kind == want->fault && address == want->address) ||
	    (touches && is_true(b, kind, address)) ||
	    (v->stray && kind == NPU_FAULT_FIELD && address == NPU_DESC_ADDR_P_WORD) ||
	    (v->empty && kind == NPU_FAULT_FIELD && address == NPU_DESC_PT_WORD))
		return true;
	fails(b, name, d, "fault (kind << 16 | address)", kind << 16 | (address & 0xffff),
	      want->fault << 16 | (want->address & 0xffff));
	return false;
}

/* On the shadow, after the machine: TIMESTAMP's time comes from there. */
static struct verdict expect(struct bench *b, const uint32_t *d, bool wrong)
{
	struct verdict v = {.wrong = wrong};
	uint32_t part[16];
	uint64_t time = 0;

	if (NPU_GET(d, OPCODE) == NPU_OP_TIMESTAMP && !wrong &&
	    !refused(b, NPU_GET(d, ADDR_D), 8, 1))
		rig_peek(&b->r, 0, NPU_GET(d, ADDR_D), &time, 8);
	if (wrong) {
		golden(b, d, time, &v.result);
		return v;
	}
	v.empty = shortened(d, part);
	v.stray = leaves_pixel(b, d);
	golden(b, part, time, &v.result);
	v.outside = read_image(b, d);
	v.full = v.result.fault == NPU_FAULT_FIELD && is_matrix(d);
	if (v.full)
		mark_outputs(b, d);
	v.rewrites = v.stray != leaves_pixel(b, d);
	v.loose = v.rewrites;
	for (uint32_t i = 0; i < SPACE && !v.loose; i++)
		v.loose = (b->marks[i] & READ) && (b->marks[i] & WRITTEN);
	return v;
}

/* The slot is at the ring's end or has a fault. */
static void judge(struct bench *b, const char *name, const uint32_t *d,
		  const struct verdict *v, const uint32_t *next)
{
	struct rig_space *sp = &b->r.space[0];
	struct npu_golden_result unused;
	bool stops = v->wrong || v->empty || v->full || v->stray || b->memory_fault;

	if (state(b) == NPU_STATE_FAULT) {
		b->refused += v->wrong;
		b->stopped += !v->wrong;
		if (!v->rewrites && right_fault(b, name, d, v) && b->accesses <= ENOUGH)
			compare(b, name, d, v->loose, !v->wrong);
		return;
	}
	if (stops && !v->rewrites) {
		fails(b, name, d, "no fault; golden's (kind << 16 | address), memory's",
		      v->result.fault << 16 | v->result.address, b->memory_fault);
		return;
	}
	b->done++;
	memcpy(sp->shadow + sp->stamps + RIG_STAMPS * 64 - 8, &(uint64_t){2}, 8);
	b->mark = NEXT;
	golden(b, next, 0, &unused);
	b->mark = 0;
	compare(b, name, d, v->loose, false);
}

static void one(struct bench *b, const char *name, const uint32_t *d, uint64_t limit)
{
	const uint32_t *next = b->next[b->cases++ % COUNT(b->next)];
	uint32_t word;
	bool wrong = npu_golden_check(d, &word) != 0, ended;
	uint64_t failed = b->mismatches, cycles = wrong ? 0 : work(b, d);
	struct verdict v;

	if (cycles > limit) {
		b->left_out++;
		return;
	}
	restore(b);
	b->memory_fault = 0;
	b->accesses = 0;
	rig_restart(&b->r, 0);
	push(b, d);
	push(b, next);
	rig_push_end(&b->r, 0);
	rig_bell(&b->r, 0);
	ended = run(b, NPU_GET(d, OPCODE) == NPU_OP_WAIT ? 4000 : 20000 + cycles * 8);
	v = expect(b, d, wrong);
	if (v.result.waiting && !b->memory_fault)
		ended = satisfy(b, name, d);
	if (ended)
		judge(b, name, d, &v, next);
	else if (!v.result.waiting)
		fails(b, name, d, "it hangs: head",
		      rig_reg(&b->r, NPU_SLOT_ADDR(0, HEAD)), 3);
	if (!ended)
		stop(b);
	if (!ended || failed != b->mismatches || state(b) == NPU_STATE_FAULT)
		again(b, name, d, next);
}

/* ---- what is swept ------------------------------------------------------------------- */

static void set(uint32_t d[16], const struct field *f, uint32_t value)
{
	npu_desc_set(d, f->word, f->lsb, f->width, value);
}

/* Value i of a field: the ends, what was there and its neighbours, powers of two and
 * theirs. */
static bool value(const struct field *f, const uint32_t *d, uint32_t i, uint32_t *v)
{
	uint32_t max = f->width == 32 ? UINT32_MAX : (1u << f->width) - 1;
	uint32_t own = d[f->word] >> f->lsb & max, n = i - 6, bit = n / 3;
	const uint32_t first[] = {0, 1, max - 1, max, own - 1, own + 1};

	if (i < COUNT(first)) {
		*v = first[i] & max;
		return true;
	}
	*v = (1u << (bit & 31u)) + n % 3 - 1;
	*v &= max;
	return bit < f->width;
}

static void sweep(struct bench *b, uint32_t one_in)
{
	char name[64];

	for (uint32_t i = 0; i < b->count; i++) {
		const struct base *base = &b->bases[i];
		uint32_t d[16], v;

		one(b, base->name, base->desc, LIMIT);
		for (uint32_t f = 0; f < base->count; f++)
			for (uint32_t j = 0; value(&base->fields[f], base->desc, j, &v);
			     j++) {
				if (rng_next(&b->g) % one_in)
					continue;
				memcpy(d, base->desc, 64);
				set(d, &base->fields[f], v);
				snprintf(name, sizeof(name), "%s %s %#x", base->name,
					 base->fields[f].name, v);
				one(b, name, d, LIMIT);
			}
		for (uint32_t bit = 0; bit < 512; bit++) {
			if (rng_next(&b->g) % one_in)
				continue;
			memcpy(d, base->desc, 64);
			d[bit / 32] ^= 1u << bit % 32;
			snprintf(name, sizeof(name), "%s word %u bit %u", base->name,
				 bit / 32, bit % 32);
			one(b, name, d, LIMIT);
		}
	}
}

/* ---- limits of several fields together ------------------------------------------------- */

/* Base, then fields and values; cases that take longer than those of the sweep. */
struct special {
	const char *name, *base;
	struct {
		struct field field;
		uint32_t value;
	} set[14];
};

static const struct special specials[] = {
	{"K 65535", "GEMM", {{F(CIN), 65535}, {F(DM), 1}, {F(DN), 1}, {F(LDB), 0}}},
	{"K 65536",
	 "CONV",
	 {{F(KH), 128}, {F(KW), 128}, {F(CIN), 4}, {F(DM), 1}, {F(LDB), 0}}},
	{"K 65535 by a kernel",
	 "CONV",
	 {{F(KH), 255},
	  {F(KW), 1},
	  {F(CIN), 257},
	  {F(DM), 1},
	  {F(DN), 1},
	  {F(LDB), 0},
	  {F(H), 2},
	  {F(W), 1},
	  {F(LDA), 257},
	  {F(SPS), 257}}},
	{"K 65536 by a kernel",
	 "CONV",
	 {{F(KH), 128},
	  {F(KW), 2},
	  {F(CIN), 256},
	  {F(DM), 1},
	  {F(DN), 1},
	  {F(LDB), 0},
	  {F(H), 2},
	  {F(W), 1},
	  {F(LDA), 256},
	  {F(SPS), 256}}},
	{"groups, K 65536",
	 "CONV groups",
	 {{F(KH), 128}, {F(KW), 128}, {F(GC), 4}, {F(CIN), 8}}},
	{"rows beyond 2^20",
	 "GEMM",
	 {{F(DM), 75000},
	  {F(DN), 1},
	  {F(CIN), 1},
	  {F(LDA), 0},
	  {F(SPS), 0},
	  {F(LDD), 1},
	  {F(ADDR_D), 0x20000}}},
	{"windows below 2^20",
	 "CONV blocks",
	 {{F(DM), 140000},
	  {F(OW), 1},
	  {F(H), 20},
	  {F(SY), 15},
	  {F(KH), 1},
	  {F(KW), 1},
	  {F(CIN), 1},
	  {F(DN), 1},
	  {F(LDD), 1},
	  {F(ADDR_D), 0x1d000},
	  {F(PT), 0},
	  {F(PL), 0}}},
	{"windows beyond 2^17",
	 "CONV blocks",
	 {{F(DM), 65535},
	  {F(OW), 65535},
	  {F(SX), 15},
	  {F(KH), 1},
	  {F(KW), 1},
	  {F(CIN), 1},
	  {F(DN), 1},
	  {F(LDD), 1},
	  {F(ADDR_D), 0x20000},
	  {F(PT), 0},
	  {F(PL), 0}}},
	{"rows far apart, one line", "CONV", {{F(LDA), 7}, {F(SPS), 0x6007}, {F(H), 5}}},
	{"rows as near as can be", "GEMM", {{F(LDA), 146}, {F(SPS), 82}}},
	{"rows a byte too near", "GEMM", {{F(LDA), 145}, {F(SPS), 81}}},
	{"rows a scratchpad apart", "GEMM", {{F(SPS), 131112}, {F(PANEL), 1}}},
	{"the longest row", "CONV blocks", {{F(H), 1}, {F(PIX), 26188}, {F(CIN), 4}}},
	{"a row too long", "CONV blocks", {{F(H), 1}, {F(PIX), 26188}, {F(CIN), 5}}},
	{"rows skipped",
	 "CONV blocks",
	 {{F(H), 1500},
	  {F(SY), 15},
	  {F(KH), 1},
	  {F(DM), 200},
	  {F(OW), 2},
	  {F(LDA), 64},
	  {F(SPS), 0xffc0},
	  {F(DN), 1},
	  {F(LDD), 1},
	  {F(PANEL), 1}}},
};

static void start_from(const struct bench *b, const char *name, uint32_t d[16])
{
	for (uint32_t i = 0; i < b->count; i++)
		if (!strcmp(b->bases[i].name, name))
			memcpy(d, b->bases[i].desc, 64);
}

/* Rows that no window sees: dropped as they come, few of them fit. */
static void rows_dropped(struct bench *b, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		uint32_t d[16];

		start_from(b, "CONV blocks", d);
		NPU_SET(d, H, 50);
		NPU_SET(d, SY, rng_range(&b->g, 2, 7));
		NPU_SET(d, KH, 1);
		NPU_SET(d, PT, 0);
		NPU_SET(d, PL, 0);
		NPU_SET(d, OW, rng_range(&b->g, 1, 2));
		NPU_SET(d, DM, 30);
		NPU_SET(d, DN, 1);
		NPU_SET(d, LDD, 1);
		NPU_SET(d, PANEL, 1);
		NPU_SET(d, LDA, 64 * rng_range(&b->g, 1, 64));
		NPU_SET(d, SPS, 0x4000u << rng_range(&b->g, 0, 2));
		one(b, "rows dropped", d, UINT32_MAX);
	}
}

/* Table P: where groups begin, at a pixel's end and beyond it; of the first column, of
 * its neighbour, of the last; and behind the table, where nobody looks. */
static void groups_begin(struct bench *b)
{
	uint32_t d[16], n, last;

	start_from(b, "CONV groups", d);
	n = NPU_GET(d, DN);
	last = NPU_GET(d, CIN) - NPU_GET(d, GC);
	for (uint32_t cols = n - 1; cols <= n; cols++) {
		const uint32_t row[] = {0, 1, cols - 1, cols};
		const uint32_t at[] = {last, last + 1, last + 0x20000, UINT32_MAX};

		NPU_SET(d, DN, cols);
		for (size_t i = 0; i < COUNT(row) * COUNT(at); i++) {
			uint8_t *p = b->pristine + NPU_GET(d, ADDR_P) +
				     row[i % COUNT(row)] * 16 + 12;
			uint32_t was;
			char name[64];

			memcpy(&was, p, 4);
			memcpy(p, &at[i / COUNT(row)], 4);
			snprintf(name, sizeof(name), "%u groups, at[%u] %#x", cols,
				 row[i % COUNT(row)], at[i / COUNT(row)]);
			one(b, name, d, UINT32_MAX);
			memcpy(p, &was, 4);
		}
	}
}

static void limits(struct bench *b)
{
	for (size_t i = 0; i < COUNT(specials); i++) {
		const struct special *s = &specials[i];
		uint32_t d[16];

		start_from(b, s->base, d);
		for (size_t j = 0; j < COUNT(s->set) && s->set[j].field.name; j++)
			set(d, &s->set[j].field, s->set[j].value);
		one(b, s->name, d, UINT32_MAX);
	}
	rows_dropped(b, 60);
	groups_begin(b);
}

static uint32_t change(struct bench *b, const struct base *base, uint32_t d[16])
{
	uint32_t i = rng_next(&b->g) % base->count, v;
	const struct field *f = &base->fields[i];

	if (!value(f, base->desc, rng_next(&b->g) % (6 + 3 * f->width), &v))
		v = 0;
	if (rng_next(&b->g) % 4 == 0)
		v = rng_next(&b->g) >> rng_next(&b->g) % 32;
	set(d, f, v);
	return i;
}

static void pairs(struct bench *b, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		const struct base *base = &b->bases[rng_next(&b->g) % b->count];
		uint32_t d[16], x, y;
		char name[64];

		memcpy(d, base->desc, 64);
		x = change(b, base, d);
		y = change(b, base, d);
		snprintf(name, sizeof(name), "pair %u: %s %s, %s", i, base->name,
			 base->fields[x].name, base->fields[y].name);
		one(b, name, d, LIMIT);
	}
}

/* ---- bases ---------------------------------------------------------------------------- */

static struct base *add(struct bench *b, const char *name, const uint32_t *d,
			const struct field *fields, uint32_t count)
{
	struct base *base = &b->bases[b->count++];

	snprintf(base->name, sizeof(base->name), "%s", name);
	memcpy(base->desc, d, 64);
	base->fields = fields;
	base->count = count;
	return base;
}

/* Clamps and shifts that let most bits through. */
static void open_wide(uint32_t d[16])
{
	NPU_SET(d, AMIN, NPU_GET(d, F_OU8) ? 0 : 128);
	NPU_SET(d, AMAX, NPU_GET(d, F_OU8) ? 255 : 127);
}

static void add_matrix(struct bench *b, const char *name, const struct rig_conv *c,
		       bool gemm)
{
	uint32_t d[16];

	rig_conv_desc(&b->r, 0, c, gemm, d, &b->g);
	if (!c->out32)
		open_wide(d);
	add(b, name, d, matrix_fields, COUNT(matrix_fields));
}

static void matrix_bases(struct bench *b)
{
	struct rig_conv gemm = rig_matrix(13, 9, 19);
	struct rig_conv conv = {.h = 7,
				.w = 6,
				.cin = 3,
				.pix = 4,
				.oh = 4,
				.ow = 3,
				.n = 9,
				.kh = 3,
				.kw = 2,
				.sy = 2,
				.sx = 2,
				.dy = 1,
				.dx = 2,
				.pt = 1,
				.pl = 1,
				.bu8 = true};
	struct rig_conv group = conv;

	gemm.lda = 40;
	add_matrix(b, "GEMM", &gemm, true);
	gemm.block = gemm.noparam = gemm.au8 = true;
	gemm.lda = 0;
	add_matrix(b, "GEMM blocks", &gemm, true);
	gemm.noparam = false;
	gemm.out32 = true;
	gemm.panel = 5;
	add_matrix(b, "GEMM int32", &gemm, true);
	gemm.kcut = 8;
	gemm.cin = 600;
	gemm.panel = 0;
	add_matrix(b, "GEMM in parts", &gemm, true);
	add_matrix(b, "CONV", &conv, false);
	conv.noparam = conv.block = conv.ou8 = true;
	conv.lda = 100;
	add_matrix(b, "CONV blocks", &conv, false);
	conv.onnx = true;
	add_matrix(b, "CONV float", &conv, false);
	conv.onnx = false;
	conv.once = true;
	add_matrix(b, "CONV once", &conv, false);
	group.block = true;
	group.gc = 1;
	add_matrix(b, "CONV depthwise", &group, false);
	group.gc = 2;
	group.out32 = true;
	add_matrix(b, "CONV groups", &group, false);
}

static void vec_bases(struct bench *b)
{
	static const char *const names[] = {"COPY", "FILL",    "ADD", "RELU",   "MAXPOOL",
					    "MUL",  "AVGPOOL", "LUT", "SOFTMAX"};
	uint32_t seen = 0;

	while (seen != (1u << COUNT(names)) - 1) {
		uint32_t d[16], vop, at = b->r.space[0].free_va;

		rig_random_vec(&b->r, 0, d, &b->g);
		vop = NPU_GET(d, VOP);
		if (seen >> vop & 1 || work(b, d) > 3000 || NPU_GET(d, DM) < 3 ||
		    (is_pool(d) &&
		     (NPU_GET(d, KH) < 2 || NPU_GET(d, KW) < 2 || NPU_GET(d, OW) < 2 ||
		      NPU_GET(d, OW) >= NPU_GET(d, DM)))) {
			b->r.space[0].free_va = at;
			continue;
		}
		seen |= 1u << vop;
		if (is_pool(d))
			add(b, names[vop], d, pool_fields, COUNT(pool_fields));
		else
			add(b, names[vop], d, element_fields, COUNT(element_fields));
	}
}

static void fence_bases(struct bench *b)
{
	static const uint32_t ops[] = {NPU_OP_NOP, NPU_OP_SIGNAL, NPU_OP_WAIT,
				       NPU_OP_TIMESTAMP};
	static const char *const names[] = {"NOP", "SIGNAL", "WAIT", "TIMESTAMP"};
	static const uint32_t low[2] = {0x1000, 0x20};
	uint32_t at = rig_alloc(&b->r, 0, 64, 64);

	rig_poke(&b->r, 0, at, low, 8);
	for (uint32_t i = 0; i < COUNT(ops); i++) {
		uint32_t d[16] = {0};

		NPU_SET(d, OPCODE, ops[i]);
		NPU_SET(d, ADDR_A, at);
		NPU_SET(d, ADDR_D, at + 8);
		NPU_SET(d, SVALUE_LO, 0x1000);
		NPU_SET(d, SVALUE_HI, 0x20);
		add(b, names[i], d, fence_fields, COUNT(fence_fields));
	}
}

/* Three operations whose inputs no case can change, and outputs of their own. */
static void next_ones(struct bench *b)
{
	struct rig_conv conv = {.h = 4,
				.w = 4,
				.cin = 3,
				.oh = 3,
				.ow = 3,
				.n = 5,
				.kh = 2,
				.kw = 2,
				.sy = 1,
				.sx = 1,
				.dy = 1,
				.dx = 1,
				.gc = 1,
				.block = true};
	uint32_t page = 1u << b->r.cfg.gran, d, vop;

	b->first = rig_alloc(&b->r, 0, 0, page);
	rig_gemm_desc(&b->r, 0, 6, 9, 12, b->next[0], &b->g);
	rig_conv_desc(&b->r, 0, &conv, false, b->next[1], &b->g);
	do {
		rig_random_vec(&b->r, 0, b->next[2], &b->g);
		vop = NPU_GET(b->next[2], VOP);
	} while (vop != NPU_VOP_ADD || work(b, b->next[2]) > 600);
	b->last = rig_alloc(&b->r, 0, 0, page);
	d = rig_alloc(&b->r, 0, page, page);
	for (uint32_t i = 0; i < COUNT(b->next); i++) {
		NPU_SET(b->next[i], ADDR_D, d);
		open_wide(b->next[i]);
	}
	for (uint32_t va = 0; va < b->last; va = va ? va + page : b->first)
		rig_set_pte(&b->r, 0, va,
			    rig_pte(&b->r, 0, va) & ~(uint32_t)NPU_PTE_WRITE);
}

static void prepare(struct bench *b)
{
	struct rig_memory cfg = rig_channels(b->r.api->channels);
	struct rig_rect whole = {0, 0, b->r.api->rows, b->r.api->cols};
	uint32_t fill;

	rig_reset(&b->r, &cfg);
	CHECK(rig_map(&b->r, &whole, 1) == NPU_MAP_OK, "map");
	rig_space(&b->r, 0, SPACE, RIG_ALL);
	matrix_bases(b);
	vec_bases(b);
	fence_bases(b);
	next_ones(b);
	fill = b->r.space[0].free_va;
	rig_random(&b->r, 0, fill, SPACE - fill, &b->g);
	b->pristine = malloc(SPACE);
	b->marks = malloc(SPACE);
	if (!b->pristine || !b->marks)
		exit(2);
	memcpy(b->pristine, b->r.space[0].shadow, SPACE);
}

int main(int argc, char **argv)
{
	bool figure = argc > 1 && !strcmp(argv[1], "figure");
	const char *shape = figure     ? "5x7x3x6_asserted"
			    : argc > 1 ? argv[1]
				       : "16x16x4x8";
	uint32_t one_in = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 0) : 1;
	uint32_t count = argc > 3 ? (uint32_t)strtoul(argv[3], NULL, 0) : 1000;
	struct bench b = {.g = {argc > 4 ? strtoull(argv[4], NULL, 0) : 1}};

	rig_open(&b.r, shape, UINT64_C(1) << 20);
	prepare(&b);
	limits(&b);
	sweep(&b, one_in ? one_in : 1);
	pairs(&b, count);
	printf("%s: %llu descriptors: %llu refused, %llu stopped by memory, %llu done, "
	       "%llu "
	       "waited, %llu too long; %llu mismatches, %llu cycles\n",
	       shape, (unsigned long long)b.cases, (unsigned long long)b.refused,
	       (unsigned long long)b.stopped, (unsigned long long)b.done,
	       (unsigned long long)b.waits, (unsigned long long)b.left_out,
	       (unsigned long long)b.mismatches,
	       (unsigned long long)b.r.api->cycle(b.r.model));
	if (figure)
		printf("figure npu.fields.mismatches %llu\n",
		       (unsigned long long)b.mismatches);
	free(b.pristine);
	free(b.marks);
	rig_close(&b.r);
	return bench_end("bench_fields");
}

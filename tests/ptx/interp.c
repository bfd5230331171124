/* SPDX-License-Identifier: Apache-2.0 */
/* The interpreter: statements are decoded once, threads run until they wait or end. */
#define _GNU_SOURCE
#include "interp.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lex.h"

#define SHARED_WINDOW   UINT64_C(0x100000000)
#define LOCAL_WINDOW    UINT64_C(0x200000000)
#define WINDOW_BYTES    UINT64_C(0x1000000)
#define STEPS_MOST      UINT64_C(50000000)
#define WARP            32u
#define CLUSTER_BARRIER 16u
#define STACK_BYTES     512u /* what alloca has, behind local variables */

enum type { U8, U16, U32, U64, S8, S16, S32, S64, F16, F32, F64, PRED, NO_TYPE };

enum code {
	C_ABS,
	C_ACTIVEMASK,
	C_ALLOCA,
	C_ADD,
	C_AND,
	C_ATOM,
	C_BAR,
	C_BFE,
	C_BFI,
	C_BFIND,
	C_BRA,
	C_BREV,
	C_CALL,
	C_CLZ,
	C_CNOT,
	C_COPYSIGN,
	C_COS,
	C_CPASYNC,
	C_CVT,
	C_CVTA,
	C_DIV,
	C_DP4A,
	C_EX2,
	C_FMA,
	C_ISSPACEP,
	C_LD,
	C_LG2,
	C_LOP3,
	C_MAD,
	C_MAPA,
	C_MAX,
	C_MBARRIER,
	C_MIN,
	C_MOV,
	C_MUL,
	C_NEG,
	C_NOP,
	C_NOT,
	C_OR,
	C_POPC,
	C_PRMT,
	C_RCP,
	C_REDUX,
	C_REM,
	C_RET,
	C_RSQRT,
	C_SAD,
	C_SELP,
	C_SETP,
	C_SHF,
	C_SHFL,
	C_SHL,
	C_SHR,
	C_SIN,
	C_SLCT,
	C_SQRT,
	C_STACKRESTORE,
	C_STACKSAVE,
	C_ST,
	C_SUB,
	C_TANH,
	C_TRAP,
	C_VOTE,
	C_XOR
};

static const struct {
	const char *name;
	enum code code;
} codes[] = {
	{"abs", C_ABS},
	{"activemask", C_ACTIVEMASK},
	{"add", C_ADD},
	{"alloca", C_ALLOCA},
	{"and", C_AND},
	{"atom", C_ATOM},
	{"red", C_ATOM},
	{"bar", C_BAR},
	{"barrier", C_BAR},
	{"bfe", C_BFE},
	{"bfi", C_BFI},
	{"bfind", C_BFIND},
	{"bra", C_BRA},
	{"brev", C_BREV},
	{"call", C_CALL},
	{"clz", C_CLZ},
	{"cnot", C_CNOT},
	{"copysign", C_COPYSIGN},
	{"cos", C_COS},
	{"cp", C_CPASYNC},
	{"cvt", C_CVT},
	{"cvta", C_CVTA},
	{"div", C_DIV},
	{"dp4a", C_DP4A},
	{"ex2", C_EX2},
	{"exit", C_RET},
	{"fence", C_NOP},
	{"fma", C_FMA},
	{"isspacep", C_ISSPACEP},
	{"ld", C_LD},
	{"griddepcontrol", C_NOP},
	{"ldu", C_LD},
	{"lg2", C_LG2},
	{"lop3", C_LOP3},
	{"mad", C_MAD},
	{"mapa", C_MAPA},
	{"max", C_MAX},
	{"mbarrier", C_MBARRIER},
	{"membar", C_NOP},
	{"min", C_MIN},
	{"mov", C_MOV},
	{"mul", C_MUL},
	{"nanosleep", C_NOP},
	{"neg", C_NEG},
	{"not", C_NOT},
	{"or", C_OR},
	{"popc", C_POPC},
	{"prefetch", C_NOP},
	{"prefetchu", C_NOP},
	{"prmt", C_PRMT},
	{"rcp", C_RCP},
	{"redux", C_REDUX},
	{"rem", C_REM},
	{"ret", C_RET},
	{"rsqrt", C_RSQRT},
	{"sad", C_SAD},
	{"selp", C_SELP},
	{"setp", C_SETP},
	{"shf", C_SHF},
	{"shfl", C_SHFL},
	{"shl", C_SHL},
	{"shr", C_SHR},
	{"sin", C_SIN},
	{"slct", C_SLCT},
	{"sqrt", C_SQRT},
	{"st", C_ST},
	{"stackrestore", C_STACKRESTORE},
	{"stacksave", C_STACKSAVE},
	{"sub", C_SUB},
	{"tanh", C_TANH},
	{"trap", C_TRAP},
	{"vote", C_VOTE},
	{"xor", C_XOR},
};

enum kind { K_NONE, K_REGISTER, K_VALUE, K_SPECIAL, K_LIST, K_ADDRESS, K_PAIR };

struct operand {
	enum kind kind;
	bool not ;
	uint32_t slot, bits;
	uint64_t value; /* or what is added to an address */
	uint32_t count, slots[4], widths[4];
};

struct op {
	enum code code;
	enum type type, second; /* of the instruction's last dot, and the one before */
	const struct ptx_statement *s;
	int guard; /* slot; -1: none */
	bool guard_not;
	uint32_t lanes;
	enum ptx_space space;
	char word[12]; /* what the code's dots say: add, cas, lt, wide ... */
	char join[4];  /* and, or, xor, of setp */
	bool unordered;
	uint32_t count, target;
	struct operand o[6];
};

enum state { RUNS, AT_BARRIER, IN_WARP, ENDED };

struct thread {
	uint64_t *r;
	uint8_t *local;
	uint32_t pc, tid[3], barrier, expected;
	uint64_t stack; /* bytes in use */
	bool vote;
	enum state state;
};

struct run {
	const struct ptx *m;
	const struct ptx_function *f;
	struct interp_launch *l;
	struct op *ops;
	uint32_t *slots; /* first of each register of f */
	uint32_t slot_count;
	uint32_t *shared_at; /* of each variable; constants too */
	uint32_t shared_static, local_bytes, const_bytes;
	uint8_t *shared, *constants;
	struct thread *threads;
	uint32_t thread_count, ctaid[3];
	uint64_t steps, instructions; /* labels and declarations are steps, too */
	char *why;
	int err;
};

static const uint32_t type_bits[] = {8, 16, 32, 64, 8, 16, 32, 64, 16, 32, 64, 1, 0};

static void fail(struct run *r, const struct op *op, const char *what)
{
	if (!r->err)
		r->err = ptx_fail(r->why, EIO, "line %u: %s",
				  op ? r->m->tokens[op->s->first].line : 0, what);
}

/* ---- decoding -------------------------------------------------------------------------- */

static enum type type_of(const struct ptx *m, uint32_t token)
{
	static const struct {
		const char *dot;
		enum type type;
	} types[] = {
		{".u8", U8},   {".b8", U8},   {".u16", U16}, {".b16", U16},
		{".u32", U32}, {".b32", U32}, {".u64", U64}, {".b64", U64},
		{".s8", S8},   {".s16", S16}, {".s32", S32}, {".s64", S64},
		{".f16", F16}, {".f32", F32}, {".f64", F64}, {".pred", PRED},
	};
	size_t i;

	for (i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (ptx_is(m, token, types[i].dot))
			return types[i].type;
	return NO_TYPE;
}

/* A cluster is one block. */
static const char *const specials[] = {
	"%tid",        "%ntid",   "%ctaid",           "%nctaid",
	"%laneid",     "%warpid", "%cluster_ctarank", "%cluster_nctarank",
	"%globaltimer"};
#define SPECIALS (sizeof(specials) / sizeof(specials[0]))
#define STEP_NS  1000u /* that an instruction takes, for who looks at the time */

static bool decode_special(struct run *r, uint32_t token, struct operand *o)
{
	uint32_t i;

	for (i = 0; i < SPECIALS; i++) {
		if (!ptx_is(r->m, token, specials[i]))
			continue;
		o->kind = K_SPECIAL;
		o->slot = i;
		o->bits = ptx_is(r->m, token + 1, ".y")   ? 1
			  : ptx_is(r->m, token + 1, ".z") ? 2
							  : 0;
		return true;
	}
	return false;
}

static bool slot_of(struct run *r, uint32_t number, uint32_t token, uint32_t *slot,
		    uint32_t *bits)
{
	const struct ptx_register *g = ptx_register_of(r->m, r->f, number, token);
	uint32_t n = 0;

	if (!g)
		return false;
	if (g->count)
		n = (uint32_t)strtoul(ptx_at(r->m, token) + g->name_bytes, NULL, 10);
	*slot = r->slots[g - &r->m->registers[r->f->first_register]] + n;
	*bits = g->bits;
	return true;
}

/* The address of a variable in its space. */
static bool place_of(struct run *r, uint32_t number, uint32_t token, uint64_t *value)
{
	const struct ptx_variable *v = ptx_variable_of(r->m, r->f, number, token);
	const struct ptx_variable *p;
	uint64_t at = 0;
	uint32_t i;

	if (!v)
		return false;
	if (v->space != PTX_PARAM) {
		*value = r->shared_at[v - r->m->variables];
		return true;
	}
	for (i = 0; i < r->f->params; i++) {
		p = &r->m->variables[r->f->first_param + i];
		at = (at + p->align - 1) / p->align * p->align;
		if (p == v)
			break;
		at += p->bytes;
	}
	*value = at;
	return true;
}

static uint64_t of_double(double v)
{
	uint64_t u;

	memcpy(&u, &v, sizeof(u));
	return u;
}

static double to_double(uint64_t u)
{
	double v;

	memcpy(&v, &u, sizeof(v));
	return v;
}

static uint64_t of_float(float v)
{
	uint32_t u;

	memcpy(&u, &v, sizeof(u));
	return u;
}

static float to_float(uint64_t u)
{
	const uint32_t w = (uint32_t)u;
	float v;

	memcpy(&v, &w, sizeof(v));
	return v;
}

static bool decode_value(struct run *r, uint32_t first, uint32_t count, enum type type,
			 uint64_t *value)
{
	const char *t = ptx_at(r->m, first);
	bool minus = false;
	int64_t v;

	if (count == 2 && t[0] == '-') {
		minus = true;
		t = ptx_at(r->m, ++first);
		count--;
	}
	if (count == 1 && t[0] == '0' && (t[1] == 'f' || t[1] == 'F')) {
		*value = strtoull(t + 2, NULL, 16);
		if (minus)
			*value ^= UINT64_C(1) << 31;
		if (type == F64)
			*value = of_double((double)to_float(*value));
		return true;
	}
	if (count == 1 && t[0] == '0' && (t[1] == 'd' || t[1] == 'D')) {
		char hex[17];

		memcpy(hex, t + 2, 16);
		hex[16] = 0;
		*value = strtoull(hex, NULL, 16);
		if (minus)
			*value ^= UINT64_C(1) << 63;
		if (type == F32)
			*value = of_float((float)to_double(*value));
		return true;
	}
	if (!ptx_integer(r->m, first, count, &v))
		return false;
	*value = (uint64_t)(minus ? -v : v);
	return true;
}

static bool decode_operand(struct run *r, const struct op *op, uint32_t number,
			   const struct ptx_operand *from, struct operand *o)
{
	const struct ptx *m = r->m;
	uint32_t first = from->first, count = from->count, i, j;

	memset(o, 0, sizeof(*o));
	if (count == 1 && ptx_is(m, first, "_"))
		return true; /* it is not wanted */
	if (ptx_is(m, first, "!")) {
		o->not = true;
		first++;
		count--;
	}
	if (ptx_is(m, first, "[")) {
		uint64_t at = 0;

		o->kind = K_ADDRESS;
		o->slot = UINT32_MAX;
		for (i = first + 1, j = first + count - 1; i < j; i++)
			if (ptx_is(m, i, "+") || ptx_is(m, i, "-"))
				break;
		if (i < j) {
			const bool plus = ptx_is(m, i, "+");
			int64_t v;

			if (!ptx_integer(m, i + plus, j - i - plus, &v))
				return false;
			o->value = (uint64_t)v;
		}
		if (slot_of(r, number, first + 1, &o->slot, &o->bits))
			return true;
		if (!place_of(r, number, first + 1, &at))
			return false;
		o->value += at;
		return true;
	}
	if (ptx_is(m, first, "{")) {
		o->kind = K_LIST;
		for (i = first + 1; i < first + count - 1; i++) {
			if (ptx_is(m, i, ","))
				continue;
			if (o->count == 4 || !slot_of(r, number, i, &o->slots[o->count],
						      &o->widths[o->count]))
				return false;
			o->count++;
		}
		return true;
	}
	if (count == 3 && ptx_is(m, first + 1, "|")) { /* p|q */
		o->kind = K_PAIR;
		for (i = 0; i < 2; i++)
			if (!slot_of(r, number, first + 2 * i, &o->slots[i],
				     &o->widths[i]))
				return false;
		return true;
	}
	if (slot_of(r, number, first, &o->slot, &o->bits)) {
		o->kind = K_REGISTER;
		return count == 1;
	}
	if (decode_special(r, first, o))
		return true;
	o->kind = K_VALUE;
	return place_of(r, number, first, &o->value) ||
	       decode_value(r, first, count, op->type, &o->value);
}

static bool wordless(const char *dot, size_t n)
{
	static const char *const skip[] = {
		".global",  ".shared", ".local", ".param", ".const", ".volatile",
		".relaxed", ".sys",    ".gpu",   ".cta",   ".nc",    ".rn",
		".rz",      ".approx", ".ftz",   ".full",  ".uni",   ".sync",
		".aligned", ".to",     ".v2",    ".v4",    ".b32",   ".u64"};
	size_t i;

	for (i = 0; i < sizeof(skip) / sizeof(skip[0]); i++)
		if (strlen(skip[i]) == n && memcmp(skip[i], dot, n) == 0)
			return true;
	return false;
}

static void decode_dots(struct run *r, const struct ptx_statement *s, struct op *op)
{
	const struct ptx *m = r->m;
	uint32_t i;

	op->type = op->second = NO_TYPE;
	op->lanes = 1;
	op->space = ptx_space_of(m, s);
	for (i = s->op + 1; i <= s->op + s->dots; i++) {
		const enum type t = type_of(m, i);
		const uint32_t n = m->tokens[i].bytes;

		if (t != NO_TYPE) {
			op->second = op->type;
			op->type = t;
		} else if (ptx_is(m, i, ".v2") || ptx_is(m, i, ".v4")) {
			op->lanes = ptx_is(m, i, ".v2") ? 2 : 4;
		} else if (!wordless(ptx_at(m, i), n) && n <= sizeof(op->word)) {
			char *to = op->word;
			size_t room = sizeof(op->word);

			if (op->word[0]) {
				to = op->join;
				room = sizeof(op->join);
			}
			if (n - 1 < room) {
				memcpy(to, ptx_at(m, i) + 1, n - 1);
				to[n - 1] = 0;
			}
		}
	}
	op->unordered = strlen(op->word) == 3 && op->word[2] == 'u';
}

static uint32_t target_of(struct run *r, uint32_t token)
{
	uint32_t i;

	for (i = 0; i < r->f->count; i++)
		if (r->m->statements[r->f->first + i].kind == PTX_LABEL &&
		    ptx_same(r->m, r->m->statements[r->f->first + i].first, token))
			return i;
	return UINT32_MAX;
}

static void decode(struct run *r, uint32_t i)
{
	const struct ptx *m = r->m;
	const uint32_t number = r->f->first + i;
	const struct ptx_statement *s = &m->statements[number];
	struct op *op = &r->ops[i];
	uint32_t bits, k, slot;
	size_t c;

	op->s = s;
	op->code = C_NOP;
	op->guard = -1;
	if (s->kind != PTX_INSTRUCTION)
		return;
	for (c = 0; c < sizeof(codes) / sizeof(codes[0]); c++)
		if (ptx_is(m, s->op, codes[c].name))
			break;
	if (c == sizeof(codes) / sizeof(codes[0])) {
		fail(r, op, "an instruction that the interpreter does not know");
		return;
	}
	op->code = codes[c].code;
	decode_dots(r, s, op);
	if (s->guard) {
		if (!slot_of(r, number, s->guard, &slot, &bits))
			fail(r, op, "a guard that is no register");
		op->guard = (int)slot;
		op->guard_not = s->guard_not;
	}
	if (op->code == C_BRA) {
		op->target = target_of(r, s->operand[0].first);
		if (op->target == UINT32_MAX)
			fail(r, op, "no such label");
		return;
	}
	if (op->code == C_CALL)
		return;
	if (s->operand_count > 6) {
		fail(r, op, "too many operands");
		return;
	}
	op->count = s->operand_count;
	for (k = 0; k < op->count && op->code != C_NOP; k++)
		if (!decode_operand(r, op, number, &s->operand[k], &op->o[k]))
			fail(r, op, "an operand that the interpreter does not know");
}

/* ---- memory ---------------------------------------------------------------------------- */

static uint8_t *inside(uint8_t *base, uint64_t at, uint64_t bytes, uint64_t size)
{
	return at <= size && bytes <= size - at ? base + at : NULL;
}

static uint8_t *memory(struct run *r, struct thread *t, const struct op *op,
		       enum ptx_space space, uint64_t at, uint64_t bytes)
{
	uint8_t *p = NULL;
	uint32_t i;

	if (space == PTX_GENERIC && at - SHARED_WINDOW < WINDOW_BYTES) {
		space = PTX_SHARED;
		at -= SHARED_WINDOW;
	} else if (space == PTX_GENERIC && at - LOCAL_WINDOW < WINDOW_BYTES) {
		space = PTX_LOCAL;
		at -= LOCAL_WINDOW;
	}
	switch (space) {
	case PTX_SHARED:
		p = inside(r->shared, at, bytes, r->shared_static + r->l->shared_bytes);
		break;
	case PTX_LOCAL:
		p = inside(t->local, at, bytes, r->local_bytes + t->stack);
		break;
	case PTX_CONST:
		p = inside(r->constants, at, bytes, r->const_bytes);
		break;
	case PTX_PARAM:
		/* NOLINTNEXTLINE: only ld.param reads it */
		p = inside((uint8_t *)(uintptr_t)r->l->params, at, bytes,
			   r->l->param_bytes);
		break;
	default:
		r->l->accesses++;
		for (i = 0; i < r->l->region_count && !p; i++)
			if (at >= r->l->regions[i].address)
				p = inside(r->l->regions[i].bytes,
					   at - r->l->regions[i].address, bytes,
					   r->l->regions[i].size);
	}
	if (!p)
		fail(r, op, "an address that nobody has");
	else if (bytes && at % bytes && bytes <= 16)
		fail(r, op, "a misaligned address");
	return r->err ? NULL : p;
}

/* ---- values ---------------------------------------------------------------------------- */

static uint64_t cut(uint64_t v, uint32_t bits)
{
	return bits >= 64 ? v : v & ((UINT64_C(1) << bits) - 1);
}

static int64_t sign(uint64_t v, uint32_t bits)
{
	return bits >= 64 ? (int64_t)v : (int64_t)(v << (64 - bits)) >> (64 - bits);
}

static uint64_t special(const struct run *r, const struct thread *t,
			const struct operand *o)
{
	const uint32_t id =
		t->tid[0] + r->l->block[0] * (t->tid[1] + r->l->block[1] * t->tid[2]);

	switch (o->slot) {
	case 0:
		return t->tid[o->bits];
	case 1:
		return r->l->block[o->bits];
	case 2:
		return r->ctaid[o->bits];
	case 3:
		return r->l->grid[o->bits];
	case 4:
		return id % WARP;
	case 5:
		return id / WARP;
	case 6:
		return 0;
	case 7:
		return 1;
	default:
		return r->steps * STEP_NS;
	}
}

static uint64_t get(struct run *r, struct thread *t, const struct operand *o)
{
	uint64_t v = 0;
	uint32_t i, at = 0;

	switch (o->kind) {
	case K_REGISTER:
		v = t->r[o->slot];
		break;
	case K_SPECIAL:
		v = special(r, t, o);
		break;
	case K_VALUE:
		v = o->value;
		break;
	case K_LIST:
		for (i = 0; i < o->count; at += o->widths[i++])
			v |= cut(t->r[o->slots[i]], o->widths[i]) << at;
		break;
	default:
		break;
	}
	return o->not ? !v : v;
}

static void put(struct thread *t, const struct operand *o, uint64_t v)
{
	uint32_t i, at = 0;

	if (o->kind == K_REGISTER)
		t->r[o->slot] = cut(v, o->bits);
	for (i = 0; o->kind == K_LIST && i < o->count; at += o->widths[i++])
		t->r[o->slots[i]] = cut(v >> at, o->widths[i]);
}

static float half_to_float(uint64_t h)
{
	const uint32_t e = h >> 10 & 31, m = h & 1023;
	const float v = e == 31 ? (m ? NAN : INFINITY)
			: e     ? ldexpf((float)(m + 1024), (int)e - 25)
				: ldexpf((float)m, -24);

	return h >> 15 & 1 ? -v : v;
}

/* To nearest, ties to even. */
static uint64_t float_to_half(float v)
{
	const uint64_t s = signbit(v) ? 0x8000 : 0;
	int e;
	float m, q;

	v = fabsf(v);
	if (isnan(v))
		return s | 0x7fff;
	if (v >= 65520.0f)
		return s | 0x7c00;
	if (v < 6.103515625e-05f)
		return s | (uint64_t)rintf(ldexpf(v, 24));
	m = frexpf(v, &e); /* [0.5, 1) */
	q = rintf(ldexpf(m, 11));
	return s | (((uint64_t)(e + 14) << 10) + (uint64_t)q - 1024);
}

static double real(uint64_t v, enum type type)
{
	return type == F64   ? to_double(v)
	       : type == F32 ? (double)to_float(v)
			     : (double)half_to_float(v);
}

static uint64_t of_real(double v, enum type type)
{
	return type == F64   ? of_double(v)
	       : type == F32 ? of_float((float)v)
			     : float_to_half((float)v);
}

static bool is_real(enum type type)
{
	return type == F16 || type == F32 || type == F64;
}

static bool is_signed(enum type type)
{
	return type >= S8 && type <= S64;
}

static uint64_t high(uint64_t a, uint64_t b, enum type type)
{
	__extension__ typedef __int128 wide;
	__extension__ typedef unsigned __int128 uwide;
	const uint32_t bits = type_bits[type];

	if (is_signed(type))
		return (uint64_t)((wide)sign(a, bits) * sign(b, bits) >> bits);
	return (uint64_t)((uwide)cut(a, bits) * cut(b, bits) >> bits);
}

static uint64_t product(const struct op *op, uint64_t a, uint64_t b)
{
	const uint32_t bits = type_bits[op->type];

	if (strcmp(op->word, "hi") == 0)
		return high(a, b, op->type);
	if (strcmp(op->word, "wide") == 0 && is_signed(op->type))
		return (uint64_t)(sign(a, bits) * sign(b, bits));
	if (strcmp(op->word, "wide") == 0)
		return cut(a, bits) * cut(b, bits);
	return a * b;
}

static uint64_t two_reals(const struct op *op, double a, double b)
{
	double v = 0;

	switch (op->code) {
	case C_ADD:
		v = a + b;
		break;
	case C_SUB:
		v = a - b;
		break;
	case C_MUL:
		v = a * b;
		break;
	case C_DIV:
		v = a / b;
		break;
	case C_MIN:
		v = fmin(a, b);
		break;
	case C_MAX:
		v = fmax(a, b);
		break;
	default:
		break;
	}
	return of_real(v, op->type);
}

static uint64_t divided(const struct op *op, uint64_t a, uint64_t b)
{
	const uint32_t bits = type_bits[op->type];

	a = cut(a, bits);
	b = cut(b, bits);
	if (!b)
		return UINT64_MAX;
	if (!is_signed(op->type))
		return op->code == C_DIV ? a / b : a % b;
	if (sign(b, bits) == -1)
		return op->code == C_DIV ? 0 - a : 0;
	return (uint64_t)(op->code == C_DIV ? sign(a, bits) / sign(b, bits)
					    : sign(a, bits) % sign(b, bits));
}

static uint64_t lesser(enum type type, uint64_t a, uint64_t b, bool greater)
{
	const uint32_t bits = type_bits[type];
	const bool less = is_signed(type) ? sign(a, bits) < sign(b, bits)
					  : cut(a, bits) < cut(b, bits);

	return less != greater ? a : b;
}

static uint64_t two(struct run *r, const struct op *op, uint64_t a, uint64_t b)
{
	const uint32_t bits = type_bits[op->type];
	const uint64_t n = cut(b, 32);

	if (is_real(op->type))
		return two_reals(op, real(a, op->type), real(b, op->type));
	switch (op->code) {
	case C_ADD:
		return a + b;
	case C_SUB:
		return a - b;
	case C_MUL:
		return product(op, a, b);
	case C_DIV:
	case C_REM:
		return divided(op, a, b);
	case C_MIN:
		return lesser(op->type, a, b, false);
	case C_MAX:
		return lesser(op->type, a, b, true);
	case C_AND:
		return a & b;
	case C_OR:
		return a | b;
	case C_XOR:
		return a ^ b;
	case C_SHL:
		return n >= bits ? 0 : a << n;
	case C_SHR:
		if (is_signed(op->type))
			return (uint64_t)(sign(a, bits) >> (n >= bits ? bits - 1 : n));
		return n >= bits ? 0 : cut(a, bits) >> n;
	default:
		fail(r, op, "two operands");
		return 0;
	}
}

static uint64_t one_real(struct run *r, const struct op *op, double a)
{
	const bool single = op->type == F32;

	switch (op->code) {
	case C_ABS:
		return of_real(fabs(a), op->type);
	case C_NEG:
		return of_real(-a, op->type);
	case C_SQRT:
		return of_real(sqrt(a), op->type);
	case C_RSQRT:
		return of_real(1 / sqrt(a), op->type);
	case C_RCP:
		return of_real(1 / a, op->type);
	case C_EX2:
		return of_real(single ? (double)exp2f((float)a) : exp2(a), op->type);
	case C_LG2:
		return of_real(log2(a), op->type);
	case C_SIN:
		return of_real(sin(a), op->type);
	case C_COS:
		return of_real(cos(a), op->type);
	case C_TANH:
		return of_real(tanh(a), op->type);
	default:
		fail(r, op, "one real operand");
		return 0;
	}
}

static uint64_t bfind(const struct op *op, uint64_t a)
{
	const uint32_t bits = type_bits[op->type];
	uint32_t n;

	a = cut(a, bits);
	if (is_signed(op->type) && a >> (bits - 1))
		a = cut(~a, bits);
	if (!a)
		return UINT32_MAX;
	n = 63 - (uint32_t)__builtin_clzll(a);
	return strcmp(op->word, "shiftamt") == 0 ? bits - 1 - n : n;
}

static uint64_t one(struct run *r, const struct op *op, uint64_t a)
{
	const uint32_t bits = type_bits[op->type];
	uint64_t v = 0;
	uint32_t i;

	if (is_real(op->type))
		return one_real(r, op, real(a, op->type));
	switch (op->code) {
	case C_ABS:
		return (uint64_t)(sign(a, bits) < 0 ? -sign(a, bits) : sign(a, bits));
	case C_NEG:
		return 0 - a;
	case C_NOT:
		return op->type == PRED ? !a : ~a;
	case C_CNOT:
		return !cut(a, bits);
	case C_POPC:
		return (uint64_t)__builtin_popcountll(cut(a, bits));
	case C_CLZ:
		a = cut(a, bits);
		return a ? (uint64_t)__builtin_clzll(a) - (64 - bits) : bits;
	case C_BREV:
		for (i = 0; i < bits; i++)
			v |= (a >> i & 1) << (bits - 1 - i);
		return v;
	case C_BFIND:
		return bfind(op, a);
	default:
		fail(r, op, "one operand");
		return 0;
	}
}

static uint64_t fused(const struct op *op, uint64_t a, uint64_t b, uint64_t c)
{
	if (op->type == F32)
		return of_float(fmaf(to_float(a), to_float(b), to_float(c)));
	if (op->type == F64)
		return of_double(fma(to_double(a), to_double(b), to_double(c)));
	return product(op, a, b) + c;
}

static bool compare(const struct op *op, uint64_t a, uint64_t b)
{
	const uint32_t bits = type_bits[op->type];
	const char *w = op->word;
	int order;

	if (is_real(op->type)) {
		const double x = real(a, op->type), y = real(b, op->type);

		if (isnan(x) || isnan(y))
			return strcmp(w, "nan") == 0 || op->unordered;
		if (strcmp(w, "nan") == 0 || strcmp(w, "num") == 0)
			return w[1] == 'u';
		order = x < y ? -1 : x > y;
	} else if (is_signed(op->type)) {
		const int64_t x = sign(a, bits), y = sign(b, bits);

		order = x < y ? -1 : x > y;
	} else {
		const uint64_t x = cut(a, bits), y = cut(b, bits);

		order = x < y ? -1 : x > y;
	}
	if (w[0] == 'e')
		return order == 0;
	if (w[0] == 'n')
		return order != 0;
	if (w[0] == 'l')
		return w[1] == 't' || w[1] == 'o' ? order < 0 : order <= 0;
	return w[1] == 't' || w[1] == 'i' ? order > 0 : order >= 0;
}

static void set_predicate(struct run *r, struct thread *t, const struct op *op)
{
	const bool is = compare(op, get(r, t, &op->o[1]), get(r, t, &op->o[2]));
	bool p = is, q = !is, c;

	if (op->join[0]) {
		c = get(r, t, &op->o[3]) != 0;
		p = op->join[0] == 'a' ? is && c : op->join[0] == 'o' ? is || c : is != c;
		q = op->join[0] == 'a'   ? !is && c
		    : op->join[0] == 'o' ? !is || c
					 : !is != c;
	}
	if (op->o[0].kind == K_PAIR) {
		t->r[op->o[0].slots[0]] = p;
		t->r[op->o[0].slots[1]] = q;
	} else {
		put(t, &op->o[0], p);
	}
}

static uint64_t converted(struct run *r, const struct op *op, uint64_t a)
{
	const enum type to = op->second, from = op->type;
	const uint32_t bits = type_bits[to];
	double v;

	if (from == NO_TYPE || to == NO_TYPE) {
		fail(r, op, "a conversion");
		return 0;
	}
	if (is_real(from)) {
		v = real(a, from);
		if (strncmp(op->word, "rni", 3) == 0)
			v = rint(v);
		else if (strncmp(op->word, "rzi", 3) == 0)
			v = trunc(v);
		else if (strncmp(op->word, "rmi", 3) == 0)
			v = floor(v);
		else if (strncmp(op->word, "rpi", 3) == 0)
			v = ceil(v);
		if (is_real(to))
			return of_real(v, to);
		if (isnan(v))
			return 0;
		if (is_signed(to)) {
			const double most = ldexp(1, (int)bits - 1);

			return (uint64_t)(v >= most
						  ? (int64_t)(cut(~UINT64_C(0), bits - 1))
					  : v < -most ? -(int64_t)cut(~UINT64_C(0),
								      bits - 1) -
								1
						      : (int64_t)v);
		}
		return v <= 0                     ? 0
		       : v >= ldexp(1, (int)bits) ? cut(~UINT64_C(0), bits)
						  : (uint64_t)v;
	}
	if (is_real(to))
		return is_signed(from) ? of_real((double)sign(a, type_bits[from]), to)
				       : of_real((double)cut(a, type_bits[from]), to);
	if (is_signed(from))
		return (uint64_t)sign(a, type_bits[from]);
	return cut(a, type_bits[from]);
}

static uint64_t permuted(uint64_t a, uint64_t b, uint64_t c)
{
	const uint64_t both = cut(a, 32) | b << 32;
	uint64_t v = 0;
	uint32_t i;

	for (i = 0; i < 4; i++) {
		const uint32_t s = c >> 4 * i & 15;
		uint64_t byte = both >> 8 * (s & 7) & 255;

		if (s & 8)
			byte = byte & 128 ? 255 : 0;
		v |= byte << 8 * i;
	}
	return v;
}

static uint64_t dp4a(const struct op *op, uint64_t a, uint64_t b, uint64_t c)
{
	uint32_t i;

	for (i = 0; i < 32; i += 8)
		c += (uint64_t)((is_signed(op->second) ? sign(a >> i, 8)
						       : (int64_t)(a >> i & 255)) *
				(is_signed(op->type) ? sign(b >> i, 8)
						     : (int64_t)(b >> i & 255)));
	return c;
}

static uint64_t field(const struct op *op, uint64_t a, uint64_t at, uint64_t n)
{
	const uint32_t bits = type_bits[op->type];

	at = at & 255;
	n = n & 255;
	if (!n)
		return 0;
	if (is_signed(op->type)) {
		const int64_t v = sign(a, bits) >> (at > 63 ? 63 : at);

		return n >= bits ? (uint64_t)v : (uint64_t)sign((uint64_t)v, (uint32_t)n);
	}
	return at >= bits ? 0 : cut(cut(a, bits) >> at, (uint32_t)(n > 64 ? 64 : n));
}

/* Each bit of three words picks one of the table. */
static uint64_t looked_up(uint64_t a, uint64_t b, uint64_t c, uint64_t table)
{
	uint64_t v = 0;
	uint32_t i;

	for (i = 0; i < 32; i++)
		v |= (table >> ((a >> i & 1) << 2 | (b >> i & 1) << 1 | (c >> i & 1)) & 1)
		     << i;
	return v;
}

/* ---- memory instructions --------------------------------------------------------------- */

static uint64_t address(struct thread *t, const struct operand *o)
{
	return (o->slot == UINT32_MAX ? 0 : t->r[o->slot]) + o->value;
}

static void load(struct run *r, struct thread *t, const struct op *op)
{
	const uint32_t bytes = type_bits[op->type] / 8;
	const uint8_t *p = memory(r, t, op, op->space, address(t, &op->o[1]),
				  (uint64_t)bytes * op->lanes);
	const struct operand *d = &op->o[0];
	uint32_t i;

	for (i = 0; p && i < op->lanes; i++) {
		uint64_t v = 0;

		memcpy(&v, p + (size_t)i * bytes, bytes);
		if (is_signed(op->type))
			v = (uint64_t)sign(v, 8 * bytes);
		if (op->lanes == 1)
			put(t, d, v);
		else
			t->r[d->slots[i]] = cut(v, d->widths[i]);
	}
}

static void store(struct run *r, struct thread *t, const struct op *op)
{
	const uint32_t bytes = type_bits[op->type] / 8;
	uint8_t *p = memory(r, t, op, op->space, address(t, &op->o[0]),
			    (uint64_t)bytes * op->lanes);
	uint32_t i;

	for (i = 0; p && i < op->lanes; i++) {
		const uint64_t v =
			op->lanes == 1 ? get(r, t, &op->o[1]) : t->r[op->o[1].slots[i]];

		memcpy(p + (size_t)i * bytes, &v, bytes);
	}
}

static void atomic(struct run *r, struct thread *t, const struct op *op)
{
	const bool red = ptx_is(r->m, op->s->op, "red");
	const struct operand *o = &op->o[red ? 0 : 1];
	const uint32_t bytes = type_bits[op->type] / 8;
	uint8_t *p = memory(r, t, op, op->space, address(t, &o[0]), bytes);
	uint64_t old = 0, b = get(r, t, &o[1]), v = 0;
	const char *w = op->word;

	if (!p)
		return;
	memcpy(&old, p, bytes);
	if (strcmp(w, "add") == 0)
		v = is_real(op->type)
			    ? of_real(real(old, op->type) + real(b, op->type), op->type)
			    : old + b;
	else if (strcmp(w, "min") == 0 || strcmp(w, "max") == 0)
		v = lesser(op->type, old, b, w[1] == 'a');
	else if (strcmp(w, "exch") == 0)
		v = b;
	else if (strcmp(w, "and") == 0)
		v = old & b;
	else if (strcmp(w, "or") == 0)
		v = old | b;
	else if (strcmp(w, "xor") == 0)
		v = old ^ b;
	else if (strcmp(w, "cas") == 0)
		v = old == cut(b, 8 * bytes) ? get(r, t, &o[2]) : old;
	else
		fail(r, op, "an atomic that the interpreter does not know");
	memcpy(p, &v, bytes);
	if (!red)
		put(t, &op->o[0], old);
}

/* A barrier in shared memory, as this interpreter lays it out. */
struct mbarrier {
	uint16_t pending, expected;
	uint32_t rest; /* bytes that have not come, doubled; and the phase's parity */
};
_Static_assert(sizeof(struct mbarrier) == 8, "it has 8 bytes");

static void put_mbarrier(uint8_t *p, struct mbarrier *b)
{
	if (!b->pending && !(b->rest & ~1u)) {
		b->pending = b->expected;
		b->rest ^= 1;
	}
	memcpy(p, b, sizeof(*b));
}

/* False: what is waited for has not come; other threads run meanwhile. */
static bool mbarrier(struct run *r, struct thread *t, const struct op *op)
{
	const bool gives = op->o[0].kind != K_ADDRESS;
	const struct operand *o = &op->o[gives];
	const bool parity = ptx_dot(r->m, op->s, ".parity");
	uint8_t *p =
		memory(r, t, op, PTX_SHARED,
		       address(t, o) - (op->space == PTX_GENERIC ? SHARED_WINDOW : 0),
		       sizeof(struct mbarrier));
	struct mbarrier b;
	uint64_t n;
	bool done;

	if (!p)
		return true;
	memcpy(&b, p, sizeof(b));
	n = op->count > 1u + gives ? get(r, t, &o[1]) : 1;
	if (ptx_dot(r->m, op->s, ".init")) {
		b = (struct mbarrier){(uint16_t)n, (uint16_t)n, 0};
		memcpy(p, &b, sizeof(b));
		return true;
	}
	if (ptx_dot(r->m, op->s, ".arrive")) {
		put(t, &op->o[0], b.rest & 1);
		if (ptx_dot(r->m, op->s, ".expect_tx"))
			b.rest += 2 * (uint32_t)n;
		n = ptx_dot(r->m, op->s, ".expect_tx") ? 1 : n;
		if (n > b.pending)
			fail(r, op, "more arrive than the barrier expects");
		b.pending = (uint16_t)(b.pending - n);
		put_mbarrier(p, &b);
		return true;
	}
	if (!ptx_dot(r->m, op->s, ".try_wait") && !ptx_dot(r->m, op->s, ".test_wait")) {
		if (!ptx_dot(r->m, op->s, ".inval"))
			fail(r, op, "an instruction that the interpreter does not know");
		return true;
	}
	(void)parity; /* a token is the parity of its phase, too */
	done = (b.rest & 1) != (n & 1);
	put(t, &op->o[0], done);
	return done;
}

/* cp.async.bulk to shared memory: at once. */
static void copy_bulk(struct run *r, struct thread *t, const struct op *op)
{
	uint64_t bytes;
	uint8_t *d, *s, *p;
	struct mbarrier b;

	if (op->count != 4) {
		if (op->count > 1)
			fail(r, op, "an instruction that the interpreter does not know");
		return;
	}
	bytes = get(r, t, &op->o[2]);
	d = memory(r, t, op, PTX_SHARED, address(t, &op->o[0]), bytes);
	s = memory(r, t, op, PTX_GLOBAL, address(t, &op->o[1]), bytes);
	p = memory(r, t, op, PTX_SHARED, address(t, &op->o[3]), sizeof(b));
	if (!d || !s || !p)
		return;
	memcpy(d, s, bytes);
	memcpy(&b, p, sizeof(b));
	b.rest -= 2 * (uint32_t)bytes;
	put_mbarrier(p, &b);
}

static void copy_async(struct run *r, struct thread *t, const struct op *op)
{
	uint64_t bytes, from;
	uint8_t *d, *s;

	if (ptx_dot(r->m, op->s, ".bulk")) {
		copy_bulk(r, t, op);
		return;
	}

	if (op->count < 3)
		return; /* groups: it is done at once */
	bytes = get(r, t, &op->o[2]);
	from = op->count > 3 ? get(r, t, &op->o[3]) : bytes;
	d = memory(r, t, op, PTX_SHARED, address(t, &op->o[0]), bytes);
	if (!d)
		return;
	memset(d, 0, bytes);
	if (!from)
		return;
	s = memory(r, t, op, PTX_GLOBAL, address(t, &op->o[1]), from);
	if (s)
		memcpy(d, s, from);
}

/* ---- threads ---------------------------------------------------------------------------- */

static void wait_barrier(struct run *r, struct thread *t, const struct op *op)
{
	const bool red = strcmp(op->word, "red") == 0;
	const struct operand *o = &op->o[red];

	if (strcmp(op->word, "warp") == 0) {
		t->state = IN_WARP;
		return;
	}
	if (strcmp(op->word, "cluster") == 0) {
		t->barrier = CLUSTER_BARRIER;
		t->expected = 0;
		t->state = AT_BARRIER;
		return;
	}
	t->barrier = (uint32_t)get(r, t, o);
	t->expected = red || op->count < 2 ? 0 : (uint32_t)get(r, t, &o[1]);
	t->vote = red && get(r, t, &op->o[op->count - 1]);
	t->state = AT_BARRIER;
}

/* Runs one instruction; false: the thread waits or has ended. */
static bool step(struct run *r, struct thread *t)
{
	const struct op *op = &r->ops[t->pc];
	const struct operand *o = op->o;

	if (op->guard >= 0 && (t->r[op->guard] != 0) == op->guard_not) {
		t->pc++;
		return true;
	}
	switch (op->code) {
	case C_NOP:
		break;
	case C_BRA:
		t->pc = op->target;
		return true;
	case C_ALLOCA:
		put(t, &o[0], r->local_bytes + t->stack);
		t->stack += (get(r, t, &o[1]) + 15) / 16 * 16;
		if (t->stack > STACK_BYTES)
			fail(r, op, "the stack is full");
		break;
	case C_STACKSAVE:
		put(t, &o[0], t->stack);
		break;
	case C_STACKRESTORE:
		t->stack = get(r, t, &o[0]);
		break;
	case C_RET:
		t->state = ENDED;
		return false;
	case C_BAR:
		/* All wait where they wait for the cluster. */
		if (strcmp(op->word, "cluster") == 0 && ptx_dot(r->m, op->s, ".arrive"))
			break;
		wait_barrier(r, t, op);
		return false;
	case C_MBARRIER:
		t->pc++;
		return mbarrier(r, t, op);
	case C_MAPA:
		put(t, &o[0], get(r, t, &o[1]));
		break;
	case C_TRAP:
	case C_CALL:
		fail(r, op, "a trap, or a call");
		break;
	case C_SHFL:
	case C_VOTE:
	case C_REDUX:
	case C_ACTIVEMASK:
		t->state = IN_WARP;
		return false;
	case C_LD:
		load(r, t, op);
		break;
	case C_ST:
		store(r, t, op);
		break;
	case C_ATOM:
		atomic(r, t, op);
		break;
	case C_CPASYNC:
		copy_async(r, t, op);
		break;
	case C_MOV:
		put(t, &o[0], get(r, t, &o[1]));
		break;
	case C_CVTA:
		put(t, &o[0],
		    get(r, t, &o[1]) +
			    (op->space == PTX_SHARED  ? SHARED_WINDOW
			     : op->space == PTX_LOCAL ? LOCAL_WINDOW
						      : 0) *
				    (uint64_t)(ptx_dot(r->m, op->s, ".to") ? -1 : 1));
		break;
	case C_ISSPACEP: {
		const uint64_t at = get(r, t, &o[1]);
		const bool s = at - SHARED_WINDOW < WINDOW_BYTES;
		const bool l = at - LOCAL_WINDOW < WINDOW_BYTES;

		put(t, &o[0],
		    op->space == PTX_SHARED  ? s
		    : op->space == PTX_LOCAL ? l
					     : !s && !l);
		break;
	}
	case C_CVT:
		put(t, &o[0], converted(r, op, get(r, t, &o[1])));
		break;
	case C_SETP:
		set_predicate(r, t, op);
		break;
	case C_SELP:
		put(t, &o[0], get(r, t, get(r, t, &o[3]) ? &o[1] : &o[2]));
		break;
	case C_FMA:
	case C_MAD:
		put(t, &o[0],
		    fused(op, get(r, t, &o[1]), get(r, t, &o[2]), get(r, t, &o[3])));
		break;
	case C_DP4A:
		put(t, &o[0],
		    dp4a(op, get(r, t, &o[1]), get(r, t, &o[2]), get(r, t, &o[3])));
		break;
	case C_LOP3:
		put(t, &o[0],
		    looked_up(get(r, t, &o[1]), get(r, t, &o[2]), get(r, t, &o[3]),
			      get(r, t, &o[4])));
		break;
	case C_PRMT:
		put(t, &o[0],
		    permuted(get(r, t, &o[1]), get(r, t, &o[2]), get(r, t, &o[3])));
		break;
	case C_BFE:
		put(t, &o[0],
		    field(op, get(r, t, &o[1]), get(r, t, &o[2]), get(r, t, &o[3])));
		break;
	case C_SHF: {
		const uint64_t both = cut(get(r, t, &o[1]), 32) | get(r, t, &o[2]) << 32;
		uint64_t n = get(r, t, &o[3]);

		n = ptx_dot(r->m, op->s, ".wrap") ? n & 31 : n > 32 ? 32 : n;
		put(t, &o[0], op->word[0] == 'l' ? both << n >> 32 : both >> n);
		break;
	}
	default:
		if (op->count == 2)
			put(t, &o[0], one(r, op, get(r, t, &o[1])));
		else if (op->count == 3)
			put(t, &o[0], two(r, op, get(r, t, &o[1]), get(r, t, &o[2])));
		else
			fail(r, op, "an instruction that the interpreter does not know");
	}
	t->pc++;
	return true;
}

/* ---- warps ------------------------------------------------------------------------------ */

static void shuffle(struct run *r, const struct op *op, struct thread *w, uint32_t count)
{
	uint64_t v[WARP] = {0};
	uint32_t i;

	for (i = 0; i < count; i++)
		v[i] = get(r, &w[i], &op->o[1]);
	for (i = 0; i < count; i++) {
		struct thread *t = &w[i];
		const uint32_t b = (uint32_t)get(r, t, &op->o[2]) & 31;
		const uint32_t c = (uint32_t)get(r, t, &op->o[3]);
		const uint32_t segment = c >> 8 & 31,
			       most = (i & segment) | (c & 31 & ~segment);
		const uint32_t least = i & segment;
		uint32_t j = i;
		bool in;

		if (t->state != IN_WARP)
			continue;
		if (strcmp(op->word, "up") == 0) {
			j = i - b;
			in = (int32_t)j >= (int32_t)most;
		} else if (strcmp(op->word, "down") == 0) {
			j = i + b;
			in = j <= most;
		} else if (strcmp(op->word, "bfly") == 0) {
			j = i ^ b;
			in = j <= most;
		} else {
			j = least | (b & ~segment);
			in = j <= most;
		}
		if (!in)
			j = i;
		if (j >= count || w[j].state != IN_WARP) {
			fail(r, op, "a shuffle from a thread that is not there");
			return;
		}
		if (op->o[0].kind == K_PAIR) {
			t->r[op->o[0].slots[0]] = cut(v[j], op->o[0].widths[0]);
			t->r[op->o[0].slots[1]] = in;
		} else {
			put(t, &op->o[0], v[j]);
		}
	}
}

static void vote(struct run *r, const struct op *op, struct thread *w, uint32_t count)
{
	uint32_t ballot = 0, all = 0, i;
	uint64_t v;

	for (i = 0; i < count; i++)
		if (w[i].state == IN_WARP) {
			all |= 1u << i;
			ballot |= (get(r, &w[i], &op->o[1]) ? 1u : 0) << i;
		}
	if (op->code == C_ACTIVEMASK)
		v = all;
	else if (strcmp(op->word, "ballot") == 0)
		v = ballot;
	else if (strcmp(op->word, "any") == 0)
		v = ballot != 0;
	else if (strcmp(op->word, "all") == 0)
		v = ballot == all;
	else
		v = ballot == all || !ballot;
	for (i = 0; i < count; i++)
		if (w[i].state == IN_WARP)
			put(&w[i], &op->o[0], v);
}

static void reduce(struct run *r, const struct op *op, struct thread *w, uint32_t count)
{
	struct op as = *op;
	bool first = true;
	uint64_t v = 0;
	uint32_t i;

	as.code = strcmp(op->word, "add") == 0   ? C_ADD
		  : strcmp(op->word, "min") == 0 ? C_MIN
		  : strcmp(op->word, "max") == 0 ? C_MAX
		  : strcmp(op->word, "and") == 0 ? C_AND
		  : strcmp(op->word, "or") == 0  ? C_OR
						 : C_XOR;
	for (i = 0; i < count; i++)
		if (w[i].state == IN_WARP) {
			const uint64_t x = get(r, &w[i], &op->o[1]);

			v = first ? x : two(r, &as, v, x);
			first = false;
		}
	for (i = 0; i < count; i++)
		if (w[i].state == IN_WARP)
			put(&w[i], &op->o[0], v);
}

/* All threads of the warp that have not ended are at the same instruction: it is done.
 * Those that the mask names have to be there; ours name all. */
static bool warp(struct run *r, uint32_t first)
{
	struct thread *w = &r->threads[first];
	const uint32_t left = r->thread_count - first, count = left < WARP ? left : WARP;
	uint32_t pc = UINT32_MAX, i;
	const struct op *op;

	for (i = 0; i < count; i++) {
		if (w[i].state == ENDED)
			continue;
		if (w[i].state != IN_WARP || (pc != UINT32_MAX && w[i].pc != pc))
			return false;
		pc = w[i].pc;
	}
	if (pc == UINT32_MAX)
		return false;
	op = &r->ops[pc];
	if (op->code == C_SHFL)
		shuffle(r, op, w, count);
	else if (op->code == C_REDUX)
		reduce(r, op, w, count);
	else if (op->code != C_BAR)
		vote(r, op, w, count);
	for (i = 0; i < count; i++)
		if (w[i].state == IN_WARP) {
			w[i].state = RUNS;
			w[i].pc++;
		}
	return true;
}

/* All that have not ended wait at one barrier, or as many as it expects: they go on. */
static bool barrier(struct run *r)
{
	uint32_t i, j, here, alive;
	bool any, every;

	for (i = 0; i < r->thread_count; i++) {
		const struct thread *t = &r->threads[i];
		const struct op *op = &r->ops[t->pc];

		if (t->state != AT_BARRIER)
			continue;
		any = false;
		every = true;
		for (here = alive = j = 0; j < r->thread_count; j++) {
			const struct thread *o = &r->threads[j];

			alive += o->state != ENDED;
			if (o->state != AT_BARRIER || o->barrier != t->barrier)
				continue;
			here++;
			any |= o->vote;
			every &= o->vote;
		}
		if (here != (t->expected ? t->expected : alive))
			continue;
		here = t->barrier;
		for (j = 0; j < r->thread_count; j++) {
			struct thread *o = &r->threads[j];

			if (o->state != AT_BARRIER || o->barrier != here)
				continue;
			if (strcmp(op->word, "red") == 0)
				put(o, &op->o[0],
				    strcmp(op->join, "and") == 0 ? every : any);
			o->state = RUNS;
			o->pc++;
		}
		return true;
	}
	return false;
}

static void run_block(struct run *r)
{
	uint32_t i, ended;
	bool moved;

	memset(r->shared, 0xa5, r->shared_static + r->l->shared_bytes);
	for (i = 0; i < r->thread_count; i++) {
		struct thread *t = &r->threads[i];

		/* What was in registers is nobody's. */
		memset(t->r, 0x5a, r->slot_count * sizeof(*t->r));
		memset(t->local, 0x5a, r->local_bytes + STACK_BYTES);
		t->stack = 0;
		t->pc = 0;
		t->state = RUNS;
		t->tid[0] = i % r->l->block[0];
		t->tid[1] = i / r->l->block[0] % r->l->block[1];
		t->tid[2] = i / r->l->block[0] / r->l->block[1];
	}
	do {
		moved = false;
		for (i = ended = 0; i < r->thread_count && !r->err; i++) {
			struct thread *t = &r->threads[i];

			while (t->state == RUNS && !r->err) {
				moved = true;
				if (t->pc < r->f->count)
					r->instructions +=
						r->ops[t->pc].s->kind == PTX_INSTRUCTION;
				if (t->pc == r->f->count)
					t->state = ENDED; /* past the last one */
				else if (!step(r, t))
					break;
				if (++r->steps > STEPS_MOST)
					fail(r, &r->ops[0], "it does not end");
				if (r->steps == r->l->tick)
					r->l->at_tick(r->l->arg);
			}
			ended += t->state == ENDED;
		}
		for (i = 0; i < r->thread_count && !r->err; i += WARP)
			moved |= warp(r, i);
		if (!r->err)
			moved |= barrier(r);
		if (!moved && ended < r->thread_count)
			fail(r, &r->ops[0], "its threads wait for ever");
	} while (!r->err && ended < r->thread_count);
}

/* ---- a launch --------------------------------------------------------------------------- */

static int lay_out(struct run *r)
{
	const struct ptx *m = r->m;
	uint32_t i, *at;
	const struct ptx_variable *v;

	r->slots = calloc(r->f->registers + 1u, sizeof(*r->slots));
	r->shared_at = calloc(m->variable_count + 1u, sizeof(*r->shared_at));
	if (!r->slots || !r->shared_at)
		return ptx_fail(r->why, ENOMEM, "no memory");
	for (i = 0; i < r->f->registers; i++) {
		const struct ptx_register *g = &m->registers[r->f->first_register + i];

		r->slots[i] = r->slot_count;
		r->slot_count += g->count ? g->count : 1;
	}
	/* What has no size begins where the rest ends. */
	for (i = 0; i < 2 * m->variable_count; i++) {
		const uint32_t n = i % m->variable_count;
		const bool own = n >= r->f->first_variable &&
				 n < r->f->first_variable + r->f->variables;

		v = &m->variables[n];
		if ((!v->module && !own) || (v->bytes != 0) == (i >= m->variable_count))
			continue;
		at = v->space == PTX_SHARED  ? &r->shared_static
		     : v->space == PTX_LOCAL ? &r->local_bytes
		     : v->space == PTX_CONST ? &r->const_bytes
					     : NULL;
		if (!at)
			continue;
		*at = (*at + v->align - 1) / v->align * v->align;
		r->shared_at[n] = *at;
		*at += (uint32_t)v->bytes;
	}
	r->local_bytes = (r->local_bytes + 15) / 16 * 16;
	return 0;
}

static void fill_constants(struct run *r)
{
	uint32_t i, j;

	for (i = 0; i < r->m->variable_count; i++) {
		const struct ptx_variable *v = &r->m->variables[i];
		uint64_t at = r->shared_at[i], value;

		if (!v->module || v->space != PTX_CONST)
			continue;
		for (j = v->first; j < v->first + v->count; j++)
			if (r->m->tokens[j].kind == PTX_NUMBER &&
			    decode_value(r, j, 1, U64, &value)) {
				memcpy(r->constants + at, &value, v->element);
				at += v->element;
			}
	}
}

static int make_threads(struct run *r)
{
	uint32_t i;

	r->thread_count = r->l->block[0] * r->l->block[1] * r->l->block[2];
	r->threads = calloc(r->thread_count, sizeof(*r->threads));
	r->shared = calloc(1, r->shared_static + r->l->shared_bytes + 1u);
	r->constants = calloc(1, r->const_bytes + 8u);
	r->ops = calloc(r->f->count + 1u, sizeof(*r->ops));
	if (!r->threads || !r->shared || !r->constants || !r->ops)
		return ptx_fail(r->why, ENOMEM, "no memory");
	for (i = 0; i < r->thread_count; i++) {
		r->threads[i].r = calloc(r->slot_count + 1u, sizeof(uint64_t));
		r->threads[i].local = calloc(1, r->local_bytes + STACK_BYTES);
		if (!r->threads[i].r || !r->threads[i].local)
			return ptx_fail(r->why, ENOMEM, "no memory");
	}
	return 0;
}

static void run_grid(struct run *r)
{
	const uint32_t *g = r->l->grid;
	const uint64_t all = (uint64_t)g[0] * g[1] * g[2];
	uint64_t i, step = 1, first = 0, n;

	if (r->l->seed && all > 1) { /* a stride that has no divisor in common with it */
		first = r->l->seed * UINT64_C(2654435761) % all;
		step = r->l->seed % all;
		for (;; step++) {
			uint64_t x = all, y = step % all;

			while (y) {
				const uint64_t z = x % y;

				x = y;
				y = z;
			}
			if (x == 1)
				break;
		}
	}
	for (i = 0; i < (r->l->only ? 1 : all) && !r->err; i++) {
		n = r->l->only ? r->l->only - 1 : (first + i * step) % all;
		r->ctaid[0] = (uint32_t)(n % g[0]);
		r->ctaid[1] = (uint32_t)(n / g[0] % g[1]);
		r->ctaid[2] = (uint32_t)(n / g[0] / g[1]);
		run_block(r);
	}
}

int interp_run(const struct ptx *m, struct interp_launch *l, char why[PTX_WHY])
{
	struct run r = {.m = m, .l = l, .why = why};
	uint32_t i;

	why[0] = 0;
	l->accesses = 0;
	r.f = &m->functions[m->entries[l->kernel]];
	r.err = lay_out(&r);
	if (!r.err)
		r.err = make_threads(&r);
	if (!r.err) {
		fill_constants(&r);
		for (i = 0; i < r.f->count; i++)
			decode(&r, i);
	}
	if (!r.err)
		run_grid(&r);
	l->instructions = r.instructions;
	l->steps = r.steps;
	for (i = 0; r.threads && i < r.thread_count; i++) {
		free(r.threads[i].r);
		free(r.threads[i].local);
	}
	free(r.threads);
	free(r.shared);
	free(r.constants);
	free(r.ops);
	free(r.slots);
	free(r.shared_at);
	return r.err;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The passes: the text is copied, and what they add is put in where it belongs.
 *
 * An index translation of coloured memory is a pass like BOUNDS: what that computes from
 * an access's address (fence) is where the address itself would become another one.
 */
#define _GNU_SOURCE
#include "check.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(sizeof(struct ptx_control) == 40, "what the kernels read of it");

struct writer {
	const struct ptx *m;
	enum ptx_pass pass;
	char *text;
	size_t count, room;
	uint32_t at; /* of the old text: copied so far */
	bool failed;
};

static void add(struct writer *w, const char *text, size_t n)
{
	char *p;

	if (w->failed)
		return;
	if (w->count + n + 1 > w->room) {
		w->room = 2 * w->room + n + 4096;
		p = realloc(w->text, w->room);
		if (!p) {
			w->failed = true;
			return;
		}
		w->text = p;
	}
	memcpy(w->text + w->count, text, n);
	w->count += n;
	w->text[w->count] = 0;
}

static void put(struct writer *w, const char *text)
{
	add(w, text, strlen(text));
}

__attribute__((format(printf, 2, 3))) static void putf(struct writer *w, const char *fmt,
						       ...)
{
	char line[256];
	va_list ap;
	int n;

	va_start(ap, fmt);
	/* NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized): it has been started */
	n = vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	if (n < 0 || (size_t)n >= sizeof(line))
		w->failed = true; /* no name of ours is that long */
	else
		add(w, line, (size_t)n);
}

/* The old text up to there. */
static void copy_to(struct writer *w, uint32_t at)
{
	if (at > w->at)
		add(w, w->m->text + w->at, at - w->at);
	w->at = at;
}

static uint32_t end_of(const struct ptx *m, uint32_t token)
{
	return m->tokens[token].at + m->tokens[token].bytes;
}

static void put_tokens(struct writer *w, uint32_t first, uint32_t count)
{
	const uint32_t from = w->m->tokens[first].at;

	add(w, w->m->text + from, end_of(w->m, first + count - 1) - from);
}

static void put_token(struct writer *w, uint32_t token)
{
	put_tokens(w, token, 1);
}

/* ---- stops ----------------------------------------------------------------------------- */

static const char stop_registers[] =
	"\n\t.reg .pred %_hals_p, %_hals_q;\n"
	"\t.reg .b32 %_hals_i, %_hals_j, %_hals_r, %_hals_x, %_hals_y, %_hals_z;\n"
	"\t.reg .b32 %_hals_nx, %_hals_ny, %_hals_nz;\n"
	"\t.reg .b64 %_hals_c, %_hals_l;\n";

static const char control[] = "\tld.param.u64 %_hals_c, [_hals_control];\n"
			      "\tcvta.to.global.u64 %_hals_c, %_hals_c;\n";

static const char leader[] = "\tmov.u32 %_hals_i, %tid.x;\n"
			     "\tmov.u32 %_hals_j, %tid.y;\n"
			     "\tor.b32 %_hals_i, %_hals_i, %_hals_j;\n"
			     "\tmov.u32 %_hals_j, %tid.z;\n"
			     "\tor.b32 %_hals_i, %_hals_i, %_hals_j;\n"
			     "\tsetp.ne.u32 %_hals_p, %_hals_i, 0;\n";

/* Which of x, y, z of these registers the kernel reads: bits 0 to 2. */
static uint32_t reads(const struct ptx *m, const struct ptx_function *f, const char *name)
{
	uint32_t i, bits = 0;

	for (i = f->brace; i < f->end; i++)
		if (ptx_is_grid(m, i) && ptx_is(m, i, name))
			bits |= ptx_is(m, i + 1, ".x")   ? 1u
				: ptx_is(m, i + 1, ".y") ? 2u
							 : 4u;
	return bits;
}

/* Of the number in _hals_i. */
static void put_place(struct writer *w, uint32_t bits)
{
	if (!bits)
		return;
	put(w, "\tld.global.u32 %_hals_nx, [%_hals_c+8];\n");
	if (bits & 1)
		put(w, "\trem.u32 %_hals_x, %_hals_i, %_hals_nx;\n");
	if (!(bits & 6))
		return;
	put(w, "\tdiv.u32 %_hals_j, %_hals_i, %_hals_nx;\n"
	       "\tld.global.u32 %_hals_ny, [%_hals_c+12];\n");
	if (bits & 2)
		put(w, "\trem.u32 %_hals_y, %_hals_j, %_hals_ny;\n");
	if (bits & 4)
		put(w, "\tdiv.u32 %_hals_z, %_hals_j, %_hals_ny;\n");
}

static void put_extent(struct writer *w, uint32_t bits)
{
	if (bits & 1)
		put(w, "\tld.global.u32 %_hals_nx, [%_hals_c+8];\n");
	if (bits & 2)
		put(w, "\tld.global.u32 %_hals_ny, [%_hals_c+12];\n");
	if (bits & 4)
		put(w, "\tld.global.u32 %_hals_nz, [%_hals_c+16];\n");
}

static void begin_entry(struct writer *w, const struct ptx_function *f)
{
	const uint32_t place = reads(w->m, f, "%ctaid");

	put(w, stop_registers);
	put(w, control);
	/*
	 * All threads of the block have to see the same flag.  One of them looks: were it
	 * one of each warp, many short blocks would wait for that address in the cache
	 * (on an H100 a sum of 256 numbers a block took 2.4 times as long).
	 */
	put(w, "\tld.global.u32 %_hals_r, [%_hals_c+20];\n");
	put(w, leader);
	put(w, "\tmov.u32 %_hals_j, 0;\n"
	       "\t@!%_hals_p ld.volatile.global.u32 %_hals_j, [%_hals_c];\n"
	       "\tsetp.ne.u32 %_hals_q, %_hals_j, 0;\n"
	       "\tbar.red.or.pred %_hals_q, 0, %_hals_q;\n"
	       "\t@!%_hals_q bra $_hals_go;\n"
	       "\t@%_hals_p bra $_hals_out;\n"
	       "\tmov.u32 %_hals_x, %ctaid.x;\n"
	       "\tsetp.ne.u32 %_hals_q, %_hals_r, 0;\n"
	       "\t@%_hals_q bra $_hals_listed;\n"
	       "\tmov.u32 %_hals_i, %ctaid.z;\n"
	       "\tmov.u32 %_hals_j, %nctaid.y;\n"
	       "\tmov.u32 %_hals_y, %ctaid.y;\n"
	       "\tmad.lo.u32 %_hals_i, %_hals_i, %_hals_j, %_hals_y;\n"
	       "\tmov.u32 %_hals_j, %nctaid.x;\n"
	       "\tmad.lo.u32 %_hals_i, %_hals_i, %_hals_j, %_hals_x;\n"
	       "\tbra $_hals_write;\n"
	       "$_hals_listed:\n"
	       "\tld.global.u64 %_hals_l, [%_hals_c+24];\n"
	       "\tmad.wide.u32 %_hals_l, %_hals_x, 4, %_hals_l;\n"
	       "\tld.global.u32 %_hals_i, [%_hals_l];\n"
	       "$_hals_write:\n"
	       "\tatom.global.add.u32 %_hals_j, [%_hals_c+4], 1;\n"
	       "\tld.global.u64 %_hals_l, [%_hals_c+32];\n"
	       "\tmad.wide.u32 %_hals_l, %_hals_j, 4, %_hals_l;\n"
	       "\tst.global.u32 [%_hals_l], %_hals_i;\n"
	       "$_hals_out:\n"
	       "\tret;\n"
	       "$_hals_go:\n");
	if (place) {
		if (place & 1)
			put(w, "\tmov.u32 %_hals_x, %ctaid.x;\n");
		if (place & 2)
			put(w, "\tmov.u32 %_hals_y, %ctaid.y;\n");
		if (place & 4)
			put(w, "\tmov.u32 %_hals_z, %ctaid.z;\n");
		put(w, "\tsetp.eq.u32 %_hals_q, %_hals_r, 0;\n"
		       "\t@%_hals_q bra $_hals_placed;\n"
		       "\tmov.u32 %_hals_i, %ctaid.x;\n"
		       "\tld.global.u64 %_hals_l, [%_hals_c+24];\n"
		       "\tmad.wide.u32 %_hals_l, %_hals_i, 4, %_hals_l;\n"
		       "\tld.global.u32 %_hals_i, [%_hals_l];\n");
		put_place(w, place);
		put(w, "$_hals_placed:\n");
	}
	put_extent(w, reads(w->m, f, "%nctaid"));
}

static bool has(const struct ptx *m, const struct ptx_function *f, const char *op)
{
	uint32_t i;

	for (i = f->first; i < f->first + f->count; i++)
		if (m->statements[i].kind == PTX_INSTRUCTION &&
		    ptx_is(m, m->statements[i].op, op))
			return true;
	return false;
}

/* Would a word more of static shared memory be seen?  It moves the dynamic one, is
 * counted, and may be too much. */
static bool shared_is_seen(const struct ptx *m, const struct ptx_function *f)
{
	const struct ptx_variable *v;
	uint64_t bytes = m->shared_bytes;
	uint32_t i;

	for (i = f->first_variable; i < f->first_variable + f->variables; i++)
		if (m->variables[i].space == PTX_SHARED)
			bytes += m->variables[i].bytes + m->variables[i].align;
	if (m->odd_shared || bytes > PTX_SHARED_MOST - 2 * sizeof(uint32_t) ||
	    (m->shared_unsized && has(m, f, "call")))
		return true;
	for (i = f->brace; i < f->end; i++) {
		v = ptx_variable_of(m, f, 0, i);
		if ((v && v->space == PTX_SHARED && !v->bytes) ||
		    ptx_is(m, i, "%total_smem_size") || ptx_is(m, i, "%aggr_smem_size"))
			return true;
	}
	return false;
}

/* All threads learn the number that the leader has in _hals_i, 0 in others, bit by bit:
 * a barrier for each that _hals_j has. */
static const char tell_bits[] = "\tmov.u32 %_hals_x, 0;\n"
				"\tmov.u32 %_hals_y, 0;\n"
				"$_hals_bit:\n"
				"\tshr.u32 %_hals_r, %_hals_i, %_hals_y;\n"
				"\tand.b32 %_hals_r, %_hals_r, 1;\n"
				"\tsetp.ne.u32 %_hals_q, %_hals_r, 0;\n"
				"\tbarrier.red.or.pred %_hals_q, 15, %_hals_q;\n"
				"\tselp.b32 %_hals_r, 1, 0, %_hals_q;\n"
				"\tshl.b32 %_hals_r, %_hals_r, %_hals_y;\n"
				"\tor.b32 %_hals_x, %_hals_x, %_hals_r;\n"
				"\tadd.u32 %_hals_y, %_hals_y, 1;\n"
				"\tshr.u32 %_hals_r, %_hals_j, %_hals_y;\n"
				"\tsetp.ne.u32 %_hals_q, %_hals_r, 0;\n"
				"\t@%_hals_q bra $_hals_bit;\n"
				"\tmov.u32 %_hals_i, %_hals_x;\n";
_Static_assert(PTX_LOOP_BARRIER == 15, "tell_bits has it");

/* The number of the grid's blocks stands for none. */
static void begin_loop(struct writer *w, const struct ptx_function *f)
{
	const bool bits = shared_is_seen(w->m, f);

	put(w, stop_registers);
	if (has(w->m, f, "alloca"))
		put(w, "\t.reg .b64 %_hals_s;\n"
		       "\tstacksave.u64 %_hals_s;\n");
	if (!bits)
		put(w, "\t.shared .align 4 .b32 _hals_number;\n");
	put(w, "$_hals_next:\n");
	put(w, control);
	put(w, leader);
	put_extent(w, 7);
	put(w, "\tmul.lo.u32 %_hals_j, %_hals_nx, %_hals_ny;\n"
	       "\tmul.lo.u32 %_hals_j, %_hals_j, %_hals_nz;\n"
	       "\tmov.u32 %_hals_i, 0;\n"
	       "\t@%_hals_p bra $_hals_wait;\n"
	       "\tmov.u32 %_hals_i, %_hals_j;\n"
	       "\tld.volatile.global.u32 %_hals_r, [%_hals_c];\n"
	       "\tsetp.ne.u32 %_hals_p, %_hals_r, 0;\n"
	       "\t@%_hals_p bra $_hals_tell;\n"
	       "\tatom.global.add.u32 %_hals_i, [%_hals_c+4], 1;\n"
	       "\tmin.u32 %_hals_i, %_hals_i, %_hals_j;\n"
	       "$_hals_tell:\n");
	if (!bits)
		put(w, "\tst.shared.u32 [_hals_number], %_hals_i;\n");
	put(w, "$_hals_wait:\n");
	if (bits)
		put(w, tell_bits);
	else
		putf(w,
		     "\tbarrier.sync %d;\n\tld.shared.u32 %%_hals_i, [_hals_number];\n",
		     PTX_LOOP_BARRIER);
	put(w, "\tsetp.eq.u32 %_hals_p, %_hals_i, %_hals_j;\n"
	       "\t@%_hals_p ret;\n");
	put_place(w, reads(w->m, f, "%ctaid"));
	put_extent(w, reads(w->m, f, "%nctaid"));
}

static bool copies(const struct ptx *m, const struct ptx_function *f)
{
	uint32_t i;

	for (i = f->first; i < f->first + f->count; i++)
		if (m->statements[i].kind == PTX_INSTRUCTION &&
		    ptx_class_of(m, &m->statements[i]) == PTX_CPASYNC)
			return true;
	return false;
}

static void end_loop(struct writer *w, const struct ptx_function *f)
{
	put(w, "\n$_hals_end:\n");
	if (has(w->m, f, "alloca"))
		put(w, "\tstackrestore.u64 %_hals_s;\n");
	if (copies(w->m, f))
		put(w, "\tcp.async.wait_all;\n");
	/* Nobody reads the next number, or writes to shared memory, before all are here.
	 */
	putf(w, "\tbarrier.sync %d;\n", PTX_LOOP_BARRIER);
	put(w, "\tbra $_hals_next;\n");
}

static void stop_statement(struct writer *w, const struct ptx_statement *s)
{
	const struct ptx *m = w->m;
	uint32_t i;

	if (s->kind != PTX_INSTRUCTION)
		return;
	/* A launch that may begin early begins when this one has ended: blocks that were
	 * stopped have ended, too, and only then its own see their flag. */
	if (ptx_class_of(m, s) == PTX_DEPEND && ptx_dot(m, s, ".launch_dependents")) {
		copy_to(w, m->tokens[s->first].at);
		w->at = end_of(m, s->first + s->count - 1);
		return;
	}
	if (w->pass == PTX_LOOP && ptx_class_of(m, s) == PTX_RETURN) {
		copy_to(w, m->tokens[s->op].at);
		put(w, "bra $_hals_end");
		w->at = end_of(m, s->op + s->dots);
		return;
	}
	for (i = s->first; i < s->first + s->count; i++) {
		const bool n = ptx_is(m, i, "%nctaid");

		if (!ptx_is_grid(m, i))
			continue;
		copy_to(w, m->tokens[i].at);
		putf(w, "%%_hals_%s%c", n ? "n" : "", ptx_at(m, i + 1)[1]);
		w->at = end_of(m, i + 1);
	}
}

/* ---- bounds ---------------------------------------------------------------------------- */

static const char bounds_begin[] = "\n\t.reg .pred %_halb_q, %_halb_z, %_halb_s;\n"
				   "\t.reg .b32 %_halb_n, %_halb_w;\n"
				   "\t.reg .b64 %_halb_base, %_halb_bytes;\n"
				   "\t.reg .b64 %_halb_o, %_halb_a;\n"
				   "\tld.param.u64 %_halb_base, [_halb_from];\n"
				   "\tld.param.u64 %_halb_bytes, [_halb_long];\n"
				   "\tmov.u32 %_halb_w, 0;\n";

/* Where a thread ends.  What it has done is kept in a register until then: by ptxas that
 * takes fewer than a predicate, or a store at each access. */
static const char bounds_end[] = "setp.ne.u32 %_halb_s, %_halb_w, 0;\n"
				 "\t@%_halb_s ld.param.u64 %_halb_a, [_halb_astray];\n"
				 "\t@%_halb_s st.global.u32 [%_halb_a], 1;\n\t";

/* Where the access is in the range, to _halb_o. */
static void put_offset(struct writer *w, const struct ptx_access *a)
{
	const bool generic = a->space == PTX_GENERIC;

	if (a->offset) {
		put(w, "add.s64 %_halb_a, ");
		put_token(w, a->base);
		putf(w, ", %lld;\n\t", (long long)a->offset);
		put(w, "sub.s64 %_halb_o, %_halb_a, %_halb_base;\n\t");
	} else {
		if (generic) {
			put(w, "mov.b64 %_halb_a, ");
			put_token(w, a->base);
			put(w, ";\n\t");
		}
		put(w, "sub.s64 %_halb_o, ");
		put_token(w, a->base);
		put(w, ", %_halb_base;\n\t");
	}
	/* The block's own memory is no matter of ours. */
	if (generic)
		put(w, "isspacep.shared %_halb_q, %_halb_a;\n"
		       "\t@%_halb_q mov.b64 %_halb_o, 0;\n"
		       "\tisspacep.local %_halb_q, %_halb_a;\n"
		       "\t@%_halb_q mov.b64 %_halb_o, 0;\n\t");
}

static void put_zeros(struct writer *w, const struct ptx_function *f, uint32_t number)
{
	const struct ptx_statement *s = &w->m->statements[number];
	uint32_t i;

	if (!ptx_access_gives(w->m, s))
		return;
	for (i = s->operand[0].first; i < s->operand[0].first + s->operand[0].count;
	     i++) {
		const struct ptx_register *r;

		if (w->m->tokens[i].kind != PTX_NAME || ptx_is(w->m, i, "_"))
			continue;
		r = ptx_register_of(w->m, f, number, i);
		putf(w, "\n\t@%%_halb_z mov.b%u ", r->bits);
		put_token(w, i);
		put(w, ", 0;");
	}
}

static void fence_copy(struct writer *w, const struct ptx_statement *s)
{
	const struct ptx *m = w->m;
	const struct ptx_operand *size = &s->operand[s->operand_count - 1];

	put(w, "selp.b32 %_halb_n, ");
	put_tokens(w, size->first, size->count);
	put(w, ", 0, %_halb_q;\n\t");
	copy_to(w, end_of(m, s->operand[2].first + s->operand[2].count - 1));
	put(w, ", %_halb_n;");
	w->at = end_of(m, s->first + s->count - 1);
}

/* It may name what is not there. */
static bool is_hint(const struct ptx *m, const struct ptx_statement *s)
{
	return ptx_begins(m, s->op, "prefetch") || ptx_is(m, s->op, "applypriority");
}

/* Does the body go on behind its last statement? */
static bool falls_out(const struct ptx *m, const struct ptx_function *f)
{
	const struct ptx_statement *last = &m->statements[f->first + f->count];

	if (!f->count)
		return true;
	last--;
	return last->kind != PTX_INSTRUCTION || last->guard ||
	       ptx_class_of(m, last) != PTX_RETURN;
}

static void bounds_statement(struct writer *w, const struct ptx_function *f,
			     uint32_t number)
{
	const struct ptx *m = w->m;
	const struct ptx_statement *s = &m->statements[number];
	enum ptx_class class;
	struct ptx_access a;

	if (s->kind != PTX_INSTRUCTION)
		return;
	class = ptx_class_of(m, s);
	if (class == PTX_RETURN) {
		copy_to(w, m->tokens[s->first].at);
		put(w, bounds_end);
	}
	if (class != PTX_ACCESS && class != PTX_CPASYNC)
		return;
	a.space = class == PTX_CPASYNC ? PTX_GLOBAL : ptx_space_of(m, s);
	if ((a.space != PTX_GLOBAL && a.space != PTX_GENERIC) ||
	    ptx_access_of(m, f, number, &a) || a.variable)
		return;
	copy_to(w, m->tokens[s->first].at);
	put_offset(w, &a);
	putf(w, "setp.lt%s.u64 %%_halb_q|%%_halb_z, %%_halb_o, %%_halb_bytes",
	     s->guard ? ".and" : "");
	if (s->guard) {
		put(w, s->guard_not ? ", !" : ", ");
		put_token(w, s->guard);
	}
	put(w, ";\n\t");
	if (!is_hint(m, s))
		put(w, "@%_halb_z mov.u32 %_halb_w, 1;\n\t");
	if (class == PTX_CPASYNC) {
		fence_copy(w, s);
		return;
	}
	put(w, "@%_halb_q ");
	w->at = m->tokens[s->op].at;
	copy_to(w, end_of(m, s->first + s->count - 1));
	put_zeros(w, f, number);
}

/* ---- a kernel -------------------------------------------------------------------------- */

static void put_parameters(struct writer *w, const struct ptx_function *f)
{
	const char *more = w->pass == PTX_BOUNDS ? "\n\t.param .u64 _halb_from,\n"
						   "\t.param .u64 _halb_long,\n"
						   "\t.param .u64 _halb_astray\n"
						 : "\n\t.param .u64 _hals_control\n";

	copy_to(w, f->parens ? w->m->tokens[f->close].at : end_of(w->m, f->name));
	put(w, f->parens ? f->params ? "," : "" : "(");
	put(w, more);
	put(w, f->parens ? "" : ")");
}

static void rewrite(struct writer *w, const struct ptx_function *f)
{
	const struct ptx *m = w->m;
	uint32_t i;

	put_parameters(w, f);
	copy_to(w, end_of(m, f->brace));
	if (w->pass == PTX_ENTRY)
		begin_entry(w, f);
	else if (w->pass == PTX_LOOP)
		begin_loop(w, f);
	else
		put(w, bounds_begin);
	for (i = f->first; i < f->first + f->count; i++) {
		if (w->pass == PTX_BOUNDS)
			bounds_statement(w, f, i);
		else
			stop_statement(w, &m->statements[i]);
	}
	copy_to(w, m->tokens[f->end].at); /* the body's } */
	if (w->pass == PTX_LOOP)
		end_loop(w, f);
	if (w->pass == PTX_BOUNDS && falls_out(m, f)) {
		put(w, "\n\t");
		put(w, bounds_end);
	}
}

int ptx_rewrite(const struct ptx *m, enum ptx_pass pass, const bool *which, char **text,
		size_t *bytes, char why[PTX_WHY])
{
	struct writer w = {.m = m, .pass = pass};
	uint32_t i;
	bool *made = calloc(m->function_count + 1u, sizeof(*made)); /* by function */
	int err = 0;

	why[0] = 0;
	if (!made)
		return ptx_fail(why, ENOMEM, "no memory for %u kernels", m->entry_count);
	for (i = 0; !err && i < m->entry_count; i++) {
		if (which && !which[i])
			continue;
		err = ptx_check(m, i, pass, why);
		made[m->entries[i]] = true;
	}
	for (i = 0; !err && i < m->function_count; i++) {
		const struct ptx_function *f = &m->functions[i];

		if (!made[f->has_body ? i : f->def])
			continue;
		if (f->has_body)
			rewrite(&w, f);
		else
			put_parameters(&w, f); /* a kernel is declared as it is defined */
	}
	free(made);
	if (err) {
		free(w.text);
		return err;
	}
	copy_to(&w, m->bytes);
	add(&w, "", 0);
	if (w.failed) {
		free(w.text);
		return ptx_fail(why, ENOMEM, "no memory for %zu bytes of PTX", w.room);
	}
	*text = w.text;
	*bytes = w.count;
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The passes: BOUNDS, and what all have in common.  ENTRY and LOOP are in stop.c, COLOR
 * in color.c.
 */
#define _GNU_SOURCE
#include "write.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

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
static void put_offset(struct ptx_writer *w, const struct ptx_access *a)
{
	const bool generic = a->space == PTX_GENERIC;

	if (a->offset) {
		ptx_put(w, "add.s64 %_halb_a, ");
		ptx_put_token(w, a->base);
		ptx_putf(w, ", %lld;\n\t", (long long)a->offset);
		ptx_put(w, "sub.s64 %_halb_o, %_halb_a, %_halb_base;\n\t");
	} else {
		if (generic) {
			ptx_put(w, "mov.b64 %_halb_a, ");
			ptx_put_token(w, a->base);
			ptx_put(w, ";\n\t");
		}
		ptx_put(w, "sub.s64 %_halb_o, ");
		ptx_put_token(w, a->base);
		ptx_put(w, ", %_halb_base;\n\t");
	}
	/* The block's own memory is no matter of ours. */
	if (generic)
		ptx_put(w, "isspacep.shared %_halb_q, %_halb_a;\n"
			   "\t@%_halb_q mov.b64 %_halb_o, 0;\n"
			   "\tisspacep.local %_halb_q, %_halb_a;\n"
			   "\t@%_halb_q mov.b64 %_halb_o, 0;\n\t");
}

static void put_zeros(struct ptx_writer *w, const struct ptx_function *f, uint32_t number)
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
		ptx_putf(w, "\n\t@%%_halb_z mov.b%u ", r->bits);
		ptx_put_token(w, i);
		ptx_put(w, ", 0;");
	}
}

static void fence_copy(struct ptx_writer *w, const struct ptx_statement *s)
{
	const struct ptx *m = w->m;
	const struct ptx_operand *size = &s->operand[s->operand_count - 1];

	ptx_put(w, "selp.b32 %_halb_n, ");
	ptx_put_tokens(w, size->first, size->count);
	ptx_put(w, ", 0, %_halb_q;\n\t");
	ptx_copy_to(w, ptx_end_of(m, s->operand[2].first + s->operand[2].count - 1));
	ptx_put(w, ", %_halb_n;");
	w->at = ptx_end_of(m, s->first + s->count - 1);
}

/* It may name what is not there. */
static bool is_hint(const struct ptx *m, const struct ptx_statement *s)
{
	return ptx_begins(m, s->op, "prefetch") || ptx_is(m, s->op, "applypriority");
}

static void bounds_statement(struct ptx_writer *w, const struct ptx_function *f,
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
		ptx_copy_to(w, m->tokens[s->first].at);
		ptx_put(w, bounds_end);
	}
	if (class != PTX_ACCESS && class != PTX_CPASYNC)
		return;
	a.space = class == PTX_CPASYNC ? PTX_GLOBAL : ptx_space_of(m, s);
	if ((a.space != PTX_GLOBAL && a.space != PTX_GENERIC) ||
	    ptx_access_of(m, f, number, &a) || a.variable)
		return;
	ptx_copy_to(w, m->tokens[s->first].at);
	put_offset(w, &a);
	ptx_putf(w, "setp.lt%s.u64 %%_halb_q|%%_halb_z, %%_halb_o, %%_halb_bytes",
		 s->guard ? ".and" : "");
	if (s->guard) {
		ptx_put(w, s->guard_not ? ", !" : ", ");
		ptx_put_token(w, s->guard);
	}
	ptx_put(w, ";\n\t");
	if (!is_hint(m, s))
		ptx_put(w, "@%_halb_z mov.u32 %_halb_w, 1;\n\t");
	if (class == PTX_CPASYNC) {
		fence_copy(w, s);
		return;
	}
	ptx_put(w, "@%_halb_q ");
	w->at = m->tokens[s->op].at;
	ptx_copy_to(w, ptx_end_of(m, s->first + s->count - 1));
	put_zeros(w, f, number);
}

/* ---- a kernel -------------------------------------------------------------------------- */

static void put_parameters(struct ptx_writer *w, const struct ptx_function *f)
{
	static const char stops[] = "\n\t.param .u64 _hals_control,\n"
				    "\t.param .u64 _hals_from,\n"
				    "\t.param .u64 _hals_to,\n"
				    "\t.param .u32 _hals_x,\n"
				    "\t.param .u32 _hals_y,\n"
				    "\t.param .u32 _hals_z,\n"
				    "\t.param .u32 _hals_count\n";
	static const char bounds[] = "\n\t.param .u64 _halb_from,\n"
				     "\t.param .u64 _halb_long,\n"
				     "\t.param .u64 _halb_astray\n";
	static const char colors[] = "\n\t.param .u64 _halc_from,\n"
				     "\t.param .u64 _halc_bytes,\n"
				     "\t.param .u64 _halc_moved,\n"
				     "\t.param .u32 _halc_target,\n"
				     "\t.param .u32 _halc_sum\n";

	ptx_copy_to(w, f->parens ? w->m->tokens[f->close].at : ptx_end_of(w->m, f->name));
	ptx_put(w, f->parens ? f->params ? "," : "" : "(");
	ptx_put(w, w->pass == PTX_BOUNDS  ? bounds
		   : w->pass == PTX_COLOR ? colors
					  : stops);
	ptx_put(w, f->parens ? "" : ")");
}

static void write_bounds(struct ptx_writer *w, const struct ptx_function *f)
{
	uint32_t i;

	ptx_put(w, bounds_begin);
	for (i = f->first; i < f->first + f->count; i++)
		bounds_statement(w, f, i);
	ptx_copy_to(w, w->m->tokens[f->end].at); /* the body's } */
	if (!ptx_falls_out(w->m, f))
		return;
	ptx_put(w, "\n\t");
	ptx_put(w, bounds_end);
}

static int rewrite(struct ptx_writer *w, const struct ptx_function *f, char why[PTX_WHY])
{
	put_parameters(w, f);
	if (!f->has_body)
		return 0; /* a kernel is declared as it is defined */
	ptx_copy_to(w, ptx_end_of(w->m, f->brace));
	if (w->pass == PTX_BOUNDS)
		write_bounds(w, f);
	else if (w->pass == PTX_COLOR)
		ptx_write_color(w, f);
	else
		return ptx_write_stops(w, f, why);
	return 0;
}

static int rewrite_all(const struct ptx *m, enum ptx_pass pass,
		       const struct ptx_color *color, const bool *which, char **text,
		       size_t *bytes, char why[PTX_WHY])
{
	struct ptx_writer w = {.m = m, .pass = pass, .color = color};
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

		if (made[f->has_body ? i : f->def])
			err = rewrite(&w, f, why);
	}
	free(made);
	if (err) {
		free(w.text);
		return err;
	}
	ptx_copy_to(&w, m->bytes);
	ptx_put(&w, "");
	if (w.failed) {
		free(w.text);
		return ptx_fail(why, ENOMEM, "no memory for %zu bytes of PTX", w.room);
	}
	*text = w.text;
	*bytes = w.count;
	return 0;
}

int ptx_rewrite(const struct ptx *m, enum ptx_pass pass, const bool *which, char **text,
		size_t *bytes, char why[PTX_WHY])
{
	if (pass == PTX_COLOR)
		return ptx_fail(why, EINVAL, "the pass color needs a map");
	return rewrite_all(m, pass, NULL, which, text, bytes, why);
}

int ptx_rewrite_color(const struct ptx *m, const struct ptx_color *color,
		      const bool *which, char **text, size_t *bytes, char why[PTX_WHY])
{
	return rewrite_all(m, PTX_COLOR, color, which, text, bytes, why);
}

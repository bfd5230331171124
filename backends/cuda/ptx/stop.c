/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ENTRY, RESTART and LOOP.  What a launch is for comes by value, so that no block waits
 * for it; only the flag is in memory.
 *
 * ENTRY: one thread reads the flag as the block begins, and all threads vote as late as
 * vote.h finds, or at the kernel's own first barrier.  What a block does that is stopped,
 * or that is one of a list, stands behind the kernel's end.
 *
 * RESTART: as ENTRY, and the kernel's own barriers in loops are votes, too.
 *
 * LOOP: a block has every n-th block of the grid, and a number in memory says how many it
 * has done.  One thread reads the flag while a block of the grid runs, and all threads
 * vote at its end, where they wait for one another in any case.
 */
#define _GNU_SOURCE
#include "write.h"

#include <errno.h>
#include <stdlib.h>

#include "vote.h"

_Static_assert(sizeof(struct ptx_control) == 8, "what the kernels reach of it");
_Static_assert(sizeof(struct ptx_launch) == 40, "what the parameters are");

static const char registers[] =
	"\n\t.reg .pred %_hals_p, %_hals_q;\n"
	"\t.reg .b32 %_hals_i, %_hals_j, %_hals_f, %_hals_x, %_hals_y, %_hals_z;\n"
	"\t.reg .b32 %_hals_nx, %_hals_ny;\n"
	"\t.reg .b64 %_hals_c, %_hals_l;\n"
	"\tld.param.u64 %_hals_c, [_hals_control];\n";

/* Return whether the kernel declares that its blocks have one dimension. */
static bool is_flat(const struct ptx *m, const struct ptx_function *f)
{
	uint32_t i, j;

	for (i = f->tuned; i < f->brace; i++) {
		bool flat = true;

		if (!ptx_is(m, i, ".maxntid") && !ptx_is(m, i, ".reqntid"))
			continue;
		for (j = i + 2; j < f->brace && m->tokens[j].kind != PTX_DOT; j++)
			flat &= ptx_is(m, j, "1") || ptx_is(m, j, ",");
		return flat;
	}
	return false;
}

/* To _hals_p whether the thread is not the block's first. */
static void put_leader(struct ptx_writer *w, const struct ptx_function *f)
{
	ptx_put(w, "\tmov.u32 %_hals_x, %tid.x;\n");
	if (!is_flat(w->m, f))
		ptx_put(w, "\tmov.u32 %_hals_y, %tid.y;\n"
			   "\tmov.u32 %_hals_z, %tid.z;\n"
			   "\tor.b32 %_hals_x, %_hals_x, %_hals_y;\n"
			   "\tor.b32 %_hals_x, %_hals_x, %_hals_z;\n");
	ptx_put(w, "\tsetp.ne.u32 %_hals_p, %_hals_x, 0;\n");
}

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

/* Of the number in _hals_i, to _hals_x, y and z.  Divisions are dear, and a grid of one
 * dimension needs none. */
static void put_place(struct ptx_writer *w, uint32_t bits, const char *done)
{
	if (!bits)
		return;
	ptx_put(w, "\tld.param.u32 %_hals_nx, [_hals_x];\n"
		   "\tsetp.lt.u32 %_hals_q, %_hals_i, %_hals_nx;\n"
		   "\tmov.u32 %_hals_x, %_hals_i;\n");
	if (bits == 1) {
		ptx_put(w, "\t@!%_hals_q rem.u32 %_hals_x, %_hals_i, %_hals_nx;\n");
		return;
	}
	ptx_put(w, bits & 2 ? "\tmov.u32 %_hals_y, 0;\n" : "");
	ptx_put(w, bits & 4 ? "\tmov.u32 %_hals_z, 0;\n" : "");
	ptx_putf(w, "\t@%%_hals_q bra %s;\n", done);
	ptx_put(w, "\tdiv.u32 %_hals_j, %_hals_i, %_hals_nx;\n"
		   "\tld.param.u32 %_hals_ny, [_hals_y];\n");
	if (bits & 1)
		ptx_put(w, "\tmul.lo.u32 %_hals_x, %_hals_j, %_hals_nx;\n"
			   "\tsub.u32 %_hals_x, %_hals_i, %_hals_x;\n");
	ptx_put(w, "\tsetp.lt.u32 %_hals_q, %_hals_j, %_hals_ny;\n");
	if (bits & 2)
		ptx_put(w, "\tmov.u32 %_hals_y, %_hals_j;\n");
	if (!(bits & 4)) {
		ptx_put(w, "\t@!%_hals_q rem.u32 %_hals_y, %_hals_j, %_hals_ny;\n");
		return;
	}
	ptx_putf(w, "\t@%%_hals_q bra %s;\n", done);
	ptx_put(w, "\tdiv.u32 %_hals_z, %_hals_j, %_hals_ny;\n");
	if (bits & 2)
		ptx_put(w, "\tmul.lo.u32 %_hals_y, %_hals_z, %_hals_ny;\n"
			   "\tsub.u32 %_hals_y, %_hals_j, %_hals_y;\n");
}

/* Put what the kernel reads of the grid's place and size there instead. */
static void put_statement(struct ptx_writer *w, const struct ptx_statement *s)
{
	const struct ptx *m = w->m;
	uint32_t i;

	for (i = s->first; i < s->first + s->count; i++) {
		const bool n = ptx_is(m, i, "%nctaid");
		const char axis = (char)(ptx_is_grid(m, i) ? ptx_at(m, i + 1)[1] : 0);

		if (!axis)
			continue;
		if (n && ptx_is(m, s->op, "mov")) { /* mov.u32 r, %nctaid.x */
			ptx_replace(w, s->op, ptx_end_of(m, s->op + s->dots));
			ptx_put(w, "ld.param.u32");
		}
		ptx_replace(w, i, ptx_end_of(m, i + 1));
		if (n && ptx_is(m, s->op, "mov"))
			ptx_putf(w, "[_hals_%c]", axis);
		else
			ptx_putf(w, "%%_hals_%s%c", n ? "n" : "", axis);
	}
}

/* A cvt of %nctaid needs a register. */
static void put_extent(struct ptx_writer *w, const struct ptx_statement *s)
{
	const struct ptx *m = w->m;
	uint32_t i;

	for (i = s->first; i < s->first + s->count; i++)
		if (ptx_is_grid(m, i) && ptx_is(m, i, "%nctaid") &&
		    !ptx_is(m, s->op, "mov")) {
			const char axis = ptx_at(m, i + 1)[1];

			ptx_copy_to(w, m->tokens[s->first].at);
			ptx_putf(w, "ld.param.u32 %%_hals_n%c, [_hals_%c];\n\t", axis,
				 axis);
		}
}

/* A launch that may begin early begins when this one has ended: blocks that were stopped
 * have ended, too, and only then its own see their flag. */
static bool drop_dependents(struct ptx_writer *w, const struct ptx_statement *s)
{
	if (ptx_class_of(w->m, s) != PTX_DEPEND ||
	    !ptx_dot(w->m, s, ".launch_dependents"))
		return false;
	ptx_replace(w, s->first, ptx_end_of(w->m, s->first + s->count - 1));
	return true;
}

/* Have a branch, or an end, lead to a label of ours. */
static void lead_to(struct ptx_writer *w, const struct ptx_statement *s,
		    const char *label)
{
	const struct ptx *m = w->m;

	if (ptx_class_of(m, s) == PTX_RETURN)
		ptx_replace(w, s->op, ptx_end_of(m, s->op + s->dots));
	else
		ptx_replace(w, s->op, ptx_end_of(m, s->operand[0].first));
	ptx_putf(w, "bra %s", label);
}

/* ---- entry ----------------------------------------------------------------------------- */

/* again: the block also votes in loops, unless it is one of a list. */
static void begin_entry(struct ptx_writer *w, const struct ptx_function *f, bool again)
{
	const uint32_t place = reads(w->m, f, "%ctaid");

	ptx_put(w, registers);
	/*
	 * One thread looks: were it one of each warp, many short blocks would wait for
	 * that address in the cache (on an H100 a sum of 256 numbers a block took 2.4
	 * times as long).
	 */
	put_leader(w, f);
	ptx_put(w, "\t@!%_hals_p ld.volatile.global.u32 %_hals_f, [%_hals_c];\n");
	if (again)
		ptx_put(w, "\t.reg .pred %_hals_w;\n"
			   "\tld.param.u32 %_hals_i, [_hals_count];\n"
			   "\tsetp.le.and.s32 %_hals_w, %_hals_i, 0, !%_hals_p;\n");
	if (!place)
		return;
	if (place & 1)
		ptx_put(w, "\tmov.u32 %_hals_x, %ctaid.x;\n");
	if (place & 2)
		ptx_put(w, "\tmov.u32 %_hals_y, %ctaid.y;\n");
	if (place & 4)
		ptx_put(w, "\tmov.u32 %_hals_z, %ctaid.z;\n");
	ptx_put(w, "\tld.param.u32 %_hals_i, [_hals_count];\n"
		   "\tsetp.ne.u32 %_hals_q, %_hals_i, 0;\n"
		   "\t@%_hals_q bra $_hals_listed;\n"
		   "$_hals_placed:\n");
}

static const char load_again[] =
	"@%_hals_w ld.volatile.global.u32 %_hals_f, [%_hals_c];\n\t";

/* Only the first thread has a flag. */
static void put_vote(struct ptx_writer *w, bool parted)
{
	ptx_put(w, "setp.ne.and.u32 %_hals_q, %_hals_f, 0, !%_hals_p;\n");
	ptx_put(w, parted ? "\tbarrier.red.or.pred %_hals_q, 0, %_hals_q;\n"
			  : "\tbar.red.or.pred %_hals_q, 0, %_hals_q;\n");
}

static void vote(struct ptx_writer *w, const struct ptx_statement *s,
		 const struct ptx_vote *v, bool again)
{
	ptx_copy_to(w, w->m->tokens[s->first].at);
	put_vote(w, v->parted);
	ptx_put(w, "\t@%_hals_q bra $_hals_stopped;\n\t");
	ptx_put(w, again ? load_again : "");
	if (v->fused)
		w->at = ptx_end_of(w->m, s->first + s->count - 1);
}

/* At a barrier of the kernel's, in its place; by a flag that was read at the last one, so
 * that nobody waits for it. */
static void vote_again(struct ptx_writer *w, const struct ptx_statement *s)
{
	ptx_copy_to(w, w->m->tokens[s->first].at);
	put_vote(w, false);
	ptx_put(w, "\t@%_hals_q bra $_hals_stopped;\n\t");
	ptx_put(w, load_again);
	w->at = ptx_end_of(w->m, s->first + s->count - 1);
}

/* To _hals_i the number of a block of a list, or of a run; _hals_i is _hals_count. */
static const char load_number[] = "\tsetp.lt.s32 %_hals_q, %_hals_i, 0;\n"
				  "\tmov.u32 %_hals_i, %ctaid.x;\n"
				  "\tld.param.u64 %_hals_l, [_hals_from];\n"
				  "\t@%_hals_q cvt.u32.u64 %_hals_j, %_hals_l;\n"
				  "\t@%_hals_q add.u32 %_hals_i, %_hals_i, %_hals_j;\n"
				  "\t@!%_hals_q mad.wide.u32 %_hals_l, %_hals_i, 4, "
				  "%_hals_l;\n"
				  "\t@!%_hals_q ld.global.u32 %_hals_i, [%_hals_l];\n";

static const char note_number[] = "\tatom.global.add.u32 %_hals_j, [%_hals_c+4], 1;\n"
				  "\tld.param.u64 %_hals_l, [_hals_to];\n"
				  "\tmad.wide.u32 %_hals_l, %_hals_j, 4, %_hals_l;\n"
				  "\tst.global.u32 [%_hals_l], %_hals_i;\n"
				  "\tret;\n";

static bool copies(const struct ptx *m, const struct ptx_function *f)
{
	uint32_t i;

	for (i = f->first; i < f->first + f->count; i++)
		if (m->statements[i].kind == PTX_INSTRUCTION &&
		    ptx_class_of(m, &m->statements[i]) == PTX_CPASYNC)
			return true;
	return false;
}

static void end_entry(struct ptx_writer *w, const struct ptx_function *f,
		      const struct ptx_vote *v, bool again)
{
	const uint32_t place = reads(w->m, f, "%ctaid");

	ptx_put(w, ptx_falls_out(w->m, f) ? "\n\tret;" : "");
	if (v->early) {
		ptx_put(w, "\n$_hals_early:\n\t");
		put_vote(w, true);
		ptx_put(w, "\t@!%_hals_q ret;");
	}
	ptx_put(w, "\n$_hals_stopped:\n");
	if (again && copies(w->m, f))
		ptx_put(w, "\tcp.async.wait_all;\n");
	ptx_put(w, "\t@%_hals_p ret;\n"
		   "\tld.param.u32 %_hals_i, [_hals_count];\n"
		   "\tsetp.ne.u32 %_hals_q, %_hals_i, 0;\n"
		   "\t@%_hals_q bra $_hals_again;\n"
		   "\tmov.u32 %_hals_i, %ctaid.z;\n"
		   "\tmov.u32 %_hals_j, %nctaid.y;\n"
		   "\tmov.u32 %_hals_y, %ctaid.y;\n"
		   "\tmad.lo.u32 %_hals_i, %_hals_i, %_hals_j, %_hals_y;\n"
		   "\tmov.u32 %_hals_j, %nctaid.x;\n"
		   "\tmov.u32 %_hals_x, %ctaid.x;\n"
		   "\tmad.lo.u32 %_hals_i, %_hals_i, %_hals_j, %_hals_x;\n");
	ptx_put(w, note_number);
	ptx_put(w, "$_hals_again:\n");
	ptx_put(w, load_number);
	ptx_put(w, note_number);
	if (!place)
		return;
	ptx_put(w, "$_hals_listed:\n");
	ptx_put(w, load_number);
	put_place(w, place, "$_hals_placed");
	ptx_put(w, "\tbra $_hals_placed;\n");
}

static void write_body(struct ptx_writer *w, const struct ptx_function *f,
		       const struct ptx_flow *flow, const struct ptx_vote *v,
		       const bool *marks, bool again)
{
	uint32_t i;

	begin_entry(w, f, again);
	for (i = 0; i < f->count; i++) {
		const struct ptx_statement *s = &w->m->statements[f->first + i];

		if (i == v->at)
			vote(w, s, v, again);
		if (marks[i])
			vote_again(w, s);
		if (s->kind != PTX_INSTRUCTION || drop_dependents(w, s))
			continue;
		if (i < v->at && ptx_vote_leaves(w->m, flow, i)) {
			lead_to(w, s, "$_hals_early");
			continue;
		}
		put_extent(w, s);
		put_statement(w, s);
	}
	ptx_copy_to(w, w->m->tokens[f->end].at); /* the body's } */
	if (!f->count) {
		put_vote(w, false);
		ptx_put(w, "\t@%_hals_q bra $_hals_stopped;\n");
	}
	end_entry(w, f, v, again);
}

static int write_entry(struct ptx_writer *w, const struct ptx_function *f,
		       char why[PTX_WHY])
{
	bool *marks = calloc(f->count + 1u, sizeof(*marks)), again = false;
	struct ptx_flow flow = {0};
	struct ptx_vote v;
	uint32_t i;
	int err;

	if (!marks)
		return ptx_fail(why, ENOMEM, "no memory for %u marks", f->count);
	err = ptx_flow_find(w->m, f, &flow, why);
	if (!err)
		ptx_vote_find(w->m, &flow, &v);
	if (!err && w->pass == PTX_RESTART)
		err = ptx_vote_again(w->m, &flow, &v, marks, why);
	for (i = 0; !err && i < f->count; i++)
		again |= marks[i];
	if (!err)
		write_body(w, f, &flow, &v, marks, again);
	ptx_flow_free(&flow);
	free(marks);
	return err;
}

/* ---- loop ------------------------------------------------------------------------------ */

static bool has(const struct ptx *m, const struct ptx_function *f, const char *op)
{
	uint32_t i;

	for (i = f->first; i < f->first + f->count; i++)
		if (m->statements[i].kind == PTX_INSTRUCTION &&
		    ptx_is(m, m->statements[i].op, op))
			return true;
	return false;
}

/* The vote at the end of a block of the grid: nobody writes to shared memory for the next
 * one before all are here.  That one is run, unless it is stopped or is none. */
static void put_loop_vote(struct ptx_writer *w)
{
	ptx_putf(w,
		 "\tsetp.ne.and.u32 %%_hals_q, %%_hals_f, 0, !%%_hals_p;\n"
		 "\tbarrier.red.or.pred %%_hals_q, %d, %%_hals_q;\n"
		 "\tld.param.u32 %%_hals_j, [_hals_to];\n"
		 "\tsetp.lt.and.u32 %%_hals_q, %%_hals_i, %%_hals_j, !%%_hals_q;\n",
		 PTX_LOOP_BARRIER);
}

/* _hals_i is the number of a block of the grid; modulo _hals_count it is always the same,
 * which is whose turns they are. */
static void begin_loop(struct ptx_writer *w, const struct ptx_function *f)
{
	ptx_put(w, registers);
	if (has(w->m, f, "alloca"))
		ptx_put(w, "\t.reg .b64 %_hals_s;\n"
			   "\tstacksave.u64 %_hals_s;\n");
	put_leader(w, f);
	ptx_put(w, "\tmov.u32 %_hals_x, %ctaid.x;\n"
		   "$_hals_turns:\n"
		   "\tld.param.u32 %_hals_j, [_hals_count];\n"
		   "\tsetp.ge.u32 %_hals_q, %_hals_x, %_hals_j;\n"
		   "\t@%_hals_q ret;\n"
		   "\tld.param.u64 %_hals_l, [_hals_from];\n"
		   "\tmad.wide.u32 %_hals_l, %_hals_x, 4, %_hals_l;\n"
		   "\tld.global.u32 %_hals_i, [%_hals_l];\n"
		   "\tmad.lo.u32 %_hals_i, %_hals_i, %_hals_j, %_hals_x;\n"
		   "\t@!%_hals_p ld.volatile.global.u32 %_hals_f, [%_hals_c];\n");
	put_loop_vote(w);
	ptx_put(w, "\t@!%_hals_q bra $_hals_left;\n"
		   "$_hals_next:\n"
		   "\t@!%_hals_p ld.volatile.global.u32 %_hals_f, [%_hals_c];\n");
	put_place(w, reads(w->m, f, "%ctaid"), "$_hals_placed");
	ptx_put(w, "$_hals_placed:\n");
}

static void end_loop(struct ptx_writer *w, const struct ptx_function *f)
{
	ptx_put(w, "\n$_hals_end:\n");
	if (has(w->m, f, "alloca"))
		ptx_put(w, "\tstackrestore.u64 %_hals_s;\n");
	if (copies(w->m, f))
		ptx_put(w, "\tcp.async.wait_all;\n");
	ptx_put(w, "\tld.param.u32 %_hals_j, [_hals_count];\n"
		   "\tadd.u32 %_hals_i, %_hals_i, %_hals_j;\n");
	put_loop_vote(w);
	/* How many turns are done; then those of another, which are stopped, too. */
	ptx_put(w, "\t@%_hals_q bra $_hals_next;\n"
		   "$_hals_left:\n"
		   "\tsetp.lt.u32 %_hals_q, %_hals_i, %_hals_j;\n"
		   "\tld.param.u32 %_hals_j, [_hals_count];\n"
		   "\trem.u32 %_hals_x, %_hals_i, %_hals_j;\n"
		   "\tdiv.u32 %_hals_i, %_hals_i, %_hals_j;\n"
		   "\tld.param.u64 %_hals_l, [_hals_from];\n"
		   "\tmad.wide.u32 %_hals_l, %_hals_x, 4, %_hals_l;\n"
		   "\t@!%_hals_p st.global.u32 [%_hals_l], %_hals_i;\n"
		   "\tmov.u32 %_hals_j, %nctaid.x;\n"
		   "\tadd.u32 %_hals_x, %_hals_x, %_hals_j;\n"
		   "\t@!%_hals_q bra $_hals_turns;\n"
		   "\t@!%_hals_p red.global.add.u32 [%_hals_c+4], 1;\n"
		   "\tret;\n");
}

static void write_loop(struct ptx_writer *w, const struct ptx_function *f)
{
	uint32_t i;

	begin_loop(w, f);
	for (i = f->first; i < f->first + f->count; i++) {
		const struct ptx_statement *s = &w->m->statements[i];

		if (s->kind != PTX_INSTRUCTION || drop_dependents(w, s))
			continue;
		if (ptx_class_of(w->m, s) == PTX_RETURN) {
			lead_to(w, s, "$_hals_end");
			continue;
		}
		put_extent(w, s);
		put_statement(w, s);
	}
	ptx_copy_to(w, w->m->tokens[f->end].at); /* the body's } */
	end_loop(w, f);
}

int ptx_write_stops(struct ptx_writer *w, const struct ptx_function *f, char why[PTX_WHY])
{
	if (w->pass != PTX_LOOP)
		return write_entry(w, f, why);
	write_loop(w, f);
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loops that may wait for other blocks.  A block that is stopped before it begins never
 * does what another one waits for, so that this one never ends.
 *
 * A loop is the text between a branch and an earlier label that it leads to, and what
 * overlaps with that.  Within it each register has flags: what it holds may depend on an
 * atomic, or a load past the first cache (SHARED); on a plain load of an address that
 * stays the same (FIXED); or on what the loop itself changes each time (OWN).  A branch
 * by such a register hands them on to what stands between it and its target.
 *
 * The loop waits if an exit depends on SHARED, or if its exits depend on FIXED and none
 * is OWN.  Two loops get on by themselves: an atomic addition of a number that is not 0;
 * and a compare-and-swap of what the loop has read there, until it succeeds, as it fails
 * only where another block that runs has succeeded.
 */
#define _GNU_SOURCE
#include "wait.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "lex.h"

#define SHARED 1u
#define FIXED  2u
#define OWN    4u
#define KEPT   16u
#define WORK   100000000u

enum { CELL_SHARED, CELL_LOCAL, CELL_PARAM, CELLS };

struct waiting {
	const struct ptx *m;
	const struct ptx_flow *flow;
	const struct ptx_function *f;
	uint32_t *first; /* of each of the function's registers: its flags */
	uint8_t *flags;  /* registers, one by one; then memory of the block */
	uint8_t *under;  /* statements: what it depends on that they run */
	uint32_t cells, from, to;
	uint64_t work;
	bool changed;
};

static const struct ptx_statement *statement(const struct waiting *w, uint32_t i)
{
	return &w->m->statements[w->f->first + i];
}

/* ---- what an instruction reads ------------------------------------------------------- */

static bool is_number(const struct ptx *m, const struct ptx_operand *o, bool zero)
{
	int64_t v;

	return ptx_integer(m, o->first, o->count, &v) && (v == 0) == zero;
}

static bool same_operand(const struct ptx *m, const struct ptx_operand *a,
			 const struct ptx_operand *b)
{
	int64_t x, y;

	if (ptx_integer(m, a->first, a->count, &x) &&
	    ptx_integer(m, b->first, b->count, &y))
		return x == y;
	return a->count == 1 && b->count == 1 && ptx_same(m, a->first, b->first);
}

static bool of_grid(const struct ptx *m, const struct ptx_statement *s)
{
	const enum ptx_space space = ptx_space_of(m, s);

	return space == PTX_GLOBAL || space == PTX_GENERIC;
}

bool ptx_polls(const struct ptx *m, const struct ptx_statement *s)
{
	const struct ptx_operand *o = s->operand;

	if (!of_grid(m, s))
		return false;
	if (ptx_is(m, s->op, "ld"))
		return ptx_dot(m, s, ".volatile") || ptx_dot(m, s, ".acquire") ||
		       ptx_dot(m, s, ".relaxed") || ptx_dot(m, s, ".mmio") ||
		       ptx_dot(m, s, ".cv");
	if (!ptx_is(m, s->op, "atom") || s->operand_count < 3)
		return false;
	if (ptx_dot(m, s, ".add") || ptx_dot(m, s, ".or") || ptx_dot(m, s, ".xor"))
		return is_number(m, &o[2], true);
	if (ptx_dot(m, s, ".and")) {
		int64_t v;

		return ptx_integer(m, o[2].first, o[2].count, &v) &&
		       (v == -1 || v == UINT32_MAX);
	}
	return ptx_dot(m, s, ".cas") && s->operand_count > 3 &&
	       same_operand(m, &o[2], &o[3]);
}

uint32_t ptx_reads(const struct ptx *m, const struct ptx_statement *s)
{
	switch (ptx_class_of(m, s)) {
	case PTX_ACCESS:
		if (!of_grid(m, s))
			return 0;
		if (ptx_is(m, s->op, "atom"))
			return ptx_dot(m, s, ".add") && s->operand_count > 2 &&
					       is_number(m, &s->operand[2], false)
				       ? 0
				       : PTX_DOES_SHARED;
		if (!ptx_is(m, s->op, "ld") && !ptx_is(m, s->op, "ldu"))
			return 0;
		return ptx_polls(m, s) || ptx_dot(m, s, ".cg") ||
				       ptx_dot(m, s, ".L1::no_allocate")
			       ? PTX_DOES_SHARED
			       : PTX_DOES_READ;
	case PTX_MATRIX:
		return of_grid(m, s) ? PTX_DOES_READ : 0;
	case PTX_CPASYNC:
	case PTX_TEXTURE:
		return PTX_DOES_READ;
	case PTX_BULK:
	case PTX_TENSOR:
	case PTX_MULTIMEM:
		return PTX_DOES_SHARED;
	default:
		return 0;
	}
}

/* ---- functions ----------------------------------------------------------------------- */

uint32_t ptx_called(const struct ptx *m, const struct ptx_statement *s)
{
	const uint32_t i = s->operand_count && ptx_is(m, s->operand[0].first, "(");
	const struct ptx_operand *o = &s->operand[i];

	if (i >= s->operand_count || o->count != 1)
		return UINT32_MAX;
	return ptx_function_of(m, o->first);
}

uint32_t ptx_does(const struct ptx *m, const struct ptx_statement *s)
{
	const uint32_t f = ptx_called(m, s);

	return f == UINT32_MAX ? m->all_do : m->functions[f].does;
}

static uint32_t does_itself(const struct ptx *m, uint32_t number)
{
	const struct ptx_function *f = &m->functions[number];
	uint32_t i, bits = 0;

	for (i = f->first; i < f->first + f->count; i++) {
		const struct ptx_statement *s = &m->statements[i];

		if (s->kind != PTX_INSTRUCTION)
			continue;
		bits |= ptx_reads(m, s) | (ptx_polls(m, s) ? PTX_DOES_POLL : 0);
		bits |= ptx_is(m, s->op, "exit") ? PTX_DOES_EXIT : 0;
		if (ptx_class_of(m, s) != PTX_CALL)
			continue;
		/* Functions are declared before they are called: not so in a circle. */
		if (ptx_called(m, s) >= number)
			bits |= PTX_DOES_REPEAT;
	}
	return bits;
}

/* A call of a function's. */
struct call {
	uint32_t from;
	const struct ptx_statement *s;
};

/* Hand on what a function does to those that call it, until nothing changes. */
static void hand_on(struct ptx *m, const struct call *calls, uint32_t count)
{
	bool changed = true;
	uint32_t i, p, to;

	while (changed) {
		changed = false;
		for (i = 0; i < count; i++) {
			struct ptx_function *f = &m->functions[calls[i].from];
			const uint32_t bits = f->does | ptx_does(m, calls[i].s);

			changed |= bits != f->does;
			f->does = bits;
			to = ptx_called(m, calls[i].s);
			for (p = 0; p < 2; p++) {
				if (f->faulty[p])
					continue;
				f->faulty[p] = to == UINT32_MAX
						       ? m->any_faulty[p]
						       : m->functions[to].faulty[p];
				changed |= f->faulty[p] != 0;
			}
		}
	}
}

int ptx_wait_sum(struct ptx *m, char why[PTX_WHY])
{
	struct call *calls;
	uint32_t i, j, count = 0;
	int err;

	for (i = 0; i < m->statement_count; i++)
		count += m->statements[i].kind == PTX_INSTRUCTION &&
			 ptx_is(m, m->statements[i].op, "call");
	calls = calloc(count + 1u, sizeof(*calls));
	if (!calls)
		return ptx_fail(why, ENOMEM, "no memory for %u calls", count);
	for (count = i = 0; i < m->function_count; i++) {
		struct ptx_function *f = &m->functions[i];

		if (f->entry)
			continue;
		f->does = does_itself(m, i);
		for (j = f->first; j < f->first + f->count; j++)
			if (m->statements[j].kind == PTX_INSTRUCTION &&
			    ptx_is(m, m->statements[j].op, "call"))
				calls[count++] = (struct call){i, &m->statements[j]};
		m->all_do |= f->does;
	}
	hand_on(m, calls, count);
	/* They are checked by what the others do; then the results are handed on. */
	err = ptx_check_functions(m, why);
	if (!err) {
		hand_on(m, calls, count);
		why[0] = 0;
	}
	free(calls);
	return err;
}

/* ---- flags --------------------------------------------------------------------------- */

static uint8_t *flags_of(const struct waiting *w, uint32_t token)
{
	const struct ptx_register *r = ptx_register_of(w->m, w->f, 0, token);
	uint32_t n = 0;

	if (!r || w->m->tokens[token].kind != PTX_NAME)
		return NULL;
	if (r->count)
		n = (uint32_t)strtoul(ptx_at(w->m, token) + r->name_bytes, NULL, 10);
	return &w->flags[w->first[r - &w->m->registers[w->f->first_register]] + n];
}

static void set(struct waiting *w, uint8_t *at, uint32_t bits)
{
	if ((*at | bits) == *at)
		return;
	*at |= (uint8_t)bits;
	w->changed = true;
}

static uint32_t gather(const struct waiting *w, uint32_t first, uint32_t count)
{
	uint32_t i, bits = 0;

	for (i = first; i < first + count; i++) {
		const uint8_t *at = flags_of(w, i);

		if (at)
			bits |= *at;
		else if (ptx_begins(w->m, i, "%clock") ||
			 ptx_begins(w->m, i, "%globaltimer"))
			bits |= OWN;
	}
	return bits;
}

/* How many operands it writes to: none, or the first. */
static bool writes(const struct ptx *m, const struct ptx_statement *s)
{
	const enum ptx_class class = ptx_class_of(m, s);

	if (!s->operand_count)
		return false;
	if (class == PTX_CALL)
		return ptx_is(m, s->operand[0].first, "(");
	if (class == PTX_BRANCH || class == PTX_RETURN || class == PTX_CPASYNC)
		return false;
	return !ptx_is(m, s->op, "st") && !ptx_is(m, s->op, "red") &&
	       !ptx_is(m, s->operand[0].first, "[");
}

static uint8_t *cell_of(const struct waiting *w, enum ptx_space space)
{
	return space == PTX_SHARED  ? &w->flags[w->cells + CELL_SHARED]
	       : space == PTX_LOCAL ? &w->flags[w->cells + CELL_LOCAL]
	       : space == PTX_PARAM ? &w->flags[w->cells + CELL_PARAM]
				    : NULL;
}

static void set_cells(struct waiting *w, uint32_t bits)
{
	uint32_t i;

	for (i = 0; i < CELLS; i++)
		set(w, &w->flags[w->cells + i], bits);
}

/* What the result of an instruction depends on, of all that it reads. */
static uint32_t result(struct waiting *w, uint32_t number)
{
	const struct ptx *m = w->m;
	const struct ptx_statement *s = statement(w, number);
	const enum ptx_class class = ptx_class_of(m, s);
	const bool gives = writes(m, s);
	const uint32_t from = gives ? s->operand[0].first + s->operand[0].count : s->op;
	uint32_t bits =
		gather(w, from, s->first + s->count - from) & (SHARED | FIXED | OWN);
	uint32_t what = ptx_reads(m, s);
	uint8_t *cell;

	if (class == PTX_CALL) {
		what = ptx_does(m, s);
		bits |= w->flags[w->cells + CELL_PARAM];
	}
	if (class == PTX_ACCESS && ptx_is(m, s->op, "ld")) {
		cell = cell_of(w, ptx_space_of(m, s));
		if (!cell && ptx_space_of(m, s) == PTX_GENERIC)
			bits |= (w->flags[w->cells + CELL_SHARED] |
				 w->flags[w->cells + CELL_LOCAL]) &
				(SHARED | FIXED);
		if (cell)
			bits |= *cell & (SHARED | FIXED | OWN);
		if (ptx_space_of(m, s) == PTX_SHARED && !(bits & (SHARED | FIXED)))
			bits |= OWN; /* the block's own matter */
	}
	if (ptx_is(m, s->op, "atom") && !what)
		bits |= OWN;
	if (what & PTX_DOES_SHARED)
		bits = (bits | SHARED) & ~OWN;
	else if ((what & PTX_DOES_READ) && !(bits & OWN))
		bits |= FIXED;
	if (s->guard)
		bits |= gather(w, s->guard, 1);
	return (bits | w->under[number]) & (SHARED | FIXED | OWN);
}

static void assign(struct waiting *w, uint32_t number)
{
	const struct ptx *m = w->m;
	const struct ptx_statement *s = statement(w, number);
	const enum ptx_class class = ptx_class_of(m, s);
	const uint32_t bits = result(w, number), taint = bits & (SHARED | FIXED);
	uint8_t *at;
	uint32_t i;

	if (class == PTX_CPASYNC || class == PTX_BULK || class == PTX_TENSOR)
		set(w, cell_of(w, PTX_SHARED), taint);
	if (class == PTX_CALL)
		set_cells(w, taint);
	if (ptx_is(m, s->op, "st") || ptx_is(m, s->op, "atom")) {
		at = cell_of(w, ptx_space_of(m, s));
		if (at)
			set(w, at, bits);
		else if (ptx_space_of(m, s) == PTX_GENERIC && ptx_is(m, s->op, "st"))
			set_cells(w, taint);
	}
	if (!writes(m, s))
		return;
	for (i = s->operand[0].first; i < s->operand[0].first + s->operand[0].count;
	     i++) {
		at = flags_of(w, i);
		if (at)
			set(w, at, taint | (bits & OWN ? KEPT : 0));
	}
}

static uint32_t guard_of(const struct waiting *w, uint32_t number)
{
	const struct ptx_statement *s = statement(w, number);
	uint32_t bits = s->guard ? gather(w, s->guard, 1) : 0;

	if (ptx_is(w->m, s->op, "brx"))
		bits |= gather(w, s->op, s->first + s->count - s->op);
	return bits | w->under[number];
}

/* What a branch skips runs by what it goes by. */
static void branch(struct waiting *w, uint32_t number)
{
	const uint32_t bits = guard_of(w, number) & (SHARED | FIXED);
	const uint32_t to = w->flow->target[number];
	uint32_t i;

	if (!bits || to == PTX_NOWHERE || to <= number)
		return;
	for (i = number + 1; i < to && i <= w->to; i++)
		set(w, &w->under[i], bits);
}

/* ---- loops --------------------------------------------------------------------------- */

static bool is_loop_text(const struct waiting *w, uint32_t i)
{
	return statement(w, i)->kind == PTX_INSTRUCTION;
}

static void each_flag(struct waiting *w, uint8_t keep, uint8_t put)
{
	uint32_t i, j;

	for (i = w->from; i <= w->to; i++) {
		const struct ptx_statement *s = statement(w, i);

		for (j = s->first; is_loop_text(w, i) && j < s->first + s->count; j++) {
			uint8_t *at = flags_of(w, j);

			if (at)
				*at &= keep;
		}
		w->under[i] &= keep;
	}
	for (i = w->from; put && i <= w->to; i++) {
		const struct ptx_statement *s = statement(w, i);

		if (!is_loop_text(w, i) || !writes(w->m, s))
			continue;
		for (j = s->operand[0].first;
		     j < s->operand[0].first + s->operand[0].count; j++) {
			uint8_t *at = flags_of(w, j);

			if (at)
				*at |= put;
		}
	}
	w->work += UINT64_C(2) * (w->to - w->from + 1);
}

/* Each register that the loop writes is taken to be its OWN at first; what then depends
 * on none that is, is not. */
static bool keep_own(struct waiting *w)
{
	bool changed = false;
	uint32_t i, j;

	for (i = w->from; i <= w->to; i++) {
		const struct ptx_statement *s = statement(w, i);

		if (!is_loop_text(w, i) || !writes(w->m, s))
			continue;
		for (j = s->operand[0].first;
		     j < s->operand[0].first + s->operand[0].count; j++) {
			uint8_t *at = flags_of(w, j);

			if (!at || !(*at & OWN) || (*at & KEPT))
				continue;
			*at &= (uint8_t)~OWN;
			changed = true;
		}
	}
	return changed;
}

static void follow(struct waiting *w)
{
	uint32_t i;

	each_flag(w, 0, OWN);
	memset(&w->flags[w->cells], 0, CELLS);
	do {
		/* Again from the beginning: fewer are OWN. */
		each_flag(w, OWN, 0);
		memset(&w->flags[w->cells], 0, CELLS);
		do {
			w->changed = false;
			for (i = w->from; i <= w->to; i++) {
				if (!is_loop_text(w, i))
					continue;
				if (ptx_class_of(w->m, statement(w, i)) == PTX_BRANCH)
					branch(w, i);
				else
					assign(w, i);
			}
			w->work += w->to - w->from + 1;
		} while (w->changed && w->work < WORK);
	} while (keep_own(w) && w->work < WORK);
}

/* Does it leave the loop, or go round it once more? */
static bool leaves(const struct waiting *w, uint32_t i)
{
	const enum ptx_class class = ptx_class_of(w->m, statement(w, i));
	const uint32_t to = w->flow->target[i];

	if (class == PTX_RETURN)
		return true; /* a trap is no end that a loop waits for */
	return class == PTX_BRANCH &&
	       (to == PTX_NOWHERE || to < w->from || to > w->to || i == w->to ||
		ptx_is(w->m, statement(w, i)->op, "brx"));
}

/* Is its guard whether a compare-and-swap of what has been read has succeeded? */
static bool retries(struct waiting *w, uint32_t number)
{
	const struct ptx *m = w->m;
	const uint8_t *guard = statement(w, number)->guard
				       ? flags_of(w, statement(w, number)->guard)
				       : NULL;
	uint32_t i, j, k;

	w->work += guard ? w->to - w->from + 1 : 0;
	for (i = w->from; guard && i <= w->to && w->work < WORK; i++) {
		const struct ptx_statement *p = statement(w, i);

		if (!is_loop_text(w, i) || !ptx_is(m, p->op, "setp") ||
		    p->operand_count != 3 ||
		    !(ptx_dot(m, p, ".ne") || ptx_dot(m, p, ".eq")) ||
		    flags_of(w, p->operand[0].first) != guard)
			continue;
		/* Dearer than other steps: operands are compared. */
		w->work += UINT64_C(8) * (w->to - w->from + 1);
		for (j = w->from; j <= w->to; j++) {
			const struct ptx_statement *c = statement(w, j);

			if (!is_loop_text(w, j) || !ptx_is(m, c->op, "atom") ||
			    !ptx_dot(m, c, ".cas") || c->operand_count < 4 ||
			    same_operand(m, &c->operand[2], &c->operand[3]))
				continue;
			k = same_operand(m, &p->operand[1], &c->operand[0]) ? 2 : 1;
			if (same_operand(m, &p->operand[3 - k], &c->operand[0]) &&
			    same_operand(m, &p->operand[k], &c->operand[2]) &&
			    gather(w, c->operand[2].first, 1) & (SHARED | FIXED))
				/* Success leads out. */
				return (number == w->to &&
					w->flow->target[number] >= w->from) ==
				       (ptx_dot(m, p, ".ne") !=
					statement(w, number)->guard_not);
		}
	}
	return false;
}

static bool reads_any(const struct waiting *w)
{
	uint32_t i;

	for (i = w->from; i <= w->to; i++) {
		const struct ptx_statement *s = statement(w, i);

		if (is_loop_text(w, i) &&
		    (ptx_reads(w->m, s) ||
		     (ptx_class_of(w->m, s) == PTX_CALL && ptx_does(w->m, s))))
			return true;
	}
	return false;
}

/* whole: no larger loop begins at the same label. */
static void look(struct waiting *w, bool whole, uint32_t *at)
{
	uint32_t i, bits, waits = PTX_NOWHERE;
	bool own = false, shared = false;

	w->work += w->to - w->from + 1;
	if (!reads_any(w))
		return;
	follow(w);
	for (i = w->from; i <= w->to; i++) {
		const struct ptx_statement *s = statement(w, i);

		if (!is_loop_text(w, i))
			continue;
		if (ptx_class_of(w->m, s) == PTX_CALL &&
		    (ptx_does(w->m, s) & PTX_DOES_EXIT) &&
		    (ptx_does(w->m, s) & (PTX_DOES_SHARED | PTX_DOES_READ))) {
			waits = i;
			shared = true;
		}
		if (!leaves(w, i))
			continue;
		if (retries(w, i))
			return;
		bits = guard_of(w, i);
		own |= (bits & OWN) != 0;
		if (!(bits & (SHARED | FIXED)))
			continue;
		shared |= (bits & SHARED) != 0;
		if (waits == PTX_NOWHERE || (bits & SHARED))
			waits = i;
	}
	if (waits != PTX_NOWHERE && ((shared && whole) || !own))
		*at = waits;
}

static int begin(struct waiting *w, char why[PTX_WHY])
{
	const struct ptx_function *f = w->f;
	uint64_t n = 0;
	uint32_t i;

	w->first = calloc(f->registers + 1u, sizeof(*w->first));
	w->under = calloc(f->count + 1u, sizeof(*w->under));
	for (i = 0; w->first && i < f->registers && n < PTX_FLOW_REGISTERS; i++) {
		const uint32_t count = w->m->registers[f->first_register + i].count;

		w->first[i] = (uint32_t)n;
		n += count ? count : 1;
	}
	if (n >= PTX_FLOW_REGISTERS)
		return ptx_fail(why, ENOTSUP,
				"line %u: the function is too large for the search for "
				"waiting loops",
				w->m->tokens[f->name].line);
	w->cells = (uint32_t)n;
	w->flags = calloc(n + CELLS, 1);
	return w->first && w->under && w->flags
		       ? 0
		       : ptx_fail(why, ENOMEM, "no memory for %u statements", f->count);
}

/* Widen the loop by those that begin before it and end in it, or the other way round. */
static bool widen(struct waiting *w)
{
	const uint32_t from = w->from, to = w->to;
	uint32_t i, target;

	for (i = from; i < w->f->count; i++) {
		target = w->flow->target[i];
		if (target == PTX_NOWHERE || target > i)
			continue;
		if (i < w->to && target < w->from)
			w->from = target;
		if (i > w->to && target > w->from && target <= w->to)
			w->to = i;
	}
	w->work += w->f->count - from;
	return w->from != from || w->to != to;
}

int ptx_wait_find(const struct ptx *m, const struct ptx_flow *flow, uint32_t *at,
		  char why[PTX_WHY])
{
	struct waiting w = {.m = m, .flow = flow, .f = flow->f};
	uint32_t *last = calloc(flow->f->count + 1u, sizeof(*last)), i, to;
	int err = last ? begin(&w, why) : ptx_fail(why, ENOMEM, "no memory for a loop");

	*at = PTX_NOWHERE;
	for (i = 0; last && !err && i < flow->f->count; i++)
		if (flow->target[i] <= i)
			last[flow->target[i]] = i;
	for (i = 0; last && !err && *at == PTX_NOWHERE && i < flow->f->count; i++) {
		to = flow->target[i];
		if (to > i)
			continue;
		w.from = to;
		w.to = i;
		look(&w, last[to] == i, at);
		while (*at == PTX_NOWHERE && widen(&w) && w.work < WORK)
			look(&w, true, at);
	}
	if (!err && w.work >= WORK)
		err = ptx_fail(why, ENOTSUP,
			       "line %u: the function is too large for the search for "
			       "waiting loops",
			       m->tokens[flow->f->name].line);
	free(last);
	free(w.first);
	free(w.flags);
	free(w.under);
	return err;
}

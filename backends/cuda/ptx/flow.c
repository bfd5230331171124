/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Branches, loops, and what only a part of a block's threads may run.
 *
 * The last goes by what a register may depend on: the thread's place, memory, another
 * thread; and by where statements stand: between a branch that not all threads take and
 * its target only some are, in what compilers make of ifs and loops.  Another order of
 * statements makes more of them suspect, as their branches span more.
 */
#define _GNU_SOURCE
#include "flow.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lex.h"

#define STATEMENTS_MOST (1u << 16)

static int by_name(const void *a, const void *b, void *module)
{
	const struct ptx *m = module;
	const uint32_t x = m->statements[*(const uint32_t *)a].first;
	const uint32_t y = m->statements[*(const uint32_t *)b].first;
	const uint32_t n = m->tokens[x].bytes < m->tokens[y].bytes ? m->tokens[x].bytes
								   : m->tokens[y].bytes;
	const int order = memcmp(ptx_at(m, x), ptx_at(m, y), n);

	if (order)
		return order;
	if (m->tokens[x].bytes != m->tokens[y].bytes)
		return m->tokens[x].bytes < m->tokens[y].bytes ? -1 : 1;
	return x < y ? -1 : x > y;
}

/* The first statement that the token may name; scopes may have the same labels. */
static uint32_t target_of(const struct ptx *m, const uint32_t *labels, uint32_t count,
			  uint32_t token)
{
	uint32_t low = 0, high = count, middle, n;
	const uint32_t bytes = m->tokens[token].bytes;
	int order;

	while (low < high) {
		const struct ptx_token *t;

		middle = low + (high - low) / 2;
		t = &m->tokens[m->statements[labels[middle]].first];
		n = t->bytes < bytes ? t->bytes : bytes;
		order = memcmp(m->text + t->at, ptx_at(m, token), n);
		if (!order)
			order = t->bytes < bytes ? -1 : 0;
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	if (low < count && ptx_same(m, m->statements[labels[low]].first, token))
		return labels[low];
	return UINT32_MAX;
}

int ptx_flow_find(const struct ptx *m, const struct ptx_function *f,
		  struct ptx_flow *flow, char why[PTX_WHY])
{
	uint32_t *labels = calloc(f->count + 1u, sizeof(*labels)), count = 0, i, to;

	ptx_flow_free(flow);
	flow->f = f;
	flow->target = calloc(f->count + 1u, sizeof(*flow->target));
	flow->again = calloc(f->count + 1u, sizeof(*flow->again));
	if (!labels || !flow->target || !flow->again) {
		free(labels);
		return ptx_fail(why, ENOMEM, "no memory for %u labels", f->count);
	}
	for (i = 0; i < f->count; i++)
		if (m->statements[f->first + i].kind == PTX_LABEL)
			labels[count++] = f->first + i;
	/* Only read there. */
	qsort_r(labels, count, sizeof(*labels), by_name, (void *)m);
	for (i = 0; i < f->count; i++) {
		const struct ptx_statement *s = &m->statements[f->first + i];

		flow->target[i] = PTX_NOWHERE;
		if (s->kind != PTX_INSTRUCTION || ptx_class_of(m, s) != PTX_BRANCH)
			continue;
		to = 0; /* of brx: wherever */
		if (!ptx_is(m, s->op, "brx") && s->operand_count)
			to = target_of(m, labels, count, s->operand[0].first);
		if (to == UINT32_MAX)
			continue;
		flow->target[i] = to < f->first ? 0 : to - f->first;
	}
	/* Backwards: how far what is behind leads back. */
	for (to = UINT32_MAX, i = f->count; i--;) {
		to = flow->target[i] < to ? flow->target[i] : to;
		flow->again[i] = to <= i;
	}
	free(labels);
	return 0;
}

void ptx_flow_free(struct ptx_flow *flow)
{
	free(flow->target);
	free(flow->again);
	memset(flow, 0, sizeof(*flow));
}

/* ---- what differs from thread to thread ------------------------------------------------ */

struct parts {
	const struct ptx *m;
	const struct ptx_flow *flow;
	uint32_t *first; /* of each of the function's registers: its flag */
	bool *differs;   /* registers, one by one */
	bool *some;      /* statements: only some threads may get there */
	bool changed;
};

bool ptx_waits(const struct ptx *m, const struct ptx_statement *s)
{
	/* Those of a warp, too. */
	return ptx_class_of(m, s) == PTX_BARRIER || ptx_dot(m, s, ".sync");
}

/* NULL: the token names no register. */
static bool *flag_of(const struct parts *p, uint32_t number, uint32_t token)
{
	const struct ptx_function *f = p->flow->f;
	const struct ptx_register *r;
	uint32_t n = 0;

	if (p->m->tokens[token].kind != PTX_NAME)
		return NULL;
	r = ptx_register_of(p->m, f, f->first + number, token);
	if (!r)
		return NULL;
	if (r->count)
		n = (uint32_t)strtoul(ptx_at(p->m, token) + r->name_bytes, NULL, 10);
	return &p->differs[p->first[r - &p->m->registers[f->first_register]] + n];
}

static void set(struct parts *p, bool *flag)
{
	p->changed |= !*flag;
	*flag = true;
}

static void set_span(struct parts *p, uint32_t from, uint32_t to)
{
	for (; from < to && from < p->flow->f->count; from++)
		set(p, &p->some[from]);
}

/* Not the same for all threads of a block, whatever it is given. */
static bool differs_by_itself(const struct ptx *m, const struct ptx_statement *s)
{
	const enum ptx_class class = ptx_class_of(m, s);
	const enum ptx_space space = ptx_space_of(m, s);
	uint32_t i;

	if (class == PTX_ACCESS)
		return space != PTX_PARAM && space != PTX_CONST;
	if (class != PTX_PLAIN && class != PTX_CVTA)
		return true;
	for (i = s->first; i < s->first + s->count; i++)
		if (ptx_begins(m, i, "%tid") || ptx_begins(m, i, "%laneid") ||
		    ptx_begins(m, i, "%warpid") || ptx_begins(m, i, "%clock") ||
		    ptx_begins(m, i, "%lanemask") || ptx_begins(m, i, "%globaltimer"))
			return true;
	return ptx_waits(m, s) || ptx_is(m, s->op, "activemask") ||
	       ptx_is(m, s->op, "alloca");
}

static bool guard_differs(const struct parts *p, uint32_t number)
{
	const struct ptx_statement *s = &p->m->statements[p->flow->f->first + number];
	const bool *flag = s->guard ? flag_of(p, number, s->guard) : NULL;

	return s->guard && (!flag || *flag);
}

static void branch(struct parts *p, uint32_t number)
{
	const uint32_t to = p->flow->target[number];

	if (!guard_differs(p, number) && !p->some[number] &&
	    !ptx_is(p->m, p->m->statements[p->flow->f->first + number].op, "brx"))
		return;
	if (to == PTX_NOWHERE ||
	    ptx_is(p->m, p->m->statements[p->flow->f->first + number].op, "brx"))
		set_span(p, 0, p->flow->f->count);
	else if (to > number)
		set_span(p, number + 1, to);
	else
		set_span(p, to, number + 1);
}

static void assign(struct parts *p, uint32_t number)
{
	const struct ptx *m = p->m;
	const struct ptx_statement *s = &m->statements[p->flow->f->first + number];
	bool differs = p->some[number] || guard_differs(p, number);
	uint32_t i;
	bool *flag;

	if (!s->operand_count || ptx_is(m, s->op, "st") || ptx_is(m, s->op, "red"))
		return;
	if (!(ptx_class_of(m, s) == PTX_BARRIER && ptx_dot(m, s, ".red"))) {
		differs |= differs_by_itself(m, s);
		for (i = s->operand[0].first + s->operand[0].count;
		     !differs && i < s->first + s->count; i++) {
			flag = flag_of(p, number, i);
			differs = flag && *flag;
		}
	}
	for (i = s->operand[0].first;
	     differs && i < s->operand[0].first + s->operand[0].count; i++) {
		flag = flag_of(p, number, i);
		if (flag)
			set(p, flag);
	}
}

static void look(struct parts *p, uint32_t number)
{
	const struct ptx_statement *s = &p->m->statements[p->flow->f->first + number];

	if (s->kind != PTX_INSTRUCTION)
		return;
	switch (ptx_class_of(p->m, s)) {
	case PTX_BRANCH:
		branch(p, number);
		break;
	case PTX_RETURN: /* behind it are those that have not */
		if (p->some[number] || guard_differs(p, number))
			set_span(p, number + 1, p->flow->f->count);
		break;
	default:
		assign(p, number);
	}
}

static int make_parts(struct parts *p, char why[PTX_WHY])
{
	const struct ptx_function *f = p->flow->f;
	uint64_t n = 0;
	uint32_t i;

	p->first = calloc(f->registers + 1u, sizeof(*p->first));
	p->some = calloc(f->count + 1u, sizeof(*p->some));
	for (i = 0; p->first && i < f->registers && n < PTX_FLOW_REGISTERS; i++) {
		const uint32_t count = p->m->registers[f->first_register + i].count;

		p->first[i] = (uint32_t)n;
		n += count ? count : 1;
	}
	if (n >= PTX_FLOW_REGISTERS || f->count > STATEMENTS_MOST)
		return ptx_fail(
			why, ENOTSUP,
			"the function is too large for the search for waiting loops");
	p->differs = calloc(n + 1, sizeof(*p->differs));
	return p->first && p->some && p->differs
		       ? 0
		       : ptx_fail(why, ENOMEM, "no memory for %u statements", f->count);
}

int ptx_flow_parts(const struct ptx *m, const struct ptx_flow *flow, uint32_t *at,
		   char why[PTX_WHY])
{
	struct parts p = {.m = m, .flow = flow, .changed = true};
	uint32_t i;
	int err = make_parts(&p, why);

	while (!err && p.changed) {
		p.changed = false;
		for (i = 0; i < flow->f->count; i++)
			look(&p, i);
	}
	*at = PTX_NOWHERE;
	for (i = flow->f->count; !err && i--;)
		if (p.some[i] &&
		    m->statements[flow->f->first + i].kind == PTX_INSTRUCTION &&
		    ptx_waits(m, &m->statements[flow->f->first + i]))
			*at = i;
	free(p.first);
	free(p.some);
	free(p.differs);
	return err;
}

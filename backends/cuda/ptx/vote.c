/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a block votes whether it is stopped.  Up to there it may only read: what it reads
 * arrives while the flag does.  What it reads may be what a launch in front of it, which
 * was stopped, has not written yet.  So nothing that was read may be an address, or
 * decide by which way the threads go: that could be an access that faults, or the end of
 * a block that has not noted itself as stopped.  Nor may there be a loop, as a stopped
 * block should end at once.
 */
#define _GNU_SOURCE
#include "vote.h"

#include <string.h>

#include "lex.h"
#include "wait.h"

#define WITHIN 64u /* instructions of the function's beginning */
#define PARTS  70u /* sm: from there on threads of a warp may part at a barrier */

struct search {
	const struct ptx *m;
	const struct ptx_flow *flow;
	/* Tokens of registers that depend on what was read. */
	uint32_t read[4 * WITHIN], count;
	bool memory;   /* so may the block's memory */
	uint32_t need; /* the last label that a branch before leads to, and 1; 0: none */
	uint32_t instructions, depth;
};

static const struct ptx_statement *at(const struct search *s, uint32_t number)
{
	return &s->m->statements[s->flow->f->first + number];
}

static bool depends(const struct search *s, uint32_t first, uint32_t count)
{
	uint32_t i, j;

	for (i = first; i < first + count; i++)
		for (j = 0; j < s->count; j++)
			if (s->m->tokens[i].bound == s->m->tokens[s->read[j]].bound &&
			    ptx_same(s->m, i, s->read[j]))
				return true;
	return false;
}

/* False: there is no room for it. */
static bool note(struct search *s, const struct ptx_operand *o)
{
	uint32_t i;

	for (i = o->first; i < o->first + o->count; i++) {
		if (s->m->tokens[i].bound % 4 != 1)
			continue;
		if (s->count == sizeof(s->read) / sizeof(s->read[0]))
			return false;
		s->read[s->count++] = i;
	}
	return true;
}

static bool guard_depends(const struct search *s, const struct ptx_statement *p)
{
	return p->guard && depends(s, p->guard, 1);
}

/* Return whether an access only reads, or writes memory of the block, at an address that
 * does not depend on what was read. */
static bool access(struct search *s, const struct ptx_statement *p)
{
	const enum ptx_space space = ptx_space_of(s->m, p);
	const bool load = ptx_is(s->m, p->op, "ld") || ptx_is(s->m, p->op, "ldu");
	const bool own = space == PTX_SHARED || space == PTX_LOCAL;
	const struct ptx_operand *address = &p->operand[load];

	if (p->operand_count < 2 || p->more || guard_depends(s, p) ||
	    depends(s, address->first, address->count) || ptx_polls(s->m, p))
		return false;
	if (!load) {
		s->memory |= depends(s, p->operand[1].first, p->operand[1].count);
		return ptx_is(s->m, p->op, "st") && own;
	}
	if (space == PTX_PARAM || space == PTX_CONST || (own && !s->memory))
		return true;
	return note(s, &p->operand[0]);
}

static bool plain(struct search *s, const struct ptx_statement *p)
{
	static const char *const not [] = {
		"activemask", "alloca",       "cp",      "elect", "fence",
		"match",      "membar",       "pmevent", "redux", "shfl",
		"stacksave",  "stackrestore", "vote",    "wgmma", "createpolicy"};
	uint32_t i, from;

	for (i = 0; i < sizeof(not ) / sizeof(not [0]); i++)
		if (ptx_is(s->m, p->op, not [i]))
			return false;
	if (ptx_waits(s->m, p) || !p->operand_count || p->more)
		return false;
	from = p->operand[0].first + p->operand[0].count;
	if (guard_depends(s, p) || depends(s, from, p->first + p->count - from))
		return note(s, &p->operand[0]);
	return true;
}

/* Return whether nothing but the thread's end is at the label. */
static bool is_end(const struct search *s, uint32_t number)
{
	const struct ptx_statement *p;

	for (; number < s->flow->f->count; number++) {
		p = at(s, number);
		if (p->kind == PTX_OPEN || p->kind == PTX_CLOSE)
			return false;
		if (p->kind == PTX_INSTRUCTION)
			return !p->guard && ptx_class_of(s->m, p) == PTX_RETURN;
	}
	return true;
}

bool ptx_vote_leaves(const struct ptx *m, const struct ptx_flow *flow, uint32_t number)
{
	const struct search s = {.m = m, .flow = flow};
	const struct ptx_statement *p = at(&s, number);

	if (p->kind != PTX_INSTRUCTION)
		return false;
	if (ptx_class_of(m, p) == PTX_RETURN)
		return true;
	return ptx_class_of(m, p) == PTX_BRANCH && flow->target[number] != PTX_NOWHERE &&
	       is_end(&s, flow->target[number]);
}

/* A branch, or an end of some threads. */
static bool parts(struct search *s, uint32_t number)
{
	const struct ptx_statement *p = at(s, number);
	const uint32_t to = s->flow->target[number];

	if (s->depth || s->m->sm < PARTS || guard_depends(s, p))
		return false;
	if (ptx_class_of(s->m, p) == PTX_RETURN)
		return p->guard || s->need > number;
	if (to == PTX_NOWHERE || to <= number || ptx_is(s->m, p->op, "brx"))
		return false;
	if (!is_end(s, to) && s->need <= to)
		s->need = to + 1;
	return true;
}

/* Return whether the vote may be behind the statement. */
static bool passes(struct search *s, uint32_t number)
{
	const struct ptx_statement *p = at(s, number);

	if (p->kind == PTX_OPEN)
		s->depth++;
	if (p->kind == PTX_CLOSE)
		s->depth--;
	if (p->kind != PTX_INSTRUCTION)
		return true;
	if (s->instructions++ == WITHIN)
		return false;
	switch (ptx_class_of(s->m, p)) {
	case PTX_PLAIN:
	case PTX_CVTA:
		return plain(s, p);
	case PTX_ACCESS:
		return access(s, p);
	case PTX_BRANCH:
	case PTX_RETURN:
		return parts(s, number);
	default:
		return false;
	}
}

/* bar.sync 0 */
static bool is_barrier(const struct ptx *m, const struct ptx_statement *p)
{
	int64_t id;

	return p->kind == PTX_INSTRUCTION && ptx_class_of(m, p) == PTX_BARRIER &&
	       !p->guard && ptx_dot(m, p, ".sync") && !ptx_dot(m, p, ".warp") &&
	       p->operand_count == 1 &&
	       ptx_integer(m, p->operand[0].first, p->operand[0].count, &id) && id == 0;
}

void ptx_vote_find(const struct ptx *m, const struct ptx_flow *flow, struct ptx_vote *v)
{
	struct search s = {.m = m, .flow = flow};
	const uint32_t count = flow->f->count;
	uint32_t i, first = count; /* label that a branch leads back to */

	*v = (struct ptx_vote){0};
	for (i = 0; i < count; i++)
		if (flow->target[i] <= i && flow->target[i] < first)
			first = flow->target[i];
	for (i = 0; i <= first && i < count; i++) {
		if (!s.depth && i >= s.need)
			v->at = i;
		if (i == first || !passes(&s, i))
			break;
	}
	v->fused = v->at == i && i < count && is_barrier(m, at(&s, i));
	for (i = 0; i < v->at; i++) {
		const struct ptx_statement *p = at(&s, i);

		if (p->kind != PTX_INSTRUCTION || (ptx_class_of(m, p) != PTX_BRANCH &&
						   ptx_class_of(m, p) != PTX_RETURN))
			continue;
		v->parted = true;
		v->early |= ptx_vote_leaves(m, flow, i);
	}
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which kernels a pass can rewrite with the same results, and why the others not.
 *
 * What is refused although it might go: an instruction that is not known, a call that
 * leads out of the module, a loop that may wait for another block (wait.h).
 */
#define _GNU_SOURCE
#include "check.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "flow.h"
#include "lex.h"
#include "wait.h"

struct checking {
	const struct ptx *m;
	const struct ptx_function *f;
	enum ptx_pass pass;
	uint32_t number; /* of the statement */
	const struct ptx_statement *s;
	char *why;
	struct ptx_flow flow;
	bool alone; /* a cluster is declared, of one block */
	/* Of the kernel's body: */
	uint32_t barriers;
};

/* what may hold one %.*s: the instruction's first words. */
static int refuse(const struct checking *c, const char *what)
{
	const struct ptx_token *t = &c->m->tokens[c->s->first];
	const struct ptx_token *o =
		&c->m->tokens[c->s->kind == PTX_INSTRUCTION ? c->s->op + c->s->dots
							    : c->s->first];
	uint32_t from = c->s->kind == PTX_INSTRUCTION ? c->m->tokens[c->s->op].at : t->at;
	uint32_t bytes = o->at + o->bytes - from;

	return ptx_fail(c->why, ENOTSUP, "line %u: %.*s: %s", t->line,
			(int)(bytes < 90 ? bytes : 90), c->m->text + from, what);
}

/* Has all of it been read, and does nothing but a launcher start it? */
static int check_read(const struct checking *c)
{
	const struct ptx *m = c->m;
	const struct ptx_token *t = &m->tokens[c->f->odd];

	if (c->f->odd_what)
		return ptx_fail(c->why, ENOTSUP,
				"line %u: %s, at %.*s: this construct is not supported",
				t->line, c->f->odd_what, ptx_shown(m, c->f->odd),
				m->text + t->at);
	if (c->f->named)
		return ptx_fail(c->why, ENOTSUP,
				"line %u: the kernel's address is taken; a launch from "
				"the device would lack the added parameters; launch the "
				"kernel from the host only",
				m->tokens[c->f->named].line);
	return 0;
}

/* ---- special registers ----------------------------------------------------------------- */

bool ptx_is_grid(const struct ptx *m, uint32_t token)
{
	/* A register of the kernel's may be called so. */
	return !m->tokens[token].bound &&
	       (ptx_is(m, token, "%ctaid") || ptx_is(m, token, "%nctaid"));
}

/* The place in the grid is read as 32 bits of one dimension, by a mov or a cvt. */
static int check_grid(const struct checking *c, uint32_t token)
{
	const struct ptx *m = c->m;
	uint32_t bits;

	if (!ptx_is(m, token + 1, ".x") && !ptx_is(m, token + 1, ".y") &&
	    !ptx_is(m, token + 1, ".z"))
		return refuse(
			c,
			"reads the block index as a vector; read .x, .y and .z instead");
	if (c->s->kind != PTX_INSTRUCTION || !c->s->dots)
		return refuse(c, "uses the block index outside a move instruction");
	bits = ptx_type_bits(m, c->s->op + c->s->dots);
	if (bits != 32)
		return refuse(c, "reads the block index in a width other than 32 bits");
	return 0;
}

/* Is what clusters do a matter of the block's alone? */
static bool may_cluster(const struct checking *c)
{
	return c->alone && c->pass == PTX_ENTRY;
}

static int check_token(const struct checking *c, uint32_t token)
{
	const struct ptx *m = c->m;

	/* Of a cluster of one block %cluster_... are the same in each. */
	if (ptx_begins(m, token, "%clusterid") || ptx_begins(m, token, "%nclusterid") ||
	    (!may_cluster(c) && (ptx_begins(m, token, "%cluster_") ||
				 ptx_begins(m, token, "%is_explicit_cluster"))))
		return refuse(c, "uses clusters of blocks");
	if (ptx_begins(m, token, "%envreg"))
		return refuse(c, "part of a cooperative launch, whose blocks wait for "
				 "one another");
	return ptx_is_grid(m, token) ? check_grid(c, token) : 0;
}

/* ---- what stops a block ---------------------------------------------------------------- */

/* Return whether the innermost loop around the statement polls a barrier, which is in the
 * block's shared memory, and reads nothing that another block may write. */
static bool backs_off(const struct checking *c)
{
	const struct ptx_flow *flow = &c->flow;
	const uint32_t at = c->number - c->f->first;
	uint32_t from = 0, to = c->f->count, i;
	bool found = false, polls = false;

	for (i = at; i < c->f->count; i++)
		if (flow->target[i] <= at && i - flow->target[i] < to - from) {
			from = flow->target[i];
			to = i;
			found = true;
		}
	for (i = from; found && i < to; i++) {
		const struct ptx_statement *s = &c->m->statements[c->f->first + i];

		if (s->kind != PTX_INSTRUCTION)
			continue;
		if (ptx_class_of(c->m, s) == PTX_CALL || ptx_reads(c->m, s))
			return false;
		polls |=
			ptx_class_of(c->m, s) == PTX_MBARRIER &&
			(ptx_dot(c->m, s, ".try_wait") || ptx_dot(c->m, s, ".test_wait"));
	}
	return polls;
}

static int check_wait(const struct checking *c, enum ptx_class class)
{
	const bool again = c->flow.again[c->number - c->f->first];
	const uint32_t does = class == PTX_CALL ? ptx_does(c->m, c->s) : 0;

	if (again && ((class == PTX_WAIT && !backs_off(c)) ||
		      (class == PTX_ACCESS && ptx_polls(c->m, c->s))))
		return refuse(c, "waits in a loop, perhaps for another block");
	if (again && (does & PTX_DOES_POLL))
		return refuse(
			c, "calls a function in a loop that may wait for another block");
	if ((does & PTX_DOES_REPEAT) && (does & (PTX_DOES_POLL | PTX_DOES_SHARED)))
		return refuse(c, "calls a function that may call itself until another "
				 "block writes");
	return 0;
}

/* Does a loop of the function end by what other blocks write? */
static int check_loops(struct checking *c)
{
	uint32_t at;
	int err = ptx_wait_find(c->m, &c->flow, &at, c->why);

	if (err || at == PTX_NOWHERE)
		return err;
	c->s = &c->m->statements[c->f->first + at];
	return refuse(
		c, "this loop may wait for another block, which may never run once "
		   "blocks can be stopped; move the waiting part to a separate kernel");
}

static int check_stop(struct checking *c, enum ptx_class class)
{
	const struct ptx *m = c->m;
	uint32_t i;
	int err;

	switch (class) {
	case PTX_UNKNOWN:
		return refuse(c, "unknown instruction");
	case PTX_TRAP: /* a trap ends the kernel, rewritten or not */
		if (ptx_is(m, c->s->op, "brkpt"))
			return refuse(c, "stops for a debugger");
		break;
	case PTX_CLUSTER:
		/* A block that takes another one's place has not got it from a list. */
		if (!may_cluster(c) || ptx_is(m, c->s->op, "clusterlaunchcontrol"))
			return refuse(c, "uses clusters of blocks");
		break;
	case PTX_TENSOR:
		if (c->pass == PTX_LOOP)
			return refuse(c, "copies by a tensor map, which may go on when "
					 "the next block begins");
		if (!c->alone && (ptx_dot(m, c->s, ".multicast::cluster") ||
				  ptx_dot(m, c->s, ".cta_group::2")))
			return refuse(c, "uses clusters of blocks");
		break;
	case PTX_MULTIMEM:
		return refuse(c, "accesses memory of other devices");
	default:
		break;
	}
	c->barriers += ptx_waits(m, c->s);
	if (c->pass == PTX_LOOP && class == PTX_BARRIER && !ptx_dot(m, c->s, ".warp")) {
		const struct ptx_operand *o = &c->s->operand[ptx_dot(m, c->s, ".red")];
		int64_t id;

		if (!ptx_integer(m, o->first, o->count, &id) || id == PTX_LOOP_BARRIER)
			return refuse(
				c, "may use barrier 15, which the rewritten loop needs");
	}
	if (c->pass == PTX_LOOP && (class == PTX_MBARRIER || class == PTX_BULK))
		return refuse(c,
			      "uses a barrier in memory, which is set up once per block");
	if (c->pass == PTX_LOOP && class == PTX_REGISTERS)
		return refuse(c, "changes the number of registers");
	err = check_wait(c, class);
	for (i = c->s->first; !err && i < c->s->first + c->s->count; i++)
		err = check_token(c, i);
	return err;
}

/* ---- what is called -------------------------------------------------------------------- */

/* The last ends the kernel with an error. */
static const char *const harmless[] = {"vprintf", "malloc", "free", "__assertfail"};

static bool is_known(const struct ptx *m, uint32_t name)
{
	uint32_t i;

	for (i = 0; i < sizeof(harmless) / sizeof(harmless[0]); i++)
		if (ptx_is(m, name, harmless[i]))
			return true;
	return false;
}

static int check_called_statement(struct checking *c)
{
	const enum ptx_class class = ptx_class_of(c->m, c->s);
	uint32_t i;
	int err = check_stop(c, class);

	if (err)
		return err;
	for (i = c->s->first; i < c->s->first + c->s->count; i++)
		if (ptx_is_grid(c->m, i))
			return refuse(c, "reads the block index in a called function");
	if (c->pass == PTX_LOOP &&
	    (ptx_is(c->m, c->s->op, "exit") || class == PTX_BARRIER))
		return refuse(c, "exits or waits at a barrier in a called function");
	return 0;
}

/* Check a function that may be called: it must do nothing that depends on its block's
 * number, and must not wait; one of elsewhere is known, or refused. */
static int check_function(struct checking *c)
{
	const struct ptx *m = c->m;
	uint32_t i;
	int err;

	if (c->f->odd_what)
		return check_read(c);
	if (!c->f->has_body)
		return is_known(m, c->f->name)
			       ? 0
			       : ptx_fail(c->why, ENOTSUP,
					  "line %u: the kernel may call %.*s, which is "
					  "defined elsewhere and unknown",
					  m->tokens[c->f->name].line,
					  (int)m->tokens[c->f->name].bytes,
					  ptx_at(m, c->f->name));
	err = ptx_flow_find(m, c->f, &c->flow, c->why);
	for (i = c->f->first; !err && i < c->f->first + c->f->count; i++) {
		c->s = &m->statements[i];
		c->number = i;
		if (c->s->kind == PTX_INSTRUCTION)
			err = check_called_statement(c);
	}
	if (!err)
		err = check_loops(c);
	ptx_flow_free(&c->flow);
	return err;
}

int ptx_check_functions(struct ptx *m, char why[PTX_WHY])
{
	struct checking c = {.m = m, .why = why};
	uint32_t i, p;
	int err;

	for (i = 0; i < m->function_count; i++)
		for (p = PTX_ENTRY; p <= PTX_LOOP; p++) {
			if (m->functions[i].entry || m->functions[i].def != i)
				continue;
			c.f = &m->functions[i];
			c.pass = (enum ptx_pass)p;
			err = check_function(&c);
			if (err == -ENOMEM)
				return err;
			if (!err)
				continue;
			m->functions[i].fault[p] = strdup(why);
			if (!m->functions[i].fault[p])
				return ptx_fail(why, ENOMEM, "no memory for a reason");
			m->functions[i].faulty[p] = m->any_faulty[p] = i + 1;
		}
	return 0;
}

/* What a call leads to has been checked with the module. */
static int check_call(const struct checking *c)
{
	const uint32_t f = ptx_called(c->m, c->s);
	const uint32_t faulty = f == UINT32_MAX ? c->m->any_faulty[c->pass]
						: c->m->functions[f].faulty[c->pass];

	if (!faulty)
		return 0;
	return ptx_fail(c->why, ENOTSUP, "%s",
			c->m->functions[faulty - 1].fault[c->pass]);
}

/* .reqnctapercluster 1, 1, 1: that a cluster is a block. */
static bool is_alone(const struct ptx *m, const struct ptx_function *f)
{
	bool alone = false;
	uint32_t i, j;

	for (i = f->tuned; i < f->brace; i++) {
		if (ptx_is(m, i, ".blocksareclusters"))
			return false;
		if (!ptx_is(m, i, ".reqnctapercluster"))
			continue;
		for (j = i + 1; j < f->brace && m->tokens[j].kind != PTX_DOT; j++)
			if (!ptx_is(m, j, "1") && !ptx_is(m, j, ","))
				return false;
		alone = true;
	}
	return alone;
}

static int check_head(const struct checking *c)
{
	const struct ptx *m = c->m;
	uint32_t i;

	for (i = c->f->tuned; !may_cluster(c) && i < c->f->brace; i++)
		if (ptx_begins(m, i, ".reqnctapercluster") ||
		    ptx_begins(m, i, ".explicitcluster") ||
		    ptx_begins(m, i, ".maxclusterrank") ||
		    ptx_begins(m, i, ".blocksareclusters"))
			return ptx_fail(
				c->why, ENOTSUP, "line %u: %.*s: uses clusters of blocks",
				m->tokens[i].line, (int)m->tokens[i].bytes, ptx_at(m, i));
	return 0;
}

static int check_parameters(const struct checking *c)
{
	const uint64_t more = c->pass == PTX_BOUNDS  ? sizeof(struct ptx_range)
			      : c->pass == PTX_COLOR ? sizeof(struct ptx_colors)
						     : sizeof(struct ptx_launch);
	const bool new = c->m->sm >= 70 &&
			 (c->m->major > 8 || (c->m->major == 8 && c->m->minor >= 1));
	const uint64_t most = new ? PTX_PARAMS_NEW : PTX_PARAMS_OLD;

	if ((c->f->param_bytes + 7) / 8 * 8 + more > most)
		return ptx_fail(
			c->why, ENOTSUP,
			"line %u: %llu bytes of parameters leave no space for the %llu "
			"bytes to add; the limit is %llu for PTX %u.%u and sm_%u",
			c->m->tokens[c->f->name].line,
			(unsigned long long)c->f->param_bytes, (unsigned long long)more,
			(unsigned long long)most, c->m->major, c->m->minor, c->m->sm);
	return 0;
}

/* In the loop a thread that returns waits at its end; those that are at a barrier then,
 * and do not count threads that have ended, wait for it for ever. */
static int check_loop(struct checking *c)
{
	uint32_t at;
	int err;

	if (!c->barriers)
		return 0;
	err = ptx_flow_parts(c->m, &c->flow, &at, c->why);
	if (err || at == PTX_NOWHERE)
		return err;
	c->s = &c->m->statements[c->f->first + at];
	return refuse(c,
		      "may be a barrier for only those threads that have not returned");
}

static int check_stops(struct checking *c)
{
	uint32_t i;
	int err;

	c->alone = is_alone(c->m, c->f);
	err = check_head(c);
	if (!err)
		err = ptx_flow_find(c->m, c->f, &c->flow, c->why);
	for (i = c->f->first; !err && i < c->f->first + c->f->count; i++) {
		c->number = i;
		c->s = &c->m->statements[i];
		if (c->s->kind != PTX_INSTRUCTION)
			continue;
		err = check_stop(c, ptx_class_of(c->m, c->s));
		if (!err && ptx_class_of(c->m, c->s) == PTX_CALL)
			err = check_call(c);
	}
	if (!err)
		err = check_loops(c);
	if (!err && c->pass == PTX_LOOP)
		err = check_loop(c);
	ptx_flow_free(&c->flow);
	return err;
}

/* ---- bounds ---------------------------------------------------------------------------- */

int ptx_access_of(const struct ptx *m, const struct ptx_function *f, uint32_t number,
		  struct ptx_access *a)
{
	const struct ptx_statement *s = &m->statements[number];
	const struct ptx_register *r;
	uint32_t i, first, last;

	memset(a, 0, sizeof(*a));
	a->space = ptx_is(m, s->op, "cp") ? PTX_GLOBAL : ptx_space_of(m, s);
	for (i = ptx_is(m, s->op, "cp"); i < s->operand_count; i++)
		if (ptx_is(m, s->operand[i].first, "["))
			break;
	if (i >= s->operand_count)
		return -EINVAL;
	a->operand = i;
	first = s->operand[i].first + 1;
	last = s->operand[i].first + s->operand[i].count - 1; /* its ] */
	if (!ptx_is(m, last, "]") || first >= last || m->tokens[first].kind != PTX_NAME)
		return -EINVAL;
	a->base = first++;
	if (first < last) {
		if (ptx_is(m, first, "+"))
			first++;
		else if (!ptx_is(m, first, "-"))
			return -EINVAL;
		if (!ptx_integer(m, first, last - first, &a->offset))
			return -EINVAL;
	}
	a->variable = ptx_variable_of(m, f, number, a->base);
	if (a->variable)
		return 0;
	r = ptx_register_of(m, f, number, a->base);
	return r && r->bits == 64 && r->lanes == 1 ? 0 : -EINVAL;
}

uint32_t ptx_access_bytes(const struct ptx *m, const struct ptx_statement *s)
{
	uint32_t bits = 0, lanes = 1, i;

	for (i = 1; i <= s->dots; i++) {
		if (ptx_type_bits(m, s->op + i))
			bits = ptx_type_bits(m, s->op + i);
		if (ptx_is(m, s->op + i, ".v2"))
			lanes = 2;
		if (ptx_is(m, s->op + i, ".v4"))
			lanes = 4;
		if (ptx_is(m, s->op + i, ".v8"))
			lanes = 8;
	}
	return bits / 8 * lanes;
}

/* What it writes is a register, or a list of them, whose widths are known. */
static int check_written(const struct checking *c, const struct ptx_operand *o)
{
	const struct ptx_register *r;
	uint32_t i;

	for (i = o->first; i < o->first + o->count; i++) {
		if (c->m->tokens[i].kind != PTX_NAME || ptx_is(c->m, i, "_"))
			continue;
		r = ptx_register_of(c->m, c->f, c->number, i);
		if (!r || r->lanes != 1 ||
		    (r->bits != 16 && r->bits != 32 && r->bits != 64))
			return refuse(c, "writes to something other than a register of "
					 "16, 32 or 64 bits");
	}
	return 0;
}

bool ptx_access_gives(const struct ptx *m, const struct ptx_statement *s)
{
	return ptx_is(m, s->op, "ld") || ptx_is(m, s->op, "ldu") ||
	       ptx_is(m, s->op, "atom");
}

static int check_access(const struct checking *c)
{
	const struct ptx *m = c->m;
	struct ptx_access a;
	uint64_t bytes;

	a.space = ptx_is(m, c->s->op, "cp") ? PTX_GLOBAL : ptx_space_of(m, c->s);
	if (a.space != PTX_GLOBAL && a.space != PTX_GENERIC)
		return 0;
	if (ptx_access_of(m, c->f, c->number, &a))
		return refuse(
			c,
			"has an address that is not a 64-bit register plus a constant");
	if (a.variable) {
		bytes = ptx_access_bytes(m, c->s);
		if (ptx_is(m, c->s->op, "cp") || !bytes)
			return refuse(
				c, "accesses a variable at an offset that is not known");
		if (a.variable->space != PTX_GLOBAL && a.variable->space != PTX_GENERIC)
			return refuse(c, "accesses a variable of another state space");
		if (a.offset < 0 || (uint64_t)a.offset > a.variable->bytes ||
		    bytes > a.variable->bytes - (uint64_t)a.offset)
			return refuse(c,
				      "accesses memory beyond the end of the variable");
		return 0;
	}
	if (ptx_access_bytes(m, c->s) > PTX_RANGE_ALIGN)
		return refuse(c, "accesses too many bytes at once");
	if (ptx_access_gives(m, c->s))
		return check_written(c, &c->s->operand[0]);
	return 0;
}

/* cp.async dst, src, bytes[, bytes of src]: the last is put in. */
static int check_cpasync(const struct checking *c)
{
	const struct ptx_operand *o = c->s->operand;
	const struct ptx_register *r;
	int64_t n;

	if (c->s->operand_count < 3 || c->s->operand_count > 4 ||
	    ptx_dot(c->m, c->s, ".L2::cache_hint"))
		return refuse(c, "has an unknown form of operands");
	if (!ptx_integer(c->m, o[2].first, o[2].count, &n) || n < 4 || n > 16)
		return refuse(c, "copies a number of bytes that is not constant");
	if (c->s->operand_count == 4 && !ptx_integer(c->m, o[3].first, o[3].count, &n)) {
		r = o[3].count == 1 ? ptx_register_of(c->m, c->f, c->number, o[3].first)
				    : NULL;
		if (!r || r->bits != 32)
			return refuse(c, "has an unknown form of operands");
	}
	return check_access(c);
}

/* A module's variable lies outside each partition: it may be reached by its name, where
 * the place is seen, and in no other way. */
static int check_names(const struct checking *c)
{
	const struct ptx_variable *v;
	struct ptx_access a = {.base = 0};
	uint32_t i;

	if (ptx_class_of(c->m, c->s) == PTX_ACCESS &&
	    ptx_access_of(c->m, c->f, c->number, &a))
		a.base = 0;
	for (i = c->s->first; i < c->s->first + c->s->count; i++) {
		if (c->m->tokens[i].kind != PTX_NAME || i == a.base || i == c->s->op)
			continue;
		v = ptx_variable_of(c->m, c->f, c->number, i);
		if (v && v->space == PTX_GLOBAL)
			return refuse(c, "takes the address of a variable of the module");
	}
	return 0;
}

/* Return whether nothing but stacksave writes the register that stackrestore reads. */
static bool is_saved_stack(const struct checking *c)
{
	const struct ptx *m = c->m;
	const uint32_t from = c->s->operand[0].first;
	uint32_t i, j;

	if (c->s->operand_count != 1 || c->s->operand[0].count != 1 ||
	    !ptx_register_of(m, c->f, c->number, from))
		return false;
	for (i = c->f->first; i < c->f->first + c->f->count; i++) {
		const struct ptx_statement *s = &m->statements[i];

		if (s->kind != PTX_INSTRUCTION || !s->operand_count ||
		    ptx_is(m, s->op, "stacksave") || ptx_is(m, s->op, "stackrestore"))
			continue;
		/* Whatever names it first may write it. */
		for (j = 0; j < s->operand[0].count; j++)
			if (m->tokens[s->operand[0].first + j].bound ==
				    m->tokens[from].bound &&
			    ptx_same(m, s->operand[0].first + j, from))
				return false;
	}
	return true;
}

static int check_bound(const struct checking *c, enum ptx_class class)
{
	switch (class) {
	case PTX_ACCESS:
		return check_access(c);
	case PTX_CPASYNC:
		return check_cpasync(c);
	case PTX_UNKNOWN:
		return refuse(c, "unknown instruction");
	case PTX_TENSOR:
		return refuse(c, "copies by a tensor map, which is not supported");
	case PTX_BULK:
		return refuse(c, "copies a number of bytes that is in a register");
	case PTX_TEXTURE:
		return refuse(c, "accesses memory by a descriptor (texture or surface)");
	case PTX_CLUSTER:
		return refuse(c, "uses clusters of blocks");
	case PTX_MULTIMEM:
		return refuse(c, "accesses memory of other devices");
	case PTX_MATRIX:
		return ptx_space_of(c->m, c->s) == PTX_SHARED
			       ? 0
			       : refuse(c, "accesses matrix rows outside shared memory");
	case PTX_MBARRIER:
		return ptx_space_of(c->m, c->s) == PTX_SHARED
			       ? 0
			       : refuse(c, "uses a barrier outside shared memory");
	case PTX_CVTA:
		/* The windows of both are part of the global one. */
		if (ptx_dot(c->m, c->s, ".param") || ptx_dot(c->m, c->s, ".const") ||
		    ptx_dot(c->m, c->s, ".param::entry"))
			return refuse(c, "takes the address of a parameter or constant");
		return 0;
	case PTX_CALL:
		return refuse(c, "calls a function, which cannot be checked");
	default:
		return ptx_is(c->m, c->s->op, "stackrestore") && !is_saved_stack(c)
			       ? refuse(c, "sets the stack pointer from a register that "
					   "holds something other than a saved one")
			       : 0;
	}
}

/* Addresses that variables begin with lead out of the partition, too. */
static int check_beginnings(const struct checking *c)
{
	const struct ptx_token *t;

	if (c->m->pointing == UINT32_MAX)
		return 0;
	t = &c->m->tokens[c->m->variables[c->m->pointing].name];
	return ptx_fail(c->why, ENOTSUP,
			"line %u: variable %.*s is initialized with an address", t->line,
			(int)t->bytes, c->m->text + t->at);
}

static int check_bounds(struct checking *c)
{
	enum ptx_class class;
	uint32_t i;
	int err = check_beginnings(c);

	for (i = c->f->first; !err && i < c->f->first + c->f->count; i++) {
		c->number = i;
		c->s = &c->m->statements[i];
		if (c->s->kind != PTX_INSTRUCTION)
			continue;
		class = ptx_class_of(c->m, c->s);
		err = check_bound(c, class);
		if (!err)
			err = check_names(c);
	}
	return err;
}

/* ---- color ----------------------------------------------------------------------------- */

/* What reaches global memory has to be an access of one address. */
static int check_color(const struct checking *c, enum ptx_class class)
{
	struct ptx_access a;

	switch (class) {
	case PTX_ACCESS:
	case PTX_CPASYNC:
		a.space = ptx_is(c->m, c->s->op, "cp") ? PTX_GLOBAL
						       : ptx_space_of(c->m, c->s);
		if (a.space != PTX_GLOBAL && a.space != PTX_GENERIC)
			return 0;
		if (ptx_access_of(c->m, c->f, c->number, &a))
			return refuse(c, "has an address that is not a 64-bit register "
					 "plus a constant");
		if (ptx_access_bytes(c->m, c->s) > PTX_RANGE_ALIGN)
			return refuse(c, "accesses too many bytes at once");
		return 0;
	case PTX_BULK:
		return refuse(c, "copies more bytes than lie together");
	default: /* in common with BOUNDS, but for the stack */
		return ptx_is(c->m, c->s->op, "stackrestore") || class == PTX_CVTA
			       ? 0
			       : check_bound(c, class);
	}
}

static int check_colors(struct checking *c)
{
	uint32_t i;
	int err = 0;

	for (i = c->f->first; !err && i < c->f->first + c->f->count; i++) {
		c->number = i;
		c->s = &c->m->statements[i];
		if (c->s->kind == PTX_INSTRUCTION)
			err = check_color(c, ptx_class_of(c->m, c->s));
	}
	return err;
}

/* The names that the kernel has and the pass is about to add, or which must be added
 * after them. */
static const char *own_names(const struct ptx_function *f, enum ptx_pass pass)
{
	if (pass == PTX_BOUNDS)
		return f->own ? PTX_OWN : NULL;
	if (pass == PTX_COLOR && f->own_color)
		return PTX_OWN_COLOR;
	return f->own_stops ? PTX_OWN_STOPS : NULL;
}

int ptx_check(const struct ptx *m, uint32_t kernel, enum ptx_pass pass, char why[PTX_WHY])
{
	struct checking c = {.m = m, .pass = pass, .why = why};
	const char *own;
	int err;

	why[0] = 0;
	if (kernel >= m->entry_count || (unsigned int)pass >= PTX_PASSES)
		return ptx_fail(why, EINVAL,
				"%u kernels, so no kernel %u; %u passes, so no pass %u",
				m->entry_count, kernel, PTX_PASSES, (unsigned int)pass);
	c.f = &m->functions[m->entries[kernel]];
	err = check_read(&c);
	if (err)
		return err;
	own = own_names(c.f, pass);
	if (own)
		return ptx_fail(why, ENOTSUP,
				"line %u: names that begin with %s are reserved for "
				"rewriting; rewrite the original PTX instead",
				m->tokens[c.f->name].line, own);
	err = check_parameters(&c);
	if (err)
		return err;
	return pass == PTX_BOUNDS  ? check_bounds(&c)
	       : pass == PTX_COLOR ? check_colors(&c)
				   : check_stops(&c);
}

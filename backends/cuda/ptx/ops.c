/* SPDX-License-Identifier: Apache-2.0 */
/* What instructions may do, and what names stand for. */
#define _GNU_SOURCE
#include "lex.h"

#include <string.h>

struct op {
	const char *name;
	uint32_t class;
};

/* By the first word.  What is not here is refused by each pass that has to know. */
static const struct op ops[] = {
	{"abs", PTX_PLAIN},
	{"activemask", PTX_PLAIN},
	{"add", PTX_PLAIN},
	{"addc", PTX_PLAIN},
	{"alloca", PTX_PLAIN},
	{"and", PTX_PLAIN},
	{"bfe", PTX_PLAIN},
	{"bfi", PTX_PLAIN},
	{"bfind", PTX_PLAIN},
	{"bmsk", PTX_PLAIN},
	{"brev", PTX_PLAIN},
	{"clz", PTX_PLAIN},
	{"cnot", PTX_PLAIN},
	{"copysign", PTX_PLAIN},
	{"cos", PTX_PLAIN},
	{"createpolicy", PTX_PLAIN},
	{"cvt", PTX_PLAIN},
	{"div", PTX_PLAIN},
	{"dp2a", PTX_PLAIN},
	{"dp4a", PTX_PLAIN},
	{"elect", PTX_PLAIN},
	{"ex2", PTX_PLAIN},
	{"fence", PTX_PLAIN},
	{"fma", PTX_PLAIN},
	{"fns", PTX_PLAIN},
	{"isspacep", PTX_PLAIN},
	{"ldmatrix", PTX_PLAIN},
	{"lg2", PTX_PLAIN},
	{"lop3", PTX_PLAIN},
	{"mad", PTX_PLAIN},
	{"mad24", PTX_PLAIN},
	{"madc", PTX_PLAIN},
	{"match", PTX_PLAIN},
	{"max", PTX_PLAIN},
	{"membar", PTX_PLAIN},
	{"min", PTX_PLAIN},
	{"mma", PTX_PLAIN},
	{"mov", PTX_PLAIN},
	{"movmatrix", PTX_PLAIN},
	{"mul", PTX_PLAIN},
	{"mul24", PTX_PLAIN},
	{"neg", PTX_PLAIN},
	{"not", PTX_PLAIN},
	{"or", PTX_PLAIN},
	{"pmevent", PTX_PLAIN},
	{"popc", PTX_PLAIN},
	{"prmt", PTX_PLAIN},
	{"rcp", PTX_PLAIN},
	{"redux", PTX_PLAIN},
	{"rem", PTX_PLAIN},
	{"rsqrt", PTX_PLAIN},
	{"sad", PTX_PLAIN},
	{"selp", PTX_PLAIN},
	{"set", PTX_PLAIN},
	{"setp", PTX_PLAIN},
	{"shf", PTX_PLAIN},
	{"shfl", PTX_PLAIN},
	{"shl", PTX_PLAIN},
	{"shr", PTX_PLAIN},
	{"sin", PTX_PLAIN},
	{"slct", PTX_PLAIN},
	{"sqrt", PTX_PLAIN},
	{"stackrestore", PTX_PLAIN},
	{"stacksave", PTX_PLAIN},
	{"stmatrix", PTX_PLAIN},
	{"sub", PTX_PLAIN},
	{"subc", PTX_PLAIN},
	{"szext", PTX_PLAIN},
	{"tanh", PTX_PLAIN},
	{"testp", PTX_PLAIN},
	{"vabsdiff", PTX_PLAIN},
	{"vabsdiff4", PTX_PLAIN},
	{"vadd", PTX_PLAIN},
	{"vadd4", PTX_PLAIN},
	{"vmad", PTX_PLAIN},
	{"vmax", PTX_PLAIN},
	{"vmin", PTX_PLAIN},
	{"vote", PTX_PLAIN},
	{"vset4", PTX_PLAIN},
	{"vshl", PTX_PLAIN},
	{"vshr", PTX_PLAIN},
	{"vsub", PTX_PLAIN},
	{"vsub4", PTX_PLAIN},
	{"wgmma", PTX_PLAIN},
	{"xor", PTX_PLAIN},
	{"applypriority", PTX_ACCESS},
	{"atom", PTX_ACCESS},
	{"discard", PTX_ACCESS},
	{"ld", PTX_ACCESS},
	{"ldu", PTX_ACCESS},
	{"prefetch", PTX_ACCESS},
	{"prefetchu", PTX_ACCESS},
	{"red", PTX_ACCESS},
	{"st", PTX_ACCESS},
	{"suld", PTX_TEXTURE},
	{"suq", PTX_TEXTURE},
	{"sured", PTX_TEXTURE},
	{"sust", PTX_TEXTURE},
	{"tex", PTX_TEXTURE},
	{"tld4", PTX_TEXTURE},
	{"txq", PTX_TEXTURE},
	{"istypep", PTX_TEXTURE},
	{"cvta", PTX_CVTA},
	{"bra", PTX_BRANCH},
	{"brx", PTX_BRANCH},
	{"call", PTX_CALL},
	{"ret", PTX_RETURN},
	{"exit", PTX_RETURN},
	{"bar", PTX_BARRIER},
	{"barrier", PTX_BARRIER},
	{"mbarrier", PTX_MBARRIER},
	{"trap", PTX_TRAP},
	{"brkpt", PTX_TRAP},
	{"mapa", PTX_CLUSTER},
	{"getctarank", PTX_CLUSTER},
	{"griddepcontrol", PTX_DEPEND},
	{"nanosleep", PTX_WAIT},
	{"setmaxnreg", PTX_REGISTERS},
	{"multimem", PTX_MULTIMEM},
	{"tensormap", PTX_TENSOR},
	{"clusterlaunchcontrol", PTX_CLUSTER},
};

bool ptx_dot(const struct ptx *m, const struct ptx_statement *s, const char *text)
{
	uint32_t i;

	for (i = 1; i <= s->dots; i++)
		if (ptx_is(m, s->op + i, text))
			return true;
	return false;
}

static bool dot_begins(const struct ptx *m, const struct ptx_statement *s,
		       const char *text)
{
	uint32_t i;

	for (i = 1; i <= s->dots; i++)
		if (ptx_begins(m, s->op + i, text))
			return true;
	return false;
}

static enum ptx_class of_cp(const struct ptx *m, const struct ptx_statement *s)
{
	if (ptx_dot(m, s, ".tensor"))
		return PTX_TENSOR;
	if (ptx_dot(m, s, ".bulk"))
		return ptx_dot(m, s, ".commit_group") || ptx_dot(m, s, ".wait_group")
			       ? PTX_PLAIN
			       : PTX_BULK;
	if (!ptx_dot(m, s, ".async"))
		return PTX_UNKNOWN;
	if (ptx_dot(m, s, ".commit_group") || ptx_dot(m, s, ".wait_group") ||
	    ptx_dot(m, s, ".wait_all"))
		return PTX_PLAIN;
	return ptx_dot(m, s, ".mbarrier") ? PTX_MBARRIER : PTX_CPASYNC;
}

enum ptx_class ptx_class_of(const struct ptx *m, const struct ptx_statement *s)
{
	size_t i;

	if (ptx_is(m, s->op, "cp"))
		return of_cp(m, s);
	if (ptx_is(m, s->op, "wmma"))
		return ptx_dot(m, s, ".load") || ptx_dot(m, s, ".store") ? PTX_MATRIX
									 : PTX_PLAIN;
	for (i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
		if (!ptx_is(m, s->op, ops[i].name))
			continue;
		if (ops[i].class == PTX_BARRIER && ptx_dot(m, s, ".cluster"))
			return PTX_CLUSTER;
		if (ptx_is(m, s->op, "fence") && ptx_dot(m, s, ".proxy") &&
		    dot_begins(m, s, ".tensormap"))
			return PTX_TENSOR;
		if (ops[i].class == PTX_ACCESS && ptx_dot(m, s, ".bulk"))
			return PTX_BULK;
		/* Of a neighbour in the cluster, or counted by a barrier in it. */
		if (ops[i].class == PTX_ACCESS &&
		    (ptx_dot(m, s, ".async") || dot_begins(m, s, ".shared::cluster")))
			return PTX_CLUSTER;
		return (enum ptx_class)ops[i].class;
	}
	return PTX_UNKNOWN;
}

enum ptx_space ptx_space_of(const struct ptx *m, const struct ptx_statement *s)
{
	uint32_t i;

	for (i = 1; i <= s->dots; i++) {
		if (ptx_is(m, s->op + i, ".global"))
			return PTX_GLOBAL;
		if (ptx_begins(m, s->op + i, ".shared"))
			return PTX_SHARED;
		if (ptx_is(m, s->op + i, ".local"))
			return PTX_LOCAL;
		if (ptx_is(m, s->op + i, ".const"))
			return PTX_CONST;
		if (ptx_begins(m, s->op + i, ".param"))
			return PTX_PARAM;
	}
	return PTX_GENERIC;
}

/* ---- names --------------------------------------------------------------------------- */

/* The parser has bound each token of a statement as its scope has the name. */
const struct ptx_register *ptx_register_of(const struct ptx *m,
					   const struct ptx_function *f,
					   uint32_t statement, uint32_t token)
{
	const uint32_t bound = m->tokens[token].bound;

	(void)f;
	(void)statement;
	return bound % 4 == 1 ? &m->registers[bound / 4] : NULL;
}

const struct ptx_variable *ptx_variable_of(const struct ptx *m,
					   const struct ptx_function *f,
					   uint32_t statement, uint32_t token)
{
	const uint32_t bound = m->tokens[token].bound;

	(void)f;
	(void)statement;
	return bound % 4 == 2 ? &m->variables[bound / 4] : NULL;
}

uint32_t ptx_function_of(const struct ptx *m, uint32_t token)
{
	const uint32_t bound = m->tokens[token].bound;

	return bound % 4 != 3 || bound == PTX_BOUND_UNREAD ? UINT32_MAX
							   : m->functions[bound / 4].def;
}

uint32_t ptx_kernels(const struct ptx *m)
{
	return m->entry_count;
}

const char *ptx_pass_name(enum ptx_pass pass)
{
	static const char *const names[] = {"entry", "loop", "bounds", "color"};

	return (unsigned int)pass < PTX_PASSES ? names[pass] : NULL;
}

const char *ptx_kernel_name(const struct ptx *m, uint32_t kernel, uint32_t *bytes)
{
	const uint32_t token = m->functions[m->entries[kernel]].name;

	*bytes = m->tokens[token].bytes;
	return ptx_at(m, token);
}

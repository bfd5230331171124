/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The grammar: what a module declares, and its functions' statements.  It is read as
 * loosely as can be - the driver's compiler says what is wrong in it -, but for what the
 * passes go by: names, sizes, spaces, where a statement and a body end.
 */
#define _GNU_SOURCE
#include "lex.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct parser {
	struct ptx *m;
	uint32_t at; /* token */
	uint32_t statements_room, registers_room, variables_room, functions_room;
	char *why;
};

int ptx_fail(char why[PTX_WHY], int err, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	/* NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized): it has been started */
	(void)vsnprintf(why, PTX_WHY, fmt, ap);
	va_end(ap);
	return -err;
}

static int wrong(struct parser *p, const char *what)
{
	const struct ptx_token *t = &p->m->tokens[p->at];

	if (t->kind == PTX_END)
		return ptx_fail(p->why, EINVAL, "line %u: %s, at the end of the text",
				t->line, what);
	return ptx_fail(p->why, EINVAL, "line %u: %s, at %.*s", t->line, what,
			(int)(t->bytes < 40 ? t->bytes : 40), ptx_at(p->m, p->at));
}

static bool is(const struct parser *p, const char *text)
{
	return ptx_is(p->m, p->at, text);
}

static uint32_t kind(const struct parser *p)
{
	return p->m->tokens[p->at].kind;
}

/* Room for one more of size bytes behind count of them. */
static int grow(struct parser *p, void **list, uint32_t count, uint32_t *room,
		size_t size)
{
	void *q;

	if (count < *room)
		return 0;
	*room = *room ? 2 * *room : 64;
	q = realloc(*list, *room * size);
	if (!q)
		return ptx_fail(p->why, ENOMEM, "no memory for %u parts", *room);
	*list = q;
	return 0;
}
#define GROW(p, list, count, room)                                                       \
	grow(p, (void **)&(p)->m->list, (p)->m->count, &(p)->room, sizeof(*(p)->m->list))

/* From an opening bracket to behind the one that closes it. */
static int skip_group(struct parser *p)
{
	uint32_t depth = 0;

	do {
		if (kind(p) == PTX_END)
			return wrong(p, "a bracket is not closed");
		if (is(p, "(") || is(p, "{") || is(p, "["))
			depth++;
		else if (is(p, ")") || is(p, "}") || is(p, "]"))
			depth--;
		p->at++;
	} while (depth);
	return 0;
}

/* To behind the next ; */
static int skip_line(struct parser *p)
{
	int err;

	while (!is(p, ";")) {
		if (kind(p) == PTX_END || is(p, "}"))
			return wrong(p, "a ; is missing");
		if (is(p, "(") || is(p, "{") || is(p, "[")) {
			err = skip_group(p);
			if (err)
				return err;
		} else {
			p->at++;
		}
	}
	p->at++;
	return 0;
}

static void skip_rest_of_line(struct parser *p)
{
	const uint32_t line = p->m->tokens[p->at].line;

	while (kind(p) != PTX_END && p->m->tokens[p->at].line == line)
		p->at++;
}

static int number(struct parser *p, int64_t *v)
{
	if (!ptx_integer(p->m, p->at, 1, v))
		return wrong(p, "a number is expected");
	p->at++;
	return 0;
}

/* ---- declarations -------------------------------------------------------------------- */

static bool space_named(const struct parser *p, uint32_t *space)
{
	static const struct {
		const char *dot;
		uint32_t space;
	} spaces[] = {{".global", PTX_GLOBAL}, {".shared", PTX_SHARED},
		      {".local", PTX_LOCAL},   {".const", PTX_CONST},
		      {".param", PTX_PARAM},   {".tex", PTX_CONST}};
	size_t i;

	for (i = 0; i < sizeof(spaces) / sizeof(spaces[0]); i++)
		if (is(p, spaces[i].dot)) {
			*space = spaces[i].space;
			return true;
		}
	return false;
}

/* [N][M]: how many; 0: [] */
static int dimensions(struct parser *p, uint64_t *count)
{
	int64_t n;
	int err;

	while (is(p, "[")) {
		p->at++;
		if (is(p, "]")) {
			*count = 0;
		} else {
			err = number(p, &n);
			if (err)
				return err;
			if (n < 0 || (n && *count > UINT32_MAX / (uint64_t)n))
				return wrong(p, "an array is too large");
			*count *= (uint64_t)n;
		}
		if (!is(p, "]"))
			return wrong(p, "a ] is missing");
		p->at++;
	}
	return 0;
}

/* What stands before the names: .align 8 .b8, .v4 .f32, .ptr .global .align 1 */
static int type_of(struct parser *p, uint32_t *align, uint32_t *bits, uint32_t *lanes)
{
	int64_t n;
	uint32_t is_type;
	int err;

	*align = 0;
	*bits = 0;
	*lanes = 1;
	while (kind(p) == PTX_DOT) {
		is_type = ptx_type_bits(p->m, p->at);
		if (is(p, ".align")) {
			p->at++;
			err = number(p, &n);
			if (err)
				return err;
			if (n < 1 || n > 128 || (n & (n - 1)))
				return wrong(p, "no alignment");
			*align = *align > (uint32_t)n ? *align : (uint32_t)n;
			continue;
		}
		if (is(p, ".ptr")) { /* what follows is of what it points to */
			for (p->at++; kind(p) == PTX_DOT || kind(p) == PTX_NUMBER;)
				p->at++;
			return 0;
		}
		if (is(p, ".attribute")) {
			p->at++;
			if (!is(p, "("))
				return wrong(p, "a ( is missing");
			err = skip_group(p);
			if (err)
				return err;
			continue;
		}
		if (is_type)
			*bits = is_type;
		else if (is(p, ".texref") || is(p, ".samplerref") || is(p, ".surfref"))
			*bits = 64;
		else if (is(p, ".v2"))
			*lanes = 2;
		else if (is(p, ".v4"))
			*lanes = 4;
		p->at++;
	}
	return *bits ? 0 : wrong(p, "a type is missing");
}

/* At the space; to behind the ; or, of a parameter, its name. */
static int variable(struct parser *p, uint32_t from)
{
	struct ptx_variable v = {.from = from, .to = UINT32_MAX};
	uint32_t bits, lanes;
	uint64_t count;
	int err;

	if (!space_named(p, &v.space))
		return wrong(p, "a space is missing");
	p->at++;
	err = type_of(p, &v.align, &bits, &lanes);
	if (err)
		return err;
	v.element = bits / 8 * lanes;
	if (v.align < v.element)
		v.align = v.element;
	for (;;) {
		if (kind(p) != PTX_NAME)
			return wrong(p, "a name is missing");
		v.name = p->at++;
		count = 1;
		v.first = v.count = 0;
		err = dimensions(p, &count);
		if (err)
			return err;
		v.bytes = count * v.element;
		if (v.space != PTX_PARAM && is(p, "=")) {
			v.first = ++p->at;
			while (!is(p, ";") && !is(p, ",") && kind(p) != PTX_END) {
				if (!is(p, "{")) {
					p->at++;
					continue;
				}
				err = skip_group(p);
				if (err)
					return err;
			}
			v.count = p->at - v.first;
		}
		err = GROW(p, variables, variable_count, variables_room);
		if (err)
			return err;
		p->m->variables[p->m->variable_count++] = v;
		if (v.space == PTX_PARAM && !is(p, ";"))
			return 0;
		if (!is(p, ","))
			break;
		p->at++;
	}
	if (!is(p, ";"))
		return wrong(p, "a ; is missing");
	p->at++;
	return 0;
}

/* .reg .b32 %r<12>, %x; */
static int registers(struct parser *p, uint32_t from)
{
	struct ptx_register r = {.from = from, .to = UINT32_MAX};
	uint32_t align, lanes;
	int64_t n;
	int err;

	p->at++;
	err = type_of(p, &align, &r.bits, &lanes);
	if (err)
		return err;
	if (lanes != 1)
		return wrong(p, "a register of several");
	for (;;) {
		if (kind(p) != PTX_NAME)
			return wrong(p, "a name is missing");
		r.name = p->m->tokens[p->at].at;
		r.name_bytes = p->m->tokens[p->at].bytes;
		r.count = 0;
		p->at++;
		if (is(p, "<")) {
			p->at++;
			err = number(p, &n);
			if (err)
				return err;
			if (n < 1 || n > 1 << 24 || !is(p, ">"))
				return wrong(p, "no number of registers");
			r.count = (uint32_t)n;
			p->at++;
		}
		err = GROW(p, registers, register_count, registers_room);
		if (err)
			return err;
		p->m->registers[p->m->register_count++] = r;
		if (!is(p, ","))
			break;
		p->at++;
	}
	if (!is(p, ";"))
		return wrong(p, "a ; is missing");
	p->at++;
	return 0;
}

/* ---- statements ---------------------------------------------------------------------- */

static int operands(struct parser *p, struct ptx_statement *s)
{
	uint32_t depth = 0, first = p->at;

	while (!is(p, ";") || depth) {
		if (kind(p) == PTX_END)
			return wrong(p, "a ; is missing");
		if (is(p, "(") || is(p, "{") || is(p, "["))
			depth++;
		else if (is(p, ")") || is(p, "}") || is(p, "]")) {
			if (!depth--)
				return wrong(p, "a bracket is closed that is not open");
		} else if (is(p, ";"))
			return wrong(p, "a bracket is not closed");
		p->at++;
		if (depth || !(is(p, ",") || is(p, ";")))
			continue;
		if (s->operand_count == PTX_OPERANDS)
			s->more = true;
		else
			s->operand[s->operand_count++] =
				(struct ptx_operand){first, p->at - first};
		if (is(p, ","))
			first = ++p->at;
	}
	p->at++;
	return 0;
}

static int instruction(struct parser *p, struct ptx_statement *s)
{
	s->kind = PTX_INSTRUCTION;
	if (is(p, "@")) {
		p->at++;
		if (is(p, "!")) {
			s->guard_not = true;
			p->at++;
		}
		if (kind(p) != PTX_NAME)
			return wrong(p, "a predicate is missing");
		s->guard = p->at++;
	}
	if (kind(p) != PTX_NAME)
		return wrong(p, "an instruction is missing");
	s->op = p->at++;
	for (; kind(p) == PTX_DOT; p->at++)
		s->dots++;
	return operands(p, s);
}

static int statement(struct parser *p, struct ptx_statement *s)
{
	const uint32_t here = p->m->statement_count;

	s->first = p->at;
	if (kind(p) == PTX_NAME && ptx_is(p->m, p->at + 1, ":")) {
		s->kind = PTX_LABEL;
		p->at += 2;
		return 0;
	}
	if (kind(p) != PTX_DOT)
		return instruction(p, s);
	s->kind = PTX_DIRECTIVE;
	if (is(p, ".loc") || is(p, ".file")) {
		skip_rest_of_line(p);
		return 0;
	}
	if (is(p, ".reg"))
		return registers(p, here);
	if (is(p, ".shared") || is(p, ".local") || is(p, ".param") || is(p, ".global") ||
	    is(p, ".const"))
		return variable(p, here);
	return skip_line(p);
}

/* What was declared since these counts is not known behind this statement. */
static void leave(struct parser *p, uint32_t registers, uint32_t variables)
{
	uint32_t i;

	for (i = registers; i < p->m->register_count; i++)
		if (p->m->registers[i].to == UINT32_MAX)
			p->m->registers[i].to = p->m->statement_count;
	for (i = variables; i < p->m->variable_count; i++)
		if (p->m->variables[i].to == UINT32_MAX)
			p->m->variables[i].to = p->m->statement_count;
}

/* Behind its {; to behind its }. */
static int body(struct parser *p, struct ptx_function *f)
{
	uint32_t registers[PTX_DEPTH_MAX], variables[PTX_DEPTH_MAX], depth = 0;
	struct ptx_statement s;
	int err;

	registers[0] = p->m->register_count;
	variables[0] = p->m->variable_count;
	for (;;) {
		memset(&s, 0, sizeof(s));
		s.first = p->at;
		if (kind(p) == PTX_END)
			return wrong(p, "a body does not end");
		if (is(p, "}")) {
			leave(p, registers[depth], variables[depth]);
			p->at++;
			if (!depth--)
				return 0;
			s.kind = PTX_CLOSE;
		} else if (is(p, "{")) {
			if (++depth == PTX_DEPTH_MAX)
				return wrong(p, "braces are too deep");
			registers[depth] = p->m->register_count;
			variables[depth] = p->m->variable_count;
			p->at++;
			s.kind = PTX_OPEN;
		} else {
			err = statement(p, &s);
			if (err)
				return err;
		}
		s.count = p->at - s.first;
		err = GROW(p, statements, statement_count, statements_room);
		if (err)
			return err;
		p->m->statements[p->m->statement_count++] = s;
		f->count++;
	}
}

/* ---- functions ----------------------------------------------------------------------- */

/* At the (; to behind its ) */
static int params(struct parser *p, struct ptx_function *f)
{
	const struct ptx_variable *v;
	int err;

	f->open = p->at++;
	f->parens = true;
	while (!is(p, ")")) {
		if (is(p, ".reg")) { /* of functions, of old */
			skip_rest_of_line(p);
			continue;
		}
		err = variable(p, 0);
		if (err)
			return err;
		v = &p->m->variables[p->m->variable_count - 1];
		f->params++;
		if (f->param_bytes > PTX_BYTES_MAX)
			return wrong(p, "too many parameters");
		if (v->align)
			f->param_bytes +=
				(v->align - f->param_bytes % v->align) % v->align;
		f->param_bytes += v->bytes;
		if (is(p, ","))
			p->at++;
		else if (!is(p, ")"))
			return wrong(p, "a , or ) is missing");
	}
	f->close = p->at++;
	return 0;
}

static int function(struct parser *p)
{
	struct ptx_function f = {.entry = is(p, ".entry")};
	int err;

	p->at++;
	while (is(p, ".attribute") || is(p, "(")) {
		if (is(p, ".attribute"))
			p->at++;
		err = skip_group(p);
		if (err)
			return err;
	}
	if (kind(p) != PTX_NAME)
		return wrong(p, "a function's name is missing");
	f.name = f.open = f.close = p->at++;
	f.first_param = p->m->variable_count;
	if (is(p, "(")) {
		err = params(p, &f);
		if (err)
			return err;
	}
	f.tuned = p->at;
	while (!is(p, "{") && !is(p, ";")) {
		if (kind(p) == PTX_END || is(p, "}"))
			return wrong(p, "a body is missing");
		p->at++;
	}
	f.brace = p->at;
	f.first = p->m->statement_count;
	f.first_register = p->m->register_count;
	f.first_variable = p->m->variable_count;
	p->at++;
	if (ptx_is(p->m, f.brace, "{")) {
		f.has_body = true;
		err = body(p, &f);
		if (err)
			return err;
	}
	f.registers = p->m->register_count - f.first_register;
	f.variables = p->m->variable_count - f.first_variable;
	err = GROW(p, functions, function_count, functions_room);
	if (err)
		return err;
	p->m->functions[p->m->function_count++] = f;
	p->m->entry_count += f.entry && f.has_body;
	return 0;
}

/* ---- the module ---------------------------------------------------------------------- */

static int version(struct parser *p)
{
	const char *text = ptx_at(p->m, ++p->at);
	char *end;
	unsigned long major = 0, minor = 0;

	if (kind(p) == PTX_NUMBER) {
		major = strtoul(text, &end, 10);
		if (*end == '.')
			minor = strtoul(end + 1, &end, 10);
	}
	if (major < 1 || major > 99 || minor > 99)
		return wrong(p, "no version");
	p->m->major = (uint32_t)major;
	p->m->minor = (uint32_t)minor;
	p->at++;
	return 0;
}

static int declaration(struct parser *p)
{
	uint32_t first = p->m->variable_count;
	int64_t n;
	int err;

	if (is(p, ".version"))
		return version(p);
	if (is(p, ".target")) {
		do {
			p->at++;
			if (kind(p) != PTX_NAME)
				return wrong(p, "a target is missing");
			p->at++;
		} while (is(p, ","));
		return 0;
	}
	if (is(p, ".address_size")) {
		p->at++;
		err = number(p, &n);
		if (err)
			return err;
		return n == 64 ? 0 : wrong(p, "addresses are not of 64 bits");
	}
	if (is(p, ".extern") || is(p, ".visible") || is(p, ".weak") || is(p, ".common")) {
		p->at++;
		return 0;
	}
	if (is(p, ".entry") || is(p, ".func"))
		return function(p);
	if (is(p, ".file") || is(p, ".loc")) {
		skip_rest_of_line(p);
		return 0;
	}
	if (is(p, ".section")) {
		for (p->at++; !is(p, "{"); p->at++)
			if (kind(p) == PTX_END)
				return wrong(p, "a section without a {");
		return skip_group(p);
	}
	if (is(p, ".pragma") || is(p, ".alias"))
		return skip_line(p);
	if (is(p, ";")) {
		p->at++;
		return 0;
	}
	err = variable(p, 0);
	for (; !err && first < p->m->variable_count; first++)
		p->m->variables[first].module = true;
	return err;
}

static int module(struct parser *p)
{
	struct ptx *m = p->m;
	uint32_t i;
	int err;

	for (p->at = 1; kind(p) != PTX_END;) {
		if (kind(p) != PTX_DOT && !is(p, ";"))
			return wrong(p, "a directive is expected");
		err = declaration(p);
		if (err)
			return err;
	}
	if (!m->major)
		return ptx_fail(p->why, EINVAL, "no .version: it is no PTX");
	m->entries = calloc(m->entry_count + 1, sizeof(*m->entries));
	if (!m->entries)
		return ptx_fail(p->why, ENOMEM, "no memory for the kernels");
	m->entry_count = 0;
	for (i = 0; i < m->function_count; i++)
		if (m->functions[i].entry && m->functions[i].has_body)
			m->entries[m->entry_count++] = i;
	for (i = 1; i < m->token_count; i++) {
		m->own |= ptx_begins(m, i, PTX_OWN) || ptx_begins(m, i, "%" PTX_OWN);
		m->own_stops |= ptx_begins(m, i, PTX_OWN_STOPS) ||
				ptx_begins(m, i, "%" PTX_OWN_STOPS);
	}
	return 0;
}

int ptx_parse(const char *text, size_t bytes, struct ptx **out, char why[PTX_WHY])
{
	struct ptx *m = calloc(1, sizeof(*m));
	struct parser p = {.m = m, .why = why};
	int err;

	why[0] = 0;
	if (!m)
		return ptx_fail(why, ENOMEM, "no memory for a module");
	bytes = strnlen(text, bytes);
	m->text = bytes > PTX_BYTES_MAX ? NULL : malloc(bytes + 1);
	if (!m->text) {
		free(m);
		return ptx_fail(why, ENOMEM, "no memory for %zu bytes of PTX", bytes);
	}
	memcpy(m->text, text, bytes);
	m->text[bytes] = 0;
	m->bytes = (uint32_t)bytes;
	err = ptx_lex(m, why);
	if (!err)
		err = module(&p);
	if (err) {
		ptx_free(m);
		return err;
	}
	*out = m;
	return 0;
}

void ptx_free(struct ptx *m)
{
	if (!m)
		return;
	free(m->text);
	free(m->tokens);
	free(m->statements);
	free(m->registers);
	free(m->variables);
	free(m->functions);
	free(m->entries);
	free(m);
}

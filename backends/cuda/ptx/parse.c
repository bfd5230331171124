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

#include "wait.h"

/* A name that is known where the parser is. */
struct name {
	uint32_t at, bytes; /* in the text */
	uint32_t count;     /* of registers NAME0 .. NAMEcount-1; 0: NAME itself */
	uint32_t bound;
	uint32_t slot, next; /* the next older one of the same slot; UINT32_MAX: none */
};

struct parser {
	struct ptx *m;
	uint32_t at; /* token */
	uint32_t statements_room, registers_room, variables_room, functions_room;
	/* Innermost scopes last: a scope that ends takes its names from the end. */
	struct name *names;
	uint32_t name_count, names_room;
	uint32_t *slots, slot_mask; /* the newest name of each hash */
	/* What wrong() said last. */
	uint32_t odd;
	const char *odd_what;
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

	p->odd = p->at;
	p->odd_what = what;
	if (t->kind == PTX_END)
		return ptx_fail(p->why, EINVAL, "line %u: %s, at the end of the text",
				t->line, what);
	return ptx_fail(p->why, EINVAL, "line %u: %s, at %.*s", t->line, what,
			ptx_shown(p->m, p->at), ptx_at(p->m, p->at));
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

static int number(struct parser *p, int64_t *v)
{
	if (!ptx_integer(p->m, p->at, 1, v))
		return wrong(p, "a number is expected");
	p->at++;
	return 0;
}

/* ---- names ----------------------------------------------------------------------------- */

static uint32_t slot_of(const struct parser *p, const char *text, uint32_t bytes)
{
	uint32_t hash = 2166136261u, i;

	for (i = 0; i < bytes; i++)
		hash = (hash ^ (unsigned char)text[i]) * 16777619u;
	return (hash ^ hash >> 15) & p->slot_mask;
}

static int make_names(struct parser *p)
{
	uint32_t slots = 64, i;

	while (slots < p->m->token_count / 4)
		slots *= 2;
	p->slot_mask = slots - 1;
	p->slots = malloc(slots * sizeof(*p->slots));
	if (!p->slots)
		return ptx_fail(p->why, ENOMEM, "no memory for %u names", slots);
	for (i = 0; i < slots; i++)
		p->slots[i] = UINT32_MAX;
	return 0;
}

/* Make a name known until its scope ends. */
static int know(struct parser *p, uint32_t token, uint32_t count, uint32_t bound)
{
	const struct ptx_token *t = &p->m->tokens[token];
	struct name *n;

	if (p->name_count == p->names_room) {
		const uint32_t room = p->names_room ? 2 * p->names_room : 64;

		n = realloc(p->names, room * sizeof(*n));
		if (!n)
			return ptx_fail(p->why, ENOMEM, "no memory for %u names", room);
		p->names = n;
		p->names_room = room;
	}
	n = &p->names[p->name_count];
	*n = (struct name){.at = t->at,
			   .bytes = t->bytes,
			   .count = count,
			   .bound = bound,
			   .slot = slot_of(p, p->m->text + t->at, t->bytes)};
	n->next = p->slots[n->slot];
	p->slots[n->slot] = p->name_count++;
	return 0;
}

/* Forget all but that many names. */
static void forget(struct parser *p, uint32_t count)
{
	while (p->name_count > count) {
		const struct name *n = &p->names[--p->name_count];

		p->slots[n->slot] = n->next;
	}
}

/* Return the newest name of that text, of registers that are counted or not. */
static uint32_t known(const struct parser *p, const char *text, uint32_t bytes,
		      bool counted, uint64_t number)
{
	uint32_t i;

	for (i = p->slots[slot_of(p, text, bytes)]; i != UINT32_MAX;
	     i = p->names[i].next) {
		const struct name *n = &p->names[i];

		if (n->bytes == bytes && memcmp(p->m->text + n->at, text, bytes) == 0 &&
		    (counted ? number < n->count : !n->count))
			return i;
	}
	return UINT32_MAX;
}

/* Bind the token to what its name stands for here: the newest, so the innermost. */
static int refer(struct parser *p, uint32_t token)
{
	struct ptx_token *t = &p->m->tokens[token];
	const char *text = ptx_at(p->m, token);
	uint32_t best, i, bytes = t->bytes;
	uint64_t number = 0, digit = 1;

	if (t->kind != PTX_NAME)
		return 0;
	best = known(p, text, bytes, false, 0);
	/* As NAME and a number: %r12 may be %r and 12, or %r1 and 2. */
	while (bytes-- > 1 && text[bytes] >= '0' && text[bytes] <= '9' &&
	       digit <= 10000000) {
		number += digit * (uint64_t)(text[bytes] - '0');
		digit *= 10;
		if (text[bytes] == '0' && bytes + 1 < t->bytes)
			continue; /* no number begins so */
		i = known(p, text, bytes, true, number);
		if (i != UINT32_MAX && (best == UINT32_MAX || i > best))
			best = i;
	}
	if (best == UINT32_MAX)
		return 0;
	t->bound = p->names[best].bound;
	if (t->bound == PTX_BOUND_UNREAD) {
		p->at = token;
		return wrong(p, "its declaration is of an unknown form");
	}
	if (t->bound % 4 == 3 && p->m->functions[t->bound / 4].entry)
		p->m->functions[t->bound / 4].named = token;
	return 0;
}

static int refer_all(struct parser *p, uint32_t first, uint32_t end)
{
	int err = 0;

	for (; !err && first < end; first++)
		err = refer(p, first);
	return err;
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
				return wrong(p, "the array is too large");
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
				return wrong(p, "an alignment is missing");
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

/* What a variable begins with, behind its = */
static int initializer(struct parser *p, struct ptx_variable *v)
{
	int err;

	v->first = p->at;
	while (!is(p, ";") && !is(p, ",") && kind(p) != PTX_END) {
		if (!is(p, "{") && !is(p, "(")) {
			p->at++;
			continue;
		}
		err = skip_group(p);
		if (err)
			return err;
	}
	v->count = p->at - v->first;
	return refer_all(p, v->first, p->at);
}

/* At the space; to behind the ; or, of a parameter, its name. */
static int variable(struct parser *p, bool parameter)
{
	struct ptx_variable v = {0};
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
		if (!parameter && is(p, "=")) {
			p->at++;
			err = initializer(p, &v);
			if (err)
				return err;
		}
		err = GROW(p, variables, variable_count, variables_room);
		if (!err)
			err = know(p, v.name, 0,
				   PTX_BOUND_VARIABLE(p->m->variable_count));
		if (err)
			return err;
		p->m->variables[p->m->variable_count++] = v;
		if (parameter)
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

/* .reg .b32 %r<12>, %x; or, of a parameter, .reg .b32 %x */
static int registers(struct parser *p, bool parameter)
{
	struct ptx_register r = {0};
	uint32_t align, name;
	int64_t n;
	int err;

	p->at++;
	err = type_of(p, &align, &r.bits, &r.lanes);
	if (err)
		return err;
	for (;;) {
		if (kind(p) != PTX_NAME)
			return wrong(p, "a name is missing");
		name = p->at++;
		r.name = p->m->tokens[name].at;
		r.name_bytes = p->m->tokens[name].bytes;
		r.count = 0;
		if (is(p, "<")) {
			p->at++;
			err = number(p, &n);
			if (err)
				return err;
			if (n < 1 || n > 1 << 24 || !is(p, ">"))
				return wrong(p, "the number of registers is missing");
			r.count = (uint32_t)n;
			p->at++;
		}
		err = GROW(p, registers, register_count, registers_room);
		if (!err)
			err = know(p, name, r.count,
				   PTX_BOUND_REGISTER(p->m->register_count));
		if (err)
			return err;
		p->m->registers[p->m->register_count++] = r;
		if (parameter)
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

static int numbers(struct parser *p, uint32_t count)
{
	for (; count; count--, p->at++)
		if (kind(p) != PTX_NUMBER)
			return wrong(p, "a number is expected");
	return 0;
}

/* .loc FILE LINE COLUMN [, function_name LABEL [+ N], inlined_at FILE LINE COLUMN] */
static int location(struct parser *p)
{
	int err;

	p->at++;
	err = numbers(p, 3);
	while (!err && is(p, ",")) {
		p->at++;
		if (is(p, "inlined_at")) {
			p->at++;
			err = numbers(p, 3);
			continue;
		}
		if (!is(p, "function_name"))
			return wrong(p, "function_name or inlined_at is expected");
		p->at++;
		if (kind(p) != PTX_NAME)
			return wrong(p, "a label is missing");
		p->at++;
		if (!is(p, "+"))
			continue;
		p->at++;
		err = numbers(p, 1);
	}
	return err;
}

/* .file NUMBER "NAME" [, TIME, BYTES] */
static int file(struct parser *p)
{
	int err;

	p->at++;
	err = numbers(p, 1);
	if (err)
		return err;
	if (kind(p) != PTX_STRING)
		return wrong(p, "a file's name is missing");
	p->at++;
	while (!err && is(p, ",")) {
		p->at++;
		err = numbers(p, 1);
	}
	return err;
}

static bool links(const struct parser *p)
{
	return is(p, ".extern") || is(p, ".visible") || is(p, ".weak") ||
	       is(p, ".common");
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
				return wrong(p,
					     "a closing bracket has no opening bracket");
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
	int err;

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
	err = operands(p, s);
	if (!err && s->guard)
		err = refer(p, s->guard);
	return err ? err : refer_all(p, s->op + s->dots + 1, p->at);
}

static int statement(struct parser *p, struct ptx_statement *s)
{
	int err;

	s->first = p->at;
	if (kind(p) == PTX_NAME && ptx_is(p->m, p->at + 1, ":")) {
		s->kind = PTX_LABEL;
		p->at += 2;
		return 0;
	}
	if (kind(p) != PTX_DOT)
		return instruction(p, s);
	s->kind = PTX_DIRECTIVE;
	if (is(p, ".loc"))
		return location(p);
	if (is(p, ".file"))
		return file(p);
	if (is(p, ".reg"))
		return registers(p, false);
	while (links(p))
		p->at++;
	if (is(p, ".shared") || is(p, ".local") || is(p, ".param") || is(p, ".global") ||
	    is(p, ".const"))
		return variable(p, false);
	if (!is(p, ".pragma") && !is(p, ".branchtargets") && !is(p, ".calltargets") &&
	    !is(p, ".callprototype"))
		return wrong(p, "unknown directive");
	err = skip_line(p);
	return err ? err : refer_all(p, s->first + 1, p->at);
}

/* Behind its {; to behind its }. */
static int body(struct parser *p, struct ptx_function *f)
{
	uint32_t names[PTX_DEPTH_MAX], depth = 0;
	struct ptx_statement s;
	int err;

	for (;;) {
		memset(&s, 0, sizeof(s));
		s.first = p->at;
		if (kind(p) == PTX_END)
			return wrong(p, "a body is not closed");
		if (is(p, "}")) {
			f->end = p->at++;
			if (!depth)
				return 0;
			forget(p, names[depth--]);
			s.kind = PTX_CLOSE;
		} else if (is(p, "{")) {
			if (++depth == PTX_DEPTH_MAX)
				return wrong(p, "braces are nested too deeply");
			names[depth] = p->name_count;
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

static int parameter(struct parser *p, struct ptx_function *f)
{
	const struct ptx_variable *v;
	int err = variable(p, true);

	if (err)
		return err;
	v = &p->m->variables[p->m->variable_count - 1];
	f->params++;
	if (f->param_bytes > PTX_BYTES_MAX)
		return wrong(p, "too many parameters");
	if (v->align)
		f->param_bytes += (v->align - f->param_bytes % v->align) % v->align;
	f->param_bytes += v->bytes;
	return 0;
}

/* At the (; to behind its ) */
static int params(struct parser *p, struct ptx_function *f)
{
	int err;

	f->open = p->at++;
	f->parens = true;
	while (!is(p, ")")) {
		err = is(p, ".reg") ? registers(p, true) : parameter(p, f);
		if (err)
			return err;
		if (is(p, ","))
			p->at++;
		else if (!is(p, ")"))
			return wrong(p, "a , or ) is missing");
	}
	f->close = p->at++;
	return 0;
}

/* From .entry or .func to behind its name; what it returns becomes known if that is
 * asked. */
static int name_of(struct parser *p, struct ptx_function *f, bool ask)
{
	struct ptx_function back = {0}; /* what it returns */
	int err = 0;

	p->at++;
	while (!err && (kind(p) == PTX_DOT || is(p, "("))) {
		if (is(p, "(")) {
			err = ask ? params(p, &back) : skip_group(p);
			continue;
		}
		p->at++;
		if (is(p, "(") && ptx_is(p->m, p->at - 1, ".attribute"))
			err = skip_group(p);
	}
	if (!err && kind(p) != PTX_NAME)
		err = wrong(p, "a function's name is missing");
	if (!err)
		f->name = f->open = f->close = p->at++;
	return err;
}

/* Behind its name; to its { or ; */
static int head(struct parser *p, struct ptx_function *f)
{
	int err = 0;

	f->first_param = p->m->variable_count;
	if (is(p, "("))
		err = params(p, f);
	f->tuned = p->at;
	while (!err && !is(p, "{") && !is(p, ";")) {
		if (kind(p) == PTX_END || is(p, "}"))
			return wrong(p, "a body is missing");
		if (is(p, ".pragma"))
			err = skip_line(p);
		else
			p->at++;
	}
	f->brace = p->at;
	return err;
}

/* Behind a function that could not be read, which is noted in it. */
static int recover(struct parser *p, struct ptx_function *f, uint32_t first)
{
	uint32_t depth = 0;

	f->has_body = false;
	f->odd = p->odd;
	f->odd_what = p->odd_what;
	for (p->at = first; kind(p) != PTX_END; p->at++) {
		if (!depth && is(p, ".pragma") && skip_line(p))
			return -EINVAL;
		if (is(p, "{") && !depth++)
			f->brace = p->at;
		f->has_body |= depth > 0;
		if ((is(p, "}") && depth && !--depth) || (is(p, ";") && !depth))
			break;
	}
	/* How it is wrong has been said. */
	if (kind(p) == PTX_END)
		return -EINVAL;
	if (!f->has_body)
		f->brace = p->at;
	f->end = p->at++;
	f->count = 0;
	return 0;
}

/* Functions of one name are one; the newest is bound to it. */
static int join(struct parser *p, struct ptx_function *f)
{
	const uint32_t number = p->m->function_count, bytes = p->m->tokens[f->name].bytes;
	const uint32_t old = known(p, ptx_at(p->m, f->name), bytes, false, 0);
	int err = GROW(p, functions, function_count, functions_room);

	f->same = f->def = number;
	if (old != UINT32_MAX && p->names[old].bound % 4 == 3 &&
	    p->names[old].bound != PTX_BOUND_UNREAD)
		f->same = p->m->functions[p->names[old].bound / 4].same;
	if (!err)
		err = know(p, f->name, 0, PTX_BOUND_FUNCTION(number));
	if (!err)
		p->m->functions[p->m->function_count++] = *f;
	return err;
}

static void note_own(struct parser *p, struct ptx_function *f, uint32_t first)
{
	for (; first < p->at; first++) {
		f->own |= ptx_begins(p->m, first, PTX_OWN) ||
			  ptx_begins(p->m, first, "%" PTX_OWN);
		f->own_stops |= ptx_begins(p->m, first, PTX_OWN_STOPS) ||
				ptx_begins(p->m, first, "%" PTX_OWN_STOPS);
		f->own_color |= ptx_begins(p->m, first, PTX_OWN_COLOR) ||
				ptx_begins(p->m, first, "%" PTX_OWN_COLOR);
	}
}

static int function(struct parser *p)
{
	struct ptx *m = p->m;
	struct ptx_function f = {.entry = is(p, ".entry"),
				 .first_register = m->register_count};
	const uint32_t first = p->at, number = m->function_count, names = p->name_count;
	uint32_t i;
	int err = name_of(p, &f, false);

	if (!err)
		err = join(p, &f);
	if (err)
		return err;
	p->at = first;
	err = name_of(p, &f, true);
	if (!err)
		err = head(p, &f);
	f.first = m->statement_count;
	f.first_variable = m->variable_count;
	f.has_body = !err && is(p, "{");
	f.end = p->at++;
	if (f.has_body)
		err = body(p, &f);
	forget(p, names + 1);
	if (err == -EINVAL) {
		err = recover(p, &f, first);
		/* The kernels whose addresses it may take. */
		for (i = f.brace; !err && i <= f.end; i++)
			(void)refer(p, i);
	}
	if (err)
		return err;
	p->at = f.end + 1;
	note_own(p, &f, first);
	f.registers = m->register_count - f.first_register;
	f.variables = m->variable_count - f.first_variable;
	f.named = m->functions[number].named;
	m->functions[number] = f;
	m->entry_count += f.entry && f.has_body;
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
		return wrong(p, "the PTX version is missing");
	p->m->major = (uint32_t)major;
	p->m->minor = (uint32_t)minor;
	p->at++;
	return 0;
}

/* .target sm_90, debug */
static int target(struct parser *p)
{
	do {
		p->at++;
		if (kind(p) != PTX_NAME)
			return wrong(p, "a target is missing");
		if (ptx_begins(p->m, p->at, "sm_") && !p->m->sm)
			p->m->sm = (uint32_t)strtoul(ptx_at(p->m, p->at) + 3, NULL, 10);
		p->at++;
	} while (is(p, ","));
	return 0;
}

static int section(struct parser *p)
{
	for (p->at++; !is(p, "{"); p->at++)
		if (kind(p) == PTX_END)
			return wrong(p, "a { is missing after the section");
	return skip_group(p);
}

/* .alias NAME, FUNCTION; */
static void alias(struct ptx *m, uint32_t first)
{
	const uint32_t a = m->tokens[first + 1].bound, b = m->tokens[first + 3].bound;

	if (a % 4 == 3 && b % 4 == 3 && ptx_is(m, first + 2, ","))
		m->functions[a / 4].same = m->functions[b / 4].same;
}

static int declaration(struct parser *p)
{
	const uint32_t first = p->at;
	uint32_t variables = p->m->variable_count;
	int64_t n;
	int err;

	if (is(p, ".version"))
		return version(p);
	if (is(p, ".target"))
		return target(p);
	if (is(p, ".address_size")) {
		p->at++;
		err = number(p, &n);
		if (err)
			return err;
		return n == 64 ? 0 : wrong(p, "the address size is not 64 bits");
	}
	if (links(p)) {
		p->at++;
		return 0;
	}
	if (is(p, ".entry") || is(p, ".func"))
		return function(p);
	if (is(p, ".file"))
		return file(p);
	if (is(p, ".loc"))
		return location(p);
	if (is(p, ".section"))
		return section(p);
	if (is(p, ".pragma") || is(p, ".alias")) {
		err = skip_line(p);
		if (!err)
			err = refer_all(p, first + 1, p->at);
		if (!err && ptx_is(p->m, first, ".alias"))
			alias(p->m, first);
		return err;
	}
	if (is(p, ";")) {
		p->at++;
		return 0;
	}
	err = variable(p, false);
	for (; variables < p->m->variable_count; variables++)
		p->m->variables[variables].module = true;
	return err;
}

/* Does another declaration begin here? */
static bool declares(const struct parser *p)
{
	static const char *const words[] = {".entry", ".func",  ".section", ".file",
					    ".loc",   ".alias", ".pragma"};
	uint32_t i;

	for (i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (is(p, words[i]))
			return true;
	return links(p);
}

/* Behind a declaration that could not be read: functions that name what it names are not
 * understood, either. */
static int leave_out(struct parser *p, uint32_t first)
{
	bool group = false;
	uint32_t i, end;
	int err = 0;

	p->at = first;
	do {
		group = is(p, "{");
		if (is(p, "(") || is(p, "{") || is(p, "["))
			err = skip_group(p);
		else
			p->at++;
		if (err)
			return err;
	} while (kind(p) != PTX_END && !ptx_is(p->m, p->at - 1, ";") && !group &&
		 !declares(p));
	end = p->at;
	for (i = first; !err && i < end; i++) {
		(void)refer(
			p, i); /* which leaves the parser there if it is not understood */
		if (p->m->tokens[i].kind == PTX_NAME)
			err = know(p, i, 0, PTX_BOUND_UNREAD);
	}
	p->at = end;
	return err;
}

/* Does the text depend on it as a whole?  A function that comes here has no name, or no
 * end. */
static bool is_vital(const struct parser *p, uint32_t first)
{
	return ptx_is(p->m, first, ".version") || ptx_is(p->m, first, ".target") ||
	       ptx_is(p->m, first, ".address_size") || ptx_is(p->m, first, ".entry") ||
	       ptx_is(p->m, first, ".func");
}

/* What is known of any function of a name is known of the one with a body. */
static void join_functions(struct ptx *m)
{
	struct ptx_function *f, *g;
	uint32_t i;

	for (i = 0; i < m->function_count; i++)
		if (m->functions[i].has_body)
			m->functions[m->functions[i].same].def = i;
	for (i = 0; i < m->function_count; i++) {
		f = &m->functions[i];
		f->def = m->functions[f->same].def;
		g = &m->functions[f->def];
		if (f->named)
			g->named = f->named;
		if (f->odd && !g->odd) {
			g->odd = f->odd;
			g->odd_what = f->odd_what;
		}
	}
}

static bool points(const struct ptx *m, const struct ptx_variable *v)
{
	uint32_t i;

	for (i = v->first; i < v->first + v->count; i++)
		if (m->tokens[i].kind == PTX_NAME)
			return true;
	return false;
}

static int module(struct parser *p)
{
	struct ptx *m = p->m;
	bool left = false;
	uint32_t i;
	int err;

	err = make_names(p);
	for (p->at = 1; !err && kind(p) != PTX_END;) {
		const uint32_t first = p->at;

		if (kind(p) != PTX_DOT && !is(p, ";"))
			err = wrong(p, "a directive is expected");
		else
			err = declaration(p);
		/* What is no declaration may be the rest of one that was left out. */
		if (err == -EINVAL && m->major && !is_vital(p, first) &&
		    (left || m->tokens[first].kind == PTX_DOT)) {
			err = leave_out(p, first);
			left = true;
		} else {
			left = false;
		}
	}
	if (err)
		return err;
	if (!m->major)
		return ptx_fail(p->why, EINVAL, "no .version directive: this is not PTX");
	m->entries = calloc(m->entry_count + 1, sizeof(*m->entries));
	if (!m->entries)
		return ptx_fail(p->why, ENOMEM, "no memory for the kernels");
	m->entry_count = 0;
	for (i = 0; i < m->function_count; i++)
		if (m->functions[i].entry && m->functions[i].has_body)
			m->entries[m->entry_count++] = i;
	join_functions(m);
	m->pointing = UINT32_MAX;
	for (i = m->variable_count; i--;)
		if (points(m, &m->variables[i]))
			m->pointing = i;
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
	if (!err)
		err = ptx_wait_sum(m, why);
	free(p.names);
	free(p.slots);
	if (err) {
		ptx_free(m);
		return err;
	}
	*out = m;
	return 0;
}

void ptx_free(struct ptx *m)
{
	uint32_t i;

	if (!m)
		return;
	free(m->text);
	free(m->tokens);
	free(m->statements);
	free(m->registers);
	free(m->variables);
	for (i = 0; i < m->function_count; i++) {
		free(m->functions[i].fault[PTX_ENTRY]);
		free(m->functions[i].fault[PTX_LOOP]);
	}
	free(m->functions);
	free(m->entries);
	free(m);
}

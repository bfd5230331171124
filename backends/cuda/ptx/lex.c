/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens of PTX. */
#define _GNU_SOURCE
#include "lex.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct lexer {
	struct ptx *m;
	uint32_t at, line, room;
	char *why;
};

static bool name_begins(char c)
{
	return isalpha((unsigned char)c) || c == '_' || c == '$' || c == '%';
}

static bool name_goes_on(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '$';
}

static int add(struct lexer *l, uint32_t kind, uint32_t from)
{
	struct ptx *m = l->m;

	if (m->token_count == l->room) {
		const uint32_t room = l->room ? 2 * l->room : 256;
		struct ptx_token *p = realloc(m->tokens, room * sizeof(*p));

		if (!p)
			return ptx_fail(l->why, ENOMEM, "no memory for %u tokens", room);
		m->tokens = p;
		l->room = room;
	}
	m->tokens[m->token_count++] = (struct ptx_token){
		.at = from, .bytes = l->at - from, .line = l->line, .kind = kind};
	return 0;
}

/* Those of NVIDIA's assembler: 0x1a is one, a vertical tab is not. */
static bool blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == 0x1a;
}

static const char *past_digits(const char *t)
{
	while (isdigit((unsigned char)*t))
		t++;
	return t;
}

static const char *past_spaces(const char *t)
{
	while (*t == ' ' || *t == '\t')
		t++;
	return t;
}

/* Return the bytes of a line marker, # [line] NUMBER "FILE" [NUMBER ...], which ends its
 * line; 0 if the text at t is none. */
static size_t marker(const char *t)
{
	const char *from = t, *digits;

	t = past_spaces(t + 1);
	if (strncmp(t, "line", 4) == 0)
		t = past_spaces(t + 4);
	digits = t;
	t = past_digits(t);
	if (t == digits)
		return 0;
	t = past_spaces(t);
	if (*t != '"')
		return 0;
	t = strchr(t + 1, '"');
	if (!t)
		return 0;
	t++;
	do {
		digits = past_spaces(t);
		t = past_digits(digits);
	} while (t > digits);
	if (*t == '\r')
		t++;
	return *t && *t != '\n' ? 0 : (size_t)(t - from);
}

/* Past blanks, comments and line markers. */
static int skip(struct lexer *l)
{
	const char *t = l->m->text;

	for (;; l->at++) {
		const char c = t[l->at], *end;

		if (c == '/' && t[l->at + 1] == '/') {
			while (t[l->at] && t[l->at] != '\n')
				l->at++;
			if (!t[l->at])
				return 0;
			l->line++;
		} else if (c == '/' && t[l->at + 1] == '*') {
			end = strstr(t + l->at + 2, "*/");
			if (!end)
				return ptx_fail(l->why, EINVAL,
						"line %u: a comment is not terminated",
						l->line);
			for (; t + l->at < end; l->at++)
				l->line += t[l->at] == '\n';
			l->at++;
		} else if (c == '#' && marker(t + l->at)) {
			for (end = t + l->at + marker(t + l->at); t + l->at < end;
			     l->at++)
				l->line += t[l->at] == '\n';
			l->at--;
		} else if (c == '\n') {
			l->line++;
		} else if (!blank(c)) {
			return 0;
		}
	}
}

/* A string ends at the next quote, on whatever line; nothing in it escapes a quote. */
static int string(struct lexer *l)
{
	const char *t = l->m->text;
	const uint32_t from = l->at, line = l->line;
	int err;

	for (l->at++; t[l->at] && t[l->at] != '"'; l->at++)
		;
	if (!t[l->at])
		return ptx_fail(l->why, EINVAL, "line %u: a string is not terminated",
				line);
	l->at++;
	err = add(l, PTX_STRING, from);
	for (t += from; t < l->m->text + l->at; t++)
		l->line += *t == '\n';
	return err;
}

/* 2d, 16x64b: of what is said of an instruction; 5e3 is a number. */
static bool is_shape(const char *t)
{
	const char *end = past_digits(t);

	return end > t && isalpha((unsigned char)*end) && *end != 'e' && *end != 'E';
}

static int one(struct lexer *l)
{
	const char *t = l->m->text;
	const uint32_t from = l->at;
	const char c = t[from];

	if (c == '"')
		return string(l);
	if (name_begins(c)) {
		for (l->at++; name_goes_on(t[l->at]); l->at++)
			;
		return add(l, PTX_NAME, from);
	}
	if (c == '.' && ((name_begins(t[from + 1]) && t[from + 1] != '%') ||
			 is_shape(t + from + 1))) {
		for (l->at++;
		     name_goes_on(t[l->at]) || (t[l->at] == ':' && t[l->at + 1] == ':' &&
						name_goes_on(t[l->at + 2]));
		     l->at++)
			if (t[l->at] == ':')
				l->at++;
		return add(l, PTX_DOT, from);
	}
	if (isdigit((unsigned char)c)) {
		for (l->at++; name_goes_on(t[l->at]) ||
			      (t[l->at] == '.' && isdigit((unsigned char)t[l->at + 1]));
		     l->at++)
			;
		return add(l, PTX_NUMBER, from);
	}
	if (c < ' ' || c > '~') /* nor does NVIDIA's assembler take it */
		return ptx_fail(l->why, EINVAL, "line %u: unexpected byte 0x%02x",
				l->line, (unsigned int)(unsigned char)c);
	l->at++;
	return add(l, PTX_SIGN, from);
}

/* NOLINTNEXTLINE(readability-non-const-parameter): ptx_fail writes to it */
int ptx_lex(struct ptx *m, char why[PTX_WHY])
{
	struct lexer l = {.m = m, .line = 1, .why = why};
	int err = 0;

	/* Token 0 is none, so that 0 means none elsewhere. */
	err = add(&l, PTX_END, 0);
	while (!err) {
		err = skip(&l);
		if (err || !m->text[l.at])
			break;
		err = one(&l);
	}
	return err ? err : add(&l, PTX_END, l.at);
}

const char *ptx_at(const struct ptx *m, uint32_t token)
{
	return m->text + m->tokens[token].at;
}

bool ptx_is(const struct ptx *m, uint32_t token, const char *text)
{
	const size_t n = strlen(text);

	return m->tokens[token].bytes == n && memcmp(ptx_at(m, token), text, n) == 0;
}

bool ptx_begins(const struct ptx *m, uint32_t token, const char *text)
{
	const size_t n = strlen(text);

	return m->tokens[token].bytes >= n && memcmp(ptx_at(m, token), text, n) == 0;
}

int ptx_shown(const struct ptx *m, uint32_t token)
{
	const char *end = memchr(ptx_at(m, token), '\n', m->tokens[token].bytes);
	const ptrdiff_t bytes = end ? end - ptx_at(m, token) : m->tokens[token].bytes;

	return bytes < 40 ? (int)bytes : 40;
}

bool ptx_same(const struct ptx *m, uint32_t a, uint32_t b)
{
	return m->tokens[a].bytes == m->tokens[b].bytes &&
	       memcmp(ptx_at(m, a), ptx_at(m, b), m->tokens[a].bytes) == 0;
}

bool ptx_integer(const struct ptx *m, uint32_t token, uint32_t count, int64_t *value)
{
	char text[32];
	bool minus = false;
	uint64_t v;
	size_t n;
	char *end;

	for (; count && (ptx_is(m, token, "-") || ptx_is(m, token, "+")); count--)
		minus ^= ptx_is(m, token++, "-");
	if (count != 1 || m->tokens[token].kind != PTX_NUMBER)
		return false;
	n = m->tokens[token].bytes;
	if (n >= sizeof(text))
		return false;
	memcpy(text, ptx_at(m, token), n);
	text[n] = 0;
	if (text[0] == '0' && (text[1] == 'b' || text[1] == 'B'))
		v = strtoull(text + 2, &end, 2);
	else
		v = strtoull(text, &end, 0);
	if (*end == 'U')
		end++;
	if (*end || end == text)
		return false;
	*value = (int64_t)(minus ? 0 - v : v);
	return true;
}

uint32_t ptx_type_bits(const struct ptx *m, uint32_t token)
{
	static const struct {
		const char *dot;
		uint32_t bits;
	} types[] = {
		{".pred", 1},   {".b8", 8},      {".u8", 8},     {".s8", 8},
		{".b16", 16},   {".u16", 16},    {".s16", 16},   {".f16", 16},
		{".bf16", 16},  {".b32", 32},    {".u32", 32},   {".s32", 32},
		{".f32", 32},   {".tf32", 32},   {".f16x2", 32}, {".b64", 64},
		{".u64", 64},   {".s64", 64},    {".f64", 64},   {".f32x2", 64},
		{".b128", 128}, {".bf16x2", 32},
	};
	size_t i;

	for (i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (ptx_is(m, token, types[i].dot))
			return types[i].bits;
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* write.c - see write.h. */
#define _GNU_SOURCE
#include "write.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void add(struct ptx_writer *w, const char *text, size_t n)
{
	char *p;

	if (w->failed)
		return;
	if (w->count + n + 1 > w->room) {
		w->room = 2 * w->room + n + 4096;
		p = realloc(w->text, w->room);
		if (!p) {
			w->failed = true;
			return;
		}
		w->text = p;
	}
	memcpy(w->text + w->count, text, n);
	w->count += n;
	w->text[w->count] = 0;
}

void ptx_put(struct ptx_writer *w, const char *text)
{
	add(w, text, strlen(text));
}

__attribute__((format(printf, 2, 3))) void ptx_putf(struct ptx_writer *w, const char *fmt,
						    ...)
{
	char line[256];
	va_list ap;
	int n;

	va_start(ap, fmt);
	/* NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized): it has been started */
	n = vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	if (n < 0 || (size_t)n >= sizeof(line))
		w->failed = true; /* no name of ours is that long */
	else
		add(w, line, (size_t)n);
}

void ptx_copy_to(struct ptx_writer *w, uint32_t at)
{
	if (at > w->at)
		add(w, w->m->text + w->at, at - w->at);
	w->at = at;
}

uint32_t ptx_end_of(const struct ptx *m, uint32_t token)
{
	return m->tokens[token].at + m->tokens[token].bytes;
}

void ptx_put_tokens(struct ptx_writer *w, uint32_t first, uint32_t count)
{
	const uint32_t from = w->m->tokens[first].at;

	add(w, w->m->text + from, ptx_end_of(w->m, first + count - 1) - from);
}

void ptx_put_token(struct ptx_writer *w, uint32_t token)
{
	ptx_put_tokens(w, token, 1);
}

void ptx_replace(struct ptx_writer *w, uint32_t token, uint32_t until)
{
	ptx_copy_to(w, w->m->tokens[token].at);
	w->at = until;
}

bool ptx_falls_out(const struct ptx *m, const struct ptx_function *f)
{
	const struct ptx_statement *last = &m->statements[f->first + f->count];

	if (!f->count)
		return true;
	last--;
	return last->kind != PTX_INSTRUCTION || last->guard ||
	       ptx_class_of(m, last) != PTX_RETURN;
}

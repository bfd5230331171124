/* SPDX-License-Identifier: Apache-2.0 */
/* validate_things.c - what layer validate says, and of what: things found and named. */
#include "layers/validate.h"

#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <stdarg.h>
#include <string.h>

#include "util/compiler.h"
#include "util/error.h"
#include <stdio.h>
#include <sys/auxv.h>

#define LISTED_MAX 100 /* of what is alive at the end */

static const char *const thing_kinds[] = {"partition", "queue",   "buffer", "program",
					  "kernel",    "command", "move"};

/* ---- saying what is wrong --------------------------------------------------------- */

int validate_wrong(struct validate *v, const char *side, const char *fmt, ...)
{
	char text[sizeof(v->first)];
	va_list ap;
	size_t n;

	format_text(text, sizeof(text), "validate: %s: ", side);
	n = strlen(text);
	va_start(ap, fmt);
	/* NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized): it has been started */
	(void)vsnprintf(text + n, sizeof(text) - n, fmt, ap);
	va_end(ap);
	if (v->wrong++ == 0)
		memcpy(v->first, text, sizeof(text));
	if (v->report != NULL)
		(void)fprintf(v->report, "%s: %s\n", v->layers->dev->name, text);
	return fail(EPROTO, "%s", text);
}

static const char *file_name(const Dl_info *info)
{
	const char *slash = strrchr(info->dli_fname, '/');

	return slash != NULL ? slash + 1 : info->dli_fname;
}

/* Who made it, as FILE+0xOFFSET for addr2line: the code that called the library.  Where
 * that is not a file of its own, all of it from the inside out. */
static void made_at(const struct thing *t, char *text, size_t size)
{
	const union {
		unsigned long number;
		const void *address;
	} entry = {getauxval(AT_ENTRY)};
	Dl_info own, program, info;
	bool one_file, inside = false;
	size_t used = 0;

	text[0] = '\0';
	if (dladdr(layer_op_names, &own) == 0 || dladdr(entry.address, &program) == 0)
		return;
	one_file = own.dli_fbase == program.dli_fbase;
	for (int i = 0; i < t->frame_count && used < size; i++) {
		bool ours;

		if (dladdr(t->frames[i], &info) == 0 || info.dli_fname == NULL)
			return;
		ours = info.dli_fbase == own.dli_fbase;
		/* A sanitizer may stand in front. */
		inside |= ours;
		if (!inside || ours != one_file)
			continue;
		format_text(text + used, size - used, "%s%s+0x%llx",
			    used == 0 ? ", made at " : ",",
			    used == 0 ? file_name(&info) : "",
			    U64((char *)t->frames[i] - (char *)info.dli_fbase));
		used += strlen(text + used);
		if (!one_file)
			return;
	}
}

/* queue 3 of partition 1 "video" */
void thing_describe(const struct thing *t, char *text, size_t size)
{
	const struct thing *part = t->h.kind == PART ? t : t->parent;
	const char *name = "";
	size_t n;

	format_text(text, size, "%s %u", thing_kinds[t->h.kind], t->h.id);
	n = strlen(text);
	if (part == NULL || part->h.kind != PART)
		return;
	if (part->h.alive && part->desc.name != NULL)
		name = part->desc.name;
	if (t != part)
		format_text(text + n, size - n, " of partition %u%s%s%s", part->h.id,
			    name[0] != '\0' ? " \"" : "", name,
			    name[0] != '\0' ? "\"" : "");
	else if (name[0] != '\0')
		format_text(text + n, size - n, " \"%s\"", name);
}

static bool leaks(const struct thing *t)
{
	return t->h.kind <= PROG && (t->h.alive || t->end_failed);
}

static bool thing_before(const struct thing *a, const struct thing *b)
{
	return a->h.kind != b->h.kind ? a->h.kind < b->h.kind : a->h.id < b->h.id;
}

/* The next that is alive, by kind and number; NULL: that was the last. */
static const struct thing *next_living(const struct validate *v, const struct thing *last)
{
	const struct thing *best = NULL;

	for (uint32_t i = 0; i < v->handles.slot_count; i++) {
		for (struct handle *h = v->handles.slots[i]; h != NULL; h = h->next) {
			const struct thing *t = container_of(h, struct thing, h);

			if (leaks(t) && (last == NULL || thing_before(last, t)) &&
			    (best == NULL || thing_before(t, best)))
				best = t;
		}
	}
	return best;
}

/* Everything that is alive: how many, and the first few, if there are any. */
uint32_t things_living(const struct validate *v, FILE *report, char *text, size_t size)
{
	const struct thing *t = NULL;
	uint32_t n = 0;
	size_t used = 0;

	while (n < LISTED_MAX && (t = next_living(v, t)) != NULL) {
		char what[96], where[128];

		thing_describe(t, what, sizeof(what));
		made_at(t, where, sizeof(where));
		if (report != NULL)
			(void)fprintf(report, "%s: alive: %s%s\n", v->layers->dev->name,
				      what, where);
		if (n++ < 3 && used < size) {
			format_text(text + used, size - used, "%s%s%s%s",
				    n > 1 ? "; " : "", what, where,
				    t->end_failed ? " (destroying it failed)" : "");
			used += strlen(text + used);
		}
	}
	return n;
}

/* ---- things ----------------------------------------------------------------------- */

struct thing *thing_find(const struct validate *v, enum kind kind, uint64_t key)
{
	struct handle *h = handles_find(&v->handles, kind, key);

	return h != NULL ? container_of(h, struct thing, h) : NULL;
}

/* Not NULL: validate_before() has reserved it. */
struct thing *thing_add(struct validate *v, enum kind kind, uint64_t key)
{
	return container_of(handles_add(&v->handles, kind, key), struct thing, h);
}

/* NULL, after validate_wrong(), unless it is alive and the kind it should be. */
struct thing *thing_need(struct validate *v, const struct layer_call *c, enum kind kind,
			 const void *handle)
{
	const char *op = layer_op_names[c->op];
	struct thing *t = thing_find(v, kind, (uintptr_t)handle);
	char text[96];

	if (t != NULL && t->h.alive)
		return t;
	if (t != NULL) {
		thing_describe(t, text, sizeof(text));
		(void)CORE(v, "%s: %s was destroyed before", op, text);
		return NULL;
	}
	for (enum kind other = PART; other <= KERNEL; other++) {
		t = thing_find(v, other, (uintptr_t)handle);
		if (t == NULL)
			continue;
		thing_describe(t, text, sizeof(text));
		(void)CORE(v, "%s: %s where a %s belongs", op, text, thing_kinds[kind]);
		return NULL;
	}
	(void)CORE(v, "%s: %p is no %s of this device", op, handle, thing_kinds[kind]);
	return NULL;
}

/* What the backend has just given. */
struct thing *thing_given(struct validate *v, struct layer_call *c, enum kind kind)
{
	const struct thing *old;
	struct thing *t;
	char text[96];

	if (c->result != 0)
		return NULL;
	old = thing_find(v, kind, (uintptr_t)*c->out);
	if (*c->out == NULL) {
		c->result = BACKEND(v, "%s gave no handle", layer_op_names[c->op]);
		return NULL;
	}
	if (old != NULL && old->h.alive) {
		thing_describe(old, text, sizeof(text));
		c->result = BACKEND(v, "%s gave the handle of %s, which is alive",
				    layer_op_names[c->op], text);
		return NULL;
	}
	t = thing_add(v, kind, (uintptr_t)*c->out);
	t->frame_count = backtrace(t->frames, FRAMES);
	return t;
}

struct binding *thing_binding(const struct thing *prog, const struct thing *part)
{
	struct binding *b = prog->bindings;

	while (b != NULL && b->part != part)
		b = b->next;
	return b;
}

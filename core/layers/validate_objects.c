/* SPDX-License-Identifier: Apache-2.0 */
/* validate_objects.c - tracked objects of layer validate: finding and naming them, and
 * reporting broken rules. */
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

#define LISTED_MAX 100 /* objects alive at close that are listed */

static const char *const kind_names[] = {"partition", "queue",   "buffer", "program",
					 "kernel",    "command", "move"};

/* ---- reporting -------------------------------------------------------------------- */

int validate_violation(struct validate *v, const char *side, const char *fmt, ...)
{
	char text[sizeof(v->first_violation)];
	va_list ap;
	size_t n;

	format_text(text, sizeof(text), "validate: %s: ", side);
	n = strlen(text);
	va_start(ap, fmt);
	/* NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized): va_start was called */
	(void)vsnprintf(text + n, sizeof(text) - n, fmt, ap);
	va_end(ap);
	if (v->violations++ == 0)
		memcpy(v->first_violation, text, sizeof(text));
	if (v->report != NULL)
		(void)fprintf(v->report, "%s: %s\n", v->layers->dev->name, text);
	return fail(EPROTO, "%s", text);
}

static const char *file_name(const Dl_info *info)
{
	const char *slash = strrchr(info->dli_fname, '/');

	return slash != NULL ? slash + 1 : info->dli_fname;
}

/* Write which code created t, as FILE+0xOFFSET for addr2line.  It is the innermost frame
 * of the stack outside this library.  If the library is linked statically into the
 * program, its frames look like the program's own: write the offsets of all frames. */
static void describe_creator(const struct tracked *t, char *text, size_t size)
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
		/* Skip frames of a sanitizer that intercepts backtrace(). */
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

void tracked_describe(const struct tracked *t, char *text, size_t size)
{
	const struct tracked *part = t->h.kind == PART ? t : t->parent;
	const char *name = "";
	size_t n;

	format_text(text, size, "%s %u", kind_names[t->h.kind], t->h.id);
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

/* Return whether t was not destroyed, or its destruction failed. */
static bool is_leak(const struct tracked *t)
{
	return t->h.kind <= PROG && (t->h.alive || t->destroy_failed);
}

static bool tracked_before(const struct tracked *a, const struct tracked *b)
{
	return a->h.kind != b->h.kind ? a->h.kind < b->h.kind : a->h.id < b->h.id;
}

/* Return the live object after last, in order of kind and number; NULL if last is the
 * last one. */
static const struct tracked *next_living(const struct validate *v,
					 const struct tracked *last)
{
	const struct tracked *best = NULL;

	for (uint32_t i = 0; i < v->handles.slot_count; i++) {
		for (struct handle *h = v->handles.slots[i]; h != NULL; h = h->next) {
			const struct tracked *t = container_of(h, struct tracked, h);

			if (is_leak(t) && (last == NULL || tracked_before(last, t)) &&
			    (best == NULL || tracked_before(t, best)))
				best = t;
		}
	}
	return best;
}

/* Return the number of live objects. */
static uint32_t count_living(const struct validate *v)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < v->handles.slot_count; i++)
		for (struct handle *h = v->handles.slots[i]; h != NULL; h = h->next)
			n += is_leak(container_of(h, struct tracked, h));
	return n;
}

uint32_t tracked_living(const struct validate *v, FILE *report, char *text, size_t size)
{
	const struct tracked *t = NULL;
	uint32_t n = 0, all = count_living(v);
	size_t used = 0;

	while (n < LISTED_MAX && (t = next_living(v, t)) != NULL) {
		char what[96], where[128];

		tracked_describe(t, what, sizeof(what));
		describe_creator(t, where, sizeof(where));
		if (report != NULL)
			(void)fprintf(report, "%s: alive: %s%s\n", v->layers->dev->name,
				      what, where);
		if (n++ < 3 && used < size) {
			format_text(text + used, size - used, "%s%s%s%s",
				    n > 1 ? "; " : "", what, where,
				    t->destroy_failed ? " (destroying it failed)" : "");
			used += strlen(text + used);
		}
	}
	if (report != NULL && all > n)
		(void)fprintf(report, "%s: alive: %u more object(s)\n",
			      v->layers->dev->name, all - n);
	return all;
}

/* ---- finding and adding ----------------------------------------------------------- */

struct tracked *tracked_find(const struct validate *v, enum kind kind, uint64_t key)
{
	struct handle *h = handles_find(&v->handles, kind, key);

	return h != NULL ? container_of(h, struct tracked, h) : NULL;
}

struct tracked *tracked_add(struct validate *v, enum kind kind, uint64_t key)
{
	return container_of(handles_add(&v->handles, kind, key), struct tracked, h);
}

struct tracked *tracked_require(struct validate *v, const struct layer_call *c,
				enum kind kind, const void *handle)
{
	const char *op = layer_op_names[c->op];
	struct tracked *t = tracked_find(v, kind, (uintptr_t)handle);
	char text[96];

	if (t != NULL && t->h.alive)
		return t;
	if (t != NULL) {
		tracked_describe(t, text, sizeof(text));
		(void)CORE(v, "%s: %s was destroyed earlier", op, text);
		return NULL;
	}
	for (enum kind other = PART; other <= KERNEL; other++) {
		t = tracked_find(v, other, (uintptr_t)handle);
		if (t == NULL)
			continue;
		tracked_describe(t, text, sizeof(text));
		(void)CORE(v, "%s: %s was passed where a %s belongs", op, text,
			   kind_names[kind]);
		return NULL;
	}
	(void)CORE(v, "%s: %p is not a %s of this device", op, handle, kind_names[kind]);
	return NULL;
}

struct tracked *tracked_new(struct validate *v, struct layer_call *c, enum kind kind)
{
	const struct tracked *old;
	struct tracked *t;
	char text[96];

	if (c->result != 0)
		return NULL;
	old = tracked_find(v, kind, (uintptr_t)*c->out);
	if (*c->out == NULL) {
		c->result = BACKEND(v, "%s returned success without a handle",
				    layer_op_names[c->op]);
		return NULL;
	}
	if (old != NULL && old->h.alive) {
		tracked_describe(old, text, sizeof(text));
		c->result =
			BACKEND(v, "%s returned the handle of %s, which is still alive",
				layer_op_names[c->op], text);
		return NULL;
	}
	t = tracked_add(v, kind, (uintptr_t)*c->out);
	t->frame_count = backtrace(t->frames, FRAMES_MAX);
	return t;
}

struct binding *tracked_binding(const struct tracked *prog, const struct tracked *part)
{
	struct binding *b = prog->bindings;

	while (b != NULL && b->part != part)
		b = b->next;
	return b;
}

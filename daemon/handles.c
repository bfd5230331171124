/* SPDX-License-Identifier: Apache-2.0 */
/* handles.c - the numbers by which a client names its objects; see hald.h.
 *
 * An entry's generation, which is part of its handle, changes with each object, so that
 * the handle of a destroyed object is found to be stale. */
#include "hald.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "util/compiler.h"
#include "util/error.h"

#define ENTRIES_MAX (1u << 20) /* of a client */

static const char *const names[] = {
	[KIND_PARTITION] = "partition", [KIND_BUFFER] = "buffer",
	[KIND_PROGRAM] = "program",     [KIND_KERNEL] = "kernel",
	[KIND_QUEUE] = "queue",         [KIND_SEQUENCE] = "sequence",
	[KIND_COMPLETIONS] = "ring",    [KIND_TIMELINE] = "timeline",
};

void handles_begin(struct handles *t, struct tenant *tenant)
{
	*t = (struct handles){.lock = PTHREAD_MUTEX_INITIALIZER, .tenant = tenant};
}

struct entry *entry_at(const struct handles *t, uint32_t i)
{
	struct far_name **at = atomic_load_explicit(&t->names.at, memory_order_relaxed);

	return container_of(at[i], struct entry, name);
}

void handles_end(struct handles *t)
{
	for (uint32_t i = 0; i < t->count; i++) {
		struct entry *e = entry_at(t, i);

		(void)pthread_mutex_destroy(&e->lock);
		free(e);
	}
	while (t->outgrown != NULL) {
		struct outgrown *o = t->outgrown;

		t->outgrown = o->next;
		free((void *)o->at);
		free(o);
	}
	free((void *)atomic_load(&t->names.at));
	(void)pthread_mutex_destroy(&t->lock);
}

static uint64_t handle_of(const struct entry *e, uint32_t index)
{
	return (uint64_t)e->generation << 32 | (uint64_t)e->kind << 24 | index;
}

/* Make room for twice as many names.  The engine may still read the old array, which is
 * kept.  The caller holds the lock. */
static bool grow(struct handles *t)
{
	size_t room = t->count != 0 ? 2 * (size_t)t->count : 1;
	struct far_name **old = atomic_load(&t->names.at);
	struct far_name **at = calloc(room, sizeof(void *));
	struct outgrown *o = calloc(1, sizeof(*o));

	if (at == NULL || o == NULL) {
		free((void *)at);
		free(o);
		return false;
	}
	if (t->count > 0)
		memcpy((void *)at, (void *)old, t->count * sizeof(void *));
	*o = (struct outgrown){t->outgrown, old};
	t->outgrown = o;
	atomic_store_explicit(&t->names.at, at, memory_order_release);
	return true;
}

/* Add an unused entry to t.  The caller holds the lock. */
static struct entry *more(struct handles *t)
{
	struct entry *e;

	if (t->count == ENTRIES_MAX)
		return NULL;
	e = calloc(1, sizeof(*e));
	if (e == NULL)
		return NULL;
	if ((t->count & (t->count - 1)) == 0 && !grow(t)) {
		free(e);
		return NULL;
	}
	(void)pthread_mutex_init(&e->lock, NULL);
	atomic_load(&t->names.at)[t->count++] = &e->name;
	atomic_store_explicit(&t->names.count, t->count, memory_order_release);
	return e;
}

/* Return the index of object, which goes with parent, or of an unused entry; t->count:
 * there is neither.  Only what goes with another object may have a name already: the
 * address of what a client makes may still be that of what another thread destroys.  The
 * caller holds the lock. */
static uint32_t place_of(const struct handles *t, enum far_kind kind, const void *object,
			 uint64_t parent)
{
	uint32_t unused = t->count;

	for (uint32_t i = 0; i < t->count; i++) {
		const struct entry *e = entry_at(t, i);

		if (parent != 0 && e->object == object && e->kind == kind &&
		    e->parent == parent)
			return i;
		if (e->object == NULL && e->users == 0)
			unused = i;
	}
	return unused;
}

/* Do as handle_add.  *out: the entry; if it is new, it is hidden.  Return whether it is.
 */
static bool add_hidden(struct handles *t, enum far_kind kind, void *object, bool owned,
		       uint64_t parent, struct entry **out, uint64_t *handle)
{
	bool fresh = false;
	struct entry *e;
	uint32_t i;

	i = place_of(t, kind, object, parent);
	e = i < t->count ? entry_at(t, i) : more(t);
	if (e != NULL && e->object == NULL) {
		e->object = object;
		e->generation++;
		e->kind = (uint8_t)kind;
		e->owned = owned;
		e->parent = parent;
		e->destroyed = true;
		e->name.object = object;
		t->living += owned;
		if (kind == KIND_QUEUE)
			atomic_fetch_add(&t->tenant->has.queues, 1);
		if (kind == KIND_PARTITION)
			atomic_fetch_add(&t->tenant->has.partitions, 1);
		fresh = true;
	}
	*handle = e != NULL ? handle_of(e, i) : 0;
	*out = e;
	return fresh;
}

uint64_t handle_add_hidden(struct handles *t, enum far_kind kind, void *object,
			   struct entry **e)
{
	uint64_t handle;

	pthread_mutex_lock(&t->lock);
	(void)add_hidden(t, kind, object, true, 0, e, &handle);
	pthread_mutex_unlock(&t->lock);
	if (handle == 0)
		(void)fail(ENOMEM, "hald has no memory for another %s", names[kind]);
	return handle;
}

uint64_t handle_add(struct handles *t, enum far_kind kind, void *object, bool owned,
		    uint64_t parent)
{
	struct entry *e;
	uint64_t handle;

	pthread_mutex_lock(&t->lock);
	if (add_hidden(t, kind, object, owned, parent, &e, &handle)) {
		e->destroyed = false;
		atomic_store_explicit(&e->name.handle, handle, memory_order_release);
	}
	pthread_mutex_unlock(&t->lock);
	if (handle == 0)
		(void)fail(ENOMEM, "hald has no memory for another %s", names[kind]);
	return handle;
}

struct entry *handle_hold(struct handles *t, uint64_t handle, enum far_kind kind)
{
	uint32_t i = handle & 0xffffff;
	struct entry *e = NULL;

	pthread_mutex_lock(&t->lock);
	if (i < t->count && entry_at(t, i)->object != NULL &&
	    !entry_at(t, i)->destroyed && entry_at(t, i)->kind == kind &&
	    handle_of(entry_at(t, i), i) == handle) {
		e = entry_at(t, i);
		e->users++;
	}
	pthread_mutex_unlock(&t->lock);
	if (e == NULL)
		(void)fail(EINVAL, "the %s does not exist any more", names[kind]);
	return e;
}

struct entry *handle_hold_at(struct handles *t, uint32_t i, enum far_kind kind)
{
	struct entry *e = NULL;

	pthread_mutex_lock(&t->lock);
	if (i < t->count && entry_at(t, i)->object != NULL &&
	    !entry_at(t, i)->destroyed && entry_at(t, i)->kind == kind &&
	    entry_at(t, i)->owned) {
		e = entry_at(t, i);
		e->users++;
	}
	pthread_mutex_unlock(&t->lock);
	return e;
}

void handle_release(struct handles *t, struct entry *e)
{
	if (e == NULL)
		return;
	pthread_mutex_lock(&t->lock);
	e->users--;
	pthread_mutex_unlock(&t->lock);
}

/* Call fn for e, and for what goes with it.  The caller holds the lock. */
static void with_children(struct handles *t, struct entry *e,
			  void (*fn)(struct handles *t, struct entry *e, uint32_t index))
{
	uint64_t handle;
	uint32_t own = 0;

	while (entry_at(t, own) != e)
		own++;
	handle = handle_of(e, own);
	fn(t, e, own);
	for (uint32_t i = 0; i < t->count; i++) {
		struct entry *child = entry_at(t, i);

		if (child->object != NULL && child->parent == handle)
			fn(t, child, i);
	}
}

/* Let the engine find e no more, or again. */
static void hide(struct handles *t, struct entry *e, uint32_t index)
{
	(void)t, (void)index;
	atomic_store_explicit(&e->name.handle, 0, memory_order_release);
}

static void show(struct handles *t, struct entry *e, uint32_t index)
{
	(void)t;
	atomic_store_explicit(&e->name.handle, handle_of(e, index), memory_order_release);
}

int handle_begin_destroy(struct handles *t, struct entry *e)
{
	bool busy;

	pthread_mutex_lock(&t->lock);
	busy = e->users > 1;
	e->destroyed = !busy;
	if (!busy)
		with_children(t, e, hide);
	pthread_mutex_unlock(&t->lock);
	return busy ? fail(EBUSY, "the %s is in use by another call", names[e->kind]) : 0;
}

/* Forget the object of e.  The caller holds the lock. */
static void forget(struct handles *t, struct entry *e, uint32_t index)
{
	hide(t, e, index);
	tenant_uncount(t->tenant, e);
	t->living -= e->owned;
	if (e->memory != NULL)
		(void)munmap(e->memory, e->memory_bytes);
	e->memory = NULL;
	e->doomed = false;
	e->settled = false;
	e->object = NULL;
	e->parent = 0;
}

void handle_end_destroy(struct handles *t, struct entry *e, bool destroyed)
{
	pthread_mutex_lock(&t->lock);
	e->destroyed = false;
	with_children(t, e, destroyed ? forget : show);
	pthread_mutex_unlock(&t->lock);
}

void handle_doom(struct handles *t, struct entry *e)
{
	pthread_mutex_lock(&t->lock);
	e->doomed = true;
	pthread_mutex_unlock(&t->lock);
}

void *handle_at(struct handles *t, uint32_t i, enum far_kind kind)
{
	void *object = NULL;

	pthread_mutex_lock(&t->lock);
	if (i < t->count && entry_at(t, i)->kind == kind && entry_at(t, i)->owned)
		object = entry_at(t, i)->object;
	pthread_mutex_unlock(&t->lock);
	return object;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* handles.c - the numbers by which a client names its objects; see hald.h.
 *
 * A handle is generation << 32 | kind << 24 | index.  An entry's generation changes with
 * each object, so that the handle of a destroyed object is found to be stale. */
#include "hald.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "util/error.h"

#define ENTRIES_MAX (1u << 20) /* of a client */

static const char *const names[] = {
	[KIND_PARTITION] = "partition", [KIND_BUFFER] = "buffer",
	[KIND_PROGRAM] = "program",     [KIND_KERNEL] = "kernel",
	[KIND_QUEUE] = "queue",         [KIND_SEQUENCE] = "sequence",
	[KIND_COMPLETIONS] = "ring",    [KIND_TIMELINE] = "timeline",
};

void handles_begin(struct handles *t)
{
	*t = (struct handles){.lock = PTHREAD_MUTEX_INITIALIZER};
}

void handles_end(struct handles *t)
{
	for (uint32_t i = 0; i < t->count; i++) {
		(void)pthread_mutex_destroy(&t->entries[i]->lock);
		free(t->entries[i]);
	}
	free((void *)t->entries);
	(void)pthread_mutex_destroy(&t->lock);
}

static uint64_t handle_of(const struct entry *e, uint32_t index)
{
	return (uint64_t)e->generation << 32 | (uint64_t)e->kind << 24 | index;
}

/* Add an unused entry to t.  The caller holds the lock. */
static struct entry *more(struct handles *t)
{
	struct entry **entries;
	struct entry *e;

	if (t->count == ENTRIES_MAX)
		return NULL;
	e = calloc(1, sizeof(*e));
	if (e == NULL)
		return NULL;
	if ((t->count & (t->count - 1)) == 0) {
		size_t room = t->count != 0 ? 2 * (size_t)t->count : 1;

		entries = realloc((void *)t->entries, room * sizeof(void *));
		if (entries == NULL) {
			free(e);
			return NULL;
		}
		t->entries = entries;
	}
	(void)pthread_mutex_init(&e->lock, NULL);
	t->entries[t->count++] = e;
	return e;
}

/* Return the index of object, or of an unused entry; t->count: there is neither.  The
 * caller holds the lock. */
static uint32_t place_of(const struct handles *t, enum kind kind, const void *object)
{
	uint32_t unused = t->count;

	for (uint32_t i = 0; i < t->count; i++) {
		const struct entry *e = t->entries[i];

		if (e->object == object && e->kind == kind)
			return i;
		if (e->object == NULL && e->users == 0)
			unused = i;
	}
	return unused;
}

uint64_t handle_add(struct handles *t, enum kind kind, void *object, bool owned,
		    uint64_t parent)
{
	uint64_t handle = 0;
	struct entry *e;
	uint32_t i;

	pthread_mutex_lock(&t->lock);
	i = place_of(t, kind, object);
	e = i < t->count ? t->entries[i] : more(t);
	if (e != NULL && e->object == NULL) {
		e->object = object;
		e->generation++;
		e->kind = (uint8_t)kind;
		e->owned = owned;
		e->parent = parent;
		t->living += owned;
	}
	if (e != NULL)
		handle = handle_of(e, i);
	pthread_mutex_unlock(&t->lock);
	if (handle == 0)
		(void)fail(ENOMEM, "hald has no memory for another %s", names[kind]);
	return handle;
}

struct entry *handle_hold(struct handles *t, uint64_t handle, enum kind kind)
{
	uint32_t i = handle & 0xffffff;
	struct entry *e = NULL;

	pthread_mutex_lock(&t->lock);
	if (i < t->count && t->entries[i]->object != NULL && !t->entries[i]->destroyed &&
	    t->entries[i]->kind == kind && handle_of(t->entries[i], i) == handle) {
		e = t->entries[i];
		e->users++;
	}
	pthread_mutex_unlock(&t->lock);
	if (e == NULL)
		(void)fail(EINVAL, "the %s does not exist any more", names[kind]);
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

int handle_begin_destroy(struct handles *t, struct entry *e)
{
	bool busy;

	pthread_mutex_lock(&t->lock);
	busy = e->users > 1;
	e->destroyed = !busy;
	pthread_mutex_unlock(&t->lock);
	return busy ? fail(EBUSY, "the %s is in use by another call", names[e->kind]) : 0;
}

/* Forget the object of e.  The caller holds the lock. */
static void forget(struct handles *t, struct entry *e)
{
	t->living -= e->owned;
	if (e->memory != NULL)
		(void)munmap(e->memory, e->memory_bytes);
	e->memory = NULL;
	e->doomed = false;
	e->object = NULL;
	e->parent = 0;
}

void handle_end_destroy(struct handles *t, struct entry *e, bool destroyed)
{
	pthread_mutex_lock(&t->lock);
	e->destroyed = false;
	for (uint32_t i = 0; destroyed && i < t->count; i++)
		if (t->entries[i] == e) {
			uint64_t handle = handle_of(e, i);

			forget(t, e);
			for (uint32_t k = 0; k < t->count; k++)
				if (t->entries[k]->object != NULL &&
				    t->entries[k]->parent == handle)
					forget(t, t->entries[k]);
			break;
		}
	pthread_mutex_unlock(&t->lock);
}

void handle_doom(struct handles *t, struct entry *e)
{
	pthread_mutex_lock(&t->lock);
	e->doomed = true;
	pthread_mutex_unlock(&t->lock);
}

void *handle_at(struct handles *t, uint32_t i, enum kind kind)
{
	void *object = NULL;

	pthread_mutex_lock(&t->lock);
	if (i < t->count && t->entries[i]->kind == kind && t->entries[i]->owned)
		object = t->entries[i]->object;
	pthread_mutex_unlock(&t->lock);
	return object;
}

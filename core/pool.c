/* SPDX-License-Identifier: Apache-2.0 */
/* pool.c - memory behind handles: a destroyed handle is refused, not a crash. */
#include "internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A destroyed object rests until so many others of its kind have been destroyed. */
#define REST 64

struct resting {
	struct object obj; /* keeps its dead magic */
	struct resting *next;
	size_t size;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
	struct resting *first, *last;
	uint32_t count;
} pools[OBJECT_KINDS];

static const char *const kind_names[OBJECT_KINDS] = {
	"device", "partition", "queue", "buffer", "program", "kernel", "timeline",
};

/* The size is kept in front so that resting objects can be compared. */
struct header {
	_Alignas(max_align_t) size_t size;
};

void *object_alloc(enum object_kind kind, size_t size)
{
	struct object *o = NULL;
	struct header *h;

	pthread_mutex_lock(&lock);
	if (pools[kind].count > REST && pools[kind].first->size == size) {
		o = &pools[kind].first->obj;
		pools[kind].first = pools[kind].first->next;
		pools[kind].count--;
	}
	pthread_mutex_unlock(&lock);
	if (o == NULL) {
		h = malloc(sizeof(*h) + size);
		if (h == NULL) {
			fail(ENOMEM, "no memory for a %s of %zu bytes", kind_names[kind],
			     size);
			return NULL;
		}
		h->size = size;
		o = (struct object *)(void *)(h + 1);
	}
	memset(o, 0, size);
	o->magic = OBJECT_MAGIC(kind);
	return o;
}

void object_retire(struct object *o)
{
	o->magic = OBJECT_DEAD;
}

void object_free(enum object_kind kind, void *object)
{
	struct resting *r = object;
	struct header *h = (struct header *)object - 1;

	if (object == NULL)
		return;
	r->obj.magic = OBJECT_DEAD;
	r->next = NULL;
	r->size = h->size;
	pthread_mutex_lock(&lock);
	if (pools[kind].count++ == 0)
		pools[kind].first = r;
	else
		pools[kind].last->next = r;
	pools[kind].last = r;
	pthread_mutex_unlock(&lock);
}

int object_bad(const void *object, enum object_kind kind)
{
	const struct object *o = object;

	if (o == NULL)
		return fail(EINVAL, "the %s is NULL", kind_names[kind]);
	if (o->magic == OBJECT_DEAD)
		return fail(EINVAL, "the %s has been destroyed", kind_names[kind]);
	return fail(EINVAL, "the handle is not a %s", kind_names[kind]);
}

__attribute__((destructor)) static void pools_free(void)
{
	for (int k = 0; k < OBJECT_KINDS; k++) {
		struct resting *r = pools[k].first;

		while (r != NULL) {
			struct resting *next = r->next;

			free((struct header *)(void *)r - 1);
			r = next;
		}
		pools[k].first = NULL;
		pools[k].count = 0;
	}
}

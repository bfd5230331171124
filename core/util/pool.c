/* SPDX-License-Identifier: Apache-2.0 */
/* pool.c - memory behind handles: a destroyed handle is refused, not a crash. */
#include "util/pool.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util/error.h"

/* A destroyed object rests until so many others of its kind have been destroyed. */
#define REST          64

#define OBJECT_DEAD   UINT32_C(0xdead4841)
#define OBJECT_FORKED UINT32_C(0xf0124841)

struct resting {
	struct object obj; /* keeps its dead magic */
	struct resting *next;
};

/* In front of every object: all there ever were of a kind are in a list. */
struct header {
	_Alignas(max_align_t) size_t size;
	struct header *next;
};

/* Guards what is below; nothing else is taken while it is held. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
	struct header *all;
	struct resting *first, *last;
	uint32_t count;
} pools[OBJECT_KINDS];
static pthread_once_t once = PTHREAD_ONCE_INIT;
static void (*on_fork[OBJECT_KINDS])(void *object);
static pid_t parent; /* whose objects the forked ones are */

static const char *const kind_names[OBJECT_KINDS] = {
	"device", "partition", "queue",    "buffer",           "program",
	"kernel", "timeline",  "sequence", "completions ring",
};

static struct object *object_of(struct header *h)
{
	return (struct object *)(void *)(h + 1);
}

static void before_fork(void)
{
	pthread_mutex_lock(&lock);
	parent = getpid();
}

static void in_parent(void)
{
	pthread_mutex_unlock(&lock);
}

void object_forked(struct object *o)
{
	if (o->magic != OBJECT_DEAD)
		o->magic = OBJECT_FORKED;
}

static void in_child(void)
{
	for (int k = 0; k < OBJECT_KINDS; k++)
		for (struct header *h = pools[k].all; h != NULL; h = h->next)
			if (object_of(h)->magic != OBJECT_DEAD) {
				object_forked(object_of(h));
				if (on_fork[k] != NULL)
					on_fork[k](object_of(h));
			}
	pthread_mutex_unlock(&lock);
}

static void watch_forks(void)
{
	(void)pthread_atfork(before_fork, in_parent, in_child);
}

void object_on_fork(enum object_kind kind, void (*fn)(void *object))
{
	pthread_mutex_lock(&lock);
	on_fork[kind] = fn;
	pthread_mutex_unlock(&lock);
}

void *object_alloc(enum object_kind kind, size_t size)
{
	struct object *o = NULL;
	struct header *h;

	(void)pthread_once(&once, watch_forks);
	pthread_mutex_lock(&lock);
	if (pools[kind].count > REST) {
		struct resting *r = pools[kind].first;

		/* Sizes of a kind may differ: another one goes to the end. */
		pools[kind].first = r->next;
		if (((struct header *)(void *)r - 1)->size == size) {
			pools[kind].count--;
			o = &r->obj;
		} else {
			r->next = NULL;
			pools[kind].last->next = r;
			pools[kind].last = r;
		}
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
		o = object_of(h);
		memset(o, 0, size);
		o->magic = OBJECT_DEAD;
		pthread_mutex_lock(&lock);
		h->next = pools[kind].all;
		pools[kind].all = h;
		pthread_mutex_unlock(&lock);
	} else {
		memset(o, 0, size);
	}
	o->magic = OBJECT_MAGIC(kind);
	return o;
}

void object_retire(struct object *o)
{
	__atomic_store_n(&o->magic, OBJECT_DEAD, __ATOMIC_RELAXED);
}

void object_free(enum object_kind kind, void *object)
{
	struct resting *r = object;

	if (object == NULL)
		return;
	object_retire(&r->obj);
	r->next = NULL;
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
	uint32_t magic;

	if (o == NULL)
		return fail(EINVAL, "the %s is NULL", kind_names[kind]);
	magic = __atomic_load_n(&o->magic, __ATOMIC_RELAXED);
	if (magic == OBJECT_DEAD)
		return fail(EINVAL, "the %s has been destroyed", kind_names[kind]);
	if (magic == OBJECT_FORKED)
		return fail(EPERM,
			    "the %s belongs to process %ld, from which this one was "
			    "forked: open the device again here",
			    kind_names[kind], (long)parent);
	return fail(EINVAL, "the handle is not a %s", kind_names[kind]);
}

__attribute__((destructor)) static void pools_free(void)
{
	for (int k = 0; k < OBJECT_KINDS; k++) {
		struct header *h = pools[k].all;
		struct resting *r = pools[k].first;

		/* What is alive, or a child's, may still be used, or be looked for by a
		 * leak checker: only what rests is given back. */
		(void)h;
		while (r != NULL) {
			struct resting *next = r->next;

			free((struct header *)(void *)r - 1);
			r = next;
		}
		pools[k].first = NULL;
		pools[k].count = 0;
		pools[k].all = NULL;
	}
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pool.c - memory of objects behind handles; see pool.h.
 *
 * Each kind of object has one shelf per size, a FIFO of destroyed objects.  A new object
 * reuses the oldest one of its shelf if more than REST objects are on it.
 */
#include "util/pool.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "util/compiler.h"
#include "util/error.h"

/* A destroyed object is reused only after this many others of its kind and size have been
 * destroyed. */
#define REST          64

#define OBJECT_DEAD   UINT32_C(0xdead4841)
#define OBJECT_FORKED UINT32_C(0xf0124841)

/* A destroyed object on a shelf. */
struct resting {
	struct object obj; /* .magic is OBJECT_DEAD */
	struct resting *next;
};

/* The destroyed objects of one kind and size.  There are few sizes, because they depend
 * only on the options and the shape of devices. */
struct shelf {
	struct shelf *next;
	size_t size;
	struct resting *first, *last;
	uint32_t count;
};

/* Precedes every object in memory, which thus begins on a cache line. */
struct header {
	_Alignas(CACHE_LINE) struct shelf *shelf;
	struct header
		*next; /* next in the list of all objects of the kind, dead or alive */
};

/* Guards pools and on_fork.  No other lock is taken while it is held.  A fork waits for
 * it.
 */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
	struct header *all;
	struct shelf *shelves;
} pools[OBJECT_KINDS];
static void (*on_fork[OBJECT_KINDS])(void *object);

static const char *const kind_names[OBJECT_LOCAL_KINDS] = {
	"device", "partition", "queue",    "buffer",           "program",
	"kernel", "timeline",  "sequence", "completions ring", "scan",
};

static struct object *object_of(struct header *h)
{
	return (struct object *)(void *)(h + 1);
}

static void before_fork(void)
{
	pthread_mutex_lock(&lock);
}

static void in_parent(void)
{
	pthread_mutex_unlock(&lock);
}

void object_forked(struct object *o)
{
	/* Destroyed objects stay marked as destroyed in the child. */
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

/* Register the handlers before any thread can hold the lock. */
__attribute__((constructor)) static void watch_forks(void)
{
	(void)pthread_atfork(before_fork, in_parent, in_child);
}

void object_on_fork(enum object_kind kind, void (*fn)(void *object))
{
	pthread_mutex_lock(&lock);
	on_fork[kind] = fn;
	pthread_mutex_unlock(&lock);
}

/* Return the shelf for objects of this size, created if necessary; NULL: no memory.  The
 * caller holds the lock. */
static struct shelf *shelf_of(enum object_kind kind, size_t size)
{
	struct shelf *s = pools[kind].shelves;

	while (s != NULL && s->size != size)
		s = s->next;
	if (s != NULL)
		return s;
	s = calloc(1, sizeof(*s));
	if (s == NULL)
		return NULL;
	s->size = size;
	s->next = pools[kind].shelves;
	pools[kind].shelves = s;
	return s;
}

/* Take the oldest destroyed object of s, if enough others have been destroyed after it;
 * else return NULL.  The caller holds the lock. */
static struct object *take_rested(struct shelf *s)
{
	struct resting *r = s->first;

	if (s->count <= REST)
		return NULL;
	s->first = r->next;
	s->count--;
	return &r->obj;
}

/* Allocate an object, with OBJECT_DEAD for now; NULL: no memory.  The caller holds the
 * lock. */
static struct object *add_new(enum object_kind kind, struct shelf *s)
{
	struct header *h =
		aligned_alloc(CACHE_LINE, (sizeof(*h) + s->size + CACHE_LINE - 1) /
						  CACHE_LINE * CACHE_LINE);

	if (h == NULL)
		return NULL;
	h->shelf = s;
	h->next = pools[kind].all;
	object_of(h)->magic = OBJECT_DEAD;
	pools[kind].all = h;
	return object_of(h);
}

void *object_alloc(enum object_kind kind, size_t size)
{
	struct object *o = NULL;
	struct shelf *s;

	pthread_mutex_lock(&lock);
	s = shelf_of(kind, size);
	if (s != NULL)
		o = take_rested(s);
	if (s != NULL && o == NULL)
		o = add_new(kind, s);
	pthread_mutex_unlock(&lock);
	if (o == NULL) {
		fail(ENOMEM, "no memory for a %s of %zu bytes",
		     kind_names[kind % OBJECT_LOCAL_KINDS], size);
		return NULL;
	}
	memset(o, 0, size);
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
	struct shelf *s;

	(void)kind;
	if (object == NULL)
		return;
	s = ((struct header *)object - 1)->shelf;
	object_retire(&r->obj);
	r->next = NULL;
	pthread_mutex_lock(&lock);
	if (s->count++ == 0)
		s->first = r;
	else
		s->last->next = r;
	s->last = r;
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
			    "the %s was made before a fork, in the parent "
			    "process; open the device again in this process",
			    kind_names[kind]);
	return fail(EINVAL, "the handle is not a %s", kind_names[kind]);
}

/* Free destroyed objects and the shelves.  Live objects stay, because a thread may
 * still use them, and a leak checker should find them.  Objects that this process has
 * inherited by fork stay, too. */
__attribute__((destructor)) static void pools_free(void)
{
	for (int k = 0; k < OBJECT_KINDS; k++) {
		struct shelf *s = pools[k].shelves;

		while (s != NULL) {
			struct shelf *next = s->next;

			while (s->first != NULL) {
				struct resting *r = s->first;

				s->first = r->next;
				free((struct header *)(void *)r - 1);
			}
			free(s);
			s = next;
		}
		pools[k].shelves = NULL;
		pools[k].all = NULL;
	}
}

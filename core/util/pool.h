/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pool.h - handles that stay safe to look at.
 *
 * Memory of destroyed handles is kept until the library is unloaded, and reused only
 * after 64 others of its kind and size were destroyed.  So a destroyed handle is seen and
 * refused.  In a child of fork() all that the parent had is refused, too.
 */
#ifndef HAL_UTIL_POOL_H
#define HAL_UTIL_POOL_H

#include <stddef.h>
#include <stdint.h>

enum object_kind {
	OBJECT_DEVICE,
	OBJECT_PARTITION,
	OBJECT_QUEUE,
	OBJECT_BUFFER,
	OBJECT_PROGRAM,
	OBJECT_KERNEL,
	OBJECT_TIMELINE,
	OBJECT_SEQUENCE,
	OBJECT_COMPLETIONS,
	OBJECT_KINDS,
};

#define OBJECT_MAGIC(kind) (UINT32_C(0x48414c00) + (uint32_t)(kind))

/* First member of everything behind a handle. */
struct object {
	uint32_t magic;
	uint32_t id;
};

/* In a child of fork(), for each of kind there was: beside what is done to all. */
void object_on_fork(enum object_kind kind, void (*fn)(void *object));
/* There, for each handle that lies inside another object. */
void object_forked(struct object *o);
/* All zero but .magic; NULL after fail(ENOMEM). */
void *object_alloc(enum object_kind kind, size_t size);
void object_retire(struct object *o); /* the handle is dead from now on */
void object_free(enum object_kind kind, void *object);
/* -EINVAL with a text that says whether it is NULL, destroyed or something else; -EPERM
 * when it is the parent's. */
int object_bad(const void *object, enum object_kind kind) __attribute__((cold));

/* Others may destroy it meanwhile: a relaxed load, which gcc 12 would not fold into the
 * comparison, were it called one. */
#ifdef __SANITIZE_THREAD__
#define OBJECT_MAGIC_OF(o) __atomic_load_n(&(o)->obj.magic, __ATOMIC_RELAXED)
#else
#define OBJECT_MAGIC_OF(o) ((o)->obj.magic)
#endif
#define OBJECT_OK(o, kind) ((o) != NULL && OBJECT_MAGIC_OF(o) == OBJECT_MAGIC(kind))

#endif

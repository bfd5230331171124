/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pool.h - allocation of the objects behind handles, so that wrong handles are refused
 * instead of crashing the program.
 *
 * Every object begins with a magic number.  Memory of a destroyed object stays allocated
 * until the library is unloaded, and is reused only after 64 others of its kind and size
 * were destroyed.  So the use of a destroyed handle is detected.  A child of fork()
 * cannot use the objects of its parent; this is detected, too.
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
	OBJECT_SCAN,
	OBJECT_LOCAL_KINDS,
	OBJECT_KINDS = 2 * OBJECT_LOCAL_KINDS, /* with OBJECT_FAR of each */
};

/* The kind of objects of devices that another process serves (far/far.h). */
#define OBJECT_FAR(kind)   ((enum object_kind)((kind) + OBJECT_LOCAL_KINDS))

#define OBJECT_MAGIC(kind) (UINT32_C(0x48414c00) + (uint32_t)(kind))

/* First member of every struct that has a handle. */
struct object {
	uint32_t magic;
	uint32_t id;
};

/* Have fn called in a child of fork(), for each object of kind that was alive. */
void object_on_fork(enum object_kind kind, void (*fn)(void *object));
/* Make o unusable in a child of fork().  fn of object_on_fork calls this for each handle
 * that is inside its object. */
void object_forked(struct object *o);
/* Allocate an object of size bytes, all 0 except .magic; NULL after fail(ENOMEM). */
void *object_alloc(enum object_kind kind, size_t size);
/* Make the handle unusable, before the object is freed. */
void object_retire(struct object *o);
void object_free(enum object_kind kind, void *object);
/* Return the error for a handle that OBJECT_OK refuses.  -EINVAL: it is NULL, destroyed
 * or of another kind, as the message says; -EPERM: it is from before a fork. */
int object_bad(const void *object, enum object_kind kind) __attribute__((cold));

/* Another thread may destroy the object concurrently, so this should be a relaxed atomic
 * load.  gcc 12 does not fold such a load into the comparison.  A plain load is the same
 * on the machine, so only the thread sanitizer gets the atomic one. */
#ifdef __SANITIZE_THREAD__
#define OBJECT_MAGIC_OF(o) __atomic_load_n(&(o)->obj.magic, __ATOMIC_RELAXED)
#else
#define OBJECT_MAGIC_OF(o) ((o)->obj.magic)
#endif
/* Return whether o is a live object of kind. */
#define OBJECT_OK(o, kind) ((o) != NULL && OBJECT_MAGIC_OF(o) == OBJECT_MAGIC(kind))
/* Return whether o is a live object of kind of a device that another process serves. */
#define OBJECT_IS_FAR(o, kind) OBJECT_OK(o, OBJECT_FAR(kind))

#endif

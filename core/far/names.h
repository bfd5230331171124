/* SPDX-License-Identifier: Apache-2.0 */
/*
 * names.h - the objects that a program's handles name, as the engine in hald reads them.
 *
 * hald's threads add and take names; the engine finds objects by them without a lock.  A
 * thread that takes a name, to destroy the object, has the engine pass
 * (inlet_pass) before it does.
 */
#ifndef HAL_FAR_NAMES_H
#define HAL_FAR_NAMES_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

/* A handle is generation << 32 | kind << 24 | index. */
enum far_kind {
	KIND_PARTITION = 1,
	KIND_BUFFER,
	KIND_PROGRAM,
	KIND_KERNEL,
	KIND_QUEUE,
	KIND_SEQUENCE,
	KIND_COMPLETIONS,
	KIND_TIMELINE,
};

#define FAR_INDEX(handle) ((uint32_t)(handle)&0xffffff)
#define FAR_KIND(handle)  ((uint32_t)((handle) >> 24) & 0xff)

struct far_name {
	_Atomic uint64_t handle; /* 0: names nothing now */
	void *object;            /* constant while .handle is not 0 */
};

struct far_names {
	atomic_uint count; /* only rises, after .at is large enough */
	_Atomic(struct far_name **) at;
};

/* What a thread has read of names; it does not read them again for each handle. */
struct far_view {
	struct far_name *const *at;
	uint32_t count;
};

static inline struct far_view far_view(const struct far_names *names)
{
	struct far_view v;

	/* In this order: .at has room for as many. */
	v.count = atomic_load_explicit(&names->count, memory_order_acquire);
	v.at = atomic_load_explicit(&names->at, memory_order_acquire);
	return v;
}

/* Return the object of kind that handle names, or NULL. */
static inline void *far_named(const struct far_view *v, uint64_t handle,
			      enum far_kind kind)
{
	uint32_t i = FAR_INDEX(handle);
	const struct far_name *n;

	if (i >= v->count || FAR_KIND(handle) != (uint32_t)kind)
		return NULL;
	n = v->at[i];
	return atomic_load_explicit(&n->handle, memory_order_acquire) == handle
		       ? n->object
		       : NULL;
}

#endif

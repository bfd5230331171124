/* SPDX-License-Identifier: Apache-2.0 */
/* bytes.h - count the memory of a device that a backend has allocated.  Any thread. */
#ifndef BACKENDS_STREAM_BYTES_H
#define BACKENDS_STREAM_BYTES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct stream_bytes {
	uint64_t all; /* constant once the device is open */
	atomic_ullong used;
};

/* Return the bytes that are not in use. */
static inline uint64_t stream_bytes_left(const struct stream_bytes *b)
{
	const uint64_t used = atomic_load_explicit(&b->used, memory_order_relaxed);

	return used < b->all ? b->all - used : 0;
}

/* Count n bytes as used.  Return false, with the bytes that are left in *left, if fewer
 * than n are left. */
static inline bool stream_bytes_take(struct stream_bytes *b, uint64_t n, uint64_t *left)
{
	unsigned long long used = atomic_load(&b->used);

	do {
		*left = used < b->all ? b->all - used : 0;
		if (n > *left)
			return false;
	} while (!atomic_compare_exchange_weak(&b->used, &used, used + n));
	return true;
}

/* Count n bytes as used although fewer may be left: the driver has granted them. */
static inline void stream_bytes_add(struct stream_bytes *b, uint64_t n)
{
	atomic_fetch_add(&b->used, n);
}

/* Undo stream_bytes_take or stream_bytes_add of n bytes. */
static inline void stream_bytes_give(struct stream_bytes *b, uint64_t n)
{
	atomic_fetch_sub(&b->used, n);
}

#endif

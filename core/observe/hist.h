/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hist.h - log-linear histograms: 64 buckets to a power of two, so that what is read from
 * them is at most 1 % off.
 *
 * One thread counts, any may read meanwhile.  The buckets of a power of two are allocated
 * when the first value comes.
 */
#ifndef HAL_OBSERVE_HIST_H
#define HAL_OBSERVE_HIST_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define HIST_SUB   64u
#define HIST_PAGES 59u /* below 64 every value has its own bucket */

struct hist_page {
	_Atomic uint64_t count[HIST_SUB];
};

struct hist {
	_Atomic(struct hist_page *) pages[HIST_PAGES];
};

/* Of no page yet, or out of memory: that value is not counted. */
void hist_count_first(struct hist *h, uint32_t page, uint32_t bucket);

static inline void hist_count(struct hist *h, uint64_t value)
{
	uint32_t page = 0, bucket = (uint32_t)value;
	struct hist_page *p;

	if (value >= HIST_SUB) {
		uint32_t log = 63u ^ (uint32_t)__builtin_clzll(value);

		page = log - 5;
		bucket = (uint32_t)(value >> (log - 6)) & (HIST_SUB - 1);
	}
	p = atomic_load_explicit(&h->pages[page], memory_order_relaxed);
	if (p == NULL) {
		hist_count_first(h, page, bucket);
		return;
	}
	atomic_store_explicit(
		&p->count[bucket],
		atomic_load_explicit(&p->count[bucket], memory_order_relaxed) + 1,
		memory_order_relaxed);
}

void hist_add(struct hist *sum, const struct hist *h);
/* Of both together (either may be NULL): the values below which share[i] per mille
 * (ascending) of all lie; returns how many there are. */
uint64_t hist_percentiles(const struct hist *a, const struct hist *b,
			  const uint32_t *per_mille, size_t n, uint64_t *out);
/* Adds what it has (NULL: nothing) to out: [i] is for 2^i and up, [0] also for 0, the
 * last for all above. */
void hist_powers(const struct hist *h, uint64_t *out, size_t n);
void hist_fini(struct hist *h);

#endif

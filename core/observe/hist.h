/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hist.h - log-linear histograms: 64 buckets per power of two, so that a value read from
 * one is at most 1 % off.
 *
 * One thread counts values, and any thread may read concurrently.  A page, the buckets of
 * one power of two, is allocated for its first value.
 */
#ifndef HAL_OBSERVE_HIST_H
#define HAL_OBSERVE_HIST_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define HIST_SUB   64u /* buckets of a page */
#define HIST_PAGES 59u /* page 0 has one bucket for each value below 64 */

struct hist_page {
	_Atomic uint64_t count[HIST_SUB];
};

struct hist {
	_Atomic(struct hist_page *) pages[HIST_PAGES];
};

/* Count the first value of a page.  Without memory for the page, the value is ignored. */
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

/* Add the counts of h to sum. */
void hist_add(struct hist *sum, const struct hist *h);
/* Store in out[i] the value at per_mille[i] thousandths of the values of a and b
 * together, for each i < n.  per_mille must ascend; a or b may be NULL.  Return the
 * number of values.
 */
uint64_t hist_percentiles(const struct hist *a, const struct hist *b,
			  const uint32_t *per_mille, size_t n, uint64_t *out);
/* Add the counts of h (NULL: none) to out[0..n).  out[i] counts values from 2^i to
 * 2^(i+1); out[0] also counts 0, and the last element all larger values. */
void hist_powers(const struct hist *h, uint64_t *out, size_t n);
/* Return the sum of the values of h (NULL: 0), each taken as the middle of its bucket. */
uint64_t hist_sum(const struct hist *h);
/* Free the pages of h. */
void hist_fini(struct hist *h);

#endif

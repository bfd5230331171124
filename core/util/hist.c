/* SPDX-License-Identifier: Apache-2.0 */
/* hist.c - the rare part of log-linear histograms. */
#include "util/hist.h"

#include <stdlib.h>

static struct hist_page *page_of(struct hist *h, uint32_t page)
{
	struct hist_page *p = atomic_load_explicit(&h->pages[page], memory_order_relaxed);

	if (p != NULL)
		return p;
	p = calloc(1, sizeof(*p));
	atomic_store_explicit(&h->pages[page], p, memory_order_release);
	return p;
}

void hist_count_first(struct hist *h, uint32_t page, uint32_t bucket)
{
	struct hist_page *p = page_of(h, page);

	if (p != NULL)
		atomic_store_explicit(&p->count[bucket], 1, memory_order_relaxed);
}

void hist_add(struct hist *sum, const struct hist *h)
{
	for (uint32_t i = 0; i < HIST_PAGES; i++) {
		const struct hist_page *from =
			atomic_load_explicit(&h->pages[i], memory_order_acquire);
		struct hist_page *to;

		if (from == NULL || (to = page_of(sum, i)) == NULL)
			continue;
		for (uint32_t b = 0; b < HIST_SUB; b++)
			atomic_store_explicit(
				&to->count[b],
				atomic_load_explicit(&to->count[b],
						     memory_order_relaxed) +
					atomic_load_explicit(&from->count[b],
							     memory_order_relaxed),
				memory_order_relaxed);
	}
}

/* The middle of a bucket. */
static uint64_t value_of(uint32_t page, uint32_t bucket)
{
	if (page == 0)
		return bucket;
	return ((uint64_t)(HIST_SUB + bucket) << (page - 1)) +
	       ((UINT64_C(1) << (page - 1)) >> 1);
}

static uint64_t count_at(const struct hist *h, uint32_t i)
{
	const struct hist_page *p =
		h != NULL ? atomic_load_explicit(&h->pages[i / HIST_SUB],
						 memory_order_acquire)
			  : NULL;

	return p != NULL ? atomic_load_explicit(&p->count[i % HIST_SUB],
						memory_order_relaxed)
			 : 0;
}

uint64_t hist_percentiles(const struct hist *a, const struct hist *b,
			  const uint32_t *per_mille, size_t n, uint64_t *out)
{
	uint64_t all = 0, seen = 0;
	size_t next = 0;

	for (uint32_t i = 0; i < HIST_PAGES * HIST_SUB; i++)
		all += count_at(a, i) + count_at(b, i);
	for (size_t i = 0; i < n; i++)
		out[i] = 0;
	for (uint32_t i = 0; i < HIST_PAGES * HIST_SUB && next < n && all > 0; i++) {
		seen += count_at(a, i) + count_at(b, i);
		/* The smallest value that so many are not above: nearest rank. */
		while (next < n &&
		       seen >= (all / 1000) * per_mille[next] +
				       ((all % 1000) * per_mille[next] + 999) / 1000)
			out[next++] = value_of(i / HIST_SUB, i % HIST_SUB);
	}
	return all;
}

void hist_powers(const struct hist *h, uint64_t *out, size_t n)
{
	for (uint32_t i = 0; h != NULL && i < HIST_PAGES * HIST_SUB; i++) {
		size_t power = 63u ^ (size_t)__builtin_clzll(
					     value_of(i / HIST_SUB, i % HIST_SUB) | 1);

		out[power < n ? power : n - 1] += count_at(h, i);
	}
}

void hist_fini(struct hist *h)
{
	for (uint32_t i = 0; i < HIST_PAGES; i++) {
		free(atomic_load_explicit(&h->pages[i], memory_order_relaxed));
		atomic_store_explicit(&h->pages[i], NULL, memory_order_relaxed);
	}
}

/* SPDX-License-Identifier: Apache-2.0 */
/* hist.c - log-linear histograms: all but counting a value, which hist.h does inline. */
#include "observe/hist.h"

#include <stdbool.h>
#include <stdlib.h>

/* Return a page of h, allocated if necessary; NULL: no memory. */
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

/* Return the middle of a bucket's values. */
static uint64_t value_of(uint32_t page, uint32_t bucket)
{
	if (page == 0)
		return bucket;
	return ((uint64_t)(HIST_SUB + bucket) << (page - 1)) +
	       ((UINT64_C(1) << (page - 1)) >> 1);
}

/* A walk over the buckets of two histograms together, in ascending order. */
struct walk {
	const struct hist *of[2]; /* the two histograms; NULL: none */
	uint32_t page, bucket;    /* the next bucket */
};

static const struct hist_page *page_at(const struct hist *h, uint32_t page)
{
	return h != NULL ? atomic_load_explicit(&h->pages[page], memory_order_acquire)
			 : NULL;
}

/* Store the next bucket's value and count; return false after the last bucket.  Skip
 * pages that neither histogram has. */
static bool walk(struct walk *w, uint64_t *value, uint64_t *count)
{
	while (w->page < HIST_PAGES) {
		uint64_t n = 0;

		if (w->bucket == HIST_SUB ||
		    (w->bucket == 0 && page_at(w->of[0], w->page) == NULL &&
		     page_at(w->of[1], w->page) == NULL)) {
			w->page++;
			w->bucket = 0;
			continue;
		}
		for (int i = 0; i < 2; i++) {
			const struct hist_page *p = page_at(w->of[i], w->page);

			if (p != NULL)
				n += atomic_load_explicit(&p->count[w->bucket],
							  memory_order_relaxed);
		}
		*value = value_of(w->page, w->bucket++);
		*count = n;
		return true;
	}
	return false;
}

/* Return per_mille thousandths of all, rounded up: the rank of a percentile by the
 * nearest-rank method. */
static uint64_t rank(uint64_t all, uint32_t per_mille)
{
	return (all / 1000) * per_mille + ((all % 1000) * per_mille + 999) / 1000;
}

uint64_t hist_percentiles(const struct hist *a, const struct hist *b,
			  const uint32_t *per_mille, size_t n, uint64_t *out)
{
	struct walk count = {{a, b}, 0, 0}, find = {{a, b}, 0, 0};
	uint64_t all = 0, seen = 0, value, here;
	size_t next = 0;

	while (walk(&count, &value, &here))
		all += here;
	for (size_t i = 0; i < n; i++)
		out[i] = 0;
	while (all > 0 && next < n && walk(&find, &value, &here)) {
		seen += here;
		while (next < n && seen >= rank(all, per_mille[next]))
			out[next++] = value;
	}
	return all;
}

void hist_powers(const struct hist *h, uint64_t *out, size_t n)
{
	struct walk w = {{h, NULL}, 0, 0};
	uint64_t value, count;

	while (walk(&w, &value, &count)) {
		size_t power = 63u ^ (size_t)__builtin_clzll(value | 1);

		out[power < n ? power : n - 1] += count;
	}
}

uint64_t hist_sum(const struct hist *h)
{
	struct walk w = {{h, NULL}, 0, 0};
	uint64_t value, count, sum = 0;

	while (walk(&w, &value, &count))
		sum += value * count;
	return sum;
}

void hist_fini(struct hist *h)
{
	for (uint32_t i = 0; i < HIST_PAGES; i++) {
		free(atomic_load_explicit(&h->pages[i], memory_order_relaxed));
		atomic_store_explicit(&h->pages[i], NULL, memory_order_relaxed);
	}
}

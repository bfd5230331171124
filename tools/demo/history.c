/* SPDX-License-Identifier: Apache-2.0 */
/* history.c - how much there was of some things, when; see history.h. */
#include "history.h"

#include <stddef.h>
#include <string.h>

#define WIDTH_FIRST 64u

void history_begin(struct history *h, uint64_t now)
{
	memset(h, 0, sizeof(*h));
	h->begin = now;
	h->width = WIDTH_FIRST;
}

static void widen(struct history *h)
{
	for (uint32_t row = 0; row < HISTORY_ROWS; row++) {
		double *a = h->amount[row];

		for (uint32_t i = 0; i < HISTORY_BINS; i++)
			a[i] = i < HISTORY_BINS / 2
				       ? a[(size_t)2 * i] + a[(size_t)2 * i + 1]
				       : 0;
	}
	h->width *= 2;
}

void history_add(struct history *h, uint32_t row, uint64_t from, uint64_t to,
		 double amount)
{
	double rate = to > from ? amount / (double)(to - from) : 0;

	if (from < h->begin)
		from = h->begin;
	if (to <= from)
		return;
	while (to > h->begin + h->width * HISTORY_BINS)
		widen(h);
	while (from < to) {
		uint64_t bin = (from - h->begin) / h->width;
		uint64_t end = h->begin + (bin + 1) * h->width;

		if (end > to)
			end = to;
		h->amount[row][bin] += rate * (double)(end - from);
		from = end;
	}
}

void history_rates(struct history *h, uint64_t end)
{
	for (uint32_t i = 0; i < HISTORY_BINS; i++) {
		uint64_t from = h->begin + i * h->width, length = h->width;

		if (from < end && end - from < length)
			length = end - from;
		for (uint32_t row = 0; row < HISTORY_ROWS; row++)
			h->amount[row][i] /= (double)length;
	}
}

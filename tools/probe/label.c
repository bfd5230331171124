/* SPDX-License-Identifier: Apache-2.0 */
/*
 * label.c - which class a granule is of, by tests with members of the likely ones.
 *
 * Many granules at a time, one question each a round, in random order: a granule that is
 * asked about twice in a row would be answered by a cache.
 */
#include "prober.h"

#include <errno.h>
#include <stdlib.h>

#define ROUND 300u /* tests, at least */

static void normalize(struct job *j, uint32_t classes)
{
	double sum = 0;

	for (uint32_t k = 0; k < classes; k++)
		sum += j->p[k];
	j->label = 0;
	for (uint32_t k = 0; k < classes; k++) {
		j->p[k] = sum > 0 ? j->p[k] / sum : 1.0 / classes;
		if (j->p[k] > j->p[j->label])
			j->label = k;
	}
	j->sure = j->p[j->label];
}

/* The likeliest classes, up to half of what is known, and no more than a test takes. */
static uint32_t choose(const struct prober *p, const struct job *j, bool in[CLASSES])
{
	uint32_t count = 0;
	double sum = 0;

	for (;;) {
		uint32_t best = CLASSES;

		for (uint32_t k = 0; k < p->classes; k++)
			if (!in[k] && (best == CLASSES || j->p[k] > j->p[best]) &&
			    (!count || (sum + j->p[k] <= 0.55 && j->p[k] >= 1e-3)))
				best = k;
		if (best == CLASSES || count == p->set)
			return count;
		in[best] = true;
		sum += j->p[best];
		count++;
	}
}

static void ask(struct prober *p, struct job *j)
{
	uint32_t q[DISCOVER_TOGETHER] = {j->granule}, n = 1, set;
	bool in[CLASSES] = {false}, slow;
	double inside, outside;

	set = choose(p, j, in);
	for (uint32_t k = 0; k < p->classes; k++)
		if (in[k])
			q[n++] = prober_member(p, k, j->granule);
	slow = prober_ask(p, q, n);
	inside = slow ? p->p1[set] : 1 - p->p1[set];
	outside = slow ? p->p0[set] : 1 - p->p0[set];
	for (uint32_t k = 0; k < p->classes; k++)
		j->p[k] *= in[k] ? inside : outside;
	normalize(j, p->classes);
	j->asked++;
}

void prober_label(struct prober *p, struct job *jobs, uint32_t count, double target,
		  uint32_t most)
{
	uint32_t *order = malloc(count * sizeof(*order)), left = count;

	if (!order) {
		p->error = -ENOMEM;
		return;
	}
	for (uint32_t i = 0; i < count; i++) {
		order[i] = i;
		jobs[i].asked = 0;
		jobs[i].done = false;
		normalize(&jobs[i], p->classes);
	}
	while (left && !p->error) {
		uint32_t asked = 0, n = 0;

		for (uint32_t i = left; i > 1; i--) {
			uint32_t o = prober_random(p, i), t = order[i - 1];

			order[i - 1] = order[o];
			order[o] = t;
		}
		for (uint32_t i = 0; i < left; i++) {
			struct job *j = &jobs[order[i]];

			j->done = j->sure >= target || j->asked >= most;
			if (j->done)
				continue;
			ask(p, j);
			asked++;
			order[n++] = order[i];
		}
		left = n;
		if (asked && asked < ROUND)
			prober_fill(p, ROUND - asked);
	}
	free(order);
}

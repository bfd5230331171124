/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shrink.c - of a script that fails, a short one that fails for the same reason.
 *
 * Delta debugging (Zeller, Hildebrandt 2002, ddmin): parts of the list are left out, at
 * first halves, then smaller and smaller ones, as long as what is left still fails; then
 * numbers become 0, or half of what they were.
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "sim.h"

struct trial {
	const char *why;
	uint32_t runs, limit;
	bool twice; /* it is the second time that is different, or wrong */
};

/* Up to the line of the check. */
static bool same_reason(const char *a, const char *b)
{
	const char *end = strstr(a, ": ");
	size_t n = end ? (size_t)(end - a) + 2 : strlen(a);

	return strncmp(a, b, n) == 0;
}

static bool still_fails(struct trial *t, const struct sim_script *s)
{
	struct sim_result r;

	t->runs++;
	sim_run(s, t->twice, false, &r);
	return r.failed && same_reason(t->why, r.why);
}

/* s without so many operations from at on, if that still fails. */
static bool leave_out(struct trial *t, struct sim_script *s, uint32_t at, uint32_t n)
{
	struct sim_script less = *s;

	less.count = s->count - n;
	less.ops = malloc((less.count + 1) * sizeof(*less.ops));
	if (less.ops == NULL)
		return false;
	memcpy(less.ops, s->ops, at * sizeof(*less.ops));
	memcpy(less.ops + at, s->ops + at + n, (less.count - at) * sizeof(*less.ops));
	if (!still_fails(t, &less)) {
		free(less.ops);
		return false;
	}
	free(s->ops);
	*s = less;
	return true;
}

/* True: something was left out. */
static bool shorter(struct trial *t, struct sim_script *s, uint32_t n)
{
	bool any = false;

	for (uint32_t at = s->count; at > 0 && t->runs < t->limit;) {
		uint32_t from = at > n ? at - n : 0;

		any |= leave_out(t, s, from, at - from);
		at = from;
	}
	return any;
}

static bool plainer(struct trial *t, struct sim_script *s)
{
	bool any = false;

	for (uint32_t i = 0; i < s->count; i++)
		for (uint32_t k = 0; k < SIM_PARAMS; k++) {
			uint32_t was = s->ops[i].p[k];

			if (was == 0 || t->runs >= t->limit)
				continue;
			s->ops[i].p[k] = 0;
			if (still_fails(t, s)) {
				any = true;
				continue;
			}
			s->ops[i].p[k] = sim_types[s->ops[i].type].params[k].letters
						 ? was >> 4
						 : was / 2;
			if (s->ops[i].p[k] != 0 && still_fails(t, s))
				any = true;
			else
				s->ops[i].p[k] = was;
		}
	return any;
}

uint32_t script_shrink(struct sim_script *s, const char *why, uint32_t runs)
{
	struct trial t = {why, 0, runs, false};

	t.twice = !still_fails(&t, s);
	do
		for (uint32_t n = s->count / 2; n > 0; n /= 2)
			while (shorter(&t, s, n) && t.runs < t.limit)
				;
	while (plainer(&t, s) && t.runs < t.limit);
	return t.runs;
}

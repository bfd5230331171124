/* SPDX-License-Identifier: Apache-2.0 */
/* known.c - the kernels, programs and pairs of programs of a profile. */
#include "sched/known.h"

#include <stdlib.h>
#include <string.h>

/* ---- profiles ---------------------------------------------------------------------- */

struct profile *profile_make(void)
{
	return calloc(1, sizeof(struct profile));
}

struct known *profile_more(struct profile *p)
{
	struct known *more = realloc(p->kernels, (p->count + 1) * sizeof(*more));

	if (more == NULL)
		return NULL;
	p->kernels = more;
	more += p->count++;
	memset(more, 0, sizeof(*more));
	return more;
}

void profile_free(struct profile *p)
{
	if (p == NULL)
		return;
	free(p->kernels);
	free(p->pairs);
	free(p);
}

void profile_measured(struct known *k, uint32_t runs, uint32_t error_permille,
		      uint64_t bytes)
{
	runs = runs < RUNS_COUNTED ? runs : RUNS_COUNTED;
	k->error_permille = error_permille;
	k->of = runs;
	k->bytes = (double)bytes * runs;
	k->sure.runs = runs;
	k->sure.error = runs * (error_permille / 1000.0);
}

bool profile_add(struct known *k, uint32_t units, uint64_t ns)
{
	for (uint32_t i = 0; i < k->by_count; i++)
		if (k->by[i].units == units)
			return false;
	if (k->by_count == KNOWN_UNITS)
		return false;
	k->by[k->by_count] = (struct by_units){
		.units = units, .plain = true, .ns = (double)ns * k->of, .of = k->of};
	k->alone[k->by_count] = k->by[k->by_count];
	k->by_count++;
	k->by_next = k->by_count % KNOWN_UNITS;
	k->alone_next = k->by_next;
	return true;
}

bool profile_add_stop(struct known *k, uint32_t mode, uint64_t quiet_ns, uint64_t cost_ns)
{
	if (k->stops[mode].known)
		return false;
	k->stops[mode] = (struct stop_cost){true, quiet_ns, cost_ns};
	return true;
}

static bool same_kernel(const struct hal_bk_kernel_info *a,
			const struct hal_bk_kernel_info *b)
{
	return a->work == b->work && a->arg_count == b->arg_count &&
	       strcmp(a->name, b->name) == 0 &&
	       memcmp(a->arg_bytes, b->arg_bytes,
		      a->arg_count * sizeof(a->arg_bytes[0])) == 0;
}

struct known *profile_find(const struct profile *p,
			   const struct hal_bk_kernel_info *kernel)
{
	for (uint32_t i = 0; p != NULL && i < p->count; i++)
		if (same_kernel(&p->kernels[i].kernel, kernel))
			return &p->kernels[i];
	return NULL;
}

uint32_t profile_number(const struct profile *p, const struct known *k)
{
	return k != NULL ? (uint32_t)(k - p->kernels) + 1 : 0;
}

/* ---- pairs of programs ---------------------------------------------------------- */

bool profile_pairs(struct profile *p, uint32_t programs, uint32_t runs)
{
	p->pairs = calloc((size_t)programs * programs, sizeof(*p->pairs));
	if (p->pairs == NULL)
		return false;
	p->programs = programs;
	p->runs = runs < RUNS_COUNTED ? runs : RUNS_COUNTED;
	return true;
}

struct pair *profile_pair(const struct profile *p, uint64_t program, uint64_t other)
{
	return &p->pairs[(program - 1) * p->programs + other - 1];
}

/* Return whether kernels and k[0..known), the kernels of one program, are the same
 * set. */
static bool same_program(const struct known *k, uint32_t known,
			 struct hal_kernel *const *kernels, uint32_t count)
{
	uint32_t i, n;

	for (n = 0; n < count; n++) {
		for (i = 0; i < known && !same_kernel(&k[i].kernel, &kernels[n]->info);)
			i++;
		if (i == known)
			return false;
	}
	for (i = 0; i < known; i++) {
		for (n = 0; n < count && !same_kernel(&k[i].kernel, &kernels[n]->info);)
			n++;
		if (n == count)
			return false;
	}
	return true;
}

uint32_t profile_program(const struct profile *p, struct hal_kernel *const *kernels,
			 uint32_t count)
{
	uint32_t first = 0, last;

	for (; p != NULL && first < p->count; first = last) {
		const struct known *k = &p->kernels[first];

		for (last = first; last < p->count; last++)
			if (p->kernels[last].program != k->program)
				break;
		if (same_program(k, last - first, kernels, count))
			return k->program;
	}
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels of the stand-in, C functions found by the name that a module gives. */
#include "internal.h"

#include <string.h>

#include "tests/fakes/int8.h"

static uint64_t groups_of(const struct call *c)
{
	return (uint64_t)c->groups[0] * c->groups[1] * c->groups[2];
}

static uint64_t items_of(const struct call *c)
{
	return groups_of(c) * c->size[0] * c->size[1] * c->size[2];
}

static uint64_t by_groups(const struct call *c)
{
	return 1000 + 100 * groups_of(c);
}

/* copy, gemm, add, spin, wild: as tests/conformance/conformance.h has them. */

static bool copy_run(const struct call *c)
{
	void *d = memory_at(c->args[0], 4096);
	const void *s = memory_at(c->args[1], 4096);

	if (!d || !s)
		return false;
	memmove(d, s, 4096);
	return true;
}

static bool gemm_run(const struct call *c)
{
	const int8_t *a = memory_at(c->args[1], 1024), *b = memory_at(c->args[2], 1024);
	int8_t *d = memory_at(c->args[0], 1024);

	if (d && a && b)
		fake_gemm(d, a, b);
	return d && a && b;
}

static bool add_run(const struct call *c)
{
	const int8_t *a = memory_at(c->args[1], 1024), *b = memory_at(c->args[2], 1024);
	int8_t *d = memory_at(c->args[0], 1024);

	if (d && a && b)
		fake_add(d, a, b);
	return d && a && b;
}

static bool spin_run(const struct call *c)
{
	uint8_t *d = memory_at(c->args[0], 64);
	int i;

	if (!d)
		return false;
	for (i = 0; i < 64; i++)
		d[i] = (uint8_t)(i * 7 + 1);
	return true;
}

/* Long enough to be running still when somebody with a real clock looks. */
static uint64_t spin_ns(const struct call *c)
{
	(void)c;
	return 20000000;
}

static bool wild_run(const struct call *c)
{
	uint8_t *d = memory_at(c->args[0] + (UINT64_C(1) << 40), 1);

	if (!d)
		return false;
	*d = 0;
	return true;
}

/* iota(D, base): one work item an element, no more: D[i] = base + i. */
static bool iota_run(const struct call *c)
{
	uint64_t n = items_of(c), i;
	uint32_t *d = memory_at(c->args[0], n * 4);

	if (!d)
		return false;
	for (i = 0; i < n; i++)
		d[i] = (uint32_t)c->args[1] + (uint32_t)i;
	return true;
}

/* work(D, ns): takes that long on a tile of its own, then adds 1 to D[0]. */
static bool work_run(const struct call *c)
{
	uint32_t *d = memory_at(c->args[0], 4);

	if (!d)
		return false;
	*d += 1;
	return true;
}

static uint64_t work_ns(const struct call *c)
{
	return c->args[1];
}

/* peek(D, address): D[0] = what lies there, if the driver has been told that this is
 * done. */
static bool peek_run(const struct call *c)
{
	uint32_t *d = memory_at(c->args[0], 4);
	const uint32_t *s = memory_at(c->args[1], 4);

	if (!d || !s || !c->indirect)
		return false;
	*d = *s;
	return true;
}

/* never(D): does not end. */
static uint64_t never_ns(const struct call *c)
{
	(void)c;
	return NEVER;
}

/* twice(D, S), slow(D): as tests/negative/negative.h has them. */
static bool twice_run(const struct call *c)
{
	uint8_t *d = memory_at(c->args[0], 64);
	const uint8_t *s = memory_at(c->args[1], 64);
	int i;

	if (!d || !s)
		return false;
	for (i = 0; i < 64; i++)
		d[i] = (uint8_t)(2 * s[i]);
	return true;
}

static uint64_t slow_ns(const struct call *c)
{
	(void)c;
	return 1000000;
}

static const struct kernel_spec specs[] = {
	{"copy", 2, {8, 8}, copy_run, by_groups},
	{"gemm", 3, {8, 8, 8}, gemm_run, by_groups},
	{"add", 3, {8, 8, 8}, add_run, by_groups},
	{"spin", 1, {8}, spin_run, spin_ns},
	{"wild", 1, {8}, wild_run, by_groups},
	{"iota", 2, {8, 4}, iota_run, by_groups},
	{"work", 2, {8, 8}, work_run, work_ns},
	{"peek", 2, {8, 8}, peek_run, by_groups},
	{"never", 1, {8}, spin_run, never_ns},
	{"twice", 2, {8, 8}, twice_run, by_groups},
	{"slow", 1, {8}, spin_run, slow_ns},
	{"bad", 1, {8}, wild_run, by_groups},
};

const struct kernel_spec *kernel_find(const char *name)
{
	size_t i;

	for (i = 0; i < sizeof(specs) / sizeof(specs[0]); i++)
		if (strcmp(specs[i].name, name) == 0)
			return &specs[i];
	return NULL;
}

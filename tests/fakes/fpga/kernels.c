/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels of the stand-in: C functions that do what a compute unit does, by its name. */
#include "internal.h"

#include <string.h>

#include "tests/fakes/int8.h"

static uint64_t short_ns(const struct call *c)
{
	(void)c;
	return 2000;
}

static void *arg_at(const struct call *c, uint32_t i, uint64_t bytes)
{
	return memory_at(c->card, c->args[i], bytes);
}

/* copy, gemm, add, spin, wild: as tests/conformance/conformance.h has them. */

static bool copy_run(const struct call *c)
{
	void *d = arg_at(c, 0, 4096);
	const void *s = arg_at(c, 1, 4096);

	if (d && s)
		memmove(d, s, 4096);
	return d && s;
}

static bool gemm_run(const struct call *c)
{
	int8_t *d = arg_at(c, 0, 1024);
	const int8_t *a = arg_at(c, 1, 1024), *b = arg_at(c, 2, 1024);

	if (d && a && b)
		fake_gemm(d, a, b);
	return d && a && b;
}

static bool add_run(const struct call *c)
{
	int8_t *d = arg_at(c, 0, 1024);
	const int8_t *a = arg_at(c, 1, 1024), *b = arg_at(c, 2, 1024);

	if (d && a && b)
		fake_add(d, a, b);
	return d && a && b;
}

static bool spin_run(const struct call *c)
{
	uint8_t *d = arg_at(c, 0, 64);
	uint32_t i;

	for (i = 0; d && i < 64; i++)
		d[i] = (uint8_t)(i * 7 + 1);
	return d != NULL;
}

/* Long enough to be running still when somebody with a real clock looks. */
static uint64_t spin_ns(const struct call *c)
{
	(void)c;
	return 2000000;
}

static bool wild_run(const struct call *c)
{
	return memory_at(c->card, c->args[0] + (UINT64_C(1) << 45), 1) != NULL;
}

/* work(D, ns): takes that long, then adds 1 to D[0].  stream is the same, and is slower
 * where others use its banks. */
static bool work_run(const struct call *c)
{
	uint32_t *d = arg_at(c, 0, 4);

	if (d)
		++*d;
	return d != NULL;
}

static uint64_t work_ns(const struct call *c)
{
	return c->args[1];
}

/* never(D): does not end. */
static uint64_t never_ns(const struct call *c)
{
	(void)c;
	return NEVER;
}

/* numbers(D, char, short, int, ulong, float, double): as they came, 8 bytes each. */
static bool numbers_run(const struct call *c)
{
	uint64_t *d = arg_at(c, 0, 48);

	if (d)
		memcpy(d, &c->args[1], 48);
	return d != NULL;
}

/* groups(D, x, y, z): D[0] to D[2]. */
static bool groups_run(const struct call *c)
{
	uint32_t *d = arg_at(c, 0, 12), i;

	for (i = 0; d && i < 3; i++)
		d[i] = (uint32_t)c->args[1 + i];
	return d != NULL;
}

/* twice(D, S), slow(D), bad(D): as tests/negative/negative.h has them. */
static bool twice_run(const struct call *c)
{
	const uint8_t *s = arg_at(c, 1, 64);
	uint8_t *d = arg_at(c, 0, 64);
	uint32_t i;

	for (i = 0; d && s && i < 64; i++)
		d[i] = (uint8_t)(2 * s[i]);
	return d && s;
}

static uint64_t slow_ns(const struct call *c)
{
	(void)c;
	return 1000000;
}

static const struct kernel_spec specs[] = {
	{"copy", copy_run, short_ns, false},
	{"gemm", gemm_run, short_ns, false},
	{"add", add_run, short_ns, false},
	{"spin", spin_run, spin_ns, false},
	{"wild", wild_run, short_ns, false},
	{"work", work_run, work_ns, false},
	{"stream", work_run, work_ns, true},
	{"never", spin_run, never_ns, false},
	{"numbers", numbers_run, short_ns, false},
	{"groups", groups_run, short_ns, false},
	{"twice", twice_run, short_ns, false},
	{"slow", spin_run, slow_ns, false},
	{"bad", wild_run, short_ns, false},
	{"npu", npu_run, npu_ns, false},
};

const struct kernel_spec *kernel_find(const char *name)
{
	size_t i;

	for (i = 0; i < sizeof(specs) / sizeof(specs[0]); i++)
		if (strcmp(specs[i].name, name) == 0)
			return &specs[i];
	return NULL;
}

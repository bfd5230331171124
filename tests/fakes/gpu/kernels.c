/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels of the stand-ins: C functions that run a block, found by their names in PTX or
 * code objects. */
#include "world.h"

#include <string.h>

#include "tests/fakes/int8.h"

static uint64_t short_ns(const struct call *c)
{
	(void)c;
	return 2000;
}

/* copy, gemm, add, spin, wild: as tests/conformance/conformance.h has them; a block does
 * all of it, whichever it is. */

static bool copy_block(const struct call *c, uint32_t index)
{
	void *d = memory_at(c->args[0], 4096);
	const void *s = memory_at(c->args[1], 4096);

	(void)index;
	if (!d || !s)
		return false;
	memmove(d, s, 4096);
	return true;
}

static bool gemm_block(const struct call *c, uint32_t index)
{
	const int8_t *a = memory_at(c->args[1], 1024), *b = memory_at(c->args[2], 1024);
	int8_t *d = memory_at(c->args[0], 1024);

	(void)index;
	if (a && b && d)
		fake_gemm(d, a, b);
	return a && b && d;
}

static bool add_block(const struct call *c, uint32_t index)
{
	const int8_t *a = memory_at(c->args[1], 1024), *b = memory_at(c->args[2], 1024);
	int8_t *d = memory_at(c->args[0], 1024);

	(void)index;
	if (a && b && d)
		fake_add(d, a, b);
	return a && b && d;
}

static bool spin_block(const struct call *c, uint32_t index)
{
	uint8_t *d = memory_at(c->args[0], 64);
	uint32_t i;

	(void)index;
	for (i = 0; d && i < 64; i++)
		d[i] = (uint8_t)(i * 7 + 1);
	return d != NULL;
}

/* Long enough to be running still when somebody with a real clock looks. */
static uint64_t spin_ns(const struct call *c)
{
	(void)c;
	return 20000000;
}

static bool wild_block(const struct call *c, uint32_t index)
{
	(void)index;
	return memory_at(c->args[0] + (UINT64_C(1) << 40), 1) != NULL;
}

/* iota(D, base): an element a thread, so many as there are: D[i] = base + i.  In two
 * steps: what is seen while it runs is half of it. */
static bool iota_block(const struct call *c, uint32_t index)
{
	const uint32_t threads = c->block[0] * c->block[1] * c->block[2];
	uint32_t *d = memory_at(c->args[0] + UINT64_C(4) * index * threads,
				UINT64_C(4) * threads);
	uint32_t i;

	for (i = c->step; d && i < threads; i += c->spec->steps)
		d[i] = (uint32_t)c->args[1] + index * threads + i;
	return d != NULL;
}

/* last(D): D[0] = the block that wrote last, and 1. */
static bool last_block(const struct call *c, uint32_t index)
{
	uint32_t *d = memory_at(c->args[0], 4);

	if (d)
		*d = index + 1;
	return d != NULL;
}

/* args(D, ...): D[i], of 8 bytes = the argument that is i behind it. */
static bool args_block(const struct call *c, uint32_t index)
{
	uint64_t *d = memory_at(c->args[0], UINT64_C(8) * (c->arg_count - 1));

	(void)index;
	if (d)
		memcpy(d, c->args + 1, sizeof(*d) * (c->arg_count - 1));
	return d != NULL;
}

/* work(D, ns): takes that long, then adds 1 to D[0]. */
static bool work_block(const struct call *c, uint32_t index)
{
	uint32_t *d = memory_at(c->args[0], 4);

	(void)index;
	if (d)
		(*d)++;
	return d != NULL;
}

static uint64_t work_ns(const struct call *c)
{
	return c->args[1];
}

/* twin(D, ns), astray(D, ns): work, but what they tell of blocks that were stopped is not
 * so. */
static uint32_t twin_number(uint32_t number)
{
	return number / 2;
}

static uint32_t astray_number(uint32_t number)
{
	return number + 1;
}

/* never(D): does not end. */
static uint64_t never_ns(const struct call *c)
{
	(void)c;
	return NEVER;
}

/* twice(D, S), slow(D), bad(D): as tests/negative/negative.h has them. */
static bool twice_block(const struct call *c, uint32_t index)
{
	const uint8_t *s = memory_at(c->args[1], 64);
	uint8_t *d = memory_at(c->args[0], 64);
	uint32_t i;

	(void)index;
	for (i = 0; d && s && i < 64; i++)
		d[i] = (uint8_t)(2 * s[i]);
	return d && s;
}

static uint64_t slow_ns(const struct call *c)
{
	(void)c;
	return 1000000;
}

/* The number of the unit that a block is on, as its registers have it.  Of a device that
 * pretends: one that its launch may use, on whichever it is. */
static uint32_t unit_number(void)
{
	const struct job *j = world.job_now;
	uint32_t allowed[UNITS_MAX], i, n = 0;

	for (i = 0; world.pretends && i < world.device_now->units; i++)
		if (!j->off[i] && (!j->stream->only || j->stream->only[i]))
			allowed[n++] = i;
	return n ? allowed[world.unit_now % n] : world.unit_now;
}

/* hal_sm(D): the unit of each block, and 1.  Units are numbered as on a device. */
static bool sm_block(const struct call *c, uint32_t index)
{
	uint32_t *d = memory_at(c->args[0] + UINT64_C(4) * index, 4);

	if (d)
		*d = unit_number() + 1;
	return d != NULL;
}

/* hal_where(D): where each block is, by the device's registers, and 1. */
static bool place_block(const struct call *c, uint32_t index)
{
	uint32_t *d = memory_at(c->args[0] + UINT64_C(4) * index, 4);

	if (d)
		*d = 1 + (face.place ? face.place(world.device_now, world.unit_now)
				     : world.unit_now);
	return d != NULL;
}

/* hal_fill(D, words, two words), hal_copy(D, S, bytes): those of an HSA queue, all of it
 * by the first block. */
static bool words_block(const struct call *c, uint32_t index)
{
	uint32_t *d = memory_at(c->args[0], 4 * c->args[1]);
	uint64_t i;

	for (i = 0; d && !index && i < c->args[1]; i++)
		d[i] = (uint32_t)(c->args[2] >> 32 * (i & 1));
	return d != NULL;
}

static bool bytes_block(const struct call *c, uint32_t index)
{
	void *d = memory_at(c->args[0], c->args[2]);
	const void *s = memory_at(c->args[1], c->args[2]);

	if (d && s && !index)
		memmove(d, s, c->args[2]);
	return d && s;
}

static uint64_t bytes_ns(const struct call *c)
{
	return 1000 + c->args[2] / 16;
}

/* The kernels of the examples (examples/gpu_kernels.cu). */

/* Elements of an array of n that are the block's: the first, and how many. */
static uint32_t own(const struct call *c, uint32_t index, uint32_t n, uint32_t *first)
{
	*first = index * c->block[0];
	if (*first >= n)
		return 0;
	return n - *first < c->block[0] ? n - *first : c->block[0];
}

static bool vector_add_block(const struct call *c, uint32_t index)
{
	uint32_t i, first, count = own(c, index, (uint32_t)c->args[3], &first);
	const uint64_t at = UINT64_C(4) * first, bytes = UINT64_C(4) * count;
	const float *a = memory_at(c->args[1] + at, bytes),
		    *b = memory_at(c->args[2] + at, bytes);
	float *d = memory_at(c->args[0] + at, bytes);

	for (i = 0; a && b && d && i < count; i++)
		d[i] = a[i] + b[i];
	return !count || (a && b && d);
}

static bool product_block(const struct call *c, uint32_t index)
{
	const uint32_t n = (uint32_t)c->args[3];
	const uint64_t bytes = UINT64_C(4) * n * n;
	const float *a = memory_at(c->args[1], bytes), *b = memory_at(c->args[2], bytes);
	uint32_t i, k, first, count = own(c, index, n * n, &first);
	float *d = memory_at(c->args[0], bytes);

	for (i = first; a && b && d && i < first + count; i++) {
		float sum = 0;

		for (k = 0; k < n; k++)
			sum += a[i / n * n + k] * b[k * n + i % n];
		d[i] = sum;
	}
	return a && b && d;
}

static bool long_one_block(const struct call *c, uint32_t index)
{
	uint32_t *d = memory_at(c->args[0] + UINT64_C(4) * index, 4);

	if (d)
		++*d;
	return d != NULL;
}

static uint64_t long_one_ns(const struct call *c)
{
	return 10 * c->args[1];
}

static bool where_block(const struct call *c, uint32_t index)
{
	uint32_t *d = memory_at(c->args[0] + UINT64_C(4) * index, 4);

	if (d)
		*d = unit_number();
	return d != NULL;
}

/* NOLINTNEXTLINE(bugprone-macro-parentheses): names of functions are made of it. */
#define SPEC(name, does, ns)                                                             \
	{                                                                                \
#name, does##_block, ns##_ns, 0, NULL, NULL                              \
	}
static const struct kernel_spec specs[] = {
	SPEC(hal_sm, sm, short),
	{"hal_where", place_block, short_ns, 0, NULL, NULL},
	{"hal_fill", words_block, short_ns, 0, NULL, NULL},
	{"hal_copy", bytes_block, bytes_ns, 0, NULL, NULL},
	SPEC(copy, copy, short),
	SPEC(gemm, gemm, short),
	SPEC(add, add, short),
	SPEC(spin, spin, spin),
	SPEC(wild, wild, short),
	{"iota", iota_block, short_ns, 2, NULL, NULL},
	SPEC(work, work, work),
	{"twin", work_block, work_ns, 0, NULL, twin_number},
	{"astray", work_block, work_ns, 0, NULL, astray_number},
	SPEC(never, spin, never),
	SPEC(twice, twice, short),
	SPEC(slow, spin, slow),
	SPEC(bad, wild, short),
	SPEC(last, last, short),
	SPEC(args, args, short),
	{"vector_add", vector_add_block, short_ns, 0, "mmm4", NULL},
	{"product", product_block, short_ns, 0, "mmm4", NULL},
	{"long_one", long_one_block, long_one_ns, 0, "m8", NULL},
	SPEC(where, where, short),
};

const struct kernel_spec *kernel_find(const char *name)
{
	size_t i;

	for (i = 0; i < sizeof(specs) / sizeof(specs[0]); i++)
		if (strcmp(specs[i].name, name) == 0)
			return &specs[i];
	return NULL;
}

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

/* A byte each step; long enough to be running still when somebody with a real clock
 * looks.  Stopped between steps it writes how many there were, and the bytes. */
#define SPIN_STEPS   64u
#define SPIN_STEP_NS 31250u
#define SPIN_MAGIC   0x6e697073u

struct spin {
	uint32_t magic, steps;
	uint8_t bytes[SPIN_STEPS];
};

static struct spin spin_of(const struct call *c)
{
	struct spin s;

	memcpy(&s, c->inside, sizeof(s));
	return s;
}

static void spin_on(struct spin *s, uint64_t steps)
{
	s->magic = SPIN_MAGIC;
	for (; s->steps < SPIN_STEPS && steps; steps--, s->steps++)
		s->bytes[s->steps] = (uint8_t)(s->steps * 7 + 1);
}

static bool spin_begin(struct call *c)
{
	const void *state;

	_Static_assert(sizeof(struct spin) <= sizeof(c->inside), "it has room");
	memset(c->inside, 0, sizeof(c->inside));
	if (!c->state || !c->args[c->state + 1])
		return true;
	state = arg_at(c, c->state, sizeof(struct spin));
	if (state)
		memcpy(c->inside, state, sizeof(struct spin));
	return state && spin_of(c).magic == SPIN_MAGIC && spin_of(c).steps < SPIN_STEPS;
}

static bool spin_stop(struct call *c, uint64_t ran_ns)
{
	void *state = arg_at(c, c->state, sizeof(struct spin));
	struct spin s = spin_of(c);

	spin_on(&s, ran_ns / SPIN_STEP_NS);
	if (state)
		memcpy(state, &s, sizeof(s));
	return state != NULL;
}

static bool spin_run(const struct call *c)
{
	uint8_t *d = arg_at(c, 0, SPIN_STEPS);
	struct spin s = spin_of(c);

	spin_on(&s, SPIN_STEPS);
	if (d)
		memcpy(d, s.bytes, sizeof(s.bytes));
	return d != NULL;
}

static uint64_t spin_ns(const struct call *c)
{
	return (uint64_t)(SPIN_STEPS - spin_of(c).steps) * SPIN_STEP_NS;
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

/* deaf(D): 100 ms, and looks at no register.  liar(D): answers what nobody does. */
static uint64_t deaf_ns(const struct call *c)
{
	(void)c;
	return 100000000;
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
	{.name = "copy", .run = copy_run, .ns = short_ns},
	{.name = "gemm", .run = gemm_run, .ns = short_ns},
	{.name = "add", .run = add_run, .ns = short_ns},
	{.name = "spin",
	 .run = spin_run,
	 .ns = spin_ns,
	 .step_ns = SPIN_STEP_NS,
	 .begin = spin_begin,
	 .stop = spin_stop},
	{.name = "deaf", .run = spin_run, .ns = deaf_ns},
	{.name = "liar", .run = spin_run, .ns = deaf_ns, .answers = UINT32_MAX},
	{.name = "wild", .run = wild_run, .ns = short_ns},
	{.name = "work", .run = work_run, .ns = work_ns},
	{.name = "stream", .run = work_run, .ns = work_ns, .by_memory = true},
	{.name = "never", .run = spin_run, .ns = never_ns},
	{.name = "numbers", .run = numbers_run, .ns = short_ns},
	{.name = "groups", .run = groups_run, .ns = short_ns},
	{.name = "twice", .run = twice_run, .ns = short_ns},
	{.name = "slow", .run = spin_run, .ns = slow_ns},
	{.name = "bad", .run = wild_run, .ns = short_ns},
	{.name = "npu", .run = npu_run, .ns = npu_ns},
};

const struct kernel_spec *kernel_find(const char *name)
{
	size_t i;

	for (i = 0; i < sizeof(specs) / sizeof(specs[0]); i++)
		if (strcmp(specs[i].name, name) == 0)
			return &specs[i];
	return NULL;
}

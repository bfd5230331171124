/* SPDX-License-Identifier: Apache-2.0 */
/* test_npuc_plan.c - what lives at the same time never overlaps: random lives, and random
 * graphs as the compiler places them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "npuc.h"
#include "plan.h"
#include "tiny.h"

#define ITEMS 40
#define STEPS 30

/* xorshift64*; Vigna, "An experimental exploration of Marsaglia's xorshift generators" */
static uint64_t rng;

static uint32_t draw(uint32_t below)
{
	rng ^= rng >> 12;
	rng ^= rng << 25;
	rng ^= rng >> 27;
	return (uint32_t)((rng * UINT64_C(2685821657736338717) >> 33) % below);
}

static bool apart(uint64_t a, uint64_t a_bytes, uint64_t b, uint64_t b_bytes)
{
	return a + a_bytes <= b || b + b_bytes <= a;
}

static void check_lives(uint64_t seed)
{
	struct plan_item items[ITEMS];
	uint32_t count = 1 + draw(ITEMS);
	uint64_t peak, end = 0, busiest = 0, sum = 0;

	for (uint32_t i = 0; i < count; i++) {
		items[i] =
			(struct plan_item){.bytes = 1 + draw(5000), .first = draw(STEPS)};
		items[i].last = items[i].first + draw(STEPS - items[i].first);
	}
	assert_int_equal(npuc_plan(items, count, &peak), 0);
	for (uint32_t i = 0; i < count; i++) {
		const struct plan_item *a = &items[i];

		assert_int_equal(a->offset % NPUC_ALIGN, 0);
		if (a->offset + a->bytes > end)
			end = a->offset + a->bytes;
		sum += a->bytes + NPUC_ALIGN;
		for (uint32_t k = 0; k < i; k++) {
			const struct plan_item *b = &items[k];

			if (a->first <= b->last && b->first <= a->last &&
			    !apart(a->offset, a->bytes, b->offset, b->bytes))
				fail_msg("seed %llu: items %u and %u overlap",
					 (unsigned long long)seed, i, k);
		}
	}
	for (uint32_t step = 0; step < STEPS; step++) {
		uint64_t now = 0;

		for (uint32_t i = 0; i < count; i++)
			if (items[i].first <= step && step <= items[i].last)
				now += items[i].bytes;
		busiest = now > busiest ? now : busiest;
	}
	assert_int_equal(peak, end);
	assert_true(peak >= busiest && peak <= sum);
}

static void test_lives(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 3000; seed++) {
		rng = seed * UINT64_C(0x9e3779b97f4a7c15) | 1;
		check_lives(seed);
	}
}

/* A chain needs two buffers at a time, not all of them. */
static void test_chain(void **state)
{
	struct plan_item items[8];
	uint64_t peak;

	(void)state;
	for (uint32_t i = 0; i < 8; i++)
		items[i] = (struct plan_item){1024, i, i + 1, 0};
	assert_int_equal(npuc_plan(items, 8, &peak), 0);
	assert_int_equal(peak, 2048);
}

/* ---- graphs ----------------------------------------------------------------------- */

/* From the order in which layers run: when each root is made and last used, and that
 * nothing is used before it is made. */
static void find_lives(const struct tiny_graph *g, const struct npuc_program *p,
		       uint32_t made[TINY_TENSORS], uint32_t used[TINY_TENSORS])
{
	memset(made, 0, TINY_TENSORS * sizeof(*made));
	for (uint32_t i = 0; i < TINY_GRAPH_OPS; i++)
		if (g->m.ops[i].code != TINY_RESHAPE)
			made[i + 1] = used[i + 1] = p->layers[i].position;
	for (uint32_t i = 0; i < TINY_GRAPH_OPS; i++) {
		const struct tiny_op *op = &g->m.ops[i];
		uint32_t now = p->layers[i].position;

		for (uint32_t k = 0; op->code != TINY_RESHAPE && k < op->input_count;
		     k++) {
			uint32_t root = g->root[op->inputs[k]];

			assert_true(!root || made[root] < now);
			if (now > used[root])
				used[root] = now;
		}
	}
}

static void check_places(const struct tiny_graph *g, const struct npuc_program *p,
			 bool keep, uint64_t seed)
{
	uint32_t made[TINY_TENSORS], used[TINY_TENSORS] = {0};

	find_lives(g, p, made, used);
	for (uint32_t i = 0; i <= TINY_GRAPH_OPS; i++) {
		const struct npuc_place *a = &p->places[i];

		if (a->where == NPUC_ARENA)
			assert_true(a->offset + a->bytes <= p->arena_bytes);
		for (uint32_t k = 0; k < i; k++) {
			const struct npuc_place *b = &p->places[k];
			uint32_t x = g->root[i], y = g->root[k];

			if (a->where != b->where || x == y)
				continue;
			if (a->where == NPUC_ARENA && !keep &&
			    (made[x] > used[y] || made[y] > used[x]))
				continue;
			if (!apart(a->offset, a->bytes, b->offset, b->bytes))
				fail_msg("seed %llu: t%u and t%u overlap",
					 (unsigned long long)seed, i, k);
		}
	}
}

static void test_graphs(void **state)
{
	static uint8_t file[65536];
	static struct tiny_graph g;
	uint32_t compiled = 0, reordered = 0;

	(void)state;
	for (uint64_t seed = 1; seed <= 400; seed++) {
		struct npuc_model *m;
		char why[NPUC_WHY];
		size_t size;

		tiny_graph(&g, seed, true);
		size = tiny_write(&g.m, file, sizeof(file));
		assert_int_not_equal(size, 0);
		if (npuc_model_parse(file, size, "graph", &m, why))
			fail_msg("seed %llu: %s", (unsigned long long)seed, why);
		for (int keep = 0; keep < 2; keep++) {
			struct npuc_options o = {.keep = keep};
			struct npuc_program p;

			if (npuc_compile(m, &o, &p, why))
				fail_msg("seed %llu: %s", (unsigned long long)seed, why);
			assert_true(p.arena_arg == (keep != 0));
			check_places(&g, &p, keep, seed);
			for (uint32_t i = 1, last = 0; i < p.layer_count; i++) {
				if (g.m.ops[i].code == TINY_RESHAPE)
					continue;
				reordered += p.layers[i].position < last;
				last = p.layers[i].position;
			}
			npuc_program_free(&p);
			compiled++;
		}
		npuc_model_free(m);
	}
	assert_int_equal(compiled, 800);
	assert_true(reordered > 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lives),
		cmocka_unit_test(test_chain),
		cmocka_unit_test(test_graphs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

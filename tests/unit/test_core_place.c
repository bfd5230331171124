/* SPDX-License-Identifier: Apache-2.0 */
/* Placing against a plain list of rectangles: the same rectangle, whatever came before.
 */
#include "space/place.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { HOLDERS = 200 };

struct holder {
	bool used;
	struct place_rect at, moving; /* moving: rows > 0 while it does */
};

struct grid {
	struct place place;
	uint32_t rows, cols;
	struct holder holders[HOLDERS];
	uint32_t count; /* of holders that may exist */
	uint64_t random, seed;
	uint32_t step, busy; /* busy: percent of steps that take rather than give */
};

#define CHECK(g, cond)                                                                   \
	do {                                                                             \
		if (!(cond))                                                             \
			fail_msg("%u x %u, seed %llu, step %u: %s", (g)->rows,           \
				 (g)->cols, (unsigned long long)(g)->seed, (g)->step,    \
				 #cond);                                                 \
	} while (0)

static uint32_t pick(struct grid *g, uint32_t from, uint32_t to)
{
	uint64_t z = g->random += 0x9e3779b97f4a7c15U;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9U;
	z = (z ^ z >> 27) * 0x94d049bb133111ebU;
	return from + (uint32_t)((z ^ z >> 31) % ((uint64_t)to - from + 1));
}

/* ---- the plain list --------------------------------------------------------------- */

static bool meets(const struct place_rect *a, const struct place_rect *b)
{
	return a->rows > 0 && b->rows > 0 && a->row < b->row + b->rows &&
	       b->row < a->row + a->rows && a->col < b->col + b->cols &&
	       b->col < a->col + a->cols;
}

/* What is in the way of r, or NULL. */
static const struct place_rect *blocker(const struct grid *g, const struct place_rect *r,
					const struct holder *except)
{
	for (int i = 0; i < HOLDERS; i++) {
		const struct holder *h = &g->holders[i];

		if (!h->used || h == except)
			continue;
		if (meets(r, &h->at))
			return &h->at;
		if (meets(r, &h->moving))
			return &h->moving;
	}
	return NULL;
}

static bool list_place(const struct grid *g, struct place_rect *r,
		       const struct holder *except)
{
	for (r->row = 0; r->row + r->rows <= g->rows; r->row++) {
		r->col = 0;
		while (r->col + r->cols <= g->cols) {
			const struct place_rect *b = blocker(g, r, except);

			if (b == NULL)
				return true;
			r->col = b->col + b->cols;
		}
	}
	return false;
}

/* Held units of the grid above and left of each corner. */
static uint32_t sums[256][1024];

static void list_sums(const struct grid *g, const struct holder *except)
{
	static uint8_t held[256][1024];

	memset(held, 0, sizeof(held));
	for (int i = 0; i < HOLDERS; i++) {
		const struct holder *h = &g->holders[i];
		const struct place_rect *both[] = {&h->at, &h->moving};

		for (int k = 0; k < 2 && h->used && h != except; k++)
			for (uint32_t row = 0; row < both[k]->rows; row++)
				memset(&held[both[k]->row + row][both[k]->col], 1,
				       both[k]->cols);
	}
	for (uint32_t row = 0; row < g->rows; row++)
		for (uint32_t col = 0; col < g->cols; col++)
			sums[row + 1][col + 1] = sums[row][col + 1] + sums[row + 1][col] -
						 sums[row][col] + held[row][col];
}

/* Held units of a rectangle; one that begins before the grid, or ends behind it, is held
 * altogether. */
static uint32_t list_held(const struct grid *g, uint32_t row, uint32_t col, uint32_t rows,
			  uint32_t cols)
{
	if (row >= g->rows || col >= g->cols)
		return rows * cols;
	return sums[row + rows][col + cols] - sums[row][col + cols] -
	       sums[row + rows][col] + sums[row][col];
}

/* Of the first places that touch something to their left or right, the one that touches
 * most. */
static bool list_touching(const struct grid *g, struct place_rect *r)
{
	uint32_t looked = 0, most = 0, rows = r->rows, cols = r->cols;

	for (uint32_t row = 0; row + rows <= g->rows; row++)
		for (uint32_t col = 0; col + cols <= g->cols; col++) {
			uint32_t beside = list_held(g, row, col - 1, rows, 1);
			uint32_t n = list_held(g, row, col + cols, rows, 1);

			if (list_held(g, row, col, rows, cols) != 0 || beside + n == 0 ||
			    looked++ >= PLACE_COMPARED)
				continue;
			n += beside + list_held(g, row - 1, col, 1, cols) +
			     list_held(g, row + rows, col, 1, cols);
			if (looked > 1 && n <= most)
				continue;
			most = n;
			r->row = row;
			r->col = col;
		}
	return looked > 0;
}

static bool list_find(const struct grid *g, uint32_t units, struct place_rect *r,
		      const struct holder *except)
{
	uint32_t side = 1;

	list_sums(g, except);
	while ((side + 1) * (side + 1) <= units)
		side++;
	for (; side > 0; side--) {
		if (units % side != 0)
			continue;
		r->rows = side;
		r->cols = units / side;
		if (r->rows <= g->rows && r->cols <= g->cols && list_touching(g, r))
			return true;
		r->rows = units / side;
		r->cols = side;
		if (r->rows <= g->rows && r->cols <= g->cols && list_touching(g, r))
			return true;
	}
	return false;
}

static void list_largest(const struct grid *g, struct place_rect *best)
{
	memset(best, 0, sizeof(*best));
	for (uint32_t rows = g->rows; rows > 0; rows--) {
		uint32_t cols = g->cols;

		while (cols > 0 && rows * cols > best->rows * best->cols) {
			struct place_rect r = {.rows = rows, .cols = cols};

			if (list_place(g, &r, NULL)) {
				*best = r;
				break;
			}
			cols--;
		}
	}
}

/* Number of the holder of a unit, 0 when it is free. */
static uint32_t list_owner(const struct grid *g, uint32_t row, uint32_t col,
			   const struct holder *except)
{
	struct place_rect unit = {row, col, 1, 1};

	for (uint32_t i = 0; i < HOLDERS; i++) {
		const struct holder *h = &g->holders[i];

		if (h->used && h != except &&
		    (meets(&unit, &h->at) || meets(&unit, &h->moving)))
			return i + 1;
	}
	return 0;
}

static uint32_t list_first_owner(const struct grid *g, const struct place_rect *r,
				 const struct holder *except)
{
	for (uint32_t row = r->row; row < r->row + r->rows; row++)
		for (uint32_t col = r->col; col < r->col + r->cols; col++) {
			uint32_t owner = list_owner(g, row, col, except);

			if (owner != 0)
				return owner;
		}
	return 0;
}

static uint32_t area_of(const struct place_rect *r)
{
	return r->rows * r->cols;
}

static uint32_t list_left(const struct grid *g)
{
	uint32_t left = g->rows * g->cols;

	for (int i = 0; i < HOLDERS; i++) {
		const struct place_rect *a = &g->holders[i].at;
		const struct place_rect *b = &g->holders[i].moving;

		if (!g->holders[i].used)
			continue;
		left -= area_of(a) + area_of(b);
		for (uint32_t row = a->row; row < a->row + a->rows; row++)
			for (uint32_t col = a->col; col < a->col + a->cols; col++) {
				struct place_rect unit = {row, col, 1, 1};

				left += meets(&unit, b);
			}
	}
	return left;
}

/* ---- both, side by side ----------------------------------------------------------- */

static bool same(const struct place_rect *a, const struct place_rect *b)
{
	return a->row == b->row && a->col == b->col && a->rows == b->rows &&
	       a->cols == b->cols;
}

static uint32_t number_of(const struct grid *g, const struct holder *h)
{
	return (uint32_t)(h - g->holders) + 1;
}

/* A few sizes come often, others at times. */
static uint32_t pick_units(struct grid *g)
{
	static const uint32_t usual[] = {1, 2, 4, 6, 12, 16, 64, 65};
	uint32_t all = g->rows * g->cols;

	switch (pick(g, 0, 7)) {
	case 0:
		return pick(g, 1, all + 1);
	case 1:
	case 2:
		return pick(g, 1, 1 + all / 8);
	default:
		return usual[pick(g, 0, 7)];
	}
}

static struct place_rect pick_rect(struct grid *g)
{
	struct place_rect r;
	uint32_t most = pick(g, 0, 3) == 0 ? UINT32_MAX : 8;

	r.row = pick(g, 0, g->rows - 1);
	r.col = pick(g, 0, g->cols - 1);
	r.rows = pick(g, 1, g->rows - r.row < most ? g->rows - r.row : most);
	r.cols = pick(g, 1, g->cols - r.col < most ? g->cols - r.col : most);
	return r;
}

static bool both_find(struct grid *g, const struct holder *except, struct place_rect *out)
{
	uint32_t units = pick_units(g);
	struct place_rect want = {0}, got = {0};
	bool can = list_find(g, units, &want, except);
	bool does = place_find(&g->place, units, except ? &except->at : NULL, &got);

	CHECK(g, can == does);
	CHECK(g, !can || same(&want, &got));
	*out = got;
	return does;
}

/* A place for a new holder or, with except, for that one. */
static bool both_place(struct grid *g, const struct holder *except,
		       struct place_rect *out)
{
	uint32_t owner;

	if (pick(g, 0, 2) != 0)
		return both_find(g, except, out);
	*out = pick_rect(g);
	owner = place_owner(&g->place, out, except ? &except->at : NULL);
	CHECK(g, owner == list_first_owner(g, out, except));
	return owner == 0;
}

static void add(struct grid *g, struct holder *h)
{
	struct place_rect r;

	if (!both_place(g, NULL, &r))
		return;
	*h = (struct holder){.used = true, .at = r};
	place_take(&g->place, &r, number_of(g, h));
}

static void drop(struct grid *g, struct holder *h)
{
	place_release(&g->place, &h->at);
	h->used = false;
}

static void move_begin(struct grid *g, struct holder *h)
{
	struct place_rect r;

	if (!both_place(g, h, &r) || pick(g, 0, 3) == 0)
		return;
	h->moving = r;
	place_take(&g->place, &r, number_of(g, h));
}

static void move_end(struct grid *g, struct holder *h)
{
	if (pick(g, 0, 1) != 0) {
		place_settle(&g->place, &h->at, &h->moving, number_of(g, h));
		h->at = h->moving;
	} else {
		place_settle(&g->place, &h->moving, &h->at, number_of(g, h));
	}
	memset(&h->moving, 0, sizeof(h->moving));
}

static void compare(struct grid *g, uint32_t every)
{
	struct place_rect want, got, all = {0, 0, g->rows, g->cols};

	CHECK(g, place_left(&g->place) == list_left(g));
	if (g->step % every != 0)
		return;
	list_largest(g, &want);
	place_largest(&g->place, &got);
	CHECK(g, same(&want, &got));
	CHECK(g, place_owner(&g->place, &all, NULL) == list_first_owner(g, &all, NULL));
	for (uint32_t row = 0; row < g->rows; row++)
		for (uint32_t col = 0; col < g->cols; col++) {
			struct place_rect unit = {row, col, 1, 1};

			CHECK(g, place_owner(&g->place, &unit, NULL) ==
					 list_owner(g, row, col, NULL));
		}
}

static void random_step(struct grid *g)
{
	struct holder *h = &g->holders[pick(g, 0, g->count - 1)];

	if (g->step % 100 == 0)
		g->busy = pick(g, 5, 95);
	if (!h->used) {
		if (pick(g, 0, 99) < g->busy)
			add(g, h);
	} else if (h->moving.rows != 0) {
		move_end(g, h);
	} else if (pick(g, 0, 2) == 0) {
		move_begin(g, h);
	} else if (pick(g, 0, 99) >= g->busy) {
		drop(g, h);
	}
}

static void random_run(uint32_t rows, uint32_t cols, uint64_t seed, uint32_t steps)
{
	static struct grid g;

	memset(&g, 0, sizeof(g));
	g.rows = rows;
	g.cols = cols;
	g.seed = seed;
	g.random = seed;
	g.count = 2 + rows * cols / 3 < HOLDERS ? 2 + rows * cols / 3 : HOLDERS;
	assert_int_equal(place_init(&g.place, rows, cols), 0);
	for (g.step = 0; g.step < steps; g.step++) {
		random_step(&g);
		compare(&g, rows * cols < 200 ? 10 : 500);
	}
	place_fini(&g.place);
}

static void random_shapes(void **state)
{
	static const uint16_t shapes[][2] = {
		{1, 1},   {1, 2},   {2, 1},   {1, 63},  {1, 64},  {1, 65},  {1, 127},
		{1, 128}, {1, 129}, {1, 700}, {64, 1},  {97, 1},  {2, 63},  {3, 64},
		{3, 65},  {2, 127}, {3, 128}, {2, 129}, {4, 193}, {13, 7},  {7, 13},
		{8, 8},   {5, 5},   {65, 3},  {31, 67}, {16, 64}, {17, 65}, {67, 31},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(shapes) / sizeof(*shapes); i++)
		for (uint64_t seed = 1; seed <= 2; seed++)
			random_run(shapes[i][0], shapes[i][1], seed, 2000);
}

/* ---- cases worth a name ----------------------------------------------------------- */

static void finds(struct place *p, uint32_t units, struct place_rect want)
{
	struct place_rect got;

	assert_true(place_find(p, units, NULL, &got));
	if (!same(&got, &want))
		fail_msg("%u units: %u x %u at %u, %u", units, got.rows, got.cols,
			 got.row, got.col);
}

static void squarest_wider_first(void **state)
{
	struct place_rect top = {0, 0, 2, 8}, got;
	struct place p;

	(void)state;
	assert_int_equal(place_init(&p, 4, 8), 0);
	finds(&p, 6, (struct place_rect){0, 0, 2, 3});
	finds(&p, 7, (struct place_rect){0, 0, 1, 7});
	finds(&p, 32, (struct place_rect){0, 0, 4, 8});
	assert_false(place_find(&p, 0, NULL, &got));
	assert_false(place_find(&p, 11, NULL, &got));
	assert_false(place_find(&p, 33, NULL, &got));
	place_take(&p, &top, 1);
	finds(&p, 16, (struct place_rect){2, 0, 2, 8});
	assert_false(place_find(&p, 9, NULL, &got));
	assert_true(place_find(&p, 9, &top, &got));
	place_fini(&p);
}

/* 6 as 3 x 2 where 2 x 3 does not fit. */
static void taller_when_it_must(void **state)
{
	struct place_rect right = {0, 2, 5, 3};
	struct place p;

	(void)state;
	assert_int_equal(place_init(&p, 5, 5), 0);
	place_take(&p, &right, 1);
	finds(&p, 6, (struct place_rect){0, 0, 3, 2});
	place_fini(&p);
}

/* A hole of its size, though there are places before it; and a corner before a side. */
static void touches_most(void **state)
{
	const struct place_rect left = {3, 0, 3, 2}, right = {3, 4, 3, 4};
	struct place p;

	(void)state;
	assert_int_equal(place_init(&p, 6, 8), 0);
	place_take(&p, &left, 1);
	place_take(&p, &right, 2);
	finds(&p, 6, (struct place_rect){0, 0, 2, 3});
	finds(&p, 2, (struct place_rect){5, 2, 1, 2});
	finds(&p, 1, (struct place_rect){0, 0, 1, 1});
	place_release(&p, &left);
	finds(&p, 4, (struct place_rect){0, 0, 2, 2});
	place_fini(&p);
}

static void moves_hold_both(void **state)
{
	struct place_rect from = {0, 0, 2, 4}, to = {1, 2, 2, 4}, got;
	struct place p;

	(void)state;
	assert_int_equal(place_init(&p, 3, 6), 0);
	place_take(&p, &from, 7);
	place_take(&p, &to, 7);
	assert_int_equal(place_left(&p), 18 - 14);
	place_settle(&p, &to, &from, 7);
	assert_int_equal(place_left(&p), 10);
	assert_int_equal(place_owner(&p, &to, NULL), 7);
	assert_int_equal(place_owner(&p, &to, &from), 0);
	place_take(&p, &to, 7);
	place_settle(&p, &from, &to, 7);
	assert_int_equal(place_left(&p), 10);
	place_release(&p, &to);
	assert_int_equal(place_left(&p), 18);
	place_largest(&p, &got);
	assert_int_equal(area_of(&got), 18);
	place_fini(&p);
}

static void full(void **state)
{
	struct place_rect all = {0, 0, 3, 65}, got;
	struct place p;

	(void)state;
	assert_int_equal(place_init(&p, 3, 65), 0);
	place_take(&p, &all, 1);
	assert_int_equal(place_left(&p), 0);
	assert_false(place_find(&p, 1, NULL, &got));
	place_largest(&p, &got);
	assert_int_equal(area_of(&got), 0);
	place_fini(&p);
	place_fini(&p);
}

/* Free runs of 62, of 63 up to a word's end, and of 64 over two words. */
static void runs_at_word_ends(void **state)
{
	struct place_rect first = {0, 62, 1, 3}, second = {0, 128, 1, 2}, got;
	struct place p;

	(void)state;
	assert_int_equal(place_init(&p, 1, 128), 0);
	place_take(&p, &first, 1);
	place_largest(&p, &got);
	assert_true(same(&got, &(struct place_rect){0, 65, 1, 63}));
	place_fini(&p);
	assert_int_equal(place_init(&p, 1, 194), 0);
	place_take(&p, &first, 1);
	place_take(&p, &second, 2);
	finds(&p, 63, (struct place_rect){0, 65, 1, 63});
	finds(&p, 64, (struct place_rect){0, 130, 1, 64});
	place_largest(&p, &got);
	assert_true(same(&got, &(struct place_rect){0, 130, 1, 64}));
	place_fini(&p);
}

/* Of what is filled only what was free is the filler's, over a word's end, too; and all
 * of that is given back, but for what is excepted. */
static void filled_and_emptied(void **state)
{
	struct place_rect held = {1, 60, 1, 2}, all = {0, 58, 3, 10},
			  kept = {0, 58, 1, 2};
	struct place_rect unit = {.rows = 1, .cols = 1}, got;
	struct place p;

	(void)state;
	assert_int_equal(place_init(&p, 3, 70), 0);
	place_take(&p, &held, 1);
	place_fill(&p, &all, 2);
	assert_int_equal(place_left(&p), 3 * 70 - 30);
	for (unit.row = 0; unit.row < 3; unit.row++)
		for (unit.col = 58; unit.col < 68; unit.col++) {
			uint32_t is = place_owner(&p, &unit, NULL);

			assert_int_equal(is, meets(&unit, &held) ? 1 : 2);
		}
	place_largest(&p, &got);
	assert_true(same(&got, &(struct place_rect){0, 0, 3, 58}));
	for (uint32_t row = 0; row < 3; row++)
		assert_int_equal(p.row_left[row], 60);
	assert_false(place_find_shape(&p, 1, 59, NULL, &got));
	finds(&p, 58, (struct place_rect){0, 0, 2, 29});
	place_fill(&p, &all, 3);
	assert_int_equal(place_left(&p), 3 * 70 - 30);
	place_empty(&p, &all, &kept, 3);
	assert_int_equal(place_left(&p), 3 * 70 - 30);
	place_empty(&p, &all, &kept, 2);
	assert_int_equal(place_left(&p), 3 * 70 - 4);
	assert_int_equal(place_owner(&p, &kept, NULL), 2);
	place_release(&p, &held);
	place_empty(&p, &all, &held, 2);
	assert_int_equal(place_left(&p), 3 * 70);
	for (uint32_t row = 0; row < 3; row++)
		assert_int_equal(p.row_left[row], 70);
	place_largest(&p, &got);
	assert_true(same(&got, &(struct place_rect){0, 0, 3, 70}));
	place_fini(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_shapes),
		cmocka_unit_test(squarest_wider_first),
		cmocka_unit_test(taller_when_it_must),
		cmocka_unit_test(touches_most),
		cmocka_unit_test(moves_hold_both),
		cmocka_unit_test(full),
		cmocka_unit_test(runs_at_word_ends),
		cmocka_unit_test(filled_and_emptied),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

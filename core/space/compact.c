/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compact.c - move partitions out of a rectangle that another one needs.
 *
 * The cost of a candidate rectangle is the number of units of the partitions that overlap
 * it and would have to move.  For the TARGETS cheapest candidates, the search looks for
 * new places for these partitions: the largest partition first, each in its present shape
 * if possible.  A partition may move to a place that another moving partition leaves.  If
 * partitions would wait for each other in a cycle, the next candidate is tried.
 * Partitions that do not overlap the rectangle never move.  Pinned partitions stay.
 *
 * The method is "local repacking" (Diessel, ElGindy, Middendorf, Schmeck, Schmidt 2000:
 * Dynamic scheduling of tasks on partially reconfigurable FPGAs).
 */
#include "space/compact.h"

#include <errno.h>
#include <stdlib.h>

#include "space/allot.h"
#include "space/plan.h"
#include "space/resize.h"
#include "util/error.h"

/* Candidate rectangles for which new places are searched. */
#define TARGETS 32u
/* Weight of a unit that cannot be freed. */
#define FIXED (UINT64_C(1) << 32)

struct target {
	struct place_rect at;
	uint32_t moved; /* units of the partitions that overlap it */
};

/* The state of one request. */
struct compact {
	struct hal_device *dev;
	const struct hal_partition
		*part; /* the partition that needs the units; NULL: a new one */
	uint32_t units, moves_max;
	struct place_rect shape; /* .rows and .cols that it needs; 0: any */
	/* Prefix sums: the weight of all units above and left of a corner. */
	uint64_t *sums;
	struct target best[TARGETS]; /* smallest .moved first */
	uint32_t count;
};

static struct hal_partition *partition_at(struct list *node)
{
	return container_of(node, struct hal_partition, on_device);
}

static bool is_movable(const struct compact *c, const struct hal_partition *p)
{
	return !p->pinned && p->moving.units == 0 &&
	       ((c->dev->info.caps & HAL_CAP_RESIZE_LIVE) != 0 ||
		p->command.inflight == 0);
}

/* ---- candidate rectangles ---------------------------------------------------------- */

static uint64_t *corner(const struct compact *c, uint32_t row, uint32_t col)
{
	return &c->sums[(size_t)row * (c->dev->info.unit_cols + 1) + col];
}

/* Write the weight of each unit of a partition into the array from which the prefix sums
 * are then computed. */
static void set_weight(const struct compact *c, const struct hal_bk_partition_desc *bk,
		       uint64_t weight)
{
	for (uint32_t row = bk->row; row < (uint32_t)bk->row + bk->rows; row++)
		for (uint32_t col = bk->col; col < (uint32_t)bk->col + bk->cols; col++)
			*corner(c, row + 1, col + 1) = weight;
}

static int sum_weights(struct compact *c)
{
	const struct hal_device_info *i = &c->dev->info;

	c->sums =
		calloc(((size_t)i->unit_rows + 1) * (i->unit_cols + 1), sizeof(*c->sums));
	if (c->sums == NULL)
		return fail(ENOMEM, "no memory to search for free units on %s",
			    c->dev->name);
	hal_list_for_each (it, &c->dev->space.partitions) {
		const struct hal_partition *p = partition_at(it);

		if (p != c->part)
			set_weight(c, &p->desc, is_movable(c, p) ? 1 : FIXED);
		if (p->moving.units != 0)
			set_weight(c, &p->moving, FIXED);
	}
	for (uint32_t row = 1; row <= i->unit_rows; row++)
		for (uint32_t col = 1; col <= i->unit_cols; col++)
			*corner(c, row, col) += *corner(c, row - 1, col) +
						*corner(c, row, col - 1) -
						*corner(c, row - 1, col - 1);
	return 0;
}

/* Return the weight of r: its held units, or FIXED or more if some cannot be freed. */
static uint64_t weight_in(const struct compact *c, const struct place_rect *r)
{
	return *corner(c, r->row + r->rows, r->col + r->cols) -
	       *corner(c, r->row, r->col + r->cols) -
	       *corner(c, r->row + r->rows, r->col) + *corner(c, r->row, r->col);
}

/* Return whether p overlaps r and is not the partition that r is for. */
static bool must_move(const struct compact *c, const struct hal_partition *p,
		      const struct place_rect *r)
{
	const struct place_rect has = rect_of(&p->desc);
	struct place_rect both;

	return p != c->part && place_common(&has, r, &both);
}

/* Insert r into c->best if it is one of the cheapest candidates. */
static void consider(struct compact *c, const struct place_rect *r)
{
	uint64_t weight = weight_in(c, r);
	uint32_t moved = 0, movers = 0, i;

	if (weight >= FIXED ||
	    (c->count == TARGETS && weight >= c->best[TARGETS - 1].moved))
		return;
	hal_list_for_each (it, &c->dev->space.partitions) {
		const struct hal_partition *p = partition_at(it);

		if (!must_move(c, p, r))
			continue;
		moved += p->desc.units;
		movers++;
	}
	if (movers > c->moves_max ||
	    (c->count == TARGETS && moved >= c->best[TARGETS - 1].moved))
		return;
	c->count += c->count < TARGETS;
	for (i = c->count - 1; i > 0 && c->best[i - 1].moved > moved; i--)
		c->best[i] = c->best[i - 1];
	c->best[i] = (struct target){*r, moved};
}

static void consider_shape(struct compact *c, uint32_t rows, uint32_t cols)
{
	const struct hal_device_info *i = &c->dev->info;
	struct place_rect r = {.rows = rows, .cols = cols};

	for (r.row = 0; r.row + rows <= i->unit_rows; r.row++)
		for (r.col = 0; r.col + cols <= i->unit_cols; r.col++)
			consider(c, &r);
}

/* Consider all rectangles of c->units units and of the requested shape, if there is one.
 * Otherwise consider the squarest shapes first. */
static void consider_all(struct compact *c)
{
	uint32_t side = 1;

	if (c->shape.rows != 0) {
		consider_shape(c, c->shape.rows, c->shape.cols);
		return;
	}
	while ((uint64_t)(side + 1) * (side + 1) <= c->units)
		side++;
	for (; side > 0; side--) {
		if (c->units % side != 0)
			continue;
		consider_shape(c, side, c->units / side);
		if (side != c->units / side)
			consider_shape(c, c->units / side, side);
	}
}

/* ---- new places -------------------------------------------------------------------- */

/* Fill the plan with the partitions that must leave r, the largest first. */
static void list_movers(const struct compact *c, const struct place_rect *r)
{
	struct plan *plan = &c->dev->space.plan;

	plan->count = 0;
	hal_list_for_each (it, &c->dev->space.partitions) {
		struct hal_partition *p = partition_at(it);
		uint32_t i = plan->count;

		if (!must_move(c, p, r))
			continue;
		for (; i > 0 && plan->move[i - 1].part->desc.units < p->desc.units; i--)
			plan->move[i] = plan->move[i - 1];
		plan->move[i] = (struct plan_move){.part = p, .from = rect_of(&p->desc)};
		plan->count++;
	}
}

static bool find_elsewhere(struct place *place, struct plan_move *m)
{
	return place_find_shape(place, m->from.rows, m->from.cols, NULL, &m->to) ||
	       place_find(place, m->part->desc.units, NULL, &m->to);
}

/* Choose a place outside r for each partition of the plan; return whether all found one.
 * The function restores the grid before it returns. */
static bool place_movers(const struct compact *c, const struct place_rect *r)
{
	struct place *place = &c->dev->space.place;
	struct plan *plan = &c->dev->space.plan;
	struct place_rect own = {0};
	uint32_t n;

	if (c->part != NULL) {
		own = rect_of(&c->part->desc);
		place_release(place, &own);
	}
	for (uint32_t i = 0; i < plan->count; i++)
		place_release(place, &plan->move[i].from);
	place_take(place, r, PLAN_ROOM);
	/* c->part keeps its units until it moves itself. */
	if (c->part != NULL)
		place_fill(place, &own, PLAN_ROOM);
	for (n = 0; n < plan->count && find_elsewhere(place, &plan->move[n]); n++)
		place_take(place, &plan->move[n].to,
			   partition_holder(plan->move[n].part));
	for (uint32_t i = 0; i < n; i++)
		place_release(place, &plan->move[i].to);
	if (c->part != NULL)
		place_release(place, &own);
	place_release(place, r);
	if (c->part != NULL)
		place_take(place, &own, partition_holder(c->part));
	for (uint32_t i = 0; i < plan->count; i++)
		place_take(place, &plan->move[i].from,
			   partition_holder(plan->move[i].part));
	return n == plan->count;
}

/* Return whether all partitions of the plan can move one after the other, that is, none
 * wait for each other in a cycle. */
static bool can_all_move(const struct plan *plan)
{
	bool gone[HAL_POLICY_MOVES] = {false};
	uint32_t left = plan->count, before;
	struct place_rect both;

	do {
		before = left;
		for (uint32_t i = 0; i < plan->count; i++) {
			bool free = !gone[i];

			for (uint32_t k = 0; free && k < plan->count; k++)
				free = k == i || gone[k] ||
				       !place_common(&plan->move[i].to,
						     &plan->move[k].from, &both);
			gone[i] = gone[i] || free;
			left -= free;
		}
	} while (left != before);
	return left == 0;
}

/* Carry out the moves for the first candidate for which all places are found. */
static int make_room(struct compact *c)
{
	struct plan *plan = &c->dev->space.plan;
	int err;

	for (uint32_t i = 0; i < c->count; i++) {
		const struct place_rect *r = &c->best[i].at;

		list_movers(c, r);
		if (!place_movers(c, r) || !can_all_move(plan))
			continue;
		plan->room = *r;
		err = plan_carry_out(c->dev);
		/* Moves that have begun are not undone. */
		if (err != 0)
			compact_over(c->dev);
		return err;
	}
	return fail(ENOSPC,
		    "moving up to %u partitions of %s does not make room for %u units",
		    c->moves_max, c->dev->name, c->units);
}

/* ---- requests ---------------------------------------------------------------------- */

/* Return whether the units that d requests are free without any move. */
static bool is_free_already(struct compact *c, const struct hal_partition_desc *d)
{
	const struct place_rect at = {d->row, d->col, d->rows, d->cols};
	struct place_rect own = {0}, r;
	const struct place_rect *except = NULL;

	if (c->part != NULL) {
		own = rect_of(&c->part->desc);
		except = &own;
	}
	if (names_place(d))
		return place_owner(&c->dev->space.place, &at, except) == 0;
	if (c->shape.rows != 0)
		return place_find_shape(&c->dev->space.place, c->shape.rows,
					c->shape.cols, except, &r);
	return place_find(&c->dev->space.place, c->units, except, &r);
}

static int free_rectangle(struct compact *c, const struct hal_partition_desc *d)
{
	struct hal_device *dev = c->dev;
	uint32_t left = place_left(&dev->space.place) +
			(c->part != NULL ? c->part->desc.units : 0);
	const struct place_rect at = {d->row, d->col, d->rows, d->cols};
	int err;

	if (c->units == 0 || at.row + at.rows > dev->info.unit_rows ||
	    at.col + at.cols > dev->info.unit_cols)
		return fail(EINVAL, "%s does not have the requested units", dev->name);
	err = names_place(d) ? 0 : allot_shape(dev, d, c->units, &c->shape);
	if (err != 0)
		return err;
	if ((dev->info.caps & (HAL_CAP_RESIZE_IDLE | HAL_CAP_RESIZE_LIVE)) == 0)
		return fail(ENOTSUP, "partitions of %s cannot be moved", dev->name);
	if (dev->space.plan.open != 0 || dev->space.plan.room.rows != 0 ||
	    (c->part != NULL && c->part->moving.units != 0))
		return plan_busy(dev);
	if (is_free_already(c, d))
		return 0;
	if (c->units > left)
		return fail(ENOSPC, "only %u units are free in total", left);
	err = sum_weights(c);
	if (err != 0)
		return err;
	if (names_place(d))
		consider(c, &at);
	else
		consider_all(c);
	free(c->sums);
	return make_room(c);
}

int compact_begin(struct hal_device *dev, const struct hal_partition *part,
		  const struct hal_partition_desc *d, uint32_t moves_max)
{
	struct compact c = {
		.dev = dev,
		.part = part,
		.units = allot_wants(d, part != NULL ? part->desc.units : 0),
		.moves_max = moves_max < HAL_POLICY_MOVES ? moves_max : HAL_POLICY_MOVES,
	};

	return free_rectangle(&c, d);
}

void compact_over(struct hal_device *dev)
{
	const struct place_rect none = {0};

	if (dev->space.plan.room.rows != 0)
		place_empty(&dev->space.place, &dev->space.plan.room, &none, PLAN_ROOM);
	dev->space.plan.room = none;
}

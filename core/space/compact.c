/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compact.c - others are moved so that a partition finds room in one place.
 *
 * Every rectangle that would do is weighed by the units of those that are in its way, as
 * for the compaction of partial reconfigurations on an FPGA (Diessel, ElGindy,
 * Middendorf, Schmeck, Schmidt 2000: Dynamic scheduling of tasks on partially
 * reconfigurable FPGAs, "local repacking"); for the cheapest few it is tried whether
 * those find a place elsewhere, the largest first, each in its own shape if that can be.
 * Nobody moves who is not in the way.  Each may go to where another has been; a circle of
 * such is not broken, the next rectangle is tried.  Partitions that asked for their place
 * stay.
 */
#include "space/compact.h"

#include <errno.h>
#include <stdlib.h>

#include "space/allot.h"
#include "space/plan.h"
#include "space/resize.h"
#include "util/error.h"

/* Rectangles that are tried, at most. */
#define TARGETS 32u
/* What a unit weighs that cannot be had. */
#define FIXED (UINT64_C(1) << 32)

struct target {
	struct place_rect at;
	uint32_t moved; /* units of those in its way */
};

struct compact {
	struct hal_device *dev;
	const struct hal_partition *part;
	uint32_t units, most;
	/* What units weigh, summed up over all above and left of a corner. */
	uint64_t *sums;
	struct target best[TARGETS]; /* lightest first */
	uint32_t count;
};

static struct hal_partition *partition_at(struct list *node)
{
	return container_of(node, struct hal_partition, on_device);
}

static bool may_go(const struct compact *c, const struct hal_partition *p)
{
	return !p->pinned && p->moving.units == 0 &&
	       ((c->dev->info.caps & HAL_CAP_RESIZE_LIVE) != 0 ||
		p->command.inflight == 0);
}

/* ---- what is in the way ------------------------------------------------------------ */

static uint64_t *corner(const struct compact *c, uint32_t row, uint32_t col)
{
	return &c->sums[(size_t)row * (c->dev->info.unit_cols + 1) + col];
}

/* Units of bk, so far each for itself. */
static void weigh(const struct compact *c, const struct hal_bk_partition_desc *bk,
		  uint64_t weight)
{
	for (uint32_t row = bk->row; row < (uint32_t)bk->row + bk->rows; row++)
		for (uint32_t col = bk->col; col < (uint32_t)bk->col + bk->cols; col++)
			*corner(c, row + 1, col + 1) = weight;
}

static int weigh_all(struct compact *c)
{
	const struct hal_device_info *i = &c->dev->info;

	c->sums =
		calloc(((size_t)i->unit_rows + 1) * (i->unit_cols + 1), sizeof(*c->sums));
	if (c->sums == NULL)
		return fail(ENOMEM, "no memory to look for room on %s", c->dev->name);
	hal_list_for_each (it, &c->dev->space.partitions) {
		const struct hal_partition *p = partition_at(it);

		if (p != c->part)
			weigh(c, &p->desc, may_go(c, p) ? 1 : FIXED);
		if (p->moving.units != 0)
			weigh(c, &p->moving, FIXED);
	}
	for (uint32_t row = 1; row <= i->unit_rows; row++)
		for (uint32_t col = 1; col <= i->unit_cols; col++)
			*corner(c, row, col) += *corner(c, row - 1, col) +
						*corner(c, row, col - 1) -
						*corner(c, row - 1, col - 1);
	return 0;
}

/* Units in the way of r; FIXED or more: some cannot be moved. */
static uint64_t in_the_way(const struct compact *c, const struct place_rect *r)
{
	return *corner(c, r->row + r->rows, r->col + r->cols) -
	       *corner(c, r->row, r->col + r->cols) -
	       *corner(c, r->row + r->rows, r->col) + *corner(c, r->row, r->col);
}

static bool is_in_the_way(const struct compact *c, const struct hal_partition *p,
			  const struct place_rect *r)
{
	const struct place_rect has = rect_of(&p->desc);
	struct place_rect both;

	return p != c->part && place_common(&has, r, &both);
}

/* r is among the best, if it is. */
static void offer(struct compact *c, const struct place_rect *r)
{
	uint64_t least = in_the_way(c, r);
	uint32_t moved = 0, movers = 0, i;

	if (least >= FIXED ||
	    (c->count == TARGETS && least >= c->best[TARGETS - 1].moved))
		return;
	hal_list_for_each (it, &c->dev->space.partitions) {
		const struct hal_partition *p = partition_at(it);

		if (!is_in_the_way(c, p, r))
			continue;
		moved += p->desc.units;
		movers++;
	}
	if (movers > c->most ||
	    (c->count == TARGETS && moved >= c->best[TARGETS - 1].moved))
		return;
	c->count += c->count < TARGETS;
	for (i = c->count - 1; i > 0 && c->best[i - 1].moved > moved; i--)
		c->best[i] = c->best[i - 1];
	c->best[i] = (struct target){*r, moved};
}

static void offer_shape(struct compact *c, uint32_t rows, uint32_t cols)
{
	const struct hal_device_info *i = &c->dev->info;
	struct place_rect r = {.rows = rows, .cols = cols};

	for (r.row = 0; r.row + rows <= i->unit_rows; r.row++)
		for (r.col = 0; r.col + cols <= i->unit_cols; r.col++)
			offer(c, &r);
}

/* Of as many units, the squarest first. */
static void offer_all(struct compact *c)
{
	uint32_t side = 1;

	while ((uint64_t)(side + 1) * (side + 1) <= c->units)
		side++;
	for (; side > 0; side--) {
		if (c->units % side != 0)
			continue;
		offer_shape(c, side, c->units / side);
		if (side != c->units / side)
			offer_shape(c, c->units / side, side);
	}
}

/* ---- where those go ---------------------------------------------------------------- */

/* Into the plan, the largest first. */
static void movers(const struct compact *c, const struct place_rect *r)
{
	struct plan *plan = &c->dev->space.plan;

	plan->count = 0;
	hal_list_for_each (it, &c->dev->space.partitions) {
		struct hal_partition *p = partition_at(it);
		uint32_t i = plan->count;

		if (!is_in_the_way(c, p, r))
			continue;
		for (; i > 0 && plan->move[i - 1].part->desc.units < p->desc.units; i--)
			plan->move[i] = plan->move[i - 1];
		plan->move[i] = (struct plan_move){.part = p, .from = rect_of(&p->desc)};
		plan->count++;
	}
}

static bool place_elsewhere(struct place *place, struct plan_move *m)
{
	return place_find_shape(place, m->from.rows, m->from.cols, &m->to) ||
	       place_find(place, m->part->desc.units, NULL, &m->to);
}

/* A place for each of the plan, with r held; all is held as before in the end. */
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
	/* It has that until it moves itself. */
	if (c->part != NULL)
		place_fill(place, &own, PLAN_ROOM);
	for (n = 0; n < plan->count && place_elsewhere(place, &plan->move[n]); n++)
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

/* All get there: time and again those go whose place nobody has any more. */
static bool can_go(const struct plan *plan)
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

static int make_room(struct compact *c)
{
	struct plan *plan = &c->dev->space.plan;
	int err;

	for (uint32_t i = 0; i < c->count; i++) {
		const struct place_rect *r = &c->best[i].at;

		movers(c, r);
		if (!place_movers(c, r) || !can_go(plan))
			continue;
		plan->room = *r;
		err = plan_carry_out(c->dev);
		/* Those that have begun to move do. */
		if (err != 0)
			compact_over(c->dev);
		return err;
	}
	return fail(ENOSPC,
		    "moving up to %u partitions of %s does not make room for %u units",
		    c->most, c->dev->name, c->units);
}

/* ---- asked for --------------------------------------------------------------------- */

static bool is_there(struct compact *c, const struct hal_partition_desc *d)
{
	const struct place_rect at = {d->row, d->col, d->rows, d->cols};
	struct place_rect own = {0}, r;
	const struct place_rect *except = NULL;

	if (c->part != NULL) {
		own = rect_of(&c->part->desc);
		except = &own;
	}
	return names_place(d) ? place_owner(&c->dev->space.place, &at, except) == 0
			      : place_find(&c->dev->space.place, c->units, except, &r);
}

static int check_compact(struct compact *c, const struct hal_partition_desc *d)
{
	struct hal_device *dev = c->dev;
	uint32_t left = place_left(&dev->space.place) +
			(c->part != NULL ? c->part->desc.units : 0);
	const struct place_rect at = {d->row, d->col, d->rows, d->cols};
	int err;

	if (c->units == 0 || at.row + at.rows > dev->info.unit_rows ||
	    at.col + at.cols > dev->info.unit_cols)
		return fail(EINVAL, "%s has no such units", dev->name);
	if ((dev->info.caps & (HAL_CAP_RESIZE_IDLE | HAL_CAP_RESIZE_LIVE)) == 0)
		return fail(ENOTSUP, "partitions of %s cannot be moved", dev->name);
	if (dev->space.plan.open != 0 || dev->space.plan.room.rows != 0 ||
	    (c->part != NULL && c->part->moving.units != 0))
		return plan_busy(dev);
	if (is_there(c, d))
		return 0;
	if (c->units > left)
		return fail(ENOSPC, "%u units are left in all", left);
	err = weigh_all(c);
	if (err != 0)
		return err;
	if (names_place(d))
		offer(c, &at);
	else
		offer_all(c);
	free(c->sums);
	return make_room(c);
}

int compact_begin(struct hal_device *dev, const struct hal_partition *part,
		  const struct hal_partition_desc *d, uint32_t most)
{
	struct compact c = {
		.dev = dev,
		.part = part,
		.units = allot_wants(d, part != NULL ? part->desc.units : 0),
		.most = most < HAL_POLICY_MOVES ? most : HAL_POLICY_MOVES,
	};

	return check_compact(&c, d);
}

void compact_over(struct hal_device *dev)
{
	const struct place_rect none = {0};

	if (dev->space.plan.room.rows != 0)
		place_empty(&dev->space.place, &dev->space.plan.room, &none, PLAN_ROOM);
	dev->space.plan.room = none;
}

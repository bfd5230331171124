/* SPDX-License-Identifier: Apache-2.0 */
/*
 * allot.c - choose the units, colours and index of a partition.
 *
 * The functions here only choose and check.  The caller reserves the result (resize.c,
 * core/api/partition.c).
 */
#include "space/allot.h"

#include <errno.h>

#include "space/place.h"
#include "util/error.h"

/* ---- units ------------------------------------------------------------------------- */

static struct hal_partition *partition_of(struct list *node)
{
	return container_of(node, struct hal_partition, on_device);
}

static const struct hal_partition *partition_by_index(struct hal_device *dev,
						      uint32_t index)
{
	hal_list_for_each (it, &dev->space.partitions)
		if (partition_of(it)->desc.index == index)
			return partition_of(it);
	return NULL;
}

/* Fail because no free rectangle has that number of units.  except: the rectangle of the
 * partition that is being resized, whose units count as free; NULL: a new partition. */
static COLD int units_short(struct hal_device *dev, uint32_t units,
			    const struct place_rect *except)
{
	const char *own = except != NULL ? " (with the partition's own)" : "";
	uint32_t all = dev->info.unit_rows * dev->info.unit_cols;
	struct place *place = &dev->space.place;
	struct place_rect r;
	uint32_t left, owner = 0;

	if (except != NULL) {
		owner = place_owner(place, except, NULL);
		place_release(place, except);
	}
	left = place_left(place);
	place_largest(place, &r);
	if (except != NULL)
		place_take(place, except, owner);
	if ((dev->info.caps & HAL_CAP_GRID) != 0)
		return fail(ENOSPC,
			    "cannot place %u units: %u of %u units are free on %s%s, the "
			    "largest free rectangle is %u x %u (%u units); a number of "
			    "units needs one free rectangle of exactly that area",
			    units, left, all, dev->name, own, r.rows, r.cols,
			    r.rows * r.cols);
	return fail(ENOSPC,
		    "cannot place %u units: %u of %u units are free on %s%s, at most %u "
		    "of them adjacent",
		    units, left, all, dev->name, own, r.cols);
}

/* Fail with an error text that names the owner of r's units.  Units reserved by compact.c
 * have the owner PLAN_ROOM, which is no partition's number. */
static COLD int rect_taken(struct hal_device *dev, const struct place_rect *r,
			   uint32_t owner)
{
	const struct hal_partition *p = partition_by_index(dev, owner - 1);
	char text[64] = "space reserved for another partition";
	struct place_rect d = dev->space.plan.room;

	if (p == NULL && d.rows == 0)
		return fail(ENOSPC,
			    "rectangle %u x %u at row %u, column %u overlaps units that "
			    "hal_partitions_move has reserved until its point is reached",
			    r->rows, r->cols, r->row, r->col);
	if (p != NULL) {
		partition_describe(p, text, sizeof(text));
		d = rect_of(&p->desc);
	}
	return fail(ENOSPC,
		    "rectangle %u x %u at row %u, column %u overlaps %s (%u x %u at "
		    "row %u, column %u); %u units are free",
		    r->rows, r->cols, r->row, r->col, text, d.rows, d.cols, d.row, d.col,
		    place_left(&dev->space.place));
}

static int rect_check(struct hal_device *dev, const struct hal_partition_desc *d,
		      struct place_rect *r, const struct place_rect *except)
{
	uint32_t owner;

	*r = (struct place_rect){d->row, d->col, d->rows, d->cols};
	if (r->rows == 0 || r->cols == 0)
		return fail(EINVAL,
			    "a partition of %u x %u units has no area: rows and cols "
			    "must be at least 1",
			    r->rows, r->cols);
	if (r->row + r->rows > dev->info.unit_rows ||
	    r->col + r->cols > dev->info.unit_cols)
		return fail(
			EINVAL,
			"rectangle %u x %u at row %u, column %u reaches past the %u x %u "
			"units of %s",
			r->rows, r->cols, r->row, r->col, dev->info.unit_rows,
			dev->info.unit_cols, dev->name);
	if (d->units_floor != 0 && d->units_floor != r->rows * r->cols)
		return fail(EINVAL,
			    "units_floor is %u, but the rectangle %u x %u has %u units; "
			    "leave units_floor 0",
			    d->units_floor, r->rows, r->cols, r->rows * r->cols);
	owner = place_owner(&dev->space.place, r, except);
	return owner != 0 ? rect_taken(dev, r, owner) : 0;
}

static int ceiling_check(struct hal_device *dev, uint32_t floor, uint32_t ceiling)
{
	uint32_t all = dev->info.unit_rows * dev->info.unit_cols;

	if (ceiling == 0 || ceiling == floor)
		return 0;
	if (ceiling < floor)
		return fail(EINVAL, "units_ceiling %u is below the floor of %u", ceiling,
			    floor);
	if (ceiling > all)
		return fail(EINVAL, "units_ceiling %u is too large: %s has %u units",
			    ceiling, dev->name, all);
	if ((dev->info.caps & (HAL_CAP_RESIZE_IDLE | HAL_CAP_RESIZE_LIVE)) == 0)
		return fail(
			ENOTSUP,
			"units_ceiling %u is above the floor of %u, but partitions of "
			"%s cannot be resized",
			ceiling, floor, dev->name);
	return 0;
}

/* Set out to `units` units in full lines of `line` units each, or in a part of one line.
 * .rows is the length of a line and .cols their number.  Return false if neither fits. */
static bool in_lines(uint32_t units, uint32_t line, struct place_rect *out)
{
	if (units > line && units % line != 0)
		return false;
	out->rows = units < line ? units : line;
	out->cols = units < line ? 1 : units / line;
	return true;
}

static uint32_t root_of(uint32_t units)
{
	uint32_t root = 0;

	while ((uint64_t)(root + 1) * (root + 1) <= units)
		root++;
	return root;
}

int allot_shape(const struct hal_device *dev, const struct hal_partition_desc *d,
		uint32_t units, struct place_rect *out)
{
	const uint32_t rows = dev->info.unit_rows, cols = dev->info.unit_cols;
	uint32_t side;

	out->rows = 0;
	out->cols = 0;
	switch (d->shape) {
	case HAL_SHAPE_COLUMNS:
		if (!in_lines(units, rows, out))
			return fail(EINVAL,
				    "HAL_SHAPE_COLUMNS: %u units are neither whole "
				    "columns of %u units nor a part of one",
				    units, rows);
		return 0;
	case HAL_SHAPE_ROWS:
		if (!in_lines(units, cols, out))
			return fail(EINVAL,
				    "HAL_SHAPE_ROWS: %u units are neither whole rows of "
				    "%u units nor a part of one",
				    units, cols);
		side = out->rows;
		out->rows = out->cols;
		out->cols = side;
		return 0;
	case HAL_SHAPE_SQUARE:
		if ((dev->info.caps & HAL_CAP_GRID) == 0)
			return fail(ENOTSUP, "HAL_SHAPE_SQUARE: units of %s form a line",
				    dev->name);
		side = root_of(units);
		if (side * side != units)
			return fail(EINVAL,
				    "HAL_SHAPE_SQUARE: %u units form no square; %u do",
				    units, side * side);
		out->rows = side;
		out->cols = side;
		return 0;
	default:
		return 0;
	}
}

/* Find a rectangle of HAL_SHAPE_COLUMNS for a new elastic partition.  Units that it gains
 * or loses later are then adjacent to its own (layout.c). */
static bool find_columns(struct hal_device *dev, uint32_t units, struct place_rect *out)
{
	struct place_rect r;

	return in_lines(units, dev->info.unit_rows, &r) &&
	       place_find_shape(&dev->space.place, r.rows, r.cols, NULL, out);
}

/* Find a free rectangle for the count of units that d requests.  Return 0 or -errno. */
static int find_count(struct hal_device *dev, const struct hal_partition_desc *d,
		      uint32_t units, bool is_new, const struct place_rect *except,
		      struct place_rect *out)
{
	struct place *place = &dev->space.place;
	struct place_rect shape;
	int err = allot_shape(dev, d, units, &shape);

	if (err != 0)
		return err;
	if (shape.rows == 0) {
		if (is_new && d->units_ceiling > d->units_floor &&
		    find_columns(dev, units, out))
			return 0;
		return place_find(place, units, except, out)
			       ? 0
			       : units_short(dev, units, except);
	}
	if (place_find_shape(place, shape.rows, shape.cols, except, out))
		return 0;
	return fail(ENOSPC,
		    "cannot place %u units: no rectangle of %u x %u units, as "
		    "hal_partition_desc.shape requests, is free on %s; %u units are free",
		    units, shape.rows, shape.cols, dev->name, place_left(place));
}

int allot_units(struct hal_device *dev, const struct hal_partition_desc *d,
		struct hal_bk_partition_desc *out, const struct place_rect *except)
{
	uint32_t all = dev->info.unit_rows * dev->info.unit_cols;
	struct place_rect r;
	int err;

	if (names_place(d)) {
		err = rect_check(dev, d, &r, except);
		if (err == 0)
			err = ceiling_check(dev, r.rows * r.cols, d->units_ceiling);
		if (err != 0)
			return err;
	} else {
		if (d->units_floor == 0)
			return fail(EINVAL,
				    "the partition has no units: set units_floor, or "
				    "rows and cols");
		if (d->units_floor > all)
			return units_short(dev, d->units_floor, except);
		err = ceiling_check(dev, d->units_floor, d->units_ceiling);
		if (err == 0)
			err = find_count(dev, d, allot_wants(d, out->units),
					 out->units == 0, except, &r);
		if (err != 0)
			return err;
	}
	out->row = (uint16_t)r.row;
	out->col = (uint16_t)r.col;
	out->rows = (uint16_t)r.rows;
	out->cols = (uint16_t)r.cols;
	out->units = r.rows * r.cols;
	return 0;
}

/* ---- colours, isolation, index ----------------------------------------------------- */

/* Choose the channels of a new partition: those of mask, or if mask is 0 all channels
 * that no partition owns. */
static int choose_colors(struct hal_device *dev, uint64_t mask, uint64_t *out)
{
	uint32_t n = dev->info.colors;
	uint64_t all = n == 64 ? UINT64_MAX : (UINT64_C(1) << n) - 1;
	uint64_t owned = 0;

	if (n == 0 && mask != 0)
		return fail(ENOTSUP,
			    "colours 0x%llx requested, but %s reports no memory "
			    "channels",
			    U64(mask), dev->name);
	if ((mask & ~all) != 0)
		return fail(EINVAL, "colours 0x%llx requested, but %s has only 0x%llx",
			    U64(mask), dev->name, U64(all));
	hal_list_for_each (it, &dev->space.partitions) {
		const struct hal_partition *p = partition_of(it);
		char text[64];

		if (n == 0)
			break;
		if (!p->memory.own_colors)
			continue;
		owned |= p->desc.color_mask;
		if ((mask & p->desc.color_mask) == 0)
			continue;
		partition_describe(p, text, sizeof(text));
		return fail(ENOSPC,
			    "colours 0x%llx requested, but 0x%llx of them belong to %s",
			    U64(mask), U64(mask & p->desc.color_mask), text);
	}
	*out = mask != 0 ? mask : all & ~owned;
	if (n != 0 && *out == 0)
		return fail(ENOSPC,
			    "no colour is free: other partitions own all of 0x%llx",
			    U64(all));
	return 0;
}

/* Choose the wide placement of a bimodal partition: all channels that no other partition
 * owns. */
static int choose_wide(struct hal_device *dev, struct hal_bk_partition_desc *out)
{
	uint32_t n = dev->info.colors;
	uint64_t mask = n == 64 ? UINT64_MAX : (UINT64_C(1) << n) - 1;

	hal_list_for_each (it, &dev->space.partitions) {
		const struct hal_partition *p = partition_of(it);

		if (p->memory.own_colors)
			mask &= ~p->desc.color_mask;
	}
	if (mask == out->color_mask)
		return fail(ENOSPC,
			    "HAL_PARTITION_BIMODAL: no colour besides 0x%llx is free "
			    "for the wide placement",
			    U64(mask));
	out->wide_mask = mask;
	return 0;
}

static const char *const isolations[] = {"none", "advisory", "enforced"};

uint32_t partition_isolation(const struct hal_device *dev,
			     const struct hal_bk_partition_desc *at)
{
	uint32_t (*ask)(void *, const struct hal_bk_partition_desc *) =
		dev->table->cold.isolation;
	uint32_t has = ask != NULL ? ask(dev->bk, at) : dev->info.compute_isolation;

	return has <= HAL_ISOLATION_ENFORCED ? has : HAL_ISOLATION_NONE;
}

int allot_isolation_check(const struct hal_device *dev,
			  const struct hal_bk_partition_desc *at, uint32_t min)
{
	uint32_t has = partition_isolation(dev, at);

	if (min <= has)
		return 0;
	if (dev->table->cold.isolation == NULL)
		return fail(ENOTSUP, "isolation %s requested, but %s provides %s",
			    isolations[min], dev->name, isolations[has]);
	return fail(ENOTSUP,
		    "isolation %s requested, but the %u units at row %u, column %u of "
		    "%s provide %s",
		    isolations[min], at->units, at->row, at->col, dev->name,
		    isolations[has]);
}

/* Set *index to the lowest free index from first to end - 1. */
static int choose_index(struct hal_device *dev, uint32_t first, uint32_t end,
			uint32_t *index)
{
	for (uint32_t w = first / 64; w < (end + 63) / 64; w++) {
		uint64_t open = ~dev->space.partition_map[w];

		if (w == first / 64)
			open &= UINT64_MAX << first % 64;
		*index = w * 64 + (open != 0 ? (uint32_t)__builtin_ctzll(open) : 0);
		if (open != 0 && *index < end)
			return 0;
	}
	return fail(ENOSPC, "all %u %s of %s are in use; destroy one first", end - first,
		    first == 0 ? "partitions" : "guests", dev->name);
}

/* Choose channels and index of a guest.  A guest uses its host's units.  It uses all of
 * its host's channels unless d names some of them. */
static int choose_guest(struct hal_device *dev, const struct hal_partition_desc *d,
			struct hal_bk_partition_desc *out)
{
	const struct hal_bk_partition_desc *host = &d->host->desc;
	uint32_t max = dev->info.partitions_max;
	int err = allot_isolation_check(dev, host, d->min_isolation);

	if (err != 0)
		return err;
	if ((d->color_mask & ~host->color_mask) != 0)
		return fail(EINVAL,
			    "colours 0x%llx requested, but the host, partition %u "
			    "\"%s\", has only 0x%llx",
			    U64(d->color_mask), host->index, host->name,
			    U64(host->color_mask));
	out->color_mask = d->color_mask != 0 ? d->color_mask : host->color_mask;
	out->memory_bytes = d->memory_bytes;
	out->address_bytes = desc_limits(d).memory_limit;
	out->host = d->host->bk;
	return choose_index(dev, max, partition_numbers(dev), &out->index);
}

int allot_partition(struct hal_device *dev, const struct hal_partition_desc *d,
		    struct hal_bk_partition_desc *out)
{
	int err;

	if (d->host != NULL)
		return choose_guest(dev, d, out);
	err = allot_units(dev, d, out, NULL);
	if (err == 0)
		err = allot_isolation_check(dev, out, d->min_isolation);
	if (err == 0)
		err = choose_colors(dev, d->color_mask, &out->color_mask);
	if (err == 0 && (d->flags & HAL_PARTITION_BIMODAL) != 0)
		err = choose_wide(dev, out);
	if (err == 0)
		err = choose_index(dev, 0, dev->info.partitions_max, &out->index);
	out->memory_bytes = d->memory_bytes;
	out->address_bytes = desc_limits(d).memory_limit;
	return err;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* resize.c - who owns which units, colours and how much memory; moving a border. */
#include "space/resize.h"

#include <errno.h>
#include <string.h>

#include "memory/evict.h"
#include "memory/quota.h"
#include "observe/trace.h"
#include "sched/policy.h"
#include "space/place.h"
#include "space/plan.h"
#include "util/error.h"

static struct hal_partition *partition_at(struct list *node)
{
	return container_of(node, struct hal_partition, on_device);
}

/* ---- units ------------------------------------------------------------------------- */

static const struct hal_partition *partition_number(struct hal_device *dev,
						    uint32_t index)
{
	hal_list_for_each (it, &dev->partitions)
		if (partition_at(it)->desc.index == index)
			return partition_at(it);
	return NULL;
}

static COLD int units_short(struct hal_device *dev, uint32_t units)
{
	uint32_t all = dev->info.unit_rows * dev->info.unit_cols;
	uint32_t left = place_left(&dev->place);
	struct place_rect r;

	place_largest(&dev->place, &r);
	if ((dev->info.caps & HAL_CAP_GRID) != 0)
		return fail(
			ENOSPC,
			"%u units asked for, %u of %u are left on %s, at most %u x %u "
			"(%u) of them in one rectangle, and a count needs a rectangle "
			"of exactly that area",
			units, left, all, dev->name, r.rows, r.cols, r.rows * r.cols);
	return fail(ENOSPC,
		    "%u units asked for, %u of %u are left on %s, at most %u of them "
		    "side by side",
		    units, left, all, dev->name, r.cols);
}

static COLD int rect_taken(struct hal_device *dev, const struct place_rect *r,
			   uint32_t owner)
{
	const struct hal_partition *p = partition_number(dev, owner - 1);
	char text[64] = "room that is made for another";
	struct place_rect d = dev->plan.room;

	if (p != NULL) {
		partition_describe(p, text, sizeof(text));
		d = rect_of(&p->desc);
	}
	return fail(ENOSPC,
		    "rectangle %u x %u at row %u, column %u overlaps %s (%u x %u at "
		    "row %u, column %u); %u units are left",
		    r->rows, r->cols, r->row, r->col, text, d.rows, d.cols, d.row, d.col,
		    place_left(&dev->place));
}

static int rect_check(struct hal_device *dev, const struct hal_partition_desc *d,
		      struct place_rect *r, const struct place_rect *except)
{
	uint32_t owner;

	*r = (struct place_rect){d->row, d->col, d->rows, d->cols};
	if (r->rows == 0 || r->cols == 0)
		return fail(EINVAL, "a partition of %u x %u units has no area", r->rows,
			    r->cols);
	if (r->row + r->rows > dev->info.unit_rows ||
	    r->col + r->cols > dev->info.unit_cols)
		return fail(
			EINVAL,
			"rectangle %u x %u at row %u, column %u reaches past the %u x %u "
			"units of %s",
			r->rows, r->cols, r->row, r->col, dev->info.unit_rows,
			dev->info.unit_cols, dev->name);
	if (d->units_floor != 0 && d->units_floor != r->rows * r->cols)
		return fail(EINVAL, "units_floor is %u, the rectangle %u x %u has %u",
			    d->units_floor, r->rows, r->cols, r->rows * r->cols);
	owner = place_owner(&dev->place, r, except);
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
		return fail(EINVAL, "units_ceiling %u: %s has %u units", ceiling,
			    dev->name, all);
	if ((dev->info.caps & (HAL_CAP_RESIZE_IDLE | HAL_CAP_RESIZE_LIVE)) == 0)
		return fail(ENOTSUP,
			    "units_ceiling %u above the floor of %u: partitions of %s "
			    "cannot be resized",
			    ceiling, floor, dev->name);
	return 0;
}

/* A new partition that others' borders are to pass has whole columns of a grid, or a part
 * of one, so that what it has and what it is given later lies side by side (layout.c). */
static bool find_columns(struct hal_device *dev, uint32_t units, struct place_rect *out)
{
	uint32_t rows = dev->info.unit_rows;

	if (units < rows)
		return place_find_shape(&dev->place, units, 1, out);
	return units % rows == 0 &&
	       place_find_shape(&dev->place, rows, units / rows, out);
}

/* out has the units it has now; 0: none yet. */
static int plan_units(struct hal_device *dev, const struct hal_partition_desc *d,
		      struct hal_bk_partition_desc *out, const struct place_rect *except)
{
	uint32_t all = dev->info.unit_rows * dev->info.unit_cols;
	uint32_t units;
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
				    "a partition of no units: set units_floor, or "
				    "rows and cols");
		if (d->units_floor > all)
			return units_short(dev, d->units_floor);
		err = ceiling_check(dev, d->units_floor, d->units_ceiling);
		if (err != 0)
			return err;
		units = resize_wants(d, out->units);
		if (!(except == NULL && d->units_ceiling > d->units_floor &&
		      find_columns(dev, units, &r)) &&
		    !place_find(&dev->place, units, except, &r))
			return units_short(dev, units);
	}
	out->row = (uint16_t)r.row;
	out->col = (uint16_t)r.col;
	out->rows = (uint16_t)r.rows;
	out->cols = (uint16_t)r.cols;
	out->units = r.rows * r.cols;
	return 0;
}

/* ---- colours, isolation, index ----------------------------------------------------- */

static int plan_colors(struct hal_device *dev, uint64_t mask, uint64_t *out)
{
	uint32_t n = dev->info.colors;
	uint64_t all = n == 64 ? UINT64_MAX : (UINT64_C(1) << n) - 1;
	uint64_t owned = 0;

	if (n == 0 && mask != 0)
		return fail(ENOTSUP,
			    "colours 0x%llx asked for, but %s knows no memory "
			    "channels",
			    U64(mask), dev->name);
	if ((mask & ~all) != 0)
		return fail(EINVAL, "colours 0x%llx asked for, %s has 0x%llx", U64(mask),
			    dev->name, U64(all));
	hal_list_for_each (it, &dev->partitions) {
		const struct hal_partition *p = partition_at(it);
		char text[64];

		if (n == 0)
			break;
		if (!p->own_colors)
			continue;
		owned |= p->desc.color_mask;
		if ((mask & p->desc.color_mask) == 0)
			continue;
		partition_describe(p, text, sizeof(text));
		return fail(ENOSPC,
			    "colours 0x%llx asked for, 0x%llx of them belong to %s",
			    U64(mask), U64(mask & p->desc.color_mask), text);
	}
	*out = mask != 0 ? mask : all & ~owned;
	if (n != 0 && *out == 0)
		return fail(ENOSPC, "no colour is left: partitions own all of 0x%llx",
			    U64(all));
	return 0;
}

/* All channels but those that others have named. */
static int plan_wide(struct hal_device *dev, struct hal_bk_partition_desc *out)
{
	uint32_t n = dev->info.colors;
	uint64_t mask = n == 64 ? UINT64_MAX : (UINT64_C(1) << n) - 1;

	hal_list_for_each (it, &dev->partitions) {
		const struct hal_partition *p = partition_at(it);

		if (p->own_colors)
			mask &= ~p->desc.color_mask;
	}
	if (mask == out->color_mask)
		return fail(ENOSPC,
			    "HAL_PARTITION_BIMODAL: beside colours 0x%llx no other is "
			    "left that nobody has named",
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

static int isolation_check(const struct hal_device *dev,
			   const struct hal_bk_partition_desc *at, uint32_t min)
{
	uint32_t has = partition_isolation(dev, at);

	if (min <= has)
		return 0;
	if (dev->table->cold.isolation == NULL)
		return fail(ENOTSUP, "isolation %s asked for, %s has %s", isolations[min],
			    dev->name, isolations[has]);
	return fail(ENOTSUP,
		    "isolation %s asked for, the %u units at row %u, column %u of %s "
		    "have %s",
		    isolations[min], at->units, at->row, at->col, dev->name,
		    isolations[has]);
}

/* The first free number of first .. end-1. */
static int plan_index(struct hal_device *dev, uint32_t first, uint32_t end,
		      uint32_t *index)
{
	for (uint32_t w = first / 64; w < (end + 63) / 64; w++) {
		uint64_t open = ~dev->partition_map[w];

		if (w == first / 64)
			open &= UINT64_MAX << first % 64;
		*index = w * 64 + (open != 0 ? (uint32_t)__builtin_ctzll(open) : 0);
		if (open != 0 && *index < end)
			return 0;
	}
	return fail(ENOSPC, "all %u %s of %s exist", end - first,
		    first == 0 ? "partitions" : "guests", dev->name);
}

/* A guest: units, and channels unless it says which, are its host's. */
static int plan_guest(struct hal_device *dev, const struct hal_partition_desc *d,
		      struct hal_bk_partition_desc *out)
{
	const struct hal_bk_partition_desc *host = &d->host->desc;
	uint32_t max = dev->info.partitions_max;
	int err = isolation_check(dev, host, d->min_isolation);

	if (err != 0)
		return err;
	if ((d->color_mask & ~host->color_mask) != 0)
		return fail(EINVAL,
			    "colours 0x%llx asked for, the host, partition %u \"%s\", "
			    "has 0x%llx",
			    U64(d->color_mask), host->index, host->name,
			    U64(host->color_mask));
	out->color_mask = d->color_mask != 0 ? d->color_mask : host->color_mask;
	out->memory_bytes = d->memory_bytes;
	out->address_bytes = d->memory_limit;
	out->host = d->host->bk;
	return plan_index(dev, max, partition_numbers(dev), &out->index);
}

/* ---- there and gone ---------------------------------------------------------------- */

void resize_limits(struct hal_partition *part, const struct hal_partition_desc *d,
		   uint32_t units)
{
	part->floor_next = d->units_floor != 0 ? d->units_floor : units;
	part->ceiling_next = d->units_ceiling != 0 ? d->units_ceiling : part->floor_next;
	part->pinned_next = names_place(d);
}

void resize_keep_limits(struct hal_partition *part)
{
	part->floor_next = part->view.floor;
	part->ceiling_next = part->view.ceiling;
	part->pinned_next = part->pinned;
}

int partition_plan(struct hal_device *dev, const struct hal_partition_desc *d,
		   struct hal_bk_partition_desc *out)
{
	int err;

	if (d->host != NULL)
		return plan_guest(dev, d, out);
	err = plan_units(dev, d, out, NULL);
	if (err == 0)
		err = isolation_check(dev, out, d->min_isolation);
	if (err == 0)
		err = plan_colors(dev, d->color_mask, &out->color_mask);
	if (err == 0 && (d->flags & HAL_PARTITION_BIMODAL) != 0)
		err = plan_wide(dev, out);
	if (err == 0)
		err = plan_index(dev, 0, dev->info.partitions_max, &out->index);
	out->memory_bytes = d->memory_bytes;
	out->address_bytes = d->memory_limit;
	return err;
}

void partition_enter(struct hal_partition *p)
{
	struct hal_device *dev = p->dev;
	const struct place_rect r = rect_of(&p->desc);

	if (p->host == p)
		place_take(&dev->place, &r, partition_holder(p));
	else
		p->host->guest_count++;
	p->obj.id = p->desc.index;
	p->view.index = p->desc.index;
	p->view.units = p->desc.units;
	p->view.color_mask = p->desc.color_mask;
	p->view.floor = p->floor_next;
	p->view.ceiling = p->ceiling_next;
	p->pinned = p->pinned_next;
	dev->partition_map[p->desc.index / 64] |= UINT64_C(1) << p->desc.index % 64;
	dev->partition_count++;
	list_add_before(&dev->partitions, &p->on_device);
	trace_partition(dev, p);
}

void partition_leave(struct hal_partition *p)
{
	struct hal_device *dev = p->dev;
	const struct place_rect r = rect_of(&p->desc);

	if (p->host == p)
		place_release(&dev->place, &r);
	else
		p->host->guest_count--;
	trace_partition_gone(dev, p);
	account_add(&dev->past, &p->past);
	account_fini(&p->past);
	list_del(&p->on_device);
	list_del(&p->runnable);
	dev->partition_map[p->desc.index / 64] &= ~(UINT64_C(1) << p->desc.index % 64);
	dev->partition_count--;
}

/* ---- resize ------------------------------------------------------------------------ */

int resize_check(const struct hal_partition *p, const struct hal_partition_desc *d)
{
	const struct hal_device *dev = p->dev;

	if ((dev->info.caps & (HAL_CAP_RESIZE_IDLE | HAL_CAP_RESIZE_LIVE)) == 0)
		return fail(ENOTSUP, "partitions of %s cannot be resized", dev->name);
	if (p->moving.units != 0 || plan_has(p))
		return fail(EBUSY, "partition %u \"%s\" is being resized already",
			    p->desc.index, p->name);
	if (p->inflight != 0 && (dev->info.caps & HAL_CAP_RESIZE_LIVE) == 0)
		return fail(EBUSY,
			    "partition %u \"%s\" has %u commands on the device, and %s "
			    "resizes only quiet partitions",
			    p->desc.index, p->name, p->inflight, dev->name);
	if (d->color_mask != 0 && d->color_mask != p->desc.color_mask)
		return fail(ENOTSUP,
			    "a resize cannot change the colours 0x%llx to 0x%llx",
			    U64(p->desc.color_mask), U64(d->color_mask));
	if (d->bandwidth != 0 && d->bandwidth != p->bandwidth)
		return fail(ENOTSUP, "a resize cannot change the bandwidth %llu to %llu",
			    U64(p->bandwidth), U64(d->bandwidth));
	if (d->flags != 0 && !p->bimodal)
		return fail(ENOTSUP, "a resize cannot make a partition bimodal");
	if (d->memory_limit != 0 &&
	    d->memory_limit !=
		    (p->evict != NULL ? p->evict->limit : counter_get(&p->quota)))
		return fail(ENOTSUP, "a resize cannot change the memory_limit");
	if (p->evict != NULL && d->memory_bytes > p->evict->limit)
		return fail(EINVAL, "memory_bytes %llu: the memory_limit is %llu",
			    U64(d->memory_bytes), U64(p->evict->limit));
	if (d->memory_bytes != 0 && d->memory_bytes < counter_get(&p->memory_used))
		return fail(ENOSPC, "a quota of %llu bytes: %llu are in use",
			    U64(d->memory_bytes), U64(counter_get(&p->memory_used)));
	return 0;
}

/* A point that has failed stays so, but the partition may be asked again: that has a
 * timeline of its own. */
int resize_renew(struct hal_partition *part)
{
	struct hal_timeline *t;

	if (timeline_error(part->control) == 0)
		return 0;
	t = timeline_make(part->dev);
	if (t == NULL)
		return -ENOMEM;
	t->partition = part;
	t->older = part->control;
	part->control = t;
	atomic_store(&t->value, part->resize_count);
	t->seen = part->resize_count;
	return 0;
}

int resize_move(struct hal_partition *part, const struct hal_bk_partition_desc *to)
{
	struct hal_device *dev = part->dev;
	const struct place_rect r = rect_of(to);
	int err;

	part->moving = *to;
	err = dev->hot.resize(dev->hot_bk, part->bk, &part->moving,
			      (uint64_t)(uintptr_t)part | COOKIE_PARTITION);
	if (err != 0) {
		memset(&part->moving, 0, sizeof(part->moving));
		return err;
	}
	place_take(&dev->place, &r, partition_holder(part));
	if ((dev->info.caps & HAL_CAP_RESIZE_LIVE) == 0)
		part->inflight_max = 0; /* it needs to be quiet until it has moved */
	dev->pending++;
	part->resize_count++;
	return 0;
}

int resize_begin(struct hal_partition *part, const struct hal_partition_desc *d)
{
	struct hal_device *dev = part->dev;
	struct hal_bk_partition_desc to = part->desc;
	const struct place_rect self = rect_of(&part->desc);
	int err = resize_check(part, d);

	if (err == 0)
		err = plan_units(dev, d, &to, &self);
	if (err == 0)
		err = isolation_check(dev, &to, d->min_isolation);
	if (err == 0)
		err = resize_renew(part);
	if (err != 0)
		return err;
	part->quota_before = counter_get(&part->quota);
	err = quota_change(part, d->memory_bytes);
	if (err != 0)
		return err;
	if (d->memory_bytes != 0)
		to.memory_bytes = d->memory_bytes;
	resize_limits(part, d, to.units);
	err = resize_move(part, &to);
	if (err != 0)
		quota_undo(part);
	return err;
}

int resize_units(struct hal_partition *part, uint32_t units)
{
	const struct hal_partition_desc d = {.size = sizeof(d), .units_floor = units};
	const struct place_rect self = rect_of(&part->desc);
	struct hal_bk_partition_desc to = part->desc;
	int err = resize_check(part, &d);

	to.units = units;
	if (err == 0)
		err = plan_units(part->dev, &d, &to, &self);
	if (err == 0)
		err = isolation_check(part->dev, &to,
				      partition_isolation(part->dev, &part->desc));
	if (err == 0)
		err = resize_renew(part);
	if (err != 0)
		return err;
	part->quota_before = counter_get(&part->quota);
	resize_keep_limits(part);
	err = resize_move(part, &to);
	part->policy_moves = err == 0;
	return err;
}

static void moved(struct hal_partition *part, int status, const char *why)
{
	struct hal_device *dev = part->dev;
	const struct place_rect from = rect_of(&part->desc);
	const struct place_rect to = rect_of(&part->moving);
	char text[160];

	if (status == 0) {
		place_settle(&dev->place, &from, &to, partition_holder(part));
		/* Number and colours stay, and any thread may look at them. */
		part->desc.units = part->moving.units;
		part->desc.row = part->moving.row;
		part->desc.col = part->moving.col;
		part->desc.rows = part->moving.rows;
		part->desc.cols = part->moving.cols;
		part->desc.memory_bytes = part->moving.memory_bytes;
		part->view.floor = part->floor_next;
		part->view.ceiling = part->ceiling_next;
		part->pinned = part->pinned_next;
		part->moved_ns = dev->now;
	} else {
		place_settle(&dev->place, &to, &from, partition_holder(part));
		quota_undo(part);
	}
	memset(&part->moving, 0, sizeof(part->moving));
	part->policy_moves = false;
	part->inflight_max = dev->partition_inflight;
	trace_partition(dev, part);
	if (status == 0) {
		timeline_raise(part->control, part->resize_count, dev);
	} else {
		format_text(text, sizeof(text), "the device refused to resize%s%s",
			    why[0] != '\0' ? ": " : "", why);
		timeline_fail(part->control, status, text, dev);
	}
	if (dev->plan.moved != NULL)
		dev->plan.moved(part, status == 0);
	policy_changed(part, NULL);
	partition_runnable(part);
}

void resize_done(const struct hal_bk_event *ev)
{
	struct hal_partition *part =
		(void *)(uintptr_t)(ev->cookie & ~COOKIE_PARTITION); /* NOLINT */

	if (part->moving.units != 0)
		moved(part, ev->status, ev->fault);
}

void resize_lost(struct hal_partition *part)
{
	if (part->moving.units != 0)
		moved(part, -EIO, "the device is lost");
}

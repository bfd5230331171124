/* SPDX-License-Identifier: Apache-2.0 */
/* partition.c - who owns which units, colours and how much memory. */
#include "internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define U64(x) ((unsigned long long)(x))

static struct hal_partition *partition_at(struct list *node)
{
	return container_of(node, struct hal_partition, on_device);
}

/* A text such as: partition 1 "camera". */
static void partition_describe(const struct hal_partition *p, char *text, size_t size)
{
	format_text(text, size, "partition %u \"%s\"", p->desc.index, p->name);
}

/* ---- units
 * ------------------------------------------------------------------------------- */

struct rect {
	uint32_t row, col, rows, cols;
};

static bool rect_meets(const struct rect *r, const struct hal_bk_partition_desc *d)
{
	return d->units > 0 && r->row < (uint32_t)d->row + d->rows &&
	       d->row < r->row + r->rows && r->col < (uint32_t)d->col + d->cols &&
	       d->col < r->col + r->cols;
}

/* Who has a unit of r; except may be NULL. */
static struct hal_partition *rect_owner(struct hal_device *dev, const struct rect *r,
					const struct hal_partition *except)
{
	hal_list_for_each (it, &dev->partitions) {
		struct hal_partition *p = partition_at(it);

		if (p != except && (rect_meets(r, &p->desc) || rect_meets(r, &p->moving)))
			return p;
	}
	return NULL;
}

static bool rect_place(struct hal_device *dev, struct rect *r,
		       const struct hal_partition *except)
{
	for (r->row = 0; r->row + r->rows <= dev->info.unit_rows; r->row++) {
		r->col = 0;
		while (r->col + r->cols <= dev->info.unit_cols) {
			const struct hal_partition *p = rect_owner(dev, r, except);

			if (p == NULL)
				return true;
			/* Nothing fits before the end of what is in the way. */
			r->col = rect_meets(r, &p->desc)
					 ? (uint32_t)p->desc.col + p->desc.cols
					 : (uint32_t)p->moving.col + p->moving.cols;
		}
	}
	return false;
}

/* The squarest free rectangle of exactly units; of two as square the wider, then the
 * first in reading order. */
static bool rect_find(struct hal_device *dev, uint32_t units, struct rect *r,
		      const struct hal_partition *except)
{
	uint32_t side = 1;

	while ((uint64_t)(side + 1) * (side + 1) <= units)
		side++;
	for (; side > 0; side--) {
		if (units % side != 0)
			continue;
		r->rows = side;
		r->cols = units / side;
		if (r->rows <= dev->info.unit_rows && r->cols <= dev->info.unit_cols &&
		    rect_place(dev, r, except))
			return true;
		r->rows = units / side;
		r->cols = side;
		if (r->rows <= dev->info.unit_rows && r->cols <= dev->info.unit_cols &&
		    rect_place(dev, r, except))
			return true;
	}
	return false;
}

/* The largest free rectangle there is: tells what can still be asked for. */
static void rect_largest(struct hal_device *dev, struct rect *best)
{
	memset(best, 0, sizeof(*best));
	for (uint32_t rows = dev->info.unit_rows; rows > 0; rows--) {
		uint32_t cols = dev->info.unit_cols;

		while (cols > 0 && rows * cols > best->rows * best->cols) {
			struct rect r = {.rows = rows, .cols = cols};

			if (rect_place(dev, &r, NULL)) {
				*best = r;
				break;
			}
			cols--;
		}
	}
}

static uint32_t units_left(struct hal_device *dev)
{
	uint32_t taken = 0;

	hal_list_for_each (it, &dev->partitions) {
		const struct hal_partition *p = partition_at(it);

		taken +=
			p->moving.units > p->desc.units ? p->moving.units : p->desc.units;
	}
	return dev->info.unit_rows * dev->info.unit_cols - taken;
}

static int units_short(struct hal_device *dev, uint32_t units)
{
	uint32_t all = dev->info.unit_rows * dev->info.unit_cols;
	struct rect r;

	rect_largest(dev, &r);
	if ((dev->info.caps & HAL_CAP_GRID) != 0)
		return fail(
			ENOSPC,
			"%u units asked for, %u of %u are left on %s, at most %u x %u "
			"(%u) of them in one rectangle, and a count needs a rectangle "
			"of exactly that area",
			units, units_left(dev), all, dev->name, r.rows, r.cols,
			r.rows * r.cols);
	return fail(ENOSPC,
		    "%u units asked for, %u of %u are left on %s, at most %u of them "
		    "side by side",
		    units, units_left(dev), all, dev->name, r.cols);
}

static int rect_check(struct hal_device *dev, const struct hal_partition_desc *d,
		      struct rect *r, const struct hal_partition *except)
{
	const struct hal_partition *owner;
	char text[64];

	*r = (struct rect){d->row, d->col, d->rows, d->cols};
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
	owner = rect_owner(dev, r, except);
	if (owner != NULL) {
		partition_describe(owner, text, sizeof(text));
		return fail(
			ENOSPC,
			"rectangle %u x %u at row %u, column %u overlaps %s (%u x %u at "
			"row %u, column %u); %u units are left",
			r->rows, r->cols, r->row, r->col, text, owner->desc.rows,
			owner->desc.cols, owner->desc.row, owner->desc.col,
			units_left(dev));
	}
	return 0;
}

static int take_units(struct hal_device *dev, const struct hal_partition_desc *d,
		      struct hal_bk_partition_desc *out,
		      const struct hal_partition *except)
{
	uint32_t all = dev->info.unit_rows * dev->info.unit_cols;
	struct rect r;
	int err;

	if (d->rows != 0 || d->cols != 0 || d->row != 0 || d->col != 0) {
		err = rect_check(dev, d, &r, except);
		if (err != 0)
			return err;
	} else {
		if (d->units_floor == 0)
			return fail(EINVAL,
				    "a partition of no units: set units_floor, or "
				    "rows and cols");
		if (d->units_floor > all || !rect_find(dev, d->units_floor, &r, except))
			return units_short(dev, d->units_floor);
	}
	if (d->units_ceiling != 0 && d->units_ceiling != r.rows * r.cols)
		return fail(ENOTSUP,
			    "units_ceiling %u: partitions of %s do not grow above "
			    "their floor of %u yet",
			    d->units_ceiling, dev->name, r.rows * r.cols);
	out->row = (uint16_t)r.row;
	out->col = (uint16_t)r.col;
	out->rows = (uint16_t)r.rows;
	out->cols = (uint16_t)r.cols;
	out->units = r.rows * r.cols;
	return 0;
}

/* ---- memory
 * ------------------------------------------------------------------------------- */

/* What partitions with a quota have been promised, and what those without one use. */
static uint64_t memory_taken(const struct hal_device *dev)
{
	uint64_t taken = 0;

	for (const struct list *it = dev->partitions.next; it != &dev->partitions;
	     it = it->next) {
		const struct hal_partition *p =
			container_of(it, struct hal_partition, on_device);

		taken +=
			p->desc.memory_bytes != 0 ? p->desc.memory_bytes : p->memory_used;
	}
	return taken;
}

uint64_t device_memory_left(const struct hal_device *dev)
{
	uint64_t taken = memory_taken(dev);

	return taken < dev->info.memory_bytes ? dev->info.memory_bytes - taken : 0;
}

/* Bytes the partition may still allocate. */
static uint64_t partition_memory_left(const struct hal_partition *p)
{
	if (p->desc.memory_bytes != 0)
		return p->desc.memory_bytes - p->memory_used;
	return device_memory_left(p->dev);
}

int partition_charge(struct hal_partition *part, uint64_t bytes, const char *what)
{
	uint64_t left = partition_memory_left(part);
	char text[64];

	partition_describe(part, text, sizeof(text));
	/* A device that does not say how much it has decides by itself. */
	if (bytes > left &&
	    (part->desc.memory_bytes != 0 || part->dev->info.memory_bytes != 0))
		return fail(ENOSPC, "%s of %llu bytes: %llu are left of the %s of %s",
			    what, U64(bytes), U64(left),
			    part->desc.memory_bytes != 0 ? "quota" : "free memory", text);
	part->memory_used += bytes;
	trace_memory(part->dev, part, part->dev->now);
	return 0;
}

void partition_release(struct hal_partition *part, uint64_t bytes)
{
	part->memory_used -= bytes;
	trace_memory(part->dev, part, part->dev->now);
}

static int take_memory(struct hal_device *dev, uint64_t bytes)
{
	uint64_t left = device_memory_left(dev);

	if (bytes == 0 || dev->info.memory_bytes == 0 || bytes <= left)
		return 0;
	return fail(ENOSPC, "%llu bytes of memory asked for, %llu of %llu are left on %s",
		    U64(bytes), U64(left), U64(dev->info.memory_bytes), dev->name);
}

/* ---- colours
 * ------------------------------------------------------------------------------- */

static int take_colors(struct hal_device *dev, uint64_t mask, uint64_t *out)
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

/* ---- create
 * --------------------------------------------------------------------------------- */

static int desc_import(struct hal_partition_desc *out,
		       const struct hal_partition_desc *in)
{
	int err =
		import_struct(out, sizeof(*out), sizeof(*out), in, "hal_partition_desc");

	if (err != 0)
		return err;
	if (out->flags != 0)
		return fail(EINVAL, "hal_partition_desc.flags 0x%x: none are known",
			    out->flags);
	if (out->reserved != 0)
		return fail(EINVAL, "hal_partition_desc.reserved is not 0");
	if (memchr(out->name, '\0', sizeof(out->name)) == NULL)
		return fail(EINVAL,
			    "hal_partition_desc.name does not end within %zu bytes",
			    sizeof(out->name));
	if (out->min_isolation > HAL_ISOLATION_ENFORCED)
		return fail(EINVAL,
			    "hal_partition_desc.min_isolation %u is not an isolation",
			    out->min_isolation);
	return 0;
}

static const char *const isolations[] = {"none", "advisory", "enforced"};

/* What a partition at these units has. */
static uint32_t isolation_at(const struct hal_device *dev,
			     const struct hal_bk_partition_desc *at)
{
	uint32_t (*ask)(void *, const struct hal_bk_partition_desc *) =
		dev->backend->table.cold.isolation;
	uint32_t has = ask != NULL ? ask(dev->bk, at) : dev->info.compute_isolation;

	return has <= HAL_ISOLATION_ENFORCED ? has : HAL_ISOLATION_NONE;
}

static int isolation_check(const struct hal_device *dev,
			   const struct hal_bk_partition_desc *at, uint32_t min)
{
	uint32_t has = isolation_at(dev, at);

	if (min <= has)
		return 0;
	if (dev->backend->table.cold.isolation == NULL)
		return fail(ENOTSUP, "isolation %s asked for, %s has %s", isolations[min],
			    dev->name, isolations[has]);
	return fail(ENOTSUP,
		    "isolation %s asked for, the %u units at row %u, column %u of %s "
		    "have %s",
		    isolations[min], at->units, at->row, at->col, dev->name,
		    isolations[has]);
}

static int take_index(struct hal_device *dev, uint32_t *index)
{
	for (uint32_t i = 0; i < dev->info.partitions_max; i++) {
		if ((dev->partition_map[i / 64] >> i % 64 & 1) != 0)
			continue;
		*index = i;
		return 0;
	}
	return fail(ENOSPC, "all %u partitions of %s exist", dev->info.partitions_max,
		    dev->name);
}

/* Under the lock. */
static int partition_plan(struct hal_device *dev, const struct hal_partition_desc *d,
			  struct hal_bk_partition_desc *out)
{
	int err;

	memset(out, 0, sizeof(*out));
	err = take_units(dev, d, out, NULL);
	if (err == 0)
		err = isolation_check(dev, out, d->min_isolation);
	if (err == 0)
		err = take_colors(dev, d->color_mask, &out->color_mask);
	if (err == 0)
		err = take_memory(dev, d->memory_bytes);
	if (err == 0)
		err = take_index(dev, &out->index);
	out->memory_bytes = d->memory_bytes;
	return err;
}

static void partition_init(struct hal_partition *p, struct hal_device *dev,
			   const struct hal_partition_desc *d)
{
	p->dev = dev;
	list_init(&p->on_device);
	list_init(&p->queues);
	list_init(&p->dirty);
	busy_init(&p->busy);
	p->shown = (dev->policy->flags & HAL_POLICY_LONE) == 0;
	timeline_init(&p->control, dev);
	p->control.partition = p;
	p->own_colors = d->color_mask != 0;
	memcpy(p->name, d->name, sizeof(p->name));
}

int hal_partition_create(struct hal_device *dev, const struct hal_partition_desc *desc,
			 struct hal_partition **out)
{
	struct hal_partition_desc d;
	struct hal_partition *p;
	int err;

	if (!OBJECT_OK(dev, OBJECT_DEVICE))
		return object_bad(dev, OBJECT_DEVICE);
	if (out == NULL)
		return fail(EINVAL, "hal_partition_create: part is NULL");
	err = desc_import(&d, desc);
	if (err != 0)
		return err;
	p = object_alloc(OBJECT_PARTITION, sizeof(*p));
	if (p == NULL)
		return -ENOMEM;
	partition_init(p, dev, &d);
	device_lock(dev);
	err = partition_plan(dev, &d, &p->desc);
	if (err == 0)
		err = dev->backend->table.cold.partition_create(dev->bk, &p->desc,
								&p->bk);
	if (err != 0)
		goto out;
	p->obj.id = p->desc.index;
	p->view.index = p->desc.index;
	p->view.units = p->desc.units;
	dev->partition_map[p->desc.index / 64] |= UINT64_C(1) << p->desc.index % 64;
	dev->partition_count++;
	list_add_before(&dev->partitions, &p->on_device);
	trace_partition(dev, p);
	*out = p;
out:
	device_unlock(dev);
	if (err != 0)
		object_free(OBJECT_PARTITION, p);
	return err;
}

int hal_partition_create_named(struct hal_device *dev, const char *name,
			       struct hal_partition **out)
{
	struct config_partition c;
	char text[384];
	int err;

	if (!OBJECT_OK(dev, OBJECT_DEVICE))
		return object_bad(dev, OBJECT_DEVICE);
	if (name == NULL)
		return fail(EINVAL, "hal_partition_create_named: name is NULL");
	err = config_partition(&dev->cfg, name, &c);
	if (err != 0)
		return err;
	err = hal_partition_create(dev, &c.desc, out);
	if (err != 0) {
		/* The line that asked for it says more than the call that tried. */
		format_text(text, sizeof(text), "%s", hal_last_error());
		err = fail(err, "%s: [partition \"%s\"]: %s", c.source, name, text);
	}
	return err;
}

/* ---- resize
 * ----------------------------------------------------------------------------------- */

static int resize_check(const struct hal_partition *p, const struct hal_partition_desc *d)
{
	const struct hal_device *dev = p->dev;

	if ((dev->info.caps & (HAL_CAP_RESIZE_IDLE | HAL_CAP_RESIZE_LIVE)) == 0)
		return fail(ENOTSUP, "partitions of %s cannot be resized", dev->name);
	if (p->moving.units != 0)
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
	if (d->memory_bytes != 0 && d->memory_bytes < p->memory_used)
		return fail(ENOSPC, "a quota of %llu bytes: %llu are in use",
			    U64(d->memory_bytes), U64(p->memory_used));
	return 0;
}

int hal_partition_resize(struct hal_partition *part,
			 const struct hal_partition_desc *desc, struct hal_point *done)
{
	struct hal_bk_partition_desc to;
	struct hal_partition_desc d;
	struct hal_device *dev;
	int err;

	if (!OBJECT_OK(part, OBJECT_PARTITION))
		return object_bad(part, OBJECT_PARTITION);
	err = desc_import(&d, desc);
	if (err != 0)
		return err;
	dev = part->dev;
	device_lock(dev);
	/* What has been submitted counts as in flight. */
	engine_intake(dev);
	to = part->desc;
	err = resize_check(part, &d);
	if (err == 0)
		err = take_units(dev, &d, &to, part);
	if (err == 0)
		err = isolation_check(dev, &to, d.min_isolation);
	if (err == 0 && d.memory_bytes > part->desc.memory_bytes)
		err = take_memory(dev, d.memory_bytes - (part->desc.memory_bytes != 0
								 ? part->desc.memory_bytes
								 : part->memory_used));
	if (err == 0) {
		if (d.memory_bytes != 0)
			to.memory_bytes = d.memory_bytes;
		err = engine_resize(part, &to);
	}
	if (err == 0 && done != NULL) {
		done->timeline = &part->control;
		done->value = part->resize_count;
	}
	device_unlock(dev);
	if (err == 0)
		engine_kick(dev);
	return err;
}

/* The device has moved the partition. */
void partition_moved(struct hal_partition *part, int status)
{
	struct hal_device *dev = part->dev;

	if (status == 0) {
		part->desc = part->moving;
		part->view.units = part->desc.units;
	}
	memset(&part->moving, 0, sizeof(part->moving));
	if (dev->trace != NULL)
		trace_partition(dev, part);
	if (status == 0)
		timeline_set(&part->control, part->resize_count);
	else
		timeline_fail(&part->control, status, "the device refused to resize");
	engine_dirty(part);
}

/* ---- destroy, info
 * ------------------------------------------------------------------------------ */

int hal_partition_destroy(struct hal_partition *part)
{
	struct hal_device *dev;
	int err;

	if (part == NULL)
		return 0;
	if (!OBJECT_OK(part, OBJECT_PARTITION))
		return object_bad(part, OBJECT_PARTITION);
	err = callback_refuse("hal_partition_destroy");
	if (err != 0)
		return err;
	dev = part->dev;
	device_lock(dev);
	grave_sweep(dev);
	if (part->queue_count + part->buffer_count != 0) {
		err = fail(EBUSY,
			   "partition %u \"%s\" still has %u queues and %u buffers",
			   part->desc.index, part->name, part->queue_count,
			   part->buffer_count);
		goto out;
	}
	if (part->moving.units != 0 || atomic_load(&part->control.pending) != 0) {
		err = fail(EBUSY, "partition %u \"%s\" is being resized",
			   part->desc.index, part->name);
		goto out;
	}
	program_unbind_all(part);
	err = dev->backend->table.cold.partition_destroy(dev->bk, part->bk);
	if (err != 0)
		goto out;
	timeline_fini(&part->control);
	account_add(&dev->past, &part->past);
	list_del(&part->on_device);
	list_del(&part->dirty);
	dev->partition_map[part->desc.index / 64] &=
		~(UINT64_C(1) << part->desc.index % 64);
	dev->partition_count--;
	object_free(OBJECT_PARTITION, part);
out:
	device_unlock(dev);
	return err;
}

int hal_partition_get_info(const struct hal_partition *part,
			   struct hal_partition_info *info)
{
	struct hal_partition_info i = HAL_INIT(hal_partition_info);

	if (!OBJECT_OK(part, OBJECT_PARTITION))
		return object_bad(part, OBJECT_PARTITION);
	device_lock(part->dev);
	i.index = part->desc.index;
	memcpy(i.name, part->name, sizeof(i.name));
	i.row = part->desc.row;
	i.col = part->desc.col;
	i.rows = part->desc.rows;
	i.cols = part->desc.cols;
	i.units = part->desc.units;
	i.compute_isolation = isolation_at(part->dev, &part->desc);
	i.memory_bytes = part->desc.memory_bytes != 0
				 ? part->desc.memory_bytes
				 : part->memory_used + device_memory_left(part->dev);
	i.memory_used = part->memory_used;
	i.color_mask = part->desc.color_mask;
	device_unlock(part->dev);
	return export_struct(info, &i, sizeof(i),
			     offsetof(struct hal_partition_info, name),
			     "hal_partition_info");
}

int hal_partition_get_stats(struct hal_partition *part, struct hal_stats *stats)
{
	struct account sum;
	struct hal_stats s;

	if (!OBJECT_OK(part, OBJECT_PARTITION))
		return object_bad(part, OBJECT_PARTITION);
	device_lock(part->dev);
	sum = part->past;
	hal_list_for_each (it, &part->queues) {
		struct hal_queue *q = container_of(it, struct hal_queue, on_partition);

		account_add(&sum, &q->account);
		sum.submitted += queue_commands(q);
	}
	account_export(&s, &sum, part->busy.total,
		       part->dev->backend->table.hot.now(part->dev->bk));
	device_unlock(part->dev);
	return export_struct(stats, &s, sizeof(s), offsetof(struct hal_stats, now_ns),
			     "hal_stats");
}

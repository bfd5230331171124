/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resize.c - add, remove, resize and move partitions.
 *
 * A resize is asynchronous.  resize_move calls the device and holds the old and the new
 * place.  The device's event (resize_done) ends the move: the partition keeps one of the
 * two places, and its timeline .control reaches the next value or fails.
 */
#include "space/resize.h"

#include <errno.h>
#include <string.h>

#include "memory/evict.h"
#include "memory/quota.h"
#include "observe/trace.h"
#include "sched/policy.h"
#include "sched/suspend.h"
#include "space/allot.h"
#include "space/place.h"
#include "space/plan.h"
#include "util/error.h"
#include "util/log.h"

/* ---- add and remove ---------------------------------------------------------------- */

void resize_limits(struct hal_partition *part, const struct hal_partition_desc *d,
		   uint32_t units)
{
	part->floor_next = d->units_floor != 0 ? d->units_floor : units;
	part->ceiling_next = d->units_ceiling != 0 ? d->units_ceiling : part->floor_next;
	part->pinned_next = names_place(d);
}

void resize_keep_limits(struct hal_partition *part)
{
	part->floor_next = part->sched.policy_view.floor;
	part->ceiling_next = part->sched.policy_view.ceiling;
	part->pinned_next = part->pinned;
}

void partition_enter(struct hal_partition *p)
{
	struct hal_device *dev = p->dev;
	const struct place_rect r = rect_of(&p->desc);

	if (p->host == p)
		place_take(&dev->space.place, &r, partition_holder(p));
	else
		p->host->guest_count++;
	p->obj.id = p->desc.index;
	p->sched.policy_view.index = p->desc.index;
	p->sched.policy_view.units = p->desc.units;
	p->sched.policy_view.color_mask = p->desc.color_mask;
	p->sched.policy_view.floor = p->floor_next;
	p->sched.policy_view.ceiling = p->ceiling_next;
	p->pinned = p->pinned_next;
	dev->space.partition_map[p->desc.index / 64] |= UINT64_C(1) << p->desc.index % 64;
	dev->space.partition_count++;
	list_add_before(&dev->space.partitions, &p->on_device);
	trace_partition(dev, p);
}

void partition_leave(struct hal_partition *p)
{
	struct hal_device *dev = p->dev;
	const struct place_rect r = rect_of(&p->desc);

	if (p->host == p)
		place_release(&dev->space.place, &r);
	else
		p->host->guest_count--;
	trace_partition_gone(dev, p);
	account_add(&dev->observe.past, &p->observe.past);
	account_fini(&p->observe.past);
	list_del(&p->on_device);
	list_del(&p->command.runnable);
	dev->space.partition_map[p->desc.index / 64] &=
		~(UINT64_C(1) << p->desc.index % 64);
	dev->space.partition_count--;
}

/* ---- resize ------------------------------------------------------------------------ */

int resize_check(const struct hal_partition *p, const struct hal_partition_desc *d)
{
	const struct hal_device *dev = p->dev;

	if ((dev->info.caps & (HAL_CAP_RESIZE_IDLE | HAL_CAP_RESIZE_LIVE)) == 0)
		return fail(ENOTSUP, "partitions of %s cannot be resized", dev->name);
	if (p->moving.units != 0 || plan_has(p) || p->arranged)
		return fail(EBUSY, "partition %u \"%s\" is being resized already",
			    p->desc.index, p->name);
	if (p->command.inflight != 0 && (dev->info.caps & HAL_CAP_RESIZE_LIVE) == 0)
		return fail(EBUSY,
			    "partition %u \"%s\" has %u commands on the device, and %s "
			    "resizes only idle partitions; wait for them first",
			    p->desc.index, p->name, p->command.inflight, dev->name);
	if (d->color_mask != 0 && d->color_mask != p->desc.color_mask)
		return fail(ENOTSUP,
			    "a resize cannot change the colours from 0x%llx to 0x%llx",
			    U64(p->desc.color_mask), U64(d->color_mask));
	if (desc_limits(d).bandwidth != 0 &&
	    desc_limits(d).bandwidth != p->sched.bandwidth)
		return fail(ENOTSUP,
			    "a resize cannot change the bandwidth from %llu to %llu",
			    U64(p->sched.bandwidth), U64(desc_limits(d).bandwidth));
	if (d->flags != 0 && !p->memory.bimodal)
		return fail(ENOTSUP, "a resize cannot make a partition bimodal");
	if (desc_limits(d).memory_limit != 0 &&
	    desc_limits(d).memory_limit != (p->memory.evict != NULL
						    ? p->memory.evict->limit
						    : counter_get(&p->memory.quota)))
		return fail(ENOTSUP, "a resize cannot change the memory_limit");
	if (p->memory.evict != NULL && d->memory_bytes > p->memory.evict->limit)
		return fail(EINVAL,
			    "memory_bytes %llu is too large: the memory_limit is %llu",
			    U64(d->memory_bytes), U64(p->memory.evict->limit));
	if (d->memory_bytes != 0 && d->memory_bytes < counter_get(&p->memory.used))
		return fail(ENOSPC,
			    "cannot set a quota of %llu bytes: %llu bytes are in use",
			    U64(d->memory_bytes), U64(counter_get(&p->memory.used)));
	return 0;
}

/* A failed timeline stays failed.  So that the partition can be resized again, replace
 * .control by a new timeline with the same value.  The old one is kept in .older, because
 * threads may still wait for its points. */
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
	place_take(&dev->space.place, &r, partition_holder(part));
	if ((dev->info.caps & HAL_CAP_RESIZE_LIVE) == 0)
		part->command.inflight_max = 0; /* must stay idle until it has moved */
	dev->command.pending++;
	part->resize_count += !part->arranged;
	return 0;
}

int resize_begin(struct hal_partition *part, const struct hal_partition_desc *d)
{
	struct hal_device *dev = part->dev;
	struct hal_bk_partition_desc to = part->desc;
	const struct place_rect self = rect_of(&part->desc);
	int err = resize_check(part, d);

	if (err == 0)
		err = allot_units(dev, d, &to, &self);
	if (err == 0)
		err = allot_isolation_check(dev, &to, d->min_isolation);
	if (err == 0)
		err = resize_renew(part);
	if (err != 0)
		return err;
	part->quota_before = counter_get(&part->memory.quota);
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
		err = allot_units(part->dev, &d, &to, &self);
	if (err == 0)
		err = allot_isolation_check(part->dev, &to,
					    partition_isolation(part->dev, &part->desc));
	if (err == 0)
		err = resize_renew(part);
	if (err != 0)
		return err;
	part->quota_before = counter_get(&part->memory.quota);
	resize_keep_limits(part);
	err = resize_move(part, &to);
	part->policy_moves = err == 0;
	return err;
}

/* Publish the end of a move that part's own timeline counts. */
static void publish_end(struct hal_partition *part, int status, const char *why)
{
	char text[160];

	if (status == 0) {
		timeline_raise(part->control, part->resize_count, part->dev);
		return;
	}
	format_text(text, sizeof(text), "the device refused to resize%s%s",
		    why[0] != '\0' ? ": " : "", why);
	timeline_fail(part->control, status, text, part->dev);
}

static void log_resize(const struct hal_partition *part, int status, const char *why)
{
	const struct hal_bk_partition_desc *d = &part->desc;

	if (status == 0)
		LOG(HAL_LOG_INFO,
		    "%s: partition %u \"%s\" has %u units, %u x %u at %u,%u%s",
		    part->dev->name, d->index, part->name, d->units, d->rows, d->cols,
		    d->row, d->col, part->policy_moves ? ", by the policy" : "");
	else
		LOG(HAL_LOG_WARNING, "%s: partition %u \"%s\" was not resized: %s",
		    part->dev->name, d->index, part->name, why);
}

/* End the move of part: keep the new place if status is 0, otherwise the old one.  why is
 * the device's error text or "". */
static void end_resize(struct hal_partition *part, int status, const char *why)
{
	struct hal_device *dev = part->dev;
	const struct place_rect from = rect_of(&part->desc);
	const struct place_rect to = rect_of(&part->moving);

	if (status == 0) {
		place_settle(&dev->space.place, &from, &to, partition_holder(part));
		/* Do not copy the whole struct: other threads read .index and
		 * .color_mask, which never change. */
		part->desc.units = part->moving.units;
		part->desc.row = part->moving.row;
		part->desc.col = part->moving.col;
		part->desc.rows = part->moving.rows;
		part->desc.cols = part->moving.cols;
		part->desc.memory_bytes = part->moving.memory_bytes;
		part->sched.policy_view.units = part->desc.units;
		part->sched.policy_view.floor = part->floor_next;
		part->sched.policy_view.ceiling = part->ceiling_next;
		part->pinned = part->pinned_next;
		part->moved_ns = dev->now;
	} else {
		place_settle(&dev->space.place, &to, &from, partition_holder(part));
		quota_undo(part);
	}
	log_resize(part, status, why);
	memset(&part->moving, 0, sizeof(part->moving));
	part->policy_moves = false;
	resize_let_issue(part);
	trace_partition(dev, part);
	if (!part->arranged)
		publish_end(part, status, why);
	if (dev->space.plan.moved != NULL)
		dev->space.plan.moved(part, status, why);
	suspend_partition_moved(part);
	/* The policy sees the members of hal_partitions_move at its end. */
	if (!part->arranged)
		policy_changed(part, NULL);
	partition_runnable(part);
}

void resize_done(const struct hal_bk_event *ev)
{
	struct hal_partition *part =
		(void *)(uintptr_t)(ev->cookie & ~COOKIE_PARTITION); /* NOLINT */

	if (part->moving.units != 0)
		end_resize(part, ev->status, ev->fault);
}

void resize_lost(struct hal_partition *part)
{
	if (part->moving.units != 0)
		end_resize(part, -EIO, "the device is lost");
}

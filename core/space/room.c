/* SPDX-License-Identifier: Apache-2.0 */
/*
 * room.c - move other partitions to free a rectangle for a new or growing one.
 *
 * Used when enough units are free, but not in one rectangle.  The engine begins a plan
 * that clears a rectangle and reserves it (compact.c).  The requesting thread waits for
 * the plan and repeats its request.  dev->space.room allows one such thread at a time.
 */
#include "space/room.h"

#include <errno.h>

#include "command/callback.h"
#include "loop/engine.h"
#include "replay/journal.h"
#include "space/compact.h"
#include "space/plan.h"
#include "util/error.h"
#include "util/fd.h"

struct room {
	const struct hal_partition *part;
	const struct hal_partition_desc *desc;
	struct hal_point
		plan_over; /* reached when the plan ends; .timeline NULL: no plan */
};

/* Begin the moves for arg, a struct room.  Engine thread. */
static int begin_room(struct hal_device *dev, void *arg)
{
	struct room *r = arg;
	const struct hal_partition_desc *d = r->desc;
	int err = device_alive(dev);

	if (dev->space.plan.over == NULL)
		dev->space.plan.over = timeline_make(dev);
	if (dev->space.plan.over == NULL)
		return -ENOMEM;
	if (err != 0)
		return err;
	JOURNAL(dev, JOURNAL_COMPACT, r->part != NULL ? r->part->desc.index + 1 : 0,
		d->units_floor, d->units_ceiling, d->row, d->col, d->rows, d->cols,
		dev->space.compact, d->shape);
	err = compact_begin(dev, r->part, d, dev->space.compact);
	JOURNAL(dev, JOURNAL_ANSWER, journal_error(err));
	r->plan_over = plan_over_point(dev);
	return err;
}

/* Wait until point p is reached; return at once if p has no timeline. */
static void wait_for(const struct hal_point *p)
{
	if (p->timeline != NULL)
		(void)hal_wait(p, 1, 0, HAL_FOREVER);
}

static int free_rectangle(struct hal_device *dev, struct room *r)
{
	int err = engine_call(dev, begin_room, r);

	/* A plan of the policy is under way.  Wait for this plan, but not for later
	 * ones. */
	if (err == -EBUSY && r->plan_over.timeline != NULL) {
		wait_for(&r->plan_over);
		err = engine_call(dev, begin_room, r);
	}
	if (err == 0)
		wait_for(&r->plan_over);
	return err;
}

int room_for(struct hal_device *dev, struct hal_partition *part,
	     const struct hal_partition_desc *d, int (*ask)(void *arg, bool room),
	     void *arg)
{
	struct room r = {.part = part, .desc = d};
	int err = ask(arg, false), made, cancel;
	char text[400];

	/* A host function must not wait here: the moves may wait for commands that are
	 * queued behind it. */
	if (err != -ENOSPC || dev->space.compact == 0 || callback_inside(dev))
		return err;
	format_text(text, sizeof(text), "%s", hal_last_error());
	cancel = cancel_hold();
	pthread_mutex_lock(&dev->space.room);
	made = free_rectangle(dev, &r);
	if (made == 0)
		err = tried(ask(arg, true));
	pthread_mutex_unlock(&dev->space.room);
	cancel_release(cancel);
	if (made != 0) {
		char why[200];

		format_text(why, sizeof(why), "%s", hal_last_error());
		err = fail(err, "%s; hal.compact = %u: %s", text, dev->space.compact,
			   why);
	}
	return err;
}

void room_take(struct hal_device *dev)
{
	if (dev->space.plan.room.rows == 0)
		return;
	JOURNAL(dev, JOURNAL_ROOM, 0);
	compact_over(dev);
}

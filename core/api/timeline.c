/* SPDX-License-Identifier: Apache-2.0 */
/* timeline.c - the public functions of timelines. */
#include <errno.h>
#include <sched.h>

#include "api/handle.h"
#include "command/lend.h"
#include "far/far.h"
#include "loop/engine.h"
#include "replay/journal.h"

/* Number t.  Engine only, so that a journal records timelines in the order of numbers. */
static int number_timeline(struct hal_device *dev, void *arg)
{
	struct hal_timeline *t = arg;

	t->obj.id = dev->next_timeline_id++;
	JOURNAL(dev, JOURNAL_TIMELINE, t->obj.id);
	return 0;
}

int hal_timeline_create(struct hal_device *dev, struct hal_timeline **timeline)
{
	struct hal_timeline *t;
	int err;

	if (!OBJECT_OK(dev, OBJECT_DEVICE))
		return FAR_OR_BAD(dev, OBJECT_DEVICE, far_timeline_create(dev, timeline));
	if (timeline == NULL)
		return fail(EINVAL, "hal_timeline_create: timeline is NULL");
	t = timeline_make(dev);
	if (t == NULL)
		return -ENOMEM;
	t->raiser = dev;
	err = engine_call(dev, number_timeline, t);
	if (err != 0)
		return err;
	atomic_fetch_add(&dev->timelines, 1);
	*timeline = t;
	return 0;
}

static int destroy(struct hal_device *dev, void *arg)
{
	struct hal_timeline *t = arg;

	if (atomic_load(&t->pending) != 0)
		return fail(EBUSY, "timeline %u: submitted waits and signals (%u) use it",
			    t->obj.id, atomic_load(&t->pending));
	if (!timeline_close(t))
		return fail(EBUSY, "timeline %u: threads (%u) wait for it", t->obj.id,
			    atomic_load(&t->threads));
	JOURNAL(dev, JOURNAL_NO_TIMELINE, t->obj.id);
	timeline_fini(t);
	atomic_fetch_sub(&dev->timelines, 1);
	return 0;
}

int hal_timeline_destroy(struct hal_timeline *timeline)
{
	int err;

	if (timeline == NULL)
		return 0;
	if (!OBJECT_OK(timeline, OBJECT_TIMELINE))
		return FAR_OR_BAD(timeline, OBJECT_TIMELINE,
				  far_timeline_destroy(timeline));
	if (timeline->queue != NULL || timeline->partition != NULL)
		return fail(EINVAL, "the timeline belongs to a queue or partition and is "
				    "destroyed with it");
	/* A thread that has seen the timeline's value may destroy it before the
	 * hal_timeline_signal that raised it has returned.  That call has only a message
	 * left to post: wait for it. */
	while (atomic_load(&timeline->signallers) != 0)
		(void)sched_yield();
	err = engine_call(timeline->dev, destroy, timeline);
	if (err == 0)
		object_free(OBJECT_TIMELINE, timeline);
	return err;
}

uint64_t hal_timeline_get_value(const struct hal_timeline *timeline, int *err)
{
	int stuck = 0;

	if (!OBJECT_OK(timeline, OBJECT_TIMELINE)) {
		if (OBJECT_IS_FAR(timeline, OBJECT_TIMELINE))
			return far_timeline_get_value(timeline, err);
		stuck = object_bad(timeline, OBJECT_TIMELINE);
		if (err != NULL)
			*err = stuck;
		return 0;
	}
	lend_look(timeline->dev);
	/* Read the error first, so that a value reported with an error is not older than
	 * the error. */
	stuck = timeline_error(timeline);
	if (err != NULL)
		*err = stuck;
	return atomic_load_explicit(&timeline->value, memory_order_acquire);
}

/* Raise t to value and notify its engine.  Return 0 or -errno. */
static int raise_to(struct hal_timeline *t, uint64_t value)
{
	uint64_t now = atomic_load(&t->value);
	int err;

	do {
		err = timeline_error(t);
		if (err != 0)
			return fail(err, "timeline %u has failed: %s", t->obj.id,
				    timeline_text(t));
		if (value <= now)
			return fail(EINVAL,
				    "timeline %u is at %llu and cannot be set to %llu: "
				    "values only go up",
				    t->obj.id, U64(now), U64(value));
	} while (!atomic_compare_exchange_weak(&t->value, &now, value));
	timeline_announce(t);
	return 0;
}

int hal_timeline_signal(struct hal_timeline *t, uint64_t value)
{
	int err;

	if (!OBJECT_OK(t, OBJECT_TIMELINE))
		return FAR_OR_BAD(t, OBJECT_TIMELINE, far_timeline_signal(t, value));
	if (t->queue != NULL || t->partition != NULL)
		return fail(EINVAL, "the timeline belongs to a queue or partition; only "
				    "completed work advances it");
	if (t->raiser == NULL)
		return fail(EINVAL,
			    "timeline %u was imported without HAL_TIMELINE_SIGNAL",
			    t->obj.id);
	atomic_fetch_add(&t->signallers, 1);
	err = raise_to(t, value);
	atomic_fetch_sub(&t->signallers, 1);
	return err;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* suspend.c - letting go of a queue and taking it up again. */
#include "internal.h"

#include <errno.h>
#include <string.h>

static const char *const mode_names[] = {"DRAIN", "FOLD", "SAVE", "KILL"};

static void set_state(struct hal_queue *q, enum queue_state state)
{
	q->state = (uint8_t)state;
	q->odd &= ~ODD_SUSPENDING;
	if (state == QUEUE_SUSPENDING)
		q->odd |= ODD_SUSPENDING;
}

static uint32_t running(const struct hal_queue *q)
{
	const struct flight *f = q->oldest;
	uint32_t n = 0;

	for (uint32_t i = 0; i < q->flight_count; i++, f = f->next)
		n += !f->done;
	return n;
}

static int kill_check(const struct hal_queue *q)
{
	const struct flight *f = q->oldest;

	for (uint32_t i = 0; i < q->flight_count; i++, f = f->next) {
		if (f->done || (f->record->cmd.flags & HAL_CMD_REPLAYABLE) != 0)
			continue;
		return fail(ENOTSUP,
			    "queue %u: KILL without HAL_SUSPEND_FINAL, but \"%s\" on the "
			    "device is not HAL_CMD_REPLAYABLE",
			    q->obj.id, record_name(f->record));
	}
	return 0;
}

static int suspend_check(const struct hal_queue *q, uint32_t mode, bool final)
{
	const struct hal_device *dev = q->dev;

	if (mode > HAL_SUSPEND_KILL)
		return fail(EINVAL, "%u is not a suspend mode", mode);
	if (q->state != QUEUE_RUNNING)
		return fail(EBUSY, "queue %u is suspended already", q->obj.id);
	if ((dev->info.suspend_modes >> mode & 1) == 0)
		return fail(ENOTSUP, "%s cannot suspend by %s", dev->name,
			    mode_names[mode]);
	return mode == HAL_SUSPEND_KILL && !final ? kill_check(q) : 0;
}

/* Killed commands go back to what has not been given to the device. */
static void rewind_killed(struct hal_queue *q)
{
	struct flight *f = q->oldest;
	uint32_t kept = 0;

	for (; kept < q->flight_count && !f->killed; kept++)
		f = f->next;
	if (kept == q->flight_count)
		return;
	/* It may stand at a wait further on, even for what has just been killed. */
	if (q->parked) {
		list_del(&q->waiter.node);
		q->parked = false;
	}
	q->issue = f->at;
	q->fresh = f;
	q->flight_count = kept;
}

static int resume_now(struct hal_queue *q)
{
	struct hal_device *dev = q->dev;
	int err = 0;

	if (q->bk_suspended)
		err = dev->backend->table.hot.resume(dev->bk, q->bk);
	if (err != 0)
		return err;
	q->bk_suspended = false;
	q->resume_wanted = false;
	set_state(q, QUEUE_RUNNING);
	trace_instant(dev, q, "resume", dev->now);
	engine_todo(q);
	return 0;
}

void engine_quiet(struct hal_queue *q)
{
	struct hal_device *dev = q->dev;
	struct account *a = &q->account;
	uint64_t took =
		dev->now > q->suspend_asked_ns ? dev->now - q->suspend_asked_ns : 0;

	a->suspend_ns += took;
	if (took > a->suspend_max_ns)
		a->suspend_max_ns = took;
	trace_span(dev, q, mode_names[q->suspend_mode], q->suspend_asked_ns, dev->now);
	rewind_killed(q);
	set_state(q, QUEUE_SUSPENDED);
	timeline_set(&q->control, q->suspend_count);
	dev->acted = true;
	/* A resume that the device refuses leaves the queue suspended: who asked has long
	 * had its answer, so the queue says why. */
	if (q->resume_wanted && resume_now(q) != 0)
		timeline_fail(&q->control, -EIO, hal_last_error());
	queue_advance(q);
}

static int suspend(struct hal_queue *q, uint32_t mode)
{
	struct hal_device *dev = q->dev;
	int err = 0;

	/* Else giving the device nothing more is enough. */
	if (running(q) > 0 && (dev->bk_suspend_modes >> mode & 1) != 0) {
		set_state(q, QUEUE_SUSPENDING);
		err = dev->backend->table.hot.suspend(dev->bk, q->bk, mode,
						      (uint64_t)(uintptr_t)q);
		if (err != 0) {
			set_state(q, QUEUE_RUNNING);
			return err;
		}
		q->bk_suspended = true;
		dev->pending++;
	}
	queue_withdraw(q);
	set_state(q, QUEUE_SUSPENDING);
	q->suspend_mode = (uint8_t)mode;
	q->suspend_asked_ns = dev->now;
	q->suspend_count++;
	q->account.suspends++;
	if (running(q) == 0)
		engine_quiet(q);
	return 0;
}

int hal_queue_suspend(struct hal_queue *q, uint32_t mode, struct hal_point *quiet)
{
	bool final = (mode & HAL_SUSPEND_FINAL) != 0;
	struct hal_device *dev;
	int err;

	if (!OBJECT_OK(q, OBJECT_QUEUE))
		return object_bad(q, OBJECT_QUEUE);
	dev = q->dev;
	device_lock(dev);
	engine_now(dev);
	engine_intake(dev);
	mode &= ~HAL_SUSPEND_FINAL;
	err = suspend_check(q, mode, final);
	if (err == 0)
		err = suspend(q, mode);
	if (err == 0)
		q->final = final;
	if (err == 0 && quiet != NULL) {
		quiet->timeline = &q->control;
		quiet->value = q->suspend_count;
	}
	device_unlock(dev);
	if (err == 0)
		engine_kick(dev);
	return err;
}

int hal_queue_resume(struct hal_queue *q)
{
	struct hal_device *dev;
	int err = 0;

	if (!OBJECT_OK(q, OBJECT_QUEUE))
		return object_bad(q, OBJECT_QUEUE);
	dev = q->dev;
	device_lock(dev);
	engine_now(dev);
	if (q->state == QUEUE_RUNNING || q->resume_wanted)
		err = fail(EINVAL, "queue %u is not suspended", q->obj.id);
	else if (q->final)
		err = fail(ECANCELED,
			   "queue %u was suspended for good: it can only be destroyed",
			   q->obj.id);
	else if (q->state == QUEUE_SUSPENDING)
		q->resume_wanted = true; /* as soon as the device has let go */
	else
		err = resume_now(q);
	device_unlock(dev);
	if (err == 0)
		engine_kick(dev);
	return err;
}

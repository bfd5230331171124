/* SPDX-License-Identifier: Apache-2.0 */
/* submit_check.c - find out why the checks of submit.h have refused a submission. */
#include <errno.h>
#include <string.h>

#include "api/crossing.h"
#include "api/handle.h"
#include "api/submit.h"
#include "far/far.h"

COLD int submit_point_bad(const struct hal_queue *q, const struct hal_point *p,
			  const char *what, uint32_t i)
{
	const struct hal_timeline *t = p->timeline;
	char text[128];
	bool signals;

	if (!OBJECT_OK(t, OBJECT_TIMELINE)) {
		(void)object_bad(t, OBJECT_TIMELINE);
		format_text(text, sizeof(text), "%s", hal_last_error());
		return fail(EINVAL, "%s[%u]: %s", what, i, text);
	}
	signals = strcmp(what, "signals") == 0;
	if (signals && (t->queue != NULL || t->partition != NULL))
		return fail(EINVAL,
			    "%s[%u]: the timeline belongs to a queue or partition; only "
			    "completed work advances it",
			    what, i);
	if (signals && t->raiser == NULL)
		return fail(EINVAL,
			    "%s[%u]: timeline %u was imported without "
			    "HAL_TIMELINE_SIGNAL",
			    what, i, t->obj.id);
	if (t->dev != q->dev && (!signals || p->value != 0)) {
		if (q->dev->replay.journal == NULL && t->dev->replay.journal == NULL)
			return CROSSING;
		return fail(ENOTSUP,
			    "%s[%u]: the timeline belongs to another device, and a "
			    "journal (hal.journal) cannot record that",
			    what, i);
	}
	return fail(
		EINVAL,
		"%s[%u]: a signal of value 0; timelines start at 0, so the value must "
		"be larger",
		what, i);
}

/* Check .cmd_stride.  A caller built with a newer hal.h may have larger commands: accept
 * them while the bytes that this version does not know are 0. */
static COLD int stride_check(const struct hal_submit_desc *d)
{
	if (d->cmd_stride < sizeof(struct hal_cmd) ||
	    d->cmd_stride % _Alignof(struct hal_cmd) != 0)
		return fail(EINVAL,
			    "hal_submit_desc.cmd_stride %u is misaligned or smaller than "
			    "a struct hal_cmd, %zu bytes",
			    d->cmd_stride, sizeof(struct hal_cmd));
	for (uint32_t i = 0; i < d->cmd_count; i++) {
		const unsigned char *bytes = (const void *)command_at(d, i);

		for (uint32_t b = sizeof(struct hal_cmd); b < d->cmd_stride; b++)
			if (bytes[b] != 0)
				return fail(
					E2BIG,
					"cmds[%u]: byte %u is set, which this version "
					"of the library does not know",
					i, b);
	}
	return 0;
}

COLD int submit_shape_bad(const struct hal_submit_desc *d)
{
	uint64_t all = (uint64_t)d->cmd_count + d->wait_count + d->signal_count;

	if ((d->flags & ~HAL_SUBMIT_PRIORITY) != 0)
		return fail(EINVAL, "hal_submit_desc.flags 0x%x: only 0x%x is defined",
			    d->flags, HAL_SUBMIT_PRIORITY);
	if (d->reserved != 0)
		return fail(EINVAL, "hal_submit_desc.reserved is not 0");
	if (all > HAL_COMMANDS_MAX)
		return fail(
			EINVAL,
			"%u commands, %u waits and %u signals: at most %d are allowed "
			"in total",
			d->cmd_count, d->wait_count, d->signal_count, HAL_COMMANDS_MAX);
	if (d->cmd_count > 0 && d->cmds == NULL)
		return fail(EINVAL, "hal_submit_desc.cmds is NULL, but cmd_count is %u",
			    d->cmd_count);
	return d->cmd_stride != 0 && d->cmd_stride != sizeof(struct hal_cmd)
		       ? stride_check(d)
		       : 0;
}

NOINLINE int submit_times_check(const struct hal_queue *q,
				const struct hal_submit_desc *d)
{
	uint64_t deadline_ns =
		d->deadline_ns != 0 ? d->deadline_ns : q->default_terms.deadline_ns;
	uint64_t now;

	if (d->deadline_ns != 0 && q->sched.own_class == HAL_CLASS_BEST_EFFORT)
		return fail(EINVAL,
			    "hal_submit_desc.deadline_ns %llu: %s is best effort and "
			    "cannot have deadlines",
			    U64(d->deadline_ns), queue_text(q).text);
	if (d->not_before_ns == 0 || deadline_ns == 0)
		return 0;
	now = hal_device_get_time(q->dev);
	if (d->not_before_ns <= now || d->not_before_ns - now < deadline_ns)
		return 0;
	return fail(EINVAL,
		    "hal_submit_desc.not_before_ns %llu is %llu ns from now, but the "
		    "deadline is %llu ns from now: it cannot be met",
		    U64(d->not_before_ns), U64(d->not_before_ns - now), U64(deadline_ns));
}

COLD int submit_refused(const struct hal_queue *q)
{
	const char *text;
	int err;

	if (!OBJECT_OK(q, OBJECT_QUEUE))
		return FAR_OR_BAD(q, OBJECT_QUEUE, FAR_QUEUE_REFUSED);
	err = device_alive(q->dev);
	if (err != 0)
		return err;
	err = timeline_error(&q->timeline);
	text = timeline_text(&q->timeline);
	return fail(err != 0 ? err : -ECANCELED, "%s",
		    text != NULL ? text : hal_strerror(err));
}

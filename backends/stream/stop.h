/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stop.h - FOLD: launches that stop between their blocks.
 *
 * Blocks look at a flag before they begin.  FOLD raises the flags of what a queue has in
 * flight; blocks that run end, the others write their numbers to a list, and resume
 * launches the list.  No later command of the queue may have run when a launch is
 * stopped. So only launches that can be stopped, too, are submitted behind one, and flags
 * are raised from the last launch to the first.
 *
 * Code to include, once in a backend, which defines the functions below before.
 */
#ifndef BACKENDS_STREAM_STOP_H
#define BACKENDS_STREAM_STOP_H

#include "slots.h"

/* Prepare q for launching what was stopped again.  kept: whether anything was. */
static inline int vendor_stops_begin(struct stream_device *dev, struct stream_queue *q,
				     bool kept);
/* Launch the blocks of s that were stopped, and mark its end.  i: place in the queue. */
static inline int vendor_stops_again(struct stream_device *dev, struct stream_queue *q,
				     struct stream_slot *s, uint32_t i);
/* Make sure that no number which the device wrote before they stopped says that the
 * launches from the i-th on have ended: they will not run. */
static inline void vendor_stops_fail(struct stream_device *dev, struct stream_queue *q,
				     uint32_t i);

/* Return the number of blocks of a launch; if it exceeds most, any number above most. */
STREAM_FN uint64_t stream_blocks(const struct hal_bk_cmd *cmd, uint32_t most)
{
	const uint32_t *g = cmd->launch.groups;
	const uint64_t plane = (uint64_t)g[0] * g[1];

	return plane > most ? plane : plane * g[2];
}

/* Return whether the next command must wait for those in flight.  stops: it can be
 * stopped. */
STREAM_FN bool stream_stops_wait(struct stream_queue *q, bool stops)
{
	return q->count && stream_slot(q, q->count - 1)->stops && !stops;
}

/* Return whether FOLD has anything to stop in q. */
STREAM_FN bool stream_stops_can(const struct stream_device *dev, struct stream_queue *q)
{
	return q->count && stream_slot(q, q->count - 1)->stops && !q->broken &&
	       !stream_lost(dev);
}

/* Note that it is known what was stopped, and that it runs nowhere.  If the partition has
 * moved, its former units are free of it. */
STREAM_FN void stream_stops_settled(struct stream_device *dev, struct stream_queue *q)
{
	uint32_t kept, running;

	q->stops->settled = true;
	kept = stream_kept(q);
	running = q->count - kept;
	dev->inflight -= kept;
	if (q->before <= running)
		return;
	q->part->moving_left -= q->before - running;
	q->before = running;
}

/* Count what was stopped as in flight again, so that it is reported as failed: the queue
 * or the device will not resume. */
STREAM_FN void stream_stops_forget(struct stream_device *dev, struct stream_queue *q)
{
	uint32_t i;

	dev->inflight += stream_kept(q);
	q->stops->settled = false; /* .folding stays: none of it has ended well */
	for (i = 0; i < q->count; i++)
		stream_slot(q, i)->stopped = 0;
}

/* Launch what was stopped again, on the units that the partition has now. */
STREAM_FN void stream_stops_resume(struct stream_device *dev, struct stream_queue *q,
				   uint64_t now_ns)
{
	const uint32_t kept = stream_kept(q);
	uint32_t i;
	int err;

	if (!q->stops->folding || stream_lost(dev))
		return;
	q->stops->folding = q->stops->settled = false;
	dev->inflight += kept;
	q->seen = 0;
	err = vendor_stops_begin(dev, q, kept != 0);
	for (i = 0; !err && i < q->count; i++)
		err = q->broken ? -EIO : vendor_stops_again(dev, q, stream_slot(q, i), i);
	if (err) {
		vendor_stops_fail(dev, q, i ? i - 1 : 0);
		stream_break(q, "cannot resume the stopped launch");
	}
	q->head_ns = dev->progress_ns = now_ns;
	q->fresh = true;
}

#endif

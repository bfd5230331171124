/* SPDX-License-Identifier: Apache-2.0 */
/* lend.c - turns of callers; see lend.h. */
#include "command/lend.h"

#include "command/flow.h"
#include "command/queue.h"

_Thread_local bool lend_wasted;

/* Return whether a completion of f, the only command that the device has, is news to
 * nobody: no record, waiter, file descriptor, process or policy depends on it. */
static bool is_alone(const struct hal_device *dev, const struct inflight *f)
{
	const struct hal_queue *q = f->queue;
	const struct hal_partition *part = q->part;

	return (q->slow | q->blockers) == 0 && q->issue.pos == q->accepted &&
	       q->inflight_count == 1 && !q->sched.urgent && q->inlet == NULL &&
	       heap_empty(&q->timeline.waiters) && atomic_load(&q->timeline.fds) == 0 &&
	       part->sched.enqueued == 0 && part->sched.sole == NULL &&
	       atomic_load(&dev->share.outside) == 0;
}

enum left {
	LEFT_NOTHING,
	LEFT_OWED, /* a command that is alone */
	LEFT_WORK, /* the engine's thread must go on */
};

/* Return what a caller leaves if it stops being the engine now. */
static enum left what_is_left(const struct hal_device *dev)
{
	if ((dev->work & (uint8_t)~WORK_TIMERS) != 0 ||
	    !list_empty(&dev->command.blocked) || dev->timer_ns < dev->lent.timer_ns)
		return LEFT_WORK;
	if (dev->command.pending == 0)
		return LEFT_NOTHING;
	if (dev->command.pending > 1 || list_empty(&dev->command.inflight_list))
		return LEFT_WORK;
	return is_alone(dev, container_of(dev->command.inflight_list.next,
					  struct inflight, on_device))
		       ? LEFT_OWED
		       : LEFT_WORK;
}

void lend_end(struct hal_device *dev)
{
	for (;;) {
		enum left left = what_is_left(dev);

		if (left == LEFT_WORK) {
			engine_hand_over(dev);
			return;
		}
		if (engine_return(dev, left == LEFT_OWED))
			return;
		(void)engine_turn(dev, 0, false);
	}
}

/* Return whether submissions, of which the caller has just served one, come so often that
 * the engine's thread would not fall asleep between them, and long enough to wake it. */
static bool comes_often(struct hal_device *dev)
{
	const uint64_t before = dev->lent.submitted_ns;

	dev->lent.submitted_ns = dev->now;
	if (dev->now - before >= dev->lent.often_ns) {
		dev->lent.often = 0;
		return false;
	}
	return ++dev->lent.often == LENT_OFTEN;
}

bool lend_post(struct hal_device *dev, struct message *msg)
{
	if (lend_wasted || !engine_borrow(dev))
		return false;
	(void)inbox_add(&dev->inbox, msg);
	(void)engine_turn(dev, 0, false);
	if (UNLIKELY(comes_often(dev)))
		engine_hand_over(dev);
	else
		lend_end(dev);
	return true;
}

void lend_look_now(struct hal_device *dev)
{
	if (!engine_borrow(dev))
		return;
	(void)engine_turn(dev, 0, false);
	lend_end(dev);
}

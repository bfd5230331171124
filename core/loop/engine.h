/* SPDX-License-Identifier: Apache-2.0 */
/* engine.h - reaching a device's engine, and being it for a while. */
#ifndef HAL_LOOP_ENGINE_H
#define HAL_LOOP_ENGINE_H

#include "loop/device.h"

void engine_init(struct hal_device *dev);

/* From any thread: l is read by the engine, soon; the caller does not wait. */
void engine_post(struct hal_device *dev, struct message *l);
/* The same for what matters only once something else happens: a sleeping engine is left
 * asleep.  Whatever wakes it is looked at after l. */
void engine_post_quietly(struct hal_device *dev, struct message *l);
/* Has fn(dev, arg) done by the engine and waits for its answer, which comes with the text
 * of its fail().  Not by the engine itself. */
int engine_call(struct hal_device *dev, int (*fn)(struct hal_device *, void *),
		void *arg);

/* Has fn(dev, arg) done by this thread, if the device lets what flag (HAL_BK_BESIDE_*)
 * names be done beside its engine, else by that. */
int device_beside(struct hal_device *dev, uint64_t flag,
		  int (*fn)(struct hal_device *, void *), const void *arg);

/* clock=virtual: this thread is the engine from true on, until engine_leave. */
bool engine_try(struct hal_device *dev);
void engine_enter(struct hal_device *dev);
void engine_leave(struct hal_device *dev);
/* Sleeps until the engine lock is free, or another engine says that something has been
 * told, or some time has passed.  look is .lend as it was before the caller last tried.
 */
void engine_lock_sleep(struct hal_device *dev, unsigned int look);
/* Until the callback that others run has returned, likewise. */
void engine_callback_sleep(struct hal_device *dev);
/* By the engine: those who sleep so may look. */
void engine_lock_notify(struct hal_device *dev);

/* ---- by the engine ----------------------------------------------------------------- */

/* Reads what is in the inbox. */
void engine_read(struct hal_device *dev);

/* Something is to be done at at_ns. */
static inline void timer_at(struct hal_device *dev, uint64_t at_ns)
{
	if (at_ns < dev->timer_ns)
		dev->timer_ns = at_ns;
	dev->work |= WORK_TIMERS;
}

static inline void timer_set(struct hal_device *dev, struct timer *t, uint64_t at_ns)
{
	t->node.key = at_ns;
	t->set = true;
	heap_add(&dev->timers, &t->node);
	timer_at(dev, at_ns);
}

/* The first time at which there is something to be done. */
static inline void timer_first(struct hal_device *dev)
{
	const struct heap_node *n = heap_first(&dev->timers);

	dev->timer_ns = n != NULL ? n->key : UINT64_MAX;
	if (dev->sched.alarm_ns < dev->timer_ns)
		dev->timer_ns = dev->sched.alarm_ns;
	if (dev->sched.hold_ns < dev->timer_ns)
		dev->timer_ns = dev->sched.hold_ns;
	if (dev->sched.stops_ns < dev->timer_ns)
		dev->timer_ns = dev->sched.stops_ns;
	if (dev->timer_ns == UINT64_MAX)
		dev->work &= (uint8_t)~WORK_TIMERS;
}

static inline void timer_unset(struct hal_device *dev, struct timer *t)
{
	if (!t->set)
		return;
	heap_remove(&dev->timers, &t->node);
	t->set = false;
	timer_first(dev);
}

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* engine.h - send messages to a device's engine, hold its lock, and set its timers. */
#ifndef HAL_LOOP_ENGINE_H
#define HAL_LOOP_ENGINE_H

#include "loop/device.h"

/* Initialize the lists, times and file descriptors that the engine of dev uses. */
void engine_init(struct hal_device *dev);

/* ---- any thread -------------------------------------------------------------------- */

/* Send msg to the engine, and wake the engine if it sleeps.  Does not wait. */
void engine_post(struct hal_device *dev, struct message *msg);
/* Send msg for a thread of another process, which has begun to at host time since_ns;
 * from that the engine learns for how long to spin.  With clock=virtual the next thread
 * that becomes the engine reads msg. */
void engine_post_for(struct hal_device *dev, struct message *msg, uint64_t since_ns);
/* Send msg, but let a sleeping engine sleep, unless the device has a command.  For
 * messages that matter only once another event wakes the engine: it reads msg before it
 * handles that event. */
void engine_post_quietly(struct hal_device *dev, struct message *msg);
/* Have the engine call fn(dev, arg), wait, and return its result.  An error's text
 * becomes this thread's hal_last_error().  The engine itself must not call this. */
int engine_call(struct hal_device *dev, int (*fn)(struct hal_device *, void *),
		void *arg);

/* Call fn(dev, arg) on this thread if the backend allows the operation that flag
 * (HAL_BK_BESIDE_*) names concurrently with the engine.  Otherwise have the engine call
 * it, as engine_call does. */
int device_beside(struct hal_device *dev, uint64_t flag,
		  int (*fn)(struct hal_device *, void *), const void *arg);
/* Return whether threads that create and destroy buffers call the backend's mem_alloc and
 * mem_free themselves.  Never under the virtual clock, whose runs must be reproducible,
 * nor in a replay. */
static inline bool device_memory_beside(const struct hal_device *dev)
{
	return (dev->table->beside & HAL_BK_BESIDE_MEMORY) != 0 && !dev->virtual_clock &&
	       dev->replay.player == NULL;
}

/* The same for threads that create queues, and queue_create. */
static inline bool device_queue_beside(const struct hal_device *dev)
{
	return (dev->table->beside & HAL_BK_BESIDE_QUEUE) != 0 && !dev->virtual_clock &&
	       dev->replay.player == NULL;
}

/* ---- the engine lock (clock=virtual only) ------------------------------------------ */

/* Take the engine lock if it is free.  Return true if this thread is now the engine. */
bool engine_try(struct hal_device *dev);
/* Take the engine lock; sleep until that is possible. */
void engine_enter(struct hal_device *dev);
/* Read the inbox and release the engine lock. */
void engine_leave(struct hal_device *dev);
/* Sleep until the engine lock may be free, the engine calls engine_lock_notify, or 20 ms
 * have passed.  seen is .lock_futex as read before the caller's last engine_try. */
void engine_lock_sleep(struct hal_device *dev, unsigned int seen);
/* Sleep while a host callback runs on another thread.  Return early when
 * engine_lock_sleep would. */
void engine_callback_sleep(struct hal_device *dev);
/* Begin to watch for messages, which wake engine_message_sleep from now on.  Return
 * whether the device has nothing to do.  The caller must call engine_message_sleep if it
 * does, and in any case engine_message_over. */
bool engine_message_watch(struct hal_device *dev, unsigned int *seen);
/* Sleep until a message has been read, or until engine_lock_sleep would return. */
void engine_message_sleep(struct hal_device *dev, unsigned int seen);
void engine_message_over(struct hal_device *dev);
/* Wake the threads that sleep in the functions above.  Engine only. */
void engine_lock_notify(struct hal_device *dev);

/* ---- the engine in the hands of a caller (clock=real) -------------------------------- */

/* Become the engine, if its thread sleeps and dev->lends.  Return whether that succeeded.
 * The caller must then read the inbox, and end with engine_return or engine_hand_over. */
bool engine_borrow(struct hal_device *dev);
/* Stop being the engine, whose thread then sleeps on.  owes: the device has a command
 * that nobody waits for; have the thread look after it within a nap's time.  Return false
 * if the caller is still the engine, because the inbox has messages. */
bool engine_return(struct hal_device *dev, bool owes);
/* Stop being the engine, and wake its thread. */
void engine_hand_over(struct hal_device *dev);
/* Return whether the device has a command that nobody looks after for now. */
static inline bool engine_owes(struct hal_device *dev)
{
	return dev->lends && WAKE_LOAD(&dev->inbox.sleeping) == ENGINE_OWED;
}

/* ---- engine only ------------------------------------------------------------------- */

/* Take all messages from the inbox and call their functions, oldest first. */
void engine_read(struct hal_device *dev);

/* Have a turn run the timers at at_ns, in device time. */
static inline void timer_at(struct hal_device *dev, uint64_t at_ns)
{
	if (at_ns < dev->timer_ns)
		dev->timer_ns = at_ns;
	dev->work |= WORK_TIMERS;
}

/* Have t->fn called at at_ns.  t must not be set. */
static inline void timer_set(struct hal_device *dev, struct timer *t, uint64_t at_ns)
{
	t->node.key = at_ns;
	t->set = true;
	heap_add(&dev->timers, &t->node);
	timer_at(dev, at_ns);
}

/* Set dev->timer_ns to the earliest time at which the engine has to act. */
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

/* Cancel t, if it is set. */
static inline void timer_unset(struct hal_device *dev, struct timer *t)
{
	if (!t->set)
		return;
	heap_remove(&dev->timers, &t->node);
	t->set = false;
	timer_first(dev);
}

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lend.h - turns of callers: the engine on the thread of hal_submit and hal_wait, with
 * clock=real.
 *
 * While the engine's thread sleeps, a thread that submits or waits becomes the engine
 * itself, so that no other thread has to be woken.  It submits its command to the device
 * and leaves.  If it then waits, it polls the device for as long as hal_wait looks before
 * it sleeps.
 *
 * A caller that leaves hands the engine to its thread if there is more to do.  A single
 * command that nothing in this process waits for stays with the device ("owed"): whoever
 * wants to know of it becomes the engine again.  Meanwhile the engine's thread naps, 1 ms
 * at a time, and looks after what callers have left.
 *
 * A turn makes hal_submit longer than it is if the engine's thread is awake.  So a caller
 * also hands the engine over if submissions follow one another faster than its thread
 * would fall asleep (.often_ns).
 */
#ifndef HAL_COMMAND_LEND_H
#define HAL_COMMAND_LEND_H

#include "loop/engine.h"

/* Stop being the engine, after engine_borrow. */
void lend_end(struct hal_device *dev);

/* Set while hal_wait of this thread ends in sleeps.  The engine's thread then has to act
 * in any case, so that it is better woken by the submission. */
extern _Thread_local bool lend_wasted;

/* Send msg to the sleeping engine by becoming the engine for one turn.  Return false,
 * without an effect, if that is not possible. */
bool lend_post(struct hal_device *dev, struct message *msg);

/* Ask the device for events, if a command of it is owed.  For functions that read what
 * the engine publishes. */
void lend_look_now(struct hal_device *dev) COLD;
static inline void lend_look(struct hal_device *dev)
{
	if (UNLIKELY(engine_owes(dev)))
		lend_look_now(dev);
}

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * watch.h - words of busy senders that the engine reads in every turn (clock=real).
 *
 * A message costs its sender an exchange, and the engine the message.  While a queue's
 * records come turn after turn, the engine watches the queue instead: it reads the tail
 * of the queue's ring in every turn, and the sender only writes the tail.  wake.h has the
 * protocol.  The engine watches at most WATCHED_MAX words, and none while it sleeps.
 */
#ifndef HAL_LOOP_WATCH_H
#define HAL_LOOP_WATCH_H

#include "loop/device.h"
#include "util/compiler.h"

/* Find out whether the kernel can end a watch (membarrier(2)).  If not, watch_begin
 * always returns false. */
void watch_init(struct hal_device *dev);

/* Return whether to watch a sender whose message has been read.  *turn belongs to the
 * sender; only this function uses it. */
static ALWAYS_INLINE bool watch_pays(const struct hal_device *dev, uint32_t *turn)
{
	uint32_t last = *turn;

	*turn = dev->watch.turn;
	return dev->watch.turn - last < WATCH_BUSY_TURNS;
}

/* Whether the sender has a full barrier between its word and its look at *announced.  If
 * not, the end of a watch has to make it pass one. */
enum watch_fence { WATCH_NOT_FENCED, WATCH_FENCED };

/* Watch *word, which the sender of msg announces by *announced, and call fn(dev, msg)
 * for each change from now on.  Call instead of announce_again.  Return false if too many
 * words are watched. */
bool watch_begin(struct hal_device *dev, struct message *msg, WAKE_WORD *announced,
		 const WAKE_WORD *word, enum watch_fence fence, message_fn fn) COLD;

/* Call the functions of the words that have changed. */
void watch_look(struct hal_device *dev);

/* Return whether a watched word has changed. */
static inline bool watch_changed(const struct hal_device *dev)
{
	for (uint32_t i = 0; i < dev->watch.count; i++)
		if (WAKE_LOAD(dev->watch.of[i].word) != dev->watch.of[i].seen)
			return true;
	return false;
}

/* End all watches, after a last look.  Return whether that found a change.  From then on
 * senders send messages. */
bool watch_end(struct hal_device *dev) COLD;

/* End the watch of msg, if there is one, because its sender is destroyed. */
void watch_forget(struct hal_device *dev, const struct message *msg);

#endif

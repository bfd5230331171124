/* SPDX-License-Identifier: Apache-2.0 */
/* watch.c - read words of busy senders in every turn; see watch.h. */
#include "loop/watch.h"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Another word may take the place of one that has not changed for so many turns. */
#define QUIET_TURNS 1024u

static long membarrier(int command)
{
	return syscall(SYS_membarrier, command, 0, 0);
}

void watch_init(struct hal_device *dev)
{
	dev->watch.possible = membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) == 0;
	/* No sender has sent a message in the turns before. */
	dev->watch.turn = WATCH_BUSY_TURNS;
}

/* Return whether one of the watched words has been quiet for long. */
static bool any_quiet(const struct hal_device *dev)
{
	for (uint32_t i = 0; i < dev->watch.count; i++)
		if (dev->watch.of[i].quiet >= QUIET_TURNS)
			return true;
	return false;
}

bool watch_begin(struct hal_device *dev, struct message *msg, WAKE_WORD *announced,
		 const WAKE_WORD *word, enum watch_fence fence, message_fn fn)
{
	if (!dev->watch.possible)
		return false;
	if (dev->watch.count == WATCHED_MAX) {
		if (!any_quiet(dev))
			return false;
		/* Busy senders will be watched again after two messages. */
		(void)watch_end(dev);
	}
	announce_watch(announced);
	dev->watch.of[dev->watch.count++] = (struct watched){
		.message = msg,
		.announced = announced,
		.word = word,
		.fn = fn,
		.fenced = fence == WATCH_FENCED,
		.seen = WAKE_LOAD(word),
	};
	return true;
}

/* Call the function of w if its word has changed.  Return whether it has. */
static bool look(struct hal_device *dev, struct watched *w)
{
	unsigned int value = WAKE_LOAD(w->word);

	if (value == w->seen) {
		w->quiet++;
		return false;
	}
	w->seen = value;
	w->quiet = 0;
	w->fn(dev, w->message);
	return true;
}

/* End the watch of the i-th word, which needs no barrier but the one here. */
static COLD void unwatch(struct hal_device *dev, uint32_t i)
{
	struct watched w = dev->watch.of[i];

	dev->watch.of[i] = dev->watch.of[--dev->watch.count];
	announce_unwatch(w.announced);
	WAKE_FENCE();
	(void)look(dev, &w);
}

void watch_look(struct hal_device *dev)
{
	for (uint32_t i = 0; i < dev->watch.count; i++) {
		struct watched *w = &dev->watch.of[i];

		/* A sender of another process may be quiet for ever. */
		if (!look(dev, w) && UNLIKELY(w->fenced && w->quiet >= QUIET_TURNS))
			unwatch(dev, i--);
	}
}

bool watch_end(struct hal_device *dev)
{
	uint32_t count = dev->watch.count;
	bool changed = false, fenced = true;

	if (count == 0)
		return false;
	for (uint32_t i = 0; i < count; i++) {
		announce_unwatch(dev->watch.of[i].announced);
		fenced &= dev->watch.of[i].fenced;
	}
	/* A full barrier here, and in all threads of the process that need one. */
	if (!fenced)
		(void)membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED);
	WAKE_FENCE();
	for (uint32_t i = 0; i < count; i++)
		changed |= look(dev, &dev->watch.of[i]);
	dev->watch.count = 0;
	return changed;
}

void watch_forget(struct hal_device *dev, const struct message *msg)
{
	for (uint32_t i = 0; i < dev->watch.count; i++)
		if (dev->watch.of[i].message == msg) {
			dev->watch.of[i] = dev->watch.of[--dev->watch.count];
			return;
		}
}

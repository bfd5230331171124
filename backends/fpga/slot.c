/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Slots: whose they are in this process, and their units as they are closed and opened,
 * which waits inside XRT and is the mover's.  Until that is done nothing runs there.
 */
#define _GNU_SOURCE
#include "internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* ---- whose they are ------------------------------------------------------------------ */

/* Slots in use by any handle of this process: XRT gives a unit to all handles of one. */
static struct {
	pthread_mutex_t lock;
	uint64_t of[FP_CARDS_MAX];
} taken = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* The handles are the parent's, and so are their slots. */
static void taken_in_child(void)
{
	(void)pthread_mutex_init(&taken.lock, NULL);
	memset(taken.of, 0, sizeof(taken.of));
}

__attribute__((constructor)) static void taken_watch(void)
{
	(void)pthread_atfork(NULL, NULL, taken_in_child);
}

bool fp_slot_take(struct fp_device *dev, uint32_t slot)
{
	const uint64_t bit = UINT64_C(1) << slot;

	if (dev->slots[slot].taken)
		return true;
	pthread_mutex_lock(&taken.lock);
	dev->slots[slot].taken = !(taken.of[dev->index] & bit);
	taken.of[dev->index] |= bit;
	pthread_mutex_unlock(&taken.lock);
	return dev->slots[slot].taken;
}

void fp_slot_give(struct fp_device *dev, uint32_t slot)
{
	pthread_mutex_lock(&taken.lock);
	taken.of[dev->index] &= ~(UINT64_C(1) << slot);
	pthread_mutex_unlock(&taken.lock);
	dev->slots[slot].taken = false;
}

/* ---- closed and opened --------------------------------------------------------------- */

static uint32_t slot_of(const struct fp_chore *c)
{
	const struct fp_device *dev = c->device;
	const char *first = (const char *)&dev->slots[0].chore;

	return (uint32_t)((size_t)((const char *)c - first) / sizeof(dev->slots[0]));
}

static int anew(struct fp_chore *c)
{
	struct fp_device *dev = c->device;
	const uint32_t slot = slot_of(c);

	fp_slot_close(dev->loaded, slot);
	return fp_slot_open(dev, dev->loaded, slot, c->text, sizeof(c->text));
}

static int shut(struct fp_chore *c)
{
	const struct fp_device *dev = c->device;

	fp_slot_close(dev->loaded, slot_of(c));
	return 0;
}

static int retire(struct fp_chore *c)
{
	(void)shut(c);
	snprintf(c->text, sizeof(c->text),
		 "slot %u still hangs after its units were reopened; reset the card",
		 slot_of(c));
	return -EIO;
}

static void change(struct fp_device *dev, uint32_t slot, int (*work)(struct fp_chore *))
{
	dev->slots[slot].chore.work = work;
	dev->running |= UINT64_C(1) << slot;
	dev->changing |= UINT64_C(1) << slot;
	fp_move(dev, &dev->slots[slot].chore);
}

void fp_slot_anew(struct fp_device *dev, uint32_t slot)
{
	change(dev, slot, anew);
}

void fp_slot_shut(struct fp_device *dev, uint32_t slot)
{
	change(dev, slot, shut);
}

void fp_slot_retire(struct fp_device *dev, uint32_t slot)
{
	change(dev, slot, retire);
}

static void take_back(struct fp_device *dev, uint32_t slot)
{
	struct fp_slot *s = &dev->slots[slot];

	dev->changing &= ~(UINT64_C(1) << slot);
	dev->running &= ~(UINT64_C(1) << slot);
	dev->progress_ns = fp_now(dev);
	s->broken[0] = 0;
	if (s->chore.err)
		memcpy(s->broken, s->chore.text, sizeof(s->broken));
	if (s->opens) {
		s->opens = false;
		s->broken[0] = 0;
		fp_slot_anew(dev, slot);
	} else if (!s->owner && s->chore.work == anew && !s->chore.err) {
		fp_slot_shut(dev, slot);
	} else if (!s->owner && s->taken) {
		fp_slot_give(dev, slot);
	}
}

bool fp_slots_changed(struct fp_device *dev)
{
	uint64_t left = dev->changing;
	bool some = false;

	for (; left; left &= left - 1) {
		const uint32_t slot = (uint32_t)__builtin_ctzll(left);

		if (!atomic_load(&dev->slots[slot].chore.done))
			continue;
		take_back(dev, slot);
		some = true;
	}
	return some;
}

void fp_slot_wait(struct fp_device *dev, uint32_t slot)
{
	if (!(dev->changing >> slot & 1))
		return;
	fp_move_wait(dev, &dev->slots[slot].chore);
	take_back(dev, slot);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * poll.c - runs the machine; its interrupts become events.
 */
#include <string.h>

#include "complete.h"
#include "queue.h"
#include "ring.h"
#include "stop.h"

#define SETTLE_CYCLES 64u
#define SLICE_CYCLES  128u
#define SLICE_NS      500000

/* After an interrupt of this slot. */
static void look_at_slot(struct npu_partition *part)
{
	uint32_t irq = part->irq, state;

	part->irq = 0;
	npu_look_at_head(part);
	if (irq & (NPU_IRQ_FAULT | NPU_IRQ_QUIET)) {
		state = NPU_REG_GET(
			npu_read(part->dev, NPU_SLOT_ADDR(part->slot, STATUS)),
			STATUS_STATE);
		if (npu_has_stopped(state)) {
			npu_on_stopped(part, state);
			return;
		}
	}
	npu_feed(part);
}

/* ---- events ----------------------------------------------------------------------- */

static uint32_t take_ended(struct npu_partition *part, struct hal_bk_event *ev,
			   uint32_t max)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < part->count && n < max;) {
		if (!part->order[i]->done) {
			i++;
			continue;
		}
		ev[n++] = part->order[i]->event;
		npu_command_remove(part, i);
	}
	return n;
}

/* Write the ends of suspends and of a resize to ev.  The ends of commands must have been
 * written before: a queue that is quiet has none left, in whatever slot it ran. */
static uint32_t take_quiet(struct npu_partition *part, struct hal_bk_event *ev,
			   uint32_t max)
{
	uint32_t n = 0;

	for (struct npu_queue **at = &part->quiet_due; *at && n < max;) {
		struct npu_queue *q = *at;

		if (q->suspended == NPU_FOLDS ||
		    (q->commands && q->suspended != NPU_FOLDED)) {
			at = &q->next;
			continue;
		}
		*at = q->next;
		q->quiet_due = false;
		part->dev->owed--;
		if (q->suspended != NPU_FOLDED)
			q->quiet.start_ns = q->quiet.end_ns = npu_time(part->dev);
		if (q->suspended == NPU_KILLED && q->kept.entry)
			q->quiet.start_ns -= q->kept.ran_ns;
		ev[n++] = q->quiet;
	}
	if (part->moved && n < max) {
		part->moved = false;
		part->dev->owed--;
		ev[n++] = part->moved_event;
	}
	return n;
}

static bool interrupted(struct npu_device *dev)
{
	bool line;

	npu_lock(dev);
	line = dev->api->irq(dev->model);
	npu_unlock(dev);
	return line;
}

static void service_interrupts(struct npu_device *dev)
{
	uint32_t pend = npu_read(dev, NPU_GLB_IRQ_PEND_ADDR);

	npu_write(dev, NPU_GLB_IRQ_PEND_ADDR, pend);
	for (uint32_t i = 0; i < dev->opt.slots; i++) {
		uint32_t irq = 0;

		if (NPU_REG_GET(pend, IRQ_PEND_SIGNAL) >> i & 1u)
			irq |= NPU_IRQ_SIGNAL;
		if (NPU_REG_GET(pend, IRQ_PEND_FAULT) >> i & 1u)
			irq |= NPU_IRQ_FAULT;
		if (NPU_REG_GET(pend, IRQ_PEND_QUIET) >> i & 1u)
			irq |= NPU_IRQ_QUIET;
		if (dev->parts[i])
			dev->parts[i]->irq |= irq;
	}
}

static bool working(const struct npu_device *dev)
{
	for (uint32_t i = 0; i < dev->opt.slots; i++)
		if (dev->parts[i] && (dev->parts[i]->count > dev->parts[i]->frozen ||
				      dev->parts[i]->stopping))
			return true;
	return false;
}

static uint32_t all_events(struct npu_device *dev, struct hal_bk_event *ev, uint32_t max)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < dev->opt.slots; i++) {
		struct npu_partition *part = dev->parts[i];

		if (!part)
			continue;
		if (part->irq)
			look_at_slot(part);
		if (npu_stop_hurry_ns(part) <= npu_time(dev))
			npu_stop_hurry(part);
	}
	for (uint32_t i = 0; i < dev->opt.slots; i++)
		if (dev->parts[i])
			n += take_ended(dev->parts[i], ev + n, max - n);
	for (uint32_t i = 0; n < max && i < dev->opt.slots; i++)
		if (dev->parts[i])
			n += take_quiet(dev->parts[i], ev + n, max - n);
	return n;
}

/* The machine rests and yet commands are open: it has lost them. */
static void find_lost(struct npu_device *dev)
{
	for (uint32_t i = 0; i < dev->opt.slots; i++) {
		struct npu_partition *part = dev->parts[i];

		if (!part || !npu_first_open(part))
			continue;
		npu_look_at_head(part);
		if (!npu_first_open(part))
			continue;
		npu_fail_first(part, "the machine stopped without finishing the command");
		npu_restart(part);
	}
}

static bool resting(struct npu_device *dev)
{
	bool rests;

	npu_lock(dev);
	rests = dev->api->idle(dev->model) && !dev->api->irq(dev->model);
	npu_unlock(dev);
	return rests;
}

/* Until there may be an event, something has to be done, or limit is reached, which is
 * ahead. */
static void advance(struct npu_device *dev, uint64_t limit)
{
	uint64_t left;

	for (uint32_t i = 0; i < dev->opt.slots; i++)
		if (dev->parts[i] && npu_stop_hurry_ns(dev->parts[i]) < limit)
			limit = npu_stop_hurry_ns(dev->parts[i]);
	left = limit - npu_time(dev);

	/* A register write shows in the machine a few cycles later. */
	if (resting(dev)) {
		npu_run(dev, left < SETTLE_CYCLES ? left : SETTLE_CYCLES);
		if (resting(dev)) {
			if (left >= SETTLE_CYCLES)
				find_lost(dev);
			return;
		}
	} else {
		npu_run(dev, left);
	}
	/* A look into the register takes time, too. */
	if (interrupted(dev))
		service_interrupts(dev);
}

static int poll_virtual(struct npu_device *dev, uint64_t until, struct hal_bk_event *ev,
			uint32_t max)
{
	uint32_t n;

	for (;;) {
		n = all_events(dev, ev, max);
		if (n || npu_time(dev) >= until)
			return (int)n;
		if (!working(dev)) {
			if (until != UINT64_MAX)
				npu_skip(dev, until);
			return 0;
		}
		/* In steps: a program that stops the interrupt from coming is found. */
		advance(dev, until - npu_time(dev) < 1u << 20
				     ? until
				     : npu_time(dev) + (1u << 20));
	}
}

/* A slice of about half a millisecond of the host's time. */
static int poll_real(struct npu_device *dev, struct hal_bk_event *ev, uint32_t max)
{
	uint64_t end = npu_host_ns() + SLICE_NS;
	uint32_t n;

	for (;;) {
		n = all_events(dev, ev, max);
		if (!working(dev)) {
			if (atomic_load(&dev->rest_ns) == NPU_WORKS)
				npu_rests(dev);
			return (int)n;
		}
		if (n || npu_host_ns() >= end)
			return (int)n;
		advance(dev, npu_time(dev) + SLICE_CYCLES);
	}
}

int npu_poll(void *device, uint64_t until_ns, struct hal_bk_event *ev, uint32_t max)
{
	struct npu_device *dev = device;

	if (!max)
		return 0;
	return dev->opt.real ? poll_real(dev, ev, max)
			     : poll_virtual(dev, until_ns, ev, max);
}

/* Real clock: the machine runs only inside poll. */
uint64_t npu_next(void *device)
{
	const struct npu_device *dev = device;

	return dev->owed || atomic_load(&dev->rest_ns) == NPU_WORKS ? 0 : UINT64_MAX;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Suspend by FOLD: a kernel that follows the protocol of docs/fpga.md looks at a register
 * while it runs.  Asked by it, it writes its state to a buffer of the queue's and ends;
 * its next run goes on from there.  Neither call waits: they are a load and a store.
 */
#define _GNU_SOURCE
#include "internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

/* hal_stop: the host writes the first, the kernel answers with the second. */
#define ASKED   1u
#define STOPPED 2u

/* ---- what it writes ------------------------------------------------------------------ */

/* Where most slots reach it, and of those where most room is; FP_BANKS_MAX: nowhere. */
static uint32_t choose_bank(const struct fp_device *dev, const struct fp_queue *q,
			    const uint64_t *reach, uint64_t bytes, uint64_t slots)
{
	const struct fp_xclbin *x = &dev->base->x;
	uint32_t bank, best = FP_BANKS_MAX;
	uint64_t most = 0, most_left = 0;

	for (bank = 0; bank < x->bank_count; bank++) {
		const uint64_t left =
			x->banks[bank].bytes - atomic_load(&dev->bank_used[bank]);
		const uint64_t n = (uint64_t)__builtin_popcountll(slots & reach[bank]);

		if (!n || left < bytes || !(q->part->desc.color_mask >> bank & 1))
			continue;
		if (n > most || (n == most && left > most_left)) {
			most = n;
			most_left = left;
			best = bank;
		}
	}
	return best;
}

static int make_state(struct fp_device *dev, struct fp_queue *q,
		      const struct fp_kernel *k, uint64_t bytes, uint64_t slots)
{
	const uint64_t *reach = &k->reach[(size_t)HAL_ARGS_MAX * FP_BANKS_MAX];
	const uint32_t bank = choose_bank(dev, q, reach, bytes, slots);
	struct fp_state *s;
	char what[96];
	int err;

	/* A thread that creates a buffer may take from the bank that was chosen. */
	if (bank == FP_BANKS_MAX || !fp_bank_take(dev, bank, bytes))
		return fp_host->fail(ENOSPC,
				     "fpga:%u: kernel %s: no bank of the partition that "
				     "its units access as hal_state has %llu bytes free",
				     dev->index, k->desc->name,
				     (unsigned long long)bytes);
	s = calloc(1, sizeof(*s));
	if (!s) {
		fp_bank_give(dev, bank, bytes);
		return fp_host->fail(ENOMEM, "fpga: no memory for a kernel's state");
	}
	s->bo = XRT(xrtBOAlloc, dev->handle, bytes, XRT_FLAGS_NONE, bank);
	if (!s->bo) {
		snprintf(what, sizeof(what), "hal_state of kernel %.31s", k->desc->name);
		err = fp_failed(dev, "xrtBOAlloc", what);
		fp_bank_give(dev, bank, bytes);
		free(s);
		return err;
	}
	s->bank = bank;
	s->bytes = bytes;
	s->next = q->states;
	q->states = s;
	return 0;
}

int fp_state_take(struct fp_device *dev, struct fp_queue *q, const struct fp_kernel *k,
		  uint64_t *slots, struct fp_state **out)
{
	const uint64_t *reach = &k->reach[(size_t)HAL_ARGS_MAX * FP_BANKS_MAX];
	const uint64_t least = k->desc->args[fp_state_arg(k->desc)].bytes;
	const uint64_t bytes = (least + FP_PAGE - 1) & ~(uint64_t)(FP_PAGE - 1);
	struct fp_state *s;
	int err;

	/* One at a time runs, or is stopped inside: they can share it. */
	for (s = q->states; s; s = s->next)
		if (s->bytes >= least && (*slots & reach[s->bank]))
			break;
	if (!s) {
		err = make_state(dev, q, k, bytes, *slots);
		s = q->states;
		if (err || !s)
			return err;
	}
	*slots &= reach[s->bank];
	*out = s;
	return 0;
}

void fp_states_drop(struct fp_device *dev, struct fp_queue *q)
{
	while (q->states) {
		struct fp_state *s = q->states;

		q->states = s->next;
		if (xrt.xrtBOFree(s->bo))
			(void)xrt.xrtBOFree(s->bo);
		fp_bank_give(dev, s->bank, s->bytes);
		free(s);
	}
}

/* ---- asking -------------------------------------------------------------------------- */

static uint32_t stop_register(const struct fp_kernel *k)
{
	return k->desc->args[fp_state_arg(k->desc) + 2].offset;
}

int fp_stop_ask(struct fp_device *dev, struct fp_queue *q)
{
	const struct fp_kernel *k = fp_oldest(q)->launch.kernel;

	if (XRT(xrtKernelWriteRegister, fp_unit_of(q, k)->kernel, stop_register(k),
		ASKED))
		return fp_failed(dev, "xrtKernelWriteRegister", "cannot stop the run");
	return 0;
}

void fp_stop_answer(struct fp_device *dev, struct fp_queue *q)
{
	const struct fp_kernel *k = fp_oldest(q)->launch.kernel;
	uint32_t value = 0;
	char text[64];

	if (XRT(xrtKernelReadRegister, fp_unit_of(q, k)->kernel, stop_register(k),
		&value)) {
		(void)fp_why(dev, "xrtKernelReadRegister", text, sizeof(text));
		q->status = -EIO;
		snprintf(q->base.fault, sizeof(q->base.fault),
			 "%.40s: kernel %.31s in slot %u", text, k->desc->name, q->slot);
	} else if (value & ~(ASKED | STOPPED)) {
		q->status = -EIO;
		snprintf(q->base.fault, sizeof(q->base.fault),
			 "hal_stop is 0x%08x: kernel %.31s in slot %u", value,
			 k->desc->name, q->slot);
	} else {
		q->stopped = (value & STOPPED) != 0;
	}
}

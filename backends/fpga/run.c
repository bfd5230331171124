/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs: a launch is a run of one compute unit, that of its kernel in a free slot of its
 * partition.  Which banks the unit is connected to is looked at before: the card answers
 * only with a run that fails.
 */
#define _GNU_SOURCE
#include "internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static const char *state_name(uint32_t state)
{
	switch (state) {
#define STATE_NAME(name, value)                                                          \
	case XRT_##name:                                                                 \
		return "ERT_CMD_STATE_" #name;
		XRT_STATES(STATE_NAME)
#undef STATE_NAME
	default:
		return "an unknown state";
	}
}

/* ---- which slot ---------------------------------------------------------------------- */

/* HAL_ARGS_MAX: the slot's unit reaches all; or the first argument that it does not. */
static uint32_t unreached(const struct fp_unit_desc *u, const struct hal_bk_cmd *cmd)
{
	uint32_t i;

	for (i = 0; i < cmd->launch.arg_count; i++) {
		const struct fp_mem *mem = cmd->launch.args[i].mem;

		if (mem && !(u->reach[i] >> mem->bank & 1))
			return i;
	}
	return HAL_ARGS_MAX;
}

/* NULL: the kernel has no unit there. */
static const struct fp_unit_desc *unit_in(const struct fp_kernel *k, uint32_t slot)
{
	const struct fp_unit_desc *u;

	if (slot >= k->design->x.slot_count)
		return NULL;
	u = fp_xclbin_unit(&k->design->x, k->index, slot);
	return u->name[0] ? u : NULL;
}

static void list_banks(const struct fp_xclbin *x, uint64_t mask, char *to, size_t room)
{
	size_t at = 0;
	uint32_t i;

	snprintf(to, room, "none");
	for (i = 0; i < x->bank_count && at + 24 < room; i++)
		if (mask >> i & 1)
			at += (size_t)snprintf(to + at, room - at, "%s%s", at ? " " : "",
					       x->banks[i].tag);
}

static int check_args(const struct hal_bk_cmd *cmd, const struct fp_kernel_desc *k)
{
	uint32_t i;

	for (i = 0; i < cmd->launch.arg_count; i++) {
		const struct hal_bk_arg *a = &cmd->launch.args[i];
		const struct fp_arg *want = &k->args[i];
		const char *why = NULL;

		if (want->memory != (a->mem != NULL))
			why = want->memory ? "is memory, not a scalar"
					   : "is a scalar, not memory";
		else if (!a->mem && want->scalar_bytes < 8 &&
			 a->value >> (8 * want->scalar_bytes))
			why = "does not fit its register";
		if (why)
			return fp_host->fail(EINVAL,
					     "fpga: kernel %s: argument %u (%s) %s",
					     k->name, i, want->name, why);
	}
	for (i = 0; i < 3; i++)
		if (i >= k->group_args && cmd->launch.groups[i] != 1)
			return fp_host->fail(
				EINVAL,
				"fpga: kernel %s: %u x %u x %u groups, but it "
				"takes %u numbers of them (its last arguments "
				"by the names hal_groups_x, _y, _z)",
				k->name, cmd->launch.groups[0], cmd->launch.groups[1],
				cmd->launch.groups[2], k->group_args);
	return 0;
}

int fp_run_check(const struct fp_device *dev, const struct fp_partition *part,
		 const struct hal_bk_cmd *cmd)
{
	const struct fp_kernel *k = cmd->launch.kernel;
	const struct fp_kernel_desc *desc = &k->design->x.kernels[k->index];
	const struct fp_unit_desc *some = NULL;
	const struct fp_mem *mem;
	char banks[256];
	uint32_t i, arg;
	int err = check_args(cmd, desc);

	if (err)
		return err;
	for (i = part->desc.col; i < part->desc.col + part->desc.units; i++) {
		const struct fp_unit_desc *u = unit_in(k, i);

		if (u && unreached(u, cmd) == HAL_ARGS_MAX)
			return 0;
		some = u ? u : some;
	}
	if (!some)
		return fp_host->fail(
			EINVAL,
			"fpga:%u: kernel %s has %u units: none in slots %u to "
			"%u of the partition",
			dev->index, desc->name, desc->unit_count, part->desc.col, i - 1);
	arg = unreached(some, cmd);
	mem = cmd->launch.args[arg].mem;
	list_banks(&k->design->x, some->reach[arg], banks, sizeof(banks));
	return fp_host->fail(EINVAL,
			     "fpga:%u: kernel %s: argument %u (%s) is in bank %s, which "
			     "unit %s does not reach; it reaches: %s",
			     dev->index, desc->name, arg, desc->args[arg].name,
			     dev->base->x.banks[mem->bank].tag, some->name, banks);
}

/* FP_SLOTS_MAX: none is free now. */
static uint32_t find_slot(const struct fp_device *dev, const struct fp_partition *part,
			  const struct hal_bk_cmd *cmd, const char **broken)
{
	const struct fp_kernel *k = cmd->launch.kernel;
	bool later = false;
	uint32_t i;

	*broken = NULL;
	for (i = part->desc.col; i < part->desc.col + part->desc.units; i++) {
		const struct fp_unit_desc *u = unit_in(k, i);

		if (!u || unreached(u, cmd) != HAL_ARGS_MAX)
			continue;
		if (dev->slots[i].broken[0])
			*broken = dev->slots[i].broken;
		else if (dev->slots[i].running)
			later = true;
		else
			return i;
	}
	if (later)
		*broken = NULL;
	return FP_SLOTS_MAX;
}

/* ---- begin --------------------------------------------------------------------------- */

static int set_number(void *run, int index, const struct fp_arg *a, uint64_t value)
{
	float f;
	double d;

	if (a->is_float) {
		memcpy(&f, &value, sizeof(f));
		d = (double)f;
	} else {
		memcpy(&d, &value, sizeof(d));
	}
	return a->is_float || a->is_double ? XRT(xrtRunSetArg, run, index, d)
					   : XRT(xrtRunSetArg, run, index, value);
}

/* The handle that the unit is given: a buffer, or its part from an offset on. */
static void *handle_of(struct fp_queue *q, const struct hal_bk_arg *a)
{
	const struct fp_mem *mem = a->mem;
	void *sub;

	if (!a->value)
		return mem->bo;
	sub = XRT(xrtBOSubAlloc, mem->bo, mem->bytes - a->value, a->value);
	if (sub)
		q->subs[q->sub_count++] = sub;
	return sub;
}

static const char *set_args(struct fp_queue *q, const struct fp_kernel_desc *k, void *run)
{
	const struct hal_bk_cmd *cmd = fp_oldest(q);
	uint32_t i;

	for (i = 0; i < k->arg_count; i++) {
		const struct hal_bk_arg *a = &cmd->launch.args[i];
		void *bo = NULL;

		if (a->mem) {
			bo = handle_of(q, a);
			if (!bo)
				return "xrtBOSubAlloc";
		}
		if (bo ? XRT(xrtRunSetArg, run, (int)i, bo)
		       : set_number(run, (int)i, &k->args[i], a->value))
			return "xrtRunSetArg";
	}
	for (i = 0; i < k->group_args; i++)
		if (XRT(xrtRunSetArg, run, (int)(k->arg_count + i),
			cmd->launch.groups[i]))
			return "xrtRunSetArg";
	return NULL;
}

int fp_run_begin(struct fp_device *dev, struct fp_queue *q)
{
	const struct hal_bk_cmd *cmd = fp_oldest(q);
	const struct fp_kernel *k = cmd->launch.kernel;
	const struct fp_kernel_desc *desc = &k->design->x.kernels[k->index];
	const char *broken, *call;
	char text[64];
	void *run;
	int err;

	q->slot = find_slot(dev, q->part, cmd, &broken);
	if (q->slot == FP_SLOTS_MAX && !broken)
		return -EAGAIN;
	q->sub_count = 0;
	if (broken && q->slot == FP_SLOTS_MAX) {
		snprintf(q->fault, sizeof(q->fault), "%s", broken);
		return -EIO;
	}
	run = k->design->units[k->index * k->design->x.slot_count + q->slot].run;
	call = set_args(q, desc, run);
	if (!call && XRT(xrtRunStart, run))
		call = "xrtRunStart";
	if (!call) {
		dev->slots[q->slot].running = true;
		dev->running++;
		return 0;
	}
	err = fp_why(dev, call, text, sizeof(text));
	snprintf(q->fault, sizeof(q->fault), "%.50s: kernel %.31s", text, desc->name);
	fp_run_put_away(dev, q);
	return err;
}

/* ---- end ----------------------------------------------------------------------------- */

void fp_run_put_away(struct fp_device *dev, struct fp_queue *q)
{
	while (q->sub_count) {
		void *sub = q->subs[--q->sub_count];

		if (xrt.xrtBOFree(sub))
			(void)xrt.xrtBOFree(sub);
	}
	if (q->phase == FP_RUNNING) {
		dev->slots[q->slot].running = false;
		dev->running--;
	}
}

bool fp_run_ended(struct fp_device *dev, struct fp_queue *q)
{
	const struct fp_kernel *k = fp_oldest(q)->launch.kernel;
	const struct fp_kernel_desc *desc = &k->design->x.kernels[k->index];
	void *run = k->design->units[k->index * k->design->x.slot_count + q->slot].run;
	const uint32_t state = XRT(xrtRunState, run);
	struct fp_slot *slot = &dev->slots[q->slot];
	char text[64] = "";
	bool hangs;

	if (errno)
		(void)fp_why(dev, "xrtRunState", text, sizeof(text));
	hangs = state < XRT_COMPLETED || state == XRT_SUBMITTED;
	if (hangs && (!dev->opt.hang_ns || fp_now(dev) - q->start_ns < dev->opt.hang_ns))
		return false;
	q->status = state == XRT_COMPLETED ? 0 : -EIO;
	if (hangs)
		snprintf(q->fault, sizeof(q->fault),
			 "hung for %u ms: kernel %.31s in slot %u",
			 (uint32_t)(dev->opt.hang_ns / 1000000), desc->name, q->slot);
	else if (q->status && text[0])
		snprintf(q->fault, sizeof(q->fault), "%.40s: kernel %.31s in slot %u",
			 text, desc->name, q->slot);
	else if (q->status)
		snprintf(q->fault, sizeof(q->fault), "%s (%u): kernel %.31s in slot %u",
			 state_name(state), state, desc->name, q->slot);
	fp_run_put_away(dev, q);
	if (q->status && !atomic_load(&dev->lost)) {
		/* The slot, not the card: its units begin anew. */
		fp_slot_close(dev, q->slot);
		slot->broken[0] = 0;
		(void)fp_slot_open(dev, q->slot, slot->broken, sizeof(slot->broken));
	}
	return true;
}

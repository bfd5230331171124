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
		return "unknown state";
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
			why = want->memory ? "must be a buffer, but is a scalar"
					   : "must be a scalar, but is a buffer";
		else if (!a->mem && want->scalar_bytes < 8 &&
			 a->value >> (8 * want->scalar_bytes))
			why = "does not fit into its register";
		if (why)
			return fp_host->fail(EINVAL,
					     "fpga: kernel %s: argument %u (%s) %s",
					     k->name, i, want->name, why);
	}
	for (i = 0; i < 3; i++)
		if (i >= k->group_args && cmd->launch.groups[i] != 1)
			return fp_host->fail(
				EINVAL,
				"fpga: kernel %s: %u x %u x %u groups, but the kernel "
				"takes only %u group counts (last arguments named "
				"hal_groups_x, _y, _z)",
				k->name, cmd->launch.groups[0], cmd->launch.groups[1],
				cmd->launch.groups[2], k->group_args);
	return 0;
}

/* Why no slot of the partition ever can; or one can, in as many groups. */
static int __attribute__((noinline, cold))
explain(const struct fp_device *dev, const struct fp_partition *part,
	const struct hal_bk_cmd *cmd, uint64_t slots)
{
	const struct fp_kernel *k = cmd->launch.kernel;
	const struct fp_unit_desc *some = NULL;
	const struct fp_mem *mem;
	char banks[256];
	uint32_t i, arg;
	int err = check_args(cmd, k->desc);

	if (err || slots)
		return err;
	for (i = part->desc.col; i < part->desc.col + part->desc.units; i++)
		if (k->slots >> i & 1)
			some = fp_xclbin_unit(&k->design->x, k->index, i);
	if (!some)
		return fp_host->fail(EINVAL,
				     "fpga:%u: kernel %s has %u units, but none in the "
				     "partition's slots %u to %u",
				     dev->index, k->desc->name, k->desc->unit_count,
				     part->desc.col, i - 1);
	arg = unreached(some, cmd);
	mem = cmd->launch.args[arg].mem;
	list_banks(&k->design->x, some->reach[arg], banks, sizeof(banks));
	return fp_host->fail(EINVAL,
			     "fpga:%u: kernel %s: argument %u (%s) is in bank %s, which "
			     "unit %s cannot access; it can access: %s",
			     dev->index, k->desc->name, arg, k->desc->args[arg].name,
			     dev->base->x.banks[mem->bank].tag, some->name, banks);
}

int fp_run_check(const struct fp_device *dev, const struct fp_partition *part,
		 const struct hal_bk_cmd *cmd, uint64_t *slots)
{
	const struct fp_kernel *k = cmd->launch.kernel;
	const uint32_t *groups = cmd->launch.groups;
	uint64_t can = k->slots & part->slots, beyond = 0;
	const struct fp_arg *want = k->desc->args;
	const uint64_t *reach = k->reach;
	uint32_t i, memory = 0;

	for (i = 0; i < cmd->launch.arg_count; i++, want++, reach += FP_BANKS_MAX) {
		const struct hal_bk_arg *a = &cmd->launch.args[i];
		const struct fp_mem *mem = a->mem;

		if (mem) {
			can &= reach[mem->bank];
			memory |= 1u << i;
		} else if (want->scalar_bytes < 8) {
			beyond |= a->value >> (8 * want->scalar_bytes);
		}
	}
	*slots = can;
	if (__builtin_expect(can && !beyond && memory == k->memory &&
				     (groups[0] | groups[1] | groups[2]) == 1,
			     1))
		return 0;
	return explain(dev, part, cmd, can);
}

/* ---- begin --------------------------------------------------------------------------- */

static int set_number(void *run, int index, const struct fp_arg *a, uint64_t value)
{
	float f;
	double d;

	if (!a->is_float && !a->is_double)
		return xrt.xrtRunSetArg(run, index, value);
	if (a->is_float) {
		memcpy(&f, &value, sizeof(f));
		d = (double)f;
	} else {
		memcpy(&d, &value, sizeof(d));
	}
	return xrt.xrtRunSetArg(run, index, d);
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

/* Those of a kernel that can be stopped. */
static bool set_stop_args(const struct fp_queue *q, const struct fp_kernel_desc *k,
			  void *run)
{
	const struct fp_command *c = &q->cmds[q->base.head];
	const int at = (int)fp_state_arg(k);

	return !xrt.xrtRunSetArg(run, at, c->state->bo) &&
	       !xrt.xrtRunSetArg(run, at + 1, (uint64_t)c->resumes) &&
	       !xrt.xrtRunSetArg(run, at + 2, UINT64_C(0));
}

static const char *set_args(struct fp_queue *q, const struct fp_kernel_desc *k, void *run)
{
	const struct hal_bk_cmd *cmd = fp_oldest(q);
	int i, count = (int)k->arg_count;

	errno = 0;
	for (i = 0; i < count; i++) {
		const struct hal_bk_arg *a = &cmd->launch.args[i];
		void *bo;

		if (!a->mem) {
			if (set_number(run, i, &k->args[i], a->value))
				return "xrtRunSetArg";
			continue;
		}
		bo = handle_of(q, a);
		if (!bo)
			return "xrtBOSubAlloc";
		if (xrt.xrtRunSetArg(run, i, bo))
			return "xrtRunSetArg";
	}
	for (i = 0; i < (int)k->group_args; i++)
		if (xrt.xrtRunSetArg(run, count + i, cmd->launch.groups[i]))
			return "xrtRunSetArg";
	if (k->stops && !set_stop_args(q, k, run))
		return "xrtRunSetArg";
	return NULL;
}

/* False: there is none now, and those that are broken are opened once more, as whoever
 * had them may be gone; or, in q->base.fault, all are broken. */
static bool find_slot(struct fp_device *dev, struct fp_queue *q)
{
	struct fp_command *c = &q->cmds[q->base.head];
	uint64_t left;

	for (left = c->slots & ~dev->running; left; left &= left - 1) {
		q->slot = (uint32_t)__builtin_ctzll(left);
		if (!dev->slots[q->slot].broken[0])
			return true;
		snprintf(q->base.fault, sizeof(q->base.fault), "%s",
			 dev->slots[q->slot].broken);
	}
	for (left = c->slots & ~dev->running & ~c->tried; left; left &= left - 1) {
		const uint32_t slot = (uint32_t)__builtin_ctzll(left);

		c->tried |= UINT64_C(1) << slot;
		if (dev->slots[slot].hangs < 2)
			fp_slot_anew(dev, slot);
	}
	return false;
}

int fp_run_refused(struct fp_device *dev, struct fp_queue *q, const struct fp_kernel *k,
		   const char *call)
{
	char text[64];
	const int err = fp_why(dev, call, text, sizeof(text));

	snprintf(q->base.fault, sizeof(q->base.fault), "%.50s: kernel %.31s", text,
		 k->desc->name);
	fp_run_put_away(dev, q);
	return err == -EAGAIN ? -EIO : err; /* -EAGAIN: no slot is free */
}

int fp_run_begin(struct fp_device *dev, struct fp_queue *q)
{
	const struct fp_kernel *k = fp_oldest(q)->launch.kernel;
	const char *call;
	void *run;

	q->sub_count = 0;
	if (!find_slot(dev, q))
		return q->cmds[q->base.head].slots & dev->running ? -EAGAIN : -EIO;
	run = fp_unit_of(q, k)->run;
	call = set_args(q, k->desc, run);
	if (!call && xrt.xrtRunStart(run))
		call = "xrtRunStart";
	if (call)
		return fp_run_refused(dev, q, k, call);
	dev->running |= UINT64_C(1) << q->slot;
	return 0;
}

/* ---- end ----------------------------------------------------------------------------- */

void fp_run_put_away(struct fp_device *dev, struct fp_queue *q)
{
	while (q->sub_count) {
		void *sub = q->subs[--q->sub_count];

		if (xrt.xrtBOFree(sub))
			(void)xrt.xrtBOFree(sub);
	}
	if (q->phase == FP_RUNNING)
		dev->running &= ~(UINT64_C(1) << q->slot);
}

bool fp_run_ended(struct fp_device *dev, struct fp_queue *q)
{
	const struct fp_kernel *k = fp_oldest(q)->launch.kernel;
	const uint32_t state = XRT(xrtRunState, fp_unit_of(q, k)->run);
	char text[64] = "";
	bool hangs;

	if (errno)
		(void)fp_why(dev, "xrtRunState", text, sizeof(text));
	hangs = state < XRT_COMPLETED || state == XRT_SUBMITTED;
	if (hangs &&
	    (!dev->opt.hang_ns || fp_now(dev) - q->start_ns < dev->opt.hang_ns)) {
		if (q->asked)
			(void)fp_stop_ask(dev, q);
		return false;
	}
	q->status = state == XRT_COMPLETED ? 0 : -EIO;
	if (hangs)
		snprintf(q->base.fault, sizeof(q->base.fault),
			 "hung for %u ms: kernel %.31s in slot %u",
			 (uint32_t)(dev->opt.hang_ns / 1000000), k->desc->name, q->slot);
	else if (q->status && text[0])
		snprintf(q->base.fault, sizeof(q->base.fault),
			 "%.40s: kernel %.31s in slot %u", text, k->desc->name, q->slot);
	else if (q->status)
		snprintf(q->base.fault, sizeof(q->base.fault),
			 "%s (%u): kernel %.31s in slot %u", state_name(state), state,
			 k->desc->name, q->slot);
	else if (q->asked)
		fp_stop_answer(dev, q);
	/* XRT has given it up, and has waited long: where that comes again the slot has
	 * not been helped by its units being opened anew. */
	if (state == XRT_TIMEOUT || state == XRT_NORESPONSE)
		dev->slots[q->slot].hangs++;
	else if (state == XRT_COMPLETED)
		dev->slots[q->slot].hangs = 0;
	return true;
}

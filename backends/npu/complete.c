/* SPDX-License-Identifier: Apache-2.0 */
/*
 * complete.c - the ends of commands: when each began and ended, what it moved, and what a
 * fault says.
 */
#include "complete.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "queue.h"
#include "ring.h"

/* From one command's end to the next one's TIMESTAMP: descriptor and fence are reached
 * through page tables of two levels, and the fence before is stored first. */
#define START_REQUESTS 12u

/* ---- ends ------------------------------------------------------------------------- */

/* The first that may be at work. */
struct npu_command *npu_first_open(const struct npu_partition *part)
{
	for (uint32_t i = 0; i < part->count; i++)
		if (!part->order[i]->done && !npu_frozen(part->order[i]))
			return part->order[i];
	return NULL;
}

/* When the command began.  The word lies in the tenant's memory, where its programs could
 * write anything.  The machine takes up a command when it is in the ring and the one
 * ahead has ended, a few requests later: what cannot be true is not told. */
uint64_t npu_start_time(const struct npu_command *c, uint64_t first, uint64_t end)
{
	const struct npu_partition *part = npu_space_of(c);
	uint64_t start = npu_fence_time(part, npu_times_offset(c));

	/* Earlier than first is a large number, too. */
	if (start - first > START_REQUESTS * npu_request_worst(&part->dev->opt))
		start = first;
	return start < end ? start : end;
}

void npu_scratch_drop(struct npu_command *c)
{
	if (c->scratch)
		npu_scratch_release(npu_space_of(c), &c->cmd, c->scratch);
	c->scratch = NULL;
}

/* How far the command had come decides which of its times exist; none is in the future.
 */
void npu_set_done(struct npu_partition *part, struct npu_command *c, int status)
{
	bool begun = (c->fed != c->base && npu_completed(part, c)) || !status;
	uint64_t now = npu_time(part->dev), first = now, end = now;

	if (begun)
		first = c->fed_ns > part->ended_ns ? c->fed_ns : part->ended_ns;
	if (!status)
		end = npu_fence_time(npu_space_of(c), npu_times_offset(c) + 8);
	if (end < first || end > now)
		end = now;
	c->done = true;
	if (!status && npu_needs_correction(part, c))
		npu_correct_timestamp(part, c);
	if (!status)
		npu_bounce_out(&c->cmd);
	memset(&c->event, 0, sizeof(c->event));
	c->event.kind = HAL_BK_DONE;
	c->event.status = status;
	c->event.cookie = c->cmd.cookie;
	c->event.end_ns = end;
	c->event.start_ns = begun ? npu_start_time(c, first, end) : end;
	if (begun)
		part->ended_ns = end;
	npu_times_drop(part, c);
	npu_scratch_drop(c);
}

void npu_count_from_now(struct npu_partition *part)
{
	struct npu_device *dev = part->dev;

	npu_lock(dev);
	npu_write(dev, NPU_GLB_PERF_SNAPSHOT_ADDR, 1);
	part->read_beats = npu_read(dev, NPU_SLOT_ADDR(part->slot, CNT_READ_BEATS));
	part->write_beats = npu_read(dev, NPU_SLOT_ADDR(part->slot, CNT_WRITE_BEATS));
	npu_unlock(dev);
}

/* Bytes since they were last told belong to the commands that ended meanwhile. */
static void count_bytes(struct npu_partition *part, struct hal_bk_event *ev)
{
	uint32_t reads = part->read_beats, writes = part->write_beats;

	npu_count_from_now(part);
	ev->bytes_read = (uint64_t)(part->read_beats - reads) * NPU_BEAT_BYTES;
	ev->bytes_written = (uint64_t)(part->write_beats - writes) * NPU_BEAT_BYTES;
}

/* Commands that have ended.  HEAD is the machine's own; the fence value lies in the
 * tenant's memory, where its programs could write anything. */
void npu_look_at_head(struct npu_partition *part)
{
	struct npu_command *last = NULL;

	part->head = npu_read(part->dev, NPU_SLOT_ADDR(part->slot, HEAD));
	for (uint32_t i = 0; i < part->count; i++) {
		struct npu_command *c = part->order[i];

		if (c->done || npu_frozen(c))
			continue;
		if (npu_completed(part, c) < c->entries)
			break;
		npu_set_done(part, c, 0);
		last = c;
	}
	if (last)
		count_bytes(part, &last->event);
}

/* ---- faults ----------------------------------------------------------------------- */

static const char *fault_name(uint32_t kind)
{
	switch (kind) {
	case NPU_FAULT_OPCODE:
		return "unknown operation";
	case NPU_FAULT_FIELD:
		return "bad field in word";
	case NPU_FAULT_BOUNDS:
		return "out-of-bounds address";
	case NPU_FAULT_UNMAPPED:
		return "unmapped address";
	case NPU_FAULT_WRITE:
		return "read-only address";
	case NPU_FAULT_CHANNEL:
		return "foreign channel, address";
	case NPU_FAULT_NO_UNITS:
		return "the partition has no units";
	case NPU_FAULT_CONTEXT:
		return "no saved context at address";
	default:
		return "unknown fault";
	}
}

static const char *op_name(const uint32_t *desc)
{
	static const char *const ops[] = {"NOP",    "GEMM", "CONV",     "VEC",
					  "SIGNAL", "WAIT", "TIMESTAMP"};
	static const char *const vops[] = {"COPY", "FILL", "ADD", "RELU", "MAXPOOL"};
	uint32_t op = NPU_GET(desc, OPCODE), vop = NPU_GET(desc, VOP);

	if (op == NPU_OP_VEC && vop < sizeof(vops) / sizeof(vops[0]))
		return vops[vop];
	return op < sizeof(ops) / sizeof(ops[0]) ? ops[op] : "?";
}

const char *npu_command_text(const struct hal_bk_cmd *cmd, char *text, size_t size)
{
	switch (cmd->op) {
	case HAL_OP_LAUNCH:
		snprintf(text, size, "kernel '%.31s'",
			 ((const struct npu_kernel *)cmd->launch.kernel)->k->name);
		return text;
	case HAL_OP_COPY:
		return "a copy";
	case HAL_OP_FILL:
		return "a fill";
	case HAL_OP_TIMESTAMP:
		return "a timestamp";
	default:
		return "a command";
	}
}

/* "unmapped address 0x1f400 in descriptor 3 (CONV) of kernel 'digits'" */
static void describe_fault(struct npu_partition *part, struct npu_command *c,
			   uint32_t entry)
{
	uint32_t kind = npu_read(part->dev, NPU_SLOT_ADDR(part->slot, FAULT_KIND));
	uint32_t address = npu_read(part->dev, NPU_SLOT_ADDR(part->slot, FAULT_ADDR));
	struct hal_bk_event *ev = &c->event;
	uint32_t desc[16], index = 0;
	bool has_address = kind != NPU_FAULT_OPCODE && kind != NPU_FAULT_NO_UNITS;
	char text[160], at[16] = "", what[64];

	if (has_address)
		snprintf(at, sizeof(at), " 0x%x", address);
	npu_entry(c, entry, desc);
	if (c->cmd.op == HAL_OP_LAUNCH && npu_is_body(c, entry, &index))
		snprintf(text, sizeof(text), "%s%s in descriptor %u (%s) of %s",
			 fault_name(kind), at, index, op_name(desc),
			 npu_command_text(&c->cmd, what, sizeof(what)));
	else
		snprintf(text, sizeof(text), "%s%s in %s (%s)", fault_name(kind), at,
			 npu_command_text(&c->cmd, what, sizeof(what)), op_name(desc));
	text[sizeof(ev->fault) - 1] = 0;
	memcpy(ev->fault, text, strlen(text) + 1);
}

static void cancel_others(struct npu_partition *part, const struct npu_queue *q)
{
	for (uint32_t i = 0; i < part->count; i++)
		if (part->order[i]->queue == q && !part->order[i]->done)
			npu_set_done(part, part->order[i], -ECANCELED);
}

/* The command at the ring's head has failed; its queue's others go with it. */
void npu_fail_first(struct npu_partition *part, const char *text)
{
	struct npu_command *c = npu_first_open(part);

	if (!c)
		return;
	npu_held_enter(part, c->queue);
	npu_set_done(part, c, -EIO);
	count_bytes(part, &c->event);
	if (text)
		snprintf(c->event.fault, sizeof(c->event.fault), "%s", text);
	else
		describe_fault(part, c, npu_completed(part, c));
	cancel_others(part, c->queue);
	cancel_others(c->queue->part->host, c->queue); /* npu_held_enter */
}

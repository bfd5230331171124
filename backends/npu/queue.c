/* SPDX-License-Identifier: Apache-2.0 */
/*
 * queue.c - hot path: commands become ring entries, the machine's interrupts become
 * events.
 *
 *   submit -> order[] -> entries of the ring -> (machine) -> fence value -> event
 *
 * A command is TIMESTAMP, its own descriptors, TIMESTAMP, SIGNAL; the SIGNAL writes the
 * command's number and interrupts.  HEAD then says what has ended.  What does not fit the
 * ring follows as it empties: long commands carry progress marks (a SIGNAL that only
 * interrupts).
 *
 * Whenever the slot stops (KILL, FOLD, DRAIN, fault), the ring is begun anew: what has
 * not ended is written again, from where it may go on.  A FOLD may stop inside a
 * descriptor: its context is taken from the save area in the fence page, and put back
 * there when the descriptor is the first of an empty ring.
 */
#include "internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FENCE_MARK    8u  /* where progress marks write */
#define FENCE_TIMES   64u /* start and end of each command at work */
#define FENCE_SAVE    (FENCE_TIMES + NPU_COMMANDS * 16) /* the slot's save area */
#define FENCE_BYTES   (FENCE_SAVE + 64)
#define PIECE_BYTES   32768u
#define FIELD_BYTES   65535u
#define SETTLE_CYCLES 64u
/* From one command's end to the next one's TIMESTAMP: descriptor and fence are reached
 * through page tables of two levels, and the fence before is stored first. */
#define START_REQUESTS 12u
#define SLICE_CYCLES   128u
#define SLICE_NS       500000

/* ---- the fence page --------------------------------------------------------------- */

/* The address space of a command. */
static struct npu_partition *space_of(const struct npu_command *c)
{
	return c->queue->part;
}

static uint64_t fence_word(const struct npu_partition *part, uint32_t offset)
{
	uint64_t together, word;

	memcpy(&word, npu_bytes(part->fence, offset, &together), sizeof(word));
	return word;
}

/* A time that the machine has written there. */
static uint64_t fence_time(const struct npu_partition *part, uint32_t offset)
{
	return fence_word(part, offset) + part->dev->skipped;
}

static uint32_t times_offset(const struct npu_command *c)
{
	return FENCE_TIMES + c->times * 16;
}

/* False: none is left. */
static bool take_times(struct npu_partition *part, struct npu_command *c)
{
	if (c->times != NPU_TIMES_NONE)
		return true;
	if (part->times_used == UINT64_MAX)
		return false;
	c->times = (uint32_t)__builtin_ctzll(~part->times_used);
	part->times_used |= UINT64_C(1) << c->times;
	return true;
}

static void drop_times(struct npu_partition *part, struct npu_command *c)
{
	if (c->times != NPU_TIMES_NONE)
		part->times_used &= ~(UINT64_C(1) << c->times);
	c->times = NPU_TIMES_NONE;
}

int npu_ring_open(struct npu_partition *part)
{
	int rc;

	/* The tenant's programs may not write the ring. */
	rc = npu_alloc(part, UINT64_C(64) * NPU_RING, part->desc.color_mask, false, false,
		       &part->ring);
	if (!rc)
		rc = npu_alloc(part, FENCE_BYTES, part->desc.color_mask, true, false,
			       &part->fence);
	if (rc) {
		npu_free(part->ring);
		part->ring = NULL;
		return rc;
	}
	return 0;
}

void npu_ring_close(struct npu_partition *part)
{
	if (part->host == part)
		npu_write(part->dev, NPU_SLOT_ADDR(part->slot, RING_BASE), 0);
	npu_free(part->fence);
	npu_free(part->ring);
	part->fence = NULL;
	part->ring = NULL;
}

/* ---- entries ---------------------------------------------------------------------- */

/* bytes as rows of PIECE_BYTES and a rest; how many descriptors that is. */
static uint32_t piece_count(uint64_t bytes)
{
	return bytes <= FIELD_BYTES ? 1 : bytes % PIECE_BYTES ? 2 : 1;
}

static uint64_t piece(uint64_t bytes, uint32_t index, uint32_t *desc)
{
	uint64_t rows = bytes / PIECE_BYTES;
	bool small = bytes <= FIELD_BYTES, body = !small && index == 0;

	NPU_SET(desc, DM, body ? rows : 1);
	NPU_SET(desc, VCOLS, body ? PIECE_BYTES : small ? bytes : bytes % PIECE_BYTES);
	NPU_SET(desc, LDA, PIECE_BYTES);
	NPU_SET(desc, LDD, PIECE_BYTES);
	return small || body ? 0 : rows * PIECE_BYTES;
}

static uint32_t va_of(const void *mem, uint64_t offset)
{
	return ((const struct npu_mem *)mem)->va + (uint32_t)offset;
}

/* Descriptor index of the command's own. */
static void body_desc(const struct npu_partition *part, const struct hal_bk_cmd *cmd,
		      const struct npu_mem *scratch, uint32_t index, uint32_t *desc)
{
	uint64_t at;

	switch (cmd->op) {
	case HAL_OP_LAUNCH:
		npu_launch_desc(part, cmd, scratch, index, desc);
		return;
	case HAL_OP_COPY:
		NPU_SET(desc, OPCODE, NPU_OP_VEC);
		NPU_SET(desc, VOP, NPU_VOP_COPY);
		at = piece(cmd->copy.bytes, index, desc);
		NPU_SET(desc, ADDR_A, va_of(cmd->copy.src, cmd->copy.src_offset + at));
		NPU_SET(desc, ADDR_D, va_of(cmd->copy.dst, cmd->copy.dst_offset + at));
		return;
	case HAL_OP_FILL:
		NPU_SET(desc, OPCODE, NPU_OP_VEC);
		NPU_SET(desc, VOP, NPU_VOP_FILL);
		NPU_SET(desc, VPATTERN, cmd->fill.pattern);
		at = piece(cmd->fill.bytes, index, desc);
		NPU_SET(desc, ADDR_D, va_of(cmd->fill.dst, cmd->fill.offset + at));
		return;
	case HAL_OP_TIMESTAMP:
		NPU_SET(desc, OPCODE, NPU_OP_TIMESTAMP);
		NPU_SET(desc, ADDR_D, va_of(cmd->timestamp.dst, cmd->timestamp.offset));
		return;
	default:
		return; /* NOP */
	}
}

static uint32_t body_count(const struct hal_bk_cmd *cmd)
{
	switch (cmd->op) {
	case HAL_OP_LAUNCH:
		return ((const struct npu_kernel *)cmd->launch.kernel)->k->desc_count;
	case HAL_OP_COPY:
		return piece_count(cmd->copy.bytes);
	case HAL_OP_FILL:
		return piece_count(cmd->fill.bytes);
	case HAL_OP_TIMESTAMP:
		return 1;
	default:
		return 0;
	}
}

bool npu_body_desc(const struct npu_partition *part, const struct hal_bk_cmd *cmd,
		   uint32_t index, uint32_t desc[16])
{
	if (index >= body_count(cmd))
		return false;
	memset(desc, 0, 64);
	body_desc(part, cmd, NULL, index, desc);
	return true;
}

static uint32_t marks(uint32_t body)
{
	return body ? (body - 1) / NPU_BURST : 0;
}

/* True when entry is one of the command's own descriptors, number *index. */
static bool is_body(const struct npu_command *c, uint32_t entry, uint32_t *index)
{
	uint32_t at = entry - 1;

	if (entry == 0 || entry > c->body + marks(c->body))
		return false;
	*index = at / (NPU_BURST + 1) * NPU_BURST + at % (NPU_BURST + 1);
	return at % (NPU_BURST + 1) < NPU_BURST;
}

static void signal_desc(uint32_t *desc, uint32_t va, uint64_t value)
{
	NPU_SET(desc, OPCODE, NPU_OP_SIGNAL);
	NPU_SET(desc, F_IRQ, 1);
	NPU_SET(desc, ADDR_D, va);
	NPU_SET(desc, SVALUE_LO, value);
	NPU_SET(desc, SVALUE_HI, value >> 32);
}

static void make_entry(const struct npu_command *c, uint32_t entry, uint32_t *desc)
{
	const struct npu_partition *part = space_of(c);
	uint32_t fence = part->fence->va, index;

	memset(desc, 0, 64);
	if (is_body(c, entry, &index)) {
		body_desc(part, &c->cmd, c->scratch, index, desc);
	} else if (entry == 0 || entry == c->entries - 2) {
		NPU_SET(desc, OPCODE, NPU_OP_TIMESTAMP);
		NPU_SET(desc, ADDR_D, fence + times_offset(c) + (entry ? 8 : 0));
	} else if (entry == c->entries - 1) {
		signal_desc(desc, fence, c->sequence);
	} else {
		signal_desc(desc, fence + FENCE_MARK, 0);
	}
}

static void write_entry(struct npu_partition *part, const struct npu_command *c,
			uint32_t entry)
{
	uint64_t together;
	uint32_t desc[16];

	make_entry(c, entry, desc);
	memcpy(npu_bytes(part->loaded->ring, (uint64_t)(part->tail & (NPU_RING - 1)) * 64,
			 &together),
	       desc, 64);
	part->tail++;
}

/* The machine's word for TIMESTAMP is its cycles: what it has skipped is added when the
 * command has ended.  Nothing that could use the word is in the ring before. */
static bool needs_correction(const struct npu_partition *part,
			     const struct npu_command *c)
{
	return c->cmd.op == HAL_OP_TIMESTAMP && part->dev->skipped;
}

static void correct_timestamp(struct npu_partition *part, const struct npu_command *c)
{
	uint64_t together, word;
	uint8_t *at = npu_bytes(c->cmd.timestamp.dst, c->cmd.timestamp.offset, &together);

	memcpy(&word, at, sizeof(word));
	word += part->dev->skipped;
	memcpy(at, &word, sizeof(word));
}

static bool frozen(const struct npu_command *c)
{
	return c->queue->suspended == NPU_FOLDED;
}

/* c goes on inside its descriptor, which is the first of an empty ring. */
static void restore(struct npu_partition *part, struct npu_command *c)
{
	uint64_t together;

	memcpy(npu_bytes(space_of(c)->fence, FENCE_SAVE, &together), c->context,
	       sizeof(c->context));
	npu_write(part->dev, NPU_SLOT_ADDR(part->slot, SAVE),
		  space_of(c)->fence->va + FENCE_SAVE);
	npu_write(part->dev, NPU_SLOT_ADDR(part->slot, RESUME),
		  NPU_REG_BITS(RESUME_CONTEXT, 1));
}

void npu_ring_load(struct npu_partition *part)
{
	struct npu_partition *host = part->host;

	npu_space_load(part);
	npu_write(part->dev, NPU_SLOT_ADDR(host->slot, RING_LOG2), NPU_RING_LOG2);
	npu_write(part->dev, NPU_SLOT_ADDR(host->slot, RING_BASE), part->ring->va);
	host->head = 0;
	host->tail = 0;
	host->ring_empty = true;
}

/* The first entry of c comes to the ring now, if it may. */
static bool enter(struct npu_partition *part, struct npu_command *c)
{
	bool other = space_of(c) != part->loaded;

	if (((c->inside || other) && part->head != part->tail) || !take_times(part, c))
		return false;
	if (other)
		npu_ring_load(space_of(c));
	if (c->inside)
		restore(part, c);
	c->first = part->tail;
	if (c->fed == 0 || !c->fed_ns)
		c->fed_ns = npu_time(part->dev);
	return true;
}

/* Fills the ring as far as it goes. */
static void feed(struct npu_partition *part)
{
	bool fed = false;

	if (part->stopping)
		return;
	for (uint32_t i = 0; i < part->count && part->tail - part->head < NPU_RING; i++) {
		struct npu_command *c = part->order[i];

		if (c->done || frozen(c))
			continue;
		if (c->fed == c->base && c->fed != c->entries && !enter(part, c))
			break;
		fed |= c->fed < c->entries;
		while (c->fed < c->entries && part->tail - part->head < NPU_RING)
			write_entry(part, c, c->fed++);
		if (needs_correction(part, c))
			break;
	}
	if (fed)
		npu_doorbell(part);
}

/* Entries of c that the machine has completed, as far as .head tells. */
static uint32_t completed(const struct npu_partition *part, const struct npu_command *c)
{
	uint32_t done = part->head - c->first, fed = c->fed - c->base;

	if (c->fed == c->base || (int32_t)done < 0)
		return c->base;
	return c->base + (done < fed ? done : fed);
}

/* ---- ends ------------------------------------------------------------------------- */

/* The first that may be at work. */
static struct npu_command *first_open(const struct npu_partition *part)
{
	for (uint32_t i = 0; i < part->count; i++)
		if (!part->order[i]->done && !frozen(part->order[i]))
			return part->order[i];
	return NULL;
}

/* When the command began.  The word lies in the tenant's memory, where its programs could
 * write anything.  The machine takes up a command when it is in the ring and the one
 * ahead has ended, a few requests later: what cannot be true is not told. */
static uint64_t start_time(const struct npu_command *c, uint64_t first, uint64_t end)
{
	const struct npu_partition *part = space_of(c);
	uint64_t start = fence_time(part, times_offset(c));

	/* Earlier than first is a large number, too. */
	if (start - first > START_REQUESTS * npu_request_worst(&part->dev->opt))
		start = first;
	return start < end ? start : end;
}

static void drop_scratch(struct npu_command *c)
{
	if (c->scratch)
		npu_scratch_release(space_of(c), &c->cmd, c->scratch);
	c->scratch = NULL;
}

/* How far the command had come decides which of its times exist; none is in the future.
 */
static void set_done(struct npu_partition *part, struct npu_command *c, int status)
{
	bool begun = (c->fed != c->base && completed(part, c)) || !status;
	uint64_t now = npu_time(part->dev), first = now, end = now;

	if (begun)
		first = c->fed_ns > part->ended_ns ? c->fed_ns : part->ended_ns;
	if (!status)
		end = fence_time(space_of(c), times_offset(c) + 8);
	if (end < first || end > now)
		end = now;
	c->done = true;
	if (!status && needs_correction(part, c))
		correct_timestamp(part, c);
	memset(&c->event, 0, sizeof(c->event));
	c->event.kind = HAL_BK_DONE;
	c->event.status = status;
	c->event.cookie = c->cmd.cookie;
	c->event.end_ns = end;
	c->event.start_ns = begun ? start_time(c, first, end) : end;
	if (begun)
		part->ended_ns = end;
	drop_times(part, c);
	drop_scratch(c);
}

/* Bytes since they were last told belong to the commands that ended meanwhile. */
static void count_bytes(struct npu_partition *part, struct hal_bk_event *ev)
{
	struct npu_device *dev = part->dev;
	uint32_t reads, writes;

	npu_lock(dev);
	npu_write(dev, NPU_GLB_PERF_SNAPSHOT_ADDR, 1);
	reads = npu_read(dev, NPU_SLOT_ADDR(part->slot, CNT_READ_BEATS));
	writes = npu_read(dev, NPU_SLOT_ADDR(part->slot, CNT_WRITE_BEATS));
	npu_unlock(dev);
	ev->bytes_read = (uint64_t)(reads - part->read_beats) * NPU_BEAT_BYTES;
	ev->bytes_written = (uint64_t)(writes - part->write_beats) * NPU_BEAT_BYTES;
	part->read_beats = reads;
	part->write_beats = writes;
}

/* Commands that have ended.  HEAD is the machine's own; the fence value lies in the
 * tenant's memory, where its programs could write anything. */
static void look_at_head(struct npu_partition *part)
{
	struct npu_command *last = NULL;

	part->head = npu_read(part->dev, NPU_SLOT_ADDR(part->slot, HEAD));
	for (uint32_t i = 0; i < part->count; i++) {
		struct npu_command *c = part->order[i];

		if (c->done || frozen(c))
			continue;
		if (completed(part, c) < c->entries)
			break;
		set_done(part, c, 0);
		last = c;
	}
	if (last)
		count_bytes(part, &last->event);
}

/* The ring begins anew; commands go on from .base. */
static void restart(struct npu_partition *part)
{
	npu_write(part->dev, NPU_SLOT_ADDR(part->slot, RING_BASE),
		  part->loaded->ring->va);
	part->head = 0;
	part->tail = 0;
	part->ring_empty = true;
	part->stopping = 0;
	for (uint32_t i = 0; i < part->count; i++)
		part->order[i]->fed = part->order[i]->base;
	feed(part);
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
		return "no units";
	case NPU_FAULT_CONTEXT:
		return "no context of it at";
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
	make_entry(c, entry, desc);
	if (c->cmd.op == HAL_OP_LAUNCH && is_body(c, entry, &index))
		snprintf(text, sizeof(text), "%s%s in descriptor %u (%s) of %s",
			 fault_name(kind), at, index, op_name(desc),
			 npu_command_text(&c->cmd, what, sizeof(what)));
	else
		snprintf(text, sizeof(text), "%s%s in %s (%s)", fault_name(kind), at,
			 npu_command_text(&c->cmd, what, sizeof(what)), op_name(desc));
	text[sizeof(ev->fault) - 1] = 0;
	memcpy(ev->fault, text, strlen(text) + 1);
}

/* The command at the ring's head has failed; its queue's others go with it. */
static void fail_first(struct npu_partition *part, const char *text)
{
	struct npu_command *c = first_open(part);

	if (!c)
		return;
	set_done(part, c, -EIO);
	count_bytes(part, &c->event);
	if (text)
		snprintf(c->event.fault, sizeof(c->event.fault), "%s", text);
	else
		describe_fault(part, c, completed(part, c));
	for (uint32_t i = 0; i < part->count; i++) {
		struct npu_command *other = part->order[i];

		if (other->queue == c->queue && !other->done)
			set_done(part, other, -ECANCELED);
	}
}

/* ---- stops ------------------------------------------------------------------------ */

static void request_stop(struct npu_partition *part, uint32_t mode)
{
	/* What is recorded is how long a descriptor takes in one go. */
	if (mode == NPU_PREEMPT_FOLD && part->dev->durations)
		mode = NPU_PREEMPT_DRAIN;
	/* A fold under way can still become a kill. */
	if (part->stopping == mode || part->stopping == NPU_PREEMPT_KILL)
		return;
	part->stopping = mode;
	if (mode == NPU_PREEMPT_FOLD)
		npu_write(part->dev, NPU_SLOT_ADDR(part->slot, SAVE),
			  part->loaded->fence->va + FENCE_SAVE);
	npu_write(part->dev, NPU_SLOT_ADDR(part->slot, PREEMPT), mode);
}

static void finish_move(struct npu_partition *part)
{
	int rc = npu_map(part, &part->target);

	if (!rc) {
		part->desc.units = part->target.units;
		part->desc.row = part->target.row;
		part->desc.col = part->target.col;
		part->desc.rows = part->target.rows;
		part->desc.cols = part->target.cols;
	}
	part->moving = false;
	part->moved = true;
	part->moved_event.status = rc;
	part->moved_event.start_ns = npu_time(part->dev);
	part->moved_event.end_ns = part->moved_event.start_ns;
}

/* Where the command that was running goes on: after a drain, and where only fences are
 * left, at the next entry; after a fold there, too, or inside that entry; after a kill
 * from its beginning, if it may be run again. */
static void set_base(struct npu_command *c, uint32_t progress, bool killed)
{
	uint32_t index;

	if (!killed || !is_body(c, progress, &index) ||
	    !(c->cmd.flags & HAL_CMD_REPLAYABLE))
		c->base = progress;
	else
		c->base = 0;
}

/* What ran of the command that was running when the slot stopped. */
static void count_stretch(struct npu_partition *part, const struct npu_command *c,
			  struct hal_bk_event *ev)
{
	uint64_t first = c->fed_ns > part->ended_ns ? c->fed_ns : part->ended_ns;
	uint64_t now = npu_time(part->dev);

	ev->start_ns = start_time(c, first, now);
	ev->end_ns = part->ended_ns = now;
	if (c->inside)
		ev->bytes_written = sizeof(c->context);
}

/* Nothing of q is in the ring.  ran: who was running; NULL: nobody, or that has ended. */
static void freeze(struct npu_partition *part, struct npu_queue *q,
		   struct npu_command *ran)
{
	q->suspended = NPU_FOLDED;
	q->quiet.start_ns = q->quiet.end_ns = npu_time(part->dev);
	if (ran && ran->queue == q) {
		count_stretch(part, ran, &q->quiet);
		if (!ran->scratch)
			ran->scratch = npu_scratch_keep(space_of(ran), &ran->cmd);
	}
	for (uint32_t i = 0; i < part->count; i++) {
		struct npu_command *c = part->order[i];

		if (c->queue != q || c->done)
			continue;
		c->fed = c->base;
		c->fed_ns = 0;
		drop_times(part, c);
		part->frozen++;
	}
}

/* They come behind what is in the ring. */
static void thaw(struct npu_partition *part, struct npu_queue *q)
{
	uint32_t n = part->count;

	q->suspended = NPU_RUNS;
	for (uint32_t i = 0; n; n--) {
		struct npu_command *c = part->order[i];

		if (c->queue != q) {
			i++;
			continue;
		}
		memmove(&part->order[i], &part->order[i + 1],
			(part->count - i - 1) * sizeof(struct npu_command *));
		part->order[part->count - 1] = c;
		part->frozen--;
	}
}

/* The slot has let go.  What is left goes on in a new ring. */
static void on_stopped(struct npu_partition *part, uint32_t state)
{
	struct npu_command *c, *ran = first_open(part);
	uint64_t together;
	bool running;

	if (part->stopping)
		part->preempt_cycles =
			npu_read(part->dev, NPU_SLOT_ADDR(part->slot, PREEMPT_CYCLES));
	if (state == NPU_STATE_FAULT)
		fail_first(part, NULL);
	/* All of it has run but its fence. */
	c = first_open(part);
	if (c && completed(part, c) == c->entries - 1)
		set_done(part, c, 0);
	for (uint32_t i = 0; i < part->count; i++) {
		c = part->order[i];
		if (!c->done && c->queue->suspended == NPU_KILLED)
			set_done(part, c, -ECANCELED);
	}
	c = first_open(part);
	running = c && c == ran && c->fed != c->base && completed(part, c);
	if (c && c->fed != c->base) {
		set_base(c, completed(part, c), state == NPU_STATE_KILLED);
		c->inside = state == NPU_STATE_FOLDED && c == ran;
	}
	if (c && c->inside && c == ran)
		memcpy(c->context, npu_bytes(space_of(c)->fence, FENCE_SAVE, &together),
		       sizeof(c->context));
	for (struct npu_queue *q = part->quiet_due; q; q = q->next)
		if (q->suspended == NPU_FOLDS)
			freeze(part, q, running ? c : NULL);
	if (part->moving)
		finish_move(part);
	restart(part);
}

/* After an interrupt of this slot. */
static void look_at_slot(struct npu_partition *part)
{
	uint32_t irq = part->irq, state;

	part->irq = 0;
	look_at_head(part);
	if (irq & (NPU_IRQ_FAULT | NPU_IRQ_QUIET)) {
		state = NPU_REG_GET(
			npu_read(part->dev, NPU_SLOT_ADDR(part->slot, STATUS)),
			STATUS_STATE);
		if (state == NPU_STATE_FAULT || state == NPU_STATE_DRAINED ||
		    state == NPU_STATE_FOLDED || state == NPU_STATE_KILLED) {
			on_stopped(part, state);
			return;
		}
	}
	feed(part);
}

/* ---- events ----------------------------------------------------------------------- */

static void remove_at(struct npu_partition *part, uint32_t i)
{
	struct npu_command *c = part->order[i];

	c->queue->commands--;
	drop_times(part, c);
	drop_scratch(c);
	c->next = part->spare;
	part->spare = c;
	part->count--;
	memmove(&part->order[i], &part->order[i + 1],
		(part->count - i) * sizeof(struct npu_command *));
}

static uint32_t take_events(struct npu_partition *part, struct hal_bk_event *ev,
			    uint32_t max)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < part->count && n < max;) {
		if (!part->order[i]->done) {
			i++;
			continue;
		}
		ev[n++] = part->order[i]->event;
		remove_at(part, i);
	}
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
		n += take_events(part, ev + n, max - n);
	}
	return n;
}

/* The machine rests and yet commands are open: it has lost them. */
static void find_lost(struct npu_device *dev)
{
	for (uint32_t i = 0; i < dev->opt.slots; i++) {
		struct npu_partition *part = dev->parts[i];

		if (!part || !first_open(part))
			continue;
		look_at_head(part);
		if (!first_open(part))
			continue;
		fail_first(part, "the machine stopped without finishing the command");
		restart(part);
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

/* Until there may be an event or limit is reached, which is ahead. */
static void advance(struct npu_device *dev, uint64_t limit)
{
	uint64_t left = limit - npu_time(dev);

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

/* ---- submit ----------------------------------------------------------------------- */

static int check_mem(const struct npu_partition *part, const char *what,
		     const void *memory)
{
	const struct npu_mem *mem = memory;

	if (mem->part == part)
		return 0;
	return npu_fail(
		ENOTSUP,
		"npu: %s is a buffer of another partition; they share no address space",
		what);
}

static int check_copy(const struct npu_partition *part, const struct hal_bk_cmd *cmd)
{
	uint64_t s = cmd->copy.src_offset, d = cmd->copy.dst_offset, n = cmd->copy.bytes;
	int rc = check_mem(part, "a copy's source", cmd->copy.src);

	if (!rc)
		rc = check_mem(part, "a copy's destination", cmd->copy.dst);
	if (!rc && cmd->copy.src == cmd->copy.dst && s < d + n && d < s + n && s != d)
		rc = npu_fail(ENOTSUP, "npu: source and destination of a copy overlap");
	return rc;
}

static int check_command(const struct npu_partition *part, const struct hal_bk_cmd *cmd)
{
	switch (cmd->op) {
	case HAL_OP_NOP:
		return 0;
	case HAL_OP_COPY:
		return check_copy(part, cmd);
	case HAL_OP_FILL:
		return check_mem(part, "a fill's destination", cmd->fill.dst);
	case HAL_OP_TIMESTAMP:
		return check_mem(part, "a timestamp's destination", cmd->timestamp.dst);
	case HAL_OP_LAUNCH:
		return npu_launch_check(part, cmd);
	default:
		return npu_fail(ENOTSUP, "npu: no command %u", cmd->op);
	}
}

/* A command at the end of the order; NULL: no memory. */
static struct npu_command *new_command(struct npu_partition *part)
{
	struct npu_command *c = part->spare;

	if (part->count == part->room) {
		uint32_t room = 2 * part->room + 8;
		struct npu_command **more =
			realloc(part->order, room * sizeof(struct npu_command *));

		if (!more)
			return NULL;
		part->order = more;
		part->room = room;
	}
	if (c)
		part->spare = c->next;
	else
		c = malloc(sizeof(*c));
	if (!c)
		return NULL;
	memset(c, 0, sizeof(*c));
	part->order[part->count++] = c;
	return c;
}

void npu_commands_free(struct npu_partition *part)
{
	while (part->spare) {
		struct npu_command *c = part->spare;

		part->spare = c->next;
		free(c);
	}
	free(part->order);
}

static int submit(struct npu_queue *q, const struct hal_bk_cmd *cmd)
{
	struct npu_partition *part = q->part->host;
	struct npu_command *c;
	int rc;

	if (q->suspended != NPU_RUNS || part->count - part->frozen >= NPU_COMMANDS)
		return -EAGAIN;
	rc = check_command(q->part, cmd);
	if (!rc)
		rc = npu_replay_check(q->part, &part->desc, cmd);
	if (rc)
		return rc;
	if (part->dev->opt.real && atomic_load(&part->dev->rest_ns) != NPU_WORKS)
		npu_works(part->dev);
	c = new_command(part);
	if (!c)
		return npu_fail(ENOMEM, "npu: no host memory for a command");
	c->cmd = *cmd;
	c->queue = q;
	c->sequence = ++part->sequence;
	c->body = body_count(cmd);
	c->entries = c->body + marks(c->body) + 3;
	c->times = NPU_TIMES_NONE;
	q->commands++;
	feed(part);
	return 0;
}

int npu_submit(void *device, void *queue, const struct hal_bk_cmd *cmd)
{
	int rc;

	npu_lock(device);
	rc = submit(queue, cmd);
	npu_unlock(device);
	return rc;
}

/* ---- queues ----------------------------------------------------------------------- */

int npu_queue_create(void *device, void *partition, int32_t priority, void **out)
{
	struct npu_partition *part = partition;
	struct npu_queue *q = calloc(1, sizeof(*q));

	(void)device;
	(void)priority; /* the engine's business: the ring is served in order */
	if (!q)
		return npu_fail(ENOMEM, "npu: no host memory for a queue");
	q->part = part;
	part->queue_count++;
	*out = q;
	return 0;
}

int npu_queue_destroy(void *device, void *queue)
{
	struct npu_queue *q = queue;
	struct npu_partition *host = q->part->host;

	(void)device;
	if ((q->commands && q->suspended != NPU_FOLDED) || q->quiet_due)
		return npu_fail(EBUSY, "npu: %u commands are in the queue", q->commands);
	for (uint32_t i = 0; q->commands;)
		if (host->order[i]->queue == q) {
			remove_at(host, i);
			host->frozen--;
		} else {
			i++;
		}
	q->part->queue_count--;
	free(q);
	return 0;
}

/* Drops the queue's commands.  Those in the ring need the slot to stop: at once when what
 * runs is this queue's or may be run again, else where that can go on. */
static void kill_queue(struct npu_partition *part, struct npu_queue *q)
{
	struct npu_command *running;
	bool in_ring = false;

	look_at_head(part);
	for (uint32_t i = 0; i < part->count; i++) {
		struct npu_command *c = part->order[i];

		if (c->done || c->queue != q)
			continue;
		if (c->fed == c->base)
			set_done(part, c, -ECANCELED);
		else
			in_ring = true;
	}
	running = first_open(part);
	if (!in_ring || !running)
		return;
	if (running->queue == q || (running->cmd.flags & HAL_CMD_REPLAYABLE))
		request_stop(part, NPU_PREEMPT_KILL);
	else
		request_stop(part, NPU_PREEMPT_FOLD);
}

/* Room for what those of the queue's commands keep that may be stopped inside. */
static int reserve_scratch(struct npu_partition *part, const struct npu_queue *q)
{
	int rc = 0;

	for (uint32_t i = 0; !rc && i < part->count; i++) {
		const struct npu_command *c = part->order[i];

		if (!c->done && c->queue == q && !c->scratch)
			rc = npu_scratch_reserve(q->part, &c->cmd);
	}
	return rc;
}

/* Takes the queue's commands from the ring, where the one that runs can stop. */
static void fold_queue(struct npu_partition *part, struct npu_queue *q)
{
	look_at_head(part);
	for (uint32_t i = 0; i < part->count; i++) {
		const struct npu_command *c = part->order[i];

		if (c->done || c->queue != q || c->fed == c->base)
			continue;
		request_stop(part, NPU_PREEMPT_FOLD);
		return;
	}
	freeze(part, q, NULL);
}

int npu_suspend(void *device, void *queue, uint32_t mode, uint64_t cookie)
{
	static const uint8_t states[] = {[HAL_SUSPEND_DRAIN] = NPU_DRAINS,
					 [HAL_SUSPEND_FOLD] = NPU_FOLDS,
					 [HAL_SUSPEND_KILL] = NPU_KILLED};
	struct npu_queue *q = queue;
	struct npu_partition *host = q->part->host;
	int rc;

	if (mode > HAL_SUSPEND_KILL || !states[mode])
		return npu_fail(ENOTSUP,
				"npu: no suspend in mode %u; DRAIN, FOLD and KILL", mode);
	if (q->suspended != NPU_RUNS)
		return npu_fail(EBUSY, "npu: the queue is suspended already");
	rc = mode == HAL_SUSPEND_FOLD ? reserve_scratch(host, q) : 0;
	if (rc)
		return rc;
	q->suspended = states[mode];
	q->quiet_due = true;
	q->next = host->quiet_due;
	host->quiet_due = q;
	q->quiet = (struct hal_bk_event){.kind = HAL_BK_QUIET, .cookie = cookie};
	npu_lock(device);
	q->part->dev->owed++;
	if (mode == HAL_SUSPEND_KILL && q->commands)
		kill_queue(host, q);
	else if (mode == HAL_SUSPEND_FOLD)
		fold_queue(host, q);
	npu_unlock(device);
	return 0;
}

int npu_resume(void *device, void *queue)
{
	struct npu_device *dev = device;
	struct npu_queue *q = queue;

	if (q->suspended == NPU_RUNS)
		return npu_fail(EINVAL, "npu: the queue is not suspended");
	if (q->quiet_due)
		return npu_fail(EBUSY, "npu: the queue has not let go yet");
	if (q->suspended != NPU_FOLDED || !q->commands) {
		q->suspended = NPU_RUNS;
		return 0;
	}
	npu_lock(dev);
	if (dev->opt.real && atomic_load(&dev->rest_ns) != NPU_WORKS)
		npu_works(dev);
	thaw(q->part->host, q);
	feed(q->part->host);
	npu_unlock(dev);
	return 0;
}

int npu_resize(void *device, void *partition, const struct hal_bk_partition_desc *desc,
	       uint64_t cookie)
{
	struct npu_partition *part = partition;

	if (part->moving || part->moved)
		return npu_fail(EBUSY, "npu: partition %u is being moved already",
				part->slot);
	/* What has been let in must be known there, too. */
	for (uint32_t i = 0; i < part->count; i++) {
		int rc = npu_replay_check(space_of(part->order[i]), desc,
					  &part->order[i]->cmd);

		if (rc)
			return rc;
	}
	part->moving = true;
	part->target = *desc;
	part->moved_event = (struct hal_bk_event){.kind = HAL_BK_QUIET, .cookie = cookie};
	npu_lock(device);
	part->dev->owed++;
	if (first_open(part) || part->stopping)
		request_stop(part, NPU_PREEMPT_FOLD);
	else
		finish_move(part);
	npu_unlock(device);
	return 0;
}

/* Real clock: the machine runs only inside poll. */
uint64_t npu_next(void *device)
{
	const struct npu_device *dev = device;

	return dev->owed || atomic_load(&dev->rest_ns) == NPU_WORKS ? 0 : UINT64_MAX;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ring.c - a partition's descriptor ring and the fence page beside it: commands become
 * entries, in the order of submission.
 *
 * A command is TIMESTAMP, its own descriptors, TIMESTAMP, SIGNAL; the SIGNAL writes the
 * command's number and interrupts.  HEAD then says what has ended.  What does not fit the
 * ring follows as it empties: long commands carry progress marks (a SIGNAL that only
 * interrupts).
 *
 * Whenever the slot stops (KILL, FOLD, DRAIN, fault), the ring is begun anew: what has
 * not ended is written again, from where it may go on: inside a descriptor, too, when
 * that is the first of an empty ring (save.c).
 */
#include "ring.h"

#include <string.h>

#include "save.h"

#define FENCE_MARK  8u /* where progress marks write */
#define FENCE_BYTES (NPU_FENCE_TIMES + NPU_COMMANDS * 16)
#define PIECE_BYTES 32768u
#define FIELD_BYTES 65535u

/* ---- the fence page --------------------------------------------------------------- */

static uint64_t fence_word(const struct npu_partition *part, uint32_t offset)
{
	uint64_t together, word;

	memcpy(&word, npu_bytes(part->fence, offset, &together), sizeof(word));
	return word;
}

/* A time that the machine has written there. */
uint64_t npu_fence_time(const struct npu_partition *part, uint32_t offset)
{
	return fence_word(part, offset) + part->dev->skipped;
}

uint32_t npu_times_offset(const struct npu_command *c)
{
	return NPU_FENCE_TIMES + c->times * 16;
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

void npu_times_drop(struct npu_partition *part, struct npu_command *c)
{
	if (c->times != NPU_TIMES_NONE)
		part->times_used &= ~(UINT64_C(1) << c->times);
	c->times = NPU_TIMES_NONE;
}

int npu_ring_open(struct npu_partition *part)
{
	int rc;

	/* The tenant's programs may not write the ring. */
	rc = npu_alloc(part->space, UINT64_C(64) * NPU_RING, NULL, NPU_MEM_READ_ONLY,
		       &part->ring);
	if (!rc)
		rc = npu_alloc(part->space, FENCE_BYTES, NULL, 0, &part->fence);
	if (rc) {
		npu_free(part->ring);
		part->ring = NULL;
		return rc;
	}
	return 0;
}

void npu_ring_close(struct npu_partition *part)
{
	if (part->host == part && part->slot != NPU_NO_SLOT)
		npu_write(part->dev, NPU_SLOT_ADDR(part->slot, RING_BASE), 0);
	npu_save_close(part);
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

void npu_command_measure(struct npu_command *c)
{
	c->body = body_count(&c->cmd);
	c->entries = c->body + marks(c->body) + 3;
}

/* True when entry is one of the command's own descriptors, number *index. */
bool npu_is_body(const struct npu_command *c, uint32_t entry, uint32_t *index)
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

void npu_entry(const struct npu_command *c, uint32_t entry, uint32_t *desc)
{
	const struct npu_partition *part = npu_space_of(c);
	uint32_t fence = part->fence->va, index;

	memset(desc, 0, 64);
	if (npu_is_body(c, entry, &index)) {
		body_desc(part, &c->cmd, c->scratch, index, desc);
	} else if (entry == 0 || entry == c->entries - 2) {
		NPU_SET(desc, OPCODE, NPU_OP_TIMESTAMP);
		NPU_SET(desc, ADDR_D, fence + npu_times_offset(c) + (entry ? 8 : 0));
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

	npu_entry(c, entry, desc);
	memcpy(npu_bytes(part->loaded->ring, (uint64_t)(part->tail & (NPU_RING - 1)) * 64,
			 &together),
	       desc, 64);
	part->tail++;
}

/* The machine's word for TIMESTAMP is its cycles: what it has skipped is added when the
 * command has ended.  Nothing that could use the word is in the ring before. */
bool npu_needs_correction(const struct npu_partition *part, const struct npu_command *c)
{
	return c->cmd.op == HAL_OP_TIMESTAMP && part->dev->skipped;
}

void npu_correct_timestamp(struct npu_partition *part, const struct npu_command *c)
{
	uint64_t together, word;
	uint8_t *at = npu_bytes(c->cmd.timestamp.dst, c->cmd.timestamp.offset, &together);

	memcpy(&word, at, sizeof(word));
	word += part->dev->skipped;
	memcpy(at, &word, sizeof(word));
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

/* Host memory of a copy whose bytes bounce; NULL: none. */
static struct npu_mem *bouncing(const struct hal_bk_cmd *cmd, uint32_t flag)
{
	struct npu_mem *mem =
		flag == HAL_BK_CMD_FROM_HOST ? cmd->copy.src : cmd->copy.dst;

	return cmd->op == HAL_OP_COPY && (cmd->flags & flag) && mem->bounces ? mem : NULL;
}

void npu_bounce_out(const struct hal_bk_cmd *cmd)
{
	struct npu_mem *mem = bouncing(cmd, HAL_BK_CMD_TO_HOST);

	if (mem)
		npu_bounce(mem, cmd->copy.dst_offset, cmd->copy.bytes, false);
}

/* The first entry of c comes to the ring now, if it may.  Bytes that bounce go to the
 * machine when what the ring has had before has ended: that may write to the same host
 * memory. */
static bool enter(struct npu_partition *part, struct npu_command *c)
{
	struct npu_mem *from = bouncing(&c->cmd, HAL_BK_CMD_FROM_HOST);
	bool other = npu_space_of(c) != part->loaded;

	if (((c->inside || other || from) && part->head != part->tail) ||
	    !take_times(part, c))
		return false;
	if (from)
		npu_bounce(from, c->cmd.copy.src_offset, c->cmd.copy.bytes, true);
	if (other)
		npu_ring_load(npu_space_of(c));
	if (c->inside)
		npu_save_put(part, c);
	if (!c->scratch)
		npu_scratch_use(npu_space_of(c), &c->cmd, c->sequence);
	c->first = part->tail;
	if (c->fed == 0 || !c->fed_ns)
		c->fed_ns = npu_time(part->dev);
	return true;
}

/* Fills the ring as far as it goes.  Behind a command that may not be run again only its
 * own queue's follow: another's, once in the ring, could not be taken out until that can
 * stop, and a KILL is to take no longer than it says whatever runs. */
void npu_feed(struct npu_partition *part)
{
	const struct npu_queue *only = NULL;
	bool fed = false;

	if (part->stopping)
		return;
	for (uint32_t i = 0; i < part->count && part->tail - part->head < NPU_RING; i++) {
		struct npu_command *c = part->order[i];

		if (c->done || npu_frozen(c))
			continue;
		if (only && c->queue != only)
			break;
		if (!(c->cmd.flags & HAL_CMD_REPLAYABLE))
			only = c->queue;
		if (c->fed == c->base && c->fed != c->entries && !enter(part, c))
			break;
		fed |= c->fed < c->entries;
		while (c->fed < c->entries && part->tail - part->head < NPU_RING)
			write_entry(part, c, c->fed++);
		if (npu_needs_correction(part, c))
			break;
	}
	if (fed)
		npu_doorbell(part);
}

/* Entries of c that the machine has completed, as far as .head tells. */
uint32_t npu_completed(const struct npu_partition *part, const struct npu_command *c)
{
	uint32_t done = part->head - c->first, fed = c->fed - c->base;

	if (c->fed == c->base || (int32_t)done < 0)
		return c->base;
	return c->base + (done < fed ? done : fed);
}

/* The ring begins anew; commands go on from .base. */
void npu_restart(struct npu_partition *part)
{
	npu_write(part->dev, NPU_SLOT_ADDR(part->slot, RING_BASE),
		  part->loaded->ring->va);
	part->head = 0;
	part->tail = 0;
	part->ring_empty = true;
	part->stopping = 0;
	for (uint32_t i = 0; i < part->count; i++)
		part->order[i]->fed = part->order[i]->base;
	npu_feed(part);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * save.c - contexts of operations that FOLD or SAVE has stopped inside.
 *
 * The machine stores them, and the sums of a tile, in the tenant's memory: in an area
 * that is there from the first stop by FOLD or SAVE on.  They are read from there when
 * the slot has stopped and put back when the command goes on, so that any number of
 * commands can stand.
 */
#include "save.h"

#include <stdlib.h>

#include "complete.h"
#include "npu_panel.h"
#include "ring.h"

#define CONTEXT_BYTES 32u /* without sums */
#define SUMS_AT       64u /* of the first row of them */

/* From a row of sums to the next. */
static uint32_t pitch(uint32_t cols)
{
	return cols > 16 ? 128 : 64;
}

static bool has_sums(const struct npu_command *c)
{
	return NPU_GET(c->context, FOLD_SUMS);
}

static uint64_t sums_bytes(const struct npu_command *c)
{
	return (uint64_t)NPU_GET(c->context, FOLD_T) *
	       pitch(NPU_GET(c->context, FOLD_NC));
}

int npu_save_reserve(struct npu_partition *space)
{
	uint64_t bytes = SUMS_AT + NPU_DEPTH * pitch(space->dev->opt.cols);

	return space->save ? 0 : npu_alloc(space->space, bytes, NULL, 0, &space->save);
}

void npu_save_close(struct npu_partition *space)
{
	npu_free(space->save);
	space->save = NULL;
}

uint32_t npu_save_ask(struct npu_partition *part, uint32_t mode)
{
	struct npu_partition *space = part->loaded;

	if (npu_save_reserve(space))
		return NPU_PREEMPT_DRAIN;
	npu_write(part->dev, NPU_SLOT_ADDR(part->slot, SAVE), space->save->va);
	return mode;
}

void npu_save_take(struct npu_partition *part, struct npu_command *c)
{
	struct npu_mem *area = npu_space_of(c)->save;

	npu_mem_read(part->dev, area, 0, c->context, sizeof(c->context));
	if (!has_sums(c))
		return;
	/* A tenant may have written there. */
	if (SUMS_AT + sums_bytes(c) <= area->bytes)
		c->sums = malloc(sums_bytes(c));
	if (c->sums)
		npu_mem_read(part->dev, area, SUMS_AT, c->sums, sums_bytes(c));
	else /* nothing of the kind, or no host memory: the tile begins anew */
		NPU_SET(c->context, FOLD_SUMS, 0);
}

void npu_save_put(struct npu_partition *part, struct npu_command *c)
{
	struct npu_mem *area = npu_space_of(c)->save;

	npu_mem_write(part->dev, area, 0, c->context, sizeof(c->context));
	if (c->sums)
		npu_mem_write(part->dev, area, SUMS_AT, c->sums, sums_bytes(c));
	npu_write(part->dev, NPU_SLOT_ADDR(part->slot, SAVE), area->va);
	npu_write(part->dev, NPU_SLOT_ADDR(part->slot, RESUME),
		  NPU_REG_BITS(RESUME_CONTEXT, 1));
}

void npu_save_drop(struct npu_command *c)
{
	free(c->sums);
	c->sums = NULL;
}

uint64_t npu_saved_bytes(const struct npu_command *c)
{
	if (!c->inside)
		return 0;
	return c->sums ? sizeof(c->context) + 4ull * NPU_GET(c->context, FOLD_T) *
						      NPU_GET(c->context, FOLD_NC)
		       : CONTEXT_BYTES;
}

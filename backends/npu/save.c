/* SPDX-License-Identifier: Apache-2.0 */
/*
 * save.c - contexts of operations that FOLD or SAVE has stopped inside.
 *
 * The machine stores them in the tenant's memory: in the fence page, or, with the sums of
 * a tile, in an area that is there from the first suspend by SAVE on.  They are read from
 * there when the slot has stopped and put back when the command goes on, so that any
 * number of commands can stand.
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

	return space->save ? 0 : npu_alloc(space, bytes, NULL, 0, &space->save);
}

void npu_save_close(struct npu_partition *space)
{
	npu_free(space->save);
	space->save = NULL;
}

/* Where contexts are in a tenant's memory, from *at on. */
static struct npu_mem *area_of(const struct npu_partition *space, uint32_t *at)
{
	*at = space->save ? 0 : NPU_FENCE_SAVE;
	return space->save ? space->save : space->fence;
}

/* c has sums only where there is room for them. */
static void put(struct npu_partition *part, struct npu_command *c)
{
	uint32_t at;
	struct npu_mem *area = area_of(npu_space_of(c), &at);

	npu_mem_write(part->dev, area, at, c->context, sizeof(c->context));
	if (c->sums)
		npu_mem_write(part->dev, area, at + SUMS_AT, c->sums, sums_bytes(c));
	npu_write(part->dev, NPU_SLOT_ADDR(part->slot, SAVE), area->va + at);
}

uint32_t npu_save_ask(struct npu_partition *part, uint32_t mode)
{
	const struct npu_partition *space = part->loaded;
	struct npu_command *c = npu_first_open(part);
	uint32_t at;
	struct npu_mem *area = area_of(space, &at);

	/* It may not have gone on yet, and the area be another since it was put back. */
	if (c && c->inside && c->fed != c->base && npu_space_of(c) == space)
		put(part, c);
	npu_write(part->dev, NPU_SLOT_ADDR(part->slot, SAVE), area->va + at);
	part->saved_in = area;
	return mode == NPU_PREEMPT_SAVE && !space->save ? NPU_PREEMPT_FOLD : mode;
}

void npu_save_take(struct npu_partition *part, struct npu_command *c)
{
	struct npu_mem *area = part->saved_in;
	uint32_t at = area == npu_space_of(c)->fence ? NPU_FENCE_SAVE : 0;

	npu_mem_read(part->dev, area, at, c->context, sizeof(c->context));
	if (!has_sums(c))
		return;
	/* A tenant may have written there. */
	if (at + SUMS_AT + sums_bytes(c) <= area->bytes)
		c->sums = malloc(sums_bytes(c));
	if (c->sums)
		npu_mem_read(part->dev, area, at + SUMS_AT, c->sums, sums_bytes(c));
	else /* nothing of the kind, or no host memory: the tile begins anew */
		NPU_SET(c->context, FOLD_SUMS, 0);
}

void npu_save_put(struct npu_partition *part, struct npu_command *c)
{
	put(part, c);
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

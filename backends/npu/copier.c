/* SPDX-License-Identifier: Apache-2.0 */
/*
 * copier.c - copies between host memory and buffers, beside a partition's own slot.
 *
 * A slot works its ring off in order, so copies there would stop the array.  They run in
 * slots that no partition has: a copier is such a slot with the address space of its
 * partition, a ring and a fence page of its own there, and no rectangle.  It has the
 * fields of a host, so that ring.c, stop.c and complete.c treat it as one.
 *
 * A partition has two copiers, for the two directions.  Each takes a slot for the first
 * copy that comes and keeps it until somebody else wants it: a new partition, or another
 * copier if this one is idle.  Without a slot copies run in the partition's own, in
 * order, as they do where a slot more would change what a partition may have: with turns=
 * (each slot's share of the channels) and limits (a slot's bucket).  With durations= they
 * do because what is recorded is a slot's time alone.
 */
#include "copier.h"

#include <errno.h>
#include <stdlib.h>

#include "complete.h"
#include "queue.h"
#include "ring.h"
#include "stop.h"

/* ---- slots ------------------------------------------------------------------------ */

static void give_slot(struct npu_partition *copier)
{
	struct npu_device *dev = copier->dev;

	npu_lock(dev);
	npu_write(dev, NPU_SLOT_ADDR(copier->slot, RING_BASE), 0);
	npu_space_unload(copier);
	copier->context[copier->desc.index % NPU_CONTEXTS] = NULL;
	copier->irq = 0;
	dev->parts[copier->slot] = NULL;
	dev->changes++;
	copier->slot = NPU_NO_SLOT;
	npu_unlock(dev);
}

/* A slot that nobody has, or else that of an idle copier. */
static uint32_t find_slot(const struct npu_device *dev)
{
	uint32_t found = NPU_NO_SLOT;

	for (uint32_t i = dev->opt.slots; i-- > 0;) {
		const struct npu_partition *has = dev->parts[i];

		if (!has)
			return i;
		if (npu_is_copier(has) && !has->count && !has->stopping)
			found = i;
	}
	return found;
}

static bool take_slot(struct npu_partition *copier)
{
	struct npu_device *dev = copier->dev;
	uint32_t slot = find_slot(dev);

	if (slot == NPU_NO_SLOT)
		return false;
	npu_lock(dev);
	if (dev->parts[slot])
		give_slot(dev->parts[slot]);
	copier->slot = slot;
	dev->parts[slot] = copier;
	dev->changes++;
	npu_ring_load(copier);
	npu_count_from_now(copier);
	npu_unlock(dev);
	return true;
}

/* ---- copiers ---------------------------------------------------------------------- */

static struct npu_partition *make(struct npu_partition *part)
{
	struct npu_partition *copier = calloc(1, sizeof(*copier));

	if (!copier)
		return NULL;
	copier->dev = part->dev;
	copier->desc = part->desc;
	copier->host = copier;
	copier->space = part;
	copier->slot = NPU_NO_SLOT;
	copier->root = part->root;
	copier->pages = part->pages;
	if (!npu_ring_open(copier))
		return copier;
	free(copier);
	return NULL;
}

void npu_copiers_open(struct npu_partition *part)
{
	const struct npu_device *dev = part->dev;

	if (part->copier[0] || dev->opt.turns || dev->durations || dev->opt.slots < 2)
		return;
	part->copier[0] = make(part);
	if (part->copier[0])
		part->copier[1] = make(part);
}

void npu_copiers_close(struct npu_partition *part)
{
	for (uint32_t i = 0; i < 2; i++) {
		struct npu_partition *copier = part->copier[i];

		if (!copier)
			continue;
		if (copier->slot != NPU_NO_SLOT)
			give_slot(copier);
		part->copier[i] = NULL;
		npu_ring_close(copier);
		npu_commands_free(copier);
		free(copier);
	}
}

struct npu_partition *npu_place(struct npu_partition *part, const struct hal_bk_cmd *cmd)
{
	bool to_host = cmd->flags & HAL_BK_CMD_TO_HOST;
	struct npu_partition *first = part->copier[to_host],
			     *second = part->copier[!to_host];

	if (cmd->op != HAL_OP_COPY || part->host->limited ||
	    !(cmd->flags & (HAL_BK_CMD_FROM_HOST | HAL_BK_CMD_TO_HOST)))
		return part;
	if (first && (first->slot != NPU_NO_SLOT || take_slot(first)))
		return first;
	return second && second->slot != NPU_NO_SLOT ? second : part;
}

/* ---- giving up a slot ------------------------------------------------------------- */

/* The slot lets go at once, with part of a command done. */
static void stop(struct npu_partition *copier)
{
	struct npu_device *dev = copier->dev;
	uint32_t status;

	npu_look_at_head(copier);
	if (!npu_first_open(copier) && !copier->stopping)
		return;
	npu_request_stop(copier, NPU_PREEMPT_KILL);
	do
		status = npu_read(dev, NPU_SLOT_ADDR(copier->slot, STATUS));
	while (!npu_has_stopped(NPU_REG_GET(status, STATUS_STATE)) ||
	       NPU_REG_GET(status, STATUS_PENDING));
	npu_look_at_head(copier);
	npu_settle(copier, NPU_REG_GET(status, STATUS_STATE));
}

int npu_copier_leave(struct npu_partition *copier)
{
	struct npu_partition *part = copier->space, *host = part->host;
	int rc = npu_order_reserve(host, copier->count + host->held);

	if (rc)
		return rc;
	npu_lock(copier->dev);
	stop(copier);
	for (uint32_t i = 0; i < copier->count; i++) {
		struct npu_command *c = copier->order[i];

		npu_times_drop(copier, c);
		c->space = part;
		c->queue->space = part;
		c->fed = c->base;
		c->fed_ns = 0;
		host->order[host->count++] = c;
	}
	host->frozen += copier->frozen;
	copier->count = copier->frozen = 0;
	copier->stopping = 0;
	give_slot(copier);
	npu_feed(host);
	npu_unlock(copier->dev);
	return 0;
}

int npu_copiers_leave(struct npu_partition *host)
{
	int rc = 0;

	for (uint32_t i = 0; !rc && i < host->dev->opt.slots; i++) {
		struct npu_partition *has = host->dev->parts[i];

		if (has && npu_is_copier(has) && has->space->host == host)
			rc = npu_copier_leave(has);
	}
	return rc;
}

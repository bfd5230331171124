/* SPDX-License-Identifier: Apache-2.0 */
/*
 * queue.c - queues, and what is submitted to them.
 *
 *   submit -> order[] -> entries of the ring -> (machine) -> HEAD -> event
 *   queue.c              ring.c                 poll.c       complete.c
 *
 * Commands of a queue end in order.  Those in one slot do anyway.  One that is to run in
 * another slot than those before it (copier.c) is held until they have ended, and so are
 * all behind it.
 */
#include "queue.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "complete.h"
#include "copier.h"
#include "kept.h"
#include "ring.h"
#include "save.h"

/* ---- submit ----------------------------------------------------------------------- */

static int check_mem(const struct npu_partition *part, const char *what,
		     const void *memory)
{
	const struct npu_mem *mem = memory;

	if (mem->part == part)
		return 0;
	return npu_fail(ENOTSUP,
			"npu: %s is a buffer of another partition; partitions have "
			"separate address spaces",
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
		return npu_fail(ENOTSUP, "npu: unknown command %u", cmd->op);
	}
}

int npu_order_reserve(struct npu_partition *part, uint32_t more)
{
	uint32_t room = 2 * part->room + more;
	struct npu_command **order;

	if (part->room - part->count >= more)
		return 0;
	order = realloc(part->order, room * sizeof(struct npu_command *));
	if (!order)
		return npu_fail(ENOMEM, "npu: no host memory for a command");
	part->order = order;
	part->room = room;
	return 0;
}

/* NULL: no memory. */
static struct npu_command *new_command(struct npu_partition *host)
{
	struct npu_command *c = host->spare;

	if (c)
		host->spare = c->next;
	else
		c = malloc(sizeof(*c));
	if (c)
		memset(c, 0, sizeof(*c));
	return c;
}

/* c comes to the order of space's host, which has room. */
static void append(struct npu_partition *space, struct npu_command *c)
{
	struct npu_partition *part = space->host;

	c->space = space;
	c->queue->space = space;
	c->sequence = ++part->sequence;
	part->order[part->count++] = c;
}

/* ---- held commands ---------------------------------------------------------------- */

static void hold(struct npu_queue *q, struct npu_command *c)
{
	if (q->held)
		q->held_last->next = c;
	else
		q->held = c;
	q->held_last = c;
	q->held_count++;
	q->part->host->held++;
}

static struct npu_command *unhold(struct npu_queue *q)
{
	struct npu_command *c = q->held;

	q->held = c->next;
	c->next = NULL;
	q->held_count--;
	q->part->host->held--;
	return c;
}

void npu_held_enter(struct npu_partition *part, struct npu_queue *q)
{
	struct npu_partition *space = q->space;

	if (q->held && npu_order_reserve(part, q->held_count + part->held))
		space = q->part;
	while (q->held)
		append(space, unhold(q));
}

void npu_held_go_on(struct npu_queue *q)
{
	struct npu_partition *at = NULL;

	while (q->held) {
		struct npu_partition *space = npu_place(q->part, &q->held->cmd);
		struct npu_command *c;

		if (space != q->part && npu_order_reserve(space->host, 1))
			space = q->part;
		if (at && at != space)
			break;
		at = space;
		c = unhold(q);
		append(space, c);
		npu_goes_on(q, c);
	}
	if (at)
		npu_feed(at->host);
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
	struct npu_partition *host = q->part->host, *space = q->part, *part;
	bool held, copies = (cmd->flags & (HAL_BK_CMD_FROM_HOST | HAL_BK_CMD_TO_HOST));
	struct npu_command *c;
	int rc;

	if (q->suspended != NPU_RUNS)
		return -EAGAIN;
	if (copies && !q->held)
		space = npu_place(q->part, cmd);
	part = space->host;
	held = q->held || (q->commands && q->space->host != part);
	if (held ? q->held_count >= NPU_COMMANDS
		 : part->count - part->frozen >= NPU_COMMANDS)
		return -EAGAIN;
	rc = check_command(q->part, cmd);
	if (!rc)
		rc = npu_replay_check(q->part, &host->desc, cmd);
	if (!rc) /* a held command may come to the order of its host */
		rc = npu_order_reserve(host, 1 + host->held);
	if (!rc && part != host)
		rc = npu_order_reserve(part, 1);
	if (rc)
		return rc;
	if (part->dev->opt.real && atomic_load(&part->dev->rest_ns) != NPU_WORKS)
		npu_works(part->dev);
	c = new_command(host);
	if (!c)
		return npu_fail(ENOMEM, "npu: no host memory for a command");
	c->cmd = *cmd;
	c->queue = q;
	npu_command_measure(c);
	c->times = NPU_TIMES_NONE;
	q->commands++;
	if (held) {
		hold(q, c);
		return 0;
	}
	append(space, c);
	npu_goes_on(q, c);
	npu_feed(part);
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
	q->space = part;
	part->queue_count++;
	*out = q;
	return 0;
}

int npu_queue_destroy(void *device, void *queue)
{
	struct npu_queue *q = queue;
	struct npu_partition *part = npu_runs_in(q);

	(void)device;
	if ((q->commands && q->suspended != NPU_FOLDED) || q->quiet_due)
		return npu_fail(EBUSY, "npu: the queue still has %u commands",
				q->commands);
	for (uint32_t i = 0; q->commands > q->held_count;)
		if (part->order[i]->queue == q) {
			npu_command_remove(part, i);
			part->frozen--;
		} else {
			i++;
		}
	while (q->held)
		free(unhold(q));
	q->part->queue_count--;
	free(q);
	return 0;
}

void npu_command_remove(struct npu_partition *part, uint32_t i)
{
	struct npu_command *c = part->order[i];
	struct npu_queue *q = c->queue;
	struct npu_partition *host = q->part->host;

	q->commands--;
	npu_times_drop(part, c);
	npu_scratch_drop(c);
	npu_save_drop(c);
	c->next = host->spare;
	host->spare = c;
	part->count--;
	memmove(&part->order[i], &part->order[i + 1],
		(part->count - i) * sizeof(struct npu_command *));
	if (q->held && q->commands == q->held_count &&
	    (q->suspended == NPU_RUNS || q->suspended == NPU_DRAINS))
		npu_held_go_on(q);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * queue.c - queues, and what is submitted to them.
 *
 *   submit -> order[] -> entries of the ring -> (machine) -> HEAD -> event
 *   queue.c              ring.c                 poll.c       complete.c
 */
#include "queue.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "complete.h"
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
	npu_command_measure(c);
	npu_goes_on(q, c);
	c->times = NPU_TIMES_NONE;
	q->commands++;
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
		return npu_fail(EBUSY, "npu: the queue still has %u commands",
				q->commands);
	for (uint32_t i = 0; q->commands;)
		if (host->order[i]->queue == q) {
			npu_command_remove(host, i);
			host->frozen--;
		} else {
			i++;
		}
	q->part->queue_count--;
	free(q);
	return 0;
}

void npu_command_remove(struct npu_partition *part, uint32_t i)
{
	struct npu_command *c = part->order[i];

	c->queue->commands--;
	npu_times_drop(part, c);
	npu_scratch_drop(c);
	npu_save_drop(c);
	c->next = part->spare;
	part->spare = c;
	part->count--;
	memmove(&part->order[i], &part->order[i + 1],
		(part->count - i) * sizeof(struct npu_command *));
}

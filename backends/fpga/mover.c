/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The mover: a thread that does what waits inside XRT - copies within the card and
 * between it and host memory, fills, timestamps, a configuration that is loaded - so that
 * the engine does not.  One chore at
 * a time, in the order they came.  With virtual time each is done where it is given.
 */
#define _GNU_SOURCE
#include "internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static void carry_out(struct fp_chore *c)
{
	c->err = c->work(c);
	atomic_store(&c->done, true);
}

static void *run(void *device)
{
	struct fp_device *dev = device;
	struct fp_chore *c;

	pthread_mutex_lock(&dev->mover_lock);
	while (!dev->mover_ends) {
		c = dev->chores;
		if (!c) {
			pthread_cond_wait(&dev->mover_wake, &dev->mover_lock);
			continue;
		}
		dev->chores = c->next;
		if (!dev->chores)
			dev->last_chore = &dev->chores;
		pthread_mutex_unlock(&dev->mover_lock);
		carry_out(c);
		pthread_mutex_lock(&dev->mover_lock);
		pthread_cond_signal(&dev->mover_done);
	}
	pthread_mutex_unlock(&dev->mover_lock);
	return NULL;
}

int fp_mover_start(struct fp_device *dev)
{
	int err = 0;

	dev->last_chore = &dev->chores;
	if (!dev->opt.virtual_clock)
		err = pthread_create(&dev->mover, NULL, run, dev);
	dev->mover_runs = !dev->opt.virtual_clock && !err;
	return err ? fp_host->fail(err, "fpga:%u: cannot create a thread for copies",
				   dev->index)
		   : 0;
}

void fp_mover_stop(struct fp_device *dev)
{
	if (!dev->mover_runs)
		return;
	pthread_mutex_lock(&dev->mover_lock);
	dev->mover_ends = true;
	pthread_cond_signal(&dev->mover_wake);
	pthread_mutex_unlock(&dev->mover_lock);
	pthread_join(dev->mover, NULL);
	dev->mover_runs = false;
}

void fp_move(struct fp_device *dev, struct fp_chore *c)
{
	c->device = dev;
	c->next = NULL;
	atomic_store(&c->done, false);
	if (!dev->mover_runs) {
		carry_out(c);
		fp_catch_up(dev);
		return;
	}
	pthread_mutex_lock(&dev->mover_lock);
	*dev->last_chore = c;
	dev->last_chore = &c->next;
	pthread_cond_signal(&dev->mover_wake);
	pthread_mutex_unlock(&dev->mover_lock);
}

void fp_move_wait(struct fp_device *dev, struct fp_chore *c)
{
	pthread_mutex_lock(&dev->mover_lock);
	while (!atomic_load(&c->done))
		pthread_cond_wait(&dev->mover_done, &dev->mover_lock);
	pthread_mutex_unlock(&dev->mover_lock);
}

/* ---- chores of commands -------------------------------------------------------------- */

static int to_card(struct fp_chore *c, const struct fp_mem *mem, uint64_t offset,
		   uint64_t bytes)
{
	if (!XRT(xrtBOSync, mem->bo, XRT_TO_DEVICE, bytes, offset))
		return 0;
	return fp_why(c->device, "xrtBOSync", c->text, sizeof(c->text));
}

static int copy(struct fp_chore *c, const struct hal_bk_cmd *cmd)
{
	const struct fp_mem *dst = cmd->copy.dst, *src = cmd->copy.src;
	const uint64_t bytes = cmd->copy.bytes;
	uint8_t *to = dst->host + cmd->copy.dst_offset;
	const uint8_t *from = src->host + cmd->copy.src_offset;

	if (!src->bo) {
		memcpy(to, from, bytes);
		return to_card(c, dst, cmd->copy.dst_offset, bytes);
	}
	if (dst->bo)
		return XRT(xrtBOCopy, dst->bo, src->bo, bytes, cmd->copy.dst_offset,
			   cmd->copy.src_offset)
			       ? fp_why(c->device, "xrtBOCopy", c->text, sizeof(c->text))
			       : 0;
	if (XRT(xrtBOSync, src->bo, XRT_FROM_DEVICE, bytes, cmd->copy.src_offset))
		return fp_why(c->device, "xrtBOSync", c->text, sizeof(c->text));
	memcpy(to, from, bytes);
	return 0;
}

int fp_move_command(struct fp_chore *c)
{
	struct fp_queue *q =
		(struct fp_queue *)((char *)c - offsetof(struct fp_queue, chore));
	const struct hal_bk_cmd *cmd = fp_oldest(q);
	const struct fp_mem *dst;
	uint64_t i, now;

	switch (cmd->op) {
	case HAL_OP_COPY:
		return copy(c, cmd);
	case HAL_OP_FILL:
		dst = cmd->fill.dst;
		for (i = 0; i < cmd->fill.bytes; i += sizeof(cmd->fill.pattern))
			memcpy(dst->host + cmd->fill.offset + i, &cmd->fill.pattern,
			       sizeof(cmd->fill.pattern));
		return to_card(c, dst, cmd->fill.offset, cmd->fill.bytes);
	default:
		dst = cmd->timestamp.dst;
		now = fp_now(c->device);
		memcpy(dst->host + cmd->timestamp.offset, &now, sizeof(now));
		return to_card(c, dst, cmd->timestamp.offset, sizeof(now));
	}
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Calls that need a device, on one that is lost; and that the rest of it can be put away.
 */
#include <hal/ext/memory.h>

#include "negative.h"

#define LOST(function_, call_)                                                           \
	NEGATIVE(function_, ENODEV, lost, "is lost")                                     \
	{                                                                                \
		NEG_OK(neg_lose(w));                                                     \
		return call_;                                                            \
	}

static int load(struct neg *w)
{
	struct hal_program *prog;
	size_t size;
	const void *image = neg_image(&size);

	return hal_program_load(w->dev2, image, size, &prog);
}

static struct hal_partition *part;
static struct hal_queue *queue;
static struct hal_buffer *buf;
static struct hal_sequence *seq;
static uint32_t word;
static void *address;

LOST(hal_partition_create, hal_partition_create(w->dev2, &w->part_desc, &part))
LOST(hal_partition_create_named, hal_partition_create_named(w->dev2, "a", &part))
LOST(hal_partition_resize, hal_partition_resize(w->part2, &w->part_desc, NULL))
LOST(hal_partitions_move, hal_partitions_move(&w->part2, &w->part_desc, 1, NULL))
LOST(hal_buffer_create, hal_buffer_create(w->part2, &w->buffer_desc, &buf))
LOST(hal_buffer_create_weighted,
     hal_buffer_create_weighted(w->part2, &w->buffer_desc, NULL, &buf))
LOST(hal_buffer_import, hal_buffer_import(w->part2, 0, &w->buffer_desc, &buf))
LOST(hal_host_alloc, hal_host_alloc(w->part2, 64, &buf, &address))
LOST(hal_host_register, hal_host_register(w->part2, &word, 4, &buf))
LOST(hal_buffer_write, hal_buffer_write(w->buf2, 0, &word, 4))
LOST(hal_buffer_read, hal_buffer_read(w->buf2, 0, &word, 4))
LOST(hal_buffer_recolor, hal_buffer_recolor(w->buf2, w->queue2, 1, NULL, NULL))
LOST(hal_buffer_map, hal_buffer_map(w->buf2, &address))
LOST(hal_program_load, load(w))
LOST(hal_queue_create, hal_queue_create(w->part2, &w->queue_desc, &queue))
LOST(hal_queue_suspend, hal_queue_suspend(w->queue2, HAL_SUSPEND_DRAIN, NULL))
LOST(hal_queue_resume, hal_queue_resume(w->queue2))
LOST(hal_submit, hal_submit(w->queue2, &w->submit, NULL))
LOST(hal_sequence_create, hal_sequence_create(w->part2, &w->submit, &seq))
LOST(hal_sequence_submit, hal_sequence_submit(w->queue2, w->seq, NULL, NULL))

NEGATIVE(hal_buffer_export, ENODEV, lost, "is lost")
{
	int fd;

	w->buffer_desc.flags = HAL_BUFFER_EXPORTABLE;
	NEG_OK(neg_lose(w));
	return hal_buffer_export(w->buf2, &fd);
}

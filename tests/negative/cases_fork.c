/* SPDX-License-Identifier: Apache-2.0 */
/* What a process has opened, used by its child. */
#define _GNU_SOURCE
#include "negative.h"

#include <hal/ext/memory.h>
#include <hal/ext/options.h>

#define SCAN (HAL_SCAN_DEVICES | HAL_SCAN_OPTIONS)

static struct hal_scan *scan;

#define FORKED(function_, call_)                                                         \
	static int forked_##function_(struct neg *w)                                     \
	{                                                                                \
		(void)w;                                                                 \
		return call_;                                                            \
	}                                                                                \
	NEGATIVE(function_, EPERM, forked, "made before a fork")                         \
	{                                                                                \
		int err;                                                                 \
                                                                                         \
		NEG_OK(hal_scan_create(NULL, SCAN, &scan));                              \
		NEG_OK(hal_completions_create(w->dev, 8, &w->ring));                     \
		NEG_OK(hal_sequence_create(w->part, &w->submit, &w->seq));               \
		err = neg_forked(w, forked_##function_);                                 \
		NEG_OK(hal_scan_destroy(scan));                                          \
		scan = NULL;                                                             \
		return err;                                                              \
	}

static int load(struct neg *w)
{
	size_t size;
	const void *image = neg_image(&size);

	return hal_program_load(w->dev, image, size, &w->prog2);
}

/* Of a queue's own timeline, which is no object of its own. */
static struct hal_point of_queue(const struct neg *w)
{
	return (struct hal_point){w->points[0].timeline, 1};
}

static int wait_there(struct neg *w)
{
	struct hal_point p = of_queue(w);

	return hal_wait(&p, 1, 0, HAL_FOREVER);
}

static int point_fd(struct neg *w)
{
	struct hal_point p = {w->line, 1};

	return hal_point_open_fd(&p);
}

static int value(struct neg *w)
{
	int err = 0;

	(void)hal_timeline_get_value(w->line, &err);
	return err;
}

static struct hal_partition_info part_info = HAL_INIT(hal_partition_info);
static struct hal_partition_memory_info part_memory = HAL_INIT(hal_partition_memory_info);
static struct hal_backend_info backend_info = HAL_INIT(hal_backend_info);
static struct hal_option_info option_info = HAL_INIT(hal_option_info);
static struct hal_program_info program_info = HAL_INIT(hal_program_info);
static struct hal_fault_info fault_info = HAL_INIT(hal_fault_info);
static struct hal_kernel_info kernel_info = HAL_INIT(hal_kernel_info);
static struct hal_policy_info policy_info = HAL_INIT(hal_policy_info);
static struct hal_completion end;
static uint32_t word;
static void *address;
static int descriptor;

FORKED(hal_scan_destroy, hal_scan_destroy(scan))
FORKED(hal_scan_get_backend, hal_scan_get_backend(scan, 0, &backend_info))
FORKED(hal_scan_get_device, hal_scan_get_device(scan, 0, &w->info))
FORKED(hal_scan_get_option, hal_scan_get_option(scan, 0, &option_info))
FORKED(hal_close, hal_close(w->dev))
FORKED(hal_device_get_info, hal_device_get_info(w->dev, &w->info))
FORKED(hal_device_get_stats, hal_device_get_stats(w->dev, &w->stats))
FORKED(hal_device_poll, hal_device_poll(w->dev, 1))
FORKED(hal_device_set_policy, hal_device_set_policy(w->dev, "fifo", NULL))
FORKED(hal_device_get_policy, hal_device_get_policy(w->dev, &policy_info))
FORKED(hal_trace_start, hal_trace_start(w->dev, "/dev/null"))
FORKED(hal_trace_stop, hal_trace_stop(w->dev))
FORKED(hal_partition_create, hal_partition_create(w->dev, &w->part_desc, &w->part2))
FORKED(hal_partition_create_named, hal_partition_create_named(w->dev, "a", &w->part2))
FORKED(hal_partition_resize, hal_partition_resize(w->part, &w->part_desc, NULL))
FORKED(hal_partitions_move, hal_partitions_move(&w->part, &w->part_desc, 1, NULL))
FORKED(hal_partition_destroy, hal_partition_destroy(w->part))
FORKED(hal_partition_get_memory_info,
       hal_partition_get_memory_info(w->part, &part_memory))
FORKED(hal_partition_get_info, hal_partition_get_info(w->part, &part_info))
FORKED(hal_partition_get_stats, hal_partition_get_stats(w->part, &w->stats))
FORKED(hal_buffer_create, hal_buffer_create(w->part, &w->buffer_desc, &w->buf2))
FORKED(hal_buffer_create_weighted,
       hal_buffer_create_weighted(w->part, &w->buffer_desc, NULL, &w->buf2))
FORKED(hal_buffer_export, hal_buffer_export(w->buf, &descriptor))
FORKED(hal_buffer_import, hal_buffer_import(w->part, 0, &w->buffer_desc, &w->buf2))
FORKED(hal_buffer_destroy, hal_buffer_destroy(w->buf))
FORKED(hal_host_alloc, hal_host_alloc(w->part, 64, &w->buf2, &address))
FORKED(hal_host_register, hal_host_register(w->part, &word, 4, &w->buf2))
FORKED(hal_buffer_write, hal_buffer_write(w->buf, 0, &word, 4))
FORKED(hal_buffer_read, hal_buffer_read(w->buf, 0, &word, 4))
FORKED(hal_buffer_recolor, hal_buffer_recolor(w->buf, w->queue, 1, NULL, NULL))
FORKED(hal_buffer_map, hal_buffer_map(w->buf, &address))
FORKED(hal_buffer_unmap, hal_buffer_unmap(w->buf))
FORKED(hal_program_load, load(w))
FORKED(hal_program_unload, hal_program_unload(w->prog))
FORKED(hal_program_set_name, hal_program_set_name(w->prog, "name"))
FORKED(hal_program_get_info, hal_program_get_info(w->prog, &program_info))
FORKED(hal_kernel_get, hal_kernel_get(w->prog, 0, &w->kernel))
FORKED(hal_kernel_find, hal_kernel_find(w->prog, "twice", &w->kernel))
FORKED(hal_kernel_get_info, hal_kernel_get_info(w->kernel, &kernel_info))
FORKED(hal_queue_create, hal_queue_create(w->part, &w->queue_desc, &w->queue2))
FORKED(hal_queue_destroy, hal_queue_destroy(w->queue))
FORKED(hal_queue_suspend, hal_queue_suspend(w->queue, HAL_SUSPEND_DRAIN, NULL))
FORKED(hal_queue_resume, hal_queue_resume(w->queue))
FORKED(hal_queue_get_fault, hal_queue_get_fault(w->queue, &fault_info))
FORKED(hal_queue_get_stats, hal_queue_get_stats(w->queue, &w->stats))
FORKED(hal_submit, hal_submit(w->queue, &w->submit, NULL))
FORKED(hal_sequence_create, hal_sequence_create(w->part, &w->submit, &w->seq))
FORKED(hal_sequence_destroy, hal_sequence_destroy(w->seq))
FORKED(hal_sequence_set_args, hal_sequence_set_args(w->seq, 0, w->args, 1))
FORKED(hal_sequence_submit, hal_sequence_submit(w->queue, w->seq, NULL, NULL))
FORKED(hal_completions_create, hal_completions_create(w->dev, 8, &w->ring))
FORKED(hal_completions_destroy, hal_completions_destroy(w->ring))
FORKED(hal_completions_read, hal_completions_read(w->ring, &end, 1, 0))
FORKED(hal_completions_get_fd, hal_completions_get_fd(w->ring))
FORKED(hal_timeline_create, hal_timeline_create(w->dev, &w->line2))
FORKED(hal_timeline_destroy, hal_timeline_destroy(w->line))
FORKED(hal_timeline_signal, hal_timeline_signal(w->line, 1))
FORKED(hal_timeline_get_value, value(w))
FORKED(hal_timeline_export, hal_timeline_export(w->line, HAL_TIMELINE_WAIT, &descriptor))
FORKED(hal_timeline_import, hal_timeline_import(w->dev, 0, &w->line2))
FORKED(hal_point_open_fd, point_fd(w))

NEGATIVE(hal_wait, EPERM, forked, "made before a fork")
{
	w->points[0].timeline = hal_queue_get_timeline(w->queue);
	return neg_forked(w, wait_there);
}

/* Under a real clock a child that waited would wait for an engine it does not have. */
NEGATIVE_ON("ref?clock=real", hal_wait, EPERM, forked_real, "made before a fork")
{
	w->points[0].timeline = hal_queue_get_timeline(w->queue);
	return neg_forked(w, wait_there);
}

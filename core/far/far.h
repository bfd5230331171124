/* SPDX-License-Identifier: Apache-2.0 */
/*
 * far.h - devices that another process serves (target "hald:NAME"), and their objects.
 *
 * A far object begins with the local struct of its kind, all zero but for the magic
 * number, which says that it is far.  So a function of hal.h that is given one among
 * local objects finds no valid handle in it.  Functions of core/api pass far objects on
 * with FAR_OR_BAD; each function here is the one of hal.h without "hal_", for far
 * objects, and returns the same.
 */
#ifndef HAL_FAR_FAR_H
#define HAL_FAR_FAR_H

#include <hal/ext/memory.h>
#include <hal/hal.h>

#include "util/pool.h"

/* Return call if o is a far object of that kind, else the error of a wrong handle. */
#define FAR_OR_BAD(o, kind, call) (OBJECT_IS_FAR(o, kind) ? (call) : object_bad(o, kind))

/* Return whether target names a far device. */
bool far_is_target(const char *target);
int far_open(const char *target, const char *folder, struct hal_device **out);
int far_close(struct hal_device *dev);
int far_device_get_info(struct hal_device *dev, struct hal_device_info *info);
int far_device_get_stats(struct hal_device *dev, struct hal_stats *stats);
int far_device_poll(struct hal_device *dev, uint64_t ns);
uint64_t far_device_get_time(struct hal_device *dev);
int far_device_set_policy(struct hal_device *dev, const char *name,
			  const char *const *options);
int far_device_get_policy(struct hal_device *dev, struct hal_policy_info *info);
/* Return the extension of that name, or NULL. */
const void *far_device_extension(struct hal_device *dev, const char *name);
/* bytes: as trace_desc.bytes. */
int far_trace_start(struct hal_device *dev, const char *path, uint64_t bytes);
/* events, dropped: see hal_hald_extension.trace_stop; both may be NULL. */
int far_trace_stop(struct hal_device *dev, uint64_t *events, uint64_t *dropped);

int far_partition_create(struct hal_device *dev, const struct hal_partition_desc *desc,
			 struct hal_partition **out);
int far_partition_create_named(struct hal_device *dev, const char *name,
			       struct hal_partition **out);
int far_partition_resize(struct hal_partition *part,
			 const struct hal_partition_desc *desc, struct hal_point *done);
int far_partitions_move(struct hal_partition *const *parts,
			const struct hal_partition_desc *descs, uint32_t count,
			struct hal_point *done);
int far_partition_destroy(struct hal_partition *part);
int far_partition_get_info(const struct hal_partition *part,
			   struct hal_partition_info *info);
int far_partition_get_stats(struct hal_partition *part, struct hal_stats *stats);
int far_partition_get_memory_info(const struct hal_partition *part,
				  struct hal_partition_memory_info *info);

int far_buffer_create(struct hal_partition *part, const struct hal_buffer_desc *desc,
		      const uint8_t *weights, struct hal_buffer **out);
int far_buffer_destroy(struct hal_buffer *buf);
uint64_t far_buffer_get_bytes(const struct hal_buffer *buf);
int far_buffer_write(struct hal_buffer *buf, uint64_t offset, const void *data,
		     uint64_t bytes);
int far_buffer_read(struct hal_buffer *buf, uint64_t offset, void *data, uint64_t bytes);
int far_buffer_map(struct hal_buffer *buf, void **address);
int far_buffer_unmap(struct hal_buffer *buf);
int far_buffer_export(struct hal_buffer *buf, int *fd);
int far_buffer_import(struct hal_partition *part, int fd,
		      const struct hal_buffer_desc *desc, struct hal_buffer **out);
int far_buffer_recolor(struct hal_buffer *buf, struct hal_queue *queue,
		       uint64_t color_mask, const uint8_t *weights,
		       struct hal_point *done);
int far_host_alloc(struct hal_partition *part, uint64_t bytes, struct hal_buffer **host,
		   void **address);
int far_host_register(void);

int far_program_load(struct hal_device *dev, const void *image, size_t size,
		     struct hal_program **out);
int far_program_set_name(struct hal_program *prog, const char *name);
int far_program_get_info(const struct hal_program *prog, struct hal_program_info *info);
int far_program_unload(struct hal_program *prog);
int far_kernel_find(struct hal_program *prog, const char *name, struct hal_kernel **out);
int far_kernel_get(struct hal_program *prog, uint32_t index, struct hal_kernel **out);
int far_kernel_get_info(const struct hal_kernel *kernel, struct hal_kernel_info *info);

int far_queue_create(struct hal_partition *part, const struct hal_queue_desc *desc,
		     struct hal_queue **out);
int far_queue_destroy(struct hal_queue *q);
int far_queue_suspend(struct hal_queue *q, uint32_t mode, struct hal_point *quiet);
int far_queue_resume(struct hal_queue *q);
int far_queue_get_stats(struct hal_queue *q, struct hal_stats *stats);
int far_queue_get_fault(const struct hal_queue *q, struct hal_fault_info *fault);
struct hal_timeline *far_queue_get_timeline(struct hal_queue *q);
int far_submit(struct hal_queue *q, const struct hal_submit_desc *desc,
	       struct hal_point *done);
int far_sequence_create(struct hal_partition *part, const struct hal_submit_desc *desc,
			struct hal_sequence **out);
int far_sequence_destroy(struct hal_sequence *seq);
int far_sequence_set_args(struct hal_sequence *seq, uint32_t cmd,
			  const struct hal_arg *args, uint32_t arg_count);
int far_sequence_submit(struct hal_queue *q, struct hal_sequence *seq,
			const struct hal_submit_desc *desc, struct hal_point *done);

int far_completions_create(struct hal_device *dev, uint32_t entries,
			   struct hal_completions **out);
int far_completions_destroy(struct hal_completions *completions);
int far_completions_read(struct hal_completions *completions, struct hal_completion *out,
			 uint32_t max, int64_t until_ns);
int far_completions_get_fd(struct hal_completions *completions);
int far_timeline_create(struct hal_device *dev, struct hal_timeline **out);
int far_timeline_destroy(struct hal_timeline *t);
uint64_t far_timeline_get_value(const struct hal_timeline *t, int *err);
int far_timeline_signal(struct hal_timeline *t, uint64_t value);
int far_timeline_export(struct hal_timeline *t, uint32_t rights, int *fd);
int far_timeline_import(struct hal_device *dev, int fd, struct hal_timeline **out);
/* At least one of the points is of a far device. */
int far_wait(const struct hal_point *points, uint32_t count, uint32_t flags,
	     int64_t until_ns);
int far_point_open_fd(const struct hal_point *point);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hal/ext/memory.h - memory features that few devices have: limits of a partition's
 * bandwidth, more buffers than device memory, two placements of a buffer (bimodal),
 * shares of channels, and moving a buffer to other channels.
 *
 * hal_device_info.caps says what a device has: HAL_CAP_LIMIT, HAL_CAP_EVICT,
 * HAL_CAP_BIMODAL, HAL_CAP_RECOLOR.
 */
#ifndef HAL_EXT_MEMORY_H
#define HAL_EXT_MEMORY_H

#include <hal/hal.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- limits of a partition ---------------------------------------------------------- */

/* hal_partition_desc.limits.  A resize cannot change them. */
struct hal_partition_limits {
	uint32_t size;
	uint32_t reserved;
	/* Bytes a second of device time that the partition moves at most, whatever the
	 * policy asks for; 0: no limit of its own.  A guest has its host's.  -ENOTSUP
	 * without HAL_CAP_LIMIT; -EINVAL: more than its channels have, or less than
	 * .limit_bytes in .limit_window_ns (hal_device_info). */
	uint64_t bandwidth;
	/* Bytes of its buffers, on the device and off it; 0: hal_partition_desc
	 * .memory_bytes.  Above that, with hal.oversubscribe, the library moves buffers
	 * that no command has used for longest to host memory while .memory_bytes has no
	 * room, and back before a command that uses them.  That command's queue waits for
	 * it, others do not.  All buffers of one command are on the device at once: if
	 * they have more than .memory_bytes together, the command fails its queue
	 * (-ENOSPC).  Buffers that are mapped, HAL_BUFFER_MAPPABLE or _BIMODAL stay.
	 * -EINVAL: less than .memory_bytes, or that is 0.  -ENOTSUP: no HAL_CAP_EVICT, no
	 * hal.oversubscribe, or hal.journal is set, which does not record memory. */
	uint64_t memory_limit;
};

struct hal_partition_memory_info {
	uint32_t size;
	uint32_t reserved;
	uint64_t bandwidth; /* its own limit, as the device rounds it; 0: none */
	/* HAL_PARTITION_BIMODAL: channels of its second placement, its own included; else
	 * 0.  How often it has changed placements: an odd number while on all of them. */
	uint64_t wide_mask;
	uint64_t switches;
	/* With .memory_limit above its quota, else 0: bytes of its buffers in all, and of
	 * those in host memory; how often a buffer went there and came back, with how
	 * many bytes; how long queues have waited for that, in device time. */
	uint64_t memory_limit;
	uint64_t memory_buffers, memory_away;
	uint64_t evictions, evicted_bytes, fetches, fetched_bytes;
	uint64_t fetch_wait_ns;
};

/* Describe the limits, placements and evictions of a partition's memory as they are now.
 * info: set .size; at most .size bytes are written.
 * Errors: handle; EINVAL: info is NULL, or info->size is too small.
 * Threads: any.
 * Memory: info is written during the call. */
HAL_API int hal_partition_get_memory_info(const struct hal_partition *part,
					  struct hal_partition_memory_info *info);

/* ---- bimodal memory ------------------------------------------------------------------ */

/* hal_partition_desc.flags.  The partition names channels and has more while it is alone
 * on the device: those that no other partition has named when it is created.  Its buffers
 * of HAL_BUFFER_BIMODAL, and the constants of its programs, have two placements: on its
 * own channels, and on all of these.  The library chooses when the first command of a
 * submission is next in its queue: the second one, unless another partition has work that
 * is not over, or has named one of those channels since.  A submission stays where it
 * began.  -ENOTSUP without HAL_CAP_BIMODAL; -EINVAL: no .color_mask, or a guest; -ENOSPC:
 * others have named all other channels.  A resize cannot change it. */
#define HAL_PARTITION_BIMODAL (UINT32_C(1) << 0)

/* hal_buffer_desc.flags.  Two placements, in a partition with HAL_PARTITION_BIMODAL.  The
 * second one shares those granules of the first that lie on the partition's own channels
 * anyway, so that only the rest is additional memory.  Without HAL_BUFFER_SCRATCH it is
 * for what the host writes and the device only reads, such as weights: copies, fills and
 * timestamps to it are refused.  A kernel that writes to it fails where the device can
 * detect that, else its contents are undefined.  It cannot be mapped or moved. */
#define HAL_BUFFER_BIMODAL (UINT32_C(1) << 1)
/* With HAL_BUFFER_BIMODAL: commands may write to it.  What they have written lasts until
 * the end of their submission, as intermediates do; what the host writes stays. */
#define HAL_BUFFER_SCRATCH (UINT32_C(1) << 2)

/* ---- shares of channels -------------------------------------------------------------- */

/* Create a buffer as hal_buffer_create, with a share of its own for each memory channel.
 * weights: NULL, or .colors (hal_device_info) numbers: so many parts of it lie on each
 * channel of .color_mask, as exactly as granules allow; other numbers are ignored.
 * Errors: handle; lost; memory; desc; EINVAL: desc or buf is NULL, .bytes is 0, .flags
 * has an unknown bit or a wrong combination, part lacks a channel of .color_mask, or no
 * weight is above 0.  EMFILE, ENOSPC: as in hal_buffer_create.  ENOTSUP: the device
 * cannot map or export such a buffer, or knows no channels.
 * Threads: any.
 * Memory: desc and weights are read during the call.  buf lasts until
 * hal_buffer_destroy; part must outlive it. */
HAL_API int hal_buffer_create_weighted(struct hal_partition *part,
				       const struct hal_buffer_desc *desc,
				       const uint8_t *weights, struct hal_buffer **buf);

/* ---- moving a buffer to other channels ------------------------------------------------ */

/* Move a buffer to other channels of its partition, by a submission to queue.
 * color_mask, weights: as in hal_buffer_create_weighted.  done: may be NULL; reached when
 * buf has moved.  Until then other queues' commands with buf wait, the host cannot copy
 * or map it, and both places count in the quota.  If the copy fails, buf stays in place.
 * Errors: handle; lost; memory; EAGAIN: queue or its ring of completions is full.  EBUSY:
 * buf is mapped, copied by the host, moving, or used by a suspended command.  ECANCELED,
 * EIO: queue has failed.  EINVAL: buf is bimodal, exportable or imported, a channel is
 * not the partition's, or no weight is above 0.  ENOSPC: a channel or the quota has too
 * little left.  ENOTSUP: no HAL_CAP_RECOLOR.  EPERM: their partitions differ.
 * Threads: the one that submits to queue; any may use buf meanwhile.
 * Memory: weights is read during the call.  buf may be destroyed right after it. */
HAL_API int hal_buffer_recolor(struct hal_buffer *buf, struct hal_queue *queue,
			       uint64_t color_mask, const uint8_t *weights,
			       struct hal_point *done);

#ifdef __cplusplus
}
#endif
#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* handle.h - helpers that the public functions of core/api share. */
#ifndef HAL_API_HANDLE_H
#define HAL_API_HANDLE_H

#include "command/queue.h"
#include "loop/device.h"
#include "space/partition.h"
#include "util/error.h"

/* Return 0, or fail with -ENODEV if dev is lost (has stopped answering). */
static inline int device_alive(struct hal_device *dev)
{
	int err = atomic_load_explicit(&dev->lost, memory_order_acquire);

	return UNLIKELY(err != 0) ? fail(err, "%s is lost: %s", dev->name, dev->lost_why)
				  : 0;
}

/* Add (pin) or drop (unpin) a reference to a buffer or program.  The handle holds one
 * reference, and each use in a recorded sequence another.  After the last reference is
 * dropped, the object is freed once submitted work has stopped using it.  Any thread, but
 * not from inside an engine turn. */
void buffer_pin(struct hal_buffer *buf);
void buffer_unpin(struct hal_buffer *buf);
void program_pin(struct hal_program *prog);
void program_unpin(struct hal_program *prog);

/* Make a buffer of part that is host memory: the bytes at address, or newly allocated
 * ones if address is NULL.  Return 0 or -errno. */
int buffer_make_host(struct hal_partition *part, void *address, uint64_t bytes,
		     struct hal_buffer **out);

/* Place prog in part, unless it is placed already.  Its kernels can then be launched in
 * part.  Return 0 or -errno.  Called by the submitting thread. */
int program_bind(struct hal_program *prog, struct hal_partition *part);
/* Remove every program from part.  Engine only. */
void program_unbind_all(struct hal_partition *part);

#endif

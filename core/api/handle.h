/* SPDX-License-Identifier: Apache-2.0 */
/* handle.h - what the public functions share. */
#ifndef HAL_API_HANDLE_H
#define HAL_API_HANDLE_H

#include "command/queue.h"
#include "loop/device.h"
#include "space/partition.h"
#include "util/error.h"

/* -ENODEV once it is lost. */
static inline int device_alive(struct hal_device *dev)
{
	int err = atomic_load_explicit(&dev->lost, memory_order_acquire);

	return UNLIKELY(err != 0) ? fail(err, "%s is lost: %s", dev->name, dev->lost_why)
				  : 0;
}

/* buffer.c, program.c: named by one more, or by one less; the last has it freed. */
void buffer_pin(struct hal_buffer *buf);
void buffer_unpin(struct hal_buffer *buf);
void program_pin(struct hal_program *prog);
void program_unpin(struct hal_program *prog);

/* program.c, for hal_submit: makes prog ready to run in part. */
int program_bind(struct hal_program *prog, struct hal_partition *part);
void program_unbind_all(struct hal_partition *part); /* by the engine */

#endif

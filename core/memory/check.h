/* SPDX-License-Identifier: Apache-2.0 */
/* check.h - assert the states of buffers, in builds without NDEBUG. */
#ifndef HAL_MEMORY_CHECK_H
#define HAL_MEMORY_CHECK_H

#include "loop/device.h"
#include "memory/evict.h"

#ifndef NDEBUG
/* Assert docs/state.md for a buffer that may be evicted. */
void buffer_check(const struct evictable *ev);
/* Assert docs/state.md for all buffers of dev that may be evicted or move to other
 * channels, and for the queues that use them. */
void memory_check(struct hal_device *dev);
#endif

#endif

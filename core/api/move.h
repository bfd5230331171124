/* SPDX-License-Identifier: Apache-2.0 */
/* move.h - submit the move of a buffer to other memory channels (memory/recolor.h). */
#ifndef HAL_API_MOVE_H
#define HAL_API_MOVE_H

#include <hal/hal.h>

struct recolor;

/* Check that q accepts work and has free slots for a move, and reserve an entry of its
 * completion ring.  Only by the thread that submits to q, which then calls recolor_submit
 * or recolor_unreserve.  Return -EAGAIN if q or its completion ring is full. */
int recolor_reserve(struct hal_queue *q);
/* Give back the reserved entry of the completion ring. */
void recolor_unreserve(const struct hal_queue *q);
/* Submit m to its queue and write the point that it reaches to done (may be NULL).  On
 * success the engine owns m.  Return -ENOMEM with m unchanged. */
int recolor_submit(struct recolor *m, struct hal_point *done);

#endif

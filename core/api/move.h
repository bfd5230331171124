/* SPDX-License-Identifier: Apache-2.0 */
/* move.h - the submission by which a buffer moves (memory/recolor.h). */
#ifndef HAL_API_MOVE_H
#define HAL_API_MOVE_H

#include <hal/hal.h>

struct recolor;

/* By the thread that submits to q.  -EAGAIN: the ring, or its ring of completions, has no
 * room; 0: it has, until recolor_submit or recolor_no_room. */
int recolor_room(struct hal_queue *q);
void recolor_no_room(const struct hal_queue *q);
/* 0: m is the engine's.  -ENOMEM. */
int recolor_submit(struct recolor *m, struct hal_point *done);

#endif

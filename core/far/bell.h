/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bell.h - how a program wakes hald (R3 to R6, B2 and E3 in ring.h).
 *
 * tests/wakeup runs these functions, as those of wake.h, in all interleavings.
 */
#ifndef HAL_FAR_BELL_H
#define HAL_FAR_BELL_H

#include "loop/wake.h"

#ifndef WAKE_ADD
#define WAKE_ADD(p) ((void)atomic_fetch_add((p), 1))
#endif

/* Find out whether the engine sees a new tail by itself (R3, R4).  Call after the tail
 * was written. */
static inline bool bell_is_watched(WAKE_WORD *announced)
{
	WAKE_FENCE();
	return WAKE_LOAD(announced) == ANNOUNCED_WATCHED;
}

/* If it does not, find out whether the bell must be written (R5, R6): not if it has been
 * since hald last looked.  *rung is the program's own. */
static inline bool bell_must_ring(WAKE_WORD *again, unsigned int *rung)
{
	unsigned int now = WAKE_LOAD(again);

	if (*rung == now)
		return false;
	*rung = now;
	return true;
}

/* Have the next record write the bell again (B2, E3).  The caller then looks at the tail.
 */
static inline void bell_answered(WAKE_WORD *again)
{
	WAKE_ADD(again);
	WAKE_FENCE();
}

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cancel.h - hal_wait is a cancellation point, and nothing else is: what reads files, or
 * calls a driver, holds cancellation back meanwhile.
 */
#ifndef HAL_UTIL_CANCEL_H
#define HAL_UTIL_CANCEL_H

#include <pthread.h>

/* What was: for cancel_release. */
static inline int cancel_hold(void)
{
	int state;

	(void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	return state;
}

static inline void cancel_release(int state)
{
	(void)pthread_setcancelstate(state, NULL);
}

#endif

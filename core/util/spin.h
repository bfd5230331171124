/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spin.h - adaptive spin: how long a thread polls for an event before it sleeps.
 *
 * If the event comes while the thread polls, this saves the cost of a sleep, and the
 * waker a system call.  Otherwise polling is wasted.  So the thread learns from each
 * event after how long it came.  The waker reports the time, so events during a sleep
 * count, too (as in KVM's halt polling).
 *
 *   If the event came within the bound, the next spin lasts at least twice as long as the
 *   event took, at most the bound.
 *   If it came later, the next spin lasts half as long as this one.
 *
 * If the bound is the cost of a sleep, at most twice the optimal time is spent (Karlin et
 * al. 1990).
 */
#ifndef HAL_UTIL_SPIN_H
#define HAL_UTIL_SPIN_H

#include <stdint.h>

/*
 * The time from the waking call until the thread runs depends on the machine: 3 us if its
 * processors stay awake, 40 us in some virtual machines.  Threads that are woken measure
 * it.  Both functions may be called from any thread.
 */
#define WAKE_UP_FIRST_NS UINT64_C(10000) /* mean before the first measurement */

/* Return the mean time of a wake-up, in ns. */
uint64_t wake_up_takes(void);
/* Add a measurement to the mean. */
void wake_up_took(uint64_t ns);

struct spin {
	uint64_t ns; /* length of the next spin */
};

#define SPIN_UNKNOWN UINT64_MAX

/* Learn that the event came came_ns after the thread began to wait.  SPIN_UNKNOWN: the
 * time is unknown, and counts as later than bound_ns. */
static inline void spin_learn(struct spin *p, uint64_t came_ns, uint64_t bound_ns)
{
	uint64_t twice = came_ns < bound_ns / 2 ? came_ns * 2 : bound_ns;

	if (came_ns > bound_ns)
		p->ns /= 2;
	else if (p->ns < twice || p->ns > bound_ns)
		p->ns = twice;
}

#endif

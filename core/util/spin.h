/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spin.h - how long to look for something before one sleeps until it comes.
 *
 * Looking saves the sleep and whoever brings it the call that wakes, but only if it comes
 * in time.  So it is learned from when it came, and whoever wakes says when that was: a
 * sleep teaches as much as a look (as in KVM's polling before a halt).  What came within
 * the bound would have been met by a look: the next one is twice as long as that took, or
 * as long as before, which costs nothing as long as things come.  What did not was not
 * worth one: the next is half as long.  With a bound of what a sleep costs, never more
 * than twice the least is spent (Karlin et al. 1990).
 */
#ifndef HAL_UTIL_SPIN_H
#define HAL_UTIL_SPIN_H

#include <stdint.h>

/*
 * What a wake-up takes, from the call that wakes until the thread runs, is the machine's:
 * 3 us where processors stay awake, 40 us where they are somebody's virtual ones.
 * Measured by whoever was woken; from any thread.
 */
#define WAKE_UP_FIRST_NS UINT64_C(10000) /* before anybody was */

uint64_t wake_up_takes(void);
void wake_up_took(uint64_t ns);

struct spin {
	uint64_t ns; /* of the next look */
};

#define SPIN_UNKNOWN UINT64_MAX

/* It came so long after one began to look; SPIN_UNKNOWN: not by somebody's hand. */
static inline void spin_learn(struct spin *p, uint64_t came_ns, uint64_t bound_ns)
{
	uint64_t twice = came_ns < bound_ns / 2 ? came_ns * 2 : bound_ns;

	if (came_ns > bound_ns)
		p->ns /= 2;
	else if (p->ns < twice || p->ns > bound_ns)
		p->ns = twice;
}

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* spin.c - running mean of the time that a wake-up takes; see spin.h. */
#include "util/spin.h"

#include <stdatomic.h>

#define MOST_NS UINT64_C(50000) /* longer wake-ups count as this long */

static _Atomic uint64_t mean_ns = WAKE_UP_FIRST_NS;

uint64_t wake_up_takes(void)
{
	return atomic_load_explicit(&mean_ns, memory_order_relaxed);
}

void wake_up_took(uint64_t ns)
{
	uint64_t mean = wake_up_takes();

	ns = ns < MOST_NS ? ns : MOST_NS;
	/* If two threads do this concurrently, one measurement is lost.  This is
	 * harmless.
	 */
	atomic_store_explicit(&mean_ns, mean - mean / 8 + ns / 8, memory_order_relaxed);
}

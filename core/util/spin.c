/* SPDX-License-Identifier: Apache-2.0 */
/* spin.c - what a wake-up takes: a running mean; see spin.h. */
#include "util/spin.h"

#include <stdatomic.h>

#define MOST_NS UINT64_C(50000) /* of one that is learned from */

static _Atomic uint64_t mean_ns = WAKE_UP_FIRST_NS;

uint64_t wake_up_takes(void)
{
	return atomic_load_explicit(&mean_ns, memory_order_relaxed);
}

void wake_up_took(uint64_t ns)
{
	uint64_t mean = wake_up_takes();

	ns = ns < MOST_NS ? ns : MOST_NS;
	/* Two threads at once: one of them is not counted. */
	atomic_store_explicit(&mean_ns, mean - mean / 8 + ns / 8, memory_order_relaxed);
}

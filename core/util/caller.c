/* SPDX-License-Identifier: Apache-2.0 */
/* caller.c - for which of the application's threads a thread works. */
#include "util/caller.h"

#include <stdatomic.h>

/* The identifiers of the system's threads are used again after their threads have ended;
 * these numbers are not. */
static atomic_ullong last_number;
static _Thread_local uint64_t own, acts_for;

uint64_t caller_number(void)
{
	if (acts_for != 0)
		return acts_for;
	if (own == 0)
		own = atomic_fetch_add(&last_number, 1) + 1;
	return own;
}

uint64_t caller_act_for(uint64_t number)
{
	const uint64_t before = acts_for;

	acts_for = number;
	return before;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* futex.h - futexes of this process (futex(2)), and the monotonic clock.  Waiting is not
 * a cancellation point. */
#ifndef HAL_UTIL_FUTEX_H
#define HAL_UTIL_FUTEX_H

#include <linux/futex.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Sleep while *word is value, until futex_wake or deadline (of CLOCK_MONOTONIC; NULL:
 * none).  May also return early for no reason. */
static inline void futex_wait(atomic_uint *word, unsigned int value,
			      const struct timespec *deadline)
{
	(void)syscall(SYS_futex, word, FUTEX_WAIT_BITSET_PRIVATE, value, deadline, NULL,
		      FUTEX_BITSET_MATCH_ANY);
}

/* Wake at most count threads that sleep on word. */
static inline void futex_wake(atomic_uint *word, int count)
{
	(void)syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, count, NULL, NULL, 0);
}

static inline uint64_t monotonic_ns(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
}

static inline struct timespec timespec_of(uint64_t ns)
{
	return (struct timespec){.tv_sec = (time_t)(ns / UINT64_C(1000000000)),
				 .tv_nsec = (long)(ns % UINT64_C(1000000000))};
}

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fd.h - eventfds without cancellation points: none of the library's calls but hal_wait
 * is one, though libc's read, write and close are.
 */
#ifndef HAL_UTIL_FD_H
#define HAL_UTIL_FD_H

#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

/* It becomes readable. */
static inline void fd_signal(int fd)
{
	uint64_t one = 1;

	while (syscall(SYS_write, fd, &one, sizeof(one)) < 0 && errno == EINTR)
		;
}

/* It is not readable any more. */
static inline void fd_silence(int fd)
{
	uint64_t count;

	(void)!syscall(SYS_read, fd, &count, sizeof(count));
}

static inline void fd_close(int fd)
{
	(void)syscall(SYS_close, fd);
}

/* Around what has cancellation points of its own. */
static inline int cancel_hold(void)
{
	int old;

	(void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old);
	return old;
}

static inline void cancel_release(int old)
{
	(void)pthread_setcancelstate(old, NULL);
}

#endif

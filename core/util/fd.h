/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fd.h - operations on eventfds without cancellation points.
 *
 * Of the library's calls, only hal_wait is a cancellation point of pthread_cancel. libc's
 * read, write and close are, so these functions use system calls instead.
 */
#ifndef HAL_UTIL_FD_H
#define HAL_UTIL_FD_H

#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Make eventfd fd readable. */
static inline void fd_signal(int fd)
{
	uint64_t one = 1;

	while (syscall(SYS_write, fd, &one, sizeof(one)) < 0 && errno == EINTR)
		;
}

/* Make the nonblocking eventfd fd unreadable. */
static inline void fd_silence(int fd)
{
	uint64_t count;

	(void)!syscall(SYS_read, fd, &count, sizeof(count));
}

static inline void fd_close(int fd)
{
	(void)syscall(SYS_close, fd);
}

/* Disable cancellation before code with cancellation points.  Return the state for
 * cancel_release. */
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

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fd.h - descriptors that tell of an event, without cancellation points.
 *
 * Of the library's calls, only hal_wait is a cancellation point of pthread_cancel. libc's
 * read, write and close are, so these functions use system calls instead.
 */
#ifndef HAL_UTIL_FD_H
#define HAL_UTIL_FD_H

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Make a descriptor to poll, fd[0], and one to signal, fd[1]; both are to be closed. They
 * are of one eventfd, or, if another process polls it, of a pipe: it hangs up when this
 * process ends.  Return 0, or -1 with errno. */
static inline int fd_pair(int fd[2], bool other_process)
{
	if (other_process)
		return (int)syscall(SYS_pipe2, fd, O_CLOEXEC | O_NONBLOCK);
	fd[0] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	fd[1] = fd[0] < 0 ? -1 : fcntl(fd[0], F_DUPFD_CLOEXEC, 0);
	if (fd[1] >= 0)
		return 0;
	if (fd[0] >= 0)
		(void)syscall(SYS_close, fd[0]);
	return -1;
}

/* Make the descriptor readable.  It may be of a pipe: nobody needs to read it, and a
 * program that ignores SIGPIPE may close its other end. */
static inline void fd_signal(int fd)
{
	uint64_t one = 1;

	while (syscall(SYS_write, fd, &one, sizeof(one)) < 0 && errno == EINTR)
		;
}

/* Make the nonblocking descriptor unreadable. */
static inline void fd_silence(int fd)
{
	uint64_t counts[8]; /* signals to a pipe do not become one */

	(void)!syscall(SYS_read, fd, counts, sizeof(counts));
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

/* SPDX-License-Identifier: Apache-2.0 */
/* Timelines of other processes. */
#define _GNU_SOURCE
#include "negative.h"

#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define BOTH (HAL_TIMELINE_WAIT | HAL_TIMELINE_SIGNAL)

static int out;

NEGATIVE(hal_timeline_export, EINVAL, timeline_null, "timeline")
{
	(void)w;
	return hal_timeline_export(NULL, HAL_TIMELINE_WAIT, &out);
}

NEGATIVE(hal_timeline_export, EINVAL, fd_null, "fd is NULL")
{
	return hal_timeline_export(w->line, HAL_TIMELINE_WAIT, NULL);
}

NEGATIVE(hal_timeline_export, EINVAL, no_right, "rights 0x0")
{
	return hal_timeline_export(w->line, 0, &out);
}

NEGATIVE(hal_timeline_export, EINVAL, unknown_right, "rights 0x5")
{
	return hal_timeline_export(w->line, 5, &out);
}

NEGATIVE(hal_timeline_export, EINVAL, signal_a_queues_own, "queue")
{
	return hal_timeline_export(hal_queue_get_timeline(w->queue), BOTH, &out);
}

/* Import the timeline of w with rights as line2. */
static int import(struct neg *w, uint32_t rights)
{
	int fd, err;

	NEG_OK(hal_timeline_export(w->line, rights, &fd));
	err = hal_timeline_import(w->dev, fd, &w->line2);
	NEG_OK(close(fd));
	return err;
}

NEGATIVE(hal_timeline_export, EINVAL, signal_an_import, "imported without")
{
	NEG_OK(import(w, HAL_TIMELINE_WAIT));
	return hal_timeline_export(w->line2, BOTH, &out);
}

NEGATIVE(hal_timeline_signal, EINVAL, imported, "imported without")
{
	NEG_OK(import(w, HAL_TIMELINE_WAIT));
	return hal_timeline_signal(w->line2, 1);
}

NEGATIVE(hal_submit, EINVAL, signal_an_import, "signals[0]")
{
	NEG_OK(import(w, HAL_TIMELINE_WAIT));
	w->points[0] = (struct hal_point){w->line2, 1};
	w->submit.signals = w->points;
	w->submit.signal_count = 1;
	return hal_submit(w->queue, &w->submit, NULL);
}

static int no_files(struct rlimit *old)
{
	struct rlimit none;

	NEG_OK(getrlimit(RLIMIT_NOFILE, old));
	none = *old;
	none.rlim_cur = 0;
	return setrlimit(RLIMIT_NOFILE, &none);
}

/* The first one makes a thread, with descriptors of its own. */
NEGATIVE(hal_timeline_export, EMFILE, first, "thread")
{
	struct rlimit old;
	int err;

	NEG_OK(no_files(&old));
	err = hal_timeline_export(w->line, BOTH, &out);
	NEG_OK(setrlimit(RLIMIT_NOFILE, &old));
	return err;
}

NEGATIVE(hal_timeline_export, EMFILE, later, "memory and sockets")
{
	struct rlimit old;
	int err;

	NEG_OK(import(w, HAL_TIMELINE_WAIT));
	NEG_OK(no_files(&old));
	err = hal_timeline_export(w->line, BOTH, &out);
	NEG_OK(setrlimit(RLIMIT_NOFILE, &old));
	return err;
}

static int with_journal(struct neg *w)
{
	static const char *const journal[] = {"hal.journal=/dev/null", NULL};

	NEG_OK(hal_open(w->target, journal, &w->dev2));
	return hal_timeline_create(w->dev2, &w->line2);
}

NEGATIVE(hal_timeline_export, ENOTSUP, journal, "hal.journal")
{
	NEG_OK(with_journal(w));
	return hal_timeline_export(w->line2, BOTH, &out);
}

NEGATIVE(hal_timeline_import, ENOTSUP, journal, "hal.journal")
{
	struct hal_timeline *t;
	int fd, err;

	NEG_OK(with_journal(w));
	NEG_OK(hal_timeline_export(w->line, BOTH, &fd));
	err = hal_timeline_import(w->dev2, fd, &t);
	NEG_OK(close(fd));
	return err;
}

NEGATIVE(hal_timeline_import, EINVAL, dev_null, "device")
{
	return hal_timeline_import(NULL, 0, &w->line2);
}

NEGATIVE(hal_timeline_import, EINVAL, timeline_null, "timeline is NULL")
{
	return hal_timeline_import(w->dev, 0, NULL);
}

NEGATIVE(hal_timeline_import, EINVAL, a_pipe, "not of hal_timeline_export")
{
	int fds[2], err;

	NEG_OK(pipe(fds));
	err = hal_timeline_import(w->dev, fds[0], &w->line2);
	NEG_OK(close(fds[0]));
	NEG_OK(close(fds[1]));
	return err;
}

NEGATIVE(hal_timeline_import, EINVAL, an_empty_socket, "not of hal_timeline_export")
{
	int fds[2], err;

	NEG_OK(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fds));
	err = hal_timeline_import(w->dev, fds[0], &w->line2);
	NEG_OK(close(fds[0]));
	NEG_OK(close(fds[1]));
	return err;
}

NEGATIVE(hal_timeline_import, EBADF, no_descriptor, "descriptor -1")
{
	return hal_timeline_import(w->dev, -1, &w->line2);
}

NEGATIVE(hal_timeline_import, EBUSY, twice, "has been imported")
{
	struct hal_timeline *t;
	int fd, err;

	NEG_OK(hal_timeline_export(w->line, BOTH, &fd));
	NEG_OK(hal_timeline_import(w->dev, fd, &w->line2));
	err = hal_timeline_import(w->dev, fd, &t);
	NEG_OK(close(fd));
	return err;
}

/* An export of a library whose messages differ. */
NEGATIVE(hal_timeline_import, EPROTO, other_version, "another version")
{
	const uint64_t hello[2] = {UINT64_C(0x454e494c454d4954), 77};
	int fds[2], err;

	NEG_OK(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fds));
	NEG_OK(send(fds[1], hello, sizeof(hello), 0) != sizeof(hello));
	err = hal_timeline_import(w->dev, fds[0], &w->line2);
	NEG_OK(close(fds[0]));
	NEG_OK(close(fds[1]));
	return err;
}

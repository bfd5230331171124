/* SPDX-License-Identifier: Apache-2.0 */
/* point_fd.c - hal_point_open_fd: a descriptor that becomes readable when a point
 * is reached or its timeline fails. */
#include <errno.h>
#include <stdlib.h>

#include "api/handle.h"
#include "command/callback.h"
#include "far/far.h"
#include "loop/engine.h"
#include "util/fd.h"

struct fd_waiter {
	struct waiter waiter;
	struct message message;
	uint64_t value;
	int fd; /* to signal; the caller may close its own at any time */
};

/* Make the caller's fd readable.  Engine only. */
static void fd_notified(struct waiter *w, int err)
{
	struct fd_waiter *f = container_of(w, struct fd_waiter, waiter);
	struct hal_timeline *t = w->timeline;

	(void)err;
	fd_signal(f->fd);
	fd_close(f->fd);
	free(f);
	atomic_fetch_sub_explicit(&t->fds, 1, memory_order_release);
}

static void fd_add(struct hal_device *dev, struct message *msg)
{
	struct fd_waiter *f = container_of(msg, struct fd_waiter, message);
	struct hal_timeline *t = f->waiter.timeline;

	(void)dev;
	f->waiter.fn = fd_notified;
	if (timeline_test(t, f->value) == 0)
		timeline_add_waiter(t, &f->waiter, f->value);
	else
		fd_notified(&f->waiter, 0);
}

int hal_point_open_fd(const struct hal_point *point)
{
	struct fd_waiter *f;
	struct hal_timeline *t;
	int fd[2];

	if (point == NULL)
		return fail(EINVAL, "hal_point_open_fd: point is NULL");
	t = point->timeline;
	if (!OBJECT_OK(t, OBJECT_TIMELINE))
		return FAR_OR_BAD(t, OBJECT_TIMELINE, far_point_open_fd(point));
	if (timeline_test(t, point->value) == 0) {
		int err = sleep_refuse(t->dev, "hal_point_open_fd");

		if (err != 0)
			return err;
	}
	f = calloc(1, sizeof(*f));
	if (f == NULL)
		return fail(ENOMEM, "hal_point_open_fd: no memory");
	if (fd_pair(fd, t->dev->for_processes) != 0) {
		int err = fail(errno,
			       "hal_point_open_fd: cannot make a file descriptor: %s",
			       hal_strerror(errno));

		free(f);
		return err;
	}
	if (timeline_test(t, point->value) != 0) {
		fd_signal(fd[1]);
		fd_close(fd[1]);
		free(f);
		return fd[0];
	}
	f->fd = fd[1];
	f->waiter.timeline = t;
	f->value = point->value;
	f->message.fn = fd_add;
	atomic_fetch_add_explicit(&t->fds, 1, memory_order_relaxed);
	engine_post(t->dev, &f->message);
	return fd[0];
}

/* SPDX-License-Identifier: Apache-2.0 */
/* time.c - requests about completions, timelines and waits. */
#define _GNU_SOURCE
#include "requests.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "command/completions.h"
#include "util/compiler.h"
#include "util/error.h"

/* ---- completions ------------------------------------------------------------------- */

int do_completions(struct request *r)
{
	struct hal_completions *ring;
	int err;

	if (r->m.a[0] > UINT32_MAX)
		return broken(r, "the number of entries is wrong");
	err = hal_completions_create(device_of(r), (uint32_t)r->m.a[0], &ring);
	return err != 0 ? err : made(r, KIND_COMPLETIONS, ring);
}

int do_completions_fd(struct request *r)
{
	struct entry *ring = hold(r, 0, KIND_COMPLETIONS);
	int fd = ring == NULL ? -EINVAL : tick_refuse(r, "hal_completions_get_fd");

	if (fd == 0)
		fd = hal_completions_get_fd(ring->object);
	release(r, ring);
	if (fd < 0)
		return fd;
	r->out_fd = dup(fd);
	return r->out_fd >= 0 ? 0 : fail(errno, "dup: %s", hal_strerror(errno));
}

/* ---- time -------------------------------------------------------------------------- */

/* Longest time that a request sleeps in hal.h before it looks whether its client is
 * there. */
#define SLICE_NS INT64_C(20000000)

static bool client_there(const struct request *r)
{
	struct pollfd p = {.fd = r->socket, .events = POLLRDHUP};

	return poll(&p, 1, 0) <= 0 || (p.revents & (POLLRDHUP | POLLHUP | POLLERR)) == 0;
}

/* Return the end of the next slice of a wait until until_ns, in the time of dev, or of
 * the host if it is NULL. */
static int64_t slice_end(struct hal_device *dev, int64_t until_ns)
{
	struct timespec t;
	int64_t end;

	if (dev != NULL) {
		end = (int64_t)hal_device_get_time(dev) + SLICE_NS;
	} else {
		(void)clock_gettime(CLOCK_MONOTONIC, &t);
		end = (int64_t)t.tv_sec * 1000000000 + t.tv_nsec + SLICE_NS;
	}
	return until_ns < end ? until_ns : end;
}

/* Return whether the ring has something to read, or never will. */
static bool ring_over(void *arg)
{
	struct hal_completions *ring = arg;

	return atomic_load(&ring->head) != atomic_load(&ring->tail) ||
	       completions_over(ring);
}

/* Read entries of ring: the lock of its entry is held. */
static int read_entries(struct request *r, struct hal_completions *ring,
			struct hal_completion *out, uint32_t max, int64_t until)
{
	int n;

	if (until != 0 && !lockstep_wait(r->client, ring_over, ring, UINT64_MAX))
		return fail(ECANCELED, "the client has ended");
	do
		n = hal_completions_read(ring, out, max,
					 until <= 0 ? until : slice_end(NULL, until));
	while (n == -ETIMEDOUT && slice_end(NULL, until) != until && client_there(r));
	return n;
}

int do_completions_read(struct request *r)
{
	int64_t until = (int64_t)r->m.a[2];
	uint32_t max = r->m.a[1] < 1024 ? (uint32_t)r->m.a[1] : 1024;
	struct hal_completion *out = answer_room(r, max * sizeof(*out));
	struct entry *ring = hold(r, 0, KIND_COMPLETIONS);
	int n = -EINVAL;

	if (ring == NULL || out == NULL) {
		release(r, ring);
		return ring == NULL ? -EINVAL : -ENOMEM;
	}
	pthread_mutex_lock(&ring->lock);
	n = read_entries(r, ring->object, out, max, until);
	pthread_mutex_unlock(&ring->lock);
	for (int i = 0; i < n; i++) {
		out[i].submit_ns = tick_round(r->client->server, out[i].submit_ns);
		out[i].end_ns = tick_round(r->client->server, out[i].end_ns);
	}
	r->out_bytes = n > 0 ? (uint64_t)n * sizeof(*out) : 0;
	release(r, ring);
	return n;
}

int do_timeline(struct request *r)
{
	struct hal_timeline *t;
	int err = hal_timeline_create(device_of(r), &t);

	return err != 0 ? err : made(r, KIND_TIMELINE, t);
}

/* An imported timeline follows later by the time of a message, which is not the same each
 * time. */
static int share_check(const struct request *r, const char *what)
{
	int err = tick_refuse(r, what);

	if (err != 0)
		return err;
	return r->client->server->lockstep == NULL
		       ? 0
		       : fail(ENOTSUP,
			      "%s: hald serves in lockstep, in which nothing may come "
			      "later "
			      "by chance",
			      what);
}

int do_timeline_import(struct request *r)
{
	struct hal_timeline *t;
	int err = share_check(r, "hal_timeline_import");

	if (err == 0)
		err = hal_timeline_import(device_of(r), r->fd, &t);
	return err != 0 ? err : made(r, KIND_TIMELINE, t);
}

int do_timeline_value(struct request *r)
{
	struct entry *t = hold(r, 0, KIND_TIMELINE);
	int stuck = 0;

	if (t == NULL)
		return -EINVAL;
	r->m.a[0] = hal_timeline_get_value(t->object, &stuck);
	r->m.a[1] = (uint64_t)(int64_t)stuck;
	release(r, t);
	return 0;
}

int do_timeline_signal(struct request *r)
{
	struct entry *t = hold(r, 0, KIND_TIMELINE);
	int err = t == NULL ? -EINVAL : hal_timeline_signal(t->object, r->m.a[1]);

	release(r, t);
	return err;
}

int do_timeline_export(struct request *r)
{
	struct entry *t = hold(r, 0, KIND_TIMELINE);
	int err = t == NULL ? -EINVAL : share_check(r, "hal_timeline_export");

	if (err == 0)
		err = hal_timeline_export(t->object, (uint32_t)r->m.a[1], &r->out_fd);

	release(r, t);
	return err;
}

/* The points that a request waits for. */
struct waiting {
	const struct held_points *held;
	bool any;
};

/* Return whether enough of the points are reached. */
static bool points_over(void *arg)
{
	const struct waiting *w = arg;

	for (uint32_t i = 0; i < w->held->count; i++) {
		int failed = 0;
		const struct hal_point *p = &w->held->points[i];
		bool reached = hal_timeline_get_value(p->timeline, &failed) >= p->value;

		/* One that has failed ends a wait for all. */
		if (failed != 0 || reached == w->any)
			return reached || failed != 0;
	}
	return !w->any;
}

int do_wait(struct request *r)
{
	uint32_t flags = (uint32_t)r->m.a[0];
	int64_t until = (int64_t)r->m.a[1];
	uint64_t count = r->m.bytes / sizeof(struct hal_point);
	/* Virtual time passes only in the wait; it ends when nothing is left to do. */
	bool sliced =
		until > 0 && (r->client->server->info.caps & HAL_CAP_VIRTUAL_CLOCK) == 0;
	struct hal_device *dev =
		(flags & HAL_WAIT_DEVICE_TIME) != 0 && until != HAL_FOREVER ? device_of(r)
									    : NULL;
	struct held_points held;
	struct waiting w;
	int err;

	if (count == 0 || count * sizeof(struct hal_point) != r->m.bytes)
		return broken(r, "the number of points is wrong");
	err = points_hold(r, r->data, (uint32_t)count, &held);
	if (err != 0)
		return err;
	/* Virtual time passes for all. */
	if ((r->client->server->info.caps & HAL_CAP_VIRTUAL_CLOCK) != 0)
		rings_take_all(r->client->server);
	w = (struct waiting){&held, (flags & HAL_WAIT_ANY) != 0};
	if (until > 0 && !lockstep_wait(r->client, points_over, &w,
					dev != NULL ? (uint64_t)until : UINT64_MAX)) {
		points_release(r, &held);
		return fail(ECANCELED, "the client has ended");
	}
	do
		err = hal_wait(held.points, (uint32_t)count, flags,
			       sliced ? slice_end(dev, until) : until);
	while (err == -ETIMEDOUT && sliced && slice_end(dev, until) != until &&
	       client_there(r));
	points_release(r, &held);
	return err;
}

int do_point_fd(struct request *r)
{
	struct entry *t = hold(r, 0, KIND_TIMELINE);
	struct hal_point p = {NULL, r->m.a[1]};
	int fd = t == NULL ? -EINVAL : tick_refuse(r, "hal_point_open_fd");

	if (fd == 0) {
		p.timeline = t->object;
		fd = hal_point_open_fd(&p);
	}
	release(r, t);
	if (fd < 0)
		return fd;
	r->out_fd = fd;
	return 0;
}

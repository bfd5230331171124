/* SPDX-License-Identifier: Apache-2.0 */
/* Timelines, waits and signals between queues, point fds. */
#define _GNU_SOURCE
#include "conformance.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

static int host_signal(struct conf *c)
{
	struct hal_timeline *t;
	int err = 1;

	STEP(conf_timeline(c, &t));
	EQ(hal_timeline_get_value(t, &err), 0);
	EQ(err, 0);
	OK(hal_timeline_signal(t, 5));
	EQ(hal_timeline_get_value(t, NULL), 5);
	OK(hal_wait(&(struct hal_point){t, 5}, 1, 0, 0));
	OK(hal_wait(&(struct hal_point){t, 0}, 1, 0, 0));
	STEP(conf_timeline_gone(c, t));
	OK(hal_timeline_destroy(NULL));
	return 0;
}

static int only_up(struct conf *c)
{
	struct hal_timeline *t;

	STEP(conf_timeline(c, &t));
	OK(hal_timeline_signal(t, 5));
	ERR(hal_timeline_signal(t, 4), -EINVAL);
	ERR(hal_timeline_signal(t, 5), -EINVAL);
	OK(hal_timeline_signal(t, UINT64_MAX));
	EQ(hal_timeline_get_value(t, NULL), UINT64_MAX);
	return 0;
}

static int poll_times_out(struct conf *c)
{
	struct hal_timeline *t;
	struct hal_point p;

	STEP(conf_timeline(c, &t));
	p = (struct hal_point){t, 1};
	ERR(hal_wait(&p, 1, 0, 0), -ETIMEDOUT);
	OK(hal_timeline_signal(t, 1));
	OK(hal_wait(&p, 1, 0, 0));
	return 0;
}

static int nothing_can_reach(struct conf *c)
{
	struct hal_timeline *t;
	struct hal_point p;

	STEP(conf_timeline(c, &t));
	p = (struct hal_point){t, 1};
	if (conf_virtual(c))
		ERR(hal_wait(&p, 1, 0, HAL_FOREVER), -EDEADLK);
	else
		ERR(hal_wait(&p, 1, 0, conf_deadline(2000000)), -ETIMEDOUT);
	return 0;
}

static int queue_timeline(struct conf *c)
{
	struct hal_partition *p;
	struct hal_queue *q;
	struct hal_point done;
	uint32_t i;

	STEP(conf_whole(c, &p));
	STEP(conf_queue(c, p, &q));
	for (i = 1; i <= 5; i++) {
		STEP(conf_submit(c, q, NULL, 0, &done));
		CHECK(done.timeline == hal_queue_get_timeline(q));
		EQ(done.value, i);
	}
	STEP(conf_wait(c, done));
	EQ(hal_timeline_get_value(hal_queue_get_timeline(q), NULL), 5);
	return 0;
}

/* Two queues in one or two partitions. */
struct pair {
	struct hal_partition *p[2];
	struct hal_queue *q[2];
	struct hal_buffer *b[2];
};

static int pair_of(struct conf *c, bool apart, struct pair *w)
{
	uint32_t i;

	for (i = 0; i < 2; i++) {
		if (apart || !i)
			STEP(conf_share(c, i, apart ? 2 : 1, &w->p[i]));
		else
			w->p[1] = w->p[0];
		STEP(conf_queue(c, w->p[i], &w->q[i]));
		STEP(conf_buffer(c, w->p[i], 256, &w->b[i]));
	}
	return 0;
}

static int wait_before_signal(struct conf *c)
{
	struct hal_timeline *t;
	struct hal_point p, done[2];
	struct hal_cmd cmd;
	struct pair w;

	STEP(pair_of(c, false, &w));
	STEP(conf_timeline(c, &t));
	p = (struct hal_point){t, 1};
	cmd = hal_cmd_copy(w.b[1], 0, w.b[0], 0, 256);
	STEP(conf_submit_ws(c, w.q[0], &cmd, 1, &p, NULL, &done[0]));
	CHECK(hal_device_poll(c->dev, 1000) >= 0);
	EQ(hal_timeline_get_value(done[0].timeline, NULL), 0);
	cmd = hal_cmd_fill(w.b[0], 0, 256, 0x77);
	STEP(conf_submit_ws(c, w.q[1], &cmd, 1, NULL, &p, &done[1]));
	STEP(conf_wait(c, done[0]));
	EQ(hal_timeline_get_value(t, NULL), 1);
	return conf_filled(c, w.b[1], 0, 256, 0x77);
}

static int across_partitions(struct conf *c)
{
	struct hal_timeline *t;
	struct hal_point done;
	struct hal_cmd cmd;
	struct pair w;
	uint32_t i;

	STEP(pair_of(c, true, &w));
	STEP(conf_timeline(c, &t));
	/* To and fro: step i waits for i and signals i + 1; the last ones first. */
	for (i = 0; i < 8; i++) {
		struct hal_point wait = {t, i}, signal = {t, i + 1};

		cmd = hal_cmd_fill(w.b[i % 2], 0, 256, i);
		STEP(conf_submit_ws(c, w.q[i % 2], &cmd, 1, i ? &wait : NULL, &signal,
				    &done));
	}
	STEP(conf_wait(c, (struct hal_point){t, 8}));
	STEP(conf_wait(c, done));
	STEP(conf_filled(c, w.b[0], 0, 256, 6));
	return conf_filled(c, w.b[1], 0, 256, 7);
}

static int signal_value(struct conf *c)
{
	struct hal_partition *part;
	struct hal_timeline *t[3];
	struct hal_submit_desc d = HAL_INIT(hal_submit_desc);
	struct hal_point s[3], done;
	struct hal_queue *q;
	uint32_t i;

	STEP(conf_whole(c, &part));
	STEP(conf_queue(c, part, &q));
	for (i = 0; i < 3; i++) {
		STEP(conf_timeline(c, &t[i]));
		s[i] = (struct hal_point){t[i], 1000 * (i + 1)};
	}
	d.signals = s;
	d.signal_count = 3;
	OK(hal_submit(q, &d, &done));
	OK(hal_wait(s, 3, 0, conf_deadline(INT64_C(300) * 1000000000)));
	for (i = 0; i < 3; i++)
		EQ(hal_timeline_get_value(t[i], NULL), 1000 * (i + 1));
	return conf_wait(c, done);
}

static int many_waits(struct conf *c)
{
	struct hal_partition *part;
	struct hal_timeline *t[8];
	struct hal_submit_desc d = HAL_INIT(hal_submit_desc);
	struct hal_point w[8], done;
	struct hal_queue *q;
	uint32_t i;

	STEP(conf_whole(c, &part));
	STEP(conf_queue(c, part, &q));
	for (i = 0; i < 8; i++) {
		STEP(conf_timeline(c, &t[i]));
		w[i] = (struct hal_point){t[i], 1};
	}
	d.waits = w;
	d.wait_count = 8;
	OK(hal_submit(q, &d, &done));
	for (i = 0; i < 8; i++) {
		ERR(hal_wait(&done, 1, 0, 0), -ETIMEDOUT);
		OK(hal_timeline_signal(t[7 - i], 1));
	}
	return conf_wait(c, done);
}

static int wait_any(struct conf *c)
{
	struct hal_timeline *t[3];
	struct hal_point p[3];
	uint32_t i;

	for (i = 0; i < 3; i++) {
		STEP(conf_timeline(c, &t[i]));
		p[i] = (struct hal_point){t[i], 1};
	}
	ERR(hal_wait(p, 3, HAL_WAIT_ANY, 0), -ETIMEDOUT);
	OK(hal_timeline_signal(t[2], 1));
	EQ(hal_wait(p, 3, HAL_WAIT_ANY, 0), 2);
	ERR(hal_wait(p, 3, 0, 0), -ETIMEDOUT);
	OK(hal_timeline_signal(t[1], 1));
	EQ(hal_wait(p, 3, HAL_WAIT_ANY, conf_deadline(INT64_C(300) * 1000000000)), 1);
	OK(hal_timeline_signal(t[0], 1));
	OK(hal_wait(p, 3, 0, 0));
	return 0;
}

static int wait_any_runs(struct conf *c)
{
	struct hal_timeline *never;
	struct hal_point p[2];
	struct hal_cmd cmd;
	struct pair w;

	STEP(pair_of(c, false, &w));
	STEP(conf_timeline(c, &never));
	p[0] = (struct hal_point){never, 1};
	cmd = hal_cmd_fill(w.b[0], 0, 256, 3);
	STEP(conf_submit(c, w.q[0], &cmd, 1, &p[1]));
	EQ(hal_wait(p, 2, HAL_WAIT_ANY, conf_deadline(INT64_C(300) * 1000000000)), 1);
	return 0;
}

/* A deadline that has passed: what was submitted goes on all the same. */
static int deadline(struct conf *c)
{
	struct hal_timeline *gate;
	struct hal_kernel *k;
	struct hal_point open, done;
	struct hal_arg arg;
	struct hal_cmd cmd;
	struct pair w;

	STEP(pair_of(c, false, &w));
	STEP(conf_timeline(c, &gate));
	STEP(conf_kernel(c, "spin", &k));
	arg = (struct hal_arg){.buffer = w.b[0]};
	cmd = hal_cmd_launch(k, &arg, 1);
	open = (struct hal_point){gate, 1};
	STEP(conf_submit_ws(c, w.q[0], &cmd, 1, &open, NULL, &done));
	ERR(hal_wait(&done, 1, 0, conf_deadline(-1000)), -ETIMEDOUT);
	OK(hal_timeline_signal(gate, 1));
	if (conf_virtual(c)) /* also while it runs */
		ERR(hal_wait(&done, 1, 0, conf_deadline(-1000)), -ETIMEDOUT);
	return conf_wait(c, done);
}

/* Who sees a point reached may be a moment ahead of the engine that tells the fds. */
static bool readable(int fd, int timeout_ms)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	return poll(&p, 1, timeout_ms) == 1 && (p.revents & POLLIN);
}

static int point_fd(struct conf *c)
{
	struct hal_partition *part;
	struct hal_queue *q;
	struct hal_timeline *gate;
	struct hal_point done, open;
	int fd, late, flags;
	bool before, after, at_once;

	STEP(conf_whole(c, &part));
	STEP(conf_queue(c, part, &q));
	STEP(conf_timeline(c, &gate));
	open = (struct hal_point){gate, 1};
	STEP(conf_submit_ws(c, q, NULL, 0, &open, NULL, &done));
	CHECK(hal_device_poll(c->dev, 0) >= 0); /* else a virtual clock has none */
	fd = hal_point_open_fd(&done);
	CHECK(fd >= 0);
	flags = fcntl(fd, F_GETFD);
	before = readable(fd, 0);
	OK(hal_timeline_signal(gate, 1));
	STEP(conf_wait(c, done));
	after = readable(fd, 0);
	late = hal_point_open_fd(&done);
	at_once = late >= 0 && readable(late, 0);
	close(fd);
	if (late >= 0)
		close(late);
	CHECK(flags >= 0 && (flags & FD_CLOEXEC));
	CHECK(!before);
	CHECK(after);
	CHECK(at_once);
	return 0;
}

/* The fd is the caller's: the point may be reached after it has been closed. */
static int point_fd_closed(struct conf *c)
{
	struct hal_timeline *t;
	struct hal_point p;
	int fd;

	STEP(conf_timeline(c, &t));
	p = (struct hal_point){t, 1};
	CHECK(hal_device_poll(c->dev, 0) >= 0); /* else a virtual clock has none */
	fd = hal_point_open_fd(&p);
	CHECK(fd >= 0);
	close(fd);
	OK(hal_timeline_signal(t, 1));
	OK(hal_wait(&p, 1, 0, 0));
	return 0;
}

static int point_fd_real(struct conf *c)
{
	struct hal_partition *part;
	struct hal_queue *q;
	struct hal_buffer *b;
	struct hal_point done;
	struct pollfd p = {.events = POLLIN};
	struct hal_cmd cmd;
	int n;

	if (conf_virtual(c))
		return conf_unsupported(c, "virtual time stands still meanwhile");
	STEP(conf_whole(c, &part));
	STEP(conf_queue(c, part, &q));
	STEP(conf_buffer(c, part, 64, &b));
	cmd = hal_cmd_fill(b, 0, 64, 1);
	STEP(conf_submit(c, q, &cmd, 1, &done));
	p.fd = hal_point_open_fd(&done);
	CHECK(p.fd >= 0);
	n = poll(&p, 1, 300000);
	close(p.fd);
	EQ(n, 1);
	OK(hal_wait(&done, 1, 0, 0));
	return 0;
}

static int timeline_busy(struct conf *c)
{
	struct hal_partition *part;
	struct hal_queue *q;
	struct hal_timeline *t, *s;
	struct hal_point w, g, done;

	STEP(conf_whole(c, &part));
	STEP(conf_queue(c, part, &q));
	STEP(conf_timeline(c, &t));
	STEP(conf_timeline(c, &s));
	w = (struct hal_point){t, 1};
	g = (struct hal_point){s, 1};
	STEP(conf_submit_ws(c, q, NULL, 0, &w, &g, &done));
	ERR(hal_timeline_destroy(t), -EBUSY);
	ERR(hal_timeline_destroy(s), -EBUSY);
	OK(hal_timeline_signal(t, 1));
	STEP(conf_wait(c, done));
	STEP(conf_timeline_gone(c, t));
	STEP(conf_timeline_gone(c, s));
	ERR(hal_timeline_destroy(hal_queue_get_timeline(q)), -EINVAL);
	return 0;
}

static int close_busy(struct conf *c)
{
	struct hal_timeline *t;

	STEP(conf_timeline(c, &t));
	ERR(hal_close(c->dev), -EBUSY);
	return 0;
}

const struct conf_case conf_time_cases[] = {
	{"time.host_signal", host_signal},
	{"time.only_up", only_up},
	{"time.poll_times_out", poll_times_out},
	{"time.nothing_can_reach", nothing_can_reach},
	{"time.queue_timeline", queue_timeline},
	{"time.wait_before_signal", wait_before_signal},
	{"time.across_partitions", across_partitions},
	{"time.signal_value", signal_value},
	{"time.many_waits", many_waits},
	{"time.wait_any", wait_any},
	{"time.wait_any_runs", wait_any_runs},
	{"time.deadline", deadline},
	{"time.point_fd", point_fd},
	{"time.point_fd_closed", point_fd_closed},
	{"time.point_fd_real", point_fd_real},
	{"time.timeline_busy", timeline_busy},
	{"time.close_busy", close_busy},
	{NULL, NULL},
};

/* SPDX-License-Identifier: Apache-2.0 */
/* Rings of completions: the ends of many queues in one place, and its fd. */
#define _GNU_SOURCE
#include "conformance.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>

#define LONG_NS (INT64_C(300) * 1000000000)

struct told {
	struct hal_completions *ring;
	struct hal_partition *p;
	struct hal_timeline *gate;
	uint64_t tag;
};

static int told_of(struct conf *c, uint32_t entries, struct told *w)
{
	w->tag = 0;
	STEP(conf_ring(c, entries, &w->ring));
	STEP(conf_whole(c, &w->p));
	return conf_timeline(c, &w->gate);
}

static int told_queue(struct conf *c, struct told *w, struct hal_queue **q)
{
	struct hal_queue_desc d = HAL_INIT(hal_queue_desc);

	d.completions = w->ring;
	return conf_queue_desc(c, w->p, &d, q);
}

/* n commands under a tag; gate: held until the timeline is there, 0: it is not. */
static int submit(struct told *w, struct hal_queue *q, const struct hal_cmd *cmds,
		  uint32_t n, uint64_t gate, uint64_t tag)
{
	struct hal_submit_desc d = HAL_INIT(hal_submit_desc);
	struct hal_point p = {w->gate, gate};

	d.cmds = cmds;
	d.cmd_count = n;
	d.waits = &p;
	d.wait_count = gate != 0;
	d.tag = tag;
	return hal_submit(q, &d, NULL);
}

/* Exactly n of them. */
static int take(struct conf *c, struct told *w, struct hal_completion *out, uint32_t n)
{
	uint32_t got = 0;

	while (got < n) {
		int r = hal_completions_read(w->ring, out + got, n - got,
					     conf_deadline(LONG_NS));

		if (r <= 0)
			return conf_fail(c, __FILE__, __LINE__,
					 "read is %d after %u of %u: %s", r, got, n,
					 hal_last_error());
		got += (uint32_t)r;
	}
	return 0;
}

static int nothing_left(struct conf *c, struct told *w)
{
	struct hal_completion e;

	EQ(hal_completions_read(w->ring, &e, 1, 0), 0);
	return 0;
}

static int many_queues(struct conf *c)
{
	enum { QUEUES = 8, EACH = 4 };
	struct hal_completion e[QUEUES * EACH];
	uint64_t last[QUEUES] = {0};
	struct hal_queue *q[QUEUES];
	struct hal_buffer *b;
	struct hal_cmd cmd;
	struct told w;
	uint32_t i, k;

	STEP(told_of(c, 64, &w));
	STEP(conf_buffer(c, w.p, 4096, &b));
	for (i = 0; i < QUEUES; i++)
		STEP(told_queue(c, &w, &q[i]));
	for (k = 0; k < EACH; k++) {
		for (i = 0; i < QUEUES; i++) {
			cmd = hal_cmd_fill(b, 64 * i, 64, i);
			OK(submit(&w, q[i], &cmd, k % 2, 0, UINT64_MAX - (i * EACH + k)));
		}
	}
	STEP(take(c, &w, e, QUEUES * EACH));
	STEP(nothing_left(c, &w));
	for (k = 0; k < QUEUES * EACH; k++) {
		for (i = 0; i < QUEUES && q[i] != e[k].queue; i++)
			;
		CHECK(i < QUEUES);
		EQ(e[k].value, ++last[i]);
		EQ(e[k].tag, UINT64_MAX - (i * EACH + e[k].value - 1));
		EQ(e[k].status, 0);
		EQ(e[k].reserved, 0);
		CHECK(e[k].end_ns >= e[k].submit_ns);
		CHECK(e[k].end_ns <= hal_device_get_time(c->dev));
		CHECK(hal_timeline_get_value(hal_queue_get_timeline(q[i]), NULL) >=
		      e[k].value);
	}
	return 0;
}

/* A tag is its submission's own, also of sequences and of what asks for nothing else. */
static int tags(struct conf *c)
{
	struct hal_submit_desc d = HAL_INIT(hal_submit_desc);
	struct hal_completion e[4];
	struct hal_sequence *seq;
	struct hal_queue *q;
	struct hal_buffer *b;
	struct hal_cmd cmds[3];
	struct told w;
	uint32_t i;

	STEP(told_of(c, 8, &w));
	STEP(told_queue(c, &w, &q));
	STEP(conf_buffer(c, w.p, 64, &b));
	for (i = 0; i < 3; i++)
		cmds[i] = hal_cmd_fill(b, 0, 64, i);
	STEP(conf_sequence(c, w.p, cmds, 3, &seq));
	d.tag = 77;
	OK(submit(&w, q, cmds, 3, 0, 5));
	OK(hal_sequence_submit(q, seq, &d, NULL));
	OK(submit(&w, q, cmds, 1, 0, 0));
	OK(hal_sequence_submit(q, seq, NULL, NULL));
	STEP(take(c, &w, e, 4));
	EQ(e[0].tag, 5);
	EQ(e[1].tag, 77);
	EQ(e[2].tag, 0);
	EQ(e[3].tag, 0);
	for (i = 0; i < 4; i++)
		EQ(e[i].value, i + 1);
	return nothing_left(c, &w);
}

static int failed_and_dropped(struct conf *c)
{
	struct hal_completion e[4];
	struct hal_queue *bad, *good;
	struct hal_kernel *wild;
	struct hal_buffer *b;
	struct hal_arg arg;
	struct hal_cmd cmds[2];
	uint32_t i, seen = 0;
	struct told w;

	STEP(told_of(c, 8, &w));
	STEP(told_queue(c, &w, &bad));
	STEP(told_queue(c, &w, &good));
	STEP(conf_kernel(c, "wild", &wild));
	STEP(conf_buffer(c, w.p, 64, &b));
	arg = (struct hal_arg){.buffer = b};
	cmds[0] = hal_cmd_launch(wild, &arg, 1);
	cmds[1] = hal_cmd_fill(b, 0, 64, 1);
	OK(submit(&w, good, cmds + 1, 1, 0, 10));
	STEP(take(c, &w, e, 1));
	EQ(e[0].status, 0);
	OK(submit(&w, bad, cmds + 1, 1, 1, 11));
	OK(submit(&w, bad, cmds, 2, 1, 12));
	OK(submit(&w, bad, cmds + 1, 1, 1, 13));
	OK(submit(&w, bad, NULL, 0, 1, 14));
	OK(hal_timeline_signal(w.gate, 1));
	STEP(take(c, &w, e, 4));
	for (i = 0; i < 4; i++) {
		EQ(e[i].tag, 11 + i);
		CHECK(e[i].queue == bad);
		EQ(e[i].value, 1 + i);
		seen += e[i].status == 0;
	}
	EQ(seen, 1);
	EQ((int64_t)e[0].status, 0);
	EQ((int64_t)e[1].status, -EIO);
	EQ((int64_t)e[2].status, -ECANCELED);
	EQ((int64_t)e[3].status, -ECANCELED);
	/* Refused, so it takes no place. */
	ERR(submit(&w, bad, cmds + 1, 1, 0, 15), -EIO);
	return nothing_left(c, &w);
}

static int full(struct conf *c)
{
	struct hal_completion e[4];
	struct hal_cmd cmd = hal_cmd_barrier();
	struct hal_queue *q[2];
	struct told w;
	uint32_t i, n = 0, again = 0, got = 0;

	STEP(told_of(c, 4, &w));
	for (i = 0; i < 2; i++)
		STEP(told_queue(c, &w, &q[i]));
	for (i = 0; i < 4; i++)
		OK(submit(&w, q[i % 2], NULL, 0, 1, i));
	ERR(submit(&w, q[0], NULL, 0, 1, 4), -EAGAIN);
	ERR(submit(&w, q[1], NULL, 0, 0, 4), -EAGAIN);
	OK(hal_timeline_signal(w.gate, 1));
	STEP(take(c, &w, e, 4));
	/* What is refused for what it is takes no place. */
	cmd.op = 99;
	for (i = 0; i < 8; i++)
		ERR(submit(&w, q[0], &cmd, 1, 0, 4), -EINVAL);
	/* Unread ones have their place, too. */
	while (n < 100) {
		int err = submit(&w, q[n % 2], NULL, 0, 0, n);

		if (!err) {
			n++;
			continue;
		}
		EQ((int64_t)err, -EAGAIN);
		again++;
		STEP(take(c, &w, e, 3));
		got += 3;
	}
	CHECK(again > 20);
	STEP(take(c, &w, e, n - got));
	CHECK(n - got <= 4);
	EQ(hal_timeline_get_value(hal_queue_get_timeline(q[0]), NULL), 52);
	EQ(hal_timeline_get_value(hal_queue_get_timeline(q[1]), NULL), 52);
	return nothing_left(c, &w);
}

static bool readable(int fd, int timeout_ms)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	return poll(&p, 1, timeout_ms) == 1 && (p.revents & POLLIN);
}

/* One round: two ends, read one by one. */
static int fd_round(struct conf *c, struct told *w, struct hal_queue *q, int fd)
{
	struct hal_completion e;
	int wait_ms = conf_virtual(c) ? 0 : 300000;

	OK(submit(w, q, NULL, 0, 0, 1));
	OK(submit(w, q, NULL, 0, 0, 2));
	if (conf_virtual(c))
		CHECK(hal_device_poll(c->dev, 1000000) >= 0);
	CHECK(readable(fd, wait_ms));
	STEP(take(c, w, &e, 1));
	EQ(e.tag, 1);
	CHECK(readable(fd, wait_ms));
	STEP(take(c, w, &e, 1));
	EQ(e.tag, 2);
	CHECK(!readable(fd, 0));
	return 0;
}

static int fd_tells(struct conf *c)
{
	struct hal_queue *q;
	struct told w;
	uint32_t i;
	int fd, flags;

	STEP(told_of(c, 8, &w));
	STEP(told_queue(c, &w, &q));
	CHECK(hal_device_poll(c->dev, 0) >= 0); /* else a virtual clock has none */
	fd = hal_completions_get_fd(w.ring);
	CHECK(fd >= 0);
	flags = fcntl(fd, F_GETFD);
	CHECK(flags >= 0 && (flags & FD_CLOEXEC));
	CHECK(!readable(fd, 0));
	OK(submit(&w, q, NULL, 0, 1, 9));
	CHECK(hal_device_poll(c->dev, 1000) >= 0);
	CHECK(!readable(fd, 0));
	OK(hal_timeline_signal(w.gate, 1));
	STEP(take(c, &w, &(struct hal_completion){0}, 1));
	for (i = 0; i < 200; i++)
		STEP(fd_round(c, &w, q, fd));
	EQ(hal_completions_get_fd(w.ring), fd);
	return 0;
}

/* Reading that does not wait for the fd: whoever has read all finds it silent. */
static int fd_silent(struct conf *c)
{
	struct hal_completion e[8];
	struct hal_queue *q;
	struct told w;
	uint32_t i;
	int fd;

	STEP(told_of(c, 8, &w));
	STEP(told_queue(c, &w, &q));
	CHECK(hal_device_poll(c->dev, 0) >= 0); /* else a virtual clock has none */
	fd = hal_completions_get_fd(w.ring);
	for (i = 0; i < 2000; i++) {
		uint32_t got = 0;

		OK(submit(&w, q, NULL, 0, 0, i));
		while (!got) {
			int n = hal_completions_read(w.ring, e, 8, 0);

			CHECK(n >= 0);
			got = (uint32_t)n;
		}
		EQ(got, 1);
		EQ(e[0].tag, i);
		CHECK(!readable(fd, 0));
	}
	return 0;
}

static int deadlines(struct conf *c)
{
	struct hal_completion e;
	struct hal_queue *q;
	struct told w;
	int64_t at;

	STEP(told_of(c, 4, &w));
	STEP(told_queue(c, &w, &q));
	STEP(nothing_left(c, &w));
	ERR(hal_completions_read(w.ring, &e, 0, 0), -EINVAL);
	ERR(hal_completions_read(w.ring, &e, 1, -1), -EINVAL);
	OK(submit(&w, q, NULL, 0, 1, 3));
	STEP(nothing_left(c, &w));
	if (conf_virtual(c)) {
		ERR(hal_completions_read(w.ring, &e, 1, HAL_FOREVER), -EDEADLK);
	} else {
		at = conf_deadline(2000000);
		ERR(hal_completions_read(w.ring, &e, 1, at), -ETIMEDOUT);
		CHECK(conf_deadline(0) >= at);
	}
	OK(hal_timeline_signal(w.gate, 1));
	EQ(hal_completions_read(w.ring, &e, 1, HAL_FOREVER), 1);
	EQ(e.tag, 3);
	return 0;
}

/* The deadline is of CLOCK_MONOTONIC, whatever the device's clock is. */
static int deadline_passes(struct conf *c)
{
	struct hal_completion e;
	struct hal_kernel *k;
	struct hal_queue *q;
	struct hal_buffer *b;
	struct hal_arg arg;
	struct hal_cmd cmd;
	struct told w;

	STEP(told_of(c, 4, &w));
	STEP(told_queue(c, &w, &q));
	STEP(conf_kernel(c, "spin", &k));
	STEP(conf_buffer(c, w.p, CONF_SPIN_BYTES, &b));
	arg = (struct hal_arg){.buffer = b};
	cmd = hal_cmd_launch(k, &arg, 1);
	OK(submit(&w, q, &cmd, 1, 1, 3));
	ERR(hal_completions_read(w.ring, &e, 1, 1), -ETIMEDOUT);
	OK(hal_timeline_signal(w.gate, 1));
	if (conf_virtual(c)) {
		int n = hal_completions_read(w.ring, &e, 1, 1);

		CHECK(n == -ETIMEDOUT);
	}
	STEP(take(c, &w, &e, 1));
	EQ(e.tag, 3);
	return 0;
}

static int busy(struct conf *c)
{
	struct hal_queue *q;
	struct hal_completions *other;
	struct told w;

	STEP(told_of(c, 1, &w));
	ERR(hal_completions_create(c->dev, 3, &other), -EINVAL);
	ERR(hal_completions_create(c->dev, 0, &other), -EINVAL);
	ERR(hal_completions_create(c->dev, 131072, &other), -EINVAL);
	STEP(told_queue(c, &w, &q));
	ERR(hal_completions_destroy(w.ring), -EBUSY);
	OK(hal_completions_destroy(NULL));
	return 0;
}

const struct conf_case conf_completions_cases[] = {
	{"completions.many_queues", many_queues},
	{"completions.tags", tags},
	{"completions.failed_and_dropped", failed_and_dropped},
	{"completions.full", full},
	{"completions.fd_tells", fd_tells},
	{"completions.fd_silent", fd_silent},
	{"completions.deadlines", deadlines},
	{"completions.deadline_passes", deadline_passes},
	{"completions.busy", busy},
	{NULL, NULL},
};

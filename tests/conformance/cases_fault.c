/* SPDX-License-Identifier: Apache-2.0 */
/* Faults: what the failed queue answers, and that nobody else notices. */
#define _GNU_SOURCE
#include "conformance.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct tenant {
	struct hal_partition *p;
	struct hal_queue *q;
	struct hal_buffer *b;
};

static int tenant(struct conf *c, uint32_t i, uint32_t n, struct tenant *t)
{
	STEP(conf_share(c, i, n, &t->p));
	STEP(conf_queue(c, t->p, &t->q));
	return conf_buffer(c, t->p, 256, &t->b);
}

static int submit_kernel(struct conf *c, struct hal_queue *q, const char *name,
			 struct hal_buffer *b, struct hal_point *done)
{
	struct hal_arg arg = {.buffer = b, .bytes = 64};
	struct hal_kernel *k;
	struct hal_cmd cmd;

	STEP(conf_kernel(c, name, &k));
	cmd = hal_cmd_launch(k, &arg, 1);
	return conf_submit(c, q, &cmd, 1, done);
}

static int eio(struct conf *c)
{
	struct hal_point done;
	struct tenant t;
	int err = 0;

	STEP(tenant(c, 0, 1, &t));
	STEP(submit_kernel(c, t.q, "wild", t.b, &done));
	ERR(conf_wait_raw(done), -EIO);
	CHECK(strstr(hal_last_error(), "0x") || strstr(hal_last_error(), "wild"));
	hal_timeline_get_value(done.timeline, &err);
	EQ(err, -EIO);
	return 0;
}

static int sticks(struct conf *c)
{
	struct hal_submit_desc d = HAL_INIT(hal_submit_desc);
	struct hal_point done, later;
	struct hal_cmd cmd;
	struct tenant t;
	int err;

	STEP(tenant(c, 0, 1, &t));
	STEP(submit_kernel(c, t.q, "wild", t.b, &done));
	ERR(conf_wait_raw(done), -EIO);
	cmd = hal_cmd_fill(t.b, 0, 64, 0x55);
	d.cmds = &cmd;
	d.cmd_count = 1;
	err = hal_submit(t.q, &d, &later);
	if (!err)
		err = conf_wait_raw(later);
	EQ(err, -EIO);
	CHECK(hal_last_error()[0]);
	ERR(conf_wait_raw(done), -EIO);
	return 0;
}

/* A point that was reached before the fault stays reached. */
static int reached_stays(struct conf *c)
{
	struct hal_point first, second;
	struct hal_cmd cmd;
	struct tenant t;

	STEP(tenant(c, 0, 1, &t));
	cmd = hal_cmd_fill(t.b, 0, 256, 0x12);
	STEP(conf_submit(c, t.q, &cmd, 1, &first));
	STEP(submit_kernel(c, t.q, "wild", t.b, &second));
	ERR(conf_wait_raw(second), -EIO);
	OK(hal_wait(&first, 1, 0, 0));
	return 0;
}

/* The faulting kernel, and another command right behind it. */
static int submit_wild_and(struct conf *c, struct tenant *t, struct hal_cmd behind,
			   struct hal_point *done)
{
	struct hal_arg arg = {.buffer = t->b, .bytes = 64};
	struct hal_kernel *k;
	struct hal_cmd cmd[2];

	STEP(conf_kernel(c, "wild", &k));
	cmd[0] = hal_cmd_launch(k, &arg, 1);
	cmd[1] = behind;
	return conf_submit(c, t->q, cmd, 2, done);
}

/* What stands behind the fault in its queue never happens. */
static int rest_is_dropped(struct conf *c)
{
	struct hal_point done;
	struct hal_buffer *safe;
	struct tenant t;
	uint32_t zero[64] = {0};

	STEP(tenant(c, 0, 1, &t));
	STEP(conf_buffer(c, t.p, 256, &safe));
	OK(hal_buffer_write(safe, 0, zero, 256));
	STEP(submit_wild_and(c, &t, hal_cmd_fill(safe, 0, 256, 0x99), &done));
	ERR(conf_wait_raw(done), -EIO);
	CHECK(hal_device_poll(c->dev, 100000) >= 0);
	return conf_same(c, safe, 0, zero, 256);
}

static int queue_can_go(struct conf *c)
{
	struct hal_point done;
	struct tenant t;
	struct hal_queue *again;
	struct hal_cmd cmd;

	STEP(tenant(c, 0, 1, &t));
	STEP(submit_kernel(c, t.q, "wild", t.b, &done));
	ERR(conf_wait_raw(done), -EIO);
	STEP(conf_queue_gone(c, t.q));
	/* A new queue of the same tenant works. */
	STEP(conf_queue(c, t.p, &again));
	cmd = hal_cmd_fill(t.b, 0, 256, 0x34);
	STEP(conf_submit(c, again, &cmd, 1, &done));
	STEP(conf_wait(c, done));
	return conf_filled(c, t.b, 0, 256, 0x34);
}

static int other_queue_goes_on(struct conf *c)
{
	struct hal_point bad, good;
	struct hal_buffer *b;
	struct hal_queue *q;
	struct hal_cmd cmd;
	struct tenant t;

	if (!(c->info.caps & HAL_CAP_FAULT_CONTAINED))
		return conf_unsupported(c, "faults are not contained");
	STEP(tenant(c, 0, 1, &t));
	STEP(conf_queue(c, t.p, &q));
	STEP(conf_buffer(c, t.p, 256, &b));
	STEP(submit_kernel(c, t.q, "wild", t.b, &bad));
	cmd = hal_cmd_fill(b, 0, 256, 0x56);
	STEP(conf_submit(c, q, &cmd, 1, &good));
	ERR(conf_wait_raw(bad), -EIO);
	STEP(conf_wait(c, good));
	STEP(conf_submit(c, q, &cmd, 1, &good));
	STEP(conf_wait(c, good));
	return conf_filled(c, b, 0, 256, 0x56);
}

/* Device time a neighbour's work takes while tenant 1 does what is said. */
static int neighbour_time(struct conf *c, const char *other, uint64_t *ns)
{
	struct hal_point mine, theirs = {0};
	struct hal_stats s = HAL_INIT(hal_stats);
	struct tenant t[2];
	uint8_t want[CONF_SPIN_BYTES];

	STEP(conf_close(c));
	STEP(conf_open(c));
	STEP(tenant(c, 0, 2, &t[0]));
	STEP(tenant(c, 1, 2, &t[1]));
	if (other)
		STEP(submit_kernel(c, t[1].q, other, t[1].b, &theirs));
	STEP(submit_kernel(c, t[0].q, "spin", t[0].b, &mine));
	STEP(conf_wait(c, mine));
	if (other)
		EQ(conf_wait_raw(theirs), strcmp(other, "wild") ? 0 : -EIO);
	conf_oracle_spin(want);
	STEP(conf_same(c, t[0].b, 0, want, sizeof(want)));
	OK(hal_queue_get_stats(t[0].q, &s));
	*ns = s.busy_ns;
	return 0;
}

static int neighbour_unharmed(struct conf *c)
{
	uint64_t alone = 0, faulting = 0, running = 0;

	if (!(c->info.caps & HAL_CAP_FAULT_CONTAINED))
		return conf_unsupported(c, "faults are not contained");
	STEP(neighbour_time(c, NULL, &alone));
	STEP(neighbour_time(c, "wild", &faulting));
	STEP(neighbour_time(c, "spin", &running));
	if (!conf_apart(c))
		return 0;
	EQ(faulting, alone);
	EQ(running, alone);
	return 0;
}

/* Who waits for a point that fails is dropped, and told why. */
static int waiter_fails(struct conf *c)
{
	struct hal_point bad, rest;
	struct hal_cmd cmd;
	struct tenant t[2];
	uint32_t zero[64] = {0};

	STEP(tenant(c, 0, 2, &t[0]));
	STEP(tenant(c, 1, 2, &t[1]));
	OK(hal_buffer_write(t[1].b, 0, zero, 256));
	STEP(submit_kernel(c, t[0].q, "wild", t[0].b, &bad));
	cmd = hal_cmd_fill(t[1].b, 0, 256, 0x78);
	STEP(conf_submit_ws(c, t[1].q, &cmd, 1, &bad, NULL, &rest));
	ERR(conf_wait_raw(rest), -ECANCELED);
	CHECK(strstr(hal_last_error(), "0x") || strstr(hal_last_error(), "wild"));
	return conf_same(c, t[1].b, 0, zero, 256);
}

/* A timeline that the failed submission would have signalled fails as well. */
static int signal_fails(struct conf *c)
{
	struct hal_arg arg;
	struct hal_timeline *line;
	struct hal_kernel *k;
	struct hal_point s;
	struct hal_cmd cmd;
	struct tenant t;

	STEP(tenant(c, 0, 1, &t));
	STEP(conf_timeline(c, &line));
	STEP(conf_kernel(c, "wild", &k));
	arg = (struct hal_arg){.buffer = t.b, .bytes = 64};
	cmd = hal_cmd_launch(k, &arg, 1);
	s = (struct hal_point){line, 1};
	STEP(conf_submit_ws(c, t.q, &cmd, 1, NULL, &s, NULL));
	ERR(conf_wait_raw(s), -EIO);
	EQ(hal_timeline_get_value(line, NULL), 0);
	return 0;
}

static int fd_is_readable(struct conf *c)
{
	struct pollfd p = {.events = POLLIN};
	struct hal_point done;
	struct tenant t;
	int n, err;

	STEP(tenant(c, 0, 1, &t));
	STEP(submit_kernel(c, t.q, "wild", t.b, &done));
	CHECK(hal_device_poll(c->dev, 0) >= 0); /* else a virtual clock has none */
	p.fd = hal_point_open_fd(&done);
	CHECK(p.fd >= 0);
	err = conf_wait_raw(done);
	n = poll(&p, 1, 0);
	close(p.fd);
	EQ(err, -EIO);
	EQ(n, 1);
	return 0;
}

/* A host command behind the fault is not called. */
static void called(void *user)
{
	*(int *)user = 1;
}

static int host_is_dropped(struct conf *c)
{
	struct hal_point done;
	struct tenant t;
	int ran = 0;

	STEP(tenant(c, 0, 1, &t));
	STEP(submit_wild_and(c, &t, hal_cmd_host(called, &ran), &done));
	ERR(conf_wait_raw(done), -EIO);
	STEP(conf_queue_gone(c, t.q));
	EQ(ran, 0);
	return 0;
}

const struct conf_case conf_fault_cases[] = {
	{"fault.eio", eio},
	{"fault.sticks", sticks},
	{"fault.reached_stays", reached_stays},
	{"fault.rest_is_dropped", rest_is_dropped},
	{"fault.queue_can_go", queue_can_go},
	{"fault.other_queue_goes_on", other_queue_goes_on},
	{"fault.neighbour_unharmed", neighbour_unharmed},
	{"fault.waiter_fails", waiter_fails},
	{"fault.signal_fails", signal_fails},
	{"fault.fd_is_readable", fd_is_readable},
	{"fault.host_is_dropped", host_is_dropped},
	{NULL, NULL},
};

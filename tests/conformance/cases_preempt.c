/* SPDX-License-Identifier: Apache-2.0 */
/* Suspend and resume: who lets go when, nothing lost, nothing twice. */
#define _GNU_SOURCE
#include "conformance.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct tenant {
	struct hal_partition *p;
	struct hal_queue *q;
	struct hal_buffer *b;
	struct hal_kernel *spin;
};

static int tenant(struct conf *c, uint32_t i, uint32_t n, struct tenant *t)
{
	STEP(conf_share(c, i, n, &t->p));
	STEP(conf_queue(c, t->p, &t->q));
	STEP(conf_buffer(c, t->p, 256, &t->b));
	return conf_kernel(c, "spin", &t->spin);
}

static int need(struct conf *c, uint32_t mode)
{
	if (!(c->info.suspend_modes & 1u << mode))
		return conf_unsupported(c, "no suspend mode %u", mode);
	return 0;
}

static struct hal_cmd spin(struct tenant *t, struct hal_arg *arg, bool replayable)
{
	struct hal_cmd cmd;

	*arg = (struct hal_arg){.buffer = t->b, .bytes = CONF_SPIN_BYTES};
	cmd = hal_cmd_launch(t->spin, arg, 1);
	if (replayable)
		cmd.flags |= HAL_CMD_REPLAYABLE;
	return cmd;
}

static int spun(struct conf *c, struct tenant *t)
{
	uint8_t want[CONF_SPIN_BYTES];

	conf_oracle_spin(want);
	return conf_same(c, t->b, 0, want, sizeof(want));
}

static int drain(struct conf *c)
{
	struct hal_point first, held, quiet;
	struct hal_arg arg;
	struct hal_cmd cmd;
	struct tenant t;
	bool ran;

	STEP(need(c, HAL_SUSPEND_DRAIN));
	STEP(tenant(c, 0, 1, &t));
	cmd = spin(&t, &arg, false);
	STEP(conf_submit(c, t.q, &cmd, 1, &first));
	STEP(conf_let_start(c));
	OK(hal_queue_suspend(t.q, HAL_SUSPEND_DRAIN, &quiet));
	STEP(conf_wait(c, quiet));
	/* What ran has finished; what comes now is held.  (On a real clock the first may
	 * not have been given to the device yet and is held, too.) */
	ran = hal_wait(&first, 1, 0, 0) == 0;
	CHECK(ran || !conf_virtual(c));
	if (ran)
		STEP(spun(c, &t));
	cmd = hal_cmd_fill(t.b, 0, 64, 0x42);
	STEP(conf_submit(c, t.q, &cmd, 1, &held));
	CHECK(hal_device_poll(c->dev, 100000) >= 0);
	ERR(hal_wait(&held, 1, 0, 0), -ETIMEDOUT);
	EQ(hal_wait(&first, 1, 0, 0) == 0, ran);
	if (ran)
		STEP(spun(c, &t));
	OK(hal_queue_resume(t.q));
	STEP(conf_wait(c, held));
	return conf_filled(c, t.b, 0, 64, 0x42);
}

static void count_up(void *user)
{
	++*(uint32_t *)user;
}

static int kill_and_replay(struct conf *c)
{
	struct hal_stats s = HAL_INIT(hal_stats);
	struct hal_point done, quiet;
	struct hal_arg arg;
	struct hal_cmd cmd[2];
	struct tenant t;
	uint8_t zero[CONF_SPIN_BYTES] = {0};
	uint32_t ran = 0;

	STEP(need(c, HAL_SUSPEND_KILL));
	STEP(tenant(c, 0, 1, &t));
	OK(hal_buffer_write(t.b, 0, zero, sizeof(zero)));
	cmd[0] = spin(&t, &arg, true);
	cmd[1] = hal_cmd_host(count_up, &ran);
	STEP(conf_submit(c, t.q, cmd, 2, &done));
	STEP(conf_let_start(c));
	OK(hal_queue_suspend(t.q, HAL_SUSPEND_KILL, &quiet));
	STEP(conf_wait(c, quiet));
	if (conf_virtual(c)) {
		ERR(hal_wait(&done, 1, 0, 0), -ETIMEDOUT);
		STEP(conf_same(c, t.b, 0, zero, sizeof(zero)));
		EQ(ran, 0);
	}
	OK(hal_queue_resume(t.q));
	STEP(conf_wait(c, done));
	STEP(spun(c, &t));
	EQ(ran, 1);
	OK(hal_queue_get_stats(t.q, &s));
	EQ(s.submitted, s.completed);
	EQ(s.dropped + s.failed, 0);
	EQ(s.suspends, 1);
	CHECK(s.replayed <= 1);
	CHECK(!conf_virtual(c) || (s.replayed == 1 && s.replayed_ns > 0));
	return 0;
}

/* Killed again and again: the work still happens, and happens once. */
static int kill_many_times(struct conf *c)
{
	enum { KILLS = 12, WORK = 4 };
	struct hal_stats s = HAL_INIT(hal_stats);
	struct hal_point done[WORK], quiet;
	struct hal_arg arg;
	struct hal_cmd cmd[2];
	struct tenant t;
	uint32_t ran = 0, i;

	STEP(need(c, HAL_SUSPEND_KILL));
	STEP(tenant(c, 0, 1, &t));
	for (i = 0; i < WORK; i++) {
		cmd[0] = spin(&t, &arg, true);
		cmd[1] = hal_cmd_host(count_up, &ran);
		STEP(conf_submit(c, t.q, cmd, 2, &done[i]));
	}
	for (i = 0; i < KILLS; i++) {
		CHECK(hal_device_poll(c->dev, CONF_SPIN_NS / 3) >= 0);
		OK(hal_queue_suspend(t.q, HAL_SUSPEND_KILL, &quiet));
		STEP(conf_wait(c, quiet));
		OK(hal_queue_resume(t.q));
	}
	for (i = 0; i < WORK; i++)
		STEP(conf_wait(c, done[i]));
	STEP(spun(c, &t));
	EQ(ran, WORK);
	OK(hal_queue_get_stats(t.q, &s));
	EQ(s.suspends, KILLS);
	EQ(s.completed, s.submitted);
	return 0;
}

/* The queue has looked ahead to a wait behind what is killed; it comes back to it. */
static int kill_before_wait(struct conf *c)
{
	struct hal_point first, last, quiet;
	struct hal_arg arg;
	struct hal_cmd cmd;
	struct tenant t;
	uint8_t want[CONF_SPIN_BYTES];

	STEP(need(c, HAL_SUSPEND_KILL));
	STEP(tenant(c, 0, 1, &t));
	cmd = spin(&t, &arg, true);
	STEP(conf_submit(c, t.q, &cmd, 1, &first));
	cmd = hal_cmd_copy(t.b, 128, t.b, 0, CONF_SPIN_BYTES);
	STEP(conf_submit_ws(c, t.q, &cmd, 1, &first, NULL, &last));
	STEP(conf_let_start(c));
	OK(hal_queue_suspend(t.q, HAL_SUSPEND_KILL, &quiet));
	STEP(conf_wait(c, quiet));
	OK(hal_queue_resume(t.q));
	STEP(conf_wait(c, last));
	STEP(spun(c, &t));
	conf_oracle_spin(want);
	return conf_same(c, t.b, 128, want, sizeof(want));
}

/* Several of a queue's with the device, and some that it has no place for yet, as the NPU
 * for what is behind a timestamp after idle time: they end in order (layer validate sees
 * to it), and run again. */
static int kill_of_several(struct conf *c)
{
	const bool times = (c->info.caps & HAL_CAP_TIMESTAMP) != 0;
	struct hal_point done, quiet;
	struct hal_arg arg;
	struct hal_cmd cmd[3];
	struct tenant t;

	STEP(need(c, HAL_SUSPEND_KILL));
	STEP(tenant(c, 0, 1, &t));
	for (uint32_t i = 0; i < 2; i++) {
		cmd[i] = times ? hal_cmd_timestamp(t.b, 128 + 8 * i)
			       : hal_cmd_copy(t.b, 128, t.b, 192, 64);
		cmd[i].flags |= HAL_CMD_REPLAYABLE;
	}
	cmd[2] = spin(&t, &arg, true);
	if (conf_virtual(c))
		CHECK(hal_device_poll(c->dev, 1000) >= 0);
	STEP(conf_submit(c, t.q, cmd, 3, &done));
	CHECK(hal_device_poll(c->dev, 0) >= 0); /* they are given to the device */
	OK(hal_queue_suspend(t.q, HAL_SUSPEND_KILL, &quiet));
	STEP(conf_wait(c, quiet));
	OK(hal_queue_resume(t.q));
	STEP(conf_wait(c, done));
	return spun(c, &t);
}

static int kill_not_replayable(struct conf *c)
{
	struct hal_point done, quiet;
	struct hal_arg arg;
	struct hal_cmd cmd;
	struct tenant t;

	STEP(need(c, HAL_SUSPEND_KILL));
	if (!conf_virtual(c))
		return conf_unsupported(c, "only virtual time knows what is running");
	STEP(tenant(c, 0, 1, &t));
	cmd = spin(&t, &arg, false);
	STEP(conf_submit(c, t.q, &cmd, 1, &done));
	STEP(conf_let_start(c));
	ERR(hal_queue_suspend(t.q, HAL_SUSPEND_KILL, &quiet), -ENOTSUP);
	STEP(conf_wait(c, done));
	return spun(c, &t);
}

static int mode_missing(struct conf *c)
{
	struct hal_point quiet;
	struct tenant t;
	uint32_t mode, tried = 0;

	STEP(tenant(c, 0, 1, &t));
	for (mode = HAL_SUSPEND_DRAIN; mode <= HAL_SUSPEND_KILL; mode++) {
		if (c->info.suspend_modes & 1u << mode)
			continue;
		ERR(hal_queue_suspend(t.q, mode, &quiet), -ENOTSUP);
		tried++;
	}
	ERR(hal_queue_suspend(t.q, HAL_SUSPEND_KILL + 1, &quiet), -EINVAL);
	if (!tried)
		return conf_unsupported(c, "there is every mode");
	return 0;
}

static int suspend_idle(struct conf *c)
{
	struct hal_point quiet, done;
	struct tenant t;
	uint32_t mode;

	STEP(need(c, HAL_SUSPEND_DRAIN));
	STEP(tenant(c, 0, 1, &t));
	for (mode = HAL_SUSPEND_DRAIN; mode <= HAL_SUSPEND_KILL; mode++) {
		if (!(c->info.suspend_modes & 1u << mode))
			continue;
		OK(hal_queue_suspend(t.q, mode, &quiet));
		STEP(conf_wait(c, quiet));
		OK(hal_queue_resume(t.q));
		STEP(conf_submit(c, t.q, NULL, 0, &done));
		STEP(conf_wait(c, done));
	}
	return 0;
}

static int suspend_twice(struct conf *c)
{
	struct hal_point quiet;
	struct tenant t;

	STEP(need(c, HAL_SUSPEND_DRAIN));
	STEP(tenant(c, 0, 1, &t));
	ERR(hal_queue_resume(t.q), -EINVAL);
	OK(hal_queue_suspend(t.q, HAL_SUSPEND_DRAIN, &quiet));
	ERR(hal_queue_suspend(t.q, HAL_SUSPEND_DRAIN, NULL), -EBUSY);
	STEP(conf_wait(c, quiet));
	ERR(hal_queue_suspend(t.q, HAL_SUSPEND_DRAIN, NULL), -EBUSY);
	OK(hal_queue_resume(t.q));
	ERR(hal_queue_resume(t.q), -EINVAL);
	return 0;
}

/* Everything submitted while suspended runs after the resume, in order. */
static int held_in_order(struct conf *c)
{
	struct hal_point quiet, done = {0};
	struct hal_cmd cmd;
	struct tenant t;
	uint32_t i;

	STEP(need(c, HAL_SUSPEND_DRAIN));
	STEP(tenant(c, 0, 1, &t));
	OK(hal_queue_suspend(t.q, HAL_SUSPEND_DRAIN, &quiet));
	for (i = 0; i < 10; i++) {
		cmd = hal_cmd_fill(t.b, 0, 256, i);
		STEP(conf_submit(c, t.q, &cmd, 1, &done));
	}
	STEP(conf_wait(c, quiet));
	OK(hal_queue_resume(t.q));
	STEP(conf_wait(c, done));
	return conf_filled(c, t.b, 0, 256, 9);
}

/* Another tenant's time does not change when this one is stopped, in any mode. */
static int neighbour_time(struct conf *c, int mode, uint64_t *ns)
{
	struct hal_stats s = HAL_INIT(hal_stats);
	struct hal_point mine, theirs, quiet;
	struct hal_arg arg[2];
	struct hal_cmd cmd;
	struct tenant t[2];

	STEP(conf_close(c));
	STEP(conf_open(c));
	STEP(tenant(c, 0, 2, &t[0]));
	STEP(tenant(c, 1, 2, &t[1]));
	cmd = spin(&t[0], &arg[0], true);
	STEP(conf_submit(c, t[0].q, &cmd, 1, &mine));
	cmd = spin(&t[1], &arg[1], true);
	STEP(conf_submit(c, t[1].q, &cmd, 1, &theirs));
	CHECK(hal_device_poll(c->dev, CONF_SPIN_NS / 4) >= 0);
	if (mode >= 0) {
		OK(hal_queue_suspend(t[1].q, (uint32_t)mode, &quiet));
		STEP(conf_wait(c, quiet));
		OK(hal_queue_resume(t[1].q));
	}
	STEP(conf_wait(c, mine));
	STEP(conf_wait(c, theirs));
	STEP(spun(c, &t[0]));
	STEP(spun(c, &t[1]));
	OK(hal_queue_get_stats(t[0].q, &s));
	EQ(s.suspends, 0);
	*ns = s.busy_ns;
	return 0;
}

static int neighbour_undisturbed(struct conf *c)
{
	uint64_t alone = 0, ns = 0;
	int mode;

	STEP(neighbour_time(c, -1, &alone));
	for (mode = HAL_SUSPEND_DRAIN; mode <= HAL_SUSPEND_KILL; mode++) {
		if (!(c->info.suspend_modes & 1u << mode))
			continue;
		STEP(neighbour_time(c, mode, &ns));
		if (conf_apart(c))
			EQ(ns, alone);
	}
	return 0;
}

/* One queue of a partition is stopped, another of the same goes on. */
static int sibling_goes_on(struct conf *c)
{
	struct hal_point held, done, quiet;
	struct hal_queue *q;
	struct hal_buffer *b;
	struct hal_cmd cmd;
	struct tenant t;

	STEP(need(c, HAL_SUSPEND_DRAIN));
	STEP(tenant(c, 0, 1, &t));
	STEP(conf_queue(c, t.p, &q));
	STEP(conf_buffer(c, t.p, 64, &b));
	OK(hal_queue_suspend(t.q, HAL_SUSPEND_DRAIN, &quiet));
	STEP(conf_wait(c, quiet));
	cmd = hal_cmd_fill(t.b, 0, 64, 1);
	STEP(conf_submit(c, t.q, &cmd, 1, &held));
	cmd = hal_cmd_fill(b, 0, 64, 2);
	STEP(conf_submit(c, q, &cmd, 1, &done));
	STEP(conf_wait(c, done));
	ERR(hal_wait(&held, 1, 0, 0), -ETIMEDOUT);
	OK(hal_queue_resume(t.q));
	return conf_wait(c, held);
}

static int min_preempt(struct conf *c)
{
	struct hal_queue_desc d = HAL_INIT(hal_queue_desc);
	struct hal_partition *p;
	struct hal_queue *q;

	STEP(conf_whole(c, &p));
	d.min_preempt = c->info.preempt;
	STEP(conf_queue_desc(c, p, &d, &q));
	if (c->info.preempt == HAL_PREEMPT_INSIDE)
		return 0;
	d.min_preempt = HAL_PREEMPT_INSIDE;
	ERR(hal_queue_create(p, &d, &q), -ENOTSUP);
	return 0;
}

static int kill_is_quick(struct conf *c)
{
	struct hal_stats s = HAL_INIT(hal_stats);
	struct hal_point done, quiet;
	struct hal_arg arg;
	struct hal_cmd cmd;
	struct tenant t;

	STEP(need(c, HAL_SUSPEND_KILL));
	if (!conf_virtual(c))
		return conf_unsupported(c, "a real clock has other work, too");
	STEP(tenant(c, 0, 1, &t));
	cmd = spin(&t, &arg, true);
	STEP(conf_submit(c, t.q, &cmd, 1, &done));
	STEP(conf_let_start(c));
	OK(hal_queue_suspend(t.q, HAL_SUSPEND_KILL, &quiet));
	STEP(conf_wait(c, quiet));
	OK(hal_queue_get_stats(t.q, &s));
	CHECK(s.suspend_max_ns > 0 && s.suspend_max_ns < CONF_SPIN_NS / 10);
	if (c->info.preempt_worst_ns && s.suspend_max_ns > c->info.preempt_worst_ns)
		return conf_fail(c, __FILE__, __LINE__,
				 "it took %llu ns, preempt_worst_ns is %llu",
				 (unsigned long long)s.suspend_max_ns,
				 (unsigned long long)c->info.preempt_worst_ns);
	CHECK(c->info.suspend_worst_ns[HAL_SUSPEND_KILL] == 0 ||
	      s.suspend_max_ns <= c->info.suspend_worst_ns[HAL_SUSPEND_KILL]);
	OK(hal_queue_resume(t.q));
	return conf_wait(c, done);
}

const struct conf_case conf_preempt_cases[] = {
	{"preempt.drain", drain},
	{"preempt.kill_and_replay", kill_and_replay},
	{"preempt.kill_many_times", kill_many_times},
	{"preempt.kill_before_wait", kill_before_wait},
	{"preempt.kill_of_several", kill_of_several},
	{"preempt.kill_not_replayable", kill_not_replayable},
	{"preempt.kill_is_quick", kill_is_quick},
	{"preempt.mode_missing", mode_missing},
	{"preempt.suspend_idle", suspend_idle},
	{"preempt.suspend_twice", suspend_twice},
	{"preempt.held_in_order", held_in_order},
	{"preempt.neighbour_undisturbed", neighbour_undisturbed},
	{"preempt.sibling_goes_on", sibling_goes_on},
	{"preempt.min_preempt", min_preempt},
	{NULL, NULL},
};

/* SPDX-License-Identifier: Apache-2.0 */
/* Device time: it passes while nothing runs, submissions are held until it, waits end. */
#define _GNU_SOURCE
#include "conformance.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#define FAR_NS UINT64_C(1000000000000000) /* eleven days and a half */

static uint64_t cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * UINT64_C(1000000000) + (uint64_t)ts.tv_nsec;
}

struct one {
	struct hal_partition *p;
	struct hal_queue *q;
	struct hal_buffer *b;
};

static int one_of(struct conf *c, struct one *w)
{
	STEP(conf_whole(c, &w->p));
	STEP(conf_queue(c, w->p, &w->q));
	return conf_buffer(c, w->p, 256, &w->b);
}

/* Lets ns pass, of which nothing is lost and nothing comes on top. */
static int pass(struct conf *c, uint64_t ns)
{
	uint64_t before = hal_device_get_time(c->dev);

	EQ(hal_device_poll(c->dev, ns), 0);
	EQ(hal_device_get_time(c->dev), before + ns);
	return 0;
}

static int idle_passes(struct conf *c)
{
	struct hal_point done;
	struct hal_cmd cmd;
	struct one w;

	if (!conf_virtual(c))
		return conf_unsupported(c, "real time passes by itself");
	STEP(pass(c, 12345));
	STEP(one_of(c, &w));
	STEP(pass(c, 1));
	cmd = hal_cmd_fill(w.b, 0, 256, 7);
	STEP(conf_submit(c, w.q, &cmd, 1, &done));
	STEP(conf_wait(c, done));
	STEP(pass(c, 0));
	STEP(pass(c, 1000001));
	return conf_filled(c, w.b, 0, 256, 7);
}

/* As long as something is left to do, and nothing is. */
static int idle_stays(struct conf *c)
{
	uint64_t before;
	struct one w;

	if (!conf_virtual(c))
		return conf_unsupported(c, "real time passes by itself");
	STEP(one_of(c, &w));
	before = hal_device_get_time(c->dev);
	EQ(hal_device_poll(c->dev, UINT64_MAX), 0);
	EQ(hal_device_get_time(c->dev), before);
	return 0;
}

static int idle_costs_nothing(struct conf *c)
{
	uint64_t before = cpu_ns();
	struct one w;
	uint32_t i;

	if (!conf_virtual(c))
		return conf_unsupported(c, "real time passes by itself");
	STEP(one_of(c, &w));
	for (i = 0; i < 10; i++)
		STEP(pass(c, FAR_NS));
	CHECK(cpu_ns() - before < 500000000);
	return 0;
}

/* What the device writes down is the time of hal_device_get_time, and a command behind it
 * sees that very value, or overwrites it. */
static int timestamps_after_idle(struct conf *c)
{
	uint64_t times[4], before, after;
	struct hal_point done;
	struct hal_cmd cmds[5];
	struct one w;

	if (!(c->info.caps & HAL_CAP_TIMESTAMP))
		return conf_unsupported(c, "no timestamps");
	STEP(one_of(c, &w));
	CHECK(hal_device_poll(c->dev, FAR_NS) >= 0);
	before = hal_device_get_time(c->dev);
	cmds[0] = hal_cmd_timestamp(w.b, 0);
	cmds[1] = hal_cmd_copy(w.b, 8, w.b, 0, 8);
	cmds[2] = hal_cmd_timestamp(w.b, 16);
	cmds[3] = hal_cmd_timestamp(w.b, 24);
	cmds[4] = hal_cmd_fill(w.b, 24, 8, 0x11223344);
	STEP(conf_submit(c, w.q, cmds, 5, &done));
	STEP(conf_wait(c, done));
	after = hal_device_get_time(c->dev);
	OK(hal_buffer_read(w.b, 0, times, sizeof(times)));
	CHECK(times[0] >= before);
	EQ(times[1], times[0]);
	CHECK(times[2] >= times[0]);
	CHECK(times[2] <= after);
	EQ(times[3], UINT64_C(0x1122334411223344));
	return 0;
}

/* The accounts of work after a long pause are those of the work. */
static int account_after_idle(struct conf *c)
{
	struct hal_stats s = HAL_INIT(hal_stats);
	struct hal_kernel *k;
	struct hal_point done;
	struct hal_arg arg;
	struct hal_cmd cmd;
	struct one w;

	if (!conf_virtual(c))
		return conf_unsupported(c, "real time passes by itself");
	STEP(one_of(c, &w));
	STEP(conf_kernel(c, "spin", &k));
	STEP(pass(c, FAR_NS));
	arg = (struct hal_arg){.buffer = w.b};
	cmd = hal_cmd_launch(k, &arg, 1);
	STEP(conf_submit(c, w.q, &cmd, 1, &done));
	STEP(conf_wait(c, done));
	STEP(pass(c, FAR_NS));
	OK(hal_queue_get_stats(w.q, &s));
	CHECK(s.busy_ns >= CONF_SPIN_NS);
	CHECK(s.busy_ns < FAR_NS / 1000);
	CHECK(s.latency_max_ns >= CONF_SPIN_NS);
	CHECK(s.latency_max_ns < FAR_NS / 1000);
	CHECK(s.now_ns > 2 * FAR_NS);
	return 0;
}

/* ---- held until a time ------------------------------------------------------------ */

static int submit_held(struct conf *c, struct hal_queue *q, const struct hal_cmd *cmd,
		       uint64_t at_ns, struct hal_point *done)
{
	struct hal_submit_desc d = HAL_INIT(hal_submit_desc);

	d.cmds = cmd;
	d.cmd_count = 1;
	d.not_before_ns = at_ns;
	OK(hal_submit(q, &d, done));
	return 0;
}

static int not_before(struct conf *c)
{
	uint64_t ahead = conf_virtual(c) ? FAR_NS : 30000000, at, when;
	struct hal_point held, behind, other;
	struct hal_queue *free_queue;
	struct hal_cmd cmd;
	uint64_t value;
	struct one w;

	STEP(one_of(c, &w));
	STEP(conf_queue(c, w.p, &free_queue));
	at = hal_device_get_time(c->dev) + ahead;
	cmd = hal_cmd_timestamp(w.b, 0);
	STEP(submit_held(c, w.q, &cmd, at, &held));
	STEP(conf_submit(c, w.q, NULL, 0, &behind));
	cmd = hal_cmd_fill(w.b, 64, 64, 3);
	STEP(conf_submit(c, free_queue, &cmd, 1, &other));
	STEP(conf_wait(c, other));
	/* In this order: real time may reach `at` between the two calls. */
	value = hal_timeline_get_value(held.timeline, NULL);
	if (hal_device_get_time(c->dev) < at)
		EQ(value, 0);
	if (conf_virtual(c)) {
		uint64_t now = hal_device_get_time(c->dev);

		CHECK(now < at);
		CHECK(hal_device_poll(c->dev, at - now - 1) >= 0);
		EQ(hal_timeline_get_value(held.timeline, NULL), 0);
		EQ(hal_device_get_time(c->dev), at - 1);
	}
	OK(hal_wait(&held, 1, 0, HAL_FOREVER));
	OK(hal_wait(&behind, 1, 0, HAL_FOREVER));
	OK(hal_buffer_read(w.b, 0, &when, sizeof(when)));
	CHECK(when >= at);
	CHECK(!conf_virtual(c) || when < at + 1000000);
	return 0;
}

/* Nobody steps time but the wait itself; two of them, the later one first. */
static int not_before_alone(struct conf *c)
{
	uint64_t ahead = conf_virtual(c) ? FAR_NS : 10000000, at, when[2];
	struct hal_point held[2];
	struct hal_queue *other;
	struct hal_cmd cmd;
	struct one w;

	STEP(one_of(c, &w));
	STEP(conf_queue(c, w.p, &other));
	at = hal_device_get_time(c->dev) + ahead;
	cmd = hal_cmd_timestamp(w.b, 0);
	STEP(submit_held(c, w.q, &cmd, at + ahead, &held[0]));
	cmd = hal_cmd_timestamp(w.b, 8);
	STEP(submit_held(c, other, &cmd, at, &held[1]));
	OK(hal_wait(held, 2, 0, HAL_FOREVER));
	OK(hal_buffer_read(w.b, 0, when, sizeof(when)));
	CHECK(when[1] >= at);
	CHECK(when[0] >= at + ahead);
	CHECK(!conf_virtual(c) || when[1] < at + ahead);
	return 0;
}

/* One nanosecond is enough to be held, and its end to go on. */
static int not_before_next(struct conf *c)
{
	struct hal_submit_desc d = HAL_INIT(hal_submit_desc);
	struct hal_point done;
	struct one w;

	if (!conf_virtual(c))
		return conf_unsupported(c, "real time passes by itself");
	STEP(one_of(c, &w));
	d.not_before_ns = hal_device_get_time(c->dev) + 1;
	OK(hal_submit(w.q, &d, &done));
	EQ(hal_device_poll(c->dev, 0), 0);
	EQ(hal_timeline_get_value(done.timeline, NULL), 0);
	CHECK(hal_device_poll(c->dev, 1) >= 0);
	EQ(hal_timeline_get_value(done.timeline, NULL), 1);
	EQ(hal_device_get_time(c->dev), d.not_before_ns);
	return 0;
}

/* A time that has passed holds nothing. */
static int not_before_past(struct conf *c)
{
	struct hal_point done;
	struct hal_cmd cmd;
	struct one w;

	STEP(one_of(c, &w));
	CHECK(hal_device_poll(c->dev, 1000) >= 0);
	cmd = hal_cmd_fill(w.b, 0, 64, 9);
	STEP(submit_held(c, w.q, &cmd, 1, &done));
	STEP(conf_wait(c, done));
	return conf_filled(c, w.b, 0, 64, 9);
}

/* ---- waits with a deadline in device time ----------------------------------------- */

static int wait_until(struct conf *c, struct hal_point p, uint64_t at)
{
	ERR(hal_wait(&p, 1, HAL_WAIT_DEVICE_TIME, (int64_t)at), -ETIMEDOUT);
	CHECK(hal_device_get_time(c->dev) >= at);
	if (conf_virtual(c))
		EQ(hal_device_get_time(c->dev), at);
	return 0;
}

static int deadline_idle(struct conf *c)
{
	struct hal_timeline *never;
	struct hal_point p[2];
	uint64_t at;

	STEP(conf_timeline(c, &never));
	p[0] = p[1] = (struct hal_point){never, 1};
	at = hal_device_get_time(c->dev) + 3000000;
	STEP(wait_until(c, p[0], at));
	/* It has passed. */
	ERR(hal_wait(p, 1, HAL_WAIT_DEVICE_TIME, (int64_t)at), -ETIMEDOUT);
	at = hal_device_get_time(c->dev) + 1234567;
	ERR(hal_wait(p, 2, HAL_WAIT_DEVICE_TIME | HAL_WAIT_ANY, (int64_t)at), -ETIMEDOUT);
	CHECK(hal_device_get_time(c->dev) >= at);
	if (conf_virtual(c))
		EQ(hal_device_get_time(c->dev), at);
	return 0;
}

static int deadline_running(struct conf *c)
{
	struct hal_point done;
	struct hal_kernel *k;
	struct hal_arg arg;
	struct hal_cmd cmd;
	struct one w;
	uint64_t now;

	if (!conf_virtual(c))
		return conf_unsupported(c, "what is running is a race in real time");
	STEP(one_of(c, &w));
	STEP(conf_kernel(c, "spin", &k));
	arg = (struct hal_arg){.buffer = w.b};
	cmd = hal_cmd_launch(k, &arg, 1);
	STEP(conf_submit(c, w.q, &cmd, 1, &done));
	now = hal_device_get_time(c->dev);
	STEP(wait_until(c, done, now + 3001));
	STEP(wait_until(c, done, now + 3002));
	/* Reached before the deadline, time stands where it ended. */
	OK(hal_wait(&done, 1, HAL_WAIT_DEVICE_TIME, (int64_t)(now + FAR_NS)));
	CHECK(hal_device_get_time(c->dev) >= now + CONF_SPIN_NS);
	CHECK(hal_device_get_time(c->dev) < now + FAR_NS);
	return 0;
}

const struct conf_case conf_clock_cases[] = {
	{"clock.idle_passes", idle_passes},
	{"clock.idle_stays", idle_stays},
	{"clock.idle_costs_nothing", idle_costs_nothing},
	{"clock.timestamps_after_idle", timestamps_after_idle},
	{"clock.account_after_idle", account_after_idle},
	{"clock.not_before", not_before},
	{"clock.not_before_alone", not_before_alone},
	{"clock.not_before_next", not_before_next},
	{"clock.not_before_past", not_before_past},
	{"clock.deadline_idle", deadline_idle},
	{"clock.deadline_running", deadline_running},
	{NULL, NULL},
};

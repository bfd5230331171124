/* SPDX-License-Identifier: Apache-2.0 */
/* Suspend by FOLD and by SAVE: a command stops inside, the device keeps its progress, or
 * its state, and goes on. */
#define _GNU_SOURCE
#include "conformance.h"

#include <errno.h>
#include <string.h>

/* A partition whose only command, which may not run twice, takes a while. */
struct scene {
	struct hal_partition *p;
	struct hal_queue *q;
	struct hal_buffer *b;
	struct hal_kernel *spin;
	struct hal_point done;
	uint64_t ns; /* that it takes */
	uint32_t mode;
	uint32_t group_size, shared_bytes; /* of the launch; 0: the kernel's own */
};

static int submit_spin(struct conf *c, struct scene *s, struct hal_point *done)
{
	struct hal_arg arg = {.buffer = s->b, .bytes = CONF_SPIN_BYTES};
	struct hal_cmd cmd = hal_cmd_launch(s->spin, &arg, 1);

	if (c->pack->spin_groups != 0)
		cmd.launch.groups[0] = c->pack->spin_groups;
	cmd.launch.group_size[0] = s->group_size;
	cmd.launch.shared_bytes = s->shared_bytes;
	return conf_submit(c, s->q, &cmd, 1, done);
}

/* Start a launch with the group size and shared memory of s. */
static int begin_shaped(struct conf *c, struct scene *s, uint32_t mode)
{
	static const uint8_t zero[CONF_SPIN_BYTES];
	struct hal_stats t = HAL_INIT(hal_stats);

	if (!(c->info.suspend_modes & 1u << mode))
		return conf_unsupported(c, mode == HAL_SUSPEND_FOLD
						   ? "no suspend by FOLD"
						   : "no suspend by SAVE");
	s->mode = mode;
	STEP(conf_share(c, 0, 2, &s->p));
	STEP(conf_queue(c, s->p, &s->q));
	STEP(conf_buffer(c, s->p, 256, &s->b));
	STEP(conf_kernel(c, "spin", &s->spin));
	STEP(submit_spin(c, s, &s->done));
	STEP(conf_wait(c, s->done));
	OK(hal_queue_get_stats(s->q, &t));
	s->ns = t.busy_ns;
	OK(hal_buffer_write(s->b, 0, zero, sizeof(zero)));
	STEP(submit_spin(c, s, &s->done));
	return conf_let_start(c);
}

static int begin(struct conf *c, struct scene *s, uint32_t mode)
{
	s->group_size = s->shared_bytes = 0;
	return begin_shaped(c, s, mode);
}

static int stop(struct conf *c, struct hal_queue *q, uint32_t mode)
{
	struct hal_point quiet;

	OK(hal_queue_suspend(q, mode, &quiet));
	return conf_wait(c, quiet);
}

static int stop_inside(struct conf *c, struct scene *s, uint64_t after_ns)
{
	CHECK(hal_device_poll(c->dev, after_ns) >= 0);
	STEP(stop(c, s->q, s->mode));
	if (conf_virtual(c))
		ERR(hal_wait(&s->done, 1, 0, 0), -ETIMEDOUT);
	return 0;
}

static int spun(struct conf *c, const struct scene *s)
{
	uint8_t want[CONF_SPIN_BYTES];

	conf_oracle_spin(want);
	return conf_same(c, s->b, 0, want, sizeof(want));
}

/* What it had done when it was stopped it does not do again, and none of the time it
 * stood still counts as work. */
static int goes_on(struct conf *c, uint32_t mode)
{
	struct hal_stats s = HAL_INIT(hal_stats), p = HAL_INIT(hal_stats);
	struct scene t;
	uint64_t at;

	STEP(begin(c, &t, mode));
	STEP(stop_inside(c, &t, t.ns / 2));
	CHECK(hal_device_poll(c->dev, 3 * t.ns) >= 0);
	if (conf_virtual(c))
		ERR(hal_wait(&t.done, 1, 0, 0), -ETIMEDOUT);
	at = hal_device_get_time(c->dev);
	OK(hal_queue_resume(t.q));
	STEP(conf_wait(c, t.done));
	STEP(spun(c, &t));
	OK(hal_queue_get_stats(t.q, &s));
	OK(hal_partition_get_stats(t.p, &p));
	EQ(s.completed, 2);
	EQ(s.suspends, 1);
	EQ(s.replayed + s.dropped + s.failed, 0);
	EQ(s.requests, 2);
	EQ(p.busy_ns, s.busy_ns);
	if (!conf_virtual(c))
		return 0;
	CHECK(hal_device_get_time(c->dev) - at < t.ns * 3 / 4);
	CHECK(s.busy_ns >= 2 * t.ns - t.ns / 16 && s.busy_ns < 2 * t.ns + t.ns / 4);
	CHECK(s.queueing_ns >= 3 * t.ns);
	return 0;
}

/* It is in nobody's way: neither the units nor a place on the device. */
static int others_run(struct conf *c, uint32_t mode)
{
	enum { OTHERS = 40 };
	struct hal_point done = {0};
	struct hal_queue *q;
	struct hal_buffer *b;
	struct hal_cmd cmd;
	struct scene t;

	STEP(begin(c, &t, mode));
	for (uint32_t i = 0; i < 3; i++) /* what waits behind it stays, too */
		STEP(submit_spin(c, &t, &t.done));
	STEP(conf_queue(c, t.p, &q));
	STEP(conf_buffer(c, t.p, 64, &b));
	STEP(stop_inside(c, &t, t.ns / 4));
	for (uint32_t i = 0; i < OTHERS; i++) {
		cmd = hal_cmd_fill(b, 0, 64, i);
		STEP(conf_submit(c, q, &cmd, 1, &done));
		STEP(conf_wait(c, done));
	}
	STEP(conf_filled(c, b, 0, 64, OTHERS - 1));
	/* A second one that is stopped inside at the same time. */
	{
		struct scene u = t;
		struct hal_point both[2];

		u.q = q;
		STEP(conf_buffer(c, t.p, 256, &u.b));
		STEP(submit_spin(c, &u, &u.done));
		STEP(stop_inside(c, &u, t.ns / 3));
		OK(hal_queue_resume(t.q));
		OK(hal_queue_resume(u.q));
		both[0] = t.done;
		both[1] = u.done;
		STEP(conf_wait(c, both[0]));
		STEP(conf_wait(c, both[1]));
		STEP(spun(c, &u));
	}
	return spun(c, &t);
}

static void count_up(void *user)
{
	++*(uint32_t *)user;
}

/* Stopped again and again: it gets on each time, and happens once. */
static int many_times(struct conf *c, uint32_t mode)
{
	struct hal_stats s = HAL_INIT(hal_stats);
	struct hal_cmd cmd = {0};
	struct hal_point last;
	uint32_t ran = 0, stops = 0;
	struct scene t;

	STEP(begin(c, &t, mode));
	cmd = hal_cmd_host(count_up, &ran);
	STEP(conf_submit(c, t.q, &cmd, 1, &last));
	while (stops < 64 && hal_wait(&t.done, 1, 0, 0) != 0) {
		CHECK(hal_device_poll(c->dev, t.ns / 10) >= 0);
		STEP(stop(c, t.q, mode));
		stops++;
		OK(hal_queue_resume(t.q));
	}
	STEP(conf_wait(c, last));
	/* In real time it may have ended before it could be stopped. */
	CHECK(!conf_virtual(c) || (stops >= 1 && stops < 64));
	EQ(ran, 1);
	STEP(spun(c, &t));
	OK(hal_queue_get_stats(t.q, &s));
	EQ(s.completed, s.submitted);
	EQ(s.suspends, stops);
	EQ(s.replayed, 0);
	return 0;
}

/* What the device keeps of a queue goes with it. */
static int destroyed(struct conf *c, uint32_t mode)
{
	struct hal_stats s = HAL_INIT(hal_stats);
	struct hal_point done;
	struct hal_cmd cmd;
	struct hal_queue *q;
	struct scene t;

	STEP(begin(c, &t, mode));
	STEP(submit_spin(c, &t, &t.done));
	STEP(stop_inside(c, &t, t.ns / 3));
	STEP(conf_queue_gone(c, t.q));
	OK(hal_partition_get_stats(t.p, &s));
	EQ(s.submitted, 3);
	EQ(s.completed + s.dropped, 3);
	CHECK(!conf_virtual(c) || s.dropped == 2);
	/* Its place is another's, in the same partition and everywhere. */
	STEP(conf_queue(c, t.p, &q));
	cmd = hal_cmd_fill(t.b, 0, 64, 0x17);
	STEP(conf_submit(c, q, &cmd, 1, &done));
	STEP(conf_wait(c, done));
	STEP(conf_filled(c, t.b, 0, 64, 0x17));
	STEP(conf_queue_gone(c, q));
	STEP(conf_buffer_gone(c, t.b));
	return conf_part_gone(c, t.p);
}

/* Suspended for good, and inside: nothing but to destroy it. */
static int final(struct conf *c, uint32_t mode)
{
	struct scene t;

	STEP(begin(c, &t, mode));
	STEP(stop(c, t.q, mode | HAL_SUSPEND_FINAL));
	ERR(hal_queue_resume(t.q), -ECANCELED);
	ERR(hal_queue_suspend(t.q, HAL_SUSPEND_KILL, NULL), -EBUSY);
	return conf_queue_gone(c, t.q);
}

/* Its partition lies elsewhere, and is smaller, when it goes on. */
static int moved(struct conf *c, uint32_t mode)
{
	struct hal_partition_desc d = HAL_INIT(hal_partition_desc);
	struct hal_point there;
	struct scene t;

	if (!(c->info.caps & HAL_CAP_RESIZE_IDLE))
		return conf_unsupported(c, "partitions do not move");
	STEP(begin(c, &t, mode));
	STEP(stop_inside(c, &t, t.ns / 3));
	d.row = 0;
	d.col = (uint16_t)(c->info.unit_cols - 1);
	d.rows = d.cols = 1;
	OK(hal_partition_resize(t.p, &d, &there));
	STEP(conf_wait(c, there));
	OK(hal_queue_resume(t.q));
	STEP(conf_wait(c, t.done));
	return spun(c, &t);
}

/* Whenever it is asked, no longer than the device says. */
static int bounded(struct conf *c, uint32_t mode)
{
	uint64_t worst_ns = c->info.suspend_worst_ns[mode];
	struct hal_stats s = HAL_INIT(hal_stats);
	struct scene t;

	STEP(begin(c, &t, mode));
	if (!conf_virtual(c)) {
		STEP(conf_wait(c, t.done));
		return conf_unsupported(c, "a real clock has other work, too");
	}
	for (uint32_t i = 0; i < 20; i++) {
		CHECK(hal_device_poll(c->dev, t.ns * i / 200 + i) >= 0);
		STEP(stop(c, t.q, mode));
		OK(hal_queue_resume(t.q));
	}
	OK(hal_queue_get_stats(t.q, &s));
	CHECK(s.suspend_max_ns > 0 && s.suspend_max_ns < t.ns);
	if (worst_ns != 0 && s.suspend_max_ns > worst_ns)
		return conf_fail(c, __FILE__, __LINE__,
				 "it took %llu ns, suspend_worst_ns is %llu",
				 (unsigned long long)s.suspend_max_ns,
				 (unsigned long long)worst_ns);
	STEP(conf_wait(c, t.done));
	return spun(c, &t);
}

/* A launch with a shape of its own goes on with it, and its kernel keeps its own. */
static int shaped(struct conf *c)
{
	struct hal_kernel_info info = HAL_INIT(hal_kernel_info);
	struct hal_stats s = HAL_INIT(hal_stats);
	struct hal_kernel *spin;
	struct scene t;

	STEP(conf_kernel(c, "spin", &spin));
	OK(hal_kernel_get_info(spin, &info));
	if (info.group_size_max == 0)
		return conf_unsupported(c, "the group size of a kernel is fixed");
	t.group_size = 32;
	t.shared_bytes = info.shared_max / 2;
	STEP(begin_shaped(c, &t, HAL_SUSPEND_FOLD));
	for (uint32_t i = 0; i < 3; i++) {
		STEP(stop_inside(c, &t, t.ns / 8));
		OK(hal_queue_resume(t.q));
		STEP(conf_let_start(c));
	}
	STEP(conf_wait(c, t.done));
	STEP(spun(c, &t));
	t.group_size = t.shared_bytes = 0;
	STEP(submit_spin(c, &t, &t.done));
	STEP(conf_wait(c, t.done));
	OK(hal_queue_get_stats(t.q, &s));
	EQ(s.completed, 3);
	EQ(s.suspends, 3);
	EQ(s.replayed + s.dropped + s.failed, 0);
	return spun(c, &t);
}

#define BY_BOTH(name)                                                                    \
	static int fold_##name(struct conf *c)                                           \
	{                                                                                \
		return name(c, HAL_SUSPEND_FOLD);                                        \
	}                                                                                \
	static int save_##name(struct conf *c)                                           \
	{                                                                                \
		return name(c, HAL_SUSPEND_SAVE);                                        \
	}
BY_BOTH(goes_on)
BY_BOTH(others_run)
BY_BOTH(many_times)
BY_BOTH(destroyed)
BY_BOTH(final)
BY_BOTH(moved)
BY_BOTH(bounded)

const struct conf_case conf_fold_cases[] = {
	{"fold.goes_on", fold_goes_on},       {"fold.others_run", fold_others_run},
	{"fold.many_times", fold_many_times}, {"fold.destroyed", fold_destroyed},
	{"fold.final", fold_final},           {"fold.moved", fold_moved},
	{"fold.bounded", fold_bounded},       {"fold.shaped", shaped},
	{"save.goes_on", save_goes_on},       {"save.others_run", save_others_run},
	{"save.many_times", save_many_times}, {"save.destroyed", save_destroyed},
	{"save.final", save_final},           {"save.moved", save_moved},
	{"save.bounded", save_bounded},       {NULL, NULL},
};

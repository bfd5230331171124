/* SPDX-License-Identifier: Apache-2.0 */
/* hal_buffer_recolor: a buffer moves to other memory channels while work goes on. */
#define _GNU_SOURCE
#include "conformance.h"

#include <errno.h>
#include <string.h>

#include <hal/ext/memory.h>

enum { BIG = 256 << 10 };

/* A partition of two channels, one buffer on the lower of them, and who moves it. */
struct scene {
	struct hal_partition *p;
	struct hal_queue *mover, *other;
	struct hal_buffer *b;
	uint64_t low, high; /* channels */
	struct hal_point moved;
};

static int in_two(struct conf *c, uint64_t mask, struct scene *s)
{
	struct hal_buffer_desc d = HAL_INIT(hal_buffer_desc);
	uint8_t data[BIG];

	STEP(conf_queue(c, s->p, &s->mover));
	STEP(conf_queue(c, s->p, &s->other));
	s->low = mask & -mask;
	s->high = mask & ~s->low;
	d.bytes = BIG;
	d.color_mask = s->low;
	OK(hal_buffer_create(s->p, &d, &s->b));
	c->buffers[c->buffer_count++] = s->b;
	conf_noise(data, sizeof(data), 11);
	OK(hal_buffer_write(s->b, 0, data, sizeof(data)));
	return 0;
}

static int begin(struct conf *c, struct scene *s)
{
	struct hal_partition_desc d = HAL_INIT(hal_partition_desc);

	if (!(c->info.caps & HAL_CAP_RECOLOR) || c->info.colors < 2)
		return conf_unsupported(c, "buffers cannot be recoloured");
	d.units_floor = 1;
	d.color_mask = 3;
	STEP(conf_part(c, &d, &s->p));
	return in_two(c, 3, s);
}

static int intact(struct conf *c, const struct scene *s, uint64_t from)
{
	uint8_t data[BIG];

	conf_noise(data, sizeof(data), 11);
	return conf_same(c, s->b, from, data + from, sizeof(data) - from);
}

static int used(struct conf *c, const struct scene *s, uint64_t *bytes)
{
	struct hal_partition_info i = HAL_INIT(hal_partition_info);

	OK(hal_partition_get_info(s->p, &i));
	*bytes = i.memory_used;
	return 0;
}

/* There and back: its bytes, its memory, and what queues do with it. */
static int moves(struct conf *c)
{
	struct hal_stats t = HAL_INIT(hal_stats);
	uint64_t before, after;
	struct scene s;

	STEP(begin(c, &s));
	STEP(used(c, &s, &before));
	for (uint32_t i = 0; i < 6; i++) {
		struct hal_cmd cmd = hal_cmd_fill(s.b, 64 * i, 64, i);

		OK(hal_buffer_recolor(s.b, s.mover, i % 2 ? s.low : s.high, NULL,
				      &s.moved));
		STEP(conf_submit(c, s.other, &cmd, 1, NULL));
		STEP(conf_wait(c, s.moved));
		OK(hal_wait(&(struct hal_point){hal_queue_get_timeline(s.other), i + 1},
			    1, 0, conf_deadline(INT64_C(300) * 1000000000)));
		for (uint32_t k = 0; k <= i; k++)
			STEP(conf_filled(c, s.b, (uint64_t)64 * k, 64, k));
		STEP(intact(c, &s, 64 * (uint64_t)(i + 1)));
	}
	STEP(used(c, &s, &after));
	EQ(after, before);
	OK(hal_queue_get_stats(s.mover, &t));
	EQ(t.requests, 6);
	CHECK(t.completed >= 6); /* in pieces */
	EQ(t.failed + t.dropped, 0);
	return 0;
}

/* Behind the move in another queue: it waits, and what it does is not lost; what uses
 * something else does not wait. */
static int others_go_on(struct conf *c)
{
	struct hal_point waits, goes;
	struct hal_buffer *mine;
	struct hal_queue *third;
	struct hal_cmd cmd;
	struct scene s;

	STEP(begin(c, &s));
	STEP(conf_queue(c, s.p, &third));
	STEP(conf_buffer(c, s.p, 64, &mine));
	OK(hal_buffer_recolor(s.b, s.mover, s.high, NULL, &s.moved));
	STEP(conf_let_start(c));
	cmd = hal_cmd_fill(s.b, BIG - 64, 64, 0x1234);
	STEP(conf_submit(c, s.other, &cmd, 1, &waits));
	for (uint32_t i = 0; i < 8; i++) {
		cmd = hal_cmd_fill(mine, 0, 64, i);
		STEP(conf_submit(c, third, &cmd, 1, &goes));
	}
	if (conf_virtual(c)) {
		/* The copy has the units first; then these, in turn, and last of all it.
		 */
		STEP(conf_wait(c, goes));
		STEP(conf_filled(c, mine, 0, 64, 7));
	}
	STEP(conf_wait(c, waits));
	OK(hal_wait(&s.moved, 1, 0, 0));
	STEP(conf_wait(c, goes));
	STEP(conf_filled(c, s.b, BIG - 64, 64, 0x1234));
	return 0;
}

/* What the device has of it when the move's turn comes ends first. */
static int waits_for_users(struct conf *c)
{
	struct hal_arg arg = {.bytes = CONF_SPIN_BYTES};
	uint8_t want[CONF_SPIN_BYTES];
	struct hal_kernel *spin;
	struct hal_point spun;
	struct hal_cmd cmd;
	struct scene s;

	STEP(begin(c, &s));
	STEP(conf_kernel(c, "spin", &spin));
	arg.buffer = s.b;
	cmd = hal_cmd_launch(spin, &arg, 1);
	for (uint32_t i = 0; i < 3; i++)
		STEP(conf_submit(c, s.other, &cmd, 1, &spun));
	STEP(conf_let_start(c));
	OK(hal_buffer_recolor(s.b, s.mover, s.high, NULL, &s.moved));
	STEP(conf_wait(c, s.moved));
	STEP(conf_wait(c, spun));
	conf_oracle_spin(want);
	STEP(conf_same(c, s.b, 0, want, sizeof(want)));
	STEP(intact(c, &s, 64));
	/* And a kernel finds it where it is now. */
	OK(hal_buffer_write(s.b, 0, (const uint8_t[64]){0}, 64));
	STEP(conf_submit(c, s.other, &cmd, 1, &spun));
	STEP(conf_wait(c, spun));
	STEP(conf_same(c, s.b, 0, want, sizeof(want)));
	return intact(c, &s, 64);
}

/* What the device keeps of a queue that is suspended ends first, too. */
static int waits_for_kept(struct conf *c)
{
	struct hal_point go = {.value = 1}, spun, quiet;
	struct hal_arg arg = {.bytes = CONF_SPIN_BYTES};
	uint8_t want[CONF_SPIN_BYTES];
	struct hal_kernel *spin;
	struct hal_cmd cmd;
	struct scene s;

	STEP(begin(c, &s));
	if (!(c->info.suspend_modes & 1u << HAL_SUSPEND_FOLD))
		return conf_unsupported(c, "no suspend by FOLD");
	STEP(conf_timeline(c, &go.timeline));
	STEP(conf_kernel(c, "spin", &spin));
	cmd = hal_cmd_barrier();
	STEP(conf_submit_ws(c, s.mover, &cmd, 1, &go, NULL, NULL));
	OK(hal_buffer_recolor(s.b, s.mover, s.high, NULL, &s.moved));
	arg.buffer = s.b;
	cmd = hal_cmd_launch(spin, &arg, 1);
	STEP(conf_submit(c, s.other, &cmd, 1, &spun));
	STEP(conf_let_start(c));
	OK(hal_queue_suspend(s.other, HAL_SUSPEND_FOLD, &quiet));
	STEP(conf_wait(c, quiet));
	OK(hal_timeline_signal(go.timeline, 1));
	if (conf_virtual(c)) {
		CHECK(hal_device_poll(c->dev, 1000000) >= 0);
		ERR(hal_wait(&s.moved, 1, 0, 0), -ETIMEDOUT);
	}
	OK(hal_queue_resume(s.other));
	STEP(conf_wait(c, spun));
	STEP(conf_wait(c, s.moved));
	conf_oracle_spin(want);
	STEP(conf_same(c, s.b, 0, want, sizeof(want)));
	return intact(c, &s, 64);
}

/* What waits for room on the device when the move begins waits for the move as well: it
 * would come between the copy and the exchange. */
static int waits_for_room(struct conf *c)
{
	enum { CROWD = 4, EACH = 16 };
	struct hal_queue_desc qd = HAL_INIT(hal_queue_desc);
	struct hal_arg arg = {.bytes = CONF_SPIN_BYTES};
	struct hal_point done, last[CROWD];
	struct hal_queue *urgent, *next, *q;
	struct hal_kernel *spin;
	struct hal_cmd cmd;
	struct scene s;

	STEP(begin(c, &s));
	STEP(conf_kernel(c, "spin", &spin));
	STEP(conf_buffer(c, s.p, 64, &arg.buffer));
	qd.priority = 5;
	STEP(conf_queue_desc(c, s.p, &qd, &urgent));
	qd.priority = 3;
	STEP(conf_queue_desc(c, s.p, &qd, &next));
	for (uint32_t i = 0; i < CROWD; i++) {
		STEP(conf_queue(c, s.p, &q));
		for (uint32_t k = 0; k < EACH; k++) {
			cmd = hal_cmd_launch(spin, &arg, 1);
			STEP(conf_submit(c, q, &cmd, 1, &last[i]));
		}
	}
	STEP(conf_let_start(c));
	cmd = hal_cmd_fill(s.b, 0, 4096, 0x77);
	STEP(conf_submit(c, next, &cmd, 1, &done));
	STEP(conf_let_start(c));
	OK(hal_buffer_recolor(s.b, urgent, s.high, NULL, &s.moved));
	STEP(conf_wait(c, s.moved));
	STEP(conf_wait(c, done));
	for (uint32_t i = 0; i < CROWD; i++)
		STEP(conf_wait(c, last[i]));
	STEP(conf_filled(c, s.b, 0, 4096, 0x77));
	return intact(c, &s, 4096);
}

/* Two at once, in one another's queue. */
static int crosswise(struct conf *c)
{
	struct hal_buffer_desc d = HAL_INIT(hal_buffer_desc);
	struct hal_point moved, done;
	struct hal_buffer *a;
	struct hal_cmd cmd;
	struct scene s;

	STEP(begin(c, &s));
	d.bytes = BIG;
	d.color_mask = s.high;
	OK(hal_buffer_create(s.p, &d, &a));
	c->buffers[c->buffer_count++] = a;
	cmd = hal_cmd_fill(a, 0, BIG, 7);
	STEP(conf_submit(c, s.mover, &cmd, 1, NULL));
	OK(hal_buffer_recolor(s.b, s.mover, s.high, NULL, &s.moved));
	OK(hal_buffer_recolor(a, s.other, s.low, NULL, &moved));
	cmd = hal_cmd_copy(s.b, 0, a, 0, 4096);
	STEP(conf_submit(c, s.mover, &cmd, 1, NULL));
	cmd = hal_cmd_copy(a, 4096, s.b, 4096, 4096);
	STEP(conf_submit(c, s.other, &cmd, 1, &done));
	STEP(conf_wait(c, moved));
	STEP(conf_wait(c, done));
	OK(hal_wait(&(struct hal_point){hal_queue_get_timeline(s.mover), 3}, 1, 0,
		    conf_deadline(INT64_C(300) * 1000000000)));
	STEP(conf_filled(c, s.b, 0, 4096, 7));
	STEP(conf_filled(c, a, 0, 4096, 7));
	STEP(conf_filled(c, a, 8192, 4096, 7));
	return intact(c, &s, 4096);
}

/* Behind a failure of its queue nothing moves, and nobody waits for it. */
static int dropped(struct conf *c)
{
	struct hal_point done, bad;
	struct hal_arg arg = {.bytes = CONF_SPIN_BYTES};
	struct hal_buffer *elsewhere;
	struct hal_kernel *wild;
	struct hal_cmd cmd;
	struct hal_point go = {.value = 1};
	uint64_t before, after;
	struct scene s;

	STEP(begin(c, &s));
	STEP(conf_kernel(c, "wild", &wild));
	STEP(conf_timeline(c, &go.timeline));
	STEP(conf_buffer(c, s.p, 64, &elsewhere));
	arg.buffer = elsewhere;
	cmd = hal_cmd_launch(wild, &arg, 1);
	STEP(conf_submit_ws(c, s.mover, &cmd, 1, &go, NULL, &bad));
	STEP(used(c, &s, &before));
	OK(hal_buffer_recolor(s.b, s.mover, s.high, NULL, &s.moved));
	OK(hal_timeline_signal(go.timeline, 1));
	ERR(conf_wait_raw(bad), -EIO);
	/* The first error of a timeline is what all behind it get. */
	ERR(conf_wait_raw(s.moved), -EIO);
	cmd = hal_cmd_fill(s.b, 0, 64, 3);
	STEP(conf_submit(c, s.other, &cmd, 1, &done));
	STEP(conf_wait(c, done));
	STEP(conf_filled(c, s.b, 0, 64, 3));
	STEP(intact(c, &s, 64));
	STEP(used(c, &s, &after));
	EQ(after, before);
	OK(hal_buffer_recolor(s.b, s.other, s.high, NULL, &s.moved));
	STEP(conf_wait(c, s.moved));
	return intact(c, &s, 64);
}

/* Stopped in the middle of it, and on again; in between others wait. */
static int stopped(struct conf *c)
{
	struct hal_point quiet, done, late;
	struct hal_queue *newer;
	struct hal_cmd cmd;
	struct scene s;

	if (!(c->info.suspend_modes & 1u << HAL_SUSPEND_KILL))
		return conf_unsupported(c, "no suspend by KILL");
	if (!conf_virtual(c))
		return conf_unsupported(c, "the copy may be over before it is stopped");
	STEP(begin(c, &s));
	OK(hal_buffer_recolor(s.b, s.mover, s.high, NULL, &s.moved));
	STEP(conf_let_start(c));
	OK(hal_queue_suspend(s.mover, HAL_SUSPEND_KILL, &quiet));
	STEP(conf_wait(c, quiet));
	cmd = hal_cmd_fill(s.b, 0, 64, 9);
	STEP(conf_submit(c, s.other, &cmd, 1, &done));
	STEP(conf_queue(c, s.p, &newer));
	cmd = hal_cmd_fill(s.b, 64, 64, 10);
	STEP(conf_submit(c, newer, &cmd, 1, &late));
	ERR(hal_buffer_write(s.b, 0, &cmd, 4), -EBUSY);
	ERR(hal_buffer_read(s.b, 0, &cmd, 4), -EBUSY);
	ERR(hal_buffer_recolor(s.b, s.other, s.low, NULL, NULL), -EBUSY);
	if (conf_virtual(c)) {
		CHECK(hal_device_poll(c->dev, 1000000) >= 0);
		ERR(hal_wait(&s.moved, 1, 0, 0), -ETIMEDOUT);
		ERR(hal_wait(&done, 1, 0, 0), -ETIMEDOUT);
		ERR(hal_wait(&late, 1, 0, 0), -ETIMEDOUT);
	}
	OK(hal_queue_resume(s.mover));
	STEP(conf_wait(c, done));
	STEP(conf_wait(c, late));
	OK(hal_wait(&s.moved, 1, 0, 0));
	STEP(conf_filled(c, s.b, 0, 64, 9));
	STEP(conf_filled(c, s.b, 64, 64, 10));
	return intact(c, &s, 128);
}

/* Suspended for good, and destroyed with the move in it: the buffer is anybody's again.
 */
static int never_gone_on(struct conf *c)
{
	struct hal_point quiet, done;
	uint64_t before, after;
	struct hal_cmd cmd;
	struct scene s;

	if (!(c->info.suspend_modes & 1u << HAL_SUSPEND_KILL))
		return conf_unsupported(c, "no suspend by KILL");
	STEP(begin(c, &s));
	STEP(used(c, &s, &before));
	OK(hal_buffer_recolor(s.b, s.mover, s.high, NULL, &s.moved));
	STEP(conf_let_start(c));
	cmd = hal_cmd_fill(s.b, 0, 64, 5);
	STEP(conf_submit(c, s.other, &cmd, 1, &done));
	OK(hal_queue_suspend(s.mover, HAL_SUSPEND_KILL, &quiet));
	STEP(conf_wait(c, quiet));
	STEP(conf_queue_gone(c, s.mover));
	STEP(conf_wait(c, done));
	STEP(conf_filled(c, s.b, 0, 64, 5));
	STEP(used(c, &s, &after));
	EQ(after, before);
	return intact(c, &s, 64);
}

/* The buffer is destroyed behind it, and its memory comes back, all of it. */
static int destroyed(struct conf *c)
{
	uint64_t before, after;
	struct scene s;

	STEP(begin(c, &s));
	STEP(used(c, &s, &before));
	OK(hal_buffer_recolor(s.b, s.mover, s.high, NULL, &s.moved));
	STEP(conf_buffer_gone(c, s.b));
	STEP(conf_wait(c, s.moved));
	STEP(used(c, &s, &after));
	EQ(after, before - BIG);
	return 0;
}

static int refused(struct conf *c)
{
	static const uint8_t nothing[64];
	struct hal_buffer *large;
	struct hal_queue *stranger;
	struct hal_partition *p;
	uint64_t before, after;
	struct scene s;

	STEP(begin(c, &s));
	STEP(used(c, &s, &before));
	ERR(hal_buffer_recolor(s.b, s.mover, 4, NULL, NULL), -EINVAL);
	ERR(hal_buffer_recolor(s.b, s.mover, 0, nothing, NULL), -EINVAL);
	STEP(conf_share(c, 1, 2, &p));
	STEP(conf_queue(c, p, &stranger));
	ERR(hal_buffer_recolor(s.b, stranger, s.high, NULL, NULL), -EPERM);
	STEP(conf_buffer(c, s.p,
			 c->info.memory_bytes / c->info.colors * 9 / 8 / 65536 * 65536,
			 &large));
	ERR(hal_buffer_recolor(large, s.mover, s.high, NULL, NULL), -ENOSPC);
	STEP(conf_buffer_gone(c, large));
	STEP(used(c, &s, &after));
	EQ(after, before);
	return intact(c, &s, 0);
}

/* In a world of its own. */
static int neighbour_time(struct conf *c, bool moving, uint64_t *ns)
{
	struct hal_partition_info i = HAL_INIT(hal_partition_info);
	struct hal_arg arg = {.bytes = CONF_SPIN_BYTES};
	struct hal_stats t = HAL_INIT(hal_stats);
	struct hal_partition *p;
	struct hal_kernel *spin;
	struct hal_point done;
	struct hal_queue *q;
	struct hal_cmd cmd;
	struct scene s;

	EQ(conf_close(c), CONF_PASS);
	STEP(conf_open(c));
	STEP(conf_share(c, 0, 2, &s.p));
	STEP(conf_share(c, 1, 2, &p));
	OK(hal_partition_get_info(s.p, &i));
	STEP(in_two(c, i.color_mask, &s));
	STEP(conf_queue(c, p, &q));
	STEP(conf_buffer(c, p, 64, &arg.buffer));
	STEP(conf_kernel(c, "spin", &spin));
	cmd = hal_cmd_launch(spin, &arg, 1);
	STEP(conf_submit(c, q, &cmd, 1, &done));
	if (moving)
		OK(hal_buffer_recolor(s.b, s.mover, s.high, NULL, &s.moved));
	STEP(conf_wait(c, done));
	if (moving)
		STEP(conf_wait(c, s.moved));
	OK(hal_queue_get_stats(q, &t));
	*ns = t.busy_ns;
	return intact(c, &s, 0);
}

/* Its neighbour, with units and channels of its own, takes the same time to the cycle. */
static int neighbour(struct conf *c)
{
	uint64_t alone, beside;

	if (!(c->info.caps & HAL_CAP_RECOLOR) || c->info.colors < 4)
		return conf_unsupported(c, "buffers cannot be recoloured");
	if (!conf_virtual(c))
		return conf_unsupported(c, "real time is never the same twice");
	STEP(neighbour_time(c, false, &alone));
	STEP(neighbour_time(c, true, &beside));
	EQ(beside, alone);
	return 0;
}

const struct conf_case conf_recolor_cases[] = {
	{"recolor.moves", moves},
	{"recolor.others_go_on", others_go_on},
	{"recolor.waits_for_users", waits_for_users},
	{"recolor.waits_for_kept", waits_for_kept},
	{"recolor.waits_for_room", waits_for_room},
	{"recolor.crosswise", crosswise},
	{"recolor.dropped", dropped},
	{"recolor.stopped", stopped},
	{"recolor.never_gone_on", never_gone_on},
	{"recolor.destroyed", destroyed},
	{"recolor.refused", refused},
	{"recolor.neighbour", neighbour},
	{NULL, NULL},
};

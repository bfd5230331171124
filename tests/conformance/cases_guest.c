/* SPDX-License-Identifier: Apache-2.0 */
/* Guests: partitions with memory of their own that take turns on another's units. */
#define _GNU_SOURCE
#include "conformance.h"

#include <errno.h>
#include <string.h>

/* A partition and what it computes: D = gemm(A, B). */
struct tenant {
	struct hal_partition *p;
	struct hal_queue *q;
	struct hal_buffer *a, *b, *d;
	int8_t want[CONF_GEMM_BYTES];
	struct hal_point done;
};

static int need(struct conf *c)
{
	if (c->info.guests_max == 0)
		return conf_unsupported(c, "partitions have units of their own");
	return 0;
}

static int guest_of(struct conf *c, struct hal_partition *host, struct hal_partition **p)
{
	struct hal_partition_desc d = HAL_INIT(hal_partition_desc);

	d.host = host;
	return conf_part(c, &d, p);
}

/* Data that is like nobody else's. */
static int furnish(struct conf *c, struct tenant *t, uint32_t seed)
{
	int8_t a[CONF_GEMM_BYTES], b[CONF_GEMM_BYTES];

	STEP(conf_queue(c, t->p, &t->q));
	STEP(conf_buffer(c, t->p, CONF_GEMM_BYTES, &t->a));
	STEP(conf_buffer(c, t->p, CONF_GEMM_BYTES, &t->b));
	STEP(conf_buffer(c, t->p, CONF_GEMM_BYTES, &t->d));
	conf_noise(a, sizeof(a), 2 * seed);
	conf_noise(b, sizeof(b), 2 * seed + 1);
	OK(hal_buffer_write(t->a, 0, a, sizeof(a)));
	OK(hal_buffer_write(t->b, 0, b, sizeof(b)));
	conf_oracle_gemm(t->want, a, b);
	return 0;
}

static int compute(struct conf *c, struct tenant *t)
{
	struct hal_arg args[] = {{.buffer = t->d, .bytes = CONF_GEMM_BYTES},
				 {.buffer = t->a, .bytes = CONF_GEMM_BYTES},
				 {.buffer = t->b, .bytes = CONF_GEMM_BYTES}};
	struct hal_kernel *k;
	struct hal_cmd cmd;

	STEP(conf_kernel(c, "gemm", &k));
	cmd = hal_cmd_launch(k, args, 3);
	cmd.flags |= HAL_CMD_REPLAYABLE;
	return conf_submit(c, t->q, &cmd, 1, &t->done);
}

static int computed(struct conf *c, struct tenant *t)
{
	STEP(conf_wait(c, t->done));
	return conf_same(c, t->d, 0, t->want, sizeof(t->want));
}

/* Host and guests, turn by turn, all with addresses that look the same to them. */
static int take_turns(struct conf *c)
{
	enum { TENANTS = 5, ROUNDS = 6 };
	struct hal_stats s = HAL_INIT(hal_stats), all = HAL_INIT(hal_stats);
	struct tenant t[TENANTS];
	uint64_t busy = 0;

	STEP(need(c));
	STEP(conf_whole(c, &t[0].p));
	for (uint32_t i = 1; i < TENANTS; i++)
		STEP(guest_of(c, t[0].p, &t[i].p));
	for (uint32_t i = 0; i < TENANTS; i++)
		STEP(furnish(c, &t[i], i));
	for (uint32_t n = 0; n < ROUNDS; n++)
		for (uint32_t i = 0; i < TENANTS; i++)
			STEP(compute(c, &t[i]));
	for (uint32_t i = 0; i < TENANTS; i++)
		STEP(computed(c, &t[i]));
	for (uint32_t i = 0; i < TENANTS; i++) {
		OK(hal_partition_get_stats(t[i].p, &s));
		EQ(s.submitted, ROUNDS);
		EQ(s.completed, ROUNDS);
		OK(hal_queue_get_stats(t[i].q, &s));
		busy += s.busy_ns;
	}
	/* They ran one after the other. */
	OK(hal_device_get_stats(c->dev, &all));
	EQ(all.completed, TENANTS * ROUNDS);
	if (conf_virtual(c))
		EQ(all.busy_ns, busy);
	return 0;
}

static int info(struct conf *c)
{
	struct hal_partition_info h = HAL_INIT(hal_partition_info), g = h;
	struct hal_partition_desc d = HAL_INIT(hal_partition_desc);
	struct hal_partition *host, *guest;

	STEP(need(c));
	STEP(conf_share(c, 0, 2, &host));
	d.host = host;
	d.memory_bytes = 65536;
	memcpy(d.name, "lodger", 7);
	STEP(conf_part(c, &d, &guest));
	OK(hal_partition_get_info(host, &h));
	OK(hal_partition_get_info(guest, &g));
	CHECK(g.index >= c->info.partitions_max &&
	      g.index < c->info.partitions_max + c->info.guests_max);
	EQ(g.units, h.units);
	EQ(g.rows, h.rows);
	EQ(g.cols, h.cols);
	EQ(g.row, h.row);
	EQ(g.col, h.col);
	EQ(g.color_mask, h.color_mask);
	EQ(g.compute_isolation, h.compute_isolation);
	EQ(g.memory_bytes, 65536);
	CHECK(strcmp(g.name, "lodger") == 0);
	return 0;
}

static int own_memory(struct conf *c)
{
	struct hal_buffer_desc bd = HAL_INIT(hal_buffer_desc);
	struct hal_partition_desc d = HAL_INIT(hal_partition_desc);
	struct hal_submit_desc s = HAL_INIT(hal_submit_desc);
	struct tenant host, guest;
	struct hal_buffer *b;
	struct hal_cmd cmd;

	STEP(need(c));
	STEP(conf_whole(c, &host.p));
	d.host = host.p;
	d.memory_bytes = 32768;
	STEP(conf_part(c, &d, &guest.p));
	STEP(furnish(c, &host, 1));
	STEP(furnish(c, &guest, 2));
	s.cmds = &cmd;
	s.cmd_count = 1;
	cmd = hal_cmd_fill(host.d, 0, 64, 1);
	ERR(hal_submit(guest.q, &s, NULL), -EPERM);
	cmd = hal_cmd_fill(guest.d, 0, 64, 1);
	ERR(hal_submit(host.q, &s, NULL), -EPERM);
	/* Its quota is its own. */
	bd.bytes = 32768;
	ERR(hal_buffer_create(guest.p, &bd, &b), -ENOSPC);
	STEP(conf_buffer(c, host.p, 32768, &b));
	return 0;
}

/* A fault of one is nobody else's. */
static int fault(struct conf *c)
{
	struct tenant host, good;
	struct hal_partition *bad;
	struct hal_kernel *wild;
	struct hal_point lost;
	struct hal_buffer *b;
	struct hal_queue *q;
	struct hal_arg arg;
	struct hal_cmd cmd;

	STEP(need(c));
	STEP(conf_whole(c, &host.p));
	STEP(guest_of(c, host.p, &bad));
	STEP(guest_of(c, host.p, &good.p));
	STEP(furnish(c, &host, 1));
	STEP(furnish(c, &good, 2));
	STEP(conf_queue(c, bad, &q));
	STEP(conf_buffer(c, bad, 64, &b));
	STEP(conf_kernel(c, "wild", &wild));
	arg = (struct hal_arg){.buffer = b, .bytes = 64};
	cmd = hal_cmd_launch(wild, &arg, 1);
	STEP(compute(c, &host));
	STEP(conf_submit(c, q, &cmd, 1, &lost));
	STEP(compute(c, &good));
	ERR(conf_wait_raw(lost), -EIO);
	STEP(computed(c, &host));
	STEP(computed(c, &good));
	STEP(compute(c, &host));
	return computed(c, &host);
}

/* One that stands inside a command gives the units to others, and finds its memory. */
static int stopped(struct conf *c)
{
	static const uint32_t modes[] = {HAL_SUSPEND_DRAIN, HAL_SUSPEND_FOLD,
					 HAL_SUSPEND_KILL};
	uint8_t want[CONF_SPIN_BYTES];
	struct tenant host, a, b;
	struct hal_kernel *spin;
	struct hal_point done, quiet;
	struct hal_arg arg;
	struct hal_cmd cmd;

	STEP(need(c));
	STEP(conf_whole(c, &host.p));
	STEP(guest_of(c, host.p, &a.p));
	STEP(guest_of(c, host.p, &b.p));
	STEP(furnish(c, &host, 1));
	STEP(furnish(c, &a, 2));
	STEP(furnish(c, &b, 3));
	STEP(conf_kernel(c, "spin", &spin));
	conf_oracle_spin(want);
	for (uint32_t i = 0; i < 3; i++) {
		if (!(c->info.suspend_modes & 1u << modes[i]))
			continue;
		arg = (struct hal_arg){.buffer = a.d, .bytes = CONF_SPIN_BYTES};
		cmd = hal_cmd_launch(spin, &arg, 1);
		cmd.flags |= HAL_CMD_REPLAYABLE;
		STEP(conf_submit(c, a.q, &cmd, 1, &done));
		STEP(compute(c, &a));
		CHECK(hal_device_poll(c->dev, CONF_SPIN_NS / 2) >= 0);
		OK(hal_queue_suspend(a.q, modes[i], &quiet));
		STEP(conf_wait(c, quiet));
		for (uint32_t n = 0; n < 3; n++) {
			STEP(compute(c, &b));
			STEP(compute(c, &host));
		}
		STEP(computed(c, &b));
		STEP(computed(c, &host));
		OK(hal_queue_resume(a.q));
		STEP(compute(c, &b));
		STEP(conf_wait(c, done));
		STEP(computed(c, &a));
		STEP(computed(c, &b));
	}
	return 0;
}

/* The border of the host moves under all of them. */
static int moved(struct conf *c)
{
	struct hal_partition_desc d = HAL_INIT(hal_partition_desc);
	struct hal_partition_info i = HAL_INIT(hal_partition_info);
	struct hal_point there;
	struct tenant host, a;

	STEP(need(c));
	if (!(c->info.caps & HAL_CAP_RESIZE_IDLE))
		return conf_unsupported(c, "partitions do not move");
	STEP(conf_whole(c, &host.p));
	STEP(guest_of(c, host.p, &a.p));
	STEP(furnish(c, &host, 1));
	STEP(furnish(c, &a, 2));
	STEP(compute(c, &a));
	STEP(computed(c, &a));
	d.col = (uint16_t)(c->info.unit_cols - 1);
	d.rows = d.cols = 1;
	ERR(hal_partition_resize(a.p, &d, &there), -EINVAL);
	OK(hal_partition_resize(host.p, &d, &there));
	STEP(conf_wait(c, there));
	OK(hal_partition_get_info(a.p, &i));
	EQ(i.units, 1);
	EQ(i.col, d.col);
	STEP(compute(c, &a));
	STEP(compute(c, &host));
	STEP(computed(c, &a));
	return computed(c, &host);
}

/* A guest goes, others come, and the host goes last. */
static int come_and_go(struct conf *c)
{
	enum { TIMES = 300 };
	struct tenant host, stays;

	STEP(need(c));
	STEP(conf_whole(c, &host.p));
	STEP(guest_of(c, host.p, &stays.p));
	STEP(furnish(c, &stays, 1));
	for (uint32_t i = 0; i < TIMES; i++) {
		struct tenant t;

		STEP(guest_of(c, host.p, &t.p));
		STEP(furnish(c, &t, 2 + i));
		STEP(compute(c, &t));
		if (i % 3 == 0)
			STEP(compute(c, &stays));
		STEP(computed(c, &t));
		STEP(conf_queue_gone(c, t.q));
		STEP(conf_buffer_gone(c, t.a));
		STEP(conf_buffer_gone(c, t.b));
		STEP(conf_buffer_gone(c, t.d));
		STEP(conf_part_gone(c, t.p));
	}
	STEP(computed(c, &stays));
	ERR(hal_partition_destroy(host.p), -EBUSY);
	return 0;
}

static int refused(struct conf *c)
{
	struct hal_partition_desc d = HAL_INIT(hal_partition_desc);
	struct hal_partition *host, *guest, *p;

	STEP(conf_whole(c, &host));
	d.host = host;
	if (c->info.guests_max == 0) {
		ERR(hal_partition_create(c->dev, &d, &p), -ENOTSUP);
		return need(c);
	}
	STEP(conf_part(c, &d, &guest));
	d.units_floor = 1;
	ERR(hal_partition_create(c->dev, &d, &p), -EINVAL);
	d.units_floor = 0;
	d.rows = d.cols = 1;
	ERR(hal_partition_create(c->dev, &d, &p), -EINVAL);
	d.rows = d.cols = 0;
	d.host = guest;
	ERR(hal_partition_create(c->dev, &d, &p), -EINVAL);
	d.host = (struct hal_partition *)c->dev;
	ERR(hal_partition_create(c->dev, &d, &p), -EINVAL);
	d.host = host;
	if (c->info.caps & HAL_CAP_RESIZE_IDLE)
		ERR(hal_partition_resize(host, &d, NULL), -EINVAL);
	if (c->info.colors == 0) {
		d.color_mask = 1;
		ERR(hal_partition_create(c->dev, &d, &p), -EINVAL);
	}
	if (c->info.compute_isolation < HAL_ISOLATION_ENFORCED) {
		d.color_mask = 0;
		d.min_isolation = HAL_ISOLATION_ENFORCED;
		ERR(hal_partition_create(c->dev, &d, &p), -ENOTSUP);
	}
	return 0;
}

/* Some of the host's channels, and no others. */
static int colors(struct conf *c)
{
	struct hal_partition_desc d = HAL_INIT(hal_partition_desc);
	struct hal_partition_info i = HAL_INIT(hal_partition_info);
	struct hal_partition *p;
	struct tenant host, a;

	STEP(need(c));
	if (c->info.colors < 3)
		return conf_unsupported(c, "no channels to choose from");
	d.units_floor = 1;
	d.color_mask = 3;
	STEP(conf_part(c, &d, &host.p));
	d = (struct hal_partition_desc)HAL_INIT(hal_partition_desc);
	d.host = host.p;
	d.color_mask = 4;
	ERR(hal_partition_create(c->dev, &d, &p), -EINVAL);
	d.color_mask = 2;
	STEP(conf_part(c, &d, &a.p));
	OK(hal_partition_get_info(a.p, &i));
	EQ(i.color_mask, 2);
	STEP(furnish(c, &host, 1));
	STEP(furnish(c, &a, 2));
	STEP(compute(c, &host));
	STEP(compute(c, &a));
	STEP(compute(c, &host));
	STEP(computed(c, &a));
	return computed(c, &host);
}

const struct conf_case conf_guest_cases[] = {
	{"guest.take_turns", take_turns},   {"guest.info", info},
	{"guest.own_memory", own_memory},   {"guest.fault", fault},
	{"guest.stopped", stopped},         {"guest.moved", moved},
	{"guest.come_and_go", come_and_go}, {"guest.refused", refused},
	{"guest.colors", colors},           {NULL, NULL},
};

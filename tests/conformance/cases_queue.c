/* SPDX-License-Identifier: Apache-2.0 */
/* Queues: what each command does, order, what happens when one is full. */
#define _GNU_SOURCE
#include "conformance.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A partition of the whole device and a queue in it. */
static int start(struct conf *c, struct hal_partition **p, struct hal_queue **q)
{
	STEP(conf_whole(c, p));
	return conf_queue(c, *p, q);
}

static int empty_submission(struct conf *c)
{
	struct hal_partition *p;
	struct hal_queue *q;
	struct hal_point done;

	STEP(start(c, &p, &q));
	STEP(conf_submit(c, q, NULL, 0, &done));
	EQ(done.value, 1);
	CHECK(done.timeline == hal_queue_get_timeline(q));
	STEP(conf_wait(c, done));
	EQ(hal_timeline_get_value(done.timeline, NULL), 1);
	return 0;
}

static int nop(struct conf *c)
{
	struct hal_partition *p;
	struct hal_queue *q;
	struct hal_point done;
	struct hal_cmd cmd = hal_cmd_of(HAL_OP_NOP, 0);

	STEP(start(c, &p, &q));
	STEP(conf_submit(c, q, &cmd, 1, &done));
	return conf_wait(c, done);
}

static int copy(struct conf *c)
{
	static const struct {
		uint32_t dst, src, bytes;
	} at[] = {{0, 0, 4096},     {0, 64, 64},  {1, 0, 1},    {3, 5, 7},
		  {100, 333, 1001}, {4095, 0, 1}, {0, 4095, 1}, {17, 17, 4079}};
	struct hal_partition *p;
	struct hal_buffer *a, *b;
	struct hal_queue *q;
	struct hal_point done;
	struct hal_cmd cmd;
	uint8_t from[4096], to[4096];
	size_t i;

	STEP(start(c, &p, &q));
	STEP(conf_buffer(c, p, 4096, &a));
	STEP(conf_buffer(c, p, 4096, &b));
	conf_noise(from, 4096, 1);
	conf_noise(to, 4096, 2);
	OK(hal_buffer_write(a, 0, from, 4096));
	OK(hal_buffer_write(b, 0, to, 4096));
	for (i = 0; i < sizeof(at) / sizeof(at[0]); i++) {
		cmd = hal_cmd_copy(b, at[i].dst, a, at[i].src, at[i].bytes);
		STEP(conf_submit(c, q, &cmd, 1, &done));
		STEP(conf_wait(c, done));
		memcpy(to + at[i].dst, from + at[i].src, at[i].bytes);
		STEP(conf_same(c, b, 0, to, 4096));
	}
	return conf_same(c, a, 0, from, 4096);
}

static int copy_large(struct conf *c)
{
	enum { BYTES = 300007 };
	struct hal_partition *p;
	struct hal_buffer *a, *b;
	struct hal_queue *q;
	struct hal_point done;
	struct hal_cmd cmd;
	uint8_t *data;
	int r;

	STEP(start(c, &p, &q));
	STEP(conf_buffer(c, p, BYTES, &a));
	STEP(conf_buffer(c, p, BYTES, &b));
	data = malloc(BYTES);
	CHECK(data);
	conf_noise(data, BYTES, 3);
	r = hal_buffer_write(a, 0, data, BYTES) ? CONF_FAIL : 0;
	cmd = hal_cmd_copy(b, 0, a, 0, BYTES);
	if (!r)
		r = conf_submit(c, q, &cmd, 1, &done);
	if (!r)
		r = conf_wait(c, done);
	if (!r)
		r = conf_same(c, b, 0, data, BYTES);
	free(data);
	return r;
}

static int fill(struct conf *c)
{
	struct hal_partition *p;
	struct hal_buffer *b;
	struct hal_queue *q;
	struct hal_point done;
	struct hal_cmd cmd[3];

	STEP(start(c, &p, &q));
	STEP(conf_buffer(c, p, 5000, &b));
	cmd[0] = hal_cmd_fill(b, 0, 5000, 0x11223344);
	cmd[1] = hal_cmd_fill(b, 4, 4, 0xffffffff);
	cmd[2] = hal_cmd_fill(b, 4000, 1000, 0x00000001);
	STEP(conf_submit(c, q, cmd, 3, &done));
	STEP(conf_wait(c, done));
	STEP(conf_filled(c, b, 0, 4, 0x11223344));
	STEP(conf_filled(c, b, 4, 4, 0xffffffff));
	STEP(conf_filled(c, b, 8, 3992, 0x11223344));
	return conf_filled(c, b, 4000, 1000, 1);
}

static int launch_copy(struct conf *c)
{
	struct hal_partition *p;
	struct hal_buffer *a, *b;
	struct hal_queue *q;
	struct hal_point done;
	struct hal_arg args[2];
	struct hal_kernel *k;
	struct hal_cmd cmd;
	uint8_t data[CONF_COPY_BYTES];

	STEP(start(c, &p, &q));
	STEP(conf_buffer(c, p, CONF_COPY_BYTES, &a));
	STEP(conf_buffer(c, p, CONF_COPY_BYTES, &b));
	STEP(conf_kernel(c, "copy", &k));
	conf_noise(data, sizeof(data), 4);
	OK(hal_buffer_write(a, 0, data, sizeof(data)));
	args[0] = (struct hal_arg){.buffer = b};
	args[1] = (struct hal_arg){.buffer = a};
	cmd = hal_cmd_launch(k, args, 2);
	STEP(conf_submit(c, q, &cmd, 1, &done));
	memset(args, 0xff, sizeof(args)); /* read by hal_submit, not after */
	STEP(conf_wait(c, done));
	return conf_same(c, b, 0, data, sizeof(data));
}

/* gemm and add: D of random A and B, by the oracle. */
static int binary(struct conf *c, const char *name, uint32_t bytes,
		  void (*oracle)(int8_t *, const int8_t *, const int8_t *), uint32_t seed)
{
	struct hal_partition *p;
	struct hal_buffer *buf[3];
	struct hal_queue *q;
	struct hal_point done;
	struct hal_arg args[3];
	struct hal_kernel *k;
	struct hal_cmd cmd;
	int8_t a[CONF_GEMM_BYTES], b[CONF_GEMM_BYTES], d[CONF_GEMM_BYTES];
	uint32_t i, round;

	STEP(start(c, &p, &q));
	STEP(conf_kernel(c, name, &k));
	for (i = 0; i < 3; i++) {
		STEP(conf_buffer(c, p, bytes, &buf[i]));
		args[i] = (struct hal_arg){.buffer = buf[i]};
	}
	for (round = 0; round < 4; round++) {
		conf_noise(a, bytes, seed + round);
		conf_noise(b, bytes, seed + round + 100);
		if (round == 2) /* the corners of the range */
			memset(a, -128, bytes);
		if (round >= 2)
			memset(b, round == 2 ? -128 : 127, bytes);
		OK(hal_buffer_write(buf[1], 0, a, bytes));
		OK(hal_buffer_write(buf[2], 0, b, bytes));
		cmd = hal_cmd_launch(k, args, 3);
		STEP(conf_submit(c, q, &cmd, 1, &done));
		STEP(conf_wait(c, done));
		oracle(d, a, b);
		STEP(conf_same(c, buf[0], 0, d, bytes));
	}
	return 0;
}

static int launch_gemm(struct conf *c)
{
	return binary(c, "gemm", CONF_GEMM_BYTES, conf_oracle_gemm, 10);
}

static int launch_add(struct conf *c)
{
	return binary(c, "add", CONF_ADD_BYTES, conf_oracle_add, 20);
}

/* All three operands in one buffer, at offsets. */
static int launch_offsets(struct conf *c)
{
	enum { AT_A = 2048, AT_B = 8192, AT_D = 12288, ALL = 16384 };
	struct hal_partition *p;
	struct hal_buffer *buf;
	struct hal_queue *q;
	struct hal_point done;
	struct hal_arg args[3];
	struct hal_kernel *k;
	struct hal_cmd cmd;
	int8_t all[ALL];

	STEP(start(c, &p, &q));
	STEP(conf_kernel(c, "gemm", &k));
	STEP(conf_buffer(c, p, ALL, &buf));
	conf_noise(all, ALL, 30);
	OK(hal_buffer_write(buf, 0, all, ALL));
	args[0] = (struct hal_arg){buf, AT_D, CONF_GEMM_BYTES};
	args[1] = (struct hal_arg){buf, AT_A, CONF_GEMM_BYTES};
	args[2] = (struct hal_arg){buf, AT_B, CONF_GEMM_BYTES};
	cmd = hal_cmd_launch(k, args, 3);
	STEP(conf_submit(c, q, &cmd, 1, &done));
	STEP(conf_wait(c, done));
	conf_oracle_gemm(all + AT_D, all + AT_A, all + AT_B);
	return conf_same(c, buf, 0, all, ALL);
}

static int spin(struct conf *c)
{
	struct hal_partition *p;
	struct hal_buffer *b;
	struct hal_queue *q;
	struct hal_point done;
	struct hal_arg arg;
	struct hal_kernel *k;
	struct hal_cmd cmd;
	uint8_t want[CONF_SPIN_BYTES];
	uint64_t before;

	STEP(start(c, &p, &q));
	STEP(conf_kernel(c, "spin", &k));
	STEP(conf_buffer(c, p, CONF_SPIN_BYTES, &b));
	arg = (struct hal_arg){.buffer = b};
	cmd = hal_cmd_launch(k, &arg, 1);
	before = hal_device_get_time(c->dev);
	STEP(conf_submit(c, q, &cmd, 1, &done));
	STEP(conf_wait(c, done));
	CHECK(hal_device_get_time(c->dev) - before >= CONF_SPIN_NS);
	conf_oracle_spin(want);
	return conf_same(c, b, 0, want, sizeof(want));
}

struct order {
	uint32_t count;
	uint32_t seen[64];
};

struct order_item {
	struct order *order;
	uint32_t id;
};

static void note(void *user)
{
	struct order_item *i = user;

	if (i->order->count < 64)
		i->order->seen[i->order->count] = i->id;
	i->order->count++;
}

static int host(struct conf *c)
{
	struct order order = {0};
	struct order_item items[32];
	struct hal_partition *p;
	struct hal_queue *q;
	struct hal_point done;
	struct hal_cmd cmd[4];
	uint32_t i;

	STEP(start(c, &p, &q));
	for (i = 0; i < 32; i++) {
		items[i] = (struct order_item){&order, i};
		cmd[i % 4] = hal_cmd_host(note, &items[i]);
		if (i % 4 == 3)
			STEP(conf_submit(c, q, cmd, 4, &done));
	}
	STEP(conf_wait(c, done));
	EQ(order.count, 32);
	for (i = 0; i < 32; i++)
		EQ(order.seen[i], i);
	return 0;
}

/* A host callback stands between what comes before and after it. */
struct peek {
	struct hal_buffer *b;
	uint32_t value;
	int err;
};

static void peek(void *user)
{
	struct peek *p = user;

	p->err = hal_buffer_read(p->b, 0, &p->value, 4);
}

static int host_between(struct conf *c)
{
	struct hal_partition *p;
	struct hal_buffer *b;
	struct hal_queue *q;
	struct hal_point done;
	struct hal_cmd cmd[4];
	struct peek seen[2];

	STEP(start(c, &p, &q));
	STEP(conf_buffer(c, p, 64, &b));
	seen[0] = seen[1] = (struct peek){.b = b};
	cmd[0] = hal_cmd_fill(b, 0, 64, 0x01010101);
	cmd[1] = hal_cmd_host(peek, &seen[0]);
	cmd[2] = hal_cmd_fill(b, 0, 64, 0x02020202);
	cmd[3] = hal_cmd_host(peek, &seen[1]);
	STEP(conf_submit(c, q, cmd, 4, &done));
	STEP(conf_wait(c, done));
	OK(seen[0].err);
	OK(seen[1].err);
	EQ(seen[0].value, 0x01010101);
	EQ(seen[1].value, 0x02020202);
	return 0;
}

static int barrier(struct conf *c)
{
	struct hal_partition *p;
	struct hal_buffer *b;
	struct hal_queue *q;
	struct hal_point done;
	struct hal_cmd cmd[4];

	STEP(start(c, &p, &q));
	STEP(conf_buffer(c, p, 64, &b));
	cmd[0] = hal_cmd_fill(b, 0, 64, 1);
	cmd[1] = hal_cmd_barrier();
	cmd[2] = hal_cmd_fill(b, 0, 32, 2);
	cmd[3] = hal_cmd_barrier();
	STEP(conf_submit(c, q, cmd, 4, &done));
	STEP(conf_wait(c, done));
	STEP(conf_filled(c, b, 0, 32, 2));
	return conf_filled(c, b, 32, 32, 1);
}

static int timestamp(struct conf *c)
{
	struct hal_partition *p;
	struct hal_buffer *b, *s;
	struct hal_queue *q;
	struct hal_point done;
	struct hal_kernel *k;
	struct hal_arg arg;
	struct hal_cmd cmd[4];
	uint64_t t[3], before;

	if (!(c->info.caps & HAL_CAP_TIMESTAMP))
		return conf_unsupported(c, "no timestamps");
	STEP(start(c, &p, &q));
	STEP(conf_buffer(c, p, 64, &b));
	STEP(conf_buffer(c, p, CONF_SPIN_BYTES, &s));
	STEP(conf_kernel(c, "spin", &k));
	arg = (struct hal_arg){.buffer = s};
	cmd[0] = hal_cmd_timestamp(b, 0);
	cmd[1] = hal_cmd_launch(k, &arg, 1);
	cmd[2] = hal_cmd_timestamp(b, 8);
	cmd[3] = hal_cmd_timestamp(b, 56);
	before = hal_device_get_time(c->dev);
	STEP(conf_submit(c, q, cmd, 4, &done));
	STEP(conf_wait(c, done));
	OK(hal_buffer_read(b, 0, &t[0], 8));
	OK(hal_buffer_read(b, 8, &t[1], 8));
	OK(hal_buffer_read(b, 56, &t[2], 8));
	CHECK(before <= t[0]);
	CHECK(t[1] - t[0] >= CONF_SPIN_NS);
	CHECK(t[1] <= t[2]);
	CHECK(t[2] <= hal_device_get_time(c->dev));
	return 0;
}

/* Each step reads what the one before wrote. */
static int in_order(struct conf *c)
{
	enum { N = 12 };
	struct hal_partition *p;
	struct hal_buffer *b[N + 1];
	struct hal_queue *q;
	struct hal_point done;
	struct hal_kernel *k;
	struct hal_arg args[2];
	struct hal_cmd cmd;
	uint8_t data[CONF_COPY_BYTES];
	uint32_t i;

	STEP(start(c, &p, &q));
	STEP(conf_kernel(c, "copy", &k));
	for (i = 0; i <= N; i++)
		STEP(conf_buffer(c, p, CONF_COPY_BYTES, &b[i]));
	conf_noise(data, sizeof(data), 40);
	OK(hal_buffer_write(b[0], 0, data, sizeof(data)));
	for (i = 0; i < N; i++) {
		args[0] = (struct hal_arg){.buffer = b[i + 1]};
		args[1] = (struct hal_arg){.buffer = b[i]};
		if (i % 2)
			cmd = hal_cmd_launch(k, args, 2);
		else
			cmd = hal_cmd_copy(b[i + 1], 0, b[i], 0, CONF_COPY_BYTES);
		STEP(conf_submit(c, q, &cmd, 1, &done));
	}
	EQ(done.value, N);
	STEP(conf_wait(c, done));
	return conf_same(c, b[N], 0, data, sizeof(data));
}

static int sixteen_commands(struct conf *c)
{
	struct hal_submit_desc d = HAL_INIT(hal_submit_desc);
	struct hal_partition *p;
	struct hal_buffer *b;
	struct hal_queue *q;
	struct hal_point done;
	struct hal_cmd cmd[HAL_COMMANDS_MAX + 1];
	uint32_t i;

	STEP(start(c, &p, &q));
	STEP(conf_buffer(c, p, 64 * (HAL_COMMANDS_MAX + 1), &b));
	for (i = 0; i <= HAL_COMMANDS_MAX; i++)
		cmd[i] = hal_cmd_fill(b, 64 * (uint64_t)i, 64, i + 1);
	STEP(conf_submit(c, q, cmd, HAL_COMMANDS_MAX, &done));
	STEP(conf_wait(c, done));
	for (i = 0; i < HAL_COMMANDS_MAX; i++)
		STEP(conf_filled(c, b, 64 * (uint64_t)i, 64, i + 1));
	d.cmds = cmd;
	d.cmd_count = HAL_COMMANDS_MAX + 1;
	ERR(hal_submit(q, &d, &done), -EINVAL);
	return 0;
}

/* A caller whose hal_cmd is longer than ours. */
static int stride(struct conf *c)
{
	struct wide {
		struct hal_cmd cmd;
		uint64_t more[3];
	} wide[3];
	struct hal_submit_desc d = HAL_INIT(hal_submit_desc);
	struct hal_partition *p;
	struct hal_buffer *b;
	struct hal_queue *q;
	struct hal_point done;
	uint32_t i;

	STEP(start(c, &p, &q));
	STEP(conf_buffer(c, p, 192, &b));
	memset(wide, 0, sizeof(wide));
	for (i = 0; i < 3; i++)
		wide[i].cmd = hal_cmd_fill(b, 64 * (uint64_t)i, 64, 7 + i);
	d.cmds = &wide[0].cmd;
	d.cmd_count = 3;
	d.cmd_stride = sizeof(wide[0]);
	OK(hal_submit(q, &d, &done));
	STEP(conf_wait(c, done));
	for (i = 0; i < 3; i++)
		STEP(conf_filled(c, b, 64 * (uint64_t)i, 64, 7 + i));
	return 0;
}

static void count_up(void *user)
{
	++*(uint32_t *)user;
}

/* A full queue says so at once, keeps what it has taken and takes more later. */
static int full(struct conf *c)
{
	enum { MANY = 100000 };
	struct hal_submit_desc d = HAL_INIT(hal_submit_desc);
	struct hal_partition *p;
	struct hal_queue *q;
	struct hal_timeline *gate;
	struct hal_point done = {0}, open;
	struct hal_cmd cmd;
	uint32_t ran = 0, taken = 0;
	int err = 0;

	STEP(start(c, &p, &q));
	STEP(conf_timeline(c, &gate));
	open = (struct hal_point){gate, 1};
	cmd = hal_cmd_host(count_up, &ran);
	d.cmds = &cmd;
	d.cmd_count = 1;
	d.waits = &open;
	d.wait_count = 1;
	while (taken < MANY) {
		err = hal_submit(q, &d, &done);
		if (err)
			break;
		taken++;
		EQ(done.value, taken);
	}
	EQ(err, -EAGAIN);
	CHECK(taken >= 2);
	EQ(ran, 0);
	OK(hal_timeline_signal(gate, 1));
	STEP(conf_wait(c, (struct hal_point){hal_queue_get_timeline(q), taken}));
	EQ(ran, taken);
	OK(hal_submit(q, &d, &done));
	STEP(conf_wait(c, done));
	EQ(ran, taken + 1);
	return 0;
}

/* More work than any ring holds, submitted as room appears. */
static int many_rounds(struct conf *c)
{
	enum { ROUNDS = 3000 };
	struct hal_submit_desc d = HAL_INIT(hal_submit_desc);
	struct hal_partition *p;
	struct hal_queue *q;
	struct hal_point done = {0};
	struct hal_cmd cmd;
	uint32_t ran = 0, i;
	int err;

	STEP(start(c, &p, &q));
	cmd = hal_cmd_host(count_up, &ran);
	d.cmds = &cmd;
	d.cmd_count = 1;
	for (i = 0; i < ROUNDS; i++) {
		err = hal_submit(q, &d, &done);
		if (err == -EAGAIN) {
			STEP(conf_wait(c, done));
			err = hal_submit(q, &d, &done);
		}
		OK(err);
	}
	STEP(conf_wait(c, done));
	EQ(done.value, ROUNDS);
	EQ(ran, ROUNDS);
	return 0;
}

/* A bad last command: none of the good ones before it happens. */
static int all_or_nothing(struct conf *c)
{
	struct hal_submit_desc d = HAL_INIT(hal_submit_desc);
	struct hal_partition *p;
	struct hal_buffer *b;
	struct hal_queue *q;
	struct hal_point done;
	struct hal_cmd cmd[3];

	STEP(start(c, &p, &q));
	STEP(conf_buffer(c, p, 64, &b));
	cmd[0] = hal_cmd_fill(b, 0, 64, 5);
	STEP(conf_submit(c, q, cmd, 1, &done));
	STEP(conf_wait(c, done));
	cmd[0] = hal_cmd_fill(b, 0, 64, 6);
	cmd[1] = hal_cmd_fill(b, 0, 32, 7);
	cmd[2] = hal_cmd_fill(b, 0, 68, 8);
	d.cmds = cmd;
	d.cmd_count = 3;
	ERR(hal_submit(q, &d, &done), -EINVAL);
	STEP(conf_submit(c, q, NULL, 0, &done));
	EQ(done.value, 2);
	STEP(conf_wait(c, done));
	return conf_filled(c, b, 0, 64, 5);
}

static int two_queues(struct conf *c)
{
	struct hal_partition *p;
	struct hal_buffer *b[2];
	struct hal_queue *q[2];
	struct hal_point done[2];
	struct hal_cmd cmd;
	uint32_t i, k;

	STEP(conf_whole(c, &p));
	for (i = 0; i < 2; i++) {
		STEP(conf_queue(c, p, &q[i]));
		STEP(conf_buffer(c, p, 256, &b[i]));
	}
	for (k = 0; k < 8; k++) {
		for (i = 0; i < 2; i++) {
			cmd = hal_cmd_fill(b[i], 0, 256, 100 * i + k);
			STEP(conf_submit(c, q[i], &cmd, 1, &done[i]));
		}
	}
	OK(hal_wait(done, 2, 0, conf_deadline(INT64_C(300) * 1000000000)));
	STEP(conf_filled(c, b[0], 0, 256, 7));
	return conf_filled(c, b[1], 0, 256, 107);
}

/* What waits behind one gate goes by priority once it opens: the core's choice, as the
 * device is given one command at a time. */
static int priority(struct conf *c)
{
	static const char *const options[] = {"hal.partition_inflight=1", NULL};
	struct hal_queue_desc low = HAL_INIT(hal_queue_desc);
	struct hal_queue_desc high = HAL_INIT(hal_queue_desc);
	struct hal_partition *p;
	struct hal_buffer *s, *t;
	struct hal_queue *q[2];
	struct hal_kernel *k;
	struct hal_timeline *gate;
	struct hal_point done[2], open;
	struct hal_arg arg;
	struct hal_cmd cmd[2];
	uint64_t at[2];

	if (!(c->info.caps & HAL_CAP_TIMESTAMP))
		return conf_unsupported(c, "no timestamps");
	if (!conf_virtual(c))
		return conf_unsupported(c, "only virtual time starts two at once");
	/* A daemon has options of its own; the devices that serve one have few in flight.
	 */
	if (strncmp(c->target, "hald:", 5) != 0) {
		OK(hal_close(c->dev));
		c->dev = NULL;
		OK(hal_open(c->target, options, &c->dev));
	}
	STEP(conf_whole(c, &p));
	low.priority = -1;
	high.priority = 5;
	STEP(conf_queue_desc(c, p, &low, &q[0]));
	STEP(conf_queue_desc(c, p, &high, &q[1]));
	STEP(conf_buffer(c, p, CONF_SPIN_BYTES, &s));
	STEP(conf_buffer(c, p, 16, &t));
	STEP(conf_kernel(c, "spin", &k));
	STEP(conf_timeline(c, &gate));
	open = (struct hal_point){gate, 1};
	arg = (struct hal_arg){.buffer = s};
	cmd[0] = hal_cmd_launch(k, &arg, 1);
	cmd[1] = hal_cmd_timestamp(t, 0);
	STEP(conf_submit_ws(c, q[0], cmd, 2, &open, NULL, &done[0]));
	cmd[1] = hal_cmd_timestamp(t, 8);
	STEP(conf_submit_ws(c, q[1], cmd, 2, &open, NULL, &done[1]));
	OK(hal_timeline_signal(gate, 1));
	OK(hal_wait(done, 2, 0, conf_deadline(INT64_C(300) * 1000000000)));
	OK(hal_buffer_read(t, 0, at, 16));
	CHECK(at[1] < at[0]);
	return 0;
}

static int destroy_busy(struct conf *c)
{
	struct hal_partition *p;
	struct hal_queue *q;
	struct hal_timeline *gate;
	struct hal_point open, done;

	STEP(start(c, &p, &q));
	STEP(conf_timeline(c, &gate));
	open = (struct hal_point){gate, 1};
	STEP(conf_submit_ws(c, q, NULL, 0, &open, NULL, &done));
	ERR(hal_queue_destroy(q), -EBUSY);
	OK(hal_timeline_signal(gate, 1));
	STEP(conf_wait(c, done));
	STEP(conf_queue_gone(c, q));
	OK(hal_queue_destroy(NULL));
	return 0;
}

/* The same submissions take the same device time, every time. */
static int reproducible(struct conf *c)
{
	struct hal_partition *p;
	struct hal_buffer *b;
	struct hal_queue *q;
	struct hal_point done;
	struct hal_cmd cmd[3];
	uint64_t t[2][2];
	int round;

	if (!conf_virtual(c))
		return conf_unsupported(c, "time is the real one");
	if (!(c->info.caps & HAL_CAP_TIMESTAMP))
		return conf_unsupported(c, "no timestamps");
	for (round = 0; round < 2; round++) {
		if (round) {
			STEP(conf_close(c));
			STEP(conf_open(c));
		}
		STEP(start(c, &p, &q));
		STEP(conf_buffer(c, p, 8192, &b));
		cmd[0] = hal_cmd_timestamp(b, 0);
		cmd[1] = hal_cmd_fill(b, 64, 8128, 9);
		cmd[2] = hal_cmd_timestamp(b, 8);
		STEP(conf_submit(c, q, cmd, 3, &done));
		STEP(conf_wait(c, done));
		OK(hal_buffer_read(b, 0, t[round], 16));
	}
	EQ(t[0][0], t[1][0]);
	EQ(t[0][1], t[1][1]);
	return 0;
}

const struct conf_case conf_queue_cases[] = {
	{"queue.empty_submission", empty_submission},
	{"queue.nop", nop},
	{"queue.copy", copy},
	{"queue.copy_large", copy_large},
	{"queue.fill", fill},
	{"queue.launch_copy", launch_copy},
	{"queue.launch_gemm", launch_gemm},
	{"queue.launch_add", launch_add},
	{"queue.launch_offsets", launch_offsets},
	{"queue.spin", spin},
	{"queue.host", host},
	{"queue.host_between", host_between},
	{"queue.barrier", barrier},
	{"queue.timestamp", timestamp},
	{"queue.in_order", in_order},
	{"queue.sixteen_commands", sixteen_commands},
	{"queue.stride", stride},
	{"queue.full", full},
	{"queue.many_rounds", many_rounds},
	{"queue.all_or_nothing", all_or_nothing},
	{"queue.two_queues", two_queues},
	{"queue.priority", priority},
	{"queue.destroy_busy", destroy_busy},
	{"queue.reproducible", reproducible},
	{NULL, NULL},
};

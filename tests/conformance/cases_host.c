/* SPDX-License-Identifier: Apache-2.0 */
/* Host memory: copies from it and to it in the order of queues. */
#define _GNU_SOURCE
#include "conformance.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <hal/ext/memory.h>

enum { BIG = 100000, RING = 4, ROUNDS = 24 };

/* A partition with a queue, a buffer, and host memory of the same size. */
struct scene {
	struct hal_partition *p;
	struct hal_queue *q;
	struct hal_buffer *b, *host;
	uint8_t *at;
};

static int host_memory(struct conf *c, struct hal_partition *p, uint64_t bytes,
		       struct hal_buffer **host, uint8_t **at)
{
	void *address = NULL;

	OK(hal_host_alloc(p, bytes, host, &address));
	c->buffers[c->buffer_count++] = *host;
	CHECK(address);
	*at = address;
	return 0;
}

static int has_host(struct conf *c)
{
	return c->info.caps & HAL_CAP_HOST_COPY
		       ? 0
		       : conf_unsupported(c, "queues cannot copy to host memory");
}

static int in_partition(struct conf *c, struct scene *s)
{
	STEP(conf_queue(c, s->p, &s->q));
	STEP(conf_buffer(c, s->p, BIG, &s->b));
	return host_memory(c, s->p, BIG, &s->host, &s->at);
}

static int begin(struct conf *c, struct scene *s)
{
	STEP(has_host(c));
	STEP(conf_whole(c, &s->p));
	return in_partition(c, s);
}

static int run(struct conf *c, struct hal_queue *q, const struct hal_cmd *cmds,
	       uint32_t n)
{
	struct hal_point done;

	STEP(conf_submit(c, q, cmds, n, &done));
	return conf_wait(c, done);
}

/* bytes there and back, at these offsets. */
static int there_and_back(struct conf *c, const struct scene *s, uint64_t from,
			  uint64_t to, uint64_t bytes)
{
	uint8_t *data = malloc(bytes);
	struct hal_cmd cmd;
	int r;

	CHECK(data);
	conf_noise(data, bytes, (uint32_t)(from + to + bytes));
	memcpy(s->at + from, data, bytes);
	cmd = hal_cmd_write(s->b, to, s->host, from, bytes);
	r = run(c, s->q, &cmd, 1);
	if (!r)
		r = conf_same(c, s->b, to, data, bytes);
	memset(s->at, 0x5a, BIG);
	cmd = hal_cmd_read(s->host, to, s->b, to, bytes);
	if (!r)
		r = run(c, s->q, &cmd, 1);
	if (!r && memcmp(s->at + to, data, bytes) != 0)
		r = conf_fail(c, __FILE__, __LINE__, "%llu bytes from %llu to %llu",
			      (unsigned long long)bytes, (unsigned long long)from,
			      (unsigned long long)to);
	for (uint64_t i = 0; !r && i < BIG; i++)
		if ((i < to || i >= to + bytes) && s->at[i] != 0x5a)
			r = conf_fail(c, __FILE__, __LINE__, "byte %llu is written, too",
				      (unsigned long long)i);
	free(data);
	return r;
}

static int sizes_and_offsets(struct conf *c, const struct scene *s)
{
	static const uint32_t bytes[] = {1, 3, 63, 64, 4095, 4097, 32768, 65535, 99990};
	static const uint32_t at[] = {0, 1, 5, 10};

	for (size_t i = 0; i < sizeof(bytes) / sizeof(bytes[0]); i++)
		STEP(there_and_back(c, s, at[i % 4], at[(i + 1) % 4], bytes[i]));
	return there_and_back(c, s, 70001, 3, 29999);
}

static int write_read(struct conf *c)
{
	static const uint8_t zero[BIG];
	struct scene s;

	STEP(begin(c, &s));
	CHECK(memcmp(s.at, zero, BIG) == 0);
	return sizes_and_offsets(c, &s);
}

static uint8_t memory[2 * BIG];

static int need_register(struct conf *c)
{
	STEP(has_host(c));
	return c->info.caps & HAL_CAP_HOST_REGISTER
		       ? 0
		       : conf_unsupported(c, "host memory cannot be registered");
}

static int registered(struct conf *c)
{
	struct hal_cmd cmd;
	struct scene s, over;

	STEP(need_register(c));
	STEP(begin(c, &s));
	memset(memory, 7, sizeof(memory));
	s.at = memory + 13;
	OK(hal_host_register(s.p, s.at, BIG, &s.host));
	c->buffers[c->buffer_count++] = s.host;
	CHECK(s.at[0] == 7 && s.at[BIG - 1] == 7);
	STEP(sizes_and_offsets(c, &s));
	/* Another region with some of the same bytes. */
	over = s;
	over.at = s.at + 1000;
	OK(hal_host_register(s.p, over.at, 64, &over.host));
	c->buffers[c->buffer_count++] = over.host;
	memset(over.at, 0x31, 64);
	cmd = hal_cmd_write(s.b, 0, s.host, 1000, 64);
	STEP(run(c, s.q, &cmd, 1));
	STEP(conf_filled(c, s.b, 0, 64, 0x31313131));
	cmd = hal_cmd_read(over.host, 0, s.b, 64, 64);
	STEP(run(c, s.q, &cmd, 1));
	return conf_same(c, s.b, 64, over.at, 64);
}

/* One submission: each command sees what those before it have done, in host memory,
 * too. */
static int in_order(struct conf *c)
{
	struct hal_arg args[2];
	struct hal_cmd cmd[8];
	struct hal_kernel *k;
	struct hal_buffer *d;
	struct scene s;
	uint8_t want[CONF_COPY_BYTES];

	STEP(begin(c, &s));
	STEP(conf_kernel(c, "copy", &k));
	STEP(conf_buffer(c, s.p, CONF_COPY_BYTES, &d));
	for (uint32_t i = 0; i < ROUNDS; i++) {
		conf_noise(s.at, CONF_COPY_BYTES, i);
		memcpy(want, s.at, sizeof(want));
		args[0] = (struct hal_arg){.buffer = d};
		args[1] = (struct hal_arg){.buffer = s.b, .bytes = CONF_COPY_BYTES};
		cmd[0] = hal_cmd_write(s.b, 0, s.host, 0, CONF_COPY_BYTES);
		cmd[1] = hal_cmd_launch(k, args, 2);
		cmd[2] = hal_cmd_read(s.host, 50001, d, 0, CONF_COPY_BYTES);
		cmd[3] = hal_cmd_fill(s.b, 0, CONF_COPY_BYTES, i);
		cmd[4] = hal_cmd_fill(d, 0, CONF_COPY_BYTES, i + 1);
		cmd[5] = hal_cmd_write(s.b, 8192, s.host, 50001, CONF_COPY_BYTES);
		cmd[6] = hal_cmd_read(s.host, 60000, s.b, 8192, CONF_COPY_BYTES);
		cmd[7] = hal_cmd_read(s.host, 0, s.b, 0, CONF_COPY_BYTES);
		STEP(run(c, s.q, cmd, 8));
		CHECK(memcmp(s.at + 50001, want, sizeof(want)) == 0);
		CHECK(memcmp(s.at + 60000, want, sizeof(want)) == 0);
		CHECK(s.at[0] == i && s.at[1] == 0 && s.at[CONF_COPY_BYTES - 4] == i);
		STEP(conf_same(c, s.b, 8192, want, sizeof(want)));
		STEP(conf_filled(c, d, 0, CONF_COPY_BYTES, i + 1));
	}
	return 0;
}

/* Bytes go from one place of host memory to the next, through a buffer. */
static int around(struct conf *c, const struct scene *s)
{
	enum { STEPS = 60, BYTES = 1500 };
	struct hal_cmd cmd[STEPS];
	uint8_t want[BYTES];

	conf_noise(s->at, BYTES, 17);
	memcpy(want, s->at, BYTES);
	for (uint32_t i = 0; i < STEPS; i += 2) {
		cmd[i] = hal_cmd_write(s->b, i, s->host, (uint64_t)BYTES * i / 2, BYTES);
		cmd[i + 1] = hal_cmd_read(s->host, (uint64_t)BYTES * (i / 2 + 1), s->b, i,
					  BYTES);
	}
	STEP(run(c, s->q, cmd, STEPS));
	for (uint32_t i = 0; i <= STEPS / 2; i++)
		CHECK(memcmp(s->at + (size_t)BYTES * i, want, BYTES) == 0);
	return 0;
}

static int chain(struct conf *c)
{
	struct scene s;

	STEP(begin(c, &s));
	STEP(around(c, &s));
	if (!(c->info.caps & HAL_CAP_HOST_REGISTER))
		return 0;
	s.at = memory + 1;
	OK(hal_host_register(s.p, s.at, BIG, &s.host));
	c->buffers[c->buffer_count++] = s.host;
	return around(c, &s);
}

/* ---- pipelines -------------------------------------------------------------------- */

struct pipe {
	struct hal_partition *p;
	struct hal_queue *up, *compute, *down;
	struct hal_buffer *in[RING], *out[RING], *from[RING], *to[RING];
	uint8_t *from_at[RING], *to_at[RING];
	struct hal_point done[RING];
	struct hal_kernel *k;
};

static int make_pipe(struct conf *c, struct pipe *x)
{
	STEP(conf_queue(c, x->p, &x->up));
	STEP(conf_queue(c, x->p, &x->compute));
	STEP(conf_queue(c, x->p, &x->down));
	STEP(conf_kernel(c, "copy", &x->k));
	for (uint32_t i = 0; i < RING; i++) {
		STEP(conf_buffer(c, x->p, CONF_COPY_BYTES, &x->in[i]));
		STEP(conf_buffer(c, x->p, CONF_COPY_BYTES, &x->out[i]));
		STEP(host_memory(c, x->p, CONF_COPY_BYTES, &x->from[i], &x->from_at[i]));
		STEP(host_memory(c, x->p, CONF_COPY_BYTES, &x->to[i], &x->to_at[i]));
	}
	return 0;
}

static int round_out(struct conf *c, struct pipe *x, uint32_t i)
{
	uint8_t want[CONF_COPY_BYTES];

	STEP(conf_wait(c, x->done[i % RING]));
	conf_noise(want, sizeof(want), i);
	CHECK(memcmp(x->to_at[i % RING], want, sizeof(want)) == 0);
	memset(x->to_at[i % RING], 0, sizeof(want));
	return 0;
}

static int round_in(struct conf *c, struct pipe *x, uint32_t i)
{
	uint32_t at = i % RING;
	struct hal_arg args[2] = {{.buffer = x->out[at]}, {.buffer = x->in[at]}};
	struct hal_point up, ran;
	struct hal_cmd cmd;

	conf_noise(x->from_at[at], CONF_COPY_BYTES, i);
	cmd = hal_cmd_write(x->in[at], 0, x->from[at], 0, CONF_COPY_BYTES);
	STEP(conf_submit(c, x->up, &cmd, 1, &up));
	cmd = hal_cmd_launch(x->k, args, 2);
	STEP(conf_submit_ws(c, x->compute, &cmd, 1, &up, NULL, &ran));
	cmd = hal_cmd_read(x->to[at], 0, x->out[at], 0, CONF_COPY_BYTES);
	return conf_submit_ws(c, x->down, &cmd, 1, &ran, NULL, &x->done[at]);
}

static int pump(struct conf *c, struct pipe *x, uint32_t pipes, uint32_t rounds)
{
	for (uint32_t i = 0; i < rounds + RING; i++)
		for (uint32_t k = 0; k < pipes; k++) {
			if (i >= RING)
				STEP(round_out(c, &x[k], i - RING));
			if (i < rounds)
				STEP(round_in(c, &x[k], i));
		}
	return 0;
}

static int pipeline(struct conf *c)
{
	struct pipe x;

	STEP(has_host(c));
	STEP(conf_whole(c, &x.p));
	STEP(make_pipe(c, &x));
	return pump(c, &x, 1, ROUNDS);
}

static int guests(struct conf *c)
{
	struct hal_partition_desc d = HAL_INIT(hal_partition_desc);
	struct pipe x[3];

	STEP(has_host(c));
	if (!c->info.guests_max)
		return conf_unsupported(c, "partitions have no guests");
	STEP(conf_whole(c, &x[0].p));
	d.host = x[0].p;
	for (uint32_t i = 0; i < 3; i++) {
		if (i)
			STEP(conf_part(c, &d, &x[i].p));
		STEP(make_pipe(c, &x[i]));
	}
	return pump(c, x, 3, ROUNDS);
}

/* Partitions come and go while copies of another one are under way. */
static int partitions_come(struct conf *c)
{
	uint32_t most = c->info.partitions_max < 4 ? c->info.partitions_max : 4;
	struct scene s[4];
	struct hal_cmd cmd[RING];
	struct hal_point done[4];
	uint8_t data[BIG];

	STEP(has_host(c));
	if (most > conf_units(c))
		most = conf_units(c);
	if (most < 2)
		return conf_unsupported(c, "one partition");
	conf_noise(data, BIG, 3);
	for (uint32_t round = 0; round < 3; round++) {
		for (uint32_t i = 0; i < most; i++) {
			STEP(conf_share(c, i, most, &s[i].p));
			STEP(in_partition(c, &s[i]));
			memcpy(s[i].at, data, BIG);
			for (uint32_t k = 0; k < RING; k++)
				cmd[k] = hal_cmd_write(s[i].b, k, s[i].host, k,
						       BIG - RING);
			STEP(conf_submit(c, s[i].q, cmd, RING, &done[i]));
			STEP(conf_let_start(c));
		}
		for (uint32_t i = 0; i < most; i++) {
			STEP(conf_wait(c, done[i]));
			STEP(conf_same(c, s[i].b, 0, data, BIG - 1));
		}
		for (uint32_t i = 0; i < most; i++) {
			STEP(conf_queue_gone(c, s[i].q));
			STEP(conf_buffer_gone(c, s[i].b));
			STEP(conf_buffer_gone(c, s[i].host));
			STEP(conf_part_gone(c, s[i].p));
		}
	}
	return 0;
}

/* ---- stops ------------------------------------------------------------------------ */

/* A queue that copies in and out, stopped again and again. */
static int stopped_by(struct conf *c, const struct scene *s, uint32_t mode)
{
	struct hal_stats t = HAL_INIT(hal_stats);
	uint8_t data[BIG];
	struct hal_point done, quiet;
	struct hal_cmd cmd[4];

	conf_noise(data, BIG, 11 + mode);
	memcpy(s->at, data, BIG);
	cmd[0] = hal_cmd_write(s->b, 0, s->host, 0, BIG / 2);
	cmd[1] = hal_cmd_read(s->host, BIG / 2, s->b, 0, BIG / 2);
	cmd[2] = hal_cmd_fill(s->b, 0, 4096, mode);
	cmd[3] = hal_cmd_write(s->b, BIG / 2, s->host, BIG / 2, BIG / 2);
	STEP(conf_submit(c, s->q, cmd, 4, &done));
	for (uint32_t i = 0; i < 20; i++) {
		CHECK(hal_device_poll(c->dev, conf_virtual(c) ? 200 + 37 * i : 0) >= 0);
		OK(hal_queue_suspend(s->q, mode, &quiet));
		STEP(conf_wait(c, quiet));
		OK(hal_queue_resume(s->q));
	}
	STEP(conf_wait(c, done));
	STEP(conf_filled(c, s->b, 0, 4096, mode));
	STEP(conf_same(c, s->b, 4096, data + 4096, BIG / 2 - 4096));
	STEP(conf_same(c, s->b, BIG / 2, data, BIG / 2));
	CHECK(memcmp(s->at, data, BIG / 2) == 0);
	CHECK(memcmp(s->at + BIG / 2, data, BIG / 2) == 0);
	OK(hal_queue_get_stats(s->q, &t));
	EQ(t.submitted, t.completed);
	EQ(t.failed + t.dropped, 0);
	return 0;
}

static int stopped(struct conf *c)
{
	struct scene s;

	STEP(begin(c, &s));
	for (uint32_t mode = 0; mode < 4; mode++)
		if (c->info.suspend_modes >> mode & 1)
			STEP(stopped_by(c, &s, mode));
	return 0;
}

/* For good, with copies under way and behind: they are dropped, and their memory goes. */
static int dropped(struct conf *c)
{
	struct hal_partition_info i = HAL_INIT(hal_partition_info);
	struct hal_point done, quiet;
	struct hal_cmd cmd[4];
	struct scene s;
	int err;

	STEP(has_host(c));
	if (!(c->info.suspend_modes >> HAL_SUSPEND_KILL & 1))
		return conf_unsupported(c, "no suspend mode KILL");
	STEP(conf_whole(c, &s.p));
	for (uint32_t round = 0; round < 6; round++) {
		STEP(in_partition(c, &s));
		cmd[0] = hal_cmd_write(s.b, 0, s.host, 0, BIG);
		cmd[1] = hal_cmd_fill(s.b, 0, 64, 1);
		cmd[2] = hal_cmd_read(s.host, 0, s.b, 0, BIG);
		cmd[3] = hal_cmd_write(s.b, 0, s.host, 0, BIG);
		STEP(conf_submit(c, s.q, cmd, 4, &done));
		CHECK(hal_device_poll(c->dev, conf_virtual(c) ? 900 * round : 0) >= 0);
		OK(hal_queue_suspend(s.q, HAL_SUSPEND_KILL | HAL_SUSPEND_FINAL, &quiet));
		STEP(conf_buffer_gone(c, s.host));
		STEP(conf_wait(c, quiet));
		err = conf_wait_raw(done); /* a fast device may have ended it */
		CHECK(err == -ECANCELED || (err == 0 && round > 0) || !conf_virtual(c));
		STEP(conf_queue_gone(c, s.q));
		STEP(conf_buffer_gone(c, s.b));
	}
	OK(hal_partition_get_info(s.p, &i));
	EQ(i.memory_used, 0);
	return 0;
}

/* Behind a command that fails in the array nothing is copied. */
static int failed(struct conf *c)
{
	struct hal_point done;
	struct hal_cmd cmd[4];
	struct hal_kernel *wild;
	struct hal_arg arg;
	struct scene s;

	STEP(begin(c, &s));
	STEP(conf_kernel(c, "wild", &wild));
	if (!(c->info.caps & HAL_CAP_FAULT_CONTAINED))
		return conf_unsupported(c, "a fault is not contained");
	arg = (struct hal_arg){.buffer = s.b, .bytes = 64};
	memset(s.at, 1, BIG);
	cmd[0] = hal_cmd_write(s.b, 0, s.host, 0, BIG);
	cmd[1] = hal_cmd_launch(wild, &arg, 1);
	cmd[2] = hal_cmd_read(s.host, 0, s.b, 0, BIG);
	cmd[3] = hal_cmd_write(s.b, 0, s.host, 0, BIG);
	memset(s.at, 2, BIG);
	STEP(conf_submit(c, s.q, cmd, 4, &done));
	EQ(conf_wait_raw(done), -EIO);
	CHECK(s.at[0] == 2 && s.at[BIG - 1] == 2);
	/* Others go on. */
	STEP(conf_queue(c, s.p, &s.q));
	return there_and_back(c, &s, 0, 1, 5000);
}

/* ---- lifetimes -------------------------------------------------------------------- */

static int destroyed(struct conf *c)
{
	struct hal_point gate, done;
	struct hal_timeline *t;
	struct hal_cmd cmd;
	uint8_t data[BIG];
	struct scene s;

	STEP(begin(c, &s));
	STEP(conf_timeline(c, &t));
	gate = (struct hal_point){t, 1};
	conf_noise(s.at, BIG, 5);
	memcpy(data, s.at, BIG);
	cmd = hal_cmd_write(s.b, 0, s.host, 0, BIG);
	STEP(conf_submit_ws(c, s.q, &cmd, 1, &gate, NULL, &done));
	STEP(conf_buffer_gone(c, s.host)); /* its memory stays */
	STEP(host_memory(c, s.p, BIG, &s.host, &s.at));
	memset(s.at, 9, BIG);
	OK(hal_timeline_signal(t, 1));
	STEP(conf_wait(c, done));
	return conf_same(c, s.b, 0, data, BIG);
}

static int unregistered(struct conf *c)
{
	struct hal_buffer *host;
	struct hal_sequence *seq;
	struct hal_point gate, done;
	struct hal_timeline *t;
	struct hal_cmd cmd;
	struct scene s;

	STEP(need_register(c));
	STEP(begin(c, &s));
	STEP(conf_timeline(c, &t));
	gate = (struct hal_point){t, 1};
	OK(hal_host_register(s.p, memory, BIG, &host));
	conf_noise(memory, BIG, 6);
	cmd = hal_cmd_write(s.b, 0, host, 0, BIG);
	STEP(conf_submit_ws(c, s.q, &cmd, 1, &gate, NULL, &done));
	ERR(hal_buffer_destroy(host), -EBUSY);
	OK(hal_timeline_signal(t, 1));
	STEP(conf_wait(c, done));
	STEP(conf_same(c, s.b, 0, memory, BIG));
	STEP(conf_sequence(c, s.p, &cmd, 1, &seq));
	ERR(hal_buffer_destroy(host), -EBUSY);
	OK(hal_sequence_submit(s.q, seq, NULL, &done));
	STEP(conf_sequence_gone(c, seq));
	STEP(conf_wait(c, done));
	/* The queue may hold later work that does not use it. */
	cmd = hal_cmd_fill(s.b, 0, 64, 1);
	gate.value = 2;
	STEP(conf_submit_ws(c, s.q, &cmd, 1, &gate, NULL, &done));
	OK(hal_buffer_destroy(host));
	OK(hal_timeline_signal(t, 2));
	return conf_wait(c, done);
}

static int recorded(struct conf *c)
{
	struct hal_sequence *seq;
	struct hal_point done;
	struct hal_cmd cmd[3];
	struct scene s;

	STEP(begin(c, &s));
	cmd[0] = hal_cmd_write(s.b, 0, s.host, 0, 4096);
	cmd[1] = hal_cmd_copy(s.b, 8192, s.b, 0, 4096);
	cmd[2] = hal_cmd_read(s.host, 8192, s.b, 8192, 4096);
	STEP(conf_sequence(c, s.p, cmd, 3, &seq));
	for (uint32_t i = 0; i < ROUNDS; i++) {
		conf_noise(s.at, 4096, i);
		OK(hal_sequence_submit(s.q, seq, NULL, &done));
		STEP(conf_wait(c, done));
		CHECK(memcmp(s.at, s.at + 8192, 4096) == 0);
	}
	return 0;
}

static int quota(struct conf *c)
{
	struct hal_partition_desc d = HAL_INIT(hal_partition_desc);
	struct hal_partition_info i = HAL_INIT(hal_partition_info);
	struct hal_buffer *host;
	struct hal_partition *p;
	void *at;

	STEP(has_host(c));
	d.units_floor = 1;
	d.memory_bytes = 1 << 20;
	STEP(conf_part(c, &d, &p));
	OK(hal_host_alloc(p, 600 << 10, &host, &at));
	OK(hal_partition_get_info(p, &i));
	EQ(i.memory_used, 600 << 10);
	EQ(hal_buffer_get_bytes(host), 600 << 10);
	ERR(hal_host_alloc(p, 600 << 10, &(struct hal_buffer *){NULL}, &at), -ENOSPC);
	OK(hal_buffer_destroy(host));
	OK(hal_partition_get_info(p, &i));
	EQ(i.memory_used, 0);
	return 0;
}

static int refuses(struct conf *c, struct hal_queue *q, const struct hal_cmd *cmd)
{
	struct hal_submit_desc d = HAL_INIT(hal_submit_desc);

	d.cmds = cmd;
	d.cmd_count = 1;
	ERR(hal_submit(q, &d, NULL), -EINVAL);
	return 0;
}

static int refused(struct conf *c)
{
	struct hal_buffer *other;
	struct hal_arg args[2];
	struct hal_kernel *k;
	struct hal_cmd cmd;
	struct scene s;
	uint8_t *at;
	void *map;

	STEP(begin(c, &s));
	STEP(conf_kernel(c, "copy", &k));
	STEP(host_memory(c, s.p, 4096, &other, &at));
	cmd = hal_cmd_fill(s.host, 0, 64, 1);
	STEP(refuses(c, s.q, &cmd));
	cmd = hal_cmd_copy(s.host, 0, other, 0, 64);
	STEP(refuses(c, s.q, &cmd));
	cmd = hal_cmd_copy(s.host, 0, s.host, 64, 64);
	STEP(refuses(c, s.q, &cmd));
	cmd = hal_cmd_write(s.b, 0, other, 1, 4096);
	STEP(refuses(c, s.q, &cmd));
	cmd = hal_cmd_read(other, UINT64_MAX, s.b, 0, 2);
	STEP(refuses(c, s.q, &cmd));
	cmd = hal_cmd_read(other, 0, s.b, 0, 0);
	STEP(refuses(c, s.q, &cmd));
	args[0] = (struct hal_arg){.buffer = s.b};
	args[1] = (struct hal_arg){.buffer = other};
	cmd = hal_cmd_launch(k, args, 2);
	STEP(refuses(c, s.q, &cmd));
	if (c->info.caps & HAL_CAP_TIMESTAMP) {
		cmd = hal_cmd_timestamp(other, 0);
		STEP(refuses(c, s.q, &cmd));
	}
	if (c->info.caps & HAL_CAP_MAP)
		ERR(hal_buffer_map(other, &map), -EINVAL);
	if (c->info.caps & HAL_CAP_RECOLOR)
		ERR(hal_buffer_recolor(other, s.q, 1, NULL, NULL), -EINVAL);
	ERR(hal_buffer_write(other, 0, "x", 1), -EINVAL);
	ERR(hal_buffer_read(other, 0, &map, 1), -EINVAL);
	ERR(hal_host_alloc(s.p, 0, &other, &map), -EINVAL);
	return 0;
}

/* Another tenant's. */
static int not_ones_own(struct conf *c)
{
	struct hal_submit_desc d = HAL_INIT(hal_submit_desc);
	struct hal_cmd cmd[2];
	struct scene a, b;

	STEP(has_host(c));
	STEP(conf_share(c, 0, 2, &a.p));
	STEP(conf_share(c, 1, 2, &b.p));
	STEP(in_partition(c, &a));
	STEP(in_partition(c, &b));
	d.cmds = cmd;
	d.cmd_count = 1;
	cmd[0] = hal_cmd_write(a.b, 0, b.host, 0, 64);
	ERR(hal_submit(a.q, &d, NULL), -EPERM);
	cmd[0] = hal_cmd_read(b.host, 0, a.b, 0, 64);
	ERR(hal_submit(a.q, &d, NULL), -EPERM);
	STEP(there_and_back(c, &a, 3, 4, 9999));
	return there_and_back(c, &b, 3, 4, 9999);
}

const struct conf_case conf_host_cases[] = {
	{"host.write_read", write_read},
	{"host.registered", registered},
	{"host.in_order", in_order},
	{"host.chain", chain},
	{"host.pipeline", pipeline},
	{"host.guests", guests},
	{"host.partitions_come", partitions_come},
	{"host.stopped", stopped},
	{"host.dropped", dropped},
	{"host.failed", failed},
	{"host.destroyed", destroyed},
	{"host.unregistered", unregistered},
	{"host.recorded", recorded},
	{"host.quota", quota},
	{"host.refused", refused},
	{"host.not_ones_own", not_ones_own},
	{NULL, NULL},
};

/* SPDX-License-Identifier: Apache-2.0 */
/* HAL_PARTITION_BIMODAL: more memory channels for a tenant that is alone. */
#define _GNU_SOURCE
#include "conformance.h"

#include <errno.h>
#include <string.h>

#include <hal/ext/memory.h>

enum { BIG = 64 << 10, PATTERN = 0x5ca7c4 };

/* A bimodal partition with a channel of its own, and another one that names none. */
struct scene {
	struct hal_partition *a, *b;
	struct hal_queue *q, *second, *other;
	struct hal_buffer *constant, *scratch, *out;
	struct hal_point go; /* other's work waits for it */
	struct hal_point others;
};

static int side(struct conf *c, uint32_t i, uint64_t colors, uint32_t flags,
		struct hal_partition **p)
{
	struct hal_partition_desc d = HAL_INIT(hal_partition_desc);
	uint32_t each = c->info.unit_cols / 2;

	if (c->info.caps & HAL_CAP_GRID) {
		d.rows = (uint16_t)c->info.unit_rows;
		d.cols = (uint16_t)each;
		d.col = (uint16_t)(i * each);
	} else {
		d.units_floor = 1;
	}
	d.color_mask = colors;
	d.flags = flags;
	return conf_part(c, &d, p);
}

static int buffer(struct conf *c, struct hal_partition *p, uint64_t bytes, uint32_t flags,
		  struct hal_buffer **b)
{
	struct hal_buffer_desc d = HAL_INIT(hal_buffer_desc);

	d.bytes = bytes;
	d.flags = flags;
	OK(hal_buffer_create(p, &d, b));
	c->buffers[c->buffer_count++] = *b;
	return 0;
}

static int write_noise(struct conf *c, struct hal_buffer *b, uint32_t seed)
{
	uint8_t data[BIG];

	conf_noise(data, sizeof(data), seed);
	OK(hal_buffer_write(b, 0, data, sizeof(data)));
	return 0;
}

static int same_noise(struct conf *c, struct hal_buffer *b, uint32_t seed)
{
	uint8_t data[BIG];

	conf_noise(data, sizeof(data), seed);
	return conf_same(c, b, 0, data, sizeof(data));
}

static int begin(struct conf *c, struct scene *s)
{
	if (!(c->info.caps & HAL_CAP_BIMODAL) || c->info.colors < 3 ||
	    c->info.partitions_max < 2 || c->info.unit_cols < 2)
		return conf_unsupported(c, "memory has one placement");
	memset(s, 0, sizeof(*s));
	STEP(side(c, 0, 1, HAL_PARTITION_BIMODAL, &s->a));
	STEP(side(c, 1, 0, 0, &s->b));
	STEP(conf_queue(c, s->a, &s->q));
	STEP(conf_queue(c, s->a, &s->second));
	STEP(conf_queue(c, s->b, &s->other));
	STEP(buffer(c, s->a, BIG, HAL_BUFFER_BIMODAL, &s->constant));
	STEP(buffer(c, s->a, BIG, HAL_BUFFER_BIMODAL | HAL_BUFFER_SCRATCH, &s->scratch));
	STEP(buffer(c, s->a, BIG, 0, &s->out));
	STEP(write_noise(c, s->constant, 1));
	return conf_timeline(c, &s->go.timeline);
}

/* So often it has changed. */
static int switched(struct conf *c, const struct scene *s, uint64_t n)
{
	struct hal_partition_memory_info i = HAL_INIT(hal_partition_memory_info);

	OK(hal_partition_get_memory_info(s->a, &i));
	EQ(i.switches, n);
	return 0;
}

/* The other partition has work from here on, until others_rest. */
static int others_work(struct conf *c, struct scene *s)
{
	struct hal_partition_info i = HAL_INIT(hal_partition_info);
	struct hal_cmd cmd = hal_cmd_barrier();

	s->go.value++;
	STEP(conf_submit_ws(c, s->other, &cmd, 1, &s->go, NULL, &s->others));
	OK(hal_partition_get_info(s->b, &i)); /* the engine has seen it */
	return 0;
}

static int others_rest(struct conf *c, struct scene *s)
{
	OK(hal_timeline_signal(s->go.timeline, s->go.value));
	return conf_wait(c, s->others);
}

/* The constant goes to out, by a submission of q. */
static int take(struct conf *c, struct scene *s, struct hal_queue *q,
		struct hal_point *done)
{
	struct hal_cmd cmd = hal_cmd_copy(s->out, 0, s->constant, 0, BIG);

	return conf_submit(c, q, &cmd, 1, done);
}

static int taken(struct conf *c, struct scene *s, uint32_t seed)
{
	struct hal_point done;

	STEP(take(c, s, s->q, &done));
	STEP(conf_wait(c, done));
	return same_noise(c, s->out, seed);
}

/* A submission finds what was written with seed, after so many changes. */
static int finds(struct conf *c, struct scene *s, uint32_t seed, uint64_t changes)
{
	STEP(taken(c, s, seed));
	STEP(switched(c, s, changes));
	return same_noise(c, s->constant, seed);
}

/* Each submission finds what the host has written, where it lies for it. */
static int follows(struct conf *c)
{
	uint32_t seed = 1;
	struct scene s;

	STEP(begin(c, &s));
	STEP(switched(c, &s, 0));
	for (uint32_t i = 0; i < 3; i++, seed++) {
		STEP(finds(c, &s, seed, 2 * i + 1));
		STEP(others_work(c, &s));
		STEP(finds(c, &s, seed, 2 * i + 2));
		STEP(write_noise(c, s.constant, seed + 1));
		STEP(finds(c, &s, seed + 1, 2 * i + 2));
		STEP(others_rest(c, &s));
	}
	STEP(finds(c, &s, seed, 7));
	STEP(write_noise(c, s.constant, seed + 1));
	STEP(others_work(c, &s));
	STEP(finds(c, &s, seed + 1, 8));
	return others_rest(c, &s);
}

/* A kernel's operands and result, in both. */
static int kernels(struct conf *c)
{
	int8_t a[CONF_GEMM_BYTES], b[CONF_GEMM_BYTES], want[CONF_GEMM_BYTES];
	struct hal_arg args[3] = {{.bytes = CONF_GEMM_BYTES}};
	struct hal_buffer *d;
	struct hal_kernel *gemm;
	struct hal_point done;
	struct hal_cmd cmds[2];
	struct scene s;

	STEP(begin(c, &s));
	STEP(conf_kernel(c, "gemm", &gemm));
	STEP(buffer(c, s.a, CONF_GEMM_BYTES, 0, &d));
	conf_noise(a, sizeof(a), 5);
	conf_noise(b, sizeof(b), 6);
	conf_oracle_gemm(want, a, b);
	OK(hal_buffer_write(s.scratch, 0, a, sizeof(a)));
	OK(hal_buffer_write(s.constant, 8192, b, sizeof(b)));
	args[0] = (struct hal_arg){s.scratch, 16384, CONF_GEMM_BYTES};
	args[1] = (struct hal_arg){s.scratch, 0, CONF_GEMM_BYTES};
	args[2] = (struct hal_arg){s.constant, 8192, CONF_GEMM_BYTES};
	cmds[0] = hal_cmd_launch(gemm, args, 3);
	cmds[1] = hal_cmd_copy(d, 0, s.scratch, 16384, CONF_GEMM_BYTES);
	for (uint32_t i = 0; i < 4; i++) {
		if (i % 2)
			STEP(others_work(c, &s));
		OK(hal_buffer_write(d, 0, a, sizeof(a)));
		STEP(conf_submit(c, s.q, cmds, 2, &done));
		STEP(conf_wait(c, done));
		STEP(conf_same(c, d, 0, want, sizeof(want)));
		STEP(switched(c, &s, i + 1));
		if (i % 2)
			STEP(others_rest(c, &s));
	}
	return 0;
}

/* What the device has when others come ends first, and what comes after it waits. */
static int waits(struct conf *c)
{
	struct hal_arg arg = {.bytes = CONF_SPIN_BYTES};
	uint8_t want[CONF_SPIN_BYTES];
	struct hal_point spun, done, also;
	struct hal_kernel *spin;
	struct hal_cmd cmd;
	struct scene s;

	STEP(begin(c, &s));
	STEP(conf_kernel(c, "spin", &spin));
	arg.buffer = s.scratch;
	cmd = hal_cmd_launch(spin, &arg, 1);
	STEP(taken(c, &s, 1));
	STEP(conf_submit(c, s.q, &cmd, 1, &spun));
	STEP(conf_let_start(c));
	STEP(others_work(c, &s));
	STEP(take(c, &s, s.q, &done));
	STEP(take(c, &s, s.second, &also));
	if (conf_virtual(c)) {
		STEP(conf_let_start(c));
		STEP(switched(c, &s, 1));
		ERR(hal_wait(&done, 1, 0, 0), -ETIMEDOUT);
		ERR(hal_wait(&also, 1, 0, 0), -ETIMEDOUT);
	}
	STEP(conf_wait(c, spun));
	STEP(conf_wait(c, done));
	STEP(conf_wait(c, also));
	STEP(switched(c, &s, 2));
	STEP(same_noise(c, s.out, 1));
	STEP(others_rest(c, &s));
	/* And scratch is memory like any other. */
	cmd = hal_cmd_launch(spin, &arg, 1);
	STEP(conf_submit(c, s.q, &cmd, 1, &spun));
	STEP(conf_wait(c, spun));
	conf_oracle_spin(want);
	return conf_same(c, s.scratch, 0, want, sizeof(want));
}

/* Fills scratch, works for a while, and has what it filled in out. */
static int job(struct conf *c, struct scene *s, struct hal_point *done)
{
	struct hal_arg arg = {.bytes = CONF_SPIN_BYTES};
	struct hal_kernel *spin;
	struct hal_cmd cmds[4];

	STEP(conf_kernel(c, "spin", &spin));
	STEP(conf_buffer(c, s->a, CONF_SPIN_BYTES, &arg.buffer));
	cmds[0] = hal_cmd_fill(s->scratch, 0, BIG, PATTERN);
	cmds[1] = hal_cmd_launch(spin, &arg, 1);
	cmds[2] = hal_cmd_launch(spin, &arg, 1);
	cmds[3] = hal_cmd_copy(s->out, 0, s->scratch, 0, BIG);
	return conf_submit(c, s->q, cmds, 4, done);
}

/* A scene whose submission has begun; mine is memory of the same partition. */
static int begin_job(struct conf *c, struct scene *s, struct hal_buffer **mine,
		     struct hal_point *done)
{
	STEP(begin(c, s));
	STEP(conf_buffer(c, s->a, 64, mine));
	STEP(taken(c, s, 1));
	STEP(job(c, s, done));
	return conf_let_start(c);
}

/* Others of both partitions have work; also: that of the second queue. */
static int others_begin(struct conf *c, struct scene *s, struct hal_buffer *mine,
			struct hal_point *also)
{
	struct hal_cmd cmd = hal_cmd_fill(mine, 0, 64, 7);

	STEP(others_work(c, s));
	return conf_submit(c, s->second, &cmd, 1, also);
}

/* A submission that has begun has its scratch memory to its end. */
static int begun(struct conf *c)
{
	struct hal_point done, also;
	struct hal_buffer *mine;
	struct scene s;

	STEP(begin_job(c, &s, &mine, &done));
	STEP(others_begin(c, &s, mine, &also));
	STEP(conf_wait(c, done));
	STEP(conf_filled(c, s.out, 0, BIG, PATTERN));
	STEP(conf_wait(c, also));
	STEP(switched(c, &s, 2));
	STEP(others_rest(c, &s));
	STEP(taken(c, &s, 1));
	STEP(switched(c, &s, 3));
	return 0;
}

/* Nor does it lose that while it is suspended; others of its partition do not wait for
 * who has suspended it. */
static int suspended(struct conf *c)
{
	struct hal_point done, also, quiet;
	struct hal_buffer *mine;
	struct scene s;

	STEP(begin_job(c, &s, &mine, &done));
	OK(hal_queue_suspend(s.q, HAL_SUSPEND_DRAIN, &quiet));
	STEP(others_begin(c, &s, mine, &also));
	STEP(conf_wait(c, quiet));
	STEP(conf_wait(c, also));
	if (conf_virtual(c)) {
		STEP(switched(c, &s, 1));
		ERR(hal_wait(&done, 1, 0, 0), -ETIMEDOUT);
	}
	OK(hal_queue_resume(s.q));
	STEP(conf_wait(c, done));
	STEP(conf_filled(c, s.out, 0, BIG, PATTERN));
	STEP(taken(c, &s, 1));
	STEP(switched(c, &s, 2));
	return others_rest(c, &s);
}

/* Who names a channel has it for himself, whether he has work or not. */
static int named(struct conf *c)
{
	struct hal_partition_memory_info m = HAL_INIT(hal_partition_memory_info);
	struct hal_partition_info i = HAL_INIT(hal_partition_info);
	struct hal_partition *owner;
	struct scene s;

	STEP(begin(c, &s));
	OK(hal_partition_get_info(s.a, &i));
	OK(hal_partition_get_memory_info(s.a, &m));
	EQ(m.wide_mask, (UINT64_C(2) << (c->info.colors - 1)) - 1);
	EQ(i.color_mask, 1);
	STEP(taken(c, &s, 1));
	STEP(switched(c, &s, 1));
	STEP(conf_queue_gone(c, s.other));
	STEP(conf_part_gone(c, s.b));
	STEP(side(c, 1, 4, 0, &owner));
	STEP(taken(c, &s, 1));
	STEP(switched(c, &s, 2));
	STEP(conf_part_gone(c, owner));
	STEP(taken(c, &s, 1));
	STEP(switched(c, &s, 3));
	return 0;
}

static int used(struct conf *c, const struct hal_partition *p, uint64_t *bytes)
{
	struct hal_partition_info i = HAL_INIT(hal_partition_info);

	OK(hal_partition_get_info(p, &i));
	*bytes = i.memory_used;
	return 0;
}

/* Only what is not on its own channels is further memory, and all of it comes back. */
static int memory(struct conf *c)
{
	uint64_t first, after, further, n = c->info.colors;
	struct hal_buffer *b;
	struct scene s;

	STEP(begin(c, &s));
	further = (BIG * (n - 1) + n - 1) / n;
	for (uint32_t i = 0; i < 2; i++) {
		STEP(used(c, s.a, &first));
		STEP(buffer(c, s.a, BIG, HAL_BUFFER_BIMODAL, &b));
		STEP(used(c, s.a, &after));
		EQ(after - first, BIG + further);
		STEP(conf_buffer_gone(c, b));
		STEP(used(c, s.a, &after));
		EQ(after, first);
		STEP(taken(c, &s, 1)); /* once more, on all channels */
	}
	return 0;
}

static int refused(struct conf *c)
{
	struct hal_partition_desc pd = HAL_INIT(hal_partition_desc);
	struct hal_buffer_desc d = HAL_INIT(hal_buffer_desc);
	struct hal_submit_desc sd = HAL_INIT(hal_submit_desc);
	struct hal_partition *p;
	struct hal_buffer *b;
	struct hal_cmd cmd;
	struct scene s;
	void *at;

	STEP(begin(c, &s));
	pd.units_floor = 1;
	pd.flags = HAL_PARTITION_BIMODAL;
	ERR(hal_partition_create(c->dev, &pd, &p), -EINVAL);
	d.bytes = 64;
	d.flags = HAL_BUFFER_BIMODAL;
	ERR(hal_buffer_create(s.b, &d, &b), -EINVAL);
	d.flags = HAL_BUFFER_SCRATCH;
	ERR(hal_buffer_create(s.a, &d, &b), -EINVAL);
	d.flags = HAL_BUFFER_BIMODAL | HAL_BUFFER_MAPPABLE;
	ERR(hal_buffer_create(s.a, &d, &b), -EINVAL);
	ERR(hal_buffer_map(s.constant, &at), -ENOTSUP);
	ERR(hal_buffer_recolor(s.scratch, s.q, 1, NULL, NULL), -EINVAL);
	cmd = hal_cmd_fill(s.constant, 0, 64, 1);
	sd.cmds = &cmd;
	sd.cmd_count = 1;
	ERR(hal_submit(s.q, &sd, NULL), -EINVAL);
	cmd = hal_cmd_copy(s.constant, 0, s.out, 0, 64);
	ERR(hal_submit(s.q, &sd, NULL), -EINVAL);
	return taken(c, &s, 1);
}

const struct conf_case conf_bimodal_cases[] = {
	{"bimodal.follows", follows},
	{"bimodal.kernels", kernels},
	{"bimodal.waits", waits},
	{"bimodal.begun", begun},
	{"bimodal.suspended", suspended},
	{"bimodal.named", named},
	{"bimodal.memory", memory},
	{"bimodal.refused", refused},
	{NULL, NULL},
};

/* SPDX-License-Identifier: Apache-2.0 */
/* memory_limit: a partition has more buffers than lie on the device at once. */
#define _GNU_SOURCE
#include "conformance.h"

#include <errno.h>
#include <string.h>

#include <hal/ext/memory.h>

/* Buffers of BIG bytes; the quota is for FIT of them, and less than one more for what
 * programs need. */
enum { BIG = 64 << 10, FIT = 4, COUNT = 9 };

struct scene {
	struct hal_partition *p;
	struct hal_queue *q, *other;
	struct hal_buffer *b[COUNT];
	uint8_t want[COUNT][BIG];
};

static const char *const oversubscribe[] = {"hal.oversubscribe=yes", NULL};

static int reopen(struct conf *c)
{
	c->options = oversubscribe;
	EQ(conf_close(c), CONF_PASS);
	return conf_open(c);
}

/* The left half of the device: a neighbour may have the right one.  mask: channels. */
static int begin_on(struct conf *c, struct scene *s, uint64_t mask)
{
	struct hal_partition_desc d = HAL_INIT(hal_partition_desc);

	if (!(c->info.caps & HAL_CAP_EVICT))
		return conf_unsupported(c, "buffers cannot be evicted");
	STEP(reopen(c));
	d.rows = (uint16_t)c->info.unit_rows;
	d.cols = (uint16_t)(c->info.unit_cols > 1 ? c->info.unit_cols / 2 : 1);
	d.color_mask = mask;
	d.memory_bytes = FIT * BIG + BIG / 2;
	d.limits = &(struct hal_partition_limits){
		.size = sizeof(struct hal_partition_limits), .memory_limit = COUNT * BIG};
	STEP(conf_part(c, &d, &s->p));
	STEP(conf_queue(c, s->p, &s->q));
	STEP(conf_queue(c, s->p, &s->other));
	return 0;
}

static int begin(struct conf *c, struct scene *s)
{
	return begin_on(c, s, (UINT64_C(1) << c->info.colors / 2) - 1);
}

/* All of them, each with bytes of its own. */
static int furnish(struct conf *c, struct scene *s)
{
	for (uint32_t i = 0; i < COUNT; i++) {
		conf_noise(s->want[i], BIG, i + 1);
		STEP(conf_buffer(c, s->p, BIG, &s->b[i]));
		OK(hal_buffer_write(s->b[i], 0, s->want[i], BIG));
	}
	return 0;
}

static int intact(struct conf *c, const struct scene *s)
{
	for (uint32_t i = 0; i < COUNT; i++)
		STEP(conf_same(c, s->b[i], 0, s->want[i], BIG));
	return 0;
}

struct both {
	struct hal_partition_info info;
	struct hal_partition_memory_info memory;
};

static int info_of(struct conf *c, const struct scene *s, struct both *i)
{
	i->info = (struct hal_partition_info)HAL_INIT(hal_partition_info);
	i->memory = (struct hal_partition_memory_info)HAL_INIT(hal_partition_memory_info);
	OK(hal_partition_get_info(s->p, &i->info));
	OK(hal_partition_get_memory_info(s->p, &i->memory));
	CHECK(i->info.memory_used <= i->info.memory_bytes);
	CHECK(i->memory.memory_buffers <= i->memory.memory_limit);
	return 0;
}

static int fill(struct conf *c, struct scene *s, uint32_t i, uint32_t at, uint32_t word)
{
	struct hal_cmd cmd = hal_cmd_fill(s->b[i], at, 256, word);

	for (uint32_t k = 0; k < 256; k += 4)
		memcpy(&s->want[i][at + k], &word, 4);
	return conf_submit(c, s->q, &cmd, 1, NULL);
}

/* Round and round: each is away when its turn comes, and has what it had. */
static int comes_back(struct conf *c)
{
	static struct scene s;
	struct both i;
	struct hal_point done;
	struct hal_cmd nop = hal_cmd_of(HAL_OP_NOP, HAL_CMD_REPLAYABLE);

	STEP(begin(c, &s));
	STEP(furnish(c, &s));
	STEP(info_of(c, &s, &i));
	EQ(i.memory.memory_limit, COUNT * BIG);
	EQ(i.memory.memory_buffers, COUNT * BIG);
	EQ(i.info.memory_used, FIT * BIG);
	EQ(i.memory.memory_away, (COUNT - FIT) * BIG);
	EQ(i.memory.evictions, COUNT - FIT);
	EQ(i.memory.evicted_bytes, (COUNT - FIT) * BIG);
	EQ(i.memory.fetches, 0);
	STEP(intact(c, &s)); /* wherever they are */
	for (uint32_t round = 0; round < 3; round++)
		for (uint32_t k = 0; k < COUNT; k++)
			STEP(fill(c, &s, k, 1024 * round, 0x01010101 * k + round));
	STEP(conf_submit(c, s.q, &nop, 1, &done));
	STEP(conf_wait(c, done));
	STEP(info_of(c, &s, &i));
	/* As few as there can be where the device looks ahead, and one a use at most. */
	CHECK(i.memory.fetches >= 3 * (COUNT - FIT) && i.memory.fetches <= 3 * COUNT);
	EQ(i.memory.fetched_bytes, i.memory.fetches * BIG);
	EQ(i.memory.evictions, COUNT - FIT + i.memory.fetches);
	STEP(intact(c, &s));
	/* What the host writes to those that are away is there for the device. */
	for (uint32_t k = 0; k < COUNT; k++) {
		conf_noise(s.want[k], BIG, 100 + k);
		OK(hal_buffer_write(s.b[k], 512, s.want[k] + 512, BIG - 512));
		STEP(fill(c, &s, k, 0, k));
		STEP(fill(c, &s, k, 256, ~k));
	}
	STEP(conf_submit(c, s.q, &nop, 1, &done));
	STEP(conf_wait(c, done));
	return intact(c, &s);
}

/* The one that was used longest ago goes. */
static int coldest_goes(struct conf *c)
{
	static struct scene s;
	struct both i;
	struct hal_point done;
	struct hal_cmd cmd;
	uint64_t before;

	STEP(begin(c, &s));
	STEP(furnish(c, &s));
	/* Here are the last four; all but one of them are used again. */
	for (uint32_t k = COUNT - 3; k < COUNT; k++)
		STEP(fill(c, &s, k, 0, k));
	STEP(fill(c, &s, 0, 0, 7)); /* that one goes for this */
	for (uint32_t k = COUNT - 3; k < COUNT; k++)
		STEP(fill(c, &s, k, 256, k));
	cmd = hal_cmd_of(HAL_OP_NOP, HAL_CMD_REPLAYABLE);
	STEP(conf_submit(c, s.q, &cmd, 1, &done));
	STEP(conf_wait(c, done));
	STEP(info_of(c, &s, &i));
	EQ(i.memory.fetches, 1);
	before = i.memory.evictions;
	STEP(fill(c, &s, COUNT - 4, 0, 9));
	STEP(conf_submit(c, s.q, &cmd, 1, &done));
	STEP(conf_wait(c, done));
	STEP(info_of(c, &s, &i));
	EQ(i.memory.fetches, 2);
	EQ(i.memory.evictions, before + 1);
	return intact(c, &s);
}

/* All that a kernel uses is there at once. */
static int kernels(struct conf *c)
{
	static struct scene s;
	struct hal_arg args[3];
	struct hal_kernel *gemm;
	struct hal_point done;
	struct hal_cmd cmd;

	STEP(begin(c, &s));
	STEP(conf_kernel(c, "gemm", &gemm));
	STEP(furnish(c, &s));
	for (uint32_t i = 0; i < 2 * COUNT; i++) {
		uint32_t use[3] = {i % COUNT, (i * 4 + 1) % COUNT, (i * 7 + 2) % COUNT};
		uint32_t at[3] = {0, 4096, 8192};

		if (use[0] == use[1] || use[0] == use[2])
			continue;
		for (uint32_t k = 0; k < 3; k++)
			args[k] = (struct hal_arg){s.b[use[k]], at[k], CONF_GEMM_BYTES};
		cmd = hal_cmd_launch(gemm, args, 3);
		cmd.flags |= HAL_CMD_REPLAYABLE;
		STEP(conf_submit(c, s.q, &cmd, 1, &done));
		conf_oracle_gemm((int8_t *)s.want[use[0]] + at[0],
				 (const int8_t *)s.want[use[1]] + at[1],
				 (const int8_t *)s.want[use[2]] + at[2]);
		STEP(conf_wait(c, done));
	}
	return intact(c, &s);
}

/* A program comes to a partition that is full: for its constants the coldest goes. */
static int constants(struct conf *c)
{
	static struct scene s;
	struct both i;
	struct hal_arg args[3];
	struct hal_kernel *gemm;
	struct hal_buffer *half;
	struct hal_point done;
	struct hal_cmd cmd;

	STEP(begin(c, &s));
	STEP(conf_kernel(c, "gemm", &gemm));
	for (uint32_t k = 0; k < FIT; k++) {
		conf_noise(s.want[k], BIG, k + 1);
		STEP(conf_buffer(c, s.p, BIG, &s.b[k]));
		OK(hal_buffer_write(s.b[k], 0, s.want[k], BIG));
	}
	STEP(conf_buffer(c, s.p, BIG / 2, &half));
	STEP(info_of(c, &s, &i));
	EQ(i.info.memory_used, i.info.memory_bytes);
	EQ(i.memory.evictions, 0);
	for (uint32_t k = 0; k < 3; k++)
		args[k] = (struct hal_arg){s.b[k + 1], 0, CONF_GEMM_BYTES};
	cmd = hal_cmd_launch(gemm, args, 3);
	STEP(conf_submit(c, s.q, &cmd, 1, &done));
	conf_oracle_gemm((int8_t *)s.want[1], (const int8_t *)s.want[2],
			 (const int8_t *)s.want[3]);
	STEP(conf_wait(c, done));
	STEP(info_of(c, &s, &i));
	/* What is used beside buffers; a program may have none. */
	EQ(i.memory.evictions,
	   i.info.memory_used + i.memory.memory_away > i.memory.memory_buffers);
	EQ(i.memory.memory_away, i.memory.evictions * BIG);
	for (uint32_t k = 0; k < FIT; k++)
		STEP(conf_same(c, s.b[k], 0, s.want[k], BIG));
	return 0;
}

/* Two queues want different ones, of which not all fit: in turn. */
static int two_queues(struct conf *c)
{
	static struct scene s;
	struct hal_point done[2];
	struct hal_cmd cmd;

	STEP(begin(c, &s));
	STEP(furnish(c, &s));
	for (uint32_t i = 0; i < 24; i++) {
		/* Copies among the first four by one, the next four by the other. */
		for (uint32_t k = 0; k < 2; k++) {
			uint32_t to = 4 * k + i % 4,
				 from = 4 * k + (i + 1 + i / 4 % 3) % 4;
			uint32_t at = 1024 * (i % 5);

			cmd = hal_cmd_copy(s.b[to], at, s.b[from], at + 8192, 4096);
			memcpy(s.want[to] + at, s.want[from] + at + 8192, 4096);
			STEP(conf_submit(c, k ? s.other : s.q, &cmd, 1, &done[k]));
		}
		if (i % 6 == 5)
			for (uint32_t k = 0; k < 2; k++)
				STEP(conf_wait(c, done[k]));
	}
	return intact(c, &s);
}

/* Not one byte more, and what goes makes room. */
static int limit(struct conf *c)
{
	struct hal_buffer_desc d = HAL_INIT(hal_buffer_desc);
	static struct scene s;
	struct hal_buffer *one;

	STEP(begin(c, &s));
	STEP(furnish(c, &s));
	d.bytes = 1;
	ERR(hal_buffer_create(s.p, &d, &one), -ENOSPC);
	CHECK(strstr(hal_last_error(), "memory_limit") != NULL);
	STEP(conf_buffer_gone(c, s.b[2]));
	d.bytes = BIG;
	OK(hal_buffer_create(s.p, &d, &one));
	ERR(hal_buffer_create(s.p, &d, &s.b[2]), -ENOSPC);
	OK(hal_buffer_destroy(one));
	return 0;
}

/* More than the quota at once: its queue fails, and no other. */
static int too_large(struct conf *c)
{
	static struct scene s;
	struct hal_buffer *x, *y;
	struct hal_point done, goes;
	struct hal_cmd cmd;

	STEP(begin(c, &s));
	STEP(conf_buffer(c, s.p, 3 * BIG, &x));
	STEP(conf_buffer(c, s.p, 3 * BIG, &y));
	STEP(conf_buffer(c, s.p, BIG, &s.b[0]));
	conf_noise(s.want[0], BIG, 3);
	OK(hal_buffer_write(s.b[0], 0, s.want[0], BIG));
	cmd = hal_cmd_copy(x, 0, y, 0, 64);
	STEP(conf_submit(c, s.q, &cmd, 1, &done));
	cmd = hal_cmd_copy(x, 0, s.b[0], 0, BIG);
	STEP(conf_submit(c, s.other, &cmd, 1, &goes));
	ERR(conf_wait_raw(done), -ENOSPC);
	CHECK(strstr(hal_last_error(), "quota") != NULL);
	STEP(conf_wait(c, goes));
	return conf_same(c, x, 0, s.want[0], BIG);
}

/* What is mapped, or is to be, has its place. */
static int stays(struct conf *c)
{
	struct hal_buffer_desc d = HAL_INIT(hal_buffer_desc);
	static struct scene s;
	struct hal_buffer *fixed[FIT], *more;
	struct hal_cmd cmd;
	struct hal_point done;
	void *at;

	STEP(begin_on(c, &s, 0)); /* so that they can lie in one piece */
	if (!(c->info.caps & HAL_CAP_MAP))
		return conf_unsupported(c, "buffers cannot be mapped");
	d.bytes = BIG;
	d.flags = HAL_BUFFER_MAPPABLE;
	for (uint32_t i = 0; i < FIT; i++) {
		OK(hal_buffer_create(s.p, &d, &fixed[i]));
		c->buffers[c->buffer_count++] = fixed[i];
	}
	d.flags = 0;
	ERR(hal_buffer_create(s.p, &d, &more), -ENOSPC);
	CHECK(strstr(hal_last_error(), "evicted") != NULL);
	STEP(conf_buffer_gone(c, fixed[0]));
	STEP(conf_buffer(c, s.p, BIG, &s.b[0]));
	STEP(conf_buffer(c, s.p, BIG, &s.b[1])); /* for which the first goes */
	cmd = hal_cmd_copy(s.b[0], 0, s.b[1], 0, 64);
	STEP(conf_submit(c, s.q, &cmd, 1, &done));
	ERR(conf_wait_raw(done), -ENOSPC);
	OK(hal_buffer_map(fixed[1], &at));
	OK(hal_buffer_unmap(fixed[1]));
	return 0;
}

/* Those that are away can go for good, before and behind work that uses them. */
static int destroyed(struct conf *c)
{
	static struct scene s;
	struct both i;
	struct hal_point done;
	struct hal_cmd cmd;

	STEP(begin(c, &s));
	STEP(furnish(c, &s));
	STEP(conf_buffer_gone(c, s.b[0]));
	cmd = hal_cmd_copy(s.b[COUNT - 1], 0, s.b[1], 0, BIG);
	STEP(conf_submit(c, s.q, &cmd, 1, &done));
	STEP(conf_buffer_gone(c, s.b[1]));
	STEP(conf_wait(c, done));
	STEP(conf_same(c, s.b[COUNT - 1], 0, s.want[1], BIG));
	for (uint32_t k = 2; k < COUNT; k++)
		STEP(conf_buffer_gone(c, s.b[k]));
	STEP(info_of(c, &s, &i));
	EQ(i.info.memory_used, 0);
	EQ(i.memory.memory_buffers, 0);
	EQ(i.memory.memory_away, 0);
	return 0;
}

static int refused(struct conf *c)
{
	struct hal_partition_desc d = HAL_INIT(hal_partition_desc);
	struct hal_partition *p;

	d.units_floor = 1;
	d.limits = &(struct hal_partition_limits){
		.size = sizeof(struct hal_partition_limits), .memory_limit = 2 * BIG};
	ERR(hal_partition_create(c->dev, &d, &p), -EINVAL);
	d.memory_bytes = 3 * BIG;
	ERR(hal_partition_create(c->dev, &d, &p), -EINVAL);
	d.memory_bytes = BIG;
	ERR(hal_partition_create(c->dev, &d, &p), -ENOTSUP); /* it was not opened so */
	d.memory_bytes = 2 * BIG;
	STEP(conf_part(c, &d, &p)); /* as much as there is */
	return 0;
}

/* In a world of its own. */
static int neighbour_time(struct conf *c, bool evicting, uint64_t *ns)
{
	static struct scene s;
	struct hal_partition_desc d = HAL_INIT(hal_partition_desc);
	struct hal_arg arg = {.bytes = CONF_SPIN_BYTES};
	struct hal_stats t = HAL_INIT(hal_stats);
	struct hal_kernel *spin;
	struct hal_partition *p;
	struct hal_point done;
	struct hal_queue *q;
	struct hal_cmd cmd;

	STEP(begin(c, &s));
	d.rows = (uint16_t)c->info.unit_rows;
	d.cols = (uint16_t)(c->info.unit_cols > 1 ? c->info.unit_cols / 2 : 1);
	d.col = (uint16_t)(c->info.unit_cols > 1 ? c->info.unit_cols / 2 : 0);
	STEP(conf_part(c, &d, &p));
	STEP(conf_queue(c, p, &q));
	STEP(conf_buffer(c, p, 64, &arg.buffer));
	STEP(conf_kernel(c, "spin", &spin));
	STEP(furnish(c, &s));
	cmd = hal_cmd_launch(spin, &arg, 1);
	STEP(conf_submit(c, q, &cmd, 1, &done));
	for (uint32_t i = 0; evicting && i < COUNT; i++)
		STEP(fill(c, &s, i, 0, i));
	STEP(conf_wait(c, done));
	OK(hal_queue_get_stats(q, &t));
	*ns = t.busy_ns;
	return 0;
}

/* Units and channels of its own: not a cycle. */
static int neighbour(struct conf *c)
{
	uint64_t alone, beside;

	if (!(c->info.caps & HAL_CAP_EVICT))
		return conf_unsupported(c, "buffers cannot be evicted");
	if (!conf_apart(c))
		return conf_unsupported(c, "real time is never the same twice");
	STEP(neighbour_time(c, false, &alone));
	STEP(neighbour_time(c, true, &beside));
	EQ(beside, alone);
	return 0;
}

const struct conf_case conf_evict_cases[] = {
	{"evict.comes_back", comes_back}, {"evict.coldest_goes", coldest_goes},
	{"evict.kernels", kernels},       {"evict.constants", constants},
	{"evict.two_queues", two_queues}, {"evict.limit", limit},
	{"evict.too_large", too_large},   {"evict.stays", stays},
	{"evict.destroyed", destroyed},   {"evict.refused", refused},
	{"evict.neighbour", neighbour},   {NULL, NULL},
};

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_latency - deadlines of latency-critical commands beside best effort.
 *
 *   bench_latency figure [N [TARGET]]
 *     N commands (1,000) of class LATENCY with a deadline of 40 us on a partition of the
 *     NPU, beside matrix multiplications of 264 us on a guest of it
 *   bench_latency shapes [N [TARGET]]
 *     N such commands, with deadlines of 20 to 60 us, beside each kind of best effort, on
 *     a guest and on the same partition, that may be killed or not; fails if one is
 *     missed
 *
 * No option is set: the engine chooses how best effort is stopped.  The control is the
 * same with class NORMAL, where nothing is stopped.  The best effort's progress is its
 * completed commands, as time that they take alone, over the time that the
 * latency-critical commands left.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hal/npu.h>

#include "bench.h"

enum { BYTES = 1 << 20, FILLED = 2 };
#define US UINT64_C(1000)

enum kind { GEMM, CONV, SOFTMAX, COPY, SMALL, KINDS };
static const char *const kinds[KINDS] = {"gemm", "conv", "softmax", "copy", "small"};

struct scene {
	enum kind kind;       /* of the best effort */
	bool beside;          /* on the same partition, not on a guest */
	bool replayable;      /* best effort may be killed */
	uint16_t class;       /* of the commands with a deadline */
	uint64_t deadline_ns; /* 0: of each, one of several */
	unsigned int count;
	const char *target;
};

struct outcome {
	uint64_t missed, longest_ns, replayed_ns, suspends;
	double progress; /* of the best effort, 1: as alone */
};

struct side {
	struct hal_partition *part;
	struct hal_queue *queue;
	struct hal_buffer *a, *b, *d;
	struct hal_kernel *kernel;
	struct hal_point done[FILLED];
	unsigned int submitted;
	bool replayable;
};

struct world {
	struct hal_device *dev;
	struct hal_program *prog;
	struct hal_timeline *never;
	struct side urgent, effort;
	uint64_t urgent_ns, effort_ns; /* run time of a command alone */
	uint64_t seed;
};

/* ---- programs --------------------------------------------------------------------- */

static int32_t mult = 1431655765, shift = -7;

static int add_gemm(struct hal_npu_builder *b, const struct hal_npu_place *p, uint32_t m,
		    uint32_t n, uint32_t k)
{
	struct hal_npu_gemm op = HAL_INIT(hal_npu_gemm);

	op.m = m;
	op.n = n;
	op.k = k;
	op.a = p[0];
	op.b = p[1];
	op.d = p[2];
	op.out.mult = &mult;
	op.out.shift = &shift;
	op.out.min = -128;
	op.out.max = 127;
	return hal_npu_gemm(b, &op);
}

static int add_conv(struct hal_npu_builder *b, const struct hal_npu_place *p)
{
	static const int8_t weights[32 * 3 * 3 * 32];
	struct hal_npu_conv op = HAL_INIT(hal_npu_conv);

	op.h = op.w = op.oh = op.ow = 56;
	op.c = op.n = 32;
	op.kh = op.kw = 3;
	op.stride_h = op.stride_w = op.dilation_h = op.dilation_w = 1;
	op.pad_top = op.pad_left = 1;
	op.groups = 1;
	op.a = p[0];
	op.d = p[2];
	op.weights = weights;
	op.out.mult = &mult;
	op.out.shift = &shift;
	op.out.min = -128;
	op.out.max = 127;
	return hal_npu_conv(b, &op);
}

static int add_softmax(struct hal_npu_builder *b, const struct hal_npu_place *p)
{
	struct hal_npu_softmax op = HAL_INIT(hal_npu_softmax);
	int32_t exp[256];

	for (int i = 0; i < 256; i++)
		exp[i] = INT32_MAX / (i + 1);
	op.rows = 32;
	op.cols = 4000;
	op.a = p[0];
	op.d = p[2];
	op.exp = exp;
	return hal_npu_softmax(b, &op);
}

static int add_copy(struct hal_npu_builder *b, const struct hal_npu_place *p)
{
	struct hal_npu_copy op = HAL_INIT(hal_npu_copy);

	op.rows = BYTES / 1024;
	op.bytes = 1024;
	op.a = p[0];
	op.d = p[2];
	return hal_npu_copy(b, &op);
}

static int add_kernel(struct hal_npu_builder *b, enum kind kind)
{
	struct hal_npu_place p[3] = {{0}};
	int err = hal_npu_kernel(b, kinds[kind]);

	for (int i = 0; i < 3; i++)
		err |= hal_npu_arg(b, BYTES, &p[i].id);
	if (err != 0)
		return err;
	switch (kind) {
	case GEMM:
		return add_gemm(b, p, 512, 512, 256);
	case CONV:
		return add_conv(b, p);
	case SOFTMAX:
		return add_softmax(b, p);
	case COPY:
		return add_copy(b, p);
	default:
		return add_gemm(b, p, 64, 64, 64);
	}
}

static int load(struct world *w)
{
	struct hal_npu_builder *b;
	void *image = NULL;
	size_t size;
	int err = hal_npu_builder_create(&b);

	for (int i = 0; err == 0 && i < KINDS; i++)
		err = add_kernel(b, (enum kind)i);
	if (err != 0 || hal_npu_build(b, &image, &size) != 0 ||
	    hal_npu_builder_destroy(b) != 0 ||
	    hal_program_load(w->dev, image, size, &w->prog) != 0)
		return bench_die("the program");
	hal_npu_image_free(image);
	return 0;
}

/* ---- the world -------------------------------------------------------------------- */

static int add_side(struct world *w, struct side *s, enum kind kind,
		    const struct hal_queue_desc *qd)
{
	struct hal_buffer_desc bd = HAL_INIT(hal_buffer_desc);

	bd.bytes = BYTES;
	if (hal_queue_create(s->part, qd, &s->queue) != 0 ||
	    hal_buffer_create(s->part, &bd, &s->a) != 0 ||
	    hal_buffer_create(s->part, &bd, &s->b) != 0 ||
	    hal_buffer_create(s->part, &bd, &s->d) != 0 ||
	    hal_kernel_find(w->prog, kinds[kind], &s->kernel) != 0)
		return bench_die("a side");
	return 0;
}

static int open_world(struct world *w, const struct scene *c)
{
	struct hal_partition_desc pd = HAL_INIT(hal_partition_desc);
	struct hal_queue_desc qd = HAL_INIT(hal_queue_desc);
	struct hal_device_info info = HAL_INIT(hal_device_info);
	int err = hal_open(c->target, NULL, &w->dev);

	if (err == -ENODEV)
		return BENCH_SKIP;
	if (err != 0 || hal_device_get_info(w->dev, &info) != 0 || load(w) != 0 ||
	    hal_timeline_create(w->dev, &w->never) != 0)
		return bench_die("a device");
	pd.units_floor = info.unit_rows * info.unit_cols;
	if (hal_partition_create(w->dev, &pd, &w->urgent.part) != 0)
		return bench_die("a host");
	pd = (struct hal_partition_desc)HAL_INIT(hal_partition_desc);
	pd.host = w->urgent.part;
	w->effort.part = w->urgent.part;
	if (!c->beside && hal_partition_create(w->dev, &pd, &w->effort.part) != 0)
		return bench_die("a guest");
	qd.service_class = c->class;
	if (add_side(w, &w->urgent, SMALL, &qd) != 0)
		return TOOL_FAILED;
	qd = (struct hal_queue_desc)HAL_INIT(hal_queue_desc);
	qd.service_class = HAL_CLASS_BEST_EFFORT;
	w->effort.replayable = c->replayable;
	w->seed = 88172645463325252u;
	return add_side(w, &w->effort, c->kind, &qd);
}

static int close_side(struct side *s)
{
	return hal_queue_destroy(s->queue) | hal_buffer_destroy(s->a) |
	       hal_buffer_destroy(s->b) | hal_buffer_destroy(s->d);
}

static int close_world(struct world *w)
{
	int err = close_side(&w->urgent) | close_side(&w->effort);

	err |= hal_program_unload(w->prog);
	err |= hal_timeline_destroy(w->never);
	if (w->effort.part != w->urgent.part)
		err |= hal_partition_destroy(w->effort.part);
	err |= hal_partition_destroy(w->urgent.part);
	err |= hal_close(w->dev);
	return err != 0 ? bench_die("closing") : 0;
}

static uint64_t below(struct world *w, uint64_t n)
{
	w->seed ^= w->seed << 13;
	w->seed ^= w->seed >> 7;
	w->seed ^= w->seed << 17;
	return (w->seed >> 11) % n;
}

/* ---- what runs -------------------------------------------------------------------- */

static int submit(struct side *s, uint64_t deadline_ns, struct hal_point *done)
{
	const struct hal_arg args[] = {{s->a, 0, 0}, {s->b, 0, 0}, {s->d, 0, 0}};
	struct hal_submit_desc d = HAL_INIT(hal_submit_desc);
	struct hal_cmd cmd = hal_cmd_launch(s->kernel, args, 3);

	cmd.flags = s->replayable ? HAL_CMD_REPLAYABLE : 0;
	d.cmds = &cmd;
	d.cmd_count = 1;
	d.deadline_ns = deadline_ns;
	return hal_submit(s->queue, &d, done) != 0 ? bench_die("hal_submit") : 0;
}

/* Have FILLED commands of the best effort under way. */
static int refill(struct side *s)
{
	while (s->submitted < FILLED ||
	       hal_wait(&s->done[s->submitted % FILLED], 1, 0, 0) == 0) {
		if (submit(s, 0, &s->done[s->submitted % FILLED]) != 0)
			return TOOL_FAILED;
		s->submitted++;
	}
	return 0;
}

/* Run time of a command of s alone; the second, whose constants are translated. */
static int alone(struct world *w, struct side *s, uint64_t *ns)
{
	for (int i = 0; i < 2; i++) {
		struct hal_point done;
		uint64_t at;

		at = hal_device_get_time(w->dev);
		if (submit(s, 0, &done) != 0 || hal_wait(&done, 1, 0, HAL_FOREVER) != 0)
			return bench_die("a command alone");
		*ns = hal_device_get_time(w->dev) - at;
	}
	return 0;
}

/* Let ns of device time pass, whichever clock the device has. */
static int pass(struct world *w, uint64_t ns)
{
	struct hal_point never = {w->never, 1};
	int err = hal_wait(&never, 1, HAL_WAIT_DEVICE_TIME,
			   (int64_t)(hal_device_get_time(w->dev) + ns));

	return err != -ETIMEDOUT ? bench_die("a pause") : 0;
}

static int play(struct world *w, const struct scene *c, struct outcome *out)
{
	static const uint64_t deadlines[] = {20 * US, 30 * US, 40 * US, 60 * US};
	struct hal_stats s = HAL_INIT(hal_stats);
	uint64_t from;

	if (alone(w, &w->urgent, &w->urgent_ns) != 0 ||
	    alone(w, &w->effort, &w->effort_ns) != 0)
		return TOOL_FAILED;
	from = hal_device_get_time(w->dev);
	for (unsigned int i = 0; i < c->count; i++) {
		uint64_t deadline_ns =
			c->deadline_ns != 0 ? c->deadline_ns : deadlines[below(w, 4)];
		struct hal_point done;

		if (refill(&w->effort) != 0 || pass(w, US + below(w, 10 * US)) != 0 ||
		    submit(&w->urgent, deadline_ns, &done) != 0)
			return TOOL_FAILED;
		if (hal_wait(&done, 1, 0, HAL_FOREVER) != 0)
			return bench_die("an urgent command");
	}
	if (hal_wait(w->effort.done, FILLED, 0, HAL_FOREVER) != 0)
		return bench_die("the best effort");
	memset(out, 0, sizeof(*out));
	from = hal_device_get_time(w->dev) - from;
	if (hal_queue_get_stats(w->urgent.queue, &s) != 0)
		return bench_die("stats");
	out->missed = s.deadline_misses;
	out->longest_ns = s.latency_max_ns;
	if (hal_queue_get_stats(w->effort.queue, &s) != 0)
		return bench_die("stats");
	out->replayed_ns = s.replayed_ns;
	out->suspends = s.suspends;
	out->progress = (double)(w->effort.submitted * w->effort_ns) /
			(double)(from - c->count * w->urgent_ns);
	return 0;
}

static int run(const struct scene *c, struct outcome *out)
{
	struct world w;
	int err;

	memset(out, 0, sizeof(*out));
	memset(&w, 0, sizeof(w));
	err = open_world(&w, c);
	if (err == 0)
		err = play(&w, c, out);
	if (err != 0)
		return err;
	fprintf(stderr,
		"%s %s%s: %llu of %u missed, longest %llu ns (alone "
		"%llu); best effort (%llu ns alone) stopped %llu times, progress %.3f, "
		"replayed %llu ns\n",
		kinds[c->kind], c->beside ? "beside" : "on a guest",
		c->replayable ? ", replayable" : "", (unsigned long long)out->missed,
		c->count, (unsigned long long)out->longest_ns,
		(unsigned long long)w.urgent_ns, (unsigned long long)w.effort_ns,
		(unsigned long long)out->suspends, out->progress,
		(unsigned long long)out->replayed_ns);
	return close_world(&w);
}

static int figure(struct scene c)
{
	struct outcome o;
	int err = run(&c, &o);

	if (err != 0)
		return err;
	printf("figure npu.latency.missed %llu\n", (unsigned long long)o.missed);
	printf("figure npu.latency.progress %.3f\n", o.progress);
	c.class = HAL_CLASS_NORMAL;
	c.count = c.count < 100 ? c.count : 100;
	err = run(&c, &o);
	if (err == 0)
		printf("figure npu.latency.missed.normal %.2f\n",
		       (double)o.missed / c.count);
	return err;
}

static int shapes(struct scene c)
{
	uint64_t missed = 0;

	c.deadline_ns = 0;
	for (int kind = 0; kind < SMALL; kind++)
		for (unsigned int way = 0; way < 4; way++) {
			struct outcome o;
			int err;

			c.kind = (enum kind)kind;
			c.beside = (way & 1) != 0;
			c.replayable = (way & 2) != 0;
			err = run(&c, &o);
			if (err != 0)
				return err;
			missed += o.missed;
		}
	printf("%llu missed\n", (unsigned long long)missed);
	return missed != 0 ? TOOL_FAILED : 0;
}

int main(int argc, char **argv)
{
	struct scene c = {.class = HAL_CLASS_LATENCY,
			  .deadline_ns = 40 * US,
			  .count = argc > 2 ? (unsigned int)strtoul(argv[2], NULL, 10)
					    : 1000,
			  .target = argc > 3 ? argv[3] : "npu:0"};

	if (argc < 2 || argc > 4 || c.count == 0 ||
	    (strcmp(argv[1], "figure") != 0 && strcmp(argv[1], "shapes") != 0)) {
		fprintf(stderr, "usage: bench_latency figure|shapes [N [TARGET]]\n");
		return 2;
	}
	bench_within(300);
	return tool_end(strcmp(argv[1], "figure") == 0 ? figure(c) : shapes(c));
}

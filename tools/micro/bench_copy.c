/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_copy - what uploads and downloads take while an NPU computes.
 *
 *   bench_copy overlap [TARGET [ROUNDS]]   a pipeline of write, compute and read, three
 *               stages of equal cycles alone, through four buffers: cycles of a round
 *               over those of a stage.  With a queue for each stage and points between
 *               them, and the control: all stages in one queue
 *   bench_copy memory [TARGET [ROUNDS]]    the same on a device whose memory has a
 *               bandwidth: over a stage, and over the cycles that the bytes of a round
 *               take on all channels at once
 *
 * The compute stage is a GEMM; the copies are as long as takes the same cycles.  Virtual
 * time; ratios are exact.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hal/npu.h>

#include "bench.h"

enum { BUFFERS = 4, WRITE = 0, COMPUTE, READ, STAGES, ROWS = 2048, DEPTH = 32 };
enum { SAMPLES = 16, BYTES_LEAST = 128 << 10, BYTES_MOST = 384 << 10 };

struct world {
	struct hal_device *dev;
	struct hal_device_info info;
	struct hal_partition *part;
	struct hal_program *program;
	struct hal_kernel *kernel;
	struct hal_queue *queue[STAGES];
	struct hal_buffer *in[BUFFERS], *out[BUFFERS], *from[BUFFERS], *to[BUFFERS];
	struct hal_arg args[BUFFERS][2];
	struct hal_point done[BUFFERS];
	uint64_t bytes; /* of a copy */
};

/* ---- the device -------------------------------------------------------------------- */

static int gemm(struct hal_npu_builder *b)
{
	static const int32_t mult = 1073741824, shift = -6;
	static const int8_t weights[DEPTH * DEPTH];
	struct hal_npu_gemm op = HAL_INIT(hal_npu_gemm);

	op.m = ROWS;
	op.k = op.n = DEPTH;
	op.out.mult = &mult;
	op.out.shift = &shift;
	op.out.min = -128;
	op.out.max = 127;
	if (hal_npu_const(b, weights, sizeof(weights), &op.b.id) != 0 ||
	    hal_npu_kernel(b, "gemm") != 0 ||
	    hal_npu_arg(b, (uint64_t)ROWS * DEPTH, &op.a.id) != 0 ||
	    hal_npu_arg(b, (uint64_t)ROWS * DEPTH, &op.d.id) != 0)
		return TOOL_FAILED;
	return hal_npu_gemm(b, &op);
}

static int load(struct world *w)
{
	struct hal_npu_builder *b;
	void *image = NULL;
	size_t size;
	int err = hal_npu_builder_create(&b);

	if (err != 0)
		return err;
	err = gemm(b);
	if (err == 0)
		err = hal_npu_build(b, &image, &size);
	if (err == 0)
		err = hal_program_load(w->dev, image, size, &w->program);
	hal_npu_image_free(image);
	(void)hal_npu_builder_destroy(b);
	return err != 0 ? err : hal_kernel_find(w->program, "gemm", &w->kernel);
}

static int make_buffers(struct world *w, unsigned int i)
{
	struct hal_buffer_desc bd = HAL_INIT(hal_buffer_desc);
	void *address;

	bd.bytes = BYTES_MOST;
	if (hal_buffer_create(w->part, &bd, &w->in[i]) != 0 ||
	    hal_buffer_create(w->part, &bd, &w->out[i]) != 0 ||
	    hal_host_alloc(w->part, bd.bytes, &w->from[i], &address) != 0 ||
	    hal_host_alloc(w->part, bd.bytes, &w->to[i], &address) != 0)
		return TOOL_FAILED;
	w->args[i][0].buffer = w->in[i];
	w->args[i][1].buffer = w->out[i];
	return 0;
}

static int open_world(struct world *w, const char *target)
{
	struct hal_partition_desc pd = HAL_INIT(hal_partition_desc);
	struct hal_queue_desc qd = HAL_INIT(hal_queue_desc);
	int err = hal_open(target, NULL, &w->dev);

	if (err == -ENODEV)
		return BENCH_SKIP;
	w->info = (struct hal_device_info)HAL_INIT(hal_device_info);
	if (err != 0 || hal_device_get_info(w->dev, &w->info) != 0)
		return bench_die("a device");
	pd.units_floor = w->info.unit_rows * w->info.unit_cols;
	if (hal_partition_create(w->dev, &pd, &w->part) != 0 || load(w) != 0)
		return bench_die("a partition");
	for (unsigned int i = 0; i < STAGES; i++)
		if (hal_queue_create(w->part, &qd, &w->queue[i]) != 0)
			return bench_die("a queue");
	for (unsigned int i = 0; i < BUFFERS; i++)
		if (make_buffers(w, i) != 0)
			return bench_die("buffers");
	return 0;
}

static int close_world(struct world *w)
{
	int err = 0;

	for (unsigned int i = 0; i < BUFFERS; i++)
		err |= hal_buffer_destroy(w->in[i]) | hal_buffer_destroy(w->out[i]) |
		       hal_buffer_destroy(w->from[i]) | hal_buffer_destroy(w->to[i]);
	for (unsigned int i = 0; i < STAGES; i++)
		err |= hal_queue_destroy(w->queue[i]);
	err |= hal_program_unload(w->program);
	err |= hal_partition_destroy(w->part);
	err |= hal_close(w->dev);
	return err != 0 ? bench_die("closing") : 0;
}

/* ---- pipelines --------------------------------------------------------------------- */

static struct hal_cmd command(const struct world *w, unsigned int stage, unsigned int i)
{
	switch (stage) {
	case WRITE:
		return hal_cmd_write(w->in[i], 0, w->from[i], 0, w->bytes);
	case READ:
		return hal_cmd_read(w->to[i], 0, w->out[i], 0, w->bytes);
	default:
		return hal_cmd_launch(w->kernel, w->args[i], 2);
	}
}

static int wait_for(struct world *w, unsigned int i)
{
	return w->done[i].timeline == NULL ? 0 : hal_wait(&w->done[i], 1, 0, HAL_FOREVER);
}

/* Submits stages first to last of a round, one after the other. */
static int submit_round(struct world *w, unsigned int first, unsigned int last,
			unsigned int i, int one_queue)
{
	struct hal_submit_desc d = HAL_INIT(hal_submit_desc);
	struct hal_point point = {NULL, 0};

	for (unsigned int s = first; s <= last; s++) {
		struct hal_cmd cmd = command(w, s, i);
		const struct hal_point before = point;

		d.cmds = &cmd;
		d.cmd_count = 1;
		d.waits = &before;
		d.wait_count = s > first && !one_queue;
		if (hal_submit(w->queue[one_queue ? 0 : s], &d, &point) != 0)
			return bench_die("hal_submit");
	}
	w->done[i] = point;
	return 0;
}

/* Cycles of a round of stages first to last: between the ends of round BUFFERS and of the
 * last, so that what fills and empties the pipeline is not counted. */
static int measure(struct world *w, unsigned int first, unsigned int last, int one_queue,
		   unsigned int rounds, double *cycles)
{
	uint64_t begun = 0;
	unsigned int all = rounds + BUFFERS;

	memset(w->done, 0, sizeof(w->done));
	for (unsigned int n = 0; n < all + BUFFERS; n++) {
		unsigned int i = n % BUFFERS;

		if (wait_for(w, i) != 0)
			return bench_die("hal_wait");
		if (n == 2 * BUFFERS - 1)
			begun = hal_device_get_time(w->dev);
		if (n == all + BUFFERS - 1)
			*cycles = (double)(hal_device_get_time(w->dev) - begun) / rounds;
		if (n < all && submit_round(w, first, last, i, one_queue) != 0)
			return TOOL_FAILED;
	}
	return 0;
}

/* Sets .bytes so that the mean of a write and a read takes as long as the compute stage,
 * to within a row of copies; *stage: the longest of the three. */
static int balance(struct world *w, double *stage)
{
	uint64_t low = BYTES_LEAST, high = BYTES_MOST;
	double cycles[STAGES] = {0};

	if (measure(w, COMPUTE, COMPUTE, 0, SAMPLES, &cycles[COMPUTE]) != 0)
		return TOOL_FAILED;
	for (;;) {
		w->bytes = (low + high) / 2 / 64 * 64;
		if (measure(w, WRITE, WRITE, 0, SAMPLES, &cycles[WRITE]) != 0 ||
		    measure(w, READ, READ, 0, SAMPLES, &cycles[READ]) != 0)
			return TOOL_FAILED;
		if (high - low < 1024)
			break;
		if (cycles[WRITE] + cycles[READ] < 2 * cycles[COMPUTE])
			low = w->bytes;
		else
			high = w->bytes;
	}
	*stage = 0;
	for (unsigned int s = 0; s < STAGES; s++)
		*stage = cycles[s] > *stage ? cycles[s] : *stage;
	fprintf(stderr, "bytes %llu: write %.1f, compute %.1f, read %.1f cycles\n",
		(unsigned long long)w->bytes, cycles[WRITE], cycles[COMPUTE],
		cycles[READ]);
	return 0;
}

/* ---- modes ------------------------------------------------------------------------- */

static int run(const char *target, unsigned int rounds, int memory)
{
	static struct world w;
	double stage, piped, one;
	int err = open_world(&w, target);

	if (err != 0)
		return err;
	if (balance(&w, &stage) != 0 ||
	    measure(&w, WRITE, READ, 0, rounds, &piped) != 0 ||
	    measure(&w, WRITE, READ, 1, rounds, &one) != 0)
		return TOOL_FAILED;
	if (memory) {
		double bytes = 4.0 * (double)w.bytes + 2.0 * ROWS * DEPTH;
		double least =
			bytes / ((double)w.info.bandwidth / (double)w.info.clock_hz);

		printf("figure copy.overlap.channels %.6f\n", piped / stage);
		printf("figure copy.overlap.channels_of_bound %.6f\n", piped / least);
		printf("figure copy.barriers.channels %.6f\n", one / stage);
	} else {
		printf("figure copy.overlap %.6f\n", piped / stage);
		printf("figure copy.barriers %.6f\n", one / stage);
	}
	return close_world(&w);
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";
	const char *target = argc > 2 ? argv[2] : "npu:0?engine=fast";
	unsigned int rounds = argc > 3 ? (unsigned int)strtoul(argv[3], NULL, 10) : 200;
	int memory = strcmp(mode, "memory") == 0;

	if ((!memory && strcmp(mode, "overlap") != 0) || argc > 4 || rounds == 0) {
		fprintf(stderr, "usage: bench_copy overlap|memory [TARGET [ROUNDS]]\n");
		return 2;
	}
	if (!memory && argc < 3)
		target = "npu:0?engine=fast&memory=ideal";
	bench_within(300);
	return tool_end(run(target, rounds, memory));
}

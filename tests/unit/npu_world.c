/* SPDX-License-Identifier: Apache-2.0 */
/* npu_world.c - one random operation a program, one launch, every byte compared. */
#include "npu_world.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "npu/internal.h"
#include "slow.h"

/* In a static library the registry's weak reference alone does not bring the backend in.
 */
__attribute__((used)) static const struct hal_backend *(*const keep)(
	const struct hal_host *) = hal_backend_npu;

#define GUARD 0xA5

uint32_t world_random(struct world *w)
{
	w->seed = w->seed * 1664525u + 1013904223u;
	return w->seed >> 8;
}

uint32_t pick(struct world *w, uint32_t lo, uint32_t hi)
{
	return lo + world_random(w) % (hi - lo + 1);
}

int32_t pick_byte(struct world *w, uint32_t is_uint8)
{
	return (int32_t)pick(w, 0, 255) - (is_uint8 ? 0 : 128);
}

int32_t pick_mult(struct world *w)
{
	return (int32_t)(0x40000000u + world_random(w) * 64u % 0x40000000u);
}

void pick_clamp(struct world *w, uint32_t is_uint8, int32_t *lo, int32_t *hi)
{
	int32_t x, y;

	*lo = is_uint8 ? 0 : -128;
	*hi = is_uint8 ? 255 : 127;
	if (pick(w, 0, 2))
		return;
	x = pick_byte(w, is_uint8);
	y = pick_byte(w, is_uint8);
	*lo = x < y ? x : y;
	*hi = x < y ? y : x;
}

int32_t value(uint8_t byte, uint32_t is_uint8)
{
	return is_uint8 ? byte : (int8_t)byte;
}

int32_t scaled(int32_t x, int32_t mult, int32_t shift)
{
	int64_t product, half;
	int32_t right = shift < 0 ? -shift : 0;

	if (shift > 0)
		x = (int32_t)((uint32_t)x << shift);
	product = ((int64_t)x * mult + (INT64_C(1) << 30)) >> 31;
	if (!right)
		return (int32_t)product;
	/* halves away from zero */
	half = INT64_C(1) << (right - 1);
	if (product < 0)
		return (int32_t) - ((-product + half) >> right);
	return (int32_t)((product + half) >> right);
}

int32_t clamped(int64_t x, int32_t lo, int32_t hi)
{
	return (int32_t)(x < lo ? lo : x > hi ? hi : x);
}

/* ---- one program, one launch ------------------------------------------------------ */

static void begin_program(struct world *w)
{
	for (uint32_t i = 0; i < BYTES; i++) {
		w->a[i] = (uint8_t)world_random(w);
		w->b[i] = (uint8_t)world_random(w);
	}
	memset(w->want, GUARD, BYTES);
	OK(hal_npu_builder_create(&w->builder));
	OK(hal_npu_kernel(w->builder, "k"));
	OK(hal_npu_arg(w->builder, BYTES, &w->pa.id));
	OK(hal_npu_arg(w->builder, BYTES, &w->pb.id));
	OK(hal_npu_arg(w->builder, BYTES, &w->pd.id));
}

static void run_program(struct world *w)
{
	struct hal_arg args[] = {{w->in[0], 0, 0}, {w->in[1], 0, 0}, {w->out, 0, 0}};
	struct hal_submit_desc submit = HAL_INIT(hal_submit_desc);
	struct hal_program *prog;
	struct hal_kernel *kernel;
	struct hal_point done;
	struct hal_cmd cmd;
	void *image;
	size_t size;

	OK(hal_npu_build(w->builder, &image, &size));
	OK(hal_program_load(w->dev, image, size, &prog));
	hal_npu_image_free(image);
	hal_npu_builder_destroy(w->builder);
	OK(hal_kernel_find(prog, "k", &kernel));
	OK(hal_buffer_write(w->in[0], 0, w->a, BYTES));
	OK(hal_buffer_write(w->in[1], 0, w->b, BYTES));
	memset(w->got, GUARD, BYTES);
	OK(hal_buffer_write(w->out, 0, w->got, BYTES));
	cmd = hal_cmd_launch(kernel, args, 3);
	submit.cmds = &cmd;
	submit.cmd_count = 1;
	OK(hal_submit(w->queue, &submit, &done));
	OK(hal_wait(&done, 1, 0, HAL_FOREVER));
	OK(hal_buffer_read(w->out, 0, w->got, BYTES));
	OK(hal_program_unload(prog));
}

static void open_partition(struct world *w, uint32_t rows, uint32_t cols)
{
	struct hal_partition_desc desc = HAL_INIT(hal_partition_desc);
	struct hal_queue_desc queue = HAL_INIT(hal_queue_desc);
	struct hal_buffer_desc buffer = HAL_INIT(hal_buffer_desc);

	desc.rows = (uint16_t)rows;
	desc.cols = (uint16_t)cols;
	desc.row = (uint16_t)pick(w, 0, 16 - rows);
	desc.col = (uint16_t)pick(w, 0, 16 - cols);
	buffer.bytes = BYTES;
	OK(hal_partition_create(w->dev, &desc, &w->part));
	OK(hal_queue_create(w->part, &queue, &w->queue));
	OK(hal_buffer_create(w->part, &buffer, &w->in[0]));
	OK(hal_buffer_create(w->part, &buffer, &w->in[1]));
	OK(hal_buffer_create(w->part, &buffer, &w->out));
}

static void close_partition(struct world *w)
{
	OK(hal_buffer_destroy(w->in[0]));
	OK(hal_buffer_destroy(w->in[1]));
	OK(hal_buffer_destroy(w->out));
	OK(hal_queue_destroy(w->queue));
	OK(hal_partition_destroy(w->part));
}

static void compare(const struct world *w, uint32_t seed, uint32_t rows, uint32_t cols)
{
	for (uint32_t at = 0; at < BYTES; at++)
		if (w->got[at] != w->want[at])
			fail_msg("seed %u on %ux%u: %s: byte %u is 0x%02x, not 0x%02x",
				 seed, rows, cols, w->what, at, w->got[at], w->want[at]);
}

void world_run(const char *target, const world_make *make, size_t count,
	       uint32_t partitions, uint32_t each)
{
	struct world *w = calloc(1, sizeof(*w));

	assert_non_null(w);
	w->seed = 20240;
	OK(hal_open(target, NULL, &w->dev));
	for (uint32_t p = 0; p < partitions; p++) {
		uint32_t rows = pick(w, 1, 16), cols = pick(w, 1, 16);

		open_partition(w, rows, cols);
		for (uint32_t i = 0; i < each; i++) {
			uint32_t seed = w->seed;

			begin_program(w);
			make[world_random(w) % count](w);
			run_program(w);
			compare(w, seed, rows, cols);
		}
		close_partition(w);
	}
	OK(hal_close(w->dev));
	free(w);
}

void world_golden(const world_make *make, size_t count)
{
	world_run("npu:0?model=" HAL_BINARY_DIR "/npu-rtl/libnpu_golden.so", make, count,
		  20, 60);
}

/* A skip, not a failure, where models are not built.  Under valgrind one takes minutes,
 * and the golden model shows the same memory errors. */
void world_rtl(const world_make *make, size_t count)
{
	struct hal_device *dev;
	int rc = under_valgrind() ? -ENODEV : hal_open("npu:0", NULL, &dev);

	if (rc == -ENODEV)
		skip();
	OK(rc);
	OK(hal_close(dev));
	world_run("npu:0", make, count, 20, 20);
	world_run("npu:0?memory=ideal&channels=6&granule=256&memory_size=1M", make, count,
		  4, 8);
}

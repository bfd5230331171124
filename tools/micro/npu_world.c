/* SPDX-License-Identifier: Apache-2.0 */
/* npu_world.c - an NPU as an application has it, and kernels timed on it. */
#include "npu_world.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "bench.h"

int npu_world_open(struct npu_world *w, const char *target)
{
	struct hal_device_info info = HAL_INIT(hal_device_info);
	struct hal_partition_desc pd = HAL_INIT(hal_partition_desc);
	const struct hal_queue_desc qd = HAL_INIT(hal_queue_desc);
	int err = hal_open(target, NULL, &w->dev);

	if (err == -ENODEV)
		return BENCH_SKIP;
	if (err != 0 || hal_device_get_info(w->dev, &info) != 0)
		return bench_die("a device");
	w->rows = info.unit_rows;
	w->cols = info.unit_cols;
	pd.units_floor = info.unit_rows * info.unit_cols;
	if (hal_partition_create(w->dev, &pd, &w->part) != 0 ||
	    hal_queue_create(w->part, &qd, &w->queue) != 0)
		return bench_die("a partition and a queue");
	return 0;
}

int npu_world_close(struct npu_world *w)
{
	int err = hal_queue_destroy(w->queue);

	err |= hal_partition_destroy(w->part);
	err |= hal_close(w->dev);
	return err != 0 ? bench_die("closing") : 0;
}

static int load(const struct npu_world *w, struct hal_npu_builder *b,
		struct hal_program **prog)
{
	void *image = NULL;
	size_t size;
	int err = hal_npu_build(b, &image, &size);

	if (err == 0)
		err = hal_program_load(w->dev, image, size, prog);
	hal_npu_image_free(image);
	return err;
}

static int launch(const struct npu_world *w, struct hal_kernel *kernel,
		  const struct hal_arg *args, uint32_t count, uint64_t *cycles)
{
	struct hal_submit_desc d = HAL_INIT(hal_submit_desc);
	struct hal_cmd cmd = hal_cmd_launch(kernel, args, count);
	uint64_t begun = hal_device_get_time(w->dev);
	struct hal_point done;
	int err;

	d.cmds = &cmd;
	d.cmd_count = 1;
	err = hal_submit(w->queue, &d, &done);
	if (err == 0)
		err = hal_wait(&done, 1, 0, HAL_FOREVER);
	*cycles = hal_device_get_time(w->dev) - begun;
	return err;
}

int npu_world_run(const struct npu_world *w, struct hal_npu_builder *b,
		  const char *kernel, const uint64_t *bytes, uint32_t count,
		  uint64_t *cycles)
{
	struct hal_buffer_desc bd = HAL_INIT(hal_buffer_desc);
	struct hal_program *prog = NULL;
	struct hal_kernel *found;
	struct hal_arg args[NPU_WORLD_ARGS] = {{0}};
	int err = load(w, b, &prog);

	for (uint32_t i = 0; err == 0 && i < count; i++) {
		bd.bytes = bytes[i];
		err = hal_buffer_create(w->part, &bd, &args[i].buffer);
	}
	if (err == 0)
		err = hal_kernel_find(prog, kernel, &found);
	if (err == 0)
		err = launch(w, found, args, count, cycles);
	for (uint32_t i = 0; i < count; i++)
		(void)hal_buffer_destroy(args[i].buffer);
	if (prog != NULL)
		(void)hal_program_unload(prog);
	return err;
}

int npu_world_counters(const struct npu_world *w, struct hal_npu_counters *c)
{
	const struct hal_npu_extension *npu = hal_device_get_extension(w->dev, "npu");
	struct hal_partition_info info = HAL_INIT(hal_partition_info);
	int err;

	if (npu == NULL)
		return -ENOTSUP;
	err = hal_partition_get_info(w->part, &info);
	*c = (struct hal_npu_counters)HAL_INIT(hal_npu_counters);
	return err != 0 ? err
			: npu->counters(hal_device_get_native(w->dev), info.index, c);
}

void npu_world_print_stalls(const struct npu_world *w)
{
	struct hal_npu_counters c;

	if (npu_world_counters(w, &c) != 0)
		return;
	printf("  stalls: activations %llu weights %llu outputs %llu sequence %llu; "
	       "reads %llu writes %llu TLB misses %llu\n",
	       (unsigned long long)c.stall_a, (unsigned long long)c.stall_w,
	       (unsigned long long)c.stall_out, (unsigned long long)c.stall_seq,
	       (unsigned long long)c.read_beats, (unsigned long long)c.write_beats,
	       (unsigned long long)c.tlb_misses);
}

uint64_t npu_world_bound(const struct npu_world *w, uint32_t m, uint32_t n, uint32_t k)
{
	return (uint64_t)((k + w->rows - 1) / w->rows) * ((n + w->cols - 1) / w->cols) *
	       (m > w->rows ? m : w->rows);
}

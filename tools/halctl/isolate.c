/* SPDX-License-Identifier: Apache-2.0 */
/*
 * isolate.c - halctl probe --verify: how much slower a tenant's loads are beside a hog
 * that keeps to the other channels of a map, and, as a control, to the same.
 *
 * Both have units and memory of their own, and load lines of granules that the map has on
 * their half of the channels.  Their rings and page tables lie anywhere: what a device
 * adds there is part of the figure.
 */
#include "halctl.h"

#include <errno.h>
#include <stdio.h>

#include <hal/npu.h>

#include "lib/color_map.h"
#include "loads.h"

#define LINES    8u
#define OPERANDS 8u
#define SWEEPS   4u /* of a kernel over its operands */
#define ROUNDS   16u
#define LAUNCHES 2u  /* of the tenant: as many first, so that its pages are translated */
#define HOG      24u /* launches of the hog, which must outlast that; a queue has room */
#define DRAWS    100000u

struct tenant {
	struct hal_partition *part;
	struct hal_queue *queue;
	struct hal_buffer *memory, *result;
	uint64_t first, bytes;
};

struct bench {
	struct hal_device *dev;
	struct hal_device_info info;
	struct hal_program *program;
	struct hal_kernel *sweep;
	struct tenant tenant, hog;
	struct color_map *map;
	uint64_t random;
};

/* Cycles of all rounds. */
struct taken {
	uint64_t alone, apart, together;
};

static uint64_t draw(struct bench *b)
{
	b->random ^= b->random << 13;
	b->random ^= b->random >> 7;
	b->random ^= b->random << 17;
	return b->random;
}

static int load_program(struct bench *b)
{
	struct hal_npu_builder *builder = NULL;
	uint32_t operand[OPERANDS], result = 0;
	void *image = NULL;
	size_t size = 0;
	int rc = hal_npu_builder_create(&builder);

	if (rc == 0)
		rc = hal_npu_kernel(builder, "sweep");
	for (uint32_t i = 0; rc == 0 && i < OPERANDS; i++)
		rc = hal_npu_arg(builder, (uint64_t)LINES * LOAD_LINE, &operand[i]);
	if (rc == 0)
		rc = hal_npu_arg(builder, LOAD_RESULT, &result);
	for (uint32_t i = 0; rc == 0 && i < SWEEPS * OPERANDS; i++)
		rc = load_by_gemm(builder, operand[i % OPERANDS],
				  operand[(i + 1 + i / OPERANDS) % OPERANDS], result,
				  LINES);
	if (rc == 0)
		rc = hal_npu_build(builder, &image, &size);
	if (rc == 0)
		rc = hal_program_load(b->dev, image, size, &b->program);
	if (rc == 0)
		rc = hal_kernel_find(b->program, "sweep", &b->sweep);
	if (rc != 0)
		rc = tool_fail_hal();
	hal_npu_image_free(image);
	hal_npu_builder_destroy(builder);
	return rc;
}

static int add_tenant(struct bench *b, uint16_t col, struct tenant *t)
{
	struct hal_partition_desc part = HAL_INIT(hal_partition_desc);
	struct hal_buffer_desc result = HAL_INIT(hal_buffer_desc);
	struct hal_queue_desc queue = HAL_INIT(hal_queue_desc);

	part.rows = (uint16_t)(b->info.unit_rows < 4 ? b->info.unit_rows : 4);
	part.col = col;
	part.cols = 2;
	result.bytes = LOAD_RESULT;
	if (hal_partition_create(b->dev, &part, &t->part) != 0 ||
	    hal_queue_create(t->part, &queue, &t->queue) != 0 ||
	    hal_buffer_create(t->part, &result, &t->result) != 0)
		return tool_fail_hal();
	return load_memory(b->dev, t->part, b->info.memory_bytes / 2, &t->memory,
			   &t->first, &t->bytes);
}

static int open_bench(const struct halctl *ctl, struct bench *b)
{
	char why[COLOR_MAP_WHY];

	if (color_map_read(ctl->verify, &b->map, why) != 0)
		return tool_fail("%s", why);
	b->info = (struct hal_device_info)HAL_INIT(hal_device_info);
	if (load_open(ctl, &b->dev) != 0)
		return TOOL_FAILED;
	if (hal_device_get_info(b->dev, &b->info) != 0)
		return tool_fail_hal();
	/* It is held against the device here: nobody need have done so before. */
	if (color_map_fits(b->map, &b->info, true, ctl->verify, why) != 0)
		return tool_fail("%s", why);
	if (hal_device_get_extension(b->dev, "npu") == NULL)
		return tool_fail("probe: %s does not report where in its memory a buffer "
				 "lies; use an NPU",
				 b->info.name);
	if (b->info.unit_cols < 4 || b->info.partitions_max < 2)
		return tool_fail("probe: --verify needs room for two tenants of two "
				 "columns each, which %s does not have",
				 b->info.name);
	if (b->map->channels < 2)
		return tool_fail("probe: %s has one channel, which tenants cannot divide",
				 ctl->verify);
	if (load_program(b) != 0 || add_tenant(b, 0, &b->tenant) != 0)
		return TOOL_FAILED;
	return add_tenant(b, 2, &b->hog);
}

static int drop_tenant(const struct tenant *t)
{
	int err = 0;

	if (t->queue != NULL)
		err = hal_queue_destroy(t->queue);
	if (err == 0 && t->memory != NULL)
		err = hal_buffer_destroy(t->memory);
	if (err == 0 && t->result != NULL)
		err = hal_buffer_destroy(t->result);
	return err;
}

static int close_bench(struct bench *b)
{
	int err = drop_tenant(&b->tenant);

	if (err == 0)
		err = drop_tenant(&b->hog);
	if (err == 0 && b->program != NULL)
		err = hal_program_unload(b->program);
	if (err == 0 && b->tenant.part != NULL)
		err = hal_partition_destroy(b->tenant.part);
	if (err == 0 && b->hog.part != NULL)
		err = hal_partition_destroy(b->hog.part);
	if (err == 0 && b->dev != NULL)
		err = hal_close(b->dev);
	color_map_free(b->map);
	return err != 0 ? tool_fail_hal() : 0;
}

/* Lines of a granule of t's memory on the lower (0) or upper (1) half of the channels. */
static int place(struct bench *b, const struct tenant *t, uint32_t half,
		 struct hal_arg *arg)
{
	uint64_t granule = b->map->granule, least = (t->first + granule - 1) / granule;
	uint64_t count = (t->first + t->bytes) / granule - least;
	uint32_t border = b->map->channels / 2;

	for (uint32_t i = 0; count != 0 && i < DRAWS; i++) {
		uint64_t g = least + draw(b) % count;
		uint32_t channel = color_map_channel(b->map, g);

		if (channel == COLOR_NONE || (channel >= border) != half)
			continue;
		*arg = (struct hal_arg){.buffer = t->memory,
					.offset = g * granule - t->first,
					.bytes = (uint64_t)LINES * LOAD_LINE};
		return 0;
	}
	return tool_fail("probe: no granule of %llu bytes lies on the channels %u to %u",
			 (unsigned long long)t->bytes, half ? border : 0,
			 (half ? b->map->channels : border) - 1);
}

/* count launches of t on that half; *done: the last of them. */
static int launch(struct bench *b, const struct tenant *t, uint32_t half, uint32_t count,
		  struct hal_point *done)
{
	struct hal_arg args[OPERANDS + 1] = {[OPERANDS] = {.buffer = t->result}};
	struct hal_cmd cmd;
	int rc = 0;

	for (uint32_t n = 0; rc == 0 && n < count; n++) {
		struct hal_submit_desc s = HAL_INIT(hal_submit_desc);

		for (uint32_t i = 0; rc == 0 && i < OPERANDS; i++)
			rc = place(b, t, half, &args[i]);
		cmd = hal_cmd_launch(b->sweep, args, OPERANDS + 1);
		s.cmds = &cmd;
		s.cmd_count = 1;
		if (rc == 0 && hal_submit(t->queue, &s, done) != 0)
			rc = tool_fail_hal();
	}
	return rc;
}

static int stamp(const struct tenant *t, uint64_t offset, struct hal_point *done)
{
	struct hal_submit_desc s = HAL_INIT(hal_submit_desc);
	struct hal_cmd cmd = hal_cmd_timestamp(t->result, offset);

	s.cmds = &cmd;
	s.cmd_count = 1;
	return hal_submit(t->queue, &s, done) != 0 ? tool_fail_hal() : 0;
}

/* What the tenant's launches take; hog: 0 none, 1 on the other half, 2 on its own. */
static int time_of(struct bench *b, uint64_t seed, uint32_t hog, uint64_t *cycles)
{
	struct hal_point done, hogs = {NULL, 0};
	uint64_t t[2];
	int rc = 0, err;

	b->random = ~seed;
	if (hog != 0)
		rc = launch(b, &b->hog, hog == 1, HOG, &hogs);
	/* The same granules each time. */
	b->random = seed;
	if (rc == 0)
		rc = launch(b, &b->tenant, 0, LAUNCHES, &done);
	b->random = seed;
	if (rc == 0)
		rc = stamp(&b->tenant, 32, &done);
	if (rc == 0)
		rc = launch(b, &b->tenant, 0, LAUNCHES, &done);
	if (rc == 0)
		rc = stamp(&b->tenant, 40, &done);
	if (rc != 0)
		return rc;
	if (hal_wait(&done, 1, 0, HAL_FOREVER) != 0 ||
	    hal_buffer_read(b->tenant.result, 32, t, sizeof(t)) != 0)
		return tool_fail_hal();
	*cycles += t[1] - t[0];
	if (hog == 0)
		return 0;
	err = hal_wait(&hogs, 1, 0, 0);
	if (err == 0)
		return tool_fail("probe: the hog ended before the tenant, so the "
				 "measurement is invalid");
	if (err != -ETIMEDOUT || hal_wait(&hogs, 1, 0, HAL_FOREVER) != 0)
		return tool_fail_hal();
	return 0;
}

static int compare(struct bench *b, uint32_t seed, struct taken *t)
{
	int rc = 0;

	for (uint32_t i = 0; rc == 0 && i < ROUNDS; i++) {
		uint64_t of =
			((uint64_t)seed << 32 | (i + 1)) * UINT64_C(0x9e3779b97f4a7c15);

		rc = time_of(b, of, 0, &t->alone);
		if (rc == 0)
			rc = time_of(b, of, 1, &t->apart);
		if (rc == 0)
			rc = time_of(b, of, 2, &t->together);
	}
	return rc;
}

/* What other channels have to spare of what a hog on the same ones costs; by maps that
 * are right it is more than half. */
#define SPARED_LEAST 0.25

static int judge(const struct halctl *ctl, double apart, double together)
{
	if (together - apart >= SPARED_LEAST * (together - 1))
		return 0;
	return tool_fail(
		"probe: %s: its channels do not keep tenants apart here: slowdown %.4f "
		"beside a hog on other channels, %.4f beside one on the same",
		ctl->verify, apart, together);
}

static int print(const struct halctl *ctl, const struct bench *b, const struct taken *t)
{
	double apart = (double)t->apart / (double)t->alone;
	double together = (double)t->together / (double)t->alone;
	struct out *o;
	int rc;

	if (!ctl->json) {
		printf("device         %s\n", b->info.name);
		printf("channels       %u, of which the tenant uses %u\n",
		       b->map->channels, b->map->channels / 2);
		printf("alone          %llu cycles\n", (unsigned long long)t->alone);
		printf("slowdown       %.4f beside a hog on the other channels\n", apart);
		printf("control        %.4f beside a hog on the same channels\n",
		       together);
		return judge(ctl, apart, together);
	}
	o = out_create();
	if (o == NULL)
		return TOOL_FAILED;
	out_record(o, NULL);
	out_str(o, "device", b->info.name);
	out_u64(o, "channels", b->map->channels);
	out_u64(o, "alone_cycles", t->alone);
	out_real(o, "slowdown", apart);
	out_real(o, "slowdown_shared", together);
	out_record_end(o);
	rc = out_finish(o);
	return rc == 0 ? judge(ctl, apart, together) : rc;
}

int halctl_isolate(const struct halctl *ctl)
{
	struct bench b = {0};
	struct taken t = {0};
	int rc = open_bench(ctl, &b);

	if (rc == 0)
		rc = compare(&b, ctl->seed, &t);
	if (rc == 0)
		rc = print(ctl, &b, &t);
	return close_bench(&b) != 0 ? TOOL_FAILED : rc;
}

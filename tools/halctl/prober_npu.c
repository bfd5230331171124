/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prober_npu.c - an NPU that is asked which granules of its memory share a channel.
 *
 * A test is one operation of an NPU (loads.h).  A smaller one goes before it, so that
 * both pages are translated already.  Its time is the device's own, by TIMESTAMP; no
 * register is looked at.
 *
 * Two operations are tried.  A GEMM takes two beats a request: without a cache they make
 * one channel slower than two.  A cache fetches whole lines whatever was asked, and gives
 * of a line once fetched as much as is wanted, so that the GEMM's second request of each
 * costs nothing.  Where no map is found, an addition is next, which asks for each line
 * once, of both operands in turn.
 */
#include "prober_npu.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>

#include <hal/npu.h>

#include "lib/color_map.h"
#include "loads.h"

#define TOUCH          PROBE_SIZES /* the kernel that goes before */
#define SIDE           4u /* of the rectangle: larger ones wait for more weights */
#define PIECE_LOG2     8u
#define LARGEST        12u
#define REPEATS        8u
#define BRIEF_ATTEMPTS 2u
#define BRIEF_TESTS    150000u
#define TIMES          32u /* in the result */

/* ---- a device that can be asked ------------------------------------------------------- */

/* What loads, and how many lines at most: more are no better with a GEMM. */
static const struct way {
	const char *name;
	int (*load)(struct hal_npu_builder *b, uint32_t one, uint32_t other, uint32_t d,
		    uint32_t lines);
	uint32_t lines;
	uint32_t repeats; /* of a test, of which the fastest counts */
	bool cached;      /* for memory behind a cache */
} ways[PROBE_WAYS] = {
	{"gemm", load_by_gemm, 8, 1, false},
	{"add", load_by_sum, 16, 1, true},
	{"gemms", load_by_gemm, 8, REPEATS, false},
};

static int add_kernel(struct hal_npu_builder *b, const struct way *way, const char *name,
		      uint32_t lines)
{
	uint32_t operand[2], result;

	if (hal_npu_kernel(b, name) != 0 ||
	    hal_npu_arg(b, (uint64_t)lines * LOAD_LINE, &operand[0]) != 0 ||
	    hal_npu_arg(b, (uint64_t)lines * LOAD_LINE, &operand[1]) != 0 ||
	    hal_npu_arg(b, LOAD_RESULT, &result) != 0)
		return -1;
	return way->load(b, operand[0], operand[1], result, lines);
}

/* "gemm8", "gemm touch" */
static void name_kernel(char name[32], const struct way *way, uint32_t size)
{
	if (size == TOUCH)
		snprintf(name, 32, "%s touch", way->name);
	else
		snprintf(name, 32, "%s%u", way->name, 1u << size);
}

static int load_program(struct probe_npu *d)
{
	struct hal_npu_builder *b = NULL;
	void *image = NULL;
	char name[32];
	size_t size = 0;
	int rc = hal_npu_builder_create(&b);

	for (uint32_t i = 0; rc == 0 && i < PROBE_WAYS * (PROBE_SIZES + 1); i++) {
		const struct way *way = &ways[i / (PROBE_SIZES + 1)];
		uint32_t of = i % (PROBE_SIZES + 1);

		name_kernel(name, way, of);
		rc = add_kernel(b, way, name, of == TOUCH ? 1 : 1u << of);
	}
	if (rc == 0)
		rc = hal_npu_build(b, &image, &size);
	if (rc == 0)
		rc = hal_program_load(d->dev, image, size, &d->program);
	for (uint32_t i = 0; rc == 0 && i < PROBE_WAYS * (PROBE_SIZES + 1); i++) {
		uint32_t way = i / (PROBE_SIZES + 1), of = i % (PROBE_SIZES + 1);

		name_kernel(name, &ways[way], of);
		rc = hal_kernel_find(d->program, name, &d->kernel[way][of]);
	}
	if (rc != 0)
		rc = tool_fail_hal();
	hal_npu_image_free(image);
	hal_npu_builder_destroy(b);
	return rc;
}

int probe_npu_open(struct probe_npu *d)
{
	struct hal_partition_desc part = HAL_INIT(hal_partition_desc);
	struct hal_buffer_desc result = HAL_INIT(hal_buffer_desc);
	struct hal_queue_desc queue = HAL_INIT(hal_queue_desc);

	d->info = (struct hal_device_info)HAL_INIT(hal_device_info);
	d->measure = probe_npu_measure;
	d->user = d;
	if (hal_device_get_info(d->dev, &d->info) != 0)
		return tool_fail_hal();
	if (hal_device_get_extension(d->dev, "npu") == NULL)
		return tool_fail("probe: %s does not report where in its memory a buffer "
				 "lies; use an NPU",
				 d->info.name);
	if (d->info.unit_cols < 2)
		return tool_fail("probe: %s has one column of units, but two are needed",
				 d->info.name);
	part.rows = (uint16_t)(d->info.unit_rows < SIDE ? d->info.unit_rows : SIDE);
	part.cols = (uint16_t)(d->info.unit_cols < SIDE ? d->info.unit_cols : SIDE);
	result.bytes = TIMES + (REPEATS + 1) * sizeof(uint64_t);
	if (hal_partition_create(d->dev, &part, &d->part) != 0 ||
	    hal_queue_create(d->part, &queue, &d->queue) != 0 ||
	    hal_buffer_create(d->part, &result, &d->result) != 0)
		return tool_fail_hal();
	if (load_program(d) != 0)
		return TOOL_FAILED;
	return load_memory(d->dev, d->part, d->info.memory_bytes, &d->memory, &d->first,
			   &d->bytes);
}

int probe_npu_close(struct probe_npu *d)
{
	int err = 0;

	if (d->queue != NULL)
		err = hal_queue_destroy(d->queue);
	if (err == 0 && d->memory != NULL)
		err = hal_buffer_destroy(d->memory);
	if (err == 0 && d->result != NULL)
		err = hal_buffer_destroy(d->result);
	if (err == 0 && d->program != NULL)
		err = hal_program_unload(d->program);
	if (err == 0 && d->part != NULL)
		err = hal_partition_destroy(d->part);
	return err;
}

/* ---- a test --------------------------------------------------------------------------- */

int probe_npu_measure(void *user, const uint64_t *at, uint32_t count, uint32_t lines,
		      uint64_t *cycles)
{
	struct probe_npu *d = user;
	struct hal_submit_desc s = HAL_INIT(hal_submit_desc);
	struct hal_arg args[3] = {
		{.buffer = d->memory, .offset = at[0] - d->first},
		{.buffer = d->memory, .offset = at[1] - d->first},
		{.buffer = d->result},
	};
	uint32_t size = (uint32_t)__builtin_ctz(lines);
	struct hal_cmd cmds[2 * REPEATS + 2];
	uint32_t n = 0, repeats = ways[d->way].repeats;
	uint64_t t[REPEATS + 1], least = UINT64_MAX;
	struct hal_point done;
	int err;

	(void)count; /* two: .together */
	args[0].bytes = args[1].bytes = (uint64_t)lines * LOAD_LINE;
	cmds[n++] = hal_cmd_launch(d->kernel[d->way][TOUCH], args, 3);
	cmds[n++] = hal_cmd_timestamp(d->result, TIMES);
	for (uint64_t i = 1; i <= repeats; i++) {
		cmds[n++] = hal_cmd_launch(d->kernel[d->way][size], args, 3);
		cmds[n++] = hal_cmd_timestamp(d->result, TIMES + 8 * i);
	}
	s.cmds = cmds;
	s.cmd_count = n;
	err = hal_submit(d->queue, &s, &done);
	if (err == 0)
		err = hal_wait(&done, 1, 0, HAL_FOREVER);
	if (err == 0)
		err = hal_buffer_read(d->result, TIMES, t, (repeats + 1) * sizeof(t[0]));
	for (uint32_t i = 0; err == 0 && i < repeats; i++)
		if (t[i + 1] - t[i] < least)
			least = t[i + 1] - t[i];
	*cycles = least;
	return err;
}

/* ---- its map ---------------------------------------------------------------------- */

/* Whole pieces of 2^log2 bytes that are in the buffer. */
static void pieces(const struct probe_npu *d, uint32_t log2, struct discover_device *of)
{
	uint64_t piece = UINT64_C(1) << log2;

	*of = (struct discover_device){.measure = d->measure,
				       .user = d->user,
				       .granule_log2 = log2,
				       .memory = d->info.memory_bytes,
				       .together = 2,
				       /* Sums take as long on one channel as on several
					* without a cache, and what is asked again does
					* behind one. */
				       .several = d->way != 0,
				       .lines = ways[d->way].lines};
	of->first = (uint32_t)((d->first + piece - 1) >> log2);
	of->granules = (uint32_t)((d->first + d->bytes) >> log2) - of->first;
}

/* A granule's size, and with it a map; what came to nothing before is counted with it. */
static int find_at(const struct probe_npu *d, uint32_t log2, uint64_t seed,
		   struct discover_result *r)
{
	const struct discover_options options = {
		.seed = seed,
		.attempts = d->brief ? BRIEF_ATTEMPTS : 0,
		.tests_max = d->brief ? BRIEF_TESTS : 0,
	};
	struct discover_result last = *r;
	struct discover_device of;
	int err;

	color_map_free(r->map);
	pieces(d, log2, &of);
	err = discover(&of, &options, r);
	r->attempts += last.attempts;
	r->tests += last.tests;
	r->loads += last.loads;
	r->cycles += last.cycles;
	return err;
}

static bool is_granule(uint32_t bytes)
{
	return bytes >= 1u << PIECE_LOG2 && bytes <= 1u << LARGEST &&
	       (bytes & (bytes - 1)) == 0;
}

static int find_by(const struct probe_npu *d, uint64_t seed, struct discover_result *r)
{
	struct discover_device of;
	int log2;

	/* The few lines of a piece may not show what those of a page do: a cache's chance
	 * is more than they take.  That a page lies on one channel is a guess, but what
	 * comes of it is verified. */
	if (ways[d->way].cached && is_granule(d->info.page_bytes))
		return find_at(d, (uint32_t)__builtin_ctz(d->info.page_bytes), seed, r);
	/* Numbers of pieces have 24 bits. */
	pieces(d, PIECE_LOG2, &of);
	if (of.granules > (1u << 24) - 1 - of.first)
		of.granules = (1u << 24) - 1 - of.first;
	if (of.memory >> PIECE_LOG2 > 1u << 24)
		of.memory = UINT64_C(1) << (24 + PIECE_LOG2);
	log2 = discover_granule(&of, seed);
	if (log2 < 0)
		return log2;
	return find_at(d, (uint32_t)log2 > LARGEST ? LARGEST : (uint32_t)log2, seed, r);
}

/* First each way is tried for as long as it takes where it is the right one; then, each
 * for as long as it may take. */
int probe_npu_find(struct probe_npu *d, uint64_t seed, struct discover_result *r)
{
	int err = -ENOENT;

	for (uint32_t i = 0; i < 2 * PROBE_WAYS; i++) {
		d->way = i % PROBE_WAYS;
		d->brief = i < PROBE_WAYS;
		err = find_by(d, seed, r);
		if (err != -ENOENT && err != -EBUSY)
			break;
	}
	return err;
}

const char *probe_npu_loads_by(const struct probe_npu *d)
{
	return ways[d->way].name;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probe.c - halctl probe: which memory channel each granule of a device lies on, found by
 * the time of loads.
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
#include "halctl.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <hal/npu.h>

#include "discover.h"
#include "loads.h"
#include "picture.h"
#include "util/color_map.h"

#define SIZES      5u    /* 1, 2, 4, 8 and 16 lines of each granule */
#define TOUCH      SIZES /* the kernel that goes before */
#define WAYS       2u
#define SIDE       4u /* of the rectangle: larger ones wait for more weights */
#define PIECE_LOG2 8u
#define LARGEST    12u

struct device {
	struct hal_device *dev;
	struct hal_device_info info;
	struct hal_partition *part;
	struct hal_queue *queue;
	struct hal_buffer *memory, *result;
	struct hal_program *program;
	struct hal_kernel *kernel[WAYS][SIZES + 1];
	uint32_t way;
	uint64_t first, bytes; /* of memory, by its own addresses */
};

/* ---- a device that can be asked ------------------------------------------------------- */

/* What loads, and how many lines at most: more are no better with a GEMM. */
static const struct way {
	const char *name;
	int (*load)(struct hal_npu_builder *b, uint32_t one, uint32_t other, uint32_t d,
		    uint32_t lines);
	uint32_t lines;
	bool cached; /* for memory behind a cache */
} ways[WAYS] = {{"gemm", load_by_gemm, 8, false}, {"add", load_by_sum, 16, true}};

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

static int load_program(struct device *d)
{
	struct hal_npu_builder *b = NULL;
	void *image = NULL;
	char name[32];
	size_t size = 0;
	int rc = hal_npu_builder_create(&b);

	for (uint32_t i = 0; rc == 0 && i < WAYS * (SIZES + 1); i++) {
		const struct way *way = &ways[i / (SIZES + 1)];
		uint32_t of = i % (SIZES + 1);

		name_kernel(name, way, of);
		rc = add_kernel(b, way, name, of == TOUCH ? 1 : 1u << of);
	}
	if (rc == 0)
		rc = hal_npu_build(b, &image, &size);
	if (rc == 0)
		rc = hal_program_load(d->dev, image, size, &d->program);
	for (uint32_t i = 0; rc == 0 && i < WAYS * (SIZES + 1); i++) {
		uint32_t way = i / (SIZES + 1), of = i % (SIZES + 1);

		name_kernel(name, &ways[way], of);
		rc = hal_kernel_find(d->program, name, &d->kernel[way][of]);
	}
	if (rc != 0)
		rc = tool_fail_hal();
	hal_npu_image_free(image);
	hal_npu_builder_destroy(b);
	return rc;
}

static int open_device(const struct halctl *ctl, struct device *d)
{
	struct hal_partition_desc part = HAL_INIT(hal_partition_desc);
	struct hal_buffer_desc result = HAL_INIT(hal_buffer_desc);
	struct hal_queue_desc queue = HAL_INIT(hal_queue_desc);

	d->info = (struct hal_device_info)HAL_INIT(hal_device_info);
	if (load_open(ctl, &d->dev) != 0)
		return TOOL_FAILED;
	if (hal_device_get_info(d->dev, &d->info) != 0)
		return tool_fail_hal();
	if (hal_device_extension(d->dev, "npu") == NULL)
		return tool_fail("probe: %s does not tell where in its memory a buffer "
				 "lies; an NPU does",
				 d->info.name);
	if (d->info.unit_cols < 2)
		return tool_fail("probe: %s has one column of units, two are needed",
				 d->info.name);
	part.rows = (uint16_t)(d->info.unit_rows < SIDE ? d->info.unit_rows : SIDE);
	part.cols = (uint16_t)(d->info.unit_cols < SIDE ? d->info.unit_cols : SIDE);
	result.bytes = LOAD_RESULT;
	if (hal_partition_create(d->dev, &part, &d->part) != 0 ||
	    hal_queue_create(d->part, &queue, &d->queue) != 0 ||
	    hal_buffer_create(d->part, &result, &d->result) != 0)
		return tool_fail_hal();
	if (load_program(d) != 0)
		return TOOL_FAILED;
	return load_memory(d->dev, d->part, d->info.memory_bytes, &d->memory, &d->first,
			   &d->bytes);
}

static int close_device(struct device *d)
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
	if (err == 0 && d->dev != NULL)
		err = hal_close(d->dev);
	return err != 0 ? tool_fail_hal() : 0;
}

/* ---- a test --------------------------------------------------------------------------- */

static int measure(void *user, const uint64_t *at, uint32_t count, uint32_t lines,
		   uint64_t *cycles)
{
	struct device *d = user;
	struct hal_submit_desc s = HAL_INIT(hal_submit_desc);
	struct hal_arg args[3] = {
		{.buffer = d->memory, .offset = at[0] - d->first},
		{.buffer = d->memory, .offset = at[1] - d->first},
		{.buffer = d->result},
	};
	uint32_t size = (uint32_t)__builtin_ctz(lines);
	struct hal_cmd cmds[4];
	struct hal_point done;
	uint64_t t[2];
	int err;

	(void)count; /* two: .together */
	args[0].bytes = args[1].bytes = (uint64_t)lines * LOAD_LINE;
	cmds[0] = hal_cmd_launch(d->kernel[d->way][TOUCH], args, 3);
	cmds[1] = hal_cmd_timestamp(d->result, 32);
	cmds[2] = hal_cmd_launch(d->kernel[d->way][size], args, 3);
	cmds[3] = hal_cmd_timestamp(d->result, 40);
	s.cmds = cmds;
	s.cmd_count = 4;
	err = hal_submit(d->queue, &s, &done);
	if (err == 0)
		err = hal_wait(&done, 1, 0, HAL_FOREVER);
	if (err == 0)
		err = hal_buffer_read(d->result, 32, t, sizeof(t));
	*cycles = err == 0 ? t[1] - t[0] : 0;
	return err;
}

/* ---- what was found --------------------------------------------------------------------- */

struct found {
	struct discover_result r;
	uint64_t device_cycles; /* all that the device ran, between tests, too */
	double seconds;
};

static int print_json(const struct device *d, const struct found *f, int verified)
{
	const struct color_map *m = f->r.map;
	struct out *o = out_create();

	if (o == NULL)
		return TOOL_FAILED;
	out_record(o, NULL);
	out_str(o, "device", d->info.name);
	out_str(o, "verified", verified ? "yes" : "no");
	if (m != NULL) {
		out_str(o, "kind", color_map_kind(m));
		out_u64(o, "channels", m->channels);
		out_u64(o, "granule_bytes", m->granule);
		out_u64(o, "checked", m->tests);
		out_u64(o, "wrong", m->bad);
		out_real(o, "wrong_at_most", m->bound);
	}
	out_u64(o, "attempts", f->r.attempts);
	out_u64(o, "samples", f->r.samples);
	out_u64(o, "tests", f->r.tests);
	out_u64(o, "loads", f->r.loads);
	out_u64(o, "cycles", f->r.cycles);
	out_u64(o, "device_cycles", f->device_cycles);
	out_real(o, "seconds", f->seconds);
	out_str(o, "loads_by", ways[d->way].name);
	out_real(o, "slow_of_two", f->r.p0);
	out_real(o, "slow_of_one", f->r.p1);
	out_record_end(o);
	return out_finish(o);
}

static void print_rule(const struct color_map *m)
{
	for (uint32_t i = 0; m->kind != COLOR_MAP_TABLE && i < m->mask_count; i++)
		printf("mask %u         0x%llx\n", i, (unsigned long long)m->mask[i]);
	if (m->kind != COLOR_MAP_XORMOD)
		return;
	printf("modulo         %u: digits of granule >> %u, weights", m->q, m->shift);
	for (uint32_t j = 0; j < m->digits; j++)
		printf(" %u", m->weight[j]);
	printf("\n");
}

static void print_text(const struct device *d, const struct found *f, int verified)
{
	const struct color_map *m = f->r.map;

	printf("device         %s\n", d->info.name);
	if (m != NULL) {
		printf("channels       %u\n", m->channels);
		printf("granule        %u bytes\n", m->granule);
		printf("kind           %s\n", color_map_kind(m));
		print_rule(m);
		printf("verified       %s: %llu of %llu fresh granules wrong, at most "
		       "%.2f %% (95 %%)\n",
		       verified ? "yes" : "no", (unsigned long long)m->bad,
		       (unsigned long long)m->tests, 100 * m->bound);
	} else {
		printf("verified       no: no rule and no table\n");
	}
	printf("attempts       %u, from %u samples\n", f->r.attempts, f->r.samples);
	printf("tests          %llu of %llu loads, %llu cycles; of the device %llu\n",
	       (unsigned long long)f->r.tests, (unsigned long long)f->r.loads,
	       (unsigned long long)f->r.cycles, (unsigned long long)f->device_cycles);
	printf("slow           %.3f of pairs on two channels, %.3f on one\n", f->r.p0,
	       f->r.p1);
	printf("time           %.1f s, loads by %s\n", f->seconds, ways[d->way].name);
}

static int write_files(const struct halctl *ctl, const struct device *d,
		       struct color_map *map)
{
	char why[COLOR_MAP_WHY];
	int rc = 0;

	color_map_device(map, &d->info);
	if (ctl->map != NULL && color_map_write(map, ctl->map, why) != 0)
		rc = tool_fail("%s", why);
	if (rc == 0 && ctl->picture != NULL)
		rc = picture_of_map(map, ctl->picture);
	return rc;
}

/* ---- halctl probe ------------------------------------------------------------------------- */

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Whole pieces of 2^log2 bytes that are in the buffer. */
static void pieces(const struct device *d, uint32_t log2, struct discover_device *of)
{
	uint64_t piece = UINT64_C(1) << log2;

	*of = (struct discover_device){.measure = measure,
				       .user = (void *)d,
				       .granule_log2 = log2,
				       .memory = d->info.memory_bytes,
				       .together = 2,
				       .lines = ways[d->way].lines};
	of->first = (uint32_t)((d->first + piece - 1) >> log2);
	of->granules = (uint32_t)((d->first + d->bytes) >> log2) - of->first;
}

static int failed(int err, const struct found *f)
{
	switch (err) {
	case -EBUSY:
		return tool_fail("probe: the device is too busy: %.0f %% of pairs on two "
				 "channels look as on one, %.0f %% of those on one",
				 100 * f->r.p0, 100 * f->r.p1);
	case -ENOENT:
		return tool_fail("probe: no map of it could be verified");
	case -EINVAL:
		return tool_fail("probe: the device has less than %u granules",
				 DISCOVER_LEAST);
	default:
		return tool_fail("probe: %s",
				 err == -ENOMEM ? "out of memory" : hal_last_error());
	}
}

/* A granule's size, and with it a map; what came to nothing before is counted with it. */
static int find_at(const struct halctl *ctl, const struct device *d, uint32_t log2,
		   struct discover_result *r)
{
	const struct discover_options options = {.seed = ctl->seed};
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

static int find_by(const struct halctl *ctl, const struct device *d,
		   struct discover_result *r)
{
	struct discover_device of;
	int log2;

	/* The few lines of a piece may not show what those of a page do: a cache's chance
	 * is more than they take.  That a page lies on one channel is a guess, but what
	 * comes of it is verified. */
	if (ways[d->way].cached && is_granule(d->info.page_bytes))
		return find_at(ctl, d, (uint32_t)__builtin_ctz(d->info.page_bytes), r);
	/* Numbers of pieces have 24 bits. */
	pieces(d, PIECE_LOG2, &of);
	if (of.granules > (1u << 24) - 1 - of.first)
		of.granules = (1u << 24) - 1 - of.first;
	if (of.memory >> PIECE_LOG2 > 1u << 24)
		of.memory = UINT64_C(1) << (24 + PIECE_LOG2);
	log2 = discover_granule(&of, ctl->seed);
	if (log2 < 0)
		return log2;
	return find_at(ctl, d, (uint32_t)log2 > LARGEST ? LARGEST : (uint32_t)log2, r);
}

/* By each way of loading, until one finds a map. */
static int find(const struct halctl *ctl, struct device *d, struct found *f)
{
	int err = -ENOENT;

	for (d->way = 0; d->way < WAYS && (err == -ENOENT || err == -EBUSY); d->way++)
		err = find_by(ctl, d, &f->r);
	d->way--;
	return err;
}

int halctl_probe(const struct halctl *ctl)
{
	struct device d = {0};
	struct found f = {0};
	int rc, err;

	if (ctl->verify != NULL)
		return halctl_isolate(ctl);
	rc = open_device(ctl, &d);

	if (rc == 0) {
		uint64_t from = hal_device_now(d.dev);
		double begin = now();

		err = find(ctl, &d, &f);
		f.device_cycles = hal_device_now(d.dev) - from;
		f.seconds = now() - begin;
		if (err != 0 && err != -ENOENT)
			rc = failed(err, &f);
		else if (ctl->json)
			rc = print_json(&d, &f, err == 0);
		else
			print_text(&d, &f, err == 0);
		if (rc == 0 && err == -ENOENT)
			rc = failed(err, &f);
		if (rc == 0)
			rc = write_files(ctl, &d, f.r.map);
	}
	color_map_free(f.r.map);
	return close_device(&d) != 0 ? TOOL_FAILED : rc;
}

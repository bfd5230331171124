/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory on some channels, with a map that is given: kernels, copies and fills on a
 * partition's channels come to the same bytes as without, and touch those channels alone;
 * what cannot be translated is refused.  Kernels do what their PTX says
 * (HAL_STAND_IN_CUDA_RUN=ptx).
 */
#define _GNU_SOURCE
#include "host.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <hal/cuda.h>

#include "backends/cuda/internal.h"
#include "lib/color_map.h"
#include "tests/unit/slow.h"

static const struct hal_backend *b;

/* Two sides of 4 KiB by a parity of five bits; four channels, by place. */
static const struct hal_bk_color_map sides = {.granule_bytes = 4096,
					      .colors = 2,
					      .granules = 1 << 20,
					      .mask_count = 1,
					      .mask = {0xb3}};
static const struct hal_bk_color_map pieces = {.granule_bytes = 1024,
					       .colors = 4,
					       .granules = 1 << 22,
					       .mask_count = 2,
					       .mask = {1, 2}};

/* More blocks than a wave of the device's 132 multiprocessors. */
enum { WORDS = 9000, BYTES = 4 * WORDS, MARK = 0x5a };

/* sum(d, s, n): d[i] += s[i]; and a kernel whose copies in bulk cannot be translated. */
#define REGS ".reg .b64 %d, %s, %i;\n.reg .b32 %x, %t, %n, %v, %w;\n.reg .pred %p;\n"
static const char code[] =
	".version 8.0\n.target sm_70\n.address_size 64\n"
	".visible .entry sum(.param .u64 a, .param .u64 b, .param .u32 c)\n{\n" REGS
	"ld.param.u64 %d, [a];\nld.param.u64 %s, [b];\nld.param.u32 %n, [c];\n"
	"mov.u32 %x, %ctaid.x;\nmov.u32 %t, %tid.x;\nshl.b32 %x, %x, 6;\n"
	"add.u32 %x, %x, %t;\nsetp.ge.u32 %p, %x, %n;\n@%p ret;\n"
	"mul.wide.u32 %i, %x, 4;\nadd.u64 %d, %d, %i;\nadd.u64 %s, %s, %i;\n"
	"ld.global.u32 %v, [%d];\nld.global.u32 %w, [%s];\nadd.u32 %v, %v, %w;\n"
	"st.global.u32 [%d], %v;\nret;\n}\n"
	".func called\n{\nret;\n}\n"
	".visible .entry calls(.param .u64 a)\n{\n" REGS
	"ld.param.u64 %d, [a];\ncall called;\nst.global.u32 [%d], 1;\nret;\n}\n";
enum { SUM, CALLS, KERNELS };

static void *image(size_t *size, uint32_t format)
{
	static const char *const names[KERNELS] = {"sum", "calls"};
	const size_t table =
		sizeof(struct hal_cuda_image) + KERNELS * sizeof(struct hal_cuda_kernel);
	struct hal_cuda_image *head = calloc(1, table + sizeof(code));
	struct hal_cuda_kernel *k = (void *)(head + 1);
	uint32_t i;

	assert_non_null(head);
	*size = table + sizeof(code);
	memcpy((char *)head + table, code, sizeof(code));
	for (i = 0; i < KERNELS; i++) {
		snprintf(k[i].name, sizeof(k[i].name), "%s", names[i]);
		k[i].block[0] = 64;
		k[i].block[1] = k[i].block[2] = 1;
		k[i].arg_count = i == SUM ? 3 : 1;
	}
	k[SUM].scalar_bytes[2] = 4;
	*head = (struct hal_cuda_image){.magic = HAL_CUDA_MAGIC,
					.version = HAL_CUDA_VERSION,
					.bytes = (uint32_t)*size,
					.format = format,
					.kernel_count = KERNELS,
					.kernel_size = sizeof(*k),
					.module_bytes = (uint32_t)sizeof(code)};
	return head;
}

struct world {
	bool folds; /* each launch is stopped once */
	void *dev, *part, *queue, *prog, *kernel[KERNELS];
	struct cu_mem *mem[3];
	const struct hal_bk_color_map *map;
	uint64_t mask;
};

/* map NULL: without. */
static void open_world(struct world *w, const struct hal_bk_config *cfg,
		       const struct hal_bk_color_map *map, uint64_t mask)
{
	const struct hal_bk_colors colors = {.mask = mask};
	struct hal_bk_partition_desc desc = {
		.units = 1, .rows = 1, .cols = 1, .color_mask = mask};
	struct hal_bk_kernel_info info;
	size_t size;
	void *text = image(&size, HAL_CUDA_PTX);
	uint32_t i;

	memset(w, 0, sizeof(*w));
	w->map = map;
	w->mask = mask;
	stand_in()->reset();
	if (b->cold.open(cfg, 0, &w->dev) || (map && b->cold.colors_set(w->dev, map)) ||
	    b->cold.partition_create(w->dev, &desc, &w->part) ||
	    b->cold.queue_create(w->dev, w->part, 0, &w->queue) ||
	    b->cold.program_load(w->dev, text, size, &w->prog))
		fail_msg("%s", host_text);
	for (i = 0; i < KERNELS; i++)
		assert_int_equal(
			b->cold.kernel_get(w->dev, w->prog, i, &info, &w->kernel[i]), 0);
	for (i = 0; i < 3; i++)
		if (b->cold.mem_alloc(w->dev, w->part, BYTES, map ? &colors : NULL, 0,
				      (void **)&w->mem[i]))
			fail_msg("%s", host_text);
	free(text);
}

static void close_world(struct world *w)
{
	const char *text = "";
	uint32_t i;

	for (i = 0; i < 3; i++)
		assert_int_equal(b->cold.mem_free(w->dev, w->mem[i]), 0);
	assert_int_equal(b->cold.queue_destroy(w->dev, w->queue), 0);
	assert_int_equal(b->cold.program_unload(w->dev, w->prog), 0);
	assert_int_equal(b->cold.partition_destroy(w->dev, w->part), 0);
	b->cold.close(w->dev);
	if (stand_in()->misuse(&text))
		fail_msg("misuse: %s", text);
	assert_int_equal(stand_in()->live(), 0);
}

static void run(struct world *w, const struct hal_bk_cmd *cmd)
{
	struct hal_bk_event ev;

	if (b->hot.submit(w->dev, w->queue, cmd))
		fail_msg("%s", host_text);
	if (w->folds && cmd->op == HAL_OP_LAUNCH) {
		assert_int_equal(b->hot.suspend(w->dev, w->queue, HAL_SUSPEND_FOLD, 1),
				 0);
		assert_int_equal(b->hot.poll(w->dev, UINT64_MAX, &ev, 1), 1);
		assert_int_equal(ev.kind, HAL_BK_QUIET);
		assert_int_equal(b->hot.resume(w->dev, w->queue), 0);
	}
	assert_int_equal(b->hot.poll(w->dev, UINT64_MAX, &ev, 1), 1);
	if (ev.status)
		fail_msg("%d: %s", ev.status, ev.fault);
}

static struct hal_bk_cmd sum(struct world *w, struct hal_bk_arg args[3])
{
	args[0] = (struct hal_bk_arg){.mem = w->mem[0], .bytes = BYTES};
	args[1] = (struct hal_bk_arg){.mem = w->mem[1], .value = 4, .bytes = BYTES - 4};
	args[2] = (struct hal_bk_arg){.value = WORDS - 1};
	return (struct hal_bk_cmd){.op = HAL_OP_LAUNCH,
				   .flags = HAL_BK_CMD_BEST_EFFORT,
				   .launch = {.kernel = w->kernel[SUM],
					      .args = args,
					      .arg_count = 3,
					      .groups = {(WORDS + 63) / 64, 1, 1}}};
}

/* ---- where bytes are ---------------------------------------------------------------- */

static uint32_t channel_of(const struct hal_bk_color_map *map, uint64_t address)
{
	uint32_t i, c = 0;

	for (i = 0; i < map->mask_count; i++)
		c |= (uint32_t)__builtin_parityll(address / map->granule_bytes &
						  map->mask[i])
		     << i;
	return c;
}

/* The pages that a buffer's memory lies in: addresses of the heap. */
static uint64_t pages_of(const struct world *w, uint32_t i, uint64_t *bytes)
{
	const struct cu_device *dev = w->dev;
	const uint64_t at = cu_color_at(w->dev, w->mem[i]->address);

	*bytes = (uint64_t)w->mem[i]->place.count * dev->granule;
	return at / dev->granule * dev->granule;
}

static void mark_pages(struct world *w)
{
	uint64_t bytes, at;
	uint8_t *marks;
	uint32_t i;

	for (i = 0; i < 3; i++) {
		at = pages_of(w, i, &bytes);
		marks = malloc(bytes);
		assert_non_null(marks);
		memset(marks, MARK, bytes);
		assert_int_equal(cu_copy(w->dev, at, NULL, marks, bytes), 0);
		free(marks);
	}
}

/* What the granules of the partition's channels hold, one after the other, is the buffer;
 * all others are as they were. */
static void check_pages(struct world *w, uint32_t i, const uint8_t *want)
{
	uint64_t bytes, at = pages_of(w, i, &bytes), x, mine = 0, granule;
	uint8_t *got = malloc(bytes);
	bool own = false;

	assert_non_null(got);
	assert_int_equal(cu_copy(w->dev, at, got, NULL, bytes), 0);
	granule = w->map->granule_bytes;
	for (x = 0; x < bytes; x++) {
		uint8_t is;

		if (x % granule == 0)
			own = w->mask >> channel_of(w->map, at + x) & 1;
		is = own && mine < BYTES ? want[mine] : MARK;
		if (got[x] != is)
			fail_msg("buffer %u: byte %llu of the pages, of channel %u, is "
				 "0x%x, not 0x%x",
				 i, (unsigned long long)x, channel_of(w->map, at + x),
				 got[x], is);
		mine += own;
	}
	assert_true(mine > BYTES && bytes % granule == 0);
	free(got);
}

/* ---- cases --------------------------------------------------------------------------- */

/* Write, read, launch, copy, fill, odd bytes and a timestamp; the buffers' contents. */
static void work(struct world *w, uint8_t (*out)[BYTES])
{
	struct hal_bk_cmd
		copy = {.op = HAL_OP_COPY,
			.copy = {.dst_offset = 4097, .src_offset = 3, .bytes = 9001}},
		fill = {.op = HAL_OP_FILL,
			.fill = {.offset = 4000, .bytes = 8200, .pattern = 0x01020304}},
		words = {.op = HAL_OP_COPY, .copy = {.dst_offset = 64, .bytes = 12000}};
	struct hal_bk_arg args[3];
	struct hal_bk_cmd cmd;
	uint8_t bytes[BYTES];
	uint32_t i, k;

	for (i = 0; i < 3; i++) {
		for (k = 0; k < BYTES; k++)
			bytes[k] = (uint8_t)(k * 7 + k / 251 + i * 31);
		assert_int_equal(b->cold.mem_write(w->dev, w->mem[i], 0, bytes, BYTES),
				 0);
	}
	cmd = sum(w, args);
	run(w, &cmd);
	copy.copy.dst = w->mem[2];
	copy.copy.src = w->mem[0];
	run(w, &copy);
	words.copy.dst = w->mem[2];
	words.copy.src = w->mem[1];
	run(w, &words);
	fill.fill.dst = w->mem[1];
	run(w, &fill);
	for (i = 0; i < 3; i++) {
		assert_int_equal(
			b->cold.mem_read(w->dev, w->mem[i], 1, out[i] + 1, BYTES - 1), 0);
		assert_int_equal(b->cold.mem_read(w->dev, w->mem[i], 0, out[i], 1), 0);
	}
}

static const struct hal_bk_config plain = {.clock = 1},
				  stops = {.clock = 1, .preempt = 1, .slice_us = 50};

/* What the buffers hold without a map. */
static uint8_t without[3][BYTES];

static void work_without(const struct hal_bk_config *cfg)
{
	struct world w;

	open_world(&w, cfg, NULL, 0);
	work(&w, without);
	close_world(&w);
}

static void same_bytes(const struct hal_bk_config *cfg,
		       const struct hal_bk_color_map *map, uint64_t mask)
{
	static uint8_t got[3][BYTES];
	struct hal_device_info info = {.size = sizeof(info)};
	struct world w;
	uint32_t i;

	open_world(&w, cfg, map, mask);
	w.folds = cfg->preempt != 0;
	assert_int_equal(b->cold.get_info(w.dev, &info), 0);
	assert_int_equal(info.colors, map->colors);
	assert_int_equal(info.granule_bytes, map->granule_bytes);
	assert_int_equal(info.memory_isolation, HAL_ISOLATION_NONE);
	mark_pages(&w);
	work(&w, got);
	assert_memory_equal(got, without, sizeof(without));
	for (i = 0; i < 3 && __builtin_popcountll(mask) == 1; i++)
		check_pages(&w, i, without[i]);
	close_world(&w);
}

static void equal_bits(void **state)
{
	(void)state;
	work_without(&plain);
	same_bytes(&plain, &sides, 2);
	same_bytes(&plain, &pieces, 0xc);
	if (under_valgrind())
		return; /* these run the same code */
	same_bytes(&plain, &sides, 1);
	same_bytes(&plain, &pieces, 4);
	same_bytes(&plain, &sides, 3); /* all: plain memory */
}

/* With entry behind it, launches stop and go on, in slices. */
static void stopped(void **state)
{
	(void)state;
	work_without(&stops);
	same_bytes(&stops, &pieces, 3);
	if (!under_valgrind())
		same_bytes(&stops, &sides, 2);
}

/* A new buffer is zero, and a timestamp is where the buffer is. */
static void clear_and_stamp(void **state)
{
	static const uint8_t zeros[BYTES];
	struct hal_bk_cmd stamp = {.op = HAL_OP_TIMESTAMP, .timestamp = {.offset = 8192}};
	uint8_t want[BYTES] = {0};
	uint64_t at = 0;
	struct world w;

	(void)state;
	open_world(&w, &plain, &sides, 2);
	mark_pages(&w);
	assert_int_equal(b->cold.mem_clear(w.dev, w.mem[0]), 0);
	check_pages(&w, 0, zeros);
	stamp.timestamp.dst = w.mem[0];
	run(&w, &stamp);
	assert_int_equal(b->cold.mem_read(w.dev, w.mem[0], 8192, &at, sizeof(at)), 0);
	assert_true(at != 0);
	memcpy(want + 8192, &at, sizeof(at));
	check_pages(&w, 0, want);
	close_world(&w);
}

static void refuses(int err, int want, const char *text)
{
	assert_int_equal(err, want);
	if (!strstr(host_text, text))
		fail_msg("'%s' has no '%s'", host_text, text);
}

static void refused(void **state)
{
	static const struct hal_bk_colors one = {.mask = 1};
	const uint8_t weights[64] = {3, 1};
	const struct hal_bk_colors weighted = {.mask = 2, .weights = weights};
	struct hal_bk_arg arg = {.bytes = BYTES};
	struct hal_bk_cmd cmd = {.op = HAL_OP_LAUNCH,
				 .launch = {.arg_count = 1, .groups = {1, 1, 1}}};
	struct hal_bk_kernel_info info;
	void *at, *prog, *mem, *bytes;
	struct world w;
	size_t size;

	(void)state;
	open_world(&w, &plain, &sides, 2);
	refuses(b->cold.mem_map(w.dev, w.mem[0], &at), -ENOTSUP, "in pieces");
	refuses(b->cold.mem_alloc(w.dev, w.part, 64, &one, 0, &mem), -ENOTSUP,
		"all channels of its partition");
	refuses(b->cold.mem_alloc(w.dev, w.part, 64, &weighted, 0, &mem), -ENOTSUP,
		"evenly");
	refuses(b->cold.mem_alloc(w.dev, w.part, 64, NULL, HAL_BUFFER_EXPORTABLE, &mem),
		-ENOTSUP, "cannot be exported");
	refuses(b->cold.mem_import(w.dev, w.part, 0, 64, 0, &mem), -ENOTSUP,
		"on all channels");
	/* A kernel that cannot be rewritten, and the queue goes on. */
	arg.mem = w.mem[0];
	cmd.launch.kernel = w.kernel[CALLS];
	cmd.launch.args = &arg;
	refuses(b->hot.submit(w.dev, w.queue, &cmd), -ENOTSUP,
		"cuda: kernel calls cannot reach memory of partition 0, which is on some "
		"channels: ");
	/* A program that is no PTX has none that can. */
	bytes = image(&size, HAL_CUDA_PTX);
	assert_int_equal(b->cold.program_load(w.dev, bytes, size, &prog), 0);
	assert_int_equal(b->cold.kernel_get(w.dev, prog, CALLS, &info, &at), 0);
	assert_int_equal(b->cold.program_unload(w.dev, prog), 0);
	free(bytes);
	close_world(&w);
}

/* The address that the kernel is given is no memory: a launch of code that was not
 * rewritten is a fault, and never another tenant's byte. */
static void plain_launch_faults(void **state)
{
	struct hal_bk_arg args[3];
	struct hal_bk_event ev;
	struct hal_bk_cmd cmd;
	struct cu_kernel *k;
	struct world w;

	(void)state;
	open_world(&w, &plain, &sides, 2);
	k = w.kernel[SUM];
	/* As if the backend had given it the code as it is. */
	((struct cu_kernel *)&k->program->colored[0]->kernels[SUM])->function =
		k->function;
	cmd = sum(&w, args);
	assert_int_equal(b->hot.submit(w.dev, w.queue, &cmd), 0);
	assert_int_equal(b->hot.poll(w.dev, UINT64_MAX, &ev, 1), 1);
	assert_int_equal(ev.status, -EIO);
	if (!strstr(ev.fault, "CUDA_ERROR_ILLEGAL_ADDRESS"))
		fail_msg("fault is '%s'", ev.fault);
	(void)b->cold.queue_destroy(w.dev, w.queue);
	for (uint32_t i = 0; i < 3; i++)
		(void)b->cold.mem_free(w.dev, w.mem[i]);
	(void)b->cold.program_unload(w.dev, w.prog);
	(void)b->cold.partition_destroy(w.dev, w.part);
	b->cold.close(w.dev);
	stand_in()->reset();
}

static void maps(void **state)
{
	static const uint8_t table[64];
	static const struct hal_bk_config vmm = {.clock = 1, .memory = 2},
					  graphs = {.clock = 1, .graphs = 1};
	const struct hal_bk_config *configs[] = {&vmm, &graphs};
	struct hal_bk_partition_desc desc = {
		.units = 1, .rows = 1, .cols = 1, .color_mask = 6};
	struct hal_bk_color_map m = sides;
	void *dev, *part;
	uint32_t i;

	(void)state;
	stand_in()->reset();
	assert_int_equal(b->cold.open(&plain, 0, &dev), 0);
	m.mask[0] = 0x10000000;
	refuses(b->cold.colors_set(dev, &m), -ENOTSUP, "bits above bit 20");
	m = sides;
	m.q = 5;
	refuses(b->cold.colors_set(dev, &m), -ENOTSUP, "only parities");
	m = sides;
	m.table = table;
	refuses(b->cold.colors_set(dev, &m), -ENOTSUP, "only parities");
	assert_int_equal(b->cold.colors_set(dev, &pieces), 0);
	refuses(b->cold.partition_create(dev, &desc, &part), -ENOTSUP,
		"cannot own channels 0x6");
	desc.color_mask = 5;
	refuses(b->cold.partition_create(dev, &desc, &part), -ENOTSUP, "are no row");
	desc.color_mask = 1;
	desc.memory_bytes = 1 << 20;
	desc.address_bytes = 1 << 22;
	refuses(b->cold.partition_create(dev, &desc, &part), -ENOTSUP, "not evicted");
	b->cold.close(dev);
	assert_int_equal(stand_in()->live(), 0);
	for (i = 0; i < 2; i++) {
		assert_int_equal(b->cold.open(configs[i], 0, &dev), 0);
		refuses(b->cold.colors_set(dev, &sides), -ENOTSUP, "it needs");
		b->cold.close(dev);
	}
}

/* Each call of the driver that a map, a program or a partition takes fails in turn:
 * nothing is left. */
static void each_fails(void **state)
{
	static const char *const calls[] = {"cuModuleLoadDataEx", "cuMemAddressReserve",
					    "cuFuncLoad", "cuMemCreate", "cuMemMap"};
	const struct hal_bk_colors colors = {.mask = 2};
	struct hal_bk_partition_desc desc = {
		.units = 1, .rows = 1, .cols = 1, .color_mask = 2};
	void *dev, *part, *prog, *mem, *text;
	uint32_t i, nth, failed;
	size_t size;

	(void)state;
	text = image(&size, HAL_CUDA_PTX);
	for (i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		for (nth = 1, failed = 1; failed; nth++) {
			failed = 0;
			part = prog = mem = NULL;
			stand_in()->reset();
			assert_int_equal(b->cold.open(&plain, 0, &dev), 0);
			stand_in()->break_call(calls[i], nth, CUR_OUT_OF_MEMORY);
			failed += b->cold.colors_set(dev, &sides) != 0;
			if (!failed)
				failed +=
					b->cold.partition_create(dev, &desc, &part) != 0;
			if (!failed)
				failed +=
					b->cold.program_load(dev, text, size, &prog) != 0;
			if (!failed)
				failed += b->cold.mem_alloc(dev, part, 64, &colors, 0,
							    &mem) != 0;
			assert_int_equal(failed, stand_in()->armed() == 0);
			stand_in()->break_call(calls[i], 0, 0);
			if (mem)
				assert_int_equal(b->cold.mem_free(dev, mem), 0);
			if (prog)
				assert_int_equal(b->cold.program_unload(dev, prog), 0);
			if (part)
				assert_int_equal(b->cold.partition_destroy(dev, part), 0);
			b->cold.close(dev);
			assert_int_equal(stand_in()->live(), 0);
		}
		assert_true(nth > 2);
	}
	free(text);
}

/* Through the library: a map file, and two partitions beside each other. */
static void two_partitions(void **state)
{
	char path[] = "/tmp/test_cuda_color.XXXXXX", option[64], why[COLOR_MAP_WHY];
	const char *options[] = {option, "hal.color_map_unverified=yes", NULL};
	const char *target = "cuda:1?clock=virtual&partitions=mask";
	struct hal_partition_desc pd = HAL_INIT(hal_partition_desc);
	struct hal_device_info info = HAL_INIT(hal_device_info);
	struct hal_submit_desc sd = HAL_INIT(hal_submit_desc);
	struct hal_buffer_desc bd = HAL_INIT(hal_buffer_desc);
	struct hal_queue_desc qd = HAL_INIT(hal_queue_desc);
	struct color_map map = {.granule = 4096,
				.channels = 2,
				.kind = COLOR_MAP_XOR,
				.mask_count = 1,
				.mask = {0xb3}};
	uint32_t words[2][WORDS], got[WORDS], i, k;
	struct hal_buffer *buf[2][2];
	struct hal_partition *part[2];
	struct hal_program *prog;
	struct hal_kernel *kernel;
	struct hal_queue *q[2];
	struct hal_point done[2];
	struct hal_device *dev;
	size_t size;
	void *text = image(&size, HAL_CUDA_PTX);
	int fd = mkstemp(path);

	(void)state;
	assert_true(fd >= 0);
	close(fd);
	stand_in()->reset();
	assert_int_equal(hal_open(target, NULL, &dev), 0);
	assert_int_equal(hal_device_get_info(dev, &info), 0);
	assert_int_equal(info.colors, 0);
	pd.units_floor = 1;
	pd.color_mask = 1;
	assert_int_equal(hal_partition_create(dev, &pd, &part[0]), -ENOTSUP);
	assert_int_equal(hal_close(dev), 0);
	color_map_device(&map, &info);
	map.memory = info.memory_bytes;
	if (color_map_write(&map, path, why))
		fail_msg("%s", why);
	snprintf(option, sizeof(option), "hal.color_map=%s", path);
	if (hal_open(target, options, &dev))
		fail_msg("%s", hal_last_error());
	assert_int_equal(hal_device_get_info(dev, &info), 0);
	assert_int_equal(info.colors, 2);
	assert_int_equal(info.color_source, HAL_COLOR_FILE);
	assert_int_equal(info.color_wrong_ppm, UINT32_MAX); /* nobody has tried */
	assert_int_equal(info.memory_isolation, HAL_ISOLATION_NONE);
	if (hal_program_load(dev, text, size, &prog))
		fail_msg("%s", hal_last_error());
	assert_int_equal(hal_kernel_find(prog, "sum", &kernel), 0);
	bd.bytes = BYTES;
	for (i = 0; i < 2; i++) {
		pd.color_mask = 1u << i;
		if (hal_partition_create(dev, &pd, &part[i]) ||
		    hal_queue_create(part[i], &qd, &q[i]) ||
		    hal_buffer_create(part[i], &bd, &buf[i][0]) ||
		    hal_buffer_create(part[i], &bd, &buf[i][1]))
			fail_msg("%s", hal_last_error());
		for (k = 0; k < WORDS; k++)
			words[i][k] = k * 3 + i * 1000003;
		assert_int_equal(hal_buffer_write(buf[i][0], 0, words[i], BYTES), 0);
		assert_int_equal(hal_buffer_write(buf[i][1], 0, words[i], BYTES), 0);
	}
	for (i = 0; i < 2; i++) {
		const struct hal_arg args[3] = {{.buffer = buf[i][0], .bytes = BYTES},
						{.buffer = buf[i][1], .bytes = BYTES},
						{.offset = WORDS}};
		struct hal_cmd cmd = hal_cmd_launch(kernel, args, 3);

		cmd.launch.groups[0] = (WORDS + 63) / 64;
		sd.cmds = &cmd;
		sd.cmd_count = 1;
		if (hal_submit(q[i], &sd, &done[i]))
			fail_msg("%s", hal_last_error());
	}
	assert_int_equal(hal_wait(done, 2, 0, HAL_FOREVER), 0);
	for (i = 0; i < 2; i++) {
		assert_int_equal(hal_buffer_read(buf[i][0], 0, got, BYTES), 0);
		for (k = 0; k < WORDS; k++)
			assert_int_equal(got[k], 2 * words[i][k]);
		assert_int_equal(hal_buffer_destroy(buf[i][0]), 0);
		assert_int_equal(hal_buffer_destroy(buf[i][1]), 0);
		assert_int_equal(hal_queue_destroy(q[i]), 0);
	}
	assert_int_equal(hal_program_unload(prog), 0);
	assert_int_equal(hal_partition_destroy(part[0]), 0);
	assert_int_equal(hal_partition_destroy(part[1]), 0);
	assert_int_equal(hal_close(dev), 0);
	(void)unlink(path);
	free(text);
	b = hal_backend_cuda(&host); /* not the library's core */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(equal_bits), cmocka_unit_test(stopped),
		cmocka_unit_test(clear_and_stamp), cmocka_unit_test(refused),
		cmocka_unit_test(two_partitions), cmocka_unit_test(maps),
		cmocka_unit_test(each_fails),
		/* The device is lost after it. */
		cmocka_unit_test(plain_launch_faults)};

	/* NOLINTNEXTLINE(concurrency-mt-unsafe): one thread */
	(void)setenv("HAL_STAND_IN_CUDA_RUN", "ptx", 1);
	b = hal_backend_cuda(&host);
	return cmocka_run_group_tests(tests, NULL, NULL);
}

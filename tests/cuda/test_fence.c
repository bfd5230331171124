/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bounds=yes: two partitions, and a kernel of one that reaches for the other's memory.
 * Kernels are PTX, rewritten by the backend, and the stand-in does what they say with the
 * parameters that the backend gives (HAL_STAND_IN_CUDA_RUN=ptx).  Each containment has
 * its control: the same without bounds.
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

#include <cmocka.h>
#include <hal/cuda.h>
#include <hal/gpu.h>

#include "backends/cuda/internal.h"

static const struct hal_backend *b;

/* put(at, offset, value): *(at + offset) = value; get(at, offset): *at = *(at + offset).
 */
enum { PUT, GET, NEVER, KERNELS };
#define HEAD ".version 7.0\n.target sm_52\n.address_size 64\n"
#define REGS ".reg .b64 %a, %o;\n.reg .b32 %v;\n"
static const char code[] =
	HEAD ".visible .entry put(.param .u64 p, .param .u64 q, "
	     ".param .u32 r)\n{\n" REGS "ld.param.u64 %a, [p];\n"
	     "ld.param.u64 %o, [q];\n"
	     "ld.param.u32 %v, [r];\n"
	     "cvta.to.global.u64 %a, %a;\n"
	     "add.s64 %a, %a, %o;\n"
	     "st.global.u32 [%a], %v;\n"
	     "ret;\n}\n"
	     ".visible .entry get(.param .u64 p, .param .u64 q)\n{\n" REGS
	     "ld.param.u64 %a, [p];\n"
	     "ld.param.u64 %o, [q];\n"
	     "add.s64 %o, %a, %o;\n"
	     "ld.global.u32 %v, [%o];\n"
	     "st.global.u32 [%a], %v;\n"
	     "}\n"
	     ".visible .entry never(.param .u64 p)\n{\nret;\n}\n";
static const char *const kernels[KERNELS] = {"put:m84", "get:m8", "never:m"};

/* As make_cuda_image has them, of that code. */
static void *image_of(const char *ptx, const char *const *names, uint32_t count,
		      uint32_t format, size_t *size)
{
	const size_t table =
		sizeof(struct hal_cuda_image) + count * sizeof(struct hal_cuda_kernel);
	struct hal_cuda_image *head = calloc(1, table + strlen(ptx) + 1);
	struct hal_cuda_kernel *k = (void *)(head + 1);
	const char *p;
	uint32_t i;

	assert_non_null(head);
	*size = table + strlen(ptx) + 1;
	memcpy((char *)head + table, ptx, strlen(ptx) + 1);
	for (i = 0; i < count; i++) {
		k[i].block[0] = 1;
		p = strchr(names[i], ':');
		memcpy(k[i].name, names[i], (size_t)(p - names[i]));
		while (*++p)
			k[i].scalar_bytes[k[i].arg_count++] =
				*p == 'm' ? 0 : (uint32_t)(*p - '0');
	}
	*head = (struct hal_cuda_image){.magic = HAL_CUDA_MAGIC,
					.version = HAL_CUDA_VERSION,
					.bytes = (uint32_t)*size,
					.format = format,
					.kernel_count = count,
					.kernel_size = sizeof(*k),
					.module_bytes = (uint32_t)strlen(ptx) + 1};
	return head;
}

/* Two partitions, each with a queue and a buffer; one program. */
struct pair {
	void *dev, *prog, *kernel[KERNELS], *part[2], *queue[2];
	struct cu_mem *mem[2];
};

static void open_pair(struct pair *t, const struct hal_bk_config *cfg)
{
	struct hal_bk_partition_desc desc = {.units = 1, .rows = 1, .cols = 1};
	struct hal_bk_kernel_info info;
	const uint32_t mark[2] = {0x11111111, 0x22222222};
	size_t size;
	void *image = image_of(code, kernels, KERNELS, HAL_CUDA_PTX, &size);
	uint32_t i;

	memset(t, 0, sizeof(*t));
	stand_in()->reset();
	if (b->cold.open(cfg, 0, &t->dev) ||
	    b->cold.program_load(t->dev, image, size, &t->prog))
		fail_msg("%s", host_text);
	free(image);
	for (i = 0; i < KERNELS; i++)
		assert_int_equal(
			b->cold.kernel_get(t->dev, t->prog, i, &info, &t->kernel[i]), 0);
	for (i = 0; i < 2; i++) {
		desc.index = desc.col = (uint16_t)i;
		if (b->cold.partition_create(t->dev, &desc, &t->part[i]) ||
		    b->cold.queue_create(t->dev, t->part[i], 0, &t->queue[i]) ||
		    b->cold.mem_alloc(t->dev, t->part[i], 4096, NULL, 0,
				      (void **)&t->mem[i]) ||
		    b->cold.mem_clear(t->dev, t->mem[i]) ||
		    b->cold.mem_write(t->dev, t->mem[i], 64, &mark[i], 4))
			fail_msg("%s", host_text);
	}
}

/* The device may have something still. */
static void leave_pair(struct pair *t)
{
	const char *text = "";
	uint32_t i;

	for (i = 0; i < 2; i++) {
		assert_int_equal(b->cold.queue_destroy(t->dev, t->queue[i]), 0);
		assert_int_equal(b->cold.mem_free(t->dev, t->mem[i]), 0);
		assert_int_equal(b->cold.partition_destroy(t->dev, t->part[i]), 0);
	}
	assert_int_equal(b->cold.program_unload(t->dev, t->prog), 0);
	b->cold.close(t->dev);
	if (stand_in()->misuse(&text))
		fail_msg("misuse: %s", text);
}

static void close_pair(struct pair *t)
{
	leave_pair(t);
	assert_int_equal(stand_in()->live(), 0);
}

/* From the start of the partition's own buffer. */
static uint64_t to_neighbour(const struct pair *t, uint32_t from)
{
	return t->mem[1 - from]->address + 64 - t->mem[from]->address;
}

static int submit(struct pair *t, uint32_t from, uint32_t kernel, uint64_t cookie,
		  uint64_t offset)
{
	static struct hal_bk_arg args[8][3];
	struct hal_bk_arg *a = args[cookie % 8];
	struct hal_bk_cmd cmd = {.op = HAL_OP_LAUNCH, .cookie = cookie};

	a[0] = (struct hal_bk_arg){t->mem[from], 0, 64};
	a[1] = (struct hal_bk_arg){NULL, offset, 0};
	a[2] = (struct hal_bk_arg){NULL, 0xabababab, 0};
	cmd.launch.kernel = t->kernel[kernel];
	cmd.launch.args = a;
	cmd.launch.arg_count = kernel == PUT ? 3 : kernel == GET ? 2 : 1;
	cmd.launch.groups[0] = cmd.launch.groups[1] = cmd.launch.groups[2] = 1;
	return b->hot.submit(t->dev, t->queue[from], &cmd);
}

/* The one that ends next. */
static struct hal_bk_event next(struct pair *t)
{
	struct hal_bk_event ev;

	if (b->hot.poll(t->dev, UINT64_MAX, &ev, 1) != 1)
		fail_msg("nothing ended: %s", host_text);
	return ev;
}

static uint32_t word(struct pair *t, uint32_t of, uint64_t at)
{
	uint32_t got = 0;

	assert_int_equal(b->cold.mem_read(t->dev, t->mem[of], at, &got, 4), 0);
	return got;
}

static void went_astray(struct pair *t, uint64_t cookie, const char *kernel)
{
	const struct hal_bk_event ev = next(t);
	char want[96];

	snprintf(want, sizeof(want), "access outside its partition's range, kernel %s",
		 kernel);
	assert_int_equal(ev.cookie, cookie);
	assert_int_equal(ev.status, -EIO);
	assert_string_equal(ev.fault, want);
}

static const struct hal_bk_config fenced = {.clock = 1,
					    .memory = 2,
					    .bounds = 1,
					    .partitions = CU_WAY_MASK},
				  control = {.clock = 1,
					     .memory = 2,
					     .partitions = CU_WAY_MASK};

/* What a wild pointer writes is not there, and who wrote is told; all others go on. */
static void written(void **state)
{
	struct pair t;
	uint32_t i;

	(void)state;
	for (i = 0; i < 2; i++) {
		open_pair(&t, &fenced);
		assert_int_equal(submit(&t, i, PUT, 1, 128), 0);
		assert_int_equal(next(&t).status, 0);
		assert_int_equal(word(&t, i, 128), 0xabababab);
		assert_int_equal(submit(&t, i, PUT, 2, to_neighbour(&t, i)), 0);
		went_astray(&t, 2, "put");
		assert_int_equal(word(&t, 1 - i, 64), 0x11111111 * (2 - i));
		assert_int_equal(submit(&t, i, PUT, 3, 0), -EIO);
		assert_string_equal(host_text,
				    "cuda: access outside its partition's range");
		/* The same program, the other partition's queue: its own range. */
		assert_int_equal(submit(&t, 1 - i, PUT, 4, 256), 0);
		assert_int_equal(next(&t).status, 0);
		assert_int_equal(word(&t, 1 - i, 256), 0xabababab);
		/* And a new queue of the first. */
		assert_int_equal(b->cold.queue_destroy(t.dev, t.queue[i]), 0);
		assert_int_equal(b->cold.queue_create(t.dev, t.part[i], 0, &t.queue[i]),
				 0);
		assert_int_equal(submit(&t, i, PUT, 5, 256), 0);
		assert_int_equal(next(&t).status, 0);
		close_pair(&t);
	}
}

static void written_control(void **state)
{
	struct pair t;

	(void)state;
	open_pair(&t, &control);
	assert_int_equal(submit(&t, 0, PUT, 1, to_neighbour(&t, 0)), 0);
	assert_int_equal(next(&t).status, 0);
	assert_int_equal(word(&t, 1, 64), 0xabababab);
	close_pair(&t);
}

static void read_out(void **state)
{
	struct pair t;

	(void)state;
	open_pair(&t, &fenced);
	assert_int_equal(submit(&t, 0, GET, 1, 64), 0);
	assert_int_equal(next(&t).status, 0);
	assert_int_equal(word(&t, 0, 0), 0x11111111);
	assert_int_equal(submit(&t, 0, GET, 2, to_neighbour(&t, 0)), 0);
	went_astray(&t, 2, "get");
	assert_int_equal(word(&t, 0, 0), 0);
	close_pair(&t);
	open_pair(&t, &control);
	assert_int_equal(submit(&t, 0, GET, 1, to_neighbour(&t, 0)), 0);
	assert_int_equal(next(&t).status, 0);
	assert_int_equal(word(&t, 0, 0), 0x22222222);
	close_pair(&t);
}

/* Where nobody has anything: without bounds all is lost.  Around the end of all
 * addresses, right in front of the range and right behind what is mapped of it: its
 * first buffer is where it begins. */
static void nowhere(void **state)
{
	struct hal_bk_config cfg = fenced;
	struct hal_bk_event ev;
	struct pair t;
	uint32_t i;

	(void)state;
	cfg.range = 64 << 20;
	for (i = 0; i < 5; i++) {
		uint64_t at[5] = {UINT64_C(1) << 46, 0, UINT64_MAX - 3, 2 << 20,
				  64 << 20};

		open_pair(&t, &cfg);
		at[1] = -t.mem[0]->address;
		assert_int_equal(submit(&t, 0, PUT, 1, at[i]), 0);
		went_astray(&t, 1, "put");
		close_pair(&t);
	}
	open_pair(&t, &control);
	assert_int_equal(submit(&t, 0, PUT, 1, UINT64_C(1) << 46), 0);
	ev = next(&t);
	assert_int_equal(ev.status, -EIO);
	assert_non_null(
		strstr(ev.fault, "CUDA_ERROR_ILLEGAL_ADDRESS (700), device lost"));
	close_pair(&t);
}

/* It grows with the partition's buffers, and shrinks with them. */
static void grows(void **state)
{
	const uint64_t far = UINT64_C(8) << 20;
	struct hal_bk_event ev;
	struct pair t;
	void *more;

	(void)state;
	open_pair(&t, &fenced);
	assert_int_equal(b->cold.mem_alloc(t.dev, t.part[0], far, NULL, 0, &more), 0);
	assert_int_equal(submit(&t, 0, PUT, 1, far), 0);
	assert_int_equal(next(&t).status, 0);
	assert_int_equal(b->cold.mem_free(t.dev, more), 0);
	assert_int_equal(b->hot.poll(t.dev, b->hot.now(t.dev), &ev, 1), 0);
	assert_int_equal(submit(&t, 0, PUT, 2, far), 0);
	went_astray(&t, 2, "put");
	close_pair(&t);
}

/* Real clock: memory that is freed while a launch may reach it is unmapped only after the
 * launch has ended.  An allocation that finds no addresses waits for that. */
static void freed_meanwhile(void **state)
{
	const uint64_t far = UINT64_C(8) << 20;
	struct hal_bk_config cfg = fenced;
	struct hal_bk_event ev;
	struct cu_device *dev;
	struct pair t;
	void *more;

	(void)state;
	cfg.clock = 0;
	cfg.range = 12 << 20; /* one such buffer at a time */
	open_pair(&t, &cfg);
	dev = t.dev;
	assert_int_equal(b->cold.mem_alloc(t.dev, t.part[0], far, NULL, 0, &more), 0);
	assert_int_equal(submit(&t, 0, PUT, 1, far), 0);
	assert_int_equal(b->cold.mem_free(t.dev, more), 0);
	assert_int_equal(dev->later.idle.count, 1);
	assert_int_equal(b->cold.mem_alloc(t.dev, t.part[0], far, NULL, 0, &more),
			 -ENOSPC);
	while (b->hot.poll(t.dev, 0, &ev, 1) == 0)
		;
	assert_int_equal(ev.status, 0);
	while (dev->later.idle.count != 0)
		(void)b->hot.poll(t.dev, 0, &ev, 1);
	assert_int_equal(b->cold.mem_alloc(t.dev, t.part[0], far, NULL, 0, &more), 0);
	/* The last poll came before the buffer was freed: none follows. */
	assert_int_equal(submit(&t, 0, PUT, 2, 128), 0);
	assert_int_equal(b->cold.mem_free(t.dev, more), 0);
	assert_int_equal(dev->later.idle.count, 1);
	atomic_store(&dev->fenced, false);
	assert_int_equal(b->cold.mem_alloc(t.dev, t.part[0], far, NULL, 0, &more), 0);
	while (b->hot.poll(t.dev, 0, &ev, 1) == 0)
		;
	assert_int_equal(ev.status, 0);
	assert_int_equal(b->cold.mem_free(t.dev, more), 0);
	assert_int_equal(dev->later.idle.count, 0);
	close_pair(&t);
}

/* What is behind it in its queue does not count; with several in flight it has run. */
static void behind(void **state)
{
	struct pair t;
	uint64_t i;

	(void)state;
	open_pair(&t, &fenced);
	assert_int_equal(submit(&t, 0, PUT, 1, 128), 0);
	assert_int_equal(submit(&t, 0, GET, 2, to_neighbour(&t, 0)), 0);
	assert_int_equal(submit(&t, 0, PUT, 3, 192), 0);
	assert_int_equal(submit(&t, 0, GET, 4, to_neighbour(&t, 0)), 0);
	assert_int_equal(submit(&t, 1, PUT, 5, 192), 0);
	for (i = 0; i < 5; i++) {
		static const int want[] = {0, -EIO, -ECANCELED, -ECANCELED, 0};
		const struct hal_bk_event ev = next(&t);

		assert_in_range(ev.cookie, 1, 5);
		assert_int_equal(ev.status, want[ev.cookie - 1]);
	}
	close_pair(&t);
}

/* One that never ends is behind it. */
static void hung_behind(void **state)
{
	struct hal_bk_config cfg = fenced;
	struct pair t;

	(void)state;
	cfg.hang_ms = 5;
	open_pair(&t, &cfg);
	assert_int_equal(submit(&t, 0, PUT, 1, to_neighbour(&t, 0)), 0);
	assert_int_equal(submit(&t, 0, NEVER, 2, 0), 0);
	went_astray(&t, 1, "put");
	assert_int_equal(next(&t).status, -ECANCELED);
	assert_int_equal(submit(&t, 1, PUT, 3, 64), 0);
	assert_int_equal(next(&t).status, 0);
	leave_pair(&t);
	stand_in()->lose(0, CUR_UNKNOWN); /* the end of the process */
}

/* The same without hang_ms: what went astray has ended, and is reported although the
 * stream never becomes empty. */
static void endless_behind(void **state)
{
	struct hal_bk_event ev;
	struct pair t;
	uint32_t i;
	int n = 0;

	(void)state;
	open_pair(&t, &fenced);
	assert_int_equal(submit(&t, 0, PUT, 1, to_neighbour(&t, 0)), 0);
	assert_int_equal(submit(&t, 0, NEVER, 2, 0), 0);
	for (i = 0; i < 8 && !n; i++)
		n = b->hot.poll(t.dev, b->hot.now(t.dev) + 20000000, &ev, 1);
	assert_int_equal(n, 1);
	assert_int_equal(ev.cookie, 1);
	assert_int_equal(ev.status, -EIO);
	stand_in()->lose(0, CUR_UNKNOWN);
	((struct cu_device *)t.dev)->base.lost = CUR_UNKNOWN;
	while (b->hot.poll(t.dev, 0, &ev, 1) == 1)
		;
	leave_pair(&t);
}

/* Stopped before it began, and gone on. */
static void stopped(void **state)
{
	struct hal_bk_config cfg = fenced;
	struct hal_bk_event ev;
	struct pair t;

	(void)state;
	cfg.preempt = 1;
	open_pair(&t, &cfg);
	assert_int_equal(submit(&t, 0, PUT, 1, 64), 0);
	assert_int_equal(next(&t).status, 0);
	assert_int_equal(submit(&t, 0, PUT, 2, 128), 0);
	assert_int_equal(submit(&t, 0, PUT, 3, to_neighbour(&t, 0)), 0);
	assert_int_equal(b->hot.suspend(t.dev, t.queue[0], HAL_SUSPEND_FOLD, 7), 0);
	ev = next(&t);
	assert_int_equal(ev.kind, HAL_BK_QUIET);
	assert_int_equal(word(&t, 0, 128), 0);
	assert_int_equal(b->hot.resume(t.dev, t.queue[0]), 0);
	assert_int_equal(next(&t).status, 0);
	went_astray(&t, 3, "put");
	assert_int_equal(word(&t, 0, 128), 0xabababab);
	assert_int_equal(word(&t, 1, 64), 0x22222222);
	close_pair(&t);
}

/* ---- what is refused --------------------------------------------------------------- */

static void refuses_launch(struct pair *t, void *mem, const char *why)
{
	struct hal_bk_arg arg = {mem, 0, 64};
	struct hal_bk_cmd cmd = {.op = HAL_OP_LAUNCH, .cookie = 1};

	cmd.launch.kernel = t->kernel[NEVER];
	cmd.launch.args = &arg;
	cmd.launch.arg_count = 1;
	cmd.launch.groups[0] = cmd.launch.groups[1] = cmd.launch.groups[2] = 1;
	assert_int_equal(b->hot.submit(t->dev, t->queue[0], &cmd), -EINVAL);
	if (!strstr(host_text, why))
		fail_msg("%s, not %s", host_text, why);
}

static void memory_elsewhere(void **state)
{
	struct pair t;
	const struct hal_gpu_extension *gpu;
	struct hal_bk_cmd fill = {.op = HAL_OP_FILL, .cookie = 1};
	void *mappable;
	uint64_t own;

	(void)state;
	open_pair(&t, &fenced);
	refuses_launch(&t, t.mem[1],
		       "kernel never: argument 0 is another partition's memory; with "
		       "bounds=yes kernels reach only their partition's address range");
	assert_int_equal(b->cold.mem_alloc(t.dev, t.part[0], 64, NULL,
					   HAL_BUFFER_MAPPABLE, &mappable),
			 0);
	refuses_launch(&t, mappable,
		       "argument 0 is a mappable buffer, which is in host memory");
	/* Copies and fills are the driver's, which is told where. */
	fill.fill.dst = mappable;
	fill.fill.bytes = 8;
	assert_int_equal(b->hot.submit(t.dev, t.queue[0], &fill), 0);
	assert_int_equal(next(&t).status, 0);
	assert_int_equal(b->cold.mem_free(t.dev, mappable), 0);
	gpu = b->cold.extension(t.dev, "gpu");
	assert_int_equal(cu.cuMemAlloc_v2(&own, 64), 0);
	assert_int_equal(gpu->offer_memory(t.dev, own, 64), -ENOTSUP);
	assert_non_null(strstr(host_text, "with bounds=yes memory cannot be imported"));
	assert_int_equal(cu.cuMemFree_v2(own), 0);
	close_pair(&t);
}

static void refuses_program(void *dev, const char *ptx, const char *kernel,
			    uint32_t format, int err, const char *why)
{
	void *prog;
	size_t size;
	void *image = image_of(ptx, &kernel, 1, format, &size);

	assert_int_equal(b->cold.program_load(dev, image, size, &prog), err);
	if (!strstr(host_text, why))
		fail_msg("%s, not %s", host_text, why);
	free(image);
}

static void programs(void **state)
{
	const char *hard = HEAD ".visible .entry k(.param .u64 p)\n{\n" REGS
				"ld.param.u64 %a, [p];\n"
				"cvta.const.u64 %o, %a;\n"
				"ret;\n}\n.visible .entry easy(.param .u64 p)\n{ret;}\n";
	void *prog;
	size_t size;
	const char *easy = "easy:m";
	void *image = image_of(hard, &easy, 1, HAL_CUDA_PTX, &size);
	struct pair t;

	(void)state;
	open_pair(&t, &fenced);
	refuses_program(t.dev, hard, "k:m", HAL_CUDA_PTX, -ENOTSUP,
			"cuda: bounds=yes: kernel k: line 9: cvta.const.u64: ");
	refuses_program(t.dev, code, "nobody:m", HAL_CUDA_PTX, -EINVAL,
			"cuda: bounds=yes: the PTX has no kernel nobody");
	refuses_program(t.dev, ".version 7.0\n.target sm_52\n!", "k:m", HAL_CUDA_PTX,
			-EINVAL, "cuda: bounds=yes: line 3: ");
	/* What cannot be launched need not be kept from anything. */
	assert_int_equal(b->cold.program_load(t.dev, image, size, &prog), 0);
	assert_int_equal(b->cold.program_unload(t.dev, prog), 0);
	free(image);
	/* The table and the kernel have to say the same, as ever. */
	refuses_program(t.dev, code, "never:mm", HAL_CUDA_PTX, -EINVAL,
			"kernel never has 1 parameters, but the image declares 2");
	refuses_program(
		t.dev, code, "get:m", HAL_CUDA_PTX, -EINVAL,
		"kernel get has more parameters than the 1 that the image declares");
	close_pair(&t);
}

/* Whole images of other kinds are checked first, so a byte is enough of one. */
static void no_ptx(void **state)
{
	struct cu_kernel k = {.info = {.name = "k"}};
	struct cu_program prog = {.format = HAL_CUDA_CUBIN, .count = 1, .kernels = &k};
	char *text = NULL;
	size_t bytes = 0;

	(void)state;
	assert_int_equal(cu_fence_rewrite(&prog, &text, &bytes), -ENOTSUP);
	assert_string_equal(host_text,
			    "cuda: bounds=yes: only programs in PTX can be kept to their "
			    "partition's memory; this one is a cubin or fatbin");
	assert_null(text);
}

/* What the driver does not take rewritten twice it takes rewritten once, never as it was.
 */
static void refused_once(void **state)
{
	struct hal_bk_config cfg = fenced;
	struct pair t;

	(void)state;
	cfg.preempt = 1;
	stand_in()->reset();
	open_pair(&t, &cfg);
	assert_int_equal(b->cold.program_unload(t.dev, t.prog), 0);
	{
		struct hal_bk_kernel_info info;
		size_t size;
		void *image = image_of(code, kernels, KERNELS, HAL_CUDA_PTX, &size);
		uint32_t i;

		assert_int_equal(
			stand_in()->break_call("cuModuleLoadDataEx", 1, CUR_INVALID_PTX),
			0);
		assert_int_equal(b->cold.program_load(t.dev, image, size, &t.prog), 0);
		free(image);
		for (i = 0; i < KERNELS; i++)
			assert_int_equal(
				b->cold.kernel_get(t.dev, t.prog, i, &info, &t.kernel[i]),
				0);
	}
	assert_int_equal(submit(&t, 0, PUT, 1, to_neighbour(&t, 0)), 0);
	went_astray(&t, 1, "put");
	assert_int_equal(word(&t, 1, 64), 0x22222222);
	close_pair(&t);
}

static void options(void **state)
{
	struct hal_bk_config cfg = fenced;
	struct hal_device_info info = {.size = sizeof(info)};
	struct hal_gpu_info said = {.size = sizeof(said)};
	const struct hal_gpu_extension *gpu;
	struct pair t;
	void *dev;

	(void)state;
	stand_in()->reset();
	cfg.memory = 0;
	assert_int_equal(b->cold.open(&cfg, 0, &dev), -EINVAL);
	assert_non_null(strstr(host_text, "cuda:0: bounds=yes needs memory=vmm"));
	cfg = fenced;
	cfg.partitions = CU_WAY_NONE;
	cfg.graphs = 1;
	assert_int_equal(b->cold.open(&cfg, 0, &dev), -EINVAL);
	assert_non_null(strstr(host_text, "graphs=yes and bounds=yes"));
	open_pair(&t, &fenced);
	assert_int_equal(b->cold.get_info(t.dev, &info), 0);
	assert_int_equal(info.memory_isolation, HAL_ISOLATION_ADVISORY);
	gpu = b->cold.extension(t.dev, "gpu");
	assert_int_equal(gpu->info(t.dev, &said), 0);
	assert_non_null(strstr(said.why, "kernels cannot reach outside it"));
	assert_non_null(strstr(said.faults, "ends only the kernel's queue"));
	close_pair(&t);
	open_pair(&t, &control);
	assert_int_equal(b->cold.get_info(t.dev, &info), 0);
	assert_int_equal(info.memory_isolation, HAL_ISOLATION_NONE);
	assert_int_equal(gpu->info(t.dev, &said), 0);
	assert_non_null(strstr(said.why, "mapped in its own address range"));
	assert_null(strstr(said.why, "cannot reach outside it"));
	assert_null(strstr(said.faults, "ends only the kernel's queue"));
	close_pair(&t);
}

/* What the stand-in cannot do it does not pass over. */
static void not_interpreted(void **state)
{
	const char *odd = HEAD ".visible .entry odd(.param .u64 p)\n{\n" REGS
			       "mad24.lo.u32 %v, 1, 2, 3;\nret;\n}\n";
	const char *name = "odd:m", *text = "";
	struct hal_bk_kernel_info info;
	struct pair t;
	void *prog;
	size_t size;
	void *image = image_of(odd, &name, 1, HAL_CUDA_PTX, &size);

	(void)state;
	open_pair(&t, &control);
	assert_int_equal(b->cold.program_load(t.dev, image, size, &prog), 0);
	free(image);
	assert_int_equal(b->cold.kernel_get(t.dev, prog, 0, &info, &t.kernel[NEVER]), 0);
	assert_int_equal(submit(&t, 0, NEVER, 1, 0), 0);
	assert_int_equal(next(&t).status, -EIO);
	assert_int_equal(stand_in()->misuse(&text), 1);
	assert_string_equal(text, "odd: line 8: an instruction that the interpreter does "
				  "not know");
	assert_int_equal(b->cold.program_unload(t.dev, prog), 0);
	stand_in()->reset();
	leave_pair(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(written),         cmocka_unit_test(written_control),
		cmocka_unit_test(read_out),        cmocka_unit_test(behind),
		cmocka_unit_test(stopped),         cmocka_unit_test(memory_elsewhere),
		cmocka_unit_test(programs),        cmocka_unit_test(no_ptx),
		cmocka_unit_test(refused_once),    cmocka_unit_test(options),
		cmocka_unit_test(nowhere),         cmocka_unit_test(grows),
		cmocka_unit_test(freed_meanwhile), cmocka_unit_test(hung_behind),
		cmocka_unit_test(not_interpreted), cmocka_unit_test(endless_behind),
	};

	setenv("HAL_STAND_IN_CUDA_RUN", "ptx", 1);
	b = hal_backend_cuda(&host);
	if (!b || !stand_in())
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The real libxrt_coreutil above its packaged driver that does nothing: what XRT itself
 * does between us and a driver.  It reads what mkxclbin makes, buffers keep what they
 * hold, runs complete while others go on, configurations come and go.  Nothing is
 * computed, and a copy within the card copies nothing.
 */
#define _GNU_SOURCE
#include "host.h"

#include <dlfcn.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <hal/fpga.h>

#include "backends/fpga/internal.h"

#define DELAY_NS INT64_C(100000000) /* of xrt.ini: from start to completed */

#define BANKS                                                                            \
	"bank DDR[0] ddr4 0x0 1G\n"                                                      \
	"bank DDR[1] ddr4 0x40000000 1G\n"
static const char first_text[] = BANKS "kernel one 2\narg d memory 4 0-1\narg n uint\n"
				       "arg f float\narg g double\narg l ulong\n"
				       "reach 2 d 1\n";
static const char second_text[] = BANKS "kernel two 2\narg d memory 4 0-1\n";

static const struct hal_backend *b;
static struct hal_bk_config cfg;
static void *dev, *part[2], *queue[2], *prog;

static void sure(int err)
{
	if (err)
		fail_msg("%d: %s", err, host_text);
}

static void begin(void)
{
	size_t size;
	void *image = make_image(first_text, &size);
	uint32_t i;

	sure(b->cold.open(&cfg, 0, &dev));
	for (i = 0; i < 2; i++) {
		const struct hal_bk_partition_desc d = {.index = i,
							.units = 1,
							.col = (uint16_t)i,
							.rows = 1,
							.cols = 1,
							.color_mask = 3};

		sure(b->cold.partition_create(dev, &d, &part[i]));
		sure(b->cold.queue_create(dev, part[i], 0, &queue[i]));
	}
	sure(b->cold.program_load(dev, image, size, &prog));
	free(image);
}

/* Each handle: XRT does not survive its own end with any of them left. */
static void end(void)
{
	uint32_t i;

	for (i = 0; i < 2; i++) {
		sure(b->cold.queue_destroy(dev, queue[i]));
		sure(b->cold.partition_destroy(dev, part[i]));
	}
	sure(b->cold.program_unload(dev, prog));
	b->cold.close(dev);
}

static void *buffer(uint32_t i, uint64_t bytes, uint64_t mask)
{
	const struct hal_bk_colors colors = {.mask = mask};
	void *mem;

	sure(b->cold.mem_alloc(dev, part[i], bytes, &colors, 0, &mem));
	return mem;
}

static void *kernel_of(void *program)
{
	struct hal_bk_kernel_info info;
	void *kernel;

	sure(b->cold.kernel_get(dev, program, 0, &info, &kernel));
	return kernel;
}

static void launch(uint32_t i, void *kernel, const struct hal_bk_arg *args,
		   uint32_t count, uint64_t cookie)
{
	struct hal_bk_cmd cmd = {.op = HAL_OP_LAUNCH, .cookie = cookie};

	cmd.launch.kernel = kernel;
	cmd.launch.args = args;
	cmd.launch.arg_count = count;
	cmd.launch.groups[0] = cmd.launch.groups[1] = cmd.launch.groups[2] = 1;
	sure(b->hot.submit(dev, queue[i], &cmd));
}

static struct hal_bk_event next(void)
{
	struct hal_bk_event e;
	int n;

	do
		n = b->hot.poll(dev, 0, &e, 1);
	while (!n);
	if (n != 1)
		fail_msg("poll: %d: %s", n, host_text);
	return e;
}

/* ---- cases --------------------------------------------------------------------------- */

/* As a symbol of the library that the backend has loaded. */
static void symbol(const char *name, void *to)
{
	void *library = dlopen("libxrt_coreutil.so.2", RTLD_NOW);
	void *p = library ? dlsym(library, name) : NULL;

	assert_non_null(p);
	memcpy(to, &p, sizeof(p));
}

static void xrt_reads_it(void **state)
{
	void *(*alloc)(const char *data, int bytes);
	int (*drop)(void *xclbin),
		(*name)(void *xclbin, char *to, int bytes, int *length);
	int (*uuid)(void *xclbin, uint8_t *to);
	size_t (*kernels)(void *xclbin), (*units)(void *xclbin);
	struct hal_xclbin_head head;
	uint8_t got[16];
	char text[64] = "";
	size_t size;
	void *image = make_image(first_text, &size), *x;

	(void)state;
	symbol("xrtXclbinAllocRawData", &alloc);
	symbol("xrtXclbinFreeHandle", &drop);
	symbol("xrtXclbinGetXSAName", &name);
	symbol("xrtXclbinGetUUID", &uuid);
	symbol("xrtXclbinGetNumKernels", &kernels);
	symbol("xrtXclbinGetNumKernelComputeUnits", &units);
	x = alloc(image, (int)size);
	assert_non_null(x);
	assert_int_equal(name(x, text, sizeof(text), NULL), 0);
	assert_string_equal(text, "hal_stand_in_1");
	assert_int_equal(uuid(x, got), 0);
	memcpy(&head, image, sizeof(head));
	assert_memory_equal(got, head.uuid, sizeof(got));
	assert_int_equal(kernels(x), 1);
	assert_int_equal(units(x), 2);
	assert_int_equal(drop(x), 0);
	free(image);
}

static void memory(void **state)
{
	const uint64_t bytes = (1u << 20) + 4097;
	uint8_t *data = malloc(bytes), *got = malloc(bytes);
	void *mem[3];
	uint64_t i;
	int m;

	(void)state;
	begin();
	for (m = 0; m < 3; m++)
		mem[m] = buffer(m == 2, bytes, m ? 2 : 1);
	for (m = 0; m < 3; m++) {
		for (i = 0; i < bytes; i++)
			data[i] = (uint8_t)(i * 31 + (uint64_t)m);
		sure(b->cold.mem_write(dev, mem[m], 0, data, bytes));
		sure(b->cold.mem_write(dev, mem[m], 777, "words", 5));
	}
	for (m = 0; m < 3; m++) {
		for (i = 0; i < bytes; i++)
			data[i] = (uint8_t)(i * 31 + (uint64_t)m);
		memcpy(data + 777, "words", 5);
		memset(got, 0, bytes);
		sure(b->cold.mem_read(dev, mem[m], 0, got, bytes));
		assert_memory_equal(got, data, bytes);
		sure(b->cold.mem_read(dev, mem[m], bytes - 3, got, 3));
		assert_memory_equal(got, data + bytes - 3, 3);
		sure(b->cold.mem_free(dev, mem[m]));
	}
	free(data);
	free(got);
	end();
}

/* Two runs on two slots: neither waits for the other, and nothing waits for either. */
/* XRT's calls that share buffers, above a driver that has none: what fails says so. */
static void shares_nothing(void **state)
{
	struct hal_device_info info = {.size = sizeof(info)};
	const struct fp_mem *mem;
	void *copy;
	int fd;

	(void)state;
	begin();
	sure(b->cold.get_info(dev, &info));
	assert_int_equal(info.caps & (HAL_CAP_EXPORT | HAL_CAP_IMPORT), 0);
	mem = buffer(0, 4096, 2);
	assert_int_equal(xrt.xrtBOSize(mem->bo), 4096);
	assert_int_equal(xrt.xrtBOSize(&info), SIZE_MAX);
	assert_int_equal(xrt.xrtBOAddress(&info), UINT64_MAX);
	assert_int_equal(xrt.xrtBOExport(mem->bo), -1);
	assert_int_equal(b->cold.mem_export(dev, (void *)(uintptr_t)mem, &fd), -EIO);
	assert_non_null(strstr(host_text, "xrtBOExport: no reason given: a descriptor"));
	assert_int_equal(b->cold.mem_import(dev, part[0], 0, 64, 0, &copy), -EINVAL);
	assert_non_null(strstr(host_text, "xrtBOImport: no reason given: descriptor 0"));
	sure(b->cold.mem_free(dev, (void *)(uintptr_t)mem));
	/* One that is made for it is a buffer like any. */
	{
		const struct hal_bk_colors colors = {.mask = 2};

		sure(b->cold.mem_alloc(dev, part[0], 5000, &colors, HAL_BUFFER_EXPORTABLE,
				       &copy));
	}
	sure(b->cold.mem_clear(dev, copy));
	sure(b->cold.mem_free(dev, copy));
	end();
}

static void completion(void **state)
{
	void *mem, *kernel;
	struct hal_bk_arg args[5] = {{NULL, 8192, 4},
				     {NULL, 3, 0},
				     {NULL, 0x3fc00000, 0},
				     {NULL, 1, 0},
				     {NULL, UINT64_MAX, 0}};
	struct hal_bk_event e[3];
	uint64_t began, took;
	int i;

	(void)state;
	begin();
	mem = buffer(0, 16384, 2);
	kernel = kernel_of(prog);
	args[0].mem = mem;
	began = b->hot.now(dev);
	launch(0, kernel, args, 5, 1);
	launch(1, kernel, args, 5, 2);
	launch(0, kernel, args, 5, 3);
	b->hot.doorbell(dev);
	took = b->hot.now(dev) - began;
	assert_int_equal(b->hot.poll(dev, 0, e, 3), 0);
	assert_true(took < (uint64_t)DELAY_NS / 2);
	for (i = 0; i < 3; i++) {
		e[i] = next();
		assert_int_equal(e[i].status, 0);
	}
	assert_int_equal(e[2].cookie, 3);
	assert_int_equal(e[0].cookie + e[1].cookie, 3);
	for (i = 0; i < 3; i++)
		assert_true(e[i].end_ns - e[i].start_ns >= (uint64_t)DELAY_NS * 9 / 10);
	/* Two ran at a time; the third began when the first had ended. */
	assert_true(e[1].start_ns < e[0].end_ns);
	assert_true(e[2].start_ns >= e[0].end_ns || e[2].start_ns >= e[1].end_ns);
	sure(b->cold.mem_free(dev, mem));
	end();
}

static void configurations(void **state)
{
	struct hal_bk_arg args[5] = {
		{NULL, 0, 4}, {NULL, 3, 0}, {NULL, 0, 0}, {NULL, 0, 0}, {NULL, 0, 0}};
	void *mem, *second, *image, *one;
	size_t size;
	int i;

	(void)state;
	begin();
	image = make_image(second_text, &size);
	sure(b->cold.program_load(dev, image, size, &second));
	free(image);
	mem = buffer(0, 4096, 2);
	args[0].mem = mem;
	one = kernel_of(prog);
	for (i = 0; i < 3; i++) {
		launch(0, one, args, 5, 1);
		launch(1, kernel_of(second), args, 1, 2);
		b->hot.doorbell(dev);
		assert_int_equal(next().status, 0);
		assert_int_equal(next().status, 0);
	}
	sure(b->cold.mem_free(dev, mem));
	sure(b->cold.program_unload(dev, second));
	end();
}

static int setup(void **state)
{
	(void)state;
	b = hal_backend_fpga(&host);
	cfg.xclbin = make_file(first_text);
	return b ? 0 : -1;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(xrt_reads_it),   cmocka_unit_test(memory),
		cmocka_unit_test(shares_nothing), cmocka_unit_test(completion),
		cmocka_unit_test(configurations),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}

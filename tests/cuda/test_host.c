/* SPDX-License-Identifier: Apache-2.0 */
/* Queued copies of host memory: the cases of tests/gpu; and those in graphs and with
 * bounds=yes. */
#define _GNU_SOURCE
#include "host.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "backends/cuda/internal.h"
#include "tests/gpu/rig.h"

static const struct hal_bk_config blockwise = {.clock = 1, .preempt = 1},
				  between = {.clock = 1},
				  bounds = {.clock = 1, .memory = 2, .bounds = 1},
				  graphs = {.clock = 1, .graphs = 1},
				  real = {.hang_ms = 20};

static void lose(void *device, uint32_t result)
{
	((struct cu_device *)device)->base.lost = result;
}

/* As a program does that has the context current. */
static uint32_t own_register(void *device, void *p, uint64_t bytes)
{
	struct cu_device *dev = device;
	uint32_t mode, r;

	assert_int_equal(cu_push(dev, &mode), 0);
	r = cu.cuMemHostRegister_v2(p, bytes, 0);
	cu_pop(mode);
	return r;
}

static uint32_t own_unregister(void *device, void *p)
{
	struct cu_device *dev = device;
	uint32_t mode, r;

	assert_int_equal(cu_push(dev, &mode), 0);
	r = cu.cuMemHostUnregister(p);
	cu_pop(mode);
	return r;
}

struct rig_face rig_face = {
	.how = {[RIG_PLAIN] = &blockwise,
		[RIG_HANGS] = &graphs,
		[RIG_SPLIT] = &bounds,
		[RIG_BETWEEN] = &between,
		[RIG_REAL] = &real},
	.device = 1,
	.kernels = {"work:m8", "iota:m4"},
	.stand_in = stand_in,
	.image = make_cuda_image,
	.lose = lose,
	.registers = "cuMemHostRegister_v2",
	.points = "cuMemHostGetDevicePointer_v2",
	.unregisters = "cuMemHostUnregister",
	.own_register = own_register,
	.own_unregister = own_unregister,
};

static int record(struct rig *r, void *dst, void *src, bool last)
{
	const struct hal_bk_cmd cmd = {.op = HAL_OP_COPY,
				       .flags = HAL_BK_CMD_RECORDED |
						(last ? HAL_BK_CMD_LAST : 0),
				       .copy = {dst, src, 0, 0, 64}};

	return hal_backend_cuda(&host)->hot.submit(r->dev, r->queue, &cmd);
}

/* A node of a graph keeps the kinds of memory that it was made with: a sequence that has
 * others gets a graph of its own. */
static void graph_of_each_kind(void **state)
{
	const struct hal_backend *b = hal_backend_cuda(&host);
	void *mem[2], *on_host[2], *p[2];
	struct rig r;
	uint32_t i;

	(void)state;
	rig_begin(&r, RIG_HANGS);
	for (i = 0; i < 2; i++) {
		assert_int_equal(b->cold.mem_alloc(r.dev, r.part, 64, NULL, 0, &mem[i]),
				 0);
		assert_int_equal(b->cold.mem_alloc(r.dev, r.part, 64, NULL,
						   HAL_BK_MEM_HOST, &on_host[i]),
				 0);
		assert_int_equal(b->cold.mem_map(r.dev, on_host[i], &p[i]), 0);
		memset(p[i], 10 + (int)i, 64);
	}
	for (i = 0; i < 6; i++) {
		void *from = on_host[i % 2];

		assert_int_equal(record(&r, mem[0], i < 4 ? from : r.mem, false), 0);
		assert_int_equal(record(&r, mem[1], mem[0], true), 0);
		assert_int_equal(rig_finish(&r), 2);
		assert_int_equal(stand_in()->calls("cuGraphLaunch"), i + 1);
		assert_int_equal(stand_in()->calls("cuGraphInstantiateWithFlags"),
				 i < 4 ? 1 : 2);
	}
	assert_int_equal(record(&r, on_host[0], mem[1], false), 0);
	assert_int_equal(record(&r, mem[1], on_host[1], true), 0);
	assert_int_equal(rig_finish(&r), 2);
	assert_int_equal(stand_in()->calls("cuGraphInstantiateWithFlags"), 3);
	assert_int_equal(b->cold.mem_read(r.dev, mem[1], 0, p[0], 1), 0);
	assert_int_equal(*(uint8_t *)p[0], 11);
	for (i = 0; i < 2; i++) {
		assert_int_equal(b->cold.mem_free(r.dev, mem[i]), 0);
		assert_int_equal(b->cold.mem_free(r.dev, on_host[i]), 0);
	}
	rig_end(&r);
}

/* Host memory lies in no partition's range: copies reach it, and no kernel. */
static void out_of_bounds(void **state)
{
	const struct hal_backend *b = hal_backend_cuda(&host);
	struct hal_bk_cmd cmd = {.op = HAL_OP_COPY};
	struct hal_bk_arg args[2] = {{.bytes = 64}, {.value = 1000}};
	struct rig r;
	void *mem, *p;

	(void)state;
	rig_begin(&r, RIG_SPLIT);
	assert_int_equal(
		b->cold.mem_alloc(r.dev, r.part, 64, NULL, HAL_BK_MEM_HOST, &mem), 0);
	assert_int_equal(b->cold.mem_map(r.dev, mem, &p), 0);
	*(uint32_t *)p = 77;
	cmd.copy.dst = r.mem;
	cmd.copy.src = mem;
	cmd.copy.bytes = 4;
	assert_int_equal(b->hot.submit(r.dev, r.queue, &cmd), 0);
	assert_int_equal(rig_finish(&r), 1);
	assert_int_equal(rig_word(&r, 0), 77);
	args[0].mem = mem;
	cmd = (struct hal_bk_cmd){.op = HAL_OP_LAUNCH,
				  .launch = {r.work, args, 2, {1, 1, 1}}};
	assert_int_equal(b->hot.submit(r.dev, r.queue, &cmd), -EINVAL);
	assert_non_null(strstr(host_text, "in host memory"));
	assert_int_equal(b->cold.mem_free(r.dev, mem), 0);
	rig_end(&r);
}

/* A driver of old cannot register memory. */
static void old_driver(void **state)
{
	const struct hal_backend *b = hal_backend_cuda(&host);
	struct hal_device_info info = {.size = sizeof(info)};
	struct cu_symbols found;
	static uint8_t own[64];
	struct rig r;
	void *mem;

	(void)state;
	rig_begin(&r, RIG_BETWEEN);
	found = cu;
	cu.cuMemHostRegister_v2 = NULL;
	assert_int_equal(b->cold.get_info(r.dev, &info), 0);
	assert_true(info.caps & HAL_CAP_HOST_COPY);
	assert_false(info.caps & HAL_CAP_HOST_REGISTER);
	assert_int_equal(b->cold.mem_register(r.dev, r.part, own, 64, &mem), -ENOTSUP);
	assert_non_null(strstr(host_text, "use hal_host_alloc"));
	cu = found;
	rig_end(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(graph_of_each_kind),
					   cmocka_unit_test(out_of_bounds),
					   cmocka_unit_test(old_driver), HOST_CASES};

	rig_face.backend = hal_backend_cuda(&host);
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Buffers of a Level Zero device that may be evicted: where there are any, what they take
 * up, that they keep their addresses, and what a command that does not end keeps.  What a
 * tenant sees of them is the conformance suite's (evict.*).
 */
#define _GNU_SOURCE
#include "host.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "backends/levelzero/internal.h"

enum { BYTES = 5000, PAGE = 64 << 10, MS = 1000000 };

static const struct hal_backend *b;
static const struct hal_bk_config virtual_time = {.clock = 1};

struct rig {
	struct hal_bk_config cfg;
	void *dev, *part;
	uint64_t caps;
	uint32_t live;
};

static uint64_t free_bytes(const struct rig *r)
{
	struct hal_device_info info = {.size = sizeof(info)};

	assert_int_equal(b->cold.get_info(r->dev, &info), 0);
	return info.memory_free;
}

/* A partition of device 0 whose buffers may be more than its quota of 2 pages. */
static void open_rig(struct rig *r, const struct hal_bk_config *cfg, uint32_t units)
{
	const struct hal_bk_partition_desc desc = {.units = units,
						   .rows = 1,
						   .cols = (uint16_t)units,
						   .memory_bytes = 2 * PAGE,
						   .address_bytes = 4 * PAGE};
	struct hal_device_info info = {.size = sizeof(info)};

	r->cfg = *cfg;
	r->live = stand_in()->live();
	if (b->cold.open(&r->cfg, 0, &r->dev))
		fail_msg("%s", host_text);
	assert_int_equal(b->cold.get_info(r->dev, &info), 0);
	r->caps = info.caps & HAL_CAP_EVICT;
	assert_int_equal(b->cold.partition_create(r->dev, &desc, &r->part), 0);
}

static void close_rig(struct rig *r)
{
	const char *text = "";

	assert_int_equal(b->cold.partition_destroy(r->dev, r->part), 0);
	b->cold.close(r->dev);
	if (stand_in()->misuse(&text))
		fail_msg("misuse: %s", text);
	assert_int_equal(stand_in()->live(), r->live);
}

static struct lz_mem *buffer(struct rig *r, uint32_t flags)
{
	void *mem;

	if (b->cold.mem_alloc(r->dev, r->part, BYTES, NULL, flags, &mem))
		fail_msg("%s", host_text);
	return mem;
}

static void release(struct rig *r, struct lz_mem *mem)
{
	if (b->cold.mem_free(r->dev, mem))
		fail_msg("%s", host_text);
}

/* The calls that opening tries. */
static const char *const tried[] = {"zeVirtualMemQueryPageSize", "zeVirtualMemReserve",
				    "zePhysicalMemCreate",       "zeVirtualMemMap",
				    "zeVirtualMemUnmap",         "zePhysicalMemDestroy",
				    "zeVirtualMemFree"};
enum { TRIED = sizeof(tried) / sizeof(tried[0]) };

/* Without one of the calls buffers stay on the device, and nothing else is lost. */
static void lacks_a_call(void **state)
{
	static const uint32_t results[] = {LZ_ERROR_UNSUPPORTED_FEATURE,
					   LZ_ERROR_UNINITIALIZED,
					   LZ_ERROR_OUT_OF_DEVICE_MEMORY};
	struct rig r;

	(void)state;
	for (uint32_t i = 0; i < 3 * TRIED; i++) {
		stand_in()->reset();
		stand_in()->break_call(tried[i % TRIED], 1, results[i / TRIED]);
		open_rig(&r, &virtual_time, 1);
		assert_int_equal(stand_in()->armed(), 0);
		assert_int_equal(r.caps, 0);
		release(&r, buffer(&r, 0));
		close_rig(&r);
	}
}

static void no_driver_for_it(void **state)
{
	static const char *const settings[] = {"0", "reserve"};
	struct rig r;

	(void)state;
	for (uint32_t i = 0; i < 2; i++) {
		stand_in()->reset();
		setenv("HAL_STAND_IN_ZE_VIRTUAL", settings[i], 1);
		open_rig(&r, &virtual_time, 1);
		unsetenv("HAL_STAND_IN_ZE_VIRTUAL");
		assert_int_equal(r.caps, 0);
		release(&r, buffer(&r, 0));
		close_rig(&r);
	}
}

static void device_is_lost(void **state)
{
	void *dev;

	(void)state;
	for (uint32_t i = 0; i < TRIED; i++) {
		const uint32_t live = stand_in()->live();

		stand_in()->reset();
		stand_in()->break_call(tried[i], 1, LZ_ERROR_DEVICE_LOST);
		assert_int_equal(b->cold.open(&virtual_time, 0, &dev), -EIO);
		assert_non_null(strstr(host_text, tried[i]));
		assert_int_equal(stand_in()->live(), live);
	}
	stand_in()->reset();
}

/* Memory that is the host's, or may move there, is not evicted. */
static void other_placements(void **state)
{
	struct hal_bk_config cfg = virtual_time;
	struct rig r;

	(void)state;
	for (cfg.memory = LZ_MEM_SHARED; cfg.memory <= LZ_MEM_HOST; cfg.memory++) {
		stand_in()->reset();
		open_rig(&r, &cfg, 1);
		assert_int_equal(r.caps, 0);
		assert_int_equal(stand_in()->calls("zeVirtualMemQueryPageSize"), 0);
		close_rig(&r);
	}
}

/* Nor is what is made to be mapped, exported or copied, or what fits into the quota. */
static void only_what_may_go(void **state)
{
	static const uint32_t flags[] = {HAL_BUFFER_MAPPABLE, HAL_BUFFER_EXPORTABLE,
					 HAL_BK_MEM_HOST};
	struct hal_bk_partition_desc within = {.col = 1,
					       .units = 1,
					       .rows = 1,
					       .cols = 1,
					       .memory_bytes = PAGE,
					       .address_bytes = PAGE};
	struct rig r, other;
	uint64_t before;

	(void)state;
	stand_in()->reset();
	open_rig(&r, &virtual_time, 1);
	assert_int_equal(r.caps, HAL_CAP_EVICT);
	before = stand_in()->calls("zeVirtualMemReserve");
	for (uint32_t i = 0; i < 3; i++)
		release(&r, buffer(&r, flags[i]));
	other = r;
	assert_int_equal(b->cold.partition_create(r.dev, &within, &other.part), 0);
	release(&other, buffer(&other, 0));
	within.address_bytes = 0;
	assert_int_equal(b->cold.partition_destroy(r.dev, other.part), 0);
	assert_int_equal(b->cold.partition_create(r.dev, &within, &other.part), 0);
	release(&other, buffer(&other, 0));
	assert_int_equal(b->cold.partition_destroy(r.dev, other.part), 0);
	assert_int_equal(stand_in()->calls("zeVirtualMemReserve"), before);
	release(&r, buffer(&r, 0));
	assert_int_equal(stand_in()->calls("zeVirtualMemReserve"), before + 1);
	close_rig(&r);
}

/* A buffer takes up whole pages, none while it is away, and has its address for good. */
static void comes_and_goes(void **state)
{
	struct lz_mem *mem;
	uint32_t put = 4711, got = 0;
	uint64_t all;
	struct rig r;
	void *address;

	(void)state;
	for (uint32_t units = 1; units <= 2; units++) { /* a tile, several */
		stand_in()->reset();
		open_rig(&r, &virtual_time, units);
		all = free_bytes(&r);
		mem = buffer(&r, 0);
		address = mem->p;
		assert_int_equal(free_bytes(&r), all - PAGE);
		assert_int_equal(b->extra.mem_out(r.dev, mem), 0);
		assert_int_equal(free_bytes(&r), all);
		assert_int_equal(b->extra.mem_in(r.dev, mem, NULL), 0);
		assert_int_equal(free_bytes(&r), all - PAGE);
		assert_ptr_equal(mem->p, address);
		assert_int_equal(b->cold.mem_write(r.dev, mem, BYTES - 4, &put, 4), 0);
		assert_int_equal(b->cold.mem_read(r.dev, mem, BYTES - 4, &got, 4), 0);
		assert_int_equal(got, put);
		assert_int_equal(b->extra.mem_out(r.dev, mem), 0);
		release(&r, mem);
		assert_int_equal(free_bytes(&r), all);
		close_rig(&r);
	}
}

/* Where there is no memory for it, it stays away; it comes when there is. */
static void no_memory(void **state)
{
	struct lz_mem *mem;
	struct rig r;

	(void)state;
	stand_in()->reset();
	open_rig(&r, &virtual_time, 1);
	mem = buffer(&r, 0);
	assert_int_equal(b->extra.mem_out(r.dev, mem), 0);
	stand_in()->memory_left(PAGE / 2);
	assert_int_equal(b->extra.mem_in(r.dev, mem, NULL), -ENOSPC);
	assert_non_null(strstr(host_text, "zePhysicalMemCreate"));
	stand_in()->memory_left(PAGE);
	assert_int_equal(b->extra.mem_in(r.dev, mem, NULL), 0);
	/* Memory that the driver would not destroy is destroyed when it is needed. */
	stand_in()->break_call("zePhysicalMemDestroy", 1, LZ_ERROR_HANDLE_OBJECT_IN_USE);
	assert_int_equal(b->extra.mem_out(r.dev, mem), 0);
	assert_int_equal(b->extra.mem_in(r.dev, mem, NULL), 0);
	stand_in()->memory_left(UINT64_MAX);
	release(&r, mem);
	close_rig(&r);
}

/* What the driver will not destroy is not mixed up with what comes next. */
static void not_given_back(void **state)
{
	struct lz_mem *mem;
	struct rig r;

	(void)state;
	stand_in()->reset();
	open_rig(&r, &virtual_time, 1);
	mem = buffer(&r, 0);
	stand_in()->break_call("zePhysicalMemDestroy", 1, LZ_ERROR_HANDLE_OBJECT_IN_USE);
	assert_int_equal(b->extra.mem_out(r.dev, mem), 0);
	stand_in()->break_call("zePhysicalMemDestroy", 1, LZ_ERROR_HANDLE_OBJECT_IN_USE);
	assert_int_equal(b->extra.mem_in(r.dev, mem, NULL), -EBUSY);
	assert_non_null(strstr(host_text, "has not given back yet"));
	assert_int_equal(b->extra.mem_in(r.dev, mem, NULL), 0);
	release(&r, mem);
	close_rig(&r);
}

/* A command that was given up may still use all memory of its partition. */
static void late_command(void **state)
{
	static const char *const kernels[] = {"work:m8"};
	const struct hal_bk_config cfg = {.clock = 1, .timeout_ms = 5};
	struct hal_bk_cmd cmd = {.op = HAL_OP_LAUNCH, .cookie = 1};
	struct hal_bk_kernel_info info;
	struct hal_bk_event ev[4];
	struct lz_mem *mem, *freed;
	struct hal_bk_arg args[2];
	void *queue, *prog;
	uint64_t all;
	struct rig r;
	size_t size;
	void *image = make_image(kernels, 1, 4, &size);

	(void)state;
	stand_in()->reset();
	open_rig(&r, &cfg, 1);
	all = free_bytes(&r);
	mem = buffer(&r, 0);
	freed = buffer(&r, 0);
	assert_int_equal(b->cold.queue_create(r.dev, r.part, 0, &queue), 0);
	assert_int_equal(b->cold.program_load(r.dev, image, size, &prog), 0);
	assert_int_equal(b->cold.kernel_get(r.dev, prog, 0, &info, &cmd.launch.kernel),
			 0);
	args[0] = (struct hal_bk_arg){freed, 0, 64};
	args[1] = (struct hal_bk_arg){NULL, 20 * MS, 0};
	cmd.launch.args = args;
	cmd.launch.arg_count = 2;
	cmd.launch.groups[0] = cmd.launch.groups[1] = cmd.launch.groups[2] = 1;
	assert_int_equal(b->hot.submit(r.dev, queue, &cmd), 0);
	assert_int_equal(b->hot.poll(r.dev, 10 * MS, ev, 4), 1);
	assert_int_equal(ev[0].status, -EIO);
	assert_non_null(strstr(ev[0].fault, "time-out after 5 ms"));
	assert_int_equal(b->cold.queue_destroy(r.dev, queue), 0);
	assert_int_equal(b->extra.mem_out(r.dev, mem), -EBUSY);
	assert_non_null(strstr(host_text, "may still use the buffer"));
	release(&r, freed);
	assert_int_equal(stand_in()->misuse(NULL), 0);
	(void)b->hot.poll(r.dev, 30 * MS, ev, 4); /* it ends */
	assert_int_equal(b->extra.mem_out(r.dev, mem), 0);
	release(&r, mem);
	assert_int_equal(free_bytes(&r), all);
	assert_int_equal(b->cold.program_unload(r.dev, prog), 0);
	free(image);
	close_rig(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lacks_a_call),     cmocka_unit_test(no_driver_for_it),
		cmocka_unit_test(device_is_lost),   cmocka_unit_test(other_placements),
		cmocka_unit_test(only_what_may_go), cmocka_unit_test(comes_and_goes),
		cmocka_unit_test(no_memory),        cmocka_unit_test(not_given_back),
		cmocka_unit_test(late_command),
	};

	b = hal_backend_levelzero(&host);
	return b ? cmocka_run_group_tests(tests, NULL, NULL) : 1;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of a Level Zero device: what counts as used memory of the device. */
#define _GNU_SOURCE
#include "host.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "backends/levelzero/internal.h"

#define BYTES 4096u

static const struct hal_backend *b;

static uint64_t free_bytes(void *dev)
{
	struct hal_device_info info = {.size = sizeof(info)};

	assert_int_equal(b->cold.get_info(dev, &info), 0);
	return info.memory_free;
}

/* Host memory is no memory of the device; shared memory is, as it may move there. */
static void counts(void **state)
{
	static const struct {
		uint32_t placement, flags;
		uint64_t used;
	} want[] = {
		{LZ_MEM_DEVICE, 0, BYTES},
		{LZ_MEM_HOST, 0, 0},
		{LZ_MEM_HOST, HAL_BUFFER_MAPPABLE, 0},
		{LZ_MEM_SHARED, 0, BYTES},
	};
	const struct hal_bk_partition_desc desc = {.units = 1, .rows = 1, .cols = 1};
	struct hal_bk_config cfg = {.clock = 1};
	void *dev, *part, *mem;
	uint64_t before;
	uint32_t i;

	(void)state;
	for (i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
		cfg.memory = want[i].placement;
		if (b->cold.open(&cfg, 0, &dev))
			fail_msg("%s", host_text);
		assert_int_equal(b->cold.partition_create(dev, &desc, &part), 0);
		before = free_bytes(dev);
		assert_int_equal(
			b->cold.mem_alloc(dev, part, BYTES, NULL, want[i].flags, &mem),
			0);
		assert_int_equal(before - free_bytes(dev), want[i].used);
		assert_int_equal(b->cold.mem_free(dev, mem), 0);
		assert_int_equal(before - free_bytes(dev), 0);
		assert_int_equal(b->cold.partition_destroy(dev, part), 0);
		b->cold.close(dev);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(counts)};

	b = hal_backend_levelzero(&host);
	return b ? cmocka_run_group_tests(tests, NULL, NULL) : 1;
}

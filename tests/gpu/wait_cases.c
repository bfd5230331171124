/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory, copies and objects of a GPU: what counts as used memory of the device, and
 * which thread makes the calls of the library that may wait for the device.
 */
#define _GNU_SOURCE
#include "rig.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define BYTES UINT64_C(4096)

static uint64_t free_bytes(const struct rig *r)
{
	struct hal_device_info info = {.size = sizeof(info)};

	assert_int_equal(rig_face.backend->cold.get_info(r->dev, &info), 0);
	return info.memory_free;
}

static void *allocate(const struct rig *r, uint32_t flags)
{
	void *mem;

	if (rig_face.backend->cold.mem_alloc(r->dev, r->part, BYTES, NULL, flags, &mem))
		fail_msg("%s", host_text);
	return mem;
}

/* Pinned memory of the host is no memory of the device; lists of stopped blocks are. */
void wait_counts(void **state)
{
	static const enum rig_how hows[] = {RIG_BETWEEN, RIG_HOST, RIG_PLAIN};
	const struct hal_backend *b = rig_face.backend;
	uint64_t before;
	void *mem[2], *queue;
	struct rig r;
	uint32_t i;

	(void)state;
	for (i = 0; i < 3; i++) {
		rig_begin(&r, hows[i]);
		before = free_bytes(&r);
		mem[0] = allocate(&r, HAL_BUFFER_MAPPABLE);
		assert_int_equal(before - free_bytes(&r), 0);
		mem[1] = allocate(&r, 0);
		assert_int_equal(before - free_bytes(&r),
				 hows[i] == RIG_HOST ? 0 : BYTES);
		assert_int_equal(b->cold.mem_free(r.dev, mem[0]), 0);
		assert_int_equal(b->cold.mem_free(r.dev, mem[1]), 0);
		assert_int_equal(before - free_bytes(&r), 0);
		assert_int_equal(b->cold.queue_create(r.dev, r.part, 0, &queue), 0);
		if (hows[i] == RIG_PLAIN)
			assert_true(free_bytes(&r) < before);
		else
			assert_int_equal(before - free_bytes(&r), 0);
		assert_int_equal(b->cold.queue_destroy(r.dev, queue), 0);
		assert_int_equal(before - free_bytes(&r), 0);
		rig_end(&r);
	}
}

/* SPDX-License-Identifier: Apache-2.0 */
/* memory=vmm: where buffers are, what is mapped for them and when it is given back. */
#define _GNU_SOURCE
#include "host.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <hal/cuda.h>

#include "backends/cuda/internal.h"

enum { KERNELS = 2, WORK = 0, NEVER };
static const char *const names[KERNELS] = {"work:m8", "never:m"};
static const struct hal_backend *b;

#define MAKE_IMAGE make_cuda_image
#include "tests/gpu/queues.h"

#define MIB UINT64_C(1048576)
#define G   (2 * MIB)

static uint64_t calls(const char *name)
{
	return stand_in()->calls(name);
}

static void *alloc(struct rig *r, void *part, uint64_t bytes)
{
	void *mem;

	if (b->cold.mem_alloc(r->dev, part, bytes, NULL, 0, &mem))
		fail_msg("%s", host_text);
	return mem;
}

static void release(struct rig *r, void *mem)
{
	if (b->cold.mem_free(r->dev, mem))
		fail_msg("%s", host_text);
}

static uint64_t left(struct rig *r)
{
	struct hal_device_info info = {.size = sizeof(info)};

	assert_int_equal(b->cold.get_info(r->dev, &info), 0);
	return info.memory_free;
}

/* Small ones share a granule, what is more than half of one has its own. */
static void granules(void **state)
{
	const struct hal_bk_config cfg = {.clock = 1, .memory = 2};
	const uint64_t all = UINT64_C(8) << 30;
	void *small[5], *large;
	struct rig r;
	uint32_t i;

	(void)state;
	open_rig(&r, &cfg); /* 8 KiB */
	assert_int_equal(calls("cuMemAlloc_v2"), 0);
	assert_int_equal(calls("cuMemAddressReserve"), 1);
	assert_int_equal(calls("cuMemCreate"), 1);
	assert_int_equal(all - left(&r), G);
	for (i = 0; i < 5; i++)
		small[i] = alloc(&r, r.part, 1 + i);
	assert_int_equal(calls("cuMemCreate"), 1);
	small[0] = (release(&r, small[0]), alloc(&r, r.part, MIB));
	assert_int_equal(calls("cuMemCreate"), 1);
	for (i = 0; i < 5; i++)
		release(&r, alloc(&r, r.part, MIB / 2));
	assert_int_equal(calls("cuMemCreate"), 1);
	large = alloc(&r, r.part, MIB + 1);
	assert_int_equal(calls("cuMemCreate"), 2);
	assert_int_equal(all - left(&r), 2 * G);
	release(&r, large);
	assert_int_equal(calls("cuMemUnmap"), 1);
	assert_int_equal(all - left(&r), G);
	/* The first granule has no MiB left. */
	large = alloc(&r, r.part, MIB);
	assert_int_equal(calls("cuMemCreate"), 3);
	release(&r, large);
	assert_int_equal(calls("cuMemUnmap"), 2);
	for (i = 0; i < 5; i++)
		release(&r, small[i]);
	assert_int_equal(calls("cuMemUnmap"), 2);
	close_rig(&r);
	assert_int_equal(calls("cuMemUnmap"), 3);
	assert_int_equal(calls("cuMemRelease"), 3);
	assert_int_equal(calls("cuMemAddressFree"), 1);
}

/* Buffers of many sizes, of two partitions, made and freed at random: none is another's,
 * all are in their partition's range, at multiples of 512. */
struct held {
	struct cu_mem *mem;
	uint32_t part, pattern;
	uint64_t bytes;
};

static void check(struct rig *r, const struct held *h)
{
	uint32_t got[2] = {0, 0};

	assert_int_equal(b->cold.mem_read(r->dev, h->mem, 0, got, 4), 0);
	assert_int_equal(b->cold.mem_read(r->dev, h->mem, h->bytes - 4, &got[1], 4), 0);
	assert_int_equal(got[0], h->pattern);
	assert_int_equal(got[1], h->pattern);
}

static void random_sizes(void **state)
{
	const struct hal_bk_config cfg = {
		.clock = 1, .memory = 2, .partitions = 2, .range = 64 << 20};
	const struct hal_bk_partition_desc desc = {
		.index = 1, .units = 1, .rows = 1, .cols = 1, .col = 1};
	struct held held[64] = {{NULL, 0, 0, 0}};
	uint32_t turn, i, seed = 1;
	void *part[2];
	struct rig r;

	(void)state;
	open_rig(&r, &cfg);
	part[0] = r.part;
	assert_int_equal(b->cold.partition_create(r.dev, &desc, &part[1]), 0);
	for (turn = 0; turn < 2000; turn++) {
		struct held *h;

		seed = seed * 1664525u + 1013904223u;
		h = &held[seed >> 22 & 63];
		if (h->mem) {
			check(&r, h);
			release(&r, h->mem);
			h->mem = NULL;
			continue;
		}
		h->bytes = 8 + ((seed >> 8) % (seed >> 31 ? 4000u : 3000000u)) / 4 * 4;
		h->part = seed >> 30 & 1;
		h->pattern = turn + 1;
		if (b->cold.mem_alloc(r.dev, part[h->part], h->bytes, NULL, 0,
				      (void **)&h->mem)) {
			h->mem = NULL;
			assert_non_null(strstr(host_text, "contiguous free bytes"));
			continue;
		}
		assert_int_equal(h->mem->address % 512, 0);
		assert_true(h->mem->address >= cu_range_of(h->mem->part->range).base);
		assert_true(h->mem->address + h->bytes <=
			    cu_range_of(h->mem->part->range).base +
				    cu_range_of(h->mem->part->range).bytes);
		assert_ptr_equal(h->mem->part, part[h->part]);
		assert_int_equal(b->cold.mem_write(r.dev, h->mem, 0, &h->pattern, 4), 0);
		assert_int_equal(
			b->cold.mem_write(r.dev, h->mem, h->bytes - 4, &h->pattern, 4),
			0);
	}
	for (i = 0; i < 64; i++)
		if (held[i].mem) {
			check(&r, &held[i]);
			release(&r, held[i].mem);
		}
	assert_int_equal(b->cold.partition_destroy(r.dev, part[1]), 0);
	close_rig(&r);
	assert_int_equal(calls("cuMemUnmap"), calls("cuMemMap"));
	assert_true(calls("cuMemMap") > 100);
}

/* While something runs nothing is unmapped, nor is its place anybody's; an allocation
 * that finds no room waits. */
static void while_it_runs(void **state)
{
	const struct hal_bk_config cfg = {.clock = 1, .memory = 2, .range = 6 << 20};
	struct hal_bk_event ev[4];
	void *other, *more;
	struct rig r;

	(void)state;
	open_rig(&r, &cfg);
	other = alloc(&r, r.part, 2 * G);
	submit_work(&r, 0, 1, 1000000);
	stand_in()->hot(1);
	release(&r, other);
	assert_int_equal(b->hot.poll(r.dev, 500000, ev, 4), 0);
	assert_int_equal(calls("cuMemUnmap"), 0);
	stand_in()->hot(0);
	stand_in()->frees_wait(1);
	more = alloc(&r, r.part, 2 * G); /* the range has no other place */
	assert_int_equal(calls("cuMemUnmap"), 1);
	assert_true(b->hot.now(r.dev) >= 1000000);
	poll_one(&r, ev);
	assert_int_equal(b->cold.mem_alloc(r.dev, r.part, G, NULL, 0, &other), -ENOSPC);
	assert_non_null(strstr(
		host_text,
		"cuda:0: 2097152 bytes requested; the partition's address range of "
		"6291456 bytes has at most 0 contiguous free bytes"));
	release(&r, more);
	close_rig(&r);
}

/* The same of the device's memory. */
static void no_memory(void **state)
{
	const struct hal_bk_config cfg = {.clock = 1, .memory = 2, .range = 18 << 20};
	struct hal_bk_event ev[4];
	void *other, *more;
	struct rig r;

	(void)state;
	open_rig(&r, &cfg);
	other = alloc(&r, r.part, 4 * G);
	stand_in()->memory_left(3 * G);
	assert_int_equal(b->cold.mem_alloc(r.dev, r.part, 4 * G, NULL, 0, &more),
			 -ENOSPC);
	assert_non_null(strstr(host_text, "cuMemCreate: CUDA_ERROR_OUT_OF_MEMORY (2)"));
	submit_work(&r, 0, 1, 1000000);
	release(&r, other);
	stand_in()->frees_wait(1);
	more = alloc(&r, r.part, 4 * G);
	poll_one(&r, ev);
	assert_int_equal(
		b->cold.mem_alloc(r.dev, r.part, UINT64_C(9) << 30, NULL, 0, &other),
		-ENOSPC);
	assert_non_null(strstr(host_text, "9663676416 bytes requested, "));
	release(&r, more);
	/* Of what was refused no address was lost. */
	release(&r, alloc(&r, r.part, 7 * G));
	close_rig(&r);
}

/* What a launch that was given up may still write to is nobody's. */
static void hung(void **state)
{
	const struct hal_bk_config cfg = {.clock = 1, .memory = 2, .hang_ms = 5};
	struct hal_bk_event ev[4];
	struct cu_mem *old, *new;
	struct rig r;

	(void)state;
	open_rig(&r, &cfg);
	old = alloc(&r, r.part, 4096);
	submit_on_mem(&r, 0, NEVER, 1);
	poll_one(&r, ev);
	assert_int_equal(ev[0].status, -EIO);
	{
		const uint64_t at = old->address;

		release(&r, old);
		new = alloc(&r, r.part, 4096);
		assert_true(new->address != at);
	}
	release(&r, new);
	assert_int_equal(b->cold.queue_destroy(r.dev, r.queue[0]), 0);
	leave_rig(&r);
	assert_int_equal(calls("cuMemUnmap"), 0);
	assert_int_equal(stand_in()->misuse(NULL), 0);
	stand_in()->lose(0, CUR_UNKNOWN); /* the end of the process */
}

static uint32_t no_access(uint64_t address, size_t bytes, const struct cu_access *desc,
			  size_t count)
{
	(void)address;
	(void)bytes;
	(void)desc;
	(void)count;
	return CUR_OUT_OF_MEMORY;
}

/* What cannot be given back is tried again: what is mapped for nobody, and addresses
 * where something is still mapped. */
static void tried_again(void **state)
{
	const struct hal_bk_config cfg = {.clock = 1, .memory = 2};
	uint32_t (*kept)(uint64_t, size_t, const struct cu_access *, size_t);
	struct cu_mem *mem;
	void *none;
	struct rig r;
	uint32_t i;

	(void)state;
	open_rig(&r, &cfg);
	kept = cu.cuMemSetAccess;
	cu.cuMemSetAccess = no_access;
	assert_int_equal(stand_in()->break_call("cuMemUnmap", 1, CUR_INVALID_VALUE), 0);
	assert_int_equal(b->cold.mem_alloc(r.dev, r.part, G, NULL, 0, &none), -ENOSPC);
	assert_non_null(
		strstr(host_text, "cuMemSetAccess: CUDA_ERROR_OUT_OF_MEMORY (2)"));
	cu.cuMemSetAccess = kept;
	assert_int_equal(calls("cuMemUnmap"), 2);
	mem = alloc(&r, r.part, G);
	for (i = 0; i < 3; i++)
		assert_int_equal(b->cold.queue_destroy(r.dev, r.queue[i]), 0);
	release(&r, r.mem);
	assert_int_equal(b->cold.program_unload(r.dev, r.prog), 0);
	assert_int_equal(stand_in()->break_call("cuMemUnmap", 1, CUR_INVALID_VALUE), 0);
	assert_int_equal(b->cold.mem_free(r.dev, mem), -EINVAL);
	assert_int_equal(b->cold.partition_destroy(r.dev, r.part), 0);
	b->cold.close(r.dev);
	assert_int_equal(stand_in()->live(), 0);
	assert_int_equal(stand_in()->misuse(NULL), 0);
}

/* Each reason why it is not there; the default does without. */
static void not_there(void **state)
{
	const struct hal_bk_config cfg = {.clock = 1, .memory = 2}, plain = {.clock = 1};
	uint32_t (*kept)(uint64_t, size_t) = cu.cuMemUnmap;
	struct rig r;

	(void)state;
	assert_non_null(kept);
	stand_in()->reset();
	cu.cuMemUnmap = NULL;
	assert_int_equal(b->cold.open(&cfg, 0, &r.dev), -ENOTSUP);
	assert_string_equal(
		host_text,
		"cuda:0: memory=vmm: the driver lacks the virtual memory calls "
		"(cuMemMap)");
	open_rig(&r, &plain);
	close_rig(&r);
	cu.cuMemUnmap = kept;
	setenv("HAL_STAND_IN_CUDA_VMM", "ignored", 1);
	assert_int_equal(b->cold.open(&cfg, 0, &r.dev), -ENOTSUP);
	assert_string_equal(host_text, "cuda:0: memory=vmm: the device does not support "
				       "virtual memory management");
	unsetenv("HAL_STAND_IN_CUDA_VMM");
	assert_int_equal(stand_in()->live(), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(granules),      cmocka_unit_test(random_sizes),
		cmocka_unit_test(while_it_runs), cmocka_unit_test(no_memory),
		cmocka_unit_test(hung),          cmocka_unit_test(not_there),
		cmocka_unit_test(tried_again),
	};

	b = hal_backend_cuda(&host);
	if (!b || !stand_in())
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}

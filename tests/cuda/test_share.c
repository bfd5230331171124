/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that is exported and imported: the cases of tests/gpu, and what is CUDA's. */
#define _GNU_SOURCE
#include "host.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "backends/cuda/internal.h"
#include "tests/gpu/rig.h"

#define G UINT64_C(2097152)

static const struct hal_bk_config plain = {.clock = 1},
				  pinned = {.clock = 1, .memory = 1},
				  real = {.hang_ms = 20},
				  ranges = {.clock = 1, .memory = 2, .range = 6 << 20},
				  bounds = {.clock = 1, .memory = 2, .bounds = 1};

struct rig_face rig_face = {
	.how = {[RIG_PLAIN] = &plain,
		[RIG_BETWEEN] = &plain,
		[RIG_HOST] = &pinned,
		[RIG_REAL] = &real},
	.device = 1,
	.kernels = {"work:m8", "iota:m4"},
	.stand_in = stand_in,
	.image = make_cuda_image,
	.import = "cuMemImportFromShareableHandle",
	.unmap = "cuMemUnmap",
	.granule = G,
};

static const struct hal_backend *b;

static int make(const struct rig *r, uint64_t bytes, struct cu_mem **mem)
{
	return b->cold.mem_alloc(r->dev, r->part, bytes, NULL, HAL_BUFFER_EXPORTABLE,
				 (void **)mem);
}

static int import(const struct rig *r, int fd, uint64_t bytes, struct cu_mem **mem)
{
	return b->cold.mem_import(r->dev, r->part, fd, bytes, 0, (void **)mem);
}

static int share(const struct rig *r, struct cu_mem **from, struct cu_mem **to)
{
	int fd, err = make(r, 64, from);

	if (err)
		return err;
	assert_int_equal(b->cold.mem_export(r->dev, *from, &fd), 0);
	err = import(r, fd, 64, to);
	(void)close(fd);
	return err;
}

/* In the partition's range, in granules that no other buffer has. */
static void in_range(void **state)
{
	struct cu_mem *from, *to, *more;
	struct ptx_range range;
	struct rig r;

	(void)state;
	rig_face.how[RIG_SPLIT] = &ranges;
	rig_begin(&r, RIG_SPLIT);
	assert_int_equal(share(&r, &from, &to), 0);
	range = cu_range_of(from->part->range);
	assert_null(from->range);
	assert_int_equal(from->address, range.base + G);
	assert_int_equal(to->address, range.base + 2 * G);
	assert_int_equal(range.bytes, 3 * G);
	/* The range has three granules; one is of small buffers. */
	assert_int_equal(make(&r, 64, &more), -ENOSPC);
	assert_non_null(strstr(host_text, "the partition's address range of 6291456"));
	assert_int_equal(b->cold.mem_alloc(r.dev, r.part, 64, NULL, 0, (void **)&more),
			 0);
	assert_true(more->address < range.base + G);
	assert_int_equal(b->cold.mem_free(r.dev, more), 0);
	assert_int_equal(b->cold.mem_free(r.dev, from), 0);
	assert_int_equal(make(&r, 64, &more), 0);
	assert_int_equal(b->cold.mem_free(r.dev, more), 0);
	assert_int_equal(b->cold.mem_free(r.dev, to), 0);
	rig_end(&r);
}

/* Kernels that are kept to the partition's range reach it. */
static void within_bounds(void **state)
{
	struct cu_mem *from, *to;
	struct hal_bk_arg args[2];
	struct hal_bk_event ev;
	struct hal_bk_cmd cmd;
	uint32_t got = 0, put = 6;
	struct rig r;

	(void)state;
	rig_face.how[RIG_SPLIT] = &bounds;
	rig_begin(&r, RIG_SPLIT);
	assert_int_equal(share(&r, &from, &to), 0);
	assert_int_equal(b->cold.mem_write(r.dev, from, 0, &put, 4), 0);
	args[0] = (struct hal_bk_arg){to, 0, 64};
	args[1] = (struct hal_bk_arg){NULL, 1000, 0};
	cmd = (struct hal_bk_cmd){.op = HAL_OP_LAUNCH,
				  .launch = {.kernel = r.work,
					     .args = args,
					     .arg_count = 2,
					     .groups = {1, 1, 1}}};
	if (b->hot.submit(r.dev, r.queue, &cmd))
		fail_msg("%s", host_text);
	assert_int_equal(b->hot.poll(r.dev, UINT64_MAX, &ev, 1), 1);
	assert_int_equal(ev.status, 0);
	assert_int_equal(b->cold.mem_read(r.dev, from, 0, &got, 4), 0);
	assert_int_equal(got, 7);
	assert_int_equal(b->cold.mem_free(r.dev, from), 0);
	assert_int_equal(b->cold.mem_free(r.dev, to), 0);
	rig_end(&r);
}

/* Without memory=vmm each has addresses of its own, which go with it. */
static void own_range(void **state)
{
	struct cu_mem *from, *to;
	struct rig r;

	(void)state;
	rig_begin(&r, RIG_BETWEEN);
	assert_int_equal(stand_in()->calls("cuMemAddressReserve"), 0);
	assert_int_equal(share(&r, &from, &to), 0);
	assert_int_equal(stand_in()->calls("cuMemAddressReserve"), 2);
	assert_int_equal(b->cold.mem_free(r.dev, from), 0);
	assert_int_equal(b->cold.mem_free(r.dev, to), 0);
	assert_int_equal(stand_in()->calls("cuMemAddressFree"), 2);
	assert_int_equal(stand_in()->calls("cuMemRelease"),
			 stand_in()->calls("cuMemCreate") + 2);
	rig_end(&r);
}

/* maps: the driver maps memory all the same, which evictions use. */
static void absent(const char *why, bool maps)
{
	struct hal_device_info info = {.size = sizeof(info)};
	struct cu_mem *mem;
	struct rig r;

	rig_begin(&r, RIG_BETWEEN);
	assert_int_equal(b->cold.get_info(r.dev, &info), 0);
	if (info.caps & (HAL_CAP_EXPORT | HAL_CAP_IMPORT))
		fail_msg("shared although %s", why);
	assert_int_equal(make(&r, 64, &mem), -ENOTSUP);
	assert_non_null(strstr(host_text, "cuda:1: the driver or the device cannot"));
	assert_int_equal(import(&r, 0, 64, &mem), -ENOTSUP);
	assert_int_equal(stand_in()->calls("cuMemGetAllocationGranularity"), maps);
	assert_int_equal((info.caps & HAL_CAP_EVICT) != 0, maps);
	rig_end(&r);
}

/* Each reason why it is not there; the device works without. */
static void not_there(void **state)
{
	const struct cu_symbols kept = cu;

	(void)state;
	assert_int_equal(setenv("HAL_STAND_IN_CUDA_VMM", "ignored", 1), 0);
	absent("the device has no virtual memory management", false);
	assert_int_equal(unsetenv("HAL_STAND_IN_CUDA_VMM"), 0);
	assert_int_equal(setenv("HAL_STAND_IN_CUDA_EXPORT", "ignored", 1), 0);
	absent("the device exports no descriptors", true);
	assert_int_equal(unsetenv("HAL_STAND_IN_CUDA_EXPORT"), 0);
	cu.cuMemMap = NULL;
	absent("the driver has no cuMemMap", false);
	cu = kept;
	cu.cuMemRetainAllocationHandle = NULL;
	absent("the driver has no cuMemRetainAllocationHandle", true);
	cu = kept;
	cu.cuMemExportToShareableHandle = NULL;
	absent("the driver has no cuMemExportToShareableHandle", true);
	cu = kept;
	cu.cuMemImportFromShareableHandle = NULL;
	absent("the driver has no cuMemImportFromShareableHandle", true);
	cu = kept;
}

static uint32_t import_unknown(uint64_t *memory, void *fd, uint32_t type)
{
	(void)memory;
	(void)fd;
	(void)type;
	return CUR_UNKNOWN;
}

/* Whatever the driver answers to a stranger's descriptor, the device is not lost. */
static void unknown(void **state)
{
	const struct cu_symbols kept = cu;
	struct cu_mem *from, *to;
	struct rig r;

	(void)state;
	rig_begin(&r, RIG_BETWEEN);
	cu.cuMemImportFromShareableHandle = import_unknown;
	assert_int_equal(import(&r, 0, 64, &to), -EINVAL);
	assert_non_null(strstr(host_text, "CUDA_ERROR_UNKNOWN (999): descriptor 0 is"));
	cu = kept;
	assert_int_equal(share(&r, &from, &to), 0);
	assert_int_equal(b->cold.mem_free(r.dev, from), 0);
	assert_int_equal(b->cold.mem_free(r.dev, to), 0);
	rig_end(&r);
}

static uint32_t odd_granularity(size_t *bytes, const struct cu_memory_prop *prop,
				uint32_t option)
{
	(void)prop;
	(void)option;
	*bytes = 3000000;
	return CUR_SUCCESS;
}

/* A granularity that is none is refused when the device is opened. */
static void granularity(void **state)
{
	const struct cu_symbols kept = cu;
	void *dev;

	(void)state;
	stand_in()->reset();
	cu.cuMemGetAllocationGranularity = odd_granularity;
	assert_int_equal(b->cold.open(&plain, 0, &dev), -ENOTSUP);
	assert_string_equal(host_text, "cuda:0: cannot use the driver's mapping "
				       "granularity of 3000000 bytes");
	cu = kept;
	assert_int_equal(stand_in()->live(), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SHARE_CASES,
		cmocka_unit_test(in_range),
		cmocka_unit_test(within_bounds),
		cmocka_unit_test(own_range),
		cmocka_unit_test(not_there),
		cmocka_unit_test(unknown),
		cmocka_unit_test(granularity),
	};

	rig_face.backend = b = hal_backend_cuda(&host);
	if (!b || !stand_in())
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}

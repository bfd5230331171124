/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that is exported and imported: the cases of tests/gpu, and what is HIP's. */
#define _GNU_SOURCE
#include "host.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

#include "backends/rocm/internal.h"
#include "tests/gpu/rig.h"

static const struct hal_bk_config plain = {.clock = 1},
				  pinned = {.clock = 1, .memory = 1},
				  real = {.hang_ms = 20};

struct rig_face rig_face = {
	.how = {[RIG_BETWEEN] = &plain, [RIG_HOST] = &pinned, [RIG_REAL] = &real},
	.device = 1,
	.kernels = {"work:m8", "iota:m4"},
	.stand_in = stand_in,
	.image = make_rocm_image,
	.import = "hipMemImportFromShareableHandle",
	.unmap = "hipMemUnmap",
	.granule = 4096,
};

static const struct hal_backend *b;

static void release(const char *version)
{
	assert_int_equal(setenv("HAL_STAND_IN_HIP_VERSION", version, 1), 0);
}

static int make(const struct rig *r, struct rocm_mem **mem)
{
	return b->cold.mem_alloc(r->dev, r->part, 64, NULL, HAL_BUFFER_EXPORTABLE,
				 (void **)mem);
}

static int import(const struct rig *r, int fd, struct rocm_mem **mem)
{
	return b->cold.mem_import(r->dev, r->part, fd, 64, 0, (void **)mem);
}

static void drop(const struct rig *r, struct rocm_mem *mem)
{
	if (b->cold.mem_free(r->dev, mem))
		fail_msg("%s", host_text);
}

/* Releases are told a descriptor in two ways. */
static void releases(void **state)
{
	static const char *const all[] = {"60100000", "70051831", "70100000"};
	struct rocm_mem *from, *to;
	struct rig r;
	uint32_t i;
	int fd;

	(void)state;
	for (i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		release(all[i]);
		rig_begin(&r, RIG_BETWEEN);
		assert_int_equal(make(&r, &from), 0);
		assert_int_equal(b->cold.mem_export(r.dev, from, &fd), 0);
		if (import(&r, fd, &to))
			fail_msg("%s: %s", all[i], host_text);
		(void)close(fd);
		drop(&r, from);
		drop(&r, to);
		rig_end(&r);
	}
	release("60300000");
}

/* HIP exports memory once; each descriptor is a copy of that one, while there are any. */
static void copies(void **state)
{
	const char *const call = "hipMemExportToShareableHandle";
	struct rocm_mem *from, *to;
	struct rlimit had, few;
	struct rig r;
	int fd[2], none;

	(void)state;
	rig_begin(&r, RIG_BETWEEN);
	assert_int_equal(stand_in()->calls(call), 1);
	assert_int_equal(make(&r, &from), 0);
	assert_int_equal(b->cold.mem_export(r.dev, from, &fd[0]), 0);
	(void)close(fd[0]);
	assert_int_equal(b->cold.mem_export(r.dev, from, &fd[0]), 0);
	assert_int_equal(b->cold.mem_export(r.dev, from, &fd[1]), 0);
	assert_int_not_equal(fd[0], fd[1]);
	assert_int_equal(stand_in()->calls(call), 2);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &had), 0);
	few = had;
	few.rlim_cur = 3;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	assert_int_equal(b->cold.mem_export(r.dev, from, &none), -EMFILE);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &had), 0);
	drop(&r, from);
	assert_int_equal(import(&r, fd[1], &to), 0);
	(void)close(fd[0]);
	(void)close(fd[1]);
	drop(&r, to);
	rig_end(&r);
}

static void absent(const char *text)
{
	struct hal_device_info info = {.size = sizeof(info)};
	struct rocm_mem *mem;
	struct rig r;

	rig_open(&r, RIG_BETWEEN);
	assert_int_equal(b->cold.get_info(r.dev, &info), 0);
	assert_int_equal(info.caps & (HAL_CAP_EXPORT | HAL_CAP_IMPORT), 0);
	assert_int_equal(make(&r, &mem), -ENOTSUP);
	assert_string_equal(host_text, text);
	assert_int_equal(import(&r, 0, &mem), -ENOTSUP);
	assert_string_equal(host_text, text);
	rig_end(&r);
}

/* Each reason why it is not there; the device works without. */
static void not_there(void **state)
{
	static const char old[] =
		"rocm:1: memory cannot be exported: it takes HIP 6.0 or "
		"later and a device with virtual memory management";
	const struct hip_symbols kept = hip;

	(void)state;
	stand_in()->reset();
	release("50221153");
	absent(old);
	assert_int_equal(stand_in()->calls("hipMemCreate"), 0);
	release("60000000");
	absent("rocm:1: memory cannot be exported: hipMemCreate: "
	       "hipErrorNotSupported (801)");
	release("60300000");
	assert_int_equal(setenv("HAL_STAND_IN_HIP_VMM", "ignored", 1), 0);
	absent(old);
	assert_int_equal(unsetenv("HAL_STAND_IN_HIP_VMM"), 0);
	hip.hipRuntimeGetVersion = NULL;
	absent(old);
	hip = kept;
	hip.hipMemSetAccess = NULL;
	absent(old);
	hip = kept;
	assert_int_equal(stand_in()->break_call("hipMemExportToShareableHandle", 1,
						HIPR_InvalidValue),
			 0);
	absent("rocm:1: memory cannot be exported: hipMemExportToShareableHandle: "
	       "hipErrorInvalidValue (1)");
}

/* A device that is lost by then is not opened. */
static void lost_at_open(void **state)
{
	void *dev;

	(void)state;
	stand_in()->reset();
	assert_int_equal(stand_in()->break_call("hipMemCreate", 1, HIPR_LaunchFailure),
			 0);
	assert_int_equal(b->cold.open(&plain, 1, &dev), -EIO);
	assert_string_equal(host_text, "rocm: hipMemCreate: hipErrorLaunchFailure (719)");
	stand_in()->reset();
}

static uint32_t import_unknown(void **memory, void *fd, uint32_t type)
{
	(void)memory;
	(void)fd;
	(void)type;
	return HIPR_Unknown;
}

/* Whatever HIP answers to a stranger's descriptor, the device is not lost. */
static void unknown(void **state)
{
	const struct hip_symbols kept = hip;
	struct rocm_mem *from, *to;
	struct rig r;
	int fd;

	(void)state;
	rig_begin(&r, RIG_BETWEEN);
	hip.hipMemImportFromShareableHandle = import_unknown;
	assert_int_equal(import(&r, 0, &to), -EINVAL);
	assert_non_null(strstr(host_text, "hipErrorUnknown (999): descriptor 0 is"));
	hip = kept;
	assert_int_equal(make(&r, &from), 0);
	assert_int_equal(b->cold.mem_export(r.dev, from, &fd), 0);
	assert_int_equal(import(&r, fd, &to), 0);
	(void)close(fd);
	drop(&r, from);
	drop(&r, to);
	rig_end(&r);
}

/* What cannot be given back is tried again: the memory, then the addresses. */
static void tried_again(void **state)
{
	static const char *const calls[] = {"hipMemUnmap", "hipMemAddressFree"};
	struct rocm_mem *mem;
	struct rig r;
	uint32_t i;

	(void)state;
	for (i = 0; i < 2; i++) {
		rig_begin(&r, RIG_BETWEEN);
		assert_int_equal(make(&r, &mem), 0);
		assert_int_equal(stand_in()->break_call(calls[i], 1, HIPR_InvalidValue),
				 0);
		assert_int_equal(b->cold.mem_free(r.dev, mem), -EINVAL);
		assert_non_null(strstr(host_text, calls[i]));
		rig_end(&r);
		assert_int_equal(stand_in()->calls("hipMemUnmap"), i ? 1 : 2);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SHARE_CASES,
		cmocka_unit_test(releases),
		cmocka_unit_test(copies),
		cmocka_unit_test(not_there),
		cmocka_unit_test(lost_at_open),
		cmocka_unit_test(unknown),
		cmocka_unit_test(tried_again),
	};

	if (setenv("HAL_STAND_IN_HIP_VERSION", "60300000", 1))
		return 1;
	rig_face.backend = b = hal_backend_rocm(&host);
	if (!b || !stand_in())
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}

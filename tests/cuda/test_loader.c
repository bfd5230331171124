/* SPDX-License-Identifier: Apache-2.0 */
/*
 * No driver, the stub, an old driver, one that does not start or shows no device: each is
 * told for what it is, and another library may do after it.  A process a case, as a
 * driver that has started stays.
 */
#define _GNU_SOURCE
#include "host.h"

#include "backends/cuda/cu_calls.h"
#include "tests/gpu/probe.h"

#include <dlfcn.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { SLOTS = 7 };

/* In a process of its own: probe answers want, with this in its text. */
static void probe_says(const struct hal_bk_config *cfg, int want, const char *text)
{
	probe_of(hal_backend_cuda, cfg, want, text);
}

static void no_driver(void **state)
{
	const struct hal_bk_config cfg = {.library = "libcuda_of_nobody.so.1"};

	(void)state;
	probe_says(&cfg, -ENODEV, "no driver: libcuda_of_nobody.so.1");
}

static void no_cuda(void **state)
{
	const struct hal_bk_config cfg = {.library = CUDA_NONE};

	(void)state;
	probe_says(&cfg, -ENODEV, "is not a CUDA driver: it has no cuDriverGetVersion");
}

static void stub(void **state)
{
	const struct hal_bk_config cfg = {.library = CUDA_STUB};

	(void)state;
	if (!CUDA_STUB[0] || strstr(CUDA_STUB, "NOTFOUND"))
		skip(); /* no toolkit here */
	probe_says(&cfg, -ENODEV, "CUDA_ERROR_STUB_LIBRARY (34)");
	probe_says(&cfg, -ENODEV, "is the stub library for linking, not a driver");
}

/* NULL: it has all calls, and the table that masks need, before anything is started. */
static const char *lacks(const char *library)
{
	static const char *const calls[] = {
#define NAME(name, params, args) #name,
		CU_CALLS(NAME) CU_VMM_CALLS(NAME)
#undef NAME
	};
	static const uint8_t uuid[16] = {0x2c, 0x8e, 0x0a, 0xd8, 0x07, 0x10, 0xab, 0x4e,
					 0x90, 0xdd, 0x54, 0x71, 0x9f, 0xe5, 0xf7, 0x4b};
	uint32_t (*export)(const void **table, const void *name);
	const void *table = NULL, *slots[SLOTS];
	void *lib = dlopen(library, RTLD_NOW | RTLD_LOCAL), *p;
	uint64_t bytes;

	if (!lib)
		return dlerror();
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		if (!dlsym(lib, calls[i]))
			return calls[i];
	p = dlsym(lib, "cuGetExportTable");
	if (!p)
		return "cuGetExportTable";
	memcpy(&export, &p, sizeof(p));
	if (export(&table, uuid) != 0)
		return "the table";
	memcpy(&bytes, table, sizeof(bytes));
	if (bytes < sizeof(slots))
		return "the table's slots";
	memcpy(slots, table, sizeof(slots));
	return slots[3] ? slots[6] ? NULL : "enable" : "subscribe";
}

/* NVIDIA's own library without a GPU (scripts/check-cuda-driver).  A child loads it: it
 * stays, and has the stand-in's name. */
static void real(void **state)
{
	const struct hal_bk_config cfg = {.library = getenv("HAL_CUDA_DRIVER")};
	int status;
	pid_t child;

	(void)state;
	if (!cfg.library)
		skip();
	probe_says(&cfg, -ENODEV, "CUDA_ERROR_NO_DEVICE (100)");
	probe_says(&cfg, -ENODEV, "finds no GPU");
	fflush(NULL);
	child = fork();
	if (child == 0) {
		const char *what = lacks(cfg.library);

		if (what)
			fprintf(stderr, "%s lacks %s\n", cfg.library, what);
		_exit(what != NULL);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

static void with(const char *variable, const char *value, int want, const char *text)
{
	const struct hal_bk_config cfg = {0};

	setenv(variable, value, 1);
	probe_says(&cfg, want, text);
	unsetenv(variable);
}

static void old_driver(void **state)
{
	(void)state;
	with("HAL_STAND_IN_CUDA_VERSION", "12030", -ENODEV,
	     "the driver supports CUDA 12.3; CUDA 12.4 or later is needed");
	with("HAL_STAND_IN_CUDA_VERSION", "12040", 2, NULL);
}

static void does_not_start(void **state)
{
	(void)state;
	with("HAL_STAND_IN_CUDA_FAIL", "cuInit:1:100", -ENODEV,
	     "cuInit: CUDA_ERROR_NO_DEVICE (100)");
	with("HAL_STAND_IN_CUDA_DEVICES", "0", -ENODEV, "finds no GPU");
	with("HAL_STAND_IN_CUDA_FAIL", "cuInit:1:803", -ENODEV,
	     "another version than the kernel driver");
	with("HAL_STAND_IN_CUDA_FAIL", "cuInit:1:999", -ENODEV,
	     "CUDA_ERROR_UNKNOWN (999)");
	with("HAL_STAND_IN_CUDA_FAIL", "cuDriverGetVersion:1:1", -ENODEV,
	     "cuDriverGetVersion: CUDA_ERROR_INVALID_VALUE (1)");
}

/* What did not start is no obstacle; what did is. */
static void another(void **state)
{
	const struct hal_bk_config none = {.library = CUDA_NONE}, found = {0};
	const struct hal_backend *b = hal_backend_cuda(&host);
	struct hal_device_info info[2];
	void *dev = NULL;

	(void)state;
	memset(info, 0, sizeof(info));
	info[0].size = info[1].size = sizeof(info[0]);
	assert_int_equal(b->cold.probe(&none, info, 2), -ENODEV);
	assert_int_equal(b->cold.probe(&found, info, 2), 2);
	assert_true(info[0].caps & HAL_CAP_STAND_IN);
	assert_string_equal(info[1].bus_id, "0000:1b:00.0");
	assert_int_equal(b->cold.probe(&none, info, 2), -EBUSY);
	assert_non_null(strstr(host_text, "this process already uses libcuda.so.1"));
	assert_int_equal(b->cold.open(&found, 2, &dev), -ENODEV);
	assert_non_null(
		strstr(host_text, "cuda:2: no such device: the driver reports 2"));
}

/* A device that cannot be read keeps its number. */
static void one_unusable(void **state)
{
	const struct hal_bk_config cfg = {0};
	const struct hal_backend *b = hal_backend_cuda(&host);
	struct hal_device_info info[2];

	(void)state;
	memset(info, 0, sizeof(info));
	info[0].size = info[1].size = sizeof(info[0]);
	stand_in()->break_call("cuDeviceGetAttribute", 3, 1);
	assert_int_equal(b->cold.probe(&cfg, info, 2), 2);
	assert_string_equal(info[0].name, "unusable: EINVAL");
	assert_non_null(strstr(info[1].name, "46 multiprocessors"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_driver),  cmocka_unit_test(no_cuda),
		cmocka_unit_test(stub),       cmocka_unit_test(real),
		cmocka_unit_test(old_driver), cmocka_unit_test(does_not_start),
		cmocka_unit_test(another),    cmocka_unit_test(one_unusable),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

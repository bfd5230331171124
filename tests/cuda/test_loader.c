/* SPDX-License-Identifier: Apache-2.0 */
/*
 * No driver, the stub, an old driver, one that does not start or shows no device: the
 * table of tests/vendor/loader.h, and NVIDIA's own library.
 */
#define _GNU_SOURCE
#include "tests/vendor/loader.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/cuda/cu_calls.h"
#include "host.h"

enum { SLOTS = 7 };

static const struct hal_bk_config found = {0}, none = {.library = CUDA_NONE},
				  nobody = {.library = "libcuda_of_nobody.so.1"};

static const struct loader_row rows[] = {
	LOADER_REFUSED("no_driver", &nobody, -ENODEV, "no driver: libcuda_of_nobody.so.1",
		       NULL),
	LOADER_REFUSED("no_cuda", &none, -ENODEV,
		       "is not a CUDA driver: it has no cuDriverGetVersion", NULL),
	LOADER_REFUSED("old_driver", &found, -ENODEV,
		       "the driver supports CUDA 12.3; CUDA 12.4 or later is needed",
		       "HAL_STAND_IN_CUDA_VERSION=12030"),
	{.name = "oldest_driver",
	 .cfg = &found,
	 .set = {"HAL_STAND_IN_CUDA_VERSION=12040"},
	 .probe = 2},
	LOADER_ONCE("no_device", &found, "cuInit: CUDA_ERROR_NO_DEVICE (100)",
		    "HAL_STAND_IN_CUDA_FAIL=cuInit:1:100"),
	LOADER_REFUSED("no_gpu", &found, -ENODEV, "finds no GPU",
		       "HAL_STAND_IN_CUDA_DEVICES=0"),
	LOADER_ONCE("other_kernel_driver", &found,
		    "another version than the kernel driver",
		    "HAL_STAND_IN_CUDA_FAIL=cuInit:1:803"),
	LOADER_ONCE("no_mps_server", &found,
		    "CUDA_ERROR_MPS_CONNECTION_FAILED (805): libcuda.so.1 reaches no MPS "
		    "server",
		    "HAL_STAND_IN_CUDA_FAIL=cuInit:1:805"),
	LOADER_ONCE("unknown_error", &found, "CUDA_ERROR_UNKNOWN (999)",
		    "HAL_STAND_IN_CUDA_FAIL=cuInit:1:999"),
	LOADER_ONCE("no_version", &found,
		    "cuDriverGetVersion: CUDA_ERROR_INVALID_VALUE (1)",
		    "HAL_STAND_IN_CUDA_FAIL=cuDriverGetVersion:1:1"),
	/* A device that cannot be read keeps its number. */
	{.name = "one_unusable",
	 .cfg = &found,
	 .set = {"HAL_STAND_IN_CUDA_FAIL=cuDeviceGetAttribute:3:1"},
	 .probe = 2,
	 .device = "unusable: EINVAL",
	 .second = "46 multiprocessors"},
};

static void stub(void **state)
{
	static const struct hal_bk_config cfg = {.library = CUDA_STUB};
	const struct loader_row row = {
		.name = "stub",
		.cfg = &cfg,
		.probe = -ENODEV,
		.texts = {"CUDA_ERROR_STUB_LIBRARY (34)",
			  "is the stub library for linking, not a driver"}};

	(void)state;
	if (!CUDA_STUB[0] || strstr(CUDA_STUB, "NOTFOUND"))
		skip(); /* no toolkit here */
	loader_check(&row);
}

/* NULL: it has all calls, and the table that masks need, before anything is started. */
static const char *lacks(const char *library)
{
	static const char *const calls[] = {
#define NAME(name, params, args) #name,
		CU_CALLS(NAME) CU_VMM_CALLS(NAME) CU_SHARE_CALLS(NAME)
			CU_REGISTER_CALLS(NAME)
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

static int lacks_nothing(const void *library)
{
	const char *what = lacks(library);

	if (what)
		fprintf(stderr, "%s lacks %s\n", (const char *)library, what);
	return what != NULL;
}

/* NVIDIA's own library without a GPU (scripts/check-cuda-driver).  A child loads it: it
 * stays, and has the stand-in's name. */
static void real(void **state)
{
	const struct hal_bk_config cfg = {.library = getenv("HAL_CUDA_DRIVER")};
	const struct loader_row row = {
		.name = "real",
		.cfg = &cfg,
		.probe = -ENODEV,
		.texts = {"CUDA_ERROR_NO_DEVICE (100)", "finds no GPU"}};

	(void)state;
	if (!cfg.library)
		skip();
	loader_check(&row);
	assert_int_equal(loader_child(lacks_nothing, cfg.library), 0);
}

static const struct CMUnitTest cases[] = {cmocka_unit_test(stub), cmocka_unit_test(real)};

const struct loader_vendor loader_vendor = {
	.backend = hal_backend_cuda,
	.rows = rows,
	.row_count = sizeof(rows) / sizeof(rows[0]),
	.another = {.found = &found,
		    .other = &none,
		    .devices = 2,
		    .bus_id = "0000:1b:00.0",
		    .busy = "this process already uses libcuda.so.1",
		    .beyond = "cuda:2: no such device: the driver reports 2"},
	.cases = cases,
	.case_count = sizeof(cases) / sizeof(cases[0]),
};

/* SPDX-License-Identifier: Apache-2.0 */
/* Every call of the driver that the backend makes fails in turn: tests/vendor/faults.h.
 */
#define _GNU_SOURCE
#include "tests/vendor/faults.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <hal/cuda.h>

#include "backends/cuda/cu_calls.h"
#include "host.h"

static const char *const call_names[] = {
#define NAME(name, params, args) #name,
	CU_CALLS(NAME) CU_VMM_CALLS(NAME) CU_SHARE_CALLS(NAME) CU_REGISTER_CALLS(NAME)
#undef NAME
};

static bool load(struct faults_world *w)
{
	static const char *const kernels[] = {"work:m8@4096", "iota:m4"};
	static const char *const absent[] = {"nobody:m"};
	static const char *const texts[] = {"CUDA_ERROR_INVALID_PTX", NULL};
	size_t size;
	void *image = make_cuda_image(absent, 1, 1, &size);

	if (!faults_refused(w, image, size, texts))
		return false;
	image = make_cuda_image(kernels, 2, 4, &size);
	/* So much shared memory has to be asked for. */
	((struct hal_cuda_kernel *)((struct hal_cuda_image *)image + 1))->shared_bytes =
		100000;
	return faults_load(w, image, size, &w->prog, &w->kernel);
}

static bool prepare(struct faults_fake *fake)
{
	return FAULTS_FIND(fake, stand_in());
}

static const struct faults_result results[] = {
	{CUR_LAUNCH_FAILED, EIO, "CUDA_ERROR_LAUNCH_FAILED (719)", FAULTS_LATER},
	{CUR_OUT_OF_MEMORY, ENOSPC, "CUDA_ERROR_OUT_OF_MEMORY (2)", FAULTS_AT_ONCE},
	{CUR_INVALID_HANDLE, EINVAL, "CUDA_ERROR_INVALID_HANDLE (400)", FAULTS_AT_ONCE},
	{CUR_NOT_PERMITTED, EPERM, "CUDA_ERROR_NOT_PERMITTED (800)", FAULTS_AT_ONCE},
	{CUR_NOT_SUPPORTED, ENOTSUP, "CUDA_ERROR_NOT_SUPPORTED (801)", FAULTS_AT_ONCE},
	{CUR_UNKNOWN, EIO, "CUDA_ERROR_UNKNOWN (999)", FAULTS_LATER},
};

static const char *const silent[] = {
	/* The next look tells the same. */
	"cuStreamQuery",
	/* Its command has ended: when is by the host's clock then. */
	"cuEventElapsedTime",
	/* Made again at once, or later. */
	"cuCtxPopCurrent_v2", "cuThreadExchangeStreamCaptureMode", "cuCtxSetCurrent",
	"cuMemRelease", NULL};

static const char *const retried[] = {"cuDevicePrimaryCtxRelease_v2",
				      "cuStreamDestroy_v2",
				      "cuEventDestroy_v2",
				      "cuMemFree_v2",
				      "cuMemFreeHost",
				      "cuModuleUnload",
				      "cuMemUnmap",
				      "cuMemAddressFree",
				      "cuCtxPushCurrent_v2",
				      NULL};

/* The descriptor may be anything. */
static const char *const strange[] = {"cuMemImportFromShareableHandle", NULL};

/* See test_loader.c. */
static const char *const once[] = {"cuInit", "cuDriverGetVersion", NULL};

/* When a copy's event fails; when a command takes long; those of offers: test_import.c.
 */
static const char *const elsewhere[] = {"cuStreamSynchronize", "cuMemGetAddressRange_v2",
					"cuStreamGetCtx",      "cuStreamGetFlags",
					"cuStreamIsCapturing", NULL};

static const struct hal_bk_config plain = {.clock = 1};
static const struct hal_bk_config pinned = {.clock = 1, .memory = 1, .inflight = 1};
static const struct hal_bk_config ranges = {.clock = 1, .memory = 2};
static const struct hal_bk_config bounds = {.clock = 1, .memory = 2, .bounds = 1};
static const struct hal_bk_config stops = {.clock = 1, .preempt = 1, .slice_us = 50};
static const struct faults_way ways[] = {
	{"plain", &plain, NULL},   {"pinned", &pinned, NULL}, {"ranges", &ranges, NULL},
	{"bounds", &bounds, NULL}, {"stops", &stops, NULL},
};

const struct faults_vendor faults_vendor = {
	.name = "cuda",
	.backend = hal_backend_cuda,
	.prepare = prepare,
	.devices = 2,
	.part = {.units = 1, .rows = 1, .cols = 1},
	.bytes = 64,
	.flags = HAL_BUFFER_MAPPABLE,
	.load = load,
	.work_ns = 20000000,
	.calls = call_names,
	.call_count = sizeof(call_names) / sizeof(call_names[0]),
	.results = results,
	.result_count = sizeof(results) / sizeof(results[0]),
	.silent = silent,
	.silent_in_close = retried,
	.once = once,
	.strange = strange,
	.elsewhere = elsewhere,
	.ways = ways,
	.way_count = sizeof(ways) / sizeof(ways[0]),
};

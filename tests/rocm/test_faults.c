/* SPDX-License-Identifier: Apache-2.0 */
/* Every call of HIP that the backend makes fails in turn: tests/vendor/faults.h. */
#define _GNU_SOURCE
#include "tests/vendor/faults.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "backends/rocm/hip_calls.h"
#include "host.h"

static const char *const call_names[HIP_ALL_CALL_COUNT] = {
#define NAME(name, params, args) #name,
	HIP_ALL_CALLS(NAME)
#undef NAME
};

/* A program of which HIP has no code is refused, and one is loaded. */
static bool load(struct faults_world *w)
{
	static const char *const kernels[] = {"work:m8", "iota:m4"};
	static const char *const absent[] = {"nobody:m"};
	static const char *const texts[] = {"hipErrorSharedObjectInitFailed", NULL};
	size_t size;
	void *image = make_rocm_image(absent, 1, 1, &size);

	if (!faults_refused(w, image, size, texts))
		return false;
	image = make_rocm_image(kernels, 2, 4, &size);
	return faults_load(w, image, size, &w->prog, &w->kernel);
}

static bool prepare(struct faults_fake *fake)
{
	return FAULTS_FIND(fake, stand_in());
}

static const struct faults_result results[] = {
	{HIPR_LaunchFailure, EIO, "hipErrorLaunchFailure (719)", FAULTS_LATER},
	{HIPR_OutOfMemory, ENOSPC, "hipErrorOutOfMemory (2)", FAULTS_AT_ONCE},
	{HIPR_InvalidHandle, EINVAL, "hipErrorInvalidHandle (400)", FAULTS_AT_ONCE},
	{HIPR_NotSupported, ENOTSUP, "hipErrorNotSupported (801)", FAULTS_AT_ONCE},
	{HIPR_Unknown, EIO, "hipErrorUnknown (999)", FAULTS_LATER},
};

static const char *const silent[] = {
	/* The next look tells the same. */
	"hipStreamQuery",
	/* Its command has ended: when is by the host's clock then. */
	"hipEventElapsedTime",
	/* Made again at once, where a caller gets its device back; a stream that was left
	 * is tried again later. */
	"hipSetDevice", "hipStreamDestroy", "hipThreadExchangeStreamCaptureMode",
	"hipMemRelease",
	/* Where kernels run is not known then. */
	"hiprtcCreateProgram", "hiprtcCompileProgram", "hiprtcGetCodeSize",
	"hiprtcGetCode", "hiprtcDestroyProgram",
	/* Streams have masks alone then. */
	"hipDeviceGetDevResource", NULL};

static const char *const retried[] = {
	"hipStreamDestroy", "hipEventDestroy", "hipFree",
	"hipHostFree",      "hipMemUnmap",     "hipMemAddressFree",
	"hipModuleUnload",  "hipGetDevice",    NULL};

/* Memory is not exported then. */
static const char *const tried[] = {"hipMemGetAllocationGranularity", "hipMemCreate",
				    "hipMemExportToShareableHandle", NULL};

/* The descriptor may be anything. */
static const char *const strange[] = {"hipMemImportFromShareableHandle", NULL};

/* See test_loader.c. */
static const char *const once[] = {"hipInit", NULL};

/* When a copy's event fails; those of offers: test_import.c, of contexts: test_green.c.
 */
static const char *const elsewhere[] = {"hipStreamSynchronize",
					"hipMemGetAddressRange",
					"hipStreamGetFlags",
					"hipStreamIsCapturing",
					"hipDevSmResourceSplitByCount",
					"hipDevResourceGenerateDesc",
					"hipGreenCtxCreate",
					"hipExecutionCtxDestroy",
					"hipExecutionCtxStreamCreate",
					NULL};

static const struct hal_bk_config plain = {.clock = 1};
static const struct hal_bk_config pinned = {.clock = 1, .memory = 1, .inflight = 1};
static const struct hal_bk_config engines = {.clock = 1, .partitions = 1};
static const struct faults_way ways[] = {
	{"plain", &plain, NULL},
	{"pinned", &pinned, NULL},
	{"engines", &engines, faults_move},
};

const struct faults_vendor faults_vendor = {
	.name = "rocm",
	.backend = hal_backend_rocm,
	.prepare = prepare,
	.devices = 4,
	.device = 1, /* not the one that this thread means */
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
	.silent_first = tried,
	.once = once,
	.strange = strange,
	.elsewhere = elsewhere,
	.ways = ways,
	.way_count = sizeof(ways) / sizeof(ways[0]),
};

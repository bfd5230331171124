/* SPDX-License-Identifier: Apache-2.0 */
/* Every call of HIP that the backend makes fails in turn: tests/gpu/faults.h. */
#define _GNU_SOURCE
#include "tests/gpu/faults.h"

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
	void *none = NULL, *image;
	size_t size;
	int err;

	image = make_rocm_image(absent, 1, 1, &size);
	err = w->b->cold.program_load(w->dev, image, size, &none);
	free(image);
	if (err != -EINVAL || !strstr(host_text, "hipErrorSharedObjectInitFailed"))
		return faults_step(w, err ? err : -EPROTO);
	image = make_rocm_image(kernels, 2, 4, &size);
	return gpu_faults_load(w, image, size);
}

static const struct faults_result results[] = {
	{HIPR_LaunchFailure, EIO, "hipErrorLaunchFailure (719)"},
	{HIPR_OutOfMemory, ENOSPC, "hipErrorOutOfMemory (2)"},
	{HIPR_InvalidHandle, EINVAL, "hipErrorInvalidHandle (400)"},
	{HIPR_NotSupported, ENOTSUP, "hipErrorNotSupported (801)"},
	{HIPR_Unknown, EIO, "hipErrorUnknown (999)"},
};

static const char *const silent[] = {
	/* The next look tells the same. */
	"hipStreamQuery",
	/* Its command has ended: when is by the host's clock then. */
	"hipEventElapsedTime",
	/* Made again at once, where a caller gets its device back; a stream that was left
	 * is tried again later. */
	"hipSetDevice", "hipStreamDestroy", "hipThreadExchangeStreamCaptureMode",
	/* Where kernels run is not known then. */
	"hiprtcCreateProgram", "hiprtcCompileProgram", "hiprtcGetCodeSize",
	"hiprtcGetCode", "hiprtcDestroyProgram", NULL};

static const char *const retried[] = {
	"hipStreamDestroy", "hipEventDestroy", "hipFree", "hipHostFree",
	"hipModuleUnload",  "hipGetDevice",    NULL};

/* See test_rocm.c. */
static const char *const once[] = {"hipInit", NULL};

/* When a copy's event fails; those of offers: test_import.c. */
static const char *const elsewhere[] = {"hipStreamSynchronize", "hipMemGetAddressRange",
					"hipStreamGetFlags", "hipStreamIsCapturing",
					NULL};

static const struct hal_bk_config ways[] = {
	{.clock = 1},
	{.clock = 1, .memory = 1, .inflight = 1},
	{.clock = 1, .partitions = 1},
};

const struct gpu_faults gpu_faults = {
	.name = "rocm",
	.backend = hal_backend_rocm,
	.devices = 4,
	.device = 1, /* not the one that this thread means */
	.calls = call_names,
	.call_count = HIP_ALL_CALL_COUNT,
	.results = results,
	.result_count = sizeof(results) / sizeof(results[0]),
	.load = load,
	.more = gpu_faults_move,
	.silent = silent,
	.retried = retried,
	.once = once,
	.elsewhere = elsewhere,
	.ways = ways,
	.way_count = sizeof(ways) / sizeof(ways[0]),
};

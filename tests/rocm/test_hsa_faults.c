/* SPDX-License-Identifier: Apache-2.0 */
/* Every call of HSA's runtime that the backend makes fails in turn, as test_faults.c has
 * it for those of HIP's; a partition moves while a command runs. */
#define _GNU_SOURCE
#include "tests/gpu/faults.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "backends/rocm/hsa_calls.h"
#include "host.h"

static const char *const call_names[] = {
#define NAME(name, params, args) #name,
	HSA_CALLS(NAME)
#undef NAME
};

static bool load(struct faults_world *w)
{
	static const char *const kernels[] = {"work:m8", "iota:m4"};
	size_t size;
	void *image = make_rocm_image(kernels, 2, 4, &size);

	return gpu_faults_load(w, image, size);
}

static const struct faults_result results[] = {
	{HSAR_FATAL, EIO, "HSA_STATUS_ERROR_FATAL (0x1026)"},
	{HSAR_OUT_OF_RESOURCES, ENOSPC, "HSA_STATUS_ERROR_OUT_OF_RESOURCES (0x1008)"},
	{HSAR_INVALID_ARGUMENT, EINVAL, "HSA_STATUS_ERROR_INVALID_ARGUMENT (0x1001)"},
	{HSAR_INVALID_ISA, ENOTSUP, "HSA_STATUS_ERROR_INVALID_ISA (0x100f)"},
};

/* Its command has ended: when is by the host's clock then. */
static const char *const silent[] = {"hsa_amd_profiling_get_dispatch_time", NULL};

static const char *const retried[] = {"hsa_queue_destroy", "hsa_signal_destroy",
				      "hsa_executable_destroy",
				      "hsa_code_object_reader_destroy", NULL};

static const char *const once[] = {"hsa_init", NULL};

/* What hangs, priorities: test_hsa.c. */
static const char *const elsewhere[] = {"hsa_queue_inactivate",
					"hsa_amd_queue_set_priority", NULL};

static const struct hal_bk_config ways[] = {
	{.clock = 1, .partitions = 1, .queues = 1},
};

const struct gpu_faults gpu_faults = {
	.name = "rocm_hsa",
	.backend = hal_backend_rocm,
	.devices = 4,
	.device = 1, /* not the one that this thread means */
	.calls = call_names,
	.call_count = sizeof(call_names) / sizeof(call_names[0]),
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

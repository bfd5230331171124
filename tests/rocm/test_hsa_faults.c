/* SPDX-License-Identifier: Apache-2.0 */
/* Every call of HSA's runtime that the backend makes fails in turn, as test_faults.c has
 * it for those of HIP's; a partition moves while a command runs. */
#define _GNU_SOURCE
#include "tests/vendor/faults.h"

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

	return faults_load(w, image, size, &w->prog, &w->kernel);
}

static bool prepare(struct faults_fake *fake)
{
	return FAULTS_FIND(fake, stand_in());
}

static const struct faults_result results[] = {
	{HSAR_FATAL, EIO, "HSA_STATUS_ERROR_FATAL (0x1026)", FAULTS_LATER},
	{HSAR_OUT_OF_RESOURCES, ENOSPC, "HSA_STATUS_ERROR_OUT_OF_RESOURCES (0x1008)",
	 FAULTS_AT_ONCE},
	{HSAR_INVALID_ARGUMENT, EINVAL, "HSA_STATUS_ERROR_INVALID_ARGUMENT (0x1001)",
	 FAULTS_AT_ONCE},
	{HSAR_INVALID_ISA, ENOTSUP, "HSA_STATUS_ERROR_INVALID_ISA (0x100f)",
	 FAULTS_AT_ONCE},
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

static const struct hal_bk_config engines = {.clock = 1, .partitions = 1, .queues = 1};
static const struct faults_way ways[] = {{"engines", &engines, faults_move}};

const struct faults_vendor faults_vendor = {
	.name = "rocm_hsa",
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
	.once = once,
	.elsewhere = elsewhere,
	.ways = ways,
	.way_count = sizeof(ways) / sizeof(ways[0]),
};

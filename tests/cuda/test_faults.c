/* SPDX-License-Identifier: Apache-2.0 */
/* Every call of the driver that the backend makes fails in turn; tests/fakes/faults.h. */
#define _GNU_SOURCE
#include "host.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <hal/cuda.h>

#include "backends/cuda/cu_calls.h"
#include "tests/fakes/faults.h"

static const struct hal_backend *b;

static const char *const call_names[CU_CALL_COUNT] = {
#define NAME(name, params, args) #name,
	CU_CALLS(NAME)
#undef NAME
};

static bool load(struct faults_world *w)
{
	static const char *const kernels[] = {"work:m8", "iota:m4"};
	static const char *const absent[] = {"nobody:m"};
	struct hal_bk_kernel_info info;
	void *image, *none = NULL;
	size_t size;
	bool ok;
	int err;

	image = make_cuda_image(absent, 1, 1, &size);
	err = b->cold.program_load(w->dev, image, size, &none);
	free(image);
	if (err != -EINVAL || !strstr(host_text, "CUDA_ERROR_INVALID_PTX"))
		return faults_step(w, err ? err : -EPROTO);
	image = make_cuda_image(kernels, 2, 4, &size);
	/* So much shared memory has to be asked for. */
	((struct hal_cuda_kernel *)((struct hal_cuda_image *)image + 1))->shared_bytes =
		100000;
	ok = faults_step(w, b->cold.program_load(w->dev, image, size, &w->prog)) &&
	     faults_step(w, b->cold.kernel_get(w->dev, w->prog, 0, &info, &w->kernel));
	free(image);
	return ok;
}

/* Everything the backend can do, once; the first thing that goes wrong ends it. */
static struct faults_outcome run(const struct hal_bk_config *cfg)
{
	const struct hal_bk_partition_desc part = {.units = 1, .rows = 1, .cols = 1};
	struct hal_device_info info[2];
	struct faults_world w = {.b = b};
	uint32_t i;
	bool ok;

	memset(info, 0, sizeof(info));
	for (i = 0; i < 2; i++)
		info[i].size = sizeof(info[i]);
	ok = faults_step(&w, b->cold.probe(cfg, info, 2));
	for (i = 0; ok && i < 2; i++)
		ok = faults_step(&w,
				 strncmp(info[i].name, "unusable", 8) == 0 ? -EIO : 0);
	ok = ok && faults_step(&w, b->cold.open(cfg, 0, &w.dev)) &&
	     faults_step(&w, b->cold.get_info(w.dev, info)) &&
	     faults_step(&w, b->cold.partition_create(w.dev, &part, &w.part)) &&
	     faults_step(&w, b->cold.mem_alloc(w.dev, w.part, 64, NULL, 0, &w.mem[0])) &&
	     faults_step(&w, b->cold.mem_alloc(w.dev, w.part, 64, NULL,
					       HAL_BUFFER_MAPPABLE, &w.mem[1])) &&
	     faults_step(&w, b->cold.mem_alloc(w.dev, w.part, 64, NULL, 0, &w.mem[2])) &&
	     faults_step(&w, b->cold.queue_create(w.dev, w.part, 0, &w.queue)) &&
	     load(&w) && faults_compute(&w, 20000000);
	(void)ok;
	faults_put_away(&w);
	return w.first;
}

/* ---- failures ---------------------------------------------------------------------- */

static const struct faults_result results[] = {
	{CUR_LAUNCH_FAILED, EIO, "CUDA_ERROR_LAUNCH_FAILED (719)"},
	{CUR_OUT_OF_MEMORY, ENOSPC, "CUDA_ERROR_OUT_OF_MEMORY (2)"},
	{CUR_INVALID_HANDLE, EINVAL, "CUDA_ERROR_INVALID_HANDLE (400)"},
	{CUR_NOT_PERMITTED, EPERM, "CUDA_ERROR_NOT_PERMITTED (800)"},
	{CUR_NOT_SUPPORTED, ENOTSUP, "CUDA_ERROR_NOT_SUPPORTED (801)"},
	{CUR_UNKNOWN, EIO, "CUDA_ERROR_UNKNOWN (999)"},
};

/* Calls that may fail unseen: what they are for is given up, or tried again. */
static bool silent(const char *call, bool last, bool at_close)
{
	static const char *const retried[] = {"cuDevicePrimaryCtxRelease_v2",
					      "cuStreamDestroy_v2",
					      "cuEventDestroy_v2",
					      "cuMemFree_v2",
					      "cuMemFreeHost",
					      "cuModuleUnload",
					      "cuCtxPushCurrent_v2"};
	static const char *const always[] = {
		/* The next look tells the same. */
		"cuStreamQuery",
		/* Its command has ended: when is by the host's clock then. */
		"cuEventElapsedTime",
		/* Made again at once. */
		"cuCtxPopCurrent_v2", "cuThreadExchangeStreamCaptureMode",
		"cuCtxSetCurrent"};
	size_t i;

	(void)last;
	for (i = 0; i < sizeof(always) / sizeof(always[0]); i++)
		if (strcmp(call, always[i]) == 0)
			return true;
	for (i = 0; at_close && i < sizeof(retried) / sizeof(retried[0]); i++)
		if (strcmp(call, retried[i]) == 0)
			return true;
	return false;
}

/* A loss is told by whatever call comes next. */
static bool told_later(const char *call, const struct faults_result *r, bool is_silent)
{
	(void)call;
	(void)is_silent;
	return r->err == EIO;
}

/* Once a process: see test_loader.c. */
static bool left_out(const char *call)
{
	return strcmp(call, "cuInit") == 0 || strcmp(call, "cuDriverGetVersion") == 0;
}

static struct faults all = {
	.names = call_names,
	.name_count = CU_CALL_COUNT,
	.results = results,
	.result_count = sizeof(results) / sizeof(results[0]),
	.most = UINT64_MAX,
	.run = run,
	.left_out = left_out,
	.silent = silent,
	.told_later = told_later,
};

static void device_memory(void **state)
{
	const struct hal_bk_config cfg = {.clock = 1};

	(void)state;
	faults_all(&all, &cfg);
}

static void host_memory(void **state)
{
	const struct hal_bk_config cfg = {.clock = 1, .memory = 1, .inflight = 1};

	(void)state;
	faults_all(&all, &cfg);
}

/* When a copy's event fails; when a command takes long; those of offers: test_import.c.
 */
static bool elsewhere(const char *call)
{
	return left_out(call) || strcmp(call, "cuStreamSynchronize") == 0 ||
	       strcmp(call, "cuMemGetAddressRange_v2") == 0 ||
	       strncmp(call, "cuStreamGet", 11) == 0 ||
	       strcmp(call, "cuStreamIsCapturing") == 0;
}

/* The calls of the runs above are all there are. */
static void every_call(void **state)
{
	const struct hal_bk_config cfg = {.clock = 1}, *const cfgs[] = {&cfg};

	(void)state;
	faults_cover(&all, cfgs, 1, elsewhere);
}

static int setup(void **state)
{
	const struct gpu_stand_in *s = stand_in();

	(void)state;
	b = hal_backend_cuda(&host);
	if (!b || !s)
		return -1;
	all.b = b;
	all.break_call = s->break_call;
	all.armed = s->armed;
	all.calls = s->calls;
	all.live = s->live;
	all.misuse = s->misuse;
	all.reset = s->reset;
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(device_memory),
		cmocka_unit_test(host_memory),
		cmocka_unit_test(every_call),
	};
	int rc = cmocka_run_group_tests(tests, setup, NULL);

	printf("figure cuda.faults.calls %u\n", faults_made);
	printf("figure cuda.faults.bad %u\n", faults_bad);
	return rc;
}

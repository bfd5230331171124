/* SPDX-License-Identifier: Apache-2.0 */
/* Every call of HIP that the backend makes fails in turn; tests/fakes/faults.h. */
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

#include "backends/rocm/hip_calls.h"
#include "tests/fakes/faults.h"

static const struct hal_backend *b;

static const char *const call_names[HIP_CALL_COUNT] = {
#define NAME(name, params, args) #name,
	HIP_CALLS(NAME)
#undef NAME
};

/* A program of which HIP has no code is refused, and one is loaded. */
static bool load(struct faults_world *w)
{
	static const char *const kernels[] = {"work:m8", "iota:m4"};
	static const char *const absent[] = {"nobody:m"};
	struct hal_bk_kernel_info info;
	void *none = NULL, *image;
	size_t size;
	int err;

	image = make_rocm_image(absent, 1, 1, &size);
	err = b->cold.program_load(w->dev, image, size, &none);
	free(image);
	if (err != -EINVAL || !strstr(host_text, "hipErrorSharedObjectInitFailed"))
		return faults_step(w, err ? err : -EPROTO);
	image = make_rocm_image(kernels, 2, 4, &size);
	err = b->cold.program_load(w->dev, image, size, &w->prog);
	free(image);
	return faults_step(w, err) &&
	       faults_step(w, b->cold.kernel_get(w->dev, w->prog, 0, &info, &w->kernel));
}

/* With a command in flight, and another behind it. */
static bool move(struct faults_world *w)
{
	const struct hal_bk_partition_desc to = {
		.col = 5, .units = 3, .rows = 1, .cols = 3};
	const struct hal_bk_arg args[2] = {{w->mem[0], 0, 64}, {NULL, 1000, 0}};
	struct hal_bk_cmd cmd = {.op = HAL_OP_LAUNCH, .cookie = 8};
	int i;

	cmd.launch.kernel = w->kernel;
	cmd.launch.args = args;
	cmd.launch.arg_count = 2;
	for (i = 0; i < 3; i++)
		cmd.launch.groups[i] = 1;
	if (!faults_submit(w, &cmd) ||
	    !faults_step(w, b->hot.resize(w->dev, w->part, &to, 9)))
		return false;
	w->inflight++; /* QUIET */
	if (!faults_submit(w, &cmd))
		return false;
	faults_run_dry(w);
	return !w->first.err;
}

/* Everything the backend can do, once; the first thing that goes wrong ends it. */
static struct faults_outcome run(const struct hal_bk_config *cfg)
{
	const struct hal_bk_partition_desc part = {.units = 1, .rows = 1, .cols = 1};
	struct hal_device_info info[4];
	struct faults_world w = {.b = b};
	uint32_t i;
	bool ok;

	memset(info, 0, sizeof(info));
	for (i = 0; i < 4; i++)
		info[i].size = sizeof(info[i]);
	ok = faults_step(&w, b->cold.probe(cfg, info, 4));
	for (i = 0; ok && i < 4; i++)
		ok = faults_step(&w,
				 strncmp(info[i].name, "unusable", 8) == 0 ? -EIO : 0);
	/* Not the device that this thread means. */
	ok = ok && faults_step(&w, b->cold.open(cfg, 1, &w.dev)) &&
	     faults_step(&w, b->cold.get_info(w.dev, info)) &&
	     faults_step(&w, b->cold.partition_create(w.dev, &part, &w.part)) &&
	     faults_step(&w, b->cold.mem_alloc(w.dev, w.part, 64, NULL, 0, &w.mem[0])) &&
	     faults_step(&w, b->cold.mem_alloc(w.dev, w.part, 64, NULL,
					       HAL_BUFFER_MAPPABLE, &w.mem[1])) &&
	     faults_step(&w, b->cold.mem_alloc(w.dev, w.part, 64, NULL, 0, &w.mem[2])) &&
	     faults_step(&w, b->cold.queue_create(w.dev, w.part, 0, &w.queue)) &&
	     load(&w) && faults_compute(&w, 20000000) && (!cfg->partitions || move(&w));
	(void)ok;
	faults_put_away(&w);
	return w.first;
}

/* ---- failures ---------------------------------------------------------------------- */

static const struct faults_result results[] = {
	{HIPR_LaunchFailure, EIO, "hipErrorLaunchFailure (719)"},
	{HIPR_OutOfMemory, ENOSPC, "hipErrorOutOfMemory (2)"},
	{HIPR_InvalidHandle, EINVAL, "hipErrorInvalidHandle (400)"},
	{HIPR_NotSupported, ENOTSUP, "hipErrorNotSupported (801)"},
	{HIPR_Unknown, EIO, "hipErrorUnknown (999)"},
};

static bool is_one_of(const char *call, const char *const *names, size_t count)
{
	size_t i;

	for (i = 0; i < count && strcmp(call, names[i]) != 0; i++)
		;
	return i < count;
}

/* Calls that may fail unseen: what they are for is given up, or tried again. */
static bool silent(const char *call, bool last, bool at_close)
{
	static const char *const retried[] = {"hipStreamDestroy", "hipEventDestroy",
					      "hipFree",          "hipHostFree",
					      "hipModuleUnload",  "hipGetDevice"};
	static const char *const always[] = {
		/* The next look tells the same. */
		"hipStreamQuery",
		/* Its command has ended: when is by the host's clock then. */
		"hipEventElapsedTime",
		/* Made again at once, where a caller gets its device back; a stream that
		 * was left is tried again later. */
		"hipSetDevice", "hipStreamDestroy"};

	(void)last;
	return is_one_of(call, always, sizeof(always) / sizeof(always[0])) ||
	       (at_close &&
		is_one_of(call, retried, sizeof(retried) / sizeof(retried[0])));
}

/* A loss is told by whatever call comes next. */
static bool told_later(const char *call, const struct faults_result *r, bool is_silent)
{
	(void)call;
	(void)is_silent;
	return r->err == EIO;
}

/* Once a process: see test_rocm.c. */
static bool left_out(const char *call)
{
	return strcmp(call, "hipInit") == 0;
}

static struct faults all = {
	.names = call_names,
	.name_count = HIP_CALL_COUNT,
	.results = results,
	.result_count = sizeof(results) / sizeof(results[0]),
	.most = UINT64_MAX,
	.run = run,
	.left_out = left_out,
	.silent = silent,
	.told_later = told_later,
};

static const struct hal_bk_config plain = {.clock = 1};
static const struct hal_bk_config pinned = {.clock = 1, .memory = 1, .inflight = 1};
static const struct hal_bk_config masked = {.clock = 1, .partitions = 1};

static void device_memory(void **state)
{
	(void)state;
	faults_all(&all, &plain);
}

static void host_memory(void **state)
{
	(void)state;
	faults_all(&all, &pinned);
}

static void masks(void **state)
{
	(void)state;
	faults_all(&all, &masked);
}

/* When a copy's event fails; those of offers: test_import.c. */
static bool elsewhere(const char *call)
{
	static const char *const names[] = {"hipStreamSynchronize",
					    "hipMemGetAddressRange", "hipStreamGetFlags",
					    "hipStreamIsCapturing"};

	return left_out(call) || is_one_of(call, names, sizeof(names) / sizeof(names[0]));
}

/* The calls of the runs above are all there are. */
static void every_call(void **state)
{
	const struct hal_bk_config *const cfgs[] = {&plain, &masked};

	(void)state;
	faults_cover(&all, cfgs, 2, elsewhere);
}

static int setup(void **state)
{
	const struct gpu_stand_in *s = stand_in();

	(void)state;
	b = hal_backend_rocm(&host);
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
		cmocka_unit_test(masks),
		cmocka_unit_test(every_call),
	};
	int rc = cmocka_run_group_tests(tests, setup, NULL);

	printf("figure rocm.faults.calls %u\n", faults_made);
	printf("figure rocm.faults.bad %u\n", faults_bad);
	return rc;
}

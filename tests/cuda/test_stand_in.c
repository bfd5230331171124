/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stand-in's own rules, each broken once: what is undefined with the driver, or what
 * the backend must never do, is noticed; what the driver refuses is refused.
 */
#define _GNU_SOURCE
#include "driver_kit.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static void (*advance)(uint64_t until_ns, uint64_t *now_ns, uint32_t *idle);

struct kit {
	void *stream, *event, *module, *function, *pinned;
	uint64_t mem;
};

static const char *const kernels[] = {"iota:m4", "work:m8", "wild:m", "never:m",
				      "last:m"};
enum { KERNELS = 5 };

static struct kit kit(uint32_t kernel)
{
	size_t size;
	char *image = make_cuda_image(kernels, KERNELS, 4, &size);
	const char *ptx = image + sizeof(struct hal_cuda_image) +
			  KERNELS * sizeof(struct hal_cuda_kernel);
	char name[8] = "";
	struct kit k;

	memcpy(name, kernels[kernel], strcspn(kernels[kernel], ":"));
	IS(0, cuModuleLoadDataEx, &k.module, ptx, 0, NULL, NULL);
	free(image);
	IS(0, cuModuleGetFunction, &k.function, k.module, name);
	IS(0, cuFuncLoad, k.function);
	IS(0, cuStreamCreateWithPriority, &k.stream, 1, 0);
	IS(0, cuEventCreate, &k.event, 0);
	IS(0, cuMemAlloc_v2, &k.mem, 4096);
	IS(0, cuMemHostAlloc, &k.pinned, 4096, 3);
	return k;
}

static uint32_t launch(struct kit *k, uint32_t grid, uint64_t second)
{
	void *params[2] = {&k->mem, &second};

	return cu.cuLaunchKernel(k->function, grid, 1, 1, 4, 1, 1, 0, k->stream, params,
				 NULL);
}

/* ---- contexts ---------------------------------------------------------------------- */

static void no_context(void **state)
{
	uint64_t p;
	void *popped;

	(void)state;
	IS(0, cuCtxPopCurrent_v2, &popped);
	IS(CUR_INVALID_CONTEXT, cuMemAlloc_v2, &p, 64);
	rules_misused("no context is current");
	IS(CUR_INVALID_CONTEXT, cuCtxPopCurrent_v2, &popped);
}

static void gone_context(void **state)
{
	uint64_t p;

	(void)state;
	IS(0, cuDevicePrimaryCtxRelease_v2, 0);
	IS(CUR_CONTEXT_IS_DESTROYED, cuMemAlloc_v2, &p, 64);
	IS(CUR_INVALID_CONTEXT, cuDevicePrimaryCtxRelease_v2, 0);
	IS(CUR_CONTEXT_IS_DESTROYED, cuCtxPushCurrent_v2, context);
}

static void other_context(void **state)
{
	struct kit k = kit(0);
	void *other;

	(void)state;
	IS(0, cuDevicePrimaryCtxRetain, &other, 1);
	IS(0, cuCtxPushCurrent_v2, other);
	IS(CUR_INVALID_HANDLE, cuStreamQuery, k.stream);
	IS(CUR_INVALID_HANDLE, cuEventRecord, k.event, k.stream);
	IS(0, cuDevicePrimaryCtxRelease_v2, 1);
}

static void after_fork(void **state)
{
	int status, count;
	pid_t child = fork();

	(void)state;
	if (child == 0)
		_exit(cu.cuDeviceGetCount(&count) == CUR_NOT_INITIALIZED ? 0 : 1);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

static void old_names(void **state)
{
	static const char *const all[] = {"cuDeviceTotalMem", "cuDevicePrimaryCtxRelease",
					  "cuCtxPushCurrent", "cuCtxPopCurrent",
					  "cuMemGetInfo",     "cuMemAlloc",
					  "cuMemFree",        "cuMemHostGetDevicePointer",
					  "cuStreamDestroy",  "cuStreamWriteValue32",
					  "cuEventDestroy"};
	uint32_t (*old)(void) = NULL;
	uint32_t i;

	(void)state;
	for (i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		*(void **)&old = dlsym(dlopen("libcuda.so.1", RTLD_NOW), all[i]);
		assert_non_null(old);
		assert_int_equal(old(), CUR_INVALID_CONTEXT);
		assert_int_equal(s->misuse(NULL), i + 1);
	}
	rules_misused("cuDeviceTotalMem is not what it was");
}

/* Its rules are not the stand-in's: whoever calls it finds nothing. */
static void not_there(void **state)
{
	static const char *const all[] = {"cuGetProcAddress",
					  "cuGetProcAddress_v2",
					  "cuCtxSynchronize",
					  "cuDevicePrimaryCtxReset_v2",
					  "cuMemcpy",
					  "cuMemcpyHtoD_v2",
					  "cuMemcpyDtoH_v2",
					  "cuMemsetD32_v2",
					  "cuMemAllocAsync",
					  "cuMemAllocManaged",
					  "cuIpcGetMemHandle",
					  "cuLaunchCooperativeKernel",
					  "cuStreamBeginCapture_v2",
					  "cuGraphExecUpdate_v2",
					  "cuGraphExecUpdate"};
	uint32_t i;

	(void)state;
	for (i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		assert_null(dlsym(dlopen("libcuda.so.1", RTLD_NOW), all[i]));
}

/* ---- memory ------------------------------------------------------------------------ */

static void dereference(void **state)
{
	(void)state;
	rules_dies_of(kit(0).mem);
}

static void free_in_flight(void **state)
{
	struct kit k = kit(1);

	(void)state;
	assert_int_equal(launch(&k, 1, 1000000), 0);
	IS(0, cuMemFree_v2, k.mem);
	rules_misused("is in use");
}

static void use_after_free(void **state)
{
	struct kit k = kit(1);
	uint64_t mem = k.mem;

	(void)state;
	IS(0, cuMemFree_v2, k.mem);
	k.mem = mem;
	assert_int_equal(launch(&k, 1, 1000), 0);
	rules_run_for(1000000000);
	rules_misused("used after it was freed");
	IS(CUR_ILLEGAL_ADDRESS, cuStreamQuery, k.stream);
}

static void inside_not_base(void **state)
{
	struct kit k = kit(0);

	(void)state;
	IS(CUR_INVALID_VALUE, cuMemFree_v2, k.mem + 64);
	rules_misused("is not allocated");
}

/* Pinned memory is read when the copy runs. */
static void copied_when_it_runs(void **state)
{
	struct kit k = kit(1);
	uint32_t *word = k.pinned;

	(void)state;
	assert_int_equal(launch(&k, 1, 1000000), 0);
	word[0] = 1;
	IS(0, cuMemcpyAsync, k.mem, (uintptr_t)&word[0], 4, k.stream);
	IS(0, cuMemcpyAsync, (uintptr_t)&word[1], k.mem, 4, k.stream);
	word[0] = 2;
	word[1] = 7;
	rules_run_for(900000);
	assert_int_equal(word[1], 7);
	IS(CUR_NOT_READY, cuStreamQuery, k.stream);
	rules_run_for(300000);
	assert_int_equal(word[1], 2);
	IS(0, cuStreamQuery, k.stream);
}

static void fresh_is_no_zero(void **state)
{
	struct kit k = kit(0);

	(void)state;
	assert_int_equal(*(uint8_t *)k.pinned, 0xa5);
	IS(0, cuMemcpyAsync, (uintptr_t)k.pinned + 64, k.mem, 64, k.stream);
	rules_run_for(1000000);
	assert_int_equal(((uint8_t *)k.pinned)[100], 0xa5);
}

static void frees_that_wait(void **state)
{
	struct kit k = kit(1);
	uint64_t other, before = s->now();

	(void)state;
	IS(0, cuMemAlloc_v2, &other, 64);
	assert_int_equal(launch(&k, 1, 1000000), 0);
	IS(0, cuMemFree_v2, other);
	assert_true(s->now() - before < 1000000);
	IS(0, cuMemAlloc_v2, &other, 64);
	s->frees_wait(1);
	IS(0, cuMemFree_v2, other);
	assert_true(s->now() - before >= 1000000);
}

/* ---- streams, events ----------------------------------------------------------------- */

static void stream_ends_early(void **state)
{
	struct kit k = kit(1);

	(void)state;
	assert_int_equal(launch(&k, 1, 1000000), 0);
	IS(0, cuStreamDestroy_v2, k.stream);
	rules_misused("a stream ends with 1 commands");
	IS(CUR_INVALID_HANDLE, cuStreamQuery, k.stream);
}

static void event_states(void **state)
{
	struct kit k = kit(1);
	void *other, *untimed;
	float ms;

	(void)state;
	IS(0, cuEventCreate, &other, 0);
	IS(0, cuEventCreate, &untimed, 3);
	IS(CUR_INVALID_HANDLE, cuEventElapsedTime, &ms, k.event, other);
	IS(0, cuEventSynchronize, k.event); /* never recorded */
	IS(0, cuEventRecord, k.event, k.stream);
	assert_int_equal(launch(&k, 1, 1234567), 0);
	IS(0, cuEventRecord, other, k.stream);
	IS(0, cuEventRecord, untimed, k.stream);
	IS(CUR_NOT_READY, cuEventElapsedTime, &ms, k.event, other);
	rules_run_for(2000000);
	IS(0, cuEventElapsedTime, &ms, k.event, other);
	/* 2,000 for the launch, 100 for the record, in steps of 500. */
	assert_true(ms == 1.2365f);
	IS(CUR_INVALID_HANDLE, cuEventElapsedTime, &ms, k.event, untimed);
}

/* Recorded again before it has been: the second one counts. */
static void event_again(void **state)
{
	struct kit k = kit(1);
	const uint64_t before = s->now();

	(void)state;
	IS(0, cuEventRecord, k.event, k.stream);
	assert_int_equal(launch(&k, 1, 1000000), 0);
	IS(0, cuEventRecord, k.event, k.stream);
	rules_run_for(1000);
	IS(0, cuEventSynchronize, k.event);
	assert_true(s->now() - before >= 1000000);
}

/* A priority beyond the range is the range's end, and no error; a copy knows none. */
static void priority_clamps(void **state)
{
	struct gpu_stand_in_job jobs[2];
	struct kit k = kit(1);

	(void)state;
	IS(0, cuStreamCreateWithPriority, &k.stream, 1, -100);
	assert_int_equal(launch(&k, 1, 1000), 0);
	IS(0, cuStreamCreateWithPriority, &k.stream, 1, 100);
	assert_int_equal(launch(&k, 1, 9000), 0);
	rules_run_for(1000000);
	assert_int_equal(s->jobs(jobs, 2), 2);
	assert_int_equal(jobs[0].priority, -5);
	assert_int_equal(jobs[1].priority, 0);
}

/* Each direction has an engine: of two copies to the device the second is behind the
 * first, whatever its priority, and one from it beside the first. */
static void copy_engines(void **state)
{
	struct gpu_stand_in_job jobs[3];
	struct kit k = kit(1);
	void *stream[3];
	int i;

	(void)state;
	for (i = 0; i < 3; i++)
		IS(0, cuStreamCreateWithPriority, &stream[i], 1, -i);
	for (i = 0; i < 2; i++)
		IS(0, cuMemcpyAsync, k.mem, (uintptr_t)k.pinned, 4096, stream[i]);
	IS(0, cuMemcpyAsync, (uintptr_t)k.pinned, k.mem, 4000, stream[2]);
	rules_run_for(1000000);
	assert_int_equal(s->jobs(jobs, 3), 3);
	assert_ptr_equal(jobs[0].stream, stream[2]);
	assert_int_equal(jobs[0].engine, 2);
	assert_int_equal(jobs[0].start_ns, jobs[1].start_ns);
	assert_int_equal(jobs[1].engine, 1);
	assert_int_equal(jobs[2].engine, 1);
	assert_true(jobs[2].start_ns >= jobs[1].end_ns);
}

static void gone_event(void **state)
{
	struct kit k = kit(0);

	(void)state;
	IS(0, cuEventDestroy_v2, k.event);
	IS(CUR_INVALID_HANDLE, cuEventRecord, k.event, k.stream);
	rules_misused("a event is used after its end");
}

/* Its channel has 1,021 entries; then a launch blocks. */
static void full_stream(void **state)
{
	struct kit k = kit(1);
	uint32_t i;

	(void)state;
	s->hot(1);
	for (i = 0; i < 1021; i++)
		assert_int_equal(launch(&k, 1, 1000), 0);
	assert_int_equal(s->blocked(), 0);
	assert_int_equal(s->misuse(NULL), 0);
	assert_int_equal(launch(&k, 1, 1000), 0);
	s->hot(0);
	assert_int_equal(s->blocked(), 1);
	rules_misused("a full channel can block");
}

static void wait_for_ever(void **state)
{
	struct kit k = kit(3);

	(void)state;
	assert_int_equal(launch(&k, 1, 0), 0);
	IS(CUR_UNKNOWN, cuStreamSynchronize, k.stream);
	rules_misused("a wait for what never ends");
}

static void hot_thread(void **state)
{
	struct kit k = kit(1);
	uint64_t p;

	(void)state;
	assert_int_equal(launch(&k, 1, 1000), 0);
	s->hot(1);
	(void)cu.cuMemAlloc_v2(&p, 64);
	s->hot(0);
	rules_misused("cuMemAlloc_v2 can block");
}

/* ---- kernels ----------------------------------------------------------------------- */

static void gone_module(void **state)
{
	struct kit k = kit(1);

	(void)state;
	assert_int_equal(launch(&k, 1, 1000), 0);
	IS(0, cuModuleUnload, k.module);
	rules_misused("while its kernel is launched");
	assert_int_equal(launch(&k, 1, 1000), CUR_INVALID_HANDLE);
}

static void loaded_by_launch(void **state)
{
	struct kit k = kit(1);

	(void)state;
	IS(0, cuModuleGetFunction, &k.function, k.module, "iota");
	assert_int_equal(launch(&k, 1, 0), 0);
	rules_misused("the code of iota is loaded by its launch");
}

static void launch_limits(void **state)
{
	struct kit k = kit(0);
	uint64_t one = 1;
	void *params[2] = {&k.mem, &one};
	uint32_t zero;

	(void)state;
#define LAUNCH(x, y, z, bx, by, bz, shared, extra)                                       \
	IS(CUR_INVALID_VALUE, cuLaunchKernel, k.function, x, y, z, bx, by, bz, shared,   \
	   k.stream, params, extra)
	for (zero = 0; zero < 6; zero++) {
		uint32_t n[6] = {1, 1, 1, 1, 1, 1};

		n[zero] = 0;
		LAUNCH(n[0], n[1], n[2], n[3], n[4], n[5], 0, NULL);
	}
	LAUNCH(1, 65536, 1, 1, 1, 1, 0, NULL);
	LAUNCH(1, 1, 1, 1025, 1, 1, 0, NULL);
	LAUNCH(1, 1, 1, 1, 1, 65, 0, NULL);
	LAUNCH(1, 1, 1, 64, 64, 1, 0, NULL);
	LAUNCH(1, 1, 1, 1, 1, 1, 48 * 1024 + 1, NULL);
	LAUNCH(1, 1, 1, 1, 1, 1, 0, params);
	IS(0, cuFuncSetAttribute, k.function, CUF_MAX_DYNAMIC_SHARED, 64 * 1024);
	IS(0, cuLaunchKernel, k.function, 1, 1, 1, 1, 1, 1, 64 * 1024, k.stream, params,
	   NULL);
	IS(CUR_INVALID_VALUE, cuFuncSetAttribute, k.function, CUF_MAX_DYNAMIC_SHARED,
	   228 * 1024);
}

/* As many bytes as the kernel has, when it is launched; one that is missing shows. */
static void exact_parameters(void **state)
{
	struct kit k = kit(0);
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *two = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint32_t *base = (uint32_t *)(two + page) - 1, *got = k.pinned;
	void *params[2] = {&k.mem, base};

	(void)state;
	assert_true(two != MAP_FAILED);
	assert_int_equal(mprotect(two + page, page, PROT_NONE), 0);
	*base = 5;
	IS(0, cuLaunchKernel, k.function, 1, 1, 1, 4, 1, 1, 0, k.stream, params, NULL);
	*base = 6;
	IS(0, cuMemcpyAsync, (uintptr_t)got, k.mem, 16, k.stream);
	rules_run_for(1000000);
	assert_int_equal(got[3], 5 + 3);
	assert_int_equal(s->misuse(NULL), 0);
	params[1] = NULL;
	IS(CUR_INVALID_VALUE, cuLaunchKernel, k.function, 1, 1, 1, 4, 1, 1, 0, k.stream,
	   params, NULL);
	rules_misused("parameter 1 of 2 of iota is not there");
	munmap(two, 2 * page);
}

/* What of a kernel is said in front of its body. */
static struct kit kit_of(const char *version, const char *parameters, const char *says)
{
	struct kit k = kit(0);
	char ptx[512];

	snprintf(ptx, sizeof(ptx),
		 ".version %s\n.target sm_90\n.address_size 64\n"
		 ".visible .entry iota(%s) %s\n{\n\tret;\n}\n",
		 version, parameters, says);
	IS(0, cuModuleLoadDataEx, &k.module, ptx, 0, NULL, NULL);
	IS(0, cuModuleGetFunction, &k.function, k.module, "iota");
	IS(0, cuFuncLoad, k.function);
	return k;
}

#define IOTA ".param .u64 a, .param .u32 b"

static void registers(void **state)
{
	struct kit k = kit_of("8.0", IOTA, ".maxnreg 128");
	uint64_t one = 1;
	void *params[2] = {&k.mem, &one};

	(void)state;
	IS(CUR_LAUNCH_OUT_OF_RESOURCES, cuLaunchKernel, k.function, 1, 1, 1, 513, 1, 1, 0,
	   k.stream, params, NULL);
	IS(0, cuLaunchKernel, k.function, 1, 1, 1, 512, 1, 1, 0, k.stream, params, NULL);
}

static void clusters(void **state)
{
	struct kit k = kit_of("8.0", IOTA, ".reqnctapercluster 4, 2, 2");

	(void)state;
	assert_int_equal(launch(&k, 16, 1), CUR_INVALID_CLUSTER_SIZE);
	k = kit_of("8.0", IOTA, ".reqnctapercluster 4, 2, 1");
	assert_int_equal(launch(&k, 16, 1), 0);
}

/* Launches take local memory for what is set; a launch that needs more waits for the
 * device until there is more. */
static void grown_by_launch(void **state)
{
	static const char *const large[] = {"iota:m4@2000"};
	struct kit k = kit(0), long_one = kit(1);
	size_t size, bytes = 0;
	char *image = make_cuda_image(large, 1, 4, &size);

	(void)state;
	IS(0, cuCtxGetLimit, &bytes, CU_STACK_BYTES);
	assert_int_equal(bytes, 1024);
	IS(CUR_UNSUPPORTED_LIMIT, cuCtxGetLimit, &bytes, 9);
	IS(CUR_UNSUPPORTED_LIMIT, cuCtxSetLimit, 9, 1024);
	IS(CUR_INVALID_VALUE, cuCtxSetLimit, CU_STACK_BYTES, 512 * 1024 + 1);
	IS(0, cuModuleLoadDataEx, &k.module,
	   image + sizeof(struct hal_cuda_image) + sizeof(struct hal_cuda_kernel), 0,
	   NULL, NULL);
	free(image);
	IS(0, cuModuleGetFunction, &k.function, k.module, "iota");
	IS(0, cuFuncLoad, k.function);
	assert_int_equal(launch(&long_one, 1, 1000000), 0);
	assert_int_equal(s->misuse(NULL), 0);
	assert_int_equal(launch(&k, 1, 1), 0);
	rules_misused("local memory of iota is grown by its launch");
	IS(0, cuStreamQuery, long_one.stream); /* it has been waited for */
	IS(0, cuCtxGetLimit, &bytes, CU_STACK_BYTES);
	assert_int_equal(bytes, 2000);
	assert_int_equal(launch(&k, 1, 1), 0);
	assert_int_equal(s->misuse(NULL), 1);
}

static void load_says(const char *version, uint32_t bytes, const char *want)
{
	uint32_t options[2] = {CU_JIT_ERROR_LOG, CU_JIT_ERROR_LOG_BYTES};
	char ptx[512], log[256];
	void *values[2] = {log, (void *)(uintptr_t)sizeof(log)}, *module;

	snprintf(ptx, sizeof(ptx),
		 ".version %s\n.target sm_90\n.address_size 64\n"
		 ".visible .entry iota(.param .align 4 .b8 a[%u])\n{\n\tret;\n}\n",
		 version, bytes);
	IS(CUR_INVALID_PTX, cuModuleLoadDataEx, &module, ptx, 2, options, values);
	if (!strstr(log, want))
		fail_msg("%s: not %s", log, want);
}

/* More of them from PTX 8.1 on.  What fits is refused for another reason here. */
static void parameter_bytes(void **state)
{
	(void)state;
	load_says("8.0", 4353, "(4353 bytes required, max 4352 bytes allowed)");
	load_says("8.0", 4352, "bad parameter");
	load_says("8.1", 4353, "bad parameter");
	load_says("8.1", 32765, "(32765 bytes required, max 32764 bytes allowed)");
}

/* Blocks of a launch go in another order each time. */
static void any_order(void **state)
{
	struct kit k = kit(4);
	uint32_t *got = k.pinned, i, others = 0;

	(void)state;
	for (i = 0; i < 16; i++) {
		assert_int_equal(launch(&k, 1000, 0), 0);
		IS(0, cuMemcpyAsync, (uintptr_t)&got[i], k.mem, 4, k.stream);
	}
	rules_run_for(100000000);
	for (i = 1; i < 16; i++) {
		assert_in_range(got[i], 1, 1000);
		others += got[i] != got[0];
	}
	assert_true(others > 8);
}

/* Blocks do their work bit by bit, side by side: a copy that does not wait sees half. */
static void in_steps(void **state)
{
	struct kit k = kit(0);
	uint32_t *got = k.pinned, i;
	void *beside;

	(void)state;
	IS(0, cuStreamCreateWithPriority, &beside, 1, 0);
	assert_int_equal(launch(&k, 2, 7), 0);
	rules_run_for(2100); /* they have begun, a while ago */
	IS(0, cuMemcpyAsync, (uintptr_t)got, k.mem, 32, beside);
	IS(0, cuStreamSynchronize, beside);
	for (i = 0; i < 8; i++)
		assert_int_equal(got[i], i % 2 ? 0xa5a5a5a5 : 7 + i);
	IS(0, cuStreamSynchronize, k.stream);
	IS(0, cuMemcpyAsync, (uintptr_t)got, k.mem, 32, beside);
	IS(0, cuStreamSynchronize, beside);
	for (i = 0; i < 8; i++)
		assert_int_equal(got[i], 7 + i);
}

/* The log is cut at its size, and the size is what is in it. */
static void build_log(void **state)
{
	char log[16];
	uint32_t options[2] = {CU_JIT_ERROR_LOG, CU_JIT_ERROR_LOG_BYTES};
	void *values[2] = {log, (void *)(uintptr_t)sizeof(log)}, *module;

	(void)state;
	IS(CUR_INVALID_PTX, cuModuleLoadDataEx, &module, ".target x", 2, options, values);
	assert_string_equal(log, "ptxas fatal: Mi");
	IS(CUR_INVALID_IMAGE, cuModuleLoadDataEx, &module, "x", 2, options, values);
}

/* ---- the program's functions ------------------------------------------------------- */

static uint32_t (*launch_host)(void *stream, void (*fn)(void *user), void *user);
static uint32_t (*add_callback)(void *stream,
				void (*fn)(void *stream, uint32_t result, void *user),
				void *user, uint32_t flags);

static void count(void *user)
{
	++*(uint32_t *)user;
}

/* Of cuLaunchHostFunc, which is not told of a fault: it is not called after one. */
static void no_host_function(void **state)
{
	struct kit k = kit(1);
	uint32_t first = 0, second = 0;

	(void)state;
	rules_expect(launch_host(k.stream, count, &first), 0, "cuLaunchHostFunc");
	rules_expect(launch_host(k.stream, NULL, NULL), CUR_INVALID_VALUE,
		     "cuLaunchHostFunc");
	rules_run_for(200000);
	assert_int_equal(first, 1);
	rules_expect(launch_host(k.stream, count, &second), 0, "cuLaunchHostFunc");
	s->lose(0, CUR_UNKNOWN);
	assert_int_equal(second, 0);
}

/* ---- what HIP has, too: tests/gpu/rules.h ------------------------------------------- */

static uint32_t
callback(void *stream, void (*fn)(void *stream, uint32_t result, void *user), void *user)
{
	return add_callback(stream, fn, user, 0);
}

static uint32_t enroll(void *p, uint64_t bytes)
{
	return cu.cuMemHostRegister_v2(p, bytes, CU_HOST_PORTABLE | CU_HOST_DEVICEMAP);
}

static uint32_t dismiss(void *p)
{
	return cu.cuMemHostUnregister(p);
}

static uint32_t pin(void **p, uint64_t bytes)
{
	return cu.cuMemHostAlloc(p, bytes, CU_HOST_PORTABLE | CU_HOST_DEVICEMAP);
}

static uint32_t new_stream(void **stream)
{
	return cu.cuStreamCreateWithPriority(stream, CU_STREAM_NON_BLOCKING, 0);
}

static uint32_t new_event(void **event)
{
	return cu.cuEventCreate(event, 0);
}

#define PASS(name, call, params, args)                                                   \
	static uint32_t name params                                                      \
	{                                                                                \
		return cu.call args;                                                     \
	}
PASS(allocate, cuMemAlloc_v2, (uint64_t * at, uint64_t bytes), (at, bytes))
PASS(release, cuMemFree_v2, (uint64_t at), (at))
PASS(unpin, cuMemFreeHost, (void *p), (p))
PASS(pinned_at, cuMemHostGetDevicePointer_v2, (uint64_t * at, void *p), (at, p, 0))
PASS(query, cuStreamQuery, (void *stream), (stream))
PASS(synchronize, cuStreamSynchronize, (void *stream), (stream))
PASS(capturing, cuStreamIsCapturing, (void *stream, uint32_t *status), (stream, status))
PASS(exchange, cuThreadExchangeStreamCaptureMode, (uint32_t * mode), (mode))
PASS(record, cuEventRecord, (void *event, void *stream), (event, stream))
PASS(event_wait, cuEventSynchronize, (void *event), (event))
PASS(elapsed, cuEventElapsedTime, (float *ms, void *begin, void *end), (ms, begin, end))
PASS(copy, cuMemcpyAsync, (uint64_t to, uint64_t from, uint64_t bytes, void *stream),
     (to, from, bytes, stream))
PASS(fill, cuMemsetD32Async, (uint64_t at, uint32_t value, uint64_t words, void *stream),
     (at, value, words, stream))
PASS(write_word, cuStreamWriteValue32_v2, (void *stream, uint64_t at, uint32_t value),
     (stream, at, value, 0))

static uint32_t launch_work(void *stream, uint32_t blocks, uint64_t ns)
{
	struct kit k = kit(1);

	k.stream = stream;
	return launch(&k, blocks, ns);
}

struct rules_face rules_face = {
	.allocate = allocate,
	.release = release,
	.pin = pin,
	.unpin = unpin,
	.pinned_at = pinned_at,
	.enroll = enroll,
	.dismiss = dismiss,
	.stream = new_stream,
	.query = query,
	.synchronize = synchronize,
	.capturing = capturing,
	.exchange = exchange,
	.callback = callback,
	.event = new_event,
	.record = record,
	.event_wait = event_wait,
	.elapsed = elapsed,
	.copy = copy,
	.fill = fill,
	.write = write_word,
	.fill_call = "cuMemsetD32Async",
	.apart = "HAL_STAND_IN_CUDA_HOST",
	.launch = launch_work,
	.units = 132,
	.entries = 1021,
};

/* ---- faults ------------------------------------------------------------------------ */

static void *in_thread(void *result)
{
	*(uint32_t *)result = cu.cuCtxPushCurrent_v2(context);
	return NULL;
}

/* Asynchronous, and for good: every call, every stream, every thread; the other device
 * goes on. */
static void sticky(void **state)
{
	struct kit k = kit(2), later;
	uint32_t *word = k.pinned, other_thread = 0;
	float ms;
	void *stream, *context1;
	pthread_t thread;

	(void)state;
	later = k;
	IS(0, cuModuleGetFunction, &later.function, k.module, "work");
	IS(0, cuFuncLoad, later.function);
	IS(0, cuStreamCreateWithPriority, &stream, 1, 0);
	*word = 0;
	IS(0, cuEventRecord, k.event, k.stream);
	IS(0, cuStreamWriteValue32_v2, k.stream, (uintptr_t)word, 1, 0);
	assert_int_equal(launch(&k, 1, 0), 0);
	IS(0, cuStreamWriteValue32_v2, k.stream, (uintptr_t)word, 2, 0);
	assert_int_equal(launch(&later, 1, 1000), 0);
	IS(CUR_NOT_READY, cuStreamQuery, k.stream);
	rules_run_for(1000000);
	assert_int_equal(*word,
			 1); /* what came before is seen, what came after never ran */
	IS(CUR_ILLEGAL_ADDRESS, cuStreamQuery, k.stream);
	IS(CUR_ILLEGAL_ADDRESS, cuStreamQuery, stream);
	IS(CUR_ILLEGAL_ADDRESS, cuEventElapsedTime, &ms, k.event, k.event);
	IS(CUR_ILLEGAL_ADDRESS, cuMemFree_v2, k.mem);
	IS(CUR_ILLEGAL_ADDRESS, cuModuleUnload, k.module);
	assert_int_equal(launch(&k, 1, 0), CUR_ILLEGAL_ADDRESS);
	pthread_create(&thread, NULL, in_thread, &other_thread);
	pthread_join(thread, NULL);
	assert_int_equal(other_thread, CUR_ILLEGAL_ADDRESS);
	IS(0, cuDevicePrimaryCtxRetain, &context1, 1);
	IS(0, cuDevicePrimaryCtxRelease_v2, 1);
}

/* The nth call of a name fails and does nothing; what a call that fails should have
 * answered is junk. */
static void nth_call(void **state)
{
	uint64_t one, two = 0;

	(void)state;
	assert_int_equal(s->break_call("cuMemAlloc_v2", 2, CUR_OUT_OF_MEMORY), 0);
	assert_int_equal(s->break_call("cuNothing", 1, 1), -1);
	assert_int_equal(s->break_call("cuMemAlloc_v2", 2, CUR_OUT_OF_MEMORY), 0);
	IS(0, cuMemAlloc_v2, &one, 64);
	assert_int_equal(s->live(), 2);
	IS(CUR_OUT_OF_MEMORY, cuMemAlloc_v2, &two, 64);
	assert_int_equal(s->live(), 2);
	s->memory_left(63);
	IS(CUR_OUT_OF_MEMORY, cuMemAlloc_v2, &two, 64);
	assert_int_equal(two, 0x6a756e6b);
	IS(0, cuMemFree_v2, one);
}

/* A process that misused it, or left something there, ends with 70. */
static void strict_process(const char *what)
{
	char exe[PATH_MAX];
	int status;
	pid_t child;

	assert_non_null(realpath("/proc/self/exe", exe));
	fflush(NULL);
	child = fork();
	if (child == 0) {
		setenv("HAL_STAND_IN_CUDA_STRICT", "1", 1);
		/* Where programs run in an emulator, this one does, too. */
		execl("/bin/sh", "sh", "-c", "exec " RUN_LINE "\"$0\" \"$1\"", exe, what,
		      NULL);
		_exit(1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), strcmp(what, "--clean") ? 70 : 0);
}

static int strict_child(const char *what)
{
	void *popped;
	uint64_t p;

	cu.cuInit(0);
	cu.cuDevicePrimaryCtxRetain(&context, 0);
	cu.cuCtxPushCurrent_v2(context);
	if (strcmp(what, "--leave") == 0)
		cu.cuMemAlloc_v2(&p, 64);
	if (strcmp(what, "--misuse") == 0)
		cu.cuMemFree_v2(64);
	cu.cuCtxPopCurrent_v2(&popped);
	cu.cuDevicePrimaryCtxRelease_v2(0);
	return 0;
}

static void strict(void **state)
{
	(void)state;
	strict_process("--clean");
	strict_process("--leave");
	strict_process("--misuse");
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		RULE(no_context),
		RULE(gone_context),
		RULE(other_context),
		RULE(after_fork),
		RULE(old_names),
		RULE(not_there),
		RULE(dereference),
		RULE(free_in_flight),
		RULE(use_after_free),
		RULE(inside_not_base),
		RULE(copied_when_it_runs),
		RULE(fresh_is_no_zero),
		RULE(frees_that_wait),
		RULE(stream_ends_early),
		RULE(event_states),
		RULE(gone_event),
		RULE(event_again),
		RULE(priority_clamps),
		RULE(copy_engines),
		RULE(exact_parameters),
		RULE(registers),
		RULE(clusters),
		RULE(parameter_bytes),
		RULE(any_order),
		RULE(in_steps),
		RULE(nth_call),
		RULE(full_stream),
		RULE(wait_for_ever),
		RULE(hot_thread),
		RULE(gone_module),
		RULE(loaded_by_launch),
		RULE(grown_by_launch),
		RULE(launch_limits),
		RULE(build_log),
		RULE(sticky),
		RULE(no_host_function),
		RULE_CASES(begin, end),
		cmocka_unit_test(strict),
	};
	void *handle = load_driver();

	if (!handle)
		return 1;
	advance = rules_face.advance;
	*(void **)&launch_host = dlsym(handle, "cuLaunchHostFunc");
	*(void **)&add_callback = dlsym(handle, "cuStreamAddCallback");
	if (argc > 1)
		return strict_child(argv[1]);
	cu.cuInit(0);
	return cmocka_run_group_tests(tests, NULL, NULL);
}

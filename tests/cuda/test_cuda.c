/* SPDX-License-Identifier: Apache-2.0 */
/* The CUDA backend's own: what a fault takes along, what is given back when, limits,
 * programs, priorities, times, contexts. */
#define _GNU_SOURCE
#include "host.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <hal/cuda.h>
#include <hal/gpu.h>

#include "backends/cuda/internal.h"

enum { KERNELS = 5, WORK = 0, IOTA, WILD, NEVER, SPIN };
static const char *const names[KERNELS] = {"work:m8", "iota:m4", "wild:m", "never:m",
					   "spin:m"};
static const struct hal_backend *b;

#define TOO_LARGE                                                                        \
	{                                                                                \
		1, 65536,                                                                \
			"1 x 65536 x 1 groups; the device allows at most 2147483647 x "  \
			"65535 x 65535"                                                  \
	}
#define MAKE_IMAGE make_cuda_image
#define UNITS      132
#define PRIORITIES                                                                       \
	{                                                                                \
		-5, -2, 0                                                                \
	}
#define CALLS_LATE                                                                       \
	{                                                                                \
		"cuLaunchKernel", "cuMemsetD32Async", "cuMemcpyAsync",                   \
			"cuStreamWriteValue32_v2", "cuEventRecord"                       \
	}
#define CALL_FREE      "cuMemFree_v2"
#define CALL_UNLOAD    "cuModuleUnload"
#define CALL_DESTROY   "cuStreamDestroy_v2"
#define CALL_RELEASE   "cuDevicePrimaryCtxRelease_v2"
#define SAYS_UNKNOWN   "CUDA_ERROR_UNKNOWN (999)"
#define SAYS_NO_MEMORY "cuMemAlloc_v2: CUDA_ERROR_OUT_OF_MEMORY (2)"
#include "tests/gpu/queue_cases.h"

/* ---- faults ------------------------------------------------------------------------ */

/* What had ended before the fault ended well, though nobody had looked; the heads of the
 * streams failed, what was behind them never ran, and the device is lost for good. */
static void fault(void **state)
{
	const struct hal_bk_config cfg = {.clock = 1, .inflight = 4};
	struct hal_device_info info = {.size = sizeof(info)};
	struct hal_bk_arg mem;
	struct hal_bk_event ev[8];
	struct hal_bk_cmd cmd, nop = {.op = HAL_OP_NOP, .cookie = 9};
	void *again = NULL;
	struct rig r;
	int n, i, seen = 0;

	(void)state;
	open_rig(&r, &cfg);
	mem = (struct hal_bk_arg){r.mem, 0, 64};
	submit_work(&r, 0, 1, 1000);
	cmd = launch(&r, WILD, 2, &mem, 1);
	assert_int_equal(b->hot.submit(r.dev, r.queue[0], &cmd), 0);
	submit_work(&r, 0, 3, 1000);
	submit_work(&r, 1, 4, 100000000);
	while ((n = b->hot.poll(r.dev, UINT64_MAX, ev, 8)) > 0)
		for (i = 0; i < n; i++, seen++) {
			static const int want[] = {1, 0, -EIO, -ECANCELED, -EIO};

			assert_in_range(ev[i].cookie, 1, 4);
			assert_int_equal(ev[i].status, want[ev[i].cookie]);
			if (ev[i].cookie == 2)
				assert_string_equal(ev[i].fault,
						    "CUDA_ERROR_ILLEGAL_ADDRESS (700), "
						    "device lost, kernel wild");
		}
	assert_int_equal(n, -EIO);
	assert_int_equal(seen, 4);
	assert_non_null(
		strstr(host_text,
		       "cuda:0: the device is lost: CUDA_ERROR_ILLEGAL_ADDRESS (700)"));
	assert_int_equal(b->hot.submit(r.dev, r.queue[2], &nop), -EIO);
	assert_int_equal(b->cold.get_info(r.dev, &info), 0);
	assert_int_equal(b->cold.open(&cfg, 0, &again), -EIO);
	assert_non_null(strstr(host_text, "cuDevicePrimaryCtxRetain: "
					  "CUDA_ERROR_ILLEGAL_ADDRESS (700)"));
	close_rig(&r);
}

/* It cannot be ended: nothing waits for it but the DRAIN that asks for its end. */
static void endless(void **state)
{
	const struct hal_bk_config cfg = {.clock = 1};
	struct hal_bk_event ev[4];
	struct rig r;

	(void)state;
	open_rig(&r, &cfg);
	submit_on_mem(&r, 0, NEVER, 1);
	assert_int_equal(b->hot.suspend(r.dev, r.queue[0], HAL_SUSPEND_DRAIN, 7), 0);
	submit_work(&r, 1, 2, 1000);
	poll_one(&r, ev);
	assert_int_equal(ev[0].cookie, 2);
	assert_int_equal(b->hot.poll(r.dev, UINT64_MAX, ev, 4), 0);
	assert_int_equal(b->hot.poll(r.dev, 5000000000, ev, 4), 0);
	assert_int_equal(b->cold.queue_destroy(r.dev, r.queue[0]), -EBUSY);
	stand_in()->lose(0, CUR_LAUNCH_TIMEOUT);
	assert_int_equal(b->hot.poll(r.dev, 6000000000, ev, 4), 2);
	assert_int_equal(ev[0].status, -EIO);
	assert_non_null(strstr(ev[0].fault, "kernel never"));
	assert_int_equal(ev[1].kind, HAL_BK_QUIET);
	close_rig(&r);
}

/* The longer something has taken, the longer it is slept over; not by who waits for a
 * stop. */
static void told_soon(void **state)
{
	const struct hal_bk_config cfg = {.clock = 1};
	struct hal_bk_event ev[4];
	struct rig r;

	(void)state;
	open_rig(&r, &cfg);
	submit_work(&r, 0, 1, 100000000);
	assert_int_equal(b->hot.poll(r.dev, 4000000, ev, 4), 0);
	assert_int_equal(b->hot.next(r.dev), 4500000);
	assert_int_equal(b->hot.suspend(r.dev, r.queue[0], HAL_SUSPEND_DRAIN, 7), 0);
	assert_int_equal(b->hot.next(r.dev), 0);
	assert_int_equal(b->hot.poll(r.dev, UINT64_MAX, ev, 4), 2);
	close_rig(&r);
}

/* ---- what the engine must not wait for ------------------------------------------------ */

/* No call that can block, in a run of all kinds of commands. */
static void hot_calls(void **state)
{
	const struct hal_bk_config cfg = {.clock = 1, .inflight = 2};
	struct hal_bk_cmd cmd = {.op = HAL_OP_FILL};
	struct hal_bk_event ev[8];
	struct rig r;
	uint32_t i, done = 0, given = 0;

	(void)state;
	open_rig(&r, &cfg);
	cmd.fill.dst = r.mem;
	cmd.fill.bytes = 64;
	stand_in()->hot(1);
	for (i = 0; i < 300; i++) {
		int n;

		cmd.op = i % 3 ? HAL_OP_FILL : HAL_OP_TIMESTAMP;
		if (i % 3 == 0) {
			cmd.timestamp.dst = r.mem;
			cmd.timestamp.offset = 128;
		} else {
			cmd.fill.dst = r.mem;
			cmd.fill.offset = 0;
			cmd.fill.bytes = 64;
		}
		while (b->hot.submit(r.dev, r.queue[i % 2], &cmd) == -EAGAIN) {
			n = b->hot.poll(r.dev, UINT64_MAX, ev, 8);
			assert_true(n > 0);
			done += (uint32_t)n;
		}
		given++;
	}
	while (done < given)
		done += (uint32_t)b->hot.poll(r.dev, UINT64_MAX, ev, 8);
	stand_in()->hot(0);
	close_rig(&r);
}

/* ---- times ------------------------------------------------------------------------- */

/* ---- programs ---------------------------------------------------------------------- */

static void load_says(struct rig *r, void *image, size_t size, int err, const char *text)
{
	void *prog = NULL;

	assert_int_equal(b->cold.program_load(r->dev, image, size, &prog), err);
	if (!strstr(host_text, text))
		fail_msg("%s: not %s", host_text, text);
	free(image);
}

static void bad_programs(void **state)
{
	static const char *const iota[] = {"iota:m4"}, *const nobody[] = {"nobody:m"};
	const struct hal_bk_config cfg = {.clock = 1};
	struct hal_cuda_image *image;
	struct hal_cuda_kernel *k;
	struct rig r;
	size_t size;

	(void)state;
	open_rig(&r, &cfg);
	image = make_cuda_image(nobody, 1, 1, &size);
	load_says(&r, image, size, -EINVAL,
		  "CUDA_ERROR_INVALID_PTX (218): the stand-in has no kernel nobody");
	image = make_cuda_image(iota, 1, 1, &size);
	memcpy(strstr((char *)(image + 1) + sizeof(*k), "7.0"), "9.9", 3);
	load_says(&r, image, size, -ENOTSUP, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION (222)");
	image = make_cuda_image(iota, 1, 1, &size);
	memcpy(strstr((char *)(image + 1) + sizeof(*k), "sm_52"), "sm_99", 5);
	load_says(&r, image, size, -ENOTSUP, "CUDA_ERROR_NO_BINARY_FOR_GPU (209)");
	image = make_cuda_image(iota, 1, 1, &size);
	memcpy((char *)(image + 1) + sizeof(*k), "!", 1);
	load_says(&r, image, size, -EINVAL, "CUDA_ERROR_INVALID_IMAGE (200)");

	image = make_cuda_image(iota, 1, 1, &size);
	k = (void *)(image + 1);
	memcpy(k->name, "atoi", 4);
	load_says(&r, image, size, -EINVAL, "CUDA_ERROR_NOT_FOUND (500): kernel atoi");
	image = make_cuda_image(iota, 1, 1, &size);
	k = (void *)(image + 1);
	k->scalar_bytes[1] = 8;
	load_says(&r, image, size, -EINVAL,
		  "parameter 1 has 4 bytes, but the image declares 8");
	image = make_cuda_image(iota, 1, 1, &size);
	k = (void *)(image + 1);
	k->arg_count = 1;
	load_says(&r, image, size, -EINVAL, "has more parameters than the 1");
	image = make_cuda_image(iota, 1, 1, &size);
	k = (void *)(image + 1);
	k->arg_count = 3;
	load_says(&r, image, size, -EINVAL, "has 2 parameters, but the image declares 3");
	image = make_cuda_image(iota, 1, 1025, &size);
	load_says(&r, image, size, -EINVAL, "a block of 1025 x 1 x 1 threads");
	image = make_cuda_image(iota, 1, 1, &size);
	k = (void *)(image + 1);
	k->block[2] = 65;
	load_says(&r, image, size, -EINVAL, "a block of 1 x 1 x 65 threads");
	image = make_cuda_image(iota, 1, 1, &size);
	k = (void *)(image + 1);
	k->shared_bytes = 1 << 20;
	load_says(&r, image, size, -EINVAL, "1048576 of dynamic shared memory");
	close_rig(&r);
}

/* A kernel with a larger stack than the context has room for: the room is made when it is
 * loaded, on the caller's thread, and never by its launch (the fake driver counts that as
 * misuse). */
static void local_memory(void **state)
{
	static const char *const large[] = {"work:m8@4096"}, *const less[] = {
								     "iota:m4@2000"};
	const struct hal_bk_config cfg = {.clock = 1};
	void *prog[2], *image[2], *none;
	struct hal_bk_kernel_info info;
	struct hal_bk_event ev[4];
	struct hal_bk_arg args[2];
	struct hal_bk_cmd cmd;
	struct rig r;
	size_t size[2];

	(void)state;
	image[0] = make_cuda_image(large, 1, 1, &size[0]);
	image[1] = make_cuda_image(less, 1, 1, &size[1]);
	open_rig(&r, &cfg);
	assert_int_equal(stand_in()->calls("cuCtxSetLimit"), 0);
	stand_in()->break_call("cuCtxSetLimit", 1, CUR_OUT_OF_MEMORY);
	assert_int_equal(b->cold.program_load(r.dev, image[0], size[0], &none), -ENOSPC);
	assert_non_null(strstr(host_text, "cuCtxSetLimit: CUDA_ERROR_OUT_OF_MEMORY (2): "
					  "kernel work has 4096 bytes of local memory"));
	assert_int_equal(b->cold.program_load(r.dev, image[0], size[0], &prog[0]), 0);
	assert_int_equal(b->cold.program_load(r.dev, image[1], size[1], &prog[1]), 0);
	assert_int_equal(stand_in()->calls("cuCtxSetLimit"), 2); /* never to less */
	submit_work(&r, 1, 1, 1000000);
	args[0] = (struct hal_bk_arg){r.mem, 0, 64};
	args[1] = (struct hal_bk_arg){NULL, 1000, 0};
	cmd = launch(&r, WORK, 2, args, 2);
	assert_int_equal(b->cold.kernel_get(r.dev, prog[0], 0, &info, &cmd.launch.kernel),
			 0);
	stand_in()->hot(1);
	assert_int_equal(b->hot.submit(r.dev, r.queue[0], &cmd), 0);
	stand_in()->hot(0);
	poll_one(&r, ev);
	assert_int_equal(ev[0].cookie, 2);
	poll_one(&r, ev);
	assert_int_equal(b->cold.program_unload(r.dev, prog[0]), 0);
	assert_int_equal(b->cold.program_unload(r.dev, prog[1]), 0);
	free(image[0]);
	free(image[1]);
	close_rig(&r);
}

/* ---- contexts ---------------------------------------------------------------------- */

static void *copy_elsewhere(void *user)
{
	struct rig *r = user;
	uint32_t (*pop)(void **context) = NULL;
	void *handle = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD), *context = NULL;
	uint32_t word = 42, got = 0;
	bool ok;

	*(void **)&pop = dlsym(handle, "cuCtxPopCurrent_v2");
	ok = !b->cold.mem_write(r->dev, r->mem, 0, &word, 4) &&
	     !b->cold.mem_read(r->dev, r->mem, 0, &got, 4) && got == 42;
	/* Nothing is current here, as before. */
	ok = ok && pop(&context) == CUR_INVALID_CONTEXT;
	return ok ? r : NULL;
}

static void foreign_thread(void **state)
{
	const struct hal_bk_config cfg = {.clock = 1};
	pthread_t thread;
	void *ok = NULL;
	struct rig r;

	(void)state;
	open_rig(&r, &cfg);
	assert_int_equal(pthread_create(&thread, NULL, copy_elsewhere, &r), 0);
	pthread_join(thread, &ok);
	assert_non_null(ok);
	close_rig(&r);
}

static void *poll_elsewhere(void *user)
{
	struct rig *r = user;
	struct hal_bk_event ev;

	return b->hot.poll(r->dev, UINT64_MAX, &ev, 1) == 1 &&
			       ev.end_ns - ev.start_ns >= 1000000
		       ? r
		       : NULL;
}

/* Under the virtual clock any thread that waits may be the engine's: one that has done
 * nothing else before is told how long a command ran. */
static void waits_alone(void **state)
{
	const struct hal_bk_config cfg = {.clock = 1};
	pthread_t thread;
	void *ok = NULL;
	struct rig r;

	(void)state;
	open_rig(&r, &cfg);
	submit_work(&r, 0, 1, 1000000);
	assert_int_equal(pthread_create(&thread, NULL, poll_elsewhere, &r), 0);
	pthread_join(thread, &ok);
	assert_non_null(ok);
	close_rig(&r);
}

static void *submit_elsewhere(void *user)
{
	struct rig *r = user;
	uint32_t (*pop)(void **context) = NULL;
	void *handle = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD), *context = NULL;
	struct hal_bk_event ev;
	int got;

	*(void **)&pop = dlsym(handle, "cuCtxPopCurrent_v2");
	submit_work(r, 0, 1, 1000);
	do
		got = b->hot.poll(r->dev, UINT64_MAX, &ev, 1);
	while (got == 0);
	b->hot.leave(r->dev);
	return got == 1 && pop(&context) == CUR_INVALID_CONTEXT ? r : NULL;
}

/* A caller that has been the engine for a while (HAL_BK_ANY_THREAD) has nothing current
 * afterwards, as before. */
static void caller_gets_back(void **state)
{
	const struct hal_bk_config cfg = {.clock = 0};
	pthread_t thread;
	void *ok = NULL;
	struct rig r;

	(void)state;
	open_rig(&r, &cfg);
	assert_int_equal(pthread_create(&thread, NULL, submit_elsewhere, &r), 0);
	pthread_join(thread, &ok);
	assert_non_null(ok);
	close_rig(&r);
}

/* A thread that was the engine's has nothing current after close. */
static void nothing_current(void **state)
{
	const struct hal_bk_config cfg = {.clock = 1};
	uint32_t (*pop)(void **context) = NULL;
	void *handle = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD), *context = NULL;
	struct rig r;

	(void)state;
	*(void **)&pop = dlsym(handle, "cuCtxPopCurrent_v2");
	open_rig(&r, &cfg);
	close_rig(&r);
	assert_int_equal(pop(&context), CUR_INVALID_CONTEXT);
}

/* What the core does not do, the backend refuses all the same. */
static void out_of_turn(void **state)
{
	const struct hal_bk_partition_desc two = {.units = 2, .rows = 1, .cols = 2};
	const struct hal_bk_config cfg = {.clock = 1, .inflight = 1};
	struct hal_bk_cmd nop = {.op = HAL_OP_NOP, .cookie = 1};
	struct hal_bk_event ev[4];
	void *part, *address;
	struct rig r;

	(void)state;
	open_rig(&r, &cfg);
	assert_int_equal(b->cold.partition_create(r.dev, &two, &part), -EINVAL);
	assert_int_equal(b->cold.partition_destroy(r.dev, r.part), -EBUSY);
	assert_non_null(strstr(host_text, "3 queues and 1 buffers"));
	assert_int_equal(b->cold.mem_map(r.dev, r.mem, &address), -ENOTSUP);
	assert_int_equal(b->hot.resume(r.dev, r.queue[0]), -EINVAL);
	assert_int_equal(b->hot.suspend(r.dev, r.queue[0], HAL_SUSPEND_KILL, 6),
			 -ENOTSUP);
	assert_int_equal(b->hot.submit(r.dev, r.queue[0], &nop), 0);
	assert_int_equal(b->hot.submit(r.dev, r.queue[0], &nop), -EAGAIN);
	assert_int_equal(b->hot.suspend(r.dev, r.queue[0], HAL_SUSPEND_DRAIN, 7), 0);
	assert_int_equal(b->hot.suspend(r.dev, r.queue[0], HAL_SUSPEND_DRAIN, 8), -EBUSY);
	assert_int_equal(b->hot.resume(r.dev, r.queue[0]), -EBUSY);
	assert_int_equal(b->cold.queue_destroy(r.dev, r.queue[0]), -EBUSY);
	assert_int_equal(b->hot.poll(r.dev, UINT64_MAX, ev, 4), 2);
	assert_int_equal(ev[1].kind, HAL_BK_QUIET);
	assert_int_equal(ev[1].cookie, 7);
	assert_int_equal(b->hot.submit(r.dev, r.queue[0], &nop), -EAGAIN);
	assert_int_equal(b->hot.resume(r.dev, r.queue[0]), 0);
	assert_int_equal(b->hot.submit(r.dev, r.queue[0], &nop), 0);
	poll_one(&r, ev);
	close_rig(&r);
}

static void says_how(void **state)
{
	const struct hal_bk_config cfg = {.clock = 1, .hang_ms = 9};
	const struct hal_gpu_extension *ext;
	struct hal_gpu_info info = {.size = sizeof(info) - 1};
	char why[HAL_GPU_SAID];
	struct rig r;

	(void)state;
	open_rig(&r, &cfg);
	ext = b->cold.extension(r.dev, "gpu");
	assert_int_equal(ext->info(r.dev, &info), -EINVAL);
	info.size = sizeof(info);
	assert_int_equal(ext->info(r.dev, &info), 0);
	assert_string_equal(info.way, "none");
	assert_int_equal(strncmp(info.why, "partitions=none", 15), 0);
	assert_non_null(strstr(info.faults, "after 9 ms the queue is given up"));
	assert_int_equal(ext->stops(r.dev, "work", why), 0);
	assert_string_equal(why, "preempt=between");
	assert_null(b->cold.extension(r.dev, "gp"));
	close_rig(&r);
}

/* Each result of the driver has its name; which errno it is, and whether the context is
 * gone with it. */
static void results(void **state)
{
	static const struct {
		uint32_t result;
		const char *name;
		int err;
		bool sticky;
	} all[] = {
		{CUR_DEINITIALIZED, "CUDA_ERROR_DEINITIALIZED", ENODEV, false},
		{CUR_DEVICE_UNAVAILABLE, "CUDA_ERROR_DEVICE_UNAVAILABLE", EBUSY, false},
		{CUR_INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT", EIO, false},
		{CUR_CONTEXT_IS_DESTROYED, "CUDA_ERROR_CONTEXT_IS_DESTROYED", EIO, true},
		{804, "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE", ENODEV, false},
		{805, "CUDA_ERROR_MPS_CONNECTION_FAILED", ENODEV, false},
		{806, "CUDA_ERROR_MPS_RPC_FAILURE", EIO, false},
		{807, "CUDA_ERROR_MPS_SERVER_NOT_READY", EBUSY, false},
		{808, "CUDA_ERROR_MPS_MAX_CLIENTS_REACHED", EBUSY, false},
		{809, "CUDA_ERROR_MPS_MAX_CONNECTIONS_REACHED", EBUSY, false},
		{810, "CUDA_ERROR_MPS_CLIENT_TERMINATED", EIO, true},
		{811, "CUDA_ERROR_CDP_NOT_SUPPORTED", ENOTSUP, false},
		{900, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", EINVAL, false},
		{911, "CUDA_ERROR_EXTERNAL_DEVICE", EIO, true},
		{9999, "unknown result", EINVAL, false},
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		assert_string_equal(cu_result_name(all[i].result), all[i].name);
		if (cu_errno(all[i].result) != all[i].err ||
		    cu_sticky(all[i].result) != all[i].sticky)
			fail_msg("%s: errno %d, sticky %d", all[i].name,
				 cu_errno(all[i].result), cu_sticky(all[i].result));
	}
}

/* A client that the MPS server has ended does no more: as after a fault. */
static void client_terminated(void **state)
{
	const struct hal_bk_config cfg = {.clock = 1};
	struct hal_bk_event ev[4];
	struct rig r;

	(void)state;
	open_rig(&r, &cfg);
	submit_on_mem(&r, 0, NEVER, 1);
	stand_in()->lose(0, 810);
	assert_int_equal(b->hot.poll(r.dev, 1000000000, ev, 4), 1);
	assert_int_equal(ev[0].status, -EIO);
	assert_non_null(strstr(ev[0].fault, "CUDA_ERROR_MPS_CLIENT_TERMINATED (810)"));
	close_rig(&r);
}

static int setup(void **state)
{
	(void)state;
	b = hal_backend_cuda(&host);
	return b && stand_in() ? 0 : -1;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fault),
		cmocka_unit_test(endless),
		cmocka_unit_test(told_soon),
		cmocka_unit_test(hot_calls),
		cmocka_unit_test(bad_launches),
		cmocka_unit_test(bad_programs),
		cmocka_unit_test(foreign_thread),
		cmocka_unit_test(waits_alone),
		cmocka_unit_test(nothing_current),
		cmocka_unit_test(caller_gets_back),
		cmocka_unit_test(out_of_turn),
		cmocka_unit_test(says_how),
		cmocka_unit_test(results),
		cmocka_unit_test(local_memory),
		cmocka_unit_test(client_terminated),
		QUEUE_CASES,
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}

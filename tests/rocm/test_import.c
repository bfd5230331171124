/* SPDX-License-Identifier: Apache-2.0 */
/* A program's own memory and streams: the cases of tests/gpu. */
#define _GNU_SOURCE
#include "host.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "backends/rocm/internal.h"
#include "tests/gpu/rig.h"

static const struct hal_bk_config blockwise = {.clock = 1, .preempt = 1},
				  single = {.clock = 1, .partitions = ROCM_CUS},
				  between = {.clock = 1};

static void enter(void *device)
{
	const struct rocm_device *dev = device;

	assert_int_equal(hip.hipSetDevice(dev->shape.device), 0);
}

static uint32_t allocate(void *device, uint64_t bytes, uint64_t *address)
{
	void *p = NULL;
	uint32_t r;

	enter(device);
	r = hip.hipMalloc(&p, bytes);
	*address = (uintptr_t)p;
	return r;
}

static uint32_t release(void *device, uint64_t address)
{
	enter(device);
	return hip.hipFree((void *)(uintptr_t)address);
}

static uint32_t stream_of(void *device, uint32_t flags, void **stream)
{
	enter(device);
	return hip.hipStreamCreateWithPriority(stream, flags, 0);
}

static uint32_t destroy(void *device, void *stream)
{
	enter(device);
	return hip.hipStreamDestroy(stream);
}

static uint32_t fill(void *device, uint64_t address, uint32_t value, void *stream)
{
	enter(device);
	return hip.hipMemsetD32Async((void *)(uintptr_t)address, (int)value, 1, stream);
}

static uint32_t (*add_callback)(void *stream,
				void (*fn)(void *stream, uint32_t result, void *user),
				void *user, uint32_t flags);

static uint32_t callback(void *device, void *stream,
			 void (*fn)(void *stream, uint32_t result, void *user),
			 void *user)
{
	enter(device);
	return add_callback(stream, fn, user, 0);
}

static void lose(void *device, uint32_t result)
{
	((struct rocm_device *)device)->base.lost = result;
}

struct rig_face rig_face = {
	.how = {[RIG_PLAIN] = &blockwise,
		[RIG_SPLIT] = &single,
		[RIG_BETWEEN] = &between},
	.device = 1,
	.kernels = {"work:m8", "iota:m4"},
	.stand_in = stand_in,
	.image = make_rocm_image,
	.lose = lose,
	.own = {allocate,
		release,
		stream_of,
		destroy,
		fill,
		{"hipMemGetAddressRange", "hipStreamGetFlags", "hipStreamIsCapturing"},
		callback,
		{"hipMalloc", "hipStreamCreateWithPriority"},
		{"hipSetDevice", "hipHostMalloc", "hipHostGetDevicePointer",
		 "hipEventCreateWithFlags"},
		"hipStreamIsCapturing",
		"hipModuleLaunchKernel"},
};

int main(void)
{
	const struct CMUnitTest tests[] = {IMPORT_CASES};

	rig_face.backend = hal_backend_rocm(&host);
	*(void **)&add_callback =
		dlsym(dlopen(host_face.stand_in, RTLD_NOW), "hipStreamAddCallback");
	return cmocka_run_group_tests(tests, NULL, NULL);
}

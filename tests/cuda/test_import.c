/* SPDX-License-Identifier: Apache-2.0 */
/* A program's own memory and streams: the cases of tests/gpu; and what is CUDA's own. */
#define _GNU_SOURCE
#include "host.h"

#include <dlfcn.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>
#include <hal/gpu.h>

#include "backends/cuda/internal.h"
#include "tests/gpu/rig.h"

static const struct hal_bk_config blockwise = {.clock = 1, .preempt = 1},
				  green = {.clock = 1, .partitions = CU_WAY_GREEN},
				  between = {.clock = 1};

/* As a program does that has the context current. */
static void enter(void *device)
{
	const struct cu_device *dev = device;

	assert_int_equal(cu.cuCtxPushCurrent_v2(dev->context), 0);
}

static uint32_t leave(uint32_t result)
{
	void *context;

	assert_int_equal(cu.cuCtxPopCurrent_v2(&context), 0);
	return result;
}

static uint32_t allocate(void *device, uint64_t bytes, uint64_t *address)
{
	enter(device);
	return leave(cu.cuMemAlloc_v2(address, bytes));
}

static uint32_t release(void *device, uint64_t address)
{
	enter(device);
	return leave(cu.cuMemFree_v2(address));
}

static uint32_t stream_of(void *device, uint32_t flags, void **stream)
{
	enter(device);
	return leave(cu.cuStreamCreateWithPriority(stream, flags, 0));
}

static uint32_t destroy(void *device, void *stream)
{
	enter(device);
	(void)cu.cuStreamSynchronize(stream);
	return leave(cu.cuStreamDestroy_v2(stream));
}

static uint32_t fill(void *device, uint64_t address, uint32_t value, void *stream)
{
	enter(device);
	return leave(cu.cuMemsetD32Async(address, value, 1, stream));
}

static uint32_t (*add_callback)(void *stream,
				void (*fn)(void *stream, uint32_t result, void *user),
				void *user, uint32_t flags);

static uint32_t callback(void *device, void *stream,
			 void (*fn)(void *stream, uint32_t result, void *user),
			 void *user)
{
	enter(device);
	return leave(add_callback(stream, fn, user, 0));
}

static void lose(void *device, uint32_t result)
{
	((struct cu_device *)device)->base.lost = result;
}

struct rig_face rig_face = {
	.how = {[RIG_PLAIN] = &blockwise, [RIG_SPLIT] = &green, [RIG_BETWEEN] = &between},
	.device = 1,
	.kernels = {"work:m8", "iota:m4"},
	.stand_in = stand_in,
	.image = make_cuda_image,
	.lose = lose,
	.own = {allocate,
		release,
		stream_of,
		destroy,
		fill,
		{"cuMemGetAddressRange_v2", "cuStreamGetCtx", "cuStreamGetFlags",
		 "cuStreamIsCapturing"},
		callback,
		{"cuMemAlloc_v2", "cuStreamCreateWithPriority"},
		{"cuCtxSetCurrent", "cuCtxPushCurrent_v2", "cuMemHostAlloc",
		 "cuMemHostGetDevicePointer_v2", "cuEventCreate"},
		"cuStreamIsCapturing",
		"cuLaunchKernel"},
};

/* The names of NULL streams; a stream of another device. */
static void contexts(void **state)
{
	const struct hal_backend *b = rig_face.backend;
	const struct hal_gpu_extension *ext;
	void *stream, *other;
	struct rig r;

	(void)state;
	rig_begin(&r, RIG_BETWEEN);
	ext = b->cold.extension(r.dev, "gpu");
	/* NOLINTBEGIN(performance-no-int-to-ptr) */
	assert_int_equal(ext->offer_stream(r.dev, (void *)(uintptr_t)1), -EINVAL);
	assert_int_equal(ext->offer_stream(r.dev, (void *)(uintptr_t)2), -EINVAL);
	/* NOLINTEND(performance-no-int-to-ptr) */
	assert_int_equal(b->cold.open(&between, 0, &other), 0);
	assert_int_equal(stream_of(other, CU_STREAM_NON_BLOCKING, &stream), 0);
	assert_int_equal(ext->offer_stream(r.dev, stream), -EINVAL);
	if (!strstr(host_text, "not belong to the device's primary context"))
		fail_msg("%s", host_text);
	assert_int_equal(destroy(other, stream), 0);
	b->cold.close(other);
	rig_end(&r);
}

/* The application captures the stream before recorded commands reach the driver: they are
 * no part of the capture, and the first one reports why. */
static void gathered(void **state)
{
	static const struct hal_bk_config graphs = {.clock = 1, .graphs = 1};
	const struct hal_backend *b = rig_face.backend;
	struct hal_bk_arg args[2] = {{.bytes = 64}, {.value = 1000}};
	struct hal_bk_cmd cmd = {
		.op = HAL_OP_LAUNCH,
		.flags = HAL_BK_CMD_RECORDED,
		.launch = {.args = args, .arg_count = 2, .groups = {1, 1, 1}}};
	const struct hal_gpu_extension *ext;
	struct hal_bk_event ev[3];
	void *stream, *queue;
	uint64_t address;
	struct rig r;

	(void)state;
	rig_face.how[RIG_BETWEEN] = &graphs;
	rig_begin(&r, RIG_BETWEEN);
	rig_face.how[RIG_BETWEEN] = &between;
	ext = b->cold.extension(r.dev, "gpu");
	assert_int_equal(allocate(r.dev, 64, &address), 0);
	assert_int_equal(stream_of(r.dev, CU_STREAM_NON_BLOCKING, &stream), 0);
	assert_int_equal(ext->offer_stream(r.dev, stream), 0);
	assert_int_equal(b->cold.queue_create(r.dev, r.part, 0, &queue), 0);
	rig_zero(&r);
	args[0].mem = r.mem;
	cmd.launch.kernel = r.work;
	assert_int_equal(b->hot.submit(r.dev, queue, &cmd), 0);
	assert_int_equal(b->hot.submit(r.dev, queue, &cmd), 0);
	stand_in()->capture(stream, 3);
	assert_int_equal(b->hot.poll(r.dev, b->hot.now(r.dev) + 100000, ev, 3), 0);
	assert_int_equal(fill(r.dev, address, 9, stream), 0); /* 901: it is invalid */
	stand_in()->capture(stream, 0);
	assert_int_equal(b->hot.poll(r.dev, UINT64_MAX, ev, 3), 2);
	assert_int_equal(ev[0].status, -EIO);
	if (!strstr(ev[0].fault, "captures"))
		fail_msg("%s", ev[0].fault);
	assert_int_equal(ev[1].status, -ECANCELED);
	assert_int_equal(rig_word(&r, 0), 0);
	assert_int_equal(b->cold.queue_destroy(r.dev, queue), 0);
	assert_int_equal(destroy(r.dev, stream), 0);
	assert_int_equal(release(r.dev, address), 0);
	rig_end(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(contexts),
					   cmocka_unit_test(gathered), IMPORT_CASES};

	rig_face.backend = hal_backend_cuda(&host);
	*(void **)&add_callback =
		dlsym(dlopen(host_face.stand_in, RTLD_NOW), "cuStreamAddCallback");
	return cmocka_run_group_tests(tests, NULL, NULL);
}

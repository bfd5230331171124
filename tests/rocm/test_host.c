/* SPDX-License-Identifier: Apache-2.0 */
/* Queued copies of host memory, built with OF_HSA 1 in queues of HSA's: the cases of
 * tests/gpu, and what is HSA's own. */
#define _GNU_SOURCE
#include "host.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "backends/rocm/internal.h"
#include "tests/gpu/rig.h"

/* Queues of HSA's are those of partitions: one has all 15 units of 4 CUs. */
#define HOW .partitions = OF_HSA ? ROCM_ENGINES : 0, .queues = OF_HSA
static const struct hal_bk_config blockwise = {.clock = 1, HOW, .preempt = 1},
				  between = {.clock = 1, HOW},
				  real = {HOW, .hang_ms = 20};

static void lose(void *device, uint32_t result)
{
	((struct rocm_device *)device)->base.lost = result;
}

/* As a program does. */
static uint32_t own_register(void *device, void *p, uint64_t bytes)
{
	struct rocm_device *dev = device;
	struct rocm_caller was;
	uint32_t r;

	assert_int_equal(rocm_push(dev, &was), 0);
	r = hip.hipHostRegister(p, bytes, 0);
	rocm_pop(dev, was);
	return r;
}

static uint32_t own_unregister(void *device, void *p)
{
	struct rocm_device *dev = device;
	struct rocm_caller was;
	uint32_t r;

	assert_int_equal(rocm_push(dev, &was), 0);
	r = hip.hipHostUnregister(p);
	rocm_pop(dev, was);
	return r;
}

struct rig_face rig_face = {
	.how = {[RIG_PLAIN] = &blockwise, [RIG_BETWEEN] = &between, [RIG_REAL] = &real},
	.units = 60,
#if OF_HSA
	.has = {[RIG_PLAIN] = 15, [RIG_BETWEEN] = 15, [RIG_REAL] = 15},
#endif
	.kernels = {"work:m8p", "iota:m4p"},
	.stand_in = stand_in,
	.image = make_rocm_image,
	.lose = lose,
	.registers = "hipHostRegister",
	.points = "hipHostGetDevicePointer",
	.unregisters = "hipHostUnregister",
	.own_register = own_register,
	.own_unregister = own_unregister,
};

/* A library of old cannot register memory. */
static void old_library(void **state)
{
	const struct hal_backend *b = hal_backend_rocm(&host);
	struct hal_device_info info = {.size = sizeof(info)};
	struct hip_symbols found;
	static uint8_t own[64];
	struct rig r;
	void *mem;

	(void)state;
	rig_begin(&r, RIG_BETWEEN);
	found = hip;
	hip.hipHostRegister = NULL;
	assert_int_equal(b->cold.get_info(r.dev, &info), 0);
	assert_true(info.caps & HAL_CAP_HOST_COPY);
	assert_false(info.caps & HAL_CAP_HOST_REGISTER);
	assert_int_equal(b->cold.mem_register(r.dev, r.part, own, 64, &mem), -ENOTSUP);
	assert_non_null(strstr(host_text, "use hal_host_alloc"));
	hip = found;
	rig_end(&r);
}

#if OF_HSA
enum { BYTES = 1 << 20 };

/* A rig with memory for copies, and how to poll it. */
struct copies {
	struct rig r;
	const struct hal_backend *b;
	void *from, *mem;
	struct hal_bk_cmd cmd;
};

static void open_copies(struct copies *c)
{
	rig_begin(&c->r, RIG_BETWEEN);
	c->b = hal_backend_rocm(&host);
	assert_int_equal(c->b->cold.mem_alloc(c->r.dev, c->r.part, BYTES, NULL,
					      HAL_BK_MEM_HOST, &c->from),
			 0);
	assert_int_equal(
		c->b->cold.mem_alloc(c->r.dev, c->r.part, BYTES, NULL, 0, &c->mem), 0);
	c->cmd = (struct hal_bk_cmd){
		.op = HAL_OP_COPY, .cookie = 5, .copy = {c->mem, c->from, 0, 0, BYTES}};
}

static void close_copies(struct copies *c)
{
	assert_int_equal(c->b->cold.mem_free(c->r.dev, c->from), 0);
	assert_int_equal(c->b->cold.mem_free(c->r.dev, c->mem), 0);
	rig_end(&c->r);
}

static struct hal_bk_event poll_one(struct copies *c)
{
	struct hal_bk_event ev;

	assert_int_equal(c->b->hot.poll(c->r.dev, UINT64_MAX, &ev, 1), 1);
	return ev;
}

/* Submit the copy, and poll until an engine has it. */
static void begin_copy(struct copies *c)
{
	const uint64_t before = stand_in()->calls("hsa_amd_memory_async_copy");
	struct hal_bk_event ev;

	assert_int_equal(c->b->hot.submit(c->r.dev, c->r.queue, &c->cmd), 0);
	assert_int_equal(c->b->hot.submit(c->r.dev, c->r.queue, &c->cmd), -EAGAIN);
	while (stand_in()->calls("hsa_amd_memory_async_copy") == before)
		assert_int_equal(
			c->b->hot.poll(c->r.dev, c->b->hot.now(c->r.dev) + 100, &ev, 1),
			0);
}

/* What the queue has in front of it is not over: no engine has it, and it is killed. */
static void killed_before(void **state)
{
	struct hal_bk_cmd cmd;
	struct hal_bk_event ev;
	struct copies c;
	uint32_t i;

	(void)state;
	open_copies(&c);
	assert_int_equal(rig_launch(&c.r, c.r.work, 5000000, 1, &cmd), 0);
	assert_int_equal(c.b->hot.submit(c.r.dev, c.r.queue, &c.cmd), 0);
	assert_int_equal(rig_run_for(&c.r, 100000), 0);
	assert_int_equal(c.b->hot.suspend(c.r.dev, c.r.queue, HAL_SUSPEND_KILL, 9), 0);
	for (i = 0; i < 2; i++) {
		ev = poll_one(&c);
		assert_int_equal(ev.kind, HAL_BK_DONE);
		assert_int_equal(ev.status, -ECANCELED);
	}
	assert_int_equal(poll_one(&c).kind, HAL_BK_QUIET);
	assert_int_equal(stand_in()->calls("hsa_amd_memory_async_copy"), 0);
	assert_int_equal(c.b->hot.resume(c.r.dev, c.r.queue), 0);
	begin_copy(&c);
	assert_int_equal(poll_one(&c).status, 0);
	close_copies(&c);
}

/* An engine has it: it ends well, and QUIET waits for that. */
static void killed_inside(void **state)
{
	struct hal_bk_event ev;
	struct copies c;

	(void)state;
	open_copies(&c);
	begin_copy(&c);
	assert_int_equal(c.b->hot.suspend(c.r.dev, c.r.queue, HAL_SUSPEND_KILL, 9), 0);
	ev = poll_one(&c);
	assert_int_equal(ev.kind, HAL_BK_DONE);
	assert_int_equal(ev.status, 0);
	assert_true(ev.end_ns - ev.start_ns > BYTES / 16);
	assert_int_equal(poll_one(&c).kind, HAL_BK_QUIET);
	assert_int_equal(c.b->hot.resume(c.r.dev, c.r.queue), 0);
	begin_copy(&c);
	assert_int_equal(poll_one(&c).status, 0);
	/* The last one's signal goes with the queue of HSA's. */
	assert_int_equal(c.b->hot.suspend(c.r.dev, c.r.queue, HAL_SUSPEND_KILL, 9), 0);
	assert_int_equal(poll_one(&c).kind, HAL_BK_QUIET);
	close_copies(&c);
}

/* The call fails, or the engine says so in the signal. */
static void copy_fails(void **state)
{
	static const char *const says[] = {
		"hsa_amd_memory_async_copy: HSA_STATUS_ERROR_OUT_OF_RESOURCES (0x1008)",
		"hsa_amd_memory_async_copy: the copy failed (-1)"};
	struct hal_bk_event ev;
	struct copies c;
	uint32_t i;

	(void)state;
	for (i = 0; i < 2; i++) {
		open_copies(&c);
		if (i)
			stand_in()->break_late("hsa_amd_memory_async_copy", 1, 1);
		else
			stand_in()->break_call("hsa_amd_memory_async_copy", 1,
					       HSAR_OUT_OF_RESOURCES);
		assert_int_equal(c.b->hot.submit(c.r.dev, c.r.queue, &c.cmd), 0);
		ev = poll_one(&c);
		assert_int_equal(ev.status, -EIO);
		assert_string_equal(ev.fault, says[i]);
		assert_int_equal(c.b->hot.submit(c.r.dev, c.r.queue, &c.cmd), -EIO);
		close_copies(&c);
	}
}

/* A queue that cannot be asked about is given up: what an engine has of it ends first,
 * and then the queue goes. */
static void given_up(void **state)
{
	struct hal_bk_event ev;
	struct copies c;
	uint32_t i;

	(void)state;
	open_copies(&c);
	begin_copy(&c);
	for (i = 0; stand_in()->answer_query(i, HIPR_InvalidHandle) == 0; i++)
		;
	for (i = 0; i < 4; i++)
		if (c.b->hot.poll(c.r.dev, c.b->hot.now(c.r.dev) + 100, &ev, 1))
			break;
	assert_true(i < 4);
	assert_int_equal(ev.status, -EIO);
	/* For the core nothing uses them any more; the engine does. */
	assert_int_equal(c.b->cold.mem_free(c.r.dev, c.from), 0);
	assert_int_equal(c.b->cold.mem_free(c.r.dev, c.mem), 0);
	assert_int_equal(stand_in()->misuse(NULL), 0);
	assert_int_equal(c.b->cold.queue_destroy(c.r.dev, c.r.queue), 0);
	assert_int_equal(stand_in()->calls("hsa_queue_destroy"), 1); /* the trial's */
	assert_int_equal(c.b->hot.poll(c.r.dev, c.b->hot.now(c.r.dev) + 1000000, &ev, 1),
			 0);
	assert_int_equal(stand_in()->calls("hsa_queue_destroy"), 2);
	for (i = 0; stand_in()->answer_query(i, 0) == 0; i++)
		;
	assert_int_equal(c.b->cold.queue_create(c.r.dev, c.r.part, 0, &c.r.queue), 0);
	rig_end(&c.r);
}
#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(old_library),
		HOST_CASES,
#if OF_HSA
		cmocka_unit_test(killed_before),
		cmocka_unit_test(killed_inside),
		cmocka_unit_test(copy_fails),
		cmocka_unit_test(given_up),
#endif
	};

	rig_face.backend = hal_backend_rocm(&host);
	return cmocka_run_group_tests(tests, NULL, NULL);
}

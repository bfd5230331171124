/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every call of the driver that the backend makes fails in turn, each time it is made:
 * the right errno, a text with the call and its result, nothing left behind at the
 * driver, nothing done that is undefined there, and a device that works the next time.
 */
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

static const struct hal_backend *b;

struct world {
	void *dev, *part, *queue, *prog, *kernel, *mem[3];
	uint32_t inflight;
	bool lost;
	int err; /* what went wrong first, and its text */
	char text[512];
};

static const char *const call_names[CU_CALL_COUNT] = {
#define NAME(name, params, args) #name,
	CU_CALLS(NAME)
#undef NAME
};

static bool note(struct world *w, int err, const char *text)
{
	if (err < 0 && !w->err) {
		w->err = err;
		snprintf(w->text, sizeof(w->text), "%s", text);
	}
	return err >= 0 && !w->err;
}

static bool step(struct world *w, int err)
{
	return note(w, err, host_text);
}

static void run_dry(struct world *w)
{
	struct hal_bk_event ev[8];
	int n = 0, i, turns = 0;

	while (w->inflight && n >= 0 && turns++ < 10000) {
		n = b->hot.poll(w->dev, UINT64_MAX, ev, 8);
		for (i = 0; i < n; i++) {
			w->inflight--;
			note(w, ev[i].status, ev[i].fault);
		}
	}
	w->lost |= n < 0;
	if (!w->lost)
		assert_int_equal(w->inflight, 0);
}

static bool submit(struct world *w, const struct hal_bk_cmd *cmd)
{
	int err = b->hot.submit(w->dev, w->queue, cmd);

	if (err == -EAGAIN) {
		run_dry(w);
		if (w->err)
			return false;
		err = b->hot.submit(w->dev, w->queue, cmd);
	}
	w->inflight += !err;
	return step(w, err);
}

static bool load(struct world *w)
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
		return step(w, err ? err : -EPROTO);
	image = make_cuda_image(kernels, 2, 4, &size);
	/* So much shared memory has to be asked for. */
	((struct hal_cuda_kernel *)((struct hal_cuda_image *)image + 1))->shared_bytes =
		100000;
	ok = step(w, b->cold.program_load(w->dev, image, size, &w->prog)) &&
	     step(w, b->cold.kernel_get(w->dev, w->prog, 0, &info, &w->kernel));
	free(image);
	return ok;
}

static bool compute(struct world *w)
{
	const struct hal_bk_arg args[2] = {{w->mem[0], 0, 64}, {NULL, 20000000, 0}};
	struct hal_bk_cmd launch = {.op = HAL_OP_LAUNCH, .cookie = 1};
	struct hal_bk_cmd fill = {.op = HAL_OP_FILL, .cookie = 2};
	struct hal_bk_cmd copy = {.op = HAL_OP_COPY, .cookie = 3};
	struct hal_bk_cmd stamp = {.op = HAL_OP_TIMESTAMP, .cookie = 4};
	struct hal_bk_cmd nop = {.op = HAL_OP_NOP, .cookie = 5};
	uint32_t zero = 0, got[2] = {0, 0};
	uint64_t time = 0;
	int i;

	launch.launch.kernel = w->kernel;
	launch.launch.args = args;
	launch.launch.arg_count = 2;
	launch.launch.groups[0] = launch.launch.groups[1] = launch.launch.groups[2] = 1;
	fill.fill.dst = w->mem[0];
	fill.fill.offset = 4;
	fill.fill.bytes = 4;
	fill.fill.pattern = 77;
	copy.copy.dst = w->mem[1];
	copy.copy.src = w->mem[0];
	copy.copy.bytes = 8;
	stamp.timestamp.dst = w->mem[2];
	if (!step(w, b->cold.mem_write(w->dev, w->mem[0], 0, &zero, 4)))
		return false;
	for (i = 0; i < 3; i++)
		if (!submit(w, &launch))
			return false;
	if (!submit(w, &fill) || !submit(w, &copy) || !submit(w, &stamp) ||
	    !submit(w, &nop))
		return false;
	/* What is freed while something runs goes later. */
	run_dry(w);
	if (w->err || !step(w, b->cold.mem_read(w->dev, w->mem[1], 0, got, 8)) ||
	    !step(w, b->cold.mem_read(w->dev, w->mem[2], 0, &time, 8)))
		return false;
	assert_int_equal(got[0], 3);
	assert_int_equal(got[1], 77);
	assert_true(time >= 60000000);
	return true;
}

static void put_away(struct world *w)
{
	int i;

	if (w->queue)
		run_dry(w);
	if (w->queue)
		step(w, b->cold.queue_destroy(w->dev, w->queue));
	for (i = 0; i < 3; i++)
		if (w->mem[i])
			step(w, b->cold.mem_free(w->dev, w->mem[i]));
	if (w->prog)
		step(w, b->cold.program_unload(w->dev, w->prog));
	if (w->part)
		step(w, b->cold.partition_destroy(w->dev, w->part));
	if (w->dev)
		b->cold.close(w->dev);
}

/* Everything the backend can do, once; the first thing that goes wrong ends it. */
static struct world run(const struct hal_bk_config *cfg)
{
	const struct hal_bk_partition_desc part = {.units = 1, .rows = 1, .cols = 1};
	struct hal_device_info info[2];
	struct world w = {0};
	uint32_t i;
	bool ok;

	memset(info, 0, sizeof(info));
	for (i = 0; i < 2; i++)
		info[i].size = sizeof(info[i]);
	ok = step(&w, b->cold.probe(cfg, info, 2));
	for (i = 0; ok && i < 2; i++)
		ok = step(&w, strncmp(info[i].name, "unusable", 8) == 0 ? -EIO : 0);
	ok = ok && step(&w, b->cold.open(cfg, 0, &w.dev)) &&
	     step(&w, b->cold.get_info(w.dev, info)) &&
	     step(&w, b->cold.partition_create(w.dev, &part, &w.part)) &&
	     step(&w, b->cold.mem_alloc(w.dev, w.part, 64, NULL, 0, &w.mem[0])) &&
	     step(&w, b->cold.mem_alloc(w.dev, w.part, 64, NULL, HAL_BUFFER_MAPPABLE,
					&w.mem[1])) &&
	     step(&w, b->cold.mem_alloc(w.dev, w.part, 64, NULL, 0, &w.mem[2])) &&
	     step(&w, b->cold.queue_create(w.dev, w.part, 0, &w.queue)) && load(&w) &&
	     compute(&w);
	(void)ok;
	put_away(&w);
	return w;
}

/* ---- failures ---------------------------------------------------------------------- */

static const struct {
	uint32_t result;
	int err;
	const char *name;
} results[] = {
	{CUR_LAUNCH_FAILED, EIO, "CUDA_ERROR_LAUNCH_FAILED (719)"},
	{CUR_OUT_OF_MEMORY, ENOSPC, "CUDA_ERROR_OUT_OF_MEMORY (2)"},
	{CUR_INVALID_HANDLE, EINVAL, "CUDA_ERROR_INVALID_HANDLE (400)"},
	{CUR_NOT_PERMITTED, EPERM, "CUDA_ERROR_NOT_PERMITTED (800)"},
	{CUR_NOT_SUPPORTED, ENOTSUP, "CUDA_ERROR_NOT_SUPPORTED (801)"},
	{CUR_UNKNOWN, EIO, "CUDA_ERROR_UNKNOWN (999)"},
};

/* Calls that may fail unseen: what they are for is given up, or tried again. */
static bool may_be_silent(const char *call, bool at_close)
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

	for (i = 0; i < sizeof(always) / sizeof(always[0]); i++)
		if (strcmp(call, always[i]) == 0)
			return true;
	for (i = 0; at_close && i < sizeof(retried) / sizeof(retried[0]); i++)
		if (strcmp(call, retried[i]) == 0)
			return true;
	return false;
}

static uint32_t failed_calls, bad;

static void complain(const char *call, uint64_t nth, uint32_t r, const struct world *w,
		     const char *why)
{
	bad++;
	print_error("%s number %u answers %s: %s: errno %d, text \"%s\"\n", call,
		    (unsigned)nth, results[r].name, why, -w->err, w->text);
}

static void fail_once(const struct hal_bk_config *cfg, const char *call, uint64_t nth,
		      uint64_t closing, uint32_t r)
{
	const struct cuda_stand_in *s = stand_in();
	const bool sticky = results[r].err == EIO;
	const char *misuse;
	struct world w;

	s->reset();
	assert_int_equal(s->break_call(call, nth, results[r].result), 0);
	w = run(cfg);
	if (s->armed())
		return; /* it was not called that often this time */
	failed_calls++;
	if (w.err) {
		/* A loss is told by whatever call comes next. */
		bool named = strstr(w.text, call) || sticky;

		if (!named || !strstr(w.text, results[r].name))
			complain(call, nth, r, &w, "the text does not name it");
		/* A command that fails is a fault of the device, whatever it was. */
		else if (-w.err != results[r].err && w.err != -EIO)
			complain(call, nth, r, &w, "not its errno");
	} else if (!may_be_silent(call, nth >= closing)) {
		complain(call, nth, r, &w, "nobody was told");
	}
	if (s->live())
		complain(call, nth, r, &w, "something was left at the driver");
	if (s->misuse(&misuse))
		complain(call, nth, r, &w, misuse);
}

/* How often each is called, and up to where before close. */
static void count_calls(const struct hal_bk_config *cfg, uint64_t *times,
			uint64_t *before)
{
	const struct cuda_stand_in *s = stand_in();
	struct world w;
	uint32_t c;

	s->reset();
	w = run(cfg);
	if (w.err)
		fail_msg("without a failure: %d %s", w.err, w.text);
	assert_int_equal(s->misuse(NULL), 0);
	assert_int_equal(s->live(), 0);
	for (c = 0; c < CU_CALL_COUNT; c++)
		times[c] = s->calls(call_names[c]);
	/* An open and its close, of which each call but those that make is close's. */
	s->reset();
	memset(&w, 0, sizeof(w));
	assert_int_equal(b->cold.open(cfg, 0, &w.dev), 0);
	for (c = 0; c < CU_CALL_COUNT; c++)
		before[c] = s->calls(call_names[c]);
	b->cold.close(w.dev);
	for (c = 0; c < CU_CALL_COUNT; c++)
		before[c] = times[c] - (s->calls(call_names[c]) - before[c]) + 1;
}

static void fail_all(const struct hal_bk_config *cfg)
{
	const struct cuda_stand_in *s = stand_in();
	uint64_t times[CU_CALL_COUNT], before[CU_CALL_COUNT], n;
	struct world w;
	uint32_t c;

	count_calls(cfg, times, before);
	for (c = 0; c < CU_CALL_COUNT; c++) {
		/* cuInit and cuDriverGetVersion: once a process, see test_loader.c. */
		if (c <= CU_CALL_cuDriverGetVersion)
			continue;
		for (n = 1; n <= times[c]; n++)
			fail_once(cfg, call_names[c], n, before[c],
				  (uint32_t)((c + n) %
					     (sizeof(results) / sizeof(results[0]))));
	}
	s->reset();
	w = run(cfg);
	if (w.err)
		fail_msg("after all failures: %d %s", w.err, w.text);
	assert_int_equal(bad, 0);
}

static void device_memory(void **state)
{
	const struct hal_bk_config cfg = {.clock = 1};

	(void)state;
	fail_all(&cfg);
}

static void host_memory(void **state)
{
	const struct hal_bk_config cfg = {.clock = 1, .memory = 1, .inflight = 1};

	(void)state;
	fail_all(&cfg);
}

/* The calls of the runs above are all there are. */
static void every_call(void **state)
{
	/* When a copy's event fails; when a command takes long. */
	static const char *const elsewhere[] = {"cuStreamSynchronize"};
	const struct hal_bk_config cfg = {.clock = 1};
	const struct cuda_stand_in *s = stand_in();
	uint32_t c, missing = 0;

	(void)state;
	s->reset();
	assert_int_equal(run(&cfg).err, 0);
	for (c = CU_CALL_cuDriverGetVersion + 1; c < CU_CALL_COUNT; c++) {
		if (s->calls(call_names[c]) || strcmp(call_names[c], elsewhere[0]) == 0)
			continue;
		missing++;
		print_error("%s is never called\n", call_names[c]);
	}
	assert_int_equal(missing, 0);
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
		cmocka_unit_test(device_memory),
		cmocka_unit_test(host_memory),
		cmocka_unit_test(every_call),
	};
	int rc = cmocka_run_group_tests(tests, setup, NULL);

	printf("figure cuda.faults.calls %u\n", failed_calls);
	printf("figure cuda.faults.bad %u\n", bad);
	return rc;
}

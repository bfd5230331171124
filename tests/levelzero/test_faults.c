/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every vendor call that the backend makes fails in turn, each time it is made: the right
 * errno, a text with the call and its result, nothing left behind at the driver, and a
 * device that works the next time.
 */
#define _GNU_SOURCE
#include "host.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <hal/levelzero.h>

#include "backends/levelzero/ze_calls.h"

static const struct hal_backend *b;

/* What a run met first. */
struct outcome {
	int err;
	char text[512];
};

struct world {
	void *dev, *part, *queue, *prog, *kernel, *mem[3];
	uint32_t inflight;
	struct outcome first;
};

static const char *const call_names[LZ_CALL_COUNT] = {
#define NAME(table, slot, need, name, params, args) #name,
	LZ_CALLS(NAME)
#undef NAME
};

static bool step(struct world *w, int err)
{
	if (err < 0 && !w->first.err) {
		w->first.err = err;
		snprintf(w->first.text, sizeof(w->first.text), "%s", host_text);
	}
	return err >= 0 && !w->first.err;
}

/* Polls until the device has nothing of ours, noting the first failure. */
static void run_dry(struct world *w)
{
	struct hal_bk_event ev[8];
	int n, i, turns = 0;

	while (w->inflight && turns++ < 10000) {
		n = b->hot.poll(w->dev, UINT64_MAX, ev, 8);
		for (i = 0; i < n; i++) {
			w->inflight--;
			if (ev[i].status && !w->first.err) {
				w->first.err = ev[i].status;
				snprintf(w->first.text, sizeof(w->first.text), "%s",
					 ev[i].fault);
			}
		}
	}
	assert_int_equal(w->inflight, 0);
}

static bool submit(struct world *w, const struct hal_bk_cmd *cmd)
{
	int err = b->hot.submit(w->dev, w->queue, cmd);

	if (err == -EAGAIN) {
		run_dry(w);
		if (w->first.err)
			return false;
		err = b->hot.submit(w->dev, w->queue, cmd);
	}
	w->inflight += !err;
	return step(w, err);
}

static bool load(struct world *w)
{
	static const char *const kernels[] = {"work:m8", "iota:m4"};
	struct hal_bk_kernel_info info;
	uint64_t bytes;
	size_t size;
	void *image = make_image(kernels, 2, 4, &size), *raw;
	struct lz_stand_in_module *m;
	bool ok;

	/* What is behind the table, as it is: names come from the driver. */
	m = (void *)((char *)image + sizeof(struct hal_levelzero_image) +
		     2 * sizeof(struct hal_levelzero_kernel));
	raw = NULL;
	ok = step(w, b->cold.program_load(w->dev, m, m->bytes, &raw));
	if (raw)
		ok = step(w, b->cold.program_unload(w->dev, raw)) && ok;
	ok = ok && step(w, b->cold.program_load(w->dev, image, size, &w->prog)) &&
	     step(w, b->cold.program_bind(w->dev, w->prog, w->part, &bytes)) &&
	     step(w, b->cold.kernel_get(w->dev, w->prog, 0, &info, &w->kernel));
	/* The image may go only now: modules of other tiles are made from it. */
	free(image);
	return ok;
}

static bool bad_module(struct world *w)
{
	char junk[64] = "\x7f"
			"ELF of another device";
	void *prog = NULL;
	int err = b->cold.program_load(w->dev, junk, sizeof(junk), &prog);

	if (err == -EINVAL && strstr(host_text, "zeModuleCreate") &&
	    strstr(host_text, "INVALID_NATIVE_BINARY"))
		return true;
	step(w, err ? err : -EPROTO);
	return false;
}

static bool compute(struct world *w)
{
	const struct hal_bk_arg args[2] = {{w->mem[0], 0, 64}, {NULL, 120000000, 0}};
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
	run_dry(w);
	if (w->first.err || !step(w, b->cold.mem_read(w->dev, w->mem[1], 0, got, 8)) ||
	    !step(w, b->cold.mem_read(w->dev, w->mem[2], 0, &time, 8)))
		return false;
	assert_int_equal(got[0], 3);
	assert_int_equal(got[1], 77);
	assert_true(time >= 360000000);
	return true;
}

static bool extras(struct world *w)
{
	const struct hal_levelzero_extension *x = b->cold.extension(w->dev, "levelzero");
	struct hal_levelzero_scheduler s = HAL_INIT(hal_levelzero_scheduler);
	struct hal_levelzero_ipc ipc;
	void *address = NULL;
	uint32_t mode;

	assert_non_null(x);
	for (mode = HAL_LEVELZERO_TIMEOUT; mode <= HAL_LEVELZERO_EXCLUSIVE; mode++) {
		if (!step(w, x->scheduler_set(w->dev, mode)) ||
		    !step(w, x->scheduler_get(w->dev, &s)))
			return false;
		assert_int_equal(s.mode, mode);
	}
	if (!step(w, x->cache_reserve(w->dev, 3, 65536)) ||
	    !step(w, x->cache_advise(w->dev, 1, 1)) ||
	    !step(w, x->ipc_export(w->dev, 1, &ipc)) ||
	    !step(w, x->ipc_open(w->dev, &ipc, &address)))
		return false;
	if (step(w, x->ipc_close(w->dev, address)))
		return true;
	/* Who could not close tries again, as with any handle. */
	assert_int_equal(x->ipc_close(w->dev, address), 0);
	return false;
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
static struct outcome run(const struct hal_bk_config *cfg)
{
	const struct hal_bk_partition_desc part = {.units = 2, .rows = 1, .cols = 2};
	struct hal_device_info info[4];
	struct world w = {0};
	uint32_t i;
	bool ok;

	memset(info, 0, sizeof(info));
	for (i = 0; i < 4; i++)
		info[i].size = sizeof(info[i]);
	ok = step(&w, b->cold.probe(cfg, info, 4));
	for (i = 0; ok && i < 4; i++)
		ok = step(&w, strncmp(info[i].name, "unusable", 8) == 0 ? -EIO : 0);
	ok = ok && step(&w, b->cold.open(cfg, 0, &w.dev));
	ok = ok && step(&w, b->cold.get_info(w.dev, info)) &&
	     step(&w, b->cold.partition_create(w.dev, &part, &w.part));
	ok = ok && step(&w, b->cold.mem_alloc(w.dev, w.part, 64, NULL, 0, &w.mem[0])) &&
	     step(&w, b->cold.mem_alloc(w.dev, w.part, 64, NULL, HAL_BUFFER_MAPPABLE,
					&w.mem[1])) &&
	     step(&w, b->cold.mem_alloc(w.dev, w.part, 64, NULL, 0, &w.mem[2]));
	ok = ok && step(&w, b->cold.queue_create(w.dev, w.part, 0, &w.queue)) &&
	     load(&w) && bad_module(&w) && compute(&w) &&
	     (cfg->memory == 2 || extras(&w));
	(void)ok;
	put_away(&w);
	return w.first;
}

/* ---- failures ---------------------------------------------------------------------- */

static const struct {
	uint32_t result;
	int err;
	const char *hex;
} results[] = {
	{LZ_ERROR_DEVICE_LOST, EIO, "0x70000001"},
	{LZ_ERROR_OUT_OF_HOST_MEMORY, ENOMEM, "0x70000002"},
	{LZ_ERROR_OUT_OF_DEVICE_MEMORY, ENOSPC, "0x70000003"},
	{LZ_ERROR_UNSUPPORTED_FEATURE, ENOTSUP, "0x78000003"},
	{LZ_ERROR_INSUFFICIENT_PERMISSIONS, EPERM, "0x70010000"},
	{LZ_ERROR_HANDLE_OBJECT_IN_USE, EBUSY, "0x78000006"},
	{LZ_ERROR_UNKNOWN, EIO, "0x7ffffffe"},
};

/* Calls that may fail unseen: what they are for is given up, and nothing else. */
static bool may_be_silent(const char *call, uint64_t nth, uint64_t times)
{
	static const char *const at_close[] = {"zeContextDestroy", "zeCommandListDestroy",
					       "zeEventDestroy", "zeEventPoolDestroy",
					       "zeMemFree"};
	size_t i;

	/* What a compiler says; the error itself is told all the same. */
	if (strncmp(call, "zeModuleBuildLog", 16) == 0)
		return true;
	/* hal_close cannot fail: it tries twice. */
	for (i = 0; i < sizeof(at_close) / sizeof(at_close[0]); i++)
		if (strcmp(call, at_close[i]) == 0 && nth == times)
			return true;
	/* A device is as good without an address. */
	return strcmp(call, "zeDevicePciGetPropertiesExt") == 0;
}

static uint32_t failed_calls, bad;

static void complain(const char *call, uint64_t nth, uint32_t r, const struct outcome *o,
		     const char *why)
{
	bad++;
	print_error("%s number %u answers %s: %s: errno %d, text \"%s\"\n", call,
		    (unsigned)nth, results[r].hex, why, -o->err, o->text);
}

static void fail_once(const struct hal_bk_config *cfg, const char *call, uint64_t nth,
		      uint64_t times, uint32_t r)
{
	const struct lz_stand_in *s = stand_in();
	uint32_t live = s->live();
	const char *misuse;
	struct outcome o;

	s->reset();
	assert_int_equal(s->break_call(call, nth, results[r].result), 0);
	o = run(cfg);
	if (s->armed())
		return; /* it was not called that often this time */
	failed_calls++;
	if (o.err) {
		/* A device that is lost in silence is found lost by the next call. */
		bool named = strstr(o.text, call) ||
			     (results[r].result == LZ_ERROR_DEVICE_LOST &&
			      may_be_silent(call, nth, times));

		if (!named || !strstr(o.text, results[r].hex))
			complain(call, nth, r, &o, "the text does not name it");
		/* A command that fails is a fault of the device, whatever it was. */
		else if (-o.err != results[r].err && o.err != -EIO)
			complain(call, nth, r, &o, "not its errno");
	} else if (!may_be_silent(call, nth, times)) {
		complain(call, nth, r, &o, "nobody was told");
	}
	if (s->live() != live)
		complain(call, nth, r, &o, "something was left at the driver");
	if (s->misuse(&misuse))
		complain(call, nth, r, &o, misuse);
}

static void fail_all(const struct hal_bk_config *cfg)
{
	const struct lz_stand_in *s = stand_in();
	uint64_t times[LZ_CALL_COUNT], n;
	struct outcome o;
	uint32_t c;

	s->reset();
	o = run(cfg);
	if (o.err)
		fail_msg("without a failure: %d %s", o.err, o.text);
	for (c = 0; c < LZ_CALL_COUNT; c++)
		times[c] = s->calls(call_names[c]);
	for (c = 0; c < LZ_CALL_COUNT; c++) {
		/* The same call for the hundredth time is the same call. */
		uint64_t all = times[c] < 24 ? times[c] : 24;

		if (strcmp(call_names[c], "zeInit") == 0)
			continue; /* once a process: test_loader */
		for (n = 1; n <= all; n++)
			fail_once(cfg, call_names[c], n, times[c],
				  (uint32_t)((c + n) %
					     (sizeof(results) / sizeof(results[0]))));
	}
	s->reset();
	o = run(cfg);
	if (o.err)
		fail_msg("after all failures: %d %s", o.err, o.text);
}

static void immediate(void **state)
{
	const struct hal_bk_config cfg = {.clock = 1};

	(void)state;
	fail_all(&cfg);
	assert_int_equal(bad, 0);
}

static void regular(void **state)
{
	const struct hal_bk_config cfg = {.clock = 1, .lists = 1, .memory = 1};

	(void)state;
	fail_all(&cfg);
	assert_int_equal(bad, 0);
}

static void host_memory(void **state)
{
	const struct hal_bk_config cfg = {.clock = 1, .memory = 2};

	(void)state;
	fail_all(&cfg);
	assert_int_equal(bad, 0);
}

/* The calls of the runs above are all there are. */
static void every_call(void **state)
{
	/* Once a process; when something is stuck at close. */
	static const char *const elsewhere[] = {"zeInit", "zeFenceHostSynchronize"};
	const struct lz_stand_in *s = stand_in();
	const struct hal_bk_config cfg[3] = {{.clock = 1},
					     {.clock = 1, .lists = 1, .memory = 1},
					     {.clock = 1, .memory = 2}};
	uint32_t c, k, missing = 0;

	(void)state;
	s->reset();
	for (k = 0; k < 3; k++)
		assert_int_equal(run(&cfg[k]).err, 0);
	for (c = 0; c < LZ_CALL_COUNT; c++) {
		if (s->calls(call_names[c]) || strcmp(call_names[c], elsewhere[0]) == 0 ||
		    strcmp(call_names[c], elsewhere[1]) == 0)
			continue;
		if (!build_logs() && strncmp(call_names[c], "zeModuleBuildLog", 16) == 0)
			continue;
		missing++;
		print_error("%s is never called\n", call_names[c]);
	}
	assert_int_equal(missing, 0);
}

/* What the core does not do, the backend refuses all the same. */
static void suspend_out_of_turn(void **state)
{
	const struct hal_bk_partition_desc desc = {.units = 1, .rows = 1, .cols = 1};
	const struct hal_bk_config cfg = {.clock = 1};
	struct hal_bk_cmd nop = {.op = HAL_OP_NOP, .cookie = 1};
	struct hal_bk_event ev[4];
	struct world w = {0};

	(void)state;
	stand_in()->reset();
	assert_int_equal(b->cold.open(&cfg, 0, &w.dev), 0);
	assert_int_equal(b->cold.partition_create(w.dev, &desc, &w.part), 0);
	assert_int_equal(b->cold.queue_create(w.dev, w.part, 0, &w.queue), 0);
	assert_int_equal(b->hot.resume(w.dev, w.queue), -EINVAL);
	assert_non_null(strstr(host_text, "is not suspended"));
	assert_int_equal(b->hot.suspend(w.dev, w.queue, HAL_SUSPEND_KILL, 6), -ENOTSUP);
	assert_int_equal(b->hot.submit(w.dev, w.queue, &nop), 0);
	assert_int_equal(b->hot.suspend(w.dev, w.queue, HAL_SUSPEND_DRAIN, 7), 0);
	/* The first one's answer is under way. */
	assert_int_equal(b->hot.suspend(w.dev, w.queue, HAL_SUSPEND_DRAIN, 8), -EBUSY);
	assert_non_null(strstr(host_text, "is suspended already"));
	assert_int_equal(b->hot.submit(w.dev, w.queue, &nop), -EAGAIN);
	assert_int_equal(b->hot.resume(w.dev, w.queue), -EBUSY);
	assert_non_null(strstr(host_text, "is not quiet yet"));
	assert_int_equal(b->cold.queue_destroy(w.dev, w.queue), -EBUSY);
	assert_int_equal(b->hot.poll(w.dev, UINT64_MAX, ev, 1), 1);
	assert_int_equal(ev[0].kind, HAL_BK_DONE);
	/* Nothing is in flight; it is not told of it yet. */
	assert_int_equal(b->hot.resume(w.dev, w.queue), -EBUSY);
	assert_int_equal(b->cold.queue_destroy(w.dev, w.queue), -EBUSY);
	assert_int_equal(b->hot.poll(w.dev, UINT64_MAX, ev, 4), 1);
	assert_int_equal(ev[0].kind, HAL_BK_QUIET);
	assert_int_equal(ev[0].cookie, 7);
	assert_int_equal(b->hot.suspend(w.dev, w.queue, HAL_SUSPEND_DRAIN, 9), -EBUSY);
	assert_int_equal(b->hot.resume(w.dev, w.queue), 0);
	assert_int_equal(b->hot.submit(w.dev, w.queue, &nop), 0);
	assert_int_equal(b->cold.queue_destroy(w.dev, w.queue), -EBUSY);
	w.inflight = 1;
	put_away(&w);
	assert_int_equal(w.first.err, 0);
}

static int setup(void **state)
{
	(void)state;
	b = hal_backend_levelzero(&host);
	return b && stand_in() ? 0 : -1;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(immediate),           cmocka_unit_test(regular),
		cmocka_unit_test(host_memory),         cmocka_unit_test(every_call),
		cmocka_unit_test(suspend_out_of_turn),
	};
	int rc;

	/* Without the NPU, of which a text is told each time. */
	setenv("ZE_AFFINITY_MASK", "0,1,2,3", 1);
	rc = cmocka_run_group_tests(tests, setup, NULL);

	printf("figure levelzero.faults.calls %u\n", failed_calls);
	printf("figure levelzero.faults.bad %u\n", bad);
	return rc;
}

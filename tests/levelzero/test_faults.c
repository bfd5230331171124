/* SPDX-License-Identifier: Apache-2.0 */
/* Every vendor call that the backend makes fails in turn; tests/fakes/faults.h. */
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
#include "tests/fakes/faults.h"

static const struct hal_backend *b;

static const char *const call_names[LZ_CALL_COUNT] = {
#define NAME(table, slot, need, name, params, args) #name,
	LZ_CALLS(NAME)
#undef NAME
};

static bool load(struct faults_world *w)
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
	ok = faults_step(w, b->cold.program_load(w->dev, m, m->bytes, &raw));
	if (raw)
		ok = faults_step(w, b->cold.program_unload(w->dev, raw)) && ok;
	ok = ok && faults_step(w, b->cold.program_load(w->dev, image, size, &w->prog)) &&
	     faults_step(w, b->cold.program_bind(w->dev, w->prog, w->part, &bytes)) &&
	     faults_step(w, b->cold.kernel_get(w->dev, w->prog, 0, &info, &w->kernel));
	/* The image may go only now: modules of other tiles are made from it. */
	free(image);
	return ok;
}

static bool bad_module(struct faults_world *w)
{
	char junk[64] = "\x7f"
			"ELF of another device";
	void *prog = NULL;
	int err = b->cold.program_load(w->dev, junk, sizeof(junk), &prog);

	if (err == -EINVAL && strstr(host_text, "zeModuleCreate") &&
	    strstr(host_text, "INVALID_NATIVE_BINARY"))
		return true;
	faults_step(w, err ? err : -EPROTO);
	return false;
}

static bool extras(struct faults_world *w)
{
	const struct hal_levelzero_extension *x = b->cold.extension(w->dev, "levelzero");
	struct hal_levelzero_scheduler s = HAL_INIT(hal_levelzero_scheduler);
	struct hal_levelzero_ipc ipc;
	void *address = NULL;
	uint32_t mode;

	assert_non_null(x);
	for (mode = HAL_LEVELZERO_TIMEOUT; mode <= HAL_LEVELZERO_EXCLUSIVE; mode++) {
		if (!faults_step(w, x->scheduler_set(w->dev, mode)) ||
		    !faults_step(w, x->scheduler_get(w->dev, &s)))
			return false;
		assert_int_equal(s.mode, mode);
	}
	if (!faults_step(w, x->cache_reserve(w->dev, 3, 65536)) ||
	    !faults_step(w, x->cache_advise(w->dev, 1, 1)) ||
	    !faults_step(w, x->ipc_export(w->dev, 1, &ipc)) ||
	    !faults_step(w, x->ipc_open(w->dev, &ipc, &address)))
		return false;
	if (faults_step(w, x->ipc_close(w->dev, address)))
		return true;
	/* Who could not close tries again, as with any handle. */
	assert_int_equal(x->ipc_close(w->dev, address), 0);
	return false;
}

/* Everything the backend can do, once; the first thing that goes wrong ends it. */
static struct faults_outcome run(const struct hal_bk_config *cfg)
{
	const struct hal_bk_partition_desc part = {.units = 2, .rows = 1, .cols = 2};
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
	ok = ok && faults_step(&w, b->cold.open(cfg, 0, &w.dev));
	ok = ok && faults_step(&w, b->cold.get_info(w.dev, info)) &&
	     faults_step(&w, b->cold.partition_create(w.dev, &part, &w.part));
	ok = ok &&
	     faults_step(&w, b->cold.mem_alloc(w.dev, w.part, 64, NULL, 0, &w.mem[0])) &&
	     faults_step(&w, b->cold.mem_alloc(w.dev, w.part, 64, NULL,
					       HAL_BUFFER_MAPPABLE, &w.mem[1])) &&
	     faults_step(&w, b->cold.mem_alloc(w.dev, w.part, 64, NULL, 0, &w.mem[2]));
	ok = ok && faults_step(&w, b->cold.queue_create(w.dev, w.part, 0, &w.queue)) &&
	     load(&w) && bad_module(&w) && faults_compute(&w, 120000000) &&
	     (cfg->memory == 2 || extras(&w));
	(void)ok;
	faults_put_away(&w);
	return w.first;
}

/* ---- failures ---------------------------------------------------------------------- */

static const struct faults_result results[] = {
	{LZ_ERROR_DEVICE_LOST, EIO, "0x70000001"},
	{LZ_ERROR_OUT_OF_HOST_MEMORY, ENOMEM, "0x70000002"},
	{LZ_ERROR_OUT_OF_DEVICE_MEMORY, ENOSPC, "0x70000003"},
	{LZ_ERROR_UNSUPPORTED_FEATURE, ENOTSUP, "0x78000003"},
	{LZ_ERROR_INSUFFICIENT_PERMISSIONS, EPERM, "0x70010000"},
	{LZ_ERROR_HANDLE_OBJECT_IN_USE, EBUSY, "0x78000006"},
	{LZ_ERROR_UNKNOWN, EIO, "0x7ffffffe"},
};

/* Calls that may fail unseen: what they are for is given up, and nothing else. */
static bool silent(const char *call, bool last, bool by_close)
{
	static const char *const at_close[] = {"zeContextDestroy", "zeCommandListDestroy",
					       "zeEventDestroy", "zeEventPoolDestroy",
					       "zeMemFree"};
	size_t i;

	(void)by_close;
	/* What a compiler says; the error itself is told all the same. */
	if (strncmp(call, "zeModuleBuildLog", 16) == 0)
		return true;
	/* hal_close cannot fail: it tries twice. */
	for (i = 0; i < sizeof(at_close) / sizeof(at_close[0]); i++)
		if (strcmp(call, at_close[i]) == 0 && last)
			return true;
	/* With two drivers a loader of 1.20 asks each on its own account, and keeps quiet
	 * about one that fails. */
	if (strcmp(call, "zeDriverGet") == 0 &&
	    strchr(getenv("ZE_ENABLE_ALT_DRIVERS"), ','))
		return true;
	/* A device is as good without an address. */
	return strcmp(call, "zeDevicePciGetPropertiesExt") == 0;
}

/* A device that is lost in silence is found lost by the next call. */
static bool told_later(const char *call, const struct faults_result *r, bool is_silent)
{
	(void)call;
	return r->result == LZ_ERROR_DEVICE_LOST && is_silent;
}

/* Once a process: test_loader. */
static bool left_out(const char *call)
{
	return strcmp(call, "zeInit") == 0;
}

static struct faults all = {
	.names = call_names,
	.name_count = LZ_CALL_COUNT,
	.results = results,
	.result_count = sizeof(results) / sizeof(results[0]),
	.most = 24,
	.run = run,
	.left_out = left_out,
	.silent = silent,
	.told_later = told_later,
};

static const struct hal_bk_config by_immediate = {.clock = 1};
static const struct hal_bk_config by_regular = {.clock = 1, .lists = 1, .memory = 1};
static const struct hal_bk_config by_host = {.clock = 1, .memory = 2};

static void immediate(void **state)
{
	(void)state;
	faults_all(&all, &by_immediate);
}

static void regular(void **state)
{
	(void)state;
	faults_all(&all, &by_regular);
}

static void host_memory(void **state)
{
	(void)state;
	faults_all(&all, &by_host);
}

/* Once a process; when something is stuck at close; not with every driver. */
static bool elsewhere(const char *call)
{
	return left_out(call) || strcmp(call, "zeFenceHostSynchronize") == 0 ||
	       (!build_logs() && strncmp(call, "zeModuleBuildLog", 16) == 0);
}

/* The calls of the runs above are all there are. */
static void every_call(void **state)
{
	const struct hal_bk_config *const cfgs[] = {&by_immediate, &by_regular, &by_host};

	(void)state;
	faults_cover(&all, cfgs, 3, elsewhere);
}

/* What the core does not do, the backend refuses all the same. */
static void suspend_out_of_turn(void **state)
{
	const struct hal_bk_partition_desc desc = {.units = 1, .rows = 1, .cols = 1};
	const struct hal_bk_config cfg = {.clock = 1};
	struct hal_bk_cmd nop = {.op = HAL_OP_NOP, .cookie = 1};
	struct hal_bk_event ev[4];
	struct faults_world w = {.b = b};

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
	assert_non_null(strstr(host_text, "is still being suspended"));
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
	faults_put_away(&w);
	assert_int_equal(w.first.err, 0);
}

static int setup(void **state)
{
	const struct lz_stand_in *s = stand_in();

	(void)state;
	b = hal_backend_levelzero(&host);
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
		cmocka_unit_test(immediate),           cmocka_unit_test(regular),
		cmocka_unit_test(host_memory),         cmocka_unit_test(every_call),
		cmocka_unit_test(suspend_out_of_turn),
	};
	int rc;

	/* Without the NPU, of which a text is told each time. */
	setenv("ZE_AFFINITY_MASK", "0,1,2,3", 1);
	rc = cmocka_run_group_tests(tests, setup, NULL);

	printf("figure levelzero.faults.calls %u\n", faults_made);
	printf("figure levelzero.faults.bad %u\n", faults_bad);
	return rc;
}

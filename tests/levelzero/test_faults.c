/* SPDX-License-Identifier: Apache-2.0 */
/* Every call of Level Zero that the backend makes fails in turn: tests/vendor/faults.h.
 */
#define _GNU_SOURCE
#include "tests/vendor/faults.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <hal/levelzero.h>

#include "backends/levelzero/ze_calls.h"
#include "host.h"

static const char *const call_names[LZ_CALL_COUNT] = {
#define NAME(table, slot, need, name, params, args) #name,
	LZ_CALLS(NAME)
#undef NAME
};

static bool load(struct faults_world *w)
{
	static const char *const kernels[] = {"work:m8", "iota:m4"};
	static const char junk[64] = "\x7f"
				     "ELF of another device";
	static const char *const texts[] = {"zeModuleCreate", "INVALID_NATIVE_BINARY",
					    NULL};
	const struct hal_bk_cold *cold = &w->b->cold;
	size_t size;
	void *image = make_image(kernels, 2, 4, &size), *raw = NULL, *copy;
	struct lz_stand_in_module *m;
	bool ok;

	/* What is behind the table, as it is: names come from the driver. */
	m = (void *)((char *)image + sizeof(struct hal_levelzero_image) +
		     2 * sizeof(struct hal_levelzero_kernel));
	ok = faults_step(w, cold->program_load(w->dev, m, m->bytes, &raw));
	if (raw)
		ok = faults_step(w, cold->program_unload(w->dev, raw)) && ok;
	if (!ok) {
		free(image);
		return false;
	}
	if (!faults_load(w, image, size, &w->prog, &w->kernel))
		return false;
	copy = malloc(sizeof(junk));
	assert_non_null(copy);
	memcpy(copy, junk, sizeof(junk));
	return faults_refused(w, copy, sizeof(junk), texts);
}

/* A buffer that is exported and imported. */
static bool share(struct faults_world *w)
{
	const struct hal_bk_cold *cold = &w->b->cold;
	void *from = NULL, *to = NULL;
	int fd = -1;
	bool ok = faults_step(w, cold->mem_alloc(w->dev, w->part, 4096, NULL,
						 HAL_BUFFER_EXPORTABLE, &from)) &&
		  faults_step(w, cold->mem_export(w->dev, from, &fd)) &&
		  faults_step(w, cold->mem_import(w->dev, w->part, fd, 4096, 0, &to));

	if (fd >= 0)
		close(fd);
	if (to)
		ok = faults_step(w, cold->mem_free(w->dev, to)) && ok;
	if (from)
		ok = faults_step(w, cold->mem_free(w->dev, from)) && ok;
	return ok;
}

/* A buffer that is evicted, comes back, and one that is destroyed while evicted.  On the
 * tile of the other buffers, so that one lane copies. */
static bool evict(struct faults_world *w)
{
	const struct hal_bk_partition_desc desc = {.units = 1,
						   .rows = 1,
						   .cols = 1,
						   .memory_bytes = 4096,
						   .address_bytes = 8192};
	const struct hal_bk_cold *cold = &w->b->cold;
	const struct hal_bk_extra *extra = &w->b->extra;
	struct hal_device_info info = HAL_INIT(hal_device_info);
	uint32_t put = 4711, got = 0;
	void *part = NULL, *mem = NULL;
	bool ok;

	if (!faults_step(w, cold->get_info(w->dev, &info)))
		return false;
	if (!(info.caps & HAL_CAP_EVICT))
		return true;
	ok = faults_step(w, cold->partition_create(w->dev, &desc, &part)) &&
	     faults_step(w, cold->mem_alloc(w->dev, part, 4096, NULL, 0, &mem)) &&
	     faults_step(w, extra->mem_out(w->dev, mem)) &&
	     faults_step(w, extra->mem_in(w->dev, mem, NULL)) &&
	     faults_step(w, cold->mem_write(w->dev, mem, 8, &put, 4)) &&
	     faults_step(w, cold->mem_read(w->dev, mem, 8, &got, 4));
	if (ok)
		assert_int_equal(got, put);
	if (mem)
		ok = faults_step(w, cold->mem_free(w->dev, mem)) && ok;
	mem = NULL;
	if (ok)
		ok = faults_step(w, cold->mem_alloc(w->dev, part, 4096, NULL, 0, &mem)) &&
		     faults_step(w, extra->mem_out(w->dev, mem));
	if (mem)
		ok = faults_step(w, cold->mem_free(w->dev, mem)) && ok;
	if (part)
		ok = faults_step(w, cold->partition_destroy(w->dev, part)) && ok;
	return ok;
}

static bool extras(struct faults_world *w)
{
	const struct hal_levelzero_extension *x =
		w->b->cold.extension(w->dev, "levelzero");
	struct hal_levelzero_scheduler s = HAL_INIT(hal_levelzero_scheduler);
	struct hal_levelzero_ipc ipc;
	void *address = NULL;
	uint32_t mode;

	assert_non_null(x);
	if (!share(w) || !evict(w))
		return false;
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

static const struct faults_result results[] = {
	{LZ_ERROR_DEVICE_LOST, EIO, "0x70000001", FAULTS_LATER_IF_SILENT},
	{LZ_ERROR_OUT_OF_HOST_MEMORY, ENOMEM, "0x70000002", FAULTS_AT_ONCE},
	{LZ_ERROR_OUT_OF_DEVICE_MEMORY, ENOSPC, "0x70000003", FAULTS_AT_ONCE},
	{LZ_ERROR_UNSUPPORTED_FEATURE, ENOTSUP, "0x78000003", FAULTS_AT_ONCE},
	{LZ_ERROR_INSUFFICIENT_PERMISSIONS, EPERM, "0x70010000", FAULTS_AT_ONCE},
	{LZ_ERROR_HANDLE_OBJECT_IN_USE, EBUSY, "0x78000006", FAULTS_AT_ONCE},
	{LZ_ERROR_UNKNOWN, EIO, "0x7ffffffe", FAULTS_AT_ONCE},
};

/* Calls that may fail unseen: what they are for is given up, and nothing else. */
static const char *const silent[] = {
	/* What a compiler says; the error itself is told all the same. */
	"zeModuleBuildLogDestroy", "zeModuleBuildLogGetString",
	/* A device is as good without an address. */
	"zeDevicePciGetPropertiesExt",
	/* A device that is only listed is as good without registered memory. */
	"zeDriverGetExtensionFunctionAddress",
	/* ... and without buffers that are shared. */
	"zeDeviceGetExternalMemoryProperties",
	/* Memory of a buffer that is evicted: it is given back later. */
	"zePhysicalMemDestroy",
	/* Without memory the driver cannot say how a tile is: it is asked again. */
	"zeDeviceGetStatus", NULL};

/* hal_close cannot fail: it tries twice. */
static const char *const retried[] = {"zeContextDestroy", "zeCommandListDestroy",
				      "zeEventDestroy",   "zeEventPoolDestroy",
				      "zeMemFree",        NULL};

/* With two drivers a loader of 1.20 asks each on its own account, and keeps quiet about
 * one that fails. */
static bool silent_here(const char *call)
{
	return strcmp(call, "zeDriverGet") == 0 &&
	       strchr(getenv("ZE_ENABLE_ALT_DRIVERS"), ',');
}

/* Buffers stay on the device where this fails at open. */
static const char *const tried_first[] = {"zeVirtualMemReserve",
					  "zeVirtualMemFree",
					  "zeVirtualMemQueryPageSize",
					  "zeVirtualMemMap",
					  "zeVirtualMemUnmap",
					  "zePhysicalMemCreate",
					  NULL};

/* See test_loader.c; when something is stuck at close. */
static const char *const once[] = {"zeInit", NULL};
static const char *const elsewhere[] = {"zeFenceHostSynchronize", NULL};

/* Not with every driver. */
static bool elsewhere_here(const char *call)
{
	return !build_logs() && strncmp(call, "zeModuleBuildLog", 16) == 0;
}

static const struct hal_bk_config immediate = {.clock = 1};
static const struct hal_bk_config regular = {.clock = 1, .lists = 1, .memory = 1};
static const struct hal_bk_config host_memory = {.clock = 1, .memory = 2};
static const struct faults_way ways[] = {
	{"immediate", &immediate, extras},
	{"regular", &regular, extras},
	{"host_memory", &host_memory, NULL},
};

/* What the core does not do, the backend refuses all the same. */
static void suspend_out_of_turn(void **state)
{
	const struct hal_bk_partition_desc desc = {.units = 1, .rows = 1, .cols = 1};
	struct hal_bk_cmd nop = {.op = HAL_OP_NOP, .cookie = 1};
	struct hal_bk_event ev[4];
	const struct hal_backend *b = hal_backend_levelzero(&host);
	struct faults_world w = {.b = b};

	(void)state;
	stand_in()->reset();
	assert_int_equal(b->cold.open(&immediate, 0, &w.dev), 0);
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

static bool prepare(struct faults_fake *fake)
{
	/* Without the NPU, of which a text is told each time. */
	setenv("ZE_AFFINITY_MASK", "0,1,2,3", 1);
	return FAULTS_FIND(fake, stand_in());
}

static const struct CMUnitTest cases[] = {cmocka_unit_test(suspend_out_of_turn)};

const struct faults_vendor faults_vendor = {
	.name = "levelzero",
	.backend = hal_backend_levelzero,
	.prepare = prepare,
	.devices = 4,
	.part = {.units = 2, .rows = 1, .cols = 2},
	.bytes = 64,
	.flags = HAL_BUFFER_MAPPABLE,
	.load = load,
	.work_ns = 120000000,
	.calls = call_names,
	.call_count = sizeof(call_names) / sizeof(call_names[0]),
	.results = results,
	.result_count = sizeof(results) / sizeof(results[0]),
	.most = 24,
	.silent = silent,
	.silent_last = retried,
	.silent_first = tried_first,
	.once = once,
	.elsewhere = elsewhere,
	.silent_here = silent_here,
	.elsewhere_here = elsewhere_here,
	.ways = ways,
	.way_count = sizeof(ways) / sizeof(ways[0]),
	.cases = cases,
	.case_count = 1,
};

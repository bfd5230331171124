/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stand-in's own rules, by its own calls: what the backend's tests rely on when they
 * find nothing wrong.  Each case in a process of its own: what is undefined is done
 * there, counted, and left alone.
 */
#define _GNU_SOURCE
#include "host.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "backends/levelzero/internal.h"

enum { ROOTS = 5, MS = 1000000 };

/* A case ends where something is not as it should be. */
#define CHECK(is)                                                                        \
	do {                                                                             \
		if (!(is)) {                                                             \
			fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #is); \
			_exit(1);                                                        \
		}                                                                        \
	} while (0)
#define OK(call) CHECK((call) == LZ_SUCCESS)

static void *driver, *roots[16], *ctx;
static uint32_t root_count;
static uint32_t (*drive)(uint32_t on);
static uint32_t (*advance)(uint64_t until_ns, uint64_t *now_ns, uint32_t *idle);

static void begin(void)
{
	const struct ze_context_desc d = {.stype = LZ_STYPE_CONTEXT_DESC};
	uint32_t one = 1;

	CHECK(hal_backend_levelzero(&host) && stand_in());
	CHECK(lz_load("libze_loader.so.1") == 0);
	OK(lz.zeDriverGet(&one, &driver));
	root_count = 16;
	OK(lz.zeDeviceGet(driver, &root_count, roots));
	OK(lz.zeContextCreate(driver, &d, &ctx));
	OK(lz.zeDriverGetExtensionFunctionAddress(driver, "halStandInClockDrive",
						  (void **)(void *)&drive));
	OK(lz.zeDriverGetExtensionFunctionAddress(driver, "halStandInClockAdvance",
						  (void **)(void *)&advance));
	OK(drive(1));
}

static uint64_t now(void)
{
	return stand_in()->now();
}

/* Past every event until then. */
static void run_for(uint64_t ns)
{
	uint64_t until = now() + ns, at;
	uint32_t idle;

	do
		OK(advance(until, &at, &idle));
	while (at < until);
}

/* To the next event, within 1 s. */
static void run_to_event(void)
{
	uint64_t at;
	uint32_t idle;

	OK(advance(now() + 1000 * MS, &at, &idle));
}

static void *tile(uint32_t root, uint32_t index)
{
	uint32_t count = 4;
	void *subs[4];

	OK(lz.zeDeviceGetSubDevices(roots[root], &count, subs));
	CHECK(index < count);
	return subs[index];
}

static void *memory(void *device, size_t bytes)
{
	const struct ze_device_mem_alloc_desc d = {
		.stype = LZ_STYPE_DEVICE_MEM_ALLOC_DESC};
	void *p;

	OK(lz.zeMemAllocDevice(ctx, &d, bytes, 64, device, &p));
	return p;
}

static void *host_memory(size_t bytes)
{
	const struct ze_host_mem_alloc_desc d = {.stype = LZ_STYPE_HOST_MEM_ALLOC_DESC};
	void *p;

	OK(lz.zeMemAllocHost(ctx, &d, bytes, 64, &p));
	return p;
}

static struct ze_command_queue_desc queue_desc(uint32_t ordinal, uint32_t index,
					       uint32_t priority)
{
	return (struct ze_command_queue_desc){.stype = LZ_STYPE_COMMAND_QUEUE_DESC,
					      .ordinal = ordinal,
					      .index = index,
					      .mode = LZ_MODE_ASYNCHRONOUS,
					      .priority = priority};
}

/* An immediate one. */
static void *list_of(void *device, uint32_t ordinal, uint32_t index, uint32_t priority)
{
	const struct ze_command_queue_desc d = queue_desc(ordinal, index, priority);
	void *list;

	OK(lz.zeCommandListCreateImmediate(ctx, device, &d, &list));
	return list;
}

static void *queue_of(void *device)
{
	const struct ze_command_queue_desc d = queue_desc(0, 0, LZ_PRIORITY_NORMAL);
	void *queue;

	OK(lz.zeCommandQueueCreate(ctx, device, &d, &queue));
	return queue;
}

/* A regular one. */
static void *record_of(void *device)
{
	const struct ze_command_list_desc d = {.stype = LZ_STYPE_COMMAND_LIST_DESC};
	void *list;

	OK(lz.zeCommandListCreate(ctx, device, &d, &list));
	return list;
}

static void *pool_of(void *device)
{
	const struct ze_event_pool_desc d = {.stype = LZ_STYPE_EVENT_POOL_DESC,
					     .flags = LZ_POOL_HOST_VISIBLE |
						      LZ_POOL_KERNEL_TIMESTAMP,
					     .count = 8};
	void *pool;

	OK(lz.zeEventPoolCreate(ctx, &d, device ? 1 : 0, device ? &device : NULL, &pool));
	return pool;
}

static void *event_in(void *pool)
{
	const struct ze_event_desc d = {.stype = LZ_STYPE_EVENT_DESC};
	void *event;

	OK(lz.zeEventCreate(pool, &d, &event));
	return event;
}

static void *event(void)
{
	return event_in(pool_of(NULL));
}

static void *fence_of(void *queue)
{
	const struct ze_fence_desc d = {.stype = LZ_STYPE_FENCE_DESC};
	void *fence;

	OK(lz.zeFenceCreate(queue, &d, &fence));
	return fence;
}

static void *module_of(void *device)
{
	static const struct {
		struct lz_stand_in_module head;
		char names[2][32];
	} image = {{LZ_STAND_IN_MAGIC, sizeof(image), 2, 0}, {"work", "wild"}};
	const struct ze_module_desc d = {.stype = LZ_STYPE_MODULE_DESC,
					 .format = LZ_FORMAT_NATIVE,
					 .input_size = sizeof(image),
					 .input = (const void *)&image};
	void *module;

	OK(lz.zeModuleCreate(ctx, device, &d, &module, NULL));
	return module;
}

static void *kernel_of(void *module, const char *name)
{
	const struct ze_kernel_desc d = {.stype = LZ_STYPE_KERNEL_DESC, .name = name};
	void *kernel;

	OK(lz.zeKernelCreate(module, &d, &kernel));
	return kernel;
}

/* Takes so long on a tile of its own. */
static void work(void *list, void *device, uint64_t ns, void *signal)
{
	const struct ze_group_count one = {1, 1, 1};
	void *kernel = kernel_of(module_of(device), "work");
	void *p = memory(device, 64);

	OK(lz.zeKernelSetArgumentValue(kernel, 0, sizeof(p), &p));
	OK(lz.zeKernelSetArgumentValue(kernel, 1, sizeof(ns), &ns));
	OK(lz.zeCommandListAppendLaunchKernel(list, kernel, &one, signal, 0, NULL));
}

/* The next that has ended. */
static struct lz_stand_in_job job(void)
{
	struct lz_stand_in_job j;

	CHECK(stand_in()->jobs(&j, 1) == 1);
	return j;
}

static void misused(const char *what)
{
	const char *text;

	CHECK(stand_in()->misuse(&text) == 1);
	if (strstr(text, what))
		return;
	fprintf(stderr, "\"%s\" has no \"%s\"\n", text, what);
	_exit(1);
}

/* ---- time and memory --------------------------------------------------------------- */

static void copies_take_time(void)
{
	void *list = list_of(roots[3], 0, 0, LZ_PRIORITY_NORMAL), *e = event();
	char *from = host_memory(1 << 20), *to = memory(roots[3], 1 << 20);
	struct lz_stand_in_job j;

	memset(from, 7, 1 << 20);
	OK(lz.zeCommandListAppendMemoryCopy(list, to, from, 1 << 20, e, 0, NULL));
	run_for(65000);
	CHECK(lz.zeEventQueryStatus(e) == LZ_NOT_READY);
	run_for(1000);
	OK(lz.zeEventQueryStatus(e));
	j = job();
	CHECK(j.end_ns - j.start_ns == 200 + (1 << 16));
	OK(lz.zeCommandListAppendMemoryFill(list, to, "\1", 1, 1600, NULL, 0, NULL));
	run_for(MS);
	j = job();
	CHECK(j.end_ns - j.start_ns == 200 + 100);
	/* Between host and device it may be made to take longer; not within one. */
	stand_in()->slow_copies(5000);
	OK(lz.zeCommandListAppendMemoryCopy(list, to, from, 16, NULL, 0, NULL));
	run_for(MS);
	j = job();
	CHECK(j.end_ns - j.start_ns == 201 + 5000);
	OK(lz.zeCommandListAppendMemoryCopy(list, to, to + 64, 16, NULL, 0, NULL));
	run_for(MS);
	j = job();
	CHECK(j.end_ns - j.start_ns == 201);
}

/* Can the host read there? */
static bool readable(const void *p)
{
	int fd[2], n;

	CHECK(pipe(fd) == 0);
	n = (int)write(fd[1], p, 1);
	CHECK(n == 1 || errno == EFAULT);
	(void)close(fd[0]);
	(void)close(fd[1]);
	return n == 1;
}

static void host_cannot_read(void)
{
	const struct ze_device_mem_alloc_desc d = {
		.stype = LZ_STYPE_DEVICE_MEM_ALLOC_DESC};
	const struct ze_host_mem_alloc_desc h = {.stype = LZ_STYPE_HOST_MEM_ALLOC_DESC};
	void *list = list_of(roots[0], 0, 0, LZ_PRIORITY_NORMAL);
	char *hidden = memory(roots[0], 4096), *seen = host_memory(4096);
	void *shared;

	OK(lz.zeMemAllocShared(ctx, &d, &h, 4096, 64, roots[0], &shared));
	CHECK(!readable(hidden) && !readable(hidden + 4095));
	CHECK(readable(seen) && readable(shared));
	/* Its bytes are there all the same. */
	OK(lz.zeCommandListAppendMemoryFill(list, hidden, "\x5a", 1, 4096, NULL, 0,
					    NULL));
	run_for(MS);
	OK(lz.zeCommandListAppendMemoryCopy(list, seen, hidden + 4095, 1, NULL, 0, NULL));
	run_for(MS);
	CHECK(seen[0] == 0x5a);
}

/* More than half of a tile's memory is had by who asks for it. */
static void limits_are_relaxed(void)
{
	const struct ze_relaxed_allocation_limits_exp_desc more = {
		.stype = LZ_STYPE_RELAXED_ALLOCATION_LIMITS_EXP_DESC,
		.flags = LZ_RELAXED_MAX_SIZE};
	struct ze_device_mem_alloc_desc d = {.stype = LZ_STYPE_DEVICE_MEM_ALLOC_DESC};
	void *p;

	OK(lz.zeMemAllocDevice(ctx, &d, 32 << 20, 64, roots[3], &p));
	OK(lz.zeMemFree(ctx, p));
	CHECK(lz.zeMemAllocDevice(ctx, &d, (32 << 20) + 1, 64, roots[3], &p) ==
	      LZ_ERROR_UNSUPPORTED_SIZE);
	d.next = &more;
	OK(lz.zeMemAllocDevice(ctx, &d, (32 << 20) + 1, 64, roots[3], &p));
}

/* ---- engines ----------------------------------------------------------------------- */

/* A root's command has the same engine of each tile at once. */
static void root_runs_on_all_tiles(void)
{
	void *on_tile = list_of(tile(1, 1), 0, 0, LZ_PRIORITY_NORMAL);
	void *on_root = list_of(roots[1], 0, 0, LZ_PRIORITY_NORMAL);
	struct lz_stand_in_job first, second, third;

	work(on_root, roots[1], 1000, NULL);
	run_for(10);
	work(on_tile, tile(1, 1), 1000, NULL);
	run_for(MS);
	first = job();
	second = job();
	CHECK(first.tile == 0 && second.tile == 1);
	CHECK(first.end_ns - first.start_ns == 1000);
	CHECK(second.start_ns == first.end_ns);
	/* It begins when all of them are free. */
	work(on_tile, tile(1, 1), 1000, NULL);
	run_for(10);
	work(on_root, roots[1], 1000, NULL);
	run_for(MS);
	second = job();
	third = job();
	CHECK(second.tile == 1 && third.tile == 0);
	CHECK(third.start_ns == second.end_ns);
	/* Who shares one of its tiles slows all of it. */
	work(list_of(tile(1, 1), 0, 1, LZ_PRIORITY_NORMAL), tile(1, 1), 4000, NULL);
	work(on_root, roots[1], 1000, NULL);
	run_for(MS);
	first = job();
	CHECK(first.tile == 0 && first.end_ns - first.start_ns == 2000);
}

static void engines_share_a_tile(void)
{
	static const struct {
		uint32_t root;
		bool split;
	} cases[] = {{1, false}, {0, true}};

	for (uint32_t i = 0; i < 2; i++) {
		void *t = tile(cases[i].root, 0);
		struct lz_stand_in_job j;

		work(list_of(t, 0, 0, LZ_PRIORITY_NORMAL), t, 1000, NULL);
		work(list_of(t, 0, 1, LZ_PRIORITY_NORMAL), t, 1000, NULL);
		run_for(MS);
		for (int n = 0; n < 2; n++) {
			j = job();
			CHECK(j.end_ns - j.start_ns == (cases[i].split ? 1000 : 2000));
		}
	}
}

/* Whatever was made first. */
static void priorities(void)
{
	static const uint32_t made[2][3] = {
		{LZ_PRIORITY_LOW, LZ_PRIORITY_NORMAL, LZ_PRIORITY_HIGH},
		{LZ_PRIORITY_HIGH, LZ_PRIORITY_NORMAL, LZ_PRIORITY_LOW},
	};
	void *running = list_of(roots[3], 0, 0, LZ_PRIORITY_LOW);
	void *lists[3];

	for (int order = 0; order < 2; order++) {
		for (int i = 0; i < 3; i++)
			lists[i] = list_of(roots[3], 0, 0, made[order][i]);
		work(running, roots[3], 1000, NULL);
		run_for(10);
		for (int i = 0; i < 3; i++)
			work(lists[i], roots[3], 1000, NULL);
		run_for(MS);
		/* What runs is not stopped. */
		CHECK(job().priority == LZ_PRIORITY_LOW);
		for (int i = 3; i-- > 0;)
			CHECK(job().priority == made[0][i]);
	}
}

/* Of equals the one whose turn is the longest ago. */
static void equals_take_turns(void)
{
	void *lists[2] = {list_of(roots[3], 0, 0, LZ_PRIORITY_NORMAL),
			  list_of(roots[3], 0, 0, LZ_PRIORITY_NORMAL)};
	uint64_t took[4];

	for (int i = 0; i < 4; i++)
		work(lists[i / 2], roots[3], i / 2 ? 2000 : 1000, NULL);
	run_for(MS);
	for (int i = 0; i < 4; i++) {
		struct lz_stand_in_job j = job();

		took[i] = j.end_ns - j.start_ns;
	}
	CHECK(took[0] != took[1] && took[0] == took[2] && took[1] == took[3]);
}

/* Low priority is on the first engine of its kind, whatever was asked for. */
static void low_goes_to_the_first(void)
{
	static const struct {
		uint32_t ordinal, index, priority, at_ordinal, at_index;
	} cases[] = {
		{0, 1, LZ_PRIORITY_NORMAL, 0, 1}, {0, 1, LZ_PRIORITY_LOW, 0, 0},
		{2, 1, LZ_PRIORITY_HIGH, 2, 1},   {2, 1, LZ_PRIORITY_LOW, 0, 0},
		{1, 1, LZ_PRIORITY_NORMAL, 1, 1}, {1, 1, LZ_PRIORITY_LOW, 1, 0},
	};
	char *p = memory(tile(1, 0), 64);

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		void *list = list_of(tile(1, 0), cases[i].ordinal, cases[i].index,
				     cases[i].priority);
		struct lz_stand_in_job j;

		OK(lz.zeCommandListAppendMemoryFill(list, p, "\1", 1, 64, NULL, 0, NULL));
		run_for(MS);
		j = job();
		CHECK(j.ordinal == cases[i].at_ordinal && j.index == cases[i].at_index);
	}
}

/* Nothing but events and barriers keeps an immediate list's order. */
static void lists_overtake(void)
{
	void *list = list_of(roots[3], 0, 0, LZ_PRIORITY_NORMAL), *e = event();
	uint8_t *p = memory(roots[3], 64), *seen = host_memory(64);

	OK(lz.zeCommandListAppendMemoryFill(list, p, "\1", 1, 64, NULL, 0, NULL));
	OK(lz.zeCommandListAppendMemoryFill(list, p, "\2", 1, 64, NULL, 0, NULL));
	OK(lz.zeCommandListAppendBarrier(list, NULL, 0, NULL));
	OK(lz.zeCommandListAppendMemoryCopy(list, seen, p, 64, NULL, 0, NULL));
	run_for(MS);
	CHECK(seen[0] == 1);
	OK(lz.zeCommandListAppendMemoryFill(list, p, "\3", 1, 64, e, 0, NULL));
	OK(lz.zeCommandListAppendMemoryFill(list, p, "\4", 1, 64, NULL, 1, &e));
	run_for(MS);
	OK(lz.zeCommandListAppendMemoryCopy(list, seen, p, 64, NULL, 0, NULL));
	run_for(MS);
	CHECK(seen[0] == 4);
}

/* A driver of 1.9, which knows lists in order. */
static void *ordered_list(void)
{
	struct ze_command_queue_desc d = queue_desc(0, 0, LZ_PRIORITY_NORMAL);
	void *list;

	CHECK(setenv("HAL_STAND_IN_ZE_VERSION", "1.9", 1) == 0);
	d.flags = LZ_QUEUE_IN_ORDER;
	OK(lz.zeCommandListCreateImmediate(ctx, roots[3], &d, &list));
	return list;
}

/* The same fills as above, in the order in which they were given. */
static void ordered_lists_do_not(void)
{
	void *list = ordered_list(), *e = event();
	uint8_t *p = memory(roots[3], 64), *seen = host_memory(64);

	OK(lz.zeCommandListAppendMemoryFill(list, p, "\1", 1, 64, NULL, 0, NULL));
	OK(lz.zeCommandListAppendMemoryFill(list, p, "\2", 1, 64, NULL, 0, NULL));
	OK(lz.zeCommandListAppendMemoryCopy(list, seen, p, 64, NULL, 0, NULL));
	OK(lz.zeCommandListAppendBarrier(list, e, 0, NULL));
	run_to_event();
	OK(lz.zeEventQueryStatus(e));
	CHECK(seen[0] == 2);
	CHECK(stand_in()->misuse(NULL) == 0);
}

static void *counted_event(void)
{
	const struct ze_counted_pool_desc counted = {LZ_STYPE_COUNTED_POOL_DESC, NULL,
						     LZ_COUNTED_IMMEDIATE};
	const struct ze_event_pool_desc d = {.stype = LZ_STYPE_EVENT_POOL_DESC,
					     .next = &counted,
					     .flags = LZ_POOL_HOST_VISIBLE,
					     .count = 8};
	void *pool;

	OK(lz.zeEventPoolCreate(ctx, &d, 0, NULL, &pool));
	return event_in(pool);
}

/* It stands for the last command that it was given to, without a reset; for none that has
 * not ended before it was given to one. */
static void counted_events_are_renewed(void)
{
	void *list = ordered_list(), *e = counted_event();
	uint32_t i;

	OK(lz.zeEventQueryStatus(e));
	for (i = 0; i < 3; i++) {
		OK(lz.zeCommandListAppendBarrier(list, e, 0, NULL));
		CHECK(lz.zeEventQueryStatus(e) == LZ_NOT_READY);
		run_for(MS);
		OK(lz.zeEventQueryStatus(e));
	}
	CHECK(stand_in()->misuse(NULL) == 0);
}

/* A driver that lacks them refuses the pool, and the flag of a list. */
static void older_drivers_refuse(void)
{
	const struct ze_counted_pool_desc counted = {LZ_STYPE_COUNTED_POOL_DESC, NULL,
						     LZ_COUNTED_IMMEDIATE};
	const struct ze_event_pool_desc pd = {.stype = LZ_STYPE_EVENT_POOL_DESC,
					      .next = &counted,
					      .flags = LZ_POOL_HOST_VISIBLE,
					      .count = 8};
	struct ze_command_queue_desc ld = queue_desc(0, 0, LZ_PRIORITY_NORMAL);
	void *made;

	ld.flags = LZ_QUEUE_IN_ORDER;
	CHECK(setenv("HAL_STAND_IN_ZE_VERSION", "1.8", 1) == 0);
	CHECK(lz.zeCommandListCreateImmediate(ctx, roots[3], &ld, &made) ==
	      LZ_ERROR_INVALID_ENUMERATION);
	CHECK(lz.zeEventPoolCreate(ctx, &pd, 0, NULL, &made) ==
	      LZ_ERROR_INVALID_ENUMERATION);
	CHECK(setenv("HAL_STAND_IN_ZE_VERSION", "1.9", 1) == 0);
	CHECK(setenv("HAL_STAND_IN_ZE_COUNTED", "0", 1) == 0);
	CHECK(lz.zeEventPoolCreate(ctx, &pd, 0, NULL, &made) ==
	      LZ_ERROR_INVALID_ENUMERATION);
}

/* Its event is signalled, and it is in use still. */
static void list_ends_after_its_events(void)
{
	void *queue = queue_of(roots[3]), *list = record_of(roots[3]), *e = event();
	void *fence = fence_of(queue);

	OK(lz.zeCommandListAppendBarrier(list, e, 0, NULL));
	OK(lz.zeCommandListClose(list));
	OK(lz.zeCommandQueueExecuteCommandLists(queue, 1, &list, fence));
	run_to_event();
	OK(lz.zeEventQueryStatus(e));
	CHECK(lz.zeFenceQueryStatus(fence) == LZ_NOT_READY);
	run_for(39);
	CHECK(lz.zeFenceQueryStatus(fence) == LZ_NOT_READY);
	run_for(1);
	OK(lz.zeFenceQueryStatus(fence));
	OK(lz.zeCommandListReset(list));
	CHECK(stand_in()->misuse(NULL) == 0);
}

static void list_is_reset_too_soon(void)
{
	void *queue = queue_of(roots[3]), *list = record_of(roots[3]), *e = event();

	OK(lz.zeCommandListAppendBarrier(list, e, 0, NULL));
	OK(lz.zeCommandListClose(list));
	OK(lz.zeCommandQueueExecuteCommandLists(queue, 1, &list, NULL));
	run_to_event();
	OK(lz.zeEventQueryStatus(e));
	OK(lz.zeCommandListReset(list));
	misused("a list was reset or destroyed while in flight");
}

/* ---- events ------------------------------------------------------------------------ */

static void pools_are_of_devices(void)
{
	void *of_tile = event_in(pool_of(tile(1, 0)));
	void *of_root = event_in(pool_of(roots[1])), *of_all = event();
	void *lists[3] = {list_of(tile(1, 0), 0, 0, LZ_PRIORITY_NORMAL),
			  list_of(tile(1, 1), 0, 0, LZ_PRIORITY_NORMAL),
			  list_of(roots[3], 0, 0, LZ_PRIORITY_NORMAL)};
	void *events[3] = {of_tile, of_root, of_all};

	for (int e = 0; e < 3; e++) {
		for (int l = 0; l < 3; l++) {
			bool good = l <= e;

			CHECK((lz.zeCommandListAppendBarrier(lists[l], events[e], 0,
							     NULL) == LZ_SUCCESS) ==
			      good);
			run_for(MS);
			CHECK((lz.zeEventQueryStatus(events[e]) == LZ_SUCCESS) == good);
			CHECK((lz.zeCommandListAppendBarrier(lists[l], NULL, 1,
							     &events[e]) == LZ_SUCCESS) ==
			      good);
			run_for(MS);
			OK(lz.zeEventHostReset(events[e]));
		}
	}
	CHECK(stand_in()->misuse(NULL) == 0);
}

/* Recorded for one tile, executed on another. */
static void pool_of_another_tile(void)
{
	void *queue = queue_of(tile(1, 1)), *list = record_of(tile(1, 0));

	OK(lz.zeCommandListAppendBarrier(list, event_in(pool_of(tile(1, 0))), 0, NULL));
	OK(lz.zeCommandListClose(list));
	OK(lz.zeCommandQueueExecuteCommandLists(queue, 1, &list, NULL));
	CHECK(stand_in()->misuse(NULL) == 0);
	run_for(MS);
	misused("an event was signalled by a device that its pool was not made for");
}

/* A tile that hangs says so, and in waits of half a second; the others do not. */
static void hangs_are_the_tiles(void)
{
	const struct ze_group_count one = {1, 1, 1};
	void *list = list_of(tile(1, 1), 0, 0, LZ_PRIORITY_NORMAL), *e = event();
	void *kernel = kernel_of(module_of(tile(1, 1)), "wild");
	void *p = memory(tile(1, 1), 64);

	OK(lz.zeKernelSetArgumentValue(kernel, 0, sizeof(p), &p));
	OK(lz.zeCommandListAppendLaunchKernel(list, kernel, &one, e, 0, NULL));
	run_for(MS);
	CHECK(lz.zeDeviceGetStatus(tile(1, 1)) == LZ_ERROR_DEVICE_LOST);
	OK(lz.zeDeviceGetStatus(tile(1, 0)));
	OK(lz.zeDeviceGetStatus(roots[1]));
	CHECK(lz.zeEventHostSynchronize(e, 400 * MS) == LZ_NOT_READY);
	CHECK(lz.zeEventHostSynchronize(e, 600 * MS) == LZ_ERROR_DEVICE_LOST);
	CHECK(lz.zeCommandListAppendBarrier(list, NULL, 0, NULL) == LZ_ERROR_DEVICE_LOST);
}

/* ---- what is undefined ------------------------------------------------------------- */

/* A list of device 3 with a command of 1 ms in it that signals the event. */
static void *busy_list(void *signal)
{
	void *list = list_of(roots[3], 0, 0, LZ_PRIORITY_NORMAL);

	work(list, roots[3], MS, signal);
	run_for(10);
	return list;
}

static void m_copied_to(void)
{
	void *to = memory(roots[3], 64), *from = host_memory(64), *list = busy_list(NULL);

	OK(lz.zeCommandListAppendMemoryCopy(list, to, from, 64, NULL, 0, NULL));
	(void)lz.zeMemFree(ctx, to);
}

static void m_copied_from(void)
{
	void *to = memory(roots[3], 64), *from = host_memory(64), *list = busy_list(NULL);

	OK(lz.zeCommandListAppendMemoryCopy(list, to, from, 64, NULL, 0, NULL));
	(void)lz.zeMemFree(ctx, from);
}

static void m_argument(void)
{
	const struct ze_group_count one = {1, 1, 1};
	void *kernel = kernel_of(module_of(roots[3]), "work"), *p = memory(roots[3], 64);
	void *list = list_of(roots[3], 0, 0, LZ_PRIORITY_NORMAL);
	uint64_t ns = MS;

	OK(lz.zeKernelSetArgumentValue(kernel, 0, sizeof(p), &p));
	OK(lz.zeKernelSetArgumentValue(kernel, 1, sizeof(ns), &ns));
	OK(lz.zeCommandListAppendLaunchKernel(list, kernel, &one, NULL, 0, NULL));
	run_for(10);
	(void)lz.zeMemFree(ctx, p);
}

static void m_exported(void)
{
	struct ze_ipc_mem_handle handle;
	void *p = memory(roots[3], 64), *opened;

	OK(lz.zeMemGetIpcHandle(ctx, p, &handle));
	OK(lz.zeMemOpenIpcHandle(ctx, roots[3], handle, 0, &opened));
	(void)lz.zeMemFree(ctx, p);
}

static void m_list(void)
{
	(void)lz.zeCommandListDestroy(busy_list(NULL));
}

static void m_record(void)
{
	void *queue = queue_of(roots[3]), *list = record_of(roots[3]);

	OK(lz.zeCommandListAppendBarrier(list, NULL, 0, NULL));
	OK(lz.zeCommandListClose(list));
	OK(lz.zeCommandQueueExecuteCommandLists(queue, 1, &list, NULL));
	(void)lz.zeCommandListDestroy(list);
}

static void m_queue(void)
{
	void *queue = queue_of(roots[3]), *list = record_of(roots[3]);

	OK(lz.zeCommandListAppendBarrier(list, NULL, 0, NULL));
	OK(lz.zeCommandListClose(list));
	OK(lz.zeCommandQueueExecuteCommandLists(queue, 1, &list, NULL));
	(void)lz.zeCommandQueueDestroy(queue);
}

static void m_open_list(void)
{
	void *queue = queue_of(roots[3]), *list = record_of(roots[3]);

	CHECK(lz.zeCommandQueueExecuteCommandLists(queue, 1, &list, NULL) != LZ_SUCCESS);
}

static void m_closed_list(void)
{
	void *list = record_of(roots[3]);

	OK(lz.zeCommandListClose(list));
	CHECK(lz.zeCommandListAppendBarrier(list, NULL, 0, NULL) != LZ_SUCCESS);
}

static void m_event(void)
{
	void *e = event();

	(void)busy_list(e);
	(void)lz.zeEventDestroy(e);
}

static void m_event_waited(void)
{
	void *e = event();

	OK(lz.zeCommandListAppendBarrier(busy_list(NULL), NULL, 1, &e));
	(void)lz.zeEventDestroy(e);
}

static void m_event_reset(void)
{
	void *e = event();

	(void)busy_list(e);
	(void)lz.zeEventHostReset(e);
}

static void m_event_again(void)
{
	void *e = event();

	OK(lz.zeCommandListAppendBarrier(busy_list(e), e, 0, NULL));
}

static void m_event_signalled(void)
{
	void *e = event(), *list = busy_list(e);

	run_for(2 * MS);
	OK(lz.zeCommandListAppendBarrier(list, e, 0, NULL));
}

static void m_pool(void)
{
	void *pool = pool_of(NULL);

	(void)event_in(pool);
	(void)lz.zeEventPoolDestroy(pool);
}

/* A fence under way. */
static void *busy_fence(void **queue)
{
	void *list = record_of(roots[3]), *fence;

	*queue = queue_of(roots[3]);
	fence = fence_of(*queue);
	OK(lz.zeCommandListAppendBarrier(list, NULL, 0, NULL));
	OK(lz.zeCommandListClose(list));
	OK(lz.zeCommandQueueExecuteCommandLists(*queue, 1, &list, fence));
	return fence;
}

static void m_fence(void)
{
	void *queue;

	(void)lz.zeFenceDestroy(busy_fence(&queue));
}

static void m_fence_reset(void)
{
	void *queue;

	(void)lz.zeFenceReset(busy_fence(&queue));
}

static void m_fence_again(void)
{
	void *list = record_of(roots[3]), *queue, *fence = busy_fence(&queue);

	OK(lz.zeCommandListClose(list));
	OK(lz.zeCommandQueueExecuteCommandLists(queue, 1, &list, fence));
}

static void m_fences_queue(void)
{
	void *queue = queue_of(roots[3]);

	(void)fence_of(queue);
	(void)lz.zeCommandQueueDestroy(queue);
}

static void m_module(void)
{
	void *module = module_of(roots[3]);

	(void)kernel_of(module, "work");
	(void)lz.zeModuleDestroy(module);
}

static void m_arguments(void)
{
	const struct ze_group_count one = {1, 1, 1};
	void *kernel = kernel_of(module_of(roots[3]), "work"), *p = memory(roots[3], 64);
	void *list = list_of(roots[3], 0, 0, LZ_PRIORITY_NORMAL);

	OK(lz.zeKernelSetArgumentValue(kernel, 0, sizeof(p), &p));
	CHECK(lz.zeCommandListAppendLaunchKernel(list, kernel, &one, NULL, 0, NULL) !=
	      LZ_SUCCESS);
}

static void m_context(void)
{
	(void)pool_of(NULL);
	(void)lz.zeContextDestroy(ctx);
}

/* ---- external memory --------------------------------------------------------------- */

static void *exportable(void *device)
{
	const struct ze_external_memory_export_desc e = {
		.stype = LZ_STYPE_EXTERNAL_MEMORY_EXPORT_DESC,
		.flags = LZ_EXTERNAL_DMA_BUF};
	const struct ze_device_mem_alloc_desc d = {
		.stype = LZ_STYPE_DEVICE_MEM_ALLOC_DESC, .next = &e};
	void *p = NULL;

	(void)lz.zeMemAllocDevice(ctx, &d, 4096, 4096, device, &p);
	return p;
}

static uint32_t export(const void *p, uint32_t flags, int *fd)
{
	struct ze_external_memory_fd e = {
		.stype = LZ_STYPE_EXTERNAL_MEMORY_EXPORT_FD, .flags = flags, .fd = -1};
	struct ze_memory_allocation_properties d = {
		.stype = LZ_STYPE_MEMORY_ALLOCATION_PROPERTIES, .next = &e};
	const uint32_t r = lz.zeMemGetAllocProperties(ctx, p, &d, NULL);

	*fd = e.fd;
	return r;
}

static uint32_t import(void *device, int fd, uint32_t flags, size_t bytes, void **p)
{
	const struct ze_external_memory_fd i = {
		.stype = LZ_STYPE_EXTERNAL_MEMORY_IMPORT_FD, .flags = flags, .fd = fd};
	const struct ze_device_mem_alloc_desc d = {
		.stype = LZ_STYPE_DEVICE_MEM_ALLOC_DESC, .next = &i};

	return lz.zeMemAllocDevice(ctx, &d, bytes, 4096, device, p);
}

static void external(void)
{
	struct ze_device_external_memory_properties types = {
		.stype = LZ_STYPE_DEVICE_EXTERNAL_MEMORY_PROPERTIES};
	int fd, again, pair[2];
	void *p, *q;

	OK(lz.zeDeviceGetExternalMemoryProperties(roots[3], &types));
	CHECK(types.memory_import_types == LZ_EXTERNAL_DMA_BUF);
	CHECK(types.memory_export_types == LZ_EXTERNAL_DMA_BUF);
	p = exportable(roots[3]);
	CHECK(p);
	CHECK(export(p, LZ_EXTERNAL_OPAQUE_FD, &fd) == LZ_ERROR_UNSUPPORTED_ENUMERATION);
	OK(export(p, LZ_EXTERNAL_DMA_BUF, &fd));
	OK(export(p, LZ_EXTERNAL_DMA_BUF, &again));
	CHECK(fd == again);
	CHECK(import(roots[3], fd, LZ_EXTERNAL_OPAQUE_FD, 4096, &q) ==
	      LZ_ERROR_UNSUPPORTED_ENUMERATION);
	CHECK(import(roots[2], fd, LZ_EXTERNAL_DMA_BUF, 4096, &q) ==
	      LZ_ERROR_INVALID_ARGUMENT);
	CHECK(pipe(pair) == 0);
	CHECK(import(roots[3], pair[0], LZ_EXTERNAL_DMA_BUF, 4096, &q) ==
	      LZ_ERROR_INVALID_ARGUMENT);
	OK(import(roots[3], fd, LZ_EXTERNAL_DMA_BUF, 4096, &q));
	CHECK(p != q);
	OK(lz.zeMemFree(ctx, p));
	CHECK(fcntl(fd, F_GETFD) < 0);
	OK(lz.zeMemFree(ctx, q));
	stand_in()->external(LZ_EXTERNAL_DMA_BUF, LZ_EXTERNAL_DMA_BUF, 1);
	p = exportable(roots[3]);
	OK(export(p, LZ_EXTERNAL_DMA_BUF, &fd));
	OK(export(p, LZ_EXTERNAL_DMA_BUF, &again));
	CHECK(fd != again);
	OK(lz.zeMemFree(ctx, p));
	CHECK(fcntl(fd, F_GETFD) >= 0 && fcntl(again, F_GETFD) >= 0);
}

static void m_descriptor(void)
{
	void *p = exportable(roots[3]);
	int fd;

	OK(export(p, LZ_EXTERNAL_DMA_BUF, &fd));
	CHECK(close(fd) == 0);
	OK(lz.zeMemFree(ctx, p));
}

static void m_long_import(void)
{
	void *p = exportable(roots[3]), *q;
	int fd;

	OK(export(p, LZ_EXTERNAL_DMA_BUF, &fd));
	CHECK(import(roots[3], fd, LZ_EXTERNAL_DMA_BUF, 8192, &q) ==
	      LZ_ERROR_INVALID_SIZE);
}

static void m_tiles(void)
{
	CHECK(!exportable(roots[0]));
}

static void m_plain_export(void)
{
	const struct ze_device_mem_alloc_desc d = {
		.stype = LZ_STYPE_DEVICE_MEM_ALLOC_DESC};
	void *p;
	int fd;

	OK(lz.zeMemAllocDevice(ctx, &d, 4096, 4096, roots[3], &p));
	CHECK(export(p, LZ_EXTERNAL_DMA_BUF, &fd) == LZ_ERROR_INVALID_ARGUMENT);
}

/* ---- reserved addresses -------------------------------------------------------------- */

enum { PAGE = 64 << 10 };

static void *addresses(size_t bytes)
{
	void *p;

	OK(lz.zeVirtualMemReserve(ctx, NULL, bytes, &p));
	return p;
}

static uint32_t physical(size_t bytes, void **m)
{
	struct ze_physical_mem_desc d = {.stype = LZ_STYPE_PHYSICAL_MEM_DESC,
					 .size = bytes};

	return lz.zePhysicalMemCreate(ctx, roots[3], &d, m);
}

/* PAGE bytes of memory at addresses of their own. */
static void *mapped(void **m)
{
	void *p = addresses(PAGE);

	OK(physical(PAGE, m));
	OK(lz.zeVirtualMemMap(ctx, p, PAGE, *m, 0, LZ_PAGES_READWRITE));
	return p;
}

/* Everything is whole pages, which are larger for larger memory. */
static void pages_are_whole(void)
{
	size_t page;
	void *m;

	OK(lz.zeVirtualMemQueryPageSize(ctx, roots[3], 1, &page));
	CHECK(page == PAGE);
	OK(lz.zeVirtualMemQueryPageSize(ctx, roots[3], 2 << 20, &page));
	CHECK(page == 2 << 20);
	CHECK(lz.zeVirtualMemReserve(ctx, NULL, PAGE / 2, &m) ==
	      LZ_ERROR_UNSUPPORTED_SIZE);
	CHECK(lz.zeVirtualMemReserve(ctx, NULL, (2 << 20) + PAGE, &m) ==
	      LZ_ERROR_UNSUPPORTED_SIZE);
	CHECK(physical(PAGE + 1, &m) == LZ_ERROR_UNSUPPORTED_SIZE);
	CHECK(physical(128 << 20, &m) == LZ_ERROR_OUT_OF_DEVICE_MEMORY);
	OK(physical(PAGE, &m));
	CHECK(lz.zeVirtualMemMap(ctx, addresses(PAGE), PAGE / 2, m, 0,
				 LZ_PAGES_READWRITE) == LZ_ERROR_UNSUPPORTED_ALIGNMENT);
	CHECK(stand_in()->misuse(NULL) == 0);
}

/* What is mapped at the same addresses later is other memory. */
static void memory_is_mapped_anew(void)
{
	void *list = list_of(roots[3], 0, 0, LZ_PRIORITY_NORMAL), *m, *p = mapped(&m);
	uint32_t *host_side = host_memory(64), word = 4711;
	const uint32_t live = stand_in()->live();

	OK(lz.zeCommandListAppendMemoryFill(list, p, &word, 4, 64, NULL, 0, NULL));
	run_for(MS);
	OK(lz.zeVirtualMemUnmap(ctx, p, PAGE));
	OK(lz.zePhysicalMemDestroy(ctx, m));
	CHECK(stand_in()->live() == live - 2);
	OK(physical(PAGE, &m));
	OK(lz.zeVirtualMemMap(ctx, p, PAGE, m, 0, LZ_PAGES_READWRITE));
	OK(lz.zeCommandListAppendMemoryCopy(list, host_side, p, 64, NULL, 0, NULL));
	run_for(MS);
	CHECK(*host_side == 0xd5d5d5d5);
	CHECK(lz.zeMemFree(ctx, p) == LZ_ERROR_INVALID_ARGUMENT);
	OK(lz.zeVirtualMemFree(ctx, p, PAGE)); /* unmaps it, too */
	OK(lz.zePhysicalMemDestroy(ctx, m));
	CHECK(stand_in()->live() == live - 3);
	CHECK(stand_in()->misuse(NULL) == 0);
}

static void m_event_unseen(void)
{
	const struct ze_event_pool_desc d = {.stype = LZ_STYPE_EVENT_POOL_DESC,
					     .count = 1};
	void *pool;

	OK(lz.zeEventPoolCreate(ctx, &d, 0, NULL, &pool));
	(void)lz.zeEventQueryStatus(event_in(pool));
}

static void m_counted_again(void)
{
	void *list = ordered_list(), *e = counted_event();

	OK(lz.zeCommandListAppendBarrier(list, e, 0, NULL));
	(void)lz.zeCommandListAppendBarrier(list, e, 0, NULL);
}

/* What waits for it has not begun. */
static void m_counted_waited(void)
{
	void *list = ordered_list(), *other = ordered_list(), *e = counted_event();

	OK(lz.zeCommandListAppendBarrier(list, e, 0, NULL));
	work(other, roots[3], MS, NULL);
	OK(lz.zeCommandListAppendBarrier(other, NULL, 1, &e));
	run_to_event();
	OK(lz.zeEventQueryStatus(e));
	(void)lz.zeCommandListAppendBarrier(list, e, 0, NULL);
}

static void m_counted_reset(void)
{
	void *list = ordered_list(), *e = counted_event();

	OK(lz.zeCommandListAppendBarrier(list, e, 0, NULL));
	run_for(MS);
	CHECK(lz.zeEventHostReset(e) == LZ_ERROR_INVALID_ARGUMENT);
}

static void m_counted_unordered(void)
{
	(void)ordered_list();
	(void)lz.zeCommandListAppendBarrier(list_of(roots[3], 0, 0, LZ_PRIORITY_NORMAL),
					    counted_event(), 0, NULL);
}

static void m_counted_awaited(void)
{
	void *e;

	(void)ordered_list();
	e = counted_event();
	(void)lz.zeCommandListAppendBarrier(list_of(roots[3], 0, 0, LZ_PRIORITY_NORMAL),
					    NULL, 1, &e);
}

/* A kernel that has memory for an argument. */
static void *kernel_on(void *p)
{
	void *kernel = kernel_of(module_of(roots[3]), "work");
	const uint64_t ns = 100;

	OK(lz.zeKernelSetArgumentValue(kernel, 0, sizeof(p), &p));
	OK(lz.zeKernelSetArgumentValue(kernel, 1, sizeof(ns), &ns));
	return kernel;
}

static void m_argument_gone(void)
{
	void *list = list_of(roots[3], 0, 0, LZ_PRIORITY_NORMAL);
	const struct ze_group_count one = {1, 1, 1};
	void *p = memory(roots[3], 64), *kernel = kernel_on(p);

	OK(lz.zeMemFree(ctx, p));
	(void)lz.zeCommandListAppendLaunchKernel(list, kernel, &one, NULL, 0, NULL);
}

/* Other memory lies at the same address by now. */
static void m_argument_replaced(void)
{
	void *list = list_of(roots[3], 0, 0, LZ_PRIORITY_NORMAL);
	const struct ze_group_count one = {1, 1, 1};
	void *m, *other, *p = mapped(&m), *kernel = kernel_on(p);

	OK(lz.zeVirtualMemUnmap(ctx, p, PAGE));
	OK(physical(PAGE, &other));
	OK(lz.zeVirtualMemMap(ctx, p, PAGE, other, 0, LZ_PAGES_READWRITE));
	(void)lz.zeCommandListAppendLaunchKernel(list, kernel, &one, NULL, 0, NULL);
}

static void m_unmapped(void)
{
	void *m, *p = mapped(&m), *list = busy_list(NULL);
	uint32_t word = 1;

	OK(lz.zeCommandListAppendMemoryFill(list, p, &word, 4, 64, NULL, 0, NULL));
	(void)lz.zeVirtualMemUnmap(ctx, p, PAGE);
}

static void m_still_mapped(void)
{
	void *m;

	(void)mapped(&m);
	CHECK(lz.zePhysicalMemDestroy(ctx, m) == LZ_ERROR_HANDLE_OBJECT_IN_USE);
}

static void m_mapped_twice(void)
{
	void *m, *other, *p = mapped(&m);

	OK(physical(PAGE, &other));
	CHECK(lz.zeVirtualMemMap(ctx, p, PAGE, other, 0, LZ_PAGES_READWRITE) ==
	      LZ_ERROR_INVALID_ARGUMENT);
}

static void m_not_reserved(void)
{
	void *m, *p = addresses(PAGE);

	OK(lz.zeVirtualMemFree(ctx, p, PAGE));
	OK(physical(PAGE, &m));
	CHECK(lz.zeVirtualMemMap(ctx, p, PAGE, m, 0, LZ_PAGES_READWRITE) ==
	      LZ_ERROR_INVALID_ARGUMENT);
}

static void m_nothing_mapped(void)
{
	void *list = list_of(roots[3], 0, 0, LZ_PRIORITY_NORMAL);
	uint32_t word = 1;

	OK(lz.zeCommandListAppendMemoryFill(list, addresses(PAGE), &word, 4, 64, NULL, 0,
					    NULL));
	run_for(MS);
	CHECK(lz.zeDeviceGetStatus(roots[3]) == LZ_ERROR_DEVICE_LOST);
}

static const struct {
	void (*fn)(void);
	const char *says;
} wrongs[] = {
	{m_unmapped, "memory was unmapped while a command uses it"},
	{m_still_mapped, "memory was destroyed while it is mapped"},
	{m_mapped_twice, "memory was mapped where it cannot be"},
	{m_not_reserved, "memory was mapped where it cannot be"},
	{m_nothing_mapped, "addresses were used where no memory is mapped"},
	{m_copied_to, "memory was freed while a command uses it"},
	{m_copied_from, "memory was freed while a command uses it"},
	{m_argument, "memory was freed while a command uses it"},
	{m_exported, "memory was freed while its IPC handle is open"},
	{m_descriptor, "a descriptor was closed that zeMemFree closes"},
	{m_long_import, "more bytes are imported than the descriptor has"},
	{m_tiles, "memory of several tiles cannot be behind one descriptor"},
	{m_plain_export, "memory was exported that was not allocated for it"},
	{m_list, "a queue was destroyed with commands in it"},
	{m_record, "a list was reset or destroyed while in flight"},
	{m_queue, "a queue was destroyed with commands in it"},
	{m_open_list, "an open list was executed"},
	{m_closed_list, "a command was appended to a closed list"},
	{m_event, "an event was destroyed while in use"},
	{m_event_waited, "an event was destroyed while in use"},
	{m_event_reset, "an event was reset while in use"},
	{m_event_again, "an event was given to a command before its reset"},
	{m_event_signalled, "an event was given to a command before its reset"},
	{m_event_unseen, "the host asked about an event that it cannot see"},
	{m_counted_again, "a counter-based event was used again too early"},
	{m_counted_waited, "a counter-based event was used again too early"},
	{m_counted_reset, "a counter-based event was reset"},
	{m_counted_unordered, "a counter-based event was given to a list without order"},
	{m_counted_awaited, "a list without order waits for a counter-based event"},
	{m_pool, "an event pool was destroyed before its events"},
	{m_fence, "a fence was destroyed while in use"},
	{m_fence_reset, "a fence was reset while in use"},
	{m_fence_again, "a fence was given to a queue before it was signalled"},
	{m_fences_queue, "a queue was destroyed before its fences"},
	{m_module, "a module was destroyed before its kernels"},
	{m_arguments, "a kernel was launched before all its arguments were set"},
	{m_argument_gone, "a kernel was launched on memory that is gone since its"},
	{m_argument_replaced, "a kernel was launched on memory that is gone since its"},
	{m_context, "a context was destroyed before what was made in it"},
};

/* ---- hierarchies ------------------------------------------------------------------- */

static uint32_t subs_of(void *device)
{
	uint32_t count = 0;

	OK(lz.zeDeviceGetSubDevices(device, &count, NULL));
	return count;
}

static uint64_t bytes_of(void *device)
{
	struct ze_device_memory_properties p = {
		.stype = LZ_STYPE_DEVICE_MEMORY_PROPERTIES};
	uint32_t one = 1;

	OK(lz.zeDeviceGetMemoryProperties(device, &one, &p));
	return p.total_size;
}

static bool is_sub(void *device)
{
	struct ze_device_properties p = {.stype = LZ_STYPE_DEVICE_PROPERTIES_1_2};

	OK(lz.zeDeviceGetProperties(device, &p));
	return p.flags & LZ_DEVICE_SUBDEVICE;
}

static void composite(void)
{
	static const uint32_t tiles[ROOTS] = {4, 2, 1, 1, 1};

	CHECK(root_count == ROOTS);
	for (uint32_t i = 0; i < ROOTS; i++) {
		CHECK(subs_of(roots[i]) == (tiles[i] > 1 ? tiles[i] : 0));
		CHECK(!is_sub(roots[i]));
		CHECK(bytes_of(roots[i]) == (uint64_t)tiles[i] << 26);
	}
	CHECK(is_sub(tile(0, 3)) && bytes_of(tile(0, 3)) == 1 << 26);
}

/* Each tile a device; COMBINED tells that it is a part of one. */
static void tiles_are_devices(bool combined)
{
	struct lz_stand_in_job j;

	CHECK(root_count == 9);
	for (uint32_t i = 0; i < root_count; i++) {
		CHECK(subs_of(roots[i]) == 0);
		CHECK(bytes_of(roots[i]) == 1 << 26);
		CHECK(is_sub(roots[i]) == combined);
	}
	work(list_of(roots[5], 0, 0, LZ_PRIORITY_NORMAL), roots[5], 1000, NULL);
	run_for(MS);
	j = job();
	CHECK(j.device == 1 && j.tile == 1);
}

static void flat(void)
{
	tiles_are_devices(false);
}

static void combined(void)
{
	tiles_are_devices(true);
}

/* ---- each in a process of its own -------------------------------------------------- */

static bool holds(void (*fn)(void), const char *hierarchy, const char *says)
{
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid) {
		setenv("ZE_FLAT_DEVICE_HIERARCHY", hierarchy, 1);
		unsetenv("HAL_STAND_IN_ZE_STRICT");
		begin();
		fn();
		if (says)
			misused(says);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static const struct {
	const char *name;
	void (*fn)(void);
	const char *hierarchy;
} rules[] = {
	{"copies_take_time", copies_take_time, "COMPOSITE"},
	{"host_cannot_read", host_cannot_read, "COMPOSITE"},
	{"limits_are_relaxed", limits_are_relaxed, "COMPOSITE"},
	{"root_runs_on_all_tiles", root_runs_on_all_tiles, "COMPOSITE"},
	{"engines_share_a_tile", engines_share_a_tile, "COMPOSITE"},
	{"priorities", priorities, "COMPOSITE"},
	{"equals_take_turns", equals_take_turns, "COMPOSITE"},
	{"low_goes_to_the_first", low_goes_to_the_first, "COMPOSITE"},
	{"lists_overtake", lists_overtake, "COMPOSITE"},
	{"ordered_lists_do_not", ordered_lists_do_not, "COMPOSITE"},
	{"counted_events_are_renewed", counted_events_are_renewed, "COMPOSITE"},
	{"older_drivers_refuse", older_drivers_refuse, "COMPOSITE"},
	{"list_ends_after_its_events", list_ends_after_its_events, "COMPOSITE"},
	{"list_is_reset_too_soon", list_is_reset_too_soon, "COMPOSITE"},
	{"pools_are_of_devices", pools_are_of_devices, "COMPOSITE"},
	{"pool_of_another_tile", pool_of_another_tile, "COMPOSITE"},
	{"hangs_are_the_tiles", hangs_are_the_tiles, "COMPOSITE"},
	{"external", external, "COMPOSITE"},
	{"pages_are_whole", pages_are_whole, "COMPOSITE"},
	{"memory_is_mapped_anew", memory_is_mapped_anew, "COMPOSITE"},
	{"composite", composite, "COMPOSITE"},
	{"flat", flat, "FLAT"},
	{"combined", combined, "COMBINED"},
};

static void each_rule(void **state)
{
	uint32_t broken = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
		if (holds(rules[i].fn, rules[i].hierarchy, NULL))
			continue;
		print_error("%s does not hold\n", rules[i].name);
		broken++;
	}
	assert_int_equal(broken, 0);
}

static void each_wrong_is_counted(void **state)
{
	uint32_t missed = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(wrongs) / sizeof(wrongs[0]); i++) {
		if (holds(wrongs[i].fn, "COMPOSITE", wrongs[i].says))
			continue;
		print_error("number %zu is not counted: %s\n", i, wrongs[i].says);
		missed++;
	}
	assert_int_equal(missed, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_rule),
		cmocka_unit_test(each_wrong_is_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

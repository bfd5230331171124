/* SPDX-License-Identifier: Apache-2.0 */
/* The ROCm backend's own: what a fault takes along, what is given back when, limits,
 * priorities, times, masks that are not taken, partitions that move. */
#define _GNU_SOURCE
#include "host.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <hal/gpu.h>
#include <hal/rocm.h>

#include "backends/rocm/internal.h"
#include "tests/fakes/rocm/kfd.h"

enum { KERNELS = 6, WORK = 0, IOTA, WILD, NEVER, SPIN, WHERE };
static const char *const names[KERNELS] = {"work:m8", "iota:m4", "wild:m",
					   "never:m", "spin:m",  "hal_sm:m"};
static const struct hal_backend *b;

#define MAKE_IMAGE make_rocm_image
#define UNITS      60
#define PRIORITIES                                                                       \
	{                                                                                \
		-1, 0, 1                                                                 \
	}
#define CALLS_LATE                                                                       \
	{                                                                                \
		"hipModuleLaunchKernel", "hipMemsetD32Async", "hipMemcpyAsync",          \
			"hipStreamWriteValue32", "hipEventRecord"                        \
	}
#define CALL_FREE      "hipFree"
#define CALL_UNLOAD    "hipModuleUnload"
#define CALL_DESTROY   "hipStreamDestroy"
#define SAYS_UNKNOWN   "hipErrorUnknown (999)"
#define SAYS_NO_MEMORY "hipMalloc: hipErrorOutOfMemory (2)"
#include "tests/gpu/queue_cases.h"

/* ---- faults ------------------------------------------------------------------------ */

/* Where HIP answers with the fault: what had ended before it ended well though nobody had
 * looked, the heads of the streams failed, what was behind them never ran. */
static void fault(void **state)
{
	static const int want[] = {1, 0, -EIO, -ECANCELED, -EIO};
	const struct hal_bk_config cfg = {.clock = 1};
	struct hal_device_info info = {.size = sizeof(info)};
	struct hal_bk_event ev[8];
	struct hal_bk_cmd nop = {.op = HAL_OP_NOP};
	struct rig r;
	int n, i, seen = 0;

	(void)state;
	open_rig(&r, &cfg);
	submit_work(&r, 0, 1, 1000);
	submit_on_mem(&r, 0, WILD, 2);
	submit_work(&r, 0, 3, 1000);
	submit_work(&r, 1, 4, 100000000);
	while ((n = b->hot.poll(r.dev, UINT64_MAX, ev, 8)) > 0)
		for (i = 0; i < n; i++, seen++) {
			assert_in_range(ev[i].cookie, 1, 4);
			assert_int_equal(ev[i].status, want[ev[i].cookie]);
			if (ev[i].cookie == 2)
				assert_string_equal(ev[i].fault,
						    "hipErrorIllegalAddress (700), "
						    "device lost, kernel wild");
		}
	assert_int_equal(n, -EIO);
	assert_int_equal(seen, 4);
	assert_non_null(strstr(
		host_text, "rocm:0: the device is lost: hipErrorIllegalAddress (700)"));
	assert_int_equal(b->hot.submit(r.dev, r.queue[2], &nop), -EIO);
	assert_int_equal(b->cold.get_info(r.dev, &info), 0);
	close_rig(&r);
}

/* Releases before 2026 end the process, and nothing here can keep them from it. */
static void abort_of_a_fault(void **state)
{
	const struct hal_bk_config cfg = {.clock = 1};
	struct hal_bk_event ev;
	int status;
	pid_t child;
	struct rig r;

	(void)state;
	fflush(NULL);
	child = fork();
	if (child == 0) {
		signal(SIGABRT, SIG_DFL);
		unsetenv("HAL_STAND_IN_HIP_FAULT");
		(void)!freopen("/dev/null", "w", stderr);
		open_rig(&r, &cfg);
		submit_on_mem(&r, 0, WILD, 1);
		(void)b->hot.poll(r.dev, UINT64_MAX, &ev, 1);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGABRT);
}

/* Nothing waits for it but the DRAIN that asks for its end. */
static void endless(void **state)
{
	const struct hal_bk_config cfg = {.clock = 1};
	struct hal_bk_event ev[4];
	struct rig r;

	(void)state;
	open_rig(&r, &cfg);
	submit_on_mem(&r, 0, NEVER, 1);
	assert_int_equal(b->hot.suspend(r.dev, r.queue[0], HAL_SUSPEND_FOLD, 7),
			 -ENOTSUP);
	assert_int_equal(b->hot.resume(r.dev, r.queue[0]), -EINVAL);
	assert_int_equal(b->hot.suspend(r.dev, r.queue[0], HAL_SUSPEND_DRAIN, 7), 0);
	assert_int_equal(b->hot.suspend(r.dev, r.queue[0], HAL_SUSPEND_DRAIN, 8), -EBUSY);
	assert_int_equal(b->hot.resume(r.dev, r.queue[0]), -EBUSY);
	submit_work(&r, 1, 2, 1000);
	poll_one(&r, ev);
	assert_int_equal(ev[0].cookie, 2);
	assert_int_equal(b->hot.poll(r.dev, 5000000000, ev, 4), 0);
	assert_int_equal(b->cold.queue_destroy(r.dev, r.queue[0]), -EBUSY);
	stand_in()->lose(0, HIPR_LaunchTimeOut);
	assert_int_equal(b->hot.poll(r.dev, 6000000000, ev, 4), 2);
	assert_int_equal(ev[0].status, -EIO);
	assert_non_null(strstr(ev[0].fault, "kernel never"));
	assert_int_equal(ev[1].kind, HAL_BK_QUIET);
	close_rig(&r);
}

/* ---- what the engine must not wait for ------------------------------------------------ */

/* No call that can block, in a run of all kinds of commands, on a device of masks that
 * moves now and then. */
static void hot_calls(void **state)
{
	const struct hal_bk_config cfg = {.clock = 1, .inflight = 2, .partitions = 1};
	struct hal_bk_partition_desc to = {.units = 2, .rows = 1, .cols = 2};
	uint32_t i, due = 0;
	struct hal_bk_event ev[8];
	struct hal_bk_cmd cmd;
	struct rig r;
	int n;

	(void)state;
	open_rig(&r, &cfg);
	stand_in()->hot(1);
	for (i = 0; i < 300 || due; i++) {
		memset(&cmd, 0, sizeof(cmd));
		cmd.op = i % 3 ? HAL_OP_FILL : HAL_OP_TIMESTAMP;
		if (i % 3 == 0) {
			cmd.timestamp.dst = r.mem;
			cmd.timestamp.offset = 128;
		} else {
			cmd.fill.dst = r.mem;
			cmd.fill.bytes = 64;
		}
		to.col = (uint16_t)(i % 13);
		if (i % 7 == 6 && i < 300 &&
		    b->hot.resize(r.dev, r.part, &to, 1000) != -EBUSY)
			due++;
		if (i < 300 && !b->hot.submit(r.dev, r.queue[i % 2], &cmd)) {
			due++;
			continue;
		}
		n = b->hot.poll(r.dev, UINT64_MAX, ev, 8);
		assert_true(n > 0);
		due -= (uint32_t)n;
	}
	stand_in()->hot(0);
	close_rig(&r);
}

/* ---- times ------------------------------------------------------------------------- */

/* ---- partitions -------------------------------------------------------------------- */

/* Whole rows of the MI50: 15 engines' worth of CUs, counted engine by engine. */
static bool in_row(uint32_t id, uint32_t first, uint32_t count)
{
	return (id - 1) % 15 >= first && (id - 1) % 15 < first + count;
}

/* What the device has been given stays where it was, what comes later is where the
 * partition went and behind it; quiet is when the first has ended. */
static void moves(void **state)
{
	const struct hal_bk_config cfg = {.clock = 1, .partitions = 1};
	const struct hal_bk_partition_desc bad = {.col = 15, .units = 1},
					   to = {.col = 9, .units = 2};
	struct hal_bk_arg first, second;
	uint32_t ids[1024], i;
	struct hal_bk_event ev[4];
	struct hal_bk_cmd cmd;
	struct rig r;

	(void)state;
	open_rig(&r, &cfg);
	first = (struct hal_bk_arg){r.mem, 0, 2048};
	second = (struct hal_bk_arg){r.mem, 2048, 2048};
	cmd = launch(&r, WHERE, 1, &first, 1);
	cmd.launch.groups[0] = 512;
	assert_int_equal(b->hot.resize(r.dev, r.part, &bad, 7), -EINVAL);
	assert_int_equal(b->hot.submit(r.dev, r.queue[0], &cmd), 0);
	assert_int_equal(b->hot.resize(r.dev, r.part, &to, 7), 0);
	assert_int_equal(b->hot.resize(r.dev, r.part, &to, 8), -EBUSY);
	assert_int_equal(b->cold.partition_destroy(r.dev, r.part), -EBUSY);
	cmd.cookie = 2;
	cmd.launch.args = &second;
	assert_int_equal(b->hot.submit(r.dev, r.queue[0], &cmd), 0);
	assert_int_equal(b->hot.poll(r.dev, UINT64_MAX, ev, 4), 2);
	assert_int_equal(ev[0].cookie, 1);
	assert_int_equal(ev[1].kind, HAL_BK_QUIET);
	assert_int_equal(ev[1].cookie, 7);
	assert_int_equal(b->hot.poll(r.dev, UINT64_MAX, ev, 4), 1);
	assert_int_equal(ev[0].cookie, 2);
	assert_int_equal(b->cold.mem_read(r.dev, r.mem, 0, ids, sizeof(ids)), 0);
	for (i = 0; i < 512; i++) {
		assert_true(in_row(ids[i], 0, 1));
		assert_true(in_row(ids[512 + i], 9, 2));
	}
	/* With nothing in flight at once. */
	assert_int_equal(b->hot.resize(r.dev, r.part, &to, 9), 0);
	assert_int_equal(b->hot.next(r.dev), 0);
	assert_int_equal(b->hot.poll(r.dev, UINT64_MAX, ev, 4), 1);
	assert_int_equal(ev[0].cookie, 9);
	assert_int_equal(b->hot.next(r.dev), UINT64_MAX);
	/* A queue that goes while its partition moves. */
	submit_work(&r, 1, 3, 1000000);
	assert_int_equal(b->hot.resize(r.dev, r.part, &to, 10), 0);
	assert_int_equal(b->cold.queue_destroy(r.dev, r.queue[0]), 0);
	assert_int_equal(b->hot.poll(r.dev, UINT64_MAX, ev, 4), 2);
	assert_int_equal(ev[1].cookie, 10);
	assert_int_equal(b->cold.queue_create(r.dev, r.part, 0, &r.queue[0]), 0);
	close_rig(&r);
}

/* In the place of hipExtStreamCreateWithCUMask: the partition is resized meanwhile. */
static struct {
	uint32_t (*real)(void **stream, uint32_t words, const uint32_t *mask);
	struct rig *rig;
	uint32_t made;
} during;

static uint32_t resized_meanwhile(void **stream, uint32_t words, const uint32_t *mask)
{
	const struct hal_bk_partition_desc to = {.col = 9, .units = 2};
	const uint32_t result = during.real(stream, words, mask);

	if (!during.made++)
		assert_int_equal(b->hot.resize(during.rig->dev, during.rig->part, &to, 7),
				 0);
	return result;
}

/* A queue whose partition is resized while it is made has the new units. */
static void moves_while_queue_is_made(void **state)
{
	const struct hal_bk_config cfg = {.clock = 1, .partitions = 1};
	uint32_t ids[512], i;
	struct hal_bk_arg arg;
	struct hal_bk_event ev[4];
	struct hal_bk_cmd cmd;
	void *queue;
	struct rig r;

	(void)state;
	open_rig(&r, &cfg);
	during.real = hip.hipExtStreamCreateWithCUMask;
	during.rig = &r;
	during.made = 0;
	hip.hipExtStreamCreateWithCUMask = resized_meanwhile;
	assert_int_equal(b->cold.queue_create(r.dev, r.part, 0, &queue), 0);
	hip.hipExtStreamCreateWithCUMask = during.real;
	assert_in_range(during.made, 2, 8);
	assert_int_equal(b->hot.poll(r.dev, UINT64_MAX, ev, 4), 1);
	assert_int_equal(ev[0].kind, HAL_BK_QUIET);
	arg = (struct hal_bk_arg){r.mem, 0, 2048};
	cmd = launch(&r, WHERE, 1, &arg, 1);
	cmd.launch.groups[0] = 512;
	assert_int_equal(b->hot.submit(r.dev, queue, &cmd), 0);
	assert_int_equal(b->hot.poll(r.dev, UINT64_MAX, ev, 4), 1);
	assert_int_equal(b->cold.mem_read(r.dev, r.mem, 0, ids, sizeof(ids)), 0);
	for (i = 0; i < 512; i++)
		assert_true(in_row(ids[i], 9, 2));
	assert_int_equal(b->cold.queue_destroy(r.dev, queue), 0);
	close_rig(&r);
}

/* A move that fails leaves the partition where it was. */
static void move_fails(void **state)
{
	static const char *const calls[] = {"hipExtStreamCreateWithCUMask",
					    "hipExtStreamGetCUMask", "hipEventRecord",
					    "hipStreamWaitEvent"};
	const struct hal_bk_config cfg = {.clock = 1, .partitions = 1};
	const struct hal_bk_partition_desc to = {.col = 9, .units = 2};
	const struct hal_bk_arg mem[1] = {{NULL, 0, 2048}};
	struct hal_bk_arg arg = mem[0];
	uint32_t i, k, ids[512];
	struct hal_bk_event ev;
	struct hal_bk_cmd cmd;
	struct rig r;

	(void)state;
	for (i = 0; i < 4; i++) {
		open_rig(&r, &cfg);
		arg.mem = r.mem;
		submit_work(&r, 0, 1, 1000000);
		stand_in()->break_call(calls[i], 1, HIPR_OutOfMemory);
		assert_int_equal(b->hot.resize(r.dev, r.part, &to, 7), -ENOSPC);
		assert_non_null(strstr(host_text, calls[i]));
		poll_one(&r, &ev);
		assert_int_equal(ev.cookie, 1);
		cmd = launch(&r, WHERE, 2, &arg, 1);
		cmd.launch.groups[0] = 512;
		assert_int_equal(b->hot.submit(r.dev, r.queue[0], &cmd), 0);
		poll_one(&r, &ev);
		assert_int_equal(b->cold.mem_read(r.dev, r.mem, 0, ids, sizeof(ids)), 0);
		for (k = 0; k < 512; k++)
			assert_true(in_row(ids[k], 0, 1));
		close_rig(&r);
	}
}

static void will_not_open(const struct hal_bk_config *cfg, uint32_t index, int want,
			  const char *why)
{
	void *dev = NULL;

	stand_in()->reset();
	assert_int_equal(b->cold.open(cfg, index, &dev), want);
	if (!strstr(host_text, why))
		fail_msg("%s: not %s", host_text, why);
	assert_int_equal(stand_in()->live(), 0);
}

/* HIP would run kernels on what it likes, and say nothing. */
static void masks_not_taken(void **state)
{
	const struct hal_bk_config masks = {.clock = 1, .partitions = 1},
				   single = {.clock = 1, .partitions = 2},
				   nowhere = {.partitions = 1, .topology = "/nowhere"};
	const struct hal_bk_partition_desc desc = {.col = 9, .units = 1};
	void *dev, *part, *queue;

	(void)state;
	setenv("ROC_GLOBAL_CU_MASK", "0xff", 1);
	will_not_open(&masks, 0, -ENOTSUP,
		      "CUs 0 to 31: set to 0xffffffff, but HIP reports 0x000000ff");
	unsetenv("ROC_GLOBAL_CU_MASK");
	setenv("HSA_CU_MASK", "0:0-3", 1);
	will_not_open(&masks, 0, -ENOTSUP, "HSA_CU_MASK is set");
	unsetenv("HSA_CU_MASK");
	will_not_open(&single, 2, -ENOTSUP, "8 XCCs");
	will_not_open(&nowhere, 0, -ENODEV,
		      "no topology node for device 0000:a3:00.0 in folder /nowhere");
	/* Set behind our back, and nothing in common: HIP's is then all there is. */
	assert_int_equal(b->cold.open(&masks, 0, &dev), 0);
	assert_int_equal(b->cold.partition_create(dev, &desc, &part), 0);
	setenv("ROC_GLOBAL_CU_MASK", "0x1", 1);
	assert_int_equal(b->cold.queue_create(dev, part, 0, &queue), -ENOTSUP);
	assert_non_null(
		strstr(host_text, "set to 0x00000000, but HIP reports 0x00000001"));
	unsetenv("ROC_GLOBAL_CU_MASK");
	assert_int_equal(b->cold.partition_destroy(dev, part), 0);
	b->cold.close(dev);
	assert_int_equal(stand_in()->live(), 0);
}

static void says_why(const struct hal_bk_config *cfg, uint32_t index, const char *want)
{
	const struct hal_gpu_extension *ext;
	struct hal_gpu_info info = {.size = sizeof(info)};
	const char *text = "";
	void *dev;

	if (b->cold.open(cfg, index, &dev))
		fail_msg("%s", host_text);
	ext = b->cold.extension(dev, "gpu");
	assert_int_equal(ext->info(dev, &info), 0);
	if (!strstr(info.why, want))
		fail_msg("%s: not %s", info.why, want);
	b->cold.close(dev);
	if (stand_in()->misuse(&text))
		fail_msg("misuse: %s", text);
	assert_int_equal(stand_in()->live(), 0);
	stand_in()->reset();
}

/* Where kernels ran in each unit is held against its mask. */
static void tried_out(void **state)
{
	static const char *const places[KFD_GPUS] = {
		"on 4 to 4 CUs of its own", "on 8 to 8 CUs of its own",
		"on 8 to 8 CUs of its own", "on 6 to 6 pairs of its own"};
	const struct hal_bk_config masks = {.clock = 1, .partitions = 1},
				   single = {.clock = 1, .partitions = 2};
	void *kept;
	uint32_t i;

	(void)state;
	stand_in()->reset();
	for (i = 0; i < KFD_GPUS; i++) {
		says_why(&masks, i, "tried out: a kernel ran in each unit");
		says_why(&masks, i, places[i]);
	}
	says_why(&single, 3, "on 1 to 1 pairs of its own");
	setenv("HAL_STAND_IN_HIP_VERSION", "60300000", 1);
	says_why(&masks, 3, "on 12 to 12 pairs of its own");
	unsetenv("HAL_STAND_IN_HIP_VERSION");
	/* HIP says that it has the mask, and the device does not go by it. */
	for (i = 0; i < KFD_GPUS; i++) {
		void *dev;

		stand_in()->green_leaks(1);
		assert_int_equal(b->cold.open(&masks, i, &dev), -ENOTSUP);
		if (!strstr(host_text, "in the trial, unit 0 of "))
			fail_msg("%s", host_text);
		assert_int_equal(stand_in()->live(), 0);
		stand_in()->reset();
	}
	/* Where there is no compiler, or it does not take it, nothing is known. */
	stand_in()->break_call("hiprtcCompileProgram", 1, 6);
	says_why(&masks, 0,
		 "it is unknown where kernels run: hiprtcCompileProgram failed with 6");
	memcpy(&kept, &hip.hiprtcCompileProgram, sizeof(kept));
	hip.hiprtcCompileProgram = NULL;
	says_why(&masks, 0, "it is unknown where kernels run: HIP has no compiler");
	memcpy(&hip.hiprtcCompileProgram, &kept, sizeof(kept));
}

/* Only partitions have masks, and one unit cannot move. */
static void says_how(void **state)
{
	const struct hal_bk_config cfg = {.clock = 1, .hang_ms = 9};
	const struct hal_gpu_extension *ext;
	struct hal_gpu_info info = {.size = sizeof(info) + 1};
	struct rig r;

	(void)state;
	open_rig(&r, &cfg);
	ext = b->cold.extension(r.dev, "gpu");
	assert_int_equal(ext->info(r.dev, &info), -EINVAL);
	info.size = sizeof(info);
	assert_int_equal(ext->info(r.dev, &info), 0);
	assert_string_equal(info.way, "none");
	assert_non_null(strstr(info.why, "partitions=engines would give 15 units"));
	assert_non_null(strstr(info.why,
			       "; HIP's streams share 4 hardware queues: work of "
			       "more than 4 queues can wait for one another; set "
			       "GPU_MAX_HW_QUEUES to the number of queues before "
			       "the process first uses HIP"));
	assert_non_null(strstr(info.faults, "after 9 ms the queue is given up"));
	assert_null(b->cold.extension(r.dev, "cuda"));
	close_rig(&r);
}

static void whole(void **state)
{
	const struct hal_bk_config cfg = {.clock = 1};
	const struct hal_bk_partition_desc to = {.units = 1};
	struct hal_device_info info = {.size = sizeof(info)};
	struct rig r;

	(void)state;
	open_rig(&r, &cfg);
	assert_int_equal(b->cold.get_info(r.dev, &info), 0);
	assert_int_equal(info.unit_cols, 1);
	assert_int_equal(info.caps & HAL_CAP_RESIZE_LIVE, 0);
	assert_int_equal(b->hot.resize(r.dev, r.part, &to, 1), -ENOTSUP);
	assert_int_equal(stand_in()->calls("hipExtStreamCreateWithCUMask"), 0);
	close_rig(&r);
}

/* ---- threads ----------------------------------------------------------------------- */

static uint32_t (*set_device)(int device), (*get_device)(int *device);

static void *write_elsewhere(void *rig)
{
	const struct rig *r = rig;
	uint32_t word = 7;
	int device = -1;

	(void)set_device(2);
	if (b->cold.mem_write(r->dev, r->mem, 0, &word, sizeof(word)) ||
	    b->cold.mem_read(r->dev, r->mem, 0, &word, sizeof(word)))
		return NULL;
	(void)get_device(&device);
	return device == 2 ? rig : NULL;
}

/* A caller's thread means the device that it meant before. */
static void callers_device(void **state)
{
	const struct hal_bk_config cfg = {.clock = 1};
	void *library = dlopen("libamdhip64.so.5", RTLD_NOW), *dev, *seen = NULL;
	int device = -1;
	pthread_t thread;
	struct rig r;

	(void)state;
	assert_non_null(library);
	*(void **)&set_device = dlsym(library, "hipSetDevice");
	*(void **)&get_device = dlsym(library, "hipGetDevice");
	stand_in()->reset();
	assert_int_equal(set_device(3), 0);
	assert_int_equal(b->cold.open(&cfg, 0, &dev), 0);
	b->cold.close(dev);
	assert_int_equal(get_device(&device), 0);
	assert_int_equal(device, 3);
	open_rig(&r, &cfg);
	assert_int_equal(pthread_create(&thread, NULL, write_elsewhere, &r), 0);
	assert_int_equal(pthread_join(thread, &seen), 0);
	assert_ptr_equal(seen, &r);
	close_rig(&r);
}

/* Each result of HIP has its name; which errno it is, and whether the context is gone
 * with it. */
static void results(void **state)
{
	static const struct {
		uint32_t result;
		const char *name;
		int err;
		bool sticky;
	} all[] = {
		{4, "hipErrorDeinitialized", ENODEV, false},
		{201, "hipErrorInvalidContext", EIO, false},
		{700, "hipErrorIllegalAddress", EIO, true},
		{709, "hipErrorContextIsDestroyed", EIO, true},
		{900, "hipErrorStreamCaptureUnsupported", EINVAL, false},
		{1052, "hipErrorRuntimeMemory", ENOSPC, false},
		{1053, "hipErrorRuntimeOther", EIO, false},
		{9999, "unknown result", EINVAL, false},
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		assert_string_equal(rocm_result_name(all[i].result), all[i].name);
		if (rocm_errno(all[i].result) != all[i].err ||
		    rocm_sticky(all[i].result) != all[i].sticky)
			fail_msg("%s: errno %d, sticky %d", all[i].name,
				 rocm_errno(all[i].result), rocm_sticky(all[i].result));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(abort_of_a_fault),
		cmocka_unit_test(fault),
		cmocka_unit_test(endless),
		cmocka_unit_test(hot_calls),
		cmocka_unit_test(bad_launches),
		cmocka_unit_test(moves),
		cmocka_unit_test(moves_while_queue_is_made),
		cmocka_unit_test(move_fails),
		cmocka_unit_test(masks_not_taken),
		cmocka_unit_test(tried_out),
		cmocka_unit_test(whole),
		cmocka_unit_test(says_how),
		cmocka_unit_test(results),
		cmocka_unit_test(callers_device),
		QUEUE_CASES,
	};

	b = hal_backend_rocm(&host);
	return cmocka_run_group_tests(tests, NULL, NULL);
}

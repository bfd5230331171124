/* SPDX-License-Identifier: Apache-2.0 */
/* Partitions whose streams are made in contexts of their CUs: priorities, where kernels
 * run, moves, how many contexts there are; HIP without them, or with others; each call
 * failing; the stand-in's rules. */
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
#include <hal/gpu.h>

#include "backends/rocm/internal.h"

#define BLOCKS 256u

static const struct hal_backend *b;
static const struct hal_bk_config cfg = {.clock = 1, .partitions = 1};
static const char *const names[] = {"hal_sm:m"};

static struct hal_bk_partition_desc line(uint32_t col, uint32_t units)
{
	return (struct hal_bk_partition_desc){
		.col = (uint16_t)col, .units = units, .rows = 1, .cols = (uint16_t)units};
}

static void clean(void)
{
	const char *text = "";

	if (stand_in()->misuse(&text))
		fail_msg("misuse: %s", text);
	assert_int_equal(stand_in()->live(), 0);
}

static struct rocm_device *begin(const char *green)
{
	struct rocm_device *dev;

	stand_in()->reset();
	if (green)
		assert_int_equal(setenv("HAL_STAND_IN_HIP_GREEN", green, 1), 0);
	else
		assert_int_equal(unsetenv("HAL_STAND_IN_HIP_GREEN"), 0);
	if (b->cold.open(&cfg, 0, (void **)&dev))
		fail_msg("%s", host_text);
	return dev;
}

static void end(struct rocm_device *dev)
{
	b->cold.close(dev);
	clean();
}

static void says(struct rocm_device *dev, const char *what)
{
	const struct hal_gpu_extension *ext = b->cold.extension(dev, "gpu");
	struct hal_gpu_info info = {.size = sizeof(info)};

	assert_int_equal(ext->info(dev, &info), 0);
	if (!strstr(info.why, what))
		fail_msg("%s, not %s", info.why, what);
}

struct work {
	void *part, *prog, *queue;
	struct hal_bk_cmd cmd;
	struct hal_bk_arg arg;
};

static void begin_work(struct rocm_device *dev, struct work *w, uint32_t col,
		       uint32_t units, int32_t priority)
{
	const struct hal_bk_partition_desc desc = line(col, units);
	struct hal_bk_kernel_info info;
	size_t size;
	void *image = make_rocm_image(names, 1, 1, &size);

	memset(w, 0, sizeof(*w));
	assert_int_equal(b->cold.partition_create(dev, &desc, &w->part), 0);
	assert_int_equal(b->cold.program_load(dev, image, size, &w->prog), 0);
	free(image);
	assert_int_equal(
		b->cold.kernel_get(dev, w->prog, 0, &info, &w->cmd.launch.kernel), 0);
	assert_int_equal(
		b->cold.mem_alloc(dev, w->part, 4 * BLOCKS, NULL, 0, &w->arg.mem), 0);
	assert_int_equal(b->cold.queue_create(dev, w->part, priority, &w->queue), 0);
	w->arg.bytes = 4 * BLOCKS;
	w->cmd.op = HAL_OP_LAUNCH;
	w->cmd.launch.args = &w->arg;
	w->cmd.launch.arg_count = 1;
	w->cmd.launch.groups[0] = BLOCKS;
	w->cmd.launch.groups[1] = w->cmd.launch.groups[2] = 1;
}

static void end_work(struct rocm_device *dev, struct work *w)
{
	assert_int_equal(b->cold.queue_destroy(dev, w->queue), 0);
	assert_int_equal(b->cold.mem_free(dev, w->arg.mem), 0);
	assert_int_equal(b->cold.program_unload(dev, w->prog), 0);
	assert_int_equal(b->cold.partition_destroy(dev, w->part), 0);
}

/* Run a launch; mark the CUs of its blocks and return how many there are. */
static uint32_t run(struct rocm_device *dev, struct work *w, bool *on, int32_t *priority)
{
	struct gpu_stand_in_job jobs[64];
	uint32_t ids[BLOCKS], i, n, seen = 0;
	struct hal_bk_event ev;

	while (stand_in()->jobs(jobs, 64))
		;
	assert_int_equal(b->hot.submit(dev, w->queue, &w->cmd), 0);
	assert_int_equal(b->hot.poll(dev, UINT64_MAX, &ev, 1), 1);
	assert_int_equal(ev.status, 0);
	n = stand_in()->jobs(jobs, 64);
	for (i = 0; i < n; i++)
		if (strcmp(jobs[i].what, "hal_sm") == 0)
			*priority = jobs[i].priority;
	assert_int_equal(b->cold.mem_read(dev, w->arg.mem, 0, ids, sizeof(ids)), 0);
	for (i = 0; i < BLOCKS; i++) {
		seen += !on[ids[i]];
		on[ids[i]] = true;
	}
	return seen;
}

/* Queues of a partition have priorities, and its CUs: the same with contexts as with
 * masks alone. */
static void priorities(void **state)
{
	static const int32_t want[] = {1, 0, -1}; /* of -1, 0 and 1 */
	int32_t level, priority;
	uint32_t how;

	(void)state;
	for (how = 0; how < 2; how++) {
		struct rocm_device *dev = begin(how ? "1" : NULL);

		says(dev, how ? "; streams have priorities"
			      : "; streams have no priorities: contexts of some CUs: "
				"Operation not supported");
		for (priority = -1; priority < 2; priority++) {
			bool one[UINT16_MAX] = {false}, both[UINT16_MAX];
			struct work a, c;

			begin_work(dev, &a, 0, 4, priority);
			begin_work(dev, &c, 4, 3, priority);
			level = 9;
			assert_int_equal(run(dev, &a, one, &level), 16);
			assert_int_equal(level, how ? want[priority + 1] : 0);
			memcpy(both, one, sizeof(both));
			assert_int_equal(run(dev, &c, both, &level), 12);
			end_work(dev, &c);
			end_work(dev, &a);
		}
		end(dev);
	}
}

/* A context goes with its last stream, and is shared by those that lie there. */
static void contexts(void **state)
{
	const struct hal_bk_partition_desc to = line(9, 4), desc = line(2, 3);
	struct rocm_device *dev = begin("1");
	const uint64_t made = stand_in()->calls("hipGreenCtxCreate");
	const uint64_t gone = stand_in()->calls("hipExecutionCtxDestroy");
	bool on[UINT16_MAX] = {false};
	void *part, *queue[3];
	struct hal_bk_event ev;
	struct work w;
	int32_t level;
	uint32_t i;

	(void)state;
	assert_int_equal(made, gone);
	assert_int_equal(b->cold.partition_create(dev, &desc, &part), 0);
	for (i = 0; i < 3; i++)
		assert_int_equal(b->cold.queue_create(dev, part, 0, &queue[i]), 0);
	assert_int_equal(stand_in()->calls("hipGreenCtxCreate"), made + 1);
	for (i = 0; i < 3; i++) {
		assert_int_equal(stand_in()->calls("hipExecutionCtxDestroy"), gone);
		assert_int_equal(b->cold.queue_destroy(dev, queue[i]), 0);
	}
	assert_int_equal(stand_in()->calls("hipExecutionCtxDestroy"), gone + 1);
	assert_int_equal(b->cold.partition_destroy(dev, part), 0);
	/* A move takes the queue into another one, with its priority. */
	begin_work(dev, &w, 0, 2, 1);
	assert_int_equal(run(dev, &w, on, &level), 8);
	assert_int_equal(b->hot.resize(dev, w.part, &to, 7), 0);
	assert_int_equal(b->hot.poll(dev, UINT64_MAX, &ev, 1), 1);
	assert_int_equal(ev.cookie, 7);
	assert_int_equal(run(dev, &w, on, &level), 16);
	assert_int_equal(level, -1);
	end_work(dev, &w);
	assert_int_equal(stand_in()->calls("hipExecutionCtxDestroy"), gone + 3);
	end(dev);
}

/* Clear a large buffer; what the device did for it, and whether on CUs that are marked.
 */
static void clear_in(struct rocm_device *dev, void *part, const bool *on, uint32_t *fills,
		     uint32_t *copies, bool *inside)
{
	enum { BIG = 4 << 20 };
	static uint8_t got[BIG];
	struct gpu_stand_in_job jobs[64];
	uint32_t n, i, u;
	void *mem;

	while (stand_in()->jobs(jobs, 64))
		;
	assert_int_equal(b->cold.mem_alloc(dev, part, BIG, NULL, 0, &mem), 0);
	assert_int_equal(b->cold.mem_clear(dev, mem), 0);
	n = stand_in()->jobs(jobs, 64);
	for (i = *fills = *copies = 0, *inside = false; i < n; i++) {
		*fills += strcmp(jobs[i].what, "fill") == 0;
		*copies += strcmp(jobs[i].what, "copy") == 0;
		for (u = 0; u < 60; u++)
			*inside |= on[u + 1] && jobs[i].units[u / 64] >> u % 64 & 1;
	}
	memset(got, 1, sizeof(got));
	assert_int_equal(b->cold.mem_read(dev, mem, 0, got, BIG), 0);
	for (i = 0; i < BIG; i++)
		if (got[i])
			fail_msg("byte %u is %u", i, got[i]);
	assert_int_equal(b->cold.mem_free(dev, mem), 0);
}

/* Fills of new buffers run where no partition is; where all of it has one, and where no
 * stream can be made, zeros are copied. */
static void fills(void **state)
{
	const struct hal_bk_partition_desc rest = line(14, 1);
	bool on[UINT16_MAX] = {false}, none[UINT16_MAX] = {false}, inside;
	uint32_t how, count, copies;
	struct rocm_device *dev;
	struct work w;
	void *part;
	int32_t level;

	(void)state;
	for (how = 0; how < 2; how++) {
		dev = begin(how ? "1" : NULL);
		begin_work(dev, &w, 0, 14, 0);
		memset(on, 0, sizeof(on));
		assert_int_equal(run(dev, &w, on, &level), 56);
		clear_in(dev, w.part, on, &count, &copies, &inside);
		assert_int_equal(count, 1);
		assert_false(inside);
		assert_int_equal(b->cold.partition_create(dev, &rest, &part), 0);
		clear_in(dev, w.part, none, &count, &copies, &inside);
		assert_int_equal(count, 0);
		assert_int_equal(copies, 4);
		assert_int_equal(b->cold.partition_destroy(dev, part), 0);
		clear_in(dev, w.part, on, &count, &copies, &inside);
		assert_int_equal(count, 1);
		assert_false(inside);
		end_work(dev, &w);
		/* Nobody has any: the mask is another one, and its stream. */
		assert_int_equal(b->cold.partition_create(dev, &rest, &part), 0);
		stand_in()->break_call(how ? "hipExecutionCtxStreamCreate"
					   : "hipExtStreamCreateWithCUMask",
				       1, HIPR_OutOfMemory);
		clear_in(dev, part, none, &count, &copies, &inside);
		assert_int_equal(count, 0);
		clear_in(dev, part, none, &count, &copies, &inside);
		assert_int_equal(count, 1);
		assert_int_equal(b->cold.partition_destroy(dev, part), 0);
		end(dev);
	}
}

/* HIP has none of the calls: as with those that answer that it has not. */
static void absent(void **state)
{
	struct rocm_device *dev;
	void *kept;

	(void)state;
	end(begin("1"));
	memcpy(&kept, &hip.hipGreenCtxCreate, sizeof(kept));
	hip.hipGreenCtxCreate = NULL;
	dev = begin("1");
	says(dev, "streams have no priorities: HIP has no contexts of some CUs (7.14)");
	end(dev);
	memcpy(&hip.hipGreenCtxCreate, &kept, sizeof(kept));
}

/* Groups that do not make up units: masks are as good. */
static void wrong(void **state)
{
	struct rocm_device *dev = begin("wrong");

	(void)state;
	assert_null(dev->green);
	says(dev, "streams have no priorities: contexts of some CUs");
	end(dev);
}

/* At open whatever fails leaves masks; later it fails the queue, and nothing is left. */
static void each_fails(void **state)
{
	static const char *const calls[] = {
		"hipDeviceGetDevResource",     "hipDevSmResourceSplitByCount",
		"hipDevResourceGenerateDesc",  "hipGreenCtxCreate",
		"hipExecutionCtxStreamCreate", "hipExecutionCtxDestroy",
		"hipExtStreamGetCUMask"};
	const struct hal_bk_partition_desc desc = line(2, 3);
	struct rocm_device *dev;
	void *part, *queue;
	uint32_t i;

	(void)state;
	for (i = 0; i < 6; i++) {
		assert_int_equal(setenv("HAL_STAND_IN_HIP_GREEN", "1", 1), 0);
		stand_in()->reset();
		stand_in()->break_call(calls[i], 1, HIPR_OutOfMemory);
		assert_int_equal(b->cold.open(&cfg, 0, (void **)&dev), 0);
		assert_null(dev->green);
		says(dev, "No space left on device (28)");
		b->cold.close(dev);
		if (i == 5) /* a context that cannot be destroyed stays */
			stand_in()->lose(0, HIPR_Unknown);
		else
			clean();
	}
	for (i = 2; i < 7; i++) {
		if (i == 5)
			continue;
		dev = begin("1");
		assert_int_equal(b->cold.partition_create(dev, &desc, &part), 0);
		stand_in()->break_call(calls[i], 1, HIPR_OutOfMemory);
		assert_int_equal(b->cold.queue_create(dev, part, 0, &queue), -ENOSPC);
		assert_int_equal(b->cold.queue_create(dev, part, 0, &queue), 0);
		assert_int_equal(b->cold.queue_destroy(dev, queue), 0);
		assert_int_equal(b->cold.partition_destroy(dev, part), 0);
		end(dev);
	}
	stand_in()->reset();
	stand_in()->break_call("hipGreenCtxCreate", 2, HIPR_Unknown);
	assert_int_equal(b->cold.open(&cfg, 0, (void **)&dev), -EIO);
	stand_in()->reset();
}

static void rules(void **state)
{
	struct rocm_device *dev = begin("1");
	struct hip_resource whole, part[2];
	void *desc, *context, *stream;
	const char *text = "";
	uint32_t n = 2;

	(void)state;
	_Static_assert(sizeof(whole) == 144 && offsetof(struct hip_resource, count) == 96,
		       "as HIP's header has it");
	assert_int_equal(hip.hipDeviceGetDevResource(9, &whole, 1), 101);
	assert_int_equal(hip.hipDeviceGetDevResource(0, &whole, 2), 1);
	assert_int_equal(hip.hipDeviceGetDevResource(0, &whole, 1), 0);
	assert_int_equal(whole.count, 60);
	assert_int_equal(hip.hipDevSmResourceSplitByCount(part, &n, &whole, NULL, 0, 1),
			 0);
	assert_int_equal(hip.hipDevSmResourceSplitByCount(NULL, &n, &part[0], NULL, 0, 1),
			 1);
	part[1] = part[0];
	assert_int_equal(hip.hipDevResourceGenerateDesc(&desc, part, 2), 1);
	assert_int_equal(hip.hipDevResourceGenerateDesc(&desc, part, 1), 0);
	assert_int_equal(hip.hipGreenCtxCreate(&context, desc, 1, 0), 1);
	assert_int_equal(hip.hipGreenCtxCreate(&context, desc, 0, 0), 0);
	assert_int_equal(hip.hipExecutionCtxStreamCreate(&stream, context, 0, 0), 1);
	assert_int_equal(hip.hipExecutionCtxStreamCreate(&stream, context, 1, 0), 0);
	assert_int_equal(stand_in()->misuse(NULL), 0);
	assert_int_equal(hip.hipExecutionCtxDestroy(context), 0);
	assert_int_equal(stand_in()->misuse(&text), 1);
	assert_string_equal(text, "a context goes before a stream of it");
	assert_int_equal(hip.hipStreamDestroy(stream), 0);
	b->cold.close(dev);
	stand_in()->reset();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(priorities), cmocka_unit_test(contexts),
		cmocka_unit_test(absent),     cmocka_unit_test(wrong),
		cmocka_unit_test(each_fails), cmocka_unit_test(rules),
		cmocka_unit_test(fills),
	};

	b = hal_backend_rocm(&host);
	return cmocka_run_group_tests(tests, NULL, NULL);
}

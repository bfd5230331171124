/* SPDX-License-Identifier: Apache-2.0 */
/* Partitions that are green contexts: what units there are, where kernels run, what is
 * made how often, who finds out that a driver does not keep to them; each call failing;
 * the stand-in's rules, each broken once. */
#define _GNU_SOURCE
#include "host.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <hal/cuda.h>

#include "backends/cuda/internal.h"

#define BLOCKS 64u

static const struct hal_backend *b;
static const struct hal_bk_config cfg = {.clock = 1, .partitions = 1};

static struct hal_bk_partition_desc line(uint32_t col, uint32_t units)
{
	return (struct hal_bk_partition_desc){
		.col = (uint16_t)col, .units = units, .rows = 1, .cols = (uint16_t)units};
}

static void clean(void)
{
	const char *text = "";

	assert_int_equal(stand_in()->live(), 0);
	if (stand_in()->misuse(&text))
		fail_msg("misuse: %s", text);
}

static void *begin(uint32_t index)
{
	void *dev;

	stand_in()->reset();
	assert_int_equal(b->cold.open(&cfg, index, &dev), 0);
	return dev;
}

static void end(void *dev)
{
	b->cold.close(dev);
	clean();
}

static void numbers(void **state)
{
	const struct hal_bk_config whole = {.clock = 1};
	struct hal_device_info probed[2] = {{0}}, info = {.size = sizeof(info)};
	void *dev;

	(void)state;
	stand_in()->reset();
	assert_int_equal(b->cold.probe(&cfg, probed, 2), 2);
	assert_int_equal(probed[0].unit_cols, 16); /* 132: 4 are in no group of 8 */
	assert_int_equal(probed[1].unit_cols, 23);
	assert_int_equal(b->cold.probe(&whole, probed, 2), 2);
	assert_int_equal(probed[1].unit_cols, 1);
	dev = begin(1);
	assert_int_equal(b->cold.get_info(dev, &info), 0);
	assert_int_equal(info.unit_cols, 23);
	assert_int_equal(info.partitions_max, 23);
	assert_int_equal(info.compute_isolation, HAL_ISOLATION_ADVISORY);
	end(dev);
}

/* The multiprocessors on which the blocks of a launch ran. */
static void ran_on(void *dev, void *part, uint32_t least, uint32_t most)
{
	static const char *const names[] = {"hal_sm:m"};
	struct hal_bk_kernel_info info;
	struct hal_bk_cmd cmd = {.op = HAL_OP_LAUNCH, .cookie = 1};
	struct hal_bk_arg arg = {.bytes = 4 * BLOCKS};
	struct hal_bk_event ev;
	uint32_t ids[BLOCKS], i, seen = 0;
	bool was[UINT16_MAX] = {false};
	size_t size;
	void *image = make_cuda_image(names, 1, 1, &size), *prog, *queue;

	assert_int_equal(b->cold.program_load(dev, image, size, &prog), 0);
	assert_int_equal(b->cold.kernel_get(dev, prog, 0, &info, &cmd.launch.kernel), 0);
	assert_int_equal(b->cold.mem_alloc(dev, part, 4 * BLOCKS, NULL, 0, &arg.mem), 0);
	assert_int_equal(b->cold.queue_create(dev, part, 0, &queue), 0);
	cmd.launch.args = &arg;
	cmd.launch.arg_count = 1;
	cmd.launch.groups[0] = BLOCKS;
	cmd.launch.groups[1] = cmd.launch.groups[2] = 1;
	assert_int_equal(b->hot.submit(dev, queue, &cmd), 0);
	assert_int_equal(b->hot.poll(dev, UINT64_MAX, &ev, 1), 1);
	assert_int_equal(ev.status, 0);
	assert_int_equal(b->cold.mem_read(dev, arg.mem, 0, ids, sizeof(ids)), 0);
	for (i = 0; i < BLOCKS; i++) {
		assert_in_range(ids[i] - 1, least, most);
		seen += !was[ids[i]];
		was[ids[i]] = true;
	}
	assert_int_equal(seen, most - least + 1 < BLOCKS ? most - least + 1 : BLOCKS);
	assert_int_equal(b->cold.queue_destroy(dev, queue), 0);
	assert_int_equal(b->cold.mem_free(dev, arg.mem), 0);
	assert_int_equal(b->cold.program_unload(dev, prog), 0);
	free(image);
}

static void places(void **state)
{
	const struct hal_bk_partition_desc descs[] = {line(0, 1), line(1, 2), line(15, 1),
						      line(3, 4)};
	void *dev = begin(0), *part[4];
	uint32_t i;

	(void)state;
	for (i = 0; i < 4; i++)
		assert_int_equal(b->cold.partition_create(dev, &descs[i], &part[i]), 0);
	for (i = 0; i < 4; i++)
		ran_on(dev, part[i], 8u * descs[i].col,
		       8u * (descs[i].col + descs[i].units) - 1);
	for (i = 0; i < 4; i++)
		assert_int_equal(b->cold.partition_destroy(dev, part[i]), 0);
	end(dev);
}

/* Make a partition and its first queue, which makes its green context, and destroy both.
 */
static int visit(void *dev, const struct hal_bk_partition_desc *desc)
{
	void *part, *queue;
	int err = b->cold.partition_create(dev, desc, &part);

	if (err)
		return err;
	err = b->cold.queue_create(dev, part, 0, &queue);
	if (!err)
		assert_int_equal(b->cold.queue_destroy(dev, queue), 0);
	assert_int_equal(b->cold.partition_destroy(dev, part), 0);
	return err;
}

/* One is made once for each place, and stays. */
static void pool(void **state)
{
	const struct hal_bk_partition_desc one = line(5, 1), three = line(5, 3);
	void *dev = begin(0);
	const uint64_t before = stand_in()->calls("cuGreenCtxCreate");
	uint32_t i;

	(void)state;
	assert_int_equal(before, 17); /* one of what is in no unit */
	for (i = 0; i < 3; i++)
		assert_int_equal(visit(dev, i ? &three : &one), 0);
	assert_int_equal(stand_in()->calls("cuGreenCtxCreate"), before + 1);
	end(dev);
	assert_int_equal(stand_in()->calls("cuGreenCtxDestroy"), before + 1);
}

struct maker {
	void *dev, *part, *queue;
	pthread_barrier_t *start;
};

static void *make_queue(void *user)
{
	struct maker *m = user;

	pthread_barrier_wait(m->start);
	return (void *)(intptr_t)b->cold.queue_create(m->dev, m->part, 0, &m->queue);
}

/* The engine's thread creates partitions: it makes no context, which may wait for the
 * device.  Two threads that make the first queues at a time make one. */
static void with_first_queue(void **state)
{
	const struct hal_bk_partition_desc two = line(5, 2);
	void *dev = begin(0), *part, *err;
	const uint64_t before = stand_in()->calls("cuGreenCtxCreate");
	pthread_barrier_t start;
	struct maker m[2];
	pthread_t t[2];
	uint32_t i;

	(void)state;
	assert_int_equal(b->cold.partition_create(dev, &two, &part), 0);
	assert_int_equal(stand_in()->calls("cuGreenCtxCreate"), before);
	assert_int_equal(pthread_barrier_init(&start, NULL, 2), 0);
	for (i = 0; i < 2; i++) {
		m[i] = (struct maker){.dev = dev, .part = part, .start = &start};
		assert_int_equal(pthread_create(&t[i], NULL, make_queue, &m[i]), 0);
	}
	for (i = 0; i < 2; i++) {
		assert_int_equal(pthread_join(t[i], &err), 0);
		assert_null(err);
	}
	pthread_barrier_destroy(&start);
	assert_int_equal(stand_in()->calls("cuGreenCtxCreate"), before + 1);
	ran_on(dev, part, 8 * 5, 8 * 7 - 1);
	for (i = 0; i < 2; i++)
		assert_int_equal(b->cold.queue_destroy(dev, m[i].queue), 0);
	assert_int_equal(b->cold.partition_destroy(dev, part), 0);
	end(dev);
}

/* Visit each place but those of [skip, skip + 2). */
static void visit_all(void *dev, uint32_t skip)
{
	uint32_t first, count;

	for (count = 1; count <= 16; count++)
		for (first = 0; first + count <= 16; first++) {
			const struct hal_bk_partition_desc desc = line(first, count);

			if (first < skip + 2 && first + count > skip)
				continue;
			assert_int_equal(visit(dev, &desc), 0);
		}
}

/* There are 136 places: of contexts that no partition has, those that were used last are
 * kept, and no more than eight besides one a unit. */
static void bounded(void **state)
{
	const struct hal_bk_partition_desc two = line(3, 2), four = line(12, 4);
	void *dev = begin(0), *kept;
	const uint32_t before = stand_in()->live();
	uint64_t made;

	(void)state;
	assert_int_equal(b->cold.partition_create(dev, &two, &kept), 0);
	ran_on(dev, kept, 8 * 3, 8 * 5 - 1);
	made = stand_in()->calls("cuGreenCtxCreate");
	visit_all(dev, 3);
	assert_in_range(stand_in()->live(), before, before + 1 + 8);
	/* One that a partition has does not go, however long ago it was made. */
	assert_in_range(stand_in()->calls("cuGreenCtxCreate"), made + 1, UINT32_MAX);
	made = stand_in()->calls("cuGreenCtxCreate");
	ran_on(dev, kept, 8 * 3, 8 * 5 - 1);
	assert_int_equal(stand_in()->calls("cuGreenCtxCreate"), made);
	/* What was used last is there. */
	assert_int_equal(visit(dev, &four), 0);
	made = stand_in()->calls("cuGreenCtxCreate");
	assert_int_equal(visit(dev, &four), 0);
	assert_int_equal(stand_in()->calls("cuGreenCtxCreate"), made);
	assert_int_equal(b->cold.partition_destroy(dev, kept), 0);
	visit_all(dev, 16);
	assert_in_range(stand_in()->live(), before, before + 8);
	end(dev);
}

/* A launch that was given up runs on in its partition's context, which stays. */
static void hung(void **state)
{
	static const char *const names[] = {"never:m"};
	const struct hal_bk_config hangs = {.clock = 1, .partitions = 1, .hang_ms = 3};
	const struct hal_bk_partition_desc two = line(3, 2);
	struct hal_bk_kernel_info info;
	struct hal_bk_cmd cmd = {.op = HAL_OP_LAUNCH, .cookie = 1};
	struct hal_bk_arg arg = {.bytes = 64};
	struct hal_bk_event ev;
	size_t size;
	void *image = make_cuda_image(names, 1, 1, &size), *dev, *part, *prog, *queue;

	(void)state;
	stand_in()->reset();
	assert_int_equal(b->cold.open(&hangs, 0, &dev), 0);
	assert_int_equal(b->cold.partition_create(dev, &two, &part), 0);
	assert_int_equal(b->cold.program_load(dev, image, size, &prog), 0);
	free(image);
	assert_int_equal(b->cold.kernel_get(dev, prog, 0, &info, &cmd.launch.kernel), 0);
	assert_int_equal(b->cold.mem_alloc(dev, part, 64, NULL, 0, &arg.mem), 0);
	assert_int_equal(b->cold.queue_create(dev, part, 0, &queue), 0);
	cmd.launch.args = &arg;
	cmd.launch.arg_count = 1;
	cmd.launch.groups[0] = cmd.launch.groups[1] = cmd.launch.groups[2] = 1;
	assert_int_equal(b->hot.submit(dev, queue, &cmd), 0);
	assert_int_equal(b->hot.poll(dev, 100000000, &ev, 1), 1);
	assert_int_equal(ev.status, -EIO);
	assert_int_equal(b->cold.queue_destroy(dev, queue), 0);
	assert_int_equal(b->cold.mem_free(dev, arg.mem), 0);
	assert_int_equal(b->cold.program_unload(dev, prog), 0);
	assert_int_equal(b->cold.partition_destroy(dev, part), 0);
	visit_all(dev, 16);
	assert_int_equal(stand_in()->misuse(NULL), 0);
	stand_in()->lose(0, CUR_LAUNCH_TIMEOUT);
	b->cold.close(dev);
	stand_in()->reset();
}

static void out_of_range(void **state)
{
	const struct hal_bk_partition_desc bad[] = {line(16, 1), line(15, 2), line(0, 17),
						    line(0, 0), line(1, UINT32_MAX)};
	void *dev = begin(0), *part;
	uint32_t i;

	(void)state;
	for (i = 0; i < 5; i++) {
		assert_int_equal(b->cold.partition_create(dev, &bad[i], &part), -EINVAL);
		assert_non_null(strstr(host_text, "the device has 16 units"));
	}
	end(dev);
}

/* A driver that puts blocks elsewhere is found out, and nothing is left of it. */
static void tried_out(void **state)
{
	void *dev;

	(void)state;
	stand_in()->reset();
	stand_in()->green_leaks(1);
	assert_int_equal(b->cold.open(&cfg, 0, &dev), -ENOTSUP);
	assert_non_null(strstr(host_text, "in the trial, unit 0 ran on 32"));
	clean();
	stand_in()->reset();
}

static void not_there(void **state)
{
	void *kept, *dev;

	(void)state;
	end(begin(0)); /* loaded */
	memcpy(&kept, &cu.cuGreenCtxStreamCreate, sizeof(kept));
	cu.cuGreenCtxStreamCreate = NULL;
	assert_int_equal(b->cold.open(&cfg, 0, &dev), -ENOTSUP);
	assert_non_null(strstr(host_text, "has no green contexts"));
	memcpy(&cu.cuGreenCtxStreamCreate, &kept, sizeof(kept));
	clean();
}

/* Each call fails each time that it is made, until nothing more fails. */
static void each_fails(void **state)
{
	static const char *const calls[] = {"cuDeviceGetDevResource",
					    "cuDevSmResourceSplitByCount",
					    "cuDevResourceGenerateDesc",
					    "cuGreenCtxCreate", "cuGreenCtxStreamCreate"};
	const struct hal_bk_partition_desc desc = line(2, 2);
	uint32_t i, nth, failed;
	void *dev;

	(void)state;
	for (i = 0; i < 5; i++) {
		failed = 0;
		for (nth = 1; nth < 40; nth++) {
			int err;

			stand_in()->reset();
			assert_int_equal(
				stand_in()->break_call(calls[i], nth, CUR_OUT_OF_MEMORY),
				0);
			host_text[0] = 0;
			err = b->cold.open(&cfg, 0, &dev);
			if (!err) {
				err = visit(dev, &desc);
				b->cold.close(dev);
			}
			if (stand_in()->armed()) {
				assert_int_equal(err, 0);
				break;
			}
			failed++;
			assert_int_equal(err, -ENOSPC);
			if (!strstr(host_text, calls[i]) ||
			    !strstr(host_text, "OUT_OF_MEMORY"))
				fail_msg("%s: %s", calls[i], host_text);
			clean();
		}
		assert_true(failed > 0 && nth < 40);
	}
	/* One that does not go at close is tried again. */
	dev = begin(0);
	assert_int_equal(
		stand_in()->break_call("cuGreenCtxDestroy", 2, CUR_OUT_OF_MEMORY), 0);
	end(dev);
}

/* Lost with partitions: nothing hangs, nothing is called that need not be. */
static void lost(void **state)
{
	const struct hal_bk_partition_desc desc = line(0, 2);
	void *dev = begin(0), *part, *queue;
	const uint64_t before = stand_in()->calls("cuGreenCtxDestroy");

	(void)state;
	assert_int_equal(b->cold.partition_create(dev, &desc, &part), 0);
	assert_int_equal(b->cold.queue_create(dev, part, 0, &queue), 0);
	stand_in()->lose(0, CUR_ILLEGAL_ADDRESS);
	(void)b->cold.queue_destroy(dev, queue);
	assert_int_equal(b->cold.partition_destroy(dev, part), 0);
	assert_int_equal(b->cold.partition_create(dev, &desc, &part), 0);
	assert_int_equal(b->cold.partition_destroy(dev, part), 0);
	b->cold.close(dev);
	assert_int_equal(stand_in()->calls("cuGreenCtxDestroy"), before);
	stand_in()->reset();
}

/* ---- the stand-in's rules ---------------------------------------------------------------- */

static void misused(const char *what)
{
	const char *text = "";

	assert_true(stand_in()->misuse(&text) > 0);
	if (!strstr(text, what))
		fail_msg("misuse is '%s', not '%s'", text, what);
}

static void rules(void **state)
{
	struct cu_resource whole, one[4], other[4], rest;
	uint32_t n = 4, none = 0;
	void *dev = begin(0), *desc, *green, *stream;

	(void)state;
	assert_int_equal(cu.cuDeviceGetDevResource(0, &whole, 2), 914);
	assert_int_equal(cu.cuDeviceGetDevResource(9, &whole, 1), 101);
	assert_int_equal(cu.cuDeviceGetDevResource(0, &whole, 1), 0);
	assert_int_equal(whole.count, 132);
	/* How many there would be; then some of them, and what is left. */
	assert_int_equal(cu.cuDevSmResourceSplitByCount(NULL, &none, &whole, NULL, 0, 9),
			 0);
	assert_int_equal(none, 8); /* of 16 */
	assert_int_equal(cu.cuDevSmResourceSplitByCount(one, &n, &whole, &rest, 0, 8), 0);
	assert_int_equal(rest.count, 100);
	assert_int_equal(cu.cuDevSmResourceSplitByCount(other, &n, &whole, NULL, 0, 8),
			 0);
	assert_int_equal(cu.cuDevSmResourceSplitByCount(one, &n, &whole, NULL, 0, 133),
			 915);
	assert_int_equal(cu.cuDevSmResourceSplitByCount(other, &n, &one[0], NULL, 0, 8),
			 915);
	/* Of one split, none twice. */
	one[1] = other[1];
	assert_int_equal(cu.cuDevResourceGenerateDesc(&desc, one, 2), 915);
	one[1] = one[0];
	assert_int_equal(cu.cuDevResourceGenerateDesc(&desc, one, 2), 915);
	assert_int_equal(cu.cuDevResourceGenerateDesc(&desc, one, 0), 1);
	assert_int_equal(cu.cuDevResourceGenerateDesc(&desc, one, 1), 0);
	assert_int_equal(cu.cuGreenCtxCreate(&green, desc, 0, 0), 1);
	assert_int_equal(cu.cuGreenCtxCreate(&green, desc, 1, 1), 101);
	assert_int_equal(cu.cuGreenCtxCreate(&green, desc, 0, 1), 0);
	assert_int_equal(cu.cuGreenCtxStreamCreate(&stream, green, 1, 0), 201);
	assert_int_equal(stand_in()->misuse(NULL), 0);
	assert_int_equal(cu.cuGreenCtxDestroy(green), 0);
	assert_int_equal(cu.cuGreenCtxDestroy(green), 400);
	misused("is no green context");
	b->cold.close(dev);
	stand_in()->reset();
}

static void streams_go_first(void **state)
{
	const struct hal_bk_partition_desc desc = line(0, 1);
	struct cu_device *dev = begin(0);
	void *part, *queue;

	(void)state;
	assert_int_equal(b->cold.partition_create(dev, &desc, &part), 0);
	assert_int_equal(b->cold.queue_create(dev, part, 0, &queue), 0);
	assert_int_equal(cu.cuGreenCtxDestroy(((struct cu_partition *)part)->green), 0);
	misused("goes before a stream of it");
	assert_int_equal(b->cold.queue_destroy(dev, queue), 0);
	assert_int_equal(b->cold.partition_destroy(dev, part), 0);
	b->cold.close(dev);
	stand_in()->reset();
}

static void primary_first(void **state)
{
	struct cu_resource whole, one;
	uint32_t n = 1;
	void *desc, *green;

	(void)state;
	end(begin(0));
	assert_int_equal(cu.cuDeviceGetDevResource(0, &whole, 1), 0);
	assert_int_equal(cu.cuDevSmResourceSplitByCount(&one, &n, &whole, NULL, 0, 8), 0);
	assert_int_equal(cu.cuDevResourceGenerateDesc(&desc, &one, 1), 0);
	assert_int_equal(cu.cuGreenCtxCreate(&green, desc, 0, 1), 0);
	misused("starts the primary one");
	assert_int_equal(cu.cuGreenCtxDestroy(green), 0);
	stand_in()->reset();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers),
		cmocka_unit_test(places),
		cmocka_unit_test(pool),
		cmocka_unit_test(with_first_queue),
		cmocka_unit_test(out_of_range),
		cmocka_unit_test(tried_out),
		cmocka_unit_test(not_there),
		cmocka_unit_test(each_fails),
		cmocka_unit_test(lost),
		cmocka_unit_test(rules),
		cmocka_unit_test(streams_go_first),
		cmocka_unit_test(primary_first),
		cmocka_unit_test(bounded),
		cmocka_unit_test(hung),
	};

	b = hal_backend_cuda(&host);
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* weave: copies beside what computes.  Two partitions of eight units, where copies move
 * 256 bytes a ns. */
#include "world.h"

#define BYTES(ns) (UINT64_C(128) * (ns)-16)

enum { COPY, COMPUTE, SIDES = 2 };

struct loom {
	struct world w;
	struct hal_partition *part[SIDES];
	struct hal_queue *q[SIDES][2];
	struct hal_buffer *buf[SIDES];
};

/* As many commands of 100 ns. */
static void give(struct loom *l, int side, int kind, unsigned int count)
{
	struct hal_cmd cmd =
		hal_cmd_copy(l->buf[side], 0, l->buf[side], BYTES(100), BYTES(100));
	struct hal_submit_desc d = HAL_INIT(hal_submit_desc);

	if (kind == COMPUTE) {
		(void)submit(&l->w, l->q[side][kind], count, 800, 'c');
		return;
	}
	d.cmds = &cmd;
	d.cmd_count = 1;
	while (count-- > 0)
		OK(hal_submit(l->q[side][kind], &d, NULL));
}

static void loom_open(struct loom *l, const char *policy)
{
	const char *const options[] = {
		"hal.queue_depth=1024",           "hal.partition_inflight=1", policy,
		"policy.weave_memory_mbs=200000", "policy.weave_wait_us=1",   NULL};
	struct hal_partition_desc eight = HAL_INIT(hal_partition_desc);
	struct hal_buffer_desc b = HAL_INIT(hal_buffer_desc);

	memset(l, 0, sizeof(*l));
	memset(&ended, 0, sizeof(ended));
	OK(hal_open("ref?clock=virtual", options, &l->w.dev));
	world_work(&l->w, 0);
	eight.units_floor = 8;
	b.bytes = 2 * BYTES(100);
	for (int i = 0; i < SIDES; i++) {
		OK(hal_partition_create(l->w.dev, &eight, &l->part[i]));
		OK(hal_buffer_create(l->part[i], &b, &l->buf[i]));
		for (int k = 0; k < 2; k++) {
			l->q[i][k] = add_queue(l->part[i], 0, 1, 0);
			give(l, i, k, 1); /* from here on it is known what they do */
		}
	}
	finish_all(&l->w);
}

static void loom_close(struct loom *l)
{
	struct hal_policy_info info = policy_of(&l->w);

	assert_int_equal(info.stalls + info.invalid + info.fallback, 0);
	for (int i = 0; i < SIDES; i++) {
		for (int k = 0; k < 2; k++)
			OK(hal_queue_destroy(l->q[i][k]));
		OK(hal_buffer_destroy(l->buf[i]));
		OK(hal_partition_destroy(l->part[i]));
	}
	OK(hal_program_unload(l->w.prog));
	OK(hal_close(l->w.dev));
}

static uint64_t copied(struct loom *l)
{
	return stats_of(l->q[0][COPY]).completed + stats_of(l->q[1][COPY]).completed - 2;
}

/* Of 100 times 100 ns, how often it is one copy that runs, beside something else. */
static unsigned int woven(const char *policy)
{
	unsigned int times = 0;
	struct loom l;

	loom_open(&l, policy);
	for (int i = 0; i < SIDES; i++)
		for (int k = 0; k < 2; k++)
			give(&l, i, k, 50);
	pass(&l.w, 1);
	for (int i = 0; i < 100; i++) {
		uint64_t before = copied(&l);

		pass(&l.w, 100);
		times += copied(&l) - before == 1;
	}
	finish_all(&l.w);
	assert_int_equal(copied(&l), 100);
	loom_close(&l);
	return times;
}

static void weave(void **state)
{
	(void)state;
	assert_in_range(woven("policy.name=weave"), 99, 100);
	/* As they come: two copies, then none. */
	assert_int_equal(woven("policy.name=fifo"), 0);
}

/* 20 copies on each side. */
static uint64_t of_one_kind(const char *policy)
{
	struct loom l;
	uint64_t at;

	loom_open(&l, policy);
	at = hal_device_get_time(l.w.dev);
	for (int i = 0; i < SIDES; i++)
		give(&l, i, COPY, 20);
	finish_all(&l.w);
	at = hal_device_get_time(l.w.dev) - at;
	loom_close(&l);
	return at;
}

static void weave_loses(void **state)
{
	(void)state;
	assert_int_equal(of_one_kind("policy.name=fifo"), 2000);
	assert_in_range(of_one_kind("policy.name=weave"), 3000, 4100);
}

/* Nobody waits longer for a partner than he is to. */
static void waits(void **state)
{
	struct loom l;

	(void)state;
	loom_open(&l, "policy.name=weave");
	(void)submit(&l.w, l.q[0][COMPUTE], 1, 80000, 'l');
	pass(&l.w, 1);
	give(&l, 1, COMPUTE, 1);
	pass(&l.w, 999);
	assert_int_equal(stats_of(l.q[1][COMPUTE]).completed, 1);
	pass(&l.w, 102);
	assert_int_equal(stats_of(l.q[1][COMPUTE]).completed, 2);
	finish_all(&l.w);
	loom_close(&l);
}

static void bad(void **state)
{
	static const char *const none[] = {"policy.name=weave", "policy.weave_wait_us=-1",
					   NULL};
	struct hal_device *dev;

	(void)state;
	FAILS(hal_open("ref?clock=virtual", none, &dev), -EINVAL, "weave_wait_us");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(weave),
		cmocka_unit_test(weave_loses),
		cmocka_unit_test(waits),
		cmocka_unit_test(bad),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

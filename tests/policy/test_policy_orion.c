/* SPDX-License-Identifier: Apache-2.0 */
/* orion: best effort beside high priority, by what either is bound. Two partitions of
 * eight units that do not disturb each other; copies move 256 bytes a ns there. */
#include "world.h"

/* Copies of so many run so many ns on eight units, and are bound by memory: they
 * move 256 bytes a ns, or nearly. */
#define BYTES(ns)  (UINT64_C(128) * (ns)-16)
#define BANDWIDTH  "policy.orion_memory_mbs=200000"
#define ITS_OWN    "policy.orion_memory_mbs=0" /* of which it says nothing */
#define NO_LIMIT   "policy.orion_permille=1000000"
#define COPIES_MAX 4000

struct four {
	struct world w;
	struct hal_partition *other;
	/* High priority; and best effort in the other partition, and beside the first. */
	struct hal_queue *high, *be[2], *beside;
	struct hal_buffer *buf[2];
};

static struct hal_buffer *buffer(struct hal_partition *p)
{
	struct hal_buffer_desc d = HAL_INIT(hal_buffer_desc);
	struct hal_buffer *b;

	d.bytes = 2 * BYTES(COPIES_MAX);
	OK(hal_buffer_create(p, &d, &b));
	return b;
}

static void copies(struct hal_queue *q, struct hal_buffer *b, unsigned int count,
		   uint64_t ns)
{
	struct hal_cmd cmd = hal_cmd_copy(b, 0, b, BYTES(COPIES_MAX), BYTES(ns));
	struct hal_submit_desc d = HAL_INIT(hal_submit_desc);

	d.cmds = &cmd;
	d.cmd_count = 1;
	while (count-- > 0)
		OK(hal_submit(q, &d, NULL));
}

static void computes(struct four *f, struct hal_queue *q, unsigned int count, uint64_t ns)
{
	(void)submit(&f->w, q, count, 8 * ns, 'c');
}

static void four_open(struct four *f, const char *policy, const char *a, const char *b)
{
	const char *const options[] = {
		"hal.queue_depth=1024", policy, NO_LIMIT, a, b, NULL};
	struct hal_partition_desc eight = HAL_INIT(hal_partition_desc);

	memset(f, 0, sizeof(*f));
	memset(&ended, 0, sizeof(ended));
	OK(hal_open("ref?clock=virtual", options, &f->w.dev));
	eight.units_floor = 8;
	OK(hal_partition_create(f->w.dev, &eight, &f->w.part));
	OK(hal_partition_create(f->w.dev, &eight, &f->other));
	world_work(&f->w, 0);
	f->high = add_queue(f->w.part, 1, 1, 0);
	f->beside = add_queue(f->w.part, 0, 1, 0);
	f->buf[0] = buffer(f->w.part);
	f->buf[1] = buffer(f->other);
	for (int i = 0; i < 2; i++)
		f->be[i] = add_queue(f->other, 0, 1, 0);
	/* From here on it is known what they do. */
	copies(f->be[0], f->buf[1], 1, 100);
	computes(f, f->be[1], 1, 100);
	computes(f, f->beside, 1, 100);
	finish_all(&f->w);
}

static void four_close(struct four *f)
{
	struct hal_policy_info info = policy_of(&f->w);

	assert_int_equal(info.stalls + info.invalid + info.fallback, 0);
	OK(hal_queue_destroy(f->high));
	OK(hal_queue_destroy(f->beside));
	for (int i = 0; i < 2; i++) {
		OK(hal_queue_destroy(f->be[i]));
		OK(hal_buffer_destroy(f->buf[i]));
	}
	OK(hal_partition_destroy(f->other));
	world_close(&f->w);
}

/* Ended since its first. */
static uint64_t done(struct hal_queue *q)
{
	return stats_of(q).completed - 1;
}

/* Work of high priority for 5 us of the kind: what ends of best effort, 100 ns each. */
static void beside(const char *policy, const char *bandwidth, bool memory,
		   const uint64_t expect[3])
{
	struct four f;

	four_open(&f, policy, bandwidth, "hal.partition_inflight=1");
	if (memory)
		copies(f.high, f.buf[0], 1, 1000);
	else
		computes(&f, f.high, 1, 1000);
	finish_all(&f.w);
	if (memory)
		copies(f.high, f.buf[0], 5, 1000);
	else
		computes(&f, f.high, 5, 1000);
	pass(&f.w, 1);
	copies(f.be[0], f.buf[1], 100, 100);
	computes(&f, f.be[1], 100, 100);
	computes(&f, f.beside, 100, 100);
	pass(&f.w, 4999);
	assert_int_equal(done(f.be[0]), expect[0]);
	assert_int_equal(done(f.be[1]), expect[1]);
	assert_int_equal(done(f.beside), expect[2]);
	/* Then all of them, each in its partition as it came. */
	pass(&f.w, 2000);
	assert_in_range(done(f.beside), 19 + expect[2], 20 + expect[2]);
	finish_all(&f.w);
	assert_int_equal(done(f.be[0]) + done(f.be[1]) + done(f.beside), 300);
	four_close(&f);
}

static void orion(void **state)
{
	static const uint64_t copied[] = {49, 0, 0}, computed[] = {0, 49, 0};
	struct four f;

	(void)state;
	beside("policy.name=orion", BANDWIDTH, false, copied);
	beside("policy.name=orion", BANDWIDTH, true, computed);
	/* As soon as nothing of high priority runs, and no longer. */
	four_open(&f, "policy.name=orion", BANDWIDTH, "hal.partition_inflight=1");
	computes(&f, f.high, 1, 1000);
	computes(&f, f.be[1], 20, 100);
	pass(&f.w, 1000 + 250);
	assert_int_equal(done(f.be[1]), 2);
	computes(&f, f.high, 1, 1000);
	pass(&f.w, 1000);
	/* The one that ran. */
	assert_int_equal(done(f.be[1]), 3);
	pass(&f.w, 200);
	assert_int_equal(done(f.be[1]), 5);
	finish_all(&f.w);
	/* Also where others go on. */
	computes(&f, f.high, 1, 1000);
	pass(&f.w, 1);
	computes(&f, f.beside, 1, 1000);
	computes(&f, f.be[1], 20, 100);
	pass(&f.w, 999 + 250);
	assert_int_equal(done(f.be[1]), 20 + 2);
	finish_all(&f.w);
	four_close(&f);
}

/* High priority comes while best effort has the partition: how long 1,000 ns take. */
static uint64_t waits(const char *permille)
{
	struct hal_queue *more[5];
	struct four f;
	uint64_t at;

	four_open(&f, "policy.name=orion", permille, "hal.partition_inflight=5");
	/* The device has them in turn. */
	for (int i = 0; i < 5; i++) {
		more[i] = add_queue(f.w.part, 0, 1, 0);
		computes(&f, more[i], 1, 100);
	}
	/* What it runs is known of the second. */
	for (int i = 0; i < 2; i++) {
		computes(&f, f.high, 1, 1000);
		finish_all(&f.w);
	}
	for (int i = 0; i < 5; i++)
		computes(&f, more[i], 20, 100);
	pass(&f.w, 950);
	at = hal_device_get_time(f.w.dev);
	computes(&f, f.high, 1, 1000);
	while (done(f.high) < 2)
		pass(&f.w, 1);
	at = hal_device_get_time(f.w.dev) - at;
	finish_all(&f.w);
	for (int i = 0; i < 5; i++)
		OK(hal_queue_destroy(more[i]));
	four_close(&f);
	return at;
}

static void limit(void **state)
{
	(void)state;
	/* 25 ns: one at a time; 200: until they are more, three; then all have to end. */
	assert_int_equal(waits("policy.orion_permille=25"), 50 + 1000);
	assert_int_equal(waits("policy.orion_permille=200"), 250 + 1000);
	assert_int_equal(waits(NO_LIMIT), 450 + 1000);
}

static void orion_loses(void **state)
{
	static const uint64_t none[] = {0, 0, 0}, half[] = {25, 24, 0};

	(void)state;
	/* Nobody knows by what they are bound: nothing runs beside high priority. */
	beside("policy.name=orion", ITS_OWN, true, none);
	/* These do not disturb each other. */
	beside("policy.name=priority", BANDWIDTH, true, half);
}

/* High priority that goes in another way, and best effort that is served in the end. */
static void gone(void **state)
{
	static const char *const quick[] = {"timeout_ms=1", "orion_memory_mbs=200000",
					    NULL};
	const struct hal_ref_extension *ref;
	struct four f;

	(void)state;
	four_open(&f, "policy.name=orion", BANDWIDTH, "hal.partition_inflight=1");
	OK(hal_device_set_policy(f.w.dev, "orion", quick));
	computes(&f, f.high, 3, 1000);
	pass(&f.w, 500);
	computes(&f, f.be[1], 10, 100);
	pass(&f.w, 100);
	assert_int_equal(done(f.be[1]), 0);
	OK(hal_queue_suspend(f.high, HAL_SUSPEND_KILL, NULL));
	pass(&f.w, 501);
	assert_int_equal(done(f.be[1]), 5);
	OK(hal_queue_resume(f.high));
	finish_all(&f.w);
	ref = hal_device_get_extension(f.w.dev, "ref");
	assert_non_null(ref);
	OK(ref->inject(hal_device_get_native(f.w.dev), HAL_REF_OP_SUBMIT, 1, EIO));
	computes(&f, f.high, 1, 1000);
	pass(&f.w, 10);
	computes(&f, f.be[1], 10, 100);
	pass(&f.w, 500);
	assert_int_equal(done(f.be[1]), 15);
	finish_all(&f.w);
	OK(hal_queue_destroy(f.high));
	f.high = add_queue(f.w.part, 1, 1, 0);
	/* 20 ms of one, and 18 that starve for more than one of them. */
	computes(&f, f.high, 1, 1000);
	finish_all(&f.w);
	computes(&f, f.high, 200, 100000);
	computes(&f, f.be[1], 40, 10);
	pass(&f.w, 19000000);
	assert_in_range(done(f.be[1]) - 20, 18, 19);
	assert_in_range(policy_of(&f.w).starved, 18, 19);
	finish_all(&f.w);
	four_close(&f);
}

static void bad(void **state)
{
	static const char *const none[] = {"policy.name=orion",
					   "policy.orion_unknown_us=0", NULL};
	struct hal_device *dev;

	(void)state;
	FAILS(hal_open("ref?clock=virtual", none, &dev), -EINVAL, "orion_unknown_us");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(orion),       cmocka_unit_test(limit),
		cmocka_unit_test(orion_loses), cmocka_unit_test(gone),
		cmocka_unit_test(bad),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

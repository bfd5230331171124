/* SPDX-License-Identifier: Apache-2.0 */
/* v10: the array of a device of 16 units by turns, and what needs none of it beside.  A
 * profile says which kernel is which. */
#include "world.h"

#include "profile_file.h"

enum { ALL = 16, LEAST = 2, MOST = 14 };
enum { MATRIX, VECTOR, KERNELS };

struct npu {
	struct world w;
	struct hal_kernel *kernel[KERNELS];
	struct hal_partition *part[2];
	struct hal_queue *q[2];
};

static int nothing(const struct hal_ref_call *call)
{
	(void)call;
	return 0;
}

/* Matrix commands of 2,800, not faster than span_ns; vector commands of 200 ns. */
static void npu_open(struct npu *n, const char *policy, const char *a, const char *b,
		     uint64_t span_ns, const uint32_t *weights)
{
	const struct profiled k[] = {
		{"matrix", 2800, "", "array", 0, 2800, span_ns, NULL},
		{"vector", 16, "", "vector", 0, 16, 200, NULL},
	};
	const struct hal_ref_kernel kernels[] = {
		{.name = "matrix", .fn = nothing, .work = 2800, .span_ns = span_ns},
		{.name = "vector", .fn = nothing, .work = 16, .span_ns = 200}};
	char text[PROFILE_BYTES];
	const char *options[] = {"hal.queue_depth=4096",
				 "hal.partition_inflight=1",
				 "hal.inflight=1",
				 NULL,
				 policy,
				 a,
				 b,
				 NULL};
	bool moves = strstr(policy, "v10") != NULL;
	struct hal_partition_desc d = HAL_INIT(hal_partition_desc);

	memset(n, 0, sizeof(*n));
	profile_text(text, k, KERNELS, 8, 0);
	options[3] = profile_file(text);
	OK(hal_open("ref?clock=virtual", options, &n->w.dev));
	OK(hal_ref_load(n->w.dev, kernels, KERNELS, &n->w.prog));
	OK(hal_kernel_find(n->w.prog, "matrix", &n->kernel[MATRIX]));
	OK(hal_kernel_find(n->w.prog, "vector", &n->kernel[VECTOR]));
	d.units_floor = moves ? LEAST : ALL / 2;
	d.units_ceiling = moves ? MOST : 0;
	for (int i = 0; i < 2; i++) {
		OK(hal_partition_create(n->w.dev, &d, &n->part[i]));
		n->q[i] = add_queue(n->part[i], 0, weights != NULL ? weights[i] : 1, 0);
	}
}

static void npu_close(struct npu *n)
{
	struct hal_policy_info info = policy_of(&n->w);

	finish_all(&n->w);
	assert_int_equal(info.stalls + info.invalid + info.fallback, 0);
	for (int i = 0; i < 2; i++) {
		OK(hal_queue_destroy(n->q[i]));
		OK(hal_partition_destroy(n->part[i]));
	}
	OK(hal_program_unload(n->w.prog));
	OK(hal_close(n->w.dev));
	profile_gone();
}

static void give(struct npu *n, int side, int kernel, unsigned int count)
{
	struct hal_submit_desc d = HAL_INIT(hal_submit_desc);
	struct hal_cmd cmd = hal_cmd_launch(n->kernel[kernel], NULL, 0);

	cmd.flags = HAL_CMD_REPLAYABLE;
	d.cmds = &cmd;
	d.cmd_count = 1;
	while (count-- > 0)
		OK(hal_submit(n->q[side], &d, NULL));
}

static uint32_t units(struct npu *n, int i)
{
	struct hal_partition_info info = HAL_INIT(hal_partition_info);

	OK(hal_partition_get_info(n->part[i], &info));
	return info.units;
}

static uint64_t done(struct npu *n, int i)
{
	return stats_of(n->q[i]).completed;
}

/* 20 matrix commands on each side, a vector command behind each, or none. */
static uint64_t rounds(const char *policy, bool vectors, uint64_t span_ns)
{
	struct npu n;
	uint64_t at;

	npu_open(&n, policy, NULL, NULL, span_ns, NULL);
	at = hal_device_get_time(n.w.dev);
	for (int i = 0; i < 20; i++)
		for (int side = 0; side < 2; side++) {
			give(&n, side, MATRIX, 1);
			give(&n, side, VECTOR, vectors);
		}
	finish_all(&n.w);
	at = hal_device_get_time(n.w.dev) - at;
	npu_close(&n);
	return at;
}

static void v10(void **state)
{
	(void)state;
	/* 350 and 200 each on half of it; 200 and 200 when one has nearly all. */
	assert_int_equal(rounds("policy.name=fifo", true, 0), 20 * 550);
	assert_in_range(rounds("policy.name=v10", true, 0), 20 * 400, 20 * 430);
}

static void v10_loses(void **state)
{
	(void)state;
	/* Half of the array would have been enough for each. */
	assert_int_equal(rounds("policy.name=fifo", false, 350), 20 * 350);
	assert_in_range(rounds("policy.name=v10", false, 350), 40 * 350, 40 * 370);
}

/* The array follows, while vector commands run on what is left. */
static void the_array_moves(void **state)
{
	struct npu n;

	(void)state;
	npu_open(&n, "policy.name=v10", NULL, NULL, 0, NULL);
	give(&n, 0, MATRIX, 1);
	give(&n, 1, VECTOR, 2);
	pass(&n.w, 190);
	assert_int_equal(units(&n, 0), MOST);
	assert_int_equal(units(&n, 1), LEAST);
	finish_all(&n.w);
	give(&n, 1, MATRIX, 1);
	pass(&n.w, 100);
	assert_int_equal(units(&n, 0), LEAST);
	assert_int_equal(units(&n, 1), MOST);
	npu_close(&n);
}

/* Array time by weight, whoever asks for more. */
static void by_weight(void **state)
{
	static const uint32_t weights[] = {1, 3};
	struct npu n;

	(void)state;
	npu_open(&n, "policy.name=v10", "policy.v10_slice_us=1", NULL, 0, weights);
	for (int side = 0; side < 2; side++)
		give(&n, side, MATRIX, 1000);
	pass(&n.w, 100000);
	assert_in_range(done(&n, 1) * 100 / done(&n, 0), 280, 320);
	npu_close(&n);
}

/* Nobody waits longer for the array than he is to. */
static void waits(void **state)
{
	struct npu n;

	(void)state;
	npu_open(&n, "policy.name=v10", "policy.v10_slice_us=10000",
		 "policy.v10_wait_us=2", 0, NULL);
	give(&n, 0, MATRIX, 100);
	pass(&n.w, 1);
	give(&n, 1, MATRIX, 1);
	/* On two units. */
	pass(&n.w, 1999 + 1395);
	assert_int_equal(done(&n, 1), 0);
	pass(&n.w, 50);
	assert_int_equal(done(&n, 1), 1);
	npu_close(&n);
}

/* How long one waits who comes when the other has had the array for 300 us of a slice of
 * 400; in between the policy is replaced. */
static uint64_t replaced(const char *first)
{
	static const char *const options[] = {"v10_slice_us=400", "v10_wait_us=1000000",
					      NULL};
	struct npu n;
	uint64_t at;

	npu_open(&n, "policy.name=v10", "policy.v10_slice_us=400",
		 "policy.v10_wait_us=1000000", 0, NULL);
	give(&n, 0, MATRIX, 4000);
	pass(&n.w, 300000);
	if (strcmp(first, "v10") != 0)
		OK(hal_device_set_policy(n.w.dev, first, NULL));
	OK(hal_device_set_policy(n.w.dev, "v10", options));
	at = hal_device_get_time(n.w.dev);
	give(&n, 1, MATRIX, 1);
	while (done(&n, 1) == 0)
		pass(&n.w, 100);
	at = hal_device_get_time(n.w.dev) - at;
	npu_close(&n);
	return at;
}

static void what_was_used_is_kept(void **state)
{
	(void)state;
	assert_in_range(replaced("v10"), 90000, 120000);
	/* Of another policy it is not. */
	assert_in_range(replaced("fifo"), 390000, 420000);
}

/* Without a profile, work says that a kernel needs the array; without that an option
 * does. */
static uint64_t nobody_says(const char *option, uint64_t work)
{
	const char *const options[] = {"hal.queue_depth=64", "hal.partition_inflight=1",
				       "policy.name=v10", option, NULL};
	struct hal_partition_desc d = HAL_INIT(hal_partition_desc);
	struct hal_partition *part[2];
	struct hal_queue *q[2];
	struct world w;
	uint64_t at;

	memset(&w, 0, sizeof(w));
	memset(&ended, 0, sizeof(ended));
	OK(hal_open("ref?clock=virtual", options, &w.dev));
	world_span(&w, work, 1000);
	d.units_floor = 2;
	d.units_ceiling = 14;
	for (int i = 0; i < 2; i++) {
		OK(hal_partition_create(w.dev, &d, &part[i]));
		q[i] = add_queue(part[i], 0, 1, 0);
		(void)submit(&w, q[i], 4, 16, 'n');
	}
	finish_all(&w);
	at = hal_device_get_time(w.dev);
	for (int i = 0; i < 2; i++) {
		OK(hal_queue_destroy(q[i]));
		OK(hal_partition_destroy(part[i]));
	}
	OK(hal_program_unload(w.prog));
	OK(hal_close(w.dev));
	return at;
}

static void who_does_not_say(void **state)
{
	(void)state;
	assert_in_range(nobody_says("policy.v10_unknown=array", 0), 8000, 8100);
	assert_in_range(nobody_says("policy.v10_unknown=vector", 0), 4000, 4100);
	assert_in_range(nobody_says("policy.v10_unknown=vector", 16), 8000, 8100);
}

/* ---- more than two partitions ------------------------------------------------------ */

enum { CROWD = 6, MORE = 1 }; /* partitions; the one with two queues */

struct crowd {
	struct world w;
	struct hal_kernel *kernel;
	struct hal_partition *part[CROWD];
	struct hal_queue *q[CROWD], *more;
};

/* Open CROWD partitions of 1 to 11 of 16 units, whose queues have these weights. */
static void crowd_open(struct crowd *c, const uint32_t *weights)
{
	const struct hal_ref_kernel kernel = {
		.name = "matrix", .fn = nothing, .work = 2200};
	const char *options[] = {"policy.name=v10",
				 "policy.v10_slice_us=1",
				 "policy.v10_wait_us=1000000",
				 "hal.queue_depth=1024",
				 "hal.partition_inflight=1",
				 "hal.inflight=1",
				 NULL};
	struct hal_partition_desc d = HAL_INIT(hal_partition_desc);

	memset(c, 0, sizeof(*c));
	OK(hal_open("ref?clock=virtual", options, &c->w.dev));
	OK(hal_ref_load(c->w.dev, &kernel, 1, &c->w.prog));
	OK(hal_kernel_find(c->w.prog, "matrix", &c->kernel));
	d.units_floor = 1;
	d.units_ceiling = ALL - CROWD + 1;
	for (int i = 0; i < CROWD; i++) {
		OK(hal_partition_create(c->w.dev, &d, &c->part[i]));
		c->q[i] = add_queue(c->part[i], 0, weights[i], 0);
	}
	c->more = add_queue(c->part[MORE], 0, weights[MORE], 0);
}

static void crowd_give(const struct crowd *c, struct hal_queue *q, unsigned int count)
{
	struct hal_submit_desc d = HAL_INIT(hal_submit_desc);
	struct hal_cmd cmd = hal_cmd_launch(c->kernel, NULL, 0);

	d.cmds = &cmd;
	d.cmd_count = 1;
	while (count-- > 0)
		OK(hal_submit(q, &d, NULL));
}

static void crowd_close(struct crowd *c)
{
	finish_all(&c->w);
	OK(hal_queue_destroy(c->more));
	for (int i = 0; i < CROWD; i++) {
		OK(hal_queue_destroy(c->q[i]));
		OK(hal_partition_destroy(c->part[i]));
	}
	OK(hal_program_unload(c->w.prog));
	OK(hal_close(c->w.dev));
}

/* Each partition gets array time by the weight of its queues, however many. */
static void all_by_weight(void **state)
{
	static const uint32_t weights[CROWD] = {1, 3, 2, 1, 3, 2};
	struct crowd c;

	(void)state;
	crowd_open(&c, weights);
	for (int i = 0; i < CROWD; i++)
		crowd_give(&c, c.q[i], 1000);
	crowd_give(&c, c.more, 1000);
	pass(&c.w, 480000);
	for (int i = 0; i < CROWD; i++) {
		uint64_t completed = stats_of(c.q[i]).completed;

		if (i == MORE)
			completed += stats_of(c.more).completed;
		assert_in_range(completed, 180 * weights[i], 210 * weights[i]);
	}
	crowd_close(&c);
}

/* Of two partitions with the same array time, the one that was attached last is next. */
static void last_attached_first(void **state)
{
	static const uint32_t weights[CROWD] = {1, 1, 1, 1, 1, 1};
	struct crowd c;

	(void)state;
	crowd_open(&c, weights);
	crowd_give(&c, c.q[0], 1);
	finish_all(&c.w);
	crowd_give(&c, c.q[0], 100);
	pass(&c.w, 10);
	for (int i = 1; i < CROWD; i++)
		crowd_give(&c, c.q[i], 100);
	pass(&c.w, 1500);
	for (int i = 1; i < CROWD - 1; i++)
		assert_int_equal(stats_of(c.q[i]).completed, 0);
	assert_true(stats_of(c.q[CROWD - 1]).completed > 0);
	crowd_close(&c);
}

static void bad(void **state)
{
	static const char *const wrong[][2] = {
		{"policy.v10_slice_us=0", "v10_slice_us"},
		{"policy.v10_wait_us=0", "v10_wait_us"},
		{"policy.v10_unknown=matrix", "v10_unknown"},
	};
	struct hal_device *dev;

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		const char *const options[] = {"policy.name=v10", wrong[i][0], NULL};

		FAILS(hal_open("ref?clock=virtual", options, &dev), -EINVAL, wrong[i][1]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(v10),
		cmocka_unit_test(v10_loses),
		cmocka_unit_test(the_array_moves),
		cmocka_unit_test(by_weight),
		cmocka_unit_test(waits),
		cmocka_unit_test(what_was_used_is_kept),
		cmocka_unit_test(who_does_not_say),
		cmocka_unit_test(all_by_weight),
		cmocka_unit_test(last_attached_first),
		cmocka_unit_test(bad),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

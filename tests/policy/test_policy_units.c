/* SPDX-License-Identifier: Apache-2.0 */
/* tidal, krisp, fission and fgpu: who has how many units of two partitions of a device
 * of 16.
 */
#include "world.h"

enum { ALL = 16, LEAST = 2, MOST = 14 };

struct sides {
	struct world w;
	struct hal_partition *part[2];
	struct hal_queue *q[2];
};

/* Policy NULL: a fixed split, served as it comes. */
static void sides_open(struct sides *s, const char *policy, const char *option,
		       const struct hal_queue_desc *desc)
{
	const char *const options[] = {"hal.queue_depth=4096", "hal.partition_inflight=1",
				       policy != NULL ? policy : "policy.name=fifo",
				       option, NULL};
	struct hal_partition_desc d = HAL_INIT(hal_partition_desc);

	memset(s, 0, sizeof(*s));
	memset(&ended, 0, sizeof(ended));
	OK(hal_open("ref?clock=virtual&units=16", options, &s->w.dev));
	world_work(&s->w, 0);
	d.units_floor = policy != NULL ? LEAST : ALL / 2;
	d.units_ceiling = policy != NULL ? MOST : 0;
	for (int i = 0; i < 2; i++) {
		OK(hal_partition_create(s->w.dev, &d, &s->part[i]));
		OK(hal_queue_create(s->part[i], &desc[i], &s->q[i]));
	}
}

static void sides_close(struct sides *s)
{
	struct hal_policy_info info = policy_of(&s->w);

	finish_all(&s->w);
	assert_int_equal(info.stalls + info.invalid + info.fallback, 0);
	for (int i = 0; i < 2; i++) {
		OK(hal_queue_destroy(s->q[i]));
		OK(hal_partition_destroy(s->part[i]));
	}
	OK(hal_program_unload(s->w.prog));
	OK(hal_close(s->w.dev));
}

static uint32_t units(struct sides *s, int i)
{
	struct hal_partition_info info = HAL_INIT(hal_partition_info);

	OK(hal_partition_get_info(s->part[i], &info));
	return info.units;
}

static uint64_t done(struct sides *s, int i)
{
	return stats_of(s->q[i]).completed;
}

/* ---- tidal ------------------------------------------------------------------------- */

struct tide {
	uint64_t worst_ns; /* of a burst */
	uint64_t last_ns;
	uint64_t effort; /* commands of best effort */
};

/* Bursts of four commands of 14,000 each 20 us, which do not run faster than span; beside
 * commands of 1,400 without end. */
static struct tide bursts(const char *policy, uint64_t span_ns)
{
	struct hal_queue_desc d[2] = {HAL_INIT(hal_queue_desc), HAL_INIT(hal_queue_desc)};
	struct tide tide = {0, 0, 0};
	struct hal_program *effort;
	struct sides s;

	d[0].priority = 1;
	sides_open(&s, policy, "policy.tidal_idle_us=1", d);
	(void)submit(&s.w, s.q[1], 2000, 1400, 'e');
	effort = s.w.prog;
	s.w.prog = NULL;
	world_span(&s.w, 0, span_ns);
	for (int i = 0; i < 8; i++) {
		uint64_t at = hal_device_get_time(s.w.dev);

		finish(submit(&s.w, s.q[0], 4, 14000, 'c'));
		if (policy != NULL)
			assert_int_equal(units(&s, 0) + units(&s, 1), ALL);
		tide.last_ns = hal_device_get_time(s.w.dev) - at;
		if (tide.last_ns > tide.worst_ns)
			tide.worst_ns = tide.last_ns;
		pass(&s.w, at + 20000 - hal_device_get_time(s.w.dev));
		if (policy != NULL)
			assert_int_equal(units(&s, 1), MOST);
	}
	tide.effort = done(&s, 1);
	finish_all(&s.w);
	OK(hal_program_unload(effort));
	sides_close(&s);
	return tide;
}

static void tidal(void **state)
{
	struct tide split = bursts(NULL, 0), now = bursts("policy.name=tidal", 0);

	(void)state;
	/* Seven eighths of the device, each when it wants them; one command has tried
	 * whether half of them are enough. */
	assert_int_equal(split.worst_ns, 7000);
	assert_int_equal(now.worst_ns, 5000);
	assert_in_range(now.last_ns, 4000, 4100);
	assert_in_range(now.effort * 100 / split.effort, 130, 145);
}

/* What is as fast with half of them leaves best effort the rest. */
static void tidal_enough(void **state)
{
	struct tide split = bursts(NULL, 4000), now = bursts("policy.name=tidal", 4000);

	(void)state;
	assert_int_equal(split.worst_ns, 16000);
	assert_in_range(now.worst_ns, 16000, 16700);
	assert_int_equal(now.last_ns, 16000);
	assert_true(now.effort * 10 > split.effort * 11);
}

/* A short command each 20 us; best effort's commands in 2 ms. */
static uint64_t beside_short(const char *policy)
{
	struct hal_queue_desc d[2] = {HAL_INIT(hal_queue_desc), HAL_INIT(hal_queue_desc)};
	struct sides s;
	uint64_t count;

	d[0].priority = 1;
	sides_open(&s, policy, NULL, d);
	(void)submit(&s.w, s.q[1], 2000, 8400, 'e');
	for (int i = 0; i < 100; i++) {
		(void)submit(&s.w, s.q[0], 1, 1400, 'c');
		pass(&s.w, 20000);
	}
	count = done(&s, 1);
	finish_all(&s.w);
	sides_close(&s);
	return count;
}

static void tidal_loses(void **state)
{
	uint64_t split = beside_short(NULL), now = beside_short("policy.name=tidal");

	(void)state;
	/* It never rests for as long as tidal_idle_us, and its units are idle. */
	assert_in_range(split, 1800, 2000);
	assert_true(now * 3 < split);
}

/* As much as is there, in parts; and who asks for what is not there. */
static void tidal_shares(void **state)
{
	struct hal_queue_desc d[2] = {HAL_INIT(hal_queue_desc), HAL_INIT(hal_queue_desc)};
	struct hal_partition_desc more = HAL_INIT(hal_partition_desc);
	struct hal_partition *third;
	struct sides s;

	(void)state;
	sides_open(&s, "policy.name=tidal", "policy.tidal_idle_us=1", d);
	more.units_floor = 4;
	OK(hal_partition_create(s.w.dev, &more, &third));
	for (int i = 0; i < 2; i++)
		(void)submit(&s.w, s.q[i], 100, 600, 'e');
	pass(&s.w, 100);
	/* A third has four of which nobody is told. */
	assert_int_equal(units(&s, 0), LEAST);
	assert_int_equal(units(&s, 1), LEAST);
	OK(hal_partition_destroy(third));
	pass(&s.w, 2000000);
	for (int i = 0; i < 2; i++)
		(void)submit(&s.w, s.q[i], 100, 600, 'e');
	pass(&s.w, 100);
	assert_int_equal(units(&s, 0), ALL / 2);
	assert_int_equal(units(&s, 1), ALL / 2);
	finish_all(&s.w);
	assert_int_equal(units(&s, 0), LEAST);
	sides_close(&s);
}

/* What was faster with fewer units than with all needs the fewer. */
static void tidal_fewer(void **state)
{
	struct hal_queue_desc d[2] = {HAL_INIT(hal_queue_desc), HAL_INIT(hal_queue_desc)};
	struct hal_partition_desc more = HAL_INIT(hal_partition_desc);
	struct hal_program *slow;
	struct hal_partition *third;
	struct hal_kernel *work;
	struct sides s;

	(void)state;
	d[0].priority = 1;
	sides_open(&s, "policy.name=tidal", "policy.tidal_idle_us=1", d);
	work = s.w.work;
	finish(submit(&s.w, s.q[0], 4, 14000, 's'));
	pass(&s.w, 2000000);
	assert_int_equal(units(&s, 0), LEAST);
	slow = s.w.prog;
	s.w.prog = NULL;
	world_span(&s.w, 0, 10);
	more.units_floor = 4;
	OK(hal_partition_create(s.w.dev, &more, &third));
	finish(submit(&s.w, s.q[0], 4, 1, 'f'));
	OK(hal_partition_destroy(third));
	pass(&s.w, 2000000);
	s.w.work = work;
	(void)submit(&s.w, s.q[0], 4, 14000, 's');
	pass(&s.w, 100);
	assert_int_equal(units(&s, 0), 3);
	finish_all(&s.w);
	OK(hal_program_unload(slow));
	sides_close(&s);
}

static void units_of_four(struct hal_partition *const *part, uint32_t a, uint32_t b,
			  uint32_t c, uint32_t d)
{
	const uint32_t wanted[] = {a, b, c, d};

	for (int i = 0; i < 4; i++) {
		struct hal_partition_info info = HAL_INIT(hal_partition_info);

		OK(hal_partition_get_info(part[i], &info));
		assert_int_equal(info.units, wanted[i]);
		assert_int_equal(info.rows, wanted[i] < 8 ? wanted[i] : 8);
	}
}

/* On a grid of 8 x 8 units go in whole columns, and in equal parts to critical work. */
static void tidal_grid(void **state)
{
	static const char *const options[] = {
		"hal.queue_depth=1024", "hal.partition_inflight=1", "policy.name=tidal",
		"policy.tidal_idle_us=1", NULL};
	static const uint32_t floors[] = {8, 8, 4, 1};
	struct hal_partition_desc d = HAL_INIT(hal_partition_desc);
	struct hal_queue_desc desc = HAL_INIT(hal_queue_desc);
	struct hal_partition *part[4];
	struct hal_queue *q[4];
	struct world w;

	(void)state;
	memset(&w, 0, sizeof(w));
	memset(&ended, 0, sizeof(ended));
	OK(hal_open("ref?clock=virtual&units=64&rows=8", options, &w.dev));
	world_work(&w, 0);
	d.units_ceiling = 40;
	for (int i = 0; i < 4; i++) {
		d.units_floor = floors[i];
		desc.priority = i < 2;
		OK(hal_partition_create(w.dev, &d, &part[i]));
		OK(hal_queue_create(part[i], &desc, &q[i]));
	}
	units_of_four(part, 8, 8, 4, 1);
	(void)submit(&w, q[0], 20, 40000, 'a');
	pass(&w, 100);
	units_of_four(part, 40, 8, 4, 1);
	(void)submit(&w, q[1], 20, 40000, 'b');
	pass(&w, 4000);
	units_of_four(part, 24, 32, 4, 1);
	(void)submit(&w, q[2], 100, 400, 'c');
	pass(&w, 100);
	units_of_four(part, 24, 32, 4, 1);
	finish_all(&w);
	pass(&w, 10000);
	(void)submit(&w, q[2], 20, 40000, 'c');
	pass(&w, 100);
	units_of_four(part, 8, 8, 40, 1);
	finish_all(&w);
	pass(&w, 10000);
	assert_int_equal(policy_of(&w).invalid, 0);
	for (int i = 0; i < 4; i++) {
		OK(hal_queue_destroy(q[i]));
		OK(hal_partition_destroy(part[i]));
	}
	OK(hal_program_unload(w.prog));
	OK(hal_close(w.dev));
}

/* ---- krisp ------------------------------------------------------------------------- */

/* Commands that three units are enough for, beside others for 100 us. */
static uint64_t beside_narrow(const char *policy)
{
	struct hal_queue_desc d[2] = {HAL_INIT(hal_queue_desc), HAL_INIT(hal_queue_desc)};
	struct hal_program *narrow;
	struct hal_kernel *wide;
	uint64_t count;
	struct sides s;

	sides_open(&s, policy, NULL, d);
	wide = s.w.work;
	narrow = s.w.prog;
	s.w.prog = NULL;
	world_span(&s.w, 0, 400);
	(void)submit(&s.w, s.q[0], 240, 1200, 'n');
	s.w.work = wide;
	(void)submit(&s.w, s.q[1], 1000, 1200, 'w');
	pass(&s.w, 90000);
	/* Those are no slower for it, but while that was found out. */
	assert_in_range(done(&s, 0), 220, 225);
	count = done(&s, 1);
	if (policy != NULL) {
		assert_int_equal(units(&s, 0), 3);
		assert_int_equal(units(&s, 1), 13);
	}
	finish_all(&s.w);
	OK(hal_program_unload(narrow));
	sides_close(&s);
	return count;
}

static void krisp(void **state)
{
	uint64_t split = beside_narrow(NULL), now = beside_narrow("policy.name=krisp");

	(void)state;
	assert_in_range(now * 100 / split, 140, 165);
}

/* Eight commands alone: some of them go to find out that all units are needed. */
static uint64_t eight(const char *policy)
{
	struct hal_queue_desc d[2] = {HAL_INIT(hal_queue_desc), HAL_INIT(hal_queue_desc)};
	struct sides s;
	uint64_t at;

	sides_open(&s, policy, "policy.tidal_idle_us=1", d);
	at = hal_device_get_time(s.w.dev);
	finish(submit(&s.w, s.q[0], 8, 1400, 'k'));
	at = hal_device_get_time(s.w.dev) - at;
	sides_close(&s);
	return at;
}

static void krisp_loses(void **state)
{
	(void)state;
	assert_int_equal(eight("policy.name=tidal"), 800);
	assert_int_equal(eight("policy.name=krisp"), 900);
}

/* ---- fission ----------------------------------------------------------------------- */

/* Each period one side has much to do and the other little, by turns; what is late. */
static uint64_t late(const char *policy)
{
	struct hal_queue_desc d[2] = {HAL_INIT(hal_queue_desc), HAL_INIT(hal_queue_desc)};
	struct sides s;
	uint64_t misses;

	d[0].deadline_ns = 1500;
	d[1].deadline_ns = 1500;
	sides_open(&s, policy, "policy.fission_unknown_us=1", d);
	for (int i = 0; i < 40; i++) {
		int heavy = i / 10 % 2;

		(void)submit(&s.w, s.q[heavy], 1, 14000, 'h');
		(void)submit(&s.w, s.q[!heavy], 1, 1400, 'l');
		pass(&s.w, 3000);
	}
	misses = stats_of(s.q[0]).deadline_misses + stats_of(s.q[1]).deadline_misses;
	sides_close(&s);
	return misses;
}

static void fission(void **state)
{
	(void)state;
	assert_int_equal(late(NULL), 40);
	/* Until it is known how long those are, and when that changes. */
	assert_in_range(late("policy.name=fission"), 1, 17);
}

/* Who has nothing to do any more needs nothing. */
static void fission_idle(void **state)
{
	struct hal_queue_desc d[2] = {HAL_INIT(hal_queue_desc), HAL_INIT(hal_queue_desc)};
	struct sides s;

	(void)state;
	d[0].deadline_ns = 1000;
	sides_open(&s, "policy.name=fission", "policy.fission_unknown_us=1", d);
	(void)submit(&s.w, s.q[0], 3, 12000, 'd');
	finish_all(&s.w);
	assert_int_equal(units(&s, 0), MOST);
	/* For longer than borders stay where they are. */
	(void)submit(&s.w, s.q[1], 100, 14000, 'e');
	pass(&s.w, 120000);
	assert_int_equal(units(&s, 1), MOST);
	sides_close(&s);
}

/* A partition with work, all units that it can have and a deadline; and a newcomer whose
 * first work is due 100 ns later and wants 4 units. */
static void newcomer(uint32_t commands, uint32_t units0)
{
	static const char *const options[] = {"hal.partition_inflight=1",
					      "policy.name=fission",
					      "policy.fission_unknown_us=1", NULL};
	struct hal_partition_desc pd = HAL_INIT(hal_partition_desc);
	struct hal_partition *between;
	struct sides s;

	memset(&s, 0, sizeof(s));
	memset(&ended, 0, sizeof(ended));
	OK(hal_open("ref?clock=virtual&units=16", options, &s.w.dev));
	world_work(&s.w, 0);
	pd.units_floor = LEAST;
	pd.units_ceiling = MOST;
	OK(hal_partition_create(s.w.dev, &pd, &s.part[0]));
	/* The newcomer is at the end, since nothing moves it before it has a queue. */
	pd.units_floor = MOST - LEAST;
	OK(hal_partition_create(s.w.dev, &pd, &between));
	pd.units_floor = LEAST;
	OK(hal_partition_create(s.w.dev, &pd, &s.part[1]));
	OK(hal_partition_destroy(between));
	s.q[0] = add_queue(s.part[0], 0, 1, 1200);
	finish(submit(&s.w, s.q[0], 1, 14000, 'd'));
	(void)submit(&s.w, s.q[0], commands, 14000, 'd');
	pass(&s.w, 600);
	assert_int_equal(units(&s, 0), MOST);
	s.q[1] = add_queue(s.part[1], 0, 1, 700);
	(void)submit(&s.w, s.q[1], 1, 2000, 'n');
	pass(&s.w, 1);
	assert_int_equal(units(&s, 0), units0);
	assert_int_equal(units(&s, 1), ALL - units0);
	sides_close(&s);
}

/* The first work of a new partition comes after work that is due before.  Of two commands
 * one waits, for which all units are needed. */
static void fission_newcomer(void **state)
{
	(void)state;
	newcomer(2, MOST);
}

/* A partition whose only command runs has work: it keeps the 13 units that it needs. */
static void fission_running(void **state)
{
	(void)state;
	newcomer(1, 13);
}

/* Ten come at once, each of which would be in time on few units if it were alone. */
static void fission_burst(void **state)
{
	struct hal_queue_desc d[2] = {HAL_INIT(hal_queue_desc), HAL_INIT(hal_queue_desc)};
	struct sides s;

	(void)state;
	d[0].deadline_ns = 2000;
	sides_open(&s, "policy.name=fission", "policy.fission_unknown_us=1", d);
	(void)submit(&s.w, s.q[0], 1, 2000, 'd');
	(void)submit(&s.w, s.q[1], 1000, 1400, 'e');
	pass(&s.w, 5000);
	(void)submit(&s.w, s.q[0], 1, 2000, 'd');
	pass(&s.w, 100);
	assert_int_equal(units(&s, 0), ALL / 2);
	pass(&s.w, 5000);
	/* What keeps the last of them in time, and half of what is over. */
	(void)submit(&s.w, s.q[0], 10, 2000, 'd');
	pass(&s.w, 100);
	assert_in_range(units(&s, 0), 12, 14);
	finish_all(&s.w);
	assert_int_equal(stats_of(s.q[0]).deadline_misses, 0);
	sides_close(&s);
}

/* A deadline that no number of units keeps, beside best effort for 100 us. */
static uint64_t beside_late(const char *policy)
{
	struct hal_queue_desc d[2] = {HAL_INIT(hal_queue_desc), HAL_INIT(hal_queue_desc)};
	struct sides s;
	uint64_t count;

	d[0].deadline_ns = 100;
	sides_open(&s, policy, "policy.fission_unknown_us=1", d);
	(void)submit(&s.w, s.q[1], 1000, 1400, 'e');
	for (int i = 0; i < 100; i++) {
		(void)submit(&s.w, s.q[0], 1, 4000, 'd');
		pass(&s.w, 1000);
	}
	assert_int_equal(stats_of(s.q[0]).deadline_misses, 100);
	count = done(&s, 1);
	sides_close(&s);
	return count;
}

static void fission_loses(void **state)
{
	uint64_t split = beside_late(NULL), now = beside_late("policy.name=fission");

	(void)state;
	assert_true(now < split);
}

static void bad(void **state)
{
	static const char *const wrong[][3] = {
		{"policy.name=tidal", "policy.tidal_idle_us=0", "tidal_idle_us"},
		{"policy.name=krisp", "policy.krisp_percent=-1", "krisp_percent"},
		{"policy.name=fission", "policy.fission_unknown_us=0",
		 "fission_unknown_us"},
		{"policy.name=tidal", "policy.tidal_ch_be=0", "1..1000"},
		{"policy.name=tidal", "policy.tidal_ch_be=1001", "tidal_ch_be"},
		{"policy.name=fgpu", "policy.fgpu_parts=0", "fgpu_parts"},
		{"policy.name=fgpu", "policy.fgpu_parts=33", "1..32"},
		{"policy.name=fgpu", "policy.fgpu_colors=none", "own|any"},
		{"policy.name=moca", "policy.moca_window_us=0", "moca_window_us"},
		{"policy.name=moca", "policy.moca_percent=101", "1..100"},
		{"policy.name=moca", "policy.moca_weight=0", "moca_weight"},
	};
	struct hal_device *dev;

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		const char *const options[] = {wrong[i][0], wrong[i][1], NULL};

		FAILS(hal_open("ref?clock=virtual", options, &dev), -EINVAL, wrong[i][2]);
	}
}

/* ---- fgpu -------------------------------------------------------------------------- */

/* A hundred commands on one side, beside as many on the other or alone. */
static uint64_t half(const char *policy, bool beside)
{
	struct hal_queue_desc d[2] = {HAL_INIT(hal_queue_desc), HAL_INIT(hal_queue_desc)};
	struct sides s;
	uint64_t at;

	sides_open(&s, policy, NULL, d);
	if (beside)
		(void)submit(&s.w, s.q[1], 400, 1400, 'o');
	at = hal_device_get_time(s.w.dev);
	finish(submit(&s.w, s.q[0], 100, 1400, 'h'));
	at = hal_device_get_time(s.w.dev) - at;
	if (strcmp(policy, "policy.name=fgpu") == 0)
		for (int i = 0; i < 2; i++)
			assert_int_equal(units(&s, i), ALL / 2);
	sides_close(&s);
	return at;
}

/* Half of the device, whatever the other does. */
static void fgpu(void **state)
{
	(void)state;
	assert_int_equal(half("policy.name=fgpu", false), 100 * 1400 / (ALL / 2));
	assert_int_equal(half("policy.name=fgpu", true), 100 * 1400 / (ALL / 2));
}

/* What one half leaves idle nobody has. */
static void fgpu_loses(void **state)
{
	(void)state;
	assert_int_equal(half("policy.name=tidal", false), 100 * 1400 / MOST);
}

static void fgpu_full(void **state)
{
	const char *const eight[] = {"fgpu_parts=8", NULL};
	struct hal_queue_desc d[2] = {HAL_INIT(hal_queue_desc), HAL_INIT(hal_queue_desc)};
	struct hal_partition_desc more = HAL_INIT(hal_partition_desc);
	struct hal_partition *third;
	struct hal_queue *q;
	struct sides s;

	(void)state;
	sides_open(&s, "policy.name=fgpu", NULL, d);
	/* There is no room for it while both have their halves. */
	OK(hal_device_set_policy(s.w.dev, "fgpu", eight));
	(void)submit(&s.w, s.q[0], 1, 1400, 'h');
	finish_all(&s.w);
	for (int i = 0; i < 2; i++)
		assert_int_equal(units(&s, i), ALL / 8);
	more.units_floor = 3;
	OK(hal_partition_create(s.w.dev, &more, &third));
	FAILS(hal_queue_create(third, &d[0], &q), -ENOSPC, "each of the 8 parts has 2");
	OK(hal_partition_destroy(third));
	more.units_floor = 2;
	OK(hal_partition_create(s.w.dev, &more, &third));
	OK(hal_queue_create(third, &d[0], &q));
	OK(hal_queue_destroy(q));
	/* Two parts, of which the sides are both. */
	OK(hal_device_set_policy(s.w.dev, "fgpu", NULL));
	FAILS(hal_queue_create(third, &d[0], &q), -ENOSPC, "all 2 parts are taken");
	OK(hal_partition_destroy(third));
	sides_close(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tidal),
		cmocka_unit_test(tidal_enough),
		cmocka_unit_test(tidal_loses),
		cmocka_unit_test(tidal_grid),
		cmocka_unit_test(tidal_shares),
		cmocka_unit_test(tidal_fewer),
		cmocka_unit_test(krisp),
		cmocka_unit_test(krisp_loses),
		cmocka_unit_test(fission),
		cmocka_unit_test(fission_loses),
		cmocka_unit_test(fission_burst),
		cmocka_unit_test(fission_idle),
		cmocka_unit_test(fission_newcomer),
		cmocka_unit_test(fission_running),
		cmocka_unit_test(fgpu),
		cmocka_unit_test(fgpu_loses),
		cmocka_unit_test(fgpu_full),
		cmocka_unit_test(bad),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

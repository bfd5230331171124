/* SPDX-License-Identifier: Apache-2.0 */
/* moca, tidal and fgpu where tenants meet in memory: copies in two halves of an NPU.
 *  Usage: test_policy_memory TARGET */
#include "world.h"

static const char *target;

enum { COPIED = 16384, JOBS = 40 };

struct side {
	struct hal_partition *part;
	struct hal_queue *queue;
	struct hal_buffer *buf;
};

enum { SIDES = 3 };

struct device {
	struct hal_device *dev;
	struct hal_device_info info;
	int sides;
	struct side side[SIDES]; /* latency-critical, and best effort */
};

static void queue_open(struct device *d, int i, uint64_t deadline_ns)
{
	struct hal_queue_desc q = HAL_INIT(hal_queue_desc);

	q.priority = i == 0;
	q.deadline_ns = i == 0 ? deadline_ns : 0;
	OK(hal_queue_create(d->side[i].part, &q, &d->side[i].queue));
}

/* So many equal parts; with channels of their own, or all of them shared. */
static void device_split(struct device *d, int sides, const char *policy,
			 const char *option, uint32_t channels, bool own)
{
	const char *const options[] = {"hal.queue_depth=1024", policy, option, NULL};
	struct hal_partition_desc p = HAL_INIT(hal_partition_desc);
	struct hal_buffer_desc b = HAL_INIT(hal_buffer_desc);
	char text[512];

	memset(d, 0, sizeof(*d));
	d->sides = sides;
	(void)snprintf(text, sizeof(text), "%s&channels=%u", target, channels);
	OK(hal_open(text, options, &d->dev));
	d->info = (struct hal_device_info)HAL_INIT(hal_device_info);
	OK(hal_device_get_info(d->dev, &d->info));
	assert_int_equal(d->info.colors, channels);
	p.rows = (uint16_t)d->info.unit_rows;
	p.cols = (uint16_t)(d->info.unit_cols / (uint32_t)sides);
	b.bytes = UINT64_C(2) * COPIED;
	for (int i = 0; i < sides; i++) {
		p.col = (uint16_t)(i * p.cols);
		p.color_mask = own ? UINT64_C(1) << i : 0;
		OK(hal_partition_create(d->dev, &p, &d->side[i].part));
		OK(hal_buffer_create(d->side[i].part, &b, &d->side[i].buf));
	}
}

/* Two halves. */
static void device_open(struct device *d, const char *policy, const char *option,
			uint32_t channels, bool own)
{
	device_split(d, 2, policy, option, channels, own);
}

static void device_close(struct device *d)
{
	struct hal_policy_info info = HAL_INIT(hal_policy_info);

	if (hal_device_poll(d->dev, UINT64_MAX) < 0)
		fail_msg("hal_device_poll: %s", hal_last_error());
	OK(hal_device_get_policy(d->dev, &info));
	assert_int_equal(info.stalls + info.invalid + info.fallback, 0);
	for (int i = 0; i < d->sides; i++) {
		OK(hal_queue_destroy(d->side[i].queue));
		OK(hal_buffer_destroy(d->side[i].buf));
		OK(hal_partition_destroy(d->side[i].part));
	}
	OK(hal_close(d->dev));
}

static struct hal_point copies(struct device *d, int i, uint32_t count)
{
	const struct side *s = &d->side[i];
	struct hal_cmd cmd = hal_cmd_copy(s->buf, 0, s->buf, COPIED, COPIED);
	struct hal_submit_desc desc = HAL_INIT(hal_submit_desc);
	struct hal_point done = {NULL, 0};

	desc.cmds = &cmd;
	desc.cmd_count = 1;
	while (count-- > 0)
		OK(hal_submit(s->queue, &desc, &done));
	return done;
}

static uint64_t deadline_ns = 1; /* of the first: it is late */

/* What the first has taken for a copy in the mean, the first five left out; what the
 * other has copied meanwhile; and in 100 us a while after. */
struct met {
	uint64_t ns, effort, after;
};

static struct met meet(const char *policy, const char *option, uint32_t channels,
		       bool own, bool beside)
{
	struct device d;
	struct met m;
	uint64_t from, had;

	device_open(&d, policy, option, channels, own);
	queue_open(&d, 0, deadline_ns);
	queue_open(&d, 1, 0);
	if (beside)
		(void)copies(&d, 1, 400);
	for (int i = 0; i < 5; i++)
		finish(copies(&d, 0, 1));
	from = hal_device_get_time(d.dev);
	had = stats_of(d.side[1].queue).completed;
	finish(copies(&d, 0, JOBS));
	m.ns = (hal_device_get_time(d.dev) - from) / JOBS;
	m.effort = stats_of(d.side[1].queue).completed - had;
	for (int i = 0; i < 2; i++) {
		had = stats_of(d.side[1].queue).completed;
		if (hal_device_poll(d.dev, i == 0 ? 300000 : 100000) < 0)
			fail_msg("hal_device_poll: %s", hal_last_error());
	}
	m.after = stats_of(d.side[1].queue).completed - had;
	device_close(&d);
	print_message("%s %s: %llu ns, %llu beside, %llu after\n", policy,
		      option != NULL ? option : "", (unsigned long long)m.ns,
		      (unsigned long long)m.effort, (unsigned long long)m.after);
	return m;
}

/* ---- moca -------------------------------------------------------------------------- */

/* One that is in a hurry beside one that is not, both copy all the time. */
static void moca(void **state)
{
	struct met alone =
		meet("policy.name=moca", "policy.moca_percent=50", 1, false, false);
	struct met fifo = meet("policy.name=fifo", NULL, 1, false, true);
	struct met now = meet("policy.name=moca", NULL, 1, false, true);
	struct met even, class;

	(void)state;
	deadline_ns = 1000000000;
	class = meet("policy.name=moca", NULL, 1, false, true);
	even = meet("policy.name=moca", "policy.moca_weight=1", 1, false, true);
	deadline_ns = 1;
	/* Half of the channel each; nearly all of it; less where it has time; and half
	 * each where its class says no more, either. */
	assert_true(fifo.ns > alone.ns * 19 / 10 && alone.ns < 2450);
	assert_true(now.ns < alone.ns * 11 / 10);
	assert_true(class.ns < alone.ns * 14 / 10);
	assert_true(even.ns > alone.ns * 19 / 10);
	/* The other goes on, and has it all when the first has gone. */
	assert_in_range(now.effort, 1, 10);
	assert_in_range(now.after, fifo.after - 1, fifo.after + 1);
}

/* Where they do not meet, demand adds up all the same. */
static void moca_loses(void **state)
{
	struct met fifo = meet("policy.name=fifo", NULL, 2, true, true);
	struct met now = meet("policy.name=moca", NULL, 2, true, true);

	(void)state;
	assert_int_equal(fifo.ns, now.ns);
	assert_int_equal(fifo.effort, JOBS);
	assert_true(now.effort < JOBS * 9 / 10);
}

/* A burst is over within the first window. */
static void moca_window(void **state)
{
	struct met fifo = meet("policy.name=fifo", NULL, 1, false, true);
	struct met late =
		meet("policy.name=moca", "policy.moca_window_us=10000", 1, false, true);

	(void)state;
	assert_int_equal(fifo.ns, late.ns);
}

/* ---- tidal ------------------------------------------------------------------------- */

/* A third of the bandwidth for best effort beside others, all of it alone. */
static void tidal(void **state)
{
	struct met alone = meet("policy.name=tidal", NULL, 1, false, false);
	struct met units =
		meet("policy.name=tidal", "policy.tidal_ch_be=1000", 1, false, true);
	struct met third = meet("policy.name=tidal", NULL, 1, false, true);
	struct met tenth =
		meet("policy.name=tidal", "policy.tidal_ch_be=100", 1, false, true);
	double all = 2.0 * COPIED / 16; /* ns for a copy by all of the bandwidth */

	(void)state;
	assert_true(units.ns > alone.ns * 19 / 10);
	assert_true(third.ns < units.ns * 85 / 100);
	assert_in_range(
		(uint64_t)(1000 * all * (double)third.effort / (double)(third.ns * JOBS)),
		280, 345);
	assert_true(tenth.ns < third.ns * 8 / 10);
	assert_in_range(
		(uint64_t)(1000 * all * (double)tenth.effort / (double)(tenth.ns * JOBS)),
		70, 110);
	assert_in_range(third.after, units.after - 1, units.after);
	assert_in_range(tenth.after, units.after - 1, units.after + 1);
}

/* Two of best effort have the third together, in equal parts, however much the other
 * wants; and all of it, a half each, while nobody else is there. */
static void tidal_two(void **state)
{
	uint64_t from, ns, had[SIDES], now[SIDES];
	struct device d;

	(void)state;
	device_split(&d, SIDES, "policy.name=tidal", NULL, 1, false);
	queue_open(&d, 0, deadline_ns);
	for (int i = 1; i < SIDES; i++) {
		queue_open(&d, i, 0);
		(void)copies(&d, i, 800);
	}
	for (int with = 1; with >= 0; with--) {
		for (int i = 0; with && i < 5; i++)
			finish(copies(&d, 0, 1));
		if (!with && hal_device_poll(d.dev, 300000) < 0)
			fail_msg("hal_device_poll: %s", hal_last_error());
		from = hal_device_get_time(d.dev);
		for (int i = 1; i < SIDES; i++)
			had[i] = stats_of(d.side[i].queue).completed;
		if (with)
			finish(copies(&d, 0, 2 * JOBS));
		else if (hal_device_poll(d.dev, 300000) < 0)
			fail_msg("hal_device_poll: %s", hal_last_error());
		ns = hal_device_get_time(d.dev) - from;
		for (int i = 1; i < SIDES; i++) {
			now[i] = stats_of(d.side[i].queue).completed - had[i];
			/* Thousandths of what the channel carries. */
			now[i] = 1000 * now[i] * 2 * COPIED / 16 / ns;
		}
		print_message("%llu and %llu thousandths %s\n",
			      (unsigned long long)now[1], (unsigned long long)now[2],
			      with ? "beside others" : "alone");
		for (int i = 1; i < SIDES; i++)
			assert_in_range(now[i], with ? 140 : 400, with ? 173 : 500);
	}
	device_close(&d);
}

/* Where they do not meet, best effort has all that its channels carry. */
static void tidal_apart(void **state)
{
	struct met units =
		meet("policy.name=tidal", "policy.tidal_ch_be=1000", 2, true, true);
	struct met tenth =
		meet("policy.name=tidal", "policy.tidal_ch_be=100", 2, true, true);

	(void)state;
	assert_int_equal(units.ns, tenth.ns);
	assert_int_equal(units.effort, tenth.effort);
}

/* ---- fgpu -------------------------------------------------------------------------- */

/* To the nanosecond what it is alone; half of what there is when nobody else is there. */
static void fgpu(void **state)
{
	struct met alone = meet("policy.name=fgpu", NULL, 2, true, false);
	struct met now = meet("policy.name=fgpu", NULL, 2, true, true);
	struct met shared =
		meet("policy.name=fgpu", "policy.fgpu_colors=any", 2, false, true);
	struct met all =
		meet("policy.name=fgpu", "policy.fgpu_colors=any", 2, false, false);

	(void)state;
	assert_int_equal(alone.ns, now.ns);
	assert_true(shared.ns > all.ns * 11 / 10);
	assert_true(all.ns < alone.ns);
}

/* Who would share channels is not let in. */
static void fgpu_refuses(void **state)
{
	struct hal_queue_desc q = HAL_INIT(hal_queue_desc);
	struct hal_queue *none;
	struct device d;

	(void)state;
	device_open(&d, "policy.name=fgpu", NULL, 2, false);
	queue_open(&d, 0, 0);
	FAILS(hal_queue_create(d.side[1].part, &q, &none), -EINVAL,
	      "partitions 0 and 1 both have memory channels 0x3");
	OK(hal_queue_destroy(d.side[0].queue));
	/* Once the first has gone there is nobody to share with. */
	queue_open(&d, 1, 0);
	FAILS(hal_queue_create(d.side[0].part, &q, &none), -EINVAL, "policy.fgpu_colors");
	OK(hal_device_set_policy(d.dev, "fifo", NULL));
	queue_open(&d, 0, 0);
	device_close(&d);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(moca),        cmocka_unit_test(moca_loses),
		cmocka_unit_test(moca_window), cmocka_unit_test(tidal),
		cmocka_unit_test(tidal_two),   cmocka_unit_test(tidal_apart),
		cmocka_unit_test(fgpu),        cmocka_unit_test(fgpu_refuses),
	};

	target = argc > 1 ? argv[1] : "npu:0?engine=fast";
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The software device with many partitions: everything ends when it must, in order. */
#include "ref_world.h"

#include <hal/ref.h>

enum { PARTS = 61, COMMANDS = 8, MOST_NS = 1000 };

struct part {
	struct hal_partition *p;
	struct hal_queue *q;
	struct hal_point done;
	uint64_t ends[COMMANDS]; /* when its commands must */
	uint32_t count, ended;
	bool killed;
};

struct many {
	struct hal_device *dev;
	const struct hal_ref_extension *ref;
	struct hal_program *prog;
	struct hal_kernel *work;
	struct part parts[PARTS];
	uint64_t random;
};

static uint64_t cost(const struct hal_ref_call *call)
{
	return call->args[0].value;
}

/* What has ended last. */
static struct {
	uint64_t ns;
	uint64_t part;
} last;

/* Ends come in the order of time, those of one instant in the order of partitions. */
static void ends(uint64_t ns, uint64_t part)
{
	assert_true(ns > last.ns || (ns == last.ns && part >= last.part));
	last.ns = ns;
	last.part = part;
}

/* work(cost, partition, when it must end or 0) */
static int done(const struct hal_ref_call *call)
{
	if (call->args[2].value != 0)
		ends(call->args[2].value, call->args[1].value);
	return 0;
}

static const struct hal_ref_kernel kernels[] = {
	{.name = "work", .fn = done, .cost = cost, .arg_count = 3}};

static uint64_t pick(struct many *m, uint64_t below)
{
	m->random = m->random * UINT64_C(6364136223846793005) + 1442695040888963407U;
	return (m->random >> 33) % below;
}

static void on_event(void *user, const struct hal_ref_event *ev)
{
	struct many *m = user;
	struct part *p = &m->parts[ev->partition];

	if (ev->kind != HAL_REF_ENDED && ev->kind != HAL_REF_KILLED)
		return;
	ends(ev->now_ns, ev->partition);
	if (!p->killed)
		assert_int_equal(ev->now_ns, p->ends[p->ended]);
	p->ended += ev->kind == HAL_REF_ENDED;
}

/* Random work for each partition; what its end is told by: the kernel, or events. */
static void submit_work(struct many *m, bool by_kernel)
{
	memset(&last, 0, sizeof(last));
	for (uint32_t k = 0; k < PARTS; k++) {
		struct part *p = &m->parts[k];
		uint64_t end = 0;

		p->count = 1 + (uint32_t)pick(m, COMMANDS);
		for (uint32_t i = 0; i < p->count; i++) {
			struct hal_arg args[3] = {{0}};
			struct hal_cmd cmd = hal_cmd_launch(m->work, args, 3);

			args[0].offset = 1 + pick(m, MOST_NS);
			end += args[0].offset;
			args[1].offset = k;
			args[2].offset = by_kernel ? end : 0;
			cmd.flags |= HAL_CMD_REPLAYABLE;
			OK(submit_cmd(p->q, cmd, &p->done));
			p->ends[i] = end;
		}
	}
}

static void many_open(struct many *m)
{
	struct hal_partition_info info = HAL_INIT(hal_partition_info);

	OK(hal_open("ref?units=64&rows=8", NULL, &m->dev));
	m->ref = hal_device_get_extension(m->dev, "ref");
	OK(hal_ref_load(m->dev, kernels, 1, &m->prog));
	OK(hal_kernel_find(m->prog, "work", &m->work));
	for (uint32_t i = 0; i < PARTS; i++) {
		struct world w = {.dev = m->dev};

		m->parts[i].p = add_partition(&w, 1);
		OK(hal_partition_get_info(m->parts[i].p, &info));
		assert_int_equal(info.index, i);
		m->parts[i].q = add_queue(m->parts[i].p, 0);
	}
}

static void many_close(struct many *m)
{
	for (uint32_t i = 0; i < PARTS; i++) {
		OK(hal_queue_destroy(m->parts[i].q));
		OK(hal_partition_destroy(m->parts[i].p));
	}
	OK(hal_program_unload(m->prog));
	OK(hal_close(m->dev));
}

static void ends_in_order(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 32; seed++) {
		struct many m = {.random = seed};

		many_open(&m);
		submit_work(&m, true);
		for (uint32_t i = 0; i < PARTS; i++) {
			struct part *p = &m.parts[i];

			OK(wait_ms(p->done, NEVER_MS));
			assert_true(last.ns >= p->ends[p->count - 1]);
		}
		assert_int_equal(hal_device_get_time(m.dev), last.ns);
		many_close(&m);
	}
}

/* Some are killed on the way, and go on later: the others do not notice. */
static void ends_in_order_beside_kills(void **state)
{
	struct many m = {.random = 99};
	struct hal_point quiet[PARTS];

	(void)state;
	many_open(&m);
	OK(m.ref->on_event(hal_device_get_native(m.dev), on_event, &m));
	submit_work(&m, false);
	assert_true(hal_device_poll(m.dev, MOST_NS) >= 0);
	for (uint32_t i = 0; i < PARTS; i += 3) {
		m.parts[i].killed = true;
		OK(hal_queue_suspend(m.parts[i].q, HAL_SUSPEND_KILL, &quiet[i]));
	}
	for (uint32_t i = 0; i < PARTS; i += 3) {
		OK(wait_ms(quiet[i], NEVER_MS));
		assert_true(hal_device_poll(m.dev, pick(&m, MOST_NS / 10)) >= 0);
		OK(hal_queue_resume(m.parts[i].q));
	}
	for (uint32_t i = 0; i < PARTS; i++) {
		OK(wait_ms(m.parts[i].done, NEVER_MS));
		assert_int_equal(m.parts[i].ended, m.parts[i].count);
	}
	many_close(&m);
}

/* As many partitions as there can be, and none more. */
static void all_of_them(void **state)
{
	static const uint32_t counts[] = {1, 63, 64, 65, 128, 129};
	struct hal_partition_info info = HAL_INIT(hal_partition_info);
	struct hal_partition_desc one = HAL_INIT(hal_partition_desc);
	struct hal_partition *parts[130];
	char target[32];
	struct world w;

	(void)state;
	one.units_floor = 1;
	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		uint32_t count = counts[i], free_again = count / 2;

		(void)snprintf(target, sizeof(target), "ref?units=%u", count);
		OK(hal_open(target, NULL, &w.dev));
		for (uint32_t k = 0; k < count; k++) {
			parts[k] = add_partition(&w, 1);
			OK(hal_partition_get_info(parts[k], &info));
			assert_int_equal(info.index, k);
		}
		FAILS(hal_partition_create(w.dev, &one, &parts[count]), -ENOSPC, "units");
		OK(hal_partition_destroy(parts[free_again]));
		parts[free_again] = add_partition(&w, 1);
		OK(hal_partition_get_info(parts[free_again], &info));
		assert_int_equal(info.index, free_again);
		assert_int_equal(info.col, free_again);
		for (uint32_t k = 0; k < count; k++)
			OK(hal_partition_destroy(parts[k]));
		OK(hal_close(w.dev));
	}
}

static uint64_t ends_after_resize(uint64_t work, uint64_t at, uint32_t units)
{
	struct hal_partition_desc d = HAL_INIT(hal_partition_desc);
	const struct hal_ref_kernel own = {
		.name = "work", .fn = done, .work = work, .span_ns = 90, .arg_count = 3};
	struct hal_arg args[3] = {{0}};
	struct hal_point end, moved;
	struct hal_program *prog;
	struct hal_kernel *k;
	struct hal_queue *q;
	struct world w;
	uint64_t now;

	OK(hal_open("ref?units=16", NULL, &w.dev));
	w.part = add_partition(&w, 4);
	q = add_queue(w.part, 0);
	OK(hal_ref_load(w.dev, &own, 1, &prog));
	OK(hal_kernel_find(prog, "work", &k));
	OK(submit_cmd(q, hal_cmd_launch(k, args, 3), &end));
	assert_true(hal_device_poll(w.dev, at) >= 0);
	d.units_floor = units;
	OK(hal_partition_resize(w.part, &d, &moved));
	OK(hal_wait(&end, 1, 0, HAL_FOREVER));
	now = hal_device_get_time(w.dev);
	OK(hal_wait(&moved, 1, 0, HAL_FOREVER));
	OK(hal_queue_destroy(q));
	OK(hal_program_unload(prog));
	OK(hal_partition_destroy(w.part));
	OK(hal_close(w.dev));
	return now;
}

/* What is left of a command goes on with the units it has then. */
static void a_border_moves(void **state)
{
	(void)state;
	assert_int_equal(ends_after_resize(1000, 0, 4), 250);
	assert_int_equal(ends_after_resize(1000, 0, 8), 125);
	assert_int_equal(ends_after_resize(1000, 100, 8), 100 + 600 / 8);
	assert_int_equal(ends_after_resize(1000, 100, 2), 100 + 600 / 2);
	assert_int_equal(ends_after_resize(1001, 100, 8), 100 + 601 / 8 + 1);
	/* Never faster than a kernel can be. */
	assert_int_equal(ends_after_resize(300, 0, 16), 90);
	assert_int_equal(ends_after_resize(400, 50, 16), 90);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ends_in_order),
		cmocka_unit_test(ends_in_order_beside_kills),
		cmocka_unit_test(all_of_them),
		cmocka_unit_test(a_border_moves),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

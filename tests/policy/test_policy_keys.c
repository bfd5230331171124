/* SPDX-License-Identifier: Apache-2.0 */
/* The host of a policy of keys: times, turns, what is expected, and what it keeps. */
#include "world.h"

#include <dlfcn.h>

#include "plugin_key.h"

#define ONE_AT_A_TIME "hal.partition_inflight=1", "hal.inflight=1", "hal.queue_depth=1024"
#define PLUGINS       "hal.plugins=" PLUGIN_KEY ":" PLUGIN_TIMES

static struct plugin_key_control *open_with(struct world *w, const char *path,
					    const char *name, const char *option)
{
	const char *const options[] = {PLUGINS, ONE_AT_A_TIME, name, option, NULL};
	void *lib = dlopen(path, RTLD_NOW);
	struct plugin_key_control *c;

	if (lib == NULL)
		fail_msg("%s", dlerror());
	c = dlsym(lib, "plugin_control");
	assert_non_null(c);
	memset(c, 0, sizeof(*c));
	world_open(w, options);
	return c;
}

/* ---- times ------------------------------------------------------------------------- */

static void times(void **state)
{
	struct plugin_key_control *c;
	struct hal_queue *a, *b;
	struct world w;

	(void)state;
	c = open_with(&w, PLUGIN_TIMES, "policy.name=times", NULL);
	a = add_queue(w.part, 0, 1, 0);
	b = add_queue(w.part, 0, 1, 0);
	/* Not before its time, though nobody else is there. */
	c->key_ns = 1000;
	(void)submit(&w, a, 1, 10, 'a');
	pass(&w, 1009);
	assert_int_equal(ended.length, 0);
	pass(&w, 1);
	assert_int_equal(ended.length, 1);
	/* Put off when its turn comes: then whoever is first. */
	(void)submit(&w, a, 1, 10, 'a');
	pass(&w, 1);
	(void)submit(&w, b, 1, 10, 'b');
	c->again_count = 1;
	c->again_ns = 500;
	finish_all(&w);
	assert_string_equal(ended.text, "aba");
	assert_int_equal(hal_device_get_time(w.dev), 1010 + 1000 + 500 + 10);
	assert_int_equal(c->turns, 4);
	/* A lower answer than its key is as good as 0. */
	c->key_ns = 0;
	c->again_ns = 0;
	c->again_count = 1;
	c->turns = 0;
	(void)submit(&w, a, 2, 10, 'a');
	finish_all(&w);
	assert_int_equal(c->turns, 2);
	assert_int_equal(policy_of(&w).stalls + policy_of(&w).starved, 0);
	OK(hal_queue_destroy(a));
	OK(hal_queue_destroy(b));
	world_close(&w);
}

/* No time at all, while nothing runs; and turn after turn. */
static void times_net(void **state)
{
	struct plugin_key_control *c;
	struct hal_queue *a, *b;
	struct world w;

	(void)state;
	c = open_with(&w, PLUGIN_TIMES, "policy.name=times", "policy.timeout_ms=0");
	a = add_queue(w.part, 0, 1, 0);
	b = add_queue(w.part, 0, 1, 0);
	c->key_ns = HAL_POLICY_NEVER;
	(void)submit(&w, a, 20, 10, 'a');
	(void)submit(&w, b, 20, 10, 'b');
	finish_all(&w);
	assert_int_equal(ended.length, 40);
	assert_int_equal(policy_of(&w).stalls, 40);
	assert_int_equal(policy_of(&w).fallback, 0);
	OK(hal_queue_destroy(a));
	OK(hal_queue_destroy(b));
	world_close(&w);
	/* Longer than the net holds. */
	c = open_with(&w, PLUGIN_TIMES, "policy.name=times", "policy.timeout_ms=1");
	a = add_queue(w.part, 0, 1, 0);
	c->key_ns = UINT64_MAX / 2;
	(void)submit(&w, a, 2, 10, 'a');
	finish_all(&w);
	assert_int_equal(hal_device_get_time(w.dev), 2 * (1000001 + 10));
	assert_int_equal(policy_of(&w).starved, 2);
	OK(hal_queue_destroy(a));
	world_close(&w);
	/* Without times a queue is only put behind others: there is an end to that. */
	c = open_with(&w, PLUGIN_KEY, "policy.name=key", NULL);
	a = add_queue(w.part, 0, 1, 0);
	b = add_queue(w.part, 0, 1, 0);
	c->again_count = UINT32_MAX;
	c->again_ns = 1;
	(void)submit(&w, a, 10, 10, 'a');
	(void)submit(&w, b, 10, 10, 'b');
	finish_all(&w);
	assert_int_equal(ended.length, 20);
	assert_in_range(c->turns, 19, 20 * 4);
	OK(hal_queue_destroy(a));
	OK(hal_queue_destroy(b));
	world_close(&w);
}

/* ---- what it keeps ------------------------------------------------------------------ */

static void keeps(void **state)
{
	struct plugin_key_control *c;
	struct hal_queue *a;
	struct world w;

	(void)state;
	c = open_with(&w, PLUGIN_TIMES, "policy.name=times", NULL);
	c->own = 7;
	a = add_queue(w.part, 0, 1, 0);
	assert_int_equal(c->queue_own, 0);
	OK(hal_device_set_policy(w.dev, "times", NULL));
	assert_int_equal(c->queue_own, 7);
	assert_int_equal(c->part_own, 7);
	/* Another that keeps has kept its own. */
	OK(hal_device_set_policy(w.dev, "token", NULL));
	OK(hal_device_set_policy(w.dev, "times", NULL));
	assert_int_equal(c->queue_own, 0);
	assert_int_equal(c->part_own, 0);
	OK(hal_queue_destroy(a));
	/* Another may have its memory: it has nothing of it. */
	a = add_queue(w.part, 0, 1, 0);
	assert_int_equal(c->queue_own, 0);
	OK(hal_queue_destroy(a));
	world_close(&w);
	c = open_with(&w, PLUGIN_KEY, "policy.name=key", NULL);
	c->own = 7;
	a = add_queue(w.part, 0, 1, 0);
	OK(hal_device_set_policy(w.dev, "key", NULL));
	assert_int_equal(c->queue_own, 0); /* it has not asked for it */
	assert_int_equal(c->part_own, 0);
	OK(hal_queue_destroy(a));
	world_close(&w);
}

/* ---- what is expected ---------------------------------------------------------------- */

struct heads {
	struct plugin_key_control *c;
	struct hal_queue *a, *b;
	struct world w;
};

/* b always has work, so that the policy is asked about a. */
static void heads_open(struct heads *h)
{
	h->c = open_with(&h->w, PLUGIN_KEY, "policy.name=key", NULL);
	h->a = add_queue(h->w.part, 0, 1, 0);
	h->b = add_queue(h->w.part, 0, 1, 0);
}

/* One of a's commands, asked about when one of b has ended. */
static void ask(struct heads *h, uint64_t ns)
{
	h->c->heads = 0;
	(void)submit(&h->w, h->b, 2, 1000, 'b');
	pass(&h->w, 1);
	(void)submit(&h->w, h->a, 1, ns, 'a');
	pass(&h->w, 1000);
	assert_int_equal(h->c->heads, 1);
}

static void heads_close(struct heads *h)
{
	finish_all(&h->w);
	OK(hal_queue_destroy(h->a));
	OK(hal_queue_destroy(h->b));
	world_close(&h->w);
}

#define HEAD(h) ((h).c->head[0])

static void expected(void **state)
{
	struct heads h;

	(void)state;
	heads_open(&h);
	ask(&h, 70);
	assert_true(HEAD(h).expected_ns == HAL_POLICY_NEVER);
	assert_true(HEAD(h).rest_ns == HAL_POLICY_NEVER);
	assert_true(HEAD(h).whole_ns == HAL_POLICY_NEVER);
	assert_true(HEAD(h).expected_bytes == HAL_POLICY_NEVER);
	finish_all(&h.w);
	ask(&h, 70);
	assert_int_equal(HEAD(h).expected_ns, 70);
	assert_int_equal(HEAD(h).rest_ns, 70);
	assert_int_equal(HEAD(h).whole_ns, 70);
	assert_int_equal(HEAD(h).expected_bytes, 0);
	finish_all(&h.w);
	/* It follows: after eight of 150 most of the way, after 60 all of it. */
	for (int i = 0; i < 8; i++)
		finish(submit(&h.w, h.a, 1, 150, 'a'));
	ask(&h, 150);
	assert_in_range(HEAD(h).expected_ns, 120, 149);
	finish_all(&h.w);
	for (int i = 0; i < 60; i++)
		finish(submit(&h.w, h.a, 1, 150, 'a'));
	ask(&h, 150);
	assert_int_equal(HEAD(h).expected_ns, 150);
	finish_all(&h.w);
	/* Known work: nothing is known of it by the others; then in proportion. */
	world_work(&h.w, 400);
	ask(&h, 0);
	assert_true(HEAD(h).expected_ns == HAL_POLICY_NEVER);
	finish_all(&h.w);
	world_work(&h.w, 1000);
	ask(&h, 0);
	assert_int_equal(HEAD(h).expected_ns, 1000);
	finish_all(&h.w);
	/* Another policy in between: it is the queue's. */
	OK(hal_device_set_policy(h.w.dev, "fifo", NULL));
	finish(submit(&h.w, h.a, 1, 0, 'a'));
	OK(hal_device_set_policy(h.w.dev, "key", NULL));
	world_work(&h.w, 500);
	ask(&h, 0);
	assert_int_equal(HEAD(h).expected_ns, 500);
	heads_close(&h);
}

/* What a command of so much work is expected to run on so many units, after one of did
 * that ran at least span_ns. */
static uint64_t expected_of(uint32_t units, uint64_t did, uint64_t span_ns, uint64_t work)
{
	struct hal_partition_desc d = HAL_INIT(hal_partition_desc);
	struct heads h;
	uint64_t ns;

	heads_open(&h);
	d.units_floor = units;
	OK(hal_partition_resize(h.w.part, &d, NULL));
	world_span(&h.w, did, span_ns);
	finish(submit(&h.w, h.a, 1, 0, 'a'));
	world_span(&h.w, 1, 1000);
	h.c->heads = 0;
	(void)submit(&h.w, h.b, 2, 0, 'b');
	pass(&h.w, 1);
	world_span(&h.w, work, 1000);
	(void)submit(&h.w, h.a, 1, 0, 'a');
	pass(&h.w, 1000);
	assert_int_equal(h.c->heads, 1);
	ns = HEAD(h).expected_ns;
	heads_close(&h);
	return ns;
}

/* Never nothing, and never so much that a time and it go over. */
static void expected_bounds(void **state)
{
	(void)state;
	assert_int_equal(expected_of(16, 16000, 0, 1), 1);
	assert_int_equal(expected_of(16, 16000, 0, 24), 2);
	assert_true(expected_of(1, 1, 1024, UINT64_C(1) << 51) == UINT64_C(1) << 61);
	assert_true(expected_of(1, 1, 1024, UINT64_C(1) << 53) == UINT64_C(1) << 62);
}

/* Submissions of four commands: 100, 200, 300 and 400 ns. */
static void four(struct heads *h)
{
	struct hal_submit_desc d = HAL_INIT(hal_submit_desc);
	struct hal_arg args[4][2];
	struct hal_cmd cmds[4];

	for (uint64_t i = 0; i < 4; i++) {
		args[i][0] = (struct hal_arg){.offset = 100 * (i + 1)};
		args[i][1] = (struct hal_arg){.offset = 'a'};
		cmds[i] = hal_cmd_launch(h->w.work, args[i], 2);
	}
	d.cmds = cmds;
	d.cmd_count = 4;
	OK(hal_submit(h->a, &d, NULL));
}

/* What copies move is known as what they run is. */
static void expected_bytes(void **state)
{
	struct hal_buffer_desc d = HAL_INIT(hal_buffer_desc);
	struct hal_submit_desc one = HAL_INIT(hal_submit_desc);
	struct hal_buffer *buf;
	struct hal_point done;
	struct hal_cmd copy;
	struct heads h;

	(void)state;
	heads_open(&h);
	d.bytes = 8192;
	OK(hal_buffer_create(h.w.part, &d, &buf));
	copy = hal_cmd_copy(buf, 0, buf, 4096, 1000);
	one.cmds = &copy;
	one.cmd_count = 1;
	for (int i = 0; i < 3; i++) {
		OK(hal_submit(h.a, &one, &done));
		finish(done);
	}
	ask(&h, 10);
	assert_int_equal(HEAD(h).expected_bytes, 2000);
	finish_all(&h.w);
	/* The one that has just ended moved nothing. */
	ask(&h, 10);
	assert_in_range(HEAD(h).expected_bytes, 1300, 1600);
	finish_all(&h.w);
	OK(hal_buffer_destroy(buf));
	heads_close(&h);
}

static void rest(void **state)
{
	static const uint64_t rests[] = {1000, 900, 700, 400};
	struct heads h;

	(void)state;
	heads_open(&h);
	/* One of b between any two of a, so that each is asked about. */
	(void)submit(&h.w, h.b, 30, 10000, 'b');
	four(&h);
	pass(&h.w, 100000);
	assert_int_equal(stats_of(h.a).completed, 4);
	h.c->heads = 0;
	four(&h);
	pass(&h.w, 100000);
	assert_int_equal(stats_of(h.a).completed, 8);
	assert_int_equal(h.c->heads, 4);
	for (int i = 0; i < 4; i++)
		assert_int_equal(h.c->head[i].rest_ns, rests[i]);
	for (int i = 0; i < 4; i++)
		assert_int_equal(h.c->head[i].whole_ns, 1000);
	/* A mean of 250 for one; what is left is never less than that. */
	assert_in_range(h.c->head[3].expected_ns, 200, 300);
	heads_close(&h);
}

/* What the device has of a partition is what it has, also when nothing more comes. */
static void running(void **state)
{
	struct plugin_key_control *c;
	struct hal_queue *a, *b;
	struct world w;

	(void)state;
	c = open_with(&w, PLUGIN_KEY, "policy.name=key", "hal.partition_inflight=2");
	a = add_queue(w.part, 0, 1, 0);
	b = add_queue(w.part, 0, 1, 0);
	(void)submit(&w, a, 2, 1000, 'a');
	(void)submit(&w, b, 2, 1000, 'b');
	pass(&w, 10);
	assert_int_equal(c->part->running, 2);
	finish_all(&w);
	assert_int_equal(c->part->running, 0);
	OK(hal_queue_destroy(a));
	OK(hal_queue_destroy(b));
	world_close(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(times),          cmocka_unit_test(running),
		cmocka_unit_test(times_net),      cmocka_unit_test(keeps),
		cmocka_unit_test(expected),       cmocka_unit_test(expected_bounds),
		cmocka_unit_test(expected_bytes), cmocka_unit_test(rest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

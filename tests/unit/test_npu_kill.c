/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a KILL leaves of a command on the NPU: a network of many layers that is killed
 * again and again goes on with the layer that it was in, ends, and gives what it gives
 * undisturbed; it begins anew where that would not.  On the golden model and the fast
 * one; on the RTL, where its 16 x 16 model is built.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hal/ext/memory.h>

#include "npu/kept.h"
#include "npu_test.h"
#include "slow.h"

enum { LAYERS = 32, BYTES = 8192 };

struct world {
	struct hal_device *dev;
	struct hal_partition *part, *other;
	struct hal_queue *q, *second, *neighbour;
	struct hal_buffer *a, *b, *d, *e; /* b: scratch of two placements */
	struct hal_program *prog;
	uint8_t in[BYTES], in_b[BYTES];
};

static const char *target;

static uint8_t table_at(uint32_t i)
{
	return (uint8_t)(i * 37 + 11);
}

/* ---- programs --------------------------------------------------------------------- */

static void layer(struct hal_npu_builder *b, struct hal_npu_place a,
		  struct hal_npu_place d)
{
	struct hal_npu_lut lut = HAL_INIT(hal_npu_lut);
	uint8_t table[256];

	for (uint32_t i = 0; i < 256; i++)
		table[i] = table_at(i);
	lut.bytes = BYTES;
	lut.a = a;
	lut.d = d;
	lut.table = table;
	OK(hal_npu_lut(b, &lut));
}

static struct hal_npu_place argument(struct hal_npu_builder *b)
{
	struct hal_npu_place p = {0};

	OK(hal_npu_arg(b, BYTES, &p.id));
	return p;
}

/* net: layers through two areas of scratch memory in turn.  place: the last of them works
 * on its own output.  mid: through its second argument. */
static void load(struct world *w)
{
	struct hal_npu_place a, d, at[2] = {{0}, {0}};
	struct hal_npu_builder *b;
	void *image;
	size_t size;

	OK(hal_npu_builder_create(&b));
	OK(hal_npu_kernel(b, "net"));
	a = argument(b);
	d = argument(b);
	for (uint32_t i = 0; i < 2; i++)
		OK(hal_npu_scratch(b, BYTES, &at[i].id));
	for (uint32_t i = 0; i < LAYERS; i++)
		layer(b, i ? at[i % 2] : a, i == LAYERS - 1 ? d : at[(i + 1) % 2]);
	OK(hal_npu_kernel(b, "place"));
	a = argument(b);
	d = argument(b);
	layer(b, a, d);
	layer(b, d, d);
	OK(hal_npu_kernel(b, "mid"));
	a = argument(b);
	at[0] = argument(b);
	d = argument(b);
	layer(b, a, at[0]);
	layer(b, at[0], d);
	OK(hal_npu_build(b, &image, &size));
	OK(hal_npu_builder_destroy(b));
	OK(hal_program_load(w->dev, image, size, &w->prog));
	hal_npu_image_free(image);
}

/* ---- the world ---------------------------------------------------------------------- */

static void partition(struct world *w, uint32_t col, uint32_t flags,
		      struct hal_partition **part)
{
	struct hal_partition_desc d = HAL_INIT(hal_partition_desc);

	d.rows = 8;
	d.cols = 8;
	d.col = (uint16_t)col;
	d.memory_bytes = 1 << 20;
	d.color_mask = col ? 2 : 1;
	d.flags = flags;
	OK(hal_partition_create(w->dev, &d, part));
}

static void buffer(struct world *w, uint32_t flags, struct hal_buffer **b)
{
	struct hal_buffer_desc d = HAL_INIT(hal_buffer_desc);

	d.bytes = BYTES;
	d.flags = flags;
	OK(hal_buffer_create(w->part, &d, b));
}

static int setup(void **state)
{
	struct hal_queue_desc q = HAL_INIT(hal_queue_desc);
	struct world *w = calloc(1, sizeof(*w));
	uint32_t random = 7;

	assert_non_null(w);
	*state = w;
	OK(hal_open(target, NULL, &w->dev));
	partition(w, 0, HAL_PARTITION_BIMODAL, &w->part);
	partition(w, 8, 0, &w->other);
	OK(hal_queue_create(w->part, &q, &w->q));
	OK(hal_queue_create(w->part, &q, &w->second));
	OK(hal_queue_create(w->other, &q, &w->neighbour));
	buffer(w, 0, &w->a);
	buffer(w, HAL_BUFFER_BIMODAL | HAL_BUFFER_SCRATCH, &w->b);
	buffer(w, 0, &w->d);
	buffer(w, 0, &w->e);
	load(w);
	for (uint32_t i = 0; i < BYTES; i++) {
		random = random * 1664525u + 1013904223u;
		w->in[i] = (uint8_t)(random >> 24);
		w->in_b[i] = (uint8_t)(random >> 16);
	}
	OK(hal_buffer_write(w->a, 0, w->in, BYTES));
	return 0;
}

static int teardown(void **state)
{
	struct world *w = *state;

	OK(hal_program_unload(w->prog));
	OK(hal_buffer_destroy(w->a));
	OK(hal_buffer_destroy(w->b));
	OK(hal_buffer_destroy(w->d));
	OK(hal_buffer_destroy(w->e));
	OK(hal_queue_destroy(w->q));
	OK(hal_queue_destroy(w->second));
	OK(hal_queue_destroy(w->neighbour));
	OK(hal_partition_destroy(w->part));
	OK(hal_partition_destroy(w->other));
	OK(hal_close(w->dev));
	free(w);
	return 0;
}

static void wait_for(struct hal_point p)
{
	OK(hal_wait(&p, 1, 0, HAL_FOREVER));
}

static struct hal_point run_on(struct hal_queue *q, struct world *w, const char *name,
			       const struct hal_arg *args, uint32_t count)
{
	struct hal_submit_desc s = HAL_INIT(hal_submit_desc);
	struct hal_point done;
	struct hal_kernel *k;
	struct hal_cmd cmd;

	OK(hal_kernel_find(w->prog, name, &k));
	cmd = hal_cmd_launch(k, args, count);
	cmd.flags |= HAL_CMD_REPLAYABLE;
	s.cmds = &cmd;
	s.cmd_count = 1;
	OK(hal_submit(q, &s, &done));
	return done;
}

static struct hal_point run(struct world *w, const char *name)
{
	const struct hal_arg two[] = {{w->a, 0, 0}, {w->d, 0, 0}};
	const struct hal_arg three[] = {{w->a, 0, 0}, {w->b, 0, 0}, {w->d, 0, 0}};
	bool mid = strcmp(name, "mid") == 0;

	return run_on(w->q, w, name, mid ? three : two, mid ? 3 : 2);
}

static void kill_it(struct hal_queue *q)
{
	struct hal_point quiet;

	OK(hal_queue_suspend(q, HAL_SUSPEND_KILL, &quiet));
	wait_for(quiet);
}

static bool reached(struct hal_point p)
{
	return hal_wait(&p, 1, 0, 0) == 0;
}

static void check(struct hal_buffer *b, const uint8_t *in, uint32_t layers)
{
	uint8_t got[BYTES];

	OK(hal_buffer_read(b, 0, got, BYTES));
	for (uint32_t i = 0; i < BYTES; i++) {
		uint8_t want = in[i];

		for (uint32_t l = 0; l < layers; l++)
			want = table_at(want);
		if (got[i] != want)
			fail_msg("byte %u is %u, not %u", i, got[i], want);
	}
}

static struct hal_stats stats_of(struct hal_queue *q)
{
	struct hal_stats s = HAL_INIT(hal_stats);

	OK(hal_queue_get_stats(q, &s));
	return s;
}

/* What the network takes when nobody stops it. */
static uint64_t alone(struct world *w)
{
	uint64_t before = stats_of(w->q).busy_ns;

	wait_for(run(w, "net"));
	return stats_of(w->q).busy_ns - before;
}

static void let(struct world *w, uint64_t ns)
{
	assert_true(hal_device_poll(w->dev, ns) >= 0);
}

/* ---- tests ---------------------------------------------------------------------------- */

/* Sooner each time than it can end: a fifth of it, which is six layers. */
static void ends_at_last(void **state)
{
	struct world *w = *state;
	uint64_t net_ns = alone(w), busy_ns = stats_of(w->q).busy_ns;
	struct hal_point done;
	struct hal_stats s;
	uint32_t kills = 0;

	OK(hal_buffer_write(w->d, 0, w->in_b, BYTES));
	done = run(w, "net");
	for (;;) {
		let(w, net_ns / 5);
		if (reached(done))
			break;
		kill_it(w->q);
		OK(hal_queue_resume(w->q));
		if (++kills > 8)
			fail_msg("killed %u times and not at its end", kills);
	}
	check(w->d, w->in, LAYERS);
	s = stats_of(w->q);
	assert_in_range(kills, 4, 8);
	assert_int_equal(s.replayed, kills);
	/* A layer is lost each time, at most, and what is told is what is. */
	assert_in_range(s.replayed_ns, 1, kills * (net_ns / LAYERS * 5 / 4));
	busy_ns = s.busy_ns - busy_ns;
	assert_in_range(busy_ns - s.replayed_ns, net_ns - net_ns / 50,
			net_ns + net_ns / 32);
}

/* Killed before it has gone on, behind a command of another queue: what is kept stays. */
static void kept_twice(void **state)
{
	struct world *w = *state;
	struct hal_submit_desc s = HAL_INIT(hal_submit_desc);
	uint64_t net_ns = alone(w), busy_ns;
	struct hal_point done, other;
	struct hal_cmd cmd;

	done = run(w, "net");
	let(w, net_ns * 3 / 4);
	kill_it(w->q);
	busy_ns = stats_of(w->q).busy_ns;
	cmd = hal_cmd_copy(w->e, 0, w->a, 0, BYTES);
	s.cmds = &cmd;
	s.cmd_count = 1;
	OK(hal_submit(w->second, &s, &other));
	OK(hal_queue_resume(w->q));
	let(w, 300);
	assert_false(reached(other));
	kill_it(w->q);
	wait_for(other);
	assert_int_equal(stats_of(w->q).busy_ns, busy_ns); /* it had not begun */
	OK(hal_queue_resume(w->q));
	wait_for(done);
	check(w->d, w->in, LAYERS);
	check(w->e, w->in, 0);
	assert_in_range(stats_of(w->q).busy_ns - busy_ns, net_ns / 5, net_ns / 3);
}

/* Another launch of its program has used the memory of its intermediates: from the
 * beginning. */
static void intermediates_gone(void **state)
{
	struct world *w = *state;
	const struct hal_arg args[] = {{w->b, 0, 0}, {w->e, 0, 0}};
	uint64_t net_ns = alone(w);
	struct hal_point done, other;

	OK(hal_buffer_write(w->d, 0, w->in_b, BYTES));
	done = run(w, "net");
	let(w, net_ns / 2);
	kill_it(w->q);
	OK(hal_buffer_write(w->e, 0, w->in_b, BYTES));
	other = run_on(w->second, w, "net",
		       (const struct hal_arg[]){{w->e, 0, 0}, args[1]}, 2);
	wait_for(other);
	check(w->e, w->in_b, LAYERS);
	OK(hal_queue_resume(w->q));
	wait_for(done);
	check(w->d, w->in, LAYERS);
}

/* A layer that works on its own output cannot run again by itself. */
static void in_place(void **state)
{
	struct world *w = *state;
	struct hal_point done;
	struct hal_stats s;
	uint64_t place_ns, before;

	before = stats_of(w->q).busy_ns;
	wait_for(run(w, "place"));
	place_ns = stats_of(w->q).busy_ns - before;
	before += place_ns;
	check(w->d, w->in, 2);
	done = run(w, "place");
	let(w, place_ns * 3 / 4);
	kill_it(w->q);
	s = stats_of(w->q);
	assert_int_equal(s.replayed, 1);
	assert_int_equal(s.replayed_ns, s.busy_ns - before);
	OK(hal_queue_resume(w->q));
	wait_for(done);
	check(w->d, w->in, 2);
}

/* What has begun keeps its placement, killed or not: its scratch buffer is as it was. */
static void placement_stays(void **state)
{
	const struct hal_cmd hold = hal_cmd_barrier();
	struct hal_submit_desc s = HAL_INIT(hal_submit_desc);
	struct hal_partition_memory_info i = HAL_INIT(hal_partition_memory_info);
	struct world *w = *state;
	struct hal_arg args[] = {{w->a, 0, 0}, {w->e, 0, 0}};
	struct hal_point go = {.value = 1}, done;
	uint64_t mid_ns, before = stats_of(w->q).busy_ns, switches;

	OK(hal_timeline_create(w->dev, &go.timeline));
	wait_for(run(w, "mid"));
	mid_ns = stats_of(w->q).busy_ns - before;
	OK(hal_buffer_write(w->d, 0, w->in_b, BYTES));
	done = run(w, "mid");
	let(w, mid_ns * 3 / 4);
	kill_it(w->q);
	OK(hal_partition_get_memory_info(w->part, &i));
	switches = i.switches;
	s.cmds = &hold;
	s.cmd_count = 1;
	s.waits = &go;
	s.wait_count = 1;
	OK(hal_submit(w->neighbour, &s, NULL));
	wait_for(run_on(w->second, w, "place", args, 2));
	OK(hal_partition_get_memory_info(w->part, &i));
	assert_int_equal(i.switches, switches);
	OK(hal_queue_resume(w->q));
	wait_for(done);
	check(w->d, w->in, 2);
	OK(hal_timeline_signal(go.timeline, 1));
	wait_for((struct hal_point){hal_queue_get_timeline(w->neighbour), 1});
	OK(hal_timeline_destroy(go.timeline));
}

/* ---- real time -------------------------------------------------------------------------- */

/* A thread waits for the network while another kills it, on two devices at once. */
struct side {
	struct world *w;
	struct hal_point done;
	pthread_t waiter, killer;
	int waited, wrong;
};

static void *waits(void *arg)
{
	struct side *s = arg;

	s->waited = hal_wait(&s->done, 1, 0, HAL_FOREVER);
	return NULL;
}

/* Longer each time, so that it comes to its next layer sooner or later on any host. */
static void *kills(void *arg)
{
	struct side *s = arg;
	struct hal_point quiet;

	for (int64_t ns = 100000; hal_wait(&s->done, 1, 0, ns) == -ETIMEDOUT;
	     ns += ns / 4)
		s->wrong |= hal_queue_suspend(s->w->q, HAL_SUSPEND_KILL, &quiet) ||
			    hal_wait(&quiet, 1, 0, HAL_FOREVER) ||
			    hal_queue_resume(s->w->q);
	return NULL;
}

static void real_time(void **state)
{
	void *worlds[2] = {NULL, NULL};
	struct side sides[2];

	(void)state;
	for (int i = 0; i < 2; i++) {
		assert_int_equal(setup(&worlds[i]), 0);
		sides[i] = (struct side){.w = worlds[i]};
		sides[i].done = run(sides[i].w, "net");
		assert_int_equal(pthread_create(&sides[i].waiter, NULL, waits, &sides[i]),
				 0);
		assert_int_equal(pthread_create(&sides[i].killer, NULL, kills, &sides[i]),
				 0);
	}
	for (int i = 0; i < 2; i++) {
		assert_int_equal(pthread_join(sides[i].killer, NULL), 0);
		assert_int_equal(pthread_join(sides[i].waiter, NULL), 0);
		assert_int_equal(sides[i].waited, 0);
		assert_int_equal(sides[i].wrong, 0);
		check(sides[i].w->d, sides[i].w->in, LAYERS);
		assert_int_equal(teardown(&worlds[i]), 0);
	}
}

/* ---- which descriptors can run again --------------------------------------------------- */

static void again(void **state)
{
	/* Operands of 16 rows, 32 bytes apart: A at 0x1000, B at 0x2000, P at 0x3000. */
	static const struct {
		uint32_t op, vop, d;
		bool can;
	} cases[] = {
		{NPU_OP_GEMM, 0, 0x4000, true},
		{NPU_OP_GEMM, 0, 0x1000, false},
		{NPU_OP_GEMM, 0, 0x11e7, false}, /* A's last byte is 0x11e7 */
		{NPU_OP_GEMM, 0, 0x11e8, true},
		{NPU_OP_GEMM, 0, 0x1000 - 0x1ec, true}, /* D's last is 0x1eb behind */
		{NPU_OP_GEMM, 0, 0x1000 - 0x1eb, false},
		{NPU_OP_GEMM, 0, 0x20eb, false}, /* B: 8 rows of 12 bytes */
		{NPU_OP_GEMM, 0, 0x20ec, true},
		{NPU_OP_GEMM, 0, 0x30bf, false}, /* P: 12 of 16 bytes */
		{NPU_OP_GEMM, 0, 0x30c0, true},
		{NPU_OP_VEC, NPU_VOP_COPY, 0x4000, true},
		{NPU_OP_VEC, NPU_VOP_COPY, 0x11e7, false},
		{NPU_OP_VEC, NPU_VOP_COPY, 0x2000, true},
		{NPU_OP_VEC, NPU_VOP_ADD, 0x2000, false},
		{NPU_OP_VEC, NPU_VOP_MUL, 0x21e7, false},
		{NPU_OP_VEC, NPU_VOP_MUL, 0x21e8, true},
		{NPU_OP_VEC, NPU_VOP_RELU, 0x1000, false},
		{NPU_OP_VEC, NPU_VOP_LUT, 0x30ff, false},
		{NPU_OP_VEC, NPU_VOP_LUT, 0x3100, true},
		{NPU_OP_VEC, NPU_VOP_SOFTMAX, 0x33ff, false},
		{NPU_OP_VEC, NPU_VOP_SOFTMAX, 0x3400, true},
		{NPU_OP_VEC, NPU_VOP_FILL, 0x1000, true},
		{NPU_OP_SIGNAL, 0, 0x1000, true},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		bool vec = cases[i].op == NPU_OP_VEC;
		uint32_t d[16] = {0};

		NPU_SET(d, OPCODE, cases[i].op);
		NPU_SET(d, ADDR_A, 0x1000);
		NPU_SET(d, ADDR_B, 0x2000);
		NPU_SET(d, ADDR_P, 0x3000);
		NPU_SET(d, ADDR_D, cases[i].d);
		NPU_SET(d, DM, 16);
		NPU_SET(d, LDA, 32);
		NPU_SET(d, LDD, 32);
		if (vec) {
			NPU_SET(d, VOP, cases[i].vop);
			NPU_SET(d, VCOLS, 8);
			NPU_SET(d, VLDB, 32);
		} else {
			NPU_SET(d, CIN, 8);
			NPU_SET(d, DN, 12);
			NPU_SET(d, LDB, 32);
		}
		if (npu_can_run_again(d) != cases[i].can)
			fail_msg("case %zu", i);
	}
}

/* Convolutions and pools read an image; weights can lie in blocks, and belong to groups.
 */
static void again_image(void **state)
{
	uint32_t d[16] = {0}, end = 0x1000 + 4 * 64 + 4 * 8 + 6;

	(void)state;
	NPU_SET(d, OPCODE, NPU_OP_CONV);
	NPU_SET(d, ADDR_A, 0x1000);
	NPU_SET(d, H, 5);
	NPU_SET(d, W, 5);
	NPU_SET(d, LDA, 64);
	NPU_SET(d, PIX, 8);
	NPU_SET(d, CIN, 6);
	NPU_SET(d, KH, 3);
	NPU_SET(d, KW, 3);
	NPU_SET(d, DM, 9);
	NPU_SET(d, DN, 20);
	NPU_SET(d, LDD, 20);
	NPU_SET(d, F_NOPARAM, 1);
	NPU_SET(d, F_BLOCK, 1);
	NPU_SET(d, ADDR_B, 0x4000);
	NPU_SET(d, ADDR_D, end);
	assert_true(npu_can_run_again(d));
	NPU_SET(d, ADDR_D, end - 1);
	assert_false(npu_can_run_again(d));
	NPU_SET(d, ADDR_D, 0x4000 + 32 * 54); /* two blocks of 9 * 6 rows */
	assert_true(npu_can_run_again(d));
	NPU_SET(d, ADDR_D, 0x4000 + 32 * 54 - 1);
	assert_false(npu_can_run_again(d));
	NPU_SET(d, F_GROUP, 1);
	NPU_SET(d, GC, 1);
	NPU_SET(d, ADDR_D, 0x4000 + 32 * 9);
	assert_true(npu_can_run_again(d));
	NPU_SET(d, ADDR_D, 0x4000 + 32 * 9 - 1);
	assert_false(npu_can_run_again(d));
	NPU_SET(d, F_OUT32, 1); /* four times as long */
	NPU_SET(d, LDD, 80);
	NPU_SET(d, ADDR_D, 0x4000 - 720);
	assert_true(npu_can_run_again(d));
	NPU_SET(d, ADDR_D, 0x4000 - 719);
	assert_false(npu_can_run_again(d));
	NPU_SET(d, OPCODE, NPU_OP_VEC);
	NPU_SET(d, VOP, NPU_VOP_MAXPOOL);
	NPU_SET(d, ADDR_D, end - 1);
	assert_false(npu_can_run_again(d));
	NPU_SET(d, ADDR_D, end);
	assert_true(npu_can_run_again(d));
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

static int run_all(const char *name, const char *on)
{
	const struct CMUnitTest tests[] = {
		TEST(ends_at_last),
		TEST(kept_twice),
		TEST(intermediates_gone),
		TEST(in_place),
		TEST(placement_stays),
		cmocka_unit_test(again),
		cmocka_unit_test(again_image),
	};

	target = on;
	return cmocka_run_group_tests_name(name, tests, NULL, NULL);
}

int main(void)
{
	int failed = run_all("golden model", "npu:0?model=" GOLDEN) +
		     run_all("fast engine", "npu:0?model=" FAST);
	const struct CMUnitTest real[] = {cmocka_unit_test(real_time)};
	struct hal_device *dev;

	target = "npu:0?clock=real&model=" FAST;
	failed += cmocka_run_group_tests_name("real time", real, NULL, NULL);
	if (under_valgrind() || hal_open("npu:0", NULL, &dev))
		return failed;
	hal_close(dev);
	return failed + run_all("RTL", "npu:0");
}

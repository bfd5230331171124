/* SPDX-License-Identifier: Apache-2.0 */
/* test_core_evict.c - buffers that go to the host: who waits, what the device answers. */
#include "ref_world.h"

#include <hal/ext/memory.h>
#include <hal/ref.h>

#include "memory/evict.h"
#include "space/partition.h"

enum { BIG = 64 << 10, FIT = 3, COUNT = 8 };

static const char *const oversubscribe[] = {"hal.oversubscribe=yes", NULL};

struct tight {
	struct hal_device *dev;
	struct hal_partition *part;
	struct hal_queue *q, *other;
	struct hal_buffer *b[COUNT];
	const struct hal_ref_extension *ref;
	void *native;
};

/* FIT of count buffers are on the device, the last ones; each full of its number. */
static void tight_open(struct tight *t, const char *target, uint32_t count)
{
	struct hal_partition_desc d = HAL_INIT(hal_partition_desc);
	uint8_t *bytes = malloc(BIG);

	memset(t, 0, sizeof(*t));
	assert_non_null(bytes);
	OK(hal_open(target, oversubscribe, &t->dev));
	t->ref = hal_device_get_extension(t->dev, "ref");
	t->native = hal_device_get_native(t->dev);
	d.units_floor = 2;
	d.memory_bytes = FIT * BIG;
	d.limits = &(struct hal_partition_limits){
		.size = sizeof(struct hal_partition_limits), .memory_limit = COUNT * BIG};
	OK(hal_partition_create(t->dev, &d, &t->part));
	t->q = add_queue(t->part, 0);
	t->other = add_queue(t->part, 0);
	for (uint32_t i = 0; i < count; i++) {
		t->b[i] = add_buffer(t->part, BIG);
		memset(bytes, (int)i + 1, BIG);
		OK(hal_buffer_write(t->b[i], 0, bytes, BIG));
	}
	free(bytes);
}

static void tight_close(struct tight *t)
{
	struct hal_partition_memory_info m = HAL_INIT(hal_partition_memory_info);
	struct hal_partition_info i = HAL_INIT(hal_partition_info);

	if (t->q != NULL)
		OK(hal_queue_destroy(t->q));
	if (t->other != NULL)
		OK(hal_queue_destroy(t->other));
	for (uint32_t k = 0; k < COUNT; k++)
		OK(hal_buffer_destroy(t->b[k]));
	OK(hal_partition_get_info(t->part, &i));
	assert_int_equal(i.memory_used, 0);
	OK(hal_partition_get_memory_info(t->part, &m));
	assert_int_equal(m.memory_buffers, 0);
	assert_int_equal(m.memory_away, 0);
	OK(hal_partition_destroy(t->part));
	OK(hal_close(t->dev));
}

static struct hal_partition_memory_info memory_of(const struct tight *t)
{
	struct hal_partition_memory_info i = HAL_INIT(hal_partition_memory_info);

	OK(hal_partition_get_memory_info(t->part, &i));
	return i;
}

static struct hal_partition_info info_of(const struct tight *t)
{
	struct hal_partition_info i = HAL_INIT(hal_partition_info);

	OK(hal_partition_get_info(t->part, &i));
	return i;
}

static bool is_here(const struct hal_buffer *b)
{
	return atomic_load(&b->evict->place) == PLACE_HERE;
}

/* Still what it was filled with, from byte from on. */
static void assert_full(struct hal_buffer *b, uint8_t with, uint32_t from)
{
	uint8_t *bytes = malloc(BIG);

	assert_non_null(bytes);
	OK(hal_buffer_read(b, 0, bytes, BIG));
	for (uint32_t i = from; i < BIG; i++)
		if (bytes[i] != with)
			fail_msg("byte %u is %u, not %u", i, bytes[i], with);
	free(bytes);
}

static struct hal_point touch(struct hal_queue *q, struct hal_buffer *b)
{
	struct hal_point p;

	OK(submit_cmd(q, hal_cmd_fill(b, 0, 4, 0), &p));
	return p;
}

static void touched(struct hal_queue *q, struct hal_buffer *b)
{
	OK(wait_ms(touch(q, b), NEVER_MS));
}

/* ---- what the device answers -------------------------------------------------------- */

/* One that cannot be read stays, another goes; where none can, it says so. */
static void not_read(void **state)
{
	struct hal_buffer_desc d = HAL_INIT(hal_buffer_desc);
	struct tight t;

	(void)state;
	tight_open(&t, "ref", FIT);
	OK(t.ref->inject(t.native, HAL_REF_OP_MEM_READ, 1, EIO));
	t.b[3] = add_buffer(t.part, BIG);
	assert_true(is_here(t.b[0]));
	assert_false(is_here(t.b[1]));
	OK(t.ref->inject(t.native, HAL_REF_OP_MEM_OUT, 1, EIO));
	t.b[4] = add_buffer(t.part, BIG);
	assert_true(is_here(t.b[2]));
	assert_false(is_here(t.b[3]));
	OK(t.ref->inject(t.native, HAL_REF_OP_MEM_READ, 1, EIO));
	d.bytes = BIG;
	FAILS(hal_buffer_create(t.part, &d, &t.b[5]), -ENOSPC, "65536",
	      "no buffer can be evicted: the device failed to copy out 3 buffers");
	t.b[5] = NULL;
	for (uint32_t i = 0; i < FIT; i++)
		assert_full(t.b[i], (uint8_t)(i + 1), 0);
	assert_int_equal(memory_of(&t).evictions, 2);
	tight_close(&t);
}

/* The command fails, and nothing is lost: the next one has it. */
static void not_written(void **state)
{
	struct hal_point failed;
	struct tight t;

	(void)state;
	for (uint32_t how = 0; how < 2; how++) {
		tight_open(&t, "ref", COUNT);
		OK(t.ref->inject(t.native,
				 how == 0 ? HAL_REF_OP_MEM_WRITE : HAL_REF_OP_MEM_IN, 1,
				 EIO));
		failed = touch(t.q, t.b[0]);
		FAILS(wait_ms(failed, NEVER_MS), -EIO, "injected", "\"fill\"");
		assert_false(is_here(t.b[0]));
		assert_full(t.b[0], 1, 0);
		assert_true(info_of(&t).memory_used < FIT * BIG);
		touched(t.other, t.b[0]);
		assert_true(is_here(t.b[0]));
		assert_full(t.b[0], 1, 4);
		tight_close(&t);
	}
}

/* ---- who waits ---------------------------------------------------------------------- */

/* What a queue was stopped inside stays on the device; who needs its place waits. */
static void suspended_inside(void **state)
{
	struct hal_point quiet, waits, stopped;
	struct tight t;

	(void)state;
	tight_open(&t, "ref?fold_ns=100", COUNT);
	OK(submit_cmd(t.q, hal_cmd_copy(t.b[0], 0, t.b[1], 0, BIG), &stopped));
	OK(hal_device_poll(t.dev, 300));
	OK(hal_queue_suspend(t.q, HAL_SUSPEND_FOLD, &quiet));
	OK(wait_ms(quiet, NEVER_MS));
	assert_true(is_here(t.b[0]) && is_here(t.b[1]));
	/* One more has room, two have not. */
	touched(t.other, t.b[2]);
	OK(submit_cmd(t.other, hal_cmd_copy(t.b[3], 0, t.b[4], 0, BIG), &waits));
	FAILS(wait_ms(waits, NEVER_MS), -EDEADLK, "no work is left");
	assert_true(is_here(t.b[0]) && is_here(t.b[1]));
	OK(hal_queue_resume(t.q));
	OK(wait_ms(waits, NEVER_MS));
	OK(wait_ms(stopped, NEVER_MS));
	assert_full(t.b[0], 2, 0);
	assert_full(t.b[3], 5, 0);
	tight_close(&t);
}

/* Whose turn it is, and is suspended, keeps nobody waiting. */
static void suspended_in_turn(void **state)
{
	struct hal_point quiet, first, busy, then;
	struct hal_queue *third;
	struct tight t;

	(void)state;
	tight_open(&t, "ref?fold_ns=100", COUNT);
	third = add_queue(t.part, 0);
	OK(submit_cmd(third, hal_cmd_copy(t.b[4], 0, t.b[5], 0, BIG), &busy));
	OK(hal_device_poll(t.dev, 300));
	OK(submit_cmd(t.q, hal_cmd_copy(t.b[0], 0, t.b[1], 0, BIG), &first));
	OK(hal_device_poll(t.dev, 1));
	OK(hal_queue_suspend(t.q, HAL_SUSPEND_DRAIN, &quiet));
	then = touch(t.other, t.b[2]);
	OK(wait_ms(then, NEVER_MS));
	assert_int_equal(hal_timeline_get_value(first.timeline, NULL), 0);
	OK(hal_queue_resume(t.q));
	OK(wait_ms(first, NEVER_MS));
	OK(wait_ms(busy, NEVER_MS));
	assert_full(t.b[0], 2, 0);
	assert_full(t.b[4], 6, 0);
	OK(hal_queue_destroy(third));
	tight_close(&t);
}

/* The queue in turn is dropped: the next one has the turn. */
static void dropped_in_turn(void **state)
{
	struct hal_point busy, first, then, quiet;
	struct hal_queue *third;
	struct tight t;

	(void)state;
	tight_open(&t, "ref", COUNT);
	third = add_queue(t.part, 0);
	OK(submit_cmd(third, hal_cmd_copy(t.b[4], 0, t.b[5], 0, BIG), &busy));
	OK(hal_device_poll(t.dev, 300));
	OK(submit_cmd(t.q, hal_cmd_copy(t.b[0], 0, t.b[1], 0, BIG), &first));
	OK(submit_cmd(t.other, hal_cmd_copy(t.b[2], 0, t.b[3], 0, BIG), &then));
	OK(hal_device_poll(t.dev, 1));
	OK(hal_queue_suspend(t.q, HAL_SUSPEND_DRAIN, &quiet));
	OK(wait_ms(quiet, NEVER_MS));
	OK(hal_queue_destroy(t.q));
	t.q = NULL;
	OK(wait_ms(then, NEVER_MS));
	OK(wait_ms(busy, NEVER_MS));
	assert_full(t.b[2], 4, 0);
	assert_true(memory_of(&t).fetch_wait_ns > 0);
	OK(hal_queue_destroy(third));
	tight_close(&t);
}

/* Three queues that want two each of three: all get on. */
static void in_turn(void **state)
{
	struct hal_point done[3] = {{NULL, 0}};
	struct hal_queue *q[3];
	struct tight t;

	(void)state;
	tight_open(&t, "ref", COUNT);
	q[0] = t.q;
	q[1] = t.other;
	q[2] = add_queue(t.part, 0);
	for (uint32_t i = 0; i < 8; i++)
		for (uint32_t k = 0; k < 3; k++)
			OK(submit_cmd(q[k],
				      hal_cmd_copy(t.b[2 * k], 0, t.b[2 * k + 1], 0, BIG),
				      &done[k]));
	for (uint32_t k = 0; k < 3; k++)
		OK(wait_ms(done[k], NEVER_MS));
	for (uint32_t k = 0; k < 3; k++)
		assert_full(t.b[2 * k], (uint8_t)(2 * k + 2), 0);
	OK(hal_queue_destroy(q[2]));
	tight_close(&t);
}

/* ---- beside other things ------------------------------------------------------------ */

/* One that is away can be mapped and moved; it comes back where it then belongs. */
static void mapped_and_moved(void **state)
{
	struct hal_point moved;
	struct tight t;
	uint64_t even, odd;
	uint8_t *at;
	void *address;

	(void)state;
	tight_open(&t, "ref?colors=2", COUNT - 1);
	assert_false(is_here(t.b[0]));
	OK(hal_buffer_map(t.b[0], &address));
	at = address;
	assert_int_equal(at[BIG - 1], 1);
	assert_true(is_here(t.b[0]));
	for (uint32_t k = 1; k < COUNT - 1; k++)
		touched(t.q, t.b[k]);
	assert_true(is_here(t.b[0]));
	OK(hal_buffer_unmap(t.b[0]));
	/* Away once more, then moved. */
	for (uint32_t k = 1; k < COUNT - 1; k++)
		touched(t.q, t.b[k]);
	assert_false(is_here(t.b[0]));
	OK(hal_buffer_recolor(t.b[0], t.q, 2, NULL, &moved));
	OK(wait_ms(moved, NEVER_MS));
	assert_full(t.b[0], 1, 0);
	for (uint32_t k = 1; k < COUNT - 1; k++)
		touched(t.q, t.b[k]);
	assert_false(is_here(t.b[0]));
	touched(t.q, t.b[0]);
	assert_int_equal(info_of(&t).memory_used, FIT * BIG);
	for (uint32_t k = 1; k < COUNT - 1; k++) {
		OK(hal_buffer_destroy(t.b[k]));
		t.b[k] = NULL;
	}
	OK(t.ref->color_free(t.native, 0, &even));
	OK(t.ref->color_free(t.native, 1, &odd));
	assert_int_equal(even - odd, BIG);
	assert_full(t.b[0], 1, 4);
	tight_close(&t);
}

static int submit_after(struct hal_queue *q, struct hal_cmd cmd, struct hal_point wait,
			struct hal_point *done)
{
	struct hal_submit_desc d = HAL_INIT(hal_submit_desc);

	d.cmds = &cmd;
	d.cmd_count = 1;
	d.waits = &wait;
	d.wait_count = 1;
	return hal_submit(q, &d, done);
}

/* What is before a move in its queue, and needs the room that the move will, has it. */
static void moved_behind(void **state)
{
	struct hal_point done, moved, gate;
	struct hal_timeline *line;
	struct tight t;

	(void)state;
	tight_open(&t, "ref?colors=2", COUNT - 1);
	OK(hal_timeline_create(t.dev, &line));
	gate = (struct hal_point){line, 1};
	OK(submit_after(t.q, hal_cmd_copy(t.b[0], 0, t.b[1], 0, BIG), gate, &done));
	OK(hal_buffer_recolor(t.b[6], t.q, 2, NULL, &moved));
	/* Nor does it take anybody's place meanwhile. */
	for (uint32_t k = 2; k < 5; k++)
		touched(t.other, t.b[k]);
	assert_int_equal(info_of(&t).memory_used, FIT * BIG);
	assert_true(is_here(t.b[2]) && is_here(t.b[3]) && is_here(t.b[4]));
	OK(hal_timeline_signal(line, 1));
	OK(wait_ms(done, NEVER_MS));
	OK(wait_ms(moved, NEVER_MS));
	assert_full(t.b[0], 2, 0);
	assert_full(t.b[6], 7, 0);
	assert_true(info_of(&t).memory_used <= FIT * BIG);
	OK(hal_timeline_destroy(line));
	tight_close(&t);
}

/* One waits for room that a move has, one for the move: neither wakes the other. */
static void waits_beside_a_move(void **state)
{
	struct hal_point used, moved, room, behind;
	struct hal_queue *waits, *last;
	struct tight t;

	(void)state;
	tight_open(&t, "ref?colors=2", 5);
	waits = add_queue(t.part, 0);
	last = add_queue(t.part, 0);
	used = touch(t.other, t.b[4]);
	OK(hal_buffer_recolor(t.b[4], t.q, 2, NULL, &moved));
	OK(submit_cmd(waits, hal_cmd_copy(t.b[0], 0, t.b[1], 0, BIG), &room));
	behind = touch(last, t.b[4]);
	assert_false(is_here(t.b[0]) && is_here(t.b[1]));
	OK(wait_ms(used, NEVER_MS));
	OK(wait_ms(moved, NEVER_MS));
	OK(wait_ms(room, NEVER_MS));
	OK(wait_ms(behind, NEVER_MS));
	assert_full(t.b[0], 2, 0);
	assert_full(t.b[4], 5, 4);
	OK(hal_queue_destroy(waits));
	OK(hal_queue_destroy(last));
	tight_close(&t);
}

/* Two places are more than the quota; or one is there, and the device has no other. */
static void not_moved(void **state)
{
	struct hal_point moved;
	struct hal_buffer *large;
	struct tight t;

	(void)state;
	tight_open(&t, "ref?colors=2", 1);
	large = add_buffer(t.part, 2 * BIG);
	FAILS(hal_buffer_recolor(large, t.q, 2, NULL, &moved), -ENOSPC, "131072 bytes",
	      "twice its size", "196608");
	OK(t.ref->inject(t.native, HAL_REF_OP_MEM_ALLOC, 1, EIO));
	OK(hal_buffer_recolor(t.b[0], t.q, 2, NULL, &moved));
	FAILS(wait_ms(moved, NEVER_MS), -EIO, "the buffer was not moved", "injected");
	assert_full(t.b[0], 1, 0);
	OK(hal_buffer_recolor(t.b[0], t.other, 2, NULL, &moved));
	OK(wait_ms(moved, NEVER_MS));
	assert_full(t.b[0], 1, 0);
	OK(hal_buffer_destroy(large));
	tight_close(&t);
}

/* A limit of the size of the quota is that; a new quota stays within the limit. */
static void quotas(void **state)
{
	struct hal_partition_desc d = HAL_INIT(hal_partition_desc);
	struct tight t;

	(void)state;
	tight_open(&t, "ref", COUNT);
	d.units_floor = 2;
	d.memory_bytes = COUNT * BIG + 1;
	FAILS(hal_partition_resize(t.part, &d, NULL), -EINVAL, "the memory_limit is");
	d.memory_bytes = (FIT + 1) * BIG;
	OK(hal_partition_resize(t.part, &d, NULL));
	assert_true(hal_device_poll(t.dev, UINT64_MAX) >= 0);
	touched(t.q, t.b[0]);
	assert_int_equal(info_of(&t).memory_used, (FIT + 1) * BIG);
	tight_close(&t);
}

/* ---- in real time ------------------------------------------------------------------- */

enum { ROUNDS = 150, MINE = COUNT / 2 };

struct worker {
	struct tight *t;
	struct hal_queue *q;
	struct hal_buffer **b;
	uint32_t seed;
	pthread_t thread;
	char bad[256];
};

#define WELL(w, cond)                                                                    \
	do {                                                                             \
		if (!(cond)) {                                                           \
			(void)snprintf((w)->bad, sizeof((w)->bad), "%s: %s", #cond,      \
				       hal_last_error());                                \
			return false;                                                    \
		}                                                                        \
	} while (0)

/* The host writes one, the device copies it to another, the host reads that; meanwhile
 * another thread's buffers push these off the device. */
static bool work_once(struct worker *w, uint32_t i, uint32_t *words)
{
	struct hal_buffer *from = w->b[i % MINE],
			  *to = w->b[(i + 1 + i / MINE % 2) % MINE];
	struct hal_buffer_desc d = HAL_INIT(hal_buffer_desc);
	struct hal_point done;

	for (uint32_t k = 0; k < BIG / 4; k++)
		words[k] = w->seed + i * 0x10001 + k;
	WELL(w, hal_buffer_write(from, 0, words, BIG) == 0);
	WELL(w, submit_cmd(w->q, hal_cmd_copy(to, 0, from, 0, BIG), &done) == 0);
	WELL(w, wait_ms(done, NEVER_MS) == 0);
	memset(words, 0, BIG);
	WELL(w, hal_buffer_read(to, 0, words, BIG) == 0);
	for (uint32_t k = 0; k < BIG / 4; k++)
		WELL(w, words[k] == w->seed + i * 0x10001 + k);
	if (i % 8 != 7)
		return true;
	/* One goes, wherever it is, and another comes. */
	WELL(w, hal_buffer_destroy(from) == 0);
	w->b[i % MINE] = NULL;
	d.bytes = BIG;
	/* The old one is there until what the other thread has submitted before has
	 * ended; and all that is on the device may be in use for a moment. */
	for (int64_t until = in_ms(NEVER_MS);; sched_yield()) {
		int err = hal_buffer_create(w->t->part, &d, &w->b[i % MINE]);

		if (err == 0)
			return true;
		WELL(w, err == -ENOSPC && now_ns() < until);
	}
}

static void *work(void *arg)
{
	struct worker *w = arg;
	uint32_t *words = malloc(BIG);

	for (uint32_t i = 0; words != NULL && i < ROUNDS && work_once(w, i, words); i++)
		;
	if (words == NULL)
		(void)snprintf(w->bad, sizeof(w->bad), "no memory");
	free(words);
	return NULL;
}

static void two_threads(void **state)
{
	struct worker w[2];
	struct tight t;

	(void)state;
	tight_open(&t, "ref?clock=real", COUNT);
	for (uint32_t k = 0; k < 2; k++) {
		w[k] = (struct worker){.t = &t,
				       .q = k == 0 ? t.q : t.other,
				       .b = &t.b[k * MINE],
				       .seed = k << 24};
		assert_int_equal(pthread_create(&w[k].thread, NULL, work, &w[k]), 0);
	}
	for (uint32_t k = 0; k < 2; k++)
		assert_int_equal(pthread_join(w[k].thread, NULL), 0);
	for (uint32_t k = 0; k < 2; k++)
		if (w[k].bad[0] != '\0')
			fail_msg("thread %u: %s", k, w[k].bad);
	assert_true(memory_of(&t).fetches > ROUNDS / 4);
	tight_close(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(not_read),         cmocka_unit_test(not_written),
		cmocka_unit_test(suspended_inside), cmocka_unit_test(suspended_in_turn),
		cmocka_unit_test(dropped_in_turn),  cmocka_unit_test(in_turn),
		cmocka_unit_test(mapped_and_moved), cmocka_unit_test(moved_behind),
		cmocka_unit_test(not_moved),        cmocka_unit_test(waits_beside_a_move),
		cmocka_unit_test(quotas),           cmocka_unit_test(two_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_core_inlet - records from another process (api/inlet.h): what is valid is
 * executed, what is not is refused and leaves no trace, and no word of a ring is read
 * twice.
 *
 * This file contains the module, with a hook at each load from a ring.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <stdatomic.h>

static uint64_t load(const uint64_t *p);
static unsigned int load_tail(const atomic_uint *p);
#define INLET_LOAD(p) load(p)
#define INLET_TAIL(p) load_tail(p)
#include "api/inlet.c" /* NOLINT(bugprone-suspicious-include) */

#include "../hald/inlet_world.h"

#include <cmocka.h>

#define OK(call) assert_int_equal((call), 0)

/* ---- loads ------------------------------------------------------------------------- */

enum { LOADS_MAX = 4096 };

static struct {
	const void *at[LOADS_MAX];
	uint32_t count, repeated, tails;
	bool scramble; /* change each word once it has been read */
} loads;

static uint64_t load(const uint64_t *p)
{
	uint64_t value = __atomic_load_n(p, __ATOMIC_RELAXED);

	for (uint32_t i = 0; i < loads.count; i++)
		loads.repeated += loads.at[i] == p;
	if (loads.count < LOADS_MAX)
		loads.at[loads.count++] = p;
	if (loads.scramble)
		*(uint64_t *)(uintptr_t)p = UINT64_C(0x5151515151515151) ^ value;
	return value;
}

static unsigned int load_tail(const atomic_uint *p)
{
	loads.tails++;
	return atomic_load_explicit(p, memory_order_acquire);
}

static void loads_begin(bool scramble)
{
	memset(&loads, 0, sizeof(loads));
	loads.scramble = scramble;
}

/* ---- a world ----------------------------------------------------------------------- */

static int open_world(void **state)
{
	struct inlet_world *w = malloc(sizeof(*w));

	assert_non_null(w);
	inlet_world_open(w, "ref?clock=virtual");
	inlet_bind(w);
	loads_begin(false);
	*state = w;
	return 0;
}

static int close_world(void **state)
{
	inlet_world_close(*state);
	free(*state);
	return 0;
}

/* Wait until the queue has reached value, and return the first byte of buf. */
static uint8_t run_to(struct inlet_world *w, uint64_t value)
{
	struct hal_point p = {hal_queue_get_timeline(w->queue), value};
	uint8_t byte;

	if (hal_wait(&p, 1, 0, HAL_FOREVER) != 0)
		fail_msg("%s", hal_last_error());
	assert_int_equal(atomic_load(&w->told.value), value);
	OK(hal_buffer_read(w->buf, 0, &byte, 1));
	return byte;
}

/* ---- valid records ----------------------------------------------------------------- */

static void launches_run(void **state)
{
	struct inlet_world *w = *state;

	(void)inlet_fill(w, FAR_LAST | FAR_WHOLE, 0x05050505);
	(void)inlet_launch(w, FAR_LAST | FAR_WHOLE);
	inlet_publish(w);
	assert_null(atomic_load(&w->inlet.wrong));
	assert_int_equal(run_to(w, 2), 6);
	assert_int_equal(atomic_load(&w->told.head), w->tail);
}

/* Many times around the ring, so that launches begin in its last slot, too. */
static void the_ring_wraps(void **state)
{
	struct inlet_world *w = *state;
	uint64_t n = 0;

	for (uint32_t round = 0; round < 200; round++) {
		(void)inlet_fill(w, FAR_LAST | FAR_WHOLE, round * 0x01010101);
		(void)inlet_launch(w, FAR_LAST | FAR_WHOLE);
		inlet_publish(w);
		n += 2;
		assert_int_equal(run_to(w, n), (uint8_t)(round + 1));
	}
	assert_null(atomic_load(&w->inlet.wrong));
}

static void a_submission_of_all_kinds_runs(void **state)
{
	struct inlet_world *w = *state;
	struct far_slot *s = inlet_slot(w, 0);
	struct hal_point p = {w->line, 9};

	s->op = FAR_OP_HEAD;
	s->head.tag = 77;
	s->head.priority = 3;
	s->head.flags = HAL_SUBMIT_PRIORITY;
	(void)inlet_point(w, FAR_OP_WAIT, 0, 4);
	(void)inlet_fill(w, 0, 0x11111111);
	(void)inlet_launch(w, 0);
	s = inlet_slot(w, 0);
	s->op = HAL_OP_COPY;
	s->copy.dst = handle_of(w, NAME_OTHER);
	s->copy.src = handle_of(w, NAME_BUFFER);
	s->copy.bytes = 128;
	s->copy.src_offset = 128;
	(void)inlet_point(w, FAR_OP_SIGNAL, FAR_LAST, 9);
	inlet_publish(w);
	assert_null(atomic_load(&w->inlet.wrong));
	assert_int_equal(atomic_load(&w->told.value), 0);
	OK(hal_timeline_signal(w->line, 4));
	OK(hal_wait(&p, 1, 0, HAL_FOREVER));
	assert_int_equal(run_to(w, 1), 0x12);
	assert_int_equal(queue_commands(w->queue), 3);
}

/* The same queue is submitted to from here, as a request has it. */
static void requests_and_records_take_turns(void **state)
{
	struct inlet_world *w = *state;
	struct hal_submit_desc sd = HAL_INIT(hal_submit_desc);
	struct hal_cmd fill;
	struct hal_point done;

	sd.cmds = &fill;
	sd.cmd_count = 1;
	for (uint32_t i = 0; i < 20; i++) {
		(void)inlet_fill(w, FAR_LAST | FAR_WHOLE, 0x01010101);
		atomic_store(&w->ring->tail, w->tail);
		fill = hal_cmd_fill(w->other, 0, BYTES, 0x01010101 * i);
		inlet_hold(&w->inlet);
		OK(hal_submit(w->queue, &sd, &done));
		w->tail = queue_written(w->queue);
		inlet_release(&w->inlet);
		(void)inlet_launch(w, FAR_LAST | FAR_WHOLE);
		inlet_publish(w);
		assert_int_equal(run_to(w, 3ull * (i + 1)), i + 1);
	}
	assert_null(atomic_load(&w->inlet.wrong));
}

/* ---- each word is read once --------------------------------------------------------- */

static void no_word_is_read_twice(void **state)
{
	struct inlet_world *w = *state;

	for (uint64_t round = 1; round <= 40; round++) {
		uint32_t words = 0;

		(void)inlet_point(w, FAR_OP_WAIT, 0, 0);
		(void)inlet_fill(w, 0, 0x22222222);
		(void)inlet_launch(w, FAR_LAST);
		words = 8 + 8 + 4 + 6; /* of the launch, what it has */
		loads_begin(true);
		inlet_publish(w);
		assert_int_equal(loads.repeated, 0);
		assert_int_equal(loads.count, words);
		assert_int_equal(loads.tails, 1);
		/* What was there is overwritten: only the copy has been used. */
		assert_null(atomic_load(&w->inlet.wrong));
		assert_int_equal(run_to(w, round), 0x23);
	}
}

/* ---- what is refused ----------------------------------------------------------------- */

typedef void (*write_fn)(struct inlet_world *w);

static void no_end(struct inlet_world *w)
{
	(void)inlet_fill(w, 0, 1);
}

static void cut_off(struct inlet_world *w)
{
	(void)inlet_launch(w, FAR_LAST);
	w->tail--;
}

static void too_many_arguments(struct inlet_world *w)
{
	inlet_launch(w, FAR_LAST)->arg_count = 9;
}

static void most_arguments(struct inlet_world *w)
{
	inlet_launch(w, FAR_LAST)->arg_count = 255;
}

static void fewer_arguments(struct inlet_world *w)
{
	inlet_launch(w, FAR_LAST)->arg_count = 1;
}

static void stale_kernel(struct inlet_world *w)
{
	inlet_launch(w, FAR_LAST)->launch.kernel += UINT64_C(1) << 32;
}

static void no_kernel(struct inlet_world *w)
{
	inlet_launch(w, FAR_LAST)->launch.kernel = 0;
}

static void kernel_of_another_kind(struct inlet_world *w)
{
	inlet_launch(w, FAR_LAST)->launch.kernel = handle_of(w, NAME_BUFFER);
}

static void kernel_that_is_a_buffer(struct inlet_world *w)
{
	inlet_launch(w, FAR_LAST)->launch.kernel =
		(handle_of(w, NAME_BUFFER) & ~UINT64_C(0xff000000)) | KIND_KERNEL << 24;
}

static void unbound_kernel(struct inlet_world *w)
{
	inlet_launch(w, FAR_LAST)->launch.kernel = handle_of(w, NAME_UNBOUND);
}

static void index_out_of_range(struct inlet_world *w)
{
	inlet_fill(w, FAR_LAST, 1)->fill.dst =
		UINT64_C(7) << 32 | KIND_BUFFER << 24 | NAMES;
}

static void largest_index(struct inlet_world *w)
{
	inlet_fill(w, FAR_LAST, 1)->fill.dst =
		UINT64_C(7) << 32 | KIND_BUFFER << 24 | 0xffffff;
}

static void gone(struct inlet_world *w)
{
	inlet_fill(w, FAR_LAST, 1)->fill.dst =
		UINT64_C(7) << 32 | KIND_BUFFER << 24 | NAME_GONE;
}

static void others_buffer(struct inlet_world *w)
{
	inlet_fill(w, FAR_LAST, 1)->fill.dst = handle_of(w, NAME_VICTIM);
}

static void others_argument(struct inlet_world *w)
{
	inlet_launch(w, FAR_LAST)[1].words[0] = handle_of(w, NAME_VICTIM);
}

static void argument_beyond(struct inlet_world *w)
{
	inlet_launch(w, FAR_LAST)[1].words[1] = BYTES + 1;
}

static void argument_near_the_end_of_time(struct inlet_world *w)
{
	struct far_slot *s = inlet_launch(w, FAR_LAST);

	s[1].words[1] = UINT64_MAX - 63;
	s[1].words[2] = 64;
}

static void argument_too_long(struct inlet_world *w)
{
	inlet_launch(w, FAR_LAST)[1].words[2] = BYTES + 1;
}

static void argument_too_short(struct inlet_world *w)
{
	inlet_launch(w, FAR_LAST)[1].words[2] = 63;
}

static void argument_is_a_scalar(struct inlet_world *w)
{
	inlet_launch(w, FAR_LAST)[1].words[0] = 0;
}

static void fill_beyond(struct inlet_world *w)
{
	inlet_fill(w, FAR_LAST, 1)->fill.bytes = BYTES + 4;
}

static void fill_wraps(struct inlet_world *w)
{
	struct far_slot *s = inlet_fill(w, FAR_LAST, 1);

	s->fill.offset = UINT64_MAX - 3;
	s->fill.bytes = 8;
}

static void fill_of_nothing(struct inlet_world *w)
{
	inlet_fill(w, FAR_LAST, 1)->fill.bytes = 0;
}

static void copy_onto_itself(struct inlet_world *w)
{
	struct far_slot *s = inlet_slot(w, 0);

	s->op = HAL_OP_COPY;
	s->marks = FAR_LAST;
	s->copy.dst = s->copy.src = handle_of(w, NAME_BUFFER);
	s->copy.bytes = 64;
	s->copy.dst_offset = 32;
}

static void copy_from_others(struct inlet_world *w)
{
	struct far_slot *s = inlet_slot(w, 0);

	s->op = HAL_OP_COPY;
	s->marks = FAR_LAST;
	s->copy.dst = handle_of(w, NAME_BUFFER);
	s->copy.src = handle_of(w, NAME_VICTIM);
	s->copy.bytes = 64;
}

static void no_destination(struct inlet_world *w)
{
	struct far_slot *s = inlet_slot(w, 0);

	s->op = HAL_OP_COPY;
	s->marks = FAR_LAST;
	s->copy.bytes = 64;
}

static void operation(struct inlet_world *w, uint32_t op)
{
	struct far_slot *s = inlet_slot(w, 0);

	/* All but the operation is as a host function would have it. */
	s->op = op;
	s->marks = FAR_LAST;
	s->words[2] = (uint64_t)(uintptr_t)operation;
}

static void host_function(struct inlet_world *w)
{
	operation(w, HAL_OP_HOST);
}

static void a_block(struct inlet_world *w)
{
	operation(w, REC_BLOCK);
}

static void a_recolour(struct inlet_world *w)
{
	operation(w, REC_RECOLOR);
}

static void a_foreign_wait(struct inlet_world *w)
{
	operation(w, REC_FOREIGN);
}

static void unknown_operation(struct inlet_world *w)
{
	operation(w, UINT32_MAX);
}

static void unknown_flags(struct inlet_world *w)
{
	inlet_fill(w, FAR_LAST, 1)->flags = 0x8000;
}

static void timestamp_not_aligned(struct inlet_world *w)
{
	struct far_slot *s = inlet_slot(w, 0);

	s->op = HAL_OP_TIMESTAMP;
	s->marks = FAR_LAST;
	s->timestamp.dst = handle_of(w, NAME_BUFFER);
	s->timestamp.offset = 4;
}

static void head(struct inlet_world *w, uint8_t marks, uint32_t flags, int32_t priority)
{
	struct far_slot *s = inlet_slot(w, 0);

	s->op = FAR_OP_HEAD;
	s->marks = marks;
	s->head.flags = flags;
	s->head.priority = priority;
}

static void head_alone(struct inlet_world *w)
{
	head(w, FAR_LAST, 0, 0);
}

static void head_in_the_middle(struct inlet_world *w)
{
	(void)inlet_fill(w, 0, 1);
	head(w, 0, 0, 0);
	(void)inlet_fill(w, FAR_LAST, 1);
}

static void two_heads(struct inlet_world *w)
{
	head(w, 0, 0, 0);
	head(w, 0, 0, 0);
	(void)inlet_fill(w, FAR_LAST, 1);
}

static void head_with_flags(struct inlet_world *w)
{
	head(w, 0, 0x80, 0);
	(void)inlet_fill(w, FAR_LAST, 1);
}

static void priority_too_high(struct inlet_world *w)
{
	head(w, 0, HAL_SUBMIT_PRIORITY, 4);
	(void)inlet_fill(w, FAR_LAST, 1);
}

static void deadline_refused(struct inlet_world *w)
{
	w->inlet.deadlines = false;
	head(w, 0, 0, 0);
	w->ring->slots[(w->tail - 1) & w->queue->slot_mask].head.deadline_ns = 1;
	(void)inlet_fill(w, FAR_LAST, 1);
}

static void wait_after_a_command(struct inlet_world *w)
{
	(void)inlet_fill(w, 0, 1);
	(void)inlet_point(w, FAR_OP_WAIT, FAR_LAST, 1);
}

static void command_after_a_signal(struct inlet_world *w)
{
	(void)inlet_point(w, FAR_OP_SIGNAL, 0, 1);
	(void)inlet_fill(w, FAR_LAST, 1);
}

static void signal_of_zero(struct inlet_world *w)
{
	(void)inlet_point(w, FAR_OP_SIGNAL, FAR_LAST, 0);
}

static void signal_of_a_queue(struct inlet_world *w)
{
	inlet_point(w, FAR_OP_SIGNAL, FAR_LAST, 100)->point[0].timeline =
		handle_of(w, NAME_QUEUE);
}

static void second_point_stale(struct inlet_world *w)
{
	struct far_slot *s = inlet_point(w, FAR_OP_WAIT, FAR_LAST, 1);

	s->point[1].timeline = handle_of(w, NAME_TIMELINE) + (UINT64_C(1) << 40);
}

static void no_point(struct inlet_world *w)
{
	inlet_point(w, FAR_OP_WAIT, FAR_LAST, 1)->point[0].timeline = 0;
}

static void two_commands_as_one(struct inlet_world *w)
{
	(void)inlet_fill(w, FAR_WHOLE, 1);
	(void)inlet_fill(w, FAR_LAST | FAR_WHOLE, 1);
}

static void partly_whole(struct inlet_world *w)
{
	(void)inlet_point(w, FAR_OP_WAIT, FAR_WHOLE, 0);
	(void)inlet_fill(w, FAR_LAST, 1);
}

static void whole_without_a_command(struct inlet_world *w)
{
	(void)inlet_point(w, FAR_OP_WAIT, FAR_LAST | FAR_WHOLE, 0);
}

static void tail_far_ahead(struct inlet_world *w)
{
	w->tail += w->queue->slot_count + 1;
}

static void tail_behind(struct inlet_world *w)
{
	w->tail--;
}

static void tail_half_around(struct inlet_world *w)
{
	w->tail += UINT32_C(1) << 31;
}

/* Valid points first, so that it is seen whether they are uncounted. */
static void points_then_nonsense(struct inlet_world *w)
{
	(void)inlet_point(w, FAR_OP_WAIT, 0, 1);
	(void)inlet_point(w, FAR_OP_WAIT, 0, 2);
	operation(w, UINT32_MAX);
}

static void refused(void **state)
{
	static const struct {
		const char *name;
		write_fn write;
	} cases[] = {
#define CASE(fn) {#fn, fn}
		CASE(no_end),
		CASE(cut_off),
		CASE(too_many_arguments),
		CASE(most_arguments),
		CASE(fewer_arguments),
		CASE(stale_kernel),
		CASE(no_kernel),
		CASE(kernel_of_another_kind),
		CASE(kernel_that_is_a_buffer),
		CASE(unbound_kernel),
		CASE(index_out_of_range),
		CASE(largest_index),
		CASE(gone),
		CASE(others_buffer),
		CASE(others_argument),
		CASE(argument_beyond),
		CASE(argument_near_the_end_of_time),
		CASE(argument_too_long),
		CASE(argument_too_short),
		CASE(argument_is_a_scalar),
		CASE(fill_beyond),
		CASE(fill_wraps),
		CASE(fill_of_nothing),
		CASE(copy_onto_itself),
		CASE(copy_from_others),
		CASE(no_destination),
		CASE(host_function),
		CASE(a_block),
		CASE(a_recolour),
		CASE(a_foreign_wait),
		CASE(unknown_operation),
		CASE(unknown_flags),
		CASE(timestamp_not_aligned),
		CASE(head_alone),
		CASE(head_in_the_middle),
		CASE(two_heads),
		CASE(head_with_flags),
		CASE(priority_too_high),
		CASE(deadline_refused),
		CASE(wait_after_a_command),
		CASE(command_after_a_signal),
		CASE(signal_of_zero),
		CASE(signal_of_a_queue),
		CASE(second_point_stale),
		CASE(no_point),
		CASE(two_commands_as_one),
		CASE(partly_whole),
		CASE(whole_without_a_command),
		CASE(tail_far_ahead),
		CASE(tail_behind),
		CASE(tail_half_around),
		CASE(points_then_nonsense),
	};
	struct inlet_world *w = *state;

	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		uint64_t count = 0;
		uint8_t before, after;

		loads_begin(false);
		/* A submission before it is taken all the same. */
		(void)inlet_fill(w, FAR_LAST | FAR_WHOLE, 0x33333333);
		inlet_publish(w);
		assert_null(atomic_load(&w->inlet.wrong));
		before = run_to(w, 1);
		loads_begin(true);
		cases[i].write(w);
		inlet_publish(w);
		if (atomic_load(&w->inlet.wrong) == NULL)
			fail_msg("%s is not refused", cases[i].name);
		assert_int_equal(loads.repeated, 0);
		assert_int_equal(read(w->fd, &count, sizeof(count)), sizeof(count));
		assert_int_equal(atomic_load(&w->told.open), 0);
		/* Nothing of it has been submitted, and no point is kept. */
		assert_int_equal(counter_get(&w->queue->submissions), 1);
		assert_int_equal(atomic_load(&w->line->pending), 0);
		assert_true(hal_device_poll(w->dev, 1000000) >= 0);
		OK(hal_buffer_read(w->buf, 0, &after, 1));
		assert_int_equal(before, after);
		/* And nothing is taken any more. */
		(void)inlet_fill(w, FAR_LAST | FAR_WHOLE, 1);
		inlet_publish(w);
		assert_int_equal(counter_get(&w->queue->submissions), 1);
		inlet_end(w);
		inlet_begin(w);
	}
}

/* Every record with every single bit of its slots changed: none reaches the memory of
 * another, nor asserts. */
static void every_bit(void **state)
{
	struct inlet_world *w = *state;
	uint8_t bits[BYTES], now[BYTES];
	uint32_t taken = 0;

	memset(bits, 0x77, sizeof(bits));
	OK(hal_buffer_write(w->victims, 0, bits, sizeof(bits)));
	for (uint32_t bit = 0; bit < 4 * 512; bit++) {
		uint64_t *words = w->ring->slots[0].words;

		(void)inlet_point(w, FAR_OP_WAIT, 0, 0);
		(void)inlet_launch(w, 0);
		(void)inlet_point(w, FAR_OP_SIGNAL, FAR_LAST, bit + 1);
		words[bit / 64] ^= UINT64_C(1) << bit % 64;
		loads_begin(true);
		inlet_publish(w);
		assert_int_equal(loads.repeated, 0);
		taken += atomic_load(&w->inlet.wrong) == NULL;
		(void)hal_device_poll(w->dev, 1000000);
		OK(hal_buffer_read(w->victims, 0, now, sizeof(now)));
		assert_memory_equal(bits, now, sizeof(bits));
		inlet_end(w);
		inlet_begin(w);
	}
	/* Some bits mean nothing, or another value that is as valid. */
	assert_true(taken > 100 && taken < 1500);
}

/* hald may close an inlet at any moment. */
static void a_closed_inlet_takes_nothing(void **state)
{
	struct inlet_world *w = *state;

	inlet_close(&w->inlet);
	(void)inlet_fill(w, FAR_LAST | FAR_WHOLE, 1);
	loads_begin(false);
	inlet_publish(w);
	assert_int_equal(loads.count, 0);
	assert_int_equal(counter_get(&w->queue->submissions), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_world, close_world)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(launches_run),
		TEST(the_ring_wraps),
		TEST(a_submission_of_all_kinds_runs),
		TEST(requests_and_records_take_turns),
		TEST(no_word_is_read_twice),
		TEST(refused),
		TEST(every_bit),
		TEST(a_closed_inlet_takes_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_core_watch - the words of busy senders that the engine reads in every turn
 * (loop/watch.h): which are watched, what ends a watch, and that no record is lost when
 * queues become busy and quiet beside each other.
 *
 * tests/wakeup has all interleavings of the protocol itself.
 */
#include "ref_world.h"

#include "loop/device.h"
#include "loop/watch.h"

enum { SENDERS = WATCHED_MAX + 2 };

/* A sender without a queue: only what the engine sees of it. */
struct sender {
	struct message message;
	WAKE_WORD announced, word;
	uint32_t turn, changes;
};

static struct sender senders[SENDERS];

static void changed(struct hal_device *dev, struct message *msg)
{
	(void)dev;
	for (unsigned int i = 0; i < SENDERS; i++)
		senders[i].changes += msg == &senders[i].message;
}

static bool watch(struct hal_device *dev, unsigned int i)
{
	struct sender *s = &senders[i];

	return watch_begin(dev, &s->message, &s->announced, &s->word, WATCH_NOT_FENCED,
			   changed);
}

/* A device of which only .watch is used. */
static struct hal_device *device_new(void)
{
	struct hal_device *dev = calloc(1, sizeof(*dev));

	assert_non_null(dev);
	memset(senders, 0, sizeof(senders));
	watch_init(dev);
	if (!dev->watch.possible) {
		free(dev);
		print_message("no membarrier(2) here\n");
		skip();
	}
	return dev;
}

static void a_message_now_and_then_does_not_pay(void **state)
{
	struct hal_device *dev = device_new();
	struct sender *s = &senders[0];

	(void)state;
	assert_false(watch_pays(dev, &s->turn)); /* the first one */
	dev->watch.turn += WATCH_BUSY_TURNS;
	assert_false(watch_pays(dev, &s->turn));
	dev->watch.turn += WATCH_BUSY_TURNS - 1;
	assert_true(watch_pays(dev, &s->turn));
	free(dev);
}

static void changes_are_told_once(void **state)
{
	struct hal_device *dev = device_new();
	struct sender *s = &senders[1];

	(void)state;
	assert_true(watch(dev, 0));
	assert_true(watch(dev, 1));
	assert_int_equal(atomic_load(&s->announced), ANNOUNCED_WATCHED);
	assert_false(watch_changed(dev));
	atomic_store(&s->word, 3);
	assert_true(watch_changed(dev));
	watch_look(dev);
	watch_look(dev);
	assert_int_equal(s->changes, 1);
	assert_int_equal(senders[0].changes, 0);
	/* What comes before the end is told, and the sender sends messages again. */
	atomic_store(&s->word, 5);
	assert_true(watch_end(dev));
	assert_int_equal(s->changes, 2);
	assert_int_equal(atomic_load(&s->announced), ANNOUNCED_NOT);
	assert_int_equal(dev->watch.count, 0);
	assert_false(watch_end(dev));
	free(dev);
}

static void quiet_ones_make_room(void **state)
{
	struct hal_device *dev = device_new();

	(void)state;
	for (unsigned int i = 0; i < WATCHED_MAX; i++)
		assert_true(watch(dev, i));
	/* All are busy. */
	for (unsigned int turn = 0; turn < 5000; turn++) {
		for (unsigned int i = 0; i < WATCHED_MAX; i++)
			atomic_fetch_add(&senders[i].word, 1);
		watch_look(dev);
	}
	assert_false(watch(dev, WATCHED_MAX));
	/* One is not. */
	for (unsigned int turn = 0; turn < 5000; turn++) {
		for (unsigned int i = 1; i < WATCHED_MAX; i++)
			atomic_fetch_add(&senders[i].word, 1);
		watch_look(dev);
	}
	assert_true(watch(dev, WATCHED_MAX));
	assert_int_equal(atomic_load(&senders[0].announced), ANNOUNCED_NOT);
	assert_int_equal(atomic_load(&senders[WATCHED_MAX].announced), ANNOUNCED_WATCHED);
	free(dev);
}

static void a_destroyed_sender_is_forgotten(void **state)
{
	struct hal_device *dev = device_new();

	(void)state;
	for (unsigned int i = 0; i < 3; i++)
		assert_true(watch(dev, i));
	watch_forget(dev, &senders[SENDERS - 1].message); /* is not watched */
	watch_forget(dev, &senders[0].message);
	for (unsigned int i = 0; i < 3; i++)
		atomic_store(&senders[i].word, 1);
	watch_look(dev);
	assert_int_equal(senders[0].changes, 0);
	assert_int_equal(senders[1].changes, 1);
	assert_int_equal(senders[2].changes, 1);
	free(dev);
}

static void no_membarrier_no_watch(void **state)
{
	struct hal_device *dev = device_new();

	(void)state;
	dev->watch.possible = false;
	assert_false(watch(dev, 0));
	assert_int_equal(atomic_load(&senders[0].announced), ANNOUNCED_NOT);
	free(dev);
}

/* ---- on a device ------------------------------------------------------------------- */

enum { THREADS = 2, QUEUES_EACH = 6, ROUNDS = 300 };

struct producer {
	struct hal_queue *queues[QUEUES_EACH];
	unsigned int seed;
	pthread_t thread;
};

static unsigned int draw(struct producer *p, unsigned int below)
{
	p->seed = p->seed * 1664525 + 1013904223;
	return (p->seed >> 16) % below;
}

/* Bursts to one queue or several in turn, then a wait, sometimes after a pause in which
 * the engine falls asleep. */
static void *produce(void *arg)
{
	static const struct hal_cmd nop = {.op = HAL_OP_NOP};
	struct hal_submit_desc d = HAL_INIT(hal_submit_desc);
	struct producer *p = arg;

	d.cmds = &nop;
	d.cmd_count = 1;
	for (unsigned int round = 0; round < ROUNDS; round++) {
		struct hal_point done[QUEUES_EACH] = {0};
		unsigned int first = draw(p, QUEUES_EACH);
		unsigned int queues = 1 + draw(p, QUEUES_EACH);
		unsigned int burst = 1 + draw(p, 30);

		for (unsigned int i = 0; i < burst; i++)
			for (unsigned int k = 0; k < queues; k++) {
				unsigned int at = (first + k) % QUEUES_EACH;

				OK(hal_submit(p->queues[at], &d, &done[k]));
			}
		spin(draw(p, 4) == 0 ? 200000 : draw(p, 2000));
		OK(hal_wait(done, queues, 0, in_ms(NEVER_MS)));
	}
	return NULL;
}

static void no_record_is_lost(void **state)
{
	static const char *const options[] = {"hal.spin_us=20", NULL};
	static struct producer producers[THREADS];
	struct ref r;

	(void)state;
	ref_open_with(&r, "ref?clock=real", options);
	for (unsigned int t = 0; t < THREADS; t++) {
		producers[t].seed = t + 1;
		for (unsigned int i = 0; i < QUEUES_EACH; i++)
			producers[t].queues[i] = add_queue(r.part, 0);
		OK(pthread_create(&producers[t].thread, NULL, produce, &producers[t]));
	}
	for (unsigned int t = 0; t < THREADS; t++) {
		OK(pthread_join(producers[t].thread, NULL));
		/* Destroyed while it is watched, perhaps. */
		for (unsigned int i = 0; i < QUEUES_EACH; i++)
			OK(hal_queue_destroy(producers[t].queues[i]));
	}
	OK(hal_queue_destroy(r.q));
	OK(hal_partition_destroy(r.part));
	OK(hal_close(r.dev));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_message_now_and_then_does_not_pay),
		cmocka_unit_test(changes_are_told_once),
		cmocka_unit_test(quiet_ones_make_room),
		cmocka_unit_test(a_destroyed_sender_is_forgotten),
		cmocka_unit_test(no_membarrier_no_watch),
		cmocka_unit_test(no_record_is_lost),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* test_core_beside.c - allocate and free memory, and create queues, on the calling
 * thread, concurrently with the engine (HAL_BK_BESIDE_MEMORY, HAL_BK_BESIDE_QUEUE). */
#include "util/error.h" /* before cmocka's macro fail() */

#include "ref_world.h"

#include <semaphore.h>
#include <unistd.h>

#include <hal/ext/memory.h>

#include "layers/layers.h"
#include "loop/device.h"
#include "loop/engine.h"
#include "space/partition.h"

enum { BIG = 64 << 10, FIT = 2 };

/* A device with two tenants.  The first one's buffers may exceed its quota, which is FIT
 * buffers of BIG; the second one has a quota of FIT buffers, too. */
struct tenants {
	struct hal_device *dev;
	struct hal_partition *one, *other;
	struct hal_queue *q; /* of the second tenant */
	struct hal_backend held;
	int (*alloc)(void *dev, void *part, uint64_t bytes,
		     const struct hal_bk_colors *colors, uint32_t flags, void **mem);
	int (*free)(void *dev, void *mem);
	int (*create)(void *dev, void *part, int32_t priority, void **queue);
	int (*destroy)(void *dev, void *queue);
	int (*poll)(void *dev, uint64_t until_ns, struct hal_bk_event *ev, uint32_t max);
};

static struct tenants t;
static sem_t begun, go_on;
static atomic_int to_hold, to_fail; /* calls of mem_alloc and mem_free that still do */
static atomic_uint by_engine;       /* calls that the engine's thread has made */
static int fail_with;
static atomic_bool lose;
static atomic_int queues; /* that the backend has */

#define host_fail(...) ((fail)(__VA_ARGS__))

/* Count the call if the engine's thread makes it; if it is to be held, block. */
static void hold_call(void)
{
	by_engine += pthread_equal(pthread_self(), t.dev->thread) != 0;
	if (atomic_fetch_sub(&to_hold, 1) <= 0)
		return;
	sem_post(&begun);
	while (sem_wait(&go_on) != 0)
		;
}

/* The software device's own functions are no thread's but the engine's. */
static pthread_mutex_t one_call = PTHREAD_MUTEX_INITIALIZER;

static int held_alloc(void *dev, void *part, uint64_t bytes,
		      const struct hal_bk_colors *colors, uint32_t flags, void **mem)
{
	int err;

	hold_call();
	if (atomic_fetch_sub(&to_fail, 1) > 0)
		return host_fail(fail_with, "the driver has no memory");
	pthread_mutex_lock(&one_call);
	err = t.alloc(dev, part, bytes, colors, flags, mem);
	pthread_mutex_unlock(&one_call);
	return err;
}

static int held_free(void *dev, void *mem)
{
	int err;

	hold_call();
	pthread_mutex_lock(&one_call);
	err = t.free(dev, mem);
	pthread_mutex_unlock(&one_call);
	return err;
}

static int held_create(void *dev, void *part, int32_t priority, void **queue)
{
	int err;

	hold_call();
	pthread_mutex_lock(&one_call);
	err = t.create(dev, part, priority, queue);
	pthread_mutex_unlock(&one_call);
	queues += err == 0;
	return err;
}

static int counted_destroy(void *dev, void *queue)
{
	queues--;
	return t.destroy(dev, queue);
}

static int losing_poll(void *dev, uint64_t until_ns, struct hal_bk_event *ev,
		       uint32_t max)
{
	int n = t.poll(dev, until_ns, ev, max);

	/* The software device still has to be done with its work. */
	return lose && n > 0 ? host_fail(EIO, "fell off the bus") : n;
}

static int open_tenants(void **state)
{
	static const char *const options[] = {"hal.oversubscribe=yes", NULL};
	struct hal_partition_desc d = HAL_INIT(hal_partition_desc);

	(void)state;
	memset(&t, 0, sizeof(t));
	OK(hal_open("ref?clock=real", options, &t.dev));
	d.units_floor = 2;
	d.memory_bytes = FIT * BIG;
	d.limits = &(struct hal_partition_limits){
		.size = sizeof(struct hal_partition_limits),
		.memory_limit = (FIT + 2) * BIG};
	OK(hal_partition_create(t.dev, &d, &t.one));
	d.limits = NULL;
	OK(hal_partition_create(t.dev, &d, &t.other));
	t.q = add_queue(t.other, 0);
	t.held = *t.dev->table;
	t.alloc = t.held.cold.mem_alloc;
	t.free = t.held.cold.mem_free;
	t.held.cold.mem_alloc = held_alloc;
	t.held.cold.mem_free = held_free;
	t.create = t.held.cold.queue_create;
	t.destroy = t.held.cold.queue_destroy;
	t.held.cold.queue_create = held_create;
	t.held.cold.queue_destroy = counted_destroy;
	queues = 1; /* t.q */
	t.held.beside |= HAL_BK_BESIDE_MEMORY | HAL_BK_BESIDE_QUEUE;
	t.poll = t.dev->hot.poll;
	/* No other thread uses the device now. */
	t.dev->table = &t.held;
	t.dev->hot.poll = losing_poll;
	lose = false;
	to_hold = to_fail = 0;
	by_engine = 0;
	sem_init(&begun, 0, 0);
	sem_init(&go_on, 0, 0);
	(void)alarm(NEVER_MS / 1000);
	return 0;
}

static int close_tenants(void **state)
{
	(void)state;
	OK(hal_queue_destroy(t.q));
	OK(hal_partition_destroy(t.one));
	OK(hal_partition_destroy(t.other));
	OK(hal_close(t.dev));
	(void)alarm(0);
	sem_destroy(&begun);
	sem_destroy(&go_on);
	return 0;
}

static void wait_begun(void)
{
	while (sem_wait(&begun) != 0)
		;
}

static uint64_t used(struct hal_partition *part)
{
	struct hal_partition_info i = HAL_INIT(hal_partition_info);

	OK(hal_partition_get_info(part, &i));
	return i.memory_used;
}

/* A thread that creates or destroys a buffer. */
struct caller {
	pthread_t thread;
	struct hal_partition *part;
	struct hal_buffer *buf; /* destroyed if it is not NULL, else created */
	uint64_t bytes;
	int result;
	char why[256];
};

static void *make_call(void *arg)
{
	struct hal_buffer_desc d = HAL_INIT(hal_buffer_desc);
	struct caller *c = arg;

	d.bytes = c->bytes;
	c->result = c->buf != NULL ? hal_buffer_destroy(c->buf)
				   : hal_buffer_create(c->part, &d, &c->buf);
	snprintf(c->why, sizeof(c->why), "%s", hal_last_error());
	return NULL;
}

static void start(struct caller *c, struct hal_partition *part, struct hal_buffer *buf)
{
	*c = (struct caller){.part = part, .buf = buf, .bytes = BIG};
	assert_int_equal(pthread_create(&c->thread, NULL, make_call, c), 0);
}

static void finish(struct caller *c, int result)
{
	pthread_join(c->thread, NULL);
	if (c->result != result)
		fail_msg("the call returned %d, not %d: %s", c->result, result, c->why);
}

/* Use everything that needs the engine. */
static void neighbour_works(void)
{
	struct hal_stats s = HAL_INIT(hal_stats);
	struct hal_queue *q = add_queue(t.other, 0);

	works(t.q);
	works(q);
	OK(hal_device_get_stats(t.dev, &s));
	OK(hal_queue_destroy(q));
}

/* ---- the engine does not wait ------------------------------------------------------ */

/* The backend is inside mem_alloc or mem_free for one tenant; another one works. */
static void blocked_call_stops_no_neighbour(void **state)
{
	struct caller c;
	struct hal_buffer *buf;

	(void)state;
	to_hold = 1;
	start(&c, t.one, NULL);
	wait_begun();
	neighbour_works();
	sem_post(&go_on);
	finish(&c, 0);
	buf = c.buf;
	assert_int_equal(used(t.one), BIG);
	to_hold = 1;
	start(&c, NULL, buf);
	wait_begun();
	neighbour_works();
	assert_int_equal(used(t.one), BIG); /* not released before it is free */
	sem_post(&go_on);
	finish(&c, 0);
	assert_int_equal(used(t.one), 0);
	assert_int_equal(by_engine, 0);
}

static void *make_queue(void *arg)
{
	struct hal_queue_desc d = HAL_INIT(hal_queue_desc);
	struct hal_queue *q = NULL;
	struct caller *c = arg;

	c->result = hal_queue_create(c->part, &d, &q);
	snprintf(c->why, sizeof(c->why), "%s", hal_last_error());
	if (c->result == 0) {
		works(q);
		OK(hal_queue_destroy(q));
	}
	return NULL;
}

/* Start a thread that creates a queue, works on it and destroys it. */
static void start_queue(struct caller *c)
{
	*c = (struct caller){.part = t.one};
	assert_int_equal(pthread_create(&c->thread, NULL, make_queue, c), 0);
}

/* The backend is inside queue_create for one tenant; another one works. */
static void blocked_queue_stops_no_neighbour(void **state)
{
	struct hal_stats s = HAL_INIT(hal_stats);
	struct caller c;

	(void)state;
	to_hold = 1;
	start_queue(&c);
	wait_begun();
	works(t.q);
	OK(hal_device_get_stats(t.dev, &s));
	sem_post(&go_on);
	finish(&c, 0);
	assert_int_equal(by_engine, 0);
	assert_int_equal(queues, 1);
}

/* Two threads make queues at the same time. */
static void two_queues(void **state)
{
	struct caller a, b;

	(void)state;
	to_hold = 2;
	start_queue(&a);
	start_queue(&b);
	wait_begun();
	wait_begun(); /* both are in the backend */
	works(t.q);
	sem_post(&go_on);
	sem_post(&go_on);
	finish(&a, 0);
	finish(&b, 0);
	assert_int_equal(by_engine, 0);
	assert_int_equal(queues, 1);
}

/* The device is lost while a queue is made: the backend does not keep the queue. */
static void queue_of_a_lost_device(void **state)
{
	struct caller c;
	struct hal_point at;

	(void)state;
	to_hold = 1;
	start_queue(&c);
	wait_begun();
	lose = true;
	OK(submit_nop(t.q, &at));
	assert_int_equal(wait_ms(at, NEVER_MS), -EIO);
	sem_post(&go_on);
	finish(&c, -ENODEV);
	assert_int_equal(queues, 1);
}

/* Two threads are in the backend at the same time. */
static void two_threads(void **state)
{
	struct caller a, b;

	(void)state;
	to_hold = 2;
	start(&a, t.one, NULL);
	start(&b, t.other, NULL);
	wait_begun();
	wait_begun();
	neighbour_works();
	sem_post(&go_on);
	sem_post(&go_on);
	finish(&a, 0);
	finish(&b, 0);
	OK(hal_buffer_destroy(a.buf));
	OK(hal_buffer_destroy(b.buf));
	assert_int_equal(by_engine, 0);
}

/* Work that was submitted before the buffer was destroyed uses it: the engine frees it.
 */
static void buffer_in_use(void **state)
{
	struct hal_timeline *line;
	struct hal_buffer *buf = add_buffer(t.other, BIG);
	struct hal_submit_desc s = HAL_INIT(hal_submit_desc);
	struct hal_cmd cmd = hal_cmd_fill(buf, 0, BIG, 1);
	struct hal_point wait, done;

	(void)state;
	OK(hal_timeline_create(t.dev, &line));
	wait = (struct hal_point){line, 1};
	s.cmds = &cmd;
	s.cmd_count = 1;
	s.waits = &wait;
	s.wait_count = 1;
	OK(hal_submit(t.q, &s, &done));
	OK(hal_buffer_destroy(buf));
	assert_int_equal(used(t.other), BIG);
	OK(hal_timeline_signal(line, 1));
	OK(wait_ms(done, NEVER_MS));
	works(t.q);
	assert_int_equal(used(t.other), 0);
	assert_int_equal(by_engine, 1);
	OK(hal_timeline_destroy(line));
}

/* ---- quota ------------------------------------------------------------------------- */

/* Memory that is being allocated counts; a partition with such memory stays. */
static void charged_meanwhile(void **state)
{
	struct hal_buffer_desc d = HAL_INIT(hal_buffer_desc);
	struct hal_buffer *buf;
	struct caller c;

	(void)state;
	d.bytes = FIT * BIG;
	to_hold = 1;
	start(&c, t.other, NULL);
	wait_begun();
	assert_int_equal(used(t.other), BIG);
	FAILS(hal_buffer_create(t.other, &d, &buf), -ENOSPC, "quota", "65536 are left");
	FAILS(hal_partition_destroy(t.other), -EBUSY, "buffer");
	sem_post(&go_on);
	finish(&c, 0);
	FAILS(hal_buffer_create(t.other, &d, &buf), -ENOSPC, "quota");
	OK(hal_buffer_destroy(c.buf));
	OK(hal_buffer_create(t.other, &d, &buf));
	OK(hal_buffer_destroy(buf));
}

/* The quota is full of memory that is being allocated: the next one waits, then evicts
 * that buffer. */
static void waits_for_allocation(void **state)
{
	struct hal_partition_memory_info m = HAL_INIT(hal_partition_memory_info);
	struct hal_partition_info i = HAL_INIT(hal_partition_info);
	struct caller c[FIT], more;

	(void)state;
	to_hold = FIT;
	for (uint32_t k = 0; k < FIT; k++)
		start(&c[k], t.one, NULL);
	for (uint32_t k = 0; k < FIT; k++)
		wait_begun();
	start(&more, t.one, NULL);
	neighbour_works();
	for (uint32_t k = 0; k < FIT; k++)
		sem_post(&go_on);
	for (uint32_t k = 0; k < FIT; k++)
		finish(&c[k], 0);
	finish(&more, 0);
	OK(hal_partition_get_info(t.one, &i));
	OK(hal_partition_get_memory_info(t.one, &m));
	assert_int_equal(i.memory_used, FIT * BIG);
	assert_int_equal(m.evictions, 1);
	for (uint32_t k = 0; k < FIT; k++)
		OK(hal_buffer_destroy(c[k].buf));
	OK(hal_buffer_destroy(more.buf));
	assert_int_equal(used(t.one), 0);
}

/* The quota is full, and one buffer is being freed: the next one waits for its memory. */
static void waits_for_free(void **state)
{
	struct hal_partition_memory_info m = HAL_INIT(hal_partition_memory_info);
	struct hal_partition_info i = HAL_INIT(hal_partition_info);
	struct hal_buffer *buf[FIT];
	struct caller frees, adds;

	(void)state;
	for (uint32_t k = 0; k < FIT; k++)
		buf[k] = add_buffer(t.one, BIG);
	to_hold = 1;
	start(&frees, NULL, buf[0]);
	wait_begun();
	start(&adds, t.one, NULL);
	neighbour_works();
	sem_post(&go_on);
	finish(&frees, 0);
	finish(&adds, 0);
	OK(hal_partition_get_info(t.one, &i));
	OK(hal_partition_get_memory_info(t.one, &m));
	assert_int_equal(i.memory_used, FIT * BIG);
	assert_int_equal(m.evictions, 0);
	OK(hal_buffer_destroy(buf[1]));
	OK(hal_buffer_destroy(adds.buf));
}

/* ---- failures ---------------------------------------------------------------------- */

/* A failed allocation leaves nothing behind, and its text reaches the caller. */
static void failure_undone(void **state)
{
	struct hal_buffer_desc d = HAL_INIT(hal_buffer_desc);
	struct hal_buffer *buf;

	(void)state;
	d.bytes = FIT * BIG;
	to_fail = 1;
	fail_with = ENOSPC;
	FAILS(hal_buffer_create(t.other, &d, &buf), -ENOSPC, "the driver has no memory");
	assert_int_equal(used(t.other), 0);
	to_fail = 1;
	FAILS(hal_buffer_create(t.one, &d, &buf), -ENOSPC, "the driver has no memory",
	      "no buffer can be evicted");
	to_fail = 1;
	fail_with = EIO;
	FAILS(hal_buffer_create(t.one, &d, &buf), -EIO, "the driver has no memory");
	assert_int_equal(used(t.one), 0);
	OK(hal_buffer_create(t.one, &d, &buf));
	assert_int_equal(used(t.one), FIT * BIG);
	OK(hal_buffer_destroy(buf));
	assert_int_equal(by_engine, 0);
}

/* The driver has less memory than the quota: each attempt evicts one buffer. */
static void failure_evicts(void **state)
{
	struct hal_partition_memory_info m = HAL_INIT(hal_partition_memory_info);
	struct hal_partition_info i = HAL_INIT(hal_partition_info);
	struct hal_buffer_desc d = HAL_INIT(hal_buffer_desc);
	struct hal_buffer *first, *second, *third;

	(void)state;
	d.bytes = BIG / 2;
	OK(hal_buffer_create(t.one, &d, &first));
	OK(hal_buffer_create(t.one, &d, &second));
	to_fail = 2;
	fail_with = ENOSPC;
	OK(hal_buffer_create(t.one, &d, &third));
	OK(hal_partition_get_info(t.one, &i));
	OK(hal_partition_get_memory_info(t.one, &m));
	assert_int_equal(m.evictions, 2);
	assert_int_equal(i.memory_used, BIG / 2);
	OK(hal_buffer_destroy(first));
	OK(hal_buffer_destroy(second));
	OK(hal_buffer_destroy(third));
}

/* The device is lost while the backend allocates. */
static void lost_meanwhile(void **state)
{
	struct hal_point done;
	struct caller c;

	(void)state;
	to_hold = 1;
	start(&c, t.one, NULL);
	wait_begun();
	lose = true;
	OK(submit_nop(t.q, &done));
	assert_int_equal(wait_ms(done, NEVER_MS), -EIO);
	sem_post(&go_on);
	finish(&c, -ENODEV);
	assert_non_null(strstr(c.why, "lost"));
	assert_int_equal(used(t.one), 0);
	assert_int_equal(by_engine, 0);
}

/* ---- layers ------------------------------------------------------------------------ */

static void *recycled; /* freed, and to be returned by the next held_again */

static int held_recycle(void *dev, void *mem)
{
	(void)dev;
	recycled = mem;
	hold_call();
	return 0;
}

static int held_again(void *dev, void *part, uint64_t bytes,
		      const struct hal_bk_colors *colors, uint32_t flags, void **mem)
{
	if (recycled == NULL)
		return t.alloc(dev, part, bytes, colors, flags, mem);
	*mem = recycled;
	recycled = NULL;
	return 0;
}

/* On the engine's thread, which reads the table: put held_again and held_recycle below
 * the layers. */
static int hold_below(struct hal_device *dev, void *unused)
{
	struct layers *l = dev->bk;

	(void)unused;
	t.held = *l->real;
	t.alloc = t.held.cold.mem_alloc;
	t.free = t.held.cold.mem_free;
	t.held.cold.mem_alloc = held_again;
	t.held.cold.mem_free = held_recycle;
	l->real = &t.held;
	l->table.beside |= HAL_BK_BESIDE_MEMORY;
	return 0;
}

static int free_below(struct hal_device *dev, void *unused)
{
	(void)dev;
	(void)unused;
	t.held.cold.mem_free = t.free;
	return 0;
}

/* mem_alloc returns a handle that mem_free of another thread has just freed, before that
 * mem_free returns. */
static void handle_returned_at_once(void **state)
{
	static const char *const options[] = {"layers.validate=yes", NULL};
	struct hal_partition_desc d = HAL_INIT(hal_partition_desc);
	struct hal_buffer *buf;
	struct caller c;

	(void)state;
	memset(&t, 0, sizeof(t));
	OK(hal_open("ref?clock=real", options, &t.dev));
	d.units_floor = 2;
	OK(hal_partition_create(t.dev, &d, &t.one));
	OK(engine_call(t.dev, hold_below, NULL));
	sem_init(&begun, 0, 0);
	sem_init(&go_on, 0, 0);
	buf = add_buffer(t.one, BIG);
	to_hold = 1;
	start(&c, NULL, buf);
	wait_begun();
	buf = add_buffer(t.one, BIG);
	sem_post(&go_on);
	finish(&c, 0);
	OK(engine_call(t.dev, free_below, NULL));
	OK(hal_buffer_destroy(buf));
	OK(hal_partition_destroy(t.one));
	OK(hal_close(t.dev));
	sem_destroy(&begun);
	sem_destroy(&go_on);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, open_tenants, close_tenants)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(blocked_call_stops_no_neighbour),
		CASE(blocked_queue_stops_no_neighbour),
		CASE(two_queues),
		CASE(queue_of_a_lost_device),
		CASE(two_threads),
		CASE(buffer_in_use),
		CASE(charged_meanwhile),
		CASE(waits_for_allocation),
		CASE(waits_for_free),
		CASE(failure_undone),
		CASE(failure_evicts),
		CASE(lost_meanwhile),
		cmocka_unit_test(handle_returned_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

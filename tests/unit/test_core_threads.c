/* SPDX-License-Identifier: Apache-2.0 */
/* clock=real: threads beside each other, devices beside each other, threads that end. */
#if __has_include(<valgrind/memcheck.h>)
#include <valgrind/memcheck.h>
#else
#define VALGRIND_MAKE_MEM_UNDEFINED(p, n) ((void)0)
#define RUNNING_ON_VALGRIND               0
#endif

#include "ref_world.h"

#include <hal/ref.h>

#include <limits.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "command/lend.h"
#include "command/timeline.h"
#include "loop/device.h"
#include "tier.h"

enum {
	STACK = 2 << 20,
	POISON = 0xa5,
};

/* ---- a thread that submits and waits beside one that creates and destroys -------- */

struct neighbour {
	struct ref *r;
	struct hal_queue *busy; /* something is in it */
	atomic_bool stop;
	const char *bad;
};

static bool refused(int err, int expected, struct neighbour *n, const char *what)
{
	if (err != expected)
		n->bad = what;
	return err == expected;
}

/* What looks at the engine's state, or fails, may not take away another's wake-up. */
static void *come_and_go(void *arg)
{
	struct hal_queue_desc d = HAL_INIT(hal_queue_desc);
	struct hal_partition_desc huge = HAL_INIT(hal_partition_desc);
	struct neighbour *n = arg;
	struct hal_queue *q;

	huge.units_floor = 10000;
	while (!atomic_load(&n->stop) && n->bad == NULL) {
		if (hal_queue_create(n->r->part, &d, &q) != 0 ||
		    hal_queue_destroy(q) != 0)
			n->bad = "a queue comes and goes";
		else if (refused(hal_queue_suspend(n->r->q, HAL_SUSPEND_SAVE, NULL),
				 -ENOTSUP, n, "a suspend that the device cannot"))
			refused(hal_partition_resize(n->r->part, &huge, NULL), -ENOSPC, n,
				"a resize to more than there is");
		if (n->bad == NULL)
			refused(hal_queue_destroy(n->busy), -EBUSY, n,
				"destroying a queue with work in it");
	}
	return NULL;
}

static void no_wake_up_is_lost(void **state)
{
	struct hal_submit_desc d = HAL_INIT(hal_submit_desc);
	struct neighbour n = {0};
	struct hal_point held, p;
	struct hal_timeline *t;
	pthread_t thread;
	struct ref r;

	(void)state;
	ref_open(&r);
	n.r = &r;
	n.busy = add_queue(r.part, 0);
	OK(hal_timeline_create(r.dev, &t));
	held = (struct hal_point){t, 1};
	d.waits = &held;
	d.wait_count = 1;
	OK(hal_submit(n.busy, &d, &p));
	assert_int_equal(pthread_create(&thread, NULL, come_and_go, &n), 0);
	for (int i = 0; i < 5000; i++) {
		struct hal_point done;

		OK(submit_nop(r.q, &done));
		if (wait_ms(done, NEVER_MS) != 0)
			fail_msg("round %d: %s", i, hal_last_error());
	}
	atomic_store(&n.stop, true);
	pthread_join(thread, NULL);
	if (n.bad != NULL)
		fail_msg("%s: %s", n.bad, hal_last_error());
	OK(hal_timeline_signal(t, 1));
	OK(wait_ms(p, NEVER_MS));
	OK(hal_queue_destroy(n.busy));
	OK(hal_timeline_destroy(t));
	ref_close(&r);
}

/* ---- two devices ------------------------------------------------------------------- */

enum { CROSSINGS = 4000 };

/* Callbacks of one device signal a timeline of another. */
struct crossing {
	struct ref *from;
	struct hal_timeline *to;
	uint64_t next; /* the callbacks' */
	const char *bad;
};

static void cross(void *user)
{
	struct crossing *c = user;

	if (hal_timeline_signal(c->to, ++c->next) != 0)
		c->bad = "hal_timeline_signal";
}

static void *cross_often(void *arg)
{
	struct crossing *c = arg;

	for (uint64_t i = 1; i <= CROSSINGS && c->bad == NULL; i++) {
		struct hal_point p;
		int err;

		while ((err = submit_cmd(c->from->q, hal_cmd_host(cross, c), &p)) ==
		       -EAGAIN)
			sched_yield();
		if (err != 0)
			c->bad = "hal_submit";
		else if ((i % 8 == 0 || i == CROSSINGS) &&
			 wait_ms((struct hal_point){c->to, i}, NEVER_MS) != 0)
			c->bad = "what was signalled did not come";
		else if (i == CROSSINGS && wait_ms(p, NEVER_MS) != 0)
			c->bad = "the last callback did not end";
	}
	return NULL;
}

static void devices_signal_each_other(void **state)
{
	struct crossing c[2];
	pthread_t thread[2];
	struct ref r[2];

	(void)state;
	for (int i = 0; i < 2; i++)
		ref_open(&r[i]);
	for (int i = 0; i < 2; i++) {
		memset(&c[i], 0, sizeof(c[i]));
		c[i].from = &r[i];
		OK(hal_timeline_create(r[1 - i].dev, &c[i].to));
	}
	for (int i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, cross_often, &c[i]), 0);
	for (int i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
	for (int i = 0; i < 2; i++) {
		if (c[i].bad != NULL)
			fail_msg("device %d: %s", i, c[i].bad);
		OK(hal_timeline_destroy(c[i].to));
	}
	for (int i = 0; i < 2; i++)
		ref_close(&r[i]);
}

/* Whoever has waited for a point may destroy its timeline, though the call that signals
 * has not returned yet. */
struct handed {
	_Atomic(struct hal_timeline *) next;
	atomic_bool stop, bad;
};

static void *signal_once(void *arg)
{
	struct handed *h = arg;
	struct hal_timeline *t;

	while (!atomic_load(&h->stop)) {
		t = atomic_exchange(&h->next, NULL);
		if (t == NULL)
			sched_yield();
		else if (hal_timeline_signal(t, 1) != 0)
			atomic_store(&h->bad, true);
	}
	return NULL;
}

static void destroyed_when_reached(void **state)
{
	struct handed h = {0};
	pthread_t thread;
	struct ref r;

	(void)state;
	ref_open(&r);
	assert_int_equal(pthread_create(&thread, NULL, signal_once, &h), 0);
	for (int i = 0; i < 3000; i++) {
		struct hal_timeline *t;

		OK(hal_timeline_create(r.dev, &t));
		atomic_store(&h.next, t);
		OK(wait_ms((struct hal_point){t, 1}, NEVER_MS));
		OK(hal_timeline_destroy(t));
	}
	atomic_store(&h.stop, true);
	pthread_join(thread, NULL);
	assert_false(atomic_load(&h.bad));
	ref_close(&r);
}

/* Who destroys a timeline at the moment when another thread begins to wait for it is
 * answered -EBUSY, or that one -EINVAL. */
static void *wait_there(void *arg)
{
	struct handed *h = arg;
	struct hal_timeline *t;
	unsigned int delay = 0;
	int err;

	while (!atomic_load(&h->stop)) {
		t = atomic_load(&h->next);
		if (t == NULL)
			continue;
		delay = (delay + 4099) % 131072;
		for (unsigned int k = 0; k < delay; k++)
			atomic_signal_fence(memory_order_seq_cst);
		err = wait_ms((struct hal_point){t, 1}, NEVER_MS);
		if (err != 0 && err != -EINVAL)
			atomic_store(&h->bad, true);
		atomic_store(&h->next, NULL);
	}
	return NULL;
}

static void destroyed_when_waited_for(void **state)
{
	unsigned int gone = 0, kept = 0;
	struct handed h = {0};
	pthread_t thread;
	struct ref r;

	(void)state;
	ref_open(&r);
	assert_int_equal(pthread_create(&thread, NULL, wait_there, &h), 0);
	for (int i = 0; i < (tier_full ? 20000 : 1000); i++) {
		struct hal_timeline *t;
		int err;

		OK(hal_timeline_create(r.dev, &t));
		atomic_store(&h.next, t);
		err = hal_timeline_destroy(t);
		if (err != 0) {
			assert_int_equal(err, -EBUSY);
			OK(hal_timeline_signal(t, 1));
		}
		while (atomic_load(&h.next) != NULL)
			sched_yield();
		if (err != 0)
			OK(hal_timeline_destroy(t));
		*(err == 0 ? &gone : &kept) += 1;
	}
	atomic_store(&h.stop, true);
	pthread_join(thread, NULL);
	assert_false(atomic_load(&h.bad));
	print_message("%u gone before, %u not\n", gone, kept);
	ref_close(&r);
}

/* ---- statistics -------------------------------------------------------------------- */

enum { READERS = 4, ROUNDS = 1000 };

struct reader {
	struct hal_device *dev;
	atomic_bool *stop;
};

static void *read_stats(void *arg)
{
	struct hal_stats s = HAL_INIT(hal_stats);
	const struct reader *k = arg;

	while (!atomic_load(k->stop))
		if (hal_device_get_stats(k->dev, &s) != 0)
			return NULL;
	return arg;
}

/* Threads that only read are in the way of no work, however many there are: not while
 * they come and go, and not while one of them is in the midst of it. */
static void readers_starve_nobody(void **state)
{
	atomic_bool stop = false;
	pthread_t thread[READERS];
	struct reader k;
	struct ref r;

	(void)state;
	ref_open_with(&r, "ref?clock=real", NULL);
	k = (struct reader){r.dev, &stop};
	for (int i = 0; i < READERS; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, read_stats, &k), 0);
	for (int i = 0; i < ROUNDS; i++)
		works(r.q);
	atomic_store(&stop, true);
	for (int i = 0; i < READERS; i++) {
		void *good;

		pthread_join(thread[i], &good);
		assert_ptr_equal(good, &k);
	}
	assert_int_equal(pthread_rwlock_rdlock(&r.dev->shape), 0);
	for (int i = 0; i < ROUNDS; i++)
		works(r.q);
	assert_int_equal(pthread_rwlock_unlock(&r.dev->shape), 0);
	ref_close(&r);
}

static void *come_and_go_once(void *arg)
{
	struct ref *r = arg;
	struct hal_queue_desc d = HAL_INIT(hal_queue_desc);
	struct hal_queue *q;

	if (hal_queue_create(r->part, &d, &q) != 0 || hal_queue_destroy(q) != 0)
		return NULL;
	return r;
}

/* Who would change the lists waits for readers that are there, and those that come after
 * wait for him: however many there are, without a break, they keep no queue out. */
static void readers_keep_nobody_out(void **state)
{
	int64_t until = in_ms(NEVER_MS);
	pthread_t thread;
	struct ref r;
	void *good;
	int err;

	(void)state;
	ref_open(&r);
	assert_int_equal(pthread_rwlock_rdlock(&r.dev->shape), 0);
	assert_int_equal(pthread_create(&thread, NULL, come_and_go_once, &r), 0);
	while ((err = pthread_rwlock_tryrdlock(&r.dev->shape)) == 0 && now_ns() < until) {
		assert_int_equal(pthread_rwlock_unlock(&r.dev->shape), 0);
		sched_yield();
	}
	if (err == 0)
		assert_int_equal(pthread_rwlock_unlock(&r.dev->shape), 0);
	assert_int_equal(pthread_rwlock_unlock(&r.dev->shape), 0);
	pthread_join(thread, &good);
	assert_int_equal(err, EBUSY);
	assert_ptr_equal(good, &r);
	ref_close(&r);
}

/* ---- sleeping, and not ------------------------------------------------------------- */

/* Who wakes an engine says when. */
static void woken_at_a_time(void **state)
{
	static const char *const options[] = {"hal.caller_turns=no", NULL};
	uint64_t before;
	struct ref r;

	(void)state;
	ref_open_with(&r, "ref?clock=real", options);
	for (int i = 0; i < 10; i++) {
		while (atomic_load(&r.dev->inbox.sleeping) == 0)
			sched_yield();
		before = (uint64_t)now_ns();
		works(r.q);
		assert_in_range(atomic_load(&r.dev->woken_ns), before,
				(uint64_t)now_ns());
	}
	ref_close(&r);
}

/* Wait until the engine's thread sleeps, and let this one take its turns whatever became
 * of its waits.  Return how often callers have been the engine. */
static unsigned int turns_when_asleep(struct ref *r)
{
	lend_wasted = false;
	while (atomic_load(&r->dev->inbox.sleeping) != ENGINE_ASLEEP)
		sched_yield();
	return atomic_load(&r->dev->lent.count);
}

/* A command goes through the queue, and this thread does not sleep. */
static void works_looking(struct hal_queue *q)
{
	struct hal_point p;

	OK(submit_nop(q, &p));
	while (hal_timeline_get_value(p.timeline, NULL) < p.value)
		;
}

/* Submissions that keep the engine's thread awake wake it, too. */
static void often_wakes_the_engine(void **state)
{
	static const char *const options[] = {"hal.spin_us=100000", NULL};
	unsigned int before;
	struct ref r;

	(void)state;
	ref_open_with(&r, "ref?clock=real", options);
	before = turns_when_asleep(&r);
	for (int i = 0; i < 10000; i++)
		works_looking(r.q);
	assert_in_range(atomic_load(&r.dev->lent.count) - before, 1, 4 * LENT_OFTEN);
	ref_close(&r);
}

/* Those with pauses between them are served by callers, and do not. */
static void pauses_wake_nobody(void **state)
{
	static const char *const options[] = {"hal.spin_us=1", NULL};
	enum { TIMES = 500 };
	unsigned int before, woken = 0;
	struct ref r;

	(void)state;
	ref_open_with(&r, "ref?clock=real", options);
	before = turns_when_asleep(&r);
	for (int i = 0; i < TIMES; i++) {
		int64_t until = now_ns() + 20000;
		uint64_t woken_ns = atomic_load(&r.dev->woken_ns);

		while (now_ns() < until)
			;
		works_looking(r.q);
		woken += atomic_load(&r.dev->woken_ns) != woken_ns;
	}
	assert_true(atomic_load(&r.dev->lent.count) - before >= TIMES / 2);
	/* The thread ends naps, and may fall asleep just as it gets a message. */
	assert_true(woken < TIMES / LENT_OFTEN / 2);
	ref_close(&r);
}

#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
static int may_run_on(void)
{
	cpu_set_t cpus;

	return sched_getaffinity(0, sizeof(cpus), &cpus) == 0 ? CPU_COUNT(&cpus) : 0;
}

static long sleeps(void)
{
	struct rusage u;

	assert_int_equal(getrusage(RUSAGE_SELF, &u), 0);
	return u.ru_nvcsw;
}

/* Of processors, until a machine that had other things to do has had its fair chance. */
enum { FAIR_CPU_MS = 1000 };

/* The time of processors that this process has had. */
static int64_t cpu_ms(void)
{
	struct timespec t;

	assert_int_equal(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t), 0);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* Not more threads want to run than there are processors. */
static bool is_quiet(long cpus)
{
	FILE *f = fopen("/proc/loadavg", "re");
	long running = 0;
	bool known;

	if (f == NULL)
		return false;
	known = fscanf(f, "%*f %*f %*f %ld/", &running) == 1;
	(void)fclose(f);
	return known && running <= cpus;
}
#endif

/*
 * One at a time, however long a wake-up takes: both find out that they need not sleep.  A
 * sanitizer makes the work longer than two wake-ups take, by which they would rightly
 * sleep; and where other programs take the processors all the time nothing can be told.
 */
static void one_at_a_time_stays_awake(void **state)
{
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
	(void)state;
	skip();
#else
	long cpus = sysconf(_SC_NPROCESSORS_ONLN), least = LONG_MAX;
	int64_t until = cpu_ms() + FAIR_CPU_MS;
	uint32_t times = 0, quiet = 0;
	struct ref r;

	(void)state;
	if (RUNNING_ON_VALGRIND || may_run_on() < 2)
		skip();
	ref_open_with(&r, "ref?clock=real", NULL);
	for (; least > 100 && cpu_ms() < until; times++) {
		long before = sleeps(), slept;
		bool was_quiet = is_quiet(cpus);

		for (int i = 0; i < 1000; i++)
			works(r.q);
		quiet += was_quiet && is_quiet(cpus);
		slept = sleeps() - before;
		least = slept < least ? slept : least;
	}
	ref_close(&r);
	if (least > 100 && quiet < times / 10 * 9)
		skip();
	if (least > 100)
		fail_msg("1000 commands, one at a time: at least %ld sleeps, of %u times",
			 least, times);
#endif
}

/* ---- cancelled --------------------------------------------------------------------- */

struct victim {
	struct hal_point points[10];
	uint32_t count;
	int64_t deadline;
	atomic_bool begun;
	unsigned int at_once; /* it has been cancelled before it waits */
	int (*call)(void *arg);
	void *arg;
};

static void *wait_and_die(void *arg)
{
	struct victim *v = arg;

	if (v->at_once)
		(void)pthread_cancel(pthread_self());
	atomic_store(&v->begun, true);
	(void)hal_wait(v->points, v->count, 0, v->deadline);
	return NULL;
}

/* Runs fn on a stack that is gone afterwards but for its bytes, which are wrong then. */
static void on_poisoned_stack(void *(*fn)(void *), struct victim *v, unsigned int delay,
			      bool cancel, bool cancelled)
{
	void *stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pthread_attr_t attr;
	pthread_t thread;
	void *result;

	assert_ptr_not_equal(stack, MAP_FAILED);
	pthread_attr_init(&attr);
	pthread_attr_setstack(&attr, stack, STACK);
	atomic_store(&v->begun, false);
	assert_int_equal(pthread_create(&thread, &attr, fn, v), 0);
	while (!atomic_load(&v->begun))
		sched_yield();
	spin(delay);
	if (cancel)
		(void)pthread_cancel(thread);
	pthread_join(thread, &result);
	if (cancelled)
		assert_ptr_equal(result, PTHREAD_CANCELED);
	(void)VALGRIND_MAKE_MEM_UNDEFINED(stack, STACK);
	memset(stack, POISON, STACK);
	pthread_attr_destroy(&attr);
	/* A sanitizer keeps what it knows of a stack that it has not seen go. */
	munmap(stack, STACK);
}

static void cancelled_while_waiting(void **state)
{
	struct hal_timeline *t[10];
	struct victim v = {0};
	struct ref r;

	(void)state;
#ifdef __SANITIZE_THREAD__
	skip(); /* it sees nothing that a thread does after it was cancelled inside libc
		 */
#endif
	ref_open(&r);
	for (uint64_t k = 0; k < 10; k++)
		OK(hal_timeline_create(r.dev, &t[k]));
	for (unsigned int i = 0; i < (tier_full ? 300 : 60); i++) {
		v.count = i % 3 == 0 ? 10 : 1 + i % 3;
		v.deadline = i % 2 == 0 ? HAL_FOREVER : in_ms(NEVER_MS);
		v.at_once = i % 5 == 0;
		for (uint32_t k = 0; k < v.count; k++)
			v.points[k] = (struct hal_point){t[k], i + 1};
		on_poisoned_stack(wait_and_die, &v, i * 100, true, true);
		for (uint32_t k = 0; k < 10; k++)
			OK(hal_timeline_signal(t[k], i + 1));
		works(r.q);
	}
	/* Nobody is counted as waiting any more. */
	for (uint32_t k = 0; k < 10; k++)
		OK(hal_timeline_destroy(t[k]));
	ref_close(&r);
}

/* clock=virtual: one thread is in a callback, another would lend itself. */
struct gate {
	atomic_bool reached, open;
};

static void pass_gate(void *user)
{
	struct gate *g = user;

	atomic_store(&g->reached, true);
	while (!atomic_load(&g->open))
		sched_yield();
}

static void *wait_for(void *arg)
{
	struct hal_point *p = arg;

	return hal_wait(p, 1, 0, HAL_FOREVER) == 0 ? arg : NULL;
}

static void *read_one(void *arg)
{
	struct hal_completion c;

	return hal_completions_read(arg, &c, 1, HAL_FOREVER) == 1 ? arg : NULL;
}

/* Who has nothing to do until another thread's callback returns sleeps. */
static void sleeps_beside_callback(void **state)
{
	static const char *const none[] = {NULL};
	struct hal_queue_desc d = HAL_INIT(hal_queue_desc);
	struct hal_point called, end;
	struct hal_completions *ring;
	pthread_t engine, other;
	struct hal_queue *q;
	struct ref r;
	void *good;

	(void)state;
	ref_open_with(&r, "ref?clock=virtual", none);
	OK(hal_completions_create(r.dev, 8, &ring));
	d.completions = ring;
	OK(hal_queue_create(r.part, &d, &q));
	for (int i = 0; i < 2; i++) {
		int64_t until = in_ms(NEVER_MS);
		struct gate g = {false, false};

		OK(submit_cmd(r.q, hal_cmd_host(pass_gate, &g), &called));
		end = (struct hal_point){hal_queue_get_timeline(q), (uint64_t)i + 1};
		assert_int_equal(pthread_create(&engine, NULL, wait_for, &called), 0);
		while (!atomic_load(&g.reached))
			sched_yield();
		assert_int_equal(pthread_create(&other, NULL, i ? read_one : wait_for,
						i ? (void *)ring : &end),
				 0);
		while (atomic_load(&r.dev->lock_waiters) == 0) {
			if (now_ns() > until)
				fail_msg("%s does not sleep",
					 i ? "hal_completions_read" : "hal_wait");
			sched_yield();
		}
		OK(submit_nop(q, NULL));
		atomic_store(&g.open, true);
		pthread_join(engine, &good);
		assert_ptr_equal(good, &called);
		pthread_join(other, &good);
		assert_non_null(good);
		if (i == 0)
			assert_ptr_equal(read_one(ring), ring);
	}
	OK(hal_queue_destroy(q));
	OK(hal_completions_destroy(ring));
	ref_close(&r);
}

static void cancelled_while_lending(void **state)
{
	struct hal_point called;
	struct hal_timeline *t;
	struct victim v = {0};
	struct hal_queue *q;
	struct ref r;

	(void)state;
#ifdef __SANITIZE_ADDRESS__
	/* A cancelled thread leaves the redzones of the frames that it has left, and the
	 * sanitizer's own frame may come to lie there. */
	skip();
#endif
	ref_open_with(&r, "ref?clock=virtual", NULL);
	OK(hal_timeline_create(r.dev, &t));
	q = add_queue(r.part, 0);
	for (unsigned int i = 0; i < (tier_full ? 100 : 20); i++) {
		struct gate g = {false, false};
		pthread_t engine;
		void *good;

		OK(submit_cmd(q, hal_cmd_host(pass_gate, &g), &called));
		assert_int_equal(pthread_create(&engine, NULL, wait_for, &called), 0);
		while (!atomic_load(&g.reached))
			sched_yield();
		v.count = 1 + i % 2;
		v.deadline = HAL_FOREVER;
		v.at_once = i % 5 == 0;
		v.points[0] = (struct hal_point){t, i + 1};
		v.points[1] = (struct hal_point){t, i + 1};
		on_poisoned_stack(wait_and_die, &v, i * 100, true, true);
		atomic_store(&g.open, true);
		pthread_join(engine, &good);
		assert_ptr_equal(good, &called);
		OK(hal_timeline_signal(t, i + 1));
		works(r.q);
	}
	OK(hal_timeline_destroy(t));
	OK(hal_queue_destroy(q));
	ref_close(&r);
}

/* hal_wait is a cancellation point, nothing else is: the rest does what it does. */
static void *call_and_die(void *arg)
{
	struct victim *v = arg;

	(void)pthread_cancel(pthread_self());
	atomic_store(&v->begun, true);
	v->at_once = (unsigned int)v->call(v->arg);
	pthread_testcancel();
	return NULL;
}

static int call_submit(void *arg)
{
	struct ref *r = arg;

	return submit_nop(r->q, NULL);
}

static int call_queue(void *arg)
{
	struct hal_queue_desc d = HAL_INIT(hal_queue_desc);
	struct ref *r = arg;
	struct hal_queue *q;
	int err = hal_queue_create(r->part, &d, &q);

	return err != 0 ? err : hal_queue_destroy(q);
}

static int call_timeline(void *arg)
{
	struct ref *r = arg;
	struct hal_timeline *t;
	int err = hal_timeline_create(r->dev, &t);

	if (err == 0)
		err = hal_timeline_signal(t, 1);
	return err != 0 ? err : hal_timeline_destroy(t);
}

static int call_buffer(void *arg)
{
	struct hal_buffer_desc d = HAL_INIT(hal_buffer_desc);
	struct ref *r = arg;
	struct hal_buffer *b;
	uint32_t word = 1;
	int err;

	d.bytes = 64;
	err = hal_buffer_create(r->part, &d, &b);
	if (err == 0)
		err = hal_buffer_write(b, 0, &word, sizeof(word));
	if (err == 0)
		err = hal_buffer_read(b, 0, &word, sizeof(word));
	return err != 0 ? err : hal_buffer_destroy(b);
}

static int call_suspend(void *arg)
{
	struct ref *r = arg;
	int err = hal_queue_suspend(r->q, HAL_SUSPEND_DRAIN, NULL);

	return err != 0 ? err : hal_queue_resume(r->q);
}

static int call_trace(void *arg)
{
	struct ref *r = arg;
	int err = hal_trace_start(r->dev, "/dev/null");

	if (err == 0)
		err = submit_nop(r->q, NULL);
	return err != 0 ? err : hal_trace_stop(r->dev);
}

static int call_policy(void *arg)
{
	struct ref *r = arg;

	return hal_device_set_policy(r->dev, "priority", NULL);
}

static int call_point_fd(void *arg)
{
	struct ref *r = arg;
	const struct hal_point p = {hal_queue_get_timeline(r->q), 0};
	int fd = hal_point_open_fd(&p), old;

	(void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old);
	if (fd >= 0)
		close(fd);
	(void)pthread_setcancelstate(old, NULL);
	return fd < 0 ? fd : 0;
}

static int call_completions(void *arg)
{
	struct hal_completion c;
	struct hal_completions *ring;
	struct ref *r = arg;
	int err = hal_completions_create(r->dev, 8, &ring);

	if (err == 0 && hal_completions_read(ring, &c, 1, 1) != -ETIMEDOUT &&
	    hal_completions_read(ring, &c, 1, 0) != 0)
		err = -EINVAL;
	return err != 0 ? err : hal_completions_destroy(ring);
}

static int call_open(void *arg)
{
	const char *const options[] = {"hal.spin_us=0", NULL};
	struct hal_device *dev;
	int err = hal_open("ref?clock=real", options, &dev);

	(void)arg;
	return err != 0 ? err : hal_close(dev);
}

static int call_poll(void *arg)
{
	struct ref *r = arg;
	int n = hal_device_poll(r->dev, 0);

	return n < 0 ? n : 0;
}

static void nothing_else_is_cancelled(void **state)
{
	static const struct {
		const char *name;
		int (*call)(void *arg);
	} calls[] = {
		{"submit", call_submit},
		{"queue", call_queue},
		{"timeline", call_timeline},
		{"buffer", call_buffer},
		{"suspend", call_suspend},
		{"trace", call_trace},
		{"policy", call_policy},
		{"point fd", call_point_fd},
		{"completions", call_completions},
		{"open", call_open},
		{"poll", call_poll},
	};
	static const char *const targets[] = {"ref?clock=real", "ref?clock=virtual"};
	static const char *const options[] = {"hal.spin_us=0", NULL};

	(void)state;
	for (size_t k = 0; k < 2; k++) {
		struct ref r;

		ref_open_with(&r, targets[k], options);
		for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]) * 3; i++) {
			struct victim v = {0};
			size_t n = i % (sizeof(calls) / sizeof(calls[0]));

			v.at_once = 12345; /* no errno */
			v.call = calls[n].call;
			v.arg = &r;
			works(r.q);
			on_poisoned_stack(call_and_die, &v, 0, false, true);
			if (v.at_once != 0)
				fail_msg("%s: %s", calls[n].name,
					 v.at_once == 12345 ? "cancelled inside"
							    : "an error");
		}
		works(r.q);
		ref_close(&r);
	}
}

/* ---- destroyed while somebody waits ---------------------------------------------- */

static void wait_begins(struct hal_timeline *t)
{
	while (atomic_load(&t->threads) == 0)
		sched_yield();
}

static void waited_for(void **state)
{
	struct hal_partition_desc d = HAL_INIT(hal_partition_desc);
	struct hal_point p, moved;
	struct hal_timeline *t;
	pthread_t thread;
	struct ref r;
	void *good;

	(void)state;
	ref_open(&r);
	OK(hal_timeline_create(r.dev, &t));
	p = (struct hal_point){t, 1};
	assert_int_equal(pthread_create(&thread, NULL, wait_for, &p), 0);
	wait_begins(t);
	FAILS(hal_timeline_destroy(t), -EBUSY, "thread");
	FAILS(hal_timeline_destroy(t), -EBUSY, "thread");
	OK(hal_timeline_signal(t, 1));
	pthread_join(thread, &good);
	assert_ptr_equal(good, &p);
	OK(hal_timeline_destroy(t));

	/* A queue's own: what comes next. */
	p = (struct hal_point){hal_queue_get_timeline(r.q), 1};
	assert_int_equal(pthread_create(&thread, NULL, wait_for, &p), 0);
	wait_begins(p.timeline);
	FAILS(hal_queue_destroy(r.q), -EBUSY, "thread");
	works(r.q);
	pthread_join(thread, &good);
	assert_ptr_equal(good, &p);

	/* Its suspends. */
	OK(hal_queue_suspend(r.q, HAL_SUSPEND_DRAIN, &p));
	OK(wait_ms(p, NEVER_MS));
	OK(hal_queue_resume(r.q));
	p.value++;
	assert_int_equal(pthread_create(&thread, NULL, wait_for, &p), 0);
	wait_begins(p.timeline);
	FAILS(hal_queue_destroy(r.q), -EBUSY, "thread");
	OK(hal_queue_suspend(r.q, HAL_SUSPEND_DRAIN, NULL));
	pthread_join(thread, &good);
	assert_ptr_equal(good, &p);
	OK(hal_queue_destroy(r.q));

	/* A partition's moves. */
	d.units_floor = 3;
	OK(hal_partition_resize(r.part, &d, &moved));
	OK(wait_ms(moved, NEVER_MS));
	moved.value++;
	assert_int_equal(pthread_create(&thread, NULL, wait_for, &moved), 0);
	wait_begins(moved.timeline);
	FAILS(hal_partition_destroy(r.part), -EBUSY, "thread");
	d.units_floor = 2;
	OK(hal_partition_resize(r.part, &d, NULL));
	pthread_join(thread, &good);
	assert_ptr_equal(good, &moved);
	OK(hal_partition_destroy(r.part));
	OK(hal_close(r.dev));
}

/* Each of several points is waited for during all of the call, whatever is waited for
 * first, and however: a callback in the middle of it, by which the first queue ends, may
 * destroy none of their timelines. */

struct several {
	struct hal_timeline *line;
	struct hal_queue *idle;
	bool real; /* the wait may not have begun */
	int line_err, idle_err;
};

static void destroy_all(void *user)
{
	struct several *s = user;

	if (s->real) {
		wait_begins(s->line);
		wait_begins(hal_queue_get_timeline(s->idle));
	}
	s->line_err = hal_timeline_destroy(s->line);
	s->idle_err = hal_queue_destroy(s->idle);
	/* What the wait needs to end. */
	if (s->line_err != 0)
		(void)hal_timeline_signal(s->line, 1);
	if (s->idle_err != 0)
		(void)submit_nop(s->idle, NULL);
}

static void several_once(const char *target, const int *order, uint32_t flags,
			 int64_t deadline)
{
	static const char *const options[] = {"hal.spin_us=0", NULL};
	struct hal_point all[3], points[3];
	struct several s = {.real = strstr(target, "real") != NULL};
	struct ref r;
	int got;

	ref_open_with(&r, target, options);
	s.idle = add_queue(r.part, 0);
	OK(hal_timeline_create(r.dev, &s.line));
	OK(submit_cmd(r.q, hal_cmd_host(destroy_all, &s), &all[0]));
	all[1] = (struct hal_point){s.line, 1};
	all[2] = (struct hal_point){hal_queue_get_timeline(s.idle), 1};
	for (int i = 0; i < 3; i++)
		points[i] = all[order[i]];
	got = hal_wait(points, 3, flags, deadline);
	if (got < 0 || ((flags & HAL_WAIT_ANY) == 0 && got != 0))
		fail_msg("%s, flags %u: %d %s", target, flags, got, hal_last_error());
	/* Of any, one may be enough while the callback is still at it. */
	OK(hal_wait(all, 1, 0, HAL_FOREVER));
	assert_int_equal(s.line_err, -EBUSY);
	assert_int_equal(s.idle_err, -EBUSY);
	for (int i = 0; i < 3; i++)
		assert_int_equal(atomic_load(&all[i].timeline->threads), 0);
	OK(hal_wait(&all[2], 1, 0, HAL_FOREVER));
	OK(hal_timeline_destroy(s.line));
	OK(hal_queue_destroy(s.idle));
	ref_close(&r);
}

static void several_waited_for(void **state)
{
	static const int orders[][3] = {{0, 1, 2}, {1, 0, 2}, {2, 1, 0}, {1, 2, 0}};
	static const char *const targets[] = {"ref?clock=virtual", "ref?clock=real"};

	(void)state;
	for (size_t t = 0; t < 2; t++) {
		for (size_t i = 0; i < 4; i++) {
			several_once(targets[t], orders[i], 0, HAL_FOREVER);
			several_once(targets[t], orders[i], 0, in_ms(NEVER_MS));
			several_once(targets[t], orders[i], HAL_WAIT_ANY, HAL_FOREVER);
			several_once(targets[t], orders[i], HAL_WAIT_ANY,
				     in_ms(NEVER_MS));
			several_once(targets[t], orders[i], HAL_WAIT_DEVICE_TIME,
				     (int64_t)NEVER_MS * 1000000);
		}
	}
}

/* A wait that ends otherwise leaves nobody waiting. */
static void several_not_reached(void **state)
{
	static const char *const none[] = {NULL};
	struct hal_timeline *line[3];
	struct hal_point points[3];
	struct ref r[2];

	(void)state;
	for (int i = 0; i < 2; i++)
		ref_open_with(&r[i], "ref?clock=virtual", none);
	for (int i = 0; i < 3; i++) {
		OK(hal_timeline_create(r[i / 2].dev, &line[i]));
		points[i] = (struct hal_point){line[i], 1};
	}
	FAILS(hal_wait(points, 2, 0, HAL_FOREVER), -EDEADLK, "no work is left");
	FAILS(hal_wait(points, 3, 0, HAL_FOREVER), -EDEADLK, "no work is left");
	FAILS(hal_wait(points, 3, HAL_WAIT_ANY, HAL_FOREVER), -EDEADLK, "no work");
	FAILS(hal_wait(points, 3, 0, in_ms(0)), -ETIMEDOUT, "time is up");
	OK(hal_timeline_destroy(line[1]));
	FAILS(hal_wait(points, 2, 0, HAL_FOREVER), -EINVAL, "destroyed");
	OK(hal_timeline_destroy(line[0]));
	OK(hal_timeline_destroy(line[2]));
	for (int i = 0; i < 2; i++)
		ref_close(&r[i]);
}

/* ---- moves beside queues that come and go ---------------------------------------- */

struct mover {
	struct world *w;
	struct hal_partition *part;
	atomic_bool stop;
	uint32_t moves;
	const char *bad;
};

static void *move_often(void *arg)
{
	struct hal_partition_desc d = HAL_INIT(hal_partition_desc);
	struct mover *m = arg;
	struct hal_point p;

	while (!atomic_load(&m->stop)) {
		d.units_floor = 1 + m->moves % 4;
		if (hal_partition_resize(m->part, &d, &p) != 0 ||
		    wait_ms(p, NEVER_MS) != 0) {
			m->bad = "a move";
			break;
		}
		m->moves++;
	}
	return NULL;
}

static void resize_beside_queues(void **state)
{
	struct hal_partition_info info = HAL_INIT(hal_partition_info);
	struct mover m = {0};
	pthread_t thread;
	struct ref r;

	(void)state;
	ref_open(&r);
	m.part = r.part;
	assert_int_equal(pthread_create(&thread, NULL, move_often, &m), 0);
	for (int i = 0; i < 2000 && m.bad == NULL; i++) {
		struct hal_queue *q = add_queue(r.part, i % 3);

		works(q);
		OK(hal_partition_get_info(r.part, &info));
		assert_in_range(info.units, 1, 4);
		OK(hal_queue_destroy(q));
	}
	atomic_store(&m.stop, true);
	pthread_join(thread, NULL);
	assert_null(m.bad);
	assert_true(m.moves > 0);
	ref_close(&r);
}

/* ---- lost beside others ---------------------------------------------------------- */

/* Queues come and go until the device is lost; nobody waits for what never comes. */
static void *until_lost(void *arg)
{
	struct hal_queue_desc d = HAL_INIT(hal_queue_desc);
	struct hal_partition_desc pd = HAL_INIT(hal_partition_desc);
	struct mover *m = arg;

	pd.units_floor = 1;
	for (;;) {
		struct hal_queue *q;
		struct hal_point p = {NULL, 0};
		int err = hal_queue_create(m->part, &d, &q);

		if (err == -ENODEV)
			return arg;
		if (err != 0)
			break;
		if (m->moves++ % 2 == 0)
			err = hal_queue_suspend(q, HAL_SUSPEND_DRAIN, &p);
		else if (m->moves % 4 == 0)
			err = hal_partition_resize(m->part, &pd, &p);
		else
			err = submit_nop(q, &p);
		if (err == 0)
			err = wait_ms(p, NEVER_MS);
		if (err != 0 && err != -ENODEV && err != -EIO)
			break;
		if (hal_queue_destroy(q) != 0)
			break;
	}
	m->bad = hal_last_error();
	return NULL;
}

static void *serve(void *arg)
{
	struct mover *m = arg;
	struct world *w = m->w;

	while (!atomic_load(&m->stop)) {
		w->mock->complete(w->native, 4, 1);
		w->mock->quiet(w->native, 0);
		sched_yield();
	}
	return NULL;
}

static void lost_beside_others(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < 100; i++) {
		struct mover m = {0};
		struct hal_point p;
		struct hal_queue *q;
		pthread_t thread, device;
		struct world w;
		void *good;

		world_open(&w, "mock?clock=real");
		world_fill(&w);
		q = add_queue(w.part, 0);
		m.w = &w;
		m.part = w.part;
		assert_int_equal(pthread_create(&device, NULL, serve, &m), 0);
		assert_int_equal(pthread_create(&thread, NULL, until_lost, &m), 0);
		spin(i * 2000);
		w.mock->lose(w.native);
		/* The engine looks at the device while it has something. */
		if (submit_nop(q, &p) == 0)
			(void)wait_ms(p, NEVER_MS);
		pthread_join(thread, &good);
		if (good == NULL)
			fail_msg("round %u: %s", i, m.bad);
		atomic_store(&m.stop, true);
		pthread_join(device, NULL);
		OK(hal_queue_destroy(q));
		w.mock->complete(w.native, 512, 0);
		world_close(&w);
	}
}

/* ---- guests of one host, in a thread each ------------------------------------------ */

enum { HOUSES = 2, LODGERS = 3, STAYS = 300 };

struct lodger {
	struct ref *r;
	uint32_t pattern;
	uint64_t stays;
	const char *bad;
};

/* A tenant comes, writes what is its own, and goes. */
static int stay(const struct lodger *l, uint32_t pattern)
{
	struct hal_partition_desc pd = HAL_INIT(hal_partition_desc);
	struct hal_queue_desc qd = HAL_INIT(hal_queue_desc);
	struct hal_buffer_desc bd = HAL_INIT(hal_buffer_desc);
	struct hal_partition *part;
	struct hal_queue *q;
	struct hal_buffer *buf;
	struct hal_point done;
	uint32_t got[64];

	pd.host = l->r->part;
	pd.memory_bytes = 65536;
	bd.bytes = 2 * sizeof(got);
	if (hal_partition_create(l->r->dev, &pd, &part) != 0 ||
	    hal_queue_create(part, &qd, &q) != 0 ||
	    hal_buffer_create(part, &bd, &buf) != 0 ||
	    submit_cmd(q, hal_cmd_fill(buf, 0, sizeof(got), pattern), &done) != 0 ||
	    submit_cmd(q, hal_cmd_copy(buf, sizeof(got), buf, 0, sizeof(got)), &done) !=
		    0 ||
	    wait_ms(done, NEVER_MS) != 0 ||
	    hal_buffer_read(buf, sizeof(got), got, sizeof(got)) != 0)
		return -1;
	for (uint32_t i = 0; i < 64; i++)
		if (got[i] != pattern)
			return -1;
	return hal_buffer_destroy(buf) | hal_queue_destroy(q) |
	       hal_partition_destroy(part);
}

static void *lodge(void *arg)
{
	struct lodger *l = arg;

	for (; l->bad == NULL && l->stays < STAYS; l->stays++)
		if (stay(l, l->pattern + (uint32_t)l->stays) != 0)
			l->bad = hal_last_error();
	return NULL;
}

static void guests_beside_each_other(void **state)
{
	struct hal_stats s = HAL_INIT(hal_stats);
	struct lodger l[HOUSES * LODGERS];
	pthread_t thread[HOUSES * LODGERS];
	struct ref r[HOUSES];

	(void)state;
	ref_open(&r[0]);
	r[1].dev = r[0].dev;
	r[1].part = add_partition(&(struct world){.dev = r[0].dev}, 1);
	r[1].q = add_queue(r[1].part, 0);
	for (uint32_t i = 0; i < HOUSES * LODGERS; i++) {
		l[i] = (struct lodger){&r[i % HOUSES], i << 20, 0, NULL};
		assert_int_equal(pthread_create(&thread[i], NULL, lodge, &l[i]), 0);
	}
	/* The hosts have work of their own, and neither can go. */
	for (int i = 0; i < 1000; i++)
		works(r[i % HOUSES].q);
	for (uint32_t i = 0; i < HOUSES * LODGERS; i++) {
		pthread_join(thread[i], NULL);
		if (l[i].bad != NULL)
			fail_msg("lodger %u, stay %u: %s", i, (unsigned int)l[i].stays,
				 l[i].bad);
	}
	OK(hal_device_get_stats(r[0].dev, &s));
	assert_int_equal(s.completed, 1000 + HOUSES * LODGERS * STAYS * 2);
	assert_int_equal(s.failed + s.dropped, 0);
	OK(hal_queue_destroy(r[1].q));
	OK(hal_partition_destroy(r[1].part));
	ref_close(&r[0]);
}

/* ---- FOLD beside threads that submit ------------------------------------------------ */

enum { FOLDED = 2, INSIDE = 20 };

struct folded {
	struct hal_queue *q;
	struct hal_buffer *buf;
	struct hal_kernel *step;
	uint32_t rounds;
	atomic_bool stop;
	const char *bad;
};

static int step(const struct hal_ref_call *call)
{
	uint32_t *n = call->at(call, 0, 0, sizeof(*n));

	if (n == NULL)
		return -EIO;
	(*n)++;
	return 0;
}

/* A quarter of a millisecond of device time, and next to nothing of the machine's: it is
 * met inside also where that is slow. */
static const struct hal_ref_kernel steps = {
	.name = "step", .fn = step, .work = 500000, .arg_count = 1, .arg_bytes = {4}};

/* Each step runs once, however often it is stopped. */
static void *count_on(void *arg)
{
	struct folded *f = arg;
	struct hal_arg where = {.buffer = f->buf};
	struct hal_point done;
	uint32_t n;

	for (; f->bad == NULL && !atomic_load(&f->stop); f->rounds++) {
		if (submit_cmd(f->q, hal_cmd_launch(f->step, &where, 1), &done) != 0 ||
		    submit_cmd(f->q, hal_cmd_launch(f->step, &where, 1), &done) != 0 ||
		    wait_ms(done, NEVER_MS) != 0 ||
		    hal_buffer_read(f->buf, 0, &n, sizeof(n)) != 0)
			f->bad = hal_last_error();
		else if (n != 2 * (f->rounds + 1))
			f->bad = "a step was lost, or ran twice";
	}
	return NULL;
}

/* True: it stopped inside a command, which then had run and not ended. */
static bool fold_once(struct folded *f)
{
	struct hal_stats before = HAL_INIT(hal_stats), after = HAL_INIT(hal_stats);
	struct hal_point quiet;

	OK(hal_queue_get_stats(f->q, &before));
	OK(hal_queue_suspend(f->q, HAL_SUSPEND_FOLD, &quiet));
	OK(wait_ms(quiet, NEVER_MS));
	OK(hal_queue_get_stats(f->q, &after));
	OK(hal_queue_resume(f->q));
	return after.completed == before.completed && after.busy_ns > before.busy_ns;
}

static void folded_beside_threads(void **state)
{
	static const char *const options[] = {"hal.spin_us=0", NULL};
	struct folded f[FOLDED];
	pthread_t thread[FOLDED];
	uint32_t inside = 0, times = 0;
	const uint32_t zero = 0;
	int64_t end = in_ms(NEVER_MS);
	struct hal_program *prog;
	struct hal_kernel *kernel;
	struct hal_stats s;
	struct ref r;

	(void)state;
	ref_open_with(&r, "ref?clock=real&fold_ns=1000", options);
	OK(hal_ref_load(r.dev, &steps, 1, &prog));
	OK(hal_kernel_find(prog, "step", &kernel));
	for (int i = 0; i < FOLDED; i++) {
		memset(&f[i], 0, sizeof(f[i]));
		f[i].q = add_queue(r.part, 0);
		f[i].buf = add_buffer(r.part, 64);
		f[i].step = kernel;
		OK(hal_buffer_write(f[i].buf, 0, &zero, sizeof(zero)));
		assert_int_equal(pthread_create(&thread[i], NULL, count_on, &f[i]), 0);
	}
	while (inside < INSIDE && now_ns() < end)
		inside += fold_once(&f[times++ % FOLDED]);
	for (int i = 0; i < FOLDED; i++) {
		atomic_store(&f[i].stop, true);
		pthread_join(thread[i], NULL);
		if (f[i].bad != NULL)
			fail_msg("queue %d, round %u: %s", i, f[i].rounds, f[i].bad);
		s = queue_stats(f[i].q);
		assert_int_equal(s.completed, 2 * f[i].rounds);
		assert_int_equal(s.suspends, (times + 1 - (uint32_t)i) / FOLDED);
		assert_int_equal(s.replayed + s.failed + s.dropped, 0);
		OK(hal_buffer_destroy(f[i].buf));
		OK(hal_queue_destroy(f[i].q));
	}
	assert_int_equal(inside, INSIDE);
	OK(hal_program_unload(prog));
	ref_close(&r);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_wake_up_is_lost),
		cmocka_unit_test(devices_signal_each_other),
		cmocka_unit_test(destroyed_when_reached),
		cmocka_unit_test(destroyed_when_waited_for),
		cmocka_unit_test(readers_starve_nobody),
		cmocka_unit_test(readers_keep_nobody_out),
		cmocka_unit_test(woken_at_a_time),
		cmocka_unit_test(often_wakes_the_engine),
		cmocka_unit_test(pauses_wake_nobody),
		cmocka_unit_test(one_at_a_time_stays_awake),
		cmocka_unit_test(cancelled_while_waiting),
		cmocka_unit_test(cancelled_while_lending),
		cmocka_unit_test(sleeps_beside_callback),
		cmocka_unit_test(nothing_else_is_cancelled),
		cmocka_unit_test(waited_for),
		cmocka_unit_test(several_waited_for),
		cmocka_unit_test(several_not_reached),
		cmocka_unit_test(resize_beside_queues),
		cmocka_unit_test(lost_beside_others),
		cmocka_unit_test(guests_beside_each_other),
		cmocka_unit_test(folded_beside_threads),
	};

	tier_choose(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* test_core_apart.c - a call of one tenant that takes long makes no other tenant's wait.
 */
#include "ref_world.h"

#include <fcntl.h>
#include <semaphore.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <hal/ext/memory.h>

#include "loop/device.h"
#include "loop/engine.h"
#include "memory/evict.h"
#include "space/partition.h"

enum { BIG = 64 << 10, FIT = 2 };

/* Two tenants, the first with room for FIT buffers of BIG on the device. */
struct tenants {
	struct hal_device *dev;
	struct hal_partition *one, *other;
	struct hal_queue *q; /* of the other */
	struct hal_buffer *b[FIT + 1];
	struct hal_backend held; /* the device's table, but for what a test holds */
};

static void tenants_open(struct tenants *t)
{
	static const char *const options[] = {"hal.oversubscribe=yes", NULL};
	struct hal_partition_desc d = HAL_INIT(hal_partition_desc);

	memset(t, 0, sizeof(*t));
	OK(hal_open("ref?clock=real", options, &t->dev));
	d.units_floor = 2;
	d.memory_bytes = FIT * BIG;
	d.limits = &(struct hal_partition_limits){
		.size = sizeof(struct hal_partition_limits),
		.memory_limit = (FIT + 1) * BIG};
	OK(hal_partition_create(t->dev, &d, &t->one));
	d.limits = NULL;
	OK(hal_partition_create(t->dev, &d, &t->other));
	t->q = add_queue(t->other, 0);
	t->held = *t->dev->table;
	t->dev->table = &t->held; /* nobody calls it now */
}

static void tenants_close(struct tenants *t)
{
	for (uint32_t i = 0; i <= FIT; i++)
		OK(hal_buffer_destroy(t->b[i]));
	if (t->one != NULL)
		OK(hal_partition_destroy(t->one));
	OK(hal_queue_destroy(t->q));
	OK(hal_partition_destroy(t->other));
	OK(hal_close(t->dev));
}

/* All that walks or changes the device's lists: a call that waits ends the test. */
static void other_goes_on(struct tenants *t)
{
	struct hal_stats s = HAL_INIT(hal_stats);
	struct hal_queue *q;

	(void)alarm(NEVER_MS / 1000);
	works(t->q);
	q = add_queue(t->other, 0);
	OK(hal_device_get_stats(t->dev, &s));
	OK(hal_partition_get_stats(t->other, &s));
	OK(hal_queue_get_stats(q, &s));
	assert_true(hal_device_poll(t->dev, 0) >= 0);
	OK(hal_queue_destroy(q));
	(void)alarm(0);
}

/* A thread that makes one call. */
struct caller {
	struct tenants *t;
	int (*call)(struct tenants *t);
	pthread_t thread;
	_Atomic pid_t tid;
	int result;
	char why[256];
};

static void *make_call(void *arg)
{
	struct caller *c = arg;

	atomic_store(&c->tid, (pid_t)syscall(SYS_gettid));
	c->result = c->call(c->t);
	snprintf(c->why, sizeof(c->why), "%s", hal_last_error());
	return NULL;
}

static void caller_start(struct caller *c, struct tenants *t,
			 int (*call)(struct tenants *t))
{
	memset(c, 0, sizeof(*c));
	c->t = t;
	c->call = call;
	assert_int_equal(pthread_create(&c->thread, NULL, make_call, c), 0);
}

/* The thread is in that call of the system, with that first argument (NULL: any). */
static bool is_in(pid_t tid, long number, const void *first)
{
	unsigned long long argument;
	char path[64], line[256];
	bool in = false;
	FILE *f;
	long is;

	snprintf(path, sizeof(path), "/proc/self/task/%d/syscall", (int)tid);
	f = fopen(path, "r");
	if (f == NULL)
		return false;
	if (fgets(line, sizeof(line), f) != NULL &&
	    sscanf(line, "%ld %llx", &is, &argument) == 2)
		in = is == number && (first == NULL || argument == (uintptr_t)first);
	(void)fclose(f);
	return in;
}

/* Return once the thread waits there.  False: this system does not tell. */
static bool waits_in(struct caller *c, long number, const void *first)
{
	int64_t until = in_ms(NEVER_MS);

	/* It does not say that this reads its file, or an emulator has other numbers. */
	if (!is_in((pid_t)syscall(SYS_gettid), SYS_read, NULL))
		return false;
	while (atomic_load(&c->tid) == 0 || !is_in(atomic_load(&c->tid), number, first)) {
		if (now_ns() > until)
			fail_msg("the thread does not wait in system call %ld", number);
		sched_yield();
	}
	return true;
}

/* ---- partitions --------------------------------------------------------------------- */

static sem_t begun, go_on;
static int (*read_at_once)(void *dev, void *mem, uint64_t offset, void *data,
			   uint64_t bytes);

static int held_read(void *dev, void *mem, uint64_t offset, void *data, uint64_t bytes)
{
	sem_post(&begun);
	while (sem_wait(&go_on) != 0)
		;
	return read_at_once(dev, mem, offset, data, bytes);
}

static int add_one_more(struct tenants *t)
{
	struct hal_buffer_desc d = HAL_INIT(hal_buffer_desc);

	d.bytes = BIG;
	return hal_buffer_create(t->one, &d, &t->b[FIT]);
}

static int destroy_one(struct tenants *t)
{
	return hal_partition_destroy(t->one);
}

/* While a buffer of it is on its way to the host a partition cannot be destroyed yet. */
static void destroy_waits(void **state)
{
	struct caller adds, destroys;
	struct tenants t;
	bool told;

	(void)state;
	tenants_open(&t);
	for (uint32_t i = 0; i < FIT; i++)
		t.b[i] = add_buffer(t.one, BIG);
	sem_init(&begun, 0, 0);
	sem_init(&go_on, 0, 0);
	read_at_once = t.held.cold.mem_read;
	t.held.beside |=
		HAL_BK_BESIDE_COPY; /* by the partition's thread, not the engine */
	t.held.cold.mem_read = held_read;
	caller_start(&adds, &t, add_one_more);
	while (sem_wait(&begun) != 0)
		;
	caller_start(&destroys, &t, destroy_one);
	told = waits_in(&destroys, SYS_futex, &t.one->memory.evict->changed);
	if (told)
		other_goes_on(&t);
	sem_post(&go_on);
	pthread_join(adds.thread, NULL);
	pthread_join(destroys.thread, NULL);
	assert_int_equal(adds.result, 0);
	assert_int_equal(destroys.result, -EBUSY);
	assert_non_null(strstr(destroys.why, " buffers"));
	sem_destroy(&begun);
	sem_destroy(&go_on);
	t.held.cold.mem_read = read_at_once;
	tenants_close(&t);
	if (!told)
		skip();
}

/* ---- traces ------------------------------------------------------------------------- */

static char folder[] = "/tmp/hal_apart_XXXXXX", fifo[64];

static int start_trace(struct tenants *t)
{
	return hal_trace_start(t->dev, fifo);
}

/* The file of a trace may be one that is not opened at once. */
static void trace_waits(void **state)
{
	struct caller starts;
	struct tenants t;
	char buffer[4096];
	int fd;
	bool told;

	(void)state;
	tenants_open(&t);
	assert_non_null(mkdtemp(folder));
	snprintf(fifo, sizeof(fifo), "%s/fifo", folder);
	assert_int_equal(mkfifo(fifo, 0600), 0);
	caller_start(&starts, &t, start_trace);
	told = waits_in(&starts, SYS_openat, NULL);
	if (told)
		other_goes_on(&t);
	fd = open(fifo, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	pthread_join(starts.thread, NULL);
	assert_int_equal(starts.result, 0);
	OK(hal_trace_stop(t.dev));
	while (read(fd, buffer, sizeof(buffer)) > 0)
		;
	(void)close(fd);
	(void)unlink(fifo);
	(void)rmdir(folder);
	tenants_close(&t);
	if (!told)
		skip();
}

/* ---- polls -------------------------------------------------------------------------- */

/* Another tenant reads its statistics just now, and is not waited for. */
static void poll_takes_no_lock(void **state)
{
	struct tenants t;

	(void)state;
	tenants_open(&t);
	works(t.q);
	works(t.q);
	pthread_rwlock_rdlock(&t.dev->shape);
	(void)alarm(NEVER_MS / 1000);
	assert_int_equal(hal_device_poll(t.dev, 0), 2);
	assert_int_equal(hal_device_poll(t.dev, 0), 0);
	(void)alarm(0);
	pthread_rwlock_unlock(&t.dev->shape);
	tenants_close(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(destroy_waits),
		cmocka_unit_test(trace_waits),
		cmocka_unit_test(poll_takes_no_lock),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

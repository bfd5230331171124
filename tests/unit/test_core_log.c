/* SPDX-License-Identifier: Apache-2.0 */
/* hal_log_set, HAL_LOG, and what the library logs. */
#include "ref_world.h"

#include <sys/wait.h>
#include <unistd.h>

/* The lines that a receiver has got. */
struct lines {
	pthread_mutex_t lock;
	uint32_t count;
	struct {
		int level;
		char text[800];
	} at[64];
};

static struct lines lines = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void receive(void *user, int level, const char *text)
{
	struct lines *l = user;

	pthread_mutex_lock(&l->lock);
	if (l->count < 64) {
		l->at[l->count].level = level;
		(void)snprintf(l->at[l->count].text, sizeof(l->at[0].text), "%s", text);
		l->count++;
	}
	pthread_mutex_unlock(&l->lock);
}

static void begin(int level)
{
	lines.count = 0;
	OK(hal_log_set(receive, &lines, level));
}

/* Stop, and return how many lines of the level have all of these words. */
static uint32_t found(int level, const char *one, const char *two)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < lines.count; i++)
		n += lines.at[i].level == level &&
		     strstr(lines.at[i].text, one) != NULL &&
		     strstr(lines.at[i].text, two) != NULL;
	return n;
}

static void end(void)
{
	OK(hal_log_set(NULL, NULL, HAL_LOG_OFF));
}

/* ---- what is logged ---------------------------------------------------------------- */

static void life_of_a_device(void **state)
{
	const char *const wrong[] = {"hal.queue_depth=3", NULL};
	struct hal_device *dev;
	struct world w;

	(void)state;
	begin(HAL_LOG_DEBUG);
	world_open(&w, "mock?clock=virtual");
	world_fill(&w);
	world_close(&w);
	FAILS(hal_open("ref", wrong, &dev), -EINVAL, "queue_depth");
	end();
	assert_int_equal(found(HAL_LOG_INFO, "mock:0: opened", "virtual clock"), 1);
	assert_int_equal(found(HAL_LOG_INFO, "target mock?clock=virtual", ""), 1);
	assert_int_equal(found(HAL_LOG_INFO, "partition 0 \"\" created", ""), 1);
	assert_int_equal(found(HAL_LOG_INFO, "partition 0 \"\" destroyed", ""), 1);
	assert_int_equal(found(HAL_LOG_INFO, "mock:0: closed", ""), 1);
	assert_int_equal(found(HAL_LOG_WARNING, "hal_open(ref)", "queue_depth"), 1);
}

/* Why a backend was chosen, and why others were not. */
static void choice(void **state)
{
	struct hal_device *dev;

	(void)state;
	begin(HAL_LOG_DEBUG);
	OK(hal_open(NULL, NULL, &dev));
	OK(hal_close(dev));
	end();
	assert_true(found(HAL_LOG_DEBUG, "backend ref: ", "") == 1);
	assert_int_equal(found(HAL_LOG_INFO, "opened", "the best backend"), 1);
}

static void plugins_and_files(void **state)
{
	char path[] = "/tmp/hal-log-XXXXXX", option[64];
	const char *options[] = {"hal.plugins=/nowhere/x.so", option, NULL};
	struct hal_device *dev;
	int fd = mkstemp(path);

	(void)state;
	assert_true(fd >= 0);
	(void)snprintf(option, sizeof(option), "hal.config=%s", path);
	begin(HAL_LOG_DEBUG);
	FAILS(hal_open("ref", options, &dev), -ENOENT, "/nowhere/x.so");
	end();
	assert_int_equal(found(HAL_LOG_WARNING, "plugin /nowhere/x.so", ""), 2);
	assert_int_equal(found(HAL_LOG_WARNING, "hal_open(ref)", "/nowhere/x.so"), 1);
	assert_int_equal(found(HAL_LOG_DEBUG, path, "has been read"), 1);
	(void)close(fd);
	(void)unlink(path);
}

static void faults_and_loss(void **state)
{
	struct hal_partition_desc d = HAL_INIT(hal_partition_desc);
	struct hal_queue *q, *busy;
	struct hal_point p, moved;
	struct world w;

	(void)state;
	world_open(&w, "mock?clock=virtual");
	world_fill(&w);
	q = add_queue(w.part, 0);
	busy = add_queue(w.part, 0);
	begin(HAL_LOG_INFO);
	d.units_floor = 2;
	OK(hal_partition_resize(w.part, &d, &moved));
	w.mock->quiet(w.native, 0);
	OK(hal_wait(&moved, 1, 0, HAL_FOREVER));
	OK(submit_cmd(q, numbered(&w, 1), &p));
	poll_now(&w);
	w.mock->fault(w.native, -EIO, "bad\naddress");
	FAILS(hal_wait(&p, 1, 0, HAL_FOREVER), -EIO, "bad\naddress");
	OK(submit_cmd(busy, numbered(&w, 1), &p));
	poll_now(&w);
	w.mock->lose(w.native);
	FAILS(hal_wait(&p, 1, 0, HAL_FOREVER), -EIO, "fell off the bus");
	end();
	assert_int_equal(found(HAL_LOG_INFO, "partition 0 \"\" has 2 units", ""), 1);
	/* One line for each text. */
	assert_int_equal(found(HAL_LOG_ERROR, "queue 0", "bad address"), 1);
	assert_int_equal(found(HAL_LOG_ERROR, "mock:0 is lost", "fell off the bus"), 1);
	OK(hal_queue_destroy(q));
	OK(hal_queue_destroy(busy));
	w.mock->complete(w.native, 9, 0);
	world_close(&w);
}

/* A stop that takes longer than the device states. */
static void late_stop(void **state)
{
	struct hal_point quiet;
	struct hal_queue *q;
	struct world w;

	(void)state;
	world_open(&w, "mock?clock=virtual&kill_ns=1000");
	world_fill(&w);
	q = add_queue(w.part, 0);
	begin(HAL_LOG_WARNING);
	for (uint64_t took = 1000; took <= 1001; took++) {
		OK(submit_cmd(q, numbered(&w, 1), NULL));
		poll_now(&w);
		OK(hal_queue_suspend(q, HAL_SUSPEND_KILL, &quiet));
		w.mock->advance(w.native, took);
		w.mock->quiet(w.native, 0);
		OK(hal_wait(&quiet, 1, 0, HAL_FOREVER));
		assert_int_equal(lines.count, took - 1000);
		OK(hal_queue_resume(q));
		poll_now(&w);
		w.mock->complete(w.native, 1, 1);
		poll_now(&w);
	}
	end();
	assert_int_equal(
		found(HAL_LOG_WARNING, "KILL of queue 0 took 1001 ns", "1000 ns"), 1);
	OK(hal_queue_destroy(q));
	world_close(&w);
}

/* ---- the receiver ------------------------------------------------------------------ */

static void only_its_levels(void **state)
{
	struct world w;

	(void)state;
	begin(HAL_LOG_WARNING);
	world_open(&w, "mock?clock=virtual");
	world_fill(&w);
	world_close(&w);
	assert_int_equal(lines.count, 0);
	begin(HAL_LOG_OFF);
	FAILS(hal_open("nope", NULL, &w.dev), -ENODEV, "nope");
	assert_int_equal(lines.count, 0);
	end();
	FAILS(hal_log_set(receive, &lines, HAL_LOG_DEBUG + 1), -EINVAL, "level 5");
	FAILS(hal_log_set(receive, &lines, -1), -EINVAL, "level -1");
}

static void replace_me(void *user, int level, const char *text)
{
	receive(user, level, text);
	/* What these do wrong is not the caller's error. */
	(void)hal_log_set(receive, user, 77);
	(void)hal_strerror(EINVAL);
	OK(hal_log_set(receive, user, HAL_LOG_WARNING));
	errno = 77;
}

/* A receiver may replace itself, and leaves the error of the call alone. */
static void replaced_by_itself(void **state)
{
	struct hal_device *dev;

	(void)state;
	lines.count = 0;
	OK(hal_log_set(replace_me, &lines, HAL_LOG_WARNING));
	errno = 5;
	FAILS(hal_open("nope", NULL, &dev), -ENODEV, "nope");
	FAILS(hal_open("nope", NULL, &dev), -ENODEV, "nope");
	end();
	assert_int_equal(lines.count, 2);
}

/* ---- many threads ------------------------------------------------------------------ */

static struct {
	atomic_bool stop, alive;
	atomic_uint calls, late;
} many;

static void count_call(void *user, int level, const char *text)
{
	(void)level, (void)text;
	atomic_fetch_add(&many.calls, 1);
	if (!atomic_load(&many.alive) || *(int *)user != 42)
		atomic_fetch_add(&many.late, 1);
}

static void *fail_often(void *arg)
{
	struct hal_device *dev;

	(void)arg;
	while (!atomic_load(&many.stop))
		(void)hal_open("nope", NULL, &dev);
	return NULL;
}

/* Once hal_log_set has returned, no thread is in the old function. */
static void replaced_beside_calls(void **state)
{
	pthread_t threads[2];

	(void)state;
	memset(&many, 0, sizeof(many));
	for (int i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, fail_often, NULL), 0);
	for (int i = 0; i < 300; i++) {
		unsigned int seen = atomic_load(&many.calls);
		int *user = malloc(sizeof(*user));

		*user = 42;
		atomic_store(&many.alive, true);
		OK(hal_log_set(count_call, user, HAL_LOG_WARNING));
		while (atomic_load(&many.calls) == seen)
			sched_yield();
		OK(hal_log_set(NULL, NULL, 0));
		atomic_store(&many.alive, false);
		*user = 0;
		free(user);
	}
	atomic_store(&many.stop, true);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(atomic_load(&many.late), 0);
}

/* A child of fork() logs, and sets another function, whatever the parent's threads do. */
static void in_a_child(void **state)
{
	pthread_t thread;
	int user = 42;

	(void)state;
	memset(&many, 0, sizeof(many));
	atomic_store(&many.alive, true);
	OK(hal_log_set(count_call, &user, HAL_LOG_WARNING));
	assert_int_equal(pthread_create(&thread, NULL, fail_often, NULL), 0);
	for (int i = 0; i < 20; i++) {
		pid_t pid = fork();
		int status;

		assert_true(pid >= 0);
		if (pid == 0) {
			struct hal_device *dev;

			(void)alarm(NEVER_MS / 1000);
			lines.count = 0;
			if (hal_log_set(receive, &lines, HAL_LOG_WARNING) != 0 ||
			    hal_open("nope", NULL, &dev) != -ENODEV)
				_exit(1);
			_exit(lines.count == 1 ? 0 : 2);
		}
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
	}
	atomic_store(&many.stop, true);
	pthread_join(thread, NULL);
	end();
}

/* ---- the environment --------------------------------------------------------------- */

static void to_a_file(void **state)
{
	static char file[1u << 14];
	char path[] = "/tmp/hal-log-XXXXXX", value[64];
	int fd = mkstemp(path);
	struct world w;
	ssize_t n;

	(void)state;
	assert_true(fd >= 0);
	(void)snprintf(value, sizeof(value), "info:%s", path);
	assert_int_equal(setenv("HAL_LOG", value, 1), 0);
	begin(HAL_LOG_ERROR); /* beside the program's own */
	world_open(&w, "mock?clock=virtual");
	world_fill(&w);
	world_close(&w);
	FAILS(hal_open("nope", NULL, &w.dev), -ENODEV, "nope");
	end();
	assert_int_equal(lines.count, 0);
	assert_int_equal(unsetenv("HAL_LOG"), 0);
	FAILS(hal_open("never", NULL, &w.dev), -ENODEV, "never");
	n = read(fd, file, sizeof(file) - 1);
	assert_true(n > 0 && (size_t)n < sizeof(file) - 1);
	assert_non_null(strstr(file, " info mock:0: opened"));
	assert_non_null(strstr(file, " info mock:0: partition 0 \"\" destroyed\n"));
	assert_non_null(strstr(file, " warning hal_open(nope): "));
	assert_null(strstr(file, "never"));
	assert_int_equal(file[n - 1], '\n');
	(void)close(fd);
	(void)unlink(path);
}

static void wrong_environment(void **state)
{
	static const struct {
		const char *value, *text;
		int err;
	} wrong[] = {
		{"loud", "environment HAL_LOG: \"loud\" is not LEVEL", -EINVAL},
		{"info:", "environment HAL_LOG: \"info:\"", -EINVAL},
		{":/tmp/x", "environment HAL_LOG", -EINVAL},
		{"debug:/nowhere/x", "environment HAL_LOG: /nowhere/x: No such file",
		 -ENOENT},
	};
	struct hal_device *dev;

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		assert_int_equal(setenv("HAL_LOG", wrong[i].value, 1), 0);
		FAILS(hal_open("ref", NULL, &dev), wrong[i].err, wrong[i].text);
		FAILS(hal_open("ref", NULL, &dev), wrong[i].err, wrong[i].text);
	}
	assert_int_equal(unsetenv("HAL_LOG"), 0);
	OK(hal_open("ref", NULL, &dev));
	OK(hal_close(dev));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(life_of_a_device),
		cmocka_unit_test(choice),
		cmocka_unit_test(plugins_and_files),
		cmocka_unit_test(faults_and_loss),
		cmocka_unit_test(late_stop),
		cmocka_unit_test(only_its_levels),
		cmocka_unit_test(replaced_by_itself),
		cmocka_unit_test(replaced_beside_calls),
		cmocka_unit_test(in_a_child),
		cmocka_unit_test(to_a_file),
		cmocka_unit_test(wrong_environment),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

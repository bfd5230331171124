/* SPDX-License-Identifier: Apache-2.0 */
/* test_npuc_share.c - one handle of a device for all its users in a process. */
#define _GNU_SOURCE
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <errno.h>

#include <hal/hal.h>

#include "npuc.h"
#include "tiny.h"

#define TARGET  "npu:0?clock=virtual&model=" MODEL
#define THREADS 4
#define ROUNDS  8

static char why[NPUC_WHY];

static struct hal_device *share(const char *const *options)
{
	struct hal_device *dev = NULL;

	if (npuc_device_share(TARGET, options, &dev, why))
		fail_msg("%s", why);
	assert_non_null(dev);
	return dev;
}

static void test_count(void **state)
{
	static const char *const options[] = {"hal.spin_us=1", NULL};
	struct hal_partition_desc desc = HAL_INIT(hal_partition_desc);
	struct hal_device *a = share(NULL), *b = share(NULL), *c = share(options);
	struct hal_partition *part;

	(void)state;
	assert_ptr_equal(a, b);
	assert_ptr_not_equal(a, c);
	assert_int_equal(npuc_device_unshare(c), 0);
	assert_int_equal(npuc_device_unshare(c), -EINVAL);
	assert_int_equal(npuc_device_unshare(a), 0);
	desc.rows = desc.cols = 1;
	assert_int_equal(hal_partition_create(b, &desc, &part), 0);
	/* The last use remains while there are objects. */
	assert_int_equal(npuc_device_unshare(b), -EBUSY);
	assert_ptr_equal(share(NULL), b);
	assert_int_equal(npuc_device_unshare(b), 0);
	assert_int_equal(hal_partition_destroy(part), 0);
	assert_int_equal(npuc_device_unshare(b), 0);
	assert_int_equal(npuc_device_unshare(b), -EINVAL);
	assert_int_equal(npuc_device_unshare(NULL), 0);
}

static void test_refused(void **state)
{
	struct hal_device *dev = NULL;

	(void)state;
	assert_int_equal(npuc_device_share("ref", NULL, &dev, why), -ENODEV);
	assert_non_null(strstr(why, "ref is not an NPU"));
	assert_int_equal(npuc_device_share("nothing:0", NULL, &dev, why), -ENODEV);
	assert_non_null(strstr(why, "nothing"));
	assert_int_equal(npuc_device_share(TARGET, NULL, NULL, why), -EINVAL);
	assert_non_null(strstr(why, "npuc_device_share: NULL"));
	assert_null(dev);
	/* Not one of its own. */
	assert_int_equal(hal_open(TARGET, NULL, &dev), 0);
	assert_int_equal(npuc_device_unshare(dev), -EINVAL);
	assert_int_equal(hal_close(dev), 0);
}

/* What a child has: not its parent's handle, but one of its own. */
static int in_child(struct hal_device *parents)
{
	struct hal_device *own = NULL;
	char text[NPUC_WHY];

	if (npuc_device_unshare(parents) != -EPERM)
		return 2;
	if (npuc_device_share(TARGET, NULL, &own, text) != 0 || own == parents)
		return 3;
	return npuc_device_unshare(own) == 0 ? 0 : 4;
}

static void test_fork(void **state)
{
	struct hal_device *dev = share(NULL);
	int status = -1;
	pid_t pid = fork();

	(void)state;
	assert_true(pid >= 0);
	if (pid == 0)
		_exit(in_child(dev));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(npuc_device_unshare(dev), 0);
}

/* ---- threads ------------------------------------------------------------------------ */

static struct npuc_program program;
static pthread_barrier_t barrier;
static struct hal_device *handles[THREADS + 1];

/* An inference on a partition of the thread's own; NULL, or what failed. */
static const char *infer(struct hal_device *dev, uint16_t col)
{
	struct hal_partition_desc desc = HAL_INIT(hal_partition_desc);
	struct hal_partition *part;
	char text[NPUC_WHY];
	struct npuc_run *run;
	int8_t x[4] = {-1, 5, -7, 3}, y[4];

	desc.rows = 5;
	desc.cols = 1;
	desc.col = col;
	if (hal_partition_create(dev, &desc, &part) != 0)
		return "partition";
	if (npuc_run_open(dev, part, &program, &run, text) != 0)
		return "open";
	for (int i = 0; i < ROUNDS; i++) {
		x[1] = (int8_t)(i + col);
		if (npuc_run_write(run, 0, x, 4, text) ||
		    npuc_run_kernel(run, "run", NULL, text) ||
		    npuc_run_read(run, 0, true, y, 4, text))
			return "run";
		if (y[0] != 0 || y[1] != i + col || y[2] != 0 || y[3] != 3)
			return "result";
	}
	return npuc_run_close(run) || hal_partition_destroy(part) ? "close" : NULL;
}

static void *tenant(void *number)
{
	uint16_t col = (uint16_t)(uintptr_t)number;
	struct hal_device *dev = NULL;
	char text[NPUC_WHY];
	const char *wrong;

	(void)pthread_barrier_wait(&barrier);
	if (npuc_device_share(TARGET, NULL, &dev, text) != 0)
		return "share";
	handles[col] = dev;
	wrong = infer(dev, col);
	(void)pthread_barrier_wait(&barrier);
	if (handles[col] != handles[1])
		wrong = "another handle";
	if (!wrong && npuc_device_unshare(dev) != 0)
		wrong = "unshare";
	return (void *)wrong;
}

static void test_threads(void **state)
{
	struct tiny m = {.input_count = 1, .output_count = 1, .outputs = {1}};
	static uint8_t file[4096];
	pthread_t threads[THREADS];
	struct npuc_model *model;
	void *wrong;

	(void)state;
	for (int i = 0; i < 2; i++)
		tiny_int8(&m, i ? "y" : "x", 1, (const int32_t[]){4}, 0.5f, 0);
	tiny_op(&m, 19, 1, (const int32_t[]){0}, 1);
	if (npuc_model_parse(file, tiny_write(&m, file, sizeof(file)), "relu", &model,
			     why) ||
	    npuc_compile(model, NULL, &program, why))
		fail_msg("%s", why);
	npuc_model_free(model);
	assert_int_equal(pthread_barrier_init(&barrier, NULL, THREADS), 0);
	for (uintptr_t i = 0; i < THREADS; i++)
		assert_int_equal(
			pthread_create(&threads[i], NULL, tenant, (void *)(i + 1)), 0);
	for (int i = 0; i < THREADS; i++) {
		assert_int_equal(pthread_join(threads[i], &wrong), 0);
		if (wrong)
			fail_msg("thread %d: %s", i, (const char *)wrong);
	}
	pthread_barrier_destroy(&barrier);
	npuc_program_free(&program);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_count),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_fork),
		cmocka_unit_test(test_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The service class of a queue decides the priority of its stream. */
#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <hal/hal.h>

#include "tests/fakes/gpu/stand_in.h"

#define OK(call)                                                                         \
	do {                                                                             \
		int ok_ = (call);                                                        \
		if (ok_ != 0)                                                            \
			fail_msg("%s is %d: %s", #call, ok_, hal_last_error());          \
	} while (0)

/* Return the priority of the stream that a fill of a queue of that class ran on. */
static int32_t level_of(struct hal_device *dev, struct hal_partition *part,
			const struct gpu_stand_in *driver, uint16_t service_class)
{
	struct hal_queue_desc qd = HAL_INIT(hal_queue_desc);
	struct hal_submit_desc sd = HAL_INIT(hal_submit_desc);
	struct hal_buffer_desc bd = HAL_INIT(hal_buffer_desc);
	struct gpu_stand_in_job jobs[8];
	struct hal_buffer *buf;
	struct hal_queue *q;
	struct hal_point done;
	struct hal_cmd fill;
	uint32_t n;

	bd.bytes = 4096;
	OK(hal_buffer_create(part, &bd, &buf));
	qd.service_class = service_class;
	OK(hal_queue_create(part, &qd, &q));
	while (driver->jobs(jobs, 8) != 0)
		;
	fill = hal_cmd_fill(buf, 0, 4096, 1);
	sd.cmds = &fill;
	sd.cmd_count = 1;
	OK(hal_submit(q, &sd, &done));
	OK(hal_wait(&done, 1, 0, HAL_FOREVER));
	n = driver->jobs(jobs, 8);
	assert_int_equal(n, 1);
	assert_string_equal(jobs[0].what, "fill");
	OK(hal_queue_destroy(q));
	OK(hal_buffer_destroy(buf));
	(void)dev;
	return jobs[0].priority;
}

static void streams(void **state)
{
	struct hal_partition_desc pd = HAL_INIT(hal_partition_desc);
	const struct gpu_stand_in *driver;
	struct hal_partition *part;
	struct hal_device *dev;
	void *library;

	(void)state;
	OK(hal_open("cuda:0?clock=virtual&partitions=none", NULL, &dev));
	library = dlopen("libcuda.so.1", RTLD_NOW);
	assert_non_null(library);
	driver = dlsym(library, GPU_STAND_IN_SYMBOL);
	assert_non_null(driver);
	pd.units_floor = 1;
	OK(hal_partition_create(dev, &pd, &part));
	assert_int_equal(level_of(dev, part, driver, HAL_CLASS_LATENCY), -5);
	assert_int_equal(level_of(dev, part, driver, HAL_CLASS_NORMAL), -2);
	assert_int_equal(level_of(dev, part, driver, HAL_CLASS_BEST_EFFORT), -2);
	OK(hal_partition_destroy(part));
	OK(hal_close(dev));
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(streams)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

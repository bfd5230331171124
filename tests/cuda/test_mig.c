/* SPDX-License-Identifier: Apache-2.0 */
/* MIG instances: those that CUDA shows are devices that the hardware keeps apart, the
 * others are listed with what to do; by CUDA_VISIBLE_DEVICES, drivers before 570 and
 * since, compute instances that share memory, NVML that is absent or fails.  A process a
 * case: CUDA reads its environment once. */
#define _GNU_SOURCE
#include "host.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <hal/gpu.h>

#include "backends/cuda/internal.h"

#define INSTANCES                                                                        \
	"1:3g.40gb:60:40448,2:1c.2g.20gb:16:20096,2:1c.2g.20gb:16:20096,3:1g.10gb:16:"   \
	"9856"
#define UUID(n) "MIG-a0a0a0a0-a0a0-a0a0-a0a0-a0a0a0a0a00" n

static const struct hal_backend *b;
static const struct hal_bk_config cfg = {.clock = 1, .partitions = CU_WAY_NONE};
static struct hal_device_info info[8];

/* Run body in a process whose environment is that; it ends well or has said what failed.
 */
static void apart(const char *instances, const char *visible, const char *more,
		  void (*body)(void))
{
	int status = -1;
	pid_t child;

	(void)fflush(NULL);
	child = fork();
	if (child == 0) {
		if (instances)
			(void)setenv("HAL_STAND_IN_CUDA_MIG", instances, 1);
		if (visible)
			(void)setenv("CUDA_VISIBLE_DEVICES", visible, 1);
		if (more)
			(void)setenv(more, "1", 1);
		body();
		(void)fflush(NULL);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

#define NEED(is)                                                                         \
	do {                                                                             \
		if (!(is)) {                                                             \
			(void)fprintf(stderr, "line %d: not %s: %s\n", __LINE__, #is,    \
				      host_text);                                        \
			_exit(1);                                                        \
		}                                                                        \
	} while (0)

static int probe(void)
{
	memset(info, 0, sizeof(info));
	return b->cold.probe(&cfg, info, 8);
}

/* What the open device at index says of itself. */
static void says(uint32_t index, uint32_t compute, uint32_t memory, const char *what)
{
	struct hal_device_info got = {.size = sizeof(got)};
	struct hal_gpu_info why = {.size = sizeof(why)};
	const struct hal_gpu_extension *ext;
	void *dev;

	NEED(b->cold.open(&cfg, index, &dev) == 0);
	NEED(b->cold.get_info(dev, &got) == 0);
	NEED(got.compute_isolation == compute && got.memory_isolation == memory);
	ext = b->cold.extension(dev, "gpu");
	NEED(ext->info(dev, &why) == 0);
	NEED(what ? strstr(why.why, what) != NULL : !strstr(why.why, "MIG"));
	b->cold.close(dev);
}

/* One of each GPU instance is shown, the rest, which is none of those, is listed. */
static void since_570(void)
{
	void *dev;

	NEED(probe() == 4);
	NEED(strcmp(info[0].name, "HAL stand-in GPU MIG 3g.40gb") == 0);
	NEED(strcmp(info[1].name, "HAL stand-in GPU MIG 1c.2g.20gb") == 0);
	NEED(strcmp(info[2].name, "unusable: " UUID("2") " 1c.2g.20gb") == 0);
	NEED(strcmp(info[3].name, "unusable: " UUID("3") " 1g.10gb") == 0);
	NEED(info[3].memory_bytes == UINT64_C(9856) << 20);
	NEED(info[3].compute_isolation == HAL_ISOLATION_ENFORCED);
	NEED(info[0].compute_isolation == HAL_ISOLATION_ENFORCED &&
	     info[0].memory_isolation == HAL_ISOLATION_ENFORCED);
	NEED(info[0].memory_bytes == UINT64_C(40448) << 20);
	says(0, HAL_ISOLATION_ENFORCED, HAL_ISOLATION_ENFORCED, UUID("0"));
	/* Two compute instances share the memory of their GPU instance. */
	says(1, HAL_ISOLATION_ENFORCED, HAL_ISOLATION_NONE,
	     "may be shared with other compute instances");
	NEED(b->cold.open(&cfg, 3, &dev) == -ENOTSUP);
	NEED(strstr(host_text,
		    "MIG instance " UUID("3") " (1g.10gb of GPU 0): set "
					      "CUDA_VISIBLE_DEVICES=" UUID(
						      "3") " before the process "
							   "starts"));
	NEED(b->cold.open(&cfg, 4, &dev) == -ENODEV);
}

/* What the text said to do. */
static void one_by_name(void)
{
	NEED(probe() == 4);
	NEED(strcmp(info[0].name, "HAL stand-in GPU MIG 1g.10gb") == 0);
	NEED(strcmp(info[1].name, "unusable: " UUID("0") " 3g.40gb") == 0);
	says(0, HAL_ISOLATION_ENFORCED, HAL_ISOLATION_ENFORCED, UUID("3"));
}

static void several_by_name(void)
{
	NEED(probe() == 4);
	NEED(strcmp(info[0].name, "HAL stand-in GPU MIG 3g.40gb") == 0);
	NEED(strcmp(info[1].name, "HAL stand-in GPU MIG 1g.10gb") == 0);
	says(1, HAL_ISOLATION_ENFORCED, HAL_ISOLATION_ENFORCED, UUID("3"));
}

static void before_570(void)
{
	NEED(probe() == 4);
	NEED(strcmp(info[0].name, "HAL stand-in GPU MIG 3g.40gb") == 0);
	NEED(strncmp(info[1].name, "unusable: ", 10) == 0);
}

/* Without NVML what CUDA shows is all there is, and who shares memory is not known. */
static void nvml_fails(void)
{
	NEED(probe() == 2);
	says(0, HAL_ISOLATION_ENFORCED, HAL_ISOLATION_NONE, UUID("0"));
}

/* The control: no MIG. */
static void no_instances(void)
{
	NEED(probe() == 2);
	NEED(strcmp(info[0].name, "HAL stand-in GPU, 132 multiprocessors") == 0);
	says(0, HAL_ISOLATION_NONE, HAL_ISOLATION_NONE, NULL);
}

/* What is carved out of an instance is as advisory as anywhere. */
static void partitions_of_one(void)
{
	const struct hal_bk_config green = {.clock = 1, .partitions = CU_WAY_GREEN};
	struct hal_device_info got = {.size = sizeof(got)};
	void *dev;

	NEED(b->cold.open(&green, 0, &dev) == 0);
	NEED(b->cold.get_info(dev, &got) == 0);
	NEED(got.unit_cols == 7);
	NEED(got.compute_isolation == HAL_ISOLATION_ADVISORY);
	b->cold.close(dev);
}

static void listed(void **state)
{
	(void)state;
	apart(INSTANCES, NULL, NULL, since_570);
	apart(INSTANCES, UUID("3"), NULL, one_by_name);
	apart(INSTANCES, UUID("0") "," UUID("3"), NULL, several_by_name);
	apart(INSTANCES, NULL, "HAL_STAND_IN_CUDA_MIG_OLD", before_570);
	apart(NULL, NULL, NULL, no_instances);
}

static void without_nvml(void **state)
{
	(void)state;
	apart(INSTANCES, NULL, "HAL_STAND_IN_NVML_FAILS", nvml_fails);
}

static void carved(void **state)
{
	(void)state;
	apart(INSTANCES, NULL, NULL, partitions_of_one);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(listed),
		cmocka_unit_test(without_nvml),
		cmocka_unit_test(carved),
	};

	b = hal_backend_cuda(&host);
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The device says how many hardware channels its queues share, as the driver reads that
 * from the environment once a process: each case is a process of its own. */
#define _GNU_SOURCE
#include "host.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <hal/gpu.h>

#define VARIABLE "CUDA_DEVICE_MAX_CONNECTIONS"

/* Return what a process with that value of the variable, which may be NULL, says wrong.
 */
static const char *says(const char *value, const char *want)
{
	static const struct hal_bk_config cfg = {.clock = 1};
	const struct hal_backend *b = hal_backend_cuda(&host);
	static struct hal_gpu_info info = {.size = sizeof(info)};
	const struct hal_gpu_extension *ext;
	void *dev;

	unsetenv(VARIABLE);
	if (value)
		setenv(VARIABLE, value, 1);
	if (b->cold.open(&cfg, 0, &dev))
		return host_text;
	/* The driver has read it by now. */
	setenv(VARIABLE, "32", 1);
	ext = b->cold.extension(dev, "gpu");
	if (ext->info(dev, &info))
		return host_text;
	b->cold.close(dev);
	if (want ? strstr(info.why, want) != NULL : !strstr(info.why, "channels"))
		return NULL;
	return info.why;
}

static void in_a_process(const char *value, const char *want)
{
	int status;
	pid_t child;

	fflush(NULL);
	child = fork();
	if (child == 0) {
		const char *wrong = says(value, want);

		if (wrong)
			fprintf(stderr, "%s=%s: %s\n", VARIABLE, value ? value : "",
				wrong);
		_exit(wrong != NULL);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

static void channels(void **state)
{
	(void)state;
	in_a_process(NULL, "; the device's queues share 8 hardware channels: more than "
			   "8 queues can wait for one another; to avoid this, set "
			   "CUDA_DEVICE_MAX_CONNECTIONS=32 before the process first uses "
			   "CUDA");
	in_a_process("4", "share 4 hardware channels: more than 4 queues can wait");
	in_a_process("31", "share 31 hardware channels");
	in_a_process("32", NULL);
	/* The driver takes no more than that; what is no number is as if it were not set.
	 */
	in_a_process("100", NULL);
	in_a_process("0", "share 8 hardware channels");
	in_a_process("many", "share 8 hardware channels");
	in_a_process("", "share 8 hardware channels");
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(channels)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

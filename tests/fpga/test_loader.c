/* SPDX-License-Identifier: Apache-2.0 */
/*
 * No XRT, another library, one too old, and each way in which the environment would make
 * XRT end the process: told for what it is, before the first call.  A process a case.
 */
#define _GNU_SOURCE
#include "host.h"

#include <dlfcn.h>
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* Probe and open answer want, with this in their text. */
static int says(const struct hal_bk_config *cfg, int want, const char *text)
{
	const struct hal_backend *b = hal_backend_fpga(&host);
	struct hal_device_info info[2];
	void *dev;
	int got;

	memset(info, 0, sizeof(info));
	info[0].size = info[1].size = sizeof(info[0]);
	got = b->cold.probe(cfg, info, 2);
	if (got != want || (text && !strstr(host_text, text))) {
		fprintf(stderr, "probe: %d, not %d: %s: not %s\n", got, want, host_text,
			text ? text : "");
		return 1;
	}
	got = b->cold.open(cfg, 0, &dev);
	if (want < 0 && (got != want || (text && !strstr(host_text, text)))) {
		fprintf(stderr, "open: %d, not %d: %s\n", got, want, host_text);
		return 1;
	}
	return 0;
}

static void probe_says(const struct hal_bk_config *cfg, int want, const char *text)
{
	int status;
	pid_t child;

	fflush(NULL);
	child = fork();
	if (child == 0)
		_exit(says(cfg, want, text));
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void no_library(void **state)
{
	const struct hal_bk_config cfg = {.library = "libxrt_of_nobody.so.2"};

	(void)state;
	probe_says(&cfg, -ENODEV, "no XRT: libxrt_of_nobody.so.2");
}

static void another_library(void **state)
{
	const struct hal_bk_config none = {.library = FPGA_none};
	const struct hal_bk_config old = {.library = FPGA_old};

	(void)state;
	probe_says(&none, -ENODEV, "has no xrtDeviceOpen: XRT 2.13 (2022.1) or later");
	probe_says(&old, -ENODEV, "has no xrtDeviceLoadXclbin: XRT 2.13");
}

/* Value NULL: not set. */
static void with(const char *variable, const char *value, int want, const char *text)
{
	const struct hal_bk_config cfg = {.xclbin = "/nowhere"};
	char *old = getenv(variable) ? strdup(getenv(variable)) : NULL;

	if (value)
		setenv(variable, value, 1);
	else
		unsetenv(variable);
	probe_says(&cfg, want, text);
	if (old)
		setenv(variable, old, 1);
	else
		unsetenv(variable);
	free(old);
}

static void environment(void **state)
{
	(void)state;
	with("XILINX_XRT", NULL, -ENODEV,
	     "XILINX_XRT is not set, without which XRT ends");
	with("XILINX_XRT", "", -ENODEV, "XILINX_XRT is not set");
	with("XILINX_XRT", "/usr", -ENODEV,
	     "XILINX_XRT=/usr: there is no /usr/lib/libxrt_core.so.2");
	with("XCL_EMULATION_MODE", "bogus", -ENODEV,
	     "XCL_EMULATION_MODE=bogus: XRT knows no such mode");
	with("XCL_EMULATION_MODE", "", -ENODEV, "XRT knows no such mode");
	with("XCL_EMULATION_MODE", "hw_emu", -ENOTSUP, "hw_emu: emulation by the vendor");
	with("XCL_EMULATION_MODE", "sw_emu", -ENOTSUP, "sw_emu: emulation by the vendor");
	with("XCL_EMULATION_MODE", "noop", -ENODEV, "there is no ");
	with("XCL_EMULATION_MODE", "noop", -ENODEV, "/lib/libxrt_noop.so.2");
	/* As it is, it is right. */
	with("HAL_FPGA_NOTHING", "1", 2, NULL);
}

/* What the checks are for: XRT, and the stand-in with it, does not survive a first call
 * there. */
static void xrt_ends(void **state)
{
	int status;
	pid_t child;

	(void)state;
	fflush(NULL);
	child = fork();
	if (child == 0) {
		void *library = dlopen("libxrt_coreutil.so.2", RTLD_NOW);
		void *(*open)(unsigned int index) = NULL;
		void *p = library ? dlsym(library, "xrtDeviceOpen") : NULL;

		memcpy(&open, &p, sizeof(p));
		if (!open || !freopen("/dev/null", "w", stderr))
			_exit(1);
		unsetenv("XILINX_XRT");
		(void)open(0);
		_exit(2);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGABRT);
}

static int second_library(void)
{
	const struct hal_bk_config first = {.xclbin = "/nowhere"};
	const struct hal_bk_config second = {.library = FPGA_none};

	return says(&first, 2, NULL) ||
	       says(&second, -EBUSY, "is in use in this process");
}

static void one_a_process(void **state)
{
	int status;
	pid_t child;

	(void)state;
	fflush(NULL);
	child = fork();
	if (child == 0)
		_exit(second_library());
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_library),    cmocka_unit_test(another_library),
		cmocka_unit_test(environment),   cmocka_unit_test(xrt_ends),
		cmocka_unit_test(one_a_process),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

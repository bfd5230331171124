/* SPDX-License-Identifier: Apache-2.0 */
/*
 * No XRT, another library, one too old, no driver, and each way in which the environment
 * would make XRT end the process: told for what it is, before the first call; and which
 * cards there are.  A process a case.
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
#include <sys/stat.h>
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
	with("XILINX_XRT", NULL, -ENODEV, "XILINX_XRT is not set, and XRT would end");
	with("XILINX_XRT", "", -ENODEV, "XILINX_XRT is not set");
	with("XILINX_XRT", "/usr", -ENODEV,
	     "XILINX_XRT=/usr: /usr/lib/libxrt_core.so.2 does not exist");
	with("XCL_EMULATION_MODE", "bogus", -ENODEV,
	     "XCL_EMULATION_MODE=bogus: XRT does not know this mode");
	with("XCL_EMULATION_MODE", "", -ENODEV, "XRT does not know this mode");
	with("XCL_EMULATION_MODE", "hw_emu", -ENOTSUP, "hw_emu: emulation by the vendor");
	with("XCL_EMULATION_MODE", "sw_emu", -ENOTSUP, "sw_emu: emulation by the vendor");
	with("XCL_EMULATION_MODE", "noop", -ENODEV, "does not exist");
	with("XCL_EMULATION_MODE", "noop", -ENODEV, "/lib/libxrt_noop.so.2");
	/* As it is, it is right. */
	with("HAL_FPGA_NOTHING", "1", 2, NULL);
}

/* There it is, and XRT would end the process all the same: a card is not opened. */
static void broken_driver(void **state)
{
	const struct hal_bk_config cfg = {.xclbin = "/nowhere"};
	int status;
	pid_t child;

	(void)state;
	fflush(NULL);
	child = fork();
	if (child == 0) {
		const struct hal_backend *b = hal_backend_fpga(&host);
		void *dev;

		setenv("XILINX_XRT", FPGA_BROKEN, 1);
		if (b->cold.open(&cfg, 0, &dev) == -ENODEV &&
		    strstr(host_text, "cannot load its driver") &&
		    stand_in()->calls(NULL) == 0)
			_exit(0);
		fprintf(stderr, "%s\n", host_text);
		_exit(1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
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

/* ---- cards are those of the kernel's driver ------------------------------------------- */

enum { CARDS_MAX = 64 }; /* of which more are let be */

static char folder[] = "/tmp/hal_xocl_XXXXXX";

static void in_folder(char path[64], const char *name)
{
	snprintf(path, 64, "%.24s/%.24s", folder, name);
}

static void add(const char *name)
{
	char path[64];

	in_folder(path, name);
	assert_int_equal(mkdir(path, 0700), 0);
}

static void take_away(const char *name)
{
	char path[64];

	in_folder(path, name);
	assert_int_equal(rmdir(path), 0);
}

/* These addresses, in this order, and no more; no other can be opened, and these are
 * asked of XRT, which has none. */
static int finds(const char *const *ids, int count)
{
	static const char design[] = "bank A ddr4 0x0 1M\nkernel k 1\n";
	const struct hal_bk_config cfg = {
		.library = FPGA_plain, .cards = folder, .xclbin = make_file(design)};
	const struct hal_backend *b = hal_backend_fpga(&host);
	struct hal_device_info info[3];
	char text[64];
	void *dev;
	int i;

	memset(info, 0, sizeof(info));
	if (b->cold.probe(&cfg, info, 3) != count)
		return 1;
	for (i = 0; i < count && i < 3; i++)
		if (strcmp(info[i].bus_id, ids[i]) != 0 ||
		    info[i].kind != HAL_KIND_FPGA ||
		    (info[i].caps & HAL_CAP_STAND_IN) != 0)
			return 2;
	/* Also where there is room for fewer. */
	if (b->cold.probe(&cfg, info, 1) != count)
		return 3;
	snprintf(text, sizeof(text), "fpga:%d: no such card; there are %d", count, count);
	if (b->cold.open(&cfg, (uint32_t)count, &dev) != -ENODEV ||
	    strcmp(host_text, text) != 0)
		return 4;
	if (b->cold.open(&cfg, (uint32_t)count - 1, &dev) != -ENODEV ||
	    !strstr(host_text, "xrtDeviceOpen: ENODEV: cannot open the card"))
		return 5;
	return 0;
}

static void found(const char *const *ids, int count)
{
	int status;
	pid_t child;

	fflush(NULL);
	child = fork();
	if (child == 0)
		exit(finds(ids, count));
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

static void cards(void **state)
{
	static const char *const ids[] = {"0000:3b:00.1", "0000:af:00.1", "0001:01:00.0"};
	static const char *const others[] = {"bind",          "module",
					     "new_id",        "0000:3b:00",
					     "0000:3b:00.10", "0000:3B:00.1"};
	const struct hal_bk_config cfg = {
		.library = FPGA_plain, .cards = folder, .xclbin = "/nowhere"};
	const struct hal_bk_config none = {
		.library = FPGA_plain, .cards = "/nowhere/xocl", .xclbin = "/nowhere"};
	char name[CARDS_MAX][16];
	size_t i;

	(void)state;
	assert_non_null(mkdtemp(folder));
	probe_says(&none, -ENODEV, "no driver: /nowhere/xocl: ENOENT");
	for (i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		add(others[i]);
	probe_says(&cfg, -ENODEV, "the driver reports no card");
	add(ids[1]);
	found(&ids[1], 1);
	add(ids[2]);
	add(ids[0]);
	found(ids, 3);
	for (i = 0; i < CARDS_MAX; i++) {
		snprintf(name[i], sizeof(name[i]), "0002:%02x:00.0", (unsigned int)i);
		add(name[i]);
	}
	found(ids, CARDS_MAX);
	for (i = 0; i < CARDS_MAX; i++)
		take_away(name[i]);
	for (i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		take_away(others[i]);
	for (i = 0; i < sizeof(ids) / sizeof(ids[0]); i++)
		take_away(ids[i]);
	assert_int_equal(rmdir(folder), 0);
}

static int second_library(void)
{
	const struct hal_bk_config first = {.xclbin = "/nowhere"};
	const struct hal_bk_config second = {.library = FPGA_none};

	return says(&first, 2, NULL) ||
	       says(&second, -EBUSY, "this process already uses");
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
		cmocka_unit_test(no_library),  cmocka_unit_test(another_library),
		cmocka_unit_test(environment), cmocka_unit_test(broken_driver),
		cmocka_unit_test(xrt_ends),    cmocka_unit_test(one_a_process),
		cmocka_unit_test(cards),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

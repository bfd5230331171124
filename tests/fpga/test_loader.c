/* SPDX-License-Identifier: Apache-2.0 */
/*
 * No XRT, another library, one too old, no driver, and each way in which the environment
 * would make XRT end the process: reported before the first call, by the table of
 * tests/vendor/loader.h.  And which cards there are.
 */
#define _GNU_SOURCE
#include "tests/vendor/loader.h"

#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "host.h"

static const struct hal_bk_config nowhere = {.xclbin = "/nowhere"},
				  none = {.library = FPGA_none},
				  old = {.library = FPGA_old},
				  nobody = {.library = "libxrt_of_nobody.so.2"};

static const struct loader_row rows[] = {
	LOADER_REFUSED("no_library", &nobody, -ENODEV, "no XRT: libxrt_of_nobody.so.2",
		       NULL),
	LOADER_REFUSED("another_library", &none, -ENODEV,
		       "has no xrtDeviceOpen: XRT 2.13 (2022.1) or later", NULL),
	LOADER_REFUSED("old_library", &old, -ENODEV,
		       "has no xrtDeviceLoadXclbin: XRT 2.13", NULL),
	LOADER_REFUSED("no_xrt_variable", &nowhere, -ENODEV,
		       "XILINX_XRT is not set, and XRT would end", "XILINX_XRT"),
	LOADER_REFUSED("empty_xrt_variable", &nowhere, -ENODEV, "XILINX_XRT is not set",
		       "XILINX_XRT="),
	LOADER_REFUSED("no_driver_there", &nowhere, -ENODEV,
		       "XILINX_XRT=/usr: /usr/lib/libxrt_core.so.2 does not exist",
		       "XILINX_XRT=/usr"),
	LOADER_REFUSED("unknown_mode", &nowhere, -ENODEV,
		       "XCL_EMULATION_MODE=bogus: XRT does not know this mode",
		       "XCL_EMULATION_MODE=bogus"),
	LOADER_REFUSED("empty_mode", &nowhere, -ENODEV, "XRT does not know this mode",
		       "XCL_EMULATION_MODE="),
	LOADER_REFUSED("hw_emu", &nowhere, -ENOTSUP, "hw_emu: emulation by the vendor",
		       "XCL_EMULATION_MODE=hw_emu"),
	LOADER_REFUSED("sw_emu", &nowhere, -ENOTSUP, "sw_emu: emulation by the vendor",
		       "XCL_EMULATION_MODE=sw_emu"),
	{.name = "no_noop",
	 .cfg = &nowhere,
	 .set = {"XCL_EMULATION_MODE=noop"},
	 .probe = -ENODEV,
	 .texts = {"does not exist", "/lib/libxrt_noop.so.2"}},
	/* The environment as it is, is right; the file is missing. */
	{.name = "right",
	 .cfg = &nowhere,
	 .probe = 2,
	 .open = -ENOENT,
	 .texts = {"/nowhere"}},
};

static int open_broken(const void *arg)
{
	static const char *const texts[2] = {"cannot load its driver"};
	void *dev;

	(void)arg;
	setenv("XILINX_XRT", FPGA_BROKEN, 1);
	return !loader_result("open",
			      hal_backend_fpga(&host)->cold.open(&nowhere, 0, &dev),
			      -ENODEV, texts) ||
	       stand_in()->calls(NULL) != 0;
}

/* There it is, and XRT would end the process all the same: a card is not opened. */
static void broken_driver(void **state)
{
	(void)state;
	assert_int_equal(loader_child(open_broken, NULL), 0);
}

static int call_without_driver(const void *arg)
{
	void *library = dlopen("libxrt_coreutil.so.2", RTLD_NOW);
	void *(*open)(unsigned int index) = NULL;
	void *p = library ? dlsym(library, "xrtDeviceOpen") : NULL;

	(void)arg;
	memcpy(&open, &p, sizeof(p));
	if (!open || !freopen("/dev/null", "w", stderr))
		return 1;
	unsetenv("XILINX_XRT");
	(void)open(0);
	return 2;
}

/* What the checks are for: XRT, and the stand-in with it, does not survive a first call
 * there. */
static void xrt_ends(void **state)
{
	const int status = loader_child(call_without_driver, NULL);

	(void)state;
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
	/* That library has no calls for it. */
	for (i = 0; i < count && i < 3; i++)
		if ((info[i].caps & (HAL_CAP_EXPORT | HAL_CAP_IMPORT)) != 0)
			return 8;
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

struct cards {
	const char *const *ids;
	int count;
};

/* exit removes the files of make_file. */
static int finds_and_exits(const void *arg)
{
	const struct cards *c = arg;

	exit(finds(c->ids, c->count));
}

static void finds_these(const char *const *ids, int count)
{
	const struct cards c = {ids, count};

	assert_int_equal(loader_child(finds_and_exits, &c), 0);
}

static void cards(void **state)
{
	static const char *const ids[] = {"0000:3b:00.1", "0000:af:00.1", "0001:01:00.0"};
	static const char *const others[] = {"bind",          "module",
					     "new_id",        "0000:3b:00",
					     "0000:3b:00.10", "0000:3B:00.1"};
	static const struct hal_bk_config empty = {
		.library = FPGA_plain, .cards = folder, .xclbin = "/nowhere"};
	static const struct hal_bk_config missing = {
		.library = FPGA_plain, .cards = "/nowhere/xocl", .xclbin = "/nowhere"};
	static const struct loader_row no_driver = {
		.name = "no_driver",
		.cfg = &missing,
		.probe = -ENODEV,
		.texts = {"no driver: /nowhere/xocl: ENOENT"}};
	static const struct loader_row no_card = {
		.name = "no_card",
		.cfg = &empty,
		.probe = -ENODEV,
		.texts = {"the driver reports no card"}};
	char name[CARDS_MAX][16];
	size_t i;

	(void)state;
	assert_non_null(mkdtemp(folder));
	loader_check(&no_driver);
	for (i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		add(others[i]);
	loader_check(&no_card);
	add(ids[1]);
	finds_these(&ids[1], 1);
	add(ids[2]);
	add(ids[0]);
	finds_these(ids, 3);
	for (i = 0; i < CARDS_MAX; i++) {
		snprintf(name[i], sizeof(name[i]), "0002:%02x:00.0", (unsigned int)i);
		add(name[i]);
	}
	finds_these(ids, CARDS_MAX);
	for (i = 0; i < CARDS_MAX; i++)
		take_away(name[i]);
	for (i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		take_away(others[i]);
	for (i = 0; i < sizeof(ids) / sizeof(ids[0]); i++)
		take_away(ids[i]);
	assert_int_equal(rmdir(folder), 0);
}

static const struct CMUnitTest cases[] = {
	cmocka_unit_test(broken_driver),
	cmocka_unit_test(xrt_ends),
	cmocka_unit_test(cards),
};

const struct loader_vendor loader_vendor = {
	.backend = hal_backend_fpga,
	.rows = rows,
	.row_count = sizeof(rows) / sizeof(rows[0]),
	.another = {.found = &nowhere,
		    .other = &none,
		    .devices = 2,
		    .bus_id = "stand-in",
		    .busy = "this process already uses",
		    .beyond = "fpga:2: no such card; there are 2"},
	.cases = cases,
	.case_count = sizeof(cases) / sizeof(cases[0]),
};

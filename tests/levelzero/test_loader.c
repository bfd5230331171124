/* SPDX-License-Identifier: Apache-2.0 */
/* What can be wrong before there is a device: each case in a process of its own, as a
 * loader looks at its environment once. */
#define _GNU_SOURCE
#include "host.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { SET_MAX = 4 };

/* What the child found; shared with it. */
struct report {
	int count;    /* of probe */
	int opened;   /* of open */
	int reopened; /* of a second try */
	char text[sizeof(host_text)];
	uint32_t units[8];
	char name[64], bus_id[32];
};

static struct report *report;

static void look(const struct hal_bk_config *cfg)
{
	const struct hal_backend *b = hal_backend_levelzero(&host);
	struct hal_device_info info[8];
	void *dev = NULL;
	int i;

	memset(info, 0, sizeof(info));
	for (i = 0; i < 8; i++)
		info[i].size = sizeof(info[i]);
	report->count = b->cold.probe(cfg, info, 8);
	memcpy(report->text, host_text, sizeof(host_text));
	for (i = 0; i < 8; i++)
		report->units[i] = info[i].unit_cols;
	memcpy(report->name, info[0].name, sizeof(report->name));
	memcpy(report->bus_id, info[0].bus_id, sizeof(report->bus_id));
	report->opened = b->cold.open(cfg, 0, &dev);
	if (report->opened)
		memcpy(report->text, host_text, sizeof(host_text));
	else
		b->cold.close(dev);
	report->reopened = b->cold.open(cfg, 0, &dev);
	if (!report->reopened)
		b->cold.close(dev);
}

/* set: "NAME=value" or "NAME" to take it out of the environment; ends with NULL. */
static void in_a_child(const struct hal_bk_config *cfg, const char *const *set)
{
	int status, i;
	pid_t pid;

	memset(report, 0, sizeof(*report));
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		for (i = 0; i < SET_MAX && set[i]; i++) {
			char name[64];

			snprintf(name, sizeof(name), "%.*s", (int)strcspn(set[i], "="),
				 set[i]);
			if (strchr(set[i], '='))
				setenv(name, strchr(set[i], '=') + 1, 1);
			else
				unsetenv(name);
		}
		look(cfg);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void refused(int err, const char *text)
{
	if (report->count != err || report->opened != err || report->reopened != err ||
	    !strstr(report->text, text))
		fail_msg("probe %d, open %d, %d, not %d; \"%s\" has no \"%s\"",
			 report->count, report->opened, report->reopened, err,
			 report->text, text);
}

static void no_loader(void **state)
{
	const struct hal_bk_config cfg = {.loader = "/nowhere/libze_loader.so.1"};
	const char *const set[] = {NULL};

	(void)state;
	in_a_child(&cfg, set);
	refused(-ENODEV, "no loader: /nowhere/libze_loader.so.1");
}

static void old_loader(void **state)
{
	const struct hal_bk_config cfg = {.loader = OLD_LOADER};
	const char *const set[] = {NULL};

	(void)state;
	in_a_child(&cfg, set);
	refused(-ENODEV, "too old: it has no zeDriverGet");
}

static void no_driver(void **state)
{
	const struct hal_bk_config cfg = {0};
	const char *const set[] = {"ZE_ENABLE_ALT_DRIVERS=/nowhere/libze.so", NULL};

	(void)state;
	in_a_child(&cfg, set);
	refused(-ENODEV, "zeInit: ZE_RESULT_ERROR_UNINITIALIZED (0x78000001)");
}

static void not_a_driver(void **state)
{
	const struct hal_bk_config cfg = {0};
	const char *const set[] = {"ZE_ENABLE_ALT_DRIVERS=" OLD_LOADER, NULL};

	(void)state;
	in_a_child(&cfg, set);
	/* UNINITIALIZED of zeInit (1.8), UNSUPPORTED_FEATURE of zeDriverGet (1.32). */
	refused(-ENODEV, "ZE_RESULT_ERROR_UN");
}

static void init_fails(void **state)
{
	const struct hal_bk_config cfg = {0};
	const char *const set[] = {"HAL_STAND_IN_ZE_FAIL=zeInit:1:0x70000001", NULL};

	(void)state;
	in_a_child(&cfg, set);
	assert_true(report->count < 0 && report->opened < 0);
	assert_non_null(strstr(report->text, "zeInit: ZE_RESULT_"));
}

/* The calls that a loader makes by itself come first, and how many those are is its own
 * business: one of the first calls of that name is ours. */
static void one_fails(const char *call, bool (*as_expected)(void))
{
	const struct hal_bk_config cfg = {0};

	for (int nth = 1; nth <= 16; nth++) {
		char text[96];
		const char *const set[] = {text, NULL};

		snprintf(text, sizeof(text), "HAL_STAND_IN_ZE_FAIL=%s:%d:0x70000002",
			 call, nth);
		in_a_child(&cfg, set);
		if (as_expected())
			return;
	}
	fail_msg("no %s that fails comes to that", call);
}

/* It was once; the next time all is well. */
static bool none_told(void)
{
	return report->count == -ENOMEM && strstr(report->text, "zeDriverGet") != NULL &&
	       report->opened == 0;
}

static void no_drivers_told(void **state)
{
	(void)state;
	one_fails("zeDriverGet", none_told);
}

static bool one_unusable(void)
{
	return report->count == 1 && !strcmp(report->name, "unusable: ENOMEM") &&
	       report->opened == 0;
}

/* A driver that does not tell its devices stands for one that cannot be used. */
static void driver_half_way(void **state)
{
	(void)state;
	one_fails("zeDriverGetApiVersion", one_unusable);
	one_fails("zeDeviceGet", one_unusable);
}

static bool first_unusable(void)
{
	return report->count == 4 && !strcmp(report->name, "unusable: ENOMEM") &&
	       report->units[0] == 0 && report->units[1] == 2 && report->opened == 0;
}

/* A device that answers with an error keeps its number and hides no other. */
static void one_bad_device(void **state)
{
	(void)state;
	one_fails("zeDeviceGetProperties", first_unusable);
	one_fails("zeDeviceGetSubDevices", first_unusable);
	one_fails("zeDeviceGetMemoryProperties", first_unusable);
}

static void no_pci_address(void **state)
{
	const struct hal_bk_config cfg = {0};
	const char *const set[] = {
		"HAL_STAND_IN_ZE_FAIL=zeDevicePciGetPropertiesExt:1:0x78000001", NULL};

	(void)state;
	in_a_child(&cfg, set);
	assert_int_equal(report->count, 4);
	assert_int_equal(report->opened, 0);
	assert_int_equal(strncmp(report->name, "HAL stand-in", 12), 0);
	assert_string_equal(report->bus_id, "levelzero:0");
}

/* A driver that says nothing of its device, before or behind one that does. */
static void null_driver_beside(void **state)
{
	static const char *const sets[] = {
		"ZE_ENABLE_ALT_DRIVERS=" STAND_IN "," NULL_DRIVER,
		"ZE_ENABLE_ALT_DRIVERS=" NULL_DRIVER "," STAND_IN,
	};
	const struct hal_bk_config cfg = {0};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(sets) / sizeof(sets[0]); i++) {
		const char *const set[] = {sets[i], NULL};

		in_a_child(&cfg, set);
		assert_int_equal(report->count, 4);
		assert_int_equal(report->opened, 0);
		assert_int_equal(report->units[1], 2);
	}
}

/* Its programs are no modules: whoever has nothing else is told so. */
static void npu_alone(void **state)
{
	const struct hal_bk_config cfg = {0};
	const char *const set[] = {"ZE_AFFINITY_MASK=4", NULL};

	(void)state;
	in_a_child(&cfg, set);
	refused(-ENODEV, "HAL stand-in NPU is of type 5, which does not support modules");
}

/* More engines than there is room for: the rest are left alone. */
static void many_engines(void **state)
{
	static const struct {
		const char *set;
		uint32_t units[2]; /* of the 1 tile of 1 group, of the 2 tiles of 2 groups
				    */
	} cases[] = {
		{"HAL_STAND_IN_ZE_ENGINES=63", {63, 64}},
		{"HAL_STAND_IN_ZE_ENGINES=64", {64, 64}},
		{"HAL_STAND_IN_ZE_ENGINES=65", {64, 64}},
		{"HAL_STAND_IN_ZE_ENGINES=16", {16, 64}},
		{"HAL_STAND_IN_ZE_ENGINES=15", {15, 60}},
	};
	const struct hal_bk_config cfg = {.units = 3};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *const set[] = {"ZE_AFFINITY_MASK=1,3", cases[i].set, NULL};

		in_a_child(&cfg, set);
		assert_int_equal(report->count, 2);
		assert_int_equal(report->opened, 0);
		assert_int_equal(report->units[0], cases[i].units[1]);
		assert_int_equal(report->units[1], cases[i].units[0]);
	}
}

static void old_driver(void **state)
{
	const struct hal_bk_config cfg = {0};
	const char *const set[] = {"HAL_STAND_IN_ZE_VERSION=1.1", NULL};

	(void)state;
	in_a_child(&cfg, set);
	refused(-ENODEV, "has API version 1.1; 1.2 is needed");
}

static void affinity_mask(void **state)
{
	static const struct {
		const char *set;
		int count;
		uint32_t units[4]; /* tiles, or engines where there is one tile */
	} cases[] = {
		{"ZE_AFFINITY_MASK", 4, {4, 2, 4, 1}},
		{"ZE_AFFINITY_MASK=1", 1, {2}},
		{"ZE_AFFINITY_MASK=0.1", 1, {4}},
		{"ZE_AFFINITY_MASK=0.0,0.2,0.3,3", 2, {3, 1}},
		{"ZE_AFFINITY_MASK=1.0,2", 2, {4, 4}},
	};
	const struct hal_bk_config cfg = {0};
	size_t i;
	int k;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *const set[] = {cases[i].set, NULL};

		in_a_child(&cfg, set);
		assert_int_equal(report->count, cases[i].count);
		assert_int_equal(report->opened, 0);
		for (k = 0; k < cases[i].count; k++)
			assert_int_equal(report->units[k], cases[i].units[k]);
	}
}

/* Each tile a device: those of the 4 and the 2, and the two that have one. */
static void flat(void **state)
{
	static const struct {
		const char *set[2];
		int count;
		uint32_t units[8];
	} cases[] = {
		{{"ZE_FLAT_DEVICE_HIERARCHY=FLAT"}, 8, {4, 4, 4, 4, 4, 4, 4, 1}},
		{{"ZE_FLAT_DEVICE_HIERARCHY=COMBINED"}, 8, {4, 4, 4, 4, 4, 4, 4, 1}},
		{{"ZE_FLAT_DEVICE_HIERARCHY=COMPOSITE"}, 4, {4, 2, 4, 1}},
		{{"ZE_FLAT_DEVICE_HIERARCHY=FLAT", "ZE_AFFINITY_MASK=1,7"}, 2, {4, 1}},
	};
	const struct hal_bk_config cfg = {0};
	size_t i;
	int k;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *const set[] = {cases[i].set[0], cases[i].set[1], NULL};

		in_a_child(&cfg, set);
		assert_int_equal(report->count, cases[i].count);
		assert_int_equal(report->opened, 0);
		for (k = 0; k < cases[i].count; k++)
			assert_int_equal(report->units[k], cases[i].units[k]);
	}
}

static void nothing_visible(void **state)
{
	const struct hal_bk_config cfg = {0};
	const char *const set[] = {"ZE_AFFINITY_MASK=9", NULL};

	(void)state;
	in_a_child(&cfg, set);
	assert_int_equal(report->count, -ENODEV);
	assert_int_equal(report->opened, -ENODEV);
}

static void two_drivers(void **state)
{
	const struct hal_bk_config cfg = {0};
	const char *const set[] = {"ZE_ENABLE_ALT_DRIVERS=" STAND_IN "," STAND_IN_B,
				   NULL};

	(void)state;
	in_a_child(&cfg, set);
	assert_int_equal(report->count, 8);
	assert_int_equal(report->opened, 0);
	assert_int_equal(report->units[5], 2);
	assert_int_equal(strncmp(report->name, "HAL stand-in", 12), 0);
}

/* A process has one loader. */
static void another_loader(void **state)
{
	struct hal_bk_config cfg = {0};
	const struct hal_backend *b;
	int status;
	pid_t pid = fork();

	(void)state;
	assert_true(pid >= 0);
	if (!pid) {
		struct hal_device_info info = HAL_INIT(hal_device_info);

		b = hal_backend_levelzero(&host);
		if (b->cold.probe(&cfg, &info, 1) != 4)
			_exit(1);
		cfg.loader = OLD_LOADER;
		if (b->cold.probe(&cfg, &info, 1) != -EBUSY ||
		    !strstr(host_text, "this process already uses libze_loader.so.1"))
			_exit(2);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static int setup(void **state)
{
	(void)state;
	report = mmap(NULL, sizeof(*report), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	return report == MAP_FAILED ? -1 : 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_loader),
		cmocka_unit_test(old_loader),
		cmocka_unit_test(no_driver),
		cmocka_unit_test(not_a_driver),
		cmocka_unit_test(init_fails),
		cmocka_unit_test(driver_half_way),
		cmocka_unit_test(old_driver),
		cmocka_unit_test(affinity_mask),
		cmocka_unit_test(nothing_visible),
		cmocka_unit_test(two_drivers),
		cmocka_unit_test(another_loader),
		cmocka_unit_test(one_bad_device),
		cmocka_unit_test(no_pci_address),
		cmocka_unit_test(null_driver_beside),
		cmocka_unit_test(npu_alone),
		cmocka_unit_test(no_drivers_told),
		cmocka_unit_test(flat),
		cmocka_unit_test(many_engines),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}

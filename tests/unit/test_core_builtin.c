/* SPDX-License-Identifier: Apache-2.0 */
/* Backends of the build that do not load, in front of one that does (builtin/). */
#include "mock_world.h"
#include "tests/scan.h"

#include <hal/backend.h>
#include <hal/ext/options.h>

const struct hal_backend *hal_backend_refusing(const struct hal_host *host);
const struct hal_backend *hal_backend_silent(const struct hal_host *host);
const struct hal_backend *hal_backend_strange(const struct hal_host *host);
const struct hal_backend *hal_backend_ref(const struct hal_host *host);

const struct hal_backend *hal_backend_refusing(const struct hal_host *host)
{
	(void)(host->fail)(ENOSYS, "refusing: its driver is of another world");
	return NULL;
}

const struct hal_backend *hal_backend_silent(const struct hal_host *host)
{
	(void)host;
	return NULL;
}

const struct hal_backend *hal_backend_strange(const struct hal_host *host)
{
	static struct hal_backend table;

	table = *hal_backend_ref(host);
	table.name = "strange";
	table.abi++;
	return &table;
}

static const struct {
	const char *name;
	int status;
	const char *reason;
} all[] = {
	{"refusing", -EPROTO,
	 "refused to load: refusing: its driver is of another world"},
	{"silent", -EPROTO, "refused to load: no reason given"},
	{"strange", -EPROTO, "has backend ABI"},
	{"ref", 0, ""},
};

static void all_are_listed(void **state)
{
	struct hal_backend_info b = HAL_INIT(hal_backend_info);
	struct hal_device_info d = HAL_INIT(hal_device_info);

	(void)state;
	for (uint32_t i = 0; i < 4; i++) {
		OK(scan_backend(i, NULL, &b));
		assert_string_equal(b.name, all[i].name);
		assert_int_equal(b.status, all[i].status);
		assert_non_null(strstr(b.reason, all[i].reason));
		assert_int_equal(b.device_count, i == 3);
	}
	FAILS(scan_backend(4, NULL, &b), -ERANGE, "past the last");
	OK(scan_device(0, NULL, &d));
	assert_string_equal(d.backend, "ref");
	FAILS(scan_device(1, NULL, &d), -ERANGE, "past the last: the list has 1");
}

static void the_good_one_opens(void **state)
{
	struct hal_device_info d = HAL_INIT(hal_device_info);
	struct hal_device *dev;

	(void)state;
	for (int named = 0; named < 2; named++) {
		OK(hal_open(named ? "ref" : NULL, NULL, &dev));
		OK(hal_device_get_info(dev, &d));
		assert_string_equal(d.backend, "ref");
		OK(hal_close(dev));
	}
	for (int i = 0; i < 3; i++)
		FAILS(hal_open(all[i].name, NULL, &dev), all[i].status, all[i].name,
		      all[i].reason);
}

/* What a bad one would take is not known; what others take is. */
static void sections(void **state)
{
	static const char *const good[] = {"backend.refusing.anything=1", NULL};
	static const char *const bad[] = {"backend.absent.anything=1", NULL};
	static const char *const misspelt[] = {"backend.ref.unitz=1", NULL};
	struct hal_option_info o = HAL_INIT(hal_option_info);
	struct hal_device *dev;

	(void)state;
	setenv("HAL_BACKEND_SILENT_ANYTHING", "1", 1);
	OK(hal_open("ref", good, &dev));
	OK(hal_close(dev));
	OK(scan_option(0, good, &o));
	unsetenv("HAL_BACKEND_SILENT_ANYTHING");
	FAILS(hal_open("ref", bad, &dev), -EINVAL, "no backend absent");
	FAILS(hal_open("ref", misspelt, &dev), -EINVAL, "has no option unitz");
	setenv("HAL_BACKEND_REF_UNITZ", "1", 1);
	FAILS(hal_open("ref", NULL, &dev), -EINVAL, "UNITZ");
	unsetenv("HAL_BACKEND_REF_UNITZ");
	setenv("HAL_BACKEND_ABSENT_X", "1", 1);
	FAILS(hal_open("ref", NULL, &dev), -EINVAL, "HAL_BACKEND_ABSENT_X");
	unsetenv("HAL_BACKEND_ABSENT_X");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_good_one_opens),
		cmocka_unit_test(all_are_listed),
		cmocka_unit_test(sections),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

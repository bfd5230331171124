/* SPDX-License-Identifier: Apache-2.0 */
/* What a backend has not: every operation answers, and a table that is none is refused.
 */
#include "mock_world.h"

#include <hal/backend.h>

#include "config/registry.h"

#define LACKS(call) FAILS(call, -ENOTSUP, "the device cannot")

static void wrong_tables(void **state)
{
	static const char *const cases[][2] = {
		{"head", "cannot hold"},
		{"cold", "cannot hold"},
		{"hot", "cannot hold"},
		{"options", "1 options"},
		{"nameless", "1 to 15"},
		{"", "1 to 15"},
		{"sixteen_letters_", "1 to 15"},
		{"a:b", "1 to 15"},
		{"a?b", "1 to 15"},
		{"a.b", "1 to 15"},
		{"a b", "1 to 15"},
		{"ref", "already"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint32_t count;

		OK(registry_load(""));
		count = registry_count();
		setenv("ODD", cases[i][0], 1);
		FAILS(registry_load(ODD_PLUGIN),
		      i + 1 < sizeof(cases) / sizeof(cases[0]) ? -EPROTO : -EINVAL,
		      cases[i][1], ODD_PLUGIN);
		assert_int_equal(registry_count(), count);
	}
	unsetenv("ODD");
}

static void empty_table(void **state)
{
	const struct hal_bk_partition_desc desc = {0};
	const struct backend *b;
	const struct hal_bk_cold *cold;
	const struct hal_bk_hot *hot;
	struct hal_bk_event ev;
	struct hal_device *dev;
	uint64_t bytes = 1;

	(void)state;
	OK(registry_load(ODD_PLUGIN));
	b = registry_find("odd");
	assert_non_null(b);
	assert_string_equal(b->section, "backend.odd");
	cold = &b->table.cold;
	hot = &b->table.hot;
	FAILS(cold->probe(NULL, NULL, 0), -ENODEV, "cannot look for devices");
	LACKS(cold->open(NULL, 0, NULL));
	cold->close(NULL);
	LACKS(cold->get_info(NULL, NULL));
	LACKS(cold->partition_create(NULL, &desc, NULL));
	LACKS(cold->partition_destroy(NULL, NULL));
	LACKS(cold->queue_create(NULL, NULL, 0, NULL));
	LACKS(cold->queue_destroy(NULL, NULL));
	LACKS(cold->mem_alloc(NULL, NULL, 1, 0, 0, NULL));
	LACKS(cold->mem_free(NULL, NULL));
	LACKS(cold->mem_write(NULL, NULL, 0, NULL, 1));
	LACKS(cold->mem_read(NULL, NULL, 0, NULL, 1));
	LACKS(cold->mem_map(NULL, NULL, NULL));
	LACKS(cold->mem_unmap(NULL, NULL));
	LACKS(cold->program_load(NULL, NULL, 0, NULL));
	LACKS(cold->program_unload(NULL, NULL));
	FAILS(cold->kernel_get(NULL, NULL, 0, NULL, NULL), -ENOENT, "no kernels");
	/* Not having to do anything is no lack. */
	OK(cold->program_bind(NULL, NULL, NULL, &bytes));
	assert_int_equal(bytes, 0);
	OK(cold->program_unbind(NULL, NULL, NULL));
	LACKS(cold->mem_move(NULL, NULL, 0));
	assert_null(cold->extension(NULL, "odd"));
	assert_null(cold->isolation);
	LACKS(hot->submit(NULL, NULL, NULL));
	LACKS(hot->poll(NULL, 0, &ev, 1));
	assert_int_equal(hot->now(NULL), 0);
	LACKS(hot->suspend(NULL, NULL, 0, 0));
	LACKS(hot->resume(NULL, NULL));
	LACKS(hot->resize(NULL, NULL, &desc, 0));
	assert_int_equal(hot->event_fd(NULL), -ENOTSUP);
	assert_null(hot->next);
	assert_null(hot->doorbell);
	LACKS(hot->limit(NULL, NULL, 0, 0));
	LACKS(hal_open("odd", NULL, &dev));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(wrong_tables),
		cmocka_unit_test(empty_table),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

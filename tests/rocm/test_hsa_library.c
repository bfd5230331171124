/* SPDX-License-Identifier: Apache-2.0 */
/* HSA's own runtime, where it is installed (libhsa-runtime64-1): it has all that is
 * called here, and answers what the stand-in does before it is started, and where there
 * is no device. */
#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#include <cmocka.h>

#include "backends/rocm/hsa_calls.h"

static void *library;

static void symbols(void **state)
{
	static const char *const all[] = {
#define NAME(name, params, args)        #name,
#define TYPED(type, name, params, args) #name,
		HSA_CALLS(NAME) HSA_VALUE_CALLS(TYPED) HSA_STORE_CALLS(TYPED)};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (!dlsym(library, all[i]))
			fail_msg("no %s", all[i]);
}

static void no_device(void **state)
{
	uint32_t (*iterate)(uint32_t(*each)(uint64_t agent, void *user), void *user);
	uint32_t (*init)(void);

	(void)state;
	*(void **)&iterate = dlsym(library, "hsa_iterate_agents");
	*(void **)&init = dlsym(library, "hsa_init");
	assert_int_equal(iterate(NULL, NULL), HSAR_NOT_INITIALIZED);
	if (access("/dev/kfd", F_OK) != 0)
		assert_int_equal(init(), HSAR_OUT_OF_RESOURCES);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(symbols),
					   cmocka_unit_test(no_device)};

	if (HSA_LIBRARY[0] == '/')
		library = dlopen(HSA_LIBRARY, RTLD_NOW);
	if (!library && HSA_LIBRARY[0] != '/') {
		puts("skipped: no library of HSA: install libhsa-runtime64-1");
		return 77;
	}
	if (!library) {
		puts(dlerror());
		return 1;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}

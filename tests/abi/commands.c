/* SPDX-License-Identifier: Apache-2.0 */
/* The command builders that the library exports give the bytes of those in hal.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <dlfcn.h>

#include <hal/hal.h>

#define HIGH (UINT64_C(1) << 40)

/* Sets *(fn) to the library's function of that name. */
static void find(const char *name, void *fn)
{
	void *at = dlsym(RTLD_DEFAULT, name);

	/* This call is what links the library. */
	if (at == NULL)
		fail_msg("%s is not exported by %x", name, hal_version());
	memcpy(fn, &at, sizeof(at));
}

static void same(struct hal_cmd a, struct hal_cmd b)
{
	assert_memory_equal(&a, &b, sizeof(a));
}

static void nothing(void *user)
{
	(void)user;
}

static void copy_and_fill(void **state)
{
	struct hal_cmd (*copy)(struct hal_buffer *, uint64_t, struct hal_buffer *,
			       uint64_t, uint64_t);
	struct hal_cmd (*fill)(struct hal_buffer *, uint64_t, uint64_t, uint32_t);
	struct hal_buffer *a = (void *)state, *b = (void *)&state;

	find("hal_cmd_write", &copy);
	same(copy(a, HIGH + 1, b, HIGH + 2, HIGH + 3),
	     hal_cmd_write(a, HIGH + 1, b, HIGH + 2, HIGH + 3));
	find("hal_cmd_read", &copy);
	same(copy(a, HIGH + 1, b, HIGH + 2, HIGH + 3),
	     hal_cmd_read(a, HIGH + 1, b, HIGH + 2, HIGH + 3));
	find("hal_cmd_copy", &copy);
	find("hal_cmd_fill", &fill);
	same(copy(a, HIGH + 1, b, HIGH + 2, HIGH + 3),
	     hal_cmd_copy(a, HIGH + 1, b, HIGH + 2, HIGH + 3));
	same(fill(a, HIGH + 1, HIGH + 2, 0xa1b2c3d4),
	     hal_cmd_fill(a, HIGH + 1, HIGH + 2, 0xa1b2c3d4));
}

static void launch_and_host(void **state)
{
	struct hal_cmd (*launch)(struct hal_kernel *, const struct hal_arg *, uint32_t);
	struct hal_cmd (*host)(hal_host_fn, void *);
	struct hal_kernel *kernel = (void *)state;
	struct hal_arg args[3] = {{0}};

	find("hal_cmd_launch", &launch);
	find("hal_cmd_host", &host);
	same(launch(kernel, args, 3), hal_cmd_launch(kernel, args, 3));
	same(host(nothing, args), hal_cmd_host(nothing, args));
}

static void others(void **state)
{
	struct hal_cmd (*barrier)(void);
	struct hal_cmd (*timestamp)(struct hal_buffer *, uint64_t);
	struct hal_cmd (*of)(uint32_t, uint32_t);
	struct hal_buffer *a = (void *)state;

	find("hal_cmd_barrier", &barrier);
	find("hal_cmd_timestamp", &timestamp);
	find("hal_cmd_of", &of);
	same(barrier(), hal_cmd_barrier());
	same(timestamp(a, HIGH + 8), hal_cmd_timestamp(a, HIGH + 8));
	same(of(UINT32_MAX, UINT32_MAX - 1), hal_cmd_of(UINT32_MAX, UINT32_MAX - 1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(copy_and_fill),
		cmocka_unit_test(launch_and_host),
		cmocka_unit_test(others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Images that another process may have sent: which backends accept them, and how the
 * software device finds the kernels that an image names. */
#include "ref_world.h"

#include "config/registry.h"

#include <hal/ref.h>

/* Each backend of this tree has been checked for pointers in its images. */
static void backends_accept_foreign_images(void **state)
{
	(void)state;
	OK(registry_load(""));
	assert_true(registry_count() > 0);
	for (uint32_t i = 0; i < registry_count(); i++) {
		const struct hal_backend *t = &registry_at(i)->table;

		if ((t->flags & HAL_BK_IMAGES_FOREIGN) == 0)
			fail_msg("%s has no HAL_BK_IMAGES_FOREIGN", t->name);
	}
	/* A plug-in that does not say so has not been checked. */
	OK(registry_load(MOCK_PLUGIN));
	assert_int_equal(registry_find("mock")->table.flags, 0);
}

/* ---- kernels ---------------------------------------------------------------------- */

struct image {
	struct hal_ref_image head;
	char names[1][HAL_REF_NAME];
};

static struct image image_of(const char *name)
{
	struct image i = {{HAL_REF_MAGIC, HAL_REF_VERSION, HAL_REF_NAME, 1}, {""}};

	(void)snprintf(i.names[0], sizeof(i.names[0]), "%s", name);
	return i;
}

/* Count in *user how often it is called. */
static int count(const struct hal_ref_call *call)
{
	(*(uint32_t *)call->user)++;
	return 0;
}

static int load(struct hal_device *dev, const char *name, struct hal_program **prog)
{
	const struct image i = image_of(name);

	return hal_program_load(dev, &i, sizeof(i), prog);
}

static void run(struct ref *r, struct hal_program *prog, const char *name)
{
	struct hal_kernel *k;
	struct hal_point done;

	OK(hal_kernel_find(prog, name, &k));
	OK(submit_cmd(r->q, hal_cmd_launch(k, NULL, 0), &done));
	OK(hal_wait(&done, 1, 0, HAL_FOREVER));
}

/* A loaded program keeps its function when another kernel takes the name. */
static void a_name_is_registered_again(void **state)
{
	uint32_t calls[2] = {0, 0};
	struct hal_ref_kernel k = {.name = "count", .fn = count, .user = &calls[0]};
	struct hal_program *first, *second;
	struct ref r;

	(void)state;
	ref_open_with(&r, "ref?clock=virtual", NULL);
	OK(hal_ref_load(r.dev, &k, 1, &first));
	k.user = &calls[1];
	OK(hal_ref_load(r.dev, &k, 1, &second));
	run(&r, first, "count");
	run(&r, second, "count");
	run(&r, second, "count");
	assert_int_equal(calls[0], 1);
	assert_int_equal(calls[1], 2);
	OK(hal_program_unload(first));
	OK(hal_program_unload(second));
	ref_close(&r);
}

/* What is registered with one device, another does not have. */
static void devices_have_kernels_of_their_own(void **state)
{
	const struct hal_ref_kernel k = {.name = "count", .fn = count};
	struct hal_device *with, *without;
	struct hal_program *prog;

	(void)state;
	OK(hal_open("ref", NULL, &with));
	OK(hal_open("ref", NULL, &without));
	OK(hal_ref_load(with, &k, 1, &prog));
	OK(hal_program_unload(prog));
	OK(load(with, "count", &prog));
	OK(hal_program_unload(prog));
	FAILS(load(without, "count", &prog), -ENOENT, "'count'", "kernels=\"\"");
	OK(hal_close(with));
	OK(hal_close(without));
}

/* All of a table is registered, or nothing. */
static void wrong_kernels(void **state)
{
	struct hal_ref_kernel k[2] = {{.name = "good", .fn = count},
				      {.name = "bad", .fn = count}};
	const struct hal_ref_extension *ref;
	struct hal_program *prog;
	struct hal_device *dev;

	(void)state;
	OK(hal_open("ref", NULL, &dev));
	ref = hal_device_get_extension(dev, "ref");
	assert_non_null(ref);
	k[1].fn = NULL;
	FAILS(hal_ref_load(dev, k, 2, &prog), -EINVAL, "'bad'", "fn is NULL");
	k[1].fn = count;
	k[1].arg_count = HAL_ARGS_MAX + 1;
	FAILS(hal_ref_load(dev, k, 2, &prog), -EINVAL, "'bad'", "17");
	k[1].arg_count = 0;
	k[1].name[0] = 0;
	FAILS(hal_ref_load(dev, k, 2, &prog), -EINVAL, "kernel 1");
	memset(k[1].name, 'x', sizeof(k[1].name));
	FAILS(hal_ref_load(dev, k, 2, &prog), -EINVAL, "kernel 1");
	FAILS(ref->add_kernels(hal_device_get_native(dev), NULL, 2), -EINVAL,
	      "kernels is NULL");
	FAILS(hal_ref_load(dev, k, 0, &prog), -EINVAL, "no kernels");
	FAILS(hal_ref_load(NULL, k, 1, &prog), -ENOTSUP, "dev");
	FAILS(load(dev, "good", &prog), -ENOENT, "'good'");
	OK(hal_close(dev));
}

/* ---- libraries -------------------------------------------------------------------- */

#define KERNELS "backend.ref.kernels="

/* The conformance kernels, and one of the same name that the application registers. */
static void kernels_of_a_library(void **state)
{
	static const char *const options[] = {KERNELS ":" REF_KERNELS ":", NULL};
	struct hal_kernel_info info = HAL_INIT(hal_kernel_info);
	uint32_t calls = 0;
	const struct hal_ref_kernel own = {.name = "copy", .fn = count, .user = &calls};
	struct hal_program *prog;
	struct hal_kernel *k;
	struct ref r;

	(void)state;
	ref_open_with(&r, "ref?clock=virtual", options);
	OK(load(r.dev, "copy", &prog));
	OK(hal_kernel_find(prog, "copy", &k));
	OK(hal_kernel_get_info(k, &info));
	assert_int_equal(info.arg_count, 2);
	OK(hal_program_unload(prog));
	FAILS(load(r.dev, "copy2", &prog), -ENOENT, "'copy2'", REF_KERNELS);
	OK(hal_ref_load(r.dev, &own, 1, &prog));
	run(&r, prog, "copy");
	assert_int_equal(calls, 1);
	OK(hal_program_unload(prog));
	ref_close(&r);
}

static void wrong_libraries(void **state)
{
	static const char *const missing[] = {KERNELS REF_KERNELS ":/none/x.so", NULL};
	static const char *const other[] = {KERNELS "libc.so.6", NULL};
	static const char *const old[] = {KERNELS OLD_KERNELS, NULL};
	struct hal_device *dev;

	(void)state;
	FAILS(hal_open("ref", missing, &dev), -ENOENT, "kernels=", "/none/x.so");
	FAILS(hal_open("ref", other, &dev), -EPROTO, "libc.so.6", "hal_ref_library");
	FAILS(hal_open("ref", old, &dev), -EPROTO, OLD_KERNELS, "version 1");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(backends_accept_foreign_images),
		cmocka_unit_test(a_name_is_registered_again),
		cmocka_unit_test(devices_have_kernels_of_their_own),
		cmocka_unit_test(wrong_kernels),
		cmocka_unit_test(kernels_of_a_library),
		cmocka_unit_test(wrong_libraries),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A backend out of the tree that is loaded and then does two things wrong: it takes the
 * option clock=virtual without having such a clock, and its kernel has too many
 * arguments; besides it has partitions and no more.  Its name is that of its file, so
 * that copies of it are many backends.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <hal/backend.h>

const struct hal_backend *hal_backend_entry(const struct hal_host *host);

static const struct hal_option_def options[] = {
	{"clock", HAL_OPTION_ENUM, 0, 0, "real|virtual", "real", "one that it lacks"},
};

static int odd_open(const struct hal_bk_config *cfg, uint32_t index, void **dev)
{
	static int device;

	(void)cfg, (void)index;
	*dev = &device;
	return 0;
}

static int odd_get_info(void *dev, struct hal_device_info *info)
{
	(void)dev;
	info->unit_rows = 1;
	info->unit_cols = 1;
	info->partitions_max = 1;
	return 0;
}

static int odd_partition_create(void *dev, const struct hal_bk_partition_desc *desc,
				void **part)
{
	(void)desc;
	*part = dev;
	return 0;
}

static int odd_partition_destroy(void *dev, void *part)
{
	(void)dev, (void)part;
	return 0;
}

static int odd_program_load(void *dev, const void *image, size_t size, void **prog)
{
	(void)image, (void)size;
	*prog = dev;
	return 0;
}

static int odd_program_unload(void *dev, void *prog)
{
	(void)dev, (void)prog;
	return 0;
}

static int odd_kernel_get(void *dev, void *prog, uint32_t index,
			  struct hal_bk_kernel_info *info, void **kernel)
{
	if (index > 0)
		return -ENOENT;
	(void)dev;
	snprintf(info->name, sizeof(info->name), "greedy");
	info->arg_count = HAL_ARGS_MAX + 1;
	*kernel = prog;
	return 0;
}

__attribute__((visibility("default"))) const struct hal_backend *
hal_backend_entry(const struct hal_host *host)
{
	static char name[16];
	static struct hal_backend table = {
		.size = sizeof(struct hal_backend),
		.abi = HAL_BACKEND_ABI,
		.name = name,
		.summary = "odd",
		.score = -1,
		.option_count = 1,
		.options = options,
		.cold_size = sizeof(struct hal_bk_cold),
		.hot_size = sizeof(struct hal_bk_hot),
		.cold = {.open = odd_open,
			 .get_info = odd_get_info,
			 .partition_create = odd_partition_create,
			 .partition_destroy = odd_partition_destroy,
			 .program_load = odd_program_load,
			 .program_unload = odd_program_unload,
			 .kernel_get = odd_kernel_get},
	};
	const char *base;
	Dl_info where;

	(void)host;
	if (dladdr(name, &where) == 0)
		return NULL;
	base = strrchr(where.dli_fname, '/');
	base = base != NULL ? base + 1 : where.dli_fname;
	snprintf(name, sizeof(name), "%.*s", (int)strcspn(base, "."), base);
	return &table;
}

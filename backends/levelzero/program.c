/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs of a Level Zero device: a module and its kernels for each tile.  All are made
 * at load, on the caller's thread: the driver compiles, and the engine must not wait for
 * that.
 */
#define _GNU_SOURCE
#include "internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Copy the beginning of log, in one line.  The driver is given room for all of it: into
 * less it copies nothing, and releases of it wrote behind the end. */
static void copy_log(void *log, char *text, size_t bytes)
{
	size_t all = 0, i;
	char *whole;

	if (lz.zeModuleBuildLogGetString(log, &all, NULL) || !all)
		return;
	whole = calloc(1, all + 1);
	if (!whole)
		return;
	if (!lz.zeModuleBuildLogGetString(log, &all, whole))
		snprintf(text, bytes, "%s", whole);
	free(whole);
	for (i = 0; text[i]; i++)
		if ((unsigned char)text[i] < ' ')
			text[i] = ' ';
}

/* What the compiler said; not only build failures have a log.  Reading it uses it up. */
static void read_log(struct lz_device *dev, void *log, char *text, size_t bytes)
{
	text[0] = 0;
	if (!log)
		return;
	copy_log(log, text, bytes);
	/* A log that will not go is no reason to refuse the module. */
	lz_discard(dev, LZ_KIND_LOG, log, (struct lz_group){0});
}

/* Code that may meet a buffer larger than the driver gives by itself has to be made so.
 */
static const char *build_flags(const struct lz_shape *s)
{
	return s->relaxed && s->memory_bytes > s->props.max_mem_alloc_size
		       ? "-ze-opt-greater-than-4GB-buffer-required"
		       : NULL;
}

static int create_module(struct lz_device *dev, struct lz_program *prog, uint32_t tile)
{
	const struct ze_module_desc d = {
		.stype = LZ_STYPE_MODULE_DESC,
		.format = prog->format,
		.input_size = prog->code_bytes,
		.input = prog->code,
		.build_flags = build_flags(&dev->shape),
	};
	char text[256];
	void *log = NULL;
	uint32_t r;

	lz_making(LZ_KIND_MODULE);
	r = lz.zeModuleCreate(dev->context, dev->shape.tiles[tile], &d,
			      &prog->modules[tile], lz_build_logs ? &log : NULL);
	(void)lz_made(dev, LZ_KIND_MODULE, 0);
	read_log(dev, log, text, sizeof(text));
	if (!r)
		return 0;
	prog->modules[tile] = NULL;
	return lz_host->fail(lz_errno(r), "levelzero: zeModuleCreate: %s (0x%x)%s%s",
			     lz_result_name(r), r, text[0] ? ": " : "", text);
}

/* A raw native binary: names from the driver. */
static int name_kernels(struct lz_program *prog, uint32_t tile)
{
	const char **names;
	uint32_t count = 0, i;
	int err = LZ(zeModuleGetKernelNames, prog->modules[tile], &count, NULL);

	if (err)
		return err;
	if (!count)
		return lz_host->fail(EINVAL, "levelzero: the module has no kernel");
	names = calloc(count, sizeof(*names));
	prog->kernels = calloc(count, sizeof(*prog->kernels));
	if (!names || !prog->kernels) {
		err = lz_host->fail(ENOMEM, "levelzero: no memory for %u kernels", count);
		goto out;
	}
	err = LZ(zeModuleGetKernelNames, prog->modules[tile], &count, names);
	for (i = 0; !err && i < count; i++) {
		struct lz_kernel *k = &prog->kernels[i];

		k->prog = prog;
		k->info.arg_count = UINT32_MAX; /* asked of the driver below */
		k->takes_address = true;
		k->group_size[0] = k->group_size[1] = k->group_size[2] = 1;
		if (strlen(names[i]) >= sizeof(k->info.name))
			err = lz_host->fail(
				EINVAL,
				"levelzero: kernel name %.40s... is longer than "
				"31 bytes",
				names[i]);
		else
			memcpy(k->info.name, names[i], strlen(names[i]));
	}
	if (!err)
		prog->count = count;
out:
	free((void *)names);
	return err;
}

static int create_kernel(struct lz_device *dev, struct lz_program *prog,
			 struct lz_kernel *k, uint32_t tile)
{
	const struct ze_kernel_desc d = {.stype = LZ_STYPE_KERNEL_DESC,
					 .name = k->info.name};
	struct ze_kernel_properties p = {.stype = LZ_STYPE_KERNEL_PROPERTIES};
	uint32_t r, i;
	int err;

	lz_making(LZ_KIND_KERNEL);
	r = lz.zeKernelCreate(prog->modules[tile], &d, &k->handles[tile]);
	(void)lz_made(dev, LZ_KIND_KERNEL, 0);
	if (r) {
		k->handles[tile] = NULL;
		/* The table in front of the module names what is not there. */
		return lz_host->fail(lz_errno(r),
				     "levelzero: zeKernelCreate: %s (0x%x): kernel %s",
				     lz_result_name(r), r, k->info.name);
	}
	err = LZ(zeKernelGetProperties, k->handles[tile], &p);
	if (err)
		return err;
	for (i = 0; i < 3; i++)
		if (p.required_group_size[i])
			k->group_size[i] = p.required_group_size[i];
	memcpy(k->info.group_size, k->group_size, sizeof(k->group_size));
	memcpy(k->group_most, dev->shape.max_group_size, sizeof(k->group_most));
	/* Shared memory of a launch would be an argument, so .shared_max is 0. */
	k->info.group_size_max =
		p.required_group_size[0] ? 0 : dev->shape.max_group_items;
	if (k->takes_address)
		err = LZ(zeKernelSetIndirectAccess, k->handles[tile],
			 LZ_INDIRECT_HOST | LZ_INDIRECT_DEVICE | LZ_INDIRECT_SHARED);
	if (err)
		return err;
	if (k->info.arg_count == UINT32_MAX)
		k->info.arg_count = p.arg_count;
	if (k->info.arg_count != p.arg_count || p.arg_count > HAL_ARGS_MAX)
		return lz_host->fail(EINVAL,
				     "levelzero: kernel %s has %u arguments, but the "
				     "image declares %u; the limit is %u",
				     k->info.name, p.arg_count, k->info.arg_count,
				     HAL_ARGS_MAX);
	r = lz.zeKernelSetGroupSize(k->handles[tile], k->group_size[0], k->group_size[1],
				    k->group_size[2]);
	if (r)
		return lz_host->fail(
			lz_errno(r),
			"levelzero: zeKernelSetGroupSize: %s (0x%x): kernel %s, "
			"groups of %u x %u x %u",
			lz_result_name(r), r, k->info.name, k->group_size[0],
			k->group_size[1], k->group_size[2]);
	memcpy(k->given[tile].group_size, k->group_size, sizeof(k->group_size));
	return 0;
}

static void drop_tile(struct lz_device *dev, struct lz_program *prog, uint32_t tile,
		      int *err)
{
	uint32_t i;

	for (i = 0; i < prog->count; i++) {
		lz_drop(dev, LZ_KIND_KERNEL, prog->kernels[i].handles[tile], prog->group,
			err);
		prog->kernels[i].handles[tile] = NULL;
	}
	lz_drop(dev, LZ_KIND_MODULE, prog->modules[tile], prog->group, err);
	prog->modules[tile] = NULL;
}

static int make_tile(struct lz_device *dev, struct lz_program *prog, uint32_t tile)
{
	int err = create_module(dev, prog, tile);
	uint32_t i;

	if (!err && !prog->count)
		err = name_kernels(prog, tile);
	for (i = 0; !err && i < prog->count; i++)
		err = create_kernel(dev, prog, &prog->kernels[i], tile);
	if (err)
		drop_tile(dev, prog, tile, &err);
	return err;
}

int lz_program_load(void *device, const void *image, size_t size, void **out)
{
	struct lz_device *dev = device;
	struct lz_program *prog = calloc(1, sizeof(*prog));
	int err, ignored = 0;
	uint32_t k, t;

	if (!prog)
		return lz_host->fail(ENOMEM, "levelzero: no memory for a program");
	prog->group.id = lz_id(dev);
	err = lz_image_parse(image, size, prog);
	for (k = 0; !err && k < prog->count; k++)
		memcpy(prog->kernels[k].params.groups_max, dev->shape.max_groups,
		       sizeof(dev->shape.max_groups));
	for (t = 0; !err && t < dev->shape.tile_count; t++)
		err = make_tile(dev, prog, t);
	if (err) {
		for (t = 0; t < dev->shape.tile_count; t++)
			drop_tile(dev, prog, t, &ignored);
		free(prog->kernels);
		free(prog);
		return err;
	}
	*out = prog;
	return 0;
}

int lz_program_unload(void *device, void *program)
{
	struct lz_device *dev = device;
	struct lz_program *prog = program;
	uint32_t t;
	int err = 0;

	for (t = 0; t < dev->shape.tile_count; t++)
		drop_tile(dev, prog, t, &err);
	free(prog->kernels);
	free(prog);
	return err;
}

int lz_kernel_get(void *device, void *program, uint32_t index,
		  struct hal_bk_kernel_info *info, void **kernel)
{
	struct lz_program *prog = program;

	(void)device;
	if (index >= prog->count)
		return lz_host->fail(
			ENOENT, "levelzero: there is no kernel %u; the program has %u",
			index, prog->count);
	*info = prog->kernels[index].info;
	*kernel = &prog->kernels[index];
	return 0;
}

/* Nothing is left to do: the program is on all tiles since it was loaded. */
int lz_program_bind(void *device, void *program, void *partition, uint64_t *bytes)
{
	(void)device;
	(void)program;
	(void)partition;
	*bytes = 0; /* the driver's memory, which it does not tell of */
	return 0;
}

/* The modules go with the program. */
int lz_program_unbind(void *device, void *program, void *partition)
{
	(void)device;
	(void)program;
	(void)partition;
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* program.c - programs, their kernels, and the partitions they have been placed in. */
#include "internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Frees what the core holds of it; the backend has let go already. */
static void program_free(struct hal_program *prog)
{
	for (uint32_t i = 0; i < prog->kernel_count; i++)
		object_free(OBJECT_KERNEL, prog->kernels[i]);
	free(prog->kernels);
	free(prog->bound_bytes);
	free(prog->image);
	prog->kernels = NULL;
	prog->kernel_count = 0;
	prog->bound_bytes = NULL;
	prog->image = NULL;
	object_free(OBJECT_PROGRAM, prog);
}

static int kernel_add(struct hal_program *prog, const struct hal_bk_kernel_info *info,
		      void *bk)
{
	struct hal_kernel **more;
	struct hal_kernel *k;

	if (info->arg_count > HAL_ARGS_MAX)
		return fail(EPROTO,
			    "kernel %.31s has %u arguments, at most %d are possible",
			    info->name, info->arg_count, HAL_ARGS_MAX);
	more = realloc(prog->kernels,
		       (prog->kernel_count + 1) * sizeof(struct hal_kernel *));
	if (more == NULL)
		return fail(ENOMEM, "no memory for the kernels of a program");
	prog->kernels = more;
	k = object_alloc(OBJECT_KERNEL, sizeof(*k));
	if (k == NULL)
		return -ENOMEM;
	k->prog = prog;
	k->user = prog->dev;
	k->bk = bk;
	k->info = *info;
	k->bound = prog->bound;
	k->inline_args =
		info->arg_count <= INLINE_ARGS_MAX ? info->arg_count : UINT32_MAX;
	k->slots = launch_slots(info->arg_count);
	k->flags = record_flags(0, k->slots, REC_END);
	k->info.name[sizeof(k->info.name) - 1] = '\0';
	prog->kernels[prog->kernel_count++] = k;
	return 0;
}

/* Under the lock. */
static int kernels_list(struct hal_program *prog)
{
	struct hal_device *dev = prog->dev;

	for (uint32_t i = 0;; i++) {
		struct hal_bk_kernel_info info;
		void *bk = NULL;
		int err;

		memset(&info, 0, sizeof(info));
		err = dev->backend->table.cold.kernel_get(dev->bk, prog->bk, i, &info,
							  &bk);
		if (err == -ENOENT)
			return 0;
		if (err == 0)
			err = kernel_add(prog, &info, bk);
		if (err != 0)
			return err;
	}
}

int hal_program_load(struct hal_device *dev, const void *image, size_t size,
		     struct hal_program **out)
{
	struct hal_program *prog;
	size_t words;
	int err;

	if (!OBJECT_OK(dev, OBJECT_DEVICE))
		return object_bad(dev, OBJECT_DEVICE);
	if (image == NULL || out == NULL)
		return fail(EINVAL, "hal_program_load: %s is NULL",
			    image == NULL ? "image" : "prog");
	if (size == 0)
		return fail(EINVAL, "hal_program_load: an image of 0 bytes");
	words = (dev->info.partitions_max + 63) / 64;
	prog = object_alloc(OBJECT_PROGRAM,
			    sizeof(*prog) + words * sizeof(prog->bound[0]));
	if (prog == NULL)
		return -ENOMEM;
	prog->dev = dev;
	list_init(&prog->on_device);
	prog->image = malloc(size);
	prog->bound_bytes = calloc(dev->info.partitions_max, sizeof(uint64_t));
	if (prog->image == NULL || prog->bound_bytes == NULL) {
		program_free(prog);
		return fail(ENOMEM, "no memory for an image of %zu bytes", size);
	}
	memcpy(prog->image, image, size);
	device_lock(dev);
	err = dev->backend->table.cold.program_load(dev->bk, prog->image, size,
						    &prog->bk);
	if (err == 0) {
		err = kernels_list(prog);
		if (err != 0)
			(void)dev->backend->table.cold.program_unload(dev->bk, prog->bk);
	}
	if (err != 0) {
		program_free(prog);
		goto out;
	}
	list_add_before(&dev->programs, &prog->on_device);
	dev->program_count++;
	*out = prog;
out:
	device_unlock(dev);
	return err;
}

static bool is_bound(const struct hal_program *prog, uint32_t index)
{
	return (atomic_load_explicit(&prog->bound[index / 64], memory_order_relaxed) >>
			index % 64 &
		1) != 0;
}

static void unbind(struct hal_program *prog, struct hal_partition *part)
{
	struct hal_device *dev = prog->dev;
	uint32_t i = part->desc.index;

	(void)dev->backend->table.cold.program_unbind(dev->bk, prog->bk, part->bk);
	partition_release(part, prog->bound_bytes[i]);
	prog->bound_bytes[i] = 0;
	atomic_fetch_and(&prog->bound[i / 64], ~(UINT64_C(1) << i % 64));
}

/* The program is placed in every partition it runs in, once. */
int program_bind(struct hal_program *prog, struct hal_partition *part)
{
	struct hal_device *dev = prog->dev;
	uint32_t i = part->desc.index;
	uint64_t bytes = 0;
	int err = 0;

	device_lock(dev);
	if (is_bound(prog, i))
		goto out;
	err = dev->backend->table.cold.program_bind(dev->bk, prog->bk, part->bk, &bytes);
	if (err != 0)
		goto out;
	err = partition_charge(part, bytes, "constants of a program");
	if (err != 0) {
		(void)dev->backend->table.cold.program_unbind(dev->bk, prog->bk,
							      part->bk);
		goto out;
	}
	prog->bound_bytes[i] = bytes;
	atomic_fetch_or_explicit(&prog->bound[i / 64], UINT64_C(1) << i % 64,
				 memory_order_release);
out:
	device_unlock(dev);
	return err;
}

void program_unbind_all(struct hal_partition *part)
{
	hal_list_for_each (it, &part->dev->programs) {
		struct hal_program *prog =
			container_of(it, struct hal_program, on_device);

		if (is_bound(prog, part->desc.index))
			unbind(prog, part);
	}
}

static void program_bury(void *object)
{
	struct hal_program *prog = object;
	struct hal_device *dev = prog->dev;

	hal_list_for_each (it, &dev->partitions) {
		struct hal_partition *p =
			container_of(it, struct hal_partition, on_device);

		if (is_bound(prog, p->desc.index))
			unbind(prog, p);
	}
	list_del(&prog->on_device);
	(void)dev->backend->table.cold.program_unload(dev->bk, prog->bk);
	program_free(prog);
}

int hal_program_unload(struct hal_program *prog)
{
	struct hal_device *dev;
	int err;

	if (prog == NULL)
		return 0;
	if (!OBJECT_OK(prog, OBJECT_PROGRAM))
		return object_bad(prog, OBJECT_PROGRAM);
	err = callback_refuse("hal_program_unload");
	if (err != 0)
		return err;
	dev = prog->dev;
	device_lock(dev);
	object_retire(&prog->obj);
	for (uint32_t i = 0; i < prog->kernel_count; i++) {
		object_retire(&prog->kernels[i]->obj);
		prog->kernels[i]->user = NULL;
	}
	dev->program_count--;
	err = grave_dig(dev, NULL, program_bury, prog);
	if (err != 0) {
		/* As if it had not been asked. */
		prog->obj.magic = OBJECT_MAGIC(OBJECT_PROGRAM);
		for (uint32_t i = 0; i < prog->kernel_count; i++) {
			prog->kernels[i]->obj.magic = OBJECT_MAGIC(OBJECT_KERNEL);
			prog->kernels[i]->user = dev;
		}
		dev->program_count++;
	}
	device_unlock(dev);
	return err;
}

int hal_kernel_find(struct hal_program *prog, const char *name,
		    struct hal_kernel **kernel)
{
	if (!OBJECT_OK(prog, OBJECT_PROGRAM))
		return object_bad(prog, OBJECT_PROGRAM);
	if (name == NULL || kernel == NULL)
		return fail(EINVAL, "hal_kernel_find: %s is NULL",
			    name == NULL ? "name" : "kernel");
	for (uint32_t i = 0; i < prog->kernel_count; i++) {
		if (strcmp(prog->kernels[i]->info.name, name) == 0) {
			*kernel = prog->kernels[i];
			return 0;
		}
	}
	return fail(ENOENT, "the program has no kernel \"%s\" among its %u", name,
		    prog->kernel_count);
}

int hal_kernel_get_info(const struct hal_kernel *kernel, struct hal_kernel_info *info)
{
	struct hal_kernel_info i = HAL_INIT(hal_kernel_info);

	if (!OBJECT_OK(kernel, OBJECT_KERNEL))
		return object_bad(kernel, OBJECT_KERNEL);
	i.arg_count = kernel->info.arg_count;
	memcpy(i.name, kernel->info.name, sizeof(i.name));
	for (uint32_t n = 0; n < HAL_ARGS_MAX; n++)
		i.arg_bytes[n] = kernel->info.arg_bytes[n];
	i.work = kernel->info.work;
	return export_struct(info, &i, sizeof(i), offsetof(struct hal_kernel_info, name),
			     "hal_kernel_info");
}

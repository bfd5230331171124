/* SPDX-License-Identifier: Apache-2.0 */
/* Programs of a ROCm device: a module, or code that HSA has loaded, and its kernels.  All
 * that loads code happens at load, on the caller's thread. */
#define _GNU_SOURCE
#include "internal.h"

#include <errno.h>
#include <stdlib.h>

/* A grid is counted in work-items below, in 32 bits. */
static void set_most(const struct rocm_device *dev, struct rocm_kernel *k)
{
	uint32_t i;

	for (i = 0; i < 3; i++) {
		k->params.groups_max[i] = UINT32_MAX / k->block[i];
		if (k->params.groups_max[i] > (uint32_t)dev->shape.max_grid[i])
			k->params.groups_max[i] = (uint32_t)dev->shape.max_grid[i];
	}
}

static int check_block(const struct rocm_device *dev, struct rocm_kernel *k)
{
	const uint32_t most = (uint32_t)dev->shape.max_shared;
	const uint64_t items = (uint64_t)k->block[0] * k->block[1] * k->block[2];
	bool fits = items <= (uint64_t)dev->shape.max_threads;
	uint32_t i;

	for (i = 0; i < 3; i++)
		fits &= k->block[i] <= (uint32_t)dev->shape.max_block[i];
	if (!fits)
		return rocm_host->fail(EINVAL,
				       "rocm: kernel %s: groups of %u x %u x %u "
				       "work-items; the device allows at most %d",
				       k->info.name, k->block[0], k->block[1],
				       k->block[2], dev->shape.max_threads);
	if (k->shared_bytes > (uint32_t)dev->shape.max_shared)
		return rocm_host->fail(
			EINVAL,
			"rocm: kernel %s: %u bytes of LDS; a group may have at most %d",
			k->info.name, k->shared_bytes, dev->shape.max_shared);
	if (k->info.group_size_max > (uint32_t)dev->shape.max_threads)
		k->info.group_size_max = (uint32_t)dev->shape.max_threads;
	k->info.shared_max = k->shared_own < most ? most - k->shared_own : 0;
	return 0;
}

static int find_kernel(struct rocm_device *dev, const struct rocm_program *prog,
		       struct rocm_kernel *k)
{
	uint32_t r;
	int err = check_block(dev, k);

	if (err)
		return err;
	set_most(dev, k);
	if (dev->hsa.on) {
		err = rocm_code_entry(dev, &prog->loaded, k->info.name, &k->entry);
		return err ? err : rocm_code_fits(dev, k);
	}
	r = hip.hipModuleGetFunction(&k->function, prog->module, k->info.name);
	err = r ? rocm_failed(dev, r, "hipModuleGetFunction") : 0;
	if (err && !rocm_sticky(r))
		err = rocm_host->fail(-err,
				      "rocm: hipModuleGetFunction: %s (%u): kernel %s",
				      rocm_result_name(r), r, k->info.name);
	return err;
}

/* Where partitions have queues of HSA's, which take no function of HIP's. */
static int load(struct rocm_device *dev, struct rocm_program *prog)
{
	uint32_t i;
	struct rocm_caller was;
	int err = rocm_push(dev, &was);

	if (err)
		return err;
	if (dev->hsa.on)
		err = rocm_code_load(dev, prog->code, prog->code_bytes, &prog->loaded);
	else
		err = HIP(dev, hipModuleLoadData, &prog->module, prog->code);
	if (err)
		prog->module = NULL;
	for (i = 0; i < prog->count && !err; i++)
		err = find_kernel(dev, prog, &prog->kernels[i]);
	/* Nothing of it has run. */
	if (err && prog->module && hip.hipModuleUnload(prog->module))
		(void)hip.hipModuleUnload(prog->module);
	if (err)
		rocm_code_undo(dev, &prog->loaded);
	rocm_pop(dev, was);
	rocm_catch_up(dev);
	return err;
}

int rocm_program_load(void *device, const void *image, size_t size, void **out)
{
	struct rocm_device *dev = device;
	struct rocm_program *prog = calloc(1, sizeof(*prog));
	int err;

	if (!prog)
		return rocm_host->fail(ENOMEM, "rocm: no memory for a program");
	err = rocm_image_parse(image, size, dev->shape.arch, prog);
	if (!err)
		err = load(dev, prog);
	if (!err) {
		pthread_mutex_lock(&dev->programs_lock);
		prog->older = dev->programs;
		dev->programs = prog;
		pthread_mutex_unlock(&dev->programs_lock);
		*out = prog;
		return 0;
	}
	free(prog->kernels);
	free(prog);
	return err;
}

int rocm_program_unload(void *device, void *program)
{
	struct rocm_device *dev = device;
	struct rocm_program *prog = program, **at = &dev->programs;
	int err = 0;

	pthread_mutex_lock(&dev->programs_lock);
	for (; *at != prog; at = &(*at)->older)
		;
	*at = prog->older;
	pthread_mutex_unlock(&dev->programs_lock);
	if (!atomic_load(&dev->base.lost))
		err = rocm_enter(dev);
	rocm_give_back(dev, ROCM_KIND_MODULE, prog->module, &err);
	rocm_code_drop(dev, &prog->loaded, &err);
	free(prog->kernels);
	free(prog);
	return err;
}

int rocm_kernel_get(void *device, void *program, uint32_t index,
		    struct hal_bk_kernel_info *info, void **kernel)
{
	struct rocm_program *prog = program;

	(void)device;
	if (index >= prog->count)
		return rocm_host->fail(ENOENT,
				       "rocm: there is no kernel %u; the program has %u",
				       index, prog->count);
	*info = prog->kernels[index].info;
	*kernel = prog->kernels + index;
	return 0;
}

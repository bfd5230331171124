/* SPDX-License-Identifier: Apache-2.0 */
/* Programs of a card: an xclbin as it is.  It comes onto the card with a launch. */
#define _GNU_SOURCE
#include "internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void describe(struct fp_kernel *k, struct fp_design *d, uint32_t index)
{
	uint32_t i;

	k->design = d;
	k->index = index;
	k->desc = &d->x.kernels[index];
	k->reach = &d->reach[(size_t)index * FP_REACH_ROWS * FP_BANKS_MAX];
	k->quick = !k->desc->group_args && !k->desc->stops;
	for (i = 0; i < k->desc->arg_count; i++) {
		k->memory |= (uint32_t)k->desc->args[i].memory << i;
		k->bits[i] = (uint8_t)(8 * k->desc->args[i].scalar_bytes);
		k->quick &= !k->desc->args[i].is_float && !k->desc->args[i].is_double;
	}
	for (i = 0; i < d->x.slot_count; i++)
		if (fp_xclbin_unit(&d->x, index, i)->name[0])
			k->slots |= UINT64_C(1) << i;
}

int fp_program_load(void *device, const void *image, size_t size, void **out)
{
	struct fp_program *prog = calloc(1, sizeof(*prog));
	uint32_t i;
	int err;

	if (!prog)
		return fp_host->fail(ENOMEM, "fpga: no memory for a program's kernels");
	err = fp_design_take(device, image, size, &prog->design);
	if (err) {
		free(prog);
		return err;
	}
	for (i = 0; i < prog->design->x.kernel_count; i++)
		describe(&prog->kernels[i], prog->design, i);
	*out = prog;
	return 0;
}

int fp_program_unload(void *device, void *program)
{
	struct fp_program *prog = program;

	fp_design_give(device, prog->design);
	free(prog);
	return 0;
}

int fp_kernel_get(void *device, void *program, uint32_t index,
		  struct hal_bk_kernel_info *info, void **kernel)
{
	struct fp_program *prog = program;
	const struct fp_design *d = prog->design;
	const struct fp_kernel_desc *k;
	uint32_t i;

	(void)device;
	if (index >= d->x.kernel_count)
		return fp_host->fail(ENOENT,
				     "fpga: there is no kernel %u; the xclbin has %u",
				     index, d->x.kernel_count);
	k = &d->x.kernels[index];
	memset(info, 0, sizeof(*info));
	memcpy(info->name, k->name, sizeof(info->name));
	info->arg_count = k->arg_count;
	info->configuration = d->number;
	for (i = 0; i < k->arg_count; i++)
		info->arg_bytes[i] = k->args[i].bytes;
	*kernel = &prog->kernels[index];
	return 0;
}

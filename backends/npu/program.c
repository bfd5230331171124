/* SPDX-License-Identifier: Apache-2.0 */
/* program.c - program images on a device: kernels, their memory in a partition, launches.
 */
#include "internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int npu_program_load(void *device, const void *image, size_t size, void **out)
{
	struct npu_program *prog = calloc(1, sizeof(*prog));
	int rc;

	(void)device;
	if (!prog)
		return npu_fail(ENOMEM, "npu: no host memory for a program");
	rc = npu_image_load(image, size, &prog->image);
	if (rc)
		goto out;
	prog->kernels = calloc(prog->image.header.kernels + 1, sizeof(*prog->kernels));
	if (!prog->kernels) {
		npu_image_unload(&prog->image);
		rc = npu_fail(ENOMEM, "npu: no host memory for a program");
		goto out;
	}
	for (uint32_t i = 0; i < prog->image.header.kernels; i++)
		prog->kernels[i] = (struct npu_kernel){prog, &prog->image.kernels[i]};
	*out = prog;
	return 0;
out:
	free(prog);
	return rc;
}

int npu_program_unload(void *device, void *program)
{
	struct npu_program *prog = program;

	(void)device;
	npu_image_unload(&prog->image);
	free(prog->kernels);
	free(prog->bind);
	free(prog);
	return 0;
}

/* HAL_BK_ENGINE_*: each slot has a vector unit of its own, whatever its rectangle. */
static uint32_t engines_of(const struct npu_image *image,
			   const struct npu_image_kernel *k)
{
	uint32_t engines = 0;

	for (uint32_t i = 0; i < k->desc_count; i++) {
		uint32_t op = NPU_GET(image->descs[k->desc_first + i], OPCODE);

		if (op == NPU_OP_GEMM || op == NPU_OP_CONV)
			engines |= HAL_BK_ENGINE_ARRAY;
		else if (op == NPU_OP_VEC)
			engines |= HAL_BK_ENGINE_VECTOR;
	}
	return engines;
}

int npu_kernel_get(void *device, void *program, uint32_t index,
		   struct hal_bk_kernel_info *info, void **kernel)
{
	struct npu_program *prog = program;
	const struct npu_image_kernel *k;

	(void)device;
	if (index >= prog->image.header.kernels)
		return -ENOENT;
	k = &prog->image.kernels[index];
	memset(info, 0, sizeof(*info));
	memcpy(info->name, k->name, sizeof(info->name));
	info->arg_count = k->arg_count;
	for (uint32_t i = 0; i < k->arg_count; i++)
		info->arg_bytes[i] = prog->image.args[k->arg_first + i].bytes;
	info->work = k->macs;
	info->engines = engines_of(&prog->image, k);
	*kernel = &prog->kernels[index];
	return 0;
}

static int need_binding(struct npu_program *prog, uint32_t number)
{
	uint32_t count = prog->bind_count;
	struct npu_binding *more;

	if (number < count)
		return 0;
	more = realloc(prog->bind, (size_t)(number + 1) * sizeof(*more));
	if (!more)
		return npu_fail(ENOMEM, "npu: no host memory for a program");
	memset(more + count, 0, (number + 1 - count) * sizeof(*more));
	prog->bind = more;
	prog->bind_count = number + 1;
	return 0;
}

/* Constants are mapped for reading only: a program cannot damage its weights. */
int npu_program_bind(void *device, void *program, void *partition, uint64_t *bytes)
{
	struct npu_program *prog = program;
	struct npu_partition *part = partition;
	const struct npu_image_header *h = &prog->image.header;
	struct npu_binding *b;
	int rc = need_binding(prog, part->desc.index);

	*bytes = 0;
	if (rc)
		return rc;
	b = &prog->bind[part->desc.index];
	if (h->const_bytes)
		rc = npu_alloc(part, h->const_bytes, NULL,
			       NPU_MEM_READ_ONLY |
				       (part->desc.wide_mask ? NPU_MEM_BIMODAL : 0),
			       &b->constants);
	if (!rc && h->const_bytes)
		rc = npu_mem_write(device, b->constants, 0, prog->image.constants,
				   h->const_bytes);
	if (!rc && h->scratch_bytes)
		rc = npu_alloc(part, h->scratch_bytes, NULL, 0, &b->scratch);
	if (rc) {
		npu_free(b->constants);
		b->constants = NULL;
		return rc;
	}
	*bytes = (b->constants ? npu_mem_charge(b->constants) : 0) + h->scratch_bytes;
	return 0;
}

int npu_program_unbind(void *device, void *program, void *partition)
{
	struct npu_program *prog = program;
	struct npu_partition *part = partition;
	struct npu_binding *b = &prog->bind[part->desc.index];

	(void)device;
	npu_free(b->constants);
	npu_free(b->scratch);
	npu_free(b->spare);
	*b = (struct npu_binding){0};
	return 0;
}

/* ---- launches --------------------------------------------------------------------- */

static bool is_bound(const struct npu_program *prog, uint32_t number)
{
	const struct npu_image_header *h = &prog->image.header;
	const struct npu_binding none = {0};
	const struct npu_binding *b =
		number < prog->bind_count ? &prog->bind[number] : &none;

	return (!h->const_bytes || b->constants) && (!h->scratch_bytes || b->scratch);
}

int npu_launch_check(const struct npu_partition *part, const struct hal_bk_cmd *cmd)
{
	const struct npu_kernel *kernel = cmd->launch.kernel;
	const struct npu_image *im = &kernel->prog->image;
	const struct npu_image_kernel *k = kernel->k;

	for (uint32_t i = 0; i < 3; i++)
		if (cmd->launch.groups[i] > 1)
			return npu_fail(ENOTSUP,
					"npu: kernel '%s': %u groups requested; an NPU "
					"kernel is always one group",
					k->name, cmd->launch.groups[i]);
	if (cmd->launch.arg_count != k->arg_count)
		return npu_fail(EINVAL, "npu: kernel '%s' takes %u arguments, %u given",
				k->name, k->arg_count, cmd->launch.arg_count);
	if (!is_bound(kernel->prog, part->desc.index))
		return npu_fail(
			EINVAL,
			"npu: kernel '%s': its program has no memory in partition %u",
			k->name, part->desc.index);
	for (uint32_t i = 0; i < k->arg_count; i++) {
		const struct hal_bk_arg *a = &cmd->launch.args[i];
		const struct npu_image_arg *want = &im->args[k->arg_first + i];
		const struct npu_mem *mem = a->mem;

		if (!mem)
			return npu_fail(EINVAL,
					"npu: kernel '%s': argument %u must be a buffer",
					k->name, i);
		if (mem->part != part)
			return npu_fail(
				ENOTSUP,
				"npu: kernel '%s': argument %u is a buffer of another "
				"partition; partitions have separate address spaces",
				k->name, i);
		if (a->bytes < want->bytes)
			return npu_fail(EINVAL,
					"npu: kernel '%s': argument %u has %llu bytes, "
					"but the kernel needs %llu",
					k->name, i, (unsigned long long)a->bytes,
					(unsigned long long)want->bytes);
		if (a->value % want->align)
			return npu_fail(EINVAL,
					"npu: kernel '%s': argument %u is at offset "
					"%llu, which is not a multiple of %u",
					k->name, i, (unsigned long long)a->value,
					want->align);
	}
	return 0;
}

/* NULL: it needs none. */
static struct npu_binding *binding_of(const struct npu_partition *part,
				      const struct hal_bk_cmd *cmd)
{
	const struct npu_kernel *kernel = cmd->launch.kernel;
	uint32_t number = part->desc.index;

	return number < kernel->prog->bind_count ? &kernel->prog->bind[number] : NULL;
}

void npu_scratch_use(const struct npu_partition *part, const struct hal_bk_cmd *cmd,
		     uint64_t sequence)
{
	struct npu_binding *b;

	if (cmd->op != HAL_OP_LAUNCH)
		return;
	b = binding_of(part, cmd);
	if (b)
		b->used = sequence;
}

bool npu_scratch_whole(const struct npu_partition *part, const struct hal_bk_cmd *cmd,
		       uint64_t sequence)
{
	const struct npu_binding *b;

	if (cmd->op != HAL_OP_LAUNCH)
		return true;
	b = binding_of(part, cmd);
	return !b || !b->scratch || b->used == sequence;
}

int npu_scratch_reserve(struct npu_partition *part, const struct hal_bk_cmd *cmd)
{
	struct npu_binding *b;

	if (cmd->op != HAL_OP_LAUNCH)
		return 0;
	b = binding_of(part, cmd);
	if (!b || !b->scratch || b->spare)
		return 0;
	return npu_alloc(part, b->scratch->bytes, NULL, 0, &b->spare);
}

struct npu_mem *npu_scratch_keep(const struct npu_partition *part,
				 const struct hal_bk_cmd *cmd)
{
	struct npu_binding *b;
	struct npu_mem *kept;

	if (cmd->op != HAL_OP_LAUNCH)
		return NULL;
	b = binding_of(part, cmd);
	if (!b)
		return NULL;
	kept = b->scratch;
	b->scratch = b->spare;
	b->spare = NULL;
	return kept;
}

void npu_scratch_release(const struct npu_partition *part, const struct hal_bk_cmd *cmd,
			 struct npu_mem *scratch)
{
	struct npu_binding *b = binding_of(part, cmd);

	if (b->spare)
		npu_free(scratch);
	else
		b->spare = scratch;
}

/* The first relocation of descriptor index; they are sorted by descriptor. */
static uint32_t first_reloc(const struct npu_image_reloc *r, uint32_t count,
			    uint32_t index)
{
	uint32_t lo = 0, hi = count;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (r[mid].desc < index)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

void npu_launch_desc(const struct npu_partition *part, const struct hal_bk_cmd *cmd,
		     const struct npu_mem *scratch, uint32_t index, uint32_t desc[16])
{
	const struct npu_kernel *kernel = cmd->launch.kernel;
	const struct npu_image *im = &kernel->prog->image;
	const struct npu_image_kernel *k = kernel->k;
	const struct npu_image_reloc *r = im->relocs + k->reloc_first;

	const struct npu_binding *b = binding_of(part, cmd);

	if (!scratch && b)
		scratch = b->scratch;
	memcpy(desc, im->descs[k->desc_first + index], 64);
	for (uint32_t i = first_reloc(r, k->reloc_count, index);
	     i < k->reloc_count && r[i].desc == index; i++) {
		uint32_t base;

		if (r[i].kind == NPU_PLACE_ARG) {
			const struct hal_bk_arg *a = &cmd->launch.args[r[i].arg];
			const struct npu_mem *mem = a->mem;

			base = mem->va + (uint32_t)a->value;
		} else {
			/* Who has no binding needs neither. */
			const struct npu_mem *mem = r[i].kind != NPU_PLACE_CONST ? scratch
						    : b ? b->constants
							: NULL;

			base = mem ? mem->va : 0;
		}
		desc[r[i].word] = base + r[i].offset;
	}
}

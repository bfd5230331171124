/* SPDX-License-Identifier: Apache-2.0 */
/* image.c - reads a program image and believes nothing in it. */
#include "image.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <hal/hal.h>

#include "fail.h"
#include "npu_regs.h"

/* CRC-32 (IEEE 802.3), the checksum word itself counted as 0. */
uint32_t npu_image_crc(const void *bytes, size_t size)
{
	const uint8_t *p = bytes;
	const size_t skip = offsetof(struct npu_image_header, checksum);
	uint32_t crc = 0xFFFFFFFFu;

	for (size_t i = 0; i < size; i++) {
		crc ^= i >= skip && i < skip + 4 ? 0u : p[i];
		for (int bit = 0; bit < 8; bit++)
			crc = (crc >> 1) ^ (0xEDB88320u & (0u - (crc & 1u)));
	}
	return ~crc;
}

static int check_header(const struct npu_image_header *h, const void *bytes, size_t size)
{
	uint64_t need;

	if (h->magic != NPU_IMAGE_MAGIC)
		return npu_fail(
			EINVAL,
			"not an NPU program: magic 0x%08x at offset 0, not 0x%08x",
			h->magic, NPU_IMAGE_MAGIC);
	if (h->version != NPU_IMAGE_VERSION)
		return npu_fail(EINVAL,
				"the NPU program has format version %u; this library "
				"reads version %u",
				h->version, NPU_IMAGE_VERSION);
	if (h->bytes != size)
		return npu_fail(EINVAL,
				"the NPU program has %u bytes according to its header "
				"and is %s: %zu bytes were passed",
				h->bytes, size < h->bytes ? "truncated" : "too long",
				size);
	if (h->checksum != npu_image_crc(bytes, size))
		return npu_fail(EINVAL,
				"the NPU program is damaged: its header has checksum "
				"0x%08x, its content 0x%08x",
				h->checksum, npu_image_crc(bytes, size));
	if (h->kernels > NPU_IMAGE_KERNELS_MAX)
		return npu_fail(EINVAL, "the NPU program has %u kernels; the limit is %u",
				h->kernels, NPU_IMAGE_KERNELS_MAX);
	if (h->bytes > NPU_IMAGE_DATA_MAX || h->const_bytes > h->bytes ||
	    h->scratch_bytes > NPU_IMAGE_DATA_MAX - h->bytes)
		return npu_fail(
			EINVAL,
			"the NPU program has %u bytes, %llu of constants, and %llu bytes "
			"of scratch; program and scratch may have at most 2^31",
			h->bytes, (unsigned long long)h->const_bytes,
			(unsigned long long)h->scratch_bytes);
	need = sizeof(*h) + (uint64_t)h->kernels * sizeof(struct npu_image_kernel) +
	       (uint64_t)h->args * sizeof(struct npu_image_arg) +
	       (uint64_t)h->relocs * sizeof(struct npu_image_reloc) +
	       (uint64_t)h->descs * 64u + h->const_bytes;
	if (need != size)
		return npu_fail(EINVAL,
				"the NPU program's parts need %llu bytes according to "
				"its header, but it has %zu",
				(unsigned long long)need, size);
	return 0;
}

/* A copy of count records, so that the image may lie at any address. */
static int copy_part(const uint8_t **at, uint32_t count, size_t record, void *out)
{
	void *copy = malloc(count ? count * record : 1);

	if (!copy)
		return npu_fail(ENOMEM, "no memory for an NPU program of %zu bytes",
				count * record);
	memcpy(copy, *at, count * record);
	memcpy(out, &copy, sizeof(copy));
	*at += count * record;
	return 0;
}

static int in_part(uint32_t first, uint32_t count, uint32_t all)
{
	return first <= all && count <= all - first;
}

static int check_reloc(const struct npu_image *im, const struct npu_image_kernel *k,
		       uint32_t index)
{
	const struct npu_image_reloc *r = &im->relocs[k->reloc_first + index];
	uint64_t limit = r->kind == NPU_PLACE_CONST ? im->header.const_bytes
						    : im->header.scratch_bytes;

	if (r->kind > NPU_PLACE_SCRATCH || r->word < 1 || r->word > 4 ||
	    r->desc >= k->desc_count)
		return npu_fail(EINVAL,
				"relocation %u of kernel '%s' is invalid: kind %u, word "
				"%u, descriptor %u",
				index, k->name, r->kind, r->word, r->desc);
	if (r->kind == NPU_PLACE_ARG) {
		if (r->arg >= k->arg_count)
			return npu_fail(EINVAL,
					"relocation %u of kernel '%s' names argument %u, "
					"but the kernel has %u",
					index, k->name, r->arg, k->arg_count);
		limit = im->args[k->arg_first + r->arg].bytes;
	}
	if (r->offset >= limit)
		return npu_fail(EINVAL,
				"relocation %u of kernel '%s' has offset %u, but its "
				"target has %llu bytes",
				index, k->name, r->offset, (unsigned long long)limit);
	return 0;
}

static int check_kernel(const struct npu_image *im, uint32_t index)
{
	const struct npu_image_kernel *k = &im->kernels[index];

	if (!k->name[0] || !memchr(k->name, 0, sizeof(k->name)))
		return npu_fail(EINVAL,
				"kernel %u of the NPU program has no valid name (1 to 31 "
				"characters)",
				index);
	for (uint32_t i = 0; i < index; i++)
		if (!strcmp(im->kernels[i].name, k->name))
			return npu_fail(EINVAL, "NPU program has two kernels '%s'",
					k->name);
	if (k->arg_count > HAL_ARGS_MAX ||
	    !in_part(k->arg_first, k->arg_count, im->header.args))
		return npu_fail(EINVAL,
				"kernel '%s' is invalid: its arguments are %u+%u, but "
				"the program has %u",
				k->name, k->arg_first, k->arg_count, im->header.args);
	if (!in_part(k->desc_first, k->desc_count, im->header.descs))
		return npu_fail(EINVAL,
				"kernel '%s' is invalid: its descriptors are %u+%u, but "
				"the program has %u",
				k->name, k->desc_first, k->desc_count, im->header.descs);
	if (!in_part(k->reloc_first, k->reloc_count, im->header.relocs))
		return npu_fail(EINVAL,
				"kernel '%s' is invalid: its relocations are %u+%u, but "
				"the program has %u",
				k->name, k->reloc_first, k->reloc_count,
				im->header.relocs);
	for (uint32_t i = 0; i < k->arg_count; i++) {
		uint32_t align = im->args[k->arg_first + i].align;

		if (!align || align > NPU_IMAGE_CONST_ALIGN || (align & (align - 1)))
			return npu_fail(
				EINVAL,
				"kernel '%s': argument %u has an invalid alignment of %u",
				k->name, i, align);
	}
	for (uint32_t i = 0; i < k->reloc_count; i++) {
		int rc = check_reloc(im, k, i);

		/* Sorted by descriptor: the ring writer walks both together. */
		if (!rc && i &&
		    im->relocs[k->reloc_first + i].desc <
			    im->relocs[k->reloc_first + i - 1].desc)
			rc = npu_fail(
				EINVAL,
				"kernel '%s': relocation %u is not sorted by descriptor",
				k->name, i);
		if (rc)
			return rc;
	}
	return 0;
}

/* Fences, waits and timestamps are the queue's business. */
static int check_desc(const struct npu_image *im, uint32_t index)
{
	const uint32_t *desc = im->descs[index];
	uint32_t op = NPU_GET(desc, OPCODE);

	if (op == NPU_OP_VEC && NPU_GET(desc, VOP) == NPU_VOP_SOFTMAX &&
	    NPU_GET(desc, VCOLS) > NPU_SOFTMAX_COLS)
		return npu_fail(EINVAL,
				"descriptor %u of the NPU program is a softmax of rows "
				"of %u; the longest is %u",
				index, NPU_GET(desc, VCOLS), NPU_SOFTMAX_COLS);
	if (op == NPU_OP_NOP || op == NPU_OP_GEMM || op == NPU_OP_CONV ||
	    op == NPU_OP_VEC)
		return 0;
	return npu_fail(EINVAL,
			"descriptor %u of the NPU program has the operation %u, which a "
			"program must not contain",
			index, op);
}

int npu_image_load(const void *bytes, size_t size, struct npu_image *out)
{
	struct npu_image im = {0};
	const uint8_t *at = bytes;
	int rc;

	if (size < sizeof(im.header))
		return npu_fail(EINVAL,
				"the NPU program is truncated: it has %zu bytes, its "
				"header alone needs %zu",
				size, sizeof(im.header));
	memcpy(&im.header, at, sizeof(im.header));
	rc = check_header(&im.header, bytes, size);
	if (rc)
		return rc;
	at += sizeof(im.header);
	rc = copy_part(&at, im.header.kernels, sizeof(*im.kernels), &im.kernels);
	if (!rc)
		rc = copy_part(&at, im.header.args, sizeof(*im.args), &im.args);
	if (!rc)
		rc = copy_part(&at, im.header.relocs, sizeof(*im.relocs), &im.relocs);
	if (!rc)
		rc = copy_part(&at, im.header.descs, sizeof(*im.descs), &im.descs);
	im.constants = at;
	for (uint32_t i = 0; !rc && i < im.header.kernels; i++)
		rc = check_kernel(&im, i);
	for (uint32_t i = 0; !rc && i < im.header.descs; i++)
		rc = check_desc(&im, i);
	if (rc) {
		npu_image_unload(&im);
		return rc;
	}
	*out = im;
	return 0;
}

void npu_image_unload(struct npu_image *image)
{
	free(image->kernels);
	free(image->args);
	free(image->relocs);
	free(image->descs);
	memset(image, 0, sizeof(*image));
}

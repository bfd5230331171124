/* SPDX-License-Identifier: Apache-2.0 */
/* kernels_npu.c - the conformance kernels as an NPU program. */
#include "conformance.h"

#include <string.h>

#include <hal/npu.h>

#include "../../backends/npu/image.h"

#define SPIN_ROWS  512u /* of one multiplication: one tile */
#define SPIN_TURNS ((CONF_SPIN_NS + SPIN_ROWS - 1) / SPIN_ROWS)

static int copy_kernel(struct hal_npu_builder *b)
{
	struct hal_npu_copy op = HAL_INIT(hal_npu_copy);
	int rc = hal_npu_kernel(b, "copy");

	if (!rc)
		rc = hal_npu_arg(b, CONF_COPY_BYTES, &op.d.id);
	if (!rc)
		rc = hal_npu_arg(b, CONF_COPY_BYTES, &op.a.id);
	op.rows = 1;
	op.bytes = CONF_COPY_BYTES;
	return rc ? rc : hal_npu_copy(b, &op);
}

static int gemm_kernel(struct hal_npu_builder *b)
{
	static const int32_t mult = 1073741824, shift = -6;
	struct hal_npu_gemm op = HAL_INIT(hal_npu_gemm);
	int rc = hal_npu_kernel(b, "gemm");

	if (!rc)
		rc = hal_npu_arg(b, CONF_GEMM_BYTES, &op.d.id);
	if (!rc)
		rc = hal_npu_arg(b, CONF_GEMM_BYTES, &op.a.id);
	if (!rc)
		rc = hal_npu_arg(b, CONF_GEMM_BYTES, &op.b.id);
	op.m = op.n = op.k = CONF_GEMM_N;
	op.a_zero = 3;
	op.out.mult = &mult;
	op.out.shift = &shift;
	op.out.zero_point = -1;
	op.out.min = -128;
	op.out.max = 127;
	return rc ? rc : hal_npu_gemm(b, &op);
}

static int add_kernel(struct hal_npu_builder *b)
{
	struct hal_npu_add op = HAL_INIT(hal_npu_add);
	int rc = hal_npu_kernel(b, "add");

	if (!rc)
		rc = hal_npu_arg(b, CONF_ADD_BYTES, &op.d.id);
	if (!rc)
		rc = hal_npu_arg(b, CONF_ADD_BYTES, &op.a.id);
	if (!rc)
		rc = hal_npu_arg(b, CONF_ADD_BYTES, &op.b.id);
	op.bytes = CONF_ADD_BYTES;
	op.a_zero = 1;
	op.b_zero = -2;
	op.d_zero = 3;
	op.left_shift = 20;
	op.a_mult = 1073741824;
	op.a_shift = -1;
	op.b_mult = 1518500250;
	op.b_shift = -1;
	op.d_mult = 1288490189;
	op.d_shift = -18;
	op.min = -128;
	op.max = 127;
	return rc ? rc : hal_npu_add(b, &op);
}

/* Multiplications nobody looks at, then the answer.  One output channel and one input
 * channel keep one PE busy, so any rectangle needs a cycle an activation row. */
static int spin_kernel(struct hal_npu_builder *b)
{
	struct hal_npu_gemm op = HAL_INIT(hal_npu_gemm);
	struct hal_npu_copy answer = HAL_INIT(hal_npu_copy);
	static const int32_t mult = 1073741824, shift = 0;
	uint8_t bytes[CONF_SPIN_BYTES];
	int rc = hal_npu_kernel(b, "spin");

	for (uint32_t i = 0; i < CONF_SPIN_BYTES; i++)
		bytes[i] = (uint8_t)(i * 7 + 1);
	if (!rc)
		rc = hal_npu_arg(b, CONF_SPIN_BYTES, &answer.d.id);
	if (!rc)
		rc = hal_npu_const(b, bytes, sizeof(bytes), &answer.a.id);
	if (!rc)
		rc = hal_npu_scratch(b, SPIN_ROWS, &op.a.id);
	if (!rc)
		rc = hal_npu_scratch(b, SPIN_ROWS, &op.d.id);
	op.b = op.a;
	op.m = SPIN_ROWS;
	op.n = op.k = 1;
	op.out.mult = &mult;
	op.out.shift = &shift;
	op.out.min = -128;
	op.out.max = 127;
	for (uint32_t i = 0; !rc && i < SPIN_TURNS; i++)
		rc = hal_npu_gemm(b, &op);
	answer.rows = 1;
	answer.bytes = CONF_SPIN_BYTES;
	return rc ? rc : hal_npu_copy(b, &answer);
}

/* The builder refuses to write outside of D, so the image is damaged afterwards. */
static int wild_kernel(struct hal_npu_builder *b)
{
	struct hal_npu_place d = {0};
	int rc = hal_npu_kernel(b, "wild");

	if (!rc)
		rc = hal_npu_arg(b, CONF_SPIN_BYTES, &d.id);
	return rc ? rc : hal_npu_fill(b, d, CONF_SPIN_BYTES, 0x5a5a5a5a);
}

static uint32_t crc32(const uint8_t *p, size_t size)
{
	uint32_t crc = 0xFFFFFFFFu;

	for (size_t i = 0; i < size; i++) {
		crc ^= p[i];
		for (int bit = 0; bit < 8; bit++)
			crc = crc & 1 ? crc >> 1 ^ 0xEDB88320u : crc >> 1;
	}
	return ~crc;
}

/* Its last relocation (wild's one, the address of D) goes to a word that FILL does not
 * look at; the address stays 0, which no partition maps. */
static void make_wild(uint8_t *image, size_t size)
{
	struct npu_image_header h;
	struct npu_image_reloc r;
	size_t at;

	memcpy(&h, image, sizeof(h));
	at = sizeof(h) + h.kernels * sizeof(struct npu_image_kernel) +
	     h.args * sizeof(struct npu_image_arg) + (h.relocs - 1) * sizeof(r);
	memcpy(&r, image + at, sizeof(r));
	r.word = 3;
	memcpy(image + at, &r, sizeof(r));
	h.checksum = 0;
	memcpy(image, &h, sizeof(h));
	h.checksum = crc32(image, size);
	memcpy(image, &h, sizeof(h));
}

static int npu_image(void **image, size_t *size)
{
	struct hal_npu_builder *b;
	int rc = hal_npu_builder_create(&b);

	if (rc)
		return rc;
	rc = copy_kernel(b);
	if (!rc)
		rc = gemm_kernel(b);
	if (!rc)
		rc = add_kernel(b);
	if (!rc)
		rc = spin_kernel(b);
	if (!rc)
		rc = wild_kernel(b);
	if (!rc)
		rc = hal_npu_build(b, image, size);
	if (!rc)
		make_wild(*image, *size);
	hal_npu_builder_destroy(b);
	return rc;
}

static const struct conf_pack npu_pack = {
	.backend = "npu",
	.image = npu_image,
	.free = hal_npu_image_free,
};

CONF_PACK(npu_pack);

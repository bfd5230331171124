/* SPDX-License-Identifier: Apache-2.0 */
/* The NPU's program builder called wrongly. */
#define _GNU_SOURCE
#include "negative.h"

#include <string.h>

#include <hal/npu.h>

/* A builder with one kernel, three arguments of 4096 bytes, and good operations. */
struct npu {
	struct hal_npu_builder *b;
	uint32_t a, w, d, c; /* ids; c is a constant of 4096 bytes */
	int32_t mult, shift;
	int8_t weights[9];
	struct hal_npu_gemm gemm;
	struct hal_npu_conv conv;
	struct hal_npu_add add;
	struct hal_npu_relu relu;
	struct hal_npu_pool pool;
	struct hal_npu_copy copy;
	struct hal_npu_mul mul;
	struct hal_npu_lut lut;
	struct hal_npu_softmax softmax;
	uint8_t table[256];
	int32_t exp[256];
	float scale;
	uint32_t id;
	void *image;
	size_t size;
};

static void good(struct npu *n)
{
	struct hal_npu_place a = {n->a, 0}, w = {n->w, 0}, d = {n->d, 0};
	struct hal_npu_requant out = {
		.mult = &n->mult, .shift = &n->shift, .min = -128, .max = 127};

	n->mult = 1 << 30;
	n->gemm = (struct hal_npu_gemm){.size = sizeof(n->gemm),
					.m = 8,
					.n = 8,
					.k = 8,
					.a = a,
					.b = w,
					.d = d,
					.out = out};
	n->conv = (struct hal_npu_conv){.size = sizeof(n->conv),
					.h = 8,
					.w = 8,
					.c = 1,
					.oh = 6,
					.ow = 6,
					.n = 1,
					.kh = 3,
					.kw = 3,
					.stride_h = 1,
					.stride_w = 1,
					.dilation_h = 1,
					.dilation_w = 1,
					.groups = 1,
					.a = a,
					.d = d,
					.weights = n->weights,
					.out = out};
	n->add = (struct hal_npu_add){.size = sizeof(n->add),
				      .bytes = 64,
				      .a = a,
				      .b = w,
				      .d = d,
				      .a_mult = 1 << 30,
				      .b_mult = 1 << 30,
				      .d_mult = 1 << 30,
				      .d_shift = -18,
				      .left_shift = 20,
				      .min = -128,
				      .max = 127};
	n->relu = (struct hal_npu_relu){.size = sizeof(n->relu),
					.bytes = 64,
					.a = a,
					.d = d,
					.mult = 1 << 30,
					.min = 0,
					.max = 127};
	n->pool = (struct hal_npu_pool){.size = sizeof(n->pool),
					.h = 8,
					.w = 8,
					.c = 4,
					.oh = 4,
					.ow = 4,
					.kh = 2,
					.kw = 2,
					.stride_h = 2,
					.stride_w = 2,
					.a = a,
					.d = d,
					.min = -128,
					.max = 127};
	n->copy = (struct hal_npu_copy){
		.size = sizeof(n->copy), .rows = 4, .bytes = 64, .a = a, .d = d};
	n->mul = (struct hal_npu_mul){.size = sizeof(n->mul),
				      .bytes = 64,
				      .a = a,
				      .b = w,
				      .d = d,
				      .mult = 1 << 30,
				      .min = -128,
				      .max = 127};
	n->lut = (struct hal_npu_lut){
		.size = sizeof(n->lut), .bytes = 64, .a = a, .d = d, .table = n->table};
	n->softmax = (struct hal_npu_softmax){.size = sizeof(n->softmax),
					      .rows = 4,
					      .cols = 10,
					      .a = a,
					      .d = d,
					      .exp = n->exp};
	n->scale = 0.5f;
}

static int npu_run(int (*fn)(struct npu *n))
{
	static const uint8_t constant[4096];
	struct npu n;
	int err;

	memset(&n, 0, sizeof(n));
	NEG_OK(hal_npu_builder_create(&n.b));
	NEG_OK(hal_npu_kernel(n.b, "first"));
	NEG_OK(hal_npu_arg(n.b, 4096, &n.a));
	NEG_OK(hal_npu_arg(n.b, 4096, &n.w));
	NEG_OK(hal_npu_arg(n.b, 4096, &n.d));
	NEG_OK(hal_npu_const(n.b, constant, sizeof(constant), &n.c));
	good(&n);
	NEG_OK(hal_npu_gemm(n.b, &n.gemm));
	err = fn(&n);
	if (n.image)
		hal_npu_image_free(n.image);
	(void)hal_npu_builder_destroy(n.b);
	return err;
}

#define NPU(function_, error_, what_, text_)                                             \
	static int npu_##function_##_##error_##_##what_(struct npu *n);                  \
	NEG_DEFINE(function_##_##error_##_##what_, NULL, #function_, error_, #error_,    \
		   #what_, text_)                                                        \
	{                                                                                \
		(void)w;                                                                 \
		return npu_run(npu_##function_##_##error_##_##what_);                    \
	}                                                                                \
	static int npu_##function_##_##error_##_##what_(struct npu *n)

/* A newer caller's longer struct with something in it that we do not know. */
#define NPU_LONGER(function_, member_)                                                   \
	NPU(function_, E2BIG, longer_tail, "size|hal_npu_" #member_)                     \
	{                                                                                \
		struct {                                                                 \
			__typeof__(n->member_) op;                                       \
			uint32_t more; /* no padding before it */                        \
		} longer = {n->member_, 1};                                              \
                                                                                         \
		longer.op.size = sizeof(longer);                                         \
		return function_(n->b, &longer.op);                                      \
	}                                                                                \
	NPU(function_, EINVAL, op_null, #function_)                                      \
	{                                                                                \
		return function_(n->b, NULL);                                            \
	}                                                                                \
	NPU(function_, EINVAL, builder_null, #function_)                                 \
	{                                                                                \
		return function_(NULL, &n->member_);                                     \
	}                                                                                \
	NPU(function_, EINVAL, size_zero, "size")                                        \
	{                                                                                \
		n->member_.size = 0;                                                     \
		return function_(n->b, &n->member_);                                     \
	}                                                                                \
	NPU(function_, EINVAL, place_unknown, ".a")                                      \
	{                                                                                \
		n->member_.a.id = 99;                                                    \
		return function_(n->b, &n->member_);                                     \
	}                                                                                \
	NPU(function_, EINVAL, writes_constant, "constant")                              \
	{                                                                                \
		n->member_.d.id = n->c;                                                  \
		return function_(n->b, &n->member_);                                     \
	}                                                                                \
	NPU(function_, EINVAL, other_kernels_argument, "another kernel")                 \
	{                                                                                \
		NEG_OK(hal_npu_kernel(n->b, "second"));                                  \
		return function_(n->b, &n->member_);                                     \
	}                                                                                \
	NPU(function_, ERANGE, reads_past, ".a")                                         \
	{                                                                                \
		n->member_.a.offset = 4092;                                              \
		return function_(n->b, &n->member_);                                     \
	}                                                                                \
	NPU(function_, ERANGE, writes_past, ".d")                                        \
	{                                                                                \
		n->member_.d.offset = 4096;                                              \
		return function_(n->b, &n->member_);                                     \
	}

NPU_LONGER(hal_npu_gemm, gemm)
NPU_LONGER(hal_npu_conv, conv)
NPU_LONGER(hal_npu_add, add)
NPU_LONGER(hal_npu_relu, relu)
NPU_LONGER(hal_npu_maxpool, pool)
NPU_LONGER(hal_npu_copy, copy)
NPU_LONGER(hal_npu_mul, mul)
NPU_LONGER(hal_npu_avgpool, pool)
NPU_LONGER(hal_npu_lut, lut)
NPU_LONGER(hal_npu_softmax, softmax)

/* ---- builder, kernels, places ----------------------------------------------------- */

NPU(hal_npu_builder_create, EINVAL, builder_null, "builder")
{
	(void)n;
	return hal_npu_builder_create(NULL);
}

NPU(hal_npu_kernel, EINVAL, name_twice, "first")
{
	return hal_npu_kernel(n->b, "first");
}

NPU(hal_npu_kernel, EINVAL, name_empty, "name")
{
	return hal_npu_kernel(n->b, "");
}

NPU(hal_npu_kernel, EINVAL, name_long, "name")
{
	return hal_npu_kernel(n->b, "a name of thirty-two characters.");
}

NPU(hal_npu_kernel, EINVAL, name_null, "name")
{
	return hal_npu_kernel(n->b, NULL);
}

NPU(hal_npu_arg, EINVAL, builder_null, "hal_npu_arg")
{
	return hal_npu_arg(NULL, 4, &n->id);
}

NPU(hal_npu_arg, EINVAL, id_null, "id|NULL")
{
	return hal_npu_arg(n->b, 4, NULL);
}

NPU(hal_npu_arg, EINVAL, no_bytes, "0 bytes")
{
	return hal_npu_arg(n->b, 0, &n->id);
}

NPU(hal_npu_arg, EINVAL, too_many, "16")
{
	int i;

	for (i = 3; i < HAL_ARGS_MAX; i++)
		NEG_OK(hal_npu_arg(n->b, 4, &n->id));
	return hal_npu_arg(n->b, 4, &n->id);
}

NEGATIVE(hal_npu_arg, EINVAL, no_kernel, "kernel")
{
	struct hal_npu_builder *b;
	uint32_t id;
	int err;

	(void)w;
	NEG_OK(hal_npu_builder_create(&b));
	err = hal_npu_arg(b, 4, &id);
	(void)hal_npu_builder_destroy(b);
	return err;
}

NPU(hal_npu_const, EINVAL, data_null, "data")
{
	return hal_npu_const(n->b, NULL, 4, &n->id);
}

NPU(hal_npu_const, EINVAL, no_bytes, "0 bytes|bytes")
{
	return hal_npu_const(n->b, n, 0, &n->id);
}

NPU(hal_npu_const, EINVAL, id_null, "id")
{
	return hal_npu_const(n->b, n, 4, NULL);
}

NPU(hal_npu_scratch, EINVAL, id_null, "id")
{
	return hal_npu_scratch(n->b, 4, NULL);
}

NPU(hal_npu_scratch, EINVAL, no_bytes, "0 bytes|bytes")
{
	return hal_npu_scratch(n->b, 0, &n->id);
}

/* ---- operations ------------------------------------------------------------------- */

NPU(hal_npu_gemm, EINVAL, m_zero, ".m")
{
	n->gemm.m = 0;
	return hal_npu_gemm(n->b, &n->gemm);
}

NPU(hal_npu_gemm_pack, EINVAL, too_small, "blocks has 15 bytes")
{
	static uint8_t blocks[16];

	(void)n;
	return hal_npu_gemm_pack(blocks, 15, "b", 1, 1, 0);
}

NPU(hal_npu_gemm, EINVAL, stride_short, "a_stride")
{
	n->gemm.a_stride = 7;
	return hal_npu_gemm(n->b, &n->gemm);
}

NPU(hal_npu_gemm, EINVAL, zero_point, "a_zero")
{
	n->gemm.a_zero = 128;
	return hal_npu_gemm(n->b, &n->gemm);
}

NPU(hal_npu_gemm, EINVAL, clamp, "out.max")
{
	n->gemm.out.min = 10;
	n->gemm.out.max = 9;
	return hal_npu_gemm(n->b, &n->gemm);
}

NPU(hal_npu_gemm, EINVAL, shift, "shift")
{
	n->shift = 31;
	return hal_npu_gemm(n->b, &n->gemm);
}

NPU(hal_npu_gemm, EINVAL, shift_null, "shift")
{
	n->gemm.out.shift = NULL;
	return hal_npu_gemm(n->b, &n->gemm);
}

NPU(hal_npu_gemm, EINVAL, multiplier, "mult")
{
	n->mult = -1;
	return hal_npu_gemm(n->b, &n->gemm);
}

NPU(hal_npu_gemm, EINVAL, per_channel, "per_channel")
{
	n->gemm.out.per_channel = 2;
	return hal_npu_gemm(n->b, &n->gemm);
}

NPU(hal_npu_gemm, EINVAL, flags, ".flags")
{
	n->gemm.flags = HAL_NPU_A_REPEAT;
	return hal_npu_gemm(n->b, &n->gemm);
}

NPU(hal_npu_gemm, EINVAL, zero_point_of_uint8, "0 to 255")
{
	n->gemm.flags = HAL_NPU_A_UINT8;
	n->gemm.a_zero = -1;
	return hal_npu_gemm(n->b, &n->gemm);
}

NPU(hal_npu_gemm, EINVAL, clamp_of_uint8, "out.min")
{
	n->gemm.flags = HAL_NPU_D_UINT8;
	return hal_npu_gemm(n->b, &n->gemm);
}

NPU(hal_npu_gemm, EINVAL, mult_and_scale, "one of them")
{
	n->gemm.out.scale = &n->scale;
	return hal_npu_gemm(n->b, &n->gemm);
}

NPU(hal_npu_gemm, EINVAL, scale_negative, "out.scale")
{
	n->scale = -0.5f;
	n->gemm.out.mult = NULL;
	n->gemm.out.scale = &n->scale;
	return hal_npu_gemm(n->b, &n->gemm);
}

NPU(hal_npu_gemm, EINVAL, scale_denormal, "out.scale")
{
	n->scale = 1e-40f;
	n->gemm.out.mult = NULL;
	n->gemm.out.scale = &n->scale;
	return hal_npu_gemm(n->b, &n->gemm);
}

NPU(hal_npu_gemm, ERANGE, weights_short, ".b")
{
	n->gemm.b = (struct hal_npu_place){n->c, 4064};
	return hal_npu_gemm(n->b, &n->gemm);
}

NPU(hal_npu_gemm, ENOTSUP, k_too_large, "33025")
{
	n->gemm.k = 33026;
	NEG_OK(hal_npu_arg(n->b, 300000, &n->gemm.a.id));
	NEG_OK(hal_npu_arg(n->b, 300000, &n->gemm.b.id));
	return hal_npu_gemm(n->b, &n->gemm);
}

NPU(hal_npu_conv, EINVAL, groups, "groups")
{
	n->conv.groups = 2;
	return hal_npu_conv(n->b, &n->conv);
}

NPU(hal_npu_conv, EINVAL, weights_null, "weights")
{
	n->conv.weights = NULL;
	return hal_npu_conv(n->b, &n->conv);
}

NPU(hal_npu_conv, EINVAL, output_too_tall, ".oh")
{
	n->conv.oh = 20;
	return hal_npu_conv(n->b, &n->conv);
}

NPU(hal_npu_conv, EINVAL, stride_zero, "stride_h")
{
	n->conv.stride_h = 0;
	return hal_npu_conv(n->b, &n->conv);
}

NPU(hal_npu_conv, ENOTSUP, stride_too_large, "stride_w")
{
	n->conv.stride_w = 1000;
	n->conv.ow = 1;
	return hal_npu_conv(n->b, &n->conv);
}

NPU(hal_npu_conv, EINVAL, zero_point_of_weights, "b_zero")
{
	n->conv.b_zero = 128;
	return hal_npu_conv(n->b, &n->conv);
}

NPU(hal_npu_conv, EINVAL, flags, ".flags")
{
	n->conv.flags = HAL_NPU_B_REPEAT;
	return hal_npu_conv(n->b, &n->conv);
}

NPU(hal_npu_add, EINVAL, flags, ".flags")
{
	n->add.flags = 1u << 5;
	return hal_npu_add(n->b, &n->add);
}

NPU(hal_npu_add, EINVAL, stride_short, "d_stride")
{
	n->add.rows = 2;
	n->add.d_stride = 63;
	return hal_npu_add(n->b, &n->add);
}

NPU(hal_npu_add, ERANGE, rows_past, ".b")
{
	n->add.rows = 2;
	n->add.b_stride = 4090;
	return hal_npu_add(n->b, &n->add);
}

NPU(hal_npu_mul, EINVAL, bytes_zero, "bytes")
{
	n->mul.bytes = 0;
	return hal_npu_mul(n->b, &n->mul);
}

NPU(hal_npu_mul, EINVAL, shift, ".shift")
{
	n->mul.shift = 16;
	return hal_npu_mul(n->b, &n->mul);
}

NPU(hal_npu_mul, EINVAL, multiplier, ".mult")
{
	n->mul.mult = -1;
	return hal_npu_mul(n->b, &n->mul);
}

NPU(hal_npu_mul, EINVAL, zero_point, "b_zero")
{
	n->mul.b_zero = 128;
	return hal_npu_mul(n->b, &n->mul);
}

NPU(hal_npu_mul, EINVAL, flags, ".flags")
{
	n->mul.flags = 1u << 5;
	return hal_npu_mul(n->b, &n->mul);
}

NPU(hal_npu_mul, EINVAL, clamp, "max")
{
	n->mul.min = 1;
	n->mul.max = 0;
	return hal_npu_mul(n->b, &n->mul);
}

NPU(hal_npu_mul, ERANGE, second_operand, ".b")
{
	n->mul.rows = 64;
	n->mul.b.offset = 4;
	return hal_npu_mul(n->b, &n->mul);
}

NPU(hal_npu_lut, EINVAL, bytes_zero, "bytes")
{
	n->lut.bytes = 0;
	return hal_npu_lut(n->b, &n->lut);
}

NPU(hal_npu_lut, EINVAL, table_null, "NULL")
{
	n->lut.table = NULL;
	return hal_npu_lut(n->b, &n->lut);
}

NPU(hal_npu_softmax, EINVAL, rows_zero, ".rows")
{
	n->softmax.rows = 0;
	return hal_npu_softmax(n->b, &n->softmax);
}

NPU(hal_npu_softmax, EINVAL, exp_null, "NULL")
{
	n->softmax.exp = NULL;
	return hal_npu_softmax(n->b, &n->softmax);
}

NPU(hal_npu_softmax, EINVAL, exp_negative, ".exp")
{
	n->exp[7] = -1;
	return hal_npu_softmax(n->b, &n->softmax);
}

NPU(hal_npu_softmax, EINVAL, flags, ".flags")
{
	n->softmax.flags = HAL_NPU_B_UINT8;
	return hal_npu_softmax(n->b, &n->softmax);
}

NPU(hal_npu_softmax, ENOTSUP, row_too_long, "4095")
{
	n->softmax.rows = 1;
	n->softmax.cols = 4096;
	return hal_npu_softmax(n->b, &n->softmax);
}

NPU(hal_npu_add, EINVAL, bytes_zero, "bytes")
{
	n->add.bytes = 0;
	return hal_npu_add(n->b, &n->add);
}

NPU(hal_npu_add, EINVAL, shift_positive, "a_shift")
{
	n->add.a_shift = 1;
	return hal_npu_add(n->b, &n->add);
}

NPU(hal_npu_add, ERANGE, second_operand, ".b")
{
	n->add.b.offset = 4090;
	return hal_npu_add(n->b, &n->add);
}

NPU(hal_npu_relu, EINVAL, bytes_zero, "bytes")
{
	n->relu.bytes = 0;
	return hal_npu_relu(n->b, &n->relu);
}

NPU(hal_npu_relu, EINVAL, clamp, "max")
{
	n->relu.min = 100;
	n->relu.max = 0;
	return hal_npu_relu(n->b, &n->relu);
}

NPU(hal_npu_maxpool, EINVAL, window_zero, "kh")
{
	n->pool.kh = 0;
	return hal_npu_maxpool(n->b, &n->pool);
}

NPU(hal_npu_maxpool, ENOTSUP, stride_too_large, "stride_h")
{
	n->pool.stride_h = 1000;
	n->pool.oh = 1;
	return hal_npu_maxpool(n->b, &n->pool);
}

NPU(hal_npu_maxpool, EINVAL, flags, ".flags")
{
	n->pool.flags = HAL_NPU_A_REPEAT;
	return hal_npu_maxpool(n->b, &n->pool);
}

NPU(hal_npu_avgpool, EINVAL, padding, "pad_top")
{
	n->pool.pad_top = 2;
	return hal_npu_avgpool(n->b, &n->pool);
}

NPU(hal_npu_avgpool, EINVAL, clamp_of_int8, "max")
{
	n->pool.max = 128;
	return hal_npu_avgpool(n->b, &n->pool);
}

NPU(hal_npu_avgpool, ENOTSUP, window_too_large, "kh")
{
	n->pool.kh = 256;
	return hal_npu_avgpool(n->b, &n->pool);
}

NPU(hal_npu_copy, EINVAL, flags, ".flags")
{
	n->copy.flags = HAL_NPU_A_UINT8;
	return hal_npu_copy(n->b, &n->copy);
}

NPU(hal_npu_copy, EINVAL, rows_zero, "rows")
{
	n->copy.rows = 0;
	return hal_npu_copy(n->b, &n->copy);
}

NPU(hal_npu_copy, EINVAL, stride_short, "stride")
{
	n->copy.d_stride = 3;
	return hal_npu_copy(n->b, &n->copy);
}

NPU(hal_npu_fill, EINVAL, builder_null, "hal_npu_fill")
{
	return hal_npu_fill(NULL, (struct hal_npu_place){n->d, 0}, 64, 0);
}

NPU(hal_npu_fill, EINVAL, bytes_odd, "multiple of 4")
{
	return hal_npu_fill(n->b, (struct hal_npu_place){n->d, 0}, 6, 0);
}

NPU(hal_npu_fill, ERANGE, writes_past, "hal_npu_fill")
{
	return hal_npu_fill(n->b, (struct hal_npu_place){n->d, 4092}, 8, 0);
}

/* As many descriptors as a kernel may have, by repeating a row of 2^30 bytes in pieces of
 * 2^15. */
static int fill_kernel(struct npu *n)
{
	struct hal_npu_copy all = {.size = sizeof(all),
				   .rows = 2,
				   .bytes = 1u << 30,
				   .flags = HAL_NPU_A_REPEAT};
	int i;

	NEG_OK(hal_npu_kernel(n->b, "full"));
	NEG_OK(hal_npu_arg(n->b, 1u << 30, &all.a.id));
	NEG_OK(hal_npu_arg(n->b, 1u << 31, &all.d.id));
	for (i = 0; i < 32; i++)
		NEG_OK(hal_npu_copy(n->b, &all));
	/* Room for one operation of any kind, in places of this kernel. */
	n->a = n->w = all.a.id;
	n->d = all.d.id;
	good(n);
	return 0;
}

NPU(hal_npu_add, ENOTSUP, kernel_full, "2^20 descriptors")
{
	NEG_OK(fill_kernel(n));
	return hal_npu_add(n->b, &n->add);
}

NPU(hal_npu_relu, ENOTSUP, kernel_full, "2^20 descriptors")
{
	NEG_OK(fill_kernel(n));
	return hal_npu_relu(n->b, &n->relu);
}

NPU(hal_npu_copy, ENOTSUP, kernel_full, "2^20 descriptors")
{
	NEG_OK(fill_kernel(n));
	return hal_npu_copy(n->b, &n->copy);
}

NPU(hal_npu_mul, ENOTSUP, kernel_full, "2^20 descriptors")
{
	NEG_OK(fill_kernel(n));
	return hal_npu_mul(n->b, &n->mul);
}

NPU(hal_npu_lut, ENOTSUP, kernel_full, "2^20 descriptors")
{
	NEG_OK(fill_kernel(n));
	return hal_npu_lut(n->b, &n->lut);
}

NPU(hal_npu_softmax, ENOTSUP, kernel_full, "2^20 descriptors")
{
	NEG_OK(fill_kernel(n));
	return hal_npu_softmax(n->b, &n->softmax);
}

NPU(hal_npu_avgpool, ENOTSUP, kernel_full, "2^20 descriptors")
{
	NEG_OK(fill_kernel(n));
	return hal_npu_avgpool(n->b, &n->pool);
}

NPU(hal_npu_fill, ENOTSUP, kernel_full, "2^20 descriptors")
{
	NEG_OK(fill_kernel(n));
	return hal_npu_fill(n->b, (struct hal_npu_place){n->d, 0}, 64, 0);
}

/* ---- building --------------------------------------------------------------------- */

NPU(hal_npu_build, EINVAL, image_null, "image")
{
	return hal_npu_build(n->b, NULL, &n->size);
}

NPU(hal_npu_build, EINVAL, size_null, "size")
{
	return hal_npu_build(n->b, &n->image, NULL);
}

NPU(hal_npu_build, EINVAL, builder_null, "builder")
{
	return hal_npu_build(NULL, &n->image, &n->size);
}

NPU(hal_npu_build, ENOTSUP, scratch_and_image, "2^31")
{
	NEG_OK(hal_npu_scratch(n->b, UINT64_C(1) << 31, &n->id));
	return hal_npu_build(n->b, &n->image, &n->size);
}

NEGATIVE(hal_npu_build, EINVAL, no_kernel, "no kernel")
{
	struct hal_npu_builder *b;
	void *image;
	size_t size;
	int err;

	(void)w;
	NEG_OK(hal_npu_builder_create(&b));
	err = hal_npu_build(b, &image, &size);
	(void)hal_npu_builder_destroy(b);
	return err;
}

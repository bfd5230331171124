/* SPDX-License-Identifier: Apache-2.0 */
/* The program builder with no memory for each of its allocations in turn. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <hal/npu.h>

#include "nomem.h"

enum { ARG_BYTES = 1 << 20, KERNELS = 300, FULL = 200 };

static const int32_t mults[32] = {1 << 30};
static const int32_t shifts[32] = {0};
static const int32_t powers[256] = {1};
static const int8_t weights[65536];

struct places {
	struct hal_npu_place in, out, weights;
};

static int matrices(struct hal_npu_builder *b, const struct places *p)
{
	struct hal_npu_gemm gemm = HAL_INIT(hal_npu_gemm);
	struct hal_npu_conv conv = HAL_INIT(hal_npu_conv);
	int err;

	gemm.m = gemm.n = gemm.k = 32;
	gemm.a = p->in;
	gemm.b = p->weights;
	gemm.d = p->out;
	gemm.out.mult = mults;
	gemm.out.shift = shifts;
	gemm.out.min = -128;
	gemm.out.max = 127;
	err = hal_npu_gemm(b, &gemm);
	if (err != 0)
		return err;
	conv.h = conv.w = conv.oh = conv.ow = 16;
	conv.c = conv.n = 8;
	conv.kh = conv.kw = 3;
	conv.stride_h = conv.stride_w = conv.dilation_h = conv.dilation_w = 1;
	conv.pad_top = conv.pad_left = 1;
	conv.a = p->in;
	conv.d = p->out;
	conv.weights = weights;
	conv.out = gemm.out;
	for (conv.groups = 1; conv.groups <= 8 && err == 0; conv.groups *= 2)
		err = hal_npu_conv(b, &conv);
	return err;
}

static int vectors(struct hal_npu_builder *b, const struct places *p)
{
	struct hal_npu_lut lut = HAL_INIT(hal_npu_lut);
	struct hal_npu_softmax softmax = HAL_INIT(hal_npu_softmax);
	struct hal_npu_copy copy = HAL_INIT(hal_npu_copy);
	int err;

	lut.a = p->in;
	lut.d = p->out;
	lut.bytes = 64;
	lut.table = (const uint8_t *)weights;
	softmax.a = p->in;
	softmax.d = p->out;
	softmax.rows = 2;
	softmax.cols = 64;
	softmax.exp = powers;
	copy.a = p->in;
	copy.d = p->out;
	copy.rows = 3;
	copy.bytes = 70000;
	copy.a_stride = 80000;
	err = hal_npu_lut(b, &lut);
	if (err == 0)
		err = hal_npu_softmax(b, &softmax);
	if (err == 0)
		err = hal_npu_copy(b, &copy);
	return err == 0 ? hal_npu_fill(b, p->out, 64, 1) : err;
}

static int pools(struct hal_npu_builder *b, const struct places *p)
{
	struct hal_npu_pool pool = HAL_INIT(hal_npu_pool);
	int err;

	pool.h = pool.w = 8;
	pool.oh = pool.ow = 4;
	pool.c = 16;
	pool.kh = pool.kw = pool.stride_h = pool.stride_w = 2;
	pool.a = p->in;
	pool.d = p->out;
	pool.min = -128;
	pool.max = 127;
	err = hal_npu_maxpool(b, &pool);
	return err == 0 ? hal_npu_avgpool(b, &pool) : err;
}

static int elements(struct hal_npu_builder *b, const struct places *p)
{
	struct hal_npu_add add = HAL_INIT(hal_npu_add);
	struct hal_npu_mul mul = HAL_INIT(hal_npu_mul);
	struct hal_npu_relu relu = HAL_INIT(hal_npu_relu);
	int err;

	add.bytes = mul.bytes = relu.bytes = 64;
	mul.rows = 1;
	add.left_shift = 20;
	add.a = add.b = mul.a = mul.b = relu.a = p->in;
	add.d = mul.d = relu.d = p->out;
	add.a_mult = add.b_mult = add.d_mult = mul.mult = relu.mult = 1 << 30;
	add.min = mul.min = relu.min = -128;
	add.max = mul.max = relu.max = 127;
	err = hal_npu_add(b, &add);
	if (err == 0)
		err = hal_npu_mul(b, &mul);
	return err == 0 ? hal_npu_relu(b, &relu) : err;
}

/* Kernels enough for every list to be made larger. */
static int kernels(struct hal_npu_builder *b)
{
	char name[] = "kernel aa";
	struct places p;
	int err = 0;

	memset(&p, 0, sizeof(p));
	for (int i = 0; i < KERNELS && err == 0; i++) {
		name[7] = (char)('a' + i / 26);
		name[8] = (char)('a' + i % 26);
		err = hal_npu_kernel(b, name);
		if (err == 0)
			err = hal_npu_arg(b, ARG_BYTES, &p.in.id);
		if (err == 0)
			err = hal_npu_arg(b, ARG_BYTES, &p.out.id);
		if (err == 0 && i == 0)
			err = hal_npu_const(b, weights, 4096, &p.weights.id);
		if (err == 0 && i == 0)
			err = matrices(b, &p);
		if (err == 0 && i == 0)
			err = vectors(b, &p);
	}
	return err == 0 ? hal_npu_scratch(b, 4096, &p.in.id) : err;
}

/* The k-th allocation fails, if there are so many; all that is left is freed. */
static int build(unsigned long k, bool *failed)
{
	struct hal_npu_builder *b;
	void *image = NULL;
	size_t size;
	int err;

	assert_int_equal(hal_npu_builder_create(&b), 0);
	nomem_arm(k);
	err = kernels(b);
	if (err == 0)
		err = hal_npu_build(b, &image, &size);
	*failed = nomem_disarm();
	hal_npu_image_free(image);
	assert_int_equal(hal_npu_builder_destroy(b), 0);
	return err;
}

static void each_in_turn(void **state)
{
	unsigned long k = 0;
	bool failed;
	int err;

	(void)state;
	do {
		err = build(++k, &failed);
		if (err != (failed ? -ENOMEM : 0))
			fail_msg("allocation %lu: %d: %s", k, err, hal_last_error());
	} while (failed);
	assert_true(k > 20);
}

/* Behind so many descriptors as it takes for any list to be full in the middle of any
 * operation, and no memory for that one. */
static void each_in_the_middle(void **state)
{
	static int (*const operations[])(struct hal_npu_builder *,
					 const struct places *) = {matrices, vectors,
								   pools, elements};
	unsigned long failures = 0;

	(void)state;
	for (unsigned int i = 0; i < 4 * FULL; i++) {
		struct hal_npu_builder *b;
		struct places p;
		bool failed;
		int err;

		memset(&p, 0, sizeof(p));
		assert_int_equal(hal_npu_builder_create(&b), 0);
		assert_int_equal(hal_npu_kernel(b, "all"), 0);
		assert_int_equal(hal_npu_arg(b, ARG_BYTES, &p.in.id), 0);
		assert_int_equal(hal_npu_arg(b, ARG_BYTES, &p.out.id), 0);
		assert_int_equal(hal_npu_const(b, weights, 4096, &p.weights.id), 0);
		for (unsigned int j = 0; j < i / 4; j++)
			assert_int_equal(hal_npu_fill(b, p.out, 16, 1), 0);
		nomem_arm(1);
		err = operations[i % 4](b, &p);
		failed = nomem_disarm();
		failures += failed;
		if (err != (failed ? -ENOMEM : 0))
			fail_msg("operations %u behind %u fills: %d: %s", i % 4, i / 4,
				 err, hal_last_error());
		assert_int_equal(hal_npu_builder_destroy(b), 0);
	}
	assert_true(failures > 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_in_turn),
		cmocka_unit_test(each_in_the_middle),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

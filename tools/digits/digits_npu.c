/* SPDX-License-Identifier: Apache-2.0 */
/* A digit classifier as an NPU program: one operation a layer. */
#include "digits.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include <hal/npu.h>

struct build {
	struct hal_npu_builder *b;
	const struct digits_net *net;
	struct hal_npu_place place[DIGITS_TENSORS_MAX];
};

static struct hal_npu_requant requant(const struct build *s, uint32_t i)
{
	const struct digits_layer *l = &s->net->layers[i];

	return (struct hal_npu_requant){.bias = l->bias,
					.mult = l->mult,
					.shift = l->shift,
					.per_channel = 1,
					.zero_point = s->net->tensors[i + 1].zero,
					.min = l->min,
					.max = l->max};
}

static int build_conv(struct build *s, uint32_t i)
{
	const struct digits_layer *l = &s->net->layers[i];
	const struct digits_tensor *a = &s->net->tensors[l->src[0]];
	const struct digits_tensor *d = &s->net->tensors[i + 1];
	struct hal_npu_conv op = HAL_INIT(hal_npu_conv);

	op.h = a->h;
	op.w = a->w;
	op.c = a->c;
	op.oh = d->h;
	op.ow = d->w;
	op.n = d->c;
	op.kh = op.kw = l->kernel;
	op.stride_h = op.stride_w = l->stride;
	op.dilation_h = op.dilation_w = 1;
	op.pad_top = op.pad_left = l->pad;
	op.groups = 1;
	op.a = s->place[l->src[0]];
	op.d = s->place[i + 1];
	op.weights = l->weights;
	op.a_zero = a->zero;
	op.out = requant(s, i);
	return hal_npu_conv(s->b, &op);
}

/* The file keeps weights as [n][k]; the machine reads B as [k][n]. */
static int build_dense(struct build *s, uint32_t i)
{
	const struct digits_layer *l = &s->net->layers[i];
	const struct digits_tensor *a = &s->net->tensors[l->src[0]];
	struct hal_npu_gemm op = HAL_INIT(hal_npu_gemm);
	int8_t *turned;
	int err;

	op.m = 1;
	op.n = s->net->tensors[i + 1].c;
	op.k = a->h * a->w * a->c;
	turned = malloc((size_t)op.n * op.k);
	if (!turned)
		return -ENOMEM;
	for (uint32_t n = 0; n < op.n; n++)
		for (uint32_t k = 0; k < op.k; k++)
			turned[(size_t)k * op.n + n] = l->weights[(size_t)n * op.k + k];
	err = hal_npu_const(s->b, turned, (uint64_t)op.n * op.k, &op.b.id);
	free(turned);
	if (err)
		return err;
	op.a = s->place[l->src[0]];
	op.d = s->place[i + 1];
	op.a_zero = a->zero;
	op.out = requant(s, i);
	return hal_npu_gemm(s->b, &op);
}

static int build_pool(struct build *s, uint32_t i)
{
	const struct digits_layer *l = &s->net->layers[i];
	const struct digits_tensor *a = &s->net->tensors[l->src[0]];
	struct hal_npu_pool op = HAL_INIT(hal_npu_pool);

	op.h = a->h;
	op.w = a->w;
	op.c = a->c;
	op.oh = s->net->tensors[i + 1].h;
	op.ow = s->net->tensors[i + 1].w;
	op.kh = op.kw = l->kernel;
	op.stride_h = op.stride_w = l->stride;
	op.a = s->place[l->src[0]];
	op.d = s->place[i + 1];
	op.min = l->min;
	op.max = l->max;
	return hal_npu_maxpool(s->b, &op);
}

static int build_add(struct build *s, uint32_t i)
{
	const struct digits_layer *l = &s->net->layers[i];
	const struct digits_tensor *t = s->net->tensors, *d = &t[i + 1];
	struct hal_npu_add op = HAL_INIT(hal_npu_add);

	op.bytes = d->h * d->w * d->c;
	op.a = s->place[l->src[0]];
	op.b = s->place[l->src[1]];
	op.d = s->place[i + 1];
	op.a_zero = t[l->src[0]].zero;
	op.b_zero = t[l->src[1]].zero;
	op.d_zero = d->zero;
	op.a_mult = l->add_mult[0];
	op.b_mult = l->add_mult[1];
	op.d_mult = l->add_mult[2];
	op.a_shift = l->add_shift[0];
	op.b_shift = l->add_shift[1];
	op.d_shift = l->add_shift[2];
	op.left_shift = l->add_left;
	op.min = l->min;
	op.max = l->max;
	return hal_npu_add(s->b, &op);
}

/* Logits and image are the caller's; what lies between is the program's own. */
static int build_places(struct build *s)
{
	uint32_t last = s->net->tensor_count - 1;
	int err = hal_npu_arg(s->b, DIGITS_CLASSES, &s->place[last].id);

	if (!err)
		err = hal_npu_arg(s->b, DIGITS_PIXELS, &s->place[0].id);
	for (uint32_t i = 1; i < last && !err; i++) {
		const struct digits_tensor *t = &s->net->tensors[i];

		err = hal_npu_scratch(s->b, (uint64_t)t->h * t->w * t->c,
				      &s->place[i].id);
	}
	return err;
}

int digits_build(const struct digits_net *net, void **image, size_t *size, char *why)
{
	static int (*const layer[])(struct build *, uint32_t) = {
		[DIGITS_CONV] = build_conv,
		[DIGITS_DENSE] = build_dense,
		[DIGITS_POOL] = build_pool,
		[DIGITS_ADD] = build_add,
	};
	struct build s = {.net = net};
	int err = hal_npu_builder_create(&s.b);

	if (!err)
		err = hal_npu_kernel(s.b, "run");
	if (!err)
		err = build_places(&s);
	for (uint32_t i = 0; i < net->layer_count && !err; i++)
		err = layer[net->layers[i].kind](&s, i);
	if (!err)
		err = hal_npu_build(s.b, image, size);
	if (err)
		snprintf(why, DIGITS_WHY, "network \"%s\": %s", net->name,
			 err == -ENOMEM ? "out of memory" : hal_last_error());
	hal_npu_builder_destroy(s.b);
	return err;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_onnx.c - ONNX's own node vectors, each built with hal/npu.h and run on rectangles
 * of several shapes: every element of the output as ONNX says.
 *
 *   test_onnx [--figures] FOLDER TARGET     FOLDER: .../data/node of libonnx-testdata
 *
 * ONNX is NCHW and its weights OIHW, the machine NHWC and OHWI: turned round on the host.
 * QuantizeLinear and DequantizeLinear do not apply: the machine has no float elements, so
 * no operation of it does what they do.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <hal/npu.h>

#include "onnx.h"

struct vector {
	struct onnx_node node;
	struct onnx_tensor in[ONNX_INPUTS]; /* the node's, in its order */
	struct onnx_tensor out;
};

/* The operation as a program, and what it reads. */
struct job {
	struct hal_npu_builder *builder;
	struct hal_npu_place a, b, d;
	uint8_t *in[2];
	uint64_t bytes[2];
	uint64_t out_bytes;
	uint32_t channels; /* of an NHWC output; 0: the output is as in the vector */
	uint32_t arguments;
	float scale[64];
};

/* Newer releases of ONNX name some vectors otherwise, and have one no more. */
static const struct {
	const char *name, *newer;
	bool gone;
} vectors[] = {
	{.name = "test_matmulinteger"},
	{.name = "test_basic_convinteger", .gone = true},
	{.name = "test_convinteger_with_padding"},
	{.name = "test_convinteger_without_padding"},
	{.name = "test_qlinearconv"},
	{.name = "test_qlinearmatmul_2D", .newer = "test_qlinearmatmul_2D_uint8_float32"},
	{.name = "test_qlinearmatmul_3D", .newer = "test_qlinearmatmul_3D_uint8_float32"},
	{.name = "test_maxpool_2d_uint8"},
};
#define VECTORS (sizeof(vectors) / sizeof(vectors[0]))

static bool has_vector(const char *folder, const char *name)
{
	char path[512];

	snprintf(path, sizeof(path), "%s/%s/model.onnx", folder, name);
	return access(path, R_OK) == 0;
}

/* The whole array, one that is no multiple of anything, a row, a column. */
static const struct {
	uint16_t row, col, rows, cols;
} rects[] = {{0, 0, 16, 16}, {3, 2, 5, 7}, {15, 1, 1, 3}, {2, 13, 11, 1}};

/* ---- reading ---------------------------------------------------------------------- */

/* Every prefix, at the end of a block of its own so that memcheck and the address
 * sanitizer see a byte too many. */
static void parse_prefixes(const uint8_t *bytes, size_t size)
{
	for (size_t n = 0; n < size; n++) {
		uint8_t *copy = malloc(n ? n : 1);
		struct onnx_tensor t;
		struct onnx_node node;

		if (!copy)
			return;
		memcpy(copy, bytes, n);
		if (onnx_tensor_parse(copy, n, &t) == 0)
			onnx_tensor_free(&t);
		(void)onnx_node_parse(copy, n, &node);
		free(copy);
	}
}

static int read_tensor(const char *folder, const char *name, const char *what, int32_t i,
		       struct onnx_tensor *t)
{
	char path[512];
	uint8_t *bytes;
	size_t size;
	int err;

	snprintf(path, sizeof(path), "%s/%s/test_data_set_0/%s_%d.pb", folder, name, what,
		 (int)i);
	bytes = onnx_read_file(path, &size);
	if (!bytes) {
		printf("%s: %s\n", path, strerror(errno));
		return -ENOENT;
	}
	err = onnx_tensor_parse(bytes, size, t);
	if (err)
		printf("%s: not a tensor: %s\n", path, strerror(-err));
	parse_prefixes(bytes, size);
	free(bytes);
	return err;
}

static int read_vector(const char *folder, const char *name, struct vector *v)
{
	char path[512];
	uint8_t *bytes;
	size_t size;
	int err;

	memset(v, 0, sizeof(*v));
	snprintf(path, sizeof(path), "%s/%s/model.onnx", folder, name);
	bytes = onnx_read_file(path, &size);
	if (!bytes) {
		printf("%s: %s\n", path, strerror(errno));
		return -ENOENT;
	}
	err = onnx_node_parse(bytes, size, &v->node);
	if (err)
		printf("%s: not a model: %s\n", path, strerror(-err));
	parse_prefixes(bytes, size);
	free(bytes);
	for (uint32_t i = 0; i < v->node.input_count && !err; i++)
		if (v->node.input[i] >= 0)
			err = read_tensor(folder, name, "input", v->node.input[i],
					  &v->in[i]);
	return err ? err : read_tensor(folder, name, "output", 0, &v->out);
}

static void free_vector(struct vector *v)
{
	for (uint32_t i = 0; i < ONNX_INPUTS; i++)
		onnx_tensor_free(&v->in[i]);
	onnx_tensor_free(&v->out);
}

/* ---- pieces of operations --------------------------------------------------------- */

/* A scalar; 0 where it is left out.  One a channel: no vector has that. */
static int zero_point(const struct onnx_tensor *t, int32_t *value)
{
	*value = 0;
	if (!t->data)
		return 0;
	if (t->count != 1)
		return -ENOTSUP;
	if (t->type == ONNX_UINT8)
		*value = *(const uint8_t *)t->data;
	else if (t->type == ONNX_INT8)
		*value = *(const int8_t *)t->data;
	else
		return -EINVAL;
	return 0;
}

static bool is_byte(const struct onnx_tensor *t)
{
	return t->data && (t->type == ONNX_UINT8 || t->type == ONNX_INT8);
}

static bool is_float(const struct onnx_tensor *t)
{
	return t->data && t->type == ONNX_FLOAT && t->count;
}

static uint32_t flags_of(const struct onnx_tensor *a, const struct onnx_tensor *b,
			 const struct onnx_tensor *d)
{
	return (a->type == ONNX_UINT8 ? HAL_NPU_A_UINT8 : 0) |
	       (b && b->type == ONNX_UINT8 ? HAL_NPU_B_UINT8 : 0) |
	       (d->type == ONNX_UINT8 ? HAL_NPU_D_UINT8 : 0);
}

/* d scale = a scale * b scale / y scale, one or one an output channel. */
static int requantize(struct job *j, const struct onnx_tensor *a,
		      const struct onnx_tensor *b, const struct onnx_tensor *y,
		      const struct onnx_tensor *y_zero, struct hal_npu_requant *r)
{
	if (!is_float(a) || !is_float(b) || !is_float(y) || a->count != 1 ||
	    y->count != 1 || b->count > sizeof(j->scale) / sizeof(j->scale[0]))
		return -EINVAL;
	for (uint32_t i = 0; i < b->count; i++)
		j->scale[i] = *(const float *)a->data * ((const float *)b->data)[i] /
			      *(const float *)y->data;
	r->scale = j->scale;
	r->per_channel = b->count > 1;
	r->min = y_zero->type == ONNX_UINT8 ? 0 : -128;
	r->max = y_zero->type == ONNX_UINT8 ? 255 : 127;
	return zero_point(y_zero, &r->zero_point);
}

static int input(struct job *j, const void *data, uint64_t bytes,
		 struct hal_npu_place *place)
{
	uint32_t i = j->arguments;

	j->in[i] = malloc(bytes ? bytes : 1);
	if (!j->in[i])
		return -ENOMEM;
	memcpy(j->in[i], data, bytes);
	j->bytes[i] = bytes;
	j->arguments++;
	return hal_npu_arg(j->builder, bytes, &place->id);
}

/* [n][c][h][w] to [n][h][w][c], bytes. */
static uint8_t *channels_last(const struct onnx_tensor *t)
{
	uint32_t n = t->dims[0], c = t->dims[1], pixels = t->dims[2] * t->dims[3];
	uint8_t *turned = malloc(t->count ? t->count : 1);

	if (!turned)
		return NULL;
	for (uint32_t i = 0; i < n; i++)
		for (uint32_t k = 0; k < c; k++)
			for (uint32_t p = 0; p < pixels; p++)
				turned[((size_t)i * pixels + p) * c + k] =
					((const uint8_t *)
						 t->data)[((size_t)i * c + k) * pixels +
							  p];
	return turned;
}

static int image_input(struct job *j, const struct onnx_tensor *x,
		       struct hal_npu_place *a)
{
	uint8_t *turned;
	int err;

	if (!is_byte(x) || x->rank != 4 || x->dims[0] != 1)
		return -ENOTSUP;
	turned = channels_last(x);
	if (!turned)
		return -ENOMEM;
	err = input(j, turned, x->count, a);
	free(turned);
	return err;
}

static int output(struct job *j, const struct onnx_tensor *y, struct hal_npu_place *d)
{
	j->out_bytes = (uint64_t)y->count * (y->type == ONNX_INT32 ? 4 : 1);
	return hal_npu_arg(j->builder, j->out_bytes, &d->id);
}

/* ---- operations ------------------------------------------------------------------- */

/* [batch][m][k] times [batch][k][n], an operation a matrix. */
static int build_matmul(const struct vector *v, struct job *j,
			const struct onnx_tensor *a, const struct onnx_tensor *b,
			struct hal_npu_gemm *op)
{
	uint32_t batch, width = v->out.type == ONNX_INT32 ? 4 : 1;
	int err;

	if (!is_byte(a) || !is_byte(b) || a->rank < 2 || a->rank != b->rank ||
	    a->dims[a->rank - 1] != b->dims[b->rank - 2] || !a->count)
		return -EINVAL;
	op->m = a->dims[a->rank - 2];
	op->k = a->dims[a->rank - 1];
	op->n = b->dims[b->rank - 1];
	batch = a->count / (op->m * op->k);
	if (b->count != batch * op->k * op->n || v->out.count != batch * op->m * op->n)
		return -EINVAL;
	op->flags = flags_of(a, b, &v->out);
	err = input(j, a->data, a->count, &op->a);
	if (!err)
		err = input(j, b->data, b->count, &op->b);
	if (!err)
		err = output(j, &v->out, &op->d);
	for (uint32_t i = 0; i < batch && !err; i++) {
		op->a.offset = i * op->m * op->k;
		op->b.offset = i * op->k * op->n;
		op->d.offset = i * op->m * op->n * width;
		err = hal_npu_gemm(j->builder, op);
	}
	return err;
}

static int build_matmulinteger(const struct vector *v, struct job *j)
{
	struct hal_npu_gemm op = HAL_INIT(hal_npu_gemm);
	int err = zero_point(&v->in[2], &op.a_zero);

	if (!err)
		err = zero_point(&v->in[3], &op.b_zero);
	return err ? err : build_matmul(v, j, &v->in[0], &v->in[1], &op);
}

static int build_qlinearmatmul(const struct vector *v, struct job *j)
{
	struct hal_npu_gemm op = HAL_INIT(hal_npu_gemm);
	int err = zero_point(&v->in[2], &op.a_zero);

	if (!err)
		err = zero_point(&v->in[5], &op.b_zero);
	if (!err)
		err = requantize(j, &v->in[1], &v->in[4], &v->in[6], &v->in[7], &op.out);
	return err ? err : build_matmul(v, j, &v->in[0], &v->in[3], &op);
}

static int build_conv(const struct vector *v, struct job *j, const struct onnx_tensor *x,
		      const struct onnx_tensor *w, struct hal_npu_conv *op)
{
	const struct onnx_node *node = &v->node;
	uint8_t *weights;
	int err;

	if (!is_byte(w) || w->rank != 4 || x->rank != 4 || v->out.rank != 4)
		return -EINVAL;
	op->c = x->dims[1];
	op->h = x->dims[2];
	op->w = x->dims[3];
	op->n = w->dims[0];
	op->kh = w->dims[2];
	op->kw = w->dims[3];
	op->oh = v->out.dims[2];
	op->ow = v->out.dims[3];
	op->stride_h = (uint32_t)onnx_int(node, "strides", 0, 1);
	op->stride_w = (uint32_t)onnx_int(node, "strides", 1, 1);
	op->dilation_h = (uint32_t)onnx_int(node, "dilations", 0, 1);
	op->dilation_w = (uint32_t)onnx_int(node, "dilations", 1, 1);
	op->pad_top = (uint32_t)onnx_int(node, "pads", 0, 0);
	op->pad_left = (uint32_t)onnx_int(node, "pads", 1, 0);
	op->groups = (uint32_t)onnx_int(node, "group", 0, 1);
	op->flags = flags_of(x, w, &v->out);
	j->channels = op->n;
	weights = channels_last(w);
	if (!weights)
		return -ENOMEM;
	op->weights = (const int8_t *)weights;
	err = image_input(j, x, &op->a);
	if (!err)
		err = output(j, &v->out, &op->d);
	if (!err)
		err = hal_npu_conv(j->builder, op);
	free(weights);
	return err;
}

static int build_convinteger(const struct vector *v, struct job *j)
{
	struct hal_npu_conv op = HAL_INIT(hal_npu_conv);
	int err = zero_point(&v->in[2], &op.a_zero);

	if (!err)
		err = zero_point(&v->in[3], &op.b_zero);
	return err ? err : build_conv(v, j, &v->in[0], &v->in[1], &op);
}

static int build_qlinearconv(const struct vector *v, struct job *j)
{
	struct hal_npu_conv op = HAL_INIT(hal_npu_conv);
	int err = zero_point(&v->in[2], &op.a_zero);

	if (!err)
		err = zero_point(&v->in[5], &op.b_zero);
	if (!err)
		err = requantize(j, &v->in[1], &v->in[4], &v->in[6], &v->in[7], &op.out);
	if (!err && v->in[8].data)
		err = -ENOTSUP; /* a bias: no vector has one */
	return err ? err : build_conv(v, j, &v->in[0], &v->in[3], &op);
}

static int build_maxpool(const struct vector *v, struct job *j)
{
	struct hal_npu_pool op = HAL_INIT(hal_npu_pool);
	const struct onnx_tensor *x = &v->in[0], *y = &v->out;
	int err;

	if (x->rank != 4 || y->rank != 4 || x->type != y->type)
		return -EINVAL;
	op.c = x->dims[1];
	op.h = x->dims[2];
	op.w = x->dims[3];
	op.oh = y->dims[2];
	op.ow = y->dims[3];
	op.kh = (uint32_t)onnx_int(&v->node, "kernel_shape", 0, 1);
	op.kw = (uint32_t)onnx_int(&v->node, "kernel_shape", 1, 1);
	op.stride_h = (uint32_t)onnx_int(&v->node, "strides", 0, 1);
	op.stride_w = (uint32_t)onnx_int(&v->node, "strides", 1, 1);
	op.pad_top = (uint32_t)onnx_int(&v->node, "pads", 0, 0);
	op.pad_left = (uint32_t)onnx_int(&v->node, "pads", 1, 0);
	op.min = x->type == ONNX_UINT8 ? 0 : -128;
	op.max = x->type == ONNX_UINT8 ? 255 : 127;
	op.flags = flags_of(x, NULL, y);
	j->channels = op.c;
	err = image_input(j, x, &op.a);
	if (!err)
		err = output(j, y, &op.d);
	return err ? err : hal_npu_maxpool(j->builder, &op);
}

static const struct {
	const char *op;
	int (*build)(const struct vector *v, struct job *j);
} operations[] = {
	{"MatMulInteger", build_matmulinteger},
	{"QLinearMatMul", build_qlinearmatmul},
	{"ConvInteger", build_convinteger},
	{"QLinearConv", build_qlinearconv},
	{"MaxPool", build_maxpool},
};

static int build(const struct vector *v, struct job *j, void **image, size_t *size)
{
	int err = hal_npu_builder_create(&j->builder);

	if (!err)
		err = hal_npu_kernel(j->builder, "node");
	if (err)
		return err;
	err = -ENOTSUP;
	for (size_t i = 0; i < sizeof(operations) / sizeof(operations[0]); i++)
		if (strcmp(operations[i].op, v->node.op) == 0)
			err = operations[i].build(v, j);
	return err ? err : hal_npu_build(j->builder, image, size);
}

/* ---- running ---------------------------------------------------------------------- */

struct device {
	struct hal_device *dev;
	struct hal_partition *part;
	struct hal_queue *queue;
};

static int open_rect(struct device *d, size_t i)
{
	struct hal_partition_desc part = HAL_INIT(hal_partition_desc);
	struct hal_queue_desc queue = HAL_INIT(hal_queue_desc);
	int err;

	part.row = rects[i].row;
	part.col = rects[i].col;
	part.rows = rects[i].rows;
	part.cols = rects[i].cols;
	err = hal_partition_create(d->dev, &part, &d->part);
	return err ? err : hal_queue_create(d->part, &queue, &d->queue);
}

static void close_rect(struct device *d)
{
	hal_queue_destroy(d->queue);
	hal_partition_destroy(d->part);
	d->queue = NULL;
	d->part = NULL;
}

static int launch(struct device *d, struct hal_kernel *kernel, struct hal_buffer **buf,
		  uint32_t count)
{
	struct hal_submit_desc submit = HAL_INIT(hal_submit_desc);
	struct hal_arg args[3] = {{buf[0], 0, 0}, {buf[1], 0, 0}, {buf[2], 0, 0}};
	struct hal_point done;
	struct hal_cmd cmd = hal_cmd_launch(kernel, args, count);
	int err;

	submit.cmds = &cmd;
	submit.cmd_count = 1;
	err = hal_submit(d->queue, &submit, &done);
	return err ? err : hal_wait(&done, 1, 0, HAL_FOREVER);
}

/* got: malloc'd by the caller, the vector's size; starts as anything but the result. */
static int run_job(struct device *d, struct job *j, const void *image, size_t size,
		   uint8_t *got)
{
	struct hal_buffer_desc desc = HAL_INIT(hal_buffer_desc);
	struct hal_buffer *buf[3] = {NULL, NULL, NULL};
	struct hal_program *prog = NULL;
	struct hal_kernel *kernel;
	uint32_t last = j->arguments;
	int err = 0;

	for (uint32_t i = 0; i <= last && !err; i++) {
		desc.bytes = i < last ? j->bytes[i] : j->out_bytes;
		err = hal_buffer_create(d->part, &desc, &buf[i]);
		if (!err)
			err = hal_buffer_write(buf[i], 0, i < last ? j->in[i] : got,
					       desc.bytes);
	}
	if (!err)
		err = hal_program_load(d->dev, image, size, &prog);
	if (!err)
		err = hal_kernel_find(prog, "node", &kernel);
	if (!err)
		err = launch(d, kernel, buf, last + 1);
	if (!err)
		err = hal_buffer_read(buf[last], 0, got, j->out_bytes);
	hal_program_unload(prog);
	for (uint32_t i = 0; i <= last; i++)
		hal_buffer_destroy(buf[i]);
	return err;
}

/* Element i of the vector is which of the program's? */
static size_t place_of(const struct job *j, const struct onnx_tensor *y, uint32_t i)
{
	uint32_t pixels;

	if (!j->channels)
		return i;
	pixels = y->dims[2] * y->dims[3];
	return (size_t)(i % pixels) * j->channels + i / pixels;
}

static int compare(const char *name, size_t rect, const struct vector *v,
		   const struct job *j, const uint8_t *got)
{
	uint32_t width = v->out.type == ONNX_INT32 ? 4 : 1;
	const uint8_t *want = v->out.data;

	for (uint32_t i = 0; i < v->out.count; i++) {
		int32_t a = 0, b = 0;

		memcpy(&a, got + place_of(j, &v->out, i) * width, width);
		memcpy(&b, want + (size_t)i * width, width);
		if (a != b) {
			printf("%s on %ux%u: element %u is %d, not %d\n", name,
			       rects[rect].rows, rects[rect].cols, i, (int)a, (int)b);
			return -EBADMSG;
		}
	}
	return 0;
}

static int run_on(struct device *d, size_t rect, const char *name, const struct vector *v,
		  struct job *j, const void *image, size_t size)
{
	uint8_t *got = malloc(j->out_bytes ? j->out_bytes : 1);
	int err;

	if (!got)
		return -ENOMEM;
	memset(got, 0xA5, j->out_bytes);
	err = open_rect(d, rect);
	if (!err)
		err = run_job(d, j, image, size, got);
	if (err)
		printf("%s on %ux%u: %s\n", name, rects[rect].rows, rects[rect].cols,
		       hal_last_error());
	else
		err = compare(name, rect, v, j, got);
	close_rect(d);
	free(got);
	return err;
}

static int run_vector(struct device *d, const char *folder, const char *name)
{
	struct job j = {.arguments = 0};
	struct vector v;
	void *image = NULL;
	size_t size = 0;
	int err = read_vector(folder, name, &v), one;

	if (!err) {
		err = build(&v, &j, &image, &size);
		if (err)
			printf("%s: %s: %s\n", name, strerror(-err), hal_last_error());
	}
	if (!err)
		for (size_t r = 0; r < sizeof(rects) / sizeof(rects[0]); r++) {
			one = run_on(d, r, name, &v, &j, image, size);
			err = err ? err : one;
		}
	printf("%s %s\n", err ? "FAILED" : "ok    ", name);
	hal_npu_image_free(image);
	hal_npu_builder_destroy(j.builder);
	free(j.in[0]);
	free(j.in[1]);
	free_vector(&v);
	return err;
}

int main(int argc, char **argv)
{
	bool figures = argc > 1 && strcmp(argv[1], "--figures") == 0;
	struct device d = {.dev = NULL};
	const char *folder, *target;
	uint32_t run = 0, failed = 0;
	int err;

	if (argc != (figures ? 4 : 3)) {
		printf("usage: test_onnx [--figures] FOLDER TARGET\n");
		return 2;
	}
	folder = argv[argc - 2];
	target = argv[argc - 1];
	if (!has_vector(folder, vectors[0].name)) {
		printf("no ONNX vectors in \"%s\": install libonnx-testdata\n", folder);
		return 77;
	}
	err = hal_open(target, NULL, &d.dev);
	if (err) {
		printf("%s: %s\n", target, hal_last_error());
		return err == -ENODEV ? 77 : 1;
	}
	for (size_t i = 0; i < VECTORS; i++) {
		const char *name = vectors[i].name;

		if (!has_vector(folder, name) && vectors[i].newer)
			name = vectors[i].newer;
		if (vectors[i].gone && !has_vector(folder, name)) {
			printf("absent %s\n", name);
			continue;
		}
		run++;
		failed += run_vector(&d, folder, name) != 0;
	}
	if (hal_close(d.dev)) {
		printf("%s\n", hal_last_error());
		return 1;
	}
	printf("%u vectors, %u failed\n", run, failed);
	if (figures) {
		printf("figure npu.onnx.vectors %u\n", run);
		printf("figure npu.onnx.failed %u\n", failed);
		return 0;
	}
	return failed != 0;
}

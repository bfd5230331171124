/* SPDX-License-Identifier: Apache-2.0 */
/* test_npuc_builder.c - models made by calls: what is refused and how it is said, and the
 * table operator.  tests/tflite/test_rebuild.c makes every operator. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <errno.h>

#include <hal/hal.h>

#include "npuc.h"

#define NAME   "made"
#define TARGET "npu:0?clock=virtual&model=" MODEL
#define DIMS(...)                                                                        \
	(const int32_t[])                                                                \
	{                                                                                \
		__VA_ARGS__                                                              \
	}
#define REFS(...)                                                                        \
	(const uint32_t[])                                                               \
	{                                                                                \
		__VA_ARGS__                                                              \
	}
#define WHY(call)                                                                        \
	do {                                                                             \
		if ((call) != 0)                                                         \
			fail_msg("%s: %s", #call, why);                                  \
	} while (0)

static char why[NPUC_WHY];
static const float half = 0.5f;

static struct npuc_builder *begin(void)
{
	struct npuc_builder *b;

	WHY(npuc_builder_create(NAME, &b, why));
	return b;
}

static struct npuc_tensor_desc bytes_of(enum npuc_type type, const int32_t *dims,
					const void *data, uint64_t bytes)
{
	return (struct npuc_tensor_desc){.type = type,
					 .rank = 1,
					 .dims = dims,
					 .scales = 1,
					 .scale = &half,
					 .data = data,
					 .bytes = bytes};
}

static uint32_t add(struct npuc_builder *b, struct npuc_tensor_desc d)
{
	uint32_t index = 99;

	WHY(npuc_builder_tensor(b, &d, &index, why));
	return index;
}

static void says(int rc, int err, const char *first, const char *second)
{
	assert_int_equal(rc, -err);
	if (!strstr(why, first) || !strstr(why, second))
		fail_msg("'%s' has not '%s' and '%s'", why, first, second);
}

/* ---- what is refused --------------------------------------------------------------- */

/* Tensor 1 of a builder, which is as before. */
static void bad_tensor(struct npuc_tensor_desc d, int err, const char *text)
{
	struct npuc_builder *b = begin();
	uint32_t index = 99;

	add(b, bytes_of(NPUC_INT8, DIMS(4), NULL, 0));
	d.name = "the tensor";
	says(npuc_builder_tensor(b, &d, &index, why), err,
	     NAME ": tensor 1 ('the tensor'): ", text);
	assert_int_equal(index, 99);
	assert_int_equal(add(b, bytes_of(NPUC_INT8, DIMS(4), NULL, 0)), 1);
	npuc_builder_free(b);
}

static void test_tensors(void **state)
{
	const struct npuc_tensor_desc good = bytes_of(NPUC_INT8, DIMS(2, 3), "abcdef", 2);
	static const float scales[] = {1, 2, 3};
	static const int32_t zeros[] = {0, 0, 0};
	struct npuc_tensor_desc d = good;

	(void)state;
	d.type = (enum npuc_type)19;
	bad_tensor(d, EINVAL, "its type is unknown");
	d = good;
	d.rank = 9;
	bad_tensor(d, EINVAL, "more than 8 dimensions");
	d = good;
	d.dims = NULL;
	bad_tensor(d, EINVAL, "its dimensions are NULL");
	d = good;
	d.dims = DIMS(-1);
	bad_tensor(d, EINVAL, "a dimension is negative");
	d.rank = 3;
	d.dims = DIMS(65536, 65536, 0);
	bad_tensor(d, EINVAL, "2^31 - 1");
	d = good;
	d.open = 1u << d.rank;
	bad_tensor(d, EINVAL, "a dimension that does not exist is open");
	d = good;
	d.scale = NULL;
	bad_tensor(d, EINVAL, "its scales are NULL");
	d = good;
	d.zero_points = 1;
	bad_tensor(d, EINVAL, "its zero points are NULL");
	d.zero_point = zeros;
	d.scales = 0;
	bad_tensor(d, EINVAL, "zero points but no scale");
	d = good;
	d.rank = 2;
	d.bytes = 6;
	d.scales = 3;
	d.scale = scales;
	bad_tensor(d, EINVAL, "differs from the size");
	d.channel_dim = 2;
	bad_tensor(d, EINVAL, "quantized dimension does not exist");
	d.channel_dim = 1;
	d.zero_points = 2;
	d.zero_point = zeros;
	bad_tensor(d, EINVAL, "number of zero points");
	d = good;
	d.bytes = 3;
	bad_tensor(d, EINVAL, "the number of its bytes");
	d.data = NULL;
	bad_tensor(d, EINVAL, "its data are NULL");
	d = good;
	d.type = NPUC_FLOAT16; /* whose bytes are not checked */
	d.bytes = UINT64_C(513) << 20;
	bad_tensor(d, ENOTSUP, "536870912 bytes together");
}

/* Layer 1 of a builder with two tensors, which is as before. */
static void bad_op(struct npuc_op_desc d, const char *name, const char *text)
{
	struct npuc_op_desc relu = {.code = 19,
				    .version = 1,
				    .inputs = REFS(0),
				    .outputs = REFS(1),
				    .input_count = 1,
				    .output_count = 1};
	struct npuc_builder *b = begin();
	uint32_t layer = 99;
	char front[64];

	add(b, bytes_of(NPUC_INT8, DIMS(4), NULL, 0));
	add(b, bytes_of(NPUC_INT8, DIMS(4), NULL, 0));
	WHY(npuc_builder_op(b, &relu, NULL, why));
	snprintf(front, sizeof(front), NAME ": layer 1 (%s): ", name);
	says(npuc_builder_op(b, &d, &layer, why), EINVAL, front, text);
	assert_int_equal(layer, 99);
	WHY(npuc_builder_op(b, &relu, &layer, why));
	assert_int_equal(layer, 1);
	npuc_builder_free(b);
}

static struct npuc_op_desc with(struct npuc_op_desc d, const struct npuc_attr *attrs,
				uint32_t count)
{
	d.attrs = attrs;
	d.attr_count = count;
	return d;
}

static void test_ops(void **state)
{
	const struct npuc_op_desc good = {.code = 22,
					  .version = 1,
					  .inputs = REFS(0),
					  .outputs = REFS(1),
					  .input_count = 1,
					  .output_count = 1};
	struct npuc_op_desc d = good, conv = good;
	struct npuc_attr two[] = {{.name = "stride_w", .i = 1}, {.name = "stride_w"}};

	(void)state;
	d.code = 1u << 31;
	bad_op(d, "operator 2147483648", "below 2^31");
	d = good;
	d.version = 0;
	bad_op(d, "RESHAPE", "version 0; the first is 1");
	d = good;
	d.custom = "mine";
	bad_op(d, "RESHAPE", "a name is for code 32 (CUSTOM)");
	d.code = 32;
	d.custom = NULL;
	bad_op(d, "CUSTOM", "a name is for code 32 (CUSTOM)");
	d = good;
	d.inputs = NULL;
	bad_op(d, "RESHAPE", "inputs are NULL");
	d.inputs = REFS(0, 2);
	d.input_count = 2;
	bad_op(d, "RESHAPE", "input 1 is tensor 2, but the model has 2 so far");
	d.input_count = 65537;
	bad_op(d, "RESHAPE", "65537 inputs");
	d = good;
	d.outputs = REFS(7);
	bad_op(d, "RESHAPE", "output 0 is tensor 7");
	d = good;
	d.intermediates = REFS(8);
	d.intermediate_count = 1;
	bad_op(d, "RESHAPE", "intermediate 0 is tensor 8");
	bad_op(with(good, NULL, 1), "RESHAPE", "attributes are NULL");
	bad_op(with(good, &(struct npuc_attr){0}, 1), "RESHAPE",
	       "the name of attribute 0 is NULL");
	bad_op(with(good, &(struct npuc_attr){.name = "stride_w"}, 1), "RESHAPE",
	       "no attribute 'stride_w'");
	bad_op(with(good, &(struct npuc_attr){.name = "new_shape", .count = 1}, 1),
	       "RESHAPE", "'new_shape' has 1 numbers, but they are NULL");
	conv.code = 3;
	bad_op(with(conv, two, 2), "CONV_2D", "'stride_w' is given twice");
	bad_op(with(conv, &(struct npuc_attr){.name = "stride_w", .i = INT64_C(1) << 31},
		    1),
	       "CONV_2D", "'stride_w' is 2147483648");
	bad_op(with(conv, &(struct npuc_attr){.name = "padding", .i = 256}, 1), "CONV_2D",
	       "'padding' is 256; 0 to 255");
	conv.code = 126;
	bad_op(with(conv, &(struct npuc_attr){.name = "adj_x", .i = 2}, 1),
	       "BATCH_MATMUL", "'adj_x' is 2; 0 to 1");
}

static void test_rest(void **state)
{
	struct npuc_tensor_desc d = bytes_of(NPUC_INT8, DIMS(4), NULL, 0);
	struct npuc_model *m = NULL;
	struct npuc_builder *b;
	struct npuc_op_desc op = {.version = 1};
	uint32_t index;

	(void)state;
	says(npuc_builder_create(NULL, &b, why), EINVAL, "npuc_builder_create", "NULL");
	says(npuc_builder_create(NAME, NULL, why), EINVAL, "npuc_builder_create", "NULL");
	b = begin();
	says(npuc_builder_tensor(NULL, &d, &index, why), EINVAL, "builder_tensor", "");
	says(npuc_builder_tensor(b, NULL, &index, why), EINVAL, "builder_tensor", "");
	says(npuc_builder_tensor(b, &d, NULL, why), EINVAL, "builder_tensor", "");
	says(npuc_builder_op(NULL, &op, NULL, why), EINVAL, "builder_op", "");
	says(npuc_builder_op(b, NULL, NULL, why), EINVAL, "builder_op", "");
	says(npuc_builder_model(NULL, REFS(0), 1, REFS(0), 1, &m, why), EINVAL,
	     "builder_model", "NULL");
	says(npuc_builder_model(b, REFS(0), 1, REFS(0), 1, NULL, why), EINVAL,
	     "builder_model", "NULL");
	add(b, d);
	says(npuc_builder_model(b, NULL, 1, REFS(0), 1, &m, why), EINVAL, NAME,
	     "0 inputs of the model");
	says(npuc_builder_model(b, REFS(0), 1, REFS(0), 0, &m, why), EINVAL, NAME,
	     "0 outputs of the model");
	says(npuc_builder_model(b, REFS(1), 1, REFS(0), 1, &m, why), EINVAL, NAME,
	     "input 0 of the model is tensor 1, but it has 1");
	says(npuc_builder_model(b, REFS(0), 1, REFS(NPUC_NONE), 1, &m, why), EINVAL, NAME,
	     "output 0 of the model is tensor");
	assert_null(m);
	npuc_builder_free(b);
	npuc_builder_free(NULL);
}

/* ---- models ------------------------------------------------------------------------ */

/* The builder goes on after it made a model, and names tensors that have none. */
static void test_more(void **state)
{
	struct npuc_builder *b = begin();
	struct npuc_op_desc op = {.code = 19,
				  .version = 1,
				  .inputs = REFS(0),
				  .outputs = REFS(1),
				  .input_count = 1,
				  .output_count = 1};
	struct npuc_program p;
	struct npuc_model *m;

	(void)state;
	for (int i = 0; i < 3; i++)
		add(b, bytes_of(NPUC_INT8, DIMS(4), NULL, 0));
	WHY(npuc_builder_op(b, &op, NULL, why));
	WHY(npuc_builder_model(b, REFS(0), 1, REFS(1), 1, &m, why));
	assert_string_equal(npuc_tensor(m, 1)->name, "tensor1");
	WHY(npuc_compile(m, NULL, &p, why));
	assert_int_equal(p.layer_count, 1);
	npuc_program_free(&p);
	npuc_model_free(m);
	op.inputs = REFS(1);
	op.outputs = REFS(2);
	WHY(npuc_builder_op(b, &op, NULL, why));
	WHY(npuc_builder_model(b, REFS(0), 1, REFS(2), 1, &m, why));
	npuc_builder_free(b);
	WHY(npuc_compile(m, NULL, &p, why));
	assert_int_equal(p.layer_count, 2);
	npuc_program_free(&p);
	npuc_model_free(m);
}

/* RELU of x: what its result of one element becomes, whose size is open or not. */
static int open_result(uint32_t open, struct npuc_program *p)
{
	struct npuc_builder *b = begin();
	struct npuc_tensor_desc y = bytes_of(NPUC_INT8, DIMS(1), NULL, 0);
	struct npuc_op_desc op = {.code = 19,
				  .version = 1,
				  .inputs = REFS(0),
				  .outputs = REFS(1),
				  .input_count = 1,
				  .output_count = 1};
	struct npuc_model *m;
	int rc;

	y.open = open;
	add(b, bytes_of(NPUC_INT8, DIMS(4), NULL, 0));
	add(b, y);
	WHY(npuc_builder_op(b, &op, NULL, why));
	WHY(npuc_builder_model(b, REFS(0), 1, REFS(1), 1, &m, why));
	npuc_builder_free(b);
	rc = npuc_compile(m, NULL, p, why);
	npuc_model_free(m);
	return rc;
}

static void test_open(void **state)
{
	struct npuc_program p;

	(void)state;
	says(open_result(0, &p), EINVAL, "'tensor1' is 1,", "give it the shape 4");
	WHY(open_result(1, &p));
	assert_int_equal(p.outputs[0].dims[0], 4);
	npuc_program_free(&p);
}

/* x -> table -> y of the types given. */
static int table_model(enum npuc_type x, enum npuc_type table, enum npuc_type y,
		       const uint8_t *numbers, int32_t count, struct npuc_program *p)
{
	struct npuc_builder *b = begin();
	struct npuc_op_desc op = {.code = NPUC_TABLE_OPERATOR,
				  .version = 1,
				  .inputs = REFS(0, 1),
				  .outputs = REFS(2),
				  .input_count = 2,
				  .output_count = 1};
	struct npuc_model *m;
	int rc;

	add(b, bytes_of(x, DIMS(256), NULL, 0));
	add(b, bytes_of(table, &count, numbers, numbers ? (uint64_t)count : 0));
	add(b, bytes_of(y, DIMS(256), NULL, 0));
	WHY(npuc_builder_op(b, &op, NULL, why));
	WHY(npuc_builder_model(b, REFS(0), 1, REFS(2), 1, &m, why));
	npuc_builder_free(b);
	rc = npuc_compile(m, NULL, p, why);
	npuc_model_free(m);
	return rc;
}

static void test_table_refused(void **state)
{
	static const uint8_t numbers[256];
	struct npuc_program p;

	(void)state;
	says(table_model(NPUC_INT8, NPUC_INT8, NPUC_INT8, numbers, 255, &p), EINVAL,
	     "layer 0 (TABLE, output 'tensor2')", "a constant of 256 elements");
	says(table_model(NPUC_INT8, NPUC_INT8, NPUC_INT8, NULL, 256, &p), EINVAL,
	     "tensor 'tensor1'", "a constant of 256 elements");
	says(table_model(NPUC_INT8, NPUC_UINT8, NPUC_INT8, numbers, 256, &p), ENOTSUP,
	     "'tensor1' is uint8", "'tensor2' is int8");
	says(table_model(NPUC_INT16, NPUC_INT8, NPUC_INT8, numbers, 256, &p), ENOTSUP,
	     "'tensor0' is int16", "TABLE");
}

static void test_table(void **state)
{
	static const enum npuc_type types[] = {NPUC_INT8, NPUC_UINT8};
	struct hal_partition_desc desc = HAL_INIT(hal_partition_desc);
	uint8_t numbers[256], x[256], y[256];
	struct hal_partition *part;
	struct npuc_program p;
	struct hal_device *dev;
	struct npuc_run *run;

	(void)state;
	assert_int_equal(hal_open(TARGET, NULL, &dev), 0);
	desc.rows = desc.cols = 1;
	assert_int_equal(hal_partition_create(dev, &desc, &part), 0);
	for (uint32_t i = 0; i < 256; i++) {
		numbers[i] = (uint8_t)(i * 37 + 11);
		x[i] = (uint8_t)(i * 101);
	}
	for (uint32_t from = 0; from < 2; from++)
		for (uint32_t to = 0; to < 2; to++) {
			WHY(table_model(types[from], types[to], types[to], numbers, 256,
					&p));
			WHY(npuc_run_open(dev, part, &p, &run, why));
			WHY(npuc_run_write(run, 0, x, 256, why));
			WHY(npuc_run_kernel(run, "run", NULL, why));
			WHY(npuc_run_read(run, 0, true, y, 256, why));
			for (uint32_t i = 0; i < 256; i++) {
				int q = types[from] == NPUC_INT8 ? (int8_t)x[i] + 128
								 : x[i];

				assert_int_equal(y[i], numbers[q]);
			}
			assert_int_equal(npuc_run_close(run), 0);
			npuc_program_free(&p);
		}
	assert_int_equal(hal_partition_destroy(part), 0);
	assert_int_equal(hal_close(dev), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tensors), cmocka_unit_test(test_ops),
		cmocka_unit_test(test_rest),    cmocka_unit_test(test_more),
		cmocka_unit_test(test_open),    cmocka_unit_test(test_table_refused),
		cmocka_unit_test(test_table),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

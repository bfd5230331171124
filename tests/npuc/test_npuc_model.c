/* SPDX-License-Identifier: Apache-2.0 */
/* test_npuc_model.c - files that are wrong, and what is said of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <errno.h>

#include "../unit/slow.h"
#include "npuc.h"
#include "tiny.h"

#define FILE_MAX 65536
#define NAME     "wrong.tflite"
#define REFS(...)                                                                        \
	(const int32_t[])                                                                \
	{                                                                                \
		__VA_ARGS__                                                              \
	}
#define DIMS(...)                                                                        \
	(const int32_t[])                                                                \
	{                                                                                \
		__VA_ARGS__                                                              \
	}

static uint8_t file[FILE_MAX];
static struct npuc_options options; /* what models are compiled with */

/* Parses and compiles; 0 or -errno with the text. */
static int compile_bytes(const uint8_t *bytes, size_t size, char why[NPUC_WHY])
{
	struct npuc_program p;
	struct npuc_model *m;
	uint8_t *copy = malloc(size ? size : 1); /* of exactly that length */
	int rc;

	assert_non_null(copy);
	memcpy(copy, bytes, size);
	why[0] = '\0';
	rc = npuc_model_parse(copy, size, NAME, &m, why);
	free(copy);
	if (rc)
		return rc;
	rc = npuc_compile(m, &options, &p, why);
	npuc_model_free(m);
	if (!rc)
		npuc_program_free(&p);
	return rc;
}

/* The error's code, and texts that it must have. */
static void refused(const struct tiny *m, int err, const char *first, const char *second)
{
	char why[NPUC_WHY];
	size_t size = tiny_write(m, file, sizeof(file));

	assert_int_not_equal(size, 0);
	assert_int_equal(compile_bytes(file, size, why), -err);
	if (!strstr(why, NAME) || !strstr(why, first) || !strstr(why, second))
		fail_msg("'%s' has not '%s', '%s' and '%s'", why, NAME, first, second);
}

static void accepted(const struct tiny *m)
{
	char why[NPUC_WHY];
	size_t size = tiny_write(m, file, sizeof(file));

	assert_int_not_equal(size, 0);
	if (compile_bytes(file, size, why))
		fail_msg("%s", why);
}

/* in -> one operator without options -> out, 1 x 4. */
static void one_op(struct tiny *m, int code)
{
	memset(m, 0, sizeof(*m));
	tiny_int8(m, "the input", 2, DIMS(1, 4), 0.5f, 0);
	tiny_int8(m, "the output", 2, DIMS(1, 4), 0.5f, 0);
	tiny_op(m, code, 1, REFS(0), 1);
	m->inputs[0] = 0;
	m->outputs[0] = 1;
	m->input_count = m->output_count = 1;
}

static void test_samples(void **state)
{
	char why[NPUC_WHY];
	unsigned int n = 0;
	size_t size;

	(void)state;
	for (; (size = tiny_sample(n, file, sizeof(file))) > 0; n++)
		if (compile_bytes(file, size, why))
			fail_msg("sample %u: %s", n, why);
	assert_int_equal(n, 9);
}

/* Tables make an LSTM slow to compile: some of its bytes are tried. */
static size_t stride(unsigned int sample)
{
	return (sample == 8 ? 23u : 1u) * (under_valgrind() ? 7u : 1u);
}

/* Cut anywhere: refused with the file's name, or what is gone was not needed. */
static void test_truncated(void **state)
{
	char why[NPUC_WHY];
	unsigned int cut_off = 0;
	size_t size;

	(void)state;
	for (unsigned int n = 0; (size = tiny_sample(n, file, sizeof(file))) > 0; n++)
		for (size_t i = 0; i < size; i += stride(n))
			if (compile_bytes(file, i, why)) {
				assert_non_null(strstr(why, NAME));
				cut_off++;
			}
	assert_true(cut_off > (under_valgrind() ? 900 : 6000));
}

/* Each byte replaced twice: never more than an error, which always has a text. */
static void test_changed(void **state)
{
	static const uint8_t values[] = {0, 1, 0x7f, 0x80, 0xff};
	char why[NPUC_WHY];
	size_t size;

	(void)state;
	for (unsigned int n = 0; (size = tiny_sample(n, file, sizeof(file))) > 0; n++)
		for (size_t i = 0; i < size; i += stride(n)) {
			uint8_t was = file[i];

			for (size_t v = 0; v < 2; v++) {
				file[i] = values[(i * (v + 1) + v) % sizeof(values)];
				if (compile_bytes(file, size, why))
					assert_non_null(strstr(why, NAME));
			}
			file[i] = was;
		}
}

static void test_header(void **state)
{
	struct tiny m;

	(void)state;
	one_op(&m, 19);
	m.identifier = "TFL2";
	refused(&m, EINVAL, "TFL3", "not a TensorFlow Lite model");
	one_op(&m, 19);
	m.version = 2;
	refused(&m, ENOTSUP, "schema version 2", "only 3");
	one_op(&m, 19);
	m.graphs = 65;
	refused(&m, ENOTSUP, "65 graphs", "1 to 64");
	one_op(&m, 19);
	m.op_count = 0;
	refused(&m, ENOTSUP, "no operators", "");
}

static void test_operator(void **state)
{
	struct tiny m;

	(void)state;
	one_op(&m, 50);
	refused(&m, ENOTSUP, "layer 0 (LOG_SOFTMAX, output 'the output')",
		"only 1/16 and 127");
	one_op(&m, 27);
	refused(&m, EINVAL, "layer 0 (SVDF", "1 operand instead of 5");
	one_op(&m, 44);
	refused(&m, EINVAL, "layer 0 (UNIDIRECTIONAL_SEQUENCE_LSTM",
		"1 operands; 20 or 24");
	one_op(&m, 3000);
	refused(&m, ENOTSUP, "layer 0 (operator 3000", "not compiled");
	one_op(&m, 19);
	m.ops[0].version = 77;
	refused(&m, ENOTSUP, "layer 0 (RELU, output 'the output')", "version 77");
	one_op(&m, 19);
	m.ops[0].version = 0;
	refused(&m, ENOTSUP, "layer 0 (RELU", "version 0");
}

/* in, w 4 x 3, t 4 x 2, b 2, state 1 x 8 -> out 1 x 2. */
static void svdf(struct tiny *m)
{
	static const int8_t w[12] = {1, -2, 3};
	static const int16_t t[8] = {4, 32767};
	static const int32_t b[2] = {0};
	struct tiny_op *op;

	memset(m, 0, sizeof(*m));
	tiny_int8(m, "in", 2, DIMS(1, 3), 0.5f, 0);
	tiny_const(m, "w", 9, 2, DIMS(4, 3), 0.25f, 0, w, 12);
	tiny_const(m, "t", 7, 2, DIMS(4, 2), 0.0001f, 0, t, 16);
	tiny_const(m, "b", 2, 1, DIMS(2), 0.0001f, 0, b, 8);
	tiny_int8(m, "s", 2, DIMS(1, 8), 0.25f, 0);
	tiny_int8(m, "out", 2, DIMS(1, 2), 0.5f, 0);
	m->tensors[4].type = 7;
	m->tensors[4].variable = true;
	op = tiny_op(m, 27, 5, REFS(0, 1, 2, 3, 4), 5);
	tiny_option(op, 6, 0, 4, 2);
	tiny_option(op, 6, 1, 1, 1);
	m->inputs[0] = 0;
	m->outputs[0] = 5;
	m->input_count = m->output_count = 1;
}

static void test_svdf(void **state)
{
	struct tiny m;

	(void)state;
	svdf(&m);
	accepted(&m);
	m.ops[0].inputs[3] = -1;
	accepted(&m);
	svdf(&m);
	m.ops[0].options[0].value = 3;
	refused(&m, EINVAL, "layer 0 (SVDF, output 'out')", "rank 3");
	m.ops[0].options[0].value = 0;
	refused(&m, EINVAL, "SVDF", "rank 0");
	svdf(&m);
	m.ops[0].options[1].value = 0;
	refused(&m, ENOTSUP, "SVDF", "other than RELU");
	svdf(&m);
	m.tensors[4].type = 9;
	refused(&m, ENOTSUP, "tensor 's'", "int16 variable");
	svdf(&m);
	m.tensors[4].dims[1] = 6;
	refused(&m, EINVAL, "tensor 's' is 1x6", "1x8");
	svdf(&m);
	m.tensors[2].type = 9;
	m.tensors[2].bytes = 8;
	refused(&m, ENOTSUP, "tensor 't'", "constant and int16");
	svdf(&m);
	m.tensors[4].one_scale = 0.125f;
	refused(&m, ENOTSUP, "weights in space", "1 or more");
	svdf(&m);
	m.tensors[5].one_scale = 0.00003f;
	refused(&m, ENOTSUP, "weights in time", "2^22");
}

static void lstm(struct tiny *m)
{
	memset(m, 0, sizeof(*m));
	tiny_lstm(m);
}

static void refused_lstm(const struct tiny *m, int err, const char *text)
{
	refused(m, err, "layer 0 (UNIDIRECTIONAL_SEQUENCE_LSTM, output 'out')", text);
}

/* Parts of an LSTM that are not compiled. */
static void test_lstm_parts(void **state)
{
	struct tiny m;

	(void)state;
	lstm(&m);
	accepted(&m);
	m.ops[0].input_count = 20;
	accepted(&m);
	m.ops[0].inputs[1] = m.ops[0].inputs[5] = m.ops[0].inputs[12] = -1;
	refused_lstm(&m, ENOTSUP, "CIFG");
	lstm(&m);
	m.ops[0].inputs[11] = 9;
	refused_lstm(&m, ENOTSUP, "peephole weights are (tensor 'b')");
	lstm(&m);
	m.ops[0].inputs[16] = 5;
	accepted(&m);
	m.tensors[5].one_scale = 1.5f;
	refused_lstm(&m, ENOTSUP, "'r': a multiplier of 1.5; less than 1 is supported");
	m.ops[0].inputs[16] = 9;
	refused_lstm(&m, EINVAL, "'b' must have two dimensions");
	m.ops[0].inputs[16] = 1;
	refused_lstm(&m, EINVAL, "'w' is 2x3, but its operands give it the shape 2x2");
	lstm(&m);
	m.ops[0].inputs[17] = 9;
	refused_lstm(&m, ENOTSUP, "a bias alone is (tensor 'b')");
	lstm(&m);
	m.ops[0].inputs[23] = 9;
	refused_lstm(&m, ENOTSUP, "layer normalization is (tensor 'b')");
	lstm(&m);
	m.ops[0].options[0].value = 1;
	refused_lstm(&m, ENOTSUP, "other than TANH");
	lstm(&m);
	tiny_option(&m.ops[0], 71, 5, 1, 1);
	refused_lstm(&m, ENOTSUP, "diagonal");
	lstm(&m);
	m.ops[0].between_count = 4;
	refused_lstm(&m, EINVAL, "4 intermediate tensors");
	m.ops[0].between_count = 5;
	m.ops[0].between[4] = 99;
	refused(&m, EINVAL, "layer 0: intermediate 4 is tensor 99", "the file has 17");
}

static void test_lstm_numbers(void **state)
{
	static const int32_t large[] = {1 << 30, 0};
	struct tiny m;

	(void)state;
	lstm(&m);
	m.tensors[14].one_scale = 0.0005f;
	refused_lstm(&m, ENOTSUP, "tensor 'c': scale 0.0005 of the cell");
	m.tensors[14].one_scale = 1 / 256.0f;
	refused_lstm(&m, ENOTSUP, "2^-15 to 2^-9");
	lstm(&m);
	m.tensors[14].type = 9;
	refused_lstm(&m, ENOTSUP, "tensor 'c' is int8 instead of int16");
	lstm(&m);
	m.tensors[13].dims[1] = 3;
	refused_lstm(&m, EINVAL, "tensor 'h' has 3 elements instead of 2");
	lstm(&m);
	m.tensors[16].dims[1] = 3;
	refused_lstm(&m, EINVAL, "tensor 'out'");
	lstm(&m);
	m.tensors[15].one_scale = 8;
	refused_lstm(&m, ENOTSUP, "tensor 'hidden': scale 8 of the hidden state");
	lstm(&m);
	m.tensors[15].one_scale = 0x1p-23f;
	refused_lstm(&m, ENOTSUP, "more than 2^-22");
	lstm(&m);
	m.tensors[1].dims[1] = 2;
	m.tensors[1].bytes = 4;
	refused_lstm(&m, EINVAL, "tensor 'w' is 2x2");
	lstm(&m);
	m.tensors[5].zero_point = 1;
	refused_lstm(&m, ENOTSUP, "tensor 'r': zero point 1");
	lstm(&m);
	m.tensors[9].data = large;
	refused_lstm(&m, ENOTSUP, "less than 2^30");
	lstm(&m);
	m.tensors[9].data = NULL;
	refused_lstm(&m, ENOTSUP, "tensor 'b' must be constant and int32");
	lstm(&m);
	m.tensors[1].one_scale = 1e6f;
	refused_lstm(&m, ENOTSUP, "do not fit into 32 bits");
}

/* A fully connected layer of int16, weights of int8. */
static void int16(struct tiny *m)
{
	static const int8_t weights[] = {1, -2, 127, -128, 5, 6, 7, 8};
	static int64_t bias[] = {5, -70000};

	memset(m, 0, sizeof(*m));
	bias[0] = 5;
	tiny_int8(m, "in", 2, DIMS(1, 4), 0.001f, 0);
	tiny_const(m, "w", 9, 2, DIMS(2, 4), 0.25f, 0, weights, 8);
	tiny_const(m, "b", 4, 1, DIMS(2), 0.00025f, 0, bias, 16);
	tiny_int8(m, "out", 2, DIMS(1, 2), 0.01f, 0);
	m->tensors[0].type = m->tensors[3].type = 7;
	tiny_op(m, 9, 3, REFS(0, 1, 2), 3);
	m->inputs[0] = 0;
	m->outputs[0] = 3;
	m->input_count = m->output_count = 1;
}

static void test_int16(void **state)
{
	static const int64_t large[] = {5, -INT64_C(0x2000000000)};
	struct tiny m;

	(void)state;
	int16(&m);
	accepted(&m);
	m.tensors[0].zero_point = 3;
	refused(&m, EINVAL, "layer 0 (FULLY_CONNECTED, output 'out')",
		"tensor 'in': zero point 3; it must be 0 for int16");
	int16(&m);
	m.tensors[3].type = 9;
	refused(&m, ENOTSUP, "FULLY_CONNECTED",
		"'in' is int16, but tensor 'out' is int8");
	int16(&m);
	m.tensors[1].type = 3;
	refused(&m, ENOTSUP, "weights 'w' are uint8",
		"with int16 activations they must be int8");
	int16(&m);
	m.tensors[1].zero_point = 1;
	refused(&m, ENOTSUP, "weights 'w'", "zero point 1");
	int16(&m);
	m.tensors[2].data = large;
	refused(&m, ENOTSUP, "bias 'b': -137438953472 of channel 1", "2^37");
	int16(&m);
	m.tensors[2].one_scale = 0.01f;
	refused(&m, EINVAL, "bias 'b'", "contradicts");
	int16(&m);
	m.tensors[1].one_scale = 1280;
	m.tensors[2].one_scale = 1.28f;
	refused(&m, ENOTSUP, "FULLY_CONNECTED",
		"sums may come to 1082114561 steps of the result");
	options.reference = NPUC_REFERENCE_2_14;
	refused(&m, ENOTSUP, "channel 0", "a multiplier of 2^7 or more");
	m.tensors[1].one_scale = 1279;
	m.tensors[2].one_scale = 1.279f;
	refused(&m, ENOTSUP, "sums may come to", "less than 2^30");
	int16(&m);
	m.tensors[2].type = 2;
	m.tensors[2].bytes = 8;
	accepted(&m);
	m.ops[0].inputs[2] = -1;
	accepted(&m);
	m.tensors[1].one_scale = 1280;
	refused(&m, ENOTSUP, "values up to 8454144, shifted left by 8", "32 bits");
	m.tensors[1].one_scale = 1279;
	refused(&m, ENOTSUP, "results may come to", "less than 2^30");
	options.reference = NPUC_REFERENCE_CURRENT;
	one_op(&m, 0);
	m.ops[0].inputs[1] = 0;
	m.ops[0].input_count = 2;
	m.tensors[0].type = m.tensors[1].type = 7;
	m.tensors[0].one_scale = m.tensors[1].one_scale = 0.25f;
	accepted(&m);
	m.tensors[0].one_scale = 0.125f;
	refused(&m, ENOTSUP, "ADD", "one operand must have the result's scale");
	m.tensors[0].one_scale = 0.5f;
	refused(&m, ENOTSUP, "ADD", "pot_scale_int16");
	m.tensors[0].one_scale = 0.3f;
	accepted(&m);
	m.tensors[0].one_scale = 0.5f;
	tiny_option(&m.ops[0], 11, 1, 1, 0);
	accepted(&m);
	m.tensors[1].type = 9;
	refused(&m, ENOTSUP, "ADD",
		"'the input' is int16, but tensor 'the output' is int8");
	/* MUL of itself, LOGISTIC, SOFTMAX. */
	one_op(&m, 18);
	m.ops[0].inputs[1] = 0;
	m.ops[0].input_count = 2;
	m.tensors[0].type = m.tensors[1].type = 7;
	m.tensors[0].one_scale = 0.001f;
	m.tensors[1].one_scale = 0.001f;
	accepted(&m);
	m.tensors[1].one_scale = 0.0000004f;
	refused(&m, ENOTSUP, "values up to 1073741824, shifted left by 2", "32 bits");
	one_op(&m, 98);
	m.tensors[0].type = m.tensors[1].type = 7;
	accepted(&m);
	m.tensors[0].one_scale = 8192;
	refused(&m, ENOTSUP, "LEAKY_RELU", "a scale that grows 16384 times");
	one_op(&m, 14);
	m.tensors[0].type = m.tensors[1].type = 7;
	m.tensors[1].one_scale = 1.0f / 32768;
	m.tensors[0].one_scale = 5.3f;
	accepted(&m);
	m.tensors[0].one_scale = 5.4f;
	refused(&m, ENOTSUP, "LOGISTIC", "input scale 5.4; less than 5.3");
	m.tensors[1].one_scale = 1.0f / 256;
	refused(&m, ENOTSUP, "LOGISTIC", "output scale 0.00390625; only 1/32768");
	one_op(&m, 25);
	m.tensors[0].type = m.tensors[1].type = 7;
	m.tensors[1].one_scale = 1.0f / 32768;
	accepted(&m);
	m.tensors[0].one_scale = 1e30f;
	refused(&m, ENOTSUP, "SOFTMAX", "do not fit into 32 bits");
	/* A row times itself. */
	one_op(&m, 126);
	m.ops[0].inputs[1] = 0;
	m.ops[0].input_count = 2;
	tiny_option(&m.ops[0], 101, 1, 1, 1);
	m.tensors[0].type = m.tensors[1].type = 7;
	m.tensors[0].dims[1] = 32768;
	m.tensors[1].dims[1] = 1;
	m.tensors[0].one_scale = 0.001f;
	accepted(&m);
	m.tensors[1].one_scale = 0.03f;
	refused(&m, ENOTSUP, "BATCH_MATMUL", "sums may come to");
	m.tensors[0].dims[1] = 32769;
	refused(&m, ENOTSUP, "BATCH_MATMUL", "1 sums of 32769 products");
	/* RELU_N1_TO_1, QUANTIZE of 8 bits: TensorFlow Lite has neither. */
	one_op(&m, 20);
	m.tensors[0].type = m.tensors[1].type = 7;
	refused(&m, ENOTSUP, "RELU_N1_TO_1", "'the input' is int16");
	one_op(&m, 114);
	m.tensors[1].type = 7;
	refused(&m, ENOTSUP, "QUANTIZE", "converting int8 to int16 is not supported");
	m.tensors[0].type = 7;
	m.tensors[1].type = 9;
	accepted(&m);
	m.tensors[1].one_scale = 0.003f;
	refused(&m, ENOTSUP, "QUANTIZE", "2^22 steps");
}

/* Any size of int8; of uint8 where the weights have 8 bits. */
static void test_resize_bilinear(void **state)
{
	static const int32_t size[] = {3, 4};
	struct tiny m = {0};

	(void)state;
	tiny_int8(&m, "in", 4, DIMS(1, 2, 2, 1), 0.5f, 0);
	tiny_const(&m, "size", 2, 1, DIMS(2), 1, 0, size, 8);
	tiny_int8(&m, "out", 4, DIMS(1, 3, 4, 1), 0.5f, 0);
	tiny_op(&m, 23, 2, REFS(0, 1), 2);
	m.inputs[0] = 0;
	m.outputs[0] = 2;
	m.input_count = m.output_count = 1;
	accepted(&m);
	m.tensors[0].type = m.tensors[2].type = 3;
	refused(&m, ENOTSUP, "layer 0 (RESIZE_BILINEAR, output 'out')",
		"uint8 is not compiled for this ratio");
	m.tensors[0].dims[1] = 3;
	accepted(&m);
}

/* A variable, assigned, then read. */
static void variable(struct tiny *m)
{
	static const int32_t none[1];
	int32_t handle, in = 0, out = 1;

	one_op(m, 142);
	handle = tiny_int8(m, "handle", 0, none, 1, 0);
	m->tensors[handle].type = 13; /* resource */
	m->tensors[handle].scales = 0;
	m->ops[0].input_count = 0;
	m->ops[0].outputs[0] = handle;
	tiny_op(m, 144, 2, (const int32_t[]){handle, in}, 0)->output_count = 0;
	tiny_op(m, 143, 1, &handle, out);
}

static void test_variables(void **state)
{
	struct tiny m;

	(void)state;
	variable(&m);
	accepted(&m);
	variable(&m);
	m.ops[1] = m.ops[2];
	m.op_count = 2;
	refused(&m, EINVAL, "layer 1 (READ_VARIABLE",
		"variable '' is read before it is assigned");
	variable(&m);
	m.tensors[1].dims[1] = 5;
	refused(&m, EINVAL, "layer 2 (READ_VARIABLE",
		"has 4 bytes of int8, but tensor 'the output' has 5 of int8");
	variable(&m);
	m.ops[1].inputs[0] = 0;
	refused(&m, EINVAL, "layer 1 (ASSIGN_VARIABLE", "operand 0 is not a variable");
	variable(&m);
	m.ops[1].input_count = 1;
	refused(&m, EINVAL, "layer 1 (ASSIGN_VARIABLE", "1 operand instead of");
	variable(&m);
	m.ops[0].output_count = 0;
	refused(&m, EINVAL, "layer 0 (VAR_HANDLE", "0 outputs");
}

/* The graph that is called is the model's own once more. */
static void test_call_once(void **state)
{
	struct tiny m;

	(void)state;
	variable(&m);
	m.graphs = 2;
	m.ops[m.op_count++] = (struct tiny_op){.code = 129, .version = 1};
	tiny_option(&m.ops[3], 103, 0, 4, 2);
	refused(&m, EINVAL, "layer 3 (CALL_ONCE",
		"graph 2 does not exist; the model has the graphs 1 to 1");
	m.ops[3].options[0].value = 1;
	refused(&m, ENOTSUP, "layer 3 (CALL_ONCE", "'the input' must be constant");
	m.ops[1].inputs[0] = 1;
	refused(&m, EINVAL, "layer 1 (ASSIGN_VARIABLE", "operand 0 is not a variable");
	variable(&m);
	m.graphs = 2;
	m.ops[1] = (struct tiny_op){.code = 129, .version = 1};
	tiny_option(&m.ops[1], 103, 0, 4, 1);
	refused(&m, ENOTSUP, "layer 1 (CALL_ONCE",
		"CALL_ONCE is in the graph that it calls");
}

static void test_operands(void **state)
{
	struct tiny m;

	(void)state;
	one_op(&m, 0);
	refused(&m, EINVAL, "layer 0 (ADD", "1 operand instead of 2");
	one_op(&m, 19);
	m.ops[0].inputs[0] = 7;
	refused(&m, EINVAL, "layer 0: input 0 is tensor 7", "the file has 2");
	one_op(&m, 19);
	m.ops[0].inputs[0] = -1;
	refused(&m, EINVAL, "layer 0 (RELU", "operand 0 is missing");
	one_op(&m, 19);
	m.ops[0].inputs[0] = 1;
	refused(&m, EINVAL, "layer 0 (RELU",
		"'the output' is both operand 0 and result 0");
	one_op(&m, 19);
	m.ops[0].outputs[0] = 0;
	refused(&m, EINVAL, "layer 0 (RELU",
		"'the input' is both operand 0 and result 0");
	one_op(&m, 19);
	m.inputs[m.input_count++] = 1;
	refused(&m, EINVAL, "layer 0 (RELU",
		"'the output' is constant, an input, or computed twice");
	one_op(&m, 19);
	m.ops[0].output_count = 0;
	refused(&m, EINVAL, "layer 0 (RELU", "0 outputs");
	one_op(&m, 19);
	m.tensors[1].dims[1] = 5;
	refused(&m, EINVAL, "layer 0 (RELU",
		"'the output' is 1x5, but its operands give it the shape 1x4");
}

static void test_types(void **state)
{
	struct tiny m;

	(void)state;
	one_op(&m, 19);
	m.tensors[1].type = 7;
	refused(&m, ENOTSUP, "output 'the output'",
		"is int8, but tensor 'the output' is int16");
	one_op(&m, 19);
	tiny_int8(&m, "between", 2, DIMS(1, 4), 0.5f, 0);
	m.tensors[2].type = 17;
	m.ops[0].outputs[0] = 2;
	tiny_op(&m, 19, 1, REFS(2), 1);
	refused(&m, ENOTSUP, "layer 0 (RELU, output 'between')", "is int4");
	m.tensors[2].type = 200;
	refused(&m, ENOTSUP, "layer 0 (RELU, output 'between')", "of unknown type");
	m.tensors[2].type = 0;
	refused(&m, ENOTSUP, "layer 0 (RELU, output 'between')", "float32");
	m.ops[1].code = 9;
	refused(&m, ENOTSUP, "layer 0 (RELU, output 'between')", "float32");
	m.tensors[2].type = 9;
	m.tensors[2].variable = true;
	refused(&m, ENOTSUP, "layer 0 (RELU", "'between' is a variable");
	m.tensors[2].variable = false;
	m.tensors[2].sparse = true;
	refused(&m, ENOTSUP, "layer 0 (RELU", "'between' is sparse");
	one_op(&m, 19);
	m.tensors[0].type = 0;
	refused(&m, ENOTSUP, "input 'the input' is float32", "QUANTIZE");
	one_op(&m, 19);
	m.tensors[1].type = 0;
	refused(&m, ENOTSUP, "output 'the output' is float32", "DEQUANTIZE");
}

static void test_quantization(void **state)
{
	static const float scales[] = {1, 2, 3, 4};
	struct tiny m;

	(void)state;
	one_op(&m, 19);
	m.tensors[1].one_scale = -1;
	refused(&m, EINVAL, "'the output'", "quantized per tensor");
	one_op(&m, 19);
	m.tensors[1].zero_point = 128;
	refused(&m, EINVAL, "layer 0 (RELU", "zero point 128 is not a valid int8");
	one_op(&m, 19);
	m.tensors[1].zero_point = INT64_MAX;
	refused(&m, EINVAL, "tensor 1 ('the output')", "zero point 9223372036854775807");
	one_op(&m, 19);
	m.tensors[1].scales = 3;
	m.tensors[1].scale = scales;
	m.tensors[1].channel_dim = 1;
	refused(&m, EINVAL, "tensor 1 ('the output')", "the number of scales");
	m.tensors[1].channel_dim = 9;
	refused(&m, EINVAL, "tensor 1 ('the output')",
		"quantized dimension does not exist");
	one_op(&m, 14);
	refused(&m, ENOTSUP, "layer 0 (LOGISTIC", "only 1/256");
	one_op(&m, 25);
	refused(&m, ENOTSUP, "layer 0 (SOFTMAX", "only 1/256 and -128");
}

static void test_shapes(void **state)
{
	static const int8_t w[16];
	struct tiny m;

	(void)state;
	one_op(&m, 19);
	m.tensors[0].dims[0] = -1;
	refused(&m, ENOTSUP, "tensor 0 ('the input')", "dimension 0 is -1");
	one_op(&m, 19);
	m.tensors[0].dims[0] = m.tensors[0].dims[1] = INT32_MAX;
	refused(&m, ENOTSUP, "tensor 0 ('the input')", "more than 2^31 - 1 elements");
	one_op(&m, 19);
	m.tensors[0].dims[0] = 0;
	refused(&m, EINVAL, "input 'the input'", "empty");
	one_op(&m, 9);
	tiny_const(&m, "weights", 9, 2, DIMS(4, 4), 1, 0, w, 15);
	m.ops[0].inputs[m.ops[0].input_count++] = 2;
	refused(&m, EINVAL, "tensor 2 ('weights') takes 16 bytes", "15");
	m.tensors[2].bytes = 16;
	m.tensors[2].rank = 1;
	m.tensors[2].dims[0] = 16;
	refused(&m, EINVAL, "layer 0 (FULLY_CONNECTED", "'weights' must be [n][k]");
	m.tensors[2].data = NULL;
	refused(&m, ENOTSUP, "layer 0 (FULLY_CONNECTED", "'weights' are not constant");
	one_op(&m, 1);
	refused(&m, EINVAL, "layer 0 (AVERAGE_POOL_2D", "2 dimensions instead of 4");
}

/* A batch that is computed takes the place of one that the file leaves open. */
static void test_open_batch(void **state)
{
	static const int32_t to[] = {-1, 2};
	struct tiny m = {.input_count = 1, .output_count = 1};
	struct npuc_program p;
	struct npuc_model *model;
	char why[NPUC_WHY];
	int32_t x, flat, shape, y;

	(void)state;
	x = tiny_int8(&m, "x", 3, DIMS(1, 3, 2), 0.5f, 0);
	flat = tiny_int8(&m, "flat", 2, DIMS(1, 2), 0.5f, 0);
	y = tiny_int8(&m, "y", 2, DIMS(1, 2), 0.5f, 0);
	m.outputs[0] = y;
	shape = tiny_const(&m, "to", 2, 1, DIMS(2), 0, 0, to, sizeof(to));
	tiny_op(&m, TINY_RESHAPE, 2, REFS(x, shape), flat);
	tiny_op(&m, 19, 1, REFS(flat), y);
	refused(&m, EINVAL, "layer 0 (RESHAPE, output 'flat')",
		"'flat' is 1x2, but its operands give it the shape 3x2");
	/* The size that differs must be the open one. */
	m.tensors[flat].open = 2;
	refused(&m, EINVAL, "layer 0 (RESHAPE, output 'flat')",
		"'flat' is 1x2, but its operands give it the shape 3x2");
	m.tensors[flat].open = 1;
	refused(&m, EINVAL, "layer 1 (RELU, output 'y')",
		"'y' is 1x2, but its operands give it the shape 3x2");
	m.tensors[y].open = 1;
	assert_int_equal(npuc_model_parse(file, tiny_write(&m, file, sizeof(file)), "m",
					  &model, why),
			 0);
	if (npuc_compile(model, NULL, &p, why))
		fail_msg("%s", why);
	assert_int_equal(p.outputs[0].dims[0], 3);
	assert_int_equal(p.outputs[0].count, 6);
	assert_int_equal(p.output_bytes, 64);
	npuc_program_free(&p);
	npuc_model_free(model);
	/* What a layer makes does not change an input's shape, nor a rank. */
	m.tensors[y].rank = 1;
	m.tensors[y].dims[0] = 6;
	refused(&m, EINVAL, "layer 1 (RELU, output 'y')", "'y' is 6, but its operands");
}

static void test_convolution(void **state)
{
	static const int8_t w[36];
	static const int32_t b[2];
	struct tiny m = {0};
	struct tiny_op *op;

	(void)state;
	tiny_int8(&m, "in", 4, DIMS(1, 4, 4, 2), 0.5f, 0);
	tiny_int8(&m, "out", 4, DIMS(1, 4, 4, 2), 0.5f, 0);
	tiny_const(&m, "w", 9, 4, DIMS(2, 3, 3, 2), 1, 0, w, 36);
	op = tiny_op(&m, 3, 2, REFS(0, 2), 1);
	m.inputs[0] = 0;
	m.outputs[0] = 1;
	m.input_count = m.output_count = 1;
	refused(&m, EINVAL, "layer 0 (CONV_2D", "2 operands instead of 3");
	op->inputs[op->input_count++] = -1;
	refused(&m, EINVAL, "layer 0 (CONV_2D", "the bias is missing");
	op->inputs[2] = tiny_const(&m, "b", 2, 1, DIMS(2), 0.5f, 0, b, 8);
	refused(&m, EINVAL, "layer 0 (CONV_2D, output 'out')", "stride 0");
	tiny_option(op, 1, 1, 4, 1);
	tiny_option(op, 1, 2, 4, 1);
	tiny_option(op, 1, 0, 1, 1);
	refused(&m, EINVAL, "layer 0 (CONV_2D",
		"'out' is 1x4x4x2, but its operands give it the shape "
		"1x2x2x2");
	m.ops[0].options[2].value = 2;
	refused(&m, ENOTSUP, "layer 0 (CONV_2D", "padding 2");
	m.ops[0].options[2].value = 0;
	tiny_option(op, 1, 3, 1, 4);
	refused(&m, ENOTSUP, "layer 0 (CONV_2D", "fused activation 4");
	m.ops[0].options[3].value = 0;
	m.tensors[2].zero_point = 3;
	refused(&m, ENOTSUP, "layer 0 (CONV_2D",
		"weights 'w': zero point 3 of channel 0");
	m.tensors[2].zero_point = 0;
	m.tensors[2].one_scale = 1e20f;
	refused(&m, ENOTSUP, "layer 0 (CONV_2D", "a multiplier of 2^30 or more");
	m.tensors[2].one_scale = 1;
	m.tensors[0].dims[3] = 3;
	refused(&m, EINVAL, "layer 0 (CONV_2D", "read 2 of 3 channels");
}

/* A dense layer of 4 to 3 with biases; weights have scale 0.5. */
static void dense(struct tiny *m, int type)
{
	static const int8_t w[12];
	static const int32_t b[3];

	memset(m, 0, sizeof(*m));
	tiny_int8(m, "in", 2, DIMS(1, 4), 0.5f, 0);
	tiny_int8(m, "out", 2, DIMS(1, 3), 1, 0);
	tiny_const(m, "w", type, 2, DIMS(3, 4), 0.5f, 0, w, 12);
	tiny_const(m, "b", 2, 1, DIMS(3), 0.25f, 0, b, 12);
	tiny_op(m, 9, 3, REFS(0, 2, 3), 1);
	m->tensors[0].type = m->tensors[1].type = type;
	m->inputs[0] = 0;
	m->outputs[0] = 1;
	m->input_count = m->output_count = 1;
}

/* What TensorFlow Lite 2.14 takes and refuses. */
static void test_bias(void **state)
{
	static const float half[] = {0.5f, 0.5f, 0.5f}, any[] = {9, 0.1f, 1e9f};
	const char *says = "bias 'b': scale";
	struct tiny m;

	(void)state;
	for (int type = 3; type <= 9; type += 6) {
		dense(&m, type);
		accepted(&m);
		m.tensors[3].one_scale = 0.2699f;
		accepted(&m);
		m.tensors[3].one_scale = 0.2701f;
		refused(&m, EINVAL, "layer 0 (FULLY_CONNECTED", says);
		m.tensors[3].one_scale = 0.2299f;
		refused(&m, EINVAL, says, "input times weights, 0.25: it is off by");
		m.tensors[1].one_scale = 2;
		accepted(&m);
		m.tensors[3].scales = 0;
		refused(&m, EINVAL, says, "input times weights, 0.25");
	}
	/* Per channel: only that they are, too. */
	m.tensors[2].scales = 3;
	m.tensors[2].scale = half;
	accepted(&m);
	m.tensors[3].scales = 1;
	refused(&m, EINVAL, says, "");
	m.tensors[3].scales = 3;
	m.tensors[3].scale = any;
	accepted(&m);
	/* There is but one dimension. */
	m.tensors[3].channel_dim = 3;
	refused(&m, EINVAL, "tensor 3 ('b')", "quantized dimension does not exist");
	m.tensors[3].channel_dim = -1;
	refused(&m, EINVAL, "tensor 3 ('b')", "quantized dimension does not exist");
	m.tensors[3].channel_dim = 0;
	m.tensors[3].scales = 2;
	refused(&m, EINVAL, "tensor 3 ('b')", "the number of scales");
}

/* Convolutions of int8 go by the weights' scales alone. */
/* Which reference is meant. */
static void test_reference(void **state)
{
	static const int8_t w[4] = {1, 2, 3, 4};
	const struct npuc_options wrong = {.reference = (enum npuc_reference)2};
	struct tiny m = {0};
	char why[NPUC_WHY];
	struct npuc_report report;
	struct npuc_model *model;
	struct npuc_program p;
	int32_t x = tiny_int8(&m, "x", 2, DIMS(1, 4), 0.5f, 0);
	int32_t f = tiny_const(&m, "w", 9, 2, DIMS(1, 4), 0.5f, 0, w, 4);

	(void)state;
	tiny_op(&m, 9, 2, REFS(x, f), tiny_int8(&m, "y", 2, DIMS(1, 1), 0.5f, 0));
	m.inputs[0] = x;
	m.outputs[0] = m.ops[0].outputs[0];
	m.input_count = m.output_count = 1;
	assert_int_equal(npuc_model_parse(file, tiny_write(&m, file, sizeof(file)), "m",
					  &model, why),
			 0);
	assert_int_equal(npuc_compile(model, &wrong, &p, why), -EINVAL);
	assert_non_null(strstr(why, "m: options.reference is 2; it must be"));
	why[0] = '\0';
	assert_int_equal(npuc_check(model, &wrong, &report, why), -EINVAL);
	assert_non_null(strstr(why, "m: options.reference is 2; it must be"));
	npuc_model_free(model);
}

/* How many obstacles a model has with a reference. */
static uint32_t obstacles(const struct tiny *m, enum npuc_reference reference)
{
	const struct npuc_options as = {.reference = reference};
	struct npuc_report report;
	struct npuc_model *model;
	char why[NPUC_WHY];
	uint32_t count;

	assert_int_equal(npuc_model_parse(file, tiny_write(m, file, sizeof(file)), "m",
					  &model, why),
			 0);
	if (npuc_check(model, &as, &report, why))
		fail_msg("%s", why);
	count = report.count;
	npuc_report_free(&report);
	npuc_model_free(model);
	return count;
}

/* The current reference goes by what options say of the bias of int16 layers. */
static void test_bias_type(void **state)
{
	static const int8_t w[4] = {1, 2, 3, 4};
	static const int32_t b32[1] = {7};
	static const int64_t b64[1] = {7};
	struct tiny m = {0};
	int32_t x = tiny_int8(&m, "x", 2, DIMS(1, 4), 0.5f, 0);
	int32_t f = tiny_const(&m, "w", 9, 2, DIMS(1, 4), 0.5f, 0, w, 4);
	int32_t b = tiny_const(&m, "b", 2, 1, DIMS(1), 0.25f, 0, b32, 4);
	int32_t y = tiny_int8(&m, "y", 2, DIMS(1, 1), 0.5f, 0);

	(void)state;
	m.tensors[x].type = m.tensors[y].type = NPUC_INT16;
	tiny_op(&m, 9, 3, REFS(x, f, b), y);
	m.ops[0].options_type = 8;
	m.ops[0].options[0] = (struct tiny_field){4, 1, NPUC_INT32};
	m.inputs[0] = x;
	m.outputs[0] = y;
	m.input_count = m.output_count = 1;
	accepted(&m);
	m.tensors[b].type = NPUC_INT64;
	m.tensors[b].data = b64;
	m.tensors[b].bytes = 8;
	refused(&m, EINVAL, "layer 0 (FULLY_CONNECTED",
		"quantized_bias_type is int32, but the bias is int64");
	assert_int_equal(obstacles(&m, NPUC_REFERENCE_CURRENT), 1);
	assert_int_equal(obstacles(&m, NPUC_REFERENCE_2_14), 0);
	m.ops[0].options[0].value = NPUC_INT64;
	accepted(&m);
	m.ops[0].options[0].value = NPUC_INT8;
	refused(&m, EINVAL, "layer 0 (FULLY_CONNECTED", "quantized_bias_type is int8");
	m.ops[0].options[0].value = NPUC_INT32;
	m.ops[0].input_count = 2;
	accepted(&m);
}

static void test_bias_convolution(void **state)
{
	static const int8_t w[2];
	static const int32_t b[1];
	struct tiny m = {0};
	struct tiny_op *op;

	(void)state;
	tiny_int8(&m, "in", 4, DIMS(1, 4, 4, 2), 0.5f, 0);
	tiny_int8(&m, "out", 4, DIMS(1, 4, 4, 1), 1, 0);
	tiny_const(&m, "w", 9, 4, DIMS(1, 1, 1, 2), 0.5f, 0, w, 2);
	tiny_const(&m, "b", 2, 1, DIMS(1), 7, 0, b, 4);
	op = tiny_op(&m, 3, 3, REFS(0, 2, 3), 1);
	tiny_option(op, 1, 1, 4, 1);
	tiny_option(op, 1, 2, 4, 1);
	m.inputs[0] = 0;
	m.outputs[0] = 1;
	m.input_count = m.output_count = 1;
	accepted(&m);
	m.tensors[3].zero_point = 1;
	refused(&m, EINVAL, "layer 0 (CONV_2D", "bias 'b': zero point 1; must be 0");
	m.tensors[3].zero_point = 0;
	m.tensors[0].type = m.tensors[1].type = m.tensors[2].type = 3;
	refused(&m, EINVAL, "layer 0 (CONV_2D", "bias 'b': scale 7 contradicts");
	m.tensors[3].one_scale = 0.26f;
	accepted(&m);
}

/* in, 1 x 6 of int8, through one operator with a constant of whole numbers. */
static struct tiny_op *with_numbers(struct tiny *m, int code, const int32_t *numbers,
				    int32_t count)
{
	memset(m, 0, sizeof(*m));
	tiny_int8(m, "in", 2, DIMS(1, 6), 0.5f, 0);
	tiny_int8(m, "out", 2, DIMS(1, 6), 0.5f, 0);
	tiny_const(m, "numbers", 2, 1, &count, 1, 0, numbers, 4 * (uint32_t)count);
	m->inputs[0] = 0;
	m->outputs[0] = 1;
	m->input_count = m->output_count = 1;
	return tiny_op(m, code, 2, REFS(0, 2), 1);
}

static void test_moves(void **state)
{
	static const int32_t swap[] = {1, 0}, twice[] = {1, 1}, far[] = {0, 2},
			     beyond[] = {6}, minus[] = {-1}, many[] = {0, 0, 0, 6},
			     open[] = {-1, 6};
	struct tiny_op *op;
	struct tiny m;

	(void)state;
	with_numbers(&m, 39, swap, 2);
	refused(&m, EINVAL, "layer 0 (TRANSPOSE",
		"'out' is 1x6, but its operands give it the shape 6x1");
	with_numbers(&m, 39, twice, 2);
	refused(&m, EINVAL, "layer 0 (TRANSPOSE", "dimension 1 is named twice");
	with_numbers(&m, 39, far, 2);
	refused(&m, EINVAL, "layer 0 (TRANSPOSE",
		"axis 2 does not exist in 2 dimensions");
	with_numbers(&m, 39, twice, 1);
	refused(&m, EINVAL, "layer 0 (TRANSPOSE", "'numbers' has 1 elements, not 2");
	m.tensors[2].data = NULL;
	refused(&m, ENOTSUP, "layer 0 (TRANSPOSE", "'numbers' must be constant");
	with_numbers(&m, 69, far, 2);
	refused(&m, EINVAL, "layer 0 (TILE",
		"'out' is 1x6, but its operands give it the shape 0x12");
	op = with_numbers(&m, 36, beyond, 1);
	tiny_option(op, 23, 0, 4, 1);
	refused(&m, EINVAL, "layer 0 (GATHER", "index 6 is outside the 6 elements");
	op = with_numbers(&m, 36, minus, 1);
	tiny_option(op, 23, 0, 4, 1);
	refused(&m, EINVAL, "layer 0 (GATHER", "index -1 is outside the 6 elements");
	m.ops[0].options[0].value = 2;
	refused(&m, EINVAL, "layer 0 (GATHER", "axis 2 does not exist in 2 dimensions");
	with_numbers(&m, 97, twice, 2);
	refused(&m, EINVAL, "layer 0 (RESIZE_NEAREST_NEIGHBOR",
		"'in' has 2 dimensions instead of 4");
	with_numbers(&m, 22, twice, 2);
	refused(&m, EINVAL, "layer 0 (RESHAPE",
		"'out' is 1x6, but its operands give it the shape 1x1");
	with_numbers(&m, 22, open, 2);
	accepted(&m);
	m.tensors[1].rank = 1;
	m.tensors[1].dims[0] = 6;
	refused(&m, EINVAL, "layer 0 (RESHAPE",
		"'out' is 6, but its operands give it the shape 1x6");
	with_numbers(&m, 105, swap, 2);
	refused(&m, ENOTSUP, "layer 0 (REVERSE_V2", "reversing along 2 dimensions");
	with_numbers(&m, 130, swap, 2);
	refused(&m, EINVAL, "layer 0 (BROADCAST_TO",
		"dimension 1 of size 6 cannot be broadcast to 0");
	with_numbers(&m, 130, far, 1);
	refused(&m, EINVAL, "layer 0 (BROADCAST_TO",
		"2 dimensions cannot be broadcast to 1");
	with_numbers(&m, 100, many, 4);
	refused(&m, EINVAL, "layer 0 (MIRROR_PAD",
		"'numbers' has 1 dimensions instead of 2");
	m.tensors[2].rank = 2;
	m.tensors[2].dims[0] = 1;
	m.tensors[2].dims[1] = 4;
	refused(&m, EINVAL, "layer 0 (MIRROR_PAD",
		"'numbers' is 1x4; it must be 2x2, a pair");
	m.tensors[2].dims[0] = m.tensors[2].dims[1] = 2;
	refused(&m, EINVAL, "layer 0 (MIRROR_PAD",
		"paddings 0 and 6 of dimension 1; they must be at most 5");
	op = with_numbers(&m, 38, twice, 1);
	op->inputs[op->input_count++] =
		tiny_const(&m, "margins", 2, 2, DIMS(1, 2), 1, 0, many, 8);
	refused(&m, EINVAL, "layer 0 (SPACE_TO_BATCH_ND", "2 dimensions; 3 or 4");
	m.tensors[0].rank = m.tensors[1].rank = 3;
	m.tensors[0].dims[2] = m.tensors[1].dims[2] = 1;
	accepted(&m);
	m.tensors[3].data = far;
	refused(&m, EINVAL, "layer 0 (SPACE_TO_BATCH_ND",
		"sizes 6 and 6 do not match blocks of 1 with margins 0 and 2");
	one_op(&m, 26);
	refused(&m, EINVAL, "layer 0 (SPACE_TO_DEPTH",
		"the shapes do not match blocks of 0");
	one_op(&m, 88);
	refused(&m, EINVAL, "layer 0 (UNPACK",
		"option num is 0, but the number of results is 1");
	tiny_option(&m.ops[0], 64, 0, 4, 1);
	refused(&m, EINVAL, "layer 0 (UNPACK",
		"'the output' is 1x4, but its operands give it the shape 4");
	one_op(&m, 83);
	tiny_option(&m.ops[0], 59, 0, 4, 1);
	m.tensors[1].rank = 3;
	m.tensors[1].dims[2] = 4;
	m.tensors[1].dims[1] = 1;
	accepted(&m);
	m.tensors[1].one_scale = 0.25f;
	refused(&m, EINVAL, "layer 0 (PACK", "the same scale and zero");
}

static void test_slices(void **state)
{
	static const int32_t from[] = {0, 1}, to[] = {1, 6}, step[] = {1, 1},
			     none[] = {1, 0};
	struct tiny_op *op;
	struct tiny m;

	(void)state;
	op = with_numbers(&m, 45, from, 2);
	tiny_const(&m, "to", 2, 1, DIMS(2), 1, 0, to, 8);
	tiny_const(&m, "step", 2, 1, DIMS(2), 1, 0, step, 8);
	op->inputs[2] = 3;
	op->inputs[3] = 4;
	op->input_count = 4;
	refused(&m, EINVAL, "layer 0 (STRIDED_SLICE",
		"its operands give it the shape 1x5");
	m.tensors[1].dims[1] = 5;
	accepted(&m);
	m.tensors[4].data = none;
	refused(&m, EINVAL, "layer 0 (STRIDED_SLICE", "dimension 1 has stride 0");
	m.tensors[4].data = step;
	tiny_option(op, 32, 2, 4, 3);
	refused(&m, EINVAL, "layer 0 (STRIDED_SLICE", "more than one ellipsis");
	op->options[0].value = 1;
	accepted(&m);
	op->options[0].value = 4; /* of which there is none */
	accepted(&m);
	op = with_numbers(&m, 65, from, 2);
	tiny_const(&m, "size", 2, 1, DIMS(2), 1, 0, to, 8);
	op->inputs[2] = 3;
	op->input_count = 3;
	refused(&m, EINVAL, "layer 0 (SLICE",
		"dimension 1: 6 elements from 1 on exceed the size 6");
}

/* Results that are no constants, and numbers that are none. */
static void test_fold(void **state)
{
	static const int32_t many[] = {65536, 1, 1, 1, 1, 65536}, none[6];
	struct tiny_op *op;
	struct tiny m;

	(void)state;
	op = with_numbers(&m, 18, many, 6);
	tiny_const(&m, "others", 2, 1, DIMS(6), 1, 0, many, 24);
	tiny_int8(&m, "product", 1, DIMS(6), 1, 0);
	m.tensors[4].type = 2;
	op->inputs[0] = 3;
	op->outputs[0] = 4;
	tiny_op(&m, 22, 1, REFS(0), 1);
	refused(&m, EINVAL, "layer 0 (MUL", "4294967296 does not fit into int32");
	m.tensors[2].data = none;
	accepted(&m);
	m.ops[0].code = 90;
	refused(&m, EINVAL, "layer 0 (FLOOR_DIV", "65536 and 0 has no valid result");
	m.tensors[4].dims[0] = 5;
	refused(&m, EINVAL, "layer 0 (FLOOR_DIV",
		"'product' is 5, but its operands give it the shape 6");
	m.tensors[4].dims[0] = 6;
	m.tensors[3].data = NULL;
	refused(&m, ENOTSUP, "layer 0 (FLOOR_DIV", "all operands are int32 or int64");
}

/* What the machine refuses is said with the layer in front, too. */
static int32_t tensor_of(struct tiny *m, const char *name, int type);

/* Functions in float32 between DEQUANTIZE and QUANTIZE. */
static void test_group(void **state)
{
	struct tiny m = {.input_count = 1, .output_count = 1};
	struct npuc_program p;
	struct npuc_model *model;
	char why[NPUC_WHY];
	int32_t x, f, g, y;

	(void)state;
	x = tiny_int8(&m, "x", 2, DIMS(1, 4), 0.5f, 0);
	f = tensor_of(&m, "f", 0);
	g = tensor_of(&m, "g", 0);
	y = tiny_int8(&m, "y", 2, DIMS(1, 4), 0.5f, 0);
	m.outputs[0] = y;
	tiny_op(&m, 6, 1, REFS(x), f);
	tiny_op(&m, 66, 1, REFS(f), g); /* SIN */
	tiny_op(&m, 114, 1, REFS(g), y);
	assert_int_equal(npuc_model_parse(file, tiny_write(&m, file, sizeof(file)), "m",
					  &model, why),
			 0);
	if (npuc_compile(model, NULL, &p, why))
		fail_msg("%s", why);
	assert_string_equal(p.host, "");
	npuc_program_free(&p);
	npuc_model_free(model);
	m.tensors[g].dims[1] = 2;
	refused(&m, EINVAL, "layer 2 (QUANTIZE, output 'y')",
		"'g' has 2 elements, but its operand has 4");
	m.tensors[g].dims[1] = 4;
	/* Another reader needs the float32 itself, before a layer of the device's. */
	tiny_op(&m, 19, 1, REFS(y), tiny_int8(&m, "z", 2, DIMS(1, 4), 0.5f, 0));
	m.outputs[0] = m.ops[3].outputs[0];
	m.outputs[m.output_count++] = g;
	refused(&m, ENOTSUP, "layer 1 (SIN, output 'g')", "only the host can compute");
	m.output_count--;
	accepted(&m);
	m.ops[1].code = 10; /* HASHTABLE_LOOKUP */
	refused(&m, ENOTSUP, "layer ", "only the host can compute");
}

/* A constant whose sparsity says nothing of its shape. */
static void test_sparse(void **state)
{
	static const int8_t some[2];
	struct tiny m;
	int32_t few;

	(void)state;
	one_op(&m, 0);
	few = tiny_const(&m, "few", 9, 2, DIMS(1, 4), 0.5f, 0, some, sizeof(some));
	m.tensors[few].sparse = true;
	m.ops[0].inputs[1] = few;
	m.ops[0].input_count = 2;
	refused(&m, EINVAL, "tensor 2 ('few')",
		"its sparsity does not describe its shape");
	/* Of another type it stays what no operator takes. */
	m.tensors[few].type = 0;
	refused(&m, ENOTSUP, "layer 0 (ADD", "'few' is sparse, which is not supported");
	/* DENSIFY is the compiler's work. */
	one_op(&m, 124);
	refused(&m, ENOTSUP, "layer 0 (DENSIFY", "'the input' is not constant");
}

/* Functions by table: types and scales that TensorFlow Lite does not take. */
static void test_unary(void **state)
{
	struct tiny m;

	(void)state;
	one_op(&m, 47);
	accepted(&m);
	m.tensors[0].type = m.tensors[1].type = 3;
	refused(&m, ENOTSUP, "layer 0 (EXP, output 'the output')",
		"'the input' is uint8, which TensorFlow Lite does not support");
	m.ops[0].code = 117;
	accepted(&m);
	m.tensors[1].one_scale = 0.5f / 130;
	refused(&m, ENOTSUP, "layer 0 (HARD_SWISH",
		"are not supported for this operator");
	one_op(&m, 59);
	accepted(&m);
	m.tensors[1].zero_point = 1;
	refused(&m, ENOTSUP, "layer 0 (NEG", "zero points 0 and 1 are not supported");
	m.tensors[0].zero_point = -1;
	accepted(&m);
	m.tensors[0].type = m.tensors[1].type = 7;
	m.tensors[0].zero_point = m.tensors[1].zero_point = 0;
	refused(&m, ENOTSUP, "layer 0 (NEG", "is int16; only int8 and uint8");
}

/* More inputs than int32 has room for, and than there is a way for. */
static void test_long_rows(void **state)
{
	static int8_t w[33026];
	struct tiny m = {0};
	int32_t weights;

	(void)state;
	tiny_int8(&m, "in", 2, DIMS(1, 33026), 0.5f, 0);
	tiny_int8(&m, "out", 2, DIMS(1, 1), 0.5f, 0);
	weights = tiny_const(&m, "w", 9, 2, DIMS(1, 33026), 0.5f, 0, w, sizeof(w));
	m.inputs[0] = 0;
	m.outputs[0] = 1;
	m.input_count = m.output_count = 1;
	tiny_op(&m, 9, 2, REFS(0, weights), 1);
	accepted(&m);
	m.tensors[0].type = m.tensors[1].type = 7;
	refused(&m, ENOTSUP, "layer 0 (FULLY_CONNECTED, output 'out')",
		"rows of 33026 inputs; at most 16512 of int16 are supported");
}

/* Elements side by side that no image has room for. */
static void test_arg_max(void **state)
{
	static const int32_t axis;
	struct tiny m = {0};
	struct tiny_op *op;
	int32_t along;

	(void)state;
	tiny_int8(&m, "in", 2, DIMS(2, 65537), 0.5f, 0);
	tiny_int8(&m, "out", 1, DIMS(65537), 0, 0);
	m.tensors[1].type = 2;
	m.tensors[1].scales = 0;
	along = tiny_const(&m, "axis", 2, 0, NULL, 0, 0, &axis, sizeof(axis));
	op = tiny_op(&m, 56, 2, REFS(0, along), 1);
	tiny_option(op, 40, 0, 1, 2);
	m.inputs[0] = 0;
	m.outputs[0] = 1;
	m.input_count = m.output_count = 1;
	refused(&m, ENOTSUP, "layer 0 (ARG_MAX, output 'out')",
		"65537 elements side by side; more than 65535 must be a product");
	m.tensors[0].dims[1] = m.tensors[1].dims[0] = 65538;
	accepted(&m);
}

static void test_machine(void **state)
{
	struct tiny m = {0};
	struct tiny_op *op;

	(void)state;
	tiny_int8(&m, "in", 4, DIMS(1, 400, 400, 1), 0.5f, 0);
	tiny_int8(&m, "out", 4, DIMS(1, 1, 1, 1), 0.5f, 0);
	op = tiny_op(&m, 1, 1, REFS(0), 1);
	tiny_option(op, 5, 0, 1, 1);
	tiny_option(op, 5, 1, 4, 1);
	tiny_option(op, 5, 2, 4, 1);
	tiny_option(op, 5, 3, 4, 400);
	tiny_option(op, 5, 4, 4, 400);
	m.inputs[0] = 0;
	m.outputs[0] = 1;
	m.input_count = m.output_count = 1;
	refused(&m, ENOTSUP, "layer 0 (AVERAGE_POOL_2D, output 'out')",
		"rows: a kernel of 400; at most 255 is supported");
}

/* ---- reports ---------------------------------------------------------------------- */

static int32_t tensor_of(struct tiny *m, const char *name, int type)
{
	int32_t i = tiny_int8(m, name, 2, DIMS(1, 4), 0.5f, 0);

	m->tensors[i].type = type;
	m->tensors[i].scales = type == 9;
	return i;
}

/* What the report says of each layer: a letter for the obstacle, - for none, h for the
 * host's.  layers NULL: only that it agrees with the obstacles. */
static void reported_layers(const struct npuc_report *r, const char *layers)
{
	char got[TINY_OPS + 1] = "";
	uint32_t layers_of[32] = {0};

	assert_true(r->layer_count <= TINY_OPS && r->count <= 32);
	for (uint32_t i = 0; i < r->layer_count; i++) {
		uint32_t k = r->by_layer[i];

		got[i] = (char)(k == NPUC_NONE   ? '-'
				: k == NPUC_LEFT ? 'h'
						 : (char)('A' + k));
		if (k < NPUC_LEFT) {
			assert_true(k < r->count);
			layers_of[k]++;
		}
	}
	for (uint32_t k = 0; k < r->count; k++)
		if (r->obstacles[k].layer != NPUC_NONE) {
			assert_int_equal(r->by_layer[r->obstacles[k].layer], k);
			assert_true(layers_of[k] > r->obstacles[k].more);
		}
	if (layers)
		assert_string_equal(got, layers);
}

/* The report's obstacles as lines "layer+more OPERATOR: text"; - for no layer. */
static void reported_as(const struct tiny *m, const char *want, const char *layers)
{
	char why[NPUC_WHY], got[4096] = "";
	size_t size = tiny_write(m, file, sizeof(file));
	struct npuc_report report;
	struct npuc_model *model;
	struct npuc_program p;

	assert_int_equal(npuc_model_parse(file, size, NAME, &model, why), 0);
	assert_int_equal(npuc_check(model, NULL, &report, why), 0);
	for (uint32_t i = 0; i < report.count; i++) {
		const struct npuc_obstacle *o = &report.obstacles[i];
		size_t used = strlen(got);

		assert_true(o->err == -ENOTSUP || o->err == -EINVAL);
		if (o->layer == NPUC_NONE)
			snprintf(got + used, sizeof(got) - used, "- %s\n", o->text);
		else
			snprintf(got + used, sizeof(got) - used, "%u+%u %s: %s\n",
				 o->layer, o->more, o->operator_name, o->text);
	}
	assert_string_equal(got, want);
	reported_layers(&report, layers);
	if (npuc_compile(model, NULL, &p, why) == 0) {
		assert_int_equal(report.count, 0);
		npuc_program_free(&p);
	} else {
		assert_int_not_equal(report.count, 0);
	}
	npuc_report_free(&report);
	npuc_model_free(model);
}

static void reported(const struct tiny *m, const char *want)
{
	reported_as(m, want, NULL);
}

#define COS  108
#define MODE 1000 /* no operator */

static void test_report(void **state)
{
	struct tiny m;
	int32_t t;

	(void)state;
	one_op(&m, 19);
	reported_as(&m, "", "-");
	/* Each layer's own fault, none that follows from another's. */
	one_op(&m, COS);
	t = tensor_of(&m, "second", 9);
	tiny_op(&m, COS, 1, REFS(1), t);
	tiny_op(&m, 19, 1, REFS(t), tensor_of(&m, "third", 17));
	tiny_op(&m, MODE, 1, REFS(t), tensor_of(&m, "fourth", 9));
	tiny_op(&m, 19, 1, REFS(t), tensor_of(&m, "fifth", 9));
	m.ops[4].version = 77;
	tiny_op(&m, 1, 1, REFS(t), tensor_of(&m, "sixth", 9));
	m.outputs[m.output_count++] = 3;
	m.tensors[1].zero_point = 300;
	reported_as(
		&m,
		"- output 'third' is int4; it must be int8, uint8, int16 or float32\n"
		"0+1 COS: this operator is not compiled\n"
		"2+0 RELU: tensor 'third' is int4; only int8, uint8 and int16 are "
		"compiled\n"
		"3+0 operator 1000: this operator is not compiled\n"
		"4+0 RELU: version 77 of this operator; versions 1 to 3 are "
		"supported\n"
		"5+0 AVERAGE_POOL_2D: tensor 'second' has 2 dimensions instead of 4\n",
		"BBCDEF");
}

/* What follows from sizes that a refused layer would have computed is not told again. */
static void test_report_open(void **state)
{
	static const int32_t six[] = {3, 2};
	struct tiny m = {.input_count = 1, .output_count = 1};
	int32_t x, a, y, shape;

	(void)state;
	x = tiny_int8(&m, "x", 3, DIMS(1, 3, 2), 0.5f, 0);
	a = tiny_int8(&m, "a", 2, DIMS(1, 2), 0.5f, 0);
	y = tiny_int8(&m, "y", 2, DIMS(3, 2), 0.5f, 0);
	shape = tiny_const(&m, "six", 2, 1, DIMS(2), 0, 0, six, sizeof(six));
	m.outputs[0] = y;
	tiny_op(&m, 108, 1, REFS(x), a); /* COS */
	tiny_op(&m, TINY_RESHAPE, 2, REFS(a, shape), y);
	reported(&m, "0+0 COS: this operator is not compiled\n"
		     "1+0 RESHAPE: 2 elements cannot become 6\n");
	m.tensors[a].open = 1;
	reported_as(&m, "0+0 COS: this operator is not compiled\n", "A-");
}

/* What the machine refuses, too, layer by layer. */
static void test_report_machine(void **state)
{
	struct tiny m = {0};
	struct tiny_op *op;

	(void)state;
	tiny_int8(&m, "in", 4, DIMS(1, 400, 400, 1), 0.5f, 0);
	tiny_int8(&m, "out", 4, DIMS(1, 1, 1, 1), 0.5f, 0);
	tiny_int8(&m, "beside", 4, DIMS(1, 1, 1, 1), 0.5f, 0);
	for (int32_t i = 1; i < 3; i++) {
		op = tiny_op(&m, 1, 1, REFS(0), i);
		tiny_option(op, 5, 0, 1, 1);
		tiny_option(op, 5, 1, 4, 1);
		tiny_option(op, 5, 2, 4, 1);
		tiny_option(op, 5, 3, 4, 400);
		tiny_option(op, 5, 4, 4, 400);
	}
	m.inputs[0] = 0;
	m.outputs[0] = 1;
	m.outputs[1] = 2;
	m.input_count = 1;
	m.output_count = 2;
	reported_as(&m,
		    "0+1 AVERAGE_POOL_2D: rows: a kernel of 400; at most 255 is "
		    "supported\n",
		    "AA");
}

/* What a table stands for is refused with the layer that ends it. */
static void test_report_group(void **state)
{
	struct tiny m = {.input_count = 1, .output_count = 1};
	int32_t f, g, y;

	(void)state;
	tiny_int8(&m, "x", 2, DIMS(1, 4), 0.5f, 0);
	f = tensor_of(&m, "f", 0);
	g = tensor_of(&m, "g", 0);
	y = tiny_int8(&m, "y", 2, DIMS(1, 4), 0.5f, 0);
	m.outputs[0] = y;
	tiny_op(&m, 6, 1, REFS(0), f);
	tiny_op(&m, 66, 1, REFS(f), g);
	tiny_op(&m, 114, 1, REFS(g), y);
	reported_as(&m, "", "---");
	m.tensors[g].dims[1] = 2;
	reported_as(&m,
		    "2+0 QUANTIZE: tensor 'g' has 2 elements, but its operand has 4\n",
		    "-AA");
}

/* A model without 8 bits is one obstacle, and the operators that would stay ones. */
static void test_report_float(void **state)
{
	static const float w[16];
	static const int8_t w8[16];
	struct tiny m = {0};
	int32_t in, mid, out, weights;

	(void)state;
	in = tensor_of(&m, "in", 0);
	mid = tensor_of(&m, "mid", 0);
	out = tensor_of(&m, "out", 0);
	weights = tiny_const(&m, "weights", 0, 2, DIMS(4, 4), 1, 0, w, 64);
	tiny_op(&m, 9, 2, REFS(in, weights), mid);
	tiny_op(&m, 32, 1, REFS(mid), out)->custom = "Sort";
	m.inputs[0] = in;
	m.outputs[0] = out;
	m.input_count = m.output_count = 1;
	reported_as(&m,
		    "- a float model: its activations are not int8, uint8 or int16; "
		    "convert it with full integer quantization\n"
		    "1+0 CUSTOM Sort: this operator is not compiled\n",
		    "AB");
	refused(&m, ENOTSUP, "a float model", "full integer quantization");
	m.tensors[weights].type = 9;
	m.tensors[weights].data = w8;
	m.tensors[weights].bytes = 16;
	refused(&m, ENOTSUP, "a float model with int8 weights", "");
	m.tensors[in].type = m.tensors[mid].type = m.tensors[out].type = 17;
	refused(&m, ENOTSUP, "an int4 model", "");
}

/* ---- what only the host can do ---------------------------------------------------- */

/* The program's outputs, "name type device-type, ...", and what it says of the host. */
static void ends_at(const struct tiny *m, const char *outputs, const char *host,
		    const char *layers)
{
	char why[NPUC_WHY] = "", got[512] = "";
	size_t size = tiny_write(m, file, sizeof(file));
	struct npuc_model *model;
	struct npuc_program p;

	assert_int_equal(npuc_model_parse(file, size, NAME, &model, why), 0);
	if (npuc_compile(model, NULL, &p, why))
		fail_msg("%s", why);
	npuc_model_free(model);
	for (uint32_t i = 0; i < p.output_count; i++)
		snprintf(got + strlen(got), sizeof(got) - strlen(got), "%s%s %s %s",
			 i ? ", " : "", p.outputs[i].name,
			 npuc_type_name(p.outputs[i].type),
			 npuc_type_name(p.outputs[i].device_type));
	assert_string_equal(got, outputs);
	assert_string_equal(p.host, host);
	npuc_program_free(&p);
	reported_as(m, "", layers);
}

static void test_float_tail(void **state)
{
	struct tiny m;
	int32_t real, soft;

	(void)state;
	one_op(&m, 19);
	real = tensor_of(&m, "real", 0);
	tiny_op(&m, 6, 1, REFS(1), real);
	m.outputs[0] = real;
	ends_at(&m, "real float32 int8", "", "--");
	soft = tensor_of(&m, "soft", 0);
	tiny_op(&m, 25, 1, REFS(real), soft);
	m.outputs[0] = soft;
	ends_at(&m, "real float32 int8",
		"the network ends before layer 2 (SOFTMAX): that only the host can "
		"compute, from these outputs",
		"--h");
	/* Another output that the machine makes comes first. */
	m.outputs[m.output_count++] = 1;
	tiny_op(&m, 114, 1, REFS(soft), tensor_of(&m, "again", 9));
	m.outputs[m.output_count++] = 4;
	ends_at(&m, "the output int8 int8, real float32 int8",
		"the network ends before layer 2 (SOFTMAX): that and 1 of the layers "
		"after it only the host can compute, from these outputs",
		"--hh");
}

static void test_custom_tail(void **state)
{
	static const float anchors[4];
	struct tiny m;
	int32_t boxes, fixed, found, count;

	(void)state;
	one_op(&m, 19);
	boxes = tensor_of(&m, "boxes", 9);
	tiny_op(&m, 19, 1, REFS(0), boxes);
	fixed = tiny_const(&m, "anchors", 0, 1, DIMS(4), 1, 0, anchors, 16);
	found = tensor_of(&m, "found", 0);
	count = tensor_of(&m, "count", 0);
	tiny_op(&m, 32, 3, REFS(boxes, 1, fixed), found)->custom = "PostProcess";
	m.ops[2].outputs[m.ops[2].output_count++] = count;
	m.outputs[0] = found;
	m.outputs[m.output_count++] = count;
	ends_at(&m, "boxes int8 int8, the output int8 int8",
		"the network ends before layer 2 (CUSTOM PostProcess): that only the "
		"host can compute, from these outputs",
		"--h");
	/* An input that only the host reads is none of the program's. */
	m.inputs[m.input_count++] = tensor_of(&m, "threshold", 0);
	m.ops[2].inputs[m.ops[2].input_count++] = m.inputs[1];
	ends_at(&m, "boxes int8 int8, the output int8 int8",
		"the network ends before layer 2 (CUSTOM PostProcess): that only the "
		"host can compute, from these outputs",
		"--h");
	/* In the middle it is an obstacle. */
	m.input_count--;
	m.ops[2].input_count--;
	m.tensors[found].type = 9;
	m.tensors[found].scales = 1;
	tiny_op(&m, 19, 1, REFS(found), tensor_of(&m, "after", 9));
	refused(&m, ENOTSUP, "layer 2 (CUSTOM PostProcess, output 'found')",
		"layer 3, which depends on it, is for the device");
	m.output_count--;
	m.outputs[0] = m.ops[3].outputs[0];
	reported_as(
		&m,
		"2+0 CUSTOM PostProcess: only the host can compute this layer, but layer "
		"3, which depends on it, is for the device\n",
		"--A-");
}

static void test_files(void **state)
{
	struct npuc_program p;
	struct npuc_model *m;
	char why[NPUC_WHY] = "";

	(void)state;
	assert_int_equal(npuc_model_load("/nonexistent/x.tflite", &m, why), -ENOENT);
	assert_non_null(strstr(why, "/nonexistent/x.tflite"));
	assert_int_equal(npuc_program_load("/nonexistent/x.npu", &p, why), -ENOENT);
	assert_int_equal(npuc_program_parse("short", 5, "x.npu", &p, why), -EINVAL);
	assert_non_null(strstr(why, "x.npu"));
	assert_int_equal(npuc_model_parse(NULL, 0, "x", &m, why), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_samples),
		cmocka_unit_test(test_truncated),
		cmocka_unit_test(test_changed),
		cmocka_unit_test(test_header),
		cmocka_unit_test(test_operator),
		cmocka_unit_test(test_svdf),
		cmocka_unit_test(test_lstm_parts),
		cmocka_unit_test(test_lstm_numbers),
		cmocka_unit_test(test_int16),
		cmocka_unit_test(test_resize_bilinear),
		cmocka_unit_test(test_variables),
		cmocka_unit_test(test_call_once),
		cmocka_unit_test(test_operands),
		cmocka_unit_test(test_types),
		cmocka_unit_test(test_quantization),
		cmocka_unit_test(test_shapes),
		cmocka_unit_test(test_open_batch),
		cmocka_unit_test(test_convolution),
		cmocka_unit_test(test_bias),
		cmocka_unit_test(test_reference),
		cmocka_unit_test(test_bias_type),
		cmocka_unit_test(test_bias_convolution),
		cmocka_unit_test(test_moves),
		cmocka_unit_test(test_slices),
		cmocka_unit_test(test_fold),
		cmocka_unit_test(test_group),
		cmocka_unit_test(test_sparse),
		cmocka_unit_test(test_unary),
		cmocka_unit_test(test_long_rows),
		cmocka_unit_test(test_arg_max),
		cmocka_unit_test(test_machine),
		cmocka_unit_test(test_report),
		cmocka_unit_test(test_report_open),
		cmocka_unit_test(test_report_machine),
		cmocka_unit_test(test_report_group),
		cmocka_unit_test(test_report_float),
		cmocka_unit_test(test_float_tail),
		cmocka_unit_test(test_custom_tail),
		cmocka_unit_test(test_files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

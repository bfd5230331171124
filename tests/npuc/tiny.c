/* SPDX-License-Identifier: Apache-2.0 */
/* tiny.c - writes small .tflite files. */
#include "tiny.h"

#include <stdio.h>
#include <string.h>

struct out {
	uint8_t *data;
	size_t used, max;
	bool full;
};

/* One field of a table; a reference is filled in by link_to. */
struct field {
	uint32_t id, bytes;
	uint64_t value;
	size_t at; /* out: where it lies */
};

static void put_at(struct out *o, size_t at, uint64_t value, uint32_t bytes)
{
	for (uint32_t i = 0; i < bytes && !o->full; i++)
		o->data[at + i] = (uint8_t)(value >> 8 * i);
}

static size_t room(struct out *o, size_t bytes, size_t align)
{
	size_t at = (o->used + align - 1) / align * align;

	if (o->full || at > o->max || bytes > o->max - at) {
		o->full = true;
		return 0;
	}
	memset(o->data + o->used, 0, at + bytes - o->used);
	o->used = at + bytes;
	return at;
}

/* The reference at field becomes one to what is written next, align bytes aligned. */
static void link_to(struct out *o, size_t field, size_t align)
{
	room(o, 0, align);
	put_at(o, field, o->used - field, 4);
}

/* A table with its vtable in front; field is the reference to it, or 0. */
static void table(struct out *o, size_t field, struct field *f, uint32_t count)
{
	uint32_t slots = 0, size = 4;
	size_t vtable, at;

	for (uint32_t i = 0; i < count; i++) {
		if (f[i].id + 1 > slots)
			slots = f[i].id + 1;
		size = (size + f[i].bytes - 1) / f[i].bytes * f[i].bytes;
		f[i].at = size;
		size += f[i].bytes;
	}
	vtable = room(o, 4 + 2 * (size_t)slots, 8);
	room(o, 0, 8);
	link_to(o, field, 8);
	at = room(o, size, 8);
	put_at(o, at, at - vtable, 4);
	put_at(o, vtable, 4 + 2 * (uint64_t)slots, 2);
	put_at(o, vtable + 2, size, 2);
	for (uint32_t i = 0; i < count; i++) {
		put_at(o, vtable + 4 + 2 * (size_t)f[i].id, f[i].at, 2);
		f[i].at += at;
		put_at(o, f[i].at, f[i].value, f[i].bytes);
	}
}

/* A vector's length and room for its elements, which begin at the place given. */
static size_t vector(struct out *o, size_t field, uint32_t count, uint32_t bytes)
{
	size_t at;

	if (bytes == 8) /* the elements are aligned, not the length */
		while (!o->full && (o->used + 4) % 8)
			room(o, 1, 1);
	link_to(o, field, 4);
	at = room(o, 4 + (size_t)count * bytes, 4);
	put_at(o, at, count, 4);
	return at + 4;
}

static void bytes_vector(struct out *o, size_t field, const void *data, uint32_t count)
{
	size_t at = vector(o, field, count, 1);

	if (!o->full && count)
		memcpy(o->data + at, data, count);
	room(o, 1, 1); /* a string's end */
}

static void ints_vector(struct out *o, size_t field, const int32_t *v, uint32_t count)
{
	size_t at = vector(o, field, count, 4);

	for (uint32_t i = 0; i < count; i++)
		put_at(o, at + 4 * (size_t)i, (uint32_t)v[i], 4);
}

uint32_t tiny_float(float x)
{
	uint32_t bits;

	memcpy(&bits, &x, 4);
	return bits;
}

static void put_quantization(struct out *o, size_t field, const struct tiny_tensor *t)
{
	struct field f[] = {{2, 4, 0, 0}, {3, 4, 0, 0}, {6, 4, 0, 0}};
	size_t at;

	f[2].value = (uint32_t)t->channel_dim;
	table(o, field, f, 3);
	at = vector(o, f[0].at, t->scales, 4);
	for (uint32_t i = 0; i < t->scales; i++)
		put_at(o, at + 4 * (size_t)i,
		       tiny_float(t->scale ? t->scale[i] : t->one_scale), 4);
	at = vector(o, f[1].at, t->scales, 8);
	for (uint32_t i = 0; i < t->scales; i++)
		put_at(o, at + 8 * (size_t)i, (uint64_t)t->zero_point, 8);
}

static void put_tensor(struct out *o, size_t field, const struct tiny_tensor *t,
		       uint32_t buffer)
{
	struct field f[] = {{0, 4, 0, 0}, {1, 1, 0, 0}, {2, 4, 0, 0}, {3, 4, 0, 0},
			    {5, 1, 0, 0}, {7, 4, 0, 0}, {4, 4, 0, 0}, {6, 4, 0, 0}};
	uint32_t count = 6;
	int32_t signature[8];

	f[1].value = (uint64_t)t->type;
	f[2].value = buffer;
	f[4].value = t->variable;
	if (t->scales)
		count = 7;
	if (t->sparse)
		count = 8;
	table(o, field, f, count);
	ints_vector(o, f[0].at, t->dims, t->rank);
	bytes_vector(o, f[3].at, t->name, (uint32_t)strlen(t->name));
	for (uint32_t i = 0; i < t->rank; i++)
		signature[i] = t->open >> i & 1 ? -1 : t->dims[i];
	ints_vector(o, f[5].at, signature, t->rank);
	if (t->scales || t->sparse)
		put_quantization(o, f[6].at, t);
	if (t->sparse)
		table(o, f[7].at, NULL, 0);
}

static void put_op(struct out *o, size_t field, const struct tiny_op *op, uint32_t code)
{
	struct field f[] = {{0, 4, 0, 0}, {1, 4, 0, 0}, {2, 4, 0, 0},
			    {3, 1, 0, 0}, {4, 4, 0, 0}, {8, 4, 0, 0}};
	struct field options[8];
	uint32_t count = 0;

	f[0].value = code;
	f[3].value = op->options_type;
	table(o, field, f, !op->options_type ? 3 : op->between_count ? 6 : 5);
	ints_vector(o, f[1].at, op->inputs, op->input_count);
	ints_vector(o, f[2].at, op->outputs, op->output_count);
	if (!op->options_type)
		return;
	if (op->between_count)
		ints_vector(o, f[5].at, op->between, op->between_count);
	for (; count < 8 && op->options[count].bytes; count++)
		options[count] =
			(struct field){op->options[count].id, op->options[count].bytes,
				       op->options[count].value, 0};
	table(o, f[4].at, options, count);
}

static void put_graph(struct out *o, size_t field, const struct tiny *m, bool first)
{
	uint32_t from = m->split && !first ? m->split : 0;
	uint32_t to = m->split && first ? m->split : m->op_count;
	struct field f[] = {{0, 4, 0, 0}, {1, 4, 0, 0}, {2, 4, 0, 0}, {3, 4, 0, 0}};
	size_t at;

	table(o, field, f, 4);
	at = vector(o, f[0].at, m->tensor_count, 4);
	for (uint32_t i = 0; i < m->tensor_count; i++)
		put_tensor(o, at + 4 * (size_t)i, &m->tensors[i],
			   m->tensors[i].data ? i + 1 : 0);
	ints_vector(o, f[1].at, m->inputs, m->input_count);
	ints_vector(o, f[2].at, m->outputs, m->output_count);
	at = vector(o, f[3].at, to - from, 4);
	for (uint32_t i = from; i < to; i++)
		put_op(o, at + 4 * (size_t)(i - from), &m->ops[i], i);
}

size_t tiny_write(const struct tiny *m, uint8_t *file, size_t max)
{
	struct out o = {.data = file, .max = max};
	struct field f[] = {{0, 4, 3, 0}, {1, 4, 0, 0}, {2, 4, 0, 0}, {4, 4, 0, 0}};
	uint32_t graphs = m->graphs ? m->graphs : 1;
	size_t at;

	room(&o, 8, 1);
	if (!o.full)
		memcpy(file + 4, m->identifier ? m->identifier : "TFL3", 4);
	if (m->version)
		f[0].value = m->version;
	table(&o, 0, f, 4);
	/* A code of its own for each operator. */
	at = vector(&o, f[1].at, m->op_count, 4);
	for (uint32_t i = 0; i < m->op_count; i++) {
		struct field code[] = {
			{0, 1, 0, 0}, {2, 4, 0, 0}, {3, 4, 0, 0}, {1, 4, 0, 0}};
		const char *custom = m->ops[i].custom;
		uint32_t c = (uint32_t)m->ops[i].code;

		code[0].value = c < 127 ? c : 127;
		code[1].value = (uint32_t)m->ops[i].version;
		code[2].value = c;
		table(&o, at + 4 * (size_t)i, code, custom ? 4 : 3);
		if (custom)
			bytes_vector(&o, code[3].at, custom, (uint32_t)strlen(custom));
	}
	at = vector(&o, f[2].at, graphs, 4);
	for (uint32_t i = 0; i < graphs; i++)
		put_graph(&o, at + 4 * (size_t)i, m, !i);
	at = vector(&o, f[3].at, m->tensor_count + 1, 4);
	for (uint32_t i = 0; i <= m->tensor_count; i++) {
		struct field data[] = {{0, 4, 0, 0}};
		const struct tiny_tensor *t = i ? &m->tensors[i - 1] : NULL;

		table(&o, at + 4 * (size_t)i, data, t && t->data ? 1 : 0);
		if (t && t->data)
			bytes_vector(&o, data[0].at, t->data, t->bytes);
	}
	return o.full ? 0 : o.used;
}

/* ---- models ----------------------------------------------------------------------- */

int32_t tiny_int8(struct tiny *m, const char *name, uint32_t rank, const int32_t *dims,
		  float scale, int64_t zero_point)
{
	struct tiny_tensor *t = &m->tensors[m->tensor_count];

	*t = (struct tiny_tensor){.name = name,
				  .type = 9,
				  .rank = rank,
				  .scales = 1,
				  .one_scale = scale,
				  .zero_point = zero_point};
	if (rank > 0)
		memcpy(t->dims, dims, rank * sizeof(*dims));
	return (int32_t)m->tensor_count++;
}

int32_t tiny_const(struct tiny *m, const char *name, int type, uint32_t rank,
		   const int32_t *dims, float scale, int64_t zero_point, const void *data,
		   uint32_t bytes)
{
	int32_t i = tiny_int8(m, name, rank, dims, scale, zero_point);

	m->tensors[i].type = type;
	m->tensors[i].data = data;
	m->tensors[i].bytes = bytes;
	return i;
}

struct tiny_op *tiny_op(struct tiny *m, int code, uint32_t inputs, const int32_t *input,
			int32_t output)
{
	struct tiny_op *op = &m->ops[m->op_count++];

	*op = (struct tiny_op){.code = code,
			       .version = 1,
			       .input_count = inputs,
			       .output_count = 1,
			       .outputs = {output}};
	memcpy(op->inputs, input, inputs * sizeof(*input));
	return op;
}

void tiny_option(struct tiny_op *op, uint32_t type, uint32_t field, uint32_t bytes,
		 uint32_t value)
{
	uint32_t i = 0;

	op->options_type = type;
	while (op->options[i].bytes)
		i++;
	op->options[i] = (struct tiny_field){field, bytes, value};
}

#define DIMS(...)                                                                        \
	(const int32_t[])                                                                \
	{                                                                                \
		__VA_ARGS__                                                              \
	}
#define REFS(...)                                                                        \
	(const int32_t[])                                                                \
	{                                                                                \
		__VA_ARGS__                                                              \
	}

static const int8_t numbers[288] = {3, -5, 7, 1, -2, 9, -8, 4, 6, -1, 2, 0, -7, 5};
static const int32_t biases[16] = {100, -100, 7};

static void io(struct tiny *m, int32_t in, int32_t out)
{
	m->inputs[0] = in;
	m->outputs[0] = out;
	m->input_count = m->output_count = 1;
}

/* Pad, convolution, depthwise, pools, mean, fully connected, softmax. */
static void sample_net(struct tiny *m)
{
	static const int32_t pads[] = {0, 0, 1, 1, 1, 1, 0, 0}, axes[] = {1, 2};
	static const int32_t shape[] = {1, 4};
	static const float scales[] = {0.5f, 0.25f, 0.125f, 1};
	int32_t in = tiny_int8(m, "in", 4, DIMS(1, 8, 8, 2), 0.5f, -3);
	int32_t amounts = tiny_const(m, "pads", 2, 2, DIMS(4, 2), 1, 0, pads, 32);
	int32_t padded = tiny_int8(m, "padded", 4, DIMS(1, 10, 10, 2), 0.5f, -3);
	int32_t w = tiny_const(m, "w", 9, 4, DIMS(4, 3, 3, 2), 0, 0, numbers, 72);
	int32_t bias = tiny_const(m, "bias", 2, 1, DIMS(4), 1, 0, biases, 16);
	int32_t conv = tiny_int8(m, "conv", 4, DIMS(1, 4, 4, 4), 1, -128);
	int32_t dw = tiny_const(m, "dw", 9, 4, DIMS(1, 3, 3, 8), 0.25f, 0, numbers, 72);
	int32_t deep = tiny_int8(m, "deep", 4, DIMS(1, 4, 4, 8), 1, 0);
	int32_t max = tiny_int8(m, "max", 4, DIMS(1, 2, 2, 8), 1, 0);
	int32_t mean = tiny_int8(m, "mean", 4, DIMS(1, 1, 1, 8), 0.5f, 4);
	int32_t over = tiny_const(m, "axes", 2, 1, DIMS(2), 1, 0, axes, 8);
	int32_t fw = tiny_const(m, "fw", 9, 2, DIMS(4, 8), 0.25f, 0, numbers, 32);
	int32_t fc = tiny_int8(m, "fc", 2, DIMS(1, 4), 0.5f, 3);
	int32_t to = tiny_const(m, "shape", 2, 1, DIMS(2), 1, 0, shape, 8);
	int32_t flat = tiny_int8(m, "flat", 2, DIMS(1, 4), 0.5f, 3);
	int32_t soft = tiny_int8(m, "soft", 2, DIMS(1, 4), 1.0f / 256, -128);
	struct tiny_op *op;

	m->tensors[w].scales = 4;
	m->tensors[w].scale = scales;
	tiny_op(m, 34, 2, REFS(in, amounts), padded);
	op = tiny_op(m, 3, 3, REFS(padded, w, bias), conv);
	tiny_option(op, 1, 0, 1, 1); /* VALID */
	tiny_option(op, 1, 1, 4, 2);
	tiny_option(op, 1, 2, 4, 2);
	tiny_option(op, 1, 3, 1, 3); /* relu6 */
	op = tiny_op(m, 4, 2, REFS(conv, dw), deep);
	tiny_option(op, 2, 1, 4, 1);
	tiny_option(op, 2, 2, 4, 1);
	tiny_option(op, 2, 3, 4, 2);
	op = tiny_op(m, 17, 1, REFS(deep), max);
	tiny_option(op, 5, 1, 4, 2);
	tiny_option(op, 5, 2, 4, 2);
	tiny_option(op, 5, 3, 4, 2);
	tiny_option(op, 5, 4, 4, 2);
	tiny_option(tiny_op(m, 40, 2, REFS(max, over), mean), 27, 0, 1, 1);
	tiny_option(tiny_op(m, 9, 2, REFS(mean, fw), fc), 8, 0, 1, 0);
	tiny_op(m, 22, 2, REFS(fc, to), flat);
	tiny_option(tiny_op(m, 25, 1, REFS(flat), soft), 9, 0, 4, tiny_float(1));
	io(m, in, soft);
}

/* Float edges, elementwise operators with broadcasting, functions, concatenation. */
static void sample_elementwise(struct tiny *m)
{
	int32_t real = tiny_int8(m, "real", 3, DIMS(2, 3, 4), 1, 0);
	int32_t in = tiny_int8(m, "in", 3, DIMS(2, 3, 4), 0.25f, 2);
	int32_t row = tiny_const(m, "row", 9, 1, DIMS(4), 0.5f, 1, numbers, 4);
	int32_t column = tiny_const(m, "column", 9, 2, DIMS(3, 1), 0.5f, 1, numbers, 3);
	int32_t sum = tiny_int8(m, "sum", 3, DIMS(2, 3, 4), 0.5f, 0);
	int32_t product = tiny_int8(m, "product", 3, DIMS(2, 3, 4), 0.5f, 0);
	int32_t relu = tiny_int8(m, "relu", 3, DIMS(2, 3, 4), 0.5f, 0);
	int32_t relu6 = tiny_int8(m, "relu6", 3, DIMS(2, 3, 4), 0.5f, 0);
	int32_t logistic = tiny_int8(m, "logistic", 3, DIMS(2, 3, 4), 1.0f / 256, -128);
	int32_t tanh = tiny_int8(m, "tanh", 3, DIMS(2, 3, 4), 0.5f, 0);
	int32_t both = tiny_int8(m, "both", 3, DIMS(2, 6, 4), 0.5f, 0);
	int32_t requant = tiny_int8(m, "requant", 3, DIMS(2, 3, 4), 0.5f, 0);
	int32_t out = tiny_int8(m, "out", 3, DIMS(2, 6, 4), 1, 0);

	m->tensors[real].type = m->tensors[out].type = 0;
	m->tensors[real].scales = m->tensors[out].scales = 0;
	tiny_op(m, 114, 1, REFS(real), in);
	tiny_option(tiny_op(m, 0, 2, REFS(in, row), sum), 11, 0, 1, 0);
	tiny_option(tiny_op(m, 18, 2, REFS(column, sum), product), 21, 0, 1, 1);
	tiny_op(m, 19, 1, REFS(product), relu);
	tiny_op(m, 21, 1, REFS(relu), relu6);
	tiny_op(m, 14, 1, REFS(relu6), logistic);
	tiny_op(m, 114, 1, REFS(logistic), requant);
	tiny_op(m, 28, 1, REFS(requant), tanh);
	tiny_option(tiny_op(m, 2, 2, REFS(tanh, relu), both), 10, 0, 4, 1);
	tiny_op(m, 6, 1, REFS(both), out);
	io(m, real, out);
}

/* Whole numbers of one dimension; count 0: a single one. */
static int32_t whole(struct tiny *m, const char *name, int32_t count, const int32_t *data)
{
	return tiny_const(m, name, 2, count ? 1 : 0, &count, 1, 0, data,
			  4 * (uint32_t)(count ? count : 1));
}

/* A shape that is computed of another: [n][6] of in, whose n is its first dimension. */
static int32_t fold_shape(struct tiny *m, int32_t in)
{
	static const int32_t zero[] = {0}, one[] = {1}, six[] = {6};
	int32_t shape = tiny_int8(m, "shape", 1, DIMS(4), 1, 0);
	int32_t n = tiny_int8(m, "n", 0, DIMS(0), 1, 0);
	int32_t same = tiny_int8(m, "same", 0, DIMS(0), 1, 0);
	int32_t to = tiny_int8(m, "to", 1, DIMS(2), 1, 0);

	m->tensors[shape].type = m->tensors[n].type = m->tensors[same].type = 2;
	m->tensors[to].type = 2;
	tiny_option(tiny_op(m, 77, 1, REFS(in), shape), 55, 0, 1, 2);
	tiny_option(tiny_op(m, 45, 4,
			    REFS(shape, whole(m, "from", 1, zero), whole(m, "to", 1, one),
				 whole(m, "step", 1, one)),
			    n),
		    32, 4, 4, 1);
	tiny_op(m, 90, 2, REFS(n, whole(m, "one", 0, one)), same);
	tiny_option(tiny_op(m, 83, 2, REFS(same, whole(m, "six", 0, six)), to), 59, 0, 4,
		    2);
	return to;
}

/* What only moves, and shapes of shapes. */
static void sample_moves(struct tiny *m)
{
	static const int32_t order[] = {0, 3, 2, 1}, zeros[] = {0, 0, 0, 0};
	static const int32_t size[] = {1, 2, -1, 1}, twice[] = {1, 1, 1, 2};
	static const int32_t parts[] = {1, -1}, three[] = {3}, picks[] = {1, 1, 0};
	static const int32_t big[] = {4, 2};
	int32_t in = tiny_int8(m, "in", 4, DIMS(1, 2, 3, 4), 0.5f, 0);
	int32_t turned = tiny_int8(m, "turned", 4, DIMS(1, 4, 3, 2), 0.5f, 0);
	int32_t cut = tiny_int8(m, "cut", 4, DIMS(1, 2, 3, 1), 0.5f, 0);
	int32_t tiled = tiny_int8(m, "tiled", 4, DIMS(1, 2, 3, 2), 0.5f, 0);
	int32_t first = tiny_int8(m, "first", 4, DIMS(1, 2, 3, 1), 0.5f, 0);
	int32_t rest = tiny_int8(m, "rest", 4, DIMS(1, 2, 3, 1), 0.5f, 0);
	int32_t picked = tiny_int8(m, "picked", 4, DIMS(1, 3, 3, 1), 0.5f, 0);
	int32_t large = tiny_int8(m, "large", 4, DIMS(1, 4, 2, 1), 0.5f, 0);
	int32_t deep = tiny_int8(m, "deep", 4, DIMS(1, 2, 1, 4), 0.5f, 0);
	int32_t low = tiny_int8(m, "low", 3, DIMS(1, 1, 4), 0.5f, 0);
	int32_t high = tiny_int8(m, "high", 3, DIMS(1, 1, 4), 0.5f, 0);
	int32_t flat = tiny_int8(m, "flat", 2, DIMS(1, 6), 0.5f, 0);
	struct tiny_op *op;

	tiny_op(m, 39, 2, REFS(in, whole(m, "order", 4, order)), turned);
	tiny_op(m, 65, 3,
		REFS(turned, whole(m, "begin", 4, zeros), whole(m, "size", 4, size)),
		cut);
	tiny_op(m, 69, 2, REFS(cut, whole(m, "twice", 4, twice)), tiled);
	op = tiny_op(m, 102, 3,
		     REFS(tiled, whole(m, "parts", 2, parts), whole(m, "axis", 1, three)),
		     first);
	op->outputs[op->output_count++] = rest;
	tiny_option(op, 79, 0, 4, 2);
	tiny_option(tiny_op(m, 36, 2, REFS(first, whole(m, "picks", 3, picks)), picked),
		    23, 0, 4, 1);
	tiny_op(m, 97, 2, REFS(picked, whole(m, "big", 2, big)), large);
	tiny_option(tiny_op(m, 26, 1, REFS(large), deep), 19, 0, 4, 2);
	op = tiny_op(m, 88, 1, REFS(deep), low);
	op->outputs[op->output_count++] = high;
	tiny_option(op, 64, 0, 4, 2);
	tiny_option(op, 64, 1, 4, 1);
	tiny_op(m, 22, 2, REFS(rest, fold_shape(m, in)), flat);
	m->inputs[0] = in;
	m->outputs[0] = flat;
	m->outputs[1] = low;
	m->outputs[2] = high;
	m->input_count = 1;
	m->output_count = 3;
}

/* Ends in what only the host can do: a custom operator, and float32 behind DEQUANTIZE. */
static void sample_tail(struct tiny *m)
{
	int32_t in = tiny_int8(m, "in", 2, DIMS(2, 8), 0.5f, 2);
	int32_t mid = tiny_int8(m, "mid", 2, DIMS(2, 8), 0.5f, 2);
	int32_t real = tiny_int8(m, "real", 2, DIMS(2, 8), 0, 0);
	int32_t soft = tiny_int8(m, "soft", 2, DIMS(2, 8), 0, 0);
	int32_t found = tiny_int8(m, "found", 2, DIMS(1, 4), 0.5f, 2);

	tiny_op(m, 19, 1, REFS(in), mid);
	tiny_op(m, 6, 1, REFS(mid), real);
	tiny_op(m, 25, 1, REFS(real), soft);
	tiny_op(m, 32, 2, REFS(mid, soft), found)->custom = "Detect";
	m->tensors[real].type = m->tensors[soft].type = 0;
	m->tensors[real].scales = m->tensors[soft].scales = 0;
	io(m, in, found);
}

/* What calculates beyond a plain network: from an image to an index. */
static void sample_arithmetic(struct tiny *m)
{
	static const int32_t size[] = {4, 4}, shape[] = {1, 8, 8, 2}, axes[] = {1};
	static const int32_t last[] = {-1};
	int32_t in = tiny_int8(m, "in", 4, DIMS(1, 2, 2, 2), 0.5f, 1);
	int32_t to = tiny_const(m, "size", 2, 1, DIMS(2), 1, 0, size, 8);
	int32_t large = tiny_int8(m, "large", 4, DIMS(1, 4, 4, 2), 0.5f, 1);
	int32_t out = tiny_const(m, "shape", 2, 1, DIMS(4), 1, 0, shape, 16);
	int32_t w = tiny_const(m, "w", 9, 4, DIMS(2, 3, 3, 2), 0.25f, 0, numbers, 36);
	int32_t up = tiny_int8(m, "up", 4, DIMS(1, 8, 8, 2), 0.5f, 1);
	int32_t alpha = tiny_const(m, "alpha", 9, 1, DIMS(2), 0.1f, 0, numbers, 2);
	int32_t prelu = tiny_int8(m, "prelu", 4, DIMS(1, 8, 8, 2), 0.5f, 1);
	int32_t leaky = tiny_int8(m, "leaky", 4, DIMS(1, 8, 8, 2), 0.5f, 1);
	int32_t rows = tiny_const(m, "rows", 2, 1, DIMS(1), 1, 0, axes, 4);
	int32_t most = tiny_int8(m, "most", 3, DIMS(1, 8, 2), 0.5f, 1);
	int32_t least = tiny_int8(m, "least", 3, DIMS(1, 8, 2), 0.5f, 1);
	int32_t range = tiny_int8(m, "range", 3, DIMS(1, 8, 2), 1, 0);
	int32_t square = tiny_int8(m, "square", 3, DIMS(1, 8, 8), 4, 0);
	int32_t column = tiny_const(m, "column", 9, 2, DIMS(8, 1), 4, 0, numbers, 8);
	int32_t larger = tiny_int8(m, "larger", 3, DIMS(1, 8, 8), 4, 0);
	int32_t axis = tiny_const(m, "axis", 2, 1, DIMS(1), 1, 0, last, 4);
	int32_t index = tiny_int8(m, "index", 2, DIMS(1, 8), 0, 0);
	struct tiny_op *op;

	m->tensors[index].type = 2;
	m->tensors[index].scales = 0;
	tiny_option(tiny_op(m, 23, 2, REFS(in, to), large), 15, 3, 1, 1);
	op = tiny_op(m, 67, 3, REFS(out, w, large), up);
	tiny_option(op, 49, 1, 4, 2);
	tiny_option(op, 49, 2, 4, 2);
	tiny_op(m, 54, 2, REFS(up, alpha), prelu);
	tiny_option(tiny_op(m, 98, 1, REFS(prelu), leaky), 75, 0, 4, tiny_float(0.3f));
	tiny_op(m, 82, 2, REFS(leaky, rows), most);
	tiny_op(m, 89, 2, REFS(leaky, rows), least);
	tiny_op(m, 41, 2, REFS(most, least), range);
	tiny_option(tiny_op(m, 126, 2, REFS(range, range), square), 101, 1, 1, 1);
	tiny_op(m, 55, 2, REFS(square, column), larger);
	tiny_option(tiny_op(m, 56, 2, REFS(larger, axis), index), 40, 0, 1, 2);
	io(m, in, index);
}

/* A state of 16 bits. */
static void sample_svdf(struct tiny *m)
{
	static const int16_t times[] = {1, -2, 32767, -32767, 128, 7, -129, 300};
	static const int32_t bias[] = {5, -70000};
	int32_t in = tiny_int8(m, "in", 2, DIMS(1, 3), 0.5f, 2);
	int32_t w = tiny_const(m, "w", 9, 2, DIMS(4, 3), 0.25f, 0, numbers, 12);
	int32_t t = tiny_const(m, "t", 7, 2, DIMS(4, 2), 0.0001f, 0, times, 16);
	int32_t b = tiny_const(m, "b", 2, 1, DIMS(2), 0.0001f, 0, bias, 8);
	int32_t s = tiny_int8(m, "s", 2, DIMS(1, 8), 0.25f, 0);
	int32_t out = tiny_int8(m, "out", 2, DIMS(1, 2), 0.5f, -100);
	struct tiny_op *op = tiny_op(m, 27, 5, REFS(in, w, t, b, s), out);

	m->tensors[s].type = 7;
	m->tensors[s].variable = true;
	tiny_option(op, 6, 0, 4, 2);
	tiny_option(op, 6, 1, 1, 1);
	io(m, in, out);
}

void tiny_lstm(struct tiny *m)
{
	static const int32_t bias[] = {5000, -70000};
	int32_t operands[24];
	struct tiny_op *op;

	memset(operands, -1, sizeof(operands));
	operands[0] = tiny_int8(m, "in", 3, DIMS(1, 2, 3), 0.5f, 2);
	for (int i = 0; i < 4; i++)
		operands[1 + i] =
			tiny_const(m, "w", 9, 2, DIMS(2, 3), 0.001f, 0, numbers + i, 6);
	for (int i = 0; i < 4; i++)
		operands[5 + i] = tiny_const(m, "r", 9, 2, DIMS(2, 2), 0.01f, 0,
					     numbers + 3 + i, 4);
	for (int i = 0; i < 4; i++)
		operands[12 + i] = tiny_const(m, "b", 2, 1, DIMS(2), 0.0005f, 0, bias, 8);
	operands[18] = tiny_int8(m, "h", 2, DIMS(1, 2), 1 / 128.0f, -3);
	operands[19] = tiny_int8(m, "c", 2, DIMS(1, 2), 1 / 2048.0f, 0);
	tiny_int8(m, "hidden", 1, DIMS(1), 1 / 128.0f, -3);
	op = tiny_op(m, 44, 24, operands,
		     tiny_int8(m, "out", 3, DIMS(1, 2, 2), 1 / 128.0f, -3));
	tiny_option(op, 71, 0, 1, 4);
	op->between_count = 5;
	memcpy(op->between, (const int32_t[]){15, 15, 15, 15, 15}, sizeof(op->between));
	m->tensors[13].variable = m->tensors[14].variable = true;
	m->tensors[14].type = 7;
	io(m, 0, 16);
}

/* Activations of 16 bits: a pad, a convolution, a fully connected layer. */
static void sample_int16(struct tiny *m)
{
	static const int32_t pads[] = {0, 0, 1, 0, 0, 1, 0, 0};
	static const int64_t bias[] = {5, -70000};
	int32_t in = tiny_int8(m, "in", 4, DIMS(1, 2, 3, 2), 0.001f, 0);
	int32_t p = tiny_const(m, "p", 2, 2, DIMS(4, 2), 0, 0, pads, 32);
	int32_t wide = tiny_int8(m, "wide", 4, DIMS(1, 3, 4, 2), 0.001f, 0);
	int32_t f = tiny_const(m, "f", 9, 4, DIMS(2, 2, 1, 2), 0.25f, 0, numbers, 8);
	int32_t b = tiny_const(m, "b", 4, 1, DIMS(2), 0.00025f, 0, bias, 16);
	int32_t mid = tiny_int8(m, "mid", 4, DIMS(1, 2, 4, 2), 0.01f, 0);
	int32_t w = tiny_const(m, "w", 9, 2, DIMS(2, 2), 0.25f, 0, numbers, 4);
	int32_t v = tiny_const(m, "v", 4, 1, DIMS(2), 0.0025f, 0, bias, 16);
	int32_t out = tiny_int8(m, "out", 2, DIMS(8, 2), 0.1f, 0);
	struct tiny_op *op;

	m->tensors[in].type = m->tensors[wide].type = 7;
	m->tensors[mid].type = m->tensors[out].type = 7;
	tiny_op(m, 34, 2, REFS(in, p), wide);
	op = tiny_op(m, 3, 3, REFS(wide, f, b), mid);
	tiny_option(op, 1, 0, 1, 1);
	tiny_option(op, 1, 1, 4, 1);
	tiny_option(op, 1, 2, 4, 1);
	op = tiny_op(m, 9, 3, REFS(mid, w, v), out);
	tiny_option(op, 8, 0, 1, 3);
	io(m, in, out);
}

/* More of them: pools, products of numbers and of matrices, other sizes. */
static void sample_wide(struct tiny *m)
{
	static const int32_t size[] = {3, 5};
	int32_t in = tiny_int8(m, "in", 4, DIMS(1, 2, 4, 2), 0.001f, 0);
	int32_t most = tiny_int8(m, "most", 4, DIMS(1, 2, 2, 2), 0.001f, 0);
	int32_t mean = tiny_int8(m, "mean", 4, DIMS(1, 2, 2, 2), 0.001f, 0);
	int32_t square = tiny_int8(m, "square", 4, DIMS(1, 2, 2, 2), 0.002f, 0);
	int32_t product = tiny_int8(m, "product", 4, DIMS(1, 2, 2, 2), 0.01f, 0);
	int32_t larger = tiny_int8(m, "larger", 4, DIMS(1, 3, 5, 2), 0.01f, 0), to;
	struct tiny_op *op;

	for (uint32_t i = 0; i < m->tensor_count; i++)
		m->tensors[i].type = 7;
	op = tiny_op(m, 17, 1, REFS(in), most);
	tiny_option(op, 5, 0, 1, 0);
	tiny_option(op, 5, 1, 4, 2);
	tiny_option(op, 5, 2, 4, 1);
	tiny_option(op, 5, 3, 4, 3);
	tiny_option(op, 5, 4, 4, 2);
	op = tiny_op(m, 1, 1, REFS(most), mean);
	tiny_option(op, 5, 0, 1, 0);
	tiny_option(op, 5, 1, 4, 1);
	tiny_option(op, 5, 2, 4, 1);
	tiny_option(op, 5, 3, 4, 2);
	tiny_option(op, 5, 4, 4, 2);
	tiny_option(op, 5, 5, 1, 1);
	tiny_op(m, 18, 2, REFS(mean, mean), square);
	tiny_op(m, 126, 2, REFS(square, square), product);
	to = tiny_const(m, "to", 2, 1, DIMS(2), 0, 0, size, 8);
	tiny_op(m, 23, 2, REFS(product, to), larger);
	io(m, in, larger);
}

size_t tiny_sample(unsigned int number, uint8_t *file, size_t max)
{
	static struct tiny m;

	memset(&m, 0, sizeof(m));
	if (number == 0)
		sample_net(&m);
	else if (number == 1)
		sample_elementwise(&m);
	else if (number == 2)
		sample_moves(&m);
	else if (number == 3)
		sample_tail(&m);
	else if (number == 4)
		sample_arithmetic(&m);
	else if (number == 5)
		sample_svdf(&m);
	else if (number == 6)
		sample_int16(&m);
	else if (number == 7)
		sample_wide(&m);
	else if (number == 8)
		tiny_lstm(&m);
	else
		return 0;
	return tiny_write(&m, file, max);
}

/* ---- random graphs ---------------------------------------------------------------- */

/* xorshift64*; Vigna, "An experimental exploration of Marsaglia's xorshift generators" */
static uint32_t draw(uint64_t *state, uint32_t below)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return (uint32_t)((*state * UINT64_C(2685821657736338717) >> 33) % below);
}

static void pool_pixels(struct tiny *m, int32_t a, int32_t d)
{
	struct tiny_op *op = tiny_op(m, 17, 1, REFS(a), d);

	for (uint32_t field = 1; field <= 4; field++) /* strides and sides */
		tiny_option(op, 5, field, 4, 1);
}

void tiny_graph(struct tiny_graph *g, uint64_t seed, bool pools)
{
	static char names[TINY_GRAPH_OPS + 1][16];
	static const int8_t five = 5;
	uint64_t rng = seed * UINT64_C(0x9e3779b97f4a7c15) | 1;
	int32_t bytes = 1 + (int32_t)draw(&rng, 3000);

	memset(g, 0, sizeof(*g));
	for (uint32_t i = 0; i <= TINY_GRAPH_OPS; i++) {
		snprintf(names[i], sizeof(names[i]), "t%u", i);
		tiny_int8(&g->m, names[i], 4, DIMS(1, 1, 1, bytes), 0.5f, 0);
		g->root[i] = i;
	}
	for (int32_t i = 0; i < TINY_GRAPH_OPS; i++) {
		int32_t a = (int32_t)draw(&rng, (uint32_t)i + 1);
		int32_t b = (int32_t)draw(&rng, (uint32_t)i + 1);

		uint32_t kind = draw(&rng, 4);

		if (pools && kind > 1 && g->root[a] == g->root[b])
			kind = 1;
		switch (kind) {
		case 0:
			tiny_op(&g->m, TINY_RESHAPE, 1, REFS(a), i + 1);
			g->root[i + 1] = g->root[a];
			break;
		case 1:
			if (pools)
				pool_pixels(&g->m, a, i + 1);
			else
				tiny_op(&g->m, 19, 1, REFS(a), i + 1);
			break;
		default:
			/* ADD, MUL, SUB; some of one number */
			if (!pools && draw(&rng, 4) == 0)
				b = TINY_GRAPH_OPS + 1;
			tiny_op(&g->m, pools ? 0 : DIMS(0, 18, 41)[draw(&rng, 3)], 2,
				REFS(a, b), i + 1);
			break;
		}
	}
	tiny_const(&g->m, "five", 9, 1, DIMS(1), 0.5f, 0, &five, 1);
	io(&g->m, 0, TINY_GRAPH_OPS);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tiny.h - writes small .tflite files for tests, and files that are wrong on purpose.
 * FlatBuffers front to back: a table, then what it refers to.
 */
#ifndef TINY_H
#define TINY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TINY_TENSORS 64
#define TINY_OPS     64

struct tiny_tensor {
	const char *name;
	int type; /* as in the file: 9 int8 ... */
	uint32_t rank;
	int32_t dims[8];
	uint32_t scales; /* 0, 1 or per channel */
	const float *scale;
	float one_scale; /* scale NULL: this one */
	int64_t zero_point;
	int32_t channel_dim;
	const void *data;
	uint32_t bytes;
	bool variable, sparse;
	uint32_t open; /* dimensions that the signature leaves open, a bit each */
};

/* A scalar field of the options: int32, or one byte. */
struct tiny_field {
	uint32_t id;
	uint32_t bytes; /* 1 or 4; 0 ends the list */
	uint32_t value;
};

struct tiny_op {
	int code, version;
	const char *custom;                         /* of code 32: its name */
	int32_t inputs[24], outputs[4], between[5]; /* between: intermediates */
	uint32_t input_count, output_count, between_count;
	uint32_t options_type;
	struct tiny_field options[8];
};

struct tiny {
	const char *identifier; /* NULL: "TFL3" */
	uint32_t version;       /* 0: 3 */
	uint32_t graphs;        /* 0: 1 */
	uint32_t split; /* operators from here on are those of all graphs but the first;
			   0: each has them all */
	uint32_t tensor_count, op_count;
	struct tiny_tensor tensors[TINY_TENSORS];
	struct tiny_op ops[TINY_OPS];
	int32_t inputs[4], outputs[4];
	uint32_t input_count, output_count;
};

uint32_t tiny_float(float x);
/* An int8 activation; the tensor's number. */
int32_t tiny_int8(struct tiny *m, const char *name, uint32_t rank, const int32_t *dims,
		  float scale, int64_t zero_point);
/* A constant; type 9 int8, 2 int32. */
int32_t tiny_const(struct tiny *m, const char *name, int type, uint32_t rank,
		   const int32_t *dims, float scale, int64_t zero_point, const void *data,
		   uint32_t bytes);
/* An operator of version 1 with one output. */
struct tiny_op *tiny_op(struct tiny *m, int code, uint32_t inputs, const int32_t *input,
			int32_t output);
void tiny_option(struct tiny_op *op, uint32_t type, uint32_t field, uint32_t bytes,
		 uint32_t value);
/* An LSTM of int8 into an empty model: in 1 x 2 x 3 (tensor 0), weights (1 to 8), biases
 * (9 to 12), states h and c (13, 14), hidden (15) -> out 1 x 2 x 2 (16). */
void tiny_lstm(struct tiny *m);
/* The file; its length, or 0 when it does not fit. */
size_t tiny_write(const struct tiny *m, uint8_t *file, size_t max);

#define TINY_GRAPH_OPS 24
#define TINY_RESHAPE   22 /* an operator's code */

/* A random graph over vectors of one length: ADD, MUL, SUB, RELU and RESHAPE, tensor i +
 * 1 made by operator i, operands drawn from what is there.  root: the tensor whose bytes
 * it has. pools: MAX_POOL_2D of single pixels for RELU, and no ADD of a tensor to itself,
 * so that no operator is a function of one byte. */
struct tiny_graph {
	struct tiny m;
	uint32_t root[TINY_TENSORS];
};

void tiny_graph(struct tiny_graph *g, uint64_t seed, bool pools);

/* Valid models with every operator between them, number by number; 0 past the last. */
size_t tiny_sample(unsigned int number, uint8_t *file, size_t max);

#endif

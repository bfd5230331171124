/* SPDX-License-Identifier: Apache-2.0 */
/*
 * onnx.h - reads what ONNX's node vectors consist of: a model of one node, and tensors.
 *
 * Protobuf's wire format, of which these files need four things: numbers, floats, strings
 * and nested messages.  Fifty lines, where libprotobuf-c would be a library and a code
 * generator more.  Nothing is read outside the bytes given, whatever they say.
 */
#ifndef ONNX_H
#define ONNX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ONNX_RANK   4u
#define ONNX_INPUTS 9u
#define ONNX_INTS   8u
#define ONNX_NAME   48u

/* TensorProto.DataType */
#define ONNX_FLOAT 1u
#define ONNX_UINT8 2u
#define ONNX_INT8  3u
#define ONNX_INT32 6u

struct onnx_tensor {
	uint32_t type;
	uint32_t rank;
	uint32_t dims[ONNX_RANK];
	uint32_t count; /* elements */
	void *data;     /* of the type, host byte order; malloc'd */
};

struct onnx_attribute {
	char name[ONNX_NAME];
	int64_t ints[ONNX_INTS]; /* or one */
	uint32_t count;
	char text[ONNX_NAME];
};

struct onnx_node {
	char op[ONNX_NAME];
	/* Which of the model's inputs each of the node's is; -1: left out. */
	int32_t input[ONNX_INPUTS];
	uint32_t input_count;
	struct onnx_attribute attribute[ONNX_INTS];
	uint32_t attribute_count;
};

/* 0, or -EINVAL (not such a file, or more than fits above), -ENOTSUP (element type),
 * -ENOMEM. */
int onnx_tensor_parse(const uint8_t *bytes, size_t size, struct onnx_tensor *t);
void onnx_tensor_free(struct onnx_tensor *t);
/* The first node of the model's graph. */
int onnx_node_parse(const uint8_t *bytes, size_t size, struct onnx_node *n);
/* Attribute name, element i; what to take when it is not there. */
int64_t onnx_int(const struct onnx_node *n, const char *name, uint32_t i, int64_t absent);

/* The whole file, malloc'd; NULL and errno. */
uint8_t *onnx_read_file(const char *path, size_t *size);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fake_host.h - a fake TensorFlow Lite interpreter, which calls a delegate in the order
 * in which the real ones do, and is stricter than they are.
 *
 * It has its own declarations of what it passes by value (the registration), in the
 * lengths of several versions.  Tensors between nodes of a partition have no memory,
 * lists that an interpreter may overwrite are overwritten, nodes move when one is added,
 * and GetNodeAndRegistration fails while kernels prepare.
 */
#ifndef FAKE_HOST_H
#define FAKE_HOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tfl_abi.h"

#define HOST_TEXT 2048

struct host;

/* The length of the registration that the interpreter takes by value. */
enum host_version {
	HOST_SHORT, /* of TensorFlow 2.3: nothing behind .version */
	HOST_NOW,   /* of LiteRT 2.3 */
	HOST_LONG,  /* of a later version: four words more, which must be zero */
};

/* A node that the interpreter computes itself. */
typedef void (*host_kernel)(struct host *h, const struct tfl_node *node);

struct host_tensor {
	const char *name;
	int type, allocation;
	int rank;
	int dims[8];
	float scale; /* 0: not quantized */
	int32_t zero_point;
	const void *data; /* of a constant; must outlive the host */
	bool variable;
};

struct host *host_make(enum host_version version);
/* The graph of a model that libnpuc has read; the model must outlive the host. */
struct npuc_model;
struct host *host_of_model(enum host_version version, const struct npuc_model *model);
int host_add_tensor(struct host *h, const struct host_tensor *t);
/* Per channel, or with one zero point for all channels. */
void host_quantize(struct host *h, int tensor, const float *scales, int scale_count,
		   const int32_t *zeros, int zero_count, int dimension);
/* The file leaves sizes open: a bit each. */
void host_open(struct host *h, int tensor, uint32_t open);
/* A node; inputs and outputs end with -2.  params: malloc'ed options, which the host
 * frees, or NULL.  kernel: NULL if only a delegate can compute it. */
void host_add_node(struct host *h, int code, int version, const char *custom,
		   const int *inputs, const int *outputs, void *params,
		   host_kernel kernel);
void host_set_ports(struct host *h, const int *inputs, const int *outputs);
/* Every node is a partition, as with experimental_preserve_all_tensors. */
void host_preserve_all(struct host *h);

/* ModifyGraphWithDelegate and AllocateTensors: enum tfl_status. */
int host_apply(struct host *h, struct tfl_delegate *d);
int host_allocate(struct host *h);
/* Give all tensors with that first dimension another one, as shape propagation does. */
void host_resize_batch(struct host *h, int from, int to);
/* Give one tensor other sizes, as an interpreter that does not know what follows. */
void host_resize(struct host *h, int tensor, const int *dims);
int host_invoke(struct host *h);
void host_free(struct host *h);

struct tfl_context *host_context(struct host *h);
/* Inputs and outputs of the graph. */
const struct tfl_ints *host_inputs(const struct host *h);
const struct tfl_ints *host_outputs(const struct host *h);
struct tfl_tensor *host_tensor(struct host *h, int tensor);
/* What the delegate reported since the last call, or "". */
const char *host_errors(struct host *h);
/* Nodes that are in a partition, those that are not, and partitions. */
uint32_t host_delegated(const struct host *h, uint32_t *left, uint32_t *partitions);

#endif

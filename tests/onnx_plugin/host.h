/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host.h - as much of ONNX Runtime as an execution provider sees, in plain C: graphs,
 * statuses that are counted, and calls that fail on demand.  Functions that a provider of
 * API 23 has no use for abort.  The table ends at an unmapped page.
 */
#ifndef ONNX_PLUGIN_HOST_H
#define ONNX_PLUGIN_HOST_H

#include <stdbool.h>
#include <stdint.h>

#include "ort_abi.h"

#define HOST_NODES  32
#define HOST_VALUES 96
#define HOST_PORTS  8

struct host_value {
	const void *data; /* first: as in a tensor; a constant's, or NULL */
	const char *name;
	int type; /* enum ort_element */
	uint32_t rank;
	int64_t dims[6];
	bool output;
};

struct host_attr {
	const char *name;
	int type; /* enum ort_attr_type; 0 ends the list */
	int64_t ints[4];
	uint32_t count;
	float f;
	const char *text;
};

struct host_node {
	const char *type, *domain;
	struct host_value *in[HOST_PORTS], *out[2];
	uint32_t in_count, out_count;
	struct host_attr attrs[4];
};

struct host_graph {
	struct host_node nodes[HOST_NODES];
	struct host_value values[HOST_VALUES];
	uint32_t node_count, value_count;
	struct host_node *parent; /* of If or Loop */
};

/* What GetCapability has asked for. */
struct host_part {
	const struct host_node *nodes[HOST_NODES];
	uint32_t count;
};

struct host_support {
	struct host_part parts[8];
	uint32_t count;
};

struct host_tensor {
	void *data; /* first */
	int64_t dims[6];
	uint32_t rank;
	uint64_t bytes; /* an output's */
};

struct host_context {
	struct host_tensor in[HOST_PORTS], out[HOST_PORTS];
	uint32_t in_count;
};

struct host_options {
	const char *keys[8], *values[8];
	uint32_t count;
};

/* newest: the newest API that this runtime has. */
const struct ort_api_base *host_base(uint32_t newest);
/* Make call number n from now on fail with a status; 0: none. */
void host_fail_at(unsigned int n);
/* How many statuses are not released. */
int host_statuses(void);
/* The text of a status, which is released; "" of NULL. */
const char *host_text(struct ort_status *s, int *code);
/* What was logged since the last call. */
const char *host_log(void);

struct host_value *host_value(struct host_graph *g, const char *name, int type,
			      uint32_t rank, const int64_t *dims, const void *data);
struct host_node *host_node(struct host_graph *g, const char *type, uint32_t in_count,
			    struct host_value *const *in, struct host_value *out);
/* The partition as a graph of its own, and the node that stands for it. */
void host_fuse(const struct host_graph *g, const struct host_part *part,
	       struct host_graph *sub, struct host_node *fused);

#endif

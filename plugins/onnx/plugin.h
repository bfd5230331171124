/* SPDX-License-Identifier: Apache-2.0 */
/* plugin.h - the execution provider's parts: a graph as the runtime has it (graph.c), its
 * quantized operators (units.c), which become models (build.c, operators.c, moves.c,
 * tables.c), in partitions (claims.c), that run (kernel.c) for a session (provider.c) of
 * the library (factory.c). */
#ifndef ACCELHAL_ONNX_PLUGIN_H
#define ACCELHAL_ONNX_PLUGIN_H

#include <npuc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "ort_abi.h"

#define PLUGIN_NAME   "AccelHalExecutionProvider"
#define PLUGIN_PREFIX "ep.accelhalexecutionprovider."
#define PLUGIN_RANK   6u
#define PLUGIN_NONE   UINT32_MAX
#define PLUGIN_WHY    NPUC_WHY

/* Memory that is freed all at once. */
struct pool {
	struct pool_block *first;
	bool empty; /* malloc has failed */
};

/* Zeroed; NULL sets .empty. */
void *pool_alloc(struct pool *p, size_t count, size_t bytes);
void pool_free(struct pool *p);

/* ---- graph.c ---------------------------------------------------------------------- */

struct value {
	const char *name;
	int type;      /* enum ort_element; 0: no tensor */
	uint32_t rank; /* PLUGIN_NONE: unknown, or a dimension is */
	int32_t dims[PLUGIN_RANK];
	uint64_t count;
	const void *data;   /* of a constant; the runtime's */
	uint32_t producer;  /* node, or PLUGIN_NONE */
	uint32_t consumers; /* how many inputs of nodes it is */
	uint32_t consumer;  /* the last of them */
	bool output;        /* of the graph */
};

struct node {
	const struct ort_node *ort;
	const char *type, *domain;
	uint32_t in_count, out_count;
	uint32_t *in, *out; /* values; PLUGIN_NONE: left out */
	uint32_t unit;      /* or PLUGIN_NONE */
	char *why;          /* not in a unit: why; NULL: nobody asked */
};

struct graph {
	const struct ort_api *api;
	struct pool pool;
	struct ort_status *status; /* the first error of the runtime */
	uint32_t node_count, value_count, value_room, slot_count;
	struct node *nodes; /* in topological order */
	struct value *values;
	uint32_t *slots; /* hash of names: value + 1 */
};

/* Read a graph; NULL or a status.  Names and data stay the runtime's. */
struct ort_status *graph_read(struct graph *g, const struct ort_api *api,
			      const struct ort_graph *from);
void graph_free(struct graph *g);
/* Return the value of that name, or PLUGIN_NONE. */
uint32_t graph_find(const struct graph *g, const char *name);
/* Read an attribute; false: it is absent, or not of that kind and length. */
bool graph_int(struct graph *g, const struct node *n, const char *name, int64_t *out);
bool graph_float(struct graph *g, const struct node *n, const char *name, float *out);
bool graph_string(struct graph *g, const struct node *n, const char *name, char *out,
		  size_t size);
/* Return how many numbers it has, at most most; 0: absent. */
uint32_t graph_ints(struct graph *g, const struct node *n, const char *name, int64_t *out,
		    uint32_t most);
struct ort_status *plugin_fail(const struct ort_api *api, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* ---- units.c ---------------------------------------------------------------------- */

#define UNIT_INPUTS  34u
#define UNIT_OUTPUTS 34u
#define UNIT_NODES   (2 * UNIT_INPUTS + 3)

struct operand {
	uint32_t value;     /* of the graph: integers, or a constant of any type */
	const float *scale; /* NULL: unknown, or the value is a float constant */
	uint32_t scales;    /* 1, or one a channel */
	uint32_t axis;      /* of the channels */
	int32_t zero;       /* of its own type */
};

enum act { ACT_NONE = 0, ACT_RELU = 1, ACT_RELU6 = 3 }; /* of the schema */

/* An operator on integers, alone or with the nodes that quantize around it. */
struct unit {
	uint32_t nodes[UNIT_NODES], node_count;
	uint32_t op; /* node; of a mere change of quantization QuantizeLinear */
	uint32_t in_count;
	struct operand in[UNIT_INPUTS], out;
	uint32_t more_count;
	struct operand *more; /* results of Split after the first; the graph's memory */
	enum act act;
	uint64_t macs;
	bool taken;
};

/* Find the units of a graph, in topological order of their operators; memory is g's. */
struct unit *units_find(struct graph *g, uint32_t *count);

/* ---- build.c ---------------------------------------------------------------------- */

/* An input or output of a partition. */
struct port {
	uint32_t value; /* of the graph */
	bool nhwc;      /* the model has the channels last, the graph second */
	bool flip;      /* the model has int8 for uint8 */
};

struct built {
	uint32_t in_count, out_count;
	struct port *in,
		*out; /* of the graph's pool, in the order of the model's ports */
	struct npuc_model *model;
};

/* Make a model of units, in their order; outs: values it must give.  0 or -errno with
 * why. */
int build_model(struct graph *g, const struct unit *const *units, uint32_t count,
		const uint32_t *outs, uint32_t out_count, struct built *b,
		char why[PLUGIN_WHY]);

/* ---- claims.c --------------------------------------------------------------------- */

struct settings;
struct place;

struct claims {
	struct unit *units;
	uint32_t unit_count, part_count;
	uint32_t *part; /* by unit; PLUGIN_NONE: left to the CPU */
	uint64_t macs;  /* of taken units */
	const struct place *place;
	uint64_t memory; /* of its partitions */
};

/* Compile each unit alone, merge those that compile, and drop partitions that do not, or
 * that do not fit into the memory of place, unless that is NULL. */
int claims_find(struct graph *g, const struct settings *s, const struct place *place,
		struct claims *c);
/* Return whether the graph has no partitions from an earlier call of GetCapability. */
bool claims_is_first(const struct graph *g);
/* Return why an operator stays on the CPU; NULL: it does not, or only quantizes. */
const char *claims_reason(const struct graph *g, const struct claims *c, uint32_t node);
/* Write what is taken and what is not, and why. */
void claims_describe(const struct graph *g, const struct claims *c, char *text,
		     size_t size);
/* List values that units of the partition make and others need.  outs has room for every
 * result of the units. */
uint32_t claims_outputs(const struct graph *g, const struct unit *const *units,
			uint32_t count, uint32_t *outs);

/* ---- provider.c ------------------------------------------------------------------- */

/* Options of a session. */
struct settings {
	char target[256], partition[32], cache_dir[1024];
	uint32_t units, rows, cols;
	int32_t priority;
	uint64_t deadline_us, memory_bytes, min_macs;
	bool has_priority, strict;
	uint32_t log;
};

/* A partition of a device, of all sessions with the same options. */
struct place {
	struct place *next;
	struct hal_device *dev;
	struct hal_partition *part;
	struct settings settings;
	pid_t pid; /* that made it */
	uint32_t users;
	uint64_t memory_bytes; /* of the partition, else of the device; 0: not known */
	uint64_t memory_used;  /* by kernels */
};

int place_take(const struct settings *s, struct place **place, char why[PLUGIN_WHY]);
void place_give(struct place *p);
/* Check whether a program fits beside the kernels that hold memory, and beside others,
 * which grows by what it takes.  0, or -ENOSPC with why. */
int place_try(const struct place *p, const struct npuc_program *program, uint64_t *others,
	      char why[PLUGIN_WHY]);
/* Count a program's memory until it is released.  0, or -ENOSPC with why. */
int place_hold(struct place *p, const struct npuc_program *program, char why[PLUGIN_WHY]);
void place_release(struct place *p, const struct npuc_program *program);

struct provider {
	struct ort_ep ep;  /* first */
	atomic_uint users; /* the session, and each kernel */
	const struct ort_api *api;
	const struct ort_ep_api *ep_api;
	const struct ort_logger *logger;
	struct settings settings;
	struct place *place;      /* counted; NULL: it takes nothing yet */
	pthread_mutex_t lock;     /* of priority and deadline, which change at run time */
	char refusal[PLUGIN_WHY]; /* strict: what is left to the CPU */
};

struct ort_status *provider_create(const struct ort_api *api,
				   const struct ort_session_options *o,
				   const struct ort_logger *l, struct ort_ep **ep);
void provider_give(struct provider *p);
void provider_log(const struct provider *p, int level, const char *text);

/* ---- kernel.c --------------------------------------------------------------------- */

struct ort_status *kernel_create(struct provider *p, const struct ort_graph *from,
				 const struct ort_node *fused,
				 struct ort_compute_info **info);
void kernel_free(struct ort_compute_info *info);

#endif

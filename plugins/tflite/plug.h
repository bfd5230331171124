/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plug.h - what the files of the TensorFlow Lite delegate share.
 *
 *   options.c    keys and values of the user
 *   operators.c  operators of the interpreter, by number, and their options
 *   graph.c      nodes of the interpreter as a model of libnpuc
 *   claims.c     which nodes the NPU takes, in which partitions
 *   folded.c     nodes that compute shapes, and those that read what they compute
 *   report.c     the summary line, and the log
 *   kernel.c     a partition that is opened on the device, and run
 *   delegate.c   the two functions that the runtime looks up
 */
#ifndef ACCELHAL_TFLITE_PLUG_H
#define ACCELHAL_TFLITE_PLUG_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <hal/hal.h>

#include "npuc.h"
#include "tfl_abi.h"

/* ---- options.c -------------------------------------------------------------------- */

struct options {
	char *target;    /* NULL: the configuration's */
	char *partition; /* section of the configuration; NULL: none */
	uint32_t units;  /* 0: all, unless rows and cols say otherwise */
	uint16_t rows, cols, row, col;
	uint16_t service_class;
	int32_t priority;
	uint64_t deadline_us;
	uint32_t weight;
	uint64_t memory_bytes, bandwidth;
	uint64_t min_macs;
	uint32_t max_partitions; /* 0: any number */
	char *exclude;           /* operators and node numbers, separated by commas */
	enum npuc_reference reference;
	bool strict;
	char *cache_dir, *trace;
	uint32_t log; /* 0: the summary; 1: partitions, too; 2: nodes left, too */
};

/* Read one option.  Returns 0, or -errno with why: the key, the value, what is allowed.
 */
int options_set(struct options *o, const char *key, const char *value,
		char why[NPUC_WHY]);
/* Check options that must fit each other. */
int options_check(const struct options *o, char why[NPUC_WHY]);
void options_free(struct options *o);
/* Is the operator, or node number index, in the list of option exclude? */
bool options_exclude(const struct options *o, const char *operator_name, int index);

/* ---- operators.c ------------------------------------------------------------------ */

#define BUILTIN_CUSTOM   32
#define BUILTIN_DELEGATE 51
#define BUILTIN_SHAPE    77
#define BUILTIN_RANK     110

/* Attributes of one node, with room for what they point to. */
#define ATTRS_MAX 8
struct attrs {
	struct npuc_attr list[ATTRS_MAX];
	uint32_t count;
	int32_t shape[8];
};

/* Which nodes of an operator the delegate can translate. */
enum claim {
	NEVER,
	FOLDED, /* those that follow from constants and shapes, which npuc computes */
	ALWAYS,
};

struct tfl_operator;

/* Return the operator by its number in the schema, or NULL if it is not in the table. */
const struct tfl_operator *operator_find(int32_t code);
const struct tfl_operator *operator_named(const char *name);
const char *operator_name(const struct tfl_operator *op);
enum claim operator_claim(const struct tfl_operator *op);
/* Read the interpreter's struct of options, which NULL stands for absent ones. */
void operator_attrs(const struct tfl_operator *op, const void *builtin,
		    struct attrs *attrs);
enum npuc_type operator_type(int tfl_type);

/* ---- graph.c ---------------------------------------------------------------------- */

/* What of a node stays valid until the interpreter ends.  The node itself moves when
 * others are added, and cannot be looked up while a kernel prepares. */
struct item {
	int index; /* of the interpreter */
	int32_t code, version;
	const char *custom; /* of CUSTOM and DELEGATE, else NULL */
	const struct tfl_ints *inputs, *outputs;
	const void *builtin;
};

/* Is the tensor's data known before the first inference? */
bool tensor_constant(const struct tfl_tensor *t);
/* Read nodes in the given order.  items: room for nodes->size. */
int items_read(struct tfl_context *ctx, const struct tfl_ints *nodes, struct item *items);
/* Write an operator's name: "CONV_2D", "CUSTOM name", "operator 161". */
void item_name(const struct item *item, char *name, size_t size);
/* Does the node read a tensor's shape and no data? */
bool item_measures(const struct item *item);
/* Count the multiply-accumulates of a node by its tensors' shapes, of any type. */
uint64_t item_macs(const struct tfl_context *ctx, const struct item *item);
/* Is item i the shape of a tensor that no item makes?  The model has a constant for it,
 * and no layer. */
bool graph_measures(const struct item *items, uint32_t count, uint32_t i);
/* Is a tensor that comes into a model of items one of its inputs?  It is none if it is
 * constant, or if items read its shape alone. */
bool graph_input(const struct tfl_context *ctx, const struct item *items, uint32_t count,
		 int tensor);
/* List the shapes that are constants of the model; malloc'ed. */
struct tfl_ints *graph_shapes(const struct tfl_context *ctx, const struct item *items,
			      uint32_t count);
/* Make a model of items, which are in the order in which they run.  ins, outs: tensors of
 * the interpreter; those of ins that are no inputs are left out.  Sizes of results that
 * the interpreter does not know are left open.  *refused: the position of the item that
 * cannot be translated, or UINT32_MAX. */
int graph_model(const struct tfl_context *ctx, const struct item *items, uint32_t count,
		const struct tfl_ints *ins, const struct tfl_ints *outs,
		struct npuc_model **model, uint32_t *refused, char why[NPUC_WHY]);

/* ---- delegate --------------------------------------------------------------------- */

struct kernel;

/* One delegate: a partition of a device, and what the user asked for.  Counted: by its
 * creator and by each kernel, as runtimes destroy the delegate before its kernels. */
struct plug {
	struct tfl_delegate delegate; /* first: the interpreter keeps a pointer to it */
	struct options o;
	struct hal_device *dev;
	struct hal_partition *part;
	struct hal_partition_info info;
	uint64_t clock_hz;
	uint64_t memory_bytes; /* of the partition, else of the device; 0: not known */
	char device[64];       /* its name, for the summary */
	pid_t pid;             /* that made it */
	atomic_uint users;
	pthread_mutex_t lock; /* of the two below */
	uint64_t memory_used; /* by open kernels */
	struct kernel *ready; /* opened by claims, and not yet asked for by init */
};

void plug_put(struct plug *p);
/* Does another process use the delegate than the one that made it? */
bool plug_forked(const struct plug *p, char why[NPUC_WHY]);

/* ---- claims.c --------------------------------------------------------------------- */

/* A node of the execution plan. */
struct node {
	struct item item;
	uint64_t macs;
	/* Its results follow from constants, and from shapes of tensors: each time that
	 * the partition is compiled, npuc computes them. */
	bool folded;
	char reason[256]; /* why it stays on the CPU; "": it does not */
};

/* Is the node a partition that this or another accelhal delegate has taken already? */
bool node_taken(const struct node *n);

/* A partition that the device takes. */
struct part {
	int first;                       /* node of the interpreter */
	uint32_t nodes, inputs, outputs; /* counts */
	uint64_t macs, cycles;
	double saved; /* cycles, by a rough estimate */
};

struct claims {
	struct plug *p;
	struct node *nodes;
	uint32_t node_count;
	bool *folded; /* by tensor: whole numbers, which a folded node makes */
	struct part *parts;
	uint32_t part_count;
};

int claims_prepare(struct tfl_context *ctx, struct tfl_delegate *delegate);
/* Leave a node to the CPU; the first reason stands. */
void claims_leave(struct node *n, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* ---- folded.c --------------------------------------------------------------------- */

/* Does the node read what a folded node makes? */
bool folded_read(const struct claims *c, const struct node *n);
/* Note that n is folded: all that it reads is constant, a shape, or made so. */
void folded_note(struct claims *c, const struct tfl_context *ctx, struct node *n);
/* Leave nodes that read whole numbers of a folded node on the CPU, and folded nodes whose
 * results are read on the CPU, or nowhere. */
int folded_settle(struct claims *c, const struct tfl_context *ctx);
/* Leave folded nodes whose results are read outside of their partition.  Returns their
 * number. */
int folded_leave_outputs(struct claims *c, const struct tfl_delegate_params *part);

/* ---- report.c --------------------------------------------------------------------- */

/* Write a line as the runtime's own logger does on Linux: "INFO: accelhal: ..." on
 * standard error.  A delegate has no pointer to that logger. */
void report_line(const char *severity, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
void report_claims(const struct claims *c);
/* List the operators that stay on the CPU, and why, within size. */
void report_left(const struct claims *c, char *text, size_t size);

/* ---- kernel.c --------------------------------------------------------------------- */

#define KERNEL_NAME "AccelHal"

extern const struct tfl_registration kernel_registration;

/* Open a compiled program on the delegate's partition.  The kernel owns program then,
 * also after an error.  items are copied. */
int kernel_open(struct plug *p, struct tfl_context *ctx, const struct item *items,
		uint32_t count, const struct tfl_ints *ins, const struct tfl_ints *outs,
		struct npuc_program *program, struct kernel **kernel, char why[NPUC_WHY]);
/* Compile the model of a partition, through the cache if the user named one.  refuses
 * what ends before the partition does. */
int kernel_compile(const struct plug *p, const struct npuc_model *model,
		   struct npuc_program *program, char why[NPUC_WHY]);
/* Keep a kernel until the interpreter asks for it. */
void kernel_keep(struct kernel *k);
/* Return the program of a kept kernel of these nodes, or NULL. */
const struct npuc_program *kernel_ready(struct plug *p, const struct tfl_context *ctx,
					const struct tfl_ints *nodes);
/* Free the kernels of ctx that the interpreter has not asked for. */
void kernels_drop(struct plug *p, const struct tfl_context *ctx);

#endif

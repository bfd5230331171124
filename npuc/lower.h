/* SPDX-License-Identifier: Apache-2.0 */
/* lower.h - operators of a model become steps: what one call of a hal_npu_ function does.
 */
#ifndef NPUC_LOWER_H
#define NPUC_LOWER_H

#include <hal/npu.h>

#include "model.h"
#include "quant.h"

enum step_kind {
	STEP_CONV,
	STEP_GEMM,
	STEP_ADD,
	STEP_MUL,
	STEP_MAXPOOL,
	STEP_AVGPOOL,
	STEP_LUT,
	STEP_SOFTMAX,
	STEP_COPY,
	STEP_FILL,
};

/* The operation's places have their offset within the value; ids are filled when the
 * step is emitted.  What the structs point to belongs to the lowering. */
struct step {
	enum step_kind kind;
	uint32_t layer;
	uint32_t a, b, d; /* values; b only of GEMM, ADD and MUL, a not of FILL */
	union {
		struct hal_npu_conv conv;
		struct hal_npu_gemm gemm;
		struct hal_npu_add add;
		struct hal_npu_mul mul;
		struct hal_npu_pool pool;
		struct hal_npu_lut lut;
		struct hal_npu_softmax softmax;
		struct hal_npu_copy copy;
		struct {
			struct hal_npu_place d;
			uint32_t bytes, pattern;
		} fill;
	} u;
};

/* An image that is another one with a border all around of one value: a convolution may
 * read the inner one and pad by itself. */
struct bordered {
	uint32_t inner; /* value; NPUC_NONE: this is none */
	uint32_t h, w;  /* of the inner one */
	uint32_t top, left;
	int32_t border;
};

/* A tensor of the model, by the same number, or an intermediate of the compiler's. */
struct value {
	uint64_t bytes;
	const void *data; /* a constant */
	uint8_t *made;    /* the same, where it is the compiler's own */
	uint32_t same;    /* the value whose place it shares; itself: none */
	bool input, output;
	bool state;        /* a variable's: it stays where it is between launches */
	uint32_t variable; /* of a handle: its index and 1 */
	bool ready;        /* a constant, an input, or some step or alias has made it */
	bool read;         /* by some step, as of lower_mark_reads */
	struct bordered pad;
};

/* What tells a variable from others, as strings of the file. */
struct variable_name {
	struct flat_vector container, name;
};

struct variable {
	struct variable_name name;
	enum npuc_type type;
	uint32_t value; /* NPUC_NONE: not known yet */
	bool own;       /* a layer's: it has no name */
	bool assigned;
	const void *first; /* its value before the first inference; NULL: none */
};

#define LOWER_PIECES_MAX 65536u /* steps of one layer */

struct lowered {
	const struct npuc_model *m;
	enum npuc_reference reference;
	char *why;
	struct npuc_report
		*report;  /* errors of layers go there; NULL: the first ends it */
	char reason[320]; /* the last error of a layer, without file and layer */
	/* The model's tensors with the shapes that their layers give them, and of each
	 * the dimensions whose sizes are still open, as in struct model_tensor. */
	struct npuc_tensor *tensors;
	uint32_t *open;
	bool *guessed;    /* a refused layer would have said what its open sizes are */
	bool other_types; /* the model is not one of 8 bits at all */
	uint32_t step_count, step_room;
	struct step *steps;
	uint32_t value_count, value_room;
	struct value *values;
	uint32_t variable_count;
	struct variable *variables;
	uint32_t owned_count, owned_room;
	void **owned;
	uint64_t owned_bytes;
	char (*shapes)[96]; /* by layer */
	uint64_t *macs;     /* by layer: the network's, however they are made */
	uint32_t layer;     /* in work */
	/* lower_group.c: by layer, the QUANTIZE at the end of what a table stands for, or
	 * NPUC_NONE; by tensor, how many groups read it. */
	uint32_t *group, *grouped;
	/* lower_host.c: layers that are left to the host, the program's inputs and
	 * outputs as tensors of the model, and what is said of that; or the layer that
	 * cannot be left to it, which has been told, else NPUC_NONE. */
	bool *host;
	uint32_t input_count, output_count;
	uint32_t *model_inputs, *model_outputs;
	uint32_t in_the_way;
	char host_text[NPUC_HOST];
	/* Of those inputs and outputs: the tensor that the device has for it; of an
	 * output, too, the value which is made for the caller. */
	uint32_t *inputs, *output_tensors, *outputs;
};

/* report: NULL, or where all that is wrong with single layers goes; 0 then. */
int npuc_lower(const struct npuc_model *m, enum npuc_reference reference,
	       struct npuc_report *report, struct lowered *l, char why[NPUC_WHY]);
/* An error that has been written to why: with a report it is noted there, and 0; a layer
 * NPUC_NONE: the whole model's. */
int npuc_note(struct lowered *l, uint32_t layer, int rc);
/* Convolutions read what is inside a PAD; without keep, a PAD that nobody reads then
 * goes.
 */
void npuc_fuse_pads(struct lowered *l, bool keep);
/* Steps of bytes one by one that come to a function of one byte become a table; tables
 * that nobody reads then go.  0, or -ENOMEM after lower_fail. */
int npuc_fuse_tables(struct lowered *l);
/* Variables are read and assigned in place where a copy would make no difference.  0, or
 * -ENOMEM after lower_fail. */
int npuc_fuse_states(struct lowered *l);
void npuc_lowered_free(struct lowered *l);
/* The value whose place v's is. */
uint32_t npuc_root(const struct lowered *l, uint32_t v);

/* ---- between the files of the lowering --------------------------------------------- */

/* Find out which roots steps read (struct value, .read). */
void lower_mark_reads(struct lowered *l);
/* Fails with file, layer, operator and its output tensor in front. */
int lower_fail(struct lowered *l, int err, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* Zeroed memory that lives as long as l; NULL after lower_fail. */
void *lower_own(struct lowered *l, uint64_t bytes);
/* A step of the layer in work with everything zero; NULL after lower_fail. */
struct step *lower_step(struct lowered *l, enum step_kind kind, uint32_t a, uint32_t b,
			uint32_t d);
int lower_value(struct lowered *l, uint64_t bytes, const void *data, uint32_t *value);
/* d has a's bytes: no work where the place can be shared. */
int lower_alias(struct lowered *l, uint32_t a, uint32_t d);

/* Set the fields above. */
int lower_find_groups(struct lowered *l);
int lower_group(struct lowered *l);
int lower_host(struct lowered *l);
bool lower_knows(uint32_t code);
/* "CONV_2D", "CUSTOM name", "operator 300" */
void lower_operator_name(const struct model_op *op, char name[NPUC_OPERATOR_NAME]);
const struct model_op *lower_op(const struct lowered *l);
const struct npuc_tensor *lower_t(const struct lowered *l, uint32_t tensor);
/* Operand number of the operator in work: int8 or uint8, quantized per tensor, not
 * empty, and made by an earlier layer or constant. */
int lower_operand(struct lowered *l, uint32_t number, uint32_t *tensor);
/* Check a tensor as if it were an operand. */
int lower_tensor(struct lowered *l, uint32_t tensor);
int lower_result(struct lowered *l, uint32_t *tensor);
/* The same, or int16. */
int lower_operand16(struct lowered *l, uint32_t number, uint32_t *tensor);
int lower_result16(struct lowered *l, uint32_t *tensor);
/* A result of whole numbers: int32 or int64. */
int lower_index_result(struct lowered *l, uint32_t *tensor);
/* Operand number, whatever it is. */
int lower_take(struct lowered *l, uint32_t number, uint32_t *tensor);
/* A value becomes a constant, whose bytes the layer in work then writes. */
int lower_made(struct lowered *l, uint32_t value);
/* A whole number as the file has it. */
int64_t lower_number(const uint8_t *bytes, uint32_t width);
/* A constant operand of count whole numbers (0: any), copied; NULL *out: left out. */
int lower_ints(struct lowered *l, uint32_t number, bool optional, uint64_t count,
	       const int32_t **out, uint32_t *length);
int lower_counts(struct lowered *l, uint32_t least, uint32_t most);
int lower_same_type(struct lowered *l, uint32_t a, uint32_t b);
int lower_same_quant(struct lowered *l, uint32_t a, uint32_t d);
/* Check that the layer's operands give the tensor the shape that the file declares.  A
 * result whose sizes the file leaves open gets the computed ones; -EAGAIN then, and the
 * layer is lowered once more. */
int lower_dims(struct lowered *l, uint32_t tensor, uint32_t rank, const uint32_t *dims);
/* The same of open sizes alone: 0 where another shape is declared, for operators that
 * have their own words for that. */
int lower_open(struct lowered *l, uint32_t tensor, uint32_t rank, const uint32_t *dims);
/* d has a's shape. */
int lower_same_dims(struct lowered *l, uint32_t a, uint32_t d);
/* Fields of the operator's options; the default where it has none of that kind. */
int32_t lower_option(struct lowered *l, uint32_t kind, uint32_t field, int32_t def);
uint32_t lower_option_u8(struct lowered *l, uint32_t kind, uint32_t field);
int lower_range(struct lowered *l, uint32_t act, uint32_t tensor, int32_t *min,
		int32_t *max);

/* flags where a tensor is uint8, else none. */
uint32_t lower_u8(const struct lowered *l, uint32_t tensor, uint32_t flags);
struct quant_side lower_side(const struct lowered *l, uint32_t tensor);
/* What the layer is said to do: "1x10 -> 1x10", by its first operand. */
void lower_describe(struct lowered *l, uint32_t a, uint32_t d);
/* How many multiply-accumulates the layer is. */
void lower_macs(struct lowered *l, uint64_t macs);
/* One operand, and a result of its shape. */
int lower_unary(struct lowered *l, uint32_t *a, uint32_t *d);
/* The same, of which some may be int16. */
int lower_unary16(struct lowered *l, uint32_t *a, uint32_t *d);
/* A step d = table[a] over values of so many bytes; the table stays the caller's. */
int lower_lut(struct lowered *l, uint32_t a, uint32_t d, uint64_t bytes,
	      const uint8_t *table);

/* An operand's dimensions as runs that are reduced or kept, in turn, by the axes which
 * are the second operand. */
struct runs {
	uint32_t count;
	struct {
		uint32_t size;
		bool reduced;
	} run[NPUC_RANK];
};
/* Checks d's shape: without the axes, or with 1 for each where the options keep them. */
int lower_runs(struct lowered *l, uint32_t a, uint32_t d, struct runs *r);

int lower_conv(struct lowered *l);
int lower_depthwise(struct lowered *l);
int lower_transpose_conv(struct lowered *l);
int lower_resize_bilinear(struct lowered *l);
int lower_batch_matmul(struct lowered *l);
int lower_fully_connected(struct lowered *l);
int lower_pool(struct lowered *l);
int lower_mean(struct lowered *l);
int lower_add(struct lowered *l); /* and SUB */
int lower_mul(struct lowered *l);
int lower_maximum(struct lowered *l); /* and MINIMUM */
int lower_leaky_relu(struct lowered *l);
int lower_prelu(struct lowered *l);
int lower_reduce(struct lowered *l);  /* REDUCE_MAX, REDUCE_MIN */
int lower_arg_max(struct lowered *l); /* and ARG_MIN */
int lower_softmax(struct lowered *l);
int lower_log_softmax(struct lowered *l);
int lower_call_once(struct lowered *l);
int lower_var_handle(struct lowered *l);
int lower_read_variable(struct lowered *l);
int lower_assign_variable(struct lowered *l);
int lower_svdf(struct lowered *l);
int lower_lstm(struct lowered *l);
/* A variable of the layer's own, with its first bytes. */
int lower_state(struct lowered *l, uint64_t bytes, const void *first, uint32_t *value);
int lower_relu(struct lowered *l);
int lower_function(struct lowered *l); /* LOGISTIC, TANH */
/* ABS, ELU, EXP, GELU, HARD_SWISH, LOG, NEG, RSQRT, SQRT of 8 bits */
int lower_unary_table(struct lowered *l);
int lower_given_table(struct lowered *l); /* NPUC_TABLE_OPERATOR */
int lower_quantize(struct lowered *l);
int lower_dequantize(struct lowered *l);
int lower_pad(struct lowered *l);
/* Checks operands and options of the layer in work that are the same for all its numbers.
 */
int lower_form(struct lowered *l);

#endif

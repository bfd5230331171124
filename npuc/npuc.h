/* SPDX-License-Identifier: Apache-2.0 */
/*
 * npuc.h - TensorFlow Lite models as NPU programs: a .tflite file is read and checked,
 * compiled to an image for hal_program_load, and run.
 *
 *   npuc_model_load --> model --> npuc_compile --> program --> npuc_run_open --> run
 *                                                    |                          |
 *                              (.npu) npuc_program_save        npuc_run_write, _submit,
 *                                                        (hal_wait,) _read;
 * npuc_run_close
 *
 * Outputs are those of TensorFlow Lite's reference kernels, bit for bit.
 * Errors:  0 or -errno; why[] says which file, layer, operator and tensor, and what is
 *          wrong: -EINVAL not a valid model, -ENOTSUP valid but not for this compiler or
 *          machine, -ENOMEM, -ENOENT and others of files, or what a hal_ function gave.
 * Threads: a model or a program may be read by several; a run, and all that are open
 *          beside it, belong to one thread at a time.
 * ABI:     structs may grow with a minor version, and the library's soname says which.
 * Nothing here exits, aborts or prints.
 */
#ifndef NPUC_H
#define NPUC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hal/hal.h>

#ifdef __cplusplus
extern "C" {
#endif

#define NPUC_API           __attribute__((visibility("default")))
#define NPUC_WHY           512 /* bytes of an error text */
#define NPUC_RANK          8
#define NPUC_OPERATOR_NAME 64
#define NPUC_NAME          256
#define NPUC_HOST          256
#define NPUC_NONE          UINT32_MAX /* no tensor */
#define NPUC_LEFT          (UINT32_MAX - 1u)

struct npuc_model;

/* By their code in the file. */
enum npuc_type {
	NPUC_FLOAT32 = 0,
	NPUC_FLOAT16 = 1,
	NPUC_INT32 = 2,
	NPUC_UINT8 = 3,
	NPUC_INT64 = 4,
	NPUC_STRING = 5,
	NPUC_BOOL = 6,
	NPUC_INT16 = 7,
	NPUC_COMPLEX64 = 8,
	NPUC_INT8 = 9,
	NPUC_FLOAT64 = 10,
	NPUC_COMPLEX128 = 11,
	NPUC_UINT64 = 12,
	NPUC_RESOURCE = 13,
	NPUC_VARIANT = 14,
	NPUC_UINT32 = 15,
	NPUC_UINT16 = 16,
	NPUC_INT4 = 17,
	NPUC_BFLOAT16 = 18,
};

/* "int8" ...; of another code: "of unknown type". */
NPUC_API const char *npuc_type_name(enum npuc_type type);
NPUC_API uint32_t npuc_type_bytes(enum npuc_type type);

/* Lives as long as the model. */
struct npuc_tensor {
	const char *name; /* never NULL; printable */
	enum npuc_type type;
	uint32_t rank; /* 0: a scalar */
	int32_t dims[NPUC_RANK];
	uint64_t count, bytes; /* elements, and what they take */
	uint32_t scales;       /* 0: not quantized, 1: per tensor, else per channel */
	uint32_t channel_dim;  /* per channel: the dimension the scales belong to */
	float scale;           /* of channel 0 */
	int32_t zero_point;    /* of channel 0 */
	const void *data;      /* a constant's bytes, any alignment; NULL: not constant */
};

/* name is for error texts; bytes are copied. */
NPUC_API int npuc_model_load(const char *path, struct npuc_model **model,
			     char why[NPUC_WHY]);
NPUC_API int npuc_model_parse(const void *bytes, size_t size, const char *name,
			      struct npuc_model **model, char why[NPUC_WHY]);
NPUC_API void npuc_model_free(struct npuc_model *model);

/* ---- models made by calls ---------------------------------------------------------- */

/* Collects tensors and operators; belongs to one thread at a time.  All that the calls
 * below refer to is copied. */
struct npuc_builder;

struct npuc_tensor_desc {
	const char *name; /* NULL: "tensor<index>" */
	enum npuc_type type;
	uint32_t rank;
	const int32_t *dims;
	uint32_t scales; /* 0: not quantized; 1: per tensor; else one per channel */
	const float *scale;
	uint32_t zero_points; /* 0: all are 0; 1: for all channels; or .scales */
	const int32_t *zero_point;
	uint32_t channel_dim; /* per channel: the dimension the scales belong to */
	const void *data;     /* a constant's bytes, any alignment; NULL: not constant */
	uint64_t bytes;       /* of data */
	bool variable;
	/* A bit for each dimension whose size is a placeholder, as an open batch's is: a
	 * result gets the size that its operands give it.  An input has the size of
	 * .dims. */
	uint32_t open;
};

/* An option of an operator under its name in TensorFlow Lite's schema, such as
 * "stride_w", with the schema's numbers for enums.  Its type there says which members
 * count. */
struct npuc_attr {
	const char *name;
	int64_t i; /* integers, enums, booleans */
	float f;
	const int32_t *ints; /* vectors such as "new_shape" */
	uint32_t count;
};

struct npuc_op_desc {
	uint32_t code;                    /* in the schema, or NPUC_TABLE_OPERATOR */
	const char *custom;               /* of code 32 (CUSTOM): its name; else NULL */
	int32_t version;                  /* at least 1 */
	const uint32_t *inputs, *outputs; /* tensors; NPUC_NONE: left out */
	uint32_t input_count, output_count;
	const uint32_t *intermediates; /* tensors that quantize inside an LSTM */
	uint32_t intermediate_count;
	/* Absent attributes have the schema's defaults; without any, the operator has no
	 * options at all, as in old files. */
	const struct npuc_attr *attrs;
	uint32_t attr_count;
};

/* Any function of one 8-bit tensor.  Its second input is a constant of 256 elements of
 * the output's type: the results of -128 to 127 (int8) or 0 to 255 (uint8), in this
 * order.  In a file it is a CUSTOM operator with the name "accelhal.table". */
#define NPUC_TABLE_OPERATOR 0x10000u

/* name is for error texts. */
NPUC_API int npuc_builder_create(const char *name, struct npuc_builder **b,
				 char why[NPUC_WHY]);
/* Adds a tensor.  A wrong description is -EINVAL and leaves the builder as it was. */
NPUC_API int npuc_builder_tensor(struct npuc_builder *b,
				 const struct npuc_tensor_desc *tensor, uint32_t *index,
				 char why[NPUC_WHY]);
/* Adds an operator after all others; *layer (may be NULL) is its number.  Any code of the
 * schema can be added; npuc_compile and npuc_check say which they refuse. */
NPUC_API int npuc_builder_op(struct npuc_builder *b, const struct npuc_op_desc *op,
			     uint32_t *layer, char why[NPUC_WHY]);
/* Makes a model of what was added.  The builder stays as it is and may get more. */
NPUC_API int npuc_builder_model(struct npuc_builder *b, const uint32_t *inputs,
				uint32_t input_count, const uint32_t *outputs,
				uint32_t output_count, struct npuc_model **model,
				char why[NPUC_WHY]);
/* NULL: nothing. */
NPUC_API void npuc_builder_free(struct npuc_builder *b);

/* ---- what a model has -------------------------------------------------------------- */

NPUC_API uint32_t npuc_tensor_count(const struct npuc_model *model);
NPUC_API const struct npuc_tensor *npuc_tensor(const struct npuc_model *model,
					       uint32_t index);
/* Scale of one channel of a tensor with .scales > 1. */
NPUC_API float npuc_tensor_scale(const struct npuc_model *model, uint32_t index,
				 uint32_t channel);
/* Tensor indices of the model's inputs and outputs; the function gives their number. */
NPUC_API uint32_t npuc_inputs(const struct npuc_model *model, const uint32_t **tensors);
NPUC_API uint32_t npuc_outputs(const struct npuc_model *model, const uint32_t **tensors);

/* Names of the operators that are compiled, in the schema's order; NULL past the last. */
NPUC_API const char *npuc_operator(uint32_t index);

/* Whose bits outputs have: TensorFlow Lite's built-in reference kernels of that version.
 */
enum npuc_reference {
	NPUC_REFERENCE_CURRENT = 0, /* TensorFlow 2.20 and later, LiteRT 1.3 and later */
	NPUC_REFERENCE_2_14 = 1,
};

struct npuc_options {
	/* Every activation tensor keeps a place of its own, to be read afterwards. */
	bool keep;
	/* A kernel "layer<i>" for each layer that has work, next to "run". */
	bool layers;
	/* The array that cycles are estimated for; 0: 16. */
	uint32_t rows, cols;
	enum npuc_reference reference;
};

enum npuc_where {
	NPUC_NOWHERE,  /* not on the device: float edges, options such as axes */
	NPUC_CONSTANT, /* in the image */
	NPUC_INPUT,    /* in the input buffer */
	NPUC_OUTPUT,   /* in the output buffer */
	NPUC_ARENA,    /* between */
};

struct npuc_place {
	enum npuc_where where;
	uint64_t offset, bytes;
};

/* An input or output of the program.  When the model's own is float32, the device has
 * the quantized tensor and npuc_run_write and npuc_run_read convert. */
struct npuc_port {
	char name[NPUC_NAME];
	enum npuc_type type; /* of the model's tensor */
	enum npuc_type
		device_type; /* int8, uint8, int16; of an output also int32, int64 */
	uint32_t tensor;     /* index in the model */
	uint32_t rank;
	int32_t dims[NPUC_RANK];
	uint64_t count;
	uint64_t offset; /* in the input or output buffer, a multiple of 64 */
	float scale;     /* real = scale * (q - zero_point); 0: not quantized */
	int32_t zero_point;
};

/* One operator of the file. */
struct npuc_layer {
	char operator_name[NPUC_OPERATOR_NAME]; /* "CONV_2D", "CUSTOM name" */
	char shape[96];                         /* "1x49x10x1 -> 1x25x5x64 10x4/2" */
	char kernel[32];   /* with options.layers; "": no device work */
	uint32_t output;   /* tensor; NPUC_NONE: it has none */
	uint32_t position; /* in the order in which layers with device work run */
	uint64_t macs;     /* the network's, however many the machine makes for them */
	uint64_t cycles;   /* estimated, alone on the array of the options */
};

/* image: kernel "run" with arguments (output buffer, input buffer), and the arena as a
 * third when arena_arg.  Buffers are at least as long as given here. */
struct npuc_program {
	void *image;
	size_t image_size;
	bool arena_arg; /* options.keep or .layers */
	/* It has variables, which stay in the program's own memory from one launch to the
	 * next; kernel "init" gives them their first values.  Launches are not
	 * HAL_CMD_REPLAYABLE. */
	bool state;
	uint64_t input_bytes, output_bytes;
	uint64_t arena_bytes; /* of activations at the same time, the most of any layer */
	/* What it takes of the device's memory: image, activations, variables, inputs and
	 * outputs. */
	uint64_t memory_bytes;
	uint64_t macs;
	uint64_t cycles; /* estimated */
	uint32_t input_count, output_count;
	struct npuc_port *inputs, *outputs;
	/* Custom operators and float32 at the end of a model are not the machine's: the
	 * program ends before them, and what they read are its outputs.  This says so;
	 * "": the program is the whole model. */
	char host[NPUC_HOST];
	/* What traces call it: of the file that it was opened or loaded from, without
	 * folder and ending, cut; "" of another. */
	char name[32];
	/* None of these in a program that was loaded. */
	uint32_t tensor_count, layer_count;
	struct npuc_place *places; /* by tensor */
	struct npuc_layer *layers; /* by operator */
};

/* options: NULL for none.  The program needs the model no longer. */
NPUC_API int npuc_compile(const struct npuc_model *model,
			  const struct npuc_options *options,
			  struct npuc_program *program, char why[NPUC_WHY]);
NPUC_API void npuc_program_free(struct npuc_program *program);
/* npuc_compile, or the program that an earlier call for the same model and options left
 * in the folder.  *hit (may be NULL): it was there; it has no .places and no .layers
 * then.  Each build of the library, known by its GNU build ID, has files of its own, and
 * removes none of another build.  A damaged or wrong file is replaced, at once for all
 * who read it; several processes may use a folder.  Its files decide what runs: it must
 * belong to the user.  0 with a text in why: compiled, but not kept.  folder NULL, or
 * options.keep or .layers: nothing is kept. */
NPUC_API int npuc_compile_cached(const struct npuc_model *model,
				 const struct npuc_options *options, const char *folder,
				 struct npuc_program *program, bool *hit,
				 char why[NPUC_WHY]);

/* Something that keeps a model from being compiled. */
struct npuc_obstacle {
	uint32_t layer; /* NPUC_NONE: it is no layer's */
	uint32_t more;  /* layers of the same operator that have the same text */
	int err;        /* what npuc_compile returns */
	char operator_name[NPUC_OPERATOR_NAME];
	char text[NPUC_WHY]; /* without file and layer */
};

struct npuc_report {
	uint32_t count, room, last;      /* room, last: the compiler's */
	struct npuc_obstacle *obstacles; /* by layer; those of none come first */
	/* Of each operator the index in obstacles of what keeps it off the device;
	 * NPUC_NONE: it compiles; NPUC_LEFT: the program ends before it, for the host. */
	uint32_t layer_count;
	uint32_t *by_layer;
};

/* Everything that npuc_compile would refuse with the options (NULL for none), not only
 * the first; none: it compiles.  An operator whose operand would come from a refused one
 * may be in by_layer only once that one is no more in the model: its shape is not known
 * before. */
NPUC_API int npuc_check(const struct npuc_model *model,
			const struct npuc_options *options, struct npuc_report *report,
			char why[NPUC_WHY]);
NPUC_API void npuc_report_free(struct npuc_report *report);

/* A .npu file: ports, sizes and the image. */
NPUC_API int npuc_program_save(const struct npuc_program *program, const char *path,
			       char why[NPUC_WHY]);
NPUC_API int npuc_program_load(const char *path, struct npuc_program *program,
			       char why[NPUC_WHY]);
NPUC_API int npuc_program_parse(const void *bytes, size_t size, const char *name,
				struct npuc_program *program, char why[NPUC_WHY]);
/* Reads either kind of file by its first bytes; compiles a model with options. */
NPUC_API int npuc_program_open(const char *path, const struct npuc_options *options,
			       struct npuc_program *program, char why[NPUC_WHY]);

/* ---- running ---------------------------------------------------------------------- */

/* Opens target (as hal_open; NULL: what the configuration selects), or counts one more
 * user of the handle that an earlier call opened for the same target and options: each
 * handle of npu:0 is a machine of its own.  Where neither target, options, files nor
 * environment choose an engine or a model of the NPU, it has engine=fast if that is
 * installed.  From any thread.  -ENODEV: no NPU; others of hal_open. */
NPUC_API int npuc_device_share(const char *target, const char *const *options,
			       struct hal_device **dev, char why[NPUC_WHY]);
/* Gives one use back; the last one closes the device as hal_close does, with its errors:
 * on -EBUSY the use remains.  NULL: nothing.  -EINVAL: not from npuc_device_share, or
 * closed.  -EPERM: shared before a fork of this process. */
NPUC_API int npuc_device_unshare(struct hal_device *dev);

/* A program in a partition with inputs and outputs of its own: one inference at a time.
 * More of them are in flight with more runs, opened beside the first. */
struct npuc_run;

/* Loads the program into a device and a partition of the caller's and makes a queue and
 * buffers there; program must outlive it.  Variables get their first values. */
NPUC_API int npuc_run_open(struct hal_device *dev, struct hal_partition *part,
			   const struct npuc_program *program, struct npuc_run **run,
			   char why[NPUC_WHY]);
/* The same on a queue of the caller's in that partition, with its own priority, deadline
 * or ring of completions; it may have other work, too, and outlives the run.  A launch
 * that gives variables their first values goes to it at once. */
NPUC_API int npuc_run_open_on(struct hal_device *dev, struct hal_partition *part,
			      struct hal_queue *queue, const struct npuc_program *program,
			      struct npuc_run **run, char why[NPUC_WHY]);
/* Other inputs and outputs for the same program on the same queue; the same variables. */
NPUC_API int npuc_run_open_beside(struct npuc_run *run, struct npuc_run **beside,
				  char why[NPUC_WHY]);
/* NULL: nothing.  -EBUSY while others are open beside it, or the queue that it made has
 * work: it is open as before. */
NPUC_API int npuc_run_close(struct npuc_run *run);
/* The queue, to be suspended, resumed or asked for statistics. */
NPUC_API struct hal_queue *npuc_run_queue(const struct npuc_run *run);

/* Bytes of a port as the model has it: float32 is four bytes an element. */
NPUC_API uint64_t npuc_port_bytes(const struct npuc_port *port);

/* What reads and writes a run is -EBUSY while an inference of it is in flight. */

/* bytes must be npuc_port_bytes.  float32 is quantized as TensorFlow Lite's QUANTIZE
 * does it. */
NPUC_API int npuc_run_write(struct npuc_run *run, uint32_t input, const void *data,
			    uint64_t bytes, char why[NPUC_WHY]);
/* float32: dequantized; raw: the device's bytes, of its type. */
NPUC_API int npuc_run_read(struct npuc_run *run, uint32_t output, bool raw, void *data,
			   uint64_t bytes, char why[NPUC_WHY]);

/* Gives a kernel ("run", "layer3", "init") to the queue, as hal_submit does, and does not
 * wait; done (may be NULL) is reached when it has ended: hal_wait, hal_point_open_fd, or
 * a wait of other work.  desc (may be NULL) without commands: what to wait for, to
 * signal, and the deadline and priority.  -EAGAIN when the queue is full, -ENOENT no such
 * kernel.
 */
NPUC_API int npuc_run_submit(struct npuc_run *run, const char *kernel,
			     const struct hal_submit_desc *desc, struct hal_point *done,
			     char why[NPUC_WHY]);

/* The launch as a command, for a submission or a sequence of the caller's own; it is good
 * until the run is closed.  Such work is not seen by the rule of -EBUSY. */
NPUC_API int npuc_run_command(const struct npuc_run *run, const char *kernel,
			      struct hal_cmd *cmd, char why[NPUC_WHY]);
/* Submits a kernel and waits for its end; *cycles (may be NULL) in which work of the
 * queue was running, since then. */
NPUC_API int npuc_run_kernel(struct npuc_run *run, const char *kernel, uint64_t *cycles,
			     char why[NPUC_WHY]);
/* Any tensor that has a place (options.keep). */
NPUC_API int npuc_run_tensor(struct npuc_run *run, uint32_t tensor, void *data,
			     uint64_t bytes, char why[NPUC_WHY]);

#ifdef __cplusplus
}
#endif
#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tfl_abi.h - what a delegate sees of TensorFlow Lite's interpreter, declared anew.
 *
 * Layouts of TensorFlow Lite 2.14 to LiteRT 2.3, which only append members.  Only
 * struct tfl_registration and struct tfl_delegate have grown since 2.5.  Nothing of the
 * runtime is linked: the interpreter passes function pointers in its context.
 * abi_check.c compares these declarations with the runtime's headers.
 */
#ifndef TFL_ABI_H
#define TFL_ABI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The registration is passed by value.  On x86-64 and AArch64 the caller may pass a
 * longer struct than the callee expects; 32-bit calling conventions do not allow that. */
#if UINTPTR_MAX != UINT64_MAX || defined(_WIN32)
#error "the TensorFlow Lite delegate needs a 64-bit ELF system"
#endif

enum tfl_status {
	TFL_OK = 0,
	TFL_ERROR = 1,
	TFL_DELEGATE_ERROR = 2,
};

/* These differ from the numbers in a file (enum npuc_type). */
enum tfl_type {
	TFL_NO_TYPE = 0,
	TFL_FLOAT32 = 1,
	TFL_INT32 = 2,
	TFL_UINT8 = 3,
	TFL_INT64 = 4,
	TFL_STRING = 5,
	TFL_BOOL = 6,
	TFL_INT16 = 7,
	TFL_COMPLEX64 = 8,
	TFL_INT8 = 9,
	TFL_FLOAT16 = 10,
	TFL_FLOAT64 = 11,
	TFL_COMPLEX128 = 12,
	TFL_UINT64 = 13,
	TFL_RESOURCE = 14,
	TFL_VARIANT = 15,
	TFL_UINT32 = 16,
	TFL_UINT16 = 17,
	TFL_INT4 = 18,
	TFL_BFLOAT16 = 19,
};

enum tfl_allocation {
	TFL_MEM_NONE = 0,
	TFL_MMAP_RO = 1, /* a constant of the file, at any alignment */
	TFL_ARENA_RW = 2,
	TFL_ARENA_RW_PERSISTENT = 3,
	TFL_DYNAMIC = 4,       /* its shape is known only after the node has run */
	TFL_PERSISTENT_RO = 5, /* computed while the interpreter prepared */
	TFL_CUSTOM = 6,
};

struct tfl_ints {
	int size;
	int data[];
};

struct tfl_floats {
	int size;
	float data[];
};

#define TFL_AFFINE 1 /* tfl_tensor.quantization.type */

struct tfl_affine {
	struct tfl_floats *scale;
	struct tfl_ints *zero_point; /* one for all channels, or as many as scales */
	int32_t quantized_dimension;
};

struct tfl_delegate;

struct tfl_tensor {
	int type;
	void *data;
	struct tfl_ints *dims;
	struct {
		float scale;
		int32_t zero_point;
	} params;
	int allocation_type;
	size_t bytes;
	const void *allocation;
	const char *name;
	struct tfl_delegate *delegate;
	int buffer_handle;
	bool data_is_stale;
	bool is_variable;
	struct {
		int type;
		void *params;
	} quantization;
	void *sparsity;
	const struct tfl_ints *dims_signature;
};

struct tfl_node {
	struct tfl_ints *inputs, *outputs, *intermediates, *temporaries;
	void *user_data;
	void *builtin_data;
	const void *custom_initial_data;
	int custom_initial_data_size;
	struct tfl_delegate *delegate;
	bool might_have_side_effect;
};

struct tfl_delegate_params {
	struct tfl_delegate *delegate;
	struct tfl_ints *nodes_to_replace, *input_tensors, *output_tensors;
};

struct tfl_context;

/* The interpreter may read more members than its version's documentation names, so all
 * are declared and spare ones are zero. */
struct tfl_registration {
	void *(*init)(struct tfl_context *ctx, const char *buffer, size_t length);
	void (*free)(struct tfl_context *ctx, void *buffer);
	int (*prepare)(struct tfl_context *ctx, struct tfl_node *node);
	int (*invoke)(struct tfl_context *ctx, struct tfl_node *node);
	const char *(*profiling_string)(const struct tfl_context *ctx,
					const struct tfl_node *node);
	int32_t builtin_code;
	const char *custom_name;
	int version;
	void *registration_external;                                           /* 2.4 */
	void *(*async_kernel)(struct tfl_context *ctx, struct tfl_node *node); /* 2.12 */
	uint64_t inplace_operator;                                             /* 2.15 */
	uint64_t spare[8];
};

struct tfl_context {
	size_t tensors_size;
	int (*GetExecutionPlan)(struct tfl_context *ctx, struct tfl_ints **plan);
	struct tfl_tensor *tensors;
	void *impl;
	int (*ResizeTensor)(struct tfl_context *ctx, struct tfl_tensor *tensor,
			    struct tfl_ints *size);
	void (*ReportError)(struct tfl_context *ctx, const char *format, ...)
		__attribute__((format(printf, 2, 3)));
	int (*AddTensors)(struct tfl_context *ctx, int count, int *first);
	int (*GetNodeAndRegistration)(struct tfl_context *ctx, int index,
				      struct tfl_node **node,
				      struct tfl_registration **registration);
	int (*ReplaceNodeSubsetsWithDelegateKernels)(struct tfl_context *ctx,
						     struct tfl_registration registration,
						     const struct tfl_ints *nodes,
						     struct tfl_delegate *delegate);
	int recommended_num_threads;
	void *(*GetExternalContext)(struct tfl_context *ctx, int type);
	void (*SetExternalContext)(struct tfl_context *ctx, int type, void *external);
	bool allow_fp32_relax_to_fp16;
	void *profiler;
	void *(*AllocatePersistentBuffer)(struct tfl_context *ctx, size_t bytes);
	int (*AllocateBufferForEval)(struct tfl_context *ctx, size_t bytes, void **p);
	int (*RequestScratchBufferInArena)(struct tfl_context *ctx, size_t bytes, int *i);
	void *(*GetScratchBuffer)(struct tfl_context *ctx, int i);
	int (*ResizeTensorExplicit)(struct tfl_context *ctx, struct tfl_tensor *tensor,
				    int dims, const int *shape);
	int (*PreviewDelegatePartitioning)(struct tfl_context *ctx,
					   const struct tfl_ints *nodes,
					   struct tfl_delegate_params **params,
					   int *count);
	/* GetTensor and others follow, which the delegate does not use. */
};

struct tfl_delegate {
	void *data;
	int (*Prepare)(struct tfl_context *ctx, struct tfl_delegate *delegate);
	int (*CopyFromBufferHandle)(struct tfl_context *ctx,
				    struct tfl_delegate *delegate, int handle,
				    struct tfl_tensor *tensor);
	int (*CopyToBufferHandle)(struct tfl_context *ctx, struct tfl_delegate *delegate,
				  int handle, struct tfl_tensor *tensor);
	void (*FreeBufferHandle)(struct tfl_context *ctx, struct tfl_delegate *delegate,
				 int *handle);
	int64_t flags;
	void *opaque_builder; /* 2.10; NULL: this is a classic delegate */
	uint64_t spare[4];    /* zero */
};

enum tfl_delegate_flags {
	/* Without it, a model with one dynamic tensor is refused as a whole. */
	TFL_ALLOW_DYNAMIC_TENSORS = 1,
	/* A resize gives tensors inside of a partition their new shapes, too. */
	TFL_REQUIRE_PROPAGATED_SHAPES = 2,
};

#endif

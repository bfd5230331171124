/* SPDX-License-Identifier: Apache-2.0 */
/*
 * npu_model.h - the C face of an NPU: registers, time and memory, nothing else.
 *
 * An engine is a way to run the machine: its RTL, of which each built shape (rows x cols
 * x slots x channels) is a shared object, or a model in C, which takes any shape.  Each
 * exports npu_model_entry.  A model is used from one thread at a time; models are
 * independent.
 * Registers are those of npu_regs.h; each access takes NPU_MODEL_REG_CYCLES cycles of
 * device time, as a bus access would.
 */
#ifndef NPU_MODEL_H
#define NPU_MODEL_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define NPU_MODEL_ABI        2u
#define NPU_MODEL_SYMBOL     "npu_model_entry"
#define NPU_MODEL_REG_CYCLES 2

struct npu_model;

/* What the array did, told as it happens: for traces, pictures and the benches.  Not part
 * of the machine.  One call a fold, when its last result has left the rectangle. */
struct npu_fold {
	uint32_t slot;
	uint32_t rows_used; /* K lanes of this fold: PE rows 0..rows_used-1 of the
			       rectangle */
	uint32_t cols_used; /* output channels: PE columns 0..cols_used-1 */
	uint32_t t;         /* activation rows streamed */
	uint64_t start;     /* first cycle of its weight load */
	uint64_t end;       /* cycle its last result was accumulated */
};
typedef void (*npu_fold_fn)(void *user, const struct npu_fold *fold);

/* The slot has completed the descriptor at HEAD, which is now one more. */
typedef void (*npu_desc_fn)(void *user, uint32_t slot, uint32_t head);

/* Cycles that the descriptor takes, from when the slot could begin it to its end. */
typedef uint64_t (*npu_cost_fn)(void *user, uint32_t slot, const uint32_t desc[16]);

struct npu_model_shape {
	uint32_t rows, cols, slots, channels;
};

#define NPU_MODEL_SETS 256u
#define NPU_MODEL_WAYS 8u

/* What the memory behind the ports does besides.  All 0: none of it. */
struct npu_model_memory {
	/* Cycles from one refresh of a channel to its next, and how many of these it
	 * takes: requests wait meanwhile, and all rows are closed.  Below 65,536. */
	uint32_t refresh, refreshing;
	/* A cache in front of each channel, of 64-byte lines: sets up to NPU_MODEL_SETS
	 * and ways up to NPU_MODEL_WAYS, powers of two.  Line l of a channel is in set
	 * l % sets.  16 bits of seed. */
	uint32_t cache_sets, cache_ways, cache_seed;
};

struct npu_model_api {
	uint32_t size;
	uint32_t abi;
	const char *engine; /* "rtl", "fast", "golden" */
	/* What it can be: exactly this shape or, where any_shape is set, up to it. */
	uint32_t rows, cols, slots, channels;
	uint32_t any_shape;
	/* shape: one that it can be; a built one may have more channels.  memory: bytes
	 * of device memory, owned by the caller, at physical address 0; stays until
	 * destroy.  NULL when the host is out of memory. */
	struct npu_model *(*create)(const struct npu_model_shape *shape, uint8_t *memory,
				    uint64_t bytes);
	void (*destroy)(struct npu_model *model);
	uint32_t (*reg_read)(struct npu_model *model, uint32_t address);
	void (*reg_write)(struct npu_model *model, uint32_t address, uint32_t value);
	/* Runs until the interrupt line is high or max_cycles have passed; returns the
	 * cycles run (0 when the line is high at once). */
	uint64_t (*run)(struct npu_model *model, uint64_t max_cycles);
	/* The interrupt line. */
	int (*irq)(const struct npu_model *model);
	/* Cycles since create. */
	uint64_t (*cycle)(const struct npu_model *model);
	/* Nothing will change without a register access: every slot idle or stopped and
	 * no request outstanding. */
	int (*idle)(const struct npu_model *model);
	void (*on_fold)(struct npu_model *model, npu_fold_fn fn, void *user);
	void (*on_desc)(struct npu_model *model, npu_desc_fn fn, void *user);
	/* From now on descriptors take what fn says, and compute nothing: no memory
	 * changes but by SIGNAL and TIMESTAMP.  NULL: this engine cannot. */
	void (*replay)(struct npu_model *model, npu_cost_fn fn, void *user);
	/* Before the first cycle.  Whose .size ends before it has none of this; an engine
	 * without memory timing takes it and nothing comes of it. */
	void (*memory)(struct npu_model *model, const struct npu_model_memory *how);
};

typedef const struct npu_model_api *(*npu_model_entry_fn)(void);

#ifdef __cplusplus
}
#endif
#endif

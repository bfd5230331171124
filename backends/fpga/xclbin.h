/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a configuration (xclbin) puts on a card: banks, kernels, and slots.  A slot is one
 * compute unit of each kernel: slot i has the i-th of each, in the order of the file.
 */
#ifndef BACKENDS_FPGA_XCLBIN_H
#define BACKENDS_FPGA_XCLBIN_H

#include <stdbool.h>
#include <stddef.h>

#include <hal/fpga.h>

#define FP_BANKS_MAX   64u
#define FP_SLOTS_MAX   64u
#define FP_KERNELS_MAX 64u
#define FP_ARGS_MAX    (HAL_ARGS_MAX + 6)

struct fp_bank {
	char tag[17];
	uint64_t bytes; /* 0: no memory that buffers can be in */
	uint64_t base;
};

struct fp_arg {
	char name[32];
	bool memory;
	bool is_float, is_double; /* which go another way to a function that takes any */
	uint32_t scalar_bytes;    /* 0: memory */
	uint32_t offset;          /* of its register */
	uint64_t bytes;           /* least size of memory; 0: any */
};

struct fp_unit_desc {
	char name[64];               /* KERNEL:{INSTANCE}; "": the slot has none */
	uint64_t reach[FP_ARGS_MAX]; /* banks of each argument */
};

struct fp_kernel_desc {
	char name[32];
	uint32_t arg_count; /* without those of groups */
	/* Last arguments hal_groups_x, _y, _z: how many groups a launch has. */
	uint32_t group_args;
	/* Behind those hal_state, hal_resume and hal_stop: it can be stopped inside. */
	bool stops;
	struct fp_arg args[FP_ARGS_MAX];
	uint32_t unit_count;
};

struct fp_xclbin {
	uint8_t uuid[16];
	char platform[64];
	uint32_t bank_count, kernel_count, slot_count;
	struct fp_bank banks[FP_BANKS_MAX];
	/* MEM_TOPOLOGY as it is in the file: two are the same to XRT's driver, and
	 * buffers live through a load, when these bytes are. */
	uint32_t record_count;
	struct hal_xclbin_bank records[FP_BANKS_MAX];
	struct fp_kernel_desc *kernels;
	struct fp_unit_desc *units; /* [kernel * slot_count + slot] */
};

/* Reads it; nothing of the file is kept.  0, -EINVAL or -ENOMEM with why. */
int fp_xclbin_read(const void *file, size_t size, struct fp_xclbin *x, char *why,
		   size_t why_bytes);
void fp_xclbin_drop(struct fp_xclbin *x);

/* The number of hal_state, where it stops; hal_resume and hal_stop come behind it. */
static inline uint32_t fp_state_arg(const struct fp_kernel_desc *k)
{
	return k->arg_count + k->group_args;
}

/* All that a run has to be given. */
static inline uint32_t fp_all_args(const struct fp_kernel_desc *k)
{
	return fp_state_arg(k) + (k->stops ? 3 : 0);
}

static inline const struct fp_unit_desc *fp_xclbin_unit(const struct fp_xclbin *x,
							uint32_t kernel, uint32_t slot)
{
	return &x->units[kernel * x->slot_count + slot];
}

#endif

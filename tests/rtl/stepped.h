/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stepped.h - the rig's machine as a kernel of an FPGA's slot: what it is asked through
 * struct npu_model_api becomes steps of runs (npu-rtl/npu_kernel.h).  One at a time.
 */
#ifndef STEPPED_H
#define STEPPED_H

#include "npu_kernel.h"
#include "work.h"

#define STEPPED_MAX 1024 /* steps of a run */

extern struct stepped {
	struct npu_kernel_step step[STEPPED_MAX];
	uint32_t count;
	uint8_t *memory; /* what the rig has of it */
	bool changed;    /* by the rig since the last run, before a slot was rung */
	bool ran;        /* the last run let cycles pass: memory may have changed */
	uint64_t cycle, runs;
	uint32_t state; /* NPU_KERNEL_IRQ, NPU_KERNEL_IDLE, NPU_KERNEL_BUS */
	/* Carries out the steps: theirs in return. */
	void (*carry_out)(void);
} stepped;

/* The machine's face, of this shape; its memory has so many bytes. */
void stepped_open(struct npu_model_api *api, const struct npu_model_shape *shape,
		  uint64_t bytes, void (*carry_out)(void));
struct npu_kernel_step *stepped_add(uint32_t op, uint32_t address, uint64_t value);
/* Has the steps carried out; none may be refused. */
void stepped_flush(void);

/* A random program of every operation on every slot; each byte of memory against the
 * golden model. */
void stepped_program(struct rig *r, uint64_t seed);

#endif

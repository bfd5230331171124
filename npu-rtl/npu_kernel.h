/* SPDX-License-Identifier: Apache-2.0 */
/*
 * npu_kernel.h - the NPU as a kernel of an FPGA's slot: what a run of it does.
 *
 *   npu(memory, steps, bytes, count)
 *
 * memory is the device memory that the NPU has, of so many bytes, at its physical address
 * 0; steps an array of count struct npu_kernel_step in memory that the kernel reaches,
 * which it carries out one after the other.  The machine keeps its registers from one run
 * to the next.  Little-endian.
 */
#ifndef NPU_KERNEL_H
#define NPU_KERNEL_H

#include <stdint.h>

enum npu_kernel_op {
	NPU_KERNEL_WRITE, /* value to the register at address */
	NPU_KERNEL_READ,  /* value becomes that of the register */
	/* Until the interrupt line is high or value cycles have passed; value becomes
	 * the cycles that have, address NPU_KERNEL_IRQ and NPU_KERNEL_IDLE. */
	NPU_KERNEL_RUN,
	/* A machine as after reset, of the shape value: rows, columns, slots and
	 * channels, a byte each from the lowest on.  A run with a step that is none of
	 * these, or of a shape that the machine has not, ends with an error there. */
	NPU_KERNEL_RESET,
};

#define NPU_KERNEL_IRQ  1u
#define NPU_KERNEL_IDLE 2u

struct npu_kernel_step {
	uint32_t op, address;
	uint64_t value;
};

#endif

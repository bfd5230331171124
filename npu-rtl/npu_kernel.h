/* SPDX-License-Identifier: Apache-2.0 */
/*
 * npu_kernel.h - the NPU as a kernel of an FPGA's slot: what a run of it does.
 *
 *   npu(memory, steps, bytes, count)
 *
 * memory is the device memory that the NPU has, of so many bytes, at its physical address
 * 0; steps an array of count struct npu_kernel_step in memory that the kernel reaches,
 * which it carries out one after the other; up to four are read before the first of them
 * is carried out.  memory and bytes are multiples of 64, steps of 16.  The machine keeps
 * its registers from one run to the next, as long as the configuration stays, and has
 * nothing to do with memory between them.  Little-endian.
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
	 * channels, a byte each from the lowest on; it may have more channels. */
	NPU_KERNEL_RESET,
	/* What a step becomes that is none of these, cannot be read, or is of a shape
	 * that the machine has not.  The run ends there. */
	NPU_KERNEL_REFUSED = -1,
};

#define NPU_KERNEL_IRQ  1u
#define NPU_KERNEL_IDLE 2u
#define NPU_KERNEL_BUS  4u /* the bus said error to something since the last reset */

/* Its registers, behind those of ap_ctrl_hs; npu-rtl/fpga/kernel.xml is the same. */
#define NPU_KERNEL_AP_CTRL  0x00u
#define NPU_KERNEL_GIE      0x04u
#define NPU_KERNEL_IER      0x08u
#define NPU_KERNEL_ISR      0x0cu
#define NPU_KERNEL_MEMORY   0x10u
#define NPU_KERNEL_STEPS    0x1cu
#define NPU_KERNEL_BYTES    0x28u
#define NPU_KERNEL_COUNT    0x34u

#define NPU_KERNEL_AP_START 1u
#define NPU_KERNEL_AP_DONE  2u
#define NPU_KERNEL_AP_IDLE  4u
#define NPU_KERNEL_AP_READY 8u

struct npu_kernel_step {
	uint32_t op, address;
	uint64_t value;
};

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * qmd.h - the descriptor of a launch (QMD) that the driver hands to the device, and the
 * field in it that keeps blocks off groups of multiprocessors (TPCs).  Layouts are those
 * of NVIDIA's open-gpu-doc, classes/compute/cl*qmd.h.
 */
#ifndef BACKENDS_CUDA_QMD_H
#define BACKENDS_CUDA_QMD_H

#include <stdbool.h>
#include <stdint.h>

#define CU_QMD_WORDS 4u /* of a mask: a bit a TPC, as the device counts them; 1: off */
#define CU_QMD_BYTES 384u

/* Of a QMD of that compute capability: its version as major << 4 | minor. */
uint32_t cu_qmd_version(const void *qmd, int major);
/* How many bits a mask has; 0: QMDs of that version have none, or it is not known. */
uint32_t cu_qmd_bits(uint32_t version, int major, int minor);
/* Keeps the launch off those TPCs too; those that it is kept off already stay so.  An
 * empty mask changes nothing.  False: no mask there, or a bit that it has not. */
bool cu_qmd_disable(void *qmd, int major, int minor, const uint32_t mask[CU_QMD_WORDS]);

#endif

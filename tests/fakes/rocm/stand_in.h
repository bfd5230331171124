/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stand_in.h - a libamdhip64.so.5 without a GPU; a test steers it by tests/fakes/gpu.
 *
 * Devices, as kfd.c has them: 0: MI50, 60 CUs; 1: MI210, 104; 2: MI300X, 304 in 8 XCCs;
 * 3: RX 7900 XTX, 96 in 48 pairs.  docs/rocm.md lists what is held to and what is not. It
 * is driven by halStandInHipDrive and halStandInHipAdvance.  Environment,
 * HAL_STAND_IN_HIP_: what all of them have; VERSION=60300000 (that it claims: from 6 on a
 * bit of a mask is a pair of CUs on RDNA, HSA refuses half a pair, and hiprtc's code is
 * in a bundle; from 6.1 on memory can be exported, and from 7.1 on the descriptor is
 * passed by value); VMM=ignored (memory has no addresses of one's own); DEVICES=N;
 * FAULT=sticky (a fault is answered by each later call; else it ends the process, as
 * releases before 2026 do). ROC_GLOBAL_CU_MASK counts, and HSA_CU_MASK=GPU:FROM-TO.
 * hiprtc compiles any text that has one of its kernels.  HSA's runtime is in it, too:
 * libhsa-runtime64.so.1 needs it.
 */
#ifndef TESTS_FAKES_ROCM_STAND_IN_H
#define TESTS_FAKES_ROCM_STAND_IN_H

#include "tests/fakes/gpu/stand_in.h"

#define ROCM_STAND_IN_BUS 0xa3u /* of device 0; then one more each */

#endif

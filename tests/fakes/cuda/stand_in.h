/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stand_in.h - a libcuda.so.1 without a GPU; a test steers it by tests/fakes/gpu.
 *
 * Devices: 0: 132 multiprocessors, 8 GiB, compute capability 9.0; 1: 46, 4 GiB, 7.5.
 * docs/cuda.md lists what is held to and what is not.  It is driven by
 * halStandInCudaDrive and halStandInCudaAdvance.  Environment, HAL_STAND_IN_CUDA_: what
 * all of them have; CARD=GTX 1080|V100|A100|H100|H200|B200 (what device 0 is);
 * VERSION=12030 (that it claims); DEVICES=N; FREE=wait (frees wait for
 * the device); QMD=0x24 (version of launch descriptors, major << 4 | minor); MASK, GREEN=
 * ignored|crash|hang (what comes of the first mask, the first stream of a green context);
 * MPS=1 (contexts are shared by MPS); SMS=64 (multiprocessors that are shown);
 * VMM=ignored (memory has no addresses of one's own); EXPORT=ignored (it cannot be
 * exported); RUN=ptx (kernels do what their PTX says, in an interpreter, in place of C
 * functions of their names).
 */
#ifndef TESTS_FAKES_CUDA_STAND_IN_H
#define TESTS_FAKES_CUDA_STAND_IN_H

#include "tests/fakes/gpu/stand_in.h"

#endif

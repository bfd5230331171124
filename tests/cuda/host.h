/* SPDX-License-Identifier: Apache-2.0 */
/* host.h - what tests of the CUDA backend drive. */
#ifndef TESTS_CUDA_HOST_H
#define TESTS_CUDA_HOST_H

#include "tests/fakes/cuda/image.h"
#include "tests/fakes/cuda/stand_in.h"
#include "tests/gpu/host.h"

const struct hal_backend *hal_backend_cuda(const struct hal_host *h);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* host.h - what tests of the ROCm backend drive. */
#ifndef TESTS_ROCM_HOST_H
#define TESTS_ROCM_HOST_H

#include "tests/fakes/rocm/image.h"
#include "tests/fakes/rocm/stand_in.h"
#include "tests/gpu/host.h"

const struct hal_backend *hal_backend_rocm(const struct hal_host *h);

#endif

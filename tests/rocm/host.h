/* SPDX-License-Identifier: Apache-2.0 */
/* host.h - what tests of the ROCm backend drive. */
#ifndef TESTS_ROCM_HOST_H
#define TESTS_ROCM_HOST_H

#include "tests/fakes/rocm/image.h"
#include "tests/fakes/rocm/stand_in.h"
#include "tests/gpu/host.h"

const struct hal_backend *hal_backend_rocm(const struct hal_host *h);

/* Of four work-items each: more than 32 bits of them. */
#define TOO_LARGE                                                                        \
	{0, 1u << 30,                                                                    \
	 "1073741824 x 1 x 1 groups; the device allows at most 1073741823 x"},           \
	{                                                                                \
		2, 1u << 31, "1 x 1 x 2147483648 groups"                                 \
	}

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* npu_test.h - what tests of the NPU's backend begin with. */
#ifndef TESTS_UNIT_NPU_TEST_H
#define TESTS_UNIT_NPU_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <hal/npu.h>

#include "npu/internal.h"

/* In a static library the registry's weak reference alone does not bring the backend in.
 */
__attribute__((used)) static const struct hal_backend *(*const keep)(
	const struct hal_host *) = hal_backend_npu;

#define GOLDEN HAL_BINARY_DIR "/npu-rtl/libnpu_golden.so"
#define FAST   HAL_BINARY_DIR "/npu-rtl/libnpu_fast.so"

#define OK(call)                                                                         \
	do {                                                                             \
		int ok_ = (call);                                                        \
		if (ok_)                                                                 \
			fail_msg("%s: %d: %s", #call, ok_, hal_last_error());            \
	} while (0)

#endif

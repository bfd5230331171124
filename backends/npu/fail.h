/* SPDX-License-Identifier: Apache-2.0 */
/* fail.h - hal_last_error for everything in this folder. */
#ifndef NPU_FAIL_H
#define NPU_FAIL_H

/* Sets hal_last_error of the calling thread through the core's host table; is -err.  A
 * macro, so that whoever reads the code, a tool too, sees that it is never 0. */
#define npu_fail(err, ...) (npu_set_error((err), __VA_ARGS__), -(err))

void npu_set_error(int err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif

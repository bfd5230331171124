/* SPDX-License-Identifier: Apache-2.0 */
/* fail.h - hal_last_error for everything in this folder. */
#ifndef NPU_FAIL_H
#define NPU_FAIL_H

/* Sets hal_last_error of the calling thread through the core's host table; returns -err.
 */
int npu_fail(int err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif

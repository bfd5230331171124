/* SPDX-License-Identifier: Apache-2.0 */
/* commands.c - the command builders of hal.h as functions, for callers without a C
 * compiler: the same text, compiled once more, not inline. */
#pragma GCC diagnostic ignored "-Wmissing-prototypes" /* nobody in C calls these */
#define HAL_INLINE HAL_API
#include <hal/hal.h>

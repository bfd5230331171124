/* SPDX-License-Identifier: Apache-2.0 */
/* commands.c - export the inline command builders of hal.h (hal_cmd_copy and so on) as
 * functions, for callers that cannot compile C.  This file compiles hal.h again, with
 * HAL_INLINE defined so that the builders are not inline. */
#pragma GCC diagnostic ignored "-Wmissing-prototypes" /* no C code calls these */
#define HAL_INLINE HAL_API
#include <hal/hal.h>

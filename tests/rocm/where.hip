/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel that tells where its blocks are, as HIP's compiler is given it; see where.sh.
 * No headers of HIP. */
#define HAL_WHERE(...) __VA_ARGS__
#include "backends/rocm/where.h"

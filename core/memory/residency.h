/* SPDX-License-Identifier: Apache-2.0 */
/* residency.h - core/memory's entry points for lower modules (struct residency in
 * loop/device.h). */
#ifndef HAL_MEMORY_RESIDENCY_H
#define HAL_MEMORY_RESIDENCY_H

#include "loop/device.h"

extern const struct residency memory_residency;

#endif

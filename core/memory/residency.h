/* SPDX-License-Identifier: Apache-2.0 */
/* residency.h - what memory does when a turn or a stop tells it of something. */
#ifndef HAL_MEMORY_RESIDENCY_H
#define HAL_MEMORY_RESIDENCY_H

#include "loop/device.h"

extern const struct residency memory_residency;

#endif

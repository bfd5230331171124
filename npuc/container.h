/* SPDX-License-Identifier: Apache-2.0 */
/* container.h - the bytes of .npu files. */
#ifndef NPUC_CONTAINER_H
#define NPUC_CONTAINER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "npuc.h"

/* Make the bytes of a .npu file, malloc'ed; false: no memory. */
bool npuc_program_bytes(const struct npuc_program *p, uint8_t **bytes, size_t *size);

#endif

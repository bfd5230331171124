/* SPDX-License-Identifier: Apache-2.0 */
/* pack.h - reading a struct hal_pack that anybody may have made. */
#ifndef HAL_LIB_PACK_H
#define HAL_LIB_PACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hal/pack.h>

/* Whether it calls itself a pack. */
bool pack_is(const void *image, size_t size);

/* Whether all it says of itself is so; else why not, in why (of size bytes). */
bool pack_check(const void *image, size_t size, char *why, size_t why_size);

/* Of a pack that has been checked. */
uint32_t pack_count(const void *image);
struct hal_pack_entry pack_entry(const void *image, uint32_t index);

#endif

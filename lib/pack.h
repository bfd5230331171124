/* SPDX-License-Identifier: Apache-2.0 */
/* pack.h - read a struct hal_pack from an untrusted source. */
#ifndef HAL_LIB_PACK_H
#define HAL_LIB_PACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hal/pack.h>

/* Return whether image begins with the magic number of a pack. */
bool pack_is(const void *image, size_t size);

/* Return whether the header and all entries are valid.  If not, write the reason to
 * why[0..why_size). */
bool pack_check(const void *image, size_t size, char *why, size_t why_size);

/* Call the functions below only for packs that pack_check has accepted, with an index
 * less than pack_count. */
uint32_t pack_count(const void *image);
struct hal_pack_entry pack_entry(const void *image, uint32_t index);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* sha256.h - SHA-256 (FIPS 180-4) of a few bytes or many; of the library and of tools. */
#ifndef HAL_UTIL_SHA256_H
#define HAL_UTIL_SHA256_H

#include <stddef.h>

#define SHA256_HEX 65 /* 64 digits and the end */

/* In hexadecimal, lower case. */
void sha256_hex(const void *bytes, size_t size, char hex[SHA256_HEX]);

#endif

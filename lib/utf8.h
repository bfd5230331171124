/* SPDX-License-Identifier: Apache-2.0 */
/* utf8.h - texts from anywhere, as UTF-8. */
#ifndef HAL_LIB_UTF8_H
#define HAL_LIB_UTF8_H

#include <stddef.h>
#include <string.h>

/* Copy at most max bytes of src, up to its NUL, into dst[0..size) as valid UTF-8 with a
 * NUL. Each byte that belongs to no character becomes U+FFFD; a character that does not
 * fit is left out with all that follows.  Names come from anywhere, and JSON must be
 * UTF-8. */
void utf8_text(char *dst, size_t size, const char *src, size_t max);

/* Return the length of the byte order mark that some editors put before a text of UTF-8;
 * 0: it has none. */
static inline size_t utf8_bom(const char *text, size_t size)
{
	return size >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
}

#endif

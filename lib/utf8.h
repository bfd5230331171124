/* SPDX-License-Identifier: Apache-2.0 */
/* utf8.h - convert untrusted text to valid UTF-8. */
#ifndef HAL_LIB_UTF8_H
#define HAL_LIB_UTF8_H

#include <stddef.h>
#include <string.h>

/* Copy src into dst[0..size) as valid, NUL-terminated UTF-8.  Read at most max bytes of
 * src, up to its NUL.  Replace each byte that belongs to no character by U+FFFD.  Stop at
 * the first character that does not fit.  Use it for names that are written as JSON,
 * which must be UTF-8. */
void utf8_text(char *dst, size_t size, const char *src, size_t max);

/* Return the length of the UTF-8 byte order mark at the start of text; 0 if text
 * has none.  Some editors write this mark. */
static inline size_t utf8_bom(const char *text, size_t size)
{
	return size >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
}

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* utf8.c - texts from anywhere, as UTF-8; see utf8.h. */
#include "lib/utf8.h"

#include <string.h>

/* Return the length of the character at s[0..n); 0: there is none. */
static size_t character(const unsigned char *s, size_t n)
{
	/* What the second byte may be depends on the first: no long forms, no surrogates,
	 * no more than U+10FFFF. */
	unsigned char least = 0x80, most = 0xbf;
	size_t length;

	if (s[0] < 0x80)
		return 1;
	if (s[0] < 0xc2 || s[0] > 0xf4)
		return 0;
	length = s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;
	if (s[0] == 0xe0)
		least = 0xa0;
	else if (s[0] == 0xed)
		most = 0x9f;
	else if (s[0] == 0xf0)
		least = 0x90;
	else if (s[0] == 0xf4)
		most = 0x8f;
	if (n < length || s[1] < least || s[1] > most)
		return 0;
	for (size_t i = 2; i < length; i++)
		if (s[i] < 0x80 || s[i] > 0xbf)
			return 0;
	return length;
}

void utf8_text(char *dst, size_t size, const char *src, size_t max)
{
	static const char replacement[] = "\xef\xbf\xbd"; /* U+FFFD */
	size_t left = strnlen(src, max), used = 0;

	while (left > 0) {
		size_t taken = character((const unsigned char *)src, left);
		const char *from = taken != 0 ? src : replacement;
		size_t length = taken != 0 ? taken : sizeof(replacement) - 1;

		if (used + length >= size)
			break;
		memcpy(dst + used, from, length);
		used += length;
		src += taken != 0 ? taken : 1;
		left -= taken != 0 ? taken : 1;
	}
	dst[used] = '\0';
}

/* SPDX-License-Identifier: Apache-2.0 */
/* utf8.c - convert untrusted text to valid UTF-8; see utf8.h. */
#include "lib/utf8.h"

#include <string.h>

/* Return the length of the UTF-8 character at s[0..n), n > 0; 0 if it is not valid. */
static size_t character_length(const unsigned char *s, size_t n)
{
	/* The first byte narrows the range of the second one, to exclude overlong forms,
	 * surrogates and characters beyond U+10FFFF. */
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
		size_t char_length = character_length((const unsigned char *)src, left);
		const char *from = char_length != 0 ? src : replacement;
		size_t length = char_length != 0 ? char_length : sizeof(replacement) - 1;

		if (used + length >= size)
			break;
		memcpy(dst + used, from, length);
		used += length;
		src += char_length != 0 ? char_length : 1;
		left -= char_length != 0 ? char_length : 1;
	}
	dst[used] = '\0';
}

/* SPDX-License-Identifier: Apache-2.0 */
/* words.h - numbers as short texts, for tables. */
#ifndef HALCTL_WORDS_H
#define HALCTL_WORDS_H

struct words {
	char text[32];
};

/* Format a count, as 12345 or 123k. */
struct words count_text(double n);
/* Format bytes, as 1.5 MiB; and ns, as 2.3 ms. */
struct words bytes_text(double n);
struct words time_text(double ns);

#endif

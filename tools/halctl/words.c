/* SPDX-License-Identifier: Apache-2.0 */
/* words.c - numbers as short texts; see words.h. */
#include "words.h"

#include <stdio.h>

struct words count_text(double n)
{
	static const char *const unit[] = {"", "k", "M", "G", "T", "P"};
	struct words w;
	int u = 0;

	for (; n >= 99999.5 && u < 5; u++)
		n /= 1000;
	snprintf(w.text, sizeof(w.text), "%.0f%s", n, unit[u]);
	return w;
}

struct words bytes_text(double n)
{
	static const char *const unit[] = {"B", "KiB", "MiB", "GiB", "TiB"};
	struct words w;
	int u = 0;

	for (; n >= 1024 && u < 4; u++)
		n /= 1024;
	snprintf(w.text, sizeof(w.text), "%.*f %s", n < 10 && u > 0 ? 1 : 0, n, unit[u]);
	return w;
}

struct words time_text(double ns)
{
	static const char *const unit[] = {"ns", "us", "ms", "s"};
	struct words w;
	int u = 0;

	for (; ns >= 999.5 && u < 3; u++)
		ns /= 1000;
	snprintf(w.text, sizeof(w.text), "%.*f %s", ns < 9.95 && u > 0 ? 1 : 0, ns,
		 unit[u]);
	return w;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* fail.c - error text by way of the core's host table. */
#include "fail.h"

#include <stdio.h>

#include "internal.h"

const struct hal_host *npu_host;

void npu_set_error(int err, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (npu_host)
		npu_host->fail(err, "%s", text);
}

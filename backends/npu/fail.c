/* SPDX-License-Identifier: Apache-2.0 */
/* fail.c - error text by way of the core's host table. */
#include "fail.h"

#include <stdio.h>

#include "internal.h"

const struct hal_host *npu_host;

int npu_fail(int err, const char *fmt, ...)
{
	char text[400];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	return npu_host ? npu_host->fail(err, "%s", text) : -err;
}

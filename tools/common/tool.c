/* SPDX-License-Identifier: Apache-2.0 */
/* tool.c - errors, version and end of a command. */
#define _GNU_SOURCE
#include "tool.h"

#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>

#include <hal/hal.h>

static char *kept;
static size_t kept_size;

static void say(const char *fmt, va_list ap)
{
	fprintf(stderr, "%s: ", program_invocation_short_name);
	/* NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized): it has been started */
	vfprintf(stderr, fmt, ap);
	fputc('\n', stderr);
}

int tool_fail(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	if (kept == NULL)
		say(fmt, ap);
	else if (kept[0] == '\0')
		/* NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized): it is started */
		vsnprintf(kept, kept_size, fmt, ap);
	va_end(ap);
	return TOOL_FAILED;
}

void tool_keep(char *why, size_t size)
{
	kept = why;
	kept_size = size;
	if (why != NULL)
		why[0] = '\0';
}

void tool_note(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say(fmt, ap);
	va_end(ap);
}

int tool_fail_hal(void)
{
	return tool_fail("%s", hal_last_error());
}

int tool_usage_said(void)
{
	fprintf(stderr, "try: %s --help\n", program_invocation_short_name);
	return TOOL_USAGE;
}

int tool_usage(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say(fmt, ap);
	va_end(ap);
	return tool_usage_said();
}

int tool_version(void)
{
	uint32_t v = hal_version();

	printf("%s %u.%u.%u\n", program_invocation_short_name, v >> 16, v >> 8 & 0xff,
	       v & 0xff);
	return 0;
}

int tool_end(int rc)
{
	int before = ferror(stdout);

	errno = 0;
	/* What failed before has taken its errno with it. */
	if (fflush(stdout) != 0 || before)
		rc = tool_fail("cannot write the output%s%s", errno ? ": " : "",
			       errno ? hal_strerror(errno) : "");
	return rc < 0 ? -rc : rc;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* run.h - run the command halrun in a directory and look at what it says.  The program
 * that includes it makes dir with mkdtemp first, and removes it.
 */
#ifndef TESTS_NPUC_RUN_H
#define TESTS_NPUC_RUN_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include <cmocka.h>

static char dir[] = "/tmp/halrun.XXXXXX";
static char text[65536];

/* Run the command in dir; return its exit status; its output is in text. */
__attribute__((format(printf, 1, 2))) static int run(const char *format, ...)
{
	char command[4096];
	va_list args;
	size_t n;
	FILE *f;
	int rc;

	n = (size_t)snprintf(command, sizeof(command), "cd %s && exec 2>&1; ", dir);
	va_start(args, format);
	vsnprintf(command + n, sizeof(command) - n, format, args);
	va_end(args);
	f = popen(command, "r");
	assert_non_null(f);
	n = fread(text, 1, sizeof(text) - 1, f);
	text[n] = '\0';
	rc = pclose(f);
	return WIFEXITED(rc) ? WEXITSTATUS(rc) : -1;
}

#define RUNS(...)                                                                        \
	do {                                                                             \
		if (run(__VA_ARGS__) != 0)                                               \
			fail_msg("%s", text);                                            \
	} while (0)
#define SAYS(what)                                                                       \
	do {                                                                             \
		if (!strstr(text, what))                                                 \
			fail_msg("no '%s' in: %s", what, text);                          \
	} while (0)
#define REFUSED(status, what, ...)                                                       \
	do {                                                                             \
		assert_int_equal(run(__VA_ARGS__), status);                              \
		SAYS(what);                                                              \
	} while (0)

#endif

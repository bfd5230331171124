/* SPDX-License-Identifier: Apache-2.0 */
/* run.h - for tests of halctl: runs it; what it says.  After cmocka.h; HALCTL is its
 * name. */
#ifndef HALCTL_RUN_H
#define HALCTL_RUN_H

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

static char output[1024 * 1024];

/* Runs halctl with args (shell syntax); stdout and stderr into output; exit status. */
static int halctl(const char *args)
{
	char line[1024];
	size_t n;
	int rc;
	FILE *f;

	snprintf(line, sizeof(line), "2>&1 %s %s", HALCTL, args);
	f = popen(line, "r");
	assert_non_null(f);
	n = fread(output, 1, sizeof(output) - 1, f);
	output[n] = '\0';
	rc = pclose(f);
	assert_true(WIFEXITED(rc));
	return WEXITSTATUS(rc);
}

static void expect(const char *text)
{
	if (!strstr(output, text))
		fail_msg("no \"%s\" in:\n%.2000s", text, output);
}

#endif

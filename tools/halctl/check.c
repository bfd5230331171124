/* SPDX-License-Identifier: Apache-2.0 */
/* check.c - halctl check: find errors in a configuration file.  hald does it, since it
 * contains the code that reads both kinds of files. */
#define _GNU_SOURCE
#include "halctl.h"

#include <errno.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Write the path of the hald beside this program to path.  Return false if there is none.
 */
static bool hald_beside(char *path, size_t size)
{
	ssize_t n = readlink("/proc/self/exe", path, size);
	char *slash;

	if (n <= 0 || (size_t)n + sizeof("hald") > size)
		return false;
	path[n] = '\0';
	slash = strrchr(path, '/');
	if (slash == NULL)
		return false;
	memcpy(slash + 1, "hald", sizeof("hald"));
	return access(path, X_OK) == 0;
}

int halctl_check(const struct halctl *ctl)
{
	char path[4096];
	char *const words[] = {(char *)"hald", (char *)"--check",
			       ctl->word_count > 0 ? ctl->words[0] : NULL, NULL};
	int err, status = 0;
	pid_t pid;

	if (ctl->target == NULL)
		return tool_usage("check: no file given");
	if (ctl->options[0] != NULL)
		return tool_usage("check takes no library options: %s", ctl->options[0]);
	err = hald_beside(path, sizeof(path))
		      ? posix_spawn(&pid, path, NULL, NULL, words, environ)
		      : posix_spawnp(&pid, "hald", NULL, NULL, words, environ);
	if (err != 0)
		return tool_fail("check: cannot start hald, which checks files: %s",
				 hal_strerror(err));
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return tool_fail("check: %s", hal_strerror(errno));
	if (!WIFEXITED(status) || WEXITSTATUS(status) == 127)
		return tool_fail("check: hald, which checks files, has not run");
	return WEXITSTATUS(status) == 0 ? 0 : TOOL_FAILED;
}

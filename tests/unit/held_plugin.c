/* SPDX-License-Identifier: Apache-2.0 */
/* held_plugin.c - a plugin that does not come back from its entry until it is told to.
 * HELD=IN,OUT: it writes a byte to file descriptor OUT, then reads one from IN.  FORKS:
 * it waits for a child of its own, as a driver does that has a module of the kernel
 * loaded.  With AT_LOAD it is a driver's library, of which already the loading is held.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <hal/backend.h>

/* False: HELD names no file descriptors. */
static bool wait_if_held(void)
{
	const char *held = getenv("HELD");
	int in, out;
	char byte = 0;

	if (held == NULL)
		return true;
	return sscanf(held, "%d,%d", &in, &out) == 2 && write(out, &byte, 1) == 1 &&
	       read(in, &byte, 1) == 1;
}

#ifdef AT_LOAD
__attribute__((constructor)) static void load(void)
{
	if (!wait_if_held())
		abort();
}
#else
static int wait_for_child(const struct hal_host *host)
{
	pid_t pid = fork();
	int status;

	if (pid == 0)
		_exit(0);
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return host->fail(EIO, "no child");
	return 0;
}

HAL_API const struct hal_backend *hal_backend_entry(const struct hal_host *host);
const struct hal_backend *hal_backend_entry(const struct hal_host *host)
{
	static const struct hal_backend table = {
		.size = sizeof(table),
		.abi = HAL_BACKEND_ABI,
		.name = "held",
		.cold_size = sizeof(table.cold),
		.hot_size = sizeof(table.hot),
	};

	if (getenv("FORKS") != NULL && wait_for_child(host) != 0)
		return NULL;
	if (wait_if_held())
		return &table;
	(void)host->fail(EIO, "HELD: no such file descriptors");
	return NULL;
}
#endif
